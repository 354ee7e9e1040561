// Barriers, fences and what lanes do together.

#include "sim/decode/decode.h"

static bool is_register_or_constant(const kl_ptx_operand *o) {
  return o->kind == KL_PTX_REG || o->kind == KL_PTX_INT || o->kind == KL_PTX_SPECIAL;
}

// Barrier and thread count; `n` operands at o.
static bool barrier_op(kl_decoder *d, kl_run *run, const kl_ptx_operand *o, uint32_t n, kl_sim_op *out) {
  *out = (kl_sim_op){.run = run, .d = KL_NO_REF, .b = KL_NO_REF, .c = KL_NO_REF};
  if (n < 1 || n > 2 || !is_register_or_constant(&o[0])) {
    kl_d_invalid(d, "expected a barrier and, if not all threads take part, how many do");
    return false;
  }
  out->a = kl_d_source(d, &o[0], 32, false, NULL);
  if (n == 2) out->b = kl_d_source(d, &o[1], 32, false, NULL);
  return !d->status;
}

static void put(kl_decoder *d, const kl_sim_op *from) {
  kl_sim_op *op = kl_d_op(d, from->run);
  uint32_t index = op->index;
  *op = *from;
  op->index = index;
}

void kl_d_barrier(kl_decoder *d) {
  kl_sim_op op;
  if (barrier_op(d, kl_x_barrier, d->i->operands, d->i->noperands, &op)) put(d, &op);
}

void kl_d_arrive(kl_decoder *d) {
  kl_sim_op op;
  if (!kl_d_count(d, 2, 2)) return;
  if (barrier_op(d, kl_x_arrive, d->i->operands, d->i->noperands, &op)) put(d, &op);
}

void kl_d_barrier_red(kl_decoder *d) {
  kl_sim_op op;
  bool count = kl_isa_has(d->i, "popc"), negated = false;
  if (!kl_d_count(d, 3, 4)) return;
  uint32_t n = d->i->noperands;
  if (!barrier_op(d, kl_x_barrier, d->i->operands + 1, n - 2, &op)) return;
  op.c = kl_d_source(d, &d->i->operands[n - 1], 1, false, &negated);
  op.d = kl_d_target(d, &d->i->operands[0], count ? 32 : 1, false, false);
  op.flags = negated ? KL_NOT_C : 0;
  op.imm = count ? KL_REDUCE_COUNT : kl_isa_has(d->i, "and") ? KL_REDUCE_AND : KL_REDUCE_OR;
  if (!d->status) put(d, &op);
}

void kl_d_cluster_arrive(kl_decoder *d) {
  if (kl_d_count(d, 0, 0)) kl_d_op(d, kl_x_cluster_arrive);
}

void kl_d_cluster_wait(kl_decoder *d) {
  if (kl_d_count(d, 0, 0)) kl_d_op(d, kl_x_cluster_wait);
}

void kl_d_fence(kl_decoder *d) {
  if (!kl_isa_has(d->i, "cta")) d->kernel->talks = true;
  bool range = kl_isa_has(d->i, "tensormap::generic") && kl_isa_has(d->i, "acquire");
  if (kl_d_count(d, range ? 2 : 0, range ? 2 : 0)) kl_d_op(d, kl_x_nothing);
}

void kl_d_warp_sync(kl_decoder *d) {
  if (!kl_d_count(d, 1, 1)) return;
  kl_ref mask = kl_d_source(d, &d->i->operands[0], 32, false, NULL);
  kl_sim_op *op = kl_d_op(d, kl_x_warp_sync);
  op->f = mask;
}

// d, or d|p where a second destination may stand.
static void targets(kl_decoder *d, kl_sim_op *op, unsigned bits, unsigned second) {
  const kl_ptx_operand *o = &d->i->operands[0];
  bool pair = o->kind == KL_PTX_PAIR;
  op->d = kl_d_target(d, pair ? &o->items[0] : o, bits, false, false);
  op->e = pair && second ? kl_d_target(d, &o->items[1], second, false, false) : KL_NO_REF;
}

void kl_d_shfl(kl_decoder *d) {
  kl_sim_op op = {.run = kl_x_shuffle};
  if (!kl_d_count(d, 5, 5)) return;
  targets(d, &op, 32, 1);
  op.a = kl_d_source(d, &d->i->operands[1], 32, false, NULL);
  op.b = kl_d_source(d, &d->i->operands[2], 32, false, NULL);
  op.c = kl_d_source(d, &d->i->operands[3], 32, false, NULL);
  op.f = kl_d_source(d, &d->i->operands[4], 32, false, NULL);
  op.imm = kl_isa_has(d->i, "up")     ? KL_SHUFFLE_UP
           : kl_isa_has(d->i, "down") ? KL_SHUFFLE_DOWN
           : kl_isa_has(d->i, "bfly") ? KL_SHUFFLE_BFLY
                                      : KL_SHUFFLE_IDX;
  if (!d->status) put(d, &op);
}

void kl_d_vote(kl_decoder *d) {
  kl_sim_op op = {.run = kl_x_vote, .e = KL_NO_REF};
  bool negated = false, ballot = kl_isa_has(d->i, "ballot");
  if (!kl_d_count(d, 3, 3)) return;
  op.d = kl_d_target(d, &d->i->operands[0], ballot ? 32 : 1, false, false);
  op.c = kl_d_source(d, &d->i->operands[1], 1, false, &negated);
  op.f = kl_d_source(d, &d->i->operands[2], 32, false, NULL);
  op.flags = negated ? KL_NOT_C : 0;
  op.imm = ballot                    ? KL_VOTE_BALLOT
           : kl_isa_has(d->i, "all") ? KL_VOTE_ALL
           : kl_isa_has(d->i, "any") ? KL_VOTE_ANY
                                     : KL_VOTE_UNI;
  if (!d->status) put(d, &op);
}

void kl_d_match(kl_decoder *d) {
  kl_sim_op op = {.run = kl_x_match};
  unsigned bits = kl_isa_type_at(d->i, 0).bits;
  bool all = kl_isa_has(d->i, "all");
  if (!kl_d_count(d, 3, 3)) return;
  targets(d, &op, 32, all ? 1 : 0);
  op.a = kl_d_source(d, &d->i->operands[1], bits, false, NULL);
  op.f = kl_d_source(d, &d->i->operands[2], 32, false, NULL);
  op.imm = (all ? KL_MATCH_ALL : 0) | (bits == 64 ? KL_MATCH_64 : 0);
  if (!d->status) put(d, &op);
}

void kl_d_redux(kl_decoder *d) {
  kl_sim_op op = {.run = kl_x_redux, .e = KL_NO_REF, .flags = d->match.flags};
  char kind = kl_isa_type_at(d->i, 0).kind;
  if (!kl_d_count(d, 3, 3)) return;
  op.d = kl_d_target(d, &d->i->operands[0], 32, false, false);
  op.a = kl_d_source(d, &d->i->operands[1], 32, false, NULL);
  op.f = kl_d_source(d, &d->i->operands[2], 32, false, NULL);
  bool least = kl_isa_has(d->i, "min");
  op.imm = kl_isa_has(d->i, "add")   ? KL_REDUX_ADD
           : kl_isa_has(d->i, "and") ? KL_REDUX_AND
           : kl_isa_has(d->i, "or")  ? KL_REDUX_OR
           : kl_isa_has(d->i, "xor") ? KL_REDUX_XOR
           : kind == 'u'             ? (least ? KL_REDUX_MIN_U : KL_REDUX_MAX_U)
           : kind == 's'             ? (least ? KL_REDUX_MIN_S : KL_REDUX_MAX_S)
                                     : (least ? KL_REDUX_MIN_F : KL_REDUX_MAX_F);
  if (!d->status) put(d, &op);
}

void kl_d_activemask(kl_decoder *d) {
  if (!kl_d_count(d, 1, 1)) return;
  kl_ref to = kl_d_target(d, &d->i->operands[0], 32, false, false);
  kl_sim_op *op = kl_d_op(d, kl_x_activemask);
  op->d = to;
}

void kl_d_elect(kl_decoder *d) {
  kl_sim_op op = {.run = kl_x_elect};
  if (!kl_d_count(d, 2, 2)) return;
  targets(d, &op, 32, 1);
  op.f = kl_d_source(d, &d->i->operands[1], 32, false, NULL);
  if (!d->status) put(d, &op);
}
