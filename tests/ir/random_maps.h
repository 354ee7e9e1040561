// Random maps as trees of their own, apart from kiln: values by plain integer arithmetic, text for kiln and for isl.
#ifndef TESTS_IR_RANDOM_MAPS_H
#define TESTS_IR_RANDOM_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { RM_VARS = 4, RM_NODES = 96, RM_RESULTS = 3, RM_CONSTRAINTS = 4 };

typedef enum rm_op { RM_CONST, RM_VAR, RM_ADD, RM_SUB, RM_MUL, RM_FLOOR, RM_CEIL, RM_MOD, RM_MIN, RM_MAX } rm_op;

typedef struct rm_node {
  rm_op op;
  int a, b;  // nodes
  int64_t v; // constant, variable, or the constant right operand of MUL, FLOOR, CEIL, MOD (b < 0)
} rm_node;

typedef struct rm_map {
  int n[3]; // variables by kind: dims, ranges, runtime
  int nvars;
  int64_t lo[RM_VARS], hi[RM_VARS];
  rm_node nodes[RM_NODES];
  int nnodes;
  int nresults, results[RM_RESULTS];
  int nconstraints, constraints[RM_CONSTRAINTS];
  int64_t clo[RM_CONSTRAINTS], chi[RM_CONSTRAINTS];
} rm_map;

typedef struct rm_style {
  int64_t most_points; // of the box
  int64_t scale;       // bounds are about this far from 0 where the box allows
  bool products;       // of variables
} rm_style;

// Seeds the generator; the same seed, the same maps.
void rm_seed(uint64_t seed);
uint64_t rm_bits(void);
int64_t rm_between(int64_t lo, int64_t hi);
void rm_make(rm_map *m, const rm_style *style);

// Value of a node at x (all variables in order of kinds).
__int128 rm_value(const rm_map *m, int node, const int64_t *x);
bool rm_contains(const rm_map *m, const int64_t *x);
// The first point of the box, and the next; false after the last.
void rm_first(const rm_map *m, int64_t *x);
bool rm_next(const rm_map *m, int64_t *x);

// The map in kiln's current form; constraints in order, or backwards. Names: d0 s0 rt0, or of their own.
void rm_text(const rm_map *m, FILE *f, bool backwards, bool named);
// "{ [v0, v1] -> [results] : bounds and constraints }" for isl.
void rm_isl_map(const rm_map *m, FILE *f);

#endif
