// Stores that change what is there, whatever other threads do to it.
//
// What machines do in one step is that step. What they do not is tried: from what is there the new value is made, and
// takes its place if that is still there; else once more. All copies of a thread, and on the host all lanes of a
// vector, are tried together until each has come through. Of elements narrower than a step the others in it are kept.

#include "lower/emit/emit.h"

// Bits of an element, in a register of its own for each part: I32, or I64 for parts of 64 bits.
typedef struct element {
  kb_reg part[2];
} element;

static kb_reg lane_of(kl_emit *e, kb_reg r, unsigned i) {
  return e->width > 1 ? kb_extract(&e->k, r, i % e->width) : r;
}

// Of the copies at hand, in their order.
static element *elements_of(kl_emit *e, kl_val *v) {
  kb *k = &e->k;
  element *all = KL_NEW_N(e->arena, element, e->lanes);
  bool complex = kl_is_complex(v->dtype);
  kl_dtype part = complex ? kl_info(v->dtype)->part : v->dtype;
  kb_reg *raw = complex ? NULL : kl_raw(e, v);
  for (unsigned i = 0; i < e->lanes; i++) {
    unsigned copy = i / e->width;
    all[i].part[0] = lane_of(e, complex ? kl_to_bits(k, part, kl_wide(e, v)[copy].re) : raw[copy], i);
    if (complex) all[i].part[1] = lane_of(e, kl_to_bits(k, part, kl_wide(e, v)[copy].im), i);
  }
  return all;
}

static kb_reg of_lanes(kl_emit *e, const kb_reg *scalars) {
  return e->width > 1 ? kb_join(&e->k, scalars, e->width) : *scalars;
}

static kl_val of_elements(kl_emit *e, kl_dtype t, const element *all) {
  kb *k = &e->k;
  bool complex = kl_is_complex(t);
  kl_dtype part = complex ? kl_info(t)->part : t;
  kb_reg *raw = KL_NEW_N(e->arena, kb_reg, e->nwide), *im = KL_NEW_N(e->arena, kb_reg, e->nwide);
  for (unsigned copy = 0; copy < e->nwide; copy++) {
    kb_reg parts[2][KL_EMIT_LANES];
    for (unsigned l = 0; l < e->width; l++)
      for (int p = 0; p < 1 + complex; p++) parts[p][l] = all[copy * e->width + l].part[p];
    raw[copy] = of_lanes(e, parts[0]);
    if (complex) im[copy] = of_lanes(e, parts[1]);
  }
  if (!complex) return kl_val_of_bits(e, t, raw);
  kl_val v = {.dtype = t, .wide = KL_NEW_N(e->arena, kl_pair, e->nwide)};
  for (unsigned copy = 0; copy < e->nwide; copy++)
    v.wide[copy] = (kl_pair){kl_from_bits(k, part, raw[copy]), kl_from_bits(k, part, im[copy])};
  return v;
}

static kb_kind int_kind(unsigned bits) {
  return bits == 64 ? KB_I64 : bits == 32 ? KB_I32 : bits == 16 ? KB_I16 : KB_I8;
}

static kb_reg narrowed(kb *k, kb_reg r, kb_kind to) {
  return r.kind == to ? r : kb_trunc(k, r, to);
}

// --- in one step ----------------------------------------------------------------------------------------------------

static kb_change change_of(kl_op op, bool is_signed) {
  switch (op) {
  case KL_OP_AND: return KB_AND;
  case KL_OP_OR: return KB_OR;
  case KL_OP_XOR: return KB_XOR;
  case KL_OP_MINIMUM: return is_signed ? KB_SMIN : KB_UMIN;
  case KL_OP_MAXIMUM: return is_signed ? KB_SMAX : KB_UMAX;
  default: return KB_ADD;
  }
}

static kb_reg is_nan(kb *k, bool wide, kb_reg bits) {
  kb_reg size = kb_andi(k, bits, wide ? INT64_MAX : INT32_MAX);
  return kb_icmp(k, LLVMIntUGT, size, kb_ilike(k, bits, wide ? 0x7ff0000000000000 : 0x7f800000));
}

// Numbers without a sign are ordered as their bits are, those with one the other way round, and below: so a maximum is
// that of signed integers for the former, the minimum of unsigned ones for the latter; minima with the two exchanged.
// NaN is the end that nothing takes from: all ones behind the sign, and for minima the sign, too. An element that is
// NaN of other bits from the beginning is left alone.
static void extreme_of_floats(kl_emit *e, bool most, kb_reg p, kb_reg bits) {
  kb *k = &e->k;
  bool wide = bits.kind == KB_I64;
  kb_reg end = kb_ilike(k, bits, most ? (wide ? INT64_MAX : INT32_MAX) : -1);
  bits = kb_select(k, is_nan(k, wide, bits), end, bits);
  kl_if open = kl_if_begin(e, kb_not(k, is_nan(k, wide, kb_load_any(k, p, (kb_kind)bits.kind))), "number");
  kb_reg has_sign = kb_icmp(k, LLVMIntSLT, bits, kb_ilike(k, bits, 0));
  kl_if below = kl_if_begin(e, has_sign, "negative");
  kb_change_int(k, most ? KB_UMIN : KB_UMAX, p, bits);
  kl_if_end(e, below);
  kl_if above = kl_if_begin(e, kb_not(k, has_sign), "positive");
  kb_change_int(k, most ? KB_SMAX : KB_SMIN, p, bits);
  kl_if_end(e, above);
  kl_if_end(e, open);
}

// Words that one instruction adds to.
static unsigned words_at_once(kl_emit *e, const kl_access *a) {
  if (e->k.sm < 90 || e->plan->slots[a->slot].kind == KL_SLOT_SHARED) return 1;
  return a->align >= 16 ? 4 : a->align >= 8 ? 2 : 1;
}

// Pairs of 16 bits as words, f32 as they are: as many at once as there are, and as lie aligned.
static void add_floats(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t chunk, const element *x) {
  kb *k = &e->k;
  unsigned bits = kl_info(t)->bits, each = bits / 8, words = 0;
  kb_kind kind = t == KILN_F32 ? KB_F32 : t == KILN_F16 ? KB_F16 : KB_BF16;
  kb_reg word[KL_EMIT_LANES];
  bool pairs = bits == 16 && a->vec > 1 && a->align >= 4;
  for (unsigned i = 0; i < a->vec; i += 1 + pairs) {
    word[words] = x[i].part[0];
    if (pairs) word[words] = kb_or(k, kb_andi(k, word[words], 0xffff), kb_shli(k, x[i + 1].part[0], 16));
    if (bits == 16 && !pairs) word[words] = kb_trunc(k, word[words], KB_I16);
    words++;
  }
  unsigned size = pairs ? 4 : each, most = size == 4 ? words_at_once(e, a) : 1;
  for (unsigned i = 0, n; i < words; i += n) {
    for (n = most; n > words - i; n /= 2) continue;
    kb_add_float(k, kind, kl_chunk_bytes(e, a, chunk, i * size), word + i, n);
  }
}

// Of an element in a word: the other bits meet what changes nothing.
static void change_bits(kl_emit *e, const kl_access *a, kl_dtype t, kl_op op, uint32_t chunk, const element *x) {
  kb *k = &e->k;
  unsigned bits = kl_info(t)->bits;
  int64_t mask = ((int64_t)1 << bits) - 1;
  kb_reg shift, p = kl_part_of_word(e, a, chunk, bits, 32, &shift);
  kb_reg word = kb_shl(k, kb_andi(k, x->part[0], mask), shift);
  if (op == KL_OP_AND) word = kb_or(k, word, kb_not(k, kb_shl(k, kb_ilike(k, word, mask), shift)));
  kb_change_int(k, change_of(op, false), p, word);
}

// Parts of complex numbers are f32 side by side.
static void add_parts(kl_emit *e, const kl_access *a, uint32_t chunk, const element *x) {
  kb *k = &e->k;
  kb_reg part[4];
  unsigned n = 0, most = words_at_once(e, a);
  for (unsigned i = 0; i < a->vec; i++)
    for (unsigned q = 0; q < 2; q++) part[n++] = x[i].part[q];
  if (most > n) most = n;
  for (unsigned i = 0; i < n; i += most) kb_add_float(k, KB_F32, kl_chunk_bytes(e, a, chunk, i * 4), part + i, most);
}

static void combine(kl_emit *e, const kl_store *s, kl_dtype t, uint32_t chunk, const element *x) {
  kb *k = &e->k;
  const kl_access *a = &s->access;
  unsigned bits = kl_info(t)->bits, parts = kl_is_complex(t) ? 2 : 1;
  kl_dtype part = parts == 2 ? kl_info(t)->part : t;
  bool extreme = s->combine == KL_OP_MINIMUM || s->combine == KL_OP_MAXIMUM;
  kl_op bitwise = kl_bitwise(s->combine, t);
  if (bits < 32 && bitwise != KL_OP_UNKNOWN && k->machine == KB_NVPTX) return change_bits(e, a, t, bitwise, chunk, x);
  if (t == KILN_C64) return add_parts(e, a, chunk, x);
  if (kl_is_float(t) && !extreme && bits < 64) return add_floats(e, a, t, chunk, x);
  for (unsigned i = 0; i < a->vec; i++)
    for (unsigned q = 0; q < parts; q++) {
      kb_reg p = kl_chunk_bytes(e, a, chunk, (int64_t)(i * parts + q) * (bits / parts) / 8);
      if (kl_is_float(part) && extreme)
        extreme_of_floats(e, s->combine == KL_OP_MAXIMUM, p, x[i].part[q]);
      else if (kl_is_float(part))
        kb_add_float(k, part == KILN_F64 ? KB_F64 : KB_F32, p, &x[i].part[q], 1);
      else
        kb_change_int(k, change_of(s->combine, kl_is_signed(t)), p, narrowed(k, x[i].part[q], int_kind(bits)));
    }
}

// --- any one value --------------------------------------------------------------------------------------------------

static void take(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t chunk, const element *x) {
  kb *k = &e->k;
  unsigned bits = kl_info(t)->bits;
  for (unsigned i = 0; i < a->vec; i++) {
    kb_reg p = kl_chunk_bytes(e, a, chunk, (int64_t)i * bits / 8), word = x[i].part[0];
    if (kl_is_complex(t)) word = kb_or(k, kb_zext(k, word, KB_I64), kb_shli(k, kb_zext(k, x[i].part[1], KB_I64), 32));
    kb_store_any(k, p, narrowed(k, word, int_kind(bits)));
  }
}

void kl_emit_change(kl_emit *e, const kl_store *s, kl_val *v) {
  if (s->how == KL_STORE_TAKE && s->alone) return kl_emit_store(e, s, v);
  const kl_access *a = &s->access;
  element *all = elements_of(e, v);
  for (uint32_t c = 0; c < a->nchunks; c++) {
    kl_if kept = kl_if_begin(e, kl_kept_in_chunk(e, s, c), "kept");
    if (s->how == KL_STORE_TAKE)
      take(e, a, v->dtype, c, all + c * a->vec);
    else
      combine(e, s, v->dtype, c, all + c * a->vec);
    kl_if_end(e, kept);
  }
}

// --- tries ----------------------------------------------------------------------------------------------------------

// An element that is replaced: the word it lies in, as it was seen, and where in it.
typedef struct tried {
  kb_reg kept, p, shift;
  kb_reg word, done;
  LLVMValueRef phi, phi_done;
} tried;

typedef struct trying {
  kl_emit *e;
  const kl_store *s;
  kl_dtype t;
  unsigned bits, word; // of an element, and of the word
  unsigned n;
  tried *x;
} trying;

static void make_places(trying *y) {
  kl_emit *e = y->e;
  const kl_access *a = &y->s->access;
  for (unsigned i = 0; i < y->n; i++) {
    tried *x = &y->x[i];
    x->kept = kl_kept_in_chunk(e, y->s, i);
    if (y->word > y->bits)
      x->p = kl_part_of_word(e, a, i, y->bits, y->word, &x->shift);
    else
      x->p = kl_chunk_bytes(e, a, i, 0);
  }
}

static kb_kind register_of(unsigned bits) {
  return bits == 64 ? KB_I64 : KB_I32;
}

static kb_reg widened(kb *k, kb_reg r) {
  return r.kind == KB_I64 || r.kind == KB_I32 ? r : kb_zext(k, r, KB_I32);
}

static kb_reg phi_of(kl_emit *e, kb_reg a, LLVMBasicBlockRef from_a, kb_reg b, LLVMBasicBlockRef from_b) {
  LLVMValueRef v = LLVMBuildPhi(e->k.b, LLVMTypeOf(a.v), ""), both[2] = {a.v, b.v};
  LLVMBasicBlockRef from[2] = {from_a, from_b};
  LLVMAddIncoming(v, both, from, 2);
  return (kb_reg){v, a.kind, 1};
}

// What is there, where it is kept; else 0.
static kb_reg look(trying *y, kb_reg kept, kb_reg p) {
  kl_emit *e = y->e;
  kb_reg nothing = kb_int(&e->k, register_of(y->word), 1, 0);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->k.b);
  kl_if in = kl_if_begin(e, kept, "look");
  kb_reg seen = widened(&e->k, kb_load_any(&e->k, p, int_kind(y->word)));
  LLVMBasicBlockRef there = LLVMGetInsertBlock(e->k.b);
  kl_if_end(e, in);
  return phi_of(e, nothing, before, seen, there);
}

// The element in a word.
static element cut(trying *y, const tried *x) {
  kb *k = &y->e->k;
  if (kl_is_complex(y->t))
    return (element){{kb_trunc(k, x->word, KB_I32), kb_trunc(k, kb_lshri(k, x->word, 32), KB_I32)}};
  if (y->word == y->bits) return (element){{x->word}};
  return (element){{kb_andi(k, kb_lshr(k, x->word, x->shift), ((int64_t)1 << y->bits) - 1)}};
}

// The word with the element changed.
static kb_reg put(trying *y, const tried *x, const element *next) {
  kb *k = &y->e->k;
  kb_reg bits = next->part[0];
  if (kl_is_complex(y->t)) return kb_or(k, kb_zext(k, bits, KB_I64), kb_shli(k, kb_zext(k, next->part[1], KB_I64), 32));
  if (y->word == y->bits) return y->bits < 32 ? kb_andi(k, bits, ((int64_t)1 << y->bits) - 1) : bits;
  int64_t mask = ((int64_t)1 << y->bits) - 1;
  kb_reg there = kb_shl(k, kb_ilike(k, bits, mask), x->shift);
  return kb_or(k, kb_and(k, x->word, kb_not(k, there)), kb_shl(k, kb_andi(k, bits, mask), x->shift));
}

// Emits what is made of the elements as they are; the copies are at hand as the access numbers them.
static kl_val *make_next(kl_emit *e, const kl_store *s, const kl_node *node, kl_dtype t, const element *old) {
  const kl_step *steps = e->body->steps;
  const kl_access *a = &s->access;
  kl_emit_shape(e, a->regs);
  kl_val v = of_elements(e, t, old);
  uint32_t value = node->nest->carried->value;
  e->vals[value] = *kl_numbered(e, &v, a->regs, a->run, steps[value].regs, KL_NONE);
  kl_emit_seq(e, &node->nest->inside);
  kl_emit_shape(e, a->regs);
  return kl_numbered(e, &e->vals[s->step], steps[s->step].regs, KL_NONE, a->regs, a->run);
}

static element *next_in_words(trying *y, const kl_node *node) {
  element *old = KL_NEW_N(y->e->arena, element, y->n);
  for (unsigned i = 0; i < y->n; i++) old[i] = cut(y, &y->x[i]);
  return elements_of(y->e, make_next(y->e, y->s, node, y->t, old));
}

// Tries one element; its phis take what is known behind it.
static void try_one(trying *y, tried *x, const element *next) {
  kl_emit *e = y->e;
  kb *k = &e->k;
  kb_kind kind = int_kind(y->word);
  kb_reg word = put(y, x, next), yes = kb_int(k, KB_I1, 1, 1);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b);
  kl_if in = kl_if_begin(e, kb_not(k, x->done), "try");
  kb_reg was = widened(k, kb_compare_swap(k, x->p, narrowed(k, x->word, kind), narrowed(k, word, kind)));
  kb_reg through = kb_icmp(k, LLVMIntEQ, was, x->word);
  LLVMBasicBlockRef there = LLVMGetInsertBlock(k->b);
  kl_if_end(e, in);
  x->word = phi_of(e, x->word, before, was, there);
  x->done = phi_of(e, yes, before, through, there);
}

static void update_by_tries(trying *y, const kl_node *node) {
  kl_emit *e = y->e;
  kb *k = &e->k;
  kb_reg *done = KL_NEW_N(e->arena, kb_reg, y->n), all;
  for (unsigned i = 0; i < y->n; i++) {
    y->x[i].word = look(y, y->x[i].kept, y->x[i].p);
    done[i] = kb_not(k, y->x[i].kept);
  }
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b), round = kl_block(e, "tries"), after;
  LLVMMoveBasicBlockAfter(round, before);
  LLVMBuildBr(k->b, round);
  LLVMPositionBuilderAtEnd(k->b, round);
  for (unsigned i = 0; i < y->n; i++) {
    tried *x = &y->x[i];
    x->phi = LLVMBuildPhi(k->b, LLVMTypeOf(x->word.v), "");
    x->phi_done = LLVMBuildPhi(k->b, LLVMTypeOf(done[i].v), "");
    LLVMAddIncoming(x->phi, &x->word.v, &before, 1);
    LLVMAddIncoming(x->phi_done, &done[i].v, &before, 1);
    x->word.v = x->phi;
    x->done = (kb_reg){x->phi_done, KB_I1, 1};
  }
  kl_scope scope = kl_enter(e);
  element *next = next_in_words(y, node);
  for (unsigned i = 0; i < y->n; i++) try_one(y, &y->x[i], &next[i]);
  all = y->x[0].done;
  for (unsigned i = 1; i < y->n; i++) all = kb_and(k, all, y->x[i].done);
  LLVMBasicBlockRef last = LLVMGetInsertBlock(k->b);
  after = kl_block(e, "");
  LLVMMoveBasicBlockAfter(after, last);
  LLVMBuildCondBr(k->b, all.v, after, round);
  for (unsigned i = 0; i < y->n; i++) {
    LLVMAddIncoming(y->x[i].phi, &y->x[i].word.v, &last, 1);
    LLVMAddIncoming(y->x[i].phi_done, &y->x[i].done.v, &last, 1);
  }
  LLVMPositionBuilderAtEnd(k->b, after);
  kl_leave(e, scope, NULL);
}

// --- alone ----------------------------------------------------------------------------------------------------------

// Elements of a chunk as they are, where it is kept; else 0.
static void look_at_chunk(kl_emit *e, const kl_store *s, kl_dtype t, uint32_t chunk, element *out) {
  kb *k = &e->k;
  const kl_access *a = &s->access;
  bool complex = kl_is_complex(t);
  kl_dtype part = complex ? kl_info(t)->part : kl_uint_like(t);
  unsigned parts = complex ? 2 : 1;
  kb_reg seen[2 * KL_EMIT_LANES], nothing = kb_int(k, register_of(kl_info(part)->bits), 1, 0);
  kl_pair there[KL_EMIT_LANES];
  kb_reg kept = kl_kept_in_chunk(e, s, chunk);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b);
  kl_if in = kl_if_begin(e, kept, "look");
  kl_emit_load_chunk(e, a, complex ? t : part, chunk, there);
  for (unsigned i = 0; i < a->vec * parts; i++)
    seen[i] = kl_to_bits(k, part, i % parts ? there[i / parts].im : there[i / parts].re);
  LLVMBasicBlockRef behind = LLVMGetInsertBlock(k->b);
  kl_if_end(e, in);
  for (unsigned i = 0; i < a->vec * parts; i++)
    out[i / parts].part[i % parts] = phi_of(e, nothing, before, seen[i], behind);
}

// Nobody else is there: chunks are loaded, changed and stored.
static void update_alone(kl_emit *e, const kl_store *s, const kl_node *node) {
  const kl_access *a = &s->access;
  kl_dtype t = e->plan->slots[a->slot].shape->dtype;
  element *old = KL_NEW_N(e->arena, element, e->lanes);
  for (uint32_t c = 0; c < a->nchunks; c++) look_at_chunk(e, s, t, c, old + c * a->vec);
  kl_scope scope = kl_enter(e);
  kl_emit_store(e, s, make_next(e, s, node, t, old));
  kl_leave(e, scope, NULL);
}

void kl_emit_update(kl_emit *e, const kl_node *node) {
  const kl_store *s = &e->body->stores[node->index];
  kl_emit_shape(e, s->access.regs);
  trying y = {.e = e, .s = s, .t = e->plan->slots[s->access.slot].shape->dtype, .n = e->lanes};
  y.bits = kl_info(y.t)->bits;
  if (s->alone && y.bits >= 8) return update_alone(e, s, node);
  y.word = kl_replaced_bits(e->plan->target.machine, y.t);
  y.x = KL_NEW_N(e->arena, tried, y.n);
  make_places(&y);
  update_by_tries(&y, node);
}
