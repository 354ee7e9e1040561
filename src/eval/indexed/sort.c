// sort and topk. Lines are ordered by keys (radix sort) where the comparator is the order of a key, by merging else;
// always stably.
//
// Intervals: a cluster is a run of sorted positions whose elements a device may hold in another order: their keys are
// known within bounds that overlap, or are equal where HLO does not ask for stability. Each position of a cluster may
// hold any of its elements.
#include "eval/indexed/sort.h"

typedef struct item {
  uint64_t key;
  int64_t at; // in the line
} item;

typedef struct array {
  const kl_evval *src; // NULL: the elements' indices in their line
  kl_evval *out;       // without planes where it needs no work
  kl_dtype t;
} array;

typedef struct sort {
  kl_ev *ev;
  kl_lines l;
  uint32_t n;
  array *arrays;
  const kl_evval *keys; // NULL: perm holds the order
  const int64_t *perm;
  const uint8_t *joined;    // to perm
  const uint8_t *disorder;  // by line: the comparator is no order of it; NULL: nobody has looked
  bool intervals;           // planes are kept
  bool open;                // nothing is known of the order
  const bool *reads_nan;    // by array: NaNs leave the order of their line open
  const kl_evval *nan_keys; // likewise; NULL: none do
  kl_arrangement *arranged; // lines whose elements may stand in some order; NULL: nobody asks, or elements are inexact
  size_t scratch;           // bytes of one worker
  char *memory;
} sort;

// What a worker needs for a line: items twice, then the order, then marks of joined positions.
typedef struct line {
  item *items, *other;
  int64_t *perm;
  uint64_t *low, *high; // of keys by position: the least from here on, the greatest up to here
  uint8_t *joined;
  bool open;
} line;

// --- keys ---------------------------------------------------------------------------------------------------------

static unsigned key_bits(kl_dtype t) {
  return kl_info(t)->bits;
}

// Grows with the value; NaN has its place in the total order alone.
static uint64_t key_of(kl_dtype t, uint64_t bits, bool total) {
  const kl_dtype_info *f = kl_info(t);
  if (f->cls == KL_CLASS_PRED) return bits != 0;
  if (f->cls == KL_CLASS_UINT || f->kind == KL_E8M0) return bits;
  if (f->cls == KL_CLASS_SINT) return (uint64_t)kl_int_decode(t, bits) + (1ull << (f->bits - 1));
  uint64_t sign = 1ull << (f->exp_bits + f->man_bits);
  if (!total && bits == sign && f->kind != KL_FNUZ) bits = 0; // -0
  return bits & sign ? ~bits & (2 * sign - 1) : bits | sign;
}

static uint64_t key_at(const sort *s, int plane, int64_t i) {
  kl_dtype t = s->keys->shape->dtype;
  uint64_t key = key_of(t, kl_element_get(t, kl_ev_plane(s->keys, plane), s->keys->splat ? 0 : i, 0), s->l.total);
  return s->l.descending ? ~key & (~0ull >> (64 - key_bits(t))) : key;
}

// Is the element, or a part of it?
static bool is_nan_at(const kl_evval *v, int64_t i) {
  kl_dtype t = v->shape->dtype, part = kl_is_complex(t) ? kl_info(t)->part : t;
  bool nan = false;
  for (int k = 0; kl_is_float(part) && k <= kl_is_complex(t) && !nan; k++)
    nan = kl_float_is_nan(part, kl_element_get(t, kl_ev_plane(v, KL_EV_DATA), v->splat ? 0 : i, k));
  return nan;
}

static bool line_has_nan(const sort *s, const kl_evval *v, int64_t base) {
  for (int64_t i = 0; i < s->l.n; i++)
    if (is_nan_at(v, base + i * s->l.stride)) return true;
  return false;
}

static bool has_nan(const kl_evval *v) {
  bool found = false, may_be = kl_is_float(v->shape->dtype) || kl_is_complex(v->shape->dtype);
  for (int64_t i = 0; i < (v->splat ? 1 : v->shape->count) && may_be && !found; i++) found = is_nan_at(v, i);
  return found;
}

// --- ordering a line ----------------------------------------------------------------------------------------------

static void insertion_sort(item *items, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    item x = items[i];
    int64_t to = i;
    for (; to > 0 && items[to - 1].key > x.key; to--) items[to] = items[to - 1];
    items[to] = x;
  }
}

// By bytes from the lowest on. Returns the sorted one of the two arrays.
static item *radix_sort(item *items, item *other, int64_t n, unsigned bits) {
  for (unsigned shift = 0; shift < bits; shift += 8) {
    int64_t count[256] = {0}, at = 0;
    for (int64_t i = 0; i < n; i++) count[items[i].key >> shift & 255]++;
    if (count[items[0].key >> shift & 255] == n) continue;
    for (int b = 0; b < 256; b++) {
      int64_t c = count[b];
      count[b] = at;
      at += c;
    }
    for (int64_t i = 0; i < n; i++) other[count[items[i].key >> shift & 255]++] = items[i];
    item *swap = items;
    items = other;
    other = swap;
  }
  return items;
}

static void order_line(const sort *s, line *w, int64_t base) {
  int64_t n = s->l.n;
  item *items = w->items;
  for (int64_t i = 0; i < n; i++) items[i] = (item){key_at(s, KL_EV_DATA, base + i * s->l.stride), i};
  if (n <= 48)
    insertion_sort(items, n);
  else
    items = radix_sort(items, w->other, n, key_bits(s->keys->shape->dtype));
  for (int64_t i = 0; i < n; i++) w->perm[i] = items[i].at;
}

// Joins positions that may change places: not where all keys before are surely less than all from here on, or equal to
// them and kept in order.
static void join_line(const sort *s, line *w, int64_t base) {
  int64_t n = s->l.n;
  bool exact = kl_ev_exact(s->keys), nan_matters = !s->l.total || !s->keys->raw;
  const uint8_t *any = kl_ev_plane(s->keys, KL_EV_ANY);
  w->open |= nan_matters && line_has_nan(s, s->keys, base);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = base + w->perm[i] * s->l.stride;
    uint64_t lo = key_at(s, KL_EV_LO, at), hi = key_at(s, KL_EV_HI, at);
    w->low[i] = s->l.descending ? hi : lo;
    w->high[i] = s->l.descending ? lo : hi;
    w->open |= any && any[s->keys->splat ? 0 : at];
  }
  for (int64_t i = 1; i < n; i++)
    if (w->high[i] < w->high[i - 1]) w->high[i] = w->high[i - 1];
  for (int64_t i = n - 1; i-- > 0;)
    if (w->low[i] > w->low[i + 1]) w->low[i] = w->low[i + 1];
  w->joined[0] = 0;
  for (int64_t i = 1; i < n; i++)
    w->joined[i] = w->high[i - 1] > w->low[i] || (w->high[i - 1] == w->low[i] && !(exact && s->l.stable));
}

// --- results of a line --------------------------------------------------------------------------------------------

typedef struct wide {
  uint64_t part[2];
} wide;

#define MOVE(T)                                                                                                        \
  case sizeof(T):                                                                                                      \
    for (int64_t i = 0; i < l->kept; i++) ((T *)dst)[to + i * step] = ((const T *)src)[from + perm[i] * step];         \
    break;

static void move_line(const kl_lines *l, size_t size, const int64_t *perm, const void *src, int64_t from, void *dst,
                      int64_t to) {
  int64_t step = l->stride;
  switch (size) {
    MOVE(uint8_t)
    MOVE(uint16_t)
    MOVE(uint32_t)
    MOVE(uint64_t)
    MOVE(wide)
  }
}

static uint64_t bits_of(const array *a, int plane, int64_t from, int64_t at, int64_t step, int part) {
  if (!a->src) return (uint64_t)at & kl_int_mask(a->t);
  return kl_element_get(a->t, kl_ev_plane(a->src, plane), a->src->splat ? 0 : from + at * step, part);
}

typedef struct hull {
  uint64_t lo[2], hi[2];
  bool open;
} hull;

static void grow(const sort *s, const array *a, hull *h, int64_t from, int64_t at, bool first) {
  kl_dtype part = kl_is_complex(a->t) ? kl_info(a->t)->part : a->t;
  const uint8_t *any = a->src ? kl_ev_plane(a->src, KL_EV_ANY) : NULL;
  h->open |= any && any[a->src->splat ? 0 : from + at * s->l.stride];
  for (int k = 0; k < (kl_is_complex(a->t) ? 2 : 1); k++) {
    uint64_t lo = bits_of(a, KL_EV_LO, from, at, s->l.stride, k), hi = bits_of(a, KL_EV_HI, from, at, s->l.stride, k);
    int64_t key = kl_iv_key(part, lo), least = first ? key : kl_iv_key(part, h->lo[k]);
    bool is_float = kl_is_float(part);
    h->open |= is_float && (key == KL_KEY_NAN) != (least == KL_KEY_NAN);
    if (first || key < least) h->lo[k] = lo;
    if (first || kl_iv_key(part, hi) > kl_iv_key(part, h->hi[k])) h->hi[k] = hi;
  }
}

static void store_hull(const array *a, const hull *h, int64_t i) {
  const void *data = kl_ev_plane(a->out, KL_EV_DATA);
  for (int k = 0; k < (kl_is_complex(a->t) ? 2 : 1); k++) {
    uint64_t bits = kl_element_get(a->t, data, i, k);
    kl_element_set(a->t, kl_ev_plane(a->out, KL_EV_LO), i, k, h->open ? bits : h->lo[k]);
    kl_element_set(a->t, kl_ev_plane(a->out, KL_EV_HI), i, k, h->open ? bits : h->hi[k]);
  }
  ((uint8_t *)kl_ev_plane(a->out, KL_EV_ANY))[i] = h->open;
}

// The positions [begin, end) of the line may hold each other's elements.
static void store_cluster(const sort *s, const array *a, const line *w, int64_t begin, int64_t end, int64_t from,
                          int64_t to) {
  hull h = {.open = w->open};
  for (int64_t i = begin; i < end && !h.open; i++) grow(s, a, &h, from, w->perm[i], i == begin);
  for (int64_t i = begin; i < end && i < s->l.kept; i++) store_hull(a, &h, to + i * s->l.stride);
}

static void store_array(const sort *s, const array *a, const line *w, int64_t from, int64_t to) {
  const kl_lines *l = &s->l;
  if (!a->out->plane[KL_EV_DATA]) return;
  if (a->src)
    move_line(l, kl_ev_size(a->t), w->perm, kl_ev_plane(a->src, KL_EV_DATA), from, kl_ev_plane(a->out, KL_EV_DATA), to);
  else
    for (int64_t i = 0; i < l->kept; i++)
      kl_element_set(a->t, kl_ev_plane(a->out, KL_EV_DATA), to + i * l->stride, 0,
                     (uint64_t)w->perm[i] & kl_int_mask(a->t));
  if (!s->intervals) return;
  for (int64_t i = 0; i < l->kept;) {
    int64_t end = i + 1;
    while (end < l->n && w->joined[end]) end++;
    store_cluster(s, a, w, i, end, from, to);
    i = end;
  }
}

// May some element of the line stand elsewhere?
static bool is_arranged(const sort *s, const line *w) {
  return w->open || memchr(w->joined, 1, (size_t)s->l.n);
}

static line line_of(const sort *s, uint32_t worker) {
  char *p = s->memory + worker * s->scratch;
  size_t n = (size_t)s->l.n;
  line w = {.items = (item *)p, .other = (item *)p + n};
  w.perm = (int64_t *)(w.other + n);
  w.low = (uint64_t *)(w.perm + n);
  w.high = w.low + n;
  w.joined = (uint8_t *)(w.high + n);
  return w;
}

static void sort_lines(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const sort *s = arg;
  line w = line_of(s, worker);
  int64_t n = s->l.n;
  for (int64_t i = begin; i < end; i++) {
    int64_t from = kl_line_base(&s->l, i, n), to = kl_line_base(&s->l, i, s->l.kept);
    w.open = s->open;
    if (s->keys) {
      order_line(s, &w, from);
      if (s->intervals) join_line(s, &w, from);
    } else {
      memcpy(w.perm, s->perm + i * n, sizeof(int64_t) * (size_t)n);
      if (s->intervals && s->joined) memcpy(w.joined, s->joined + i * n, (size_t)n);
      for (uint32_t k = 0; k < s->n && s->intervals && s->reads_nan; k++)
        w.open |= s->reads_nan[k] && line_has_nan(s, s->arrays[k].src, from);
      w.open |= s->intervals && s->nan_keys && line_has_nan(s, s->nan_keys, from);
      w.open |= s->intervals && s->disorder && s->disorder[i];
    }
    if (s->arranged) s->arranged->some[i] = is_arranged(s, &w);
    for (uint32_t k = 0; k < s->n; k++) store_array(s, &s->arrays[k], &w, from, to);
  }
}

static kiln_status run_lines(sort *s) {
  int64_t n = s->l.n, grain = n >= 4096 ? 1 : 4096 / n;
  uint32_t workers = kl_ev_workers(s->ev, s->l.lines, grain);
  size_t bytes;
  s->scratch = (size_t)n * (2 * sizeof(item) + sizeof(int64_t) + 2 * sizeof(uint64_t) + 1);
  s->scratch = (s->scratch + 63) / 64 * 64;
  if (__builtin_mul_overflow(s->scratch, workers, &bytes) || !(s->memory = kl_try_alloc(s->ev->cx, bytes)))
    return kl_out_of_memory(s->ev->cx, s->scratch, "a sort");
  kl_ev_parallel(s->ev, s->l.lines, grain, sort_lines, s);
  kl_free(s->ev->cx, s->memory, bytes);
  for (uint32_t k = 0; k < s->n; k++)
    if (s->intervals && s->arrays[k].out->shape) kl_ev_settle(s->ev, s->arrays[k].out);
  return KILN_OK;
}

// Elements that are exact stay what they are wherever they stand.
static kiln_status begin_arrangement(sort *s) {
  bool exact = s->intervals;
  for (uint32_t k = 0; k < s->n; k++) exact &= kl_ev_exact(s->arrays[k].src);
  if (!exact) return KILN_OK;
  s->arranged = kl_arrangement_new(s->ev->cx, s->l.n, s->l.stride, s->l.lines);
  return s->arranged ? KILN_OK : kl_out_of_memory(s->ev->cx, (size_t)s->l.lines, "a sort");
}

static void end_arrangement(sort *s, bool made) {
  if (!s->arranged) return;
  bool some = made && memchr(s->arranged->some, 1, (size_t)s->l.lines);
  for (uint32_t k = 0; k < s->n && some; k++) {
    kl_evbuf *any = s->arrays[k].out->plane[KL_EV_ANY];
    if (any) any->arranged = kl_arrangement_share(s->arranged);
  }
  kl_arrangement_free(s->ev->cx, s->arranged);
}

static kiln_status sort_whole_lines(sort *s) {
  KL_TRY(begin_arrangement(s));
  kiln_status status = run_lines(s);
  end_arrangement(s, status == KILN_OK);
  return status;
}

// --- sort ---------------------------------------------------------------------------------------------------------

static kiln_status new_results(sort *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    array *a = &s->arrays[k];
    const kl_shape *shape = a->src->shape;
    KL_TRY(kl_ev_new(s->ev, shape, false, s->intervals, a->out));
    a->out->raw = a->src->raw;
  }
  return KILN_OK;
}

static kiln_status by_keys(sort *s, const kl_evval *keys) {
  bool inexact = !kl_ev_exact(keys) || !s->l.stable || has_nan(keys);
  for (uint32_t k = 0; k < s->n; k++) inexact |= !kl_ev_exact(s->arrays[k].src);
  s->intervals = s->ev->intervals && inexact;
  s->keys = keys;
  KL_TRY(new_results(s));
  return sort_whole_lines(s);
}

// Are NaNs equal to everything that they are compared with? Then the comparator is no order of lines with a NaN, and
// what comes out depends on who sorts. A comparison for equality decides nothing alone.
static bool orders_no_nan(const kl_comp *comparator) {
  for (uint32_t i = 0; i < comparator->ninstr; i++) {
    const kl_instr *in = &comparator->instr[i];
    if (in->op == KL_OP_COMPARE && kl_is_float(kl_operand(comparator, in, 0)->shape->dtype) &&
        in->compare_type != KL_CMP_TOTALORDER && in->direction != KL_EQ && in->direction != KL_NE)
      return true;
  }
  return false;
}

// What a comparator that is no order of keys leaves open.
static void find_doubt(sort *s, const kl_ev_program *p, const kl_comp *comparator, const bool *used, bool *reads_nan) {
  bool no_order = orders_no_nan(comparator);
  s->open = !kl_ev_program_exact(p);
  for (uint32_t k = 0; k < s->n; k++) {
    const kl_evval *v = s->arrays[k].src;
    s->open |= used[k] && !kl_ev_exact(v);
    reads_nan[k] = used[k] && (no_order || (!v->raw && kl_ev_program_reads_bits(p))) && has_nan(v);
  }
  s->intervals = s->ev->intervals;
  s->reads_nan = reads_nan;
}

static kiln_status merge_order(sort *s, const kl_ev_program *p, const bool *used, int64_t *perm, uint8_t *joined,
                               uint8_t *disorder) {
  const kl_evval **in = kl_alloc(s->ev->cx, sizeof *in * s->n);
  for (uint32_t k = 0; k < s->n; k++) in[k] = s->arrays[k].src;
  kl_merge m = {.ev = s->ev, .l = &s->l, .program = p, .n = s->n, .in = in, .used = used, .perm = perm};
  m.joined = s->intervals ? joined : NULL;
  m.disorder = disorder;
  kiln_status status = kl_sort_merge(&m);
  kl_free(s->ev->cx, in, sizeof *in * s->n);
  s->perm = perm;
  s->joined = joined;
  s->disorder = s->intervals ? disorder : NULL;
  return status;
}

static kiln_status by_merging(sort *s, uint32_t comparator) {
  kl_ctx *cx = s->ev->cx;
  int64_t total = s->l.n * s->l.lines;
  bool *used = kl_alloc(cx, 2 * s->n), *reads_nan = used + s->n;
  int64_t *perm = kl_try_alloc(cx, sizeof(int64_t) * (size_t)total);
  size_t marks = (size_t)(total + s->l.lines);
  uint8_t *joined = kl_try_alloc(cx, marks), *disorder = joined ? joined + total : NULL; // all apart, and in order
  kl_ev_program *p = NULL;
  kiln_status status = perm && joined ? kl_ev_program_new(s->ev, comparator, &p)
                                      : kl_out_of_memory(cx, sizeof(int64_t) * (size_t)total, "a sort");
  if (status == KILN_OK) {
    kl_sort_used(s->ev, &s->ev->m->comp[comparator], s->n, used);
    find_doubt(s, p, &s->ev->m->comp[comparator], used, reads_nan);
    status = merge_order(s, p, used, perm, joined, disorder);
  }
  if (status == KILN_OK) status = new_results(s);
  if (status == KILN_OK) status = sort_whole_lines(s);
  kl_ev_program_free(s->ev, p);
  if (joined) kl_free(cx, joined, marks);
  if (perm) kl_free(cx, perm, sizeof(int64_t) * (size_t)total);
  kl_free(cx, used, 2 * s->n);
  return status;
}

static kiln_status sort_arrays(sort *s, const kl_instr *in, const kl_evval *const *operands) {
  const kl_comp *comparator = &s->ev->m->comp[in->called[0]];
  kl_shape shape;
  kl_evval keys = {0};
  bool found;
  KL_TRY(kl_sort_keys(s->ev, comparator, operands, &s->l, &shape, &found, &keys));
  // Outside the total order, NaNs are equal to everything, which is no order of keys.
  kiln_status status = found && (s->l.total || !has_nan(&keys)) ? by_keys(s, &keys) : by_merging(s, in->called[0]);
  kl_ev_free(s->ev, &keys);
  return status;
}

// A comparator may be written for another float type than the arrays have.
static bool compares_types(const kl_ev *ev, const kl_instr *in, const kl_evval *const *operands) {
  const kl_comp *comparator = &ev->m->comp[in->called[0]];
  for (uint32_t i = 0; i < comparator->nparams; i++)
    if (comparator->instr[comparator->params[i]].shape->dtype != operands[i / 2]->shape->dtype) return false;
  return true;
}

kiln_status kl_ev_sort(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                       kl_evval *out) {
  const kl_shape *shape = operands[0]->shape;
  uint32_t dim = (uint32_t)in->dims[0], n = in->noperands;
  if (shape->rank == 0 || shape->count == 0 || shape->dims[dim] == 1) {
    for (uint32_t k = 0; k < n; k++) out[k] = kl_ev_take(ev, operands, k, operands[k]->shape);
    return KILN_OK;
  }
  if (!compares_types(ev, in, operands)) return kl_ev_refuse(ev, in, "its comparator is of another type");
  sort s = {.ev = ev, .n = n};
  s.l = (kl_lines){.n = shape->dims[dim], .kept = shape->dims[dim], .stride = 1, .stable = in->more->is_stable};
  for (uint32_t d = dim + 1; d < shape->rank; d++) s.l.stride *= shape->dims[d];
  s.l.lines = shape->count / s.l.n;
  kl_evval *whole = kl_alloc(ev->cx, sizeof *whole * n);
  const kl_evval **in_full = kl_alloc(ev->cx, sizeof *in_full * n);
  s.arrays = kl_alloc(ev->cx, sizeof(array) * n);
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < n && status == KILN_OK; k++) {
    status = kl_ev_expand(ev, operands[k], &whole[k]);
    in_full[k] = &whole[k];
    s.arrays[k] = (array){&whole[k], &out[k], operands[k]->shape->dtype};
  }
  if (status == KILN_OK) status = sort_arrays(&s, in, in_full);
  for (uint32_t k = 0; k < n; k++) {
    kl_ev_free(ev, &whole[k]);
    if (status != KILN_OK) kl_ev_free(ev, &out[k]);
  }
  kl_free(ev->cx, s.arrays, sizeof(array) * n);
  kl_free(ev->cx, in_full, sizeof *in_full * n);
  kl_free(ev->cx, whole, sizeof *whole * n);
  return status;
}

// --- topk ---------------------------------------------------------------------------------------------------------

// Along the last dimension, in the total order; of equal values the one with the lower index comes first.
kiln_status kl_ev_topk(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                       kl_evval *out) {
  const kl_evval *v = operands[0];
  const kl_shape *shape = v->shape, *values = kl_shape_leaf(in->shape, 0), *indices = kl_shape_leaf(in->shape, 1);
  sort s = {.ev = ev, .n = 2};
  int64_t n = shape->dims[shape->rank - 1], kept = values->dims[values->rank - 1];
  if (kept > n) return kl_ev_refuse(ev, in, "k is larger than the last dimension");
  array arrays[2] = {{v, &out[0], shape->dtype}, {NULL, &out[1], indices->dtype}};
  kl_evval whole;
  KL_TRY(kl_ev_expand(ev, v, &whole));
  arrays[0].src = &whole;
  s.arrays = arrays;
  s.keys = &whole;
  s.l = (kl_lines){.n = n, .stride = 1, .kept = kept, .total = true, .stable = true, .descending = in->more->largest};
  s.l.lines = n ? shape->count / n : 0;
  s.intervals = ev->intervals && (!kl_ev_exact(v) || (!v->raw && has_nan(v)));
  kiln_status status = kl_ev_new(ev, values, false, s.intervals, &out[0]);
  if (status == KILN_OK) status = kl_ev_new(ev, indices, false, s.intervals, &out[1]);
  if (status == KILN_OK && values->count) status = run_lines(&s);
  out[0].raw = v->raw;
  kl_ev_free(ev, &whole);
  for (int k = 0; k < 2 && status != KILN_OK; k++) kl_ev_free(ev, &out[k]);
  return status;
}
