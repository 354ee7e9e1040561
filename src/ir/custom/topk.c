// What the comparator of TopK wants.
#include "ir/custom/room.h"

// A larger comparison is none that is looked at.
enum { MOST_STEPS = 24 };

// Which parameters each instruction is made of, by bit of their numbers.
static void find_origins(const kl_comp *c, unsigned *of) {
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    of[i] = in->op == KL_OP_PARAMETER ? 1u << (in->number & 31) : 0;
    for (uint32_t k = 0; k < in->noperands; k++) of[i] |= of[in->operands[k]];
  }
}

bool kl_custom_topk(const kiln_module *m, const kl_instr *in, bool *largest) {
  *largest = true;
  if (!in->ncalled) return true;
  const kl_comp *c = &m->comp[in->called[0]];
  const kl_instr *root = kl_root(c);
  unsigned of[MOST_STEPS];
  if (root->op != KL_OP_COMPARE || c->ninstr > MOST_STEPS) return false;
  *largest = root->direction == KL_GT || root->direction == KL_GE;
  bool ordered = *largest || root->direction == KL_LT || root->direction == KL_LE;
  find_origins(c, of);
  return ordered && of[root->operands[0]] == 1 && of[root->operands[1]] == 2;
}
