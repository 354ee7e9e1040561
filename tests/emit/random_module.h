// Random modules: ENTRY of ops of all kinds beside fusions, calls, branches, loops and tuples, on arrays of a few
// shapes and types, drawn from the seed of support/draw.h.
#ifndef TESTS_EMIT_RANDOM_MODULE_H
#define TESTS_EMIT_RANDOM_MODULE_H

#include "base/base.h"
#include "support/draw.h"
#include "support/flow.h"

static kl_sb text; // what is made; whoever includes this begins it

enum { SHAPES = 8, MOST_VALUES = 700 };
static const struct {
  const char *dims;
  int rank;
  int of[3];
} shape[SHAPES] = {{"[]", 0, {0}},         {"[7]", 1, {7}},   {"[12]", 1, {12}},         {"[7,12]", 2, {7, 12}},
                   {"[12,7]", 2, {12, 7}}, {"[84]", 1, {84}}, {"[3,4,7]", 3, {3, 4, 7}}, {"[33,130]", 2, {33, 130}}};
static const char *const types[] = {"f32", "s32", "bf16", "f16", "f64", "s64", "u8"};
enum { TYPES = 7, PRED = 7 };

static bool is_integer(int type) {
  return type == 1 || type >= 5;
}

typedef struct value {
  int shape, type;
} value;

static value values[MOST_VALUES];
static int nvalues;

// A value of this shape and type, or -1; later ones are likelier.
static int find(int of, int type) {
  int found = -1;
  for (int tries = 0; tries < 64 && found < 0; tries++) {
    int i = chance(60) && nvalues > 12 ? nvalues - 1 - (int)below(12) : (int)below((uint32_t)nvalues);
    if ((of < 0 || values[i].shape == of) && (type < 0 || values[i].type == type)) found = i;
  }
  for (int i = nvalues; i-- > 0 && found < 0;)
    if ((of < 0 || values[i].shape == of) && (type < 0 || values[i].type == type)) found = i;
  return found;
}

static const char *type_name(int t) {
  return t == PRED ? "pred" : types[t];
}

// Begins the line of a new value.
static int begin(int of, int type) {
  values[nvalues] = (value){of, type};
  kl_sbf(&text, "  v%d = %s%s ", nvalues, type_name(type), shape[of].dims);
  return nvalues++;
}

static void put_elementwise(void) {
  static const char *const two[] = {"add", "subtract", "multiply", "maximum", "minimum"};
  static const char *const one[] = {"negate", "abs", "exponential", "tanh", "logistic", "sine"};
  int a = find(-1, (int)below(TYPES));
  int s = values[a].shape, t = values[a].type, b = find(s, t);
  if (!is_integer(t) && chance(30)) {
    begin(s, t);
    kl_sbf(&text, "%s(v%d)\n", one[below(6)], a);
  } else {
    begin(s, t);
    kl_sbf(&text, "%s(v%d, v%d)\n", two[below(5)], a, b);
  }
}

static void put_select(void) {
  int a = find(-1, (int)below(TYPES)), s = values[a].shape, t = values[a].type, b = find(s, t), c = find(s, PRED);
  if (c < 0) {
    c = begin(s, PRED);
    kl_sbf(&text, "compare(v%d, v%d), direction=LT\n", a, b);
  }
  begin(s, t);
  kl_sbf(&text, "select(v%d, v%d, v%d)\n", c, a, b);
}

static void put_convert(void) {
  int a = find(-1, (int)below(TYPES));
  int s = values[a].shape, t = (values[a].type + 1 + (int)below(TYPES - 1)) % TYPES;
  begin(s, t);
  kl_sbf(&text, "convert(v%d)\n", a);
}

// Between shapes by what moves elements; false: there is none between these.
static void put_move(void) {
  static const struct {
    int from, to;
    const char *op;
  } move[] = {{3, 4, "transpose(v%d), dimensions={1,0}"},
              {4, 3, "transpose(v%d), dimensions={1,0}"},
              {3, 5, "reshape(v%d)"},
              {5, 4, "reshape(v%d)"},
              {5, 3, "bitcast(v%d)"},
              {4, 6, "reshape(v%d)"},
              {6, 5, "reshape(v%d)"},
              {6, 4, "bitcast(v%d)"},
              {1, 3, "broadcast(v%d), dimensions={0}"},
              {2, 3, "broadcast(v%d), dimensions={1}"},
              {2, 4, "broadcast(v%d), dimensions={0}"},
              {0, 3, "broadcast(v%d), dimensions={}"},
              {0, 7, "broadcast(v%d), dimensions={}"},
              {0, 2, "broadcast(v%d), dimensions={}"},
              {3, 3, "reverse(v%d), dimensions={0}"},
              {2, 1, "slice(v%d), slice={[2:9]}"},
              {7, 3, "slice(v%d), slice={[3:31:4], [5:101:8]}"},
              {5, 2, "slice(v%d), slice={[0:84:7]}"},
              {7, 7, "reverse(v%d), dimensions={1}"},
              {3, 3, "copy(v%d)"},
              {7, 7, "opt-barrier(v%d)"},
              {6, 6, "reverse(v%d), dimensions={0,2}"}};
  int k = (int)below(KL_COUNT(move)), a = find(move[k].from, -1);
  if (a < 0 || (values[a].type == PRED && move[k].from == 0)) return put_elementwise();
  begin(move[k].to, values[a].type);
  kl_sbf(&text, move[k].op, a);
  kl_sb_putc(&text, '\n');
}

static void put_reduce(void) {
  static const struct {
    int from, to;
    const char *dims;
  } fold[] = {{3, 1, "1"}, {3, 2, "0"}, {4, 2, "1"}, {5, 0, "0"}, {3, 0, "0,1"}, {7, 0, "0,1"}, {6, 1, "0,1"}};
  int k = (int)below(KL_COUNT(fold)), t = (int)below(TYPES), a = find(fold[k].from, t);
  if (a < 0) return put_elementwise();
  bool most = chance(40);
  begin(fold[k].to, t);
  kl_sbf(&text, "reduce(v%d, %s_%s), dimensions={%s}, to_apply=%s_%s\n", a, most ? "low" : "zero", types[t],
         fold[k].dims, most ? "most" : "sum", types[t]);
}

// A row's greatest, what is left of the row, and its sum: as softmax has it.
static void put_softmax(void) {
  int a = find(3, 0);
  if (a < 0) return put_elementwise();
  int most = begin(1, 0);
  kl_sbf(&text, "reduce(v%d, low_f32), dimensions={1}, to_apply=most_f32\n", a);
  int back = begin(3, 0);
  kl_sbf(&text, "broadcast(v%d), dimensions={0}\n", most);
  int less = begin(3, 0);
  kl_sbf(&text, "subtract(v%d, v%d)\n", a, back);
  int e = begin(3, 0);
  kl_sbf(&text, "exponential(v%d)\n", less);
  int sum = begin(1, 0);
  kl_sbf(&text, "reduce(v%d, zero_f32), dimensions={1}, to_apply=sum_f32\n", e);
  int all = begin(3, 0);
  kl_sbf(&text, "broadcast(v%d), dimensions={0}\n", sum);
  begin(3, 0);
  kl_sbf(&text, "divide(v%d, v%d)\n", e, all);
}

static void put_fusion(void) {
  int t = (int)below(2), a = find(3, t), b = find(1, t);
  if (a < 0 || b < 0) return put_elementwise();
  if (chance(50)) {
    begin(3, t);
    kl_sbf(&text, "fusion(v%d, v%d), kind=kLoop, calls=given_%s\n", a, b, types[t]);
    return;
  }
  kl_sbf(&text, "  t%d = (%s[7,12], %s[7]) fusion(v%d, v%d), kind=kLoop, calls=pair_%s\n", nvalues, types[t], types[t],
         a, b, types[t]);
  int n = nvalues;
  begin(3, t);
  kl_sbf(&text, "get-tuple-element(t%d), index=0\n", n);
  begin(1, t);
  kl_sbf(&text, "get-tuple-element(t%d), index=1\n", n);
}

static void put_call(void) {
  int t = (int)below(2), a = find(3, t), b = find(1, t);
  if (a < 0 || b < 0) return put_elementwise();
  begin(3, t);
  kl_sbf(&text, "call(v%d, v%d), to_apply=given_%s\n", a, b, types[t]);
}

static void put_conditional(void) {
  int a = find(3, 0), p = find(0, 0);
  if (a < 0) return put_elementwise();
  int q = begin(0, PRED);
  kl_sbf(&text, "compare(v%d, zero_f32), direction=GT\n", p);
  begin(3, 0);
  kl_sbf(&text, "conditional(v%d, v%d, v%d), true_computation=%s, false_computation=twice\n", q, a, a,
         chance(50) ? "rows" : "half");
}

static void put_update(void) {
  int t = (int)below(TYPES), a = find(3, t), b = find(1, t), i = find(0, 1);
  if (a < 0 || b < 0 || i < 0) return put_elementwise();
  kl_sbf(&text, "  u%d = %s[7,1] reshape(v%d)\n", nvalues, types[t], b);
  int n = nvalues;
  begin(3, t);
  kl_sbf(&text, "dynamic-update-slice(v%d, u%d, zero_s32, v%d)\n", a, n, i);
}

static void put_variadic(void) {
  int a = find(3, 0), b = find(3, 1);
  if (a < 0 || b < 0) return put_elementwise();
  kl_sbf(&text, "  t%d = (f32[7], s32[7]) reduce(v%d, v%d, low_f32, zero_s32), dimensions={1}, to_apply=first\n",
         nvalues, a, b);
  int n = nvalues;
  begin(1, 0);
  kl_sbf(&text, "get-tuple-element(t%d), index=0\n", n);
  begin(1, 1);
  kl_sbf(&text, "get-tuple-element(t%d), index=1\n", n);
}

// With a vector, or as attention has two of them.
static void put_dot(void) {
  int t = (int)below(TYPES), a = find(3, t), b = find(2, t), c = find(4, t);
  if (a < 0 || b < 0 || c < 0) return put_elementwise();
  if (chance(50)) {
    begin(1, t);
    kl_sbf(&text, "dot(v%d, v%d), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", a, b);
    return;
  }
  kl_sbf(&text, "  d%d = %s[7,7] dot(v%d, v%d), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", nvalues,
         types[t], a, c);
  kl_sbf(&text, "  e%d = %s[7,7] abs(d%d)\n", nvalues, types[t], nvalues);
  int n = nvalues;
  begin(3, t);
  kl_sbf(&text, "dot(e%d, v%d), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n", n, a);
}

// A loop whose number of iterations the data says, over a state of which some is handed on, some changes places.
static void put_while(void) {
  int n = find(0, 1), a = find(3, 0), b = find(1, 0), c = find(1, 0), d = find(2, 0);
  if (n < 0 || a < 0 || b < 0 || c < 0 || d < 0) return put_elementwise();
  const char *state = "(s32[], f32[7,12], f32[7], f32[7], f32[12])";
  int k = nvalues;
  bool nested = chance(30);
  kl_sbf(&text, "  three%d = s32[] constant(3)\n  n%d = s32[] and(v%d, three%d)\n", k, k, n, k);
  kl_sbf(&text, "  i%d = %s tuple(n%d, v%d, v%d, v%d, v%d)\n", k, state, k, a, b, c, d);
  kl_sbf(&text, "  w%d = %s while(i%d), condition=again, body=%s\n", k, state, k,
         nested       ? "outer"
         : chance(50) ? "swap"
                      : "step");
  begin(3, 0);
  kl_sbf(&text, "get-tuple-element(w%d), index=1\n", k);
  begin(1, 0);
  kl_sbf(&text, "get-tuple-element(w%d), index=%d\n", k, 2 + (int)below(2));
  begin(2, 0);
  kl_sbf(&text, "get-tuple-element(w%d), index=4\n", k);
}

static void put_loops(void) {
  static const char *const bodies[][3] = {{"step", "b", "t"}, {"swap", "c", "b"}};
  kl_sb_puts(&text, "again { s = (s32[], f32[7,12], f32[7], f32[7], f32[12]) parameter(0)\n"
                    "  i = s32[] get-tuple-element(s), index=0 z = s32[] constant(0)\n"
                    "  ROOT r = pred[] compare(i, z), direction=GT }\n");
  for (int i = 0; i < 2; i++)
    kl_sbf(&text,
           "%s { s = (s32[], f32[7,12], f32[7], f32[7], f32[12]) parameter(0)\n"
           "  i = s32[] get-tuple-element(s), index=0 a = f32[7,12] get-tuple-element(s), index=1\n"
           "  b = f32[7] get-tuple-element(s), index=2 c = f32[7] get-tuple-element(s), index=3\n"
           "  d = f32[12] get-tuple-element(s), index=4 one = s32[] constant(1) j = s32[] subtract(i, one)\n"
           "  h = f32[] constant(0.25) hb = f32[7,12] broadcast(h), dimensions={} x = f32[7,12] multiply(a, hb)\n"
           "  bb = f32[7,12] broadcast(b), dimensions={0} y = f32[7,12] add(x, bb)\n"
           "  db = f32[7,12] broadcast(d), dimensions={1} w = f32[7,12] subtract(y, db) z = f32[] constant(0)\n"
           "  t = f32[7] reduce(w, z), dimensions={1}, to_apply=sum_f32\n"
           "  ROOT r = (s32[], f32[7,12], f32[7], f32[7], f32[12]) tuple(j, w, %s, %s, d) }\n",
           bodies[i][0], bodies[i][1], bodies[i][2]);
  kl_sb_puts(&text, "outer { s = (s32[], f32[7,12], f32[7], f32[7], f32[12]) parameter(0)\n"
                    "  i = s32[] get-tuple-element(s), index=0 two = s32[] constant(2)\n"
                    "  a = f32[7,12] get-tuple-element(s), index=1 b = f32[7] get-tuple-element(s), index=2\n"
                    "  c = f32[7] get-tuple-element(s), index=3 d = f32[12] get-tuple-element(s), index=4\n"
                    "  k = (s32[], f32[7,12], f32[7], f32[7], f32[12]) tuple(two, a, b, c, d)\n"
                    "  w = (s32[], f32[7,12], f32[7], f32[7], f32[12]) while(k), condition=again, body=swap\n"
                    "  e = f32[7,12] get-tuple-element(w), index=1 f = f32[7] get-tuple-element(w), index=2\n"
                    "  one = s32[] constant(1) j = s32[] subtract(i, one)\n"
                    "  ROOT r = (s32[], f32[7,12], f32[7], f32[7], f32[12]) tuple(j, e, b, f, d) }\n");
}

// One of the random functions of a state, as a loop, as a branch, or once.
static void put_flow(void) {
  int a = find(3, 0), b = find(1, 0), c = find(1, 0), d = find(2, 0), p = find(0, 0);
  if (a < 0 || b < 0 || c < 0 || d < 0 || p < 0) return put_elementwise();
  int k = nvalues, f = (int)below(FLOW_FUNCTIONS), rounds = (int)below(4);
  kl_sbf(&text,
         "  t%d = " FLOW_STATE " tuple(zero_s32, v%d, v%d, v%d, v%d)\n  q%d = pred[] compare(v%d, zero_f32), "
         "direction=GT\n",
         k, a, b, c, d, k, p);
  if (chance(60))
    kl_sbf(&text, "  w%d = " FLOW_STATE " while(t%d), condition=%s_%d, body=f%d\n", k, k, chance(50) ? "upto" : "until",
           flow_rounds[rounds], f);
  else if (chance(80))
    kl_sbf(&text, "  w%d = " FLOW_STATE " conditional(q%d, t%d, t%d), true_computation=f%d, false_computation=f%d\n", k,
           k, k, k, f, (int)below(FLOW_FUNCTIONS));
  else
    kl_sbf(&text, "  w%d = " FLOW_STATE " call(t%d), to_apply=f%d\n", k, k, f);
  static const int shapes[] = {0, 3, 1, 1, 2};
  for (int i = 1; i < 5; i++) {
    if (i > 1 && chance(25)) continue; // one is there, so that the next names are others
    begin(shapes[i], 0);
    kl_sbf(&text, "get-tuple-element(w%d), index=%d\n", k, i);
  }
}

static void put_scatter(void) {
  int a = find(3, 1), b = find(1, 1), i = find(1, 1);
  if (a < 0 || b < 0) return put_elementwise();
  kl_sbf(&text, "  i%d = s32[7,1] reshape(v%d)\n  u%d = s32[12] broadcast(v%d), dimensions={}\n", nvalues, i, nvalues,
         find(0, 1) < 0 ? b : find(0, 1));
  kl_sbf(&text, "  w%d = s32[7,12] broadcast(v%d), dimensions={0}\n", nvalues, b);
  int n = nvalues;
  begin(3, 1);
  kl_sbf(&text,
         "scatter(v%d, i%d, w%d), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
         "index_vector_dim=1, to_apply=sum_s32\n",
         a, n, n);
}

// Along rows: of one array, or of two, by both.
static void put_sort(void) {
  int t = (int)below(TYPES), a = find(3, t), b = find(3, 1), c = find(3, 0);
  if (chance(50)) {
    begin(3, t);
    kl_sbf(&text, "sort(v%d), dimensions={%u}, is_stable=%s, to_apply=less_%s\n", a, below(2),
           chance(50) ? "true" : "false", types[t]);
    return;
  }
  int n = nvalues;
  kl_sbf(&text, "  t%d = (s32[7,12], f32[7,12]) sort(v%d, v%d), dimensions={%u}, is_stable=true, to_apply=%s\n", n, b,
         c, below(2), chance(50) ? "less_two" : "less_first");
  begin(3, 1);
  kl_sbf(&text, "get-tuple-element(t%d), index=0\n", n);
  begin(3, 0);
  kl_sbf(&text, "get-tuple-element(t%d), index=1\n", n);
}

// The sum of each row's three greatest, and of their places.
static void put_topk(void) {
  int a = find(3, 0), n = nvalues;
  kl_sbf(&text, "  t%d = (f32[7,3], s32[7,3]) topk(v%d), k=3, largest=%s\n", n, a, chance(50) ? "true" : "false");
  kl_sbf(&text, "  p%d = f32[7,3] get-tuple-element(t%d), index=0\n  q%d = s32[7,3] get-tuple-element(t%d), index=1\n",
         n, n, n, n);
  begin(1, 0);
  kl_sbf(&text, "reduce(p%d, zero_f32), dimensions={1}, to_apply=sum_f32\n", n);
  begin(1, 1);
  kl_sbf(&text, "reduce(q%d, zero_s32), dimensions={1}, to_apply=sum_s32\n", n);
}

// Rows by number, or a part of a larger array.
static void put_taken(void) {
  int t = (int)below(TYPES), a = find(3, t), b = find(7, t), i = find(1, 1), j = find(0, 1), k = find(0, 1),
      n = nvalues;
  if (chance(50)) {
    kl_sbf(&text, "  i%d = s32[7,1] reshape(v%d)\n", n, i);
    begin(3, t);
    kl_sbf(&text,
           "gather(v%d, i%d), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
           "slice_sizes={1,12}\n",
           a, n);
    return;
  }
  begin(3, t);
  kl_sbf(&text, "dynamic-slice(v%d, v%d, v%d), dynamic_slice_sizes={7,12}\n", b, j, k);
}

// Windows: running sums, the greatest of each of those that overlap, and back to where these were.
static void put_windows(void) {
  int t = (int)below(TYPES), a = find(3, t), b = find(7, t), c = find(7, 1), d = find(3, 1);
  const char *n = types[t];
  switch (below(3)) {
  case 0:
    begin(3, t);
    kl_sbf(&text, "reduce-window(v%d, zero_%s), window={size=1x12 pad=0_0x11_0}, to_apply=sum_%s\n", a, n, n);
    break;
  case 1:
    begin(3, t);
    kl_sbf(&text, "reduce-window(v%d, low_%s), window={size=3x11 stride=5x10}, to_apply=most_%s\n", b, n, n);
    break;
  default:
    begin(7, 1);
    kl_sbf(&text,
           "select-and-scatter(v%d, v%d, zero_s32), window={size=3x11 stride=5x10}, select=least_s32, "
           "scatter=sum_s32\n",
           c, d);
  }
}

static void put_convolution(void) {
  int t = (int)below(TYPES), a = find(5, t), b = find(2, t), n = nvalues;
  const char *name = types[t];
  kl_sbf(&text, "  a%d = %s[1,84,1] reshape(v%d)\n  k%d = %s[12,1,1] reshape(v%d)\n", n, name, a, n, name, b);
  kl_sbf(&text, "  c%d = %s[1,84,1] convolution(a%d, k%d), window={size=12 pad=5_6}, dim_labels=b0f_0io->b0f\n", n,
         name, n, n);
  begin(5, t);
  kl_sbf(&text, "reshape(c%d)\n", n);
}

static void put_bits(void) {
  int n = nvalues;
  kl_sbf(&text, "  s%d = u64[2] constant({%u, %u})\n", n, below(1000), below(1000));
  kl_sbf(&text, "  g%d = (u64[2], u32[7,12]) rng-bit-generator(s%d), algorithm=%s\n", n, n,
         chance(50) ? "rng_philox" : "rng_three_fry");
  kl_sbf(&text, "  b%d = u32[7,12] get-tuple-element(g%d), index=1\n  h%d = u32[7,12] broadcast(high), dimensions={}\n",
         n, n, n);
  kl_sbf(&text, "  l%d = u32[7,12] shift-right-logical(b%d, h%d)\n", n, n, n);
  int t = (int)below(TYPES);
  begin(3, t);
  kl_sbf(&text, "convert(l%d)\n", n);
}

static void put_norm(void) {
  int a = find(3, 0), s = find(2, 0), o = find(2, 0), n = nvalues;
  if (chance(50)) {
    kl_sbf(&text, "  w%d = f32[12] abs(v%d)\n", n, o);
    begin(3, 0);
    kl_sbf(&text, "batch-norm-inference(v%d, v%d, v%d, v%d, w%d), epsilon=0.1, feature_index=1\n", a, s, o, s, n);
    return;
  }
  kl_sbf(&text,
         "  t%d = (f32[7,12], f32[12], f32[12]) batch-norm-training(v%d, v%d, v%d), epsilon=0.1, feature_index=1\n", n,
         a, s, o);
  begin(3, 0);
  kl_sbf(&text, "get-tuple-element(t%d), index=0\n", n);
  begin(2, 0);
  kl_sbf(&text, "get-tuple-element(t%d), index=%u\n", n, 1 + below(2));
}

// Of rows of complex numbers, of which the real parts go on.
static void put_fft(void) {
  int a = find(3, 0), b = find(3, 0), n = nvalues;
  kl_sbf(&text, "  c%d = c64[7,12] complex(v%d, v%d)\n", n, a, b);
  kl_sbf(&text, "  f%d = c64[7,12] fft(c%d), fft_type=%s, fft_length={12}\n", n, n, chance(50) ? "FFT" : "IFFT");
  begin(3, 0);
  kl_sbf(&text, "%s(f%d)\n", chance(50) ? "real" : "imag", n);
}

#include "random_more.h"

static void put_helpers(void) {
  for (int t = 0; t < TYPES; t++) {
    const char *n = types[t];
    kl_sbf(&text, "sum_%s { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = %s[] add(a, b) }\n", n, n, n, n);
    kl_sbf(&text, "most_%s { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = %s[] maximum(a, b) }\n", n, n, n, n);
    kl_sbf(&text,
           "less_%s { a = %s[] parameter(0) b = %s[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }\n", n,
           n, n);
    kl_sbf(&text,
           "given_%s { a = %s[7,12] parameter(0) b = %s[7] parameter(1) c = %s[7,12] broadcast(b), dimensions={0} "
           "ROOT r = %s[7,12] subtract(a, c) }\n",
           n, n, n, n, n);
    kl_sbf(&text,
           "pair_%s { a = %s[7,12] parameter(0) b = %s[7] parameter(1) c = %s[7,12] broadcast(b), dimensions={0} "
           "d = %s[7,12] add(a, c) z = %s[] constant(0) s = %s[7] reduce(d, z), dimensions={1}, to_apply=sum_%s "
           "ROOT r = (%s[7,12], %s[7]) tuple(d, s) }\n",
           n, n, n, n, n, n, n, n, n, n);
  }
  kl_sb_puts(
      &text,
      "first { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)\n"
      "  g = pred[] compare(a, b), direction=GE m = f32[] select(g, a, b) k = s32[] select(g, i, j)\n"
      "  ROOT t = (f32[], s32[]) tuple(m, k) }\n"
      "least_s32 { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LE }\n"
      "less_first { a = s32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)\n"
      "  ROOT r = pred[] compare(a, b), direction=GT }\n"
      "less_two { a = s32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)\n"
      "  e = pred[] compare(a, b), direction=EQ f = pred[] compare(c, d), direction=LT\n"
      "  g = pred[] compare(a, b), direction=LT h = pred[] and(e, f) ROOT r = pred[] or(g, h) }\n"
      "half { a = f32[7,12] parameter(0) h = f32[] constant(0.5) b = f32[7,12] broadcast(h), dimensions={}\n"
      "  ROOT r = f32[7,12] multiply(a, b) }\n"
      "twice { a = f32[7,12] parameter(0) ROOT r = f32[7,12] add(a, a) }\n"
      "rows { a = f32[7,12] parameter(0) z = f32[] constant(0)\n"
      "  s = f32[7] reduce(a, z), dimensions={1}, to_apply=sum_f32\n"
      "  ROOT r = f32[7,12] broadcast(s), dimensions={0} }\n");
}

// About so many ops on parameters of every shape and type.
static void put_random(unsigned ops) {
  static void (*const puts[])(void) = {
      put_elementwise, put_elementwise, put_elementwise, put_elementwise, put_move,        put_move,    put_move,
      put_reduce,      put_reduce,      put_select,      put_convert,     put_fusion,      put_call,    put_conditional,
      put_update,      put_variadic,    put_softmax,     put_scatter,     put_dot,         put_while,   put_flow,
      put_sort,        put_topk,        put_taken,       put_windows,     put_convolution, put_bits,    put_norm,
      put_fft,         put_linear,      put_groups,      put_norm_back,   put_truths,      put_complex, put_transforms,
      put_numbers,     put_branches};
  text.n = 0;
  nvalues = 0;
  kl_sb_puts(&text, "HloModule random\n\n");
  put_helpers();
  put_more_helpers();
  put_loops();
  flow_functions(&text);
  kl_sb_puts(&text, "ENTRY e {\n  high = u32[] constant(27)\n");
  for (int t = 0; t < TYPES; t++)
    kl_sbf(&text, "  zero_%s = %s[] constant(0)\n  low_%s = %s[] constant(%s)\n", types[t], types[t], types[t],
           types[t], t == 6 ? "0" : "-100");
  put_more_constants();
  for (int s = 0, n = 0; s < SHAPES; s++)
    for (int t = 0; t < TYPES; t++, n++) {
      begin(s, t);
      kl_sbf(&text, "parameter(%d)\n", n);
    }
  int from = nvalues;
  for (unsigned i = 0; i < ops && nvalues < MOST_VALUES - 8; i++) puts[below(KL_COUNT(puts))]();
  int results = 1 + (int)below(6), chosen[6];
  kl_sb_puts(&text, "  ROOT r = (");
  for (int i = 0; i < results; i++) {
    chosen[i] = i < 2 ? nvalues - 1 - i : from + (int)below((uint32_t)(nvalues - from));
    if (chance(5)) chosen[i] = (int)below((uint32_t)from);
    kl_sbf(&text, "%s%s%s", i ? ", " : "", type_name(values[chosen[i]].type), shape[values[chosen[i]].shape].dims);
  }
  kl_sb_puts(&text, ") tuple(");
  for (int i = 0; i < results; i++) kl_sbf(&text, "%sv%d", i ? ", " : "", chosen[i]);
  kl_sb_puts(&text, ")\n}\n");
}

#endif
