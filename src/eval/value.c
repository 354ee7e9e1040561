// Values of an evaluation: planes, who holds them, and when one may be written in place.
#include "eval/impl.h"

// --- lines in some order ------------------------------------------------------------------------------------------

kl_arrangement *kl_arrangement_new(kl_ctx *cx, int64_t n, int64_t stride, int64_t lines) {
  kl_arrangement *a = kl_try_alloc(cx, sizeof *a + (size_t)lines);
  if (a) *a = (kl_arrangement){1, n, stride, lines, (uint8_t *)(a + 1)};
  return a;
}

void kl_arrangement_free(kl_ctx *cx, kl_arrangement *a) {
  if (a && !--a->refs) kl_free(cx, a, sizeof *a + (size_t)a->lines);
}

// --- planes -------------------------------------------------------------------------------------------------------

static kl_evbuf *new_buffer(kl_ev *ev, void *p, size_t size, bool owned) {
  kl_evbuf *b = kl_alloc(ev->cx, sizeof *b);
  *b = (kl_evbuf){p, size, 1, owned, NULL};
  return b;
}

static void release(kl_ev *ev, kl_evbuf *b) {
  if (!b || --b->refs) return;
  if (b->owned) kl_free(ev->cx, b->p, b->size);
  kl_arrangement_free(ev->cx, b->arranged);
  kl_free(ev->cx, b, sizeof *b);
}

static kl_evbuf *retain(kl_evbuf *b) {
  if (b) b->refs++;
  return b;
}

int64_t kl_ev_plane_bytes(const kl_shape *s, bool splat, int plane) {
  int64_t bytes, size = plane == KL_EV_ANY ? 1 : (int64_t)kl_ev_size(s->dtype);
  return __builtin_mul_overflow(splat ? 1 : s->count, size, &bytes) ? -1 : bytes;
}

static kl_evbuf *try_buffer(kl_ev *ev, const kl_shape *s, bool splat, int plane) {
  int64_t bytes = kl_ev_plane_bytes(s, splat, plane);
  void *p = bytes < 0 ? NULL : kl_try_alloc(ev->cx, (size_t)bytes);
  return p ? new_buffer(ev, p, (size_t)bytes, true) : NULL;
}

kiln_status kl_ev_new(kl_ev *ev, const kl_shape *s, bool splat, bool inexact, kl_evval *out) {
  *out = (kl_evval){.shape = s, .splat = splat};
  for (int plane = 0; plane < KL_EV_PLANES; plane++) {
    if (plane == KL_EV_DATA || inexact)
      out->plane[plane] = try_buffer(ev, s, splat, plane);
    else
      out->plane[plane] = plane == KL_EV_ANY ? NULL : retain(out->plane[KL_EV_DATA]);
    if (!out->plane[plane] && (plane != KL_EV_ANY || inexact)) {
      int64_t bytes = kl_ev_plane_bytes(s, splat, plane);
      kl_ev_free(ev, out);
      return kl_out_of_memory(ev->cx, bytes < 0 ? SIZE_MAX : (size_t)bytes, "an evaluated array");
    }
  }
  return KILN_OK;
}

kl_evval kl_ev_share(const kl_evval *v, const kl_shape *s) {
  kl_evval r = *v;
  r.shape = s;
  for (int plane = 0; plane < KL_EV_PLANES; plane++) retain(r.plane[plane]);
  return r;
}

kiln_status kl_ev_spread(kl_ev *ev, const kl_evval *v, const kl_shape *s, kl_evval *out) {
  if (v->shape->count == 1 || kl_ev_exact(v)) {
    *out = kl_ev_share(v, s);
    out->splat = s->count > 1;
    return KILN_OK;
  }
  KL_TRY(kl_ev_new(ev, s, s->count > 1, true, out));
  out->raw = v->raw;
  kl_ev_copy_planes(ev, &(kl_ev_walk){0}, v, out);
  return KILN_OK;
}

void kl_ev_free(kl_ev *ev, kl_evval *v) {
  for (int plane = 0; plane < KL_EV_PLANES; plane++) release(ev, v->plane[plane]);
  *v = (kl_evval){0};
}

kl_evval kl_ev_borrow(kl_ev *ev, const kl_shape *s, const void *data) {
  kl_evval v = {.shape = s, .raw = true};
  v.plane[KL_EV_DATA] = new_buffer(ev, (void *)data, 0, false); // never written
  v.plane[KL_EV_LO] = retain(v.plane[KL_EV_DATA]);
  v.plane[KL_EV_HI] = retain(v.plane[KL_EV_DATA]);
  return v;
}

// --- intervals ----------------------------------------------------------------------------------------------------

void kl_ev_drop_any(kl_ev *ev, kl_evval *v) {
  release(ev, v->plane[KL_EV_ANY]);
  v->plane[KL_EV_ANY] = NULL;
}

void kl_ev_drop_interval(kl_ev *ev, kl_evval *v) {
  kl_ev_drop_any(ev, v);
  for (int plane = KL_EV_LO; plane <= KL_EV_HI; plane++) {
    release(ev, v->plane[plane]);
    v->plane[plane] = retain(v->plane[KL_EV_DATA]);
  }
}

void kl_ev_settle(kl_ev *ev, kl_evval *v) {
  size_t n = (size_t)(v->splat ? 1 : v->shape->count), bytes = n * kl_ev_size(v->shape->dtype);
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  if (kl_ev_exact(v)) return;
  if (any && !memchr(any, 1, n)) {
    kl_ev_drop_any(ev, v);
    any = NULL;
  }
  const void *data = kl_ev_plane(v, KL_EV_DATA);
  if (!any && memcmp(kl_ev_plane(v, KL_EV_LO), data, bytes) == 0 && memcmp(kl_ev_plane(v, KL_EV_HI), data, bytes) == 0)
    kl_ev_drop_interval(ev, v);
}

kiln_status kl_ev_open(kl_ev *ev, kl_evval *v) {
  if (!v->shape || !kl_shape_is_array(v->shape)) return KILN_OK;
  kl_evbuf *any = try_buffer(ev, v->shape, v->splat, KL_EV_ANY);
  if (!any) return kl_out_of_memory(ev->cx, (size_t)v->shape->count, "an evaluated array");
  memset(any->p, 1, any->size);
  kl_ev_drop_any(ev, v);
  v->plane[KL_EV_ANY] = any;
  return KILN_OK;
}

// --- taking over an operand ---------------------------------------------------------------------------------------

kl_evval kl_ev_take(kl_ev *ev, const kl_evval *const *operands, size_t k, const kl_shape *s) {
  kl_evval *from = (kl_evval *)operands[k]; // a frame's own
  if (!ev->last || !ev->last[k]) return kl_ev_share(from, s);
  kl_evval v = *from;
  *from = (kl_evval){.shape = v.shape};
  v.shape = s;
  return v;
}

// Does nobody but this value hold its planes?
static bool alone(const kl_evval *v) {
  for (int plane = 0; plane < KL_EV_PLANES; plane++) {
    const kl_evbuf *b = v->plane[plane];
    uint32_t mine = 0;
    for (int k = 0; k < KL_EV_PLANES; k++) mine += b && v->plane[k] == b;
    if (b && (!b->owned || b->refs != mine)) return false;
  }
  return true;
}

static bool is_whole(const kl_evval *v) {
  bool all = v->plane[KL_EV_LO] != v->plane[KL_EV_DATA] && v->plane[KL_EV_HI] != v->plane[KL_EV_DATA] &&
             v->plane[KL_EV_LO] != v->plane[KL_EV_HI] && v->plane[KL_EV_ANY];
  return !v->splat && (all || kl_ev_exact(v));
}

kiln_status kl_ev_own(kl_ev *ev, const kl_evval *const *operands, size_t k, const kl_shape *s, bool inexact,
                      kl_evval *out) {
  const kl_evval *v = operands[k];
  if (ev->last && ev->last[k] && alone(v) && is_whole(v) && kl_ev_exact(v) == !inexact) {
    *out = kl_ev_take(ev, operands, k, s);
    kl_evbuf *any = out->plane[KL_EV_ANY];
    if (any) kl_arrangement_free(ev->cx, any->arranged), any->arranged = NULL; // what is written on is none any more
    return KILN_OK;
  }
  KL_TRY(kl_ev_new(ev, s, false, inexact, out));
  out->raw = v->raw;
  kl_ev_walk w = {0};
  kl_ev_walk_add(&w, s->count, kl_ev_single(v) ? 0 : 1, 1);
  kl_ev_copy_planes(ev, &w, v, out);
  return KILN_OK;
}
