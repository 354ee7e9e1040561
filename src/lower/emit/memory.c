// Memory: chunks of lanes to and from vector accesses.
//
// A contiguous chunk is moved in pieces of at most 16 bytes, fewer where the alignment is less. Pieces are vectors of
// integer words: part-wide words for 32- and 64-bit parts, i32 words (i16, i8 for short pieces) below. On NVPTX the
// lanes are cut from those words by shifts; on the host a chunk is loaded as one vector of elements.

#include "lower/emit/emit.h"

static unsigned part_bits(kl_dtype t) {
  unsigned bits = kl_info(t)->bits;
  return kl_is_complex(t) ? bits / 2 : bits;
}
static unsigned parts(kl_dtype t) {
  return kl_is_complex(t) ? 2 : 1;
}
static kl_dtype part_of(kl_dtype t) {
  return kl_is_complex(t) ? kl_info(t)->part : t;
}
static kb_kind int_kind(unsigned bits) {
  return bits == 64 ? KB_I64 : bits == 32 ? KB_I32 : bits == 16 ? KB_I16 : KB_I8;
}

// How a part is loaded and stored by itself: on the host as what it is held as, where that has the same bits.
static kb_kind kind_of(const kl_emit *e, kl_dtype t) {
  kb_kind kind = kl_wide_kind(t);
  bool same = kl_is_float(part_of(t)) && kb_kind_bits(kind) == part_bits(t);
  return e->k.machine == KB_HOST && same ? kind : int_kind(part_bits(t));
}

// --- addresses ----------------------------------------------------------------------------------------------------

static kb_reg offset_bytes(kl_emit *e, kb_reg p, int64_t bytes) {
  if (!bytes) return p;
  LLVMValueRef o = LLVMConstInt(kb_type(&e->k, KB_I64, 1), (uint64_t)bytes, true);
  return (kb_reg){LLVMBuildInBoundsGEP2(e->k.b, kb_type(&e->k, KB_I8, 1), p.v, &o, 1, ""), KB_PTR, 1};
}

// base and index * scale bytes; index is not negative, and its product fits 64 bits.
static kb_reg address(kl_emit *e, kb_reg base, kb_reg index, int64_t scale) {
  kb *k = &e->k;
  kb_reg at = index.kind == KB_I32 && scale <= UINT32_MAX
                  ? kb_mul_wide(k, index, (uint32_t)scale)
                  : kb_mul(k, kb_zext(k, index, KB_I64), kb_int(k, KB_I64, 1, scale));
  LLVMTypeRef byte = kb_type(k, KB_I8, 1);
  return (kb_reg){LLVMBuildInBoundsGEP2(k->b, byte, base.v, &at.v, 1, ""), KB_PTR, 1};
}

// Nobody writes the slot while the kernel runs: no output is the same memory, no kernel before this one is still at
// work, and of several launches none stores in it.
bool kl_is_constant(const kl_emit *e, uint32_t slot) {
  const kl_plan *p = e->plan;
  if (p->slots[slot].kind == KL_SLOT_SHARED || p->slots[slot].kind == KL_SLOT_SCRATCH) return false;
  if (p->slots[slot].mode == KL_MODE_GROWS) return false;
  bool still = !p->programmatic && (e->others ? !e->others[slot] : !e->end);
  return p->slots[slot].alias == KL_NONE && (still || p->slots[slot].kind == KL_SLOT_CONST);
}

// On NVPTX loads of what is constant go through the non-coherent path.
static kb_reg load(kl_emit *e, kb_reg p, kb_kind kind, unsigned lanes, unsigned align) {
  LLVMValueRef v = LLVMBuildLoad2(e->k.b, kb_type(&e->k, kind, lanes), p.v, "");
  LLVMSetAlignment(v, align);
  if (e->constant) LLVMSetMetadata(v, e->invariant_load, e->empty_node);
  return (kb_reg){v, (uint8_t)kind, (uint16_t)lanes};
}

static void store(kl_emit *e, kb_reg p, kb_reg v, unsigned align) {
  LLVMSetAlignment(LLVMBuildStore(e->k.b, v.v, p.v), align);
}

kb_reg kl_element_at(kl_emit *e, uint32_t slot, kb_reg index) {
  return address(e, e->slots[slot], index, kl_info(e->plan->slots[slot].shape->dtype)->bits / 8);
}

kb_reg kl_emit_address(kl_emit *e, uint32_t slot, const kl_aff *element) {
  return kl_element_at(e, slot, kl_emit_expr(e, kl_dom_simplify(e->body->domain, element), 1));
}

static unsigned per_byte(unsigned bits) {
  return bits < 8 ? 8 / bits : 1;
}

// Variables that number the elements of an access.
static kl_vars numbered_by(const kl_emit *e, const kl_access *a) {
  return a->regs | (e->width > 1 ? kl_bound(e->body, KL_BIND_LANE) : 0);
}

static void chunk_point(const kl_emit *e, const kl_access *a, uint32_t chunk, int64_t *at) {
  memset(at, 0, e->body->nvars * sizeof *at);
  kl_nth_point(e->body, numbered_by(e, a), a->run, chunk * a->vec, at);
}

static kl_truth holds_in_chunk(kl_emit *e, const kl_access *a, uint32_t guard, uint32_t chunk) {
  int64_t at[KL_MAX_VARS];
  if (guard == KL_NONE) return KL_YES;
  chunk_point(e, a, chunk, at);
  return kl_guard_at(e->plan, e->body, guard, numbered_by(e, a), at);
}

static kb_reg guard_of_chunk(kl_emit *e, const kl_access *a, uint32_t guard, uint32_t chunk) {
  int64_t at[KL_MAX_VARS];
  chunk_point(e, a, chunk, at);
  return kl_emit_guard_at(e, guard, at);
}

// Is the access never off its guard in this chunk?
static bool is_free(kl_emit *e, const kl_access *a, uint32_t chunk) {
  return holds_in_chunk(e, a, a->guard, chunk) == KL_YES;
}

// Is nothing there that it loads, in any thread? Then the chunk is zeros.
static bool is_nowhere(kl_emit *e, const kl_access *a, uint32_t chunk) {
  return e->width == 1 && holds_in_chunk(e, a, a->guard, chunk) == KL_NO;
}

// May elements of the slot be others', who write them?
static bool is_shared_out(const kl_emit *e, uint32_t slot) {
  return e->plan->slots[slot].alias != KL_NONE || (e->others && e->others[slot]);
}

// Is what an access takes off its guard the thread's own first chunk, in place of element 0? Where a result is written
// over what is read, element 0 may be another thread's by now.
static bool stays_at_home(kl_emit *e, const kl_access *a, uint32_t chunk) {
  return is_shared_out(e, a->slot) && chunk && !is_free(e, a, chunk) && is_free(e, a, 0);
}

// Where no chunk is the thread's own, what it takes off its guard is nobody's: `e->nothing`, which is never written.
static bool takes_nothing(kl_emit *e, const kl_access *a, uint32_t chunk) {
  return is_shared_out(e, a->slot) && !is_free(e, a, chunk) && !is_free(e, a, 0);
}

// An index of a chunk's elements, made of its base.
static kb_reg index_in_chunk(kl_emit *e, const kl_access *a, uint32_t chunk, const kl_aff *x) {
  chunk_point(e, a, chunk, e->at);
  return kl_emit_expr(e, x, 1);
}

// x, or where the access is off its guard `home`, an index of the same kind.
static kb_reg guarded(kl_emit *e, const kl_access *a, uint32_t chunk, kb_reg x, const kl_aff *home) {
  if (a->guard == KL_NONE) return x;
  kb_reg other = home ? index_in_chunk(e, a, 0, home) : kb_ilike(&e->k, x, 0);
  return kb_select(&e->k, guard_of_chunk(e, a, a->guard, chunk), x, other);
}

// Address of a chunk's first element, which begins with a byte; off its guard that of element 0, of chunk 0 or of
// nothing. The constant part of the index goes into the address where the rest cannot be negative, and then the common
// factor of the rest into the scale. Where the constant stays, neighbours differ in it alone, and a factor of each
// would hide what they share.
static kb_reg chunk_address(kl_emit *e, const kl_access *a, uint32_t chunk, unsigned bits) {
  kl_affs *p = e->plan->affs;
  kl_dom *d = e->body->domain;
  const kl_aff *x = kl_dom_simplify(d, kl_aff_floordivc(p, a->base[chunk], per_byte(bits)));
  int64_t bytes = bits < 8 ? 1 : bits / 8, offset = 0;
  if (is_free(e, a, chunk) && (x->n == 0 || kl_dom_interval(d, x).lo >= x->c)) offset = x->c;
  x = kl_aff_addc(p, x, -offset);
  if (takes_nothing(e, a, chunk)) {
    kb_reg own = address(e, e->slots[a->slot], index_in_chunk(e, a, chunk, x), bytes);
    return kb_select(&e->k, guard_of_chunk(e, a, a->guard, chunk), own, e->nothing);
  }
  if (x->n == 0 && x->c == 0) return offset_bytes(e, e->slots[a->slot], offset * bytes);
  bool at_home = stays_at_home(e, a, chunk);
  const kl_aff *home = at_home ? kl_dom_simplify(d, kl_aff_floordivc(p, a->base[0], per_byte(bits))) : NULL;
  int64_t factor = x->c || at_home ? 1 : (int64_t)kl_aff_content(x);
  kb_reg i = guarded(e, a, chunk, index_in_chunk(e, a, chunk, kl_aff_floordivc(p, x, factor)), home);
  return offset_bytes(e, address(e, e->slots[a->slot], i, factor * bytes), offset * bytes);
}

// --- one element --------------------------------------------------------------------------------------------------

static kb_reg bits_to_wide_int(kb *k, kb_reg raw) {
  return kb_kind_bits((kb_kind)raw.kind) >= 32 ? raw : kb_zext(k, raw, KB_I32);
}

// The wide form of bits as they are loaded, of a lane or of many.
static kl_pair value_of(kb *k, kl_dtype t, kl_pair bits) {
  kl_pair r = {.re = kl_from_bits(k, part_of(t), bits_to_wide_int(k, bits.re))};
  if (kl_is_complex(t)) r.im = kl_from_bits(k, part_of(t), bits.im);
  return r;
}

// The bits of an element of fewer than 8, `offset` elements after `index`.
static kb_reg load_part_of_byte(kl_emit *e, kb_reg base, kl_dtype t, kb_reg index, int64_t offset) {
  kb *k = &e->k;
  unsigned bits = kl_info(t)->bits, shift = bits == 4 ? 1 : bits == 2 ? 2 : 3;
  kb_reg i = kb_addi(k, index, offset), at = kb_andi(k, i, 8 / bits - 1);
  kb_reg byte = kb_zext(k, load(e, address(e, base, kb_lshri(k, i, shift), 1), KB_I8, 1, 1), KB_I32);
  if (at.kind == KB_I64) at = kb_trunc(k, at, KB_I32);
  return kb_andi(k, kb_lshr(k, byte, kb_mul(k, at, kb_ilike(k, at, bits))), (1 << bits) - 1);
}

// The bits of an element; both parts of a complex number at once, where it is aligned as a whole.
static kl_pair load_element(kl_emit *e, kl_dtype t, kb_reg p, uint32_t aligned) {
  kb *k = &e->k;
  unsigned pb = part_bits(t), align = pb / 8;
  if (kl_is_complex(t) && k->machine == KB_NVPTX && aligned >= 2 * align) {
    kb_reg both = load(e, p, int_kind(pb), 2, 2 * align);
    return (kl_pair){kb_extract(k, both, 0), kb_extract(k, both, 1)};
  }
  kl_pair r = {.re = load(e, p, kind_of(e, t), 1, align)};
  if (kl_is_complex(t)) r.im = load(e, offset_bytes(e, p, pb / 8), kind_of(e, t), 1, align);
  return r;
}

// --- chunks on NVPTX: words -----------------------------------------------------------------------------------------

// Loads `bytes` bytes as words of `word` bits in pieces; returns the number of words.
static unsigned load_words(kl_emit *e, kb_reg p, unsigned bytes, unsigned word, unsigned align, kb_reg *out) {
  unsigned n = 0, piece = bytes < 16 ? bytes : 16;
  if (align < piece) piece = align;
  for (unsigned at = 0; at < bytes; at += piece) {
    unsigned lanes = piece * 8 / word;
    kb_reg v = load(e, offset_bytes(e, p, at), int_kind(word), lanes, piece);
    for (unsigned i = 0; i < lanes; i++) out[n++] = kb_extract(&e->k, v, i);
  }
  return n;
}

static void store_words(kl_emit *e, kb_reg p, unsigned bytes, unsigned word, unsigned align, const kb_reg *words) {
  unsigned piece = bytes < 16 ? bytes : 16;
  if (align < piece) piece = align;
  for (unsigned at = 0, n = 0; at < bytes; at += piece) {
    unsigned lanes = piece * 8 / word;
    store(e, offset_bytes(e, p, at), kb_join(&e->k, words + n, lanes), piece);
    n += lanes;
  }
}

static unsigned word_bits(unsigned pb, unsigned bytes, unsigned align) {
  if (pb >= 32) return pb;
  unsigned piece = bytes < 4 ? bytes : 4;
  if (align < piece) piece = align;
  return piece * 8;
}

static void cut_words(kl_emit *e, kl_dtype t, unsigned first, unsigned vec, const kb_reg *words, unsigned word,
                      kl_val *v) {
  kb *k = &e->k;
  unsigned pb = part_bits(t), np = parts(t);
  if (v->packed && word == 32) {
    for (unsigned i = 0; i < vec / 2; i++)
      v->packed[first / 2 + i] = kb_bitcast(k, words[i], t == KILN_F16 ? KB_F16 : KB_BF16, 2);
    return;
  }
  for (unsigned i = 0; i < vec; i++) {
    kb_reg part[2] = {{0}};
    for (unsigned q = 0; q < np; q++) {
      unsigned bit = (i * np + q) * pb;
      kb_reg w = words[bit / word];
      if (pb < 32) w = kb_lshri(k, kb_zext(k, w, KB_I32), bit % word);
      if (pb < 8) w = kb_andi(k, w, (1 << pb) - 1);
      part[q] = kl_from_bits(k, part_of(t), w);
    }
    v->wide[first + i] = (kl_pair){part[0], part[1]};
  }
}

static void load_words_of(kl_emit *e, const kl_access *a, uint32_t chunk, unsigned bits, unsigned bytes, unsigned word,
                          kb_reg *out) {
  if (!is_nowhere(e, a, chunk)) {
    load_words(e, chunk_address(e, a, chunk, bits), bytes, word, a->align, out);
    return;
  }
  for (unsigned i = 0; i * word < bytes * 8; i++) out[i] = kb_int(&e->k, int_kind(word), 1, 0);
}

static void load_chunk_words(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t chunk, kl_val *v) {
  unsigned bits = kl_info(t)->bits, bytes = a->vec * bits / 8, pb = part_bits(t);
  unsigned word = word_bits(pb, bytes, a->align);
  kb_reg words[KL_EMIT_LANES * 2];
  load_words_of(e, a, chunk, bits, bytes, word, words);
  cut_words(e, t, chunk * a->vec, a->vec, words, word, v);
}

// --- chunks on the host: vectors ------------------------------------------------------------------------------------

static kb_reg spread_sub_bytes(kb *k, kb_reg bytes, unsigned bits, unsigned vec) {
  unsigned per_byte = 8 / bits, mask[KL_EMIT_LANES];
  LLVMValueRef shift[KL_EMIT_LANES];
  for (unsigned i = 0; i < vec; i++) {
    mask[i] = i / per_byte;
    shift[i] = kb_int(k, KB_I32, 1, i % per_byte * bits).v;
  }
  kb_reg w = kb_zext(k, bytes, KB_I32);
  w = w.lanes > 1 ? kb_shuffle(k, w, mask, vec) : kb_splat(k, w, vec);
  kb_reg s = {vec > 1 ? LLVMConstVector(shift, vec) : shift[0], KB_I32, (uint16_t)vec};
  return kb_andi(k, kb_lshr(k, w, s), (1 << bits) - 1);
}

static void every(unsigned first, unsigned step, unsigned n, unsigned *mask) {
  for (unsigned i = 0; i < n; i++) mask[i] = first + i * step;
}

static kl_pair load_chunk_vector(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t chunk, kb_reg p) {
  kb *k = &e->k;
  unsigned bits = kl_info(t)->bits, pb = part_bits(t), vec = a->vec;
  kl_pair r = {0};
  kl_ahead_load(e, a, chunk, bits, p);
  if (bits < 8) {
    r.re = kl_from_bits(k, t, spread_sub_bytes(k, load(e, p, KB_I8, vec * bits / 8, 1), bits, vec));
  } else if (kl_is_complex(t)) {
    unsigned mask[KL_EMIT_LANES];
    kb_reg both = load(e, p, kind_of(e, t), 2 * vec, pb / 8);
    every(0, 2, vec, mask);
    r.re = kl_from_bits(k, part_of(t), kb_shuffle(k, both, mask, vec));
    every(1, 2, vec, mask);
    r.im = kl_from_bits(k, part_of(t), kb_shuffle(k, both, mask, vec));
  } else {
    r.re = kl_from_bits(k, t, bits_to_wide_int(k, load(e, p, kind_of(e, t), vec, pb / 8)));
  }
  return r;
}

// --- chunks apart on the host: indices as a vector ------------------------------------------------------------------

// Where the chunks of a copy begin, by lane: bytes from the slot's base on; of elements below a byte the element, too.
// Nothing where each chunk is better looked at by itself.
typedef struct places {
  kb_reg element, offset;
} places;

static unsigned chunks_of_copy(const kl_emit *e, const kl_access *a) {
  return e->width / a->vec;
}

// Are the chunks of a copy more than constants from each other, or else more work than an address each? Then their
// indices are made together, not one by one.
static bool are_apart(kl_emit *e, const kl_access *a, unsigned bits, uint32_t copy) {
  const kl_body *b = e->body;
  kl_vars lanes = kl_bound(b, KL_BIND_LANE);
  if (e->width == 1 || a->vec == e->width || a->run == KL_NONE || !kl_has_var(lanes, a->run)) return false;
  uint32_t n = chunks_of_copy(e, a), first = copy * n;
  if (bits < 8 && a->vec == 1) return true;
  if (kl_vars_of(b, a->base[first]) & lanes) return true; // data says, of each lane
  for (uint32_t c = 0; c < n; c++)
    if (!is_free(e, a, first + c) || !kl_aff_is_const(kl_aff_sub(e->plan->affs, a->base[first + c], a->base[first])))
      return true;
  return false;
}

// Off its guard an element is 0, or the access' home.
static places find_places(kl_emit *e, const kl_access *a, unsigned bits, uint32_t copy) {
  kb *k = &e->k;
  int64_t at[KL_MAX_VARS] = {0};
  uint32_t n = chunks_of_copy(e, a);
  if (!are_apart(e, a, bits, copy)) return (places){{0}};
  for (uint32_t c = copy * n; c < copy * n + n; c++)
    if (takes_nothing(e, a, c)) return (places){{0}};
  kl_nth_point(e->body, a->regs, KL_NONE, copy, at);
  const kl_aff *x = kl_at_point(e->plan->affs, e->body, a->element, a->regs, at);
  if (!kl_expr_fits(e->body->domain, x, kb_kind_bits(e->index))) return (places){{0}};
  memcpy(e->at, at, sizeof at);
  kb_reg element = kl_emit_expr(e, x, e->width), other = kb_ilike(k, element, 0);
  bool free = true;
  for (uint32_t c = copy * n; c < copy * n + n; c++) {
    free = free && is_free(e, a, c);
    if (stays_at_home(e, a, c)) other = kb_splat(k, index_in_chunk(e, a, 0, a->base[0]), e->width);
  }
  if (!free) element = kb_select(k, kl_emit_guard_copy(e, a->guard, a->regs, a->run, copy), element, other);
  kb_reg byte = bits < 8 ? kb_lshri(k, element, bits == 4 ? 1 : bits == 2 ? 2 : 3) : element;
  kb_reg offset = kb_zext(k, byte, KB_I64);
  return (places){element, bits <= 8 ? offset : kb_mul(k, offset, kb_ilike(k, offset, bits / 8))};
}

// Of all copies.
static places *find_all_places(kl_emit *e, const kl_access *a, unsigned bits) {
  places *all = KL_NEW_N(e->arena, places, e->nwide + 1u);
  for (unsigned copy = 0; copy < e->nwide; copy++) all[copy] = find_places(e, a, bits, copy);
  return all;
}

static kb_reg place_of_lane(kl_emit *e, const kl_access *a, const places *x, unsigned lane) {
  kb_reg at = kb_extract(&e->k, x->offset, lane);
  return (kb_reg){LLVMBuildInBoundsGEP2(e->k.b, kb_type(&e->k, KB_I8, 1), e->slots[a->slot].v, &at.v, 1, ""), KB_PTR,
                  1};
}

// The address of a chunk of `copy`, of which a reversed one begins with its last lane.
static kb_reg place_of_chunk(kl_emit *e, const kl_access *a, unsigned bits, const places *x, uint32_t chunk) {
  if (!x->offset.v) return chunk_address(e, a, chunk, bits);
  unsigned lane = chunk % chunks_of_copy(e, a) * a->vec;
  return place_of_lane(e, a, x, a->reversed ? lane + a->vec - 1 : lane);
}

// Has the machine one instruction for words of so many bits that lie apart?
static bool gathers(const kl_emit *e, unsigned bits) {
  return e->plan->target.gathers && bits >= 32;
}

// Words of a kind, `offset` bytes behind where each lane is.
static kb_reg load_apart(kl_emit *e, const kl_access *a, const places *x, kb_kind kind, int64_t offset) {
  kb_reg word[KL_EMIT_LANES], base = offset_bytes(e, e->slots[a->slot], offset);
  unsigned bits = kb_kind_bits(kind), size = kl_info(e->plan->slots[a->slot].shape->dtype)->bits;
  if (gathers(e, bits)) return kb_gather(&e->k, base, x->element, size / 8, kind);
  for (unsigned i = 0; i < e->width; i++)
    word[i] = load(e, offset_bytes(e, place_of_lane(e, a, x, i), offset), kind, 1, bits / 8);
  return bits_to_wide_int(&e->k, kb_join(&e->k, word, e->width));
}

static kl_pair load_lanes_apart(kl_emit *e, const kl_access *a, kl_dtype t, const places *x) {
  kb *k = &e->k;
  unsigned bits = kl_info(t)->bits, pb = part_bits(t);
  kl_pair r = {0};
  if (bits < 8) {
    kb_reg bytes = load_apart(e, a, x, KB_I8, 0), at = kb_andi(k, x->element, 8 / bits - 1);
    if (at.kind == KB_I64) at = kb_trunc(k, at, KB_I32);
    bytes = kb_lshr(k, bytes, kb_mul(k, at, kb_ilike(k, at, bits)));
    r.re = kl_from_bits(k, t, kb_andi(k, bytes, (1 << bits) - 1));
    return r;
  }
  r.re = kl_from_bits(k, part_of(t), load_apart(e, a, x, kind_of(e, t), 0));
  if (kl_is_complex(t)) r.im = kl_from_bits(k, part_of(t), load_apart(e, a, x, kind_of(e, t), pb / 8));
  return r;
}

// --- loading --------------------------------------------------------------------------------------------------------

static bool follows(kl_emit *e, const kl_access *a, uint32_t c, uint32_t before) {
  const kl_aff *apart = kl_aff_sub(e->plan->affs, a->base[c], a->base[before]);
  return kl_aff_is_const(apart) && apart->c == 1;
}

// Where the lanes of a copy lie, in bytes from the first, if these are constants.
static bool fixed_places(kl_emit *e, const kl_access *a, unsigned bits, uint32_t copy, int64_t *at) {
  uint32_t n = chunks_of_copy(e, a), first = copy * n;
  for (uint32_t c = 0; c < n; c++) {
    const kl_aff *apart = kl_aff_sub(e->plan->affs, a->base[first + c], a->base[first]);
    if (!kl_aff_is_const(apart) || (n > 1 && !is_free(e, a, first + c))) return false;
    for (uint32_t i = 0; i < a->vec; i++) at[c * a->vec + i] = (apart->c + i * a->stride) * (bits / 8);
  }
  return true;
}

// Few elements, each of many lanes, are loaded and spread.
enum { FEW_ELEMENTS = 4 };

static bool load_fixed(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t copy, kl_pair *bits) {
  uint32_t n = chunks_of_copy(e, a);
  int64_t at[KL_EMIT_LANES];
  if (!gathers(e, part_bits(t)) || (a->stride ? e->width : n) <= FEW_ELEMENTS) return false;
  if (!fixed_places(e, a, kl_info(t)->bits, copy, at)) return false;
  kb_reg base = chunk_address(e, a, copy * n, kl_info(t)->bits), where = kb_ints(&e->k, at, e->width);
  unsigned pb = part_bits(t);
  bits->re = kb_gather(&e->k, base, where, 1, kind_of(e, t));
  if (kl_is_complex(t)) bits->im = kb_gather(&e->k, offset_bytes(e, base, pb / 8), where, 1, kind_of(e, t));
  return true;
}

// Lanes that follow each other, of which some are there.
static bool load_some(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t copy, kl_pair *bits) {
  uint32_t n = chunks_of_copy(e, a), first = copy * n;
  if (n != e->width || n == 1 || part_bits(t) < 32 || kl_is_complex(t) || a->guard == KL_NONE) return false;
  for (uint32_t c = 1; c < n; c++)
    if (!follows(e, a, first + c, first + c - 1)) return false;
  kb_reg index = index_in_chunk(e, a, first, a->base[first]);
  kb_reg mask = kl_emit_guard_copy(e, a->guard, a->regs, a->run, copy);
  bits->re = kb_load_where(&e->k, e->slots[a->slot], index, mask, kind_of(e, t));
  return true;
}

// A copy's register of n pieces.
static kl_pair join_pieces(kl_emit *e, const kl_pair *pieces, unsigned n, bool complex) {
  kb_reg re[KL_EMIT_LANES], im[KL_EMIT_LANES];
  if (e->width == 1) return *pieces;
  for (unsigned i = 0; i < n; i++) re[i] = pieces[i].re, im[i] = pieces[i].im;
  kl_pair r = {.re = kb_concat(&e->k, re, n)};
  if (complex) r.im = kb_concat(&e->k, im, n);
  return r;
}

static void reverse_lanes(kl_emit *e, kl_val *v, unsigned vec) {
  for (unsigned c = 0; c < e->lanes; c += vec) {
    for (unsigned i = 0; i < vec / 2; i++) {
      kl_pair t = v->wide[c + i];
      v->wide[c + i] = v->wide[c + vec - 1 - i];
      v->wide[c + vec - 1 - i] = t;
    }
  }
}

// Of strided chunks of all lanes: so many, `*apart` from each other, begin with elements that are side by side; at most
// the lanes, and 1 where not all chunks come in such groups.
static uint32_t neighbours(kl_emit *e, const kl_access *a, unsigned bits, uint32_t *apart) {
  uint32_t d = 1, n = a->vec;
  if (e->k.machine == KB_NVPTX || a->vec != e->width || a->stride == 0 || bits < 8) return 1;
  while (d < a->nchunks && !follows(e, a, d, 0)) d *= 2;
  *apart = d;
  if (d >= a->nchunks) return 1;
  while (n > 1 && a->nchunks % (n * d)) n /= 2;
  for (uint32_t c = 0; c < a->nchunks; c++) {
    if (!is_free(e, a, c)) return 1;
    while (n > 1 && c / d % n && !follows(e, a, c, c - d)) n /= 2;
  }
  return n;
}

// Rows of n elements, one of each lane, and what of n registers of all lanes they are. With several rows of n in a
// register, squares of n x n are turned by exchanging halves, quarters and so on with their neighbours.
static void load_square(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t chunk, uint32_t n, uint32_t apart,
                        kl_val *v) {
  kb *k = &e->k;
  unsigned bits = kl_info(t)->bits, lanes = a->vec, mask[2][KL_EMIT_LANES];
  kb_reg first = chunk_address(e, a, chunk, bits), part[KL_EMIT_LANES], reg[KL_EMIT_LANES], turned[KL_EMIT_LANES];
  for (unsigned i = 0; i < n; i++) {
    for (unsigned j = 0; j < lanes / n; j++)
      part[j] = load(e, offset_bytes(e, first, (i + j * n) * a->stride * (bits / 8)), kind_of(e, t), n, bits / 8);
    reg[i] = kb_concat_halves(k, part, lanes / n);
  }
  for (unsigned step = 1; step < n; step *= 2) {
    for (unsigned l = 0; l < lanes; l++) {
      mask[0][l] = l & step ? lanes + l - step : l;
      mask[1][l] = l & step ? lanes + l : l + step;
    }
    for (unsigned i = 0; i < n; i++)
      turned[i] = kb_shuffle_two(k, reg[i & ~step], reg[i | step], mask[i & step ? 1 : 0], lanes);
    memcpy(reg, turned, n * sizeof *reg);
  }
  for (unsigned i = 0; i < n; i++) v->wide[chunk + i * apart].re = kl_from_bits(k, t, bits_to_wide_int(k, reg[i]));
}

// A chunk's elements; on the host their bits.
static void load_each(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t chunk, kl_pair *out) {
  unsigned bits = kl_info(t)->bits;
  if (is_nowhere(e, a, chunk)) {
    kl_pair none = {.re = kl_from_bits(&e->k, part_of(t), kb_int(&e->k, part_bits(t) == 64 ? KB_I64 : KB_I32, 1, 0))};
    if (kl_is_complex(t)) none.im = none.re;
    for (uint32_t i = 0; i < a->vec; i++) out[i] = none;
    return;
  }
  const kl_aff *home = stays_at_home(e, a, chunk) ? a->base[0] : NULL;
  kb_reg at = bits < 8 ? guarded(e, a, chunk, index_in_chunk(e, a, chunk, a->base[chunk]), home)
                       : chunk_address(e, a, chunk, bits);
  kb_reg base = e->slots[a->slot];
  if (bits < 8 && takes_nothing(e, a, chunk))
    base = kb_select(&e->k, guard_of_chunk(e, a, a->guard, chunk), base, e->nothing);
  for (uint32_t i = 0; i < a->vec; i++) {
    int64_t offset = i * a->stride;
    if (i && a->stride == 0)
      out[i] = out[i - 1];
    else if (bits < 8)
      out[i].re = load_part_of_byte(e, base, t, at, offset);
    else
      out[i] = load_element(e, t, offset_bytes(e, at, offset * (bits / 8)), a->align);
    if (e->width == 1 && (!i || a->stride)) out[i] = value_of(&e->k, t, out[i]);
  }
}

// On the host.
static kl_pair load_copy(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t copy) {
  kl_pair bits = {0}, pieces[KL_EMIT_LANES];
  uint32_t n = chunks_of_copy(e, a);
  if (load_some(e, a, t, copy, &bits)) return value_of(&e->k, t, bits);
  places x = find_places(e, a, kl_info(t)->bits, copy);
  if (x.offset.v) return load_lanes_apart(e, a, t, &x);
  if (load_fixed(e, a, t, copy, &bits)) return value_of(&e->k, t, bits);
  for (uint32_t c = 0; c < n; c++) load_each(e, a, t, copy * n + c, pieces + c * a->vec);
  bool one = n == 1 && a->stride == 0;
  if (one) pieces[0] = value_of(&e->k, t, pieces[0]);
  for (uint32_t i = 1; one && i < e->width; i++) pieces[i] = pieces[0];
  bits = join_pieces(e, pieces, e->width, kl_is_complex(t));
  return one ? bits : value_of(&e->k, t, bits);
}

static void load_lanes(kl_emit *e, const kl_access *a, kl_dtype t, kl_val *v) {
  uint32_t apart, n = kl_is_complex(t) ? 1 : neighbours(e, a, kl_info(t)->bits, &apart);
  for (uint32_t c = 0; c < a->nchunks && n > 1; c++)
    if (c / apart % n == 0) load_square(e, a, t, c, n, apart, v);
  if (n > 1) return;
  if (e->width == 1) {
    for (uint32_t c = 0; c < a->nchunks; c++) load_each(e, a, t, c, v->wide + c * a->vec);
    return;
  }
  for (unsigned copy = 0; copy < e->nwide; copy++) v->wide[copy] = load_copy(e, a, t, copy);
}

static void load_contiguous(kl_emit *e, const kl_access *a, kl_dtype t, kl_val *v) {
  if (e->k.machine == KB_NVPTX) {
    for (uint32_t c = 0; c < a->nchunks; c++) load_chunk_words(e, a, t, c, v);
    if (a->reversed) reverse_lanes(e, v, a->vec);
    return;
  }
  kl_pair pieces[KL_EMIT_LANES];
  const places *at = find_all_places(e, a, kl_info(t)->bits);
  unsigned of_copy = chunks_of_copy(e, a);
  for (uint32_t c = 0; c < a->nchunks; c++) {
    pieces[c] = load_chunk_vector(e, a, t, c, place_of_chunk(e, a, kl_info(t)->bits, &at[c / of_copy], c));
    if (a->reversed) pieces[c].re = kb_reverse(&e->k, pieces[c].re);
    if (a->reversed && kl_is_complex(t)) pieces[c].im = kb_reverse(&e->k, pieces[c].im);
  }
  for (unsigned copy = 0; copy < e->nwide; copy++)
    v->wide[copy] = join_pieces(e, pieces + copy * of_copy, of_copy, kl_is_complex(t));
}

void kl_emit_load_chunk(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t chunk, kl_pair *out) {
  kl_val v = {.dtype = t, .wide = KL_NEW_N(e->arena, kl_pair, e->lanes)};
  kl_pair *first = v.wide + chunk * a->vec;
  e->constant = false;
  if (a->vec > 1)
    load_chunk_words(e, a, t, chunk, &v);
  else
    *first = value_of(&e->k, t, load_element(e, t, chunk_address(e, a, chunk, kl_info(t)->bits), a->align));
  memcpy(out, first, a->vec * sizeof *out);
}

// Are chunks whole words of elements of 4 or 8 bits?
static bool moves_words(const kl_emit *e, const kl_access *a, kl_dtype t) {
  return kl_has_words(e, t) && !a->reversed && a->align >= 4 && a->vec * kl_info(t)->bits % 32 == 0;
}

static kl_val load_as_words(kl_emit *e, const kl_access *a, kl_dtype t) {
  kl_val v = {.dtype = t, .words = KL_NEW_N(e->arena, kb_reg, kl_word_count(e, t))};
  unsigned bits = kl_info(t)->bits, bytes = a->vec * bits / 8;
  for (uint32_t c = 0; c < a->nchunks; c++) load_words_of(e, a, c, bits, bytes, 32, v.words + c * bytes / 4);
  return v;
}

// A slot passed by value: every lane has it.
static kl_val take_value(kl_emit *e, uint32_t slot, kl_dtype t) {
  kl_val v = {.dtype = t, .wide = KL_NEW_N(e->arena, kl_pair, e->nwide)};
  kb_reg x = kl_from_bits(&e->k, t, e->slots[slot]);
  for (unsigned i = 0; i < e->nwide; i++) v.wide[i].re = x;
  return v;
}

kl_val kl_emit_load(kl_emit *e, const kl_access *a, kl_dtype t) {
  kl_val v = {.dtype = t};
  if (e->plan->slots[a->slot].by_value) return take_value(e, a->slot, t);
  e->constant = kl_is_constant(e, a->slot) && e->plan->slots[a->slot].kind != KL_SLOT_OUT;
  bool contiguous = a->stride == 1 && a->vec > 1;
  if (contiguous && moves_words(e, a, t)) return load_as_words(e, a, t);
  bool words = contiguous && !a->reversed && kl_has_packed(e, t) && a->align >= 4;
  if (!words && kl_is_narrow_float(t)) {
    kl_val ints = kl_emit_load(e, a, kl_uint_like(t));
    v.raw = KL_NEW_N(e->arena, kb_reg, e->nwide);
    for (unsigned i = 0; i < e->nwide; i++) v.raw[i] = ints.wide[i].re;
    return v;
  }
  if (words)
    v.packed = KL_NEW_N(e->arena, kb_reg, e->lanes / 2);
  else
    v.wide = KL_NEW_N(e->arena, kl_pair, e->nwide);
  if (contiguous)
    load_contiguous(e, a, t, &v);
  else
    load_lanes(e, a, t, &v);
  return v;
}

// --- storing --------------------------------------------------------------------------------------------------------

// In whole words of two packed values?
static bool stores_packed(const kl_emit *e, const kl_access *a, kl_dtype t) {
  return kl_has_packed(e, t) && word_bits(16, a->vec * 2, a->align ? a->align : 1) == 32;
}

static void store_chunk_words(kl_emit *e, const kl_access *a, kl_val *v, uint32_t chunk) {
  kb *k = &e->k;
  kl_dtype t = v->dtype;
  unsigned bits = kl_info(t)->bits, bytes = (a->vec * bits + 7) / 8, pb = part_bits(t), np = parts(t);
  unsigned word = word_bits(pb, bytes, a->align ? a->align : 1);
  if (v->words && moves_words(e, a, t))
    return store_words(e, chunk_address(e, a, chunk, bits), bytes, 32, a->align, v->words + chunk * bytes / 4);
  kb_reg words[KL_EMIT_LANES * 2] = {{0}};
  bool packed = stores_packed(e, a, t);
  for (unsigned i = 0; packed && i < a->vec / 2; i++)
    words[i] = kb_bitcast(k, v->packed[chunk * a->vec / 2 + i], KB_I32, 1);
  for (unsigned i = 0; !packed && i < a->vec * np; i++) {
    kl_pair lane = kl_wide(e, v)[chunk * a->vec + i / np];
    kb_reg b = kl_to_bits(k, part_of(t), i % np ? lane.im : lane.re);
    unsigned bit = i * pb;
    b = pb < 32 ? kb_shli(k, b, bit % word) : b;
    words[bit / word] = bit % word ? kb_or(k, words[bit / word], b) : b;
  }
  for (unsigned i = 0; i * word < bytes * 8; i++) {
    if (word < 32) words[i] = kb_trunc(k, words[i], int_kind(word));
  }
  store_words(e, chunk_address(e, a, chunk, bits), bytes, word, a->align ? a->align : 1, words);
}

static kb_reg gather_sub_bytes(kb *k, kb_reg bits32, unsigned bits) {
  unsigned per_byte = 8 / bits, n = bits32.lanes / per_byte, mask[KL_EMIT_LANES];
  kb_reg bytes = {0};
  for (unsigned i = 0; i < per_byte; i++) {
    every(i, per_byte, n, mask);
    kb_reg part = kb_shli(k, kb_shuffle(k, bits32, mask, n), i * bits);
    bytes = i ? kb_or(k, bytes, part) : part;
  }
  return bytes;
}

static void store_chunk_vector(kl_emit *e, const kl_access *a, kl_val *v, uint32_t chunk, const places *at) {
  kb *k = &e->k;
  kl_dtype t = v->dtype;
  unsigned bits = kl_info(t)->bits, pb = part_bits(t), vec = a->vec;
  kl_pair w = kl_wide(e, v)[chunk * vec / e->width];
  unsigned first = chunk * vec % e->width;
  kb_reg re = kb_slice(k, w.re, first, vec), p = place_of_chunk(e, a, bits, at, chunk);
  if (kl_is_complex(t)) {
    kb_reg both[2] = {re, kb_slice(k, w.im, first, vec)};
    unsigned mask[KL_EMIT_LANES * 2];
    for (unsigned i = 0; i < 2 * vec; i++) mask[i] = i / 2 + i % 2 * vec;
    store(e, p, kb_shuffle(k, kb_concat(k, both, 2), mask, 2 * vec), pb / 8);
    return;
  }
  if (re.kind != kind_of(e, t)) re = kl_to_bits(k, t, re);
  if (bits < 8) re = gather_sub_bytes(k, re, bits);
  store(e, p, kb_trunc(k, re, bits < 8 ? KB_I8 : kind_of(e, t)), bits < 8 ? 1 : pb / 8);
}

// Lanes outside the domain that share a byte with one inside are stored as 0.
static kl_val keep_lanes(kl_emit *e, const kl_access *a, uint32_t keep, kl_val *v) {
  kl_val r = {.dtype = v->dtype, .wide = KL_NEW_N(e->arena, kl_pair, e->nwide)};
  for (unsigned i = 0; i < e->nwide; i++) {
    kb_reg x = kl_wide(e, v)[i].re;
    kb_reg zero = x.kind == KB_F32 ? kb_flike(&e->k, x, 0) : kb_ilike(&e->k, x, 0);
    r.wide[i].re = kb_select(&e->k, kl_emit_guard_copy(e, keep, a->regs, a->run, i), x, zero);
  }
  return r;
}

// Of chunks of some of a copy's lanes, the guard of all of these is made at once.
static kb_reg keeps_chunk(kl_emit *e, const kl_access *a, uint32_t keep, uint32_t chunk) {
  if (e->width == 1 || a->vec == e->width || a->run == KL_NONE) return guard_of_chunk(e, a, keep, chunk);
  uint32_t n = chunks_of_copy(e, a);
  return kb_extract(&e->k, kl_emit_guard_copy(e, keep, a->regs, a->run, chunk / n), chunk % n * a->vec);
}

void kl_emit_store(kl_emit *e, const kl_store *s, kl_val *v) {
  const kl_access *a = &s->access;
  kl_val kept, ints;
  // All forms exist before any branch, so that what a branch makes is not used after it.
  if (moves_words(e, a, v->dtype) && (s->keep == KL_NONE || kl_info(v->dtype)->bits == 8)) {
    kl_words(e, v);
  } else if (stores_packed(e, a, v->dtype)) {
    kl_packed(e, v);
  } else if (kl_is_narrow_float(v->dtype)) {
    ints = kl_val_of_bits(e, kl_uint_like(v->dtype), kl_raw(e, v));
    v = &ints;
  } else {
    kl_wide(e, v);
  }
  if (s->keep != KL_NONE && kl_info(v->dtype)->bits < 8) {
    kept = keep_lanes(e, a, s->keep, v);
    v = &kept;
  }
  // Before any branch, too.
  const places *at = e->width > 1 ? find_all_places(e, a, kl_info(v->dtype)->bits) : NULL;
  for (uint32_t c = 0; c < a->nchunks; c++) {
    kl_if inside = {0};
    kl_truth kept = holds_in_chunk(e, a, s->keep, c);
    if (kept == KL_NO) continue;
    if (kept != KL_YES) inside = kl_if_begin(e, keeps_chunk(e, a, s->keep, c), "keep");
    if (e->k.machine == KB_NVPTX)
      store_chunk_words(e, a, v, c);
    else
      store_chunk_vector(e, a, v, c, at ? &at[c * a->vec / e->width] : &(places){{0}});
    if (kept != KL_YES) kl_if_end(e, inside);
    kl_ahead_store(e);
  }
}

kb_reg kl_kept_in_chunk(kl_emit *e, const kl_store *s, uint32_t chunk) {
  kl_truth known = holds_in_chunk(e, &s->access, s->keep, chunk);
  if (known != KL_UNKNOWN) return kb_int(&e->k, KB_I1, 1, known == KL_YES);
  return guard_of_chunk(e, &s->access, s->keep, chunk);
}

kb_reg kl_chunk_bytes(kl_emit *e, const kl_access *a, uint32_t chunk, int64_t offset) {
  return offset_bytes(e, chunk_address(e, a, chunk, kl_info(e->plan->slots[a->slot].shape->dtype)->bits), offset);
}

kb_reg kl_part_of_word(kl_emit *e, const kl_access *a, uint32_t chunk, unsigned bits, unsigned word, kb_reg *shift) {
  kb *k = &e->k;
  kb_reg i = index_in_chunk(e, a, chunk, a->base[chunk]), at = kb_andi(k, i, word / bits - 1);
  if (at.kind == KB_I64) at = kb_trunc(k, at, KB_I32);
  *shift = kb_mul(k, at, kb_ilike(k, at, bits));
  return address(e, e->slots[a->slot], kb_lshri(k, i, (unsigned)__builtin_ctz(word / bits)), word / 8);
}

void kl_make_store_guards(kl_emit *e, const kl_store *s) {
  for (uint32_t c = 0; s->keep != KL_NONE && c < s->access.nchunks; c++)
    if (holds_in_chunk(e, &s->access, s->keep, c) == KL_UNKNOWN) keeps_chunk(e, &s->access, s->keep, c);
}
