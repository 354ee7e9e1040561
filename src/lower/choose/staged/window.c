// reduce-window of windows that are too large to be folded where they are wanted: a thread makes an element, tap by tap
// in loops.

#include "lower/choose/staged/staged.h"

typedef struct window {
  const kl_stage *s;
  const kl_shape *array, *out;
  uint32_t n;
  kl_combiner by;
  kl_stage_body b;
  kl_stage_box taps;
  const kl_aff *at;
} window;

static kiln_status initial_values(window *x, uint32_t *values) {
  for (uint32_t i = 0; i < x->n; i++) {
    KL_TRY(kl_walk_want(&x->b.walk, x->s->instr->operands[x->n + i], 0, KL_NONE, NULL, &values[i]));
    values[i] = kl_combiner_take(&x->b.w, &x->by, i, values[i]);
  }
  return KILN_OK;
}

static kiln_status take_tap(window *x, const kl_aff *const *index, uint32_t *values) {
  const kl_aff *at[KILN_MAX_RANK];
  uint32_t *next = KL_NEW_N(x->s->c->arena, uint32_t, 2 * x->n), *made = next + x->n;
  bool never;
  uint32_t guard =
      kl_window_sees(&x->b.walk, x->s->instr->more->window, x->array, index, x->taps.at, x->b.keep, at, &never);
  if (never) return KILN_OK;
  for (uint32_t i = 0; i < x->n; i++) {
    KL_TRY(kl_walk_want(&x->b.walk, x->s->instr->operands[i], 0, guard, at, &next[i]));
    next[i] = kl_combiner_take(&x->b.w, &x->by, i, next[i]);
  }
  KL_TRY(kl_combine_values(&x->b.walk, &x->by, values, next, made));
  for (uint32_t i = 0; i < x->n; i++) values[i] = kl_write_choose(&x->b.w, guard, made[i], values[i]);
  return KILN_OK;
}

static kiln_status write_window(void *arg) {
  window *x = arg;
  const kl_aff *index[KILN_MAX_RANK];
  uint32_t *values = KL_NEW_N(x->s->c->arena, uint32_t, x->n);
  kl_stage_index(&x->b, x->out, x->at, index);
  KL_TRY(initial_values(x, values));
  if (x->array->count) {
    kl_stage_box_begin(&x->b, &x->taps, x->n, values);
    KL_TRY(take_tap(x, index, values));
    kl_stage_box_end(&x->b, &x->taps, values);
  }
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->s->slot[i] == KL_NONE) continue;
    values[i] = kl_combiner_give(&x->b.w, &x->by, i, values[i], kl_shape_leaf(x->s->instr->shape, i)->dtype);
    KL_TRY(kl_stage_store(&x->b, x->s->slot[i], index, values[i], x->b.keep));
  }
  return KILN_OK;
}

kiln_status kl_stage_window(const kl_stage *s, const char **why_not) {
  const kl_instr *in = s->instr;
  uint32_t dim;
  bool reverse;
  window x = {.s = s, .array = kl_operand(s->c->plan->comp, in, 0)->shape, .out = kl_stage_result(s, 0)};
  int64_t sizes[KILN_MAX_RANK];
  x.n = in->noperands / 2;
  x.by = kl_combiner_of(s->c->arena, &s->c->plan->module->comp[in->called[0]], s->number);
  bool joins = x.by.simple || kl_is_elementwise(&s->c->plan->module->comp[in->called[0]]);
  if (joins && kl_window_is_cumulative(in, &dim, &reverse)) return kl_stage_cumulative(s, why_not);
  for (uint32_t d = 0; d < x.array->rank; d++) sizes[d] = in->more->window[d].size;
  x.at = kl_stage_elements(&x.b, s, x.out->count, 1);
  kl_stage_box_vars(&x.b, &x.taps, x.array->rank, sizes);
  return kl_stage_write(&x.b, x.out->count, write_window, &x);
}
