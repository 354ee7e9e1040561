// An entry point around its body: enter, do, leave. PREFIX: what stands before the symbol.
#ifndef KL_SIM_ENTRY_H
#define KL_SIM_ENTRY_H

#include "sim/driver/impl.h"

#define KL_ENTRY(STORAGE, NAME, BODY, own_stream, need, params, args)                                                  \
  STORAGE CUresult NAME params {                                                                                       \
    CUresult code = kl_sim_enter(KL_NEED_##need, own_stream);                                                          \
    if (code) return code;                                                                                             \
    code = BODY args;                                                                                                  \
    kl_sim_leave();                                                                                                    \
    return code;                                                                                                       \
  }
#define KL_ENTRY_OF_PLAIN(STORAGE, PREFIX, symbol, need, params, args)
#define KL_ENTRY_OF_PTSZ(STORAGE, PREFIX, symbol, need, params, args)                                                  \
  KL_ENTRY(STORAGE, PREFIX##symbol##_ptsz, kl_##symbol, true, need, params, args)
#define KL_ENTRY_OF_PTDS(STORAGE, PREFIX, symbol, need, params, args)                                                  \
  KL_ENTRY(STORAGE, PREFIX##symbol##_ptds, kl_##symbol, true, need, params, args)
// The entry point of a row, and the one with the thread's own stream where there is one.
#define KL_ENTRIES(STORAGE, PREFIX, symbol, need, stream, params, args)                                                \
  KL_ENTRY(STORAGE, PREFIX##symbol, kl_##symbol, false, need, params, args)                                            \
  KL_ENTRY_OF_##stream(STORAGE, PREFIX, symbol, need, params, args)

#endif
