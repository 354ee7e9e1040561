// Index maps: which elements of one tensor belong to an element of another.
//
// A map takes a point of its dims to a tuple of results. Range variables: for one point, all their values apply (the
// loops of a reduction). Runtime variables: for one point exactly one value applies, known only when the program runs.
// As a set, a map is { (dims, results) : every variable within its bounds, every constraint within its interval }, for
// each possible choice of the runtime values. Bounds are inclusive.
//
// Maps are immutable, live in their pool's arena, and may be shared freely. Three states: defined; undefined (nothing
// is known, with the reason); empty (known to have no point: results are 0, dims and ranges have the bounds [0, -1],
// there are no constraints). An operation on an undefined map gives it back; so does one whose arithmetic leaves int64.
//
// Bounds of a runtime variable are a fact about its value, whatever the map; a constraint on it is a condition: the map
// has no point where the value is another. So constraints on a dim or range alone are bounds, and those on runtime
// variables stay constraints, also where nothing else needs the variable.
//
// A runtime variable says what it is: the identity of the producer and the index of the element, as expressions over
// the map's own variables. Both move with the variable through every operation, so that position means nothing. Two
// runtime variables of one producer and equal indices are one variable: composition merges them.
#ifndef KL_MAP_H
#define KL_MAP_H

#include "ir/index/aff/aff.h"

typedef enum kl_map_state { KL_MAP_DEFINED, KL_MAP_EMPTY, KL_MAP_UNDEFINED } kl_map_state;

typedef struct kl_interval {
  int64_t lo, hi; // inclusive; lo > hi holds nothing
} kl_interval;

// What a runtime variable is. id 0: not bound, only itself.
typedef struct kl_producer {
  uint64_t id;
  const void *payload; // the caller's; handed on
  uint32_t nindex;
  const kl_aff *const *index;
} kl_producer;

typedef struct kl_map_var {
  kl_interval in;
  kl_str name;      // empty: the default, d0, s0 or rt0
  kl_producer from; // runtime variables
} kl_map_var;

typedef struct kl_constraint {
  const kl_aff *e;
  kl_interval in; // INT64_MIN and INT64_MAX are no bound
} kl_constraint;

typedef struct kl_map {
  kl_map_state state;
  const char *why; // undefined: the reason
  uint32_t nvars[KL_AFF_VARS];
  const kl_map_var *vars[KL_AFF_VARS]; // by kind: dims, ranges, runtime variables
  uint32_t nresults, nconstraints;
  const kl_aff *const *results;
  const kl_constraint
      *constraints; // in structural order of their expressions, each once; neither constant nor dim nor range
} kl_map;

// --- making -------------------------------------------------------------------------------------------------------

// Everything is copied. A variable without values, or a constraint that never holds, makes the map empty; constraints
// on a dim or range alone become its bounds.
const kl_map *kl_map_make(kl_affs *p, const kl_map *parts);
// "unknown" results: `why` must outlive the pool's arena.
const kl_map *kl_map_undefined(kl_affs *p, const char *why);
// dims of the given sizes, and they themselves as results.
const kl_map *kl_map_identity(kl_affs *p, uint32_t rank, const int64_t *sizes);
// The map where also e is in the interval.
const kl_map *kl_map_constrain(kl_affs *p, const kl_map *m, const kl_aff *e, kl_interval in);
const kl_map *kl_map_restrict(kl_affs *p, const kl_map *m, kl_aff_kind kind, uint32_t i, kl_interval in);
const kl_map *kl_map_with_results(kl_affs *p, const kl_map *m, const kl_aff *const *results, uint32_t n);

// m, of any pool, in this one.
const kl_map *kl_map_import(kl_affs *p, const kl_map *m);
// m as the public API has maps, with a pool of its own.
struct kiln_map *kl_map_publish(kl_ctx *cx, const kl_map *m);
const kl_map *kl_map_published(const struct kiln_map *m); // as long as that lives

// --- operations ---------------------------------------------------------------------------------------------------

// second after first: dims of first; results of second with its dims replaced by first's results; ranges and runtime
// variables of second, then of first; constraints of both, and first's results within the bounds of second's dims.
// second must have as many dims as first has results.
const kl_map *kl_map_compose(kl_affs *p, const kl_map *first, const kl_map *second);
// The results of the given numbers, same domain.
const kl_map *kl_map_sub(kl_affs *p, const kl_map *m, const uint32_t *results, uint32_t n);
const kl_map *kl_map_rename(kl_affs *p, const kl_map *m, kl_aff_kind kind, uint32_t i, kl_str name);
// Dims in a new order: dim i of the result is dim order[i] of m.
const kl_map *kl_map_permute_dims(kl_affs *p, const kl_map *m, const uint32_t *order);
// Dims become range variables, behind those that are there: the union over their values. `which` ascends.
const kl_map *kl_map_project_dims(kl_affs *p, const kl_map *m, const uint32_t *which, uint32_t n);
// Range variables become dims, behind those that are there; names stay. `which` ascends.
const kl_map *kl_map_ranges_to_dims(kl_affs *p, const kl_map *m, const uint32_t *which, uint32_t n);
// All range and runtime variables become dims; bindings are lost.
const kl_map *kl_map_symbols_to_dims(kl_affs *p, const kl_map *m);

// Without variables (`dims`: dims too) that neither a result nor a needed runtime variable's index uses, nor a
// constraint that holds variables which are used, or runtime variables. Constraints on unused variables alone go with
// them, except where that would turn an empty domain into one that is not: then the map becomes empty.
// removed[kind][i], where not NULL, tells what went.
const kl_map *kl_map_remove_unused(kl_affs *p, const kl_map *m, bool dims, bool *const removed[KL_AFF_VARS]);
// Range variables that a constraint ties to one residue class, s mod c = r, become c*s + r, without the constraint.
const kl_map *kl_map_rescale(kl_affs *p, const kl_map *m);
// Range variables that a constraint fixes by others, s + e = c, become c - e, whose bounds are theirs. The variables
// stay, unused.
const kl_map *kl_map_eliminate(kl_affs *p, const kl_map *m);

// --- simplifying --------------------------------------------------------------------------------------------------

enum {
  KL_MAP_KEEP_POINTS = 1, // variables of one value stay variables
};
// The same set, as simple as is known. A second call gives the same map.
const kl_map *kl_map_simplify(kl_affs *p, const kl_map *m, unsigned flags);
// The interval of each result over the domain; bounds as tight as the simplifier knows them, sound always; lo > hi
// for an empty map. False for an undefined one.
bool kl_map_result_ranges(kl_affs *p, const kl_map *m, kl_interval *out);

// --- questions ----------------------------------------------------------------------------------------------------

typedef enum kl_truth { KL_NO, KL_YES, KL_UNKNOWN } kl_truth;
enum { KL_MAP_QUOTA = 1 << 16 }; // steps of search that answer nearly everything that comes up

// Does nothing satisfy bounds and constraints? `quota` bounds the work; *why, if not NULL, is set with KL_UNKNOWN.
kl_truth kl_map_is_empty(kl_affs *p, const kl_map *m, uint32_t quota, const char **why);
// Is every (dims, results) of a one of b, for all runtime values? Runtime variables that a and b bind alike are the
// same. Unbound ones correspond by position. Different numbers of dims or results: KL_NO, unless a is empty.
kl_truth kl_map_included(kl_affs *p, const kl_map *a, const kl_map *b, uint32_t quota, const char **why);
kl_truth kl_map_equal(kl_affs *p, const kl_map *a, const kl_map *b, uint32_t quota, const char **why);

// The converse: from results to dims, where it can be written as a map. Ranges and dims that the results do not
// determine become ranges. Undefined, with the reason, where no formula is found, or none that is proved right within
// the quota.
const kl_map *kl_map_invert(kl_affs *p, const kl_map *m, uint32_t quota);

// Results at a point, whether or not the domain has it. False where one has no value.
bool kl_map_eval(kl_affs *p, const kl_map *m, const kl_point *x, int64_t *results);
// Is the point in the domain: within the bounds, the constraints satisfied? Values of constraints may leave int64.
bool kl_map_contains(kl_affs *p, const kl_map *m, const kl_point *x);
// Points of the box of all variables; INT64_MAX if that many or more.
int64_t kl_map_points(const kl_map *m);

// How often and how much several maps with as many results reach, together: points of all domains, each map's by
// itself, and different results. Where not exact, no less than there are, and results no more than `most`, which are
// all there can be. Runtime variables have values that nobody knows, one each or one for each index. About `quota`
// points are looked at one by one, if it has to be.
typedef struct kl_map_counts {
  int64_t points, images;
  bool points_exact, images_exact;
} kl_map_counts;
enum { KL_COUNT_QUOTA = 1 << 18 };
kl_map_counts kl_map_count(kl_affs *p, const kl_map *const *maps, uint32_t n, int64_t most, int64_t quota);

// --- text ---------------------------------------------------------------------------------------------------------

typedef enum kl_map_form {
  KL_MAP_LINE,  // (d0)[s0] -> (d0 / 8), domain: d0 in [0, 9], s0 in [0, 3], d0 mod 8 in [1, 5]
  KL_MAP_LINES, // one variable or constraint a line, floordiv for /
} kl_map_form;
// False where the text would be too long; then nothing is appended. Undefined maps print UNDEFINED, empty ones KNOWN
// EMPTY.
bool kl_map_print(kl_affs *p, kl_sb *b, const kl_map *m, kl_map_form form);
// Reads any form: current, attribute (#xla.indexing_map<"...">), multi-line. INVALID with a place, or UNSUPPORTED for
// values beyond int64.
kiln_status kl_map_parse(kl_affs *p, const kl_source *src, const kl_map **out);

#endif
