// What several elements of the results read alike: a bias that is the same for every row, one table for all heads.
//
// Elements that differ in some neighbouring dimensions of the results alone lie evenly apart in memory. A thread that
// makes several of them, one behind the other, reads once what does not depend on those dimensions (write.h has such
// steps stand before the loop). Threads become fewer, so that it makes as many as leave each multiprocessor enough of
// them, and no more than it takes until what is shared hardly counts.
//
// Halves of a run may want each other's elements: a rotation of two halves reads each of its operand's elements for two
// of its result. Then a thread makes both, each wanted for itself, and finds what they have in common once.

#include "lower/choose/chooser.h"

enum {
  MOST_TIMES = 32,
  LEAST_WAITED = 24 << 10, // bytes that a multiprocessor waits for at once, where it stores nothing
  LEAST_THREADS = 192,     // of a multiprocessor
  USUAL_MULTIPROCESSORS = 132,
  UNIT_BYTES = 512,  // what lies together of a result: a warp's access
  HELD_WORDS = 64,   // of what is shared
  LOADED_BYTES = 64, // that a thread waits for at once
  MOST_AT_ONCE = 4,
  MOST_RESULTS = 8,
  LEAST_SAVED = 25, // one in so many sectors
  MOST_UNITS = 32,
  MOST_PAIRED = 32,
};

// What is loaded for an element of each result; dimensions are numbered in the order of memory, the slowest first.
typedef struct reading {
  kl_vars dims;   // that it depends on
  double sectors; // of a warp whose lanes have `lanes` elements each
  uint32_t bytes; // of a lane
} reading;

typedef struct sharing {
  kl_choosing *c;
  kl_domain *d;
  uint32_t lanes, rank, bits; // bits: of the narrowest result
  bool chunks;                // lanes do not lie together
  int64_t dims[KILN_MAX_RANK];
  uint32_t nreads;
  reading *reads;
  double sectors;   // of all reads, and of results
  int64_t stored;   // bits of an element of all results
  int64_t streamed; // bits of an element that are read for it alone
  double saved;     // by the best dimensions
  int64_t piece;    // of two halves that want each other's elements; 0: there are none
} sharing;

static const kl_shape *result_shape(const sharing *x, uint32_t i) {
  const kl_choosing *c = x->c;
  uint32_t first = c->slots.nargs - (uint32_t)kl_shape_leaf_count(kl_root(c->plan->comp)->shape);
  return c->slots.v.p[first + x->d->leaves[i]].shape;
}

// --- what is read ---------------------------------------------------------------------------------------------------

static kl_vars all_dims(const sharing *x) {
  return (kl_vars)(((uint64_t)1 << x->rank) - 1);
}

// Elements in a row that have the same.
static int64_t same_for(const sharing *x, kl_vars dims) {
  int64_t n = 1;
  for (uint32_t v = x->rank; v-- > 0 && !kl_has_var(dims, v);) n *= x->dims[v];
  return n;
}

// For each element another one.
static bool is_streamed(const sharing *x, const reading *r) {
  for (uint32_t v = 0; v < x->rank; v++)
    if (x->dims[v] > 1 && !kl_has_var(r->dims, v)) return false;
  return true;
}

static reading reading_of(const sharing *x, const kl_seen *s) {
  bool unknown = s->guard != KL_NONE || kl_has_symbols(s->place);
  kl_body box = {.nvars = x->rank};
  reading r = {.dims = unknown ? all_dims(x) : kl_vars_of(&box, s->place)};
  int64_t same = same_for(x, r.dims), elements = x->lanes * 32;
  uint32_t bits = kl_info(s->dtype)->bits;
  r.sectors = same > 1 ? (double)elements / (double)same : (double)x->lanes * bits / 8;
  if (same > 1 && r.sectors > 32) r.sectors = 32;
  if (r.sectors < 1) r.sectors = 1;
  r.bytes = same >= x->lanes ? (bits + 7) / 8 : (x->lanes * bits + 7) / 8;
  return r;
}

// Every result's element where the first one's is at an index.
static void make_looks(const sharing *x, const kl_aff *const *index, kl_look *looks) {
  kl_affs *p = x->c->plan->affs;
  const kl_aff *at = kl_position_of(p, result_shape(x, 0), index);
  for (uint32_t i = 0; i < x->d->n; i++) {
    const kl_shape *s = result_shape(x, i);
    const kl_aff **own = KL_NEW_N(x->c->arena, const kl_aff *, s->rank + 1);
    if (i) kl_index_at(p, s, at, own);
    looks[i] = (kl_look){.instr = x->c->plan->comp->root, .leaf = x->d->leaves[i], .index = i ? own : index};
  }
}

// --- halves ---------------------------------------------------------------------------------------------------------

// Bits that are read for both halves of runs of 2*h indices of dimension d, lying `piece` apart.
static kiln_status read_of_halves(const sharing *x, uint32_t d, int64_t h, int64_t *bits) {
  kl_choosing *c = x->c;
  kl_affs *p = c->plan->affs;
  const kl_shape *first = result_shape(x, 0);
  kl_look looks[2 * MOST_RESULTS];
  kl_sights seen = {0};
  int64_t extents[KILN_MAX_RANK + 1];
  memcpy(extents, x->dims, x->rank * sizeof *extents);
  extents[d] = x->dims[d] / (2 * h);
  extents[x->rank] = h;
  for (uint32_t half = 0; half < 2; half++) {
    const kl_aff **index = KL_NEW_N(c->arena, const kl_aff *, x->rank + 1);
    for (uint32_t v = 0; v < x->rank; v++) {
      const kl_aff *at = kl_aff_dim(p, v);
      if (v == d) at = kl_aff_addc(p, kl_aff_addmul(p, kl_aff_dim(p, x->rank), at, 2 * h), half * h);
      index[kl_shape_minor_to_major(first, x->rank - 1 - v)] = at;
    }
    make_looks(x, index, looks + half * x->d->n);
  }
  kiln_status st = kl_walk_look(c->cx, c->plan, &c->slots, x->rank + 1, extents, 2 * x->d->n, looks, &seen);
  *bits = 0;
  for (size_t i = 0; i < seen.v.n; i++)
    if (seen.v.p[i].place) *bits += kl_info(seen.v.p[i].dtype)->bits;
  VEC_FREE(c->cx, &seen.v);
  return st;
}

// The dimension of whose indices some lie so far apart, in runs of two halves; false: there is none.
static bool find_run(const sharing *x, int64_t piece, uint32_t *d, int64_t *h) {
  int64_t below = 1;
  for (uint32_t v = x->rank; v-- > 0; below *= x->dims[v]) {
    *d = v;
    *h = piece / below;
    if (piece < below * x->dims[v]) return piece % below == 0 && x->dims[v] % (2 * *h) == 0;
  }
  return false;
}

// Is a good part of what results read, `bits` for an element, the same for elements `piece` apart?
static kiln_status try_halves(sharing *x, int64_t piece, int64_t bits) {
  uint32_t d;
  int64_t h, both;
  int64_t threads = piece / x->lanes, block = kl_last_launch(x->c->plan)->block;
  if (piece % x->lanes || ((threads & (threads - 1) || threads > block) && threads % block)) return KILN_OK;
  if (!find_run(x, piece, &d, &h)) return KILN_OK;
  KL_TRY(read_of_halves(x, d, h, &both));
  if ((2 * bits - both) * LEAST_SAVED >= 2 * (bits + x->stored)) x->piece = piece;
  return KILN_OK;
}

// Elements between two reads of one array, if they are so many everywhere.
static int64_t between(const sharing *x, const kl_seen *a, const kl_seen *b) {
  if (!a->place || !b->place || a->slot == KL_NONE || a->slot != b->slot || a->dtype != b->dtype) return 0;
  const kl_aff *e = kl_aff_sub(x->c->plan->affs, a->place, b->place);
  return e->error || e->n ? 0 : e->c < 0 ? -e->c : e->c;
}

static kiln_status find_halves(sharing *x, const kl_sights *seen) {
  int64_t bits = 0, tried = 0;
  for (size_t i = 0; i < seen->v.n; i++)
    if (seen->v.p[i].place) bits += kl_info(seen->v.p[i].dtype)->bits;
  for (size_t i = 0; i < seen->v.n && i < MOST_PAIRED; i++)
    for (size_t k = 0; k < i && !x->piece; k++) {
      int64_t piece = between(x, &seen->v.p[i], &seen->v.p[k]);
      if (piece <= 0 || piece == tried || piece > INT64_MAX / 4) continue;
      tried = piece;
      KL_TRY(try_halves(x, piece, bits));
    }
  return KILN_OK;
}

static kiln_status find_reads(sharing *x) {
  kl_choosing *c = x->c;
  kl_sights seen = {0};
  kl_look looks[MOST_RESULTS];
  const kl_shape *first = result_shape(x, 0);
  const kl_aff **index = KL_NEW_N(c->arena, const kl_aff *, x->rank + 1);
  for (uint32_t v = 0; v < x->rank; v++)
    index[kl_shape_minor_to_major(first, x->rank - 1 - v)] = kl_aff_dim(c->plan->affs, v);
  make_looks(x, index, looks);
  kiln_status st = kl_walk_look(c->cx, c->plan, &c->slots, x->rank, x->dims, x->d->n, looks, &seen);
  x->reads = KL_NEW_N(c->arena, reading, seen.v.n + 1);
  for (size_t i = 0; i < seen.v.n && st == KILN_OK; i++) {
    if (!seen.v.p[i].place) continue;
    x->reads[x->nreads] = reading_of(x, &seen.v.p[i]);
    if (is_streamed(x, &x->reads[x->nreads])) x->streamed += kl_info(seen.v.p[i].dtype)->bits;
    x->sectors += x->reads[x->nreads++].sectors;
  }
  if (st == KILN_OK && !x->chunks) st = find_halves(x, &seen);
  VEC_FREE(c->cx, &seen.v);
  return st;
}

// --- how many -------------------------------------------------------------------------------------------------------

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}

static int64_t pieces_of(const sharing *x) {
  return x->piece ? 2 : 1;
}

// What a thread loads for each of the elements apart that differ in these dimensions.
static uint32_t loaded_bytes(const sharing *x, kl_vars dims) {
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < x->nreads; i++)
    if (x->reads[i].dims & dims) bytes += x->reads[i].bytes * (uint32_t)pieces_of(x);
  return bytes;
}

// How many of `times` of these it has in registers.
static uint32_t choose_at_once(const sharing *x, kl_vars dims, int64_t times) {
  uint32_t n = MOST_AT_ONCE, bytes = loaded_bytes(x, dims);
  while (n > 1 && (times % n || n * bytes > LOADED_BYTES || n * x->lanes * x->c->plan->comp->ninstr > 1024)) n /= 2;
  return n;
}

// Threads of a multiprocessor that keep memory busy: of what it moves while a load is under way, they wait for what
// is read. Where nothing is but what is shared, they wait for that before they store.
static int64_t least_threads(const sharing *x, kl_vars dims, int64_t times) {
  int64_t waited = (int64_t)loaded_bytes(x, dims) * choose_at_once(x, dims, times);
  if (!waited) return LEAST_WAITED / LOADED_BYTES;
  int64_t n = LEAST_WAITED * x->streamed / ((x->streamed + x->stored) * waited);
  return n < LEAST_THREADS ? LEAST_THREADS : n;
}

// The most of `times` that leave as many.
static int64_t most_times(const sharing *x, kl_vars dims, int64_t times) {
  const kl_plan *p = x->c->plan;
  int64_t multiprocessors = p->target.multiprocessors ? p->target.multiprocessors : USUAL_MULTIPROCESSORS;
  int64_t least = least_threads(x, dims, times) * multiprocessors, threads = x->d->count / (x->lanes * pieces_of(x));
  if (x->c->params->strategy.times) return x->c->params->strategy.times;
  return threads / least < times ? threads / least : times;
}

static int64_t of_block(const sharing *x) {
  return kl_last_launch(x->c->plan)->block * x->lanes * pieces_of(x);
}

// Threads without an element, for each that has one: blocks do not end where what lies together does.
static double idle_of(const sharing *x, int64_t apart) {
  int64_t block = of_block(x), over = apart % block;
  return over == 0 || block % apart == 0 ? 0 : (double)(block - over) / (double)apart;
}

// Dimensions that some reads do not depend on: n values in all, with `inner` elements below one of them.
typedef struct candidate {
  kl_vars dims;
  int64_t n, inner;
  double saved; // sectors of those reads
} candidate;

// So many values lie together, so many times of them are one thread's. Groups are whole, and so are blocks of them;
// what is left over is made element by element. Odd numbers leave little to do at once.
static void try_times(sharing *x, const candidate *k, int64_t unit, int64_t times) {
  int64_t apart = k->inner * unit, groups = x->d->count / (apart * times);
  if (k->n % (unit * times) && k->n * k->inner != x->d->count) return;
  if (most_times(x, k->dims, times) < times) return;
  if (of_block(x) % apart == 0) groups -= groups % (of_block(x) / apart);
  if (groups == 0 || (x->piece && apart % (2 * x->piece))) return;
  double idle = idle_of(x, apart), left = 1 - (double)(groups * apart * times) / (double)x->d->count;
  double odd = times % 4 == 0 ? 0 : times % 2 == 0 ? 1 : 2;
  double saved = k->saved * (1 - 1 / (double)times), lost = x->sectors * (idle / 2 + left * 4 + odd / 512);
  if (x->c->params->strategy.times)
    saved /= 1 + lost; // asked for, whatever it costs
  else if (idle > 0.25 || (saved -= lost) * LEAST_SAVED < x->sectors)
    return;
  if (saved <= x->saved) return;
  x->saved = saved;
  x->d->apart = apart;
  x->d->times = times;
  x->d->groups = groups;
  x->d->at_once = choose_at_once(x, k->dims, times);
}

// What lies together is whole lanes' elements, and a warp's access if there is so much; or both halves of a run.
static void try_units(sharing *x, const candidate *k) {
  int64_t first = x->lanes / gcd(k->inner, x->lanes), most = most_times(x, k->dims, MOST_TIMES);
  while (!x->piece && first * 4 <= k->n && first * k->inner * x->bits / 8 < UNIT_BYTES) first *= 2;
  if (x->piece) first *= 2 * x->piece / gcd(first * k->inner, 2 * x->piece);
  for (int64_t unit = first, tried = 0; unit * 2 <= k->n && tried < MOST_UNITS; unit += first, tried++) {
    int64_t times = most < k->n / unit ? most : k->n / unit, end = times / 2;
    for (; times > 1 && (times > end || k->n * k->inner != x->d->count); times--) try_times(x, k, unit, times);
    if (idle_of(x, unit * k->inner) == 0) break;
  }
}

static void try_dims(sharing *x, uint32_t first, uint32_t last, int64_t n, int64_t inner) {
  candidate k = {(kl_vars)(((uint64_t)2 << last) - ((uint64_t)1 << first)), n, inner, 0};
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < x->nreads; i++) {
    if (x->reads[i].dims & k.dims) continue;
    k.saved += x->reads[i].sectors;
    bytes += x->reads[i].bytes;
  }
  bool much = x->c->params->strategy.times || k.saved * LEAST_SAVED >= x->sectors;
  if (k.saved > 0 && much && bytes <= HELD_WORDS * 4) try_units(x, &k);
}

static void try_all(sharing *x) {
  int64_t below = 1;
  for (uint32_t last = x->rank; last-- > 0; below *= x->dims[last]) {
    int64_t n = 1;
    for (uint32_t first = last + 1; first-- > 0;) {
      n *= x->dims[first];
      if (x->dims[first] > 1 && x->dims[last] > 1) try_dims(x, first, last, n, below);
    }
  }
}

// Halves alone: runs that blocks have several of, or that are some blocks.
static void try_halves_alone(sharing *x) {
  kl_domain *d = x->d;
  for (int64_t n = 1; n <= MOST_UNITS && !d->groups && x->piece; n++) {
    int64_t apart = 2 * x->piece * n, groups = d->count / apart;
    if (idle_of(x, apart) > 0) continue;
    if (of_block(x) % apart == 0) groups -= groups % (of_block(x) / apart);
    d->groups = groups;
    d->apart = apart;
  }
}

// --- is there anything? ---------------------------------------------------------------------------------------------

static bool may_share(const sharing *x, const bool *has) {
  const kl_choosing *c = x->c;
  const kl_plan *p = c->plan;
  bool small = false;
  for (uint32_t i = 0; i < p->comp->ninstr; i++) small |= p->comp->instr[i].op == KL_OP_CONCATENATE;
  if (p->target.machine == KL_HOST || p->flat || p->together || p->nlaunches > 1) return false;
  if (x->d->nparts != 1 || x->d->n > MOST_RESULTS || kl_last_launch(p)->block % 32) return false;
  if (c->params->strategy.times == 1) return false;
  for (uint32_t i = 0; i < c->slots.nargs; i++) {
    const kl_slot_info *s = &c->slots.v.p[i];
    if (has[i] && s->owner) return false;
    small |= has[i] && s->kind == KL_SLOT_IN && s->shape->count > 1 && s->shape->count < x->d->count;
  }
  return small;
}

kiln_status kl_find_sharing(kl_choosing *c, kl_domain *d, const bool *has, uint32_t lanes, bool chunks) {
  sharing x = {.c = c, .d = d, .lanes = lanes, .chunks = chunks, .bits = 128};
  d->groups = 0;
  d->times = d->at_once = d->pieces = 1;
  if (!may_share(&x, has) || most_times(&x, 0, MOST_TIMES) < 2) return KILN_OK;
  const kl_shape *s = result_shape(&x, 0);
  x.rank = s->rank;
  for (uint32_t v = 0; v < s->rank; v++) x.dims[v] = s->dims[kl_shape_minor_to_major(s, s->rank - 1 - v)];
  for (uint32_t i = 0; i < d->n; i++) {
    uint32_t bits = kl_info(result_shape(&x, i)->dtype)->bits;
    x.sectors += (double)lanes * bits / 8;
    x.stored += bits;
    if (bits < x.bits) x.bits = bits;
  }
  KL_TRY(find_reads(&x));
  try_all(&x);
  try_halves_alone(&x);
  if (d->groups && x.piece) d->pieces = 2, d->piece = x.piece;
  return KILN_OK;
}
