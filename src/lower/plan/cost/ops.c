// About how many instructions of SASS a step is, for each warp that does it: what ptxas makes of elementary functions
// is measured (tests/emit/cost.c holds them to it), the rest is by what the emitter writes.

#include "lower/plan/cost/impl.h"

// Instructions for an element: of f32, f64, and of f16 and bf16, which go in pairs. 0: as f32 does it, and its
// rounding.
typedef struct row {
  float f32, f64, f16, bf16;
} row;

static const row functions[KL_OP_COUNT] = {
    [KL_OP_EXP] = {17.5f, 43, 10, 5.6f},    [KL_OP_EXPM1] = {32.5f, 60, 0, 0},
    [KL_OP_EXP10] = {33.5f, 61, 0, 0},      [KL_OP_LOG] = {22, 77, 20, 8.6f},
    [KL_OP_LOG1P] = {48.5f, 96, 0, 0},      [KL_OP_LOGISTIC] = {25.5f, 56, 20, 8.8f},
    [KL_OP_TANH] = {28, 85, 15.8f, 9.6f},   [KL_OP_SINH] = {41, 76, 0, 0},
    [KL_OP_COSH] = {39, 71, 0, 0},          [KL_OP_ASINH] = {130, 238, 0, 0},
    [KL_OP_ACOSH] = {99, 202, 0, 0},        [KL_OP_ATANH] = {86, 167, 0, 0},
    [KL_OP_ERF] = {28, 101, 15.6f, 11.6f},  [KL_OP_SQRT] = {20.5f, 49, 3.5f, 5.5f},
    [KL_OP_RSQRT] = {13, 43, 2.5f, 5.5f},   [KL_OP_CBRT] = {33.5f, 49, 0, 0},
    [KL_OP_SIN] = {106, 273, 14.8f, 26.8f}, [KL_OP_COS] = {106, 270, 14.8f, 27.6f},
    [KL_OP_TAN] = {153, 332, 0, 0},         [KL_OP_ASIN] = {50, 132, 0, 0},
    [KL_OP_ACOS] = {53, 133, 0, 0},         [KL_OP_ATAN] = {65, 144, 0, 0},
    [KL_OP_DIVIDE] = {40, 68, 7.5f, 11},    [KL_OP_POWER] = {152, 268, 164, 163},
    [KL_OP_ATAN2] = {121, 242, 215, 214},   [KL_OP_REMAINDER] = {54, 115, 0, 0},
};

// Of a part where it is complex.
static double of_float(kl_dtype t, kl_op op) {
  const row *f = &functions[op];
  bool wide = t == KILN_F64;
  double n = wide ? f->f64 : f->f32;
  if (t == KILN_F16 && f->f16 > 0) n = f->f16;
  if (t == KILN_BF16 && f->bf16 > 0) n = f->bf16;
  if (n > 0) return n;
  bool pairs = t == KILN_F16 || t == KILN_BF16;
  return op == KL_OP_CLAMP ? (pairs ? 1 : 2) : pairs ? 0.5 : 1;
}

static double of_integer(kl_dtype t, kl_op op) {
  double words = kl_info(t)->bits > 32 ? 2 : 1;
  if (op == KL_OP_DIVIDE || op == KL_OP_REMAINDER) return words > 1 ? 70 : 20;
  if (op == KL_OP_MULTIPLY) return words > 1 ? 4 : 1;
  if (op == KL_OP_CLAMP) return 2 * words;
  return words;
}

static double of_op(kl_dtype from, kl_dtype to, kl_op op) {
  if (op == KL_OP_CONVERT) return kl_info(from)->bits < 32 && kl_is_float(from) && to == KILN_F32 ? 1 : 1.5;
  if (kl_is_complex(from)) {
    double n = of_float(kl_info(from)->part, op);
    return op == KL_OP_MULTIPLY ? 6 : n > 2 ? 4 * n : 2 * n;
  }
  return kl_is_float(from) ? of_float(from, op) : of_integer(from, op);
}

// Of each two words one goes to the other lane; elements of 4, 8 and 16 bits stand side by side in them.
int64_t kl_exchanged_words(const kl_body *b, const kl_step *s) {
  int64_t copies = kl_extent(b, s->regs), bits = kl_info(s->dtype)->bits, half = s->distance;
  for (uint32_t v = s->var + 1; v < b->nvars; v++)
    if (kl_has_var(s->regs, v)) half *= b->vars[v].extent;
  bool words = (bits == 4 || bits == 8 || bits == 16) && half * bits % 32 == 0;
  return (words ? copies * bits / 32 : copies * ((bits + 31) / 32)) / 2;
}

double kl_step_instructions(const kl_plan *p, const kl_body *b, const kl_step *s) {
  double copies = (double)kl_extent(b, s->regs), words = (kl_info(s->dtype)->bits + 31) / 32;
  switch (s->kind) {
  case KL_STEP_OP: return copies * of_op(s->noperands ? b->steps[s->operands[0]].dtype : s->dtype, s->dtype, s->op.op);
  case KL_STEP_CHOOSE: return copies * words * (s->noperands - 1);
  case KL_STEP_SPLIT:
  case KL_STEP_JOIN: return copies * words;
  case KL_STEP_IOTA: return 2 * copies;
  case KL_STEP_INDEX: return 3 * copies;
  case KL_STEP_LOAD: return p->slots[s->access.slot].by_value ? 1 : 3; // the address; its requests aside
  case KL_STEP_EXCHANGE: return 3 * (double)kl_exchanged_words(b, s);  // selections
  default: return 0;
  }
}
