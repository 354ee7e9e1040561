// On the host, where an iteration reads much and computes on it: what the next one reads is asked for meanwhile. A
// body's loads stand together and its arithmetic behind them, so that a processor, which looks a few hundred
// instructions ahead, would wait for the one and then do the other. The requests are spread over the stores, between
// which code generation leaves them, and so over what is computed for those.

#include "lower/emit/emit.h"

enum { LINE = 64, WORTH = 16, MOST_AT_ONCE = 4 }; // bytes; lines of an iteration, and of a store

struct kl_ahead {
  LLVMValueRef *at; // addresses of lines
  uint32_t most, n, asked;
  uint32_t var;          // of iterations
  double per_store, due; // lines
};

static bool is_of_memory(const kl_emit *e, const kl_access *a) {
  const kl_slot_info *s = &e->plan->slots[a->slot];
  return !s->by_value && s->kind != KL_SLOT_SHARED && a->stride == 1;
}

// The variable that iterations which follow each other differ in.
static uint32_t iteration_var(const kl_body *b) {
  uint32_t var = KL_NONE;
  for (uint32_t i = 0; i < b->nvars; i++)
    if (b->vars[i].binding == KL_BIND_BLOCK || b->vars[i].binding == KL_BIND_THREAD) var = i;
  return var;
}

static int64_t bytes_of(const kl_access *a, unsigned bits) {
  return (int64_t)a->vec * bits / 8;
}

void kl_ahead_begin(kl_emit *e) {
  const kl_body *b = e->body;
  int64_t lines = 0, stores = 0;
  e->ahead = NULL;
  for (uint32_t i = 0; i < b->root.n; i++) {
    const kl_node *n = &b->root.nodes[i];
    if (n->kind == KL_NODE_STORE && is_of_memory(e, &b->stores[n->index].access))
      stores += b->stores[n->index].access.nchunks;
    if (n->kind != KL_NODE_STEP) continue;
    const kl_step *s = &b->steps[n->index];
    if (s->kind == KL_STEP_LOAD && is_of_memory(e, &s->access))
      lines += s->access.nchunks * bytes_of(&s->access, kl_info(s->dtype)->bits) / LINE;
  }
  uint32_t var = iteration_var(b);
  if (lines < WORTH || stores * MOST_AT_ONCE < lines || var == KL_NONE) return;
  e->ahead = KL_NEW(e->arena, kl_ahead);
  *e->ahead = (kl_ahead){.most = (uint32_t)lines, .var = var, .per_store = (double)lines / (double)stores};
  e->ahead->at = KL_NEW_N(e->arena, LLVMValueRef, lines);
}

void kl_ahead_load(kl_emit *e, const kl_access *a, uint32_t chunk, unsigned bits, kb_reg p) {
  kl_ahead *h = e->ahead;
  if (!h || !is_of_memory(e, a) || chunk * bytes_of(a, bits) % LINE || h->n == h->most) return;
  int64_t step = kl_aff_coef(a->base[chunk], h->var) * bits / 8;
  LLVMValueRef by = LLVMConstInt(kb_type(&e->k, KB_I64, 1), (uint64_t)step, true);
  if (step) h->at[h->n++] = LLVMBuildGEP2(e->k.b, kb_type(&e->k, KB_I8, 1), p.v, &by, 1, "");
}

// llvm.prefetch(address, for reading, to stay, of data)
static void ask(kl_emit *e, LLVMValueRef at) {
  LLVMTypeRef pointer = LLVMTypeOf(at);
  kb_reg args[4] = {
      {at, KB_PTR, 1}, kb_int(&e->k, KB_I32, 1, 0), kb_int(&e->k, KB_I32, 1, 3), kb_int(&e->k, KB_I32, 1, 1)};
  kb_intrinsic(&e->k, "llvm.prefetch", &pointer, 1, args, 4, KB_I1, 1);
}

void kl_ahead_store(kl_emit *e) {
  kl_ahead *h = e->ahead;
  if (!h || h->asked == h->n) return;
  for (h->due += h->per_store; h->due >= 1 && h->asked < h->n; h->due--) ask(e, h->at[h->asked++]);
}
