// Modules with sparse tensors as verbs run them: dense tensors as the file means them, and the arrays of the module
// that devices run.
#ifndef TOOLS_STORED_H
#define TOOLS_STORED_H

#include "params.h"

typedef struct stored_tensor stored_tensor;

typedef struct stored {
  kiln_module *whole; // as the file has it; NULL: there are no sparse tensors
  size_t nparams, nresults;
  void **params, **results; // its buffers: dense tensors
  stored_tensor *tensors;
  size_t ntensors;
  kiln_sparse_slot *slots;
} stored;

// Has a leaf of the module an encoding?
bool stored_is(const kiln_module *m);
// Takes the module, makes its buffers and fills its parameters. An exit status, as from all of these.
int stored_open(kiln_context *cx, kiln_module *whole, uint64_t seed, stored *out);
void stored_close(stored *s);
// What --room says of results, and the lengths that parameters have: the module over arrays.
int stored_make(kiln_context *cx, stored *s, const args *a, kiln_module **out);
// The buffer of a parameter's leaf of that module.
void stored_fill(const stored *s, const kiln_module *arrays, size_t leaf, void *buffer);
// Results of that module become dense tensors. Says so where one had no room.
int stored_take(kiln_context *cx, stored *s, void *const *results);
// The dense tensor of a file of sparse entries, as a parameter's buffer; what a result's buffer has, as a file.
int stored_read(kiln_context *cx, const stored *s, size_t parameter, const char *path);
int stored_write(kiln_context *cx, const stored *s, size_t result, const char *path);
bool stored_is_file(const char *path); // .npz or .mtx

// Slots for what --room says of a module that is compiled: *out, of *n, to be freed with room_free.
int room_slots(kiln_context *cx, const args *a, const kiln_module *m, kiln_sparse_slot **out, size_t *n);
void room_free(kiln_sparse_slot *slots, size_t n);

#endif
