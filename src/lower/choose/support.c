// What can be compiled: which parts of ENTRY become kernels, and which ops on which types the emitter has code for.

#include "lower/choose/private.h"
#include "lower/choose/walk/walk.h"

#include "ir/custom/custom.h"
#include "ir/index/layout/layout.h"
#include "ir/rewrite/branch.h"
#include "ir/text/parse.h"

// --- ops ----------------------------------------------------------------------------------------------------------

bool kl_is_walked(const kl_instr *in) {
  kl_op_kind k = kl_op_table[in->op].kind;
  if (k == KL_KIND_REDUCE_WINDOW) return kl_window_is_small(in);
  return k <= KL_KIND_STOCHASTIC || k == KL_KIND_TUPLE || k == KL_KIND_GTE || k == KL_KIND_CALL ||
         k == KL_KIND_FORWARD || k == KL_KIND_MAP || k == KL_KIND_CONDITIONAL || k == KL_KIND_WHILE ||
         k == KL_KIND_DYNAMIC_SLICE || k == KL_KIND_DYNAMIC_UPDATE_SLICE || k == KL_KIND_GATHER;
}

bool kl_is_apart(const kl_instr *in) {
  return !kl_is_walked(in) && in->op != KL_OP_UNKNOWN;
}

bool kl_needs_kernel(const kl_instr *in) {
  return kl_is_apart(in) || in->op == KL_OP_FUSION || in->op == KL_OP_WHILE;
}

// Where elements lie matters to slots and bitcasts only; that they lie somewhere, to all.
static kiln_status check_layout(kl_ctx *cx, const kl_instr *in, const kl_shape *s) {
  if (!kl_shape_is_array(s) || kl_layout_is_order(s)) return KILN_OK;
  kl_physical p;
  kl_physical_error error = kl_physical_of(s, &p);
  return error ? kl_unsupported(cx, in->span, "%s is not supported", kl_physical_error_text(error)) : KILN_OK;
}

kiln_status kl_plan_check_shape(kl_ctx *cx, const kl_instr *in) {
  const kl_shape *s = in->shape;
  if (s->dtype == KILN_TUPLE) return KILN_OK;
  if (!kl_shape_is_array(s))
    return kl_unsupported(cx, in->span, "%s of type %s cannot be part of a kernel", kl_op_name(in->op),
                          kl_info(s->dtype)->name);
  for (uint32_t d = 0; s->dynamic && d < s->rank; d++) {
    if (s->dynamic[d] && s->dims[d] == KL_DIM_UNKNOWN)
      return kl_unsupported(cx, in->span, "dimension %u is of unknown size (?): only static sizes are compiled", d);
    if (s->dynamic[d])
      return kl_unsupported(
          cx, in->span,
          "dimension %u is dynamic (<=%lld): only static sizes are compiled, and those that set-dimension-size sets", d,
          (long long)s->dims[d]);
  }
  return check_layout(cx, in, s);
}

// Stretches of memory that are looked at.
enum { MOST_STRETCHES = 1 << 16 };

static bool is_padded(const kl_physical *p, const kl_shape *s) {
  return p->bits != kl_info(s->dtype)->bits || p->prefix;
}

static kiln_status check_bitcast(kl_ctx *cx, const kl_instr *in, const kl_shape *from) {
  kl_physical a, b;
  if (kl_physical_of(from, &a) || kl_physical_of(in->shape, &b)) return KILN_OK; // these are refused themselves
  if (is_padded(&a, from) || is_padded(&b, in->shape))
    return kl_unsupported(cx, in->span, "bitcast of elements that lie apart (E, M) is not supported");
  if (kl_bitcast_reads_elements(&a, &b, MOST_STRETCHES) == KILN_YES) return KILN_OK;
  return kl_unsupported(cx, in->span,
                        "bitcast: not every element of the result is known to lie on elements of the operand");
}

// A window has an element along a dimension that the result does not have.
static kiln_status check_gather(kl_ctx *cx, const kl_instr *in, const kl_shape *from) {
  if (from->count || !in->shape->count) return KILN_OK;
  return kl_unsupported(cx, in->span, "gather: a slice is larger than the operand");
}

// Nobody knows what it does, or whether the result alone is what it does.
static kiln_status refuse_unknown(kl_ctx *cx, const kiln_module *m, const kl_instr *in) {
  kl_str name = kl_symbol_text(&m->names, in->opcode_text);
  char similar[64] = "";
  bool misspelt, found = kl_similar_op(name, similar, &misspelt);
  return kl_unsupported(cx, in->span, "%.*s is not compiled: it is no HLO op that is known%s%s%s", KL_FMT(name),
                        found ? "; HLO has '" : "", similar, found ? "'" : "");
}

static kiln_status refuse_custom_call(kl_ctx *cx, const kl_comp *c, const kl_instr *in) {
  enum { MOST_FOUND = 60 };
  kl_str found = {0};
  const char *advice = kl_custom_fault(c, in, &found);
  if (advice && found.n)
    return kl_unsupported(cx, in->span, "custom-call of %.*s is not compiled: %s, found %.*s%s",
                          KL_FMT(in->more->target), advice, (int)(found.n < MOST_FOUND ? found.n : MOST_FOUND), found.p,
                          found.n > MOST_FOUND ? " ..." : "");
  if (!advice) advice = kl_custom_advice(in);
  if (!advice) advice = "it stands for no array op that is known";
  return kl_unsupported(cx, in->span, "custom-call of %.*s is not compiled: %s", KL_FMT(in->more->target), advice);
}

// Ops that no kernel makes, and what the reason is where that is not time.
static kiln_status refuse_op(kl_ctx *cx, const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_UNKNOWN: return refuse_unknown(cx, m, in);
  case KL_KIND_CUSTOM_CALL: return refuse_custom_call(cx, c, in);
  case KL_KIND_RNG:
    return kl_unsupported(cx, in->span,
                          "rng is not compiled here: expected pred, integers or floats in dimensions of known size");
  case KL_KIND_RNG_STATE:
    return kl_unsupported(cx, in->span,
                          "rng-get-and-update-state is not compiled: its state outlives the program; expected a state "
                          "that is a parameter and a result");
  case KL_KIND_RNG_BITS:
    return kl_unsupported(cx, in->span,
                          "rng-bit-generator is not compiled: expected a state of u64[2], or u64[3] for Philox, and a "
                          "result of a state and bits of integers or floats");
  case KL_KIND_FFT:
    return kl_unsupported(cx, in->span,
                          "fft is not compiled here: launches leave numbers to each other whose places are more than "
                          "the verifier follows");
  case KL_KIND_COLLECTIVE:
  case KL_KIND_DEVICE_ID:
    return kl_unsupported(cx, in->span, "%s is not compiled: expected a module of one replica and one partition",
                          kl_op_name(in->op));
  case KL_KIND_HOST:
    return kl_unsupported(cx, in->span, "%s is not compiled: it needs a host beside the program", kl_op_name(in->op));
  case KL_KIND_SHUFFLE:
    return kl_unsupported(cx, in->span, "shuffle is not compiled: what its modes mean is not known");
  default: return kl_unsupported(cx, in->span, "%s is evaluated but not compiled yet", kl_op_name(in->op));
  }
}

kiln_status kl_plan_check_op(kl_ctx *cx, const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  if (kl_op_has_effect(in)) return refuse_op(cx, m, c, in); // whatever its result, often none
  KL_TRY(kl_plan_check_shape(cx, in));
  if (in->op == KL_OP_CONSTANT && !in->literal)
    return kl_unsupported(cx, in->span, "constant: the text leaves its values out");
  if (!kl_is_walked(in)) return refuse_op(cx, m, c, in);
  if (in->op == KL_OP_WHILE && !kl_loop_is_private(cx, m, in))
    return kl_unsupported(cx, in->span,
                          "while inside of a fusion or a map is not compiled: expected one that makes each element of "
                          "scalars and of elements at the same index");
  if (in->op == KL_OP_GATHER) return check_gather(cx, in, kl_operand(c, in, 0)->shape);
  if (!in->noperands || !kl_op_is_elementwise(in->op)) {
    return in->op == KL_OP_BITCAST ? check_bitcast(cx, in, kl_operand(c, in, 0)->shape) : KILN_OK;
  }
  if (in->op != KL_OP_COPY && !kl_shape_is_array(kl_operand(c, in, 0)->shape))
    return kl_unsupported(cx, in->span, "%s of a tuple is evaluated but not compiled yet", kl_op_name(in->op));
  return KILN_OK;
}

// --- modules --------------------------------------------------------------------------------------------------------

enum { MOST_REFUSED = 64 };

// What ENTRY computes itself and by fusions, calls and branches. Callees come before their callers.
static bool *find_computed(kl_ctx *cx, const kiln_module *m) {
  bool *computed = kl_alloc(cx, m->ncomp);
  computed[m->entry] = true;
  for (uint32_t i = m->ncomp; i-- > 0;)
    for (uint32_t k = 0; computed[i] && k < m->comp[i].ninstr; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      bool calls = (kl_is_walked(in) && in->op != KL_OP_MAP) || in->op == KL_OP_WHILE;
      for (uint32_t j = 0; calls && j < in->ncalled; j++) computed[in->called[j]] = true;
    }
  return computed;
}

// Callers come behind their callees. `cx` is NULL where all loops are run.
static bool *find_run(kl_ctx *cx, const kiln_module *m, const bool *has, kl_arena *arena) {
  bool *run = KL_NEW_N(arena, bool, m->ncomp + 1);
  run[m->entry] = true;
  for (uint32_t i = m->ncomp; i-- > 0;)
    for (uint32_t k = 0; run[i] && k < m->comp[i].ninstr; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      bool runs = kl_is_branching(in, has) || (in->op == KL_OP_WHILE && !(cx && kl_loop_is_private(cx, m, in)));
      for (uint32_t j = 0; runs && j < in->ncalled; j++) run[in->called[j]] = true;
    }
  return run;
}

bool *kl_find_run(const kiln_module *m, const bool *has, kl_arena *arena) {
  return find_run(NULL, m, has, arena);
}

bool *kl_find_fused(kl_ctx *cx, const kiln_module *m, const bool *has, kl_arena *arena) {
  return find_run(cx, m, has, arena);
}

static bool is_loop(const kl_instr *in) {
  return in->op == KL_OP_WHILE;
}

typedef struct checking {
  const kiln_module *m;
  const bool *has, *loops, *run;
} checking;

static kiln_status check_in_module(kl_ctx *cx, const checking *k, uint32_t comp, const kl_instr *in) {
  if (kl_is_branching(in, k->has) && k->run[comp]) return KILN_OK;
  if (kl_is_branching(in, k->loops))
    return kl_unsupported(cx, in->span,
                          "conditional around a while inside of a fusion or a map is not compiled: expected branches "
                          "without loops, as all of them are computed");
  bool orders = in->shape->dtype == KILN_TOKEN && !kl_op_has_effect(in) && in->op != KL_OP_CUSTOM_CALL;
  if (orders || in->op == KL_OP_WHILE || kl_has_chooser(in->op)) return KILN_OK;
  if (in->op == KL_OP_CUSTOM_CALL) return refuse_custom_call(cx, &k->m->comp[comp], in);
  return kl_plan_check_op(cx, k->m, &k->m->comp[comp], in);
}

// Of what is not computed itself, the bodies of maps and reducers, only effects are looked for: what else these have is
// refused by the kernels that run them.
static kiln_status check_all(kl_ctx *cx, const checking *x, const bool *computed, const bool *reached) {
  uint32_t refused = 0;
  kiln_status first = KILN_OK;
  for (uint32_t i = 0; i < x->m->ncomp; i++) {
    const kl_comp *c = &x->m->comp[i];
    for (uint32_t k = 0; reached[i] && k < c->ninstr && refused < MOST_REFUSED; k++) {
      kiln_status st = KILN_OK;
      if (computed && computed[i])
        st = check_in_module(cx, x, i, &c->instr[k]);
      else if (kl_op_has_effect(&c->instr[k]))
        st = refuse_op(cx, x->m, c, &c->instr[k]);
      refused += st != KILN_OK;
      if (first == KILN_OK) first = st;
    }
  }
  return first;
}

kiln_status kl_plan_check_module(kl_ctx *cx, const kiln_module *m) {
  kl_arena scratch;
  kl_arena_init(&scratch, cx);
  bool *computed = find_computed(cx, m);
  checking x = {.m = m, .has = kl_find_ops(m, kl_needs_kernel, &scratch), .loops = kl_find_ops(m, is_loop, &scratch)};
  x.run = kl_find_run(m, x.has, &scratch);
  kiln_status st = check_all(cx, &x, computed, kl_live_of(m, &scratch).comp);
  kl_free(cx, computed, m->ncomp);
  kl_arena_free(&scratch);
  return st;
}

kiln_status kl_plan_check_effects(kl_ctx *cx, const kiln_module *m) {
  kl_arena scratch;
  kl_arena_init(&scratch, cx);
  kiln_status st = check_all(cx, &(checking){.m = m}, NULL, kl_live_of(m, &scratch).comp);
  kl_arena_free(&scratch);
  return st;
}

// --- units --------------------------------------------------------------------------------------------------------

static bool is_run(const kl_instr *in, const bool *has) {
  return in->op == KL_OP_FUSION || in->op == KL_OP_WHILE || kl_is_branching(in, has);
}

static bool has_run(const kl_comp *c, const bool *has) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (is_run(&c->instr[i], has)) return true;
  return false;
}

// Beside what runs ENTRY may hold only what makes nothing: the rest has been put into fusions (lower/fuse).
static bool is_structure(const kl_instr *in, const bool *has) {
  kl_op op = in->op;
  return is_run(in, has) || op == KL_OP_PARAMETER || op == KL_OP_TUPLE || op == KL_OP_GET_TUPLE_ELEMENT ||
         op == KL_OP_CONSTANT || op == KL_OP_BITCAST || op == KL_OP_AFTER_ALL;
}

static kiln_status refuse_mixed(kl_ctx *cx, const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  if (in->op == KL_OP_UNKNOWN) return kl_plan_check_op(cx, m, c, in);
  return kl_unsupported(cx, in->span, "%s beside a fusion in ENTRY cannot be part of one", kl_op_name(in->op));
}

static kiln_status add_units(kl_ctx *cx, const kiln_module *m, uint32_t comp, const bool *has, const char *only,
                             kl_arena *arena, kl_unit *units, uint32_t *n) {
  const kl_comp *c = &m->comp[comp];
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    if (!only && !is_structure(in, has)) return refuse_mixed(cx, m, c, in);
    if (in->op != KL_OP_FUSION) continue;
    if (only && !kl_str_is(kl_symbol_text(&m->names, in->name), only)) continue;
    units[(*n)++] = (kl_unit){kl_plan_inline(cx, m, &m->comp[in->called[0]], arena), in, comp};
  }
  return KILN_OK;
}

kiln_status kl_plan_units(kl_ctx *cx, const kiln_module *m, const char *only, kl_arena *arena, kl_unit **out,
                          uint32_t *n) {
  const kl_comp *c = &m->comp[m->entry];
  const bool *has = kl_find_ops(m, kl_needs_kernel, arena), *run = kl_find_run(m, has, arena);
  uint32_t most = 1;
  for (uint32_t i = 0; i < m->ncomp; i++) most += run[i] ? m->comp[i].ninstr : 0;
  kl_unit *units = *out = KL_NEW_N(arena, kl_unit, most);
  *n = 0;
  if (!has_run(c, has)) {
    if (only) return kl_invalid(cx, KL_NOWHERE, "no fusion named '%s': ENTRY calls no fusion", only);
    units[(*n)++] = (kl_unit){kl_plan_inline(cx, m, c, arena), NULL, m->entry};
    return KILN_OK;
  }
  for (uint32_t i = 0; i < m->ncomp; i++)
    if (run[i] && (!only || i == m->entry)) KL_TRY(add_units(cx, m, i, has, only, arena, units, n));
  if (only && *n == 0) return kl_invalid(cx, KL_NOWHERE, "no fusion named '%s' in ENTRY", only);
  return KILN_OK;
}
