// Writing HLO, op by op.
#include "ir/rewrite/graph.h"

// --- instructions --------------------------------------------------------------------------------------------------

static uint32_t name_of(kl_graph *g, const char *name) {
  return kl_intern(&g->m->names, kl_str_of(name));
}

static uint32_t emit(kl_graph *g, kl_instr in, uint32_t n, const uint32_t *operands) {
  if (!in.name) in.name = name_of(g, kl_op_name(in.op));
  if (!in.more) in.more = &kl_no_more;
  in.span = g->span;
  in.noperands = n;
  in.operands = kl_arena_dup(&g->m->arena, operands, n * sizeof *operands);
  return kl_emit(&g->e, &in);
}

const kl_shape *kl_graph_shape(const kl_graph *g, uint32_t value) {
  return g->e.instrs.p[value].shape;
}

static const int64_t *keep(kl_graph *g, const int64_t *v, uint32_t n) {
  return kl_arena_dup(&g->m->arena, v, n * sizeof *v);
}

const kl_shape *kl_graph_array(kl_graph *g, kl_dtype t, uint32_t rank, const int64_t *dims) {
  const kl_shape *s = kl_shape_array(g->m, t, rank, dims);
  if (s) return s;
  kl_shape own = {.dtype = t, .rank = rank, .dims = dims, .count = INT64_MAX, .layout.tail_padding = 1};
  for (kl_graph_large *l = g->large; l; l = l->next)
    if (kl_shape_compatible(&l->shape, &own)) return &l->shape;
  own.dims = keep(g, dims, rank);
  kl_graph_large *l = KL_NEW(&g->m->arena, kl_graph_large);
  *l = (kl_graph_large){own, g->span, g->large};
  g->large = l;
  return &l->shape;
}

kiln_status kl_graph_finish(kl_graph *g, kiln_module **out) {
  if (!g->large) return kl_finish_fork(g->cx, g->m, out);
  const kl_graph_large *l = g->large;
  while (l->next) l = l->next;
  kl_arena scratch;
  kl_arena_init(&scratch, g->cx);
  kiln_status st = kl_unsupported(g->cx, l->span,
                                  "this is made of an array %s here: expected one of less than 2^60 elements and 2^63 "
                                  "bytes",
                                  kl_shape_text(&scratch, &l->shape));
  kl_arena_free(&scratch);
  kiln_module_destroy(&g->m);
  return st;
}

static const kl_shape *like(kl_graph *g, uint32_t value, kl_dtype t) {
  const kl_shape *s = kl_graph_shape(g, value);
  return kl_graph_array(g, t, s->rank, s->dims);
}

// --- computations --------------------------------------------------------------------------------------------------

void kl_graph_begin(kl_graph *g) {
  kl_emit_begin(&g->e);
}

static bool is_taken(const kiln_module *m, uint32_t name) {
  for (uint32_t i = 0; i < m->ncomp; i++)
    if (m->comp[i].name == name) return true;
  return false;
}

uint32_t kl_graph_end(kl_graph *g, const char *name, uint32_t root) {
  kl_comp *c = &g->m->comp[g->m->ncomp];
  uint32_t symbol = name_of(g, name);
  for (uint32_t i = 1; is_taken(g->m, symbol); i++) symbol = name_of(g, kl_strf(&g->scratch, "%s.%u", name, i));
  *c = (kl_comp){.name = symbol, .span = g->span};
  kl_emit_end(&g->e, c, root);
  return g->m->ncomp++;
}

uint32_t kl_graph_parameter(kl_graph *g, uint32_t number, const kl_shape *s, const char *name) {
  return emit(g, (kl_instr){.op = KL_OP_PARAMETER, .name = name_of(g, name), .shape = s, .number = number}, 0, NULL);
}

uint32_t kl_graph_tuple(kl_graph *g, uint32_t n, const uint32_t *values) {
  const kl_shape **shapes = KL_NEW_N(&g->scratch, const kl_shape *, n + 1);
  for (uint32_t i = 0; i < n; i++) shapes[i] = kl_graph_shape(g, values[i]);
  return emit(g, (kl_instr){.op = KL_OP_TUPLE, .shape = kl_shape_tuple(g->m, n, shapes)}, n, values);
}

uint32_t kl_graph_element(kl_graph *g, uint32_t value, uint32_t i) {
  return kl_emit_element(&g->e, value, i, name_of(g, "element"));
}

uint32_t kl_graph_fusion(kl_graph *g, uint32_t comp, uint32_t n, const uint32_t *operands, const char *name) {
  kl_instr in = {.op = KL_OP_FUSION,
                 .name = name_of(g, name),
                 .shape = kl_root(&g->m->comp[comp])->shape,
                 .ncalled = 1,
                 .called = kl_arena_dup(&g->m->arena, &comp, sizeof comp),
                 .given = 3};
  return emit(g, in, n, operands);
}

uint32_t kl_graph_call(kl_graph *g, uint32_t comp, uint32_t n, const uint32_t *operands) {
  kl_instr in = {.op = KL_OP_CALL, .shape = kl_root(&g->m->comp[comp])->shape, .ncalled = 1, .given = 1};
  in.called = kl_arena_dup(&g->m->arena, &comp, sizeof comp);
  return emit(g, in, n, operands);
}

// Where each computation is put: those that come first, then each of the first n, with those made behind it.
static const uint32_t *places(kl_graph *g, uint32_t n, const uint32_t *behind) {
  uint32_t made = g->m->ncomp - n, *next = KL_NEW_N(&g->scratch, uint32_t, n + 1u);
  uint32_t *place = KL_NEW_N(&g->scratch, uint32_t, n + made);
  for (uint32_t k = 0; k < made; k++) next[behind ? behind[k] + 1 : 0]++;
  for (uint32_t i = 0, at = 0; i <= n; i++) {
    uint32_t count = next[i];
    next[i] = at;
    at += count;
    if (i < n) place[i] = at++;
  }
  for (uint32_t k = 0; k < made; k++) place[n + k] = next[behind ? behind[k] + 1 : 0]++;
  return place;
}

void kl_graph_put_made(kl_graph *g, uint32_t n, const uint32_t *behind) {
  kiln_module *m = g->m;
  if (m->ncomp == n) return;
  const uint32_t *place = places(g, n, behind);
  kl_comp *all = KL_NEW_N(&m->arena, kl_comp, m->ncomp);
  for (uint32_t i = 0; i < m->ncomp; i++) all[place[i]] = m->comp[i];
  m->comp = all;
  m->entry = place[m->entry];
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < all[i].ninstr; k++) {
      kl_instr *in = &all[i].instr[k];
      uint32_t *called = KL_NEW_N(&m->arena, uint32_t, in->ncalled + 1);
      for (uint32_t c = 0; c < in->ncalled; c++) called[c] = place[in->called[c]];
      in->called = called;
    }
  for (kl_graph_loop_of *l = g->loops; l; l = l->next) l->condition = place[l->condition], l->body = place[l->body];
  for (kl_graph_order_of *o = g->orders; o; o = o->next) o->comp = place[o->comp];
  for (int k = 0; k < KL_COMBINERS; k++)
    for (int t = 0; t < KILN_DTYPE_COUNT; t++)
      if (g->combiners[k][t]) g->combiners[k][t] = place[g->combiners[k][t] - 1] + 1;
}

const kl_graph_loop_of *kl_graph_loop(const kl_graph *g, const kl_shape *state) {
  const kl_graph_loop_of *l = g->loops;
  while (l && l->state != state) l = l->next;
  return l;
}

void kl_graph_add_loop(kl_graph *g, const kl_shape *state, uint32_t condition, uint32_t body) {
  kl_graph_loop_of *l = KL_NEW(&g->scratch, kl_graph_loop_of);
  *l = (kl_graph_loop_of){state, condition, body, g->loops};
  g->loops = l;
}

uint32_t kl_graph_while(kl_graph *g, uint32_t state) {
  const kl_graph_loop_of *l = kl_graph_loop(g, kl_graph_shape(g, state));
  if (!l) return state;
  kl_instr in = {.op = KL_OP_WHILE, .shape = l->state, .ncalled = 2, .given = 3};
  in.called = kl_arena_dup(&g->m->arena, (uint32_t[]){l->condition, l->body}, 2 * sizeof *in.called);
  return emit(g, in, 1, &state);
}

static const kl_graph_order_of *comparator_of(const kl_graph *g, kl_dtype key, kl_dtype beside, bool descending) {
  const kl_graph_order_of *o = g->orders;
  while (o && !(o->key == key && o->beside == beside && o->descending == descending)) o = o->next;
  return o;
}

void kl_graph_comparator(kl_graph *g, kl_dtype key, kl_dtype beside, bool descending) {
  static const char *const names[] = {"a", "b", "x", "y"};
  if (comparator_of(g, key, beside, descending)) return;
  kl_graph_begin(g);
  uint32_t p[4];
  for (uint32_t i = 0; i < (beside == KILN_DTYPE_NONE ? 2 : 4); i++)
    p[i] = kl_graph_parameter(g, i, kl_graph_array(g, i < 2 ? key : beside, 0, NULL), names[i]);
  kl_instr in = {.op = KL_OP_COMPARE, .shape = kl_graph_array(g, KILN_PRED, 0, NULL), .given = 1};
  in.direction = descending ? KL_GT : KL_LT;
  if (kl_is_float(key)) in.compare_type = KL_CMP_TOTALORDER, in.given = 3;
  uint32_t root = emit(g, in, 2, p);
  kl_graph_order_of *o = KL_NEW(&g->scratch, kl_graph_order_of);
  *o = (kl_graph_order_of){key, beside, descending, kl_graph_end(g, descending ? "descending" : "ascending", root),
                           g->orders};
  g->orders = o;
}

static uint32_t sum_of_pairs(kl_graph *g, const uint32_t *p) {
  uint32_t sum = kl_graph_binary(g, kl_graph_shape(g, p[0])->dtype == KILN_PRED ? KL_OP_OR : KL_OP_ADD, p[0], p[2]);
  return kl_graph_tuple(g, 2,
                        (uint32_t[]){kl_graph_select(g, p[1], sum, p[2]), kl_graph_binary(g, KL_OP_OR, p[1], p[3])});
}

void kl_graph_combiner(kl_graph *g, kl_combiner what, kl_dtype t) {
  static const char *const names[] = {"later", "either", "sum", "largest", "sum_of_pairs"};
  static const kl_op ops[] = {
      [KL_COMBINE_OR] = KL_OP_OR, [KL_COMBINE_ADD] = KL_OP_ADD, [KL_COMBINE_MAX] = KL_OP_MAXIMUM};
  uint32_t p[4], n = what == KL_COMBINE_SUM ? 4 : 2, root;
  if (g->combiners[what][t]) return;
  kl_graph_begin(g);
  for (uint32_t i = 0; i < n; i++) {
    kl_dtype own = n == 4 && i % 2 ? KILN_PRED : t;
    p[i] = kl_graph_parameter(g, i, kl_graph_array(g, own, 0, NULL), i % (n / 2 + 0u) == i ? "a" : "b");
  }
  if (what == KL_COMBINE_SUM)
    root = sum_of_pairs(g, p);
  else
    root = what == KL_COMBINE_LATER ? p[1] : kl_graph_binary(g, ops[what], p[0], p[1]);
  g->combiners[what][t] = kl_graph_end(g, kl_strf(&g->scratch, "%s_%s", names[what], kl_info(t)->name), root) + 1;
}

// --- constants -----------------------------------------------------------------------------------------------------

uint32_t kl_graph_bits(kl_graph *g, kl_dtype t, const uint64_t bits[2], uint32_t rank, const int64_t *dims) {
  kl_array *value = KL_NEW(&g->m->arena, kl_array);
  *value = (kl_array){kl_graph_array(g, t, 0, NULL), kl_arena_alloc(&g->m->arena, kl_info(t)->bytes)};
  for (int part = 0; part < (kl_is_complex(t) ? 2 : 1); part++) kl_element_set(t, value->data, 0, part, bits[part]);
  uint32_t one = emit(g, (kl_instr){.op = KL_OP_CONSTANT, .shape = value->shape, .literal = value}, 0, NULL);
  return rank ? kl_graph_broadcast(g, one, rank, dims, NULL) : one;
}

uint32_t kl_graph_number(kl_graph *g, kl_dtype t, int64_t v, uint32_t rank, const int64_t *dims) {
  return kl_graph_bits(g, t, (uint64_t[2]){(uint64_t)v & kl_int_mask(t), 0}, rank, dims);
}

uint32_t kl_graph_number_like(kl_graph *g, uint32_t value, int64_t v) {
  const kl_shape *s = kl_graph_shape(g, value);
  return kl_graph_number(g, s->dtype, v, s->rank, s->dims);
}

uint32_t kl_graph_iota(kl_graph *g, kl_dtype t, uint32_t rank, const int64_t *dims, uint32_t dim) {
  kl_instr in = {.op = KL_OP_IOTA, .shape = kl_graph_array(g, t, rank, dims), .number = dim, .given = 1};
  return emit(g, in, 0, NULL);
}

// --- element by element --------------------------------------------------------------------------------------------

uint32_t kl_graph_unary(kl_graph *g, kl_op op, uint32_t a) {
  const kl_shape *s = kl_graph_shape(g, a);
  bool part = kl_op_table[op].result == KL_RESULT_PART && kl_is_complex(s->dtype);
  kl_dtype t = part ? kl_info(s->dtype)->part : s->dtype;
  return emit(g, (kl_instr){.op = op, .shape = like(g, a, t)}, 1, &a);
}

uint32_t kl_graph_complex(kl_graph *g, uint32_t re, uint32_t im) {
  kl_dtype t = kl_graph_shape(g, re)->dtype == KILN_F64 ? KILN_C128 : KILN_C64;
  return emit(g, (kl_instr){.op = KL_OP_COMPLEX, .shape = like(g, re, t)}, 2, (uint32_t[]){re, im});
}

uint32_t kl_graph_binary(kl_graph *g, kl_op op, uint32_t a, uint32_t b) {
  return emit(g, (kl_instr){.op = op, .shape = kl_graph_shape(g, a)}, 2, (uint32_t[]){a, b});
}

uint32_t kl_graph_with(kl_graph *g, kl_op op, uint32_t a, int64_t b) {
  bool nothing = op == KL_OP_MULTIPLY || op == KL_OP_DIVIDE ? b == 1 : op == KL_OP_ADD && b == 0;
  return nothing ? a : kl_graph_binary(g, op, a, kl_graph_number_like(g, a, b));
}

uint32_t kl_graph_compare(kl_graph *g, kl_direction d, uint32_t a, uint32_t b) {
  kl_instr in = {.op = KL_OP_COMPARE, .shape = like(g, a, KILN_PRED), .direction = d, .given = 1};
  return emit(g, in, 2, (uint32_t[]){a, b});
}

uint32_t kl_graph_compare_with(kl_graph *g, kl_direction d, uint32_t a, int64_t b) {
  return kl_graph_compare(g, d, a, kl_graph_number_like(g, a, b));
}

uint32_t kl_graph_select(kl_graph *g, uint32_t p, uint32_t a, uint32_t b) {
  return emit(g, (kl_instr){.op = KL_OP_SELECT, .shape = kl_graph_shape(g, a)}, 3, (uint32_t[]){p, a, b});
}

uint32_t kl_graph_like(kl_graph *g, const kl_instr *in, const uint32_t *operands, const int64_t *size) {
  kl_instr own = *in;
  own.shape = kl_graph_array(g, in->shape->dtype, 1, size);
  own.ncontrol = 0;
  return emit(g, own, in->noperands, operands);
}

uint32_t kl_graph_convert(kl_graph *g, uint32_t a, kl_dtype t) {
  if (kl_graph_shape(g, a)->dtype == t) return a;
  return emit(g, (kl_instr){.op = KL_OP_CONVERT, .shape = like(g, a, t)}, 1, &a);
}

uint32_t kl_graph_bitcast(kl_graph *g, uint32_t a, kl_dtype t) {
  if (kl_graph_shape(g, a)->dtype == t) return a;
  return emit(g, (kl_instr){.op = KL_OP_BITCAST_CONVERT, .shape = like(g, a, t)}, 1, &a);
}

uint32_t kl_graph_to_index(kl_graph *g, uint32_t a) {
  unsigned bits = kl_info(kl_graph_shape(g, a)->dtype)->bits, room = kl_info(g->index)->bits - 1;
  if (bits > room) a = kl_graph_with(g, KL_OP_MINIMUM, a, (int64_t)((1ull << room) - 1));
  return kl_graph_convert(g, a, g->index);
}

static uint32_t part_differs(kl_graph *g, uint32_t a, uint64_t bits) {
  kl_dtype t = kl_graph_shape(g, a)->dtype;
  static const kl_dtype as[] = {[4] = KILN_U4, [8] = KILN_U8, [16] = KILN_U16, [32] = KILN_U32, [64] = KILN_U64};
  if (kl_is_float(t) && kl_float_is_nan(t, bits)) return kl_graph_compare(g, KL_EQ, a, a);
  if (kl_is_float(t)) a = kl_graph_bitcast(g, a, as[kl_info(t)->bits]);
  const kl_shape *s = kl_graph_shape(g, a);
  return kl_graph_compare(g, KL_NE, a, kl_graph_bits(g, s->dtype, (uint64_t[2]){bits, 0}, s->rank, s->dims));
}

uint32_t kl_graph_differs(kl_graph *g, uint32_t a, const uint64_t bits[2]) {
  if (!kl_is_complex(kl_graph_shape(g, a)->dtype)) return part_differs(g, a, bits[0]);
  uint32_t real = part_differs(g, kl_graph_unary(g, KL_OP_REAL, a), bits[0]);
  return kl_graph_binary(g, KL_OP_OR, real, part_differs(g, kl_graph_unary(g, KL_OP_IMAG, a), bits[1]));
}

// --- moves ---------------------------------------------------------------------------------------------------------

uint32_t kl_graph_reshape(kl_graph *g, uint32_t a, uint32_t rank, const int64_t *dims) {
  const kl_shape *s = kl_graph_shape(g, a), *to = kl_graph_array(g, s->dtype, rank, dims);
  return s == to ? a : emit(g, (kl_instr){.op = KL_OP_RESHAPE, .shape = to}, 1, &a);
}

uint32_t kl_graph_flat(kl_graph *g, uint32_t a) {
  return kl_graph_reshape(g, a, 1, (int64_t[]){kl_graph_shape(g, a)->count});
}

uint32_t kl_graph_transpose(kl_graph *g, uint32_t a, const int64_t *dims) {
  const kl_shape *s = kl_graph_shape(g, a);
  int64_t to[KILN_MAX_RANK] = {0};
  bool same = true;
  for (uint32_t d = 0; d < s->rank; d++) {
    to[d] = s->dims[dims[d]];
    same &= dims[d] == d;
  }
  kl_instr in = {.op = KL_OP_TRANSPOSE,
                 .shape = kl_graph_array(g, s->dtype, s->rank, to),
                 .ndims = s->rank,
                 .dims = keep(g, dims, s->rank),
                 .given = 1};
  return same ? a : emit(g, in, 1, &a);
}

uint32_t kl_graph_reverse(kl_graph *g, uint32_t a, uint32_t n, const int64_t *dims) {
  kl_instr in = {.op = KL_OP_REVERSE, .shape = kl_graph_shape(g, a), .ndims = n, .dims = keep(g, dims, n), .given = 1};
  return n ? emit(g, in, 1, &a) : a;
}

uint32_t kl_graph_broadcast(kl_graph *g, uint32_t a, uint32_t rank, const int64_t *sizes, const int64_t *dims) {
  const kl_shape *s = kl_graph_shape(g, a), *to = kl_graph_array(g, s->dtype, rank, sizes);
  bool same = s == to;
  for (uint32_t d = 0; same && d < rank; d++) same = dims[d] == d;
  kl_instr in = {.op = KL_OP_BROADCAST, .shape = to, .ndims = s->rank, .dims = keep(g, dims, s->rank), .given = 1};
  return same ? a : emit(g, in, 1, &a);
}

uint32_t kl_graph_slice(kl_graph *g, uint32_t a, uint32_t dim, int64_t start, int64_t limit, int64_t stride) {
  const kl_shape *s = kl_graph_shape(g, a);
  int64_t to[KILN_MAX_RANK] = {0};
  kl_slice_dim *slice = KL_NEW_N(&g->m->arena, kl_slice_dim, s->rank);
  for (uint32_t d = 0; d < s->rank; d++) {
    slice[d] = d == dim ? (kl_slice_dim){start, limit, stride} : (kl_slice_dim){0, s->dims[d], 1};
    to[d] = (slice[d].limit - slice[d].start + slice[d].stride - 1) / slice[d].stride;
  }
  kl_instr in = {.op = KL_OP_SLICE,
                 .shape = kl_graph_array(g, s->dtype, s->rank, to),
                 .ndims = s->rank,
                 .slice = slice,
                 .given = 1};
  return in.shape == s ? a : emit(g, in, 1, &a);
}

uint32_t kl_graph_dynamic_slice(kl_graph *g, uint32_t a, uint32_t dim, uint32_t start, int64_t size) {
  const kl_shape *s = kl_graph_shape(g, a);
  int64_t to[KILN_MAX_RANK] = {0};
  uint32_t operands[KILN_MAX_RANK + 1] = {a}, zero = kl_graph_number(g, KILN_S32, 0, 0, NULL);
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  for (uint32_t d = 0; d < s->rank; d++) {
    to[d] = d == dim ? size : s->dims[d];
    operands[d + 1] = d == dim ? start : zero;
  }
  *more = kl_no_more;
  more->sizes = (kl_ints){s->rank, keep(g, to, s->rank)};
  kl_instr in = {
      .op = KL_OP_DYNAMIC_SLICE, .shape = kl_graph_array(g, s->dtype, s->rank, to), .more = more, .given = 1};
  return emit(g, in, s->rank + 1, operands);
}

uint32_t kl_graph_pad(kl_graph *g, uint32_t a, uint32_t dim, int64_t low, int64_t high) {
  const kl_shape *s = kl_graph_shape(g, a);
  int64_t to[KILN_MAX_RANK] = {0};
  kl_pad_dim *pad = KL_NEW_N(&g->m->arena, kl_pad_dim, s->rank);
  for (uint32_t d = 0; d < s->rank; d++) {
    if (d == dim) pad[d] = (kl_pad_dim){.low = low, .high = high};
    to[d] = s->dims[d] + pad[d].low + pad[d].high;
  }
  kl_instr in = {
      .op = KL_OP_PAD, .shape = kl_graph_array(g, s->dtype, s->rank, to), .ndims = s->rank, .pad = pad, .given = 1};
  uint32_t zero = kl_graph_number(g, s->dtype, 0, 0, NULL);
  return low == 0 && high == 0 ? a : emit(g, in, 2, (uint32_t[]){a, zero});
}

uint32_t kl_graph_concatenate(kl_graph *g, uint32_t n, const uint32_t *values, uint32_t dim) {
  const kl_shape *s = kl_graph_shape(g, values[0]);
  int64_t to[KILN_MAX_RANK] = {0}, at = dim;
  if (n == 1) return values[0];
  memcpy(to, s->dims, s->rank * sizeof *to);
  for (uint32_t i = 1; i < n; i++) to[dim] += kl_graph_shape(g, values[i])->dims[dim];
  kl_instr in = {.op = KL_OP_CONCATENATE,
                 .shape = kl_graph_array(g, s->dtype, s->rank, to),
                 .ndims = 1,
                 .dims = keep(g, &at, 1),
                 .given = 1};
  return emit(g, in, n, values);
}

// --- places that data says -----------------------------------------------------------------------------------------

static kl_ints numbers(kl_graph *g, uint32_t n) {
  int64_t *v = KL_NEW_N(&g->m->arena, int64_t, n + 1);
  for (uint32_t i = 0; i < n; i++) v[i] = i;
  return (kl_ints){n, v};
}

uint32_t kl_graph_gather(kl_graph *g, uint32_t a, uint32_t index) {
  const kl_shape *s = kl_graph_shape(g, a), *to = like(g, index, s->dtype);
  static const int64_t one = 1;
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  if (!s->count) return kl_graph_number(g, s->dtype, 0, to->rank, to->dims);
  if (s->count == 1) return kl_graph_broadcast(g, kl_graph_reshape(g, a, 0, NULL), to->rank, to->dims, NULL);
  *more = kl_no_more;
  more->collapsed_dims = more->start_index_map = numbers(g, 1);
  more->index_vector_dim = to->rank;
  more->sizes = (kl_ints){1, keep(g, &one, 1)};
  kl_instr in = {.op = KL_OP_GATHER, .shape = to, .more = more, .given = 1 | 2 | 4 | 32 | 64};
  return emit(g, in, 2, (uint32_t[]){a, index});
}

// `dim` of a is replaced by the dimensions of the index that follow its first.
static uint32_t take(kl_graph *g, uint32_t a, uint32_t dim, uint32_t index) {
  const kl_shape *s = kl_graph_shape(g, a), *at = kl_graph_shape(g, index);
  int64_t to[KILN_MAX_RANK], sizes[KILN_MAX_RANK], offsets[KILN_MAX_RANK], dims[] = {0, dim};
  uint32_t rank = 0, rest = 0;
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  for (uint32_t d = 0; d < s->rank; d++) {
    bool own = d == 0 || d == dim;
    sizes[d] = own && s->dims[d] ? 1 : s->dims[d];
    if (d == dim)
      for (uint32_t k = 1; k < at->rank; k++) to[rank++] = at->dims[k];
    if (d == 0) to[rank++] = at->dims[0];
    if (!own) offsets[rest++] = rank, to[rank++] = s->dims[d];
  }
  *more = kl_no_more;
  const int64_t *kept = keep(g, dims, 2);
  kl_ints both = {2, kept}, first = {1, kept}, second = {1, kept + 1};
  more->offset_dims = (kl_ints){rest, keep(g, offsets, rest)};
  more->start_index_map = second;
  more->collapsed_dims = s->dims[0] == 1 ? both : second;
  if (s->dims[0] != 1) more->operand_batching_dims = more->indices_batching_dims = first;
  more->index_vector_dim = at->rank;
  more->sizes = (kl_ints){s->rank, keep(g, sizes, s->rank)};
  kl_instr in = {.op = KL_OP_GATHER,
                 .shape = kl_graph_array(g, s->dtype, rank, to),
                 .more = more,
                 .given = 1 | 2 | 4 | (s->dims[0] != 1 ? 8 | 16 : 0) | 32 | 64};
  return emit(g, in, 2, (uint32_t[]){a, index});
}

uint32_t kl_graph_take(kl_graph *g, uint32_t a, uint32_t index) {
  return take(g, a, 1, index);
}

uint32_t kl_graph_take_columns(kl_graph *g, uint32_t a, uint32_t index) {
  return take(g, a, 2, index);
}

// `array` indices, the first dimensions of `s`, or of each of its elements where it is a tuple.
static kl_instr scatter_of(kl_graph *g, const kl_shape *s, uint32_t array, kl_combiner by, kl_dtype t, bool unique) {
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  uint32_t comp = g->combiners[by][t] - 1, rest = (s->dtype == KILN_TUPLE ? s->elems[0] : s)->rank - array;
  *more = kl_no_more;
  kl_ints window = numbers(g, rest + 1);
  more->offset_dims = (kl_ints){rest, window.p + 1};
  more->collapsed_dims = more->start_index_map = numbers(g, array);
  more->index_vector_dim = 1;
  more->unique_indices = unique;
  return (kl_instr){.op = KL_OP_SCATTER,
                    .shape = s,
                    .more = more,
                    .ncalled = 1,
                    .called = kl_arena_dup(&g->m->arena, &comp, sizeof comp),
                    .given = 1 | 2 | 4 | 32 | 256 | (unique ? 128 : 0)};
}

// [n, rank]
static uint32_t vectors(kl_graph *g, uint32_t rank, const uint32_t *indices) {
  uint32_t columns[KILN_MAX_RANK];
  int64_t n = kl_graph_shape(g, indices[0])->count;
  if (rank == 1) return indices[0];
  for (uint32_t d = 0; d < rank; d++) columns[d] = kl_graph_reshape(g, indices[d], 2, (int64_t[]){n, 1});
  return kl_graph_concatenate(g, rank, columns, 1);
}

uint32_t kl_graph_scatter(kl_graph *g, uint32_t a, const uint32_t *indices, uint32_t updates, kl_combiner by,
                          bool unique) {
  const kl_shape *s = kl_graph_shape(g, a);
  int64_t n = kl_graph_shape(g, updates)->count;
  if (!n || !s->count) return a;
  uint32_t at = vectors(g, s->rank, indices);
  if (by != KL_COMBINE_SUM)
    return emit(g, scatter_of(g, s, s->rank, by, s->dtype, unique), 3, (uint32_t[]){a, at, updates});
  uint32_t none = kl_graph_number(g, KILN_PRED, 0, s->rank, s->dims), there = kl_graph_number(g, KILN_PRED, 1, 1, &n);
  const kl_shape *both = kl_shape_tuple(g->m, 2, (const kl_shape *const[]){s, kl_graph_shape(g, none)});
  uint32_t pair =
      emit(g, scatter_of(g, both, s->rank, by, s->dtype, unique), 5, (uint32_t[]){a, none, at, updates, there});
  return kl_graph_element(g, pair, 0);
}

uint32_t kl_graph_scatter_rows(kl_graph *g, uint32_t a, uint32_t n, const uint32_t *indices, uint32_t updates,
                               kl_combiner by) {
  const kl_shape *s = kl_graph_shape(g, a);
  return emit(g, scatter_of(g, s, n, by, s->dtype, false), 3, (uint32_t[]){a, vectors(g, n, indices), updates});
}

uint32_t kl_graph_dot(kl_graph *g, uint32_t a, uint32_t b, const kl_more *more, uint64_t given, kl_dtype t,
                      uint32_t rank, const int64_t *dims) {
  kl_instr in = {.op = KL_OP_DOT, .shape = kl_graph_array(g, t, rank, dims), .more = more, .given = given | 15};
  return emit(g, in, 2, (uint32_t[]){a, b});
}

uint32_t kl_graph_convolution(kl_graph *g, uint32_t a, uint32_t b, const kl_more *more, kl_dtype t, uint32_t rank,
                              const int64_t *dims) {
  kl_instr in = {.op = KL_OP_CONVOLUTION, .shape = kl_graph_array(g, t, rank, dims), .more = more, .given = 15};
  return emit(g, in, 2, (uint32_t[]){a, b});
}

uint32_t kl_graph_cholesky(kl_graph *g, uint32_t a, bool lower) {
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  *more = kl_no_more;
  more->lower = lower;
  return emit(
      g, (kl_instr){.op = KL_OP_CHOLESKY, .shape = like(g, a, kl_graph_shape(g, a)->dtype), .more = more, .given = 1},
      1, &a);
}

uint32_t kl_graph_triangular_solve(kl_graph *g, uint32_t a, uint32_t b, const kl_more *more) {
  kl_more *own = kl_arena_dup(&g->m->arena, more, sizeof *more);
  kl_instr in = {
      .op = KL_OP_TRIANGULAR_SOLVE, .shape = like(g, b, kl_graph_shape(g, b)->dtype), .more = own, .given = 15};
  return emit(g, in, 2, (uint32_t[]){a, b});
}

uint32_t kl_graph_steps(kl_graph *g, uint32_t step, uint32_t n, uint32_t carries, const uint32_t *values, int64_t dim,
                        bool reverse) {
  const kl_shape *root = kl_root(&g->m->comp[step])->shape, *whole = kl_graph_shape(g, values[0]);
  const kl_shape **parts = KL_NEW_N(&g->scratch, const kl_shape *, root->nelems + 1u);
  for (uint32_t k = 0; k < root->nelems; k++)
    parts[k] = k + carries < root->nelems ? kl_graph_array(g, root->elems[k]->dtype, whole->rank, whole->dims)
                                          : root->elems[k];
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  *more = kl_no_more;
  more->carries = carries;
  more->is_reverse = reverse;
  kl_instr in = {.op = KL_OP_SCAN,
                 .shape = kl_shape_tuple(g->m, root->nelems, parts),
                 .more = more,
                 .ndims = 1,
                 .dims = keep(g, &dim, 1),
                 .given = reverse ? 23 : 19,
                 .ncalled = 1};
  in.called = kl_arena_dup(&g->m->arena, &step, sizeof step);
  return emit(g, in, n + carries, values);
}

uint32_t kl_graph_sort(kl_graph *g, uint32_t n, const uint32_t *values, bool descending) {
  const kl_shape *s = kl_graph_shape(g, values[0]), *other = n > 1 ? kl_graph_shape(g, values[1]) : NULL;
  const kl_graph_order_of *o = comparator_of(g, s->dtype, other ? other->dtype : KILN_DTYPE_NONE, descending);
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  *more = kl_no_more;
  more->is_stable = true;
  int64_t last = s->rank - 1;
  kl_instr in = {.op = KL_OP_SORT, .shape = s, .more = more, .ndims = 1, .dims = keep(g, &last, 1), .given = 7};
  if (other) in.shape = kl_shape_tuple(g->m, 2, (const kl_shape *[]){s, other});
  in.ncalled = 1;
  in.called = kl_arena_dup(&g->m->arena, &o->comp, sizeof o->comp);
  return emit(g, in, n, values);
}

uint32_t kl_graph_topk(kl_graph *g, uint32_t a, int64_t k, bool largest) {
  const kl_shape *s = kl_graph_shape(g, a), *parts[2];
  int64_t to[KILN_MAX_RANK];
  memcpy(to, s->dims, s->rank * sizeof *to);
  to[s->rank - 1] = k;
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  *more = kl_no_more;
  more->k = k;
  more->largest = largest;
  parts[0] = kl_graph_array(g, s->dtype, s->rank, to);
  parts[1] = kl_graph_array(g, KILN_S32, s->rank, to);
  kl_instr in = {.op = KL_OP_TOPK, .shape = kl_shape_tuple(g->m, 2, parts), .more = more, .given = 3};
  return emit(g, in, 1, &a);
}

uint32_t kl_graph_reduce_from(kl_graph *g, uint32_t a, uint32_t n, const int64_t *dims, kl_combiner by,
                              uint32_t initial) {
  const kl_shape *s = kl_graph_shape(g, a);
  int64_t to[KILN_MAX_RANK] = {0}, folded = 1;
  bool gone[KILN_MAX_RANK] = {0};
  uint32_t rank = 0, comp = g->combiners[by][s->dtype] - 1;
  for (uint32_t i = 0; i < n; i++) {
    gone[dims[i]] = true;
    folded *= s->dims[dims[i]];
  }
  for (uint32_t d = 0; d < s->rank; d++)
    if (!gone[d]) to[rank++] = s->dims[d];
  if (folded == 1) return kl_graph_reshape(g, a, rank, to);
  kl_instr in = {.op = KL_OP_REDUCE,
                 .shape = kl_graph_array(g, s->dtype, rank, to),
                 .ndims = n,
                 .dims = keep(g, dims, n),
                 .ncalled = 1,
                 .called = kl_arena_dup(&g->m->arena, &comp, sizeof comp),
                 .given = 3};
  return emit(g, in, 2, (uint32_t[]){a, initial});
}

uint32_t kl_graph_reduce_over(kl_graph *g, uint32_t a, uint32_t n, const int64_t *dims, kl_combiner by) {
  return kl_graph_reduce_from(g, a, n, dims, by, kl_graph_number(g, kl_graph_shape(g, a)->dtype, 0, 0, NULL));
}

uint32_t kl_graph_reduce(kl_graph *g, uint32_t a, uint32_t dim, kl_combiner by) {
  int64_t at = dim;
  return kl_graph_reduce_over(g, a, 1, &at, by);
}

enum { SCAN_BLOCK = 16 };

static uint32_t join(kl_graph *g, uint32_t a, uint32_t b, kl_combiner by) {
  return kl_graph_binary(g, by == KL_COMBINE_MAX ? KL_OP_MAXIMUM : KL_OP_ADD, a, b);
}

// Along the last dimension, which is short: each step joins twice as many.
static uint32_t scan_short(kl_graph *g, uint32_t a, kl_combiner by) {
  uint32_t dim = kl_graph_shape(g, a)->rank - 1;
  for (int64_t step = 1; step < kl_graph_shape(g, a)->dims[dim]; step *= 2)
    a = join(g, a, kl_graph_pad(g, a, dim, step, -step), by);
  return a;
}

uint32_t kl_graph_scan(kl_graph *g, uint32_t a, kl_combiner by) {
  int64_t rows = kl_graph_shape(g, a)->dims[0], n = kl_graph_shape(g, a)->dims[1];
  int64_t blocks = n / SCAN_BLOCK + (n % SCAN_BLOCK != 0), all[] = {rows, blocks, SCAN_BLOCK};
  if (n <= SCAN_BLOCK) return scan_short(g, a, by);
  uint32_t in = kl_graph_reshape(g, kl_graph_pad(g, a, 1, 0, blocks * SCAN_BLOCK - n), 3, all);
  in = scan_short(g, in, by);
  uint32_t ends = kl_graph_slice(g, in, 2, SCAN_BLOCK - 1, SCAN_BLOCK, 1);
  ends = kl_graph_scan(g, kl_graph_reshape(g, ends, 2, all), by);
  uint32_t before = kl_graph_broadcast(g, kl_graph_pad(g, ends, 1, 1, -1), 3, all, (int64_t[]){0, 1});
  uint32_t out = kl_graph_reshape(g, join(g, in, before, by), 2, (int64_t[]){rows, blocks * SCAN_BLOCK});
  return kl_graph_slice(g, out, 1, 0, n, 1);
}
