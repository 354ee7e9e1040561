// Code of all kernels, made by several threads. Private to src/jit.
#ifndef KL_CHUNKS_H
#define KL_CHUNKS_H

#include "jit/jit.h"
#include "lower/plan/rounds.h"
#include <kiln/compile.h>

// Kernels come one by one, with their plans. They are cut into chunks by how much code there is, never by how many
// threads there are, so that the same comes of any number; a few kernels are one chunk. Each chunk is an LLVM module in
// an LLVM context of its own. While more kernels come, and their plans are made, threads generate the code of chunks
// that are whole. They touch neither the caller's context nor its memory.
typedef struct kl_chunks kl_chunks;

// In `arena`. `t` and `p` stay as they are until it is freed.
kl_chunks *kl_chunks_new(kl_ctx *cx, kl_arena *arena, const kl_target *t, const kiln_compile_params *p);
// Once they are back, plans may go. kernels: of how many it is the code.
kiln_status kl_chunks_add(kl_chunks *c, kl_plan *plan, size_t kernels);
kiln_status kl_chunks_add_rounds(kl_chunks *c, const kl_rounds *r, size_t kernels);
size_t kl_chunks_coded(kl_chunks *c); // kernels whose code is there
// Once there are all kernels: waits for their code, and puts it and what is to be kept of it into the artifact. `step`
// is called again and again meanwhile; it says whether to go on. The findings are those of the first chunk that fails.
kiln_status kl_chunks_finish(kl_chunks *c, kiln_artifact *a, kiln_status (*step)(void *user), void *user);
void kl_chunks_free(kl_chunks *c); // waits for what has begun

#endif
