// Operations that fold elements, or whose data says where they read and write.

#include "impl.h"

// --- reductions ---------------------------------------------------------------------------------------------------

static const char *simple_reducer(gen *g, kl_dtype t) {
  static const char *const ops[] = {"add", "add", "multiply", "maximum", "minimum", "and", "or", "xor"};
  bool whole = kl_is_int(t) || t == KILN_PRED;
  return ops[pick(g, kl_is_complex(t) ? 3 : whole ? 8 : 5)];
}

// The larger of two, and what comes with it; of equals that which the order meets first.
static void put_best(gen *in, unsigned n, unsigned *roots) {
  kl_dtype t = in->v[0].t;
  unsigned c = emit(in, &(value){.t = KILN_PRED}, "compare", 2, (unsigned[]){0, n},
                    kl_is_complex(t) ? ", direction=NE" : ", direction=GE");
  for (unsigned i = 0; i < n; i++)
    roots[i] = emit(in, &(value){.t = in->v[i].t}, "select", 3, (unsigned[]){c, i, n + i}, "");
}

// A computation that joins n values with n others, of these types: by an op each, by the first, or by anything.
static unsigned put_reducer(gen *g, unsigned n, const unsigned *x) {
  unsigned both[6], roots[3], called, kind = pick(g, 10);
  gen in;
  for (unsigned i = 0; i < n; i++) both[i] = both[n + i] = x[i];
  open_computation(g, &in, true, false, 2 * n, both);
  for (unsigned i = 0; i < 2 * n; i++) in.v[i].computed = kl_is_float(in.v[i].t);
  if (n > 1 && kind < 4) {
    put_best(&in, n, roots);
  } else if (kind < 8) {
    for (unsigned i = 0; i < n; i++)
      roots[i] = emit(&in, &in.v[i], simple_reducer(g, in.v[i].t), 2,
                      chance(g, 80) ? (unsigned[]){i, n + i} : (unsigned[]){n + i, i}, "");
  } else {
    gen_operations(&in, 1 + pick(g, 4));
    for (unsigned i = 0; i < n; i++) roots[i] = last_like(&in, &(value){0}, g->v[x[i]].t);
  }
  close_computation(g, &in, "reducer", called = (*g->calls)++, n, roots);
  return called;
}

static unsigned initial(gen *g, kl_dtype t) {
  for (unsigned tries = 0; tries < 3 && chance(g, 30); tries++) {
    unsigned a = pick(g, g->n);
    if (g->v[a].t == t && count(&g->v[a])) return scalar_of(g, a);
  }
  return scalar_constant(g, t);
}

static size_t put_arguments(char *text, size_t size, size_t at, unsigned n, const unsigned *x) {
  for (unsigned i = 0; i < n; i++) at += (size_t)snprintf(text + at, size - at, at ? ", v%u" : "v%u", x[i]);
  return at;
}

void op_reduce(gen *g) {
  unsigned n = chance(g, 75) ? 1 : 2 + pick(g, 2), x[6] = {operand(g)};
  value from = g->v[x[0]], v[3];
  int64_t dims[MAX_RANK];
  uint32_t ndims = 0, rank = 0;
  char text[512], list[128];
  if (!from.rank || g->elements) return;
  for (unsigned i = 1; i < n; i++) x[i] = of_type(g, x[0], chance(g, 40) ? KILN_S32 : any_dtype(g));
  for (uint32_t d = 0; d < from.rank; d++)
    if (chance(g, 50)) dims[ndims++] = d;
  if (!ndims) dims[ndims++] = pick(g, from.rank);
  for (uint32_t d = 0, k = 0; d < from.rank; d++)
    if (k < ndims && dims[k] == d)
      k++;
    else
      from.dims[rank++] = from.dims[d];
  from.rank = rank;
  from.custom = false;
  for (unsigned i = 0; i < n; i++) {
    v[i] = from;
    v[i].t = g->v[x[i]].t;
    v[i].computed = kl_is_float(v[i].t);
    x[n + i] = initial(g, v[i].t);
  }
  unsigned reducer = put_reducer(g, n, x);
  put_list(list, sizeof list, "dimensions", ndims, dims);
  size_t at = put_arguments(text, sizeof text, 0, 2 * n, x);
  snprintf(text + at, sizeof text - at, ")%s, to_apply=reducer%u", list, reducer);
  put_results(g, n, v, "reduce", text);
}

// --- places -------------------------------------------------------------------------------------------------------

// Integers of these dims: as they come, held to a few, or the same for all.
static unsigned places(gen *g, uint32_t rank, const int64_t *dims) {
  dtype_list ints = dtypes_that(kl_is_int);
  value v = {.t = chance(g, 50) ? KILN_S32 : ints.at[pick(g, (unsigned)ints.n)], .rank = rank};
  if (rank) memcpy(v.dims, dims, rank * sizeof *dims);
  unsigned r = made(g, &v);
  if (kl_info(v.t)->bits < 4 || chance(g, 30)) return r;
  unsigned mask = number(g, v.t, chance(g, 50) ? 3 : 7);
  if (rank) mask = emit(g, &v, "broadcast", 1, &mask, ", dimensions={}");
  return emit(g, &v, "and", 2, (unsigned[]){r, mask}, "");
}

// Places along all dimensions: one scalar each, of one type, or a vector.
static unsigned starts(gen *g, const value *v, unsigned *out) {
  int64_t rank = v->rank;
  if (v->rank && chance(g, 30)) return out[0] = places(g, 1, &rank), 1;
  for (uint32_t d = 0; d < v->rank; d++) {
    out[d] = places(g, 0, NULL);
    if (d) out[d] = of_type(g, out[d], g->v[out[0]].t);
  }
  return v->rank;
}

static void shrink(gen *g, value *v, unsigned percent) {
  for (uint32_t d = 0; d < v->rank; d++)
    if (chance(g, percent)) v->dims[d] = chance(g, 2) ? 0 : v->dims[d] - pick(g, (unsigned)v->dims[d]);
}

void op_dynamic_slice(gen *g) {
  unsigned x[1 + MAX_RANK] = {operand(g)}, n;
  value v = g->v[x[0]];
  char attrs[128];
  n = starts(g, &v, x + 1);
  shrink(g, &v, 70);
  put_list(attrs, sizeof attrs, "dynamic_slice_sizes", v.rank, v.dims);
  unsigned r = emit(g, &v, "dynamic-slice", 1 + n, x, attrs);
  g->v[r].computed = g->v[x[0]].computed;
}

void op_update_slice(gen *g) {
  unsigned x[2 + MAX_RANK] = {operand(g)}, n;
  value update = g->v[x[0]];
  shrink(g, &update, 60);
  x[1] = made(g, &update);
  n = starts(g, &update, x + 2);
  emit(g, &g->v[x[0]], "dynamic-update-slice", 2 + n, x, "");
}

// --- windows at places --------------------------------------------------------------------------------------------

// Dims of the array are part of the window, gone from it, or batching ones; the vectors lie anywhere in the indices,
// whose other dims are in any order; the window's dims anywhere in the other array: that of gather's result or
// scatter's updates.
typedef struct windows {
  value indices, other;
  int64_t gone[MAX_RANK], batch[MAX_RANK], batch_of[MAX_RANK], map[MAX_RANK], sizes[MAX_RANK], offset[MAX_RANK];
  uint32_t ngone, nbatch, nmap, nwindow, vector;
} windows;

// What is drawn of each dim; the sizes of the window in it.
static void draw_window(gen *g, const value *v, windows *w, int64_t *window) {
  for (uint32_t d = 0; d < v->rank; d++) {
    unsigned kind = pick(g, 10);
    w->sizes[d] = 1;
    if (kind < 2 && v->dims[d]) {
      w->batch[w->nbatch++] = d;
      continue;
    }
    if (kind < 5 && v->dims[d])
      w->gone[w->ngone++] = d;
    else
      window[w->nwindow++] = w->sizes[d] = chance(g, 50) ? v->dims[d] : v->dims[d] - pick(g, (unsigned)v->dims[d]);
    if (chance(g, 70)) w->map[w->nmap++] = d;
  }
  shuffle(g, w->nmap, w->map);
}

// False where that is too large.
static bool draw_windows(gen *g, const value *v, windows *w) {
  int64_t window[MAX_RANK], rest[MAX_RANK], order[MAX_RANK], dims[MAX_RANK];
  *w = (windows){0};
  draw_window(g, v, w, window);
  uint32_t n = w->nbatch;
  for (uint32_t i = 0; i < n; i++) rest[i] = v->dims[w->batch[i]];
  while (n + w->nwindow + 1 < MAX_RANK && n < 4 && chance(g, 50))
    rest[n++] = chance(g, 3) ? 0 : 1 + pick(g, chance(g, 20) ? 40 : 6);
  if (n + w->nwindow > MAX_RANK || n >= MAX_RANK) return false;
  for (uint32_t i = 0; i < n; i++) order[i] = i;
  shuffle(g, n, order);
  bool implicit = w->nmap == 1 && chance(g, 50);
  w->vector = implicit ? n : pick(g, n + 1);
  w->indices.rank = n + !implicit;
  for (uint32_t i = 0, k = 0; i < w->indices.rank; i++) {
    if (i == w->vector && !implicit) {
      w->indices.dims[i] = w->nmap;
      continue;
    }
    dims[k] = w->indices.dims[i] = rest[order[k]];
    if (order[k] < w->nbatch) w->batch_of[order[k]] = i;
    k++;
  }
  w->other.rank = n + w->nwindow;
  draw_set(g, w->nwindow, w->other.rank, w->offset);
  for (uint32_t i = 0, a = 0, k = 0; i < w->other.rank; i++)
    w->other.dims[i] = a < w->nwindow && w->offset[a] == i ? window[a++] : dims[k++];
  return count(&w->other) <= MAX_ELEMENTS && count(&w->indices) <= MAX_ELEMENTS;
}

static void add_list(char *text, size_t size, const char *key, uint32_t n, const int64_t *dims) {
  size_t at = strlen(text);
  put_list(text + at, size - at, key, n, dims);
}

void op_gather(gen *g) {
  unsigned x[2] = {operand(g)};
  value from = g->v[x[0]];
  windows w;
  char attrs[768] = "";
  if (!draw_windows(g, &from, &w)) return;
  x[1] = places(g, w.indices.rank, w.indices.dims);
  add_list(attrs, sizeof attrs, "offset_dims", w.nwindow, w.offset);
  add_list(attrs, sizeof attrs, "collapsed_slice_dims", w.ngone, w.gone);
  add_list(attrs, sizeof attrs, "start_index_map", w.nmap, w.map);
  if (w.nbatch) add_list(attrs, sizeof attrs, "operand_batching_dims", w.nbatch, w.batch);
  if (w.nbatch) add_list(attrs, sizeof attrs, "start_indices_batching_dims", w.nbatch, w.batch_of);
  add_list(attrs, sizeof attrs, "slice_sizes", from.rank, w.sizes);
  size_t at = strlen(attrs);
  snprintf(attrs + at, sizeof attrs - at, ", index_vector_dim=%u", w.vector);
  w.other.t = from.t;
  unsigned r = emit(g, &w.other, "gather", 2, x, attrs);
  g->v[r].computed = from.computed;
}

// How updates join what is there. Of several arrays those with the largest first, in whatever order they come.
static unsigned put_combiner(gen *g, unsigned n, const unsigned *x) {
  unsigned both[6], roots[3], called;
  gen in;
  for (unsigned i = 0; i < n; i++) both[i] = both[n + i] = x[i];
  open_computation(g, &in, true, false, 2 * n, both);
  for (unsigned i = 0; i < 2 * n; i++) in.v[i].computed = kl_is_float(in.v[i].t);
  unsigned kind = pick(g, 10);
  for (unsigned i = 0; i < n; i++)
    roots[i] = kind < 2   ? n + i
               : kind < 3 ? i
                          : emit(&in, &in.v[i], simple_reducer(g, in.v[i].t), 2, (unsigned[]){i, n + i}, "");
  if (n > 1 && kind > 6) put_best(&in, n, roots);
  close_computation(g, &in, "combiner", called = (*g->calls)++, n, roots);
  return called;
}

// Places that differ and come in order, where a place is one number: positions.
static unsigned distinct(gen *g, const windows *w, const char **promise) {
  value v = w->indices;
  bool whole =
      w->nmap == 1 && !w->nbatch && v.rank - (w->vector < v.rank) == 1 && w->ngone == 1 && w->gone[0] == w->map[0];
  *promise = "";
  if (!whole || chance(g, 30)) return places(g, v.rank, v.dims);
  static const char *const promises[] = {", unique_indices=true", ", indices_are_sorted=true",
                                         ", indices_are_sorted=true, unique_indices=true"};
  char attrs[64];
  *promise = promises[pick(g, 3)];
  v.t = KILN_S32;
  snprintf(attrs, sizeof attrs, ", iota_dimension=%u", w->vector == 0 && v.rank > 1);
  return emit(g, &v, "iota", 0, NULL, attrs);
}

void op_scatter(gen *g) {
  unsigned n = chance(g, 80) ? 1 : 2, x[5] = {operand(g)};
  value to = g->v[x[0]], v[3];
  windows w;
  const char *promise;
  char attrs[768] = "", text[1024];
  if (g->elements || !draw_windows(g, &to, &w)) return;
  for (unsigned i = 1; i < n; i++) x[i] = of_type(g, x[0], chance(g, 40) ? KILN_S32 : any_dtype(g));
  x[n] = distinct(g, &w, &promise);
  for (unsigned i = 0; i < n; i++) {
    w.other.t = g->v[x[i]].t;
    x[n + 1 + i] = made(g, &w.other);
    v[i] = to;
    v[i].t = w.other.t;
    v[i].custom = false;
    v[i].computed = kl_is_float(w.other.t);
  }
  unsigned combiner = put_combiner(g, n, x);
  add_list(attrs, sizeof attrs, "update_window_dims", w.nwindow, w.offset);
  add_list(attrs, sizeof attrs, "inserted_window_dims", w.ngone, w.gone);
  add_list(attrs, sizeof attrs, "scatter_dims_to_operand_dims", w.nmap, w.map);
  if (w.nbatch) add_list(attrs, sizeof attrs, "input_batching_dims", w.nbatch, w.batch);
  if (w.nbatch) add_list(attrs, sizeof attrs, "scatter_indices_batching_dims", w.nbatch, w.batch_of);
  size_t at = put_arguments(text, sizeof text, 0, 2 * n + 1, x);
  snprintf(text + at, sizeof text - at, ")%s, index_vector_dim=%u%s, to_apply=combiner%u", attrs, w.vector, promise,
           combiner);
  put_results(g, n, v, "scatter", text);
}
