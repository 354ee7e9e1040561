// Folds of sliding windows, with work that does not grow with the window. A window is a box, so its fold is one of
// folds: along the last axis of elements, along each axis before that of whole slabs of folds, one per window of the
// axes behind it.
//
// Along an axis, what a window sees is an interval of a progression of elements, and neither end moves back from one
// window to the next. Its fold is that of two parts: of a front, for which the folds from each element on to the end of
// the front are kept, and of a back, one fold that takes elements in. Once the window has left the front, all it sees
// becomes the next one. So every element is folded into a front once and into a back once. Only some of a long front's
// folds are kept: those at marks, and all up to the next mark.
//
// No element is ever taken out of a fold again, so that this serves every combiner, and rounds no more than adding the
// elements one by one.
#include "eval/fold/sliding.h"

#include <math.h>

enum {
  FRONT_BYTES = 1 << 22, // a front up to this size has no marks
  MOST_BYTES = 1 << 30,
  CHUNK = 16, // windows along the first axis that a worker takes at once, at least
};

typedef struct level {
  const kl_axis *axis;
  int64_t inner;        // folds of a slab
  int64_t slots, marks; // slabs
  char *front, *mark, *back, *item;
} level;

typedef struct front {
  int64_t begin, mid, end; // elements of the front, and of the back behind it
  int64_t from, to;        // those whose folds are kept
} front;

typedef struct job {
  const kl_sliding *s;
  kl_op op;
  bool intervals;
  int64_t stands;
  const kl_evval *operand, *init, *out;
  size_t state; // bytes of a fold
  uint32_t nlevels, nbatch;
  uint32_t level_axis[KILN_MAX_RANK], batch_axis[KILN_MAX_RANK];
  int64_t result_stride[KILN_MAX_RANK];
  int64_t *inner_at; // the result of each fold of a slab of the first axis, less those of batch and window
  int64_t chunk, chunks, batch;
  size_t worker_bytes;
  char *memory;
} job;

typedef struct worker {
  const job *job;
  level level[KILN_MAX_RANK];
  kl_fold init, none, tmp; // none: of no elements
} worker;

// --- slabs of folds -----------------------------------------------------------------------------------------------

static kl_fold *fold_at(const job *job, char *slab, int64_t i) {
  return (kl_fold *)(slab + (size_t)i * job->state);
}

static void start_slab(const job *job, char *slab, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    kl_fold_start(fold_at(job, slab, i), job->op, job->operand->shape->dtype, job->intervals);
}

static void copy_slab(const job *job, char *to, const char *from, int64_t n) {
  memcpy(to, from, (size_t)n * job->state);
}

static void merge_slab(const job *job, char *to, const char *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) kl_fold_merge(fold_at(job, to, i), fold_at(job, (char *)from, i));
}

static char *slab_of(const worker *w, uint32_t l, char *slabs, int64_t k) {
  return slabs + (size_t)(k * w->level[l].inner) * w->job->state;
}

// --- one axis -----------------------------------------------------------------------------------------------------

static void slide_axis(worker *w, uint32_t l, int64_t base, int64_t begin, int64_t end, int64_t result);

// The slab of element x; base: of the element 0.
static void make_item(worker *w, uint32_t l, int64_t base, int64_t x) {
  const job *job = w->job;
  level *v = &w->level[l];
  int64_t at = base + x * v->axis->stride;
  if (l + 1 < job->nlevels) {
    slide_axis(w, l + 1, at, 0, w->level[l + 1].axis->windows, 0);
    return;
  }
  kl_iv_in one = kl_ev_in(job->operand, kl_ev_single(job->operand) ? 0 : at);
  start_slab(job, v->item, 1);
  kl_fold_add(fold_at(job, v->item, 0), 1, &one);
}

// Keeps the folds from each of [from, to) on; `after` holds that from `to` on, if there is more.
static void keep_front(worker *w, uint32_t l, int64_t base, front *f, const char *after) {
  level *v = &w->level[l];
  for (int64_t x = f->to - v->axis->step; x >= f->from; x -= v->axis->step) {
    char *slot = slab_of(w, l, v->front, (x - f->from) / v->axis->step);
    make_item(w, l, base, x);
    copy_slab(w->job, slot, v->item, v->inner);
    if (after) merge_slab(w->job, slot, after, v->inner);
    after = slot;
  }
}

static void enter_front(worker *w, uint32_t l, int64_t base, front *f, int64_t x) {
  level *v = &w->level[l];
  int64_t step = v->axis->step, k = (x - f->begin) / step / v->slots;
  f->from = f->begin + k * v->slots * step;
  f->to = f->from + v->slots * step < f->mid ? f->from + v->slots * step : f->mid;
  keep_front(w, l, base, f, f->to < f->mid ? slab_of(w, l, v->mark, k + 1) : NULL);
}

// All of [begin, end) becomes the front.
static void new_front(worker *w, uint32_t l, int64_t base, front *f, int64_t begin, int64_t end) {
  level *v = &w->level[l];
  int64_t step = v->axis->step;
  *f = (front){begin, end, end, begin, begin};
  start_slab(w->job, v->back, v->inner);
  for (int64_t k = (end - begin) / step; (end - begin) / step > v->slots && k-- > v->slots;) {
    make_item(w, l, base, begin + k * step);
    merge_slab(w->job, v->back, v->item, v->inner);
    if (k % v->slots == 0) copy_slab(w->job, slab_of(w, l, v->mark, k / v->slots), v->back, v->inner);
  }
  start_slab(w->job, v->back, v->inner);
  enter_front(w, l, base, f, begin);
}

static void store(const worker *w, kl_fold *f, int64_t at) {
  kl_iv_out out = kl_ev_out(w->job->out, 0);
  kl_window_store(f, w->job->stands, &out, at);
}

// The folds of window o: `part` and the back, or of nothing. They go to the slab that the axis before asked for; at the
// first axis, to the results.
static void emit(worker *w, uint32_t l, int64_t o, const char *part, int64_t result) {
  const job *job = w->job;
  level *v = &w->level[l];
  for (int64_t i = 0; i < v->inner; i++) {
    const kl_fold *from = part ? fold_at(job, (char *)part, i) : &w->none;
    kl_fold *to = l ? fold_at(job, w->level[l - 1].item, o * v->inner + i) : &w->tmp;
    copy_slab(job, (char *)to, (const char *)from, 1);
    if (part) kl_fold_merge(to, fold_at(job, v->back, i));
    if (l) continue;
    kl_fold_merge(to, &w->init);
    store(w, to, result + o * job->result_stride[job->level_axis[0]] + job->inner_at[i]);
  }
}

// Windows [begin, end) along axis l; base: the element where all axes so far stand, at 0 along this one and those
// behind.
static void slide_axis(worker *w, uint32_t l, int64_t base, int64_t begin, int64_t end, int64_t result) {
  level *v = &w->level[l];
  const kl_axis *a = v->axis;
  for (int64_t r = 0; r < a->period && begin + r < end; r++) {
    front f = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    for (int64_t o = begin + r; o < end; o += a->period) {
      const kl_sight *s = &a->sight[o];
      int64_t last = s->first + s->count * a->step;
      if (s->count == 0) {
        emit(w, l, o, NULL, result);
        continue;
      }
      if (s->first >= f.mid) new_front(w, l, base, &f, s->first, last);
      for (; f.end < last; f.end += a->step) {
        make_item(w, l, base, f.end);
        merge_slab(w->job, v->back, v->item, v->inner);
      }
      if (s->first >= f.to) enter_front(w, l, base, &f, s->first);
      emit(w, l, o, slab_of(w, l, v->front, (s->first - f.from) / a->step), result);
      if (end - o <= a->period) break;
    }
  }
}

// --- all axes -----------------------------------------------------------------------------------------------------

// Where the other axes stand; false where they see nothing.
static bool find_batch(const job *job, int64_t index, int64_t *base, int64_t *result) {
  bool seen = true;
  *base = *result = 0;
  for (uint32_t k = job->nbatch; k-- > 0;) {
    uint32_t d = job->batch_axis[k];
    const kl_axis *a = &job->s->axis[d];
    int64_t o = index % a->windows;
    index /= a->windows;
    seen &= a->sight[o].count > 0;
    *base += a->sight[o].first * a->stride;
    *result += o * job->result_stride[d];
  }
  return seen;
}

static size_t slab_bytes(const job *job, const level *v) {
  return (size_t)v->inner * job->state;
}

// Fronts that are too large get marks at every square root of their length. Returns the bytes of all levels.
static size_t size_levels(const job *job, level *levels) {
  size_t bytes = 0;
  for (uint32_t l = job->nlevels; l-- > 0;) {
    level *v = &levels[l];
    *v = (level){.axis = &job->s->axis[job->level_axis[l]], .inner = 1};
    if (l + 1 < job->nlevels) v->inner = levels[l + 1].inner * levels[l + 1].axis->windows;
    int64_t most = v->axis->most;
    v->slots = most;
    if ((double)most * (double)slab_bytes(job, v) > FRONT_BYTES)
      while (v->slots > most / v->slots + 1) v->slots = (v->slots + most / v->slots) / 2;
    v->marks = most / v->slots + 2;
    bytes += (size_t)(v->slots + v->marks + 2) * slab_bytes(job, v);
  }
  return bytes;
}

static void start_worker(const job *job, char *memory, worker *w) {
  kl_iv_in init = kl_ev_in(job->init, 0);
  w->job = job;
  start_slab(job, (char *)&w->none, 1);
  start_slab(job, (char *)&w->init, 1);
  kl_fold_add(&w->init, 1, &init);
  size_levels(job, w->level);
  for (uint32_t l = 0; l < job->nlevels; l++) {
    level *v = &w->level[l];
    v->front = memory;
    v->mark = slab_of(w, l, v->front, v->slots);
    v->back = slab_of(w, l, v->mark, v->marks);
    v->item = slab_of(w, l, v->back, 1);
    memory = slab_of(w, l, v->item, 1);
  }
}

static void slide_pieces(void *arg, uint32_t index, int64_t begin, int64_t end) {
  const job *job = arg;
  worker w;
  start_worker(job, job->memory + index * job->worker_bytes, &w);
  for (int64_t p = begin; p < end; p++) {
    int64_t base, result, from = p % job->chunks * job->chunk, to = w.level[0].axis->windows;
    bool seen = find_batch(job, p / job->chunks, &base, &result);
    if (to - from > job->chunk) to = from + job->chunk;
    for (int64_t o = from; o < to && !seen; o++) emit(&w, 0, o, NULL, result);
    if (seen) slide_axis(&w, 0, base, from, to, result);
  }
}

static void find_axes(const kl_sliding *s, job *job) {
  int64_t stride = 1;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (s->axis[d].most > 1)
      job->level_axis[job->nlevels++] = d;
    else
      job->batch_axis[job->nbatch++] = d;
  }
  for (uint32_t d = s->rank; d-- > 0;) {
    job->result_stride[d] = stride;
    stride *= s->axis[d].windows;
  }
}

// Results of a slab of the first axis, in the order of the axes behind it.
static void fill_inner(const job *job, int64_t inner) {
  for (int64_t i = 0; i < inner; i++) {
    int64_t rest = i, at = 0;
    for (uint32_t l = job->nlevels; l-- > 1;) {
      const kl_axis *a = &job->s->axis[job->level_axis[l]];
      at += rest % a->windows * job->result_stride[job->level_axis[l]];
      rest /= a->windows;
    }
    job->inner_at[i] = at;
  }
}

kiln_status kl_slide(kl_ev *ev, const kl_sliding *s, kl_op op, bool intervals, int64_t stands, const kl_evval *operand,
                     const kl_evval *init, kl_evval *out) {
  job job = {.s = s,
             .op = op,
             .intervals = intervals,
             .stands = stands,
             .operand = operand,
             .init = init,
             .out = out,
             .batch = 1};
  level levels[KILN_MAX_RANK], *first = levels;
  job.state = kl_fold_bytes(op, operand->shape->dtype);
  find_axes(s, &job);
  job.worker_bytes = size_levels(&job, levels);
  for (uint32_t k = 0; k < job.nbatch; k++) job.batch *= s->axis[job.batch_axis[k]].windows;
  job.chunk = first->axis->most > CHUNK / 2 ? 2 * first->axis->most : CHUNK;
  job.chunks = (first->axis->windows - 1) / job.chunk + 1;
  int64_t pieces = job.batch * job.chunks, outputs = job.chunk * first->inner, grain = (1 << 12) / outputs + 1;
  uint32_t workers = kl_ev_workers(ev, pieces, grain);
  size_t inner_bytes = sizeof(int64_t) * (size_t)first->inner;
  job.memory = kl_try_alloc(ev->cx, job.worker_bytes * workers);
  job.inner_at = kl_try_alloc(ev->cx, inner_bytes);
  bool ok = job.memory && job.inner_at;
  if (ok) {
    fill_inner(&job, first->inner);
    kl_ev_parallel(ev, pieces, grain, slide_pieces, &job);
  }
  kl_free(ev->cx, job.inner_at, inner_bytes);
  kl_free(ev->cx, job.memory, job.worker_bytes * workers);
  return ok ? KILN_OK : kl_out_of_memory(ev->cx, job.worker_bytes, "windows");
}

// --- whether ------------------------------------------------------------------------------------------------------

// Counts merges of the one way and elements of the other, which take a fraction of a merge's time.
bool kl_slides(kl_ev *ev, const kl_sliding *s) {
  const double elements_per_merge = 6;
  double merges = 0, items = 1, inner = (double)s->result->count, elements = inner, slabs = 0, batch = 1;
  for (uint32_t d = 0; d < s->rank; d++) {
    const kl_axis *a = &s->axis[d];
    elements *= (double)a->most;
    if (a->most <= 1) batch *= (double)a->windows;
  }
  inner /= batch;
  for (uint32_t d = 0; d < s->rank; d++) {
    const kl_axis *a = &s->axis[d];
    if (a->most <= 1) continue;
    inner /= (double)a->windows;
    double seen = fmin((double)a->extent, (double)a->windows * (double)a->most) * 2;
    merges += items * inner * (seen + (double)a->windows);
    items *= seen;
    slabs += inner * (2 * sqrt((double)a->most) + 8);
  }
  double bytes = slabs * sizeof(kl_fold) * kl_ev_workers(ev, s->result->count, 1);
  return merges > 0 && elements > merges * batch * elements_per_merge && bytes < MOST_BYTES &&
         kl_memory_fits(ev->cx, (size_t)bytes);
}
