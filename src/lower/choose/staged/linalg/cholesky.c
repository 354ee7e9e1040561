// cholesky: a launch for each panel of columns.
//
// Element (i, j) of the factor is (a_ij - sum over k < j of l_ik conj l_jk) / l_jj, summed in the order of k. A block
// has the panel's own rows, which are the same in all of them, and `height` rows below; the first one stores both. Of a
// factor that is an upper triangle, rows are columns, and the same are zero.

#include "lower/choose/staged/linalg/linalg.h"

typedef struct panel {
  kl_grid g;
  const kl_stage *s;
  kl_dtype whole;
  int64_t n, first, size; // of the matrix; the panel's columns
  int64_t below, height;  // rows below, and of a block
  kl_matrix a, l;
  const kl_aff *tile;            // which rows below
  kl_patch own, lower, zeros;    // elements as they lie in memory
  kl_patch own_work, lower_work; // columns along lanes
  kl_patch right, column, all;
  kl_stage_box chunk, pair, step; // of earlier columns; one of these; a column
  kl_room w, q, done;
} panel;

static kl_affs *affs(const panel *x) {
  return x->s->p;
}

static const kl_aff *in_panel(const panel *x, const kl_aff *e) {
  return kl_aff_addc(affs(x), e, x->first);
}

// A row below, by its number in the block.
static const kl_aff *lower_row(const panel *x, const kl_aff *e) {
  const kl_aff *of_tile = kl_aff_addmul(affs(x), e, x->tile, x->height);
  return kl_aff_addc(affs(x), of_tile, x->first + x->size);
}

// --- rows of the panel, or below ------------------------------------------------------------------------------------

static const kl_aff *room_row(const panel *x, bool lower, const kl_aff *i) {
  return lower ? kl_aff_addc(affs(x), i, x->size) : i;
}

static const kl_aff *matrix_row(const panel *x, bool lower, const kl_aff *i) {
  return lower ? lower_row(x, i) : in_panel(x, i);
}

static kiln_status load(panel *x, bool lower) {
  kl_patch *t = lower ? &x->lower : &x->own;
  kl_number v;
  kl_patch_begin(&x->g, t);
  const kl_aff *i = x->a.swaps ? t->f : t->g, *j = x->a.swaps ? t->g : t->f, *row = matrix_row(x, lower, i);
  KL_TRY(kl_matrix_want(&x->g, &x->a, row, in_panel(x, j), t->keep, &v));
  KL_TRY(kl_number_store(&x->g.b, x->w.slot, kl_room_at(&x->g, &x->w, room_row(x, lower, i), j), v, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

static kiln_status store(panel *x, bool lower) {
  kl_patch *t = lower ? &x->lower : &x->own;
  kl_patch_begin(&x->g, t);
  const kl_aff *i = x->a.swaps ? t->f : t->g, *j = x->a.swaps ? t->g : t->f, *row = matrix_row(x, lower, i);
  uint32_t keep = t->keep, below;
  kl_number v = kl_number_load(&x->g.b, x->w.slot, kl_room_at(&x->g, &x->w, room_row(x, lower, i), j), t->keep);
  if (!lower) {
    kl_number zero = kl_number_const(&x->g.b, x->whole, 0, 0);
    if (kl_grid_guard(&x->g, KL_NONE, kl_aff_sub(affs(x), i, j), 0, x->n, &below))
      v = kl_number_choose(&x->g.b, below, v, zero);
    kl_grid_guard(&x->g, keep, x->tile, 0, 0, &keep);
  }
  KL_TRY(kl_matrix_store(&x->g, &x->l, row, in_panel(x, j), v, keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

// Of the other triangle the elements across those below.
static kiln_status store_zeros(panel *x) {
  kl_patch *t = &x->zeros;
  kl_patch_begin(&x->g, t);
  const kl_aff *i = x->a.swaps ? t->g : t->f, *j = x->a.swaps ? t->f : t->g, *row = lower_row(x, i);
  kl_number zero = kl_number_const(&x->g.b, x->whole, 0, 0);
  KL_TRY(kl_matrix_store(&x->g, &x->l, in_panel(x, j), row, zero, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

// --- what earlier panels say ----------------------------------------------------------------------------------------

static const kl_aff *earlier(const panel *x, const kl_aff *k) {
  return kl_aff_addmul(affs(x), k, x->chunk.at[0], kl_panel_of(x->whole));
}

static kiln_status load_right(panel *x) {
  kl_patch *t = &x->right;
  kl_number v;
  kl_patch_begin(&x->g, t);
  const kl_aff *k = x->l.swaps ? t->g : t->f, *j = x->l.swaps ? t->f : t->g;
  KL_TRY(kl_matrix_want(&x->g, &x->l, in_panel(x, j), earlier(x, k), t->keep, &v));
  v = kl_number_conj(&x->g.b, v);
  KL_TRY(kl_number_store(&x->g.b, x->q.slot, kl_room_at(&x->g, &x->q, k, j), v, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

static kiln_status lose(panel *x, bool lower) {
  kl_patch *t = lower ? &x->lower_work : &x->own_work;
  kl_number l;
  kl_patch_begin(&x->g, t);
  const kl_aff *row = matrix_row(x, lower, t->g), *at = kl_room_at(&x->g, &x->w, room_row(x, lower, t->g), t->f);
  kl_number v = kl_number_load(&x->g.b, x->w.slot, at, t->keep);
  uint32_t values[2] = {v.re, v.im};
  kl_stage_box_begin(&x->g.b, &x->pair, v.im == KL_NONE ? 1 : 2, values);
  const kl_aff *k = x->pair.at[0];
  KL_TRY(kl_matrix_want(&x->g, &x->l, row, earlier(x, k), t->keep, &l));
  v = kl_number_less(&x->g.b, (kl_number){values[0], v.im == KL_NONE ? KL_NONE : values[1]}, l,
                     kl_number_load(&x->g.b, x->q.slot, kl_room_at(&x->g, &x->q, k, t->f), t->keep));
  values[0] = v.re;
  values[1] = v.im;
  kl_stage_box_end(&x->g.b, &x->pair, values);
  v.re = values[0];
  if (v.im != KL_NONE) v.im = values[1];
  KL_TRY(kl_number_store(&x->g.b, x->w.slot, at, v, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

static kiln_status lose_earlier(panel *x) {
  if (!x->first) return KILN_OK;
  kl_stage_box_begin(&x->g.b, &x->chunk, 0, NULL);
  KL_TRY(load_right(x));
  KL_TRY(lose(x, false));
  if (x->below) KL_TRY(lose(x, true));
  kl_stage_box_end(&x->g.b, &x->chunk, NULL);
  return KILN_OK;
}

// --- a column -------------------------------------------------------------------------------------------------------

static uint32_t is(panel *x, const kl_aff *i, const kl_aff *k) {
  uint32_t guard;
  return kl_grid_guard(&x->g, KL_NONE, kl_aff_sub(affs(x), i, k), 0, 0, &guard) ? guard : KL_NONE;
}

// Done: l_ik of all rows.
static kiln_status divide(panel *x, const kl_aff *k) {
  kl_stage_body *b = &x->g.b;
  kl_patch *t = &x->column;
  kl_dtype part = kl_number_part(x->whole);
  kl_patch_begin(&x->g, t);
  uint32_t pivot = kl_number_load(b, x->w.slot, kl_room_at(&x->g, &x->w, k, k), t->keep).re;
  uint32_t root = kl_write_op(&b->w, (kl_plan_op){.op = KL_OP_SQRT}, part, 1, &pivot);
  uint32_t by = kl_stage_op(b, KL_OP_DIVIDE, kl_number_const(b, part, 1, 0).re, root);
  kl_number v = kl_number_load(b, x->w.slot, kl_room_at(&x->g, &x->w, t->f, k), t->keep), on = v;
  v = kl_number_scale(b, v, by);
  on.re = root;
  if (on.im != KL_NONE) on.im = kl_number_const(b, part, 0, 0).re;
  v = kl_number_choose(b, is(x, t->f, k), on, v);
  KL_TRY(kl_number_store(b, x->done.slot, kl_room_at(&x->g, &x->done, t->f, kl_aff_const(affs(x), 0)), v, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

static kl_number done_at(panel *x, const kl_aff *i, uint32_t keep) {
  return kl_number_load(&x->g.b, x->done.slot, kl_room_at(&x->g, &x->done, i, kl_aff_const(affs(x), 0)), keep);
}

static kiln_status eliminate(panel *x) {
  kl_stage_body *b = &x->g.b;
  kl_patch *t = &x->all;
  uint32_t keep;
  kl_stage_box_begin(b, &x->step, 0, NULL);
  const kl_aff *k = x->step.at[0];
  KL_TRY(divide(x, k));
  kl_patch_begin(&x->g, t);
  const kl_aff *at = kl_room_at(&x->g, &x->w, t->g, t->f);
  kl_number right = kl_number_conj(b, done_at(x, t->f, t->keep)), left = done_at(x, t->g, t->keep);
  kl_number v = kl_number_less(b, kl_number_load(b, x->w.slot, at, t->keep), left, right);
  v = kl_number_choose(b, is(x, t->f, k), left, v);
  if (kl_grid_guard(&x->g, t->keep, kl_aff_sub(affs(x), t->f, k), 0, x->n, &keep))
    KL_TRY(kl_number_store(b, x->w.slot, at, v, keep));
  kl_patch_end(&x->g, t);
  kl_stage_box_end(b, &x->step, NULL);
  return KILN_OK;
}

// --- a panel --------------------------------------------------------------------------------------------------------

static kiln_status write_panel(void *arg) {
  panel *x = arg;
  int64_t rows = x->size + (x->below ? x->height : 0);
  kl_grid_begin(&x->g);
  x->w = kl_grid_room(&x->g, x->whole, rows, kl_odd(x->size), true);
  x->done = kl_grid_room(&x->g, x->whole, rows, 1, false);
  if (x->first) x->q = kl_grid_room(&x->g, x->whole, kl_panel_of(x->whole), kl_odd(x->size), false);
  KL_TRY(load(x, false));
  if (x->below) KL_TRY(load(x, true));
  KL_TRY(lose_earlier(x));
  KL_TRY(eliminate(x));
  KL_TRY(store(x, false));
  if (!x->below) return KILN_OK;
  KL_TRY(store(x, true));
  return store_zeros(x);
}

static int64_t bytes_of(const panel *x) {
  int64_t rows = x->size + (x->below ? x->height : 0), held = x->first ? kl_panel_of(x->whole) : 0;
  return ((rows + held) * kl_odd(x->size) + rows) * kl_info(x->whole)->bits / 8;
}

static void make_vars(panel *x) {
  int64_t rows = x->size + (x->below ? x->height : 0), held = kl_panel_of(x->whole), chunks = x->first / held;
  kl_grid *g = &x->g;
  bool swaps = x->a.swaps;
  uint32_t var;
  kl_grid_vars(g, x->s, kl_batch_of(x->a.shape), x->size, rows, bytes_of(x));
  int64_t tiles = x->below ? (x->below - 1) / x->height + 1 : 1;
  x->tile = kl_new_var(affs(x), &g->b.vars, KL_BIND_BLOCK, tiles, "tile", &var);
  const kl_aff *from = kl_aff_mulc(affs(x), x->tile, x->height);
  int64_t height = x->height, size = x->size, below = x->below;
  kl_patch_vars(g, &x->own, size, size);
  kl_patch_vars_of(g, &x->all, size, rows, true, from, size + below);
  kl_patch_vars_of(g, &x->column, rows, 1, false, from, size + below);
  kl_stage_box_vars(&g->b, &x->step, 1, &size);
  if (below) kl_patch_vars_of(g, &x->lower, swaps ? height : size, swaps ? size : height, !swaps, from, below);
  if (below) kl_patch_vars_of(g, &x->zeros, swaps ? size : height, swaps ? height : size, swaps, from, below);
  if (!chunks) return;
  kl_stage_box_vars(&g->b, &x->chunk, 1, &chunks);
  kl_stage_box_vars(&g->b, &x->pair, 1, &held);
  kl_patch_vars(g, &x->own_work, size, size);
  if (below) kl_patch_vars_of(g, &x->lower_work, size, height, true, from, below);
  kl_patch_vars(g, &x->right, swaps ? size : held, swaps ? held : size);
}

kiln_status kl_stage_cholesky(const kl_stage *s, const char **why_not) {
  const kl_shape *shape = kl_operand(s->c->plan->comp, s->instr, 0)->shape;
  panel x = {.s = s, .whole = kl_number_whole(shape->dtype), .n = shape->dims[shape->rank - 1]};
  bool swaps = !s->instr->more->lower;
  int64_t width = kl_panel_of(x.whole);
  x.a = (kl_matrix){.operand = 0, .shape = shape, .swaps = swaps};
  x.l = (kl_matrix){.operand = KL_NONE, .shape = kl_stage_result(s, 0), .swaps = swaps};
  x.height = x.whole == KILN_C128 ? 16 : 32;
  if (x.n > width) s->c->slots.v.p[s->slot[0]].mode = KL_MODE_GROWS;
  for (; x.first < x.n; x.first += width) {
    x.size = x.n - x.first < width ? x.n - x.first : width;
    x.below = x.n - x.first - x.size;
    make_vars(&x);
    KL_TRY(kl_stage_write(&x.g.b, kl_batch_of(shape) * x.size * (x.size + x.below), write_panel, &x));
  }
  return KILN_OK;
}
