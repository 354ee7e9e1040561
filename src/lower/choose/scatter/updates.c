// Scatter, update by update: a thread has some neighbouring updates, and changes the elements that they belong to,
// whatever other threads do to these at the time. A launch before stores the operands in the results.

#include "lower/choose/scatter/scatter.h"

enum { BLOCK = 256 };

// --- bodies ---------------------------------------------------------------------------------------------------------

// Threads of all blocks in one row, as in loops over elements: whole blocks in `main`, the rest one by one.
static void shape_body(kl_updating *x, kl_body *b, int64_t lanes, int64_t threads, int64_t first) {
  bool host = x->c->plan->target.machine == KL_HOST;
  kl_var *vars = KL_NEW_N(x->c->arena, kl_var, 2);
  vars[0] = (kl_var){KL_BIND_THREAD, threads, "t"};
  vars[1] = (kl_var){host ? KL_BIND_LANE : KL_BIND_REG, lanes, "lane"};
  *b = (kl_body){.nvars = 2, .vars = vars, .threads = threads, .lanes = (uint32_t)lanes, .first = first};
  b->width = host ? (uint32_t)lanes : 1;
}

static kiln_status write_body(kl_updating *x) {
  const kl_scatter *s = x->x;
  const kl_aff *index[KILN_MAX_RANK], *to[KILN_MAX_RANK];
  uint32_t values[KL_MOST_SCATTERED], guard;
  bool never;
  const kl_body *b = x->w.body;
  const kl_aff *at = kl_aff_addmul(x->p, kl_aff_dim(x->p, 1), kl_aff_dim(x->p, 0), b->lanes);
  kl_index_at(x->p, s->updates, kl_dom_simplify(b->domain, kl_aff_addc(x->p, at, b->first)), index);
  KL_TRY(kl_find_target(x, index, KL_NONE, to, &guard, &never));
  if (never) return KILN_OK;
  for (uint32_t i = 0; i < s->n; i++)
    if (x->slot[i] != KL_NONE)
      KL_TRY(kl_walk_want(&x->walk, s->instr->operands[s->n + 1 + i], 0, KL_NONE, index, &values[i]));
  for (uint32_t i = 0; i < s->n; i++) {
    if (x->slot[i] == KL_NONE) continue;
    const kl_aff *linear = kl_position_of(x->p, x->c->slots.v.p[x->slot[i]].shape, to);
    if (!kl_is_sound(linear)) return kl_plan_refuse_index(x->c->cx, x->c->plan, kl_why_unsound(linear));
    KL_TRY(kl_change(x, i, linear, values[i], guard));
  }
  return KILN_OK;
}

static kiln_status write_one(kl_updating *x, kl_body *b) {
  if (kl_body_is_empty(b)) return KILN_OK;
  kl_write_begin(&x->w, x->c->cx, x->c->plan, b);
  kl_walk_begin(&x->walk, x->c->cx, x->c->plan, &x->c->slots, &x->w);
  kiln_status st = write_body(x);
  kl_walk_free(&x->walk);
  if (st == KILN_OK)
    kl_write_end(&x->w);
  else
    kl_write_free(&x->w);
  return st;
}

static kiln_status write_parts(kl_updating *x, int64_t block) {
  kl_part part = {.dim = KL_NONE, .count = x->count};
  int64_t lanes = kl_neighbours(x), threads = x->count / lanes / block * block, rest = x->count - threads * lanes;
  shape_body(x, &part.main, lanes, threads, 0);
  int64_t tail_lanes = rest % lanes ? 1 : lanes;
  rest /= tail_lanes;
  shape_body(x, &part.tail, tail_lanes, rest, threads * lanes);
  part.main_blocks = threads / block;
  part.blocks = part.main_blocks + rest / block + (rest % block != 0);
  KL_TRY(write_one(x, &part.main));
  KL_TRY(write_one(x, &part.tail));
  kl_plan_add_part(x->c->plan, &part);
  return KILN_OK;
}

// --- the plan -------------------------------------------------------------------------------------------------------

kiln_status kl_choose_updates(kl_choosing *c, const kl_scatter *s, const char **why_not) {
  kl_updating x = {.c = c, .x = s, .p = c->plan->affs, .count = s->updates->count};
  uint32_t block = c->plan->target.machine == KL_HOST ? 1 : BLOCK;
  if (kl_has_few_windows(s)) *why_not = "an element has few windows to look through";
  if (*why_not || !kl_choose_changes(&x, why_not)) return KILN_OK;
  KL_TRY(kl_begin_updates(&x, block, why_not));
  return *why_not ? KILN_OK : write_parts(&x, block);
}
