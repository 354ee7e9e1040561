// Checks of whole computations and modules.
#include "ir/rules/rules.h"

// Can the instruction be looked at? Not if an operand's or a callee's shape is unknown, after an earlier finding.
static bool is_known(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  for (uint32_t i = 0; i < in->noperands; i++)
    if (!kl_operand(c, in, i)->shape) return false;
  for (uint32_t k = 0; k < in->ncalled; k++) {
    const kl_comp *callee = &m->comp[in->called[k]];
    if (callee->ninstr == 0 || !kl_root(callee)->shape) return false;
    for (uint32_t i = 0; i < callee->nparams; i++)
      if (!callee->instr[callee->params[i]].shape) return false;
  }
  return true;
}

kiln_status kl_check_computation(kiln_module *m, kl_comp *c, const bool *skip) {
  kiln_status status = KILN_OK;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    kl_instr *in = &c->instr[i];
    if ((skip && skip[i]) || !is_known(m, c, in)) continue;
    const kl_shape *s = NULL;
    kl_complete(m, c, in);
    kiln_status one = kl_infer_shape(m, c, in, &s);
    if (one != KILN_OK) status = one;
    if (s) in->shape = s;
  }
  return status;
}

static bool check_operand_order(kiln_module *m, const kl_comp *c) {
  bool ok = true;
  for (uint32_t i = 0; i < c->ninstr; i++)
    for (uint32_t k = 0; k < c->instr[i].noperands; k++) {
      if (c->instr[i].operands[k] < i) continue;
      kl_invalid(m->cx, c->instr[i].span, "expected operand %u of '%.*s' to be defined before it, found it later", k,
                 KL_FMT(kl_symbol_text(&m->names, c->instr[i].name)));
      ok = false;
    }
  return ok;
}

// The list of parameters holds each number once, and no parameter is left out.
static bool check_params(kiln_module *m, const kl_comp *c) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    if (in->op != KL_OP_PARAMETER) continue;
    n++;
    if (in->number >= 0 && in->number < c->nparams && c->params[in->number] == i) continue;
    kl_invalid(m->cx, in->span, "parameter: expected each number from 0 to %lld once, found %lld",
               (long long)c->nparams - 1, (long long)in->number);
    return false;
  }
  if (n == c->nparams) return true;
  kl_invalid(m->cx, c->span, "expected %u parameters in '%.*s', found %u", c->nparams,
             KL_FMT(kl_symbol_text(&m->names, c->name)), n);
  return false;
}

// Callees come before their callers, so there is no recursion.
static bool check_calls(kiln_module *m, uint32_t comp) {
  const kl_comp *c = &m->comp[comp];
  bool ok = true;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    for (uint32_t k = 0; k < in->ncalled; k++) {
      if (in->called[k] < comp) continue;
      kl_invalid(m->cx, in->span, "%s: expected a computation that is complete before '%.*s', found %s",
                 kl_op_name(in->op), KL_FMT(kl_symbol_text(&m->names, c->name)),
                 in->called[k] == comp ? "itself" : "a later one or none");
      ok = false;
    }
  }
  return ok;
}

static bool check_form(kiln_module *m, uint32_t comp) {
  const kl_comp *c = &m->comp[comp];
  if (c->ninstr == 0 || c->root >= c->ninstr) {
    kl_invalid(m->cx, c->span, "expected a root among the instructions of '%.*s', found none",
               KL_FMT(kl_symbol_text(&m->names, c->name)));
    return false;
  }
  bool order = check_operand_order(m, c), params = check_params(m, c), calls = check_calls(m, comp);
  return order && params && calls;
}

kiln_status kl_verify(kiln_module *m) {
  kiln_status status = KILN_OK;
  if (m->ncomp == 0 || m->entry >= m->ncomp)
    return kl_invalid(m->cx, KL_NOWHERE, "expected a module with an entry computation, found none");
  for (uint32_t i = 0; i < m->ncomp; i++) {
    kiln_status one = check_form(m, i) ? kl_check_computation(m, &m->comp[i], NULL) : KILN_E_INVALID;
    if (one != KILN_OK) status = one;
  }
  return status;
}
