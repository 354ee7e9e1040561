// What to do about targets that are not compiled.
#include "ir/custom/room.h"

// Routines that frameworks call by way of these.
static const char *const libraries[] = {"lapack_",  "blas_",     "cusolver_",  "cublas_", "hipsolver_",
                                        "hipblas_", "cusparse_", "hipsparse_", "magma_"};
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
    {"geqp3",
     ("expected a QR decomposition by lapack_?geqp3_ffi of matrices of its type and s32 numbers of columns, with "
      "as many such numbers, and as many taus as columns or rows")},
    {"gees", "expected a Schur decomposition that is computed elsewhere and given as a parameter"},
    {"ges",
     ("expected singular values by lapack_?gesdd_ffi or lapack_?gesvd_ffi of matrices of its type, with (a, s, U, "
      "V^H, s32 info) and backend_config={mode = 65 : ui8}, 83 or 78, or cusolver_gesvdj_ffi with {compute_uv = "
      "true, full_matrices = true}")},
    {"syevd",
     ("expected eigenvalues by lapack_?syevd_ffi (?heevd_ffi) of square matrices of its type, with their real "
      "values, s32 info and backend_config={mode = 86 : ui8, uplo = 76 : ui8} or 85, or cusolver_syevd_ffi with "
      "{algorithm = 0 : ui8, lower = true}")},
    {"heevd", ("expected eigenvalues by lapack_?heevd_ffi of square matrices of its type, with their real values, s32 "
               "info and backend_config={mode = 86 : ui8, uplo = 76 : ui8} or 85, or cusolver_syevd_ffi with "
               "{algorithm = 0 : ui8, lower = true}")},
    {"ev", "expected eigenvalues that are computed elsewhere and given as a parameter"},
    {"hrd", "expected a Hessenberg decomposition that is computed elsewhere and given as a parameter"},
    {"trd", "expected a tridiagonal form that is computed elsewhere and given as a parameter"},
    {"gtsv",
     ("expected tridiagonal systems by lapack_?gtsv_ffi of three diagonals and right-hand sides of its type, with "
      "all four again and s32 info, or cusparse_gtsv2_ffi with the last alone")},
};
static const struct {
  const char *target, *advice;
} others[] = {
    {"__cublas$", "expected the op dot, as modules have it before XLA optimises them for a GPU"},
    {"__cudnn$conv", "expected the op convolution, as modules have it before XLA optimises them for a GPU"},
    {"__cudnn$", "expected the ops that XLA made this of, as modules have them before it optimises them for a GPU"},
    {"__onednn$", "expected the ops that XLA made this of, as modules have them before it optimises them for a CPU"},
    {"xla_ffi_python_", "expected no callback to Python: its results may be parameters"},
    {"xla_python_", "expected no callback to Python: its results may be parameters"},
    {"tpu_custom_call", "expected ops, not a kernel for another kind of device"},
    {"__gpu$xla.gpu.triton", "expected ops, not a kernel for another kind of device"},
};

const char *kl_custom_advice(const kl_instr *in) {
  kl_str t = kl_custom_target(in);
  if (kl_custom_named(in) == KL_CUSTOM_REMARK) return "expected a result like its operand, as one device has it";
  for (size_t i = 0; i < KL_COUNT(others); i++)
    if (kl_custom_begins(t, others[i].target)) return others[i].advice;
  for (size_t i = 0; i < KL_COUNT(libraries); i++)
    for (size_t k = 0; kl_custom_begins(t, libraries[i]) && k < KL_COUNT(routines); k++)
      if (kl_custom_has(t, routines[k].part)) return routines[k].advice;
  return NULL;
}
