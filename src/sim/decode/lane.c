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

typedef struct letter {
  unsigned bits, count;
  bool wider, optional, pair, constant, second; // second: a predicate follows behind a bar
} letter;

// The next letter of a row's operands; false at '=' or the end.
static bool next_letter(const char **p, letter *out) {
  *out = (letter){.count = 1};
  if (**p == '?') out->optional = true, ++*p;
  if (**p >= '2' && **p <= '9') out->count = (unsigned)(*(*p)++ - '0');
  switch (**p) {
  case 'p': out->bits = 1; break;
  case 'P': out->bits = 1, out->pair = true; break;
  case 'B': out->bits = 8, out->wider = true; break;
  case 'h': out->bits = 16; break;
  case 'H': out->bits = 16, out->wider = true; break;
  case 'w': out->bits = 32; break;
  case 'W': out->bits = 32, out->wider = true; break;
  case 'l': out->bits = 64; break;
  case 'L': out->bits = 64, out->wider = true; break;
  case 'q': out->bits = 128; break;
  case 'i': out->constant = true; break;
  default: return false;
  }
  ++*p;
  if (**p == '|') out->second = true, *p += 2;
  return true;
}

typedef struct places {
  kl_ref d[4], s[6];
  unsigned nd, ns;
  uint64_t constant;
} places;

static void put_target(kl_decoder *d, const kl_ptx_operand *o, letter l, places *out) {
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
  out->d[out->nd++] = kl_d_target(d, o, l.bits, l.wider, sign);
}

static void put_source(kl_decoder *d, const kl_ptx_operand *o, letter l, places *out, uint32_t *flags) {
  bool negated = false;
  if (l.constant) {
    if (o->kind != KL_PTX_INT) kl_d_invalid(d, "expected an integer constant");
    out->constant = o->bits;
    return;
  }
  if (l.count == 1) {
    out->s[out->ns] = kl_d_source(d, o, l.bits, l.wider, l.bits == 1 ? &negated : NULL);
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

void kl_d_lanes(kl_decoder *d) {
  const char *p = d->match.form->operands;
  places at = {.d = {KL_NO_REF, KL_NO_REF}};
  uint32_t n = 0, flags = d->match.flags;
  bool targets = true;
  letter l;
  for (;;) {
    if (*p == '=') {
      targets = false;
      p++;
    }
    if (!next_letter(&p, &l)) break;
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
  kl_sim_op *op = kl_d_op(d, executor(d->set, d->match.topic, d->match.row));
  op->d = at.d[0];
  op->e = at.d[1];
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
