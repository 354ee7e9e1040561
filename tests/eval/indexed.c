// The evaluator's indexed ops - gather, scatter, dynamic-slice, dynamic-update-slice - against a naive reading of their
// definitions, over random configurations that are valid by construction; and the intervals of scatter.
#include "support/context.h"
#include "support/draw.h"
#include "eval/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// --- arrays ---------------------------------------------------------------------------------------------------------

typedef struct tensor {
  kl_dtype t;
  int rank;
  int64_t dim[12], count;
  char *data;
} tensor;

static void tensor_make(tensor *a, kl_dtype t) {
  a->t = t;
  a->count = 1;
  for (int d = 0; d < a->rank; d++) a->count *= a->dim[d];
  a->data = calloc((size_t)a->count + 1, kl_info(t)->bytes);
}

static void tensor_fill(tensor *a) {
  for (int64_t i = 0; i < a->count; i++)
    for (int part = 0; part < 1 + kl_is_complex(a->t); part++) {
      kl_dtype p = kl_is_complex(a->t) ? kl_info(a->t)->part : a->t;
      int v = (int)below(200) - 100;
      uint64_t bits = kl_is_float(p) ? kl_float_encode(p, v) : (uint64_t)v & kl_int_mask(p);
      kl_element_set(a->t, a->data, i, part, p == KILN_PRED ? bits & 1 : bits);
    }
}

static int64_t at(const tensor *a, const int64_t *index) {
  int64_t i = 0;
  for (int d = 0; d < a->rank; d++) i = i * a->dim[d] + index[d];
  return i;
}

// The multi-index of element i.
static void unravel(const tensor *a, int64_t i, int64_t *index) {
  for (int d = a->rank - 1; d >= 0; d--) {
    index[d] = i % a->dim[d];
    i /= a->dim[d];
  }
}

static const char *type_text(const tensor *a) {
  static char text[8][160];
  static int next;
  char *p = text[next++ % 8];
  int n = snprintf(p, 160, "%s[", kiln_dtype_name(a->t));
  for (int d = 0; d < a->rank; d++) n += snprintf(p + n, 160 - (size_t)n, "%s%lld", d ? "," : "", (long long)a->dim[d]);
  snprintf(p + n, 160 - (size_t)n, "]");
  return p;
}

static const char *list_text(const int *v, int n) {
  static char text[8][80];
  static int next;
  char *p = text[next++ % 8];
  int used = snprintf(p, 80, "{");
  for (int i = 0; i < n; i++) used += snprintf(p + used, 80 - (size_t)used, "%s%d", i ? "," : "", v[i]);
  snprintf(p + used, 80 - (size_t)used, "}");
  return p;
}

static const kl_dtype data_types[] = {KILN_S32, KILN_PRED, KILN_U1,  KILN_U4,  KILN_BF16,
                                      KILN_F32, KILN_S64,  KILN_C64, KILN_C128};
static const kl_dtype index_types[] = {KILN_S32, KILN_S64, KILN_U32, KILN_U64, KILN_S8, KILN_U8,
                                       KILN_S16, KILN_U16, KILN_S4,  KILN_U4,  KILN_S1, KILN_U1};

// Mostly in or near 0 .. limit; now and then the ends of the type.
static void fill_indices(tensor *a, int64_t limit) {
  for (int64_t i = 0; i < a->count; i++) {
    uint64_t v = (uint64_t)((int64_t)below((uint32_t)limit + 7) - 3);
    if (chance(4)) v = kl_int_mask(a->t) >> 1;
    if (chance(4)) v = ~(kl_int_mask(a->t) >> 1);
    if (chance(60)) v = below((uint32_t)limit);
    kl_element_set(a->t, a->data, i, 0, v & kl_int_mask(a->t));
  }
}

// The index as a number, u64 held to int64's range.
static int64_t index_of(const tensor *a, int64_t i) {
  uint64_t bits = kl_element_get(a->t, a->data, i, 0);
  if (kl_is_signed(a->t)) return kl_int_decode(a->t, bits);
  return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
}

static int64_t clamp(int64_t v, int64_t hi) {
  return v < 0 ? 0 : v > hi ? hi : v;
}

static void compare(const char *text, const kl_result *r, const tensor *want) {
  size_t size = kl_info(want->t)->bytes;
  ck_assert_int_eq(r->data.shape->count, want->count);
  for (int64_t i = 0; i < want->count; i++)
    EXPECT(memcmp((char *)r->data.data + (size_t)i * size, want->data + (size_t)i * size, size) == 0,
           "element %lld of %s differs\n%s", (long long)i, type_text(want), text);
}

// --- dimension numbers ----------------------------------------------------------------------------------------------

// What gather and scatter have in common: `window` is the operand's slice, `spread` gather's result or scatter's
// updates.
typedef struct geometry {
  tensor operand, indices, spread;
  int nbatching, batching[4], indices_batching[4];
  int ncollapsed, collapsed[4];
  int nmap, map[4];
  int noffset, offset[8];
  int vector_dim;
  bool implicit_vector;
  int64_t size[4];
} geometry;

static bool in_list(const int *v, int n, int x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

static int random_subset(int n, int want, int *out) { // ascending
  int k = 0;
  for (int i = 0; i < n; i++)
    if (below((uint32_t)(n - i)) < (uint32_t)(want - k)) out[k++] = i;
  return k;
}

static void shuffle(int *v, int n) {
  for (int i = n - 1; i > 0; i--) {
    int j = (int)below((uint32_t)i + 1), t = v[i];
    v[i] = v[j];
    v[j] = t;
  }
}

static void make_operand(geometry *g) {
  g->operand.rank = (int)below(5);
  for (int d = 0; d < g->operand.rank; d++) g->operand.dim[d] = chance(3) ? 0 : 1 + below(5);
  g->nbatching = g->operand.rank ? random_subset(g->operand.rank, chance(40) ? (int)below(3) : 0, g->batching) : 0;
  int rest[4], n = 0;
  for (int d = 0; d < g->operand.rank; d++)
    if (!in_list(g->batching, g->nbatching, d)) rest[n++] = d;
  shuffle(rest, n);
  g->nmap = n ? (int)below((uint32_t)n + 1) : 0;
  for (int k = 0; k < g->nmap; k++) g->map[k] = rest[k];
  for (int d = 0; d < g->operand.rank; d++) {
    bool batching = in_list(g->batching, g->nbatching, d);
    bool collapsed = !batching && g->operand.dim[d] > 0 && chance(40);
    if (collapsed) g->collapsed[g->ncollapsed++] = d;
    int64_t most = g->operand.dim[d];
    g->size[d] = batching || collapsed ? most > 0 : chance(20) ? most : most ? 1 + below((uint32_t)most) : 0;
    if (!batching && !collapsed && chance(3)) g->size[d] = 0;
  }
}

static void make_geometry(geometry *g) {
  *g = (geometry){0};
  make_operand(g);
  int batch = g->nbatching + (int)below(3), order[6];
  for (int k = 0; k < batch; k++) order[k] = k;
  shuffle(order, batch);
  int64_t extent[6];
  for (int k = 0; k < batch; k++) extent[k] = chance(3) ? 0 : 1 + below(4);
  for (int k = 0; k < g->nbatching; k++) extent[order[k]] = g->operand.dim[g->batching[k]];
  // The index vectors' dimension among the others.
  g->vector_dim = (int)below((uint32_t)batch + 1);
  g->implicit_vector = g->nmap == 1 && chance(30);
  if (g->implicit_vector) g->vector_dim = batch;
  for (int k = 0; k < g->nbatching; k++) g->indices_batching[k] = order[k] + (order[k] >= g->vector_dim);
  g->indices.rank = batch + !g->implicit_vector;
  for (int d = 0, k = 0; d < g->indices.rank; d++)
    g->indices.dim[d] = d == g->vector_dim && !g->implicit_vector ? g->nmap : extent[k++];
  int windows = g->operand.rank - g->nbatching - g->ncollapsed;
  g->spread.rank = batch + windows;
  g->noffset = random_subset(g->spread.rank, windows, g->offset);
  for (int d = 0, k = 0, w = 0; d < g->spread.rank; d++) {
    if (!in_list(g->offset, g->noffset, d)) {
      g->spread.dim[d] = extent[k++];
      continue;
    }
    while (in_list(g->collapsed, g->ncollapsed, w) || in_list(g->batching, g->nbatching, w)) w++;
    g->spread.dim[d] = g->size[w++];
  }
}

// Where the operand's element is that goes with element `i` of the spread array. False: its window does not lie inside.
static bool place(const geometry *g, const int64_t *spread, int64_t *operand) {
  int64_t batch[12], index[12], start[4] = {0};
  int n = 0, w = 0;
  bool inside = true;
  for (int d = 0; d < g->spread.rank; d++)
    if (!in_list(g->offset, g->noffset, d)) batch[n++] = spread[d];
  for (int d = 0, k = 0; d < g->indices.rank; d++)
    index[d] = d == g->vector_dim && !g->implicit_vector ? 0 : batch[k++];
  for (int k = 0; k < g->nmap; k++) {
    if (!g->implicit_vector) index[g->vector_dim] = k;
    int64_t v = index_of(&g->indices, at(&g->indices, index)), most = g->operand.dim[g->map[k]] - g->size[g->map[k]];
    start[g->map[k]] = clamp(v, most);
    inside &= v >= 0 && v <= most;
  }
  for (int k = 0; k < g->nbatching; k++) start[g->batching[k]] = index[g->indices_batching[k]];
  for (int d = 0; d < g->operand.rank; d++) {
    bool window = !in_list(g->collapsed, g->ncollapsed, d) && !in_list(g->batching, g->nbatching, d);
    operand[d] = start[d] + (window ? spread[g->offset[w]] : 0);
    w += window;
  }
  return inside;
}

static int64_t largest(const tensor *a) {
  int64_t n = 1;
  for (int d = 0; d < a->rank; d++) n = a->dim[d] > n ? a->dim[d] : n;
  return n;
}

static void make_indices(geometry *g) {
  tensor_make(&g->indices, index_types[below(KL_COUNT(index_types))]);
  fill_indices(&g->indices, largest(&g->operand));
}

// --- gather ---------------------------------------------------------------------------------------------------------

static void check_gather(void) {
  geometry g;
  char text[2000];
  kl_result r;
  int sizes[4];
  make_geometry(&g);
  tensor_make(&g.operand, data_types[below(KL_COUNT(data_types))]);
  tensor_fill(&g.operand);
  make_indices(&g);
  tensor_make(&g.spread, g.operand.t);
  for (int d = 0; d < g.operand.rank; d++) sizes[d] = (int)g.size[d];
  snprintf(text, sizeof text,
           "HloModule t\nENTRY e {\n  x = %s parameter(0)\n  i = %s parameter(1)\n  ROOT r = %s gather(x, i), "
           "offset_dims=%s, collapsed_slice_dims=%s, start_index_map=%s, operand_batching_dims=%s, "
           "start_indices_batching_dims=%s, index_vector_dim=%d, slice_sizes=%s\n}\n",
           type_text(&g.operand), type_text(&g.indices), type_text(&g.spread), list_text(g.offset, g.noffset),
           list_text(g.collapsed, g.ncollapsed), list_text(g.map, g.nmap), list_text(g.batching, g.nbatching),
           list_text(g.indices_batching, g.nbatching), g.vector_dim, list_text(sizes, g.operand.rank));
  size_t size = kl_info(g.operand.t)->bytes;
  for (int64_t i = 0; i < g.spread.count; i++) {
    int64_t to[12], from[4];
    unravel(&g.spread, i, to);
    place(&g, to, from);
    memcpy(g.spread.data + (size_t)i * size, g.operand.data + (size_t)at(&g.operand, from) * size, size);
  }
  kiln_module *m = parse(text);
  EXPECT(kl_eval(cx, m, m->entry, (kl_array[]){{NULL, g.operand.data}, {NULL, g.indices.data}},
                 &(kl_eval_opts){.threads = 2, .intervals = chance(30)}, &r) == KILN_OK,
         "%s\n%s", last_finding(), text);
  compare(text, &r, &g.spread);
  ck_assert(r.lo == r.data.data && !r.any);
  kl_result_free(cx, &r);
  kiln_module_destroy(&m);
  free(g.operand.data), free(g.indices.data), free(g.spread.data);
}

START_TEST(gathers) {
  seed = 1;
  for (int i = 0; i < 3000; i++) check_gather();
}
END_TEST

// --- scatter --------------------------------------------------------------------------------------------------------

// Combiners of one or two operands, on s32 as numbers modulo 2^32. `order` is what an operand and its update become.
typedef struct combiner {
  const char *text;
  int n;
  bool any_order;
} combiner;
static const combiner combiners[] = {
    {"a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b)", 1, true},
    {"a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] multiply(b, a)", 1, true},
    {"a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] minimum(a, b)", 1, true},
    {"a = s32[] parameter(0) ROOT b = s32[] parameter(1)", 1, false},
    {"ROOT a = s32[] parameter(0) b = s32[] parameter(1)", 1, true},
    {"a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] constant(3) d = s32[] multiply(a, c) ROOT r = s32[] "
     "subtract(d, b)",
     1, false},
    {"a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) e = s32[] add(a, d) "
     "f = s32[] subtract(b, c) ROOT r = (s32[], s32[]) tuple(e, f)",
     2, false},
    {"a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) ROOT r = (s32[], "
     "s32[]) tuple(c, d)",
     2, false},
};

static void combine(int which, uint32_t *a, const uint32_t *b) {
  switch (which) {
  case 0: a[0] += b[0]; break;
  case 1: a[0] *= b[0]; break;
  case 2: a[0] = (int32_t)a[0] < (int32_t)b[0] ? a[0] : b[0]; break;
  case 3: a[0] = b[0]; break;
  case 4: break;
  case 5: a[0] = 3 * a[0] - b[0]; break;
  case 6: {
    uint32_t x = a[0] + b[1];
    a[1] = a[1] - b[0];
    a[0] = x;
    break;
  }
  default: a[0] = b[0], a[1] = b[1];
  }
}

static void scatter_naively(const geometry *g, int which, tensor *out, const tensor *updates, int *hits) {
  int n = combiners[which].n;
  // Windows in the order of the index vectors; inside a window no element occurs twice.
  int64_t spread[12], operand[4], windows = 1, inside = 1;
  for (int d = 0; d < g->spread.rank; d++)
    *(in_list(g->offset, g->noffset, d) ? &inside : &windows) *= g->spread.dim[d];
  for (int64_t w = 0; w < windows * inside; w++) {
    int64_t outer = w / inside, inner = w % inside;
    for (int d = g->spread.rank - 1; d >= 0; d--) {
      int64_t *rest = in_list(g->offset, g->noffset, d) ? &inner : &outer;
      spread[d] = *rest % g->spread.dim[d];
      *rest /= g->spread.dim[d];
    }
    if (!place(g, spread, operand)) continue;
    uint32_t a[2], b[2];
    int64_t to = at(&g->operand, operand), from = at(&g->spread, spread);
    for (int k = 0; k < n; k++) {
      a[k] = ((uint32_t *)out[k].data)[to];
      b[k] = ((uint32_t *)updates[k].data)[from];
    }
    combine(which, a, b);
    hits[to]++;
    for (int k = 0; k < n; k++) ((uint32_t *)out[k].data)[to] = a[k];
  }
}

static void scatter_text(const geometry *g, int which, char text[3000]) {
  int n = combiners[which].n;
  const char *x = type_text(&g->operand), *u = type_text(&g->spread);
  char result[200];
  snprintf(result, sizeof result, n == 1 ? "%s" : "(%s, %s)", x, x);
  int used = snprintf(text, 3000, "HloModule t\nc {\n  %s\n}\nENTRY e {\n", combiners[which].text);
  for (int k = 0; k < n; k++) used += snprintf(text + used, 400, "  x%d = %s parameter(%d)\n", k, x, k);
  used += snprintf(text + used, 200, "  i = %s parameter(%d)\n", type_text(&g->indices), n);
  for (int k = 0; k < n; k++) used += snprintf(text + used, 400, "  u%d = %s parameter(%d)\n", k, u, n + 1 + k);
  snprintf(text + used, 1500,
           "  ROOT r = %s scatter(%s), update_window_dims=%s, inserted_window_dims=%s, "
           "scatter_dims_to_operand_dims=%s, input_batching_dims=%s, scatter_indices_batching_dims=%s, "
           "index_vector_dim=%d, to_apply=c\n}\n",
           result, n == 1 ? "x0, i, u0" : "x0, x1, i, u0, u1", list_text(g->offset, g->noffset),
           list_text(g->collapsed, g->ncollapsed), list_text(g->map, g->nmap), list_text(g->batching, g->nbatching),
           list_text(g->indices_batching, g->nbatching), g->vector_dim);
}

// In intervals, elements where updates meet out of order are not points; the others are.
static void check_scatter_interval(const char *text, int which, const kl_result *r, const int *hits) {
  for (int64_t i = 0; i < r->data.shape->count; i++) {
    const uint32_t *lo = r->lo, *hi = r->hi, *data = r->data.data;
    bool any = r->any && r->any[i / 64] >> (i % 64) & 1, point = lo[i] == data[i] && hi[i] == data[i] && !any;
    bool sure = combiners[which].any_order || hits[i] < 2;
    bool take = which == 3 || which == 7; // where all updates may be one value
    EXPECT(sure ? point : !point || take, "element %lld, %d updates\n%s", (long long)i, hits[i], text);
    EXPECT(!take || !any, "%s", text);
  }
}

static void check_scatter(void) {
  geometry g;
  char text[3000];
  int which = (int)below(KL_COUNT(combiners)), n = combiners[which].n;
  tensor args[5], want[2];
  kl_result r[2];
  make_geometry(&g);
  make_indices(&g);
  g.operand.t = g.spread.t = KILN_S32;
  for (int k = 0; k < n; k++) {
    args[k] = g.operand;
    args[n + 1 + k] = g.spread;
    tensor_make(&args[k], KILN_S32);
    tensor_make(&args[n + 1 + k], KILN_S32);
    tensor_fill(&args[k]);
    tensor_fill(&args[n + 1 + k]);
    want[k] = args[k];
    tensor_make(&want[k], KILN_S32);
    memcpy(want[k].data, args[k].data, (size_t)want[k].count * 4);
  }
  args[n] = g.indices;
  int *hits = calloc((size_t)want[0].count + 1, sizeof *hits);
  if (args[n + 1].count) scatter_naively(&g, which, want, args + n + 1, hits);
  scatter_text(&g, which, text);
  kiln_module *m = parse(text);
  kl_array arrays[5];
  for (int k = 0; k < 2 * n + 1; k++) arrays[k].data = args[k].data;
  bool intervals = chance(40);
  EXPECT(kl_eval(cx, m, m->entry, arrays, &(kl_eval_opts){.threads = 2, .intervals = intervals}, r) == KILN_OK,
         "%s\n%s", last_finding(), text);
  for (int k = 0; k < n; k++) {
    compare(text, &r[k], &want[k]);
    if (intervals) check_scatter_interval(text, which, &r[k], hits);
    kl_result_free(cx, &r[k]);
    free(want[k].data), free(args[k].data), free(args[n + 1 + k].data);
  }
  free(hits), free(g.indices.data);
  kiln_module_destroy(&m);
}

START_TEST(scatters) {
  seed = 2;
  for (int i = 0; i < 3000; i++) check_scatter();
}
END_TEST

// --- dynamic slices -------------------------------------------------------------------------------------------------

// dynamic-slice, or dynamic-update-slice if `update`; starts as scalars, or as one vector.
static void check_dynamic(bool update) {
  tensor x = {.rank = (int)below(5)}, part, starts = {.rank = 1}, args[8];
  bool vector = chance(30) && x.rank > 0;
  for (int d = 0; d < x.rank; d++) x.dim[d] = chance(4) ? 0 : 1 + below(6);
  part = x;
  for (int d = 0; d < x.rank; d++) part.dim[d] = chance(5) ? 0 : x.dim[d] ? 1 + below((uint32_t)x.dim[d]) : 0;
  tensor_make(&x, data_types[below(KL_COUNT(data_types))]);
  tensor_make(&part, x.t);
  tensor_fill(&x);
  tensor_fill(&part);
  starts.dim[0] = x.rank;
  tensor_make(&starts, index_types[below(KL_COUNT(index_types))]);
  fill_indices(&starts, largest(&x));
  char text[2000], names[100] = "";
  int n = 0, sizes[8];
  size_t step = kl_info(starts.t)->bytes;
  args[n++] = x;
  if (update) args[n++] = part;
  int used = snprintf(text, sizeof text, "HloModule t\nENTRY e {\n  x = %s parameter(0)\n", type_text(&x));
  if (update) used += snprintf(text + used, 200, "  u = %s parameter(1)\n", type_text(&part));
  for (int d = 0; d < (vector ? 1 : x.rank); d++, n++) {
    args[n] = starts;
    args[n].data += step * (size_t)d;
    used += snprintf(text + used, 200, "  s%d = %s[%s] parameter(%d)\n", d, kiln_dtype_name(starts.t),
                     vector ? (char[]){(char)('0' + x.rank), 0} : "", n);
    snprintf(names + strlen(names), sizeof names - strlen(names), ", s%d", d);
  }
  for (int d = 0; d < x.rank; d++) sizes[d] = (int)part.dim[d];
  if (update)
    snprintf(text + used, 800, "  ROOT r = %s dynamic-update-slice(x, u%s)\n}\n", type_text(&x), names);
  else
    snprintf(text + used, 800, "  ROOT r = %s dynamic-slice(x%s), dynamic_slice_sizes=%s\n}\n", type_text(&part), names,
             list_text(sizes, x.rank));
  tensor want = update ? x : part;
  size_t size = kl_info(x.t)->bytes;
  tensor_make(&want, x.t);
  memcpy(want.data, update ? x.data : part.data, (size_t)want.count * size);
  for (int64_t i = 0; i < part.count; i++) {
    int64_t index[8];
    unravel(&part, i, index);
    for (int d = 0; d < x.rank; d++) index[d] += clamp(index_of(&starts, d), x.dim[d] - part.dim[d]);
    char *in_part = (update ? part.data : want.data) + (size_t)i * size;
    char *in_whole = (update ? want.data : x.data) + (size_t)at(&x, index) * size;
    memcpy(update ? in_whole : in_part, update ? in_part : in_whole, size);
  }
  kiln_module *m = parse(text);
  kl_array arrays[8];
  kl_result r;
  for (int k = 0; k < n; k++) arrays[k].data = args[k].data;
  EXPECT(kl_eval(cx, m, m->entry, arrays, &(kl_eval_opts){.threads = 2, .intervals = chance(30)}, &r) == KILN_OK,
         "%s\n%s", last_finding(), text);
  compare(text, &r, &want);
  kl_result_free(cx, &r);
  kiln_module_destroy(&m);
  free(x.data), free(part.data), free(starts.data), free(want.data);
}

START_TEST(dynamic_slices) {
  seed = 3;
  for (int i = 0; i < 2000; i++) check_dynamic(false);
}
END_TEST

START_TEST(dynamic_update_slices) {
  seed = 4;
  for (int i = 0; i < 2000; i++) check_dynamic(true);
}
END_TEST

// --- larger than one piece of work ----------------------------------------------------------------------------------

// Rows of 300 from 2000 at 5000 places, gathered and added back.
START_TEST(large) {
  enum { ROWS = 2000, WIDTH = 300, PLACES = 5000 };
  tensor x = {.rank = 2, .dim = {ROWS, WIDTH}}, i = {.rank = 2, .dim = {PLACES, 1}};
  kl_result r[2];
  seed = 5;
  tensor_make(&x, KILN_S32);
  tensor_fill(&x);
  tensor_make(&i, KILN_S32);
  for (int k = 0; k < PLACES; k++) ((int32_t *)i.data)[k] = (int32_t)below(ROWS);
  kiln_module *m =
      parse("HloModule t\nadd { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\nENTRY e {\n"
            "  x = s32[2000,300] parameter(0)\n  i = s32[5000,1] parameter(1)\n"
            "  g = s32[5000,300] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
            "index_vector_dim=1, slice_sizes={1,300}\n"
            "  s = s32[2000,300] scatter(x, i, g), update_window_dims={1}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n"
            "  ROOT t = (s32[5000,300], s32[2000,300]) tuple(g, s)\n}\n");
  EXPECT(kl_eval(cx, m, m->entry, (kl_array[]){{NULL, x.data}, {NULL, i.data}}, NULL, r) == KILN_OK, "%s",
         last_finding());
  int32_t *sum = malloc(sizeof(int32_t) * ROWS * WIDTH);
  memcpy(sum, x.data, sizeof(int32_t) * ROWS * WIDTH);
  for (int k = 0; k < PLACES; k++) {
    int32_t row = ((int32_t *)i.data)[k];
    const int32_t *from = (int32_t *)x.data + row * WIDTH;
    ck_assert(memcmp((int32_t *)r[0].data.data + k * WIDTH, from, 4 * WIDTH) == 0);
    for (int e = 0; e < WIDTH; e++) sum[row * WIDTH + e] += from[e];
  }
  ck_assert(memcmp(r[1].data.data, sum, sizeof(int32_t) * ROWS * WIDTH) == 0);
  for (int k = 0; k < 2; k++) kl_result_free(cx, &r[k]);
  kiln_module_destroy(&m);
  free(sum), free(x.data), free(i.data);
}
END_TEST

// --- intervals ------------------------------------------------------------------------------------------------------

static bool allows_f32(const kl_result *r, int64_t i, float v) {
  uint64_t bits[2] = {0, 0};
  memcpy(bits, &v, 4);
  return kl_result_allows(r, i, bits);
}

#define ONE_ELEMENT(combine, n, more)                                                                                  \
  "HloModule t\nc { a = f32[] parameter(0) b = f32[] parameter(1) " combine " }\nENTRY e {\n"                          \
  "  x = f32[2] parameter(0)\n  u = f32[" n "] parameter(1)\n  z = s32[] constant(0)\n"                                \
  "  i = s32[" n ",1] broadcast(z), dimensions={}\n"                                                                   \
  "  ROOT r = f32[2] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "                              \
  "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c" more "\n}\n"

typedef struct scatter_run {
  kiln_module *m;
  kl_result r;
} scatter_run;

static scatter_run scatter_one(const char *text, const float *x, const float *u) {
  scatter_run s = {.m = parse(text)};
  EXPECT(kl_eval(cx, s.m, s.m->entry, (kl_array[]){{NULL, (void *)x}, {NULL, (void *)u}},
                 &(kl_eval_opts){.intervals = true}, &s.r) == KILN_OK,
         "%s", last_finding());
  return s;
}

static void drop(scatter_run *s) {
  kl_result_free(cx, &s->r);
  kiln_module_destroy(&s->m);
}

// Every order of adding: permutations by swaps.
static void add_in_all_orders(const kl_result *r, float *v, int n, int from, double *lo, double *hi) {
  if (from == n) {
    float s = v[0];
    for (int i = 1; i < n; i++) s += v[i];
    EXPECT(allows_f32(r, 0, s), "%a is not allowed", (double)s);
    *lo = fmin(*lo, s), *hi = fmax(*hi, s);
    return;
  }
  for (int i = from; i < n; i++) {
    float t = v[from];
    v[from] = v[i], v[i] = t;
    add_in_all_orders(r, v, n, from + 1, lo, hi);
    t = v[from];
    v[from] = v[i], v[i] = t;
  }
}

START_TEST(sums_in_any_order) {
  seed = 6;
  for (int round = 0; round < 50; round++) {
    float x[2] = {0, 7}, u[5], all[6];
    double lo = INFINITY, hi = -INFINITY, size = 0;
    for (int k = 0; k < 6; k++) {
      all[k] = ldexpf((float)below(1 << 24) - (1 << 23), (int)below(12) - 6);
      *(k ? &u[k - 1] : &x[0]) = all[k];
      size += fabsf(all[k]);
    }
    scatter_run s = scatter_one(ONE_ELEMENT("ROOT s = f32[] add(a, b)", "5", ""), x, u);
    add_in_all_orders(&s.r, all, 6, 0, &lo, &hi);
    const float *a = s.r.lo, *b = s.r.hi, *data = s.r.data.data;
    ck_assert(data[0] == ((((x[0] + u[0]) + u[1]) + u[2]) + u[3]) + u[4]);
    ck_assert(a[0] <= lo && b[0] >= hi && b[0] - a[0] <= 5 * 0x1p-22 * size);
    ck_assert(a[1] == 7 && b[1] == 7);
    ck_assert(!allows_f32(&s.r, 0, (float)(hi + 0x1p-19 * size)) && !allows_f32(&s.r, 1, 8));
    drop(&s);
  }
}
END_TEST

// A GPU's sums in memory take denormals for zeros, one by one.
START_TEST(sums_may_lose_denormals) {
  const float x[2] = {0x1p-130f, 0x1p-130f}, u[3] = {0x1p-130f, 0x1p-127f, -0x1p-131f}, large[1] = {1};
  scatter_run s = scatter_one(ONE_ELEMENT("ROOT s = f32[] add(a, b)", "3", ""), x, u);
  ck_assert(allows_f32(&s.r, 0, ((x[0] + u[0]) + u[1]) + u[2]) && allows_f32(&s.r, 0, 0) && allows_f32(&s.r, 0, -0.f));
  ck_assert(!allows_f32(&s.r, 0, 0x1p-122f) && !allows_f32(&s.r, 1, 0) && allows_f32(&s.r, 1, x[1]));
  drop(&s);
  s = scatter_one(ONE_ELEMENT("ROOT s = f32[] add(a, b)", "1", ""), x, large);
  ck_assert(allows_f32(&s.r, 0, 1) && !allows_f32(&s.r, 0, 1 + 0x1p-23f) && !allows_f32(&s.r, 0, 1 - 0x1p-24f));
  drop(&s);
  s = scatter_one(ONE_ELEMENT("ROOT s = f32[] add(a, b)", "3", ", unique_indices=true"), x, u);
  ck_assert(!allows_f32(&s.r, 0, 0));
  drop(&s);
}
END_TEST

START_TEST(any_update_may_win) {
  const float x[2] = {5, 7}, u[3] = {1, 4, 2}, same[3] = {3, 3, 3};
  scatter_run s = scatter_one(ONE_ELEMENT("ROOT s = f32[] copy(b)", "3", ""), x, u);
  ck_assert(allows_f32(&s.r, 0, 1) && allows_f32(&s.r, 0, 4) && allows_f32(&s.r, 0, 2));
  ck_assert(!allows_f32(&s.r, 0, 5) && !allows_f32(&s.r, 0, 0) && allows_f32(&s.r, 1, 7) && !allows_f32(&s.r, 1, 4));
  ck_assert(((float *)s.r.data.data)[0] == 2);
  drop(&s);
  s = scatter_one(ONE_ELEMENT("ROOT s = f32[] copy(b)", "3", ""), x, same);
  ck_assert(s.r.lo == s.r.data.data && !s.r.any);
  drop(&s);
  s = scatter_one(ONE_ELEMENT("ROOT s = f32[] copy(b)", "3", ", unique_indices=true"), x, u);
  ck_assert(s.r.lo == s.r.data.data && allows_f32(&s.r, 0, 2) && !allows_f32(&s.r, 0, 4));
  drop(&s);
  const float nan[3] = {NAN, 1, 2};
  s = scatter_one(ONE_ELEMENT("ROOT s = f32[] copy(b)", "3", ""), x, nan);
  ck_assert(allows_f32(&s.r, 0, NAN) && allows_f32(&s.r, 0, 1) && !allows_f32(&s.r, 1, 1));
  drop(&s);
}
END_TEST

// Extremes do not depend on the order; what depends on it in an unknown way is open.
START_TEST(orders_that_matter) {
  const float x[2] = {1, 7}, u[3] = {3, -4, 2};
  scatter_run s = scatter_one(ONE_ELEMENT("ROOT s = f32[] maximum(a, b)", "3", ""), x, u);
  ck_assert(s.r.lo == s.r.data.data && !s.r.any && allows_f32(&s.r, 0, 3) && !allows_f32(&s.r, 0, 2));
  drop(&s);
  s = scatter_one(ONE_ELEMENT("ROOT s = f32[] subtract(b, a)", "3", ""), x, u);
  ck_assert(allows_f32(&s.r, 0, 1e30f) && !allows_f32(&s.r, 1, 8));
  drop(&s);
  s = scatter_one(ONE_ELEMENT("ROOT s = f32[] subtract(b, a)", "3", ", unique_indices=true"), x, u);
  ck_assert(s.r.lo == s.r.data.data && allows_f32(&s.r, 0, 2 - (-4 - (3 - 1.f))));
  drop(&s);
}
END_TEST

// exponential is known within bounds: they travel with the elements, and leave open what they index.
START_TEST(inexact_operands) {
  const float x[4] = {0, 1, 2, 3}, big[1] = {1};
  kl_result r[5];
  kiln_module *m = parse(
      "HloModule t\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\nENTRY e {\n"
      "  x = f32[4] parameter(0)\n  y = f32[1] parameter(1)\n  e = f32[4] exponential(x)\n  z = s32[1,1] "
      "constant({{2}})\n"
      "  g = f32[1] gather(e, z), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
      "slice_sizes={1}\n"
      "  k = s32[1,1] constant({{1}})\n  o = s32[] constant(1)\n"
      "  d = f32[2] dynamic-slice(e, o), dynamic_slice_sizes={2}\n"
      "  u = f32[4] dynamic-update-slice(x, d, o)\n"
      "  s = f32[4] scatter(x, k, g), update_window_dims={}, inserted_window_dims={0}, "
      "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n"
      "  h = f32[1] exponential(y)\n  f = f32[1,1] reshape(h)\n  ten = f32[1,1] constant({{1e9}})\n"
      "  v = f32[1,1] multiply(f, ten)\n  w = s32[1,1] convert(v)\n"
      "  q = f32[1] gather(x, w), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
      "slice_sizes={1}\n"
      "  ROOT t = (f32[1], f32[2], f32[4], f32[4], f32[1]) tuple(g, d, u, s, q)\n}\n");
  EXPECT(kl_eval(cx, m, m->entry, (kl_array[]){{NULL, (void *)x}, {NULL, (void *)big}},
                 &(kl_eval_opts){.intervals = true}, r) == KILN_OK,
         "%s", last_finding());
  float e2 = (float)exp(2), e1 = (float)exp(1);
  ck_assert(allows_f32(&r[0], 0, e2) && allows_f32(&r[0], 0, nextafterf(e2, 9)) && !allows_f32(&r[0], 0, 7.4f));
  ck_assert(allows_f32(&r[1], 0, nextafterf(e1, 9)) && allows_f32(&r[1], 1, e2) && !allows_f32(&r[1], 1, e1));
  ck_assert(allows_f32(&r[2], 1, nextafterf(e1, 9)) && allows_f32(&r[2], 0, 0) && !allows_f32(&r[2], 0, 0x1p-149f));
  ck_assert(allows_f32(&r[3], 1, 1 + nextafterf(e2, 9)) && !allows_f32(&r[3], 1, 8.4f) && !allows_f32(&r[3], 2, 2.1f));
  ck_assert(allows_f32(&r[4], 0, 3)); // index past the end, for certain or not
  for (int k = 0; k < 5; k++) kl_result_free(cx, &r[k]);
  kiln_module_destroy(&m);
}
END_TEST

#define FROM_EXP                                                                                                       \
  "  y = f32[] parameter(1)\n  h = f32[] exponential(y)\n  ten = f32[] constant(1e6)\n  v = f32[] multiply(h, ten)\n"  \
  "  c = s32[] convert(v)\n  two = s32[] constant(2)\n  w = s32[] remainder(c, two)\n  k = s32[1,1] reshape(w)\n"

static const char *const uncertain[] = {
    "  ROOT r = f32[1] gather(x, k), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1}\n",
    "  ROOT r = f32[2] dynamic-slice(x, w), dynamic_slice_sizes={2}\n",
    "  u = f32[2] constant({8,9})\n  ROOT r = f32[4] dynamic-update-slice(x, u, w)\n",
    "  u = f32[1] constant({8})\n  ROOT r = f32[4] scatter(x, k, u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=take\n",
};

// An index that may be 0 or 1 leaves the results open.
START_TEST(uncertain_indices) {
  const float x[4] = {0, 1, 2, 3}, y = 3;
  char text[2000];
  snprintf(text, sizeof text,
           "HloModule t\ntake { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }\nENTRY e {\n"
           "  x = f32[4] parameter(0)\n" FROM_EXP "%s}\n",
           uncertain[_i]);
  scatter_run s = scatter_one(text, x, &y);
  for (int64_t i = 0; i < s.r.data.shape->count; i++) ck_assert(allows_f32(&s.r, i, 1e10f));
  drop(&s);
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_indexed", EACH(make_context, drop_context), {gathers}, {scatters}, {dynamic_slices},
                   {dynamic_update_slices}, {large}, {sums_in_any_order}, {sums_may_lose_denormals},
                   {any_update_may_win}, {orders_that_matter}, {inexact_operands},
                   {uncertain_indices, KL_COUNT(uncertain)});
}
