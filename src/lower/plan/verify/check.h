// Private to src/lower/plan/verify: what the proofs of a plan share.
//
// Nothing here asks how a plan was made. What is proved is proved of the plan's own words: variables and their extents,
// guards, expressions, the order of nodes.
#ifndef KL_CHECK_H
#define KL_CHECK_H

#include "lower/plan/plan.h"

typedef __int128 kl_wide;

// The loops and branches around a node, innermost first, and at last the body.
typedef struct kl_place {
  const struct kl_place *up;
  kl_node_kind kind; // LOOP, IF, LAST; STEP: the body
  uint32_t index;    // variable, guard
  kl_vars gone;      // LAST: variables without values
} kl_place;

// What a thread does, one after the other, with slots that others touch as well.
typedef enum kl_event_kind { KL_READS, KL_WRITES, KL_CHANGES, KL_SYNCS, KL_ENTERS, KL_LEAVES } kl_event_kind;
typedef struct kl_event {
  kl_event_kind kind;
  uint32_t number; // of the step or store; SYNCS: 1 where blocks meet
  const kl_access *a;
  uint32_t guard;        // where it takes place
  const kl_place *place; // ENTERS, LEAVES: the loop or branch itself
} kl_event;

// What is looked at, for messages.
typedef enum kl_subject { KL_OF_PLAN, KL_OF_BODY, KL_OF_STEP, KL_OF_STORE, KL_OF_GUARD, KL_OF_SLOT } kl_subject;

typedef struct kl_check {
  kl_ctx *cx;
  kl_plan *p;
  bool quiet;      // says nothing of what does not hold
  kl_arena *arena; // of the proofs
  uint32_t part;
  const kl_plan_launch *launch; // the part's
  const char *name;             // of the body
  const kl_body *body;
  const kl_aff
      *launched; // below 0 in every thread that is launched, where the number of rows comes at run time; or NULL
  kl_subject subject;
  uint32_t number;
  // The walk over a body.
  const kl_place *place;
  kl_vars loops;           // variables of those that are open
  bool gone_once;          // there was such a node
  bool met;                // blocks of a cluster have met
  bool waited;             // blocks have waited for those before
  kl_vars gone;            // BLOCK variables that have no value: of blocks that come last
  bool anywhere;           // guards are looked at by themselves: their symbols are made later
  uint8_t *counts;         // by slot: blocks count themselves in it, or it is for their tickets
  bool *there;             // by step: is its value to be had?
  const kl_place **stored; // by store: where it stands; met only once it is set
  VEC(uint32_t) made;
  VEC(kl_event) events;
} kl_check;

// Is there where the walk is what the guard and its outer ones depend on: such variables, and symbols?
bool kl_guard_is_there(const kl_check *k, uint32_t guard, kl_vars allowed);
// Variables that have a value where the walk is, but for those of registers.
kl_vars kl_known_vars(const kl_check *k);

// The finding that something does not hold, or is not known to.
kiln_status kl_refute(kl_check *k, const char *fmt, ...) KL_PRINTF(2, 3);

static inline void kl_look_at(kl_check *k, kl_subject subject, uint32_t number) {
  k->subject = subject;
  k->number = number;
}

// --- conditions (conditions.c) --------------------------------------------------------------------------------------

// lo <= e <= hi.
typedef struct kl_condition {
  const kl_aff *e;
  int64_t lo, hi;
} kl_condition;

// What holds at a place where a guard does. `all`: these are all that hold; else there were too many.
enum { KL_MOST_CONDITIONS = 48 };
typedef struct kl_conditions {
  uint32_t n;
  bool all;
  kl_condition c[KL_MOST_CONDITIONS];
} kl_conditions;

// With what is known of every thread that is launched.
void kl_conditions_at(kl_check *k, const kl_place *place, uint32_t guard, kl_conditions *out);
// Is e in lo..hi wherever the conditions hold?
bool kl_is_within(kl_check *k, const kl_aff *e, int64_t lo, int64_t hi, const kl_conditions *c);
// Is there no point of the body where all hold? Decided within a small quota.
bool kl_is_impossible(kl_check *k, const kl_conditions *c);

// --- rows whose number comes at run time (counted.c)
// ------------------------------------------------------------------

// Sets k->launched, for the body.
void kl_set_launched(kl_check *k);
// Does the body know the number of rows, and of a launch of some blocks alone: have the others nothing to do?
kiln_status kl_check_counted(kl_check *k);
// Lies the element of a slot with rows in one of those that there are, wherever the conditions hold?
bool kl_is_in_rows(kl_check *k, const kl_slot_info *s, const kl_aff *element, const kl_conditions *c);
// What is left of the conditions, those on elements of a slot, where there are the most rows.
void kl_have_most_rows(kl_check *k, const kl_slot_info *s, kl_conditions *c);
// Of a store to a slot with rows: do guards let through what is in those that there are?
kiln_status kl_check_kept_rows(kl_check *k, const kl_store *s, const kl_place *place);

// --- groups (groups.c) ----------------------------------------------------------------------------------------------

// Over every aligned group of `u` values of `var`, the i-th value of e is the first plus i * *each; false where that is
// not known.
bool kl_spread(const kl_body *b, const kl_aff *e, uint32_t var, int64_t u, int64_t *each);
// Is the guard, without its outer ones, the same over such groups?
bool kl_same_over(const kl_body *b, const kl_guard *g, uint32_t var, int64_t u);

// --- what values depend on (depends.c) ------------------------------------------------------------------------------

// Of a step whose operands and guards are there: has it the variables that it depends on, and an index its symbol?
kiln_status kl_check_dependence(kl_check *k, uint32_t step);

// --- points (points.c) ----------------------------------------------------------------------------------------------

// Points of variables within bounds where conditions hold; conditions on symbols, which data decides, make them no more
// than those that there may be. Splitting makes new variables; those of the body keep their numbers.
enum { KL_MOST_POINT_VARS = 64 };
typedef struct kl_points {
  kl_affs *affs;
  uint32_t n;    // numbers of variables
  uint64_t vars; // those there are
  bool exact;    // these are the points, and none besides
  kl_wide lo[KL_MOST_POINT_VARS], hi[KL_MOST_POINT_VARS];
  kl_conditions c;
} kl_points;

void kl_points_of(kl_check *k, kl_vars vars, const kl_conditions *c, kl_points *out);
// Narrows the variables' bounds as conditions on sums of them allow.
void kl_points_narrow(kl_points *x);
// Bounds of e over the points, lo > hi if there are none; false where they are not known.
bool kl_points_range(const kl_points *x, const kl_aff *e, kl_wide *lo, kl_wide *hi);
// How many there are; false where it is not known.
bool kl_points_count(const kl_points *x, int64_t *n);

// A sum of variables in which no two points have one value: by coefficient, the lowest first.
typedef struct kl_digit {
  int64_t coef, most; // values 0 .. most, most > 0
} kl_digit;
enum { KL_MOST_DIGITS = 20 };
typedef struct kl_form {
  int64_t least; // value
  uint32_t n;
  kl_digit d[KL_MOST_DIGITS];
} kl_form;
// Have any two points different values of e? KL_YES: then *form is a sum with those values, and maybe others besides.
kl_truth kl_points_differ(const kl_points *x, const kl_aff *e, kl_form *form);

// --- parts of the proof ---------------------------------------------------------------------------------------------

// structure.c: variables, guards, steps and their order. Calls the next two on the way.
kiln_status kl_check_body(kl_check *k);
// accesses.c
kiln_status kl_check_load(kl_check *k, const kl_step *s);
kiln_status kl_check_store(kl_check *k, const kl_store *s);
// Does the launch know where the slot is?
bool kl_is_given(const kl_check *k, uint32_t slot);
// Does the expression consist of sums and floors of these variables?
bool kl_is_index(const kl_check *k, const kl_aff *e, kl_vars allowed);

// A store to a result or to scratch memory, as it stands.
typedef struct kl_writing {
  uint32_t slot, part;
  const char *name; // of the body
  const kl_body *body;
  uint32_t store;
  const kl_place *place;
} kl_writing;

// cover.c: the points of a store, all copies of all threads and rounds; have any two different elements?
kl_truth kl_stores_once(kl_check *k, const kl_store *s, const kl_place *place, kl_points *points, kl_form *form);
// Is each element of a result, or of scratch memory, stored once? w: the stores to it by launches where results that
// may be parameters' memory are it, or are not.
kiln_status kl_check_cover(kl_check *k, uint32_t slot, const kl_writing *w, uint32_t n, bool in_place);
// sharing.c: what threads of the body do to each other's elements, and blocks that come last find of others.
kiln_status kl_check_sharing(kl_check *k);

#endif
