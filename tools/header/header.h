// The header that kiln compile writes: what its parts know of each other.
#ifndef TOOLS_HEADER_H
#define TOOLS_HEADER_H

#include "manifest.h"

typedef struct header {
  FILE *to;
  const kiln_bundle *b;
  size_t n;               // targets
  const kiln_manifest *m; // of the one that is written; of what all have in common any
  bool less;              // what is written is for buffers of less alignment
  machine_code *cubins;   // of each of header_codes, in place of PTX, or NULL
  const char *prefix;     // what everything is called after
  int indent;             // of the code that is written
} header;

// --- what is the same for all targets (facts.c) ---------------------------------------------------------------------

const kiln_manifest *header_manifest(const header *h, size_t i);
// Kernels for buffers of less alignment, which every target has, or none: NULL.
const kiln_artifact *header_less(const header *h, size_t i);
bool header_has_less(const header *h);
// All there are: each target's, then each target's for less alignment.
size_t header_codes(const header *h);
const kiln_manifest *header_code(const header *h, size_t i);
const kiln_artifact *header_artifact(const header *h, size_t i);
// Behind names that each of them has for itself, where there are several: "_sm_90_less".
typedef struct header_name {
  char text[40];
} header_name;
header_name header_code_name(const header *h);
// Functions of the kernels for less alignment stand behind those of the others, of which there are so many at most.
size_t header_most_launches(const header *h, bool less);
// Behind names that each target has for itself, where there are several.
const char *header_behind(const header *h);
const char *header_between(const header *h);
// Writes text whose every @ is the prefix.
void header_put(const header *h, const char *text);

size_t header_slots(const kiln_manifest *m);
void header_slot_name(const kiln_slot *s, char out[24]);
// Is it looked at?
bool header_is_used(const kiln_manifest *m, size_t slot);
// That of all targets: whether two slots may be one buffer does not depend on the GPU.
uint32_t header_alias(const header *h, size_t slot);
// An alignment that does for any target; with `less` for the kernels that ask for less.
uint32_t header_align(const header *h, size_t slot);

// Scratch memory that does for any target.
typedef struct header_room {
  uint64_t bytes, zero;
  uint32_t align;
} header_room;
header_room header_scratch(const header *h);

// Is the condition what the caller passes itself?
bool header_is_passed(const kiln_manifest *m, const kiln_argument *condition);
// Does a launch wait for what kernels have computed? Of one target, and of any.
bool header_reads(const kiln_manifest *m);
bool header_any_reads(const header *h);

// What a launch takes behind the stream: declared, or passed on.
void header_operands(const header *h, const char *before, const char *before_count);
void header_declare_launch(const header *h, const char *name, const char *end);

// --- the implementation (code.c) ------------------------------------------------------------------------------------

void header_implementation(header h);

#endif
