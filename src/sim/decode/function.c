// Functions: places of registers and variables, every instruction by its row, labels at the end.

#include "sim/decode/decode.h"
#include "sim/isa/topics.h"

// Decoders of the machine's rows.
#define ENTRY(decoder, pattern, operands, unit, spread, grade, section) kl_d_##decoder,
// clang-format off
#define X(topic, rows) static kl_decode_fn *const topic##_decoders[] = {rows(ENTRY)};
// clang-format on
KL_MACHINE_TOPICS(X)
#undef X

static kl_decode_fn *decoder_of(uint32_t topic, uint32_t row) {
  uint32_t t = 0;
#define X(name, rows)                                                                                                  \
  if (topic == t++) return kl_d_lanes;
  KL_LANE_TOPICS(X)
#undef X
#define X(name, rows)                                                                                                  \
  if (topic == t++) return name##_decoders[row];
  KL_MACHINE_TOPICS(X)
#undef X
  return NULL;
}

// --- findings -----------------------------------------------------------------------------------------------------

static void failed(kl_decoder *d, kiln_status s, const char *fmt, va_list ap) {
  kl_sb instr;
  kl_sb_init(&instr, d->cx);
  char message[512];
  vsnprintf(message, sizeof message, fmt, ap);
  if (d->i) kl_ptx_put_instr(&instr, d->loaded->ptx, d->f, d->i);
  kl_fail(d->cx, s, d->i ? kl_ptx_span(d->loaded->ptx, d->i->at) : KL_NOWHERE, "%s%s%s", message, instr.n ? ": " : "",
          instr.n ? instr.p : "");
  if (!d->status) d->status = s;
  d->findings++;
  kl_sb_free(&instr);
}

void kl_d_invalid(kl_decoder *d, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  failed(d, KILN_E_INVALID, fmt, ap);
  va_end(ap);
}

void kl_d_unsupported(kl_decoder *d, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  failed(d, KILN_E_UNSUPPORTED, fmt, ap);
  va_end(ap);
}

// --- ops ----------------------------------------------------------------------------------------------------------

kl_sim_op *kl_d_op(kl_decoder *d, kl_run *run) {
  kl_sim_op *op = kl_d_machine_op(d, run);
  d->ops.p[d->ops.n - 1].form = d->match.form;
  return op;
}

kl_sim_op *kl_d_machine_op(kl_decoder *d, kl_run *run) {
  kl_sim_op op = {.run = run, .d = KL_NO_REF, .e = KL_NO_REF, .index = d->index};
  VEC_PUSH(d->cx, &d->ops, ((kl_made_op){op, NULL}));
  return &d->ops.p[d->ops.n - 1].op;
}

uint32_t kl_d_function(const kl_decoder *d, uint32_t function) {
  uint32_t alias = d->loaded->ptx->funcs[function].alias;
  return alias ? alias - 1 : function;
}

// What is done in place of a guard on the instruction itself: a branch around what moves control, a mask for the rest.
static bool guards_itself(const kl_decoder *d) {
  return kl_str_is(d->i->opcode, "bra");
}

static bool moves_control(const kl_decoder *d) {
  uint8_t unit = d->match.form->unit;
  bool meets = unit == KL_UNIT_MEMORY && kl_isa_has(d->i, "sync");
  return unit == KL_UNIT_CONTROL || unit == KL_UNIT_SYNC || unit == KL_UNIT_WARP || meets;
}

static void put_after(kl_decoder *d) {
  for (size_t k = 0; k < d->after.n; k++) VEC_PUSH(d->cx, &d->ops, d->after.p[k]);
  d->after.n = 0;
}

static void decode_one(kl_decoder *d) {
  kl_decode_fn *decode = decoder_of(d->match.topic, d->match.row);
  size_t guard = d->ops.n;
  bool guarded = d->i->guard && !guards_itself(d), around = guarded && moves_control(d);
  if (guarded) {
    kl_sim_op *op = kl_d_machine_op(d, around ? kl_x_branch : kl_x_guard);
    op->a = d->reg_at[d->i->guard - 1];
    op->flags = d->i->guard_negated != around ? KL_NOT_C : 0;
  }
  size_t begin = d->ops.n;
  decode(d);
  put_after(d);
  if (d->ops.n == begin) kl_d_op(d, kl_x_nothing); // what has no effect here is executed all the same
  if (guarded && !around) kl_d_machine_op(d, kl_x_unguard);
  if (guarded) d->ops.p[guard].op.imm = around ? d->ops.n : d->ops.n - guard - 1;
}

static void decode_instr(kl_decoder *d, const kl_ptx_instr *i) {
  d->i = i;
  d->temporaries = d->frame;
  d->match = kl_isa_match(d->isa, i);
  if (!d->match.form) {
    if (d->match.refused)
      kl_d_unsupported(d, "%s is not simulated, it belongs to %s", d->match.refused->name, d->match.refused->part_of);
    else
      kl_d_unsupported(d, d->match.known_opcode ? "this form of the instruction is not simulated"
                                                : "this instruction is not simulated");
    return;
  }
  if (i->guard && kl_ptx_type_bits[kl_ptx_register_type(d->f, i->guard - 1)] != 1) {
    kl_d_invalid(d, "the guard is no predicate");
    return;
  }
  decode_one(d);
}

// --- places -------------------------------------------------------------------------------------------------------

// The most bytes that any call gives for its last parameter, which may be an array without a size.
static uint64_t most_given(const kl_ptx_module *m) {
  uint64_t most = 0;
  for (uint32_t k = 0; k < m->nfuncs; k++)
    for (uint32_t n = 0; n < m->funcs[k].ninstrs; n++) {
      const kl_ptx_instr *i = &m->funcs[k].instrs[n];
      for (uint32_t o = 0; kl_str_is(i->opcode, "call") && o < i->noperands; o++) {
        const kl_ptx_operand *list = &i->operands[o];
        if (list->kind != KL_PTX_LIST || !list->nitems) continue;
        const kl_ptx_operand *last = &list->items[list->nitems - 1];
        uint64_t bytes = last->kind == KL_PTX_LOCALVAR ? m->funcs[k].vars[last->index].bytes : 0;
        if (bytes > most) most = bytes;
      }
    }
  return most;
}

// Variables of the function: kernel parameters by the driver's layout, the rest in the stack frame, results and
// parameters of functions first, where callers put them. Shared variables are the kernel's.
static void place_variables(kl_decoder *d) {
  uint32_t *at = KL_NEW_N(d->arena, uint32_t, d->f->nvars), stack = 0;
  d->code->var_at = at;
  for (uint32_t k = 0; k < d->f->nvars; k++) {
    const kl_ptx_var *v = &d->f->vars[k];
    uint32_t align = kl_d_alignment(v);
    bool is_param = k < d->f->nreturns + d->f->nparams;
    if (d->f->entry && is_param) {
      at[k] = d->kernel->param_at[k - d->f->nreturns];
    } else if (v->space == KL_PTX_SHARED) {
      at[k] = d->kernel->shared_of[d->code->function][k];
    } else {
      uint64_t bytes = is_param && !v->bytes ? most_given(d->loaded->ptx) : v->bytes;
      if (bytes > KL_MOST_STACK || stack + bytes > KL_MOST_STACK) {
        kl_fail(d->cx, d->status = KILN_E_UNSUPPORTED, kl_ptx_span(d->loaded->ptx, v->at),
                "%.*s does not fit a thread's stack of %d bytes", KL_FMT(v->name), KL_MOST_STACK);
        return;
      }
      stack = (stack + align - 1) / align * align;
      at[k] = stack;
      stack += (uint32_t)bytes;
    }
  }
  if (stack > KL_MOST_STACK) // by alignment
    kl_fail(d->cx, d->status = KILN_E_UNSUPPORTED, kl_ptx_span(d->loaded->ptx, d->f->at),
            "the variables of %.*s do not fit a thread's stack of %d bytes", KL_FMT(d->f->name), KL_MOST_STACK);
  d->code->stack_bytes = (stack + 15) / 16 * 16;
}

// --- labels -------------------------------------------------------------------------------------------------------

// Labels to ops: `first` has the first op of every instruction, and the end.
static void resolve_labels(kl_decoder *d, const uint32_t *first) {
  for (size_t k = 0; k < d->labelled.n; k++) {
    kl_sim_op *op = &d->ops.p[d->labelled.p[k]].op;
    if (op->run == kl_x_branch) {
      op->imm = first[d->f->labels[op->imm].at];
      continue;
    }
    kl_jump_table *t = (kl_jump_table *)(uintptr_t)op->imm;
    for (uint32_t n = 0; n < t->n; n++) t->ops[n] = first[d->f->labels[t->ops[n]].at];
  }
}

static void release(kl_decoder *d) {
  VEC_FREE(d->cx, &d->ops);
  VEC_FREE(d->cx, &d->constants);
  VEC_FREE(d->cx, &d->labelled);
  VEC_FREE(d->cx, &d->after);
  VEC_FREE(d->cx, &d->results);
}

// So many of a function are enough to see what is wrong.
enum { MOST_FINDINGS = 100 };

kiln_status kl_decode_function(kl_ctx *cx, kl_isa_index *isa, kl_kernel *k, uint32_t function, kl_code **out) {
  kl_decoder d = {.cx = cx,
                  .loaded = k->of,
                  .kernel = k,
                  .f = &k->of->ptx->funcs[function],
                  .arena = &k->of->arena,
                  .set = kl_lanes_best(),
                  .isa = isa};
  d.code = KL_NEW(d.arena, kl_code);
  d.code->func = d.f;
  d.code->function = function;
  kl_d_place_registers(&d);
  if (!d.status) place_variables(&d);
  if (d.status) {
    release(&d);
    return d.status;
  }
  uint32_t *first = KL_NEW_N(d.arena, uint32_t, d.f->ninstrs + 1);
  d.kept_end = d.code->stack_bytes;
  kl_d_begin(&d);
  for (uint32_t n = 0; n < d.f->ninstrs && d.findings < MOST_FINDINGS; n++) {
    first[n] = (uint32_t)d.ops.n;
    d.index = n;
    decode_instr(&d, &d.f->instrs[n]);
  }
  d.i = NULL;
  d.index = d.f->ninstrs ? d.f->ninstrs - 1 : 0;
  first[d.f->ninstrs] = (uint32_t)d.ops.n;
  kl_d_end(&d);
  if (!d.status) resolve_labels(&d, first);
  if (!d.status) kl_d_find_runs(&d);
  d.code->nops = (uint32_t)d.ops.n;
  d.code->ops = KL_NEW_N(d.arena, kl_sim_op, d.ops.n);
  const kl_form **forms = KL_NEW_N(d.arena, const kl_form *, d.ops.n);
  for (size_t n = 0; n < d.ops.n; n++) d.code->ops[n] = d.ops.p[n].op, forms[n] = d.ops.p[n].form;
  d.code->forms = forms;
  char *constants = kl_arena_alloc(d.arena, d.constants.n + 64);
  d.code->constants = constants + (64 - (uintptr_t)constants % 64) % 64;
  if (d.constants.n) memcpy(d.code->constants, d.constants.p, d.constants.n);
  d.code->stack_bytes = (uint32_t)((d.kept_end + 15) / 16 * 16);
  d.code->reg_at = d.reg_at;
  d.code->frame_bytes = d.most;
  *out = d.code;
  release(&d);
  return d.status;
}
