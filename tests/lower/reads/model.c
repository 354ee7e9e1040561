#include "model.h"
#include "places.h"

#include <string.h>

enum { RANK = KILN_MAX_RANK + 1 };

// --- arrays -------------------------------------------------------------------------------------------------------

static int64_t linear(const kl_shape *s, const int64_t *x) {
  int64_t at = 0;
  for (uint32_t d = 0; d < s->rank; d++) at = at * s->dims[d] + x[d];
  return at;
}

static int64_t elements(const kl_shape *s) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s->rank; d++) n *= s->dims[d];
  return n;
}

// Begins at zeros; false where there is no index at all.
static bool first(uint32_t rank, const int64_t *dims, int64_t *x) {
  for (uint32_t d = 0; d < rank; d++) {
    x[d] = 0;
    if (dims[d] <= 0) return false;
  }
  return true;
}

static bool next(uint32_t rank, const int64_t *dims, int64_t *x) {
  for (uint32_t d = rank; d-- > 0;) {
    if (++x[d] < dims[d]) return true;
    x[d] = 0;
  }
  return false;
}

static int find(kl_ints list, int64_t v) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.p[i] == v) return (int)i;
  return -1;
}

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// --- one instruction looked at ------------------------------------------------------------------------------------

typedef struct look {
  model *s;
  uint32_t frame;
  const kl_comp *c;
  const kl_instr *in;
  uint32_t leaf;
  const kl_shape *out;
  const int64_t *x; // index of the element in `out`
} look;

static const kl_shape *shape_of(const look *k, uint32_t operand) {
  return kl_operand(k->c, k->in, operand)->shape;
}

static void edge(model *s, model_edge e) {
  if (s->nedges == s->most_edges) {
    s->most_edges = s->most_edges ? 2 * s->most_edges : 1024;
    s->edges = realloc(s->edges, (size_t)s->most_edges * sizeof *s->edges);
  }
  s->edges[s->nedges++] = e;
}

static void take(const look *k, uint32_t operand, uint32_t leaf, const int64_t *y) {
  const kl_shape *s = kl_shape_leaf(shape_of(k, operand), leaf);
  for (uint32_t d = 0; d < s->rank; d++)
    EXPECT(y[d] >= 0 && y[d] < s->dims[d], "the model reads outside of operand %u of %s", operand,
           kl_op_name(k->in->op));
  edge(k->s, (model_edge){operand, leaf, linear(s, y)});
}

static void take_same(const look *k, uint32_t operand) {
  take(k, operand, 0, k->x);
}

static void take_all(const look *k, uint32_t operand) {
  const kl_shape *s = shape_of(k, operand);
  int64_t y[RANK];
  if (first(s->rank, s->dims, y)) do
      take(k, operand, 0, y);
    while (next(s->rank, s->dims, y));
}

// An element of an operand as an integer.
static int64_t integer(const look *k, uint32_t operand, const int64_t *y) {
  const model_value *v = model_find(k->s, k->frame, k->in->operands[operand], 0);
  return model_integer(k->s, v->first + linear(v->shape, y));
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) {
  v = v > hi ? hi : v;
  return v < lo ? lo : v;
}

// --- movement -----------------------------------------------------------------------------------------------------

static void elementwise(const look *k) {
  for (uint32_t i = 0; i < k->in->noperands; i++) take_same(k, i); // rank 0: the index is not looked at
}

static void bitcast_convert(const look *k) {
  const kl_shape *from = shape_of(k, 0);
  int64_t y[RANK];
  memcpy(y, k->x, sizeof(int64_t) * k->out->rank);
  if (from->rank <= k->out->rank)
    take(k, 0, 0, y);
  else
    for (y[from->rank - 1] = 0; y[from->rank - 1] < from->dims[from->rank - 1]; y[from->rank - 1]++) take(k, 0, 0, y);
}

static void broadcast(const look *k) {
  int64_t y[RANK];
  for (uint32_t d = 0; d < k->in->ndims; d++) y[d] = k->x[k->in->dims[d]];
  take(k, 0, 0, y);
}

static void reshape(const look *k) {
  edge(k->s, (model_edge){0, 0, linear(k->out, k->x)});
}

// All elements of the operand that have a bit in common with this one.
static void bitcast(const look *k) {
  const kl_shape *from = shape_of(k, 0);
  int64_t wide = kl_info(k->out->dtype)->bits, narrow = kl_info(from->dtype)->bits, nto, nfrom, at = 0;
  int64_t *to = places_of(k->out, &nto), *of = places_of(from, &nfrom), x = linear(k->out, k->x);
  while (to[at] != x) at++;
  for (int64_t i = 0; i < nfrom; i++)
    if (of[i] >= 0 && i * narrow < (at + 1) * wide && (i + 1) * narrow > at * wide)
      edge(k->s, (model_edge){0, 0, of[i]});
  free(to);
  free(of);
}

static void transpose(const look *k) {
  int64_t y[RANK];
  for (uint32_t d = 0; d < k->in->ndims; d++) y[k->in->dims[d]] = k->x[d];
  take(k, 0, 0, y);
}

static void slice(const look *k) {
  int64_t y[RANK];
  for (uint32_t d = 0; d < k->out->rank; d++) y[d] = k->in->slice[d].start + k->x[d] * k->in->slice[d].stride;
  take(k, 0, 0, y);
}

static void reverse(const look *k) {
  int64_t y[RANK];
  memcpy(y, k->x, sizeof(int64_t) * k->out->rank);
  for (uint32_t i = 0; i < k->in->ndims; i++) {
    int64_t d = k->in->dims[i];
    y[d] = k->out->dims[d] - 1 - y[d];
  }
  take(k, 0, 0, y);
}

static void concatenate(const look *k) {
  int64_t y[RANK], d = k->in->dims[0];
  memcpy(y, k->x, sizeof(int64_t) * k->out->rank);
  for (uint32_t i = 0; i < k->in->noperands; i++) {
    int64_t n = shape_of(k, i)->dims[d];
    if (y[d] < n) {
      take(k, i, 0, y);
      return;
    }
    y[d] -= n;
  }
}

static void pad(const look *k) {
  const kl_shape *s = shape_of(k, 0);
  int64_t y[RANK];
  for (uint32_t d = 0; d < s->rank; d++) {
    kl_pad_dim p = k->in->pad[d];
    for (y[d] = 0; y[d] < s->dims[d] && p.low + y[d] * (p.interior + 1) != k->x[d];) y[d]++;
    if (y[d] < s->dims[d]) continue;
    take(k, 1, 0, NULL);
    return;
  }
  take(k, 0, 0, y);
}

static void tuple(const look *k) {
  uint32_t leaf = 0;
  for (uint32_t i = 0; i < k->in->noperands; i++)
    for (uint32_t l = 0; l < kl_shape_leaf_count(shape_of(k, i)); l++, leaf++)
      if (leaf == k->leaf) take(k, i, l, k->x);
}

static void get_tuple_element(const look *k) {
  uint32_t leaf = k->leaf;
  for (int64_t i = 0; i < k->in->number; i++) leaf += (uint32_t)kl_shape_leaf_count(shape_of(k, 0)->elems[i]);
  take(k, 0, leaf, k->x);
}

static void forward(const look *k) {
  take(k, 0, k->leaf, k->x);
}

static void copy_async(const look *k) {
  if (k->leaf < 2) take(k, 0, 0, k->x);
}

// --- contractions -------------------------------------------------------------------------------------------------

typedef struct dot {
  const kl_more *m;
  const kl_shape *lhs, *rhs;
  int64_t l[RANK], r[RANK]; // indices
} dot;

// Free and batch dims from the result's index, behind `skip` dims of it.
static void dot_index(const look *k, dot *d, uint32_t skip) {
  uint32_t at = skip;
  for (uint32_t i = 0; i < d->m->lhs_batch.n; i++, at++)
    d->l[d->m->lhs_batch.p[i]] = d->r[d->m->rhs_batch.p[i]] = k->x[at];
  for (uint32_t i = 0; i < d->lhs->rank; i++)
    if (find(d->m->lhs_batch, i) < 0 && find(d->m->lhs_contracting, i) < 0) d->l[i] = k->x[at++];
  for (uint32_t i = 0; i < d->rhs->rank; i++)
    if (find(d->m->rhs_batch, i) < 0 && find(d->m->rhs_contracting, i) < 0 && find(d->m->rhs_group, i) < 0)
      d->r[i] = k->x[at++];
}

static void take_scale(const look *k, uint32_t operand, const kl_shape *of, const int64_t *x) {
  const kl_shape *s = shape_of(k, operand);
  int64_t y[RANK];
  for (uint32_t d = 0; d < s->rank; d++) y[d] = x[d] / (of->dims[d] / s->dims[d]);
  take(k, operand, 0, y);
}

// Sums over contracted dims; of lhs dim `ragged`, if it is one of them, only lo..hi-1.
static void dot_sum(const look *k, dot *d, int64_t ragged, int64_t lo, int64_t hi) {
  int64_t n[RANK], c[RANK];
  uint32_t sum = d->m->lhs_contracting.n;
  for (uint32_t i = 0; i < sum; i++) n[i] = d->lhs->dims[d->m->lhs_contracting.p[i]];
  if (first(sum, n, c)) do {
      for (uint32_t i = 0; i < sum; i++) d->l[d->m->lhs_contracting.p[i]] = d->r[d->m->rhs_contracting.p[i]] = c[i];
      if (ragged >= 0 && (d->l[ragged] < lo || d->l[ragged] >= hi)) continue;
      take(k, 0, 0, d->l);
      take(k, 1, 0, d->r);
      if (k->in->op != KL_OP_SCALED_DOT) continue;
      take_scale(k, 2, d->lhs, d->l);
      take_scale(k, 3, d->rhs, d->r);
    } while (next(sum, n, c));
}

// Group g of one list of sizes begins where those before it end.
static void ragged_dot(const look *k, dot *d) {
  const kl_shape *sizes = shape_of(k, 2);
  int64_t ragged = d->m->lhs_ragged.p[0], groups = sizes->dims[sizes->rank - 1], y[RANK] = {0};
  bool contracting = find(d->m->lhs_contracting, ragged) >= 0;
  dot_index(k, d, contracting);
  if (find(d->m->lhs_batch, ragged) >= 0) {
    dot_sum(k, d, -1, 0, 0);
    return;
  }
  int64_t from = 0;
  for (int64_t g = 0; g < groups; g++) {
    y[sizes->rank - 1] = g;
    take(k, 2, 0, y);
    int64_t n = integer(k, 2, y), to = from + (n < 0 ? 0 : n);
    if (contracting && g == k->x[0]) {
      dot_sum(k, d, ragged, from, to);
      return;
    }
    if (!contracting && d->l[ragged] >= from && d->l[ragged] < to) {
      d->r[d->m->rhs_group.p[0]] = g;
      dot_sum(k, d, -1, 0, 0);
      return;
    }
    from = to;
  }
}

static void any_dot(const look *k) {
  dot d = {.m = k->in->more, .lhs = shape_of(k, 0), .rhs = shape_of(k, 1)};
  if (k->in->op == KL_OP_RAGGED_DOT) {
    ragged_dot(k, &d);
    return;
  }
  dot_index(k, &d, 0);
  dot_sum(k, &d, -1, 0, 0);
}

// --- windows ------------------------------------------------------------------------------------------------------

// What offset s of the window at place x meets: an element, or a hole or padding.
static bool meets(const kl_window_dim *w, int64_t x, int64_t s, int64_t n, int64_t *at) {
  for (int64_t i = 0; i < n; i++) {
    if (w->low + i * w->base_dilation != x * w->stride + s * w->window_dilation) continue;
    *at = i;
    return true;
  }
  return false;
}

static void reduce_window(const look *k) {
  const kl_shape *s = shape_of(k, 0);
  const kl_window_dim *w = k->in->more->window;
  uint32_t inputs = k->in->noperands / 2;
  int64_t size[RANK], o[RANK], y[RANK];
  for (uint32_t i = inputs; i < 2 * inputs; i++) take(k, i, 0, NULL);
  for (uint32_t d = 0; d < s->rank; d++) size[d] = w[d].size;
  if (first(s->rank, size, o)) do {
      bool in = true;
      for (uint32_t d = 0; d < s->rank; d++) in = in && meets(&w[d], k->x[d], o[d], s->dims[d], &y[d]);
      for (uint32_t i = 0; in && i < inputs; i++) take(k, i, 0, y);
    } while (next(s->rank, size, o));
}

static void convolution(const look *k) {
  const kl_more *m = k->in->more;
  const kl_conv_dims *c = m->conv;
  const kl_shape *input = shape_of(k, 0), *kernel = shape_of(k, 1);
  int64_t o[RANK], size[RANK], y[RANK], t[RANK];
  int64_t channel = k->x[c->result_feature], features = kernel->dims[c->kernel_input];
  int64_t per_feature_group = kernel->dims[c->kernel_output] / m->feature_groups;
  int64_t per_batch_group = kernel->dims[c->kernel_output] / m->batch_groups;
  for (uint32_t i = 0; i < c->n; i++) size[i] = m->window[i].size;
  size[c->n] = features;
  if (first(c->n + 1, size, o)) do {
      bool in = true;
      for (uint32_t i = 0; i < c->n; i++) {
        const kl_window_dim *w = &m->window[i];
        in = in && meets(w, k->x[c->result[i]], o[i], input->dims[c->input[i]], &y[c->input[i]]);
        t[c->kernel[i]] = w->reversed ? size[i] - 1 - o[i] : o[i];
      }
      if (!in) continue;
      t[c->kernel_input] = o[c->n];
      t[c->kernel_output] = channel;
      y[c->input_feature] = channel / per_feature_group * features + o[c->n];
      y[c->input_batch] =
          channel / per_batch_group * (input->dims[c->input_batch] / m->batch_groups) + k->x[c->result_batch];
      take(k, 0, 0, y);
      take(k, 1, 0, t);
    } while (next(c->n + 1, size, o));
}

// All of every window that covers the element is compared; the source is taken if this one is selected.
static void select_and_scatter(const look *k) {
  const kl_shape *source = shape_of(k, 1);
  const kl_window_dim *w = k->in->more->window;
  int64_t p[RANK], o[RANK], size[RANK], y[RANK];
  take(k, 2, 0, NULL);
  for (uint32_t d = 0; d < k->out->rank; d++) size[d] = w[d].size;
  if (!first(source->rank, source->dims, p)) return;
  do {
    bool covers = true;
    for (uint32_t d = 0; d < k->out->rank; d++) {
      int64_t begin = p[d] * w[d].stride - w[d].low;
      covers = covers && k->x[d] >= begin && k->x[d] < begin + size[d];
    }
    if (!covers || !first(k->out->rank, size, o)) continue;
    uint64_t best = 0, mine = mix((uint64_t)linear(k->out, k->x));
    do {
      bool in = true;
      for (uint32_t d = 0; d < k->out->rank; d++) {
        y[d] = p[d] * w[d].stride - w[d].low + o[d];
        in = in && y[d] >= 0 && y[d] < k->out->dims[d];
      }
      if (!in) continue;
      take(k, 0, 0, y);
      uint64_t h = mix((uint64_t)linear(k->out, y));
      best = h > best ? h : best;
    } while (next(k->out->rank, size, o));
    if (best == mine) take(k, 1, 0, p);
  } while (next(source->rank, source->dims, p));
}

// --- reductions, scans, orders ------------------------------------------------------------------------------------

static void reduce(const look *k) {
  uint32_t inputs = k->in->noperands / 2;
  const kl_shape *s = shape_of(k, 0);
  kl_ints dims = {k->in->ndims, k->in->dims};
  int64_t y[RANK];
  for (uint32_t i = inputs; i < 2 * inputs; i++) take(k, i, 0, NULL);
  if (first(s->rank, s->dims, y)) do {
      uint32_t kept = 0;
      bool mine = true;
      for (uint32_t d = 0; d < s->rank; d++)
        if (find(dims, d) < 0) mine = mine && y[d] == k->x[kept++];
      for (uint32_t i = 0; mine && i < inputs; i++) take(k, i, 0, y);
    } while (next(s->rank, s->dims, y));
}

// Does the step of a scan mix the elements of its slices?
static bool mixes(const look *k) {
  const kl_comp *c = &k->s->m->comp[k->in->called[0]];
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_REVERSE || c->instr[i].op == KL_OP_TRANSPOSE || c->instr[i].op == KL_OP_REDUCE)
      return true;
  return false;
}

// Line by line: elements of a slice with the same index, but for `along`.
static void scan(const look *k) {
  uint32_t carries = (uint32_t)k->in->more->carries, inputs = k->in->noperands - carries;
  uint32_t outputs = (uint32_t)kl_shape_leaf_count(k->in->shape) - carries;
  bool last = k->leaf >= outputs, all = mixes(k);
  int64_t along = k->in->dims[0], y[RANK];
  for (uint32_t i = 0; i < k->in->noperands; i++) {
    const kl_shape *s = shape_of(k, i);
    if (!first(s->rank, s->dims, y)) continue;
    do {
      bool mine = true, carry = i >= inputs;
      uint32_t from = 0, to = 0;
      while (from < s->rank || to < k->out->rank) { // dims but `along` of both, side by side
        if (!carry && from == along) from++;
        if (!last && to == along) to++;
        if (from < s->rank) mine = mine && (all || y[from] == k->x[to]);
        from++, to++;
      }
      if (!carry && !last) mine = mine && (k->in->more->is_reverse ? y[along] >= k->x[along] : y[along] <= k->x[along]);
      if (mine) take(k, i, 0, y);
    } while (next(s->rank, s->dims, y));
  }
}

// Some order of each line, the same for all operands.
static void ordered(const look *k, int64_t along, uint32_t operand) {
  const kl_shape *s = shape_of(k, operand);
  int64_t y[RANK], line = 0, n = s->dims[along];
  memcpy(y, k->x, sizeof(int64_t) * s->rank);
  for (uint32_t d = 0; d < s->rank; d++)
    if (d != along) line = line * s->dims[d] + y[d];
  y[along] = (y[along] + (int64_t)(mix((uint64_t)line) % (uint64_t)n)) % n;
  take(k, operand, 0, y);
}

// --- places that data says ----------------------------------------------------------------------------------------

static int64_t start_of(const look *k, uint32_t begin, uint32_t d, int64_t n, int64_t size) {
  int64_t at = d;
  bool scalars = shape_of(k, begin)->rank == 0;
  return clamp(integer(k, scalars ? begin + d : begin, &at), 0, n - size);
}

static void take_starts(const look *k, uint32_t begin) {
  for (uint32_t i = begin; i < k->in->noperands; i++) take_all(k, i);
}

static void dynamic_slice(const look *k) {
  const kl_shape *s = shape_of(k, 0);
  int64_t y[RANK];
  for (uint32_t d = 0; d < s->rank; d++) y[d] = k->x[d] + start_of(k, 1, d, s->dims[d], k->out->dims[d]);
  take(k, 0, 0, y);
  take_starts(k, 1);
}

static void dynamic_update_slice(const look *k) {
  const kl_shape *s = shape_of(k, 1);
  int64_t y[RANK];
  bool inside = true;
  for (uint32_t d = 0; d < s->rank; d++) {
    y[d] = k->x[d] - start_of(k, 2, d, k->out->dims[d], s->dims[d]);
    inside = inside && y[d] >= 0 && y[d] < s->dims[d];
  }
  take(k, inside ? 1 : 0, 0, inside ? y : k->x);
  take_starts(k, 2);
}

// Indices are vectors along index_vector_dim, or scalars where that is the rank; `b`: index of the vector.
static bool gather_start(const look *k, uint32_t indices, const kl_shape *array, const int64_t *b, const int64_t *size,
                         bool clamped, int64_t *start) {
  const kl_more *m = k->in->more;
  const kl_shape *s = shape_of(k, indices);
  bool inside = true;
  for (uint32_t d = 0; d < array->rank; d++) {
    int64_t y[RANK];
    int entry = find(m->start_index_map, d), batch = find(m->operand_batching_dims, d);
    start[d] = 0;
    if (entry >= 0) {
      uint32_t n = 0;
      for (uint32_t i = 0; i < s->rank; i++) y[i] = i == m->index_vector_dim ? entry : b[n++];
      start[d] = integer(k, indices, y);
      if (clamped) start[d] = clamp(start[d], 0, array->dims[d] - size[d]);
    } else if (batch >= 0) {
      int64_t at = m->indices_batching_dims.p[batch];
      start[d] = b[at > m->index_vector_dim ? at - 1 : at];
    }
    inside = inside && start[d] >= 0 && start[d] <= array->dims[d] - size[d];
  }
  return inside;
}

static void gather(const look *k) {
  const kl_more *m = k->in->more;
  const kl_shape *array = shape_of(k, 0), *indices = shape_of(k, 1);
  int64_t b[RANK], o[RANK], start[RANK], y[RANK];
  uint32_t nb = 0, no = 0;
  for (uint32_t d = 0; d < k->out->rank; d++)
    if (find(m->offset_dims, d) < 0)
      b[nb++] = k->x[d];
    else
      o[no++] = k->x[d];
  gather_start(k, 1, array, b, m->sizes.p, true, start);
  no = 0;
  for (uint32_t d = 0; d < array->rank; d++) {
    bool gone = find(m->collapsed_dims, d) >= 0 || find(m->operand_batching_dims, d) >= 0;
    y[d] = start[d] + (gone ? 0 : o[no++]);
  }
  take(k, 0, 0, y);
  bool vector = m->index_vector_dim < indices->rank;
  int64_t n = vector ? indices->dims[m->index_vector_dim] : 1;
  for (int64_t i = 0; i < n; i++) {
    nb = 0;
    for (uint32_t d = 0; d < indices->rank; d++) y[d] = d == m->index_vector_dim ? i : b[nb++];
    take(k, 1, 0, y);
  }
}

static void scatter(const look *k) {
  const kl_more *m = k->in->more;
  uint32_t n = (k->in->noperands - 1) / 2;
  const kl_shape *array = shape_of(k, 0), *updates = shape_of(k, n + 1);
  int64_t u[RANK], b[RANK], size[RANK], offset[RANK], start[RANK];
  for (uint32_t i = 0; i < n; i++) take_same(k, i);
  take_all(k, n);
  if (!first(updates->rank, updates->dims, u)) return;
  do {
    uint32_t nb = 0, nw = 0;
    for (uint32_t d = 0; d < updates->rank; d++)
      if (find(m->offset_dims, d) < 0) b[nb++] = u[d];
    for (uint32_t d = 0; d < array->rank; d++) {
      size[d] = 1, offset[d] = 0;
      if (find(m->collapsed_dims, d) >= 0 || find(m->operand_batching_dims, d) >= 0) continue;
      while (find(m->offset_dims, nw) < 0) nw++;
      size[d] = updates->dims[nw];
      offset[d] = u[nw++];
    }
    bool mine = gather_start(k, n, array, b, size, false, start);
    for (uint32_t d = 0; d < array->rank; d++) mine = mine && start[d] + offset[d] == k->x[d];
    for (uint32_t i = 0; mine && i < n; i++) take(k, n + 1 + i, 0, u);
  } while (next(updates->rank, updates->dims, u));
}

// --- the rest -----------------------------------------------------------------------------------------------------

// Every element with the feature of x.
static void take_feature(const look *k, uint32_t operand, int64_t feature) {
  const kl_shape *s = shape_of(k, operand);
  int64_t y[RANK];
  if (first(s->rank, s->dims, y)) do
      if (y[k->in->more->feature_index] == feature) take(k, operand, 0, y);
    while (next(s->rank, s->dims, y));
}

static void batch_norm(const look *k) {
  int64_t f = k->leaf ? k->x[0] : k->x[k->in->more->feature_index];
  if (k->in->op == KL_OP_BATCH_NORM_GRAD) { // operand, scale, mean, variance, gradient
    take_feature(k, 4, f);
    if (k->leaf == 2) return;
    take_feature(k, 0, f);
    for (uint32_t i = k->leaf ? 2 : 1; i < 4; i++) take(k, i, 0, &f);
    return;
  }
  if (k->in->op == KL_OP_BATCH_NORM_TRAINING)
    take_feature(k, 0, f);
  else
    take_same(k, 0);
  for (uint32_t i = 1; i < k->in->noperands && !k->leaf; i++) take(k, i, 0, &f);
}

static void cholesky(const look *k) {
  uint32_t r = k->out->rank;
  bool lower = k->in->more->lower;
  int64_t y[RANK], i = k->x[r - (lower ? 2 : 1)], j = k->x[r - (lower ? 1 : 2)];
  memcpy(y, k->x, sizeof(int64_t) * r);
  for (int64_t row = 0; row <= i && j <= i; row++)
    for (int64_t column = 0; column <= row && column <= j; column++) {
      if (row > j && row < i) continue;
      y[r - 2] = lower ? row : column, y[r - 1] = lower ? column : row;
      take(k, 0, 0, y);
    }
}

// Its own equation and those that are solved before it: op(a) x = b from above where op(a) is lower, x op(a) = b from
// behind.
static void triangular_solve(const look *k) {
  const kl_more *m = k->in->more;
  uint32_t r = k->out->rank, along = r - (m->left_side ? 2 : 1);
  bool forward = (m->lower == (m->transpose_a == KL_NO_TRANSPOSE)) == m->left_side;
  int64_t y[RANK];
  memcpy(y, k->x, sizeof(int64_t) * r);
  for (y[along] = 0; y[along] < k->out->dims[along]; y[along]++)
    if (forward ? y[along] <= k->x[along] : y[along] >= k->x[along]) take(k, 1, 0, y);
  y[r - 2] = y[r - 1] = k->x[along];
  if (!m->unit_diagonal) take(k, 0, 0, y);
}

static void fft(const look *k) {
  const kl_shape *s = shape_of(k, 0);
  uint32_t kept = s->rank - k->in->more->sizes.n;
  int64_t y[RANK];
  if (first(s->rank, s->dims, y)) do
      if (memcmp(y, k->x, sizeof(int64_t) * kept) == 0) take(k, 0, 0, y);
    while (next(s->rank, s->dims, y));
}

static void collective(const look *k) {
  kl_op op = k->in->op;
  uint32_t n = k->in->noperands, operand = k->leaf % n;
  int64_t y[RANK];
  memcpy(y, k->x, sizeof(int64_t) * k->out->rank);
  if (op == KL_OP_ALL_GATHER_DONE || op == KL_OP_COLLECTIVE_PERMUTE_DONE) {
    uint32_t half = (uint32_t)kl_shape_leaf_count(shape_of(k, 0)->elems[0]);
    take(k, 0, half + k->leaf, y);
    return;
  }
  if (op == KL_OP_ALL_REDUCE_DONE) {
    forward(k);
    return;
  }
  if (op == KL_OP_RAGGED_ALL_TO_ALL) operand = 1; // the rows that nothing is sent to
  bool in_place = n == 4;                         // whose parts are copied where data says
  if (op == KL_OP_COLLECTIVE_PERMUTE_START && (k->leaf > 1 || in_place)) return;
  bool result = op != KL_OP_ALL_GATHER_START || k->leaf >= n;
  if (result && (op == KL_OP_ALL_GATHER || op == KL_OP_ALL_GATHER_START))
    y[k->in->dims[0]] %= shape_of(k, operand)->dims[k->in->dims[0]];
  take(k, operand, 0, y); // reduce-scatter and all-to-all: as device 0 of the group
}

static void look_at(const look *k) {
  switch (kl_op_table[k->in->op].kind) {
  case KL_KIND_CONVERT:
    if (k->in->op == KL_OP_BITCAST_CONVERT) {
      bitcast_convert(k);
      break;
    } // fallthrough
  case KL_KIND_UNARY:
  case KL_KIND_BINARY:
  case KL_KIND_SELECT:
  case KL_KIND_CLAMP:
  case KL_KIND_STOCHASTIC:
  case KL_KIND_MAP: elementwise(k); break;
  case KL_KIND_BROADCAST: broadcast(k); break;
  case KL_KIND_RESHAPE: reshape(k); break;
  case KL_KIND_BITCAST: bitcast(k); break;
  case KL_KIND_TRANSPOSE: transpose(k); break;
  case KL_KIND_SLICE: slice(k); break;
  case KL_KIND_REVERSE: reverse(k); break;
  case KL_KIND_CONCATENATE: concatenate(k); break;
  case KL_KIND_PAD: pad(k); break;
  case KL_KIND_DOT: any_dot(k); break;
  case KL_KIND_CONVOLUTION: convolution(k); break;
  case KL_KIND_REDUCE: reduce(k); break;
  case KL_KIND_REDUCE_WINDOW: reduce_window(k); break;
  case KL_KIND_SELECT_AND_SCATTER: select_and_scatter(k); break;
  case KL_KIND_SCAN: scan(k); break;
  case KL_KIND_DYNAMIC_SLICE: dynamic_slice(k); break;
  case KL_KIND_DYNAMIC_UPDATE_SLICE: dynamic_update_slice(k); break;
  case KL_KIND_GATHER: gather(k); break;
  case KL_KIND_SCATTER: scatter(k); break;
  case KL_KIND_SORT: ordered(k, k->in->dims[0], k->leaf); break;
  case KL_KIND_TOPK: ordered(k, k->out->rank - 1, 0); break;
  case KL_KIND_RNG:
  case KL_KIND_RNG_BITS:
    for (uint32_t i = 0; i < k->in->noperands; i++) take_all(k, i);
    break;
  case KL_KIND_BATCH_NORM: batch_norm(k); break;
  case KL_KIND_CHOLESKY: cholesky(k); break;
  case KL_KIND_TRIANGULAR_SOLVE: triangular_solve(k); break;
  case KL_KIND_FFT: fft(k); break;
  case KL_KIND_DIMENSION_SIZE:
    if (k->in->op == KL_OP_SET_DIMENSION_SIZE) elementwise(k);
    break;
  case KL_KIND_DYNAMIC_RESHAPE:
    for (uint32_t i = 1; i < k->in->noperands; i++) take_all(k, i);
    break;
  case KL_KIND_TUPLE: tuple(k); break;
  case KL_KIND_GTE: get_tuple_element(k); break;
  case KL_KIND_WHILE: forward(k); break; // after no round at all
  case KL_KIND_CONDITIONAL: take(k, 0, 0, NULL); break;
  case KL_KIND_FORWARD: forward(k); break;
  case KL_KIND_COPY_ASYNC: copy_async(k); break;
  case KL_KIND_COLLECTIVE: collective(k); break;
  default: break; // nothing, or nobody knows
  }
}

// --- modules ------------------------------------------------------------------------------------------------------

static uint32_t new_frame(model *s, kl_frame f) {
  if (s->nframes == s->most_frames) {
    s->most_frames = s->most_frames ? 2 * s->most_frames : 8;
    s->frames = realloc(s->frames, s->most_frames * sizeof *s->frames);
    s->value = realloc(s->value, s->most_frames * sizeof *s->value);
  }
  s->frames[s->nframes] = f;
  s->value[s->nframes] = calloc(f.comp->ninstr + 1, sizeof **s->value);
  return s->nframes++;
}

static model_value *new_value(model *s, uint32_t frame, uint32_t instr, uint32_t leaf, const kl_shape *shape) {
  if (s->nvalues == s->most_values) {
    s->most_values = s->most_values ? 2 * s->most_values : 32;
    s->values = realloc(s->values, s->most_values * sizeof *s->values);
  }
  if (!leaf) s->value[frame][instr] = s->nvalues;
  model_value *v = &s->values[s->nvalues++];
  *v = (model_value){frame, instr, leaf, shape, s->nnodes, kl_shape_is_array(shape) ? elements(shape) : 0};
  return v;
}

static void new_node(model *s, uint32_t owner) {
  if (s->nnodes + 1 >= s->most_nodes) {
    s->most_nodes = s->most_nodes ? 2 * s->most_nodes : 256;
    s->owner = realloc(s->owner, (size_t)s->most_nodes * sizeof *s->owner);
    s->begin = realloc(s->begin, (size_t)s->most_nodes * sizeof *s->begin);
  }
  s->owner[s->nnodes] = owner;
  s->begin[s->nnodes++] = s->nedges;
  s->begin[s->nnodes] = s->nedges;
}

static bool is_call(const kl_instr *in) {
  return in->op == KL_OP_FUSION || in->op == KL_OP_CALL;
}

static bool add_frame(model *s, uint32_t frame, int64_t most);

static bool add_instr(model *s, uint32_t frame, uint32_t instr, int64_t most) {
  const kl_comp *c = s->frames[frame].comp;
  const kl_instr *in = &c->instr[instr];
  if (is_call(in) && !add_frame(s, new_frame(s, (kl_frame){&s->m->comp[in->called[0]], frame, instr}), most))
    return false;
  uint32_t leaves = (uint32_t)kl_shape_leaf_count(in->shape);
  if (!leaves) s->value[frame][instr] = s->nvalues;
  for (uint32_t l = 0; l < leaves; l++) {
    const kl_shape *shape = kl_shape_leaf(in->shape, l);
    model_value *v = new_value(s, frame, instr, l, shape);
    uint32_t owner = s->nvalues - 1;
    int64_t x[RANK], at = 0;
    if (v->count > most - s->nnodes) return false;
    if (!kl_shape_is_array(shape) || !first(shape->rank, shape->dims, x)) continue;
    look k = {s, frame, c, in, l, shape, x};
    do {
      new_node(s, owner);
      if (is_call(in) || (in->op == KL_OP_PARAMETER && frame))
        edge(s, (model_edge){(uint32_t)in->number, l, at++});
      else
        look_at(&k);
      s->begin[s->nnodes] = s->nedges;
    } while (next(shape->rank, shape->dims, x));
  }
  return true;
}

static bool add_frame(model *s, uint32_t frame, int64_t most) {
  const kl_comp *c = s->frames[frame].comp;
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (!add_instr(s, frame, i, most)) return false;
  return true;
}

bool model_make(model *s, const kiln_module *m, const kl_comp *c, uint64_t seed, int64_t most) {
  *s = (model){.m = m, .seed = seed};
  return add_frame(s, new_frame(s, (kl_frame){c, 0, 0}), most);
}

void model_free(model *s) {
  for (uint32_t f = 0; f < s->nframes; f++) free(s->value[f]);
  free(s->value);
  free(s->frames);
  free(s->values);
  free(s->owner);
  free(s->begin);
  free(s->edges);
}

const model_value *model_find(const model *s, uint32_t frame, uint32_t instr, uint32_t leaf) {
  return &s->values[s->value[frame][instr] + leaf];
}

uint32_t model_callee(const model *s, uint32_t frame, uint32_t instr) {
  for (uint32_t f = frame + 1; f < s->nframes; f++)
    if (s->frames[f].parent == frame && s->frames[f].caller == instr) return f;
  return UINT32_MAX;
}

int64_t model_target(const model *s, int64_t node, const model_edge *e) {
  const model_value *v = &s->values[s->owner[node]];
  const kl_frame *f = &s->frames[v->frame];
  const kl_instr *in = &f->comp->instr[v->instr];
  if (is_call(in)) {
    uint32_t callee = model_callee(s, v->frame, v->instr);
    return model_find(s, callee, s->frames[callee].comp->root, e->leaf)->first + e->at;
  }
  if (in->op == KL_OP_PARAMETER)
    return model_find(s, f->parent, s->frames[f->parent].comp->instr[f->caller].operands[in->number], e->leaf)->first +
           e->at;
  return model_find(s, v->frame, in->operands[e->operand], e->leaf)->first + e->at;
}

static bool moves(const kl_instr *in, const kl_shape *from) {
  switch (in->op) {
  case KL_OP_PARAMETER:
  case KL_OP_FUSION:
  case KL_OP_CALL:
  case KL_OP_COPY:
  case KL_OP_BROADCAST:
  case KL_OP_RESHAPE:
  case KL_OP_TRANSPOSE:
  case KL_OP_SLICE:
  case KL_OP_REVERSE:
  case KL_OP_CONCATENATE:
  case KL_OP_PAD:
  case KL_OP_DYNAMIC_SLICE:
  case KL_OP_DYNAMIC_UPDATE_SLICE:
  case KL_OP_GATHER:
  case KL_OP_TUPLE:
  case KL_OP_OPT_BARRIER:
  case KL_OP_GET_TUPLE_ELEMENT: return true;
  case KL_OP_BITCAST: return from->dtype == in->shape->dtype;
  default: return false;
  }
}

// Small numbers, some outside of any array; unsigned ones wrap.
static int64_t content(const model *s, int64_t node, kl_dtype t) {
  int64_t v = (int64_t)(mix(s->seed ^ (uint64_t)node * 31) % 10) - 2;
  return v < 0 && !kl_is_signed(t) ? 100 : v;
}

int64_t model_integer(const model *s, int64_t node) {
  const model_value *v = &s->values[s->owner[node]];
  const kl_instr *in = &s->frames[v->frame].comp->instr[v->instr];
  int64_t at = node - v->first;
  if (in->op == KL_OP_CONSTANT && in->literal) {
    int64_t c = kl_int_decode(v->shape->dtype, kl_element_get(v->shape->dtype, in->literal[v->leaf].data, at, 0));
    return c < 0 && !kl_is_signed(v->shape->dtype) ? INT64_MAX : c;
  }
  if (in->op == KL_OP_IOTA) {
    for (uint32_t d = v->shape->rank; d-- > (uint32_t)in->number + 1;) at /= v->shape->dims[d];
    return at % v->shape->dims[in->number];
  }
  if (s->begin[node + 1] > s->begin[node]) {
    int64_t to = model_target(s, node, &s->edges[s->begin[node]]);
    if (moves(in, s->values[s->owner[to]].shape)) return model_integer(s, to);
  }
  return content(s, node, v->shape->dtype);
}
