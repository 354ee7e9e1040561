// Leaves of ENTRY's interface: types, sizes of buffers, packing, and reproducible fill.

#include "ir/index/layout/layout.h"
#include "ir/sparse/store/sample.h"
#include <kiln/sparse.h>

static const kl_shape **take_leaves(const kl_shape *own, const kl_shape *stated, const kl_shape **out) {
  const kl_shape **end = kl_shape_leaves(own, out);
  if (!stated) return end;
  // Compatible with `own`: as many leaves, and each of one type and extents.
  for (size_t i = 0; out + i < end; i++) {
    const kl_shape *leaf = kl_shape_leaf(stated, i);
    if (leaf->layout.present) out[i] = leaf;
  }
  return end;
}

void kl_interface_make(kiln_module *m) {
  const kl_comp *c = &m->comp[m->entry];
  const kl_header *h = &m->header;
  size_t nparams = 0, nresults = kl_shape_leaf_count(kl_root(c)->shape);
  for (uint32_t i = 0; i < c->nparams; i++) nparams += kl_shape_leaf_count(c->instr[c->params[i]].shape);
  const kl_shape **shapes = KL_NEW_N(&m->arena, const kl_shape *, nparams + nresults + 1), **at = shapes;
  for (uint32_t i = 0; i < c->nparams; i++)
    at = take_leaves(c->instr[c->params[i]].shape, h->result ? h->params[i] : NULL, at);
  take_leaves(kl_root(c)->shape, h->result, at);
  const kl_shape **dense = KL_NEW_N(&m->arena, const kl_shape *, nparams + nresults + 1);
  for (size_t i = 0; i < nparams + nresults; i++) dense[i] = kl_shape_without_encoding(m, shapes[i]);
  m->interface = (kl_interface){nparams, nresults, shapes, dense};
}

size_t kiln_module_parameter_leaf_count(const kiln_module *m) {
  return m ? m->interface.nparams : 0;
}

static const kl_shape *array_or_null(const kl_shape *s) {
  return kl_shape_is_array(s) ? s : NULL;
}

static const kl_shape *param_leaf(const kiln_module *m, size_t leaf) {
  return m && leaf < m->interface.nparams ? array_or_null(m->interface.dense[leaf]) : NULL;
}

static const kl_shape *result_leaf(const kiln_module *m, size_t leaf) {
  if (!m || leaf >= m->interface.nresults) return NULL;
  return array_or_null(m->interface.dense[m->interface.nparams + leaf]);
}

size_t kiln_module_result_leaf_count(const kiln_module *m) {
  return m ? m->interface.nresults : 0;
}

static bool array_type(const kl_shape *s, kiln_array_type *out) {
  if (!s || !out) return false;
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->dims[d] == KL_DIM_UNKNOWN) return false;
  *out = (kiln_array_type){.dtype = s->dtype, .rank = s->rank};
  if (s->rank) memcpy(out->dims, s->dims, s->rank * sizeof(int64_t));
  return true;
}

bool kiln_module_parameter_leaf_type(const kiln_module *m, size_t i, kiln_array_type *out) {
  return array_type(param_leaf(m, i), out);
}

bool kiln_module_result_leaf_type(const kiln_module *m, size_t i, kiln_array_type *out) {
  return array_type(result_leaf(m, i), out);
}

static int64_t bytes_of(const kl_shape *s) {
  return s->dtype == KILN_TOKEN ? 0 : kl_shape_is_array(s) ? kl_shape_bytes(s) : -1;
}

int64_t kiln_module_parameter_leaf_bytes(const kiln_module *m, size_t i) {
  return m && i < m->interface.nparams ? bytes_of(m->interface.dense[i]) : -1;
}

int64_t kiln_module_result_leaf_bytes(const kiln_module *m, size_t i) {
  return m && i < m->interface.nresults ? bytes_of(m->interface.dense[m->interface.nparams + i]) : -1;
}

// Also: does the layout say where elements lie?
static bool are_there(const kl_shape *s, const void *elements, const void *buffer) {
  return s && kl_shape_bytes(s) >= 0 && (s->count == 0 || (elements && buffer));
}

static bool pack(const kl_shape *s, const void *elements, void *buffer) {
  if (!are_there(s, elements, buffer)) return false;
  if (s->count) kl_array_pack(&(kl_array){s, (void *)elements}, buffer);
  return true;
}

static bool unpack(const kl_shape *s, const void *buffer, void *elements) {
  if (!are_there(s, elements, buffer)) return false;
  if (!s->count) return true;
  kl_array_unpack(&(kl_array){s, elements}, buffer);
  unsigned bits = kl_info(s->dtype)->bits;
  if (bits >= 8 || !kl_is_int(s->dtype) || !kl_is_signed(s->dtype)) return true;
  int8_t *e = elements; // as numpy has it: -1, not 15
  for (int64_t k = 0; k < s->count; k++) e[k] = (int8_t)((uint8_t)e[k] << (8 - bits)) >> (8 - bits);
  return true;
}

const char *kiln_module_parameter_leaf_encoding(const kiln_module *m, size_t i) {
  return param_leaf(m, i) ? m->interface.shapes[i]->layout.sparse : NULL;
}

const char *kiln_module_result_leaf_encoding(const kiln_module *m, size_t i) {
  return result_leaf(m, i) ? m->interface.shapes[m->interface.nparams + i]->layout.sparse : NULL;
}

bool kiln_module_parameter_leaf_pack(const kiln_module *m, size_t i, const void *elements, void *buffer) {
  return pack(param_leaf(m, i), elements, buffer);
}

bool kiln_module_parameter_leaf_unpack(const kiln_module *m, size_t i, const void *buffer, void *elements) {
  return unpack(param_leaf(m, i), buffer, elements);
}

bool kiln_module_result_leaf_pack(const kiln_module *m, size_t i, const void *elements, void *buffer) {
  return pack(result_leaf(m, i), elements, buffer);
}

bool kiln_module_result_leaf_unpack(const kiln_module *m, size_t i, const void *buffer, void *elements) {
  return unpack(result_leaf(m, i), buffer, elements);
}

// --- fill -----------------------------------------------------------------------------------------------------------

// splitmix64's finaliser: a bijection whose outputs pass for independent.
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static uint64_t value(kl_dtype t, uint64_t r) {
  switch (kl_info(t)->cls) {
  case KL_CLASS_PRED: return r >> 63;
  case KL_CLASS_SINT:
  case KL_CLASS_UINT:
    if (kl_info(t)->bits < 8) return r & kl_int_mask(t);
    return (uint64_t)((int64_t)(r % (kl_is_signed(t) ? 201 : 101)) - (kl_is_signed(t) ? 100 : 0)) & kl_int_mask(t);
  default: break;
  }
  double v = (double)(int64_t)(r >> 11) * 0x1p-50 - 4.0; // 53 bits over -4..4
  if (kl_info(t)->kind == KL_E8M0) v = v < 0 ? -v : v;
  return kl_float_encode(t, v);
}

static void put(kl_dtype t, void *buffer, int64_t i, uint64_t bits) {
  unsigned n = kl_info(t)->bits;
  unsigned char *p = buffer;
  if (n >= 8) {
    memcpy(p + (size_t)i * (n / 8), &bits, n / 8);
    return;
  }
  unsigned per = 8 / n, shift = (unsigned)(i % per) * n;
  p += i / per;
  if (!shift) *p = 0;
  *p = (unsigned char)(*p | bits << shift);
}

typedef struct filling {
  const kl_shape *s;
  const kl_physical *p;
  unsigned char *buffer;
  uint64_t stream;
} filling;

// Number of the element in the layout's order of dimensions: the same whatever tiles there are.
static int64_t ordered(const kl_shape *s, const kl_run *r, int64_t *step) {
  int64_t at = 0, stride = 1;
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(s, i);
    at += r->index[d] * stride;
    if (d == r->dim) *step = stride;
    stride *= s->dims[d];
  }
  return at;
}

// Into zeros.
static void put_bits(unsigned char *buffer, kl_bit at, uint64_t bits, unsigned n) {
  for (unsigned k = 0; k < n;) {
    unsigned room = 8 - (at.bit + k) % 8;
    buffer[at.byte + (at.bit + k) / 8] |=
        (unsigned char)((bits >> k & ((1u << (n - k < room ? n - k : room)) - 1)) << (at.bit + k) % 8);
    k += room;
  }
}

static void fill_run(void *arg, const kl_run *r) {
  const filling *f = arg;
  kl_dtype t = f->s->dtype, part = kl_is_complex(t) ? kl_info(t)->part : t;
  unsigned parts = part == t ? 1 : 2, n = kl_info(part)->bits;
  if (n > (uint64_t)f->p->bits) n = (unsigned)f->p->bits; // pred in one bit
  int64_t step = 0, element = ordered(f->s, r, &step);
  for (int64_t i = 0; i < r->n; i++, element += step) {
    kl_bit at = kl_physical_bit(f->p, r->position + i * r->step);
    for (unsigned k = 0; k < parts; k++, at.byte += n / 8)
      put_bits(f->buffer, at, value(part, mix(f->stream + (uint64_t)element * parts + k)), n);
  }
}

static void fill_by_layout(const kl_shape *s, uint64_t stream, void *buffer) {
  kl_physical p;
  if (kl_physical_of(s, &p)) return;
  memset(buffer, 0, (size_t)p.bytes);
  kl_physical_runs(s, &p, fill_run, &(filling){s, &p, buffer, stream});
}

static void fill(const kl_shape *s, uint64_t stream, void *buffer) {
  kl_dtype part = kl_is_complex(s->dtype) ? kl_info(s->dtype)->part : s->dtype;
  int64_t n = s->count * (part == s->dtype ? 1 : 2);
  if (!kl_layout_is_order(s)) {
    if (s->count) fill_by_layout(s, stream, buffer);
    return;
  }
  for (int64_t e = 0; e < n; e++) put(part, buffer, e, value(part, mix(stream + (uint64_t)e)));
}

bool kiln_module_parameter_leaf_fill(const kiln_module *m, size_t i, uint64_t seed, void *buffer) {
  const kl_shape *s = param_leaf(m, i);
  if (!are_there(s, buffer, buffer)) return false;
  uint64_t stream = mix(mix(seed) ^ i);
  fill(s, stream, buffer);
  return !m->interface.shapes[i]->layout.sparse || kl_sparse_sample(m->cx, m->interface.shapes[i], stream, buffer);
}
