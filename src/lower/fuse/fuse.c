// From the last instruction to the first: who wants a value is known when its turn comes, and so is what would want
// what it is made of. Nothing is looked at again, so that time is that of the users.

#include "lower/fuse/impl.h"

#include "ir/rewrite/branch.h"
#include "lower/choose/private.h"

// A kernel's instructions and results at most; users that make a value again at most; of what weighs nothing, bytes and
// instructions at most, which is made wherever it is wanted; copies of an instruction's code at most.
enum { MOST_IN_KERNEL = 1024, MOST_RESULTS = 32, MOST_AGAIN = 8, WEIGHTLESS = 64, MOST_COPIES = 64 };

#define MOST_WORK 1e9
// Writing has to save this share of the time.
#define GAIN      0.1

bool kl_is_run(const kl_instr *in, const bool *has) {
  return in->op == KL_OP_FUSION || in->op == KL_OP_WHILE || kl_is_branching(in, has);
}

// Does it stay in the computation? Loops that each thread can run by itself become kernels.
static bool stays(const kl_fuser *f, uint32_t i) {
  return kl_is_run(&f->c->instr[i], f->has) && !f->changes[i];
}

static kl_hero hero_of(const kl_instr *in) {
  if (in->op == KL_OP_WHILE) return KL_HERO_ROUNDS;
  if (kl_is_walked(in)) return KL_HERO_NONE;
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_REDUCE: return KL_HERO_REDUCTION;
  case KL_KIND_DOT:
  case KL_KIND_CONVOLUTION: return KL_HERO_CONTRACTION;
  case KL_KIND_SCATTER: return KL_HERO_CHANGE;
  default: return KL_HERO_ALONE;
  }
}

// --- what is wanted
// ---------------------------------------------------------------------------------------------------

static bool is_reduced(const kl_instr *in, uint32_t d) {
  for (uint32_t i = 0; i < in->ndims; i++)
    if (in->dims[i] == d) return true;
  return false;
}

bool kl_fuse_same_space(const kl_fuser *f, const kl_instr *a, const kl_instr *b) {
  const kl_shape *s = kl_operand(f->c, a, 0)->shape, *t = kl_operand(f->c, b, 0)->shape;
  if (!kl_shape_same_dims(s, t)) return false;
  for (uint32_t d = 0; d < s->rank; d++)
    if (is_reduced(a, d) != is_reduced(b, d)) return false;
  return true;
}

// Does the broadcast put what is left of the reduction back where it was?
static bool spreads_back(const kl_fuser *f, const kl_instr *spread, const kl_instr *reduce) {
  const kl_shape *space = kl_operand(f->c, reduce, 0)->shape;
  if (!kl_shape_same_dims(spread->shape, space) || spread->ndims + reduce->ndims != space->rank) return false;
  for (uint32_t i = 0; i < spread->ndims; i++)
    if (is_reduced(reduce, (uint32_t)spread->dims[i]) || (i && spread->dims[i] <= spread->dims[i - 1])) return false;
  return true;
}

static bool same_spread(const kl_fuser *f, const kl_instr *a, const kl_instr *b) {
  return a->ndims == b->ndims && kl_shape_same_dims(kl_operand(f->c, a, 0)->shape, kl_operand(f->c, b, 0)->shape) &&
         memcmp(a->dims, b->dims, a->ndims * sizeof *a->dims) == 0;
}

// How the operand of a broadcast is wanted that is wanted at `at`.
static uint32_t at_of_spread(kl_fuser *f, kl_maker *k, const kl_instr *in, uint32_t at) {
  if (k->space && at == k->space_at && spreads_back(f, in, k->space)) return k->row_at;
  if (at != KL_AT_FULL || !kl_shape_same_dims(in->shape, k->full)) return k->next_at++;
  for (uint32_t i = 0; i < k->nspread; i++)
    if (same_spread(f, k->spread[i].instr, in)) return k->spread[i].at;
  uint32_t fresh = k->next_at++;
  if (k->nspread < KL_SPREADS) {
    k->spread[k->nspread].instr = in;
    k->spread[k->nspread++].at = fresh;
  }
  return fresh;
}

// The dim in which neighbours in memory differ; KL_NO_DIM: there are none.
#define KL_NO_DIM UINT32_MAX
static uint32_t fastest_dim(const kl_shape *s) {
  for (uint32_t k = 0; k < s->rank; k++) {
    int64_t d = kl_shape_minor_to_major(s, k);
    if (s->dims[d] > 1) return (uint32_t)d;
  }
  return KL_NO_DIM;
}

// Is what is wanted at `at` as many elements as the results have, each for one of them? *dim, as of an order.
static bool is_each_once(const kl_maker *k, uint32_t at, uint32_t *dim) {
  if (at == KL_AT_FULL) return *dim = fastest_dim(k->full), true;
  for (uint32_t i = 0; i < k->norders; i++)
    if (k->order[i].at == at) return *dim = k->order[i].dim, true;
  return false;
}

// Elements from one to the next along dim d, in order of memory or, where that does not matter, of rows.
static int64_t step_along(const kl_shape *s, uint32_t d, bool in_memory) {
  int64_t step = 1;
  for (uint32_t k = 0; k < s->rank; k++) {
    int64_t dim = in_memory ? kl_shape_minor_to_major(s, k) : s->rank - 1 - k;
    if (dim == d) return step;
    step *= s->dims[dim];
  }
  return step;
}

// The dim that changes with such a step.
static uint32_t dim_of_step(const kl_shape *s, int64_t step, bool in_memory) {
  for (uint32_t k = 0; k < s->rank; k++) {
    int64_t dim = in_memory ? kl_shape_minor_to_major(s, k) : s->rank - 1 - k;
    if (step < s->dims[dim]) return (uint32_t)dim;
    step /= s->dims[dim];
  }
  return KL_NO_DIM;
}

static bool orders_anew(const kl_fuser *f, const kl_instr *in) {
  bool does = in->op == KL_OP_TRANSPOSE || in->op == KL_OP_RESHAPE || in->op == KL_OP_BITCAST;
  return does && in->shape->count && kl_operand(f->c, in, 0)->shape->count == in->shape->count;
}

// How the operand of what puts elements into another order is wanted.
static uint32_t at_of_order(kl_fuser *f, kl_maker *k, const kl_instr *in, uint32_t at) {
  uint32_t fresh = k->next_at++, dim;
  bool bits = in->op == KL_OP_BITCAST;
  if (!is_each_once(k, at, &dim) || k->norders == KL_ORDERS) return fresh;
  if (dim != KL_NO_DIM && in->op == KL_OP_TRANSPOSE)
    dim = (uint32_t)in->dims[dim];
  else if (dim != KL_NO_DIM)
    dim = dim_of_step(kl_operand(f->c, in, 0)->shape, step_along(in->shape, dim, bits), bits);
  k->order[k->norders].at = fresh;
  k->order[k->norders++].dim = dim;
  return fresh;
}

static double product_of(const kl_shape *s, kl_ints dims) {
  double n = 1;
  for (uint32_t i = 0; i < dims.n; i++) n *= (double)s->dims[dims.p[i]];
  return n;
}

// Elements of operand o that an element of the instruction takes, on the average.
static double taken(const kl_fuser *f, const kl_instr *in, uint32_t o) {
  const kl_instr *x = kl_operand(f->c, in, o);
  double own = kl_shape_leaf_count(in->shape) ? (double)kl_shape_leaf(in->shape, 0)->count : 0;
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_REDUCE:
  case KL_KIND_PAD:
  case KL_KIND_CONCATENATE:
  case KL_KIND_SCATTER: return own > 0 ? kl_rough_elements(x) / own : 0;
  case KL_KIND_REDUCE_WINDOW: return (double)kl_window_taps(in);
  case KL_KIND_DYNAMIC_UPDATE_SLICE: return o == 1 && own > 0 ? kl_rough_elements(x) / own : 1;
  case KL_KIND_DOT: return o < 2 ? product_of(x->shape, o ? in->more->rhs_contracting : in->more->lhs_contracting) : 1;
  case KL_KIND_CONVOLUTION: {
    const kl_instr *kernel = kl_operand(f->c, in, 1);
    int64_t features = kernel->shape->dims[in->more->conv->kernel_output];
    return features ? kl_rough_elements(kernel) / (double)features : 0;
  }
  default: return 1;
  }
}

static bool is_light(const kl_fuser *f, uint32_t i) {
  return f->bytes_in[i] <= WEIGHTLESS && f->work[i] <= WEIGHTLESS;
}

// Is operand o of the tuple that a loop begins with made once for all rounds? What the loop does not change may be read
// at another place in each.
static bool is_made_first(const kl_fuser *f, const kl_maker *k, const kl_instr *tuple, uint32_t o) {
  const bool *changes = f->changes[k->rounds];
  return kl_operand(f->c, tuple, o)->op == KL_OP_CONSTANT || is_light(f, tuple->operands[o]) ||
         changes[tuple->shape->first_leaf[o]];
}

// What `x`, which wants an instruction, wants of its operand o.
static kl_use use_of_operand(kl_fuser *f, const kl_instr *in, uint32_t o, kl_use x) {
  const kl_instr *operand = kl_operand(f->c, in, o);
  kl_use u = {.node = kl_fuse_number(f, x.node), .made = x.made * taken(f, in, o), .copies = x.copies};
  kl_maker *k = &f->nodes.p[u.node];
  kl_hero hero = hero_of(in);
  bool same = kl_op_is_elementwise(in->op) || in->op == KL_OP_GET_TUPLE_ELEMENT;
  if (in->op == KL_OP_REDUCE_WINDOW) u.copies *= (double)kl_window_taps(in);
  u.outside = hero == KL_HERO_ALONE && operand->op != KL_OP_CONSTANT;
  if (in->op == KL_OP_TUPLE && k->hero == KL_HERO_ROUNDS) u.outside = !is_made_first(f, k, in, o);
  if (same && (operand->shape->dtype == KILN_TUPLE || kl_shape_same_dims(operand->shape, in->shape)))
    u.at = x.at;
  else if (hero == KL_HERO_ROUNDS)
    u.at = x.at;
  else if (in->op == KL_OP_TUPLE && x.at == KL_AT_FULL && kl_shape_same_dims(operand->shape, k->full))
    u.at = x.at;
  else if (in->op == KL_OP_BROADCAST)
    u.at = at_of_spread(f, k, in, x.at);
  else if (orders_anew(f, in))
    u.at = at_of_order(f, k, in, x.at);
  else if (hero == KL_HERO_REDUCTION && k->space && x.at == k->row_at && o < in->noperands / 2)
    u.at = k->space_at;
  else
    u.at = k->next_at++;
  // what is left of a row is made once for it, as is the row where it is folded
  if (in->op == KL_OP_BROADCAST && ((k->space && u.at == k->row_at) || f->folded[in->operands[o]]))
    u.made = kl_rough_elements(operand);
  if (hero == KL_HERO_REDUCTION && k->space && u.at == k->space_at) u.made = kl_rough_elements(operand);
  return u;
}

static void add_use(kl_fuser *f, kl_uses *to, kl_use u) {
  u.node = u.node == KL_NO_GROUP ? u.node : kl_fuse_number(f, u.node);
  for (uint32_t i = 0; i < to->n; i++) {
    kl_use *x = &to->p[i];
    if (x->node != u.node) continue;
    x->made = x->at != u.at ? x->made + u.made : x->made > u.made ? x->made : u.made;
    x->copies = x->at != u.at ? x->copies + u.copies : x->copies > u.copies ? x->copies : u.copies;
    if (x->at != u.at) x->at = KL_AT_OTHERS;
    x->outside |= u.outside;
    return;
  }
  if (to->n == to->cap) {
    uint32_t cap = to->cap ? 2 * to->cap : 2;
    kl_use *p = KL_NEW_N(f->arena, kl_use, cap);
    if (to->n) memcpy(p, to->p, to->n * sizeof *p);
    to->p = p;
    to->cap = cap;
  }
  to->p[to->n++] = u;
}

// Operand numbers of `user` that are i.
static void add_uses_of_operand(kl_fuser *f, uint32_t user, uint32_t i, kl_use x) {
  const kl_instr *in = &f->c->instr[user];
  for (uint32_t o = 0; o < in->noperands; o++)
    if (in->operands[o] == i) add_use(f, &f->uses[i], use_of_operand(f, in, o, x));
}

static void gather_from(kl_fuser *f, uint32_t user, uint32_t i) {
  const kl_instr *in = &f->c->instr[user];
  const kl_uses *from = &f->uses[user];
  if (stays(f, user)) return add_use(f, &f->uses[i], (kl_use){.node = f->node_of[user], .outside = true});
  if (f->home[user] != KL_NO_GROUP)
    return add_uses_of_operand(
        f, user, i,
        (kl_use){.node = f->home[user], .at = f->home_at[user], .made = kl_rough_elements(in), .copies = 1});
  for (uint32_t k = 0; k < from->n; k++) {
    kl_use x = from->p[k];
    bool stays = f->given[user] || x.outside;
    if (stays) add_use(f, &f->uses[i], (kl_use){.node = x.node, .outside = true});
    if (!f->given[user] && x.node != KL_NO_GROUP && !kl_fuse_at(f, x.node)->stays) add_uses_of_operand(f, user, i, x);
  }
}

// --- where a value is made
// --------------------------------------------------------------------------------------------

static bool is_outside(const kl_uses *u) {
  for (uint32_t i = 0; i < u->n; i++)
    if (u->p[i].outside || u->p[i].node == KL_NO_GROUP) return true;
  return false;
}

// The dims that it is made in.
static const kl_shape *leaf_of(const kl_instr *in) {
  const kl_shape *most = kl_shape_leaf_count(in->shape) ? kl_shape_leaf(in->shape, 0) : in->shape;
  for (uint32_t l = 1; in->op == KL_OP_WHILE && l < kl_shape_leaf_count(in->shape); l++)
    if (kl_shape_leaf(in->shape, l)->count > most->count) most = kl_shape_leaf(in->shape, l);
  return most;
}

static double count_of(const kl_instr *in) {
  return (double)leaf_of(in)->count;
}

// Is there a place for a reduction in a kernel that wants it at `at`?
static bool takes_reduction(const kl_fuser *f, const kl_maker *k, const kl_instr *in, uint32_t at) {
  if (k->hero == KL_HERO_REDUCTION) return at == k->row_at && kl_fuse_same_space(f, k->space, in);
  if (k->hero != KL_HERO_NONE) return false;
  if (at == KL_AT_FULL) return kl_shape_same_dims(leaf_of(in), k->full);
  for (uint32_t i = 0; i < k->nspread; i++)
    if (at == k->spread[i].at) return spreads_back(f, k->spread[i].instr, in);
  return false;
}

// Tiles of a contraction are rows of one operand by rows of the other: what neighbours in a result are made of is in
// one tile, or else a whole sector is written for each of them.
static bool takes_contraction(kl_fuser *f, const kl_maker *k, uint32_t i, uint32_t at) {
  const kl_instr *in = &f->c->instr[i];
  uint32_t dim;
  if (k->hero != KL_HERO_NONE || !is_each_once(k, at, &dim) || leaf_of(in)->count != k->full->count)
    return f->why[i] = KL_FOR_HERO, false;
  bool apart = at != KL_AT_FULL && in->op == KL_OP_DOT && dim < in->more->lhs_batch.n;
  if (apart) f->why[i] = KL_FOR_LINES;
  return !apart;
}

static bool takes_hero(kl_fuser *f, const kl_maker *k, uint32_t i, uint32_t at) {
  const kl_instr *in = &f->c->instr[i];
  f->why[i] = KL_FOR_HERO;
  switch (hero_of(in)) {
  case KL_HERO_NONE: return true;
  case KL_HERO_REDUCTION: return takes_reduction(f, k, in, at);
  case KL_HERO_CONTRACTION: return takes_contraction(f, k, i, at);
  case KL_HERO_ROUNDS: return k->hero == KL_HERO_NONE && at == KL_AT_FULL && kl_shape_same_dims(leaf_of(in), k->full);
  default: return false;
  }
}

static double time_again(const kl_fuser *f, uint32_t i, double made) {
  return made * f->work[i] / KL_ROUGH_ISSUED + f->bytes_in[i] / KL_ROUGH_MOVED;
}

static double time_written(const kl_fuser *f, uint32_t i, uint32_t readers, bool launch) {
  const kl_instr *in = &f->c->instr[i];
  return time_again(f, i, count_of(in)) + kl_rough_bytes(in) * (1 + readers) / KL_ROUGH_MOVED +
         (launch ? KL_ROUGH_LAUNCH : 0);
}

// Is there a place in the kernel that wants it, and is it made there in less time than it is written and read?
static bool takes(kl_fuser *f, uint32_t i, const kl_use *u) {
  const kl_instr *in = &f->c->instr[i];
  const kl_maker *k = kl_fuse_at(f, u->node);
  if (k->stays || u->outside) return false;
  if (!takes_hero(f, k, i, u->at)) return false;
  if (k->size >= MOST_IN_KERNEL) return f->why[i] = KL_FOR_SIZE, false;
  if (u->copies > MOST_COPIES && kl_rough_work(in) > 0) return f->why[i] = KL_FOR_TIME, false;
  if (hero_of(in) != KL_HERO_NONE) return true;
  bool fine = u->made <= count_of(in) || time_again(f, i, u->made) <= time_written(f, i, 1, true) * (1 + GAIN);
  if (!fine) f->why[i] = KL_FOR_TIME;
  return fine;
}

static bool is_weightless(const kl_fuser *f, uint32_t i) {
  return hero_of(&f->c->instr[i]) == KL_HERO_NONE && is_light(f, i);
}

static bool made_by_all(kl_fuser *f, uint32_t i, bool beside) {
  const kl_uses *u = &f->uses[i];
  double again = 0;
  if (hero_of(&f->c->instr[i]) != KL_HERO_NONE) return f->why[i] = KL_FOR_HERO, false;
  for (uint32_t k = 0; k < u->n; k++) again += time_again(f, i, u->p[k].made);
  f->why[i] = KL_FOR_TIME;
  if (u->n > MOST_AGAIN || again > time_written(f, i, u->n - beside, !beside)) return false;
  for (uint32_t k = 0; k < u->n; k++)
    if (!takes(f, i, &u->p[k])) return false;
  return true;
}

static void enter(kl_fuser *f, kl_maker *k, uint32_t i, uint32_t at) {
  const kl_instr *in = &f->c->instr[i];
  k->size++;
  kl_hero hero = hero_of(in);
  if (hero == KL_HERO_NONE || k->hero != KL_HERO_NONE) return;
  k->hero = hero;
  k->rounds = i;
  if (hero != KL_HERO_REDUCTION) return;
  k->space = in;
  k->row_at = at;
  k->space_at = at == KL_AT_FULL ? k->next_at++ : KL_AT_FULL;
}

static void make_inside(kl_fuser *f, uint32_t i) {
  const kl_uses *u = &f->uses[i];
  f->why[i] = KL_MADE_INSIDE;
  for (uint32_t k = 0; k < u->n; k++) enter(f, kl_fuse_at(f, u->p[k].node), i, u->p[k].at);
}

// Nothing else that wants it comes before what would make it.
static bool may_make(kl_fuser *f, uint32_t i, uint32_t node) {
  const kl_uses *u = &f->uses[i];
  for (uint32_t k = 0; k < u->n; k++) {
    if (u->p[k].node == KL_NO_GROUP || kl_fuse_number(f, u->p[k].node) == node) continue;
    if (kl_fuse_needs(f, node, u->p[k].node)) return f->why[i] = KL_FOR_ORDER, false;
  }
  return true;
}

// A kernel that wants it at the index of its own results, and may hand it to the others; KL_NO_GROUP: none.
static uint32_t find_home(kl_fuser *f, uint32_t i, uint32_t *at) {
  const kl_uses *u = &f->uses[i];
  const kl_instr *in = &f->c->instr[i];
  for (uint32_t k = 0; k < u->n && k < MOST_AGAIN; k++) {
    if (u->p[k].node == KL_NO_GROUP || u->p[k].outside) continue;
    uint32_t node = kl_fuse_number(f, u->p[k].node);
    const kl_maker *x = &f->nodes.p[node];
    bool lies = u->p[k].at == KL_AT_FULL && kl_shape_same_dims(leaf_of(in), x->full);
    bool row = x->space && u->p[k].at == x->row_at && kl_shape_same_dims(leaf_of(in), leaf_of(x->space));
    if (x->stays || x->hero == KL_HERO_ALONE || x->hero == KL_HERO_CHANGE || x->results >= MOST_RESULTS) continue;
    bool fits = lies || row || hero_of(in) == KL_HERO_REDUCTION; // products go where the results go
    if (!fits || !takes(f, i, &u->p[k]) || !may_make(f, i, node)) continue;
    *at = u->p[k].at;
    return node;
  }
  return KL_NO_GROUP;
}

static void note_needs(kl_fuser *f, uint32_t i, uint32_t node) {
  const kl_uses *u = &f->uses[i];
  for (uint32_t k = 0; k < u->n; k++)
    if (u->p[k].node != KL_NO_GROUP) kl_fuse_need(f, u->p[k].node, node);
}

static bool is_element(const kl_fuser *f, uint32_t i) {
  return f->c->instr[i].op == KL_OP_GET_TUPLE_ELEMENT;
}

// Of a tuple those arrays are written that are wanted elsewhere, however deep they are in it.
static void write_elements(kl_fuser *f, uint32_t i, uint32_t node, uint32_t at) {
  for (uint32_t k = f->first_user[i]; k < f->first_user[i + 1]; k++) {
    uint32_t e = f->users[k];
    bool elsewhere = f->uses[e].n > 1 || is_outside(&f->uses[e]);
    for (uint32_t x = 0; x < f->uses[e].n && !elsewhere; x++)
      elsewhere = kl_fuse_number(f, f->uses[e].p[x].node) != node;
    if (!is_element(f, e) || !elsewhere || !f->uses[e].n) continue;
    if (f->c->instr[e].shape->dtype == KILN_TUPLE) {
      write_elements(f, e, node, at);
      continue;
    }
    f->home[e] = node;
    f->home_at[e] = at;
    f->why[e] = f->why[i];
    kl_fuse_at(f, node)->results++;
  }
}

static void write(kl_fuser *f, uint32_t i, uint32_t home, uint32_t at) {
  const kl_instr *in = &f->c->instr[i];
  bool fresh = home == KL_NO_GROUP;
  if (fresh) {
    home = kl_fuse_node(f, i, false);
    f->nodes.p[home].full = leaf_of(in);
    at = KL_AT_FULL;
  }
  enter(f, &f->nodes.p[home], i, at);
  note_needs(f, i, home);
  f->home[i] = home;
  f->home_at[i] = at;
  if (in->shape->dtype == KILN_TUPLE)
    write_elements(f, i, home, at);
  else
    f->nodes.p[home].results++;
}

bool kl_fuse_lies_otherwise(const kiln_module *m, const kl_comp *c, uint32_t i) {
  uint32_t leaf = 0, base = 0;
  const kl_instr *in = &c->instr[i];
  while (in->op == KL_OP_GET_TUPLE_ELEMENT || in->op == KL_OP_BITCAST) {
    const kl_instr *of = kl_operand(c, in, 0);
    if (in->op == KL_OP_GET_TUPLE_ELEMENT) leaf += of->shape->first_leaf[in->number];
    in = of;
  }
  if (in->op != KL_OP_PARAMETER) return false;
  if (c != &m->comp[m->entry]) return true; // a loop's state lies as its caller has it
  for (uint32_t p = 0; p < (uint32_t)in->number; p++)
    base += (uint32_t)kl_shape_leaf_count(c->instr[c->params[p]].shape);
  return !kl_shape_same_in_memory(m->interface.shapes[base + leaf], kl_shape_leaf(in->shape, leaf));
}

static void decide(kl_fuser *f, uint32_t i) {
  const kl_instr *in = &f->c->instr[i];
  const kl_uses *u = &f->uses[i];
  bool outside = is_outside(u);
  if (f->given[i]) {
    if (f->node_of[i] != KL_NO_GROUP) note_needs(f, i, f->node_of[i]);
    return;
  }
  if (!u->n || in->op == KL_OP_CONSTANT || in->op == KL_OP_TUPLE || in->op == KL_OP_AFTER_ALL) return;
  if (is_element(f, i)) return; // as what it is taken of
  f->why[i] = KL_FOR_OUTSIDE;
  if (!outside && is_weightless(f, i)) return make_inside(f, i);
  if (!outside && u->n == 1 && takes(f, i, u->p)) return make_inside(f, i);
  if (outside && in->op == KL_OP_BITCAST && !kl_fuse_lies_otherwise(f->m, f->c, i)) {
    f->given[i] = true;
    return;
  }
  uint32_t at = KL_AT_FULL, home = outside || u->n > 1 ? find_home(f, i, &at) : KL_NO_GROUP;
  if (!outside && u->n > 1 && made_by_all(f, i, home != KL_NO_GROUP)) return make_inside(f, i);
  if (outside) f->why[i] = KL_FOR_OUTSIDE;
  write(f, i, home, at);
}

// --- all of them
// ------------------------------------------------------------------------------------------------------

static void find_users(kl_fuser *f, const bool *live) {
  const kl_comp *c = f->c;
  uint32_t n = 0, *at = KL_NEW_N(f->arena, uint32_t, c->ninstr + 2);
  f->first_user = KL_NEW_N(f->arena, uint32_t, c->ninstr + 2);
  for (int round = 0; round < 2; round++) {
    for (uint32_t i = 0; i < c->ninstr; i++)
      for (uint32_t o = 0; live[i] && o < c->instr[i].noperands; o++) {
        uint32_t x = c->instr[i].operands[o];
        bool again = false; // an operand twice is one user
        for (uint32_t p = 0; p < o && !again; p++) again = c->instr[i].operands[p] == x && c->instr[i].noperands < 64;
        if (again) continue;
        if (round)
          f->users[at[x]++] = i;
        else
          at[x]++;
      }
    if (round) break;
    for (uint32_t i = 0; i < c->ninstr; i++) {
      f->first_user[i] = n;
      n += at[i];
      at[i] = f->first_user[i];
    }
    f->first_user[c->ninstr] = n;
    f->users = KL_NEW_N(f->arena, uint32_t, n + 1);
  }
}

static bool *find_live(const kl_comp *c, kl_arena *arena) {
  bool *live = KL_NEW_N(arena, bool, c->ninstr + 1);
  live[c->root] = true;
  for (uint32_t i = c->ninstr; i-- > 0;)
    for (uint32_t o = 0; live[i] && o < c->instr[i].noperands; o++) live[c->instr[i].operands[o]] = true;
  return live;
}

static double at_most(double a, double b) {
  return a < b ? a : b;
}

static bool is_folded(const kl_fuser *f, const kl_instr *in) {
  bool any = false, along = kl_op_is_elementwise(in->op) || in->op == KL_OP_GET_TUPLE_ELEMENT;
  for (uint32_t o = 0; o < in->noperands && along; o++) any |= f->folded[in->operands[o]];
  return any;
}

static void find_changes(kl_fuser *f, uint32_t i) {
  const kl_instr *in = &f->c->instr[i];
  if (!kl_loop_is_private(f->cx, f->m, in)) return;
  f->changes[i] = kl_loop_find_lanes(f->m, in, f->arena)->changes;
}

// What is given, and what the chains are that make what is not.
static void look_forward(kl_fuser *f, const bool *live) {
  for (uint32_t i = 0; i < f->c->ninstr; i++) {
    const kl_instr *in = &f->c->instr[i];
    bool element = in->op == KL_OP_GET_TUPLE_ELEMENT && f->given[in->operands[0]];
    f->home[i] = f->node_of[i] = KL_NO_GROUP;
    if (in->op == KL_OP_WHILE) find_changes(f, i);
    f->given[i] = in->op == KL_OP_PARAMETER || stays(f, i) || element;
    if (stays(f, i) && live[i]) f->node_of[i] = kl_fuse_node(f, i, true);
    if (element) f->node_of[i] = f->node_of[in->operands[0]];
    f->bytes_in[i] = kl_rough_bytes(in);
    f->folded[i] = hero_of(in) == KL_HERO_REDUCTION;
    if (f->given[i] || in->op == KL_OP_CONSTANT || hero_of(in) != KL_HERO_NONE) continue;
    f->bytes_in[i] = 0;
    f->folded[i] = is_folded(f, in);
    f->work[i] = kl_rough_work(in);
    for (uint32_t o = 0; o < in->noperands; o++) {
      f->work[i] = at_most(f->work[i] + f->work[in->operands[o]], MOST_WORK);
      f->bytes_in[i] = at_most(f->bytes_in[i] + f->bytes_in[in->operands[o]], 1e15);
    }
    // a part of an array is not all of it
    if (in->op == KL_OP_SLICE || in->op == KL_OP_DYNAMIC_SLICE || in->op == KL_OP_GATHER)
      f->bytes_in[i] = at_most(f->bytes_in[i], 2 * kl_rough_bytes(in));
  }
}

// Groups by the order of their first results.
static void number_groups(kl_fuser *f, kl_fused *out) {
  uint32_t *number = KL_NEW_N(f->arena, uint32_t, f->nodes.n + 1),
           *home = KL_NEW_N(f->arena, uint32_t, f->c->ninstr + 1);
  for (size_t i = 0; i < f->nodes.n; i++) number[i] = KL_NO_GROUP;
  for (uint32_t i = 0; i < f->c->ninstr; i++) {
    home[i] = KL_NO_GROUP;
    if (f->home[i] == KL_NO_GROUP || f->c->instr[i].shape->dtype == KILN_TUPLE) continue;
    uint32_t *n = &number[kl_fuse_number(f, f->home[i])];
    if (*n == KL_NO_GROUP) *n = out->ngroups++;
    home[i] = *n;
  }
  out->home = home;
  out->given = f->given;
}

void kl_fuse_plan(kl_ctx *cx, const kiln_module *m, uint32_t comp, const bool *has, kl_arena *arena, kl_fused *out,
                  kl_sb *why) {
  const kl_comp *c = &m->comp[comp];
  kl_fuser f = {.cx = cx, .arena = arena, .m = m, .c = c, .has = has};
  uint32_t n = c->ninstr + 1;
  f.home = KL_NEW_N(arena, uint32_t, n);
  f.home_at = KL_NEW_N(arena, uint32_t, n);
  f.node_of = KL_NEW_N(arena, uint32_t, n);
  f.given = KL_NEW_N(arena, bool, n);
  f.folded = KL_NEW_N(arena, bool, n);
  f.changes = KL_NEW_N(arena, const bool *, n);
  f.why = KL_NEW_N(arena, uint8_t, n);
  f.uses = KL_NEW_N(arena, kl_uses, n);
  f.work = KL_NEW_N(arena, double, n);
  f.bytes_in = KL_NEW_N(arena, double, n);
  bool *live = find_live(c, arena);
  look_forward(&f, live);
  find_users(&f, live);
  for (uint32_t i = c->ninstr; i-- > 0;) {
    if (!live[i]) continue;
    if (i == c->root) add_use(&f, &f.uses[i], (kl_use){.node = KL_NO_GROUP, .outside = true});
    for (uint32_t k = f.first_user[i]; k < f.first_user[i + 1]; k++) gather_from(&f, f.users[k], i);
    decide(&f, i);
  }
  kl_fuse_siblings(&f);
  *out = (kl_fused){.comp = comp};
  number_groups(&f, out);
  if (why) kl_fuse_tell(&f, out, why);
  for (size_t i = 0; i < f.nodes.n; i++) VEC_FREE(cx, &f.nodes.p[i].needs);
  VEC_FREE(cx, &f.nodes);
  VEC_FREE(cx, &f.stack);
}
