// About how many instructions of SASS a step is, for each warp that does it: what ptxas makes of elementary functions
// is measured (tests/emit/cost.c holds them to it), the rest is by what the emitter writes.

#include "lower/plan/cost/impl.h"

// Instructions for an element: of f32, f64, and of f16 and bf16, which go in pairs. 0: as f32 does it, and its
// rounding.
typedef struct row {
  float f32, f64, f16, bf16;
} row;

static const row functions[KL_OP_COUNT] = {
    [KL_OP_EXP] = {16, 28, 10, 5},       [KL_OP_EXPM1] = {31, 43, 0, 0},     [KL_OP_EXP10] = {32, 44, 0, 0},
    [KL_OP_LOG] = {22, 52, 19, 8},       [KL_OP_LOG1P] = {48, 72, 0, 0},     [KL_OP_LOGISTIC] = {24, 40, 19, 8},
    [KL_OP_TANH] = {28, 60, 15, 9},      [KL_OP_SINH] = {40, 60, 0, 0},      [KL_OP_COSH] = {37, 52, 0, 0},
    [KL_OP_ASINH] = {108, 204, 0, 0},    [KL_OP_ACOSH] = {92, 180, 0, 0},    [KL_OP_ATANH] = {76, 144, 0, 0},
    [KL_OP_ERF] = {26, 96, 15, 11},      [KL_OP_SQRT] = {16, 28, 3, 5},      [KL_OP_RSQRT] = {12, 40, 2, 5},
    [KL_OP_CBRT] = {32, 48, 0, 0},       [KL_OP_SIN] = {104, 256, 14, 26},   [KL_OP_COS] = {104, 256, 14, 27},
    [KL_OP_TAN] = {126, 308, 0, 0},      [KL_OP_ASIN] = {48, 104, 0, 0},     [KL_OP_ACOS] = {50, 104, 0, 0},
    [KL_OP_ATAN] = {52, 124, 0, 0},      [KL_OP_DIVIDE] = {15, 28, 5, 7},    [KL_OP_POWER] = {132, 228, 156, 152},
    [KL_OP_ATAN2] = {84, 168, 192, 184}, [KL_OP_REMAINDER] = {36, 56, 0, 0},
};

// Of a kernel, for all elements together: numbers that are kept, and what is looked at once. What ptxas calls where a
// quotient or a root is not as most are is not among it.
static const row rest[KL_OP_COUNT] = {
    [KL_OP_DIVIDE] = {0, 0, 20, 28}, [KL_OP_ATAN2] = {0, 16, 47, 103}, [KL_OP_REMAINDER] = {87, 93, 216, 216},
    [KL_OP_ASINH] = {12, 0, 65, 20}, [KL_OP_ACOSH] = {6, 4, 43, 27},   [KL_OP_ATANH] = {0, 8, 20, 0},
    [KL_OP_ATAN] = {0, 0, 87, 12},   [KL_OP_POWER] = {0, 21, 63, 88},  [KL_OP_EXP] = {0, 30, 0, 0},
    [KL_OP_EXPM1] = {0, 30, 0, 0},   [KL_OP_EXP10] = {0, 30, 0, 0},    [KL_OP_LOGISTIC] = {0, 30, 0, 0},
    [KL_OP_SINH] = {0, 30, 0, 0},    [KL_OP_COSH] = {0, 35, 0, 0},     [KL_OP_LOG] = {0, 45, 0, 0},
    [KL_OP_LOG1P] = {0, 45, 0, 0},   [KL_OP_TANH] = {0, 45, 0, 0},     [KL_OP_ASIN] = {0, 12, 0, 0},
    [KL_OP_ACOS] = {0, 15, 0, 0},
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

static bool has_8_bit_conversion(kl_dtype t) {
  return t == KILN_F8E4M3FN || t == KILN_F8E5M2;
}

static double between_floats(kl_dtype from, kl_dtype to) {
  unsigned a = kl_info(from)->bits, b = kl_info(to)->bits;
  if (a < 16) return has_8_bit_conversion(from) ? (to == KILN_F16 ? 0.75 : 1.75) : 8;
  if (b < 16) return has_8_bit_conversion(to) ? (a == 32 ? 0.75 : 1.25) : 10;
  if (a == 64) return b == 32 ? 1 : 6;
  return a == b ? 1.5 : b == 16 ? 0.5 : 1; // two are rounded at once
}

static double of_convert(kl_dtype from, kl_dtype to) {
  unsigned b = kl_info(to)->bits;
  if (kl_is_complex(from) || kl_is_complex(to)) return 1;
  if (from == KILN_PRED || to == KILN_PRED) return 1;
  if (kl_is_float(from) && kl_is_float(to)) return between_floats(from, to);
  if (kl_is_float(to)) return b < 16 ? 8 : b == 16 ? 1.5 : 1;
  if (kl_is_float(from)) return b < 32 ? 2.75 : 2;
  return b == 64 ? 1 : 0.5;
}

static double of_op(kl_dtype from, kl_dtype to, kl_op op) {
  if (op == KL_OP_CONVERT) return of_convert(from, to);
  if (kl_is_complex(from)) {
    double n = of_float(kl_info(from)->part, op);
    return op == KL_OP_MULTIPLY ? 6 : n > 2 ? 4 * n : 2 * n;
  }
  return kl_is_float(from) ? of_float(from, op) : of_integer(from, op);
}

double kl_function_instructions(const kl_body *b, const kl_step *s) {
  return of_op(s->noperands ? b->steps[s->operands[0]].dtype : s->dtype, s->dtype, s->op.op);
}

static float of_row(const row *r, kl_dtype t) {
  if (kl_is_complex(t)) t = kl_info(t)->part;
  return t == KILN_F64 ? r->f64 : t == KILN_F16 ? r->f16 : t == KILN_BF16 ? r->bf16 : kl_is_float(t) ? r->f32 : 0;
}

double kl_rest_instructions(const kl_body *b) {
  bool met[KL_OP_COUNT][2] = {{false}};
  double n = 0;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    if (s->kind != KL_STEP_OP || met[s->op.op][s->dtype == KILN_F64]) continue;
    met[s->op.op][s->dtype == KILN_F64] = true;
    n += of_row(&rest[s->op.op], s->dtype);
  }
  return n;
}

// Predicates that are no comparison's are looked at before, each in a byte of a word.
static double of_select(const kl_body *b, const kl_step *s) {
  const kl_step *p = &b->steps[s->operands[0]];
  double words = kl_info(s->dtype)->bits > 32 ? (double)kl_info(s->dtype)->bits / 32 : 1;
  return words + (p->kind == KL_STEP_OP ? 0 : 1);
}

// Of each two words one goes to the other lane; elements of 4, 8 and 16 bits stand side by side in them.
int64_t kl_exchanged_words(const kl_body *b, const kl_step *s) {
  int64_t copies = kl_extent(b, s->regs), bits = kl_info(s->dtype)->bits, half = s->distance;
  for (uint32_t v = s->var + 1; v < b->nvars; v++)
    if (kl_has_var(s->regs, v)) half *= b->vars[v].extent;
  bool words = (bits == 4 || bits == 8 || bits == 16) && half * bits % 32 == 0;
  return (words ? copies * bits / 32 : copies * ((bits + 31) / 32)) / 2;
}

// Guards that are known for each copy choose nothing.
static uint32_t open_guards(const kl_body *b, const kl_step *s) {
  uint32_t n = 0;
  for (uint32_t i = 0; i + 1 < s->noperands; i++)
    n += (kl_guard_vars(b, s->guards[i]) & ~kl_bound(b, KL_BIND_REG)) != 0;
  return n;
}

enum { QUOTIENT = 5, RECIPROCAL = 20, FEW_QUOTIENTS = 4 }; // of several numbers divided by one: each, and once

static bool divides_by_one(const kl_plan *p, const kl_body *b, const kl_step *s) {
  bool f32 = s->kind == KL_STEP_OP && s->op.op == KL_OP_DIVIDE && s->dtype == KILN_F32;
  return f32 && p->target.machine == KL_NVPTX && kl_extent(b, s->regs) >= FEW_QUOTIENTS &&
         kl_extent(b, b->steps[s->operands[1]].regs) == 1;
}

// Words of both operands move down by halves, the last part by a permutation of bytes.
static double of_slide(const kl_body *b, const kl_step *s) {
  double copies = (double)kl_extent(b, s->regs), n = (double)b->vars[s->var].extent;
  double words = n * kl_info(s->dtype)->bits / 32, each = words;
  for (double by = words / 2; by >= 1 && s->expr->n; by /= 2) each += words + by;
  return copies / n * (each + (s->expr->n ? 3 : 0));
}

double kl_step_instructions(const kl_plan *p, const kl_body *b, const kl_step *s) {
  double copies = (double)kl_extent(b, s->regs), words = (kl_info(s->dtype)->bits + 31) / 32;
  if (divides_by_one(p, b, s)) return QUOTIENT * copies + RECIPROCAL;
  if (s->kind == KL_STEP_OP && s->op.op == KL_OP_SELECT) return copies * of_select(b, s);
  switch (s->kind) {
  case KL_STEP_OP: return copies * of_op(s->noperands ? b->steps[s->operands[0]].dtype : s->dtype, s->dtype, s->op.op);
  case KL_STEP_FMA: return copies;
  case KL_STEP_CHOOSE: return copies * words * open_guards(b, s);
  case KL_STEP_SPLIT:
  case KL_STEP_JOIN: return copies * words;
  case KL_STEP_SLIDE: return of_slide(b, s);
  case KL_STEP_IOTA:
  case KL_STEP_ANY: return copies;
  case KL_STEP_INDEX: return 2 * copies;
  case KL_STEP_LOAD: return p->slots[s->access.slot].by_value ? 1 : 0;
  case KL_STEP_EXCHANGE: return 3 * (double)kl_exchanged_words(b, s); // selections
  default: return 0;
  }
}
