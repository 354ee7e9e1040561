// The chooser of reductions: which of them one launch makes, and what is stored where.
//
// A stage is a launch. It makes all reductions over the same elements that need no others than those made before it, or
// in it; results that go with these elements; and leaves to stages behind it, in scratch memory, what they need. What
// results are left have elements of another number, or take reductions at other indices: a loop makes them, at last.

#include "lower/choose/reduce/reduce.h"

typedef struct staging {
  kl_choosing *c;
  kl_found all;
  uint32_t nresults;
  const kl_instr **result; // of the computation, by leaf: the instruction that makes it
  bool **needs;            // by instruction, by reduction: is it made of it? NULL: of none
  bool *done, *here;       // by reduction: it is made by a stage before; by this one
  bool *stored;            // by result
} staging;

// --- what is made of what -------------------------------------------------------------------------------------------

static const kl_instr *maker_of(const kl_comp *c, uint32_t leaf) {
  const kl_instr *in = kl_root(c);
  while (in->op == KL_OP_TUPLE) {
    uint32_t i = kl_shape_element_of_leaf(in->shape, leaf);
    leaf -= in->shape->first_leaf[i];
    in = kl_operand(c, in, i);
  }
  return in;
}

static void find_needs(staging *x) {
  const kl_comp *c = x->c->plan->comp;
  x->needs = KL_NEW_N(x->c->arena, bool *, c->ninstr + 1);
  for (uint32_t i = 0, next = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    bool reduction = next < x->all.n && x->all.number[next] == i, any = reduction;
    for (uint32_t k = 0; k < in->noperands; k++) any = any || x->needs[in->operands[k]];
    if (!any) continue;
    x->needs[i] = KL_NEW_N(x->c->arena, bool, x->all.n);
    for (uint32_t k = 0; k < in->noperands; k++)
      for (uint32_t r = 0; x->needs[in->operands[k]] && r < x->all.n; r++)
        x->needs[i][r] = x->needs[i][r] || x->needs[in->operands[k]][r];
    if (reduction) x->needs[i][next++] = true;
  }
}

// Is all there that the instruction is made of, but for reduction `own`?
static bool is_ready(const staging *x, uint32_t instr, uint32_t own) {
  for (uint32_t r = 0; x->needs[instr] && r < x->all.n; r++)
    if (x->needs[instr][r] && r != own && !x->done[r] && !x->here[r]) return false;
  return true;
}

// --- a stage --------------------------------------------------------------------------------------------------------

static void find_stage(staging *x, uint32_t first, bool one_level) {
  memset(x->here, 0, x->all.n * sizeof *x->here);
  bool *next = KL_NEW_N(x->c->arena, bool, x->all.n);
  for (uint32_t r = first; r < x->all.n; r++) {
    if (x->done[r] || !kl_same_domain(&x->all.domain[r], &x->all.domain[first])) continue;
    next[r] = is_ready(x, x->all.number[r], r);
    if (x->c->effort < KL_LEVELS_APART && !one_level) x->here[r] = next[r];
  }
  memcpy(x->here, next, x->all.n * sizeof *next);
}

// Is it made of the stage's reductions, an element for each row? What others want of them is fewest there.
static bool is_of_rows(const staging *x, const kl_reductions *stage, uint32_t instr) {
  const kl_shape *s = x->c->plan->comp->instr[instr].shape;
  bool of_stage = false;
  if (x->c->effort > KL_TOGETHER || !kl_shape_is_array(s) || s->count != stage->rows || !x->needs[instr]) return false;
  for (uint32_t r = 0; r < x->all.n; r++) of_stage = of_stage || (x->needs[instr][r] && x->here[r]);
  return of_stage && is_ready(x, instr, KL_NONE);
}

// Marks what stages behind this one find in scratch memory, by instruction: where from what is still to be made one
// comes upon reductions that are made.
static bool *find_left(const staging *x, const kl_reductions *stage) {
  const kl_comp *c = x->c->plan->comp;
  bool *wanted = KL_NEW_N(x->c->arena, bool, c->ninstr + 1), *left = KL_NEW_N(x->c->arena, bool, c->ninstr + 1);
  for (uint32_t i = 0; i < x->nresults; i++)
    if (!x->stored[i]) wanted[x->result[i] - c->instr] = true;
  for (uint32_t i = c->ninstr, next = x->all.n; i-- > 0;) {
    bool reduction = next && x->all.number[next - 1] == i, made = false;
    if (reduction) {
      next--;
      made = x->done[next] || x->here[next];
      wanted[i] = wanted[i] || !made;
    }
    if (!wanted[i]) continue;
    left[i] = reduction && made ? x->here[next] : is_of_rows(x, stage, i);
    for (uint32_t k = 0; !made && !left[i] && k < c->instr[i].noperands; k++) wanted[c->instr[i].operands[k]] = true;
  }
  return left;
}

static uint32_t number_in(const kl_reductions *stage, uint32_t instr) {
  for (uint32_t i = 0; i < stage->n; i++)
    if (stage->number[i] == instr) return i;
  return KL_NONE;
}

// What rows leave lies in the order of rows.
static void lay_by_rows(staging *x, const kl_reductions *stage, uint32_t slot) {
  kl_slot_info *info = &x->c->slots.v.p[slot];
  uint32_t n = stage->nkept;
  kl_shape *shape = kl_arena_dup(x->c->arena, info->shape, sizeof *info->shape);
  int64_t *order = KL_NEW_N(x->c->arena, int64_t, n + 1u);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++) order[i] += stage->kept[k] < stage->kept[n - 1 - i];
  shape->layout = (kl_layout){.present = true, .rank = n, .minor_to_major = order, .tail_padding = 1};
  info->shape = shape;
}

// What is left of rows whose number comes at run time, if these lie one behind the other.
static void count_rows(staging *x, uint32_t slot, uint32_t instr, uint32_t leaf) {
  const kl_counted *counted = x->c->params->counted;
  kl_slot_info *info = &x->c->slots.v.p[slot];
  const kl_shape *s = info->shape;
  int64_t faster = s->count;
  if (!counted || counted->dim[instr][leaf] < 0 || s->count == 0) return;
  for (uint32_t i = s->rank; i-- > 0 && faster == s->count;) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(s, i);
    if (d == (uint32_t)counted->dim[instr][leaf]) info->row = s->count / counted->rows;
    faster /= s->dims[d];
  }
}

// Results of the computation that go with the stage's elements, and what is left to other stages.
static void find_outputs(staging *x, kl_reductions *stage) {
  kl_choosing *c = x->c;
  kl_plan *p = c->plan;
  const kl_comp *comp = p->comp;
  uint32_t first = c->slots.nargs - x->nresults;
  VEC(kl_output) out = {0};
  for (uint32_t i = 0; i < x->nresults && x->c->effort == KL_TOGETHER; i++) {
    kl_result_level level = kl_result_of(stage, c->slots.v.p[first + i].shape);
    unsigned bits = kl_info(c->slots.v.p[first + i].shape->dtype)->bits;
    if (c->slots.v.p[first + i].owner) continue; // position by position, behind it
    if (x->stored[i] || level == KL_RESULT_NEITHER) continue;
    if (stage->split > 1 && !stage->cluster && (level == KL_RESULT_ELEMENT || bits < 8)) continue;
    if (!is_ready(x, (uint32_t)(x->result[i] - comp->instr), KL_NONE)) continue;
    VEC_PUSH(c->cx, &out, (kl_output){first + i, comp->root, i, KL_NONE, level == KL_RESULT_ROW});
    x->stored[i] = true;
  }
  const bool *left = find_left(x, stage);
  for (uint32_t i = 0; i < comp->ninstr; i++)
    for (uint32_t l = 0; left[i] && l < kl_shape_leaf_count(comp->instr[i].shape); l++) {
      uint32_t slot = kl_store_value(c->cx, p, &c->slots, i, l);
      if (number_in(stage, i) != KL_NONE) lay_by_rows(x, stage, slot);
      count_rows(x, slot, i, l);
      VEC_PUSH(c->cx, &out, (kl_output){slot, i, l, number_in(stage, i), true});
    }
  stage->noutputs = (uint32_t)out.n;
  stage->outputs = VEC_FREEZE(c->cx, c->arena, &out);
}

// --- columns beside rows --------------------------------------------------------------------------------------------

// Are these reductions of the stage's elements along its other dimensions?
static bool is_across_rows(const kl_reductions *stage, const kl_reductions *columns) {
  uint32_t dims = 0, others = 0;
  if (!kl_shape_same_dims(stage->shape, columns->shape) || columns->nreduced != stage->nkept) return false;
  for (uint32_t i = 0; i < stage->nkept; i++) {
    dims |= 1u << stage->kept[i];
    others |= 1u << columns->reduced[i];
  }
  return dims == others && !columns->row;
}

// All that is still to be reduced, if it is columns of one order; false: it is not.
static bool find_columns(const staging *x, const kl_reductions *stage, bool *columns) {
  const kl_reductions *first = NULL;
  for (uint32_t r = 0; r < x->all.n; r++) {
    const kl_reductions *d = &x->all.domain[r];
    if (x->done[r] || x->here[r]) continue;
    if (!x->all.reducer[r].has_identity || !is_ready(x, x->all.number[r], r)) return false;
    if (first ? !kl_same_domain(first, d) : !is_across_rows(stage, d)) return false;
    first = d;
    columns[r] = true;
  }
  return first != NULL;
}

// Is it made of some reduction of the stage, but for what these columns' are made of?
static bool takes_rows(const staging *x, const bool *columns, uint32_t instr) {
  const kl_comp *c = x->c->plan->comp;
  bool *seen = KL_NEW_N(x->c->arena, bool, c->ninstr);
  seen[instr] = true;
  for (uint32_t i = instr + 1, next = x->all.n; i-- > 0;) {
    while (next && x->all.number[next - 1] > i) next--;
    if (!seen[i]) continue;
    if (next && x->all.number[next - 1] == i) {
      if (x->here[next - 1] && !columns[next - 1]) return true;
      continue;
    }
    for (uint32_t k = 0; k < c->instr[i].noperands; k++) seen[c->instr[i].operands[k]] = true;
  }
  return false;
}

typedef struct outputs {
  VEC(kl_output) rows, columns;
} outputs;

// Every result that is left is one of the stage's, or of these columns.
static bool share_outputs(staging *x, const kl_reductions *stage, const kl_reductions *beside, const bool *columns,
                          outputs *out) {
  kl_choosing *c = x->c;
  const kl_comp *comp = c->plan->comp;
  uint32_t first = c->slots.nargs - x->nresults;
  for (uint32_t i = 0; i < x->nresults; i++) {
    const kl_slot_info *s = &c->slots.v.p[first + i];
    uint32_t instr = (uint32_t)(x->result[i] - comp->instr);
    kl_output o = {first + i, comp->root, i, KL_NONE, true};
    if (x->stored[i]) continue;
    if (s->owner || kl_info(s->shape->dtype)->bits < 8) return false;
    kl_result_level level = kl_result_of(stage, s->shape);
    if (level != KL_RESULT_NEITHER && is_ready(x, instr, KL_NONE)) {
      o.of_row = level == KL_RESULT_ROW;
      VEC_PUSH(c->cx, &out->rows, o);
      continue;
    }
    if (kl_result_of(beside, s->shape) != KL_RESULT_ROW || takes_rows(x, columns, instr)) return false;
    VEC_PUSH(c->cx, &out->columns, o);
  }
  return true;
}

static const uint32_t *find_behind(const staging *x, const kl_reductions *stage, const kl_reductions *beside) {
  uint32_t *behind = KL_NEW_N(x->c->arena, uint32_t, beside->n);
  for (uint32_t i = 0; i < beside->n; i++) {
    behind[i] = 1;
    for (uint32_t r = 0; r < x->all.n; r++) {
      uint32_t n = number_in(stage, x->all.number[r]);
      if (n != KL_NONE && x->needs[beside->number[i]][r] && stage->level[n] > behind[i]) behind[i] = stage->level[n];
    }
  }
  return behind;
}

// Where rows, and columns of what they have, are all that is left, a launch of rows may make both. Its rows are in the
// order in which columns have them.
static kiln_status find_beside(staging *x, kl_reductions *stage) {
  kl_choosing *c = x->c;
  bool *columns = KL_NEW_N(c->arena, bool, x->all.n), have = false;
  outputs out = {{0}, {0}};
  if (c->effort > KL_TOGETHER || !stage->row || stage->across || stage->split > 1 || !stage->rows || !stage->length)
    return KILN_OK;
  if (!find_columns(x, stage, columns)) return KILN_OK;
  kl_reductions *beside = KL_NEW(c->arena, kl_reductions);
  kl_reductions_of(c, &x->all, columns, beside);
  beside->nkept = stage->nreduced;
  memcpy(beside->kept, stage->reduced, sizeof beside->kept);
  kl_reductions own = *stage;
  memcpy(own.kept, beside->reduced, sizeof own.kept);
  if (share_outputs(x, stage, beside, columns, &out)) {
    own.noutputs = (uint32_t)out.rows.n;
    own.outputs = kl_arena_dup(c->arena, out.rows.p, out.rows.n * sizeof *out.rows.p);
    beside->noutputs = (uint32_t)out.columns.n;
    beside->outputs = kl_arena_dup(c->arena, out.columns.p, out.columns.n * sizeof *out.columns.p);
    beside->behind = find_behind(x, stage, beside);
  } else {
    beside = NULL;
  }
  VEC_FREE(c->cx, &out.rows);
  VEC_FREE(c->cx, &out.columns);
  if (beside) KL_TRY(kl_rows_have_columns(c, &own, beside, &have));
  if (!have) return KILN_OK;
  *stage = own;
  stage->beside = beside;
  for (uint32_t r = 0; r < x->all.n; r++) x->here[r] = x->here[r] || columns[r];
  for (uint32_t i = 0; i < x->nresults; i++) x->stored[i] = true;
  return KILN_OK;
}

// With rows of no elements, or none, one block does.
static void choose_split(staging *x, kl_reductions *stage) {
  if (stage->rows == 0 || stage->length == 0) return;
  if (stage->across)
    kl_split_columns(x->c, stage);
  else
    kl_split_rows(x->c, stage);
}

static kiln_status make_stage(staging *x, uint32_t first, const char **why_not) {
  kl_choosing *c = x->c;
  kl_reductions *stage = KL_NEW(c->arena, kl_reductions);
  find_stage(x, first, false);
  kl_reductions_of(c, &x->all, x->here, stage);
  KL_TRY(kl_find_reading(c, stage));
  choose_split(x, stage);
  if (stage->split > 1 && stage->levels > 1 && !stage->cluster) {
    kl_reductions all = *stage;
    find_stage(x, first, true);
    kl_reductions_of(c, &x->all, x->here, stage);
    stage->split = all.split;
    stage->across = all.across;
    stage->minor = all.minor;
    stage->flat = all.flat;
    memcpy(stage->kept, all.kept, sizeof all.kept);
  }
  stage->two_launches = c->params->strategy.two_launches || c->plan->target.machine == KL_HOST;
  size_t stored = c->slots.stored.n;
  KL_TRY(find_beside(x, stage));
  if (!stage->beside) find_outputs(x, stage);
  if (stage->rows) {
    if (c->plan->nparts) kl_plan_add_launch(c->plan, c->plan->target.block);
    // Bodies of this stage do not find what it stores itself.
    size_t with = c->slots.stored.n;
    c->slots.stored.n = stored;
    KL_TRY(stage->across ? kl_choose_columns(c, stage, why_not) : kl_choose_rows(c, stage, why_not));
    c->slots.stored.n = with;
  }
  for (uint32_t r = 0; r < x->all.n; r++) x->done[r] = x->done[r] || x->here[r];
  return KILN_OK;
}

// --- all of them ----------------------------------------------------------------------------------------------------

// The loop's domains count by themselves; where nothing is left it makes a part of nothing for a plan that has none.
static kiln_status make_rest(staging *x) {
  kl_choosing *c = x->c;
  bool left = c->plan->nparts == 0;
  for (uint32_t i = 0; i < x->nresults; i++) left = left || !x->stored[i];
  if (!left) return KILN_OK;
  if (c->plan->nparts) kl_plan_add_launch(c->plan, c->plan->target.block);
  return kl_loop_results(c, x->stored, NULL);
}

static kiln_status make_stages(staging *x, const char **why_not) {
  kl_choosing *c = x->c;
  *why_not = NULL;
  x->done = KL_NEW_N(c->arena, bool, x->all.n);
  x->here = KL_NEW_N(c->arena, bool, x->all.n);
  x->stored = KL_NEW_N(c->arena, bool, x->nresults + 1);
  for (uint32_t i = 0; i < x->nresults; i++)
    x->stored[i] = c->slots.v.p[c->slots.nargs - x->nresults + i].shape->count == 0;
  for (uint32_t r = 0; r < x->all.n && !*why_not; r++)
    if (!x->done[r]) KL_TRY(make_stage(x, r, why_not));
  return *why_not ? KILN_OK : make_rest(x);
}

kiln_status kl_choose_reduction(kl_choosing *c, const char **why_not) {
  staging x = {.c = c, .nresults = (uint32_t)kl_shape_leaf_count(kl_root(c->plan->comp)->shape)};
  KL_TRY(kl_find_reductions(c, &x.all, why_not));
  if (*why_not) return KILN_OK;
  x.result = KL_NEW_N(c->arena, const kl_instr *, x.nresults + 1);
  for (uint32_t i = 0; i < x.nresults; i++) x.result[i] = maker_of(c->plan->comp, i);
  find_needs(&x);
  size_t slots = c->slots.v.n, constants = c->slots.constants.n;
  for (; c->effort < KL_EFFORTS; c->effort++) {
    KL_TRY(make_stages(&x, why_not));
    if (!*why_not) break;
    kl_forget_choice(c, slots, constants);
  }
  return KILN_OK;
}
