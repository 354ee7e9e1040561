// How long buffers are there, and what kernels are called.

#include "jit/kernels.h"

// A buffer is there from the first kernel that has to do with it to the last, and where these are not all in a loop for
// all of it.
static void note_lives(kl_kernels *k) {
  for (uint32_t i = 0; i < k->n; i++)
    for (uint32_t a = 0; a < k->units[i].narguments; a++) {
      const kiln_argument *x = &k->units[i].arguments[a];
      if (x->kind != KILN_ARGUMENT_SCRATCH || x->offset & KL_AMONG) continue;
      kl_buffer *b = &k->buffers.p[x->offset];
      if (i < b->first) b->first = i;
      if (i > b->last) b->last = i;
    }
  for (size_t l = 0; l < k->loops.n; l++)
    for (size_t i = 0; i < k->buffers.n; i++) {
      kl_buffer *b = &k->buffers.p[i];
      const kl_loop *x = &k->loops.p[l];
      bool meets = b->first <= x->last && b->last >= x->first, within = b->first >= x->first && b->last <= x->last;
      if (!meets || within) continue;
      if (x->first < b->first) b->first = x->first;
      if (x->last > b->last) b->last = x->last;
    }
}

// A name in PTX: one kernel has that of its fusion, of several each has its number behind it.
void kl_finish_units(kl_ctx *cx, kl_kernels *k) {
  k->n = (uint32_t)k->list.n;
  k->units = VEC_FREEZE(cx, k->arena, &k->list);
  for (uint32_t i = 0; i < k->n && k->n > 1; i++) k->units[i].name = kl_strf(k->arena, "%s_%u", k->units[i].name, i);
  note_lives(k);
}
