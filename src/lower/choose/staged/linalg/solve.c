// triangular-solve: a launch for each panel of unknowns.
//
// Vectors x with T x = b are columns of the result, or rows where the matrix stands on the right: then T is it
// transposed. Unknown i is (b_i - sum over k before it of t_ik x_k) / t_ii, summed in the order in which they are
// solved for, which of an upper triangle is from the last one on. A block has the panel of some vectors.

#include "lower/choose/staged/linalg/linalg.h"

typedef struct panel {
  kl_grid g;
  const kl_stage *s;
  kl_dtype whole;
  int64_t n, vectors, first, size, width; // width: vectors of a block
  bool unit, backwards;
  kl_matrix t, b, x;
  const kl_aff *tile; // of vectors
  bool along;         // lanes run along unknowns where the panel is worked on, not along vectors
  kl_patch triangle, part, work, vector, right;
  kl_stage_box chunk, pair, step; // of earlier unknowns; one of these; an unknown
  kl_room a, w, q, done;
} panel;

enum { WIDTH = 32 };

static kl_affs *affs(const panel *x) {
  return x->s->p;
}

// Where in the matrix an unknown lies, by the order in which they are solved for.
static const kl_aff *place(const panel *x, const kl_aff *e) {
  return x->backwards ? kl_aff_addc(affs(x), kl_aff_mulc(affs(x), e, -1), x->n - 1) : e;
}

static const kl_aff *in_panel(const panel *x, const kl_aff *e) {
  return place(x, kl_aff_addc(affs(x), e, x->first));
}

static const kl_aff *earlier(const panel *x, const kl_aff *k) {
  return place(x, kl_aff_addmul(affs(x), k, x->chunk.at[0], kl_panel_of(x->whole)));
}

static const kl_aff *vector_of(const panel *x, const kl_aff *c) {
  return kl_aff_addmul(affs(x), c, x->tile, x->width);
}

// --- to shared memory and back --------------------------------------------------------------------------------------

static kiln_status load_triangle(panel *x) {
  kl_patch *t = &x->triangle;
  kl_number v;
  kl_patch_begin(&x->g, t);
  const kl_aff *i = x->t.swaps ? t->f : t->g, *j = x->t.swaps ? t->g : t->f;
  KL_TRY(kl_matrix_want(&x->g, &x->t, in_panel(x, i), in_panel(x, j), t->keep, &v));
  KL_TRY(kl_number_store(&x->g.b, x->a.slot, kl_room_at(&x->g, &x->a, i, j), v, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

static kiln_status load(panel *x) {
  kl_patch *t = &x->part;
  kl_number v;
  kl_patch_begin(&x->g, t);
  const kl_aff *i = x->b.swaps ? t->f : t->g, *c = x->b.swaps ? t->g : t->f;
  const kl_aff *vector = vector_of(x, c);
  KL_TRY(kl_matrix_want(&x->g, &x->b, in_panel(x, i), vector, t->keep, &v));
  KL_TRY(kl_number_store(&x->g.b, x->w.slot, kl_room_at(&x->g, &x->w, i, c), v, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

static kiln_status store(panel *x) {
  kl_patch *t = &x->part;
  kl_patch_begin(&x->g, t);
  const kl_aff *i = x->b.swaps ? t->f : t->g, *c = x->b.swaps ? t->g : t->f;
  const kl_aff *vector = vector_of(x, c);
  kl_number v = kl_number_load(&x->g.b, x->w.slot, kl_room_at(&x->g, &x->w, i, c), t->keep);
  KL_TRY(kl_matrix_store(&x->g, &x->x, in_panel(x, i), vector, v, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

// --- what earlier panels say ----------------------------------------------------------------------------------------

static kiln_status load_right(panel *x) {
  kl_patch *t = &x->right;
  kl_number v;
  kl_patch_begin(&x->g, t);
  const kl_aff *k = x->x.swaps ? t->f : t->g, *c = x->x.swaps ? t->g : t->f;
  const kl_aff *vector = vector_of(x, c);
  KL_TRY(kl_matrix_want(&x->g, &x->x, earlier(x, k), vector, t->keep, &v));
  KL_TRY(kl_number_store(&x->g.b, x->q.slot, kl_room_at(&x->g, &x->q, k, c), v, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

static void work_at(const panel *x, const kl_aff **i, const kl_aff **c) {
  *i = x->along ? x->work.f : x->work.g;
  *c = x->along ? x->work.g : x->work.f;
}

static kiln_status lose(panel *x) {
  kl_patch *t = &x->work;
  kl_number l;
  const kl_aff *i, *c;
  kl_patch_begin(&x->g, t);
  work_at(x, &i, &c);
  const kl_aff *at = kl_room_at(&x->g, &x->w, i, c);
  kl_number v = kl_number_load(&x->g.b, x->w.slot, at, t->keep);
  uint32_t values[2] = {v.re, v.im}, parts = v.im == KL_NONE ? 1 : 2;
  kl_stage_box_begin(&x->g.b, &x->pair, parts, values);
  const kl_aff *k = x->pair.at[0];
  KL_TRY(kl_matrix_want(&x->g, &x->t, in_panel(x, i), earlier(x, k), t->keep, &l));
  v = kl_number_less(&x->g.b, (kl_number){values[0], parts == 1 ? KL_NONE : values[1]}, l,
                     kl_number_load(&x->g.b, x->q.slot, kl_room_at(&x->g, &x->q, k, c), t->keep));
  values[0] = v.re;
  values[1] = v.im;
  kl_stage_box_end(&x->g.b, &x->pair, values);
  v = (kl_number){values[0], parts == 1 ? KL_NONE : values[1]};
  KL_TRY(kl_number_store(&x->g.b, x->w.slot, at, v, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

static kiln_status lose_earlier(panel *x) {
  if (!x->first) return KILN_OK;
  kl_stage_box_begin(&x->g.b, &x->chunk, 0, NULL);
  KL_TRY(load_right(x));
  KL_TRY(lose(x));
  kl_stage_box_end(&x->g.b, &x->chunk, NULL);
  return KILN_OK;
}

// --- an unknown -----------------------------------------------------------------------------------------------------

static kiln_status divide(panel *x, const kl_aff *k) {
  kl_stage_body *b = &x->g.b;
  kl_patch *t = &x->vector;
  kl_patch_begin(&x->g, t);
  kl_number v = kl_number_load(b, x->w.slot, kl_room_at(&x->g, &x->w, k, t->f), t->keep);
  if (!x->unit) v = kl_number_div(b, v, kl_number_load(b, x->a.slot, kl_room_at(&x->g, &x->a, k, k), t->keep));
  KL_TRY(kl_number_store(b, x->done.slot, kl_room_at(&x->g, &x->done, kl_aff_const(affs(x), 0), t->f), v, t->keep));
  kl_patch_end(&x->g, t);
  return KILN_OK;
}

static kiln_status eliminate(panel *x) {
  kl_stage_body *b = &x->g.b;
  kl_patch *t = &x->work;
  uint32_t keep, on;
  const kl_aff *i, *c;
  kl_stage_box_begin(b, &x->step, 0, NULL);
  const kl_aff *k = x->step.at[0];
  KL_TRY(divide(x, k));
  kl_patch_begin(&x->g, t);
  work_at(x, &i, &c);
  const kl_aff *at = kl_room_at(&x->g, &x->w, i, c);
  kl_number done = kl_number_load(b, x->done.slot, kl_room_at(&x->g, &x->done, kl_aff_const(affs(x), 0), c), t->keep);
  kl_number l = kl_number_load(b, x->a.slot, kl_room_at(&x->g, &x->a, i, k), t->keep);
  kl_number v = kl_number_less(b, kl_number_load(b, x->w.slot, at, t->keep), l, done);
  if (kl_grid_guard(&x->g, KL_NONE, kl_aff_sub(affs(x), i, k), 0, 0, &on)) v = kl_number_choose(b, on, done, v);
  if (kl_grid_guard(&x->g, t->keep, kl_aff_sub(affs(x), i, k), 0, x->n, &keep))
    KL_TRY(kl_number_store(b, x->w.slot, at, v, keep));
  kl_patch_end(&x->g, t);
  kl_stage_box_end(b, &x->step, NULL);
  return KILN_OK;
}

// --- a panel --------------------------------------------------------------------------------------------------------

static kiln_status write_panel(void *arg) {
  panel *x = arg;
  kl_grid_begin(&x->g);
  x->a = kl_grid_room(&x->g, x->whole, x->size, kl_odd(x->size), false);
  x->w = kl_grid_room(&x->g, x->whole, x->size, kl_odd(x->width), true);
  x->done = kl_grid_room(&x->g, x->whole, 1, x->width, false);
  if (x->first) x->q = kl_grid_room(&x->g, x->whole, kl_panel_of(x->whole), kl_odd(x->width), false);
  KL_TRY(load_triangle(x));
  KL_TRY(load(x));
  KL_TRY(lose_earlier(x));
  KL_TRY(eliminate(x));
  return store(x);
}

static int64_t bytes_of(const panel *x) {
  int64_t held = x->first ? kl_panel_of(x->whole) : 0;
  int64_t all = x->size * kl_odd(x->size) + (x->size + held) * kl_odd(x->width) + x->width;
  return all * kl_info(x->whole)->bits / 8;
}

static void make_vars(panel *x) {
  int64_t held = kl_panel_of(x->whole), chunks = x->first / held;
  kl_grid *g = &x->g;
  uint32_t var;
  x->along = x->width < WIDTH && x->width < x->size;
  int64_t fast = x->along ? x->size : x->width, slow = x->along ? x->width : x->size;
  kl_grid_vars(g, x->s, kl_batch_of(x->b.shape), fast, slow, bytes_of(x));
  x->tile = kl_new_var(affs(x), &g->b.vars, KL_BIND_BLOCK, (x->vectors - 1) / x->width + 1, "tile", &var);
  const kl_aff *from = kl_aff_mulc(affs(x), x->tile, x->width);
  bool swaps = x->b.swaps;
  kl_patch_vars(g, &x->triangle, x->size, x->size);
  kl_patch_vars_of(g, &x->part, swaps ? x->size : x->width, swaps ? x->width : x->size, swaps, from, x->vectors);
  kl_patch_vars_of(g, &x->work, fast, slow, x->along, from, x->vectors);
  kl_patch_vars_of(g, &x->vector, x->width, 1, false, from, x->vectors);
  kl_stage_box_vars(&g->b, &x->step, 1, &x->size);
  if (!chunks) return;
  kl_stage_box_vars(&g->b, &x->chunk, 1, &chunks);
  kl_stage_box_vars(&g->b, &x->pair, 1, &held);
  kl_patch_vars_of(g, &x->right, swaps ? held : x->width, swaps ? x->width : held, swaps, from, x->vectors);
}

kiln_status kl_stage_triangular_solve(const kl_stage *s, const char **why_not) {
  const kl_comp *comp = s->c->plan->comp;
  const kl_more *m = s->instr->more;
  const kl_shape *a = kl_operand(comp, s->instr, 0)->shape, *b = kl_operand(comp, s->instr, 1)->shape;
  bool left = m->left_side, swaps = (m->transpose_a != KL_NO_TRANSPOSE) == left;
  panel x = {.s = s, .whole = kl_number_whole(b->dtype), .unit = m->unit_diagonal, .backwards = m->lower == swaps};
  x.t = (kl_matrix){.operand = 0, .shape = a, .swaps = swaps, .conjugates = m->transpose_a == KL_ADJOINT};
  x.b = (kl_matrix){.operand = 1, .shape = b, .swaps = !left};
  x.x = (kl_matrix){.operand = KL_NONE, .shape = kl_stage_result(s, 0), .swaps = !left};
  x.n = b->dims[left ? b->rank - 2 : b->rank - 1];
  x.vectors = b->dims[left ? b->rank - 1 : b->rank - 2];
  x.width = x.vectors < WIDTH ? x.vectors : WIDTH;
  int64_t most = kl_panel_of(x.whole);
  if (x.n > most) s->c->slots.v.p[s->slot[0]].mode = KL_MODE_GROWS;
  for (; x.first < x.n; x.first += most) {
    x.size = x.n - x.first < most ? x.n - x.first : most;
    make_vars(&x);
    KL_TRY(kl_stage_write(&x.g.b, kl_batch_of(b) * x.size * x.vectors, write_panel, &x));
  }
  return KILN_OK;
}
