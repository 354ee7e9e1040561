// Scans: reduce-window over all elements up to a place, and `scan`. A thread goes along a line.

#include "lower/choose/staged/scan.h"

// --- lines ----------------------------------------------------------------------------------------------------------

static void count_lines(kl_scan *x) {
  x->outer = x->inner = 1;
  bool faster = true;
  for (uint32_t i = 0; i < x->out->rank; i++) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(x->out, i);
    if (d == x->dim)
      faster = false;
    else if (faster)
      x->inner *= x->out->dims[d];
    else
      x->outer *= x->out->dims[d];
  }
}

void kl_scan_lines(kl_scan_body *x, const kl_scan *of) {
  bool beside = of->inner >= of->outer;
  uint32_t var;
  *x = (kl_scan_body){.x = of, .numbers = beside ? of->inner : of->outer};
  x->number = kl_stage_elements(&x->b, of->s, x->numbers, 1);
  const kl_aff *other =
      kl_new_var(of->s->p, &x->b.vars, KL_BIND_BLOCK, beside ? of->outer : of->inner, beside ? "outer" : "inner", &var);
  x->outer = beside ? other : x->number;
  x->inner = beside ? x->number : other;
}

void kl_scan_index(const kl_scan_body *x, const kl_aff *i, const kl_aff **index) {
  const kl_shape *s = x->x->out;
  kl_affs *p = x->x->s->p;
  const kl_aff *number = x->inner;
  uint32_t last = KL_NONE;
  for (uint32_t k = 0; k < s->rank; k++) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(s, k);
    if (d == x->x->dim) {
      if (last != KL_NONE) index[last] = number;
      last = KL_NONE;
      number = x->outer;
      continue;
    }
    if (last != KL_NONE) {
      index[last] = kl_aff_modc(p, number, s->dims[last]);
      number = kl_aff_floordivc(p, number, s->dims[last]);
    }
    last = d;
  }
  if (last != KL_NONE) index[last] = number;
  index[x->x->dim] = x->x->reverse ? kl_aff_addc(p, kl_aff_mulc(p, i, -1), x->x->length - 1) : i;
}

void kl_scan_line_index(const kl_scan_body *x, const kl_aff **index) {
  const kl_aff *all[KILN_MAX_RANK];
  kl_scan_index(x, kl_aff_const(x->x->s->p, 0), all);
  for (uint32_t d = 0, n = 0; d < x->x->out->rank; d++)
    if (d != x->x->dim) index[n++] = all[d];
}

static uint32_t operand(const kl_scan *x, uint32_t i) {
  return x->s->instr->operands[i];
}

kiln_status kl_scan_inits(kl_scan_body *x, uint32_t *values) {
  const kl_aff *index[KILN_MAX_RANK];
  kl_scan_line_index(x, index);
  for (uint32_t i = 0; i < x->x->n; i++) {
    KL_TRY(kl_walk_want(&x->b.walk, operand(x->x, x->x->init[i]), 0, x->x->inits ? x->b.keep : KL_NONE,
                        x->x->inits ? index : NULL, &values[i]));
    values[i] = kl_combiner_take(&x->b.w, &x->x->by, i, values[i]);
  }
  return KILN_OK;
}

kiln_status kl_scan_fetch(kl_scan_body *x, const kl_aff *i, uint32_t guard, uint32_t *values) {
  const kl_aff *index[KILN_MAX_RANK];
  kl_scan_index(x, i, index);
  for (uint32_t k = 0; k < x->x->n; k++) {
    KL_TRY(kl_walk_want(&x->b.walk, operand(x->x, x->x->array[k]), 0, guard, index, &values[k]));
    values[k] = kl_combiner_take(&x->b.w, &x->x->by, k, values[k]);
  }
  return KILN_OK;
}

static kiln_status store(kl_scan_body *x, uint32_t leaf, uint32_t k, const kl_aff *const *index, uint32_t guard,
                         uint32_t value) {
  const kl_stage *s = x->x->s;
  if (s->slot[leaf] == KL_NONE) return KILN_OK;
  value = kl_combiner_give(&x->b.w, &x->x->by, k, value, kl_shape_leaf(s->instr->shape, leaf)->dtype);
  return kl_stage_store(&x->b, s->slot[leaf], index, value, guard);
}

kiln_status kl_scan_store(kl_scan_body *x, const kl_aff *i, uint32_t guard, const uint32_t *values) {
  const kl_aff *index[KILN_MAX_RANK], *line[KILN_MAX_RANK];
  const kl_scan *of = x->x;
  bool never = false;
  kl_scan_index(x, i, index);
  for (uint32_t k = 0; k < of->n; k++) KL_TRY(store(x, k, k, index, guard, values[k]));
  if (!of->lasts) return KILN_OK;
  guard = kl_guard_and(&x->b.w.guards, guard, i, of->length - 1, of->length - 1, &never);
  kl_scan_line_index(x, line);
  for (uint32_t k = 0; k < of->n && !never; k++) KL_TRY(store(x, of->n + k, k, line, guard, values[k]));
  return KILN_OK;
}

kiln_status kl_scan_join(kl_scan_body *x, uint32_t first, const uint32_t *a, const uint32_t *b, uint32_t *out) {
  uint32_t *made = KL_NEW_N(x->x->s->c->arena, uint32_t, x->x->n);
  if (first == KL_NONE) {
    memmove(out, b, x->x->n * sizeof *out);
    return KILN_OK;
  }
  KL_TRY(kl_combine_values(&x->b.walk, &x->x->by, a, b, made));
  for (uint32_t i = 0; i < x->x->n; i++) out[i] = kl_write_choose(&x->b.w, first, b[i], made[i]);
  return KILN_OK;
}

// --- level by level -------------------------------------------------------------------------------------------------

// Loops over the digits of an element's number.
typedef struct levels {
  kl_scan_body l;
  uint32_t n;
  kl_stage_box digit[KL_SCAN_LEVELS]; // by level
} levels;

static kiln_status write_elements(levels *x, const kl_aff *block, const uint32_t *base, uint32_t *chain) {
  const kl_scan *of = x->l.x;
  kl_arena *arena = of->s->c->arena;
  uint32_t *value = KL_NEW_N(arena, uint32_t, 2 * of->n), *result = value + of->n;
  const kl_aff *i = kl_aff_addmul(of->s->p, x->digit[0].at[0], block, KL_SCAN_BASE);
  bool never;
  i = kl_dom_simplify(x->l.b.w.body->domain, i);
  uint32_t there = kl_guard_and(&x->l.b.w.guards, x->l.b.keep, i, 0, of->length - 1, &never);
  uint32_t first = kl_guard_and(&x->l.b.w.guards, KL_NONE, x->digit[0].at[0], 0, 0, &never);
  KL_TRY(kl_scan_fetch(&x->l, i, there, value));
  KL_TRY(kl_scan_join(&x->l, first, chain, value, chain));
  KL_TRY(kl_combine_values(&x->l.b.walk, &of->by, base, chain, result));
  return kl_scan_store(&x->l, i, there, result);
}

// The block `number` of a level; before all of it comes `base`. chain: what it makes of its elements, if all are there.
static kiln_status write_level(levels *x, uint32_t level, const kl_aff *number, const uint32_t *base, uint32_t *chain) {
  const kl_scan *of = x->l.x;
  uint32_t *before = KL_NEW_N(of->s->c->arena, uint32_t, 2 * of->n), *part = before + of->n;
  kl_stage_box *digit = &x->digit[level];
  bool never;
  for (uint32_t i = 0; i < of->n; i++) chain[i] = kl_write_scalar(&x->l.b.w, of->by.type[i], 0, 0);
  kl_stage_box_begin(&x->l.b, digit, of->n, chain);
  if (level == 0) {
    KL_TRY(write_elements(x, number, base, chain));
  } else {
    uint32_t first = kl_guard_and(&x->l.b.w.guards, KL_NONE, digit->at[0], 0, 0, &never);
    if (first == KL_NONE)
      memcpy(before, base, of->n * sizeof *before);
    else {
      KL_TRY(kl_combine_values(&x->l.b.walk, &of->by, base, chain, before));
      for (uint32_t i = 0; i < of->n; i++) before[i] = kl_write_choose(&x->l.b.w, first, base[i], before[i]);
    }
    const kl_aff *sub = kl_aff_addmul(of->s->p, digit->at[0], number, KL_SCAN_BASE);
    KL_TRY(write_level(x, level - 1, sub, before, part));
    KL_TRY(kl_scan_join(&x->l, first, chain, part, chain));
  }
  kl_stage_box_end(&x->l.b, digit, chain);
  return KILN_OK;
}

static void guard_lines(kl_scan_body *x) {
  bool never;
  x->number = kl_dom_simplify(x->b.w.body->domain, x->number);
  x->b.keep = kl_guard_and(&x->b.w.guards, KL_NONE, x->number, 0, x->numbers - 1, &never);
}

static kiln_status write_levels(void *arg) {
  levels *x = arg;
  uint32_t *base = KL_NEW_N(x->l.x->s->c->arena, uint32_t, 2 * x->l.x->n);
  guard_lines(&x->l);
  KL_TRY(kl_scan_inits(&x->l, base));
  return write_level(x, x->n - 1, kl_aff_const(x->l.x->s->p, 0), base, base + x->l.x->n);
}

static kiln_status scan_by_levels(const kl_scan *of) {
  levels x = {.n = 0};
  kl_scan_lines(&x.l, of);
  for (int64_t left = of->length; x.n == 0 || left > 1; x.n++) {
    int64_t extent = left < KL_SCAN_BASE ? left : KL_SCAN_BASE;
    kl_stage_box_vars(&x.l.b, &x.digit[x.n], 1, &extent);
    left = (left - 1) / KL_SCAN_BASE + 1;
  }
  return kl_stage_write(&x.l.b, of->out->count, write_levels, &x);
}

// --- step by step ---------------------------------------------------------------------------------------------------

// `scan` by any computation of slices that is made element by element: inputs and carries give outputs and carries.
typedef struct steps {
  kl_scan_body l;
  uint32_t inputs, carries, outputs;
  kl_stage_box along;
} steps;

static kiln_status take_step(steps *x, uint32_t *carries) {
  const kl_scan *of = x->l.x;
  const kl_stage *s = of->s;
  const kl_aff *index[KILN_MAX_RANK], *line[KILN_MAX_RANK];
  uint32_t *args = KL_NEW_N(s->c->arena, uint32_t, 2 * (x->inputs + x->carries + x->outputs) + 1u);
  uint32_t *results = args + x->inputs + x->carries;
  kl_scan_index(&x->l, x->along.at[0], index);
  kl_scan_line_index(&x->l, line);
  for (uint32_t i = 0; i < x->inputs; i++)
    KL_TRY(kl_walk_want(&x->l.b.walk, operand(of, i), 0, x->l.b.keep, index, &args[i]));
  memcpy(args + x->inputs, carries, x->carries * sizeof *args);
  KL_TRY(kl_walk_apply(&x->l.b.walk, s->number, &s->c->plan->module->comp[s->instr->called[0]], line, args, results));
  for (uint32_t i = 0; i < x->outputs; i++)
    if (s->slot[i] != KL_NONE) KL_TRY(kl_stage_store(&x->l.b, s->slot[i], index, results[i], x->l.b.keep));
  memcpy(carries, results + x->outputs, x->carries * sizeof *carries);
  return KILN_OK;
}

static kiln_status write_steps(void *arg) {
  steps *x = arg;
  const kl_stage *s = x->l.x->s;
  const kl_aff *line[KILN_MAX_RANK];
  uint32_t *carries = KL_NEW_N(s->c->arena, uint32_t, x->carries + 1u);
  guard_lines(&x->l);
  kl_scan_line_index(&x->l, line);
  for (uint32_t i = 0; i < x->carries; i++)
    KL_TRY(kl_walk_want(&x->l.b.walk, operand(x->l.x, x->inputs + i), 0, x->l.b.keep, line, &carries[i]));
  if (x->l.x->length) {
    kl_stage_box_begin(&x->l.b, &x->along, x->carries, carries);
    KL_TRY(take_step(x, carries));
    kl_stage_box_end(&x->l.b, &x->along, carries);
  }
  for (uint32_t i = 0; i < x->carries; i++) {
    uint32_t slot = s->slot[x->outputs + i];
    if (slot != KL_NONE) KL_TRY(kl_stage_store(&x->l.b, slot, line, carries[i], x->l.b.keep));
  }
  return KILN_OK;
}

static kiln_status scan_by_steps(const kl_scan *of) {
  const kl_instr *in = of->s->instr;
  steps x = {.carries = (uint32_t)in->more->carries};
  x.inputs = in->noperands - x.carries;
  x.outputs = (uint32_t)kl_shape_leaf_count(in->shape) - x.carries;
  kl_scan_lines(&x.l, of);
  int64_t rounds = of->length ? of->length : 1;
  kl_stage_box_vars(&x.l.b, &x.along, 1, &rounds);
  return kl_stage_write(&x.l.b, of->outer * of->inner * rounds, write_steps, &x);
}

// --- what is scanned ------------------------------------------------------------------------------------------------

static const uint32_t *numbers(kl_arena *arena, uint32_t first, uint32_t n) {
  uint32_t *all = KL_NEW_N(arena, uint32_t, n + 1u);
  for (uint32_t i = 0; i < n; i++) all[i] = first + i;
  return all;
}

kiln_status kl_stage_cumulative(const kl_stage *s, const char **why_not) {
  const kl_instr *in = s->instr;
  kl_scan x = {.s = s, .n = in->noperands / 2, .out = kl_stage_result(s, 0)};
  kl_window_is_cumulative(in, &x.dim, &x.reverse);
  x.length = x.out->dims[x.dim];
  x.array = numbers(s->c->arena, 0, x.n);
  x.init = numbers(s->c->arena, x.n, x.n);
  x.by = kl_combiner_of(s->c->arena, &s->c->plan->module->comp[in->called[0]], s->number);
  count_lines(&x);
  return scan_by_levels(&x);
}

// Is the result of a step its new carry, both that of one op?
static bool is_fold(const kl_stage *s, kl_combiner *by) {
  const kl_instr *in = s->instr;
  const kl_comp *c = &s->c->plan->module->comp[in->called[0]];
  const kl_instr *root = kl_root(c);
  if (!in->more->is_associative || in->noperands != 2 || in->more->carries != 1 || root->op != KL_OP_TUPLE)
    return false;
  if (root->noperands != 2 || root->operands[0] != root->operands[1]) return false;
  kl_comp one = *c;
  one.root = root->operands[0];
  *by = kl_combiner_of(s->c->arena, kl_arena_dup(s->c->arena, &one, sizeof one), s->number);
  return by->simple;
}

kiln_status kl_stage_scan(const kl_stage *s, const char **why_not) {
  const kl_instr *in = s->instr;
  kl_scan x = {
      .s = s, .n = 1, .dim = (uint32_t)in->dims[0], .reverse = in->more->is_reverse, .lasts = true, .inits = true};
  const kl_shape *whole = kl_operand(s->c->plan->comp, in, 0)->shape;
  kl_shape *out = kl_in_order(s->c->plan->arena, whole);
  out->layout = (kl_layout){0};
  x.out = out;
  x.length = whole->dims[x.dim];
  x.array = numbers(s->c->arena, 0, 1);
  x.init = numbers(s->c->arena, 1, 1);
  count_lines(&x);
  return x.length && is_fold(s, &x.by) ? scan_by_levels(&x) : scan_by_steps(&x);
}
