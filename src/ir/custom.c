// Targets of custom calls, by name.
#include "ir/custom.h"

typedef struct target {
  const char *name;
  kl_custom kind;
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

kl_custom kl_custom_of(const kl_comp *c, const kl_instr *in) {
  kl_custom kind = KL_CUSTOM_UNKNOWN;
  if (in->op != KL_OP_CUSTOM_CALL) return kind;
  for (size_t i = 0; i < KL_COUNT(targets); i++)
    if (kl_str_is(unquoted(in), targets[i].name)) kind = targets[i].kind;
  bool fits = kind == KL_CUSTOM_REMARK ? is_remark(c, in)
              : kind == KL_CUSTOM_TOPK ? is_topk(c, in)
                                       : kind != KL_CUSTOM_BUFFER || is_buffer(in);
  if (!fits) return KL_CUSTOM_UNKNOWN;
  return kind == KL_CUSTOM_UNKNOWN && kl_custom_advice(in) ? KL_CUSTOM_ADVISED : kind;
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
    {"potrf", "expected the op cholesky, as a lowering for another platform has it (jax.export, platforms=[\"tpu\"])"},
    {"trsm", ("expected the op triangular-solve, as a lowering for another platform has it (jax.export, "
              "platforms=[\"tpu\"])")},
    {"getrf", "expected an LU decomposition that is computed elsewhere and given as a parameter"},
    {"geqrf", "expected a QR decomposition that is computed elsewhere and given as a parameter"},
    {"orgqr", "expected a QR decomposition that is computed elsewhere and given as a parameter"},
    {"ungqr", "expected a QR decomposition that is computed elsewhere and given as a parameter"},
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
