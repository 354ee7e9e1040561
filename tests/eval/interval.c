// The evaluator's intervals. A pretended device runs the same program op by op with the evaluator's own exact ops, but
// moves every result of an inexact function by as many units as its bound allows: whatever it gets must be allowed.
// And intervals must be no wider than that makes necessary: results beyond the bound are refused.
#include "support/context.h"
#include "eval/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seed;

static uint64_t next_random(void) {
  seed += 0x9e3779b97f4a7c15ull;
  return kl_hash(&seed, sizeof seed, 7);
}
static double uniform(double from, double to) {
  return from + (to - from) * (double)(next_random() >> 11) * 0x1p-53;
}

static void evaluate(const kiln_module *m, uint32_t comp, const kl_array *args, bool intervals, kl_result *r) {
  kl_eval_opts opts = {.intervals = intervals, .threads = 2};
  if (kl_eval(cx, m, comp, args, &opts, r) != KILN_OK)
    ck_abort_msg("%s", kiln_diagnostics_get(cx, kiln_diagnostics_count(cx) - 1)->text);
}

// --- the pretended device --------------------------------------------------------------------------------------------

static bool bounded_by_one(kl_op op) {
  return op == KL_OP_TANH || op == KL_OP_ERF || op == KL_OP_LOGISTIC || op == KL_OP_SIN || op == KL_OP_COS;
}

static double most_of(kl_op op, kl_dtype t) {
  if (bounded_by_one(op)) return 1;
  if (op == KL_OP_ASIN || op == KL_OP_ATAN) return kl_float_decode(t, kl_float_encode(t, M_PI_2));
  return op == KL_OP_ACOS || op == KL_OP_ATAN2 ? kl_float_decode(t, kl_float_encode(t, M_PI)) : INFINITY;
}

static bool special(double v) {
  return v == 0 || isinf(v) || isnan(v);
}

// A value within the bound of y, keeping to the rules of kl_op_ulp_bound on sign and range.
static uint64_t perturb(kl_op op, kl_dtype t, uint64_t y, double bound) {
  double vy = kl_float_decode(t, y);
  int steps = (int)(next_random() % (uint64_t)(2 * (int)bound + 1)) - (int)bound, exponent;
  frexp(vy, &exponent);
  uint64_t r = kl_float_encode(t, vy + ldexp(steps, exponent - 1 - kl_info(t)->man_bits));
  double v = kl_float_decode(t, r);
  bool outside = (v < 0) != (vy < 0) || fabs(v) > most_of(op, t) || (op == KL_OP_EXPM1 && v < -1) ||
                 (op == KL_OP_COSH && fabs(v) < 1);
  return special(vy) || outside || v == 0 ? y : r;
}

// Where a function of real numbers is exact by those rules.
static bool exact_at(const kl_instr *in, const kl_array *args, int64_t i) {
  kl_dtype t = args[0].shape->dtype;
  for (uint32_t k = 0; k < in->noperands && !kl_is_complex(t); k++) {
    double x = kl_float_decode(t, kl_element_get(t, args[k].data, i, 0));
    bool at_one = in->op == KL_OP_LOG || in->op == KL_OP_POWER || in->op == KL_OP_ACOS || in->op == KL_OP_ACOSH;
    if (special(x) || (k == 0 && x == 1 && at_one) || (fabs(x) == 1 && in->op == KL_OP_ATANH)) return true;
  }
  return false;
}

static bool finite_operands(const kl_instr *in, const kl_array *args, int64_t i) {
  bool finite = true;
  for (uint32_t k = 0; k < in->noperands; k++)
    for (int lane = 0; lane < 2; lane++)
      finite &= isfinite(kl_float_decode(kl_info(args[k].shape->dtype)->part,
                                         kl_element_get(args[k].shape->dtype, args[k].data, i, lane))) != 0;
  return finite;
}

// Both parts of a complex result, by units of the greater one.
static void perturb_both(kl_dtype t, void *y, int64_t i, double bound) {
  kl_dtype part = kl_info(t)->part;
  double v[2], most;
  for (int lane = 0; lane < 2; lane++) v[lane] = kl_float_decode(part, kl_element_get(t, y, i, lane));
  if (isnan(v[0]) || isnan(v[1]) || isinf(v[0]) || isinf(v[1])) return;
  most = ldexp(fmax(fabs(v[0]), fabs(v[1])), -kl_info(part)->man_bits);
  for (int lane = 0; lane < 2; lane++)
    kl_element_set(t, y, i, lane, kl_float_encode(part, v[lane] + uniform(-bound, bound) * 0.99 * most));
}

static void perturb_array(const kl_instr *in, const kl_array *args, void *y) {
  double bound = kl_op_ulp_bound(in->op, args[0].shape->dtype);
  kl_dtype t = in->shape->dtype, part = kl_is_complex(t) ? kl_info(t)->part : t;
  bool both = bound > 0 && kl_op_bound_is_normwise(in->op, args[0].shape->dtype);
  for (int64_t i = 0; i < in->shape->count && both; i++)
    if (finite_operands(in, args, i)) perturb_both(t, y, i, bound);
  for (int64_t i = 0; i < in->shape->count && bound > 0 && !both; i++)
    for (int lane = 0; lane < 1 + kl_is_complex(t) && !exact_at(in, args, i); lane++)
      kl_element_set(t, y, i, lane, perturb(in->op, part, kl_element_get(t, y, i, lane), bound));
}

// A module of one instruction of `c`, its operands as parameters.
static void run_one(const kiln_module *m, const kl_comp *c, const kl_instr *in, void *const *values, void **out) {
  kl_instr step = *in;
  kl_instr list[4] = {{0}};
  uint32_t operands[3] = {0, 1, 2};
  kl_array args[3];
  for (uint32_t k = 0; k < in->noperands; k++) {
    list[k] = (kl_instr){.op = KL_OP_PARAMETER, .shape = kl_operand(c, in, k)->shape, .number = k};
    args[k] = (kl_array){list[k].shape, values[in->operands[k]]};
  }
  step.operands = operands;
  list[in->noperands] = step;
  kl_comp comp = {
      .ninstr = in->noperands + 1, .instr = list, .root = in->noperands, .nparams = in->noperands, .params = operands};
  kiln_module one = *m;
  one.comp = &comp;
  one.ncomp = 1;
  kl_result r;
  evaluate(&one, 0, args, false, &r);
  size_t size = (size_t)in->shape->count * kl_info(in->shape->dtype)->bytes;
  *out = malloc(size + 1);
  memcpy(*out, r.data.data, size);
  kl_result_free(cx, &r);
  if (in->noperands) perturb_array(in, args, *out);
}

// Runs m on the pretended device; returns the root's value.
static void *run_device(const kiln_module *m, const kl_array *args) {
  const kl_comp *c = &m->comp[m->entry];
  void **values = calloc(c->ninstr, sizeof(void *));
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    if (in->op == KL_OP_PARAMETER)
      values[i] = args[in->number].data;
    else
      run_one(m, c, in, values, &values[i]);
  }
  void *root = values[c->root];
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op != KL_OP_PARAMETER && i != c->root) free(values[i]);
  free(values);
  return root;
}

static int64_t count_refused(const kl_result *r, const void *found) {
  kl_dtype t = r->data.shape->dtype;
  int64_t n = 0;
  for (int64_t i = 0; i < r->data.shape->count; i++) {
    uint64_t bits[2] = {kl_element_get(t, found, i, 0), kl_is_complex(t) ? kl_element_get(t, found, i, 1) : 0};
    n += !kl_result_allows(r, i, bits);
  }
  return n;
}

static int64_t count_any(const kl_result *r) {
  int64_t n = 0;
  bool pred = r->data.shape->dtype == KILN_PRED;
  for (int64_t i = 0; r->any && i < r->data.shape->count; i++) n += r->any[i / 64] >> (i % 64) & 1;
  for (int64_t i = 0; pred && i < r->data.shape->count; i++) n += ((uint8_t *)r->lo)[i] != ((uint8_t *)r->hi)[i];
  return n;
}

// --- inputs ----------------------------------------------------------------------------------------------------------

static uint64_t random_float(kl_dtype t) {
  switch (next_random() % 16) {
  case 0: return next_random() & kl_int_mask(t);
  case 1: return kl_float_encode(t, 0);
  case 2: return kl_float_encode(t, -0.0);
  case 3: return kl_float_encode(t, next_random() & 1 ? INFINITY : -INFINITY);
  case 4: return kl_float_encode(t, (double)(int)(next_random() % 9) - 4);
  case 5: return kl_float_encode(t, uniform(-1e-5, 1e-5));
  case 6: return kl_float_encode(t, uniform(-300, 300));
  default: return kl_float_encode(t, uniform(-4, 4));
  }
}

static void make_args(const kiln_module *m, kl_array *args) {
  const kl_comp *c = &m->comp[m->entry];
  for (uint32_t k = 0; k < c->nparams; k++) {
    const kl_shape *s = c->instr[c->params[k]].shape;
    kl_dtype part = kl_is_complex(s->dtype) ? kl_info(s->dtype)->part : s->dtype;
    args[k] = (kl_array){s, malloc((size_t)s->count * kl_info(s->dtype)->bytes + 1)};
    for (int64_t i = 0; i < s->count; i++)
      for (int lane = 0; lane < 1 + kl_is_complex(s->dtype); lane++)
        kl_element_set(s->dtype, args[k].data, i, lane,
                       kl_is_float(part) ? random_float(part) : next_random() & kl_int_mask(part));
  }
}

static void drop_args(const kiln_module *m, kl_array *args) {
  for (uint32_t k = 0; k < m->comp[m->entry].nparams; k++) free(args[k].data);
}

// --- programs --------------------------------------------------------------------------------------------------------

enum { N = 2000 };

// F: f32[N], H: bf16[N], I: s32[N], U: u8[N], P: pred[N], C: c64[N]. x, y are parameters; e = exp(x), f = exp(x) and
// t = tanh(y) are inexact; z = e - f is anything near zero, q = z / 1e-45 often passes all floats, o = 0, b = 1e6,
// u = 2^-23, n = -0;
// h = 0.54930615, where tanh passes 1/2. A program's result is open (pred: may be either) at no more than `open`
// percent of its elements.
// clang-format off
static const struct {
  const char *body;
  int open;
} programs[] = {
    {"ROOT r = F add(e, t)", 5},
    {"ROOT r = F subtract(e, t)", 5},
    {"ROOT r = F multiply(t, e)", 10},
    {"ROOT r = F divide(t, e)", 10},
    {"ROOT r = F divide(e, t)", 20},
    {"ROOT r = F maximum(e, t)", 0},
    {"ROOT r = F minimum(e, t)", 0},
    {"ROOT r = F clamp(t, x, e)", 0},
    {"ROOT r = F negate(t)", 0},
    {"s = F subtract(e, t)\n ROOT r = F abs(s)", 5},
    {"ROOT r = F sign(t)", 0},
    {"ROOT r = F exponential(t)", 0},
    {"ROOT r = F log(t)", 0},
    {"ROOT r = F sqrt(t)", 0},
    {"ROOT r = F rsqrt(e)", 10},
    {"ROOT r = F logistic(t)", 0},
    {"ROOT r = F erf(t)", 0},
    {"ROOT r = F cbrt(t)", 0},
    {"ROOT r = F exponential-minus-one(t)", 0},
    {"ROOT r = F log-plus-one(t)", 0},
    {"ROOT r = F sine(t)", 0},
    {"ROOT r = F cosine(e)", 10},
    {"ROOT r = F tan(t)", 100},
    {"ROOT r = F atan2(t, e)", 100},
    {"ROOT r = F power(e, t)", 15},
    {"ROOT r = F exp10(t)", 0},
    {"ROOT r = F sinh(t)", 0},
    {"ROOT r = F cosh(t)", 0},
    {"ROOT r = F asin(t)", 25},
    {"ROOT r = F acos(t)", 25},
    {"ROOT r = F atan(e)", 0},
    {"ROOT r = F asinh(e)", 0},
    {"ROOT r = F acosh(e)", 5},
    {"ROOT r = F atanh(t)", 25},
    {"ROOT r = F acos(x)", 0},
    {"ROOT r = F acosh(x)", 0},
    {"ROOT r = F atanh(x)", 0},
    {"ROOT r = F asin(x)", 0},
    {"ROOT r = F cosh(z)", 5},
    {"s = F multiply(z, b)\n ROOT r = F cosh(s)", 20},
    {"c = C complex(x, y)\n ROOT r = C exponential(c)", 1},
    {"c = C complex(x, y)\n ROOT r = C exponential-minus-one(c)", 1},
    {"c = C complex(x, y)\n ROOT r = C log(c)", 1},
    {"c = C complex(x, y)\n ROOT r = C log-plus-one(c)", 1},
    {"c = C complex(x, y)\n ROOT r = C logistic(c)", 1},
    {"c = C complex(x, y)\n ROOT r = C exp10(c)", 2},
    {"c = C complex(x, y)\n d = C complex(y, x)\n ROOT r = C power(c, d)", 8},
    {"c = C complex(x, y)\n d = C complex(x, x)\n ROOT r = C atan2(c, d)", 15},
    {"c = C complex(x, y)\n ROOT r = C asin(c)", 1},
    {"c = C complex(x, y)\n ROOT r = C acosh(c)", 1},
    {"c = C complex(x, y)\n ROOT r = C atanh(c)", 1},
    {"c = C complex(x, y)\n ROOT r = C sinh(c)", 2},
    {"c = C complex(x, y)\n ROOT r = C rsqrt(c)", 2},
    {"ROOT r = F power(t, y)", 100},
    {"ROOT r = F remainder(e, y)", 40},
    {"ROOT r = F remainder(x, t)", 100},
    {"ROOT r = F floor(e)", 0},
    {"ROOT r = F round-nearest-even(e)", 0},
    {"ROOT r = F reduce-precision(e), exponent_bits=5, mantissa_bits=7", 0},
    {"ROOT r = P is-finite(e)", 5},
    {"ROOT r = P compare(e, t), direction=LT", 1},
    {"ROOT r = P compare(e, e), direction=EQ", 100},
    {"ROOT r = P compare(t, y), direction=GE", 12},
    {"ROOT r = P compare(e, t), direction=NE", 2},
    {"ROOT r = P compare(e, t), direction=LE, type=TOTALORDER", 2},
    {"p = P compare(t, y), direction=GE\n l = P compare(e, x), direction=LE\n a = P and(p, l)\n g = P not(p)\n ROOT r = P xor(a, g)", 12},
    {"p = P compare(e, y), direction=GE\n ROOT r = F select(p, e, t)", 5},
    {"p = P compare(e, y), direction=GE\n ROOT r = F select(p, x, y)", 5},
    {"ROOT r = H convert(e)", 0},
    {"k = H convert(e)\n g = H convert(t)\n ROOT r = H multiply(k, g)", 10},
    {"k = H convert(e)\n ROOT r = H tanh(k)", 0},
    {"ROOT r = f64[2000] convert(e)", 0},
    {"ROOT r = f8e4m3fn[2000] convert(e)", 5},
    {"ROOT r = f8e8m0fnu[2000] convert(t)", 5},
    {"ROOT r = I convert(e)", 0},
    {"i = I convert(e)\n ROOT r = I add(i, i)", 20},
    {"i = I convert(e)\n j = I convert(t)\n ROOT r = I multiply(i, j)", 20},
    {"i = I convert(e)\n ROOT r = I negate(i)", 0},
    {"i = I convert(e)\n ROOT r = I abs(i)", 0},
    {"i = I convert(t)\n j = I convert(e)\n ROOT r = I divide(i, j)", 10},
    {"i = I convert(e)\n ROOT r = I not(i)", 0},
    {"i = I convert(e)\n j = I convert(x)\n ROOT r = I xor(i, j)", 100},
    {"i = I convert(e)\n ROOT r = U convert(i)", 20},
    {"i = I convert(e)\n ROOT r = P convert(i)", 5},
    {"i = u64[2000] convert(e)\n ROOT r = P convert(i)", 5},
    {"i = u64[2000] convert(e)\n ROOT r = u64[2000] maximum(i, i)", 0},
    {"s = F subtract(t, y)\n ROOT r = P convert(s)", 12},
    {"ROOT r = I bitcast-convert(e)", 100},
    {"ROOT r = C complex(e, t)", 0},
    {"c = C complex(e, t)\n d = C complex(x, y)\n ROOT r = C add(c, d)", 10},
    {"c = C complex(e, t)\n d = C complex(x, y)\n ROOT r = C multiply(c, d)", 40},
    {"c = C complex(e, t)\n d = C complex(x, y)\n ROOT r = C divide(d, c)", 60},
    {"c = C complex(e, t)\n ROOT r = F abs(c)", 0},
    {"c = C complex(e, t)\n ROOT r = C negate(c)", 0},
    {"c = C complex(e, t)\n ROOT r = F imag(c)", 0},
    {"c = C complex(e, t)\n ROOT r = C exponential(c)", 100},
    {"c = C complex(e, t)\n ROOT r = c128[2000] convert(c)", 0},
    {"c = C complex(e, t)\n d = C complex(t, e)\n ROOT r = P compare(c, d), direction=EQ", 100},
    {"ROOT r = P compare(t, t), direction=NE", 0},
    {"k = P compare(t, t), direction=NE\n ROOT r = F select(k, o, t)", 0},
    {"s = F subtract(e, e)\n ROOT r = F add(s, t)", 5},
    {"s = F multiply(z, z)\n ROOT r = F sqrt(s)", 5},
    {"s = F divide(e, e)\n ROOT r = P compare(s, s), direction=EQ", 20},
    {"ROOT r = F atan2(t, t)", 10},
    {"ROOT r = F remainder(e, e)", 10},
    {"i = I convert(e)\n ROOT r = I xor(i, i)", 0},
    {"c = C complex(x, y)\n ROOT r = F abs(c)", 0},
    {"c = C complex(x, y)\n ROOT r = C tanh(c)", 0},
    {"c = C complex(e, t)\n ROOT r = P compare(c, c), direction=EQ", 0},
    {"v = F reverse(e), dimensions={0}\n ROOT r = F add(v, t)", 5},
    {"v = f32[4000] concatenate(e, y), dimensions={0}\n ROOT r = f32[4000] negate(v)", 0},
    {"k = f32[] constant(2)\n w = f32[] exponential(k)\n v = F broadcast(w), dimensions={}\n ROOT r = F multiply(v, x)", 0},
    {"k = f32[] constant(2)\n w = f32[] exponential(k)\n v = f32[2010] pad(x, w), padding=4_6\n ROOT r = f32[2010] add(v, v)", 0},
    {"v = f32[50,40] reshape(e)\n w = f32[40,50] transpose(v), dimensions={1,0}\n ROOT r = f32[20,50] slice(w), slice={[0:40:2], [0:50]}", 0},
    {"ROOT r = F divide(x, z)", 100},
    {"ROOT r = F divide(z, x)", 20},
    {"ROOT r = F rsqrt(z)", 100},
    {"ROOT r = F sqrt(z)", 100},
    {"ROOT r = F abs(z)", 5},
    {"s = F add(z, u)\n ROOT r = F abs(s)", 5},
    {"s = F add(z, u)\n ROOT r = P convert(s)", 100},
    {"k = F add(z, u)\n s = F maximum(k, n)\n ROOT r = F rsqrt(s)", 100},
    {"ROOT r = F power(z, x)", 100},
    {"ROOT r = F remainder(z, y)", 40},
    {"ROOT r = P convert(z)", 100},
    {"i = I convert(q)\n ROOT r = P convert(i)", 100},
    {"i = I convert(q)\n ROOT r = I add(i, i)", 100},
    {"i = I convert(q)\n ROOT r = I multiply(i, i)", 100},
    {"i = I convert(q)\n ROOT r = I abs(i)", 100},
    {"i = I convert(q)\n ROOT r = I negate(i)", 100},
    {"i = I convert(q)\n ROOT r = U convert(i)", 100},
    {"i = I convert(x)\n j = I convert(q)\n ROOT r = I divide(i, j)", 100},
    {"i = I convert(x)\n j = I convert(q)\n ROOT r = I remainder(i, j)", 100},
    {"ROOT r = P is-finite(q)", 100},
    {"p = P compare(z, o), direction=GE\n ROOT r = F select(p, x, y)", 20},
    {"p = P compare(z, o), direction=GE\n i = I convert(x)\n j = I convert(y)\n ROOT r = I select(p, i, j)", 0},
    {"w = F divide(x, z)\n ROOT r = I bitcast-convert(w)", 100},
    {"w = F divide(x, z)\n ROOT r = P compare(w, y), direction=LT", 100},
    {"w = F divide(x, z)\n ROOT r = P is-finite(w)", 100},
    {"k = F multiply(t, o)\n ROOT r = P compare(k, o), direction=EQ", 0},
    {"s = F multiply(z, o)\n ROOT r = P compare(s, o), direction=GE", 20},
    {"c = C complex(e, f)\n d = C complex(x, y)\n ROOT r = C divide(d, c)", 100},
    {"c = C complex(z, o)\n d = C complex(x, y)\n ROOT r = C divide(d, c)", 100},
    {"c = C complex(e, z)\n d = C complex(x, y)\n ROOT r = C divide(d, c)", 60},
    {"c = C complex(z, t)\n ROOT r = F abs(c)", 10},
    {"c = C complex(z, t)\n ROOT r = P convert(c)", 100},
    {"s = F add(h, z)\n ROOT r = F tanh(s)", 5},
    {"s = F add(h, z)\n ROOT r = F erf(s)", 5},
    {"s = F multiply(z, b)\n ROOT r = F sine(s)", 20},
    {"s = F multiply(z, b)\n ROOT r = F cosine(s)", 20},
    {"s = F multiply(z, b)\n ROOT r = F remainder(s, y)", 80},
    {"s = F multiply(z, b)\n ROOT r = F floor(s)", 20},
    {"v = f32[50,40]{0,1} copy(m)\n ROOT r = f32[40,50] bitcast(v)", 0},
};
// clang-format on

// One letter stands for a type.
static void expand(const char *body, char *text, size_t room) {
  static const char *const types[128] = {['F'] = "f32[2000]", ['H'] = "bf16[2000]", ['I'] = "s32[2000]",
                                         ['U'] = "u8[2000]",  ['P'] = "pred[2000]", ['C'] = "c64[2000]"};
  size_t n = (size_t)snprintf(text, room,
                              "HloModule t\nENTRY e {\n x = f32[2000] parameter(0)\n y = f32[2000] parameter(1)\n"
                              " e = f32[2000] exponential(x)\n f = f32[2000] exponential(x)\n t = f32[2000] tanh(y)\n"
                              " m = f32[50,40] reshape(e)\n z = f32[2000] subtract(e, f)\n"
                              " c0 = f32[] constant(0)\n o = f32[2000] broadcast(c0), dimensions={}\n"
                              " c1 = f32[] constant(1e6)\n b = f32[2000] broadcast(c1), dimensions={}\n"
                              " c2 = f32[] constant(0.54930615)\n h = f32[2000] broadcast(c2), dimensions={}\n"
                              " c4 = f32[] constant(1.1920929e-7)\n u = f32[2000] broadcast(c4), dimensions={}\n"
                              " c5 = f32[] constant(-0)\n n = f32[2000] broadcast(c5), dimensions={}\n"
                              " c3 = f32[] constant(1e-45)\n d3 = f32[2000] broadcast(c3), dimensions={}\n"
                              " q = f32[2000] divide(z, d3)\n ");
  for (const char *p = body; *p; p++) {
    bool word = p[1] == ' ' && p > body && p[-1] == ' ' && types[(int)*p];
    n += (size_t)snprintf(text + n, room - n, "%.*s", word ? 20 : 1, word ? types[(int)*p] : p);
  }
  snprintf(text + n, room - n, "\n}\n");
}

START_TEST(devices_within_bounds_pass) {
  char text[4096];
  expand(programs[_i].body, text, sizeof text);
  kiln_module *m = parse(text);
  int64_t open = 0, total = 0;
  for (int round = 0; round < 6; round++) {
    kl_array args[2];
    kl_result r;
    seed = (uint64_t)(1000 * _i + round);
    make_args(m, args);
    evaluate(m, m->entry, args, true, &r);
    void *found = run_device(m, args);
    EXPECT(count_refused(&r, found) == 0, "%lld refused of\n%s", (long long)count_refused(&r, found), text);
    EXPECT(count_refused(&r, r.data.data) == 0, "its own data\n%s", text);
    open += count_any(&r);
    total += r.data.shape->count;
    free(found);
    kl_result_free(cx, &r);
    drop_args(m, args);
  }
  EXPECT(open * 100 <= total * programs[_i].open, "%lld of %lld open\n%s", (long long)open, (long long)total, text);
  kiln_module_destroy(&m);
}
END_TEST

// --- widths ----------------------------------------------------------------------------------------------------------

static int64_t order(kl_dtype t, uint64_t bits) {
  uint64_t sign = 1ull << (kl_info(t)->bits - 1);
  return bits & sign ? -1 - (int64_t)(bits ^ sign) : (int64_t)bits;
}

static const char *const functions[] = {"exponential", "log",   "tanh",  "logistic", "erf",  "rsqrt",
                                        "sine",        "power", "exp10", "sinh",     "cosh", "asin",
                                        "acos",        "atan",  "asinh", "acosh",    "atanh"};

// From points, an interval reaches no further than the bound: outwards floor(bound + 1/2) values, inwards at most
// floor(2 bound + 1); and one past its ends is refused.
START_TEST(widths_follow_bounds) {
  for (int wide = 0; wide < 2; wide++) {
    kl_dtype t = wide ? KILN_F64 : KILN_F32;
    const char *name = kiln_dtype_name(t);
    char text[512];
    bool two = !strcmp(functions[_i], "power");
    snprintf(text, sizeof text,
             "HloModule t\nENTRY e { x = %s[500] parameter(0)\n y = %s[500] parameter(1)\n ROOT r = %s[500] %s(x%s) }",
             name, name, name, functions[_i], two ? ", y" : "");
    kiln_module *m = parse(text);
    double bound = kl_op_ulp_bound(kl_root(&m->comp[m->entry])->op, t);
    kl_array args[2];
    kl_result r;
    seed = 5;
    make_args(m, args);
    evaluate(m, m->entry, args, true, &r);
    ck_assert(!r.any && r.lo != r.data.data);
    for (int64_t i = 0; i < 500; i++) {
      uint64_t data = kl_element_get(t, r.data.data, i, 0), lo = kl_element_get(t, r.lo, i, 0),
               hi = kl_element_get(t, r.hi, i, 0);
      if (kl_float_is_nan(t, data)) {
        ck_assert(!kl_result_allows(&r, i, (uint64_t[2]){0, 0}));
        continue;
      }
      int64_t below = order(t, data) - order(t, lo), above = order(t, hi) - order(t, data),
              most = (int64_t)(2 * bound + 1);
      EXPECT(below >= 0 && above >= 0 && below <= most && above <= most, "%lld %lld\n%s", (long long)below,
             (long long)above, text);
      uint64_t past[2] = {kl_float_next(t, hi, true), 0}, under[2] = {kl_float_next(t, lo, false), 0},
               nan[2] = {kl_float_encode(t, NAN), 0};
      EXPECT(past[0] == hi || !kl_result_allows(&r, i, past), "past the end\n%s", text);
      EXPECT(under[0] == lo || !kl_result_allows(&r, i, under), "under the end\n%s", text);
      ck_assert(!kl_result_allows(&r, i, nan));
    }
    kl_result_free(cx, &r);
    drop_args(m, args);
    kiln_module_destroy(&m);
  }
}
END_TEST

static void expect_interval(const char *op, kl_dtype t, double x, const char *lo, const char *hi) {
  char text[256], got_lo[96], got_hi[96];
  snprintf(text, sizeof text, "HloModule t\nENTRY e { x = %s[] parameter(0)\n ROOT r = %s[] %s(x) }",
           kiln_dtype_name(t), kiln_dtype_name(t), op);
  kiln_module *m = parse(text);
  uint64_t bits = kl_float_encode(t, x), v[2] = {0};
  kl_array arg = {NULL, &bits};
  kl_result r;
  evaluate(m, m->entry, &arg, true, &r);
  v[0] = kl_element_get(t, r.lo, 0, 0);
  kl_scalar_text(got_lo, t, v);
  v[0] = kl_element_get(t, r.hi, 0, 0);
  kl_scalar_text(got_hi, t, v);
  EXPECT(!strcmp(got_lo, lo) && !strcmp(got_hi, hi), "%s(%g): [%s, %s]", op, x, got_lo, got_hi);
  kl_result_free(cx, &r);
  kiln_module_destroy(&m);
}

START_TEST(exact_points_and_ranges) {
  expect_interval("exponential", KILN_F32, 0, "1", "1");
  expect_interval("exponential", KILN_F32, -INFINITY, "0", "0");
  expect_interval("exponential", KILN_F32, -200, "0", "1e-45");
  expect_interval("exponential", KILN_F32, 200, "3.402823e+38", "inf");
  expect_interval("tanh", KILN_F32, -0.0, "-0.0", "-0.0");
  expect_interval("tanh", KILN_F32, INFINITY, "1", "1");
  expect_interval("log", KILN_F64, 1, "0", "0");
  expect_interval("log", KILN_F64, 0, "-inf", "-inf");
  expect_interval("logistic", KILN_F32, 0, "0.5", "0.5");
  expect_interval("exponential", KILN_BF16, 3, "20.1", "20.1");
  expect_interval("sqrt", KILN_F32, 2, "1.4142135", "1.4142135");
  expect_interval("cosh", KILN_F32, 1e-5, "1", "1.0000001");
  expect_interval("acos", KILN_F32, 1, "0", "0");
  expect_interval("acos", KILN_F64, 0, "1.5707963267948966", "1.5707963267948966");
  expect_interval("atan", KILN_F32, 1e30, "1.5707963", "1.5707964");
  expect_interval("atanh", KILN_F32, -1, "-inf", "-inf");
  expect_interval("acosh", KILN_F64, 1, "0", "0");
}
END_TEST

// tanh(20) is 1 to rounding: its interval must not pass 1, and keeps the values just below.
START_TEST(range_holds_at_its_end) {
  kiln_module *m = parse("HloModule t\nENTRY e { x = f32[1] parameter(0)\n ROOT r = f32[1] tanh(x) }");
  float x = 20;
  kl_array arg = {NULL, &x};
  kl_result r;
  evaluate(m, m->entry, &arg, true, &r);
  ck_assert(*(float *)r.hi == 1 && *(float *)r.lo < 1 && *(float *)r.lo >= 1 - 5 * 0x1p-24f);
  kl_result_free(cx, &r);
  kiln_module_destroy(&m);
}
END_TEST

// Exact graphs share one array; so do inexact ones whose results turn out certain.
START_TEST(exact_graphs_pay_nothing) {
  static const char *const bodies[] = {"a = f32[4] add(x, x)\n ROOT r = f32[4] sqrt(a)",
                                       "b = bf16[4] convert(x)\n ROOT r = bf16[4] tanh(b)",
                                       ("e = f32[4] exponential(x)\n z = f32[] constant(0)\n b = f32[4] broadcast(z), "
                                        "dimensions={}\n ROOT r = pred[4] compare(e, b), direction=GE"),
                                       "e = f32[4] exponential(x)\n ROOT r = pred[4] is-finite(e)"};
  for (size_t k = 0; k < KL_COUNT(bodies); k++) {
    char text[512];
    float x[4] = {1, -2, 0.5f, 3};
    kl_array arg = {NULL, x};
    kl_result r;
    snprintf(text, sizeof text, "HloModule t\nENTRY e { x = f32[4] parameter(0)\n %s }", bodies[k]);
    kiln_module *m = parse(text);
    evaluate(m, m->entry, &arg, true, &r);
    EXPECT(r.lo == r.data.data && r.hi == r.data.data && !r.any, "%s", text);
    kl_result_free(cx, &r);
    kiln_module_destroy(&m);
  }
}
END_TEST

// Bits of a computed NaN are open, those of a parameter are not.
START_TEST(nan_bits) {
  kiln_module *m =
      parse("HloModule t\nENTRY e { x = f32[2] parameter(0)\n a = f32[2] add(x, x)\n i = s32[2] bitcast-convert(a)\n"
            " c = f32[2] copy(x)\n j = s32[2] bitcast-convert(c)\n k = u8[2,4] bitcast-convert(a)\n"
            " p = pred[2] compare(a, x), direction=LT, type=TOTALORDER\n"
            " ROOT r = (s32[2], s32[2], u8[2,4], pred[2]) tuple(i, j, k, p) }");
  float x[2] = {NAN, 1};
  kl_array arg = {NULL, x};
  kl_result r[4];
  evaluate(m, m->entry, &arg, true, r);
  ck_assert(r[0].any && r[0].any[0] == 1);
  ck_assert(!r[1].any);
  ck_assert(r[2].any && r[2].any[0] == 15);
  const uint8_t *lo = r[3].lo, *hi = r[3].hi;
  ck_assert(lo[0] == 0 && hi[0] == 1 && lo[1] == 0 && hi[1] == 0);
  for (int k = 0; k < 4; k++) kl_result_free(cx, &r[k]);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_interval", EACH(make_context, drop_context),
                   {devices_within_bounds_pass, (int)KL_COUNT(programs)},
                   {widths_follow_bounds, (int)KL_COUNT(functions)}, {exact_points_and_ranges},
                   {range_holds_at_its_end}, {exact_graphs_pay_nothing}, {nan_bits});
}
