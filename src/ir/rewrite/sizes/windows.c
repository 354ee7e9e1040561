// Windows over as many elements as there are: how many, and convolutions.
#include "ir/rewrite/sizes/room.h"

// --- how many -------------------------------------------------------------------------------------------------------

bool kl_size_is_small(const kl_window_dim *w, int64_t bound) {
  enum { MOST = 1 << 28 };
  return bound <= MOST && w->base_dilation <= MOST / (bound ? bound : 1) && w->size <= MOST && w->stride <= MOST &&
         w->window_dilation <= MOST / (w->size ? w->size : 1) && w->low <= MOST && w->low >= -MOST && w->high <= MOST &&
         w->high >= -MOST;
}

// (n - 1) by + 1 for n > 0, else 0.
static uint32_t spread(kl_sizing *z, uint32_t n, int64_t by) {
  uint32_t wide = kl_graph_with(z->g, KL_OP_MULTIPLY, kl_graph_with(z->g, KL_OP_SUBTRACT, n, 1), by);
  return kl_size_hold(z, kl_graph_with(z->g, KL_OP_ADD, wide, 1), 0, INT32_MAX);
}

// floor((low + e(k) + high - reach) / stride) + 1, where e(k) is k with holes between: none where they do not reach, or
// where nothing is to be reached.
uint32_t kl_size_windows(kl_sizing *z, uint32_t k, uint32_t size, const kl_window_dim *w, int64_t bound) {
  kl_graph *g = z->g;
  int64_t reach = w->size ? (w->size - 1) * w->window_dilation + 1 : 0;
  uint32_t padded = kl_graph_with(g, KL_OP_ADD, spread(z, k, w->base_dilation), w->low + w->high), all = padded;
  if (size != KL_WHOLE) all = kl_graph_binary(g, KL_OP_SUBTRACT, all, spread(z, size, w->window_dilation));
  all = kl_graph_with(g, KL_OP_ADD, all, w->stride - (size == KL_WHOLE ? reach : 0));
  all = kl_graph_with(g, KL_OP_DIVIDE, kl_size_hold(z, all, 0, INT32_MAX), w->stride);
  if (size != KL_WHOLE || !reach) {
    uint32_t any = kl_graph_convert(g, kl_graph_compare_with(g, KL_GT, padded, 0), KILN_S32);
    all = kl_graph_binary(g, KL_OP_MULTIPLY, all, any);
  }
  return kl_size_hold(z, all, 0, bound);
}

// --- contractions ---------------------------------------------------------------------------------------------------

void kl_size_pairs(kl_sizing *z, kl_ints a, kl_ints b, kl_extents x[2]) {
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t d = 0; d < KILN_MAX_RANK; d++) x[k].of[d] = KL_WHOLE;
  for (uint32_t i = 0; i < a.n; i++)
    x[0].of[a.p[i]] = x[1].of[b.p[i]] =
        kl_size_least(z, kl_extent(z, 0, (uint32_t)a.p[i]), kl_extent(z, 1, (uint32_t)b.p[i]));
}

// In both: zero times NaN would be one.
bool kl_size_zeros_beyond(kl_sizing *z, const kl_extents x[2]) {
  bool any = false;
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t d = 0; d < z->shapes[k]->rank; d++) any |= x[k].of[d] != KL_WHOLE;
  for (uint32_t k = 0; k < 2 && any; k++) {
    kl_dtype t = z->shapes[k]->dtype;
    if (kl_is_float(t) && kl_info(t)->kind == KL_E8M0) return false;
    z->values[k] = kl_size_mask(z, z->values[k], &x[k], kl_size_zero(z, t));
  }
  return true;
}

// --- convolutions ---------------------------------------------------------------------------------------------------

// a at these places [n] of one dimension, zeros where they are not `there`.
static uint32_t take(kl_sizing *z, uint32_t a, uint32_t dim, uint32_t places, uint32_t there) {
  kl_graph *g = z->g;
  if (!kl_graph_shape(g, a)->dims[dim]) a = kl_graph_pad(g, a, dim, 0, 1);
  const kl_shape *s = kl_graph_shape(g, a);
  int64_t *numbers = KL_NEW_N(&g->m->arena, int64_t, 2 * KILN_MAX_RANK + 1), to[KILN_MAX_RANK], along = dim;
  uint32_t rest = 0;
  numbers[2 * KILN_MAX_RANK] = dim;
  for (uint32_t d = 0; d < s->rank; d++) {
    numbers[d] = d == dim ? 1 : s->dims[d];
    to[d] = d == dim ? kl_graph_shape(g, places)->dims[0] : s->dims[d];
    if (d != dim) numbers[KILN_MAX_RANK + rest++] = d;
  }
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  *more = kl_no_more;
  more->sizes = (kl_ints){s->rank, numbers};
  more->offset_dims = (kl_ints){rest, numbers + KILN_MAX_RANK};
  more->collapsed_dims = more->start_index_map = (kl_ints){1, numbers + 2 * KILN_MAX_RANK};
  more->index_vector_dim = 1;
  kl_instr in = {.op = KL_OP_GATHER, .more = more, .given = 1 | 2 | 4 | 32 | 64};
  in.shape = kl_graph_array(g, s->dtype, s->rank, to);
  uint32_t v = kl_size_emit(z, in, 2, (uint32_t[]){a, places});
  return kl_graph_select(g, kl_graph_broadcast(g, there, s->rank, to, &along), v,
                         kl_graph_broadcast(g, kl_size_zero(z, s->dtype), s->rank, to, NULL));
}

// What each place of a window of `size` elements sees, one window behind the other, and zeros at those that it has no
// more: there what the kernel is multiplied with would be an element. *w becomes the window over that.
static bool lay_out(kl_sizing *z, uint32_t i, uint32_t size, kl_window_dim *w) {
  const kl_conv_dims *c = z->in->more->conv;
  uint32_t d = (uint32_t)c->input[i];
  kl_graph *g = z->g;
  int64_t bound = z->shapes[0]->dims[d], n;
  if (__builtin_mul_overflow(z->in->shape->dims[c->result[i]], w->size, &n) || n > INT32_MAX) return false;
  uint32_t at = kl_graph_iota(g, KILN_S32, 1, &n, 0), places[2], of[3];
  of[0] = kl_graph_broadcast(g, size, 1, &n, NULL);
  of[1] = kl_graph_broadcast(g, kl_size_or_bound(z, kl_extent(z, 0, d), bound), 1, &n, NULL);
  of[2] = kl_graph_number(g, KILN_S32, 0, 1, &n);
  places[0] = kl_graph_with(g, KL_OP_DIVIDE, at, w->size);
  places[1] = kl_graph_with(g, KL_OP_REMAINDER, at, w->size);
  uint32_t there = kl_graph_compare(g, KL_LT, places[1], of[0]), tap = places[1];
  if (w->reversed) tap = kl_graph_with(g, KL_OP_SUBTRACT, kl_graph_binary(g, KL_OP_SUBTRACT, of[0], tap), 1);
  uint32_t from = kl_graph_binary(g, KL_OP_ADD, kl_graph_with(g, KL_OP_MULTIPLY, places[0], w->stride),
                                  kl_graph_with(g, KL_OP_MULTIPLY, tap, w->window_dilation));
  from = kl_graph_with(g, KL_OP_SUBTRACT, from, w->low);
  there = kl_graph_binary(g, KL_OP_AND, there, kl_graph_compare(g, KL_GE, from, of[2]));
  if (w->base_dilation > 1) {
    uint32_t hole = kl_graph_with(g, KL_OP_REMAINDER, from, w->base_dilation);
    there = kl_graph_binary(g, KL_OP_AND, there, kl_graph_compare(g, KL_EQ, hole, of[2]));
    from = kl_graph_with(g, KL_OP_DIVIDE, from, w->base_dilation);
  }
  there = kl_graph_binary(g, KL_OP_AND, there, kl_graph_compare(g, KL_LT, from, of[1]));
  z->values[0] = take(z, z->values[0], d, from, there);
  *w = (kl_window_dim){.size = w->size, .stride = w->size, .base_dilation = 1, .window_dilation = 1};
  return true;
}

// Groups, of which each has its part of `size` elements, where the bound has them: each in front of its part of that.
// And back.
static uint32_t regroup(kl_sizing *z, uint32_t v, uint32_t dim, uint32_t size, int64_t groups, bool back) {
  kl_graph *g = z->g;
  int64_t bound = kl_graph_shape(g, v)->dims[dim];
  if (!bound) return v;
  uint32_t at = kl_graph_iota(g, KILN_S32, 1, &bound, 0), part = kl_graph_with(g, KL_OP_DIVIDE, size, groups);
  if (back) part = kl_graph_with(g, KL_OP_MAXIMUM, part, 1);
  part = kl_graph_broadcast(g, part, 1, &bound, NULL);
  uint32_t room = kl_graph_number(g, KILN_S32, bound / groups, 1, &bound), by = back ? part : room;
  uint32_t group = kl_graph_binary(g, KL_OP_DIVIDE, at, by), in = kl_graph_binary(g, KL_OP_REMAINDER, at, by);
  uint32_t from = kl_graph_binary(g, KL_OP_MULTIPLY, group, back ? room : part);
  uint32_t most = back ? kl_graph_broadcast(g, size, 1, &bound, NULL) : part;
  uint32_t there = kl_graph_compare(g, KL_LT, back ? at : in, most);
  return take(z, v, dim, kl_graph_binary(g, KL_OP_ADD, from, in), there);
}

// What a convolution sums over: features of the input, those of its group, and of the kernel.
static void pair_features(kl_sizing *z, kl_extents x[2]) {
  const kl_conv_dims *c = z->in->more->conv;
  uint32_t d = (uint32_t)c->input_feature, size = kl_extent(z, 0, d);
  int64_t groups = z->in->more->feature_groups;
  kl_size_pairs(z, (kl_ints){1, &c->input_feature}, (kl_ints){1, &c->kernel_input}, x);
  if (groups == 1) return;
  uint32_t own = size == KL_WHOLE ? KL_WHOLE : kl_graph_with(z->g, KL_OP_DIVIDE, size, groups);
  x[0].of[d] = KL_WHOLE;
  x[1].of[c->kernel_input] = kl_size_least(z, own, kl_extent(z, 1, (uint32_t)c->kernel_input));
  if (size != KL_WHOLE) z->values[0] = regroup(z, z->values[0], d, size, groups, false);
}

// The batch, which groups may share, and features of the kernel, which belong to groups.
static void place_groups(kl_sizing *z) {
  const kl_more *m = z->in->more;
  const kl_conv_dims *c = m->conv;
  uint32_t batch = kl_extent(z, 0, (uint32_t)c->input_batch), features = kl_extent(z, 1, (uint32_t)c->kernel_output);
  int64_t groups = m->batch_groups * m->feature_groups;
  z->out->of[c->result_batch] = batch;
  z->out->of[c->result_feature] = features;
  if (batch != KL_WHOLE && m->batch_groups > 1) {
    z->out->of[c->result_batch] = kl_graph_with(z->g, KL_OP_DIVIDE, batch, groups);
    z->values[0] = regroup(z, z->values[0], (uint32_t)c->input_batch, batch, groups, false);
  }
  if (features != KL_WHOLE && groups > 1)
    z->values[1] = regroup(z, z->values[1], (uint32_t)c->kernel_output, features, groups, false);
}

// A place in padding is a pair whose left element is 0, and so is one behind the last element.
uint32_t kl_size_convolution(kl_sizing *z) {
  static const char expected[] = "windows, padding, and bounds of at most 2^28 with what lies between elements";
  const kl_more *m = z->in->more;
  const kl_conv_dims *c = m->conv;
  kl_extents x[2];
  int64_t groups = m->batch_groups * m->feature_groups; // one of them is 1
  kl_more *own = KL_NEW(&z->g->m->arena, kl_more);
  kl_window_dim *window = kl_arena_dup(&z->g->m->arena, m->window, m->nwindow * sizeof *window);
  *own = *m;
  own->window = window;
  place_groups(z);
  pair_features(z, x);
  for (uint32_t i = 0; i < c->n; i++) {
    uint32_t d = (uint32_t)c->input[i], k = kl_extent(z, 0, d), size = kl_extent(z, 1, (uint32_t)c->kernel[i]);
    int64_t bound = z->in->shape->dims[c->result[i]];
    if (k == KL_WHOLE && size == KL_WHOLE) continue;
    if (!kl_size_is_small(&window[i], z->shapes[0]->dims[d])) return kl_size_refuse(z, expected);
    // Of a known number of elements there are no fewer windows where these are smaller.
    if (k != KL_WHOLE) z->out->of[c->result[i]] = kl_size_windows(z, k, size, &window[i], bound);
    if (size == KL_WHOLE && window[i].high > 0) x[0].of[d] = k;
    x[1].of[c->kernel[i]] = size;
    if (size != KL_WHOLE && window[i].size && !lay_out(z, i, size, &window[i])) return kl_size_refuse(z, expected);
  }
  if (!kl_size_zeros_beyond(z, x)) return kl_size_refuse(z, "a type that has a zero");
  kl_instr in = *z->in;
  in.more = own;
  in.shape = kl_size_known(z, in.shape);
  uint32_t v = kl_size_emit(z, in, in.noperands, z->values), features = kl_extent(z, 1, (uint32_t)c->kernel_output);
  bool back = features != KL_WHOLE && groups > 1;
  return back ? regroup(z, v, (uint32_t)c->result_feature, features, groups, true) : v;
}
