// Ops whose data says where they read: random chains of dynamic-slice, dynamic-update-slice and gather over every
// element type, with indices of every integer type, many of them outside. The evaluator judges, on the host and on the
// simulator.
//
// KILN_DYNAMIC_SEED runs one seed alone and prints its text.
#include "harness.h"
#include "support/context.h"
#include "support/draw.h"
#include "support/dtypes.h"
#include "support/share.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_VALUES = 64, MOST_RANK = 5, MOST_PARAMETERS = 64 };

// --- modules --------------------------------------------------------------------------------------------------------

typedef struct array {
  uint32_t rank;
  int64_t dims[2 * MOST_RANK + 1];
} array;

typedef struct parameter {
  bool is_index;
  int64_t near; // an index of about so many elements
} parameter;

typedef struct chain {
  kl_sb text;
  const char *type, *index;
  kl_dtype index_type;
  unsigned values, parameters;
  parameter parameter[MOST_PARAMETERS];
} chain;

static int64_t size_of(void) {
  return chance(5) ? 0 : chance(25) ? 1 : 1 + below(9);
}

static void put_shape(kl_sb *b, const char *type, const array *a) {
  kl_sbf(b, "%s[", type);
  for (uint32_t d = 0; d < a->rank; d++) kl_sbf(b, d ? ",%lld" : "%lld", (long long)a->dims[d]);
  kl_sb_puts(b, "]");
}

// "  v7 = s32[2,3] ": number 7.
static unsigned begin_value(chain *c, const char *type, const array *a) {
  kl_sbf(&c->text, "  v%u = ", c->values);
  put_shape(&c->text, type, a);
  kl_sb_puts(&c->text, " ");
  return c->values++;
}

static unsigned put_parameter(chain *c, const char *type, const array *a, bool is_index, int64_t near) {
  unsigned v = begin_value(c, type, a);
  kl_sbf(&c->text, "parameter(%u)\n", c->parameters);
  c->parameter[c->parameters++] = (parameter){is_index, near};
  return v;
}

// Indices, now and then computed: another type's converted, a sum, positions, one number for all.
static unsigned put_indices(chain *c, const array *a, int64_t near) {
  unsigned kind = below(12), v, p;
  if (kind == 0 && a->rank) {
    v = begin_value(c, c->index, a);
    kl_sbf(&c->text, "iota(), iota_dimension=%u\n", below(a->rank));
    return v;
  }
  if (kind == 1) {
    array scalar = {0};
    p = begin_value(c, c->index, &scalar);
    kl_sbf(&c->text, "constant(%u)\n", below(kl_info(c->index_type)->bits > 2 ? 7 : 1));
    v = begin_value(c, c->index, a);
    kl_sbf(&c->text, "broadcast(v%u), dimensions={}\n", p);
    return v;
  }
  p = put_parameter(c, c->index, a, true, near);
  if (kind > 3) return p;
  v = begin_value(c, c->index, a);
  kl_sbf(&c->text, kind == 2 ? "add(v%u, v%u)\n" : "maximum(v%u, v%u)\n", p, p);
  return v;
}

static int64_t largest(const array *a) {
  int64_t n = 1;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->dims[d] > n) n = a->dims[d];
  return n;
}

// Places along all dimensions: one scalar each, or a vector.
static void put_starts(chain *c, const array *a, char *out) {
  unsigned v[MOST_RANK * 2];
  size_t n = 0;
  if (a->rank && chance(30)) {
    array vector = {1, {a->rank}};
    sprintf(out, ", v%u", put_indices(c, &vector, largest(a)));
    return;
  }
  array scalar = {0};
  for (uint32_t d = 0; d < a->rank; d++) v[d] = put_indices(c, &scalar, a->dims[d]);
  *out = 0;
  for (uint32_t d = 0; d < a->rank; d++) n += (size_t)sprintf(out + n, ", v%u", v[d]);
}

static void put_list(kl_sb *b, const char *key, const int64_t *v, uint32_t n) {
  kl_sbf(b, ", %s={", key);
  for (uint32_t i = 0; i < n; i++) kl_sbf(b, i ? ",%lld" : "%lld", (long long)v[i]);
  kl_sb_puts(b, "}");
}

static unsigned dynamic_slice(chain *c, unsigned from, array *a) {
  char starts[256];
  put_starts(c, a, starts);
  for (uint32_t d = 0; d < a->rank; d++)
    if (chance(70)) a->dims[d] = chance(2) ? 0 : a->dims[d] - below((uint32_t)a->dims[d] + (a->dims[d] == 0));
  unsigned v = begin_value(c, c->type, a);
  kl_sbf(&c->text, "dynamic-slice(v%u%s)", from, starts);
  put_list(&c->text, "dynamic_slice_sizes", a->dims, a->rank);
  kl_sb_puts(&c->text, "\n");
  return v;
}

static unsigned update_slice(chain *c, unsigned from, array *a) {
  char starts[256];
  array update = *a;
  for (uint32_t d = 0; d < a->rank; d++)
    if (chance(60)) update.dims[d] = chance(2) ? 0 : a->dims[d] - below((uint32_t)a->dims[d] + (a->dims[d] == 0));
  unsigned u = put_parameter(c, c->type, &update, false, 0);
  put_starts(c, a, starts);
  unsigned v = begin_value(c, c->type, a);
  kl_sbf(&c->text, "dynamic-update-slice(v%u, v%u%s)\n", from, u, starts);
  return v;
}

static void shuffle(int64_t *v, uint32_t n) {
  for (uint32_t i = n; i > 1; i--) {
    uint32_t k = below(i);
    int64_t t = v[i - 1];
    v[i - 1] = v[k], v[k] = t;
  }
}

// A sorted set of k of the numbers 0 .. n-1.
static void draw_set(int64_t *out, uint32_t k, uint32_t n) {
  for (uint32_t i = 0, at = 0; i < n; i++)
    if (below(n - i) < k - at) out[at++] = i;
}

// Dimensions of the array are part of the window, collapsed or batching; the vectors lie anywhere in the indices, whose
// other dimensions are in any order.
static unsigned gather(chain *c, unsigned from, array *a) {
  int64_t collapsed[MOST_RANK * 2], batch[MOST_RANK * 2], batch_of[MOST_RANK * 2], map[MOST_RANK * 2],
      sizes[MOST_RANK * 2];
  int64_t offset[MOST_RANK * 2], window[MOST_RANK * 2];
  uint32_t ncollapsed = 0, nbatch = 0, nwindow = 0, nmap = 0;
  for (uint32_t d = 0; d < a->rank; d++) {
    unsigned kind = below(10);
    sizes[d] = 1;
    if (kind < 3 && a->dims[d])
      collapsed[ncollapsed++] = d;
    else if (kind < 5 && a->dims[d])
      batch[nbatch++] = d;
    else
      window[nwindow++] = sizes[d] =
          chance(50) ? a->dims[d] : a->dims[d] - below((uint32_t)a->dims[d] + (a->dims[d] == 0));
    bool batching = nbatch && batch[nbatch - 1] == d;
    if (!batching && chance(70)) map[nmap++] = d;
  }
  shuffle(map, nmap);
  // The indices without their vectors: batching dimensions and others.
  array rest = {.rank = nbatch};
  for (uint32_t i = 0; i < nbatch; i++) rest.dims[i] = a->dims[batch[i]];
  while (rest.rank < MOST_RANK && chance(40)) rest.dims[rest.rank++] = size_of();
  int64_t order[MOST_RANK * 2];
  array places = {.rank = rest.rank};
  for (uint32_t i = 0; i < rest.rank; i++) order[i] = i;
  shuffle(order, rest.rank);
  bool implicit = nmap == 1 && chance(50);
  uint32_t vector = implicit ? rest.rank : below(rest.rank + 1);
  array indices = {.rank = rest.rank + !implicit};
  for (uint32_t i = 0, k = 0; i < indices.rank; i++) {
    if (i == vector && !implicit) {
      indices.dims[i] = nmap;
      continue;
    }
    places.dims[k] = indices.dims[i] = rest.dims[order[k]];
    if (order[k] < nbatch) batch_of[order[k]] = i;
    k++;
  }
  unsigned at = put_indices(c, &indices, largest(a));
  array out = {.rank = places.rank + nwindow};
  draw_set(offset, nwindow, out.rank);
  for (uint32_t i = 0, w = 0, k = 0; i < out.rank; i++)
    out.dims[i] = w < nwindow && offset[w] == i ? window[w++] : places.dims[k++];
  unsigned v = begin_value(c, c->type, &out);
  kl_sbf(&c->text, "gather(v%u, v%u)", from, at);
  put_list(&c->text, "offset_dims", offset, nwindow);
  put_list(&c->text, "collapsed_slice_dims", collapsed, ncollapsed);
  put_list(&c->text, "start_index_map", map, nmap);
  if (nbatch) put_list(&c->text, "operand_batching_dims", batch, nbatch);
  if (nbatch) put_list(&c->text, "start_indices_batching_dims", batch_of, nbatch);
  put_list(&c->text, "slice_sizes", sizes, a->rank);
  kl_sbf(&c->text, ", index_vector_dim=%u\n", vector);
  *a = out;
  return v;
}

static int64_t count_of(const array *a) {
  int64_t n = 1;
  for (uint32_t d = 0; d < a->rank; d++) n *= a->dims[d];
  return n;
}

// What moves elements between dynamic ops.
static unsigned between(chain *c, unsigned from, array *a) {
  unsigned v;
  if (a->rank > 1 && chance(50)) {
    int64_t order[2 * MOST_RANK];
    array out = {.rank = a->rank};
    for (uint32_t d = 0; d < a->rank; d++) order[d] = d;
    shuffle(order, a->rank);
    for (uint32_t d = 0; d < a->rank; d++) out.dims[d] = a->dims[order[d]];
    v = begin_value(c, c->type, &out);
    kl_sbf(&c->text, "transpose(v%u)", from);
    put_list(&c->text, "dimensions", order, a->rank);
    *a = out;
  } else if (a->rank && chance(50)) {
    array twice = *a;
    uint32_t d = below(a->rank);
    twice.dims[d] *= 2;
    v = begin_value(c, c->type, &twice);
    kl_sbf(&c->text, "concatenate(v%u, v%u), dimensions={%u}", from, from, d);
    *a = twice;
  } else {
    array flat = {1, {count_of(a)}};
    v = begin_value(c, c->type, &flat);
    kl_sbf(&c->text, "reshape(v%u)", from);
    *a = flat;
  }
  kl_sb_puts(&c->text, "\n");
  return v;
}

static void put_chain(chain *c, kl_dtype t, kl_dtype index) {
  *c = (chain){.type = kl_info(t)->name, .index = kl_info(index)->name, .index_type = index};
  kl_sb_init(&c->text, cx);
  kl_sb_puts(&c->text, "HloModule m\n\nENTRY fusion {\n");
  array a = {.rank = below(MOST_RANK)};
  for (uint32_t d = 0; d < a.rank; d++) a.dims[d] = size_of();
  if (a.rank && chance(50)) a.dims[a.rank - 1] *= 1 << below(5);
  unsigned v = put_parameter(c, c->type, &a, false, 0);
  for (unsigned i = 0, n = 1 + below(3); i < n; i++) {
    unsigned kind = below(3);
    v = kind == 0 ? dynamic_slice(c, v, &a) : kind == 1 ? update_slice(c, v, &a) : gather(c, v, &a);
    if (a.rank > MOST_RANK || count_of(&a) > 20000) break;
    if (chance(30)) v = between(c, v, &a);
  }
  kl_sb_puts(&c->text, "  ROOT r = ");
  put_shape(&c->text, c->type, &a);
  kl_sbf(&c->text, " copy(v%u)\n}\n", v);
}

// --- running --------------------------------------------------------------------------------------------------------

// Inside, a bit outside, or any bits.
static void fill_indices(kl_dtype t, int64_t near, int64_t n, void *p) {
  unsigned bits = kl_info(t)->bits;
  for (int64_t i = 0; i < n; i++) {
    int64_t v = (int64_t)below((uint32_t)near + 6) - 3;
    if (chance(20)) v = (int64_t)((uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX)) >> below(64);
    if (chance(5)) v = chance(50) ? INT64_MIN : INT64_MAX;
    if (chance(5)) v = -1;
    uint8_t *at = (uint8_t *)p + i * bits / 8;
    if (bits < 8)
      *at = (uint8_t)(*at & ~(kl_int_mask(t) << i * bits % 8)) |
            (uint8_t)(((uint64_t)v & kl_int_mask(t)) << i * bits % 8);
    else
      memcpy(at, &v, bits / 8);
  }
}

typedef struct buffers {
  void *in[MOST_PARAMETERS], *out[1];
} buffers;

static void *room(int64_t bytes) {
  return memset(aligned_alloc(16, ((size_t)bytes + 31) & ~(size_t)15), 0x5a, ((size_t)bytes + 31) & ~(size_t)15);
}

static void run_chain(const chain *c, kl_dtype t, const kiln_module *m, unsigned number, unsigned where) {
  buffers b = {0};
  for (unsigned i = 0; i < c->parameters; i++) {
    int64_t bytes = kiln_module_parameter_leaf_bytes(m, i);
    b.in[i] = room(bytes);
    if (c->parameter[i].is_index)
      fill_indices(c->index_type, c->parameter[i].near, bytes * 8 / kl_info(c->index_type)->bits, b.in[i]);
    else
      gen_fill(number * 31 + i, t, bytes, number % 2, b.in[i]);
  }
  int64_t bytes = kiln_module_result_leaf_bytes(m, 0);
  b.out[0] = room(bytes);
  run_on(cx, m, where, 1 + number % 2, 0, (const void *const *)b.in, b.out, c->text.p);
  for (int64_t i = bytes; i < (bytes + 31) / 16 * 16; i++)
    EXPECT(((uint8_t *)b.out[0])[i] == 0x5a, "chain %u writes behind its result\n%s", number, c->text.p);
  kiln_mismatch x;
  size_t n = 0;
  kiln_status st = kiln_module_check(cx, m, (const void *const *)b.in, (const void *const *)b.out, &x, 1, &n, NULL);
  EXPECT(st == KILN_OK, "%s\n%s", last_finding(), c->text.p);
  EXPECT(n == 0, "chain %u on %s: element %lld (%lld differ): found %s, expected %s\n%s", number, targets[where],
         (long long)x.element, (long long)x.count, x.found, x.expected, c->text.p);
  for (unsigned i = 0; i < c->parameters; i++) free(b.in[i]);
  free(b.out[0]);
}

static void run_one(unsigned number, bool print) {
  seed = number * 0x9e3779b97f4a7c15ull;
  dtype_list all = dtypes_that(kl_is_array_dtype), ints = dtypes_that(kl_is_int);
  kl_dtype t = all.at[number % (unsigned)all.n], index = ints.at[below((uint32_t)ints.n)];
  chain c;
  put_chain(&c, t, index);
  if (print) puts(c.text.p);
  kiln_module *m = parse(c.text.p);
  run_chain(&c, t, m, number, HOST);
  run_chain(&c, t, m, number, number % TARGETS);
  kiln_module_destroy(&m);
  kl_sb_free(&c.text);
}

enum { SLICES = 20, CHAINS = 400 };

START_TEST(random_chains) {
  const char *alone = getenv("KILN_DYNAMIC_SEED");
  if (alone && _i) return;
  if (alone) return run_one((unsigned)strtoul(alone, NULL, 10), true);
  for (unsigned i = (unsigned)_i; i < share_of(CHAINS); i += SLICES) run_one(i, false);
}
END_TEST

int main(void) {
  return RUN_TESTS("dynamic", EACH(make_context, drop_context), {random_chains, SLICES});
}
