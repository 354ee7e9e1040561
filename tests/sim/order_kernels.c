// The CUDA kernels of tests/sim/kernels under the checks of order: no finding in any of them; and one for each of their
// barriers, fences and strong accesses that is left out or weakened, where that changes the order of accesses. One in
// six of these is tried, all with KILN_TEST_EXHAUSTIVE. About 15 s: over 500 launches.

#include "kernels/kernels.h"
#include "sim/check/order.h"
#include "support/suite.h"

#include <stdio.h>

static const char *const folders[] = {"sm_75", "sm_80", "sm_90", "sm_75-g", "sm_80-g", "sm_90-g"};

typedef struct text {
  char *p;
  size_t n;
} text;

static bool read_text(const char *root, const char *folder, const char *file, text *out) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s/%s.ptx", root, folder, file);
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  fseek(f, 0, SEEK_END);
  out->n = (size_t)ftell(f);
  rewind(f);
  out->p = malloc(out->n + 1);
  out->n = fread(out->p, 1, out->n, f);
  out->p[out->n] = 0;
  fclose(f);
  return true;
}

static uint64_t place(kl_memory *m, const kl_loaded *l, const kernel_buffer *b) {
  uint64_t address = 0, bytes = b->bytes;
  if (b->symbol)
    ck_assert_msg(kl_loaded_variable(l, kl_str_of(b->symbol), &address, &bytes), "no variable %s", b->symbol);
  else
    ck_assert_int_eq(kl_memory_alloc(m, bytes ? bytes : 1, KL_REGION_USER, KL_STR(""), &address), KILN_OK);
  if (b->before && b->bytes) memcpy(kl_memory_at(m, address, b->bytes), b->before, b->bytes);
  return address;
}

static void put_arguments(const kl_kernel *k, const kernel_case *c, const uint64_t *address, char *params) {
  for (uint32_t n = 0; n < c->narg; n++) {
    uint32_t at = 0, bytes = 0;
    kl_kernel_param(k, n, &at, &bytes);
    memcpy(params + at, c->args[n].value.bytes, bytes < c->args[n].size ? bytes : c->args[n].size);
    for (uint32_t p = 0; p < c->npatch; p++)
      if (c->patches[p].arg == n) memcpy(params + at + c->patches[p].offset, &address[c->patches[p].buffer], 8);
  }
}

// Notes which instructions run, where they stand in the text.
typedef struct coverage {
  kl_observer o; // first
  kl_ptx_place *places;
  size_t n, cap;
} coverage;

static void on_step(kl_observer *o, kl_warp *w, const kl_sim_op *op) {
  coverage *c = (coverage *)o;
  const kl_code *code = w->strand.frame->code;
  if (!code->forms[op - code->ops] || !code->func->ninstrs) return;
  kl_ptx_place at = code->func->instrs[op->index].at;
  for (size_t k = c->n; k-- > 0;)
    if (c->places[k].begin == at.begin) return;
  if (c->n == c->cap) c->places = realloc(c->places, (c->cap = c->cap * 2 + 64) * sizeof *c->places);
  c->places[c->n++] = at;
}

// Runs the case; the findings are printed into `out`, a line each. False: the module does not have the kernel.
static bool run_case(text t, const kernel_case *c, uint64_t most, coverage *seen, char **out) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_memory m;
  kl_loaded *l = NULL;
  kl_kernel *k = NULL;
  kl_fault fault;
  char params[4096] = {0};
  uint64_t address[KERNEL_MAX_BUFFERS];
  kl_report report = {0};
  kl_sb b;
  kl_memory_init(&m, cx, UINT64_MAX);
  kl_sb_init(&b, cx);
  ck_assert_int_eq(kl_load(cx, &m, "k.ptx", (kl_str){t.p, t.n}, &l), KILN_OK);
  bool has = kl_kernel_prepare(cx, l, kl_str_of(c->row->name), &k) == KILN_OK;
  if (has) {
    for (uint32_t i = 0; i < c->nbuffer; i++) address[i] = place(&m, l, &c->buffers[i]);
    put_arguments(k, c, address, params);
    kl_observer *o = kl_order_new(cx, &report, KL_ORDER_RACES | KL_ORDER_SYNC);
    kl_launch launch = {.kernel = k,
                        .grid = {c->grid[0], c->grid[1], c->grid[2]},
                        .block = {c->block[0], c->block[1], c->block[2]},
                        .dynamic_shared = c->dynamic_shared,
                        .params = params,
                        .cooperative = c->cooperative,
                        .most_branches = most,
                        .observers = (kl_observer *[]){o, seen ? &seen->o : NULL},
                        .nobservers = seen ? 2 : 1};
    if (c->cluster[0] * c->cluster[1] * c->cluster[2] > 1) memcpy(launch.cluster, c->cluster, sizeof launch.cluster);
    if (kl_launch_run(cx, &m, &launch, &fault)) kl_sbf(&b, "%s\n", kiln_diagnostics_get(cx, 0)->text);
    for (size_t i = 0; i < report.found.n; i++) {
      const kl_found *f = &report.found.p[i];
      kl_sbf(&b, "line %u: ", f->at.instr ? f->at.instr->at.line : 0);
      kl_report_put(&b, f);
      kl_sb_putc(&b, '\n');
    }
    kl_order_free(o);
  }
  *out = strdup(b.n ? b.p : "");
  kl_sb_free(&b);
  kl_report_free(cx, &report);
  kl_unload(cx, l);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
  return has;
}

static unsigned ran;

START_TEST(correct_kernels_are_clean) {
  const kernel_row *row = kernel_row_at((size_t)_i);
  for (size_t k = 0; k < KL_COUNT(folders); k++) {
    text t = {0};
    if (!read_text(KL_TESTS "/sim/kernels/ptx", folders[k], row->file, &t)) continue;
    for (uint32_t size = 0; size < KERNEL_SIZES; size++) {
      kernel_case *c = kernel_case_new(row, size, false);
      char *found = NULL;
      ck_assert_msg(c != NULL, "%s: no expectation", row->name);
      if (run_case(t, c, 0, NULL, &found)) ran++;
      EXPECT(!*found, "%s/%s: %s, size %u:\n%s", folders[k], row->file, row->name, c->size, found);
      free(found);
      kernel_case_free(c);
    }
    free(t.p);
  }
}
END_TEST

// --- mutations ----------------------------------------------------------------------------------------------------

// What weakens an instruction: where `what` stands in it, `by` comes in its place; NULL: the instruction is left out.
static const struct {
  const char *begins, *what, *by;
} weaker[] = {
    {"bar.sync", NULL, NULL},
    {"bar.arrive", NULL, NULL},
    {"bar.warp.sync", NULL, NULL},
    {"barrier.", NULL, NULL},
    {"membar", NULL, NULL},
    {"fence", NULL, NULL},
    {"cp.async.wait", NULL, NULL},
    {"ld", ".volatile", ""},
    {"st", ".volatile", ""},
    {"ld", ".acquire.", ".relaxed."},
    {"st", ".release.", ".relaxed."},
    {"red", ".release", ".relaxed"},
    {"atom", ".release", ".relaxed"},
    {"atom", ".acquire", ".relaxed"},
    {"atom", ".acq_rel", ".acquire"},
    {"atom", ".acq_rel", ".release"},
    {"fence", ".gpu", ".cta"},
    {"membar", ".gl", ".cta"},
    {"atom.global", "atom.", "atom.relaxed.cta."},
    {"atom", ".gpu", ".cta"},
    {"red.global", "red.", "red.relaxed.cta."},
};

// The text with one instruction weakened; NULL: it is none of that kind.
static char *mutant(text t, kl_ptx_place at, size_t k, size_t *n) {
  const char *from = t.p + at.begin, *end = t.p + at.end, *op = from;
  if (*op == '@') op += strcspn(op, " \t"), op += strspn(op, " \t");
  if (strncmp(op, weaker[k].begins, strlen(weaker[k].begins)) != 0) return NULL;
  char *to = malloc(t.n + 64), *p = to;
  memcpy(p, t.p, t.n);
  p[t.n] = 0;
  if (!weaker[k].what) {
    memset(to + at.begin, ' ', at.end - at.begin);
    *n = t.n;
    to[at.end + strcspn(to + at.end, ";")] = ' ';
    return to;
  }
  const char *found = strstr(op, weaker[k].what);
  if (!found || found >= end) {
    free(to);
    return NULL;
  }
  size_t head = (size_t)(found - t.p), tail = head + strlen(weaker[k].what);
  p = to + head;
  p += sprintf(p, "%s", weaker[k].by);
  memcpy(p, t.p + tail, t.n - tail);
  *n = head + strlen(weaker[k].by) + t.n - tail;
  return to;
}

// What may be weakened without a finding, and why: rows of kernel, and how the instruction begins.
static const struct {
  const char *kernel, *begins, *why;
} unnoticed[] = {
    {"reduce_last_block", "bar.sync", "what one thread wrote, it reads itself"},
    {"scan_tree", "bar.sync", "what one thread wrote, it reads itself"},
    {"histogram_private", "bar.sync", "the words that a thread clears are those that it counts in"},
    {"warp_votes", "bar.warp.sync", "another .sync operation is beside it"},
    {"sync_lane_chain", "st.volatile", "the barrier behind it orders it"},
    {"sync_lane_chain", "bar.sync", "between volatile accesses, which do not race: values alone change"},
    {"sync_named", "membar.cta", "the barrier behind it orders as much"},
    {"sync_scopes", "membar.sys", "nobody reads in this launch what it publishes"},
    {"sync_scopes", "atom", "what the block alone uses, or what only atomic operations of that block meet"},
    {"sync_release", "red.release", "nobody acquires it"},
    {"objects_atomic", "atom", "others order the same: a barrier, a fence before it"},
    {"objects_atomic", "fence", "others order the same"},
    {"objects_atomic", "bar.sync", "others order the same"},
    {"objects_atomic", "ld.acquire", "what it reads is all that is read"},
    {"groups_tiles", "bar.warp.sync", "a shuffle is beside it"},
    {"groups_wide", "", "several shuffles, votes and barriers order the same one after the other"},
    {"cluster_reduce", "barrier.cluster.wait", "nothing comes behind it: it keeps a block's shared memory alive"},
};

static bool may_go_unnoticed(const char *kernel, const char *text) {
  if (*text == '@') text += strcspn(text, " \t"), text += strspn(text, " \t");
  for (size_t k = 0; k < KL_COUNT(unnoticed); k++)
    if (strcmp(unnoticed[k].kernel, kernel) == 0 &&
        strncmp(unnoticed[k].begins, text, strlen(unnoticed[k].begins)) == 0)
      return true;
  return false;
}

static unsigned mutants, noticed, drawn;

// One in six, unless all are asked for.
static bool is_drawn(void) {
  return drawn++ % 6 == 0 || getenv("KILN_TEST_EXHAUSTIVE");
}

static void run_mutants(const kernel_row *row, const char *folder, text t, const kernel_case *c) {
  coverage seen = {.o = {.step = on_step}};
  char *found = NULL;
  bool has = run_case(t, c, 0, &seen, &found);
  free(found);
  for (size_t i = 0; has && i < seen.n; i++)
    for (size_t k = 0; k < KL_COUNT(weaker); k++) {
      text m = {0};
      m.p = mutant(t, seen.places[i], k, &m.n);
      if (!m.p) continue;
      if (is_drawn()) {
        const char *at = t.p + seen.places[i].begin;
        bool is_ptx = run_case(m, c, 20000, NULL, &found);
        mutants += is_ptx;
        noticed += *found != 0;
        EXPECT(!is_ptx || *found || may_go_unnoticed(row->name, at), "%s/%s %s line %u: nobody notices %.*s -> %s",
               folder, row->file, row->name, seen.places[i].line, (int)(seen.places[i].end - seen.places[i].begin), at,
               weaker[k].what ? weaker[k].by : "nothing");
        free(found);
      }
      free(m.p);
    }
  free(seen.places);
}

START_TEST(what_is_dropped_is_noticed) {
  const kernel_row *row = kernel_row_at((size_t)_i);
  for (size_t k = 0; k < KL_COUNT(folders); k++) {
    text t = {0};
    if (!read_text(KL_TESTS "/sim/kernels/ptx", folders[k], row->file, &t)) continue;
    kernel_case *c = kernel_case_new(row, 2, false);
    run_mutants(row, folders[k], t, c);
    kernel_case_free(c);
    free(t.p);
  }
}
END_TEST

START_TEST(launches_ran) {
  printf("# %u launches, %u mutants, %u noticed\n", ran, mutants, noticed);
  ck_assert_uint_gt(ran, 150);
  ck_assert_uint_gt(noticed * 10, mutants * 7);
}
END_TEST

int main(void) {
  int n = 0;
  while (kernel_row_at((size_t)n)) n++;
  return RUN_TESTS("order_kernels", NO_FRAME, {correct_kernels_are_clean, n}, {what_is_dropped_is_noticed, n},
                   {launches_ran});
}
