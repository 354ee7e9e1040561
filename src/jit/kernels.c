// From ENTRY to kernels: each fusion is one, and each result that none of them writes takes one more, a copy.

#include "jit/kernels.h"

#include "ir/index/layout.h"

enum { LEAST_SCRATCH_ALIGN = 256 };

static uint32_t leaves(const kl_instr *in) {
  return (uint32_t)kl_shape_leaf_count(in->shape);
}

// --- slots --------------------------------------------------------------------------------------------------------

static void describe(kiln_slot *s, const kl_shape *shape) {
  s->type.dtype = shape->dtype;
  s->type.rank = shape->rank;
  for (uint32_t d = 0; d < shape->rank; d++) s->type.dims[d] = shape->dims[d];
  s->bytes = kl_shape_is_array(shape) ? kl_shape_bytes(shape) : 0; // a token has none
}

// The buffers of a fusion that is picked alone are those that it has in ENTRY.
static const kl_shape *const *shapes_of_fusion(const kl_kernels *k, const kl_instr *fusion) {
  const kl_comp *c = &k->m->comp[k->m->entry];
  const kl_shape **shapes = KL_NEW_N(k->arena, const kl_shape *, k->nslots + 1), **at = shapes;
  for (uint32_t i = 0; i < fusion->noperands; i++) at = kl_shape_leaves(kl_operand(c, fusion, i)->shape, at);
  kl_shape_leaves(fusion->shape, at);
  return shapes;
}

static void make_slots(kl_kernels *k, const kl_instr *fusion, uint32_t align) {
  const kl_comp *c = k->entry;
  k->param_base = KL_NEW_N(k->arena, uint32_t, c->nparams + 1);
  for (uint32_t i = 0; i < c->nparams; i++) {
    k->param_base[i] = k->nparams;
    k->nparams += leaves(&c->instr[c->params[i]]);
  }
  k->nresults = leaves(kl_root(c));
  k->nslots = k->nparams + k->nresults;
  k->shapes = fusion ? shapes_of_fusion(k, fusion) : k->m->interface.shapes;
  k->slots = KL_NEW_N(k->arena, kiln_slot, k->nslots + 1);
  for (uint32_t i = 0; i < k->nslots; i++) {
    bool result = i >= k->nparams;
    k->slots[i] = (kiln_slot){.align = align, .alias = KILN_NO_SLOT, .result = result};
    k->slots[i].index = result ? i - k->nparams : i;
    describe(&k->slots[i], k->shapes[i]);
  }
}

// A buffer needs a size, also one that no kernel touches.
static kiln_status check_sizes(kl_ctx *cx, const kl_kernels *k) {
  kl_physical p;
  for (uint32_t i = 0; i < k->nslots; i++)
    if (k->slots[i].bytes < 0)
      return kl_unsupported(cx, KL_NOWHERE, "%s %u has %s", k->slots[i].result ? "result" : "parameter",
                            (unsigned)k->slots[i].index, kl_physical_error_text(kl_physical_of(k->shapes[i], &p)));
  return KILN_OK;
}

// --- constants and buffers ------------------------------------------------------------------------------------------

typedef struct sought {
  const kl_kernels *k;
  const void *data;
  uint64_t bytes;
} sought;

static bool is_constant(const void *arg, uint32_t id) {
  const sought *s = arg;
  const kl_constant *c = &s->k->constants.p[id];
  return c->bytes == s->bytes && memcmp(c->data, s->data, (size_t)s->bytes) == 0;
}

uint64_t kl_add_constant(kl_ctx *cx, kl_kernels *k, const void *data, uint64_t bytes) {
  uint64_t hash = kl_hash(data, (size_t)bytes, 17);
  uint32_t id = kl_ids_find(cx, &k->constant_ids, hash, is_constant, &(sought){k, data, bytes});
  if (id < k->constants.n) return k->constants.p[id].at;
  VEC_PUSH(cx, &k->constants, (kl_constant){k->constant_bytes, bytes, data});
  k->constant_bytes += (bytes + k->scratch_align - 1) / k->scratch_align * k->scratch_align;
  return k->constants.p[id].at;
}

uint32_t kl_add_buffer(kl_ctx *cx, kl_kernels *k, uint64_t bytes, uint32_t first, uint32_t last) {
  VEC_PUSH(cx, &k->buffers, (kl_buffer){.bytes = bytes, .first = first, .last = last});
  return (uint32_t)k->buffers.n - 1;
}

void kl_kernels_free(kl_ctx *cx, kl_kernels *k) {
  VEC_FREE(cx, &k->buffers);
  VEC_FREE(cx, &k->constants);
  kl_ids_free(cx, &k->constant_ids);
}

// --- where values lie ---------------------------------------------------------------------------------------------

// A buffer as an argument. Whoever reads or writes it finds it in the layout of its owner: a slot's is the caller's, of
// scratch memory the fusion whose result it is.
typedef struct place {
  kiln_argument argument;
  const kl_shape *shape;
} place;

typedef struct placing {
  kl_ctx *cx;
  kl_kernels *k;
  place **at; // by instruction of ENTRY: of each leaf of a fusion
  bool **placed;
} placing;

// The parameter, constant or fusion leaf that a leaf of `instr` is. *as: the shape it is seen in, if that is not its
// own.
static const kl_instr *resolve(const kl_comp *c, uint32_t instr, uint32_t *leaf, const kl_shape **as) {
  const kl_instr *in = &c->instr[instr];
  *as = NULL;
  while (in->op == KL_OP_TUPLE || in->op == KL_OP_GET_TUPLE_ELEMENT || in->op == KL_OP_BITCAST) {
    if (in->op == KL_OP_BITCAST) {
      if (!*as) *as = in->shape;
      in = kl_operand(c, in, 0);
      continue;
    }
    if (in->op == KL_OP_GET_TUPLE_ELEMENT) {
      *leaf += kl_operand(c, in, 0)->shape->first_leaf[in->number];
      in = kl_operand(c, in, 0);
      continue;
    }
    uint32_t i = kl_shape_element_of_leaf(in->shape, *leaf);
    *leaf -= in->shape->first_leaf[i];
    in = kl_operand(c, in, i);
  }
  return in;
}

static place place_of_slot(const kl_kernels *k, uint32_t slot) {
  return (place){{.slot = slot, .output = k->slots[slot].result}, k->shapes[slot]};
}

static place place_of_constant(placing *p, const kl_instr *in) {
  kl_kernels *k = p->k;
  const kl_shape *s = in->shape;
  char *data = KL_NEW_N(k->arena, char, (size_t)kl_shape_bytes(s) + 1);
  kl_array_pack(&(kl_array){s, in->literal[0].data}, data);
  uint64_t at = kl_add_constant(p->cx, k, data, (uint64_t)kl_shape_bytes(s));
  return (place){{.kind = KILN_ARGUMENT_SCRATCH, .offset = KL_AMONG_CONSTANTS | at}, s};
}

static place place_of(placing *p, uint32_t instr, uint32_t leaf) {
  const kl_comp *c = p->k->entry;
  const kl_shape *as;
  const kl_instr *in = resolve(c, instr, &leaf, &as);
  place a;
  if (in->op == KL_OP_PARAMETER)
    a = place_of_slot(p->k, p->k->param_base[in->number] + leaf);
  else if (in->op == KL_OP_CONSTANT)
    a = place_of_constant(p, in);
  else
    a = p->at[in - c->instr][leaf];
  a.argument.output = false;
  if (as) a.shape = as;
  return a;
}

// parameter(0) -> copy
static const kl_comp *copy_of(kl_arena *arena, const kl_shape *s, kl_span span) {
  kl_comp *c = KL_NEW(arena, kl_comp);
  kl_instr *in = KL_NEW_N(arena, kl_instr, 2);
  uint32_t *zero = KL_NEW(arena, uint32_t);
  in[0] = (kl_instr){.op = KL_OP_PARAMETER, .shape = s, .more = &kl_no_more, .span = span};
  in[1] = (kl_instr){.op = KL_OP_COPY, .shape = s, .noperands = 1, .operands = zero, .more = &kl_no_more, .span = span};
  *c = (kl_comp){.ninstr = 2, .instr = in, .root = 1, .nparams = 1, .params = zero, .span = span};
  return c;
}

// A name in PTX: one kernel has that of its fusion, of several each has its number behind it.
static const char *kernel_name(kl_kernels *k, kl_str name, uint32_t i, uint32_t all) {
  return all == 1 ? kl_str_dup(k->arena, name).p : kl_strf(k->arena, "%.*s_%u", KL_FMT(name), i);
}

// A kernel for at most n arguments, and one more for a count.
static kl_kernel_unit *add_unit(kl_kernels *k, const kl_comp *c, kl_str name, uint32_t n, uint32_t all) {
  kl_kernel_unit *u = &k->units[k->n];
  *u = (kl_kernel_unit){.comp = c, .name = kernel_name(k, name, k->n, all)};
  u->arguments = KL_NEW_N(k->arena, kiln_argument, n + 1);
  u->shapes = KL_NEW_N(k->arena, const kl_shape *, n + 1);
  k->n++;
  return u;
}

static void add_argument(kl_kernel_unit *u, place at) {
  ((const kl_shape **)u->shapes)[u->narguments] = at.shape;
  u->arguments[u->narguments++] = at.argument;
}

static void add_copy(placing *p, uint32_t result, uint32_t all) {
  kl_kernels *k = p->k;
  uint32_t slot = k->nparams + result;
  const kl_comp *c = copy_of(k->arena, k->shapes[slot], kl_root(k->entry)->span);
  kl_kernel_unit *u = add_unit(k, c, kl_str_of("copy"), 2, all);
  add_argument(u, place_of(p, k->entry->root, result));
  add_argument(u, place_of_slot(k, slot));
}

// Are the arrays behind a bitcast and its result laid out as the two shapes say? Buffers of results may lie otherwise
// than values.
static bool lies_as_seen(const kl_kernels *k, const kl_shape *slot, const kl_instr *from, uint32_t leaf,
                         const kl_shape *as, bool seen_otherwise) {
  const kl_shape *own = kl_shape_leaf(from->shape, leaf);
  if (as) return kl_shape_same_in_memory(slot, as);
  return !seen_otherwise || kl_shape_same_in_memory(slot, own);
}

// Leaves that some bitcast reads.
static void find_seen(placing *p, bool **seen) {
  const kl_comp *c = p->k->entry;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    uint32_t leaf = 0;
    const kl_shape *as;
    if (c->instr[i].op != KL_OP_BITCAST) continue;
    const kl_instr *in = resolve(c, i, &leaf, &as);
    if (seen[in - c->instr]) seen[in - c->instr][leaf] = true;
  }
}

// Results first: a leaf that is several of them is written as the first and copied to the others.
static uint32_t place_results(placing *p, bool *const *seen, uint32_t *copies) {
  kl_kernels *k = p->k;
  uint32_t n = 0;
  for (uint32_t r = 0; r < k->nresults; r++) {
    uint32_t leaf = r;
    const kl_shape *as, *slot = k->shapes[k->nparams + r];
    const kl_instr *from = resolve(k->entry, k->entry->root, &leaf, &as);
    if (!kl_shape_is_array(slot)) continue; // a token
    uint32_t at = (uint32_t)(from - k->entry->instr);
    bool *placed = p->placed[at] ? &p->placed[at][leaf] : NULL;
    if (!placed || *placed || !lies_as_seen(k, slot, from, leaf, as, seen[at][leaf])) {
      copies[n++] = r;
      continue;
    }
    *placed = true;
    p->at[at][leaf] = place_of_slot(k, k->nparams + r);
    if (as) p->at[at][leaf].shape = kl_shape_leaf(from->shape, leaf);
  }
  return n;
}

// A buffer is there from the kernel that writes it to the last that reads it.
static void place_rest(placing *p, const kl_unit *units, uint32_t n) {
  kl_kernels *k = p->k;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = (uint32_t)(units[i].from - k->entry->instr);
    for (uint32_t l = 0; l < leaves(units[i].from); l++) {
      if (p->placed[at][l]) continue;
      place *a = &p->at[at][l];
      a->shape = kl_shape_leaf(units[i].from->shape, l);
      uint64_t bytes = (uint64_t)kl_shape_bytes(a->shape);
      a->argument = (kiln_argument){.kind = KILN_ARGUMENT_SCRATCH, .output = true};
      a->argument.offset = kl_add_buffer(p->cx, k, bytes, i, i);
    }
  }
}

static void note_reads(kl_kernels *k) {
  for (uint32_t i = 0; i < k->n; i++)
    for (uint32_t a = 0; a < k->units[i].narguments; a++) {
      const kiln_argument *x = &k->units[i].arguments[a];
      if (x->kind == KILN_ARGUMENT_SCRATCH && !(x->offset & KL_AMONG)) k->buffers.p[x->offset].last = i;
    }
}

static void add_fusion(placing *p, const kl_unit *unit, uint32_t all) {
  kl_kernels *k = p->k;
  const kl_instr *fusion = unit->from;
  uint32_t at = (uint32_t)(fusion - k->entry->instr), n = leaves(fusion);
  for (uint32_t o = 0; o < fusion->noperands; o++) n += leaves(kl_operand(k->entry, fusion, o));
  kl_kernel_unit *u = add_unit(k, unit->comp, kl_symbol_text(&k->m->names, fusion->name), n, all);
  for (uint32_t o = 0; o < fusion->noperands; o++)
    for (uint32_t l = 0; l < leaves(kl_operand(k->entry, fusion, o)); l++)
      add_argument(u, place_of(p, fusion->operands[o], l));
  for (uint32_t l = 0; l < leaves(fusion); l++) add_argument(u, p->at[at][l]);
}

static void place_fusions(kl_ctx *cx, kl_kernels *k, const kl_unit *units, uint32_t n) {
  placing p = {.cx = cx, .k = k};
  uint32_t *copies = KL_NEW_N(k->arena, uint32_t, k->nresults + 1);
  p.at = KL_NEW_N(k->arena, place *, k->entry->ninstr);
  p.placed = KL_NEW_N(k->arena, bool *, k->entry->ninstr);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = (uint32_t)(units[i].from - k->entry->instr);
    p.at[at] = KL_NEW_N(k->arena, place, leaves(units[i].from) + 1);
    p.placed[at] = KL_NEW_N(k->arena, bool, leaves(units[i].from) + 1);
  }
  bool **seen = KL_NEW_N(k->arena, bool *, k->entry->ninstr);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = (uint32_t)(units[i].from - k->entry->instr);
    seen[at] = KL_NEW_N(k->arena, bool, leaves(units[i].from) + 1);
  }
  find_seen(&p, seen);
  uint32_t ncopies = place_results(&p, seen, copies);
  place_rest(&p, units, n);
  k->units = KL_NEW_N(k->arena, kl_kernel_unit, n + ncopies);
  for (uint32_t i = 0; i < n; i++) add_fusion(&p, &units[i], n + ncopies);
  for (uint32_t i = 0; i < ncopies; i++) add_copy(&p, copies[i], n + ncopies);
  note_reads(k);
}

// Slot i is argument i.
static void one_kernel(kl_kernels *k, kl_str name) {
  k->units = KL_NEW_N(k->arena, kl_kernel_unit, 1);
  kl_kernel_unit *u = add_unit(k, k->entry, name, k->nslots, 1);
  for (uint32_t i = 0; i < k->nslots; i++) add_argument(u, place_of_slot(k, i));
}

kiln_status kl_kernels_make(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params, kl_arena *arena,
                            kl_kernels *out) {
  kl_unit *units;
  uint32_t n;
  KL_TRY(kl_plan_units(cx, m, params->fusion, arena, &units, &n));
  // One fusion picked out of ENTRY is its own interface.
  bool alone = params->fusion || !units[0].from;
  *out = (kl_kernels){.arena = arena, .m = m, .entry = alone ? units[0].comp : &m->comp[m->entry]};
  uint32_t align = params->argument_align ? params->argument_align : 16;
  out->scratch_align = align > LEAST_SCRATCH_ALIGN ? align : LEAST_SCRATCH_ALIGN;
  make_slots(out, params->fusion ? units[0].from : NULL, align);
  KL_TRY(check_sizes(cx, out));
  if (alone)
    one_kernel(out, params->fusion ? kl_str_of(params->fusion) : kl_symbol_text(&m->names, m->name));
  else
    place_fusions(cx, out, units, n);
  return KILN_OK;
}

// --- shared memory ------------------------------------------------------------------------------------------------

kiln_status kl_alias_fails(kl_ctx *cx, const kl_kernels *k, kl_alias_pair *p, const char *why) {
  unsigned parameter = k->slots[p->parameter].index, result = k->slots[p->result].index;
  p->dropped = true;
  if (p->must)
    return kl_unsupported(cx, kl_root(k->entry)->span, "parameter %u and result %u cannot be the same memory: %s",
                          parameter, result, why);
  kl_warn(cx, kl_root(k->entry)->span,
          "parameter %u and result %u may not be the same memory, as the module allows: %s", parameter, result, why);
  return KILN_OK;
}

kl_alias_pair *kl_alias_of(const kl_kernels *k, uint32_t slot) {
  kl_alias_pair *p = k->pair_of[slot] ? &k->pairs[k->pair_of[slot] - 1] : NULL;
  return p && !p->dropped ? p : NULL;
}

void kl_add_alias(kl_kernels *k, uint32_t parameter, uint32_t result) {
  k->pairs[k->npairs] = (kl_alias_pair){.parameter = parameter, .result = result};
  k->pair_of[parameter] = k->pair_of[result] = ++k->npairs;
}

static void find_uses(kl_kernels *k) {
  k->writer = KL_NEW_N(k->arena, uint32_t, k->nslots + 1);
  k->last_reader = KL_NEW_N(k->arena, uint32_t, k->nslots + 1);
  for (uint32_t i = 0; i < k->n; i++)
    for (uint32_t a = 0; a < k->units[i].narguments; a++) {
      const kiln_argument *x = &k->units[i].arguments[a];
      if (x->kind == KILN_ARGUMENT_SLOT) (x->output ? k->writer : k->last_reader)[x->slot] = i + 1;
    }
}

static kiln_status check_order(kl_ctx *cx, const kl_kernels *k, kl_alias_pair *p) {
  uint32_t writer = k->writer[p->result], reader = k->last_reader[p->parameter];
  if (!writer || reader <= writer) return KILN_OK;
  return kl_alias_fails(cx, k, p,
                        kl_strf(k->arena, "kernel '%s' reads the parameter after '%s' has overwritten it",
                                k->units[reader - 1].name, k->units[writer - 1].name));
}

static kiln_status add_pair(kl_ctx *cx, kl_kernels *k, uint32_t parameter, uint32_t result, bool must) {
  if (parameter >= k->nparams || result >= k->nresults)
    return kl_invalid(cx, KL_NOWHERE, "aliases: expected one of %u parameters and one of %u results, found %u and %u",
                      k->nparams, k->nresults, parameter, result);
  kl_alias_pair *p = &k->pairs[k->npairs];
  *p = (kl_alias_pair){.parameter = parameter, .result = k->nparams + result, .must = must, .asked = true};
  kl_alias_pair *of_parameter = kl_alias_of(k, p->parameter), *of_result = kl_alias_of(k, p->result);
  if (of_parameter && of_parameter == of_result) {
    of_parameter->must |= must;
    return KILN_OK;
  }
  if (of_parameter || of_result) {
    if (!must) return kl_alias_fails(cx, k, p, "one of them has another partner");
    return kl_invalid(cx, KL_NOWHERE, "aliases: expected one partner for parameter %u and result %u, found two",
                      parameter, result);
  }
  const kiln_slot *a = &k->slots[p->parameter], *b = &k->slots[p->result];
  k->pair_of[p->parameter] = k->pair_of[p->result] = ++k->npairs;
  if (a->bytes == b->bytes && kl_info(a->type.dtype)->bits == kl_info(b->type.dtype)->bits)
    return check_order(cx, k, p);
  return kl_alias_fails(cx, k, p, "they differ in size or element width");
}

// The flattened index of the leaf at a path into nested tuples; what the path ends at must be an array.
static bool leaf_at(const kl_shape *s, kl_ints path, uint32_t *leaf) {
  for (uint32_t i = 0; i < path.n; i++) {
    if (s->dtype != KILN_TUPLE || path.p[i] < 0 || path.p[i] >= s->nelems) return false;
    *leaf += s->first_leaf[path.p[i]];
    s = s->elems[path.p[i]];
  }
  return kl_shape_is_array(s);
}

static kiln_status add_of_module(kl_ctx *cx, kl_kernels *k, const kl_alias *a) {
  const kl_comp *c = k->entry;
  uint32_t result = 0, parameter = 0;
  if (a->param < 0 || a->param >= c->nparams) return KILN_OK; // the verifier has said so
  parameter = k->param_base[a->param];
  if (!leaf_at(kl_root(c)->shape, a->result, &result) ||
      !leaf_at(c->instr[c->params[a->param]].shape, a->path, &parameter)) {
    static const char why[] = "input_output_alias of parameter %lld names a tuple: only arrays share memory";
    if (a->must) return kl_unsupported(cx, kl_root(c)->span, why, (long long)a->param);
    kl_warn(cx, kl_root(c)->span, why, (long long)a->param);
    return KILN_OK;
  }
  return add_pair(cx, k, parameter, result, a->must);
}

kiln_status kl_kernels_alias(kl_ctx *cx, const kiln_compile_params *params, kl_kernels *k) {
  const kl_header *h = &k->m->header;
  bool whole = k->entry == &k->m->comp[k->m->entry];
  k->pairs = KL_NEW_N(k->arena, kl_alias_pair, params->alias_count + h->naliases + k->nresults + 1);
  k->pair_of = KL_NEW_N(k->arena, uint32_t, k->nslots + 1);
  find_uses(k);
  for (size_t i = 0; i < params->alias_count; i++)
    KL_TRY(add_pair(cx, k, params->aliases[i].parameter, params->aliases[i].result, true));
  for (uint32_t i = 0; whole && i < h->naliases; i++) KL_TRY(add_of_module(cx, k, &h->aliases[i]));
  return KILN_OK;
}
