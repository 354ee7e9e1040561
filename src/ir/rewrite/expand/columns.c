#include "ir/rewrite/expand/columns.h"

int64_t kl_batches(const kl_shape *s, uint32_t own) {
  int64_t n = 1;
  for (uint32_t d = 0; d + own < s->rank; d++) n *= s->dims[d];
  return n;
}

kl_columns kl_columns_of(const kl_shape *s) {
  int64_t m = s->dims[s->rank - 2], n = s->dims[s->rank - 1];
  return (kl_columns){kl_batches(s, 2), m, n, m < n ? m : n};
}

kl_round kl_round_begin(kl_graph *g, kl_columns z, uint32_t k) {
  return (kl_round){g, z, k, kl_graph_iota(g, KILN_S32, 2, (int64_t[]){z.b, z.m}, 1)};
}

uint32_t kl_everywhere(const kl_round *x, uint32_t scalar, uint32_t like) {
  const kl_shape *s = kl_graph_shape(x->g, like);
  return kl_graph_broadcast(x->g, scalar, s->rank, s->dims, NULL);
}

uint32_t kl_against(const kl_round *x, kl_direction d, uint32_t a) {
  return kl_graph_compare(x->g, d, a, kl_everywhere(x, x->k, a));
}

uint32_t kl_of_batch(const kl_round *x, uint32_t v) {
  return kl_graph_broadcast(x->g, v, 2, (int64_t[]){x->z.b, x->z.m}, (int64_t[]){0});
}

uint32_t kl_along_rows(const kl_round *x, uint32_t of_row) {
  return kl_graph_broadcast(x->g, of_row, 3, (int64_t[]){x->z.b, x->z.m, x->z.n}, (int64_t[]){0, 1});
}

uint32_t kl_along_columns(const kl_round *x, uint32_t of_column) {
  return kl_graph_broadcast(x->g, of_column, 3, (int64_t[]){x->z.b, x->z.m, x->z.n}, (int64_t[]){0, 2});
}

uint32_t kl_column(const kl_round *x, uint32_t a) {
  const kl_shape *s = kl_graph_shape(x->g, a);
  return kl_graph_reshape(x->g, kl_graph_dynamic_slice(x->g, a, 2, x->k, 1), 2, s->dims);
}

uint32_t kl_own(const kl_round *x, uint32_t list) {
  return kl_graph_reshape(x->g, kl_graph_dynamic_slice(x->g, list, 1, x->k, 1), 1, &x->z.b);
}

uint32_t kl_with_own(const kl_round *x, uint32_t list, uint32_t v) {
  int64_t dims[] = {x->z.b, x->z.steps};
  uint32_t is = kl_against(x, KL_EQ, kl_graph_iota(x->g, KILN_S32, 2, dims, 1));
  return kl_graph_select(x->g, is, kl_graph_broadcast(x->g, v, 2, dims, (int64_t[]){0}), list);
}

void kl_loop_over_columns(kl_graph *g, kl_columns z, const kl_shape *state,
                          uint32_t round(kl_graph *g, kl_columns z, uint32_t state)) {
  if (!z.steps || kl_graph_loop(g, state)) return;
  kl_graph_begin(g);
  uint32_t k = kl_graph_element(g, kl_graph_parameter(g, 0, state, "state"), 0);
  uint32_t condition = kl_graph_end(g, "is_left", kl_graph_compare_with(g, KL_LT, k, z.steps));
  kl_graph_begin(g);
  uint32_t body = kl_graph_end(g, "column", round(g, z, kl_graph_parameter(g, 0, state, "state")));
  kl_graph_add_loop(g, state, condition, body);
}
