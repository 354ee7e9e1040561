// One value on both sides. What an op makes of an inexact value y and y again follows from y, unknown as it is: answers
// that are known, whatever y is; intervals that are y's own; and for every program of y: values that y may have, put in
// its place and computed with exactly, must give what the interval allows.
#include "support/suite.h"
#include "run.h"

enum { N = 400 };

// $ is the type of y and v, which are inexact, and of nothing known in places; ~ is its element type, P pred of the
// same dimensions.
typedef enum want {
  KNOWN,    // one right value, also where y is open
  FOLLOWS,  // one right value where y is not open
  AS_Y,     // the interval of y, element by element
  FINITE,   // one right value where y is finite
  NONZERO,  // likewise, and not 0
  POSITIVE, // not negative where y is not open
  ANYTHING, // no more than that it is right
} want;

typedef struct row {
  const char *types; // of y
  const char *body;
  want want;
} row;

#define FLOATS  "f32 f64 bf16 f16 f8e4m3fn f8e5m2"
#define INTS    "s32 u8 s64 u32"
#define COMPLEX "c64 c128"
#define REALS   FLOATS " " INTS

// clang-format off
static const row rows[] = {
    {FLOATS " " COMPLEX, "ROOT r = P compare(y, y), direction=EQ", FOLLOWS},
    {FLOATS " " COMPLEX, "ROOT r = P compare(y, y), direction=NE", FOLLOWS},
    {FLOATS " " COMPLEX, "ROOT r = P compare(y, y), direction=LE", FOLLOWS},
    {FLOATS " " COMPLEX, "ROOT r = P compare(y, y), direction=GE", FOLLOWS},
    {FLOATS " " COMPLEX, "ROOT r = P compare(y, y), direction=LT", KNOWN},
    {FLOATS " " COMPLEX, "ROOT r = P compare(y, y), direction=GT", KNOWN},
    {FLOATS, "ROOT r = P compare(y, y), direction=EQ, type=TOTALORDER", KNOWN},
    {FLOATS, "ROOT r = P compare(y, y), direction=NE, type=TOTALORDER", KNOWN},
    {FLOATS, "ROOT r = P compare(y, y), direction=LE, type=TOTALORDER", KNOWN},
    {FLOATS, "ROOT r = P compare(y, y), direction=GE, type=TOTALORDER", KNOWN},
    {FLOATS, "ROOT r = P compare(y, y), direction=LT, type=TOTALORDER", KNOWN},
    {FLOATS, "ROOT r = P compare(y, y), direction=GT, type=TOTALORDER", KNOWN},
    {INTS " pred", "ROOT r = P compare(y, y), direction=EQ", KNOWN},
    {INTS " pred", "ROOT r = P compare(y, y), direction=NE", KNOWN},
    {INTS " pred", "ROOT r = P compare(y, y), direction=LE", KNOWN},
    {INTS " pred", "ROOT r = P compare(y, y), direction=GE", KNOWN},
    {INTS " pred", "ROOT r = P compare(y, y), direction=LT", KNOWN},
    {INTS " pred", "ROOT r = P compare(y, y), direction=GT", KNOWN},
    // Through what moves values and keeps their places.
    {REALS, "k = $ copy(y) ROOT r = P compare(k, y), direction=LT", KNOWN},
    {REALS, "k = $ copy(y) l = $ copy(k) ROOT r = P compare(k, l), direction=GT", KNOWN},
    {FLOATS, "k = $ real(y) ROOT r = P compare(k, y), direction=GT", KNOWN},
    {REALS, "t = ($, $) tuple(y, v) k = $ get-tuple-element(t), index=0 ROOT r = P compare(y, k), direction=LT", KNOWN},
    {REALS, "t = ($, $) tuple(y, y) k = $ get-tuple-element(t), index=0 l = $ get-tuple-element(t), index=1 "
            "ROOT r = P compare(k, l), direction=LT", KNOWN},
    {REALS, "k = $ opt-barrier(y) ROOT r = P compare(y, k), direction=LT", KNOWN},
    {REALS, "h = ~[20,20] reshape(y) k = $ reshape(h) ROOT r = P compare(y, k), direction=LT", KNOWN},
    {REALS, "h = ~[20,20] reshape(y) k = ~[20,20] reshape(y) b = pred[20,20] compare(h, k), direction=LT ROOT r = P reshape(b)", KNOWN},
    {REALS, "h = ~[400,3] broadcast(y), dimensions={0} k = ~[400,3] broadcast(y), dimensions={0} "
            "ROOT r = pred[400,3] compare(h, k), direction=LT", KNOWN},
    {REALS, "h = ~[20,20] reshape(y) k = ~[20,20] transpose(h), dimensions={1,0} l = ~[20,20] transpose(h), dimensions={1,0} "
            "ROOT r = pred[20,20] compare(k, l), direction=LT", KNOWN},
    {REALS, "h = ~[7] slice(y), slice={[3:24:3]} k = ~[7] slice(y), slice={[3:24:3]} ROOT r = pred[7] compare(h, k), direction=LT", KNOWN},
    {REALS, "h = $ reverse(y), dimensions={0} k = $ reverse(y), dimensions={0} ROOT r = P compare(h, k), direction=LT", KNOWN},
    {REALS, "s = ~[1] slice(y), slice={[5:6]} c = ~[] reshape(s) h = $ broadcast(c), dimensions={} k = $ broadcast(c), dimensions={} "
            "ROOT r = P compare(h, k), direction=LT", KNOWN},
    {REALS, "ROOT r = P call(y, y), to_apply=less_of_arrays", KNOWN},
    {REALS, "ROOT r = P fusion(y, y), kind=kLoop, calls=less_of_arrays", KNOWN},
    {REALS, "ROOT r = P map(y, y), dimensions={0}, to_apply=less", KNOWN},
    {REALS, "ROOT r = P map(y), dimensions={0}, to_apply=less_itself", KNOWN},
    {REALS, "c = $ copy(y) ROOT r = P map(c, y), dimensions={0}, to_apply=less", KNOWN},
    // And where places differ, nothing is known.
    {REALS, "k = $ reverse(y), dimensions={0} ROOT r = P compare(k, y), direction=LT", ANYTHING},
    {REALS, "h = ~[7] slice(y), slice={[3:24:3]} k = ~[7] slice(y), slice={[4:25:3]} ROOT r = pred[7] compare(h, k), direction=EQ", ANYTHING},
    {REALS, "h = ~[20,20] reshape(y) k = ~[20,20] transpose(h), dimensions={1,0} ROOT r = pred[20,20] compare(k, h), direction=EQ", ANYTHING},
    {REALS, "ROOT r = P compare(y, v), direction=EQ", ANYTHING},
    // isnan, and what hangs on it.
    {FLOATS, "n = P compare(y, y), direction=NE o = $ broadcast(zero), dimensions={} ROOT r = $ select(n, o, y)", ANYTHING},
    {FLOATS, "n = P compare(y, y), direction=NE a = $ abs(y) g = $ negate(a) ROOT r = $ select(n, y, y)", AS_Y},
    {FLOATS, "n = P compare(y, y), direction=EQ ROOT r = P not(n)", FOLLOWS},
    {FLOATS, "d = $ subtract(y, y) ROOT r = P compare(d, d), direction=NE", FINITE},
    {"f32 bf16", "k = f64[400] convert(y) ROOT r = P compare(k, k), direction=NE", FOLLOWS},
    {FLOATS, "n = P is-finite(y) o = $ broadcast(zero), dimensions={} ROOT r = $ select(n, y, o)", ANYTHING},
    // Arithmetic.
    {REALS " pred", "ROOT r = $ maximum(y, y)", AS_Y},
    {REALS " pred", "ROOT r = $ minimum(y, y)", AS_Y},
    {COMPLEX, "ROOT r = $ maximum(y, y)", AS_Y},
    {COMPLEX, "ROOT r = $ minimum(y, y)", AS_Y},
    {REALS, "ROOT r = $ clamp(y, y, y)", AS_Y},
    {REALS, "ROOT r = $ clamp(y, v, y)", ANYTHING},
    {REALS " " COMPLEX, "p = P compare(v, v), direction=EQ ROOT r = $ select(p, y, y)", AS_Y},
    {REALS, "p = P compare(v, y), direction=LT ROOT r = $ select(p, y, y)", AS_Y},
    {INTS " pred", "ROOT r = $ and(y, y)", AS_Y},
    {INTS " pred", "ROOT r = $ or(y, y)", AS_Y},
    {INTS " pred", "ROOT r = $ xor(y, y)", KNOWN},
    {INTS, "ROOT r = $ subtract(y, y)", KNOWN},
    {INTS, "ROOT r = $ remainder(y, y)", KNOWN},
    {INTS, "ROOT r = $ divide(y, y)", ANYTHING},
    {INTS, "ROOT r = $ power(y, y)", ANYTHING},
    {INTS, "ROOT r = $ shift-left(y, y)", ANYTHING},
    {REALS " " COMPLEX, "ROOT r = $ add(y, y)", ANYTHING},
    {"f32 f64 bf16 f16", "ROOT r = $ multiply(y, y)", POSITIVE},
    {"f8e4m3fn f8e5m2", "ROOT r = $ multiply(y, y)", ANYTHING},
    {INTS " " COMPLEX, "ROOT r = $ multiply(y, y)", ANYTHING},
    {"pred", "ROOT r = $ multiply(y, y)", AS_Y},
    {FLOATS " " COMPLEX, "ROOT r = $ subtract(y, y)", FINITE},
    {FLOATS, "ROOT r = $ divide(y, y)", NONZERO},
    {COMPLEX, "ROOT r = $ divide(y, y)", ANYTHING},
    {FLOATS, "ROOT r = $ remainder(y, y)", NONZERO},
    {FLOATS, "ROOT r = $ power(y, y)", ANYTHING},
    {FLOATS, "ROOT r = $ atan2(y, y)", ANYTHING},
    {FLOATS, "m = $ multiply(y, y) ROOT r = $ sqrt(m)", ANYTHING},
    {"f32 f64 bf16 f16", "m = $ multiply(y, y) o = $ broadcast(zero), dimensions={} ROOT r = P compare(m, o), direction=LT", FOLLOWS},
    {FLOATS, "d = $ divide(y, y) g = $ subtract(y, y) ROOT r = $ multiply(d, g)", NONZERO},
    // A reducer that asks for NaN.
    {"f32 f64", "m = ~[] broadcast(zero), dimensions={} ROOT r = ~[] reduce(y, m), dimensions={0}, to_apply=add_numbers", ANYTHING},
    {"f32 f64", "h = ~[40,10] reshape(y) ROOT r = ~[40] reduce(h, zero), dimensions={1}, to_apply=add_numbers", ANYTHING},
};
// clang-format on

// --- programs -----------------------------------------------------------------------------------------------------

static void spell(char *to, const char *body, const char *type) {
  char typed[40];
  sprintf(typed, "%s[%d]", type, N);
  for (char before = ' '; *body; before = *body++) {
    bool word = body[1] == ' ' && before == ' ';
    if (*body == '$')
      to += sprintf(to, "%s", typed);
    else if (*body == '~')
      to += sprintf(to, "%s", type);
    else if (*body == 'P' && word)
      to += sprintf(to, "pred[%d]", N);
    else
      *to++ = *body;
  }
  *to = 0;
}

// The computations that bodies call.
static int spell_callees(char *to, const char *t) {
  return sprintf(to,
                 "HloModule m\n"
                 "less { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }\n"
                 "less_itself { a = %s[] parameter(0) c = %s[] copy(a) ROOT r = pred[] compare(a, c), direction=LT }\n"
                 "less_of_arrays { a = %s[%d] parameter(0) b = %s[%d] parameter(1) "
                 "ROOT r = pred[%d] compare(a, b), direction=LT }\n"
                 "add_numbers { a = %s[] parameter(0) b = %s[] parameter(1) z = %s[] constant(0) "
                 "n = pred[] compare(b, b), direction=NE c = %s[] select(n, z, b) ROOT r = %s[] add(a, c) }\n",
                 t, t, t, t, t, N, t, N, N, t, t, t, t, t);
}

// y is x + (tanh x - tanh x) * scale, or as near to it as the type allows: an interval of any width around x, which may
// cross zero or reach infinity. Where x is 2 it is 1 / (tanh x - tanh x), of which nothing is known. The same of v.
static int spell_inexact(char *to, const char *t, const char *from, const char *name, int param) {
  static const char part[] =
      "@x = * parameter(%) @e = * tanh(@x) @f = * tanh(@x) @z = * subtract(@e, @f) @b = * multiply(@z, scale) "
      "@c = * add(@b, @x) @g = * divide(two, @z) @p = P compare(@x, two), direction=EQ @d = * select(@p, @g, @c)\n";
  bool complex = t[0] == 'c', pred = !strcmp(t, "pred");
  char *begin = to;
  for (int k = 0; k < 1 + complex; k++)
    for (const char *p = part; *p; p++)
      to += *p == '@'   ? sprintf(to, "%s%d", name, k)
            : *p == '*' ? sprintf(to, "%s[%d]", from, N)
            : *p == 'P' ? sprintf(to, "pred[%d]", N)
            : *p == '%' ? sprintf(to, "%d", param + k)
                        : sprintf(to, "%c", *p);
  if (complex)
    to += sprintf(to, "%s = %s[%d] complex(%s0d, %s1d)\n", name, t, N, name, name);
  else if (pred)
    to += sprintf(to, "%s = pred[%d] compare(%s0d, %s0x), direction=GT\n", name, N, name, name);
  else
    to += sprintf(to, "%s = %s[%d] %s(%s0d)\n", name, t, N, !strcmp(t, from) ? "negate" : "convert", name);
  return (int)(to - begin);
}

static const double scales[] = {0x1p3, 0x1p16, 0x1p22, 0x1p24, 0x1p60, 0x1p127};

static double input(void) {
  switch (below(12)) {
  case 0: return 0;
  case 1: return -0.0;
  case 2: return below(2) ? INFINITY : -INFINITY;
  case 3: return NAN;
  case 4: return (double)between(-3, 3);
  case 5: return (double)between(-300, 300);
  case 6: return below(2) ? 0x1.fffffep127 : -0x1.fffffep127;
  case 7: return (double)between(-9, 9) * 1e-45;
  default: return (double)(int64_t)next_random() * 0x1p-61;
  }
}

// --- judging ------------------------------------------------------------------------------------------------------

static bool same_element(const kl_result *a, const kl_result *b, int64_t i) {
  kl_dtype t = a->data.shape->dtype;
  const void *x[3] = {a->data.data, a->lo, a->hi}, *y[3] = {b->data.data, b->lo, b->hi};
  if (is_open(a, i) || is_open(b, i)) return is_open(a, i) == is_open(b, i);
  for (int p = 0; p < parts(t); p++)
    for (int k = 0; k < 3; k++)
      if (!same_bits(part_of(t), result_bits(a, x[k], i, p), result_bits(b, y[k], i, p))) return false;
  return true;
}

static bool is_point(const kl_result *r, int64_t i) {
  kl_dtype t = r->data.shape->dtype;
  if (is_open(r, i)) return false;
  for (int p = 0; p < parts(t); p++)
    if (!same_bits(part_of(t), result_bits(r, r->lo, i, p), result_bits(r, r->hi, i, p)) ||
        !same_bits(part_of(t), result_bits(r, r->lo, i, p), result_bits(r, r->data.data, i, p)))
      return false;
  return true;
}

// Is every value of y's element finite, and where it matters not zero? True where it is NaN.
static bool is_plain(const kl_result *y, int64_t i, bool nonzero) {
  if (is_open(y, i)) return false;
  for (int p = 0; p < parts(y->data.shape->dtype); p++) {
    double lo = result_value(y, y->lo, i, p), hi = result_value(y, y->hi, i, p);
    if (isinf(lo) || isinf(hi) || (nonzero && lo <= 0 && hi >= 0)) return false;
  }
  return true;
}

static bool is_wanted(want w, const kl_result *r, const kl_result *y, int64_t i) {
  switch (w) {
  case KNOWN: return is_point(r, i);
  case FOLLOWS: return is_point(r, i) || is_open(y, i);
  case AS_Y: return same_element(r, y, i);
  case FINITE: return is_point(r, i) || !is_plain(y, i, false);
  case NONZERO: return is_point(r, i) || !is_plain(y, i, true);
  case POSITIVE: return is_open(y, i) || (!is_open(r, i) && !(result_value(r, r->lo, i, 0) < 0));
  default: return true;
  }
}

static void expect_wanted(const row *w, const char *type, const kl_result *r, const kl_result *y) {
  for (int64_t i = 0; i < r->data.shape->count; i++) {
    bool right = is_wanted(w->want, r, y, i);
    EXPECT(right, "%s: element %d of\n%s", type, (int)i, w->body);
    if (!right) return;
  }
}

// Patterns in the order of their values, -0 just below +0.
static __int128 place_of(kl_dtype t, uint64_t bits) {
  uint64_t sign = 1ull << (kl_info(t)->bits - 1);
  if (kl_is_float(t)) return bits & sign ? -1 - (__int128)(bits ^ sign) : (__int128)bits;
  return t == KILN_PRED || !kl_is_signed(t) ? (__int128)bits : kl_int_decode(t, bits);
}
static uint64_t at_place(kl_dtype t, __int128 place) {
  uint64_t sign = 1ull << (kl_info(t)->bits - 1);
  if (kl_is_float(t)) return place < 0 ? (uint64_t)(-1 - place) | sign : (uint64_t)place;
  return (uint64_t)place & kl_int_mask(t);
}

// Some value that y's element may have: an end, the evaluator's own, one near zero or anywhere between.
static uint64_t sample(const kl_result *y, int64_t i, int part) {
  kl_dtype t = part_of(y->data.shape->dtype);
  uint64_t data = result_bits(y, y->data.data, i, part);
  if (is_open(y, i)) return below(8) || !kl_is_float(t) ? random_bits(t, FILL_WILD) : kl_float_encode(t, NAN);
  if (kl_is_float(t) && kl_float_is_nan(t, data)) return data;
  __int128 lo = place_of(t, result_bits(y, y->lo, i, part)), hi = place_of(t, result_bits(y, y->hi, i, part));
  __int128 near = between(-2, 1), span = hi - lo + 1;
  switch (below(6)) {
  case 0: return at_place(t, lo);
  case 1: return at_place(t, hi);
  case 2: return data;
  case 3: return at_place(t, near < lo ? lo : near > hi ? hi : near);
  default: return at_place(t, lo + (__int128)((unsigned __int128)next_random() * (unsigned __int128)span >> 64));
  }
}

// Values that y and v may have, computed with exactly, give what `r` allows.
static void expect_allowed(const char *text, const row *w, const char *type, const run *r) {
  array args[2] = {new_array(r->r[1].data.shape->dtype, 1, (int64_t[]){N}),
                   new_array(r->r[1].data.shape->dtype, 1, (int64_t[]){N})};
  for (int64_t i = 0; i < N; i++)
    for (int p = 0; p < parts(args[0].t); p++)
      for (int k = 0; k < 2; k++) put(&args[k], i, p, sample(&r->r[1 + k], i, p));
  run exact = evaluate(text, 2, args, false);
  const kl_result *e = &exact.r[0];
  kl_dtype t = e->data.shape->dtype;
  for (int64_t i = 0; i < e->data.shape->count; i++) {
    uint64_t bits[2] = {result_bits(e, e->data.data, i, 0), parts(t) > 1 ? result_bits(e, e->data.data, i, 1) : 0};
    bool right = kl_result_allows(&r->r[0], i, bits);
    EXPECT(right, "%s: element %d, %s of y = %s, is refused: [%s, %s]\n%s", type, (int)i,
           bits_text(part_of(t), bits[0]), bits_text(part_of(args[0].t), get(&args[0], i % N, 0)),
           bits_text(part_of(t), result_bits(&r->r[0], r->r[0].lo, i, 0)),
           bits_text(part_of(t), result_bits(&r->r[0], r->r[0].hi, i, 0)), w->body);
    if (!right) break;
  }
  drop_run(&exact);
  free(args[0].data), free(args[1].data);
}

// The program with y and v inexact, and with both as parameters.
static void spell_programs(const row *w, const char *type, const char *from, char *inexact, char *exact) {
  char body[1000], result[40];
  const char *zero = type[0] == 'c' ? "(0,0)" : !strcmp(type, "pred") ? "false" : "0";
  spell(body, w->body, type);
  char *root = strstr(body, "ROOT ");
  sscanf(root, "ROOT r = %39s", result);
  memset(root, ' ', 5);
  inexact += spell_callees(inexact, type);
  inexact +=
      sprintf(inexact,
              "ENTRY e { s0 = %s[] constant(%g) scale = %s[%d] broadcast(s0), dimensions={} t0 = %s[] constant(2) "
              "two = %s[%d] broadcast(t0), dimensions={} zero = %s[] constant(%s)\n",
              from, scales[below((int64_t)KL_COUNT(scales))], from, N, from, from, N, type, zero);
  inexact += spell_inexact(inexact, type, from, "y", 0);
  inexact += spell_inexact(inexact, type, from, "v", 1 + (type[0] == 'c'));
  sprintf(inexact, "%s\nROOT all = (%s, %s[%d], %s[%d]) tuple(r, y, v) }\n", body, result, type, N, type, N);
  exact += spell_callees(exact, type);
  sprintf(exact,
          "ENTRY e { y = %s[%d] parameter(0) v = %s[%d] parameter(1) zero = %s[] constant(%s)\n %s\n"
          "ROOT all = (%s) tuple(r) }\n",
          type, N, type, N, type, zero, body, result);
}

static void try_type(const row *w, const char *type) {
  char inexact[6000], exact[4000];
  const char *from = !strcmp(type, "f64") || !strcmp(type, "c128") ? "f64" : "f32";
  array args[4];
  int n = type[0] == 'c' ? 4 : 2;
  spell_programs(w, type, from, inexact, exact);
  for (int k = 0; k < n; k++) {
    args[k] = new_array(!strcmp(from, "f64") ? KILN_F64 : KILN_F32, 1, (int64_t[]){N});
    for (int64_t i = 0; i < N; i++) put(&args[k], i, 0, kl_float_encode(args[k].t, input()));
  }
  run r = evaluate(inexact, (size_t)n, args, true);
  expect_wanted(w, type, &r.r[0], &r.r[1]);
  for (int round = 0; round < 6; round++) expect_allowed(exact, w, type, &r);
  drop_run(&r);
  for (int k = 0; k < n; k++) free(args[k].data);
}

START_TEST(both_sides) {
  const row *w = &rows[_i];
  char types[200];
  strcpy(types, w->types);
  seed = 900 + (uint64_t)_i;
  for (char *t = strtok(types, " "); t; t = strtok(NULL, " "))
    for (int round = 0; round < 3; round++) try_type(w, t);
}
END_TEST

// An array that the evaluator keeps as one element still has elements of its own, which a device computes one by one;
// a scalar that is broadcast is one value at every place.
START_TEST(places_of_splats) {
  static const struct {
    const char *value;
    bool known;
  } cases[] = {{"f32[9] broadcast(c), dimensions={} t = f32[9] sine(b)", false},
               {"f32[] sine(c) t = f32[9] broadcast(b), dimensions={}", true}};
  static const char *const pairs[] = {
      "u = f32[4] slice(t), slice={[0:4]} v = f32[4] slice(t), slice={[5:9]}",
      "i = s32[] parameter(0) j = s32[] parameter(1) u = f32[4] dynamic-slice(t, i), dynamic_slice_sizes={4} "
      "v = f32[4] dynamic-slice(t, j), dynamic_slice_sizes={4}",
      "w = f32[9] reverse(t), dimensions={0} u = f32[4] slice(t), slice={[0:4]} v = f32[4] slice(w), slice={[0:4]}",
      "h = f32[3,3] reshape(t) k = f32[3,3] transpose(h), dimensions={1,0} g = f32[9] reshape(k) "
      "u = f32[4] slice(t), slice={[0:4]} v = f32[4] slice(g), slice={[0:4]}",
  };
  for (size_t k = 0; k < KL_COUNT(cases); k++)
    for (size_t p = 0; p < KL_COUNT(pairs); p++) {
      char text[1000];
      array args[2] = {new_scalar(KILN_S32), new_scalar(KILN_S32)};
      put(&args[1], 0, 0, 5);
      sprintf(text,
              "HloModule m\nENTRY e { c = f32[] constant(2) b = %s %s ROOT r = pred[4] compare(u, v), direction=EQ }",
              cases[k].value, pairs[p]);
      run r = evaluate(text, p == 1 ? 2 : 0, args, true);
      bool wanted = cases[k].known ? true : !is_point(&r.r[0], 0);
      EXPECT(wanted, "%s", text);
      drop_run(&r);
      free(args[0].data), free(args[1].data);
    }
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_same", EACH(make_context, drop_context), {both_sides, (int)KL_COUNT(rows)},
                   {places_of_splats});
}
