// What verbs that profile share: their options, and a profile as a page, as JSON, as a drawing.
#ifndef TOOLS_PROFILE_H
#define TOOLS_PROFILE_H

#include "kiln.h"

// clang-format off
#define PROFILE_OPTIONS(gpu_help)                                                                                      \
  {"--gpu", "NAME", gpu_help},                                                                                         \
  {"--blocks", "FIRST:COUNT:STRIDE:RUN",                                                                                \
   "run and count only COUNT blocks of a grid, RUN neighbours every STRIDE; what stands for the grid is scaled"},       \
  {"--lines", NULL, "all instructions of the PTX, not only those that cost most"},                                     \
  {"--svg", "FILE", "draw the roofline"}
// clang-format on
enum { PROFILE_GPU, PROFILE_BLOCKS, PROFILE_LINES, PROFILE_SVG, PROFILE_COUNT };

typedef struct profile_how {
  kiln_profile_params params;
  bool lines;
  const char *svg;
} profile_how;
// The options' values, of which the first stands at `first`. 0, or an exit status.
int profile_words(const args *a, int first, profile_how *out);
// The sample, as far as a grid of so many blocks has it.
kiln_profile_params profile_of_grid(const profile_how *how, uint64_t blocks);

// Adds what ptxas makes of the kernel, where it is installed; else says so.
int profile_assemble(kiln_context *cx, kiln_profile *p);
// 0, or an exit status.
int profile_info(kiln_context *cx, const kiln_profile *p, kiln_profile_info *out);
void profile_page(FILE *to, const kiln_profile_info *t, bool lines);
void profile_json(FILE *to, const kiln_profile_info *t, bool lines); // an object, without an end of line
// One drawing for all of these.
int profile_draw(const char *path, const kiln_profile_info *kernels, size_t n);

#endif
