// Arrays of dynamic sizes: what the compiler makes of them at their bounds, with sizes beside them, and the evaluator
// of the elements that are there; on the host and on the simulator, which must have the same bits.
//
// KILN_SIZES_SEED runs one random module alone and prints its text.
#include "drawn.h"

#include <stdlib.h>

// --- random modules -------------------------------------------------------------------------------------------------

enum { MOST_SIZED = 4, MOST_STEPS = 6, CASES = 24, SLICES = 4 };

static kl_arena words;

typedef struct sized {
  int rank, dims[MOST_SIZED + 1];
  bool dynamic[MOST_SIZED + 1];
} sized;

static void put_sized(kl_sb *to, const char *type, const sized *s) {
  kl_sbf(to, "%s[", type);
  for (int d = 0; d < s->rank; d++) kl_sbf(to, "%s%s%d", d ? "," : "", s->dynamic[d] ? "<=" : "", s->dims[d]);
  kl_sb_puts(to, "]");
}

static void begin_sized(kl_sb *to, int number, const char *type, const sized *s) {
  kl_sbf(to, "  v%d = ", number);
  put_sized(to, type, s);
}

static void put_window(kl_sb *to, int rank, int dim, const char *text, const char *other) {
  for (int d = 0; d < rank; d++) kl_sbf(to, "%s%s", d ? "x" : "", d == dim ? text : other);
}

// A loop of two rounds, or a branch: what they run makes one of two arrays of v(k - 1), of which one has another size.
static void put_control(kl_sb *to, kl_sb *calls, const char *type, int k, const sized *was, const sized *s, int d) {
  static const char loop[] =
      "under%d { p = (s32[], %s) parameter(0) i = s32[] get-tuple-element(p), index=0 two = s32[] constant(2) "
      "ROOT r = pred[] compare(i, two), direction=LT }\n"
      "step%d { p = (s32[], %s) parameter(0) i = s32[] get-tuple-element(p), index=0 o = s32[] constant(1) "
      "j = s32[] add(i, o) x = %s get-tuple-element(p), index=1 n = s32[] get-dimension-size(x), dimensions={%d} "
      "y = %s reverse(x), dimensions={%d} m = s32[] %s(n, o) z = %s set-dimension-size(y, m), dimensions={%d} "
      "ROOT t = (s32[], %s) tuple(j, z) }\n";
  static const char branches[] =
      "set%d { x = %s parameter(0) n = s32[] constant(%u) ROOT y = %s set-dimension-size(x, n), dimensions={%d} }\n"
      "turn%d { x = %s parameter(0) ROOT y = %s reverse(x), dimensions={%d} }\n";
  kl_sb texts[2];
  for (int i = 0; i < 2; i++) {
    kl_sb_init(&texts[i], cx);
    put_sized(&texts[i], type, i ? s : was);
  }
  const char *from = texts[0].p, *result = texts[1].p;
  if (chance(50)) {
    kl_sbf(calls, loop, k, result, k, result, result, d, result, d, chance(70) ? "subtract" : "add", result, d, result);
    kl_sbf(to, "  i%d = s32[] constant(0)\n  a%d = (s32[], %s) tuple(i%d, v%d)\n", k, k, from, k, k - 1);
    kl_sbf(to, "  w%d = (s32[], %s) while(a%d), condition=under%d, body=step%d\n", k, result, k, k, k);
    kl_sbf(to, "  v%d = %s get-tuple-element(w%d), index=1\n", k, result, k);
  } else {
    kl_sbf(calls, branches, k, from, below(4), result, d, k, from, from, d);
    kl_sbf(to, "  c%d = pred[] compare(n0, n1), direction=LT\n  v%d = %s conditional(c%d, v%d, v%d), ", k, k, result, k,
           k - 1, k - 1);
    kl_sbf(to, "true_computation=set%d, false_computation=turn%d\n", k, k);
  }
  for (int i = 0; i < 2; i++) kl_sb_free(&texts[i]);
}

// Rows of a batch, with features, of which some may be there: windows along d.
static void put_convolution(kl_sb *to, const char *type, int k, sized *s, int d) {
  static const char *const labels[] = {"0bf", "b0f", "bf0"};
  int f = d == 2 ? 1 : 2, reach = 1 + (int)below(3), low = (int)below(3), high = (int)below(3), by = 1 + (int)below(2),
      features = s->dims[f], holes = 1 + (int)below(2), wide = s->dims[d] ? (s->dims[d] - 1) * holes + 1 : 0;
  int all = wide + low + high;
  s->dims[d] = all < reach ? 0 : (all - reach) / by + 1;
  s->dims[f] = 1 + (int)below(3);
  s->dynamic[f] = false;
  kl_sbf(to, "  w%d = %s[%d,%d,%d] broadcast(one), dimensions={}\n", k, type, reach, features, s->dims[f]);
  begin_sized(to, k, type, s);
  kl_sbf(to, " convolution(v%d, w%d), window={size=%d stride=%d pad=%d_%d lhs_dilate=%d}, dim_labels=%s_0io->%s\n",
         k - 1, k, reach, by, low, high, holes, labels[d], labels[d]);
}

// A scan along d from one end or the other: its outputs, or its last carry.
static void put_scan(kl_sb *to, kl_sb *calls, const char *type, int k, sized *s, int d) {
  sized slice = *s;
  kl_sb text;
  kl_sb_init(&text, cx);
  slice.rank--;
  for (int i = d; i < slice.rank; i++) {
    slice.dims[i] = s->dims[i + 1];
    slice.dynamic[i] = s->dynamic[i + 1];
  }
  put_sized(&text, type, &slice);
  bool outputs = chance(50), sums = chance(60);
  const char *t = text.p;
  kl_sbf(calls, "scan%d { x = %s parameter(0) c = %s parameter(1) n = %s %s(x, c) o = %s subtract(n, x) ", k, t, t, t,
         chance(50) ? "add" : "minimum", t);
  kl_sbf(calls, "ROOT t = (%s, %s) tuple(%s, n) }\n", t, t, sums ? "n" : "o");
  kl_sbf(to, "  c%d = %s broadcast(one), dimensions={}\n  s%d = (", k, t, k);
  put_sized(to, type, s);
  kl_sbf(to, ", %s) scan(v%d, c%d), dimensions={%d}, num_carries=1%s%s, to_apply=scan%d\n", t, k - 1, k, d,
         chance(50) ? ", is_reverse=true" : "", sums && chance(50) ? ", is_associative=true" : "", k);
  if (!outputs) *s = slice;
  begin_sized(to, k, type, s);
  kl_sbf(to, " get-tuple-element(s%d), index=%d\n", k, !outputs);
  kl_sb_free(&text);
}

// One window, where a number says, as large as a number says along d.
static void put_scatter(kl_sb *to, const char *type, int k, const sized *s, int d) {
  sized window = *s;
  for (int i = 0; i < s->rank; i++) window.dynamic[i] = false;
  window.dims[d] = s->dims[d] < 3 ? s->dims[d] : 3;
  kl_sbf(to, "  i%d = s32[1] reshape(n%u)\n  b%d = ", k, below(2), k);
  put_sized(to, type, &window);
  kl_sbf(to, " broadcast(one), dimensions={}\n  u%d = ", k);
  if (chance(50)) window.dynamic[d] = true;
  put_sized(to, type, &window);
  if (window.dynamic[d])
    kl_sbf(to, " set-dimension-size(b%d, n%u), dimensions={%d}\n", k, below(2), d);
  else
    kl_sbf(to, " copy(b%d)\n", k);
  begin_sized(to, k, type, s);
  kl_sbf(to, " scatter(v%d, i%d, u%d), update_window_dims={", k - 1, k, k);
  for (int i = 0; i < s->rank; i++) kl_sbf(to, "%s%d", i ? "," : "", i);
  kl_sbf(to, "}, inserted_window_dims={}, scatter_dims_to_operand_dims={%d}, index_vector_dim=0, to_apply=sum\n", d);
}

// One more op on v(k - 1), of shape *s, which becomes that of vk.
static void put_step(kl_sb *to, kl_sb *calls, const char *type, int k, sized *s) {
  static const char *const reducers[] = {"sum", "least", "odd"};
  sized was = *s;
  int d = s->rank ? (int)below((uint32_t)s->rank) : -1, size = d < 0 ? 0 : s->dims[d];
  bool empty = false;
  switch (d < 0 ? 0 : below(17)) {
  case 0:
    begin_sized(to, k, type, s);
    kl_sbf(to, " %s(v%d, v%d)\n", chance(50) ? "add" : "maximum", k - 1, k - 1);
    return;
  case 1:
    s->dynamic[d] = true;
    begin_sized(to, k, type, s);
    kl_sbf(to, " set-dimension-size(v%d, n%u), dimensions={%d}\n", k - 1, below(2), d);
    return;
  case 2: // reverse
    begin_sized(to, k, type, s);
    kl_sbf(to, " reverse(v%d), dimensions={%d}\n", k - 1, d);
    return;
  case 3:
    for (int i = 0; i < s->rank; i++) {
      s->dims[i] = was.dims[s->rank - 1 - i];
      s->dynamic[i] = was.dynamic[s->rank - 1 - i];
    }
    begin_sized(to, k, type, s);
    kl_sbf(to, " transpose(v%d), dimensions={", k - 1);
    for (int i = 0; i < s->rank; i++) kl_sbf(to, "%s%d", i ? "," : "", s->rank - 1 - i);
    kl_sb_puts(to, "}\n");
    return;
  case 4: { // slice, of one element also where that need not be there
    int from = (int)below((uint32_t)size + 1), by = 1 + (int)below(2),
        end = from + (int)below((uint32_t)(size - from) + 1);
    s->dims[d] = (end - from + by - 1) / by;
    s->dynamic[d] = was.dynamic[d] && s->dims[d] != 1;
    begin_sized(to, k, type, s);
    kl_sbf(to, " slice(v%d), slice={", k - 1);
    for (int i = 0; i < s->rank; i++)
      kl_sbf(to, "%s[%d:%d:%d]", i ? "," : "", i == d ? from : 0, i == d ? end : was.dims[i], i == d ? by : 1);
    kl_sb_puts(to, "}\n");
    return;
  }
  case 5:
    if (size > 20) return put_step(to, calls, type, k, s);
    s->dims[d] = 2 * size;
    begin_sized(to, k, type, s);
    kl_sbf(to, " concatenate(v%d, v%d), dimensions={%d}\n", k - 1, k - 1, d);
    return;
  case 6: {
    int low = (int)below(3), high = (int)below(3), gap = (int)below(2);
    s->dims[d] = low + size + (size ? size - 1 : 0) * gap + high;
    begin_sized(to, k, type, s);
    kl_sbf(to, " pad(v%d, one), padding=", k - 1);
    put_window(to, s->rank, d, kl_strf(&words, "%d_%d_%d", low, high, gap), "0_0");
    kl_sb_puts(to, "\n");
    return;
  }
  case 7:
    s->rank--;
    for (int i = d; i < s->rank; i++) {
      s->dims[i] = was.dims[i + 1];
      s->dynamic[i] = was.dynamic[i + 1];
    }
    begin_sized(to, k, type, s);
    kl_sbf(to, " reduce(v%d, one), dimensions={%d}, to_apply=%s\n", k - 1, d, reducers[below(3)]);
    return;
  case 8: {
    int reach = 1 + (int)below(3), low = (int)below(3), high = (int)below(2), by = 1 + (int)below(2);
    int all = size + low + high;
    s->dims[d] = all < reach ? 0 : (all - reach) / by + 1;
    begin_sized(to, k, type, s);
    kl_sbf(to, " reduce-window(v%d, one), window={size=", k - 1);
    put_window(to, s->rank, d, kl_strf(&words, "%d", reach), "1");
    kl_sb_puts(to, " stride=");
    put_window(to, s->rank, d, kl_strf(&words, "%d", by), "1");
    kl_sb_puts(to, " pad=");
    put_window(to, s->rank, d, kl_strf(&words, "%d_%d", low, high), "0_0");
    kl_sbf(to, "}, to_apply=%s\n", reducers[below(3)]);
    return;
  }
  case 9: // the first takes in the second
    // Of what may have none and at most one, nobody can tell which dimension it is.
    for (int i = 0; i < s->rank; i++) empty |= s->dims[i] == 0 || (i && s->dynamic[i] && s->dims[i] == 1);
    if (s->rank < 2 || empty) return put_step(to, calls, type, k, s);
    s->dims[0] *= s->dims[1];
    s->dynamic[0] |= was.dynamic[1];
    s->rank--;
    for (int i = 1; i < s->rank; i++) {
      s->dims[i] = was.dims[i + 1];
      s->dynamic[i] = was.dynamic[i + 1];
    }
    begin_sized(to, k, type, s);
    kl_sbf(to, " reshape(v%d)\n", k - 1);
    return;
  case 10:
  case 11:
    s->dynamic[d] = true;
    put_control(to, calls, type, k, &was, s, d);
    return;
  case 12:
  case 13:
    if (s->rank != 3) return put_step(to, calls, type, k, s);
    put_convolution(to, type, k, s, d);
    return;
  case 14: put_scan(to, calls, type, k, s, d); return;
  case 15: put_scatter(to, type, k, s, d); return;
  default: // products of all pairs along d
    if (s->rank != 2) return put_step(to, calls, type, k, s);
    s->dims[0] = s->dims[1] = was.dims[!d];
    s->dynamic[0] = s->dynamic[1] = was.dynamic[!d];
    begin_sized(to, k, type, s);
    kl_sbf(to, " dot(v%d, v%d), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}\n", k - 1, k - 1, d, d);
    return;
  }
}

static void change_numbers(const kiln_module *m, size_t parameter, unsigned number, void *buffer) {
  uint64_t own = seed;
  seed = number * 3u + parameter;
  int32_t v = (int32_t)below(11) - 2;
  if (parameter) memcpy(buffer, &v, sizeof v);
  seed = own;
}

// Sizes are data: below zero and above the bound, too.
START_TEST(random_sizes) {
  static const char *const types[] = {"f32", "s32", "bf16"};
  const char *alone = getenv("KILN_SIZES_SEED");
  kl_sb text, calls;
  change_parameter = change_numbers;
  kl_arena_init(&words, cx);
  kl_sb_init(&text, cx);
  kl_sb_init(&calls, cx);
  for (unsigned i = alone ? (unsigned)strtoul(alone, NULL, 10) : (unsigned)_i; i < share_of(CASES) || alone;
       i += SLICES) {
    const char *type = types[i % 3];
    sized s = {1 + (int)(i / 3 % 3), {0}, {false}};
    int steps = 2 + (int)(i % (MOST_STEPS - 1));
    seed = i * 77ull + 5;
    text.n = calls.n = 0;
    kl_sbf(&calls,
           "HloModule fusion\n\nsum { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = %s[] add(a, b) }\n"
           "least { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = %s[] minimum(a, b) }\n"
           "odd { a = %s[] parameter(0) b = %s[] parameter(1) x = %s[] maximum(a, b) ROOT r = %s[] negate(y) "
           "y = %s[] negate(x) }\n",
           type, type, type, type, type, type, type, type, type, type, type);
    kl_sb_puts(&text, "ENTRY e {\n");
    for (int d = 0; d < s.rank; d++) s.dims[d] = chance(5) ? 0 : 1 + (int)below(7);
    kl_sb_puts(&text, "  p = ");
    put_sized(&text, type, &s);
    kl_sbf(&text, " parameter(0)\n  n0 = s32[] parameter(1)\n  n1 = s32[] parameter(2)\n  one = %s[] constant(1)\n",
           type);
    s.dynamic[0] = true;
    begin_sized(&text, 0, type, &s);
    kl_sb_puts(&text, " set-dimension-size(p, n0), dimensions={0}\n");
    for (int k = 1; k <= steps; k++) put_step(&text, &calls, type, k, &s);
    for (int d = 0; d < s.rank; d++)
      kl_sbf(&text, "  k%d = s32[] get-dimension-size(v%d), dimensions={%d}\n", d, steps, d);
    kl_sb_puts(&text, "  ROOT t = (");
    put_sized(&text, type, &s);
    for (int d = 0; d < s.rank; d++) kl_sb_puts(&text, ", s32[]");
    kl_sbf(&text, ") tuple(v%d", steps);
    for (int d = 0; d < s.rank; d++) kl_sbf(&text, ", k%d", d);
    kl_sb_puts(&text, ")\n}\n");
    const char *whole = kl_strf(&words, "%.*s%.*s", (int)calls.n, calls.p, (int)text.n, text.p);
    if (alone) printf("%s", whole);
    kiln_module *m = parse(whole);
    run_both_and_check(cx, m, 3, i, whole);
    kiln_module_destroy(&m);
    if (alone) break;
  }
  kl_sb_free(&calls);
  kl_sb_free(&text);
  kl_arena_free(&words);
  change_parameter = NULL;
}
END_TEST

// Scatters into and from arrays of dynamic sizes, and sorts along them. n and m are sizes.
static const struct {
  const char *text;
} indexed[] = {
    {// rows, of which fewer are there than there is room for
     "p = f32[9,3] parameter(2) i = s32[5,1] parameter(3) u = f32[5,3] parameter(4) k = s32[5,1] broadcast(mask), "
     "dimensions={} j = s32[5,1] and(i, k) a = f32[<=9,3] set-dimension-size(p, n), dimensions={0} "
     "b = s32[<=5,1] set-dimension-size(j, m), dimensions={0} c = f32[<=5,3] set-dimension-size(u, m), dimensions={0} "
     "ROOT r = f32[<=9,3] scatter(a, b, c), update_window_dims={1}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f"},
    {// bytes as indices: none of 0 .. 255 leads off
     "p = f32[300] parameter(2) i = u8[7] parameter(3) u = f32[7] parameter(4) "
     "b = u8[<=7] set-dimension-size(i, m), dimensions={0} c = f32[<=7] set-dimension-size(u, m), dimensions={0} "
     "ROOT r = f32[300] scatter(p, b, c), update_window_dims={}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f"},
    {// whole rows of a size that is not known
     "p = f32[4,6] parameter(2) i = s64[3] parameter(3) u = f32[3,6] parameter(4) k = s64[] constant(3) "
     "l = s64[3] broadcast(k), dimensions={} j = s64[3] and(i, l) "
     "a = f32[4,<=6] set-dimension-size(p, n), dimensions={1} c = f32[3,<=6] set-dimension-size(u, n), dimensions={1} "
     "ROOT r = f32[4,<=6] scatter(a, j, c), update_window_dims={1}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f"},
    {// single elements, by two indices, the vectors in front
     "p = f32[5,8] parameter(2) i = s32[2,4,3] parameter(3) u = f32[4,3,1] parameter(4) "
     "k = s32[2,4,3] broadcast(mask), dimensions={} j = s32[2,4,3] and(i, k) "
     "a = f32[5,<=8] set-dimension-size(p, n), dimensions={1} "
     "b = s32[2,<=4,3] set-dimension-size(j, m), dimensions={1} "
     "c = f32[<=4,3,1] set-dimension-size(u, m), dimensions={0} "
     "ROOT r = f32[5,<=8] scatter(a, b, c), update_window_dims={2}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=f"},
    {// along it, and along another
     "p = f32[6,5] parameter(2) a = f32[<=6,5] set-dimension-size(p, n), dimensions={0} "
     "b = f32[<=6,5] sort(a), dimensions={0}, to_apply=less c = f32[<=6,5] sort(b), dimensions={1}, to_apply=less "
     "ROOT r = (f32[<=6,5], f32[<=6,5]) tuple(b, c)"},
    {// of two arrays, of which one has less, in a call; the greatest of what is there
     "p = f32[40] parameter(2) q = s32[40] parameter(3) a = f32[<=40] set-dimension-size(p, n), dimensions={0} "
     "b = s32[<=40] set-dimension-size(q, m), dimensions={0} c = (f32[<=40], s32[<=40]) call(a, b), to_apply=sorted "
     "d = s32[<=40] get-tuple-element(c), index=1 "
     "k = s32[] get-dimension-size(d), dimensions={0} ROOT r = (s32[<=40], s32[]) tuple(d, k)"},
    {// slices at places that data says: of as many elements as there are, of more, of all
     "p = f32[9,7] parameter(2) i = s32[] parameter(3) j = s32[] parameter(4) l = s8[] convert(i) h = u64[] convert(j) "
     "q = s32[2] parameter(5) a = f32[<=9,7] set-dimension-size(p, n), dimensions={0} "
     "b = f32[<=9,<=7] set-dimension-size(a, m), dimensions={1} c = f32[3,<=7] dynamic-slice(b, i, j), "
     "dynamic_slice_sizes={3,7} d = f32[4,2] dynamic-slice(b, q), dynamic_slice_sizes={4,2} "
     "o = f32[1,3] dynamic-slice(b, l, l), dynamic_slice_sizes={1,3} k = f32[2,1] dynamic-slice(b, h, h), "
     "dynamic_slice_sizes={2,1} ROOT r = (f32[3,<=7], f32[4,2], f32[1,3], f32[2,1]) tuple(c, d, o, k)"},
    {// updates: of a known size, of one that is not known, into what has one, and into what has none
     "p = f32[9,7] parameter(2) i = s32[] parameter(3) j = s32[] parameter(4) u = f32[4,5] parameter(5) "
     "l = s32[] and(i, mask) q = s32[2] parameter(6) a = f32[<=9,7] set-dimension-size(p, n), dimensions={0} "
     "b = f32[<=9,7] dynamic-update-slice(a, u, l, j) v = f32[<=4,5] set-dimension-size(u, m), dimensions={0} "
     "c = f32[<=9,7] dynamic-update-slice(a, v, l, l) d = f32[9,7] dynamic-update-slice(p, v, l, j) "
     "w = f32[<=4,<=5] set-dimension-size(v, n), dimensions={1} e = f32[9,7] dynamic-update-slice(p, w, q) "
     "ROOT r = (f32[<=9,7], f32[<=9,7], f32[9,7], f32[9,7]) tuple(b, c, d, e)"},
    {// gathers of elements, rows and windows, at places of which fewer may be there
     "p = f32[9,7] parameter(2) i = s32[6] parameter(3) j = s32[2,6] parameter(4) h = u8[2,6] convert(j) "
     "x = s64[6] convert(i) a = f32[<=9,7] set-dimension-size(p, n), dimensions={0} b = f32[6,7] gather(a, i), "
     "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,7} "
     "y = s64[<=6] set-dimension-size(x, m), dimensions={0} c = f32[<=6,2] gather(a, y), offset_dims={1}, "
     "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2} "
     "d = f32[<=9,<=7] set-dimension-size(a, m), dimensions={1} e = f32[6,2,3] gather(d, j), offset_dims={1,2}, "
     "collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={2,3} "
     "g = f32[2,6,<=7] gather(d, h), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=2, slice_sizes={1,7} ROOT r = (f32[6,7], f32[<=6,2], f32[6,2,3], f32[2,6,<=7]) tuple(b, c, e, "
     "g)"},
    {// of a batch each
     "p = f32[6,7] parameter(2) i = s32[6,4] parameter(3) a = f32[<=6,7] set-dimension-size(p, n), dimensions={0} "
     "b = f32[<=6,<=7] set-dimension-size(a, m), dimensions={1} j = s32[<=6,4] set-dimension-size(i, m), "
     "dimensions={0} "
     "c = f32[<=6,4] gather(b, j), offset_dims={}, collapsed_slice_dims={1}, operand_batching_dims={0}, "
     "start_indices_batching_dims={0}, start_index_map={1}, index_vector_dim=2, slice_sizes={1,1} "
     "k = s32[] get-dimension-size(c), dimensions={0} ROOT r = (f32[<=6,4], s32[]) tuple(c, k)"},
    {// reshapes: of what is no slowest dimension, of two sizes, into what there is more of, of nothing
     "p = f32[6,7] parameter(2) q = s32[2,7,3] parameter(3) six = s32[] constant(6) l = s32[] multiply(m, six) "
     "x = s8[48] parameter(4) a = f32[6,<=7] set-dimension-size(p, n), dimensions={1} b = f32[<=42] reshape(a) "
     "c = f32[<=6,<=7] set-dimension-size(a, m), dimensions={0} d = f32[<=42] reshape(c) "
     "e = s32[2,<=7,3] set-dimension-size(q, n), dimensions={1} g = s32[<=14,3] reshape(e) h = s32[2,<=21] reshape(e) "
     "y = s8[<=48] set-dimension-size(x, l), dimensions={0} v = s8[<=8,6] reshape(y) w = s8[3,<=8,2] reshape(v) "
     "k = s32[] get-dimension-size(d), dimensions={0} j = s32[] get-dimension-size(w), dimensions={1} "
     "o = f32[0,6] parameter(5) t0 = f32[0,<=6] set-dimension-size(o, n), dimensions={1} u = f32[<=0] reshape(t0) "
     "ROOT r = (f32[<=42], f32[<=42], s32[<=14,3], s32[2,<=21], s8[<=8,6], s8[3,<=8,2], s32[], s32[], f32[<=0]) "
     "tuple(b, d, g, h, v, w, k, j, u)"},
    {// reshapes to sizes that are given
     "p = f32[6,8] parameter(2) q = f32[48] parameter(3) six = s32[] constant(6) eight = s32[] constant(8) "
     "l = s32[] multiply(n, m) a = f32[<=48] set-dimension-size(q, l), dimensions={0} b = f32[<=6,<=8] "
     "dynamic-reshape(p, six, eight) c = f32[<=8,<=6] dynamic-reshape(p, eight, six) d = f32[<=48] dynamic-reshape(p, "
     "l9) "
     "l9 = s32[] constant(48) o = f32[<=7,<=7] dynamic-reshape(q49, n, m) q49 = f32[<=49] set-dimension-size(z, l), "
     "dimensions={0} z = f32[49] parameter(4) u = f32[<=49] dynamic-reshape(o, l) g = f32[<=7,<=7] "
     "dynamic-reshape(u, m, n) k = s32[] get-dimension-size(g), dimensions={0} "
     "ROOT r = (f32[<=48], f32[<=6,<=8], f32[<=8,<=6], f32[<=48], f32[<=7,<=7], f32[<=7,<=7], s32[]) "
     "tuple(a, b, c, d, o, g, k)"},
    {// windows and groups along other dimensions, and padding that takes off more than there is
     "p = f32[5,9] parameter(2) s5 = f32[5,4] parameter(3) x = f32[5,9,4] parameter(4) w = f32[3,1,8] parameter(5) "
     "z = f32[] constant(1) a = f32[<=5,9] set-dimension-size(p, n), dimensions={0} "
     "b = f32[<=5,4] set-dimension-size(s5, m), dimensions={0} c = f32[<=5,9] select-and-scatter(a, b, z), "
     "window={size=1x3 stride=1x2}, select=ge, scatter=f d = f32[<=5,9,4] set-dimension-size(x, n), dimensions={0} "
     "e = f32[<=5,7,8] convolution(d, w), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=4 "
     "g = f32[<=2,9] pad(a, z), padding=-2_-1x0_0 k = s32[] get-dimension-size(g), dimensions={0} "
     "ROOT r = (f32[<=5,9], f32[<=5,7,8], f32[<=2,9], s32[]) tuple(c, e, g, k)"},
    {// the first of as many as there are, or fewer
     "p = f32[3,9] parameter(2) q = s8[5,9] parameter(3) v = bf16[2,40] parameter(4) w = u16[9] parameter(5) a = "
     "f32[3,<=9] set-dimension-size(p, n), dimensions={1} top = (f32[3,4], s32[3,4]) topk(a), k=4, largest=true b = "
     "s8[<=5,9] set-dimension-size(q, m), dimensions={0} c = s8[<=5,<=9] set-dimension-size(b, n), dimensions={1} "
     "low = (s8[<=5,<=3], s32[<=5,<=3]) topk(c), k=3, largest=false d = bf16[2,<=40] set-dimension-size(v, m), "
     "dimensions={1} half = (bf16[2,7], s32[2,7]) topk(d), k=7, largest=false e = u16[<=9] set-dimension-size(w, n), "
     "dimensions={0} all = (u16[9], s32[9]) topk(e), k=9, largest=true top0 = f32[3,4] get-tuple-element(top), index=0 "
     "top1 = s32[3,4] get-tuple-element(top), index=1 low0 = s8[<=5,<=3] get-tuple-element(low), index=0 low1 = "
     "s32[<=5,<=3] "
     "get-tuple-element(low), index=1 half0 = bf16[2,7] get-tuple-element(half), index=0 half1 = s32[2,7] "
     "get-tuple-element(half), index=1 all0 = u16[9] get-tuple-element(all), index=0 all1 = s32[9] "
     "get-tuple-element(all), "
     "index=1 ROOT r = (f32[3,4], s32[3,4], s8[<=5,<=3], s32[<=5,<=3], bf16[2,7], s32[2,7], u16[9], s32[9]) "
     "tuple(top0, top1, low0, low1, half0, half1, all0, all1)"},
};

START_TEST(indexed_sizes) {
  char text[3000];
  if (!share_has((uint64_t)_i, 1)) return;
  change_parameter = NULL;
  snprintf(text, sizeof text,
           "HloModule fusion\n\nf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
           "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }\n"
           "ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }\n"
           "by_two { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) "
           "e = pred[] compare(c, d), direction=GT ROOT r = pred[] copy(e) }\n"
           "sorted { a = f32[<=40] parameter(0) b = s32[<=40] parameter(1) "
           "ROOT r = (f32[<=40], s32[<=40]) sort(a, b), dimensions={0}, to_apply=by_two, is_stable=true }\n"
           "ENTRY e { s = s32[] parameter(0) t = s32[] parameter(1) mask = s32[] constant(7) n = s32[] and(s, mask) "
           "m = s32[] and(t, mask) %s }\n",
           indexed[_i].text);
  kiln_module *m = parse(text);
  for (unsigned k = 0; k < 6; k++) run_both_and_check(cx, m, 3, k, text);
  kiln_module_destroy(&m);
}
END_TEST

// What reducers of several ops make of what is there, and sizes in what loops and branches run. n and m are sizes.
static const char carried_head[] =
    "HloModule fusion\n\n"
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
    "most { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3) "
    "g = pred[] compare(a, b), direction=GT x = pred[] compare(a, a), direction=NE h = pred[] or(g, x) "
    "e = pred[] compare(a, b), direction=EQ l = pred[] compare(i, j), direction=LT f = pred[] and(e, l) "
    "k = pred[] or(h, f) v = f32[] select(h, a, b) w = s32[] select(k, i, j) ROOT t = (f32[], s32[]) tuple(v, w) }\n"
    "odd { a = s32[] parameter(0) b = s32[] parameter(1) p = s32[] multiply(a, b) q = s32[] add(a, b) "
    "ROOT r = s32[] add(p, q) }\n" // 1 + r = (1 + a)(1 + b)
    "calls { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] call(a, b), to_apply=odd }\n"
    "single { a = f32[] parameter(0) b = f32[] parameter(1) p = f32[] maximum(a, b) q = f32[] abs(p) "
    "r = f32[] minimum(p, q) ROOT t = (f32[]) tuple(r) }\n"
    "times { a = c64[] parameter(0) b = c64[] parameter(1) ROOT r = c64[] multiply(a, b) }\n"
    "sum8 { a = f8e4m3fnuz[] parameter(0) b = f8e4m3fnuz[] parameter(1) ROOT r = f8e4m3fnuz[] add(a, b) }\n"
    "wide { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] maximum(a, b) d = f32[] maximum(c, b) "
    "ROOT r = f32[] copy(d) }\n"
    "under { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }\n"
    "before { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] call(a, b), to_apply=under }\n"
    // Twice, and on until there are three elements; each round one is put in front of the others.
    "again { p = (s32[], f32[<=7]) parameter(0) i = s32[] get-tuple-element(p), index=0 "
    "a = f32[<=7] get-tuple-element(p), index=1 k = s32[] get-dimension-size(a), dimensions={0} "
    "two = s32[] constant(2) x = pred[] compare(i, two), direction=LT y = pred[] compare(k, two), direction=LE "
    "ROOT r = pred[] or(x, y) }\n"
    "grow { p = (s32[], f32[<=7]) parameter(0) i = s32[] get-tuple-element(p), index=0 "
    "a = f32[<=7] get-tuple-element(p), index=1 one = s32[] constant(1) j = s32[] add(i, one) z = f32[] constant(0) "
    "s = f32[] reduce(a, z), dimensions={0}, to_apply=add f = f32[1] reshape(s) "
    "c = f32[<=8] concatenate(f, a), dimensions={0} d = f32[<=7] slice(c), slice={[0:7]} "
    "ROOT t = (s32[], f32[<=7]) tuple(j, d) }\n"
    // The state is one array, in a loop in a loop.
    "any { a = f32[<=5,<=3] parameter(0) k = s32[] get-dimension-size(a), dimensions={1} one = s32[] constant(1) "
    "ROOT r = pred[] compare(k, one), direction=GT }\n"
    "less { a = f32[<=5,<=3] parameter(0) k = s32[] get-dimension-size(a), dimensions={1} one = s32[] constant(1) "
    "l = s32[] subtract(k, one) b = f32[<=5,<=3] negate(a) "
    "ROOT r = f32[<=5,<=3] set-dimension-size(b, l), dimensions={1} }\n"
    "most_rows { a = f32[<=5,<=3] parameter(0) k = s32[] get-dimension-size(a), dimensions={0} "
    "two = s32[] constant(2) ROOT r = pred[] compare(k, two), direction=GT }\n"
    "fewer { a = f32[<=5,<=3] parameter(0) w = f32[<=5,<=3] while(a), condition=any, body=less "
    "k = s32[] get-dimension-size(w), dimensions={0} one = s32[] constant(1) l = s32[] subtract(k, one) "
    "three = s32[] constant(3) b = f32[<=5,<=3] set-dimension-size(w, three), dimensions={1} "
    "ROOT r = f32[<=5,<=3] set-dimension-size(b, l), dimensions={0} }\n"
    "first { p = (f32[<=7], s32[]) parameter(0) a = f32[<=7] get-tuple-element(p), index=0 "
    "n = s32[] get-tuple-element(p), index=1 ROOT r = f32[<=7] set-dimension-size(a, n), dimensions={0} }\n"
    "second { a = f32[<=7] parameter(0) ROOT r = f32[<=7] reverse(a), dimensions={0} }\n"
    "third { a = f32[] parameter(0) ROOT r = f32[7] broadcast(a), dimensions={} }\n"
    // The body's result is as large as the bound, by its type.
    "short { a = f32[<=7] parameter(0) k = s32[] get-dimension-size(a), dimensions={0} l = s32[] constant(7) "
    "ROOT r = pred[] compare(k, l), direction=LT }\n"
    "whole { a = f32[<=7] parameter(0) b = f32[1] slice(a), slice={[0:1]} c = f32[] reshape(b) "
    "ROOT r = f32[7] broadcast(c), dimensions={} }\n"
    "rounds { a = f32[<=7] parameter(0) z = s32[] constant(0) t = (s32[], f32[<=7]) tuple(z, a) "
    "w = (s32[], f32[<=7]) while(t), condition=again, body=grow ROOT r = f32[<=7] get-tuple-element(w), index=1 }\n";

static const char *const carried[] = {
    // The greatest and where it is: of arrays of two sizes, along the last dimension, the first, and both.
    "p = f32[5,6] parameter(2) l = f32[] constant(-inf) z = s32[] constant(9) i = s32[5,6] iota(), iota_dimension=1 "
    "a = f32[5,<=6] set-dimension-size(p, n), dimensions={1} b = s32[5,<=6] set-dimension-size(i, m), dimensions={1} "
    "c = (f32[5], s32[5]) reduce(a, b, l, z), dimensions={1}, to_apply=most "
    "d = (f32[<=6], s32[<=6]) reduce(a, b, l, z), dimensions={0}, to_apply=most "
    "e = (f32[], s32[]) reduce(a, i, l, z), dimensions={0,1}, to_apply=most "
    "ROOT r = ((f32[5], s32[5]), (f32[<=6], s32[<=6]), (f32[], s32[])) tuple(c, d, e)",
    // Rows that are read by many threads, in windows, too.
    "p = s32[3,7] parameter(2) q = s32[3,700] parameter(3) z = s32[] constant(0) h = s32[] constant(99) "
    "k = s32[] multiply(n, h) a = s32[3,<=7] set-dimension-size(p, n), dimensions={1} "
    "b = s32[3,<=700] set-dimension-size(q, k), dimensions={1} c = s32[3] reduce(b, z), dimensions={1}, to_apply=calls "
    "e = s32[3,<=6] reduce-window(a, z), window={size=1x4 pad=0_0x1_1}, to_apply=calls "
    "k1 = s32[] get-dimension-size(e), dimensions={1} ROOT r = (s32[3], s32[3,<=6], s32[]) tuple(c, e, k1)",
    // Types without a neutral value, or wider ones between; tuples of one.
    "p = c64[7] parameter(2) q = f8e4m3fnuz[4,7] parameter(3) o = c64[] constant((1,0)) z = f8e4m3fnuz[] constant(0) "
    "x = bf16[7] parameter(4) y = f32[7] parameter(5) u = bf16[] constant(-inf) v = f32[] constant(-3) "
    "a = c64[<=7] set-dimension-size(p, n), dimensions={0} b = f8e4m3fnuz[4,<=7] set-dimension-size(q, m), "
    "dimensions={1} c = c64[] reduce(a, o), dimensions={0}, to_apply=times "
    "d = f8e4m3fnuz[4] reduce(b, z), dimensions={1}, to_apply=sum8 "
    "e = bf16[<=7] set-dimension-size(x, m), dimensions={0} f = f32[] reduce(e, u), dimensions={0}, to_apply=wide "
    "g = bf16[<=6] reduce-window(e, u), window={size=2}, to_apply=wide "
    "h = f32[<=7] set-dimension-size(y, n), dimensions={0} i = (f32[]) reduce(h, v), dimensions={0}, to_apply=single "
    "s = f32[<=7] sort(h), dimensions={0}, to_apply=before "
    "ROOT r = (c64[], f8e4m3fnuz[4], f32[], bf16[<=6], (f32[]), f32[<=7]) tuple(c, d, f, g, i, s)",
    // A loop, called twice; what comes out of it is read with its size.
    "p = f32[7] parameter(2) l = f32[] constant(-inf) z = s32[] constant(0) i = s32[7] iota(), iota_dimension=0 "
    "a = f32[<=7] set-dimension-size(p, n), dimensions={0} b = f32[<=7] call(a), to_apply=rounds "
    "c = f32[<=7] reverse(b), dimensions={0} d = f32[<=7] call(c), to_apply=rounds "
    "k = s32[] get-dimension-size(b), dimensions={0} "
    "e = (f32[], s32[]) reduce(d, i, l, z), dimensions={0}, to_apply=most "
    "ROOT r = (f32[<=7], f32[<=7], s32[], (f32[], s32[])) tuple(b, d, k, e)",
    "p = f32[5,3] parameter(2) a = f32[<=5,3] set-dimension-size(p, n), dimensions={0} "
    "b = f32[<=5,<=3] set-dimension-size(a, m), dimensions={1} "
    "w = f32[<=5,<=3] while(b), condition=most_rows, body=fewer k = s32[] get-dimension-size(w), dimensions={0} "
    "l = s32[] get-dimension-size(w), dimensions={1} "
    "ROOT r = (f32[<=5,<=3], s32[], s32[]) tuple(w, k, l)",
    // Branches: one sets a size, one keeps that of its argument, one makes the bound.
    "p = f32[7] parameter(2) v = f32[] parameter(3) a = f32[<=7] set-dimension-size(p, n), dimensions={0} "
    "t = (f32[<=7], s32[]) tuple(a, m) c = f32[<=7] conditional(m, t, a, v), branch_computations={first, second, "
    "third} "
    "three = s32[] constant(3) q = pred[] compare(n, three), direction=LT "
    "d = f32[<=7] conditional(q, c, a), true_computation=second, false_computation=rounds "
    "k = s32[] get-dimension-size(c), dimensions={0} l = s32[] get-dimension-size(d), dimensions={0} "
    "w = f32[<=7] while(c), condition=short, body=whole "
    "ROOT r = (f32[<=7], f32[<=7], s32[], s32[], f32[<=7]) tuple(c, d, k, l, w)",
};

// None, one, all and more of seven elements, and less than none.
static void set_sizes(const kiln_module *m, size_t parameter, unsigned number, void *buffer) {
  static const int32_t sizes[] = {0, 1, 7, 2, -3, 9, 5, 3};
  if (parameter < 2) memcpy(buffer, &sizes[(number + 3 * parameter) % KL_COUNT(sizes)], sizeof *sizes);
}

START_TEST(carried_sizes) {
  static char text[10000];
  if (!share_has((uint64_t)_i, 1)) return;
  change_parameter = set_sizes;
  snprintf(text, sizeof text, "%sENTRY e { n = s32[] parameter(0) m = s32[] parameter(1) %s }\n", carried_head,
           carried[_i]);
  kiln_module *m = parse(text);
  for (unsigned k = 0; k < 8; k++) run_both_and_check(cx, m, 3, k, text);
  kiln_module_destroy(&m);
  change_parameter = NULL;
}
END_TEST

static const struct {
  const char *text, *message;
} not_sized[] = {
    {"ENTRY e { x = f32[<=4,2] parameter(0) ROOT n = s32[] get-dimension-size(x), dimensions={0} }",
     "parameter 0 of ENTRY has a dynamic dimension in a module that asks for sizes: expected an array of known "
     "dimensions, its size as a parameter of type s32[], and set-dimension-size"},
    {"f { a = f32[4] parameter(0) ROOT r = f32[4] negate(a) }\n"
     "ENTRY e { x = f32[4] parameter(0) n = s32[] parameter(1) d = f32[<=4] set-dimension-size(x, n), dimensions={0} "
     "ROOT r = f32[<=4] call(d), to_apply=f }",
     "parameter: expected a result whose dimension 0 is dynamic (<=4), as that of what is given for it is, found "
     "f32[4]"},
    {"ENTRY e { x = f32[4] parameter(0) n = s32[] parameter(1) d = f32[<=4] set-dimension-size(x, n), dimensions={0} "
     "ROOT r = (f32[4]) tuple(d) }",
     "tuple: expected a result whose dimension 0 is dynamic (<=4), as those of its operands are, found f32[4]"},
    {"ENTRY e { x = f32[8] parameter(0) n = s32[] parameter(1) d = f32[<=8] set-dimension-size(x, n), "
     "dimensions={0} ROOT r = f32[<=2,<=4] reshape(d) }",
     "reshape of an array of a dynamic size is not compiled here: expected each dynamic dimension but one of the "
     "result to be one of the operand's"},
    {"ENTRY e { x = f32[4] parameter(0) n = s32[] parameter(1) d = f32[<=4] set-dimension-size(x, n), dimensions={0} "
     "ROOT r = f32[4] negate(d) }",
     "negate: expected a result whose dimension 0 is dynamic (<=4), as those of its operands are, found f32[4]"},
    {"ENTRY e { x = f32[4] parameter(0) n = s32[] parameter(1) ROOT d = f32[4] set-dimension-size(x, n), "
     "dimensions={0} }",
     "set-dimension-size of an array of a dynamic size is not compiled here: expected a result of that size"},
    {"no { a = u8[<=3000000000] parameter(0) ROOT r = pred[] constant(false) }\n"
     "same { a = u8[<=3000000000] parameter(0) ROOT r = u8[<=3000000000] not(a) }\n"
     "ENTRY e { x = u8[3000000000] parameter(0) y = f32[4] parameter(1) n = s32[] parameter(2) "
     "d = f32[<=4] set-dimension-size(y, n), dimensions={0} w = u8[<=3000000000] while(x), condition=no, body=same "
     "ROOT r = (f32[<=4], u8[<=3000000000]) tuple(d, w) }",
     "while of an array of a dynamic size is not compiled here: expected bounds below 2^31"},
    {"no { a = f32[4] parameter(0) ROOT r = pred[] constant(false) }\n"
     "less { a = f32[4] parameter(0) n = s32[] constant(1) ROOT r = f32[<=4] set-dimension-size(a, n), dimensions={0} "
     "}\nENTRY e { x = f32[4] parameter(0) ROOT w = f32[4] while(x), condition=no, body=less }",
     "while: expected a result whose dimension 0 is dynamic (<=4), as those of its operands are, found f32[4]"},
    // And what comes behind is looked at, too.
    {"f { a = f32[<=4] parameter(0) ROOT r = f32[<=4] negate(a) }\n"
     "ENTRY e { x = f32[4] parameter(0) n = s32[] parameter(1) d = f32[<=4] set-dimension-size(x, n), dimensions={0} "
     "a = f32[4] negate(d) s = ((f32[<=4]), f32[<=4]) async-start(d), calls=f b = f32[<=4] async-done(s) "
     "ROOT r = (f32[4], f32[<=4]) tuple(a, b) }",
     "negate: expected a result whose dimension 0 is dynamic (<=4), as those of its operands are, found f32[4]"},
    {"f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
     "ENTRY e { x = f32[] parameter(0) n = s32[] parameter(1) i = s32[3,0] parameter(2) u = f32[3] parameter(3) "
     "j = s32[<=3,0] set-dimension-size(i, n), dimensions={0} ROOT r = f32[] scatter(x, j, u), "
     "update_window_dims={}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=1, "
     "to_apply=f }",
     "scatter of an array of a dynamic size is not compiled here: expected vectors of at least one index"},
    // Where what an op becomes has an array that nobody could have.
    {"ENTRY e { a = s8[536870912,1073741824] parameter(0) n = s32[] parameter(1) b = s8[536870912,<=1073741824] "
     "set-dimension-size(a, n), dimensions={1} ROOT r = s8[536870912,<=1073741824] reverse(b), dimensions={1} }",
     "this is made of an array s8[536870912,2147483648] here: expected one of less than 2^60 elements and 2^63 bytes"},
    {"ENTRY e { a = c64[4194304,1048576,65536] parameter(0) n = s32[] parameter(1) b = c64[4194304,1048576,<=65536] "
     "set-dimension-size(a, n), dimensions={2} ROOT r = c64[4194304,1048576,<=65536] fft(b), fft_type=FFT, "
     "fft_length={65536} }",
     "this is made of an array c64[4194304,1048576,65536,65536] here: expected one of less than 2^60 elements"},
};

START_TEST(what_has_no_size_is_refused) {
  char text[2000];
  for (size_t i = 0; i < KL_COUNT(not_sized); i++) {
    kiln_artifact *a = NULL;
    snprintf(text, sizeof text, "HloModule m\n%s\n", not_sized[i].text);
    kiln_module *m = parse(text);
    ck_assert_int_eq(kiln_compile(cx, m, NULL, &a), KILN_E_UNSUPPORTED);
    const char *found = kiln_diagnostics_get(cx, kiln_diagnostics_count(cx) - 1)->message;
    ck_assert_msg(strstr(found, not_sized[i].message) != NULL, "%s", found);
    ck_assert_ptr_null(a);
    kiln_module_destroy(&m);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("sizes", EACH(open_batches, close_batches), {random_sizes, SLICES},
                   {indexed_sizes, KL_COUNT(indexed)}, {carried_sizes, KL_COUNT(carried)},
                   {what_has_no_size_is_refused});
}
