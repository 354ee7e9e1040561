#include "sim/isa/needs.h"

#include "sim/isa/match.h"

static uint32_t operands(const kl_ptx_instr *i) {
  return i->noperands;
}

static bool has(const kl_ptx_instr *i, const char *mod) {
  return kl_isa_has(i, mod);
}

// Of all elements.
static unsigned bits(const kl_ptx_instr *i) {
  return kl_isa_type_at(i, 0).bits * (has(i, "v8") ? 8 : has(i, "v4") ? 4 : has(i, "v2") ? 2 : 1);
}

// Is the opcode one of these, which spaces separate?
static bool is_one_of(kl_str opcode, const char *names) {
  while (*names) {
    size_t n = strcspn(names, " ");
    if (kl_str_eq(opcode, (kl_str){names, n})) return true;
    names += n + (names[n] == ' ');
  }
  return false;
}

static const struct {
  const char *opcodes;
  kl_need need;
} rows[] = {
#define X(what, opcodes, which, version, sm, targets, section)                                                         \
  {opcodes, {what, section, version, sm, KL_HAVE_##targets}},
    KL_ISA_NEEDS(X)
#undef X
};

static bool applies(size_t row, const kl_ptx_instr *i) {
  size_t k = 0;
#define X(what, opcodes, which, ...)                                                                                   \
  if (row == k++) return is_one_of(i->opcode, opcodes) && (which);
  KL_ISA_NEEDS(X)
#undef X
  return false;
}

static bool is_met(const kl_need *n, const kl_ptx_module *m) {
  if (m->version < n->version) return false;
  switch ((kl_having)n->having) {
  case KL_HAVE_LATER: return m->sm >= n->sm;
  case KL_HAVE_OWN: return (m->sm == 100 || m->sm == 103) && m->variant == 'a';
  case KL_HAVE_SPECIFIC: return (m->sm == 90 && m->variant == 'a') || (m->sm >= 100 && m->variant);
  }
  return false;
}

const kl_need *kl_isa_lacking(const kl_ptx_module *m, const kl_ptx_instr *i) {
  for (size_t k = 0; k < KL_COUNT(rows); k++)
    if (applies(k, i) && !is_met(&rows[k].need, m)) return &rows[k].need;
  return NULL;
}

const char *kl_need_targets(const kl_need *n) {
  switch ((kl_having)n->having) {
  case KL_HAVE_LATER: return "sm_100 or later";
  case KL_HAVE_OWN: return "sm_100a or sm_103a";
  case KL_HAVE_SPECIFIC: break;
  }
  return "sm_90a, or sm_100a, sm_100f or later ones of these kinds";
}
