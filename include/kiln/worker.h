// kiln: the other side of compilation in a process of its own (`isolate` in kiln_compile_params).
#ifndef KILN_WORKER_H
#define KILN_WORKER_H

#include <kiln/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// The descriptor at which a worker finds its socket.
#define KILN_WORKER_SOCKET 3

// Compiles what comes over the socket until its other end is closed, and returns the exit status of the program. All of
// a worker, such as kiln-worker, which is installed beside the library:
//
//   int main(void) { return kiln_worker_run(KILN_WORKER_SOCKET); }
KILN_API int kiln_worker_run(int socket);

#ifdef __cplusplus
}
#endif
#endif
