// Products of matrices as XLA:GPU has cuBLAS make them.
#include "ir/custom/room.h"

#include "ir/attrs.h"

typedef struct call {
  const kl_comp *c;
  const kl_instr *in;
  kl_json config;
  kl_fault *f;
  const kl_shape *a, *b, *to;
} call;

static bool faulty(const call *k, const char *expected) {
  return kl_faulty(k->f, expected, (kl_str){0});
}

static const kl_shape *shape(const call *k, uint32_t i) {
  return kl_operand(k->c, k->in, i)->shape;
}

// --- what is multiplied ---------------------------------------------------------------------------------------------

static const struct {
  const char *name, *expected;
} lists[] = {
    [KL_LHS_BATCH] = {"lhs_batch_dimensions", "expected dimensions of the left operand as lhs_batch_dimensions"},
    [KL_LHS_CONTRACTING] = {"lhs_contracting_dimensions",
                            "expected dimensions of the left operand as lhs_contracting_dimensions"},
    [KL_RHS_BATCH] = {"rhs_batch_dimensions", "expected dimensions of the right operand as rhs_batch_dimensions"},
    [KL_RHS_CONTRACTING] = {"rhs_contracting_dimensions",
                            "expected dimensions of the right operand as rhs_contracting_dimensions"},
};

static bool has(const kl_gemm *g, kl_gemm_dims which, int64_t d) {
  for (uint32_t i = 0; i < g->n[which]; i++)
    if (g->dims[which][i] == d) return true;
  return false;
}

// Each dimension once, in this list and the other one of the operand's.
static bool read_dims(const call *k, kl_json numbers, kl_gemm_dims which, kl_gemm *g) {
  bool left = which == KL_LHS_BATCH || which == KL_LHS_CONTRACTING;
  const kl_shape *s = left ? k->a : k->b;
  kl_json list = kl_json_member(numbers, lists[which].name), v;
  g->n[which] = 0;
  if (list.text.n && !kl_json_is_array(list)) return kl_faulty(k->f, lists[which].expected, list.text);
  for (uint32_t i = 0; (v = kl_json_entry(list, i)).text.n; i++) {
    int64_t d;
    if (i == s->rank || !kl_json_integer(v, &d) || d < 0 || d >= s->rank ||
        has(g, left ? KL_LHS_BATCH : KL_RHS_BATCH, d) || has(g, which, d))
      return kl_faulty(k->f, lists[which].expected, list.text);
    g->dims[which][g->n[which]++] = d;
  }
  return true;
}

static bool same_sizes(const call *k, const kl_gemm *g, kl_gemm_dims left, kl_gemm_dims right) {
  bool same = g->n[left] == g->n[right];
  for (uint32_t i = 0; same && i < g->n[left]; i++)
    same = k->a->dims[g->dims[left][i]] == k->b->dims[g->dims[right][i]];
  return same;
}

// Takes the operand's free dimensions off those of the result.
static bool take_free(const call *k, const kl_gemm *g, bool left, uint32_t *n) {
  const kl_shape *s = left ? k->a : k->b;
  for (int64_t d = 0; d < s->rank; d++) {
    if (has(g, left ? KL_LHS_BATCH : KL_RHS_BATCH, d) || has(g, left ? KL_LHS_CONTRACTING : KL_RHS_CONTRACTING, d))
      continue;
    if (*n == k->to->rank || k->to->dims[(*n)++] != s->dims[d]) return false;
  }
  return true;
}

static bool read_product(const call *k, kl_gemm *g) {
  kl_json numbers = kl_json_member(k->config, "dot_dimension_numbers");
  uint32_t n = 0;
  if (!kl_json_is_object(numbers)) return kl_faulty(k->f, "expected an object as dot_dimension_numbers", numbers.text);
  for (int which = 0; which < 4; which++)
    if (!read_dims(k, numbers, (kl_gemm_dims)which, g)) return false;
  if (!same_sizes(k, g, KL_LHS_BATCH, KL_RHS_BATCH) || !same_sizes(k, g, KL_LHS_CONTRACTING, KL_RHS_CONTRACTING))
    return kl_faulty(k->f, "expected operands of equal sizes in dimensions that dot_dimension_numbers pairs",
                     numbers.text);
  bool fits = true;
  for (; fits && n < g->n[KL_LHS_BATCH]; n++)
    fits = n < k->to->rank && k->to->dims[n] == k->a->dims[g->dims[KL_LHS_BATCH][n]];
  if (!fits || !take_free(k, g, true, &n) || !take_free(k, g, false, &n) || n != k->to->rank)
    return faulty(k, "expected the dimensions of a dot as those of the first result");
  return true;
}

// ALG_DOT_TF32_TF32_F32 is dot_tf32_tf32_f32; ALG_UNSET and what is not known leave it to the types.
static int algorithm_of(kl_json config) {
  kl_str name = kl_json_string(kl_json_member(kl_json_member(config, "precision_config"), "algorithm"));
  for (int i = 1; kl_custom_begins(name, "ALG_") && i < KL_DOT_ALGORITHMS; i++) {
    const char *own = kl_dot_algorithm_names[i];
    size_t n = strlen(own), at = 0;
    while (n + 4 == name.n && at < n && (name.p[at + 4] | 32) == (own[at] | 32)) at++;
    if (n && at == n) return i;
  }
  return 0;
}

static bool are_types(const call *k, bool f8) {
  kl_dtype a = k->a->dtype, b = k->b->dtype, t = k->to->dtype;
  if (f8) return kl_is_float(a) && kl_is_float(b) && kl_is_float(t) && kl_info(a)->bits == 8 && kl_info(b)->bits == 8;
  if (kl_is_complex(a) || kl_is_complex(b) || kl_is_complex(t)) return a == b && kl_is_complex(a) && kl_is_complex(t);
  bool floats = kl_is_float(a) && kl_is_float(b), integers = kl_is_int(a) && kl_is_int(b);
  return kl_is_float(t) ? floats || integers : integers && kl_is_int(t);
}

// --- what becomes of it ---------------------------------------------------------------------------------------------

static const struct epilogue {
  const char *name;
  kl_activation activation;
  bool bias, before;
} epilogues[] = {
    {"DEFAULT", KL_ACTIVATION_NONE},
    {"BIAS", KL_ACTIVATION_NONE, true},
    {"RELU", KL_ACTIVATION_RELU},
    {"BIAS_RELU", KL_ACTIVATION_RELU, true},
    {"GELU", KL_ACTIVATION_GELU},
    {"GELU_AUX", KL_ACTIVATION_GELU, .before = true},
    {"BIAS_GELU", KL_ACTIVATION_GELU, true},
    {"BIAS_GELU_AUX", KL_ACTIVATION_GELU, true, true},
    {"SILU", KL_ACTIVATION_SWISH},
    {"BIAS_SILU", KL_ACTIVATION_SWISH, true},
};

static const struct epilogue *epilogue_of(const call *k) {
  kl_json v = kl_json_member(k->config, "epilogue");
  if (!v.text.n) return &epilogues[0];
  for (size_t i = 0; i < KL_COUNT(epilogues); i++)
    if (kl_str_is(kl_json_string(v), epilogues[i].name)) return &epilogues[i];
  kl_faulty(k->f, "expected an epilogue that is known (DEFAULT, BIAS, RELU, GELU, GELU_AUX, SILU, BIAS_RELU ...)",
            v.text);
  return NULL;
}

static bool read_factors(const call *k, kl_after *x) {
  return kl_xla_number(k->config, "alpha_real", &x->alpha[0], "expected a number as alpha_real", k->f) &&
         kl_xla_number(k->config, "alpha_imag", &x->alpha[1], "expected a number as alpha_imag", k->f) &&
         kl_xla_number(k->config, "beta", &x->beta, "expected a number as beta", k->f) &&
         kl_xla_truth(k->config, "damax_output", &x->most, "expected true or false as damax_output", k->f);
}

// cuBLAS adds a bias along the dimensions in which the result's elements are neighbours in memory.
static bool read_bias(const call *k, kl_after *x, int operand) {
  const kl_shape *s = shape(k, (uint32_t)operand);
  bool fits = kl_xla_is_array(s) && kl_is_float(s->dtype) && s->rank <= k->to->rank;
  for (uint32_t i = 0; fits && i < s->rank; i++) {
    int64_t own = kl_shape_minor_to_major(s, i), d = kl_shape_minor_to_major(k->to, i);
    x->bias_dims[own] = d;
    fits = s->dims[own] == k->to->dims[d];
  }
  x->bias = operand;
  return fits || faulty(k, "expected a bias of floats, as many as the result has neighbours in memory");
}

static bool read_scale(const call *k, int *to, int operand) {
  const kl_shape *s = shape(k, (uint32_t)operand);
  *to = operand;
  return (kl_xla_is_array(s) && kl_is_float(s->dtype) && s->count == 1) ||
         faulty(k, "expected one float as each of the scales");
}

// (a, b, [addend], scale of a, scale of b, [bias], [scale of the result]); older modules have two scales behind the
// first two, of the addend and the result, and the bias last.
static bool read_scaled(const call *k, kl_after *x, int from, bool bias) {
  int n = (int)k->in->noperands - from;
  bool older = n == 4 + bias, scaled = older || n == 3 + bias;
  double mode;
  if (!kl_xla_number(k->config, "scale_mode", &mode, "expected 0 or 1 as scale_mode", k->f)) return false;
  if (mode > 1)
    return kl_faulty(k->f, "expected one scale for each operand (scale_mode 1)",
                     kl_json_member(k->config, "scale_mode").text);
  if (n != 2 + bias && !scaled)
    return faulty(k, "expected operands (a, b, scales of both, [bias], [scale of the result])");
  for (int i = 0; i < 2; i++)
    if (!read_scale(k, &x->scale[i], from + i)) return false;
  if (scaled && !read_scale(k, &x->result_scale, older ? from + 3 : from + n - 1)) return false;
  return !bias || read_bias(k, x, older ? from + 4 : from + 2);
}

static bool read_operands(const call *k, kl_after *x, bool bias, bool f8) {
  int at = 2;
  x->addend = x->bias = x->scale[0] = x->scale[1] = x->result_scale = KL_NO_OPERAND;
  if (x->beta != 0) {
    const kl_shape *s = k->in->noperands > 2 ? shape(k, 2) : NULL;
    if (!s || !kl_xla_is_array(s) || !kl_shape_same_dims(s, k->to) ||
        kl_is_complex(s->dtype) != kl_is_complex(x->steps) || s->dtype == KILN_PRED)
      return faulty(k, "expected an array like the result as third operand, as beta is not 0");
    x->addend = at++;
  }
  if (f8) return read_scaled(k, x, at, bias);
  if ((int)k->in->noperands != at + bias)
    return faulty(k, "expected operands (a, b, [array, where beta is not 0], [bias])");
  return !bias || read_bias(k, x, at);
}

static kl_dtype steps_of(const call *k) {
  kl_dtype t = k->to->dtype;
  if (!kl_is_float(t)) return t;
  return t == KILN_F64 || k->a->dtype == KILN_F64 || k->b->dtype == KILN_F64 ? KILN_F64 : KILN_F32;
}

static bool read_after(const call *k, const struct epilogue *e, kl_after *x, bool f8) {
  x->activation = e->activation;
  x->before = e->before;
  x->slope = 0;
  x->steps = steps_of(k);
  bool floats = kl_is_float(x->steps), complex = kl_is_complex(x->steps);
  if (!complex && x->alpha[1] != 0) return faulty(k, "expected 0 as alpha_imag of what is not complex");
  if (!floats && (e != epilogues || x->most)) return faulty(k, "expected floats before an epilogue");
  if (!floats && !complex && (x->alpha[0] != 1 || x->beta != 0))
    return faulty(k, "expected 1 as alpha_real and 0 as beta of integers");
  const kl_shape *s = k->in->shape;
  if (x->before && (!kl_shape_same_dims(s->elems[1], k->to) || !kl_is_float(s->elems[1]->dtype)))
    return faulty(k, "expected a second result like the first one");
  if (x->most && (s->elems[1 + x->before]->rank || !kl_is_float(s->elems[1 + x->before]->dtype)))
    return faulty(k, "expected one float as the largest magnitude");
  return read_operands(k, x, e->bias, f8);
}

bool kl_xla_gemm(const kl_comp *c, const kl_instr *in, kl_gemm *g, kl_fault *f) {
  call k = {c, in, .f = f};
  bool f8 = kl_custom_named(in) == KL_CUSTOM_GEMM_F8;
  if (!kl_xla_config(in, "gemm_backend_config", &k.config, f) || !read_factors(&k, &g->after)) return false;
  const struct epilogue *e = epilogue_of(&k);
  if (!e) return false;
  if (in->noperands < 2 || !kl_xla_is_array(k.a = shape(&k, 0)) || !kl_xla_is_array(k.b = shape(&k, 1)))
    return faulty(&k, "expected two arrays as operands");
  k.to = kl_xla_result(in, 1 + e->before + g->after.most, &g->after.spare);
  if (!k.to) return faulty(&k, "expected a result, what the epilogue gives beside it, and memory (s8[N])");
  if (!are_types(&k, f8))
    return faulty(&k, f8 ? "expected floats, and two operands of 8 bits"
                         : "expected operands and result of integers, floats or complex numbers that a dot has");
  g->algorithm = algorithm_of(k.config);
  return read_product(&k, g) && read_after(&k, e, &g->after, f8);
}

bool kl_custom_gemm(const kl_comp *c, const kl_instr *in, kl_gemm *out) {
  kl_fault f = {0};
  return kl_xla_gemm(c, in, out, &f);
}
