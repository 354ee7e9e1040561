// What an artifact's loaded forms have in common: its launches and buffers, copied so that it may go before them.

#include "jit/jit.h"

enum { SCRATCH_ALIGN = 256 };

void kl_program_copy(kl_program *p, kl_arena *arena, const kiln_artifact *a) {
  *p = (kl_program){.nlaunches = a->nlaunches,
                    .ntemps = a->ntemps,
                    .ncopies = a->ncopies,
                    .nparams = a->nparams,
                    .nresults = a->nresults};
  p->launches = kl_arena_dup(arena, a->launches, a->nlaunches * sizeof *p->launches);
  for (uint32_t i = 0; i < a->nlaunches; i++) {
    kiln_launch *l = &p->launches[i];
    l->kernel = kl_str_dup(arena, kl_str_of(l->kernel)).p;
    l->slots = kl_arena_dup(arena, l->slots, l->slot_count * sizeof(kiln_slot));
  }
  if (a->ntemps) p->temp_bytes = kl_arena_dup(arena, a->temp_bytes, a->ntemps * sizeof(int64_t));
  if (a->ncopies) p->copies = kl_arena_dup(arena, a->copies, a->ncopies * sizeof(kl_copy));
}

uint64_t kl_scratch_offset(const int64_t *temp_bytes, uint32_t i) {
  uint64_t at = 0;
  for (uint32_t k = 0; k < i; k++) at += ((uint64_t)temp_bytes[k] + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
  return at;
}

uint64_t kiln_artifact_scratch_bytes(const kiln_artifact *a) {
  return kl_scratch_offset(a->temp_bytes, a->ntemps);
}

static void widen(kl_interface_buffer *b, const kiln_slot *s, bool output) {
  b->bytes = s->bytes;
  if (b->align < s->align) b->align = s->align;
  b->output |= output;
}

void kl_program_interface(const kl_program *p, kl_interface_buffer *out) {
  for (uint32_t i = 0; i < p->nparams + p->nresults; i++) out[i] = (kl_interface_buffer){.align = 1};
  for (uint32_t i = 0; i < p->nlaunches; i++)
    for (size_t k = 0; k < p->launches[i].slot_count; k++) {
      const kiln_slot *s = &p->launches[i].slots[k];
      if (s->kind == KILN_BUFFER_TEMP) continue;
      widen(&out[s->kind == KILN_BUFFER_RESULT ? p->nparams + s->index : s->index], s, s->output);
    }
  for (uint32_t i = 0; i < p->ncopies; i++) {
    const kl_copy *c = &p->copies[i];
    widen(&out[p->nparams + c->result], &c->from, true);
    if (c->from.kind == KILN_BUFFER_PARAM) widen(&out[c->from.index], &c->from, false);
  }
}
