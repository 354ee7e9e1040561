// Names and what they mean, scope in scope. Runs of registers are one name each, however long they are.
#ifndef KL_PTX_NAMES_H
#define KL_PTX_NAMES_H

#include "sim/ptx/ptx.h"

typedef struct kl_ptx_symbol {
  kl_str name; // of a run: its prefix
  kl_ptx_kind kind;
  bool run;         // names are `name` and a number below `count`
  uint8_t vector;   // of a register: 1, 2, 4
  kl_ptx_type type; // of a register
  uint32_t index;   // of a run: of its first register
  uint32_t count;   // of a run
  uint32_t depth;   // of its scope, from 0
  uint32_t below;   // symbol + 1 of the same name in a scope around this one
  uint32_t slot;
} kl_ptx_symbol;

typedef struct kl_ptx_names {
  kl_ctx *cx;
  struct kl_ptx_name {
    kl_str name;
    uint64_t hash;
    uint32_t top; // innermost symbol + 1; 0: none now
  } * slots;      // a name stays when its symbols are gone
  size_t nslots, n;
  VEC(kl_ptx_symbol) symbols; // as a stack: those of inner scopes on top
  VEC(size_t) scopes;         // how many symbols there were when it was opened
} kl_ptx_names;

void kl_ptx_names_init(kl_ptx_names *t, kl_ctx *cx);
void kl_ptx_names_free(kl_ptx_names *t);
void kl_ptx_names_open(kl_ptx_names *t);
// Forgets what the innermost scope declares.
void kl_ptx_names_close(kl_ptx_names *t);
static inline uint32_t kl_ptx_names_depth(const kl_ptx_names *t) {
  return (uint32_t)t->scopes.n;
}
// Declares in the innermost scope. False if one of the names is there already; the texts are borrowed.
bool kl_ptx_names_add(kl_ptx_names *t, kl_ptx_symbol s);
// What a name means; of a run also the number behind its prefix. NULL: nothing.
const kl_ptx_symbol *kl_ptx_names_find(const kl_ptx_names *t, kl_str name, uint32_t *number);

#endif
