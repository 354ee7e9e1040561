// Arrays of values between the two forms they take: unpacked in logical order, and packed in a shape's layout.
#include "ir/index/layout/layout.h"

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

// --- by physical layouts ------------------------------------------------------------------------------------------

// n bits from one place to another; a byte's lowest bit comes first.
static void move_bits(const unsigned char *from, uint64_t from_bit, unsigned char *to, uint64_t to_bit, unsigned n) {
  for (unsigned k = 0; k < n;) {
    unsigned a = (unsigned)((from_bit + k) % 8), b = (unsigned)((to_bit + k) % 8), m = 8 - (a > b ? a : b);
    if (m > n - k) m = n - k;
    unsigned mask = (1u << m) - 1, part = from[(from_bit + k) / 8] >> a & mask;
    unsigned char *at = &to[(to_bit + k) / 8];
    *at = (unsigned char)((*at & ~(mask << b)) | part << b);
    k += m;
  }
}

// Elements whose places are no whole bytes; `held` of their bits count.
static void copy_bits(const walk *w, const kl_physical *p, int64_t position, int64_t step, const run *r) {
  unsigned held = w->bits < p->bits ? w->bits : (unsigned)p->bits;
  for (int64_t i = 0; i < r->n; i++) {
    kl_bit at = kl_physical_bit(p, position + i * step);
    unsigned char *b = (unsigned char *)w->buffer + at.byte;
    unsigned char *d = (unsigned char *)w->data + (size_t)(r->logical + i * r->stride) * w->bytes;
    if (w->pack) {
      move_bits(d, 0, b, at.bit, held);
    } else {
      if (held < 8) *d = 0;
      move_bits(b, at.bit, d, 0, held);
    }
  }
}

static void copy_bytes(const walk *w, const kl_physical *p, int64_t position, int64_t step, const run *r) {
  char *data = w->data + (size_t)r->logical * w->bytes, *buffer = w->buffer + kl_physical_bit(p, position).byte;
  if (step == 1 && r->stride == 1 && (size_t)p->bits == w->bytes * 8) {
    memcpy(w->pack ? buffer : data, w->pack ? data : buffer, (size_t)r->n * w->bytes);
    return;
  }
  for (int64_t i = 0; i < r->n; i++) {
    char *d = data + (size_t)(i * r->stride) * w->bytes, *b = buffer + i * step * (p->bits / 8);
    memcpy(w->pack ? b : d, w->pack ? d : b, w->bytes);
  }
}

typedef struct placed {
  walk w;
  const kl_shape *s;
  const kl_physical *p;
  bool whole; // places are whole bytes
} placed;

static void copy_placed(void *arg, const kl_run *r) {
  const placed *c = arg;
  run elements = {0, 0, 1, r->n};
  for (uint32_t d = 0; d < c->s->rank; d++) {
    elements.logical = elements.logical * c->s->dims[d] + r->index[d];
    elements.stride = d <= r->dim ? 1 : elements.stride * c->s->dims[d];
  }
  (c->whole ? copy_bytes : copy_bits)(&c->w, c->p, r->position, r->step, &elements);
}

static void copy_by_layout(const walk *w, const kl_shape *s) {
  kl_physical p;
  if (kl_physical_of(s, &p)) return;
  if (!s->count) return; // then there need be no buffer
  if (w->pack) memset(w->buffer, 0, (size_t)p.bytes);
  placed c = {*w, s, &p, w->bits >= 8 && p.bits % 8 == 0};
  kl_physical_runs(s, &p, copy_placed, &c);
}

// --- both ways ----------------------------------------------------------------------------------------------------

static walk walk_of(const kl_array *a, void *buffer, bool pack) {
  const kl_dtype_info *d = kl_info(a->shape->dtype);
  return (walk){a->data, buffer, d->bytes, d->bits, pack};
}

void kl_array_pack(const kl_array *a, void *buffer) {
  walk w = walk_of(a, buffer, true);
  if (!kl_layout_is_order(a->shape)) {
    copy_by_layout(&w, a->shape);
    return;
  }
  // Bits behind the last element are zero, whatever the buffer held.
  uint64_t unused = w.bits < 8 ? (uint64_t)a->shape->count % (8 / w.bits) : 0;
  if (unused) ((char *)buffer)[(uint64_t)a->shape->count / (8 / w.bits)] = 0;
  copy_array(&w, a->shape);
}

void kl_array_unpack(const kl_array *a, const void *buffer) {
  walk w = walk_of(a, (void *)buffer, false); // read only in this direction
  (kl_layout_is_order(a->shape) ? copy_array : copy_by_layout)(&w, a->shape);
}

bool kl_array_is_splat(const kl_array *a) {
  size_t bytes = kl_info(a->shape->dtype)->bytes;
  const char *p = a->data;
  for (int64_t i = 1; i < a->shape->count; i++)
    if (memcmp(p, p + (size_t)i * bytes, bytes) != 0) return false;
  return true;
}
