// Finds a scatter and what its dimension numbers say.

#include "lower/choose/scatter/scatter.h"

uint32_t kl_scatter_results(const kl_choosing *c) {
  return c->slots.nargs - (uint32_t)kl_shape_leaf_count(kl_root(c->plan->comp)->shape);
}

// The only scatter of the computation; NULL: there is none, or several.
static const kl_instr *only_scatter(const kl_comp *c, uint32_t *found) {
  const kl_instr *in = NULL;
  *found = 0;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    if (c->instr[i].op != KL_OP_SCATTER) continue;
    in = &c->instr[i];
    ++*found;
  }
  return *found == 1 ? in : NULL;
}

static int place_in(kl_ints list, int64_t d) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.p[i] == d) return (int)i;
  return -1;
}

// The updates' dims that are no window's are the indices' but for that of the vectors, in order.
static void find_batch(kl_scatter *x, const kl_more *m) {
  uint32_t of_indices = 0;
  for (uint32_t d = 0; d < x->updates->rank; d++) {
    if (place_in(m->offset_dims, d) >= 0) continue;
    of_indices += of_indices == m->index_vector_dim;
    int k = place_in(m->indices_batching_dims, of_indices++);
    x->batched[x->nbatch] = k >= 0;
    if (k >= 0) x->batching[m->operand_batching_dims.p[k]] = (int)x->nbatch;
    x->batch[x->nbatch++] = d;
  }
}

static void find_windows(kl_scatter *x) {
  const kl_more *m = x->instr->more;
  for (uint32_t d = 0, k = 0; d < x->array->rank; d++) {
    bool gone = place_in(m->collapsed_dims, d) >= 0 || place_in(m->operand_batching_dims, d) >= 0;
    x->window[d] = gone ? -1 : (int)m->offset_dims.p[k++];
    x->size[d] = gone ? 1 : x->updates->dims[x->window[d]];
    x->entry[d] = place_in(m->start_index_map, d);
    x->batching[d] = -1;
  }
  find_batch(x, m);
}

static const char *check_combiner(const kl_comp *c, const kl_scatter *x) {
  if (x->n > KL_MOST_SCATTERED) return "it has more than 32 arrays";
  for (uint32_t i = 0; i < 2 * x->n; i++)
    if (x->by->instr[x->by->params[i]].shape->dtype != kl_operand(c, x->instr, i % x->n)->shape->dtype)
      return "its combiner is of another type than its arrays";
  return NULL;
}

static bool has_dims(const kl_shape *a, const kl_shape *b) {
  return a->rank == b->rank && (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

kiln_status kl_find_scatter(kl_choosing *c, kl_scatter *out, const char **why_not) {
  const kl_comp *comp = c->plan->comp;
  uint32_t n;
  *out = (kl_scatter){.instr = only_scatter(comp, &n)};
  *why_not = n ? "there are several" : "";
  if (!out->instr) return KILN_OK;
  out->number = (uint32_t)(out->instr - comp->instr);
  out->n = (out->instr->noperands - 1u) / 2;
  out->by = &c->plan->module->comp[out->instr->called[0]];
  out->array = kl_operand(comp, out->instr, 0)->shape;
  out->indices = kl_operand(comp, out->instr, out->n)->shape;
  out->updates = kl_operand(comp, out->instr, out->n + 1)->shape;
  *why_not = check_combiner(comp, out);
  if (*why_not) return KILN_OK;
  for (uint32_t i = kl_scatter_results(c); i < c->slots.nargs; i++)
    if (!has_dims(c->slots.v.p[i].shape, out->array)) *why_not = "a result has other dimensions than its arrays";
  find_windows(out);
  return KILN_OK;
}
