// Contractions of few rows, or columns, on one side: nothing is read twice, so that memory is all there is to wait for.
//
// A block has a warp's lanes of the many side, for all rows of the few one, and a warp for each leaf: so a thread has
// one leaf of a sum, or a few rows' ones. Slab by slab, some pairs of every leaf deep, the block brings what it takes
// of both operands to shared memory, in accesses as wide as memory has them, whole sectors side by side; while a slab
// is multiplied, the threads read the next one. A block's leaves meet in shared memory, from the left. Where there are
// few blocks each has some leaves only, and the last one to come joins what all have left in scratch memory.
//
// Loads need no guards: behind the last row lies the last one again, or the last run of rows, and a slab that is not
// whole lies back from the end. What are no pairs of its own count as absent where they are put, and a slab of none is
// left out.

#include "lower/choose/contract/contract.h"

enum {
  WARP = 32,
  MOST_WARPS = 8,
  FEWEST_WARPS = 4,
  MOST_ROWS = 15,
  FEWEST_COLUMNS = 32,
  LEAST_LENGTH = 16,
  LEAST_DEPTH = 8,
  MOST_DEPTH = 32,
  AT_ONCE = 4,
  LEAVES_AT_ONCE = 8,
  MOST_SHARED = 48 << 10,
  MULTIPROCESSORS = 132
};

// Names of indices: of what is read on either side, of the result's elements, of one that is there in any case.
enum {
  ROW,
  FIRST_PAIR = ROW + 2,
  NEXT_PAIR = FIRST_PAIR + 2,
  FEW_NAME = NEXT_PAIR + 2,
  MANY_NAME,
  BOTH_NAME,
  ROW_THERE,
  NAMES
};
enum { FEW, MANY };

// Of a block: leaves, columns by 32, rows by some of a thread; warps that have the same sums, so that more of them
// read. Leaves of a block in rounds, one after the other.
typedef struct sizes {
  int64_t rows, columns; // the few side's; of a block
  int64_t leaves, column_warps, row_warps, copies, threads;
  int64_t of_thread;     // rows
  int64_t rounds, parts; // of leaves: one after the other; blocks that have some each
  int64_t depth, run;    // pairs of a slab, elements of an access
  int64_t few_run;       // the same of the few side, along pairs
  bool along_pairs;
  int64_t pitch;
} sizes;

typedef struct serving {
  kl_choosing *c;
  const kl_contraction *x;
  const kl_contract_outputs *o;
  const sizes *s;
  kl_affs *p;
  kl_writer w;
  kl_walk walk;
  kl_body body;
  kl_var_list vars;
  int many; // which operand
  const kl_aff *named[NAMES];
  int64_t extent[NAMES];
  uint32_t round, slab, at; // loops; reg, of pairs that are read of shared memory at once
  uint32_t of_parts,
      behind;       // the blocks that have leaves of the same sums; loop over these leaves, of which so many are
  uint32_t at_leaf; // read at once: reg
  int64_t leaves_at_once;
  const kl_aff *counter; // of the blocks that have the same sums: which
  const kl_aff *part, *leaf, *copy, *row, *column;
  kl_vars sums, of_slab[2];          // that number a thread's elements
  const kl_aff *depth[2], *place[2]; // of what a thread reads, in the slab: by FEW and MANY
  const kl_aff *few;                 // its number among the few side's runs of a leaf's slab
  kl_leaf_sums left;
  uint32_t shared[2][2], leaf_sums[2]; // slots, by side and part
} serving;

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}
static uint32_t parts_of(const kl_contraction *x) {
  return x->complex ? 2 : 1;
}
static int64_t leaves_of(const kl_contraction *x) {
  return ceil_div(x->length, x->leaf);
}
static int64_t slabs_of(const serving *x) {
  return ceil_div(x->x->length < x->x->leaf ? x->x->length : x->x->leaf, x->s->depth);
}

// --- sizes ----------------------------------------------------------------------------------------------------------

static int64_t multiprocessors(const kl_choosing *c) {
  return c->plan->target.multiprocessors ? c->plan->target.multiprocessors : MULTIPROCESSORS;
}

// As many leaves as a block has warps for, with few rounds of some that are not there.
static int64_t leaves_at_once(int64_t leaves) {
  if (leaves <= MOST_WARPS) return leaves;
  for (int64_t n = MOST_WARPS; n > FEWEST_WARPS; n--)
    if (leaves % n == 0) return n;
  return MOST_WARPS;
}

static int64_t shared_bytes(const kl_contraction *x, const sizes *s) {
  int64_t slab = s->along_pairs ? s->columns * (s->depth + AT_ONCE) : s->depth * (s->columns + AT_ONCE);
  int64_t sums = s->leaves > 1 && s->parts == 1 ? s->rows * s->columns : 0;
  return s->leaves * (slab + s->rows * s->depth + sums) * parts_of(x) * kl_info(x->type)->bits / 8;
}

static void share_out(const kl_choosing *c, const kl_contraction *x, int64_t columns, sizes *s) {
  int64_t leaves = leaves_of(x), busy = multiprocessors(c), asked = c->params->strategy.split;
  int64_t blocks = ceil_div(columns, WARP) * kl_contract_extent(x, KL_OF_BOTH);
  bool splits = leaves > 1 && (asked ? asked > 1 : 2 * blocks <= busy);
  s->leaves = leaves_at_once(leaves);
  while (splits && s->leaves > 1 && (leaves <= s->leaves || blocks * ceil_div(leaves, s->leaves) < busy))
    s->leaves /= 2;
  s->parts = splits ? ceil_div(leaves, s->leaves) : 1;
  s->rounds = splits ? 1 : ceil_div(leaves, s->leaves);
  s->column_warps = s->row_warps = s->copies = 1;
  while (2 * s->leaves * s->column_warps <= MOST_WARPS && WARP * s->column_warps < columns &&
         blocks * s->parts / (2 * s->column_warps) >= busy)
    s->column_warps *= 2;
  blocks = blocks * s->parts / s->column_warps;
  for (int64_t warps = s->leaves * s->column_warps;
       warps <= MOST_WARPS && blocks * warps < busy * MOST_WARPS && s->row_warps * s->copies < AT_ONCE; warps *= 2)
    *(2 * s->row_warps <= s->rows ? &s->row_warps : &s->copies) *= 2;
  s->of_thread = ceil_div(s->rows, s->row_warps);
  s->columns = WARP * s->column_warps;
  s->threads = s->columns * s->leaves * s->row_warps * s->copies;
}

static const char *why_none(const kl_choosing *c, const kl_contraction *x, int64_t rows, int64_t columns) {
  if (c->plan->target.machine != KL_NVPTX || x->instr->op == KL_OP_CONVOLUTION) return "";
  if (x->type == KILN_PRED) return "predicates are joined element by element";
  if (x->length == 0) return "there is nothing to sum";
  if (rows > MOST_ROWS) return "it has many rows and columns";
  if (c->params->strategy.chooser) return NULL;
  if (x->length < LEAST_LENGTH) return "sums are short";
  return columns < FEWEST_COLUMNS ? "it has few rows and columns" : NULL;
}

static kiln_status sizes_of(kl_choosing *c, const kl_contraction *x, int many, sizes *out, const char **why_not) {
  kl_contract_role role = many ? KL_OF_RIGHT : KL_OF_LEFT;
  int64_t rows = kl_contract_extent(x, many ? KL_OF_LEFT : KL_OF_RIGHT), columns = kl_contract_extent(x, role);
  int64_t bytes = parts_of(x) * kl_info(x->type)->bits / 8;
  kl_contract_reading r;
  *why_not = why_none(c, x, rows, columns);
  if (*why_not) return KILN_OK;
  KL_TRY(kl_contract_reading_of(c, x, many, &r));
  *out = (sizes){.rows = rows, .depth = MOST_DEPTH * 4 / bytes, .along_pairs = r.along_pairs};
  while (out->depth > LEAST_DEPTH && x->length % out->depth) out->depth /= 2;
  if (x->length % out->depth && !c->params->strategy.chooser) *why_not = "its sums are no multiples of some pairs";
  share_out(c, x, columns, out);
  while (shared_bytes(x, out) > MOST_SHARED && out->depth > AT_ONCE) out->depth /= 2;
  if (shared_bytes(x, out) > MOST_SHARED) *why_not = "a block's shared memory holds no slab of it";
  int64_t each = out->depth * out->columns * out->leaves / out->threads;
  out->run = r.at_once < each ? r.at_once : each;
  if (r.along_pairs && x->length % out->run) out->run = 1;
  KL_TRY(kl_contract_reading_of(c, x, 1 - many, &r));
  out->few_run = !r.along_pairs ? 1 : r.at_once < AT_ONCE ? r.at_once : AT_ONCE;
  if (x->length % out->few_run) out->few_run = 1;
  out->pitch = out->along_pairs ? out->depth + AT_ONCE : out->columns + (out->run > AT_ONCE ? AT_ONCE : 0);
  return KILN_OK;
}

// --- variables ------------------------------------------------------------------------------------------------------

static const kl_aff *new_var(serving *x, kl_binding binding, int64_t extent, const char *name, uint32_t *var) {
  return kl_new_var(x->p, &x->vars, binding, extent, name, var);
}

static const kl_aff *new_reg(serving *x, int64_t extent, const char *name, kl_vars *regs) {
  uint32_t var;
  const kl_aff *e = new_var(x, KL_BIND_REG, extent, name, &var);
  if (var != KL_NONE) *regs |= (kl_vars)1 << var;
  return e;
}

static const kl_aff *joined(serving *x, const kl_aff *high, int64_t times, const kl_aff *low) {
  return kl_aff_addmul(x->p, low, high, times);
}

static const kl_aff *no_more_than(serving *x, const kl_aff *e, int64_t most) {
  return kl_aff_min(x->p, e, kl_aff_const(x->p, most));
}

// Threads of a leaf read what they multiply, and that in the same order slab after slab. Of the many side: runs of
// neighbours, along rows or pairs.
static void deal_many(serving *x, const kl_aff *member, const kl_aff *block) {
  const sizes *s = x->s;
  int64_t members = s->threads / s->leaves, rows = x->extent[ROW + MANY], of_run = s->along_pairs ? 1 : s->run;
  const kl_aff *run = new_reg(x, s->depth * s->columns / members / s->run, "run", &x->of_slab[MANY]);
  const kl_aff *at = new_reg(x, s->run, "r", &x->of_slab[MANY]), *number = joined(x, run, members, member);
  int64_t line = (s->along_pairs ? s->depth : s->columns) / s->run, lines = s->along_pairs ? s->columns : s->depth;
  const kl_aff *in_line = kl_aff_modc(x->p, number, line), *which = kl_aff_floordivc(x->p, number, line);
  const kl_aff *column = s->along_pairs ? which : in_line, *read = joined(x, block, s->columns / of_run, column);
  if (rows % of_run == 0) read = no_more_than(x, read, rows / of_run - 1);
  read = s->along_pairs ? read : joined(x, read, of_run, at);
  x->named[ROW + MANY] = rows % of_run ? no_more_than(x, read, rows - 1) : read;
  x->depth[MANY] = s->along_pairs ? joined(x, in_line, s->run, at) : which;
  const kl_aff *line_at = joined(x, x->leaf, lines, which);
  x->place[MANY] = joined(x, line_at, s->pitch, joined(x, in_line, s->run, at));
}

// Of the few one: runs of pairs, of which there may be fewer than threads.
static void deal_few(serving *x, const kl_aff *member) {
  const sizes *s = x->s;
  int64_t runs = s->rows * s->depth / s->few_run, members = s->threads / s->leaves, line = s->depth / s->few_run;
  x->few = joined(x, new_reg(x, ceil_div(runs, members), "l_run", &x->of_slab[FEW]), members, member);
  const kl_aff *at = new_reg(x, s->few_run, "l", &x->of_slab[FEW]);
  const kl_aff *number = runs % members ? no_more_than(x, x->few, runs - 1) : x->few;
  x->depth[FEW] = joined(x, kl_aff_modc(x->p, number, line), s->few_run, at);
  x->named[ROW + FEW] = kl_aff_floordivc(x->p, number, line);
  x->place[FEW] = joined(x, joined(x, x->leaf, runs, number), s->few_run, at);
}

static void make_vars(serving *x) {
  const sizes *s = x->s;
  uint32_t var;
  x->extent[BOTH_NAME] = kl_contract_extent(x->x, KL_OF_BOTH);
  x->extent[FEW_NAME] = x->extent[ROW_THERE] = x->extent[ROW + FEW] = s->rows;
  x->extent[MANY_NAME] = x->extent[ROW + MANY] = kl_contract_extent(x->x, x->many ? KL_OF_RIGHT : KL_OF_LEFT);
  x->part = new_var(x, KL_BIND_BLOCK, s->parts, "leaf", &x->of_parts);
  x->named[BOTH_NAME] = new_var(x, KL_BIND_BLOCK, x->extent[BOTH_NAME], "batch", &var);
  const kl_aff *block = new_var(x, KL_BIND_BLOCK, ceil_div(x->extent[MANY_NAME], s->columns), "block", &var);
  x->copy = new_var(x, KL_BIND_WARP, s->copies, "copy", &var);
  const kl_aff *row_warp = new_var(x, KL_BIND_WARP, s->row_warps, "row_warp", &var);
  x->leaf = new_var(x, KL_BIND_WARP, s->leaves, "leaf_warp", &var);
  const kl_aff *warp = new_var(x, KL_BIND_WARP, s->column_warps, "warp", &var);
  x->column = joined(x, warp, WARP, new_var(x, KL_BIND_LANE, WARP, "lane", &var));
  const kl_aff *member = joined(x, joined(x, x->copy, s->row_warps, row_warp), s->columns, x->column);
  x->named[FEW_NAME] = joined(x, row_warp, s->of_thread, new_reg(x, s->of_thread, "i", &x->sums));
  x->named[ROW_THERE] = x->row =
      s->row_warps * s->of_thread == s->rows ? x->named[FEW_NAME] : no_more_than(x, x->named[FEW_NAME], s->rows - 1);
  x->named[MANY_NAME] = joined(x, block, s->columns, x->column);
  new_var(x, KL_BIND_REG, AT_ONCE, "u", &x->at);
  deal_many(x, member, block);
  deal_few(x, member);
  new_var(x, KL_BIND_STEP, s->rounds, "round", &x->round);
  new_var(x, KL_BIND_STEP, slabs_of(x), "slab", &x->slab);
  if (s->parts == 1) return;
  x->counter = joined(x, x->named[BOTH_NAME], ceil_div(x->extent[MANY_NAME], s->columns), block);
  x->leaves_at_once = x->left.leaves < LEAVES_AT_ONCE ? 1 : LEAVES_AT_ONCE;
  new_var(x, KL_BIND_REG, x->leaves_at_once, "v", &x->at_leaf);
  new_var(x, KL_BIND_STEP, x->left.leaves / x->leaves_at_once, "behind", &x->behind);
}

static const kl_aff *value_of(const serving *x, uint32_t var) {
  return var == KL_NONE ? kl_aff_const(x->p, 0) : kl_aff_dim(x->p, var);
}

static const kl_aff *name(const serving *x, uint32_t i) {
  return kl_aff_dim(x->p, x->w.guards.first_name + i);
}

// --- slabs ----------------------------------------------------------------------------------------------------------

// Slabs of a thread, one after the other.
static int64_t all_slabs(const serving *x) {
  return x->s->rounds * slabs_of(x);
}

// Is each pair of all slabs there? If not, may a slab that is not whole lie back from the end, so that it has pairs of
// the one before?
static bool is_whole(const serving *x) {
  return x->s->parts * x->s->leaves * all_slabs(x) * x->s->depth == x->x->length;
}
static bool lies_back(const serving *x) {
  return x->x->length >= x->s->depth && (!x->s->along_pairs || x->x->length % x->s->run == 0);
}

// The first pair of a thread's slab behind `before` others; the first one that it reads.
static const kl_aff *first_pair(serving *x, const kl_aff *before) {
  int64_t slabs = slabs_of(x);
  const kl_aff *round = kl_aff_floordivc(x->p, before, slabs), *slab = kl_aff_modc(x->p, before, slabs);
  if (x->s->rounds == 1) round = kl_aff_const(x->p, 0), slab = before;
  const kl_aff *leaf = joined(x, kl_aff_add(x->p, round, x->part), x->s->leaves, x->leaf);
  return joined(x, leaf, x->x->leaf, kl_aff_mulc(x->p, slab, x->s->depth));
}
static const kl_aff *first_read(serving *x, const kl_aff *first) {
  return is_whole(x) || !lies_back(x) ? first : no_more_than(x, first, x->x->length - x->s->depth);
}

// Pairs that a thread reads of a side, each of which there is.
static const kl_aff *pairs_read(serving *x, int side, const kl_aff *first) {
  const kl_aff *pairs = kl_aff_add(x->p, first_read(x, first), x->depth[side]);
  return is_whole(x) || lies_back(x) ? pairs : no_more_than(x, pairs, x->x->length - 1);
}

// Those that are the slab's own, where some may be and others not.
static uint32_t own_pairs(serving *x, int side, const kl_aff *first) {
  bool never;
  const kl_aff *pairs = kl_aff_add(x->p, first_read(x, first), x->depth[side]);
  if (x->x->length % x->s->depth == 0) return KL_NONE;
  if (!lies_back(x)) return kl_guard_and(&x->w.guards, KL_NONE, pairs, 0, x->x->length - 1, &never);
  return kl_guard_and(&x->w.guards, KL_NONE, kl_aff_sub(x->p, pairs, first), 0, x->s->depth - 1, &never);
}

// By side and part.
typedef struct slab_values {
  uint32_t v[2][2];
} slab_values;

static int operand_of(const serving *x, int side) {
  return side == MANY ? x->many : 1 - x->many;
}

static kiln_status read_slab(serving *x, uint32_t pair, const kl_aff *before, slab_values *out) {
  bool never;
  uint32_t more = kl_guard_and(&x->w.guards, KL_NONE, before, 0, all_slabs(x) - 1, &never);
  if (never) return KILN_OK;
  for (int side = FEW; side <= MANY; side++) {
    const kl_aff *number[KL_CONTRACT_ROLES] = {name(x, BOTH_NAME), kl_aff_const(x->p, 0), kl_aff_const(x->p, 0)};
    const kl_aff *element[KILN_MAX_RANK];
    uint32_t n = pair + (uint32_t)side;
    int operand = operand_of(x, side);
    kl_parts v;
    number[operand ? KL_OF_RIGHT : KL_OF_LEFT] = name(x, (uint32_t)(ROW + side));
    kl_contract_element(x->p, x->x, number, element);
    x->named[n] = kl_dom_simplify(x->body.domain, pairs_read(x, side, first_pair(x, before)));
    KL_TRY(kl_want_term(&x->walk, x->x, operand, element, name(x, n), more, &v));
    out->v[side][0] = v.re;
    out->v[side][1] = v.im;
  }
  return KILN_OK;
}

static void store_shared(serving *x, uint32_t slot, const kl_aff *at, uint32_t value, uint32_t keep) {
  kl_write_store(&x->w, slot, &x->c->slots.v.p[slot], kl_dom_simplify(x->body.domain, at), value, keep);
}

static void put_slab(serving *x, const kl_aff *before, const slab_values *v) {
  int64_t runs = x->s->rows * x->s->depth / x->s->few_run;
  bool never;
  for (int side = FEW; side <= MANY; side++) {
    uint32_t there = own_pairs(x, side, first_pair(x, before)), keep = KL_NONE;
    if (side == FEW) keep = kl_guard_and(&x->w.guards, KL_NONE, x->few, 0, runs - 1, &never);
    for (uint32_t part = 0; part < parts_of(x->x); part++) {
      uint32_t none = kl_absent_term(&x->w, x->x, operand_of(x, side));
      store_shared(x, x->shared[side][part], x->place[side], kl_write_choose(&x->w, there, v->v[side][part], none),
                   keep);
    }
  }
}

static uint32_t load_shared(serving *x, uint32_t slot, const kl_aff *at) {
  return kl_write_load(&x->w, slot, &x->c->slots.v.p[slot], kl_dom_simplify(x->body.domain, at), KL_NONE, NULL);
}

// What a thread multiplies, of some pairs.
static kl_parts get(serving *x, int side, int64_t first) {
  const sizes *s = x->s;
  const kl_aff *pair = kl_aff_addc(x->p, value_of(x, x->at), first), *at;
  uint32_t v[2] = {KL_NONE, KL_NONE};
  if (side == FEW)
    at = joined(x, joined(x, x->leaf, s->rows, x->row), s->depth, pair);
  else if (s->along_pairs)
    at = joined(x, joined(x, x->leaf, s->columns, x->column), s->pitch, pair);
  else
    at = joined(x, joined(x, x->leaf, s->depth, pair), s->pitch, x->column);
  for (uint32_t part = 0; part < parts_of(x->x); part++) v[part] = load_shared(x, x->shared[side][part], at);
  return (kl_parts){v[0], v[1]};
}

// One of those that were read at once.
static kl_parts one_of(serving *x, kl_parts v, uint32_t var, uint32_t at) {
  v.re = kl_write_take(&x->w, v.re, var, at);
  if (x->x->complex) v.im = kl_write_take(&x->w, v.im, var, at);
  return v;
}

// --- loops ----------------------------------------------------------------------------------------------------------

// The sum with a slab's pairs, if there are any.
static kl_parts where_there(serving *x, const kl_aff *first, kl_parts before, kl_parts sum) {
  bool never;
  if (x->x->length % x->s->depth) return sum; // what is not there counts as absent
  uint32_t there = kl_guard_and(&x->w.guards, KL_NONE, first, 0, x->x->length - 1, &never);
  sum.re = kl_write_choose(&x->w, there, sum.re, before.re);
  if (x->x->complex) sum.im = kl_write_choose(&x->w, there, sum.im, before.im);
  return sum;
}

// What goes from round to round: sums, and the slab that has been read.
typedef struct rolling {
  kl_parts sum;
  slab_values next;
} rolling;

enum { MOST_ROLLING = 6 };

static uint32_t flatten(const serving *x, const rolling *r, uint32_t *v, kl_vars *regs) {
  uint32_t n = 0;
  for (uint32_t part = 0; part < parts_of(x->x); part++) {
    regs[n] = x->sums;
    v[n++] = part ? r->sum.im : r->sum.re;
    for (int side = FEW; side <= MANY; side++) {
      regs[n] = x->of_slab[side];
      v[n++] = r->next.v[side][part];
    }
  }
  return n;
}

static void begin_loop(serving *x, uint32_t loop, rolling *r) {
  uint32_t from[MOST_ROLLING], carried[MOST_ROLLING], n = 0;
  kl_vars regs[MOST_ROLLING];
  if (loop == KL_NONE) return;
  kl_write_loop(&x->w, loop, flatten(x, r, from, regs), from, regs, carried);
  for (uint32_t part = 0; part < parts_of(x->x); part++) {
    *(part ? &r->sum.im : &r->sum.re) = carried[n++];
    for (int side = FEW; side <= MANY; side++) r->next.v[side][part] = carried[n++];
  }
}

static void end_loop(serving *x, uint32_t loop, const rolling *r) {
  uint32_t next[MOST_ROLLING];
  kl_vars regs[MOST_ROLLING];
  if (loop == KL_NONE) return;
  flatten(x, r, next, regs);
  kl_write_loop_end(&x->w, next);
}

// Own leaves of a round, whose first slab has been read. The next one is asked for once this one is there for all.
static kiln_status write_leaf(serving *x, rolling *r) {
  r->sum = kl_begin_leaf(&x->w, x->x);
  begin_loop(x, x->slab, r);
  const kl_aff *before = joined(x, value_of(x, x->round), slabs_of(x), value_of(x, x->slab));
  kl_parts sum = r->sum;
  put_slab(x, before, &r->next);
  for (int64_t k = 0; k < x->s->depth; k += AT_ONCE) {
    int few = operand_of(x, FEW);
    kl_parts terms[2];
    terms[few] = get(x, FEW, k);
    terms[1 - few] = get(x, MANY, k);
    if (k == 0) KL_TRY(read_slab(x, NEXT_PAIR, kl_aff_addc(x->p, before, 1), &r->next));
    for (uint32_t u = 0; u < AT_ONCE; u++)
      r->sum = kl_add_product(&x->w, x->x, one_of(x, terms[0], x->at, u), one_of(x, terms[1], x->at, u), r->sum);
  }
  r->sum = where_there(x, first_pair(x, before), sum, r->sum);
  end_loop(x, x->slab, r);
  return KILN_OK;
}

// What a block's warps have of a round joins what there is.
static kl_parts join_leaves(serving *x, kl_parts before, kl_parts sum) {
  const sizes *s = x->s;
  const kl_aff *at = joined(x, x->row, s->columns, x->column);
  kl_parts none = kl_no_leaf(&x->w, x->x), v = {KL_NONE, KL_NONE};
  bool never;
  if (s->leaves == 1) return kl_join_leaf(&x->w, x->x, before, sum);
  uint32_t first = kl_guard_and(&x->w.guards, KL_NONE, x->copy, 0, 0, &never);
  first = kl_guard_and(&x->w.guards, first, x->named[FEW_NAME], 0, s->rows - 1, &never);
  const kl_aff *own = joined(x, value_of(x, x->round), s->leaves, x->leaf);
  uint32_t there = kl_guard_and(&x->w.guards, KL_NONE, own, 0, leaves_of(x->x) - 1, &never);
  for (uint32_t part = 0; part < parts_of(x->x); part++)
    store_shared(x, x->leaf_sums[part], joined(x, x->leaf, s->rows * s->columns, at),
                 kl_write_choose(&x->w, there, part ? sum.im : sum.re, part ? none.im : none.re), first);
  for (int64_t k = 0; k < s->leaves; k++) {
    for (uint32_t part = 0; part < parts_of(x->x); part++)
      *(part ? &v.im : &v.re) = load_shared(x, x->leaf_sums[part], kl_aff_addc(x->p, at, k * s->rows * s->columns));
    before = kl_join_leaf(&x->w, x->x, before, v);
  }
  return before;
}

static kiln_status write_sum(serving *x, kl_parts *sum) {
  rolling r = {.sum = {KL_NONE, KL_NONE}};
  KL_TRY(read_slab(x, FIRST_PAIR, kl_aff_const(x->p, 0), &r.next));
  bool joins = x->s->parts == 1 && leaves_of(x->x) > 1;
  if (joins) r.sum = kl_no_leaf(&x->w, x->x);
  if (joins) begin_loop(x, x->round, &r);
  kl_parts before = r.sum;
  KL_TRY(write_leaf(x, &r));
  if (joins) r.sum = join_leaves(x, before, r.sum);
  if (joins) end_loop(x, x->round, &r);
  *sum = r.sum;
  return KILN_OK;
}

// --- the body -------------------------------------------------------------------------------------------------------

static void add_arrays(serving *x) {
  const sizes *s = x->s;
  int64_t lines = s->along_pairs ? s->columns : s->depth;
  for (uint32_t part = 0; part < parts_of(x->x); part++) {
    int64_t counts[] = {s->leaves * s->rows * s->depth, s->leaves * lines * s->pitch};
    for (int side = FEW; side <= MANY; side++)
      x->shared[side][part] = kl_add_shared(x->c->cx, x->c->plan, &x->c->slots, x->x->type, counts[side]);
    if (s->leaves == 1 || s->parts > 1) continue;
    int64_t sums = s->leaves * s->rows * s->columns;
    x->leaf_sums[part] = kl_add_shared(x->c->cx, x->c->plan, &x->c->slots, x->x->type, sums);
  }
}

// A leaf in scratch memory, or several that follow one another.
static kl_parts read_left(serving *x, const kl_aff *leaf, const kl_aff *place) {
  const kl_aff *at = kl_dom_simplify(x->body.domain, joined(x, leaf, x->x->shape->count, place));
  uint32_t v[2] = {KL_NONE, KL_NONE};
  for (uint32_t part = 0; part < parts_of(x->x); part++) {
    uint32_t slot = x->left.slot[part];
    v[part] = kl_write_load(&x->w, slot, &x->c->slots.v.p[slot], at, KL_NONE, NULL);
  }
  return (kl_parts){v[0], v[1]};
}

// From the left: several are read at once, those that are left over one by one.
static kl_parts join_left(serving *x, const kl_aff *place) {
  kl_parts sum = kl_no_leaf(&x->w, x->x);
  uint32_t carried[2] = {sum.re, sum.im};
  kl_vars regs[2] = {x->sums, x->sums};
  int64_t n = x->leaves_at_once;
  if (x->behind != KL_NONE)
    kl_write_loop(&x->w, x->behind, parts_of(x->x), (uint32_t[]){sum.re, sum.im}, regs, carried);
  sum = (kl_parts){carried[0], carried[1]};
  const kl_aff *first = kl_aff_mulc(x->p, value_of(x, x->behind), n);
  kl_parts v = read_left(x, kl_aff_add(x->p, first, value_of(x, x->at_leaf)), place);
  for (uint32_t k = 0; k < n; k++)
    sum = kl_join_leaf(&x->w, x->x, sum, x->at_leaf == KL_NONE ? v : one_of(x, v, x->at_leaf, k));
  if (x->behind != KL_NONE) kl_write_loop_end(&x->w, (uint32_t[]){sum.re, sum.im});
  for (int64_t k = x->left.leaves / n * n; k < x->left.leaves; k++)
    sum = kl_join_leaf(&x->w, x->x, sum, read_left(x, kl_aff_const(x->p, k), place));
  return sum;
}

// The block's leaves, for the last one of those that have leaves of the same sums.
static void leave(serving *x, const kl_aff *place, kl_parts sum, uint32_t keep) {
  const kl_aff *leaf = joined(x, x->part, x->s->leaves, x->leaf);
  bool never;
  keep = kl_guard_and(&x->w.guards, keep, x->named[MANY_NAME], 0, x->extent[MANY_NAME] - 1, &never);
  keep = kl_guard_and(&x->w.guards, keep, x->copy, 0, 0, &never);
  keep = kl_guard_and(&x->w.guards, keep, leaf, 0, x->left.leaves - 1, &never);
  kl_store_leaf(x->c, &x->w, x->x, &x->left, leaf, place, sum, keep);
  kl_arrival last = {.of = (kl_vars)1 << x->of_parts, .element = x->counter};
  last.slot = kl_add_counters(x->c->cx, x->c->plan, &x->c->slots,
                              ceil_div(x->extent[MANY_NAME], x->s->columns) * x->extent[BOTH_NAME]);
  kl_write_last(&x->w, &last);
}

static void index_of(serving *x, uint32_t row, const kl_aff **index) {
  const kl_aff *number[KL_CONTRACT_ROLES], *element[KILN_MAX_RANK];
  number[KL_OF_BOTH] = name(x, BOTH_NAME);
  number[x->many ? KL_OF_RIGHT : KL_OF_LEFT] = name(x, MANY_NAME);
  number[x->many ? KL_OF_LEFT : KL_OF_RIGHT] = name(x, row);
  kl_contract_element(x->p, x->x, number, element);
  kl_contract_output_index(x->p, x->x, x->o, element, index);
}

// In the first output: of the thread's element of this row.
static const kl_aff *place_of(serving *x, uint32_t row) {
  const kl_aff *index[KILN_MAX_RANK];
  index_of(x, row, index);
  const kl_aff *place = kl_position_of(x->p, x->c->slots.v.p[*x->o->slots].shape, index);
  return kl_real(&x->walk, kl_dom_simplify(x->body.domain, place));
}

static kiln_status write_results(serving *x, kl_parts sum, const char **why_not) {
  const kl_aff *index[KILN_MAX_RANK];
  bool never;
  uint32_t row = kl_guard_and(&x->w.guards, KL_NONE, x->named[FEW_NAME], 0, x->s->rows - 1, &never);
  index_of(x, FEW_NAME, index);
  if (x->s->parts > 1) leave(x, place_of(x, FEW_NAME), sum, row);
  uint32_t own = kl_guard_and(&x->w.guards, KL_NONE, x->leaf, 0, 0, &never);
  own = kl_guard_and(&x->w.guards, own, x->copy, 0, 0, &never);
  own = kl_guard_and(&x->w.guards, own, x->named[MANY_NAME], 0, x->extent[MANY_NAME] - 1, &never);
  if (own != KL_NONE) kl_write_if(&x->w, own);
  if (x->s->parts > 1) sum = join_left(x, place_of(x, ROW_THERE));
  x->walk.goes_on = true;
  KL_TRY(kl_store_outputs(&x->walk, x->x, x->o, index, NULL, sum, row));
  if (own != KL_NONE) kl_write_if_end(&x->w);
  if (x->s->parts > 1) kl_write_last_end(&x->w);
  if (x->walk.elsewhere) *why_not = "results take its elements at other places";
  return KILN_OK;
}

static kiln_status write_body(serving *x, const char **why_not) {
  kl_parts sum;
  add_arrays(x);
  KL_TRY(write_sum(x, &sum));
  return write_results(x, sum, why_not);
}

static kiln_status write_launch(serving *x, const char **why_not) {
  for (uint32_t i = FIRST_PAIR; i < FEW_NAME; i++) x->extent[i] = x->x->length;
  make_vars(x);
  for (uint32_t i = FIRST_PAIR; i < FEW_NAME; i++) x->named[i] = kl_aff_const(x->p, 0);
  kl_take_vars(x->c->arena, &x->vars, &x->body);
  x->body.width = 1;
  if (x->body.blocks > INT32_MAX) *why_not = "it would need more than 2^31-1 blocks";
  if (*why_not) return KILN_OK;
  kl_write_begin_naming(&x->w, x->c->cx, x->c->plan, &x->body, NAMES, x->extent);
  kl_walk_begin(&x->walk, x->c->cx, x->c->plan, &x->c->slots, &x->w);
  x->walk.named = x->named;
  x->walk.nnamed = NAMES;
  kiln_status st = write_body(x, why_not);
  kl_walk_free(&x->walk);
  if (st == KILN_OK && x->w.splits_bytes) *why_not = "results of several threads would share a byte";
  if (st != KILN_OK || *why_not) {
    kl_write_free(&x->w);
    return st;
  }
  kl_write_end(&x->w);
  kl_last_launch(x->c->plan)->block = (uint32_t)x->s->threads;
  kl_part part = {.dim = KL_NONE,
                  .count = x->x->shape->count,
                  .main = x->body,
                  .blocks = x->body.blocks,
                  .main_blocks = x->body.blocks};
  kl_plan_add_part(x->c->plan, &part);
  return KILN_OK;
}

kiln_status kl_contract_few(kl_choosing *c, const kl_contraction *k, const kl_contract_outputs *o,
                            const char **why_not) {
  const kl_contraction pieces = kl_in_pieces(k);
  sizes s;
  serving x = {.c = c, .x = &pieces, .o = o, .s = &s, .p = c->plan->affs};
  x.many = kl_contract_extent(k, KL_OF_RIGHT) >= kl_contract_extent(k, KL_OF_LEFT);
  KL_TRY(sizes_of(c, &pieces, x.many, &s, why_not));
  if (*why_not) return KILN_OK;
  if (s.parts > 1) kl_add_leaf_sums(c, &pieces, &x.left);
  return write_launch(&x, why_not);
}
