// The rule of each op; runtime values; converses; maps between places in memory.
#include "ir/index/layout/map.h"
#include "lower/analysis/reads/rule.h"

// --- runtime values -----------------------------------------------------------------------------------------------

// Interned: the identity of a runtime variable is its place here, plus one.
struct kl_runtimes {
  kl_ctx *cx;
  kl_arena *arena;
  VEC(const kl_runtime *) all;
  uint32_t *slots; // hash table of place + 1
  size_t nslots;
};

struct kl_runtimes *kl_runtimes_create(kl_ctx *cx, kl_arena *arena) {
  struct kl_runtimes *r = kl_alloc(cx, sizeof *r);
  *r = (struct kl_runtimes){.cx = cx, .arena = arena};
  return r;
}

void kl_runtimes_destroy(struct kl_runtimes **r) {
  if (!*r) return;
  kl_ctx *cx = (*r)->cx;
  VEC_FREE(cx, &(*r)->all);
  kl_free(cx, (*r)->slots, (*r)->nslots * sizeof(uint32_t));
  kl_free(cx, *r, sizeof **r);
  *r = NULL;
}

static uint64_t hash_runtime(const kl_runtime *t) {
  uint64_t words[6] = {t->frame, t->instr, t->leaf, t->clamped, (uint64_t)t->lo, (uint64_t)t->hi};
  return kl_hash(words, sizeof words, 7);
}

static bool same_runtime(const kl_runtime *a, const kl_runtime *b) {
  return a->frame == b->frame && a->instr == b->instr && a->leaf == b->leaf && a->clamped == b->clamped &&
         a->lo == b->lo && a->hi == b->hi;
}

static void grow(struct kl_runtimes *r) {
  size_t n = r->nslots ? r->nslots * 2 : 64;
  kl_free(r->cx, r->slots, r->nslots * sizeof(uint32_t));
  r->slots = kl_alloc(r->cx, n * sizeof(uint32_t));
  r->nslots = n;
  for (size_t i = 0; i < r->all.n; i++) {
    size_t s = hash_runtime(r->all.p[i]) & (n - 1);
    while (r->slots[s]) s = (s + 1) & (n - 1);
    r->slots[s] = (uint32_t)i + 1;
  }
}

static uint64_t identity(struct kl_runtimes *r, const kl_runtime *t, const kl_runtime **out) {
  if (r->all.n * 2 >= r->nslots) grow(r);
  size_t s = hash_runtime(t) & (r->nslots - 1);
  for (; r->slots[s]; s = (s + 1) & (r->nslots - 1))
    if (same_runtime(r->all.p[r->slots[s] - 1], t)) break;
  if (!r->slots[s]) {
    VEC_PUSH(r->cx, &r->all, kl_arena_dup(r->arena, t, sizeof *t));
    r->slots[s] = (uint32_t)r->all.n;
  }
  *out = r->all.p[r->slots[s] - 1];
  return r->slots[s];
}

typedef struct value {
  uint32_t frame, instr, leaf;
} value;

static const kl_instr *instr_of(const kl_reader *r, value v) {
  return &r->frames[v.frame].comp->instr[v.instr];
}

// The value behind parameters of calls, tuples and copies: who made it.
static value origin(const kl_reader *r, value v) {
  for (;;) {
    const kl_comp *c = r->frames[v.frame].comp;
    const kl_instr *in = &c->instr[v.instr];
    if (in->op == KL_OP_PARAMETER && v.frame && !r->frames[v.frame].scalars) {
      const kl_frame *f = &r->frames[v.frame];
      if (f->carried && f->carried[v.leaf]) return v;
      v.instr = r->frames[f->parent].comp->instr[f->caller].operands[f->first_operand + in->number];
      v.frame = f->parent;
    } else if (in->op == KL_OP_GET_TUPLE_ELEMENT) {
      v.leaf += kl_operand(c, in, 0)->shape->first_leaf[in->number];
      v.instr = in->operands[0];
    } else if (in->op == KL_OP_TUPLE) {
      uint32_t i = kl_shape_element_of_leaf(in->shape, v.leaf);
      v.leaf -= in->shape->first_leaf[i];
      v.instr = in->operands[i];
    } else if (in->op == KL_OP_COPY) {
      v.instr = in->operands[0];
    } else
      return v;
  }
}

static const kl_aff *constant_value(rule *u, const kl_instr *in, uint32_t leaf, const kl_aff *const *at) {
  if (!in->literal) return NULL;
  const kl_array *a = &in->literal[leaf];
  int64_t linear = 0, v;
  bool splat = a->shape->count && kl_array_is_splat(a);
  for (uint32_t d = 0; d < a->shape->rank && !splat; d++) {
    if (!kl_aff_is_const(at[d])) return NULL;
    linear = linear * a->shape->dims[d] + at[d]->c;
  }
  if (linear < 0 || linear >= a->shape->count) return NULL;
  v = kl_int_decode(a->shape->dtype, kl_element_get(a->shape->dtype, a->data, linear, 0));
  return v < 0 && !kl_is_signed(a->shape->dtype) ? NULL : kl_aff_const(u->p, v);
}

// The value as an expression, where it does not need the program to run: constants, iota, and what only moves them.
static const kl_aff *known_value(rule *u, value v, uint32_t n, const kl_aff *const *index) {
  const kl_aff *at[KILN_MAX_RANK + 1];
  for (uint32_t i = 0; i < n; i++) at[i] = index[i];
  for (;;) {
    v = origin(u->r, v);
    const kl_instr *in = instr_of(u->r, v);
    const kl_shape *s = kl_shape_leaf(in->shape, v.leaf);
    if (!kl_is_int(s->dtype)) return NULL;
    if (in->op == KL_OP_CONSTANT) return constant_value(u, in, v.leaf, at);
    if (in->op == KL_OP_IOTA) { // where the type holds all of it
      bool fits = s->dims[in->number] - 1 <= kl_int_decode(s->dtype, kl_int_mask(s->dtype) >> kl_is_signed(s->dtype));
      return fits || (!kl_is_signed(s->dtype) && kl_info(s->dtype)->bits == 64) ? at[in->number] : NULL;
    }
    if (in->op != KL_OP_BROADCAST) return NULL;
    const kl_aff *to[KILN_MAX_RANK + 1];
    for (uint32_t d = 0; d < in->ndims; d++) to[d] = at[in->dims[d]];
    for (uint32_t d = 0; d < in->ndims; d++) at[d] = to[d];
    v.instr = in->operands[0];
  }
}

// What an integer of the type can be, as a runtime variable: values of u64 beyond int64 count as its highest.
static kl_interval type_range(kl_dtype t) {
  uint32_t bits = kl_info(t)->bits;
  bool is_signed = kl_is_signed(t);
  int64_t hi = bits - is_signed >= 63 ? INT64_MAX : ((int64_t)1 << (bits - is_signed)) - 1;
  return (kl_interval){is_signed ? -hi - 1 : 0, hi};
}

const kl_aff *rule_runtime(rule *u, uint32_t operand, uint32_t nindex, const kl_aff *const *index, bool clamped,
                           int64_t lo, int64_t hi) {
  if (clamped && lo >= hi) return kl_aff_const(u->p, lo);
  value v = origin(u->r, (value){u->r->frame, u->in->operands[operand], 0});
  const kl_aff *known = known_value(u, v, nindex, index);
  if (known && clamped)
    return kl_aff_max(u->p, kl_aff_min(u->p, known, kl_aff_const(u->p, hi)), kl_aff_const(u->p, lo));
  if (known) {
    rule_constrain(u, known, lo, hi);
    return known;
  }
  const kl_aff **at = KL_NEW_N(kl_affs_arena(u->p), const kl_aff *, nindex + 1);
  for (uint32_t i = 0; i < nindex; i++) at[i] = index[i];
  kl_runtime t = {v.frame, v.instr, v.leaf, clamped, clamped ? lo : 0, clamped ? hi : 0};
  const kl_runtime *payload;
  kl_producer from = {.nindex = nindex, .index = at};
  from.id = identity(u->r->runtimes, &t, &payload);
  from.payload = payload;
  u->rts[u->nrts] =
      (kl_map_var){.in = clamped ? (kl_interval){lo, hi} : type_range(rule_operand(u, operand)->dtype), .from = from};
  const kl_aff *e = kl_aff_rt(u->p, u->nrts++);
  if (!clamped) rule_constrain(u, e, lo, hi);
  return e;
}

// --- the rules ----------------------------------------------------------------------------------------------------

static void rule_none(rule *u) {}

static void unknown_leaves(rule *u, const char *why) {
  for (uint32_t i = 0; i < u->in->noperands; i++)
    for (uint32_t l = 0; l < kl_shape_leaf_count(rule_operand(u, i)); l++)
      if (kl_shape_is_array(kl_shape_leaf(rule_operand(u, i), l))) rule_unknown(u, i, l, why);
}

static void rule_call(rule *u) {
  unknown_leaves(u, "a called computation says what is needed");
}

static void rule_control(rule *u) {
  for (uint32_t i = 0; i < u->in->noperands; i++) rule_all(u, i, "values decide what is computed");
}

static void rule_unknown_op(rule *u) {
  unknown_leaves(u, "what the op reads is not known");
}

static void rule_host(rule *u) {
  for (uint32_t i = 0; i < u->in->noperands; i++) rule_all(u, i, "what the host or another device does is not known");
}

// By kl_op_kind.
static rule_fn *const rules[] = {
    [KL_KIND_UNKNOWN] = rule_unknown_op,
    [KL_KIND_UNARY] = rule_elementwise,
    [KL_KIND_BINARY] = rule_elementwise,
    [KL_KIND_CONVERT] = rule_elementwise,
    [KL_KIND_SELECT] = rule_elementwise,
    [KL_KIND_CLAMP] = rule_elementwise,
    [KL_KIND_PARAMETER] = rule_none,
    [KL_KIND_CONSTANT] = rule_none,
    [KL_KIND_IOTA] = rule_none,
    [KL_KIND_BROADCAST] = rule_broadcast,
    [KL_KIND_RESHAPE] = rule_reshape,
    [KL_KIND_BITCAST] = rule_bitcast,
    [KL_KIND_TRANSPOSE] = rule_transpose,
    [KL_KIND_SLICE] = rule_slice,
    [KL_KIND_REVERSE] = rule_reverse,
    [KL_KIND_CONCATENATE] = rule_concatenate,
    [KL_KIND_PAD] = rule_pad,
    [KL_KIND_STOCHASTIC] = rule_elementwise,
    [KL_KIND_DOT] = rule_dot,
    [KL_KIND_CONVOLUTION] = rule_convolution,
    [KL_KIND_REDUCE] = rule_reduce,
    [KL_KIND_REDUCE_WINDOW] = rule_reduce_window,
    [KL_KIND_SELECT_AND_SCATTER] = rule_select_and_scatter,
    [KL_KIND_SCAN] = rule_scan,
    [KL_KIND_MAP] = rule_elementwise,
    [KL_KIND_DYNAMIC_SLICE] = rule_dynamic_slice,
    [KL_KIND_DYNAMIC_UPDATE_SLICE] = rule_dynamic_update_slice,
    [KL_KIND_GATHER] = rule_gather,
    [KL_KIND_SCATTER] = rule_scatter,
    [KL_KIND_SORT] = rule_sort,
    [KL_KIND_TOPK] = rule_topk,
    [KL_KIND_SHUFFLE] = rule_host,
    [KL_KIND_RNG] = rule_rng,
    [KL_KIND_RNG_BITS] = rule_rng,
    [KL_KIND_RNG_STATE] = rule_none,
    [KL_KIND_BATCH_NORM] = rule_batch_norm,
    [KL_KIND_CHOLESKY] = rule_cholesky,
    [KL_KIND_TRIANGULAR_SOLVE] = rule_triangular_solve,
    [KL_KIND_FFT] = rule_fft,
    [KL_KIND_DIMENSION_SIZE] = rule_dimension_size,
    [KL_KIND_DYNAMIC_RESHAPE] = rule_dynamic_reshape,
    [KL_KIND_TUPLE] = rule_tuple,
    [KL_KIND_GTE] = rule_get_tuple_element,
    [KL_KIND_CALL] = rule_call,
    [KL_KIND_WHILE] = rule_control,
    [KL_KIND_CONDITIONAL] = rule_control,
    [KL_KIND_CUSTOM_CALL] = rule_unknown_op,
    [KL_KIND_FORWARD] = rule_forward,
    [KL_KIND_TOKEN] = rule_none,
    [KL_KIND_COPY_ASYNC] = rule_copy_async,
    [KL_KIND_ASYNC] = rule_unknown_op,
    [KL_KIND_COLLECTIVE] = rule_collective,
    [KL_KIND_DEVICE_ID] = rule_none,
    [KL_KIND_HOST] = rule_host,
};

// Does the rule look at extents, of arrays where one is not known?
static bool is_unbounded(const rule *u, kl_op_kind kind) {
  if (kl_op_is_elementwise(u->in->op) || kind == KL_KIND_TUPLE || kind == KL_KIND_GTE || kind == KL_KIND_FORWARD)
    return false;
  bool unknown = false;
  for (uint32_t d = 0; d < u->out->rank; d++) unknown = unknown || u->out->dims[d] < 0;
  for (uint32_t i = 0; i < u->in->noperands && !unknown; i++) {
    const kl_shape *s = rule_operand(u, i);
    for (uint32_t d = 0; kl_shape_is_array(s) && d < s->rank; d++) unknown = unknown || s->dims[d] < 0;
  }
  return unknown;
}

static void run(rule *u) {
  kl_op_kind kind = kl_op_table[u->in->op].kind;
  bool widths =
      u->in->op == KL_OP_BITCAST_CONVERT && kl_info(u->out->dtype)->bits != kl_info(rule_operand(u, 0)->dtype)->bits;
  if (is_unbounded(u, kind))
    unknown_leaves(u, "a dimension without a bound");
  else if (widths)
    rule_bitcast_convert(u);
  else
    rules[kind](u);
}

static void open_rule(rule *u, const kl_reader *r, uint32_t instr, uint32_t leaf, const kl_aff *const *index) {
  const kl_comp *c = r->frames[r->frame].comp;
  *u = (rule){.r = r, .p = r->affs, .c = c, .in = &c->instr[instr], .leaf = leaf, .at = index};
  u->out = kl_shape_leaf(u->in->shape, leaf);
}

kl_needs kl_needs_of(const kl_reader *r, uint32_t instr, uint32_t leaf, const kl_aff *const *index) {
  kl_ctx *cx = kl_affs_context(r->affs);
  rule u;
  open_rule(&u, r, instr, leaf, index);
  if (kl_shape_is_array(u.out)) run(&u);
  uint32_t n = (uint32_t)u.found.n;
  return (kl_needs){n, VEC_FREEZE(cx, kl_affs_arena(r->affs), &u.found)};
}

kl_need kl_need_of_concatenate(const kl_reader *r, uint32_t instr, uint32_t operand, int64_t offset,
                               const kl_aff *const *index) {
  rule u;
  open_rule(&u, r, instr, 0, index);
  rule_concatenate_operand(&u, operand, offset);
  kl_need need = u.found.p[0];
  VEC_FREE(kl_affs_context(r->affs), &u.found);
  return need;
}

// d with the map, as simple as is known.
static kl_dependence simplified(kl_affs *p, kl_dependence d, const kl_map *m) {
  d.map = kl_map_remove_unused(p, kl_map_simplify(p, m, KL_MAP_KEEP_POINTS), false, NULL);
  if (d.map->state == KL_MAP_UNDEFINED) d.exact = false, d.why = d.map->why;
  return d;
}

static const kl_map *map_of(kl_affs *p, const kl_shape *out, const kl_need *need) {
  kl_map_var dims[KILN_MAX_RANK + 1];
  if (!need->known) return kl_map_undefined(p, need->why);
  for (uint32_t d = 0; d < out->rank; d++) dims[d] = (kl_map_var){.in = rule_indices(out->dims[d])};
  kl_map m = {.state = KL_MAP_DEFINED, .nresults = need->nindex, .nconstraints = need->nconstraints};
  m.nvars[KL_AFF_DIM] = out->rank;
  m.nvars[KL_AFF_RANGE] = need->nranges;
  m.nvars[KL_AFF_RT] = need->nrts;
  m.vars[KL_AFF_DIM] = dims;
  m.vars[KL_AFF_RANGE] = need->ranges;
  m.vars[KL_AFF_RT] = need->rts;
  m.results = need->index;
  m.constraints = need->constraints;
  return kl_map_make(p, &m);
}

// Simple maps, and of those without any point one for an operand's leaf that has no other.
kl_dependences kl_reads(const kl_reader *r, uint32_t instr, uint32_t leaf) {
  const kl_aff *at[KILN_MAX_RANK + 1];
  const kl_shape *out = kl_shape_leaf(r->frames[r->frame].comp->instr[instr].shape, leaf);
  for (uint32_t d = 0; d < out->rank; d++) at[d] = kl_aff_dim(r->affs, d);
  kl_needs needs = kl_needs_of(r, instr, leaf, at);
  kl_dependence *p = KL_NEW_N(kl_affs_arena(r->affs), kl_dependence, needs.n + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < needs.n; i++) {
    const kl_need *x = &needs.p[i];
    kl_dependence d = {x->operand, x->leaf, NULL, x->exact, x->remote, x->why};
    d = simplified(r->affs, d, map_of(r->affs, out, x));
    bool first = n == 0 || p[n - 1].operand != d.operand || p[n - 1].leaf != d.leaf;
    bool empty = d.map->state == KL_MAP_EMPTY;
    if (!first && p[n - 1].map->state == KL_MAP_EMPTY)
      p[n - 1] = d;
    else if (first || !empty)
      p[n++] = d;
  }
  return (kl_dependences){n, p};
}

// --- converses ----------------------------------------------------------------------------------------------------

// { (result, dim) } of m: its dims and ranges become ranges, and a constraint ties each result to a dim.
static const kl_map *relation(kl_affs *p, const kl_map *m, const kl_shape *of) {
  uint32_t nd = m->nvars[KL_AFF_DIM], nr = m->nvars[KL_AFF_RANGE], nt = m->nvars[KL_AFF_RT];
  kl_arena *arena = kl_affs_arena(p);
  const kl_aff **to_range = KL_NEW_N(arena, const kl_aff *, nd + nr + 1);
  for (uint32_t i = 0; i < nd + nr; i++) to_range[i] = kl_aff_range(p, i);
  kl_aff_subst s = {.to = {to_range, to_range + nd}, .n = {nd, nr}};
  kl_map out = {.state = m->state, .nresults = nd, .nconstraints = m->nconstraints + m->nresults};
  kl_map_var *dims = KL_NEW_N(arena, kl_map_var, m->nresults + 1), *ranges = KL_NEW_N(arena, kl_map_var, nd + nr + 1);
  kl_map_var *rts = KL_NEW_N(arena, kl_map_var, nt + 1);
  kl_constraint *cs = KL_NEW_N(arena, kl_constraint, out.nconstraints + 1);
  for (uint32_t i = 0; i < m->nresults; i++) dims[i] = (kl_map_var){.in = {0, of->dims[i] - 1}};
  for (uint32_t i = 0; i < nd; i++) ranges[i] = m->vars[KL_AFF_DIM][i];
  for (uint32_t i = 0; i < nr; i++) ranges[nd + i] = m->vars[KL_AFF_RANGE][i];
  for (uint32_t i = 0; i < nd + nr; i++) ranges[i].name = (kl_str){0};
  for (uint32_t i = 0; i < nt; i++) {
    rts[i] = m->vars[KL_AFF_RT][i];
    const kl_aff **index = KL_NEW_N(arena, const kl_aff *, rts[i].from.nindex + 1);
    kl_aff_replace(p, &s, rts[i].from.index, rts[i].from.nindex, index);
    rts[i].from.index = index;
  }
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    cs[i].in = m->constraints[i].in;
    kl_aff_replace(p, &s, &m->constraints[i].e, 1, &cs[i].e);
  }
  for (uint32_t i = 0; i < m->nresults; i++) {
    const kl_aff *e;
    kl_aff_replace(p, &s, &m->results[i], 1, &e);
    cs[m->nconstraints + i] = (kl_constraint){kl_aff_sub(p, e, kl_aff_dim(p, i)), {0, 0}};
  }
  out.nvars[KL_AFF_DIM] = m->nresults, out.nvars[KL_AFF_RANGE] = nd + nr, out.nvars[KL_AFF_RT] = nt;
  out.vars[KL_AFF_DIM] = dims, out.vars[KL_AFF_RANGE] = ranges, out.vars[KL_AFF_RT] = rts;
  out.results = to_range;
  out.constraints = cs;
  return kl_map_make(p, &out);
}

// What bounds of an inverse's dims may have too many, the map's constraints exclude: no element is read that is not
// there.
static const kl_map *within(kl_affs *p, const kl_map *m, const kl_shape *of) {
  bool inside = true;
  if (m->state != KL_MAP_DEFINED) return m;
  kl_map_var *dims = kl_arena_dup(kl_affs_arena(p), m->vars[KL_AFF_DIM], of->rank * sizeof *dims);
  for (uint32_t i = 0; i < of->rank; i++) {
    if (of->dims[i] < 0) continue;
    inside &= dims[i].in.lo >= 0 && dims[i].in.hi < of->dims[i];
    if (dims[i].in.lo < 0) dims[i].in.lo = 0;
    if (dims[i].in.hi >= of->dims[i]) dims[i].in.hi = of->dims[i] - 1;
  }
  if (inside) return m;
  kl_map cut = *m;
  cut.vars[KL_AFF_DIM] = dims;
  return kl_map_make(p, &cut);
}

kl_dependence kl_converse(const kl_reader *r, uint32_t instr, const kl_dependence *d, uint32_t quota) {
  const kl_comp *c = r->frames[r->frame].comp;
  const kl_shape *of = kl_shape_leaf(kl_operand(c, &c->instr[instr], d->operand)->shape, d->leaf);
  kl_dependence out = *d;
  if (d->map->state == KL_MAP_UNDEFINED) return out;
  const kl_map *m = quota ? kl_map_invert(r->affs, d->map, quota) : NULL;
  m = m && m->state != KL_MAP_UNDEFINED ? within(r->affs, m, of) : relation(r->affs, d->map, of);
  if (m->nconstraints) m = kl_map_eliminate(r->affs, kl_map_rescale(r->affs, m));
  return simplified(r->affs, out, m);
}

kl_dependences kl_feeds(const kl_reader *r, uint32_t instr, uint32_t operand, uint32_t operand_leaf, uint32_t leaf) {
  kl_dependences in = kl_reads(r, instr, leaf);
  kl_dependence *p = KL_NEW_N(kl_affs_arena(r->affs), kl_dependence, in.n + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < in.n; i++)
    if (in.p[i].operand == operand && in.p[i].leaf == operand_leaf)
      p[n++] = kl_converse(r, instr, &in.p[i], KL_MAP_QUOTA);
  return (kl_dependences){n, p};
}

// --- memory -------------------------------------------------------------------------------------------------------

static kl_map_var *bounds(kl_affs *p, uint32_t n) {
  return KL_NEW_N(kl_affs_arena(p), kl_map_var, n + 1);
}

// From logical indices to digits.
static const kl_map *into_memory(kl_affs *p, const kl_physical *l) {
  const kl_aff *index[KILN_MAX_RANK + 1], *digits[KL_MAX_DIGITS];
  kl_map m = {.nvars = {l->rank}, .nresults = l->ndigits, .results = digits};
  kl_map_var *dims = bounds(p, l->rank);
  for (uint32_t d = 0; d < l->rank; d++) {
    dims[d].in = (kl_interval){0, l->values[d].bound - 1};
    index[d] = kl_aff_dim(p, d);
  }
  kl_memory_digits(p, l, index, digits);
  m.vars[KL_AFF_DIM] = dims;
  return kl_map_make(p, &m);
}

static const kl_map *out_of_memory(kl_affs *p, const kl_physical *l) {
  const kl_aff *index[KILN_MAX_RANK + 1], *digits[KL_MAX_DIGITS];
  kl_constraint inside[KL_MAX_VALUES];
  kl_map m = {.nvars = {l->ndigits}, .nresults = l->rank, .results = index, .constraints = inside};
  kl_map_var *dims = bounds(p, l->ndigits);
  for (uint32_t i = 0; i < l->ndigits; i++) {
    dims[i].in = (kl_interval){0, l->digits[i].extent - 1};
    digits[i] = kl_aff_dim(p, i);
  }
  m.nconstraints = kl_memory_index(p, l, digits, index, inside);
  m.vars[KL_AFF_DIM] = dims;
  return kl_map_make(p, &m);
}

const kl_map *kl_in_memory(kl_affs *p, const kl_map *m, const kl_shape *from, const kl_shape *to) {
  kl_physical l;
  for (int side = 0; side < 2; side++) {
    const kl_shape *s = side ? to : from;
    kl_physical_error error = s ? kl_physical_of(s, &l) : KL_PHYSICAL_OK;
    if (error) return kl_map_undefined(p, kl_physical_error_text(error));
    if (s) m = side ? kl_map_compose(p, m, into_memory(p, &l)) : kl_map_compose(p, out_of_memory(p, &l), m);
  }
  return kl_map_remove_unused(p, kl_map_simplify(p, m, KL_MAP_KEEP_POINTS), false, NULL);
}
