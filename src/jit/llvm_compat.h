// The one place that knows which LLVM this is built for.
#ifndef KL_LLVM_COMPAT_H
#define KL_LLVM_COMPAT_H

#include <llvm-c/Core.h>
#include <llvm/Config/llvm-config.h>

#if LLVM_VERSION_MAJOR != 22
#error "kiln needs LLVM 22"
#endif

#endif
