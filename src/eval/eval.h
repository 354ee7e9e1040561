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
// by the exponent's parity, else 0. mulhi is the upper half of the product of twice the width. pred: add, maximum = or;
// multiply, minimum = and.
//
// Complex numbers, every operation below rounded to the part type T:
//   (a + bi) * (c + di) = (a*c - b*d) + (a*d + b*c)i
//     (as XLA and what is contracted of it have it: where a product of infinities makes both parts NaN, C's Annex G
//     would have them infinite again; nothing here asks that of sums of products, so it is not asked of one either)
//   (a + bi) / (c + di) = ((a*c + b*d) + (b*c - a*d)i) / (c^2 + d^2), each part rounded once from the exact quotient,
//     for finite operands and a divisor other than zero. Else, by Annex G, the first of these that holds, or NaN:
//     1. c == 0 and d == 0 and not both a and b NaN:  k = copysign(inf, c);  re = k*a;  im = k*b
//     2. a or b infinite, c and d finite:  a', b' = copysign(a or b infinite ? 1 : 0, a or b), of NaN 0;
//          re = inf * (a'*c + b'*d);  im = inf * (b'*c - a'*d)
//     3. c or d infinite, a and b finite:  c', d' likewise from c and d;
//          re = 0 * (a*c' + b*d');  im = 0 * (b*c' - a*d')
//   abs = hypot(re, im). sign = z / |z| with both quotients of the exact |z|; 0 for z = 0.
//   maximum = x >= y ? x : y and minimum = x <= y ? x : y in the lexicographic order (re, im); NaN compares false.
//   compare LT, LE, GT, GE use the same order. Elementary functions follow C's Annex G; exp10(z) is exp(z ln 10), and
//   atan2(y, x) is -i log((x + iy) / sqrt(x^2 + y^2)).
//
// rng-bit-generator gives XLA's bits. The state is u64[2] {key, counter}, for Philox (also the default algorithm) also
// u64[3] {key, counter low, high}; with two words the key is the counter's high word. Results are any integers and
// floats but complex; of types below 32 bits each takes the low bits of a word of 32. Which counter goes with which
// element, and how far the counter moves, is written in rng.c. rng gives the numbers of docs/numerics.md, the same each
// time it is done; its logarithm and cosine have their bounds. The state of rng-get-and-update-state outlives the
// program: it is refused.
// In a module of one replica and one partition a collective is what it is for one device: its operand, zeros where a
// permutation sends that nothing; the device's numbers are 0. Custom calls count by their targets (ir/custom/custom.h):
// those that say something of an array are that array, TopK is topk, AllocateBuffer anything at all; LAPACK's trsm is
// triangular-solve, its potrf cholesky, beside which info is 0, or the order of the first leading minor that is not
// positive (as zero and NaN are not), and open where errors decide; the other triangle of its factor is the operand's.
// Its getrf decomposes a matrix, P A = L U: row k changes places with the first of the rows from k on whose element has
// the largest |re| + |im|, counted from 1; info is the number of the first pivot that is zero, or 0.
// Its geqrf and orgqr (ungqr) reflect by 1 - tau v v^H, where v has a 1 in place k and zeros above, as
// ir/rewrite/expand/qr.c says; its geqp3 changes column k, before, with the first from there on that is given, or else
// the first of those that are longest from row k on. Its gtsv solves a tridiagonal system by elimination; rows i and i
// + 1 change places where |re| + |im| of what is below the pivot is greater, and info is the number of the first pivot
// that is zero, from 1, or 0. Its syevd (heevd) has A = V diag(w) V^H, w ascending, of the Hermitian matrix A whose
// named triangle it reads, imaginary parts of its diagonal aside; of each column of V the first element of at least 5/8
// of the magnitude of the largest is real and positive. Where A has what is no number all is NaN. info is 0. Its gesdd
// and gesvd have A = U diag(s) V^H, s descending, and of each row of V^H, up to the number of values, that first
// element real and positive; the rest is as of syevd. The operand's memory has anything at the end, and so have U and V
// where they are not asked for, or belong to no value. Calls of a GPU's libraries are the ops that docs/modules.md
// names.
//
// stochastic-convert takes floats and unsigned integers r of their width. With d the result type's next value
// from x towards zero and u the one after it, the result is u where r < floor((|x| - |d|) / (|u| - |d|) * 2^bits), else
// d. Integers saturate as soon as x reaches their ends; NaN gives 0.
//
// One instruction is one value per element, unknown as it may be: whoever reads it reads the same bits. So an op that
// reads one value twice has the results that this one value can give: compare(y, y) is known but for NaN, y - y is 0
// where y is finite, y * y is not negative, and select(y != y, 0, y) takes in no 0. The value stays one through copies,
// reshapes, tuples, calls and fusions, through the same move (broadcast, slice, transpose ...) made twice, and from the
// operands of map into its computation. Two instructions that compute the same from the same are two
// values wherever their op has a bound or an order of its own: a device may have made them by different means.
//
// sort is stable. Of a comparator that is no strict weak order of a line's elements, as comparisons of those that the
// evaluator's result has at distances of 1, 2, 4 ... show, or that compares NaNs by value, any order is right, and each
// element comes once, of all operands together. So it is where keys, or ties of an unstable sort, leave the order open.
//
// What is a whole algorithm is right within a radius around the exact result of the operands, rounded; with n the order
// or length, u half a unit in the last place of 1 of the (part) type and gamma(k) = k u / (1 - k u), four times that k
// for complex numbers. Inexact operands widen the radius.
//   cholesky          A = L L^H with errors of at most gamma(n + 3) |L| |L|^H in A, carried to L; only the triangle
//                     that `lower` names is read, and the other one's result is open. Open where A is not positive
//                     definite (the data is NaN then), or so near that errors decide.
//   getrf             P A = L U with errors of at most gamma(min(m, n) + 3) |L| |U| in A, carried to both. Open, its
//                     exchanges and info with it, where errors decide which row comes next, or whether a pivot is zero.
//   geqrf, orgqr,     that of each step, sums in any order, carried from reflection to reflection. Open from where the
//   geqp3             sign of what is reflected, or whether there is anything to reflect, is not known, and from where
//                     sums of magnitudes may overflow; of geqp3 the columns from where errors decide which is longest.
//   gtsv              that of each step, carried from row to row. Open where a pivot may be zero, where errors decide
//                     which row is the pivot's, and where a step may overflow.
//   syevd             eigenvalues and vectors of a matrix that is off by gamma(4 (n + 8)) |A| in Frobenius's norm, and
//                     V by gamma(4 (n + 8)) from unitary: a vector's radius is what that makes of it by the distance of
//                     its eigenvalue to the others. Open where that is too near, or which element is turned to be real.
//   gesdd, gesvd      likewise of a matrix that is off by gamma(4 (m + n + 8)) |A|; what a vector's value must be apart
//                     from is all others, 0 where U and V are of different orders, and its own opposite.
//   triangular-solve  that of any substitution: row by row with errors of gamma(n + 2) in A. Open where a diagonal
//                     element is zero, and from where sums of magnitudes may overflow.
//   fft               3 u (4 + sum over the prime factors p of all lengths of p + 4) times the sum of the operand's
//                     magnitudes. For p above 16 the summand is 6 log2 p + 20, and sqrt(2 p) a factor, so that a
//                     convolution may stand for such a length. IFFT and IRFFT divide by the number of points; IRFFT
//                     ignores the imaginary parts that the spectrum of real numbers cannot have.
//   batch-norm-*      twice the error of these formulas step by step in f32 (f64: in f64), sums in any order, rounded
//                     to the type at the end only; with v = var + epsilon, and n elements per feature:
//                       training:  mean = sum x / n, var = sum x^2 / n - mean^2 (data: the mean of (x - mean)^2),
//                                  inference: (x - mean) / sqrt(v) * scale + offset
//                       grad:      offset' = sum g, scale' = (sum g (x - mean)) / sqrt(v),
//                                  x' = scale / (n sqrt(v)) * (n g - sum g - (x - mean) (sum g (x - mean)) / v)
//                     epsilon is rounded to the operand's type, or not. Open where v or n may be zero, and where a
//                     step overflows.
//
// Reductions. A reducer that adds, multiplies, or takes the maximum, minimum, and, or, xor of its two parameters (per
// component of a variadic one; also computed in a wider type and narrowed back) may be evaluated in any order, with the
// initial value as one of the terms, each operation rounded to the reducer's own type or kept wider and rounded later:
// the interval holds every such result. So for reduce, reduce-window, the scatter of select-and-scatter, and a scan
// that is_associative whose outputs are its carries. The data is what the orders of docs/numerics.md give: of
// reduce the tree (kl_reduce_tree), of windows their elements' order, of scans blocks of 16 by 16 (kl_sequence). Of
// windows that see more than 256 elements, and of reducers that compute in a wider type themselves in all but reduce,
// it is the exact result rounded once.
//   Every other reducer has one order, each op rounded, and so have maximum and minimum of complex numbers: in reduce
// that tree, as reducer(lower, higher); elsewhere from left to right in row-major order of the elements, as
// reducer(accumulator, element).
//   In reduce-window and select-and-scatter, places of the window in padding or between dilated elements count for
// nothing. select-and-scatter asks select(selected so far, next) in row-major order of the window, so that GE keeps the
// first of several; scatter gets (result so far, source), in row-major order of the source where that matters. A window
// that sees no element scatters nothing.
//
// dot and convolution: integers are converted to the result's type first, and wrap in it; pred is or of ands. Floats:
// operands count as they are, whatever operand_precision says; products and sums, in any order, are rounded to f32, or
// to f64 where an operand or the result is of that type, and last to the result's type; a product may also be added
// unrounded (fma). Complex numbers: real products and sums likewise. The data is what the order of docs/numerics.md
// gives (kl_chain), f32 or f64 whatever an algorithm says but for f64. The sign of a zero is not promised. `algorithm`
// says otherwise: it names the type of the sums, and widens the interval by what rounding operands to its operand type
// (to nearest or by dropping bits), or leaving out products of their low parts, may do.
//   A dynamic dimension has as many elements as its bound until set-dimension-size or dynamic-reshape gives it a size
//   (held to 0 .. bound);
// then the value is the array of that many elements there, and every op on it the op on that array (sizes.c): a fold
// sees no others, concatenate puts the next operand behind the last that is there, reverse begins with that, padding
// follows it. Operands that should agree have the least of their sizes. get-dimension-size gives the size. Where more
// elements are wanted than there are (a result of the computation, a larger size that is set later, the one element of
// a slice, a window of dynamic-slice or gather), they are 0; of an update, and of padding that takes off elements, only
// as much counts as there is. A transform goes over as many points. What would have other sizes than its type
// allows is refused.
//   scaled-dot takes (lhs, rhs, lhs scale, rhs scale); each operand is first multiplied by its scale in the wider type
// of both, bf16 at least. Rows of a ragged-dot behind the last group are 0.
#ifndef KL_EVAL_H
#define KL_EVAL_H

#include "ir/hlo.h"

// One evaluated array. lo == hi == data where only exactly specified ops came before: then exactly these bits are right
// (NaN standing for any NaN). Else element i may be anything between lo[i] and hi[i] in the order of its type
// (complex: per part; pred: false < true; -0 < +0), and NaN exactly if data[i] is NaN, or anything at all if `any` has
// bit i. The result of a token is all zero.
typedef struct kl_result {
  kl_array data;
  void *lo, *hi; // as kl_array data; equal to data.data where exact
  uint64_t *any; // bitmap; NULL where no bit is set
  // What a sort has made, of keys that do not say all of the order: lines have the elements of data, in some order. Of
  // results that have the same one, which count their references, elements stay beside each other. NULL: not so.
  struct kl_arrangement *arranged;
} kl_result;

// Element k of line i is number i / stride * n * stride + i % stride + k * stride, in row-major order.
typedef struct kl_arrangement {
  uint32_t refs;
  int64_t n, stride, lines;
  uint8_t *some; // by line: its order is not known; in the same memory
} kl_arrangement;
kl_arrangement *kl_arrangement_new(kl_ctx *cx, int64_t n, int64_t stride, int64_t lines); // NULL: no memory
void kl_arrangement_free(kl_ctx *cx, kl_arrangement *a);                                  // one reference
static inline kl_arrangement *kl_arrangement_share(kl_arrangement *a) {
  if (a) a->refs++;
  return a;
}

typedef struct kl_eval_opts {
  bool intervals;   // false: lo and hi equal data
  bool fast;        // intervals are those of numerics `fast`
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

// The tree of `reduce` over some dimensions, by operand 0's shape and layout (docs/numerics.md): of a result's elements
// number (s * chain + k) * width + j is the k-th of leaf j of group s.
typedef struct kl_fold_tree {
  int64_t length, width, chain; // L, W, K; length 0 where the operand has no elements
  bool row;                     // of class row; else column
} kl_fold_tree;
kl_fold_tree kl_reduce_tree(const kl_shape *operand, uint32_t ndims, const int64_t *dims);

// Stated error bounds of compiled elementary functions, in units in the last place of the exact result in the result
// type (numerics strict). `t` is the operand type. 0 means correctly rounded. The math tests prove them; the evaluator
// widens its intervals by them. Beyond the bound, every function of real numbers is held to these rules: the result has
// the exact result's sign and does not leave the function's range (|tanh| <= 1, exp >= 0, cosh >= 1, |atan| <= pi / 2
// rounded ...); where an operand is +-0 or +-infinity, for log, acos, acosh and power of 1, and for atanh of +-1, it is
// the exact result, rounded.
// Complex: per part, with the exact part's sign. But some functions cannot keep a small part accurate beside a large
// one: their bound is for both parts, in units of 2^-man * scale, man the part's mantissa bits and |r| the greater part
// of the result r, and it may change a part's sign:
//   expm1, atan2       scale = |r|
//   logistic           scale = |r| (|r| + |1 - r|), which is large beside the poles
//   exp10(z)           scale = |r| (1 + |im z| ln 10), the rounding of the angle
//   power(x, y)        scale = |r| (1 + |y log x|), likewise
// Where an operand is not finite, these give the exact limit, rounded (of exp10 with its signs while |im z| 2^-man is
// small: they are those of the angle); and for all functions both signs of a zero are
// right, and anything where the parts are a NaN and an infinity.
double kl_op_ulp_bound(kl_op op, kl_dtype t);
// The bound of either numerics. In `fast` a result may be off by `absolute` where that is more than `ulps` units, and
// then its sign may differ. log of 1, and exp, exp10, logistic, cos and cosh of 0 need not be exact; all other rules
// hold.
typedef struct kl_bound {
  double ulps, absolute;
} kl_bound;
kl_bound kl_op_bound(kl_op op, kl_dtype t, bool fast);
bool kl_op_bound_is_normwise(kl_op op, kl_dtype t);

#endif
