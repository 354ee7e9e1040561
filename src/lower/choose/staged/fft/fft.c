// fft: one dimension after the other, the last one first, but of IRFFT last: between, the last dimension is the half
// spectrum of real numbers.
//
// A line whose length has a large prime factor is transformed by a convolution: outputs of a transform of n numbers are
// x_t c_t convolved with the conjugate of c, times c, where c_k = exp(-pi i k^2 / n). The convolution is a product of
// transforms, of as many numbers as a power of two.

#include "lower/choose/staged/fft/fft.h"

#include "ir/dtype.h"

// Of longer lines the chirp is not a constant, which takes time and room where it is compiled, but made.
enum { MOST_TABLE = 4096, IN_TEXT = 4096, MOST_CONSTANT = 1 << 14 };

// What a convolution in place of a transform of n numbers is made with, by slot: its chirp; the transform, of `size`
// numbers, of the chirp's conjugate, divided by `size`.
typedef struct convolution {
  int64_t n, size;
  uint32_t chirp, filter;
} convolution;

typedef struct fft {
  const kl_stage *s;
  kl_dtype whole;
  const kl_shape *operand, *result;
  int64_t most, fair;  // reach of one launch; of several
  VEC(uint32_t) array; // scratch memory
  VEC(kl_table) table;
  VEC(convolution) convolution;
} fft;

// --- memory ---------------------------------------------------------------------------------------------------------

// An array of so many numbers that is neither of these.
static uint32_t array_of(fft *f, int64_t count, uint32_t from, uint32_t to) {
  kl_choosing *c = f->s->c;
  for (size_t i = 0; i < f->array.n; i++)
    if (f->array.p[i] != from && f->array.p[i] != to && c->slots.v.p[f->array.p[i]].shape->count == count)
      return f->array.p[i];
  uint32_t slot = kl_add_scratch(c->cx, c->plan, &c->slots, f->whole, count);
  VEC_PUSH(c->cx, &f->array, slot);
  return slot;
}

// A constant whose data is filled in; NULL: there is no memory for it.
static void *constant_of(fft *f, kl_dtype whole, int64_t count, uint32_t *slot) {
  kl_choosing *c = f->s->c;
  int64_t bytes;
  if (__builtin_mul_overflow(count, kl_info(whole)->bits / 8, &bytes)) return NULL;
  void *data = kl_arena_try_alloc(c->plan->arena, (size_t)bytes);
  if (!data) return NULL;
  *slot = kl_add_scratch(c->cx, c->plan, &c->slots, whole, count);
  kl_slot_info *info = &c->slots.v.p[*slot];
  info->kind = KL_SLOT_CONST;
  info->data = data;
  info->given = c->plan->target.machine == KL_NVPTX && bytes > IN_TEXT;
  return data;
}

static kiln_status out_of_memory(const fft *f, int64_t count) {
  return kl_out_of_memory(f->s->c->cx, (size_t)count * kl_info(f->whole)->bits / 8, "constants of fft");
}

static kiln_status table_of(fft *f, kl_dtype whole, int64_t n, kl_table *out) {
  for (size_t i = 0; i < f->table.n; i++)
    if (f->table.p[i].n == n && f->table.p[i].whole == whole) return *out = f->table.p[i], KILN_OK;
  kl_table t = {.whole = whole, .n = n, .step = n, .low = KL_NONE, .high = KL_NONE};
  if (n > MOST_TABLE)
    for (t.step = 1; t.step * t.step < n;) t.step *= 2;
  void *low = constant_of(f, whole, t.step, &t.low);
  if (!low) return out_of_memory(f, t.step);
  kl_roots(whole, n, 1, t.step, low);
  if (t.step < n) {
    int64_t count = (n - 1) / t.step + 1;
    void *high = constant_of(f, whole, count, &t.high);
    if (!high) return out_of_memory(f, count);
    kl_roots(whole, n, t.step, count, high);
  }
  VEC_PUSH(f->s->c->cx, &f->table, t);
  *out = t;
  return KILN_OK;
}

// --- lines ----------------------------------------------------------------------------------------------------------

static kl_end array_end(const kl_job *job, uint32_t slot) {
  return (kl_end){.kind = KL_END_ARRAY, .slot = slot, .n = job->n, .inner = job->inner, .by = KL_NONE};
}

// The job in as many launches as there are groups of passes.
static kiln_status write_groups(fft *f, kl_job job) {
  kl_passes passes;
  kl_table table;
  kl_end to = job.to;
  kl_find_passes(job.n / job.before, f->most, f->fair, &passes);
  KL_TRY(table_of(f, f->whole, job.n, &table));
  job.table = &table;
  for (uint32_t g = 0; g < passes.ngroups; g++) {
    uint32_t first = passes.first[g], n = passes.first[g + 1] - first;
    uint32_t from = job.from.kind == KL_END_ARRAY ? job.from.slot : KL_NONE;
    uint32_t behind = to.kind == KL_END_ARRAY ? to.slot : KL_NONE;
    bool last = g + 1 == passes.ngroups;
    job.to = last ? to : array_end(&job, array_of(f, job.outer * job.n * job.inner, from, behind));
    KL_TRY(kl_write_passes(&job, n, passes.radix + first));
    for (uint32_t i = first; i < first + n; i++) job.before *= passes.radix[i];
    job.from = job.to;
  }
  return KILN_OK;
}

static kiln_status make_constants(fft *f, convolution *v) {
  void *data = constant_of(f, f->whole, v->n, &v->chirp);
  if (!data) return out_of_memory(f, v->n);
  kl_chirp(f->whole, v->n, data);
  data = constant_of(f, f->whole, v->size, &v->filter);
  bool made = data && kl_chirp_filter(f->s->c->cx, f->whole, v->n, v->size, data);
  return made ? KILN_OK : out_of_memory(f, v->size);
}

// In launches: nothing else goes to these arrays.
static kiln_status make_in_launches(fft *f, convolution *v) {
  kl_choosing *c = f->s->c;
  kl_table roots;
  KL_TRY(table_of(f, KILN_C128, 2 * v->n, &roots));
  v->chirp = kl_add_scratch(c->cx, c->plan, &c->slots, f->whole, v->n);
  v->filter = kl_add_scratch(c->cx, c->plan, &c->slots, f->whole, v->size);
  kl_job job = {.s = f->s, .whole = f->whole, .operand = f->operand, .result = f->result};
  job.outer = job.inner = job.before = 1;
  job.n = v->size;
  job.from = array_end(&job, array_of(f, v->size, KL_NONE, KL_NONE));
  job.to = array_end(&job, v->filter);
  job.to.divide = v->size;
  KL_TRY(kl_write_chirp(f->s, &roots, v->n, v->size, v->chirp, job.from.slot));
  return write_groups(f, job);
}

// Makes what is not there yet.
static kiln_status convolution_of(fft *f, int64_t n, convolution *out) {
  for (size_t i = 0; i < f->convolution.n; i++)
    if (f->convolution.p[i].n == n) return *out = f->convolution.p[i], KILN_OK;
  if (n > KL_MOST_CHIRP)
    return kl_unsupported(f->s->c->cx, f->s->instr->span,
                          "fft: expected at most %lld elements of a length with prime factors above 13, found %lld",
                          (long long)KL_MOST_CHIRP, (long long)n);
  *out = (convolution){.n = n, .size = 1};
  while (out->size < 2 * n - 1) out->size *= 2;
  KL_TRY(n <= MOST_CONSTANT ? make_constants(f, out) : make_in_launches(f, out));
  VEC_PUSH(f->s->c->cx, &f->convolution, *out);
  return KILN_OK;
}

static bool is_convolved(const fft *f, int64_t n) {
  kl_passes passes;
  kl_find_passes(n, f->most, f->fair, &passes);
  return passes.rest > 1;
}

static kiln_status write_line(fft *f, kl_job job) {
  if (!is_convolved(f, job.n)) return write_groups(f, job);
  kl_job line = job;
  convolution v;
  int64_t count;
  KL_TRY(convolution_of(f, line.n, &v));
  job.n = v.size;
  if (__builtin_mul_overflow(job.outer * job.inner, job.n, &count)) return out_of_memory(f, job.n);
  job.from.count = v.n;
  job.from.by = v.chirp;
  uint32_t from = line.from.kind == KL_END_ARRAY ? line.from.slot : KL_NONE;
  job.to = array_end(&job, array_of(f, count, from, KL_NONE));
  job.to.by = v.filter;
  KL_TRY(write_groups(f, job));
  job.from = array_end(&job, job.to.slot);
  job.inverse = true;
  job.to = line.to;
  job.to.count = v.n;
  job.to.by = v.chirp;
  return write_groups(f, job);
}

// --- dimensions -----------------------------------------------------------------------------------------------------

static const kl_shape *row_major(const fft *f, const kl_shape *s) {
  kl_shape *r = kl_in_order(f->s->c->plan->arena, s);
  r->layout = (kl_layout){0};
  return r;
}

static kiln_status write_dimensions(fft *f) {
  const kl_more *m = f->s->instr->more;
  bool inverse = m->fft == KL_IFFT || m->fft == KL_IRFFT;
  uint32_t n = m->sizes.n, rank = f->operand->rank, before = KL_NONE;
  int64_t points = 1;
  for (uint32_t i = 0; i < n; i++) points *= m->sizes.p[i];
  // Before any array has numbers of lines.
  for (uint32_t i = 0; i < n; i++) {
    convolution v;
    if (is_convolved(f, m->sizes.p[i])) KL_TRY(convolution_of(f, m->sizes.p[i], &v));
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t which = m->fft == KL_IRFFT ? (i + 1 < n ? i : n - 1) : n - 1 - i, dim = rank - n + which;
    // Of real numbers the other dimensions are transformed where the last one is the half spectrum.
    const kl_shape *s = m->fft == KL_RFFT ? f->result : f->operand;
    bool first = i == 0, last = i + 1 == n, real = which == n - 1;
    kl_job job = {.s = f->s, .whole = f->whole, .operand = f->operand, .result = f->result, .before = 1};
    job.n = m->sizes.p[which];
    job.outer = job.inner = 1;
    for (uint32_t d = 0; d < rank; d++) *(d < dim ? &job.outer : &job.inner) *= d == dim ? 1 : s->dims[d];
    job.from = (kl_end){.kind = first ? KL_END_OPERAND : KL_END_ARRAY, .slot = before, .dim = dim, .by = KL_NONE};
    job.from.n = job.n;
    job.from.inner = job.inner;
    job.to = job.from;
    job.from.half = real && m->fft == KL_IRFFT;
    job.from.swaps = inverse;
    job.to.half = real && m->fft == KL_RFFT;
    job.to.kind = last ? KL_END_RESULT : KL_END_ARRAY;
    job.to.swaps = inverse;
    job.to.divide = last && inverse ? points : 0;
    if (!last) job.to.slot = array_of(f, s->count, before, KL_NONE);
    KL_TRY(write_line(f, job));
    before = job.to.slot;
  }
  return KILN_OK;
}

// Lengths that are not those of the shapes mean nothing.
static kiln_status check_lengths(const kl_stage *s, const kl_shape *from, const kl_shape *to) {
  const kl_more *m = s->instr->more;
  uint32_t n = m->sizes.n;
  kl_dtype part = kl_number_part(from->dtype);
  bool real_in = m->fft == KL_RFFT, real_out = m->fft == KL_IRFFT;
  kl_dtype whole = part == KILN_F64 ? KILN_C128 : KILN_C64;
  bool types = from->dtype == (real_in ? part : whole) && to->dtype == (real_out ? part : whole);
  if (!types)
    return kl_unsupported(s->c->cx, s->instr->span, "fft: expected c64 or c128, and where numbers are real f32 or f64");
  if (n < 1 || n > 3 || n > from->rank)
    return kl_unsupported(s->c->cx, s->instr->span, "fft: expected 1 to 3 lengths, found %u", n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = from->rank - n + i;
    int64_t length = m->sizes.p[i], half = i + 1 == n ? length / 2 + 1 : length;
    if (length < 1 || from->dims[d] != (real_out ? half : length) || to->dims[d] != (real_in ? half : length))
      return kl_unsupported(s->c->cx, s->instr->span,
                            "fft: a length of %lld in dimension %u does not fit %lld elements that become %lld",
                            (long long)length, d, (long long)from->dims[d], (long long)to->dims[d]);
  }
  return KILN_OK;
}

kiln_status kl_stage_fft(const kl_stage *s, const char **why_not) {
  const kl_shape *from = kl_operand(s->c->plan->comp, s->instr, 0)->shape, *to = s->instr->shape;
  KL_TRY(check_lengths(s, from, to));
  fft f = {.s = s, .whole = from->dtype == KILN_F64 || from->dtype == KILN_C128 ? KILN_C128 : KILN_C64};
  f.operand = row_major(&f, from);
  f.result = row_major(&f, to);
  f.most = f.whole == KILN_C64 ? 4096 : 2048;
  f.fair = f.most / 4;
  kiln_status st = write_dimensions(&f);
  VEC_FREE(s->c->cx, &f.array);
  VEC_FREE(s->c->cx, &f.table);
  VEC_FREE(s->c->cx, &f.convolution);
  return st;
}
