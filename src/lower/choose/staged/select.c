// select-and-scatter: one launch finds for each window the tap that it selects, another goes for each element through
// the windows that may have selected it, in their order, and joins what they bring.
//
// So each element is stored once, by one thread, and what meets there is joined in one order.

#include "lower/choose/staged/staged.h"

typedef struct selecting {
  const kl_stage *s;
  const kl_shape *array, *source; // a window for each element of the source
  const kl_window_dim *dims;
  const kl_comp *select;
  kl_combiner by;
  kl_shape *order; // of what windows select
  uint32_t slot;   // the same: the number of a tap; -1: none, it sees nothing
  kl_stage_body b;
  kl_stage_box box;                // of taps; of windows
  const kl_aff *at, *const *index; // of the element
  kl_dtype number;                 // of taps
} selecting;

// The number of a tap, the last dimension's the fastest.
static const kl_aff *number_of(const selecting *x, const kl_aff *const *tap) {
  kl_affs *p = x->s->p;
  const kl_aff *n = kl_aff_const(p, 0);
  for (uint32_t d = 0; d < x->array->rank; d++) n = kl_aff_add(p, kl_aff_mulc(p, n, x->dims[d].size), tap[d]);
  return n;
}

// --- what windows select --------------------------------------------------------------------------------------------

enum { BEST, TAP, SELECTED };

// What is selected stays, unless there is none or it is not what is selected of the two.
static kiln_status ask(void *arg, uint32_t *values) {
  selecting *x = arg;
  kl_stage_body *b = &x->b;
  const kl_aff *at[KILN_MAX_RANK];
  uint32_t next, keeps;
  bool never;
  uint32_t guard = kl_window_sees(&b->walk, x->dims, x->array, x->index, x->box.at, b->keep, at, &never);
  if (never) return KILN_OK;
  KL_TRY(kl_walk_want(&b->walk, x->s->instr->operands[0], 0, guard, at, &next));
  KL_TRY(kl_walk_call(&b->walk, x->s->number, x->select, (uint32_t[]){values[BEST], next}, &keeps));
  uint32_t none =
      kl_stage_compare(b, KL_LT, KL_CMP_DEFAULT, values[TAP], kl_stage_number(b, x->number, kl_aff_const(x->s->p, 0)));
  uint32_t goes = kl_write_op(&b->w, (kl_plan_op){.op = KL_OP_NOT}, KILN_PRED, 1, &keeps);
  goes = kl_stage_op(b, KL_OP_OR, none, goes);
  uint32_t tap = kl_stage_number(b, x->number, number_of(x, x->box.at));
  uint32_t best = kl_stage_select(b, goes, next, values[BEST]), number = kl_stage_select(b, goes, tap, values[TAP]);
  values[BEST] = kl_write_choose(&b->w, guard, best, values[BEST]);
  values[TAP] = kl_write_choose(&b->w, guard, number, values[TAP]);
  return KILN_OK;
}

static kiln_status write_selection(void *arg) {
  selecting *x = arg;
  const kl_aff *index[KILN_MAX_RANK];
  uint32_t values[SELECTED];
  kl_stage_index(&x->b, x->order, x->at, index);
  values[BEST] = kl_write_scalar(&x->b.w, x->array->dtype, 0, 0);
  values[TAP] = kl_stage_number(&x->b, x->number, kl_aff_const(x->s->p, -1));
  x->index = index;
  KL_TRY(kl_stage_box_write(&x->b, &x->box, SELECTED, values, ask, x));
  return kl_stage_store(&x->b, x->slot, index, values[TAP], x->b.keep);
}

static kiln_status select_taps(selecting *x) {
  int64_t sizes[KILN_MAX_RANK];
  for (uint32_t d = 0; d < x->array->rank; d++) sizes[d] = x->dims[d].size;
  x->at = kl_stage_elements(&x->b, x->s, x->order->count, 1);
  kl_stage_box_points(&x->b, &x->box, x->array->rank, sizes);
  return kl_stage_write(&x->b, x->order->count, write_selection, x);
}

// --- what elements get ----------------------------------------------------------------------------------------------

// Windows along a dimension that an element may lie in, at most: the last of them begins where it lies, or before.
static int64_t windows_over(const kl_window_dim *d) {
  int64_t reach;
  if (__builtin_mul_overflow(d->size - 1, d->window_dilation, &reach)) return INT64_MAX;
  return reach / d->stride + 1;
}

// The window number `at` of those, the tap by which it sees the element, and the guard that there is such.
static uint32_t window_over(selecting *x, const kl_aff **window, const kl_aff **tap, bool *never) {
  kl_affs *p = x->s->p;
  kl_guards *g = &x->b.w.guards;
  uint32_t guard = x->b.keep;
  *never = false;
  for (uint32_t d = 0; d < x->array->rank && !*never; d++) {
    const kl_window_dim *w = &x->dims[d];
    const kl_aff *place = kl_aff_addc(p, kl_aff_mulc(p, x->index[d], w->base_dilation), w->low);
    window[d] = kl_aff_add(p, kl_aff_floordivc(p, place, w->stride), x->box.at[d]);
    window[d] = kl_aff_addc(p, window[d], 1 - windows_over(w));
    const kl_aff *from = kl_aff_addmul(p, place, window[d], -w->stride);
    tap[d] = kl_aff_floordivc(p, from, w->window_dilation);
    guard = kl_guard_and(g, guard, window[d], 0, x->source->dims[d] - 1, never);
    if (!*never && w->window_dilation > 1)
      guard = kl_guard_and(g, guard, kl_aff_modc(p, from, w->window_dilation), 0, 0, never);
    if (!*never) guard = kl_guard_and(g, guard, tap[d], 0, w->size - 1, never);
  }
  return guard;
}

static kiln_status join_window(void *arg, uint32_t *value) {
  selecting *x = arg;
  kl_stage_body *b = &x->b;
  const kl_aff *window[KILN_MAX_RANK], *tap[KILN_MAX_RANK];
  uint32_t brought, made;
  bool never;
  uint32_t guard = window_over(x, window, tap, &never);
  if (never) return KILN_OK;
  uint32_t selected = kl_stage_load(b, x->slot, window, guard, x->number);
  uint32_t own = kl_stage_number(b, x->number, number_of(x, tap));
  uint32_t is_own = kl_stage_compare(b, KL_EQ, KL_CMP_DEFAULT, selected, own);
  KL_TRY(kl_walk_want(&b->walk, x->s->instr->operands[1], 0, guard, window, &brought));
  brought = kl_combiner_take(&b->w, &x->by, 0, brought);
  KL_TRY(kl_combine_values(&b->walk, &x->by, value, &brought, &made));
  *value = kl_write_choose(&b->w, guard, kl_stage_select(b, is_own, made, *value), *value);
  return KILN_OK;
}

static kiln_status write_elements(void *arg) {
  selecting *x = arg;
  const kl_aff *index[KILN_MAX_RANK];
  uint32_t value;
  kl_stage_index(&x->b, kl_stage_result(x->s, 0), x->at, index);
  KL_TRY(kl_walk_want(&x->b.walk, x->s->instr->operands[2], 0, KL_NONE, NULL, &value));
  value = kl_combiner_take(&x->b.w, &x->by, 0, value);
  x->index = index;
  if (x->source->count) KL_TRY(kl_stage_box_write(&x->b, &x->box, 1, &value, join_window, x));
  value = kl_combiner_give(&x->b.w, &x->by, 0, value, x->s->instr->shape->dtype);
  return kl_stage_store(&x->b, x->s->slot[0], index, value, x->b.keep);
}

static kiln_status join_windows(selecting *x) {
  const kl_shape *out = kl_stage_result(x->s, 0);
  int64_t sizes[KILN_MAX_RANK];
  for (uint32_t d = 0; d < x->array->rank; d++) sizes[d] = windows_over(&x->dims[d]);
  x->at = kl_stage_elements(&x->b, x->s, out->count, 1);
  kl_stage_box_points(&x->b, &x->box, x->array->rank, sizes);
  return kl_stage_write(&x->b, out->count, write_elements, x);
}

kiln_status kl_stage_selection(const kl_stage *s, const char **why_not) {
  const kl_instr *in = s->instr;
  const kl_comp *comp = s->c->plan->comp, *callee = s->c->plan->module->comp;
  selecting x = {.s = s, .dims = in->more->window, .select = &callee[in->called[0]], .slot = KL_NONE};
  x.array = kl_operand(comp, in, 0)->shape;
  x.source = kl_operand(comp, in, 1)->shape;
  x.by = kl_combiner_of(s->c->arena, &callee[in->called[1]], s->number);
  x.number = kl_stage_integer(kl_window_taps(in));
  if (x.source->count) {
    x.order = kl_in_order(s->c->plan->arena, x.source);
    x.slot = kl_stage_scratch(s, x.order, x.number);
    KL_TRY(select_taps(&x));
  }
  return join_windows(&x);
}
