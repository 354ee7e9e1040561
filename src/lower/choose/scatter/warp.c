// Scatter of windows of one element, where several lanes of a warp may have updates of the same: they are joined first,
// and one lane brings what has come together.
//
// Where some lane goes to the place of its neighbour, in five steps each meets the one whose number differs in a bit:
// of two that go to one place the lower has both then, the other none. So what goes to the same place from all lanes
// changes it once; of places that are named often most do. Where no lane does, each changes its own.

#include "lower/choose/scatter/scatter.h"

enum { WARP = 32 };

typedef struct warp {
  kl_updating u;
  kl_var_list vars;
  const kl_aff *lane, *update; // number of what a thread has
  int64_t n;                   // of these
  uint32_t v;                  // their variable, KL_NONE: one
} warp;

static void make_vars(warp *x) {
  kl_affs *p = x->u.p;
  uint32_t var;
  int64_t n = x->n = kl_neighbours(&x->u), each = n * KL_UPDATING_THREADS;
  int64_t blocks = x->u.count / each + (x->u.count % each != 0);
  const kl_aff *at = kl_new_var(p, &x->vars, KL_BIND_BLOCK, blocks, "block", &var);
  at = kl_aff_addmul(p, kl_new_var(p, &x->vars, KL_BIND_WARP, KL_UPDATING_WARPS, "warp", &var), at, KL_UPDATING_WARPS);
  x->lane = kl_new_var(p, &x->vars, KL_BIND_LANE, WARP, "lane", &var);
  at = kl_aff_addmul(p, x->lane, at, WARP);
  x->update = kl_aff_addmul(p, kl_new_var(p, &x->vars, KL_BIND_REG, n, "v", &x->v), at, n);
}

// Elements of all arrays have one number: that in their memory.
static bool lie_alike(const warp *x) {
  const kl_updating *u = &x->u;
  const kl_shape *first = NULL;
  for (uint32_t a = 0; a < u->x->n; a++) {
    if (u->slot[a] == KL_NONE) continue;
    const kl_shape *s = u->c->slots.v.p[u->slot[a]].shape;
    if (first && !kl_shape_same_in_memory(s, first)) return false;
    first = s;
  }
  return true;
}

static const kl_aff *index_of(warp *x, uint32_t place) {
  return kl_write_index(&x->u.w, place, (kl_interval){-1, x->u.x->array->count - 1});
}

// Lanes that differ in a bit of their number meet. *place, values: of the lane, -1 where it has none.
static void meet(warp *x, uint32_t bit, uint32_t none, uint32_t *place, uint32_t *values) {
  kl_updating *u = &x->u;
  kl_writer *w = &u->w;
  bool never_low, never_high;
  const kl_aff *digit = kl_aff_modc(u->p, kl_aff_floordivc(u->p, x->lane, bit), 2);
  const kl_aff *apart = kl_aff_sub(u->p, index_of(x, *place), index_of(x, kl_write_shuffle(w, *place, bit)));
  uint32_t low = kl_guard_and(&w->guards, KL_NONE, digit, 0, 0, &never_low);
  uint32_t high = kl_guard_and(&w->guards, KL_NONE, digit, 1, 1, &never_high);
  low = kl_guard_and(&w->guards, low, apart, 0, 0, &never_low);
  high = kl_guard_and(&w->guards, high, apart, 0, 0, &never_high);
  for (uint32_t a = 0; a < u->x->n; a++) {
    if (u->slot[a] == KL_NONE) continue;
    uint32_t both[2] = {values[a], kl_write_shuffle(w, values[a], bit)};
    uint32_t joined = kl_write_op(w, (kl_plan_op){.op = u->how[a].combine}, w->steps.p[values[a]].dtype, 2, both);
    if (!never_low) values[a] = kl_write_choose(w, low, joined, values[a]);
  }
  if (!never_high) *place = kl_write_choose(w, high, none, *place);
}

// Whether some lane has the place of the next one, as an index: 0 or 1.
static const kl_aff *find_meeting(warp *x, uint32_t place) {
  kl_updating *u = &x->u;
  kl_writer *w = &u->w;
  bool never;
  uint32_t yes = kl_write_scalar(w, KILN_PRED, 1, 0), all = kl_write_scalar(w, KILN_PRED, 0, 0), no = all;
  const kl_aff *own = index_of(x, place), *next = index_of(x, kl_write_rotate(w, place, 1));
  uint32_t meets = kl_guard_and(&w->guards, KL_NONE, own, 0, u->x->array->count - 1, &never);
  meets = kl_guard_and(&w->guards, meets, kl_aff_sub(u->p, own, next), 0, 0, &never);
  uint32_t one = kl_write_choose(w, meets, yes, no);
  for (uint32_t i = 0; i < x->n; i++) {
    uint32_t both[2] = {all, x->v == KL_NONE ? one : kl_write_take(w, one, x->v, i)};
    all = i ? kl_write_op(w, (kl_plan_op){.op = KL_OP_OR}, KILN_PRED, 2, both) : both[1];
  }
  return kl_write_index(w, kl_write_any(w, all), (kl_interval){0, 1});
}

static kiln_status change(warp *x, const kl_aff *linear, const uint32_t *values, uint32_t guard) {
  for (uint32_t a = 0; a < x->u.x->n; a++)
    if (x->u.slot[a] != KL_NONE) KL_TRY(kl_change(&x->u, a, linear, values[a], guard));
  return KILN_OK;
}

static kiln_status write_body(void *arg) {
  warp *x = arg;
  kl_updating *u = &x->u;
  kl_writer *w = &u->w;
  const kl_scatter *s = u->x;
  const kl_aff *index[KILN_MAX_RANK], *to[KILN_MAX_RANK], *at = kl_dom_simplify(w->body->domain, x->update);
  uint32_t values[KL_MOST_SCATTERED], guard, first = 0;
  bool never;
  uint32_t there = kl_guard_and(&w->guards, KL_NONE, at, 0, u->count - 1, &never);
  kl_index_at(u->p, s->updates, at, index);
  KL_TRY(kl_find_target(u, index, there, to, &guard, &never));
  if (never) return KILN_OK;
  for (uint32_t a = 0; a < s->n; a++)
    if (u->slot[a] != KL_NONE)
      KL_TRY(kl_walk_want(&u->walk, s->instr->operands[s->n + 1 + a], 0, there, index, &values[a]));
  while (u->slot[first] == KL_NONE) first++;
  const kl_aff *linear = kl_position_of(u->p, u->c->slots.v.p[u->slot[first]].shape, to);
  if (!kl_is_sound(linear)) return kl_plan_refuse_index(u->c->cx, u->c->plan, kl_why_unsound(linear));
  kl_dtype t = s->array->count > INT32_MAX ? KILN_S64 : KILN_S32;
  uint32_t none = kl_write_scalar(w, t, (uint64_t)-1 & kl_int_mask(t), 0);
  uint32_t place = kl_write_step(w, &(kl_step){.kind = KL_STEP_IOTA, .dtype = t, .expr = linear});
  place = kl_write_choose(w, guard, place, none);
  const kl_aff *meeting = find_meeting(x, place);
  kl_write_if(w, kl_guard_and(&w->guards, KL_NONE, meeting, 0, 0, &never));
  KL_TRY(change(x, linear, values, guard));
  kl_write_if_end(w);
  kl_write_if(w, kl_guard_and(&w->guards, KL_NONE, meeting, 1, 1, &never));
  for (uint32_t bit = 1; bit < WARP; bit *= 2) meet(x, bit, none, &place, values);
  linear = index_of(x, place);
  KL_TRY(change(x, linear, values, kl_guard_and(&w->guards, KL_NONE, linear, 0, s->array->count - 1, &never)));
  kl_write_if_end(w);
  return KILN_OK;
}

kiln_status kl_choose_warp_scatter(kl_choosing *c, const char **why_not) {
  warp x = {0};
  kl_scatter s;
  KL_TRY(kl_begin_joins(c, &s, &x.u, why_not));
  for (uint32_t d = 0; !*why_not && d < s.array->rank; d++)
    if (s.size[d] != 1) *why_not = "";
  if (!*why_not && !lie_alike(&x)) *why_not = "arrays lie in memory in different orders";
  if (*why_not) return KILN_OK;
  make_vars(&x);
  return kl_write_updates(&x.u, &x.vars, write_body, &x);
}
