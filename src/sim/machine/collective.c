// What lanes of a warp do together: shuffles, votes, matches, reductions, parts of matrices. A lane waits until all
// lanes of its member mask that have not exited execute the same instruction, wherever it stands.

#include "sim/machine/execute.h"
#include "sim/machine/observe.h"
#include "sim/machine/warp.h"

#include <math.h>

static void *place(const kl_party *p, unsigned lane, kl_ref ref) {
  uint32_t at = ref & ~(kl_ref)3;
  switch (ref & 3) {
  case KL_IN_REGISTERS: return (char *)p->frame[lane]->regs + at;
  case KL_IN_CONSTANTS: return p->frame[lane]->code->constants + at;
  default: return p->w->x.base[ref & 3] + at;
  }
}

static uint32_t get(const kl_party *p, unsigned lane, kl_ref ref) {
  return ((const uint32_t *)place(p, lane, ref))[lane];
}
static uint64_t get64(const kl_party *p, unsigned lane, kl_ref ref) {
  return ((const uint64_t *)place(p, lane, ref))[lane];
}
static bool holds(const kl_party *p, unsigned lane) {
  return ((*(const uint32_t *)place(p, lane, p->op[lane]->c) >> lane) & 1) != (p->op[lane]->flags & KL_NOT_C ? 1 : 0);
}
static void set(const kl_party *p, unsigned lane, kl_ref ref, uint32_t value) {
  if (ref != KL_NO_REF) ((uint32_t *)place(p, lane, ref))[lane] = value;
}
static void set_pred(const kl_party *p, unsigned lane, kl_ref ref, bool value) {
  if (ref == KL_NO_REF) return;
  uint32_t *word = place(p, lane, ref);
  *word = (*word & ~(1u << lane)) | (uint32_t)value << lane;
}

#define EACH_LANE(i, mask)                                                                                             \
  for (uint32_t left_##i = (mask), i; left_##i && (i = (uint32_t)__builtin_ctz(left_##i), 1); left_##i &= left_##i - 1)

// --- what they do -------------------------------------------------------------------------------------------------

// Lanes that are one strand. Of a lane that takes no part: anything.
static void shuffle_together(const kl_party *p, const kl_sim_op *o) {
  const kl_lanes *x = &p->w->x;
  uint32_t value[KL_LANES];
  uint32_t inside =
      p->w->shuffle((kl_shuffle)o->imm, AT(uint32_t, o->a), AT(uint32_t, o->b), AT(uint32_t, o->c), p->mask, value);
  if (o->d != KL_NO_REF && p->mask == KL_ALL_LANES)
    memcpy(AT(uint32_t, o->d), value, sizeof value);
  else if (o->d != KL_NO_REF)
    EACH_LANE(i, p->mask) AT(uint32_t, o->d)[i] = value[i];
  if (o->e != KL_NO_REF) *AT(uint32_t, o->e) = (*AT(uint32_t, o->e) & ~p->mask) | (inside & p->mask);
}

static void shuffle(const kl_party *p) {
  if (p->together) {
    shuffle_together(p, p->op[__builtin_ctz(p->mask)]);
    return;
  }
  uint32_t value[KL_LANES] = {0};
  EACH_LANE(i, p->mask) value[i] = get(p, i, p->op[i]->a);
  EACH_LANE(i, p->mask) {
    const kl_sim_op *o = p->op[i];
    bool inside = false;
    unsigned from = kl_source_lane((kl_shuffle)o->imm, i, get(p, i, o->b), get(p, i, o->c), &inside);
    set(p, i, o->d, value[p->mask >> from & 1 ? from : i]); // of a lane that takes no part: anything
    set_pred(p, i, o->e, inside);
  }
}

static void vote(const kl_party *p) {
  uint32_t yes = 0;
  EACH_LANE(i, p->mask) yes |= (uint32_t)holds(p, i) << i;
  EACH_LANE(i, p->mask) {
    const kl_sim_op *o = p->op[i];
    switch ((kl_vote)o->imm) {
    case KL_VOTE_BALLOT: set(p, i, o->d, yes); break;
    case KL_VOTE_ALL: set_pred(p, i, o->d, yes == p->mask); break;
    case KL_VOTE_ANY: set_pred(p, i, o->d, yes != 0); break;
    case KL_VOTE_UNI: set_pred(p, i, o->d, yes == 0 || yes == p->mask); break;
    }
  }
}

static void match(const kl_party *p) {
  uint64_t value[KL_LANES];
  EACH_LANE(i, p->mask) value[i] = p->op[i]->imm & KL_MATCH_64 ? get64(p, i, p->op[i]->a) : get(p, i, p->op[i]->a);
  EACH_LANE(i, p->mask) {
    const kl_sim_op *o = p->op[i];
    uint32_t same = 0;
    EACH_LANE(j, p->mask) same |= (uint32_t)(value[i] == value[j]) << j;
    if (o->imm & KL_MATCH_ALL) {
      set_pred(p, i, o->e, same == p->mask);
      if (same != p->mask) same = 0;
    }
    set(p, i, o->d, same);
  }
}

static float as_float(uint32_t bits) {
  float v;
  memcpy(&v, &bits, 4);
  return v;
}

// min and max of floats: -0 lies below +0; a NaN is left out, or with .NaN is the result.
static uint32_t better_float(uint32_t a, uint32_t b, bool least, bool nan) {
  float x = as_float(a), y = as_float(b);
  if (isnan(x) || isnan(y)) {
    if (nan || (isnan(x) && isnan(y))) return 0x7fffffff;
    return isnan(x) ? b : a;
  }
  if (x == y) return (a >> 31 != 0) == least ? a : b;
  return (x < y) == least ? a : b;
}

static uint32_t reduce_two(kl_redux kind, uint32_t a, uint32_t b, uint32_t flags) {
  switch (kind) {
  case KL_REDUX_ADD: return a + b;
  case KL_REDUX_MIN_U: return a < b ? a : b;
  case KL_REDUX_MAX_U: return a > b ? a : b;
  case KL_REDUX_MIN_S: return (int32_t)a < (int32_t)b ? a : b;
  case KL_REDUX_MAX_S: return (int32_t)a > (int32_t)b ? a : b;
  case KL_REDUX_AND: return a & b;
  case KL_REDUX_OR: return a | b;
  case KL_REDUX_XOR: return a ^ b;
  case KL_REDUX_MIN_F: return better_float(a, b, true, flags & KL_NAN);
  case KL_REDUX_MAX_F: return better_float(a, b, false, flags & KL_NAN);
  }
  return 0;
}

static void redux(const kl_party *p) {
  unsigned first = (unsigned)__builtin_ctz(p->mask);
  const kl_sim_op *how = p->op[first];
  uint32_t keep = how->flags & KL_ABS ? 0x7fffffff : KL_ALL_LANES, sum = get(p, first, how->a) & keep;
  kl_redux kind = (kl_redux)how->imm;
  EACH_LANE(i, p->mask & (p->mask - 1)) sum = reduce_two(kind, sum, get(p, i, p->op[i]->a) & keep, how->flags);
  if (kind >= KL_REDUX_MIN_F && isnan(as_float(sum))) sum = 0x7fffffff;
  EACH_LANE(i, p->mask) set(p, i, p->op[i]->d, sum);
}

static void elect(const kl_party *p) {
  unsigned leader = (unsigned)__builtin_ctz(p->mask);
  EACH_LANE(i, p->mask) {
    set(p, i, p->op[i]->d, leader);
    set_pred(p, i, p->op[i]->e, i == leader);
  }
}

// Elements of lanes that take no part are zero.
static void matrices(const kl_party *p) {
  const kl_matrices *x = (const kl_matrices *)(uintptr_t)p->op[__builtin_ctz(p->mask)]->imm;
  uint16_t rows[4][KL_LANES][2] = {0}, parts[4][KL_LANES][2] = {0};
  const kl_ref *from = x->to_rows ? x->parts : x->rows, *to = x->to_rows ? x->rows : x->parts;
  uint16_t(*in)[KL_LANES][2] = x->to_rows ? parts : rows, (*out)[KL_LANES][2] = x->to_rows ? rows : parts;
  unsigned nfrom = x->to_rows ? x->count : 4, nto = x->to_rows ? 4 : x->count;
  for (unsigned k = 0; k < nfrom; k++) EACH_LANE(i, p->mask) {
      uint32_t v = get(p, i, from[k]);
      memcpy(in[k][i], &v, 4);
    }
  for (unsigned m = 0; m < x->count; m++)
    for (unsigned i = 0; i < 2 * KL_LANES; i++) {
      kl_matrix_half at = kl_matrix_place(x->transposed, m, i / 2, i % 2);
      uint16_t *row = &rows[at.word][at.lane][at.half], *part = &parts[m][i / 2][i % 2];
      *(x->to_rows ? row : part) = *(x->to_rows ? part : row);
    }
  for (unsigned k = 0; k < nto; k++) EACH_LANE(i, p->mask) {
      uint32_t v;
      memcpy(&v, out[k][i], 4);
      set(p, i, to[k], v);
    }
}

static void perform(const kl_party *p) {
  if (p->w->observed) KL_TELL(p->w->block, meet, p);
  kl_run *run = p->op[__builtin_ctz(p->mask)]->run;
  if (run == kl_x_shuffle) shuffle(p);
  if (run == kl_x_vote) vote(p);
  if (run == kl_x_match) match(p);
  if (run == kl_x_redux) redux(p);
  if (run == kl_x_elect) elect(p);
  if (run == kl_x_matrices && ((const kl_matrices *)(uintptr_t)p->op[__builtin_ctz(p->mask)]->imm)->count) matrices(p);
}

// --- who takes part -----------------------------------------------------------------------------------------------

static bool is_same(const kl_sim_op *a, const kl_sim_op *b) {
  return a->run == b->run && a->imm == b->imm && a->flags == b->flags;
}

static void join(kl_party *p, uint32_t mask, const kl_sim_op *o, const kl_frame *f) {
  p->mask |= mask;
  if (mask == KL_ALL_LANES)
    for (unsigned i = 0; i < KL_LANES; i++) p->op[i] = o, p->frame[i] = f;
  else
    EACH_LANE(i, mask) p->op[i] = o, p->frame[i] = f;
}

static const kl_sim_op *op_of(const kl_strand *s) {
  return &s->frame->code->ops[s->pc];
}

static bool waits_with(const kl_strand *s, const kl_sim_op *o, uint32_t members) {
  return s->wait == KL_AT_WARP && s->with_lanes == members && is_same(op_of(s), o);
}

// Those that wait in the same instruction for the same lanes.
static void join_waiting(const kl_warp *w, kl_party *p, const kl_sim_op *o, uint32_t members) {
  for (uint32_t k = 0; k < w->nwaiting; k++)
    if (waits_with(&w->waiting[k], o, members)) join(p, w->waiting[k].mask, op_of(&w->waiting[k]), w->waiting[k].frame);
}

static void wake(kl_warp *w, const kl_sim_op *o, uint32_t members) {
  for (uint32_t k = 0; k < w->nwaiting; k++) {
    kl_strand *s = &w->waiting[k];
    if (!waits_with(s, o, members)) continue;
    s->pc++;
    s->wait = KL_READY;
    kl_stop(w);
  }
}

// Of these lanes those whose member mask is `want`; mostly all of them.
static uint32_t naming(const uint32_t *members, uint32_t want, uint32_t lanes) {
  uint32_t other = 0, same = 0;
  for (unsigned i = 0; i < KL_LANES; i++) other |= members[i] ^ want;
  if (!other) return lanes;
  for (unsigned i = 0; i < KL_LANES; i++) same |= (uint32_t)(members[i] == want) << i;
  return same & lanes;
}

static void meet(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  const uint32_t *members = AT(uint32_t, o->f);
  uint32_t left = x->mask;
  while (left) {
    uint32_t want = members[__builtin_ctz(left)], same = naming(members, want, left);
    left &= ~same;
    kl_party p;
    p.w = w;
    p.mask = 0;
    join(&p, same, o, w->strand.frame);
    if ((want & w->alive) & ~p.mask) join_waiting(w, &p, o, want);
    if ((want & w->alive) & ~p.mask) {
      kl_strand *s = kl_split_off(w, same, kl_op_number(w, o));
      s->wait = KL_AT_WARP;
      s->with_lanes = want;
      continue;
    }
    p.together = p.mask == same;
    perform(&p);
    if (!p.together) wake(w, o, want);
  }
}

void kl_warp_after_exit(kl_warp *w) {
  w->exited = false;
  for (uint32_t k = 0; k < w->nwaiting; k++) {
    kl_strand *s = &w->waiting[k];
    if (s->wait != KL_AT_WARP) continue;
    const kl_sim_op *o = op_of(s);
    uint32_t members = s->with_lanes;
    kl_party p = {.w = w};
    join_waiting(w, &p, o, members);
    if ((members & w->alive) & ~p.mask) continue;
    perform(&p);
    wake(w, o, members);
  }
}

void kl_x_warp_sync(kl_lanes *x, const kl_sim_op *o) {
  meet(x, o);
}
void kl_x_shuffle(kl_lanes *x, const kl_sim_op *o) {
  meet(x, o);
}
void kl_x_vote(kl_lanes *x, const kl_sim_op *o) {
  meet(x, o);
}
void kl_x_match(kl_lanes *x, const kl_sim_op *o) {
  meet(x, o);
}
void kl_x_redux(kl_lanes *x, const kl_sim_op *o) {
  meet(x, o);
}
void kl_x_elect(kl_lanes *x, const kl_sim_op *o) {
  meet(x, o);
}
void kl_x_matrices(kl_lanes *x, const kl_sim_op *o) {
  meet(x, o);
}

void kl_x_activemask(kl_lanes *x, const kl_sim_op *o) {
  uint32_t *d = AT(uint32_t, o->d);
  EACH_LANE(i, x->mask) d[i] = x->mask;
}
