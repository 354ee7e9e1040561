// What the files of this room share: the instruction looked at, its findings, and checks that many ops make.
#ifndef KL_INFER_H
#define KL_INFER_H

#include "ir/attrs.h"
#include "ir/rules/rules.h"
#include "ir/shape.h"

typedef struct rule {
  kiln_module *m;
  const kl_comp *c;
  const kl_instr *in;
  const kl_shape *want;        // the written type; NULL if there is none
  int64_t dims[KILN_MAX_RANK]; // of the result, while a rule works them out
  bool dynamic[KILN_MAX_RANK]; // likewise
} rule;

static inline const kl_shape *operand(const rule *r, uint32_t i) {
  return kl_operand(r->c, r->in, i)->shape;
}
static inline kl_str operand_name(const rule *r, uint32_t i) {
  return kl_symbol_text(&r->m->names, kl_operand(r->c, r->in, i)->name);
}
static inline const char *text(const rule *r, const kl_shape *s) {
  return kl_shape_text(&r->m->arena, s);
}

// Both report "OP: expected ..., found ...": false for conditions, NULL for rules.
bool kl_rule_refuse(const rule *r, const char *fmt, ...) KL_PRINTF(2, 3);
const kl_shape *kl_rule_fail(const rule *r, const char *fmt, ...) KL_PRINTF(2, 3);
#define refuse kl_rule_refuse
#define fail   kl_rule_fail

// Types of results. Each is the written one where that has the same element type and dims; NULL after reporting that it
// is too large. What is not written follows XLA's inference: see each rule for which operand lends its layout.
// Without layout, nothing dynamic.
const kl_shape *kl_rule_array(const rule *r, kl_dtype t, uint32_t rank, const int64_t *dims);
// Without layout: r->dims and r->dynamic.
const kl_shape *kl_rule_result(const rule *r, kl_dtype t, uint32_t rank);
// As s, with another element type. The bits that a layout gives an element go with the type.
const kl_shape *kl_rule_like(const rule *r, kl_dtype t, const kl_shape *s);
// As s, with another element type and r->dims.
const kl_shape *kl_rule_resized(const rule *r, kl_dtype t, const kl_shape *s);

static inline bool kl_rule_dynamic(const kl_shape *s, uint32_t d) {
  return s->dynamic && s->dynamic[d];
}
// Dimension i of the result is dimension d of s.
static inline void kl_rule_take_dim(rule *r, uint32_t i, const kl_shape *s, uint32_t d) {
  r->dims[i] = s->dims[d];
  r->dynamic[i] = kl_rule_dynamic(s, d);
}
static inline void kl_rule_take_dims(rule *r, const kl_shape *s) {
  for (uint32_t d = 0; d < s->rank; d++) kl_rule_take_dim(r, d, s, d);
}
// "3", or "?" for a size that is not known. For messages.
static inline const char *kl_rule_size(const rule *r, int64_t size) {
  return size == KL_DIM_UNKNOWN ? "?" : kl_strf(&r->m->arena, "%lld", (long long)size);
}
const kl_shape *kl_rule_tuple(const rule *r, uint32_t n, const kl_shape *const *elems);

bool kl_rule_same_dtype(const rule *r, uint32_t i, uint32_t as);
bool kl_rule_same_dims(const rule *r, uint32_t i, uint32_t as, bool or_scalar);
bool kl_rule_in_range(const rule *r, int64_t dim, uint32_t rank);
// Operands from `first` on are arrays.
bool kl_rule_arrays(const rule *r, uint32_t first);
bool kl_rule_integer(const rule *r, uint32_t i);
bool kl_rule_scalar(const rule *r, uint32_t i);
// Entries of the attribute `key`: in range and all different; `sorted`: ascending.
bool kl_rule_dims(const rule *r, const char *key, kl_ints list, uint32_t rank, bool sorted);
// A called computation: its number among the instruction's, a word for it, the parameters and the result wanted
// (compared without layouts; NULL: any).
bool kl_rule_called(const rule *r, uint32_t which, const char *word, uint32_t nparams, const kl_shape *const *params,
                    const kl_shape *result);
static inline const kl_comp *kl_rule_callee(const rule *r, uint32_t which) {
  return &r->m->comp[r->in->called[which]];
}
static inline bool kl_rule_wants_single(const rule *r) { // a tuple of one
  return r->want && r->want->dtype == KILN_TUPLE && r->want->nelems == 1;
}
// What it returns: of a tuple of one its element.
static inline const kl_shape *kl_rule_value(const kl_comp *c) {
  const kl_shape *s = kl_root(c)->shape;
  return s->dtype == KILN_TUPLE && s->nelems == 1 ? s->elems[0] : s;
}
static inline const kl_shape *kl_rule_scalar_of(const rule *r, kl_dtype t) {
  return kl_shape_array(r->m, t, 0, NULL);
}

// window.c
const kl_shape *kl_infer_dot(rule *r), *kl_infer_convolution(rule *r), *kl_infer_reduce(rule *r),
    *kl_infer_reduce_window(rule *r), *kl_infer_select_and_scatter(rule *r), *kl_infer_scan(rule *r),
    *kl_infer_map(rule *r);
// indexed.c
const kl_shape *kl_infer_dynamic_slice(rule *r), *kl_infer_dynamic_update_slice(rule *r), *kl_infer_gather(rule *r),
    *kl_infer_scatter(rule *r), *kl_infer_sort(rule *r), *kl_infer_topk(rule *r), *kl_infer_shuffle(rule *r),
    *kl_infer_dimension_size(rule *r), *kl_infer_dynamic_reshape(rule *r);
// math.c
const kl_shape *kl_infer_rng(rule *r), *kl_infer_rng_bits(rule *r), *kl_infer_rng_state(rule *r),
    *kl_infer_stochastic(rule *r), *kl_infer_batch_norm(rule *r), *kl_infer_cholesky(rule *r),
    *kl_infer_triangular_solve(rule *r), *kl_infer_fft(rule *r);
// control.c
const kl_shape *kl_infer_while(rule *r), *kl_infer_conditional(rule *r), *kl_infer_custom_call(rule *r),
    *kl_infer_forward(rule *r), *kl_infer_token(rule *r), *kl_infer_copy_async(rule *r), *kl_infer_async(rule *r),
    *kl_infer_host(rule *r);
// collective.c
const kl_shape *kl_infer_collective(rule *r), *kl_infer_device_id(rule *r);

#endif
