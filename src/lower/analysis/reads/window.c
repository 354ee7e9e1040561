// Windows: reduce-window, convolution, select-and-scatter.
#include "lower/analysis/reads/rule.h"

// The place in a padded and dilated dimension that window offset `s` of output place `d` looks at, from the first
// element on: d*stride + s*dilation - low.
static const kl_aff *place(rule *u, const kl_window_dim *w, const kl_aff *d, const kl_aff *s) {
  if (w->reversed) s = kl_aff_addc(u->p, kl_aff_mulc(u->p, s, -1), w->size - 1);
  const kl_aff *at = kl_aff_addmul(u->p, kl_aff_mulc(u->p, d, w->stride), s, w->window_dilation);
  return kl_aff_addc(u->p, at, -w->low);
}

// The element there: index at / base_dilation, where that is whole and inside 0 .. n-1.
static const kl_aff *element(rule *u, const kl_window_dim *w, const kl_aff *at, int64_t n) {
  const kl_aff *e = kl_aff_floordivc(u->p, at, w->base_dilation);
  if (w->base_dilation > 1) rule_constrain(u, kl_aff_modc(u->p, at, w->base_dilation), 0, 0);
  rule_constrain(u, e, 0, n - 1);
  return e;
}

void rule_reduce_window(rule *u) {
  uint32_t inputs = u->in->noperands / 2;
  for (uint32_t i = 0; i < inputs; i++) {
    const kl_shape *s = rule_operand(u, i);
    rule_begin(u);
    for (uint32_t d = 0; d < s->rank; d++) {
      const kl_window_dim *w = &u->in->more->window[d];
      rule_result(u, element(u, w, place(u, w, rule_dim(u, d), rule_range(u, w->size)), s->dims[d]));
    }
    rule_end(u, i, 0);
  }
  for (uint32_t i = inputs; i < u->in->noperands; i++) rule_scalar(u, i);
}

// --- convolution --------------------------------------------------------------------------------------------------

// What both operands share: for each spatial dim, the window offset as a range and the input element that it meets.
typedef struct taps {
  const kl_aff *offset[KILN_MAX_RANK], *element[KILN_MAX_RANK];
} taps;

static void find_taps(rule *u, const kl_conv_dims *c, taps *t) {
  const kl_shape *input = rule_operand(u, 0);
  for (uint32_t i = 0; i < c->n; i++) {
    const kl_window_dim *w = &u->in->more->window[i];
    t->offset[i] = rule_range(u, w->size);
    const kl_aff *at = place(u, w, rule_dim(u, (uint32_t)c->result[i]), t->offset[i]);
    t->element[i] = element(u, w, at, input->dims[c->input[i]]);
  }
}

// Kernel features `f` of an output channel's group: group g takes input channels g*F .. g*F+F-1.
static void conv_input(rule *u, const kl_conv_dims *c) {
  const kl_more *m = u->in->more;
  const kl_shape *input = rule_operand(u, 0), *kernel = rule_operand(u, 1);
  const kl_aff *index[KILN_MAX_RANK];
  taps t;
  rule_begin(u);
  find_taps(u, c, &t);
  int64_t features = kernel->dims[c->kernel_input], outputs = kernel->dims[c->kernel_output];
  const kl_aff *channel = rule_dim(u, (uint32_t)c->result_feature), *feature = rule_range(u, features);
  if (m->feature_groups > 1 && outputs) {
    const kl_aff *group = kl_aff_floordivc(u->p, channel, outputs / m->feature_groups);
    feature = kl_aff_addmul(u->p, feature, group, features);
  }
  const kl_aff *batch = rule_dim(u, (uint32_t)c->result_batch);
  if (m->batch_groups > 1 && outputs) { // channels in groups, each with a part of the batch of its own
    const kl_aff *group = kl_aff_floordivc(u->p, channel, outputs / m->batch_groups);
    batch = kl_aff_addmul(u->p, batch, group, input->dims[c->input_batch] / m->batch_groups);
  }
  for (uint32_t i = 0; i < c->n; i++) index[c->input[i]] = t.element[i];
  index[c->input_batch] = batch;
  index[c->input_feature] = feature;
  for (uint32_t d = 0; d < input->rank; d++) rule_result(u, index[d]);
  rule_end(u, 0, 0);
}

static void conv_kernel(rule *u, const kl_conv_dims *c) {
  const kl_shape *kernel = rule_operand(u, 1);
  const kl_aff *index[KILN_MAX_RANK];
  taps t;
  rule_begin(u);
  find_taps(u, c, &t);
  for (uint32_t i = 0; i < c->n; i++) index[c->kernel[i]] = t.offset[i];
  index[c->kernel_input] = rule_range(u, kernel->dims[c->kernel_input]);
  index[c->kernel_output] = rule_dim(u, (uint32_t)c->result_feature);
  for (uint32_t d = 0; d < kernel->rank; d++) rule_result(u, index[d]);
  rule_end(u, 1, 0);
}

void rule_convolution(rule *u) {
  const kl_conv_dims *c = u->in->more->conv;
  if (c->input_rank || c->kernel_rank || c->result_rank) {
    rule_all(u, 0, "dimensions of no meaning");
    rule_all(u, 1, "dimensions of no meaning");
    return;
  }
  conv_input(u, c);
  conv_kernel(u, c);
}

// --- select-and-scatter -------------------------------------------------------------------------------------------

// Whole windows that an element lies in decide whether it is selected; where it is, it takes the window's source.
void rule_select_and_scatter(rule *u) {
  const kl_shape *source = rule_operand(u, 1);
  const kl_aff *window[KILN_MAX_RANK];
  for (int which = 0; which < 2; which++) {
    rule_begin(u);
    for (uint32_t d = 0; d < u->out->rank; d++) {
      const kl_window_dim *w = &u->in->more->window[d];
      window[d] = rule_range(u, source->dims[d]);
      const kl_aff *first = kl_aff_addc(u->p, kl_aff_mulc(u->p, window[d], w->stride), -w->low);
      rule_constrain(u, kl_aff_sub(u->p, rule_dim(u, d), first), 0, w->size - 1);
      if (which == 0) {
        const kl_aff *e = kl_aff_add(u->p, first, rule_range(u, w->size));
        rule_constrain(u, e, 0, u->out->dims[d] - 1);
        rule_result(u, e);
      } else
        rule_result(u, window[d]);
    }
    if (which)
      rule_end_over(u, 1, 0, "values decide which element of a window is selected");
    else
      rule_end(u, 0, 0);
  }
  rule_scalar(u, 2);
}
