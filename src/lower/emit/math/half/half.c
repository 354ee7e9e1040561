// Which expansion serves which op and type, and their common steps.

#include "lower/emit/math/half/impl.h"

static const kh_row *find(kl_op op, kb_kind kind) {
  for (unsigned i = 0; i < kh_row_count; i++) {
    if (kh_rows[i].op == op && kh_rows[i].kind == kind) return &kh_rows[i];
  }
  return NULL;
}

bool kh_has(const kb *k, kl_op op, kl_dtype t) {
  if (k->machine != KB_NVPTX || (t != KILN_F16 && t != KILN_BF16)) return false;
  const kh_row *r = find(op, t == KILN_F16 ? KB_F16 : KB_BF16);
  return r && k->sm >= r->sm;
}

void kh_emit(kb *k, const kh_row *row, unsigned n, const kb_reg *const *x, kb_reg *out) {
  bool two = row->op == KL_OP_DIVIDE;
  for (unsigned i = 0; i < n; i++) {
    kb_reg operands[2] = {x[0][i], x[two][i]};
    out[i] = row->emit(k, row->c, operands);
  }
  if (row->rest) row->rest(k, row->c, n, x[0], out);
}

void kh_call(kb *k, kl_op op, unsigned n, const kb_reg *const *x, kb_reg *out) {
  kh_emit(k, find(op, (kb_kind)x[0]->kind), n, x, out);
}

kb_reg kh_each(kb *k, const double *c, kb_reg u, kh_core fn) {
  kb_reg lo = fn(k, c, kb_unpack(k, u, 0)), hi = fn(k, c, kb_unpack(k, u, 1));
  return kb_pack2(k, lo, hi, (kb_kind)u.kind);
}

static kb_reg word(kb *k, kb_reg u) {
  return kb_bitcast(k, u, KB_I32, 1);
}
static kb_reg pair(kb *k, kb_reg w, kb_reg like) {
  return kb_bitcast(k, w, (kb_kind)like.kind, 2);
}

kb_reg kh_blend(kb *k, kb_reg mask, kb_reg a, kb_reg b) {
  return pair(k, kb_or(k, kb_and(k, mask, word(k, a)), kb_and(k, kb_not(k, mask), word(k, b))), a);
}

kb_reg kh_below(kb *k, kb_reg u, double at) {
  return kb_size_mask2(k, LLVMRealOLT, u, at);
}

kb_reg kh_clamp(kb *k, kb_reg u, double low, double high) {
  return kb_fmax(k, kb_fmin(k, u, kb_flike(k, u, high)), kb_flike(k, u, low));
}

// `bits` in both halves, where u is `at`.
static kb_reg bits_at(kb *k, kb_reg u, double at, int bits) {
  return kb_andi(k, kb_mask2(k, LLVMRealOEQ, u, kb_flike(k, u, at)), (int64_t)bits * 0x10001);
}

kb_reg kh_ending(kb *k, kb_reg r, kb_reg u, double at, int bits, int value) {
  kb_reg w = word(k, r);
  if (value != bits) w = kb_and(k, w, kb_not(k, bits_at(k, u, at, bits)));
  if (value != 0) w = kb_or(k, w, bits_at(k, u, at, value));
  return pair(k, w, r);
}

kb_reg kh_replace(kb *k, kb_reg u, double at, int bits) {
  return pair(k, kb_xor(k, word(k, u), bits_at(k, u, at, bits)), u);
}

kb_reg kh_horner(kb *k, kb_reg x, const double *c, unsigned n) {
  kb_reg r = kb_flike(k, x, c[n - 1]);
  for (unsigned i = n - 1; i-- > 0;) r = kb_fma(k, r, x, kb_flike(k, x, c[i]));
  return r;
}
