// convolution, group by group: rows of the contraction are places of the result, columns its features, and the depth
// runs over the kernel's places and the features of the input.
#include "eval/fold/contract.h"

typedef struct conv {
  const kl_instr *in;
  const kl_evval *input, *kernel;
  const kl_conv_dims *dims;
  uint32_t n; // spatial dimensions
  const kl_window_dim *window;
  int64_t groups, batch, channels, features; // of one group
  int64_t places;                            // of the kernel
  int64_t input_stride[KILN_MAX_RANK], kernel_stride[KILN_MAX_RANK], result_stride[KILN_MAX_RANK];
  int64_t group; // the one at hand
} conv;

// The element of the input that tap k of the window sees at place o; -1: padding, or a hole.
static int64_t input_at(const kl_window_dim *w, int64_t o, int64_t k, int64_t extent) {
  __int128 at = (__int128)o * w->stride + (__int128)k * w->window_dilation - w->low;
  int64_t hole = w->base_dilation > 1 ? w->base_dilation : 1;
  if (at < 0 || at % hole) return -1;
  at /= hole;
  return at < extent ? (int64_t)at : -1;
}

static void index_input(const void *arg, int64_t row, int64_t *at) {
  const conv *c = arg;
  const kl_shape *s = c->in->shape;
  int64_t place[KILN_MAX_RANK], tap[KILN_MAX_RANK] = {0}, rest = row, feature = c->input_stride[c->dims->input_feature];
  for (uint32_t d = c->n; d-- > 0;) {
    int64_t extent = s->dims[c->dims->result[d]];
    place[d] = rest % extent;
    rest /= extent;
  }
  int64_t by_batch = c->in->more->batch_groups > 1 ? c->group * c->batch : 0;
  int64_t by_feature = c->in->more->batch_groups > 1 ? 0 : c->group * c->channels;
  int64_t base = (by_batch + rest) * c->input_stride[c->dims->input_batch] + by_feature * feature;
  for (int64_t p = 0; p < c->places; p++) {
    int64_t from = base;
    for (uint32_t d = 0; d < c->n && from >= 0; d++) {
      int64_t i = input_at(&c->window[d], place[d], tap[d], c->input->shape->dims[c->dims->input[d]]);
      from = i < 0 ? -1 : from + i * c->input_stride[c->dims->input[d]];
    }
    for (int64_t k = 0; k < c->channels; k++) *at++ = from < 0 ? -1 : from + k * feature;
    for (uint32_t d = c->n; d-- > 0;) {
      if (++tap[d] < c->window[d].size) break;
      tap[d] = 0;
    }
  }
}

static void index_kernel(const void *arg, int64_t row, int64_t *at) {
  const conv *c = arg;
  int64_t tap[KILN_MAX_RANK] = {0}, channel = c->kernel_stride[c->dims->kernel_input];
  int64_t base = (c->group * c->features + row) * c->kernel_stride[c->dims->kernel_output];
  for (int64_t p = 0; p < c->places; p++) {
    int64_t from = base;
    for (uint32_t d = 0; d < c->n; d++) {
      int64_t i = c->window[d].reversed ? c->window[d].size - 1 - tap[d] : tap[d];
      from += i * c->kernel_stride[c->dims->kernel[d]];
    }
    for (int64_t k = 0; k < c->channels; k++) *at++ = from + k * channel;
    for (uint32_t d = c->n; d-- > 0;) {
      if (++tap[d] < c->window[d].size) break;
      tap[d] = 0;
    }
  }
}

// Where the result's rows are (batch and places) and its columns (features of group 0).
static void fill_places(const conv *c, int64_t rows, int64_t *row_at) {
  const kl_shape *s = c->in->shape;
  for (int64_t row = 0; row < rows; row++) {
    int64_t rest = row, at = 0;
    for (uint32_t d = c->n; d-- > 0;) {
      int64_t extent = s->dims[c->dims->result[d]];
      at += rest % extent * c->result_stride[c->dims->result[d]];
      rest /= extent;
    }
    row_at[row] = at + rest * c->result_stride[c->dims->result_batch];
  }
}

static kiln_status run_groups(kl_ev *ev, conv *c, int64_t rows, int64_t *row_at, int64_t *col_at, kl_evval *out) {
  int64_t feature = c->result_stride[c->dims->result_feature];
  kl_contraction k = {.lhs = {c->input, index_input, c, rows},
                      .rhs = {c->kernel, index_kernel, c, c->features},
                      .depth = c->places * c->channels,
                      .t = c->in->shape->dtype,
                      .row_at = row_at,
                      .col_at = col_at};
  k.acc = kl_accumulation_type(c->input->shape->dtype, c->kernel->shape->dtype, k.t);
  k.sum = k.acc;
  fill_places(c, rows, row_at);
  for (c->group = 0; c->group < c->groups; c->group++) {
    for (int64_t j = 0; j < c->features; j++) col_at[j] = (c->group * c->features + j) * feature;
    KL_TRY(kl_contract(ev, &k, out));
  }
  return KILN_OK;
}

static void describe(const kl_instr *in, const kl_evval *const *operands, conv *c) {
  const kl_more *m = in->more;
  *c = (conv){.in = in, .input = operands[0], .kernel = operands[1], .dims = m->conv, .n = m->conv->n};
  c->window = m->window;
  kl_ev_strides(c->input->shape, c->input_stride);
  kl_ev_strides(c->kernel->shape, c->kernel_stride);
  kl_ev_strides(in->shape, c->result_stride);
  bool by_batch = m->batch_groups > 1;
  c->groups = by_batch ? m->batch_groups : m->feature_groups > 1 ? m->feature_groups : 1;
  c->batch = c->input->shape->dims[c->dims->input_batch] / (by_batch ? c->groups : 1);
  c->channels = c->kernel->shape->dims[c->dims->kernel_input];
  c->features = c->kernel->shape->dims[c->dims->kernel_output] / c->groups;
  c->places = 1;
  for (uint32_t d = 0; d < c->n; d++) c->places *= c->window[d].size;
}

kiln_status kl_ev_convolution(kl_ev *ev, const kl_comp *comp, const kl_instr *in, const kl_evval *const *operands,
                              kl_evval *out) {
  conv c;
  if (!in->more->conv || in->more->nwindow != in->more->conv->n)
    return kl_ev_refuse(ev, in, "window or dim_labels are missing");
  describe(in, operands, &c);
  const kl_shape *s = in->shape;
  int64_t features = s->dims[c.dims->result_feature], rows = features ? s->count / features : 0, bytes;
  bool rounds = kl_is_float(s->dtype) || kl_is_complex(s->dtype);
  bool inexact = ev->intervals && (rounds || !kl_ev_exact(c.input) || !kl_ev_exact(c.kernel));
  KL_TRY(kl_ev_new(ev, s, false, inexact, out));
  bool fits = !__builtin_mul_overflow(rows + c.features + 1, (int64_t)sizeof(int64_t), &bytes);
  int64_t *tables = fits ? kl_try_alloc(ev->cx, (size_t)bytes) : NULL;
  kiln_status status = tables ? run_groups(ev, &c, rows, tables, tables + rows, out)
                              : kl_out_of_memory(ev->cx, SIZE_MAX, "the indices of a convolution");
  kl_free(ev->cx, tables, tables ? (size_t)bytes : 0);
  if (status == KILN_OK)
    kl_ev_settle(ev, out);
  else
    kl_ev_free(ev, out);
  return status;
}
