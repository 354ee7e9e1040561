// Elementwise operations.

#include "impl.h"

void op_unary(gen *g) {
  static const char *const ints[] = {"abs", "negate", "sign", "not", "popcnt", "count-leading-zeros", "copy"};
  static const char *const floats[] = {"abs",
                                       "negate",
                                       "sign",
                                       "ceil",
                                       "floor",
                                       "round-nearest-afz",
                                       "round-nearest-even",
                                       "exponential",
                                       "log",
                                       "tanh",
                                       "logistic",
                                       "erf",
                                       "sqrt",
                                       "rsqrt",
                                       "real",
                                       "imag",
                                       "copy"};
  static const char *const complexes[] = {"negate", "copy", "abs", "real", "imag"};
  unsigned x = operand(g);
  value v = g->v[x];
  const char *op;
  switch (kl_info(v.t)->cls) {
  case KL_CLASS_PRED: op = chance(g, 80) ? "not" : "copy"; break;
  case KL_CLASS_FLOAT: op = floats[pick(g, KL_COUNT(floats))]; break;
  case KL_CLASS_COMPLEX: {
    unsigned i = pick(g, KL_COUNT(complexes));
    op = complexes[i];
    if (i >= 2) v.t = kl_info(v.t)->part;
    break;
  }
  default: op = ints[pick(g, KL_COUNT(ints))];
  }
  emit(g, &v, op, 1, &x, "");
}

void op_binary(gen *g) {
  static const char *const ints[] = {"add",
                                     "subtract",
                                     "multiply",
                                     "divide",
                                     "remainder",
                                     "maximum",
                                     "minimum",
                                     "and",
                                     "or",
                                     "xor",
                                     "shift-left",
                                     "shift-right-arithmetic",
                                     "shift-right-logical",
                                     "power"};
  static const char *const floats[] = {"add",     "subtract", "multiply", "divide",   "maximum",
                                       "minimum", "add",      "multiply", "remainder"};
  static const char *const complexes[] = {"add", "subtract", "multiply", "divide"};
  static const char *const preds[] = {"add", "multiply", "and", "or", "xor", "maximum", "minimum"};
  unsigned x[2] = {operand(g)};
  value v = g->v[x[0]];
  x[1] = of_type(g, x[0], v.t);
  const char *op;
  switch (kl_info(v.t)->cls) {
  case KL_CLASS_PRED: op = preds[pick(g, KL_COUNT(preds))]; break;
  case KL_CLASS_FLOAT: op = floats[pick(g, KL_COUNT(floats))]; break;
  case KL_CLASS_COMPLEX: op = complexes[pick(g, KL_COUNT(complexes))]; break;
  default: op = ints[pick(g, KL_COUNT(ints))];
  }
  emit(g, &v, op, 2, x, "");
}

void op_compare(gen *g) {
  static const char *const dirs[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  unsigned x[2] = {operand(g)};
  value v = g->v[x[0]];
  x[1] = of_type(g, x[0], v.t);
  // The sign of a NaN that was computed decides nothing.
  bool complex = kl_is_complex(v.t), total = kl_is_float(v.t) && chance(g, 20);
  total = total && !g->v[x[0]].computed && !g->v[x[1]].computed;
  v.t = KILN_PRED;
  char attrs[64];
  snprintf(attrs, sizeof attrs, ", direction=%s%s", dirs[pick(g, complex ? 2 : 6)], total ? ", type=TOTALORDER" : "");
  emit(g, &v, "compare", 2, x, attrs);
}

void op_select(gen *g) {
  unsigned a = operand(g), x[3];
  x[0] = of_type(g, a, KILN_PRED);
  x[1] = a;
  x[2] = of_type(g, a, g->v[a].t);
  emit(g, &g->v[a], "select", 3, x, "");
}

void op_clamp(gen *g) {
  unsigned a = operand(g), x[3];
  if (kl_is_complex(g->v[a].t) || g->v[a].t == KILN_PRED) return;
  x[0] = chance(g, 50) ? scalar_constant(g, g->v[a].t) : of_type(g, a, g->v[a].t);
  x[1] = a;
  x[2] = of_type(g, a, g->v[a].t);
  emit(g, &g->v[a], "clamp", 3, x, "");
}

void op_convert(gen *g) {
  unsigned a = operand(g);
  value v = g->v[a];
  v.t = any_dtype(g);
  emit(g, &v, "convert", 1, &a, "");
}

void op_bitcast_convert(gen *g) {
  unsigned a = operand(g);
  value v = g->v[a];
  if (kl_is_complex(v.t) || v.t == KILN_PRED || v.computed) return;
  for (unsigned tries = 0; tries < 20; tries++) {
    kl_dtype t = any_dtype(g);
    if (kl_is_complex(t) || t == KILN_PRED || kl_info(t)->bits != kl_info(v.t)->bits) continue;
    v.t = t;
    emit(g, &v, "bitcast-convert", 1, &a, "");
    return;
  }
}

// To parts of its elements along a new minor dim, or the minor dim joined to wider elements.
void op_change_width(gen *g) {
  unsigned a = operand(g);
  value v = g->v[a];
  unsigned bits = kl_info(v.t)->bits;
  if (kl_is_complex(v.t) || v.t == KILN_PRED || v.computed) return;
  for (unsigned tries = 0; tries < 20; tries++) {
    kl_dtype t = any_dtype(g);
    unsigned other = kl_info(t)->bits;
    if (kl_is_complex(t) || t == KILN_PRED || other == bits) continue;
    v = g->v[a];
    v.t = t;
    if (other > bits && (!v.rank || v.dims[v.rank - 1] != other / bits)) continue;
    if (other > bits)
      v.rank--;
    else if (v.rank == MAX_RANK || count(&v) * (bits / other) > MAX_ELEMENTS)
      return;
    else
      v.dims[v.rank++] = bits / other;
    emit(g, &v, "bitcast-convert", 1, &a, "");
    return;
  }
}

void op_reduce_precision(gen *g) {
  unsigned a = operand(g);
  kl_dtype t = g->v[a].t;
  if (t != KILN_F16 && t != KILN_BF16 && t != KILN_F32 && t != KILN_F64) return;
  char attrs[64];
  snprintf(attrs, sizeof attrs, ", exponent_bits=%u, mantissa_bits=%u", 2 + pick(g, kl_info(t)->exp_bits - 1u),
           pick(g, kl_info(t)->man_bits + 1u));
  emit(g, &g->v[a], "reduce-precision", 1, &a, attrs);
}

void op_complex(gen *g) {
  unsigned a = operand(g), x[2];
  if (g->v[a].t != KILN_F32 && g->v[a].t != KILN_F64) return;
  value v = g->v[a];
  v.t = v.t == KILN_F32 ? KILN_C64 : KILN_C128;
  x[0] = a;
  x[1] = of_type(g, a, g->v[a].t);
  emit(g, &v, "complex", 2, x, "");
}

// --- of whole modules -----------------------------------------------------------------------------------------------

static bool takes(kl_op op, kl_dtype t) {
  uint8_t kind = t == KILN_PRED ? KL_T_P : kl_is_int(t) ? KL_T_I : kl_is_float(t) ? KL_T_F : KL_T_C;
  return kl_op_table[op].types & kind;
}

// Any op of the table of that kind that takes the type.
static bool any_of_kind(gen *g, kl_op_kind kind, kl_dtype t, kl_op *op) {
  static const kl_op others[] = {KL_OP_REDUCE_PRECISION, KL_OP_COMPARE, KL_OP_COMPLEX};
  for (unsigned tries = 0; tries < 40; tries++) {
    *op = (kl_op)pick(g, KL_OP_COUNT);
    bool other = false;
    for (size_t i = 0; i < KL_COUNT(others); i++) other |= *op == others[i];
    if (!other && kl_op_table[*op].kind == kind && takes(*op, t)) return true;
  }
  return false;
}

void op_function(gen *g) {
  unsigned x = operand(g);
  value v = g->v[x];
  kl_op op;
  if (!any_of_kind(g, KL_KIND_UNARY, v.t, &op)) return;
  if (op == KL_OP_IS_FINITE) v.t = KILN_PRED;
  bool part = op == KL_OP_ABS || op == KL_OP_REAL || op == KL_OP_IMAG;
  if (part && kl_is_complex(v.t)) v.t = kl_info(v.t)->part;
  emit(g, &v, kl_op_name(op), 1, &x, "");
}

void op_whole_binary(gen *g) {
  unsigned x[2] = {operand(g)};
  value v = g->v[x[0]];
  kl_op op;
  if (!any_of_kind(g, KL_KIND_BINARY, v.t, &op)) return;
  x[1] = of_type(g, x[0], v.t);
  emit(g, &v, kl_op_name(op), 2, x, "");
}

void op_stochastic_convert(gen *g) {
  static const kl_dtype words[] = {KILN_U8, KILN_U16, KILN_U32, KILN_U64};
  unsigned x[2] = {operand(g)};
  value v = g->v[x[0]];
  unsigned bits = kl_info(v.t)->bits;
  if (!kl_is_float(v.t) || bits < 8) return;
  x[1] = of_type(g, x[0], words[__builtin_ctz(bits) - 3]);
  do v.t = any_dtype(g);
  while (kl_is_complex(v.t) || v.t == KILN_PRED);
  emit(g, &v, "stochastic-convert", 2, x, "");
}
