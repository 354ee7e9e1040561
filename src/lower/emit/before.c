// Blocks that wait for those before them: each leaves what it makes, and where it is the last of a node what that
// makes, and looks back at the nodes before its own, level by level.
//
// A block's number is the ticket that it takes when it begins. So all of lower numbers have begun, and none waits but
// for lower ones: the lowest that is not done waits for nobody, in whatever order the machine has blocks, and however
// few of them run at once. What a node makes needs nothing of nodes before it, so that no block waits for a chain of
// others. What is left is released behind it and acquired before it is taken (docs/memory_order.md).

#include "lower/emit/emit.h"

enum { LANES = 32, BASE = KL_BEFORE_BASE, DIGIT = 4 };
enum { BEGUN, READY, STATES }; // of the counters
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

static kb_reg value_of(kl_emit *e, kb_reg block, uint32_t level) {
  kb_reg first = number(e, (int64_t)level * e->launch->grid);
  return kl_element_at(e, e->launch->tickets->values, kb_add(&e->k, block, first));
}

// By the first thread, what the node of a level makes that the block is the last of.
static void leave(kl_emit *e, uint32_t level, kb_reg word) {
  kb *k = &e->k;
  store(e, value_of(e, e->ticket, level), word);
  kb_fence(k);
  kb_store_any(k, state_of(e, e->ticket), number(e, level + 1));
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

// Waits for the state of a block, in all lanes, to be beyond the level: what was left before is there.
static void await(kl_emit *e, kb_reg block, uint32_t level) {
  kb *k = &e->k;
  kb_reg at = state_of(e, block);
  LLVMBasicBlockRef wait = begin_block(e, "wait");
  LLVMBuildBr(k->b, wait);
  LLVMPositionBuilderAtEnd(k->b, wait);
  kb_reg state = kb_load_any(k, at, KB_I32);
  kb_reg again = kb_any_lane(k, kb_icmp(k, LLVMIntULE, state, number(e, level)));
  LLVMBasicBlockRef there = begin_block(e, "there");
  LLVMBuildCondBr(k->b, again.v, wait, there);
  LLVMPositionBuilderAtEnd(k->b, there);
  kb_fence(k);
}

// The place of a block among those that differ in the variable.
typedef struct place {
  kb_reg at, stride; // and what numbers of blocks differ by from one place to the next
  kb_reg lane;
} place;

static kb_reg digit_of(kl_emit *e, const place *x, uint32_t level) {
  return kb_andi(&e->k, kb_lshri(&e->k, x->at, DIGIT * level), BASE - 1);
}

// By all lanes of a warp, each a node of the level, of the `digit` ones, one at least, that come before the own in one
// of the next: what they make. Lanes beyond have the last of them.
static kb_reg look(kl_emit *e, const kl_step *s, const place *x, uint32_t level, kb_reg digit, kb_kind kind) {
  kb *k = &e->k;
  kb_reg node = kb_umin(k, x->lane, kb_addi(k, digit, -1)), own = kb_lshri(k, x->at, DIGIT * level);
  node = kb_add(k, kb_sub(k, own, digit), node);
  kb_reg last = kb_addi(k, kb_shli(k, kb_addi(k, node, 1), DIGIT * level), -1); // of its places
  kb_reg block = kb_sub(k, e->ticket, kb_mul(k, kb_sub(k, x->at, last), x->stride));
  await(e, block, level);
  kb_reg value = load(e, value_of(e, block, level), kind), sum = kb_of_lane(k, value, 0);
  for (unsigned i = 1; i + 1 < BASE; i++) {
    kb_reg more = join(e, s, sum, kb_of_lane(k, value, i));
    sum = kb_select(k, kb_icmp(k, LLVMIntUGT, digit, number(e, i)), more, sum);
  }
  return sum;
}

// What comes before: level by level, as what a level makes is what the next one is made of.
static kb_reg look_back(kl_emit *e, const kl_step *s, const place *x, uint32_t levels, kb_reg own, kb_reg first) {
  kb *k = &e->k;
  kb_reg *before = KL_NEW_N(e->arena, kb_reg, levels), *some = KL_NEW_N(e->arena, kb_reg, levels);
  kb_reg leaves = e->first_thread; // of the last block of a node of the level?
  for (uint32_t level = 0; level < levels; level++) {
    kb_reg digit = digit_of(e, x, level);
    kl_if one = kl_if_begin(e, leaves, "leave");
    leave(e, level, own);
    kl_if_end(e, one);
    some[level] = kb_icmp(k, LLVMIntNE, digit, number(e, 0));
    LLVMBasicBlockRef from = LLVMGetInsertBlock(k->b);
    kl_if any = kl_if_begin(e, some[level], "look");
    kb_reg sum = look(e, s, x, level, digit, (kb_kind)own.kind);
    LLVMBasicBlockRef looked = LLVMGetInsertBlock(k->b);
    kl_if_end(e, any);
    before[level] = phi(e, own);
    comes(before[level], own, from); // nobody takes it
    comes(before[level], sum, looked);
    own = join(e, s, before[level], own);
    leaves = kb_and(k, leaves, kb_icmp(k, LLVMIntEQ, digit, number(e, BASE - 1)));
  }
  for (uint32_t level = levels; level-- > 0;)
    first = kb_select(k, some[level], join(e, s, first, before[level]), first);
  return first;
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
  kb_store_any(k, state_of(e, block), number(e, 0));
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
  kb_reg own = *kl_raw(e, &e->vals[s->operands[0]]), first = *kl_raw(e, &e->vals[s->operands[1]]), word;
  kl_vars faster = 0;
  for (uint32_t v = s->var + 1; v < b->nvars; v++)
    if (b->vars[v].binding == KL_BIND_BLOCK) faster |= (kl_vars)1 << v;
  place x = {in_32_bits(e, e->vars[s->var]), number(e, kl_extent(b, faster)), in_32_bits(e, e->tid)};
  kl_if warp = kl_if_begin(e, kb_icmp(k, LLVMIntULT, x.lane, number(e, LANES)), "before");
  kb_reg found = look_back(e, s, &x, kl_levels_before(b->vars[s->var].extent), own, first);
  kl_if one = kl_if_begin(e, e->first_thread, "tell");
  store(e, told(e, BEFORE_AT), found);
  kl_if_end(e, one);
  forget(e, x.lane);
  kl_if_end(e, warp);
  kb_sync(k);
  word = load(e, told(e, BEFORE_AT), (kb_kind)first.kind);
  return kl_val_of_bits(e, s->dtype, &word);
}
