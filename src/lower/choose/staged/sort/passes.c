// Sort and topk by merging: passes over runs of neighbours in pairs, from few elements up to whole lines.
//
// A thread sorts a few elements; runs of these are merged in pairs, a thread a piece of a pair, of as many places.
// Pairs of more than a tile are cut in tiles first, by a launch that stores their raw cuts, and each tile is a pair of
// its own (merge.h). On a GPU a block has a tile in shared memory, if there is room for one, and merges all runs up to
// it in one launch; of longer ones it merges a tile of a pair. Where there is no block a thread searches for the cuts
// that others would have stored for it. Which elements are compared is a matter of the line and its types alone, not of
// the machine.

#include "lower/choose/staged/sort/merge.h"

enum { WARP = 32, WARPS = 8, THREADS = WARP * WARPS };
enum { MOST_LEVELS = 12 }; // pairs of runs within a tile of 2^11 elements

// Elements of a tile, and of a piece. A line of less is one tile of fewer pieces.
typedef struct grain {
  int64_t tile, piece;
  bool shared; // a block has room for a tile
} grain;

typedef struct launch {
  kl_merging m;
  const kl_sort *x;
  grain g;
  int64_t run; // to be merged; 0: single elements
  const uint32_t *to;
  const kl_shape *out;
  bool *wanted;      // by array
  uint32_t **values; // by array: those of a thread's piece
  uint32_t raw;      // slot of raw cuts of tiles
  // Variables and what is made of them.
  const kl_aff *line, *piece; // of the host: the thread's line and piece in it
  const kl_aff *thread, *v;   // of a block
  const kl_aff *number, *tile;
  int64_t numbers;
  uint32_t v_var, rounds, level, search[MOST_LEVELS];
} launch;

static int64_t tiles_of(const kl_sort *x, int64_t size) {
  return (x->length - 1) / size + 1;
}

// As far as a block has room for the elements of all arrays, and for the cuts of its threads.
static grain grain_of(const kl_sort *x) {
  grain g = {.piece = 1};
  int64_t bytes = 0, each = KL_SORT_EACH;
  for (uint32_t i = 0; i < x->n; i++) bytes += kl_info(kl_in_bytes(x->type[i]))->bits / 8;
  while (each && (bytes * each + 4) * THREADS + 16 * x->n > KL_MOST_SHARED) each /= 2;
  g.shared = each && x->s->c->plan->target.machine == KL_NVPTX;
  while (g.piece < KL_SORT_EACH && g.piece < x->length && (!each || g.piece < each)) g.piece *= 2;
  g.tile = each ? g.piece * THREADS : g.piece;
  return g;
}

static launch launch_of(const kl_sort *x, grain g) {
  launch l = {.x = x, .g = g, .m = {.x = x, .integer = x->integer, .there = KL_NONE, .span = x->length}};
  l.wanted = KL_NEW_N(x->s->c->arena, bool, x->n);
  l.values = KL_NEW_N(x->s->c->arena, uint32_t *, x->n);
  for (uint32_t i = 0; i < x->n; i++) l.values[i] = KL_NEW_N(x->s->c->arena, uint32_t, KL_SORT_EACH);
  l.out = x->shape;
  l.rounds = l.level = l.v_var = KL_NONE;
  return l;
}

static uint32_t within(launch *l, uint32_t guard, const kl_aff *e, int64_t lo, int64_t hi) {
  bool never;
  e = kl_dom_simplify(l->m.b.w.body->domain, e);
  return kl_guard_and(&l->m.b.w.guards, guard, e, lo, hi, &never);
}

// Those that go anywhere, or, before the last pass, are compared.
static void find_wanted(launch *l, bool inside) {
  for (uint32_t i = 0; i < l->x->n; i++) l->wanted[i] = l->to[i] != KL_NONE || (inside && l->x->compared[i]);
}

// A value of the thread's elements side by side, along v, of those that it has one by one.
static uint32_t side_by_side(launch *l, const uint32_t *values) {
  return kl_stage_beside(&l->m.b, values, l->v, l->g.piece);
}

static void one_by_one(launch *l, uint32_t value, uint32_t *values) {
  for (uint32_t v = 0; v < l->g.piece; v++)
    values[v] = l->v_var == KL_NONE ? value : kl_write_take(&l->m.b.w, value, l->v_var, v);
}

// To the place of the line, where it is one of those that are kept.
static kiln_status leave(launch *l, uint32_t array, const kl_aff *place, uint32_t value) {
  const kl_aff *index[KILN_MAX_RANK];
  uint32_t keep = within(l, l->m.there, place, 0, l->out->dims[l->x->dim] - 1);
  place = kl_dom_simplify(l->m.b.w.body->domain, place);
  kl_stage_line_index(l->x->s->p, l->x->shape, l->x->dim, l->m.outer, l->m.inner, place, index);
  return kl_stage_store(&l->m.b, l->to[array], index, value, keep);
}

// --- cuts of tiles --------------------------------------------------------------------------------------------------

static const kl_aff *line_number(const launch *l) {
  int64_t outer, inner;
  kl_stage_count_lines(l->x->shape, l->x->dim, &outer, &inner);
  return kl_aff_addmul(l->x->s->p, l->m.inner, l->m.outer, inner);
}

// Threads for pieces of lines, so many of each.
static void begin_threads(launch *l, const kl_aff *at, int64_t pieces) {
  kl_affs *p = l->x->s->p;
  kl_dom *d = l->m.b.w.body->domain;
  int64_t outer, inner;
  kl_stage_count_lines(l->x->shape, l->x->dim, &outer, &inner);
  at = kl_dom_simplify(d, at);
  l->m.there = l->m.b.keep = within(l, KL_NONE, at, 0, outer * inner * pieces - 1);
  const kl_aff *line = kl_dom_simplify(d, kl_aff_floordivc(p, at, pieces));
  l->piece = kl_dom_simplify(d, kl_aff_modc(p, at, pieces));
  l->m.outer = kl_dom_simplify(d, kl_aff_floordivc(p, line, inner));
  l->m.inner = kl_dom_simplify(d, kl_aff_modc(p, line, inner));
}

static int64_t lines_of(const kl_sort *x) {
  int64_t outer, inner;
  kl_stage_count_lines(x->shape, x->dim, &outer, &inner);
  return outer * inner;
}

static kiln_status write_cuts(void *arg) {
  launch *l = arg;
  kl_affs *p = l->x->s->p;
  uint32_t cut;
  begin_threads(l, l->line, tiles_of(l->x, l->g.tile));
  const kl_aff *place = kl_aff_mulc(p, l->piece, l->g.tile);
  kl_merge_runs r = kl_merge_find_pair(&l->m, place, kl_aff_const(p, 0), l->run);
  uint32_t d = kl_stage_number(&l->m.b, l->m.integer, kl_aff_modc(p, place, 2 * l->run));
  KL_TRY(kl_merge_search(&l->m, &r, d, l->rounds, &cut));
  const kl_aff *at = kl_dom_simplify(l->m.b.w.body->domain, l->line);
  return kl_stage_store(&l->m.b, l->raw, &at, cut, l->m.there);
}

static kiln_status cut_tiles(const kl_sort *x, grain g, int64_t run, const uint32_t *from, uint32_t raw) {
  launch l = launch_of(x, g);
  int64_t count = lines_of(x) * tiles_of(x, g.tile);
  l.run = run;
  l.m.from = from;
  l.raw = raw;
  l.line = kl_stage_elements(&l.m.b, x->s, count, 1);
  kl_new_var(x->s->p, &l.m.b.vars, KL_BIND_STEP, kl_merge_rounds(run), "round", &l.rounds);
  return kl_stage_write(&l.m.b, count, write_cuts, &l);
}

// The tile of a pair that a thread or block is in, as a pair, by the line's places.
static kl_merge_runs tile_pair(launch *l, const kl_aff *tile) {
  kl_affs *p = l->x->s->p;
  kl_merging *m = &l->m;
  const kl_aff *place = kl_aff_mulc(p, tile, l->g.tile);
  kl_merge_runs r = kl_merge_find_pair(m, place, kl_aff_const(p, 0), l->run);
  int64_t tiles = tiles_of(l->x, l->g.tile), pieces = 2 * l->run / l->g.tile;
  kl_merge_raw raw = {.slot = l->raw, .piece = tile, .there = tiles, .pieces = pieces, .size = l->g.tile};
  raw.first = kl_aff_mulc(p, line_number(l), tiles);
  kl_merge_cuts c = kl_merge_stored_cuts(m, &r, &raw);
  uint32_t d = kl_stage_number(&m->b, m->integer, kl_aff_modc(p, place, 2 * l->run));
  uint32_t next = kl_stage_op(&m->b, KL_OP_ADD, d, kl_merge_whole(m, l->g.tile));
  uint32_t begin = kl_stage_op(&m->b, KL_OP_SUBTRACT, d, c.begin);
  uint32_t end = kl_stage_op(&m->b, KL_OP_MINIMUM, kl_stage_op(&m->b, KL_OP_SUBTRACT, next, c.end), r.nright);
  kl_merge_runs t = {.left = kl_stage_op(&m->b, KL_OP_ADD, r.left, c.begin)};
  t.right = kl_stage_op(&m->b, KL_OP_ADD, r.right, begin);
  t.nleft = kl_stage_op(&m->b, KL_OP_SUBTRACT, c.end, c.begin);
  // Behind the right run's end there is nothing.
  t.nright = kl_stage_op(&m->b, KL_OP_MAXIMUM, kl_merge_whole(m, 0), kl_stage_op(&m->b, KL_OP_SUBTRACT, end, begin));
  return t;
}

// --- threads alone --------------------------------------------------------------------------------------------------

static kiln_status sort_few(launch *l) {
  kl_affs *p = l->x->s->p;
  const kl_aff *first = kl_aff_mulc(p, l->piece, l->g.piece);
  const kl_aff *place = kl_dom_simplify(l->m.b.w.body->domain, kl_aff_add(p, first, l->v));
  uint32_t there = within(l, l->m.there, place, 0, l->x->length - 1), value;
  for (uint32_t i = 0; i < l->x->n; i++) {
    if (!l->wanted[i]) continue;
    KL_TRY(kl_merge_fetch(&l->m, i, place, there, &value));
    one_by_one(l, value, l->values[i]);
  }
  return kl_merge_few(&l->m, first, l->g.piece, l->wanted, l->values);
}

static kiln_status merge_piece(launch *l) {
  kl_affs *p = l->x->s->p;
  kl_merging *m = &l->m;
  const kl_aff *place = kl_aff_mulc(p, l->piece, l->g.piece);
  int64_t whole = 2 * l->run > l->g.tile ? l->g.tile : 2 * l->run;
  kl_merge_runs r = 2 * l->run > l->g.tile ? tile_pair(l, kl_aff_floordivc(p, place, l->g.tile))
                                           : kl_merge_find_pair(m, place, kl_aff_const(p, 0), l->run);
  uint32_t d = kl_stage_number(&m->b, m->integer, kl_aff_modc(p, place, whole));
  kl_merge_cuts cuts = {kl_merge_whole(m, 0), r.nleft};
  if (whole > l->g.piece) KL_TRY(kl_merge_searched_cuts(m, &r, d, whole, (uint32_t[]){l->level, l->rounds}, &cuts));
  return kl_merge_piece(m, &r, d, &cuts, l->g.piece, l->wanted, l->values);
}

static kiln_status write_thread(void *arg) {
  launch *l = arg;
  kl_affs *p = l->x->s->p;
  begin_threads(l, l->line, (l->out->dims[l->x->dim] - 1) / l->g.piece + 1);
  find_wanted(l, !l->run);
  KL_TRY(l->run ? merge_piece(l) : sort_few(l));
  const kl_aff *place = kl_aff_add(p, kl_aff_mulc(p, l->piece, l->g.piece), l->v);
  for (uint32_t i = 0; i < l->x->n; i++)
    if (l->to[i] != KL_NONE) KL_TRY(leave(l, i, place, side_by_side(l, l->values[i])));
  return KILN_OK;
}

static kiln_status by_threads(launch *l) {
  const kl_sort *x = l->x;
  kl_affs *p = x->s->p;
  kl_var_list *vars = &l->m.b.vars;
  int64_t pieces = (l->out->dims[x->dim] - 1) / l->g.piece + 1, count = lines_of(x) * pieces;
  int64_t whole = 2 * l->run > l->g.tile ? l->g.tile : 2 * l->run;
  l->line = kl_stage_elements(&l->m.b, x->s, count, 1);
  l->v = kl_new_var(p, vars, KL_BIND_REG, l->g.piece, "k", &l->v_var);
  if (whole > l->g.piece) {
    kl_new_var(p, vars, KL_BIND_STEP, kl_merge_rounds(whole / l->g.piece) - 1, "level", &l->level);
    kl_new_var(p, vars, KL_BIND_STEP, kl_merge_rounds(whole / 2), "round", &l->rounds);
  }
  return kl_stage_write(&l->m.b, x->shape->count, write_thread, l);
}

// --- tiles of a block -----------------------------------------------------------------------------------------------

static void begin_block(launch *l, int64_t size, int64_t tiles) {
  const kl_sort *x = l->x;
  kl_affs *p = x->s->p;
  int64_t outer, inner, rows = l->g.tile / size;
  uint32_t var;
  kl_stage_count_lines(x->shape, x->dim, &outer, &inner);
  bool beside = inner >= outer;
  l->numbers = beside ? inner : outer;
  l->m.b = (kl_stage_body){.s = x->s, .keep = KL_NONE};
  kl_var_list *vars = &l->m.b.vars;
  const kl_aff *block = kl_new_var(p, vars, KL_BIND_BLOCK, (l->numbers - 1) / rows + 1, "line", &var);
  const kl_aff *other = kl_new_var(p, vars, KL_BIND_BLOCK, beside ? outer : inner, beside ? "outer" : "inner", &var);
  l->tile = kl_new_var(p, vars, KL_BIND_BLOCK, tiles, "tile", &var);
  const kl_aff *warp = kl_new_var(p, vars, KL_BIND_WARP, WARPS, "warp", &var);
  l->thread = kl_aff_addmul(p, kl_new_var(p, vars, KL_BIND_LANE, WARP, "lane", &var), warp, WARP);
  l->v = kl_new_var(p, vars, KL_BIND_REG, l->g.piece, "v", &l->v_var);
  l->number = kl_aff_mulc(p, block, rows);
  l->m.outer = beside ? other : NULL; // the one that is not is l->number's
  l->m.inner = beside ? NULL : other;
}

// Arrays of the block, for what is wanted or compared.
static uint32_t *share_arrays(launch *l) {
  const kl_sort *x = l->x;
  kl_choosing *c = x->s->c;
  uint32_t *slots = KL_NEW_N(c->arena, uint32_t, x->n);
  for (uint32_t i = 0; i < x->n; i++) {
    bool used = l->to[i] != KL_NONE || x->compared[i];
    slots[i] = used ? kl_add_shared(c->cx, c->plan, &c->slots, kl_in_bytes(x->type[i]), l->g.tile) : KL_NONE;
  }
  return slots;
}

// The elements that a thread has at a distance of all threads, and those that lie together.
static const kl_aff *apart(const launch *l) {
  return kl_aff_addmul(l->x->s->p, l->thread, l->v, THREADS);
}
static const kl_aff *together(const launch *l) {
  return kl_aff_addmul(l->x->s->p, l->v, l->thread, l->g.piece);
}

// Says of which line, and where in it, element `at` of a block's arrays is, in rows of `size`.
static const kl_aff *place_in_line(launch *l, const kl_aff *at, int64_t size) {
  kl_affs *p = l->x->s->p;
  kl_dom *d = l->m.b.w.body->domain;
  const kl_aff *number = kl_dom_simplify(d, kl_aff_add(p, l->number, kl_aff_floordivc(p, at, size)));
  int64_t outer, inner;
  kl_stage_count_lines(l->x->shape, l->x->dim, &outer, &inner);
  *(inner >= outer ? &l->m.inner : &l->m.outer) = number;
  l->m.there = within(l, KL_NONE, number, 0, l->numbers - 1);
  return kl_dom_simplify(d, kl_aff_addmul(p, kl_aff_modc(p, at, size), l->tile, size));
}

// Of the thread's elements, side by side, to the block's arrays.
static kiln_status share(launch *l, const uint32_t *slots) {
  const kl_aff *at = together(l);
  for (uint32_t i = 0; i < l->x->n; i++)
    if (l->wanted[i]) KL_TRY(kl_stage_store(&l->m.b, slots[i], &at, side_by_side(l, l->values[i]), KL_NONE));
  return KILN_OK;
}

static kiln_status take_own(launch *l, const uint32_t *slots) {
  const kl_aff *at = together(l);
  for (uint32_t i = 0; i < l->x->n; i++)
    if (l->wanted[i]) one_by_one(l, kl_stage_load(&l->m.b, slots[i], &at, KL_NONE, l->x->type[i]), l->values[i]);
  return KILN_OK;
}

// The last of it: as the line lies in memory.
static kiln_status leave_tile(launch *l, const uint32_t *slots, int64_t size) {
  find_wanted(l, false);
  KL_TRY(share(l, slots));
  const kl_aff *at = apart(l), *place = place_in_line(l, at, size);
  for (uint32_t i = 0; i < l->x->n; i++) {
    if (l->to[i] == KL_NONE) continue;
    uint32_t value = kl_stage_load(&l->m.b, slots[i], &at, KL_NONE, l->x->type[i]);
    KL_TRY(leave(l, i, place, value));
  }
  return KILN_OK;
}

// Merges a pair in pieces of threads, of which `pieces` have one pair.
static kiln_status merge_shared(launch *l, const kl_merge_runs *r, int64_t pieces, uint32_t step, uint32_t raw) {
  kl_affs *p = l->x->s->p;
  kl_merging *m = &l->m;
  const kl_aff *in_pair = kl_aff_mulc(p, kl_aff_modc(p, l->thread, pieces), l->g.piece);
  uint32_t d = kl_stage_number(&m->b, m->integer, in_pair), cut;
  KL_TRY(kl_merge_search(m, r, d, step, &cut));
  KL_TRY(kl_stage_store(&m->b, raw, &l->thread, cut, KL_NONE));
  kl_merge_raw cuts = {.slot = raw, .first = kl_aff_const(p, 0), .piece = l->thread, .there = THREADS};
  cuts.pieces = pieces;
  cuts.size = l->g.piece;
  kl_merge_cuts c = kl_merge_stored_cuts(m, r, &cuts);
  return kl_merge_piece(m, r, d, &c, l->g.piece, l->wanted, l->values);
}

static void begin_shared(launch *l, const uint32_t *slots, int64_t size) {
  kl_affs *p = l->x->s->p;
  const kl_aff *first = kl_aff_mulc(p, l->thread, l->g.piece);
  l->m.shared = slots;
  l->m.span = size;
  l->m.there = KL_NONE;
  l->m.integer = KILN_S32;
  l->m.row = kl_dom_simplify(l->m.b.w.body->domain, kl_aff_sub(p, first, kl_aff_modc(p, first, size)));
}

static int64_t row_of(const launch *l) {
  int64_t size = l->g.piece;
  while (size < l->g.tile && size < l->x->length) size *= 2;
  return size;
}

static kiln_status write_sorted(void *arg) {
  launch *l = arg;
  const kl_sort *x = l->x;
  kl_choosing *c = x->s->c;
  kl_affs *p = x->s->p;
  int64_t size = row_of(l);
  uint32_t *slots = share_arrays(l), raw = kl_add_shared(c->cx, c->plan, &c->slots, KILN_S32, THREADS), value;
  const kl_aff *at = apart(l), *place = place_in_line(l, at, size);
  uint32_t there = within(l, l->m.there, place, 0, x->length - 1);
  find_wanted(l, true);
  for (uint32_t i = 0; i < x->n; i++) {
    if (!l->wanted[i]) continue;
    KL_TRY(kl_merge_fetch(&l->m, i, place, there, &value));
    KL_TRY(kl_stage_store(&l->m.b, slots[i], &at, value, KL_NONE));
  }
  begin_shared(l, slots, size);
  KL_TRY(take_own(l, slots));
  const kl_aff *base = kl_aff_mulc(p, l->tile, size);
  const kl_aff *first = kl_aff_modc(p, kl_aff_mulc(p, l->thread, l->g.piece), size);
  KL_TRY(kl_merge_few(&l->m, kl_aff_add(p, base, first), l->g.piece, l->wanted, l->values));
  uint32_t level = 0;
  for (int64_t run = l->g.piece; run < size; run *= 2) {
    KL_TRY(share(l, slots));
    kl_merge_runs r = kl_merge_find_pair(&l->m, first, base, run);
    KL_TRY(merge_shared(l, &r, 2 * run / l->g.piece, l->search[level++], raw));
  }
  return leave_tile(l, slots, size);
}

static kiln_status sort_tiles(launch *l) {
  const kl_sort *x = l->x;
  kl_affs *p = x->s->p;
  int64_t size = row_of(l);
  uint32_t level = 0;
  begin_block(l, size, tiles_of(x, size));
  for (int64_t run = l->g.piece; run < size; run *= 2, level++)
    kl_new_var(p, &l->m.b.vars, KL_BIND_STEP, kl_merge_rounds(run), kl_strf(x->s->c->arena, "round%u", level),
               &l->search[level]);
  return kl_stage_write(&l->m.b, x->shape->count, write_sorted, l);
}

// A tile of a pair: the left run's elements and behind them the right one's.
static kiln_status fetch_tile(launch *l, const kl_merge_runs *r, const uint32_t *slots) {
  kl_merging *m = &l->m;
  kl_stage_body *b = &m->b;
  const kl_aff *at = apart(l);
  uint32_t e = kl_stage_number(b, m->integer, at), value;
  uint32_t of_right = kl_stage_op(b, KL_OP_ADD, kl_stage_op(b, KL_OP_SUBTRACT, r->right, r->nleft), e);
  uint32_t is_left = kl_stage_compare(b, KL_LT, KL_CMP_DEFAULT, e, r->nleft);
  uint32_t from = kl_stage_select(b, is_left, kl_stage_op(b, KL_OP_ADD, r->left, e), of_right);
  for (uint32_t i = 0; i < l->x->n; i++) {
    if (!l->wanted[i]) continue;
    const kl_aff *place = kl_write_index(&b->w, from, (kl_interval){0, l->x->length - 1});
    KL_TRY(kl_merge_fetch(m, i, place, m->there, &value));
    KL_TRY(kl_stage_store(b, slots[i], &at, value, KL_NONE));
  }
  return KILN_OK;
}

static uint32_t narrowed(launch *l, uint32_t value) {
  kl_writer *w = &l->m.b.w;
  if (w->steps.p[value].dtype == KILN_S32) return value;
  return kl_write_op(w, (kl_plan_op){.op = KL_OP_CONVERT}, KILN_S32, 1, &value);
}

static kiln_status write_merged(void *arg) {
  launch *l = arg;
  const kl_sort *x = l->x;
  kl_choosing *c = x->s->c;
  uint32_t *slots = share_arrays(l), raw = kl_add_shared(c->cx, c->plan, &c->slots, KILN_S32, THREADS);
  place_in_line(l, kl_aff_const(x->s->p, 0), l->g.tile);
  kl_merge_runs r = tile_pair(l, l->tile);
  find_wanted(l, true);
  KL_TRY(fetch_tile(l, &r, slots));
  begin_shared(l, slots, l->g.tile);
  find_wanted(l, false);
  uint32_t nleft = narrowed(l, r.nleft), nright = narrowed(l, r.nright);
  kl_merge_runs of_block = {.left = kl_merge_whole(&l->m, 0), .right = nleft, .nleft = nleft, .nright = nright};
  KL_TRY(merge_shared(l, &of_block, THREADS, l->rounds, raw));
  return leave_tile(l, slots, l->g.tile);
}

static kiln_status merge_tiles(launch *l) {
  begin_block(l, l->g.tile, (l->out->dims[l->x->dim] - 1) / l->g.tile + 1);
  kl_new_var(l->x->s->p, &l->m.b.vars, KL_BIND_STEP, kl_merge_rounds(l->g.tile / 2), "round", &l->rounds);
  return kl_stage_write(&l->m.b, l->x->shape->count, write_merged, l);
}

// --- all passes -----------------------------------------------------------------------------------------------------

// Two of each, in turns.
static uint32_t *new_arrays(const kl_sort *x) {
  uint32_t *slots = KL_NEW_N(x->s->c->arena, uint32_t, x->n);
  for (uint32_t i = 0; i < x->n; i++)
    slots[i] = x->compared[i] || x->s->slot[i] != KL_NONE ? kl_stage_scratch(x->s, x->shape, x->type[i]) : KL_NONE;
  return slots;
}

// Runs of *run elements; where that is a line or more, into the stage's own slots.
static kiln_status sort_runs(const kl_sort *x, grain *g, uint32_t **to, int64_t *run) {
  *run = g->shared ? g->tile : g->piece;
  launch l = launch_of(x, *g);
  *to = *run < x->length ? new_arrays(x) : x->s->slot;
  if (*run >= x->length) l.out = x->out;
  l.to = *to;
  return g->shared ? sort_tiles(&l) : by_threads(&l);
}

static kiln_status merge_runs(const kl_sort *x, grain g, int64_t run, const uint32_t *from, const uint32_t *to,
                              uint32_t raw) {
  bool last = 2 * run >= x->length;
  launch l = launch_of(x, g);
  l.run = run;
  l.m.from = from;
  l.to = to;
  l.raw = raw;
  if (last) l.out = x->out;
  if (2 * run > g.tile) KL_TRY(cut_tiles(x, g, run, from, raw));
  return g.shared ? merge_tiles(&l) : by_threads(&l);
}

kiln_status kl_sort_by_merging(const kl_sort *x, kl_sorting way) {
  uint32_t *from, *to, *other = NULL, raw = KL_NONE;
  grain g = grain_of(x);
  int64_t run;
  if (way == KL_MERGES_SORTED_TILES) {
    from = new_arrays(x);
    KL_TRY(kl_sort_tiles_by_digits(x, from, &run));
    for (; g.tile > 2 * run; g.tile /= 2) g.piece /= 2;
  } else {
    KL_TRY(sort_runs(x, &g, &from, &run));
  }
  for (; run < x->length; run *= 2) {
    bool last = 2 * run >= x->length;
    if (last)
      to = x->s->slot;
    else if (other)
      to = other;
    else
      to = new_arrays(x);
    if (raw == KL_NONE && 2 * run > g.tile)
      raw = kl_add_scratch(x->s->c->cx, x->s->c->plan, &x->s->c->slots, x->integer, lines_of(x) * tiles_of(x, g.tile));
    KL_TRY(merge_runs(x, g, run, from, to, raw));
    other = from;
    from = to;
  }
  return KILN_OK;
}
