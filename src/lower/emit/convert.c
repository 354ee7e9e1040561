// Conversions of several lanes at once, on NVPTX.
//
// cvt.rn.satfinite rounds pairs to e4m3 and e5m2 (sm_89+) and to e2m1 as HLO does, but for what overflows: that becomes
// the largest number, in HLO infinity or, in formats without, NaN. So what overflows is replaced, before where a number
// in its place has the right pattern, else behind. Where the machine has no conversion, lanes are rounded by bits and
// put together as bytes. All these formats but e5m2fnuz are widened in pairs, to f16, which has all their numbers: e5m2
// is its upper byte.

#include "lower/emit/emit.h"

#include <math.h>

// How a format is converted: through which one of the machine, and up to which |x| that needs no replacement.
typedef struct way {
  kl_dtype type;
  kb_f8 f8;
  double most;
  double largest; // the format's, if it is the machine's too
} way;

static const way ways[] = {
    {KILN_F8E4M3FN, KB_E4M3, 464, 448},   // half a unit above the largest, a tie that goes down
    {KILN_F8E4M3, KB_E4M3, 256, 0},       // 256 has the pattern of infinity
    {KILN_F8E5M2, KB_E5M2, 61424, 57344}, // the f16 below half a unit above the largest, a tie that goes up
    {KILN_F4E2M1FN, KB_E2M1, -1, 0},      // none is too large, but NaN is -0
};

static const way *way_of(kl_dtype t) {
  for (size_t i = 0; i < KL_COUNT(ways); i++)
    if (ways[i].type == t) return &ways[i];
  return NULL;
}

// The way by an instruction, if the machine has that.
static const way *machine_way(const kl_emit *e, kl_dtype t) {
  if (e->k.machine != KB_NVPTX) return NULL;
  return (t == KILN_F4E2M1FN ? e->k.narrow : e->k.sm >= 89) ? way_of(t) : NULL;
}

bool kl_rounds_to_words(const kl_emit *e, kl_dtype t) {
  const kl_dtype_info *f = kl_info(t);
  bool by_bits = kl_is_float(t) && f->bits <= 8 && f->kind != KL_E8M0;
  return machine_way(e, t) || (e->k.machine == KB_NVPTX && by_bits);
}

// Formats whose values are made of words, as f16, which has all of them. Of what does not overflow f16 only the one
// with the exponent of all ones for numbers is left out.
static bool decodes(const kl_emit *e, kl_dtype t) {
  const kl_dtype_info *f = kl_info(t);
  if (e->k.machine != KB_NVPTX || !kl_is_float(t) || f->bits > 8) return false;
  return t == KILN_F8E5M2 || f->exp_bits <= 4;
}

static bool within(kl_bounds b, double most) {
  return b.lo >= -most && b.hi <= most;
}

// --- from F32 -------------------------------------------------------------------------------------------------------

static kb_reg replaced(kb *k, kl_dtype t, kb_reg x) {
  if (t == KILN_F4E2M1FN) return kb_select(k, kb_fcmp(k, LLVMRealUNO, x, x), kb_flike(k, x, -0.0), x);
  if (t == KILN_F8E4M3FN)
    return kb_select(k, kb_fcmp(k, LLVMRealOGT, kb_fabs(k, x), kb_flike(k, x, 464)), kb_flike(k, x, (double)NAN), x);
  return kb_fmin(k, kb_fmax(k, x, kb_flike(k, x, -256)), kb_flike(k, x, 256));
}

// Where |x| of a lane overflows, 0x7b becomes 0x7c. `low` and `high`: masks of two lanes each.
static kb_reg with_infinities(kb *k, kb_reg word, kb_reg low, kb_reg high) {
  return kb_xor(k, word, kb_andi(k, kb_permute(k, low, high, 0x6420), 0x07070707));
}
enum { INFINITE_IN_E5M2 = 61440 }; // from there on

// Rounded toward zero, an F32 is not below a number of f16 where it was not before.
static kb_reg overflow_of_singles(kb *k, kb_reg lo, kb_reg hi) {
  return kb_size_mask2(k, LLVMRealOGE, kb_pack2_rz(k, lo, hi), INFINITE_IN_E5M2);
}

static kb_reg pair_of_singles(kb *k, kb_f8 f8, const kb_reg *x) {
  if (LLVMIsConstant(x[0].v) && LLVMIsConstant(x[1].v) && LLVMIsNull(x[0].v) && LLVMIsNull(x[1].v))
    return kb_int(k, KB_I16, 1, 0);
  return kb_f8x2_of_f32(k, f8, x[0], x[1]);
}

// Rounding by what an addition drops, and the pattern from what it leaves. With 2^E the power of two in |x|, or the
// least normal one, |x| + 2^(E + 23 - M) is rounded to the format's unit there, and its last bits count units: with E's
// distance from the least that is the pattern. Of the constant parts of these sums the last byte is made 0, by an even
// number of units in the magic one, so that it need not be taken away; what lies beyond the pattern `most` becomes
// that.
static kb_reg pattern_by_bits(kb *k, const kl_dtype_info *f, kb_reg x) {
  unsigned drop = 23u - f->man_bits;
  int64_t least = (int64_t)(128 - f->bias) << 23, greatest = least + ((int64_t)(1 << f->exp_bits) << 23);
  int64_t base = least >> drop, even = -base & 0xff, up = ((int64_t)drop << 23) + even;
  int64_t all = (1 << (f->bits - 1)) - 1, inf = all + 1 - (1 << f->man_bits);
  int64_t most = f->kind == KL_IEEE ? inf : f->kind == KL_FNUZ ? all + 1 : all;
  kb_reg u = kb_bitcast(k, x, KB_I32, 1), e = kb_andi(k, u, 0x7f800000);
  e = kb_umin(k, kb_umax(k, e, kb_ilike(k, e, least)), kb_ilike(k, e, greatest));
  kb_reg sum = kb_fadd(k, kb_fabs(k, x), kb_bitcast(k, kb_addi(k, e, up), KB_F32, 1));
  kb_reg r = kb_add(k, kb_sub(k, kb_bitcast(k, sum, KB_I32, 1), e), kb_lshri(k, e, drop));
  kb_reg limit = kb_ilike(k, r, up + base + most);
  if (f->kind == KL_IEEE) limit = kb_select(k, kb_fcmp(k, LLVMRealUNO, x, x), kb_ilike(k, r, up + base + all), limit);
  return kb_umin(k, r, limit);
}

// The byte `byte` of four words.
static kb_reg bytes_of(kb *k, const kb_reg *x, unsigned byte) {
  uint32_t pick = byte | (byte + 4) << 4;
  return kb_permute(k, kb_permute(k, x[0], x[1], pick), kb_permute(k, x[2], x[3], pick), 0x5410);
}

// Four lanes: patterns without their signs, and signs as 0x80.
static kb_reg patterns_by_bits(kb *k, const kl_dtype_info *f, const kb_reg *x, kb_reg *sign) {
  kb_reg u[4], pattern[4];
  for (unsigned i = 0; i < 4; i++) {
    u[i] = kb_bitcast(k, x[i], KB_I32, 1);
    pattern[i] = pattern_by_bits(k, f, x[i]);
  }
  *sign = kb_andi(k, bytes_of(k, u, 3), 0x80808080);
  return bytes_of(k, pattern, 0);
}

// Eight lanes in nibbles; NaN is -0.
static kb_reg nibbles_by_bits(kb *k, const kl_dtype_info *f, const kb_reg *x) {
  kb_reg half[2], sign, in[4];
  for (unsigned h = 0; h < 2; h++) {
    for (unsigned i = 0; i < 4; i++) in[i] = replaced(k, KILN_F4E2M1FN, x[4 * h + i]);
    kb_reg r = patterns_by_bits(k, f, in, &sign);
    r = kb_or(k, r, kb_lshri(k, sign, 4));
    half[h] = kb_or(k, r, kb_lshri(k, r, 4)); // bytes 0 and 2 have two lanes each
  }
  return kb_permute(k, half[0], half[1], 0x6420);
}

static kb_reg word_by_bits(kb *k, const kl_dtype_info *f, const kb_reg *x) {
  if (f->bits == 4) return nibbles_by_bits(k, f, x);
  kb_reg sign, r = patterns_by_bits(k, f, x, &sign);
  // Of FNUZ zero has no sign; NaN is 0x80 with any.
  if (f->kind == KL_FNUZ) sign = kb_and(k, sign, kb_addi(k, r, 0x7f7f7f7f));
  return kb_or(k, r, sign);
}

static kb_reg word_of_singles(kb *k, const way *w, bool overflows, const kb_reg *x) {
  bool before = overflows && w->f8 != KB_E5M2;
  kb_reg in[8], pair[4];
  unsigned n = w->f8 == KB_E2M1 ? 8 : 4;
  for (unsigned i = 0; i < n; i++) in[i] = before ? replaced(k, w->type, x[i]) : x[i];
  for (unsigned i = 0; i < n / 2; i++) pair[i] = pair_of_singles(k, w->f8, in + 2 * i);
  kb_reg r = kb_word_of_pairs(k, pair[0], pair[1]);
  if (w->f8 == KB_E2M1) return kb_permute(k, r, kb_word_of_pairs(k, pair[2], pair[3]), 0x6420);
  if (!overflows || before) return r;
  return with_infinities(k, r, overflow_of_singles(k, x[0], x[1]), overflow_of_singles(k, x[2], x[3]));
}

// The lanes of word `w`, and zeros behind the last lane.
static void lanes_of_word(kl_emit *e, const kl_val *v, unsigned w, kb_reg *x) {
  unsigned n = 32 / kl_info(v->dtype)->bits;
  for (unsigned i = 0; i < n; i++)
    x[i] = n * w + i < e->lanes ? v->wide[n * w + i].re : kb_flike(&e->k, v->wide[0].re, 0);
}

void kl_round_to_words(kl_emit *e, kl_val *v, kl_bounds bounds) {
  const way *way = machine_way(e, v->dtype);
  unsigned n = kl_word_count(e, v->dtype);
  v->words = KL_NEW_N(e->arena, kb_reg, n);
  for (unsigned w = 0; w < n; w++) {
    kb_reg x[8];
    lanes_of_word(e, v, w, x);
    v->words[w] =
        way ? word_of_singles(&e->k, way, !within(bounds, way->most), x) : word_by_bits(&e->k, kl_info(v->dtype), x);
  }
  v->wide = NULL;
}

kb_reg *kl_encode_words(kl_emit *e, const kl_val *v) {
  kb *k = &e->k;
  unsigned n = kl_word_count(e, v->dtype);
  kb_reg *words = KL_NEW_N(e->arena, kb_reg, n);
  for (unsigned w = 0; w < n; w++) {
    kb_reg x[8];
    lanes_of_word(e, v, w, x);
    const way *way = machine_way(e, v->dtype);
    if (v->dtype != KILN_F8E5M2 || e->k.sm < 80) {
      words[w] = way ? word_of_singles(k, way, v->dtype == KILN_F8E4M3, x) : word_by_bits(k, kl_info(v->dtype), x);
      continue;
    }
    kb_reg low = kb_pack2(k, x[0], x[1], KB_F16), high = kb_pack2(k, x[2], x[3], KB_F16);
    words[w] = kb_permute(k, kb_bitcast(k, low, KB_I32, 1), kb_bitcast(k, high, KB_I32, 1), 0x7531);
  }
  return words;
}

// --- pairs of f16, which has every value of these formats ----------------------------------------------------------

static kb_reg i32_of(kb *k, kb_reg h) {
  return kb_bitcast(k, h, KB_I32, 1);
}
static kb_reg f16x2_of(kb *k, kb_reg word) {
  return kb_bitcast(k, word, KB_F16, 2);
}

// Bytes 2i and 2i + 1 of a word, each the upper byte of a half.
static kb_reg upper_bytes(kb *k, kb_reg word, unsigned i) {
  return kb_permute(k, word, kb_ilike(k, word, 0), i ? 0x3424 : 0x1404);
}

// Infinities and NaN of a format without them in the machine's: an exponent of all ones.
static kb_reg with_all_ones(kb *k, const kl_dtype_info *f, kb_reg h) {
  kb_reg top = kb_size_mask2(k, LLVMRealOGE, h, ldexp(1, (1 << f->exp_bits) - 1 - f->bias));
  return f16x2_of(k, kb_or(k, i32_of(k, h), kb_andi(k, top, 0x7c007c00)));
}

// A format of 8 bits with up to 4 bits of exponent, by its bits: moved to where f16 has exponent and fraction they are
// the number times a power of two, denormals too. `upper`: each pattern the upper byte of a half.
static kb_reg halves_by_bits(kb *k, const kl_dtype_info *f, kb_reg upper) {
  kb_reg size = kb_lshri(k, kb_andi(k, upper, 0x7f007f00), f->man_bits - 2u);
  kb_reg h = f16x2_of(k, kb_or(k, size, kb_andi(k, upper, 0x80008000)));
  h = kb_fmul(k, h, kb_flike(k, h, ldexp(1, 15 - f->bias)));
  if (f->kind == KL_IEEE) return with_all_ones(k, f, h);
  kb_reg nan;
  if (f->kind == KL_FN) {
    nan = kb_size_mask2(k, LLVMRealOGE, h, ldexp(2 - ldexp(1, -f->man_bits), (1 << f->exp_bits) - 1 - f->bias));
  } else { // -0
    kb_reg zero = kb_size_mask2(k, LLVMRealOEQ, h, 0), signs = kb_permute(k, upper, upper, 0xbb99);
    nan = kb_and(k, zero, signs);
  }
  return f16x2_of(k, kb_or(k, i32_of(k, h), nan));
}

// Four numbers of 4 bits as e5m2: the size from a table of bytes, the sign from one whose signs are spread.
static kb_reg e5m2_of_f4(kb *k, kb_reg word, unsigned quad) {
  kb_reg w = kb_lshri(k, word, quad * 16), ones = kb_ilike(k, w, 0x80808080);
  kb_reg size = kb_permute_by(k, kb_ilike(k, w, 0x3e3c3800), kb_ilike(k, w, 0x46444240), kb_andi(k, w, 0x7777));
  kb_reg sign = kb_andi(k, kb_shli(k, kb_permute_by(k, ones, ones, w), 7), 0x80808080);
  return kb_or(k, size, sign);
}

// Lanes 2i and 2i+1.
static kb_reg halves_of_words(const kl_emit *e, kl_dtype t, const kb_reg *words, unsigned i) {
  kb *k = (kb *)&e->k;
  if (t == KILN_F4E2M1FN && k->narrow)
    return kb_f16x2_of_f8x2(k, KB_E2M1, kb_trunc(k, kb_lshri(k, words[i / 4], i % 4 * 8), KB_I16));
  if (t == KILN_F4E2M1FN) return f16x2_of(k, upper_bytes(k, e5m2_of_f4(k, words[i / 4], i / 2 % 2), i % 2));
  kb_reg word = words[i / 2];
  if (t == KILN_F8E5M2) return f16x2_of(k, upper_bytes(k, word, i % 2));
  if (!machine_way(e, t)) return halves_by_bits(k, kl_info(t), upper_bytes(k, word, i % 2));
  kb_reg h = kb_f16x2_of_f8x2(k, KB_E4M3, kb_pair_of_word(k, word, i % 2));
  return t == KILN_F8E4M3FN ? h : with_all_ones(k, kl_info(t), h);
}

bool kl_decode_words(kl_emit *e, kl_val *v, kl_pair *wide) {
  kb *k = &e->k;
  if (!decodes(e, v->dtype)) return false;
  kb_reg *words = kl_words(e, v), h = {0};
  for (unsigned i = 0; i < e->lanes; i++) {
    if (i % 2 == 0) h = halves_of_words(e, v->dtype, words, i / 2);
    wide[i].re = kb_unpack(k, h, i % 2);
  }
  return true;
}

// f16 pairs of a value that is f16, or of a format that f16 holds; NULL if it has no such form.
static kb_reg *exact_halves(kl_emit *e, kl_val *v) {
  if (!kl_has_packed(e, KILN_F16)) return NULL;
  if (v->dtype == KILN_F16) return kl_packed(e, v);
  if (!decodes(e, v->dtype) || (v->wide && !v->words && !v->raw)) return NULL;
  kb_reg *words = kl_words(e, v), *h = KL_NEW_N(e->arena, kb_reg, e->lanes / 2);
  for (unsigned i = 0; i < e->lanes / 2; i++) h[i] = halves_of_words(e, v->dtype, words, i);
  return h;
}

// Of f16, or of bf16 where that is compared in pairs.
static kb_reg word_of_halves(kb *k, const way *w, bool overflows, const kb_reg *h) {
  kl_dtype half = h[0].kind == KB_F16 ? KILN_F16 : KILN_BF16;
  kb_reg r[2], over[2];
  for (unsigned i = 0; i < 2; i++) {
    kb_reg x = h[i];
    if (overflows && w->type == KILN_F8E4M3FN) {
      kb_reg nan = kb_size_mask2(k, LLVMRealOGT, x, 464);
      x = kb_bitcast(k, kb_or(k, i32_of(k, x), nan), (kb_kind)x.kind, 2);
    } else if (overflows && w->type == KILN_F8E4M3) {
      x = kb_fmin(k, kb_fmax(k, x, kb_flike(k, x, -256)), kb_flike(k, x, 256));
    } else if (overflows) {
      over[i] = kb_size_mask2(k, LLVMRealOGE, x, INFINITE_IN_E5M2);
    }
    r[i] = half == KILN_F16 ? kb_f8x2_of_f16x2(k, w->f8, x)
                            : kb_f8x2_of_f32(k, w->f8, kb_unpack(k, x, 0), kb_unpack(k, x, 1));
  }
  kb_reg word = kb_word_of_pairs(k, r[0], r[1]);
  return overflows && w->type == KILN_F8E5M2 ? with_infinities(k, word, over[0], over[1]) : word;
}

static kb_reg *words_of_halves(kl_emit *e, kl_dtype t, kl_bounds bounds, const kb_reg *h) {
  kb *k = &e->k;
  const way *way = way_of(t);
  unsigned n = kl_word_count(e, t);
  kb_reg *words = KL_NEW_N(e->arena, kb_reg, n);
  for (unsigned w = 0; w < n; w++) {
    kb_reg zero = kb_flike(k, h[0], 0), x[2] = {h[2 * w], 4 * w + 2 < e->lanes ? h[2 * w + 1] : zero};
    words[w] = word_of_halves(k, way, !within(bounds, way->most), x);
  }
  return words;
}

// --- conversions ----------------------------------------------------------------------------------------------------

static bool is_bound(const kl_emit *e, uint32_t step, double lo, double hi) {
  kl_bounds b = e->bounds[step];
  return e->body->steps[step].kind == KL_STEP_SCALAR && b.lo == b.hi && b.lo >= lo && b.hi <= hi;
}

// The operand of a minimum, maximum or clamp whose other operands are numbers from the largest one on that the format
// has, on either side.
static uint32_t clamped(const kl_emit *e, uint32_t step, double least, double most) {
  const kl_step *s = &e->body->steps[step];
  if (s->kind != KL_STEP_OP) return KL_NONE;
  const uint32_t *o = s->operands;
  bool max = s->op.op == KL_OP_MAXIMUM;
  double lo = max ? -most : least, hi = max ? -least : most;
  switch (s->op.op) {
  case KL_OP_CLAMP: return is_bound(e, o[0], -most, -least) && is_bound(e, o[2], least, most) ? o[1] : KL_NONE;
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM: return is_bound(e, o[1], lo, hi) ? o[0] : is_bound(e, o[0], lo, hi) ? o[1] : KL_NONE;
  default: return KL_NONE;
  }
}

// What clamps to numbers that the machine rounds to the largest one changes nothing.
static uint32_t unclamped(const kl_emit *e, uint32_t step, kl_dtype to) {
  const way *w = machine_way(e, to);
  if (!w || !w->largest || !within(e->bounds[step], w->most)) return step;
  for (uint32_t next; (next = clamped(e, step, w->largest, w->most)) != KL_NONE;) step = next;
  return step;
}

static bool to_words(kl_emit *e, const kl_step *s, kl_val *out) {
  uint32_t from = unclamped(e, s->operands[0], s->dtype);
  kl_val *x = &e->vals[from];
  if (kl_is_complex(x->dtype)) return false;
  kl_bounds bounds = e->bounds[s->operands[0]];
  bool pairs = x->dtype == KILN_BF16 && kl_has_packed(e, KILN_BF16) && e->k.sm >= 90;
  bool alone = s->dtype == KILN_F4E2M1FN || !machine_way(e, s->dtype);
  kb_reg *h = alone ? NULL : pairs ? kl_packed(e, x) : exact_halves(e, x);
  if (h) {
    out->words = words_of_halves(e, s->dtype, bounds, h);
    return true;
  }
  kl_pair *wide = kl_wide(e, x);
  out->wide = KL_NEW_N(e->arena, kl_pair, e->nwide);
  for (unsigned i = 0; i < e->nwide; i++)
    out->wide[i].re = kl_emit_convert(&e->k, x->dtype, s->dtype, KILN_F32, wide[i].re);
  kl_round_to_words(e, out, bounds);
  return true;
}

// Small integers in the last bits of a number whose unit there is 1; taking that number away is exact. Those with a
// sign are moved up by half their range first. Of 4 bits two lanes share a byte, and the one above is brought down for
// a whole word at once; bf16 has too few bits for 8.
static kb_reg *packed_of_ints(kl_emit *e, kl_dtype to, kl_val *x) {
  kb *k = &e->k;
  kl_dtype from = x->dtype;
  unsigned bits = kl_info(from)->bits;
  bool is_f16 = to == KILN_F16, is_signed = kl_is_signed(from);
  if (!kl_has_packed(e, to) || !x->words || !kl_is_int(from) || (bits == 8 && !is_f16)) return NULL;
  int64_t unit = is_f16 ? 0x64006400 : 0x43004300, half = is_signed ? 1 << (bits - 1) : 0;
  double base = (is_f16 ? 1024 : 128) + (double)half;
  kb_reg *r = KL_NEW_N(e->arena, kb_reg, e->lanes / 2), word = {0}, other = {0};
  for (unsigned i = 0; i < e->lanes / 2; i++) {
    if (2 * i * bits % 32 == 0) {
      word = x->words[2 * i * bits / 32];
      if (bits == 8 && half) word = kb_xor(k, word, kb_ilike(k, word, 0x80808080));
      other = bits == 4 ? kb_lshri(k, word, 4) : kb_ilike(k, word, unit);
    }
    // 8 bits: bytes 2i and 2i + 1, each below the upper byte of the number; 4 bits: byte i of both words.
    unsigned b = bits == 8 ? i % 2 * 2 : i % 4;
    kb_reg p = kb_permute(k, word, other, bits == 8 ? 0x5150 + b * 0x0101 : 0x0400 + b * 0x0101);
    if (bits == 4) p = kb_and_xor(k, p, 0x000f000f, (uint32_t)(unit | half | half << 16));
    p = kb_bitcast(k, p, is_f16 ? KB_F16 : KB_BF16, 2);
    r[i] = kb_fadd(k, p, kb_flike(k, p, -base));
  }
  return r;
}

// Saturating packs of two integers of 32 bits below what is there already.
static bool to_int_words(kl_emit *e, kl_dtype to, kl_val *x, kl_val *out) {
  kb *k = &e->k;
  unsigned bits = kl_info(to)->bits, in_word = 32 / bits, n = kl_word_count(e, to);
  kl_pair *wide = kl_wide(e, x);
  out->words = KL_NEW_N(e->arena, kb_reg, n);
  for (unsigned w = 0; w < n; w++) {
    kb_reg word = kb_int(k, KB_I32, 1, 0), lane[8];
    for (unsigned i = 0; i < in_word; i++)
      lane[i] = w * in_word + i < e->lanes ? kb_f2i_sat(k, wide[w * in_word + i].re, true) : kb_int(k, KB_I32, 1, 0);
    for (unsigned i = in_word; i > 0; i -= 2)
      word = kb_pack_sat(k, bits, kl_is_signed(to), lane[i - 2], lane[i - 1], word);
    out->words[w] = word;
  }
  return true;
}

bool kl_convert_lanes(kl_emit *e, const kl_step *s, kl_val *out) {
  kl_val *x = &e->vals[s->operands[0]];
  kl_dtype from = x->dtype, to = s->dtype;
  *out = (kl_val){.dtype = to};
  if (from == to || e->k.machine != KB_NVPTX) return false;
  if (kl_rounds_to_words(e, to)) return to_words(e, s, out);
  if (kl_is_float(from) && kl_is_int(to) && kl_has_words(e, to) && e->k.sm >= 75) return to_int_words(e, to, x, out);
  if ((out->packed = packed_of_ints(e, to, x))) return true;
  return to == KILN_F16 && (out->packed = exact_halves(e, x));
}
