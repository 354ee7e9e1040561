// Options that say how to compile, in every verb that does: the first rows of its table.
#ifndef TOOLS_PARAMS_H
#define TOOLS_PARAMS_H

#include "kiln.h"

enum {
  O_TARGET,
  O_FUSION,
  O_ALIGN,
  O_LEAST,
  O_ALIAS,
  O_VALUE,
  O_COUNT,
  O_PROGRAMMATIC,
  O_NUMERICS,
  O_LINEINFO,
  O_DETERMINISTIC,
  O_ROOM,
  O_ISOLATE,
  O_LIMIT,
  O_THREADS,
  O_SEPARATE,
  O_OTHERS
};
// clang-format off
#define COMPILE_OPTIONS(target_help)                                                                                   \
  {"--target", "TARGET", target_help},                                                                                 \
  {"--fusion", "NAME", "only this fusion of ENTRY"},                                                                   \
  {"--align", "BYTES", "that every argument is aligned to (default 16)"},                                              \
  {"--least-align", "BYTES", "kernels for arguments of less alignment, too: no more than this"},                       \
  {"--alias", "P=R", "parameter P and result R may be the same buffer", true},                                         \
  {"--by-value", NULL, "rank-0 integer parameters are kernel arguments themselves"},                                   \
  {"--max-count", "N", "rows are given at run time: up to N elements"},                                               \
  {"--programmatic", NULL, "kernels may begin while the one before still runs, and wait for it (sm_90 on)"},                         \
  {"--numerics", "MODE", "strict (default), or fast: approximate functions of f32 on GPUs, within stated bounds"},                           \
  {"--lineinfo", NULL, "kernels of GPUs name the lines of FILE that their code comes from, for profilers"}, \
  {"--deterministic", NULL, "the same bits every time for scatter, too, by a slower kernel where the order of updates shows"}, \
  {"--room", "LEAF=N", "parameter K (pK=N) or result K (rK=N), which has a sparse encoding, has room for N values (default: for all that\nthere can be; with run, parameters have what is stored)", true}, \
  {"--isolate", NULL, "make code in a process of its own: what ends LLVM is an error there, and nothing worse"}, \
  {"--time-limit", "SECONDS", "with --isolate: end that process when it takes longer"}, \
  {"--threads", "N", "CPU threads (default: all cores)"}, \
  {"--separate-launches", NULL, "kernels of ENTRY are launches of their own where several could be one, and loops rounds of launches"}
// clang-format on

enum { MOST_ALIASES = 4096 };

// What they say; `aliases` is room for MOST_ALIASES. 0, or an exit status.
int read_params(const args *a, kiln_alias *aliases, kiln_compile_params *out);

#endif
