// Two artifacts as one: one for buffers of less alignment behind another.

#include "jit/jit.h"

// Where the parts of an artifact's scratch memory begin.
typedef struct parts {
  uint64_t zero, constants, rest;
} parts;

static uint64_t up(uint64_t n, uint64_t to) {
  return (n + to - 1) / to * to;
}

static parts parts_of(const kiln_manifest *f) {
  return (parts){0, f->scratch_zero_bytes, f->scratch_zero_bytes + f->constant_bytes};
}

static void move_argument(kiln_argument *a, const parts *from, const parts *to) {
  if (a->kind != KILN_ARGUMENT_SCRATCH) return;
  uint64_t at = a->offset;
  a->offset = at < from->constants ? at + to->zero
              : at < from->rest    ? at - from->constants + to->constants
                                   : at - from->rest + to->rest;
}

// Nobody else has the artifact yet.
static void move_parts(kiln_artifact *a, const parts *to) {
  const kiln_manifest *f = &a->manifest;
  parts from = parts_of(f);
  for (size_t i = 0; i < f->launch_count; i++)
    for (size_t n = 0; n < f->launches[i].argument_count; n++)
      move_argument((kiln_argument *)&f->launches[i].arguments[n], &from, to);
  for (size_t i = 0; i < f->step_count; i++)
    if (kl_reads_condition(&f->steps[i])) move_argument((kiln_argument *)&f->steps[i].condition, &from, to);
}

// The constants of both, the second ones at `at`.
static kiln_status copy_constants(kl_ctx *cx, kiln_artifact *a, const kiln_manifest *first, const kiln_manifest *second,
                                  uint64_t at, uint64_t bytes, const void **out) {
  char *all = bytes ? kl_arena_try_alloc(&a->arena, (size_t)bytes) : NULL;
  if (bytes && !all) return kl_out_of_memory(cx, (size_t)bytes, "constants");
  if (bytes) memset(all, 0, (size_t)bytes);
  if (first->constant_bytes) memcpy(all, first->constants, first->constant_bytes);
  if (second->constant_bytes) memcpy(all + at, second->constants, second->constant_bytes);
  *out = all;
  return KILN_OK;
}

static bool same_constants(const kiln_manifest *f, const kiln_manifest *g) {
  return f->constant_bytes == g->constant_bytes &&
         (!f->constant_bytes || memcmp(f->constants, g->constants, f->constant_bytes) == 0);
}

static void set_scratch(kiln_manifest *f, uint64_t zero, uint64_t constant_bytes, const void *constants, uint64_t bytes,
                        uint32_t align) {
  f->scratch_zero_bytes = zero;
  f->constant_bytes = constant_bytes;
  f->constants = constants;
  f->scratch_bytes = bytes;
  f->scratch_align = align;
}

// Zeros of the first, of the second, constants of both, and the rest, which they have in turns.
kiln_status kl_artifact_join(kl_ctx *cx, kiln_artifact *a, kiln_artifact *less) {
  kiln_manifest *f = &a->manifest, *g = &less->manifest;
  uint32_t align = f->scratch_align > g->scratch_align ? f->scratch_align : g->scratch_align;
  uint64_t first = up(f->scratch_zero_bytes, align), zero = first + up(g->scratch_zero_bytes, align);
  uint64_t second = same_constants(f, g) ? 0 : up(f->constant_bytes, align);
  uint64_t constants = up(second + g->constant_bytes, align), rest = zero + constants;
  uint64_t own = f->scratch_bytes - parts_of(f).rest, its = g->scratch_bytes - parts_of(g).rest;
  const void *all = NULL, *its_all = NULL;
  KL_TRY(copy_constants(cx, a, f, g, second, constants, &all));
  KL_TRY(copy_constants(cx, less, f, g, second, constants, &its_all));
  move_parts(a, &(parts){0, zero, rest});
  move_parts(less, &(parts){first, zero + second, rest});
  set_scratch(f, zero, constants, all, rest + (own > its ? own : its), align);
  set_scratch(g, zero, constants, its_all, f->scratch_bytes, align);
  a->less = less;
  return KILN_OK;
}

const kiln_artifact *kiln_artifact_less(const kiln_artifact *a) {
  return a ? a->less : NULL;
}
