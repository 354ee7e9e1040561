// Items in order: networks of comparisons within a thread, and between lanes.

#include "ir/dtype.h"
#include "lower/choose/staged/sort/items.h"

// --- what an item is ------------------------------------------------------------------------------------------------

enum { REGISTERS = 32 }; // of 32 bits, for the items that a thread puts in order

bool kl_items_of(const kl_sort *x, const kl_sort_key *key, kl_items *out) {
  unsigned bits = kl_sort_key_bits(key), places = 1;
  while (x->length >> places) places++; // none has all bits set
  *out = (kl_items){.x = x, .key = *key, .key_bits = bits, .words = 1, .word = KILN_U32, .place = KILN_U32};
  if (places > 32 || key->of) return false;
  if (bits + places <= 32) {
    out->place_bits = 32 - bits;
  } else if (bits <= 32) {
    out->place_bits = 32;
    out->word = KILN_U64;
  } else {
    out->words = 2;
    out->word = KILN_U64;
  }
  out->each = out->words == 1 ? REGISTERS / 2 : REGISTERS / 4;
  return true;
}

kl_dtype kl_item_type(const kl_items *t, uint32_t word) {
  return word ? t->place : t->word;
}

static uint32_t constant(kl_stage_body *b, kl_dtype t, uint64_t n) {
  return kl_write_scalar(&b->w, t, n, 0);
}

static uint32_t converted(kl_stage_body *b, uint32_t value, kl_dtype t) {
  if (b->w.steps.p[value].dtype == t) return value;
  return kl_write_op(&b->w, (kl_plan_op){.op = KL_OP_CONVERT}, t, 1, &value);
}

kl_item kl_item_none(const kl_items *t, kl_stage_body *b) {
  kl_item none = {{constant(b, t->word, kl_int_mask(t->word)), KL_NONE}};
  if (t->words == 2) none.word[1] = constant(b, t->place, kl_int_mask(t->place));
  return none;
}

kiln_status kl_item_make(const kl_items *t, kl_stage_body *b, uint32_t element, const kl_aff *place, uint32_t there,
                         kl_item *out) {
  kl_item none = kl_item_none(t, b);
  KL_TRY(kl_sort_key_of(t->x, &t->key, b, element, &out->word[0]));
  out->word[1] = KL_NONE;
  if (t->words == 2) {
    out->word[1] = kl_stage_number(b, t->place, place);
  } else {
    uint32_t key = converted(b, out->word[0], t->word), at = kl_stage_number(b, t->word, place);
    key = kl_stage_op(b, KL_OP_SHL, key, constant(b, t->word, t->place_bits));
    out->word[0] = kl_stage_op(b, KL_OP_OR, key, at);
  }
  for (uint32_t i = 0; i < t->words; i++) out->word[i] = kl_write_choose(&b->w, there, out->word[i], none.word[i]);
  return KILN_OK;
}

uint32_t kl_item_element(const kl_items *t, kl_stage_body *b, kl_item item) {
  uint32_t key = item.word[0];
  if (t->words == 1) key = kl_stage_op(b, KL_OP_SHR_LOGICAL, key, constant(b, t->word, t->place_bits));
  return kl_sort_element_of(&t->key, b, converted(b, key, t->key_bits > 32 ? KILN_U64 : KILN_U32));
}

uint32_t kl_item_place(const kl_items *t, kl_stage_body *b, kl_item item) {
  if (t->words == 2) return converted(b, item.word[1], KILN_S32);
  uint64_t bits = ((uint64_t)1 << t->place_bits) - 1;
  return converted(b, kl_stage_op(b, KL_OP_AND, item.word[0], constant(b, t->word, bits)), KILN_S32);
}

// --- two items ------------------------------------------------------------------------------------------------------

static uint32_t is_less(const kl_items *t, kl_stage_body *b, kl_item x, kl_item y) {
  uint32_t less = kl_stage_compare(b, KL_LT, KL_CMP_DEFAULT, x.word[0], y.word[0]);
  if (t->words == 1) return less;
  uint32_t same = kl_stage_compare(b, KL_EQ, KL_CMP_DEFAULT, x.word[0], y.word[0]);
  uint32_t before = kl_stage_compare(b, KL_LT, KL_CMP_DEFAULT, x.word[1], y.word[1]);
  return kl_stage_op(b, KL_OP_OR, less, kl_stage_op(b, KL_OP_AND, same, before));
}

static kl_item select_item(const kl_items *t, kl_stage_body *b, uint32_t which, kl_item yes, kl_item no) {
  kl_item out = {{KL_NONE, KL_NONE}};
  for (uint32_t i = 0; i < t->words; i++) out.word[i] = kl_stage_select(b, which, yes.word[i], no.word[i]);
  return out;
}

static kl_item least(const kl_items *t, kl_stage_body *b, kl_item x, kl_item y) {
  return select_item(t, b, is_less(t, b, y, x), y, x);
}

static void order(const kl_items *t, kl_stage_body *b, kl_item *x, kl_item *y) {
  uint32_t swap = is_less(t, b, *y, *x);
  kl_item first = select_item(t, b, swap, *y, *x);
  *y = select_item(t, b, swap, *x, *y);
  *x = first;
}

// --- a thread's -----------------------------------------------------------------------------------------------------

// What first falls and then rises, or is that in a ring, is put in order by halves.
static void clean(const kl_items *t, kl_stage_body *b, kl_item *items, int64_t n) {
  for (int64_t d = n / 2; d; d /= 2)
    for (int64_t i = 0; i < n; i++)
      if (!(i & d)) order(t, b, &items[i], &items[i + d]);
}

// Batcher's: runs of p in order become runs of 2p, first their elements at even places, then at odd ones.
static void sort(const kl_items *t, kl_stage_body *b, kl_item *items, int64_t n) {
  for (int64_t p = 1; p < n; p *= 2)
    for (int64_t k = p; k; k /= 2)
      for (int64_t i = k % p; i + k < n; i++)
        if ((i - k % p) / k % 2 == 0 && i / (2 * p) == (i + k) / (2 * p)) order(t, b, &items[i], &items[i + k]);
}

static void join(const kl_items *t, kl_stage_body *b, kl_item *items, const kl_item *other, int64_t own) {
  for (int64_t v = 0; v < own; v++) items[v] = least(t, b, items[v], other[own - 1 - v]);
}

void kl_items_select(const kl_items *t, kl_stage_body *b, kl_item *items, int64_t n, int64_t own) {
  for (int64_t i = 0; i < n; i += own) sort(t, b, items + i, own);
  for (int64_t apart = n / 2; apart >= own; apart /= 2)
    for (int64_t i = 0; i < apart; i += own) {
      join(t, b, items + i, items + i + apart, own);
      clean(t, b, items + i, own);
    }
}

// --- between lanes --------------------------------------------------------------------------------------------------

static kl_item shuffled(const kl_items *t, kl_item_lanes *l, kl_item item, int64_t by) {
  for (uint32_t i = 0; i < t->words; i++) item.word[i] = kl_write_shuffle(&l->b->w, item.word[i], (uint32_t)by);
  return item;
}

static uint32_t is_upper(kl_item_lanes *l, int64_t bit) {
  kl_stage_body *b = l->b;
  uint32_t n = (uint32_t)__builtin_ctzll((uint64_t)bit);
  if (l->upper[n] != KL_NONE) return l->upper[n];
  bool never;
  const kl_aff *digit = kl_dom_simplify(b->w.body->domain, kl_aff_modc(b->s->p, l->lane, 2 * bit));
  uint32_t set = kl_guard_and(&b->w.guards, KL_NONE, digit, bit, 2 * bit - 1, &never);
  l->upper[n] = kl_write_choose(&b->w, set, constant(b, KILN_PRED, 1), constant(b, KILN_PRED, 0));
  return l->upper[n];
}

// Of an own and another lane's item the lower lane keeps the first, the upper one the second.
static kl_item keep(const kl_items *t, kl_item_lanes *l, kl_item own, kl_item other, int64_t bit) {
  uint32_t takes = kl_stage_op(l->b, KL_OP_XOR, is_less(t, l->b, other, own), is_upper(l, bit));
  return select_item(t, l->b, takes, other, own);
}

static void clean_lanes(const kl_items *t, kl_item_lanes *l, kl_item *items, int64_t own, int64_t lanes) {
  for (int64_t d = lanes / 2; d; d /= 2)
    for (int64_t v = 0; v < own; v++) items[v] = keep(t, l, items[v], shuffled(t, l, items[v], d), d);
  clean(t, l->b, items, own);
}

void kl_items_of_lane(const kl_items *t, kl_item_lanes *l, const kl_item *items, int64_t own, int64_t by,
                      kl_item *out) {
  for (int64_t v = 0; v < own; v++) out[v] = by ? shuffled(t, l, items[v], by) : items[v];
}

void kl_items_sort_lanes(const kl_items *t, kl_item_lanes *l, kl_item *items, int64_t own, int64_t lanes) {
  kl_item *other = KL_NEW_N(t->x->s->c->arena, kl_item, own);
  for (int64_t m = 2; m <= lanes; m *= 2) {
    kl_items_of_lane(t, l, items, own, m - 1, other);
    for (int64_t v = 0; v < own; v++) items[v] = keep(t, l, items[v], other[own - 1 - v], m / 2);
    clean_lanes(t, l, items, own, m / 2);
  }
}

void kl_items_join(const kl_items *t, kl_item_lanes *l, kl_item *items, const kl_item *other, int64_t own,
                   int64_t lanes) {
  join(t, l->b, items, other, own);
  clean_lanes(t, l, items, own, lanes);
}
