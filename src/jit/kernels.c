// From ENTRY to kernels: its slots, which kernels there are, which slots may share memory.

#include "jit/kernels.h"

#include "ir/index/layout/layout.h"

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

// --- kernels -------------------------------------------------------------------------------------------------------

// Slot i is argument i.
static void one_kernel(kl_ctx *cx, kl_kernels *k, kl_str name) {
  kl_kernel_unit *u = kl_add_unit(cx, k, k->entry, KL_NONE, name, k->nslots);
  for (uint32_t i = 0; i < k->nslots; i++)
    kl_add_argument(u, (kiln_argument){.slot = i, .output = k->slots[i].result}, k->shapes[i]);
}

kiln_status kl_kernels_make(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params, bool rolls,
                            kl_arena *arena, kl_sb *why, kl_kernels *out) {
  kl_unit *units;
  uint32_t n;
  KL_TRY(kl_plan_units(cx, m, params->fusion, arena, &units, &n));
  // One fusion picked out of ENTRY is its own interface.
  bool alone = params->fusion || (n && !units[0].from);
  *out = (kl_kernels){
      .arena = arena, .m = m, .entry = alone ? units[0].comp : &m->comp[m->entry], .rolls = rolls, .why = why};
  out->asked = params->alias_count || m->header.naliases;
  uint32_t align = params->argument_align ? params->argument_align : 16;
  out->scratch_align = align > LEAST_SCRATCH_ALIGN ? align : LEAST_SCRATCH_ALIGN;
  make_slots(out, params->fusion ? units[0].from : NULL, align);
  KL_TRY(check_sizes(cx, out));
  if (alone)
    one_kernel(cx, out, params->fusion ? kl_str_of(params->fusion) : kl_symbol_text(&m->names, m->name));
  else
    kl_place_all(cx, out);
  kl_finish_units(cx, out);
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

// Of several writers, kernels of branches, the first.
static void find_uses(kl_kernels *k) {
  k->writer = KL_NEW_N(k->arena, uint32_t, k->nslots + 1);
  k->rewritten = KL_NEW_N(k->arena, bool, k->nslots + 1);
  k->last_reader = KL_NEW_N(k->arena, uint32_t, k->nslots + 1);
  for (uint32_t i = 0; i < k->n; i++)
    for (uint32_t a = 0; a < k->units[i].narguments; a++) {
      const kiln_argument *x = &k->units[i].arguments[a];
      if (x->kind != KILN_ARGUMENT_SLOT) continue;
      if (!x->output)
        k->last_reader[x->slot] = i + 1;
      else if (k->writer[x->slot])
        k->rewritten[x->slot] = true;
      else
        k->writer[x->slot] = i + 1;
    }
  for (size_t r = 0; r < k->reads.n; r++) {
    uint32_t *last = &k->last_reader[k->reads.p[r].slot];
    if (k->reads.p[r].before + 1 > *last) *last = k->reads.p[r].before + 1;
  }
}

static kiln_status check_order(kl_ctx *cx, const kl_kernels *k, kl_alias_pair *p) {
  uint32_t writer = k->writer[p->result], reader = k->last_reader[p->parameter];
  if (!writer || reader <= writer) return KILN_OK;
  return kl_alias_fails(
      cx, k, p,
      kl_strf(k->arena, "%s reads the parameter after kernel '%s' has overwritten it",
              reader > k->n ? "the host" : kl_strf(k->arena, "kernel '%s'", k->units[reader - 1].name),
              k->units[writer - 1].name));
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
  if (k->rewritten[p->result]) return kl_alias_fails(cx, k, p, "kernels of several branches write the result");
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
