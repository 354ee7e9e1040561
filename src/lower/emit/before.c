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

// A BEFORE that is emitted: `n` values, of which there are `nparts` parts, each a register of bits.
typedef struct waiting {
  kl_emit *e;
  const kl_node *node;
  const kl_carried *lower, *higher;
  uint32_t n, nparts, levels;
  kb_kind *kind; // by part
  // The place of the block among those that differ in the variable; what numbers of blocks differ by from one place to
  // the next; and the thread's number.
  kb_reg at, stride, lane;
} waiting;

static kb_reg value_of(const waiting *x, kb_reg block, uint32_t level, uint32_t part) {
  kl_emit *e = x->e;
  int64_t before = ((int64_t)part * x->levels + level) * e->launch->grid;
  return kl_element_at(e, e->launch->tickets->values, kb_add(&e->k, block, number(e, before)));
}

// By the first thread, what the node of a level makes that the block is the last of.
static void leave(const waiting *x, uint32_t level, const kb_reg *parts) {
  kl_emit *e = x->e;
  kb *k = &e->k;
  bool wide = kl_before_words(e->body, x->node->nest) == KILN_U64;
  for (uint32_t i = 0; i < x->nparts; i++) {
    bool narrow = wide && parts[i].kind != KB_I64;
    store(e, value_of(x, e->ticket, level, i), narrow ? kb_zext(k, parts[i], KB_I64) : parts[i]);
  }
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

// The parts of values.
static void take_parts(const waiting *x, const uint32_t *values, kb_reg *parts) {
  kl_emit *e = x->e;
  for (uint32_t i = 0; i < x->n; i++) {
    kl_dtype t = e->body->steps[values[i]].dtype;
    kl_emit_shape(e, 0);
    if (kl_is_complex(t)) {
      kl_pair *pair = kl_wide(e, &e->vals[values[i]]);
      *parts++ = kl_to_bits(&e->k, kl_info(t)->part, pair->re);
      *parts++ = kl_to_bits(&e->k, kl_info(t)->part, pair->im);
    } else {
      *parts++ = *kl_raw(e, &e->vals[values[i]]);
    }
  }
}

static void put_parts(const waiting *x, const kl_carried *values, const kb_reg *parts) {
  kl_emit *e = x->e;
  for (uint32_t i = 0; i < x->n; i++) {
    kl_dtype t = e->body->steps[values[i].value].dtype;
    kl_emit_shape(e, 0);
    kl_val v = {.dtype = t};
    if (kl_is_complex(t)) {
      v.wide = KL_NEW(e->arena, kl_pair);
      v.wide->re = kl_from_bits(&e->k, kl_info(t)->part, *parts++);
      v.wide->im = kl_from_bits(&e->k, kl_info(t)->part, *parts++);
    } else {
      v = kl_val_of_bits(e, t, parts++);
    }
    e->vals[values[i].value] = v;
  }
}

static kb_reg *new_parts(const waiting *x) {
  return KL_NEW_N(x->e->arena, kb_reg, x->nparts + 1);
}

// What the two make.
static kb_reg *join(const waiting *x, const kb_reg *lower, const kb_reg *higher) {
  kl_emit *e = x->e;
  kb_reg *made = new_parts(x);
  uint32_t *next = KL_NEW_N(e->arena, uint32_t, x->n + 1);
  for (uint32_t i = 0; i < x->n; i++) next[i] = x->lower[i].next;
  kl_scope scope = kl_enter(e);
  put_parts(x, x->lower, lower);
  put_parts(x, x->higher, higher);
  kl_emit_seq(e, &x->node->nest->inside);
  take_parts(x, next, made);
  kl_leave(e, scope, NULL);
  return made;
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

static kb_reg *phis(const waiting *x, const kb_reg *a, LLVMBasicBlockRef from_a, const kb_reg *b,
                    LLVMBasicBlockRef from_b) {
  kb_reg *r = new_parts(x);
  for (uint32_t i = 0; i < x->nparts; i++) {
    r[i] = phi(x->e, a[i]);
    comes(r[i], a[i], from_a);
    if (b) comes(r[i], b[i], from_b);
  }
  return r;
}

static kb_reg digit_of(const waiting *x, uint32_t level) {
  kb *k = &x->e->k;
  return kb_andi(k, kb_lshri(k, x->at, DIGIT * level), BASE - 1);
}

static kb_reg *of_lane(const waiting *x, const kb_reg *parts, kb_reg lane) {
  kb_reg *r = new_parts(x);
  for (uint32_t i = 0; i < x->nparts; i++) r[i] = kb_of_lane(&x->e->k, parts[i], lane);
  return r;
}

// What the first `n` lanes, one at least, have, from left to right; all lanes have the same n.
static kb_reg *join_lanes(const waiting *x, const kb_reg *parts, kb_reg n) {
  kl_emit *e = x->e;
  kb *k = &e->k;
  kb_reg *one = of_lane(x, parts, number(e, 0));
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b), head = begin_block(e, "nodes");
  LLVMBuildBr(k->b, head);
  LLVMPositionBuilderAtEnd(k->b, head);
  kb_reg lane = phi(e, n), *sum = phis(x, one, before, NULL, NULL);
  comes(lane, number(e, 1), before);
  LLVMBasicBlockRef round = begin_block(e, "node");
  LLVMValueRef branch = LLVMBuildICmp(k->b, LLVMIntULT, lane.v, n.v, "");
  LLVMPositionBuilderAtEnd(k->b, round);
  kb_reg *more = join(x, sum, of_lane(x, parts, lane)), next = kb_addi(k, lane, 1);
  LLVMBasicBlockRef last = LLVMGetInsertBlock(k->b);
  comes(lane, next, last);
  for (uint32_t i = 0; i < x->nparts; i++) comes(sum[i], more[i], last);
  LLVMBuildBr(k->b, head);
  LLVMBasicBlockRef done = begin_block(e, "");
  LLVMPositionBuilderAtEnd(k->b, head);
  LLVMBuildCondBr(k->b, branch, round, done);
  LLVMPositionBuilderAtEnd(k->b, done);
  return sum;
}

// By all lanes of a warp, each a node of the level, of the `digit` ones, one at least, that come before the own in one
// of the next: what they make. Lanes beyond have the last of them.
static kb_reg *look(const waiting *x, uint32_t level, kb_reg digit) {
  kl_emit *e = x->e;
  kb *k = &e->k;
  kb_reg node = kb_umin(k, x->lane, kb_addi(k, digit, -1)), own = kb_lshri(k, x->at, DIGIT * level);
  node = kb_add(k, kb_sub(k, own, digit), node);
  kb_reg last = kb_addi(k, kb_shli(k, kb_addi(k, node, 1), DIGIT * level), -1); // of its places
  kb_reg block = kb_sub(k, e->ticket, kb_mul(k, kb_sub(k, x->at, last), x->stride)), *parts = new_parts(x);
  await(e, block, level);
  for (uint32_t i = 0; i < x->nparts; i++) parts[i] = load(e, value_of(x, block, level, i), x->kind[i]);
  return join_lanes(x, parts, digit);
}

// What comes before: level by level, as what a level makes is what the next one is made of.
static kb_reg *look_back(const waiting *x, kb_reg *own, kb_reg *first) {
  kl_emit *e = x->e;
  kb *k = &e->k;
  kb_reg **before = KL_NEW_N(e->arena, kb_reg *, x->levels), *some = KL_NEW_N(e->arena, kb_reg, x->levels);
  kb_reg leaves = e->first_thread; // of the last block of a node of the level?
  for (uint32_t level = 0; level < x->levels; level++) {
    kb_reg digit = digit_of(x, level);
    kl_if one = kl_if_begin(e, leaves, "leave");
    leave(x, level, own);
    kl_if_end(e, one);
    some[level] = kb_icmp(k, LLVMIntNE, digit, number(e, 0));
    LLVMBasicBlockRef from = LLVMGetInsertBlock(k->b);
    kl_if any = kl_if_begin(e, some[level], "look");
    kb_reg *sum = look(x, level, digit), *both = level + 1 < x->levels ? join(x, sum, own) : own;
    LLVMBasicBlockRef looked = LLVMGetInsertBlock(k->b);
    kl_if_end(e, any);
    before[level] = phis(x, own, from, sum, looked); // of what there is not nobody takes it
    own = phis(x, own, from, both, looked);
    leaves = kb_and(k, leaves, kb_icmp(k, LLVMIntEQ, digit, number(e, BASE - 1)));
  }
  for (uint32_t level = x->levels; level-- > 0;) {
    LLVMBasicBlockRef from = LLVMGetInsertBlock(k->b);
    kl_if any = kl_if_begin(e, some[level], "join");
    kb_reg *both = join(x, first, before[level]);
    LLVMBasicBlockRef joined = LLVMGetInsertBlock(k->b);
    kl_if_end(e, any);
    first = phis(x, first, from, both, joined);
  }
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

static void set_place(waiting *x) {
  kl_emit *e = x->e;
  const kl_body *b = e->body;
  kl_vars faster = 0;
  for (uint32_t v = x->node->index + 1; v < b->nvars; v++)
    if (b->vars[v].binding == KL_BIND_BLOCK) faster |= (kl_vars)1 << v;
  x->at = in_32_bits(e, e->vars[x->node->index]);
  x->stride = number(e, kl_extent(b, faster));
  x->lane = in_32_bits(e, e->tid);
}

void kl_emit_before(kl_emit *e, const kl_node *node) {
  kb *k = &e->k;
  const kl_nest *nest = node->nest;
  waiting x = {.e = e, .node = node, .lower = nest->carried, .n = nest->ncarried / 2};
  x.higher = x.lower + x.n;
  x.nparts = kl_before_parts(e->body, nest);
  x.levels = kl_levels_before(e->body->vars[node->index].extent);
  x.kind = KL_NEW_N(e->arena, kb_kind, x.nparts + 1);
  uint32_t *given = KL_NEW_N(e->arena, uint32_t, 2 * x.n + 1);
  for (uint32_t i = 0; i < 2 * x.n; i++) given[i] = nest->carried[i].first;
  kb_reg *first = new_parts(&x), *own = new_parts(&x), *found = new_parts(&x);
  take_parts(&x, given, first);
  take_parts(&x, given + x.n, own);
  for (uint32_t i = 0; i < x.nparts; i++) x.kind[i] = (kb_kind)own[i].kind;
  set_place(&x);
  kl_if warp = kl_if_begin(e, kb_icmp(k, LLVMIntULT, x.lane, number(e, LANES)), "before");
  kb_reg *before = look_back(&x, own, first);
  kl_if one = kl_if_begin(e, e->first_thread, "tell");
  for (uint32_t i = 0; i < x.nparts; i++) store(e, told(e, BEFORE_AT + i), before[i]);
  kl_if_end(e, one);
  forget(e, x.lane);
  kl_if_end(e, warp);
  kb_sync(k);
  for (uint32_t i = 0; i < x.nparts; i++) found[i] = load(e, told(e, BEFORE_AT + i), x.kind[i]);
  put_parts(&x, x.lower, found);
}
