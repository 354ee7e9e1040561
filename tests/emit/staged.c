// Ops whose results are not made element by element: random shapes, layouts, types and attributes, parameters or
// computed operands, results that are more than one thing. The evaluator judges, on the host and on the simulator,
// which must have the same bits; PTX goes through ptxas.
//
// KILN_STAGED_SEED runs one seed alone and prints its text.
#include "drawn.h"
#include "jit/jit.h"
#include "lower/choose/choose.h"

#include <math.h>
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
  kl_dtype first = type_in_turns(number);
  drawn d;
  kiln_module *m = draw_module(&d, kinds[number % KINDS].draw, first, number, print);
  run_drawn(m, &d, number, number / KINDS);
  if (kinds[number % KINDS].folds && !d.unordered && !kl_is_complex(first)) check_order(m, number, d.text.p);
  drop_drawn(m, &d);
}

enum { SLICES = 4, CASES = 48 };

START_TEST(random_ops) {
  const char *alone = getenv("KILN_STAGED_SEED");
  if (alone && _i) return;
  if (alone) return run_one((unsigned)strtoul(alone, NULL, 10), true);
  for (unsigned i = (unsigned)_i; i < share_of(CASES); i += SLICES) run_one(i, false);
}
END_TEST

// Comparators that are no orders give each element of the line once, its other array's beside it, the same on all
// machines. Lines are of one tile, and of several.
START_TEST(no_order) {
  static const char *const comparators[] = {"ROOT r = pred[] compare(a, b), direction=NE",
                                            ("k = s32[] constant(-1640531535) x = s32[] multiply(a, k) "
                                             "y = s32[] xor(x, b) z = s32[] multiply(y, k) o = s32[] constant(0) "
                                             "ROOT r = pred[] compare(z, o), direction=LT"),
                                            "ROOT r = pred[] constant(true)"};
  enum { LINES = 3, MOST = 9100 };
  int length = _i % 2 ? 1100 : MOST, n = LINES * length;
  if (!share_has((unsigned)_i, 2)) return;
  int32_t *in = malloc((size_t)n * sizeof *in), *out[2][2], *times = calloc((size_t)n, sizeof *times);
  char text[800];
  sprintf(
      text,
      "HloModule m\nf { a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) "
      "%s }\nENTRY e { x = s32[%d,%d] parameter(0) n = s32[%d,%d] not(x) "
      "ROOT y = (s32[%d,%d], s32[%d,%d]) sort(x, n), dimensions={1}, to_apply=f }",
      comparators[_i / 2], LINES, length, LINES, length, LINES, length, LINES, length);
  for (int i = 0; i < n; i++) in[i] = i / length * length + (int)((int64_t)i * 4001 % length);
  kiln_module *m = parse(text);
  for (int k = 0; k < 2; k++) {
    for (int r = 0; r < 2; r++) out[k][r] = calloc((size_t)n, sizeof *in);
    run_on(cx, m, k ? 3 : HOST, 1, 4, (const void *[]){in}, (void *[]){out[k][0], out[k][1]}, text);
  }
  for (int i = 0; i < n; i++) {
    int32_t x = out[0][0][i];
    EXPECT(x == out[1][0][i], "element %d: %d on the host, %d", i, x, out[1][0][i]);
    EXPECT(x >= 0 && x / length == i / length, "element %d, %d, is of another line", i, x);
    EXPECT(!times[x]++, "element %d: %d comes a second time", i, x);
    for (int k = 0; k < 2; k++) EXPECT(out[k][1][i] == ~x, "element %d: %d is beside %d", i, out[k][1][i], x);
  }
  kiln_module_destroy(&m);
  free(in), free(times);
  for (int k = 0; k < 4; k++) free(out[k / 2][k % 2]);
}
END_TEST

// Elements of so many arrays that a block has no room for a tile of them.
START_TEST(wide_elements) {
  enum { ARRAYS = 13, LENGTH = 333 };
  if (!share_has(0, 1)) return;
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nless {\n");
  for (int i = 0; i < 2 * ARRAYS; i++) kl_sbf(&b, "  p%d = c128[] parameter(%d)\n", i, i);
  kl_sb_puts(&b, "  a = f64[] real(p2)\n  b = f64[] real(p3)\n  ROOT r = pred[] compare(a, b), direction=GT\n}\n");
  kl_sb_puts(&b, "ENTRY e {\n");
  for (int i = 0; i < ARRAYS; i++) kl_sbf(&b, "  x%d = c128[2,%d] parameter(%d)\n", i, LENGTH, i);
  for (int i = 0; i < ARRAYS; i++) kl_sbf(&b, "%sc128[2,%d]", i ? ", " : "  ROOT y = (", LENGTH);
  for (int i = 0; i < ARRAYS; i++) kl_sbf(&b, i ? ", x%d" : ") sort(x%d", i);
  kl_sb_puts(&b, "), dimensions={1}, is_stable=true, to_apply=less\n}\n");
  kiln_module *m = parse(b.p);
  run_gpu_and_check(cx, m, 3, 1, b.p);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

// --- sorts by digits ------------------------------------------------------------------------------------------------

// A comparator of a key and a number, and what is compared of keys a and b.
static void put_key_order(kl_sb *b, kl_dtype t, bool falls, const char *form) {
  const char *name = kl_info(t)->name, *total = kl_is_float(t) ? ", type=TOTALORDER" : "";
  kl_sbf(b, "HloModule m\nless {\n  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n  c = s32[] parameter(2)\n", name,
         name);
  kl_sb_puts(b, "  d = s32[] parameter(3)\n");
  const char *left = "a", *right = "b";
  if (strcmp(form, "canonical") == 0) { // as JAX has it
    kl_sbf(b, "  zero = %s[] constant(0)\n  nan = %s[] constant(nan)\n", name, name);
    for (const char *of = "ab"; *of; of++) {
      kl_sbf(b, "  n%c = pred[] compare(%c, %c), direction=NE\n  z%c = pred[] compare(%c, zero), direction=EQ\n", *of,
             *of, *of, *of, *of);
      kl_sbf(b, "  y%c = %s[] select(z%c, zero, %c)\n  x%c = %s[] select(n%c, nan, y%c)\n", *of, name, *of, *of, *of,
             name, *of, *of);
    }
    left = "xa", right = "xb";
  } else if (strcmp(form, "mixed") == 0) { // another order, of a value that is made of each
    kl_sbf(b, "  k = %s[] constant(5)\n  xa = %s[] xor(a, k)\n  xb = %s[] xor(b, k)\n", name, name, name);
    left = "xb", right = "xa";
  }
  kl_sbf(b, "  ROOT r = pred[] compare(%s, %s), direction=%s%s\n}\n", left, right, falls ? "GT" : "LT", total);
}

// All bit patterns of a type, as lines in which every two that follow each other in the type's order are, both ways:
// of 16 bits ranges of 4,096, others between them, and all multiples of 16; of fewer each twice or more.
enum { RANGES = 32, RANGE = 4096, ALL_FEW = 512 };

static void *all_of(kl_dtype t, unsigned lines, unsigned length, size_t *bytes) {
  unsigned bits = kl_info(t)->bits;
  *bytes = (size_t)lines * length * bits / 8;
  uint8_t *p = calloc(1, *bytes);
  for (unsigned i = 0; i < lines * length; i++) {
    unsigned line = i / length % (lines / 2), at = i % length;
    if (i / length >= lines / 2) at = length - 1 - at;
    unsigned spread = at * 2731 % length, value = line == RANGES ? spread * 16 : line * RANGE / 2 + spread;
    if (t == KILN_PRED) value = value >> 4 & 1;
    if (bits == 16)
      p[2 * i] = (uint8_t)value, p[2 * i + 1] = (uint8_t)(value >> 8);
    else
      p[i * bits / 8] |= (uint8_t)((value & ((1u << bits) - 1)) << i * bits % 8);
  }
  return p;
}

// Whatever is before what to the comparator is so to the keys, and nothing else.
static const struct {
  kl_dtype type;
  bool falls;
  const char *form;
} orders[] = {
    {KILN_S16, false, ""},
    {KILN_F16, true, "canonical"},
    {KILN_BF16, false, ""},
    {KILN_U16, true, "mixed"},
    {KILN_F16, false, ""},
    {KILN_BF16, false, "canonical"},
    {KILN_S16, true, "mixed"},
    {KILN_U16, false, ""},
    {KILN_S8, true, ""},
    {KILN_U8, false, "mixed"},
    {KILN_S4, false, ""},
    {KILN_U4, true, ""},
    {KILN_PRED, true, ""},
    {KILN_F8E5M2, false, ""},
    {KILN_F8E4M3, true, ""},
    {KILN_F8E4M3FN, false, "canonical"},
    {KILN_F8E4M3FNUZ, true, ""},
    {KILN_F8E4M3B11FNUZ, false, ""},
    {KILN_F8E5M2FNUZ, true, "canonical"},
    {KILN_F8E3M4, true, ""},
    {KILN_F8E8M0FNU, false, ""},
    {KILN_F4E2M1FN, true, ""},
};

// Keys are compared on the host, where nobody knows of their bits.
START_TEST(all_patterns) {
  kl_dtype t = orders[_i].type;
  bool wide = kl_info(t)->bits == 16;
  unsigned lines = wide ? 2 * (RANGES + 1) : 2, length = wide ? RANGE : ALL_FEW;
  size_t bytes, count = (size_t)lines * length;
  if (!share_has((unsigned)_i, wide ? 8 : 1)) return;
  void *in = all_of(t, lines, length, &bytes), *out[2][2];
  const char *name = kl_info(t)->name;
  kl_sb b;
  kl_sb_init(&b, cx);
  put_key_order(&b, t, orders[_i].falls, orders[_i].form);
  kl_sbf(&b, "ENTRY e {\n  x = %s[%u,%u] parameter(0)\n  n = s32[%u,%u] iota(), iota_dimension=1\n", name, lines,
         length, lines, length);
  kl_sbf(&b, "  ROOT y = (%s[%u,%u], s32[%u,%u]) sort(x, n), dimensions={1}, to_apply=less, is_stable=true\n}\n", name,
         lines, length, lines, length);
  kiln_module *m = parse(b.p);
  for (int k = 0; k < 2; k++) {
    out[k][0] = calloc(1, bytes), out[k][1] = calloc(count, 4);
    strategy = (kl_strategy){.chooser = k ? "radix sort" : NULL};
    run_on(cx, m, k ? (unsigned)_i % TARGETS : HOST, 1, 16, (const void *[]){in}, out[k], b.p);
  }
  strategy = (kl_strategy){0};
  for (size_t i = 0; i < count; i++) {
    int32_t at[2] = {((int32_t *)out[0][1])[i], ((int32_t *)out[1][1])[i]};
    EXPECT(at[0] == at[1], "%s: element %zu was %d on the host, %d", name, i, at[0], at[1]);
  }
  EXPECT(memcmp(out[0][0], out[1][0], bytes) == 0, "%s: elements have other bits than on the host", name);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
  free(in);
  for (int k = 0; k < 4; k++) free(out[k / 2][k % 2]);
}
END_TEST

// Lines of several tiles, in all ways, and of one of which an array is not wanted. Keys are few different ones, or have
// all bits.
static const struct {
  const char *chooser, *text;
} long_sorts[] = {
    {"radix sort", ("lt { a = s32[] parameter(0) b = s32[] parameter(1) c = u8[] parameter(2) d = u8[] parameter(3) "
                    "ROOT r = pred[] compare(a, b), direction=LT }\n"
                    "ENTRY e { x = s32[382] parameter(0) y = u8[382] parameter(1) "
                    "s = (s32[382], u8[382]) sort(x, y), dimensions={0}, to_apply=lt "
                    "ROOT k = s32[382] get-tuple-element(s), index=0 }")},
    {"radix sort", ("ENTRY e { x = bf16[2,500] parameter(0) s = (bf16[2,20], s32[2,20]) topk(x), k=20, largest=true "
                    "ROOT v = bf16[2,20] get-tuple-element(s), index=0 }")},
    {"radix sort", ("lt { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) "
                    "ROOT r = pred[] compare(b, a), direction=LT, type=TOTALORDER }\n"
                    "ENTRY e { x = f32[9001] parameter(0) i = s32[9001] iota(), iota_dimension=0 "
                    "s = (f32[9001], s32[9001]) sort(x, i), dimensions={0}, to_apply=lt, is_stable=true "
                    "ROOT p = s32[9001] get-tuple-element(s), index=1 }")},
    {"radix sort", ("lt { a = c64[] parameter(0) b = c64[] parameter(1) c = s8[] parameter(2) d = s8[] parameter(3) "
                    "ROOT r = pred[] compare(c, d), direction=LT }\n"
                    "ENTRY e { x = c64[4400,2] parameter(0) k = s8[4400,2] parameter(1) "
                    "ROOT s = (c64[4400,2], s8[4400,2]) sort(x, k), dimensions={0}, to_apply=lt }")},
    {"radix sort", ("lt { a = u64[] parameter(0) b = u64[] parameter(1) ROOT r = pred[] compare(a, b), direction=GT }\n"
                    "ENTRY e { x = u64[4097] parameter(0) ROOT s = u64[4097] sort(x), dimensions={0}, to_apply=lt }")},
    {"radix sort",
     ("ENTRY e { x = bf16[2,8300] parameter(0) s = (bf16[2,301], s32[2,301]) topk(x), k=301, largest=true "
      "v = bf16[2,301] get-tuple-element(s), index=0 i = s32[2,301] get-tuple-element(s), index=1 "
      "ROOT t = (bf16[2,301], s32[2,301]) tuple(v, i) }")},
    {"tile sort", ("ENTRY e { x = f32[2,8300] parameter(0) s = (f32[2,301], s32[2,301]) topk(x), k=301, largest=false "
                   "ROOT i = s32[2,301] get-tuple-element(s), index=1 }")},
    {"tile sort", ("lt { a = s64[] parameter(0) b = s64[] parameter(1) c = pred[] parameter(2) d = pred[] parameter(3) "
                   "ROOT r = pred[] compare(c, d), direction=GT }\n"
                   "ENTRY e { x = s64[3,4500] parameter(0) k = pred[3,4500] parameter(1) y = pred[3,4500] reverse(k), "
                   "dimensions={1} ROOT s = (s64[3,4500], pred[3,4500]) sort(x, y), dimensions={1}, to_apply=lt }")},
    {"staged", ("lt { a = f16[] parameter(0) b = f16[] parameter(1) c = s8[] parameter(2) d = s8[] parameter(3) "
                "e = pred[] compare(a, b), direction=EQ f = pred[] compare(c, d), direction=GT "
                "g = pred[] compare(a, b), direction=LT h = pred[] and(e, f) ROOT r = pred[] or(g, h) }\n"
                "ENTRY e { x = f16[4500,3] parameter(0) k = s8[4500,3] parameter(1) "
                "ROOT s = (f16[4500,3], s8[4500,3]) sort(x, k), dimensions={0}, to_apply=lt }")},
    {"radix sort",
     ("lt { a = pred[] parameter(0) b = pred[] parameter(1) c = u16[] parameter(2) d = u16[] parameter(3) "
      "ROOT r = pred[] compare(a, b), direction=LT }\n"
      "ENTRY e { k = pred[8200] parameter(0) x = u16[8200] parameter(1) "
      "ROOT s = (pred[8200], u16[8200]) sort(k, x), dimensions={0}, to_apply=lt }")},
};

static void run_by(const char *chooser, const char *text, unsigned number) {
  kiln_module *m = parse(text);
  strategy = (kl_strategy){.chooser = chooser};
  run_gpu_and_check(cx, m, number % TARGETS, 2 * number, text);
  strategy = (kl_strategy){0};
  kiln_module_destroy(&m);
}

START_TEST(several_tiles) {
  if (!share_has((unsigned)_i, 2)) return;
  char *text = malloc(2000);
  snprintf(text, 2000, "HloModule m\n%s\n", long_sorts[_i].text);
  run_by(long_sorts[_i].chooser, text, (unsigned)_i);
  free(text);
}
END_TEST

// What is scanned changes with every fourth element, and is one for a thread where two lanes take turns; from the end
// on; between conversions; of tiles that have blocks of their own. Then of tiles that wait for those before them; of
// lines that lie beside each other.
static const struct {
  const char *type, *op, *text;
} turns[] = {
    {"f32", "add",
     "p = f32[2] parameter(0) q = f32[150,2,4] broadcast(p), dimensions={1} x = f32[1200] reshape(q) "
     "ROOT s = f32[1200] reduce-window(x, z), window={size=1200 pad=1199_0}, to_apply=f"},
    {"f32", "add",
     "x = f32[3,777] parameter(0) ROOT s = f32[3,777] reduce-window(x, z), window={size=1x777 pad=0_0x0_776}, "
     "to_apply=f"},
    {"f32", "add",
     "p = bf16[1300] parameter(0) x = f32[1300] convert(p) "
     "y = f32[1300] reduce-window(x, z), window={size=1300 pad=1299_0}, to_apply=f ROOT s = bf16[1300] convert(y)"},
    {"f32", "add",
     "x = f32[70001] parameter(0) "
     "ROOT s = f32[70001] reduce-window(x, z), window={size=70001 pad=70000_0}, to_apply=f"},
    {"f32", "add",
     "x = f32[2,20000,2] parameter(0) ROOT s = f32[2,20000,2] reduce-window(x, z), "
     "window={size=1x20000x1 pad=0_0x0_19999x0_0}, to_apply=f"},
    {"s32", "add",
     "x = s32[40001] parameter(0) "
     "ROOT s = s32[40001] reduce-window(x, z), window={size=40001 pad=40000_0}, to_apply=f"},
    {"u64", "multiply",
     "x = u64[2,12289] parameter(0) ROOT s = u64[2,12289] reduce-window(x, z), window={size=1x12289 pad=0_0x0_12288}, "
     "to_apply=f"},
    {"s8", "minimum",
     "x = s8[2,12300,3] parameter(0) ROOT s = s8[2,12300,3] reduce-window(x, z), "
     "window={size=1x12300x1 pad=0_0x12299_0x0_0}, to_apply=f"},
    {"pred", "xor",
     "x = pred[16384] parameter(0) ROOT s = pred[16384] reduce-window(x, z), window={size=16384 pad=0_16383}, "
     "to_apply=f"},
    {"bf16", "maximum",
     "x = bf16[16000] parameter(0) ROOT s = bf16[16000] reduce-window(x, z), window={size=16000 pad=15999_0}, "
     "to_apply=f"},
    {"f64", "minimum",
     "x = f64[3,16000] parameter(0) ROOT s = f64[3,16000] reduce-window(x, z), window={size=1x16000 pad=0_0x15999_0}, "
     "to_apply=f"},
    {"c64", "multiply",
     "x = c64[20001] parameter(0) "
     "ROOT s = c64[20001] reduce-window(x, z), window={size=20001 pad=20000_0}, to_apply=f"},
    {"c128", "add",
     "x = c128[2,12289] parameter(0) ROOT s = c128[2,12289] reduce-window(x, z), "
     "window={size=1x12289 pad=0_0x0_12288}, to_apply=f"},
    {"f32", "add",
     "x = f32[33,520,17] parameter(0) ROOT s = f32[33,520,17] reduce-window(x, z), "
     "window={size=1x520x1 pad=0_0x519_0x0_0}, to_apply=f"},
    {"bf16", "multiply",
     "x = bf16[70,1025] parameter(0) ROOT s = bf16[70,1025] reduce-window(x, z), window={size=70x1 pad=0_69x0_0}, "
     "to_apply=f"},
    {"c128", "add",
     "x = c128[64,65,16] parameter(0) ROOT s = c128[64,65,16] reduce-window(x, z), "
     "window={size=1x65x1 pad=0_0x64_0x0_0}, to_apply=f"},
};

START_TEST(scans_in_turns) {
  char text[600];
  const char *t = turns[_i].type;
  snprintf(text, sizeof text,
           "HloModule m\nf { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = %s[] %s(a, b) }\n"
           "ENTRY e { z = %s[] constant(%s) %s }\n",
           t, t, t, turns[_i].op, t, *t == 'c' ? "(1,0)" : "1", turns[_i].text);
  kiln_module *m = parse(text);
  run_both_and_check(cx, m, 3, 2, text);
  kiln_module_destroy(&m);
}
END_TEST

// Tiles of three levels: 256 of them, and more. Each sum is of the digits of its place few roundings away from the
// exact one, and the same on the host and on a GPU.
START_TEST(levels_of_tiles) {
  enum { N = 1060001 };
  static const char text[] =
      "HloModule m\nf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
      "ENTRY e { x = f32[1060001] parameter(0) z = f32[] constant(0) "
      "ROOT s = f32[1060001] reduce-window(x, z), window={size=1060001 pad=1060000_0}, to_apply=f }\n";
  float *x = aligned_alloc(16, (N * sizeof *x + 31) & ~(size_t)15), *y[2];
  kiln_module *m = parse(text);
  for (uint32_t i = 0; i < N; i++) x[i] = (float)(i * 2654435761u >> 8) * 0x1p-24f;
  for (int k = 0; k < 2; k++) {
    y[k] = memset(aligned_alloc(16, (N * sizeof *x + 31) & ~(size_t)15), 0, N * sizeof *x);
    run_on(cx, m, k ? 3 : HOST, 1, 0, (const void *const[]){x}, (void *[]){y[k]}, text);
  }
  double sum = 0;
  for (uint32_t i = 0; i < N; i++) {
    sum += (double)x[i];
    EXPECT(y[0][i] == y[1][i], "element %u: %a on the host, %a on a GPU", i, (double)y[0][i], (double)y[1][i]);
    EXPECT(fabs((double)y[0][i] - sum) <= sum * 0x1p-20, "element %u: %a for %a", i, (double)y[0][i], sum);
  }
  free(x), free(y[0]), free(y[1]);
  kiln_module_destroy(&m);
}
END_TEST

// Reducers of several ops, and of several arrays: products and sums of pairs, which are what a recurrence makes; the
// largest and its place, from the end on; logarithms of sums; values of several sizes, of many lines; elements that are
// too large for a thread to hold 16.
static const char *const tuples[] = {
    "f { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3) "
    "e = f32[] multiply(a, c) g = f32[] multiply(b, c) h = f32[] add(g, d) ROOT r = (f32[], f32[]) tuple(e, h) } "
    "ENTRY e { x = f32[70001] parameter(0) y = f32[70001] parameter(1) o = f32[] constant(1) z = f32[] constant(0) "
    "ROOT s = (f32[70001], f32[70001]) reduce-window(x, y, o, z), window={size=70001 pad=70000_0}, to_apply=f }",
    "f { a = f32[] parameter(0) i = s64[] parameter(1) b = f32[] parameter(2) j = s64[] parameter(3) "
    "c = pred[] compare(a, b), direction=GE x = f32[] select(c, a, b) k = s64[] select(c, i, j) "
    "ROOT r = (f32[], s64[]) tuple(x, k) } ENTRY e { x = f32[2,12300,2] parameter(0) "
    "y = s64[2,12300,2] iota(), iota_dimension=1 o = f32[] constant(-inf) z = s64[] constant(-1) "
    "ROOT s = (f32[2,12300,2], s64[2,12300,2]) reduce-window(x, y, o, z), "
    "window={size=1x12300x1 pad=0_0x0_12299x0_0}, to_apply=f }",
    "f { a = f32[] parameter(0) b = f32[] parameter(1) m = f32[] maximum(a, b) d = f32[] subtract(a, b) "
    "n = f32[] abs(d) g = f32[] negate(n) e = f32[] exponential(g) l = f32[] log-plus-one(e) "
    "ROOT r = f32[] add(m, l) } ENTRY e { x = f32[16384] parameter(0) z = f32[] constant(-inf) "
    "ROOT s = f32[16384] reduce-window(x, z), window={size=16384 pad=16383_0}, to_apply=f }",
    "f { a = bf16[] parameter(0) b = c64[] parameter(1) c = bf16[] parameter(2) d = c64[] parameter(3) "
    "e = bf16[] add(a, c) t = c64[] constant((0.5,0.25)) g = c64[] multiply(b, t) h = c64[] add(g, d) "
    "ROOT r = (bf16[], c64[]) tuple(e, h) } ENTRY e { x = bf16[70,99] parameter(0) y = c64[70,99] parameter(1) "
    "o = bf16[] constant(1) z = c64[] constant((0,1)) ROOT s = (bf16[70,99], c64[70,99]) reduce-window(x, y, o, z), "
    "window={size=1x99 pad=0_0x0_98}, to_apply=f }",
    "f { c = f32[] parameter(0) d = f32[] parameter(1) a = f32[] parameter(2) b = f32[] parameter(3) "
    "e = f32[] multiply(a, c) g = f32[] multiply(b, c) h = f32[] add(g, d) "
    "ROOT r = (f32[], f32[], f32[], f32[]) tuple(e, h, e, h) } "
    "ENTRY e { x = f32[20001] parameter(0) y = f32[20001] parameter(1) o = f32[] parameter(2) z = f32[] parameter(3) "
    "ROOT s = (f32[20001], f32[20001], f32[], f32[]) scan(x, y, o, z), dimensions={0}, num_carries=2, "
    "is_associative=true, to_apply=f }",
    "f { c = s32[3] parameter(0) d = f64[3] parameter(1) a = s32[3] parameter(2) b = f64[3] parameter(3) "
    "e = s32[3] multiply(a, c) g = f64[3] convert(c) h = f64[3] multiply(b, g) k = f64[3] add(h, d) "
    "ROOT r = (s32[3], f64[3], s32[3], f64[3]) tuple(e, k, e, k) } "
    "ENTRY e { x = s32[700,3] parameter(0) y = f64[700,3] parameter(1) o = s32[3] parameter(2) z = f64[3] parameter(3) "
    "ROOT s = (s32[700,3], f64[700,3], s32[3], f64[3]) scan(x, y, o, z), dimensions={0}, num_carries=2, "
    "is_reverse=true, is_associative=true, to_apply=f }",
    "f { a = c128[] parameter(0) b = c128[] parameter(1) i = s8[] parameter(2) c = c128[] parameter(3) "
    "d = c128[] parameter(4) j = s8[] parameter(5) e = c128[] multiply(a, c) g = c128[] multiply(b, c) "
    "h = c128[] add(g, d) k = s8[] subtract(j, i) ROOT r = (c128[], c128[], s8[]) tuple(e, h, k) } "
    "ENTRY e { x = c128[300] parameter(0) y = c128[300] parameter(1) n = s8[300] parameter(2) "
    "o = c128[] constant((1,0)) z = c128[] constant((0,0)) q = s8[] constant(3) "
    "ROOT s = (c128[300], c128[300], s8[300]) reduce-window(x, y, n, o, z, q), window={size=300 pad=299_0}, "
    "to_apply=f }",
};

START_TEST(scans_of_tuples) {
  char text[1200];
  snprintf(text, sizeof text, "HloModule m\n%s\n", tuples[_i]);
  kiln_module *m = parse(text);
  run_both_and_check(cx, m, 3, 2, text);
  if (!strstr(text, "exponential")) check_order(m, (unsigned)_i, text); // which is not rounded as the evaluator's is
  kiln_module_destroy(&m);
}
END_TEST

// x[i] = a[i] * x[i-1] + b[i] as pairs of products and sums: integers, which are the same in any order, by a loop.
START_TEST(recurrences) {
  enum { N = 20001 };
  static const char text[] =
      "HloModule m\nf { c = s32[] parameter(0) d = s32[] parameter(1) a = s32[] parameter(2) b = s32[] parameter(3) "
      "e = s32[] multiply(a, c) g = s32[] multiply(b, c) h = s32[] add(g, d) "
      "ROOT r = (s32[], s32[], s32[], s32[]) tuple(e, h, e, h) }\n"
      "ENTRY e { x = s32[20001] parameter(0) y = s32[20001] parameter(1) o = s32[] constant(1) z = s32[] constant(7) "
      "s = (s32[20001], s32[20001], s32[], s32[]) scan(x, y, o, z), dimensions={0}, num_carries=2, "
      "is_associative=true, to_apply=f ROOT r = s32[20001] get-tuple-element(s), index=1 }\n";
  static _Alignas(16) uint32_t a[N + 3], b[N + 3], x[3][N + 3];
  kiln_module *m = parse(text);
  for (uint32_t i = 0; i < N; i++) a[i] = i * 2654435761u | 1, b[i] = i * 40503u ^ i >> 3;
  for (int k = 0; k < 2; k++) run_on(cx, m, k ? 3 : HOST, 1, 0, (const void *const[]){a, b}, (void *[]){x[k]}, text);
  EXPECT(kiln_module_eval(cx, m, (const void *const[]){a, b}, (void *[]){x[2]}, NULL) == KILN_OK, "%s", last_finding());
  uint32_t now = 7;
  for (uint32_t i = 0; i < N; i++) {
    now = now * a[i] + b[i];
    EXPECT(x[0][i] == now && x[1][i] == now && x[2][i] == now, "element %u: %u, %u and %u, not %u", i, x[0][i], x[1][i],
           x[2][i], now);
  }
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("staged", EACH(open_batches, close_batches), {random_ops, SLICES}, {no_order, 6}, {wide_elements, 1},
                   {all_patterns, KL_COUNT(orders)}, {several_tiles, KL_COUNT(long_sorts)},
                   {scans_in_turns, KL_COUNT(turns)}, {scans_of_tuples, KL_COUNT(tuples)}, {levels_of_tiles, 1},
                   {recurrences, 1});
}
