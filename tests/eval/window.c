// reduce-window, select-and-scatter and scan against plain loops over indices of their own.
#include "support/suite.h"
#include "run.h"

#define ARGMAX                                                                                                         \
  "f { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3) "                   \
  "g = pred[] compare(a, b), direction=GT n = pred[] compare(a, a), direction=NE o = pred[] or(g, n) "                 \
  "q = pred[] compare(a, b), direction=EQ l = pred[] compare(i, j), direction=LT t = pred[] and(q, l) "                \
  "k = pred[] or(o, t) v = f32[] select(o, a, b) w = s32[] select(k, i, j) ROOT r = (f32[], s32[]) tuple(v, w) }\n"

// --- windows ------------------------------------------------------------------------------------------------------

typedef struct window {
  uint32_t rank;
  int64_t size[4], stride[4], low[4], high[4], base[4], hole[4];
} window;

static void random_window(window *w, uint32_t rank, bool plain) {
  w->rank = rank;
  for (uint32_t d = 0; d < rank; d++) {
    w->size[d] = between(1, 3);
    w->stride[d] = between(1, 3);
    w->low[d] = between(plain ? 0 : -2, plain ? w->size[d] - 1 : 3);
    w->high[d] = between(plain ? 0 : -2, plain ? w->size[d] - 1 : 3);
    w->base[d] = plain ? 1 : between(1, 3);
    w->hole[d] = plain ? 1 : between(1, 2);
  }
}

// False if there is no such window, or no place for it.
static bool window_result(const window *w, const int64_t *dims, int64_t *out) {
  for (uint32_t d = 0; d < w->rank; d++) {
    int64_t extent = (dims[d] - 1) * w->base[d] + 1 + w->low[d] + w->high[d], reach = (w->size[d] - 1) * w->hole[d] + 1;
    if (extent < reach) return false;
    out[d] = (extent - reach) / w->stride[d] + 1;
  }
  return true;
}

static const char *window_text(const window *w) {
  static char text[600];
  int n = sprintf(text, "window={size=%s stride=%s pad=", list_text(w->rank, w->size, "x"),
                  list_text(w->rank, w->stride, "x"));
  for (uint32_t d = 0; d < w->rank; d++)
    n += sprintf(text + n, "%s%lld_%lld", d ? "x" : "", (long long)w->low[d], (long long)w->high[d]);
  sprintf(text + n, " lhs_dilate=%s rhs_dilate=%s}", list_text(w->rank, w->base, "x"),
          list_text(w->rank, w->hole, "x"));
  return text;
}

// The elements that window `place` sees, in row-major order, found by asking of every element of the dilated and padded
// array whether it is one.
static int64_t window_elements(const window *w, const int64_t *dims, const int64_t *place, int64_t *at) {
  int64_t n = 0, taps = 1, tap[4];
  for (uint32_t d = 0; d < w->rank; d++) taps *= w->size[d];
  for (int64_t t = 0; t < taps; t++) {
    int64_t index[4];
    bool in = true;
    unravel(w->rank, w->size, t, tap);
    for (uint32_t d = 0; d < w->rank; d++) {
      int64_t p = place[d] * w->stride[d] + tap[d] * w->hole[d] - w->low[d];
      index[d] = -1;
      for (int64_t k = 0; k < dims[d]; k++)
        if (k * w->base[d] == p) index[d] = k;
      in &= index[d] >= 0;
    }
    if (in) at[n++] = linear(w->rank, dims, index);
  }
  return n;
}

START_TEST(reduce_window) {
  seed = (uint64_t)_i;
  uint32_t rank = (uint32_t)between(1, 3);
  int64_t dims[4], places[4];
  window w;
  for (uint32_t d = 0; d < rank; d++) dims[d] = between(1, 6);
  do random_window(&w, rank, false);
  while (!window_result(&w, dims, places));
  int op = _i % 5; // the last is no combiner
  static const char *const reducers[] = {"ROOT r = f32[] add(a, b)", "ROOT r = f32[] maximum(b, a)",
                                         "ROOT r = f32[] minimum(a, b)", "ROOT r = f32[] multiply(a, b)",
                                         "c = f32[] constant(2) m = f32[] multiply(a, c) ROOT r = f32[] add(m, b)"};
  static const double inits[] = {0, -INFINITY, INFINITY, 1, 5};
  array args[2] = {new_array(KILN_F32, rank, dims), new_scalar(KILN_F32)}, out = new_array(KILN_F32, rank, places);
  char text[2000];
  fill_array(&args[0], FILL_SMALL);
  put(&args[1], 0, 0, kl_float_encode(KILN_F32, inits[op]));
  sprintf(text,
          "HloModule m\nf { a = f32[] parameter(0) b = f32[] parameter(1) %s }\nENTRY e { p = %s parameter(0) "
          "i = f32[] parameter(1) ROOT r = %s reduce-window(p, i), %s, to_apply=f }",
          reducers[op], type_text(&args[0]), type_text(&out), window_text(&w));
  run r = evaluate(text, 2, args, true);
  for (int64_t i = 0; i < out.count; i++) {
    int64_t at[64], place[4];
    unravel(rank, places, i, place);
    int64_t n = window_elements(&w, dims, place, at);
    double want = inits[op];
    for (int64_t k = 0; k < n; k++) {
      double v = value(&args[0], at[k], 0);
      want = op == 0 ? want + v : op == 1 ? fmax(want, v) : op == 2 ? fmin(want, v) : op == 3 ? want * v : 2 * want + v;
    }
    EXPECT(result_value(&r.r[0], r.r[0].data.data, i, 0) == want, "element %d: %g, expected %g\n%s", (int)i,
           result_value(&r.r[0], r.r[0].data.data, i, 0), want, text);
  }
  drop_run(&r);
  free(args[0].data), free(args[1].data), free(out.data);
}
END_TEST

// Variadic, over more lanes than a chunk holds; and a long window of a combiner, more than a chunk.
START_TEST(reduce_window_long) {
  const int64_t dims[1] = {1300};
  array args[2] = {new_array(KILN_F32, 1, dims), new_array(KILN_S32, 1, dims)};
  fill_array(&args[0], FILL_SMALL);
  for (int64_t i = 0; i < 1300; i++) put(&args[1], i, 0, (uint64_t)i);
  run r = evaluate("HloModule m\n" ARGMAX
                   "ENTRY e { p = f32[1300] parameter(0) q = s32[1300] parameter(1) x = f32[] constant(-inf) "
                   "y = s32[] constant(-1) ROOT r = (f32[1300], s32[1300]) reduce-window(p, q, x, y), "
                   "window={size=3 pad=1_1}, to_apply=f }",
                   2, args, true);
  for (int64_t i = 0; i < 1300; i++) {
    int64_t best = i > 0 ? i - 1 : i;
    for (int64_t k = best + 1; k <= i + 1 && k < 1300; k++)
      if (value(&args[0], k, 0) > value(&args[0], best, 0)) best = k;
    EXPECT((int64_t)result_value(&r.r[1], r.r[1].data.data, i, 0) == best, "place of window %d", (int)i);
  }
  drop_run(&r);
  r = evaluate("HloModule m\nf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
               "ENTRY e { p = f32[1300] parameter(0) x = f32[] constant(0) ROOT r = f32[1300] reduce-window(p, x), "
               "window={size=1300 pad=1299_0}, to_apply=f }",
               1, args, true);
  double sum = 0;
  for (int64_t i = 0; i < 1300; i++) {
    sum += value(&args[0], i, 0);
    EXPECT(result_value(&r.r[0], r.r[0].data.data, i, 0) == sum && r.r[0].lo == r.r[0].data.data, "prefix %d", (int)i);
  }
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

// --- wide windows -------------------------------------------------------------------------------------------------

// Combiners on types that differ in how they are folded. `before` makes the elements of parameters: one by one exact,
// inexact, or now this and now that.
#define SINES "x = $ sine(p)"
#define PLAIN "x = $ copy(p)"
#define MIXED "y = $ sine(p) c = ~ constant(0.25) d = $ broadcast(c), dimensions={} x = $ maximum(y, d)"
static const struct {
  kl_dtype t;
  const char *op, *init, *before;
  fill values;
} wide_rows[] = {
    {KILN_F32, "add", "0", PLAIN, FILL_PLAIN},       {KILN_F32, "add", "-0", PLAIN, FILL_WILD},
    {KILN_F32, "add", "3", SINES, FILL_PLAIN},       {KILN_F32, "multiply", "1", PLAIN, FILL_PLAIN},
    {KILN_F32, "multiply", "-2", SINES, FILL_PLAIN}, {KILN_F32, "maximum", "-inf", PLAIN, FILL_WILD},
    {KILN_F32, "minimum", "inf", SINES, FILL_PLAIN}, {KILN_F64, "add", "0", PLAIN, FILL_WILD},
    {KILN_F64, "add", "0", SINES, FILL_PLAIN},       {KILN_F64, "multiply", "1", PLAIN, FILL_WILD},
    {KILN_BF16, "add", "0", PLAIN, FILL_PLAIN},      {KILN_F8E4M3FN, "maximum", "0", PLAIN, FILL_WILD},
    {KILN_C64, "add", "(1,2)", PLAIN, FILL_PLAIN},   {KILN_C128, "multiply", "(1,0)", PLAIN, FILL_PLAIN},
    {KILN_S32, "add", "7", PLAIN, FILL_WILD},        {KILN_S8, "multiply", "1", PLAIN, FILL_WILD},
    {KILN_U64, "maximum", "0", PLAIN, FILL_WILD},    {KILN_S64, "minimum", "5", PLAIN, FILL_WILD},
    {KILN_U8, "and", "255", PLAIN, FILL_WILD},       {KILN_U8, "or", "0", PLAIN, FILL_WILD},
    {KILN_U16, "xor", "3", PLAIN, FILL_WILD},        {KILN_PRED, "or", "false", PLAIN, FILL_WILD},
    {KILN_F32, "add", "0", MIXED, FILL_PLAIN},       {KILN_F64, "add", "1", MIXED, FILL_PLAIN},
    {KILN_F32, "multiply", "1", MIXED, FILL_PLAIN},  {KILN_F32, "maximum", "0.1", MIXED, FILL_PLAIN},
};

// Windows that see many elements, along one axis or two, sometimes with holes, strides, dilation and odd padding.
static void wide_window(window *w, int64_t *dims) {
  static const int64_t most[] = {0, 260, 26, 11};
  w->rank = (uint32_t)between(1, 3);
  for (uint32_t d = 0; d < w->rank; d++) {
    bool plain = below(3) > 0;
    dims[d] = between(1, most[w->rank]);
    w->size[d] = below(4) ? between(1, 2 * dims[d]) : 1;
    w->stride[d] = below(3) ? 1 : between(1, 7);
    w->base[d] = plain ? 1 : between(1, 4);
    w->hole[d] = plain ? 1 : between(1, 6);
    w->low[d] = between(-2, w->size[d] * w->hole[d]);
    w->high[d] = between(-2, w->size[d] * w->hole[d]);
  }
}

// The combiner, and ENTRY up to x.
static char *begin_text(char *to, int row, const array *p) {
  const char *n = kiln_dtype_name(p->t);
  to += sprintf(to,
                "HloModule m\nf { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = %s[] %s(a, b) }\n"
                "ENTRY e { p = %s parameter(0) i = %s[] constant(%s) ",
                n, n, n, wide_rows[row].op, type_text(p), n, wide_rows[row].init);
  for (const char *s = wide_rows[row].before; *s; s++)
    to += *s == '$' ? sprintf(to, "%s", type_text(p)) : *s == '~' ? sprintf(to, "%s[]", n) : sprintf(to, "%c", *s);
  return to;
}

// Neighbours at most: partial sums that decide how far an end lies are rounded, too.
static bool near(kl_dtype t, uint64_t a, uint64_t b) {
  return same_bits(t, a, b) || (kl_is_float(t) && (kl_float_next(t, a, true) == b || kl_float_next(t, b, true) == a));
}

static void expect_same_fold(const kl_result *got, int64_t i, const kl_result *want, const char *text) {
  kl_dtype t = got->data.shape->dtype, part = part_of(t);
  EXPECT(is_open(got, i) == is_open(want, 0), "window %d open: %d\n%s", (int)i, is_open(got, i), text);
  for (int p = 0; p < parts(t) && !is_open(got, i); p++) {
    uint64_t g[3] = {result_bits(got, got->data.data, i, p), result_bits(got, got->lo, i, p),
                     result_bits(got, got->hi, i, p)},
             e[3] = {result_bits(want, want->data.data, 0, p), result_bits(want, want->lo, 0, p),
                     result_bits(want, want->hi, 0, p)};
    EXPECT(same_bits(part, g[0], e[0]) && near(part, g[1], e[1]) && near(part, g[2], e[2]),
           "window %d: %s in [%s, %s], by itself %s in [%s, %s]\n%s", (int)i, bits_text(part, g[0]),
           bits_text(part, g[1]), bits_text(part, g[2]), bits_text(part, e[0]), bits_text(part, e[1]),
           bits_text(part, e[2]), text);
  }
}

// What a window sees, as an array of its own with one window.
static run fold_alone(int row, const array *from, int64_t n, const int64_t *at) {
  char text[1500];
  array x = new_array(from->t, 1, &n);
  for (int64_t k = 0; k < n; k++)
    for (int p = 0; p < parts(x.t); p++) put(&x, k, p, get(from, at[k], p));
  sprintf(begin_text(text, row, &x), " ROOT r = %s[1] reduce-window(x, i), window={size=%lld%s}, to_apply=f }",
          kiln_dtype_name(x.t), (long long)(n ? n : 1), n ? "" : " pad=1_0");
  run r = evaluate(text, 1, &x, true);
  free(x.data);
  return r;
}

// Numbers that are none, here and there.
static void spoil(array *a) {
  static const double values[] = {NAN, INFINITY, -INFINITY, 0, -0.0};
  for (int k = 0; k < 3 && kl_is_float(part_of(a->t)); k++)
    put(a, below(a->count), 0, kl_float_encode(part_of(a->t), values[below((int64_t)KL_COUNT(values))]));
}

START_TEST(wide_windows) {
  int row = _i % (int)KL_COUNT(wide_rows);
  seed = 4000 + (uint64_t)_i;
  window w;
  int64_t dims[4], places[4], *at = malloc(sizeof *at * 20000);
  do wide_window(&w, dims);
  while (!window_result(&w, dims, places));
  array p = new_array(wide_rows[row].t, w.rank, dims), out = new_array(wide_rows[row].t, w.rank, places);
  fill_array(&p, wide_rows[row].values);
  if (_i / (int)KL_COUNT(wide_rows) % 2) spoil(&p);
  char text[3000];
  sprintf(begin_text(text, row, &p), " ROOT r = %s reduce-window(x, i), %s, to_apply=f }", type_text(&out),
          window_text(&w));
  run r = evaluate(text, 1, &p, true);
  for (int64_t i = 0; i < out.count; i += 1 + out.count / 40) {
    int64_t place[4];
    unravel(w.rank, places, i, place);
    run alone = fold_alone(row, &p, window_elements(&w, dims, place, at), at);
    expect_same_fold(&r.r[0], i, &alone.r[0], text);
    drop_run(&alone);
  }
  drop_run(&r);
  free(at), free(p.data), free(out.data);
}
END_TEST

// Windows of so many elements that folds of them are not all kept.
START_TEST(windows_without_end) {
  enum { COUNT = 100000 };
  static const struct {
    int64_t size, low, high;
  } cases[] = {{COUNT, 0, COUNT - 1}, {COUNT, COUNT - 1, 0}, {30001, 15000, 15000}, {70000, 0, 69999}};
  array x = new_array(KILN_F32, 1, (int64_t[]){COUNT});
  fill_array(&x, FILL_SMALL);
  double *sum = calloc(COUNT + 1, sizeof *sum);
  for (int64_t i = 0; i < COUNT; i++) sum[i + 1] = sum[i] + value(&x, i, 0);
  for (size_t k = 0; k < KL_COUNT(cases); k++) {
    char text[600];
    int64_t size = cases[k].size, low = cases[k].low, high = cases[k].high;
    sprintf(text,
            "HloModule m\nf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
            "ENTRY e { p = f32[%d] parameter(0) x = f32[] constant(1) ROOT r = f32[%d] reduce-window(p, x), "
            "window={size=%d pad=%d_%d}, to_apply=f }",
            COUNT, COUNT, (int)size, (int)low, (int)high);
    run r = evaluate(text, 1, &x, true);
    for (int64_t i = 0; i < COUNT; i++) {
      int64_t from = i - low < 0 ? 0 : i - low, to = i - low + size > COUNT ? COUNT : i - low + size;
      double want = 1 + sum[to] - sum[from], got = result_value(&r.r[0], r.r[0].data.data, i, 0);
      if (got != want || r.r[0].lo != r.r[0].data.data)
        ck_abort_msg("window %d: %g, expected %g\n%s", (int)i, got, want, text);
    }
    drop_run(&r);
  }
  free(sum), free(x.data);
}
END_TEST

START_TEST(select_and_scatter) {
  static const char *const directions[] = {"GE", "GT", "LE", "LT"};
  static const char *const scatters[] = {
      "ROOT r = f32[] add(a, b)", "ROOT r = f32[] maximum(a, b)",
      "c = f32[] constant(2) m = f32[] multiply(a, c) ROOT r = f32[] subtract(m, b)"};
  seed = 77 + (uint64_t)_i;
  uint32_t rank = (uint32_t)between(1, 3);
  int64_t dims[4], places[4];
  window w;
  for (uint32_t d = 0; d < rank; d++) dims[d] = between(1, 6);
  do random_window(&w, rank, true);
  while (!window_result(&w, dims, places));
  int dir = _i % 4, op = _i % 3;
  array args[2] = {new_array(KILN_F32, rank, dims), new_array(KILN_F32, rank, places)};
  char text[2000];
  fill_array(&args[0], FILL_SMALL);
  fill_array(&args[1], FILL_SMALL);
  if (_i % 7 == 0) put(&args[0], 0, 0, kl_float_encode(KILN_F32, NAN));
  sprintf(
      text,
      "HloModule m\ns { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=%s }\n"
      "f { a = f32[] parameter(0) b = f32[] parameter(1) %s }\nENTRY e { p = %s parameter(0) q = %s parameter(1) "
      "i = f32[] constant(1) ROOT r = %s select-and-scatter(p, q, i), %s, select=s, scatter=f }",
      directions[dir], scatters[op], type_text(&args[0]), type_text(&args[1]), type_text(&args[0]), window_text(&w));
  run r = evaluate(text, 2, args, true);
  double *want = malloc(sizeof *want * (size_t)args[0].count);
  for (int64_t i = 0; i < args[0].count; i++) want[i] = 1;
  for (int64_t i = 0; i < args[1].count; i++) {
    int64_t at[64], place[4];
    unravel(rank, places, i, place);
    int64_t n = window_elements(&w, dims, place, at), best = at[0];
    for (int64_t k = 1; k < n; k++) {
      double a = value(&args[0], best, 0), b = value(&args[0], at[k], 0);
      bool keep = dir == 0 ? a >= b : dir == 1 ? a > b : dir == 2 ? a <= b : a < b;
      if (!keep) best = at[k];
    }
    double v = value(&args[1], i, 0);
    if (n) want[best] = op == 0 ? want[best] + v : op == 1 ? fmax(want[best], v) : 2 * want[best] - v;
  }
  for (int64_t i = 0; i < args[0].count; i++)
    EXPECT(result_value(&r.r[0], r.r[0].data.data, i, 0) == want[i], "element %d: %g, expected %g\n%s", (int)i,
           result_value(&r.r[0], r.r[0].data.data, i, 0), want[i], text);
  EXPECT(r.r[0].lo == r.r[0].data.data, "inexact\n%s", text);
  free(want);
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

// Windows that see many elements, of types that differ in their order, with ties, both zeros and NaNs.
static const struct {
  kl_dtype t;
  const char *order;
  fill values;
  bool total, spoilt;
} select_rows[] = {
    {KILN_F32, "a, b), direction=GE", FILL_SMALL, false, true},
    {KILN_F32, "a, b), direction=GT", FILL_SMALL, false, true},
    {KILN_F32, "a, b), direction=LE", FILL_PLAIN, false, false},
    {KILN_F32, "b, a), direction=LE", FILL_SMALL, false, true},
    {KILN_F32, "b, a), direction=GT", FILL_SMALL, false, false},
    {KILN_F32, "a, b), direction=GE, type=TOTALORDER", FILL_SMALL, true, true},
    {KILN_F32, "a, b), direction=LT, type=TOTALORDER", FILL_SMALL, true, false},
    {KILN_F64, "a, b), direction=GE", FILL_WILD, false, true},
    {KILN_F64, "b, a), direction=GE", FILL_SMALL, false, true},
    {KILN_BF16, "a, b), direction=GT", FILL_WILD, false, false},
    {KILN_F8E4M3FN, "a, b), direction=GE", FILL_WILD, false, false},
    {KILN_F8E5M2FNUZ, "a, b), direction=LE", FILL_WILD, false, false},
    {KILN_F8E8M0FNU, "a, b), direction=LT", FILL_WILD, false, false},
    {KILN_S32, "a, b), direction=GE", FILL_SMALL, false, false},
    {KILN_S64, "a, b), direction=LT", FILL_WILD, false, false},
    {KILN_U64, "a, b), direction=GT", FILL_WILD, false, false},
    {KILN_U8, "a, b), direction=LE", FILL_SMALL, false, false},
    {KILN_S4, "b, a), direction=LT", FILL_WILD, false, false},
    {KILN_PRED, "a, b), direction=GE", FILL_WILD, false, false},
    {KILN_F32, "a, b), direction=EQ", FILL_SMALL, false, false},
    {KILN_F32, "a, b), direction=NE", FILL_SMALL, false, true},
};

// -1, 0 or 1 as a is less than, equal to or greater than b; 2: not ordered.
static int ordered(kl_dtype t, bool total, uint64_t a, uint64_t b) {
  if (kl_is_float(t) && !total) {
    double x = kl_float_decode(t, a), y = kl_float_decode(t, b);
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
  }
  if (kl_is_float(t)) { // of f32: negative ones count downwards
    int64_t x = a >> 31 ? ~(int64_t)(a & 0x7fffffff) : (int64_t)a,
            y = b >> 31 ? ~(int64_t)(b & 0x7fffffff) : (int64_t)b;
    return (x > y) - (x < y);
  }
  if (t == KILN_U64) return (a > b) - (a < b);
  int64_t x = kl_int_decode(t, a), y = kl_int_decode(t, b);
  return (x > y) - (x < y);
}

static bool keeps(const char *order, int c) {
  const char *d = strchr(order, '=') + 1;
  if (*order == 'b' && c != 2) c = -c;
  if (d[0] == 'E') return c == 0;
  if (d[0] == 'N') return c != 0;
  return (d[0] == 'G' ? c == 1 : c == -1) || (d[1] == 'E' && c == 0);
}

START_TEST(wide_selections) {
  static const int64_t most[] = {0, 120, 12, 5};
  int row = _i % (int)KL_COUNT(select_rows);
  kl_dtype t = select_rows[row].t;
  seed = 900 + (uint64_t)_i;
  uint32_t rank = (uint32_t)between(1, 3);
  int64_t dims[4], places[4], *at = malloc(sizeof *at * 20000);
  window w = {.rank = rank};
  do
    for (uint32_t d = 0; d < rank; d++) {
      dims[d] = between(most[rank] / 2, most[rank]);
      w.size[d] = below(5) ? between(1, dims[d]) : 1;
      w.stride[d] = below(3) ? 1 : between(1, 4);
      w.low[d] = between(0, w.size[d] - 1), w.high[d] = between(0, w.size[d] - 1);
      w.base[d] = w.hole[d] = 1;
    }
  while (!window_result(&w, dims, places));
  array args[2] = {new_array(t, rank, dims), new_array(t, rank, places)};
  fill_array(&args[0], select_rows[row].values);
  int spoilt = select_rows[row].spoilt ? _i / (int)KL_COUNT(select_rows) % 3 : 0;
  for (int64_t i = 0; i < args[0].count && spoilt == 2; i++)
    put(&args[0], i, 0, kl_float_encode(t, below(20) ? (below(2) ? 0.0 : -0.0) : NAN));
  if (spoilt == 1) spoil(&args[0]);
  for (int64_t i = 0; i < args[1].count; i++) // windows are told apart, but where there are few numbers
    put(&args[1], i, 0,
        kl_is_float(t) ? kl_float_encode(t, (double)(1 + i % 97)) : (uint64_t)(i % 97) & kl_int_mask(t));
  const char *n = kiln_dtype_name(t);
  char text[2500];
  sprintf(text,
          "HloModule m\ns { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = pred[] compare(%s }\n"
          "f { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = %s[] maximum(a, b) }\n"
          "ENTRY e { p = %s parameter(0) q = %s parameter(1) i = %s[] constant(%s) "
          "ROOT r = %s select-and-scatter(p, q, i), %s, select=s, scatter=f }",
          n, n, select_rows[row].order, n, n, n, type_text(&args[0]), type_text(&args[1]), n,
          t == KILN_PRED        ? "false"
          : t == KILN_F8E8M0FNU ? "1"
                                : "0",
          type_text(&args[0]), window_text(&w));
  run r = evaluate(text, 2, args, true);
  double *want = malloc(sizeof *want * (size_t)args[0].count);
  for (int64_t i = 0; i < args[0].count; i++) want[i] = t == KILN_F8E8M0FNU;
  for (int64_t i = 0; i < args[1].count; i++) {
    int64_t place[4];
    unravel(rank, places, i, place);
    int64_t count = window_elements(&w, dims, place, at), best = at[0];
    for (int64_t k = 1; k < count; k++)
      if (!keeps(select_rows[row].order,
                 ordered(t, select_rows[row].total, get(&args[0], best, 0), get(&args[0], at[k], 0))))
        best = at[k];
    if (count) want[best] = fmax(want[best], value(&args[1], i, 0));
  }
  for (int64_t i = 0; i < args[0].count; i++)
    EXPECT(result_value(&r.r[0], r.r[0].data.data, i, 0) == want[i], "element %d: %g, expected %g\n%s", (int)i,
           result_value(&r.r[0], r.r[0].data.data, i, 0), want[i], text);
  free(want), free(at);
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

// As above: every window selects among all elements up to its own.
START_TEST(selections_without_end) {
  enum { COUNT = 100000 };
  array args[2] = {new_array(KILN_F32, 1, (int64_t[]){COUNT}), new_array(KILN_F32, 1, (int64_t[]){COUNT})};
  fill_array(&args[0], FILL_PLAIN);
  for (int64_t i = 0; i < COUNT; i++) put(&args[1], i, 0, kl_float_encode(KILN_F32, 1));
  char text[700];
  sprintf(
      text,
      "HloModule m\ns { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }\n"
      "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
      "ENTRY e { p = f32[%d] parameter(0) q = f32[%d] parameter(1) i = f32[] constant(0) ROOT r = f32[%d] "
      "select-and-scatter(p, q, i), window={size=%d pad=%d_0}, select=s, scatter=f }",
      COUNT, COUNT, COUNT, COUNT, COUNT - 1);
  run r = evaluate(text, 2, args, true);
  double *want = calloc(COUNT, sizeof *want);
  for (int64_t i = 0, best = 0; i < COUNT; i++) {
    if (value(&args[0], i, 0) > value(&args[0], best, 0)) best = i;
    want[best]++;
  }
  for (int64_t i = 0; i < COUNT; i++)
    EXPECT(result_value(&r.r[0], r.r[0].data.data, i, 0) == want[i], "element %d", (int)i);
  drop_run(&r);
  free(want), free(args[0].data), free(args[1].data);
}
END_TEST

// A window whose choice rests on an inexact comparison opens what it sees, and nothing else.
START_TEST(select_uncertain) {
  const int64_t dims[1] = {4}, two[1] = {2};
  array args[2] = {new_array(KILN_F32, 1, dims), new_array(KILN_F32, 1, two)};
  const float x[4] = {1, 1, 1, 2};
  memcpy(args[0].data, x, sizeof x);
  run r = evaluate(
      "HloModule m\ns { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }\n"
      "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
      "ENTRY e { p = f32[4] parameter(0) q = f32[2] parameter(1) t = f32[4] sine(p) i = f32[] constant(0) "
      "ROOT r = f32[4] select-and-scatter(t, q, i), window={size=2 stride=2}, select=s, scatter=f }",
      2, args, true);
  EXPECT(is_open(&r.r[0], 0) && is_open(&r.r[0], 1) && !is_open(&r.r[0], 2) && !is_open(&r.r[0], 3), "open elements");
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

// --- scan ---------------------------------------------------------------------------------------------------------

// A linear recurrence and a running sum, along each dimension and both ways.
START_TEST(scan) {
  const int64_t dims[3] = {3, 5, 2};
  uint32_t dim = (uint32_t)_i % 3;
  bool reverse = _i / 3 % 2, sums = _i / 6 % 2;
  int64_t slice[2] = {dims[dim == 0], dims[dim == 2 ? 1 : 2]};
  array args[3] = {new_array(KILN_F32, 3, dims), new_array(KILN_F32, 3, dims), new_array(KILN_F32, 2, slice)};
  char text[3000], s[40];
  for (int k = 0; k < 3; k++) fill_array(&args[k], FILL_SMALL);
  strcpy(s, type_text(&args[2]));
  if (sums)
    sprintf(
        text,
        "HloModule m\nf { x = %s parameter(0) c = %s parameter(1) a = %s add(x, c) ROOT t = (%s, %s) tuple(a, a) }\n"
        "ENTRY e { p = f32[3,5,2] parameter(0) q = f32[3,5,2] parameter(1) i = %s parameter(2) "
        "ROOT r = (f32[3,5,2], %s) scan(p, i), dimensions={%u}, num_carries=1, is_reverse=%s, "
        "is_associative=true, to_apply=f }",
        s, s, s, s, s, s, s, dim, reverse ? "true" : "false");
  else
    sprintf(text,
            "HloModule m\nf { x = %s parameter(0) y = %s parameter(1) c = %s parameter(2) m = %s multiply(x, c) "
            "a = %s add(m, y) o = %s subtract(a, x) ROOT t = (%s, %s) tuple(o, a) }\n"
            "ENTRY e { p = f32[3,5,2] parameter(0) q = f32[3,5,2] parameter(1) i = %s parameter(2) "
            "ROOT r = (f32[3,5,2], %s) scan(p, q, i), dimensions={%u}, num_carries=1, is_reverse=%s, to_apply=f }",
            s, s, s, s, s, s, s, s, s, s, dim, reverse ? "true" : "false");
  run r = evaluate(text, 3, args, true);
  EXPECT(r.r[0].lo == r.r[0].data.data && r.r[1].lo == r.r[1].data.data, "inexact");
  for (int64_t i = 0; i < args[2].count; i++) {
    double carry = value(&args[2], i, 0);
    for (int64_t step = 0; step < dims[dim]; step++) {
      int64_t index[3], rest[2];
      unravel(2, slice, i, rest);
      for (uint32_t d = 0, k = 0; d < 3; d++) index[d] = d == dim ? (reverse ? dims[dim] - 1 - step : step) : rest[k++];
      int64_t at = linear(3, dims, index);
      double x = value(&args[0], at, 0), y = value(&args[1], at, 0), out;
      carry = sums ? x + carry : x * carry + y;
      out = sums ? carry : carry - x;
      EXPECT(result_value(&r.r[0], r.r[0].data.data, at, 0) == out, "output %d\n%s", (int)at, text);
    }
    EXPECT(result_value(&r.r[1], r.r[1].data.data, i, 0) == carry, "carry %d\n%s", (int)i, text);
  }
  drop_run(&r);
  for (int k = 0; k < 3; k++) free(args[k].data);
}
END_TEST

// Only an associative scan may add in another order.
START_TEST(scan_order) {
  const int64_t dims[1] = {100};
  array args[1] = {new_array(KILN_F32, 1, dims)};
  fill_array(&args[0], FILL_PLAIN);
  for (int any = 0; any < 2; any++) {
    char text[1000];
    sprintf(text,
            "HloModule m\nf { x = f32[] parameter(0) c = f32[] parameter(1) a = f32[] add(c, x) "
            "ROOT t = (f32[], f32[]) tuple(a, a) }\nENTRY e { p = f32[100] parameter(0) z = f32[] constant(0) "
            "ROOT r = (f32[100], f32[]) scan(p, z), dimensions={0}, num_carries=1, is_associative=%s, to_apply=f }",
            any ? "true" : "false");
    run r = evaluate(text, 1, args, true);
    float sum = 0;
    double terms[100];
    for (int64_t i = 0; i < 100; i++) {
      sum += ((float *)args[0].data)[i];
      terms[i] = value(&args[0], i, 0);
      double got = any ? random_order(false, KILN_F32, i + 1, terms) : sum;
      uint64_t bits[2] = {kl_float_encode(KILN_F32, got), 0};
      EXPECT(kl_result_allows(&r.r[0], i, bits), "prefix %d", (int)i);
    }
    EXPECT((r.r[0].lo == r.r[0].data.data) == !any, "exactness");
    drop_run(&r);
  }
  free(args[0].data);
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_window", EACH(make_context, drop_context), {reduce_window, 150}, {reduce_window_long},
                   {wide_windows, 8 * (int)KL_COUNT(wide_rows)}, {windows_without_end}, {select_and_scatter, 120},
                   {wide_selections, 12 * (int)KL_COUNT(select_rows)}, {selections_without_end}, {select_uncertain},
                   {scan, 12}, {scan_order});
}
