// Programs, map and reduce, against plain loops over indices of their own; the intervals against folds in every order,
// or many.
#include "support/dtypes.h"
#include "support/suite.h"
#include "tree_model.h"

// --- programs -----------------------------------------------------------------------------------------------------

// Bodies on x: f32, y: s32, z: c64 and their like, told as lines with $ for the dimensions.
static const char *const bodies[] = {
    "ROOT r = f32$ add(x, x)",
    "c = f32[] constant(2.5) b = f32$ broadcast(c), dimensions={} m = f32$ multiply(x, b) ROOT r = f32$ subtract(m, x)",
    "e = f32$ exponential(x) t = f32$ tanh(e) ROOT r = f32$ divide(t, e)",
    "f = f32$ convert(y) a = f32$ add(f, x) ROOT r = s32$ convert(a)",
    "p = pred$ compare(x, x), direction=GE q = pred$ not(p) ROOT r = f32$ select(q, x, x)",
    "b = s32$ bitcast-convert(x) o = s32$ or(b, y) ROOT r = f32$ bitcast-convert(o)",
    "w = c64$ multiply(z, z) u = f32$ real(w) v = f32$ imag(w) k = f32$ atan2(u, v) ROOT r = c64$ complex(k, x)",
    "h = bf16$ convert(x) g = bf16$ logistic(h) ROOT r = f32$ convert(g)",
    "l = f32$ log(x) m = f32$ exponential(l) p = pred$ compare(m, x), direction=EQ ROOT r = pred$ or(p, p)",
    "s = s32$ shift-left(y, y) p = s32$ popcnt(s) ROOT r = s32$ clamp(y, p, s)",
    "i = pred$ is-finite(x) ROOT r = f32$ select(i, x, x)",
};

static void expect_same_result(const kl_result *a, const kl_result *b, const char *what) {
  kl_dtype t = a->data.shape->dtype;
  for (int64_t i = 0; i < a->data.shape->count; i++) {
    EXPECT(is_open(a, i) == is_open(b, i), "%s: element %lld open", what, (long long)i);
    for (int p = 0; p < parts(t); p++) {
      const void *x[3] = {a->data.data, a->lo, a->hi}, *y[3] = {b->data.data, b->lo, b->hi};
      for (int k = 0; k < (is_open(a, i) ? 1 : 3); k++)
        EXPECT(same_bits(part_of(t), result_bits(a, x[k], i, p), result_bits(b, y[k], i, p)),
               "%s: element %lld plane %d: %s, inline %s", what, (long long)i, k,
               bits_text(part_of(t), result_bits(a, x[k], i, p)), bits_text(part_of(t), result_bits(b, y[k], i, p)));
    }
  }
}

static void spell(char *to, const char *body, const char *dims) {
  for (; *body; body++) {
    if (*body == '$')
      to += sprintf(to, "%s", dims);
    else
      *to++ = *body;
  }
  *to = 0;
}

static const char *root_type(const char *body) {
  static char name[8];
  sscanf(strstr(body, "ROOT r = ") + 9, "%7[a-z0-9]", name);
  return name;
}

// map(body) is the body on whole arrays, intervals and all; also through a fusion, a call and a tuple.
START_TEST(program) {
  const char *body = bodies[_i];
  const int64_t dims[1] = {1500};
  array args[3] = {new_array(KILN_F32, 1, dims), new_array(KILN_S32, 1, dims), new_array(KILN_C64, 1, dims)};
  char whole[1000], lane[1000], text[5000];
  for (int k = 0; k < 3; k++) fill_array(&args[k], k == 0 ? FILL_PLAIN : FILL_WILD);
  for (int64_t i = 0; i < 300; i++) put(&args[0], i, 0, random_bits(KILN_F32, FILL_WILD));
  spell(whole, body, "[1500]");
  spell(lane, body, "[]");
  const char *t = root_type(body);
  for (int nested = 0; nested < 2; nested++)
    for (int intervals = 0; intervals < 2; intervals++) {
      // Operands that are inexact already.
      const char *before =
          intervals ? "x0 = f32[1500] parameter(0) x = f32[1500] sine(x0)" : "x = f32[1500] parameter(0)";
      const char *tail = "y = s32[1500] parameter(1) z = c64[1500] parameter(2)";
      sprintf(text, "HloModule m\nENTRY e { %s %s %s }", before, tail, whole);
      run want = evaluate(text, 3, args, intervals);
      sprintf(text,
              "HloModule m\nb { x = f32[] parameter(0) y = s32[] parameter(1) z = c64[] parameter(2) %s }\n"
              "t { x = f32[] parameter(0) y = s32[] parameter(1) z = c64[] parameter(2) "
              "r = %s[] fusion(x, y, z), kind=kLoop, calls=b ROOT t = (%s[], s32[]) tuple(r, y) }\n"
              "n { x = f32[] parameter(0) y = s32[] parameter(1) z = c64[] parameter(2) "
              "r = (%s[], s32[]) call(x, y, z), to_apply=t ROOT g = %s[] get-tuple-element(r), index=0 }\n"
              "ENTRY e { %s %s ROOT r = %s[1500] map(x, y, z), dimensions={0}, to_apply=%s }",
              lane, t, t, t, t, before, tail, t, nested ? "n" : "b");
      run got = evaluate(text, 3, args, intervals);
      expect_same_result(&got.r[0], &want.r[0], body);
      drop_run(&got);
      drop_run(&want);
    }
  for (int k = 0; k < 3; k++) free(args[k].data);
}
END_TEST

// What is no elementwise op runs lane by lane: here a sum of a constant array, and a conditional.
START_TEST(program_of_other_ops) {
  const int64_t dims[1] = {3000};
  array x = new_array(KILN_S32, 1, dims);
  fill_array(&x, FILL_SMALL);
  run r = evaluate(
      "HloModule m\nadd { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n"
      "f { x = s32[] parameter(0) i = s32[5] iota(), iota_dimension=0 b = s32[5] broadcast(x), dimensions={} "
      "m = s32[5] multiply(i, b) z = s32[] constant(7) ROOT r = s32[] reduce(m, z), dimensions={0}, to_apply=add }\n"
      "ENTRY e { p = s32[3000] parameter(0) ROOT r = s32[3000] map(p), dimensions={0}, to_apply=f }",
      1, &x, true);
  for (int64_t i = 0; i < 3000; i++)
    EXPECT(result_value(&r.r[0], r.r[0].data.data, i, 0) == 10 * value(&x, i, 0) + 7, "element %lld", (long long)i);
  drop_run(&r);
  free(x.data);
}
END_TEST

// --- reduce -------------------------------------------------------------------------------------------------------

static const char *const combiners[] = {"add", "multiply", "maximum", "minimum", "and", "or", "xor"};

static bool has_combiner(kl_dtype t, int op) {
  bool bits = t == KILN_PRED || kl_is_int(t);
  return op < 4 || bits;
}

// The reference for one part, which all ops but sums and products of floats determine.
static uint64_t naive_combine(kl_dtype t, int op, uint64_t a, uint64_t b) {
  int64_t x = kl_int_decode(t, a), y = kl_int_decode(t, b);
  if (t == KILN_PRED) return op == 0 || op == 2 || op == 5 ? a | b : op == 6 ? a ^ b : a & b;
  bool greater = t == KILN_U64 ? a > b : x > y;
  switch (op) {
  case 0: return (a + b) & kl_int_mask(t);
  case 1: return (a * b) & kl_int_mask(t);
  case 2: return greater ? a : b;
  case 3: return greater ? b : a;
  case 4: return a & b;
  case 5: return a | b;
  default: return a ^ b;
  }
}

static uint64_t naive_extreme(kl_dtype t, int op, uint64_t a, uint64_t b) {
  double x = kl_float_decode(t, a), y = kl_float_decode(t, b);
  if (x != x) return a;
  if (y != y) return b;
  bool first = x == y ? (signbit(x) != 0) == (op == 3) : (x > y) == (op == 2);
  return first ? a : b;
}

static uint64_t identity(kl_dtype t, int op) {
  bool floats = kl_is_float(t), e8m0 = t == KILN_F8E8M0FNU;
  uint64_t least = t == KILN_PRED || !kl_is_signed(t) ? 0 : 1ull << (kl_info(t)->bits - 1);
  uint64_t most = t == KILN_PRED ? 1 : kl_is_signed(t) ? least - 1 : kl_int_mask(t);
  switch (op) {
  case 0: return floats ? kl_float_encode(t, e8m0 ? 0x1p-127 : 0) : 0;
  case 1: return floats ? kl_float_encode(t, 1) : 1;
  case 2: return floats ? kl_float_encode(t, e8m0 ? 0x1p-127 : -1000) : least;
  case 3: return floats ? kl_float_encode(t, 1000) : most;
  case 4: return t == KILN_PRED ? 1 : kl_int_mask(t);
  default: return 0;
  }
}

// The text of a combiner: plain, with operands swapped, or computed in a wider type.
static void spell_combiner(char *to, kl_dtype t, int op, int form) {
  const char *n = kiln_dtype_name(t), *wide = t == KILN_BF16 || t == KILN_F16 ? "f32" : NULL;
  to += sprintf(to, "f { a = %s[] parameter(0) b = %s[] parameter(1) ", n, n);
  if (form == 2 && wide)
    sprintf(to, "c = %s[] convert(a) d = %s[] convert(b) o = %s[] %s(c, d) ROOT r = %s[] convert(o) }", wide, wide,
            wide, combiners[op], n);
  else
    sprintf(to, "ROOT r = %s[] %s(%s) }", n, combiners[op], form == 1 ? "b, a" : "a, b");
}

static array reduced_array(const array *a, unsigned mask) {
  int64_t dims[8];
  uint32_t n = 0;
  for (uint32_t d = 0; d < a->rank; d++)
    if (!(mask >> d & 1)) dims[n++] = a->dims[d];
  return new_array(a->t, n, dims);
}

// Terms of result i: the initial value, then the elements in row-major order.
static int64_t terms_of(const array *a, unsigned mask, int64_t i, int64_t *at) {
  int64_t n = 0;
  for (int64_t k = 0; k < a->count; k++) {
    int64_t index[8], kept[8], dims[8];
    uint32_t rank = 0;
    unravel(a->rank, a->dims, k, index);
    for (uint32_t d = 0; d < a->rank; d++)
      if (!(mask >> d & 1)) {
        kept[rank] = index[d];
        dims[rank++] = a->dims[d];
      }
    if (linear(rank, dims, kept) == i) at[n++] = k;
  }
  return n;
}

static void reduce_text(char *text, const array *a, const array *out, unsigned mask, int op, int form) {
  char f[500];
  int64_t dims[8];
  uint32_t n = 0;
  for (uint32_t d = 0; d < a->rank; d++)
    if (mask >> d & 1) dims[n++] = d;
  spell_combiner(f, a->t, op, form);
  sprintf(text,
          "HloModule m\n%s\nENTRY e { a = %s parameter(0) i = %s[] parameter(1) "
          "ROOT r = %s reduce(a, i), dimensions={%s}, to_apply=f }",
          f, type_text(a), kiln_dtype_name(a->t), type_text(out), list_text(n, dims, ","));
}

static void check_exact(const array *a, const array *init, const run *r, unsigned mask, int op, const char *text) {
  const kl_result *z = &r->r[0];
  kl_dtype t = a->t;
  int64_t *at = malloc(sizeof *at * ((size_t)a->count + 1));
  EXPECT(z->lo == z->data.data && z->hi == z->data.data && !z->any, "inexact\n%s", text);
  for (int64_t i = 0; i < z->data.shape->count; i++) {
    uint64_t want = get(init, 0, 0), got = result_bits(z, z->data.data, i, 0);
    int64_t n = terms_of(a, mask, i, at);
    for (int64_t k = 0; k < n; k++)
      want =
          kl_is_float(t) ? naive_extreme(t, op, want, get(a, at[k], 0)) : naive_combine(t, op, want, get(a, at[k], 0));
    EXPECT(same_bits(t, got, want), "element %lld: %s, expected %s\n%s", (long long)i, bits_text(t, got),
           bits_text(t, want), text);
  }
  free(at);
}

static double unit_of(kl_dtype t) {
  return ldexp(1, -1 - kl_info(t)->man_bits);
}

static double least_of(kl_dtype t) {
  return kl_info(t)->kind == KL_E8M0 ? 0x1p-127 : ldexp(1, 1 - kl_info(t)->bias - kl_info(t)->man_bits);
}

// Sums and products of floats: the rule's data, every order allowed, and no more than the bound on either side.
static void check_orders(const array *a, const array *init, const run *r, unsigned mask, int op, bool wide,
                         const char *text) {
  const kl_result *z = &r->r[0];
  kl_dtype t = part_of(a->t);
  model_shape shape = {a->rank, a->dims, NULL, mask};
  int64_t *at = malloc(sizeof *at * ((size_t)a->count + 1));
  double *terms = malloc(sizeof *terms * ((size_t)a->count + 1));
  for (int64_t i = 0; i < z->data.shape->count; i++) {
    int64_t n = terms_of(a, mask, i, at) + 1;
    uint64_t want[2];
    sum_model(&shape, a, init, (arithmetic){a->t, op == 1, wide}, i, want);
    for (int part = 0; part < parts(a->t); part++) {
      __float128 sum = op == 1 ? 1 : 0, sizes = 0, most = 1;
      for (int64_t k = 0; k < n; k++) {
        terms[k] = k == 0 ? value(init, 0, part) : value(a, at[k - 1], part);
        sum = op == 1 ? sum * terms[k] : sum + terms[k];
        sizes += fabs(terms[k]);
        most *= fmax(fabs(terms[k]), 1);
      }
      if (op == 1) sizes = sum < 0 ? -sum : sum;
      uint64_t got = result_bits(z, z->data.data, i, part);
      EXPECT(same_bits(t, got, want[part]), "element %lld: %s, expected %s\n%s", (long long)i, bits_text(t, got),
             bits_text(t, want[part]), text);
      for (int trial = 0; trial < 20; trial++) {
        uint64_t other = kl_float_encode(t, random_order(op == 1, t, n, terms));
        uint64_t bits[2] = {result_bits(z, z->data.data, i, 0),
                            parts(a->t) == 2 ? result_bits(z, z->data.data, i, 1) : 0};
        bits[part] = other;
        EXPECT(kl_result_allows(z, i, bits), "element %lld: %s refused, not in [%s, %s]\n%s", (long long)i,
               bits_text(t, other), bits_text(t, result_bits(z, z->lo, i, part)),
               bits_text(t, result_bits(z, z->hi, i, part)), text);
      }
      double lo = result_value(z, z->lo, i, part), hi = result_value(z, z->hi, i, part);
      double bound = op == 1 ? expm1((double)(n - 1) * unit_of(t)) : (double)(n - 1) * unit_of(t);
      // Products that underflow are off by the least value, enlarged by what is above 1; f4e2m1fn stops at its ends.
      double absolute = op == 1 ? (1 + bound) * (double)n * least_of(t) * (double)most : 0;
      if (!is_open(z, i) && isfinite(hi - lo) && t != KILN_F4E2M1FN)
        EXPECT(hi - lo <= 2.1 * (bound * (double)sizes + absolute), "element %lld: width %g, bound %g\n%s",
               (long long)i, hi - lo, bound * (double)sizes + absolute, text);
    }
  }
  free(terms);
  free(at);
}

// Every type, every combiner it has, every set of dimensions of a small array, with and without elements.
START_TEST(reduce_types) {
  kl_dtype t = dtypes_that(kl_is_array_dtype).at[_i];
  static const int64_t shapes[][3] = {{2, 3, 4}, {5, 1, 3}, {3, 0, 2}, {1, 1, 1}};
  for (size_t shape = 0; shape < KL_COUNT(shapes); shape++)
    for (int op = 0; op < 7; op++)
      for (unsigned mask = 0; mask < 8; mask++) {
        if (!has_combiner(t, op) || (kl_is_complex(t) && op > 0)) continue;
        bool floats = kl_is_float(t) || kl_is_complex(t), rounds = floats && op < 2;
        array args[2] = {new_array(t, 3, shapes[shape]), new_scalar(t)}, out = reduced_array(&args[0], mask);
        char text[2000];
        seed = (uint64_t)(_i * 1000 + (int)shape * 100 + op * 10) + mask;
        fill_array(&args[0], rounds ? FILL_PLAIN : FILL_WILD);
        put(&args[1], 0, 0, mask & 1 && floats && op == 0 ? random_bits(t, FILL_PLAIN) : identity(part_of(t), op));
        int form = (int)(mask + shape) % 3;
        reduce_text(text, &args[0], &out, mask, op, form);
        run r = evaluate(text, 2, args, true);
        if (rounds)
          check_orders(&args[0], &args[1], &r, mask, op, form == 2 && (t == KILN_BF16 || t == KILN_F16), text);
        else
          check_exact(&args[0], &args[1], &r, mask, op, text);
        drop_run(&r);
        run plain = evaluate(text, 2, args, false);
        EXPECT(plain.r[0].lo == plain.r[0].data.data, "intervals nobody asked for");
        drop_run(&plain);
        free(args[0].data), free(args[1].data), free(out.data);
      }
}
END_TEST

typedef struct complex_number {
  double re, im;
} complex_number;

static complex_number times(kl_dtype t, complex_number x, complex_number y) {
  double ac = round_to(t, x.re * y.re), bd = round_to(t, x.im * y.im);
  double ad = round_to(t, x.re * y.im), bc = round_to(t, x.im * y.re);
  return (complex_number){round_to(t, ac - bd), round_to(t, ad + bc)};
}

// Products of complex numbers in any order lie in a disc; where one is infinite nothing is known.
START_TEST(reduce_complex_product) {
  kl_dtype t = _i % 2 ? KILN_C128 : KILN_C64, part = part_of(t);
  const int64_t dims[1] = {_i < 2 ? 12 : 3};
  array args[2] = {new_array(t, 1, dims), new_scalar(t)}, out = new_scalar(t);
  char text[2000];
  fill_array(&args[0], FILL_PLAIN);
  put(&args[1], 0, 0, kl_float_encode(part, 1));
  if (_i / 2 == 2) put(&args[0], 1, 0, kl_float_encode(part, INFINITY));
  if (_i / 2 == 3) put(&args[0], 1, 0, 0), put(&args[0], 1, 1, 0);
  reduce_text(text, &args[0], &out, 1, 1, 0);
  run r = evaluate(text, 2, args, true);
  const kl_result *z = &r.r[0];
  double size = 1;
  for (int64_t k = 0; k < dims[0]; k++) size *= hypot(value(&args[0], k, 0), value(&args[0], k, 1));
  for (int trial = 0; trial < 200; trial++) {
    complex_number left[16];
    int64_t n = dims[0];
    for (int64_t k = 0; k < n; k++) left[k] = (complex_number){value(&args[0], k, 0), value(&args[0], k, 1)};
    while (n > 1) {
      int64_t i = below(n), j = below(n - 1);
      if (j >= i) j++;
      left[i] = times(part, left[i], left[j]);
      left[j] = left[--n];
    }
    uint64_t bits[2] = {kl_float_encode(part, left[0].re), kl_float_encode(part, left[0].im)};
    EXPECT(kl_result_allows(z, 0, bits), "(%g, %g) refused", left[0].re, left[0].im);
  }
  EXPECT(is_open(z, 0) == (_i / 2 == 2), "open");
  for (int k = 0; k < 2 && !is_open(z, 0); k++) {
    double width = result_value(z, z->hi, 0, k) - result_value(z, z->lo, 0, k);
    EXPECT(width <= 5 * (double)dims[0] * unit_of(part) * size + 1e-30, "width %g", width);
  }
  drop_run(&r);
  free(args[0].data), free(args[1].data), free(out.data);
}
END_TEST

// Long rows: chunks, several workers, a splat operand.
START_TEST(reduce_long) {
  static const kl_dtype types[] = {KILN_F32, KILN_F64, KILN_BF16, KILN_F16, KILN_S32, KILN_C64};
  kl_dtype t = types[_i];
  for (unsigned mask = 1; mask < 4; mask++) {
    const int64_t dims[2] = {37, 1411};
    array args[2] = {new_array(t, 2, dims), new_scalar(t)}, out = reduced_array(&args[0], mask);
    char text[2000];
    seed = mask;
    fill_array(&args[0], t == KILN_S32 ? FILL_WILD : FILL_PLAIN);
    reduce_text(text, &args[0], &out, mask, 0, 0);
    run r = evaluate(text, 2, args, true);
    // The orders are checked on a sample: the first result has all.
    if (t == KILN_S32) {
      check_exact(&args[0], &args[1], &r, mask, 0, text);
    } else {
      check_orders(&args[0], &args[1], &r, mask, 0, false, text);
    }
    drop_run(&r);
    free(args[0].data), free(args[1].data), free(out.data);
  }
}
END_TEST

// Values that decide by their order whether infinity, NaN, zero or a number comes out: every order of five is allowed,
// and a result that is open has orders that leave the numbers.
typedef struct hard {
  kl_dtype t;
  bool product;
  int n;
  double v[6];
} hard;
#define BIG 3.4028234663852886e38
static const hard hard_cases[] = {
    {KILN_F32, false, 3, {BIG, BIG, -BIG}},
    {KILN_F32, false, 4, {BIG, BIG, -BIG, -BIG}},
    {KILN_F32, false, 4, {BIG, 0x1p103, 0x1p102, -1}},
    {KILN_F32, false, 3, {INFINITY, 1, 2}},
    {KILN_F32, false, 3, {INFINITY, -BIG, -BIG}},
    {KILN_F32, false, 3, {INFINITY, -INFINITY, 1}},
    {KILN_F32, false, 3, {NAN, 1, 2}},
    {KILN_F32, false, 3, {NAN, BIG, BIG}},
    {KILN_F32, false, 2, {-0.0, -0.0}},
    {KILN_F32, false, 3, {-0.0, -0.0, 0.0}},
    {KILN_F32, false, 3, {1, -1, -0.0}},
    {KILN_F32, false, 5, {1, 0x1p-24, 0x1p-24, 0x1p-24, -1}},
    {KILN_F32, false, 5, {0x1p-149, -0x1p-148, 0x1p-149, 3 * 0x1p-149, 0}},
    {KILN_F32, false, 5, {1e8, 1, -1e8, 1, 0.25}},
    {KILN_F32, false, 4, {BIG, 0x1p102, 0x1p102, 0x1p102}},
    {KILN_F64, false, 4, {0x1p1023, 0x1p1023, -0x1p1023, 1}},
    {KILN_F64, false, 4, {0x1p1023, -0x1p1023, 0x1p-1074, 1}},
    {KILN_F64, false, 5, {1, 0x1p-53, 0x1p-53, -1, 0x1p-106}},
    {KILN_F64, false, 3, {-INFINITY, 0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023}},
    {KILN_F16, false, 5, {65504, 16, -65504, 8, 8}},
    {KILN_BF16, false, 5, {256, 1, 1, 1, -256}},
    {KILN_F8E4M3FN, false, 4, {448, 32, -448, 1}},
    {KILN_F8E4M3FN, false, 3, {448, 448, 448}},
    {KILN_F8E5M2, false, 4, {57344, 57344, -57344, 3}},
    {KILN_F8E4M3FNUZ, false, 4, {240, 10, -240, 3}},
    {KILN_F4E2M1FN, false, 5, {6, 6, -6, 1.5, 0.5}},
    {KILN_F4E2M1FN, false, 3, {1, 1.5, 2}},
    {KILN_F8E8M0FNU, false, 4, {1, 1, 2, 4}},
    {KILN_F8E8M0FNU, false, 3, {0x1p127, 0x1p127, 1}},
    {KILN_F32, true, 4, {0x1p100, 0x1p100, 0x1p-100, 0x1p-100}},
    {KILN_F32, true, 4, {0x1p100, 0x1p100, 0x1p-100, 0}},
    {KILN_F32, true, 3, {0x1p-100, 0x1p-100, 0x1p100}},
    {KILN_F32, true, 3, {INFINITY, 0, 1}},
    {KILN_F32, true, 4, {INFINITY, 0x1p-100, 0x1p-100, 3}},
    {KILN_F32, true, 3, {INFINITY, -2, 3}},
    {KILN_F32, true, 3, {NAN, 0, 3}},
    {KILN_F32, true, 3, {-0.0, 2, 3}},
    {KILN_F32, true, 3, {-0.0, -2, 3}},
    {KILN_F32, true, 5, {1.1f, 1.3f, 1.7f, -1.9f, 1.01f}},
    {KILN_F32, true, 4, {0x1.8p-75, 0x1.cp-74, 0x1.4p20, 0x1.2p3}},
    {KILN_F64, true, 5, {1.1, 1.3, 1.7, -1.9, 1.01}},
    {KILN_F64, true, 4, {0x1p600, 0x1p600, 0x1p-600, 0x1.8p-600}},
    {KILN_F16, true, 4, {300, 300, 0.01, 0.01}},
    {KILN_BF16, true, 4, {1.5, 1.25, 3, 1.125}},
    {KILN_F8E4M3FN, true, 3, {16, 32, 0.125}},
    {KILN_F4E2M1FN, true, 3, {3, 4, 0.5}},
};

START_TEST(reduce_hard) {
  const hard *h = &hard_cases[_i];
  const int64_t dims[1] = {h->n};
  array args[2] = {new_array(h->t, 1, dims), new_scalar(h->t)}, out = new_scalar(h->t);
  double terms[8];
  char text[2000];
  static outcomes all;
  put(&args[1], 0, 0, kl_float_encode(h->t, h->product ? 1 : -0.0));
  if (h->t == KILN_F8E8M0FNU) put(&args[1], 0, 0, kl_float_encode(h->t, 0x1p-127));
  terms[h->n] = value(&args[1], 0, 0);
  for (int k = 0; k < h->n; k++) {
    put(&args[0], k, 0, kl_float_encode(h->t, h->v[k]));
    terms[k] = value(&args[0], k, 0);
  }
  all_orders(h->product, h->t, h->n + 1, terms, &all);
  reduce_text(text, &args[0], &out, 1, h->product ? 1 : 0, 0);
  run r = evaluate(text, 2, args, true);
  const kl_result *z = &r.r[0];
  bool differ = all.n > 1;
  expect_all_allowed(z, h->t, &all);
  if (!differ && h->n <= 2) EXPECT(z->lo == z->data.data, "inexact");
  drop_run(&r);
  free(args[0].data), free(args[1].data), free(out.data);
}
END_TEST

// Sums of integers in floats that all orders get right are exact.
START_TEST(reduce_exact) {
  const int64_t dims[1] = {5000};
  array args[2] = {new_array(KILN_F32, 1, dims), new_scalar(KILN_F32)}, out = new_scalar(KILN_F32);
  char text[2000];
  double sum = 0;
  for (int64_t i = 0; i < 5000; i++) {
    double v = (double)between(-1000, 1000) * 0.125;
    put(&args[0], i, 0, kl_float_encode(KILN_F32, v));
    sum += v;
  }
  reduce_text(text, &args[0], &out, 1, 0, 0);
  run r = evaluate(text, 2, args, true);
  EXPECT(r.r[0].lo == r.r[0].data.data && *(float *)r.r[0].data.data == (float)sum, "not the exact sum");
  drop_run(&r);
  // One element finer, and the sum no longer fits.
  put(&args[0], 17, 0, kl_float_encode(KILN_F32, 0x1p-10));
  r = evaluate(text, 2, args, true);
  EXPECT(r.r[0].lo != r.r[0].data.data, "exact");
  drop_run(&r);
  free(args[0].data), free(args[1].data), free(out.data);
}
END_TEST

// Inexact operands: any choice within their intervals, in any order, is allowed.
START_TEST(reduce_inexact) {
  static const char *const ops[] = {"add", "multiply", "maximum", "minimum"};
  const int64_t dims[2] = {40, 24};
  array args[2] = {new_array(KILN_F32, 2, dims), new_scalar(KILN_F32)};
  char text[2000];
  fill_array(&args[0], FILL_PLAIN);
  run e = evaluate("HloModule m\nENTRY e { p = f32[40,24] parameter(0) ROOT r = f32[40,24] sine(p) }", 1, args, true);
  put(&args[1], 0, 0, kl_float_encode(KILN_F32, _i == 1 ? 1.25 : _i == 2 ? -INFINITY : _i == 3 ? INFINITY : 0.5));
  sprintf(text,
          "HloModule m\nf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] %s(a, b) }\nENTRY e "
          "{ p = f32[40,24] parameter(0) i = f32[] parameter(1) s = f32[40,24] sine(p) "
          "ROOT r = f32[40] reduce(s, i), dimensions={1}, to_apply=f }",
          ops[_i]);
  run r = evaluate(text, 2, args, true);
  for (int64_t i = 0; i < 40; i++)
    for (int trial = 0; trial < 50; trial++) {
      double terms[25] = {value(&args[1], 0, 0)}, got;
      for (int k = 0; k < 24; k++) {
        bool high = trial == 0 || (trial > 1 && next_random() & 1);
        terms[k + 1] = result_value(&e.r[0], high ? e.r[0].hi : e.r[0].lo, i * 24 + k, 0);
      }
      got = terms[0];
      for (int k = 1; k < 25 && _i >= 2; k++) got = _i == 2 ? fmax(got, terms[k]) : fmin(got, terms[k]);
      if (_i < 2) got = random_order(_i == 1, KILN_F32, 25, terms);
      uint64_t bits[2] = {kl_float_encode(KILN_F32, got), 0};
      EXPECT(kl_result_allows(&r.r[0], i, bits), "%s: element %d: %.9g refused, in [%.9g, %.9g]", ops[_i], (int)i, got,
             result_value(&r.r[0], r.r[0].lo, i, 0), result_value(&r.r[0], r.r[0].hi, i, 0));
      if (_i == 1) {
        double lo = result_value(&r.r[0], r.r[0].lo, i, 0), hi = result_value(&r.r[0], r.r[0].hi, i, 0);
        EXPECT(hi - lo <= fabs(got) * 1e-4, "a product as wide as %g around %g", hi - lo, got);
      }
    }
  drop_run(&r);
  drop_run(&e);
  free(args[0].data), free(args[1].data);
}
END_TEST

#define ARGMAX                                                                                                         \
  "f { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3) "                   \
  "g = pred[] compare(a, b), direction=GT n = pred[] compare(a, a), direction=NE o = pred[] or(g, n) "                 \
  "q = pred[] compare(a, b), direction=EQ l = pred[] compare(i, j), direction=LT t = pred[] and(q, l) "                \
  "k = pred[] or(o, t) v = f32[] select(o, a, b) w = s32[] select(k, i, j) ROOT r = (f32[], s32[]) tuple(v, w) }\n"

// A reducer of several operands that no combiner describes: exact.
START_TEST(reduce_argmax) {
  const int64_t dims[3] = {3, 700, 2};
  array args[4] = {new_array(KILN_F32, 3, dims), new_array(KILN_S32, 3, dims), new_scalar(KILN_F32),
                   new_scalar(KILN_S32)};
  fill_array(&args[0], FILL_SMALL);
  for (int64_t i = 0; i < args[1].count; i++) put(&args[1], i, 0, (uint64_t)(i / 2 % 700));
  put(&args[0], 5, 0, kl_float_encode(KILN_F32, NAN));
  put(&args[2], 0, 0, kl_float_encode(KILN_F32, -INFINITY));
  run r =
      evaluate("HloModule m\n" ARGMAX
               "ENTRY e { p = f32[3,700,2] parameter(0) q = s32[3,700,2] parameter(1) x = f32[] parameter(2) "
               "y = s32[] parameter(3) ROOT r = (f32[3,2], s32[3,2]) reduce(p, q, x, y), dimensions={1}, to_apply=f }",
               4, args, true);
  EXPECT(r.r[0].lo == r.r[0].data.data && r.r[1].lo == r.r[1].data.data, "inexact");
  for (int64_t i = 0; i < 3; i++)
    for (int64_t j = 0; j < 2; j++) {
      double best = -INFINITY;
      int64_t where = 0;
      for (int64_t k = 0; k < 700 && best == best; k++) {
        double v = value(&args[0], (i * 700 + k) * 2 + j, 0);
        if (v > best || v != v) best = v, where = k;
      }
      EXPECT((int64_t)result_value(&r.r[1], r.r[1].data.data, i * 2 + j, 0) == where, "index of row %d", (int)i);
    }
  drop_run(&r);
  for (int k = 0; k < 4; k++) free(args[k].data);
}
END_TEST

// Operands narrower than the reducer's accumulators: as if converted first.
static const struct {
  const char *operand, *init, *acc, *body;
  kl_dtype t, i;
} narrow_cases[] = {
    {"bf16", "f16", "f32", "add(a, b)", KILN_BF16, KILN_F16},
    {"f8e4m3fn", "f32", "f32", "add(a, b)", KILN_F8E4M3FN, KILN_F32},
    {"f32", "f4e2m1fn", "f32", "maximum(a, b)", KILN_F32, KILN_F4E2M1FN},
    {"f32", "f32", "f64", "subtract(a, b)", KILN_F32, KILN_F32},
    {"s8", "s32", "s32", "add(a, b)", KILN_S8, KILN_S32},
    {"u4", "u8", "u16", "multiply(a, b)", KILN_U4, KILN_U8},
    {"c64", "c128", "c128", "add(a, b)", KILN_C64, KILN_C128},
};

START_TEST(narrow_operands) {
  static const struct {
    const char *shape, *attributes;
  } ops[] = {
      {"[5]", "reduce(x, z), dimensions={1}"},
      {"[7]", "reduce(x, z), dimensions={0}"},
      {"[]", "reduce(x, z), dimensions={0,1}"},
      {"[4,7]", "reduce-window(x, z), window={size=2x3 pad=0_0x1_1}"},
  };
  const int64_t dims[2] = {5, 7};
  array args[2] = {new_array(narrow_cases[_i].t, 2, dims), new_scalar(narrow_cases[_i].i)};
  fill_array(&args[0], FILL_PLAIN), fill_array(&args[1], FILL_SMALL);
  const char *t = narrow_cases[_i].operand, *init = narrow_cases[_i].init, *acc = narrow_cases[_i].acc;
  for (size_t o = 0; o < KL_COUNT(ops); o++) {
    run r[2];
    char text[1000];
    for (int wide = 0; wide < 2; wide++) {
      sprintf(text,
              "HloModule m\nf { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = %s[] %s }\n"
              "ENTRY e { %s = %s[5,7] parameter(0) %s = %s[] parameter(1) %s = %s[5,7] convert(%s) "
              "%s = %s[] convert(%s) ROOT r = %s%s %s, to_apply=f }",
              acc, acc, acc, narrow_cases[_i].body, wide ? "p" : "x", t, wide ? "q" : "z", init, wide ? "x" : "p", acc,
              wide ? "p" : "x", wide ? "z" : "q", acc, wide ? "q" : "z", acc, ops[o].shape, ops[o].attributes);
      r[wide] = evaluate(text, 2, args, true);
    }
    expect_same_result(&r[0].r[0], &r[1].r[0], text);
    drop_run(&r[0]), drop_run(&r[1]);
  }
  free(args[0].data), free(args[1].data);
}
END_TEST

// Windows whose result has the narrower type of the initial value, written or not: what the reducer's type gives,
// rounded.
START_TEST(narrow_results) {
  const int64_t dims[2] = {5, 7};
  array args[2] = {new_array(KILN_BF16, 2, dims), new_scalar(KILN_BF16)};
  fill_array(&args[0], FILL_PLAIN), fill_array(&args[1], FILL_SMALL);
  static const char *const types[] = {"", "bf16[4,7] ", "(bf16[4,7]) "};
  static const char *const bodies[] = {"add(a, b)", "divide(a, b)"};
  for (size_t b = 0; b < KL_COUNT(bodies); b++) {
    char head[500], text[1500];
    const char *window = "window={size=2x3 pad=0_0x1_1}, to_apply=f";
    sprintf(head,
            "HloModule m\nf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] %s }\n"
            "ENTRY e { x = bf16[5,7] parameter(0) z = bf16[] parameter(1)",
            bodies[b]);
    sprintf(text,
            "%s y = f32[5,7] convert(x) i = f32[] convert(z) w = f32[4,7] reduce-window(y, i), %s "
            "ROOT r = bf16[4,7] convert(w) }",
            head, window);
    run want = evaluate(text, 2, args, true);
    for (size_t t = 0; t < KL_COUNT(types); t++) {
      sprintf(text, "%s ROOT r = %sreduce-window(x, z), %s }", head, types[t], window);
      run got = evaluate(text, 2, args, true);
      ck_assert_int_eq(got.r[0].data.shape->dtype, KILN_BF16);
      expect_same_result(&got.r[0], &want.r[0], text);
      drop_run(&got);
    }
    drop_run(&want);
  }
  free(args[0].data), free(args[1].data);
}
END_TEST

// Reducers that return a tuple of one, and results that are one: the same values as without.
START_TEST(tuples_of_one) {
  static const struct {
    const char *type, *op;
  } ops[] = {
      {"f32[5]", "reduce(x, z), dimensions={1}, to_apply=s"},
      {"f32[7]", "reduce(x, z), dimensions={0}, to_apply=d"},
      {"f32[4,7]", "reduce-window(x, z), window={size=2x3 pad=0_0x1_1}, to_apply=s"},
      {"f32[4,5]", "reduce-window(x, z), window={size=2x3}, to_apply=d"},
      {"f32[5,7]", "sort(x), dimensions={1}, to_apply=l"},
      {"f32[5,7]", "scatter(x, i, y), update_window_dims={0,1}, inserted_window_dims={}, "
                   "scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=s"},
      {"f32[5,7]", "scatter(x, i, y), update_window_dims={0,1}, inserted_window_dims={}, "
                   "scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=d"},
      {"f32[5,7]", "select-and-scatter(x, w, z), window={size=1x2}, select=l, scatter=s"},
      {"f32[5,7]", "map(x, x), to_apply=d"},
  };
  const int64_t dims[2] = {5, 7};
  array args[2] = {new_array(KILN_F32, 2, dims), new_scalar(KILN_F32)};
  fill_array(&args[0], FILL_PLAIN), fill_array(&args[1], FILL_SMALL);
  bool array_only = strncmp(ops[_i].op, "select", 6) == 0 || strncmp(ops[_i].op, "map", 3) == 0;
  run r[3];
  for (int form = 0; form < (array_only ? 2 : 3); form++) {
    const char *o = form ? "(" : "", *c = form ? ")" : "", *m = form ? "tuple" : "copy";
    char text[3000];
    sprintf(text,
            "HloModule m\ns { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] add(a, b) ROOT r = %sf32[]%s "
            "%s(c) }\n"
            "d { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] divide(a, b) ROOT r = %sf32[]%s %s(c) }\n"
            "l { a = f32[] parameter(0) b = f32[] parameter(1) c = pred[] compare(a, b), direction=LT "
            "ROOT r = %spred[]%s %s(c) }\n"
            "ENTRY e { x = f32[5,7] parameter(0) z = f32[] parameter(1) i = s32[2] constant({1, 2}) "
            "y = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}}) w = f32[5,6] slice(x), slice={[0:5], [0:6]} ROOT r = %s%s%s "
            "%s }",
            o, c, m, o, c, m, o, c, m, form == 2 ? "(" : "", ops[_i].type, form == 2 ? ")" : "", ops[_i].op);
    r[form] = evaluate(text, 2, args, true);
    if (form) expect_same_result(&r[form].r[0], &r[0].r[0], text);
    if (form) drop_run(&r[form]);
  }
  drop_run(&r[0]);
  free(args[0].data), free(args[1].data);
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_reduce", EACH(make_context, drop_context), {program, KL_COUNT(bodies)}, {program_of_other_ops},
                   {reduce_types, dtypes_that(kl_is_array_dtype).n}, {reduce_complex_product, 8}, {reduce_long, 6},
                   {reduce_hard, KL_COUNT(hard_cases)}, {reduce_exact}, {reduce_inexact, 4}, {reduce_argmax},
                   {narrow_operands, KL_COUNT(narrow_cases)}, {narrow_results}, {tuples_of_one, 9});
}
