// The reference evaluator: exact or double or _Float128 arithmetic, every op rounded to its type, and for each element
// an interval of what a correct device may return. Uses nothing of lower or jit: it judges them.
//
// What an op means, where HLO leaves a choice (every device follows these):
//
// Floats: add, subtract, multiply, divide, sqrt and remainder (C's fmod) are correctly rounded; so is every function of
// a type of 16 bits or fewer. maximum and minimum give NaN if either operand is NaN, and -0 < +0. clamp is
// minimum(maximum(lo, x), hi). sign keeps zeros and NaN. logistic is 1 / (1 + exp(-x)) as one function.
// reduce-precision rounds the mantissa to nearest even at the type's own quantum, then takes exponents above the
// reduced range to infinity and those below (with its denormals) to zero of the same sign; an unreduced exponent keeps
// its denormals. NaN stays NaN, except that with no mantissa bits it becomes +infinity.
//
// Integers wrap. x / 0 = -1, MIN / -1 = MIN, x % 0 = x, MIN % -1 = 0. A shift by an amount outside 0 .. bits-1 gives 0,
// or the sign for shift-right-arithmetic. power wraps; with a negative exponent it is 1 for base 1, +-1 for base -1
// by the exponent's parity, else 0. pred: add, maximum = or; multiply, minimum = and.
//
// Complex numbers, every operation below rounded to the part type T:
//   (a + bi) * (c + di) = (a*c - b*d) + (a*d + b*c)i
//   (a + bi) / (c + di), Smith's method:
//     if |c| >= |d|:  r = d / c;  den = c + d*r;  re = (a + b*r) / den;  im = (b - a*r) / den
//     else:           r = c / d;  den = c*r + d;  re = (a*r + b) / den;  im = (b*r - a) / den
//     (a comparison with NaN is false). If re and im are both NaN, the first of these that holds replaces them:
//     1. c == 0 and d == 0 and not both a and b NaN:  k = copysign(inf, c);  re = k*a;  im = k*b
//     2. a or b infinite, c and d finite:  a', b' = copysign(a or b infinite ? 1 : 0, a or b);
//          re = inf * (a'*c + b'*d);  im = inf * (b'*c - a'*d)
//     3. c or d infinite, a and b finite:  c', d' likewise from c and d;
//          re = 0 * (a*c' + b*d');  im = 0 * (b*c' - a*d')
//   abs = hypot(re, im). sign = z / |z| with both quotients of the exact |z|; 0 for z = 0.
//   maximum = x >= y ? x : y and minimum = x <= y ? x : y in the lexicographic order (re, im); NaN compares false.
//   compare LT, LE, GT, GE use the same order. Elementary functions follow C's Annex G.
#ifndef KL_EVAL_H
#define KL_EVAL_H

#include "ir/hlo.h"

// One evaluated array. lo == hi == data where only exactly specified ops came before: then exactly these bits are right
// (NaN standing for any NaN). Else element i may be anything between lo[i] and hi[i] in the order of its type
// (complex: per part; pred: false < true; -0 < +0), and NaN exactly if data[i] is NaN, or anything at all if `any` has
// bit i.
typedef struct kl_result {
  kl_array data;
  void *lo, *hi; // as kl_array data; equal to data.data where exact
  uint64_t *any; // bitmap; NULL where no bit is set
} kl_result;

typedef struct kl_eval_opts {
  bool intervals;   // false: lo and hi equal data
  uint32_t threads; // 0: all cores
} kl_eval_opts;

// Evaluates computation `comp` on one array per leaf of its parameters, in order and depth first. Results: leaves of
// the root, depth first; the caller owns them and frees each with kl_result_free before the module goes. Nothing is
// kept on failure.
kiln_status kl_eval(kl_ctx *cx, const kiln_module *m, uint32_t comp, const kl_array *args, const kl_eval_opts *opts,
                    kl_result *results);
void kl_result_free(kl_ctx *cx, kl_result *r);
// Is this bit pattern right for element `i` (both parts of a complex)?
bool kl_result_allows(const kl_result *r, int64_t i, const uint64_t bits[2]);

// Stated error bounds of compiled elementary functions, in units in the last place of the exact result in the result
// type (numerics strict). `t` is the operand type; complex: per part. 0 means correctly rounded. The math tests prove
// them; the evaluator widens its intervals by them. Beyond the bound, every function is held to these rules: the
// result has the exact result's sign and does not leave the function's range (|tanh| <= 1, exp >= 0 ...); where a real
// operand is +-0 or +-infinity, and for log and power of 1, it is exact.
double kl_op_ulp_bound(kl_op op, kl_dtype t);

#endif
