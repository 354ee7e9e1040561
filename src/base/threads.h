// Threads for the pieces of one call (threads.c).
#ifndef KL_THREADS_H
#define KL_THREADS_H

#include <stdint.h>

// Of pieces of a range, by workers that are numbered from 0. Workers never touch a context: allocation and findings
// belong to its own thread.
typedef void kl_piece_body(void *arg, uint32_t worker, int64_t begin, int64_t end);
uint32_t kl_cores(void);
// How many workers kl_parallel uses at most.
uint32_t kl_workers(uint32_t threads, int64_t n, int64_t grain);
// Runs body over pieces of [0, n) of at most `grain`, on up to so many threads. Piece borders are multiples of the
// grain, so nothing depends on the number of workers.
void kl_parallel(uint32_t threads, int64_t n, int64_t grain, kl_piece_body *body, void *arg);

#endif
