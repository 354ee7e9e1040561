// What is read across the order of results.

#include "lower/choose/transpose/transpose.h"

// Less than so many bytes, read again and again, lie in a cache of the multiprocessor; and a tile has to pay for its
// sync.
enum { LEAST_BYTES = 4096 };

// --- loads in axes --------------------------------------------------------------------------------------------------

// Something that is loaded: its place is `first` and what symbols add, and stride[i] for each of axis i.
typedef struct load {
  uint32_t node; // of the look
  uint32_t bits;
  bool plain; // it is such a sum
  int64_t first, stride[KL_MOST_AXES];
  int64_t steps; // what symbols may add are multiples of this; 0: nothing
  int64_t bytes; // of all elements that are read
} load;

typedef struct finding {
  kl_choosing *c;
  kl_transposition *t;
  kl_sights sights;
  VEC(load) loads;
  bool *across, *along; // by node: of what it is made, something is read across and can be a tile's; else, and large
  bool *visited;
  int64_t count; // elements of each result
} finding;

static uint32_t bits_of(kl_dtype t) {
  return kl_info(t)->bits;
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a < 0 ? -a : a;
}

static void read_load(const kl_axes *axes, const kl_seen *s, uint32_t node, load *out) {
  *out = (load){.node = node, .bits = bits_of(s->dtype), .plain = !s->place->error, .first = s->place->c};
  int64_t elements = 1;
  for (uint32_t i = 0; i < s->place->n; i++) {
    const kl_aff_term *t = &s->place->terms[i];
    if (t->atom->kind == KL_AFF_DIM)
      out->stride[t->atom->var] = t->coef;
    else if (t->atom->kind == KL_AFF_RT)
      out->steps = gcd(out->steps, t->coef);
    else
      out->plain = false;
  }
  for (uint32_t i = 0; i < axes->n; i++)
    if (out->stride[i]) elements *= axes->size[i];
  out->bytes = elements > INT64_MAX / 128 ? INT64_MAX : elements * out->bits / 8;
}

// --- axes -----------------------------------------------------------------------------------------------------------

// Takes floor(L/k) into the places of digits of L; false where they would be none any more.
static bool add_place(kl_axes *a, int64_t count, int64_t k) {
  uint32_t at = 0;
  while (at < a->n && a->place[at] < k) at++;
  if (at < a->n && a->place[at] == k) return true;
  if (a->n == KL_MOST_AXES || count % k || k % a->place[at - 1] || (at < a->n && a->place[at] % k)) return false;
  for (uint32_t i = a->n; i > at; i--) a->place[i] = a->place[i - 1];
  a->place[at] = k;
  a->n++;
  return true;
}

// All places of a load, or none.
static void add_places(kl_axes *a, int64_t count, const kl_aff *place) {
  kl_axes more = *a;
  for (uint32_t i = 0; i < place->n; i++) {
    const kl_aff_atom *at = place->terms[i].atom;
    if (at->kind == KL_AFF_DIM || at->kind == KL_AFF_RT) continue;
    bool digit = at->kind == KL_AFF_FLOOR && kl_aff_is_var(at->arg[0]) && at->arg[0]->terms[0].atom->kind == KL_AFF_DIM;
    if (!digit || !add_place(&more, count, at->k)) return;
  }
  *a = more;
}

// At the element of a result with a number, which variables make up.
static void look_at(finding *f, uint32_t nvars, const int64_t *extents, const kl_aff *number, uint32_t root,
                    kl_look *at) {
  kl_choosing *c = f->c;
  const kl_shape *s = c->slots.v.p[c->slots.nargs - f->t->nroots + root].shape;
  const kl_aff **index = KL_NEW_N(c->arena, const kl_aff *, s->rank + 1);
  kl_dom *d = NULL;
  kl_interval in[KL_MOST_AXES];
  for (uint32_t i = 0; i < nvars; i++) in[i] = (kl_interval){0, extents[i] - 1};
  d = kl_dom_make(c->plan->affs, nvars, in);
  kl_index_at(c->plan->affs, s, number, index);
  for (uint32_t i = 0; i < s->rank; i++) index[i] = kl_dom_simplify(d, index[i]);
  *at = (kl_look){.instr = c->plan->comp->root, .leaf = root, .index = index};
}

static kiln_status look_at_results(finding *f, uint32_t nvars, const int64_t *extents, const kl_aff *number,
                                   kl_look *looks) {
  f->sights.v.n = 0;
  for (uint32_t r = 0; r < f->t->nroots; r++) look_at(f, nvars, extents, number, r, &looks[r]);
  return kl_walk_look(f->c->cx, f->c->plan, &f->c->slots, nvars, extents, f->t->nroots, looks, &f->sights);
}

static kiln_status find_axes(finding *f, kl_look *looks) {
  kl_plan *p = f->c->plan;
  kl_axes *a = &f->t->axes;
  *a = (kl_axes){.n = 1, .place = {1}};
  KL_TRY(look_at_results(f, 1, &f->count, kl_aff_dim(p->affs, 0), looks));
  for (size_t i = 0; i < f->sights.v.n; i++)
    if (f->sights.v.p[i].place) add_places(a, f->count, f->sights.v.p[i].place);
  for (uint32_t i = 0; i < a->n; i++) a->size[i] = (i + 1 < a->n ? a->place[i + 1] : f->count) / a->place[i];
  return KILN_OK;
}

static const kl_aff *number_of(kl_affs *p, const kl_axes *a, const int64_t *place) {
  const kl_aff *e = kl_aff_const(p, 0);
  for (uint32_t i = 0; i < a->n; i++) e = kl_aff_addmul(p, e, kl_aff_dim(p, i), place[i]);
  return e;
}

// --- sectors --------------------------------------------------------------------------------------------------------

enum { WARP = 32, MOST_AT_ONCE = 128 };

static int64_t place_of(const kl_axes *a, const uint32_t *order, const int64_t *stride, int64_t number) {
  int64_t at = 0;
  for (uint32_t i = 0; i < a->n && number; i++) {
    uint32_t axis = order[i];
    int64_t size = a->size[axis];
    at += stride[axis] * (number % size);
    number /= size;
  }
  return at;
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

int64_t kl_sectors_in_order(const kl_axes *a, const uint32_t *order, const int64_t *stride, uint32_t bits, int64_t v) {
  int64_t sectors = 0, all = 1;
  for (uint32_t i = 0; i < a->n; i++) all *= a->size[i];
  int64_t lanes = all / v < WARP ? all / v : WARP;
  if (lanes == 0) return 0;
  bool together = stride[order[0]] == 1 && a->size[order[0]] % v == 0;
  for (int64_t i = 0; i < (together ? 1 : v); i++) {
    int64_t seen[WARP];
    uint32_t n = 0;
    for (int64_t lane = 0; lane < lanes; lane++) {
      int64_t bit = place_of(a, order, stride, lane * v + i) * (int64_t)bits, sector = floor_div(bit, 256);
      bool known = false;
      for (uint32_t k = n; k-- > 0 && !known;) known = seen[k] == sector;
      if (!known) seen[n++] = sector;
    }
    sectors += n;
    if (together && v * bits > 256) sectors += n * (v * bits / 256 - 1);
  }
  return sectors * 1024 / (lanes * v);
}

static int64_t at_once(uint32_t bits) {
  return bits < MOST_AT_ONCE ? MOST_AT_ONCE / bits : 1;
}

static int64_t in_results_order(const finding *f, const load *l) {
  uint32_t order[KL_MOST_AXES];
  for (uint32_t i = 0; i < f->t->axes.n; i++) order[i] = i;
  return kl_sectors_in_order(&f->t->axes, order, l->stride, l->bits, at_once(l->bits));
}

static int64_t dividing(int64_t v, int64_t n) {
  while (v > 1 && n % v) v /= 2;
  return v;
}

// Along Y, then X; lanes take as many neighbours as every row along Y divides.
static int64_t in_tile_order(const finding *f, const load *l, const kl_side *x, const kl_side *y) {
  uint32_t order[KL_MOST_AXES], n = 0;
  bool used[KL_MOST_AXES] = {false};
  for (uint32_t i = 0; i < y->n; i++) order[n++] = y->axis[i], used[y->axis[i]] = true;
  for (uint32_t i = 0; i < x->n; i++) order[n++] = x->axis[i], used[x->axis[i]] = true;
  for (uint32_t i = 0; i < f->t->axes.n; i++)
    if (!used[i]) order[n++] = i;
  int64_t v = dividing(at_once(l->bits), f->t->axes.size[order[0]]);
  return kl_sectors_in_order(&f->t->axes, order, l->stride, l->bits, v);
}

// --- the tile's sides -----------------------------------------------------------------------------------------------

enum { ROW_BITS = 2048, SECTOR_BITS = 256 }; // a tile's rows are to have so much

static bool has_axis(const kl_side *s, uint32_t axis) {
  for (uint32_t i = 0; i < s->n; i++)
    if (s->axis[i] == axis) return true;
  return false;
}

static void add_axis(const kl_axes *a, kl_side *s, uint32_t axis) {
  s->size *= a->size[axis];
  s->axis[s->n++] = axis;
}

// The axis whose stride is `stride`; KL_NONE: none.
static uint32_t axis_of_stride(const kl_axes *a, const load *l, int64_t stride) {
  for (uint32_t i = 0; i < a->n; i++)
    if (a->size[i] > 1 && l->stride[i] == stride) return i;
  return KL_NONE;
}

// The axis that goes on where a side ends; KL_NONE: none, or the other has it.
static uint32_t next_axis(const kl_axes *a, const load *l, const kl_side *s, const kl_side *other, bool read) {
  uint32_t next = read ? axis_of_stride(a, l, s->size) : s->n;
  return next >= a->n || has_axis(other, next) || has_axis(s, next) ? KL_NONE : next;
}

// X from the results' fastest axis on, Y from the load's, the shorter one first as far as rows go; false where these
// are one.
static bool find_sides(const finding *f, const load *l, kl_side *x, kl_side *y) {
  const kl_axes *a = &f->t->axes;
  uint32_t fastest = axis_of_stride(a, l, 1);
  *x = *y = (kl_side){.size = 1};
  if (!l->plain || !l->stride[0] || fastest == KL_NONE || fastest == 0) return false;
  add_axis(a, x, 0);
  add_axis(a, y, fastest);
  for (;;) {
    uint32_t of_x = x->size * l->bits < ROW_BITS ? next_axis(a, l, x, y, false) : KL_NONE;
    uint32_t of_y = y->size * l->bits < ROW_BITS ? next_axis(a, l, y, x, true) : KL_NONE;
    if (of_x == KL_NONE && of_y == KL_NONE) return true;
    if (of_y == KL_NONE || (of_x != KL_NONE && x->size <= y->size))
      add_axis(a, x, of_x);
    else
      add_axis(a, y, of_y);
  }
}

// Is it read across, and does the tile read it along? By at least half as many sectors again.
static bool gains(const finding *f, const load *l, const kl_side *x, const kl_side *y, int64_t *gain) {
  int64_t before = in_results_order(f, l), after = in_tile_order(f, l, x, y);
  *gain = before - after;
  return 2 * before >= 3 * after && l->bytes >= LEAST_BYTES;
}

static bool is_along_tile(const finding *f, const load *l) {
  int64_t gain;
  return l->plain && l->stride[f->t->y.axis[0]] == 1 && l->stride[0] != 1 && gains(f, l, &f->t->x, &f->t->y, &gain);
}

// What all loads gain that lie along a tile.
static int64_t gain_of_all(const finding *f, const kl_side *x, const kl_side *y) {
  int64_t sum = 0, gain;
  for (size_t i = 0; i < f->loads.n; i++) {
    const load *l = &f->loads.p[i];
    if (l->plain && l->stride[y->axis[0]] == 1 && l->stride[0] != 1 && gains(f, l, x, y, &gain))
      sum += gain * (l->bytes < INT64_MAX >> 20 ? l->bytes >> 8 : INT64_MAX >> 28);
  }
  return sum;
}

// The load whose tile gains most, of all loads together; NULL: none does.
static const load *find_primary(finding *f) {
  const load *best = NULL;
  int64_t most = 0;
  for (size_t i = 0; i < f->loads.n; i++) {
    kl_side x, y;
    if (!find_sides(f, &f->loads.p[i], &x, &y)) continue;
    int64_t gain = gain_of_all(f, &x, &y);
    if (gain <= most) continue;
    most = gain;
    best = &f->loads.p[i];
    f->t->x = x;
    f->t->y = y;
  }
  return best;
}

// Why no load is worth a tile, "" where none is read across.
static const char *why_none(const finding *f) {
  for (size_t i = 0; i < f->loads.n; i++) {
    const load *l = &f->loads.p[i];
    kl_side x, y;
    bool runs = l->plain && l->stride[0] == 1 && f->t->axes.size[0] * l->bits < SECTOR_BITS;
    if (runs && 2 * in_results_order(f, l) * SECTOR_BITS >= 3 * 1024 * (int64_t)l->bits)
      return "neighbours that it keeps are less than a sector, but no single element";
    if (l->bytes < LEAST_BYTES && find_sides(f, l, &x, &y) &&
        2 * in_results_order(f, l) >= 3 * in_tile_order(f, l, &x, &y))
      return "what is read across takes less than 4096 bytes";
  }
  return "";
}

// --- heroes ---------------------------------------------------------------------------------------------------------

static bool is_pure(const finding *f, uint32_t node) {
  return f->across[node] && !f->along[node];
}

// Marks what nodes are made of, operands first.
static void mark(finding *f, uint32_t root) {
  VEC(uint32_t) stack = {0};
  VEC_PUSH(f->c->cx, &stack, root);
  while (stack.n) {
    uint32_t n = stack.p[stack.n - 1];
    const kl_seen *s = &f->sights.v.p[n];
    bool ready = true;
    for (uint32_t i = 0; i < s->nneeds; i++) {
      if (f->visited[s->needs[i]]) continue;
      VEC_PUSH(f->c->cx, &stack, s->needs[i]);
      ready = false;
    }
    if (!ready) continue;
    for (uint32_t i = 0; i < s->nneeds; i++) {
      f->across[n] |= f->across[s->needs[i]];
      f->along[n] |= f->along[s->needs[i]];
    }
    f->visited[n] = true;
    stack.n--;
  }
  VEC_FREE(f->c->cx, &stack);
}

static bool can_be_hero(const finding *f, uint32_t node) {
  const kl_seen *s = &f->sights.v.p[node];
  if (s->frame || s->guard != KL_NONE || s->dtype == KILN_TUPLE) return false;
  for (uint32_t i = 0; i < s->rank; i++)
    if (kl_has_symbols(s->index[i])) return false;
  return true;
}

// The one value behind another that is read across, KL_NONE: several are.
static uint32_t next_on_way(const finding *f, uint32_t node) {
  const kl_seen *s = &f->sights.v.p[node];
  uint32_t next = KL_NONE;
  for (uint32_t i = 0; i < s->nneeds; i++) {
    if (!f->across[s->needs[i]] || s->needs[i] == next) continue;
    if (next != KL_NONE) return KL_NONE;
    next = s->needs[i];
  }
  return next != KL_NONE && is_pure(f, next) ? next : KL_NONE;
}

// What takes least of a tile on the way from a value to what is read: the narrowest, and rather one that others come by
// as well. `through`: by node, how many come by it.
static uint32_t best_on_way(const finding *f, uint32_t node, const uint32_t *through) {
  uint32_t best = node;
  for (uint32_t at = next_on_way(f, node); at != KL_NONE; at = next_on_way(f, at)) {
    const kl_seen *a = &f->sights.v.p[at], *b = &f->sights.v.p[best];
    if (can_be_hero(f, at) && bits_of(a->dtype) * through[best] < bits_of(b->dtype) * through[at]) best = at;
  }
  return best;
}

static bool add_hero(finding *f, uint32_t node) {
  kl_transposition *t = f->t;
  const kl_seen *s = &f->sights.v.p[node];
  for (uint32_t i = 0; i < t->nheroes; i++)
    if (t->hero[i].index == s->index) return true;
  if (t->nheroes == KL_MOST_HEROES) return false;
  t->hero[t->nheroes++] = (kl_hero){s->instr, s->leaf, s->rank, s->index, s->dtype};
  return true;
}

typedef VEC(uint32_t) numbers;

// The last values before results that are made of nothing but what is read across.
static void find_last(finding *f, const kl_look *looks, numbers *last) {
  numbers stack = {0};
  bool *been = KL_NEW_N(f->c->arena, bool, f->sights.v.n + 1);
  for (uint32_t r = f->t->nroots; r-- > 0;) VEC_PUSH(f->c->cx, &stack, looks[r].seen);
  while (stack.n) {
    uint32_t n = stack.p[--stack.n];
    const kl_seen *s = &f->sights.v.p[n];
    if (been[n] || !f->across[n]) continue;
    been[n] = true;
    if (is_pure(f, n) && can_be_hero(f, n))
      VEC_PUSH(f->c->cx, last, n);
    else
      for (uint32_t i = s->nneeds; i-- > 0;) VEC_PUSH(f->c->cx, &stack, s->needs[i]);
  }
  VEC_FREE(f->c->cx, &stack);
}

// False: too many.
static bool find_heroes(finding *f, const kl_look *looks) {
  numbers last = {0};
  bool few = true;
  uint32_t *through = KL_NEW_N(f->c->arena, uint32_t, f->sights.v.n + 1);
  find_last(f, looks, &last);
  for (size_t i = 0; i < last.n; i++)
    for (uint32_t at = last.p[i]; at != KL_NONE; at = next_on_way(f, at)) through[at]++;
  for (size_t i = 0; i < last.n && few; i++) few = add_hero(f, best_on_way(f, last.p[i], through));
  VEC_FREE(f->c->cx, &last);
  return few;
}

static void read_loads(finding *f) {
  f->loads.n = 0;
  for (uint32_t i = 0; i < f->sights.v.n; i++) {
    load l;
    if (!f->sights.v.p[i].place) continue;
    read_load(&f->t->axes, &f->sights.v.p[i], i, &l);
    VEC_PUSH(f->c->cx, &f->loads, l);
  }
}

static void mark_loads(finding *f) {
  size_t n = f->sights.v.n;
  f->across = KL_NEW_N(f->c->arena, bool, n + 1);
  f->along = KL_NEW_N(f->c->arena, bool, n + 1);
  f->visited = KL_NEW_N(f->c->arena, bool, n + 1);
  for (size_t i = 0; i < f->loads.n; i++) {
    const load *l = &f->loads.p[i];
    f->across[l->node] = is_along_tile(f, l);
    f->along[l->node] = !f->across[l->node] && (!l->plain || l->bytes >= LEAST_BYTES);
  }
}

// --- results in the other order -------------------------------------------------------------------------------------

// Do the strides number as many elements as there are?
static bool is_dense(const kl_axes *a, const int64_t *stride) {
  int64_t below = 1;
  for (uint32_t done = 0; done < a->n; done++) {
    uint32_t at = 0;
    while (at < a->n && !(a->size[at] > 1 && stride[at] == below)) at++;
    if (at == a->n) break;
    below *= a->size[at];
  }
  int64_t all = 1;
  for (uint32_t i = 0; i < a->n; i++) all *= a->size[i];
  return below == all;
}

// Sectors of what a result reads in an order, but for what heroes read anyhow.
static int64_t reads_of(const finding *f, const load *across, size_t nacross, bool early) {
  int64_t sum = 0;
  for (size_t i = 0; i < f->loads.n; i++) {
    const load *l = &f->loads.p[i];
    bool had = false;
    for (size_t k = 0; k < nacross && !had; k++)
      had = l->bits == across[k].bits && l->plain && l->first == across[k].first &&
            memcmp(l->stride, across[k].stride, f->t->axes.n * sizeof *l->stride) == 0;
    if (had || l->bytes < LEAST_BYTES) continue;
    sum += early ? in_tile_order(f, l, &f->t->x, &f->t->y) : in_results_order(f, l);
  }
  return sum;
}

// A result is made early where that reads less.
static kiln_status find_early(finding *f) {
  kl_transposition *t = f->t;
  kl_affs *p = f->c->plan->affs;
  VEC(load) across = {0};
  kiln_status st = KILN_OK;
  for (size_t i = 0; i < f->loads.n; i++)
    if (f->across[f->loads.p[i].node]) VEC_PUSH(f->c->cx, &across, f->loads.p[i]);
  for (uint32_t r = 0; r < t->nroots && t->nroots > 1 && st == KILN_OK && is_dense(&t->axes, t->stride); r++) {
    int64_t reads[2];
    for (int early = 0; early < 2 && st == KILN_OK; early++) {
      kl_look at;
      f->sights.v.n = 0;
      look_at(f, t->axes.n, t->axes.size, number_of(p, &t->axes, early ? t->stride : t->axes.place), r, &at);
      st = kl_walk_look(f->c->cx, f->c->plan, &f->c->slots, t->axes.n, t->axes.size, 1, &at, &f->sights);
      read_loads(f);
      reads[early] = reads_of(f, across.p, across.n, early);
    }
    t->early[r] = st == KILN_OK && reads[1] < reads[0];
  }
  VEC_FREE(f->c->cx, &across);
  return st;
}

// --- neighbours at once ---------------------------------------------------------------------------------------------

// So many results side by side lie in one piece, on every row.
static int64_t aligned_in(const kl_axes *a, const kl_side *s, const int64_t *stride, int64_t v) {
  v = dividing(v, s->size);
  for (uint32_t i = 0; i < a->n; i++)
    if (!has_axis(s, i)) v = dividing(v, stride[i]);
  return v;
}

static int64_t within_alignment(int64_t v, uint32_t bits, uint32_t align) {
  while (v > 1 && v * bits > 8 * (int64_t)align) v /= 2;
  return v;
}

static void find_neighbours_read(finding *f) {
  kl_transposition *t = f->t;
  const kl_slots *slots = &f->c->slots;
  t->v_in = MOST_AT_ONCE;
  for (size_t i = 0; i < f->loads.n; i++) {
    const load *l = &f->loads.p[i];
    uint32_t slot = f->sights.v.p[l->node].slot;
    if (!f->across[l->node]) continue;
    if (at_once(l->bits) < t->v_in) t->v_in = at_once(l->bits);
    if (l->bits > t->bits_in) t->bits_in = l->bits;
    t->v_in = dividing(dividing(aligned_in(&t->axes, &t->y, l->stride, t->v_in), l->first), l->steps);
    if (slot != KL_NONE) t->v_in = within_alignment(t->v_in, l->bits, slots->v.p[slot].align);
  }
}

static void find_neighbours_written(finding *f) {
  kl_transposition *t = f->t;
  const kl_slots *slots = &f->c->slots;
  t->v_out = MOST_AT_ONCE;
  for (uint32_t i = 0; i < t->nheroes; i++)
    if (at_once(bits_of(t->hero[i].dtype)) < t->v_out) t->v_out = at_once(bits_of(t->hero[i].dtype));
  for (uint32_t r = 0; r < t->nroots; r++) {
    const kl_slot_info *s = &slots->v.p[slots->nargs - t->nroots + r];
    uint32_t bits = bits_of(s->shape->dtype);
    int64_t *v = t->early[r] ? &t->v_in : &t->v_out;
    if (at_once(bits) < *v) *v = at_once(bits);
    *v = aligned_in(&t->axes, t->early[r] ? &t->y : &t->x, t->early[r] ? t->stride : t->axes.place, *v);
    *v = within_alignment(*v, bits, s->align);
  }
}

// --- all of it ------------------------------------------------------------------------------------------------------

static bool is_default_order(const kl_shape *s) {
  for (uint32_t i = 0; i < s->rank; i++)
    if (kl_shape_minor_to_major(s, i) != s->rank - 1 - i) return false;
  return true;
}

static bool is_rising(const kl_instr *in) {
  for (uint32_t i = 1; i < in->ndims; i++)
    if (in->dims[i] < in->dims[i - 1]) return false;
  return true;
}

// Other ops, reshapes among them, leave dimensions in their order.
static bool turns(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    kl_op_kind k = kl_op_table[in->op].kind;
    if (in->ncalled || k == KL_KIND_TRANSPOSE || k == KL_KIND_BITCAST || k == KL_KIND_GATHER) return true;
    if (k == KL_KIND_BROADCAST && !is_rising(in)) return true;
  }
  return false;
}

// May what is read, and results, have their dimensions in other orders?
static bool may_transpose(const kl_choosing *c) {
  for (uint32_t i = 0; i < c->slots.nargs; i++)
    if (!is_default_order(c->slots.v.p[i].shape)) return true;
  return turns(c->plan->comp);
}

static bool is_one_size(const kl_choosing *c, uint32_t nroots, int64_t *count) {
  for (uint32_t r = 0; r < nroots; r++) {
    int64_t n = c->slots.v.p[c->slots.nargs - nroots + r].shape->count;
    if (r && n != *count) return false;
    *count = n;
  }
  return nroots > 0 && *count > 0;
}

static kiln_status find(finding *f, const char **why_not) {
  kl_transposition *t = f->t;
  kl_look *looks = KL_NEW_N(f->c->arena, kl_look, t->nroots);
  KL_TRY(find_axes(f, looks));
  if (t->axes.n < 2) return KILN_OK;
  kl_affs *p = f->c->plan->affs;
  KL_TRY(look_at_results(f, t->axes.n, t->axes.size, number_of(p, &t->axes, t->axes.place), looks));
  read_loads(f);
  const load *primary = find_primary(f);
  *why_not = primary ? "" : why_none(f);
  if (!primary) return KILN_OK;
  memcpy(t->stride, primary->stride, sizeof t->stride);
  mark_loads(f);
  t->early = KL_NEW_N(f->c->arena, bool, t->nroots);
  for (uint32_t r = 0; r < t->nroots; r++) mark(f, looks[r].seen);
  bool few = find_heroes(f, looks);
  if (t->nheroes) *why_not = few ? NULL : "more than 8 values are read across the order of results";
  if (*why_not) return KILN_OK;
  find_neighbours_read(f);
  KL_TRY(find_early(f));
  find_neighbours_written(f);
  return KILN_OK;
}

kiln_status kl_find_transposition(kl_choosing *c, kl_transposition *out, const char **why_not) {
  finding f = {.c = c, .t = out};
  *out = (kl_transposition){.nroots = (uint32_t)kl_shape_leaf_count(kl_root(c->plan->comp)->shape)};
  *why_not = "";
  if (!may_transpose(c) || !is_one_size(c, out->nroots, &f.count)) return KILN_OK;
  kiln_status st = find(&f, why_not);
  VEC_FREE(c->cx, &f.sights.v);
  VEC_FREE(c->cx, &f.loads);
  return st;
}
