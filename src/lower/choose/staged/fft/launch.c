// Some passes in a launch. A block has some neighbouring sub-lines, which lie in shared memory between passes.
//
// In a pass each thread has some butterflies: number v of a block's is butterfly `of` of sub-line `line`. Where
// neighbours in memory are of one sub-line, lanes go through its butterflies, else through sub-lines. A block's
// sub-lines are of one strip, so that where they lie is a number in mixed radix whatever the length's factors. Where
// all threads have as many butterflies in every pass these are there at once, and what is read is written over; else
// they come one behind the other, from one array to another.

#include "lower/choose/staged/fft/fft.h"

enum { WARP = 32, MOST_WARPS = 8, HELD = 32, ROOM = 2048, RUN = 4 };

typedef struct pass {
  uint32_t radix;
  int64_t m, after; // outputs done before, of a sub-line; places between inputs: reach / (m * radix)
  int64_t slots;    // butterflies of a sub-line, and what follows up to the next one's
  int64_t count;    // the same of a block
  uint32_t var;
  const kl_aff *round;
  bool lines; // lanes go through sub-lines
} pass;

typedef struct launch {
  const kl_job *job;
  kl_stage_body b;
  bool host, exact, rows; // rows: sub-lines lie one behind the other, in order, at both ends
  int64_t reach, after;   // elements of a sub-line, and between its inputs, all that are beside each other
  int64_t nlines, total;  // sub-lines of a block; of all
  int64_t strip;          // of all: beside each other, or of one line of the job; or all, where these are few
  int64_t threads;
  uint32_t npasses;
  pass pass[KL_MOST_PASSES + 2];
  const kl_aff *strips, *block, *thread; // number of the strip; of the block in it; of the thread
  uint32_t room[2];
  uint32_t keep;
} launch;

// A butterfly of a thread.
typedef struct place {
  const kl_aff *of, *line; // in the sub-line; in the block
  const kl_aff *outer, *k;
  const kl_aff *first, *beside; // element of the job's line before which there is none of the sub-line; line beside it
  uint32_t there;               // the sub-line is
} place;

static kl_affs *affs(const launch *x) {
  return x->job->s->p;
}

static const kl_aff *simple(const launch *x, const kl_aff *e) {
  return kl_dom_simplify(x->b.w.body->domain, e);
}

// The guard that `outer` and lo <= e <= hi; false: it never holds.
static bool guard(launch *x, uint32_t outer, const kl_aff *e, int64_t lo, int64_t hi, uint32_t *out) {
  bool never = false;
  *out = kl_guard_and(&x->b.w.guards, outer, simple(x, e), lo, hi, &never);
  return !never;
}

static kl_number swapped(kl_number v) {
  return (kl_number){v.im, v.re};
}

static kl_number complex_of(launch *x, kl_number v) {
  if (v.im == KL_NONE) v.im = kl_number_const(&x->b, kl_number_part(x->job->whole), 0, 0).re;
  return v;
}

// --- ends -----------------------------------------------------------------------------------------------------------

// Element i of a line of an array.
static const kl_aff *in_array(const launch *x, const kl_end *e, const place *at, const kl_aff *i,
                              const kl_aff *beside) {
  kl_affs *p = affs(x);
  const kl_aff *in_line = kl_aff_addmul(p, beside, i, e->inner);
  return kl_aff_addmul(p, in_line, at->outer, (e->half ? e->n / 2 + 1 : e->n) * e->inner);
}

static kiln_status want(launch *x, const place *at, const kl_aff *i, const kl_aff *beside, uint32_t keep,
                        kl_number *out) {
  const kl_job *j = x->job;
  const kl_aff *index[KILN_MAX_RANK];
  uint32_t value;
  if (j->from.kind == KL_END_ARRAY) {
    *out = kl_number_load(&x->b, j->from.slot, in_array(x, &j->from, at, i, beside), keep);
    return KILN_OK;
  }
  kl_stage_line_index(affs(x), j->operand, j->from.dim, at->outer, beside, i, index);
  for (uint32_t d = 0; d < j->operand->rank; d++) index[d] = simple(x, index[d]);
  KL_TRY(kl_walk_want(&x->b.walk, j->s->instr->operands[0], 0, keep, index, &value));
  *out = complex_of(x, kl_number_of(&x->b, value));
  return KILN_OK;
}

// Of a half spectrum.
static kiln_status want_of_half(launch *x, const place *at, const kl_aff *i, const kl_aff *beside, uint32_t keep,
                                kl_number *out) {
  const kl_end *e = &x->job->from;
  int64_t most = e->n / 2;
  kl_number other;
  uint32_t low, high, is_low;
  bool lows = guard(x, keep, i, 0, most, &low), highs = guard(x, keep, i, most + 1, e->n - 1, &high);
  const kl_aff *back = kl_aff_addc(affs(x), kl_aff_mulc(affs(x), i, -1), e->n);
  if (lows) KL_TRY(want(x, at, i, beside, low, out));
  if (!highs) return KILN_OK;
  KL_TRY(want(x, at, back, beside, high, &other));
  other = kl_number_conj(&x->b, other);
  if (lows && guard(x, KL_NONE, i, 0, most, &is_low)) other = kl_number_choose(&x->b, is_low, *out, other);
  *out = other;
  return KILN_OK;
}

// An element of the job's line.
static kiln_status fetch(launch *x, const place *at, const kl_aff *number, kl_number *out) {
  const kl_job *j = x->job;
  const kl_end *e = &j->from;
  uint32_t keep = at->there, there = KL_NONE;
  kl_number zero = kl_number_const(&x->b, j->whole, 0, 0);
  *out = zero;
  if (e->count && !guard(x, KL_NONE, number, 0, e->count - 1, &there)) return KILN_OK;
  if (e->count) guard(x, keep, number, 0, e->count - 1, &keep);
  KL_TRY((e->half ? want_of_half : want)(x, at, number, at->beside, keep, out));
  if (e->swaps) *out = swapped(*out);
  if (e->by != KL_NONE) *out = kl_number_mul(&x->b, *out, kl_number_load(&x->b, e->by, number, keep));
  if (there != KL_NONE) *out = kl_number_choose(&x->b, there, *out, zero);
  if (j->inverse) *out = swapped(*out);
  return KILN_OK;
}

static kl_number divided(launch *x, kl_number v, int64_t by) {
  kl_dtype part = kl_number_part(x->job->whole);
  uint32_t d = kl_number_const(&x->b, part, by & (by - 1) ? (double)by : 1 / (double)by, 0).re;
  if (!(by & (by - 1))) return kl_number_scale(&x->b, v, d);
  return (kl_number){kl_stage_op(&x->b, KL_OP_DIVIDE, v.re, d), kl_stage_op(&x->b, KL_OP_DIVIDE, v.im, d)};
}

static kiln_status put(launch *x, const place *at, const kl_aff *number, kl_number v) {
  const kl_job *j = x->job;
  const kl_end *e = &j->to;
  kl_affs *p = affs(x);
  const kl_aff *index[KILN_MAX_RANK];
  uint32_t keep = at->there;
  if (e->count && !guard(x, keep, number, 0, e->count - 1, &keep)) return KILN_OK;
  if (j->inverse) v = swapped(v);
  if (e->by != KL_NONE) v = kl_number_mul(&x->b, v, kl_number_load(&x->b, e->by, number, keep));
  if (e->half && !guard(x, keep, number, 0, e->n / 2, &keep)) return KILN_OK;
  if (e->divide > 1) v = divided(x, v, e->divide);
  if (e->swaps) v = swapped(v);
  if (e->kind == KL_END_ARRAY) return kl_number_store(&x->b, e->slot, in_array(x, e, at, number, at->beside), v, keep);
  kl_stage_line_index(p, j->result, e->dim, at->outer, at->beside, number, index);
  for (uint32_t d = 0; d < j->result->rank; d++) index[d] = simple(x, index[d]);
  if (!kl_is_complex(j->result->dtype)) v.im = KL_NONE;
  return kl_stage_store(&x->b, j->s->slot[0], index, kl_number_value(&x->b, v, j->result->dtype), keep);
}

// --- a butterfly ----------------------------------------------------------------------------------------------------

static const kl_aff *room_at(const launch *x, const place *at, const kl_aff *t) {
  kl_affs *p = affs(x);
  return simple(x, x->rows ? kl_aff_addmul(p, t, at->line, x->reach) : kl_aff_addmul(p, at->line, t, x->nlines));
}

kl_number kl_table_root(kl_stage_body *b, const kl_table *t, const kl_aff *e, uint32_t keep) {
  kl_affs *p = b->s->p;
  if (t->high == KL_NONE) return kl_number_load(b, t->low, e, keep);
  kl_number high = kl_number_load(b, t->high, kl_aff_floordivc(p, e, t->step), keep);
  return kl_number_mul(b, high, kl_number_load(b, t->low, kl_aff_modc(p, e, t->step), keep));
}

static place place_of(launch *x, const pass *s, const kl_aff *v) {
  kl_affs *p = affs(x);
  int64_t n = s->slots;
  place at;
  at.of = simple(x, s->lines ? kl_aff_floordivc(p, v, x->nlines) : kl_aff_modc(p, v, n));
  at.line = simple(x, s->lines ? kl_aff_modc(p, v, x->nlines) : kl_aff_floordivc(p, v, n));
  const kl_aff *in_strip = simple(x, kl_aff_addmul(p, at.line, x->block, x->nlines));
  guard(x, x->keep, in_strip, 0, x->strip - 1, &at.there);
  if (x->after == 1 && x->strip == x->job->before) {
    at.first = at.beside = kl_aff_const(p, 0);
    at.k = in_strip;
    at.outer = x->strips;
    return at;
  }
  bool all = x->strip != x->after, whole = !all && x->after == x->job->inner;
  const kl_aff *rest = all ? simple(x, kl_aff_floordivc(p, in_strip, x->after)) : x->strips;
  const kl_aff *in_rest = all ? simple(x, kl_aff_modc(p, in_strip, x->after)) : in_strip;
  at.first = whole ? kl_aff_const(p, 0) : simple(x, kl_aff_floordivc(p, in_rest, x->job->inner));
  at.beside = whole ? in_rest : simple(x, kl_aff_modc(p, in_rest, x->job->inner));
  at.k = simple(x, kl_aff_modc(p, rest, x->job->before));
  at.outer = simple(x, kl_aff_floordivc(p, rest, x->job->before));
  return at;
}

static kl_number root_of(launch *x, const kl_aff *e) {
  return kl_table_root(&x->b, x->job->table, simple(x, e), x->keep);
}

static kiln_status inputs(launch *x, uint32_t number, const place *at, kl_number *v) {
  const pass *s = &x->pass[number];
  const kl_job *j = x->job;
  kl_affs *p = affs(x);
  const kl_aff *group = simple(x, kl_aff_floordivc(p, at->of, s->after));
  const kl_aff *first = kl_aff_addmul(p, at->of, group, (s->radix - 1) * s->after);
  const kl_aff *done = kl_aff_addmul(p, at->k, group, j->before);
  int64_t of = j->before * s->m * s->radix;
  for (uint32_t i = 0; i < s->radix; i++) {
    const kl_aff *t = kl_aff_addc(p, first, i * s->after);
    if (number) {
      v[i] = kl_number_load(&x->b, x->room[(number - 1) % 2], room_at(x, at, t), x->keep);
    } else {
      const kl_aff *pos = kl_aff_addmul(p, at->first, kl_aff_addmul(p, t, at->k, x->reach), x->after / j->inner);
      KL_TRY(fetch(x, at, simple(x, pos), &v[i]));
    }
    if (i && of > s->radix) v[i] = kl_number_mul(&x->b, v[i], root_of(x, kl_aff_mulc(p, done, i * (j->table->n / of))));
  }
  return KILN_OK;
}

static kiln_status outputs(launch *x, uint32_t number, const place *at, const kl_number *v) {
  const pass *s = &x->pass[number];
  kl_affs *p = affs(x);
  for (uint32_t i = 0; i < s->radix; i++) {
    const kl_aff *t = kl_aff_addc(p, at->of, i * (x->reach / s->radix));
    if (number + 1 < x->npasses) {
      KL_TRY(kl_number_store(&x->b, x->room[number % 2], room_at(x, at, t), v[i], x->keep));
      continue;
    }
    const kl_aff *pos =
        kl_aff_addmul(p, at->first, kl_aff_addmul(p, at->k, t, x->job->before), x->after / x->job->inner);
    KL_TRY(put(x, at, simple(x, pos), v[i]));
  }
  return KILN_OK;
}

// --- passes ---------------------------------------------------------------------------------------------------------

static kiln_status write_pass(launch *x, uint32_t number) {
  const pass *s = &x->pass[number];
  kl_number in[KL_MOST_RADIX], out[KL_MOST_RADIX];
  const kl_aff *v = simple(x, kl_aff_addmul(affs(x), x->thread, s->round, x->threads));
  bool loops = !x->exact && s->var != KL_NONE;
  if (loops) kl_write_loop(&x->b.w, s->var, 0, NULL, NULL, NULL);
  const kl_aff *of = simple(x, s->lines ? kl_aff_floordivc(affs(x), v, x->nlines) : kl_aff_modc(affs(x), v, s->slots));
  x->keep = KL_NONE;
  if (!s->lines) guard(x, KL_NONE, v, 0, s->count - 1, &x->keep);
  if (s->lines || s->slots * s->radix > x->reach) guard(x, x->keep, of, 0, x->reach / s->radix - 1, &x->keep);
  uint32_t branch = x->keep;
  if (x->host) branch = KL_NONE;
  if (branch != KL_NONE) kl_write_if(&x->b.w, branch), x->keep = KL_NONE;
  place at = place_of(x, s, v);
  KL_TRY(inputs(x, number, &at, in));
  if (s->radix > 1)
    kl_small_transform(&x->b, x->job->whole, s->radix, in, out);
  else
    out[0] = in[0];
  KL_TRY(outputs(x, number, &at, out));
  if (branch != KL_NONE) kl_write_if_end(&x->b.w);
  if (loops) kl_write_loop_end(&x->b.w, NULL);
  return KILN_OK;
}

static kiln_status write_launch(void *arg) {
  launch *x = arg;
  kl_choosing *c = x->job->s->c;
  if (x->npasses > 1) {
    x->room[0] = kl_add_shared(c->cx, c->plan, &c->slots, x->job->whole, x->nlines * x->reach);
    x->room[1] = x->exact ? x->room[0] : kl_add_shared(c->cx, c->plan, &c->slots, x->job->whole, x->nlines * x->reach);
  }
  for (uint32_t i = 0; i < x->npasses; i++) KL_TRY(write_pass(x, i));
  return KILN_OK;
}

// --- sizes ----------------------------------------------------------------------------------------------------------

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

static void add_pass(launch *x, uint32_t radix, int64_t m) {
  x->pass[x->npasses++] = (pass){.radix = radix, .m = m, .after = x->reach / (m * radix), .slots = x->reach / radix};
}

// Elements that lie together are read and written together, if need be in a pass of their own.
static void list_passes(launch *x, uint32_t n, const uint32_t *radix) {
  int64_t m = 1;
  bool rows = x->after == 1, in_order = rows && x->job->before == 1;
  if (!n || (rows && x->reach / radix[0] < RUN && !x->host)) add_pass(x, 1, 1);
  for (uint32_t i = 0; i < n; i++) {
    add_pass(x, radix[i], m);
    m *= radix[i];
  }
  if (n && in_order && x->reach / radix[n - 1] < RUN && !x->host) add_pass(x, 1, m);
  for (uint32_t i = 0; i < x->npasses; i++) x->pass[i].lines = !in_order && (i || !rows);
  for (uint32_t i = 0; i < x->npasses; i++) x->pass[i].count = x->pass[i].slots * x->nlines;
  x->rows = in_order;
}

// What goes to an array must be known to be all of it: where lanes go along sub-lines a thread's number is one of a
// power of two of butterflies.
static void pad_last(launch *x) {
  pass *s = &x->pass[x->npasses - 1];
  if (x->host || s->lines || x->job->to.kind != KL_END_ARRAY) return;
  for (s->slots = 1; s->slots < x->reach / s->radix;) s->slots *= 2;
  s->count = s->slots * x->nlines;
}

// Warps of which all threads have as many butterflies in every pass, not too many at once.
static bool is_exact(const launch *x, int64_t *threads) {
  int64_t common = 0, most = 0;
  for (uint32_t i = 0; i < x->npasses; i++) common = gcd(common, x->pass[i].count);
  if (common % WARP) return false;
  for (int64_t warps = 1; warps <= MOST_WARPS; warps++)
    if (common / WARP % warps == 0) most = warps;
  *threads = most * WARP;
  for (uint32_t i = 0; i < x->npasses; i++)
    if (x->pass[i].count / *threads * x->pass[i].radix > HELD) return false;
  return true;
}

static void size_launch(launch *x, uint32_t n, const uint32_t *radix) {
  for (x->nlines = 1; 2 * x->nlines * x->reach <= ROOM && x->nlines < x->total;) x->nlines *= 2;
  x->strip = x->after > 1 ? x->after : x->job->before;
  if (x->strip < x->nlines) x->strip = x->total;
  list_passes(x, n, radix);
  x->threads = x->job->s->c->plan->target.host_lanes;
  if (x->host) return;
  x->exact = is_exact(x, &x->threads);
  if (x->exact) return;
  pad_last(x);
  int64_t most = 1;
  for (uint32_t i = 0; i < x->npasses; i++) most = x->pass[i].count > most ? x->pass[i].count : most;
  for (x->threads = WARP; x->threads < WARP * MOST_WARPS && x->threads < most;) x->threads *= 2;
}

static void make_vars(launch *x) {
  kl_affs *p = affs(x);
  kl_var_list *vars = &x->b.vars;
  uint32_t var;
  int64_t lanes = x->host ? x->threads : WARP;
  x->strips = kl_new_var(p, vars, KL_BIND_BLOCK, x->total / x->strip, "strip", &var);
  x->block = kl_new_var(p, vars, KL_BIND_BLOCK, (x->strip - 1) / x->nlines + 1, "block", &var);
  const kl_aff *warp = kl_new_var(p, vars, KL_BIND_WARP, x->threads / lanes, "warp", &var);
  x->thread = kl_aff_addmul(p, kl_new_var(p, vars, KL_BIND_LANE, lanes, "lane", &var), warp, lanes);
  for (uint32_t i = 0; i < x->npasses; i++) {
    pass *s = &x->pass[i];
    s->round = kl_new_var(p, vars, x->exact ? KL_BIND_REG : KL_BIND_STEP, (s->count - 1) / x->threads + 1,
                          kl_strf(x->job->s->c->arena, "v%u", i), &s->var);
  }
}

kiln_status kl_write_passes(const kl_job *job, uint32_t n, const uint32_t *radix) {
  launch x = {.job = job, .b = {.s = job->s, .keep = KL_NONE}, .reach = 1, .keep = KL_NONE};
  x.host = job->s->c->plan->target.machine == KL_HOST;
  for (uint32_t i = 0; i < n; i++) x.reach *= radix[i];
  x.after = job->n / (job->before * x.reach) * job->inner;
  x.total = job->outer * job->before * x.after;
  size_launch(&x, n, radix);
  make_vars(&x);
  return kl_stage_write(&x.b, x.total * x.reach, write_launch, &x);
}
