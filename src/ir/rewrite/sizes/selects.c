// select-and-scatter along dynamic dimensions: which place each window selects, as the windows of a reduction of
// elements that are there and of their places; and a scatter to these.
#include "ir/rewrite/sizes/room.h"

bool kl_size_picks(const kl_instr *in, const kl_shape *s) {
  bool any = false;
  for (uint32_t d = 0; in->op == KL_OP_SELECT_AND_SCATTER && d < s->rank; d++)
    any |= s->dynamic && s->dynamic[d] && !kl_size_is_each(&in->more->window[d]);
  return any;
}

// (p, v, i), (q, w, j): where both are there, the one that select(v, w) says; else the one that is.
uint32_t kl_size_make_pick(kl_graph *g, uint32_t select) {
  const kl_comp *c = &g->m->comp[select];
  kl_dtype types[3] = {KILN_PRED, c->instr[c->params[0]].shape->dtype, KILN_S64};
  uint32_t v[6], out[3];
  kl_graph_begin(g);
  for (uint32_t k = 0; k < 6; k++)
    v[k] = kl_graph_parameter(g, k, kl_graph_array(g, types[k % 3], 0, NULL), k < 3 ? "a" : "b");
  uint32_t first = kl_graph_call(g, select, 2, (uint32_t[]){v[1], v[4]});
  first = kl_graph_binary(g, KL_OP_OR, first, kl_graph_unary(g, KL_OP_NOT, v[3]));
  first = kl_graph_binary(g, KL_OP_AND, first, v[0]);
  out[0] = kl_graph_binary(g, KL_OP_OR, v[0], v[3]);
  for (uint32_t k = 1; k < 3; k++) out[k] = kl_graph_select(g, first, v[k], v[3 + k]);
  return kl_graph_end(g, "pick", kl_graph_tuple(g, 3, out));
}

// Of each window the place of the element that it selects, in the array without dimensions; -1 where it has none.
static uint32_t selected(kl_sizing *z, const kl_extents *x) {
  kl_graph *g = z->g;
  const kl_shape *s = kl_size_known(z, z->shapes[0]), *to = kl_size_known(z, z->shapes[1]), *shapes[3];
  uint32_t pick = z->called->picks[z->in->called[0]] - 1;
  const kl_shape *acc = kl_root(&g->m->comp[pick])->shape;
  uint32_t values[6], there = kl_size_there(z, s, x);
  values[0] = there == KL_WHOLE ? kl_graph_number(g, KILN_PRED, 1, s->rank, s->dims) : there;
  values[1] = z->values[0];
  values[2] = kl_graph_reshape(g, kl_graph_iota(g, KILN_S64, 1, &s->count, 0), s->rank, s->dims);
  for (uint32_t k = 0; k < 3; k++) {
    shapes[k] = kl_graph_array(g, acc->elems[k]->dtype, to->rank, to->dims);
    values[3 + k] = kl_graph_number(g, acc->elems[k]->dtype, 0, 0, NULL);
  }
  kl_instr in = {.op = KL_OP_REDUCE_WINDOW, .more = z->in->more, .given = 1 | 2, .ncalled = 1};
  in.shape = kl_shape_tuple(g->m, 3, shapes);
  in.called = kl_arena_dup(&g->m->arena, &pick, sizeof pick);
  uint32_t all = kl_size_emit(z, in, 6, values), at = kl_graph_element(g, all, 2);
  return kl_graph_select(g, kl_graph_element(g, all, 0), at, kl_graph_number_like(g, at, -1));
}

// Sources at these places of an array of the initial value.
static uint32_t scattered(kl_sizing *z, uint32_t places) {
  kl_graph *g = z->g;
  const kl_shape *s = kl_size_known(z, z->shapes[0]);
  int64_t *first = KL_NEW_N(&g->m->arena, int64_t, 1);
  uint32_t values[3] = {kl_graph_broadcast(g, z->values[2], 1, &s->count, NULL), kl_graph_flat(g, places),
                        kl_graph_flat(g, z->values[1])};
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  *more = kl_no_more;
  more->collapsed_dims = more->start_index_map = (kl_ints){1, first};
  more->index_vector_dim = 1;
  kl_instr in = {.op = KL_OP_SCATTER, .more = more, .given = 1 | 2 | 4 | 32 | 256, .ncalled = 1};
  in.shape = kl_graph_shape(g, values[0]);
  in.called = kl_arena_dup(&g->m->arena, &z->in->called[1], sizeof *in.called);
  return kl_graph_reshape(g, kl_size_emit(z, in, 3, values), s->rank, s->dims);
}

uint32_t kl_size_select(kl_sizing *z) {
  const kl_shape *s = z->shapes[0];
  kl_extents sources;
  bool picks = false;
  for (uint32_t d = 0; d < s->rank; d++) {
    bool each = kl_size_is_each(&z->in->more->window[d]);
    z->out->of[d] = kl_extent(z, 0, d);
    if (each) z->out->of[d] = kl_size_least(z, z->out->of[d], kl_extent(z, 1, d));
    sources.of[d] = each ? KL_WHOLE : kl_extent(z, 1, d);
    picks |= !each && (z->out->of[d] != KL_WHOLE || sources.of[d] != KL_WHOLE);
  }
  if (!picks) return kl_size_keep(z);
  if (!kl_size_picks(z->in, s)) return kl_size_refuse(z, "a source of the size of the windows that there are");
  uint32_t places = selected(z, z->out);
  places = kl_size_mask(z, places, &sources, kl_graph_number(z->g, KILN_S64, -1, 0, NULL));
  return s->count ? scattered(z, places) : kl_size_keep(z);
}
