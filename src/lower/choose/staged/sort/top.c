// Topk of few: threads keep the first of what they have seen of a line.
//
// A thread goes through its part of a line, some elements at a time: it puts them in order, and keeps the first of
// these and of those that it has kept. Where more are kept than a thread has room for, neighbouring lanes hold a list
// together. Then lists that a block has of a line are joined in pairs, through shared memory, until one is left; each
// time half of the threads go home. Lists of several blocks are lines for another launch. All that is read once, and
// nothing but what is kept is written. On the host the lanes of a vector are the threads of a line, and join their
// lists by shuffles.

#include "lower/choose/staged/sort/items.h"

enum { LANES = 32, THREADS = 256, VECTOR = 16 }; // of a warp; of a block; bytes
enum { WHOLE = 8 };                              // threads of a line whose vectors are whole sectors, side by side
enum { ENOUGH = 132 * 512, ENOUGH_BLOCKS = 64 }; // threads that keep a GPU busy; iterations, the host's cores

typedef struct pass {
  const kl_items *t;
  kl_stage_body b;
  int64_t keep, own, lanes;    // items that are kept, powers of two; of a thread; threads of a list
  int64_t outer, inner, lines; // that there are
  int64_t length;              // of a line
  const uint32_t *from, *to;   // slots of words of items; NULL: what the op is given; where its results go
  bool host;
  int64_t width, most;      // lanes; most threads of a block
  int64_t each, vector;     // items of a thread at once; of these together in memory
  int64_t threads, block;   // of a line; of a block
  int64_t rounds, segments; // of a thread; of a line
  const kl_aff *group, *segment, *warp, *lane, *thread;
  const kl_aff *round, *chunk, *i, *k;
  uint32_t round_var, chunk_var, i_var;
} pass;

static int64_t power_from(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

static int64_t kept(const kl_sort *x) {
  return kl_shape_leaf(x->s->instr->shape, 0)->dims[x->dim];
}

static int64_t lanes_of_machine(const kl_sort *x) {
  const kl_target *t = &x->s->c->plan->target;
  return t->machine == KL_HOST ? t->host_lanes : LANES;
}

bool kl_sort_keeps_few(const kl_sort *x) {
  kl_sort_key key;
  kl_items t;
  if (x->less || !kl_sort_finds_key(x, &key) || !kl_items_of(x, &key, &t)) return false;
  return power_from(kept(x)) <= lanes_of_machine(x) * t.each;
}

// --- who has what ---------------------------------------------------------------------------------------------------

// Threads have as much of a line each as leaves enough of them.
static void set_threads(pass *s) {
  int64_t bytes = kl_info(kl_in_bytes(s->from ? s->t->word : *s->t->x->type))->bits / 8, whole = s->lanes;
  s->vector = VECTOR / bytes < s->each ? VECTOR / bytes : s->each;
  for (s->threads = s->lanes; s->threads < s->most && s->threads * s->each < s->length;) s->threads *= 2;
  while (whole < WHOLE) whole *= 2;
  while (s->threads > whole && s->lines / 2 >= ENOUGH / s->threads) s->threads /= 2;
  for (s->block = s->threads; s->block < LANES || (s->block < s->most && s->block / s->threads < s->lines);)
    s->block *= 2;
}

static void set_sizes(pass *s) {
  int64_t enough = s->host ? ENOUGH_BLOCKS * s->width : ENOUGH;
  int64_t all = power_from(s->host ? (s->length - 1) / s->width + 1 : s->length);
  s->each = all < s->t->each ? all : s->t->each;
  if (s->each < s->own) s->each = s->own;
  s->threads = s->block = s->width;
  s->vector = 1;
  if (!s->host) set_threads(s);
  int64_t unit = s->threads * s->each, units = (s->length - 1) / unit + 1;
  s->segments = 1;
  if (!s->from && s->lines <= enough / 2 / s->threads) s->segments = enough / s->threads / s->lines;
  if (s->segments > units) s->segments = units;
  s->rounds = (units - 1) / s->segments + 1;
  s->segments = (units - 1) / s->rounds + 1;
}

static const kl_aff *simple(pass *s, const kl_aff *e) {
  return kl_dom_simplify(s->b.w.body->domain, e);
}

static uint32_t within(pass *s, uint32_t guard, const kl_aff *e, int64_t lo, int64_t hi) {
  bool never;
  return kl_guard_and(&s->b.w.guards, guard, simple(s, e), lo, hi, &never);
}

static kl_item_lanes lanes_of(pass *s) {
  return (kl_item_lanes){&s->b, s->lane, {KL_NONE, KL_NONE, KL_NONE, KL_NONE, KL_NONE}};
}

// Of the lines that a block has, the line's number.
static const kl_aff *line_of(pass *s, const kl_aff *in_block) {
  return simple(s, kl_aff_addmul(s->b.s->p, in_block, s->group, s->block / s->threads));
}

static void index_of(pass *s, const kl_shape *shape, const kl_aff *line, const kl_aff *place, const kl_aff **index) {
  kl_affs *p = s->b.s->p;
  const kl_aff *outer = simple(s, kl_aff_floordivc(p, line, s->inner));
  const kl_aff *inner = simple(s, kl_aff_modc(p, line, s->inner));
  kl_stage_line_index(p, shape, s->t->x->dim, outer, inner, simple(s, place), index);
}

// --- what comes in --------------------------------------------------------------------------------------------------

// Side by side, along two variables.
static kiln_status fetch(pass *s, const kl_aff *line, const kl_aff *place, kl_item *out) {
  const kl_items *t = s->t;
  const kl_sort *x = t->x;
  uint32_t there = within(s, within(s, KL_NONE, line, 0, s->lines - 1), place, 0, s->length - 1), element;
  if (s->from) {
    const kl_aff *at = simple(s, kl_aff_addmul(s->b.s->p, place, line, s->length));
    kl_item none = kl_item_none(t, &s->b);
    for (uint32_t i = 0; i < t->words; i++) {
      out->word[i] = kl_stage_load(&s->b, s->from[i], &at, there, kl_item_type(t, i));
      out->word[i] = kl_write_choose(&s->b.w, there, out->word[i], none.word[i]);
    }
    return KILN_OK;
  }
  const kl_aff *index[KILN_MAX_RANK];
  index_of(s, x->shape, line, place, index);
  KL_TRY(kl_walk_want(&s->b.walk, x->s->instr->operands[0], 0, there, index, &element));
  return kl_item_make(t, &s->b, element, simple(s, place), there, out);
}

static uint32_t take(pass *s, uint32_t value, int64_t n) {
  if (s->chunk_var != KL_NONE) value = kl_write_take(&s->b.w, value, s->chunk_var, (uint32_t)(n / s->vector));
  return s->i_var == KL_NONE ? value : kl_write_take(&s->b.w, value, s->i_var, (uint32_t)(n % s->vector));
}

// The first of what a list's threads have in one round, in order.
static kiln_status look(pass *s, kl_item_lanes *l, kl_item *items) {
  const kl_items *t = s->t;
  kl_affs *p = s->b.s->p;
  const kl_aff *line = line_of(s, kl_aff_floordivc(p, s->thread, s->threads));
  const kl_aff *unit = kl_aff_addmul(p, s->round, s->segment, s->rounds);
  const kl_aff *vector = kl_aff_addmul(p, kl_aff_modc(p, s->thread, s->threads), s->chunk, s->threads);
  const kl_aff *place = kl_aff_addmul(p, kl_aff_addmul(p, s->i, vector, s->vector), unit, s->threads * s->each);
  kl_item all;
  KL_TRY(fetch(s, line, place, &all));
  for (int64_t n = 0; n < s->each; n++)
    for (uint32_t i = 0; i < t->words; i++) items[n].word[i] = take(s, all.word[i], n);
  kl_items_select(t, &s->b, items, s->each, s->own);
  kl_items_sort_lanes(t, l, items, s->own, s->lanes);
  return KILN_OK;
}

static kiln_status look_at_all(pass *s, kl_item *items) {
  const kl_items *t = s->t;
  kl_arena *arena = s->b.s->c->arena;
  uint32_t n = (uint32_t)s->own * t->words, *first = KL_NEW_N(arena, uint32_t, 2 * n), *carried = first + n;
  kl_item *found = KL_NEW_N(arena, kl_item, s->each), none = kl_item_none(t, &s->b);
  kl_item_lanes l = lanes_of(s);
  if (s->rounds == 1) return look(s, &l, items);
  for (uint32_t i = 0; i < n; i++) first[i] = none.word[i % t->words];
  kl_write_loop(&s->b.w, s->round_var, n, first, KL_NEW_N(arena, kl_vars, n), carried);
  KL_TRY(look(s, &l, found));
  kl_items_of_lane(t, &l, found, s->own, s->lanes - 1, found);
  for (uint32_t i = 0; i < n; i++) items[i / t->words].word[i % t->words] = carried[i];
  kl_items_join(t, &l, items, found, s->own, s->lanes);
  for (uint32_t i = 0; i < n; i++) carried[i] = items[i / t->words].word[i % t->words];
  kl_write_loop_end(&s->b.w, carried);
  return KILN_OK;
}

// --- what is left ---------------------------------------------------------------------------------------------------

// A list of a line of the block's, of which the thread has lane `lane`.
static kiln_status leave(pass *s, const kl_item *items, const kl_aff *in_block, const kl_aff *lane, uint32_t keep) {
  const kl_items *t = s->t;
  const kl_sort *x = t->x;
  kl_affs *p = s->b.s->p;
  const kl_aff *line = line_of(s, in_block), *place = kl_aff_addmul(p, s->k, lane, s->own);
  uint32_t *values = KL_NEW_N(x->s->c->arena, uint32_t, s->own);
  keep = within(s, keep, line, 0, s->lines - 1);
  for (uint32_t i = 0; s->to && i < t->words; i++) {
    for (int64_t v = 0; v < s->own; v++) values[v] = items[v].word[i];
    const kl_aff *list = kl_aff_addmul(p, s->segment, line, s->segments);
    const kl_aff *at = simple(s, kl_aff_addmul(p, place, list, s->keep));
    KL_TRY(kl_stage_store(&s->b, s->to[i], &at, kl_stage_beside(&s->b, values, s->k, s->own), keep));
  }
  if (s->to) return KILN_OK;
  const kl_aff *index[KILN_MAX_RANK];
  keep = within(s, keep, place, 0, kept(x) - 1);
  index_of(s, x->out, line, place, index);
  for (uint32_t leaf = 0; leaf < 2; leaf++) {
    if (x->s->slot[leaf] == KL_NONE) continue;
    for (int64_t v = 0; v < s->own; v++)
      values[v] = leaf ? kl_item_place(t, &s->b, items[v]) : kl_item_element(t, &s->b, items[v]);
    KL_TRY(kl_stage_store(&s->b, x->s->slot[leaf], index, kl_stage_beside(&s->b, values, s->k, s->own), keep));
  }
  return KILN_OK;
}

// --- lists of a vector ----------------------------------------------------------------------------------------------

// All lanes have the first of all in the end.
static void join_lanes(pass *s, kl_item *items) {
  kl_item *other = KL_NEW_N(s->b.s->c->arena, kl_item, s->own);
  kl_item_lanes l = lanes_of(s);
  for (int64_t d = s->lanes; d < s->width; d *= 2) {
    kl_items_of_lane(s->t, &l, items, s->own, d + s->lanes - 1, other);
    kl_items_join(s->t, &l, items, other, s->own, s->lanes);
  }
}

// --- lists of a block -----------------------------------------------------------------------------------------------

// Words of items of so many threads, those with the same number side by side.
static void share(pass *s, int64_t threads, uint32_t *slots) {
  kl_choosing *c = s->b.s->c;
  for (uint32_t i = 0; i < s->t->words; i++)
    slots[i] = kl_add_shared(c->cx, c->plan, &c->slots, kl_item_type(s->t, i), threads * s->own);
}

static kiln_status put(pass *s, const uint32_t *slots, int64_t threads, const kl_aff *at, const kl_item *items,
                       uint32_t keep) {
  for (int64_t v = 0; v < s->own; v++) {
    const kl_aff *place = simple(s, kl_aff_addc(s->b.s->p, at, v * threads));
    for (uint32_t i = 0; i < s->t->words; i++) KL_TRY(kl_stage_store(&s->b, slots[i], &place, items[v].word[i], keep));
  }
  return KILN_OK;
}

static void get(pass *s, const uint32_t *slots, int64_t threads, const kl_aff *at, kl_item *items) {
  for (int64_t v = 0; v < s->own; v++) {
    const kl_aff *place = simple(s, kl_aff_addc(s->b.s->p, at, v * threads));
    for (uint32_t i = 0; i < s->t->words; i++)
      items[v].word[i] = kl_stage_load(&s->b, slots[i], &place, KL_NONE, kl_item_type(s->t, i));
  }
}

// Of twice as many lists of each line as `lists` these are left, by the first threads of the block; warps of others
// have nothing to do. The last are left for good.
static kiln_status halve(pass *s, int64_t lists, int64_t threads, const uint32_t *from, const uint32_t *to) {
  kl_affs *p = s->b.s->p;
  kl_item *items = KL_NEW_N(s->b.s->c->arena, kl_item, 2 * s->own), *other = items + s->own;
  kl_item_lanes l = lanes_of(s);
  const kl_aff *at = simple(s, threads < LANES ? kl_aff_modc(p, s->lane, threads) : s->thread);
  const kl_aff *lane = kl_aff_modc(p, at, s->lanes), *list = kl_aff_floordivc(p, at, s->lanes);
  const kl_aff *line = simple(s, kl_aff_floordivc(p, list, lists));
  list = kl_aff_addmul(p, kl_aff_modc(p, list, lists), line, 2 * lists);
  uint32_t there = within(s, KL_NONE, s->warp, 0, (threads - 1) / LANES);
  uint32_t keep = threads < LANES ? within(s, there, s->lane, 0, threads - 1) : there;
  if (there != KL_NONE) kl_write_if(&s->b.w, there);
  get(s, from, 2 * threads, kl_aff_addmul(p, lane, list, s->lanes), items);
  const kl_aff *far = kl_aff_addc(p, kl_aff_mulc(p, lane, -1), s->lanes - 1);
  get(s, from, 2 * threads, kl_aff_addmul(p, far, kl_aff_addc(p, list, lists), s->lanes), other);
  kl_items_join(s->t, &l, items, other, s->own, s->lanes);
  KL_TRY(lists > 1 ? put(s, to, threads, at, items, keep) : leave(s, items, line, lane, keep));
  if (there != KL_NONE) kl_write_if_end(&s->b.w);
  return KILN_OK;
}

static kiln_status write_pass(void *arg) {
  pass *s = arg;
  kl_affs *p = s->b.s->p;
  int64_t lists = s->threads / s->lanes, threads = s->block;
  kl_item *items = KL_NEW_N(s->b.s->c->arena, kl_item, s->each);
  uint32_t slots[2][2];
  KL_TRY(look_at_all(s, items));
  if (s->host) {
    join_lanes(s, items);
    return leave(s, items, kl_aff_const(p, 0), s->lane, within(s, KL_NONE, s->lane, 0, s->lanes - 1));
  }
  if (lists == 1)
    return leave(s, items, kl_aff_floordivc(p, s->thread, s->lanes), kl_aff_modc(p, s->thread, s->lanes), KL_NONE);
  share(s, threads, slots[0]);
  if (lists > 2) share(s, threads / 2, slots[1]);
  KL_TRY(put(s, slots[0], threads, s->thread, items, KL_NONE));
  for (unsigned turn = 0; lists > 1; turn ^= 1) {
    lists /= 2;
    threads /= 2;
    KL_TRY(halve(s, lists, threads, slots[turn], slots[turn ^ 1]));
  }
  return KILN_OK;
}

// --- all passes -----------------------------------------------------------------------------------------------------

static kiln_status launch(pass *s) {
  kl_affs *p = s->b.s->p;
  kl_var_list *vars = &s->b.vars;
  int64_t in_block = s->block / s->threads;
  uint32_t var;
  s->group = kl_new_var(p, vars, KL_BIND_BLOCK, (s->lines - 1) / in_block + 1, "lines", &var);
  s->segment = kl_new_var(p, vars, KL_BIND_BLOCK, s->segments, "segment", &var);
  s->warp = kl_new_var(p, vars, KL_BIND_WARP, s->block / s->width, "warp", &var);
  s->lane = kl_new_var(p, vars, KL_BIND_LANE, s->width, "lane", &var);
  s->thread = kl_aff_addmul(p, s->lane, s->warp, s->width);
  s->round = kl_new_var(p, vars, KL_BIND_STEP, s->rounds, "round", &s->round_var);
  s->chunk = kl_new_var(p, vars, KL_BIND_REG, s->each / s->vector, "chunk", &s->chunk_var);
  s->i = kl_new_var(p, vars, KL_BIND_REG, s->vector, "i", &s->i_var);
  s->k = kl_new_var(p, vars, KL_BIND_REG, s->own, "k", &var);
  return kl_stage_write(&s->b, s->lines * s->length, write_pass, s);
}

static uint32_t *new_words(const kl_items *t, int64_t count) {
  kl_choosing *c = t->x->s->c;
  uint32_t *slots = KL_NEW_N(c->arena, uint32_t, 2);
  for (uint32_t i = 0; i < t->words; i++)
    slots[i] = kl_add_scratch(c->cx, c->plan, &c->slots, kl_item_type(t, i), count);
  return slots;
}

kiln_status kl_sort_top(const kl_sort *x) {
  kl_sort_key key;
  kl_items t;
  pass s = {.t = &t, .length = x->length, .b = {.s = x->s, .keep = KL_NONE}, .keep = power_from(kept(x))};
  if (!kl_sort_finds_key(x, &key) || !kl_items_of(x, &key, &t)) return KILN_E_INTERNAL;
  kl_stage_count_lines(x->shape, x->dim, &s.outer, &s.inner);
  s.lines = s.outer * s.inner;
  s.host = x->s->c->plan->target.machine == KL_HOST;
  s.width = lanes_of_machine(x);
  s.most = s.host ? s.width : THREADS;
  s.own = s.keep < t.each ? s.keep : t.each;
  s.lanes = s.keep / s.own;
  for (;;) {
    set_sizes(&s);
    s.to = s.segments > 1 ? new_words(&t, s.lines * s.segments * s.keep) : NULL;
    s.b = (kl_stage_body){.s = x->s, .keep = KL_NONE};
    KL_TRY(launch(&s));
    if (!s.to) return KILN_OK;
    s.from = s.to;
    s.length = s.segments * s.keep;
  }
}
