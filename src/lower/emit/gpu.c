// Kernels of GPUs: blocks find their part, threads their variables.
//
// Blocks below main_blocks run `main`, the others `tail`.

#include "lower/emit/emit.h"

// --- kernels --------------------------------------------------------------------------------------------------------

void kl_attribute(kl_emit *e, unsigned index, const char *name, uint64_t value) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(e->k.fn, index, LLVMCreateEnumAttribute(e->k.llcx, kind, value));
}

void kl_string_attribute(kl_emit *e, const char *name, const char *value) {
  LLVMAttributeRef a =
      LLVMCreateStringAttribute(e->k.llcx, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(e->k.fn, LLVMAttributeFunctionIndex, a);
}

// Constants as globals of that name: address space 1 on NVPTX, plain on the host.
void kl_make_constants(kl_emit *e, const char *name) {
  unsigned space = e->k.machine == KB_NVPTX ? 1 : 0;
  for (uint32_t i = e->plan->nargs; i < e->plan->nslots; i++) {
    const kl_slot_info *s = &e->plan->slots[i];
    if (s->kind != KL_SLOT_CONST || s->given) continue;
    LLVMValueRef data = LLVMConstStringInContext2(e->k.llcx, s->data, (size_t)s->bytes, true);
    LLVMValueRef g =
        LLVMAddGlobalInAddressSpace(e->k.module, LLVMTypeOf(data), kl_strf(e->arena, "%s_constant%u", name, i), space);
    LLVMSetInitializer(g, data);
    LLVMSetGlobalConstant(g, true);
    LLVMSetLinkage(g, LLVMInternalLinkage);
    LLVMSetAlignment(g, 16);
    e->slots[i] = (kb_reg){g, KB_PTR, 1};
  }
}

// What a block shares is one array of bytes. More than there is without asking comes with the launch.
LLVMValueRef kl_make_shared(kl_emit *e, const char *name, uint32_t bytes) {
  bool asked = bytes > KL_MOST_SHARED;
  LLVMTypeRef type = LLVMArrayType2(kb_type(&e->k, KB_I8, 1), asked ? 0 : bytes);
  LLVMValueRef g = LLVMAddGlobalInAddressSpace(e->k.module, type, kl_strf(e->arena, "%s_shared", name), 3);
  if (!asked) LLVMSetLinkage(g, LLVMInternalLinkage);
  if (!asked) LLVMSetInitializer(g, LLVMGetUndef(type));
  LLVMSetAlignment(g, 16);
  return g;
}

// Slots are places in what lies at `base`.
void kl_set_shared(kl_emit *e, LLVMValueRef base) {
  const kl_plan *p = e->plan;
  for (uint32_t i = p->nargs; i < p->nslots; i++) {
    if (p->slots[i].kind != KL_SLOT_SHARED || &p->launches[p->slots[i].launch] != e->launch) continue;
    LLVMValueRef at = LLVMConstInt(kb_type(&e->k, KB_I32, 1), p->slots[i].at, false);
    LLVMTypeRef byte = kb_type(&e->k, KB_I8, 1);
    bool fixed = LLVMIsConstant(base);
    e->slots[i] = (kb_reg){
        fixed ? LLVMConstGEP2(byte, base, &at, 1) : LLVMBuildInBoundsGEP2(e->k.b, byte, base, &at, 1, ""), KB_PTR, 1};
  }
}

static kb_kind value_kind(const kl_plan *p, uint32_t slot) {
  return kl_info(p->slots[slot].shape->dtype)->bits == 64 ? KB_I64 : KB_I32;
}

// What is said of more arguments than this would take time and memory by the square of their number: LLVM copies all
// attributes with each that is added. Every access carries its own alignment, and every load whether it is constant.
enum { MOST_HINTED = 256 };

static const char *only_access(const kl_slot_info *s) {
  if (s->mode != KL_MODE_COVER) return NULL;
  return s->kind == KL_SLOT_IN ? "readonly" : s->kind == KL_SLOT_OUT ? "writeonly" : NULL;
}

static void declare_gpu_kernel(kl_emit *e) {
  kl_plan *p = e->plan;
  const kl_plan_launch *l = e->launch;
  LLVMTypeRef *types = KL_NEW_N(e->arena, LLVMTypeRef, l->nargs + 1);
  for (uint32_t i = 0; i < l->nargs; i++)
    types[i] = p->slots[l->args[i]].by_value ? kb_type(&e->k, value_kind(p, l->args[i]), 1)
                                             : LLVMPointerTypeInContext(e->k.llcx, 1);
  types[l->nargs] = LLVMInt64TypeInContext(e->k.llcx);
  LLVMTypeRef fty = LLVMFunctionType(LLVMVoidTypeInContext(e->k.llcx), types, l->nargs + p->counted, false);
  e->k.fn = LLVMAddFunction(e->k.module, l->name, fty);
  LLVMSetFunctionCallConv(e->k.fn, 71); // PTX kernel
  kl_lines_function(e, l->name);
  kl_string_attribute(e, "nvvm.reqntid", kl_strf(e->arena, "%u", l->block));
  if (l->cluster) kl_string_attribute(e, "nvvm.cluster_dim", kl_strf(e->arena, "%u", l->cluster));
  if (l->resident) kl_string_attribute(e, "nvvm.minctasm", kl_strf(e->arena, "%u", l->resident));
  kl_attribute(e, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  for (uint32_t i = 0; i < l->nargs; i++) {
    uint32_t slot = l->args[i];
    const kl_slot_info *s = &p->slots[slot];
    e->slots[slot] = (kb_reg){LLVMGetParam(e->k.fn, i), s->by_value ? value_kind(p, slot) : KB_PTR, 1};
    if (s->by_value || l->nargs > MOST_HINTED) continue;
    if (kl_is_constant(e, slot)) kl_attribute(e, i + 1, "noalias", 0);
    kl_attribute(e, i + 1, "align", s->align);
    if (only_access(s)) kl_attribute(e, i + 1, only_access(s), 0);
  }
}

static kb_reg special_register(kl_emit *e, const char *name) {
  kb_reg r = kb_special(&e->k, name);
  return e->index == KB_I64 ? kb_zext(&e->k, r, KB_I64) : r;
}

// How a flat domain divides, in index kind.
typedef struct division {
  kb_reg main_blocks;
  kb_reg tail_first, tail_end; // threads of the tail
} division;

static division divide(kl_emit *e, const kl_part *part, kb_reg count) {
  kb *k = &e->k;
  int64_t in_block = (int64_t)part->main.lanes * e->launch->block, tail = part->tail.lanes;
  if (e->index == KB_I32) count = kb_trunc(k, count, KB_I32);
  division d = {.main_blocks = kb_ilike(k, count, 0), .tail_first = kb_ilike(k, count, 0)};
  if (part->main.threads) { // else every count is less than one thread's lanes
    d.main_blocks = kb_udiv(k, count, kb_ilike(k, count, in_block));
    d.tail_first = kb_mul(k, d.main_blocks, kb_ilike(k, count, in_block / tail));
  }
  d.tail_end = kb_udiv(k, count, kb_ilike(k, count, tail));
  return d;
}

// What a kernel needs of the kernel before it is there behind this; what needs nothing of this one may begin.
void kl_wait_for_previous(kb *k) {
  kb_intrinsic(k, "llvm.nvvm.griddepcontrol.wait", NULL, 0, NULL, 0, KB_I1, 1);
  kb_intrinsic(k, "llvm.nvvm.griddepcontrol.launch.dependents", NULL, 0, NULL, 0, KB_I1, 1);
}

// Of a block's work: the kernel's, or that of whoever has more to do behind it.
static void end_block(kl_emit *e) {
  if (e->end)
    LLVMBuildBr(e->k.b, e->end);
  else
    LLVMBuildRetVoid(e->k.b);
}

static void emit_threads(kl_emit *e, const kl_body *body, kb_reg thread) {
  kl_body_begin(e, body);
  e->vars[0] = thread;
  kl_body_nodes(e, 0, body->root.n);
}

static void emit_block(kl_emit *e, const kl_body *body, kb_reg block, kb_reg tid) {
  kl_body_begin(e, body);
  kl_set_blocks(e, block);
  kl_set_threads(e, tid);
  e->first_thread = kb_icmp(&e->k, LLVMIntEQ, tid, kb_ilike(&e->k, tid, 0));
  kl_body_nodes(e, 0, body->root.n);
}

static void emit_gpu_tail(kl_emit *e, const kl_part *part, const division *d, kb_reg block_id, kb_reg tid) {
  kb *k = &e->k;
  uint32_t in_block = e->launch->block;
  kb_reg b = d ? kb_sub(k, block_id, d->main_blocks) : kb_addi(k, block_id, -part->first_block - part->main_blocks);
  kb_reg t = kb_add(k, kb_mul(k, b, kb_ilike(k, b, in_block)), tid);
  if (d) t = kb_add(k, t, d->tail_first);
  bool check = d || part->tail.threads % in_block != 0;
  kl_if in = {0};
  kb_reg end = d ? d->tail_end : kb_ilike(k, t, part->tail.threads);
  if (check) in = kl_if_begin(e, kb_icmp(k, LLVMIntULT, t, end), "tail");
  emit_threads(e, &part->tail, t);
  if (check) kl_if_end(e, in);
  end_block(e);
}

static void emit_gpu_main(kl_emit *e, const kl_part *part, kb_reg block_id, kb_reg tid) {
  kb *k = &e->k;
  kb_reg b = kb_addi(k, block_id, -part->first_block);
  if (part->main.threads)
    emit_threads(e, &part->main, kb_add(k, kb_mul(k, b, kb_ilike(k, b, e->launch->block)), tid));
  else
    emit_block(e, &part->main, b, tid);
  end_block(e);
}

static void emit_gpu_part(kl_emit *e, const kl_part *part, kb_reg block_id, kb_reg tid) {
  kl_plan *p = e->plan;
  kb *k = &e->k;
  division d = {0};
  if (p->flat) d = divide(e, part, (kb_reg){LLVMGetParam(e->k.fn, e->launch->nargs), KB_I64, 1});
  if (!part->tail.threads) return emit_gpu_main(e, part, block_id, tid);
  if (kl_body_is_empty(&part->main)) return emit_gpu_tail(e, part, p->flat ? &d : NULL, block_id, tid);
  kb_reg main_end = p->flat ? d.main_blocks : kb_ilike(k, block_id, part->first_block + part->main_blocks);
  LLVMBasicBlockRef main = kl_block(e, "main"), tail = kl_block(e, "rest");
  LLVMBuildCondBr(k->b, kb_icmp(k, LLVMIntULT, block_id, main_end).v, main, tail);
  LLVMPositionBuilderAtEnd(k->b, main);
  emit_gpu_main(e, part, block_id, tid);
  LLVMPositionBuilderAtEnd(k->b, tail);
  emit_gpu_tail(e, part, p->flat ? &d : NULL, block_id, tid);
}

// A block finds its part by halves.
static void emit_gpu_parts(kl_emit *e, uint32_t first, uint32_t end, kb_reg block_id, kb_reg tid) {
  kb *k = &e->k;
  const kl_part *parts = e->plan->parts;
  if (end - first == 1) return emit_gpu_part(e, &parts[first], block_id, tid);
  uint32_t middle = first + (end - first) / 2;
  LLVMBasicBlockRef below = kl_block(e, "below"), above = kl_block(e, "above");
  kb_reg is_below = kb_icmp(k, LLVMIntULT, block_id, kb_ilike(k, block_id, parts[middle].first_block));
  LLVMBuildCondBr(k->b, is_below.v, below, above);
  LLVMPositionBuilderAtEnd(k->b, below);
  emit_gpu_parts(e, first, middle, block_id, tid);
  LLVMPositionBuilderAtEnd(k->b, above);
  emit_gpu_parts(e, middle, end, block_id, tid);
}

void kl_emit_blocks(kl_emit *e, kb_reg block_id, kb_reg tid) {
  emit_gpu_parts(e, e->launch->first_part, e->launch->first_part + e->launch->nparts, block_id, tid);
}

static void emit_gpu(kl_emit *e) {
  kl_plan *p = e->plan;
  kb *k = &e->k;
  declare_gpu_kernel(e);
  if (e->launch->shared_bytes) kl_set_shared(e, kl_make_shared(e, e->launch->name, e->launch->shared_bytes));
  LLVMPositionBuilderAtEnd(k->b, kl_block(e, "entry"));
  kb_reg block_id = special_register(e, "llvm.nvvm.read.ptx.sreg.ctaid.x");
  kb_reg tid = special_register(e, "llvm.nvvm.read.ptx.sreg.tid.x");
  if (p->programmatic) kl_wait_for_previous(k);
  if (p->counted) kl_set_rows(e, (kb_reg){LLVMGetParam(k->fn, e->launch->nargs), KB_I64, 1});
  if (e->launch->tickets) {
    e->ticket = kl_take_ticket(e, tid);
    block_id = e->index == KB_I64 ? kb_zext(k, e->ticket, KB_I64) : e->ticket;
  }
  kl_emit_blocks(e, block_id, tid);
}

// --- kernels --------------------------------------------------------------------------------------------------------

kl_emit kl_emit_of_plan(kl_ctx *cx, LLVMModuleRef module, kl_plan *plan, kl_arena *scratch, const char *name,
                        bool others) {
  kl_emit e = {.arena = scratch, .plan = plan, .index = plan->index64 ? KB_I64 : KB_I32};
  e.k = (kb){.cx = cx,
             .llcx = LLVMGetModuleContext(module),
             .module = module,
             .machine = plan->target.machine == KL_NVPTX ? KB_NVPTX : KB_HOST,
             .sm = (int)plan->target.sm,
             .narrow = plan->target.sm >= 100 && plan->target.variant,
             .fast = plan->fast};
  e.slots = KL_NEW_N(scratch, kb_reg, plan->nslots + 1);
  if (others) e.others = KL_NEW_N(scratch, bool, plan->nslots + 1);
  e.invariant_load = LLVMGetMDKindIDInContext(e.k.llcx, "invariant.load", 14);
  e.empty_node = LLVMMetadataAsValue(e.k.llcx, LLVMMDNodeInContext2(e.k.llcx, NULL, 0));
  kl_make_constants(&e, name);
  kl_make_nothing(&e, name);
  return e;
}

void kl_emit_kernel(kl_ctx *cx, LLVMModuleRef module, kl_plan *plan) {
  kl_arena scratch;
  kl_arena_init(&scratch, cx);
  kl_emit e = kl_emit_of_plan(cx, module, plan, &scratch, plan->name, false);
  e.k.b = LLVMCreateBuilderInContext(e.k.llcx);
  kl_lines_begin(&e);
  for (uint32_t i = 0; i < plan->nlaunches; i++) {
    e.launch = &plan->launches[i];
    if (e.k.machine == KB_NVPTX)
      emit_gpu(&e);
    else
      kl_emit_host(&e);
  }
  kl_lines_end(&e);
  LLVMDisposeBuilder(e.k.b);
  kl_arena_free(&scratch);
}
