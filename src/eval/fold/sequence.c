// Sums and products in one order.
#include "eval/fold/sequence.h"

bool kl_sequence_of(const kl_comp *c, kl_sequence *s) {
  const kl_instr *root = kl_root(c);
  if (c->nparams != 2 || (root->op != KL_OP_ADD && root->op != KL_OP_MULTIPLY)) return false;
  const kl_instr *a = kl_operand(c, root, 0), *b = kl_operand(c, root, 1);
  if (a->op != KL_OP_PARAMETER || b->op != KL_OP_PARAMETER || a->number == b->number) return false;
  kl_dtype t = root->shape->dtype;
  bool narrow = kl_is_float(t) && kl_info(t)->bits <= 16;
  *s = (kl_sequence){.t = t, .wide = narrow ? KILN_F32 : t};
  s->op = (kl_ew){.op = root->op, .nin = 2, .in = {s->wide, s->wide}, .out = s->wide};
  return kl_ew_bind(&s->op);
}

void kl_sequence_load(const kl_sequence *s, const void *elements, int64_t i, void *to) {
  if (s->t == s->wide) {
    size_t size = kl_ev_size(s->t);
    memcpy(to, (const char *)elements + i * (int64_t)size, size);
    return;
  }
  float x = (float)kl_float_decode(s->t, kl_element_get(s->t, elements, i, 0));
  memcpy(to, &x, sizeof x);
}

void kl_sequence_store(const kl_sequence *s, const void *from, void *elements, int64_t i) {
  if (s->t == s->wide) {
    size_t size = kl_ev_size(s->t);
    memcpy((char *)elements + i * (int64_t)size, from, size);
    return;
  }
  float x;
  memcpy(&x, from, sizeof x);
  kl_element_set(s->t, elements, i, 0, kl_float_encode(s->t, (double)x));
}

void kl_sequence_join(const kl_sequence *s, const void *a, const void *b, void *to) {
  if (s->wide == KILN_F32) {
    float x, y;
    memcpy(&x, a, sizeof x), memcpy(&y, b, sizeof y);
    x = s->op.op == KL_OP_ADD ? x + y : x * y;
    memcpy(to, &x, sizeof x);
    return;
  }
  _Alignas(16) char made[KL_SEQUENCE_BYTES];
  s->op.run(&s->op, 1, (const void *const[3]){a, b, NULL}, made);
  memcpy(to, made, kl_ev_size(s->wide));
}

// --- scans ----------------------------------------------------------------------------------------------------------

enum { BASE = 16, LEVELS = 17 };

typedef struct value {
  _Alignas(16) char p[KL_SEQUENCE_BYTES];
} value;

// A block of level 0 has ended before element i: its chain joins the blocks that it is in, as far up as they end, too.
static void end_block(const kl_sequence *s, int64_t i, const value *block, value *chain) {
  value done = *block;
  int64_t number = i / BASE;
  for (int level = 1;; level++, number /= BASE) {
    int64_t digit = number % BASE;
    if (digit == 1)
      chain[level] = done;
    else
      kl_sequence_join(s, chain[level].p, done.p, chain[level].p);
    if (digit) return;
    done = chain[level];
  }
}

// What comes before the block of 16 that begins at i.
static value before_block(const kl_sequence *s, int64_t i, const value *chain, const void *init) {
  value r;
  int64_t number[LEVELS];
  int top = 0;
  memcpy(r.p, init, kl_ev_size(s->wide));
  for (int64_t n = i / BASE; n; n /= BASE) number[++top] = n % BASE;
  for (int level = top; level > 0; level--)
    if (number[level]) kl_sequence_join(s, r.p, chain[level].p, r.p);
  return r;
}

void kl_sequence_scan(const kl_sequence *s, const kl_sequence_line *l, const void *init) {
  value chain[LEVELS], base, x, result;
  memcpy(result.p, init, kl_ev_size(s->wide));
  base = result;
  for (int64_t i = 0; i < l->length; i++) {
    kl_sequence_load(s, l->in, i * l->in_stride, x.p);
    if (i % BASE == 0) {
      if (i) end_block(s, i, &chain[0], chain);
      base = before_block(s, i, chain, init);
      chain[0] = x;
    } else {
      kl_sequence_join(s, chain[0].p, x.p, chain[0].p);
    }
    kl_sequence_join(s, base.p, chain[0].p, result.p);
    kl_sequence_store(s, result.p, l->out, i * l->out_stride);
  }
  if (l->last) kl_sequence_store(s, result.p, l->last, 0);
}
