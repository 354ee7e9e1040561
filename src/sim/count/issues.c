// How often warps issue what ptxas made of a kernel, and which accesses to memory it kept.
//
// A basic block of SASS runs as a whole. So its instructions are issued as often as the lines are that surely stand in
// it: those of effects that nothing may take elsewhere and of branches, or, where there are none, most of its lines.
// What ptxas took over from another block, as a load that only a branch needs, or guards in place of a branch, runs as
// often as the block that it is in.

#include "sim/count/collect.h"

#include <stdlib.h>

typedef struct issues {
  kiln_profile *p;
  const kl_cubin *code, *loops; // loops->lines NULL: there are none
  uint32_t *line;               // by number of an instruction of the PTX: of the profile's lines, + 1; 0: none of them
  uint64_t warps;               // of the launch
  uint64_t *kept;               // by line: issues of its accesses
  uint64_t *votes;              // room for those of a block
  uint32_t *here, serial; // by block of the PTX: of the last block of SASS that has lines of it; of the one at hand
} issues;

static const kiln_profile_line *line_of(const issues *x, uint32_t number) {
  uint32_t n = number <= x->p->most_id ? x->line[number] : 0;
  return n ? &x->p->lines[n - 1] : NULL;
}

// Lines of loops are counted where loops are rounds.
static bool is_rounds(const issues *x, const kiln_profile_line *l) {
  return l && l->in_loop && x->loops->lines;
}

// --- blocks ---------------------------------------------------------------------------------------------------------

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

// What most say; of several the greatest. n > 0.
static uint64_t most_frequent(uint64_t *votes, uint32_t n) {
  uint64_t best = 0;
  uint32_t most = 0;
  qsort(votes, n, sizeof *votes, by_value);
  for (uint32_t k = 0, run = 0; k < n; k++) {
    run = k && votes[k] == votes[k - 1] ? run + 1 : 1;
    if (run >= most) most = run, best = votes[k];
  }
  return best;
}

static uint32_t ask(const issues *x, const kl_cubin *of, uint32_t first, uint32_t end, bool witnesses) {
  uint32_t n = 0;
  for (uint32_t k = first; k < end; k++) {
    const kiln_profile_line *l = line_of(x, of->code[k].line);
    if (l && (of->code[k].witness || !witnesses) && !(of == x->code && is_rounds(x, l))) x->votes[n++] = l->warps;
  }
  return n;
}

// How often warps run a block, and with lines of which blocks of the PTX.
static uint64_t runs_of(issues *x, const kl_cubin *of, uint32_t first, uint32_t end, bool *witnesses) {
  uint32_t n = ask(x, of, first, end, *witnesses = true);
  if (!n) n = ask(x, of, first, end, *witnesses = false);
  uint64_t runs = n ? most_frequent(x->votes, n) : x->warps;
  x->serial++;
  for (uint32_t k = first; k < end; k++) {
    const kiln_profile_line *l = line_of(x, of->code[k].line);
    if (l && (of->code[k].witness || !*witnesses) && l->warps == runs)
      x->here[x->p->blocks[l - x->p->lines]] = x->serial;
  }
  return runs;
}

// A load that stands in another block than its line, to which it may have gone. Where all of its lanes come there, or
// nobody says that the block is not its own, it stays.
static kl_sunk *sunk_here(const issues *x, uint32_t line, bool witnesses) {
  uint32_t low = 0, high = (uint32_t)x->p->nsunk;
  uint64_t lanes = 0;
  if (witnesses && x->here[x->p->blocks[line]] == x->serial) return NULL;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (x->p->sunk[middle].line < line)
      low = middle + 1;
    else
      high = middle;
  }
  for (size_t k = 0; k < x->p->lines[line].access_count; k++) lanes += x->p->lines[line].accesses[k].lanes;
  for (; low < x->p->nsunk && x->p->sunk[low].line == line; low++)
    if (x->here[x->p->sunk[low].block] == x->serial && x->p->sunk[low].counts.lanes < lanes) return &x->p->sunk[low];
  return NULL;
}

static void take_block(issues *x, const kl_cubin *of, uint32_t first, uint32_t end) {
  kiln_profile_info *t = &x->p->info;
  bool witnesses;
  uint64_t runs = runs_of(x, of, first, end, &witnesses);
  for (uint32_t k = first; k < end; k++) {
    const kl_sass_instruction *i = &of->code[k];
    const kiln_profile_line *l = line_of(x, i->line);
    if (is_rounds(x, l) != (of == x->loops)) continue;
    t->sass.executed += runs;
    *(i->kind < KILN_CLASS_COUNT ? &t->sass_warps[i->kind] : &t->sass_other) += runs;
    if (!l) continue;
    size_t n = (size_t)(l - x->p->lines);
    x->p->lines[n].sass_executed += runs;
    if (!i->accesses) continue;
    kl_sunk *sunk = i->stays ? NULL : sunk_here(x, (uint32_t)n, witnesses);
    if (sunk)
      sunk->used = true;
    else
      x->kept[n] += i->stays ? l->warps : runs;
  }
}

static void take_blocks(issues *x, const kl_cubin *of) {
  for (uint32_t first = 0, end; first < of->ncode; first = end) {
    for (end = first + 1; end < of->ncode && !of->code[end].begins;) end++;
    take_block(x, of, first, end);
  }
}

// --- lines ----------------------------------------------------------------------------------------------------------

// Where nothing is known of blocks each instruction is issued as often as its line.
static void take_lines(issues *x) {
  x->p->info.sass.executed = x->code->lines[0] * x->warps;
  for (size_t k = 0; k < x->p->info.line_count; k++) {
    kiln_profile_line *l = &x->p->lines[k];
    l->sass_executed = l->sass * l->warps;
    x->p->info.sass.executed += l->sass_executed;
  }
}

// --- accesses -------------------------------------------------------------------------------------------------------

static uint64_t part_of(uint64_t v, uint64_t part, uint64_t whole) {
  __extension__ typedef unsigned __int128 wide;
  return part == whole ? v : (uint64_t)(((wide)v * part + whole / 2) / whole);
}

// Counts of a line's accesses of which `part` of `whole` issues are left. What is most stays so.
static void add_part(kiln_access_counts *to, const kiln_access_counts *from, uint64_t part, uint64_t whole) {
  kiln_access_counts a = *from;
  uint64_t *const all[] = {&a.requests, &a.lanes,   &a.bytes,      &a.unique_bytes,     &a.sectors, &a.ideal_sectors,
                           &a.l1_hits,  &a.l2_hits, &a.wavefronts, &a.ideal_wavefronts, &a.remote,  &a.addresses};
  for (size_t k = 0; k < KL_COUNT(all); k++) *all[k] = part_of(*all[k], part, whole);
  for (size_t k = 0; k < KL_COUNT(a.width); k++) a.width[k] = part_of(a.width[k], part, whole);
  if (part) kl_add_access(to, &a);
}

// The share of a line's hits that its sunk load's sectors have: how the caches stand then is not known.
static void keep_sunk(issues *x) {
  for (size_t k = 0; k < x->p->nsunk; k++) {
    const kl_sunk *s = &x->p->sunk[k];
    const kiln_profile_line *l = &x->p->lines[s->line];
    kiln_access_counts a = s->counts;
    if (!s->used || x->kept[s->line] + a.requests > l->warps) continue; // it stands in its own block, too
    for (size_t n = 0; n < l->access_count; n++)
      if (l->accesses[n].kind == a.kind && l->accesses[n].sectors) {
        a.l1_hits = part_of(l->accesses[n].l1_hits, a.sectors, l->accesses[n].sectors);
        a.l2_hits = part_of(l->accesses[n].l2_hits, a.sectors, l->accesses[n].sectors);
      }
    if (a.requests) kl_add_access(&x->p->info.kept[a.kind], &a);
    x->kept[s->line] += a.requests;
  }
}

static void keep_accesses(issues *x) {
  kiln_profile_info *t = &x->p->info;
  for (size_t k = 0; k < t->line_count; k++) {
    const kiln_profile_line *l = &t->lines[k];
    if (x->kept[k] > l->warps) x->kept[k] = l->warps; // guarded, in a block that runs more often
    for (size_t n = 0; n < l->access_count; n++) {
      const kiln_access_counts *a = &l->accesses[n];
      bool constant = a->kind == KILN_ACCESS_CONSTANT;
      if (l->warps) add_part(&t->kept[a->kind], a, constant ? l->warps : x->kept[k], l->warps);
    }
  }
  keep_sunk(x);
  t->kept_warps = x->kept;
}

// --- all of it ------------------------------------------------------------------------------------------------------

static void forget(kiln_profile *p) {
  kiln_profile_info *t = &p->info;
  t->sass.executed = t->sass_other = 0;
  memset(t->sass_warps, 0, sizeof t->sass_warps);
  memset(t->kept, 0, sizeof t->kept);
  for (size_t k = 0; k < KILN_ACCESS_COUNT; k++) t->kept[k].kind = (kiln_access_kind)k;
  t->kept_warps = NULL;
  for (size_t k = 0; k < p->nsunk; k++) p->sunk[k].used = false;
}

void kl_sass_take(kiln_profile *p, const kl_cubin *code, const kl_cubin *loops) {
  kiln_profile_info *t = &p->info;
  kl_arena *a = &p->arena;
  uint64_t threads = (uint64_t)t->block[0] * t->block[1] * t->block[2];
  uint32_t most = code->ncode > loops->ncode ? code->ncode : loops->ncode;
  issues x = {.p = p,
              .code = code,
              .loops = loops,
              .line = KL_NEW_N(a, uint32_t, (size_t)p->most_id + 1),
              .warps = t->sampled * ((threads + KL_LANES - 1) / KL_LANES),
              .kept = KL_NEW_N(a, uint64_t, t->line_count + 1),
              .votes = KL_NEW_N(a, uint64_t, (size_t)most + 1),
              .here = KL_NEW_N(a, uint32_t, (size_t)p->nblocks + 1)};
  forget(p);
  t->sass.estimated = p->calls;
  t->sass_classified = code->code && (!loops->lines || loops->code);
  for (size_t k = 0; k < t->line_count; k++) {
    kiln_profile_line *l = &p->lines[k];
    x.line[p->ids[k]] = (uint32_t)k + 1;
    l->sass = (is_rounds(&x, l) ? loops : code)->lines[p->ids[k]];
    l->sass_executed = 0;
    t->sass.estimated |= l->in_loop;
  }
  if (!t->sass_classified) {
    take_lines(&x);
    return;
  }
  take_blocks(&x, code);
  if (loops->lines) take_blocks(&x, loops);
  keep_accesses(&x);
}
