// Targets of custom calls, by name.
#include "ir/custom.h"

#include "ir/text/text.h"

typedef struct target {
  const char *name;
  kl_custom kind;
  kl_dtype type; // of what takes part; TUPLE: that of the operand
} target;

static const target targets[] = {
    {"Sharding", KL_CUSTOM_REMARK},
    {"annotate_device_placement", KL_CUSTOM_REMARK},
    {"MoveToDevice", KL_CUSTOM_REMARK},
    {"MoveToHost", KL_CUSTOM_REMARK},
    {"SPMDFullToShardShape", KL_CUSTOM_REMARK},
    {"SPMDShardToFullShape", KL_CUSTOM_REMARK},
    {"LayoutConstraint", KL_CUSTOM_REMARK},
    {"xla.sdy.GlobalToLocalShape", KL_CUSTOM_REMARK},
    {"xla.sdy.LocalToGlobalShape", KL_CUSTOM_REMARK},
    {"xla.sdy.FuncResultSharding", KL_CUSTOM_REMARK},
    {"xla.sdy.Sharding", KL_CUSTOM_REMARK},
    {"Pin", KL_CUSTOM_REMARK},
    {"Unpin", KL_CUSTOM_REMARK},
    {"TopK", KL_CUSTOM_TOPK},
    {"AllocateBuffer", KL_CUSTOM_BUFFER},
    {"lapack_spotrf_ffi", KL_CUSTOM_POTRF, KILN_F32},
    {"lapack_dpotrf_ffi", KL_CUSTOM_POTRF, KILN_F64},
    {"lapack_cpotrf_ffi", KL_CUSTOM_POTRF, KILN_C64},
    {"lapack_zpotrf_ffi", KL_CUSTOM_POTRF, KILN_C128},
    {"cusolver_potrf_ffi", KL_CUSTOM_POTRF, KILN_TUPLE},
    {"hipsolver_potrf_ffi", KL_CUSTOM_POTRF, KILN_TUPLE},
    {"lapack_strsm_ffi", KL_CUSTOM_TRSM, KILN_F32},
    {"lapack_dtrsm_ffi", KL_CUSTOM_TRSM, KILN_F64},
    {"lapack_ctrsm_ffi", KL_CUSTOM_TRSM, KILN_C64},
    {"lapack_ztrsm_ffi", KL_CUSTOM_TRSM, KILN_C128},
    {"lapack_sgetrf_ffi", KL_CUSTOM_GETRF, KILN_F32},
    {"lapack_dgetrf_ffi", KL_CUSTOM_GETRF, KILN_F64},
    {"lapack_cgetrf_ffi", KL_CUSTOM_GETRF, KILN_C64},
    {"lapack_zgetrf_ffi", KL_CUSTOM_GETRF, KILN_C128},
    {"cusolver_getrf_ffi", KL_CUSTOM_GETRF, KILN_TUPLE},
    {"hipsolver_getrf_ffi", KL_CUSTOM_GETRF, KILN_TUPLE},
    {"lapack_sgeqrf_ffi", KL_CUSTOM_GEQRF, KILN_F32},
    {"lapack_dgeqrf_ffi", KL_CUSTOM_GEQRF, KILN_F64},
    {"lapack_cgeqrf_ffi", KL_CUSTOM_GEQRF, KILN_C64},
    {"lapack_zgeqrf_ffi", KL_CUSTOM_GEQRF, KILN_C128},
    {"cusolver_geqrf_ffi", KL_CUSTOM_GEQRF, KILN_TUPLE},
    {"hipsolver_geqrf_ffi", KL_CUSTOM_GEQRF, KILN_TUPLE},
    {"lapack_sorgqr_ffi", KL_CUSTOM_ORGQR, KILN_F32},
    {"lapack_dorgqr_ffi", KL_CUSTOM_ORGQR, KILN_F64},
    {"lapack_cungqr_ffi", KL_CUSTOM_ORGQR, KILN_C64},
    {"lapack_zungqr_ffi", KL_CUSTOM_ORGQR, KILN_C128},
    {"cusolver_orgqr_ffi", KL_CUSTOM_ORGQR, KILN_TUPLE},
    {"hipsolver_orgqr_ffi", KL_CUSTOM_ORGQR, KILN_TUPLE},
    {"cu_lu_pivots_to_permutation", KL_CUSTOM_PERMUTATION},
    {"hip_lu_pivots_to_permutation", KL_CUSTOM_PERMUTATION},
};

// The target is quoted as in the text.
static kl_str unquoted(const kl_instr *in) {
  kl_str t = in->more->target;
  return t.n < 2 ? (kl_str){t.p, 0} : (kl_str){t.p + 1, t.n - 2};
}

static bool begins(kl_str s, const char *with) {
  size_t n = strlen(with);
  return s.n >= n && memcmp(s.p, with, n) == 0;
}

static bool has(kl_str s, const char *part) {
  for (size_t i = 0, n = strlen(part); i + n <= s.n; i++)
    if (memcmp(s.p + i, part, n) == 0) return true;
  return false;
}

// --- what takes part ------------------------------------------------------------------------------------------------

static bool is_remark(const kl_comp *c, const kl_instr *in) {
  return in->noperands == 1 && kl_shape_compatible(kl_operand(c, in, 0)->shape, in->shape);
}

// (values, s32 indices) of the last dimension.
static bool is_topk(const kl_comp *c, const kl_instr *in) {
  const kl_shape *s = in->shape;
  if (in->noperands != 1 || in->ncalled > 1 || s->dtype != KILN_TUPLE || s->nelems != 2) return false;
  const kl_shape *from = kl_operand(c, in, 0)->shape, *values = s->elems[0], *indices = s->elems[1];
  bool fits = kl_shape_is_array(from) && (kl_is_int(from->dtype) || kl_is_float(from->dtype)) && from->rank > 0 &&
              values->dtype == from->dtype && indices->dtype == KILN_S32 && values->rank == from->rank &&
              indices->rank == from->rank && !from->dynamic;
  for (uint32_t d = 0; fits && d < from->rank; d++)
    fits = values->dims[d] == indices->dims[d] &&
           (d + 1 < from->rank ? values->dims[d] == from->dims[d] : values->dims[d] <= from->dims[d]);
  return fits;
}

static bool is_buffer(const kl_instr *in) {
  return in->noperands == 0 && kl_shape_is_array(in->shape) && !in->shape->dynamic;
}

// --- matrices -------------------------------------------------------------------------------------------------------

// A configuration is a dictionary as MLIR writes it, {diag = 78 : ui8, uplo = 76 : ui8}; its values here are letters
// and truths. What is read of it is the text from there on.
static void skip_space(kl_str *s) {
  while (s->n && *s->p == ' ') s->p++, s->n--;
}

static bool take(kl_str *s, const char *what) {
  size_t n = strlen(what);
  skip_space(s);
  if (!begins(*s, what)) return false;
  s->p += n, s->n -= n;
  return true;
}

static kl_str take_name(kl_str *s) {
  skip_space(s);
  kl_str name = {s->p, 0};
  while (name.n < s->n && kl_is_name_char(s->p[name.n])) name.n++;
  s->p += name.n, s->n -= name.n;
  return name;
}

// A letter by its code, a truth as 1 or 0; -1: it is neither.
static int take_value(kl_str *s) {
  int64_t code = 0;
  kl_str v = take_name(s);
  if (kl_str_is(v, "true")) return 1;
  if (kl_str_is(v, "false")) return 0;
  for (size_t i = 0; i < v.n; i++) {
    if (v.p[i] < '0' || v.p[i] > '9' || code > 255) return -1;
    code = 10 * code + v.p[i] - '0';
  }
  if (v.n && take(s, ":")) take_name(s);
  return v.n && code < 256 ? (int)code : -1;
}

// An entry, and the two values that it may have: for false and for true.
typedef struct entry {
  const char *name;
  int values[2];
  int third; // 0: there is none
} entry;
static const entry of_potrf[] = {{"uplo", {'U', 'L'}, 0}}, of_solver[] = {{"lower", {0, 1}, 0}},
                   of_trsm[] = {{"uplo", {'U', 'L'}, 0},
                                {"side", {'R', 'L'}, 0},
                                {"diag", {'N', 'U'}, 0},
                                {"trans_x", {'N', 'T'}, 'C'}};
enum { UPLO, SIDE, DIAG, TRANS, MOST_ENTRIES };

// Which value each entry has, 0 to 2. False: there is another entry, or another value, or one is missing.
static bool read_entries(kl_str config, const entry *e, unsigned n, int *which) {
  unsigned found = 0;
  if (!take(&config, "{")) return false;
  for (bool more = true; more; more = take(&config, ",")) {
    kl_str name = take_name(&config);
    unsigned i = 0;
    while (i < n && !kl_str_is(name, e[i].name)) i++;
    if (i == n || found >> i & 1 || !take(&config, "=")) return false;
    int v = take_value(&config);
    which[i] = v == e[i].values[0] ? 0 : v == e[i].values[1] ? 1 : v > 0 && v == e[i].third ? 2 : -1;
    if (which[i] < 0) return false;
    found |= 1u << i;
  }
  return take(&config, "}") && config.n == 0 && found == (1u << n) - 1;
}

static kl_str config_of(const kl_instr *in) {
  for (uint32_t i = 0; i < in->nraw; i++)
    if (kl_str_is(in->raw[i].key, "backend_config")) return in->raw[i].value;
  return (kl_str){0};
}

static bool attributes(const kl_instr *in, kl_more *more) {
  int which[MOST_ENTRIES] = {0};
  kl_str config = config_of(in);
  *more = kl_no_more;
  if (kl_custom_named(in) == KL_CUSTOM_POTRF) {
    bool lapack = begins(unquoted(in), "lapack");
    if (!read_entries(config, lapack ? of_potrf : of_solver, 1, which)) return false;
  } else if (!read_entries(config, of_trsm, KL_COUNT(of_trsm), which)) {
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

// Matrices of its type, whose rows and columns an s32 counts.
static bool are_matrices(const kl_shape *s, kl_dtype t) {
  return kl_shape_is_array(s) && s->rank >= 2 && !s->dynamic && s->dims[s->rank - 1] < INT32_MAX &&
         s->dims[s->rank - 2] < INT32_MAX &&
         (t == KILN_TUPLE ? s->dtype == KILN_F32 || s->dtype == KILN_F64 || kl_is_complex(s->dtype) : s->dtype == t);
}

static bool are_square(const kl_shape *s, kl_dtype t) {
  return are_matrices(s, t) && s->dims[s->rank - 1] == s->dims[s->rank - 2];
}

static bool same_dims(uint32_t n, const int64_t *a, const int64_t *b) {
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
         info->rank == a->rank - 2 && same_dims(info->rank, info->dims, a->dims) && attributes(in, &more);
}

static bool is_trsm(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  kl_more more;
  if (in->noperands != 2) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *b = kl_operand(c, in, 1)->shape;
  uint32_t rank = a->rank;
  if (!are_square(a, t) || !kl_shape_compatible(b, in->shape) || b->dtype != a->dtype || b->rank != rank ||
      !attributes(in, &more) || !same_dims(rank - 2, a->dims, b->dims))
    return false;
  return b->dims[more.left_side ? rank - 2 : rank - 1] == a->dims[rank - 1];
}

static bool is_getrf(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  const kl_shape *s = in->shape;
  if (in->noperands != 1 || s->dtype != KILN_TUPLE || s->nelems != 3) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *pivots = s->elems[1], *info = s->elems[2];
  if (!are_matrices(a, t) || !kl_shape_compatible(a, s->elems[0])) return false;
  int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  return pivots->dtype == KILN_S32 && pivots->rank == a->rank - 1 && same_dims(a->rank - 2, pivots->dims, a->dims) &&
         pivots->dims[a->rank - 2] == (m < n ? m : n) && info->dtype == KILN_S32 && info->rank == a->rank - 2 &&
         same_dims(info->rank, info->dims, a->dims);
}

// Lists of `n` numbers, one for each matrix.
static bool are_taus(const kl_shape *s, const kl_shape *matrices, int64_t n) {
  return kl_shape_is_array(s) && !s->dynamic && s->dtype == matrices->dtype && s->rank == matrices->rank - 1 &&
         same_dims(s->rank - 1, s->dims, matrices->dims) && s->dims[s->rank - 1] == n;
}

static bool is_geqrf(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  const kl_shape *s = in->shape;
  if (in->noperands != 1 || s->dtype != KILN_TUPLE || s->nelems != 2) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape;
  if (!are_matrices(a, t) || !kl_shape_compatible(a, s->elems[0])) return false;
  int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  return are_taus(s->elems[1], a, m < n ? m : n);
}

// There are no more reflections than columns, nor those than rows.
static bool is_orgqr(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  if (in->noperands != 2) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *taus = kl_operand(c, in, 1)->shape;
  if (!are_matrices(a, t) || !kl_shape_compatible(a, in->shape) || !kl_shape_is_array(taus) || !taus->rank)
    return false;
  int64_t k = taus->dims[taus->rank - 1], n = a->dims[a->rank - 1];
  return are_taus(taus, a, k) && k <= n && n <= a->dims[a->rank - 2];
}

static bool is_permutation(const kl_comp *c, const kl_instr *in) {
  if (in->noperands != 1) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *s = in->shape;
  return kl_shape_is_array(a) && kl_shape_is_array(s) && a->rank > 0 && a->rank == s->rank && !a->dynamic &&
         !s->dynamic && a->dtype == KILN_S32 && s->dtype == KILN_S32 && same_dims(a->rank - 1, a->dims, s->dims) &&
         a->dims[a->rank - 1] <= s->dims[s->rank - 1] && s->dims[s->rank - 1] < INT32_MAX;
}

// --- kinds ----------------------------------------------------------------------------------------------------------

static const target *target_of(const kl_instr *in) {
  for (size_t i = 0; in->op == KL_OP_CUSTOM_CALL && i < KL_COUNT(targets); i++)
    if (kl_str_is(unquoted(in), targets[i].name)) return &targets[i];
  return NULL;
}

kl_custom kl_custom_named(const kl_instr *in) {
  const target *t = target_of(in);
  return t ? t->kind : KL_CUSTOM_UNKNOWN;
}

static bool fits(const kl_comp *c, const kl_instr *in, const target *t) {
  switch (t->kind) {
  case KL_CUSTOM_REMARK: return is_remark(c, in);
  case KL_CUSTOM_TOPK: return is_topk(c, in);
  case KL_CUSTOM_BUFFER: return is_buffer(in);
  case KL_CUSTOM_POTRF: return is_potrf(c, in, t->type);
  case KL_CUSTOM_TRSM: return is_trsm(c, in, t->type);
  case KL_CUSTOM_GETRF: return is_getrf(c, in, t->type);
  case KL_CUSTOM_PERMUTATION: return is_permutation(c, in);
  case KL_CUSTOM_GEQRF: return is_geqrf(c, in, t->type);
  case KL_CUSTOM_ORGQR: return is_orgqr(c, in, t->type);
  default: return false;
  }
}

kl_custom kl_custom_of(const kl_comp *c, const kl_instr *in) {
  const target *t = target_of(in);
  if (in->op != KL_OP_CUSTOM_CALL) return KL_CUSTOM_UNKNOWN;
  if (t && fits(c, in, t)) return t->kind;
  return t && t->kind < KL_CUSTOM_POTRF ? KL_CUSTOM_UNKNOWN
         : kl_custom_advice(in)         ? KL_CUSTOM_ADVISED
                                        : KL_CUSTOM_UNKNOWN;
}

// --- topk -----------------------------------------------------------------------------------------------------------

// A larger comparison is none that is looked at.
enum { MOST_STEPS = 24 };

// Which parameters each instruction is made of, by bit of their numbers.
static void find_origins(const kl_comp *c, unsigned *of) {
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    of[i] = in->op == KL_OP_PARAMETER ? 1u << (in->number & 31) : 0;
    for (uint32_t k = 0; k < in->noperands; k++) of[i] |= of[in->operands[k]];
  }
}

bool kl_custom_topk(const kiln_module *m, const kl_instr *in, bool *largest) {
  *largest = true;
  if (!in->ncalled) return true;
  const kl_comp *c = &m->comp[in->called[0]];
  const kl_instr *root = kl_root(c);
  unsigned of[MOST_STEPS];
  if (root->op != KL_OP_COMPARE || c->ninstr > MOST_STEPS) return false;
  *largest = root->direction == KL_GT || root->direction == KL_GE;
  bool ordered = *largest || root->direction == KL_LT || root->direction == KL_LE;
  find_origins(c, of);
  return ordered && of[root->operands[0]] == 1 && of[root->operands[1]] == 2;
}

// --- libraries ------------------------------------------------------------------------------------------------------

// Routines that frameworks call by way of these.
static const char *const libraries[] = {"lapack_", "blas_", "cusolver_", "cublas_", "hipsolver_", "hipblas_", "magma_"};
static const struct {
  const char *part, *advice;
} routines[] = {
    {"potrf", ("expected lapack_?potrf_ffi of square matrices of its type, with their s32 info and "
               "backend_config={uplo = 76 : ui8} or 85, cusolver_potrf_ffi with {lower = true}, or the op cholesky")},
    {"trsm", ("expected lapack_?trsm_ffi of square matrices of its type and what is solved for, with letters diag, "
              "side, trans_x and uplo in backend_config, or the op triangular-solve")},
    {"getrf", ("expected an LU decomposition by lapack_?getrf_ffi of matrices of its type, with their s32 pivots and "
               "info, or cusolver_getrf_ffi")},
    {"geqrf", ("expected a QR decomposition by lapack_?geqrf_ffi of matrices of its type, with as many taus as columns "
               "or rows, or cusolver_geqrf_ffi")},
    {"orgqr",
     ("expected columns of a QR decomposition by lapack_?orgqr_ffi (cusolver_orgqr_ffi) of the vectors and taus "
      "of geqrf")},
    {"ungqr",
     ("expected columns of a QR decomposition by lapack_?ungqr_ffi (cusolver_orgqr_ffi) of the vectors and taus "
      "of geqrf")},
    {"geqp3", "expected a QR decomposition that is computed elsewhere and given as a parameter"},
    {"ges", ("expected singular values that are computed elsewhere and given as a parameter, or by products and "
             "Cholesky decompositions (jax.lax.linalg.svd, algorithm=POLAR)")},
    {"ev", "expected eigenvalues that are computed elsewhere and given as a parameter"},
    {"gees", "expected a Schur decomposition that is computed elsewhere and given as a parameter"},
    {"hrd", "expected a Hessenberg decomposition that is computed elsewhere and given as a parameter"},
    {"trd", "expected a tridiagonal form that is computed elsewhere and given as a parameter"},
    {"gtsv", "expected tridiagonal systems that are solved elsewhere and given as a parameter"},
};
static const struct {
  const char *target, *advice;
} others[] = {
    {"__cublas$", "expected the op dot, as modules have it before XLA optimises them for a GPU"},
    {"__cudnn$conv", "expected the op convolution, as modules have it before XLA optimises them for a GPU"},
    {"__cudnn$", "expected the ops that XLA made this of, as modules have them before it optimises them for a GPU"},
    {"__onednn$", "expected the ops that XLA made this of, as modules have them before it optimises them for a CPU"},
    {"cu_threefry2x32", "expected random bits in ops, as jax_threefry_gpu_kernel_lowering=False has them"},
    {"xla_ffi_python_", "expected no callback to Python: its results may be parameters"},
    {"xla_python_", "expected no callback to Python: its results may be parameters"},
    {"tpu_custom_call", "expected ops, not a kernel for another kind of device"},
    {"__gpu$xla.gpu.triton", "expected ops, not a kernel for another kind of device"},
};

const char *kl_custom_advice(const kl_instr *in) {
  kl_str t = unquoted(in);
  for (size_t i = 0; i < KL_COUNT(targets); i++)
    if (targets[i].kind == KL_CUSTOM_REMARK && kl_str_is(t, targets[i].name))
      return "expected a result like its operand, as one device has it";
  for (size_t i = 0; i < KL_COUNT(others); i++)
    if (begins(t, others[i].target)) return others[i].advice;
  for (size_t i = 0; i < KL_COUNT(libraries); i++)
    for (size_t k = 0; begins(t, libraries[i]) && k < KL_COUNT(routines); k++)
      if (has(t, routines[k].part)) return routines[k].advice;
  return NULL;
}
