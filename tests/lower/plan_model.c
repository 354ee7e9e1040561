#include "plan_model.h"

// --- fingerprints ---------------------------------------------------------------------------------------------------

enum { OF_PARAMETER = 1, OF_BITS, OF_IOTA, OF_PART, OF_JOIN, OF_OP, OF_FREE, OF_WIDE, OF_FMA };

// From the low bits up: the operation that operands are joined by in any order, and its type, 0 for none; the type that
// the value had before it was made wider, 0 for none; the rest is a hash.
enum { FREE_BITS = 9, NARROW_BITS = 6, LOW_BITS = FREE_BITS + NARROW_BITS };
_Static_assert(KILN_DTYPE_COUNT <= 1 << NARROW_BITS, "a type has a number of 6 bits");

static uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 29);
}
static uint64_t plain(uint64_t hash) {
  return hash << LOW_BITS;
}
static unsigned free_of(uint64_t x) {
  return x & ((1u << FREE_BITS) - 1);
}
static unsigned narrow_of(uint64_t x) {
  return x >> FREE_BITS & ((1u << NARROW_BITS) - 1);
}

uint64_t of_parameter(uint32_t slot, int64_t element) {
  return plain(mix(mix(OF_PARAMETER, slot), (uint64_t)element));
}
uint64_t of_bits(kl_dtype t, const uint64_t bits[2]) {
  return plain(mix(mix(mix(OF_BITS, (uint64_t)t), bits[0]), kl_is_complex(t) ? bits[1] : 0));
}
uint64_t of_iota(kl_dtype t, int64_t i) {
  return plain(mix(mix(OF_IOTA, (uint64_t)t), (uint64_t)i));
}
// What data says cannot be known: numbers about as large as indices are, and some outside of any array.
int64_t integer_of(kl_dtype t, uint64_t x) {
  enum { KNOWN = 64 };
  bool negative = kl_is_signed(t);
  for (int64_t v = negative ? -KNOWN : 0; v < KNOWN; v++) {
    if (x == of_bits(t, (const uint64_t[2]){(uint64_t)v & kl_int_mask(t)}) || x == of_iota(t, v))
      return kl_int_decode(t, (uint64_t)v & kl_int_mask(t));
  }
  int64_t some = (int64_t)(x >> 20) % 23;
  return kl_int_decode(t, (uint64_t)(negative ? some - 4 : some) & kl_int_mask(t));
}

uint64_t of_part(uint64_t whole, uint64_t part) {
  return plain(mix(mix(OF_PART, whole), part));
}
uint64_t of_join(uint32_t n, const uint64_t *parts) {
  uint64_t h = OF_JOIN;
  for (uint32_t i = 0; i < n; i++) h = mix(h, parts[i]);
  return plain(h);
}

// --- what may change places ------------------------------------------------------------------------------------------

static bool is_sum(kl_op op) {
  return op == KL_OP_ADD || op == KL_OP_MULTIPLY;
}

bool order_of_sums_is_free;

// The number of an operation on a type whose operands come in any order; 0: it has an order.
static unsigned free_number(kl_op op, kl_dtype t) {
  static const kl_op ops[] = {KL_OP_MAXIMUM, KL_OP_MINIMUM, KL_OP_ADD, KL_OP_MULTIPLY, KL_OP_AND, KL_OP_OR, KL_OP_XOR};
  bool exact = kl_is_int(t) || t == KILN_PRED || order_of_sums_is_free,
       extremum = op == KL_OP_MAXIMUM || op == KL_OP_MINIMUM;
  for (unsigned i = 0; i < KL_COUNT(ops); i++)
    if (ops[i] == op && (exact || (extremum && kl_is_float(t)))) return 1 + i * KILN_DTYPE_COUNT + (unsigned)t;
  return 0;
}

static uint64_t summand(unsigned number, uint64_t x) {
  return free_of(x) == number && !narrow_of(x) ? x >> LOW_BITS : mix(mix(OF_FREE, number), x);
}

// --- identities ------------------------------------------------------------------------------------------------------

static uint64_t of_scalar(kl_dtype t, uint64_t bits) {
  return of_bits(t, (const uint64_t[2]){bits, bits});
}

static bool identity_of_ints(kl_op op, kl_dtype t, uint64_t *x) {
  bool pred = t == KILN_PRED;
  uint64_t all = pred ? 1 : kl_int_mask(t), top = kl_is_signed(t) && !pred ? all / 2 + 1 : 0;
  switch (op) {
  case KL_OP_ADD:
  case KL_OP_OR:
  case KL_OP_XOR: *x = of_scalar(t, 0); return true;
  case KL_OP_MULTIPLY: *x = of_scalar(t, 1); return true;
  case KL_OP_AND: *x = of_scalar(t, all); return true;
  case KL_OP_MAXIMUM: *x = of_scalar(t, top); return true;
  case KL_OP_MINIMUM: *x = of_scalar(t, all ^ top); return true;
  default: return false;
  }
}

// Formats with infinities and a zero below zero.
static bool identity_of_floats(kl_op op, kl_dtype t, uint64_t *x) {
  double v;
  switch (op) {
  case KL_OP_ADD: v = -0.0; break;
  case KL_OP_MULTIPLY: v = 1; break;
  case KL_OP_MAXIMUM: v = -__builtin_inf(); break;
  case KL_OP_MINIMUM: v = __builtin_inf(); break;
  default: return false;
  }
  bool sums = op == KL_OP_ADD && kl_is_complex(t);
  if (!sums && t != KILN_F16 && t != KILN_BF16 && t != KILN_F32 && t != KILN_F64) return false;
  *x = of_scalar(t, kl_float_encode(sums ? kl_info(t)->part : t, v));
  return true;
}

static bool identity_of(kl_op op, kl_dtype t, uint64_t *x) {
  return kl_is_int(t) || t == KILN_PRED ? identity_of_ints(op, t, x) : identity_of_floats(op, t, x);
}

// --- conversions -----------------------------------------------------------------------------------------------------

static bool is_lossless(kl_dtype from, kl_dtype to) {
  unsigned a = kl_info(from)->bits, b = kl_info(to)->bits;
  if (a >= b) return false;
  if (kl_is_int(from) && kl_is_int(to)) return kl_is_signed(to) || !kl_is_signed(from);
  if (!kl_is_float(from) || !kl_is_float(to)) return false;
  return to == KILN_F64 || to == KILN_F32 || (from == KILN_F4E2M1FN && to == KILN_F16);
}

static uint64_t converted(kl_dtype from, kl_dtype to, uint64_t x) {
  uint64_t key = plain(mix(OF_WIDE, (uint64_t)(is_lossless(from, to) ? to : from)));
  if (is_lossless(from, to) && !narrow_of(x)) return (x ^ key) | (uint64_t)from << FREE_BITS;
  if (is_lossless(to, from) && narrow_of(x) == (unsigned)to) return (x ^ key) & ~((uint64_t)to << FREE_BITS);
  return plain(mix(mix(mix(OF_OP, KL_OP_CONVERT), (uint64_t)to), x));
}

// --- operations ------------------------------------------------------------------------------------------------------

// Of predicates that are known; false if none is.
static bool is_decided(kl_op op, kl_dtype t, const uint64_t *x, uint64_t *out) {
  uint64_t no = of_scalar(KILN_PRED, 0), yes = of_scalar(KILN_PRED, 1);
  if (op == KL_OP_SELECT && (x[0] == yes || x[0] == no)) {
    *out = x[0] == yes ? x[1] : x[2];
    return true;
  }
  if (t != KILN_PRED || (op != KL_OP_OR && op != KL_OP_AND)) return false;
  *out = op == KL_OP_OR ? yes : no;
  return x[0] == *out || x[1] == *out;
}

uint64_t of_op(const kl_plan_op *op, kl_dtype from, kl_dtype to, uint32_t n, const uint64_t *x) {
  uint64_t same, h = mix(mix(OF_OP, op->op), (uint64_t)to);
  unsigned number = n == 2 ? free_number(op->op, to) : 0;
  if (op->op == KL_OP_CONVERT && n == 1) return converted(from, to, x[0]);
  if (is_decided(op->op, to, x, &same)) return same;
  if (n == 2 && identity_of(op->op, to, &same) && (x[0] == same || x[1] == same)) return x[x[0] == same];
  if (number) return plain(summand(number, x[0]) + summand(number, x[1])) | number;
  if (op->op == KL_OP_COMPARE) h = mix(mix(h, op->direction), op->compare_type);
  if (op->op == KL_OP_REDUCE_PRECISION) h = mix(mix(h, op->exponent_bits), op->mantissa_bits);
  bool turned = n == 2 && is_sum(op->op) && x[1] < x[0];
  for (uint32_t i = 0; i < n; i++) h = mix(h, x[turned ? n - 1 - i : i]);
  return plain(h);
}
uint64_t of_fma(kl_dtype t, const uint64_t x[3]) {
  uint64_t zero = of_scalar(t, kl_float_encode(t, 0)), below = of_scalar(t, kl_float_encode(t, -0.0));
  bool turned = x[1] < x[0];
  if ((x[0] == zero && x[1] == below) || (x[0] == below && x[1] == zero)) return x[2];
  return plain(mix(mix(mix(mix(OF_FMA, (uint64_t)t), x[turned]), x[!turned]), x[2]));
}
uint64_t of_instr(const kl_instr *in, kl_dtype from, uint32_t n, const uint64_t *operands) {
  kl_plan_op op = {in->op, in->direction, in->compare_type, (uint32_t)in->exponent_bits, (uint32_t)in->mantissa_bits};
  return of_op(&op, from, in->shape->dtype, n, operands);
}

// --- indices -----------------------------------------------------------------------------------------------------

static int64_t stride_of(const kl_shape *s, uint32_t dim) {
  int64_t stride = 1;
  for (uint32_t d = dim + 1; d < s->rank; d++) stride *= s->dims[d];
  return stride;
}
int64_t at_index(const kl_shape *s, const int64_t *index) {
  int64_t n = 0;
  for (uint32_t d = 0; d < s->rank; d++) n = n * s->dims[d] + index[d];
  return n;
}
void index_at(const kl_shape *s, int64_t n, int64_t *index) {
  for (uint32_t d = s->rank; d-- > 0; n /= s->dims[d]) index[d] = n % s->dims[d];
}

int64_t in_memory(const kl_shape *s, int64_t element) {
  int64_t n = 0;
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t d = s->layout.present ? (uint32_t)s->layout.minor_to_major[i] : s->rank - 1 - i;
    n += element % s->dims[d] * stride_of(s, d);
    element /= s->dims[d];
  }
  return n;
}

// --- places that data says
// --------------------------------------------------------------------------------------------

static int64_t start_of(const kl_comp *c, const kl_instr *in, uint64_t *const *from, uint32_t first, uint32_t d,
                        int64_t most) {
  bool scalars = kl_operand(c, in, first)->shape->rank == 0;
  uint64_t x = scalars ? from[first + d][0] : from[first][d];
  int64_t v = integer_of(kl_operand(c, in, first)->shape->dtype, x);
  return v < 0 ? 0 : v > most ? most : v;
}

static uint64_t dynamic_slice(const kl_comp *c, const kl_instr *in, uint64_t *const *from, int64_t n) {
  const kl_shape *os = kl_operand(c, in, 0)->shape;
  int64_t at[KILN_MAX_RANK];
  index_at(in->shape, n, at);
  for (uint32_t d = 0; d < os->rank; d++) at[d] += start_of(c, in, from, 1, d, os->dims[d] - in->shape->dims[d]);
  return from[0][at_index(os, at)];
}

static uint64_t dynamic_update_slice(const kl_comp *c, const kl_instr *in, uint64_t *const *from, int64_t n) {
  const kl_shape *us = kl_operand(c, in, 1)->shape;
  int64_t at[KILN_MAX_RANK];
  bool inside = true;
  index_at(in->shape, n, at);
  for (uint32_t d = 0; d < us->rank; d++) {
    at[d] -= start_of(c, in, from, 2, d, in->shape->dims[d] - us->dims[d]);
    inside = inside && at[d] >= 0 && at[d] < us->dims[d];
  }
  return inside ? from[1][at_index(us, at)] : from[0][n];
}

static int find(const kl_ints *list, int64_t x) {
  for (uint32_t i = 0; i < list->n; i++)
    if (list->p[i] == x) return (int)i;
  return -1;
}

// Indices are vectors along index_vector_dim, or scalars where that is the rank; `b`: index of the vector.
static int64_t gather_start(const kl_comp *c, const kl_instr *in, const uint64_t *indices, const int64_t *b,
                            uint32_t d) {
  const kl_more *more = in->more;
  const kl_shape *s = kl_operand(c, in, 1)->shape;
  int entry = find(&more->start_index_map, d), batch = find(&more->operand_batching_dims, d);
  int64_t at[KILN_MAX_RANK], most = kl_operand(c, in, 0)->shape->dims[d] - more->sizes.p[d];
  if (batch >= 0) {
    int64_t dim = more->indices_batching_dims.p[batch];
    return b[dim > more->index_vector_dim ? dim - 1 : dim];
  }
  if (entry < 0) return 0;
  for (uint32_t i = 0, n = 0; i < s->rank; i++) at[i] = i == more->index_vector_dim ? entry : b[n++];
  int64_t v = integer_of(s->dtype, indices[at_index(s, at)]);
  return v < 0 ? 0 : v > most ? most : v;
}

static uint64_t gather(const kl_comp *c, const kl_instr *in, uint64_t *const *from, int64_t n) {
  const kl_more *more = in->more;
  const kl_shape *os = kl_operand(c, in, 0)->shape;
  int64_t x[KILN_MAX_RANK], b[KILN_MAX_RANK], offset[KILN_MAX_RANK], at[KILN_MAX_RANK];
  uint32_t nb = 0, no = 0;
  index_at(in->shape, n, x);
  for (uint32_t d = 0; d < in->shape->rank; d++)
    if (find(&more->offset_dims, d) < 0)
      b[nb++] = x[d];
    else
      offset[no++] = x[d];
  no = 0;
  for (uint32_t d = 0; d < os->rank; d++) {
    bool gone = find(&more->collapsed_dims, d) >= 0 || find(&more->operand_batching_dims, d) >= 0;
    at[d] = gather_start(c, in, from[1], b, d) + (gone ? 0 : offset[no++]);
  }
  return from[0][at_index(os, at)];
}

// --- the graph ---------------------------------------------------------------------------------------------------

static void scatter_pad(const kl_instr *in, const kl_shape *os, const uint64_t *from, uint64_t with, uint64_t *out) {
  const kl_shape *s = in->shape;
  for (int64_t i = 0; i < s->count; i++) out[i] = with;
  for (int64_t i = 0; i < os->count; i++) {
    int64_t at[KILN_MAX_RANK];
    bool inside = true;
    index_at(os, i, at);
    for (uint32_t d = 0; d < s->rank; d++) {
      at[d] = in->pad[d].low + at[d] * (in->pad[d].interior + 1);
      inside = inside && at[d] >= 0 && at[d] < s->dims[d];
    }
    if (inside) out[at_index(s, at)] = from[i];
  }
}

static void scatter_concatenate(const kl_comp *c, const kl_instr *in, uint64_t *const *from, uint64_t *out) {
  int64_t offset = 0, dim = in->dims[0];
  for (uint32_t k = 0; k < in->noperands; k++) {
    const kl_shape *os = kl_operand(c, in, k)->shape;
    for (int64_t i = 0; i < os->count; i++) {
      int64_t at[KILN_MAX_RANK];
      index_at(os, i, at);
      at[dim] += offset;
      out[at_index(in->shape, at)] = from[k][i];
    }
    offset += os->dims[dim];
  }
}

// Ops whose result is made of moved elements, read from the result's side.
static int64_t moved_from(const kl_instr *in, const kl_shape *os, int64_t n) {
  int64_t at[KILN_MAX_RANK], from[KILN_MAX_RANK] = {0};
  index_at(in->shape, n, at);
  for (uint32_t d = 0; d < os->rank; d++) {
    switch (in->op) {
    case KL_OP_BROADCAST: from[d] = at[in->dims[d]]; break;
    case KL_OP_SLICE: from[d] = in->slice[d].start + at[d] * in->slice[d].stride; break;
    case KL_OP_TRANSPOSE: from[in->dims[d]] = at[d]; break;
    default: from[d] = at[d]; break;
    }
  }
  for (uint32_t i = 0; in->op == KL_OP_REVERSE && i < in->ndims; i++)
    from[in->dims[i]] = os->dims[in->dims[i]] - 1 - at[in->dims[i]];
  return at_index(os, from);
}

static uint64_t elementwise(const kl_comp *c, const kl_instr *in, uint64_t *const *from, int64_t n) {
  const kl_shape *os = kl_operand(c, in, 0)->shape;
  bool same = in->noperands == 1 && in->shape->dtype == os->dtype;
  if (in->op == KL_OP_COPY || (same && (in->op == KL_OP_CONVERT || in->op == KL_OP_REAL))) return from[0][n];
  if (in->op == KL_OP_BITCAST_CONVERT) {
    unsigned bits = kl_info(in->shape->dtype)->bits, other = kl_info(os->dtype)->bits;
    if (bits < other) return of_part(from[0][n / (other / bits)], (uint64_t)n % (other / bits));
    if (bits > other) return of_join(bits / other, &from[0][n * (bits / other)]);
  }
  uint64_t x[3];
  for (uint32_t i = 0; i < in->noperands; i++) x[i] = from[i][kl_operand(c, in, i)->shape->rank ? n : 0];
  return of_instr(in, os->dtype, in->noperands, x);
}

static void evaluate_array(const kl_comp *c, const kl_instr *in, uint64_t *const *from, uint64_t *out) {
  const kl_shape *s = in->shape, *os = in->noperands ? kl_operand(c, in, 0)->shape : NULL;
  int64_t at[KILN_MAX_RANK];
  if (in->op == KL_OP_PAD) return scatter_pad(in, os, from[0], from[1][0], out);
  if (in->op == KL_OP_CONCATENATE) return scatter_concatenate(c, in, from, out);
  for (int64_t n = 0; n < s->count; n++) {
    switch (in->op) {
    case KL_OP_CONSTANT: {
      uint64_t bits[2] = {kl_element_get(s->dtype, in->literal->data, n, 0)};
      if (kl_is_complex(s->dtype)) bits[1] = kl_element_get(s->dtype, in->literal->data, n, 1);
      out[n] = of_bits(s->dtype, bits);
      break;
    }
    case KL_OP_IOTA:
      index_at(s, n, at);
      out[n] = of_iota(s->dtype, at[in->number]);
      break;
    case KL_OP_RESHAPE: out[n] = from[0][n]; break;
    case KL_OP_BITCAST: {
      uint64_t x = from[0][in_memory(os, n)];
      out[in_memory(s, n)] = s->dtype == os->dtype ? x : of_instr(in, os->dtype, 1, &x);
      break;
    }
    case KL_OP_BROADCAST:
    case KL_OP_TRANSPOSE:
    case KL_OP_SLICE:
    case KL_OP_REVERSE: out[n] = from[0][moved_from(in, os, n)]; break;
    case KL_OP_DYNAMIC_SLICE: out[n] = dynamic_slice(c, in, from, n); break;
    case KL_OP_DYNAMIC_UPDATE_SLICE: out[n] = dynamic_update_slice(c, in, from, n); break;
    case KL_OP_GATHER: out[n] = gather(c, in, from, n); break;
    default: out[n] = elementwise(c, in, from, n);
    }
  }
}

// --- folds -----------------------------------------------------------------------------------------------------------

// The order of a reduction: elements of memory order r = (s*K + k)*W + j fold in order of k, for each s and j; these
// leaves, by s*W + j, join in aligned neighbouring pairs.
enum { MOST_VALUES = 64 };
typedef struct folding {
  kl_arena *arena;
  const kiln_module *m;
  const kl_comp *comp, *by;
  const kl_instr *in;
  uint32_t n;  // values
  bool one_op; // the reducer is one
  bool widens; // a sum or product of 16 bits or fewer, made in f32
  kl_dtype type;
  uint32_t nreduced, reduced[KILN_MAX_RANK]; // slowest in memory first
  int64_t length, w, k;
} folding;

static int64_t power_of_two(int64_t least) {
  int64_t p = 1;
  while (p < least) p *= 2;
  return p;
}

static void find_order(folding *f) {
  const kl_shape *s = kl_operand(f->comp, f->in, 0)->shape;
  bool row = false;
  f->length = 1;
  for (uint32_t i = s->rank; i-- > 0;) {
    uint32_t d = s->layout.present ? (uint32_t)s->layout.minor_to_major[i] : s->rank - 1 - i;
    bool reduced = false;
    for (uint32_t k = 0; k < f->in->ndims; k++) reduced = reduced || f->in->dims[k] == d;
    if (s->dims[d] > 1) row = reduced;
    if (!reduced) continue;
    f->reduced[f->nreduced++] = d;
    f->length *= s->dims[d];
  }
  f->w = row ? 256 : 8;
  f->k = power_of_two((f->length + f->w * 4096 - 1) / (f->w * 4096));
  if (f->k < (row ? 4 : 16)) f->k = row ? 4 : 16;
}

// Is the reducer one operation of its two parameters, in whatever order?
static bool is_one_op(const folding *f) {
  const kl_instr *root = kl_root(f->by);
  if (f->n != 1 || root->noperands != 2 || !kl_op_is_elementwise(root->op)) return false;
  uint32_t a = root->operands[0], b = root->operands[1], p = f->by->params[0], q = f->by->params[1];
  return (a == p && b == q) || (a == q && b == p);
}

static bool is_narrow_sum(const folding *f) {
  return is_one_op(f) && is_sum(kl_root(f->by)->op) && kl_is_float(f->type) && kl_info(f->type)->bits <= 16;
}

static uint64_t convert_to(kl_dtype from, kl_dtype to, uint64_t x) {
  return from == to ? x : of_op(&(kl_plan_op){.op = KL_OP_CONVERT}, from, to, 1, &x);
}

static void join(const folding *f, const uint64_t *lower, const uint64_t *higher, uint64_t *out) {
  const kl_instr *root = kl_root(f->by);
  if (f->one_op) {
    bool turned = root->operands[0] != f->by->params[0];
    uint64_t both[2] = {turned ? *higher : *lower, turned ? *lower : *higher};
    kl_dtype t = f->widens ? KILN_F32 : root->shape->dtype;
    *out = of_op(&(kl_plan_op){.op = root->op}, t, t, 2, both);
    return;
  }
  uint64_t both[2 * MOST_VALUES], *at[2 * MOST_VALUES];
  leaves args[2 * MOST_VALUES], r;
  for (uint32_t i = 0; i < 2 * f->n; i++) {
    both[i] = i < f->n ? lower[i] : higher[i - f->n];
    at[i] = &both[i];
    args[i] = (leaves){1, &at[i]};
  }
  kl_arena scratch;
  kl_arena_init(&scratch, f->arena->cx);
  r = evaluate_graph(&scratch, f->m, f->by, args);
  for (uint32_t i = 0; i < f->n; i++) out[i] = r.v[i][0];
  kl_arena_free(&scratch);
}

// Joins what is there of leaves first .. first+size-1, size a power of two, into the first; false if nothing is.
static bool join_pairs(const folding *f, uint64_t *of_leaf, const bool *there, int64_t leaves_n, int64_t first,
                       int64_t size) {
  if (first >= leaves_n) return false;
  if (size == 1) return there[first];
  int64_t middle = first + size / 2;
  uint64_t *lower = of_leaf + first * f->n, *higher = of_leaf + middle * f->n;
  bool a = join_pairs(f, of_leaf, there, leaves_n, first, size / 2);
  bool b = join_pairs(f, of_leaf, there, leaves_n, middle, size / 2);
  if (a && b) join(f, lower, higher, lower);
  if (!a && b) memcpy(lower, higher, f->n * sizeof *lower);
  return a || b;
}

// Element r of those that are reduced for the result element whose index is in `at`; `from` by operand.
static void element_of(const folding *f, uint64_t *const *from, int64_t r, int64_t *at, uint64_t *out) {
  const kl_shape *s = kl_operand(f->comp, f->in, 0)->shape;
  for (uint32_t i = f->nreduced; i-- > 0; r /= s->dims[f->reduced[i]]) at[f->reduced[i]] = r % s->dims[f->reduced[i]];
  for (uint32_t i = 0; i < f->n; i++) {
    out[i] = from[i][at_index(s, at)];
    if (f->widens) out[i] = convert_to(f->type, KILN_F32, out[i]);
  }
}

static void fold(const folding *f, uint64_t *const *from, int64_t *at, uint64_t *of_leaf, bool *there, uint64_t *out) {
  int64_t n = (f->length + f->w * f->k - 1) / (f->w * f->k) * f->w;
  memset(there, 0, (size_t)n);
  for (int64_t r = 0; r < f->length; r++) {
    int64_t leaf = r / (f->w * f->k) * f->w + r % f->w;
    uint64_t x[MOST_VALUES], *sum = of_leaf + leaf * f->n;
    element_of(f, from, r, at, x);
    if (there[leaf])
      join(f, sum, x, sum);
    else
      memcpy(sum, x, f->n * sizeof *sum);
    there[leaf] = true;
  }
  for (uint32_t i = 0; i < f->n; i++) {
    out[i] = from[f->n + i][0];
    if (f->widens) out[i] = convert_to(f->type, KILN_F32, out[i]);
  }
  if (join_pairs(f, of_leaf, there, n, 0, power_of_two(n))) join(f, out, of_leaf, out);
  if (f->widens) *out = convert_to(KILN_F32, f->type, *out);
}

static void evaluate_reduce(kl_arena *arena, const kiln_module *m, const kl_comp *c, const kl_instr *in,
                            uint64_t *const *from, leaves *r) {
  folding f = {.arena = arena, .m = m, .comp = c, .in = in, .by = &m->comp[in->called[0]], .n = in->noperands / 2};
  const kl_shape *os = kl_operand(c, in, 0)->shape, *rs = kl_shape_leaf(in->shape, 0);
  f.type = os->dtype;
  f.one_op = is_one_op(&f);
  f.widens = is_narrow_sum(&f);
  find_order(&f);
  size_t nleaves = (size_t)((f.length / (f.w * f.k) + 1) * f.w);
  uint64_t *of_leaf = KL_NEW_N(arena, uint64_t, nleaves * f.n), out[MOST_VALUES];
  bool *there = KL_NEW_N(arena, bool, nleaves);
  for (uint32_t i = 0; i < f.n; i++) r->v[i] = KL_NEW_N(arena, uint64_t, rs->count + 1);
  for (int64_t e = 0; e < rs->count; e++) {
    int64_t kept[KILN_MAX_RANK], at[KILN_MAX_RANK];
    index_at(rs, e, kept);
    for (uint32_t d = 0, k = 0; d < os->rank; d++) {
      bool reduced = false;
      for (uint32_t i = 0; i < f.nreduced; i++) reduced = reduced || f.reduced[i] == d;
      at[d] = reduced ? 0 : kept[k++];
    }
    fold(&f, from, at, of_leaf, there, out);
    for (uint32_t i = 0; i < f.n; i++) r->v[i][e] = out[i];
  }
}

// --- sums up to a place ---------------------------------------------------------------------------------------------

// Windows over all elements up to a place, or from it on, in one dimension; joined by an op whose order shows nowhere.
static void evaluate_cumulative(const kiln_module *m, const kl_comp *c, const kl_instr *in, uint64_t *const *from,
                                uint64_t *r) {
  const kl_shape *s = in->shape;
  const kl_instr *root = kl_root(&m->comp[in->called[0]]);
  uint32_t dim = 0;
  while (in->more->window[dim].size == 1 && dim + 1 < s->rank) dim++;
  bool back = in->more->window[dim].high > 0;
  for (int64_t n = 0; n < s->count; n++) {
    int64_t e = back ? s->count - 1 - n : n, at[KILN_MAX_RANK] = {0};
    index_at(s, e, at);
    bool first = at[dim] == (back ? s->dims[dim] - 1 : 0);
    at[dim] += back ? 1 : -1;
    uint64_t x[2] = {first ? from[1][0] : r[at_index(s, at)], from[0][e]};
    r[e] = of_op(&(kl_plan_op){.op = root->op}, s->dtype, s->dtype, 2, x);
  }
}

// --- scatter ---------------------------------------------------------------------------------------------------------

// Where the window of an index vector begins along dim d of the arrays; `b`: the place of the vector.
static int64_t scatter_start(const kl_comp *c, const kl_instr *in, uint32_t n, const uint64_t *indices,
                             const int64_t *b, int64_t d) {
  const kl_more *more = in->more;
  const kl_shape *is = kl_operand(c, in, n)->shape;
  int64_t entry = find(&more->start_index_map, d), batch = find(&more->operand_batching_dims, d), at[KILN_MAX_RANK];
  if (batch >= 0) {
    int64_t k = more->indices_batching_dims.p[batch];
    return b[k - (k > more->index_vector_dim)];
  }
  if (entry < 0) return 0;
  for (uint32_t i = 0, k = 0; i < is->rank; i++) at[i] = i == more->index_vector_dim ? entry : b[k++];
  return integer_of(is->dtype, indices[at_index(is, at)]);
}

// The element of the arrays that an update goes to; false: its window is skipped.
static bool scatter_to(const kl_comp *c, const kl_instr *in, uint32_t n, const uint64_t *indices, const int64_t *u,
                       int64_t *to) {
  const kl_more *more = in->more;
  const kl_shape *os = kl_operand(c, in, 0)->shape, *us = kl_operand(c, in, n + 1)->shape;
  int64_t b[KILN_MAX_RANK];
  uint32_t nb = 0, nw = 0;
  for (uint32_t d = 0; d < us->rank; d++)
    if (find(&more->offset_dims, d) < 0) b[nb++] = u[d];
  for (uint32_t d = 0; d < os->rank; d++) {
    bool gone = find(&more->collapsed_dims, d) >= 0 || find(&more->operand_batching_dims, d) >= 0;
    int64_t dim = gone ? -1 : more->offset_dims.p[nw++], start = scatter_start(c, in, n, indices, b, d);
    if (start < 0 || start > os->dims[d] - (gone ? 1 : us->dims[dim])) return false;
    to[d] = start + (gone ? 0 : u[dim]);
  }
  return true;
}

// Updates one after the other, by the window they are of.
static void evaluate_scatter(kl_arena *arena, const kiln_module *m, const kl_comp *c, const kl_instr *in,
                             uint64_t *const *from, leaves *r) {
  folding f = {.arena = arena, .m = m, .by = &m->comp[in->called[0]], .in = in, .n = (in->noperands - 1u) / 2};
  const kl_shape *os = kl_operand(c, in, 0)->shape, *us = kl_operand(c, in, f.n + 1)->shape;
  f.type = os->dtype;
  f.one_op = is_one_op(&f);
  for (uint32_t i = 0; i < f.n; i++) r->v[i] = kl_arena_dup(arena, from[i], ((size_t)os->count + 1) * sizeof *from[i]);
  int64_t windows = 1, inside = 1;
  for (uint32_t d = 0; d < us->rank; d++) *(find(&in->more->offset_dims, d) < 0 ? &windows : &inside) *= us->dims[d];
  for (int64_t k = 0; k < windows * inside; k++) {
    int64_t u[KILN_MAX_RANK], to[KILN_MAX_RANK], w = k / inside, e = k % inside;
    for (uint32_t d = us->rank; d-- > 0;) {
      int64_t *rest = find(&in->more->offset_dims, d) < 0 ? &w : &e;
      u[d] = *rest % us->dims[d];
      *rest /= us->dims[d];
    }
    if (!scatter_to(c, in, f.n, from[f.n], u, to)) continue;
    uint64_t x[MOST_VALUES], y[MOST_VALUES];
    for (uint32_t i = 0; i < f.n; i++) x[i] = r->v[i][at_index(os, to)], y[i] = from[f.n + 1 + i][at_index(us, u)];
    join(&f, x, y, x);
    for (uint32_t i = 0; i < f.n; i++) r->v[i][at_index(os, to)] = x[i];
  }
}

// --- dots -----------------------------------------------------------------------------------------------------------

// The place in an operand of pair k's digits for a result element's index; `other`: dims of the result before its own.
static int64_t place_of(const kl_shape *s, kl_ints batch, kl_ints sums, const int64_t *index, const int64_t *k,
                        uint32_t other) {
  int64_t at[KILN_MAX_RANK];
  for (uint32_t d = 0; d < s->rank; d++) {
    int b = find(&batch, d), p = find(&sums, d);
    at[d] = b >= 0 ? index[b] : p >= 0 ? k[p] : index[other++];
  }
  return at_index(s, at);
}

// Of real floats: leaves of chains in f32, or f64 where that is among them, joined from the left.
static void evaluate_dot(const kl_comp *c, const kl_instr *in, uint64_t *const *from, uint64_t *to) {
  const kl_more *m = in->more;
  const kl_shape *l = kl_operand(c, in, 0)->shape, *r = kl_operand(c, in, 1)->shape;
  bool wide = l->dtype == KILN_F64 || r->dtype == KILN_F64 || in->shape->dtype == KILN_F64;
  kl_dtype t = wide ? KILN_F64 : KILN_F32;
  int64_t length = 1, leaf = 256, index[KILN_MAX_RANK], k[KILN_MAX_RANK];
  for (uint32_t i = 0; i < m->lhs_contracting.n; i++) length *= l->dims[m->lhs_contracting.p[i]];
  while (leaf * 4096 < length) leaf *= 2;
  for (int64_t n = 0; n < in->shape->count; n++) {
    uint64_t all = of_scalar(t, 0), sum = all;
    index_at(in->shape, n, index);
    for (int64_t p = 0; p < length; p++) {
      int64_t rest = p;
      for (uint32_t i = m->lhs_contracting.n; i-- > 0; rest /= l->dims[m->lhs_contracting.p[i]])
        k[i] = rest % l->dims[m->lhs_contracting.p[i]];
      int64_t a = place_of(l, m->lhs_batch, m->lhs_contracting, index, k, m->lhs_batch.n);
      int64_t b = place_of(r, m->rhs_batch, m->rhs_contracting, index, k, l->rank - m->lhs_contracting.n);
      if (p % leaf == 0) sum = of_scalar(t, 0);
      uint64_t x[3] = {convert_to(l->dtype, t, from[0][a]), convert_to(r->dtype, t, from[1][b]), sum};
      sum = of_fma(t, x);
      if (p % leaf != leaf - 1 && p + 1 < length) continue;
      uint64_t both[2] = {all, sum};
      all = p < leaf ? sum : of_op(&(kl_plan_op){.op = KL_OP_ADD}, t, t, 2, both);
    }
    to[n] = convert_to(t, in->shape->dtype, all);
  }
}

static leaves evaluate_instr(kl_arena *arena, const kiln_module *m, const kl_comp *c, const kl_instr *in,
                             const leaves *made, const leaves *args) {
  leaves r = {.n = (uint32_t)kl_shape_leaf_count(in->shape)};
  if (in->op == KL_OP_PARAMETER) return args[in->number];
  if (in->op == KL_OP_FUSION || in->op == KL_OP_CALL) {
    leaves *passed = KL_NEW_N(arena, leaves, in->noperands + 1);
    for (uint32_t i = 0; i < in->noperands; i++) passed[i] = made[in->operands[i]];
    return evaluate_graph(arena, m, &m->comp[in->called[0]], passed);
  }
  if (in->op == KL_OP_WHILE) {
    leaves state = made[in->operands[0]];
    const kl_comp *again = &m->comp[in->called[0]], *body = &m->comp[in->called[1]];
    while (integer_of(KILN_PRED, *evaluate_graph(arena, m, again, &state).v[0]))
      state = evaluate_graph(arena, m, body, &state);
    return state;
  }
  r.v = KL_NEW_N(arena, uint64_t *, r.n + 1);
  if (in->op == KL_OP_TUPLE) {
    for (uint32_t i = 0, k = 0; i < in->noperands; i++)
      for (uint32_t l = 0; l < made[in->operands[i]].n; l++) r.v[k++] = made[in->operands[i]].v[l];
  } else if (in->op == KL_OP_GET_TUPLE_ELEMENT) {
    uint32_t first = 0;
    for (int64_t i = 0; i < in->number; i++)
      first += (uint32_t)kl_shape_leaf_count(kl_operand(c, in, 0)->shape->elems[i]);
    for (uint32_t l = 0; l < r.n; l++) r.v[l] = made[in->operands[0]].v[first + l];
  } else {
    uint64_t **from = KL_NEW_N(arena, uint64_t *, in->noperands + 1);
    for (uint32_t i = 0; i < in->noperands; i++) from[i] = made[in->operands[i]].v[0];
    if (in->op == KL_OP_REDUCE) {
      evaluate_reduce(arena, m, c, in, from, &r);
      return r;
    }
    if (in->op == KL_OP_SCATTER) {
      evaluate_scatter(arena, m, c, in, from, &r);
      return r;
    }
    r.v[0] = KL_NEW_N(arena, uint64_t, in->shape->count + 1);
    if (in->op == KL_OP_DOT)
      evaluate_dot(c, in, from, r.v[0]);
    else if (in->op == KL_OP_REDUCE_WINDOW)
      evaluate_cumulative(m, c, in, from, r.v[0]);
    else
      evaluate_array(c, in, from, r.v[0]);
  }
  return r;
}

leaves evaluate_graph(kl_arena *arena, const kiln_module *m, const kl_comp *c, const leaves *args) {
  leaves *made = KL_NEW_N(arena, leaves, c->ninstr);
  for (uint32_t i = 0; i < c->ninstr; i++) made[i] = evaluate_instr(arena, m, c, &c->instr[i], made, args);
  return made[c->root];
}

leaves *number_arguments(kl_arena *arena, const kl_comp *c) {
  leaves *args = KL_NEW_N(arena, leaves, c->nparams + 1);
  uint32_t slot = 0;
  for (uint32_t i = 0; i < c->nparams; i++) {
    const kl_shape *s = c->instr[c->params[i]].shape;
    args[i].n = (uint32_t)kl_shape_leaf_count(s);
    args[i].v = KL_NEW_N(arena, uint64_t *, args[i].n + 1);
    for (uint32_t l = 0; l < args[i].n; l++, slot++) {
      const kl_shape *leaf = kl_shape_leaf(s, l);
      args[i].v[l] = KL_NEW_N(arena, uint64_t, leaf->count + 1);
      for (int64_t e = 0; e < leaf->count; e++) args[i].v[l][in_memory(leaf, e)] = of_parameter(slot, e);
    }
  }
  return args;
}
