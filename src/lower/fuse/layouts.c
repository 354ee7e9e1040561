// Fusions that only put elements into another order, one after the other. Each is judged by what plans of all fusions
// cost that a change concerns: the one that makes a value, those that read it, and the move itself, which goes.
#include "lower/fuse/layouts.h"

#include "ir/index/layout/map.h"
#include "ir/rewrite/branch.h"
#include "ir/rewrite/canonical.h"
#include "ir/rewrite/transform.h"
#include "lower/choose/choose.h"
#include "lower/fuse/impl.h"
#include "lower/plan/cost/cost.h"

#include <math.h>

#define NONE UINT32_MAX

// Fusions that one change concerns; costs that are looked up, each of a plan that is made for it.
enum { MOST_CONCERNED = 16, MOST_COSTS = 256 };

// A computation and how its arguments lie.
typedef struct costed {
  uint32_t same; // the first computation that does the same
  uint32_t n;
  const kl_shape *const *shapes;
  double clocks; // infinite: it cannot be compiled so
} costed;

typedef struct chooser {
  kl_ctx *cx;
  const kiln_module *m;
  kiln_module *fork; // that it becomes; NULL before something moves
  const kl_layouts_params *params;
  kl_sb *why;
  kl_arena arena;
  kl_affs *affs;  // NULL before they are wanted
  uint32_t *same; // by computation; NULL before it is asked for
  VEC(costed) costs;
  bool changed;
  // Of the computation at hand.
  const kl_comp *c;
  const kl_shape **shape; // by instruction, as it is now
  uint32_t *cast;         // by instruction: what it has become a bitcast of, or NONE
  uint32_t *first_user, *users;
} chooser;

// Element `index` of `from` is element d0, d1 .. of instruction `instr`, and nothing lies between but bitcasts.
typedef struct move {
  uint32_t instr, from;
  uint32_t reader; // of `from`, the first of these bitcasts, or the move itself
  bool alone;      // nobody else looks at these bitcasts
  const kl_aff **index;
  kl_affs *p;
} move;

// --- who uses what --------------------------------------------------------------------------------------------------

static void find_users(chooser *k) {
  const kl_comp *c = k->c;
  uint32_t n = 0, *at = KL_NEW_N(&k->arena, uint32_t, c->ninstr + 1);
  for (uint32_t i = 0; i < c->ninstr; n += c->instr[i++].noperands)
    for (uint32_t o = 0; o < c->instr[i].noperands; o++) at[c->instr[i].operands[o]]++;
  k->first_user = KL_NEW_N(&k->arena, uint32_t, c->ninstr + 1);
  k->users = KL_NEW_N(&k->arena, uint32_t, n + 1);
  for (uint32_t i = 0; i < c->ninstr; i++) k->first_user[i + 1] = k->first_user[i] + at[i], at[i] = k->first_user[i];
  for (uint32_t i = 0; i < c->ninstr; i++)
    for (uint32_t o = 0; o < c->instr[i].noperands; o++) k->users[at[c->instr[i].operands[o]]++] = i;
}

static uint32_t user_count(const chooser *k, uint32_t i) {
  return k->first_user[i + 1] - k->first_user[i];
}

static bool is_cast(const chooser *k, uint32_t i) {
  return k->cast[i] != NONE || k->c->instr[i].op == KL_OP_BITCAST;
}

static uint32_t cast_of(const chooser *k, uint32_t i) {
  return k->cast[i] != NONE ? k->cast[i] : k->c->instr[i].operands[0];
}

static bool is_fusion(const chooser *k, uint32_t i) {
  return k->c->instr[i].op == KL_OP_FUSION && k->cast[i] == NONE;
}

static const kl_comp *body_of(const chooser *k, uint32_t i) {
  return &k->m->comp[k->c->instr[i].called[0]];
}

// Does it update an array, in place if it can?
static bool updates(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_DYNAMIC_UPDATE_SLICE || c->instr[i].op == KL_OP_SCATTER) return true;
  return false;
}

// Is a result of it one of the computation?
static bool is_handed_out(const chooser *k, uint32_t i) {
  if (i == k->c->root) return true;
  for (uint32_t u = k->first_user[i]; u < k->first_user[i + 1]; u++) {
    uint32_t user = k->users[u];
    kl_op op = k->c->instr[user].op;
    if (user == k->c->root || (op == KL_OP_GET_TUPLE_ELEMENT && is_handed_out(k, user))) return true;
  }
  return false;
}

// May it read or write arrays that lie otherwise? In a loop, what makes its state writes it where it lies, if it can.
static bool may_change(const chooser *k, uint32_t i) {
  if (!is_fusion(k, i) || updates(body_of(k, i))) return false;
  return k->c == &k->m->comp[k->m->entry] || !is_handed_out(k, i);
}

// --- where elements go ----------------------------------------------------------------------------------------------

static kl_shape in_rows(const kl_shape *s) {
  kl_shape rows = *s;
  rows.layout = (kl_layout){.tail_padding = 1};
  return rows;
}

static bool is_plain(const kl_shape *s) {
  return kl_shape_is_array(s) && kl_info(s->dtype)->bits >= 8 && !s->dynamic && kl_layout_is_order(s);
}

// From the index of an element of what an op makes to that of its operand's element; false: it does not only move.
static bool go_through(move *x, const kl_instr *in, const kl_shape *to, const kl_shape *from) {
  const kl_aff *before[KILN_MAX_RANK];
  kl_shape a = *to, b = *from;
  if (!is_plain(to) || !is_plain(from) || to->dtype != from->dtype || to->count != from->count) return false;
  memcpy(before, x->index, to->rank * sizeof *before);
  switch (in->op) {
  case KL_OP_COPY: return true;
  case KL_OP_TRANSPOSE:
    for (uint32_t d = 0; d < to->rank; d++) x->index[in->dims[d]] = before[d];
    return true;
  case KL_OP_RESHAPE: a = in_rows(to), b = in_rows(from); break;
  default: break; // a bitcast, or a fusion that is one
  }
  kl_index_at(x->p, &b, kl_position_of(x->p, &a, before), x->index);
  return true;
}

static bool only_moves(const kl_instr *in) {
  return in->op == KL_OP_COPY || in->op == KL_OP_TRANSPOSE || in->op == KL_OP_RESHAPE || in->op == KL_OP_BITCAST;
}

static kl_dom *box_of(kl_affs *p, const kl_shape *s) {
  kl_interval extents[KILN_MAX_RANK];
  for (uint32_t d = 0; d < s->rank; d++) extents[d] = (kl_interval){0, s->dims[d] - 1};
  return kl_dom_make(p, s->rank, extents);
}

// Is the fusion nothing but a move?
static bool find_move(chooser *k, uint32_t i, move *x) {
  const kl_instr *in = &k->c->instr[i];
  if (!is_fusion(k, i) || in->noperands != 1 || !is_plain(in->shape) || !in->shape->count) return false;
  const kl_comp *body = body_of(k, i);
  const kl_instr *at = kl_root(body);
  if (!k->affs) k->affs = kl_affs_create(k->cx, &k->arena);
  *x = (move){.instr = i, .from = in->operands[0], .reader = i, .alone = true, .p = k->affs};
  x->index = KL_NEW_N(&k->arena, const kl_aff *, KILN_MAX_RANK);
  for (uint32_t d = 0; d < in->shape->rank; d++) x->index[d] = kl_aff_dim(x->p, d);
  for (; at->op != KL_OP_PARAMETER; at = kl_operand(body, at, 0))
    if (!only_moves(at) || !go_through(x, at, at->shape, kl_operand(body, at, 0)->shape)) return false;
  while (is_cast(k, x->from)) {
    uint32_t to = x->from, from = cast_of(k, to);
    x->alone &= user_count(k, to) == 1 && to != k->c->root;
    if (!go_through(x, &(kl_instr){.op = KL_OP_BITCAST}, k->shape[to], k->shape[from])) return false;
    x->from = from;
    x->reader = to;
  }
  kl_dom *box = box_of(x->p, in->shape);
  for (uint32_t d = 0; d < k->shape[x->from]->rank; d++) x->index[d] = kl_dom_simplify(box, x->index[d]);
  kl_op op = k->c->instr[x->from].op;
  return is_plain(k->shape[x->from]) && (op == KL_OP_FUSION || op == KL_OP_PARAMETER || op == KL_OP_GET_TUPLE_ELEMENT);
}

// The shape, but for an order of its dims in which the element d0, d1 .. lies at `position`; NULL: there is none.
static const kl_shape *lying_at(chooser *k, const kl_shape *s, const kl_aff *position) {
  int64_t order[KILN_MAX_RANK], step = 1;
  uint32_t n = 0;
  if (position->error || position->c) return NULL;
  for (bool found = true; found;) {
    found = false;
    for (uint32_t t = 0; t < position->n && !found; t++) {
      const kl_aff_atom *v = position->terms[t].atom;
      found = position->terms[t].coef == step && v->kind == KL_AFF_DIM && s->dims[v->var] > 1;
      if (found) order[n++] = v->var, step *= s->dims[v->var];
    }
  }
  if (n != position->n || step != s->count) return NULL;
  for (uint32_t d = s->rank; d-- > 0;)
    if (s->dims[d] == 1) order[n++] = d;
  kl_shape as = *s;
  as.layout.present = true;
  as.layout.rank = s->rank;
  as.layout.minor_to_major = order;
  return kl_shape_intern(k->fork, &as);
}

// How the move's result would lie if it were what it reads, and the other way round; NULL: it cannot.
static const kl_shape *result_as_source(chooser *k, const move *x) {
  const kl_aff *at = kl_position_of(x->p, k->shape[x->from], x->index);
  return lying_at(k, k->shape[x->instr], kl_dom_simplify(box_of(x->p, k->shape[x->instr]), at));
}

static const kl_shape *source_as_result(chooser *k, const move *x) {
  const kl_shape *from = k->shape[x->from], *to = k->shape[x->instr];
  const kl_map *all = kl_map_identity(x->p, to->rank, to->dims);
  const kl_map *m = kl_map_invert(x->p, kl_map_with_results(x->p, all, x->index, from->rank), KL_MAP_QUOTA);
  if (m->state != KL_MAP_DEFINED || m->nvars[KL_AFF_RANGE]) return NULL;
  return lying_at(k, from, kl_dom_simplify(box_of(x->p, from), kl_position_of(x->p, to, m->results)));
}

// --- what it costs --------------------------------------------------------------------------------------------------

static bool make_plan(chooser *k, uint32_t called, const kl_target *target, const kl_shape *const *shapes,
                      double *clocks) {
  kl_arena arena;
  kl_arena_init(&arena, k->cx);
  const kl_comp *c = kl_plan_inline(k->cx, k->m, &k->m->comp[called], &arena);
  kl_plan_params how = {.target = *target, .name = "trial", .shapes = shapes};
  kl_plan *plan;
  kl_diag_mark before = kl_diag_here(k->cx);
  kiln_status st = kl_plan_make(k->cx, k->m, c, &how, &arena, &plan);
  kl_diag_forget(k->cx, before, kl_diag_here(k->cx));
  if (st == KILN_OK && clocks) {
    kl_cost cost = kl_plan_cost(plan, KL_COST_QUICK);
    *clocks = kl_clocks_of(plan, &cost).all;
  }
  if (st == KILN_OK) kl_plan_free(plan);
  kl_arena_free(&arena);
  return st == KILN_OK;
}

static double measure(chooser *k, uint32_t called, const kl_shape *const *shapes) {
  double clocks;
  if (!make_plan(k, called, &k->params->measure, shapes, &clocks)) return HUGE_VAL;
  bool host = k->params->target.machine == KL_HOST;
  return !host || make_plan(k, called, &k->params->target, shapes, NULL) ? clocks : HUGE_VAL;
}

// Of a fusion, as its arguments lie now. Equal ones are planned once.
static double cost_of(chooser *k, uint32_t i) {
  const kl_instr *in = &k->c->instr[i];
  size_t n = kl_shape_leaf_count(in->shape);
  for (uint32_t o = 0; o < in->noperands; o++) n += kl_shape_leaf_count(k->shape[in->operands[o]]);
  const kl_shape **shapes = KL_NEW_N(&k->arena, const kl_shape *, n + 1), **at = shapes;
  for (uint32_t o = 0; o < in->noperands; o++) at = kl_shape_leaves(k->shape[in->operands[o]], at);
  kl_shape_leaves(k->shape[i], at);
  for (size_t x = 0; x < k->costs.n; x++) {
    const costed *old = &k->costs.p[x];
    if (old->same == k->same[in->called[0]] && old->n == n && memcmp(old->shapes, shapes, n * sizeof *shapes) == 0)
      return old->clocks;
  }
  if (k->costs.n == MOST_COSTS) return HUGE_VAL;
  costed made = {k->same[in->called[0]], (uint32_t)n, shapes, measure(k, in->called[0], shapes)};
  VEC_PUSH(k->cx, &k->costs, made);
  return made.clocks;
}

// --- one change -----------------------------------------------------------------------------------------------------

typedef struct change {
  uint32_t value; // that lies otherwise
  const kl_shape *as;
  uint32_t n, concerned[MOST_CONCERNED];
} change;

static bool add_concerned(chooser *k, change *x, uint32_t i) {
  for (uint32_t n = 0; n < x->n; n++)
    if (x->concerned[n] == i) return true;
  if (x->n == MOST_CONCERNED || !may_change(k, i)) return false;
  x->concerned[x->n++] = i;
  return true;
}

// Those that read the value, without the move's reader; false: it is looked at otherwise, too.
static bool add_readers(chooser *k, change *x, uint32_t reader) {
  if (x->value == k->c->root) return false;
  for (uint32_t u = k->first_user[x->value]; u < k->first_user[x->value + 1]; u++) {
    if (k->users[u] != reader && !add_concerned(k, x, k->users[u])) return false;
  }
  return true;
}

// What makes the value, and no other element that is the same one.
static bool add_maker(chooser *k, change *x) {
  const kl_instr *in = &k->c->instr[x->value];
  if (in->op != KL_OP_GET_TUPLE_ELEMENT) return add_concerned(k, x, x->value);
  uint32_t maker = in->operands[0];
  if (maker == k->c->root) return false;
  for (uint32_t u = k->first_user[maker]; u < k->first_user[maker + 1]; u++) {
    const kl_instr *other = &k->c->instr[k->users[u]];
    if (other->op != KL_OP_GET_TUPLE_ELEMENT || (other != in && other->number == in->number)) return false;
  }
  return add_concerned(k, x, maker);
}

static void lay(chooser *k, uint32_t value, const kl_shape *as) {
  const kl_instr *in = &k->c->instr[value];
  k->shape[value] = as;
  if (in->op != KL_OP_GET_TUPLE_ELEMENT) return;
  const kl_shape *tuple = k->shape[in->operands[0]];
  const kl_shape **elems = kl_arena_dup(&k->arena, tuple->elems, tuple->nelems * sizeof *elems);
  elems[in->number] = as;
  k->shape[in->operands[0]] = kl_shape_tuple(k->fork, tuple->nelems, elems);
}

static double cost_of_all(chooser *k, const change *x) {
  double sum = 0;
  for (uint32_t n = 0; n < x->n && sum < HUGE_VAL; n++) sum += cost_of(k, x->concerned[n]);
  return sum;
}

// Clocks that are saved where the value lies so, and the move is none; 0 where others would lose half of what it takes,
// or more: costs are not as sure as that a launch less is one less.
static double gain_of(chooser *k, const move *x, const change *by) {
  const kl_shape *old = k->shape[by->value];
  double moving = cost_of(k, x->instr), before = cost_of_all(k, by);
  if (!(moving + before < HUGE_VAL)) return 0;
  lay(k, by->value, by->as);
  double lost = cost_of_all(k, by) - before;
  lay(k, by->value, old);
  return 2 * lost < moving ? moving - lost : 0;
}

static void tell(chooser *k, const move *x, const change *by) {
  if (!k->why) return;
  kl_sb_puts(k->why, "layout ");
  if (by) {
    kl_sb_put(k->why, kl_symbol_text(&k->m->names, k->c->instr[by->value].name));
    kl_sb_puts(k->why, ": ");
    kl_shape_print(k->why, by->as, true);
    kl_sb_puts(k->why, ", so that ");
  }
  kl_sb_put(k->why, kl_symbol_text(&k->m->names, k->c->instr[x->instr].name));
  kl_sb_puts(k->why, by ? " is " : ": the memory of ");
  kl_sb_put(k->why, kl_symbol_text(&k->m->names, k->c->instr[x->from].name));
  kl_sb_puts(k->why, by ? "'s memory\n" : ", moves nothing\n");
}

static void take(chooser *k, const move *x, const change *by) {
  if (by) lay(k, by->value, by->as);
  tell(k, x, by);
  k->cast[x->instr] = x->from;
  k->changed = true;
}

static kiln_status decide(chooser *k, const move *x) {
  if (!k->fork) k->fork = kl_fork(k->cx, k->m);
  const kl_shape *as = result_as_source(k, x);
  bool known = !kl_fuse_lies_otherwise(k->m, k->c, x->from);
  if (known && as && kl_shape_same_in_memory(as, k->shape[x->instr])) return take(k, x, NULL), KILN_OK;
  if (!k->same) {
    k->same = KL_NEW_N(&k->arena, uint32_t, k->m->ncomp + 1);
    KL_TRY(kl_module_same(k->cx, k->m, k->same));
  }
  change of_result = {.value = x->instr, .as = as}, of_source = {.value = x->from, .as = source_as_result(k, x)};
  double best = 0, gain;
  const change *by = NULL;
  if (of_source.as && x->alone && add_maker(k, &of_source) && add_readers(k, &of_source, x->reader) &&
      (gain = gain_of(k, x, &of_source)) > best)
    best = gain, by = &of_source;
  if (known && as && add_readers(k, &of_result, NONE) && (gain = gain_of(k, x, &of_result)) > best) by = &of_result;
  if (by) take(k, x, by);
  return KILN_OK;
}

// --- all of them ----------------------------------------------------------------------------------------------------

static void rewrite(chooser *k, kl_comp *c) {
  kl_instr *instrs = kl_arena_dup(&k->fork->arena, c->instr, c->ninstr * sizeof *instrs);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    kl_instr *in = &instrs[i];
    in->shape = k->shape[i];
    if (k->cast[i] == NONE) continue;
    *in = (kl_instr){.op = KL_OP_BITCAST,
                     .name = in->name,
                     .shape = in->shape,
                     .noperands = 1,
                     .more = &kl_no_more,
                     .span = in->span};
    in->operands = kl_arena_dup(&k->fork->arena, &k->cast[i], sizeof k->cast[i]);
  }
  c->instr = instrs;
}

static kiln_status look_through(chooser *k, uint32_t comp) {
  const kl_comp *c = k->c = &k->m->comp[comp];
  move x;
  k->changed = false;
  k->shape = KL_NEW_N(&k->arena, const kl_shape *, c->ninstr + 1);
  k->cast = KL_NEW_N(&k->arena, uint32_t, c->ninstr + 1);
  for (uint32_t i = 0; i < c->ninstr; i++) k->shape[i] = c->instr[i].shape, k->cast[i] = NONE;
  find_users(k);
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (find_move(k, i, &x)) KL_TRY(decide(k, &x));
  if (k->changed) rewrite(k, &k->fork->comp[comp]);
  return KILN_OK;
}

kiln_status kl_module_layouts(kl_ctx *cx, const kiln_module *m, const kl_layouts_params *params, kl_sb *why,
                              kiln_module **out) {
  chooser k = {.cx = cx, .m = m, .params = params, .why = why};
  kiln_status st = KILN_OK;
  bool changed = false;
  *out = NULL;
  kl_arena_init(&k.arena, cx);
  const bool *run = kl_find_run(m, kl_find_ops(m, kl_needs_kernel, &k.arena), &k.arena);
  for (uint32_t i = 0; i < m->ncomp && st == KILN_OK; i++) {
    if (!run[i]) continue;
    st = look_through(&k, i);
    changed |= k.changed;
  }
  VEC_FREE(cx, &k.costs);
  if (k.affs) kl_affs_destroy(&k.affs);
  kl_arena_free(&k.arena);
  if (st == KILN_OK && changed) return kl_finish_fork(cx, k.fork, out);
  if (k.fork) kiln_module_destroy(&k.fork);
  return st;
}
