#include "cases.h"
#include "simt.h"
#include "tables.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t widths[] = {1, 2, 4, 8, 2, 2, 4, 8}; // of kernel_type

static void *memory(size_t n) {
  void *p = calloc(1, n ? n : 1);
  if (!p) {
    fprintf(stderr, "kernels: no memory for %zu bytes\n", n);
    abort();
  }
  return p;
}

// --- launches and arguments ---------------------------------------------------------------------------------------

void launch3(kernel_case *c, const uint32_t grid[3], const uint32_t block[3]) {
  memcpy(c->grid, grid, sizeof c->grid);
  memcpy(c->block, block, sizeof c->block);
}

void launch(kernel_case *c, uint32_t grid, uint32_t block) {
  launch3(c, (uint32_t[]){grid, 1, 1}, (uint32_t[]){block, 1, 1});
}

uint32_t blocks_for(uint32_t n, uint32_t block) {
  return n ? (n - 1) / block + 1 : 1;
}

void arg_value(kernel_case *c, const void *v, size_t size, size_t align) {
  if (c->narg == KERNEL_MAX_ARGS || size > KERNEL_MAX_VALUE) abort();
  kernel_arg *a = &c->args[c->narg++];
  a->size = (uint32_t)size;
  a->align = (uint32_t)align;
  memcpy(a->value.bytes, v, size);
}

void arg_i32(kernel_case *c, int32_t v) {
  arg_value(c, &v, sizeof v, sizeof v);
}
void arg_i64(kernel_case *c, int64_t v) {
  arg_value(c, &v, sizeof v, sizeof v);
}
void arg_f32(kernel_case *c, float v) {
  arg_value(c, &v, sizeof v, sizeof v);
}
void arg_f64(kernel_case *c, double v) {
  arg_value(c, &v, sizeof v, sizeof v);
}

void patch_buffer(kernel_case *c, size_t offset, uint32_t buffer) {
  if (c->npatch == KERNEL_MAX_BUFFERS) abort();
  c->patches[c->npatch++] = (kernel_patch){c->narg - 1, (uint32_t)offset, buffer};
}

static kernel_buffer *add_buffer(kernel_case *c, kernel_type type, size_t count, kernel_compare compare,
                                 bool undefined) {
  if (c->nbuffer == KERNEL_MAX_BUFFERS) abort();
  kernel_buffer *b = &c->buffers[c->nbuffer++];
  *b = (kernel_buffer){.type = type, .count = count, .bytes = count * widths[type], .compare = compare};
  if (!undefined) b->before = memory(b->bytes);
  return b;
}

void *buffer_input(kernel_case *c, kernel_type type, size_t count) {
  return add_buffer(c, type, count, KERNEL_UNSEEN, false)->before;
}
void *buffer_inout(kernel_case *c, kernel_type type, size_t count) {
  return add_buffer(c, type, count, KERNEL_EXACT, false)->before;
}
void buffer_output(kernel_case *c, kernel_type type, size_t count) {
  add_buffer(c, type, count, KERNEL_EXACT, true);
}
void buffer_scratch(kernel_case *c, kernel_type type, size_t count) {
  add_buffer(c, type, count, KERNEL_UNSEEN, true);
}

void *symbol_input(kernel_case *c, const char *symbol, void *host, kernel_type type, size_t count) {
  kernel_buffer *b = add_buffer(c, type, count, KERNEL_UNSEEN, false);
  b->symbol = symbol;
  b->host = host;
  return b->before;
}

void compare_as(kernel_case *c, kernel_compare compare) {
  c->buffers[c->nbuffer - 1].compare = compare;
}

static void arg_last_buffer(kernel_case *c) {
  arg_i64(c, 0);
  patch_buffer(c, 0, c->nbuffer - 1);
}

void *arg_input(kernel_case *c, kernel_type type, size_t count) {
  void *p = buffer_input(c, type, count);
  arg_last_buffer(c);
  return p;
}
void *arg_inout(kernel_case *c, kernel_type type, size_t count) {
  void *p = buffer_inout(c, type, count);
  arg_last_buffer(c);
  return p;
}
void arg_output(kernel_case *c, kernel_type type, size_t count) {
  buffer_output(c, type, count);
  arg_last_buffer(c);
}
void arg_scratch(kernel_case *c, kernel_type type, size_t count) {
  buffer_scratch(c, type, count);
  arg_last_buffer(c);
}
void arg_set(kernel_case *c, kernel_type type, size_t count) {
  arg_inout(c, type, count);
  compare_as(c, KERNEL_SET);
}

// --- contents -----------------------------------------------------------------------------------------------------

uint64_t random_bits(uint64_t *state) { // splitmix64
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static double random_unit(uint64_t *state) {
  return (double)(random_bits(state) >> 11) * 0x1p-53;
}

void fill_f32(float *p, size_t n, float low, float high) {
  uint64_t s = n;
  for (size_t i = 0; i < n; i++) p[i] = (float)(low + (high - low) * random_unit(&s));
}

void fill_f64(double *p, size_t n, double low, double high) {
  uint64_t s = n;
  for (size_t i = 0; i < n; i++) p[i] = low + (high - low) * random_unit(&s);
}

void fill_whole_f32(float *p, size_t n, uint32_t below, bool sign) {
  uint64_t s = n;
  for (size_t i = 0; i < n; i++) {
    uint64_t r = random_bits(&s);
    float v = (float)(r % below);
    p[i] = sign && r >> 63 ? -v : v;
  }
}

void fill_u32(uint32_t *p, size_t n, uint32_t below) {
  uint64_t s = n;
  for (size_t i = 0; i < n; i++) p[i] = (uint32_t)(random_bits(&s) % below);
}

void fill_bits(void *p, size_t bytes) {
  uint64_t s = bytes;
  for (size_t i = 0; i < bytes; i++) ((uint8_t *)p)[i] = (uint8_t)(random_bits(&s) >> 56);
}

// --- cases --------------------------------------------------------------------------------------------------------

static uint3 extent(const uint32_t v[3]) {
  return (uint3){v[0], v[1], v[2]};
}

// Runs the kernel's own source on the expected buffers, which it changes in place.
static bool emulate(kernel_case *c, bool reverse) {
  void *args[KERNEL_MAX_ARGS];
  for (uint32_t i = 0; i < c->narg; i++) args[i] = c->args[i].value.bytes;
  for (uint32_t i = 0; i < c->npatch; i++) {
    const kernel_patch *p = &c->patches[i];
    memcpy(c->args[p->arg].value.bytes + p->offset, &c->buffers[p->buffer].expected, sizeof(void *));
  }
  for (uint32_t i = 0; i < c->nbuffer; i++)
    if (c->buffers[i].symbol) memcpy(c->buffers[i].host, c->buffers[i].before, c->buffers[i].bytes);
  simt_launch l = {.kernel = c->row->host, .args = args, .grid = extent(c->grid), .block = extent(c->block)};
  l.cluster = extent(c->cluster);
  l.dynamic_shared = c->dynamic_shared;
  l.cooperative = c->cooperative;
  l.reverse = reverse;
  if (!simt_run(&l)) return false;
  for (uint32_t i = 0; i < c->npatch; i++)
    memset(c->args[c->patches[i].arg].value.bytes + c->patches[i].offset, 0, sizeof(void *));
  return true;
}

const kernel_row *kernel_row_at(size_t i) {
  static const struct {
    const kernel_row *rows;
    const size_t *n;
  } tables[] = {
#define TABLE(name) {name##_rows, &name##_nrow},
      KERNEL_TABLES(TABLE)};
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
    if (i < *tables[t].n) return &tables[t].rows[i];
    i -= *tables[t].n;
  }
  return NULL;
}

kernel_case *kernel_case_new(const kernel_row *row, uint32_t size, bool reverse) {
  kernel_case *c = memory(sizeof *c);
  c->row = row;
  c->size = row->sizes[size];
  c->cluster[0] = c->cluster[1] = c->cluster[2] = 1;
  row->setup(c, c->size);
  for (uint32_t i = 0; i < c->nbuffer; i++) {
    kernel_buffer *b = &c->buffers[i];
    b->expected = memory(b->bytes);
    if (b->before)
      memcpy(b->expected, b->before, b->bytes);
    else
      memset(b->expected, 0xa5, b->bytes);
    if (b->compare == KERNEL_BOUNDED) b->bound = memory(b->count * sizeof *b->bound);
  }
  if (row->expect)
    row->expect(c);
  else if (!emulate(c, reverse)) {
    fprintf(stderr, "kernels: %s of size %u does not end\n", row->name, c->size);
    kernel_case_free(c);
    return NULL;
  }
  return c;
}

void kernel_case_free(kernel_case *c) {
  if (!c) return;
  for (uint32_t i = 0; i < c->nbuffer; i++) {
    free(c->buffers[i].before);
    free(c->buffers[i].expected);
    free(c->buffers[i].bound);
  }
  free(c);
}

// --- comparison ---------------------------------------------------------------------------------------------------

static uint64_t bits_at(kernel_type type, const void *p, size_t i) {
  uint64_t v = 0;
  memcpy(&v, (const uint8_t *)p + i * widths[type], widths[type]); // x86-64 is little-endian
  return v;
}

static double number_of(kernel_type type, uint64_t bits) {
  if (type == KERNEL_F16) { // scaled by the difference of the biases; infinities and NaN aside
    uint32_t wide = (uint32_t)(bits & 0x8000) << 16 | (uint32_t)(bits & 0x7fff) << 13;
    float half;
    memcpy(&half, &wide, sizeof half);
    return half * 0x1p112;
  }
  if (type == KERNEL_BF16) bits <<= 16;
  float f;
  double d;
  memcpy(&f, &bits, sizeof f);
  memcpy(&d, &bits, sizeof d);
  return type == KERNEL_F32 || type == KERNEL_BF16 ? f : d;
}

static bool is_nan(kernel_type type, uint64_t bits) {
  static const uint64_t infinity[] = {0, 0, 0, 0, 0x7c00, 0x7f80, 0x7f800000, 0x7ff0000000000000};
  uint64_t sign = UINT64_C(1) << (8 * widths[type] - 1);
  return infinity[type] && (bits & (sign - 1)) > infinity[type];
}

static bool agree(const kernel_buffer *b, size_t i, uint64_t got, uint64_t want) {
  if (got == want || (is_nan(b->type, got) && is_nan(b->type, want))) return true;
  if (b->compare != KERNEL_BOUNDED) return false;
  return fabs(number_of(b->type, got) - number_of(b->type, want)) <= b->bound[i];
}

static int compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static uint64_t *sorted(const kernel_buffer *b, const void *p) {
  uint64_t *s = memory(b->count * sizeof *s);
  for (size_t i = 0; i < b->count; i++) s[i] = bits_at(b->type, p, i);
  qsort(s, b->count, sizeof *s, compare_u64);
  return s;
}

bool kernel_case_agrees(const kernel_case *c, uint32_t index, const void *got, char *message, size_t room) {
  const kernel_buffer *b = &c->buffers[index];
  if (b->compare == KERNEL_UNSEEN) return true;
  uint64_t *g = b->compare == KERNEL_SET ? sorted(b, got) : NULL, *w = g ? sorted(b, b->expected) : NULL;
  size_t wrong = 0;
  for (size_t i = 0; i < b->count; i++) {
    uint64_t x = g ? g[i] : bits_at(b->type, got, i), y = w ? w[i] : bits_at(b->type, b->expected, i);
    if (agree(b, i, x, y)) continue;
    if (wrong++ == 0) {
      snprintf(message, room, "%s, size %u, buffer %u%s: element %zu of %zu is %#llx (%.9g), expected %#llx (%.9g)",
               c->row->name, c->size, index, g ? ", sorted" : "", i, b->count, (unsigned long long)x,
               number_of(b->type, x), (unsigned long long)y, number_of(b->type, y));
    }
  }
  free(g);
  free(w);
  size_t used = wrong ? strlen(message) : 0;
  if (wrong > 1) snprintf(message + used, room - used, " and %zu more", wrong - 1);
  return wrong == 0;
}
