// Maps against the model: every pair of elements that a map holds, by trying all values of its variables.
#ifndef TESTS_READS_COMPARE_H
#define TESTS_READS_COMPARE_H

#include "model/model.h"

// kl_reads and kl_feeds of every instruction, in every frame. `text` is for messages.
void compare_ops(const model *s, const char *text);
// kl_reach_make from every leaf of the root to all that it is made from, and from every leaf of every parameter to all
// that is made from it.
void compare_walks(const model *s, const char *text);

// What has been compared so far; maps counts dependences, exact those that claim to be.
typedef struct compare_counts {
  int64_t ops, walks, maps, exact, unknown;
} compare_counts;
extern compare_counts compared;

#endif
