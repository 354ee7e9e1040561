// From arrays to entries: the tree of levels, depth first.
#include "ir/sparse/store.h"

typedef struct walk {
  const kl_store *s;
  kl_visit *visit;
  void *arg;
  int64_t batch;
  int64_t starts[KL_MOST_LEVELS + 2]; // of this batch, by buffer
  int64_t levels[KL_MOST_LEVELS];     // values of level expressions
  const kl_aff *of[KL_MOST_LEVELS];   // these expressions; NULL where a level counts
} walk;

static uint64_t get(const walk *w, int32_t buffer, unsigned bits, int64_t i) {
  return kl_bits_get(w->s->arrays[buffer].data, bits, w->starts[buffer] + i);
}

// What is no element of the tensor, but the rest of a block, does not come back from its dimensions.
static bool comes_back(const walk *w, const int64_t *dims) {
  int64_t v;
  for (uint32_t l = 0; l < w->s->e->nlevels; l++)
    if (w->of[l] && (!kl_aff_eval(w->s->l->pool, w->of[l], &(kl_point){{dims}}, &v) || v != w->levels[l])) return false;
  return true;
}

static kiln_status visit_entry(walk *w, int64_t p) {
  const kl_store *s = w->s;
  int64_t dims[KL_MOST_LEVELS];
  kl_point at = {{w->levels}};
  for (uint32_t d = 0; d < s->e->ndims; d++) {
    if (!kl_aff_eval(s->l->pool, s->l->binding.dims[d], &at, &dims[d])) return KILN_OK;
    if (dims[d] < 0 || dims[d] >= s->l->type.sizes[d]) return KILN_OK;
  }
  if (!comes_back(w, dims)) return KILN_OK;
  return w->visit(w->arg, dims, w->starts[s->nbuffers - 1] + p);
}

static kiln_status walk_level(walk *w, uint32_t l, int64_t p);

static kiln_status walk_interval(walk *w, uint32_t l, int64_t p) {
  const kl_level_arrays *a = &w->s->of[l];
  int64_t scale = w->s->e->levels[l].format == KILN_LEVEL_LOOSE_COMPRESSED ? 2 : 1;
  int64_t end = (int64_t)get(w, a->positions, a->pos_bits, p * scale + 1);
  for (int64_t q = (int64_t)get(w, a->positions, a->pos_bits, p * scale); q < end; q++) {
    w->levels[l] =
        (int64_t)get(w, a->coordinates, a->crd_bits, q * a->columns + a->column) + w->s->l->binding.levels[l].lo;
    KL_TRY(walk_level(w, l + 1, q));
  }
  return KILN_OK;
}

static kiln_status walk_groups(walk *w, uint32_t l, int64_t p) {
  const kl_level_arrays *a = &w->s->of[l];
  const kl_level *at = &w->s->e->levels[l];
  kl_level_extent x = w->s->l->binding.levels[l];
  int64_t slots = (x.size / at->m + (x.size % at->m != 0)) * at->n;
  for (int64_t i = 0; i < slots; i++) {
    int64_t c = i / at->n * at->m + (int64_t)get(w, a->coordinates, a->crd_bits, p * slots + i);
    if (c >= x.size) continue;
    w->levels[l] = c + x.lo;
    KL_TRY(walk_level(w, l + 1, p * slots + i));
  }
  return KILN_OK;
}

static kiln_status walk_level(walk *w, uint32_t l, int64_t p) {
  if (l == w->s->e->nlevels) return visit_entry(w, p);
  const kl_level_arrays *a = &w->s->of[l];
  kl_level_extent x = w->s->l->binding.levels[l];
  switch (w->s->e->levels[l].format) {
  case KILN_LEVEL_DENSE:
    for (int64_t c = 0; c < x.size; c++) {
      w->levels[l] = c + x.lo;
      KL_TRY(walk_level(w, l + 1, p * x.size + c));
    }
    return KILN_OK;
  case KILN_LEVEL_SINGLETON:
    w->levels[l] = (int64_t)get(w, a->coordinates, a->crd_bits, p * a->columns + a->column) + x.lo;
    return walk_level(w, l + 1, p);
  case KILN_LEVEL_STRUCTURED: return walk_groups(w, l, p);
  default: return walk_interval(w, l, p);
  }
}

kiln_status kl_store_walk(const kl_store *s, kl_visit *visit, void *arg) {
  walk w = {.s = s, .visit = visit, .arg = arg};
  for (uint32_t l = 0; l < s->e->nlevels; l++)
    if (s->l->binding.levels[l].size == 0) return KILN_OK;
  for (uint32_t l = 0; l < s->e->nlevels; l++)
    if (s->l->binding.levels[l].count < 0) w.of[l] = kl_tree_aff(s->l->pool, s->e->levels[l].value);
  for (; w.batch < s->batches; w.batch++) {
    int64_t rest = w.batch;
    for (uint32_t b = 0; b < s->nbuffers; b++) w.starts[b] = s->arrays[b].count / s->batches * w.batch;
    for (uint32_t l = s->nbatch; l-- > 0; rest /= s->l->binding.levels[l].size)
      w.levels[l] = rest % s->l->binding.levels[l].size + s->l->binding.levels[l].lo;
    KL_TRY(walk_level(&w, s->nbatch, 0));
  }
  return KILN_OK;
}
