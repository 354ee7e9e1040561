// The geometry of windows. Tap t of the window at index o looks at position o * stride + t * hole - low of the padded,
// dilated axis, and sees element x where that is x * base. With g = gcd(hole, base) this has solutions only where g
// divides o * stride - low; then t runs through a progression of step base / g, and x through one of step hole / g.
#include "eval/fold/sliding.h"

typedef __int128 wide;

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

// 1 / a modulo m, for coprime a and m.
static int64_t inverse(int64_t a, int64_t m) {
  wide r0 = m, r1 = a % m, t0 = 0, t1 = 1;
  while (r1) {
    wide q = r0 / r1, r = r0 - q * r1, t = t0 - q * t1;
    r0 = r1, r1 = r;
    t0 = t1, t1 = t;
  }
  return (int64_t)(t0 < 0 ? t0 + m : t0 % m);
}

static wide modulo(wide a, wide m) {
  wide r = a % m;
  return r < 0 ? r + m : r;
}

// What the window that begins at position `at` sees.
static kl_sight sight_at(const kl_window_dim *w, const kl_axis *a, int64_t inv, wide at) {
  int64_t g = w->window_dilation / a->step;
  if (modulo(at, g)) return (kl_sight){0, 0, 0};
  wide tap = modulo(modulo(-(at / g), a->tap_step) * inv, a->tap_step);
  wide x = (at + tap * w->window_dilation) / w->base_dilation; // exact
  wide skip = x < 0 ? (-x + a->step - 1) / a->step : 0;
  x += skip * a->step;
  tap += skip * a->tap_step;
  if (x >= a->extent || tap >= a->size) return (kl_sight){0, 0, 0};
  wide by_taps = (a->size - 1 - tap) / a->tap_step, by_extent = (a->extent - 1 - x) / a->step;
  return (kl_sight){(int64_t)x, (int64_t)(by_taps < by_extent ? by_taps : by_extent) + 1, (int64_t)tap};
}

static void fill_axis(const kl_window_dim *w, kl_axis *a) {
  int64_t g = gcd(w->window_dilation, w->base_dilation);
  a->step = w->window_dilation / g;
  a->tap_step = w->base_dilation / g;
  a->period = w->window_dilation / gcd(w->window_dilation, w->stride);
  a->size = w->size;
  int64_t inv = a->tap_step > 1 ? inverse(a->step, a->tap_step) : 0;
  for (int64_t o = 0; o < a->windows; o++) {
    a->sight[o] = sight_at(w, a, inv, (wide)o * w->stride - w->low);
    if (a->sight[o].count > a->most) a->most = a->sight[o].count;
  }
}

static kiln_status fill(kl_ev *ev, const kl_instr *in, kl_sliding *s) {
  int64_t all = 0, bytes;
  for (uint32_t d = 0; d < s->rank; d++) {
    all += s->result->count ? s->result->dims[d] : 0; // no more than the result has elements, or two for each dimension
    if (__builtin_mul_overflow(s->taps, in->more->window[d].size, &s->taps))
      return kl_ev_refuse(ev, in, "a window of too many elements");
  }
  if (__builtin_mul_overflow(all, (int64_t)sizeof(kl_sight), &bytes)) bytes = INT64_MAX;
  s->sight_bytes = (size_t)bytes;
  s->sights = kl_try_alloc(ev->cx, s->sight_bytes);
  if (!s->sights) return kl_out_of_memory(ev->cx, s->sight_bytes, "windows");
  int64_t strides[KILN_MAX_RANK];
  kl_ev_strides(s->operand, strides);
  kl_sight *next = s->sights;
  for (uint32_t d = 0; d < s->rank && s->result->count; d++) {
    kl_axis *a = &s->axis[d];
    *a = (kl_axis){.stride = strides[d], .extent = s->operand->dims[d], .windows = s->result->dims[d], .sight = next};
    fill_axis(&in->more->window[d], a);
    next += a->windows;
  }
  return KILN_OK;
}

kiln_status kl_sliding_new(kl_ev *ev, const kl_instr *in, const kl_shape *operand, const kl_shape *result,
                           kl_sliding *s) {
  *s = (kl_sliding){.rank = operand->rank, .operand = operand, .result = result, .taps = 1};
  if (in->more->nwindow != operand->rank) return kl_ev_refuse(ev, in, "the window has another rank than the operand");
  s->axis = kl_alloc(ev->cx, sizeof *s->axis * (s->rank + 1u));
  kiln_status status = fill(ev, in, s);
  if (status != KILN_OK) kl_sliding_free(ev, s);
  return status;
}

void kl_sliding_free(kl_ev *ev, kl_sliding *s) {
  kl_free(ev->cx, s->sights, s->sight_bytes);
  kl_free(ev->cx, s->axis, sizeof *s->axis * (s->rank + 1u));
  *s = (kl_sliding){0};
}

void kl_sliding_places(const kl_sliding *s, int64_t first, int64_t n, int64_t *place) {
  for (int64_t i = 0; i < n; i++) {
    int64_t rest = first + i;
    for (uint32_t d = s->rank; d-- > 0;) {
      place[i * s->rank + d] = rest % s->result->dims[d];
      rest /= s->result->dims[d];
    }
  }
}

void kl_sliding_next_tap(const kl_sliding *s, int64_t *tap) {
  for (uint32_t d = s->rank; d-- > 0;) {
    if (++tap[d] < s->axis[d].size) return;
    tap[d] = 0;
  }
}

// --- one window ---------------------------------------------------------------------------------------------------

void kl_sliding_walk_start(kl_sliding_walk *w, const kl_sliding *s, const int64_t *place) {
  w->s = s;
  w->place = place;
  w->rows = 1;
  memset(w->index, 0, sizeof *w->index * (s->rank + 1u));
  for (uint32_t d = 0; d < s->rank; d++) {
    int64_t count = s->axis[d].sight[place[d]].count;
    if (d + 1 < s->rank || count == 0) w->rows *= count;
  }
}

int64_t kl_sliding_walk_next(kl_sliding_walk *w, int64_t room, int64_t *at) {
  const kl_sliding *s = w->s;
  int64_t n = 0;
  while (w->rows && n < room) {
    int64_t base = 0, last = 1, step = 0;
    uint32_t d = s->rank;
    for (uint32_t k = 0; k < s->rank; k++)
      base += (s->axis[k].sight[w->place[k]].first + w->index[k] * s->axis[k].step) * s->axis[k].stride;
    if (s->rank) {
      d--;
      last = s->axis[d].sight[w->place[d]].count - w->index[d];
      step = s->axis[d].step * s->axis[d].stride;
    }
    int64_t take = last < room - n ? last : room - n;
    for (int64_t k = 0; k < take; k++) at[n++] = base + k * step;
    if (take < last) {
      w->index[d] += take;
      return n;
    }
    w->rows--;
    if (s->rank) w->index[d] = 0;
    while (d-- > 0) {
      if (++w->index[d] < s->axis[d].sight[w->place[d]].count) break;
      w->index[d] = 0;
    }
  }
  return n;
}

// --- gathering ----------------------------------------------------------------------------------------------------

#define PICK_LOOP(T)                                                                                                   \
  case sizeof(T):                                                                                                      \
    for (int64_t i = 0; i < n; i++) ((T *)to)[i] = ((const T *)from)[at[i] < 0 ? 0 : at[i] * step];                    \
    break;

static void pick_plane(size_t size, int64_t n, const int64_t *at, int64_t step, const void *from, void *to) {
  switch (size) {
    PICK_LOOP(uint8_t)
    PICK_LOOP(uint16_t)
    PICK_LOOP(uint32_t)
    PICK_LOOP(uint64_t)
    PICK_LOOP(__int128)
  }
}

kl_iv_in kl_picked_planes(const kl_picked *p, const kl_evval *v, bool intervals) {
  if (!intervals || kl_ev_exact(v)) return (kl_iv_in){p->plane[0], p->plane[0], p->plane[0], NULL};
  return (kl_iv_in){p->plane[0], p->plane[1], p->plane[2], v->plane[KL_EV_ANY] ? p->any : NULL};
}

kl_iv_in kl_pick(kl_picked *p, const kl_evval *v, int64_t n, bool intervals) {
  size_t size = kl_ev_size(v->shape->dtype);
  int64_t step = kl_ev_single(v) ? 0 : 1;
  kl_iv_in r = kl_picked_planes(p, v, intervals);
  if (v->shape->count == 0) return r; // then there is nothing to be seen
  pick_plane(size, n, p->at, step, kl_ev_plane(v, KL_EV_DATA), p->plane[0]);
  if (r.lo != r.data) pick_plane(size, n, p->at, step, kl_ev_plane(v, KL_EV_LO), p->plane[1]);
  if (r.hi != r.data) pick_plane(size, n, p->at, step, kl_ev_plane(v, KL_EV_HI), p->plane[2]);
  if (r.any) pick_plane(1, n, p->at, step, kl_ev_plane(v, KL_EV_ANY), p->any);
  return r;
}
