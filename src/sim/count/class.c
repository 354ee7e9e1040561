// What an instruction is, by its row of the table and its opcode.

#include "sim/count/collect.h"
#include "sim/isa/match.h"

// --- names ----------------------------------------------------------------------------------------------------------

static const char *const class_names[] = {
    [KILN_CLASS_INTEGER] = "integer",
    [KILN_CLASS_MULTIPLY] = "integer multiply",
    [KILN_CLASS_F32_FMA] = "f32 fma",
    [KILN_CLASS_F32_ADD] = "f32 add",
    [KILN_CLASS_F32_MULTIPLY] = "f32 multiply",
    [KILN_CLASS_F32_OTHER] = "f32 other",
    [KILN_CLASS_F64_FMA] = "f64 fma",
    [KILN_CLASS_F64_ADD] = "f64 add",
    [KILN_CLASS_F64_MULTIPLY] = "f64 multiply",
    [KILN_CLASS_F64_OTHER] = "f64 other",
    [KILN_CLASS_HALF_FMA] = "half fma",
    [KILN_CLASS_HALF_ADD] = "half add",
    [KILN_CLASS_HALF_MULTIPLY] = "half multiply",
    [KILN_CLASS_HALF_OTHER] = "half other",
    [KILN_CLASS_CONVERT] = "convert",
    [KILN_CLASS_SPECIAL] = "special",
    [KILN_CLASS_LOAD] = "load",
    [KILN_CLASS_STORE] = "store",
    [KILN_CLASS_ATOMIC] = "atomic",
    [KILN_CLASS_BRANCH] = "branch",
    [KILN_CLASS_CONTROL] = "control",
    [KILN_CLASS_BARRIER] = "barrier",
    [KILN_CLASS_FENCE] = "fence",
    [KILN_CLASS_WARP] = "warp",
};

const char *kiln_profile_class_name(kiln_profile_class c) {
  return (unsigned)c < KILN_CLASS_COUNT ? class_names[c] : NULL;
}

static const char *const access_names[] = {
    [KILN_ACCESS_GLOBAL_LOAD] = "global load",     [KILN_ACCESS_GLOBAL_STORE] = "global store",
    [KILN_ACCESS_GLOBAL_ATOMIC] = "global atomic", [KILN_ACCESS_LOCAL_LOAD] = "local load",
    [KILN_ACCESS_LOCAL_STORE] = "local store",     [KILN_ACCESS_SHARED_LOAD] = "shared load",
    [KILN_ACCESS_SHARED_STORE] = "shared store",   [KILN_ACCESS_SHARED_ATOMIC] = "shared atomic",
    [KILN_ACCESS_CONSTANT] = "constant",
};

const char *kiln_access_kind_name(kiln_access_kind k) {
  return (unsigned)k < KILN_ACCESS_COUNT ? access_names[k] : NULL;
}

// --- classes --------------------------------------------------------------------------------------------------------

typedef enum arithmetic { FMA, ADD, MUL, OTHER } arithmetic;

static arithmetic arithmetic_of(kl_str opcode) {
  if (kl_str_is(opcode, "fma") || kl_str_is(opcode, "mad")) return FMA;
  if (kl_str_is(opcode, "add") || kl_str_is(opcode, "sub")) return ADD;
  return kl_str_is(opcode, "mul") ? MUL : OTHER;
}

static kiln_profile_class of_memory(kl_str opcode) {
  return kl_str_is(opcode, "st") || kl_str_is(opcode, "stmatrix") ? KILN_CLASS_STORE : KILN_CLASS_LOAD;
}

static kiln_profile_class of_sync(const kl_ptx_instr *i) {
  if (kl_str_is(i->opcode, "membar") || kl_str_is(i->opcode, "fence")) return KILN_CLASS_FENCE;
  if (kl_str_is(i->opcode, "griddepcontrol")) return KILN_CLASS_CONTROL;
  return kl_isa_has(i, "warp") ? KILN_CLASS_WARP : KILN_CLASS_BARRIER;
}

kiln_profile_class kl_class_of(kl_isa_index *isa, const kl_ptx_instr *i) {
  kl_match m = kl_isa_match(isa, i);
  unsigned which = arithmetic_of(i->opcode);
  switch ((kl_unit)(m.form ? m.form->unit : KL_UNIT_INTEGER)) {
  case KL_UNIT_INTEGER: return KILN_CLASS_INTEGER;
  case KL_UNIT_MULTIPLY: return KILN_CLASS_MULTIPLY;
  case KL_UNIT_FLOAT: return (kiln_profile_class)(KILN_CLASS_F32_FMA + which);
  case KL_UNIT_DOUBLE: return (kiln_profile_class)(KILN_CLASS_F64_FMA + which);
  case KL_UNIT_HALF: return (kiln_profile_class)(KILN_CLASS_HALF_FMA + which);
  case KL_UNIT_CONVERT: return KILN_CLASS_CONVERT;
  case KL_UNIT_SPECIAL: return KILN_CLASS_SPECIAL;
  case KL_UNIT_MEMORY: return of_memory(i->opcode);
  case KL_UNIT_ATOMIC: return KILN_CLASS_ATOMIC;
  case KL_UNIT_CONTROL:
    return kl_str_is(i->opcode, "bra") || kl_str_is(i->opcode, "brx") ? KILN_CLASS_BRANCH : KILN_CLASS_CONTROL;
  case KL_UNIT_SYNC: return of_sync(i);
  case KL_UNIT_WARP: return KILN_CLASS_WARP;
  }
  return KILN_CLASS_INTEGER;
}

unsigned kl_flops_of(kiln_profile_class c, const kl_ptx_instr *i) {
  if (c < KILN_CLASS_F32_FMA || c > KILN_CLASS_HALF_OTHER) return 0;
  unsigned which = (c - KILN_CLASS_F32_FMA) % 4;
  bool pair = kl_isa_has(i, "f32x2") || kl_isa_has(i, "f16x2") || kl_isa_has(i, "bf16x2");
  return (which == FMA ? 2u : which == OTHER ? 0u : 1u) << pair;
}
