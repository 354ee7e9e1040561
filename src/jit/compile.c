// kiln_compile: units of ENTRY to plans, plans to one LLVM module, the module to code; and the artifact that holds it.

#include "jit/jit.h"
#include "lower/emit/emit.h"
#include <llvm-c/Linker.h>

// --- buffers ------------------------------------------------------------------------------------------------------

// Where the leaves of ENTRY's values live. A fusion's results are ENTRY's results where they are used as such, else
// temporaries.
typedef struct buffers {
  kiln_artifact *a;
  const kl_comp *entry;
  uint32_t *param_base; // first flattened index of parameter i
  uint32_t **fusion;    // by instruction: buffer of each leaf, as result index, or ~temp index
} buffers;

static uint32_t leaves(const kl_instr *in) {
  return (uint32_t)kl_shape_leaf_count(in->shape);
}

// The parameter or fusion leaf that a leaf of `instr` is.
static const kl_instr *resolve(const kl_comp *c, uint32_t instr, uint32_t *leaf) {
  const kl_instr *in = &c->instr[instr];
  while (in->op == KL_OP_TUPLE || in->op == KL_OP_GET_TUPLE_ELEMENT) {
    if (in->op == KL_OP_GET_TUPLE_ELEMENT) {
      const kl_shape *t = kl_operand(c, in, 0)->shape;
      for (int64_t i = 0; i < in->number; i++) *leaf += (uint32_t)kl_shape_leaf_count(t->elems[i]);
      in = kl_operand(c, in, 0);
      continue;
    }
    uint32_t i = 0;
    for (; *leaf >= leaves(kl_operand(c, in, i)); i++) *leaf -= leaves(kl_operand(c, in, i));
    in = kl_operand(c, in, i);
  }
  return in;
}

static void describe(kiln_slot *s, const kl_shape *shape) {
  s->type.dtype = shape->dtype;
  s->type.rank = shape->rank;
  for (uint32_t d = 0; d < shape->rank; d++) s->type.dims[d] = shape->dims[d];
  s->bytes = kl_shape_bytes(shape);
}

static kiln_slot buffer_of(const buffers *b, const kl_instr *in, uint32_t leaf) {
  kiln_slot s = {0};
  describe(&s, kl_shape_leaf(in->shape, leaf));
  if (in->op == KL_OP_PARAMETER) {
    s.kind = KILN_BUFFER_PARAM;
    s.index = b->param_base[in->number] + leaf;
    return s;
  }
  uint32_t at = b->fusion[in - b->entry->instr][leaf];
  bool temp = at >> 31;
  s.kind = temp ? KILN_BUFFER_TEMP : KILN_BUFFER_RESULT;
  s.index = temp ? ~at : at;
  return s;
}

// Gives every fusion leaf its buffer; results that need a copy are noted.
static void place_fusions(buffers *b, const kl_unit *units, uint32_t nunits) {
  kiln_artifact *a = b->a;
  const kl_comp *c = b->entry;
  b->fusion = KL_NEW_N(&a->arena, uint32_t *, c->ninstr);
  for (uint32_t i = 0; i < nunits; i++) {
    uint32_t n = leaves(units[i].from), *slot = KL_NEW_N(&a->arena, uint32_t, n);
    memset(slot, 0xff, n * sizeof *slot);
    b->fusion[units[i].from - c->instr] = slot;
  }
  a->copies = KL_NEW_N(&a->arena, kl_copy, a->nresults + 1);
  for (uint32_t r = 0; r < a->nresults; r++) {
    uint32_t leaf = r;
    const kl_instr *from = resolve(c, c->root, &leaf);
    uint32_t *slot = from->op == KL_OP_PARAMETER ? NULL : &b->fusion[from - c->instr][leaf];
    if (slot && *slot == UINT32_MAX)
      *slot = r;
    else
      a->copies[a->ncopies++] = (kl_copy){buffer_of(b, from, leaf), r};
  }
  uint32_t most = 0;
  for (uint32_t i = 0; i < nunits; i++) most += leaves(units[i].from);
  a->temp_bytes = KL_NEW_N(&a->arena, int64_t, most + 1);
  for (uint32_t i = 0; i < nunits; i++) {
    for (uint32_t l = 0; l < leaves(units[i].from); l++) {
      uint32_t *slot = &b->fusion[units[i].from - c->instr][l];
      if (*slot != UINT32_MAX) continue;
      a->temp_bytes[a->ntemps] = kl_shape_bytes(kl_shape_leaf(units[i].from->shape, l));
      *slot = ~a->ntemps++;
    }
  }
}

static uint32_t count_params(const kl_comp *c, kl_arena *arena, uint32_t **base) {
  uint32_t n = 0;
  *base = KL_NEW_N(arena, uint32_t, c->nparams + 1);
  for (uint32_t i = 0; i < c->nparams; i++) {
    (*base)[i] = n;
    n += leaves(&c->instr[c->params[i]]);
  }
  return n;
}

// --- launches -----------------------------------------------------------------------------------------------------

static void fill_slots(const buffers *b, const kl_unit *u, const kl_plan *p, kiln_slot *slots) {
  uint32_t n = 0;
  const kl_comp *c = b->entry;
  for (uint32_t i = 0; i < p->nargs; i++) {
    slots[i] = (kiln_slot){.output = p->slots[i].kind == KL_SLOT_OUT, .align = p->slots[i].align, .index = i};
    describe(&slots[i], p->slots[i].shape);
  }
  uint32_t inputs = 0;
  while (inputs < p->nargs && p->slots[inputs].kind == KL_SLOT_IN) inputs++;
  for (uint32_t i = inputs; !u->from && i < p->nargs; i++) {
    slots[i].kind = KILN_BUFFER_RESULT;
    slots[i].index = i - inputs;
  }
  for (uint32_t o = 0; u->from && o < u->from->noperands; o++) {
    for (uint32_t l = 0; l < leaves(kl_operand(c, u->from, o)); l++, n++) {
      uint32_t leaf = l;
      const kl_instr *in = resolve(c, u->from->operands[o], &leaf);
      kiln_slot s = buffer_of(b, in, leaf);
      slots[n].kind = s.kind;
      slots[n].index = s.index;
    }
  }
  for (uint32_t l = 0; u->from && l < leaves(u->from); l++, n++) {
    kiln_slot s = buffer_of(b, u->from, l);
    slots[n].kind = s.kind;
    slots[n].index = s.index;
  }
}

static uint32_t widest_access(const kl_plan *p) {
  const kl_body *b = p->main.threads ? &p->main : &p->tail;
  uint32_t most = 0;
  for (uint32_t i = 0; b->threads && i < b->nstores; i++) {
    const kl_access *x = &b->stores[i].access;
    uint32_t bytes = x->vec * kl_info(p->slots[x->slot].shape->dtype)->bits / 8;
    if (bytes > x->align) bytes = x->align;
    if (bytes > most) most = bytes;
  }
  return most > p->target.max_bytes ? p->target.max_bytes : most;
}

static void describe_launch(const buffers *b, const kl_unit *u, const kl_plan *p, kiln_launch *l) {
  kl_arena *arena = &b->a->arena;
  kiln_slot *slots = KL_NEW_N(arena, kiln_slot, p->nargs + 1);
  fill_slots(b, u, p, slots);
  *l = (kiln_launch){.kernel = kl_str_dup(arena, kl_str_of(p->name)).p,
                     .grid = {(uint32_t)p->grid, 1, 1},
                     .block = {p->target.block, 1, 1},
                     .vector_bytes = widest_access(p),
                     .lanes = p->main.threads ? p->main.lanes : p->tail.lanes,
                     .elements = p->count,
                     .slot_count = p->nargs,
                     .slots = slots};
  if (p->target.machine == KL_HOST) l->grid[0] = p->count != 0;
  for (uint32_t i = 0; i < p->nargs; i++) l->bytes += slots[i].bytes;
}

// --- compiling ----------------------------------------------------------------------------------------------------

typedef struct job {
  kl_ctx *cx;
  const kiln_module *m;
  kiln_compile_params params;
  kl_target target;
  kiln_artifact *a;
  buffers buffers;
  kl_unit *units;
  uint32_t nunits;
  kl_arena scratch;
  kl_sb plan_text;
  LLVMContextRef llcx;
  LLVMModuleRef module; // all kernels so far
} job;

// Two names that become the same identifier are told apart by their number.
static const char *kernel_name(job *j, uint32_t i) {
  kl_str s = kl_symbol_text(&j->m->names, j->units[i].from ? j->units[i].from->name : j->m->name);
  if (j->params.fusion) s = kl_str_of(j->params.fusion);
  if (j->nunits == 1) return kl_str_dup(&j->scratch, s).p;
  return kl_strf(&j->scratch, "%.*s_%u", KL_FMT(s), i);
}

static kiln_status add_module(job *j, LLVMModuleRef m) {
  if (!j->module) {
    j->module = m;
    return KILN_OK;
  }
  if (!LLVMLinkModules2(j->module, m)) return KILN_OK;
  return kl_fail(j->cx, KILN_E_INTERNAL, KL_NOWHERE, "linking the kernels of one module failed");
}

static kiln_status compile_unit(job *j, uint32_t i) {
  kl_plan_params pp = {.target = j->target, .name = kernel_name(j, i), .align = j->params.argument_align};
  kl_plan *plan;
  KL_TRY(kl_plan_make(j->cx, j->m, j->units[i].comp, &pp, &j->scratch, &plan));
  if (j->params.keep & KILN_KEEP_PLAN) kl_plan_print(&j->plan_text, plan);
  describe_launch(&j->buffers, &j->units[i], plan, &j->a->launches[i]);
  j->a->host_launches[i] = (kl_host_launch){plan->main.threads, plan->count != 0};
  char *triple, *layout;
  kiln_status st = kl_machine_layout(j->cx, &j->target, &triple, &layout);
  if (st == KILN_OK) {
    LLVMModuleRef m = kl_emit_kernel(j->cx, j->llcx, plan, triple, layout);
    LLVMDisposeMessage(triple);
    LLVMDisposeMessage(layout);
    st = add_module(j, m);
  }
  kl_plan_free(plan);
  return st;
}

static kiln_status keep_text(kiln_artifact *a, kiln_text_kind kind, const char *text, size_t n) {
  a->text[kind] = kl_arena_try_alloc(&a->arena, n + 1);
  if (!a->text[kind]) return KILN_E_MEMORY;
  memcpy(a->text[kind], text, n);
  a->text_size[kind] = n;
  return KILN_OK;
}

static kiln_status keep_llvm(job *j) {
  char *text = LLVMPrintModuleToString(j->module);
  kiln_status st = keep_text(j->a, KILN_TEXT_LLVM, text, strlen(text));
  LLVMDisposeMessage(text);
  return st;
}

static kiln_status keep_code(job *j, LLVMMemoryBufferRef code) {
  const char *bytes = LLVMGetBufferStart(code);
  size_t n = LLVMGetBufferSize(code);
  if (!j->a->host) return keep_text(j->a, KILN_TEXT_PTX, bytes, n);
  j->a->object = kl_arena_try_alloc(&j->a->arena, n);
  if (!j->a->object) return KILN_E_MEMORY;
  memcpy(j->a->object, bytes, n);
  j->a->object_size = n;
  return KILN_OK;
}

static kiln_status generate(job *j) {
  for (uint32_t i = 0; i < j->nunits; i++) KL_TRY(compile_unit(j, i));
  if (j->params.keep & KILN_KEEP_PLAN) KL_TRY(keep_text(j->a, KILN_TEXT_PLAN, j->plan_text.p, j->plan_text.n));
  if (j->params.keep & KILN_KEEP_LLVM) KL_TRY(keep_llvm(j));
  LLVMModuleRef m = j->module;
  j->module = NULL;
  LLVMMemoryBufferRef code;
  KL_TRY(
      kl_codegen(j->cx, j->llcx, m, &j->target, j->a->launches[0].kernel, j->params.after_pass, j->params.user, &code));
  kiln_status st = keep_code(j, code);
  LLVMDisposeMemoryBuffer(code);
  return st == KILN_E_MEMORY ? kl_out_of_memory(j->cx, 0, "the kernel's code") : st;
}

static void describe_interface(job *j) {
  kiln_artifact *a = j->a;
  const kl_comp *c = &j->m->comp[j->m->entry];
  // One fusion picked out of ENTRY is its own interface.
  bool picked = j->params.fusion != NULL;
  if (picked) c = &j->m->comp[j->units[0].comp];
  if (picked) j->units[0].from = NULL;
  j->buffers = (buffers){.a = a, .entry = c};
  a->nparams = count_params(c, &a->arena, &j->buffers.param_base);
  a->nresults = leaves(kl_root(c));
  a->nlaunches = j->nunits;
  a->launches = KL_NEW_N(&a->arena, kiln_launch, j->nunits);
  a->host_launches = KL_NEW_N(&a->arena, kl_host_launch, j->nunits);
  if (j->units[0].from) place_fusions(&j->buffers, j->units, j->nunits);
}

static kiln_status compile(job *j) {
  KL_TRY(kl_target_parse(j->cx, j->params.target, &j->target));
  KL_TRY(kl_plan_units(j->cx, j->m, j->params.fusion, &j->scratch, &j->units, &j->nunits));
  const char *target = j->params.target ? j->params.target : "sm_90";
  memcpy(j->a->target, target, strlen(target) + 1); // kl_target_parse has bounded it
  j->a->host = j->target.machine == KL_HOST;
  describe_interface(j);
  return generate(j);
}

static kiln_status check_params(kl_ctx *cx, const kiln_compile_params *p) {
  uint32_t al = p->argument_align;
  if (al && (al & (al - 1) || al > 4096))
    return kl_invalid(cx, KL_NOWHERE, "argument_align is %u: expected a power of two up to 4096", al);
  return KILN_OK;
}

kiln_status kiln_compile(kiln_context *cx, const kiln_module *m, const kiln_compile_params *params,
                         kiln_artifact **out) {
  *out = NULL;
  job j = {.cx = cx, .m = m};
  if (params) memcpy(&j.params, params, params->struct_size < sizeof j.params ? params->struct_size : sizeof j.params);
  KL_TRY(check_params(cx, &j.params));
  kiln_context_params own = {.struct_size = sizeof own, .allocator = cx->allocator};
  kl_ctx *acx = kiln_context_create(&own);
  if (!acx) return kl_out_of_memory(cx, sizeof *acx, "an artifact");
  j.a = kl_alloc(acx, sizeof *j.a);
  j.a->cx = acx;
  kl_arena_init(&j.a->arena, acx);
  kl_arena_init(&j.scratch, cx);
  kl_sb_init(&j.plan_text, cx);
  j.llcx = LLVMContextCreate();
  kiln_status st = compile(&j);
  if (j.module) LLVMDisposeModule(j.module);
  LLVMContextDispose(j.llcx);
  kl_sb_free(&j.plan_text);
  kl_arena_free(&j.scratch);
  if (st == KILN_OK)
    *out = j.a;
  else
    kiln_artifact_destroy(&j.a);
  return st;
}

// --- the artifact ---------------------------------------------------------------------------------------------------

void kiln_artifact_destroy(kiln_artifact **a) {
  if (!a || !*a) return;
  kl_ctx *cx = (*a)->cx;
  kl_arena_free(&(*a)->arena);
  kl_free(cx, *a, sizeof **a);
  kiln_context_destroy(&cx);
  *a = NULL;
}

const char *kiln_artifact_text(const kiln_artifact *a, kiln_text_kind kind, size_t *size) {
  if ((unsigned)kind >= KL_COUNT(a->text)) return NULL;
  if (size) *size = a->text_size[kind];
  return a->text[kind];
}

const char *kiln_artifact_target(const kiln_artifact *a) {
  return a->target;
}
size_t kiln_artifact_launch_count(const kiln_artifact *a) {
  return a->nlaunches;
}
const kiln_launch *kiln_artifact_launch(const kiln_artifact *a, size_t i) {
  return i < a->nlaunches ? &a->launches[i] : NULL;
}
size_t kiln_artifact_param_count(const kiln_artifact *a) {
  return a->nparams;
}
size_t kiln_artifact_result_count(const kiln_artifact *a) {
  return a->nresults;
}
