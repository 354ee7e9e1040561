// CUDA kernels of our own writing, each with launches of three sizes and what it must leave in memory.
//
// The sources (*.cu) are C that nvcc and a C compiler read alike (device.h): the host runs the same text thread by
// thread on the emulation of simt.h, and that is what a launch is expected to do. Kernels that need C++ (groups.cu,
// objects.cu) have a sequential twin in C. `build` makes PTX of the sources. Needs libc alone.
#ifndef KERNELS_H
#define KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KERNEL_MAX_ARGS = 16, KERNEL_MAX_BUFFERS = 16, KERNEL_MAX_VALUE = 256, KERNEL_SIZES = 3 };

typedef enum kernel_type {
  KERNEL_U8,
  KERNEL_U16,
  KERNEL_U32,
  KERNEL_U64,
  KERNEL_F16,
  KERNEL_BF16,
  KERNEL_F32,
  KERNEL_F64
} kernel_type; // an integer's sign does not matter: integers are compared by bits

typedef enum kernel_compare {
  KERNEL_UNSEEN,  // not an output
  KERNEL_EXACT,   // the same bits; any NaN equals any NaN
  KERNEL_BOUNDED, // within bound[i] of expected[i]
  KERNEL_SET      // the same elements in any order
} kernel_compare;

typedef struct kernel_buffer {
  const char *symbol; // a module's variable of this name; NULL: memory of its own, aligned to 256 bytes
  kernel_type type;
  size_t count, bytes;
  void *host;     // the variable of that name on the host
  void *before;   // contents before the launch; NULL: undefined
  void *expected; // contents after it
  double *bound;  // count of them if compare is KERNEL_BOUNDED
  kernel_compare compare;
} kernel_buffer;

typedef struct kernel_arg {
  uint32_t size, align;
  union {
    _Alignas(16) uint8_t bytes[KERNEL_MAX_VALUE];
    uint64_t u64;
    double f64;
  } value;
} kernel_arg;

// The address of buffers[buffer] goes to byte `offset` of args[arg].
typedef struct kernel_patch {
  uint32_t arg, offset, buffer;
} kernel_patch;

typedef struct kernel_case {
  const struct kernel_row *row;
  uint32_t size;
  uint32_t grid[3], block[3], cluster[3]; // no cluster: 1, 1, 1
  uint32_t dynamic_shared;                // bytes
  bool cooperative;
  uint32_t narg, nbuffer, npatch;
  kernel_arg args[KERNEL_MAX_ARGS];
  kernel_buffer buffers[KERNEL_MAX_BUFFERS];
  kernel_patch patches[KERNEL_MAX_BUFFERS];
} kernel_case;

typedef struct kernel_row {
  const char *file; // its module: FILE.cu
  const char *name; // the entry
  uint32_t min_sm;  // 75, 80, 90
  uint32_t sizes[KERNEL_SIZES];
  void (*setup)(kernel_case *c, uint32_t size); // launch, arguments, buffers
  void (*expect)(kernel_case *c);  // fills expected (which holds `before` so far); NULL: the emulation does
  void (*host)(void *const *args); // the kernel's own source, one thread
  const char *note;                // "printf": prints; else NULL
} kernel_row;

// Row `i` of all, or NULL behind the last.
const kernel_row *kernel_row_at(size_t i);

// The launch of `size` (an index into row->sizes), with expected outputs filled. NULL if memory is short or the
// emulation deadlocks, which it then prints. The emulation takes threads in order, or in reverse: the outcome must be
// the same.
kernel_case *kernel_case_new(const kernel_row *row, uint32_t size, bool reverse);
void kernel_case_free(kernel_case *c);

// Is `got` (buffers[b].bytes) what is expected of buffers[b]? If not, `message` (of `room` bytes) says where not.
bool kernel_case_agrees(const kernel_case *c, uint32_t b, const void *got, char *message, size_t room);

#endif
