// Blocks that wait for those before them: each leaves what its own value is, looks back for what comes before, and
// leaves both joined for who comes behind.
//
// A block's number is the ticket that it takes when it begins. So all of lower numbers have begun, and none waits but
// for lower ones: the lowest that is not done waits for nobody, in whatever order the machine has blocks, and however
// few of them run at once. What is left is released behind it and acquired before it is taken (docs/memory_order.md).

#include "lower/emit/emit.h"

enum { LANES = 32 };
enum { BEGUN, READY, STATES }; // of the counters
enum { NOTHING, OWN, ALL };    // states: what there is of a block
enum { NUMBER_AT, BEFORE_AT }; // of what threads are told

// --- memory ---------------------------------------------------------------------------------------------------------

static kb_reg number(kl_emit *e, int64_t n) {
  return kb_int(&e->k, KB_I32, 1, n);
}

static void store(kl_emit *e, kb_reg p, kb_reg word) {
  LLVMSetAlignment(LLVMBuildStore(e->k.b, word.v, p.v), kb_kind_bits((kb_kind)word.kind) / 8);
}

static kb_reg load(kl_emit *e, kb_reg p, kb_kind kind) {
  LLVMValueRef v = LLVMBuildLoad2(e->k.b, kb_type(&e->k, kind, 1), p.v, "");
  LLVMSetAlignment(v, kb_kind_bits(kind) / 8);
  return (kb_reg){v, (uint8_t)kind, 1};
}

static kb_reg told(kl_emit *e, int64_t at) {
  return kl_element_at(e, e->launch->tickets->told, number(e, at));
}

static kb_reg counter(kl_emit *e, kb_reg at) {
  return kl_element_at(e, e->launch->tickets->counters, at);
}

static kb_reg state_of(kl_emit *e, kb_reg block) {
  return counter(e, kb_addi(&e->k, block, STATES));
}

// which: I1, all up to the block.
static kb_reg value_of(kl_emit *e, kb_reg block, kb_reg all) {
  kb *k = &e->k;
  kb_reg at = kb_add(k, kb_shli(k, block, 1), kb_zext(k, all, KB_I32));
  return kl_element_at(e, e->launch->tickets->values, at);
}

static void leave(kl_emit *e, kb_reg all, kb_reg word) {
  kb *k = &e->k;
  store(e, value_of(e, e->ticket, all), word);
  kb_fence(k);
  kb_store_any(k, state_of(e, e->ticket), kb_addi(k, kb_zext(k, all, KB_I32), OWN));
}

// --- tickets --------------------------------------------------------------------------------------------------------

static uint32_t last_block(const kl_emit *e) {
  return (uint32_t)(e->launch->grid - 1);
}

kb_reg kl_take_ticket(kl_emit *e, kb_reg tid) {
  kb *k = &e->k;
  kl_if first = kl_if_begin(e, kb_icmp(k, LLVMIntEQ, tid, kb_ilike(k, tid, 0)), "begin");
  store(e, told(e, NUMBER_AT), kb_count_up(k, counter(e, number(e, BEGUN)), last_block(e)));
  kl_if_end(e, first);
  kb_sync(k);
  return load(e, told(e, NUMBER_AT), KB_I32);
}

// --- looking back ---------------------------------------------------------------------------------------------------

static kb_reg join(kl_emit *e, const kl_step *s, kb_reg a, kb_reg b) {
  kb *k = &e->k;
  kl_dtype t = s->dtype;
  kl_pair x[2] = {{.re = kl_from_bits(k, t, a)}, {.re = kl_from_bits(k, t, b)}};
  return kl_to_bits(k, t, kl_emit_op(k, &s->op, t, t, t, x).re);
}

static LLVMBasicBlockRef begin_block(kl_emit *e, const char *name) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->k.b), next = kl_block(e, name);
  LLVMMoveBasicBlockAfter(next, here);
  return next;
}

static kb_reg phi(kl_emit *e, kb_reg like) {
  return (kb_reg){LLVMBuildPhi(e->k.b, LLVMTypeOf(like.v), ""), like.kind, 1};
}

static void comes(kb_reg at, kb_reg v, LLVMBasicBlockRef from) {
  LLVMAddIncoming(at.v, &v.v, &from, 1);
}

// The state of a block of which something is there, in all lanes: what was left before it is there behind.
static kb_reg await(kl_emit *e, kb_reg block) {
  kb *k = &e->k;
  kb_reg at = state_of(e, block);
  LLVMBasicBlockRef wait = begin_block(e, "wait");
  LLVMBuildBr(k->b, wait);
  LLVMPositionBuilderAtEnd(k->b, wait);
  kb_reg state = kb_load_any(k, at, KB_I32);
  kb_reg again = kb_any_lane(k, kb_icmp(k, LLVMIntEQ, state, number(e, NOTHING)));
  LLVMBasicBlockRef there = begin_block(e, "there");
  LLVMBuildCondBr(k->b, again.v, wait, there);
  LLVMPositionBuilderAtEnd(k->b, there);
  kb_fence(k);
  return state;
}

// What 32 blocks make, each lane's one, of which those before one that has all up to it are in that. *more: none has.
static kb_reg look(kl_emit *e, const kl_step *s, kb_reg block, kb_reg lane, kb_reg none, kb_reg *more) {
  kb *k = &e->k;
  kb_reg all = kb_icmp(k, LLVMIntEQ, await(e, block), number(e, ALL));
  kb_reg value = load(e, value_of(e, block, all), (kb_kind)none.kind);
  kb_reg have = kb_which_lanes(k, all), nearer = kb_addi(k, kb_shl(k, number(e, 1), lane), -1);
  kb_reg counts = kb_icmp(k, LLVMIntEQ, kb_and(k, have, nearer), number(e, 0));
  value = kb_select(k, counts, value, none);
  for (unsigned d = 1; d < LANES; d *= 2) value = join(e, s, value, kb_lane_xor(k, value, d));
  *more = kb_icmp(k, LLVMIntEQ, have, number(e, 0));
  return value;
}

// By all lanes of a warp: what blocks make that are 1, 2 .. `place` times `stride` before the own. The first block of
// all leaves nothing but all up to it, so lanes that would go beyond take it as well.
static kb_reg look_back(kl_emit *e, const kl_step *s, kb_reg place, kb_reg stride, kb_reg lane, kb_reg none) {
  kb *k = &e->k;
  kb_reg first = kb_addi(k, lane, 1), alone = kb_icmp(k, LLVMIntEQ, place, number(e, 0)), more;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b), round = begin_block(e, "look"), last, done;
  LLVMBasicBlockRef skip = kl_block(e, "");
  LLVMBuildCondBr(k->b, alone.v, skip, round);
  LLVMPositionBuilderAtEnd(k->b, round);
  kb_reg sum = phi(e, none), back = phi(e, first);
  comes(sum, none, before);
  comes(back, first, before);
  kb_reg block = kb_sub(k, e->ticket, kb_mul(k, kb_umin(k, back, place), stride));
  kb_reg next = join(e, s, look(e, s, block, lane, none, &more), sum);
  kb_reg further = kb_addi(k, back, LANES);
  last = LLVMGetInsertBlock(k->b);
  comes(sum, next, last);
  comes(back, further, last);
  done = skip;
  LLVMMoveBasicBlockAfter(done, last);
  LLVMBuildCondBr(k->b, more.v, round, done);
  LLVMPositionBuilderAtEnd(k->b, done);
  kb_reg found = phi(e, none);
  comes(found, none, before);
  comes(found, next, last);
  return found;
}

// --- behind them ----------------------------------------------------------------------------------------------------

// Of the blocks that need no others any more the last makes all states nothing, as they were. By all lanes of a warp.
static void forget(kl_emit *e, kb_reg lane) {
  kb *k = &e->k;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b);
  kl_if one = kl_if_begin(e, e->first_thread, "ready");
  kb_fence(k);
  kb_reg n = kb_count_up(k, counter(e, number(e, READY)), last_block(e));
  kb_fence(k);
  kb_reg is_last = kb_icmp(k, LLVMIntEQ, n, number(e, last_block(e)));
  LLVMBasicBlockRef counted = LLVMGetInsertBlock(k->b);
  kl_if_end(e, one);
  kb_reg last = phi(e, is_last);
  comes(last, kb_int(k, KB_I1, 1, 0), before);
  comes(last, is_last, counted);
  kl_if all = kl_if_begin(e, kb_any_lane(k, last), "forget");
  kl_if some = kl_if_begin(e, kb_icmp(k, LLVMIntULE, lane, number(e, last_block(e))), "some");
  LLVMBasicBlockRef from = LLVMGetInsertBlock(k->b), round = begin_block(e, "states");
  LLVMBuildBr(k->b, round);
  LLVMPositionBuilderAtEnd(k->b, round);
  kb_reg block = phi(e, lane);
  comes(block, lane, from);
  kb_store_any(k, state_of(e, block), number(e, NOTHING));
  kb_reg next = kb_addi(k, block, LANES);
  comes(block, next, round);
  LLVMBasicBlockRef done = begin_block(e, "");
  LLVMBuildCondBr(k->b, kb_icmp(k, LLVMIntULE, next, number(e, last_block(e))).v, round, done);
  LLVMPositionBuilderAtEnd(k->b, done);
  kl_if_end(e, some);
  kl_if_end(e, all);
}

static kb_reg in_32_bits(kl_emit *e, kb_reg x) {
  return x.kind == KB_I64 ? kb_trunc(&e->k, x, KB_I32) : x;
}

kl_val kl_emit_before(kl_emit *e, const kl_step *s) {
  kb *k = &e->k;
  const kl_body *b = e->body;
  kb_reg own = *kl_raw(e, &e->vals[s->operands[0]]), none = *kl_raw(e, &e->vals[s->operands[1]]);
  kb_reg lane = in_32_bits(e, e->tid), place = in_32_bits(e, e->vars[s->var]), word;
  kl_vars faster = 0;
  for (uint32_t v = s->var + 1; v < b->nvars; v++)
    if (b->vars[v].binding == KL_BIND_BLOCK) faster |= (kl_vars)1 << v;
  kl_if warp = kl_if_begin(e, kb_icmp(k, LLVMIntULT, lane, number(e, LANES)), "before");
  kb_reg alone = kb_icmp(k, LLVMIntEQ, place, number(e, 0));
  kl_if one = kl_if_begin(e, e->first_thread, "own");
  leave(e, alone, own);
  kl_if_end(e, one);
  kb_reg found = look_back(e, s, place, number(e, kl_extent(b, faster)), lane, none);
  one = kl_if_begin(e, e->first_thread, "all");
  kl_if others = kl_if_begin(e, kb_not(k, alone), "up");
  leave(e, kb_int(k, KB_I1, 1, 1), join(e, s, found, own));
  kl_if_end(e, others);
  store(e, told(e, BEFORE_AT), found);
  kl_if_end(e, one);
  forget(e, lane);
  kl_if_end(e, warp);
  kb_sync(k);
  word = load(e, told(e, BEFORE_AT), (kb_kind)none.kind);
  return kl_val_of_bits(e, s->dtype, &word);
}
