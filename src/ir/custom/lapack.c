// Matrices, as routines of LAPACK take and give them.
#include "ir/custom/room.h"

static const kl_custom_entry of_potrf[] = {{"uplo", {'U', 'L'}, 0}}, of_solver[] = {{"lower", {0, 1}, 0}},
                             of_eigh[] = {{"uplo", {'U', 'L'}, 0}, {"mode", {'V', 'V'}, 0}},
                             of_syevd[] = {{"lower", {0, 1}, 0}, {"algorithm", {0, 1}, 2}},
                             of_trsm[] = {{"uplo", {'U', 'L'}, 0},
                                          {"side", {'R', 'L'}, 0},
                                          {"diag", {'N', 'U'}, 0},
                                          {"trans_x", {'N', 'T'}, 'C'}};
enum { UPLO, SIDE, DIAG, TRANS, MOST_ENTRIES };

static bool attributes(const kl_instr *in, kl_more *more) {
  int which[MOST_ENTRIES] = {0};
  kl_str config = kl_custom_config(in);
  bool lapack = kl_custom_begins(kl_custom_target(in), "lapack");
  kl_custom kind = kl_custom_named(in);
  *more = kl_no_more;
  if (kind == KL_CUSTOM_EIGH) {
    if (!kl_custom_read_entries(config, lapack ? of_eigh : of_syevd, 2, which)) return false;
    which[1] = 0; // says how, not what
  } else if (kind == KL_CUSTOM_POTRF) {
    if (!kl_custom_read_entries(config, lapack ? of_potrf : of_solver, 1, which)) return false;
  } else if (!kl_custom_read_entries(config, of_trsm, KL_COUNT(of_trsm), which)) {
    return false;
  }
  more->lower = which[UPLO];
  more->left_side = which[SIDE];
  more->unit_diagonal = which[DIAG];
  more->transpose_a = (kl_triangle_op)which[TRANS];
  return true;
}

void kl_custom_attributes(const kl_instr *in, kl_more *more) {
  attributes(in, more);
}

bool kl_custom_are_matrices(const kl_shape *s, kl_dtype t) {
  return kl_shape_is_array(s) && s->rank >= 2 && !s->dynamic && s->dims[s->rank - 1] < INT32_MAX &&
         s->dims[s->rank - 2] < INT32_MAX &&
         (t == KILN_TUPLE ? s->dtype == KILN_F32 || s->dtype == KILN_F64 || kl_is_complex(s->dtype) : s->dtype == t);
}

static bool are_square(const kl_shape *s, kl_dtype t) {
  return kl_custom_are_matrices(s, t) && s->dims[s->rank - 1] == s->dims[s->rank - 2];
}

bool kl_custom_same_dims(uint32_t n, const int64_t *a, const int64_t *b) {
  for (uint32_t d = 0; d < n; d++)
    if (a[d] != b[d]) return false;
  return true;
}

static bool is_potrf(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  const kl_shape *s = in->shape;
  kl_more more;
  if (in->noperands != 1 || s->dtype != KILN_TUPLE || s->nelems != 2) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *info = s->elems[1];
  return are_square(a, t) && kl_shape_compatible(a, s->elems[0]) && info->dtype == KILN_S32 &&
         info->rank == a->rank - 2 && kl_custom_same_dims(info->rank, info->dims, a->dims) && attributes(in, &more);
}

static bool is_trsm(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  kl_more more;
  if (in->noperands != 2) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *b = kl_operand(c, in, 1)->shape;
  uint32_t rank = a->rank;
  if (!are_square(a, t) || !kl_shape_compatible(b, in->shape) || b->dtype != a->dtype || b->rank != rank ||
      !attributes(in, &more) || !kl_custom_same_dims(rank - 2, a->dims, b->dims))
    return false;
  return b->dims[more.left_side ? rank - 2 : rank - 1] == a->dims[rank - 1];
}

static bool is_getrf(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  const kl_shape *s = in->shape;
  if (in->noperands != 1 || s->dtype != KILN_TUPLE || s->nelems != 3) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *pivots = s->elems[1], *info = s->elems[2];
  if (!kl_custom_are_matrices(a, t) || !kl_shape_compatible(a, s->elems[0])) return false;
  int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  return pivots->dtype == KILN_S32 && pivots->rank == a->rank - 1 &&
         kl_custom_same_dims(a->rank - 2, pivots->dims, a->dims) && pivots->dims[a->rank - 2] == (m < n ? m : n) &&
         info->dtype == KILN_S32 && info->rank == a->rank - 2 && kl_custom_same_dims(info->rank, info->dims, a->dims);
}

// Lists of `n` numbers, one for each matrix.
static bool are_taus(const kl_shape *s, const kl_shape *matrices, int64_t n) {
  return kl_shape_is_array(s) && !s->dynamic && s->dtype == matrices->dtype && s->rank == matrices->rank - 1 &&
         kl_custom_same_dims(s->rank - 1, s->dims, matrices->dims) && s->dims[s->rank - 1] == n;
}

static bool is_geqrf(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  const kl_shape *s = in->shape;
  if (in->noperands != 1 || s->dtype != KILN_TUPLE || s->nelems != 2) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape;
  if (!kl_custom_are_matrices(a, t) || !kl_shape_compatible(a, s->elems[0])) return false;
  int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  return are_taus(s->elems[1], a, m < n ? m : n);
}

static bool is_geqp3(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  const kl_shape *s = in->shape;
  if (in->noperands != 2 || s->dtype != KILN_TUPLE || s->nelems != 3) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *given = kl_operand(c, in, 1)->shape;
  if (!kl_custom_are_matrices(a, t) || !kl_shape_compatible(a, s->elems[0])) return false;
  int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  return kl_shape_is_array(given) && !given->dynamic && given->dtype == KILN_S32 && given->rank == a->rank - 1 &&
         kl_custom_same_dims(a->rank - 2, given->dims, a->dims) && given->dims[a->rank - 2] == n &&
         kl_shape_compatible(given, s->elems[1]) && are_taus(s->elems[2], a, m < n ? m : n);
}

// There are no more reflections than columns, nor those than rows.
static bool is_orgqr(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  if (in->noperands != 2) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *taus = kl_operand(c, in, 1)->shape;
  if (!kl_custom_are_matrices(a, t) || !kl_shape_compatible(a, in->shape) || !kl_shape_is_array(taus) || !taus->rank)
    return false;
  int64_t k = taus->dims[taus->rank - 1], n = a->dims[a->rank - 1];
  return are_taus(taus, a, k) && k <= n && n <= a->dims[a->rank - 2];
}

bool kl_custom_is_info(const kl_shape *s, const kl_shape *matrices) {
  return s->dtype == KILN_S32 && s->rank == matrices->rank - 2 && kl_custom_same_dims(s->rank, s->dims, matrices->dims);
}

bool kl_custom_are_values(const kl_shape *s, const kl_shape *matrices, int64_t n) {
  kl_dtype t = matrices->dtype, part = kl_is_complex(t) ? kl_info(t)->part : t;
  return kl_shape_is_array(s) && !s->dynamic && s->dtype == part && s->rank == matrices->rank - 1 &&
         kl_custom_same_dims(s->rank - 1, s->dims, matrices->dims) && s->dims[s->rank - 1] == n;
}

bool kl_custom_has_room(const kl_shape *s, int64_t rows, int64_t columns) {
  int64_t count = rows;
  if (__builtin_mul_overflow(count, columns, &count)) return false;
  for (uint32_t d = 0; d + 2 < s->rank && count; d++)
    if (__builtin_mul_overflow(count, s->dims[d], &count)) return false;
  return count < (int64_t)1 << 58; // 16 bytes each
}

// Elements of a matrix have numbers that an s32 has.
enum { MOST_ORDER = 46340 };

static bool is_eigh(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  const kl_shape *s = in->shape;
  kl_more more;
  if (in->noperands != 1 || s->dtype != KILN_TUPLE || s->nelems != 3) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape;
  return are_square(a, t) && a->dims[a->rank - 1] <= MOST_ORDER &&
         kl_custom_has_room(a, a->dims[a->rank - 1] + 1, a->dims[a->rank - 1] + 1) &&
         kl_shape_compatible(a, s->elems[0]) && kl_custom_are_values(s->elems[1], a, a->dims[a->rank - 1]) &&
         kl_custom_is_info(s->elems[2], a) && attributes(in, &more);
}

// Three diagonals and right-hand sides; all of them again with info, or the last alone.
static bool is_gtsv(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  const kl_shape *s = in->shape;
  if (in->noperands != 4) return false;
  const kl_shape *b = kl_operand(c, in, 3)->shape;
  if (!kl_custom_are_matrices(b, t)) return false;
  bool all = s->dtype == KILN_TUPLE, fits = all ? s->nelems == 5 : kl_shape_compatible(s, b);
  for (uint32_t k = 0; k < 3 && fits; k++) fits = are_taus(kl_operand(c, in, k)->shape, b, b->dims[b->rank - 2]);
  for (uint32_t k = 0; k < 4 && fits && all; k++) fits = kl_shape_compatible(kl_operand(c, in, k)->shape, s->elems[k]);
  return fits && (!all || kl_custom_is_info(s->elems[4], b));
}

static bool is_permutation(const kl_comp *c, const kl_instr *in) {
  if (in->noperands != 1) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *s = in->shape;
  return kl_shape_is_array(a) && kl_shape_is_array(s) && a->rank > 0 && a->rank == s->rank && !a->dynamic &&
         !s->dynamic && a->dtype == KILN_S32 && s->dtype == KILN_S32 &&
         kl_custom_same_dims(a->rank - 1, a->dims, s->dims) && a->dims[a->rank - 1] <= s->dims[s->rank - 1] &&
         s->dims[s->rank - 1] < INT32_MAX;
}

bool kl_custom_fits_lapack(const kl_comp *c, const kl_instr *in, kl_custom kind, kl_dtype t) {
  switch (kind) {
  case KL_CUSTOM_POTRF: return is_potrf(c, in, t);
  case KL_CUSTOM_TRSM: return is_trsm(c, in, t);
  case KL_CUSTOM_GETRF: return is_getrf(c, in, t);
  case KL_CUSTOM_PERMUTATION: return is_permutation(c, in);
  case KL_CUSTOM_GEQRF: return is_geqrf(c, in, t);
  case KL_CUSTOM_GEQP3: return is_geqp3(c, in, t);
  case KL_CUSTOM_GTSV: return is_gtsv(c, in, t);
  case KL_CUSTOM_ORGQR: return is_orgqr(c, in, t);
  case KL_CUSTOM_EIGH: return is_eigh(c, in, t);
  case KL_CUSTOM_SVD: return kl_custom_fits_svd(c, in, t);
  default: return false;
  }
}
