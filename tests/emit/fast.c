// Numerics `fast`: kernels on the simulator, whose approximations lie anywhere within their documented errors, stay
// within the bounds that the evaluator states; what has no approximation is as in `strict`.

#include "eval/eval.h"
#include "harness.h"
#include "support/bits.h"
#include "support/gpu_sim.h"
#include "support/random.h"
#include "support/share.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 6144 };
static float x[N], y[N], z[N], again[N];

#define OF_ONE(name, expression)                                                                                       \
  static long double name##_of(long double v, long double w) {                                                         \
    return (void)w, expression;                                                                                        \
  }
OF_ONE(exp, expl(v))
OF_ONE(exp10, powl(10, v))
OF_ONE(expm1, expm1l(v))
OF_ONE(log, logl(v))
OF_ONE(log1p, log1pl(v))
OF_ONE(tanh, tanhl(v))
OF_ONE(logistic, 1 / (1 + expl(-v)))
OF_ONE(erf, erfl(v))
OF_ONE(rsqrt, 1 / sqrtl(v))
OF_ONE(sqrt, sqrtl(v))
OF_ONE(cbrt, cbrtl(v))
OF_ONE(sin, sinl(v))
OF_ONE(cos, cosl(v))
OF_ONE(tan, tanl(v))
OF_ONE(asin, asinl(v))
OF_ONE(acos, acosl(v))
OF_ONE(atan, atanl(v))
OF_ONE(sinh, sinhl(v))
OF_ONE(cosh, coshl(v))
OF_ONE(asinh, asinhl(v))
OF_ONE(acosh, acoshl(v))
OF_ONE(atanh, atanhl(v))
static long double quotient_of(long double v, long double w) {
  return v / w;
}

static const struct row {
  const char *name;
  kl_op op;
  long double (*exact)(long double, long double);
  float low, high; // where a third of the arguments lie
  bool two;
} rows[] = {
    {"exponential", KL_OP_EXP, exp_of, -104, 89},
    {"exp10", KL_OP_EXP10, exp10_of, -45, 38.6f},
    {"exponential-minus-one", KL_OP_EXPM1, expm1_of, -18, 1},
    {"log", KL_OP_LOG, log_of, 0.4f, 2.5f},
    {"log-plus-one", KL_OP_LOG1P, log1p_of, -1, 2},
    {"tanh", KL_OP_TANH, tanh_of, -2, 2},
    {"logistic", KL_OP_LOGISTIC, logistic_of, -104, 20},
    {"erf", KL_OP_ERF, erf_of, -2, 2},
    {"rsqrt", KL_OP_RSQRT, rsqrt_of, 1, 4},
    {"sqrt", KL_OP_SQRT, sqrt_of, 1, 4},
    {"cbrt", KL_OP_CBRT, cbrt_of, -8, 8},
    {"sine", KL_OP_SIN, sin_of, -7, 7},
    {"cosine", KL_OP_COS, cos_of, -7, 7},
    {"tan", KL_OP_TAN, tan_of, -7, 7},
    {"asin", KL_OP_ASIN, asin_of, -1, 1},
    {"acos", KL_OP_ACOS, acos_of, -1, 1},
    {"atan", KL_OP_ATAN, atan_of, -4, 4},
    {"sinh", KL_OP_SINH, sinh_of, -2, 2},
    {"cosh", KL_OP_COSH, cosh_of, -90, 90},
    {"asinh", KL_OP_ASINH, asinh_of, -2, 2},
    {"acosh", KL_OP_ACOSH, acosh_of, 1, 2},
    {"atanh", KL_OP_ATANH, atanh_of, -1, 1},
    {"divide", KL_OP_DIVIDE, quotient_of, 1, 2, true},
    {"atan2", KL_OP_ATAN2, atan2l, -2, 2, true},
    {"power", KL_OP_POWER, powl, 0, 2, true},
};

// Values that functions have rules of their own for: they come first, as arguments and in all pairs.
static const float special[] = {
    0, 1, 0.5f, 2, 3, 0.75f, 1.25f, INFINITY, NAN, 0x1p-149f, 0x1.8p-148f, 0x1p-126f, 0x1.fffffep127f, 0x1p24f,
};
enum { SPECIAL = 2 * KL_COUNT(special), PAIRS = SPECIAL * SPECIAL };
static float special_of(int i) {
  return i % 2 ? -special[i / 2] : special[i / 2];
}

// A third of all patterns, a third near zero and one, a third where the function has most to do.
static void fill(const struct row *r) {
  for (int i = 0; i < N; i++) {
    float u = (float)(random_bits() >> 40) * 0x1p-24f;
    x[i] = i % 3 == 0   ? float_of((uint32_t)i * 699053u)
           : i % 3 == 1 ? float_of((uint32_t)(random_bits() >> 32 & 0x83ffffff) + 0x3d000000)
                        : r->low + (r->high - r->low) * u;
    y[i] = i % 2 ? float_of((uint32_t)(random_bits() >> 32)) : 1 + (float)(random_bits() >> 40) * 0x1p-24f;
    if (i < PAIRS) x[i] = special_of(i % SPECIAL), y[i] = special_of(i / SPECIAL);
  }
}

// In units in the last place; 0 where the absolute bound is kept.
static double error_of(const struct row *r, kl_bound b, int i) {
  long double v = r->exact(x[i], y[i]);
  float nearest = (float)v;
  EXPECT(isnan(nearest) == isnan(z[i]), "%s(%a, %a) = %a, exactly %La", r->name, x[i], y[i], z[i], v);
  if (isnan(nearest) || z[i] == nearest || fabsl(z[i] - v) <= b.absolute) return 0;
  int e;
  frexpl(v, &e);
  if (isinf(z[i]) || isinf(nearest)) v = v < 0 ? fmaxl(v, -0x1p128L) : fminl(v, 0x1p128L), frexpl(v * 0.75L, &e);
  long double found = isinf(z[i]) ? copysignl(0x1p128L, z[i]) : z[i];
  return (double)(fabsl(found - v) / ldexpl(1, e < -125 ? -149 : e - 24));
}

static kiln_module *module_of(kiln_context *cx, const char *op, const char *type, bool two, char *text, size_t size) {
  kiln_module *m = NULL;
  snprintf(text, size,
           "HloModule m\n\nENTRY e {\n  p = %s[%d] parameter(0)\n  q = %s[%d] parameter(1)\n"
           "  ROOT r = %s[%d] %s(p%s)\n}\n",
           type, N, type, N, type, N, op, two ? ", q" : "");
  if (kiln_module_parse(cx, "fast.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, "parsing", cx, text);
  return m;
}

static kiln_artifact *compile_for(kiln_context *cx, const kiln_module *m, const char *target, kiln_numerics numerics,
                                  const char *text) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .numerics = numerics};
  kiln_artifact *a = NULL;
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, "compiling", cx, text);
  ck_assert_int_eq(kiln_artifact_manifest(a)->numerics, numerics);
  return a;
}

static size_t wrong_in(kiln_context *cx, const kiln_module *m, kiln_numerics numerics, kiln_mismatch *w) {
  const void *in[2] = {x, y}, *out[1] = {z};
  kiln_eval_params p = {.struct_size = sizeof p, .threads = 1, .numerics = numerics};
  size_t n = 0;
  ck_assert_int_eq(kiln_module_check(cx, m, in, out, w, 1, &n, &p), KILN_OK);
  return n;
}

START_TEST(fast_within_its_bounds) {
  const struct row *r = &rows[_i];
  kl_bound b = kl_op_bound(r->op, KILN_F32, true);
  char text[512];
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = module_of(cx, r->name, "f32", r->two, text, sizeof text);
  const void *in[2] = {x, y};
  void *out[1] = {z};
  kiln_mismatch w;
  double worst = 0, at = 0;
  bool differs = false;
  random_seed((uint64_t)_i);
  for (unsigned seed = 0, n = (unsigned)share_of(2); seed <= n; seed++) { // 0: the nearest values
    kiln_artifact *a = compile_for(cx, m, seed % 2 ? "sm_90" : "sm_75", KILN_NUMERICS_FAST, text);
    fill(r);
    gpu_sim_perturb = seed;
    gpu_sim_run(cx, a, in, out, 0);
    gpu_sim_perturb = 0;
    for (int i = 0; i < N; i++) {
      double e = error_of(r, b, i);
      if (e > worst) worst = e, at = x[i];
    }
    EXPECT(wrong_in(cx, m, KILN_NUMERICS_FAST, &w) == 0, "%s, seed %u: element %lld (%a, %a) is %s, expected %s",
           r->name, seed, (long long)w.element, x[w.element], y[w.element], w.found, w.expected);
    differs |= wrong_in(cx, m, KILN_NUMERICS_STRICT, &w) != 0;
    kiln_artifact_destroy(&a);
  }
  if (test_share() > 1) printf("# fast f32 %s: %.3f ulp at %a\n", r->name, worst, at);
  ck_assert_msg(worst <= b.ulps, "%s: %.3f ulp at %a", r->name, worst, at);
  ck_assert_msg(differs || worst > 1, "%s keeps the bounds of strict", r->name);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// The host computes what it computes in `strict`.
START_TEST(host_is_strict) {
  const struct row *r = &rows[_i];
  char text[512];
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = module_of(cx, r->name, "f32", r->two, text, sizeof text);
  fill(r);
  for (int fast = 0; fast < 2; fast++) {
    const void *in[2] = {x, y};
    void *out[1] = {fast ? again : z};
    kiln_artifact *a = compile_for(cx, m, "host", (kiln_numerics)fast, text);
    kiln_kernel *k = NULL;
    if (kiln_kernel_load(cx, a, &k) != KILN_OK) give_up(0, "loading", cx, text);
    if (kiln_kernel_run(cx, k, in, out, NULL) != KILN_OK) give_up(0, "running", cx, text);
    kiln_kernel_destroy(&k);
    kiln_artifact_destroy(&a);
  }
  ck_assert_mem_eq(z, again, sizeof z);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// The same PTX in both numerics.
static const struct {
  const char *type, *ops[12];
} strict_rows[] = {
    {"f32", {"abs", "floor", "sign", "negate"}},
    {"f64", {"exponential", "log", "tanh", "logistic", "erf", "rsqrt", "sqrt", "sine", "asin", "sinh", "cbrt"}},
    {"f16", {"exponential", "log", "tanh", "logistic", "erf", "rsqrt", "sqrt", "sine"}},
    {"bf16", {"exponential", "log", "tanh", "logistic", "erf", "rsqrt", "sqrt", "sine", "asin", "sinh", "cbrt"}},
    {"f8e4m3fn", {"log-plus-one", "tan", "acosh", "cosh"}},
    {"c64", {"exponential", "log", "tanh", "sqrt", "asin"}},
};

START_TEST(the_rest_is_strict) {
  for (size_t i = 0; i < 12 && strict_rows[_i].ops[i]; i++) {
    char text[512];
    kiln_context *cx = kiln_context_create(NULL);
    kiln_module *m = module_of(cx, strict_rows[_i].ops[i], strict_rows[_i].type, false, text, sizeof text);
    kiln_compile_params p = {.struct_size = sizeof p};
    if (kiln_compile_check(cx, m, &p) == KILN_OK) {
      kiln_artifact *a = compile_for(cx, m, "sm_90", KILN_NUMERICS_STRICT, text);
      kiln_artifact *b = compile_for(cx, m, "sm_90", KILN_NUMERICS_FAST, text);
      ck_assert_msg(strcmp(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), kiln_artifact_text(b, KILN_TEXT_PTX, NULL)) == 0,
                    "%s differs", text);
      kiln_artifact_destroy(&a);
      kiln_artifact_destroy(&b);
    }
    kiln_module_destroy(&m);
    kiln_context_destroy(&cx);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("fast", NO_FRAME, {fast_within_its_bounds, KL_COUNT(rows)}, {host_is_strict, KL_COUNT(rows)},
                   {the_rest_is_strict, KL_COUNT(strict_rows)});
}
