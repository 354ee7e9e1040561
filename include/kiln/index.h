// kiln: index maps, which say what elements of one tensor belong to an element of another; docs/indexing.md tells their
// text and rules.
//
// A map has dims (the point that is asked about), ranges (for one point, all their values apply), runtime variables
// (for one point exactly one value applies, known only when the program runs), results, and constraints. All bounds are
// inclusive. Arithmetic is exact in 64 bits: what would leave them is a status or an undefined map, never a wrong
// number.
//
// kiln_module_index makes maps of modules: which elements of operands an element of a result needs, and the reverse.
#ifndef KILN_INDEX_H
#define KILN_INDEX_H

#include <kiln/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

// Immutable. Belongs to the context that it was made with and is destroyed before it; serves one thread at a time.
typedef struct kiln_map kiln_map;

typedef enum kiln_map_state {
  KILN_MAP_DEFINED,
  KILN_MAP_EMPTY,     // known to have no point
  KILN_MAP_UNDEFINED, // nothing is known
} kiln_map_state;

typedef enum kiln_map_variable { KILN_MAP_DIM, KILN_MAP_RANGE, KILN_MAP_RUNTIME } kiln_map_variable;

typedef enum kiln_map_form {
  KILN_MAP_LINE,  // "(d0)[s0] -> (d0 / 8, s0), domain: d0 in [0, 9], s0 in [0, 3]"
  KILN_MAP_LINES, // a line for each variable and constraint, floordiv for /
} kiln_map_form;

typedef struct kiln_interval {
  int64_t lo, hi; // inclusive; lo > hi: nothing
} kiln_interval;

typedef enum kiln_truth { KILN_NO, KILN_YES, KILN_UNKNOWN } kiln_truth;

// Reads a map of `size` bytes in any form (need not end in NUL). `name` is used in diagnostics. Owned by the caller.
// Errors: INVALID (with its place), UNSUPPORTED (numbers beyond 64 bits, more variables or nesting than there is room
// for).
KILN_API kiln_status kiln_map_parse(kiln_context *cx, const char *name, const char *text, size_t size, kiln_map **out);
KILN_API void kiln_map_destroy(kiln_map **m);
// NUL-terminated; reading it gives the same map again. Free with kiln_text_free. Errors: UNSUPPORTED (an expression
// whose text would be too long).
KILN_API kiln_status kiln_map_print(kiln_context *cx, const kiln_map *m, kiln_map_form form, char **text, size_t *size);

KILN_API kiln_map_state kiln_map_get_state(const kiln_map *m);
// Why a map is undefined; "" for others. Lives as long as the map.
KILN_API const char *kiln_map_reason(const kiln_map *m);
KILN_API size_t kiln_map_variable_count(const kiln_map *m, kiln_map_variable kind);
KILN_API size_t kiln_map_result_count(const kiln_map *m);
KILN_API size_t kiln_map_constraint_count(const kiln_map *m);
// False if i is out of range.
KILN_API bool kiln_map_bounds(const kiln_map *m, kiln_map_variable kind, size_t i, kiln_interval *out);
// The interval of result i over the domain: sound, and as tight as the simplifier knows. False if i is out of range or
// the map undefined.
KILN_API bool kiln_map_result_range(const kiln_map *m, size_t i, kiln_interval *out);

// Each makes a new map, owned by the caller. The same set in its simplest form; simplifying that changes nothing.
KILN_API kiln_status kiln_map_simplify(kiln_context *cx, const kiln_map *m, kiln_map **out);
// second after first: `second` must have as many dims as `first` has results. INVALID if not.
KILN_API kiln_status kiln_map_compose(kiln_context *cx, const kiln_map *first, const kiln_map *second, kiln_map **out);
// From results to dims. UNSUPPORTED, with the reason, where no formula for it is found and proved.
KILN_API kiln_status kiln_map_invert(kiln_context *cx, const kiln_map *m, kiln_map **out);
// Without variables that nothing needs.
KILN_API kiln_status kiln_map_remove_unused(kiln_context *cx, const kiln_map *m, kiln_map **out);

// Questions about the set of all (dims, results), for all runtime values. `quota` bounds the work (0: enough for nearly
// everything that comes up); what is not decided within it is KILN_UNKNOWN.
KILN_API kiln_truth kiln_map_is_empty(const kiln_map *m, uint32_t quota);
KILN_API kiln_truth kiln_map_is_included(const kiln_map *a, const kiln_map *b, uint32_t quota);
KILN_API kiln_truth kiln_map_is_equal(const kiln_map *a, const kiln_map *b, uint32_t quota);

// Values at a point: dims, ranges and runtime variables, as many as the map has of each. Is the point in the domain?
KILN_API bool kiln_map_contains(const kiln_map *m, const int64_t *dims, const int64_t *ranges, const int64_t *runtime);
// Stores every result. False where one has no value in 64 bits, or the map is undefined.
KILN_API bool kiln_map_evaluate(const kiln_map *m, const int64_t *dims, const int64_t *ranges, const int64_t *runtime,
                                int64_t *results);

// --- of modules ---------------------------------------------------------------------------------------------------

// Dependences of one instruction, or of ENTRY as a whole. Belongs to the context that it was made with and is destroyed
// before it; the module may go first. Immutable: several threads may read it.
typedef struct kiln_indexing kiln_indexing;

typedef enum kiln_index_way {
  KILN_INDEX_FROM_OUTPUT, // which elements of the operands does an element of the result need?
  KILN_INDEX_FROM_INPUT,  // which elements of the result does an element of an operand go into?
} kiln_index_way;

typedef struct kiln_index_params {
  size_t struct_size;
  kiln_index_way way;
  const char *instruction; // the one to look at: of ENTRY, else the first of that name; NULL: ENTRY itself, from its
                           // parameters to its result, along all paths, calls and fusions included
  bool physical;           // indices are places in memory, by the layouts of both sides: the digits of a position,
                           // slowest first (kiln_layout_digit_at)
} kiln_index_params;

// What a runtime variable stands for: an element of an instruction's value, read as an integer.
typedef struct kiln_runtime_value {
  const char *instruction; // its name
  size_t leaf;             // of its result, tuples flattened depth first
  const char *index;       // of the element, by the map's variables: "(d0, 1)"
  bool clamped;            // to an interval; else other values make the map hold nothing
  kiln_interval to;        // where clamped
} kiln_runtime_value;

// One of the maps between two arrays; several with the same ends stand for their union. Strings live as long as the
// list.
typedef struct kiln_dependence {
  const char *from, *to;           // names of the instructions that dims and results of the map are indices of
  const char *from_type, *to_type; // of these arrays, as HLO text
  size_t from_leaf, to_leaf;       // which array of a tuple, depth first
  size_t operand;                  // number of the operand, or of ENTRY's parameter, on the one side
  const kiln_map *map;             // lives as long as the list
  bool exact;                      // false: it may hold more elements than are needed, never fewer
  bool remote;                     // the elements are those of other devices
  const char *reason;              // why it is not exact, remote or undefined; "" otherwise
  size_t runtime_count;
  const kiln_runtime_value *runtime; // by number of the map's runtime variable
} kiln_dependence;

// Lists the dependences between every array of the result and every array of the operands; those of the same two ends
// follow each other. Where there is none, nothing is read. Reading counts as HLO defines the op, whatever values turn
// out to be.
// Errors: INVALID (no such instruction).
KILN_API kiln_status kiln_module_index(kiln_context *cx, const kiln_module *m, const kiln_index_params *params,
                                       kiln_indexing **out);
KILN_API void kiln_indexing_destroy(kiln_indexing **list);
KILN_API size_t kiln_indexing_count(const kiln_indexing *list);
// NULL if i is out of range.
KILN_API const kiln_dependence *kiln_indexing_at(const kiln_indexing *list, size_t i);

// How much of an array is read, and how often.
typedef struct kiln_index_counts {
  size_t struct_size;
  int64_t elements;                 // of the array
  int64_t distinct;                 // of these, that any element on the other side needs (or goes into)
  int64_t total;                    // each as often as it is needed; INT64_MAX if not known
  bool distinct_exact, total_exact; // false: no more than so many
} kiln_index_counts;
// Counts the elements of array `to` of dependence i, for all elements of array `from` and over all dependences between
// the two. By form where that shows how many, else element by element, up to some 100,000. Uses the context that the
// list was made with. False if i is out of range, or struct_size is wrong.
KILN_API bool kiln_indexing_counts(const kiln_indexing *list, size_t i, kiln_index_counts *out);

#ifdef __cplusplus
}
#endif
#endif
