// Singular value decompositions, as LAPACK's and cuSOLVER's routines take and give them.
#include "ir/custom/room.h"

static const kl_custom_entry of_lapack[] = {{"mode", {'A', 'S'}, 'N'}}, of_solver[] = {{"compute_uv", {0, 1}, 0},
                                                                                       {"full_matrices", {0, 1}, 0},
                                                                                       {"transposed", {0, 1}, 0}};
enum { VECTORS, FULL, TRANSPOSED, MOST_ENTRIES };

static bool form_of(const kl_instr *in, kl_svd *form) {
  int which[MOST_ENTRIES] = {0};
  kl_str target = kl_custom_target(in), config = kl_custom_config(in);
  *form = (kl_svd){.u = 2, .v = 3, .adjoint = true};
  if (kl_custom_begins(target, "lapack")) {
    if (!kl_custom_read_entries(config, of_lapack, 1, which)) return false;
    form->vectors = which[0] < 2;
    form->full = which[0] == 0;
    return true;
  }
  bool jacobi = kl_custom_has(target, "gesvdj") || kl_custom_has(target, "gesvdp");
  if (!kl_custom_read_entries(config, of_solver, jacobi ? 2 : 3, which)) return false;
  form->vectors = which[VECTORS];
  form->full = which[FULL];
  form->adjoint = !jacobi;
  if (which[TRANSPOSED]) form->u = 3, form->v = 2;
  return true;
}

void kl_custom_svd(const kl_instr *in, kl_svd *form) {
  form_of(in, form);
}

static bool is_matrix(const kl_shape *s, const kl_shape *a, int64_t rows, int64_t columns) {
  return kl_shape_is_array(s) && !s->dynamic && s->dtype == a->dtype && s->rank == a->rank &&
         kl_custom_same_dims(s->rank - 2, s->dims, a->dims) && s->dims[s->rank - 2] == rows &&
         s->dims[s->rank - 1] == columns;
}

bool kl_custom_fits_svd(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  const kl_shape *s = in->shape;
  kl_svd form;
  if (in->noperands != 1 || s->dtype != KILN_TUPLE || s->nelems != 5 || !form_of(in, &form)) return false;
  const kl_shape *a = kl_operand(c, in, 0)->shape, *u = s->elems[form.u], *v = s->elems[form.v];
  if (!kl_custom_are_matrices(a, t) || !kl_shape_compatible(a, s->elems[0])) return false;
  int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1], k = m < n ? m : n;
  if (!kl_custom_are_values(s->elems[1], a, k) || !kl_custom_is_info(s->elems[4], a)) return false;
  if (!kl_custom_has_room(a, k + 1, 2 * k)) return false;
  // Of what is not computed there may be anything.
  if (!form.vectors)
    return kl_shape_is_array(u) && kl_shape_is_array(v) && !u->dynamic && !v->dynamic && u->dtype == a->dtype &&
           v->dtype == a->dtype;
  int64_t columns = form.full ? m : k, rows = form.full ? n : k;
  return is_matrix(u, a, m, columns) && (form.adjoint ? is_matrix(v, a, rows, n) : is_matrix(v, a, n, rows));
}
