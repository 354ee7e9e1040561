// Loops over the columns of matrices [b, m, n]: what each round, with its number k, takes of them. Private to this
// room.
#ifndef KL_EXPAND_COLUMNS_H
#define KL_EXPAND_COLUMNS_H

#include "ir/rewrite/expand/room.h"

typedef struct kl_columns {
  int64_t b, m, n, steps; // steps: rounds
} kl_columns;

// Of matrices, and of what else has `own` dimensions behind its batches'.
kl_columns kl_columns_of(const kl_shape *s);
int64_t kl_batches(const kl_shape *s, uint32_t own);

typedef struct kl_round {
  kl_graph *g;
  kl_columns z;
  uint32_t k, at; // which column; the number of each row, [b, m]
} kl_round;

kl_round kl_round_begin(kl_graph *g, kl_columns z, uint32_t k);
// A scalar in all places of an array like this; numbers compared with k.
uint32_t kl_everywhere(const kl_round *x, uint32_t scalar, uint32_t like);
uint32_t kl_against(const kl_round *x, kl_direction d, uint32_t a);
// [b] along the rows of [b, m]; of [b, m, n] what each row has, and each column, from [b, m] and [b, n].
uint32_t kl_of_batch(const kl_round *x, uint32_t v);
uint32_t kl_along_rows(const kl_round *x, uint32_t of_row);
uint32_t kl_along_columns(const kl_round *x, uint32_t of_column);
// Column k of [b, m, n], [b, m]; element k of each list, [b, n] to [b].
uint32_t kl_column(const kl_round *x, uint32_t a);
uint32_t kl_own(const kl_round *x, uint32_t list);
// The list [b, steps] with another element k, [b].
uint32_t kl_with_own(const kl_round *x, uint32_t list, uint32_t v);

// Adds the loop that carries `state`, whose first element is the number of the round, of z.steps rounds, if it is not
// there and there are any. `round` makes what is carried of what is carried.
void kl_loop_over_columns(kl_graph *g, kl_columns z, const kl_shape *state,
                          uint32_t round(kl_graph *g, kl_columns z, uint32_t state));

#endif
