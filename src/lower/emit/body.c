// Bodies: the tree of nodes, control flow.
//
// What is made of a value in a branch or a loop, such as another form of it, is not there behind it.

#include "lower/emit/emit.h"

// --- control flow ---------------------------------------------------------------------------------------------------

LLVMBasicBlockRef kl_block(kl_emit *e, const char *name) {
  return LLVMAppendBasicBlockInContext(e->k.llcx, e->k.fn, name);
}

kl_if kl_if_begin(kl_emit *e, kb_reg c, const char *name) {
  LLVMBasicBlockRef then = kl_block(e, name), after = kl_block(e, "");
  LLVMBuildCondBr(e->k.b, c.v, then, after);
  LLVMPositionBuilderAtEnd(e->k.b, then);
  return (kl_if){after};
}

void kl_if_end(kl_emit *e, kl_if i) {
  LLVMBuildBr(e->k.b, i.after);
  LLVMMoveBasicBlockAfter(i.after, LLVMGetInsertBlock(e->k.b));
  LLVMPositionBuilderAtEnd(e->k.b, i.after);
}

// --- scopes ---------------------------------------------------------------------------------------------------------

kl_scope kl_enter(kl_emit *e) {
  const kl_body *b = e->body;
  kl_scope s = {e->vals, e->guards};
  e->vals = kl_arena_dup(e->arena, s.vals, (b->nsteps + 1) * sizeof *s.vals);
  e->guards = KL_NEW_N(e->arena, kl_conditions, b->nguards + 1);
  return s;
}

static void keep_made(kl_emit *e, const kl_seq *made, kl_val *into) {
  for (uint32_t i = 0; i < made->n; i++) {
    const kl_node *n = &made->nodes[i];
    if (n->kind == KL_NODE_STEP) into[n->index] = e->vals[n->index];
    if (n->kind == KL_NODE_LOOP) keep_made(e, &n->nest->inside, into);
    for (uint32_t k = 0; n->kind == KL_NODE_WHILE && k < n->nest->ncarried; k++)
      into[n->nest->carried[k].value] = e->vals[n->nest->carried[k].value];
  }
}

// What was made in a loop stays, as the last round left it.
void kl_leave(kl_emit *e, kl_scope s, const kl_seq *made) {
  if (made) keep_made(e, made, s.vals);
  e->vals = s.vals;
  e->guards = s.guards;
}

// --- loops ----------------------------------------------------------------------------------------------------------

// The registers that a carried value is held in: packed where there is such a form and all have the same rounds, else
// wide.
typedef struct held {
  kl_val val; // in the loop
  kb_reg *reg;
  unsigned n;
} held;

// v's registers in that form, for copies of the carried value.
static kb_reg *registers(kl_emit *e, const kl_step *s, bool pairs, uint32_t value, unsigned *n) {
  kl_emit_shape(e, s->regs);
  kl_val *v = kl_numbered(e, &e->vals[value], e->body->steps[value].regs, KL_NONE, s->regs, KL_NONE);
  if (pairs && kl_has_packed(e, s->dtype)) {
    *n = e->lanes / 2;
    return kl_packed(e, v);
  }
  unsigned parts = kl_is_complex(s->dtype) ? 2 : 1;
  kl_pair *wide = kl_wide(e, v);
  kb_reg *r = KL_NEW_N(e->arena, kb_reg, parts * e->nwide);
  *n = parts * e->nwide;
  for (unsigned i = 0; i < *n; i++) r[i] = i % parts ? wide[i / parts].im : wide[i / parts].re;
  return r;
}

static kl_val of_registers(kl_emit *e, const kl_step *s, bool pairs, kb_reg *r) {
  kl_val v = {.dtype = s->dtype};
  if (pairs && kl_has_packed(e, s->dtype)) {
    v.packed = r;
    return v;
  }
  unsigned parts = kl_is_complex(s->dtype) ? 2 : 1;
  v.wide = KL_NEW_N(e->arena, kl_pair, e->nwide);
  for (unsigned i = 0; i < e->nwide; i++) {
    v.wide[i].re = r[parts * i];
    if (parts == 2) v.wide[i].im = r[parts * i + 1];
  }
  return v;
}

static LLVMValueRef new_phi(kl_emit *e, kb_reg like) {
  return LLVMBuildPhi(e->k.b, LLVMTypeOf(like.v), "");
}

static void add_incoming(LLVMValueRef phi, LLVMValueRef v, LLVMBasicBlockRef from) {
  LLVMAddIncoming(phi, &v, &from, 1);
}

// What is carried at first: its registers, before the loop.
static held *hold(kl_emit *e, const kl_nest *nest, bool pairs) {
  held *carried = KL_NEW_N(e->arena, held, nest->ncarried + 1);
  for (uint32_t i = 0; i < nest->ncarried; i++)
    carried[i].reg =
        registers(e, &e->body->steps[nest->carried[i].value], pairs, nest->carried[i].first, &carried[i].n);
  return carried;
}

// The block that begins a round, and there what is carried, to be told what it is in the next one.
static LLVMBasicBlockRef begin_round(kl_emit *e, const kl_nest *nest, held *carried) {
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->k.b), round = kl_block(e, "loop");
  LLVMMoveBasicBlockAfter(round, before);
  LLVMBuildBr(e->k.b, round);
  LLVMPositionBuilderAtEnd(e->k.b, round);
  for (uint32_t i = 0; i < nest->ncarried; i++) {
    kb_reg *inside = KL_NEW_N(e->arena, kb_reg, carried[i].n);
    for (unsigned r = 0; r < carried[i].n; r++) {
      inside[r] = carried[i].reg[r];
      inside[r].v = new_phi(e, inside[r]);
      add_incoming(inside[r].v, carried[i].reg[r].v, before);
    }
    carried[i].reg = inside;
  }
  return before;
}

static void set_carried(kl_emit *e, const kl_nest *nest, bool pairs, const held *carried) {
  for (uint32_t i = 0; i < nest->ncarried; i++) {
    const kl_step *step = &e->body->steps[nest->carried[i].value];
    kl_emit_shape(e, step->regs);
    e->vals[nest->carried[i].value] = of_registers(e, step, pairs, carried[i].reg);
  }
}

// Every loop has a round: the condition stands behind it.
static void emit_loop(kl_emit *e, const kl_node *node) {
  kb *k = &e->k;
  const kl_body *b = e->body;
  const kl_nest *nest = node->nest;
  held *carried = hold(e, nest, true);
  LLVMBasicBlockRef before = begin_round(e, nest, carried), round = LLVMGetInsertBlock(k->b), after;
  kb_reg first = kb_int(k, e->index, 1, 0), number = {new_phi(e, first), first.kind, 1};
  add_incoming(number.v, first.v, before);
  kl_scope s = kl_enter(e);
  set_carried(e, nest, true, carried);
  e->vars[node->index] = number;
  kl_emit_seq(e, &nest->inside);
  kb_reg **next = KL_NEW_N(e->arena, kb_reg *, nest->ncarried + 1);
  for (uint32_t i = 0; i < nest->ncarried; i++)
    next[i] = registers(e, &b->steps[nest->carried[i].value], true, nest->carried[i].next, &carried[i].n);
  kb_reg up = kb_addi(k, number, 1);
  kb_reg again = kb_icmp(k, LLVMIntNE, up, kb_ilike(k, up, b->vars[node->index].extent));
  LLVMBasicBlockRef last = LLVMGetInsertBlock(k->b);
  after = kl_block(e, "");
  LLVMMoveBasicBlockAfter(after, last);
  LLVMBuildCondBr(k->b, again.v, round, after);
  add_incoming(number.v, up.v, last);
  for (uint32_t i = 0; i < nest->ncarried; i++)
    for (unsigned r = 0; r < carried[i].n; r++) add_incoming(carried[i].reg[r].v, next[i][r].v, last);
  LLVMPositionBuilderAtEnd(k->b, after);
  kl_leave(e, s, &nest->inside);
}

// Is one of these true, of any copy or lane?
static kb_reg any_of(kl_emit *e, const kb_reg *c, unsigned n) {
  kb *k = &e->k;
  kb_reg any = c[0];
  for (unsigned i = 1; i < n; i++) any = kb_or(k, any, c[i]);
  for (unsigned lanes = any.lanes; lanes % 2 == 0; lanes = any.lanes)
    any = kb_or(k, kb_slice(k, any, 0, lanes / 2), kb_slice(k, any, lanes / 2, lanes / 2));
  kb_reg r = kb_slice(k, any, 0, 1);
  for (unsigned i = 1; i < any.lanes; i++) r = kb_or(k, r, kb_slice(k, any, i, 1));
  return r;
}

// What is carried by copies that have another round is what that has made; others keep it. `going` are those of `test`.
static void keep_ended(kl_emit *e, const kl_step *test, kl_val *going, const kl_step *s, const held *was,
                       kb_reg *next) {
  kl_emit_shape(e, s->regs);
  kl_pair *c = kl_wide(e, kl_numbered(e, going, test->regs, KL_NONE, s->regs, KL_NONE));
  unsigned parts = kl_is_complex(s->dtype) ? 2 : 1;
  for (unsigned i = 0; i < was->n; i++) next[i] = kb_select(&e->k, c[i / parts].re, next[i], was->reg[i]);
}

// The condition stands before a round, of which there may be none. Where a thread has one condition for all that it
// carries, all of that is from the last round.
static void emit_while(kl_emit *e, const kl_node *node) {
  kb *k = &e->k;
  const kl_body *b = e->body;
  const kl_nest *nest = node->nest;
  const kl_step *test = &b->steps[node->index];
  held *carried = hold(e, nest, false);
  begin_round(e, nest, carried);
  LLVMBasicBlockRef head = LLVMGetInsertBlock(k->b), round = kl_block(e, "round"), after = kl_block(e, "");
  kl_scope s = kl_enter(e);
  set_carried(e, nest, false, carried);
  kl_emit_shape(e, test->regs);
  kb_reg *going = KL_NEW_N(e->arena, kb_reg, e->nwide);
  for (unsigned i = 0; i < e->nwide; i++) going[i] = e->vals[node->index].wide[i].re;
  bool one = e->nwide == 1 && e->width == 1;
  LLVMBuildCondBr(k->b, any_of(e, going, e->nwide).v, round, after);
  LLVMMoveBasicBlockAfter(round, head);
  LLVMPositionBuilderAtEnd(k->b, round);
  kl_emit_seq(e, &nest->inside);
  kb_reg **next = KL_NEW_N(e->arena, kb_reg *, nest->ncarried + 1);
  for (uint32_t i = 0; i < nest->ncarried; i++) {
    const kl_step *step = &b->steps[nest->carried[i].value];
    next[i] = registers(e, step, false, nest->carried[i].next, &carried[i].n);
    next[i] = kl_arena_dup(e->arena, next[i], carried[i].n * sizeof *next[i]);
    if (!one) keep_ended(e, test, &e->vals[node->index], step, &carried[i], next[i]);
  }
  LLVMBasicBlockRef last = LLVMGetInsertBlock(k->b);
  LLVMBuildBr(k->b, head);
  for (uint32_t i = 0; i < nest->ncarried; i++)
    for (unsigned r = 0; r < carried[i].n; r++) add_incoming(carried[i].reg[r].v, next[i][r].v, last);
  LLVMMoveBasicBlockAfter(after, last);
  LLVMPositionBuilderAtEnd(k->b, after);
  kl_leave(e, s, NULL);
  set_carried(e, nest, false, carried);
}

static void emit_if(kl_emit *e, const kl_node *node) {
  kl_if inside = kl_if_begin(e, kl_emit_guard(e, node->index), "if");
  kl_scope s = kl_enter(e);
  kl_emit_seq(e, &node->nest->inside);
  kl_leave(e, s, NULL);
  kl_if_end(e, inside);
}

// The one protocol by which blocks find what others have stored. What a block's threads have stored, its first thread
// releases: they have met, and its fence stands for them. It counts, and what the others have released before they
// counted it acquires; then it tells its block, which meets again.
static kb_reg comes_last(kl_emit *e, const kl_arrival *a) {
  kb *k = &e->k;
  uint32_t last = (uint32_t)(kl_extent(e->body, a->of) - 1);
  kb_reg counter = kl_emit_address(e, a->slot, a->element);
  kb_sync(k);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b);
  kl_if first = kl_if_begin(e, e->first_thread, "arrive");
  kb_fence(k);
  kb_reg number = kb_count_up(k, counter, last);
  kb_fence(k);
  kb_reg is_last = kb_icmp(k, LLVMIntEQ, number, kb_ilike(k, number, last));
  LLVMBasicBlockRef counted = LLVMGetInsertBlock(k->b);
  kl_if_end(e, first);
  kb_reg any = is_last;
  any.v = new_phi(e, is_last);
  add_incoming(any.v, kb_int(k, KB_I1, 1, 0).v, before);
  add_incoming(any.v, is_last.v, counted);
  return kb_sync_or(k, any);
}

static void emit_last(kl_emit *e, const kl_node *node) {
  kl_if inside = kl_if_begin(e, comes_last(e, &node->nest->arrival), "last");
  kl_scope s = kl_enter(e);
  kl_emit_seq(e, &node->nest->inside);
  kl_leave(e, s, NULL);
  kl_if_end(e, inside);
}

// --- nodes ----------------------------------------------------------------------------------------------------------

// Guards that stores branch on are made before the first branch.
static void make_store_guards(kl_emit *e, const kl_seq *s, uint32_t first) {
  for (uint32_t i = first; i < s->n && s->nodes[i].kind == KL_NODE_STORE; i++) {
    const kl_store *st = &e->body->stores[s->nodes[i].index];
    kl_make_store_guards(e, st);
  }
}

static void emit_store(kl_emit *e, const kl_store *s) {
  const kl_step *step = &e->body->steps[s->step];
  kl_emit_shape(e, s->access.regs);
  kl_val *v = kl_numbered(e, &e->vals[s->step], step->regs, KL_NONE, s->access.regs, s->access.run);
  if (s->how == KL_STORE_PUT)
    kl_emit_store(e, s, v);
  else
    kl_emit_change(e, s, v);
}

// LLVM selects instructions block by block, and where a value has many users in one, in time by their square. The host
// has its pieces.
enum { NODES_IN_BLOCK = 1024 };

static void bound_block(kl_emit *e, uint32_t nodes) {
  if (e->k.machine == KB_HOST || nodes % NODES_IN_BLOCK != 0) return;
  LLVMBasicBlockRef next = kl_block(e, "");
  LLVMMoveBasicBlockAfter(next, LLVMGetInsertBlock(e->k.b));
  LLVMBuildBr(e->k.b, next);
  LLVMPositionBuilderAtEnd(e->k.b, next);
}

static void emit_node(kl_emit *e, const kl_seq *s, uint32_t i, uint32_t first) {
  const kl_node *n = &s->nodes[i];
  if (n->kind == KL_NODE_STEP) kl_lines_at(e, e->body->steps[n->index].instr);
  if (n->kind == KL_NODE_STORE || n->kind == KL_NODE_UPDATE)
    kl_lines_at(e, e->body->steps[e->body->stores[n->index].step].instr);
  switch (n->kind) {
  case KL_NODE_STEP: e->vals[n->index] = kl_emit_step(e, &e->body->steps[n->index]); break;
  case KL_NODE_STORE:
    if (i == first || s->nodes[i - 1].kind != KL_NODE_STORE) make_store_guards(e, s, i);
    emit_store(e, &e->body->stores[n->index]);
    break;
  case KL_NODE_LOOP: emit_loop(e, n); break;
  case KL_NODE_WHILE: emit_while(e, n); break;
  case KL_NODE_IF: emit_if(e, n); break;
  case KL_NODE_UPDATE: kl_emit_update(e, n); break;
  case KL_NODE_BEFORE: kl_emit_before(e, n); break;
  case KL_NODE_LAST: emit_last(e, n); break;
  case KL_NODE_MEET: kb_meet(&e->k); break;
  case KL_NODE_SYNC: kb_sync(&e->k); break;
  }
}

static void emit_nodes(kl_emit *e, const kl_seq *s, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++) {
    emit_node(e, s, i, first);
    bound_block(e, i + 1);
  }
}

void kl_emit_seq(kl_emit *e, const kl_seq *s) {
  emit_nodes(e, s, 0, s->n);
}

// --- bodies ---------------------------------------------------------------------------------------------------------

void kl_body_begin(kl_emit *e, const kl_body *body) {
  e->body = body;
  e->tid = (kb_reg){0};
  e->width = body->width;
  e->vals = KL_NEW_N(e->arena, kl_val, body->nsteps + 1);
  e->ranges = kl_ranges(e->arena, body);
  e->bounds = kl_float_bounds(e->arena, body, e->ranges);
  e->live_known = false;
  e->k.calls |= kl_is_long(e, body);
  kl_find_wanted_bits(e);
}

void kl_body_nodes(kl_emit *e, uint32_t first, uint32_t end) {
  e->guards = KL_NEW_N(e->arena, kl_conditions, e->body->nguards + 1);
  emit_nodes(e, &e->body->root, first, end);
}

// --- variables ------------------------------------------------------------------------------------------------------

// The digits of a number below `most` + 1, for the variables of a binding.
static void set_digits(kl_emit *e, kl_binding binding, kb_reg number) {
  kb *k = &e->k;
  const kl_body *b = e->body;
  kl_vars vars = kl_bound(b, binding);
  int64_t left = kl_extent(b, vars);
  for (uint32_t v = b->nvars; v-- > 0;) {
    if (!kl_has_var(vars, v)) continue;
    int64_t extent = b->vars[v].extent;
    if (extent == 1) {
      e->vars[v] = kb_ilike(k, number, 0);
    } else if (left == extent) {
      e->vars[v] = number;
    } else if ((extent & (extent - 1)) == 0) {
      e->vars[v] = kb_andi(k, number, extent - 1);
      number = kb_lshri(k, number, (unsigned)__builtin_ctzll((unsigned long long)extent));
    } else {
      kb_reg by = kb_ilike(k, number, extent), quotient;
      if (e->index == KB_I32)
        quotient = kb_udiv_most(k, number, (uint32_t)extent, (uint32_t)(left - 1));
      else
        quotient = kb_udiv(k, number, by);
      e->vars[v] = kb_sub(k, number, kb_mul(k, quotient, by));
      number = quotient;
    }
    left /= extent;
  }
}

void kl_set_rows(kl_emit *e, kb_reg count) {
  int64_t row = e->plan->row;
  if (e->plan->flat) return; // no guard asks for it
  if (e->index == KB_I32) count = kb_trunc(&e->k, count, KB_I32);
  e->rows = row == 1 ? count : kb_udiv(&e->k, count, kb_ilike(&e->k, count, row));
}

void kl_set_blocks(kl_emit *e, kb_reg block) {
  set_digits(e, KL_BIND_BLOCK, block);
}

void kl_set_threads(kl_emit *e, kb_reg tid) {
  kb *k = &e->k;
  e->tid = tid;
  if (kl_bound(e->body, KL_BIND_WARP)) set_digits(e, KL_BIND_WARP, kb_lshri(k, tid, 5));
  if (kl_bound(e->body, KL_BIND_LANE)) set_digits(e, KL_BIND_LANE, kb_andi(k, tid, 31));
}

// On the host lanes are those of a vector, and there is one warp.
void kl_set_vector(kl_emit *e) {
  const kl_body *b = e->body;
  kl_vars lanes = kl_bound(b, KL_BIND_LANE);
  LLVMValueRef number[KL_EMIT_LANES];
  for (uint32_t v = 0; v < b->nvars; v++) {
    if (b->vars[v].binding == KL_BIND_WARP) e->vars[v] = kb_int(&e->k, e->index, 1, 0);
    if (!kl_has_var(lanes, v)) continue;
    for (unsigned i = 0; i < e->width; i++) {
      int64_t at[KL_MAX_VARS];
      kl_nth_point(b, lanes, KL_NONE, i, at);
      number[i] = kb_int(&e->k, e->index, 1, at[v]).v;
    }
    LLVMValueRef all = e->width == 1 ? number[0] : LLVMConstVector(number, e->width);
    e->vars[v] = (kb_reg){all, (uint8_t)e->index, (uint16_t)e->width};
  }
}
