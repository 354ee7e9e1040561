// What the table of targets is made of. Private to this room.
#ifndef KL_CUSTOM_ROOM_H
#define KL_CUSTOM_ROOM_H

#include "ir/custom/custom.h"

// The name between its quotes.
kl_str kl_custom_target(const kl_instr *in);
bool kl_custom_begins(kl_str s, const char *with);
bool kl_custom_has(kl_str s, const char *part);
// backend_config as written; empty: there is none.
kl_str kl_custom_config(const kl_instr *in);

// Has a call what a routine of LAPACK of this kind takes and gives, of type t (TUPLE: of its operand's)? (lapack.c)
bool kl_custom_fits_lapack(const kl_comp *c, const kl_instr *in, kl_custom kind, kl_dtype t);

// An entry of a dictionary as MLIR writes it, {diag = 78 : ui8, uplo = 76 : ui8}, and the two values that it may have,
// letters or truths (1 and 0): for 0 and for 1.
typedef struct kl_custom_entry {
  const char *name;
  int values[2];
  int third; // for 2; 0: there is none
} kl_custom_entry;
// Which value each of n entries has. False: there is another entry, or another value, or one is missing. (config.c)
bool kl_custom_read_entries(kl_str config, const kl_custom_entry *e, unsigned n, int *which);

#endif
