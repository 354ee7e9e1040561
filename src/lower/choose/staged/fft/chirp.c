// The chirp of a convolution, where it is too long for constants: a launch makes it of a table of roots. k^2 is taken
// modulo 2 n as an integer, so that angles are exact, and roots are those of c128 whatever the type.

#include "lower/choose/staged/fft/fft.h"

typedef struct chirp {
  kl_stage_body b;
  const kl_table *roots;
  int64_t n, size;
  uint32_t chirp, periodic;
  const kl_aff *at;
} chirp;

static uint32_t integer(chirp *x, int64_t v) {
  return kl_stage_number(&x->b, KILN_S64, kl_aff_const(x->b.s->p, v));
}

// k^2 modulo 2 n.
static uint32_t square_of(chirp *x, uint32_t k) {
  return kl_stage_op(&x->b, KL_OP_REMAINDER, kl_stage_op(&x->b, KL_OP_MULTIPLY, k, k), integer(x, 2 * x->n));
}

static uint32_t rounded(chirp *x, uint32_t value) {
  kl_dtype part = kl_number_part(x->b.s->c->slots.v.p[x->chirp].shape->dtype);
  if (part == KILN_F64) return value;
  return kl_write_op(&x->b.w, (kl_plan_op){.op = KL_OP_CONVERT}, part, 1, &value);
}

static kiln_status write_chirp(void *arg) {
  chirp *x = arg;
  kl_stage_body *b = &x->b;
  const kl_aff *at = kl_dom_simplify(b->w.body->domain, x->at);
  bool never = false;
  uint32_t there = kl_guard_and(&b->w.guards, KL_NONE, at, 0, x->size - 1, &never);
  uint32_t up = kl_stage_number(b, KILN_S64, at), down = kl_stage_op(b, KL_OP_SUBTRACT, integer(x, x->size), up);
  uint32_t k = kl_stage_op(b, KL_OP_MINIMUM, up, down);
  const kl_aff *e = kl_write_index(&b->w, square_of(x, k), (kl_interval){0, 2 * x->n - 1});
  kl_number c = kl_table_root(b, x->roots, e, there);
  c = (kl_number){rounded(x, c.re), rounded(x, c.im)};
  uint32_t in = kl_guard_and(&b->w.guards, there, at, 0, x->n - 1, &never);
  KL_TRY(kl_number_store(b, x->chirp, at, c, in));
  // The chirp's conjugate for the number k from the nearest end on, with nothing between.
  kl_number zero = kl_number_const(b, x->b.s->c->slots.v.p[x->chirp].shape->dtype, 0, 0);
  uint32_t known = kl_stage_compare(b, KL_LT, KL_CMP_DEFAULT, k, integer(x, x->n));
  c = kl_number_conj(b, c);
  c.re = kl_stage_select(b, known, c.re, zero.re);
  c.im = kl_stage_select(b, known, c.im, zero.im);
  return kl_number_store(b, x->periodic, at, c, there);
}

kiln_status kl_write_chirp(const kl_stage *s, const kl_table *roots, int64_t n, int64_t size, uint32_t slot,
                           uint32_t periodic) {
  chirp x = {.roots = roots, .n = n, .size = size, .chirp = slot, .periodic = periodic};
  x.at = kl_stage_elements(&x.b, s, size, 1);
  return kl_stage_write(&x.b, size, write_chirp, &x);
}
