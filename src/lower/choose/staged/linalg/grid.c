// Threads over parts of matrices, and what these lie in.

#include "lower/choose/staged/linalg/linalg.h"

enum { WARP = 32, MOST_LANES = 2 * WARP, WARPS = 4, ROOM = KL_MOST_SHARED };

static int64_t power_above(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// A matrix has as many lanes as are a power of two; small ones share a warp. Warps of a block have other matrices, or
// other rows.
static void size_gpu(kl_grid *x, int64_t width, int64_t height, int64_t bytes, int64_t *of_warp, int64_t *warps) {
  x->lanes = power_above(least(width, MOST_LANES));
  x->copies = height >= 4 ? 4 : 1;
  *of_warp = x->lanes < WARP ? WARP / x->lanes : 1;
  int64_t fit = bytes ? ROOM / bytes : *of_warp * WARPS;
  while (*of_warp > 1 && (*of_warp > fit || *of_warp / 2 >= x->batch)) *of_warp /= 2, x->lanes *= 2;
  x->rows = x->lanes < WARP ? 1 : least(WARPS, power_above((height - 1) / x->copies + 1));
  *warps = 1;
  while (*warps * x->rows * x->lanes < WARP * WARPS && 2 * *warps * *of_warp <= fit && *warps * *of_warp < x->batch)
    *warps *= 2;
}

void kl_grid_vars(kl_grid *x, const kl_stage *s, int64_t batch, int64_t width, int64_t height, int64_t bytes) {
  const kl_target *t = &s->c->plan->target;
  int64_t of_warp = 1, warps = 1;
  uint32_t var;
  *x = (kl_grid){.b = {.s = s, .keep = KL_NONE}, .host = t->machine == KL_HOST, .batch = batch, .copies = 1};
  x->lanes = t->host_lanes;
  x->rows = 1;
  if (!x->host) size_gpu(x, width < 1 ? 1 : width, height < 1 ? 1 : height, bytes, &of_warp, &warps);
  x->at_once = of_warp * warps;
  int64_t high = x->lanes > WARP && !x->host ? x->lanes / WARP : 1;
  kl_var_list *vars = &x->b.vars;
  const kl_aff *block = kl_new_var(s->p, vars, KL_BIND_BLOCK, (batch - 1) / x->at_once + 1, "block", &var);
  x->own = kl_new_var(s->p, vars, KL_BIND_WARP, warps, "matrix_warp", &var);
  x->row = kl_new_var(s->p, vars, KL_BIND_WARP, x->rows, "row_warp", &var);
  const kl_aff *warp = kl_new_var(s->p, vars, KL_BIND_WARP, high, "warp", &var);
  x->own = kl_aff_addmul(s->p, kl_new_var(s->p, vars, KL_BIND_LANE, of_warp, "matrix_lane", &var), x->own, of_warp);
  const kl_aff *lane = kl_new_var(s->p, vars, KL_BIND_LANE, x->lanes / high, "lane", &var);
  x->lane = kl_aff_addmul(s->p, lane, warp, x->lanes / high);
  x->which = kl_aff_addmul(s->p, x->own, block, x->at_once);
  x->copy = kl_new_var(s->p, vars, KL_BIND_REG, x->copies, "u", &x->copy_var);
  if (x->copy_var != KL_NONE) x->b.element = (kl_vars)1 << x->copy_var;
}

bool kl_grid_guard(kl_grid *x, uint32_t keep, const kl_aff *e, int64_t lo, int64_t hi, uint32_t *guard) {
  bool never = false;
  *guard = kl_guard_and(&x->b.w.guards, keep, kl_dom_simplify(x->b.w.body->domain, e), lo, hi, &never);
  return !never;
}

void kl_grid_begin(kl_grid *x) {
  x->which = kl_dom_simplify(x->b.w.body->domain, x->which);
  kl_grid_guard(x, KL_NONE, x->which, 0, x->batch - 1, &x->there);
}

// --- tiles ----------------------------------------------------------------------------------------------------------

void kl_patch_vars_of(kl_grid *x, kl_patch *t, int64_t fast, int64_t slow, bool slowly, const kl_aff *from,
                      int64_t of) {
  *t = (kl_patch){.fast = fast, .slow = slow, .branch = KL_NONE, .copies = 1};
  t->of[slowly] = of;
  t->from[slowly] = from;
  if (slow % x->copies == 0 && t->of[1] % x->copies == 0) t->copies = x->copies;
  int64_t group = x->rows * t->copies;
  int64_t sizes[2] = {(fast - 1) / x->lanes + 1, (slow - 1) / group + 1};
  kl_stage_box_vars(&x->b, &t->box, 2, sizes);
}

void kl_patch_vars(kl_grid *x, kl_patch *t, int64_t fast, int64_t slow) {
  kl_patch_vars_of(x, t, fast, slow, false, NULL, 0);
}

// On a GPU what is off is not even read: instead of an element that is not there one is read that others may write. On
// the host lanes are of one thread.
void kl_patch_begin(kl_grid *x, kl_patch *t) {
  kl_affs *p = x->b.s->p;
  kl_dom *d = x->b.w.body->domain;
  kl_stage_box_begin(&x->b, &t->box, 0, NULL);
  t->f = kl_dom_simplify(d, kl_aff_addmul(p, x->lane, t->box.at[0], x->lanes));
  const kl_aff *g = kl_aff_addmul(p, x->row, t->box.at[1], x->rows);
  t->keep = x->there;
  kl_grid_guard(x, t->keep, t->f, 0, t->fast - 1, &t->keep);
  kl_grid_guard(x, t->keep, g, 0, t->slow / t->copies - 1, &t->keep);
  if (t->of[0]) kl_grid_guard(x, t->keep, kl_aff_add(p, t->f, t->from[0]), 0, t->of[0] - 1, &t->keep);
  if (t->of[1]) { // by groups of copies
    const kl_aff *first = kl_aff_add(p, kl_aff_mulc(p, g, t->copies), t->from[1]);
    kl_grid_guard(x, t->keep, first, 0, t->of[1] - 1, &t->keep);
  }
  t->g = kl_dom_simplify(d, t->copies > 1 ? kl_aff_addmul(p, x->copy, g, t->copies) : g);
  t->branch = x->host ? KL_NONE : t->keep;
  if (t->branch == KL_NONE) return;
  t->keep = KL_NONE;
  kl_write_if(&x->b.w, t->branch);
}

void kl_patch_end(kl_grid *x, kl_patch *t) {
  if (t->branch != KL_NONE) kl_write_if_end(&x->b.w);
  kl_stage_box_end(&x->b, &t->box, NULL);
}

// --- memory ---------------------------------------------------------------------------------------------------------

kl_room kl_grid_room(kl_grid *x, kl_dtype whole, int64_t rows, int64_t stride, bool own) {
  kl_choosing *c = x->b.s->c;
  kl_room r = {.rows = rows, .stride = stride};
  r.slot = kl_add_shared(c->cx, c->plan, &c->slots, whole, x->at_once * rows * stride);
  c->slots.v.p[r.slot].own = own;
  return r;
}

const kl_aff *kl_room_at(kl_grid *x, const kl_room *r, const kl_aff *i, const kl_aff *j) {
  kl_affs *p = x->b.s->p;
  return kl_aff_addmul(p, j, kl_aff_addmul(p, i, x->own, r->rows), r->stride);
}

int64_t kl_batch_of(const kl_shape *s) {
  int64_t n = 1;
  for (uint32_t d = 0; d + 2 < s->rank; d++) n *= s->dims[d];
  return n;
}

int64_t kl_panel_of(kl_dtype whole) {
  return whole == KILN_F32 ? 64 : 32;
}

static void index_of(kl_grid *x, const kl_matrix *m, const kl_aff *i, const kl_aff *j, const kl_aff **index) {
  kl_affs *p = x->b.s->p;
  kl_dom *dom = x->b.w.body->domain;
  uint32_t last = m->shape->rank - 1;
  index[last] = kl_dom_simplify(dom, m->swaps ? i : j);
  index[last - 1] = kl_dom_simplify(dom, m->swaps ? j : i);
  const kl_aff *number = x->which;
  for (uint32_t d = last - 1; d-- > 0;) {
    index[d] = kl_dom_simplify(dom, d ? kl_aff_modc(p, number, m->shape->dims[d]) : number);
    number = kl_aff_floordivc(p, number, m->shape->dims[d]);
  }
}

kiln_status kl_matrix_want(kl_grid *x, const kl_matrix *m, const kl_aff *i, const kl_aff *j, uint32_t keep,
                           kl_number *out) {
  const kl_stage *s = x->b.s;
  const kl_aff *index[KILN_MAX_RANK];
  uint32_t value;
  index_of(x, m, i, j, index);
  if (m->operand == KL_NONE)
    value = kl_stage_load(&x->b, s->slot[0], index, keep, s->instr->shape->dtype);
  else
    KL_TRY(kl_walk_want(&x->b.walk, s->instr->operands[m->operand], 0, keep, index, &value));
  *out = kl_number_of(&x->b, value);
  if (m->conjugates) *out = kl_number_conj(&x->b, *out);
  return KILN_OK;
}

kiln_status kl_matrix_store(kl_grid *x, const kl_matrix *m, const kl_aff *i, const kl_aff *j, kl_number value,
                            uint32_t keep) {
  const kl_stage *s = x->b.s;
  const kl_aff *index[KILN_MAX_RANK];
  index_of(x, m, i, j, index);
  return kl_stage_store(&x->b, s->slot[0], index, kl_number_value(&x->b, value, s->instr->shape->dtype), keep);
}
