// Other calls of a GPU's libraries.
#include "ir/custom/room.h"

#include "ir/attrs.h"

static const kl_shape *shape(const kl_comp *c, const kl_instr *in, uint32_t i) {
  return kl_operand(c, in, i)->shape;
}

// --- triangular-solve -----------------------------------------------------------------------------------------------

static bool read_solve(const kl_instr *in, kl_more *more, kl_fault *f) {
  kl_json config;
  if (!kl_xla_config(in, "triangular_solve_options", &config, f)) return false;
  *more = kl_no_more;
  kl_json v = kl_json_member(config, "transpose_a");
  int64_t op = KL_NO_TRANSPOSE;
  while (op < 3 && v.text.n && !kl_str_is(kl_json_string(v), kl_triangle_op_names[op])) op++;
  if (op == 3) return kl_faulty(f, "expected NO_TRANSPOSE, TRANSPOSE or ADJOINT as transpose_a", v.text);
  more->transpose_a = (kl_triangle_op)op;
  return kl_xla_truth(config, "left_side", &more->left_side, "expected true or false as left_side", f) &&
         kl_xla_truth(config, "lower", &more->lower, "expected true or false as lower", f) &&
         kl_xla_truth(config, "unit_diagonal", &more->unit_diagonal, "expected true or false as unit_diagonal", f);
}

static bool is_solve(const kl_comp *c, const kl_instr *in, kl_fault *f) {
  bool spare;
  kl_more more;
  const kl_shape *to = kl_xla_result(in, 1, &spare);
  if (!to || in->noperands != 2 || !kl_xla_is_array(shape(c, in, 0)) || !kl_shape_compatible(shape(c, in, 1), to))
    return kl_faulty(f, "expected (matrices, what is solved for), and a result like the latter", (kl_str){0});
  if (!read_solve(in, &more, f)) return false;
  const kl_shape *a = shape(c, in, 0);
  uint32_t rank = a->rank;
  bool fits = rank >= 2 && to->rank == rank && a->dtype == to->dtype &&
              (kl_is_float(a->dtype) || kl_is_complex(a->dtype)) && a->dims[rank - 1] == a->dims[rank - 2] &&
              a->dims[rank - 1] == to->dims[more.left_side ? rank - 2 : rank - 1];
  for (uint32_t d = 0; fits && d + 2 < rank; d++) fits = a->dims[d] == to->dims[d];
  return fits || kl_faulty(f, "expected square matrices of the result's type, batches and order", (kl_str){0});
}

// --- ThreeFry -------------------------------------------------------------------------------------------------------

static bool is_three_fry(const kl_comp *c, const kl_instr *in, kl_fault *f) {
  const kl_shape *s = in->shape;
  bool fits = in->noperands == 4 && s->dtype == KILN_TUPLE && s->nelems == 2;
  for (uint32_t i = 0; fits && i < 6; i++) {
    const kl_shape *each = i < 4 ? shape(c, in, i) : s->elems[i - 4];
    fits = kl_xla_is_array(each) && each->dtype == KILN_U32 && kl_shape_same_dims(each, s->elems[0]);
  }
  return fits || kl_faulty(f, "expected four arrays of u32 that are alike, and two results like them", (kl_str){0});
}

bool kl_xla_other(const kl_comp *c, const kl_instr *in, kl_fault *f) {
  return kl_custom_named(in) == KL_CUSTOM_SOLVE ? is_solve(c, in, f) : is_three_fry(c, in, f);
}

bool kl_custom_solve(const kl_instr *in, kl_more *more) {
  kl_fault f = {0};
  return read_solve(in, more, &f);
}
