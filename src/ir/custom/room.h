// What the table of targets is made of. Private to this room.
#ifndef KL_CUSTOM_ROOM_H
#define KL_CUSTOM_ROOM_H

#include "ir/custom/custom.h"
#include "ir/custom/json.h"

// The name between its quotes.
kl_str kl_custom_target(const kl_instr *in);
bool kl_custom_begins(kl_str s, const char *with);
bool kl_custom_has(kl_str s, const char *part);
// backend_config as written; empty: there is none.
kl_str kl_custom_config(const kl_instr *in);

// Has a call what a routine of LAPACK of this kind takes and gives, of type t (TUPLE: of its operand's)? (lapack.c)
bool kl_custom_fits_lapack(const kl_comp *c, const kl_instr *in, kl_custom kind, kl_dtype t);
bool kl_custom_fits_svd(const kl_comp *c, const kl_instr *in, kl_dtype t); // (svd.c)
// Matrices of type t, whose rows and columns an s32 counts; an s32 of each matrix; lists of `n` real numbers, one for
// each matrix; n dimensions.
bool kl_custom_are_matrices(const kl_shape *s, kl_dtype t);
bool kl_custom_is_info(const kl_shape *s, const kl_shape *matrices);
bool kl_custom_are_values(const kl_shape *s, const kl_shape *matrices, int64_t n);
// Has each of the matrices `s` another one of rows and columns, so large that all are an array still?
bool kl_custom_has_room(const kl_shape *s, int64_t rows, int64_t columns);
bool kl_custom_same_dims(uint32_t n, const int64_t *a, const int64_t *b);

// An entry of a dictionary as MLIR writes it, {diag = 78 : ui8, uplo = 76 : ui8}, and the two values that it may have,
// letters or truths (1 and 0): for 0 and for 1.
typedef struct kl_custom_entry {
  const char *name;
  int values[2];
  int third; // for 2; 0: there is none
} kl_custom_entry;
// Which value each of n entries has. False: there is another entry, or another value, or one is missing. (config.c)
bool kl_custom_read_entries(kl_str config, const kl_custom_entry *e, unsigned n, int *which);
// The truth of this name in such a dictionary, whatever else it has. False: it has none. (config.c)
bool kl_custom_read_truth(kl_str config, const char *name, bool *out);

// Why a call is not what its target promises.
typedef struct kl_fault {
  const char *expected; // NULL: it is
  kl_str found;
} kl_fault;
// Writes it down, unless there is one already. False.
bool kl_faulty(kl_fault *f, const char *expected, kl_str found);

// The object of this name in a configuration of XLA:GPU; older modules have it alone. (xla.c)
bool kl_xla_config(const kl_instr *in, const char *name, kl_json *out, kl_fault *f);
// A number, 0 or false where there is none.
bool kl_xla_number(kl_json config, const char *name, double *out, const char *expected, kl_fault *f);
bool kl_xla_truth(kl_json config, const char *name, bool *out, const char *expected, kl_fault *f);
// Arrays, all of whose dimensions are known.
bool kl_xla_is_array(const kl_shape *s);
// The first result, of this many and maybe memory behind; NULL: they are others.
const kl_shape *kl_xla_result(const kl_instr *in, uint32_t n, bool *spare);

// As kl_custom_gemm and kl_custom_conv, with the reason where they are not. (gemm.c, conv.c, steps.c, attention.c,
// other.c)
bool kl_xla_gemm(const kl_comp *c, const kl_instr *in, kl_gemm *out, kl_fault *f);
bool kl_xla_conv(const kl_comp *c, const kl_instr *in, kl_after *out, kl_fault *f);
bool kl_xla_steps(const kl_comp *c, const kl_instr *in, kl_conv_steps *out, kl_fault *f);
// Are operands and this result those of a convolution of the call's kind?
bool kl_xla_conv_arrays(const kl_comp *c, const kl_instr *in, const kl_shape *to, kl_fault *f);
bool kl_xla_attention(const kl_comp *c, const kl_instr *in, kl_attention *out, kl_fault *f);
bool kl_xla_other(const kl_comp *c, const kl_instr *in, kl_fault *f);

#endif
