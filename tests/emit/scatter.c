// Scatter: random dimension numbers, element types, combiners, index types and values, many of them outside; the
// operand a parameter, or computed; indices that are promised to differ. The evaluator judges, on the host and on
// the simulator, whose checks look on; PTX goes through ptxas.
//
// KILN_SCATTER_SEED runs one seed alone and prints its text.
#include "harness.h"
#include "jit/jit.h"
#include "lower/choose/choose.h"
#include "support/bits.h"
#include "support/context.h"
#include "support/draw.h"
#include "support/dtypes.h"
#include "support/gpu_sim.h"
#include "support/share.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_RANK = 4, MOST_ARRAYS = 3, MOST_DIMS = 2 * MOST_RANK + 2 };

typedef struct array {
  uint32_t rank;
  int64_t dims[MOST_DIMS];
} array;

typedef struct scattering {
  kl_sb text;
  kl_dtype type, index;
  const char *combiner;
  unsigned arrays; // 1, or 2 and the second of s32
  bool unique, sorted;
  array array, indices, updates;
  int64_t window_dims[MOST_DIMS], gone[MOST_DIMS], map[MOST_DIMS], batch[MOST_DIMS], batch_of[MOST_DIMS];
  int64_t window_of[MOST_DIMS]; // dims of the arrays
  uint32_t nwindow, ngone, nmap, nbatch, vector;
  int64_t near; // an index of about so many elements
} scattering;

static int64_t size_of(void) {
  return chance(3) ? 0 : chance(15) ? 1 : 1 + below(chance(20) ? 40 : 8);
}

static void shuffle(int64_t *v, uint32_t n) {
  for (uint32_t i = n; i > 1; i--) {
    uint32_t k = below(i);
    int64_t t = v[i - 1];
    v[i - 1] = v[k], v[k] = t;
  }
}

static void draw_set(int64_t *out, uint32_t k, uint32_t n) {
  for (uint32_t i = 0, at = 0; i < n; i++)
    if (below(n - i) < k - at) out[at++] = i;
}

// --- shapes ---------------------------------------------------------------------------------------------------------

// Dims of the arrays are of the window, gone from it, or batching ones; the vectors lie anywhere in the indices, whose
// other dims are in any order; the window's dims anywhere in the updates.
static void draw_dims(scattering *s) {
  int64_t window[MOST_DIMS], order[MOST_DIMS];
  s->array.rank = below(MOST_RANK);
  for (uint32_t d = 0; d < s->array.rank; d++) {
    int64_t n = s->array.dims[d] = size_of();
    unsigned kind = below(10);
    if (n > s->near) s->near = n;
    if (kind < 4 && n) {
      s->gone[s->ngone++] = d;
    } else if (kind < 5 && n) {
      s->batch[s->nbatch++] = d;
      continue;
    } else {
      s->window_of[s->nwindow] = d;
      window[s->nwindow++] = chance(60) ? n : n - below((uint32_t)n + (n == 0));
    }
    if (chance(70)) s->map[s->nmap++] = d;
  }
  shuffle(s->map, s->nmap);
  array rest = {.rank = s->nbatch};
  for (uint32_t i = 0; i < s->nbatch; i++) rest.dims[i] = s->array.dims[s->batch[i]];
  while (rest.rank < MOST_RANK && chance(60)) rest.dims[rest.rank++] = size_of();
  for (uint32_t i = 0; i < rest.rank; i++) order[i] = i;
  shuffle(order, rest.rank);
  bool implicit = s->nmap == 1 && chance(40);
  s->vector = implicit ? rest.rank : below(rest.rank + 1);
  s->indices.rank = rest.rank + !implicit;
  array places = {.rank = rest.rank};
  for (uint32_t i = 0, k = 0; i < s->indices.rank; i++) {
    if (i == s->vector && !implicit) {
      s->indices.dims[i] = s->nmap;
      continue;
    }
    places.dims[k] = s->indices.dims[i] = rest.dims[order[k]];
    if (order[k] < s->nbatch) s->batch_of[order[k]] = i;
    k++;
  }
  s->updates.rank = places.rank + s->nwindow;
  draw_set(s->window_dims, s->nwindow, s->updates.rank);
  for (uint32_t i = 0, w = 0, k = 0; i < s->updates.rank; i++)
    s->updates.dims[i] = w < s->nwindow && s->window_dims[w] == i ? window[w++] : places.dims[k++];
}

// --- text -----------------------------------------------------------------------------------------------------------

static void put_shape(kl_sb *b, const char *type, const array *a) {
  kl_sbf(b, "%s[", type);
  for (uint32_t d = 0; d < a->rank; d++) kl_sbf(b, d ? ",%lld" : "%lld", (long long)a->dims[d]);
  kl_sb_puts(b, "]");
}

static void put_list(kl_sb *b, const char *key, const int64_t *v, uint32_t n) {
  kl_sbf(b, ", %s={", key);
  for (uint32_t i = 0; i < n; i++) kl_sbf(b, i ? ",%lld" : "%lld", (long long)v[i]);
  kl_sb_puts(b, "}");
}

static const char *type_of(const scattering *s, unsigned array) {
  return array ? "s32" : kl_info(s->type)->name;
}

static void put_combiner(const scattering *s, kl_sb *b) {
  const char *t = type_of(s, 0), *op = s->combiner;
  bool first = strcmp(op, "first") == 0, last = strcmp(op, "last") == 0, odd = strcmp(op, "odd") == 0;
  if (s->arrays > 1) {
    kl_sbf(b, "f {\n  a = %s[] parameter(0)\n  i = s32[] parameter(1)\n  b = %s[] parameter(2)\n", t, t);
    kl_sbf(b, "  j = s32[] parameter(3)\n  c = pred[] compare(i, j), direction=GE\n  x = %s[] select(c, a, b)\n", t);
    kl_sbf(b, "  k = s32[] maximum(i, j)\n  ROOT r = (%s[], s32[]) tuple(x, k)\n}\n\n", t);
    return;
  }
  kl_sbf(b, "f {\n  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n", t, t);
  if (odd)
    kl_sbf(b, "  c = %s[] multiply(b, b)\n  ROOT r = %s[] subtract(a, c)\n}\n\n", t, t);
  else if (first || last)
    kl_sbf(b, "  ROOT r = %s[] copy(%s)\n}\n\n", t, first ? "a" : "b");
  else
    kl_sbf(b, "  ROOT r = %s[] %s(%s)\n}\n\n", t, op, chance(30) ? "b, a" : "a, b");
}

static const char *draw_combiner(kl_dtype t) {
  static const char *const any[] = {"add", "add", "multiply", "maximum", "minimum", "last", "last", "first", "odd"};
  static const char *const bits[] = {"and", "or", "xor"};
  bool whole = kl_is_int(t) || t == KILN_PRED;
  if (t == KILN_PRED && chance(50)) return bits[below(3)];
  if (whole && chance(25)) return bits[below(3)];
  for (;;) {
    const char *c = any[below(sizeof any / sizeof *any)];
    bool orders = strcmp(c, "maximum") == 0 || strcmp(c, "minimum") == 0;
    if (orders && kl_is_complex(t)) continue;
    if (t == KILN_PRED && strcmp(c, "odd") == 0) continue;
    return c;
  }
}

// The operand: a parameter, or computed.
static void put_operand(scattering *s, unsigned i, unsigned *parameters) {
  kl_sb *b = &s->text;
  kl_sbf(b, "  %s%u = ", chance(70) ? "x" : "p", i);
  bool given = b->p[b->n - 5] == 'x';
  put_shape(b, type_of(s, i), &s->array);
  kl_sbf(b, " parameter(%u)\n", (*parameters)++);
  if (given) return;
  kl_sbf(b, "  x%u = ", i);
  put_shape(b, type_of(s, i), &s->array);
  kl_sbf(b, " maximum(p%u, p%u)\n", i, i);
}

static void put_attributes(scattering *s) {
  kl_sb *b = &s->text;
  put_list(b, "update_window_dims", s->window_dims, s->nwindow);
  put_list(b, "inserted_window_dims", s->gone, s->ngone);
  put_list(b, "scatter_dims_to_operand_dims", s->map, s->nmap);
  if (s->nbatch) put_list(b, "input_batching_dims", s->batch, s->nbatch);
  if (s->nbatch) put_list(b, "scatter_indices_batching_dims", s->batch_of, s->nbatch);
  kl_sbf(b, ", index_vector_dim=%u%s%s, to_apply=f\n", s->vector, s->sorted ? ", indices_are_sorted=true" : "",
         s->unique ? ", unique_indices=true" : "");
}

static void put_result(scattering *s) {
  kl_sb *b = &s->text;
  for (unsigned i = 0; i < s->arrays; i++) {
    kl_sb_puts(b, i ? ", " : s->arrays > 1 ? "(" : "");
    put_shape(b, type_of(s, i), &s->array);
  }
  kl_sb_puts(b, s->arrays > 1 ? ") scatter(" : " scatter(");
  for (unsigned i = 0; i < s->arrays; i++) kl_sbf(b, "x%u, ", i);
  kl_sb_puts(b, "i");
  for (unsigned i = 0; i < s->arrays; i++) kl_sbf(b, ", u%u", i);
  kl_sb_puts(b, ")");
}

static void put_text(scattering *s) {
  kl_sb *b = &s->text;
  unsigned parameters = 0;
  kl_sb_init(b, cx);
  kl_sb_puts(b, "HloModule fusion\n\n");
  put_combiner(s, b);
  kl_sb_puts(b, "ENTRY fusion {\n");
  for (unsigned i = 0; i < s->arrays; i++) put_operand(s, i, &parameters);
  kl_sb_puts(b, "  i = ");
  put_shape(b, kl_info(s->index)->name, &s->indices);
  kl_sbf(b, " parameter(%u)\n", parameters++);
  for (unsigned i = 0; i < s->arrays; i++) {
    kl_sbf(b, "  u%u = ", i);
    put_shape(b, type_of(s, i), &s->updates);
    kl_sbf(b, " parameter(%u)\n", parameters++);
  }
  kl_sb_puts(b, "  ROOT y = ");
  put_result(s);
  put_attributes(s);
  kl_sb_puts(b, "}\n");
}

static void draw(scattering *s, unsigned number) {
  dtype_list all = dtypes_that(kl_is_array_dtype), ints = dtypes_that(kl_is_int);
  *s = (scattering){.type = all.at[number % (unsigned)all.n], .arrays = chance(12) ? 2 : 1};
  s->index = chance(40) ? KILN_S32 : ints.at[below((uint32_t)ints.n)];
  s->combiner = draw_combiner(s->type);
  draw_dims(s);
  bool element = s->nmap == 1 && s->nbatch == 0;
  for (uint32_t i = 0; i < s->nwindow; i++) element = element && s->map[0] != s->window_of[i];
  s->unique = element && kl_info(s->index)->bits >= 32 && chance(50);
  s->sorted = number % 3 == 0;
  put_text(s);
}

// --- running --------------------------------------------------------------------------------------------------------

// Inside, a bit outside, or any bits.
static void fill_indices(const scattering *s, int64_t bytes, void *p) {
  unsigned bits = kl_info(s->index)->bits;
  for (int64_t i = 0; i < bytes * 8 / bits; i++) {
    int64_t v = (int64_t)below((uint32_t)s->near + 4) - 2;
    if (chance(5)) v = (int64_t)((uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX)) >> below(64);
    if (chance(2)) v = chance(50) ? INT64_MIN : INT64_MAX;
    if (s->unique)
      v = i - 1;
    else if (s->sorted && chance(50))
      v = i * s->near / (bytes * 8 / bits); // a promise that is kept, or not
    uint8_t *at = (uint8_t *)p + i * bits / 8;
    if (bits < 8)
      *at = (uint8_t)(*at & ~(kl_int_mask(s->index) << i * bits % 8)) |
            (uint8_t)(((uint64_t)v & kl_int_mask(s->index)) << i * bits % 8);
    else
      memcpy(at, &v, bits / 8);
  }
}

static size_t padded(int64_t bytes) {
  return ((size_t)bytes + 31) & ~(size_t)15;
}

static void *room(int64_t bytes) {
  return memset(aligned_alloc(16, padded(bytes)), 0x5a, padded(bytes));
}

typedef struct buffers {
  void *in[2 * MOST_ARRAYS + 1], *out[MOST_ARRAYS];
} buffers;

static void fill(const scattering *s, const kiln_module *m, unsigned number, buffers *b) {
  for (unsigned i = 0; i < 2 * s->arrays + 1; i++) {
    int64_t bytes = kiln_module_parameter_leaf_bytes(m, i);
    kiln_array_type t;
    b->in[i] = room(bytes);
    ck_assert(kiln_module_parameter_leaf_type(m, i, &t));
    if (i == s->arrays)
      fill_indices(s, bytes, b->in[i]);
    else
      gen_fill(number * 31 + i, t.dtype, bytes, number % 2, b->in[i]);
  }
  for (unsigned i = 0; i < s->arrays; i++) b->out[i] = room(kiln_module_result_leaf_bytes(m, i));
}

// *kept: the results, for who asks.
static void run_scatter(const scattering *s, const kiln_module *m, unsigned number, unsigned where, buffers *kept) {
  buffers b = {0};
  fill(s, m, number, &b);
  run_on(cx, m, where, 1 + number % 2, 0, (const void *const *)b.in, b.out, s->text.p);
  for (unsigned i = 0; i < s->arrays; i++)
    for (size_t k = (size_t)kiln_module_result_leaf_bytes(m, i); k < padded(kiln_module_result_leaf_bytes(m, i)); k++)
      EXPECT(((uint8_t *)b.out[i])[k] == 0x5a, "seed %u writes behind its result\n%s", number, s->text.p);
  kiln_mismatch x;
  size_t n = 0;
  kiln_status st = kiln_module_check(cx, m, (const void *const *)b.in, (const void *const *)b.out, &x, 1, &n, NULL);
  EXPECT(st == KILN_OK, "%s\n%s", last_finding(), s->text.p);
  EXPECT(n == 0, "seed %u on %s: result %zu element %lld (%lld differ): found %s, expected %s\n%s", number,
         targets[where], x.result, (long long)x.element, (long long)x.count, x.found, x.expected, s->text.p);
  for (unsigned i = 0; i < 2 * s->arrays + 1; i++) free(b.in[i]);
  for (unsigned i = 0; i < s->arrays && !kept; i++) free(b.out[i]);
  if (kept) memcpy(kept->out, b.out, sizeof b.out);
}

static batch batches[TARGETS];

static void open_batches(void) {
  make_context();
  batches_init(batches, cx);
}
static void close_batches(void) {
  batches_free(batches);
  drop_context();
}

// Kernels that join updates before they come to their elements, where they can be.
static struct {
  const char *chooser;
  unsigned taken;
} forms[] = {{"private scatter", 0}, {"sorted scatter", 0}, {"owned scatter", 0}, {"warp scatter", 0}};

enum { OWNED = 2 };

static bool takes(const kiln_module *m, unsigned where) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = targets[where]};
  kiln_artifact *a = NULL;
  kiln_status st = kl_compile_as(cx, m, &p, &strategy, &a);
  EXPECT(st == KILN_OK || st == KILN_E_UNSUPPORTED, "%s", last_finding());
  if (st != KILN_OK) kiln_diagnostics_clear(cx);
  kiln_artifact_destroy(&a);
  return st == KILN_OK;
}

// Updates in their order: the same bits on the host, and whatever the order of threads is.
static void run_in_order(const scattering *s, const kiln_module *m, unsigned number) {
  buffers host, gpu;
  uint64_t draws = seed; // of indices
  gpu_sim_order_shows = false;
  run_scatter(s, m, number, HOST, &host);
  seed = draws;
  run_scatter(s, m, number, number % TARGETS, &gpu);
  gpu_sim_order_shows = true;
  for (unsigned i = 0; i < s->arrays; i++) {
    kiln_array_type t;
    ck_assert(kiln_module_result_leaf_type(m, i, &t));
    EXPECT(same_bits(t.dtype, host.out[i], gpu.out[i], padded(kiln_module_result_leaf_bytes(m, i))),
           "seed %u: result %u has other bits on %s than on the host\n%s", number, i, targets[number % TARGETS],
           s->text.p);
    free(host.out[i]);
    free(gpu.out[i]);
  }
}

static void run_one(unsigned number, bool print) {
  gpu_sim_order_shows = true;
  seed = number * 0x9e3779b97f4a7c15ull;
  scattering s;
  draw(&s, number);
  if (print) puts(s.text.p);
  kiln_module *m = parse(s.text.p);
  run_scatter(&s, m, number, HOST, NULL);
  run_scatter(&s, m, number, number % TARGETS, NULL);
  for (unsigned i = 0; i < sizeof forms / sizeof *forms && share_has(number, 2); i++) {
    strategy.chooser = forms[i].chooser;
    if (takes(m, number % TARGETS)) {
      if (i == OWNED)
        run_in_order(&s, m, number);
      else
        run_scatter(&s, m, number, number % TARGETS, NULL);
      forms[i].taken++;
    }
  }
  strategy.chooser = NULL;
  if (share_has(number, 2)) batch_add(batches, number / 2 % TARGETS, cx, m, number, s.text.p);
  kiln_module_destroy(&m);
  kl_sb_free(&s.text);
}

enum { SLICES = 20, CASES = 180 };

START_TEST(random_scatters) {
  const char *alone = getenv("KILN_SCATTER_SEED");
  if (alone && _i) return;
  if (alone) return run_one((unsigned)strtoul(alone, NULL, 10), true);
  for (unsigned i = (unsigned)_i; i < share_of(CASES); i += SLICES) run_one(i, false);
  for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++)
    EXPECT(share_of(CASES) < 5 * SLICES || _i + 1 < SLICES || forms[i].taken, "no %s", forms[i].chooser);
}
END_TEST

int main(void) {
  return RUN_TESTS("scatter", EACH(open_batches, close_batches), {random_scatters, SLICES});
}
