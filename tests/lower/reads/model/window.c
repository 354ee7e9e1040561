// Windows.
#include "look.h"

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

bool look_window(const look *k) {
  switch (kl_op_table[k->in->op].kind) {
  case KL_KIND_CONVOLUTION: convolution(k); break;
  case KL_KIND_REDUCE_WINDOW: reduce_window(k); break;
  case KL_KIND_SELECT_AND_SCATTER: select_and_scatter(k); break;
  default: return false;
  }
  return true;
}
