// Scans: reduce-window over all elements up to a place, and `scan`. A thread goes along a line.

#include "lower/choose/staged/scan.h"

// --- lines ----------------------------------------------------------------------------------------------------------

void kl_scan_begin_lines(kl_scan_body *x, const kl_scan *of) {
  bool beside = of->inner >= of->outer;
  uint32_t var;
  *x = (kl_scan_body){.x = of, .numbers = beside ? of->inner : of->outer};
  x->number = kl_stage_elements(&x->b, of->s, x->numbers, 1);
  const kl_aff *other =
      kl_new_var(of->s->p, &x->b.vars, KL_BIND_BLOCK, beside ? of->outer : of->inner, beside ? "outer" : "inner", &var);
  x->outer = beside ? other : x->number;
  x->inner = beside ? x->number : other;
}

static void index_of(const kl_scan_body *x, const kl_aff *i, const kl_aff **index) {
  kl_affs *p = x->x->s->p;
  if (x->x->reverse) i = kl_aff_addc(p, kl_aff_mulc(p, i, -1), x->x->length - 1);
  kl_stage_line_index(p, x->x->out, x->x->dim, x->outer, x->inner, i, index);
}

static void line_index(const kl_scan_body *x, const kl_aff **index) {
  const kl_aff *all[KILN_MAX_RANK];
  index_of(x, kl_aff_const(x->x->s->p, 0), all);
  for (uint32_t d = 0, n = 0; d < x->x->out->rank; d++)
    if (d != x->x->dim) index[n++] = all[d];
}

static uint32_t operand(const kl_scan *x, uint32_t i) {
  return x->s->instr->operands[i];
}

uint32_t *kl_scan_values(const kl_scan_body *x) {
  return KL_NEW_N(x->x->s->c->arena, uint32_t, x->x->by.n + 1u);
}

kiln_status kl_scan_init(kl_scan_body *x, uint32_t *values) {
  const kl_aff *index[KILN_MAX_RANK];
  const kl_combiner *by = &x->x->by;
  bool each = x->x->inits;
  line_index(x, index);
  for (uint32_t i = 0; i < by->n; i++) {
    uint32_t guard = each ? x->b.keep : KL_NONE;
    KL_TRY(kl_walk_want(&x->b.walk, operand(x->x, by->n + i), 0, guard, each ? index : NULL, &values[i]));
    values[i] = kl_combiner_take(&x->b.w, by, i, values[i]);
  }
  return KILN_OK;
}

kiln_status kl_scan_fetch(kl_scan_body *x, const kl_aff *i, uint32_t guard, uint32_t *values) {
  const kl_aff *index[KILN_MAX_RANK];
  const kl_combiner *by = &x->x->by;
  index_of(x, i, index);
  for (uint32_t k = 0; k < by->n; k++) {
    KL_TRY(kl_walk_want(&x->b.walk, operand(x->x, k), 0, guard, index, &values[k]));
    values[k] = kl_combiner_take(&x->b.w, by, k, values[k]);
  }
  return KILN_OK;
}

static kiln_status store(kl_scan_body *x, uint32_t k, uint32_t leaf, const kl_aff *const *index, uint32_t guard,
                         uint32_t value) {
  const kl_stage *s = x->x->s;
  if (s->slot[leaf] == KL_NONE) return KILN_OK;
  value = kl_combiner_give(&x->b.w, &x->x->by, k, value, kl_shape_leaf(s->instr->shape, leaf)->dtype);
  return kl_stage_store(&x->b, s->slot[leaf], index, value, guard);
}

kiln_status kl_scan_store(kl_scan_body *x, const kl_aff *i, uint32_t guard, const uint32_t *values) {
  const kl_aff *index[KILN_MAX_RANK];
  const kl_scan *of = x->x;
  bool never = false;
  index_of(x, i, index);
  for (uint32_t k = 0; k < of->by.n; k++) KL_TRY(store(x, k, k, index, guard, values[k]));
  if (!of->lasts) return KILN_OK;
  guard = kl_guard_and(&x->b.w.guards, guard, i, of->length - 1, of->length - 1, &never);
  line_index(x, index);
  for (uint32_t k = 0; k < of->by.n && !never; k++) KL_TRY(store(x, k, of->by.n + k, index, guard, values[k]));
  return KILN_OK;
}

void kl_scan_nothing(kl_scan_body *x, uint32_t *values) {
  for (uint32_t k = 0; k < x->x->by.n; k++) values[k] = kl_write_scalar(&x->b.w, x->x->by.type[k], 0, 0);
}

uint32_t kl_scan_is(kl_scan_body *x, const kl_aff *e, int64_t value) {
  bool never;
  return kl_guard_and(&x->b.w.guards, KL_NONE, kl_dom_simplify(x->b.w.body->domain, e), value, value, &never);
}

static kiln_status join_by_step(kl_scan_body *x, const uint32_t *a, const uint32_t *b, uint32_t *out) {
  const kl_aff *line[KILN_MAX_RANK];
  uint32_t n = x->x->by.n, *args = KL_NEW_N(x->x->s->c->arena, uint32_t, 4 * n + 1), *results = args + 2 * n;
  line_index(x, line);
  memcpy(args, b, n * sizeof *args);
  memcpy(args + n, a, n * sizeof *args);
  KL_TRY(kl_walk_apply(&x->b.walk, x->x->s->number, x->x->step, line, args, results));
  memcpy(out, results, n * sizeof *out);
  return KILN_OK;
}

kiln_status kl_scan_join(kl_scan_body *x, const uint32_t *a, const uint32_t *b, uint32_t *out) {
  if (x->x->step) return join_by_step(x, a, b, out);
  return kl_combine_values(&x->b.walk, &x->x->by, x->x->swapped ? b : a, x->x->swapped ? a : b, out);
}

static kiln_status choose_or_join(kl_scan_body *x, uint32_t guard, const uint32_t *alone, const uint32_t *a,
                                  const uint32_t *b, uint32_t *out) {
  uint32_t n = x->x->by.n, *made = kl_scan_values(x);
  if (guard != KL_NONE) KL_TRY(kl_scan_join(x, a, b, made));
  for (uint32_t k = 0; k < n; k++)
    out[k] = guard == KL_NONE ? alone[k] : kl_write_choose(&x->b.w, guard, alone[k], made[k]);
  return KILN_OK;
}

kiln_status kl_scan_behind(kl_scan_body *x, uint32_t first, const uint32_t *a, const uint32_t *b, uint32_t *out) {
  return choose_or_join(x, first, b, a, b, out);
}

kiln_status kl_scan_before(kl_scan_body *x, uint32_t first, const uint32_t *a, const uint32_t *b, uint32_t *out) {
  return choose_or_join(x, first, a, a, b, out);
}

// --- level by level -------------------------------------------------------------------------------------------------

void kl_scan_nest_vars(kl_scan_nest *x, kl_scan_body *l, uint32_t lowest) {
  int64_t left = l->x->length;
  x->l = l;
  x->lowest = x->top = lowest;
  for (uint32_t level = 0; level <= lowest; level++) left = (left - 1) / KL_SCAN_BASE + 1;
  while (left > 1) {
    int64_t extent = left < KL_SCAN_BASE ? left : KL_SCAN_BASE;
    kl_stage_box_vars(&l->b, &x->digit[++x->top], 1, &extent);
    left = (left - 1) / KL_SCAN_BASE + 1;
  }
}

// The block `number` of a level; before all of it comes `base`. chain: what it makes of its elements, if all are there.
static kiln_status write_level(kl_scan_nest *x, uint32_t level, const kl_aff *number, const uint32_t *base,
                               uint32_t *chain) {
  if (level == x->lowest) return x->block(x->arg, number, base, chain);
  kl_stage_body *b = &x->l->b;
  kl_stage_box *digit = &x->digit[level];
  uint32_t n = x->l->x->by.n, *before = kl_scan_values(x->l), *part = kl_scan_values(x->l);
  kl_scan_nothing(x->l, chain);
  kl_stage_box_begin(b, digit, n, chain);
  uint32_t first = kl_scan_is(x->l, digit->at[0], 0);
  KL_TRY(kl_scan_before(x->l, first, base, chain, before));
  const kl_aff *sub = kl_aff_addmul(b->s->p, digit->at[0], number, KL_SCAN_BASE);
  KL_TRY(write_level(x, level - 1, sub, before, part));
  KL_TRY(kl_scan_behind(x->l, first, chain, part, chain));
  kl_stage_box_end(b, digit, chain);
  return KILN_OK;
}

kiln_status kl_scan_nest_write(kl_scan_nest *x, const uint32_t *base) {
  return write_level(x, x->top, kl_aff_const(x->l->b.s->p, 0), base, kl_scan_values(x->l));
}

// --- a line a thread ------------------------------------------------------------------------------------------------

typedef struct levels {
  kl_scan_body l;
  kl_scan_nest nest;
  kl_stage_box element; // of a block of level 0
} levels;

static kiln_status write_block(void *arg, const kl_aff *number, const uint32_t *base, uint32_t *chain) {
  levels *x = arg;
  kl_stage_body *b = &x->l.b;
  uint32_t *values = kl_scan_values(&x->l), *result = kl_scan_values(&x->l);
  const kl_aff *i = kl_aff_addmul(b->s->p, x->element.at[0], number, KL_SCAN_BASE);
  bool never;
  kl_scan_nothing(&x->l, chain);
  kl_stage_box_begin(b, &x->element, x->l.x->by.n, chain);
  i = kl_dom_simplify(b->w.body->domain, i);
  uint32_t there = kl_guard_and(&b->w.guards, b->keep, i, 0, x->l.x->length - 1, &never);
  KL_TRY(kl_scan_fetch(&x->l, i, there, values));
  KL_TRY(kl_scan_behind(&x->l, kl_scan_is(&x->l, x->element.at[0], 0), chain, values, chain));
  KL_TRY(kl_scan_join(&x->l, base, chain, result));
  KL_TRY(kl_scan_store(&x->l, i, there, result));
  kl_stage_box_end(b, &x->element, chain);
  return KILN_OK;
}

void kl_scan_guard_lines(kl_scan_body *x) {
  bool never;
  x->number = kl_dom_simplify(x->b.w.body->domain, x->number);
  x->b.keep = kl_guard_and(&x->b.w.guards, KL_NONE, x->number, 0, x->numbers - 1, &never);
}

static kiln_status write_levels(void *arg) {
  levels *x = arg;
  uint32_t *base = kl_scan_values(&x->l);
  kl_scan_guard_lines(&x->l);
  KL_TRY(kl_scan_init(&x->l, base));
  return kl_scan_nest_write(&x->nest, base);
}

static kiln_status scan_by_levels(const kl_scan *of) {
  levels x = {.nest = {.block = write_block}};
  int64_t extent = of->length < KL_SCAN_BASE ? of->length : KL_SCAN_BASE;
  x.nest.arg = &x;
  kl_scan_begin_lines(&x.l, of);
  kl_stage_box_vars(&x.l.b, &x.element, 1, &extent);
  kl_scan_nest_vars(&x.nest, &x.l, 0);
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
  index_of(&x->l, x->along.at[0], index);
  line_index(&x->l, line);
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
  kl_scan_guard_lines(&x->l);
  line_index(&x->l, line);
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
  kl_scan_begin_lines(&x.l, of);
  int64_t rounds = of->length ? of->length : 1;
  kl_stage_box_vars(&x.l.b, &x.along, 1, &rounds);
  return kl_stage_write(&x.l.b, of->outer * of->inner * rounds, write_steps, &x);
}

// --- what is scanned ------------------------------------------------------------------------------------------------

kiln_status kl_stage_cumulative(const kl_stage *s, const char **why_not) {
  const kl_instr *in = s->instr;
  kl_scan x = {.s = s, .out = kl_stage_result(s, 0)};
  kl_window_is_cumulative(in, &x.dim, &x.reverse);
  x.length = x.out->dims[x.dim];
  x.by = kl_combiner_of(s->c->arena, &s->c->plan->module->comp[in->called[0]], s->number);
  x.swapped = x.reverse && !x.by.simple;
  kl_stage_count_lines(x.out, x.dim, &x.outer, &x.inner);
  return kl_scan_is_for_blocks(&x) ? kl_scan_by_blocks(&x) : scan_by_levels(&x);
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

// Are the results of a step its new carries, made of elements by elementwise ops, and of the types of inputs?
static bool is_joining(const kl_stage *s, kl_scan *x) {
  const kl_instr *in = s->instr;
  const kl_comp *c = &s->c->plan->module->comp[in->called[0]], *all = s->c->plan->comp;
  const kl_instr *root = kl_root(c);
  uint32_t n = in->noperands / 2;
  if (!in->more->is_associative || in->noperands != 2 * n || in->more->carries != (int64_t)n ||
      root->op != KL_OP_TUPLE || root->noperands != 2 * n || c->nparams != 2 * n || !kl_is_elementwise(c))
    return false;
  for (uint32_t k = 0; k < n; k++) {
    const kl_shape *a = kl_operand(all, in, k)->shape, *first = kl_operand(all, in, 0)->shape;
    const kl_shape *carry = kl_operand(all, in, n + k)->shape;
    if (root->operands[k] != root->operands[n + k] || a->dtype != carry->dtype || a->rank != first->rank ||
        kl_operand(c, root, k)->shape->dtype != a->dtype || c->instr[c->params[k]].shape->dtype != a->dtype ||
        memcmp(a->dims, first->dims, a->rank * sizeof *a->dims) != 0)
      return false;
  }
  x->step = c;
  x->by = kl_combiner_of(s->c->arena, c, s->number);
  return true;
}

kiln_status kl_stage_scan(const kl_stage *s, const char **why_not) {
  const kl_instr *in = s->instr;
  kl_scan x = {.s = s, .dim = (uint32_t)in->dims[0], .reverse = in->more->is_reverse, .lasts = true, .inits = true};
  const kl_shape *whole = kl_operand(s->c->plan->comp, in, 0)->shape;
  kl_shape *out = kl_in_order(s->c->plan->arena, whole);
  out->layout = (kl_layout){0};
  x.out = out;
  x.length = whole->dims[x.dim];
  kl_stage_count_lines(x.out, x.dim, &x.outer, &x.inner);
  if (!x.length || (!is_fold(s, &x.by) && !is_joining(s, &x))) return scan_by_steps(&x);
  return kl_scan_is_for_blocks(&x) ? kl_scan_by_blocks(&x) : scan_by_levels(&x);
}
