// Lane values in their forms, and between values and their bits.

#include "lower/emit/emit.h"
#include "lower/emit/math/math.h"

bool kl_has_packed(const kl_emit *e, kl_dtype t) {
  if (e->k.machine != KB_NVPTX || e->lanes % 2) return false;
  return t == KILN_F16 || (t == KILN_BF16 && e->k.sm >= 80);
}

void kl_emit_shape(kl_emit *e, kl_vars regs) {
  e->nwide = (unsigned)kl_extent(e->body, regs);
  e->lanes = e->nwide * e->width;
}

kb_kind kl_wide_kind(kl_dtype t) {
  const kl_dtype_info *info = kl_info(t);
  switch (info->cls) {
  case KL_CLASS_PRED: return KB_I1;
  case KL_CLASS_SINT:
  case KL_CLASS_UINT: return info->bits == 64 ? KB_I64 : KB_I32;
  case KL_CLASS_COMPLEX: return info->bits == 128 ? KB_F64 : KB_F32;
  default: return t == KILN_F64 ? KB_F64 : KB_F32;
  }
}

kl_pair *kl_wide(kl_emit *e, kl_val *v) {
  if (v->wide) return v->wide;
  kl_pair *wide = KL_NEW_N(e->arena, kl_pair, e->nwide);
  if (v->packed) {
    for (unsigned i = 0; i < e->lanes; i++) wide[i].re = kb_unpack(&e->k, v->packed[i / 2], i % 2);
  } else if (!kl_decode_words(e, v, wide)) {
    kb_reg *raw = kl_raw(e, v);
    for (unsigned i = 0; i < e->nwide; i++) wide[i].re = kl_from_bits(&e->k, v->dtype, raw[i]);
  }
  return v->wide = wide;
}

kb_reg *kl_packed(kl_emit *e, kl_val *v) {
  if (v->packed) return v->packed;
  if (v->raw) return v->packed = kl_val_of_bits(e, v->dtype, v->raw).packed;
  kb_kind kind = v->dtype == KILN_F16 ? KB_F16 : KB_BF16;
  v->packed = KL_NEW_N(e->arena, kb_reg, e->lanes / 2);
  for (unsigned i = 0; i < e->lanes / 2; i++)
    v->packed[i] = kb_pack2(&e->k, v->wide[2 * i].re, v->wide[2 * i + 1].re, kind);
  return v->packed;
}

kb_reg kl_canon(kb *k, kl_dtype t, kb_reg x) {
  unsigned bits = kl_info(t)->bits;
  if (bits >= 32) return x;
  if (!kl_is_signed(t)) return kb_andi(k, x, (int64_t)kl_int_mask(t));
  return kb_ashri(k, kb_shli(k, x, 32 - bits), 32 - bits);
}

kb_reg kl_from_bits(kb *k, kl_dtype t, kb_reg bits) {
  switch (kl_info(t)->cls) {
  case KL_CLASS_PRED: return kb_icmp(k, LLVMIntNE, kb_andi(k, bits, 0xff), kb_ilike(k, bits, 0));
  case KL_CLASS_SINT:
  case KL_CLASS_UINT: return kl_canon(k, t, bits);
  default: break;
  }
  if (t == KILN_F64) return kb_bitcast(k, bits, KB_F64, bits.lanes);
  if (t == KILN_F32) return kb_bitcast(k, bits, KB_F32, bits.lanes);
  return km_decode(k, bits, t);
}

kb_reg kl_to_bits(kb *k, kl_dtype t, kb_reg x) {
  switch (kl_info(t)->cls) {
  case KL_CLASS_PRED: return kb_zext(k, x, KB_I32);
  case KL_CLASS_SINT:
  case KL_CLASS_UINT: return kl_info(t)->bits < 32 ? kb_andi(k, x, (int64_t)kl_int_mask(t)) : x;
  default: break;
  }
  if (t == KILN_F64) return kb_bitcast(k, x, KB_I64, x.lanes);
  if (t == KILN_F32) return kb_bitcast(k, x, KB_I32, x.lanes);
  return km_encode(k, x, t);
}

// --- words ----------------------------------------------------------------------------------------------------------

bool kl_has_words(const kl_emit *e, kl_dtype t) {
  unsigned bits = kl_info(t)->bits;
  return e->k.machine == KB_NVPTX && (bits == 4 || bits == 8);
}

unsigned kl_word_count(const kl_emit *e, kl_dtype t) {
  return (e->lanes * kl_info(t)->bits + 31) / 32;
}

// Of 8 bits the low byte of each lane counts, whatever stands above it. Of 4 bits nothing may.
static kb_reg join_bytes(kb *k, const kb_reg *x, unsigned n) {
  kb_reg low = n > 1 ? kb_permute(k, x[0], x[1], 0x0040) : x[0], zero = kb_ilike(k, x[0], 0);
  if (n == 1) return kb_andi(k, low, 0xff);
  if (n == 2) return kb_permute(k, low, zero, 0x4410);
  return kb_permute(k, low, n > 3 ? kb_permute(k, x[2], x[3], 0x0040) : kb_andi(k, x[2], 0xff), 0x5410);
}

static kb_reg join_bits(kb *k, const kb_reg *x, unsigned n, unsigned bits) {
  kb_reg r = x[0];
  for (unsigned i = 1; i < n; i++) r = kb_or(k, r, kb_shli(k, x[i], i * bits));
  return r;
}

kb_reg *kl_words(kl_emit *e, kl_val *v) {
  if (v->words) return v->words;
  kb *k = &e->k;
  unsigned bits = kl_info(v->dtype)->bits, in_word = 32 / bits, n = kl_word_count(e, v->dtype);
  if (!v->raw && kl_rounds_to_words(e, v->dtype)) return v->words = kl_encode_words(e, v);
  kb_reg *words = KL_NEW_N(e->arena, kb_reg, n), lane[8], *raw = kl_is_int(v->dtype) ? NULL : kl_raw(e, v);
  for (unsigned w = 0; w < n; w++) {
    unsigned first = w * in_word, here = e->lanes - first < in_word ? e->lanes - first : in_word;
    for (unsigned i = 0; i < here; i++) {
      kb_reg x = raw ? raw[first + i] : v->wide[first + i].re;
      lane[i] = bits == 8 || raw ? x : kl_to_bits(k, v->dtype, x);
    }
    words[w] = bits == 8 ? join_bytes(k, lane, here) : join_bits(k, lane, here, bits);
  }
  return v->words = words;
}

// --- bits -----------------------------------------------------------------------------------------------------------

kl_dtype kl_uint_like(kl_dtype t) {
  switch (kl_info(t)->bits) {
  case 1: return KILN_U1;
  case 2: return KILN_U2;
  case 4: return KILN_U4;
  case 8: return KILN_U8;
  case 16: return KILN_U16;
  case 32: return KILN_U32;
  default: return KILN_U64;
  }
}

bool kl_is_narrow_float(kl_dtype t) {
  return kl_is_float(t) && kl_info(t)->bits < 32;
}

kb_reg *kl_raw(kl_emit *e, kl_val *v) {
  if (v->raw) return v->raw;
  kb *k = &e->k;
  kb_reg *raw = KL_NEW_N(e->arena, kb_reg, e->nwide);
  unsigned bits = kl_info(v->dtype)->bits;
  if (!v->packed && !v->words && kl_rounds_to_words(e, v->dtype)) kl_words(e, v);
  for (unsigned i = 0; i < e->nwide; i++) {
    if (v->packed) {
      kb_reg w = kb_bitcast(k, v->packed[i / 2], KB_I32, 1);
      raw[i] = i % 2 ? kb_lshri(k, w, 16) : kb_andi(k, w, 0xffff);
    } else if (v->words) {
      raw[i] = kb_andi(k, kb_lshri(k, v->words[i * bits / 32], i * bits % 32), (1 << bits) - 1);
    } else {
      raw[i] = kl_to_bits(k, v->dtype, v->wide[i].re);
    }
  }
  if (kl_is_narrow_float(v->dtype)) v->raw = raw;
  return raw;
}

kl_val kl_val_of_bits(kl_emit *e, kl_dtype t, const kb_reg *raw) {
  kb *k = &e->k;
  kl_val v = {.dtype = t};
  if (kl_has_packed(e, t)) {
    v.packed = KL_NEW_N(e->arena, kb_reg, e->lanes / 2);
    for (unsigned i = 0; i < e->lanes / 2; i++) {
      kb_reg w = kb_or(k, raw[2 * i], kb_shli(k, raw[2 * i + 1], 16));
      v.packed[i] = kb_bitcast(k, w, t == KILN_F16 ? KB_F16 : KB_BF16, 2);
    }
  } else if (kl_is_narrow_float(t)) {
    v.raw = KL_NEW_N(e->arena, kb_reg, e->nwide);
    memcpy(v.raw, raw, e->nwide * sizeof *raw);
  } else {
    v.wide = KL_NEW_N(e->arena, kl_pair, e->nwide);
    for (unsigned i = 0; i < e->nwide; i++) v.wide[i].re = kl_from_bits(k, t, raw[i]);
  }
  return v;
}

// --- numbers of copies ----------------------------------------------------------------------------------------------

// Is the order of copies with `run` the fastest that of the variables?
static bool in_order(const kl_body *b, kl_vars regs, uint32_t run) {
  if (run == KL_NONE || !kl_has_var(regs, run)) return true;
  for (uint32_t v = run + 1; v < b->nvars; v++)
    if (kl_has_var(regs, v) && b->vars[v].extent > 1) return false;
  return true;
}

static kb_reg half_of(kl_emit *e, const kl_val *v, unsigned i) {
  return kb_extract(&e->k, v->packed[i / 2], i % 2);
}

// Packed pairs of copies that need not be neighbours in v.
static kb_reg *pick_packed(kl_emit *e, const kl_val *v, const unsigned *pick, unsigned n) {
  kb_reg *r = KL_NEW_N(e->arena, kb_reg, n / 2);
  for (unsigned i = 0; i < n; i += 2) {
    unsigned a = pick[i], b = pick[i + 1];
    if (a % 2 == 0 && b == a + 1) {
      r[i / 2] = v->packed[a / 2];
      continue;
    }
    kb_reg halves[2] = {half_of(e, v, a), half_of(e, v, b)};
    r[i / 2] = kb_join(&e->k, halves, 2);
  }
  return r;
}

// Forms of single registers are there for the picking; words and pairs are taken apart only where there is no other.
kl_val kl_picked(kl_emit *e, kl_val *v, kl_vars from, const unsigned *pick, kl_vars to) {
  kl_val r = {.dtype = v->dtype};
  unsigned n = (unsigned)kl_extent(e->body, to);
  if (!v->wide && !v->raw && (v->words || n % 2)) {
    kl_emit_shape(e, from);
    if (kl_is_narrow_float(v->dtype))
      kl_raw(e, v);
    else
      kl_wide(e, v);
    kl_emit_shape(e, to);
  }
  if (v->packed && n % 2 == 0) r.packed = pick_packed(e, v, pick, n);
  if (v->wide) r.wide = KL_NEW_N(e->arena, kl_pair, n);
  if (v->raw) r.raw = KL_NEW_N(e->arena, kb_reg, n);
  for (unsigned i = 0; i < n; i++) {
    if (v->wide) r.wide[i] = v->wide[pick[i]];
    if (v->raw) r.raw[i] = v->raw[pick[i]];
  }
  return r;
}

kl_val *kl_numbered(kl_emit *e, kl_val *v, kl_vars from, uint32_t run, kl_vars to, uint32_t to_run) {
  const kl_body *b = e->body;
  if (from == to && (run == to_run || (in_order(b, from, run) && in_order(b, to, to_run)))) return v;
  unsigned pick[KL_EMIT_LANES], n = (unsigned)kl_extent(b, to);
  if (run != KL_NONE && !kl_has_var(from, run)) run = KL_NONE;
  if (to_run != KL_NONE && !kl_has_var(to, to_run)) to_run = KL_NONE;
  for (unsigned i = 0; i < n; i++) {
    int64_t at[KL_MAX_VARS] = {0};
    kl_nth_point(b, to, to_run, i, at);
    pick[i] = kl_point_number(b, from, run, at);
  }
  kl_val *r = KL_NEW(e->arena, kl_val);
  *r = kl_picked(e, v, from, pick, to);
  return r;
}
