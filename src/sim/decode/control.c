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

// Where an argument or result lies in the caller's stack frame.
static bool transfer(kl_decoder *d, const kl_ptx_operand *o, const kl_ptx_var *formal, uint64_t callee,
                     kl_transfer *out) {
  if (o->kind != KL_PTX_LOCALVAR || d->f->vars[o->index].space != KL_PTX_PARAM || o->offset ||
      is_kernel_parameter(d, o->index)) {
    kl_d_unsupported(d, "arguments and results of calls are .param variables here");
    return false;
  }
  const kl_ptx_var *v = &d->f->vars[o->index];
  uint64_t bytes = formal->bytes;
  if (v->bytes != bytes) {
    kl_d_invalid(d, "%.*s has %llu bytes, where the function has %llu", KL_FMT(v->name), (unsigned long long)v->bytes,
                 (unsigned long long)bytes);
    return false;
  }
  if (callee > KL_MOST_STACK || bytes > KL_MOST_STACK - callee) {
    kl_d_unsupported(d, "the values of the call do not fit a thread's stack of %d bytes", KL_MOST_STACK);
    return false;
  }
  *out = (kl_transfer){d->code->var_at[o->index], (uint32_t)callee, (uint32_t)bytes};
  return true;
}

// Where results and parameters lie in a callee's frame: one after the other, aligned.
static uint64_t place_next(uint64_t *at, const kl_ptx_var *v) {
  uint64_t align = v->align ? v->align : 1, here = (*at + align - 1) / align * align;
  *at = here + v->bytes;
  return here;
}

static bool transfers(kl_decoder *d, const kl_ptx_operand *list, const kl_ptx_var *formals, uint32_t n, uint64_t *at,
                      kl_transfer *out) {
  uint32_t given = list ? list->nitems : 0;
  if (given != n) {
    kl_d_invalid(d, "the function takes or gives %u values here, not %u", n, given);
    return false;
  }
  for (uint32_t k = 0; k < n; k++)
    if (!transfer(d, &list->items[k], &formals[k], place_next(at, &formals[k]), &out[k])) return false;
  return true;
}

static void call_to(kl_decoder *d, kl_call *c, const kl_ptx_operand *results, const kl_ptx_operand *arguments,
                    const kl_ptx_var *returns, uint32_t nreturns, const kl_ptx_var *params, uint32_t nparams) {
  uint64_t at = 0;
  kl_transfer *out = KL_NEW_N(d->arena, kl_transfer, nreturns + 1), *in = KL_NEW_N(d->arena, kl_transfer, nparams + 1);
  if (!transfers(d, results, returns, nreturns, &at, out) || !transfers(d, arguments, params, nparams, &at, in)) return;
  c->bytes = (uint32_t)at;
  c->in = in, c->nin = nparams;
  c->out = out, c->nout = nreturns;
  kl_sim_op *op = kl_d_op(d, kl_x_call);
  op->imm = (uint64_t)(uintptr_t)c;
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
  if (f->entry || f->register_params) {
    kl_d_unsupported(d, f->entry ? "kernels cannot be called"
                                 : "functions with parameters in registers are not simulated");
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

void kl_d_ret(kl_decoder *d) {
  if (kl_d_count(d, 0, 0)) kl_d_op(d, d->f->entry ? kl_x_exit : kl_x_ret);
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
