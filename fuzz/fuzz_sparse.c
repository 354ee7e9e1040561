// An encoding's text, and a tensor type behind a line that says ---: what is read prints, reads again as itself in both
// modes that take it, and is laid out; arrays of any bytes are checked, walked and stored anew; nothing breaks.
#include "mutate.h"

#include <kiln/sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

static void expect(bool holds, const char *what, const char *text) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, text);
  abort();
}

enum { ARRAYS = 40 };

static kiln_status count(void *user, const int64_t *coordinates, const void *value) {
  (void)coordinates, (void)value;
  ++*(int64_t *)user;
  return KILN_OK;
}

enum { MOST_BYTES = 1 << 20 };

// What a tensor's arrays hold, as arrays of the same encoding: what is said of their sizes is enough, and they are in
// order.
static void store_again(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays, size_t n,
                        const char *text) {
  kiln_sparse_array again[ARRAYS] = {{0}};
  kiln_sparse_buffer b;
  int64_t all = 0;
  bool fits = kiln_sparse_convert(cx, l, arrays, l, again) == KILN_OK;
  for (size_t i = 0; fits && i < n && kiln_sparse_layout_buffer_at(l, i, &b); i++) {
    fits = again[i].count <= MOST_BYTES && (all += again[i].count * b.bits / 8 + 1) <= MOST_BYTES;
    if (fits) again[i].data = malloc(((size_t)again[i].count * b.bits + 7) / 8 + !again[i].count);
  }
  if (fits) {
    expect(kiln_sparse_convert(cx, l, arrays, l, again) == KILN_OK, "does not fit what it said", text);
    expect(kiln_sparse_verify(cx, l, again, KILN_SPARSE_CHECK_ORDER) == KILN_OK, "stored out of order", text);
  }
  for (size_t i = 0; i < n; i++) free(again[i].data);
}

// Arrays of small numbers, or of any bytes, made from the text. What keeps bounds is walked.
static void check_arrays(kiln_context *cx, const kiln_sparse_layout *l, const char *text, size_t n) {
  kiln_sparse_array arrays[ARRAYS] = {{0}};
  kiln_sparse_buffer b;
  unsigned char *data[ARRAYS] = {0};
  size_t length = strlen(text);
  int64_t entries = 0;
  if (n > ARRAYS) return;
  for (size_t i = 0; i < n && kiln_sparse_layout_buffer_at(l, i, &b); i++) {
    unsigned bits = b.bits ? b.bits : 8;
    int64_t k = b.count >= 0 && b.count <= 64 ? b.count : text[i * 7 % (length + 1)] & 15;
    k = b.batches > 0 && b.batches <= 16 ? k * b.batches : 0;
    size_t bytes = ((size_t)k * bits + 7) / 8;
    data[i] = malloc(bytes + !bytes);
    for (size_t j = 0; j < bytes; j++)
      data[i][j] =
          bits > 8 && j % (bits / 8) ? 0 : (unsigned char)(text[(i * 31 + j) % (length + 1)] & (text[0] & 1 ? 3 : 255));
    arrays[i] = (kiln_sparse_array){data[i], k};
  }
  kiln_status bounds = kiln_sparse_verify(cx, l, arrays, KILN_SPARSE_CHECK_BOUNDS);
  kiln_status walked = kiln_sparse_walk(cx, l, arrays, count, &entries);
  expect((bounds == KILN_OK) == (walked == KILN_OK), "walked other arrays than are within bounds", text);
  if (kiln_sparse_verify(cx, l, arrays, KILN_SPARSE_CHECK_ORDER) == KILN_OK)
    expect(bounds == KILN_OK, "in order, but not within bounds", text);
  if (bounds == KILN_OK) store_again(cx, l, arrays, n, text);
  for (size_t i = 0; i < n; i++) free(data[i]);
}

static void check_layout(kiln_context *cx, const kiln_encoding *e, const char *text) {
  kiln_sparse_layout *l = NULL;
  kiln_sparse_buffer b;
  size_t n = 0;
  if (kiln_sparse_layout_create(cx, e, KILN_DTYPE_NONE, NULL, &l) != KILN_OK) return;
  while (kiln_sparse_layout_buffer_at(l, n, &b)) {
    expect(b.count >= -1 && b.most >= -1 && b.columns >= 1, "sizes", kiln_encoding_describe(e)->text);
    n++;
  }
  expect(n == kiln_sparse_layout_buffer_count(l) && n > 0, "arrays", kiln_encoding_describe(e)->text);
  check_arrays(cx, l, text, n);
  kiln_sparse_layout_destroy(&l);
}

static void check(kiln_context *cx, const char *text, const char *type, bool strict) {
  const char *rule = NULL;
  kiln_encoding_params p = {.struct_size = sizeof p, .strict = strict, .type = type, .rule = &rule};
  kiln_encoding *e = NULL, *again = NULL;
  kiln_status s = kiln_encoding_parse(cx, "text", text, strlen(text), &p, &e);
  expect((s == KILN_OK) == (e != NULL), "status and encoding", text);
  expect((s == KILN_OK) == (*rule == 0), "status and rule", text);
  expect(s == KILN_OK || kiln_diagnostics_count(cx) > 0, "no finding", text);
  if (e) {
    const kiln_encoding_info *info = kiln_encoding_describe(e);
    bool wraps = strict && strstr(info->fields, "structured"); // sizes from 256 on are kept in 8 bits, as MLIR does
    expect(wraps || kiln_encoding_parse(cx, "again", info->text, strlen(info->text), &p, &again) == KILN_OK,
           "does not read again", info->text);
    expect(wraps || kiln_encoding_is_equal(e, again), "reads as another", info->text);
    check_layout(cx, e, text);
  }
  kiln_encoding_destroy(&again);
  kiln_encoding_destroy(&e);
  kiln_diagnostics_clear(cx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = calloc(size + 1, 1), *type;
  kiln_context *cx = kiln_context_create(NULL);
  memcpy(text, data, size);
  type = strstr(text, "\n---\n");
  if (type) {
    *type = 0;
    type += 5;
    type[strcspn(type, "\n")] = 0;
  }
  check(cx, text, type, true);
  check(cx, text, type, false);
  kiln_context_destroy(&cx);
  free(text);
  return 0;
}

// Mostly text that is nearly valid; bytes of all kinds now and then.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  return seed % 4 || !LLVMFuzzerMutate ? kl_mutate(data, size, max, seed) : LLVMFuzzerMutate(data, size, max);
}
