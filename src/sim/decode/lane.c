// Instructions whose row says all: operands by letter, one executor of the lanes.

#include "sim/decode/decode.h"
#include "sim/isa/topics.h"

static kl_run *executor(const kl_lane_set *set, uint32_t topic, uint32_t row) {
  uint32_t t = 0;
#define X(name, rows)                                                                                                  \
  if (topic == t++) return set->name##_rows[row];
  KL_LANE_TOPICS(X)
#undef X
  return NULL;
}

typedef struct places {
  kl_ref d[4], s[6];
  unsigned nd, ns;
  uint64_t constant;
  kl_str selector[4]; // of d, a, b, c
  bool minus[4];
} places;

// The operand without its selector and sign, which are noted as those of operand `n`.
static kl_ptx_operand bare(const kl_ptx_operand *o, places *out, unsigned n) {
  kl_ptx_operand register_alone = *o;
  if (o->kind != KL_PTX_REG) return register_alone;
  out->selector[n] = o->text;
  out->minus[n] = o->negated && o->minus;
  register_alone.text = (kl_str){0};
  if (out->minus[n]) register_alone.negated = register_alone.minus = false;
  return register_alone;
}

static void put_target(kl_decoder *d, const kl_ptx_operand *o, kl_isa_letter l, places *out) {
  bool sign = kl_isa_type_at(d->i, 0).kind == 's'; // the type of a result comes first
  if (l.pair && o->kind == KL_PTX_PAIR) {
    out->d[out->nd++] = kl_d_target(d, &o->items[0], 1, false, false);
    out->d[out->nd++] = kl_d_target(d, &o->items[1], 1, false, false);
    return;
  }
  if (l.second) {
    if (o->kind != KL_PTX_PAIR) {
      kl_d_invalid(d, "expected a register and, behind a bar, a predicate");
      return;
    }
    out->d[out->nd++] = kl_d_target(d, &o->items[0], l.bits, l.wider, sign);
    out->d[out->nd++] = kl_d_target(d, &o->items[1], 1, false, false);
    return;
  }
  if (l.count > 1) {
    if (o->kind != KL_PTX_VECTOR || o->nitems != l.count) {
      kl_d_invalid(d, "expected %u registers in braces", l.count);
      return;
    }
    for (unsigned k = 0; k < l.count && out->nd < KL_COUNT(out->d); k++)
      out->d[out->nd++] = kl_d_target(d, &o->items[k], l.bits, l.wider, sign);
    return;
  }
  kl_ptx_operand plain = l.selected ? bare(o, out, 0) : *o;
  out->d[out->nd++] = kl_d_target(d, &plain, l.bits, l.wider, sign);
}

static void put_source(kl_decoder *d, const kl_ptx_operand *o, kl_isa_letter l, places *out, uint32_t *flags) {
  bool negated = false;
  if (l.constant) {
    if (o->kind != KL_PTX_INT) kl_d_invalid(d, "expected an integer constant");
    out->constant = o->bits;
    return;
  }
  if (l.count == 1) {
    kl_ptx_operand plain = l.selected ? bare(o, out, out->ns + 1) : *o;
    out->s[out->ns] = kl_d_source(d, &plain, l.bits, l.wider, l.bits == 1 ? &negated : NULL);
    out->ns++;
    if (negated) *flags |= KL_NOT_C;
    return;
  }
  if (o->kind != KL_PTX_VECTOR || o->nitems != l.count) {
    kl_d_invalid(d, "expected %u registers in braces", l.count);
    return;
  }
  for (unsigned k = 0; k < l.count && out->ns < KL_COUNT(out->s); k++)
    out->s[out->ns++] = kl_d_source(d, &o->items[k], l.bits, l.wider, NULL);
}

// --- selectors of video instructions ------------------------------------------------------------------------------

static uint64_t wrong_selector(kl_decoder *d, kl_str selector, const char *expected) {
  kl_d_invalid(d, "expected %s, found .%.*s", expected, KL_FMT(selector));
  return 0;
}

static uint64_t scalar_selector(kl_decoder *d, kl_str s) {
  if (s.n == 0) return KL_PART_WORD;
  unsigned most = s.n == 2 && s.p[0] == 'b'   ? 4
                  : s.n == 2 && s.p[0] == 'h' ? 2
                                              : 0,
           n = s.n == 2 ? (unsigned)s.p[1] - '0' : 0;
  if (n >= most) return wrong_selector(d, s, ".b0 to .b3, .h0 or .h1");
  return n + (most == 4 ? KL_PART_B0 : KL_PART_H0);
}

// Which elements of both operands: .h10, .b3210; the last digit is element 0's. `own`: number of the operand's first.
static uint64_t simd_selector(kl_decoder *d, kl_str s, unsigned count, unsigned own) {
  uint64_t out = 0;
  if (s.n == 0) return 0;
  for (unsigned i = 0; s.n == count + 1 && s.p[0] == (count == 2 ? 'h' : 'b') && i < count; i++) {
    unsigned which = (unsigned)s.p[count - i] - '0';
    if (which >= 2 * count) break;
    out |= (uint64_t)(which ^ (own + i)) << 4 * i;
    if (i == count - 1) return out;
  }
  return wrong_selector(d, s, count == 2 ? ".h and two halves of 0 to 3" : ".b and four bytes of 0 to 7");
}

// The elements that a mask leaves out: of .h10, .b20 those not named; they fall.
static uint64_t simd_kept(kl_decoder *d, kl_str s, unsigned count) {
  uint64_t named = 0;
  unsigned before = count;
  if (s.n == 0) return 0;
  for (size_t i = 1; s.p[0] == (count == 2 ? 'h' : 'b') && i < s.n; i++) {
    unsigned which = (unsigned)s.p[i] - '0';
    if (which >= before) return wrong_selector(d, s, "elements to write, the highest first");
    before = which;
    named |= 1u << which;
  }
  if (!named) return wrong_selector(d, s, "elements to write");
  return ~named & ((1u << count) - 1);
}

static uint64_t video_selectors(kl_decoder *d, const places *at) {
  char last = d->i->opcode.p[d->i->opcode.n - 1];
  unsigned count = last == '2' ? 2 : last == '4' ? 4 : 1;
  bool negates = kl_str_is(d->i->opcode, "vmad"), more = kl_isa_has(d->i, "po");
  for (unsigned k = 0; k < 4; k++)
    if (at->minus[k] && (!negates || more)) kl_d_invalid(d, "an operand cannot be negated here");
  if (at->selector[3].n) kl_d_invalid(d, "the third operand has no selector");
  if (count > 1)
    return simd_selector(d, at->selector[1], count, 0) << KL_SIMD_A |
           simd_selector(d, at->selector[2], count, count) << KL_SIMD_B |
           simd_kept(d, at->selector[0], count) << KL_SIMD_KEPT;
  bool second = kl_isa_has(d->i, "add") || kl_isa_has(d->i, "min") || kl_isa_has(d->i, "max");
  if (!negates && (at->ns == 3) != (second || at->selector[0].n != 0))
    kl_d_invalid(d, "a third operand belongs to a second operation, or to a part of the result");
  if (second && at->selector[0].n) kl_d_invalid(d, "with a second operation the result is a whole register");
  if (at->minus[1] != at->minus[2] && at->minus[3])
    kl_d_invalid(d, "either the product or the third operand is negated");
  return scalar_selector(d, at->selector[1]) << KL_PART_A | scalar_selector(d, at->selector[2]) << KL_PART_B |
         scalar_selector(d, at->selector[0]) << KL_PART_D | (at->minus[1] != at->minus[2] ? KL_MINUS_PRODUCT : 0) |
         (at->minus[3] ? KL_MINUS_C : 0);
}

void kl_d_lanes(kl_decoder *d) {
  const char *p = d->match.form->operands;
  places at = {.d = {KL_NO_REF, KL_NO_REF}, .s = {0, 0, KL_NO_REF}};
  uint32_t n = 0, flags = d->match.flags;
  bool targets = true;
  kl_isa_letter l;
  for (;;) {
    if (*p == '=') {
      targets = false;
      p++;
    }
    if (!kl_isa_next_letter(&p, &l)) break;
    if (n == d->i->noperands) {
      if (l.optional) continue;
      kl_d_invalid(d, "expected more operands than %u: %s", n, d->match.form->operands);
      return;
    }
    if (targets)
      put_target(d, &d->i->operands[n++], l, &at);
    else
      put_source(d, &d->i->operands[n++], l, &at, &flags);
    if (d->status) return;
  }
  if (n != d->i->noperands) {
    kl_d_invalid(d, "expected %u operands, found %u", n, d->i->noperands);
    return;
  }
  if (strchr(d->match.form->operands, 'v')) {
    at.constant = video_selectors(d, &at);
    if (d->status) return;
  }
  kl_sim_op *op = kl_d_op(d, executor(d->set, d->match.topic, d->match.row));
  op->d = at.d[0];
  op->e = at.ns > 4 ? at.s[4] : at.d[1];
  op->a = at.s[0];
  op->b = at.s[1];
  op->c = at.s[2];
  op->f = at.s[3];
  op->flags = flags;
  op->imm = at.constant;
}

kl_made_op kl_d_glue(kl_decoder *d, const char *name) {
#define FORM(executor, operands, spread) {#executor, operands, "", KL_UNIT_INTEGER, KL_SPREAD_##spread, KL_EXACT},
  static const kl_form forms[] = {KL_ISA_GLUE(FORM)};
#undef FORM
  kl_made_op made = {.op = {.d = KL_NO_REF, .e = KL_NO_REF, .index = d->index}};
  for (size_t k = 0; k < KL_COUNT(forms); k++)
    if (strcmp(forms[k].pattern, name) == 0) {
      made.op.run = d->set->glue[k];
      made.form = &forms[k];
      return made;
    }
  kl_d_unsupported(d, "no conversion %s", name);
  return made;
}

kl_sim_op *kl_d_glue_op(kl_decoder *d, const char *name) {
  VEC_PUSH(d->cx, &d->ops, kl_d_glue(d, name));
  return &d->ops.p[d->ops.n - 1].op;
}
