// Reducers in lanes. Accumulators are double-buffered, since a program may not write what it reads.
#include "eval/lanes.h"

bool kl_lanes_want_intervals(const kl_ev *ev, const kl_ev_program *p, size_t n, const kl_evval *const *operands) {
  bool inexact = !kl_ev_program_exact(p), open_nan = false;
  for (size_t k = 0; k < n; k++) {
    kl_dtype t = operands[k]->shape->dtype;
    inexact |= !kl_ev_exact(operands[k]);
    open_nan |= !operands[k]->raw && (kl_is_float(t) || kl_is_complex(t));
  }
  return ev->intervals && (inexact || (open_nan && kl_ev_program_reads_bits(p)));
}

// Two copies of every plane, each of 16 bytes per lane at most.
static size_t plane_size(int64_t lanes) {
  return (size_t)lanes * 16;
}

static void place(kl_ev_lanes *w, int64_t lanes) {
  char *next = w->memory;
  size_t size = plane_size(lanes);
  for (uint32_t k = 0; k < 2 * w->n; k++) {
    kl_iv_out *to = k < w->n ? &w->acc[k] : &w->next[k - w->n];
    *to = (kl_iv_out){next, NULL, NULL, NULL};
    if (w->intervals) *to = (kl_iv_out){next, next + size, next + 2 * size, (uint8_t *)next + 3 * size};
    next += w->intervals ? 4 * size : size;
  }
}

kiln_status kl_lanes_new(kl_ev *ev, const kl_ev_program *p, uint32_t n, const kl_evval *const *shape, bool intervals,
                         uint32_t workers, int64_t lanes, kl_ev_lanes **out) {
  lanes = lanes < 1 ? 1 : lanes < KL_EV_CHUNK ? lanes : KL_EV_CHUNK;
  *out = kl_alloc(ev->cx, sizeof(kl_ev_lanes) * workers);
  bool ok = true;
  for (uint32_t k = 0; k < workers; k++) {
    kl_ev_lanes *w = &(*out)[k];
    *w = (kl_ev_lanes){.program = p, .n = n, .intervals = intervals};
    w->size = plane_size(lanes) * 2 * n * (intervals ? 4 : 1);
    w->shape = kl_alloc(ev->cx, sizeof *w->shape * (n + 1u));
    w->param = kl_alloc(ev->cx, sizeof *w->param * (2 * n + 1u));
    w->acc = kl_alloc(ev->cx, sizeof *w->acc * (n + 1u));
    w->next = kl_alloc(ev->cx, sizeof *w->next * (n + 1u));
    w->in = kl_alloc(ev->cx, sizeof *w->in * (2 * n + 1u));
    w->out = kl_alloc(ev->cx, sizeof *w->out * (n + 1u));
    w->memory = kl_try_alloc(ev->cx, w->size);
    w->regs = w->memory ? kl_ev_regs_new(ev, p, lanes) : NULL;
    for (uint32_t i = 0; i < n; i++) w->shape[i] = shape[i]->shape;
    ok &= w->regs != NULL;
    if (w->memory) place(w, lanes);
  }
  if (ok) return KILN_OK;
  kl_lanes_free(ev, *out, workers);
  *out = NULL;
  return kl_out_of_memory(ev->cx, plane_size(lanes), "a reducer");
}

void kl_lanes_free(kl_ev *ev, kl_ev_lanes *l, uint32_t workers) {
  for (uint32_t k = 0; k < workers && l; k++) {
    kl_ev_lanes *w = &l[k];
    kl_ev_regs_free(ev, w->regs);
    kl_free(ev->cx, w->memory, w->size);
    kl_free(ev->cx, w->out, sizeof *w->out * (w->n + 1u));
    kl_free(ev->cx, w->in, sizeof *w->in * (2 * w->n + 1u));
    kl_free(ev->cx, w->next, sizeof *w->next * (w->n + 1u));
    kl_free(ev->cx, w->acc, sizeof *w->acc * (w->n + 1u));
    kl_free(ev->cx, w->param, sizeof *w->param * (2 * w->n + 1u));
    kl_free(ev->cx, w->shape, sizeof *w->shape * (w->n + 1u));
  }
  kl_free(ev->cx, l, sizeof(kl_ev_lanes) * workers);
}

static void fill(char *to, const char *from, size_t size, int64_t n) {
  for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * size, from, size);
}

void kl_iv_fill(kl_dtype t, const kl_iv_in *from, const kl_iv_out *to, int64_t n) {
  size_t size = kl_ev_size(t);
  fill(to->data, from->data, size, n);
  if (!to->lo) return;
  fill(to->lo, from->lo, size, n);
  fill(to->hi, from->hi, size, n);
  memset(to->any, from->any ? *from->any : 0, (size_t)n);
}

void kl_lanes_fill(kl_ev_lanes *w, uint32_t k, int64_t lanes, const kl_iv_in *init) {
  kl_iv_fill(w->shape[k]->dtype, init, &w->acc[k], lanes);
}

void kl_lanes_point(kl_ev_lanes *w, uint32_t k, kl_iv_in operand) {
  w->param[w->n + k] = operand;
}

static void keep(const kl_ev_lanes *w, int64_t lanes, const uint8_t *where) {
  for (uint32_t k = 0; k < w->n; k++) {
    size_t size = kl_ev_size(w->shape[k]->dtype);
    for (int64_t i = 0; i < lanes; i++) {
      size_t at = (size_t)i * size;
      if (where[i]) continue;
      memcpy(w->next[k].data + at, w->acc[k].data + at, size);
      if (!w->intervals) continue;
      memcpy(w->next[k].lo + at, w->acc[k].lo + at, size);
      memcpy(w->next[k].hi + at, w->acc[k].hi + at, size);
      w->next[k].any[i] = w->acc[k].any[i];
    }
  }
}

static kiln_status run(kl_ev_lanes *w, int64_t lanes) {
  if (w->intervals) return kl_ev_program_run_iv(w->program, w->regs, lanes, w->param, w->next);
  for (uint32_t k = 0; k < 2 * w->n; k++) w->in[k] = w->param[k].data;
  for (uint32_t k = 0; k < w->n; k++) w->out[k] = w->next[k].data;
  return kl_ev_program_run(w->program, w->regs, lanes, w->in, w->out);
}

kl_iv_in kl_iv_settled(kl_dtype t, const kl_iv_in *v, int64_t n) {
  size_t bytes = (size_t)n * kl_ev_size(t);
  if (!v->lo) return (kl_iv_in){v->data, v->data, v->data, NULL};
  bool lo = v->lo != v->data && memcmp(v->lo, v->data, bytes), hi = v->hi != v->data && memcmp(v->hi, v->data, bytes);
  bool any = v->any && memchr(v->any, 1, (size_t)n);
  return (kl_iv_in){v->data, lo ? v->lo : v->data, hi ? v->hi : v->data, any ? v->any : NULL};
}

kiln_status kl_lanes_combine(kl_ev_lanes *w, int64_t lanes, const uint8_t *where) {
  for (uint32_t k = 0; k < w->n; k++) {
    const kl_iv_out *a = &w->acc[k];
    w->param[k] = kl_iv_settled(w->shape[k]->dtype, &(kl_iv_in){a->data, a->lo, a->hi, a->any}, lanes);
  }
  KL_TRY(run(w, lanes));
  if (where) keep(w, lanes, where);
  kl_iv_out *t = w->acc;
  w->acc = w->next;
  w->next = t;
  return KILN_OK;
}

void kl_iv_copy(kl_dtype t, const kl_iv_in *from, const kl_iv_out *to, int64_t at, int64_t n) {
  size_t size = kl_ev_size(t), offset = (size_t)at * size, bytes = (size_t)n * size;
  memcpy(to->data + offset, from->data, bytes);
  if (!to->lo) return;
  memcpy(to->lo + offset, from->lo ? from->lo : from->data, bytes);
  memcpy(to->hi + offset, from->hi ? from->hi : from->data, bytes);
  if (from->any)
    memcpy(to->any + at, from->any, (size_t)n);
  else
    memset(to->any + at, 0, (size_t)n);
}

void kl_lanes_take(const kl_ev_lanes *w, uint32_t k, int64_t lanes, const kl_iv_out *out) {
  const kl_iv_out *a = &w->acc[k];
  kl_iv_copy(w->shape[k]->dtype, &(kl_iv_in){a->data, a->lo, a->hi, a->any}, out, 0, lanes);
}
