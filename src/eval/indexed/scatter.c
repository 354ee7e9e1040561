// scatter: updates combined into a copy of the operands, window after window in the row-major order of the index
// vectors. A window that does not lie inside the operand is skipped as a whole.
//
// HLO leaves the order open. Where several updates meet in one element, its interval holds the results of all orders:
// of any one of the updates if the combiner just takes them, of every fold for the combiners that sum.h knows;
// other combiners leave the element open. Sums of f32 may take denormals for zeros at each step, as GPUs do in memory.
// `unique_indices` promises that no two meet.
//
// Lanes: pairs (element, update) are queued until an element would occur twice, then combined at once.
#include "eval/indexed/index.h"
#include "eval/fold/sum.h"

enum { FEW_LANES = 32 }; // that are looked through one by one

typedef enum rule {
  RULE_TAKE,   // result i is update i
  RULE_ANY,    // the order does not matter
  RULE_FOLD,   // sum.h knows what it does
  RULE_UNKNOWN // it does, or may
} rule;

// One operand, its updates and its result.
typedef struct leaf {
  rule rule;
  kl_dtype t;
  size_t size;
  kl_evval before;  // the operand, where it is looked at once more
  kl_evval updates; // written out in full
  kl_evval *out;
  // lanes, by plane
  char *a[KL_EV_PLANES], *b[KL_EV_PLANES], *c[KL_EV_PLANES];
} leaf;

typedef struct scatter {
  kl_ev *ev;
  const kl_instr *in;
  kl_ev_windows w;
  bool intervals, open; // planes are kept; some window's place is not known
  bool meet;            // updates that meet have to be counted
  uint32_t n;
  leaf *leaf;
  kl_ev_program *program;
  kl_ev_regs *regs;
  int64_t count; // elements of an operand
  kiln_status status;
  // the queue
  int64_t lanes, room, target[KL_EV_CHUNK], source[KL_EV_CHUNK];
  uint32_t *stamp, round; // by element: the round in which it was last queued; NULL: few lanes
  uint32_t *hits;         // by element, where intervals ask; saturates
  char *memory;
  const void **params;
  void **results;
  kl_iv_in *iv_in;
  kl_iv_out *iv_out;
} scatter;

// --- what the combiner is -----------------------------------------------------------------------------------------

// The leaf of a computation's parameters that leaf `leaf` of instruction `i` hands on; -1 where it is computed.
static int64_t handed_on(const kl_comp *c, uint32_t i, size_t leaf) {
  for (;;) {
    const kl_instr *in = &c->instr[i];
    size_t n;
    switch (in->op) {
    case KL_OP_PARAMETER:
      for (int64_t p = 0; p < in->number; p++) leaf += kl_shape_leaf_count(c->instr[c->params[p]].shape);
      return (int64_t)leaf;
    case KL_OP_TUPLE: {
      uint32_t k = 0;
      for (; leaf >= (n = kl_shape_leaf_count(kl_operand(c, in, k)->shape)); k++) leaf -= n;
      i = in->operands[k];
      break;
    }
    case KL_OP_GET_TUPLE_ELEMENT:
      leaf += kl_operand(c, in, 0)->shape->first_leaf[in->number];
      i = in->operands[0];
      break;
    case KL_OP_COPY: i = in->operands[0]; break;
    default: return -1;
    }
  }
}

static rule rule_of(const scatter *s, uint32_t k) {
  const kl_comp *c = &s->ev->m->comp[s->in->called[0]];
  kl_dtype t = s->leaf[k].t;
  kl_op op;
  int64_t from = handed_on(c, c->root, k);
  if (from == k) return RULE_ANY;
  if (from == s->n + k) return RULE_TAKE;
  if (!kl_ev_program_combiner(s->program, k, &op)) return RULE_UNKNOWN;
  bool exact = !kl_is_float(t) && !kl_is_complex(t);
  if (exact || ((op == KL_OP_MAXIMUM || op == KL_OP_MINIMUM) && !kl_is_complex(t))) return RULE_ANY;
  return kl_fold_knows(op, t) ? RULE_FOLD : RULE_UNKNOWN;
}

// --- combining ----------------------------------------------------------------------------------------------------

static void pick_lanes(scatter *s, leaf *l, int last) {
  for (int plane = KL_EV_DATA; plane <= last; plane++) {
    size_t size = plane == KL_EV_ANY ? 1 : l->size;
    const void *a = kl_ev_plane(l->out, plane), *b = kl_ev_plane(&l->updates, plane);
    kl_ev_pick(size, s->lanes, s->target, a, l->a[plane]);
    if (b)
      kl_ev_pick(size, s->lanes, s->source, b, l->b[plane]);
    else
      memset(l->b[plane], 0, (size_t)s->lanes);
  }
}

static void flush(scatter *s) {
  int last = s->intervals ? KL_EV_ANY : KL_EV_DATA;
  if (s->lanes == 0 || s->status != KILN_OK) return;
  for (uint32_t k = 0; k < s->n; k++) pick_lanes(s, &s->leaf[k], last);
  if (s->intervals)
    s->status = kl_ev_program_run_iv(s->program, s->regs, s->lanes, s->iv_in, s->iv_out);
  else
    s->status = kl_ev_program_run(s->program, s->regs, s->lanes, s->params, s->results);
  for (uint32_t k = 0; k < s->n && s->status == KILN_OK; k++)
    for (int plane = KL_EV_DATA; plane <= last; plane++)
      kl_ev_put(plane == KL_EV_ANY ? 1 : s->leaf[k].size, s->lanes, s->target, s->leaf[k].c[plane],
                kl_ev_plane(s->leaf[k].out, plane));
  s->lanes = 0;
  if (++s->round || !s->stamp) return;
  memset(s->stamp, 0, sizeof *s->stamp * (size_t)s->count);
  s->round = 1;
}

static bool is_queued(const scatter *s, int64_t target) {
  if (s->stamp) return s->stamp[target] == s->round;
  for (int64_t i = 0; i < s->lanes; i++)
    if (s->target[i] == target) return true;
  return false;
}

static void combine_row(scatter *s, int64_t n, int64_t target, int64_t tstep, int64_t source, int64_t sstep) {
  for (int64_t i = 0; i < n; i++, target += tstep, source += sstep) {
    if (is_queued(s, target) || s->lanes == s->room) flush(s);
    if (s->stamp) s->stamp[target] = s->round;
    s->target[s->lanes] = target;
    s->source[s->lanes++] = source;
    if (s->hits && s->hits[target] != UINT32_MAX) s->hits[target]++;
  }
}

// --- taking -------------------------------------------------------------------------------------------------------

// Data of update `from` in the element `to`, whose interval already holds that of others.
static void take_another(const leaf *l, int64_t to, int64_t from) {
  int64_t key[2][2];
  char *data = kl_ev_plane(l->out, KL_EV_DATA), *lo = kl_ev_plane(l->out, KL_EV_LO),
       *hi = kl_ev_plane(l->out, KL_EV_HI);
  uint8_t *any = kl_ev_plane(l->out, KL_EV_ANY);
  const uint8_t *other = kl_ev_plane(&l->updates, KL_EV_ANY);
  kl_dtype part = kl_is_complex(l->t) ? kl_info(l->t)->part : l->t;
  bool open = any[to] || (other && other[from]);
  for (int k = 0; k < (kl_is_complex(l->t) ? 2 : 1); k++) {
    uint64_t bits = kl_element_get(l->t, kl_ev_plane(&l->updates, KL_EV_DATA), from, k);
    uint64_t before = kl_element_get(l->t, data, to, k);
    uint64_t a = kl_element_get(l->t, lo, to, k), b = kl_element_get(l->t, hi, to, k);
    uint64_t c = kl_element_get(l->t, kl_ev_plane(&l->updates, KL_EV_LO), from, k);
    uint64_t d = kl_element_get(l->t, kl_ev_plane(&l->updates, KL_EV_HI), from, k);
    bool nan = kl_is_float(part) && kl_float_is_nan(part, bits);
    open |= kl_is_float(part) && nan != kl_float_is_nan(part, before);
    key[0][0] = kl_iv_key(part, a), key[0][1] = kl_iv_key(part, b);
    key[1][0] = kl_iv_key(part, c), key[1][1] = kl_iv_key(part, d);
    kl_element_set(l->t, data, to, k, bits);
    kl_element_set(l->t, lo, to, k, open || nan ? bits : key[0][0] < key[1][0] ? a : c);
    kl_element_set(l->t, hi, to, k, open || nan ? bits : key[0][1] > key[1][1] ? b : d);
  }
  any[to] = open;
}

static void take_first(const leaf *l, int64_t to, int64_t from) {
  for (int plane = KL_EV_DATA; plane < KL_EV_PLANES; plane++) {
    size_t size = plane == KL_EV_ANY ? 1 : l->size;
    const char *src = kl_ev_plane(&l->updates, plane);
    char *dst = (char *)kl_ev_plane(l->out, plane) + (size_t)to * size;
    if (src)
      memcpy(dst, src + (size_t)from * size, size);
    else
      *dst = 0;
  }
}

static void take_row(scatter *s, int64_t n, int64_t target, int64_t tstep, int64_t source, int64_t sstep) {
  for (int64_t i = 0; i < n; i++, target += tstep, source += sstep) {
    bool met = s->hits && s->hits[target];
    if (s->hits) s->hits[target] = 1;
    for (uint32_t k = 0; k < s->n; k++) {
      if (met)
        take_another(&s->leaf[k], target, source);
      else
        take_first(&s->leaf[k], target, source);
    }
  }
}

// --- windows ------------------------------------------------------------------------------------------------------

typedef void row_fn(scatter *s, int64_t n, int64_t target, int64_t tstep, int64_t source, int64_t sstep);

static void each_row(scatter *s, row_fn *row, uint32_t d, int64_t target, int64_t source) {
  const kl_ev_walk *w = &s->w.window;
  if (d >= w->n || d + 1 == w->n) {
    bool one = w->n == 0;
    row(s, one ? 1 : w->extent[d], target, one ? 0 : w->src[d], source, one ? 0 : w->dst[d]);
    return;
  }
  for (int64_t i = 0; i < w->extent[d]; i++) each_row(s, row, d + 1, target + i * w->src[d], source + i * w->dst[d]);
}

// Windows that are just copied.
static void copy_window(scatter *s, int64_t target, int64_t source) {
  kl_ev_walk w = s->w.window;
  memcpy(w.src, s->w.window.dst, sizeof w.src);
  memcpy(w.dst, s->w.window.src, sizeof w.dst);
  w.src_base = source;
  w.dst_base = target;
  for (uint32_t k = 0; k < s->n; k++)
    kl_ev_copy_here(&w, s->leaf[k].size, kl_ev_plane(&s->leaf[k].updates, KL_EV_DATA),
                    kl_ev_plane(s->leaf[k].out, KL_EV_DATA));
}

static void each_window(scatter *s, bool take, row_fn *row, bool *open) {
  kl_ev_cursor c;
  kl_ev_cursor_set(&s->w, &c, 0);
  for (int64_t i = 0; i < s->w.n && s->status == KILN_OK; i++, kl_ev_cursor_next(&s->w, &c)) {
    bool inside, unknown;
    int64_t target = kl_ev_cursor_start(&s->w, &c, &inside, &unknown);
    *open |= unknown;
    if (!inside) continue;
    if (take && !s->intervals)
      copy_window(s, target, c.array);
    else
      each_row(s, row, 0, target, c.array);
  }
}

// --- updates that met ---------------------------------------------------------------------------------------------

// For every element with two updates or more, where their list begins in `sources`.
typedef struct meetings {
  int64_t *first; // by element
  int64_t *sources;
  int64_t total;
} meetings;

static kiln_status meetings_new(scatter *s, meetings *m) {
  *m = (meetings){0};
  for (int64_t i = 0; i < s->count; i++) m->total += s->hits[i] > 1 ? s->hits[i] : 0;
  m->first = kl_try_alloc(s->ev->cx, sizeof(int64_t) * (size_t)(s->count + 1));
  m->sources = kl_try_alloc(s->ev->cx, sizeof(int64_t) * (size_t)(m->total + 1));
  if (!m->first || !m->sources)
    return kl_out_of_memory(s->ev->cx, sizeof(int64_t) * (size_t)(s->count + m->total + 2), "a scatter");
  int64_t at = 0;
  for (int64_t i = 0; i < s->count; i++) {
    m->first[i] = at;
    at += s->hits[i] > 1 ? s->hits[i] : 0;
  }
  return KILN_OK;
}

static void meetings_free(scatter *s, meetings *m) {
  kl_free(s->ev->cx, m->first, sizeof(int64_t) * (size_t)(s->count + 1));
  kl_free(s->ev->cx, m->sources, sizeof(int64_t) * (size_t)(m->total + 1));
}

// Lists every element's updates; afterwards m->first is where its list ends.
static void list_sources(scatter *s, meetings *m) {
  kl_ev_cursor c;
  const kl_ev_walk *w = &s->w.window;
  kl_ev_cursor_set(&s->w, &c, 0);
  for (int64_t i = 0; i < s->w.n; i++, kl_ev_cursor_next(&s->w, &c)) {
    bool inside, unknown;
    int64_t start = kl_ev_cursor_start(&s->w, &c, &inside, &unknown);
    for (int64_t e = 0; inside && e < s->w.window_count; e++) {
      int64_t target = start, source = c.array, rest = e;
      for (uint32_t d = w->n; d-- > 0;) {
        target += rest % w->extent[d] * w->src[d];
        source += rest % w->extent[d] * w->dst[d];
        rest /= w->extent[d];
      }
      if (s->hits[target] > 1) m->sources[m->first[target]++] = source;
    }
  }
}

static kl_iv_in element_of(const leaf *l, const kl_evval *v, int64_t i) {
  size_t at = v->splat ? 0 : (size_t)i;
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  const char *data = kl_ev_plane(v, KL_EV_DATA), *lo = kl_ev_plane(v, KL_EV_LO), *hi = kl_ev_plane(v, KL_EV_HI);
  return (kl_iv_in){data + at * l->size, lo + at * l->size, hi + at * l->size, any ? any + at : NULL};
}

// The interval of all orders around the data of one.
static void fold_element(const leaf *l, kl_op op, const meetings *m, int64_t i, uint32_t hits) {
  _Alignas(16) char planes[3][16];
  uint8_t any = 0, *open = kl_ev_plane(l->out, KL_EV_ANY);
  kl_iv_out one = {planes[0], planes[1], planes[2], &any};
  kl_dtype part = kl_is_complex(l->t) ? kl_info(l->t)->part : l->t;
  kl_fold f;
  kl_iv_in term = element_of(l, &l->before, i);
  kl_fold_start(&f, op, l->t, true);
  kl_fold_add(&f, 1, &term);
  for (int64_t k = m->first[i] - hits; k < m->first[i]; k++) {
    term = element_of(l, &l->updates, m->sources[k]);
    kl_fold_add(&f, 1, &term);
  }
  kl_fold_store(&f, &one, 0);
  for (int k = 0; k < (kl_is_complex(l->t) ? 2 : 1); k++) {
    uint64_t data = kl_element_get(l->t, kl_ev_plane(l->out, KL_EV_DATA), i, k);
    uint64_t lo = kl_element_get(l->t, planes[1], 0, k), hi = kl_element_get(l->t, planes[2], 0, k);
    uint64_t best = kl_element_get(l->t, planes[0], 0, k);
    any |= kl_float_is_nan(part, data) != kl_float_is_nan(part, best);
    if (!any && !kl_float_is_nan(part, data)) {
      if (kl_iv_key(part, data) < kl_iv_key(part, lo)) lo = data;
      if (kl_iv_key(part, data) > kl_iv_key(part, hi)) hi = data;
    }
    kl_element_set(l->t, kl_ev_plane(l->out, KL_EV_LO), i, k, any ? data : lo);
    kl_element_set(l->t, kl_ev_plane(l->out, KL_EV_HI), i, k, any ? data : hi);
  }
  open[i] = any;
}

static bool may_flush(const leaf *l, kl_op op) {
  return l->rule == RULE_FOLD && op == KL_OP_ADD && (l->t == KILN_F32 || l->t == KILN_C64);
}

static uint64_t outward(double v, bool up) {
  uint64_t bits = kl_float_encode(KILN_F32, v);
  double near = kl_float_decode(KILN_F32, bits);
  if (v == 0) return kl_float_encode(KILN_F32, up ? 0.0 : -0.0);
  return (up ? near < v : near > v) ? kl_float_next(KILN_F32, bits, up) : bits;
}

// red.add.f32 in global memory makes zeros of denormals, of what is there, of what is added and of their sum: each time
// the sum is off by less than 2^-126. Of sums that are much larger that is less than half a unit.
static void allow_flushes(const leaf *l, int64_t i, uint32_t hits) {
  double most = (2.0 * hits + 1) * 0x1p-126;
  char *lo = kl_ev_plane(l->out, KL_EV_LO), *hi = kl_ev_plane(l->out, KL_EV_HI);
  for (int k = 0; k < (kl_is_complex(l->t) ? 2 : 1); k++) {
    double least = kl_float_decode(KILN_F32, kl_element_get(l->t, lo, i, k));
    double greatest = kl_float_decode(KILN_F32, kl_element_get(l->t, hi, i, k));
    if (!(least < most * 0x1p30 && greatest > -most * 0x1p30)) continue; // or NaN
    kl_element_set(l->t, lo, i, k, outward(least - most, false));
    kl_element_set(l->t, hi, i, k, outward(greatest + most, true));
  }
}

static kiln_status widen(scatter *s) {
  bool folds = false, met = false;
  meetings m = {0};
  for (uint32_t k = 0; k < s->n; k++) folds |= s->leaf[k].rule == RULE_FOLD;
  for (int64_t i = 0; i < s->count && !met; i++) met = s->hits[i] > (folds ? 0 : 1);
  if (!met) return KILN_OK;
  kiln_status status = folds ? meetings_new(s, &m) : KILN_OK;
  if (folds && status == KILN_OK) list_sources(s, &m);
  for (uint32_t k = 0; k < s->n && status == KILN_OK; k++) {
    leaf *l = &s->leaf[k];
    kl_op op = KL_OP_ADD;
    if (l->rule == RULE_FOLD) kl_ev_program_combiner(s->program, k, &op);
    uint8_t *any = kl_ev_plane(l->out, KL_EV_ANY);
    for (int64_t i = 0; i < s->count && l->rule != RULE_ANY; i++) {
      if (s->hits[i] > 1 && l->rule == RULE_FOLD)
        fold_element(l, op, &m, i, s->hits[i]);
      else if (s->hits[i] > 1)
        any[i] = 1;
      if (s->hits[i] > 0 && may_flush(l, op)) allow_flushes(l, i, s->hits[i]);
    }
  }
  if (folds) meetings_free(s, &m);
  return status;
}

// --- preparing ----------------------------------------------------------------------------------------------------

// Room for lanes: three values of all planes for each leaf.
static bool place_lanes(scatter *s) {
  const size_t plane = 16 * (size_t)s->room, one = 3 * KL_EV_PLANES * plane;
  s->memory = kl_try_alloc(s->ev->cx, s->n * one);
  if (!s->memory) return false;
  s->params = kl_alloc(s->ev->cx, sizeof(void *) * 2 * s->n);
  s->results = kl_alloc(s->ev->cx, sizeof(void *) * s->n);
  s->iv_in = kl_alloc(s->ev->cx, sizeof(kl_iv_in) * 2 * s->n);
  s->iv_out = kl_alloc(s->ev->cx, sizeof(kl_iv_out) * s->n);
  for (uint32_t k = 0; k < s->n; k++) {
    leaf *l = &s->leaf[k];
    for (int p = 0; p < KL_EV_PLANES; p++) {
      char *at = s->memory + k * one + 3 * (size_t)p * plane;
      l->a[p] = at, l->b[p] = at + plane, l->c[p] = at + 2 * plane;
    }
    s->params[k] = l->a[KL_EV_DATA], s->params[s->n + k] = l->b[KL_EV_DATA], s->results[k] = l->c[KL_EV_DATA];
    s->iv_in[k] = (kl_iv_in){l->a[0], l->a[1], l->a[2], (uint8_t *)l->a[3]};
    s->iv_in[s->n + k] = (kl_iv_in){l->b[0], l->b[1], l->b[2], (uint8_t *)l->b[3]};
    s->iv_out[k] = (kl_iv_out){l->c[0], l->c[1], l->c[2], (uint8_t *)l->c[3]};
  }
  return true;
}

static kiln_status prepare_lanes(scatter *s) {
  size_t stamps = sizeof *s->stamp * (size_t)s->count;
  int64_t updates = s->leaf[0].updates.shape->count;
  bool few = updates <= FEW_LANES;
  s->room = updates < KL_EV_CHUNK ? updates : KL_EV_CHUNK;
  s->regs = kl_ev_regs_new(s->ev, s->program, s->room);
  if (!s->regs) return KILN_E_MEMORY;
  if (!few) s->stamp = kl_try_alloc(s->ev->cx, stamps);
  s->round = 1;
  if ((s->stamp || few) && place_lanes(s)) return KILN_OK;
  return kl_out_of_memory(s->ev->cx, stamps, "a scatter");
}

// Decides how exact the results are, then takes operands and updates.
static kiln_status prepare(scatter *s, const kl_evval *const *operands, bool *take) {
  bool inexact = !kl_ev_exact(operands[s->n]), ordered = false, unique = s->in->more->unique_indices;
  *take = true;
  for (uint32_t k = 0; k < s->n; k++) {
    s->leaf[k].t = operands[k]->shape->dtype;
    s->leaf[k].size = kl_ev_size(s->leaf[k].t);
    s->leaf[k].rule = rule_of(s, k);
    *take &= s->leaf[k].rule == RULE_TAKE;
    ordered |= s->leaf[k].rule != RULE_ANY;
    inexact |= !kl_ev_exact(operands[k]) || !kl_ev_exact(operands[s->n + 1 + k]);
  }
  if (!*take) inexact |= !kl_ev_program_exact(s->program) || kl_ev_program_reads_bits(s->program);
  s->meet = s->ev->intervals && ordered && !unique;
  s->intervals = s->ev->intervals && (inexact || s->meet);
  for (uint32_t k = 0; k < s->n; k++) {
    leaf *l = &s->leaf[k];
    const kl_evval *before = operands[k], *updates = operands[s->n + 1 + k];
    bool raw = *take && before->raw && updates->raw;
    KL_TRY(kl_ev_expand(s->ev, updates, &l->updates));
    if (s->meet) l->before = kl_ev_share(before, before->shape);
    KL_TRY(kl_ev_own(s->ev, operands, k, before->shape, s->intervals, l->out));
    l->out->raw = raw;
  }
  if (s->meet && !(s->hits = kl_try_alloc(s->ev->cx, sizeof *s->hits * (size_t)s->count)))
    return kl_out_of_memory(s->ev->cx, sizeof *s->hits * (size_t)s->count, "a scatter");
  return *take ? KILN_OK : prepare_lanes(s);
}

static kiln_status finish(scatter *s, bool take) {
  kiln_status status = s->meet && !take ? widen(s) : KILN_OK;
  for (uint32_t k = 0; k < s->n && status == KILN_OK && s->intervals; k++) {
    if (s->open)
      status = kl_ev_open(s->ev, s->leaf[k].out);
    else
      kl_ev_settle(s->ev, s->leaf[k].out);
  }
  return status;
}

static void clean_up(scatter *s, kl_evval *out, kiln_status status) {
  kl_ctx *cx = s->ev->cx;
  if (s->memory) {
    kl_free(cx, s->iv_out, sizeof(kl_iv_out) * s->n);
    kl_free(cx, s->iv_in, sizeof(kl_iv_in) * 2 * s->n);
    kl_free(cx, s->results, sizeof(void *) * s->n);
    kl_free(cx, s->params, sizeof(void *) * 2 * s->n);
    kl_free(cx, s->memory, s->n * 3 * KL_EV_PLANES * 16 * (size_t)s->room);
  }
  if (s->stamp) kl_free(cx, s->stamp, sizeof *s->stamp * (size_t)s->count);
  if (s->hits) kl_free(cx, s->hits, sizeof *s->hits * (size_t)s->count);
  kl_ev_regs_free(s->ev, s->regs);
  kl_ev_program_free(s->ev, s->program);
  for (uint32_t k = 0; k < s->n; k++) {
    kl_ev_free(s->ev, &s->leaf[k].before);
    kl_ev_free(s->ev, &s->leaf[k].updates);
    if (status != KILN_OK) kl_ev_free(s->ev, &out[k]);
  }
  kl_free(cx, s->leaf, sizeof(leaf) * s->n);
  kl_free(cx, s, sizeof *s);
}

static kiln_status run(scatter *s, const kl_evval *const *operands) {
  bool take;
  KL_TRY(prepare(s, operands, &take));
  each_window(s, take, take ? take_row : combine_row, &s->open);
  flush(s);
  return s->status == KILN_OK ? finish(s, take) : s->status;
}

// A combiner may be written for another float type than the arrays have.
static bool combines_types(const kl_ev *ev, const kl_instr *in, const kl_evval *const *operands, uint32_t n) {
  const kl_comp *combiner = &ev->m->comp[in->called[0]];
  for (uint32_t i = 0; i < 2 * n; i++)
    if (combiner->instr[combiner->params[i]].shape->dtype != operands[i % n]->shape->dtype) return false;
  return true;
}

kiln_status kl_ev_scatter(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                          kl_evval *out) {
  uint32_t n = (in->noperands - 1) / 2;
  const kl_shape *updates = operands[n + 1]->shape;
  if (updates->count == 0 || operands[0]->shape->count == 0) {
    for (uint32_t k = 0; k < n; k++) out[k] = kl_ev_take(ev, operands, k, operands[k]->shape);
    return KILN_OK;
  }
  if (!combines_types(ev, in, operands, n)) return kl_ev_refuse(ev, in, "its combiner is of another type");
  scatter *s = kl_alloc(ev->cx, sizeof *s);
  s->ev = ev;
  s->in = in;
  s->n = n;
  s->count = operands[0]->shape->count;
  s->leaf = kl_alloc(ev->cx, sizeof(leaf) * n);
  for (uint32_t k = 0; k < n; k++) s->leaf[k].out = &out[k];
  kiln_status status = kl_ev_program_new(ev, in->called[0], &s->program);
  if (status == KILN_OK && kl_ev_windows_init(&s->w, in, operands[0]->shape, operands[n], updates))
    status = run(s, operands);
  else if (status == KILN_OK)
    status = kl_ev_refuse(ev, in, "an update window is larger than the operand");
  clean_up(s, out, status);
  return status;
}
