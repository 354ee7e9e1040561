// What the evaluator's files share: values and their planes, threads, elementwise operations bound to types, strided
// copies. Nobody outside src/ir/eval*.c includes this.
#ifndef KL_EVAL_IMPL_H
#define KL_EVAL_IMPL_H

#include "ir/eval.h"

// One evaluation. Workers never touch the context: allocation and diagnostics belong to its own thread.
typedef struct kl_ev {
  kl_ctx *cx;
  const kiln_module *m;
  bool intervals;
  uint32_t threads;
  uint32_t depth; // of nested calls
} kl_ev;

// --- values -------------------------------------------------------------------------------------------------------

typedef struct kl_evbuf {
  void *p;
  size_t size;
  uint32_t refs;
  bool owned; // false: the caller's or the module's memory
} kl_evbuf;

enum { KL_EV_DATA, KL_EV_LO, KL_EV_HI, KL_EV_ANY, KL_EV_PLANES };

// One array. Planes lo and hi are the same buffer as data where the value is exact; `any` holds one byte per element
// and is NULL where no element is open.
typedef struct kl_evval {
  const kl_shape *shape;
  kl_evbuf *plane[KL_EV_PLANES];
  bool splat; // every plane holds one element that stands for all
  bool raw;   // NaNs are those of a parameter or a constant, bit for bit
} kl_evval;

static inline size_t kl_ev_size(kl_dtype t) {
  return kl_info(t)->bytes;
}
static inline bool kl_ev_exact(const kl_evval *v) {
  return v->plane[KL_EV_LO] == v->plane[KL_EV_DATA] && v->plane[KL_EV_HI] == v->plane[KL_EV_DATA] &&
         !v->plane[KL_EV_ANY];
}
static inline void *kl_ev_plane(const kl_evval *v, int plane) {
  return v->plane[plane] ? v->plane[plane]->p : NULL;
}
// Does the value hold one element only, which the ops read at every index?
static inline bool kl_ev_single(const kl_evval *v) {
  return v->splat || v->shape->count == 1;
}

// Zeroed planes for `count` elements; `inexact` gives all four. Nothing is kept on failure.
kiln_status kl_ev_new(kl_ev *ev, const kl_shape *s, bool splat, bool inexact, kl_evval *out);
// The same planes under another shape, counted once more.
kl_evval kl_ev_share(const kl_evval *v, const kl_shape *s);
void kl_ev_free(kl_ev *ev, kl_evval *v);          // safe on a zeroed value; leaves it zeroed
void kl_ev_drop_interval(kl_ev *ev, kl_evval *v); // makes an inexact value exact
void kl_ev_drop_any(kl_ev *ev, kl_evval *v);

// --- threads ------------------------------------------------------------------------------------------------------

typedef void kl_ev_body(void *arg, uint32_t worker, int64_t begin, int64_t end);
uint32_t kl_ev_cores(void);
// How many workers kl_ev_parallel uses at most.
uint32_t kl_ev_workers(const kl_ev *ev, int64_t n, int64_t grain);
// Runs body over pieces of [0, n) of at most `grain`, on up to ev->threads workers numbered from 0. Piece borders are
// multiples of the grain, so nothing depends on the number of workers.
void kl_ev_parallel(const kl_ev *ev, int64_t n, int64_t grain, kl_ev_body *body, void *arg);

// --- elementwise --------------------------------------------------------------------------------------------------

// An operation bound to its types. `run` does n elements; out may not overlap an input.
typedef struct kl_ew kl_ew;
typedef void kl_ew_run(const kl_ew *e, int64_t n, const void *const in[3], void *out);
typedef double kl_fn1(double);
typedef double kl_fn2(double, double);
typedef long double kl_fn1l(long double);
typedef __float128 kl_fn1q(__float128);
typedef __float128 kl_fn2q(__float128, __float128);

struct kl_ew {
  kl_ew_run *run;
  kl_op op;
  uint32_t nin;
  kl_dtype in[3], out;
  kl_direction direction;
  kl_compare_type compare;
  int exponent_bits, mantissa_bits;
  kl_fn1 *fn1; // elementary functions in double, for f32 and narrower
  kl_fn2 *fn2;
  kl_fn1l *fn1l; // for f64, where 80 bits decide the result
  kl_fn1q *fn1q; // for f64
  kl_fn2q *fn2q;
  const void *table; // results by pattern, where the op is tabulated
};

// Sets run (and fn) from op and types; false where the op has no evaluation for them.
bool kl_ew_bind(kl_ew *e);
kl_ew_run *kl_ew_int(const kl_ew *e);   // integers and pred
kl_ew_run *kl_ew_float(const kl_ew *e); // needs fn where kl_ew_math has them
kl_ew_run *kl_ew_complex(const kl_ew *e);
kl_ew_run *kl_ew_compare(const kl_ew *e);
kl_ew_run *kl_ew_convert(const kl_ew *e);
// Fills in fn1 ... for an elementary function; false if the op is none.
bool kl_ew_math(kl_ew *e);
double kl_ew_call_f64(const kl_ew *e, double x); // the elementary function of e, rounded from _Float128

// Evaluates an elementwise instruction (not bitcast-convert).
kiln_status kl_ev_elementwise(kl_ev *ev, const kl_instr *in, const kl_evval *const operands[3], kl_evval *out);

// --- intervals ----------------------------------------------------------------------------------------------------

enum { KL_EV_CHUNK = 512 };

// A chunk of an operand: lo == hi == data where exact, any NULL where closed.
typedef struct kl_iv_in {
  const char *data, *lo, *hi;
  const uint8_t *any;
} kl_iv_in;
typedef struct kl_iv_out {
  char *data, *lo, *hi;
  uint8_t *any;
} kl_iv_out;
typedef struct kl_iv_scratch kl_iv_scratch; // per worker
extern const size_t kl_iv_scratch_size;

// Are results of `e` open although its operands are exact?
bool kl_iv_widens(const kl_ew *e);
// Computes all planes of n <= KL_EV_CHUNK elements. `nan_open`: NaN bits of the operands are not promised.
void kl_iv_run(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const bool nan_open[3],
               const kl_iv_out *out);

// Order keys: a bijection from patterns to integers that grows with the value, -0 just below +0. Complex: two per
// element. Floats give KL_KEY_NAN for NaN.
#define KL_KEY_NAN INT64_MIN
void kl_iv_keys(kl_dtype t, int64_t n, const void *p, int64_t *keys);
uint64_t kl_iv_key_bits(kl_dtype t, int64_t key); // `t` not complex
int64_t kl_iv_key(kl_dtype t, uint64_t bits);

// --- moving data --------------------------------------------------------------------------------------------------

// Elements by linear index: dst[dst_base + sum i*dst_stride] = src[src_base + sum i*src_stride]. Unit and mergeable
// dimensions are folded away as they are added, major to minor.
enum { KL_EV_MAX_DIMS = 64 };
typedef struct kl_ev_walk {
  uint32_t n;
  int64_t extent[KL_EV_MAX_DIMS], src[KL_EV_MAX_DIMS], dst[KL_EV_MAX_DIMS];
  int64_t src_base, dst_base;
  bool empty;
} kl_ev_walk;
void kl_ev_walk_add(kl_ev_walk *w, int64_t extent, int64_t src_stride, int64_t dst_stride);
void kl_ev_copy(const kl_ev *ev, const kl_ev_walk *w, size_t size, const void *src, void *dst);

// broadcast, transpose, slice, reverse, reshape, bitcast, concatenate, pad, iota.
kiln_status kl_ev_move(kl_ev *ev, const kl_instr *in, const kl_evval *const *operands, kl_evval *out);
kiln_status kl_ev_bitcast(kl_ev *ev, const kl_instr *in, const kl_evval *src, kl_evval *out);
kiln_status kl_ev_bitcast_convert(kl_ev *ev, const kl_instr *in, const kl_evval *src, kl_evval *out);
// A splat written out in full; other values as they are (shared).
kiln_status kl_ev_expand(kl_ev *ev, const kl_evval *v, kl_evval *out);

// Is the layout a plain order of dimensions, with elements of their own size?
bool kl_ev_plain_layout(const kl_shape *s);

// --- bit patterns -------------------------------------------------------------------------------------------------

static inline float kl_ev_f32(uint32_t u) {
  float v;
  memcpy(&v, &u, sizeof v);
  return v;
}
static inline uint32_t kl_ev_f32_bits(float v) {
  uint32_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}
static inline double kl_ev_f64(uint64_t u) {
  double v;
  memcpy(&v, &u, sizeof v);
  return v;
}
static inline uint64_t kl_ev_f64_bits(double v) {
  uint64_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}

// x rounded to nearest even at `man` mantissa bits, denormal below 2^emin; exponents from about 2^140 up are left for
// the caller's overflow. Adding 1.5 * 2^(e+52-man) puts the last kept bit at the end of the double, where the addition
// itself rounds; |x| < 2^(e+1) cannot carry the sum out of its binade. NaN and infinities pass.
static inline double kl_ev_round(double x, int man, int emin) {
  int64_t e = (int64_t)(kl_ev_f64_bits(x) >> 52 & 0x7ff), least = 1023 + emin;
  e = e < least ? least : e > 1023 + 140 ? 1023 + 140 : e;
  double magic = kl_ev_f64((uint64_t)(e + 52 - man) << 52 | 1ull << 51);
  return __builtin_copysign((x + magic) - magic, x);
}

static inline float kl_ev_bf16_load(uint16_t h) {
  return kl_ev_f32((uint32_t)h << 16);
}
// The rounded value is exact in f32, or becomes infinity there.
static inline uint16_t kl_ev_bf16_store(double v) {
  return (uint16_t)(kl_ev_f32_bits((float)kl_ev_round(v, 7, -126)) >> 16);
}

// The half's fields moved into an f32 stand for a value 2^112 too small, denormals included.
static inline float kl_ev_f16_load(uint16_t h) {
  uint32_t a = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
  uint32_t r = kl_ev_f32_bits(kl_ev_f32(a << 13) * 0x1p112f);
  return kl_ev_f32(r | (a >= 0x7c00 ? 0x7f800000u : 0) | sign);
}
static inline uint16_t kl_ev_f16_store(double v) {
  float f = (float)kl_ev_round(v, 10, -14);
  uint32_t u = kl_ev_f32_bits(f), a = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
  if (a >= 0x47800000u) return (uint16_t)(sign | (a > 0x7f800000u ? 0x7e00u : 0x7c00u)); // 2^16 and more, NaN
  return (uint16_t)(sign | kl_ev_f32_bits(kl_ev_f32(a) * 0x1p-112f) >> 13);
}

static inline int kl_ev_sign_of(double x) {
  return (x > 0) - (x < 0);
}
// NaN if either is; -0 below +0.
static inline double kl_ev_max(double x, double y) {
  if (x != x || y != y) return x + y;
  if (x == y) return __builtin_signbit(x) ? y : x;
  return x > y ? x : y;
}
static inline double kl_ev_min(double x, double y) {
  if (x != x || y != y) return x + y;
  if (x == y) return __builtin_signbit(x) ? x : y;
  return x < y ? x : y;
}

#endif
