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

// --- sorts ----------------------------------------------------------------------------------------------------------

// {descending = false, batch_size = 1 : i64}, or JSON in older modules.
static bool read_sort(const kl_instr *in, bool *descending, kl_fault *f) {
  kl_json config;
  if (kl_custom_read_truth(kl_custom_config(in), "descending", descending)) return true;
  const char *expected = "expected true or false as descending";
  return kl_xla_config(in, "sort_options", &config, f) && kl_xla_truth(config, "descending", descending, expected, f);
}

static bool is_sort(const kl_comp *c, const kl_instr *in, kl_fault *f) {
  bool spare, descending, fits = in->noperands == 1 || in->noperands == 2;
  const kl_shape *to = kl_xla_result(in, in->noperands, &spare), *s = in->shape;
  for (uint32_t i = 0; fits && to && i < in->noperands; i++) {
    const kl_shape *a = shape(c, in, i), *r = s->dtype == KILN_TUPLE ? s->elems[i] : s;
    fits = kl_xla_is_array(a) && kl_shape_compatible(a, r) && kl_shape_same_dims(a, to) && a->rank > 0;
  }
  if (!fits || !to || !(kl_is_int(to->dtype) || kl_is_float(to->dtype)))
    return kl_faulty(f, "expected keys, maybe an array beside them, and results like these", (kl_str){0});
  return read_sort(in, &descending, f);
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
  switch (kl_custom_named(in)) {
  case KL_CUSTOM_SOLVE: return is_solve(c, in, f);
  case KL_CUSTOM_SORT: return is_sort(c, in, f);
  default: return is_three_fry(c, in, f);
  }
}

bool kl_custom_sort(const kl_instr *in, bool *descending) {
  kl_fault f = {0};
  return read_sort(in, descending, &f);
}

bool kl_custom_solve(const kl_instr *in, kl_more *more) {
  kl_fault f = {0};
  return read_solve(in, more, &f);
}
