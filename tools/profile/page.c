// A profile as a page.

#include "profile.h"

#include <stdlib.h>
#include <string.h>

// --- quantities -----------------------------------------------------------------------------------------------------

typedef struct text {
  char s[32];
} text;

// Three digits and a prefix: 12.3 M.
static text short_of(double v, const char *unit) {
  static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
  unsigned k = 0;
  text out;
  while (v >= 999.5 && k < 5) v /= 1000, k++;
  bool whole = k == 0 && v == (double)(uint64_t)v;
  int digits = whole || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
  bool gap = *unit || *prefixes[k];
  snprintf(out.s, sizeof out.s, "%.*f%s%s%s", digits, v, gap ? " " : "", prefixes[k], unit);
  return out;
}

static text time_of(double seconds) {
  text out;
  if (seconds < 1e-3)
    snprintf(out.s, sizeof out.s, "%.2f us", seconds * 1e6);
  else
    snprintf(out.s, sizeof out.s, "%.3f ms", seconds * 1e3);
  return out;
}

static text percent(double part, double whole) {
  text out = {"-"};
  if (whole > 0) snprintf(out.s, sizeof out.s, "%.0f %%", 100 * part / whole);
  return out;
}

// --- parts ----------------------------------------------------------------------------------------------------------

static void put_head(FILE *to, const kiln_profile_info *t) {
  fprintf(to, "kernel     %s\n", t->kernel);
  fprintf(to, "launch     grid %u,%u,%u, block %u,%u,%u, %u bytes of shared memory, on %s\n", t->grid[0], t->grid[1],
          t->grid[2], t->block[0], t->block[1], t->block[2], t->shared_bytes, t->gpu);
  if (t->sampled < t->blocks)
    fprintf(to, "counted    %llu of %llu blocks; counts are theirs, times are scaled by %.4g: an estimate\n",
            (unsigned long long)t->sampled, (unsigned long long)t->blocks, t->scale);
  else
    fprintf(to, "counted    all %llu blocks\n", (unsigned long long)t->blocks);
  fprintf(to, "predicted  %s, limited by %s\n", time_of(t->prediction.seconds).s, t->prediction.limiter);
}

static const char *const limits[] = {"warps", "blocks", "registers", "shared memory", "no block fits"};

static void put_occupancy(FILE *to, const kiln_profile_info *t) {
  const kiln_occupancy *o = &t->occupancy;
  fprintf(to, "occupancy  %u of %u warps, %u block%s a multiprocessor, limited by %s; %.2f waves; %u KiB of L1\n",
          o->warps, o->most_warps, o->blocks, o->blocks == 1 ? "" : "s", limits[o->limiter], o->waves,
          o->l1_bytes >> 10);
  if (!o->registers_real) fprintf(to, "registers  %u, by the PTX: no hardware's number\n", o->registers);
  if (!t->sass.known) return;
  fprintf(to, "registers  %u, %u bytes of stack, %u stored and %u loaded again for want of registers\n",
          t->sass.registers, t->sass.stack_bytes, t->sass.spill_store_bytes, t->sass.spill_load_bytes);
  fprintf(to, "SASS       %llu instructions in the code, %s executed by warps%s\n",
          (unsigned long long)t->sass.instructions, short_of((double)t->sass.executed, "").s,
          t->sass.estimated ? ": an estimate, as there are loops or calls" : "");
}

static void put_rates(FILE *to, const kiln_profile_info *t) {
  fprintf(to, "\n%-18s %14s  %-18s %14s %12s\n", "roofline", "amount", "", "rate", "time");
  double most = 0;
  for (size_t k = 0; k < t->prediction.rate_count; k++)
    if (t->prediction.rates[k].seconds > most) most = t->prediction.rates[k].seconds;
  for (size_t k = 0; k < t->prediction.rate_count; k++) {
    const kiln_profile_rate *r = &t->prediction.rates[k];
    if (r->amount == 0) continue;
    fprintf(to, "%-18s %14s  %-18s %14s %12s ", r->name, short_of(r->amount, "").s, r->unit, short_of(r->rate, "/s").s,
            time_of(r->seconds).s);
    int bar = most > 0 ? (int)(20 * r->seconds / most + 0.5) : 0;
    for (int i = 0; i < bar; i++) fputc('#', to);
    fputc('\n', to);
  }
}

static void put_widths(FILE *to, const kiln_access_counts *a) {
  const char *gap = "";
  for (int w = 0; w < 6; w++) {
    if (!a->width[w]) continue;
    fprintf(to, "%s%d", gap, 1 << w);
    if (a->width[w] < a->requests) fprintf(to, " (%s)", percent((double)a->width[w], (double)a->requests).s);
    gap = ", ";
  }
  fputc('\n', to);
}

static void put_accesses(FILE *to, const kiln_profile_info *t) {
  bool any = false, shared = false;
  for (int k = KILN_ACCESS_GLOBAL_LOAD; k <= KILN_ACCESS_LOCAL_STORE; k++) {
    const kiln_access_counts *a = &t->accesses[k];
    if (!a->requests) continue;
    if (!any)
      fprintf(to, "\n%-18s %10s %10s %10s %8s %8s %8s  %s\n", "memory", "requests", "bytes", "sectors", "used",
              "L1 hits", "L2 hits", "bytes of a lane");
    any = true;
    fprintf(to, "%-18s %10s %10s %10s %8s %8s %8s  ", kiln_access_kind_name(a->kind),
            short_of((double)a->requests, "").s, short_of((double)a->bytes, "").s, short_of((double)a->sectors, "").s,
            percent((double)a->unique_bytes, 32.0 * (double)a->sectors).s,
            percent((double)a->l1_hits, (double)a->sectors).s,
            percent((double)a->l2_hits, (double)(a->sectors - a->l1_hits)).s);
    put_widths(to, a);
  }
  for (int k = KILN_ACCESS_SHARED_LOAD; k <= KILN_ACCESS_SHARED_ATOMIC; k++) {
    const kiln_access_counts *a = &t->accesses[k];
    if (!a->requests) continue;
    if (!shared)
      fprintf(to, "\n%-18s %10s %10s %10s %10s %10s  %s\n", "shared memory", "requests", "bytes", "passes", "at least",
              "conflicts", "bytes of a lane");
    shared = true;
    fprintf(to, "%-18s %10s %10s %10s %10s %10s  ", kiln_access_kind_name(a->kind), short_of((double)a->requests, "").s,
            short_of((double)a->bytes, "").s, short_of((double)a->wavefronts, "").s,
            short_of((double)a->ideal_wavefronts, "").s, short_of((double)(a->wavefronts - a->ideal_wavefronts), "").s);
    put_widths(to, a);
  }
  for (int k = 0; k < KILN_ACCESS_COUNT; k++) {
    const kiln_access_counts *a = &t->accesses[k];
    if (!a->addresses) continue;
    fprintf(to, "%s: %.3g lanes on an address, %u at most", kiln_access_kind_name(a->kind),
            (double)a->lanes / (double)a->addresses, a->most_on_one);
    if (k == KILN_ACCESS_GLOBAL_ATOMIC)
      fprintf(to, "; %s requests on the address that most want", short_of((double)t->hottest_requests, "").s);
    fputc('\n', to);
  }
}

// Requests, and sectors or passes, where ptxas left some out or took them behind a branch that fewer lanes take.
static void put_kept(FILE *to, const kiln_profile_info *t) {
  bool any = false;
  for (int k = 0; t->kept_warps && k < KILN_ACCESS_CONSTANT; k++) {
    const kiln_access_counts *a = &t->accesses[k], *left = &t->kept[k];
    if (a->requests == left->requests && a->lanes == left->lanes) continue;
    if (!any) fprintf(to, "\n%-18s %10s %10s %10s\n", "as ptxas keeps it", "requests", "sectors", "passes");
    any = true;
    fprintf(to, "%-18s %10s", kiln_access_kind_name(a->kind), short_of((double)left->requests, "").s);
    if (a->sectors) fprintf(to, " %10s", short_of((double)left->sectors, "").s);
    if (a->wavefronts) fprintf(to, " %10s %10s", "", short_of((double)left->wavefronts, "").s);
    fputc('\n', to);
  }
}

static void put_buffers(FILE *to, const kiln_profile_info *t) {
  if (t->buffer_count) fprintf(to, "\n%-18s %14s %14s %14s\n", "buffer", "bytes", "read", "written");
  for (size_t k = 0; k < t->buffer_count; k++) {
    const kiln_profile_buffer *b = &t->buffers[k];
    fprintf(to, "0x%-16llx %14s %14s %14s\n", (unsigned long long)b->address, short_of((double)b->bytes, "B").s,
            short_of((double)b->read_bytes, "B").s, short_of((double)b->written_bytes, "B").s);
  }
  fprintf(to, "DRAM               %s read, %s written, %s left to be written, by the model of the caches\n",
          short_of((double)t->dram_read, "B").s, short_of((double)t->dram_written, "B").s,
          short_of((double)t->dram_dirty, "B").s);
}

static void put_sass_classes(FILE *to, const kiln_profile_info *t) {
  if (!t->sass_classified) return;
  fprintf(to, "\n%-18s %14s\n", "SASS", "warps");
  for (int c = 0; c < KILN_CLASS_COUNT; c++)
    if (t->sass_warps[c])
      fprintf(to, "%-18s %14s\n", kiln_profile_class_name((kiln_profile_class)c),
              short_of((double)t->sass_warps[c], "").s);
  if (t->sass_other) fprintf(to, "%-18s %14s\n", "other", short_of((double)t->sass_other, "").s);
  fprintf(to, "%-18s %14s%s\n", "all", short_of((double)t->sass.executed, "").s,
          t->sass.estimated ? "   an estimate" : "");
}

static void put_classes(FILE *to, const kiln_profile_info *t) {
  fprintf(to, "\n%-18s %14s %14s\n", "instructions", "warps", "lanes");
  for (int c = 0; c < KILN_CLASS_COUNT; c++)
    if (t->warps[c])
      fprintf(to, "%-18s %14s %14s\n", kiln_profile_class_name((kiln_profile_class)c),
              short_of((double)t->warps[c], "").s, short_of((double)t->lanes[c], "").s);
  fprintf(to, "%-18s %14s %14s   %.1f lanes a warp\n", "all", short_of((double)t->all_warps, "").s,
          short_of((double)t->all_lanes, "").s, t->all_warps ? (double)t->all_active / (double)t->all_warps : 0);
  if (t->branches)
    fprintf(to, "branches: %s, of which lanes go two ways in %s\n", short_of((double)t->branches, "").s,
            short_of((double)t->divergent_branches, "").s);
  if (t->f32_flops + t->f64_flops + t->half_flops)
    fprintf(to, "operations: %s of f32, %s of f64, %s of f16 and bf16\n", short_of((double)t->f32_flops, "").s,
            short_of((double)t->f64_flops, "").s, short_of((double)t->half_flops, "").s);
}

// --- lines ----------------------------------------------------------------------------------------------------------

static uint64_t sectors_of(const kiln_profile_line *l) {
  uint64_t n = 0;
  for (size_t k = 0; k < l->access_count; k++) n += l->accesses[k].sectors + l->accesses[k].wavefronts;
  return n;
}

// Issues, and where ptxas has spoken its instructions; four sectors are a pass.
static double cost_of(const kiln_profile_line *l, bool sass) {
  double issues = (double)(sass ? l->sass_executed : l->warps);
  return issues + (double)sectors_of(l) / 4;
}

typedef struct ranked {
  double cost;
  size_t line;
} ranked;

static int by_cost(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? 1 : -1;
  return (x->line > y->line) - (x->line < y->line);
}

static int by_line(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  return (x->line > y->line) - (x->line < y->line);
}

enum { HOTTEST = 12 };

static void put_fate(FILE *to, const kiln_profile_info *t, size_t n) {
  const kiln_profile_line *l = &t->lines[n];
  bool constant = !l->access_count || l->accesses[0].kind == KILN_ACCESS_CONSTANT;
  if (!t->kept_warps || constant || t->kept_warps[n] == l->warps) return;
  if (t->kept_warps[n])
    fprintf(to, "  // kept in %s", short_of((double)t->kept_warps[n], "").s);
  else
    fprintf(to, "  // ptxas leaves it out");
}

static void put_line(FILE *to, const kiln_profile_info *t, size_t n) {
  const kiln_profile_line *l = &t->lines[n];
  fprintf(to, "%6u %9s ", l->line, short_of((double)l->warps, "").s);
  if (t->sass.known) fprintf(to, "%5u ", l->sass);
  fprintf(to, "%5.1f %9s  %s", l->warps ? (double)l->lanes / (double)l->warps : 0,
          sectors_of(l) ? short_of((double)sectors_of(l), "").s : "", l->text);
  put_fate(to, t, n);
  fputc('\n', to);
}

static void put_lines(FILE *to, const kiln_profile_info *t, bool all) {
  ranked *order = malloc((t->line_count + 1) * sizeof *order);
  size_t n = t->line_count;
  if (!order) return;
  for (size_t k = 0; k < n; k++) order[k] = (ranked){cost_of(&t->lines[k], t->sass.known), k};
  if (!all && n > HOTTEST) {
    qsort(order, n, sizeof *order, by_cost);
    n = HOTTEST;
    qsort(order, n, sizeof *order, by_line);
  }
  fprintf(to, "\n%6s %9s %s%5s %9s  %s\n", "line", "warps", t->sass.known ? " SASS " : "", "lanes", "sectors",
          all ? "PTX" : "PTX that costs most");
  for (size_t k = 0; k < n; k++) put_line(to, t, order[k].line);
  free(order);
}

void profile_page(FILE *to, const kiln_profile_info *t, bool lines) {
  put_head(to, t);
  put_occupancy(to, t);
  put_rates(to, t);
  put_accesses(to, t);
  put_kept(to, t);
  put_buffers(to, t);
  put_classes(to, t);
  put_sass_classes(to, t);
  put_lines(to, t, lines);
  fprintf(to, "\nThe prediction takes for granted:\n");
  for (size_t k = 0; k < t->prediction.assumption_count; k++) fprintf(to, "- %s\n", t->prediction.assumptions[k]);
}
