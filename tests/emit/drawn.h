// Modules of one op with random shapes, layouts, types and attributes, as text; and running them on all machines.
#ifndef KL_TEST_DRAWN_H
#define KL_TEST_DRAWN_H

#include "harness.h"
#include "support/context.h"
#include "support/draw.h"
#include "support/dtypes.h"
#include "support/share.h"

#include <stdio.h>

enum { MOST_RANK = 4, MOST_ARRAYS = 4, MOST_DIMS = 2 * MOST_RANK }; // drawn at random; at all

// A module while it is drawn.
typedef struct drawn {
  kl_sb text; // of ENTRY; once it is drawn, of the module
  uint32_t rank;
  int64_t dims[MOST_DIMS];
  unsigned parameters;
  bool unordered; // the evaluator adds up by no order
} drawn;

static inline void put_dims(kl_sb *b, const char *type, uint32_t rank, const int64_t *dims) {
  kl_sbf(b, "%s[", type);
  for (uint32_t d = 0; d < rank; d++) kl_sbf(b, d ? ",%lld" : "%lld", (long long)dims[d]);
  kl_sb_puts(b, "]");
}

// Sometimes a layout of its own.
static inline void put_layout(kl_sb *b, uint32_t rank) {
  uint32_t order[MOST_DIMS];
  if (rank < 2 || chance(60)) return;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t k = below(i + 1);
    order[i] = order[k];
    order[k] = i;
  }
  for (uint32_t i = 0; i < rank; i++) kl_sbf(b, i ? ",%u" : "{%u", order[i]);
  kl_sb_puts(b, "}");
}

static inline void put_shape(drawn *d, const char *type) {
  put_dims(&d->text, type, d->rank, d->dims);
  put_layout(&d->text, d->rank);
}

// The array x<i>: a parameter, or one whose elements lie elsewhere in a parameter, with their bits: those of a NaN that
// is computed are not promised, and may have a place in an order.
static inline void put_array(drawn *d, unsigned i, const char *type) {
  bool computes = d->rank && chance(30);
  kl_sbf(&d->text, "  %s%u = ", computes ? "p" : "x", i);
  put_shape(d, type);
  kl_sbf(&d->text, " parameter(%u)\n", d->parameters++);
  if (!computes) return;
  kl_sbf(&d->text, "  x%u = ", i);
  put_shape(d, type);
  kl_sbf(&d->text, " reverse(p%u), dimensions={%u}\n", i, below(d->rank));
}

static inline int64_t size_of(void) {
  return chance(3) ? 0 : chance(15) ? 1 : 1 + below(chance(25) ? 70 : 9);
}

static inline void draw_dims(drawn *d, uint32_t least) {
  d->rank = least + below(MOST_RANK + 1 - least);
  for (uint32_t i = 0; i < d->rank; i++) d->dims[i] = i < 2 ? size_of() : 1 + below(4);
}

// The type of case `number`, of all in turns: in time each of them with all that has turns of another length.
static inline kl_dtype type_in_turns(unsigned number) {
  dtype_list all = dtypes_that(kl_is_array_dtype);
  return all.at[(number + number / (unsigned)all.n) % (unsigned)all.n];
}

static inline kl_dtype draw_type(bool (*takes)(kl_dtype)) {
  dtype_list all = dtypes_that(takes);
  return all.at[below((uint32_t)all.n)];
}

// --- running --------------------------------------------------------------------------------------------------------

static batch batches[TARGETS];

static inline void open_batches(void) {
  make_context();
  batches_init(batches, cx);
}
static inline void close_batches(void) {
  batches_free(batches);
  drop_context();
}

// Draws ENTRY, and what it calls; of the type `first` in the first place.
typedef void drawing(drawn *d, kl_sb *calls, kl_dtype first);

static inline kiln_module *draw_module(drawn *d, drawing *draw, kl_dtype first, unsigned number, bool print) {
  kl_sb text;
  seed = number * 0x9e3779b97f4a7c15ull;
  *d = (drawn){0};
  kl_sb_init(&text, cx);
  kl_sb_init(&d->text, cx);
  kl_sb_puts(&text, "HloModule fusion\n\n");
  draw(d, &text, first);
  kl_sb_puts(&text, "ENTRY fusion {\n");
  kl_sb_puts(&text, d->text.p);
  kl_sb_puts(&text, "}\n");
  kl_sb_free(&d->text);
  d->text = text;
  if (print) puts(text.p);
  return parse(text.p);
}

// On the host and on the simulator, as another target each time; data from `inputs`. Sometimes assembled.
static inline void run_drawn(const kiln_module *m, const drawn *d, unsigned number, unsigned inputs) {
  unsigned t = inputs % TARGETS;
  run_both_and_check(cx, m, t, inputs, d->text.p);
  if (share_has(number, 3)) batch_add(batches, t, cx, m, number, d->text.p);
}

static inline void drop_drawn(kiln_module *m, drawn *d) {
  kiln_module_destroy(&m);
  kl_sb_free(&d->text);
}

#endif
