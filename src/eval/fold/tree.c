// Reductions by the tree of the graph. Many leaves are folded at once, as lanes of vectors: those of a group, of
// several results, or both. Then lanes are taken apart into lower and higher neighbours, which are joined as vectors
// again.
//
// A block is some results in rows, or some side by side ("lanes"). Its leaves are made chunk by chunk: all of them, or
// a power of two of groups, so that a chunk ends as one node of the tree. Nodes wait in slots, one for each level, for
// their right neighbours. Absent leaves are always the last ones.
#include "eval/fold/tree.h"
#include "eval/fold/sum.h"
#include "eval/lanes.h"

enum {
  ROW_WIDTH = 256,
  ROW_CHAIN = 4, // at least
  COLUMN_WIDTH = 8,
  COLUMN_CHAIN = 16,
  MOST_GROUPS = 4096,
  ROOM = 4096,      // elements of a vector
  LEAST_LANES = 32, // of a block, where there are as many results
  BLOCK = 1 << 14,  // elements of a block, where lanes decide
};

// --- numbers ------------------------------------------------------------------------------------------------------

static bool is_among(int64_t d, uint32_t n, const int64_t *dims) {
  for (uint32_t k = 0; k < n; k++)
    if (dims[k] == d) return true;
  return false;
}

kl_fold_tree kl_reduce_tree(const kl_shape *operand, uint32_t ndims, const int64_t *dims) {
  kl_fold_tree t = {.length = 1};
  bool found = false;
  for (uint32_t i = 0; i < operand->rank; i++) {
    int64_t d = kl_shape_minor_to_major(operand, i);
    bool reduced = is_among(d, ndims, dims);
    if (reduced && __builtin_mul_overflow(t.length, operand->dims[d], &t.length)) t.length = 0; // of an empty array
    if (found || operand->dims[d] <= 1) continue;
    t.row = reduced;
    found = true;
  }
  if (operand->count == 0) t.length = 0;
  t.width = t.row ? ROW_WIDTH : COLUMN_WIDTH;
  t.chain = t.row ? ROW_CHAIN : COLUMN_CHAIN;
  while (t.chain <= (t.length - 1) / (t.width * MOST_GROUPS)) t.chain *= 2;
  return t;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Leaves that have an element.
static int64_t leaf_count(const kl_fold_tree *t) {
  int64_t group = t->width * t->chain, whole = t->length / group;
  return whole * t->width + least(t->length % group, t->width);
}

// --- vectors ------------------------------------------------------------------------------------------------------

// Elements of each component.
typedef kl_iv_out *vector;

typedef struct worker worker;
typedef struct run {
  const kl_tree_job *job;
  kl_dtype *type;      // of components while they are folded
  int64_t leaves;      // present, of one result
  int64_t chunk;       // leaves of a chunk
  int64_t rows, lanes; // of a block; one of them is 1
  int64_t room;        // of a vector
  const float *values; // in_f32: of the patterns of a type of 8 bits or fewer
  worker *worker;
  _Atomic int status;
} run;

struct worker {
  const run *r;
  kl_ev_regs *regs;
  vector acc, next, pair, taken[2]; // of `room`
  vector waiting;                   // nodes, by level
  vector to;                        // where the next ones go
  kl_iv_out *vectors;
  kl_iv_in *in;         // 2 n: lower values, then higher ones
  const void **in_data; // of these
  void **to_data;
  char *memory;
  size_t size;
};

enum { VECTORS = 7, LEVELS = 13 }; // nodes wait at as many levels: 4,096 chunks at most

static size_t plane_bytes(size_t element, int64_t n) {
  return ((size_t)n * element + 15) / 16 * 16;
}

static size_t vector_bytes(const run *r, int64_t n) {
  size_t bytes = r->job->intervals ? plane_bytes(1, n) * r->job->n : 0;
  for (uint32_t k = 0; k < r->job->n; k++)
    bytes += plane_bytes(kl_ev_size(r->type[k]), n) * (r->job->intervals ? 3 : 1);
  return bytes;
}

static char *place(const run *r, vector v, int64_t n, char *at) {
  for (uint32_t k = 0; k < r->job->n; k++) {
    size_t plane = plane_bytes(kl_ev_size(r->type[k]), n);
    v[k] = (kl_iv_out){at, NULL, NULL, NULL};
    if (r->job->intervals) v[k] = (kl_iv_out){at, at + plane, at + 2 * plane, (uint8_t *)at + 3 * plane};
    at += r->job->intervals ? 3 * plane + plane_bytes(1, n) : plane;
  }
  return at;
}

// From element i on.
static kl_iv_out to_write(kl_dtype t, const kl_iv_out *v, int64_t i) {
  size_t offset = (size_t)i * kl_ev_size(t);
  if (!v->lo) return (kl_iv_out){v->data + offset, NULL, NULL, NULL};
  return (kl_iv_out){v->data + offset, v->lo + offset, v->hi + offset, v->any + i};
}
static kl_iv_in to_read(kl_dtype t, const kl_iv_out *v, int64_t i) {
  kl_iv_out p = to_write(t, v, i);
  return (kl_iv_in){p.data, p.lo, p.hi, p.any};
}

static void copy(const worker *w, vector from, int64_t i, vector to, int64_t j, int64_t n) {
  for (uint32_t k = 0; k < w->r->job->n; k++) {
    kl_iv_in in = to_read(w->r->type[k], &from[k], i);
    kl_iv_copy(w->r->type[k], &in, &to[k], j, n);
  }
}

static void swap(vector *a, vector *b) {
  vector t = *a;
  *a = *b;
  *b = t;
}

// --- joining ------------------------------------------------------------------------------------------------------

typedef enum side { LOWER, HIGHER } side;

static kl_iv_in *values(const worker *w, side which) {
  return w->in + (which == HIGHER ? w->r->job->n : 0);
}

// Makes n places of a vector the next values of a side.
static void point(const worker *w, side which, vector v, int64_t i, int64_t n) {
  for (uint32_t k = 0; k < w->r->job->n; k++) {
    kl_iv_in in = to_read(w->r->type[k], &v[k], i);
    values(w, which)[k] = kl_iv_settled(w->r->type[k], &in, n);
  }
}

// to[i + j] = reducer(lower value j, higher value j), j < n.
static void join(worker *w, int64_t n, vector to, int64_t i) {
  const kl_tree_job *job = w->r->job;
  for (uint32_t k = 0; k < job->n; k++) w->to[k] = to_write(w->r->type[k], &to[k], i);
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < 2 * job->n; k++) w->in_data[k] = w->in[k].data;
  for (uint32_t k = 0; k < job->n; k++) w->to_data[k] = w->to[k].data;
  if (job->direct)
    job->direct->run(job->direct, n, w->in_data, w->to_data[0]);
  else if (job->intervals)
    status = kl_ev_program_run_iv(job->program, w->regs, n, w->in, w->to);
  else
    status = kl_ev_program_run(job->program, w->regs, n, w->in_data, w->to_data);
  if (status != KILN_OK) ((run *)w->r)->status = (int)status;
}

#define SPLIT_LOOP(T)                                                                                                  \
  case sizeof(T): {                                                                                                    \
    const T *x = from;                                                                                                 \
    T *a = to, *b = (T *)to + rows * half;                                                                             \
    for (int64_t o = 0; o < rows; o++, x += m, a += half, b += half)                                                   \
      for (int64_t p = 0; p < half; p++) a[p] = x[2 * p], b[p] = x[2 * p + 1];                                         \
    break;                                                                                                             \
  }

// From rows of m items the pairs 2p, 2p + 1: all first items, row by row, then all second ones. An item is one element
// or some bytes of them.
static void split(int64_t rows, int64_t m, size_t item, const void *from, void *to) {
  int64_t half = m / 2;
  switch (item) {
    SPLIT_LOOP(uint8_t)
    SPLIT_LOOP(uint16_t)
    SPLIT_LOOP(uint32_t)
    SPLIT_LOOP(uint64_t)
  default:
    for (int64_t o = 0; o < rows; o++)
      for (int64_t p = 0; p < 2 * half; p++)
        memcpy((char *)to + (size_t)((p & 1) * rows * half + o * half + p / 2) * item,
               (const char *)from + (size_t)(o * m + p) * item, item);
  }
}

static void split_vector(const worker *w, int64_t rows, int64_t m, int64_t lanes, vector from, vector to) {
  for (uint32_t k = 0; k < w->r->job->n; k++) {
    size_t item = (size_t)lanes * kl_ev_size(w->r->type[k]);
    split(rows, m, item, from[k].data, to[k].data);
    if (!from[k].lo) continue;
    split(rows, m, item, from[k].lo, to[k].lo);
    split(rows, m, item, from[k].hi, to[k].hi);
    split(rows, m, (size_t)lanes, from[k].any, to[k].any);
  }
}

// Joins the m nodes of each row of acc, of `lanes` results each, until one is left.
static void join_all(worker *w, int64_t rows, int64_t m, int64_t lanes) {
  while (m > 1) {
    int64_t half = m / 2, n = rows * half * lanes;
    split_vector(w, rows, m, lanes, w->acc, w->pair);
    point(w, LOWER, w->pair, 0, n);
    point(w, HIGHER, w->pair, n, n);
    join(w, n, w->next, 0);
    if (m % 2 && rows == 1) copy(w, w->acc, (m - 1) * lanes, w->next, half * lanes, lanes);
    if (m % 2 && rows > 1) {
      for (int64_t o = 0; o < rows; o++) {
        copy(w, w->next, o * half, w->pair, o * (half + 1), half);
        copy(w, w->acc, o * m + m - 1, w->pair, o * (half + 1) + half, 1);
      }
      swap(&w->pair, &w->next);
    }
    swap(&w->acc, &w->next);
    m = half + m % 2;
  }
}

// --- leaves -------------------------------------------------------------------------------------------------------

// Results [first, first + rows * lanes).
typedef struct block {
  int64_t first, rows, lanes;
} block;

// Narrow floats as f32.
static void widen(const run *r, kl_dtype t, int64_t n, const void *from, float *to) {
  const uint16_t *wide = from;
  const uint8_t *byte = from;
  if (t == KILN_BF16)
    for (int64_t i = 0; i < n; i++) to[i] = kl_ev_bf16_load(wide[i]);
  else if (t == KILN_F16)
    for (int64_t i = 0; i < n; i++) to[i] = kl_ev_f16_load(wide[i]);
  else
    for (int64_t i = 0; i < n; i++) to[i] = r->values[byte[i]];
}

static void narrow(kl_dtype t, int64_t n, const float *from, void *to) {
  for (int64_t i = 0; i < n; i++) kl_element_set(t, to, i, 0, kl_float_encode(t, (double)from[i]));
}

// n elements of the same results, one after the other, behind what a vector has already.
static void take_some(const worker *w, uint32_t k, const kl_iv_in *from, vector to, int64_t i, int64_t n) {
  const kl_tree_job *job = w->r->job;
  if (job->in_f32)
    widen(w->r, job->elements[k].shape->dtype, n, from->data, (float *)to[k].data + i);
  else
    kl_iv_copy(w->r->type[k], from, &to[k], i, n);
}

// Makes elements [r, r + n) of row o of a block, all lanes of each, the next values of a side.
static void take(const worker *w, side which, const block *b, int64_t o, int64_t r, int64_t n) {
  const kl_tree_job *job = w->r->job;
  int64_t stride = job->rows ? 1 : job->kept, first = job->rows ? (b->first + o) * job->tree.length : b->first;
  for (uint32_t k = 0; k < job->n; k++) {
    kl_iv_in from = kl_ev_in(&job->elements[k], first + r * stride);
    bool whole = stride == b->lanes;
    if (whole && !job->in_f32) {
      values(w, which)[k] = from;
      continue;
    }
    if (whole) take_some(w, k, &from, w->taken[which], 0, n * b->lanes);
    for (int64_t j = 0; j < n && !whole; j++) {
      from = kl_ev_in(&job->elements[k], first + (r + j) * stride);
      take_some(w, k, &from, w->taken[which], j * b->lanes, b->lanes);
    }
    from = to_read(w->r->type[k], &w->taken[which][k], 0);
    values(w, which)[k] = kl_iv_settled(w->r->type[k], &from, n * b->lanes);
  }
}

// n of the next lower values, from the first on that is not skipped, as they are.
static void keep(const worker *w, int64_t skip, vector to, int64_t i, int64_t n) {
  for (uint32_t k = 0; k < w->r->job->n && n; k++) {
    kl_dtype t = w->r->type[k];
    const kl_iv_in *v = &values(w, LOWER)[k];
    size_t offset = (size_t)skip * kl_ev_size(t);
    kl_iv_in rest = {v->data + offset, NULL, NULL, NULL};
    if (to[k].lo) rest = (kl_iv_in){rest.data, v->lo + offset, v->hi + offset, v->any ? v->any + skip : NULL};
    kl_iv_copy(t, &rest, &to[k], i, n);
  }
}

// The leaves of one group, from its first element on, into places i .. of acc.
static void fold_group(worker *w, const block *b, int64_t o, int64_t first, int64_t i) {
  const kl_fold_tree *t = &w->r->job->tree;
  int64_t width = least(t->width, t->length - first), lanes = b->lanes;
  vector from = NULL;
  take(w, LOWER, b, o, first, width);
  for (int64_t k = 1; k < t->chain && first + k * t->width < t->length; k++) {
    int64_t n = least(t->width, t->length - first - k * t->width);
    vector to = from == w->acc ? w->next : w->acc;
    if (from) point(w, LOWER, from, i, width * lanes);
    take(w, HIGHER, b, o, first + k * t->width, n);
    join(w, n * lanes, to, i);
    keep(w, n * lanes, to, i + n * lanes, (width - n) * lanes);
    from = to;
  }
  if (!from)
    keep(w, 0, w->acc, i, width * lanes);
  else if (from == w->next)
    copy(w, w->next, i, w->acc, i, width * lanes);
}

// Leaves [first, first + m) of a block into acc, row by row.
static void make_leaves(worker *w, const block *b, int64_t first, int64_t m) {
  const kl_fold_tree *t = &w->r->job->tree;
  if (t->length <= t->width) { // they are the elements, and rows lie one behind the other
    take(w, LOWER, b, 0, 0, b->rows * t->length);
    keep(w, 0, w->acc, 0, b->rows * m * b->lanes);
    return;
  }
  for (int64_t o = 0; o < b->rows; o++)
    for (int64_t leaf = 0; leaf < m; leaf += t->width)
      fold_group(w, b, o, (first + leaf) * t->chain, (o * m + leaf) * b->lanes);
}

// --- blocks -------------------------------------------------------------------------------------------------------

// The chunk's node in acc waits for its right neighbour, or as their join for its own.
static void await_neighbour(worker *w, int64_t chunk, int64_t lanes) {
  int level = 0;
  for (; chunk >> level & 1; level++) {
    point(w, LOWER, w->waiting, level * w->r->lanes, lanes);
    point(w, HIGHER, w->acc, 0, lanes);
    join(w, lanes, w->next, 0);
    swap(&w->acc, &w->next);
  }
  copy(w, w->acc, 0, w->waiting, level * w->r->lanes, lanes);
}

// What waits has no right neighbour any more.
static void join_waiting(worker *w, int64_t chunks, int64_t lanes) {
  bool any = false;
  for (int level = 0; chunks >> level; level++) {
    if (!(chunks >> level & 1)) continue;
    if (!any) {
      copy(w, w->waiting, level * w->r->lanes, w->acc, 0, lanes);
      any = true;
      continue;
    }
    point(w, LOWER, w->waiting, level * w->r->lanes, lanes);
    point(w, HIGHER, w->acc, 0, lanes);
    join(w, lanes, w->next, 0);
    swap(&w->acc, &w->next);
  }
}

// The initial value joins last, as the lower one; of no elements it is the result.
static void store(worker *w, const block *b) {
  const kl_tree_job *job = w->r->job;
  int64_t n = b->rows * b->lanes;
  for (uint32_t k = 0; k < job->n; k++) {
    kl_iv_in init = kl_ev_in(job->init[k], 0);
    float wide;
    if (job->in_f32) widen(w->r, job->init[k]->shape->dtype, 1, init.data, &wide);
    if (job->in_f32) init = (kl_iv_in){(char *)&wide, NULL, NULL, NULL};
    kl_iv_fill(w->r->type[k], &init, &w->pair[k], n);
  }
  if (job->tree.length == 0) {
    swap(&w->pair, &w->next);
  } else {
    point(w, LOWER, w->pair, 0, n);
    point(w, HIGHER, w->acc, 0, n);
    join(w, n, w->next, 0);
  }
  for (uint32_t k = 0; k < job->n; k++) {
    kl_iv_out out = kl_ev_out(&job->out[k], b->first);
    kl_iv_in in = to_read(w->r->type[k], &w->next[k], 0);
    if (!job->intervals) out = (kl_iv_out){out.data, NULL, NULL, NULL};
    if (job->in_f32)
      narrow(job->out[k].shape->dtype, n, (const float *)in.data, out.data);
    else
      kl_iv_copy(w->r->type[k], &in, &out, 0, n);
  }
}

static void fold_block(worker *w, const block *b) {
  const run *r = w->r;
  int64_t chunks = 0;
  for (int64_t first = 0; first < r->leaves; first += r->chunk, chunks++) {
    int64_t m = least(r->chunk, r->leaves - first);
    make_leaves(w, b, first, m);
    join_all(w, b->rows, m, b->lanes);
    if (r->chunk < r->leaves) await_neighbour(w, chunks, b->lanes);
  }
  if (chunks > 1) join_waiting(w, chunks, b->lanes);
  store(w, b);
}

static void fold_blocks(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  run *r = arg;
  int64_t size = r->rows * r->lanes, kept = r->job->kept;
  for (int64_t i = begin; i < end; i++) {
    int64_t n = least(size, kept - i * size);
    fold_block(&r->worker[worker], r->job->rows ? &(block){i * size, n, 1} : &(block){i * size, 1, n});
  }
}

// --- the whole ----------------------------------------------------------------------------------------------------

static int64_t between(int64_t lo, int64_t x, int64_t hi) {
  return x < lo ? lo : x > hi ? hi : x;
}

// How much is folded at a time; nothing of the result depends on it.
static void choose_block(run *r) {
  const kl_fold_tree *t = &r->job->tree;
  int64_t leaves = r->leaves ? r->leaves : 1, side = least(leaves, t->width);
  r->rows = r->lanes = 1;
  if (r->job->rows)
    r->rows = between(1, ROOM / leaves, r->job->kept);
  else
    r->lanes = least(between(LEAST_LANES, BLOCK / (t->length + 1), ROOM / side), r->job->kept);
  r->chunk = leaves;
  if (leaves * r->lanes > ROOM)
    for (r->chunk = t->width; 2 * r->chunk * r->lanes <= ROOM;) r->chunk *= 2;
  r->room = r->rows * r->lanes * r->chunk;
}

static bool waits(const run *r) {
  return r->chunk < r->leaves;
}

static bool new_worker(kl_ev *ev, const run *r, worker *w) {
  uint32_t n = r->job->n;
  w->r = r;
  w->in = kl_alloc(ev->cx, sizeof *w->in * 2 * n);
  w->in_data = kl_alloc(ev->cx, sizeof *w->in_data * (2 * n + 1)); // an elementwise op has room for three
  w->to_data = kl_alloc(ev->cx, sizeof *w->to_data * n);
  w->vectors = kl_alloc(ev->cx, sizeof *w->vectors * VECTORS * n);
  w->size = 5 * vector_bytes(r, r->room) + (waits(r) ? vector_bytes(r, LEVELS * r->lanes) : 0);
  w->memory = kl_try_alloc(ev->cx, w->size);
  if (!w->memory) return false;
  vector *all[VECTORS] = {&w->acc, &w->next, &w->pair, &w->taken[LOWER], &w->taken[HIGHER], &w->waiting, &w->to};
  char *at = w->memory;
  for (int k = 0; k < VECTORS; k++) *all[k] = w->vectors + (size_t)k * n;
  for (int k = 0; k < 5; k++) at = place(r, *all[k], r->room, at);
  if (waits(r)) place(r, w->waiting, LEVELS * r->lanes, at);
  if (!r->job->direct) w->regs = kl_ev_regs_new(ev, r->job->program, r->room);
  return r->job->direct || w->regs;
}

static void free_worker(kl_ev *ev, const run *r, worker *w) {
  uint32_t n = r->job->n;
  kl_ev_regs_free(ev, w->regs);
  kl_free(ev->cx, w->memory, w->size);
  kl_free(ev->cx, w->vectors, sizeof *w->vectors * VECTORS * n);
  kl_free(ev->cx, w->to_data, sizeof *w->to_data * n);
  kl_free(ev->cx, w->in_data, sizeof *w->in_data * (2 * n + 1));
  kl_free(ev->cx, w->in, sizeof *w->in * 2 * n);
}

static kiln_status fold_all(kl_ev *ev, run *r) {
  int64_t size = r->rows * r->lanes, blocks = r->job->kept / size + (r->job->kept % size != 0);
  uint32_t workers = kl_ev_workers(ev, blocks, 1), ready = 0;
  bool ok = true;
  r->worker = kl_alloc(ev->cx, sizeof *r->worker * workers);
  while (ok && ready < workers) ok = new_worker(ev, r, &r->worker[ready++]);
  if (ok) kl_ev_parallel(ev, blocks, 1, fold_blocks, r);
  size_t bytes = r->worker[0].size;
  while (ready) free_worker(ev, r, &r->worker[--ready]);
  kl_free(ev->cx, r->worker, sizeof *r->worker * workers);
  return ok ? (kiln_status)r->status : kl_out_of_memory(ev->cx, bytes, "a reducer");
}

kiln_status kl_tree_fold(kl_ev *ev, const kl_tree_job *job) {
  enum { BYTES = 256 };
  run r = {.job = job, .leaves = leaf_count(&job->tree)};
  if (job->kept == 0) return KILN_OK;
  r.type = kl_alloc(ev->cx, sizeof *r.type * job->n);
  for (uint32_t k = 0; k < job->n; k++) r.type[k] = job->in_f32 ? KILN_F32 : job->elements[k].shape->dtype;
  kl_dtype t = job->elements[0].shape->dtype;
  float values[BYTES];
  for (int i = 0; i < BYTES && job->in_f32 && kl_ev_size(t) == 1; i++)
    values[i] = (float)kl_float_decode(t, (uint64_t)i & kl_int_mask(t));
  r.values = values;
  choose_block(&r);
  kiln_status status = fold_all(ev, &r);
  kl_free(ev->cx, r.type, sizeof *r.type * job->n);
  return status;
}
