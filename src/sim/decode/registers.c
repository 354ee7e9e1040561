// Where registers lie in a frame. PTX names a register for every value; those whose lives do not overlap share a place,
// so that a warp's registers stay in the host's first cache.
//
// A life runs from a register's first mention to its last, in the order of the text. One that is mentioned in several
// blocks, or read first, may be carried around the loops it touches: its life takes in these loops whole. One that may
// be read before it is written, as no write of it lies on all ways to its mentions, has a place that nobody had before.

#include "sim/decode/decode.h"

#include <stdlib.h>

typedef struct life {
  uint32_t reg, begin, end;
  uint32_t block;          // of the first mention
  bool mentioned, carried; // in several blocks, or read before it is written
  bool open;               // it may be read before it is written
} life;

typedef struct span {
  uint32_t begin, end;
} span;

typedef struct lives {
  kl_decoder *d;
  life *of; // by register
  uint32_t at, block;
  kl_blocks blocks;
  VEC(span) loops; // apart, by rising begin, once united
} lives;

// --- mentions -----------------------------------------------------------------------------------------------------

static void mention(lives *l, uint32_t reg, bool write) {
  life *f = &l->of[reg];
  if (!f->mentioned) {
    *f = (life){.reg = reg,
                .begin = l->at,
                .end = l->at,
                .block = l->block,
                .mentioned = true,
                .carried = !write,
                .open = !write};
    return;
  }
  f->end = l->at;
  f->carried |= f->block != l->block;
  f->open |= !kl_dominates(&l->blocks, f->block, l->block);
}

static void mention_register(void *with, uint32_t reg, bool write) {
  lives *l = with;
  mention(l, reg, write && !l->d->f->instrs[l->at].guard);
}

// --- blocks and loops ---------------------------------------------------------------------------------------------

static void add_loop(lives *l, uint32_t label) {
  uint32_t to = l->d->f->labels[label].at;
  if (to <= l->at) VEC_PUSH(l->d->cx, &l->loops, (span){to, l->at});
}

static void find_loops(lives *l, const kl_ptx_instr *i) {
  for (uint32_t k = 0; k < i->noperands; k++) {
    const kl_ptx_operand *o = &i->operands[k];
    if (o->kind == KL_PTX_LABEL) add_loop(l, o->index);
    if (o->kind != KL_PTX_TABLE || l->d->f->tables[o->index].kind != KL_PTX_BRANCHTARGETS) continue;
    for (uint32_t n = 0; n < l->d->f->tables[o->index].n; n++) add_loop(l, l->d->f->tables[o->index].targets[n]);
  }
}

// Parameters that are registers are set before the first instruction, results are read behind the last, or by ret.
static void mention_variables(lives *l, uint32_t first, uint32_t n) {
  for (uint32_t k = first; k < first + n; k++)
    if (l->d->f->vars[k].reg) mention(l, l->d->f->vars[k].reg - 1, false);
}

static void find_lives(lives *l) {
  const kl_ptx_func *f = l->d->f;
  mention_variables(l, f->nreturns, f->nparams);
  for (uint32_t k = 0; k < f->ninstrs; k++) {
    l->at = k;
    l->block = l->blocks.of[k];
    kl_each_register(&f->instrs[k], mention_register, l);
    find_loops(l, &f->instrs[k]);
    if (kl_str_is(f->instrs[k].opcode, "ret")) mention_variables(l, 0, f->nreturns);
  }
  mention_variables(l, 0, f->nreturns);
}

static int by_begin(const void *a, const void *b) {
  const span *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

// Loops that overlap count as one.
static void unite_loops(lives *l) {
  size_t n = 0;
  if (l->loops.n) qsort(l->loops.p, l->loops.n, sizeof *l->loops.p, by_begin);
  for (size_t k = 0; k < l->loops.n; k++) {
    span s = l->loops.p[k];
    if (n && s.begin <= l->loops.p[n - 1].end) {
      if (s.end > l->loops.p[n - 1].end) l->loops.p[n - 1].end = s.end;
    } else {
      l->loops.p[n++] = s;
    }
  }
  l->loops.n = n;
}

// The loop at or before `at`, or NULL.
static const span *loop_at(const lives *l, uint32_t at) {
  size_t low = 0, high = l->loops.n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (l->loops.p[middle].begin <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low && l->loops.p[low - 1].end >= at ? &l->loops.p[low - 1] : NULL;
}

static void carry_around(const lives *l, life *f) {
  const span *first = loop_at(l, f->begin), *last = loop_at(l, f->end);
  if (!f->carried) return;
  if (first) f->begin = first->begin;
  if (last) f->end = last->end;
}

// --- places -------------------------------------------------------------------------------------------------------

enum { SIZES = 5 };
static const uint32_t sizes[SIZES] = {64, 128, 256, 512, 4}; // 16, 32, 64, 128 bits; predicates

static unsigned size_of(kl_ptx_type t) {
  switch (kl_ptx_type_bits[t]) {
  case 1: return 4;
  case 32: return 1;
  case 64: return 2;
  case 128: return 3;
  default: return 0;
  }
}

typedef struct taken { // a place in use, in a heap by the end of its life
  uint32_t end, at;
} taken;
typedef struct pool {
  VEC(taken) heap;
} pool;

static void heap_push(kl_ctx *cx, pool *p, taken t) {
  VEC_PUSH(cx, &p->heap, t);
  for (size_t k = p->heap.n - 1; k && p->heap.p[(k - 1) / 2].end > p->heap.p[k].end; k = (k - 1) / 2) {
    taken up = p->heap.p[(k - 1) / 2];
    p->heap.p[(k - 1) / 2] = p->heap.p[k];
    p->heap.p[k] = up;
  }
}

static taken heap_pop(pool *p) {
  taken top = p->heap.p[0], last = p->heap.p[--p->heap.n];
  size_t k = 0, n = p->heap.n;
  for (size_t child = 1; child < n; child = 2 * k + 1) {
    if (child + 1 < n && p->heap.p[child + 1].end < p->heap.p[child].end) child++;
    if (last.end <= p->heap.p[child].end) break;
    p->heap.p[k] = p->heap.p[child];
    k = child;
  }
  if (n) p->heap.p[k] = last;
  return top;
}

// Open ones first.
static int by_life(const void *a, const void *b) {
  const life *x = a, *y = b;
  if (x->open != y->open) return x->open ? -1 : 1;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->reg < y->reg ? -1 : x->reg > y->reg;
}

enum { MOST_FRAME = 1 << 30 };

static uint32_t take(kl_decoder *d, pool *p, unsigned size, const life *f) {
  uint32_t at;
  if (d->frame >= MOST_FRAME) {
    d->status = KILN_E_UNSUPPORTED; // said once, at the end
    return 0;
  }
  if (!f->open && p->heap.n && p->heap.p[0].end < f->begin) {
    at = heap_pop(p).at;
  } else {
    uint32_t bytes = sizes[size], align = bytes < 64 ? bytes : 64;
    at = (d->frame + align - 1) / align * align;
    d->frame = at + bytes;
  }
  heap_push(d->cx, p, (taken){f->end, at});
  return at;
}

static void end_open(kl_decoder *d) {
  d->code->zero_bytes = d->frame = (d->frame + 63) / 64 * 64;
}

static void place_all(lives *l) {
  kl_decoder *d = l->d;
  pool pools[SIZES] = {0};
  uint32_t n = 0;
  find_lives(l);
  unite_loops(l);
  for (uint32_t k = 0; k < d->f->registers; k++)
    if (l->of[k].mentioned) {
      carry_around(l, &l->of[k]);
      l->of[n++] = l->of[k];
    }
  if (n) qsort(l->of, n, sizeof *l->of, by_life);
  for (uint32_t k = 0; k < n; k++) {
    if (k && l->of[k - 1].open && !l->of[k].open) end_open(d);
    unsigned size = size_of(kl_ptx_register_type(d->f, l->of[k].reg));
    d->reg_at[l->of[k].reg] = take(d, &pools[size], size, &l->of[k]) | KL_IN_REGISTERS;
  }
  if (n && l->of[n - 1].open) end_open(d);
  for (unsigned k = 0; k < SIZES; k++) VEC_FREE(d->cx, &pools[k].heap);
}

// Texts may declare more registers than there is memory for: both arrays by register are input's size.
void kl_d_place_registers(kl_decoder *d) {
  size_t all = d->f->registers, bytes = all * sizeof(life) + 1;
  lives l = {.d = d, .of = kl_try_alloc(d->cx, bytes)};
  d->reg_at = kl_arena_try_alloc(d->arena, all * sizeof *d->reg_at + 1);
  if (!l.of || !d->reg_at || !kl_blocks_find(d->cx, d->f, &l.blocks))
    d->status = kl_out_of_memory(d->cx, bytes, "registers");
  else
    place_all(&l);
  if (d->status == KILN_E_UNSUPPORTED)
    kl_unsupported(d->cx, kl_ptx_span(d->loaded->ptx, d->f->at), "%.*s needs too many registers at once",
                   KL_FMT(d->f->name));
  kl_free(d->cx, l.of, l.of ? bytes : 0);
  kl_free(d->cx, l.blocks.of, l.blocks.of ? l.blocks.bytes : 0);
  VEC_FREE(d->cx, &l.loops);
  d->frame = (d->frame + 63) / 64 * 64;
  d->temporaries = d->most = d->frame;
}
