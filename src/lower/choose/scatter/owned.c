// Scatter by owners: places of the arrays, along the dims that indices name, belong to warps. Each warp looks through
// all index vectors in their order, and brings what windows have for its own places to the elements there.
//
// An element is changed by one thread only, in the order of the windows: no atomics, but for elements that share bytes
// with others'; any combiner, of several arrays, too; the same bits every time. It takes time by the number of windows,
// whatever the number of elements is: as many warps as run at one time look through the indices, a hundred at once, and
// go into those where something is their own.
//
// A window of several places is one piece for each. Neighbouring places belong to different warps, so that those that
// are named often do not meet in one.

#include "lower/choose/scatter/scatter.h"

enum { WARP = 32, WARPS_OF_ONE = 8, MULTIPROCESSORS = 132, HOST_OWNERS = 16, AT_ONCE = 4, FEW_OWNERS = 8 };

typedef struct owned {
  kl_updating u;
  kl_var_list vars;
  bool named[KILN_MAX_RANK]; // dims of the arrays that places have
  int64_t pieces, places;
  int64_t row, lanes, neighbours;       // elements of a piece; threads that have it at once, and elements of each
  int64_t owners, parts, passes;        // of places; of a row; of a part
  int64_t warps;                        // of a block
  const kl_aff *owner;                  // the warp's number among owners
  const kl_aff *group_of_row, *element; // of a row: the thread's neighbours, and one of them
  const kl_aff *lane, *at_once;         // of what a warp looks at first
  uint32_t group, some, piece, pass;    // loops: of looks at first; then at a warp's; at one piece; over the row
  const kl_aff *first[3];               // numbers of pieces in each of these looks
  kl_vars several;                      // pieces that a thread looks at at once
} owned;

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

static bool is_host(const owned *x) {
  return x->u.c->plan->target.machine == KL_HOST;
}

// --- who does what --------------------------------------------------------------------------------------------------

static void find_pieces(owned *x) {
  const kl_scatter *s = x->u.x;
  x->pieces = x->places = x->row = 1;
  for (uint32_t i = 0; i < s->nbatch; i++) x->pieces *= s->updates->dims[s->batch[i]];
  for (uint32_t d = 0; d < s->array->rank; d++) {
    x->named[d] = s->entry[d] >= 0 || s->batching[d] >= 0;
    if (x->named[d]) x->pieces *= s->size[d], x->places *= s->array->dims[d];
    if (!x->named[d]) x->row *= s->size[d];
  }
}

// The dim of a row whose elements are neighbours in the first result.
static int64_t run_of(const owned *x) {
  const kl_shape *shape = x->u.c->slots.v.p[kl_scatter_results(x->u.c)].shape;
  uint32_t d = shape->rank ? (uint32_t)kl_shape_minor_to_major(shape, 0) : 0;
  return shape->rank && !x->named[d] ? x->u.x->size[d] : 1;
}

// Elements of a thread: 16 bytes of the widest array, as long as all lanes have some.
static int64_t neighbours_of(const owned *x) {
  int64_t bits = 8, n;
  for (uint32_t i = 0; i < x->u.x->n; i++) {
    int64_t own = kl_info(kl_operand(x->u.c->plan->comp, x->u.x->instr, i)->shape->dtype)->bits;
    if (own > bits) bits = own;
  }
  if (is_host(x)) return 1;
  n = x->u.c->plan->target.max_bytes * 8 / bits;
  while (n > 1 && (run_of(x) % n || x->row / n < WARP)) n /= 2;
  return n > 1 ? n : 1;
}

static int64_t lanes_of(const owned *x) {
  int64_t n = 1;
  if (!is_host(x)) return WARP;
  while (2 * n <= x->u.c->plan->target.host_lanes && n < x->row) n *= 2;
  return n;
}

static void find_owners(owned *x) {
  const kl_target *t = &x->u.c->plan->target;
  int64_t most = is_host(x) ? HOST_OWNERS : WARPS_OF_ONE * (t->multiprocessors ? t->multiprocessors : MULTIPROCESSORS);
  x->neighbours = neighbours_of(x);
  x->lanes = lanes_of(x);
  int64_t rounds = ceil_div(x->row, x->lanes * x->neighbours);
  x->parts = rounds < most ? rounds : most;
  x->passes = ceil_div(rounds, x->parts);
  for (x->owners = 1; 2 * x->owners <= x->places && 2 * x->owners * x->parts <= most;) x->owners *= 2;
  for (x->warps = is_host(x) ? 1 : WARPS_OF_ONE; x->owners * x->parts % x->warps;) x->warps /= 2;
}

// Where most of what a warp looks at is not its own it looks at several pieces at once, then at as many as it has
// lanes, then at one.
static bool looks_at_several(const owned *x) {
  return !is_host(x) && x->owners >= FEW_OWNERS && x->pieces > WARP;
}

static void make_vars(owned *x) {
  kl_affs *p = x->u.p;
  uint32_t var;
  int64_t first = looks_at_several(x) ? AT_ONCE : 1, each = looks_at_several(x) ? WARP : x->pieces;
  const kl_aff *at = kl_new_var(p, &x->vars, KL_BIND_BLOCK, x->owners * x->parts / x->warps, "block", &var);
  at = kl_aff_addmul(p, kl_new_var(p, &x->vars, KL_BIND_WARP, x->warps, "warp", &var), at, x->warps);
  x->lane = kl_new_var(p, &x->vars, KL_BIND_LANE, x->lanes, "lane", &var);
  x->first[0] = kl_new_var(p, &x->vars, KL_BIND_STEP, ceil_div(x->pieces, first * each), "group", &x->group);
  x->first[1] = kl_aff_addmul(p, kl_new_var(p, &x->vars, KL_BIND_STEP, first, "some", &x->some), x->first[0], first);
  x->first[2] = kl_aff_addmul(p, kl_new_var(p, &x->vars, KL_BIND_STEP, each, "piece", &x->piece), x->first[1], each);
  const kl_aff *pass = kl_new_var(p, &x->vars, KL_BIND_STEP, x->passes, "pass", &x->pass);
  x->at_once = kl_new_var(p, &x->vars, KL_BIND_REG, first, "once", &var);
  if (var != KL_NONE) x->several = (kl_vars)1 << var;
  const kl_aff *v = kl_new_var(p, &x->vars, KL_BIND_REG, x->neighbours, "v", &var);
  x->owner = kl_aff_modc(p, at, x->owners);
  at = kl_aff_addmul(p, kl_aff_floordivc(p, at, x->owners), pass, x->parts);
  x->group_of_row = kl_aff_addmul(p, x->lane, at, x->lanes);
  x->element = kl_aff_addmul(p, v, x->group_of_row, x->neighbours);
}

// --- pieces ---------------------------------------------------------------------------------------------------------

typedef struct piece {
  const kl_aff *batch[KILN_MAX_RANK];
  const kl_aff *offset[KILN_MAX_RANK]; // in its window, along named dims
  const kl_aff *place[KILN_MAX_RANK];  // the same: in the arrays
  uint32_t own;                        // it is there, lies in the arrays, and is the warp's own
  bool never;
} piece;

// Digits of a number below `left`, the lowest first: the last one is what is left of it.
typedef struct digits {
  const kl_aff *rest;
  int64_t left;
} digits;

static const kl_aff *digit(kl_affs *p, digits *n, int64_t size) {
  const kl_aff *low = n->left == size ? n->rest : kl_aff_modc(p, n->rest, size);
  if (size == 1) return kl_aff_const(p, 0);
  n->rest = n->left == size ? kl_aff_const(p, 0) : kl_aff_floordivc(p, n->rest, size);
  n->left /= size;
  return low;
}

// Pieces of a window follow each other, and windows in their order.
static void number_to_piece(const owned *x, const kl_aff *number, piece *out) {
  const kl_scatter *s = x->u.x;
  digits n = {number, x->pieces};
  for (uint32_t d = s->array->rank; d-- > 0;)
    if (x->named[d]) out->offset[d] = digit(x->u.p, &n, s->size[d]);
  for (uint32_t i = s->nbatch; i-- > 0;) out->batch[i] = digit(x->u.p, &n, s->updates->dims[s->batch[i]]);
}

static kiln_status find_piece(owned *x, const kl_aff *n, piece *out) {
  kl_updating *u = &x->u;
  const kl_scatter *s = u->x;
  const kl_aff *start[KILN_MAX_RANK], *place = kl_aff_const(u->p, 0);
  n = kl_dom_simplify(u->w.body->domain, n);
  out->own = kl_guard_and(&u->w.guards, KL_NONE, n, 0, x->pieces - 1, &out->never);
  number_to_piece(x, n, out);
  KL_TRY(kl_window_start(&u->walk, s, out->batch, out->own, start));
  for (uint32_t d = 0; d < s->array->rank && !out->never; d++) {
    out->own = kl_window_inside(&u->walk, s, d, start[d], out->own, &out->never);
    if (!x->named[d]) continue;
    out->place[d] = kl_aff_add(u->p, start[d], out->offset[d]);
    place = kl_aff_addmul(u->p, out->place[d], place, s->array->dims[d]);
  }
  const kl_aff *apart = kl_aff_sub(u->p, kl_aff_modc(u->p, place, x->owners), x->owner);
  if (!out->never) out->own = kl_guard_and(&u->w.guards, out->own, apart, 0, 0, &out->never);
  return KILN_OK;
}

// The guard that one of the pieces n that the warp's lanes look at is its own.
static kiln_status find_any(owned *x, const kl_aff *n, bool several, uint32_t *guard, bool *never) {
  kl_writer *w = &x->u.w;
  piece one;
  KL_TRY(find_piece(x, n, &one));
  *never = one.never;
  if (*never) return KILN_OK;
  uint32_t yes = kl_write_scalar(w, KILN_PRED, 1, 0), no = kl_write_scalar(w, KILN_PRED, 0, 0);
  uint32_t own = kl_write_choose(w, one.own, yes, no), all = own;
  for (uint32_t i = 0; several && i < AT_ONCE; i++) {
    uint32_t both[2] = {all, kl_write_take(w, own, (uint32_t)__builtin_ctz(x->several), i)};
    all = i ? kl_write_op(w, (kl_plan_op){.op = KL_OP_OR}, KILN_PRED, 2, both) : both[1];
  }
  const kl_aff *any = kl_write_index(w, kl_write_any(w, all), (kl_interval){0, 1});
  *guard = kl_guard_and(&w->guards, KL_NONE, any, 1, 1, never);
  return KILN_OK;
}

// Of arrays that change together all are there before the first changes.
static kiln_status change_all(owned *x, const kl_aff *const *linear, const uint32_t *values, uint32_t keep) {
  kl_updating *u = &x->u;
  const kl_scatter *s = u->x;
  uint32_t old[KL_MOST_SCATTERED], made[KL_MOST_SCATTERED];
  const kl_slot_info *slots = u->c->slots.v.p;
  if (!kl_change_together(s)) {
    for (uint32_t a = 0; a < s->n; a++)
      if (u->slot[a] != KL_NONE) KL_TRY(kl_change(u, a, linear[a], values[a], keep));
    return KILN_OK;
  }
  for (uint32_t a = 0; a < s->n; a++)
    old[a] = kl_write_load(&u->w, u->slot[a], &slots[u->slot[a]], linear[a], keep, s->instr);
  KL_TRY(kl_combine(&u->walk, s, old, values, made));
  for (uint32_t a = 0; a < s->n; a++)
    kl_write_change(&u->w, &u->how[a], u->slot[a], &slots[u->slot[a]], linear[a], made[a], keep);
  return KILN_OK;
}

static kiln_status bring_elements(owned *x, const piece *one, uint32_t keep) {
  kl_updating *u = &x->u;
  const kl_scatter *s = u->x;
  const kl_aff *offset[KILN_MAX_RANK], *to[KILN_MAX_RANK], *index[KILN_MAX_RANK], *linear[KL_MOST_SCATTERED];
  const kl_shape *memory = u->c->slots.v.p[kl_scatter_results(u->c)].shape;
  digits n = {kl_dom_simplify(u->w.body->domain, x->element), x->row};
  uint32_t values[KL_MOST_SCATTERED];
  for (uint32_t i = 0; i < s->array->rank; i++) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(memory, i);
    offset[d] = x->named[d] ? one->offset[d] : digit(u->p, &n, s->size[d]);
    to[d] = x->named[d] ? one->place[d] : offset[d];
  }
  kl_update_index(s, one->batch, offset, index);
  for (uint32_t a = 0; a < s->n; a++) {
    if (u->slot[a] == KL_NONE) continue;
    linear[a] = kl_position_of(u->p, u->c->slots.v.p[u->slot[a]].shape, to);
    if (!kl_is_sound(linear[a])) return kl_plan_refuse_index(u->c->cx, u->c->plan, kl_why_unsound(linear[a]));
    KL_TRY(kl_walk_want(&u->walk, s->instr->operands[s->n + 1 + a], 0, keep, index, &values[a]));
  }
  return change_all(x, linear, values, keep);
}

// --- looks ----------------------------------------------------------------------------------------------------------

static void begin_loop(owned *x, uint32_t loop) {
  if (loop != KL_NONE) kl_write_loop(&x->u.w, loop, 0, NULL, NULL, NULL);
}

static void end_loop(owned *x, uint32_t loop) {
  if (loop != KL_NONE) kl_write_loop_end(&x->u.w, NULL);
}

static void begin_if(owned *x, uint32_t guard) {
  if (guard != KL_NONE) kl_write_if(&x->u.w, guard);
}

static void end_if(owned *x, uint32_t guard) {
  if (guard != KL_NONE) kl_write_if_end(&x->u.w);
}

// Brings a piece to its place. Threads that have none of it do nothing, not even read what may be others'; but lanes of
// the host all do the same.
static kiln_status bring(owned *x, const piece *one) {
  bool never;
  uint32_t there = kl_guard_and(&x->u.w.guards, KL_NONE, x->group_of_row, 0, x->row / x->neighbours - 1, &never);
  if (is_host(x)) return bring_elements(x, one, there);
  begin_if(x, there);
  KL_TRY(bring_elements(x, one, KL_NONE));
  end_if(x, there);
  return KILN_OK;
}

static kiln_status look_at_each(owned *x) {
  piece one;
  begin_loop(x, x->piece);
  KL_TRY(find_piece(x, x->first[2], &one));
  if (!one.never) {
    begin_if(x, one.own);
    begin_loop(x, x->pass);
    KL_TRY(bring(x, &one));
    end_loop(x, x->pass);
    end_if(x, one.own);
  }
  end_loop(x, x->piece);
  return KILN_OK;
}

static kiln_status look_at_some(owned *x) {
  const kl_aff *n = kl_aff_addmul(x->u.p, x->lane, x->first[1], WARP);
  uint32_t guard;
  bool never;
  begin_loop(x, x->some);
  KL_TRY(find_any(x, n, false, &guard, &never));
  if (!never) {
    begin_if(x, guard);
    KL_TRY(look_at_each(x));
    end_if(x, guard);
  }
  end_loop(x, x->some);
  return KILN_OK;
}

static kiln_status write_body(void *arg) {
  owned *x = arg;
  kl_affs *p = x->u.p;
  uint32_t guard;
  bool never;
  if (!looks_at_several(x)) return look_at_each(x);
  const kl_aff *n = kl_aff_addmul(p, x->at_once, x->first[0], AT_ONCE);
  begin_loop(x, x->group);
  KL_TRY(find_any(x, kl_aff_addmul(p, x->lane, n, WARP), true, &guard, &never));
  if (!never) {
    begin_if(x, guard);
    KL_TRY(look_at_some(x));
    end_if(x, guard);
  }
  end_loop(x, x->group);
  return KILN_OK;
}

// --- the plan -------------------------------------------------------------------------------------------------------

// Where updates may go to their elements by themselves they do, if it is not asked for.
static bool goes_by_updates(kl_updating x) {
  const char *why_not = NULL;
  return kl_choose_changes(&x, &why_not);
}

kiln_status kl_choose_owned_scatter(kl_choosing *c, const char **why_not) {
  owned x = {0};
  kl_scatter s;
  *why_not = NULL;
  if (c->plan->counted) *why_not = "";
  if (!*why_not) KL_TRY(kl_find_scatter(c, &s, why_not));
  if (!*why_not && (s.array->count == 0 || s.updates->count == 0)) *why_not = "";
  if (*why_not) return KILN_OK;
  x.u = (kl_updating){.c = c, .x = &s, .p = c->plan->affs, .count = s.updates->count};
  c->plan->count = s.array->count;
  if (!c->params->strategy.chooser && (kl_has_few_windows(&s) || goes_by_updates(x.u))) *why_not = "";
  if (*why_not || !kl_choose_owned_changes(&x.u, why_not)) return KILN_OK;
  find_pieces(&x);
  find_owners(&x);
  make_vars(&x);
  KL_TRY(kl_begin_updates(&x.u, is_host(&x) ? 1 : (uint32_t)(WARP * x.warps), why_not));
  return *why_not ? KILN_OK : kl_write_updates(&x.u, &x.vars, write_body, &x);
}
