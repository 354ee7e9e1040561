// Private to sorts: items, and networks that put them in order.
//
// An item is an element's key and its place in the line, as one integer where both have room in it, else two. No two
// are alike, and their order is that of the keys, equal ones in the order of places: so whatever network puts items in
// order, it is what a stable sort by the key would give. Items that are not there are greater than all others.
//
// A thread holds some items, neighbouring lanes those of one list, in order: item number g * own + v is the v-th of
// lane g of the list's. Steps are the same for all lanes, and nothing depends on data.
#ifndef KL_ITEMS_H
#define KL_ITEMS_H

#include "lower/choose/staged/sort/sort.h"

typedef struct kl_items {
  const kl_sort *x;
  kl_sort_key key;
  unsigned key_bits, place_bits; // place_bits 0: the place is a word of its own
  kl_dtype word, place;          // types of words; `place` of the second, if there is one
  uint32_t words;                // 1 or 2
  int64_t each;                  // a power of two: items that a thread puts in order at once
} kl_items;

typedef struct kl_item {
  uint32_t word[2]; // steps
} kl_item;

// What lanes do not have in common, as steps of a body.
typedef struct kl_item_lanes {
  kl_stage_body *b;
  const kl_aff *lane;
  uint32_t upper[5]; // pred, by bit of the lane's number: is it set? KL_NONE: not made yet
} kl_item_lanes;

// How items of a sort by this key look; false: none are made of it.
bool kl_items_of(const kl_sort *x, const kl_sort_key *key, kl_items *out);
kl_dtype kl_item_type(const kl_items *t, uint32_t word);

// The item of an element at a place of the line, where the guard holds; side by side where these are.
kiln_status kl_item_make(const kl_items *t, kl_stage_body *b, uint32_t element, const kl_aff *place, uint32_t there,
                         kl_item *out);
// One that is not there.
kl_item kl_item_none(const kl_items *t, kl_stage_body *b);
// The element of an item, of a sort by the elements themselves; and its place, an s32.
uint32_t kl_item_element(const kl_items *t, kl_stage_body *b, kl_item item);
uint32_t kl_item_place(const kl_items *t, kl_stage_body *b, kl_item item);

// Puts the n items of a thread in order, so that the first `own` are the first of all, in order. Powers of two.
void kl_items_select(const kl_items *t, kl_stage_body *b, kl_item *items, int64_t n, int64_t own);
// Lists of single lanes, each of `own` in order, become those of groups of so many lanes.
void kl_items_sort_lanes(const kl_items *t, kl_item_lanes *l, kl_item *items, int64_t own, int64_t lanes);
// The first items of two lists of groups: of `items` and of the other's, of which the thread is given those of the lane
// that is as far from the end of its group as its own is from the beginning.
void kl_items_join(const kl_items *t, kl_item_lanes *l, kl_item *items, const kl_item *other, int64_t own,
                   int64_t lanes);
// The items of the lane whose number differs by the bits of `by`: where these are all bits of places in a group, it is
// as far from the end as the own is from the beginning.
void kl_items_of_lane(const kl_items *t, kl_item_lanes *l, const kl_item *items, int64_t own, int64_t by, kl_item *out);

#endif
