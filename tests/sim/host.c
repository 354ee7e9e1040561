// What kernels are expected to do (kernels/), judged by plain loops that know nothing of threads: the emulation runs
// the kernels' own sources, so what a source computes is looked at here, and that it does not depend on who comes
// first.
#include "kernels.h"
#include "narrow.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

#define IN(T, c, b)  ((const T *)(c)->buffers[b].before)
#define OUT(T, c, b) ((const T *)(c)->buffers[b].expected)

static size_t rows(void) {
  size_t n = 0;
  while (kernel_row_at(n)) n++;
  return n;
}

START_TEST(test_order) {
  const kernel_row *row = kernel_row_at((size_t)_i / KERNEL_SIZES);
  uint32_t size = (uint32_t)_i % KERNEL_SIZES;
  kernel_case *c = kernel_case_new(row, size, false), *reverse = kernel_case_new(row, size, true);
  EXPECT(c && reverse, "%s does not end", row->name);
  for (uint32_t b = 0; b < c->nbuffer; b++) {
    char message[512];
    bool agrees = kernel_case_agrees(c, b, reverse->buffers[b].expected, message, sizeof message);
    EXPECT(agrees, "in reverse order: %s", message);
  }
  kernel_case_free(c);
  kernel_case_free(reverse);
}
END_TEST

// --- plain loops --------------------------------------------------------------------------------------------------

static bool block_sums(const kernel_case *c) {
  for (uint32_t b = 0; b < c->grid[0]; b++) {
    double sum = 0, size = 0;
    for (uint32_t i = b * 256; i < (b + 1) * 256 && i < c->size; i++) {
      sum += IN(float, c, 0)[i];
      size += fabsf(IN(float, c, 0)[i]);
    }
    if (fabs(OUT(float, c, 1)[b] - sum) > 8 * 0x1p-24 * size) return false; // a tree of eight levels
  }
  return true;
}

static bool whole_sum(const kernel_case *c) {
  double sum = 0, size = 0;
  for (uint32_t i = 0; i < c->size; i++) {
    sum += IN(float, c, 0)[i];
    size += fabsf(IN(float, c, 0)[i]);
  }
  return fabs(OUT(float, c, 2)[0] - sum) <= 64 * 0x1p-24 * size;
}

static bool first_greatest(const kernel_case *c) {
  const int32_t *in = IN(int32_t, c, 0);
  uint32_t best = 0;
  for (uint32_t i = 1; i < c->size; i++)
    if (in[i] > in[best]) best = i;
  return OUT(uint64_t, c, 1)[0] == ((uint64_t)((uint32_t)in[best] ^ 0x80000000) << 32 | (UINT32_MAX - best));
}

// Sums that start anew every `run` elements; the element itself counts if `inclusive`.
static bool prefix(const kernel_case *c, uint32_t run, bool inclusive) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < c->size; i++) {
    if (i % run == 0) sum = 0;
    uint32_t before = sum;
    sum += IN(uint32_t, c, 0)[i];
    if (OUT(uint32_t, c, 1)[i] != (inclusive ? sum : before)) return false;
  }
  return true;
}
static bool block_prefix(const kernel_case *c) {
  return prefix(c, 128, true);
}
static bool tree_prefix(const kernel_case *c) {
  return prefix(c, 256, false);
}
static bool whole_prefix(const kernel_case *c) {
  return prefix(c, UINT32_MAX, true);
}

static bool byte_counts(const kernel_case *c) {
  uint32_t bins[256] = {0};
  for (uint32_t i = 0; i < c->size; i++) bins[IN(uint8_t, c, 0)[i]]++;
  return memcmp(bins, OUT(uint32_t, c, 1), sizeof bins) == 0;
}

static bool product(const kernel_case *c) {
  uint32_t n = c->size, m = n + 5, k = n + 9;
  for (uint32_t i = 0; i < m * n; i++) {
    float sum = 0;
    for (uint32_t p = 0; p < k; p++) sum = fmaf(IN(float, c, 0)[i / n * k + p], IN(float, c, 1)[p * n + i % n], sum);
    if (sum != OUT(float, c, 2)[i]) return false; // the same order, zeros at the end
  }
  return true;
}

static bool square_product(const kernel_case *c) {
  uint32_t n = c->size;
  for (uint32_t i = 0; i < n * n; i++) {
    float sum = 0;
    for (uint32_t p = 0; p < n; p++) sum = fmaf(IN(float, c, 0)[i / n * n + p], IN(float, c, 1)[p * n + i % n], sum);
    float scaled = 0.75f * sum, old = -1.5f * IN(float, c, 2)[i];
    if (scaled + old != OUT(float, c, 2)[i]) return false;
  }
  return true;
}

static int compare_u32(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}
static int compare_u16(const void *a, const void *b) {
  return *(const int16_t *)a - *(const int16_t *)b;
}

// Each run of so many elements, sorted by the C library.
static bool sorted_runs(const kernel_case *c, size_t run, size_t width, int (*compare)(const void *, const void *)) {
  uint8_t *copy = malloc(c->buffers[0].bytes);
  if (!copy) return false;
  memcpy(copy, c->buffers[0].before, c->buffers[0].bytes);
  for (size_t i = 0; i < c->size; i += run)
    qsort(copy + i * width, c->size - i < run ? c->size - i : run, width, compare);
  bool same = memcmp(copy, c->buffers[0].expected, c->buffers[0].bytes) == 0;
  free(copy);
  return same;
}
static bool bitonic(const kernel_case *c) {
  for (uint32_t i = 0; i < c->size; i++) // each value is where its key came from
    if (OUT(uint32_t, c, 1)[i] >= c->size || IN(uint32_t, c, 0)[OUT(uint32_t, c, 1)[i]] != OUT(uint32_t, c, 0)[i])
      return false;
  return sorted_runs(c, 512, 4, compare_u32);
}
static bool odd_even(const kernel_case *c) {
  return sorted_runs(c, 96, 2, compare_u16);
}

static bool radix(const kernel_case *c) {
  uint32_t n = c->size;
  for (uint32_t run = 0; run < 3; run++) {
    const uint32_t *in = IN(uint32_t, c, 0) + run * n, *out = OUT(uint32_t, c, 1) + run * n;
    for (uint32_t digit = 0; digit < 16; digit++)
      for (uint32_t i = 0; i < n; i++)
        if ((in[i] >> 8 & 15) == digit && *out++ != in[i]) return false;
  }
  return true;
}

static bool turned(const kernel_case *c) {
  uint32_t rows = c->size, cols = rows * 2 - 1;
  for (uint32_t i = 0; i < rows * cols; i++)
    if (OUT(float, c, 1)[i % cols * rows + i / cols] != IN(float, c, 0)[i]) return false;
  return true;
}

static bool turned_shorts(const kernel_case *c) {
  uint32_t rows = c->size, cols = rows + 64;
  for (uint32_t i = 0; i < rows * cols; i++)
    if (OUT(uint16_t, c, 1)[i % cols * rows + i / cols] != IN(uint16_t, c, 0)[i]) return false;
  return true;
}

static bool generation(const kernel_case *c) {
  uint32_t w = c->size, h = w / 2 + 1;
  for (uint32_t i = 0; i < w * h; i++) {
    int sum = 0;
    for (uint32_t k = 0; k < 9; k++)
      sum += IN(uint8_t, c, 0)[(i / w + h - 1 + k / 3) % h * w + (i % w + w - 1 + k % 3) % w];
    sum -= IN(uint8_t, c, 0)[i];
    if (OUT(uint8_t, c, 1)[i] != (sum == 3 || (sum == 2 && IN(uint8_t, c, 0)[i]))) return false;
  }
  return true;
}

static bool odd_ones(const kernel_case *c) {
  uint32_t used = 0;
  uint64_t sum = 0, left = 0;
  for (uint32_t i = 0; i < c->size; i++) {
    used += IN(uint32_t, c, 0)[i] & 1;
    sum += IN(uint32_t, c, 0)[i] & 1 ? IN(uint32_t, c, 0)[i] : 0;
    left += OUT(uint32_t, c, 1)[i];
  }
  return OUT(uint32_t, c, 2)[0] == used && left == sum;
}

static bool bits_turned(const kernel_case *c) {
  for (uint32_t i = 0; i < c->size * 32; i++) {
    uint32_t word = i / 32, other = word - word % 32 + i % 32;
    uint32_t from = other < c->size ? IN(uint32_t, c, 0)[other] >> word % 32 & 1 : 0;
    if ((OUT(uint32_t, c, 1)[word] >> i % 32 & 1) != from) return false;
  }
  return true;
}

static bool chain(const kernel_case *c) {
  for (uint32_t i = 0; i < c->size * 96; i++) {
    float before = i < 96 ? 0 : OUT(float, c, 1)[i / 96 * 96 - 96 + (i + 1) % 96];
    if (OUT(float, c, 1)[i] != IN(float, c, 0)[i] + before) return false;
  }
  return true;
}

static bool queens(const kernel_case *c) { // known: 2, 4 and 40 ways on boards of 4, 6 and 7
  uint32_t sum = 0;
  for (uint32_t i = 0; i < c->size * c->size; i++) sum += OUT(uint32_t, c, 0)[i];
  return sum == (c->size == 4 ? 2 : c->size == 6 ? 4 : 40);
}

static bool recursion(const kernel_case *c) { // Ackermann's function in closed form: n + 1, n + 2, 2 n + 3
  for (uint32_t i = 0; i < c->size; i++) {
    uint32_t m = i % 3, n = i % 5;
    if (OUT(uint32_t, c, 0)[3 * i] != (m == 2 ? 2 * n + 3 : n + m + 1)) return false;
  }
  return true;
}

static const struct {
  const char *kernel;
  bool (*holds)(const kernel_case *c);
} loops[] = {
    {"reduce_shared", block_sums},
    {"reduce_last_block", whole_sum},
    {"reduce_argmax", first_greatest},
    {"scan_block", block_prefix},
    {"scan_tree", tree_prefix},
    {"scan_lookback", whole_prefix},
    {"histogram_global", byte_counts},
    {"histogram_shared", byte_counts},
    {"histogram_private", byte_counts},
    {"cluster_histogram", byte_counts},
    {"matmul_tiled", product},
    {"matmul_register", square_product},
    {"sort_bitonic", bitonic},
    {"sort_odd_even", odd_even},
    {"sort_radix_pass", radix},
    {"transpose_padded", turned},
    {"transpose_swizzled", turned_shorts},
    {"stencil_life", generation},
    {"warp_compact", odd_ones},
    {"warp_bit_transpose", bits_turned},
    {"sync_block_chain", chain},
    {"calls_queens", queens},
    {"calls_recursion", recursion},
};

START_TEST(test_loops) {
  const kernel_row *row = NULL;
  for (size_t i = 0; kernel_row_at(i); i++)
    if (strcmp(kernel_row_at(i)->name, loops[_i].kernel) == 0) row = kernel_row_at(i);
  EXPECT(row != NULL, "no kernel %s", loops[_i].kernel);
  for (uint32_t size = 0; size < KERNEL_SIZES; size++) {
    kernel_case *c = kernel_case_new(row, size, false);
    EXPECT(c && loops[_i].holds(c), "%s of size %u computes something else", row->name, row->sizes[size]);
    kernel_case_free(c);
  }
}
END_TEST

// --- narrow numbers -----------------------------------------------------------------------------------------------

static const struct {
  const char *name;
  const simt_format *format;
  unsigned sign;
  double value;
  int mode;
  unsigned bits;
} numbers[] = {
    {"half", &simt_half, 0x8000, 1, FE_TONEAREST, 0x3c00},
    {"half", &simt_half, 0x8000, -2, FE_TONEAREST, 0xc000},
    {"half", &simt_half, 0x8000, 65504, FE_TONEAREST, 0x7bff},
    {"half", &simt_half, 0x8000, 65519, FE_TONEAREST, 0x7bff},
    {"half", &simt_half, 0x8000, 65520, FE_TONEAREST, 0x7c00},
    {"half", &simt_half, 0x8000, 1e9, FE_TOWARDZERO, 0x7bff},
    {"half", &simt_half, 0x8000, -1e9, FE_UPWARD, 0xfbff},
    {"half", &simt_half, 0x8000, -1e9, FE_DOWNWARD, 0xfc00},
    {"half", &simt_half, 0x8000, 0x1p-24, FE_TONEAREST, 1},
    {"half", &simt_half, 0x8000, 0x1p-25, FE_TONEAREST, 0},
    {"half", &simt_half, 0x8000, 0x1.001p-25, FE_TONEAREST, 1},
    {"half", &simt_half, 0x8000, 0x1p-40, FE_UPWARD, 1},
    {"half", &simt_half, 0x8000, -0.0, FE_TONEAREST, 0x8000},
    {"half", &simt_half, 0x8000, NAN, FE_TONEAREST, 0x7fff},
    {"half", &simt_half, 0x8000, 2049, FE_TONEAREST, 0x6800},
    {"half", &simt_half, 0x8000, 2051, FE_TONEAREST, 0x6802},
    {"bfloat16", &simt_bf16, 0x8000, 1, FE_TONEAREST, 0x3f80},
    {"bfloat16", &simt_bf16, 0x8000, 0x1.01p0, FE_TONEAREST, 0x3f80},
    {"bfloat16", &simt_bf16, 0x8000, 0x1.03p0, FE_TONEAREST, 0x3f82},
    {"bfloat16", &simt_bf16, 0x8000, 0x1p-133, FE_TONEAREST, 1},
    {"bfloat16", &simt_bf16, 0x8000, 0x1.ffp127, FE_TONEAREST, 0x7f80},
    {"e4m3", &simt_e4m3, 0x80, 1, FE_TONEAREST, 0x38},
    {"e4m3", &simt_e4m3, 0x80, 448, FE_TONEAREST, 0x7e},
    {"e4m3", &simt_e4m3, 0x80, -1e6, FE_TONEAREST, 0xfe},
    {"e4m3", &simt_e4m3, 0x80, INFINITY, FE_TONEAREST, 0x7e},
    {"e4m3", &simt_e4m3, 0x80, 0x1p-9, FE_TONEAREST, 1},
    {"e5m2", &simt_e5m2, 0x80, 1, FE_TONEAREST, 0x3c},
    {"e5m2", &simt_e5m2, 0x80, 57344, FE_TONEAREST, 0x7b},
    {"e5m2", &simt_e5m2, 0x80, 1e6, FE_TONEAREST, 0x7b},
    {"e5m2", &simt_e5m2, 0x80, 0x1p-16, FE_TONEAREST, 1},
};

START_TEST(test_numbers) {
  unsigned got = simt_pack(numbers[_i].format, numbers[_i].sign, numbers[_i].value, numbers[_i].mode);
  EXPECT(got == numbers[_i].bits, "%a as %s: %#x, expected %#x", numbers[_i].value, numbers[_i].name, got,
         numbers[_i].bits);
}
END_TEST

// Every number comes back from its value, but for NaN.
START_TEST(test_values) {
  static const simt_format *formats[] = {&simt_half, &simt_bf16, &simt_e4m3, &simt_e5m2};
  const simt_format *f = formats[_i];
  unsigned sign = _i < 2 ? 0x8000 : 0x80;
  for (unsigned bits = 0; bits < 2 * sign; bits++) {
    double v = simt_unpack(f, sign, bits);
    unsigned got = simt_pack(f, sign, v, FE_TONEAREST), same = isinf(v) && f->saturates ? bits - 1 : bits;
    EXPECT(isnan(v) || got == same, "%#x is %a, which is %#x", bits, v, got);
  }
}
END_TEST

// A sum that rounding twice would get wrong: 1 + 2^-11, a tie of halves, and a bit far below that decides it.
START_TEST(test_once) {
  __half one = {0x3c00}, tie = {0x1000}, least = {0x0001}; // 1, 2^-11, 2^-24
  double up = simt_odd_sum(simt_odd_sum(1, 0x1p-11), 0x1p-60), down = simt_odd_sum(simt_odd_sum(1, 0x1p-11), -0x1p-60);
  EXPECT(simt_h_add(one, tie).bits == 0x3c00, "a tie goes to the even number");
  EXPECT(simt_h_fma(tie, one, (__half){0x3c00}).bits == 0x3c00, "the same by a product");
  EXPECT(simt_pack(&simt_half, 0x8000, up, FE_TONEAREST) == 0x3c01, "what lies above the tie goes up");
  EXPECT(simt_pack(&simt_half, 0x8000, down, FE_TONEAREST) == 0x3c00, "what lies below it goes down");
  EXPECT(simt_h_fma(least, least, (__half){0x0001}).bits == 0x0001, "2^-48 is lost beside 2^-24");
}
END_TEST

int main(void) {
  return RUN_TESTS("host", NO_FRAME, {test_order, (int)rows() * KERNEL_SIZES},
                   {test_loops, sizeof loops / sizeof *loops}, {test_numbers, sizeof numbers / sizeof *numbers},
                   {test_values, 4}, {test_once});
}
