// What a comparator says: recognised as the order of keys, or asked element by element in a merge sort.
//
// The merge works in lanes: in each round every element of a right run searches its place in the left run, one step of
// its binary search per run of the comparator. A place before that of an element further left in the right run counts
// as that one, so that a comparator that is no strict weak order gives some permutation, too.
#include "eval/indexed/index.h"
#include "eval/indexed/sort.h"

// --- comparators of keys ------------------------------------------------------------------------------------------

enum { MAX_VISITS = 1 << 12 }; // of instructions, while two expressions are compared

typedef struct mirror {
  const kl_comp *c;
  int64_t side; // of the left expression: 0 where it reads first elements; -1: not seen yet
  int visits;
} mirror;

static bool computes(const kl_instr *in) {
  return in->op == KL_OP_BITCAST || kl_op_is_elementwise(in->op);
}

static bool same_op(const kl_instr *a, const kl_instr *b) {
  return a->op == b->op && a->shape->dtype == b->shape->dtype && a->noperands == b->noperands &&
         a->direction == b->direction && a->compare_type == b->compare_type && a->exponent_bits == b->exponent_bits &&
         a->mantissa_bits == b->mantissa_bits;
}

static bool same_constant(const kl_instr *a, const kl_instr *b) {
  if (!a->literal || !b->literal || a->shape->dtype != b->shape->dtype || a->shape->rank || b->shape->rank)
    return false;
  return memcmp(a->literal->data, b->literal->data, kl_ev_size(a->shape->dtype)) == 0;
}

// Is expression y expression x with first and second elements exchanged?
static bool mirrors(mirror *m, uint32_t x, uint32_t y) {
  const kl_instr *a = &m->c->instr[x], *b = &m->c->instr[y];
  if (++m->visits > MAX_VISITS || a->op != b->op) return false;
  if (a->op == KL_OP_PARAMETER) {
    if (m->side < 0) m->side = a->number % 2;
    return a->number % 2 == m->side && b->number == (a->number ^ 1);
  }
  if (a->op == KL_OP_CONSTANT) return same_constant(a, b);
  if (!computes(a) || !same_op(a, b) || a->shape->rank) return false;
  for (uint32_t k = 0; k < a->noperands; k++)
    if (!mirrors(m, a->operands[k], b->operands[k])) return false;
  return true;
}

// Values of the comparator's instructions for all elements, as far as they are needed.
typedef struct keys {
  kl_ev *ev;
  const kl_comp *c;
  const kl_evval *const *operands;
  kl_shape *shape; // by instruction
  kl_evval *value;
} keys;

static kiln_status key_of(keys *k, uint32_t i) {
  const kl_instr *in = &k->c->instr[i];
  kl_shape *s = &k->shape[i];
  if (k->value[i].shape) return KILN_OK;
  *s = *k->operands[0]->shape;
  s->dtype = in->shape->dtype;
  s->layout = (kl_layout){0};
  if (in->op == KL_OP_PARAMETER) {
    k->value[i] = kl_ev_share(k->operands[in->number / 2], s);
    return KILN_OK;
  }
  if (in->op == KL_OP_CONSTANT) {
    k->value[i] = kl_ev_borrow(k->ev, s, in->literal->data);
    k->value[i].splat = s->count > 1;
    return KILN_OK;
  }
  const kl_evval *operands[3] = {NULL, NULL, NULL};
  for (uint32_t o = 0; o < in->noperands; o++) {
    KL_TRY(key_of(k, in->operands[o]));
    operands[o] = &k->value[in->operands[o]];
  }
  kl_instr wide = *in;
  wide.shape = s;
  if (in->op == KL_OP_BITCAST || in->op == KL_OP_BITCAST_CONVERT)
    return kl_ev_bitcast_convert(k->ev, &wide, operands[0], &k->value[i]);
  return kl_ev_elementwise(k->ev, &wide, operands, &k->value[i]);
}

// Do all expressions on the way have at most three operands, and bitcasts types of one width?
static bool has_form(const kl_comp *c, uint32_t i, int *visits) {
  const kl_instr *in = &c->instr[i];
  if (++*visits > MAX_VISITS) return false;
  if (in->op == KL_OP_PARAMETER || in->op == KL_OP_CONSTANT) return true;
  bool bits = in->op == KL_OP_BITCAST || in->op == KL_OP_BITCAST_CONVERT;
  if (in->noperands < 1 || in->noperands > 3) return false;
  if (bits && kl_info(kl_operand(c, in, 0)->shape->dtype)->bits != kl_info(in->shape->dtype)->bits) return false;
  for (uint32_t k = 0; k < in->noperands; k++)
    if (!has_form(c, in->operands[k], visits)) return false;
  return true;
}

static bool is_key_comparison(const kl_comp *c, mirror *m, int *visits) {
  const kl_instr *root = kl_root(c);
  if (root->op != KL_OP_COMPARE || (root->direction != KL_LT && root->direction != KL_GT)) return false;
  kl_dtype t = kl_operand(c, root, 0)->shape->dtype;
  return !kl_is_complex(t) && mirrors(m, root->operands[0], root->operands[1]) &&
         has_form(c, root->operands[0], visits);
}

kiln_status kl_sort_keys(kl_ev *ev, const kl_comp *comparator, const kl_evval *const *operands, kl_lines *l,
                         kl_shape *shape, bool *found, kl_evval *out) {
  mirror m = {comparator, -1, 0};
  int visits = 0;
  *found = is_key_comparison(comparator, &m, &visits);
  if (!*found) return KILN_OK;
  const kl_instr *root = kl_root(comparator);
  uint32_t n = comparator->ninstr, x = root->operands[0];
  l->descending = (root->direction == KL_GT) != (m.side == 1);
  l->total = root->compare_type == KL_CMP_TOTALORDER;
  keys k = {.ev = ev, .c = comparator, .operands = operands};
  k.shape = kl_alloc(ev->cx, sizeof(kl_shape) * n);
  k.value = kl_alloc(ev->cx, sizeof(kl_evval) * n);
  kiln_status status = key_of(&k, x);
  if (status == KILN_OK) {
    *shape = k.shape[x];
    *out = kl_ev_share(&k.value[x], shape);
  }
  for (uint32_t i = 0; i < n; i++) kl_ev_free(ev, &k.value[i]);
  kl_free(ev->cx, k.value, sizeof(kl_evval) * n);
  kl_free(ev->cx, k.shape, sizeof(kl_shape) * n);
  return status;
}

void kl_sort_used(kl_ev *ev, const kl_comp *c, uint32_t n, bool *used) {
  bool *live = kl_alloc(ev->cx, c->ninstr);
  live[c->root] = true;
  for (uint32_t k = 0; k < n; k++) used[k] = false;
  for (uint32_t i = c->ninstr; i-- > 0;) {
    const kl_instr *in = &c->instr[i];
    for (uint32_t k = 0; live[i] && k < in->noperands; k++) live[in->operands[k]] = true;
    if (live[i] && in->op == KL_OP_PARAMETER) used[in->number / 2] = true;
  }
  kl_free(ev->cx, live, c->ninstr);
}

// --- merging ------------------------------------------------------------------------------------------------------

typedef struct lanes {
  int64_t n;
  int64_t from[KL_EV_CHUNK];                   // the element that searches
  int64_t base[KL_EV_CHUNK];                   // of its line
  int64_t start[KL_EV_CHUNK];                  // of its left run, in perm
  int64_t low[KL_EV_CHUNK], high[KL_EV_CHUNK]; // its place is in low .. high
  int64_t a[KL_EV_CHUNK], b[KL_EV_CHUNK];      // to be compared: elements
  uint32_t lane[KL_EV_CHUNK];                  // whose comparison it is
  _Alignas(16) uint8_t result[KL_EV_CHUNK];
} lanes;

typedef struct worker {
  kl_ev_regs *regs;
  lanes *lanes;
  char *values; // 2 n buffers of a chunk
  const void **params;
} worker;

typedef struct job {
  const kl_merge *m;
  int64_t width;
  int64_t *rank; // of elements of right runs: how many of the left run come before
  int64_t *next;
  worker *workers;
  _Atomic int status;
} job;

enum { BUFFER = 16 * KL_EV_CHUNK };

// w->lanes->result[i]: does a[i] come before b[i]?
static void compare(job *j, worker *w, int64_t n) {
  const kl_merge *m = j->m;
  void *result = w->lanes->result;
  for (uint32_t k = 0; k < m->n; k++) {
    if (!m->used[k]) continue;
    size_t size = kl_ev_size(m->in[k]->shape->dtype);
    kl_ev_pick(size, n, w->lanes->a, kl_ev_plane(m->in[k], KL_EV_DATA), (char *)w->params[2 * k]);
    kl_ev_pick(size, n, w->lanes->b, kl_ev_plane(m->in[k], KL_EV_DATA), (char *)w->params[2 * k + 1]);
  }
  kiln_status status = kl_ev_program_run(m->program, w->regs, n, w->params, &result);
  if (status != KILN_OK) {
    atomic_store(&j->status, (int)status);
    memset(result, 0, (size_t)n);
  }
}

static void search(job *j, worker *w) {
  lanes *l = w->lanes;
  const kl_lines *lines = j->m->l;
  for (;;) {
    int64_t n = 0;
    for (int64_t i = 0; i < l->n; i++) {
      if (l->low[i] == l->high[i]) continue;
      int64_t at = l->start[i] + (l->low[i] + l->high[i]) / 2;
      l->a[n] = l->from[i];
      l->b[n] = l->base[i] + j->m->perm[at] * lines->stride;
      l->lane[n++] = (uint32_t)i;
    }
    if (n == 0) return;
    compare(j, w, n);
    for (int64_t k = 0; k < n; k++) {
      uint32_t i = l->lane[k];
      int64_t middle = (l->low[i] + l->high[i]) / 2;
      if (l->result[k])
        l->high[i] = middle;
      else
        l->low[i] = middle + 1;
    }
  }
}

// Positions [begin, end) of all lines one after the other.
static void rank_piece(void *arg, uint32_t id, int64_t begin, int64_t end) {
  job *j = arg;
  worker *w = &j->workers[id];
  const kl_lines *lines = j->m->l;
  lanes *l = w->lanes;
  l->n = 0;
  for (int64_t p = begin; p < end; p++) {
    int64_t line = p / lines->n, at = p % lines->n, offset = at % (2 * j->width);
    if (offset < j->width) continue;
    l->base[l->n] = kl_line_base(lines, line, lines->n);
    l->from[l->n] = l->base[l->n] + j->m->perm[p] * lines->stride;
    l->start[l->n] = p - offset;
    l->low[l->n] = 0;
    l->high[l->n++] = j->width;
  }
  search(j, w);
  int64_t i = 0;
  for (int64_t p = begin; p < end; p++)
    if (p % lines->n % (2 * j->width) >= j->width) j->rank[p] = l->low[i++];
}

// Merges pairs of runs: piece numbers count them, line by line.
static void merge_piece(void *arg, uint32_t id, int64_t begin, int64_t end) {
  job *j = arg;
  int64_t n = j->m->l->n, width = j->width, pairs = (n + 2 * width - 1) / (2 * width);
  for (int64_t pair = begin; pair < end; pair++) {
    int64_t start = pair / pairs * n + pair % pairs * 2 * width, stop = (pair / pairs + 1) * n;
    int64_t middle = stop - start < width ? stop : start + width;
    int64_t last = stop - start < 2 * width ? stop : start + 2 * width;
    int64_t left = start, to = start;
    for (int64_t right = middle; right < last; right++) {
      while (left < start + j->rank[right]) j->next[to++] = j->m->perm[left++];
      j->next[to++] = j->m->perm[right];
    }
    while (left < middle) j->next[to++] = j->m->perm[left++];
  }
}

// Are the pairs of neighbours in positions [begin, end) in the order `first, second`, or the other way round?
static void compare_neighbours(job *j, worker *w, int64_t begin, int64_t end, bool swap) {
  const kl_lines *lines = j->m->l;
  int64_t n = 0, *first = swap ? w->lanes->b : w->lanes->a, *second = swap ? w->lanes->a : w->lanes->b;
  for (int64_t p = begin; p < end; p++) {
    if (p % lines->n == 0) continue;
    int64_t base = kl_line_base(lines, p / lines->n, lines->n);
    first[n] = base + j->m->perm[p - 1] * lines->stride;
    second[n++] = base + j->m->perm[p] * lines->stride;
  }
  compare(j, w, n);
}

// Joins neighbours that are equal, unless the sort is stable, and those that come before each other, as only a
// comparator says that is no order.
static void join_piece(void *arg, uint32_t id, int64_t begin, int64_t end) {
  job *j = arg;
  const uint8_t *result = j->workers[id].lanes->result;
  int64_t at = 0, n = j->m->l->n;
  compare_neighbours(j, &j->workers[id], begin, end, false);
  for (int64_t p = begin; p < end; p++) j->m->joined[p] = p % n && !result[at++] && !j->m->l->stable;
  at = 0;
  compare_neighbours(j, &j->workers[id], begin, end, true);
  for (int64_t p = begin; p < end; p++) j->m->joined[p] |= p % n && result[at++];
}

// --- is it an order? ----------------------------------------------------------------------------------------------

// Two elements are equal where neither comes before the other, or both do. Then in the order that merging has made none
// comes strictly before one that stands before it, and of two the first comes strictly before the second exactly where
// some neighbours between them do, one before the next. That is looked at for neighbours at distances of 1, 2, 4 ...:
// what comes out of a comparator that passes for an order is judged as if it were one.

// Of positions [begin, end) those that have one `distance` before them in their line, and whether a result is of such
// an element coming before the one that it is compared with: 1, the other way round: 2.
static void compare_apart(job *j, worker *w, int64_t begin, int64_t end, int64_t distance, uint8_t *before) {
  const kl_lines *lines = j->m->l;
  memset(before, 0, (size_t)(end - begin));
  for (int swap = 0; swap < 2; swap++) {
    int64_t n = 0, *first = swap ? w->lanes->b : w->lanes->a, *second = swap ? w->lanes->a : w->lanes->b;
    for (int64_t p = begin; p < end; p++) {
      if (p % lines->n < distance) continue;
      int64_t base = kl_line_base(lines, p / lines->n, lines->n);
      first[n] = base + j->m->perm[p - distance] * lines->stride;
      second[n++] = base + j->m->perm[p] * lines->stride;
    }
    compare(j, w, n);
    n = 0;
    for (int64_t p = begin; p < end; p++)
      if (p % lines->n >= distance) before[p - begin] |= (uint8_t)((w->lanes->result[n++] != 0) << swap);
  }
}

static void mark_disorder(job *j, int64_t p) {
  __atomic_store_n(&j->m->disorder[p / j->m->l->n], 1, __ATOMIC_RELAXED);
}

// j->rank: does the element before come strictly before?
static void step_piece(void *arg, uint32_t id, int64_t begin, int64_t end) {
  job *j = arg;
  uint8_t before[KL_EV_CHUNK];
  compare_apart(j, &j->workers[id], begin, end, 1, before);
  for (int64_t p = begin; p < end; p++) {
    j->rank[p] = before[p - begin] == 1;
    if (before[p - begin] == 2) mark_disorder(j, p);
  }
}

// j->rank: how many have done so since the line began.
static void apart_piece(void *arg, uint32_t id, int64_t begin, int64_t end) {
  job *j = arg;
  uint8_t before[KL_EV_CHUNK];
  int64_t distance = j->width;
  compare_apart(j, &j->workers[id], begin, end, distance, before);
  for (int64_t p = begin; p < end; p++) {
    if (p % j->m->l->n < distance) continue;
    bool rises = j->rank[p] > j->rank[p - distance];
    if (before[p - begin] == 2 || (before[p - begin] == 1) != rises) mark_disorder(j, p);
  }
}

static void find_disorder(job *j) {
  int64_t n = j->m->l->n, total = n * j->m->l->lines;
  kl_ev_parallel(j->m->ev, total, KL_EV_CHUNK, step_piece, j);
  for (int64_t p = 0; p < total; p++) j->rank[p] += p % n ? j->rank[p - 1] : 0;
  for (j->width = 2; j->width < n && atomic_load(&j->status) == KILN_OK; j->width *= 2)
    kl_ev_parallel(j->m->ev, total, KL_EV_CHUNK, apart_piece, j);
}

// --- all of it ----------------------------------------------------------------------------------------------------

static bool prepare_worker(const kl_merge *m, worker *w) {
  kl_ctx *cx = m->ev->cx;
  w->regs = kl_ev_regs_new(m->ev, m->program, KL_EV_CHUNK);
  w->lanes = kl_try_alloc(cx, sizeof(lanes));
  w->values = kl_try_alloc(cx, (size_t)BUFFER * 2 * m->n);
  w->params = kl_alloc(cx, sizeof(void *) * 2 * m->n);
  for (uint32_t k = 0; k < 2 * m->n && w->values; k++) w->params[k] = w->values + (size_t)BUFFER * k;
  return w->regs && w->lanes && w->values;
}

static void free_worker(const kl_merge *m, worker *w) {
  kl_ctx *cx = m->ev->cx;
  if (!w->params) return;
  kl_free(cx, w->params, sizeof(void *) * 2 * m->n);
  if (w->values) kl_free(cx, w->values, (size_t)BUFFER * 2 * m->n);
  if (w->lanes) kl_free(cx, w->lanes, sizeof(lanes));
  kl_ev_regs_free(m->ev, w->regs);
}

static void merge_all(job *j) {
  const kl_merge *m = j->m;
  int64_t n = m->l->n, total = n * m->l->lines;
  for (int64_t p = 0; p < total; p++) m->perm[p] = p % n;
  for (j->width = 1; j->width < n && atomic_load(&j->status) == KILN_OK; j->width *= 2) {
    int64_t pairs = (n + 2 * j->width - 1) / (2 * j->width) * m->l->lines;
    kl_ev_parallel(m->ev, total, KL_EV_CHUNK, rank_piece, j);
    kl_ev_parallel(m->ev, pairs, j->width > 8192 ? 1 : 8192 / j->width, merge_piece, j);
    memcpy(m->perm, j->next, sizeof(int64_t) * (size_t)total);
  }
  if (!m->joined || atomic_load(&j->status) != KILN_OK) return;
  kl_ev_parallel(m->ev, total, KL_EV_CHUNK, join_piece, j);
  find_disorder(j);
}

kiln_status kl_sort_merge(const kl_merge *m) {
  kl_ctx *cx = m->ev->cx;
  int64_t total = m->l->n * m->l->lines;
  size_t bytes = sizeof(int64_t) * (size_t)total;
  uint32_t workers = kl_ev_workers(m->ev, total, KL_EV_CHUNK);
  job j = {.m = m, .status = KILN_OK};
  j.rank = kl_try_alloc(cx, bytes);
  j.next = kl_try_alloc(cx, bytes);
  j.workers = kl_alloc(cx, sizeof(worker) * workers);
  bool ok = j.rank && j.next;
  for (uint32_t k = 0; k < workers && ok; k++) ok = prepare_worker(m, &j.workers[k]);
  if (ok) merge_all(&j);
  for (uint32_t k = 0; k < workers; k++) free_worker(m, &j.workers[k]);
  kl_free(cx, j.workers, sizeof(worker) * workers);
  if (j.next) kl_free(cx, j.next, bytes);
  if (j.rank) kl_free(cx, j.rank, bytes);
  if (!ok) return kl_out_of_memory(cx, bytes, "a sort");
  return (kiln_status)atomic_load(&j.status);
}
