// Targets of custom calls, by name.
#include "ir/custom/room.h"

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
    {"lapack_sgeqp3_ffi", KL_CUSTOM_GEQP3, KILN_F32},
    {"lapack_dgeqp3_ffi", KL_CUSTOM_GEQP3, KILN_F64},
    {"lapack_cgeqp3_ffi", KL_CUSTOM_GEQP3, KILN_C64},
    {"lapack_zgeqp3_ffi", KL_CUSTOM_GEQP3, KILN_C128},
    {"cuhybrid_geqp3", KL_CUSTOM_GEQP3, KILN_TUPLE},
    {"lapack_sgtsv_ffi", KL_CUSTOM_GTSV, KILN_F32},
    {"lapack_dgtsv_ffi", KL_CUSTOM_GTSV, KILN_F64},
    {"lapack_cgtsv_ffi", KL_CUSTOM_GTSV, KILN_C64},
    {"lapack_zgtsv_ffi", KL_CUSTOM_GTSV, KILN_C128},
    {"cusparse_gtsv2_ffi", KL_CUSTOM_GTSV, KILN_TUPLE},
    {"hipsparse_gtsv2_ffi", KL_CUSTOM_GTSV, KILN_TUPLE},
    {"lapack_ssyevd_ffi", KL_CUSTOM_EIGH, KILN_F32},
    {"lapack_dsyevd_ffi", KL_CUSTOM_EIGH, KILN_F64},
    {"lapack_cheevd_ffi", KL_CUSTOM_EIGH, KILN_C64},
    {"lapack_zheevd_ffi", KL_CUSTOM_EIGH, KILN_C128},
    {"cusolver_syevd_ffi", KL_CUSTOM_EIGH, KILN_TUPLE},
    {"hipsolver_syevd_ffi", KL_CUSTOM_EIGH, KILN_TUPLE},
    {"lapack_sgesdd_ffi", KL_CUSTOM_SVD, KILN_F32},
    {"lapack_dgesdd_ffi", KL_CUSTOM_SVD, KILN_F64},
    {"lapack_cgesdd_ffi", KL_CUSTOM_SVD, KILN_C64},
    {"lapack_zgesdd_ffi", KL_CUSTOM_SVD, KILN_C128},
    {"lapack_sgesvd_ffi", KL_CUSTOM_SVD, KILN_F32},
    {"lapack_dgesvd_ffi", KL_CUSTOM_SVD, KILN_F64},
    {"lapack_cgesvd_ffi", KL_CUSTOM_SVD, KILN_C64},
    {"lapack_zgesvd_ffi", KL_CUSTOM_SVD, KILN_C128},
    {"cusolver_gesvdj_ffi", KL_CUSTOM_SVD, KILN_TUPLE},
    {"cusolver_gesvd_ffi", KL_CUSTOM_SVD, KILN_TUPLE},
    {"cusolver_gesvdp_ffi", KL_CUSTOM_SVD, KILN_TUPLE},
    {"hipsolver_gesvdj_ffi", KL_CUSTOM_SVD, KILN_TUPLE},
    {"hipsolver_gesvd_ffi", KL_CUSTOM_SVD, KILN_TUPLE},
    {"hipsolver_gesdd_ffi", KL_CUSTOM_SVD, KILN_TUPLE},
    {"cu_lu_pivots_to_permutation", KL_CUSTOM_PERMUTATION},
    {"hip_lu_pivots_to_permutation", KL_CUSTOM_PERMUTATION},
    {"__cublas$gemm", KL_CUSTOM_GEMM},
    {"__cublas$lt$matmul", KL_CUSTOM_GEMM},
    {"__cublas$lt$matmul$f8", KL_CUSTOM_GEMM_F8},
    {"__cublas$triangularSolve", KL_CUSTOM_SOLVE},
    {"__cudnn$convForward", KL_CUSTOM_CONV},
    {"__cudnn$convBackwardInput", KL_CUSTOM_CONV_INPUT},
    {"__cudnn$convBackwardFilter", KL_CUSTOM_CONV_KERNEL},
    {"__cudnn$convBiasActivationForward", KL_CUSTOM_CONV_BIAS},
    {"__cudnn$convForwardGraph", KL_CUSTOM_CONV_STEPS},
    {"__cudnn$fmhaSoftmax", KL_CUSTOM_ATTENTION},
    {"__cudnn$fmhaScaleBiasSoftmax", KL_CUSTOM_ATTENTION},
    {"__cudnn$fmhaSoftmaxBackward", KL_CUSTOM_ATTENTION},
    {"__cudnn$fmhaScaleBiasSoftmaxBackward", KL_CUSTOM_ATTENTION},
    {"__cub$DeviceRadixSort", KL_CUSTOM_SORT},
    {"__cub$DeviceRadixSortUnassignedScratchSize", KL_CUSTOM_SORT},
    {"xla.gpu.ext.cub_sort_unassigned_scratch_size", KL_CUSTOM_SORT},
    {"xla.gpu.ext.cub_sort_keys", KL_CUSTOM_SORT},
    {"xla.gpu.ext.cub_sort_pairs", KL_CUSTOM_SORT},
    {"cu_threefry2x32", KL_CUSTOM_THREE_FRY},
    {"cu_threefry2x32_ffi", KL_CUSTOM_THREE_FRY},
    {"hip_threefry2x32", KL_CUSTOM_THREE_FRY},
    {"hip_threefry2x32_ffi", KL_CUSTOM_THREE_FRY},
};

kl_str kl_custom_target(const kl_instr *in) {
  kl_str t = in->more->target;
  return t.n < 2 ? (kl_str){t.p, 0} : (kl_str){t.p + 1, t.n - 2};
}

bool kl_custom_begins(kl_str s, const char *with) {
  size_t n = strlen(with);
  return s.n >= n && memcmp(s.p, with, n) == 0;
}

bool kl_custom_has(kl_str s, const char *part) {
  for (size_t i = 0, n = strlen(part); i + n <= s.n; i++)
    if (memcmp(s.p + i, part, n) == 0) return true;
  return false;
}

kl_str kl_custom_config(const kl_instr *in) {
  for (uint32_t i = 0; i < in->nraw; i++)
    if (kl_str_is(in->raw[i].key, "backend_config")) return in->raw[i].value;
  return (kl_str){0};
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

// --- kinds ----------------------------------------------------------------------------------------------------------

static const target *target_of(const kl_instr *in) {
  for (size_t i = 0; in->op == KL_OP_CUSTOM_CALL && i < KL_COUNT(targets); i++)
    if (kl_str_is(kl_custom_target(in), targets[i].name)) return &targets[i];
  return NULL;
}

kl_custom kl_custom_named(const kl_instr *in) {
  const target *t = target_of(in);
  return t ? t->kind : KL_CUSTOM_UNKNOWN;
}

static bool fits_library(const kl_comp *c, const kl_instr *in, kl_fault *f) {
  kl_gemm gemm;
  kl_after conv;
  kl_conv_steps steps;
  kl_attention attention;
  switch (kl_custom_named(in)) {
  case KL_CUSTOM_GEMM:
  case KL_CUSTOM_GEMM_F8: return kl_xla_gemm(c, in, &gemm, f);
  case KL_CUSTOM_CONV:
  case KL_CUSTOM_CONV_INPUT:
  case KL_CUSTOM_CONV_KERNEL:
  case KL_CUSTOM_CONV_BIAS: return kl_xla_conv(c, in, &conv, f);
  case KL_CUSTOM_CONV_STEPS: return kl_xla_steps(c, in, &steps, f);
  case KL_CUSTOM_ATTENTION: return kl_xla_attention(c, in, &attention, f);
  default: return kl_xla_other(c, in, f);
  }
}

const char *kl_custom_fault(const kl_comp *c, const kl_instr *in, kl_str *found) {
  kl_fault f = {0};
  if (!kl_custom_is_library(kl_custom_named(in)) || fits_library(c, in, &f)) return NULL;
  *found = f.found;
  return f.expected;
}

static bool fits(const kl_comp *c, const kl_instr *in, const target *t) {
  kl_fault f = {0};
  if (kl_custom_is_library(t->kind)) return fits_library(c, in, &f);
  switch (t->kind) {
  case KL_CUSTOM_REMARK: return is_remark(c, in);
  case KL_CUSTOM_TOPK: return is_topk(c, in);
  case KL_CUSTOM_BUFFER: return is_buffer(in);
  default: return kl_custom_fits_lapack(c, in, t->kind, t->type);
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
