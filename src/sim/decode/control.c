// Branches, calls, and what ends threads.

#include "sim/decode/decode.h"

// The guard of a branch is its condition.
void kl_d_branch(kl_decoder *d) {
  if (!kl_d_count(d, 1, 1)) return;
  const kl_ptx_operand *o = &d->i->operands[0];
  if (o->kind != KL_PTX_LABEL) {
    kl_d_invalid(d, "expected a label");
    return;
  }
  kl_sim_op *op = kl_d_op(d, kl_x_branch);
  op->a = d->i->guard ? d->reg_at[d->i->guard - 1] : KL_NO_REF;
  op->flags = d->i->guard_negated ? KL_NOT_C : 0;
  op->imm = o->index;
  VEC_PUSH(d->cx, &d->labelled, (uint32_t)(d->ops.n - 1));
}

void kl_d_branch_idx(kl_decoder *d) {
  if (!kl_d_count(d, 2, 2)) return;
  const kl_ptx_operand *o = &d->i->operands[1];
  if (o->kind != KL_PTX_TABLE || d->f->tables[o->index].kind != KL_PTX_BRANCHTARGETS) {
    kl_d_invalid(d, "expected a list of labels, made with .branchtargets");
    return;
  }
  const kl_ptx_table *t = &d->f->tables[o->index];
  kl_jump_table *jumps = kl_arena_alloc(d->arena, sizeof *jumps + t->n * sizeof *jumps->ops);
  jumps->n = t->n;
  memcpy(jumps->ops, t->targets, t->n * sizeof *jumps->ops); // labels until the end
  kl_ref a = kl_d_source(d, &d->i->operands[0], 32, false, NULL);
  kl_sim_op *op = kl_d_op(d, kl_x_branch_table);
  op->a = a;
  op->imm = (uint64_t)(uintptr_t)jumps;
  VEC_PUSH(d->cx, &d->labelled, (uint32_t)(d->ops.n - 1));
}

// --- calls --------------------------------------------------------------------------------------------------------

// What the machine does itself in place of functions that are declared and nowhere defined.
static bool is_builtin(kl_decoder *d, kl_str name) {
  if (kl_str_is(name, "vprintf")) {
    kl_warn(d->cx, kl_ptx_span(d->loaded->ptx, d->i->at), "vprintf prints nothing here");
    return true;
  }
  if (kl_str_is(name, "__assertfail") || kl_str_is(name, "__assert_fail")) {
    kl_d_op(d, kl_x_trap);
    return true;
  }
  return false;
}

static bool is_kernel_parameter(const kl_decoder *d, uint32_t var) {
  return d->f->entry && var < d->f->nreturns + d->f->nparams;
}

// Where results and parameters lie in a function's stack frame: one after the other, aligned.
static uint64_t place_next(uint64_t *at, const kl_ptx_var *v) {
  uint64_t align = kl_d_alignment(v), here = (*at + align - 1) / align * align;
  *at = here + v->bytes;
  return here;
}

// A register's value goes to the stack frame, or comes from there.
static void keep(kl_decoder *d, kl_ref reg, uint32_t at, uint64_t bytes, bool store) {
  kl_sim_access *m = KL_NEW(d->arena, kl_sim_access);
  *m = (kl_sim_access){.where = KL_AT_STACK,
                       .bytes = (uint8_t)bytes,
                       .count = 1,
                       .store = store,
                       .frame = true,
                       .base = KL_NO_REF,
                       .offset = at,
                       .regs = {reg},
                       .reg_bytes = {(uint8_t)(bytes < 2 ? 2 : bytes)}};
  kl_d_machine_op(d, store ? kl_x_store : kl_x_load)->imm = (uint64_t)(uintptr_t)m;
}

static bool is_value(kl_decoder *d, const kl_ptx_var *formal) {
  if (formal->bytes && kl_ptx_type_bits[formal->type] == 8 * formal->bytes) return true;
  if (kl_ptx_type_bits[formal->type] == 1) {
    kl_d_unsupported(d, "%.*s is a predicate: functions take and give numbers only", KL_FMT(formal->name));
    return false;
  }
  kl_d_invalid(d, "%.*s takes a variable in .param, no register or number", KL_FMT(formal->name));
  return false;
}

// An argument or result that is no variable: the caller keeps it in its frame, behind all variables.
static bool transfer_value(kl_decoder *d, const kl_ptx_operand *o, const kl_ptx_var *formal, bool in, uint64_t *at,
                           kl_transfer *out) {
  unsigned bits = formal->bytes < 2 ? 16 : 8 * (unsigned)formal->bytes;
  if (!is_value(d, formal)) return false;
  uint32_t here = (uint32_t)place_next(at, formal);
  kl_ref ref = in ? kl_d_source(d, o, bits, false, NULL) : kl_d_target(d, o, bits, false, false);
  if (d->status) return false;
  out->caller = here;
  if (in)
    keep(d, ref, here, formal->bytes, true);
  else
    VEC_PUSH(d->cx, &d->results, ((kl_result){ref, here, (uint32_t)formal->bytes}));
  return true;
}

static bool transfer_variable(kl_decoder *d, const kl_ptx_operand *o, const kl_ptx_var *formal, kl_transfer *out) {
  const kl_ptx_var *v = &d->f->vars[o->index];
  if (v->space != KL_PTX_PARAM || v->reg || o->offset || is_kernel_parameter(d, o->index)) {
    kl_d_unsupported(d, "%.*s is no register, number or variable in .param of the caller's", KL_FMT(v->name));
    return false;
  }
  if (v->bytes != formal->bytes && formal->bytes) {
    kl_d_invalid(d, "%.*s has %llu bytes, where the function has %llu", KL_FMT(v->name), (unsigned long long)v->bytes,
                 (unsigned long long)formal->bytes);
    return false;
  }
  out->caller = d->code->var_at[o->index];
  return true;
}

// From the caller's frame, in which values are kept from `kept` on, to the callee's, or back. A last parameter without
// a size takes what it is given, up to `at`.
static bool transfer(kl_decoder *d, const kl_ptx_operand *o, const kl_ptx_var *formal, bool in, uint64_t *at,
                     uint64_t *kept, kl_transfer *out) {
  uint64_t callee = place_next(at, formal), bytes = formal->bytes;
  if (!bytes && o->kind == KL_PTX_LOCALVAR) *at += bytes = d->f->vars[o->index].bytes;
  if (callee > KL_MOST_STACK || bytes > KL_MOST_STACK - callee || *kept + bytes > KL_MOST_STACK) {
    kl_d_unsupported(d, "the values of the call do not fit a thread's stack of %d bytes", KL_MOST_STACK);
    return false;
  }
  *out = (kl_transfer){.callee = (uint32_t)callee, .bytes = (uint32_t)bytes};
  return o->kind == KL_PTX_LOCALVAR ? transfer_variable(d, o, formal, out)
                                    : transfer_value(d, o, formal, in, kept, out);
}

static bool transfers(kl_decoder *d, const kl_ptx_operand *list, const kl_ptx_var *formals, uint32_t n, bool in,
                      uint64_t *at, uint64_t *kept, kl_transfer *out) {
  uint32_t given = list ? list->nitems : 0;
  if (given != n) {
    kl_d_invalid(d, "the function takes or gives %u values here, not %u", n, given);
    return false;
  }
  for (uint32_t k = 0; k < n; k++)
    if (!transfer(d, &list->items[k], &formals[k], in, at, kept, &out[k])) return false;
  return true;
}

static void call_to(kl_decoder *d, kl_call *c, const kl_ptx_operand *results, const kl_ptx_operand *arguments,
                    const kl_ptx_var *returns, uint32_t nreturns, const kl_ptx_var *params, uint32_t nparams) {
  uint64_t at = 0, kept = d->code->stack_bytes;
  kl_transfer *out = KL_NEW_N(d->arena, kl_transfer, nreturns + 1), *in = KL_NEW_N(d->arena, kl_transfer, nparams + 1);
  d->results.n = 0;
  if (!transfers(d, results, returns, nreturns, false, &at, &kept, out) ||
      !transfers(d, arguments, params, nparams, true, &at, &kept, in))
    return;
  if (kept > d->kept_end) d->kept_end = kept;
  c->bytes = (uint32_t)at;
  c->in = in, c->nin = nparams;
  c->out = out, c->nout = nreturns;
  kl_sim_op *op = kl_d_op(d, kl_x_call);
  op->imm = (uint64_t)(uintptr_t)c;
  for (size_t k = 0; k < d->results.n; k++)
    keep(d, d->results.p[k].reg, d->results.p[k].at, d->results.p[k].bytes, false);
}

static const kl_ptx_var *parameters_of(const kl_ptx_func *f) {
  return f->nparams ? f->vars + f->nreturns : NULL;
}

static void direct_call(kl_decoder *d, uint32_t function, const kl_ptx_operand *results,
                        const kl_ptx_operand *arguments) {
  function = kl_d_function(d, function);
  const kl_ptx_func *f = &d->loaded->ptx->funcs[function];
  if (!f->defined) {
    if (!is_builtin(d, f->name)) kl_d_unsupported(d, "the function %.*s is declared, but not defined", KL_FMT(f->name));
    return;
  }
  if (f->entry) {
    kl_d_unsupported(d, "kernels cannot be called");
    return;
  }
  kl_call *c = KL_NEW(d->arena, kl_call);
  c->code = &d->kernel->codes[function];
  call_to(d, c, results, arguments, f->vars, f->nreturns, parameters_of(f), f->nparams);
}

void kl_d_call(kl_decoder *d) {
  if (!kl_d_count(d, 1, 4)) return;
  const kl_ptx_operand *o = d->i->operands, *end = o + d->i->noperands;
  const kl_ptx_operand *results = o < end && o->kind == KL_PTX_LIST ? o++ : NULL;
  const kl_ptx_operand *target = o < end ? o++ : NULL;
  const kl_ptx_operand *arguments = o < end && o->kind == KL_PTX_LIST ? o++ : NULL;
  const kl_ptx_operand *table = o < end && o->kind == KL_PTX_TABLE ? o++ : NULL;
  if (!target || o != end) {
    kl_d_invalid(d, "expected (results), function, (arguments)");
    return;
  }
  if (target->kind == KL_PTX_FUNCTION) {
    direct_call(d, target->index, results, arguments);
    return;
  }
  unsigned bits = kl_d_register_bits(d, target);
  if (!table || target->kind != KL_PTX_REG || (bits != 64 && bits != 32)) {
    kl_d_invalid(d, "a call of what a register says needs a list of targets or a prototype");
    return;
  }
  const kl_ptx_table *t = &d->f->tables[table->index];
  const kl_ptx_var *returns = t->returns, *params = t->params;
  uint32_t nreturns = t->nreturns, nparams = t->nparams;
  for (uint32_t k = 0; t->kind == KL_PTX_CALLTARGETS && k < t->n; k++) {
    const kl_ptx_func *f = &d->loaded->ptx->funcs[t->targets[k]];
    returns = f->vars, params = parameters_of(f);
    nreturns = f->nreturns, nparams = f->nparams;
  }
  kl_call *c = KL_NEW(d->arena, kl_call);
  c->target = d->reg_at[target->index];
  c->target_bytes = (uint8_t)(bits / 8);
  call_to(d, c, results, arguments, returns, nreturns, params, nparams);
}

// Between the registers that a function's parameters (`in`) or results are and its stack frame.
static void keep_all(kl_decoder *d, bool in) {
  const kl_ptx_func *f = d->f;
  uint32_t first = in ? f->nreturns : 0, n = in ? f->nparams : f->nreturns;
  for (uint32_t k = first; !f->entry && k < first + n; k++) {
    const kl_ptx_var *v = &f->vars[k];
    if (v->reg && is_value(d, v)) keep(d, d->reg_at[v->reg - 1], d->code->var_at[k], v->bytes, !in);
  }
}

void kl_d_begin(kl_decoder *d) {
  keep_all(d, true);
}

void kl_d_end(kl_decoder *d) {
  keep_all(d, false);
  kl_d_machine_op(d, d->f->entry ? kl_x_exit : kl_x_ret);
}

void kl_d_ret(kl_decoder *d) {
  if (!kl_d_count(d, 0, 0)) return;
  keep_all(d, false);
  kl_d_op(d, d->f->entry ? kl_x_exit : kl_x_ret);
}

void kl_d_exit(kl_decoder *d) {
  if (kl_d_count(d, 0, 0)) kl_d_op(d, kl_x_exit);
}

void kl_d_trap(kl_decoder *d) {
  if (kl_d_count(d, 0, 0)) kl_d_op(d, kl_x_trap);
}

void kl_d_nanosleep(kl_decoder *d) {
  if (kl_d_count(d, 1, 1)) kl_d_op(d, kl_x_sleep);
}

void kl_d_setmaxnreg(kl_decoder *d) {
  kl_d_count(d, 1, 1);
}

// --- the stack ----------------------------------------------------------------------------------------------------

void kl_d_alloca(kl_decoder *d) {
  unsigned bits = kl_isa_type_at(d->i, 0).bits;
  uint64_t align = 8;
  if (!kl_d_count(d, 2, 3)) return;
  const kl_ptx_operand *o = d->i->operands;
  if (d->i->noperands > 2) align = o[2].bits;
  if ((d->i->noperands > 2 && o[2].kind != KL_PTX_INT) || align == 0 || align > 4096 || (align & (align - 1)) != 0) {
    kl_d_invalid(d, "expected an alignment: a power of two of at most 4096");
    return;
  }
  kl_ref size = kl_d_source(d, &o[1], bits, false, NULL), to = kl_d_target(d, &o[0], bits, false, false);
  if (d->status) return;
  d->kernel->has_stack = true;
  kl_sim_op *op = kl_d_op(d, bits == 64 ? kl_x_alloca_64 : kl_x_alloca_32);
  op->d = to;
  op->a = size;
  op->imm = align;
}

void kl_d_stacksave(kl_decoder *d) {
  unsigned bits = kl_isa_type_at(d->i, 0).bits;
  if (!kl_d_count(d, 1, 1)) return;
  kl_ref to = kl_d_target(d, &d->i->operands[0], bits, false, false);
  if (d->status) return;
  kl_d_op(d, bits == 64 ? kl_x_stacksave_64 : kl_x_stacksave_32)->d = to;
}

void kl_d_stackrestore(kl_decoder *d) {
  unsigned bits = kl_isa_type_at(d->i, 0).bits;
  if (!kl_d_count(d, 1, 1)) return;
  kl_ref from = kl_d_source(d, &d->i->operands[0], bits, false, NULL);
  if (d->status) return;
  kl_d_op(d, bits == 64 ? kl_x_stackrestore_64 : kl_x_stackrestore_32)->a = from;
}
