// The plan of a transposition: values are made in the order of what is read and put into a tile of shared memory; then
// taken in the order of results.
//
// An axis has a name for each of the two. Results and heroes are wanted at indices in these names; in the body's
// variables a name is a digit of its side of the tile, or of the block.

#include "lower/choose/transpose/transpose.h"

typedef struct writing {
  kl_choosing *c;
  kl_affs *p;
  const kl_transposition *t;
  const kl_dealt *d;
  bool host;
  kl_body body;
  kl_var vars[KL_MAX_VARS];
  const kl_aff *batch[KL_MOST_AXES]; // by axis: of those that are on no side
  const kl_aff *x0, *y0;             // where the tile begins
  const kl_aff *x[2], *y[2];         // in the tile: as values are made, and as they are taken
  uint32_t step[2];                  // variables of loops, on the host
  const kl_aff *named[2 * KL_MOST_AXES];
  kl_writer w;
  kl_walk walk;
  uint32_t guard[2];
  uint32_t slot[KL_MOST_HEROES];
} writing;

enum { MAKE, TAKE };
enum { WARP = 32, MOST_DIGITS = 12 };

// --- variables ------------------------------------------------------------------------------------------------------

static const kl_aff *add_var(writing *x, kl_binding binding, int64_t extent, const char *name, uint32_t *var) {
  *var = KL_NONE;
  if (extent == 1) return kl_aff_const(x->p, 0);
  x->vars[x->body.nvars] = (kl_var){binding, extent, name};
  *var = x->body.nvars++;
  return kl_aff_dim(x->p, *var);
}

static int64_t tiles_along(int64_t size, int64_t tile) {
  return size / tile + (size % tile != 0);
}

static bool is_on_side(const kl_side *s, uint32_t axis) {
  for (uint32_t i = 0; i < s->n; i++)
    if (s->axis[i] == axis) return true;
  return false;
}

static void make_blocks(writing *x) {
  uint32_t none;
  for (uint32_t i = x->t->axes.n; i-- > 0;)
    if (!is_on_side(&x->t->x, i) && !is_on_side(&x->t->y, i))
      x->batch[i] = add_var(x, KL_BIND_BLOCK, x->t->axes.size[i], "major", &none);
  const kl_aff *x0 = add_var(x, KL_BIND_BLOCK, tiles_along(x->t->x.size, x->d->tx), "tile_x", &none);
  const kl_aff *y0 = add_var(x, KL_BIND_BLOCK, tiles_along(x->t->y.size, x->d->ty), "tile_y", &none);
  x->x0 = kl_aff_mulc(x->p, x0, x->d->tx);
  x->y0 = kl_aff_mulc(x->p, y0, x->d->ty);
}

// Digits of a number, each a variable: the fastest first.
typedef struct digits {
  uint32_t n;
  int64_t place[MOST_DIGITS], end[MOST_DIGITS]; // values of the digit are multiples of its place below `end`
  const kl_aff *var[MOST_DIGITS];
} digits;

// Cuts at powers of two between `from` and `to` make digits of the numbers there; variables are added slowest first, as
// the machine has them.
static void add_digits(writing *x, digits *d, kl_binding binding, int64_t from, int64_t to, const int64_t *cuts,
                       const char *const *names) {
  uint32_t first = d->n, none;
  for (int64_t place = from, end; place < to; place = end) {
    for (end = 2 * place; end < to; end *= 2)
      if (end == cuts[0] || end == cuts[1] || end == cuts[2]) break;
    d->place[d->n] = place;
    d->end[d->n++] = end;
  }
  for (uint32_t i = d->n; i-- > first;) {
    int64_t below = d->end[i] < to ? d->end[i] : to;
    d->var[i] = add_var(x, binding, tiles_along(below, d->place[i]), names[d->n - 1 - i], &none);
  }
}

// The number's digits from place `from` on below `to`.
static const kl_aff *part_of(const writing *x, const digits *d, int64_t from, int64_t to) {
  const kl_aff *e = kl_aff_const(x->p, 0);
  for (uint32_t i = 0; i < d->n; i++)
    if (d->place[i] >= from && d->end[i] <= to) e = kl_aff_addmul(x->p, e, d->var[i], d->place[i] / from);
  return e;
}

// Unit u is group u mod (ty/v) of a row's, of rows u / (ty/v) * a; and the same of results. Threads have a digit for
// each of both, so that no variable is taken apart.
static void make_threads(writing *x) {
  static const char *const warps[] = {"warp", "warp_b", "warp_c", "warp_d"};
  static const char *const lanes[] = {"lane", "lane_b", "lane_c", "lane_d"};
  static const char *const units[] = {"unit", "unit_b", "unit_c", "unit_d"};
  static const char *const rows[] = {"row", "row_b", "row_c", "row_d"};
  const kl_dealt *d = x->d;
  kl_affs *p = x->p;
  uint32_t none;
  int64_t of_y = d->ty / d->v, of_x = d->tx / d->v2, cuts[3] = {of_y, of_x, of_x * d->v};
  digits thread = {0}, warp = {0}, make, take;
  add_digits(x, &warp, KL_BIND_WARP, WARP, d->threads, cuts, warps);
  add_digits(x, &thread, KL_BIND_LANE, 1, WARP, cuts, lanes);
  for (uint32_t i = 0; i < warp.n; i++) {
    thread.place[thread.n] = warp.place[i];
    thread.end[thread.n] = warp.end[i];
    thread.var[thread.n++] = warp.var[i];
  }
  make = take = thread;
  add_digits(x, &make, KL_BIND_REG, d->threads, d->threads * d->units, cuts, units);
  const kl_aff *a = add_var(x, KL_BIND_REG, d->a, "a", &none);
  const kl_aff *v = add_var(x, KL_BIND_REG, d->v, "v", &none);
  add_digits(x, &take, KL_BIND_REG, d->threads, d->threads * d->units2, cuts, rows);
  const kl_aff *out = add_var(x, KL_BIND_REG, d->v2, "out", &none);
  x->x[MAKE] = kl_aff_addmul(p, a, part_of(x, &make, of_y, INT64_MAX), d->a);
  x->y[MAKE] = kl_aff_addmul(p, v, part_of(x, &make, 1, of_y), d->v);
  x->x[TAKE] = kl_aff_addmul(p, out, part_of(x, &take, 1, of_x), d->v2);
  x->y[TAKE] = part_of(x, &take, of_x, INT64_MAX);
}

static void make_vectors(writing *x) {
  const kl_dealt *d = x->d;
  kl_affs *p = x->p;
  uint32_t none;
  const kl_aff *lane = add_var(x, KL_BIND_LANE, d->threads, "lane", &none);
  const kl_aff *round = add_var(x, KL_BIND_STEP, d->units, "round", &x->step[MAKE]);
  const kl_aff *round2 = add_var(x, KL_BIND_STEP, d->units2, "round_out", &x->step[TAKE]);
  const kl_aff *a = add_var(x, KL_BIND_REG, d->a, "a", &none);
  const kl_aff *along = add_var(x, KL_BIND_REG, d->ty / d->threads, "along", &none);
  const kl_aff *out = add_var(x, KL_BIND_REG, d->tx / d->threads, "out", &none);
  x->x[MAKE] = kl_aff_addmul(p, a, round, d->a);
  x->y[MAKE] = kl_aff_addmul(p, lane, along, d->threads);
  x->x[TAKE] = kl_aff_addmul(p, lane, out, d->threads);
  x->y[TAKE] = kl_aff_addmul(p, a, round2, d->a);
}

static void name_side(writing *x, const kl_side *s, const kl_aff *number, const kl_aff **named) {
  for (uint32_t i = 0; i < s->n; i++) {
    int64_t size = x->t->axes.size[s->axis[i]];
    named[s->axis[i]] = i + 1 < s->n ? kl_aff_modc(x->p, number, size) : number;
    number = kl_aff_floordivc(x->p, number, size);
  }
}

static void make_names(writing *x) {
  for (int way = MAKE; way <= TAKE; way++) {
    const kl_aff **named = x->named + way * (int)x->t->axes.n;
    memcpy(named, x->batch, x->t->axes.n * sizeof *named);
    name_side(x, &x->t->x, kl_aff_add(x->p, x->x0, x->x[way]), named);
    name_side(x, &x->t->y, kl_aff_add(x->p, x->y0, x->y[way]), named);
  }
}

static void make_vars(writing *x) {
  x->step[MAKE] = x->step[TAKE] = KL_NONE;
  make_blocks(x);
  if (x->host)
    make_vectors(x);
  else
    make_threads(x);
  make_names(x);
  x->body.vars = kl_arena_dup(x->c->arena, x->vars, x->body.nvars * sizeof *x->vars);
  x->body.blocks = kl_extent(&x->body, kl_bound(&x->body, KL_BIND_BLOCK));
  x->body.width = x->host ? (uint32_t)x->d->threads : 1;
}

// --- values ---------------------------------------------------------------------------------------------------------

static const kl_aff *name(const writing *x, int way, uint32_t axis) {
  return kl_aff_dim(x->p, x->w.guards.first_name + (uint32_t)way * x->t->axes.n + axis);
}

// e, in axes as variables, in their names.
static const kl_aff *in_names(const writing *x, int way, const kl_aff *e) {
  const kl_aff *to[KL_MOST_AXES];
  for (uint32_t i = 0; i < x->t->axes.n; i++) to[i] = name(x, way, i);
  kl_aff_replace(x->p, &(kl_aff_subst){.to = {to}, .n = {x->t->axes.n}}, &e, 1, &e);
  return kl_dom_simplify(x->body.domain, e);
}

static const kl_aff **hero_index(const writing *x, const kl_hero *h, int way) {
  const kl_aff **index = KL_NEW_N(x->c->arena, const kl_aff *, h->rank + 1);
  for (uint32_t i = 0; i < h->rank; i++) index[i] = in_names(x, way, h->index[i]);
  return index;
}

static void make_guards(writing *x) {
  bool never;
  for (int way = MAKE; way <= TAKE; way++) {
    const kl_aff *all_x = kl_aff_add(x->p, x->x0, x->x[way]), *all_y = kl_aff_add(x->p, x->y0, x->y[way]);
    uint32_t guard = kl_guard_and(&x->w.guards, KL_NONE, all_x, 0, x->t->x.size - 1, &never);
    x->guard[way] = kl_guard_and(&x->w.guards, guard, all_y, 0, x->t->y.size - 1, &never);
  }
}

// A result, of the elements that are made, or taken.
static kiln_status store_result(writing *x, uint32_t root, int way) {
  const kl_transposition *t = x->t;
  uint32_t slot = x->c->slots.nargs - t->nroots + root, step;
  const kl_shape *s = x->c->slots.v.p[slot].shape;
  const kl_aff *number = kl_aff_const(x->p, 0), *at = number;
  const kl_aff **index = KL_NEW_N(x->c->arena, const kl_aff *, s->rank + 1);
  for (uint32_t i = 0; i < t->axes.n; i++) {
    int64_t place = way == MAKE ? t->stride[i] : t->axes.place[i];
    number = kl_aff_addmul(x->p, number, name(x, way, i), place);
    at = kl_aff_addmul(x->p, at, x->named[(uint32_t)way * t->axes.n + i], place);
  }
  kl_index_at(x->p, s, number, index);
  for (uint32_t i = 0; i < s->rank; i++) index[i] = kl_dom_simplify(x->body.domain, index[i]);
  KL_TRY(kl_walk_want(&x->walk, x->c->plan->comp->root, root, x->guard[way], index, &step));
  kl_write_store(&x->w, slot, &x->c->slots.v.p[slot], at, step, x->guard[way]);
  return KILN_OK;
}

static kiln_status store_results(writing *x, int way) {
  for (uint32_t r = 0; r < x->t->nroots; r++)
    if (x->t->early[r] == (way == MAKE)) KL_TRY(store_result(x, r, way));
  return KILN_OK;
}

static const kl_aff *place(writing *x, uint32_t hero, int way) {
  return kl_tile_place(x->p, x->d, hero, x->host, x->x[way], x->y[way]);
}

// Lanes of a vector do not share bytes; a thread of a GPU puts several elements of a row.
static kl_dtype type_in_tile(const writing *x, uint32_t hero) {
  kl_dtype t = x->t->hero[hero].dtype;
  return x->host ? kl_in_bytes(t) : t;
}

static uint32_t converted(writing *x, uint32_t step, kl_dtype to) {
  if (x->w.steps.p[step].dtype == to) return step;
  return kl_write_op(&x->w, (kl_plan_op){.op = KL_OP_CONVERT}, to, 1, &step);
}

// Of an only tile that is not full, some registers never hold what there is: what they would have read is left out.
static uint32_t filled(writing *x, uint32_t hero, uint32_t step) {
  if (x->t->x.size >= x->d->tx && x->t->y.size >= x->d->ty) return step;
  return kl_write_choose(&x->w, x->guard[MAKE], step, kl_write_scalar(&x->w, x->t->hero[hero].dtype, 0, 0));
}

// The whole tile is put, so that whoever takes needs no guard.
static kiln_status put(writing *x) {
  uint32_t step[KL_MOST_HEROES];
  for (uint32_t i = 0; i < x->t->nheroes; i++) {
    const kl_hero *h = &x->t->hero[i];
    KL_TRY(kl_walk_want(&x->walk, h->instr, h->leaf, x->guard[MAKE], hero_index(x, h, MAKE), &step[i]));
  }
  for (uint32_t i = 0; i < x->t->nheroes; i++)
    kl_write_store(&x->w, x->slot[i], &x->c->slots.v.p[x->slot[i]], place(x, i, MAKE),
                   converted(x, filled(x, i, step[i]), type_in_tile(x, i)), KL_NONE);
  return KILN_OK;
}

static void take(writing *x) {
  for (uint32_t i = 0; i < x->t->nheroes; i++) {
    const kl_hero *h = &x->t->hero[i];
    uint32_t step = kl_write_load(&x->w, x->slot[i], &x->c->slots.v.p[x->slot[i]], place(x, i, TAKE), KL_NONE, NULL);
    kl_walk_share(&x->walk, h->instr, h->leaf, hero_index(x, h, TAKE), converted(x, step, h->dtype));
  }
}

static void open_loop(writing *x, int way) {
  if (x->step[way] != KL_NONE) kl_write_loop(&x->w, x->step[way], 0, NULL, NULL, NULL);
}

static void close_loop(writing *x, int way) {
  if (x->step[way] != KL_NONE) kl_write_loop_end(&x->w, NULL);
}

static kiln_status write_body(writing *x) {
  for (uint32_t i = 0; i < x->t->nheroes; i++)
    x->slot[i] =
        kl_add_shared(x->c->cx, x->c->plan, &x->c->slots, type_in_tile(x, i), kl_tile_elements(x->d, i, x->host));
  make_guards(x);
  open_loop(x, MAKE);
  KL_TRY(put(x));
  KL_TRY(store_results(x, MAKE));
  close_loop(x, MAKE);
  open_loop(x, TAKE);
  take(x);
  KL_TRY(store_results(x, TAKE));
  close_loop(x, TAKE);
  return KILN_OK;
}

// --- the plan -------------------------------------------------------------------------------------------------------

static void begin(writing *x) {
  const kl_transposition *t = x->t;
  int64_t sizes[2 * KL_MOST_AXES];
  for (uint32_t i = 0; i < t->axes.n; i++) sizes[i] = sizes[t->axes.n + i] = t->axes.size[i];
  kl_write_begin_naming(&x->w, x->c->cx, x->c->plan, &x->body, 2 * t->axes.n, sizes);
  kl_walk_begin(&x->walk, x->c->cx, x->c->plan, &x->c->slots, &x->w);
  x->walk.named = x->named;
  x->walk.nnamed = 2 * t->axes.n;
}

static void end(writing *x) {
  kl_plan *p = x->c->plan;
  kl_write_end(&x->w);
  p->count = 1;
  for (uint32_t i = 0; i < x->t->axes.n; i++) p->count *= x->t->axes.size[i];
  kl_last_launch(p)->block = x->host ? 1 : (uint32_t)x->d->threads;
  kl_plan_add_part(
      p,
      &(kl_part){
          .dim = KL_NONE, .count = p->count, .main = x->body, .blocks = x->body.blocks, .main_blocks = x->body.blocks});
}

kiln_status kl_write_transposition(kl_choosing *c, const kl_transposition *t, const kl_dealt *d, const char **why_not) {
  writing x = {.c = c, .p = c->plan->affs, .t = t, .d = d, .host = c->plan->target.machine == KL_HOST};
  make_vars(&x);
  if (!x.host && x.body.blocks > INT32_MAX) {
    *why_not = "it would need more than 2^31-1 blocks";
    return KILN_OK;
  }
  begin(&x);
  kiln_status st = write_body(&x);
  kl_walk_free(&x.walk);
  if (st == KILN_OK && x.w.splits_bytes) *why_not = "results of several threads would share a byte";
  if (st == KILN_OK && !*why_not)
    end(&x);
  else
    kl_write_free(&x.w);
  return st;
}

kiln_status kl_choose_transposition(kl_choosing *c, const char **why_not) {
  kl_transposition t;
  kl_dealt d;
  *why_not = "";
  if (c->plan->counted) return KILN_OK;
  KL_TRY(kl_find_transposition(c, &t, why_not));
  if (*why_not || !kl_choose_tile(c, &t, &d, why_not)) return KILN_OK;
  return kl_write_transposition(c, &t, &d, why_not);
}
