// Which instructions move the same elements to the same places: broadcasts of one array, slices of it ... A computation
// makes such a value once.
#include "eval/impl.h"

static bool is_move(const kl_instr *in) {
  if (!kl_shape_is_array(in->shape)) return false;
  switch (in->op) {
  case KL_OP_BROADCAST:
  case KL_OP_TRANSPOSE:
  case KL_OP_RESHAPE:
  case KL_OP_BITCAST:
  case KL_OP_REVERSE:
  case KL_OP_SLICE:
  case KL_OP_DYNAMIC_SLICE:
  case KL_OP_PAD:
  case KL_OP_CONCATENATE:
  case KL_OP_REAL:
  case KL_OP_IMAG:
  case KL_OP_COMPLEX: return true;
  default: return false;
  }
}

static bool same_bytes(const void *a, const void *b, size_t size) {
  return a && b ? memcmp(a, b, size) == 0 : a == b;
}

// One of these may be there; which one follows from the op.
static bool same_places(const kl_instr *a, const kl_instr *b) {
  if (a->ndims != b->ndims) return false;
  if (a->ndims == 0) return true;
  return same_bytes(a->dims, b->dims, sizeof *a->dims * a->ndims) &&
         same_bytes(a->slice, b->slice, sizeof *a->slice * a->ndims) &&
         same_bytes(a->pad, b->pad, sizeof *a->pad * a->ndims);
}

// `of` says for each instruction before these whose value it has.
static bool is_twin(const kl_instr *a, const kl_instr *b, const uint32_t *of) {
  if (a->op != b->op || a->shape != b->shape || a->noperands != b->noperands || !same_places(a, b)) return false;
  for (uint32_t k = 0; k < a->noperands; k++)
    if (of[a->operands[k]] != of[b->operands[k]]) return false;
  return true;
}

static uint64_t hash_of(const kl_instr *in, const uint32_t *of) {
  uint64_t h = kl_hash(&in->op, sizeof in->op, in->noperands);
  for (uint32_t k = 0; k < in->noperands; k++) h = kl_hash(&of[in->operands[k]], sizeof *of, h);
  if (in->ndims && in->dims) h = kl_hash(in->dims, sizeof *in->dims * in->ndims, h);
  if (in->ndims && in->slice) h = kl_hash(in->slice, sizeof *in->slice * in->ndims, h);
  return h;
}

void kl_ev_find_twins(kl_ev *ev, const kl_comp *c, const bool *live, uint32_t *twin) {
  size_t slots = 16;
  while (slots < 2 * (size_t)c->ninstr) slots *= 2;
  uint32_t *head = kl_alloc(ev->cx, sizeof *head * slots); // instruction + 1
  uint32_t *of = kl_alloc(ev->cx, sizeof *of * (c->ninstr + 1u));
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    twin[i] = of[i] = i;
    if (!live[i]) continue;
    if (in->op == KL_OP_COPY) of[i] = of[in->operands[0]];
    if (!is_move(in)) continue;
    size_t slot = hash_of(in, of) & (slots - 1);
    while (head[slot] && !is_twin(&c->instr[head[slot] - 1], in, of)) slot = (slot + 1) & (slots - 1);
    if (head[slot])
      twin[i] = of[i] = head[slot] - 1;
    else
      head[slot] = i + 1;
  }
  kl_free(ev->cx, of, sizeof *of * (c->ninstr + 1u));
  kl_free(ev->cx, head, sizeof *head * slots);
}
