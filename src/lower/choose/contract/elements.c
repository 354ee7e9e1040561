// Contractions element by element: a thread has some neighbouring elements of the outputs and goes through their pairs
// in order, leaf by leaf. Any dimension numbers, types and layouts; what neighbours read alike is read once.

#include "lower/choose/contract/contract.h"

enum { WARP = 32, WARPS = 4, ENOUGH_THREADS = 1 << 14, AT_ONCE = 4, LEAVES_AT_ONCE = 8 };

// What a launch makes: outputs of all pairs; one leaf of each element; outputs of leaves that are made.
typedef enum share_of { ALL_PAIRS, ONE_LEAF, ALL_LEAVES } share_of;

typedef struct elements {
  kl_choosing *c;
  const kl_contraction *x;
  const kl_contract_outputs *o;
  kl_affs *p;
  kl_writer w;
  kl_walk walk;
  kl_var_list vars;
  share_of share;
  const kl_leaf_sums *sums; // but ALL_PAIRS
  const kl_aff *leaf;       // ONE_LEAF: which
  uint32_t all, at_once;    // ALL_LEAVES: the loop over them; reg, of those that are read at once
  int64_t leaves;           // so many
  kl_contract_loops loops;
  const kl_aff *thread;                 // its number
  int64_t neighbours;                   // elements of it
  const kl_aff *at;                     // the element's place in the first output
  uint32_t keep;                        // it is there
  const kl_aff *element[KILN_MAX_RANK]; // of the contraction
} elements;

static const kl_slot_info *output(const elements *x, uint32_t i) {
  return &x->c->slots.v.p[x->o->slots[i]];
}

// Elements of a thread: 16 bytes of the narrowest output, fewer where threads are, and whole bytes of each.
static int64_t neighbours(const elements *x) {
  int64_t narrow = 128, least = 1, n;
  for (uint32_t i = 0; i < x->o->n; i++) {
    uint32_t bits = kl_info(output(x, i)->shape->dtype)->bits;
    if (bits < narrow) narrow = bits;
    if (bits < 8 && 8 / bits > least) least = 8 / bits;
  }
  const kl_target *t = &x->c->plan->target;
  if (t->machine == KL_HOST) return t->host_lanes > least ? t->host_lanes : least;
  n = t->max_bytes * 8 / (narrow < 16 ? 16 : narrow);
  while (n > 1 && x->o->shape->count / n < ENOUGH_THREADS) n /= 2;
  return n > least ? n : least;
}

static void make_vars(elements *x) {
  bool host = x->c->plan->target.machine == KL_HOST;
  int64_t n = neighbours(x), warps = host ? 1 : WARPS, lanes = host ? 1 : WARP, group = n * warps * lanes;
  uint32_t var;
  if (x->share == ONE_LEAF) x->leaf = kl_new_var(x->p, &x->vars, KL_BIND_BLOCK, x->sums->leaves, "leaf", &var);
  const kl_aff *at = kl_new_var(x->p, &x->vars, KL_BIND_BLOCK, (x->o->shape->count - 1) / group + 1, "block", &var);
  at = kl_aff_addmul(x->p, kl_new_var(x->p, &x->vars, KL_BIND_WARP, warps, "warp", &var), at, warps);
  at = kl_aff_addmul(x->p, kl_new_var(x->p, &x->vars, KL_BIND_LANE, lanes, "lane", &var), at, lanes);
  const kl_aff *v = kl_new_var(x->p, &x->vars, host ? KL_BIND_LANE : KL_BIND_REG, n, host ? "lane" : "v", &var);
  if (!host && var != KL_NONE) x->loops.regs = (kl_vars)1 << var;
  x->thread = at;
  x->neighbours = n;
  x->at = kl_aff_addmul(x->p, v, at, n);
  if (x->share == ALL_PAIRS) kl_contract_loop_vars(x->p, &x->vars, x->x, host ? 1 : AT_ONCE, &x->loops);
  if (x->share == ONE_LEAF) kl_contract_leaf_vars(x->p, &x->vars, x->x, AT_ONCE, &x->loops);
  if (x->share != ALL_LEAVES) return;
  x->leaves = x->sums->leaves < LEAVES_AT_ONCE || host ? 1 : LEAVES_AT_ONCE;
  kl_new_var(x->p, &x->vars, KL_BIND_REG, x->leaves, "u", &x->at_once);
  kl_new_var(x->p, &x->vars, KL_BIND_STEP, x->sums->leaves / x->leaves, "leaf", &x->all);
}

static kiln_status want_pair(void *arg, const kl_aff *r, kl_parts *terms) {
  elements *x = arg;
  for (int side = 0; side < 2; side++) KL_TRY(kl_want_term(&x->walk, x->x, side, x->element, r, x->keep, &terms[side]));
  return KILN_OK;
}

static bool begin_if(elements *x, uint32_t guard) {
  if (guard != KL_NONE) kl_write_if(&x->w, guard);
  return guard != KL_NONE;
}

// The block's leaf, where it is a whole one; or where it is not.
static kiln_status write_leaf(elements *x, bool is_short) {
  int64_t whole = x->x->length / x->x->leaf, first = is_short ? whole : 0, last = is_short ? whole : whole - 1;
  bool never;
  kl_parts sum;
  uint32_t one = kl_guard_and(&x->w.guards, KL_NONE, x->leaf, first, last, &never);
  const kl_aff *from = is_short ? kl_aff_const(x->p, whole * x->x->leaf) : kl_aff_mulc(x->p, x->leaf, x->x->leaf);
  const kl_aff *leaf = is_short ? kl_aff_const(x->p, whole) : x->leaf;
  bool branches = begin_if(x, one);
  KL_TRY(kl_contract_leaf(&x->w, x->x, &x->loops, want_pair, x, from, is_short, &sum));
  kl_store_leaf(x->c, &x->w, x->x, x->sums, leaf, x->at, sum, x->keep);
  if (branches) kl_write_if_end(&x->w);
  return KILN_OK;
}

// What blocks have left of a leaf, or of several that follow one another.
static kl_parts read_leaves(elements *x, const kl_aff *leaf) {
  const kl_aff *at = kl_aff_addmul(x->p, x->at, leaf, x->x->shape->count);
  uint32_t v[2] = {KL_NONE, KL_NONE};
  for (uint32_t part = 0; part < (x->x->complex ? 2 : 1); part++) {
    uint32_t slot = x->sums->slot[part];
    v[part] = kl_write_load(&x->w, slot, &x->c->slots.v.p[slot], at, x->keep, NULL);
  }
  return (kl_parts){v[0], v[1]};
}

static kl_parts one_of(elements *x, kl_parts leaves, uint32_t u) {
  if (x->at_once == KL_NONE) return leaves;
  leaves.re = kl_write_take(&x->w, leaves.re, x->at_once, u);
  if (x->x->complex) leaves.im = kl_write_take(&x->w, leaves.im, x->at_once, u);
  return leaves;
}

static const kl_aff *value_of(const elements *x, uint32_t var) {
  return var == KL_NONE ? kl_aff_const(x->p, 0) : kl_aff_dim(x->p, var);
}

// From the left: several are read at once, those that are left over one by one.
static kl_parts join_leaves(elements *x) {
  kl_vars regs[2] = {x->loops.regs, x->loops.regs};
  kl_parts sum = kl_no_leaf(&x->w, x->x);
  uint32_t parts = x->x->complex ? 2 : 1, carried[2] = {sum.re, sum.im};
  if (x->all != KL_NONE) kl_write_loop(&x->w, x->all, parts, (uint32_t[]){sum.re, sum.im}, regs, carried);
  sum = (kl_parts){carried[0], x->x->complex ? carried[1] : KL_NONE};
  const kl_aff *first = kl_aff_mulc(x->p, value_of(x, x->all), x->leaves);
  kl_parts leaves = read_leaves(x, kl_aff_add(x->p, first, value_of(x, x->at_once)));
  for (uint32_t u = 0; u < x->leaves; u++) sum = kl_join_leaf(&x->w, x->x, sum, one_of(x, leaves, u));
  if (x->all != KL_NONE) kl_write_loop_end(&x->w, (uint32_t[]){sum.re, sum.im});
  for (int64_t k = x->sums->leaves / x->leaves * x->leaves; k < x->sums->leaves; k++)
    sum = kl_join_leaf(&x->w, x->x, sum, read_leaves(x, kl_aff_const(x->p, k)));
  return sum;
}

// The index of an element by its place. Of the slowest dim it is as large as places are: `keep` says that these are
// there, and elements of one byte stay neighbours.
static void index_at(const elements *x, const kl_aff **index) {
  const kl_shape *s = output(x, 0)->shape;
  int64_t place = 1, rest = s->count;
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(s, i);
    rest /= s->dims[d];
    const kl_aff *at = kl_aff_floordivc(x->p, x->at, place);
    index[d] = s->dims[d] == 1 ? kl_aff_const(x->p, 0) : rest > 1 ? kl_aff_modc(x->p, at, s->dims[d]) : at;
    place *= s->dims[d];
  }
}

static kiln_status write_outputs(elements *x, const kl_aff *const *index) {
  kl_parts sum;
  if (x->share == ALL_LEAVES)
    sum = join_leaves(x);
  else
    KL_TRY(kl_contract_sum(&x->w, x->x, &x->loops, want_pair, x, &sum));
  return kl_store_outputs(&x->walk, x->x, x->o, index, x->at, sum, x->keep);
}

static kiln_status write_each_leaf(elements *x) {
  KL_TRY(write_leaf(x, false));
  return kl_has_short_leaf(x->x) ? write_leaf(x, true) : KILN_OK;
}

// What says that a thread's elements are there, where all of them are or none, and threads are not lanes of one.
static uint32_t keep_of_thread(elements *x) {
  int64_t n = x->neighbours, threads = x->o->shape->count / n;
  bool never;
  if (x->c->plan->target.machine == KL_HOST || x->o->shape->count % n) return KL_NONE;
  return kl_guard_and(&x->w.guards, KL_NONE, x->thread, 0, threads - 1, &never);
}

static kiln_status write_body(elements *x) {
  const kl_aff *index[KILN_MAX_RANK], *named[KILN_MAX_RANK];
  bool never;
  x->at = kl_dom_simplify(x->w.body->domain, x->at);
  x->keep = kl_guard_and(&x->w.guards, KL_NONE, x->at, 0, x->o->shape->count - 1, &never);
  index_at(x, named);
  for (uint32_t d = 0; d < x->o->shape->rank; d++) index[d] = kl_aff_dim(x->p, x->w.guards.first_name + d);
  x->walk.named = named;
  x->walk.nnamed = x->o->shape->rank;
  kl_contract_output_element(x->p, x->x, x->o, index, x->element);
  bool branches = begin_if(x, keep_of_thread(x));
  if (branches) x->keep = KL_NONE;
  KL_TRY(x->share == ONE_LEAF ? write_each_leaf(x) : write_outputs(x, index));
  if (branches) kl_write_if_end(&x->w);
  return KILN_OK;
}

static kiln_status write_launch(kl_choosing *c, const kl_contraction *k, const kl_contract_outputs *o, share_of share,
                                const kl_leaf_sums *sums, const char **why_not) {
  elements x = {.c = c, .x = k, .o = o, .p = c->plan->affs, .share = share, .sums = sums};
  kl_body b = {0};
  make_vars(&x);
  kl_take_vars(c->arena, &x.vars, &b);
  b.width = c->plan->target.machine == KL_HOST ? (uint32_t)kl_extent(&b, kl_bound(&b, KL_BIND_LANE)) : 1;
  kl_write_begin_naming(&x.w, c->cx, c->plan, &b, o->shape->rank, o->shape->dims);
  kl_walk_begin(&x.walk, c->cx, c->plan, &c->slots, &x.w);
  kiln_status st = write_body(&x);
  kl_walk_free(&x.walk);
  if (st == KILN_OK && x.w.splits_bytes) *why_not = "results of several threads would share a byte";
  if (st != KILN_OK || *why_not) {
    kl_write_free(&x.w);
    return st;
  }
  kl_write_end(&x.w);
  kl_last_launch(c->plan)->block = c->plan->target.machine == KL_HOST ? 1 : WARP * WARPS;
  kl_part part = {.dim = KL_NONE, .count = o->shape->count, .main = b, .blocks = b.blocks, .main_blocks = b.blocks};
  kl_plan_add_part(c->plan, &part);
  return KILN_OK;
}

kiln_status kl_join_leaves(kl_choosing *c, const kl_contraction *k, const kl_contract_outputs *o,
                           const kl_leaf_sums *sums, const char **why_not) {
  return write_launch(c, k, o, ALL_LEAVES, sums, why_not);
}

enum { BUSY_THREADS = 1 << 16 }; // of a GPU

// With few elements of several leaves each leaf has threads of its own.
kiln_status kl_contract_elements(kl_choosing *c, const kl_contraction *k, const kl_contract_outputs *o,
                                 const char **why_not) {
  bool few = c->plan->target.machine == KL_NVPTX && o->shape->count < BUSY_THREADS;
  int64_t split = c->params->strategy.split;
  if (k->length <= k->piece || k->piece % AT_ONCE || (split ? split == 1 : !few) || c->plan->target.machine == KL_HOST)
    return write_launch(c, k, o, ALL_PAIRS, NULL, why_not);
  const kl_contraction pieces = kl_in_pieces(k);
  kl_leaf_sums sums;
  k = &pieces;
  kl_add_leaf_sums(c, k, &sums);
  KL_TRY(write_launch(c, k, o, ONE_LEAF, &sums, why_not));
  if (*why_not) return KILN_OK;
  kl_plan_add_launch(c->plan, c->plan->target.block);
  return write_launch(c, k, o, ALL_LEAVES, &sums, why_not);
}
