// Convolutions forward and back as one op. With stride s, padding p, window dilation d and K places of the window,
//   result[q] = sum over k of input[q s - p + k d] kernel[k]
// where k counts from the other end in a reversed window. So
//   input[i]  = sum over k of result'[i + p - k d] kernel[k], where result' has result[q] at q s, and zeros between;
//   kernel[k] = sum over q of input[q s - p + k d] result[q]
// which are convolutions of the result, with holes, and of the input by the result.
#include "ir/custom/custom.h"

#include "ir/rewrite/expand/room.h"

static const kl_conv_dims *keep(kl_graph *g, const kl_conv_dims *d) {
  kl_conv_dims *own = kl_arena_dup(&g->m->arena, d, sizeof *d);
  const int64_t **const lists[3] = {&own->input, &own->kernel, &own->result};
  for (int i = 0; i < 3; i++) *lists[i] = kl_arena_dup(&g->m->arena, *lists[i], d->n * sizeof(int64_t));
  return own;
}

static uint32_t emit(const kl_expansion *x, uint32_t a, uint32_t b, const kl_conv_dims *d, const kl_window_dim *window,
                     int64_t feature_groups, int64_t batch_groups, kl_dtype t, const kl_shape *to) {
  kl_more *more = KL_NEW(&x->g->m->arena, kl_more);
  *more = kl_no_more;
  more->conv = keep(x->g, d);
  more->nwindow = d->n;
  more->window = window;
  more->feature_groups = feature_groups;
  more->batch_groups = batch_groups;
  return kl_graph_convolution(x->g, a, b, more, t, to->rank, to->dims);
}

// --- the input ------------------------------------------------------------------------------------------------------

// A kernel of [inputs of a group, groups * outputs of one] as one of [groups * inputs of a group, outputs of one], the
// other dimensions as they were: what were outputs is summed over.
static uint32_t turned(kl_graph *g, uint32_t kernel, uint32_t in, uint32_t out, int64_t groups) {
  const kl_shape *s = kl_graph_shape(g, kernel);
  int64_t apart[KILN_MAX_RANK + 1], order[KILN_MAX_RANK + 1], merged[KILN_MAX_RANK];
  uint32_t n = 0, at = 0;
  if (groups == 1) return kernel;
  for (uint32_t d = 0; d < s->rank; d++) {
    merged[d] = d == in ? s->dims[d] * groups : d == out ? s->dims[d] / groups : s->dims[d];
    if (d == out) at = n, apart[n++] = groups;
    apart[n++] = d == out ? s->dims[d] / groups : s->dims[d];
  }
  // The groups go before the inputs.
  n = 0;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (d == in) order[n++] = at;
    order[n++] = d < out ? d : d + 1;
  }
  uint32_t split = kl_graph_reshape(g, kernel, s->rank + 1, apart);
  return kl_graph_reshape(g, kl_graph_transpose(g, split, order), s->rank, merged);
}

static uint32_t to_input(const kl_expansion *x, const kl_shape *to, kl_dtype t) {
  const kl_more *m = x->in->more;
  const kl_conv_dims *d = m->conv;
  const kl_shape *result = kl_graph_shape(x->g, x->operands[0]);
  kl_window_dim *window = KL_NEW_N(&x->g->m->arena, kl_window_dim, d->n + 1);
  for (uint32_t i = 0; i < d->n; i++) {
    const kl_window_dim *w = &m->window[i];
    int64_t holed = (result->dims[d->result[i]] - 1) * w->stride + 1, span = (w->size - 1) * w->window_dilation;
    int64_t low = span - w->low;
    window[i] = (kl_window_dim){.size = w->size,
                                .stride = 1,
                                .low = low,
                                .high = to->dims[d->input[i]] - holed - low + span,
                                .base_dilation = w->stride,
                                .window_dilation = w->window_dilation,
                                .reversed = !w->reversed};
  }
  kl_conv_dims own = *d;
  own.input_batch = d->result_batch, own.input_feature = d->result_feature, own.input = d->result;
  own.kernel_input = d->kernel_output, own.kernel_output = d->kernel_input;
  own.result_batch = d->input_batch, own.result_feature = d->input_feature, own.result = d->input;
  uint32_t kernel =
      turned(x->g, x->operands[1], (uint32_t)d->kernel_input, (uint32_t)d->kernel_output, m->feature_groups);
  return emit(x, x->operands[0], kernel, &own, window, m->feature_groups, 1, t, to);
}

// --- the kernel -----------------------------------------------------------------------------------------------------

// Features are what batches were, and the other way round.
static uint32_t to_kernel(const kl_expansion *x, const kl_shape *to, kl_dtype t) {
  const kl_more *m = x->in->more;
  const kl_conv_dims *d = m->conv;
  const kl_shape *input = kl_graph_shape(x->g, x->operands[0]), *result = kl_graph_shape(x->g, x->operands[1]);
  kl_window_dim *window = KL_NEW_N(&x->g->m->arena, kl_window_dim, d->n + 1);
  int64_t reversed[KILN_MAX_RANK];
  uint32_t nreversed = 0;
  for (uint32_t i = 0; i < d->n; i++) {
    const kl_window_dim *w = &m->window[i];
    int64_t places = result->dims[d->result[i]], span = (places - 1) * w->stride + (w->size - 1) * w->window_dilation;
    window[i] = (kl_window_dim){.size = places,
                                .stride = w->window_dilation,
                                .low = w->low,
                                .high = span + 1 - input->dims[d->input[i]] - w->low,
                                .base_dilation = 1,
                                .window_dilation = w->stride};
    if (w->reversed) reversed[nreversed++] = d->kernel[i];
  }
  kl_conv_dims own = *d;
  own.input_batch = d->input_feature, own.input_feature = d->input_batch;
  own.kernel_input = d->result_batch, own.kernel_output = d->result_feature, own.kernel = d->result;
  own.result_batch = d->kernel_input, own.result_feature = d->kernel_output, own.result = d->kernel;
  uint32_t made = emit(x, x->operands[0], x->operands[1], &own, window, 1, m->feature_groups, t, to);
  return kl_graph_reverse(x->g, made, nreversed, reversed);
}

uint32_t kl_expand_conv(const kl_expansion *x, const kl_shape *to, kl_dtype t) {
  const kl_more *m = x->in->more;
  kl_custom kind = kl_custom_named(x->in);
  bool back = kind == KL_CUSTOM_CONV_INPUT || kind == KL_CUSTOM_CONV_KERNEL;
  bool empty =
      !to->count || !kl_graph_shape(x->g, x->operands[0])->count || !kl_graph_shape(x->g, x->operands[1])->count;
  if (back && empty) return kl_graph_number(x->g, t, 0, to->rank, to->dims);
  if (kind == KL_CUSTOM_CONV_INPUT) return to_input(x, to, t);
  if (kind == KL_CUSTOM_CONV_KERNEL) return to_kernel(x, to, t);
  return emit(x, x->operands[0], x->operands[1], m->conv, m->window, m->feature_groups, 1, t, to);
}
