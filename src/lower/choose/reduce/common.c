// What kernels of reductions have in common: results, and the launch.

#include "lower/choose/reduce/reduce.h"

int64_t kl_least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

int64_t kl_ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

int64_t kl_power_of_two(int64_t at_least) {
  int64_t p = 1;
  while (p < at_least) p *= 2;
  return p;
}

uint32_t kl_narrowest(const kl_reducing *g) {
  uint32_t bits = 64;
  const kl_slots *s = &g->c->slots;
  for (uint32_t i = 0; i < s->nargs; i++) {
    const kl_shape *shape = s->v.p[i].shape;
    if (shape->count < g->x->rows * g->x->length / 2) continue;
    uint32_t b = kl_info(shape->dtype)->bits;
    if (b < bits) bits = b;
  }
  return bits;
}

// --- values ---------------------------------------------------------------------------------------------------------

uint32_t kl_converted(kl_reducing *g, uint32_t step, kl_dtype to) {
  if (g->w.steps.p[step].dtype == to) return step;
  return kl_write_op(&g->w, (kl_plan_op){.op = KL_OP_CONVERT}, to, 1, &step);
}

kl_folding kl_folding_of(kl_reducing *g, uint32_t which) {
  return (kl_folding){g, &g->x->reducer[which], false};
}

// A leaf is one element where there is one round.
kl_folding kl_folding_leaves(const kl_folding *f) {
  return (kl_folding){f->g, f->by, f->g->x->length > f->g->x->w};
}

kiln_status kl_fold_give(kl_reducing *g, uint32_t which, const kl_aff *row, uint32_t guard, uint32_t *values) {
  kl_folding f = kl_folding_of(g, which);
  const kl_aff *index[KILN_MAX_RANK];
  KL_TRY(kl_fold_finish(&f, values, guard));
  kl_kept_index(g->p, g->x, which, row, index);
  for (uint32_t i = 0; i < f.by->nvalues; i++) kl_walk_give(&g->walk, g->x->number[which], i, index, values[i]);
  return KILN_OK;
}

kiln_status kl_give_nothing(kl_reducing *g, uint32_t level, const kl_aff *row, uint32_t guard) {
  for (uint32_t i = 0; i < g->x->n; i++) {
    kl_folding f = kl_folding_of(g, i);
    uint32_t values[KL_MAX_VALUES_FOLDED];
    if (g->x->level[i] != level) continue;
    kl_fold_nothing(&f, values);
    KL_TRY(kl_fold_give(g, i, row, guard, values));
  }
  return KILN_OK;
}

// --- results --------------------------------------------------------------------------------------------------------

const kl_slot_info *kl_slot_of(const kl_reducing *g, uint32_t slot) {
  return &g->c->slots.v.p[slot];
}

bool kl_has_element_results(const kl_reducing *g) {
  for (uint32_t i = 0; i < g->x->noutputs; i++)
    if (!g->x->outputs[i].of_row) return g->x->length > 0;
  return false;
}

void kl_output_index(kl_reducing *g, const kl_output *o, const kl_aff *row, const kl_aff *r, const kl_aff **index) {
  if (o->which == KL_NONE)
    kl_result_index(g->p, g->x, kl_slot_of(g, o->slot)->shape, row, r, index);
  else
    kl_kept_index(g->p, g->x, o->which, row, index);
}

kiln_status kl_want_output(kl_reducing *g, const kl_output *o, const kl_aff *row, const kl_aff *r, uint32_t guard,
                           const kl_aff **at, uint32_t *step) {
  const kl_shape *s = kl_slot_of(g, o->slot)->shape;
  const kl_aff *index[KILN_MAX_RANK];
  kl_output_index(g, o, row, r, index);
  *at = kl_position_of(g->p, s, index);
  KL_TRY(kl_walk_want(&g->walk, o->instr, o->leaf, guard, index, step));
  *step = kl_converted(g, *step, s->dtype);
  return KILN_OK;
}

kiln_status kl_store_elements(kl_reducing *g, const kl_aff *row, const kl_aff *r, uint32_t guard) {
  for (uint32_t i = 0; i < g->x->noutputs; i++) {
    const kl_output *o = &g->x->outputs[i];
    const kl_aff *at;
    uint32_t step;
    if (o->of_row) continue;
    KL_TRY(kl_want_output(g, o, row, r, guard, &at, &step));
    kl_write_store(&g->w, o->slot, kl_slot_of(g, o->slot), at, step, guard);
  }
  return KILN_OK;
}

// --- the plan -------------------------------------------------------------------------------------------------------

const kl_aff *kl_add_var(kl_reducing *g, kl_binding binding, int64_t extent, const char *name, uint32_t *var) {
  *var = KL_NONE;
  if (extent == 1) return kl_aff_const(g->p, 0);
  g->vars[g->nvars] = (kl_var){binding, extent, name};
  *var = g->nvars++;
  return kl_aff_dim(g->p, *var);
}

int64_t kl_rows_counted(const kl_reducing *g) {
  const kl_counted *counted = g->c->params->counted;
  const kl_reductions *x = g->x;
  if (!counted || x->nkept == 0) return 0;
  for (uint32_t i = 0; i < x->n; i++)
    if (counted->dim[x->number[i]][0] < 0 || counted->dim[x->instr[i]->operands[0]][0] != (int)x->kept[0]) return 0;
  return x->rows / counted->rows;
}

void kl_launch_counted(kl_reducing *g, uint32_t var, int64_t rows) {
  kl_plan_launch *l = kl_last_launch(g->c->plan);
  int64_t unit = kl_rows_counted(g);
  bool all = unit > 0 && var == 0 && (rows % unit == 0 || unit % rows == 0);
  for (uint32_t i = 0; i < g->x->noutputs; i++) all = all && kl_slot_of(g, g->x->outputs[i].slot)->row;
  l->group = all ? rows : 0;
  l->unit = all ? unit : 0;
}

void kl_reducing_begin(kl_reducing *g, kl_body *b) {
  kl_plan *p = g->c->plan;
  b->nvars = g->nvars;
  b->vars = kl_arena_dup(g->c->arena, g->vars, g->nvars * sizeof *g->vars);
  b->blocks = kl_extent(b, kl_bound(b, KL_BIND_BLOCK));
  b->width = p->target.machine == KL_HOST ? (uint32_t)kl_extent(b, kl_bound(b, KL_BIND_LANE)) : 1;
  kl_write_begin(&g->w, g->c->cx, p, b);
  kl_walk_begin(&g->walk, g->c->cx, p, &g->c->slots, &g->w);
  g->walk.goes_on = true;
}

const char kl_taken_elsewhere[] = "results are taken at other indices than those they are made at";

kiln_status kl_reducing_end(kl_reducing *g, kl_body *b, kiln_status st, int64_t threads, const char **why_not) {
  kl_plan *p = g->c->plan;
  if (st == KILN_OK && g->walk.elsewhere) *why_not = kl_taken_elsewhere;
  kl_walk_free(&g->walk);
  if (st == KILN_OK && g->w.splits_bytes) *why_not = "results of several threads would share a byte";
  uint32_t most = g->x->beside ? kl_most_shared(&p->target) : KL_MOST_SHARED;
  if (st == KILN_OK && kl_last_launch(p)->shared_bytes > most)
    *why_not = "it needs more shared memory than a block has";
  if (st != KILN_OK || *why_not) {
    kl_write_free(&g->w);
    return st;
  }
  kl_write_end(&g->w);
  if (p->count < g->x->rows) p->count = g->x->rows;
  kl_last_launch(p)->block = (uint32_t)threads;
  kl_part part = {.dim = KL_NONE, .count = g->x->rows, .main = *b, .blocks = b->blocks, .main_blocks = b->blocks};
  kl_plan_add_part(p, &part);
  return KILN_OK;
}
