// The loop chooser: the flattened domain of results, some elements to each thread.
//
// A thread has as many elements as make the narrowest array's access wide. Where all arrays are as wide they are
// consecutive. Where some are wider they are not: of a block's elements each thread has a chunk that makes the widest
// array's access, chunks of all threads are side by side, and a thread has several of them. So what a warp asks for at
// once lies together. Narrower arrays are read and written by an exchange between lanes: with bit i of the chunk's
// number and bit i of the lane's in each other's place, a thread's chunks are side by side.
//
// Where something is the same for elements that lie apart (share.c), a thread has several of these, `rows`, some of
// them at once in registers, the rest one round of a loop behind the other.

#include "lower/choose/chooser.h"

// Variables of a body of consecutive elements: threads, and the elements of each.
enum { THREAD, LANE, LOOP_VARS };

// Those of a body of chunks: blocks, warps, lanes; then, if there are several, blocks of a group, rounds and rows; the
// thread's elements, and bits of the lane's number that are variables of their own, the highest first.
enum { BLOCK, WARP, LANES, MOST_PIECES = 2, MOST_LANE_BITS = 5, MOST_CHUNK_VARS = LANES + 8 + MOST_LANE_BITS };

typedef struct kl_domains {
  uint32_t n;
  kl_domain *p;
  const kl_update *const *updates; // by result
} kl_domains;

// --- the domain ---------------------------------------------------------------------------------------------------

static const kl_shape *update_of(const kl_comp *c, const kl_update *u) {
  return kl_operand(c, u->instr, 1)->shape;
}

// Elements that are made of a result.
static int64_t count_of(const kl_choosing *c, const kl_domains *d, uint32_t r) {
  uint32_t first = c->slots.nargs - (uint32_t)kl_shape_leaf_count(kl_root(c->plan->comp)->shape);
  return d->updates[r] ? update_of(c->plan->comp, d->updates[r])->count : c->slots.v.p[first + r].shape->count;
}

// Results of one size are one domain: a thread makes their elements at the same place in memory, or of updates those at
// the same place in them. Each domain has parts of its own; what several domains want is made for each of them. Those
// without elements want nothing. made: by result, those that are not to be made.
static kiln_status find_domains(kl_choosing *c, const bool *made, kl_domains *out) {
  const kl_comp *comp = c->plan->comp;
  uint32_t nroots = (uint32_t)kl_shape_leaf_count(kl_root(comp)->shape);
  uint32_t *leaves = KL_NEW_N(c->arena, uint32_t, nroots + 1);
  bool *taken = kl_arena_dup(c->arena, made, (nroots + 1) * sizeof *taken);
  out->p = KL_NEW_N(c->arena, kl_domain, nroots + 1);
  for (uint32_t r = 0; r < nroots; r++) {
    int64_t count = count_of(c, out, r);
    if (taken[r] || count == 0) continue;
    kl_domain *d = &out->p[out->n++];
    *d = (kl_domain){.count = count, .leaves = leaves, .updates = out->updates};
    for (uint32_t k = r; k < nroots; k++)
      if (!taken[k] && count_of(c, out, k) == count) leaves[d->n++] = k, taken[k] = true;
    leaves += d->n;
    if (__builtin_add_overflow(c->plan->count, count, &c->plan->count))
      return kl_unsupported(c->cx, kl_root(comp)->span, "the results have more than 2^63-1 elements");
  }
  return KILN_OK;
}

// The instruction that result leaf r of the computation is part of, behind the root's tuples.
static uint32_t maker_of(const kl_comp *c, uint32_t r) {
  uint32_t i = c->root;
  while (c->instr[i].op == KL_OP_TUPLE) {
    uint32_t e = kl_shape_element_of_leaf(c->instr[i].shape, r);
    r -= c->instr[i].shape->first_leaf[e];
    i = c->instr[i].operands[e];
  }
  return i;
}

// Which arguments' accesses a domain has: its results', and those of parameters that they depend on.
static bool *find_slots(const kl_choosing *c, const kl_domain *d) {
  const kl_comp *comp = c->plan->comp;
  uint32_t first = c->slots.nargs - (uint32_t)kl_shape_leaf_count(kl_root(comp)->shape);
  bool *has = KL_NEW_N(c->arena, bool, c->slots.nargs + 1u), *wanted = KL_NEW_N(c->arena, bool, comp->ninstr);
  for (uint32_t i = 0; i < d->n; i++) {
    const kl_update *u = d->updates[d->leaves[i]];
    has[first + d->leaves[i]] = true;
    wanted[u ? u->instr->operands[1] : maker_of(comp, d->leaves[i])] = true;
  }
  for (uint32_t i = comp->ninstr; i-- > 0;) {
    const kl_instr *in = &comp->instr[i];
    for (uint32_t k = 0; wanted[i] && k < in->noperands; k++) wanted[in->operands[k]] = true;
    for (uint32_t l = 0; wanted[i] && in->op == KL_OP_PARAMETER && l < kl_shape_leaf_count(in->shape); l++)
      has[c->slots.param_base[in->number] + l] = true;
  }
  return has;
}

// Elements of a thread, and how many of them lie together.
typedef struct share {
  uint32_t elements, chunk;
  bool halves; // something small takes two accesses for them, each of half a sector
} share;

static bool has_updates(const kl_domain *d) {
  for (uint32_t i = 0; i < d->n; i++)
    if (d->updates[d->leaves[i]]) return true;
  return false;
}

// Do windows go along rows that begin anywhere in vectors? Each tap of a thread's neighbours then lies across other
// ones.
static bool has_taps_across_vectors(const kl_choosing *c) {
  const kl_comp *comp = c->plan->comp;
  for (uint32_t i = 0; i < comp->ninstr; i++) {
    const kl_instr *in = &comp->instr[i];
    if (in->op != KL_OP_REDUCE_WINDOW || kl_operand(comp, in, 0)->shape->rank < 2) continue;
    const kl_shape *from = kl_operand(comp, in, 0)->shape, *to = kl_shape_leaf(in->shape, 0);
    uint32_t row = (uint32_t)kl_shape_minor_to_major(from, 0);
    const kl_window_dim *w = &in->more->window[row];
    int64_t n = c->plan->target.max_bytes * 8 / kl_info(from->dtype)->bits;
    if (w->stride == 1 && w->size > 1 && n && from->dims[row] % n != to->dims[row] % n) return true;
  }
  return false;
}

// Elements of a thread lie together in every update's result, as far as they do in one. What lies across vectors is put
// together by selects, tap by tap: then a thread has one element, and lanes lie side by side.
static uint32_t most_lanes(const kl_choosing *c, const kl_domain *d) {
  uint32_t most = UINT32_MAX;
  if (c->plan->target.machine == KL_NVPTX && has_taps_across_vectors(c)) return 1;
  for (uint32_t i = 0; i < d->n && c->plan->target.machine != KL_HOST; i++) {
    const kl_update *u = d->updates[d->leaves[i]];
    uint32_t n = u ? kl_update_neighbours(c, u) : UINT32_MAX;
    if (n < most) most = n;
  }
  return most;
}

// As many elements as make the narrowest large array's access `max_bytes` wide, within 128 bytes of the widest so that
// one value of each fits the registers, or 64 where no access has two of them; small arrays (biases, scalars) have no
// say. Long bodies get fewer. A chunk is what makes the widest array's access so wide: of more, accesses would have but
// parts of sectors, of which L1 keeps the rest for the next one where they are read. So it is no less than a word of
// the narrowest, which is what lanes exchange, unless a result is the widest and a chunk of the narrowest has whole
// bytes.
static share choose_share(const kl_plan *p, const kl_slots *s, const bool *has, int64_t count, uint32_t lowest,
                          uint32_t ninstr, uint32_t highest) {
  uint32_t narrow = 128, wide = 1, stored = 1;
  bool host = p->target.machine == KL_HOST;
  for (uint32_t i = 0; i < s->nargs; i++) {
    const kl_slot_info *info = &s->v.p[i];
    uint32_t bits = kl_info(info->shape->dtype)->bits;
    if (!has[i] || (info->kind == KL_SLOT_IN && info->shape->count < count / 4)) continue;
    if (bits < narrow) narrow = bits;
    if (bits > wide) wide = bits;
    if (bits > stored && info->kind == KL_SLOT_OUT) stored = bits;
  }
  uint32_t lanes = host ? p->target.host_lanes : p->target.max_bytes * 8 / narrow;
  while (lanes > 1 && lanes * wide > (host || wide < 128 ? 128 : 64) * 8) lanes /= 2;
  while (lanes > 2 && (uint64_t)lanes * ninstr > 8192) lanes /= 2;
  while (lanes > highest) lanes /= 2;
  // A small array keeps every multiprocessor busy before it makes accesses wide.
  int64_t most = p->target.multiprocessors * (int64_t)kl_last_launch(p)->block;
  while (lanes > 1 && !p->flat && most && count / lanes < most) lanes /= 2;
  if (lanes < lowest) lanes = lowest;
  uint32_t chunk = p->target.max_bytes * 8 / wide;
  bool in_bytes = stored == wide && chunk && chunk * narrow >= 8;
  if (!in_bytes && chunk < 32 / narrow) chunk = 32 / narrow;
  bool together = p->together || host || p->flat || kl_last_launch(p)->block % 32 || chunk > lanes;
  return (share){lanes, together ? lanes : chunk ? chunk : 1};
}

static uint32_t lowest_lanes(const kl_slots *s, const bool *has) {
  uint32_t lanes = 1;
  for (uint32_t i = 0; i < s->nargs; i++) {
    uint32_t bits = kl_info(s->v.p[i].shape->dtype)->bits;
    if (has[i] && s->v.p[i].kind == KL_SLOT_OUT && bits < 8 && 8 / bits > lanes) lanes = 8 / bits;
  }
  return lanes;
}

// On a GPU `main` takes whole blocks only, so that its threads need no bounds check. Of a counted domain nothing is
// known but its largest size: both bodies are planned for all of it.
static void shape_body(const kl_plan *p, kl_body *b, uint32_t lanes, int64_t threads, int64_t first) {
  bool host = p->target.machine == KL_HOST;
  kl_var *vars = KL_NEW_N(p->arena, kl_var, LOOP_VARS);
  vars[THREAD] = (kl_var){KL_BIND_THREAD, threads, "t"};
  vars[LANE] = (kl_var){host ? KL_BIND_LANE : KL_BIND_REG, lanes, "lane"};
  *b = (kl_body){.nvars = LOOP_VARS, .vars = vars, .threads = threads, .lanes = lanes, .first = first};
  b->width = host ? lanes : 1;
}

// The variable of a thread's elements.
static uint32_t element_var(const kl_body *b) {
  uint32_t v = b->nvars - 1;
  while (b->vars[v].binding != KL_BIND_REG) v--;
  return v;
}

// Bits of the lane's number that have variables, and that of bit i.
static uint32_t lane_bits(const kl_body *b) {
  return b->threads ? 0 : b->nvars - 1 - element_var(b);
}

static uint32_t lane_bit(const kl_body *b, uint32_t i) {
  return b->nvars - 1 - i;
}

static uint32_t find_var(const kl_body *b, const char *name) {
  uint32_t v = 0;
  while (v < b->nvars && strcmp(b->vars[v].name, name) != 0) v++;
  return v < b->nvars ? v : KL_NONE;
}

static const char column_name[] = "column", round_name[] = "round", row_name[] = "row";
static const char warp_name[] = "warp_b", lane_name[] = "lane_b", neighbour_name[] = "neighbour";

// Threads of a block that have a run of pieces are digits of its own, where it ends in a block.
static void split_threads(const kl_plan *p, kl_var *vars, uint32_t *n, const kl_domain *d, uint32_t lanes) {
  int64_t threads = d->piece / lanes;
  if (threads >= kl_last_launch(p)->block) return;
  uint32_t of = threads < 32 ? LANES : WARP;
  int64_t fast = threads < 32 ? threads : threads / 32;
  vars[of].extent /= fast;
  vars[(*n)++] = (kl_var){vars[of].binding, fast, threads < 32 ? lane_name : warp_name};
}

// What neighbours exchange of a small array that is read once for many rounds: the fastest digit of the lane's number
// is a variable.
static void split_neighbours(kl_var *vars, uint32_t *n) {
  kl_var *fastest = &vars[LANES];
  for (uint32_t v = LANES + 1; v < *n; v++)
    if (vars[v].binding == KL_BIND_LANE) fastest = &vars[v];
  if (fastest->extent % 2) return;
  fastest->extent /= 2;
  vars[(*n)++] = (kl_var){KL_BIND_LANE, 2, neighbour_name};
}

// Of elements that lie apart: blocks side by side between one and the next, the last of which may be outside in part;
// 0: there are several in a block.
static int64_t columns_of(const kl_plan *p, const kl_domain *d, uint32_t lanes) {
  int64_t of_block = (int64_t)kl_last_launch(p)->block * lanes * d->pieces;
  return of_block % d->apart == 0 && of_block != d->apart ? 0 : d->apart / of_block + (d->apart % of_block != 0);
}

static int64_t blocks_of_groups(const kl_plan *p, const kl_domain *d, uint32_t lanes) {
  int64_t columns = columns_of(p, d, lanes);
  return columns ? d->groups * columns : d->groups * d->apart / ((int64_t)kl_last_launch(p)->block * lanes * d->pieces);
}

// Whole blocks of threads that have chunks.
static void shape_chunks(const kl_plan *p, kl_body *b, share x, const kl_domain *d, int64_t blocks) {
  static const char *const bits[MOST_LANE_BITS] = {"bit0", "bit1", "bit2", "bit3", "bit4"};
  uint32_t nbits = (uint32_t)__builtin_ctz(x.elements / x.chunk), n = LANES + 1;
  int64_t columns = d->groups ? columns_of(p, d, x.elements) : 0;
  kl_var *vars = KL_NEW_N(p->arena, kl_var, MOST_CHUNK_VARS);
  vars[BLOCK] = (kl_var){KL_BIND_BLOCK, columns > 1 ? blocks / columns : blocks, "block"};
  vars[WARP] = (kl_var){KL_BIND_WARP, kl_last_launch(p)->block / 32, "warp"};
  vars[LANES] = (kl_var){KL_BIND_LANE, 32 >> nbits, "lane"};
  if (d->pieces > 1) split_threads(p, vars, &n, d, x.elements);
  if (x.halves && nbits == 0 && d->groups && d->times > d->at_once) split_neighbours(vars, &n);
  if (columns > 1) vars[n++] = (kl_var){KL_BIND_BLOCK, columns, column_name};
  if (d->groups && d->times > d->at_once) vars[n++] = (kl_var){KL_BIND_STEP, d->times / d->at_once, round_name};
  if (d->groups && d->at_once > 1) vars[n++] = (kl_var){KL_BIND_REG, d->at_once, row_name};
  vars[n++] = (kl_var){KL_BIND_REG, x.elements, "v"};
  for (uint32_t i = nbits; i-- > 0;) vars[n++] = (kl_var){KL_BIND_LANE, 2, bits[i]};
  *b = (kl_body){.nvars = n, .vars = vars, .blocks = blocks, .lanes = x.elements, .width = 1};
}

static void shape_part(const kl_plan *p, share x, uint32_t tail_lanes, const kl_domain *d, kl_part *part) {
  uint32_t block = kl_last_launch(p)->block, lanes = x.elements;
  bool shares = d->groups > 0;
  int64_t threads = shares ? blocks_of_groups(p, d, lanes) * block : part->count / lanes;
  if (p->target.machine == KL_NVPTX && !p->flat) threads -= threads % block;
  if (x.chunk < lanes || shares)
    shape_chunks(p, &part->main, x, d, threads / block);
  else
    shape_body(p, &part->main, lanes, threads, 0);
  int64_t first = p->flat ? 0 : shares ? d->groups * d->apart * d->times : threads * lanes;
  int64_t rest = part->count - first;
  shape_body(p, &part->tail, tail_lanes, rest / tail_lanes + (rest % tail_lanes != 0), first);
  part->main_blocks = threads / block;
  // A counted tail begins, at most, behind the whole blocks.
  int64_t behind = part->tail.threads - (p->flat ? part->main_blocks * block * (lanes / tail_lanes) : 0);
  part->blocks = part->main_blocks + behind / block + (behind % block != 0);
}

static bool has_halves(const kl_slots *s, const bool *has, uint32_t elements) {
  bool found = false;
  for (uint32_t i = 0; i < s->nargs; i++)
    found |= has[i] && s->v.p[i].kind == KL_SLOT_IN && kl_info(s->v.p[i].shape->dtype)->bits * elements == 256;
  return found;
}

static kiln_status shape_domain(kl_choosing *c, kl_domain *d, kl_part *parts) {
  kl_plan *p = c->plan;
  kl_plan_launch *l = kl_last_launch(p);
  const bool *has = find_slots(c, d);
  uint32_t tail_lanes = lowest_lanes(&c->slots, has);
  share x = choose_share(p, &c->slots, has, d->count, tail_lanes, p->comp->ninstr / d->nparts, most_lanes(c, d));
  x.halves = has_halves(&c->slots, has, x.elements);
  if (!has_updates(d)) KL_TRY(kl_find_sharing(c, d, has, x.elements, x.chunk < x.elements));
  for (uint32_t i = 0; i < d->nparts; i++) {
    shape_part(p, x, tail_lanes, d, &parts[i]);
    parts[i].first_block = l->grid;
    l->grid += parts[i].blocks;
  }
  if (p->target.machine == KL_NVPTX && l->grid > INT32_MAX)
    return kl_unsupported(c->cx, kl_root(p->comp)->span, "%lld elements need %lld blocks: a grid has at most 2^31-1",
                          (long long)p->count, (long long)l->grid);
  return KILN_OK;
}

// --- bodies ---------------------------------------------------------------------------------------------------------

// The index of the part's element `at`, in physical order; returns where it lies in the results.
static const kl_aff *index_in_part(kl_affs *p, const kl_part *part, const kl_shape *s, const kl_aff *at,
                                   const kl_aff **index) {
  if (part->dim == KL_NONE) {
    kl_index_at(p, s, at, index);
    return at;
  }
  kl_shape box = *s;
  int64_t dims[KILN_MAX_RANK];
  memcpy(dims, s->dims, s->rank * sizeof *dims);
  dims[part->dim] = part->size;
  box.dims = dims;
  kl_index_at(p, &box, at, index);
  index[part->dim] = kl_aff_addc(p, index[part->dim], part->lo);
  return kl_position_of(p, s, index);
}

static int64_t warps_of(const kl_body *b) {
  return kl_extent(b, kl_bound(b, KL_BIND_WARP));
}

// A number whose faster digit may be a variable of its own.
static const kl_aff *number_of(kl_affs *p, const kl_body *b, uint32_t var, uint32_t faster) {
  if (faster == KL_NONE) return kl_aff_dim(p, var);
  return kl_aff_addmul(p, kl_aff_dim(p, faster), kl_aff_dim(p, var), b->vars[faster].extent);
}

static const kl_aff *lane_of(kl_affs *p, const kl_body *b) {
  const kl_aff *lane = number_of(p, b, LANES, find_var(b, lane_name));
  uint32_t neighbour = find_var(b, neighbour_name);
  return neighbour == KL_NONE ? lane : kl_aff_addmul(p, kl_aff_dim(p, neighbour), lane, 2);
}

// The element that a thread of a block has of those of the block.
static const kl_aff *element_in_block(kl_affs *p, const kl_body *b) {
  uint32_t nbits = lane_bits(b);
  int64_t threads = 32 * warps_of(b), chunk = b->lanes >> nbits;
  const kl_aff *v = kl_aff_dim(p, element_var(b)),
               *at = kl_aff_addmul(p, v, kl_aff_floordivc(p, v, chunk), (threads - 1) * chunk);
  at = kl_aff_addmul(p, at, number_of(p, b, WARP, find_var(b, warp_name)), 32 * chunk);
  at = kl_aff_addmul(p, at, lane_of(p, b), b->lanes);
  for (uint32_t i = 0; i < nbits; i++) at = kl_aff_addmul(p, at, kl_aff_dim(p, lane_bit(b, i)), chunk << i);
  return at;
}

// Of elements that lie apart: the one of the thread's group that round and row say, the first of its pieces.
static const kl_aff *element_of_group(kl_writer *w, const kl_domain *d, uint32_t *keep) {
  kl_affs *p = w->plan->affs;
  const kl_body *b = w->body;
  uint32_t column = find_var(b, column_name), round = find_var(b, round_name), row = find_var(b, row_name);
  int64_t of_block = 32 * warps_of(b) * b->lanes, first_pieces = d->apart / d->pieces;
  const kl_aff *at = element_in_block(p, b), *group = kl_aff_dim(p, BLOCK);
  bool never;
  *keep = KL_NONE;
  if (columns_of(w->plan, d, b->lanes) == 0) {
    group = kl_aff_addmul(p, kl_aff_floordivc(p, at, first_pieces), group, of_block / first_pieces);
    at = kl_aff_modc(p, at, first_pieces);
  } else {
    if (column != KL_NONE) at = kl_aff_addmul(p, at, kl_aff_dim(p, column), of_block);
    *keep = kl_guard_and(&w->guards, KL_NONE, at, 0, first_pieces - 1, &never);
  }
  if (d->pieces > 1) at = kl_aff_addmul(p, at, kl_aff_floordivc(p, at, d->piece), d->piece * (d->pieces - 1));
  at = kl_aff_addmul(p, at, group, d->apart * d->times);
  if (round != KL_NONE) at = kl_aff_addmul(p, at, kl_aff_dim(p, round), d->apart * d->at_once);
  if (row != KL_NONE) at = kl_aff_addmul(p, at, kl_aff_dim(p, row), d->apart);
  return kl_dom_simplify(b->domain, at);
}

// The element of the part that a thread has; *keep: the guard that it is there.
static const kl_aff *element_of(kl_writer *w, const kl_domain *d, const kl_part *part, uint32_t *keep) {
  kl_affs *p = w->plan->affs;
  const kl_body *b = w->body;
  bool never;
  if (!b->threads && d->groups) return element_of_group(w, d, keep);
  const kl_aff *at;
  if (b->threads)
    at = kl_aff_addc(p, kl_aff_addmul(p, kl_aff_dim(p, LANE), kl_aff_dim(p, THREAD), b->lanes), b->first);
  else
    at = kl_aff_addmul(p, element_in_block(p, b), kl_aff_dim(p, BLOCK), 32 * warps_of(b) * b->lanes);
  at = kl_dom_simplify(b->domain, at);
  *keep = kl_guard_and(&w->guards, KL_NONE, at, 0, part->count - 1, &never);
  return at;
}

// Bit by bit, as far as chunks go that lie side by side.
static void allow_exchanges(kl_writer *w) {
  const kl_body *b = w->body;
  uint32_t nbits = lane_bits(b);
  kl_exchange *x = KL_NEW_N(w->arena, kl_exchange, nbits + 1);
  for (uint32_t i = 0; i < nbits; i++) x[i] = (kl_exchange){element_var(b), b->lanes >> (nbits - i), lane_bit(b, i)};
  w->nexchanges = nbits;
  w->exchanges = x;
  uint32_t neighbour = b->threads ? KL_NONE : find_var(b, neighbour_name);
  if (neighbour == KL_NONE) return;
  kl_exchange filling = {element_var(b), b->lanes / 2, neighbour};
  w->filling = kl_arena_dup(w->arena, &filling, sizeof filling);
}

// A result whose owner has it in tiles or with padding, position by position. Padding becomes zero: equal results are
// equal bytes.
static kiln_status write_positions(kl_walk *walk, uint32_t r, uint32_t slot, const kl_aff *at, uint32_t keep) {
  const kl_slot_info *info = &walk->slots->v.p[slot];
  kl_writer *w = walk->w;
  kl_physical layout;
  const kl_aff *digits[KL_MAX_DIGITS], *index[KILN_MAX_RANK];
  kl_constraint inside[KL_MAX_VALUES];
  kl_physical_of(info->owner, &layout);
  kl_memory_split(walk->affs, &layout, at, digits);
  uint32_t n = kl_memory_index(walk->affs, &layout, digits, index, inside), guard = keep, step = KL_NONE;
  bool never = false;
  for (uint32_t i = 0; i < n && !never; i++)
    guard = kl_guard_and(&w->guards, guard, inside[i].e, inside[i].in.lo, inside[i].in.hi, &never);
  if (!never) KL_TRY(kl_walk_want(walk, walk->plan->comp->root, r, guard, index, &step));
  if (!never) step = kl_write_word(w, step, info->shape->dtype);
  if (never || guard != keep) {
    uint32_t zero = kl_write_scalar(w, info->shape->dtype, 0, 0);
    step = never ? zero : kl_write_choose(w, guard, step, zero);
  }
  kl_write_store(w, slot, &walk->slots->v.p[slot], at, step, keep);
  return KILN_OK;
}

static uint32_t slot_of_result(const kl_walk *walk, uint32_t r) {
  return walk->slots->nargs - (uint32_t)kl_shape_leaf_count(kl_root(walk->plan->comp)->shape) + r;
}

// What is wanted for results' elements: steps, and where they go, by result.
typedef struct making {
  uint32_t *step;
  const kl_aff **place;
} making;

static kiln_status make_results(kl_walk *walk, const kl_domain *domain, const kl_part *part, const kl_aff *at,
                                uint32_t keep, making *m) {
  m->step = KL_NEW_N(walk->arena, uint32_t, domain->n + 1);
  m->place = KL_NEW_N(walk->arena, const kl_aff *, domain->n + 1);
  for (uint32_t i = 0; i < domain->n; i++) {
    const kl_slot_info *info = &walk->slots->v.p[slot_of_result(walk, domain->leaves[i])];
    const kl_update *u = domain->updates[domain->leaves[i]];
    const kl_aff *index[KILN_MAX_RANK];
    if (u) KL_TRY(kl_want_update(walk, u, at, keep, &m->place[i], &m->step[i]));
    if (u || info->owner) continue;
    m->place[i] = index_in_part(walk->affs, part, info->shape, at, index);
    KL_TRY(kl_walk_want(walk, walk->plan->comp->root, domain->leaves[i], keep, index, &m->step[i]));
  }
  return KILN_OK;
}

static kiln_status store_results(kl_walk *walk, const kl_domain *domain, const kl_aff *at, uint32_t keep,
                                 const making *m) {
  for (uint32_t i = 0; i < domain->n; i++) {
    uint32_t r = domain->leaves[i], slot = slot_of_result(walk, r);
    const kl_slot_info *info = &walk->slots->v.p[slot];
    if (domain->updates[r])
      kl_store_update(walk, domain->updates[r], slot, m->place[i], m->step[i], keep);
    else if (info->owner)
      KL_TRY(write_positions(walk, r, slot, at, keep));
    else
      kl_write_store(walk->w, slot, info, m->place[i], m->step[i], keep);
  }
  return KILN_OK;
}

// All results' elements are made before the first is stored: what they read may be what is overwritten. Those of all
// pieces find what they have in common once.
static kiln_status write_results(kl_walk *walk, const kl_domain *domain, const kl_part *part, const kl_aff *at,
                                 uint32_t keep) {
  uint32_t n = walk->w->body->threads || !domain->groups ? 1 : domain->pieces;
  making made[MOST_PIECES];
  for (uint32_t i = 0; i < n; i++)
    KL_TRY(make_results(walk, domain, part, kl_aff_addc(walk->affs, at, i * domain->piece), keep, &made[i]));
  for (uint32_t i = 0; i < n; i++) KL_TRY(store_results(walk, domain, at, keep, &made[i]));
  return KILN_OK;
}

static kiln_status write_roots(kl_walk *walk, const kl_domain *domain, const kl_part *part) {
  kl_writer *w = walk->w;
  uint32_t keep, round = find_var(w->body, round_name);
  const kl_aff *at = element_of(w, domain, part, &keep);
  if (round != KL_NONE) kl_write_loop(w, round, 0, NULL, NULL, NULL);
  KL_TRY(write_results(walk, domain, part, at, keep));
  if (round != KL_NONE) kl_write_loop_end(w, NULL);
  return KILN_OK;
}

// May lanes of a warp take what their neighbours have? All of its threads have elements.
static bool has_neighbours(const kl_plan *p, const kl_part *part, const kl_body *body) {
  bool whole = body == &part->main && kl_last_launch(p)->block % 32 == 0 && !p->flat && !p->together;
  return whole && p->target.machine == KL_NVPTX && (body->threads || lane_bits(body) == 0);
}

// What came of writing a body once.
typedef enum written { IS_WRITTEN, WOULD_SHIFT, SHIFTS_NOTHING } written;

// Of `threads` where lanes would take what neighbours have, and of warps and lanes where they do not, nothing is kept.
static kiln_status try_body(kl_choosing *c, const kl_domain *domain, const kl_part *part, kl_body *body, bool shifts,
                            written *out) {
  kl_writer w;
  kl_walk walk;
  bool threads = body->threads > 0;
  kl_write_begin(&w, c->cx, c->plan, body);
  allow_exchanges(&w);
  w.shifts = shifts;
  kl_walk_begin(&walk, c->cx, c->plan, &c->slots, &w);
  kiln_status st = write_roots(&walk, domain, part);
  kl_walk_free(&walk);
  *out = w.would_shift ? WOULD_SHIFT : shifts && !threads && !w.nshifted ? SHIFTS_NOTHING : IS_WRITTEN;
  if (st == KILN_OK && *out != WOULD_SHIFT)
    kl_write_end(&w);
  else
    kl_write_free(&w);
  return st;
}

// Threads that lie in one row are numbered by blocks, warps and lanes where lanes take what neighbours have.
static kiln_status write_body(kl_choosing *c, const kl_domain *domain, const kl_part *part, kl_body *body) {
  if (kl_body_is_empty(body)) return KILN_OK;
  written first, then = IS_WRITTEN;
  kl_body in_a_row = *body, in_warps;
  KL_TRY(try_body(c, domain, part, body, has_neighbours(c->plan, part, body), &first));
  if (first != WOULD_SHIFT) return KILN_OK;
  kl_domain alone = {.times = 1, .at_once = 1, .pieces = 1};
  shape_chunks(c->plan, &in_warps, (share){body->lanes, body->lanes, false}, &alone, part->main_blocks);
  *body = in_warps;
  KL_TRY(try_body(c, domain, part, body, true, &then));
  if (then == IS_WRITTEN) return KILN_OK;
  *body = in_a_row;
  return try_body(c, domain, part, body, false, &then);
}

// --- the plan -------------------------------------------------------------------------------------------------------

static bool has_concatenate(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_CONCATENATE) return true;
  return false;
}

// The domain's parts. What launches have left is not cut between operands, nor are halves that want each other's
// elements.
static kiln_status cut_domain(kl_choosing *c, kl_domain *d) {
  kl_plan *p = c->plan;
  d->parts = KL_NEW(c->arena, kl_part);
  *d->parts = (kl_part){.dim = KL_NONE, .count = d->count};
  d->nparts = 1;
  if (p->nlaunches > 1) return KILN_OK;
  if (has_concatenate(p->comp) && !has_updates(d)) {
    const bool *has = find_slots(c, d);
    share x =
        choose_share(p, &c->slots, has, d->count, lowest_lanes(&c->slots, has), p->comp->ninstr, most_lanes(c, d));
    KL_TRY(kl_find_sharing(c, d, has, x.elements, x.chunk < x.elements));
    if (d->groups && d->pieces > 1) return KILN_OK;
  }
  return kl_split_domain(c->cx, p, &c->slots, d, c->params, c->arena);
}

// All domains' parts in one row, behind those there are; one part of nothing where there is none at all. What launches
// have left is not cut between operands.
static kiln_status make_parts(kl_choosing *c, kl_domains *d) {
  kl_plan *p = c->plan;
  uint32_t all = p->nparts;
  for (uint32_t i = 0; i < d->n; i++) {
    KL_TRY(cut_domain(c, &d->p[i]));
    all += d->p[i].nparts;
  }
  kl_part *parts = KL_NEW_N(c->arena, kl_part, all + 1u);
  if (p->nparts) memcpy(parts, p->parts, p->nparts * sizeof *parts);
  p->parts = parts;
  for (uint32_t i = 0; i < d->n; i++) {
    memcpy(&p->parts[p->nparts], d->p[i].parts, d->p[i].nparts * sizeof *p->parts);
    KL_TRY(shape_domain(c, &d->p[i], &p->parts[p->nparts]));
    p->nparts += d->p[i].nparts;
  }
  if (all == kl_last_launch(p)->first_part) p->parts[p->nparts++] = (kl_part){.dim = KL_NONE};
  kl_last_launch(p)->nparts = p->nparts - kl_last_launch(p)->first_part;
  return KILN_OK;
}

// When all bodies are written, as some change from threads to blocks.
static void number_iterations(kl_plan *p) {
  kl_plan_launch *l = kl_last_launch(p);
  l->iterations = 0;
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++) {
    p->parts[i].first_iteration = l->iterations;
    l->iterations += p->parts[i].main.threads + p->parts[i].main.blocks;
  }
}

kiln_status kl_loop_results(kl_choosing *c, const bool *made, const kl_update *const *updates) {
  size_t nroots = kl_shape_leaf_count(kl_root(c->plan->comp)->shape);
  kl_domains domains = {.updates = updates ? updates : KL_NEW_N(c->arena, const kl_update *, nroots + 1)};
  KL_TRY(find_domains(c, made, &domains));
  if (domains.n != 1) c->plan->flat = false;
  KL_TRY(make_parts(c, &domains));
  kl_part *part = c->plan->parts + kl_last_launch(c->plan)->first_part;
  for (uint32_t i = 0; i < domains.n; i++) {
    for (uint32_t k = 0; k < domains.p[i].nparts; k++, part++) {
      KL_TRY(write_body(c, &domains.p[i], part, &part->main));
      KL_TRY(write_body(c, &domains.p[i], part, &part->tail));
    }
  }
  number_iterations(c->plan);
  return KILN_OK;
}

kiln_status kl_choose_loop(kl_choosing *c, const char **why_not) {
  size_t nroots = kl_shape_leaf_count(kl_root(c->plan->comp)->shape);
  *why_not = NULL;
  return kl_loop_results(c, KL_NEW_N(c->arena, bool, nroots + 1), NULL);
}
