// What windows select by an order, with work that does not grow with the window. A window is a box in row-major order,
// so what it selects is selected among what its rows select: one axis after the other, from the last to the first, each
// element of an axis is replaced by what the windows there select along it.
//
// A selection of a sequence is a pair: the element, and whether there is a NaN in the sequence. `a` keeps its place
// before `b` only if a comparison of them says so, and none with a NaN does: so it is the best of the elements from the
// last NaN on, and joining pairs of neighbouring sequences is associative.
//
// Along an axis windows go through a progression of elements, and neither end moves back. What one sees is part of a
// front, for which the selections from each element on to its end are kept, and a back, one selection that takes
// elements in. Once the window has left the front, all it sees becomes the next one: every element is taken twice.
#include "eval/fold/sliding.h"

// Pairs: twice the element, plus one where there is a NaN.
enum { NONE = -1 };

typedef struct best {
  const kl_sliding *s;
  const kl_evval *operand;
  int64_t *key; // by element of the operand, greater where it is preferred; KL_KEY_NAN for NaN of floats
  bool inexact; // there may be NaNs
  bool total, lower, equal;
  const int64_t *from;
  int64_t *to;
  const kl_axis *axis;
  int64_t inner; // pairs of one position along the axis
  int64_t *front;
} best;

// --- keys ---------------------------------------------------------------------------------------------------------

static void make_keys(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  best *b = arg;
  kl_dtype t = b->operand->shape->dtype;
  const void *data = kl_ev_plane(b->operand, KL_EV_DATA);
  for (int64_t i = begin; i < end; i++) {
    int64_t key = kl_iv_key(t, kl_element_get(t, data, kl_ev_single(b->operand) ? 0 : i, 0));
    bool nan = b->inexact && key == KL_KEY_NAN;
    if (b->inexact && !b->total && key == -1) key = 0; // -0
    b->key[i] = nan ? key : b->lower ? ~key : key;
    b->to[i] = 2 * i + nan;
  }
}

// --- selections ---------------------------------------------------------------------------------------------------

static int64_t join(const best *b, int64_t left, int64_t right) {
  if (left == NONE || right == NONE) return left == NONE ? right : left;
  if (right & 1) return right;
  int64_t x = b->key[left >> 1], y = b->key[right >> 1]; // that of a NaN is below all others
  return (b->equal ? x >= y : x > y) ? left : right | (left & 1);
}

// Windows of one progression: r, r + period, ...
static void select_progression(const best *b, int64_t *front, int64_t r, const int64_t *from, int64_t *to) {
  const kl_axis *a = b->axis;
  int64_t begin = INT64_MIN, mid = INT64_MIN, end = INT64_MIN, back = NONE;
  for (int64_t o = r; o < a->windows; o += a->period) {
    const kl_sight *s = &a->sight[o];
    int64_t last = s->first + s->count * a->step;
    to[o * b->inner] = NONE;
    if (s->count == 0) continue;
    if (s->first >= mid) {
      begin = s->first;
      mid = end = last;
      back = NONE;
      for (int64_t k = s->count, after = NONE; k-- > 0; after = front[k])
        front[k] = join(b, from[(begin + k * a->step) * b->inner], after);
    }
    for (; end < last; end += a->step) back = join(b, back, from[end * b->inner]);
    to[o * b->inner] = join(b, front[(s->first - begin) / a->step], back);
  }
}

static void select_lines(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const best *b = arg;
  for (int64_t line = begin; line < end; line++) {
    int64_t outer = line / b->inner, at = line % b->inner;
    const int64_t *from = b->from + outer * b->axis->extent * b->inner + at;
    int64_t *to = b->to + outer * b->axis->windows * b->inner + at;
    for (int64_t r = 0; r < b->axis->period && r < b->axis->windows; r++)
      select_progression(b, b->front + worker * b->axis->most, r, from, to);
  }
}

// Pairs before and after each axis; the greatest number of them.
static double count_pairs(const kl_sliding *s, double *all) {
  double n = (double)s->operand->count, most = n;
  *all = n;
  for (uint32_t d = s->rank; d-- > 0;) {
    n = n / (double)s->axis[d].extent * (double)s->axis[d].windows;
    *all += 2 * n;
    if (n > most) most = n;
  }
  return most;
}

static kiln_status select_axes(kl_ev *ev, best *b, int64_t *pairs[2], int64_t *target) {
  int64_t outer = b->operand->shape->count, windows = b->s->result->count;
  b->inner = 1;
  b->to = pairs[0];
  kl_ev_parallel(ev, outer, KL_EV_CHUNK, make_keys, b);
  for (uint32_t d = b->s->rank; d-- > 0;) {
    b->axis = &b->s->axis[d];
    outer /= b->axis->extent;
    b->from = b->to;
    b->to = b->from == pairs[0] ? pairs[1] : pairs[0];
    uint32_t workers = kl_ev_workers(ev, outer * b->inner, 1);
    size_t bytes = sizeof(int64_t) * (size_t)b->axis->most * workers + 1;
    b->front = kl_try_alloc(ev->cx, bytes);
    if (!b->front) return kl_out_of_memory(ev->cx, bytes, "a selection");
    kl_ev_parallel(ev, outer * b->inner, 1, select_lines, b);
    kl_free(ev->cx, b->front, bytes);
    b->inner *= b->axis->windows;
  }
  for (int64_t i = 0; i < windows; i++) target[i] = b->to[i] == NONE ? -1 : b->to[i] >> 1;
  return KILN_OK;
}

// --- whether ------------------------------------------------------------------------------------------------------

// Is `select` a comparison of its parameters that orders them?
static bool find_order(const kl_comp *c, best *b) {
  const kl_instr *root = kl_root(c);
  if (root->op != KL_OP_COMPARE || root->direction == KL_EQ || root->direction == KL_NE) return false;
  const kl_instr *x = kl_operand(c, root, 0), *y = kl_operand(c, root, 1);
  kl_dtype t = x->shape->dtype;
  if (x->op != KL_OP_PARAMETER || y->op != KL_OP_PARAMETER || x->number == y->number || kl_is_complex(t)) return false;
  b->equal = root->direction == KL_GE || root->direction == KL_LE;
  b->lower = (root->direction == KL_LT || root->direction == KL_LE) == (x->number == 0);
  b->inexact = kl_is_float(t);
  b->total = root->compare_type == KL_CMP_TOTALORDER;
  return true;
}

static bool has_nan(const kl_evval *v) {
  kl_dtype t = v->shape->dtype;
  const void *data = kl_ev_plane(v, KL_EV_DATA);
  for (int64_t i = 0; i < (kl_ev_single(v) ? 1 : v->shape->count); i++)
    if (kl_float_is_nan(t, kl_element_get(t, data, i, 0))) return true;
  return false;
}

bool kl_selects_best(kl_ev *ev, const kl_sliding *s, uint32_t comp, const kl_evval *operand, int64_t *target,
                     kiln_status *status) {
  const double taps_per_pair = 4;
  best b = {.s = s, .operand = operand};
  double taps = (double)s->result->count, all;
  for (uint32_t d = 0; d < s->rank && taps > 0; d++) taps *= (double)s->axis[d].most;
  if (taps == 0 || !find_order(&ev->m->comp[comp], &b)) return false;
  size_t most = (size_t)count_pairs(s, &all), count = (size_t)operand->shape->count;
  if (taps < all * taps_per_pair || !kl_memory_fits(ev->cx, (2 * most + count) * sizeof(int64_t))) return false;
  if (b.inexact && b.total && has_nan(operand)) return false;
  size_t bytes = most * sizeof(int64_t);
  int64_t *pairs[2] = {kl_try_alloc(ev->cx, bytes), kl_try_alloc(ev->cx, bytes)};
  b.key = kl_try_alloc(ev->cx, count * sizeof(int64_t));
  *status = pairs[0] && pairs[1] && b.key ? select_axes(ev, &b, pairs, target)
                                          : kl_out_of_memory(ev->cx, 3 * bytes, "a selection");
  kl_free(ev->cx, b.key, count * sizeof(int64_t));
  kl_free(ev->cx, pairs[1], bytes);
  kl_free(ev->cx, pairs[0], bytes);
  return true;
}
