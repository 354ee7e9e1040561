// Runs kb expansions in this process: a loop over vectors around one expansion, compiled for the host by the library's
// own code generation, so that what is tested is what kernels get.
#ifndef KL_TEST_MATH_JIT_H
#define KL_TEST_MATH_JIT_H

#include "lower/emit/math/math.h"
#include "support/ptx_isa.h"

// y[i] = f(a[i], b[i]) for i < n; n is a multiple of the lanes. b may be NULL where the expansion does not ask for it.
typedef void (*mj_fn)(const void *a, const void *b, void *y, int64_t n);

// What to expand. `emit` gets registers of kind `in` (two of them, the second of them dead if unused) and returns one
// of kind `out`. Memory holds elements of the kinds' own sizes.
typedef struct mj_spec {
  kb_kind in, out;
  unsigned lanes;
  kb_reg (*emit)(kb *k, const void *user, kb_reg a, kb_reg b);
  const void *user;
} mj_spec;

typedef struct mj mj;
mj *mj_open(void);
void mj_close(mj *j);
void mj_clear(mj *j); // frees all code compiled so far
// Exits with a message if the code does not compile or link.
mj_fn mj_compile(mj *j, const mj_spec *s);
// What NVPTX `sm` gets, one scalar or packed pair at a time, run here: each call of an approximate instruction,
// numbered in order from 0, returns the mj_pick[number]-th of the f32 values that its documented error allows
// (ptx_isa.h). mj_sites receives the number of calls.
enum { MJ_SITES = 4, MJ_PICKS = PTX_PICKS };
extern unsigned mj_pick[MJ_SITES];
mj_fn mj_compile_approx(mj *j, const mj_spec *s, unsigned sm, unsigned *mj_sites);
// PTX of a kernel that applies the expansion to one scalar per thread; free() it.
char *mj_ptx(mj *j, const mj_spec *s, unsigned sm);

#endif
