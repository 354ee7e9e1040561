// Scatter into few elements: each block joins its updates in an array of its own, in shared memory, and brings what has
// come together there to the results, once for each element.
//
// So a histogram's updates meet in the memories of many multiprocessors, and a result's element changes as often as
// there are blocks. Blocks are as many as find room at once, and go on to further updates until there are none.

#include "lower/choose/scatter/scatter.h"

enum { WARP = 32, MULTIPROCESSORS = 132, SHARED_OF_ONE = 200 << 10, BLOCKS_OF_ONE = 8, ROUNDS = 4, FEW_UPDATES = 8 };

typedef struct private {
  kl_updating u;
  kl_var_list vars;
  uint32_t shared[KL_MOST_SCATTERED]; // by array: the block's own
  int64_t elements;                   // of each
  const kl_aff *thread, *block;
  uint32_t clear, round, flush;      // loops over elements, updates, elements; KL_NONE: at most one round
  int64_t lanes;                     // neighbouring updates of a thread
  const kl_aff *element[2], *update; // numbers of what a thread has in `clear`, `flush` and `round`
}
private;

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

// Neighbouring elements of a thread, 16 bytes of the widest array at most, and whole ones.
static int64_t elements_at_once(const private *x) {
  int64_t n = x->u.c->plan->target.max_bytes;
  for (uint32_t i = 0; i < x->u.x->n; i++)
    while (x->u.slot[i] != KL_NONE &&
           n * kl_info(x->u.c->slots.v.p[x->u.slot[i]].shape->dtype)->bits > x->u.c->plan->target.max_bytes * 8)
      n /= 2;
  while (n > 1 && x->elements % n) n /= 2;
  return n;
}

static const kl_aff *loop_over_elements(private *x, const char *name, const char *reg, uint32_t *loop) {
  kl_affs *p = x->u.p;
  uint32_t var;
  int64_t n = elements_at_once(x), rounds = ceil_div(x->elements, n * KL_UPDATING_THREADS);
  const kl_aff *at = kl_new_var(p, &x->vars, KL_BIND_STEP, rounds, name, loop);
  at = kl_aff_addmul(p, x->thread, at, KL_UPDATING_THREADS);
  return kl_aff_addmul(p, kl_new_var(p, &x->vars, KL_BIND_REG, n, reg, &var), at, n);
}

static int64_t blocks_of(const private *x, int64_t each) {
  const kl_plan *p = x->u.c->plan;
  int64_t multiprocessors = p->target.multiprocessors ? p->target.multiprocessors : MULTIPROCESSORS;
  int64_t room = SHARED_OF_ONE / (kl_last_launch(p)->shared_bytes + 1024);
  if (room > BLOCKS_OF_ONE) room = BLOCKS_OF_ONE;
  int64_t most = multiprocessors * room, busy = ceil_div(x->u.count, each * ROUNDS);
  return busy < most ? busy : most;
}

static void make_vars(private *x) {
  kl_affs *p = x->u.p;
  uint32_t var;
  x->lanes = kl_neighbours(&x->u);
  int64_t each = KL_UPDATING_THREADS * x->lanes, blocks = blocks_of(x, each);
  x->block = kl_new_var(p, &x->vars, KL_BIND_BLOCK, blocks, "block", &var);
  const kl_aff *warp = kl_new_var(p, &x->vars, KL_BIND_WARP, KL_UPDATING_WARPS, "warp", &var);
  x->thread = kl_aff_addmul(p, kl_new_var(p, &x->vars, KL_BIND_LANE, WARP, "lane", &var), warp, WARP);
  x->element[0] = loop_over_elements(x, "clear", "c", &x->clear);
  int64_t rounds = ceil_div(x->u.count, each * blocks);
  const kl_aff *at = kl_new_var(p, &x->vars, KL_BIND_STEP, rounds, "round", &x->round);
  at = kl_aff_addmul(p, x->thread, kl_aff_addmul(p, x->block, at, blocks), KL_UPDATING_THREADS);
  x->update = kl_aff_addmul(p, kl_new_var(p, &x->vars, KL_BIND_REG, x->lanes, "v", &var), at, x->lanes);
  x->element[1] = loop_over_elements(x, "flush", "f", &x->flush);
}

static const kl_slot_info *info_of(const private *x, uint32_t slot) {
  return &x->u.c->slots.v.p[slot];
}

static void begin_loop(private *x, uint32_t loop) {
  if (loop != KL_NONE) kl_write_loop(&x->u.w, loop, 0, NULL, NULL, NULL);
}
static void end_loop(private *x, uint32_t loop) {
  if (loop != KL_NONE) kl_write_loop_end(&x->u.w, NULL);
}

static void clear_all(private *x) {
  kl_writer *w = &x->u.w;
  bool never;
  begin_loop(x, x->clear);
  uint32_t keep = kl_guard_and(&w->guards, KL_NONE, x->element[0], 0, x->elements - 1, &never);
  for (uint32_t i = 0; i < x->u.x->n; i++) {
    uint64_t bits[2];
    if (x->u.slot[i] == KL_NONE) continue;
    kl_dtype t = info_of(x, x->shared[i])->shape->dtype;
    kl_identity_of(x->u.how[i].combine, t, bits);
    uint32_t nothing = kl_write_scalar(w, t, bits[0], bits[1]);
    kl_write_store(w, x->shared[i], info_of(x, x->shared[i]), x->element[0], nothing, keep);
  }
  end_loop(x, x->clear);
}

static kiln_status join_updates(private *x) {
  kl_updating *u = &x->u;
  const kl_scatter *s = u->x;
  const kl_aff *index[KILN_MAX_RANK], *to[KILN_MAX_RANK];
  uint32_t values[KL_MOST_SCATTERED], guard;
  bool never;
  const kl_aff *at = kl_dom_simplify(u->w.body->domain, x->update);
  begin_loop(x, x->round);
  uint32_t there = kl_guard_and(&u->w.guards, KL_NONE, at, 0, u->count - 1, &never);
  kl_index_at(u->p, s->updates, at, index);
  KL_TRY(kl_find_target(u, index, there, to, &guard, &never));
  for (uint32_t i = 0; i < s->n && !never; i++)
    if (u->slot[i] != KL_NONE)
      KL_TRY(kl_walk_want(&u->walk, s->instr->operands[s->n + 1 + i], 0, there, index, &values[i]));
  for (uint32_t i = 0; i < s->n && !never; i++) {
    if (u->slot[i] == KL_NONE) continue;
    const kl_aff *linear = kl_position_of(u->p, info_of(x, u->slot[i])->shape, to);
    if (!kl_is_sound(linear)) return kl_plan_refuse_index(u->c->cx, u->c->plan, kl_why_unsound(linear));
    kl_write_change(&u->w, &u->how[i], x->shared[i], info_of(x, x->shared[i]), linear, values[i], guard);
  }
  end_loop(x, x->round);
  return KILN_OK;
}

static void flush_all(private *x) {
  kl_updating *u = &x->u;
  bool never;
  begin_loop(x, x->flush);
  uint32_t keep = kl_guard_and(&u->w.guards, KL_NONE, x->element[1], 0, x->elements - 1, &never);
  for (uint32_t i = 0; i < u->x->n; i++) {
    if (u->slot[i] == KL_NONE) continue;
    uint32_t joined = kl_write_load(&u->w, x->shared[i], info_of(x, x->shared[i]), x->element[1], keep, u->x->instr);
    kl_write_change(&u->w, &u->how[i], u->slot[i], info_of(x, u->slot[i]), x->element[1], joined, keep);
  }
  end_loop(x, x->flush);
}

static kiln_status write_body(void *arg) {
  private *x = arg;
  clear_all(x);
  KL_TRY(join_updates(x));
  flush_all(x);
  return KILN_OK;
}

// Each block's own arrays.
static const char *add_arrays(private *x) {
  kl_choosing *c = x->u.c;
  uint64_t bits[2];
  uint32_t most;
  x->elements = x->u.x->array->count;
  for (uint32_t i = 0; i < x->u.x->n; i++) {
    if (x->u.slot[i] == KL_NONE) continue;
    kl_dtype t = info_of(x, x->u.slot[i])->shape->dtype;
    kl_op op = x->u.how[i].combine;
    if (x->elements > KL_MOST_SHARED || kl_info(t)->bits < 8) return "";
    x->shared[i] = kl_add_shared(c->cx, c->plan, &c->slots, t, x->elements);
    if (kl_last_launch(c->plan)->shared_bytes > KL_MOST_SHARED) return "";
    if (!kl_identity_of(op, t, bits) || !kl_can_combine(&c->plan->target, op, info_of(x, x->shared[i]), &most))
      return "no instruction joins updates in shared memory";
  }
  return NULL;
}

kiln_status kl_choose_private_scatter(kl_choosing *c, const char **why_not) {
private
  x = {0};
  kl_scatter s;
  KL_TRY(kl_begin_joins(c, &s, &x.u, why_not));
  if (!*why_not && s.instr->more->indices_are_sorted && !c->params->strategy.chooser)
    *why_not = "sorted indices let a warp's updates meet in one element";
  if (!*why_not && x.u.count / s.array->count < FEW_UPDATES && !c->params->strategy.chooser) *why_not = "";
  if (!*why_not) *why_not = add_arrays(&x);
  if (*why_not) return KILN_OK;
  make_vars(&x);
  return kl_write_updates(&x.u, &x.vars, write_body, &x);
}
