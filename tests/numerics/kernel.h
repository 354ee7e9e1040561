// A function compiled by the library: a module of that one op, run on the host or on the simulator, and what it costs.
#ifndef TESTS_NUMERICS_KERNEL_H
#define TESTS_NUMERICS_KERNEL_H

#include "functions.h"
#include <kiln/kiln.h>

enum { NU_BATCH = 1 << 16 }; // elements of a run

typedef enum nu_device { NU_HOST, NU_SIM } nu_device;

// Runs from several threads at once on the host, from one on the simulator.
typedef struct nu_kernel nu_kernel;
// NULL, and a finding in the context, where the library refuses. On the simulator approximate instructions return the
// nearest value, or with a seed any that their documented errors allow.
nu_kernel *nu_kernel_open(kiln_context *cx, const nu_function *f, nu_type t, nu_device device, uint64_t perturb);
void nu_kernel_close(nu_kernel *k);
// x, y, r: NU_BATCH elements, of complex numbers both parts, aligned to 16 bytes. y is not read where there is one
// operand. False: a finding says why. `cx` is the calling thread's on the host, and the one that opened the kernel on
// the simulator.
bool nu_kernel_run(kiln_context *cx, nu_kernel *k, const void *x, const void *y, void *r);

// Does the function take this type, and do its numerics change a GPU's code? Those of `strict` always do.
bool nu_is_of_its_own(kiln_context *cx, const nu_function *f, nu_type t);

// Instructions and registers of a kernel for sm_90 whose threads compute several elements each.
typedef struct nu_cost {
  unsigned lanes;     // elements of a thread
  unsigned ptx, sass; // instructions of the whole kernel, the slow paths of large arguments included; sass 0: no ptxas
  unsigned registers;
} nu_cost;
bool nu_cost_of(kiln_context *cx, const nu_function *f, nu_type t, nu_cost *out);

#endif
