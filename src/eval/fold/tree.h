// The value of a reduction, by the tree that the graph gives it (kl_reduce_tree in eval.h; docs/numerics.md).
#ifndef KL_EVAL_TREE_H
#define KL_EVAL_TREE_H

#include "eval/impl.h"

typedef struct kl_tree_job {
  kl_fold_tree tree;
  uint32_t n;     // components of a value: operands, and results
  int64_t kept;   // results
  bool rows;      // element r of result i is element i * length + r of `elements`; else r * kept + i
  bool intervals; // of all that the program may give; else data alone
  const kl_ev_program *program;
  const kl_ew *direct;         // what the program does to data, where it is one op; NULL: unknown
  bool in_f32;                 // `direct` is on f32, elements and results are narrower
  const kl_evval *elements;    // n, none of them a splat
  const kl_evval *const *init; // n
  kl_evval *out;               // n, made
} kl_tree_job;

// Writes all elements of job->out: their data, and with job->intervals all planes.
kiln_status kl_tree_fold(kl_ev *ev, const kl_tree_job *job);

#endif
