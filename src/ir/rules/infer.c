// Result shapes: one rule per family of ops, told as "OP: expected X, found Y" where it is broken.
//
// A rule sees the operands' shapes, which are known, and the attributes; it gives dtype and dims. The wanted shape, if
// there is one, decides where the op leaves a choice, must agree elsewhere, and brings its layout along.
#include "ir/rules/infer.h"

#include <stdio.h>

static void report(const rule *r, const char *fmt, va_list ap) {
  char message[1000];
  vsnprintf(message, sizeof message, fmt, ap);
  kl_invalid(r->m->cx, r->in->span, "%s: %s", kl_op_name(r->in->op), message);
}

bool kl_rule_refuse(const rule *r, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(r, fmt, ap);
  va_end(ap);
  return false;
}

const kl_shape *kl_rule_fail(const rule *r, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(r, fmt, ap);
  va_end(ap);
  return NULL;
}

// The written type, where it is what a rule gives.
static const kl_shape *written(const rule *r, kl_dtype t, uint32_t rank, const int64_t *dims) {
  const kl_shape *w = r->want;
  bool same = w && w->dtype == t && w->rank == rank && (rank == 0 || memcmp(w->dims, dims, rank * sizeof *dims) == 0);
  return same ? w : NULL;
}

static const kl_shape *intern(const rule *r, const kl_shape *wanted) {
  const kl_shape *s = kl_shape_intern(r->m, wanted);
  return s ? s
           : fail(r, "expected a result of at most %d dimensions and less than 2^60 elements, found more",
                  KILN_MAX_RANK);
}

const kl_shape *kl_rule_array(const rule *r, kl_dtype t, uint32_t rank, const int64_t *dims) {
  const kl_shape *w = written(r, t, rank, dims);
  return w ? w : intern(r, &(kl_shape){.dtype = t, .rank = rank, .dims = dims, .layout.tail_padding = 1});
}

const kl_shape *kl_rule_result(const rule *r, kl_dtype t, uint32_t rank) {
  const kl_shape *w = written(r, t, rank, r->dims);
  bool any = false;
  for (uint32_t d = 0; d < rank; d++) any |= r->dynamic[d];
  kl_shape s = {.dtype = t, .rank = rank, .dims = r->dims, .layout.tail_padding = 1};
  if (any) s.dynamic = r->dynamic;
  return w ? w : intern(r, &s);
}

static const kl_shape *like(const rule *r, kl_dtype t, const kl_shape *as, const int64_t *dims) {
  const kl_shape *w = written(r, t, as->rank, dims);
  if (w || (t == as->dtype && dims == as->dims)) return w ? w : as;
  kl_shape s = *as;
  s.dtype = t;
  s.dims = dims;
  if (t != as->dtype) s.layout.element_bits = 0;
  return intern(r, &s);
}

const kl_shape *kl_rule_like(const rule *r, kl_dtype t, const kl_shape *s) {
  return like(r, t, s, s->dims);
}

const kl_shape *kl_rule_resized(const rule *r, kl_dtype t, const kl_shape *s) {
  return like(r, t, s, r->dims);
}

// --- what operands may be -----------------------------------------------------------------------------------------

static const char *types_text(uint8_t mask) {
  static const char *const names[16] = {"nothing",
                                        "pred",
                                        "integers",
                                        "pred or integers",
                                        "floats",
                                        "pred or floats",
                                        "integers or floats",
                                        "pred, integers or floats",
                                        "complex numbers",
                                        "pred or complex numbers",
                                        "integers or complex numbers",
                                        "pred, integers or complex numbers",
                                        "floats or complex numbers",
                                        "pred, floats or complex numbers",
                                        "integers, floats or complex numbers",
                                        "any element type"};
  return names[mask & 15];
}

static bool takes_arrays(kl_op op) {
  return kl_op_table[op].kind < KL_KIND_TUPLE && op != KL_OP_COPY;
}

// Number and element types of the operands, by the op table.
static bool check_operands(const rule *r) {
  const kl_op_info *info = &kl_op_table[r->in->op];
  uint32_t n = r->in->noperands;
  if (info->arity >= 0 && n != (uint32_t)info->arity)
    return refuse(r, "expected %d operand%s, found %u", info->arity, info->arity == 1 ? "" : "s", n);
  for (uint32_t i = 0; i < n && takes_arrays(r->in->op); i++) {
    const kl_shape *s = operand(r, i);
    if (kl_type_mask(s->dtype) & (info->kind == KL_KIND_SELECT && i == 0 ? KL_T_P : info->types)) continue;
    return refuse(r, "expected an array of %s for operand %u ('%.*s'), found %s",
                  types_text(info->kind == KL_KIND_SELECT && i == 0 ? KL_T_P : info->types), i,
                  KL_FMT(operand_name(r, i)), text(r, s));
  }
  return true;
}

bool kl_rule_same_dtype(const rule *r, uint32_t i, uint32_t as) {
  if (operand(r, i)->dtype == operand(r, as)->dtype) return true;
  return refuse(r, "expected operand %u ('%.*s') to be of type %s as operand %u, found %s", i,
                KL_FMT(operand_name(r, i)), kl_info(operand(r, as)->dtype)->name, as, text(r, operand(r, i)));
}

// Do the dimensions of `a` run along those of `b` from `first` on? Those of size 1 may stand for any; *stay: how many
// of the others there are.
static bool runs_along(const kl_shape *a, const kl_shape *b, uint32_t first, uint32_t *stay) {
  *stay = 0;
  if (first > b->rank || a->rank > b->rank - first) return false;
  for (uint32_t d = 0; d < a->rank; d++) {
    bool same = a->dims[d] == b->dims[first + d];
    if (!same && a->dims[d] != 1) return false;
    *stay += same;
  }
  return true;
}

// What to write where another language would broadcast operand i to the dimensions of operand `as`; "" if none would.
static const char *broadcast_hint(const rule *r, uint32_t i, uint32_t as) {
  const kl_shape *a = operand(r, i), *b = operand(r, as);
  uint32_t last = b->rank - a->rank, first = last, stay;
  if (a->rank > b->rank) return "";
  if (!runs_along(a, b, last, &stay) && !runs_along(a, b, first = 0, &stay)) return "";
  int64_t kept[KILN_MAX_RANK];
  kl_str name = operand_name(r, i);
  kl_sb at;
  kl_sb_init(&at, r->m->cx);
  for (uint32_t d = 0, n = 0; d < a->rank; d++) {
    if (a->dims[d] != b->dims[first + d]) continue;
    kl_sbf(&at, "%s%u", n ? "," : "", first + d);
    kept[n++] = a->dims[d];
  }
  kl_shape small = {.dtype = a->dtype, .rank = stay, .dims = kept}, large = {.dtype = a->dtype, .rank = b->rank};
  large.dims = b->dims;
  const char *operand = stay == a->rank ? kl_strf(&r->m->arena, "%.*s", KL_FMT(name))
                                        : kl_strf(&r->m->arena, "%s reshape(%.*s)", text(r, &small), KL_FMT(name));
  const char *hint =
      kl_strf(&r->m->arena, "; nothing is broadcast unless it is written: %s broadcast(%s), dimensions={%.*s}",
              text(r, &large), operand, (int)at.n, at.n ? at.p : "");
  kl_sb_free(&at);
  return hint;
}

bool kl_rule_same_dims(const rule *r, uint32_t i, uint32_t as, bool or_scalar) {
  const kl_shape *a = operand(r, i), *b = operand(r, as);
  if (kl_shape_same_dims(a, b) || (or_scalar && a->rank == 0)) return true;
  const char *hint = "";
  if (kl_op_is_elementwise(r->in->op)) {
    hint = broadcast_hint(r, i, as);
    if (!hint[0]) hint = broadcast_hint(r, as, i);
  }
  return refuse(r, "expected operand %u ('%.*s') to have the dimensions of operand %u (%s)%s, found %s%s", i,
                KL_FMT(operand_name(r, i)), as, text(r, b), or_scalar ? " or none" : "", text(r, a), hint);
}

bool kl_rule_in_range(const rule *r, int64_t dim, uint32_t rank) {
  if (dim >= 0 && dim < rank) return true;
  return refuse(r, "expected a dimension from 0 to %d, found %lld", (int)rank - 1, (long long)dim);
}

// dimensions={...}: n of them, in range, no two equal.
static bool distinct_dims(const rule *r, uint32_t n, uint32_t rank) {
  uint64_t seen = 0;
  if (r->in->ndims != n) return refuse(r, "expected %u entries in dimensions={...}, found %u", n, r->in->ndims);
  for (uint32_t i = 0; i < n; i++) {
    if (!kl_rule_in_range(r, r->in->dims[i], rank)) return false;
    if (seen >> r->in->dims[i] & 1)
      return refuse(r, "expected each dimension at most once, found %lld again", (long long)r->in->dims[i]);
    seen |= 1ull << r->in->dims[i];
  }
  return true;
}

bool kl_rule_arrays(const rule *r, uint32_t first) {
  for (uint32_t i = first; i < r->in->noperands; i++)
    if (!kl_shape_is_array(operand(r, i)))
      return refuse(r, "expected an array for operand %u ('%.*s'), found %s", i, KL_FMT(operand_name(r, i)),
                    text(r, operand(r, i)));
  return true;
}

bool kl_rule_integer(const rule *r, uint32_t i) {
  if (kl_type_mask(operand(r, i)->dtype) == KL_T_I) return true;
  return refuse(r, "expected integers for operand %u ('%.*s'), found %s", i, KL_FMT(operand_name(r, i)),
                text(r, operand(r, i)));
}

bool kl_rule_scalar(const rule *r, uint32_t i) {
  if (kl_shape_is_array(operand(r, i)) && operand(r, i)->rank == 0) return true;
  return refuse(r, "expected an array of no dimensions for operand %u ('%.*s'), found %s", i,
                KL_FMT(operand_name(r, i)), text(r, operand(r, i)));
}

bool kl_rule_dims(const rule *r, const char *key, kl_ints list, uint32_t rank, bool sorted) {
  uint64_t seen = 0;
  for (uint32_t i = 0; i < list.n; i++) {
    if (list.p[i] < 0 || list.p[i] >= rank)
      return refuse(r, "expected entries of %s from 0 to %d, found %lld", key, (int)rank - 1, (long long)list.p[i]);
    if (seen >> list.p[i] & 1)
      return refuse(r, "expected different entries of %s, found %lld again", key, (long long)list.p[i]);
    if (sorted && i && list.p[i] < list.p[i - 1])
      return refuse(r, "expected entries of %s in ascending order, found %lld behind %lld", key, (long long)list.p[i],
                    (long long)list.p[i - 1]);
    seen |= 1ull << list.p[i];
  }
  return true;
}

bool kl_rule_called(const rule *r, uint32_t which, const char *word, uint32_t nparams, const kl_shape *const *params,
                    const kl_shape *result) {
  if (which >= r->in->ncalled) return refuse(r, "expected a computation as %s, found none", word);
  const kl_comp *c = kl_rule_callee(r, which);
  kl_str name = kl_symbol_text(&r->m->names, c->name);
  if (c->nparams != nparams)
    return refuse(r, "expected %u parameters of the %s '%.*s', found %u", nparams, word, KL_FMT(name), c->nparams);
  for (uint32_t i = 0; i < nparams; i++) {
    const kl_shape *s = c->instr[c->params[i]].shape;
    if (params[i] && !kl_shape_compatible(s, params[i]))
      return refuse(r, "expected %s for parameter %u of the %s '%.*s', found %s", text(r, params[i]), i, word,
                    KL_FMT(name), text(r, s));
  }
  if (!result || kl_shape_compatible(kl_root(c)->shape, result)) return true;
  return refuse(r, "expected the %s '%.*s' to return %s, found %s", word, KL_FMT(name), text(r, result),
                text(r, kl_root(c)->shape));
}

static bool wants_array(const rule *r) {
  if (r->want && kl_shape_is_array(r->want)) return true;
  return refuse(r, "expected an array as the result type, found %s", r->want ? text(r, r->want) : "none");
}

// --- elementwise --------------------------------------------------------------------------------------------------

// As s, with what is dynamic in an operand of the same dimensions, too.
static const kl_shape *joined(rule *r, const kl_shape *s) {
  kl_shape join = *s;
  bool any = false;
  for (uint32_t d = 0; d < s->rank; d++) r->dynamic[d] = false;
  for (uint32_t i = 0; i < r->in->noperands; i++)
    for (uint32_t d = 0; operand(r, i)->dynamic && operand(r, i)->rank == s->rank && d < s->rank; d++)
      any |= r->dynamic[d] |= operand(r, i)->dynamic[d];
  if (!any || r->want) return s;
  join.dynamic = r->dynamic;
  return kl_shape_intern(r->m, &join);
}

static const kl_shape *part_shape(const rule *r, const kl_shape *s) {
  kl_dtype part = kl_info(s->dtype)->part;
  return kl_rule_like(r, part ? part : s->dtype, s);
}

static const kl_shape *complex_shape(const rule *r, const kl_shape *s) {
  if (s->dtype == KILN_F32) return kl_rule_like(r, KILN_C64, s);
  if (s->dtype == KILN_F64) return kl_rule_like(r, KILN_C128, s);
  return fail(r, "expected operands of type f32 or f64, found %s", text(r, s));
}

static const kl_shape *elementwise_result(const rule *r, const kl_shape *s) {
  switch (kl_op_table[r->in->op].result) {
  case KL_RESULT_PRED: return kl_rule_like(r, KILN_PRED, s);
  case KL_RESULT_PART: return part_shape(r, s);
  case KL_RESULT_CPLX: return complex_shape(r, s);
  default: return kl_rule_like(r, s->dtype, s);
  }
}

static const kl_shape *infer_unary(const rule *r) {
  const kl_instr *in = r->in;
  if (in->op == KL_OP_COPY && !kl_shape_is_array(operand(r, 0))) return operand(r, 0);
  if (in->op == KL_OP_REDUCE_PRECISION && (in->exponent_bits < 1 || in->mantissa_bits < 0))
    return fail(r, "expected exponent_bits of at least 1 and mantissa_bits of at least 0, found %d and %d",
                in->exponent_bits, in->mantissa_bits);
  return elementwise_result(r, operand(r, 0));
}

// Which comparisons an element type has beside the default.
static bool check_compare_type(const rule *r) {
  kl_compare_type type = r->in->compare_type;
  kl_dtype t = operand(r, 0)->dtype;
  bool ok = type == KL_CMP_DEFAULT || (type == KL_CMP_FLOAT && (kl_is_float(t) || kl_is_complex(t))) ||
            (type == KL_CMP_TOTALORDER && kl_is_float(t)) || (type == KL_CMP_SIGNED && kl_is_signed(t)) ||
            (type == KL_CMP_UNSIGNED && !kl_is_signed(t) && !kl_is_float(t) && !kl_is_complex(t));
  return ok ||
         refuse(r, "expected a comparison type that fits %s, found %s", kl_info(t)->name, kl_compare_type_names[type]);
}

// The layout is that of operand 0.
static const kl_shape *infer_binary(rule *r) {
  if (!kl_rule_same_dtype(r, 1, 0) || !kl_rule_same_dims(r, 1, 0, false)) return NULL;
  if (r->in->op == KL_OP_COMPARE && !check_compare_type(r)) return NULL;
  return elementwise_result(r, joined(r, operand(r, 0)));
}

// The layout is that of the choice, where that is an array.
static const kl_shape *infer_select(rule *r) {
  if (!kl_rule_same_dtype(r, 2, 1) || !kl_rule_same_dims(r, 2, 1, false) || !kl_rule_same_dims(r, 0, 1, true))
    return NULL;
  return kl_rule_like(r, operand(r, 1)->dtype, joined(r, operand(r, operand(r, 0)->rank ? 0 : 1)));
}

static const kl_shape *infer_clamp(const rule *r) {
  if (!kl_rule_same_dtype(r, 0, 1) || !kl_rule_same_dtype(r, 2, 1) || !kl_rule_same_dims(r, 0, 1, true) ||
      !kl_rule_same_dims(r, 2, 1, true))
    return NULL;
  return kl_rule_like(r, operand(r, 1)->dtype, operand(r, 1));
}

// A bit pattern is read as another type. Unequal widths trade the minor dimension: 4 x u8 <-> u32.
static const kl_shape *infer_bitcast_convert(rule *r) {
  const kl_shape *s = operand(r, 0);
  kl_dtype from = s->dtype, to = r->want->dtype;
  if (kl_is_complex(from) != kl_is_complex(to) || (from == KILN_PRED) != (to == KILN_PRED))
    return fail(r, "expected types both complex, both pred or neither, found %s to %s", kl_info(from)->name,
                kl_info(to)->name);
  int64_t in = kl_info(from)->bits, out = kl_info(to)->bits;
  if (in < out) {
    if (s->rank == 0 || s->dims[s->rank - 1] != out / in)
      return fail(r, "expected a last dimension of %lld to make %s, found %s", (long long)(out / in), kl_info(to)->name,
                  text(r, s));
    return kl_rule_array(r, to, s->rank - 1, s->dims);
  }
  if (in == out) return kl_rule_like(r, to, s);
  if (s->rank == KILN_MAX_RANK)
    return fail(r, "expected fewer than %d dimensions, found %s", KILN_MAX_RANK, text(r, s));
  memcpy(r->dims, s->dims, s->rank * sizeof(int64_t));
  r->dims[s->rank] = in / out;
  return kl_rule_array(r, to, s->rank + 1, r->dims);
}

static const kl_shape *infer_convert(rule *r) {
  if (!wants_array(r)) return NULL;
  return r->in->op == KL_OP_CONVERT ? kl_rule_like(r, r->want->dtype, operand(r, 0)) : infer_bitcast_convert(r);
}

// --- data sources -------------------------------------------------------------------------------------------------

static const kl_shape *infer_parameter(const rule *r) {
  if (!r->want) return fail(r, "expected a type, found none");
  if (r->in->number < 0) return fail(r, "expected a number of at least 0, found %lld", (long long)r->in->number);
  return r->want;
}

static const kl_shape *infer_constant(const rule *r) {
  bool is_tuple = r->want && r->want->dtype == KILN_TUPLE;
  if (!r->in->literal || is_tuple) return r->want ? r->want : fail(r, "expected a type, found none");
  return kl_rule_like(r, r->in->literal->shape->dtype, r->in->literal->shape);
}

static const kl_shape *infer_iota(const rule *r) {
  if (!wants_array(r)) return NULL;
  uint8_t types = kl_op_table[KL_OP_IOTA].types;
  if (!(kl_type_mask(r->want->dtype) & types))
    return fail(r, "expected a result of %s, found %s", types_text(types), text(r, r->want));
  if (r->want->rank == 0) return fail(r, "expected a result of at least one dimension, found %s", text(r, r->want));
  return kl_rule_in_range(r, r->in->number, r->want->rank) ? kl_rule_like(r, r->want->dtype, r->want) : NULL;
}

// --- index transforms ---------------------------------------------------------------------------------------------

static const kl_shape *infer_broadcast(const rule *r) {
  const kl_shape *s = operand(r, 0);
  if (!wants_array(r) || !distinct_dims(r, s->rank, r->want->rank)) return NULL;
  for (uint32_t i = 0; i < s->rank; i++) {
    int64_t to = r->in->dims[i];
    if (r->want->dims[to] != s->dims[i])
      return fail(r, "expected dimension %lld of the result to be %s as dimension %u of the operand, found %s",
                  (long long)to, kl_rule_size(r, s->dims[i]), i, kl_rule_size(r, r->want->dims[to]));
  }
  return kl_rule_like(r, s->dtype, r->want);
}

static const kl_shape *infer_reshape(const rule *r) {
  const kl_shape *s = operand(r, 0);
  if (!wants_array(r)) return NULL;
  if (s->count != r->want->count)
    return fail(r, "expected a result of %lld elements as %s, found %s", (long long)s->count, text(r, s),
                text(r, r->want));
  return kl_rule_like(r, s->dtype, r->want);
}

static const kl_shape *infer_bitcast(const rule *r) {
  const kl_shape *s = operand(r, 0);
  if (!wants_array(r)) return NULL;
  if ((s->dtype == KILN_PRED) != (r->want->dtype == KILN_PRED))
    return fail(r, "expected types both pred or neither, found %s to %s", text(r, s), text(r, r->want));
  // With padding or without: a text may leave out one of the layouts.
  int64_t have = kl_shape_dense_bytes(s), want = kl_shape_dense_bytes(r->want);
  if (have != want && kl_shape_bytes(s) != kl_shape_bytes(r->want))
    return fail(r, "expected a result of %lld bytes as %s, found %s with %lld", (long long)have, text(r, s),
                text(r, r->want), (long long)want);
  return kl_rule_like(r, r->want->dtype, r->want);
}

// Nothing moves: the layout's dimensions are renamed as those of the array are. A text means the default layout where
// it writes none; who builds a graph and says nothing of layouts wants the default one in the result, too.
static const kl_shape *infer_transpose(rule *r) {
  const kl_shape *s = operand(r, 0);
  if (!distinct_dims(r, s->rank, s->rank)) return NULL;
  int64_t to[KILN_MAX_RANK], order[KILN_MAX_RANK];
  bool moves = s->layout.present, is_text = r->m->source != NULL;
  for (uint32_t i = 0; i < s->rank; i++) {
    kl_rule_take_dim(r, i, s, (uint32_t)r->in->dims[i]);
    to[r->in->dims[i]] = i;
    moves |= is_text && r->in->dims[i] != i;
  }
  if (!moves || written(r, s->dtype, s->rank, r->dims)) return kl_rule_result(r, s->dtype, s->rank);
  for (uint32_t i = 0; i < s->rank; i++) order[i] = to[kl_shape_minor_to_major(s, i)];
  kl_shape turned = *s;
  turned.dims = r->dims;
  turned.dynamic = s->dynamic ? r->dynamic : NULL;
  turned.layout.present = true;
  turned.layout.rank = s->rank;
  turned.layout.minor_to_major = order;
  return intern(r, &turned);
}

static const kl_shape *infer_slice(rule *r) {
  const kl_shape *s = operand(r, 0);
  if (r->in->ndims != s->rank) return fail(r, "expected %u slices, found %u", s->rank, r->in->ndims);
  for (uint32_t i = 0; i < s->rank; i++) {
    kl_slice_dim d = r->in->slice[i];
    bool inside = d.limit <= s->dims[i] || s->dims[i] == KL_DIM_UNKNOWN;
    if (d.start < 0 || d.start > d.limit || !inside || d.stride < 1)
      return fail(r, "expected 0 <= start <= limit <= %s and stride >= 1 in dimension %u, found [%lld:%lld:%lld]",
                  kl_rule_size(r, s->dims[i]), i, (long long)d.start, (long long)d.limit, (long long)d.stride);
    int64_t span = d.limit - d.start;
    r->dims[i] = span / d.stride + (span % d.stride != 0);
    r->dynamic[i] = r->dims[i] != 1 && kl_rule_dynamic(s, i); // one element is there or is not
  }
  return kl_rule_result(r, s->dtype, s->rank);
}

static const kl_shape *infer_reverse(const rule *r) {
  const kl_shape *s = operand(r, 0);
  return distinct_dims(r, r->in->ndims, s->rank) ? kl_rule_like(r, s->dtype, s) : NULL;
}

static const kl_shape *infer_concatenate(rule *r) {
  if (r->in->noperands == 0) return fail(r, "expected at least one operand, found none");
  const kl_shape *s = operand(r, 0);
  if (r->in->ndims != 1) return fail(r, "expected one entry in dimensions={...}, found %u", r->in->ndims);
  int64_t dim = r->in->dims[0];
  if (s->rank == 0) return fail(r, "expected operands of at least one dimension, found %s", text(r, s));
  if (!kl_rule_in_range(r, dim, s->rank)) return NULL;
  kl_rule_take_dims(r, s);
  for (uint32_t i = 1; i < r->in->noperands; i++) {
    const kl_shape *o = operand(r, i);
    if (!kl_rule_same_dtype(r, i, 0)) return NULL;
    bool ok = o->rank == s->rank;
    for (uint32_t d = 0; ok && d < s->rank; d++) ok = d == dim || o->dims[d] == s->dims[d];
    if (!ok)
      return fail(r, "expected operand %u ('%.*s') to agree with operand 0 (%s) but in dimension %lld, found %s", i,
                  KL_FMT(operand_name(r, i)), text(r, s), (long long)dim, text(r, o));
    for (uint32_t d = 0; o->dynamic && d < s->rank; d++) r->dynamic[d] |= o->dynamic[d];
    if (r->dims[dim] == KL_DIM_UNKNOWN || o->dims[dim] == KL_DIM_UNKNOWN)
      r->dims[dim] = KL_DIM_UNKNOWN;
    else if (__builtin_add_overflow(r->dims[dim], o->dims[dim], &r->dims[dim]))
      return fail(r, "expected a result dimension below 2^63, found more");
  }
  return kl_rule_result(r, s->dtype, s->rank);
}

// low + n + (n - 1) * interior + high; false if that leaves int64.
static bool padded_size(int64_t n, kl_pad_dim p, int64_t *out) {
  int64_t gaps = n > 0 ? n - 1 : 0, inner;
  return !__builtin_mul_overflow(gaps, p.interior, &inner) && !__builtin_add_overflow(n, inner, &inner) &&
         !__builtin_add_overflow(inner, p.low, &inner) && !__builtin_add_overflow(inner, p.high, out);
}

static const kl_shape *infer_pad(rule *r) {
  const kl_shape *s = operand(r, 0);
  if (!kl_rule_same_dtype(r, 1, 0)) return NULL;
  if (operand(r, 1)->rank != 0)
    return fail(r, "expected a padding value without dimensions, found %s", text(r, operand(r, 1)));
  if (r->in->ndims != s->rank) return fail(r, "expected padding for %u dimensions, found %u", s->rank, r->in->ndims);
  for (uint32_t i = 0; i < s->rank; i++) {
    kl_pad_dim p = r->in->pad[i];
    if (p.interior < 0)
      return fail(r, "expected interior padding of at least 0 in dimension %u, found %lld", i, (long long)p.interior);
    kl_rule_take_dim(r, i, s, i);
    if (s->dims[i] == KL_DIM_UNKNOWN) continue;
    if (!padded_size(s->dims[i], p, &r->dims[i]))
      return fail(r, "expected a result dimension below 2^63, found more in dimension %u", i);
    if (r->dims[i] < 0)
      return fail(r, "expected a result of at least 0 elements in dimension %u, found %lld", i, (long long)r->dims[i]);
  }
  return kl_rule_result(r, s->dtype, s->rank);
}

// --- structure ----------------------------------------------------------------------------------------------------

const kl_shape *kl_rule_tuple(const rule *r, uint32_t n, const kl_shape *const *elems) {
  const kl_shape *s = kl_shape_tuple(r->m, n, elems);
  return s ? s
           : fail(r, "expected a tuple of at most 2^24 arrays, nested at most %d deep, found more", KL_MAX_TUPLE_DEPTH);
}

static const kl_shape *infer_tuple(const rule *r) {
  uint32_t n = r->in->noperands;
  const kl_shape **elems = kl_alloc(r->m->cx, n * sizeof(*elems));
  for (uint32_t i = 0; i < n; i++) elems[i] = operand(r, i);
  const kl_shape *s = kl_rule_tuple(r, n, elems);
  kl_free(r->m->cx, elems, n * sizeof(*elems));
  return s;
}

static const kl_shape *infer_gte(const rule *r) {
  const kl_shape *s = operand(r, 0);
  if (s->dtype != KILN_TUPLE) return fail(r, "expected a tuple, found %s", text(r, s));
  if (r->in->number >= 0 && r->in->number < s->nelems) return s->elems[r->in->number];
  return fail(r, "expected an index from 0 to %lld, found %lld", (long long)s->nelems - 1, (long long)r->in->number);
}

static const kl_shape *infer_call(const rule *r) {
  if (r->in->ncalled != 1) return fail(r, "expected a computation to call, found none");
  const kl_comp *callee = &r->m->comp[r->in->called[0]];
  kl_str name = kl_symbol_text(&r->m->names, callee->name);
  if (r->in->noperands != callee->nparams)
    return fail(r, "expected %u operands as '%.*s' has parameters, found %u", callee->nparams, KL_FMT(name),
                r->in->noperands);
  for (uint32_t i = 0; i < callee->nparams; i++) {
    const kl_shape *s = callee->instr[callee->params[i]].shape;
    if (!kl_shape_compatible(s, operand(r, i)))
      return fail(r, "expected %s for operand %u ('%.*s') as parameter %u of '%.*s', found %s", text(r, s), i,
                  KL_FMT(operand_name(r, i)), i, KL_FMT(name), text(r, operand(r, i)));
  }
  return kl_root(callee)->shape;
}

static const kl_shape *apply_rule(rule *r) {
  switch (kl_op_table[r->in->op].kind) {
  case KL_KIND_UNARY: return infer_unary(r);
  case KL_KIND_BINARY: return infer_binary(r);
  case KL_KIND_CONVERT: return infer_convert(r);
  case KL_KIND_SELECT: return infer_select(r);
  case KL_KIND_CLAMP: return infer_clamp(r);
  case KL_KIND_PARAMETER: return infer_parameter(r);
  case KL_KIND_CONSTANT: return infer_constant(r);
  case KL_KIND_IOTA: return infer_iota(r);
  case KL_KIND_BROADCAST: return infer_broadcast(r);
  case KL_KIND_RESHAPE: return infer_reshape(r);
  case KL_KIND_BITCAST: return infer_bitcast(r);
  case KL_KIND_TRANSPOSE: return infer_transpose(r);
  case KL_KIND_SLICE: return infer_slice(r);
  case KL_KIND_REVERSE: return infer_reverse(r);
  case KL_KIND_CONCATENATE: return infer_concatenate(r);
  case KL_KIND_PAD: return infer_pad(r);
  case KL_KIND_TUPLE: return infer_tuple(r);
  case KL_KIND_GTE: return infer_gte(r);
  case KL_KIND_CALL: return infer_call(r);
  case KL_KIND_STOCHASTIC: return kl_infer_stochastic(r);
  case KL_KIND_DOT: return kl_infer_dot(r);
  case KL_KIND_CONVOLUTION: return kl_infer_convolution(r);
  case KL_KIND_REDUCE: return kl_infer_reduce(r);
  case KL_KIND_REDUCE_WINDOW: return kl_infer_reduce_window(r);
  case KL_KIND_SELECT_AND_SCATTER: return kl_infer_select_and_scatter(r);
  case KL_KIND_SCAN: return kl_infer_scan(r);
  case KL_KIND_MAP: return kl_infer_map(r);
  case KL_KIND_DYNAMIC_SLICE: return kl_infer_dynamic_slice(r);
  case KL_KIND_DYNAMIC_UPDATE_SLICE: return kl_infer_dynamic_update_slice(r);
  case KL_KIND_GATHER: return kl_infer_gather(r);
  case KL_KIND_SCATTER: return kl_infer_scatter(r);
  case KL_KIND_SORT: return kl_infer_sort(r);
  case KL_KIND_TOPK: return kl_infer_topk(r);
  case KL_KIND_SHUFFLE: return kl_infer_shuffle(r);
  case KL_KIND_RNG: return kl_infer_rng(r);
  case KL_KIND_RNG_BITS: return kl_infer_rng_bits(r);
  case KL_KIND_RNG_STATE: return kl_infer_rng_state(r);
  case KL_KIND_BATCH_NORM: return kl_infer_batch_norm(r);
  case KL_KIND_CHOLESKY: return kl_infer_cholesky(r);
  case KL_KIND_TRIANGULAR_SOLVE: return kl_infer_triangular_solve(r);
  case KL_KIND_FFT: return kl_infer_fft(r);
  case KL_KIND_DIMENSION_SIZE: return kl_infer_dimension_size(r);
  case KL_KIND_DYNAMIC_RESHAPE: return kl_infer_dynamic_reshape(r);
  case KL_KIND_WHILE: return kl_infer_while(r);
  case KL_KIND_CONDITIONAL: return kl_infer_conditional(r);
  case KL_KIND_CUSTOM_CALL: return kl_infer_custom_call(r);
  case KL_KIND_FORWARD: return kl_infer_forward(r);
  case KL_KIND_TOKEN: return kl_infer_token(r);
  case KL_KIND_COPY_ASYNC: return kl_infer_copy_async(r);
  case KL_KIND_ASYNC: return kl_infer_async(r);
  case KL_KIND_COLLECTIVE: return kl_infer_collective(r);
  case KL_KIND_DEVICE_ID: return kl_infer_device_id(r);
  case KL_KIND_HOST: return kl_infer_host(r);
  case KL_KIND_UNKNOWN: break;
  }
  return r->want;
}

void kl_complete(kiln_module *m, const kl_comp *c, kl_instr *in) {
  bool is_map = in->op == KL_OP_MAP || (in->op == KL_OP_ASYNC_START && in->wrapped == KL_OP_MAP);
  if (!is_map || (in->given & 1) || in->noperands == 0 || in->ndims) return;
  uint32_t rank = kl_operand(c, in, 0)->shape->rank;
  if (rank == 0) return;
  int64_t *dims = KL_NEW_N(&m->arena, int64_t, rank);
  for (uint32_t i = 0; i < rank; i++) dims[i] = i;
  in->ndims = rank;
  in->dims = dims;
}

kiln_status kl_infer_shape(kiln_module *m, const kl_comp *c, const kl_instr *in, const kl_shape **out) {
  rule r = {.m = m, .c = c, .in = in, .want = in->shape};
  if (in->op == KL_OP_UNKNOWN) {
    *out = in->shape;
    return in->shape ? KILN_OK : kl_invalid(m->cx, in->span, "expected a type for an unknown opcode, found none");
  }
  const kl_shape *s = check_operands(&r) ? apply_rule(&r) : NULL;
  if (!s) return KILN_E_INVALID;
  if (in->shape && !kl_shape_compatible(in->shape, s)) {
    fail(&r, "expected the result type %s, found %s", text(&r, s), text(&r, in->shape));
    return KILN_E_INVALID;
  }
  *out = in->shape ? in->shape : s;
  return KILN_OK;
}
