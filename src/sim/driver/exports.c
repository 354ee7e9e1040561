// The entry points under the driver's names: what libkilnsim exports, and nothing else of kiln contains.

#include "sim/driver/entry.h"

#define KL_EXPORTED __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define X(name, symbol, since, need, stream, params, args) KL_ENTRIES(KL_EXPORTED, , symbol, need, stream, params, args)
KL_SIM_CALLS(X)
