// Contractions by tiles: a block has a tile of the result, each thread a part of it in registers.
//
// Slab by slab, a few pairs deep, the block brings what its tile takes of both operands to shared memory, as the sums'
// type, pairs apart and rows side by side; while a slab is multiplied, the threads read the next one. So an element of
// an operand is read once for all of a tile's other side, whatever its layout, and what it is made of is made as often.
//
// Loads need no guards. Behind the last row its tile has that row again, or the last run of rows. A slab that is not
// whole lies back from the end: it has pairs of the one before, which count as absent in it.

#include "lower/choose/contract/contract.h"

// Names of indices: of a slab's rows on either side, of the result's elements, and of pairs.
enum { ROW_NAMES, LEFT_NAME = ROW_NAMES + 2, RIGHT_NAME, BOTH_NAME, FIRST_PAIR, NEXT_PAIR, REST_PAIR, NAMES };

typedef struct tiling {
  kl_choosing *c;
  const kl_contraction *x;
  const kl_contract_outputs *o;
  const kl_contract_tile *t;
  kl_affs *p;
  kl_writer w;
  kl_walk walk;
  kl_body body;
  kl_var_list vars;
  const kl_aff *named[NAMES]; // what names stand for
  int64_t extent[NAMES];
  uint32_t leaf, slab, rest; // loops; KL_NONE: one round
  const kl_aff *own_leaf;    // the block's, where each leaf has blocks
  kl_leaf_sums sums;
  kl_vars regs[2], of_slab[2];     // that number a thread's elements: of the result either way, of a slab
  const kl_aff *row[2], *depth[2]; // of what a thread reads, in the slab
  const kl_aff *own[2];            // the thread's elements in the tile, either way
  bool lies_back;                  // the last slab
  uint32_t shared[2][2];           // slots, by side and part
  int64_t pitch[2];
} tiling;

// Leaves of whole slabs; sums of any order are one of whatever length.
static int64_t whole_leaves(const tiling *x) {
  return x->x->leaf % x->t->depth ? 0 : x->x->length / x->x->leaf;
}
static int64_t slabs_of(const tiling *x, int64_t pairs) {
  return (pairs + x->t->depth - 1) / x->t->depth;
}
static int64_t rest_of(const tiling *x) {
  return x->x->length - whole_leaves(x) * x->x->leaf;
}
// Of the only leaf, where none is whole: its slabs in a loop of their own, which are whole. One alone is no loop.
static int64_t whole_slabs(const tiling *x) {
  int64_t whole = x->x->length / x->t->depth;
  return whole > 1 || x->x->length % x->t->depth == 0 ? whole : 0;
}
static uint32_t parts_of(const tiling *x) {
  return x->x->complex ? 2 : 1;
}
static int64_t at_least_one(int64_t n) {
  return n ? n : 1;
}

// --- variables ------------------------------------------------------------------------------------------------------

static const kl_aff *new_var(tiling *x, kl_binding binding, int64_t extent, const char *name, uint32_t *var) {
  return kl_new_var(x->p, &x->vars, binding, extent, name, var);
}

static const kl_aff *new_reg(tiling *x, int64_t extent, const char *name, kl_vars *regs) {
  uint32_t var;
  const kl_aff *e = new_var(x, KL_BIND_REG, extent, name, &var);
  if (var != KL_NONE) *regs |= (kl_vars)1 << var;
  return e;
}

static const kl_aff *joined(tiling *x, const kl_aff *high, int64_t times, const kl_aff *low) {
  return kl_aff_addmul(x->p, low, high, times);
}

// A slab's elements by threads: lines of runs side by side, of one row or of one pair, and the next ones as far apart
// as all threads' runs reach; where rows are short lines, behind all of these those of further pairs.
static void deal(tiling *x, int side, const kl_aff *thread, const kl_aff *block) {
  static const char *const names[2][2] = {{"lrun", "l"}, {"rrun", "r"}};
  const kl_slab *s = &x->t->slab[side];
  const kl_aff *run = new_reg(x, s->runs, names[side][0], &x->of_slab[side]);
  const kl_aff *at = new_reg(x, s->run, names[side][1], &x->of_slab[side]);
  const kl_aff *number = joined(x, run, x->t->threads, thread), *lines = kl_aff_floordivc(x->p, number, s->line);
  const kl_aff *along = kl_aff_modc(x->p, number, s->line), *row = along;
  int64_t rows = x->extent[ROW_NAMES + side], of_run = s->along_pairs ? 1 : s->run;
  x->depth[side] = lines;
  if (s->along_pairs) {
    row = kl_aff_modc(x->p, lines, s->rows);
    along = joined(x, kl_aff_floordivc(x->p, lines, s->rows), s->line, along);
    x->depth[side] = joined(x, along, s->run, at);
  }
  const kl_aff *read = joined(x, block, s->rows / of_run, row);
  if (rows % of_run == 0) read = kl_aff_min(x->p, read, kl_aff_const(x->p, rows / of_run - 1));
  x->row[side] = s->along_pairs ? row : joined(x, row, of_run, at);
  x->named[ROW_NAMES + side] = s->along_pairs ? read : joined(x, read, of_run, at);
}

// Have slabs the same runs where they end with the last pair?
static bool may_lie_back(const tiling *x) {
  bool may = x->x->length % x->t->depth && x->x->length >= x->t->depth;
  for (int i = 0; i < 2; i++) may = may && (!x->t->slab[i].along_pairs || x->x->length % x->t->slab[i].run == 0);
  return may;
}

static void make_vars(tiling *x) {
  static const char *const names[2][5] = {{"row_block", "row_warp", "row_lane", "iq", "i"},
                                          {"block", "warp", "lane", "jq", "j"}};
  const kl_contract_tile *t = x->t;
  const kl_aff *block[2], *warp[2], *lane[2];
  uint32_t var;
  if (t->splits) x->own_leaf = new_var(x, KL_BIND_BLOCK, x->sums.leaves, "leaf", &var);
  x->extent[BOTH_NAME] = kl_contract_extent(x->x, KL_OF_BOTH);
  x->named[BOTH_NAME] = new_var(x, KL_BIND_BLOCK, x->extent[BOTH_NAME], "batch", &var);
  for (int i = 0; i < 2; i++) {
    x->extent[ROW_NAMES + i] = x->extent[LEFT_NAME + i] = kl_contract_extent(x->x, i ? KL_OF_RIGHT : KL_OF_LEFT);
    int64_t tiles = (x->extent[LEFT_NAME + i] + t->side[i] - 1) / t->side[i];
    block[i] = new_var(x, KL_BIND_BLOCK, tiles, names[i][0], &var);
  }
  for (int i = 0; i < 2; i++) warp[i] = new_var(x, KL_BIND_WARP, t->warps[i], names[i][1], &var);
  for (int i = 0; i < 2; i++) lane[i] = new_var(x, KL_BIND_LANE, t->lanes[i], names[i][2], &var);
  const kl_aff *thread = joined(x, joined(x, warp[0], t->warps[1], warp[1]), t->lanes[0], lane[0]);
  thread = joined(x, thread, t->lanes[1], lane[1]);
  for (int i = 0; i < 2; i++) {
    const kl_aff *group = new_reg(x, t->groups[i], names[i][3], &x->regs[i]);
    const kl_aff *at = joined(x, joined(x, warp[i], t->groups[i], group), t->lanes[i], lane[i]);
    x->own[i] = joined(x, at, t->near[i], new_reg(x, t->near[i], names[i][4], &x->regs[i]));
    x->named[LEFT_NAME + i] = joined(x, block[i], t->side[i], x->own[i]);
    deal(x, i, thread, block[i]);
  }
  x->lies_back = may_lie_back(x);
  int64_t whole = t->splits ? 1 : whole_leaves(x), rest = t->splits ? 0 : rest_of(x);
  new_var(x, KL_BIND_STEP, at_least_one(whole), "leaf", &x->leaf);
  new_var(x, KL_BIND_STEP, at_least_one(whole ? x->x->leaf / t->depth : whole_slabs(x)), "slab", &x->slab);
  if (!whole) rest -= whole_slabs(x) * t->depth;
  new_var(x, KL_BIND_STEP, at_least_one(slabs_of(x, rest)), "rest", &x->rest);
}

static const kl_aff *value_of(const tiling *x, uint32_t var) {
  return var == KL_NONE ? kl_aff_const(x->p, 0) : kl_aff_dim(x->p, var);
}

static const kl_aff *name(const tiling *x, uint32_t i) {
  return kl_aff_dim(x->p, x->w.guards.first_name + i);
}

// What a thread reads of the slab behind `before` others: pairs differ from side to side.
static const kl_aff *pairs_of(tiling *x, int side, const kl_aff *before) {
  const kl_aff *first = kl_aff_mulc(x->p, before, x->t->depth);
  if (x->lies_back) first = kl_aff_min(x->p, first, kl_aff_const(x->p, x->x->length - x->t->depth));
  return kl_aff_add(x->p, first, x->depth[side]);
}

// --- what is read ---------------------------------------------------------------------------------------------------

// By side and part.
typedef struct slab_values {
  uint32_t v[2][2];
} slab_values;

static kl_parts absent(tiling *x, int side) {
  uint32_t nothing = kl_absent_term(&x->w, x->x, side);
  return (kl_parts){nothing, x->x->complex ? nothing : KL_NONE};
}

static kiln_status read_side(tiling *x, int side, uint32_t pair, kl_parts *out) {
  const kl_aff *number[KL_CONTRACT_ROLES] = {name(x, BOTH_NAME), kl_aff_const(x->p, 0), kl_aff_const(x->p, 0)};
  const kl_aff *element[KILN_MAX_RANK];
  uint32_t row = (uint32_t)(ROW_NAMES + side);
  bool never;
  number[side ? KL_OF_RIGHT : KL_OF_LEFT] = name(x, row);
  kl_contract_element(x->p, x->x, number, element);
  uint32_t guard = kl_guard_and(&x->w.guards, KL_NONE, x->named[row], 0, x->extent[row] - 1, &never);
  if (!never) guard = kl_guard_and(&x->w.guards, guard, x->named[pair], 0, x->x->length - 1, &never);
  *out = absent(x, side);
  return never ? KILN_OK : kl_want_term(&x->walk, x->x, side, element, name(x, pair), guard, out);
}

// The slab behind `before` others; what it has of pairs that are not its own, or not there, is any value.
static kiln_status read_slab(tiling *x, uint32_t pair, const kl_aff *before, slab_values *out) {
  for (int side = 0; side < 2; side++) {
    kl_parts v;
    x->named[pair] = pairs_of(x, side, before);
    KL_TRY(read_side(x, side, pair, &v));
    out->v[side][0] = v.re;
    out->v[side][1] = v.im;
  }
  return KILN_OK;
}

static const kl_slot_info *info(const tiling *x, uint32_t slot) {
  return &x->c->slots.v.p[slot];
}

// Of the slab behind `before` others, what counts: its own pairs, which none before has.
static kl_parts of_own_pairs(tiling *x, int side, const kl_aff *before, kl_parts v) {
  const kl_aff *pair = pairs_of(x, side, before), *first = kl_aff_mulc(x->p, before, x->t->depth);
  int64_t last = x->x->length - 1;
  bool never;
  uint32_t own = kl_guard_and(&x->w.guards, KL_NONE, pair, 0, last, &never);
  if (!never) own = kl_guard_and(&x->w.guards, own, kl_aff_sub(x->p, pair, first), 0, x->t->depth - 1, &never);
  if (never) return absent(x, side);
  if (own == KL_NONE) return v;
  kl_parts none = absent(x, side);
  v.re = kl_write_choose(&x->w, own, v.re, none.re);
  if (x->x->complex) v.im = kl_write_choose(&x->w, own, v.im, none.im);
  return v;
}

static void put_slab(tiling *x, const kl_aff *before, const slab_values *v) {
  for (int side = 0; side < 2; side++) {
    kl_parts own = of_own_pairs(x, side, before, (kl_parts){v->v[side][0], v->v[side][1]});
    const kl_aff *at = kl_dom_simplify(x->body.domain, joined(x, x->depth[side], x->pitch[side], x->row[side]));
    for (uint32_t part = 0; part < parts_of(x); part++) {
      uint32_t slot = x->shared[side][part];
      kl_write_store(&x->w, slot, info(x, slot), at, part ? own.im : own.re, KL_NONE);
    }
  }
}

static kl_parts get(tiling *x, int side, int64_t pair) {
  uint32_t v[2] = {KL_NONE, KL_NONE};
  const kl_aff *at = kl_aff_addc(x->p, x->own[side], pair * x->pitch[side]);
  for (uint32_t part = 0; part < parts_of(x); part++) {
    uint32_t slot = x->shared[side][part];
    v[part] = kl_write_load(&x->w, slot, info(x, slot), at, KL_NONE, NULL);
  }
  return (kl_parts){v[0], v[1]};
}

// --- loops ----------------------------------------------------------------------------------------------------------

// What goes from round to round: sums, and the slab that has been read.
typedef struct rolling {
  kl_parts sum;
  slab_values next;
} rolling;

static uint32_t flatten(const tiling *x, const rolling *r, uint32_t *v, kl_vars *regs) {
  uint32_t n = 0;
  for (uint32_t part = 0; part < parts_of(x); part++) {
    regs[n] = x->regs[0] | x->regs[1];
    v[n++] = part ? r->sum.im : r->sum.re;
    for (int side = 0; side < 2; side++) {
      regs[n] = x->of_slab[side];
      v[n++] = r->next.v[side][part];
    }
  }
  return n;
}

static void unflatten(const tiling *x, const uint32_t *v, rolling *r) {
  for (uint32_t part = 0, n = 0; part < parts_of(x); part++) {
    *(part ? &r->sum.im : &r->sum.re) = v[n++];
    for (int side = 0; side < 2; side++) r->next.v[side][part] = v[n++];
  }
}

enum { MOST_ROLLING = 6 };

static void begin_loop(tiling *x, uint32_t loop, rolling *r) {
  uint32_t from[MOST_ROLLING], carried[MOST_ROLLING];
  kl_vars regs[MOST_ROLLING];
  if (loop == KL_NONE) return;
  uint32_t n = flatten(x, r, from, regs);
  kl_write_loop(&x->w, loop, n, from, regs, carried);
  unflatten(x, carried, r);
}

static void end_loop(tiling *x, uint32_t loop, const rolling *r) {
  uint32_t next[MOST_ROLLING];
  kl_vars regs[MOST_ROLLING];
  if (loop == KL_NONE) return;
  flatten(x, r, next, regs);
  kl_write_loop_end(&x->w, next);
}

// Slabs behind `before` others, the first of which has been read, that go on with a sum.
static kiln_status write_slabs(tiling *x, uint32_t loop, uint32_t pair, const kl_aff *before, rolling *r) {
  begin_loop(x, loop, r);
  before = kl_aff_add(x->p, before, value_of(x, loop));
  put_slab(x, before, &r->next);
  KL_TRY(read_slab(x, pair, kl_aff_addc(x->p, before, 1), &r->next));
  for (int64_t k = 0; k < x->t->depth; k++) {
    kl_parts a = get(x, 0, k), b = get(x, 1, k);
    r->sum = kl_add_product(&x->w, x->x, a, b, r->sum);
  }
  end_loop(x, loop, r);
  return KILN_OK;
}

// The same, of a leaf.
static kiln_status write_leaf(tiling *x, uint32_t loop, uint32_t pair, const kl_aff *before, rolling *r) {
  r->sum = kl_begin_leaf(&x->w, x->x);
  return write_slabs(x, loop, pair, before, r);
}

static kiln_status write_leaves(tiling *x, rolling *r) {
  const kl_contraction *k = x->x;
  int64_t whole = whole_leaves(x), slabs = k->leaf / x->t->depth;
  if (whole > 1) r->sum = kl_no_leaf(&x->w, k);
  if (whole > 1) begin_loop(x, x->leaf, r);
  kl_parts before = r->sum;
  KL_TRY(write_leaf(x, x->slab, NEXT_PAIR, kl_aff_mulc(x->p, value_of(x, x->leaf), slabs), r));
  if (whole > 1) r->sum = kl_join_leaf(&x->w, k, before, r->sum);
  if (whole > 1) end_loop(x, x->leaf, r);
  before = r->sum;
  if (!rest_of(x)) return KILN_OK;
  KL_TRY(write_leaf(x, x->rest, REST_PAIR, kl_aff_const(x->p, whole * slabs), r));
  r->sum = kl_join_leaf(&x->w, k, before, r->sum);
  return KILN_OK;
}

// Whole slabs, and those of which one is not whole.
static kiln_status write_only_leaf(tiling *x, rolling *r) {
  int64_t whole = whole_slabs(x);
  r->sum = kl_begin_leaf(&x->w, x->x);
  if (whole) KL_TRY(write_slabs(x, x->slab, NEXT_PAIR, kl_aff_const(x->p, 0), r));
  if (x->x->length % x->t->depth == 0) return KILN_OK;
  return write_slabs(x, x->rest, REST_PAIR, kl_aff_const(x->p, whole), r);
}

static kiln_status write_sum(tiling *x, kl_parts *sum) {
  rolling r = {.sum = {KL_NONE, KL_NONE}};
  const kl_aff *first = kl_aff_const(x->p, 0);
  if (x->t->splits) first = kl_aff_mulc(x->p, x->own_leaf, x->x->leaf / x->t->depth);
  KL_TRY(read_slab(x, FIRST_PAIR, first, &r.next));
  if (x->t->splits)
    KL_TRY(write_leaf(x, x->slab, NEXT_PAIR, first, &r));
  else
    KL_TRY(whole_leaves(x) ? write_leaves(x, &r) : write_only_leaf(x, &r));
  *sum = r.sum;
  return KILN_OK;
}

// --- the body -------------------------------------------------------------------------------------------------------

static void add_arrays(tiling *x) {
  for (int side = 0; side < 2; side++) {
    x->pitch[side] = x->t->side[side] + x->t->slab[side].apart;
    for (uint32_t part = 0; part < parts_of(x); part++)
      x->shared[side][part] =
          kl_add_shared(x->c->cx, x->c->plan, &x->c->slots, x->x->type, x->pitch[side] * x->t->depth);
  }
}

static uint32_t guard_of(tiling *x, uint32_t outer, uint32_t which) {
  bool never;
  return kl_guard_and(&x->w.guards, outer, x->named[which], 0, x->extent[which] - 1, &never);
}

static kiln_status write_body(tiling *x, const char **why_not) {
  const kl_aff *number[KL_CONTRACT_ROLES] = {name(x, BOTH_NAME), name(x, LEFT_NAME), name(x, RIGHT_NAME)};
  const kl_aff *element[KILN_MAX_RANK], *index[KILN_MAX_RANK];
  kl_parts sum;
  kl_contract_element(x->p, x->x, number, element);
  kl_contract_output_index(x->p, x->x, x->o, element, index);
  add_arrays(x);
  KL_TRY(write_sum(x, &sum));
  uint32_t keep = guard_of(x, guard_of(x, KL_NONE, LEFT_NAME), RIGHT_NAME);
  if (x->t->splits) {
    const kl_aff *place = kl_position_of(x->p, info(x, *x->o->slots)->shape, index);
    place = kl_real(&x->walk, kl_dom_simplify(x->body.domain, place));
    kl_store_leaf(x->c, &x->w, x->x, &x->sums, x->own_leaf, place, sum, keep);
    return KILN_OK;
  }
  x->walk.goes_on = true;
  KL_TRY(kl_store_outputs(&x->walk, x->x, x->o, index, NULL, sum, keep));
  if (x->walk.elsewhere) *why_not = "results take its elements at other places";
  return KILN_OK;
}

static void begin(tiling *x) {
  for (uint32_t i = FIRST_PAIR; i < NAMES; i++) x->extent[i] = x->x->length;
  for (uint32_t i = FIRST_PAIR; i < NAMES; i++) x->named[i] = kl_aff_const(x->p, 0);
  kl_write_begin_naming(&x->w, x->c->cx, x->c->plan, &x->body, NAMES, x->extent);
  kl_walk_begin(&x->walk, x->c->cx, x->c->plan, &x->c->slots, &x->w);
  x->walk.named = x->named;
  x->walk.nnamed = NAMES;
}

kiln_status kl_contract_tiles(kl_choosing *c, const kl_contraction *k, const kl_contract_outputs *o,
                              const char **why_not) {
  kl_contract_tile t;
  KL_TRY(kl_contract_tile_of(c, k, o, &t, why_not));
  if (*why_not) return KILN_OK;
  const kl_contraction pieces = kl_in_pieces(k);
  if (t.splits) k = &pieces;
  tiling x = {.c = c, .x = k, .o = o, .t = &t, .p = c->plan->affs};
  if (t.splits) kl_add_leaf_sums(c, k, &x.sums);
  make_vars(&x);
  kl_take_vars(c->arena, &x.vars, &x.body);
  x.body.width = 1;
  if (x.body.blocks > INT32_MAX) *why_not = "it would need more than 2^31-1 blocks";
  if (*why_not) return KILN_OK;
  begin(&x);
  kiln_status st = write_body(&x, why_not);
  kl_walk_free(&x.walk);
  if (st == KILN_OK && x.w.splits_bytes) *why_not = "results of several threads would share a byte";
  if (st != KILN_OK || *why_not) {
    kl_write_free(&x.w);
    return st;
  }
  kl_write_end(&x.w);
  kl_last_launch(c->plan)->block = (uint32_t)t.threads;
  bool is_straight = x.slab == KL_NONE && x.leaf == KL_NONE && x.rest == KL_NONE;
  kl_last_launch(c->plan)->own_registers = is_straight || t.many_sums;
  if (!is_straight) kl_last_launch(c->plan)->at_most = t.at_most;
  kl_part part = {
      .dim = KL_NONE, .count = k->shape->count, .main = x.body, .blocks = x.body.blocks, .main_blocks = x.body.blocks};
  kl_plan_add_part(c->plan, &part);
  if (!t.splits) return KILN_OK;
  kl_plan_add_launch(c->plan, c->plan->target.block);
  return kl_join_leaves(c, k, o, &x.sums, why_not);
}
