// Arrays of values between the two forms they take: unpacked in logical order, and packed in a shape's layout.
#include "ir/hlo.h"

// A run of elements that follow one another in the buffer and lie `stride` elements apart in logical order.
typedef struct run {
  int64_t physical, logical, stride, n;
} run;

typedef struct walk {
  char *data;    // unpacked
  char *buffer;  // in the shape's layout
  size_t bytes;  // of an element held unpacked
  unsigned bits; // of an element in the buffer; sub-byte elements fill each byte from the low bits up
  bool pack;     // data to buffer, else buffer to data
} walk;

static inline __attribute__((always_inline)) void copy_elements(const walk *w, const run *r, size_t bytes) {
  char *data = w->data + (size_t)r->logical * bytes, *buffer = w->buffer + (size_t)r->physical * bytes;
  for (int64_t i = 0; i < r->n; i++) {
    char *d = data + (size_t)(i * r->stride) * bytes, *b = buffer + (size_t)i * bytes;
    memcpy(w->pack ? b : d, w->pack ? d : b, bytes);
  }
}

static void copy_sub_byte(const walk *w, const run *r) {
  unsigned per_byte = 8 / w->bits, mask = (1u << w->bits) - 1;
  for (int64_t i = 0; i < r->n; i++) {
    uint64_t at = (uint64_t)(r->physical + i);
    unsigned shift = (unsigned)(at % per_byte) * w->bits;
    unsigned char *b = (unsigned char *)w->buffer + at / per_byte;
    unsigned char *d = (unsigned char *)w->data + r->logical + i * r->stride;
    if (w->pack)
      *b = (unsigned char)((*b & ~(mask << shift)) | (*d & mask) << shift);
    else
      *d = (unsigned char)((*b >> shift) & mask);
  }
}

static void copy_run(const walk *w, const run *r) {
  if (w->bits < 8) {
    copy_sub_byte(w, r);
  } else if (r->stride == 1) {
    char *d = w->data + (size_t)r->logical * w->bytes, *b = w->buffer + (size_t)r->physical * w->bytes;
    memcpy(w->pack ? b : d, w->pack ? d : b, (size_t)r->n * w->bytes);
  } else {
    switch (w->bytes) {
    case 1: copy_elements(w, r, 1); break;
    case 2: copy_elements(w, r, 2); break;
    case 4: copy_elements(w, r, 4); break;
    case 8: copy_elements(w, r, 8); break;
    default: copy_elements(w, r, 16); break;
    }
  }
}

// Dimensions of extent 1 move nothing. Without them, as the product of the extents fits 63 bits, at most 62 are left.
enum { MAX_MOVING = 62 };

typedef struct loop {
  int64_t extent, stride, at; // stride in logical elements
} loop;

// Fills in the moving dimensions from the layout's minor one up; returns their number.
static uint32_t loops_of(const kl_shape *s, loop loops[MAX_MOVING]) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->rank; i++) {
    int64_t dim = kl_shape_minor_to_major(s, i), stride = 1;
    if (s->dims[dim] == 1) continue;
    for (uint32_t d = (uint32_t)dim + 1; d < s->rank; d++) stride *= s->dims[d];
    loops[n++] = (loop){s->dims[dim], stride, 0};
  }
  return n;
}

// Steps loop 1 and those outside it; false after the last step.
static bool step(loop *loops, uint32_t n, int64_t *logical) {
  for (uint32_t i = 1; i < n; i++) {
    *logical += loops[i].stride;
    if (++loops[i].at < loops[i].extent) return true;
    *logical -= loops[i].stride * loops[i].extent;
    loops[i].at = 0;
  }
  return false;
}

static void copy_array(const walk *w, const kl_shape *s) {
  if (s->count == 0) return;
  if (kl_shape_default_layout(s)) {
    copy_run(w, &(run){0, 0, 1, s->count});
    return;
  }
  loop loops[MAX_MOVING];
  uint32_t n = loops_of(s, loops);
  run r = {0, 0, n ? loops[0].stride : 1, n ? loops[0].extent : 1};
  do {
    copy_run(w, &r);
    r.physical += r.n;
  } while (step(loops, n, &r.logical));
}

static walk walk_of(const kl_array *a, void *buffer, bool pack) {
  const kl_dtype_info *d = kl_info(a->shape->dtype);
  return (walk){a->data, buffer, d->bytes, d->bits, pack};
}

void kl_array_pack(const kl_array *a, void *buffer) {
  walk w = walk_of(a, buffer, true);
  // Bits behind the last element are zero, whatever the buffer held.
  uint64_t unused = w.bits < 8 ? (uint64_t)a->shape->count % (8 / w.bits) : 0;
  if (unused) ((char *)buffer)[(uint64_t)a->shape->count / (8 / w.bits)] = 0;
  copy_array(&w, a->shape);
}

void kl_array_unpack(const kl_array *a, const void *buffer) {
  walk w = walk_of(a, (void *)buffer, false); // read only in this direction
  copy_array(&w, a->shape);
}

bool kl_array_is_splat(const kl_array *a) {
  size_t bytes = kl_info(a->shape->dtype)->bytes;
  const char *p = a->data;
  for (int64_t i = 1; i < a->shape->count; i++)
    if (memcmp(p, p + (size_t)i * bytes, bytes) != 0) return false;
  return true;
}
