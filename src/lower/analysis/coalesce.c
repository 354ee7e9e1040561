// Sectors of requests, counted over one period of warps.
#include "lower/analysis/coalesce.h"

#include <stdlib.h>

typedef __int128 wide;

// --- periods ------------------------------------------------------------------------------------------------------

// e(t + threads) = e(t) + step, for all t.
typedef struct period {
  int64_t threads, step;
} period;

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a < 0 ? -a : a;
}

// Of as many threads as a multiple of `threads` needs; false where that is out of all bounds.
static bool stretch(period *p, wide threads) {
  const int64_t most = (int64_t)1 << 40;
  if (threads > most) return false;
  wide step = threads / p->threads * p->step;
  if (step > INT64_MAX / 2 || step < INT64_MIN / 2) return false;
  *p = (period){(int64_t)threads, (int64_t)step};
  return true;
}

static wide lcm(int64_t a, int64_t b) {
  return (wide)a / gcd(a, b) * b;
}

static bool period_of(const kl_aff *e, period *out);

static bool period_of_atom(const kl_aff_atom *a, period *out) {
  *out = (period){1, 1};
  if (a->kind == KL_AFF_DIM) return a->var == 0;
  if (a->kind != KL_AFF_FLOOR || !period_of(a->arg[0], out)) return false;
  if (!stretch(out, (wide)out->threads * (a->k / gcd(a->k, out->step)))) return false;
  out->step /= a->k;
  return true;
}

static bool period_of(const kl_aff *e, period *out) {
  *out = (period){1, 0};
  for (uint32_t i = 0; i < e->n; i++) {
    period atom;
    if (!period_of_atom(e->terms[i].atom, &atom)) return false;
    wide threads = lcm(out->threads, atom.threads);
    if (!stretch(out, threads) || !stretch(&atom, threads)) return false;
    wide step = out->step + (wide)e->terms[i].coef * atom.step;
    if (step > INT64_MAX / 2 || step < INT64_MIN / 2) return false;
    out->step = (int64_t)step;
  }
  return !e->error;
}

// --- one warp -----------------------------------------------------------------------------------------------------

typedef struct counter {
  kl_affs *p;
  const kl_request *r;
  int64_t threads;
  int64_t base;
  int64_t left; // threads that may still be looked at
  bool all;     // conditions hold whatever they say
} counter;

static int64_t floor_div(int64_t a, int64_t k) {
  return a / k - (a % k < 0);
}

static int64_t value(counter *c, const kl_aff *e, int64_t thread) {
  int64_t v = 0;
  kl_aff_eval(c->p, e, &(kl_point){.at = {&thread}}, &v);
  return v;
}

static bool takes_part(counter *c, int64_t thread) {
  for (uint32_t i = 0; i < c->r->nconditions && !c->all; i++) {
    int64_t v = value(c, c->r->conditions[i].e, thread);
    if (v < c->r->conditions[i].in.lo || v > c->r->conditions[i].in.hi) return false;
  }
  return true;
}

// The bytes of a warp's threads where they begin, in order; how many threads there are.
static uint32_t begins(counter *c, int64_t first, int64_t *at) {
  uint32_t n = 0;
  for (int64_t t = first; t < first + KL_WARP && t < c->threads; t++) {
    bool in = takes_part(c, t);
    if (!in && !c->r->else_first) continue;
    int64_t byte = c->base + (in ? floor_div(value(c, c->r->at, t), 8) : 0);
    uint32_t i = n++;
    for (; i && at[i - 1] > byte; i--) at[i] = at[i - 1];
    at[i] = byte;
  }
  c->left -= KL_WARP;
  return n;
}

// Units of `size` bytes that runs of r->bytes touch, and as many bytes as there are in the runs.
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

static void count_warp(counter *c, int64_t first, kl_sectors *out) {
  int64_t at[KL_WARP], distinct = 0;
  uint32_t n = begins(c, first, at);
  if (!n) return;
  out->requests++;
  touch(at, n, c->r->bytes, KL_SECTOR_BYTES, &out->sectors, &distinct);
  out->least += (distinct + KL_SECTOR_BYTES - 1) / KL_SECTOR_BYTES;
}

enum { FEW_WARPS = 64 };

static void add(kl_sectors *sum, const kl_sectors *x, int64_t times) {
  sum->requests += x->requests * times;
  sum->sectors += x->sectors * times;
  sum->least += x->least * times;
}

// Threads first .. end-1, first a multiple of a warp. Beyond the quota, but for a few, warps stand for their
// neighbours.
static kl_sectors count_threads(counter *c, int64_t first, int64_t end) {
  kl_sectors sum = {.exact = true};
  int64_t warps = (end - first + KL_WARP - 1) / KL_WARP, left = c->left / KL_WARP;
  if (left < FEW_WARPS) left = FEW_WARPS;
  int64_t each = (warps + left - 1) / left;
  if (each < 1) each = 1;
  for (int64_t w = 0; w < warps; w += each) {
    kl_sectors one = {0};
    count_warp(c, first + w * KL_WARP, &one);
    add(&sum, &one, w + each < warps ? each : warps - w);
  }
  sum.exact = each == 1;
  return sum;
}

// --- all warps ----------------------------------------------------------------------------------------------------

// A condition in period number n has values lo + n*step .. hi + n*step.
typedef struct moving {
  kl_interval in; // what it must be in
  int64_t lo, hi, step;
} moving;

typedef enum state { NONE, SOME, ALL } state;

static state state_at(const moving *m, int64_t n) {
  wide lo = (wide)m->lo + (wide)n * m->step, hi = (wide)m->hi + (wide)n * m->step;
  if (hi < m->in.lo || lo > m->in.hi) return NONE;
  return lo >= m->in.lo && hi <= m->in.hi ? ALL : SOME;
}

// The period after which x + n*step >= bound turns, if that comes after period n.
static int64_t turn(wide x, int64_t step, wide bound, int64_t n) {
  if (step == 0) return INT64_MAX;
  wide d = step > 0 ? bound - x + step - 1 : x - bound, by = step > 0 ? step : -(wide)step;
  wide at = d < 0 ? -1 : step > 0 ? d / by : d / by + 1;
  return at > n && at < INT64_MAX ? (int64_t)at : INT64_MAX;
}

// The first period behind n where the state may be another.
static int64_t next_turn(const moving *m, int64_t n) {
  wide bounds[2] = {m->in.lo, (wide)m->in.hi + 1};
  int64_t next = INT64_MAX;
  for (int i = 0; i < 4; i++) {
    int64_t at = turn(i % 2 ? m->hi : m->lo, m->step, bounds[i / 2], n);
    if (at < next) next = at;
  }
  return next;
}

static moving moving_of(counter *c, const kl_constraint *k, int64_t threads) {
  period own = {0};
  moving m = {.in = k->in, .lo = INT64_MAX, .hi = INT64_MIN};
  period_of(k->e, &own);
  stretch(&own, threads);
  m.step = own.step;
  for (int64_t t = 0; t < threads; t++) {
    int64_t v = value(c, k->e, t);
    if (v < m.lo) m.lo = v;
    if (v > m.hi) m.hi = v;
  }
  return m;
}

// Threads after which every warp's pattern is the same but for whole sectors, and where conditions have moved on
// evenly.
static bool common_period(const kl_request *r, int64_t quota, int64_t *threads) {
  period at;
  if (!period_of(r->at, &at)) return false;
  int64_t bits = 8 * KL_SECTOR_BYTES;
  if (!stretch(&at, (wide)at.threads * (bits / gcd(bits, at.step)))) return false;
  wide all = lcm(at.threads, KL_WARP);
  for (uint32_t i = 0; i < r->nconditions; i++) {
    period own;
    if (all > INT64_MAX || !period_of(r->conditions[i].e, &own)) return false;
    all = lcm((int64_t)all, own.threads);
  }
  if (all * (1 + r->nconditions) > quota / 2) return false;
  *threads = (int64_t)all;
  return true;
}

// Whole periods from `n` to `end`, in all of which conditions are of one state; `even`: and of one pattern.
static void count_alike(counter *c, state s, bool even, int64_t threads, int64_t n, int64_t end, kl_sectors *sum) {
  kl_sectors one = {.exact = true};
  if (s == SOME) {
    one = count_threads(c, n * threads, even ? (n + 1) * threads : end * threads);
    add(sum, &one, even ? end - n : 1);
  } else if (s == ALL || c->r->else_first) {
    counter same = *c;
    kl_request first = *c->r;
    if (s == NONE) first.at = kl_aff_const(c->p, 0);
    same.r = &first;
    same.all = true;
    same.threads = threads;
    one = count_threads(&same, 0, threads);
    c->left = same.left;
    add(sum, &one, end - n);
  }
  sum->exact = sum->exact && one.exact;
}

kl_sectors kl_count_sectors(kl_affs *p, const kl_request *r, int64_t threads, uint32_t base, int64_t quota) {
  counter c = {.p = p, .r = r, .threads = threads, .base = base % KL_SECTOR_BYTES, .left = quota};
  int64_t each;
  if (!common_period(r, quota, &each) || threads <= each) return count_threads(&c, 0, threads);
  kl_sectors sum = {.exact = true};
  moving *m = KL_NEW_N(kl_affs_arena(p), moving, r->nconditions + 1);
  for (uint32_t i = 0; i < r->nconditions; i++) m[i] = moving_of(&c, &r->conditions[i], each);
  // Threads that read the start of the array instead may share a sector with others near it.
  int64_t near = 8 * (r->bytes + 2 * KL_SECTOR_BYTES);
  moving start = moving_of(&c, &(kl_constraint){r->at, {-near, near}}, each);
  for (int64_t n = 0, end, periods = threads / each; n < periods; n = end) {
    state s = ALL;
    int64_t next = next_turn(&start, n);
    bool even = !r->else_first || start.step == 0 || state_at(&start, n) == NONE;
    end = even && start.step == 0 ? periods : next < periods ? next : periods;
    for (uint32_t i = 0; i < r->nconditions; i++) {
      state own = state_at(&m[i], n);
      next = next_turn(&m[i], n);
      even = even && (own != SOME || m[i].step == 0);
      if (own < s) s = own;
      if (next < end) end = next;
    }
    count_alike(&c, s, even, each, n, end, &sum);
  }
  kl_sectors rest = count_threads(&c, threads / each * each, threads);
  add(&sum, &rest, 1);
  sum.exact = sum.exact && rest.exact;
  return sum;
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

bool kl_is_coalesced_for_xla(kl_affs *p, const kl_request *requests, uint32_t n, int64_t threads) {
  kl_ctx *cx = kl_affs_context(p);
  VEC(run) runs = {0};
  int64_t total = 0, touched = 0;
  for (uint32_t i = 0; i < n; i++) {
    counter c = {.p = p, .r = &requests[i], .threads = threads, .all = true};
    int64_t at[KL_WARP];
    uint32_t found = begins(&c, 0, at);
    for (uint32_t t = 0; t < found; t++) VEC_PUSH(cx, &runs, ((run){at[t], at[t] + requests[i].bytes}));
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
