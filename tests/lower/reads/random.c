#include "random.h"

#include "support/draw.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_VALUES = 64, MOST_RANK = 4, MOST_ELEMENTS = 24, MOST_DEPTH = 2 };

typedef struct array {
  int id;    // named v<id>
  char type; // f: f32, i: s32
  int rank, dims[MOST_RANK + 1];
} array;

typedef struct body { // of one computation
  array v[MOST_VALUES];
  int n, depth;
} body;

static char *out;
static size_t room;
static int ids;
static bool full;

static void put(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(out, room, fmt, args);
  va_end(args);
  if (full || (size_t)n >= room) {
    full = true;
    return;
  }
  out += n, room -= (size_t)n;
}

static int elements(const array *a) {
  int n = 1;
  for (int d = 0; d < a->rank; d++) n *= a->dims[d];
  return n;
}

static void put_list(const char *key, const int *list, int n) {
  put("%s={", key);
  for (int i = 0; i < n; i++) put("%s%d", i ? "," : "", list[i]);
  put("}");
}

static void put_type(const array *a) {
  put("%s[", a->type == 'f' ? "f32" : "s32");
  for (int d = 0; d < a->rank; d++) put("%s%d", d ? "," : "", a->dims[d]);
  put("]");
}

// "  v7 = f32[2,3] "; the caller goes on with the op.
static void begin(array *a) {
  a->id = ids++;
  put("  v%d = ", a->id);
  put_type(a);
  put(" ");
}

static void keep(body *b, array a) {
  if (b->n < MOST_VALUES) b->v[b->n++] = a;
}

static array random_array(char type, int most_rank) {
  array a = {.type = type, .rank = (int)below((uint32_t)most_rank + 1)};
  for (int d = 0; d < a.rank; d++) {
    a.dims[d] = chance(2) ? 0 : 1 + (int)below(4);
    if (elements(&a) > MOST_ELEMENTS) a.dims[d] = 1;
  }
  return a;
}

// A source of values that is new: in ENTRY a parameter; elsewhere made on the spot.
static int params;

static array source(body *b, array a) {
  begin(&a);
  if (b->depth == 0 && (a.type == 'f' || chance(70)))
    put("parameter(%d)\n", params++);
  else if (a.type == 'i' && a.rank && chance(50))
    put("iota(), iota_dimension=%d\n", (int)below((uint32_t)a.rank));
  else if (a.rank == 0)
    put("constant(%d)\n", (int)below(6) - 1);
  else
    put("broadcast(%s[] constant(%d)), dimensions={}\n", a.type == 'f' ? "f32" : "s32", (int)below(5) - 1);
  keep(b, a);
  return a;
}

static array pick(body *b, char type) {
  for (int tries = 0; tries < 8 && b->n; tries++) {
    int i = chance(75) ? b->n - 1 - (int)below((uint32_t)(b->n < 3 ? b->n : 3)) : (int)below((uint32_t)b->n);
    if (b->v[i].type == type) return b->v[i];
  }
  return source(b, random_array(type, 3));
}

// A value of just this shape: an old one, or a new one.
static array like(body *b, array a) {
  for (int i = b->n; i-- > 0;)
    if (b->v[i].type == a.type && b->v[i].rank == a.rank &&
        !memcmp(b->v[i].dims, a.dims, sizeof(int) * (size_t)a.rank) && chance(60))
      return b->v[i];
  return source(b, a);
}

static array scalar(body *b, char type) {
  return like(b, (array){.type = type});
}

static void shuffle(int *p, int n) {
  for (int i = 0; i < n; i++) {
    int k = (int)below((uint32_t)i + 1);
    p[i] = p[k];
    p[k] = i;
  }
}

// At most n; seldom 0 where there is a choice.
static int some(int n) {
  return n == 0 || chance(3) ? 0 : 1 + (int)below((uint32_t)n);
}

static char any_type(void) {
  return chance(80) ? 'f' : 'i';
}

// --- ops ----------------------------------------------------------------------------------------------------------

static void elementwise(body *b) {
  array x = pick(b, any_type()), y = like(b, x), r = x;
  begin(&r);
  if (chance(30))
    put("negate(v%d)\n", x.id);
  else
    put("add(v%d, v%d)\n", x.id, y.id);
  keep(b, r);
}

static void broadcast(body *b) {
  array x = pick(b, any_type()), r = {.type = x.type};
  int at[MOST_RANK], order[MOST_RANK], from = 0;
  if (x.rank > 3) return;
  shuffle(order, x.rank);
  while (from < x.rank || (r.rank < MOST_RANK && chance(50))) {
    bool old = from < x.rank && (r.rank + x.rank - from >= MOST_RANK || chance(50));
    if (!old && elements(&r) * elements(&x) > 8) old = from < x.rank;
    if (!old && from == x.rank && elements(&r) > 8) break;
    if (old) at[order[from]] = r.rank;
    r.dims[r.rank++] = old ? x.dims[order[from++]] : 1 + (int)below(3);
  }
  if (elements(&r) > MOST_ELEMENTS) return;
  begin(&r);
  put("broadcast(v%d), ", x.id);
  put_list("dimensions", at, x.rank);
  put("\n");
  keep(b, r);
}

// Some factors of the number of elements, in any order.
static void reshape(body *b) {
  array x = pick(b, any_type()), r = {.type = x.type};
  int n = elements(&x);
  if (!n) return;
  while (r.rank < MOST_RANK) {
    int f = 1 + (int)below(6);
    if (r.rank == MOST_RANK - 1 || (n > 1 && chance(10))) f = n;
    if (n % f) continue;
    if (n == 1 && chance(60)) break;
    r.dims[r.rank++] = f;
    n /= f;
  }
  begin(&r);
  put("%s(v%d)\n", chance(30) ? "bitcast" : "reshape", x.id);
  keep(b, r);
}

static void transpose(body *b) {
  array x = pick(b, any_type()), r = x;
  int order[MOST_RANK];
  shuffle(order, x.rank);
  for (int d = 0; d < x.rank; d++) r.dims[d] = x.dims[order[d]];
  begin(&r);
  put("transpose(v%d), ", x.id);
  put_list("dimensions", order, x.rank);
  put("\n");
  keep(b, r);
}

// The same as a transpose, in memory: a bitcast between two orders of dimensions.
static void bitcast(body *b) {
  array x = pick(b, 'f'), r = x, c = x;
  int order[MOST_RANK];
  shuffle(order, x.rank);
  for (int d = 0; d < x.rank; d++) r.dims[x.rank - 1 - d] = x.dims[order[d]];
  c.id = ids++;
  put("  v%d = ", c.id);
  put_type(&c);
  put("{");
  for (int d = 0; d < x.rank; d++) put("%s%d", d ? "," : "", order[d]);
  put("} copy(v%d)\n", x.id);
  begin(&r);
  put("bitcast(v%d)\n", c.id);
  keep(b, r);
}

static void slice(body *b) {
  array x = pick(b, any_type()), r = x;
  int start[MOST_RANK], limit[MOST_RANK], stride[MOST_RANK];
  for (int d = 0; d < x.rank; d++) {
    int n = chance(50) ? x.dims[d] : some(x.dims[d]);
    start[d] = (int)below((uint32_t)(x.dims[d] - n) + 1);
    limit[d] = start[d] + n;
    stride[d] = 1 + (int)below(3);
    r.dims[d] = (limit[d] - start[d] + stride[d] - 1) / stride[d];
  }
  begin(&r);
  put("slice(v%d), slice={", x.id);
  for (int d = 0; d < x.rank; d++) put("%s[%d:%d:%d]", d ? ", " : "", start[d], limit[d], stride[d]);
  put("}\n");
  keep(b, r);
}

static void reverse(body *b) {
  array x = pick(b, any_type()), r = x;
  int dims[MOST_RANK], n = 0;
  for (int d = 0; d < x.rank; d++)
    if (chance(50)) dims[n++] = d;
  begin(&r);
  put("reverse(v%d), ", x.id);
  put_list("dimensions", dims, n);
  put("\n");
  keep(b, r);
}

static void concatenate(body *b) {
  array x = pick(b, any_type());
  if (!x.rank) return;
  int d = (int)below((uint32_t)x.rank), n = 2 + (int)below(2);
  array part[3] = {x}, r = x;
  for (int i = 1; i < n; i++) {
    part[i] = x;
    if (chance(60)) part[i].dims[d] = (int)below(3);
    part[i] = like(b, part[i]);
    r.dims[d] += part[i].dims[d];
  }
  if (elements(&r) > MOST_ELEMENTS) return;
  begin(&r);
  put("concatenate(");
  for (int i = 0; i < n; i++) put("%sv%d", i ? ", " : "", part[i].id);
  put("), dimensions={%d}\n", d);
  keep(b, r);
}

static void pad(body *b) {
  array x = pick(b, any_type()), v = scalar(b, x.type), r = x;
  int low[MOST_RANK], high[MOST_RANK], interior[MOST_RANK];
  for (int d = 0; d < x.rank; d++) {
    low[d] = chance(50) ? 0 : (int)below(5) - 2;
    high[d] = chance(50) ? 0 : (int)below(5) - 2;
    interior[d] = chance(70) ? 0 : 1 + (int)below(2);
    r.dims[d] = (x.dims[d] ? (x.dims[d] - 1) * (interior[d] + 1) + 1 : 0) + low[d] + high[d];
    if (r.dims[d] < 0) return;
  }
  if (elements(&r) > MOST_ELEMENTS || !x.rank) return;
  begin(&r);
  put("pad(v%d, v%d), padding=", x.id, v.id);
  for (int d = 0; d < x.rank; d++) put("%s%d_%d_%d", d ? "x" : "", low[d], high[d], interior[d]);
  put("\n");
  keep(b, r);
}

static void reduce(body *b) {
  array x = pick(b, 'f'), s = scalar(b, 'f'), r = {.type = 'f'};
  int dims[MOST_RANK], n = 0;
  for (int d = 0; d < x.rank; d++)
    if (chance(50))
      dims[n++] = d;
    else
      r.dims[r.rank++] = x.dims[d];
  begin(&r);
  put("reduce(v%d, v%d), ", x.id, s.id);
  put_list("dimensions", dims, n);
  put(", to_apply=sum\n");
  keep(b, r);
}

typedef struct window {
  int size[MOST_RANK], stride[MOST_RANK], low[MOST_RANK], high[MOST_RANK], base[MOST_RANK], dilation[MOST_RANK],
      reversed[MOST_RANK];
} window;

static void put_window_field(const char *key, const int *v, int n) {
  put(" %s=", key);
  for (int i = 0; i < n; i++) put("%s%d", i ? "x" : "", v[i]);
}

// One dimension of a random window over n elements; the number of its places.
static int draw_window(window *w, int d, int n, bool dilate) {
  w->size[d] = 1 + (int)below(3);
  w->stride[d] = 1 + (int)below(2);
  w->low[d] = chance(50) ? 0 : (int)below(4) - 1;
  w->high[d] = chance(50) ? 0 : (int)below(4) - 1;
  w->base[d] = dilate && chance(30) ? 2 : 1;
  w->dilation[d] = dilate && chance(30) ? 2 : 1;
  w->reversed[d] = dilate && chance(30);
  int padded = (n ? (n - 1) * w->base[d] + 1 : 0) + w->low[d] + w->high[d],
      reach = (w->size[d] - 1) * w->dilation[d] + 1;
  return padded < reach || padded <= 0 ? 0 : (padded - reach) / w->stride[d] + 1;
}

static void put_window(const window *w, int n) {
  put("window={");
  if (n) put("size=");
  for (int i = 0; i < n; i++) put("%s%d", i ? "x" : "", w->size[i]);
  if (n) {
    put_window_field("stride", w->stride, n);
    put(" pad=");
    for (int i = 0; i < n; i++) put("%s%d_%d", i ? "x" : "", w->low[i], w->high[i]);
    put_window_field("lhs_dilate", w->base, n);
    put_window_field("rhs_dilate", w->dilation, n);
    put_window_field("rhs_reversal", w->reversed, n);
  }
  put("}");
}

static void reduce_window(body *b) {
  array x = pick(b, 'f'), s = scalar(b, 'f'), r = x;
  window w;
  for (int d = 0; d < x.rank; d++) r.dims[d] = draw_window(&w, d, x.dims[d], true);
  if (elements(&r) > MOST_ELEMENTS) return;
  begin(&r);
  put("reduce-window(v%d, v%d), ", x.id, s.id);
  put_window(&w, x.rank);
  put(", to_apply=sum\n");
  keep(b, r);
}

static void select_and_scatter(body *b) {
  array x = pick(b, 'f'), s = scalar(b, 'f'), r = x, places = x;
  window w;
  if (x.rank > 2) return;
  for (int d = 0; d < x.rank; d++) places.dims[d] = draw_window(&w, d, x.dims[d], false);
  if (elements(&places) > MOST_ELEMENTS) return;
  array u = like(b, places);
  begin(&r);
  put("select-and-scatter(v%d, v%d, v%d), ", x.id, u.id, s.id);
  put_window(&w, x.rank);
  put(", select=less, scatter=sum\n");
  keep(b, r);
}

// Batch, contracting and free dims of both sides, each side's in an order of its own.
static void dot(body *b) {
  int batch = (int)below(2), sum = (int)below(3), free_l = (int)below(2), free_r = (int)below(2);
  int nl = batch + sum + free_l, nr = batch + sum + free_r, at_l[MOST_RANK], at_r[MOST_RANK];
  array l = {.type = 'f', .rank = nl}, r = {.type = 'f', .rank = nr}, to = {.type = 'f'};
  shuffle(at_l, nl);
  shuffle(at_r, nr);
  for (int i = 0; i < batch + sum; i++) l.dims[at_l[i]] = r.dims[at_r[i]] = chance(3) ? 0 : 1 + (int)below(3);
  for (int i = batch + sum; i < nl; i++) l.dims[at_l[i]] = 1 + (int)below(3);
  for (int i = batch + sum; i < nr; i++) r.dims[at_r[i]] = 1 + (int)below(3);
  for (int i = 0; i < batch; i++) to.dims[to.rank++] = l.dims[at_l[i]];
  for (int i = batch + sum; i < nl; i++) to.dims[to.rank++] = l.dims[at_l[i]];
  for (int i = batch + sum; i < nr; i++) to.dims[to.rank++] = r.dims[at_r[i]];
  l = like(b, l);
  r = like(b, r);
  begin(&to);
  put("dot(v%d, v%d), ", l.id, r.id);
  put_list("lhs_batch_dims", at_l, batch);
  put(", ");
  put_list("rhs_batch_dims", at_r, batch);
  put(", ");
  put_list("lhs_contracting_dims", at_l + batch, sum);
  put(", ");
  put_list("rhs_contracting_dims", at_r + batch, sum);
  put("\n");
  keep(b, to);
}

static void put_labels(const char *names, const int *at, int n) {
  char text[MOST_RANK + 1] = "";
  for (int i = 0; i < n; i++) text[at[i]] = names[i];
  put("%s", text);
}

static void convolution(body *b) {
  int spatial = (int)below(3), rank = spatial + 2, in[MOST_RANK], ker[MOST_RANK], to[MOST_RANK];
  int groups = 1 + (int)below(2), which = (int)below(3), batch = 1 + (int)below(2), features = 1 + (int)below(2);
  int outputs = groups * (1 + (int)below(2));
  array x = {.type = 'f', .rank = rank}, k = x, r = x;
  window w;
  shuffle(in, rank);
  shuffle(ker, rank);
  shuffle(to, rank);
  x.dims[in[0]] = batch * (which == 1 ? groups : 1);
  x.dims[in[1]] = features * (which == 0 ? groups : 1);
  k.dims[ker[0]] = features;
  k.dims[ker[1]] = outputs;
  r.dims[to[0]] = batch;
  r.dims[to[1]] = outputs;
  for (int i = 0; i < spatial; i++) {
    x.dims[in[2 + i]] = chance(3) ? 0 : 1 + (int)below(4);
    r.dims[to[2 + i]] = draw_window(&w, i, x.dims[in[2 + i]], true);
    k.dims[ker[2 + i]] = w.size[i];
  }
  if (elements(&x) > MOST_ELEMENTS || elements(&k) > MOST_ELEMENTS || elements(&r) > MOST_ELEMENTS) return;
  x = like(b, x);
  k = like(b, k);
  begin(&r);
  put("convolution(v%d, v%d), ", x.id, k.id);
  put_window(&w, spatial);
  put(", dim_labels=");
  put_labels("bf01", in, rank);
  put("_");
  put_labels("io01", ker, rank);
  put("->");
  put_labels("bf01", to, rank);
  if (which == 0) put(", feature_group_count=%d", groups);
  if (which == 1) put(", batch_group_count=%d", groups);
  put("\n");
  keep(b, r);
}

static void sort(body *b) {
  array x = pick(b, 'f'), r = x;
  if (!x.rank) return;
  begin(&r);
  put("sort(v%d), dimensions={%d}, to_apply=less\n", x.id, (int)below((uint32_t)x.rank));
  keep(b, r);
}

// Starts: scalars, or one array of them; drawn before the instruction begins.
typedef struct starts {
  int n, id[MOST_RANK];
} starts;

static starts draw_starts(body *b, int rank) {
  starts s = {0};
  if (rank && chance(25)) {
    s.id[s.n++] = like(b, (array){.type = 'i', .rank = 1, .dims = {rank}}).id;
    return s;
  }
  for (int d = 0; d < rank; d++) s.id[s.n++] = scalar(b, 'i').id;
  return s;
}

static void dynamic_slice(body *b) {
  array x = pick(b, any_type()), r = x;
  int size[MOST_RANK];
  for (int d = 0; d < x.rank; d++) r.dims[d] = size[d] = some(x.dims[d]);
  starts s = draw_starts(b, x.rank);
  begin(&r);
  put("dynamic-slice(v%d", x.id);
  for (int i = 0; i < s.n; i++) put(", v%d", s.id[i]);
  put("), ");
  put_list("dynamic_slice_sizes", size, x.rank);
  put("\n");
  keep(b, r);
}

static void dynamic_update_slice(body *b) {
  array x = pick(b, any_type()), u = x, r = x;
  for (int d = 0; d < x.rank; d++) u.dims[d] = some(x.dims[d]);
  u = like(b, u);
  starts s = draw_starts(b, x.rank);
  begin(&r);
  put("dynamic-update-slice(v%d, v%d", x.id, u.id);
  for (int i = 0; i < s.n; i++) put(", v%d", s.id[i]);
  put(")\n");
  keep(b, r);
}

// What gather and scatter share: for each dim of the array how it is looked at, and where things lie.
typedef struct lookup {
  int entries, start_map[MOST_RANK];  // of the index vector
  int gone, collapsed[MOST_RANK];     // neither offset nor batching
  int nbatching, batching[MOST_RANK]; // dims of the array
  int batching_at[MOST_RANK];         // dims of the indices
  int nsizes, size[MOST_RANK];        // of the window, by dim of the array
  int nwindow, window[MOST_RANK];     // sizes of the dims that stay
  int nbatch, batch[MOST_RANK];       // dims of the indices without the vector
  int vector;                         // index_vector_dim
  array indices;
  int noffset, offset[MOST_RANK + 1]; // dims of the other side that are window dims
  array other;                        // result of gather, updates of scatter
} lookup;

static bool draw_lookup(body *b, const array *x, lookup *l) {
  *l = (lookup){0};
  int entry[MOST_RANK], order[MOST_RANK], where[MOST_RANK];
  for (int d = 0; d < x->rank; d++) {
    l->size[d] = chance(50) && x->dims[d] ? 1 : some(x->dims[d]);
    bool batching = x->dims[d] > 0 && l->nbatching < 2 && chance(25);
    if (batching) {
      l->size[d] = 1;
      l->batching[l->nbatching] = d;
      l->batch[l->nbatch++] = x->dims[d];
      l->nbatching++;
      continue;
    }
    if (chance(70)) entry[l->entries++] = d;
    if (l->size[d] == 1 && chance(60))
      l->collapsed[l->gone++] = d;
    else
      l->window[l->nwindow++] = l->size[d];
  }
  l->nsizes = x->rank;
  while (l->nbatch < 2 && chance(60)) l->batch[l->nbatch++] = chance(4) ? 0 : 1 + (int)below(3);
  shuffle(order, l->entries);
  for (int i = 0; i < l->entries; i++) l->start_map[i] = entry[order[i]];
  // The batch dims in a new order, and the index vector somewhere between.
  int sizes[MOST_RANK];
  memcpy(sizes, l->batch, sizeof sizes);
  shuffle(where, l->nbatch);
  for (int i = 0; i < l->nbatch; i++) l->batch[where[i]] = sizes[i];
  bool implicit = l->entries == 1 && chance(30);
  l->vector = implicit ? l->nbatch : (int)below((uint32_t)l->nbatch + 1);
  l->indices = (array){.type = 'i'};
  for (int i = 0; i <= l->nbatch; i++) {
    if (i == l->vector && !implicit) l->indices.dims[l->indices.rank++] = l->entries;
    if (i < l->nbatch) l->indices.dims[l->indices.rank++] = l->batch[i];
  }
  for (int i = 0; i < l->nbatching; i++) l->batching_at[i] = where[i] + (!implicit && where[i] >= l->vector);
  // The other side: batch and window dims, both in order, mixed.
  l->other = (array){.type = x->type};
  int nb = 0, nw = 0;
  if (l->nbatch + l->nwindow > MOST_RANK || l->indices.rank > MOST_RANK) return false;
  while (nb < l->nbatch || nw < l->nwindow) {
    bool batch = nw == l->nwindow || (nb < l->nbatch && chance(50));
    if (!batch) l->offset[l->noffset++] = l->other.rank;
    l->other.dims[l->other.rank++] = batch ? l->batch[nb++] : l->window[nw++];
  }
  return elements(&l->other) <= MOST_ELEMENTS && elements(&l->indices) <= MOST_ELEMENTS;
}

static void gather(body *b) {
  array x = pick(b, any_type());
  lookup l;
  if (!draw_lookup(b, &x, &l)) return;
  array i = like(b, l.indices), r = l.other;
  begin(&r);
  put("gather(v%d, v%d), ", x.id, i.id);
  put_list("offset_dims", l.offset, l.noffset);
  put(", ");
  put_list("collapsed_slice_dims", l.collapsed, l.gone);
  put(", ");
  put_list("start_index_map", l.start_map, l.entries);
  put(", ");
  put_list("operand_batching_dims", l.batching, l.nbatching);
  put(", ");
  put_list("start_indices_batching_dims", l.batching_at, l.nbatching);
  put(", index_vector_dim=%d, ", l.vector);
  put_list("slice_sizes", l.size, l.nsizes);
  put("\n");
  keep(b, r);
}

static void scatter(body *b) {
  array x = pick(b, 'f');
  lookup l;
  if (!draw_lookup(b, &x, &l)) return;
  array i = like(b, l.indices), u = like(b, l.other), r = x;
  begin(&r);
  put("scatter(v%d, v%d, v%d), ", x.id, i.id, u.id);
  put_list("update_window_dims", l.offset, l.noffset);
  put(", ");
  put_list("inserted_window_dims", l.collapsed, l.gone);
  put(", ");
  put_list("scatter_dims_to_operand_dims", l.start_map, l.entries);
  put(", ");
  put_list("input_batching_dims", l.batching, l.nbatching);
  put(", ");
  put_list("scatter_indices_batching_dims", l.batching_at, l.nbatching);
  put(", index_vector_dim=%d, to_apply=sum\n", l.vector);
  keep(b, r);
}

static void add_ops(body *b, int ops);

// A fusion or a call of a computation of its own, written where its name would be; one result or two.
static void call(body *b) {
  if (b->depth >= MOST_DEPTH) return;
  int n = 1 + (int)below(3), id = ids++;
  array args[3];
  body inner = {.depth = b->depth + 1};
  for (int i = 0; i < n; i++) args[i] = pick(b, any_type());
  bool tuple = chance(40);
  static char saved[MOST_DEPTH][1 << 14]; // the type of the result is known once its computation is
  char *keep_out = out;
  size_t keep_room = room;
  out = saved[b->depth], room = sizeof saved[b->depth];
  for (int i = 0; i < n; i++) {
    array p = args[i];
    begin(&p);
    put("parameter(%d)\n", i);
    keep(&inner, p);
  }
  add_ops(&inner, 1 + (int)below(3));
  array first = inner.v[inner.n - 1], second = inner.v[below((uint32_t)inner.n)];
  array root = first;
  if (tuple) {
    put("  ROOT v%d = (", ids++);
    put_type(&first);
    put(", ");
    put_type(&second);
    put(") tuple(v%d, v%d)\n", first.id, second.id);
  } else {
    root.id = ids++;
    put("  ROOT v%d = ", root.id);
    put_type(&root);
    put(" copy(v%d)\n", first.id);
  }
  size_t length = (size_t)(out - saved[b->depth]);
  out = keep_out, room = keep_room;
  put("  v%d = ", id);
  if (tuple) put("(");
  put_type(&first);
  if (tuple) put(", "), put_type(&second), put(")");
  bool fusion = chance(60);
  put(" %s(", fusion ? "fusion" : "call");
  for (int i = 0; i < n; i++) put("%sv%d", i ? ", " : "", args[i].id);
  put("), %s={\n%.*s}\n", fusion ? "kind=kLoop, calls" : "to_apply", (int)length, saved[b->depth]);
  array r[2] = {first, second};
  r[0].id = id;
  for (int i = 0; tuple && i < 2; i++) {
    begin(&r[i]);
    put("get-tuple-element(v%d), index=%d\n", id, i);
  }
  for (int i = 0; i < 1 + tuple; i++) keep(b, r[i]);
}

static void add_ops(body *b, int ops) {
  static void (*const all[])(body *) = {elementwise,   elementwise,
                                        broadcast,     reshape,
                                        reshape,       transpose,
                                        bitcast,       slice,
                                        reverse,       concatenate,
                                        pad,           reduce,
                                        reduce_window, select_and_scatter,
                                        dot,           convolution,
                                        sort,          gather,
                                        scatter,       dynamic_slice,
                                        dynamic_slice, dynamic_update_slice,
                                        call,          call};
  for (int i = 0; i < ops; i++) all[below(sizeof all / sizeof *all)](b);
}

int random_module(uint64_t from, int ops, char *text, size_t size) {
  seed = from;
  out = text, room = size, ids = 0, params = 0, full = false;
  put("HloModule m\n"
      "sum { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"
      "less { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = pred[] compare(x, y), direction=LT }\n"
      "ENTRY e {\n");
  body b = {0};
  add_ops(&b, ops);
  array root = b.n ? b.v[b.n - 1] : source(&b, random_array('f', 3));
  put("  ROOT r = ");
  put_type(&root);
  put(" copy(v%d)\n}\n", root.id);
  return !full;
}
