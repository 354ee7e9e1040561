// Computations over a domain whose size is given at run time.
//
// The slowest dimension D of the results grows to the largest size allowed, in a copy of the computation. An array of
// the results' dims and layout is "counted": its elements 0 .. n-1 in memory are the same for every size of D that has
// at least n. If counted arrays are made element by element from counted ones, and from others only at indices without
// D, then so are their values: a kernel for the largest size, run on the first n elements, is right for every n.

#include "lower/choose/choose.h"

typedef struct recount {
  kl_ctx *cx;
  kl_arena *arena;
  const kl_comp *comp;
  const kl_shape *const *shapes; // of the arguments, as in the module
  const kl_shape *domain;        // of the results
  uint32_t slowest;              // its slowest dimension
  int64_t size;                  // the largest, of that dimension
} recount;

static bool same_layout(const kl_shape *a, const kl_shape *b) {
  for (uint32_t i = 0; i < a->rank; i++)
    if (kl_shape_minor_to_major(a, i) != kl_shape_minor_to_major(b, i)) return false;
  return true;
}

static bool is_counted(const recount *r, const kl_shape *s) {
  return s->rank && s->dtype != KILN_TUPLE && kl_shape_same_dims(s, r->domain) && same_layout(s, r->domain);
}

static kiln_status refuse(const recount *r, const kl_instr *in, const char *why) {
  return kl_unsupported(r->cx, in->span, "%s: %s, so its element count cannot be given at run time", kl_op_name(in->op),
                        why);
}

// Does it take nothing of a counted operand but the same element, and nothing of another along the slowest dimension?
static bool broadcasts_rows(const recount *r, const kl_instr *in) {
  bool counted = is_counted(r, kl_operand(r->comp, in, 0)->shape);
  for (uint32_t d = 0; d < in->ndims; d++)
    if (counted ? in->dims[d] != d : in->dims[d] == r->slowest) return false;
  return true;
}

// Counted leaves of a constant are the same everywhere.
static bool is_even(const recount *r, const kl_instr *in) {
  for (size_t i = 0; i < kl_shape_leaf_count(in->shape); i++)
    if (is_counted(r, kl_shape_leaf(in->shape, i)) && (!in->literal || !kl_array_is_splat(&in->literal[i])))
      return false;
  return true;
}

static bool is_structure(const kl_instr *in) {
  kl_op_kind kind = kl_op_table[in->op].kind;
  return kind == KL_KIND_PARAMETER || kind == KL_KIND_TUPLE || kind == KL_KIND_GTE;
}

static kiln_status check_made(const recount *r, const kl_instr *in) {
  if (in->op == KL_OP_IOTA) return KILN_OK;
  if (in->op == KL_OP_BROADCAST)
    return broadcasts_rows(r, in)
               ? KILN_OK
               : refuse(r, in, "it takes its size along the results' slowest dimension from its operand");
  bool elementwise = kl_op_is_elementwise(in->op) || in->op == KL_OP_BITCAST || in->op == KL_OP_STOCHASTIC_CONVERT;
  for (uint32_t k = 0; k < in->noperands && elementwise; k++) {
    const kl_shape *s = kl_operand(r->comp, in, k)->shape;
    bool bound = s->dtype != KILN_TUPLE && s->rank == 0 && (in->op == KL_OP_CLAMP || in->op == KL_OP_SELECT);
    elementwise = is_counted(r, s) || bound;
  }
  return elementwise ? KILN_OK : refuse(r, in, "it is not elementwise along the results' slowest dimension");
}

static kiln_status check(const recount *r, const kl_instr *in) {
  if (is_structure(in)) return KILN_OK;
  if (in->op == KL_OP_CONSTANT) return is_even(r, in) ? KILN_OK : refuse(r, in, "an array of different values");
  if (is_counted(r, in->shape)) return check_made(r, in);
  for (uint32_t k = 0; k < in->noperands; k++)
    if (is_counted(r, kl_operand(r->comp, in, k)->shape))
      return refuse(r, in, "it is not elementwise along the results' slowest dimension");
  return in->ncalled ? refuse(r, in, "it calls a computation") : KILN_OK;
}

static const kl_shape *grow(const recount *r, const kl_shape *s) {
  if (s->dtype == KILN_TUPLE) {
    kl_shape *t = kl_arena_dup(r->arena, s, sizeof *s);
    const kl_shape **elems = KL_NEW_N(r->arena, const kl_shape *, s->nelems + 1);
    for (uint32_t i = 0; i < s->nelems; i++) elems[i] = grow(r, s->elems[i]);
    t->elems = elems;
    return t;
  }
  if (!is_counted(r, s)) return s;
  kl_shape *t = kl_arena_dup(r->arena, s, sizeof *s);
  int64_t *dims = kl_arena_dup(r->arena, s->dims, s->rank * sizeof *dims);
  dims[r->slowest] = r->size;
  t->dims = dims;
  t->count = s->count / s->dims[r->slowest] * r->size;
  return t;
}

// Within the computation arrays lie as they do there: a buffer that lies otherwise would grow along another dimension.
static kiln_status check_layouts(const recount *r) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->comp->nparams; i++) {
    const kl_instr *in = &r->comp->instr[r->comp->params[i]];
    for (size_t l = 0; l < kl_shape_leaf_count(in->shape); l++)
      if (!kl_shape_same_in_memory(kl_shape_leaf(in->shape, l), r->shapes[n++]))
        return kl_unsupported(r->cx, in->span,
                              "parameter %u lies otherwise in memory than its computation has it, so its element count "
                              "cannot be given at run time",
                              i);
  }
  const kl_instr *root = kl_root(r->comp);
  for (size_t l = 0; l < kl_shape_leaf_count(root->shape); l++)
    if (!kl_shape_same_in_memory(kl_shape_leaf(root->shape, l), r->shapes[n++]))
      return kl_unsupported(r->cx, root->span,
                            "result %zu lies otherwise in memory than its computation has it, so its element count "
                            "cannot be given at run time",
                            l);
  return KILN_OK;
}

static kiln_status find_domain(recount *r, int64_t max_count, int64_t *row) {
  const kl_instr *root = kl_root(r->comp);
  const kl_shape *s = kl_shape_leaf_count(root->shape) ? kl_shape_leaf(root->shape, 0) : NULL;
  r->domain = s;
  if (!s || !kl_shape_is_array(s) || s->rank == 0 || s->count == 0)
    return kl_unsupported(r->cx, root->span, "results without dimensions or elements have no run-time element count");
  for (size_t i = 1; i < kl_shape_leaf_count(root->shape); i++)
    if (!is_counted(r, kl_shape_leaf(root->shape, i)))
      return kl_unsupported(r->cx, root->span,
                            "results of different shapes or layouts have no common run-time element count");
  r->slowest = (uint32_t)kl_shape_minor_to_major(s, s->rank - 1);
  *row = s->count / s->dims[r->slowest];
  r->size = max_count / *row;
  if (r->size < 1)
    return kl_invalid(r->cx, root->span, "max_count is %lld: expected at least one row of %lld elements",
                      (long long)max_count, (long long)*row);
  return KILN_OK;
}

// Threads of the rest take as many lanes as share a byte: a count must not end inside one.
static kiln_status check_bytes(const recount *r, int64_t row) {
  const kl_instr *root = kl_root(r->comp);
  for (size_t i = 0; i < kl_shape_leaf_count(root->shape); i++) {
    unsigned bits = kl_info(kl_shape_leaf(root->shape, i)->dtype)->bits;
    if (row * bits % 8 != 0 && bits < 8)
      return kl_unsupported(r->cx, root->span,
                            "rows of %lld elements of %u bits end inside a byte: they have no "
                            "run-time element count",
                            (long long)row, bits);
  }
  return KILN_OK;
}

static const kl_shape *const *grow_arguments(const recount *r) {
  size_t n = kl_shape_leaf_count(kl_root(r->comp)->shape);
  for (uint32_t i = 0; i < r->comp->nparams; i++) n += kl_shape_leaf_count(r->comp->instr[r->comp->params[i]].shape);
  const kl_shape **shapes = KL_NEW_N(r->arena, const kl_shape *, n + 1);
  for (size_t i = 0; i < n; i++) shapes[i] = grow(r, r->shapes[i]);
  return shapes;
}

kiln_status kl_plan_recount(kl_ctx *cx, const kl_counted *from, int64_t max_count, kl_arena *arena, kl_counted *out) {
  const kl_comp *comp = from->comp;
  recount r = {.cx = cx, .arena = arena, .comp = comp, .shapes = from->shapes};
  KL_TRY(find_domain(&r, max_count, &out->row));
  KL_TRY(check_bytes(&r, out->row));
  KL_TRY(check_layouts(&r));
  for (uint32_t i = 0; i < comp->ninstr; i++) KL_TRY(check(&r, &comp->instr[i]));
  kl_comp *c = kl_arena_dup(arena, comp, sizeof *comp);
  c->instr = kl_arena_dup(arena, comp->instr, comp->ninstr * sizeof *comp->instr);
  for (uint32_t i = 0; i < comp->ninstr; i++) c->instr[i].shape = grow(&r, comp->instr[i].shape);
  out->comp = c;
  out->shapes = grow_arguments(&r);
  return KILN_OK;
}
