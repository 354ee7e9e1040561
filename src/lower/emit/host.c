// Kernels of the host: loops over iterations, one vector of all lanes each.
//
// A long body is cut into functions of bounded size, as LLVM takes more than linear time for one function: each takes
// what others have made from a frame, and leaves there what others need. Values are held in the frame as integers.

#include "lower/emit/emit.h"

// Bodies of more nodes than this, without loops and branches, are cut into pieces of so many.
enum { PIECE = 128 };

static LLVMTypeRef pointer(const kl_emit *e) {
  return LLVMPointerTypeInContext(e->k.llcx, 0);
}

static LLVMTypeRef i64(const kl_emit *e) {
  return LLVMInt64TypeInContext(e->k.llcx);
}

// --- slots --------------------------------------------------------------------------------------------------------

// Is the slot's address in the array of arguments?
static bool is_argument(const kl_emit *e, uint32_t slot) {
  return slot < e->plan->nargs ||
         (slot != KL_NONE && (e->plan->slots[slot].kind == KL_SLOT_SCRATCH || e->plan->slots[slot].given));
}

static void load_slot(kl_emit *e, LLVMValueRef array, uint32_t slot) {
  if (!is_argument(e, slot) || e->slots[slot].v) return;
  uint32_t number = 0;
  while (e->launch->args[number] != slot) number++;
  LLVMValueRef at = LLVMConstInt(i64(e), number, false);
  LLVMValueRef p = LLVMBuildInBoundsGEP2(e->k.b, pointer(e), array, &at, 1, "");
  e->slots[slot] = (kb_reg){LLVMBuildLoad2(e->k.b, pointer(e), p, ""), KB_PTR, 1};
}

static uint32_t slot_of(const kl_body *b, const kl_node *n) {
  if (n->kind == KL_NODE_STORE || n->kind == KL_NODE_UPDATE) return b->stores[n->index].access.slot;
  bool loads = n->kind == KL_NODE_STEP && b->steps[n->index].kind == KL_STEP_LOAD;
  return loads ? b->steps[n->index].access.slot : KL_NONE;
}

// Loads the addresses that nodes need, or forgets them.
static void each_slot(kl_emit *e, LLVMValueRef array, const kl_seq *s, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++) {
    const kl_node *n = &s->nodes[i];
    uint32_t slot = slot_of(e->body, n);
    if (array)
      load_slot(e, array, slot);
    else if (is_argument(e, slot))
      e->slots[slot].v = NULL;
    if (n->nest) each_slot(e, array, &n->nest->inside, 0, n->nest->inside.n);
  }
}

// The addresses that some nodes need, and no others: they are held all the time.
static void load_slots(kl_emit *e, LLVMValueRef array, uint32_t first, uint32_t end) {
  each_slot(e, NULL, &e->body->root, first, end);
  each_slot(e, array, &e->body->root, first, end);
}

// --- the frame ----------------------------------------------------------------------------------------------------

// A value that is made in one piece and taken in others.
typedef struct saved {
  uint32_t made, last; // pieces
  uint32_t here;       // the piece that has taken it, + 1
  int64_t offset;      // in the frame
  kl_val val;          // as it was made
} saved;

typedef struct pieces {
  kl_emit *e;
  saved *saved; // by step
  int64_t frame_bytes;
  uint32_t n, piece; // piece: the one at hand
  LLVMValueRef rows; // NULL: no guard asks for it
  LLVMTypeRef type;
  LLVMValueRef *fns;
} pieces;

static kb_kind memory_kind(kb_reg r) {
  switch ((kb_kind)r.kind) {
  case KB_I1:
  case KB_F32: return KB_I32;
  case KB_F64: return KB_I64;
  default: return (kb_kind)r.kind;
  }
}

static LLVMValueRef frame_at(kl_emit *e, int64_t offset) {
  LLVMValueRef at = LLVMConstInt(i64(e), (uint64_t)offset, false);
  return LLVMBuildInBoundsGEP2(e->k.b, kb_type(&e->k, KB_I8, 1), LLVMGetParam(e->k.fn, 2), &at, 1, "");
}

static int64_t bytes_in_frame(kb_reg r) {
  return ((int64_t)r.lanes * kb_kind_bits(memory_kind(r)) / 8 + 15) & ~15ll;
}

static int64_t save(kl_emit *e, kb_reg r, int64_t offset) {
  kb_kind kind = memory_kind(r);
  kb_reg x = r.kind == KB_I1 ? kb_zext(&e->k, r, kind) : r.kind == kind ? r : kb_bitcast(&e->k, r, kind, r.lanes);
  LLVMSetAlignment(LLVMBuildStore(e->k.b, x.v, frame_at(e, offset)), 16);
  return offset + bytes_in_frame(r);
}

// `r` is the register as it was saved.
static kb_reg restore(kl_emit *e, kb_reg r, int64_t *offset) {
  kb_kind kind = memory_kind(r);
  LLVMValueRef v = LLVMBuildLoad2(e->k.b, kb_type(&e->k, kind, r.lanes), frame_at(e, *offset), "");
  LLVMSetAlignment(v, 16);
  *offset += bytes_in_frame(r);
  kb_reg x = {v, (uint8_t)kind, r.lanes};
  if (r.kind == KB_I1) return kb_icmp(&e->k, LLVMIntNE, x, kb_ilike(&e->k, x, 0));
  return r.kind == kind ? x : kb_bitcast(&e->k, x, (kb_kind)r.kind, r.lanes);
}

// One form of it will do; the other is made again where it is asked for.
static void save_value(pieces *p, uint32_t step) {
  kl_emit *e = p->e;
  saved *s = &p->saved[step];
  kl_val *v = &e->vals[step];
  s->val = *v;
  s->offset = p->frame_bytes;
  kl_emit_shape(e, e->body->steps[step].regs);
  for (unsigned i = 0; i < e->nwide; i++) {
    if (v->raw) {
      p->frame_bytes = save(e, v->raw[i], p->frame_bytes);
      continue;
    }
    p->frame_bytes = save(e, v->wide[i].re, p->frame_bytes);
    if (kl_is_complex(v->dtype)) p->frame_bytes = save(e, v->wide[i].im, p->frame_bytes);
  }
}

static void restore_value(pieces *p, uint32_t step) {
  kl_emit *e = p->e;
  const kl_val *from = &p->saved[step].val;
  int64_t offset = p->saved[step].offset;
  kl_val v = {.dtype = from->dtype};
  kl_emit_shape(e, e->body->steps[step].regs);
  if (from->raw)
    v.raw = KL_NEW_N(e->arena, kb_reg, e->nwide);
  else
    v.wide = KL_NEW_N(e->arena, kl_pair, e->nwide);
  for (unsigned i = 0; i < e->nwide; i++) {
    if (from->raw) {
      v.raw[i] = restore(e, from->raw[i], &offset);
      continue;
    }
    v.wide[i].re = restore(e, from->wide[i].re, &offset);
    if (kl_is_complex(v.dtype)) v.wide[i].im = restore(e, from->wide[i].im, &offset);
  }
  e->vals[step] = v;
}

// --- pieces -------------------------------------------------------------------------------------------------------

static const kl_node *node_at(const kl_emit *e, uint32_t i) {
  return &e->body->root.nodes[i];
}

static uint32_t end_of(const kl_emit *e, uint32_t piece) {
  return (piece + 1) * PIECE < e->body->root.n ? (piece + 1) * PIECE : e->body->root.n;
}

static void note_use(void *arg, uint32_t step) {
  pieces *p = arg;
  p->saved[step].last = p->piece;
}

static void find_uses(pieces *p) {
  const kl_body *b = p->e->body;
  for (uint32_t i = 0; i < b->root.n; i++) {
    const kl_node *node = node_at(p->e, i);
    p->piece = i / PIECE;
    if (node->kind == KL_NODE_STEP) p->saved[node->index].made = p->saved[node->index].last = p->piece;
    kl_each_taken(b, node, note_use, p);
  }
}

static void take_value(void *arg, uint32_t step) {
  pieces *p = arg;
  saved *s = &p->saved[step];
  if (s->made == p->piece || s->here == p->piece + 1) return;
  restore_value(p, step);
  s->here = p->piece + 1;
}

static void take_values(pieces *p, uint32_t piece, uint32_t first, uint32_t end) {
  p->piece = piece;
  for (uint32_t i = first; i < end; i++) kl_each_taken(p->e->body, node_at(p->e, i), take_value, p);
}

// void piece(ptr slots, index thread, ptr frame), and index rows where guards ask for it
static LLVMValueRef emit_piece(pieces *p, uint32_t piece) {
  kl_emit *e = p->e;
  uint32_t first = piece * PIECE, end = end_of(e, piece);
  e->k.fn = LLVMAddFunction(e->k.module, kl_strf(e->arena, "%s_piece", e->launch->name), p->type);
  LLVMSetLinkage(e->k.fn, LLVMInternalLinkage);
  kl_attribute(e, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  kl_attribute(e, (unsigned)LLVMAttributeFunctionIndex, "noinline", 0);
  LLVMPositionBuilderAtEnd(e->k.b, kl_block(e, "entry"));
  load_slots(e, LLVMGetParam(e->k.fn, 0), first, end);
  take_values(p, piece, first, end);
  e->vars[0] = (kb_reg){LLVMGetParam(e->k.fn, 1), (uint8_t)e->index, 1};
  if (p->rows) e->rows.v = LLVMGetParam(e->k.fn, 3);
  kl_body_nodes(e, first, end);
  for (uint32_t i = first; i < end; i++)
    if (node_at(e, i)->kind == KL_NODE_STEP && p->saved[node_at(e, i)->index].last != piece)
      save_value(p, node_at(e, i)->index);
  LLVMBuildRetVoid(e->k.b);
  return e->k.fn;
}

// Emits the body that has begun as pieces; what the builder was at is where it goes on.
static void emit_pieces(kl_emit *e, pieces *p) {
  LLVMValueRef fn = e->k.fn;
  LLVMBasicBlockRef at = LLVMGetInsertBlock(e->k.b);
  LLVMTypeRef index = kb_type(&e->k, e->index, 1), types[4] = {pointer(e), index, pointer(e), index};
  *p = (pieces){.e = e, .n = (e->body->root.n + PIECE - 1) / PIECE, .rows = e->rows.v};
  p->type = LLVMFunctionType(LLVMVoidTypeInContext(e->k.llcx), types, p->rows ? 4 : 3, false);
  p->saved = KL_NEW_N(e->arena, saved, e->body->nsteps + 1);
  p->fns = KL_NEW_N(e->arena, LLVMValueRef, p->n);
  find_uses(p);
  for (uint32_t i = 0; i < p->n; i++) p->fns[i] = emit_piece(p, i);
  e->k.fn = fn;
  e->rows.v = p->rows;
  LLVMPositionBuilderAtEnd(e->k.b, at);
}

// --- loops --------------------------------------------------------------------------------------------------------

// Of the kernel, in its first block.
static LLVMValueRef make_frame(kl_emit *e, int64_t bytes) {
  LLVMBasicBlockRef at = LLVMGetInsertBlock(e->k.b), entry = LLVMGetEntryBasicBlock(e->k.fn);
  LLVMValueRef before = LLVMGetFirstInstruction(entry);
  if (before)
    LLVMPositionBuilderBefore(e->k.b, before);
  else
    LLVMPositionBuilderAtEnd(e->k.b, entry);
  LLVMTypeRef type = LLVMArrayType2(kb_type(&e->k, KB_I8, 1), (uint64_t)(bytes ? bytes : 16));
  LLVMValueRef frame = LLVMBuildAlloca(e->k.b, type, "frame");
  LLVMSetAlignment(frame, 64);
  LLVMPositionBuilderAtEnd(e->k.b, at);
  return frame;
}

static bool has_nests(const kl_body *b) {
  for (uint32_t i = 0; i < b->root.n; i++)
    if (b->root.nodes[i].nest) return true;
  return false;
}

static void emit_iteration(kl_emit *e, pieces *p, LLVMValueRef frame, kb_reg iteration) {
  if (!p->n) {
    if (e->body->threads)
      e->vars[0] = iteration;
    else
      kl_set_blocks(e, iteration);
    return kl_body_nodes(e, 0, e->body->root.n);
  }
  LLVMValueRef args[4] = {LLVMGetParam(e->k.fn, 0), iteration.v, frame, p->rows};
  for (uint32_t i = 0; i < p->n; i++) LLVMBuildCall2(e->k.b, p->type, p->fns[i], args, p->rows ? 4 : 3, "");
}

// What a block shares: of one warp, so that nobody else sees it.
static void make_shared(kl_emit *e) {
  const kl_plan *p = e->plan;
  LLVMValueRef base = e->launch->shared_bytes ? make_frame(e, e->launch->shared_bytes) : NULL;
  for (uint32_t i = p->nargs; base && i < p->nslots; i++) {
    if (p->slots[i].kind != KL_SLOT_SHARED || &p->launches[p->slots[i].launch] != e->launch) continue;
    LLVMValueRef at = LLVMConstInt(i64(e), p->slots[i].at, false);
    LLVMValueRef q = LLVMBuildInBoundsGEP2(e->k.b, kb_type(&e->k, KB_I8, 1), base, &at, 1, "");
    e->slots[i] = (kb_reg){q, KB_PTR, 1};
  }
}

// for (i = begin; i < end; i++) body(i)
static void emit_loop(kl_emit *e, const kl_body *body, kb_reg begin, kb_reg end) {
  kb *k = &e->k;
  pieces p = {0};
  LLVMValueRef frame = NULL;
  kl_body_begin(e, body);
  kl_set_vector(e);
  make_shared(e);
  if (body->root.n > PIECE && body->threads && !has_nests(body)) {
    emit_pieces(e, &p);
    frame = make_frame(e, p.frame_bytes);
  } else {
    load_slots(e, LLVMGetParam(k->fn, 0), 0, body->root.n);
    kl_ahead_begin(e);
  }
  LLVMBasicBlockRef from = LLVMGetInsertBlock(k->b), head = kl_block(e, "head"), inside = kl_block(e, "body"),
                    done = kl_block(e, "done");
  LLVMBuildBr(k->b, head);
  LLVMPositionBuilderAtEnd(k->b, head);
  LLVMValueRef i = LLVMBuildPhi(k->b, i64(e), "i");
  kb_reg iv = {i, KB_I64, 1};
  LLVMBuildCondBr(k->b, kb_icmp(k, LLVMIntSLT, iv, end).v, inside, done);
  LLVMPositionBuilderAtEnd(k->b, inside);
  emit_iteration(e, &p, frame, kb_opaque(k, kb_trunc(k, iv, e->index)));
  LLVMValueRef next[2] = {begin.v, kb_addi(k, iv, 1).v};
  LLVMBasicBlockRef blocks[2] = {from, LLVMGetInsertBlock(k->b)};
  LLVMAddIncoming(i, next, blocks, 2);
  LLVMBuildBr(k->b, head);
  LLVMMoveBasicBlockAfter(done, LLVMGetInsertBlock(k->b));
  LLVMPositionBuilderAtEnd(k->b, done);
  e->ahead = NULL;
}

// --- the kernel ---------------------------------------------------------------------------------------------------

// Iterations begin .. end-1 of all parts' rows, as far as they are this part's.
static void emit_main(kl_emit *e, const kl_part *part, kb_reg begin, kb_reg end) {
  kb *k = &e->k;
  if (e->launch->nparts > 1) {
    kb_reg first = kb_ilike(k, begin, part->first_iteration),
           last = kb_ilike(k, begin, part->main.threads + part->main.blocks);
    begin = kb_smax(k, kb_sub(k, begin, first), kb_ilike(k, begin, 0));
    end = kb_smin(k, kb_sub(k, end, first), last);
  }
  emit_loop(e, &part->main, begin, end);
}

static void emit_tail(kl_emit *e, const kl_part *part, kb_reg begin) {
  kb *k = &e->k;
  kb_reg from = kb_ilike(k, begin, 0), to = kb_ilike(k, begin, part->tail.threads);
  kl_if first = kl_if_begin(e, kb_icmp(k, LLVMIntEQ, begin, from), "first");
  if (e->plan->flat) {
    kb_reg count = {LLVMGetParam(k->fn, 3), KB_I64, 1};
    kb_reg whole = kb_udiv(k, count, kb_ilike(k, count, part->main.lanes));
    from = kb_mul(k, whole, kb_ilike(k, count, part->main.lanes / part->tail.lanes));
    to = kb_udiv(k, count, kb_ilike(k, count, part->tail.lanes));
  }
  emit_loop(e, &part->tail, from, to);
  kl_if_end(e, first);
}

// void name(ptr slots, i64 begin, i64 end, i64 count)
static LLVMValueRef emit_function(kl_emit *e, const char *name, const kl_part *part) {
  LLVMTypeRef types[4] = {pointer(e), i64(e), i64(e), i64(e)};
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->k.llcx), types, 4, false);
  e->k.fn = LLVMAddFunction(e->k.module, name, type);
  kl_attribute(e, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  LLVMPositionBuilderAtEnd(e->k.b, kl_block(e, "entry"));
  if (!part) return e->k.fn;
  if (e->plan->counted) kl_set_rows(e, (kb_reg){LLVMGetParam(e->k.fn, 3), KB_I64, 1});
  kb_reg begin = {LLVMGetParam(e->k.fn, 1), KB_I64, 1}, end = {LLVMGetParam(e->k.fn, 2), KB_I64, 1};
  if (!kl_body_is_empty(&part->main)) emit_main(e, part, begin, end);
  if (part->tail.threads) emit_tail(e, part, begin);
  LLVMBuildRetVoid(e->k.b);
  return e->k.fn;
}

// Of several parts each is a function.
void kl_emit_host(kl_emit *e) {
  const kl_plan_launch *l = e->launch;
  const kl_part *first = &e->plan->parts[l->first_part];
  if (l->nparts == 1) {
    emit_function(e, l->name, first);
    return;
  }
  LLVMValueRef *parts = KL_NEW_N(e->arena, LLVMValueRef, l->nparts), args[4];
  for (uint32_t i = 0; i < l->nparts; i++) {
    parts[i] = emit_function(e, kl_strf(e->arena, "%s_part", l->name), &first[i]);
    LLVMSetLinkage(parts[i], LLVMInternalLinkage);
    kl_attribute(e, (unsigned)LLVMAttributeFunctionIndex, "noinline", 0);
  }
  LLVMValueRef kernel = emit_function(e, l->name, NULL);
  LLVMGetParams(kernel, args);
  for (uint32_t i = 0; i < l->nparts; i++)
    LLVMBuildCall2(e->k.b, LLVMGlobalGetValueType(parts[i]), parts[i], args, 4, "");
  LLVMBuildRetVoid(e->k.b);
}
