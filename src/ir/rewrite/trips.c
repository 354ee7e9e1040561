// How often loops run: integers that are constants, or a leaf of the state and a constant.

#include "ir/rewrite/trips.h"

__extension__ typedef __int128 wide;

// Steps of one walk, and sums in each other: beyond that nothing is known.
enum { MOST_STEPS = 4096, MOST_DEPTH = 32 };

// Where a computation is called from.
typedef struct frame {
  const kl_comp *c;
  const kl_instr *call; // of `outer`; NULL: its parameters are the walk's own
  const struct frame *outer;
} frame;

typedef struct walk {
  const kiln_module *m;
  unsigned steps, depth;
} walk;

// A constant, or with `state` a leaf of the walk's own parameters and a constant.
typedef struct number {
  bool known, state;
  uint32_t leaf;
  wide add;
} number;

static number number_of(walk *w, const frame *f, uint32_t instr, uint32_t leaf);

static number number_of_parameter(walk *w, const frame *f, const kl_instr *in, uint32_t leaf) {
  if (f->call) return number_of(w, f->outer, f->call->operands[in->number], leaf);
  for (int64_t p = 0; p < in->number; p++) leaf += (uint32_t)kl_shape_leaf_count(f->c->instr[f->c->params[p]].shape);
  return (number){.known = true, .state = true, .leaf = leaf};
}

static number number_of_constant(const kl_instr *in) {
  kl_dtype t = in->shape->dtype;
  if (!in->literal || in->shape->rank || !kl_is_int(t)) return (number){0};
  uint64_t bits = kl_element_get(t, in->literal[0].data, 0, 0);
  bool negative = kl_is_signed(t) && kl_int_decode(t, bits) < 0;
  return (number){.known = true, .add = negative ? (wide)kl_int_decode(t, bits) : (wide)bits};
}

static number sum_of(number a, number b, int sign) {
  if (!a.known || !b.known || (b.state && (a.state || sign < 0))) return (number){0};
  number sum = a.state ? a : b;
  sum.add = a.add + sign * b.add;
  return sum;
}

// Only what is of one type all along is followed, so that no value is cut off.
static number number_of(walk *w, const frame *f, uint32_t instr, uint32_t leaf) {
  const kl_instr *in = &f->c->instr[instr];
  frame inner = {.call = in, .outer = f};
  number n = {0};
  if (w->steps++ >= MOST_STEPS || w->depth >= MOST_DEPTH) return n;
  w->depth++;
  switch (in->op) {
  case KL_OP_PARAMETER: n = number_of_parameter(w, f, in, leaf); break;
  case KL_OP_CONSTANT: n = number_of_constant(in); break;
  case KL_OP_TUPLE: {
    uint32_t e = kl_shape_element_of_leaf(in->shape, leaf);
    n = number_of(w, f, in->operands[e], leaf - in->shape->first_leaf[e]);
    break;
  }
  case KL_OP_GET_TUPLE_ELEMENT:
    n = number_of(w, f, in->operands[0], leaf + kl_operand(f->c, in, 0)->shape->first_leaf[in->number]);
    break;
  case KL_OP_COPY: n = number_of(w, f, in->operands[0], leaf); break;
  case KL_OP_BITCAST:
  case KL_OP_RESHAPE:
    if (!in->shape->rank && kl_operand(f->c, in, 0)->shape->dtype == in->shape->dtype)
      n = number_of(w, f, in->operands[0], leaf);
    break;
  case KL_OP_FUSION:
  case KL_OP_CALL:
    inner.c = &w->m->comp[in->called[0]];
    n = number_of(w, &inner, inner.c->root, leaf);
    break;
  case KL_OP_ADD:
  case KL_OP_SUBTRACT:
    if (in->shape->rank || !kl_is_int(in->shape->dtype)) break;
    n = sum_of(number_of(w, f, in->operands[0], 0), number_of(w, f, in->operands[1], 0), in->op == KL_OP_ADD ? 1 : -1);
    break;
  default: break;
  }
  w->depth--;
  return n;
}

static number leaf_of(const kiln_module *m, const kl_comp *c, uint32_t instr, uint32_t leaf) {
  walk w = {.m = m};
  frame f = {.c = c};
  return number_of(&w, &f, instr, leaf);
}

// The comparison that a computation's root is, behind fusions and calls; frames of these, the innermost first.
static const kl_instr *find_compare(const kiln_module *m, frame *f, unsigned n, unsigned *last) {
  uint32_t at = f[0].c->root;
  *last = 0;
  for (unsigned steps = 0; steps < MOST_STEPS; steps++) {
    const kl_instr *in = &f[*last].c->instr[at];
    if (in->op == KL_OP_COPY || in->op == KL_OP_BITCAST) {
      at = in->operands[0];
    } else if ((in->op == KL_OP_FUSION || in->op == KL_OP_CALL) && *last + 1 < n) {
      f[*last + 1] = (frame){&m->comp[in->called[0]], in, &f[*last]};
      at = f[++*last].c->root;
    } else {
      return in->op == KL_OP_COMPARE && !in->shape->rank ? in : NULL;
    }
  }
  return NULL;
}

// --- counting -------------------------------------------------------------------------------------------------------

static kl_direction turned(kl_direction d) {
  return d == KL_LT ? KL_GT : d == KL_GT ? KL_LT : d == KL_LE ? KL_GE : d == KL_GE ? KL_LE : d;
}

// The least k for which not (at + k*step OP limit).
static bool count_of(wide at, wide step, kl_direction d, wide limit, wide *out) {
  if (d == KL_GT || d == KL_GE) {
    at = -at, step = -step, limit = -limit;
    d = turned(d);
  }
  if (d == KL_LE) limit++;
  wide left = limit - at;
  if (d == KL_NE) {
    if (left && (!step || left % step || left / step < 0)) return false;
    *out = left ? left / step : 0;
    return true;
  }
  if (d != KL_LT && d != KL_LE) return false;
  if (left > 0 && step <= 0) return false;
  *out = left <= 0 ? 0 : (left + step - 1) / step;
  return true;
}

static bool fits(kl_dtype t, wide v) {
  int bits = kl_info(t)->bits;
  wide one = 1;
  return kl_is_signed(t) ? v >= -(one << (bits - 1)) && v < one << (bits - 1) : v >= 0 && v < one << bits;
}

// What a side of the comparison is when the loop begins, and what is added to it in each round.
static bool side_of(const kiln_module *m, const kl_comp *c, const kl_instr *loop, number n, wide *at, wide *step) {
  const kl_comp *body = &m->comp[loop->called[1]];
  *at = n.add, *step = 0;
  if (!n.known || !n.state) return n.known;
  number init = leaf_of(m, c, loop->operands[0], n.leaf), next = leaf_of(m, body, body->root, n.leaf);
  if (!init.known || init.state || !next.known || !next.state || next.leaf != n.leaf) return false;
  *at += init.add;
  *step = next.add;
  return true;
}

bool kl_trip_count(const kiln_module *m, const kl_comp *c, const kl_instr *loop, uint64_t *out) {
  frame f[MOST_DEPTH] = {{.c = &m->comp[loop->called[0]]}};
  unsigned last;
  const kl_instr *in = find_compare(m, f, MOST_DEPTH, &last);
  if (!in) return false;
  kl_dtype t = kl_operand(f[last].c, in, 0)->shape->dtype;
  wide at, step, limit, still, n;
  walk w = {.m = m};
  if (!kl_is_int(t)) return false;
  number a = number_of(&w, &f[last], in->operands[0], 0), b = number_of(&w, &f[last], in->operands[1], 0);
  kl_direction d = in->direction;
  if (!side_of(m, c, loop, a, &at, &step) || !side_of(m, c, loop, b, &limit, &still)) return false;
  if (step == 0 && still != 0) {
    wide x = at, y = step;
    number z = a;
    at = limit, step = still, limit = x, still = y, a = b, b = z;
    d = turned(d);
  }
  if (still || !fits(t, limit) || !fits(t, limit - b.add) || !count_of(at, step, d, limit, &n)) return false;
  // neither the state nor what is compared wraps around
  wide before = at - a.add;
  if (!fits(t, at) || !fits(t, at + n * step) || !fits(t, before) || !fits(t, before + n * step)) return false;
  if (n > INT64_MAX) return false;
  *out = (uint64_t)n;
  return true;
}
