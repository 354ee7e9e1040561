// What lanes do together: shuffles, votes, matches, reductions, parts of matrices, and those of barriers.

#include "sim/check/values/values.h"

#define EACH_LANE(i, mask)                                                                                             \
  for (uint32_t left_##i = (mask), i; left_##i && (i = (uint32_t)__builtin_ctz(left_##i), 1); left_##i &= left_##i - 1)

static uint32_t value(const kl_party *p, unsigned lane, kl_ref ref) {
  const char *at = (ref & 3) == KL_IN_REGISTERS   ? p->frame[lane]->regs
                   : (ref & 3) == KL_IN_CONSTANTS ? p->frame[lane]->code->constants
                                                  : p->w->x.base[ref & 3];
  uint32_t v;
  memcpy(&v, at + (ref & ~(kl_ref)3) + 4 * lane, 4);
  return v;
}

static uint64_t value64(const kl_party *p, unsigned lane, kl_ref ref) {
  const char *at = (ref & 3) == KL_IN_REGISTERS   ? p->frame[lane]->regs
                   : (ref & 3) == KL_IN_CONSTANTS ? p->frame[lane]->code->constants
                                                  : p->w->x.base[ref & 3];
  uint64_t v;
  memcpy(&v, at + (ref & ~(kl_ref)3) + 8 * lane, 8);
  return v;
}

static bool predicate(const kl_frame *f, const kl_warp *w, const kl_sim_op *o, unsigned lane) {
  const char *at = (o->c & 3) == KL_IN_REGISTERS   ? f->regs
                   : (o->c & 3) == KL_IN_CONSTANTS ? f->code->constants
                                                   : w->x.base[o->c & 3];
  uint32_t word;
  memcpy(&word, at + (o->c & ~(kl_ref)3), 4);
  return ((word >> lane & 1) != 0) != ((o->flags & KL_NOT_C) != 0);
}

static uint64_t unknown(const kl_party *p, unsigned lane, kl_ref ref, unsigned bytes) {
  return values_unknown(p->frame[lane], ref, bytes, lane);
}

static uint32_t origin(values *v, const kl_party *p, unsigned lane, kl_ref ref) {
  return values_origin(v, p->frame[lane], p->op[lane], ref, lane);
}

static void set(values *v, const kl_party *p, unsigned lane, kl_ref ref, unsigned bytes, uint64_t u, uint32_t from) {
  values_set(p->frame[lane], ref, bytes, lane, u);
  if (u && in_registers(ref)) values_set_origin(v, p->frame[lane], ref, lane, from);
}

static bool is_clean(const kl_frame *f, kl_ref ref) {
  return !in_registers(ref) || !*flag_of(f, ref);
}

// Lanes of one strand, all of the warp, whose operands have their values: what most are.
static bool shuffle_clean(const kl_party *p) {
  if (!p->together || p->mask != KL_ALL_LANES) return false;
  const kl_frame *f = p->frame[0];
  const kl_sim_op *o = p->op[0];
  if (!is_clean(f, o->a) || !is_clean(f, o->b) || !is_clean(f, o->c)) return false;
  if (!is_clean(f, o->d)) memset(shadow_of(f, o->d), 0, 4 * KL_LANES), *flag_of(f, o->d) = 0;
  if (!is_clean(f, o->e)) memset(shadow_of(f, o->e), 0, 4), *flag_of(f, o->e) = 0;
  return true;
}

// A lane that takes no part gives what nobody knows.
static void shuffle(values *v, const kl_party *p) {
  if (shuffle_clean(p)) return;
  uint64_t given[KL_LANES], how[KL_LANES];
  uint32_t from_a[KL_LANES] = {0}, from_how[KL_LANES] = {0};
  EACH_LANE(i, p->mask) {
    const kl_sim_op *o = p->op[i];
    uint64_t b = unknown(p, i, o->b, 4) & 31;
    given[i] = unknown(p, i, o->a, 4);
    how[i] = b | (unknown(p, i, o->c, 4) & 0x1f1f);
    if (given[i]) from_a[i] = origin(v, p, i, o->a);
    if (how[i]) from_how[i] = origin(v, p, i, b ? o->b : o->c);
  }
  EACH_LANE(i, p->mask) {
    const kl_sim_op *o = p->op[i];
    bool inside;
    unsigned from = kl_source_lane((kl_shuffle)o->imm, i, value(p, i, o->b), value(p, i, o->c), &inside);
    bool absent = !(p->mask >> from & 1);
    uint32_t cause = how[i] ? from_how[i] : absent ? values_lane_origin(v, p->frame[i], o) : from_a[from];
    set(v, p, i, o->d, 4, how[i] || absent ? 0xffffffff : given[from], cause);
    set(v, p, i, o->e, 0, how[i] != 0, cause);
  }
}

// Predicates by lane: those nobody knows, and of the others those that hold and those that do not.
typedef struct votes {
  uint32_t unknown, yes, no;
  uint32_t from; // origin of the first of the unknown ones
} votes;

static bool is_undecided(const votes *v, bool all, bool any) {
  if (!v->unknown) return false;
  if (all) return v->no == 0;
  if (any) return v->yes == 0;
  return v->yes == 0 || v->no == 0; // alike
}

static void vote(values *values, const kl_party *p) {
  votes v = {0};
  EACH_LANE(i, p->mask) {
    bool u = unknown(p, i, p->op[i]->c, 0) != 0, yes = predicate(p->frame[i], p->w, p->op[i], i);
    if (u && !v.unknown) v.from = origin(values, p, i, p->op[i]->c);
    v.unknown |= (uint32_t)u << i, v.yes |= (uint32_t)(!u && yes) << i, v.no |= (uint32_t)(!u && !yes) << i;
  }
  EACH_LANE(i, p->mask) {
    const kl_sim_op *o = p->op[i];
    if (o->imm == KL_VOTE_BALLOT)
      set(values, p, i, o->d, 4, v.unknown, v.from);
    else
      set(values, p, i, o->d, 0, is_undecided(&v, o->imm == KL_VOTE_ALL, o->imm == KL_VOTE_ANY), v.from);
  }
}

// Two lanes differ for sure where a bit does that both have.
static void match(values *values, const kl_party *p) {
  uint64_t u[KL_LANES], v[KL_LANES];
  bool differ = false, open = false;
  uint32_t doubtful[KL_LANES] = {0}, from = 0;
  EACH_LANE(i, p->mask) {
    bool wide = p->op[i]->imm & KL_MATCH_64;
    u[i] = unknown(p, i, p->op[i]->a, wide ? 8 : 4);
    if (u[i] && !from) from = origin(values, p, i, p->op[i]->a);
    v[i] = wide ? value64(p, i, p->op[i]->a) : value(p, i, p->op[i]->a);
  }
  EACH_LANE(i, p->mask) EACH_LANE(k, p->mask) {
    bool apart = ((v[i] ^ v[k]) & ~(u[i] | u[k])) != 0, doubt = !apart && i != k && (u[i] | u[k]);
    differ |= apart;
    open |= doubt;
    doubtful[i] |= (uint32_t)doubt << k;
  }
  EACH_LANE(i, p->mask) {
    const kl_sim_op *o = p->op[i];
    bool all = o->imm & KL_MATCH_ALL;
    set(values, p, i, o->d, 4, !all ? doubtful[i] : open && !differ ? p->mask : 0, from);
    if (all) set(values, p, i, o->e, 0, open && !differ, from);
  }
}

static void redux(values *values, const kl_party *p) {
  uint32_t u = 0, zeros = 0, set_bits = 0, from = 0;
  kl_redux kind = (kl_redux)p->op[__builtin_ctz(p->mask)]->imm;
  EACH_LANE(i, p->mask) {
    uint32_t own = (uint32_t)unknown(p, i, p->op[i]->a, 4), v = value(p, i, p->op[i]->a);
    if (own && !from) from = origin(values, p, i, p->op[i]->a);
    u |= own, zeros |= ~v & ~own, set_bits |= v & ~own;
  }
  switch (kind) {
  case KL_REDUX_AND: u &= ~zeros; break;
  case KL_REDUX_OR: u &= ~set_bits; break;
  case KL_REDUX_XOR: break;
  case KL_REDUX_ADD: u |= 0 - u; break;
  default: u = u ? 0xffffffff : 0; break;
  }
  EACH_LANE(i, p->mask) set(values, p, i, p->op[i]->d, 4, u, from);
}

static void matrices(values *v, const kl_party *p) {
  const kl_matrices *x = (const kl_matrices *)(uintptr_t)p->op[__builtin_ctz(p->mask)]->imm;
  const kl_ref *from = x->to_rows ? x->parts : x->rows, *to = x->to_rows ? x->rows : x->parts;
  uint32_t in[4][KL_LANES], in_from[4][KL_LANES] = {0}, out[4][KL_LANES] = {0}, out_from[4][KL_LANES] = {0};
  unsigned nfrom = x->to_rows ? x->count : 4, nto = x->to_rows ? 4 : x->count;
  memset(in, 0xff, sizeof in); // a lane that takes no part gives what nobody knows
  for (unsigned k = 0; k < nfrom; k++) EACH_LANE(i, p->mask) {
      in[k][i] = (uint32_t)unknown(p, i, from[k], 4);
      if (in[k][i]) in_from[k][i] = origin(v, p, i, from[k]);
    }
  for (unsigned m = 0; m < x->count; m++)
    for (unsigned n = 0; n < 2 * KL_LANES; n++) {
      unsigned lane = n / 2, half = n % 2;
      kl_matrix_half at = kl_matrix_place(x->transposed, m, lane, half);
      unsigned a = x->to_rows ? m : at.word, i = x->to_rows ? lane : at.lane, h = x->to_rows ? half : at.half;
      unsigned b = x->to_rows ? at.word : m, k = x->to_rows ? at.lane : lane, g = x->to_rows ? at.half : half;
      uint32_t bits = in[a][i] >> 16 * h & 0xffff;
      out[b][k] |= bits << 16 * g;
      if (bits) out_from[b][k] = in_from[a][i];
    }
  for (unsigned k = 0; k < nto; k++) EACH_LANE(i, p->mask)
  set(v, p, i, to[k], 4, out[k][i], out_from[k][i]);
}

void values_meet(kl_observer *self, const kl_party *p) {
  kl_run *run = p->op[__builtin_ctz(p->mask)]->run;
  values *v = values_of(self);
  if (!p->w->block->shadow) return;
  if (run == kl_x_shuffle) shuffle(v, p);
  if (run == kl_x_vote) vote(v, p);
  if (run == kl_x_match) match(v, p);
  if (run == kl_x_redux) redux(v, p);
  if (run == kl_x_matrices) matrices(v, p);
  if (run == kl_x_elect) EACH_LANE(i, p->mask) {
      set(v, p, i, p->op[i]->d, 4, 0, 0);
      set(v, p, i, p->op[i]->e, 0, 0, 0);
    }
}

// --- reductions of barriers -----------------------------------------------------------------------------------------

static bool waits_at(const kl_strand *s, unsigned barrier) {
  return s->wait == KL_AT_BARRIER && s->barrier == barrier;
}

static const kl_sim_op *op_of(const kl_strand *s) {
  return &s->frame->code->ops[s->pc];
}

static void count(values *values, const kl_warp *w, const kl_strand *s, votes *v) {
  const kl_sim_op *o = op_of(s);
  if (o->c == KL_NO_REF || o->imm == KL_REDUCE_NONE) return;
  EACH_LANE(i, s->mask) {
    bool u = values_unknown(s->frame, o->c, 0, i) != 0, yes = predicate(s->frame, w, o, i);
    if (u && !v->unknown) v->from = values_origin(values, s->frame, o, o->c, i);
    v->unknown |= u, v->yes |= !u && yes, v->no |= !u && !yes;
  }
}

static void give(values *values, const kl_strand *s, const votes *v) {
  const kl_sim_op *o = op_of(s);
  if (o->d == KL_NO_REF) return;
  EACH_LANE(i, s->mask) {
    if (o->imm == KL_REDUCE_COUNT)
      values_set(s->frame, o->d, 4, i, v->unknown ? 0xffffffff : 0);
    else
      values_set(s->frame, o->d, 0, i, is_undecided(v, o->imm == KL_REDUCE_AND, true));
    if (v->unknown && in_registers(o->d)) values_set_origin(values, s->frame, o->d, i, v->from);
  }
}

void values_open(kl_observer *self, kl_block *b, unsigned barrier) {
  votes v = {0};
  values *own = values_of(self);
  if (!b->shadow) return;
  for (uint32_t k = 0; k < b->nwarps; k++)
    for (uint32_t n = 0; n < b->warps[k].nwaiting; n++)
      if (waits_at(&b->warps[k].waiting[n], barrier)) count(own, &b->warps[k], &b->warps[k].waiting[n], &v);
  for (uint32_t k = 0; k < b->nwarps; k++)
    for (uint32_t n = 0; n < b->warps[k].nwaiting; n++)
      if (waits_at(&b->warps[k].waiting[n], barrier)) give(own, &b->warps[k].waiting[n], &v);
}
