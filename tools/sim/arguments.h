// Arguments of a kernel as words: arrays in files, results, zeros, numbers, structs of numbers.
#ifndef TOOLS_SIM_ARGUMENTS_H
#define TOOLS_SIM_ARGUMENTS_H

#include "kiln.h"

typedef struct argument {
  const char *word;     // as given
  bool array;           // else a number
  kiln_array_type type; // of an array
  const char *from;     // a file that fills it, or NULL
  size_t from_size;     // bytes of that name
  const char *to;       // the file that takes it, or NULL
  uint64_t address;     // an array's; what a parameter is given
  uint64_t value;       // a number's bits
  uint8_t *members;     // a struct's bytes, NULL: it is none; freed with argument_free
  unsigned bytes;       // of the number, or of the struct
} argument;

// Reads a word: in:A.npy, out:f32[8]=B.npy, inout:A.npy=B.npy, zero:u8[64], u32:7, f32:1.5, b64:0xff, {s8:1,f64:2.5}.
// 0, or an exit status after having said what is wrong.
int argument_read(const char *word, argument *out);
void argument_free(argument *a);
// What the parameter is given: so many bytes as it has.
const void *argument_value(const argument *a);
// Gives an array memory, and what its file holds.
int argument_fill(kiln_context *cx, kiln_simulator *s, argument *a);
// Writes the file of an array that has one.
int argument_write(kiln_simulator *s, const argument *a);
// Must a kernel write it whole? And how many bytes it has.
bool argument_is_output(const argument *a);
uint64_t argument_bytes(const argument *a);
// Says unless the argument has as many bytes as the parameter, and is no float for an integer.
int argument_fits(const argument *a, const kiln_sim_parameter *p, size_t i);

#endif
