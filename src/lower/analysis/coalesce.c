// Requests, counted over one period of each variable.
#include "lower/analysis/coalesce.h"

#include <stdlib.h>

typedef __int128 wide;

static int64_t floor_div(int64_t a, int64_t k) {
  return a / k - (a % k < 0);
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a < 0 ? -a : a;
}

static wide lcm(int64_t a, int64_t b) {
  return (wide)a / gcd(a, b) * b;
}

// --- periods --------------------------------------------------------------------------------------------------------

// e(x + n) = e(x) + step, for all x of a variable and whatever the others are.
typedef struct period {
  int64_t n, step;
} period;

// Of as many values as a multiple of `n` needs; false where that is out of all bounds.
static bool stretch(period *p, wide n) {
  const int64_t most = (int64_t)1 << 40;
  if (n > most) return false;
  wide step = n / p->n * p->step;
  if (step > INT64_MAX / 2 || step < INT64_MIN / 2) return false;
  *p = (period){(int64_t)n, (int64_t)step};
  return true;
}

static bool period_of(const kl_warps *w, uint32_t var, const kl_aff *e, uint64_t unseen, period *out);

static bool period_of_atom(const kl_warps *w, uint32_t var, const kl_aff_atom *a, period *out) {
  *out = (period){1, 0};
  if (a->kind == KL_AFF_RT) return w->symbols != NULL;
  if (a->kind == KL_AFF_DIM) {
    if (a->var == var) out->step = w->scale[var];
    return true;
  }
  if (a->kind != KL_AFF_FLOOR || !period_of(w, var, a->arg[0], 0, out)) return false;
  if (!stretch(out, (wide)out->n * (a->k / gcd(a->k, out->step)))) return false;
  out->step /= a->k;
  return true;
}

// But for terms that are unseen, a mask.
static bool period_of(const kl_warps *w, uint32_t var, const kl_aff *e, uint64_t unseen, period *out) {
  *out = (period){1, 0};
  for (uint32_t i = 0; i < e->n; i++) {
    period atom;
    if (i < 64 && unseen >> i & 1) continue;
    if (!period_of_atom(w, var, e->terms[i].atom, &atom)) return false;
    if (out->n != atom.n) {
      wide n = lcm(out->n, atom.n);
      if (!stretch(out, n) || !stretch(&atom, n)) return false;
    }
    wide step = out->step + (wide)e->terms[i].coef * atom.step;
    if (step > INT64_MAX / 2 || step < INT64_MIN / 2) return false;
    out->step = (int64_t)step;
  }
  return !e->error;
}

// --- values ---------------------------------------------------------------------------------------------------------

// Of all lanes at once. Expressions are those of a plan that is proved to fit 64 bits; what does not is as it wraps.
static void evaluate(const kl_warps *w, int64_t (*value)[KL_WARP], const kl_aff *e, int64_t *out);

static void evaluate_atom(const kl_warps *w, int64_t (*value)[KL_WARP], const kl_aff_atom *a, int64_t *out) {
  int64_t x[KL_WARP];
  switch (a->kind) {
  case KL_AFF_DIM: memcpy(out, value[a->var], sizeof x); return;
  case KL_AFF_FLOOR:
    evaluate(w, value, a->arg[0], out);
    if ((a->k & (a->k - 1)) == 0) // a shift, as a division takes thirty times as long
      for (int l = 0, by = __builtin_ctzll((uint64_t)a->k); l < KL_WARP; l++) out[l] >>= by;
    else
      for (int l = 0; l < KL_WARP; l++) out[l] = floor_div(out[l], a->k);
    return;
  case KL_AFF_QUOTIENT:
    evaluate(w, value, a->arg[0], out);
    evaluate(w, value, a->arg[1], x);
    for (int l = 0; l < KL_WARP; l++) out[l] = x[l] ? floor_div(out[l], x[l]) : 0;
    return;
  case KL_AFF_PRODUCT:
  case KL_AFF_MIN:
  case KL_AFF_MAX:
    evaluate(w, value, a->arg[0], out);
    for (uint32_t i = 1; i < a->n; i++) {
      evaluate(w, value, a->arg[i], x);
      for (int l = 0; l < KL_WARP; l++)
        out[l] = a->kind == KL_AFF_PRODUCT                    ? (int64_t)((uint64_t)out[l] * (uint64_t)x[l])
                 : (a->kind == KL_AFF_MIN) == (x[l] < out[l]) ? x[l]
                                                              : out[l];
    }
    return;
  default: // RT, RANGE
    for (int l = 0; l < KL_WARP; l++) out[l] = w->symbols && a->kind == KL_AFF_RT ? w->symbols[a->var] : 0;
  }
}

static void evaluate(const kl_warps *w, int64_t (*value)[KL_WARP], const kl_aff *e, int64_t *out) {
  for (int l = 0; l < KL_WARP; l++) out[l] = e->c;
  for (uint32_t i = 0; i < e->n; i++) {
    int64_t x[KL_WARP];
    const int64_t *of = x;
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind == KL_AFF_DIM)
      of = value[a->var];
    else
      evaluate_atom(w, value, a, x);
    uint64_t coef = (uint64_t)e->terms[i].coef;
    for (int l = 0; l < KL_WARP; l++) out[l] = (int64_t)((uint64_t)out[l] + coef * (uint64_t)of[l]);
  }
}

// --- what all lanes have alike --------------------------------------------------------------------------------------

static bool agree(const int64_t *x) {
  for (int l = 1; l < KL_WARP; l++)
    if (x[l] != x[0]) return false;
  return true;
}

static bool lanes_agree(const kl_warps *w, const kl_aff_atom *a);

// Of a floor of sums: what differs from lane to lane lies between two multiples of what all else is a multiple of, and
// so is the divisor.
static bool floor_agrees(const kl_warps *w, const kl_aff *e, int64_t k) {
  int64_t part[KL_WARP], g = k;
  for (int l = 0; l < KL_WARP; l++) part[l] = e->c;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    int64_t coef = e->terms[i].coef;
    if (a->kind != KL_AFF_DIM) {
      if (!lanes_agree(w, a)) return false;
      g = gcd(g, coef);
      continue;
    }
    if (w->extent[a->var] > 1) g = gcd(g, coef * w->scale[a->var]);
    for (int l = 0; l < KL_WARP; l++) part[l] += coef * w->lane[a->var][l];
  }
  for (int l = 0; l < KL_WARP; l++) part[l] = floor_div(part[l], g);
  return agree(part);
}

static bool lanes_agree(const kl_warps *w, const kl_aff_atom *a) {
  switch (a->kind) {
  case KL_AFF_DIM: return agree(w->lane[a->var]);
  case KL_AFF_RANGE: return false;
  case KL_AFF_RT: return true;
  case KL_AFF_FLOOR: return floor_agrees(w, a->arg[0], a->k);
  default: return false;
  }
}

// Terms of a sum that move all lanes by whole units, whatever the variables are: which lanes meet where does not show
// them. A mask of the first 64.
static uint64_t unseen_terms(const kl_warps *w, const kl_aff *e, int64_t bits, int64_t unit) {
  uint64_t unseen = 0;
  for (uint32_t i = 0; i < e->n && i < 64; i++)
    if (e->terms[i].coef % unit * (bits % unit) % unit == 0 && lanes_agree(w, e->terms[i].atom)) unseen |= 1ull << i;
  return unseen;
}

// --- one request ----------------------------------------------------------------------------------------------------

// Units of `size` bytes that runs of `bytes` touch, in order of where they begin, and the bytes in the runs.
static void touch(const int64_t *at, uint32_t n, uint32_t bytes, int64_t size, int64_t *units, int64_t *distinct) {
  int64_t unit = INT64_MIN, end = INT64_MIN; // behind the last one counted
  for (uint32_t i = 0; i < n; i++) {
    int64_t from = floor_div(at[i], size), to = floor_div(at[i] + bytes - 1, size);
    if (from < unit) from = unit;
    if (to >= from) {
      *units += to - from + 1;
      unit = to + 1;
    }
    int64_t begin = at[i] < end ? end : at[i];
    if (at[i] + bytes > begin) *distinct += at[i] + bytes - begin;
    end = at[i] + bytes;
  }
}

enum { BANKS = 32 };

static bool is_one_place(const int64_t *byte, uint32_t mask) {
  int64_t first = byte[__builtin_ctz(mask)];
  for (; mask; mask &= mask - 1)
    if (byte[__builtin_ctz(mask)] != first) return false;
  return true;
}

// Lanes of up to 4 bytes go together; of 8 each half of the warp, of 16 each quarter, but all of those that load from
// one place (no two store there). A pass serves each bank one word, which goes to all lanes that want it.
static void pass_over_banks(const int64_t *byte, uint32_t mask, uint32_t bytes, kl_requests *out) {
  uint32_t words = bytes <= 4 ? 1 : bytes / 4, lanes = words < BANKS ? BANKS / words : 1;
  if (is_one_place(byte, mask)) lanes = KL_WARP;
  for (uint32_t first = 0; first < KL_WARP; first += lanes) {
    int64_t seen[BANKS][KL_WARP];
    uint32_t n = 0, most = 0;
    uint8_t in_bank[BANKS] = {0};
    for (uint32_t l = first; l < first + lanes; l++) {
      if (!(mask >> l & 1)) continue;
      for (uint32_t k = 0; k < words; k++) {
        int64_t word = floor_div(byte[l], 4) + k;
        uint32_t bank = word & (BANKS - 1), i = 0;
        while (i < in_bank[bank] && seen[bank][i] != word) i++;
        if (i < in_bank[bank]) continue;
        seen[bank][i] = word;
        n++;
        in_bank[bank] = (uint8_t)(i + 1);
        if (i + 1 > most) most = i + 1;
      }
    }
    out->wavefronts += most;
    out->ideal_wavefronts += (n + BANKS - 1) / BANKS;
  }
}

// Of lanes `mask`, which begin at these bytes.
static kl_requests request_of(const int64_t *byte, uint32_t mask, uint32_t bytes, bool shared) {
  kl_requests one = {.requests = mask != 0, .lanes = __builtin_popcount(mask)};
  int64_t at[KL_WARP];
  uint32_t n = 0;
  if (!mask) return one;
  for (uint32_t left = mask; left; left &= left - 1) {
    int64_t b = byte[__builtin_ctz(left)];
    uint32_t i = n++;
    for (; i && at[i - 1] > b; i--) at[i] = at[i - 1];
    at[i] = b;
  }
  touch(at, n, bytes, KL_SECTOR_BYTES, &one.sectors, &one.unique);
  one.least = (one.unique + KL_SECTOR_BYTES - 1) / KL_SECTOR_BYTES;
  if (!shared) return one;
  one.sectors = one.least = 0;
  pass_over_banks(byte, mask, bytes, &one);
  return one;
}

void kl_add_requests(kl_requests *to, const kl_requests *x, int64_t times) {
  to->requests += x->requests * times;
  to->lanes += x->lanes * times;
  to->unique += x->unique * times;
  to->sectors += x->sectors * times;
  to->least += x->least * times;
  to->wavefronts += x->wavefronts * times;
  to->ideal_wavefronts += x->ideal_wavefronts * times;
}

// --- all warps ------------------------------------------------------------------------------------------------------

// A quantity of each lane in the period at hand: base[l] + the sum of step[v] * number of v's period.
typedef struct moving {
  int64_t base[KL_WARP], step[KL_WARP_VARS];
} moving;

typedef struct bounds {
  int64_t lo, hi;
} bounds;

enum { MOST_CONDITIONS = 66, MOST_BOXES = 4096 };

typedef struct counter {
  const kl_warps *w;
  const kl_request *r;
  int64_t base, unit; // bits of a unit: a shift by one changes nothing
  uint64_t unseen;    // terms of the element
  int64_t period[KL_WARP_VARS];
  moving at, otherwise; // bytes
  uint32_t nconditions;
  moving *conditions;
  uint32_t boxes;
  kl_requests sum;
  uint32_t last_mask; // and what a request of it is in this period, if its lanes are all
  bool has_last;
  kl_requests last;
} counter;

// Numbers of periods: lo <= number of v's period < hi.
typedef struct box {
  bounds in[KL_WARP_VARS];
} box;

static bounds range_of(const counter *c, const int64_t *step, const box *b) {
  bounds r = {0, 0};
  for (uint32_t v = 0; v < c->w->nvars; v++) {
    int64_t s = step[v];
    if (!s) continue;
    r.lo += s * (s > 0 ? b->in[v].lo : b->in[v].hi - 1);
    r.hi += s * (s > 0 ? b->in[v].hi - 1 : b->in[v].lo);
  }
  return r;
}

// The variable along which a sum changes most in a box; nvars: it does not change.
static uint32_t widest(const counter *c, const int64_t *step, const box *b) {
  uint32_t best = c->w->nvars;
  wide most = 0;
  for (uint32_t v = 0; v < c->w->nvars; v++) {
    wide change = (wide)(step[v] < 0 ? -step[v] : step[v]) * (b->in[v].hi - b->in[v].lo - 1);
    if (change <= most) continue;
    most = change;
    best = v;
  }
  return best;
}

static void count_box(counter *c, const box *b);

static void cut(counter *c, const box *b, uint32_t v, int64_t at) {
  box part = *b;
  part.in[v].hi = at;
  count_box(c, &part);
  part.in[v] = (bounds){at, b->in[v].hi};
  count_box(c, &part);
}

// Where along v a value from `least` to `most`, but for its own step, may begin to be `bound` or more, or is so for
// certain: strictly inside of the box, else its middle.
static int64_t cut_at(const box *b, uint32_t v, int64_t step, bounds value, bounds in) {
  int64_t lo = b->in[v].lo, hi = b->in[v].hi, bound[2] = {in.lo, in.hi + 1};
  wide size = step < 0 ? -(wide)step : step;
  for (int i = 0; i < 4; i++) {
    wide want = (wide)bound[i / 2] - (i % 2 ? value.lo : value.hi), x;
    // the least x with step * x >= want, or with a falling step the least with step * x < want
    if (step > 0)
      x = want >= 0 ? (want + size - 1) / size : -(-want / size);
    else
      x = (want > 0 ? -((want + size - 1) / size) : -want / size) + 1;
    if (x > lo && x < hi) return (int64_t)x;
  }
  return lo + (hi - lo) / 2;
}

static void cut_condition(counter *c, const box *b, const moving *m, bounds in, uint32_t lanes) {
  uint32_t v = widest(c, m->step, b);
  bounds all = range_of(c, m->step, b), value = {INT64_MAX, INT64_MIN};
  int64_t s = m->step[v], own_lo = s * (s > 0 ? b->in[v].lo : b->in[v].hi - 1),
          own_hi = s * (s > 0 ? b->in[v].hi - 1 : b->in[v].lo);
  for (; lanes; lanes &= lanes - 1) {
    int64_t x = m->base[__builtin_ctz(lanes)];
    if (x < value.lo) value.lo = x;
    if (x > value.hi) value.hi = x;
  }
  value.lo += all.lo - own_lo;
  value.hi += all.hi - own_hi;
  cut(c, b, v, cut_at(b, v, s, value, in));
}

static int64_t volume(const counter *c, const box *b) {
  int64_t n = 1;
  for (uint32_t v = 0; v < c->w->nvars; v++) n *= b->in[v].hi - b->in[v].lo;
  return n;
}

// Lanes `mask`, and the others of `there` where they read instead.
static void count_both(counter *c, const box *b, uint32_t mask, uint32_t there) {
  const kl_request *r = c->r;
  int64_t apart[KL_WARP_VARS], byte[KL_WARP];
  for (uint32_t v = 0; v < c->w->nvars; v++) apart[v] = c->at.step[v] - c->otherwise.step[v];
  uint32_t v = widest(c, apart, b);
  bounds x = range_of(c, c->at.step, b), y = range_of(c, c->otherwise.step, b);
  if (v < c->w->nvars && c->boxes < MOST_BOXES && mask) {
    bounds in = {INT64_MAX, INT64_MIN}, out = in;
    for (int l = 0; l < KL_WARP; l++) {
      if (!(there >> l & 1)) continue;
      bounds *of = mask >> l & 1 ? &in : &out;
      int64_t first = mask >> l & 1 ? c->at.base[l] : c->otherwise.base[l];
      if (first < of->lo) of->lo = first;
      if (first > of->hi) of->hi = first;
    }
    int64_t near = r->bytes + 2 * KL_SECTOR_BYTES;
    bool disjoint = in.hi + x.hi + near < out.lo + y.lo || out.hi + y.hi + near < in.lo + x.lo;
    if (!disjoint) return cut(c, b, v, b->in[v].lo + (b->in[v].hi - b->in[v].lo) / 2);
  }
  for (int l = 0; l < KL_WARP; l++) {
    bool in = mask >> l & 1;
    const moving *m = in ? &c->at : &c->otherwise;
    byte[l] = m->base[l];
    for (uint32_t k = 0; k < c->w->nvars; k++) byte[l] += m->step[k] * b->in[k].lo;
  }
  kl_requests one = request_of(byte, there, r->bytes, r->shared);
  kl_add_requests(&c->sum, &one, volume(c, b));
}

static void count_lanes(counter *c, const box *b, uint32_t mask, uint32_t there) {
  if (c->r->otherwise && there != mask) return count_both(c, b, mask, there);
  if (!c->has_last || c->last_mask != mask) {
    c->last = request_of(c->at.base, mask, c->r->bytes, c->r->shared);
    c->last_mask = mask;
    c->has_last = true;
  }
  kl_add_requests(&c->sum, &c->last, volume(c, b));
}

static void count_box(counter *c, const box *b) {
  uint32_t in = UINT32_MAX, there = UINT32_MAX, unsettled = 0, open[MOST_CONDITIONS], which = 0;
  if (c->boxes < MOST_BOXES)
    c->boxes++;
  else
    c->sum.exact = false; // what is open counts as in
  for (uint32_t i = 0; i < c->nconditions; i++) {
    const moving *m = &c->conditions[i];
    kl_interval want = c->r->conditions[i].in;
    bounds move = range_of(c, m->step, b);
    open[i] = 0;
    for (int l = 0; l < KL_WARP; l++) {
      int64_t lo = m->base[l] + move.lo, hi = m->base[l] + move.hi;
      if (hi < want.lo || lo > want.hi) {
        in &= ~(1u << l);
        if (i < c->r->nthere) there &= ~(1u << l);
      } else if (lo < want.lo || hi > want.hi)
        open[i] |= 1u << l;
    }
  }
  for (uint32_t i = c->nconditions; i-- > 0;) {
    open[i] &= i < c->r->nthere ? there : in;
    if (open[i]) unsettled |= open[i], which = i;
  }
  if (!unsettled || c->boxes >= MOST_BOXES) return count_lanes(c, b, in, there);
  kl_interval want = c->r->conditions[which].in;
  cut_condition(c, b, &c->conditions[which], (bounds){want.lo, want.hi}, open[which]);
}

// --- periods of all variables ---------------------------------------------------------------------------------------

static wide both(wide a, int64_t b) {
  return a > (int64_t)1 << 40 ? a : lcm((int64_t)a, b);
}

// What moves the request by whole units, and its conditions evenly.
static int64_t period_along(counter *c, uint32_t v) {
  const kl_request *r = c->r;
  int64_t extent = c->w->extent[v], unit = c->unit;
  period own;
  wide n = 1;
  const kl_aff *at[2] = {r->element, r->otherwise};
  if (extent == 1) return 1;
  for (int i = 0; i < 2 && at[i]; i++) {
    if (!period_of(c->w, v, at[i], i ? 0 : c->unseen, &own)) return extent;
    int64_t rest = own.step % unit * (r->bits % unit) % unit;
    n = both(n, own.n);
    if (n > extent) return extent;
    n = both(n, own.n * (unit / gcd(unit, rest)));
  }
  for (uint32_t i = 0; i < c->nconditions && n <= extent; i++) {
    if (!period_of(c->w, v, r->conditions[i].e, 0, &own)) return extent;
    n = both(n, own.n);
  }
  return n > extent ? extent : (int64_t)n;
}

// Steps from period to period; none where there is one.
static void set_steps(counter *c, moving *m, const kl_aff *e, uint64_t unseen, int64_t bits) {
  for (uint32_t v = 0; v < c->w->nvars; v++) {
    period own;
    m->step[v] = 0;
    if (c->period[v] == c->w->extent[v] || !period_of(c->w, v, e, unseen, &own)) continue;
    if (stretch(&own, c->period[v])) m->step[v] = own.step * bits / 8;
  }
}

static void set_bytes(counter *c, moving *m, int64_t (*value)[KL_WARP], const kl_aff *e) {
  evaluate(c->w, value, e, m->base);
  for (int l = 0; l < KL_WARP; l++) m->base[l] = c->base + floor_div(m->base[l] * c->r->bits + c->r->bit, 8);
}

// At these places in each variable's period.
static void count_place(counter *c, const int64_t *place, int64_t times) {
  const kl_warps *w = c->w;
  int64_t value[KL_WARP_VARS][KL_WARP];
  box b;
  for (uint32_t v = 0; v < w->nvars; v++) {
    b.in[v] = (bounds){0, (w->extent[v] - place[v] + c->period[v] - 1) / c->period[v]};
    for (int l = 0; l < KL_WARP; l++) value[v][l] = w->lane[v][l] + w->scale[v] * place[v];
  }
  set_bytes(c, &c->at, value, c->r->element);
  if (c->r->otherwise) set_bytes(c, &c->otherwise, value, c->r->otherwise);
  for (uint32_t i = 0; i < c->nconditions; i++) evaluate(w, value, c->r->conditions[i].e, c->conditions[i].base);
  c->has_last = false;
  c->boxes = 0;
  kl_requests before = c->sum;
  count_box(c, &b);
  kl_requests here = {.requests = c->sum.requests - before.requests,
                      .lanes = c->sum.lanes - before.lanes,
                      .unique = c->sum.unique - before.unique,
                      .sectors = c->sum.sectors - before.sectors,
                      .least = c->sum.least - before.least,
                      .wavefronts = c->sum.wavefronts - before.wavefronts,
                      .ideal_wavefronts = c->sum.ideal_wavefronts - before.ideal_wavefronts};
  kl_add_requests(&c->sum, &here, times - 1);
}

kl_requests kl_count_requests(const kl_warps *w, const kl_request *r, uint32_t base, int64_t quota) {
  moving conditions[MOST_CONDITIONS]; // most are not looked at
  counter c = {.w = w,
               .r = r,
               .base = r->shared ? base : base % KL_SECTOR_BYTES,
               .conditions = conditions,
               .sum = {.exact = true}};
  int64_t place[KL_WARP_VARS];
  wide places = 1;
  c.unit = 8 * (r->shared ? (r->otherwise ? 4 * BANKS : 4) : KL_SECTOR_BYTES);
  if (!r->otherwise) c.unseen = unseen_terms(w, r->element, r->bits, c.unit);
  c.nconditions = r->nconditions < MOST_CONDITIONS ? r->nconditions : MOST_CONDITIONS;
  if (c.nconditions < r->nconditions) c.sum.exact = false;
  for (uint32_t v = 0; v < w->nvars; v++) {
    if (w->extent[v] == 0) return c.sum;
    c.period[v] = period_along(&c, v);
    if (places < (wide)1 << 80) places *= c.period[v];
  }
  set_steps(&c, &c.at, r->element, c.unseen, r->bits);
  if (r->otherwise) set_steps(&c, &c.otherwise, r->otherwise, 0, r->bits);
  for (uint32_t i = 0; i < c.nconditions; i++) set_steps(&c, &c.conditions[i], r->conditions[i].e, 0, 8);
  wide most = quota / KL_WARP > 64 ? quota / KL_WARP : 64, each = (places + most - 1) / most;
  if (each > 1) c.sum.exact = false;
  for (wide n = 0; n < places; n += each) {
    wide digits = n;
    for (uint32_t v = w->nvars; v-- > 0;) {
      place[v] = 0;
      if (c.period[v] == 1) continue;
      place[v] = (int64_t)(digits % c.period[v]);
      digits /= c.period[v];
    }
    count_place(&c, place, (int64_t)(n + each < places ? each : places - n));
  }
  return c.sum;
}

// --- as XLA has it ------------------------------------------------------------------------------------------------

enum { XLA_LINE = 128 };

typedef struct run {
  int64_t begin, end; // bytes
} run;

static int by_begin(const void *a, const void *b) {
  const run *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

static int64_t lines(int64_t bytes) {
  return (bytes + XLA_LINE - 1) / XLA_LINE;
}

bool kl_is_coalesced_for_xla(kl_ctx *cx, const kl_warps *w, const kl_request *requests, uint32_t n) {
  VEC(run) runs = {0};
  int64_t total = 0, touched = 0;
  for (uint32_t i = 0; i < n; i++) {
    int64_t value[KL_WARP_VARS][KL_WARP], at[KL_WARP];
    memcpy(value, w->lane, sizeof value);
    evaluate(w, value, requests[i].element, at);
    for (uint32_t t = 0; t < KL_WARP; t++) {
      int64_t first = floor_div(at[t] * requests[i].bits + requests[i].bit, 8);
      VEC_PUSH(cx, &runs, ((run){first, first + requests[i].bytes}));
    }
  }
  if (runs.n) qsort(runs.p, runs.n, sizeof runs.p[0], by_begin);
  for (size_t i = 0, k; i < runs.n; i = k) { // neighbours are one run
    run r = runs.p[i];
    for (k = i + 1; k < runs.n && runs.p[k].begin <= r.end; k++)
      if (runs.p[k].end > r.end) r.end = runs.p[k].end;
    total += r.end - r.begin;
    touched += lines(r.end - r.begin);
  }
  VEC_FREE(cx, &runs);
  return !touched || 10 * lines(total) > 9 * touched;
}
