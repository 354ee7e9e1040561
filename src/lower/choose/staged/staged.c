// The chooser of ops whose results are not made element by element: a stage for each, and a loop behind them.

#include "lower/choose/staged/sort/sort.h"

static kl_stage_writer *writer_of(kl_op op) {
  switch (op) {
  case KL_OP_SORT:
  case KL_OP_TOPK: return kl_stage_sort;
  case KL_OP_REDUCE_WINDOW: return kl_stage_window;
  case KL_OP_SELECT_AND_SCATTER: return kl_stage_selection;
  case KL_OP_SCAN: return kl_stage_scan;
  case KL_OP_CHOLESKY: return kl_stage_cholesky;
  case KL_OP_TRIANGULAR_SOLVE: return kl_stage_triangular_solve;
  case KL_OP_FFT: return kl_stage_fft;
  default: return NULL;
  }
}

bool kl_is_staged(kl_op op) {
  return writer_of(op) != NULL;
}

static void mark_used(const kl_comp *c, bool *used) {
  used[c->root] = true;
  for (uint32_t i = c->ninstr; i-- > 0;)
    for (uint32_t k = 0; used[i] && k < c->instr[i].noperands; k++) used[c->instr[i].operands[k]] = true;
}

// *why_not: "" where there is no stage, or something that none of them makes.
static void find(const kl_choosing *c, const bool *used, const char **why_not) {
  const kl_comp *comp = c->plan->comp;
  *why_not = "";
  for (uint32_t i = 0; i < comp->ninstr; i++) {
    if (!used[i] || !kl_is_apart(&comp->instr[i])) continue;
    *why_not = writer_of(comp->instr[i].op) ? NULL : "";
    if (*why_not) return;
  }
  if (!*why_not && c->plan->counted) *why_not = "the element count comes at run time";
}

// --- where results go -----------------------------------------------------------------------------------------------

// The instruction that makes a leaf of one, behind tuples, and which of its leaves that is.
static const kl_instr *maker_of(const kl_comp *c, const kl_instr *in, uint32_t *leaf) {
  while (in->op == KL_OP_TUPLE || in->op == KL_OP_GET_TUPLE_ELEMENT) {
    if (in->op == KL_OP_TUPLE) {
      uint32_t k = kl_shape_element_of_leaf(in->shape, *leaf);
      *leaf -= in->shape->first_leaf[k];
      in = kl_operand(c, in, k);
    } else {
      *leaf += kl_operand(c, in, 0)->shape->first_leaf[in->number];
      in = kl_operand(c, in, 0);
    }
  }
  return in;
}

static uint32_t leaves_of(const kl_instr *in) {
  return (uint32_t)kl_shape_leaf_count(in->shape);
}

typedef struct uses {
  uint32_t inside, results; // of a leaf: by instructions, and by results of the computation
  uint32_t result;          // the last of these
} uses;

// By leaf of an instruction.
static uses *uses_of(const kl_choosing *c, const bool *used, const kl_instr *of) {
  const kl_comp *comp = c->plan->comp;
  uses *all = KL_NEW_N(c->arena, uses, leaves_of(of) + 1u);
  for (uint32_t i = 0; i < comp->ninstr; i++) {
    const kl_instr *in = &comp->instr[i];
    if (!used[i] || in->op == KL_OP_TUPLE || in->op == KL_OP_GET_TUPLE_ELEMENT) continue;
    for (uint32_t k = 0; k < in->noperands; k++)
      for (uint32_t l = 0; l < leaves_of(kl_operand(comp, in, k)); l++) {
        uint32_t leaf = l;
        if (maker_of(comp, kl_operand(comp, in, k), &leaf) == of) all[leaf].inside++;
      }
  }
  for (uint32_t r = 0; r < leaves_of(kl_root(comp)); r++) {
    uint32_t leaf = r;
    if (maker_of(comp, kl_root(comp), &leaf) != of) continue;
    all[leaf].results++;
    all[leaf].result = r;
  }
  return all;
}

// An array of memory for the leaf, which lies there as `order` does, if it has its dimensions.
static uint32_t leave(const kl_stage *s, uint32_t leaf, const kl_shape *order) {
  kl_choosing *c = s->c;
  uint32_t slot = kl_store_value(c->cx, c->plan, &c->slots, s->number, leaf);
  kl_slot_info *info = &c->slots.v.p[slot];
  if (!order || !kl_shape_same_dims(info->shape, order)) return slot;
  kl_shape *as = kl_in_order(c->plan->arena, order);
  as->dtype = info->shape->dtype;
  info->shape = as;
  return slot;
}

static bool is_row_major(const kl_shape *s) {
  for (uint32_t d = 0; d < s->rank; d++)
    if ((uint32_t)kl_shape_minor_to_major(s, d) != s->rank - 1 - d) return false;
  return true;
}

// What is a result and nothing else goes there, but for elements that share a byte with others'. All that have the same
// dimensions lie alike, so that threads which have neighbours of one have neighbours of all; where dimensions differ,
// all lie in their order.
static void place_results(kl_stage *s, const bool *used, bool *made) {
  kl_choosing *c = s->c;
  uint32_t first = c->slots.nargs - leaves_of(kl_root(c->plan->comp));
  const kl_shape *order = NULL;
  bool plain = s->instr->op == KL_OP_SCAN;
  uses *u = uses_of(c, used, s->instr);
  for (uint32_t l = 0; l < leaves_of(s->instr); l++) {
    const kl_slot_info *info = &c->slots.v.p[first + u[l].result];
    bool direct = !u[l].inside && u[l].results == 1 && !info->owner && kl_info(info->shape->dtype)->bits >= 8;
    s->slot[l] = KL_NONE;
    if (!direct || (plain && !is_row_major(info->shape)) ||
        (order && kl_shape_same_dims(order, info->shape) && !kl_shape_same_in_memory(order, info->shape)))
      continue;
    order = info->shape;
    s->slot[l] = first + u[l].result;
    made[u[l].result] = true;
  }
  for (uint32_t l = 0; l < leaves_of(s->instr); l++)
    if (s->slot[l] == KL_NONE && (u[l].inside || u[l].results)) s->slot[l] = leave(s, l, order);
}

// --- stages ---------------------------------------------------------------------------------------------------------

static kiln_status write_stage(kl_choosing *c, uint32_t number, const bool *used, bool *made, const char **why_not) {
  const kl_instr *in = &c->plan->comp->instr[number];
  kl_stage s = {.c = c, .p = c->plan->affs, .instr = in, .number = number};
  s.slot = KL_NEW_N(c->arena, uint32_t, leaves_of(in) + 1u);
  size_t stored = c->slots.stored.n;
  place_results(&s, used, made);
  // While a stage is written its own results are not there.
  size_t all = c->slots.stored.n;
  c->slots.stored.n = stored;
  kiln_status st = writer_of(in->op)(&s, why_not);
  c->slots.stored.n = all;
  return st;
}

static kiln_status write_rest(kl_choosing *c, const bool *made) {
  uint32_t n = leaves_of(kl_root(c->plan->comp)), left = 0;
  for (uint32_t r = 0; r < n; r++) left += !made[r];
  if (!left && kl_last_launch(c->plan)->nparts) return KILN_OK;
  if (kl_last_launch(c->plan)->nparts) kl_plan_add_launch(c->plan, c->plan->target.block);
  return kl_loop_results(c, made, NULL);
}

static int64_t elements_of(const kl_instr *in) {
  int64_t n = 0;
  for (uint32_t l = 0; l < leaves_of(in); l++) n += kl_shape_leaf(in->shape, l)->count;
  return n;
}

kiln_status kl_choose_staged(kl_choosing *c, const char **why_not) {
  const kl_comp *comp = c->plan->comp;
  bool *used = KL_NEW_N(c->arena, bool, comp->ninstr + 1u);
  bool *made = KL_NEW_N(c->arena, bool, leaves_of(kl_root(comp)) + 1u);
  mark_used(comp, used);
  find(c, used, why_not);
  for (uint32_t i = 0; i < comp->ninstr && !*why_not; i++) {
    if (!used[i] || !kl_is_apart(&comp->instr[i])) continue;
    KL_TRY(kl_plan_check_shape(c->cx, &comp->instr[i]));
    if (!elements_of(&comp->instr[i])) continue;
    KL_TRY(write_stage(c, i, used, made, why_not));
    c->plan->count += elements_of(&comp->instr[i]);
  }
  return *why_not ? KILN_OK : write_rest(c, made);
}

// --- sorts in other ways --------------------------------------------------------------------------------------------

static kl_sorting way_of(kl_choosing *c, uint32_t number, kl_sorting wanted) {
  const kl_instr *in = &c->plan->comp->instr[number];
  kl_stage s = {.c = c, .p = c->plan->affs, .instr = in, .number = number};
  kl_sort x;
  if ((in->op != KL_OP_SORT && in->op != KL_OP_TOPK) || !elements_of(in)) return KL_MERGES;
  kl_sort_describe(&s, &x);
  return kl_sort_way(&x, wanted);
}

// The same stages, but for sorts; where one is another.
static kiln_status choose_sorting(kl_choosing *c, kl_sorting way, const char **why_not) {
  const kl_comp *comp = c->plan->comp;
  bool *used = KL_NEW_N(c->arena, bool, comp->ninstr + 1u), any = false;
  mark_used(comp, used);
  for (uint32_t i = 0; i < comp->ninstr && !any; i++) any = used[i] && way_of(c, i, way) == way;
  if (!any) {
    *why_not = "";
    return KILN_OK;
  }
  c->sorting = way;
  kiln_status st = kl_choose_staged(c, why_not);
  c->sorting = KL_MERGES;
  return st;
}

kiln_status kl_choose_radix_sort(kl_choosing *c, const char **why_not) {
  return choose_sorting(c, KL_SORTS_BY_DIGITS, why_not);
}

kiln_status kl_choose_tile_sort(kl_choosing *c, const char **why_not) {
  return choose_sorting(c, KL_MERGES_SORTED_TILES, why_not);
}

kiln_status kl_choose_top(kl_choosing *c, const char **why_not) {
  return choose_sorting(c, KL_KEEPS_FEW, why_not);
}
