// Result shapes of collectives.
#include "ir/rules/infer.h"

#include <stdlib.h>

// --- devices ------------------------------------------------------------------------------------------------------

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// Is a number of every `step`-th entry, from `first` on, there twice? Negative ones stand for none. *which: the least.
static bool has_twins(kl_ctx *cx, kl_ints list, uint32_t first, uint32_t step, int64_t *which) {
  uint32_t n = 0;
  size_t size = (list.n / step + 1) * sizeof(int64_t);
  int64_t *sorted = kl_alloc(cx, size);
  for (uint32_t i = first; i < list.n; i += step)
    if (list.p[i] >= 0) sorted[n++] = list.p[i];
  qsort(sorted, n, sizeof *sorted, by_value);
  uint32_t k = 1;
  while (k < n && sorted[k] != sorted[k - 1]) k++;
  bool found = k < n;
  if (found) *which = sorted[k];
  kl_free(cx, sorted, size);
  return found;
}

static bool check_groups(const rule *r, bool equal) {
  const kl_groups *g = &r->in->more->groups;
  int64_t twice;
  for (uint32_t i = 0; i < g->ids.n && equal; i++)
    if (g->ids.p[i] < 0)
      return refuse(r, "expected groups of equal size in replica_groups, found %.*s", KL_FMT(g->text));
  if (has_twins(r->m->cx, g->ids, 0, 1, &twice))
    return refuse(r, "expected every device once in replica_groups, found %lld again", (long long)twice);
  for (uint32_t i = 0; i < g->ngroups && g->size; i++)
    if (g->ids.p[i * g->size] < 0)
      return refuse(r, "expected no empty group in replica_groups, found %.*s", KL_FMT(g->text));
  return true;
}

// Of one group; 0 where the text does not say (all devices, a mesh).
static int64_t group_size(const rule *r) {
  return r->in->more->groups.ids.n ? r->in->more->groups.size : 0;
}

static bool check_pairs(const rule *r) {
  kl_ints p = r->in->more->pairs;
  int64_t twice;
  if (has_twins(r->m->cx, p, 0, 2, &twice))
    return refuse(r, "expected every source once in source_target_pairs, found %lld again", (long long)twice);
  if (has_twins(r->m->cx, p, 1, 2, &twice))
    return refuse(r, "expected every target once in source_target_pairs, found %lld again", (long long)twice);
  return true;
}

// --- shapes -------------------------------------------------------------------------------------------------------

static const kl_shape *operands_tuple(rule *r) {
  uint32_t n = r->in->noperands;
  if (n == 1) return operand(r, 0);
  const kl_shape **elems = kl_alloc(r->m->cx, (n + 1) * sizeof *elems);
  for (uint32_t i = 0; i < n; i++) elems[i] = operand(r, i);
  const kl_shape *s = kl_rule_tuple(r, n, elems);
  kl_free(r->m->cx, elems, (n + 1) * sizeof *elems);
  return s;
}

static const kl_shape *written_leaf(const rule *r, uint32_t i) {
  const kl_shape *w = r->want;
  if (!w) return NULL;
  if (r->in->noperands == 1 && kl_shape_is_array(w)) return w;
  return w->dtype == KILN_TUPLE && i < w->nelems ? w->elems[i] : NULL;
}

// Results as the operands, but for one dimension that is `times` as large, or a `part` of it. Where the text does not
// say how many devices there are, the written type decides.
static const kl_shape *resized(rule *r, bool grows) {
  uint32_t n = r->in->noperands;
  int64_t devices = group_size(r);
  if (r->in->ndims != 1) return fail(r, "expected one entry in dimensions={...}, found %u", r->in->ndims);
  int64_t dim = r->in->dims[0];
  const kl_shape **elems = kl_alloc(r->m->cx, (n + 1) * sizeof *elems);
  bool ok = true;
  for (uint32_t i = 0; i < n && ok; i++) {
    const kl_shape *s = operand(r, i), *w = written_leaf(r, i);
    ok = kl_rule_in_range(r, dim, s->rank);
    if (!ok) break;
    memcpy(r->dims, s->dims, s->rank * sizeof *r->dims);
    int64_t known = devices, size = s->dims[dim];
    bool unknown = size == KL_DIM_UNKNOWN;
    if (!known && w && w->rank == s->rank) {
      int64_t big = grows ? w->dims[dim] : size, small = grows ? size : w->dims[dim];
      known = small > 0 && big % small == 0 ? big / small : 1;
    }
    if (!known)
      ok = refuse(r, "expected a result type or replica_groups that tell the number of devices, found neither");
    if (ok && !grows && !unknown && size % known)
      ok = refuse(r, "expected dimension %lld to be a multiple of the %lld devices, found %s", (long long)dim,
                  (long long)known, text(r, s));
    if (ok && grows && !unknown && __builtin_mul_overflow(size, known, &r->dims[dim]))
      ok = refuse(r, "expected a result dimension below 2^63, found more");
    if (ok && !grows && !unknown) r->dims[dim] = size / known;
    ok = ok && (elems[i] = kl_rule_resized(r, s->dtype, s)) != NULL;
  }
  const kl_shape *out = !ok ? NULL : n == 1 ? elems[0] : kl_rule_tuple(r, n, elems);
  kl_free(r->m->cx, elems, (n + 1) * sizeof *elems);
  return out;
}

// With `dimensions` one array is split among the devices and put together again; without, every operand is a device's.
static const kl_shape *infer_all_to_all(rule *r) {
  int64_t devices = group_size(r);
  if (r->in->ndims > 1) return fail(r, "expected at most one entry in dimensions={...}, found %u", r->in->ndims);
  if (r->in->ndims == 0) {
    for (uint32_t i = 1; i < r->in->noperands; i++)
      if (!kl_shape_compatible(operand(r, i), operand(r, 0)))
        return fail(r, "expected operands of one type, found %s and %s", text(r, operand(r, 0)),
                    text(r, operand(r, i)));
    if (devices && r->in->noperands != devices)
      return fail(r, "expected an operand for each of the %lld devices of a group, found %u", (long long)devices,
                  r->in->noperands);
    if (r->in->noperands > 1 || !r->want || r->want->dtype != KILN_TUPLE) return operands_tuple(r);
    const kl_shape *only = operand(r, 0); // of one device: the array, or a tuple of it
    return kl_rule_tuple(r, 1, &only);
  }
  if (!kl_rule_in_range(r, r->in->dims[0], operand(r, 0)->rank)) return NULL;
  if (devices && operand(r, 0)->dims[r->in->dims[0]] % devices)
    return fail(r, "expected dimension %lld to be a multiple of the %lld devices of a group, found %s",
                (long long)r->in->dims[0], (long long)devices, text(r, operand(r, 0)));
  return operand(r, 0);
}

static bool check_reducer(const rule *r) {
  if (r->in->ncalled != 1) return refuse(r, "expected a computation to apply, found none");
  const kl_comp *c = kl_rule_callee(r, 0);
  const kl_shape *out = kl_rule_value(c);
  if (c->nparams != 2)
    return refuse(r, "expected 2 parameters of the reducer '%.*s', found %u",
                  KL_FMT(kl_symbol_text(&r->m->names, c->name)), c->nparams);
  for (uint32_t i = 0; i < 2; i++)
    if (!kl_shape_compatible(c->instr[c->params[i]].shape, out) || !kl_shape_is_array(out) || out->rank)
      return refuse(r, "expected the reducer '%.*s' to combine two scalars of its result's type, found %s and %s",
                    KL_FMT(kl_symbol_text(&r->m->names, c->name)), text(r, c->instr[c->params[i]].shape), text(r, out));
  return true;
}

// (operands, results, contexts...): permute, gather; the reducing one gives its results alone.
static const kl_shape *started(rule *r, const kl_shape *result) {
  const kl_shape *in = operands_tuple(r), *w = r->want;
  if (!in || !result) return NULL;
  uint32_t n = w && w->dtype == KILN_TUPLE && w->nelems > 2 ? w->nelems : 2;
  if (n > 8) return fail(r, "expected operands, results and at most 6 contexts, found %s", text(r, w));
  const kl_shape *elems[8] = {in, result};
  for (uint32_t i = 2; i < n; i++) elems[i] = w->elems[i];
  return kl_rule_tuple(r, n, elems);
}

static const kl_shape *finished(rule *r) {
  const kl_shape *s = operand(r, 0);
  if (r->in->op == KL_OP_ALL_REDUCE_DONE) return s;
  if (s->dtype == KILN_TUPLE && s->nelems >= 2) return s->elems[1];
  return fail(r, "expected a tuple of operands, results and contexts from the op that starts, found %s", text(r, s));
}

// In place: (input, output, start indices...) copies slices into the output, which is the result.
static const kl_shape *infer_permute(rule *r) {
  if (!check_pairs(r)) return NULL;
  bool start = r->in->op == KL_OP_COLLECTIVE_PERMUTE_START;
  const kl_shape *w = r->want;
  bool in_place = r->in->noperands == 4 && !kl_shape_compatible(operand(r, 3), operand(r, 0));
  if (in_place) return start ? (w ? w : fail(r, "expected a result type, found none")) : operand(r, 1);
  const kl_shape *s = operands_tuple(r);
  return start ? started(r, s) : s;
}

// Rows of operand 0 go over those of operand 1, by four lists of numbers.
static bool check_pieces(const rule *r) {
  const kl_shape *from = operand(r, 0), *to = operand(r, 1), *list = operand(r, 2);
  bool same = from->rank && from->rank == to->rank && from->dtype == to->dtype;
  for (uint32_t d = 1; same && d < from->rank; d++) same = from->dims[d] == to->dims[d];
  if (!same)
    return refuse(r, "expected rows of one type in operands 0 and 1, found %s and %s", text(r, from), text(r, to));
  for (uint32_t i = 2; i < 6; i++) {
    const kl_shape *s = operand(r, i);
    if (s->rank != 1 || !kl_is_int(s->dtype) || s->dims[0] != list->dims[0])
      return refuse(r, "expected a list of integers for operand %u, as long as operand 2, found %s", i, text(r, s));
  }
  return true;
}

const kl_shape *kl_infer_collective(rule *r) {
  kl_op op = r->in->op;
  if (op == KL_OP_ALL_GATHER_DONE || op == KL_OP_ALL_REDUCE_DONE || op == KL_OP_COLLECTIVE_PERMUTE_DONE)
    return finished(r);
  if (r->in->noperands == 0) return fail(r, "expected at least one operand, found none");
  if (!kl_rule_arrays(r, 0)) return NULL;
  bool equal = op != KL_OP_ALL_REDUCE && op != KL_OP_ALL_REDUCE_START && op != KL_OP_COLLECTIVE_BROADCAST;
  if (!check_groups(r, equal)) return NULL;
  switch (op) {
  case KL_OP_ALL_GATHER: return resized(r, true);
  case KL_OP_ALL_GATHER_START: {
    rule plain = *r; // the results alone: the second of the written tuple
    plain.want = r->want && r->want->dtype == KILN_TUPLE && r->want->nelems >= 2 ? r->want->elems[1] : NULL;
    return started(r, resized(&plain, true));
  }
  case KL_OP_REDUCE_SCATTER: return check_reducer(r) ? resized(r, false) : NULL;
  case KL_OP_ALL_REDUCE:
  case KL_OP_ALL_REDUCE_START:
  case KL_OP_COLLECTIVE_REDUCE: return check_reducer(r) ? operands_tuple(r) : NULL;
  case KL_OP_ALL_TO_ALL: return infer_all_to_all(r);
  case KL_OP_RAGGED_ALL_TO_ALL: return check_pieces(r) ? operand(r, 1) : NULL;
  case KL_OP_COLLECTIVE_PERMUTE:
  case KL_OP_COLLECTIVE_PERMUTE_START: return infer_permute(r);
  default: return operands_tuple(r); // collective-broadcast
  }
}

const kl_shape *kl_infer_device_id(rule *r) {
  return kl_rule_scalar_of(r, KILN_U32);
}
