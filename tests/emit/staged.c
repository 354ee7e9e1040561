// Ops whose results are not made element by element: random shapes, layouts, types and attributes, parameters or
// computed operands, results that are more than one thing. The evaluator judges, on the host and on the simulator,
// which must have the same bits; PTX goes through ptxas.
//
// KILN_STAGED_SEED runs one seed alone and prints its text.
#include "drawn.h"

#include <stdlib.h>

// --- sort -----------------------------------------------------------------------------------------------------------

// Less by the first key; then by the second, where there are two.
static void put_comparator(kl_sb *b, unsigned arrays, unsigned keys, const kl_dtype *type) {
  kl_sb_puts(b, "less {\n");
  for (unsigned i = 0; i < 2 * arrays; i++) kl_sbf(b, "  p%u = %s[] parameter(%u)\n", i, kl_info(type[i / 2])->name, i);
  for (unsigned i = 0; i < keys; i++) {
    const char *of = "p";
    if (kl_is_complex(type[i])) {
      const char *part = kl_info(kl_info(type[i])->part)->name;
      for (unsigned k = 2 * i; k < 2 * i + 2; k++) kl_sbf(b, "  q%u = %s[] real(p%u)\n", k, part, k);
      of = "q";
    }
    const char *order = chance(50) ? "LT" : "GT",
               *total = kl_is_float(type[i]) && chance(50) ? ", type=TOTALORDER" : "";
    kl_sbf(b, "  l%u = pred[] compare(%s%u, %s%u), direction=%s%s\n", i, of, 2 * i, of, 2 * i + 1, order, total);
    kl_sbf(b, "  e%u = pred[] compare(%s%u, %s%u), direction=EQ%s\n", i, of, 2 * i, of, 2 * i + 1, total);
  }
  if (keys == 1 && chance(50)) // not by the value of a key, as far as one sees
    kl_sb_puts(b, "  ROOT r = pred[] and(l0, l0)\n}\n\n");
  else if (keys > 1)
    kl_sb_puts(b, "  a = pred[] and(e0, l1)\n  ROOT r = pred[] or(l0, a)\n}\n\n");
  else
    kl_sb_puts(b, "  ROOT r = pred[] copy(l0)\n}\n\n");
}

// Lines that are longer than what a block sorts, too.
static void draw_sorted(drawn *d) {
  draw_dims(d, 1);
  if (!chance(6)) return;
  d->rank = 1 + below(2);
  for (uint32_t i = 0; i < d->rank; i++) d->dims[i] = 1 + below(3);
  d->dims[below(d->rank)] = 900 + below(2000);
}

static void draw_sort(drawn *d, kl_sb *calls, kl_dtype first) {
  kl_dtype type[MOST_ARRAYS] = {first};
  unsigned arrays = 1 + below(MOST_ARRAYS), keys = arrays > 1 && chance(40) ? 2 : 1;
  draw_sorted(d);
  for (unsigned i = 1; i < arrays; i++) type[i] = draw_type(kl_is_array_dtype);
  put_comparator(calls, arrays, keys, type);
  for (unsigned i = 0; i < arrays; i++) put_array(d, i, kl_info(type[i])->name);
  kl_sbf(&d->text, "  ROOT y = %s", arrays > 1 ? "(" : "");
  for (unsigned i = 0; i < arrays; i++) {
    if (i) kl_sb_puts(&d->text, ", ");
    put_shape(d, kl_info(type[i])->name);
  }
  kl_sbf(&d->text, "%s sort(", arrays > 1 ? ")" : "");
  for (unsigned i = 0; i < arrays; i++) kl_sbf(&d->text, i ? ", x%u" : "x%u", i);
  kl_sbf(&d->text, "), dimensions={%u}, to_apply=less%s\n", below(d->rank), chance(70) ? ", is_stable=true" : "");
}

static bool is_ordered(kl_dtype t) {
  return kl_is_int(t) || kl_is_float(t);
}

static void draw_topk(drawn *d, kl_sb *calls, kl_dtype first) {
  (void)calls;
  kl_dtype t = is_ordered(first) ? first : draw_type(is_ordered);
  draw_sorted(d);
  int64_t last = d->dims[d->rank - 1], k = below((uint32_t)last + 1);
  put_array(d, 0, kl_info(t)->name);
  d->dims[d->rank - 1] = k;
  kl_sb_puts(&d->text, "  y = (");
  put_shape(d, kl_info(t)->name);
  kl_sb_puts(&d->text, ", ");
  put_shape(d, "s32");
  kl_sbf(&d->text, ") topk(x0), k=%lld, largest=%s\n", (long long)k, chance(60) ? "true" : "false");
  kl_sb_puts(&d->text, "  v = ");
  put_dims(&d->text, kl_info(t)->name, d->rank, d->dims);
  kl_sb_puts(&d->text, " get-tuple-element(y), index=0\n  i = ");
  put_dims(&d->text, "s32", d->rank, d->dims);
  kl_sb_puts(&d->text, " get-tuple-element(y), index=1\n  n = ");
  put_dims(&d->text, "s32", d->rank, d->dims);
  kl_sb_puts(&d->text, " negate(i)\n  ROOT t = (");
  put_dims(&d->text, kl_info(t)->name, d->rank, d->dims);
  kl_sb_puts(&d->text, ", ");
  put_dims(&d->text, "s32", d->rank, d->dims);
  kl_sb_puts(&d->text, chance(50) ? ") tuple(v, n)\n" : ") tuple(v, i)\n");
}

// --- windows --------------------------------------------------------------------------------------------------------

typedef struct axis {
  int64_t size, stride, low, high, base, hole, windows;
} axis;

// A window that slides over `n` elements; of select-and-scatter without holes.
static axis draw_axis(int64_t n, bool holes) {
  axis a = {.size = 1 + below(chance(15) ? 40 : 4), .stride = 1 + below(3), .base = 1, .hole = 1};
  if (chance(30)) a.size = 1;
  if (chance(60)) a.low = below((uint32_t)a.size + 1), a.high = below((uint32_t)a.size + 1);
  if (holes && chance(20)) a.base = 1 + below(3);
  if (holes && chance(20)) a.hole = 1 + below(3);
  int64_t padded = a.low + a.high + (n ? (n - 1) * a.base + 1 : 0), reach = (a.size - 1) * a.hole + 1;
  a.windows = padded < reach ? 0 : (padded - reach) / a.stride + 1;
  return a;
}

static void put_window(kl_sb *b, uint32_t rank, const axis *a) {
  if (!rank) return;
  kl_sb_puts(b, ", window={size=");
  for (uint32_t d = 0; d < rank; d++) kl_sbf(b, d ? "x%lld" : "%lld", (long long)a[d].size);
  kl_sb_puts(b, " stride=");
  for (uint32_t d = 0; d < rank; d++) kl_sbf(b, d ? "x%lld" : "%lld", (long long)a[d].stride);
  kl_sb_puts(b, " pad=");
  for (uint32_t d = 0; d < rank; d++)
    kl_sbf(b, d ? "x%lld_%lld" : "%lld_%lld", (long long)a[d].low, (long long)a[d].high);
  kl_sb_puts(b, " lhs_dilate=");
  for (uint32_t d = 0; d < rank; d++) kl_sbf(b, d ? "x%lld" : "%lld", (long long)a[d].base);
  kl_sb_puts(b, " rhs_dilate=");
  for (uint32_t d = 0; d < rank; d++) kl_sbf(b, d ? "x%lld" : "%lld", (long long)a[d].hole);
  kl_sb_puts(b, "}");
}

static const char *draw_op(kl_dtype t) {
  static const char *const any[] = {"add", "add", "multiply", "maximum", "minimum"};
  if (t == KILN_PRED) return chance(50) ? "or" : "and";
  const char *op = any[below(5)];
  return kl_is_complex(t) && op[0] == 'm' && op[1] != 'u' ? "add" : op;
}

// f joins two values; of two arrays it takes the pair whose second value is greater, or the first of equal ones.
static void put_reducer(kl_sb *b, const char *name, kl_dtype type, unsigned arrays) {
  const char *t = kl_info(type)->name;
  if (arrays > 1) {
    kl_sbf(b, "%s {\n  a = %s[] parameter(0)\n  i = s32[] parameter(1)\n  b = %s[] parameter(2)\n", name, t, t);
    kl_sbf(b, "  j = s32[] parameter(3)\n  c = pred[] compare(i, j), direction=GE\n  x = %s[] select(c, a, b)\n", t);
    kl_sbf(b, "  k = s32[] maximum(i, j)\n  ROOT r = (%s[], s32[]) tuple(x, k)\n}\n\n", t);
    return;
  }
  kl_sbf(b, "%s {\n  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n", name, t, t);
  if (type != KILN_PRED && chance(15))
    kl_sbf(b, "  c = %s[] multiply(b, b)\n  ROOT r = %s[] add(a, c)\n}\n\n", t, t);
  else
    kl_sbf(b, "  ROOT r = %s[] %s(%s)\n}\n\n", t, draw_op(type), chance(30) ? "b, a" : "a, b");
}

static void put_scalars(drawn *d, kl_dtype type, unsigned arrays) {
  for (unsigned i = 0; i < arrays; i++)
    kl_sbf(&d->text, "  z%u = %s[] parameter(%u)\n", i, i ? "s32" : kl_info(type)->name, d->parameters++);
}

// Windows fold elements that are given, or made; what they give is a result, or more is made of it.
static void draw_window(drawn *d, kl_sb *calls, kl_dtype type) {
  unsigned arrays = chance(15) ? 2 : 1;
  const char *t = kl_info(type)->name;
  axis a[MOST_RANK];
  int64_t taps = 1;
  draw_dims(d, 0);
  put_reducer(calls, "f", type, arrays);
  for (unsigned i = 0; i < arrays; i++) put_array(d, i, i ? "s32" : t);
  put_scalars(d, type, arrays);
  for (uint32_t i = 0; i < d->rank; i++) {
    a[i] = draw_axis(d->dims[i], true);
    d->dims[i] = a[i].windows;
    taps *= a[i].size;
  }
  d->unordered = taps > 256;
  bool more = arrays == 1 && chance(30);
  kl_sbf(&d->text, "  %s = %s", more ? "w" : "ROOT y", arrays > 1 ? "(" : "");
  put_shape(d, t);
  if (arrays > 1) kl_sb_puts(&d->text, ", ");
  if (arrays > 1) put_shape(d, "s32");
  kl_sb_puts(&d->text, arrays > 1 ? ") reduce-window(x0, x1, z0, z1)" : " reduce-window(x0, z0)");
  put_window(&d->text, d->rank, a);
  kl_sb_puts(&d->text, ", to_apply=f\n");
  if (!more) return;
  kl_sb_puts(&d->text, "  ROOT y = ");
  put_shape(d, t);
  kl_sbf(&d->text, " %s(w, w)\n", type == KILN_PRED ? "xor" : "multiply");
}

static void draw_select(drawn *d, kl_sb *calls, kl_dtype type) {
  const char *t = kl_info(type)->name;
  axis a[MOST_RANK];
  int64_t whole[MOST_RANK];
  bool parts = kl_is_complex(type);
  draw_dims(d, 0);
  kl_sbf(calls, "select {\n  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n", t, t);
  const char *part = parts ? kl_info(kl_info(type)->part)->name : "";
  if (parts) kl_sbf(calls, "  p = %s[] real(a)\n  q = %s[] real(b)\n", part, part);
  kl_sbf(calls, "  ROOT r = pred[] compare(%s), direction=%s\n}\n\n", parts ? "p, q" : "a, b",
         chance(60) ? "GE" : "LT");
  put_reducer(calls, "f", type, 1);
  put_array(d, 0, t);
  memcpy(whole, d->dims, sizeof whole);
  for (uint32_t i = 0; i < d->rank; i++) {
    a[i] = draw_axis(d->dims[i], false);
    d->dims[i] = a[i].windows;
  }
  put_array(d, 1, t);
  put_scalars(d, type, 1);
  memcpy(d->dims, whole, sizeof whole);
  kl_sb_puts(&d->text, "  ROOT y = ");
  put_shape(d, t);
  kl_sb_puts(&d->text, " select-and-scatter(x0, x1, z0)");
  put_window(&d->text, d->rank, a);
  kl_sb_puts(&d->text, ", select=select, scatter=f\n");
}

// --- scans ----------------------------------------------------------------------------------------------------------

// Lines of any length, few or many, along any dimension.
static uint32_t draw_lines(drawn *d) {
  d->rank = 1 + below(3);
  uint32_t dim = below(d->rank);
  bool tiles = chance(8);
  for (uint32_t i = 0; i < d->rank; i++) {
    d->dims[i] = 1 + below(chance(20) && !tiles ? 40 : 3);
    if (i == dim) d->dims[i] = 1 + below(chance(30) ? 600 : 80);
    if (i == dim && tiles) d->dims[i] = 3000 + below(chance(30) ? 15000 : 3000);
  }
  return dim;
}

// A window that goes over all elements up to a place, or from it on.
static void draw_cumulative(drawn *d, kl_sb *calls, kl_dtype type) {
  unsigned arrays = chance(15) ? 2 : 1;
  const char *t = kl_info(type)->name;
  axis a[MOST_RANK];
  uint32_t dim = draw_lines(d);
  bool back = chance(40);
  put_reducer(calls, "f", type, arrays);
  for (unsigned i = 0; i < arrays; i++) put_array(d, i, i ? "s32" : t);
  put_scalars(d, type, arrays);
  for (uint32_t i = 0; i < d->rank; i++) {
    int64_t n = i == dim ? d->dims[i] : 1;
    a[i] = (axis){.size = n, .stride = 1, .low = back ? 0 : n - 1, .high = back ? n - 1 : 0, .base = 1, .hole = 1};
  }
  kl_sbf(&d->text, "  ROOT y = %s", arrays > 1 ? "(" : "");
  put_shape(d, t);
  if (arrays > 1) kl_sb_puts(&d->text, ", ");
  if (arrays > 1) put_shape(d, "s32");
  kl_sb_puts(&d->text, arrays > 1 ? ") reduce-window(x0, x1, z0, z1)" : " reduce-window(x0, z0)");
  put_window(&d->text, d->rank, a);
  kl_sb_puts(&d->text, ", to_apply=f\n");
}

// A step of one op, associative or not, or one whose output is not its carry.
static void draw_scan(drawn *d, kl_sb *calls, kl_dtype type) {
  const char *t = kl_info(type)->name;
  uint32_t dim = draw_lines(d), rank = d->rank;
  int64_t whole[MOST_RANK], slice[MOST_RANK];
  memcpy(whole, d->dims, sizeof whole);
  for (uint32_t i = 0, n = 0; i < rank; i++)
    if (i != dim) slice[n++] = whole[i];
  bool folds = chance(60);
  kl_sb_puts(calls, "f {\n  x = ");
  put_dims(calls, t, rank - 1, slice);
  kl_sb_puts(calls, " parameter(0)\n  c = ");
  put_dims(calls, t, rank - 1, slice);
  kl_sb_puts(calls, " parameter(1)\n  n = ");
  put_dims(calls, t, rank - 1, slice);
  kl_sbf(calls, " %s(%s)\n", draw_op(type), chance(50) ? "c, x" : "x, c");
  if (!folds) kl_sb_puts(calls, "  o = ");
  if (!folds) put_dims(calls, t, rank - 1, slice);
  if (!folds) kl_sbf(calls, " %s(x, n)\n", type == KILN_PRED ? "xor" : "add");
  kl_sb_puts(calls, "  ROOT r = (");
  put_dims(calls, t, rank - 1, slice);
  kl_sb_puts(calls, ", ");
  put_dims(calls, t, rank - 1, slice);
  kl_sbf(calls, ") tuple(%s, n)\n}\n\n", folds ? "n" : "o");
  put_array(d, 0, t);
  d->rank = rank - 1;
  memcpy(d->dims, slice, sizeof slice);
  put_array(d, 1, t);
  d->rank = rank;
  memcpy(d->dims, whole, sizeof whole);
  kl_sb_puts(&d->text, "  ROOT y = (");
  put_shape(d, t);
  kl_sb_puts(&d->text, ", ");
  put_dims(&d->text, t, rank - 1, slice);
  kl_sbf(&d->text, ") scan(x0, x1), dimensions={%u}, num_carries=1%s%s, to_apply=f\n", dim,
         chance(40) ? ", is_reverse=true" : "", folds && chance(60) ? ", is_associative=true" : "");
}

// --- running --------------------------------------------------------------------------------------------------------

static bool same_value(kl_dtype t, const void *a, const void *b, int64_t i) {
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  for (int k = 0; k <= kl_is_complex(t); k++) {
    unsigned bits = kl_info(part)->bits;
    uint64_t x = 0, y = 0;
    int64_t at = (kl_is_complex(t) ? 2 * i + k : i) * bits;
    memcpy(&x, (const char *)a + at / 8, (bits + 7) / 8);
    memcpy(&y, (const char *)b + at / 8, (bits + 7) / 8);
    if (bits < 8) x = x >> at % 8 & ((1u << bits) - 1), y = y >> at % 8 & ((1u << bits) - 1);
    if (x != y && !(kl_is_float(part) && kl_float_is_nan(part, x) && kl_float_is_nan(part, y))) return false;
  }
  return true;
}

// The order in which kernels join is the evaluator's: all bits are the same but a NaN's.
static void check_order(const kiln_module *m, unsigned number, const char *text) {
  void *in[8], *out[4], *expected[4];
  size_t nin = kiln_module_parameter_leaf_count(m), nout = kiln_module_result_leaf_count(m);
  kiln_array_type t;
  for (size_t i = 0; i < nin; i++) {
    int64_t bytes = kiln_module_parameter_leaf_bytes(m, i);
    in[i] = aligned_alloc(16, ((size_t)bytes + 31) & ~(size_t)15);
    ck_assert(kiln_module_parameter_leaf_type(m, i, &t));
    gen_fill(number * 31 + (unsigned)i, t.dtype, bytes, false, in[i]);
  }
  for (size_t i = 0; i < nout; i++) {
    size_t bytes = ((size_t)kiln_module_result_leaf_bytes(m, i) + 31) & ~(size_t)15;
    out[i] = memset(aligned_alloc(16, bytes), 0, bytes);
    expected[i] = memset(aligned_alloc(16, bytes), 0, bytes);
  }
  run_on(cx, m, HOST, 1, 0, (const void *const *)in, out, text);
  EXPECT(kiln_module_eval(cx, m, (const void *const *)in, expected, NULL) == KILN_OK, "%s", last_finding());
  for (size_t i = 0; i < nout; i++) {
    ck_assert(kiln_module_result_leaf_type(m, i, &t));
    int64_t count = 1;
    for (uint32_t k = 0; k < t.rank; k++) count *= t.dims[k];
    for (int64_t k = 0; k < count; k++)
      EXPECT(same_value(t.dtype, out[i], expected[i], k), "seed %u: element %lld of result %zu\n%s", number,
             (long long)k, i, text);
    free(out[i]), free(expected[i]);
  }
  for (size_t i = 0; i < nin; i++) free(in[i]);
}

// Kinds, and the types that their first arrays have, in turns.
static const struct {
  drawing *draw;
  bool folds;
} kinds[] = {{draw_sort, false},  {draw_topk, false},      {draw_window, true},
             {draw_select, true}, {draw_cumulative, true}, {draw_scan, true}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void run_one(unsigned number, bool print) {
  dtype_list all = dtypes_that(kl_is_array_dtype);
  kl_dtype first = all.at[number / KINDS % (unsigned)all.n];
  drawn d;
  kiln_module *m = draw_module(&d, kinds[number % KINDS].draw, first, number, print);
  run_drawn(m, &d, number, number / KINDS);
  if (kinds[number % KINDS].folds && !d.unordered && !kl_is_complex(first)) check_order(m, number, d.text.p);
  drop_drawn(m, &d);
}

enum { SLICES = 20, CASES = 84 };

START_TEST(random_ops) {
  const char *alone = getenv("KILN_STAGED_SEED");
  if (alone && _i) return;
  if (alone) return run_one((unsigned)strtoul(alone, NULL, 10), true);
  for (unsigned i = (unsigned)_i; i < share_of(CASES); i += SLICES) run_one(i, false);
}
END_TEST

// Comparators that are no orders give some elements of the line, the same on all machines.
START_TEST(no_order) {
  static const char *const comparators[] = {"ROOT r = pred[] compare(a, b), direction=NE",
                                            ("x = s32[] xor(a, b) y = s32[] multiply(x, a) z = s32[] constant(77) "
                                             "ROOT r = pred[] compare(y, z), direction=LT"),
                                            "ROOT r = pred[] constant(true)"};
  enum { LINES = 3, LENGTH = 1100 };
  int32_t *in = malloc(LINES * LENGTH * sizeof *in), *out[2];
  char text[600];
  sprintf(text,
          "HloModule m\nf { a = s32[] parameter(0) b = s32[] parameter(1) %s }\nENTRY e { x = s32[%d,%d] parameter(0) "
          "ROOT y = s32[%d,%d] sort(x), dimensions={1}, to_apply=f }",
          comparators[_i], LINES, LENGTH, LINES, LENGTH);
  seed = 5;
  for (int i = 0; i < LINES * LENGTH; i++) in[i] = i / LENGTH * LENGTH + (int32_t)below(LENGTH);
  kiln_module *m = parse(text);
  for (int k = 0; k < 2; k++) {
    out[k] = calloc(LINES * LENGTH, sizeof *in);
    run_on(cx, m, k ? 3 : HOST, 1, 4, (const void *[]){in}, (void *[]){out[k]}, text);
  }
  for (int i = 0; i < LINES * LENGTH; i++) {
    EXPECT(out[0][i] == out[1][i], "element %d: %d on the host, %d", i, out[0][i], out[1][i]);
    EXPECT(out[0][i] / LENGTH == i / LENGTH, "element %d is of another line", i);
  }
  kiln_module_destroy(&m);
  free(in), free(out[0]), free(out[1]);
}
END_TEST

int main(void) {
  return RUN_TESTS("staged", EACH(open_batches, close_batches), {random_ops, SLICES}, {no_order, 3});
}
