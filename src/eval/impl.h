// What the evaluator's files share: values and their planes, threads, elementwise operations bound to types, strided
// copies. Nobody outside src/eval includes this.
#ifndef KL_EVAL_IMPL_H
#define KL_EVAL_IMPL_H

#include "base/threads.h"
#include "eval/eval.h"

// One evaluation. Workers never touch the context: allocation and diagnostics belong to its own thread.
typedef struct kl_ev {
  kl_ctx *cx;
  const kiln_module *m;
  bool intervals, fast;
  uint32_t threads;
  uint32_t depth;       // of nested calls
  kiln_module **shapes; // where shapes live that the module does not have; *shapes is NULL until there is one (sizes.c)
  // While an op starts: nobody reads leaf k of its operands after it. Ops that evaluate computations ask before that.
  const bool *last;
} kl_ev;

// --- values -------------------------------------------------------------------------------------------------------

typedef struct kl_evbuf {
  void *p;
  size_t size;
  uint32_t refs;
  bool owned;               // false: the caller's or the module's memory
  kl_arrangement *arranged; // of plane ANY, of a sort's result as it was made (kl_result)
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

// Are these one value, whatever it is? Two values with the same planes are; exact ones need not be told.
static inline bool kl_ev_same(const kl_evval *a, const kl_evval *b) {
  return memcmp(a->plane, b->plane, sizeof a->plane) == 0;
}

// Zeroed planes for `count` elements; `inexact` gives all four. Nothing is kept on failure.
kiln_status kl_ev_new(kl_ev *ev, const kl_shape *s, bool splat, bool inexact, kl_evval *out);
// The same planes under another shape, counted once more: the same elements in the same row-major order.
kl_evval kl_ev_share(const kl_evval *v, const kl_shape *s);
// The one element that a value holds (kl_ev_single) at every index of another shape. Elements of a splat need not be
// one value, only of one interval, so that this is not `v` any more unless v has one element indeed.
kiln_status kl_ev_spread(kl_ev *ev, const kl_evval *v, const kl_shape *s, kl_evval *out);
void kl_ev_free(kl_ev *ev, kl_evval *v);          // safe on a zeroed value; leaves it zeroed
void kl_ev_drop_interval(kl_ev *ev, kl_evval *v); // makes an inexact value exact
void kl_ev_drop_any(kl_ev *ev, kl_evval *v);
void kl_ev_settle(kl_ev *ev, kl_evval *v);      // drops planes that say nothing
kiln_status kl_ev_open(kl_ev *ev, kl_evval *v); // anything may be right, in every element
// The array `data` that somebody else owns.
kl_evval kl_ev_borrow(kl_ev *ev, const kl_shape *s, const void *data);
// Bytes of a plane; -1 if they do not fit.
int64_t kl_ev_plane_bytes(const kl_shape *s, bool splat, int plane);
// Leaf k of an op's operands under another shape: taken where this was its last use, shared else.
kl_evval kl_ev_take(kl_ev *ev, const kl_evval *const *operands, size_t k, const kl_shape *s);
// A copy of leaf k to write on, with all planes or exact: the leaf itself where nobody else holds it.
kiln_status kl_ev_own(kl_ev *ev, const kl_evval *const *operands, size_t k, const kl_shape *s, bool inexact,
                      kl_evval *out);

// --- threads ------------------------------------------------------------------------------------------------------

typedef kl_piece_body kl_ev_body;
// How many workers kl_ev_parallel uses at most.
static inline uint32_t kl_ev_workers(const kl_ev *ev, int64_t n, int64_t grain) {
  return kl_workers(ev->threads, n, grain);
}
// kl_parallel on the evaluation's threads, which inherit the floating-point environment that kl_eval sets.
static inline void kl_ev_parallel(const kl_ev *ev, int64_t n, int64_t grain, kl_ev_body *body, void *arg) {
  kl_parallel(ev->threads, n, grain, body, arg);
}

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
  bool fast;         // intervals are those of numerics `fast`
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
// An elementwise op without attributes on one operand or two (b NULL: one).
kiln_status kl_ev_apply_op(kl_ev *ev, kl_op op, const kl_shape *s, const kl_evval *a, const kl_evval *b, kl_evval *out);

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
// Computes all planes of n <= KL_EV_CHUNK elements. Operands in the same memory are one value. `nan_open`: NaN bits of
// the operands are not promised.
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
void kl_ev_copy_here(const kl_ev_walk *w, size_t size, const void *src, void *dst); // by the calling thread alone
// All planes of src into those of dst, which has them wherever src does.
void kl_ev_copy_planes(const kl_ev *ev, const kl_ev_walk *w, const kl_evval *src, kl_evval *dst);
void kl_ev_strides(const kl_shape *s, int64_t *strides); // row-major, s->rank of them

// broadcast, transpose, slice, reverse, reshape, bitcast, concatenate, pad, iota.
kiln_status kl_ev_move(kl_ev *ev, const kl_instr *in, const kl_evval *const *operands, kl_evval *out);
kiln_status kl_ev_bitcast(kl_ev *ev, const kl_instr *in, const kl_evval *src, kl_evval *out);
kiln_status kl_ev_bitcast_convert(kl_ev *ev, const kl_instr *in, const kl_evval *src, kl_evval *out);
// A splat written out in full; other values as they are (shared).
kiln_status kl_ev_expand(kl_ev *ev, const kl_evval *v, kl_evval *out);

// --- ops with loops of their own ----------------------------------------------------------------------------------

// Evaluates one instruction. operands: the leaves of all operands, in order and depth first; out: zeroed, one value per
// leaf of the result. Operands are shared, never written; a splat holds one element (kl_ev_expand writes it out).
// Nothing is kept in `out` on failure.
typedef kiln_status kl_ev_op(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                             kl_evval *out);
kl_ev_op kl_ev_dot;                                         // fold/dot.c: dot, ragged-dot, scaled-dot
kl_ev_op kl_ev_convolution;                                 // fold/conv.c
kl_ev_op kl_ev_reduce;                                      // fold/reduce.c
kl_ev_op kl_ev_reduce_window, kl_ev_select_and_scatter;     // fold/window.c
kl_ev_op kl_ev_scan;                                        // fold/scan.c
kl_ev_op kl_ev_map;                                         // map.c
kl_ev_op kl_ev_dynamic_slice, kl_ev_dynamic_update_slice;   // dynamic.c
kl_ev_op kl_ev_gather, kl_ev_scatter;                       // indexed/gather.c, indexed/scatter.c
kl_ev_op kl_ev_sort, kl_ev_topk;                            // indexed/sort.c
kl_ev_op kl_ev_shuffle;                                     // dynamic.c
kl_ev_op kl_ev_dimension_size;                              // dynamic.c
kl_ev_op kl_ev_rng, kl_ev_rng_bits, kl_ev_rng_state;        // special/rng.c
kl_ev_op kl_ev_stochastic;                                  // special/rng.c
kl_ev_op kl_ev_batch_norm;                                  // special/norm.c
kl_ev_op kl_ev_cholesky, kl_ev_triangular_solve, kl_ev_fft; // special/linalg.c, special/fft.c
kl_ev_op kl_ev_lu, kl_ev_permutation;                       // special/lu.c: custom calls
kl_ev_op kl_ev_qr, kl_ev_pivoted_qr, kl_ev_reflections;     // special/qr.c: custom calls
kl_ev_op kl_ev_gtsv;                                        // special/gtsv.c: custom calls
kl_ev_op kl_ev_eigh, kl_ev_svd;                             // special/eigh.c, special/svd.c: custom calls
kl_ev_op kl_ev_while, kl_ev_conditional;                    // control.c

// `op` on the operands of a reduction, converted to the types of its computation's parameters where those are wider;
// one result of a narrower type is rounded to it at the end.
kiln_status kl_ev_widened(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                          kl_evval *out, kl_ev_op *op); // fold/reduce.c

kl_ev_op kl_ev_forward, kl_ev_token, kl_ev_call; // control.c
kl_ev_op kl_ev_copy_async, kl_ev_async;          // control.c
kl_ev_op kl_ev_dynamic_reshape;                  // sizes.c
kl_ev_op kl_ev_set_size;                         // set-dimension-size
// An op of whose operands some have fewer elements than their types: shapes of their own, of known dimensions.
kl_ev_op kl_ev_sized; // sizes.c
// Is the value what an instruction of type `s` may give? It gets this shape where it has all of its elements.
kiln_status kl_ev_type(kl_ev *ev, const kl_instr *in, kl_evval *v, const kl_shape *s);
// All elements of type `s`: zeros where the value has none.
kiln_status kl_ev_whole(kl_ev *ev, kl_evval *v, const kl_shape *s);
kl_ev_op kl_ev_collective, kl_ev_device_id;                                           // device.c: of one device
kl_ev_op kl_ev_custom_call;                                                           // custom.c: whose target is known
bool kl_ev_is_alone(const kl_ev *ev);                                                 // device.c: is there one device?
kiln_status kl_ev_check_custom_call(kl_ev *ev, const kl_comp *c, const kl_instr *in); // custom.c

// nparams + 1 numbers: where each parameter's leaves begin among those of all, then how many these are. Free with as
// many.
size_t *kl_ev_param_leaves(kl_ev *ev, const kl_comp *c);
// Evaluates one instruction that is neither parameter nor constant.
kl_ev_op kl_ev_apply;
// What evaluating a computation needs to know of it, found once.
typedef struct kl_ev_code kl_ev_code;
// twin[i] of live instructions: the first one that moves the same elements to the same places; i where that is itself.
void kl_ev_find_twins(kl_ev *ev, const kl_comp *c, const bool *live, uint32_t *twin); // twins.c
kiln_status kl_ev_code_new(kl_ev *ev, uint32_t comp, kl_ev_code **out);
void kl_ev_code_free(kl_ev *ev, kl_ev_code *code);
// Takes the leaves of its parameters (freed in any case); `results` gets the root's leaves, nothing on failure.
kiln_status kl_ev_run(kl_ev *ev, const kl_ev_code *code, kl_evval *params, kl_evval *results);
// Evaluates a computation on the leaves of its parameters; `results` gets the root's leaves, nothing on failure.
kiln_status kl_ev_computation(kl_ev *ev, uint32_t comp, const kl_evval *params, kl_evval *results);
// "no evaluation of OP" with the reason, KILN_E_UNSUPPORTED.
kiln_status kl_ev_refuse(kl_ev *ev, const kl_instr *in, const char *reason);

// A computation on scalars (a reducer, a comparator, a mapped function), compiled once into operations over lanes:
// parameters and results are leaves of rank 0, each lane evaluates the computation on its own. Elementwise ops,
// constants, tuples and calls run as loops over lanes; anything else (a loop, a conditional) lane by lane through
// kl_ev_computation, where workers take turns: so a kl_ev_parallel body that allocates nothing may run one program.
// Programs are immutable; every worker has registers of its own. program.c.
typedef struct kl_ev_program kl_ev_program;
typedef struct kl_ev_regs kl_ev_regs;
kiln_status kl_ev_program_new(kl_ev *ev, uint32_t comp, kl_ev_program **out);
void kl_ev_program_free(kl_ev *ev, kl_ev_program *p);
// A computation on arrays that all have the same dimensions, where each element follows from those at its own place:
// a lane is one element. NULL where it is nothing of the kind.
kl_ev_program *kl_ev_program_of_arrays(kl_ev *ev, uint32_t comp);
// Registers for up to `lanes` lanes a run. NULL after reporting no memory.
kl_ev_regs *kl_ev_regs_new(kl_ev *ev, const kl_ev_program *p, int64_t lanes);
void kl_ev_regs_free(kl_ev *ev, kl_ev_regs *r);
// params[i], results[i]: n elements of the leaf's dtype. A result may not overlap a parameter.
kiln_status kl_ev_program_run(const kl_ev_program *p, kl_ev_regs *r, int64_t n, const void *const *params,
                              void *const *results);
// The same with all planes, where ev->intervals is set. Results get all of theirs; a parameter's as in kl_iv_in.
kiln_status kl_ev_program_run_iv(const kl_ev_program *p, kl_ev_regs *r, int64_t n, const kl_iv_in *params,
                                 const kl_iv_out *results);
// Does the program give one right result for exact parameters, NaN bits aside?
bool kl_ev_program_exact(const kl_ev_program *p);
// May results depend on the bits of a NaN (bitcast-convert, the total order)?
bool kl_ev_program_reads_bits(const kl_ev_program *p);
// Parameters are (a0 .. a[r-1], b0 .. b[r-1]) for r results: is result i `op` of ai and bi, in either order, perhaps
// computed in a wider type and narrowed? Then op is one of add, multiply, maximum, minimum, and, or, xor.
bool kl_ev_program_combiner(const kl_ev_program *p, size_t i, kl_op *op);
// The same of any result and two parameters.
bool kl_ev_program_combines(const kl_ev_program *p, size_t result, size_t first, size_t second, kl_op *op);

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

// x rounded to odd in f32: exact, or the neighbour whose last bit is set. Rounding that to 16 bits is rounding x.
static inline uint32_t kl_ev_odd_f32(double x) {
  float f = (float)x;
  double back = f;
  uint32_t u = kl_ev_f32_bits(f), toward_zero = __builtin_fabs(back) > __builtin_fabs(x);
  uint32_t even_and_inexact = (uint32_t)(back != x) & ~u & 1;
  return u + (even_and_inexact ? 1 - 2 * toward_zero : 0);
}

static inline float kl_ev_bf16_load(uint16_t h) {
  return kl_ev_f32((uint32_t)h << 16);
}
static inline uint16_t kl_ev_bf16_store(double v) {
  uint32_t u = kl_ev_odd_f32(v), r = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
  return (uint16_t)(v != v ? 0x7fc0u | u >> 31 << 15 : r);
}

static inline float kl_ev_f16_load(uint16_t h) {
  uint32_t a = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
  uint32_t wide = (a << 13) + (a >= 0x7c00 ? 0x70000000u : 0x38000000u);
  uint32_t denormal = kl_ev_f32_bits((float)(int32_t)a * 0x1p-24f);
  return kl_ev_f32((a < 0x400 ? denormal : wide) | sign);
}
// Adding 1/2 to a value below 2^-14 rounds it at the quantum of a half's denormals.
static inline uint16_t kl_ev_f16_store(double v) {
  uint32_t u = kl_ev_odd_f32(v), a = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
  uint32_t normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1)) >> 13;
  uint32_t denormal = kl_ev_f32_bits(kl_ev_f32(a < 0x38800000u ? a : 0) + 0.5f) - 0x3f000000u;
  uint32_t r = a < 0x38800000u ? denormal : a >= 0x47800000u ? 0x7c00u : normal;
  return (uint16_t)((v != v ? 0x7e00u : r) | sign);
}

static inline int kl_ev_sign_of(double x) {
  return (x > 0) - (x < 0);
}
// NaN if either is; -0 below +0. All is computed before anything is chosen, so that loops of these vectorise.
#define KL_EV_MAX(T, x, y)                                                                                             \
  ({                                                                                                                   \
    T kl_x = (x), kl_y = (y), kl_sum = kl_x + kl_y, kl_even = kl_x == 0 ? kl_sum : kl_x;                               \
    T kl_less = kl_x < kl_y ? kl_y : kl_sum, kl_more = kl_x > kl_y ? kl_x : kl_less;                                   \
    kl_x == kl_y ? kl_even : kl_more;                                                                                  \
  })
#define KL_EV_MIN(T, x, y)                                                                                             \
  ({                                                                                                                   \
    T kl_x = (x), kl_y = (y), kl_sum = -(-kl_x - kl_y), kl_even = kl_x == 0 ? kl_sum : kl_x;                           \
    T kl_less = kl_x < kl_y ? kl_x : kl_sum, kl_more = kl_x > kl_y ? kl_y : kl_less;                                   \
    kl_x == kl_y ? kl_even : kl_more;                                                                                  \
  })
static inline double kl_ev_max(double x, double y) {
  return KL_EV_MAX(double, x, y);
}
static inline double kl_ev_min(double x, double y) {
  return KL_EV_MIN(double, x, y);
}

#endif
