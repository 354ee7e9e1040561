#include "sim/decode/decode.h"

// --- registers and constants --------------------------------------------------------------------------------------

// Bytes that a register takes.
static unsigned register_bytes(unsigned bits) {
  return bits == 1 ? 4 : bits <= 16 ? 2 * KL_LANES : bits / 8 * KL_LANES;
}

kl_ref kl_d_temporary(kl_decoder *d, unsigned bits) {
  kl_ref at = d->temporaries;
  unsigned bytes = register_bytes(bits);
  d->temporaries += bytes < 64 ? 64 : bytes;
  if (d->temporaries > d->most) d->most = d->temporaries;
  return at | KL_IN_REGISTERS;
}

static void put_lanes(char *to, uint64_t low, uint64_t high, unsigned bits) {
  if (bits == 1) {
    uint32_t word = low ? KL_ALL_LANES : 0;
    memcpy(to, &word, 4);
    return;
  }
  for (unsigned i = 0; i < KL_LANES; i++) switch (bits) {
    case 8:
    case 16: memcpy(to + 2 * i, &low, 2); break;
    case 32: memcpy(to + 4 * i, &low, 4); break;
    case 64: memcpy(to + 8 * i, &low, 8); break;
    default: memcpy(to + 16 * i, &low, 8), memcpy(to + 16 * i + 8, &high, 8); break;
    }
}

enum { MOST_CONSTANTS = 1 << 30 };

kl_ref kl_d_constant(kl_decoder *d, uint64_t low, uint64_t high, unsigned bits) {
  char lanes[16 * KL_LANES] = {0};
  size_t bytes = register_bytes(bits), room = bytes < 64 ? 64 : bytes;
  if (bits < 64) low &= ((uint64_t)1 << bits) - 1;
  put_lanes(lanes, low, high, bits);
  // The last few are looked through: the same constant is often wanted again at once.
  for (size_t back = 1; back <= 16 && back * 64 <= d->constants.n; back++) {
    size_t at = d->constants.n - back * 64;
    if (room <= d->constants.n - at && memcmp(d->constants.p + at, lanes, room) == 0)
      return (kl_ref)at | KL_IN_CONSTANTS;
  }
  size_t at = d->constants.n;
  if (at >= MOST_CONSTANTS) {
    kl_d_unsupported(d, "the function has too many constants");
    return 0;
  }
  for (size_t i = 0; i < room; i++) VEC_PUSH(d->cx, &d->constants, lanes[i]);
  return (kl_ref)at | KL_IN_CONSTANTS;
}

unsigned kl_d_register_bits(const kl_decoder *d, const kl_ptx_operand *o) {
  if (o->kind == KL_PTX_REG) return kl_ptx_type_bits[kl_ptx_register_type(d->f, o->index)];
  if (o->kind == KL_PTX_SPECIAL) return kl_special_find(o->text).bits;
  return 0;
}

bool kl_d_count(kl_decoder *d, uint32_t least, uint32_t most) {
  uint32_t n = d->i->noperands;
  if (n >= least && n <= most) return true;
  if (least == most)
    kl_d_invalid(d, "expected %u operands, found %u", least, n);
  else
    kl_d_invalid(d, "expected %u to %u operands, found %u", least, most, n);
  return false;
}

// --- sources ------------------------------------------------------------------------------------------------------

static uint64_t float_bits(uint64_t bits, unsigned from, unsigned to) {
  double wide;
  float narrow;
  if (from == to) return bits;
  if (from == 64) {
    uint32_t out;
    memcpy(&wide, &bits, 8);
    narrow = (float)wide;
    memcpy(&out, &narrow, 4);
    return out;
  }
  memcpy(&narrow, &bits, 4);
  wide = narrow;
  memcpy(&bits, &wide, 8);
  return bits;
}

// The register's low bits, as a register of their own.
static kl_ref narrowed(kl_decoder *d, kl_ref from, unsigned have, unsigned bits) {
  char name[32];
  kl_ref to = kl_d_temporary(d, bits);
  memcpy(name, "trunc_", 6);
  snprintf(name, sizeof name, "trunc_%u_%u", have, bits);
  kl_sim_op *op = kl_d_glue_op(d, name);
  op->d = to;
  op->a = from;
  return to;
}

static kl_ref special_source(kl_decoder *d, const kl_ptx_operand *o, unsigned bits) {
  kl_special s = kl_special_find(o->text);
  kl_ref at = 0;
  switch (s.kind) {
  case KL_SPECIAL_NONE: kl_d_unsupported(d, "the special register %.*s is not known", KL_FMT(o->text)); return 0;
  case KL_SPECIAL_PRED:
  case KL_SPECIAL_PLACE: at = s.at | KL_IN_SPECIAL; break;
  case KL_SPECIAL_CLOCK: {
    at = kl_d_temporary(d, s.bits);
    kl_sim_op *op = kl_d_machine_op(d, s.bits == 32 ? kl_x_clock_32 : kl_x_clock_64);
    op->d = at;
    op->imm = s.at | (uint64_t)s.step << 8;
  }
  }
  if (s.bits == bits) return at;
  if (s.bits > bits && bits > 1) return narrowed(d, at, s.bits, bits);
  if (s.bits == 32 && bits == 64) { // mov.u64 of a 32-bit register, as old PTX has it
    kl_ref to = kl_d_temporary(d, 64);
    kl_sim_op *op = kl_d_glue_op(d, "zext_32_64");
    op->d = to;
    op->a = at;
    return to;
  }
  kl_d_invalid(d, "%.*s has %u bits, where %u are expected", KL_FMT(o->text), s.bits, bits);
  return 0;
}

static kl_ref wrong_bits(kl_decoder *d, const kl_ptx_operand *o, unsigned have, unsigned bits) {
  kl_sb name;
  kl_sb_init(&name, d->cx);
  kl_ptx_put_register(&name, d->f, o->index);
  kl_d_invalid(d, "%s has %u bits, where %u are expected", name.p, have, bits);
  kl_sb_free(&name);
  return 0;
}

// Parts of registers (%r1.b0) belong to instructions that are not simulated.
static bool is_part(kl_decoder *d, const kl_ptx_operand *o) {
  if (o->text.n) kl_d_unsupported(d, "parts of registers are not simulated here");
  return o->text.n != 0;
}

static kl_ref register_source(kl_decoder *d, const kl_ptx_operand *o, unsigned bits, bool wider, bool *negated) {
  unsigned have = kl_d_register_bits(d, o);
  kl_ref at = d->reg_at[o->index];
  if (have == 8 && bits == 16) have = 16;
  if (have == 16 && bits == 8) have = 8; // which an executor takes the lower half of
  if (is_part(d, o)) return 0;
  if (have != bits && !(wider && have > bits && bits > 1)) return wrong_bits(d, o, have, bits);
  if (have != bits) return narrowed(d, at, have, bits);
  if (!o->negated) return at;
  if (bits != 1) {
    kl_d_invalid(d, "only a predicate can be negated");
    return 0;
  }
  if (negated) {
    *negated = true;
    return at;
  }
  kl_ref to = kl_d_temporary(d, 1);
  kl_sim_op *op = kl_d_glue_op(d, "not_of_pred");
  op->d = to;
  op->a = at;
  return to;
}

kl_ref kl_d_source(kl_decoder *d, const kl_ptx_operand *o, unsigned bits, bool wider, bool *negated) {
  uint64_t address = 0;
  kl_where where = KL_AT_GENERIC;
  bool frame = false;
  switch (o->kind) {
  case KL_PTX_REG: return register_source(d, o, bits, wider, negated);
  case KL_PTX_SPECIAL: return special_source(d, o, bits);
  case KL_PTX_INT: return kl_d_constant(d, o->bits, o->negative ? ~(uint64_t)0 : 0, bits);
  case KL_PTX_FLOAT32:
  case KL_PTX_FLOAT64:
    if (bits != 32 && bits != 64) break;
    return kl_d_constant(d, float_bits(o->bits, o->kind == KL_PTX_FLOAT32 ? 32 : 64, bits), 0, bits);
  case KL_PTX_VAR:
  case KL_PTX_LOCALVAR:
  case KL_PTX_FUNCTION:
    if (bits != 32 && bits != 64) break;
    if (!kl_d_symbol(d, o, &address, &where, &frame)) return 0;
    if (frame) {
      kl_ref to = kl_d_temporary(d, bits);
      kl_sim_op *op = kl_d_machine_op(d, bits == 32 ? kl_x_frame_address_32 : kl_x_frame_address_64);
      op->d = to;
      op->imm = address;
      return to;
    }
    return kl_d_constant(d, address, 0, bits);
  default: break;
  }
  kl_d_invalid(d, "expected a register or constant of %u bits", bits);
  return 0;
}

// --- destinations -------------------------------------------------------------------------------------------------

kl_ref kl_d_target(kl_decoder *d, const kl_ptx_operand *o, unsigned bits, bool wider, bool sign) {
  if (o->kind == KL_PTX_SINK) return kl_d_temporary(d, bits);
  unsigned have = kl_d_register_bits(d, o);
  if (o->kind != KL_PTX_REG || o->negated) {
    kl_d_invalid(d, "expected a register of %u bits to write", bits);
    return 0;
  }
  if (is_part(d, o)) return 0;
  if (have == 8 && bits == 16) have = 16;
  if (have == bits) return d->reg_at[o->index];
  if (!wider || have < bits || bits == 1) return wrong_bits(d, o, have, bits);
  char name[32];
  snprintf(name, sizeof name, "%s_%u_%u", sign ? "sext" : "zext", bits, have);
  kl_made_op after = kl_d_glue(d, name);
  after.op.d = d->reg_at[o->index];
  after.op.a = kl_d_temporary(d, bits);
  VEC_PUSH(d->cx, &d->after, after);
  return after.op.a;
}

// --- addresses ----------------------------------------------------------------------------------------------------

bool kl_d_symbol(kl_decoder *d, const kl_ptx_operand *o, uint64_t *address, kl_where *where, bool *frame) {
  *frame = false;
  if (o->kind == KL_PTX_FUNCTION) {
    *address = KL_CODE_WINDOW + (uint64_t)(kl_d_function(d, o->index) + 1) * KL_FUNCTION_STEP + (uint64_t)o->offset;
    *where = KL_AT_GENERIC;
    return true;
  }
  if (o->kind == KL_PTX_VAR) {
    const kl_ptx_var *v = &d->loaded->ptx->vars[o->index];
    *where = v->space == KL_PTX_SHARED ? KL_AT_SHARED : KL_AT_GLOBAL;
    *address =
        (v->space == KL_PTX_SHARED ? d->kernel->shared[o->index] : d->loaded->address[o->index]) + (uint64_t)o->offset;
    return true;
  }
  const kl_ptx_var *v = &d->f->vars[o->index];
  bool is_param = d->f->entry && o->index >= d->f->nreturns && o->index < d->f->nreturns + d->f->nparams;
  *address = d->code->var_at[o->index] + (uint64_t)o->offset;
  *where = v->space == KL_PTX_SHARED                              ? KL_AT_SHARED
           : is_param                                             ? KL_AT_PARAM
           : v->space == KL_PTX_PARAM || v->space == KL_PTX_LOCAL ? KL_AT_STACK
                                                                  : KL_AT_GLOBAL;
  *frame = *where == KL_AT_STACK;
  return true;
}

static const struct {
  const char *mod;
  kl_where where;
} spaces[] = {
    {"global", KL_AT_GLOBAL},      {"const", KL_AT_GLOBAL},           {"shared", KL_AT_SHARED},
    {"shared::cta", KL_AT_SHARED}, {"shared::cluster", KL_AT_SHARED}, {"local", KL_AT_STACK},
    {"param::func", KL_AT_STACK},  {"param::entry", KL_AT_PARAM},
};

// What the modifiers say; `.param` alone is the kernel's own for a symbol or register of an entry.
static kl_where named_space(const kl_decoder *d, bool *said) {
  *said = true;
  for (size_t i = 0; i < KL_COUNT(spaces); i++)
    if (kl_isa_has(d->i, spaces[i].mod)) return spaces[i].where;
  if (kl_isa_has(d->i, "param")) return d->f->entry ? KL_AT_PARAM : KL_AT_STACK;
  *said = false;
  return KL_AT_GENERIC;
}

bool kl_d_address(kl_decoder *d, const kl_ptx_operand *o, const kl_where *named, kl_sim_access *out) {
  bool said = named != NULL, frame = false;
  uint64_t address = 0;
  kl_where found = KL_AT_GENERIC;
  const kl_ptx_operand *base = o->kind == KL_PTX_ADDRESS ? &o->items[0] : o;
  out->where = (uint8_t)(named ? *named : named_space(d, &said));
  out->base = KL_NO_REF;
  out->offset = o->kind == KL_PTX_ADDRESS ? o->offset : 0;
  switch (base->kind) {
  case KL_PTX_REG: {
    unsigned bits = kl_d_register_bits(d, base);
    if (bits != 32 && bits != 64) break;
    out->base = d->reg_at[base->index];
    out->wide = (uint8_t)(bits / 8);
    return true;
  }
  case KL_PTX_INT: out->offset = (int64_t)((uint64_t)out->offset + base->bits); return true;
  case KL_PTX_VAR:
  case KL_PTX_LOCALVAR:
    if (!kl_d_symbol(d, base, &address, &found, &frame)) return false;
    if (said && found != out->where && !(out->where == KL_AT_PARAM && found == KL_AT_STACK)) {
      kl_d_invalid(d, "the variable lies in another state space than the instruction names");
      return false;
    }
    out->where = (uint8_t)found;
    out->frame = frame;
    out->offset = (int64_t)((uint64_t)out->offset + address);
    return true;
  default: break;
  }
  kl_d_invalid(d, "expected an address: a register of 32 or 64 bits, a variable or a number");
  return false;
}
