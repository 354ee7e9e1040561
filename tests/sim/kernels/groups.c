#include "cases.h"
#include <string.h>

static void ints(kernel_case *c, uint32_t n, uint32_t block, size_t out) {
  launch(c, blocks_for(n, block), block);
  fill_u32(arg_input(c, KERNEL_U32, n), n, 1000);
  if (out) arg_output(c, KERNEL_U32, out);
}
static int at(const kernel_case *c, uint32_t i, int outside) {
  return i < c->size ? ((const int *)c->buffers[0].before)[i] : outside;
}

static void groups_tiles_setup(kernel_case *c, uint32_t n) {
  ints(c, n, 96, n * 8);
  arg_i32(c, (int)n);
}
static void groups_tiles_expect(kernel_case *c) {
  int *r = c->buffers[1].expected;
  for (uint32_t i = 0; i < c->size; i++, r += 8) {
    uint32_t lane = i % 96 % 32, warp = i - lane, half = i - lane % 16, tile = i - lane % 8;
    memset(r, 0, 8 * sizeof *r);
    int any = 0, votes = 0;
    for (uint32_t k = 0; k < 8; k++) {
      r[0] += at(c, tile + k, 0);
      any |= at(c, tile + k, 0) % 7 == 0;
      if (tile + k < i) r[3] += at(c, tile + k, 0);
    }
    for (uint32_t k = 0; k < 16; k++) {
      if (at(c, half + k, 0) > r[1]) r[1] = at(c, half + k, 0);
      votes |= (at(c, half + k, 0) & 1) << k;
    }
    for (uint32_t k = 0; k < 32; k++) {
      r[2] ^= at(c, warp + k, 0);
      if (warp + k <= i) r[4] += at(c, warp + k, 0);
    }
    r[5] = at(c, tile + (lane + 1) % 8, 0) * 3 + at(c, half + (lane % 16 ^ 5), 0);
    r[6] = any ? votes : -votes;
    r[7] = at(c, lane % 8 < 6 ? i + 2 : i, 0) + (int)(lane % 16 / 8) * 1000 + 2;
  }
}

static void groups_coalesced_setup(kernel_case *c, uint32_t n) {
  ints(c, n, 64, 0);
  arg_set(c, KERNEL_U32, n);
  arg_inout(c, KERNEL_U32, 1);
  arg_i32(c, (int)n);
}
static void groups_coalesced_expect(kernel_case *c) {
  uint32_t *out = c->buffers[1].expected, *used = c->buffers[2].expected;
  for (uint32_t i = 0; i < c->size; i++)
    if (at(c, i, 0) % 3) out[(*used)++] = (uint32_t)at(c, i, 0);
}

static void groups_labelled_setup(kernel_case *c, uint32_t n) {
  ints(c, n, 64, n * 4);
  arg_i32(c, (int)n);
}
static void groups_labelled_expect(kernel_case *c) {
  int *r = c->buffers[1].expected;
  for (uint32_t i = 0; i < c->size; i++, r += 4) {
    int v = at(c, i, 3), place = 0, size = 0;
    r[0] = r[3] = 0;
    r[2] = v;
    for (uint32_t k = i - i % 32; k < i - i % 32 + 32; k++) {
      int w = at(c, k, 3);
      if (w % 4 == v % 4) {
        r[0] += w;
        size++;
        place += k < i;
      }
      if (w % 2 == v % 2) {
        if (w < r[2]) r[2] = w;
        if (k <= i) r[3] += w;
      }
    }
    r[1] = place * 100 + size;
  }
}

static void groups_wide_setup(kernel_case *c, uint32_t n) {
  ints(c, n, 256, n);
  arg_i32(c, (int)n);
}
static void groups_wide_expect(kernel_case *c) {
  int *out = c->buffers[1].expected;
  for (uint32_t i = 0; i < c->size; i++) {
    uint32_t tile = i - i % 64;
    int sum = 0, any = 0;
    for (uint32_t k = tile; k < tile + 64; k++) {
      sum += at(c, k, 0);
      any |= at(c, k, 0) > 990;
    }
    out[i] = sum + at(c, tile + 37, 0) * 3 + (any ? 100000 : 0) + (int)(i % 256 / 64);
  }
}

static void groups_copy_setup(kernel_case *c, uint32_t n) {
  launch(c, blocks_for(n, 96), 96);
  c->dynamic_shared = 96 * 16;
  fill_f32(arg_input(c, KERNEL_F32, n * 4), n * 4, -1, 1);
  arg_output(c, KERNEL_F32, n * 4);
  arg_i32(c, (int)n);
}
static void groups_copy_expect(kernel_case *c) {
  const float *in = c->buffers[0].before;
  float *out = c->buffers[1].expected;
  for (uint32_t base = 0; base < c->size; base += 96) {
    uint32_t count = c->size - base < 96 ? c->size - base : 96;
    for (uint32_t i = 0; i < count; i++) memcpy(out + (base + i) * 4, in + (base + count - 1 - i) * 4, 16);
  }
}

enum { ROUNDS = 7 };
static void groups_grid_setup(kernel_case *c, uint32_t n) {
  launch(c, 4, 64);
  c->cooperative = true;
  fill_bits(arg_inout(c, KERNEL_U32, n), n * 4);
  arg_output(c, KERNEL_U32, n);
  arg_i32(c, ROUNDS);
  arg_i32(c, (int)n);
}
static void groups_grid_expect(kernel_case *c) {
  uint32_t n = c->size, *ends[2] = {c->buffers[0].expected, c->buffers[1].expected};
  for (int round = 0; round < ROUNDS; round++) {
    const uint32_t *from = ends[round & 1];
    for (uint32_t i = 0; i < n; i++) ends[~round & 1][i] = from[i] * 3 + from[(i + 1) % n] + from[(i + n - 1) % n];
  }
}

const kernel_row groups_rows[] = {
    ROW_EXPECT("groups", groups_tiles, 75, 5, 192, 1001),    ROW_EXPECT("groups", groups_coalesced, 75, 7, 128, 999),
    ROW_EXPECT("groups", groups_labelled, 75, 33, 128, 777), ROW_EXPECT("groups", groups_wide, 75, 64, 512, 1001),
    ROW_EXPECT("groups", groups_copy, 75, 1, 192, 501),      ROW_EXPECT("groups", groups_grid, 75, 3, 256, 1001),
};
const size_t groups_nrow = sizeof groups_rows / sizeof *groups_rows;
