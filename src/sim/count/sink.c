// Loads that ptxas may take behind a branch, to the block that needs their values: it sinks them. There only those
// lanes ask for memory that take the branch. Whether it did is seen afterwards, in its code (issues.c); so while the
// kernel runs each such load is counted for each block that it may go to, with the lanes that come there.
//
// A value may be made as late as all who need it allow: those that have an effect stand where they are, those that only
// make another value may sink themselves. So blocks are gone through from those that others dominate, in each from its
// end, and a value's last block is the nearest that dominates where those who need it may go. Nothing sinks into a loop
// or out of it. A register that is written twice, or needed where its only write does not lead, stays.

#include "sim/count/collect.h"
#include "sim/machine/execute.h"

// --- where values may go --------------------------------------------------------------------------------------------

// Loads of a kernel, and blocks of a load, the last on its way; others are taken for loads that stay.
enum { MOST_LOADS = 1024, MOST_BLOCKS = 8 };

typedef struct value {
  uint32_t def;  // instruction that writes it + 1; 0: none
  uint32_t last; // block where all who need it, of those looked at, may go + 1; 0: nobody
  bool stays;
} value;

typedef struct sinking {
  const kl_counted *f;
  const kl_ptx_func *func;
  const uint32_t *loop; // by instruction
  uint32_t *parent;     // by block: the one that dominates it and no other that does
  uint32_t *first;      // by block: its first instruction
  uint32_t *order;      // blocks that are reached, those that others dominate behind these
  uint32_t reached;
  value *values;
  uint32_t at, last; // the instruction at hand, and how far it may go
} sinking;

static uint32_t loop_of(const sinking *s, uint32_t block) {
  return s->loop[s->first[block]];
}

// The nearest block that dominates both.
static uint32_t above(const sinking *s, uint32_t a, uint32_t b) {
  while (!kl_dominates(&s->f->blocks, a, b)) a = s->parent[a];
  return a;
}

static void find_parents(sinking *s, uint32_t *open) {
  const kl_blocks *b = &s->f->blocks;
  uint32_t depth = 0;
  for (uint32_t k = 0; k < b->n; k++)
    if (b->end[k]) s->order[b->begin[k]] = k, s->reached++;
  for (uint32_t n = 0; n < s->reached; n++) {
    uint32_t k = s->order[n];
    while (depth && b->end[open[depth - 1]] <= n) depth--;
    s->parent[k] = depth ? open[depth - 1] : k;
    open[depth++] = k;
  }
  for (uint32_t i = s->func->ninstrs; i-- > 0;) s->first[b->of[i]] = i;
}

static void find_def(void *with, uint32_t reg, bool write) {
  sinking *s = with;
  if (!write) return;
  s->values[reg].stays |= s->values[reg].def != 0;
  s->values[reg].def = s->at + 1;
}

static void find_stray(void *with, uint32_t reg, bool write) {
  sinking *s = with;
  value *v = &s->values[reg];
  const uint32_t *of = s->f->blocks.of;
  if (write) return;
  bool same = v->def && of[v->def - 1] == of[s->at];
  v->stays |= !v->def || (same ? v->def > s->at : !kl_dominates(&s->f->blocks, of[v->def - 1], of[s->at]));
}

static void ask_written(void *with, uint32_t reg, bool write) {
  sinking *s = with;
  const value *v = &s->values[reg];
  uint32_t own = s->f->blocks.of[s->at];
  if (!write) return;
  if (v->stays)
    s->last = own;
  else if (v->last)
    s->last = s->last == UINT32_MAX ? v->last - 1 : above(s, s->last, v->last - 1);
}

static void tell_read(void *with, uint32_t reg, bool write) {
  sinking *s = with;
  value *v = &s->values[reg];
  if (!write) v->last = (v->last ? above(s, v->last - 1, s->last) : s->last) + 1;
}

static bool is_strong(const kl_ptx_instr *i) {
  static const char *const names[] = {"volatile", "relaxed", "acquire", "mmio"};
  for (size_t k = 0; k < KL_COUNT(names); k++)
    if (kl_isa_has(i, names[k])) return true;
  return false;
}

static bool is_load(const kl_ptx_instr *i) {
  return (kl_str_is(i->opcode, "ld") || kl_str_is(i->opcode, "ldu")) && !is_strong(i);
}

// The last block that an instruction may go to.
static uint32_t last_of(sinking *s, uint32_t i) {
  const kl_site *site = &s->f->sites[i];
  uint32_t own = s->f->blocks.of[i];
  s->at = i;
  s->last = UINT32_MAX;
  if (site->kind < KILN_CLASS_LOAD || is_load(site->instr)) kl_each_register(site->instr, ask_written, s);
  if (s->last == UINT32_MAX || !kl_dominates(&s->f->blocks, own, s->last)) s->last = own;
  while (s->loop[i] != loop_of(s, s->last) && s->last != own) s->last = s->parent[s->last];
  kl_each_register(site->instr, tell_read, s);
  return s->last;
}

// --- loads and the blocks that they may go to -----------------------------------------------------------------------

static void add_load(kl_count *c, kl_counted *f, sinking *s, uint32_t i, uint32_t last) {
  uint32_t own = f->blocks.of[i];
  if (last == own || !is_load(s->func->instrs + i) || c->nmovable == MOST_LOADS) return;
  f->sites[i].movable = ++c->nmovable;
  for (uint32_t b = last, n = 0; b != own && n < MOST_BLOCKS; b = s->parent[b]) {
    if (loop_of(s, b) != s->loop[i]) continue;
    n++;
    kl_site *first = &f->sites[s->first[b]];
    VEC_PUSH(c->cx, &c->sinks,
             ((kl_sink){.function = f->code->function, .instr = i, .block = b, .next = first->enters}));
    first->enters = (uint32_t)c->sinks.n;
  }
}

void kl_sinks_find(kl_count *c, kl_counted *f, const uint32_t *loop) {
  const kl_ptx_func *func = f->code->func;
  uint32_t n = f->blocks.n;
  if (!func->entry || n == 1) return;
  size_t words = 4 * (size_t)n, bytes = (size_t)func->registers * sizeof(value);
  uint32_t *all = kl_alloc(c->cx, words * sizeof *all);
  sinking s = {.f = f,
               .func = func,
               .loop = loop,
               .parent = all,
               .first = all + n,
               .order = all + 2 * (size_t)n,
               .values = kl_alloc(c->cx, bytes + 1)};
  find_parents(&s, all + 3 * (size_t)n);
  for (s.at = 0; s.at < func->ninstrs; s.at++) kl_each_register(&func->instrs[s.at], find_def, &s);
  for (s.at = 0; s.at < func->ninstrs; s.at++) kl_each_register(&func->instrs[s.at], find_stray, &s);
  for (uint32_t k = s.reached; k-- > 0;) {
    uint32_t b = s.order[k], end = s.first[b];
    while (end < func->ninstrs && f->blocks.of[end] == b) end++;
    for (uint32_t i = end; i-- > s.first[b];) add_load(c, f, &s, i, last_of(&s, i));
  }
  kl_free(c->cx, all, words * sizeof *all);
  kl_free(c->cx, s.values, bytes + 1);
}

// --- while it runs --------------------------------------------------------------------------------------------------

// A load of a warp, of which lanes may still come to a block that needs it.
struct kl_pending {
  uint64_t at[KL_LANES];
  uint32_t lanes, width;
  kiln_access_kind kind;
  // Counts of lanes that came before: all of them, as to where branches join again, or some.
  struct {
    uint32_t lanes; // 0: not counted
    kiln_access_counts counts;
  } some, all;
  uint32_t sink, came; // of this one, + 1, lanes that have come
};

static kl_pending *pending_of(const kl_count *c, const kl_warp *w) {
  return (kl_pending *)w->block->shadow + (size_t)w->rank * c->nmovable;
}

void kl_sinks_begin(kl_observer *o, kl_block *b) {
  kl_count *c = (kl_count *)o;
  size_t n = (size_t)b->nwarps * c->nmovable;
  b->shadow = c->free_pending;
  if (b->shadow)
    c->free_pending = *(void **)b->shadow;
  else
    b->shadow = kl_arena_alloc(c->arena, n * sizeof(kl_pending));
  for (size_t k = 0; k < n; k++) ((kl_pending *)b->shadow)[k].lanes = 0;
}

void kl_sinks_end(kl_observer *o, kl_block *b) {
  kl_count *c = (kl_count *)o;
  *(void **)b->shadow = c->free_pending;
  c->free_pending = b->shadow;
  b->shadow = NULL;
}

void kl_sinks_load(kl_count *c, const kl_site *s, const kl_warp *w, kiln_access_kind kind, const uint64_t *at,
                   uint32_t width) {
  kl_pending *p = pending_of(c, w) + s->movable - 1;
  uint32_t mask = w->x.mask;
  for (uint32_t left = mask; left; left &= left - 1) p->at[__builtin_ctz(left)] = at[__builtin_ctz(left)];
  p->lanes = p->kind == kind ? p->lanes | mask : mask;
  p->kind = kind;
  p->width = width;
  p->some.lanes = p->all.lanes = 0;
  p->sink = 0;
}

static const kiln_access_counts *counts_of(kl_pending *p, const kl_warp *w, uint32_t lanes) {
  uint32_t *counted = lanes == p->lanes ? &p->all.lanes : &p->some.lanes;
  kiln_access_counts *a = lanes == p->lanes ? &p->all.counts : &p->some.counts;
  if (*counted == lanes) return a;
  *counted = lanes;
  *a = (kiln_access_counts){.kind = p->kind};
  kl_count_request(NULL, NULL, w, a, p->at, lanes, p->width, NULL);
  return a;
}

void kl_sinks_enter(kl_count *c, const kl_warp *w, uint32_t sink, uint32_t lanes) {
  for (; sink; sink = c->sinks.p[sink - 1].next) {
    kl_sink *k = &c->sinks.p[sink - 1];
    kl_pending *p = pending_of(c, w) + c->functions[k->function].sites[k->instr].movable - 1;
    uint32_t new = lanes & p->lanes & ~(p->sink == sink ? p->came : 0);
    if (!new) continue;
    p->came = new | (p->sink == sink ? p->came : 0);
    p->sink = sink;
    kl_add_access(&k->counts, counts_of(p, w, new));
    k->counts.kind = p->kind;
  }
}
