// Loads, stores, atomics; addresses and what else moves.

#include "sim/decode/decode.h"

static unsigned vector_count(const kl_ptx_instr *i) {
  return kl_isa_has(i, "v2") ? 2 : kl_isa_has(i, "v4") ? 4 : kl_isa_has(i, "v8") ? 8 : 1;
}

static kl_order order_of(const kl_ptx_instr *i) {
  return kl_isa_has(i, "volatile") || kl_isa_has(i, "mmio") ? KL_VOLATILE
         : kl_isa_has(i, "relaxed")                         ? KL_RELAXED
         : kl_isa_has(i, "acquire")                         ? KL_ACQUIRE
         : kl_isa_has(i, "release")                         ? KL_RELEASE
         : kl_isa_has(i, "acq_rel")                         ? KL_ACQ_REL
                                                            : KL_WEAK;
}

static kl_scope scope_of(const kl_ptx_instr *i, kl_order order) {
  if (order == KL_WEAK) return KL_SCOPE_NONE;
  return order == KL_VOLATILE       ? KL_SCOPE_SYS
         : kl_isa_has(i, "cta")     ? KL_SCOPE_CTA
         : kl_isa_has(i, "cluster") ? KL_SCOPE_CLUSTER
         : kl_isa_has(i, "sys")     ? KL_SCOPE_SYS
                                    : KL_SCOPE_GPU; // also where an atomic operation names none
}

// What memory ops have in common; NULL after a finding.
static kl_sim_access *new_access(kl_decoder *d, const kl_ptx_operand *address) {
  kl_sim_access *m = KL_NEW(d->arena, kl_sim_access);
  for (unsigned k = 0; k < KL_MOST_ELEMENTS; k++) m->regs[k] = KL_NO_REF;
  if (!kl_d_address(d, address, NULL, m)) return NULL;
  m->order = (uint8_t)order_of(d->i);
  m->scope = (uint8_t)scope_of(d->i, (kl_order)m->order);
  if (m->order != KL_WEAK && m->where != KL_AT_STACK && m->where != KL_AT_SHARED) d->kernel->talks = true;
  return m;
}

// Registers of a load or store; `bits` of an element in memory.
static bool elements(kl_decoder *d, kl_sim_access *m, const kl_ptx_operand *o, unsigned bits, bool target) {
  const kl_ptx_operand *items = o->kind == KL_PTX_VECTOR ? o->items : o;
  uint32_t n = o->kind == KL_PTX_VECTOR ? o->nitems : 1;
  if (n != m->count) {
    kl_d_invalid(d, "expected %u registers, found %u", m->count, n);
    return false;
  }
  for (uint32_t k = 0; k < n; k++) {
    if (items[k].kind == KL_PTX_SINK && target) continue;
    unsigned have = kl_d_register_bits(d, &items[k]);
    if (have == 0) have = bits; // a constant
    if (have < bits || have == 1 || (have == 128 && bits < 128)) {
      kl_d_invalid(d, "a register of %u bits cannot hold %u bits of memory", have, bits);
      return false;
    }
    if (have < 16) have = 16;
    if (target && items[k].kind != KL_PTX_REG) {
      kl_d_invalid(d, "expected a register to load into");
      return false;
    }
    m->regs[k] = target ? d->reg_at[items[k].index] : kl_d_source(d, &items[k], have, false, NULL);
    m->reg_bytes[k] = (uint8_t)(have / 8);
    if (d->status) return false;
  }
  return true;
}

static bool is_four_words(const kl_sim_access *m) {
  bool are = m->bytes == 4 && m->count == 4;
  for (unsigned k = 0; are && k < 4; k++) are = m->regs[k] != KL_NO_REF && m->reg_bytes[k] == 4;
  return are;
}

static void access_op(kl_decoder *d, kl_run *run, kl_sim_access *m) {
  kl_sim_op *op = kl_d_op(d, run);
  m->four = is_four_words(m);
  op->imm = (uint64_t)(uintptr_t)m;
  op->a = m->base;
  op->d = m->regs[0];
}

void kl_d_load(kl_decoder *d) {
  kl_isa_type t = kl_isa_type_at(d->i, 0);
  if (!kl_d_count(d, 2, 3)) return;
  kl_sim_access *m = new_access(d, &d->i->operands[1]);
  if (!m) return;
  m->bytes = t.bits / 8;
  m->sign = t.kind == 's';
  m->count = (uint8_t)vector_count(d->i);
  if (elements(d, m, &d->i->operands[0], t.bits, true)) access_op(d, kl_x_load, m);
}

void kl_d_store(kl_decoder *d) {
  kl_isa_type t = kl_isa_type_at(d->i, 0);
  if (!kl_d_count(d, 2, 3)) return;
  kl_sim_access *m = new_access(d, &d->i->operands[0]);
  if (!m) return;
  m->bytes = t.bits / 8;
  m->store = true;
  m->count = (uint8_t)vector_count(d->i);
  if (m->where == KL_AT_PARAM && !m->frame) {
    kl_d_invalid(d, "a kernel's parameters cannot be written");
    return;
  }
  if (elements(d, m, &d->i->operands[1], t.bits, false)) access_op(d, kl_x_store, m);
}

void kl_d_nothing(kl_decoder *d) {
  (void)d;
}

// Policies are hints: all are the same one.
void kl_d_policy(kl_decoder *d) {
  if (!kl_d_count(d, 1, 4)) return;
  kl_ref to = kl_d_target(d, &d->i->operands[0], 64, false, false);
  kl_ref zero = kl_d_constant(d, 0, 0, 64);
  kl_sim_op *op = kl_d_glue_op(d, "mov_64");
  op->d = to;
  op->a = zero;
}

// How many bytes of the source are taken where a predicate may leave it out.
static kl_ref unless_ignored(kl_decoder *d, const kl_ptx_operand *o, uint32_t bytes) {
  kl_ref ignored = kl_d_source(d, o, 1, false, NULL);
  kl_ref none = kl_d_constant(d, 0, 0, 32), all = kl_d_constant(d, bytes, 0, 32), to = kl_d_temporary(d, 32);
  kl_sim_op *op = kl_d_glue_op(d, "select_32");
  op->d = to;
  op->a = none, op->b = all, op->c = ignored;
  return to;
}

void kl_d_copy_commit(kl_decoder *d) {
  if (kl_d_count(d, 0, 0)) kl_d_op(d, kl_x_copy_commit);
}

void kl_d_copy_wait(kl_decoder *d) {
  bool all = kl_isa_has(d->i, "wait_all");
  if (!kl_d_count(d, !all, !all)) return;
  if (!all && (d->i->operands[0].kind != KL_PTX_INT || d->i->operands[0].bits > INT32_MAX)) {
    kl_d_invalid(d, "expected the number of groups that may be on their way");
    return;
  }
  kl_d_op(d, kl_x_copy_wait)->imm = all ? UINT32_MAX : d->i->operands[0].bits;
}

void kl_d_copy_async(kl_decoder *d) {
  static const kl_where to = KL_AT_SHARED, from = KL_AT_GLOBAL;
  const kl_ptx_operand *o = d->i->operands;
  if (!kl_d_count(d, 3, 5)) return;
  kl_copy *c = KL_NEW(d->arena, kl_copy);
  c->size = KL_NO_REF;
  if (!kl_d_address(d, &o[0], &to, &c->to) || !kl_d_address(d, &o[1], &from, &c->from)) return;
  if (o[2].kind != KL_PTX_INT || (o[2].bits != 4 && o[2].bits != 8 && o[2].bits != 16)) {
    kl_d_invalid(d, "expected 4, 8 or 16 bytes to copy");
    return;
  }
  c->to.bytes = c->from.bytes = (uint8_t)o[2].bits;
  c->to.count = c->from.count = 1;
  c->to.store = true;
  uint32_t more = d->i->noperands - 3 - kl_isa_has(d->i, "L2::cache_hint");
  if (more > 1) {
    kl_d_invalid(d, "expected at most 4 operands and, with .L2::cache_hint, a policy");
    return;
  }
  if (more)
    c->size = kl_d_register_bits(d, &o[3]) == 1 ? unless_ignored(d, &o[3], (uint32_t)o[2].bits)
                                                : kl_d_source(d, &o[3], 32, false, NULL);
  if (d->status) return;
  kl_sim_op *op = kl_d_op(d, kl_x_copy_async);
  op->imm = (uint64_t)(uintptr_t)c;
}

// --- atomics ------------------------------------------------------------------------------------------------------

static const struct {
  const char *name;
  kl_atomic_op op;
} atomic_ops[] = {
    {"and", KL_ATOMIC_AND}, {"or", KL_ATOMIC_OR},   {"xor", KL_ATOMIC_XOR}, {"exch", KL_ATOMIC_EXCH},
    {"cas", KL_ATOMIC_CAS}, {"inc", KL_ATOMIC_INC}, {"dec", KL_ATOMIC_DEC}, {"add", KL_ATOMIC_ADD},
    {"min", KL_ATOMIC_MIN}, {"max", KL_ATOMIC_MAX},
};

// Registers of a vector, so many as the instruction says; NULL after a finding.
static kl_ref *vector(kl_decoder *d, const kl_ptx_operand *o, unsigned n, unsigned bits, bool target) {
  kl_ref *refs = KL_NEW_N(d->arena, kl_ref, n);
  if (o->kind != KL_PTX_VECTOR || o->nitems != n) {
    kl_d_invalid(d, "expected %u registers in braces", n);
    return NULL;
  }
  for (unsigned k = 0; k < n; k++)
    if (target && o->items[k].kind == KL_PTX_SINK)
      refs[k] = KL_NO_REF;
    else
      refs[k] =
          target ? kl_d_target(d, &o->items[k], bits, false, false) : kl_d_source(d, &o->items[k], bits, false, NULL);
  return d->status ? NULL : refs;
}

static void atomic_vector(kl_decoder *d, kl_sim_access *m, const kl_ptx_operand *target,
                          const kl_ptx_operand *operand) {
  unsigned bits = 8u * m->bytes;
  bool gives = target && target->kind != KL_PTX_SINK;
  const kl_ref *from = vector(d, operand, m->count, bits, false);
  const kl_ref *to = gives && from ? vector(d, target, m->count, bits, true) : NULL;
  if (d->status) return;
  for (unsigned k = 0; k < m->count && to; k++) m->regs[k] = to[k];
  m->from = from;
  kl_sim_op *op = kl_d_op(d, kl_x_atomic);
  op->imm = (uint64_t)(uintptr_t)m;
  op->a = from[0];
  op->b = KL_NO_REF;
}

static void atomic(kl_decoder *d, const kl_ptx_operand *target, const kl_ptx_operand *address,
                   const kl_ptx_operand *operands, uint32_t n) {
  kl_isa_type t = kl_isa_type_at(d->i, 0);
  kl_sim_access *m = new_access(d, address);
  if (!m) return;
  m->store = true;
  m->bytes = t.bits / 8;
  m->count = (uint8_t)vector_count(d->i);
  m->kind = (uint8_t)t.kind;
  if (kl_isa_has(d->i, "f16x2")) m->kind = 'h';
  if (kl_isa_has(d->i, "bf16")) m->kind = 'g';
  if (kl_isa_has(d->i, "bf16x2")) m->kind = 'i';
  for (size_t k = 0; k < KL_COUNT(atomic_ops); k++)
    if (kl_isa_has(d->i, atomic_ops[k].name)) m->atomic = (uint8_t)atomic_ops[k].op;
  if (m->order == KL_WEAK) m->order = KL_RELAXED;
  m->scope = (uint8_t)scope_of(d->i, (kl_order)m->order);
  if (m->where != KL_AT_SHARED) d->kernel->talks = true;
  uint32_t want = m->atomic == KL_ATOMIC_CAS ? 2 : 1;
  if (n < want || n > want + 1) {
    kl_d_invalid(d, "expected %u operands behind the address, found %u", want, n);
    return;
  }
  if (m->count > 1) {
    atomic_vector(d, m, target, &operands[0]);
    return;
  }
  kl_ref old = target && target->kind != KL_PTX_SINK ? kl_d_target(d, target, t.bits, false, false) : KL_NO_REF;
  kl_ref a = kl_d_source(d, &operands[0], t.bits, false, NULL);
  kl_ref b = want == 2 ? kl_d_source(d, &operands[1], t.bits, false, NULL) : KL_NO_REF;
  if (d->status) return;
  kl_sim_op *op = kl_d_op(d, kl_x_atomic);
  op->imm = (uint64_t)(uintptr_t)m;
  op->d = old;
  op->a = a;
  op->b = b;
}

void kl_d_atom(kl_decoder *d) {
  if (kl_d_count(d, 3, 5)) atomic(d, &d->i->operands[0], &d->i->operands[1], d->i->operands + 2, d->i->noperands - 2);
}

void kl_d_red(kl_decoder *d) {
  if (kl_d_count(d, 2, 3)) atomic(d, NULL, &d->i->operands[0], d->i->operands + 1, d->i->noperands - 1);
}

// --- matrices -----------------------------------------------------------------------------------------------------

// Lanes meet and hand on, as `imm` says.
static void matrices_op(kl_decoder *d, const kl_matrices *x) {
  kl_ref all = kl_d_constant(d, KL_ALL_LANES, 0, 32);
  kl_sim_op *op = kl_d_op(d, kl_x_matrices);
  op->f = all;
  op->imm = (uint64_t)(uintptr_t)x;
}

// Rows are loaded or stored by the first 8 lanes for each matrix: a constant's first word serves as their predicate.
static void rows_op(kl_decoder *d, kl_sim_access *m, unsigned count) {
  kl_ref lanes = kl_d_constant(d, count < 4 ? (1u << 8 * count) - 1 : KL_ALL_LANES, 0, 32);
  size_t guard = d->ops.n;
  if (count < 4) kl_d_machine_op(d, kl_x_guard)->a = lanes;
  access_op(d, m->store ? kl_x_store : kl_x_load, m);
  if (count < 4) kl_d_machine_op(d, kl_x_unguard);
  if (count < 4) d->ops.p[guard].op.imm = d->ops.n - guard - 1;
}

static void matrix(kl_decoder *d, const kl_ptx_operand *address, const kl_ptx_operand *registers, bool store) {
  static const kl_where shared = KL_AT_SHARED;
  bool named = kl_isa_has(d->i, "shared") || kl_isa_has(d->i, "shared::cta");
  kl_sim_access *m = KL_NEW(d->arena, kl_sim_access);
  kl_matrices *x = KL_NEW(d->arena, kl_matrices);
  unsigned n = kl_isa_has(d->i, "x4") ? 4 : kl_isa_has(d->i, "x2") ? 2 : 1;
  for (unsigned k = 0; k < KL_MOST_ELEMENTS; k++) m->regs[k] = KL_NO_REF;
  if (!kl_d_address(d, address, named ? &shared : NULL, m)) return;
  const kl_ref *parts = vector(d, registers, n, 32, !store);
  if (!parts) return;
  *x = (kl_matrices){.count = (uint8_t)n, .transposed = kl_isa_has(d->i, "trans"), .to_rows = store};
  m->bytes = m->count = 4;
  m->store = store;
  for (unsigned k = 0; k < 4; k++) {
    x->rows[k] = m->regs[k] = kl_d_temporary(d, 32);
    x->parts[k] = k < n ? parts[k] : KL_NO_REF;
    m->reg_bytes[k] = 4;
  }
  matrices_op(d, store ? x : KL_NEW(d->arena, kl_matrices));
  rows_op(d, m, n);
  if (!store) matrices_op(d, x);
}

void kl_d_ldmatrix(kl_decoder *d) {
  if (kl_d_count(d, 2, 2)) matrix(d, &d->i->operands[1], &d->i->operands[0], false);
}

void kl_d_stmatrix(kl_decoder *d) {
  if (kl_d_count(d, 2, 2)) matrix(d, &d->i->operands[0], &d->i->operands[1], true);
}

// --- addresses ----------------------------------------------------------------------------------------------------

static const struct {
  const char *mod;
  uint64_t window; // 0: such addresses are generic ones
} windows[] = {
    {"const", 0},
    {"global", 0},
    {"local", KL_LOCAL_WINDOW},
    {"shared", KL_SHARED_WINDOW},
    {"shared::cta", KL_SHARED_WINDOW},
    {"shared::cluster", KL_SHARED_WINDOW},
    {"param", KL_PARAM_WINDOW},
    {"param::entry", KL_PARAM_WINDOW},
};

static uint64_t window_of(const kl_decoder *d) {
  for (size_t k = 0; k < KL_COUNT(windows); k++)
    if (kl_isa_has(d->i, windows[k].mod)) return windows[k].window;
  return 0;
}

static void converted(kl_decoder *d, kl_run *run) {
  unsigned bits = kl_isa_type_at(d->i, 0).bits;
  if (!kl_d_count(d, 2, 2)) return;
  if (bits != 64) {
    kl_d_unsupported(d, "addresses have 64 bits here");
    return;
  }
  kl_ref to = kl_d_target(d, &d->i->operands[0], 64, false, false);
  kl_ref from = kl_d_source(d, &d->i->operands[1], 64, false, NULL);
  if (d->status) return;
  kl_sim_op *op = kl_d_op(d, run);
  op->d = to;
  op->a = from;
  op->imm = window_of(d);
}

void kl_d_cvta(kl_decoder *d) {
  converted(d, kl_x_to_generic);
}

void kl_d_cvta_to(kl_decoder *d) {
  converted(d, kl_x_from_generic);
}

void kl_d_isspacep(kl_decoder *d) {
  static const struct {
    const char *mod;
    kl_is_space is;
  } which[] = {{"global", KL_IS_GLOBAL},     {"const", KL_IS_CONST},
               {"shared", KL_IS_SHARED_CTA}, {"shared::cta", KL_IS_SHARED_CTA},
               {"local", KL_IS_LOCAL},       {"shared::cluster", KL_IS_SHARED_CLUSTER},
               {"param", KL_IS_PARAM},       {"param::entry", KL_IS_PARAM}};
  uint64_t is = 0;
  if (!kl_d_count(d, 2, 2)) return;
  for (size_t k = 0; k < KL_COUNT(which); k++)
    if (kl_isa_has(d->i, which[k].mod)) is = which[k].is;
  kl_ref to = kl_d_target(d, &d->i->operands[0], 1, false, false);
  kl_ref from = kl_d_source(d, &d->i->operands[1], 64, false, NULL);
  if (d->status) return;
  kl_sim_op *op = kl_d_op(d, kl_x_is_space);
  op->d = to;
  op->a = from;
  op->imm = is;
}

void kl_d_mapa(kl_decoder *d) {
  unsigned bits = kl_isa_type_at(d->i, 0).bits;
  if (!kl_d_count(d, 3, 3)) return;
  kl_ref to = kl_d_target(d, &d->i->operands[0], bits, false, false);
  kl_ref from = kl_d_source(d, &d->i->operands[1], bits, false, NULL);
  kl_ref rank = kl_d_source(d, &d->i->operands[2], 32, false, NULL);
  if (d->status) return;
  kl_sim_op *op = kl_d_op(d, bits == 64 ? kl_x_mapa_64 : kl_x_mapa_32);
  op->d = to;
  op->a = from;
  op->b = rank;
  op->imm = !kl_isa_has(d->i, "shared::cluster");
}

void kl_d_getctarank(kl_decoder *d) {
  unsigned bits = kl_isa_type_at(d->i, 0).bits;
  if (!kl_d_count(d, 2, 2)) return;
  kl_ref to = kl_d_target(d, &d->i->operands[0], 32, false, false);
  kl_ref from = kl_d_source(d, &d->i->operands[1], bits, false, NULL);
  if (d->status) return;
  kl_sim_op *op = kl_d_op(d, bits == 64 ? kl_x_ctarank_64 : kl_x_ctarank_32);
  op->d = to;
  op->a = from;
  op->imm = !kl_isa_has(d->i, "shared::cluster");
}

// --- moves --------------------------------------------------------------------------------------------------------

// {a, b} into one register, or one register into {a, b}: by executors named after what they do.
static void packed(kl_decoder *d, const kl_ptx_operand *vector, const kl_ptx_operand *whole, unsigned bits,
                   bool together) {
  char name[40];
  unsigned part = vector->nitems ? bits / vector->nitems : 0;
  if ((vector->nitems != 2 && vector->nitems != 4) || part < 8) {
    kl_d_invalid(d, "expected 2 or 4 registers that make %u bits", bits);
    return;
  }
  kl_ref parts[4] = {KL_NO_REF, KL_NO_REF, KL_NO_REF, KL_NO_REF}, at;
  for (uint32_t k = 0; k < vector->nitems; k++)
    if (together)
      parts[k] = kl_d_source(d, &vector->items[k], part, false, NULL);
    else if (vector->items[k].kind != KL_PTX_SINK)
      parts[k] = kl_d_target(d, &vector->items[k], part, false, false);
  at = together ? kl_d_target(d, whole, bits, false, false) : kl_d_source(d, whole, bits, false, NULL);
  if (d->status) return;
  snprintf(name, sizeof name, "%s_%ux%u_%u", together ? "pack" : "unpack", vector->nitems, part, bits);
  kl_sim_op *op = kl_d_glue_op(d, name);
  if (together) {
    op->d = at;
    op->a = parts[0], op->b = parts[1], op->c = parts[2], op->f = parts[3];
  } else {
    op->a = at;
    op->d = parts[0], op->e = parts[1], op->c = parts[2], op->f = parts[3];
  }
}

void kl_d_move(kl_decoder *d) {
  unsigned bits = kl_isa_type_at(d->i, 0).bits;
  char name[16];
  if (!kl_d_count(d, 2, 2)) return;
  const kl_ptx_operand *to = &d->i->operands[0], *from = &d->i->operands[1];
  if (from->kind == KL_PTX_VECTOR) {
    packed(d, from, to, bits, true);
    return;
  }
  if (to->kind == KL_PTX_VECTOR) {
    packed(d, to, from, bits, false);
    return;
  }
  kl_ref a = kl_d_source(d, from, bits, false, NULL), t = kl_d_target(d, to, bits, false, false);
  if (d->status) return;
  if (bits == 1)
    memcpy(name, "mov_pred", 9);
  else
    snprintf(name, sizeof name, "mov_%u", bits);
  kl_sim_op *op = kl_d_glue_op(d, name);
  op->d = t;
  op->a = a;
}

// Into four registers all elements of a special register: %tid as a whole.
void kl_d_move_special(kl_decoder *d) {
  unsigned bits = kl_isa_type_at(d->i, 0).bits;
  if (!kl_d_count(d, 2, 2)) return;
  const kl_ptx_operand *to = &d->i->operands[0], *from = &d->i->operands[1];
  if (to->kind != KL_PTX_VECTOR || to->nitems != 4 || from->kind != KL_PTX_SPECIAL) {
    kl_d_invalid(d, "expected four registers in braces, and a special register that is a vector");
    return;
  }
  for (uint32_t k = 0; k < 4; k++) {
    kl_ptx_operand element = *from;
    element.text = kl_str_of(kl_strf(d->arena, "%.*s.%c", KL_FMT(from->text), "xyzw"[k]));
    if (to->items[k].kind == KL_PTX_SINK) continue;
    kl_ref a = kl_d_source(d, &element, bits, false, NULL), t = kl_d_target(d, &to->items[k], bits, false, false);
    if (d->status) return;
    kl_sim_op *op = kl_d_glue_op(d, bits == 16 ? "mov_16" : "mov_32");
    op->d = t;
    op->a = a;
  }
}
