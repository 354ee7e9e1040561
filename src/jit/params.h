// Parameters of compilation as bytes and as copies, for those who compile elsewhere or later.
#ifndef KL_JIT_PARAMS_H
#define KL_JIT_PARAMS_H

#include "ir/hlo.h"
#include "jit/archive.h"
#include <kiln/compile.h>

// INVALID: what no module could be compiled with.
kiln_status kl_params_check(kl_ctx *cx, const kiln_compile_params *p);

// All of it but what is called back, and where and by how many threads the work is done. When writing, sparse slots are
// read as those of `m`.
kiln_status kl_params_write(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *p, kl_sb *out);
// What is read lies in the archive's arena.
void kl_params_read(kl_archive *a, kiln_compile_params *p);
// Of params whose struct is whole (KL_PARAMS_IN), with all that they point to.
kiln_status kl_params_copy(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *p, kl_arena *arena,
                           kiln_compile_params *out);

#endif
