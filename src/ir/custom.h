// Custom calls whose targets are known.
#ifndef KL_CUSTOM_H
#define KL_CUSTOM_H

#include "ir/hlo.h"

typedef enum kl_custom {
  KL_CUSTOM_UNKNOWN,
  KL_CUSTOM_REMARK,  // says something of its operand, and hands that on
  KL_CUSTOM_TOPK,    // is topk
  KL_CUSTOM_BUFFER,  // memory whose contents nobody has said
  KL_CUSTOM_ADVISED, // a library's; who lowers the program can have other ops instead
} kl_custom;

// By the target, operands and result: a call whose types are not those of its kind is unknown.
kl_custom kl_custom_of(const kl_comp *c, const kl_instr *in);
// What to do about a target that is not compiled, "expected ..."; NULL: nobody knows.
const char *kl_custom_advice(const kl_instr *in);
// Of topk: are the largest wanted? As the computation it calls compares, or else yes. False: that is no such
// comparison.
bool kl_custom_topk(const kiln_module *m, const kl_instr *in, bool *largest);

#endif
