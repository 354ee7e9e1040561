// A shape and an index as text, a line each: positions and indices agree both ways, and nothing breaks.
#include "mutate.h"

#include <kiln/layout.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

static void expect(bool holds, const char *what, const char *shape) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, shape);
  abort();
}

// Position 0 and some behind it, and the last ones.
static void check_positions(kiln_context *cx, const kiln_layout *l) {
  const kiln_layout_info *info = kiln_layout_describe(l);
  int64_t index[KILN_MAX_RANK], back, n = info->positions, step = n / 64 + 1;
  for (int64_t i = 0; i < 70; i++) {
    int64_t at = i < 64 ? i * step : n - 1 - (i - 64);
    bool padding;
    if (at < 0 || at >= n) continue;
    expect(kiln_layout_index(cx, l, at, index, &padding) == KILN_OK, "a position without an answer", info->shape);
    if (padding) continue;
    expect(kiln_layout_position(cx, l, index, &back) == KILN_OK && back == at, "not back", info->shape);
  }
}

static void check_texts(const kiln_layout *l) {
  int64_t extent, stride;
  const char *name, *value;
  size_t i = 0;
  while (kiln_layout_digit_at(l, i, &extent, &stride, &value)) i++;
  expect(i == kiln_layout_describe(l)->digit_count && i < 1000, "digits", kiln_layout_describe(l)->shape);
  for (i = 0; kiln_layout_name_at(l, i, &name, &value);) i++;
  expect(i == kiln_layout_describe(l)->name_count, "names", kiln_layout_describe(l)->shape);
}

static void check_buffer(const kiln_layout *l) {
  const kiln_layout_info *info = kiln_layout_describe(l);
  if (info->bytes > 1 << 16 || info->elements > 1 << 12) return;
  size_t held = (size_t)info->elements * 16;
  char *elements = calloc(held + 1, 1), *back = calloc(held + 1, 1), *buffer = malloc((size_t)info->bytes + 1);
  expect(kiln_layout_pack(l, elements, buffer) && kiln_layout_unpack(l, buffer, back), "no buffer", info->shape);
  expect(memcmp(elements, back, held) == 0, "zeros came back as others", info->shape);
  free(elements), free(back), free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *shape = calloc(size + 1, 1), *index;
  int64_t at[KILN_MAX_RANK], position;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_layout *l = NULL, *again = NULL;
  memcpy(shape, data, size);
  index = strchr(shape, '\n');
  if (index) *index++ = 0;
  kiln_status s = kiln_layout_parse(cx, shape, &l);
  expect((s == KILN_OK) == (l != NULL), "status and layout", shape);
  expect(s == KILN_OK || kiln_diagnostics_count(cx) > 0, "no finding", shape);
  if (l) {
    expect(kiln_layout_parse(cx, kiln_layout_describe(l)->shape, &again) == KILN_OK, "does not parse again", shape);
    expect(kiln_layout_reshape_moves_nothing(l, again) != KILN_NO, "moves to itself", shape);
    check_positions(cx, l);
    check_texts(l);
    check_buffer(l);
    if (index && kiln_layout_read_index(cx, l, index, at) == KILN_OK)
      expect(kiln_layout_position(cx, l, at, &position) == KILN_OK, "an index without a position", shape);
  }
  kiln_layout_destroy(&again);
  kiln_layout_destroy(&l);
  kiln_context_destroy(&cx);
  free(shape);
  return 0;
}

// Mostly text that is nearly valid; bytes of all kinds now and then.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  return seed % 4 || !LLVMFuzzerMutate ? kl_mutate(data, size, max, seed) : LLVMFuzzerMutate(data, size, max);
}
