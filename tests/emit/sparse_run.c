#include "sparse_run.h"
#include "harness.h"
#include "ir/densify/densify.h"
#include "support/bits.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEAVES = 24, MOST_ARRAYS = 24, MOST_BUFFERS = 128 };

typedef struct leaf {
  bool sparse;
  kiln_array_type type;
  int64_t n;   // elements
  void *dense; // packed
  kiln_sparse_layout *l;
  size_t narrays;
  kiln_sparse_buffer b[MOST_ARRAYS];
  int64_t room[MOST_ARRAYS]; // elements of all batches
  bool storable, fits;
  bool kept; // has a parameter's structure
} leaf;

typedef struct run {
  kiln_context *cx;
  const char *text;
  unsigned seed;
  kiln_module *m, *stored;
  size_t nparams, nresults;
  leaf params[MOST_LEAVES], results[MOST_LEAVES];
  kiln_sparse_slot slots[2 * MOST_LEAVES];
  size_t nslots;
  void *in[MOST_BUFFERS], *out[3][MOST_BUFFERS];
} run;

static const char *finding(const run *r) {
  size_t n = kiln_diagnostics_count(r->cx);
  return n ? kiln_diagnostics_get(r->cx, n - 1)->text : "";
}

#define OK(call) EXPECT((call) == KILN_OK, "seed %u: %s\n%.3000s", r->seed, finding(r), r->text)

// --- elements ------------------------------------------------------------------------------------------------------

static size_t packed_bytes(unsigned bits, int64_t n) {
  return ((size_t)n * bits + 7) / 8;
}

static bool same_element(const void *a, int64_t i, const void *b, int64_t k, unsigned bits) {
  if (bits >= 8) return memcmp((const char *)a + i * bits / 8, (const char *)b + k * bits / 8, bits / 8) == 0;
  unsigned x = ((const uint8_t *)a)[i * bits / 8] >> (i * bits % 8),
           y = ((const uint8_t *)b)[k * bits / 8] >> (k * bits % 8);
  return ((x ^ y) & ((1u << bits) - 1)) == 0;
}

static void *unpacked(const leaf *x) {
  unsigned bits = (unsigned)kiln_dtype_bits(x->type.dtype), bytes = bits < 8 ? 1 : bits / 8;
  uint8_t *out = calloc((size_t)x->n * bytes + 1, 1);
  for (int64_t i = 0; i < x->n; i++)
    if (bits >= 8)
      memcpy(out + i * bytes, (uint8_t *)x->dense + i * bytes, bytes);
    else
      out[i] = ((uint8_t *)x->dense)[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
  return out;
}

static void *packed(const leaf *x, const uint8_t *elements) {
  unsigned bits = (unsigned)kiln_dtype_bits(x->type.dtype);
  uint8_t *out = calloc(packed_bytes(bits, x->n) + 1, 1);
  if (bits >= 8) memcpy(out, elements, packed_bytes(bits, x->n));
  for (int64_t i = 0; bits < 8 && i < x->n; i++)
    out[i * bits / 8] |= (uint8_t)((elements[i] & ((1u << bits) - 1)) << (i * bits % 8));
  return out;
}

// --- leaves --------------------------------------------------------------------------------------------------------

static void open_layout(run *r, leaf *x, const kl_shape *s) {
  kiln_encoding *e = NULL;
  OK(kiln_encoding_parse(r->cx, "test", s->layout.sparse, strlen(s->layout.sparse), NULL, &e));
  OK(kiln_sparse_layout_create(r->cx, e, s->dtype, x->type.dims, &x->l));
  kiln_encoding_destroy(&e);
  while (kiln_sparse_layout_buffer_at(x->l, x->narrays, &x->b[x->narrays])) x->narrays++;
}

static void open_leaf(run *r, leaf *x, bool result, size_t i) {
  const kl_interface *io = &r->m->interface;
  const kl_shape *s = io->shapes[(result ? io->nparams : 0) + i];
  OK((result ? kiln_module_result_leaf_type(r->m, i, &x->type) : kiln_module_parameter_leaf_type(r->m, i, &x->type))
         ? KILN_OK
         : KILN_E_INVALID);
  int64_t bytes = result ? kiln_module_result_leaf_bytes(r->m, i) : kiln_module_parameter_leaf_bytes(r->m, i);
  x->n = s->count;
  x->dense = calloc((size_t)bytes + 1, 1);
  x->sparse = s->layout.sparse != NULL;
  if (x->sparse) open_layout(r, x, s);
  if (!result) OK(kiln_module_parameter_leaf_fill(r->m, i, r->seed, x->dense) ? KILN_OK : KILN_E_INVALID);
}

// What the tensor's arrays need.
static bool measure(run *r, const leaf *x, kiln_sparse_array *arrays) {
  void *elements = unpacked(x);
  kiln_status st = kiln_sparse_pack_dense(r->cx, x->l, elements, arrays);
  free(elements);
  return st == KILN_OK;
}

static uint64_t draw(run *r, const leaf *x, size_t i) {
  uint64_t v = (r->seed * 77u + i * 13u + x->narrays) * 0x9e3779b97f4a7c15u;
  return v >> 40;
}

// Of batches each has as much room.
static void choose_room(run *r, leaf *x, bool result, size_t number, sparse_room how) {
  kiln_sparse_array need[MOST_ARRAYS] = {{0}};
  x->storable = measure(r, x, need);
  x->fits = true;
  EXPECT(x->storable || result, "seed %u: %s\n%.3000s", r->seed, finding(r), r->text);
  int64_t least = -1;
  for (size_t i = 0; i < x->narrays; i++) {
    const kiln_sparse_buffer *b = &x->b[i];
    int64_t batches = b->batches ? b->batches : 1, n = need[i].count / batches, extra = 0;
    if (how == ROOM_MORE) extra = (int64_t)(draw(r, x, i) % 5) * b->columns;
    x->room[i] = b->count >= 0 ? b->count : how == ROOM_MOST || !x->storable ? b->most : n + extra;
    if (how == ROOM_MOST && x->room[i] < 0) x->room[i] = n + 3 * b->columns;
    if (b->count < 0 && n >= b->columns) least = (int64_t)i;
    x->room[i] *= b->batches;
  }
  if (how == ROOM_LESS && result && x->storable && least >= 0) {
    x->room[least] -= x->b[least].columns * x->b[least].batches;
    x->fits = false;
  }
  r->slots[r->nslots++] = (kiln_sparse_slot){result, number, x->room};
}

static void store(run *r, leaf *x, void **to) {
  kiln_sparse_array arrays[MOST_ARRAYS] = {{0}};
  void *elements = unpacked(x);
  OK(kiln_sparse_pack_dense(r->cx, x->l, elements, arrays));
  for (size_t i = 0; i < x->narrays; i++) arrays[i].data = calloc(packed_bytes(x->b[i].bits, arrays[i].count) + 1, 1);
  OK(kiln_sparse_pack_dense(r->cx, x->l, elements, arrays));
  for (size_t i = 0; i < x->narrays; i++) {
    const kiln_sparse_buffer *b = &x->b[i];
    size_t bytes = packed_bytes(b->bits, x->room[i]);
    to[i] = aligned_alloc(16, (bytes + 31) & ~(size_t)15);
    memset(to[i], b->role == KILN_SPARSE_VALUES && x->type.dtype == KILN_PRED ? 1 : 0xa5, (bytes + 31) & ~(size_t)15);
    for (int64_t k = 0, n = b->batches ? arrays[i].count / b->batches : 0; k < arrays[i].count; k++) {
      int64_t at = k / n * (x->room[i] / b->batches) + k % n;
      if (b->bits >= 8) {
        memcpy((char *)to[i] + at * b->bits / 8, (char *)arrays[i].data + k * b->bits / 8, b->bits / 8);
        continue;
      }
      unsigned mask = (1u << b->bits) - 1, v = ((uint8_t *)arrays[i].data)[k * b->bits / 8] >> (k * b->bits % 8) & mask;
      uint8_t *byte = (uint8_t *)to[i] + at * b->bits / 8;
      *byte = (uint8_t)((*byte & ~(mask << (at * b->bits % 8))) | v << (at * b->bits % 8));
    }
    free(arrays[i].data);
  }
  free(elements);
}

// --- running -------------------------------------------------------------------------------------------------------

static void open_run(run *r, sparse_room room) {
  const void *dense_in[MOST_LEAVES];
  void *dense_out[MOST_LEAVES];
  OK(kiln_module_parse(r->cx, "sparse.hlo", r->text, strlen(r->text), &r->m));
  r->nparams = r->m->interface.nparams;
  r->nresults = r->m->interface.nresults;
  EXPECT(r->nparams <= MOST_LEAVES && r->nresults <= MOST_LEAVES, "too many leaves\n%s", r->text);
  for (size_t i = 0; i < r->nparams; i++) open_leaf(r, &r->params[i], false, i), dense_in[i] = r->params[i].dense;
  for (size_t i = 0; i < r->nresults; i++) open_leaf(r, &r->results[i], true, i), dense_out[i] = r->results[i].dense;
  OK(kiln_module_eval(r->cx, r->m, dense_in, dense_out, NULL));
  for (size_t i = 0; i < r->nparams; i++)
    if (r->params[i].sparse) choose_room(r, &r->params[i], false, i, room);
  for (size_t i = 0; i < r->nresults; i++)
    if (r->results[i].sparse) choose_room(r, &r->results[i], true, i, room);
  kiln_diagnostics_clear(r->cx);
  OK(kiln_module_densify(r->cx, r->m, r->slots, r->nslots, &r->stored));
  const kl_comp *entry = &r->stored->comp[r->stored->entry];
  for (size_t i = 0; i < r->nresults; i++)
    for (uint32_t k = 0; k < entry->ninstr; k++) {
      char name[32];
      snprintf(name, sizeof name, "keep_%zu", i);
      r->results[i].kept |= kl_str_is(kl_symbol_text(&r->stored->names, entry->instr[k].name), name);
    }
  size_t n = 0;
  for (size_t i = 0; i < r->nparams; i++) {
    leaf *x = &r->params[i];
    if (x->sparse) {
      store(r, x, &r->in[n]);
      n += x->narrays;
      continue;
    }
    size_t bytes = (size_t)kiln_module_parameter_leaf_bytes(r->m, i);
    r->in[n] = aligned_alloc(16, (bytes + 31) & ~(size_t)15);
    memcpy(r->in[n++], x->dense, bytes);
  }
  EXPECT(n == kiln_module_parameter_leaf_count(r->stored), "parameters\n%s", r->text);
  for (size_t i = 0; i < kiln_module_result_leaf_count(r->stored); i++)
    for (int k = 0; k < 3; k++) {
      size_t bytes = ((size_t)kiln_module_result_leaf_bytes(r->stored, i) + 31) & ~(size_t)15;
      r->out[k][i] = aligned_alloc(16, bytes);
      memset(r->out[k][i], 0x5a, bytes);
    }
}

static void close_leaf(leaf *x) {
  free(x->dense);
  kiln_sparse_layout_destroy(&x->l);
}

static void close_run(run *r) {
  for (size_t i = 0; i < MOST_LEAVES; i++) close_leaf(&r->params[i]), close_leaf(&r->results[i]);
  for (size_t i = 0; i < MOST_BUFFERS; i++) {
    free(r->in[i]);
    for (int k = 0; k < 3; k++) free(r->out[k][i]);
  }
  kiln_module_destroy(&r->m);
  kiln_module_destroy(&r->stored);
}

// --- checking ------------------------------------------------------------------------------------------------------

// Arrays as the packer makes them of the same tensor; zeros behind.
static void check_arrays(run *r, leaf *x, void **at, const char *where) {
  kiln_sparse_array arrays[MOST_ARRAYS] = {{0}}, again[MOST_ARRAYS] = {{0}};
  const int64_t *counts = at[x->narrays];
  for (size_t i = 0; i < x->narrays; i++) arrays[i] = (kiln_sparse_array){at[i], x->room[i]};
  kiln_status st = kiln_sparse_check_counts(r->cx, x->l, counts, arrays);
  // What has a parameter's structure has room for it, and may store implicit values.
  bool fits = x->kept || (x->storable && x->fits);
  EXPECT((st == KILN_OK) == fits, "seed %u on %s: %s: %s\n%.3000s", r->seed, where, fits ? "refused" : "not refused",
         finding(r), r->text);
  if (!fits) return;
  OK(kiln_sparse_verify(r->cx, x->l, arrays, KILN_SPARSE_CHECK_ORDER));
  unsigned bits = (unsigned)kiln_dtype_bits(x->type.dtype);
  uint8_t *elements = calloc((size_t)x->n + 1, bits < 8 ? 1 : bits / 8);
  OK(kiln_sparse_unpack(r->cx, x->l, arrays, elements));
  static const char zeros[16];
  for (size_t i = 0; x->kept && i < x->narrays; i++)
    for (int64_t k = counts[i]; x->b[i].batches == 1 && k < x->room[i]; k++)
      EXPECT(same_element(at[i], k, zeros, 0, x->b[i].bits), "seed %u on %s: array %zu, element %lld\n%.3000s", r->seed,
             where, i, (long long)k, r->text);
  if (x->kept) goto unpacked;
  OK(kiln_sparse_pack_dense(r->cx, x->l, elements, again));
  for (size_t i = 0; i < x->narrays; i++) again[i].data = calloc(packed_bytes(x->b[i].bits, again[i].count) + 1, 1);
  OK(kiln_sparse_pack_dense(r->cx, x->l, elements, again));
  for (size_t i = 0; i < x->narrays; i++) {
    int64_t batches = x->b[i].batches, n = batches ? again[i].count / batches : 0,
            all = batches ? x->room[i] / batches : 0;
    EXPECT(counts[i] == again[i].count, "seed %u on %s: array %zu has %lld elements, not %lld\n%.3000s", r->seed, where,
           i, (long long)counts[i], (long long)again[i].count, r->text);
    for (int64_t k = 0; k < batches * all; k++) {
      int64_t b = k / all, e = k % all;
      bool same = e < n ? same_element(at[i], k, again[i].data, b * n + e, x->b[i].bits)
                        : same_element(at[i], k, zeros, 0, x->b[i].bits);
      EXPECT(same, "seed %u on %s: array %zu, element %lld of batch %lld\n%.3000s", r->seed, where, i, (long long)e,
             (long long)b, r->text);
    }
    free(again[i].data);
  }
unpacked:
  free(x->dense);
  x->dense = packed(x, elements);
  free(elements);
}

static void check_results(run *r, void **out, const char *where) {
  const void *in[MOST_LEAVES], *results[MOST_LEAVES];
  size_t n = 0;
  for (size_t i = 0; i < r->nparams; i++) in[i] = r->params[i].dense;
  for (size_t i = 0; i < r->nresults; i++) {
    leaf *x = &r->results[i];
    if (x->sparse) check_arrays(r, x, out + n, where);
    // What could not be stored is what the evaluator said.
    results[i] = x->sparse ? x->dense : out[n];
    n += x->sparse ? x->narrays + 1 : 1;
  }
  kiln_mismatch x[MOST_LEAVES];
  size_t wrong = 0;
  OK(kiln_module_check(r->cx, r->m, in, results, x, MOST_LEAVES, &wrong, NULL));
  EXPECT(!wrong, "seed %u on %s: result %zu element %lld: found %s, expected %s\n%.3000s", r->seed, where, x[0].result,
         (long long)x[0].element, x[0].found, x[0].expected, r->text);
}

static void check_same(run *r, void **a, void **b, const char *where) {
  for (size_t i = 0; i < kiln_module_result_leaf_count(r->stored); i++) {
    kiln_array_type t;
    if (!kiln_module_result_leaf_type(r->stored, i, &t)) continue;
    size_t bytes = (size_t)kiln_module_result_leaf_bytes(r->stored, i);
    EXPECT(same_bits(t.dtype, a[i], b[i], bytes), "seed %u: result %zu has other bits on %s than on the host\n%.3000s",
           r->seed, i, where, r->text);
  }
}

void run_sparse(kiln_context *cx, const char *text, unsigned seed, unsigned t, sparse_room room) {
  run *r = calloc(1, sizeof *r);
  *r = (run){.cx = cx, .text = text, .seed = seed};
  open_run(r, room);
  run_on(cx, r->stored, HOST, 1 + seed % 2, 0, (const void *const *)r->in, r->out[0], text);
  check_results(r, r->out[0], "host");
  run_on(cx, r->stored, t, 1, 0, (const void *const *)r->in, r->out[1], text);
  check_same(r, r->out[0], r->out[1], targets[t]);
  OK(kiln_module_eval(cx, r->stored, (const void *const *)r->in, r->out[2], NULL));
  check_results(r, r->out[2], "eval");
  kiln_diagnostics_clear(cx);
  close_run(r);
  free(r);
}
