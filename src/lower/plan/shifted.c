// Loads of elements that lie across the vectors of memory: of neighbours, rows that begin anywhere.
//
// A thread's elements are V neighbours, and so many lie in each vector. Where they begin `shift` elements behind one,
// the lanes of a warp have vectors side by side, and each takes what it wants of its own and of the next lane's; the
// last lane, whose next is another warp's, loads that vector. So a warp asks for each sector once, and for one more.
//
// A shift may be the same everywhere, or the same in each warp: then selects take the elements, by halves.

#include "lower/plan/shifted.h"

enum { VECTOR_BYTES = 16, WARP = 32, MOST_SHUFFLES = 8, MOST_ELEMENTS = 16 };

typedef struct shifted {
  kl_writer *w;
  uint32_t slot;
  const kl_slot_info *info;
  const kl_instr *from;
  uint32_t run, lane, n; // n: elements of a vector
  const kl_aff *vector;  // of the warp: number of the vector that its first element lies in
  const kl_aff *shift;   // elements of it before that one
} shifted;

static uint32_t only_var(kl_vars vars) {
  return vars && !(vars & (vars - 1)) ? (uint32_t)__builtin_ctz(vars) : KL_NONE;
}

static bool uses(const kl_aff *e, uint32_t var) {
  bool inside = false;
  return kl_aff_uses(e, var, &inside);
}

// The variable of neighbouring threads, of a body that has but one.
static uint32_t find_lane(const kl_body *b) {
  uint32_t lane = only_var(kl_bound(b, b->threads ? KL_BIND_THREAD : KL_BIND_LANE));
  return lane != KL_NONE && (b->threads || b->vars[lane].extent == WARP) ? lane : KL_NONE;
}

// Is the place n * lane + run, and the same for a warp beside that?
static bool find_shift(shifted *x, const kl_aff *place) {
  const kl_body *b = x->w->body;
  kl_affs *p = x->w->plan->affs;
  uint32_t bits = kl_info(x->info->shape->dtype)->bits;
  x->lane = find_lane(b);
  if (x->lane == KL_NONE) return false;
  kl_vars regs = kl_vars_of(b, place) & kl_bound(b, KL_BIND_REG);
  for (uint32_t v = b->nvars; v-- > 0;)
    if (kl_has_var(regs, v) && kl_aff_coef(place, v) == 1) x->run = v;
  if (x->run == KL_NONE) return false;
  x->n = (uint32_t)b->vars[x->run].extent;
  if (x->n < 2 || x->n > MOST_ELEMENTS || x->n & (x->n - 1) || bits < 8 || x->n * bits > VECTOR_BYTES * 8) return false;
  if (kl_aff_coef(place, x->lane) != x->n) return false;
  const kl_aff *first = kl_aff_addmul(p, place, kl_aff_dim(p, x->lane), -(int64_t)x->n);
  first = kl_aff_sub(p, first, kl_aff_dim(p, x->run));
  if (!kl_is_sound(first) || uses(first, x->run)) return false;
  if (b->threads) x->w->would_shift |= kl_aff_content(first) % x->n || first->c % x->n;
  if (b->threads || uses(first, x->lane)) return false;
  x->vector = kl_dom_simplify(b->domain, kl_aff_floordivc(p, first, x->n));
  x->shift = kl_dom_simplify(b->domain, kl_aff_modc(p, first, x->n));
  return kl_is_sound(x->vector) && kl_is_sound(x->shift) && !(x->shift->n == 0 && x->shift->c == 0);
}

// --- vectors --------------------------------------------------------------------------------------------------------

// An element of a value, or what a lane in the ring has of it, once for all who want it here.
static uint32_t once(kl_writer *w, kl_step_kind kind, uint32_t value, uint32_t var, uint32_t distance) {
  for (uint32_t i = (uint32_t)w->steps.n; i-- > value + 1;) {
    const kl_step *s = &w->steps.p[i];
    if (s->kind != kind || s->operands[0] != value || s->var != var || s->distance != distance) continue;
    if (kl_scope_is_open(w, w->written.p[i].scope)) return i;
  }
  return kind == KL_STEP_TAKE ? kl_write_take(w, value, var, distance) : kl_write_rotate(w, value, distance);
}

// The place of vector `number`; *guard: that there is one, where the array is whole vectors.
static bool place_of(shifted *x, const kl_aff *number, const kl_aff **place, uint32_t *guard) {
  const kl_body *b = x->w->body;
  kl_affs *p = x->w->plan->affs;
  int64_t all = x->info->shape->count, last = all / x->n - 1;
  bool never;
  number = kl_dom_simplify(b->domain, number);
  *place = kl_dom_simplify(b->domain, kl_aff_addmul(p, kl_aff_dim(p, x->run), number, x->n));
  kl_interval in = kl_dom_interval(b->domain, number);
  if (!kl_is_sound(*place) || (all % x->n && (in.lo < 0 || in.hi > last))) return false;
  *guard = kl_guard_and(&x->w->guards, KL_NONE, number, 0, last, &never);
  return !never;
}

static uint32_t load(const shifted *x, const kl_aff *place, uint32_t guard) {
  kl_writer *w = x->w;
  w->nshifted++;
  return kl_write_load(w, x->slot, x->info, place, guard, x->from);
}

// What a thread may take elements of: `own`, and the next lane's own or that of the one before. Where the neighbour is
// another warp's, it is loaded: the vector `edge`, or where the last one of an array may be no whole one, KL_NONE,
// element by element.
typedef struct vectors {
  uint32_t own, edge, ring; // ring: lanes from here to the neighbour's
  const kl_aff *number;     // of the edge
  uint32_t inside;          // guard: the neighbour is of this warp
} vectors;

static bool load_vectors(shifted *x, bool before, vectors *out) {
  kl_writer *w = x->w;
  kl_affs *p = w->plan->affs;
  const kl_aff *lane = kl_aff_dim(p, x->lane), *first = before ? kl_aff_addc(p, x->vector, 1) : x->vector, *place;
  uint32_t guard;
  bool never;
  if (!place_of(x, kl_aff_add(p, first, lane), &place, &guard)) return false;
  out->own = load(x, place, guard);
  out->number = before ? x->vector : kl_aff_addc(p, first, WARP);
  out->edge = place_of(x, out->number, &place, &guard) ? load(x, place, guard) : KL_NONE;
  out->ring = before ? WARP - 1 : 1;
  out->inside = kl_guard_and(&w->guards, KL_NONE, lane, before, WARP - 1 - !before, &never);
  return true;
}

static uint32_t own_element(shifted *x, const vectors *v, uint32_t i) {
  return once(x->w, KL_STEP_TAKE, v->own, x->run, i);
}

static uint32_t edge_element(shifted *x, const vectors *v, uint32_t i) {
  kl_writer *w = x->w;
  bool never;
  if (v->edge != KL_NONE) return once(w, KL_STEP_TAKE, v->edge, x->run, i);
  const kl_aff *place = kl_aff_addc(w->plan->affs, kl_aff_mulc(w->plan->affs, v->number, x->n), i);
  place = kl_dom_simplify(w->body->domain, place);
  uint32_t guard = kl_guard_and(&w->guards, KL_NONE, place, 0, x->info->shape->count - 1, &never);
  return never ? own_element(x, v, i) : load(x, place, guard);
}

static uint32_t neighbours_element(shifted *x, const vectors *v, uint32_t i) {
  uint32_t other = once(x->w, KL_STEP_ROTATE, own_element(x, v, i), 0, v->ring);
  return kl_write_choose(x->w, v->inside, other, edge_element(x, v, i));
}

// --- elements -------------------------------------------------------------------------------------------------------

// One value of elements: the i-th where the variable is i.
static uint32_t join(shifted *x, const uint32_t *elements) {
  kl_writer *w = x->w;
  kl_affs *p = w->plan->affs;
  uint32_t guards[MOST_ELEMENTS];
  bool never;
  for (uint32_t i = 0; i + 1 < x->n; i++)
    guards[i] = kl_guard_and(&w->guards, KL_NONE, kl_aff_dim(p, x->run), i, i, &never);
  return kl_write_step(w, &(kl_step){.kind = KL_STEP_CHOOSE,
                                     .dtype = x->info->shape->dtype,
                                     .instr = x->from,
                                     .noperands = x->n,
                                     .operands = kl_arena_dup(w->arena, elements, x->n * sizeof *elements),
                                     .guards = kl_arena_dup(w->arena, guards, (x->n - 1) * sizeof *guards)});
}

// Fewer elements come from the neighbour if the own vector is the one that has more of them.
static bool take_fixed(shifted *x, uint32_t *elements) {
  uint32_t shift = (uint32_t)x->shift->c;
  bool before = 2 * shift > x->n;
  vectors v;
  if ((before ? x->n - shift : shift) > MOST_SHUFFLES || !load_vectors(x, before, &v)) return false;
  for (uint32_t i = 0; i < x->n; i++) {
    uint32_t at = (i + shift) % x->n;
    elements[i] = (i + shift >= x->n) == before ? own_element(x, &v, at) : neighbours_element(x, &v, at);
  }
  return true;
}

// All elements of both vectors, moved down by halves of n, as the digits of the shift say.
static bool take_any(shifted *x, uint32_t *elements) {
  kl_writer *w = x->w;
  kl_affs *p = w->plan->affs;
  uint32_t all[2 * MOST_ELEMENTS], n = x->n;
  bool never;
  vectors v;
  if (n - 1 > MOST_SHUFFLES || !load_vectors(x, false, &v)) return false;
  for (uint32_t i = 0; i + 1 < 2 * n; i++) all[i] = i < n ? own_element(x, &v, i) : neighbours_element(x, &v, i - n);
  for (uint32_t by = n / 2; by > 0; by /= 2) {
    const kl_aff *digit = kl_aff_modc(p, kl_aff_floordivc(p, x->shift, by), 2);
    uint32_t guard = kl_guard_and(&w->guards, KL_NONE, digit, 1, 1, &never);
    for (uint32_t i = 0; i + 1 < n + by; i++) all[i] = never ? all[i] : kl_write_choose(w, guard, all[i + by], all[i]);
  }
  memcpy(elements, all, n * sizeof *elements);
  return true;
}

bool kl_load_shifted(kl_writer *w, uint32_t slot, const kl_slot_info *info, const kl_aff *place, const kl_instr *from,
                     uint32_t *value) {
  shifted x = {.w = w, .slot = slot, .info = info, .from = from, .run = KL_NONE};
  uint32_t elements[MOST_ELEMENTS];
  if (info->kind != KL_SLOT_IN || info->by_value || info->row || kl_has_symbols(place)) return false;
  if (!find_shift(&x, place)) return false;
  if (!(x.shift->n == 0 ? take_fixed(&x, elements) : take_any(&x, elements))) return false;
  *value = join(&x, elements);
  return true;
}
