// gather: windows of the operand at clamped starts, copied row by row.
#include "eval/indexed/index.h"

typedef struct job {
  const kl_ev_windows *w;
  size_t size;
  const char *src;
  char *dst;
} job;

static void copy_windows(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const job *j = arg;
  kl_ev_walk walk = j->w->window;
  kl_ev_cursor c;
  kl_ev_cursor_set(j->w, &c, begin);
  for (int64_t i = begin; i < end; i++, kl_ev_cursor_next(j->w, &c)) {
    bool inside, open;
    walk.src_base = kl_ev_cursor_start(j->w, &c, &inside, &open);
    walk.dst_base = c.array;
    kl_ev_copy_here(&walk, j->size, j->src, j->dst);
  }
}

// Few large windows: each by all threads.
static void copy_large(const kl_ev *ev, const job *j) {
  kl_ev_walk walk = j->w->window;
  kl_ev_cursor c;
  kl_ev_cursor_set(j->w, &c, 0);
  for (int64_t i = 0; i < j->w->n; i++, kl_ev_cursor_next(j->w, &c)) {
    bool inside, open;
    walk.src_base = kl_ev_cursor_start(j->w, &c, &inside, &open);
    walk.dst_base = c.array;
    kl_ev_copy(ev, &walk, j->size, j->src, j->dst);
  }
}

static void copy_plane(const kl_ev *ev, const kl_ev_windows *w, size_t size, const void *src, void *dst) {
  const int64_t piece = 1 << 14;
  job j = {w, size, src, dst};
  if (w->n < 8 && w->window_count > 4 * piece)
    copy_large(ev, &j);
  else
    kl_ev_parallel(ev, w->n, w->window_count >= piece ? 1 : piece / w->window_count, copy_windows, &j);
}

// Windows whose place is not known hold anything.
static void open_windows(const kl_ev_windows *w, uint8_t *any) {
  static const uint8_t open_element = 1;
  kl_ev_walk walk = w->window;
  kl_ev_cursor c;
  memset(walk.src, 0, sizeof walk.src);
  kl_ev_cursor_set(w, &c, 0);
  for (int64_t i = 0; i < w->n; i++, kl_ev_cursor_next(w, &c)) {
    bool inside, open;
    kl_ev_cursor_start(w, &c, &inside, &open);
    walk.dst_base = c.array;
    if (open) kl_ev_copy_here(&walk, 1, &open_element, any);
  }
}

kiln_status kl_ev_gather(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                         kl_evval *out) {
  const kl_evval *src = operands[0], *indices = operands[1];
  kl_ev_windows w;
  if (in->shape->count && kl_ev_single(src)) return kl_ev_spread(ev, src, in->shape, out);
  if (!kl_ev_windows_init(&w, in, src->shape, indices, in->shape))
    return kl_ev_refuse(ev, in, "a slice is larger than the operand");
  bool inexact = !kl_ev_exact(src) || !kl_ev_exact(indices);
  KL_TRY(kl_ev_new(ev, in->shape, false, inexact, out));
  out->raw = src->raw;
  if (in->shape->count == 0) return KILN_OK;
  size_t size = kl_ev_size(in->shape->dtype);
  for (int plane = KL_EV_DATA; plane <= (inexact ? KL_EV_HI : KL_EV_DATA); plane++)
    copy_plane(ev, &w, size, kl_ev_plane(src, plane), kl_ev_plane(out, plane));
  if (!inexact) return KILN_OK;
  if (src->plane[KL_EV_ANY]) copy_plane(ev, &w, 1, kl_ev_plane(src, KL_EV_ANY), kl_ev_plane(out, KL_EV_ANY));
  if (!kl_ev_exact(indices)) open_windows(&w, kl_ev_plane(out, KL_EV_ANY));
  kl_ev_settle(ev, out);
  return KILN_OK;
}
