// Bodies: variables, guards, and the walk over their nodes in order.
//
// A value is there from where it is made to the end of the branch that it is made in; of loops, the last round's stays.
// What a loop carries is there inside; of loops that may have no round that alone is there behind them.

#include "lower/plan/verify/check.h"

// --- variables ------------------------------------------------------------------------------------------------------

static kiln_status check_bindings(kl_check *k) {
  const kl_body *b = k->body;
  bool host = k->p->target.machine == KL_HOST;
  int64_t lanes = kl_extent(b, kl_bound(b, KL_BIND_LANE)), warps = kl_extent(b, kl_bound(b, KL_BIND_WARP));
  kl_vars in_block = kl_bound(b, KL_BIND_LANE) | kl_bound(b, KL_BIND_WARP), thread = kl_bound(b, KL_BIND_THREAD);
  if (b->width != (host ? lanes : 1) || lanes > KL_MAX_COPIES)
    return kl_refute(k, "copies of %u elements, of %lld lanes", b->width, (long long)lanes);
  if (thread) {
    kl_vars others = kl_bound(b, KL_BIND_BLOCK) | kl_bound(b, KL_BIND_STEP) | (host ? 0 : in_block);
    if (thread != 1 || b->vars[0].extent != b->threads || b->blocks || others)
      return kl_refute(k, "%lld threads beside other variables", (long long)b->threads);
    return KILN_OK;
  }
  if (b->threads || b->blocks != kl_extent(b, kl_bound(b, KL_BIND_BLOCK)))
    return kl_refute(k, "variables for other blocks than %lld", (long long)b->blocks);
  if (host) return warps == 1 ? KILN_OK : kl_refute(k, "%lld warps on the host", (long long)warps);
  if (in_block ? lanes != 32 || warps * 32 != k->launch->block : k->launch->block != 1)
    return kl_refute(k, "variables for %lld warps of %lld lanes in blocks of %u threads", (long long)warps,
                     (long long)lanes, k->launch->block);
  return KILN_OK;
}

static kiln_status check_variables(kl_check *k) {
  const kl_body *b = k->body;
  if (b->nvars > KL_MAX_VARS) return kl_refute(k, "%u variables, of at most %d", b->nvars, KL_MAX_VARS);
  for (uint32_t v = 0; v < b->nvars; v++) {
    kl_interval in = kl_dom_interval(b->domain, kl_aff_dim(k->p->affs, v));
    if (b->vars[v].extent < 1 || in.lo != 0 || in.hi != b->vars[v].extent - 1)
      return kl_refute(k, "%lld values of %s, in a domain of %lld..%lld", (long long)b->vars[v].extent, b->vars[v].name,
                       (long long)in.lo, (long long)in.hi);
  }
  return check_bindings(k);
}

// --- guards ---------------------------------------------------------------------------------------------------------

static kiln_status check_groups(kl_check *k, const kl_guard *g) {
  const kl_body *b = k->body;
  for (uint32_t v = 0; v < b->nvars; v++) {
    uint16_t u = g->uniform[v];
    if (!kl_has_var(kl_inner(b), v)) continue;
    bool outer = g->outer == KL_NONE || (u && b->guards[g->outer].uniform[v] % u == 0);
    if (u == 0 || !outer || (u > 1 && !kl_same_over(b, g, v, u)))
      return kl_refute(k, "is not known to be the same for %u values of %s", u, b->vars[v].name);
  }
  return KILN_OK;
}

bool kl_guard_is_there(const kl_check *k, uint32_t guard, kl_vars allowed) {
  for (; guard != KL_NONE; guard = k->body->guards[guard].outer)
    if (!kl_is_index(k, k->body->guards[guard].expr, allowed)) return false;
  return true;
}

static kiln_status check_guards(kl_check *k) {
  const kl_body *b = k->body;
  kl_vars all = (kl_vars)(((uint64_t)1 << b->nvars) - 1);
  for (uint32_t i = 0; i < b->nguards; i++) {
    const kl_guard *g = &b->guards[i];
    kl_look_at(k, KL_OF_GUARD, i);
    if (g->outer != KL_NONE && g->outer >= i) return kl_refute(k, "comes before its outer one");
    if (!kl_is_index(k, g->expr, all)) return kl_refute(k, "depends on what is no variable");
    KL_TRY(check_groups(k, g));
  }
  return KILN_OK;
}

// --- values ---------------------------------------------------------------------------------------------------------

kl_vars kl_known_vars(const kl_check *k) {
  const kl_body *b = k->body;
  kl_vars all = (kl_vars)(((uint64_t)1 << b->nvars) - 1);
  return ((all & ~(kl_bound(b, KL_BIND_REG) | kl_bound(b, KL_BIND_STEP))) | k->loops) & ~k->gone;
}

static void make(kl_check *k, uint32_t step) {
  k->there[step] = true;
  VEC_PUSH(k->cx, &k->made, step);
}

static bool has_value(const kl_check *k, uint32_t step) {
  return step < k->body->nsteps && k->there[step] && !(k->body->steps[step].vars & k->gone);
}

// Variables that the step's own expressions may have: those there are, and those that number its copies.
static kl_vars allowed(const kl_check *k, const kl_step *s) {
  return kl_known_vars(k) | s->regs;
}

static kiln_status check_operands(kl_check *k, const kl_step *s) {
  kl_vars regs = s->regs | (s->kind == KL_STEP_TAKE ? (kl_vars)1 << s->var : 0);
  for (uint32_t i = 0; i < s->noperands; i++) {
    uint32_t o = s->operands[i];
    if (!has_value(k, o)) return kl_refute(k, "v%u is not there", o);
    if (k->body->steps[o].regs & ~regs) return kl_refute(k, "v%u has copies that it has not", o);
  }
  for (uint32_t i = 0; s->kind == KL_STEP_CHOOSE && i + 1 < s->noperands; i++) {
    if (s->guards[i] >= k->body->nguards) return kl_refute(k, "there is no guard g%u", s->guards[i]);
    if (!kl_guard_is_there(k, s->guards[i], allowed(k, s)))
      return kl_refute(k, "g%u depends on what it does not", s->guards[i]);
  }
  if (s->expr && !kl_is_index(k, s->expr, allowed(k, s))) return kl_refute(k, "its index depends on what it does not");
  return KILN_OK;
}

// --- types ----------------------------------------------------------------------------------------------------------

static kl_dtype type_of(const kl_check *k, const kl_step *s, uint32_t operand) {
  return k->body->steps[s->operands[operand]].dtype;
}

static unsigned bits_of(kl_dtype t) {
  return kl_info(t)->bits;
}

// Operands from number `first` on are of one type.
static bool are_same(const kl_check *k, const kl_step *s, uint32_t first, kl_dtype t) {
  for (uint32_t i = first; i < s->noperands; i++)
    if (type_of(k, s, i) != t) return false;
  return true;
}

static bool has_result(const kl_check *k, const kl_step *s) {
  kl_dtype from = type_of(k, s, 0);
  switch (kl_op_table[s->op.op].result) {
  case KL_RESULT_SAME: return s->dtype == from;
  case KL_RESULT_PRED: return s->dtype == KILN_PRED;
  case KL_RESULT_PART: return s->dtype == (kl_is_complex(from) ? kl_info(from)->part : from);
  case KL_RESULT_CPLX: return kl_is_complex(s->dtype) && kl_info(s->dtype)->part == from;
  case KL_RESULT_GIVEN: break;
  }
  switch (s->op.op) {
  case KL_OP_SELECT: return s->dtype == type_of(k, s, 1);
  case KL_OP_BITCAST:
  case KL_OP_BITCAST_CONVERT: return bits_of(s->dtype) == bits_of(from);
  default: return kl_is_array_dtype(s->dtype);
  }
}

static bool is_op(const kl_check *k, const kl_step *s) {
  const kl_op_info *info = &kl_op_table[s->op.op];
  bool select = s->op.op == KL_OP_SELECT, stochastic = s->op.op == KL_OP_STOCHASTIC_CONVERT;
  if (s->op.op != KL_OP_BITCAST && !stochastic && !kl_op_is_elementwise(s->op.op)) return false;
  if (info->arity != (int)s->noperands) return false;
  for (uint32_t i = 0; i < s->noperands; i++)
    if (!(kl_type_mask(type_of(k, s, i)) & (select && i == 0 ? KL_T_P : info->types))) return false;
  if (stochastic && (!kl_is_int(type_of(k, s, 1)) || bits_of(type_of(k, s, 1)) != bits_of(type_of(k, s, 0))))
    return false;
  if (!stochastic && !are_same(k, s, select, type_of(k, s, select))) return false;
  return has_result(k, s);
}

static bool has_types(const kl_check *k, const kl_step *s) {
  switch (s->kind) {
  case KL_STEP_LOAD: return true; // with its access
  case KL_STEP_SCALAR: return kl_is_array_dtype(s->dtype) && s->noperands == 0;
  case KL_STEP_IOTA: return kl_is_array_dtype(s->dtype) && s->noperands == 0 && s->expr;
  case KL_STEP_CHOOSE: return s->noperands > 0 && are_same(k, s, 0, s->dtype);
  case KL_STEP_INDEX: return s->noperands == 1 && kl_type_mask(type_of(k, s, 0)) & KL_T_PI && kl_is_int(s->dtype);
  case KL_STEP_SPLIT: return s->noperands == 1 && s->expr && bits_of(type_of(k, s, 0)) % bits_of(s->dtype) == 0;
  case KL_STEP_JOIN:
    return s->noperands > 0 && are_same(k, s, 0, type_of(k, s, 0)) &&
           s->noperands * bits_of(type_of(k, s, 0)) == bits_of(s->dtype);
  case KL_STEP_OP: return is_op(k, s);
  case KL_STEP_FMA:
    return s->noperands == 3 && are_same(k, s, 0, s->dtype) && (s->dtype == KILN_F32 || s->dtype == KILN_F64);
  case KL_STEP_SLIDE: return s->noperands == 2 && s->expr && are_same(k, s, 0, s->dtype);
  case KL_STEP_TAKE:
  case KL_STEP_EXCHANGE:
  case KL_STEP_SHUFFLE:
  case KL_STEP_ROTATE: return s->noperands == 1 && are_same(k, s, 0, s->dtype);
  case KL_STEP_ANY: return s->noperands == 1 && s->dtype == KILN_PRED && are_same(k, s, 0, s->dtype);
  case KL_STEP_CARRIED: return s->noperands == 0;
  }
  return false;
}

// --- threads in step ------------------------------------------------------------------------------------------------

// Do all threads that differ in `vars` come here together?
static bool is_uniform(const kl_check *k, kl_vars vars) {
  const kl_body *b = k->body;
  if (kl_bound(b, KL_BIND_THREAD)) return false; // the last block may have idle ones
  for (const kl_place *p = k->place; p; p = p->up)
    if (p->kind == KL_NODE_WHILE || p->kind == KL_NODE_BEFORE ||
        (p->kind == KL_NODE_IF && kl_guard_vars(b, p->index) & vars))
      return false;
  return true;
}

static kiln_status check_shuffle(kl_check *k, const kl_step *s) {
  const kl_body *b = k->body;
  uint32_t lanes = k->p->target.machine == KL_HOST ? b->width : 32;
  if (s->distance == 0 || s->distance >= lanes) return kl_refute(k, "no lane of %u is %u away", lanes, s->distance);
  if (!is_uniform(k, kl_bound(b, KL_BIND_LANE))) return kl_refute(k, "not all lanes take part");
  return KILN_OK;
}

static kiln_status check_any(kl_check *k) {
  if (k->p->target.machine == KL_HOST) return kl_refute(k, "lanes of the host do not ask each other");
  if (!is_uniform(k, kl_bound(k->body, KL_BIND_LANE))) return kl_refute(k, "not all lanes take part");
  return KILN_OK;
}

// A lane has the other's copies, so that there are as many of them.
static kiln_status check_exchange(kl_check *k, const kl_step *s) {
  const kl_body *b = k->body;
  uint32_t d = s->distance;
  if (k->p->target.machine == KL_HOST) return kl_refute(k, "lanes of the host do not exchange");
  if (s->lane >= b->nvars || b->vars[s->lane].binding != KL_BIND_LANE || b->vars[s->lane].extent != 2)
    return kl_refute(k, "exchanges with what is no lane of two");
  if (s->var >= b->nvars || b->steps[s->operands[0]].regs != s->regs || !kl_has_var(s->regs, s->var) || d == 0 ||
      d & (d - 1) || b->vars[s->var].extent % (2 * (int64_t)d))
    return kl_refute(k, "exchanges a digit that there is not");
  if (!is_uniform(k, kl_bound(b, KL_BIND_LANE))) return kl_refute(k, "not all lanes take part");
  return KILN_OK;
}

// --- what others see ------------------------------------------------------------------------------------------------

static void note(kl_check *k, kl_event_kind kind, uint32_t number, const kl_access *a, uint32_t guard) {
  const kl_slot_info *s = a ? &k->p->slots[a->slot] : NULL;
  if (s && s->kind != KL_SLOT_SHARED && s->kind != KL_SLOT_SCRATCH && s->alias == KL_NONE) return;
  VEC_PUSH(k->cx, &k->events, (kl_event){kind, number, a, guard, k->place});
}

// --- nodes ----------------------------------------------------------------------------------------------------------

static kiln_status check_take(kl_check *k, const kl_step *s) {
  const kl_body *b = k->body;
  if (s->noperands != 1 || s->var >= b->nvars || s->distance >= b->vars[s->var].extent)
    return kl_refute(k, "takes value %u of what has not so many", s->distance);
  if (!has_value(k, s->operands[0]) || !kl_has_var(b->steps[s->operands[0]].regs, s->var) ||
      kl_has_var(s->regs, s->var))
    return kl_refute(k, "takes one of %s, which is there once", b->vars[s->var].name);
  return KILN_OK;
}

static kiln_status check_split(kl_check *k, const kl_step *s) {
  kl_conditions where;
  int64_t parts = bits_of(type_of(k, s, 0)) / bits_of(s->dtype);
  kl_conditions_at(k, k->place, KL_NONE, &where);
  if (kl_is_within(k, s->expr, 0, parts - 1, &where)) return KILN_OK;
  return kl_refute(k, "the part is not known to be one of %lld", (long long)parts);
}

// Words are slid: as many copies as make some, a power of two, so that halves of them are words, too.
static kiln_status check_slide(kl_check *k, const kl_step *s) {
  const kl_body *b = k->body;
  unsigned bits = bits_of(s->dtype);
  kl_conditions where;
  if (k->p->target.machine == KL_HOST || (bits != 8 && bits != 16)) return kl_refute(k, "slides what is not in words");
  if (s->var >= b->nvars || !kl_has_var(s->regs, s->var)) return kl_refute(k, "slides along what has no copies");
  int64_t n = b->vars[s->var].extent;
  if (n & (n - 1) || n * bits % 32) return kl_refute(k, "slides along %lld copies", (long long)n);
  for (uint32_t i = 0; i < s->noperands; i++)
    if (!kl_has_var(b->steps[s->operands[i]].regs, s->var)) return kl_refute(k, "slides one copy");
  if (kl_has_var(kl_vars_of(b, s->expr), s->var)) return kl_refute(k, "slides copies apart");
  kl_conditions_at(k, k->place, KL_NONE, &where);
  if (kl_is_within(k, s->expr, 0, n - 1, &where)) return KILN_OK;
  return kl_refute(k, "does not slide by fewer than %lld copies", (long long)n);
}

static kiln_status check_copies(kl_check *k, const kl_step *s) {
  const kl_body *b = k->body;
  if (s->regs & ~kl_bound(b, KL_BIND_REG)) return kl_refute(k, "copies are numbered by variables that are not reg");
  int64_t n = kl_extent(b, s->regs) * b->width;
  return n <= KL_MAX_COPIES ? KILN_OK : kl_refute(k, "%lld copies, of at most %d", (long long)n, KL_MAX_COPIES);
}

static kiln_status check_step(kl_check *k, uint32_t i) {
  if (i >= k->body->nsteps) return kl_refute(k, "there is no step v%u", i);
  const kl_step *s = &k->body->steps[i];
  kl_look_at(k, KL_OF_STEP, i);
  if (k->there[i] || s->kind == KL_STEP_CARRIED) return kl_refute(k, "is made twice");
  KL_TRY(check_copies(k, s));
  if (s->kind == KL_STEP_TAKE) KL_TRY(check_take(k, s));
  KL_TRY(check_operands(k, s));
  if (!has_types(k, s)) return kl_refute(k, "its operands are not of its type");
  if (s->kind == KL_STEP_LOAD) KL_TRY(kl_check_load(k, s));
  KL_TRY(kl_check_dependence(k, i));
  if (s->kind == KL_STEP_SPLIT) KL_TRY(check_split(k, s));
  if (s->kind == KL_STEP_SLIDE) KL_TRY(check_slide(k, s));
  if (s->kind == KL_STEP_SHUFFLE || s->kind == KL_STEP_ROTATE) KL_TRY(check_shuffle(k, s));
  if (s->kind == KL_STEP_EXCHANGE) KL_TRY(check_exchange(k, s));
  if (s->kind == KL_STEP_ANY) KL_TRY(check_any(k));
  if (s->kind == KL_STEP_LOAD) note(k, KL_READS, i, &s->access, s->access.guard);
  make(k, i);
  return KILN_OK;
}

static kiln_status check_store(kl_check *k, uint32_t i) {
  if (i >= k->body->nstores) return kl_refute(k, "there is no store %u", i);
  const kl_store *s = &k->body->stores[i];
  kl_look_at(k, KL_OF_STORE, i);
  if (k->stored[i]) return kl_refute(k, "is done twice");
  if (s->how == KL_STORE_REPLACE) return kl_refute(k, "replaces what nobody has made anything of");
  k->stored[i] = k->place;
  if (!has_value(k, s->step)) return kl_refute(k, "v%u is not there", s->step);
  KL_TRY(kl_check_store(k, s));
  bool shared = k->p->slots[s->access.slot].kind == KL_SLOT_SHARED;
  if (s->how == KL_STORE_PUT) note(k, KL_WRITES, i, &s->access, s->keep);
  if (s->how != KL_STORE_PUT && shared) note(k, KL_CHANGES, i, &s->access, s->keep);
  return KILN_OK;
}

// --- nests ----------------------------------------------------------------------------------------------------------

static kiln_status check_seq(kl_check *k, const kl_seq *s);

static void forget(kl_check *k, size_t made) {
  while (k->made.n > made) k->there[k->made.p[--k->made.n]] = false;
}

// Has the carried value the type of what it is at first, or next, and its copies?
static kiln_status check_carried(kl_check *k, uint32_t value, uint32_t from) {
  const kl_step *s = &k->body->steps[value];
  kl_look_at(k, KL_OF_STEP, value);
  if (!has_value(k, from)) return kl_refute(k, "v%u is not there", from);
  const kl_step *f = &k->body->steps[from];
  if (f->dtype != s->dtype || f->regs & ~s->regs) return kl_refute(k, "v%u is of another type", from);
  return KILN_OK;
}

static kiln_status check_firsts(kl_check *k, const kl_nest *nest) {
  for (uint32_t i = 0; i < nest->ncarried; i++) {
    uint32_t value = nest->carried[i].value;
    if (value >= k->body->nsteps || k->body->steps[value].kind != KL_STEP_CARRIED)
      return kl_refute(k, "a loop carries what is no such value");
    kl_look_at(k, KL_OF_STEP, value);
    if (k->there[value]) return kl_refute(k, "is carried twice");
    KL_TRY(check_copies(k, &k->body->steps[value]));
    KL_TRY(check_carried(k, value, nest->carried[i].first));
    KL_TRY(kl_check_dependence(k, value));
  }
  for (uint32_t i = 0; i < nest->ncarried; i++) {
    if (k->there[nest->carried[i].value]) return kl_refute(k, "is carried twice");
    k->there[nest->carried[i].value] = true;
  }
  return KILN_OK;
}

static kiln_status check_loop(kl_check *k, const kl_node *n) {
  const kl_body *b = k->body;
  kl_look_at(k, KL_OF_BODY, 0);
  if (n->index >= b->nvars || b->vars[n->index].binding != KL_BIND_STEP || kl_has_var(k->loops, n->index))
    return kl_refute(k, "a loop over what is no variable of one");
  KL_TRY(check_firsts(k, n->nest));
  k->loops |= (kl_vars)1 << n->index;
  KL_TRY(check_seq(k, &n->nest->inside));
  k->loops &= ~((kl_vars)1 << n->index);
  for (uint32_t i = 0; i < n->nest->ncarried; i++)
    KL_TRY(check_carried(k, n->nest->carried[i].value, n->nest->carried[i].next));
  for (uint32_t i = 0; i < n->nest->ncarried; i++) k->there[n->nest->carried[i].value] = false;
  return KILN_OK;
}

static kiln_status check_if(kl_check *k, const kl_node *n) {
  const kl_body *b = k->body;
  size_t made = k->made.n;
  kl_look_at(k, KL_OF_BODY, 0);
  if (n->index >= b->nguards) return kl_refute(k, "there is no guard g%u", n->index);
  kl_vars known = kl_known_vars(k) & ~(b->width > 1 ? kl_bound(b, KL_BIND_LANE) : 0);
  if (!kl_guard_is_there(k, n->index, known))
    return kl_refute(k, "a branch on g%u, which is not one condition", n->index);
  KL_TRY(check_seq(k, &n->nest->inside));
  forget(k, made);
  return KILN_OK;
}

// Nothing inside is done for others.
static bool makes_values_only(const kl_seq *s) {
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    if (n->kind == KL_NODE_WHILE ? !n->nest || !makes_values_only(&n->nest->inside) : n->kind != KL_NODE_STEP)
      return false;
  }
  return true;
}

// Copies of the condition say of which copies there is another round: all that is carried has as many.
static kiln_status check_while(kl_check *k, const kl_node *n) {
  const kl_body *b = k->body;
  const kl_nest *nest = n->nest;
  size_t made = k->made.n;
  bool carries = false;
  KL_TRY(check_firsts(k, nest));
  for (uint32_t i = 0; i < nest->ncarried; i++) {
    kl_look_at(k, KL_OF_STEP, nest->carried[i].value);
    carries |= nest->carried[i].value == n->index;
    if (n->index < b->nsteps && b->steps[n->index].regs & ~b->steps[nest->carried[i].value].regs)
      return kl_refute(k, "v%u has copies that it has not", n->index);
  }
  kl_look_at(k, KL_OF_BODY, 0);
  if (!carries || b->steps[n->index].dtype != KILN_PRED)
    return kl_refute(k, "a loop while v%u, which is no truth that it carries", n->index);
  if (!makes_values_only(&nest->inside)) return kl_refute(k, "a loop of unknown rounds does more than make values");
  KL_TRY(check_seq(k, &nest->inside));
  for (uint32_t i = 0; i < nest->ncarried; i++) KL_TRY(check_carried(k, nest->carried[i].value, nest->carried[i].next));
  forget(k, made);
  for (uint32_t i = 0; i < nest->ncarried; i++) make(k, nest->carried[i].value);
  return KILN_OK;
}

// What is made of the element is there inside only.

static kiln_status check_update(kl_check *k, const kl_node *n) {
  size_t made = k->made.n;
  const kl_carried *c = n->nest->carried;
  if (n->index >= k->body->nstores) return kl_refute(k, "there is no store %u", n->index);
  const kl_store *s = &k->body->stores[n->index];
  kl_look_at(k, KL_OF_STORE, n->index);
  if (k->stored[n->index] || s->how != KL_STORE_REPLACE) return kl_refute(k, "is done twice, or no update");
  if (n->nest->ncarried != 1 || c->value >= k->body->nsteps || k->there[c->value] || c->next != s->step)
    return kl_refute(k, "updates what is no element");
  const kl_step *old = &k->body->steps[c->value];
  if (old->kind != KL_STEP_CARRIED || old->regs != s->access.regs || !makes_values_only(&n->nest->inside))
    return kl_refute(k, "makes more than the element's value");
  KL_TRY(check_copies(k, old));
  KL_TRY(kl_check_dependence(k, c->value));
  k->stored[n->index] = k->place->up;
  k->there[c->value] = true;
  KL_TRY(check_seq(k, &n->nest->inside));
  kl_look_at(k, KL_OF_STORE, n->index);
  if (!has_value(k, s->step)) return kl_refute(k, "v%u is not there", s->step);
  k->there[c->value] = false;
  if (old->dtype != k->body->steps[s->step].dtype) return kl_refute(k, "changes the element's type");
  KL_TRY(kl_check_store(k, s));
  forget(k, made);
  return KILN_OK;
}

static kiln_status check_arrival(kl_check *k, const kl_arrival *a) {
  const kl_body *b = k->body;
  kl_vars blocks = kl_bound(b, KL_BIND_BLOCK), others = blocks & ~a->of;
  kl_look_at(k, KL_OF_BODY, 0);
  if (k->p->target.machine != KL_NVPTX || b->blocks == 0) return kl_refute(k, "blocks that come last, where none are");
  if (k->place->up->kind != KL_NODE_STEP) return kl_refute(k, "blocks come last in a loop or branch");
  if (k->gone_once) return kl_refute(k, "blocks come last twice");
  if (k->met) return kl_refute(k, "blocks come last that have met");
  k->gone_once = true;
  if (a->of & ~blocks) return kl_refute(k, "counts what are no blocks");
  if (a->slot >= k->p->nslots || !k->p->slots[a->slot].zero || k->p->slots[a->slot].shape->dtype != KILN_U32)
    return kl_refute(k, "s%u is no counter", a->slot);
  if (!kl_is_given(k, a->slot)) return kl_refute(k, "s%u is no argument", a->slot);
  if (k->counts[a->slot]++) return kl_refute(k, "s%u counts twice", a->slot);
  kl_conditions none = {.all = true};
  kl_points points;
  kl_form form;
  if (!kl_is_index(k, a->element, others) ||
      !kl_is_within(k, a->element, 0, k->p->slots[a->slot].shape->count - 1, &none))
    return kl_refute(k, "the counter is not known to be one of s%u", a->slot);
  kl_points_of(k, others, &none, &points);
  if (kl_points_differ(&points, a->element, &form) != KL_YES)
    return kl_refute(k, "different blocks may count in one element of s%u", a->slot);
  return KILN_OK;
}

// What others have made is gone behind it, as it was made by one block.
static kiln_status check_last(kl_check *k, const kl_node *n) {
  size_t made = k->made.n;
  KL_TRY(check_arrival(k, &n->nest->arrival));
  k->gone = n->nest->arrival.of;
  KL_TRY(check_seq(k, &n->nest->inside));
  k->gone = 0;
  forget(k, made);
  return KILN_OK;
}

// Is all that is made here the same, whoever makes it of the same values?
static bool is_anybodys(const kl_check *k, const kl_seq *s) {
  const kl_body *b = k->body;
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    if (n->nest && !is_anybodys(k, &n->nest->inside)) return false;
    if (n->kind != KL_NODE_STEP || n->index >= b->nsteps) continue;
    const kl_step *x = &b->steps[n->index];
    kl_vars own = x->expr ? kl_vars_of(b, x->expr) : 0;
    if (x->kind == KL_STEP_LOAD) own |= kl_vars_of(b, x->access.element);
    if (x->kind == KL_STEP_LOAD && x->access.guard < b->nguards) own |= kl_guard_vars(b, x->access.guard);
    for (uint32_t g = 0; x->kind == KL_STEP_CHOOSE && g + 1 < x->noperands; g++)
      if (x->guards[g] < b->nguards) own |= kl_guard_vars(b, x->guards[g]);
    if (own & ~kl_bound(b, KL_BIND_BLOCK)) return false;
  }
  return true;
}

static kiln_status check_joined(kl_check *k, const kl_nest *nest) {
  const kl_step *steps = k->body->steps;
  for (uint32_t i = 0; i < nest->ncarried; i++) {
    uint32_t value = nest->carried[i].value, other = i < nest->ncarried / 2 ? i : i - nest->ncarried / 2;
    kl_look_at(k, KL_OF_STEP, value);
    if (steps[value].regs) return kl_refute(k, "has copies, of what a block makes once");
    if (nest->carried[i].next != nest->carried[other].next ||
        steps[value].dtype != steps[nest->carried[other].value].dtype)
      return kl_refute(k, "is joined to another value than the left one");
  }
  return KILN_OK;
}

// Blocks that are lower in a variable have lower numbers, as numbers have their digits: nobody waits for who may not
// begin.
static kiln_status check_waiting(kl_check *k, const kl_node *n) {
  const kl_body *b = k->body;
  const kl_tickets *t = k->launch->tickets;
  kl_look_at(k, KL_OF_BODY, 0);
  if (!t) return kl_refute(k, "waits for blocks that have no tickets");
  if (k->place->up->kind != KL_NODE_STEP) return kl_refute(k, "blocks wait in a loop or branch");
  if (k->waited || k->gone_once || k->met) return kl_refute(k, "blocks wait twice, or behind others that do");
  k->waited = true;
  if (!kl_has_var(kl_bound(b, KL_BIND_BLOCK), n->index)) return kl_refute(k, "waits along what are no blocks");
  if (n->nest->ncarried == 0 || n->nest->ncarried % 2) return kl_refute(k, "joins what are no two of a value");
  if (!makes_values_only(&n->nest->inside) || !is_anybodys(k, &n->nest->inside))
    return kl_refute(k, "joins by what is not the same in every thread");
  return KILN_OK;
}

static kiln_status check_before(kl_check *k, const kl_node *n) {
  const kl_body *b = k->body;
  const kl_tickets *t = k->launch->tickets;
  const kl_nest *nest = n->nest;
  size_t made = k->made.n;
  KL_TRY(check_waiting(k, n));
  KL_TRY(check_firsts(k, nest));
  KL_TRY(check_joined(k, nest));
  kl_look_at(k, KL_OF_BODY, 0);
  uint32_t parts = kl_before_parts(b, nest);
  if (k->p->slots[t->values].shape->count !=
      (int64_t)parts * kl_levels_before(b->vars[n->index].extent) * k->launch->grid)
    return kl_refute(k, "s%u has not all levels of its values", t->values);
  if (k->p->slots[t->values].shape->dtype != kl_before_words(b, nest))
    return kl_refute(k, "s%u does not hold its values", t->values);
  if (k->p->slots[t->told].shape->count != 1 + (int64_t)parts)
    return kl_refute(k, "s%u has not room for its values", t->told);
  KL_TRY(check_seq(k, &nest->inside));
  for (uint32_t i = 0; i < nest->ncarried; i++) KL_TRY(check_carried(k, nest->carried[i].value, nest->carried[i].next));
  forget(k, made);
  for (uint32_t i = 0; i < nest->ncarried; i++) k->there[nest->carried[i].value] = false;
  for (uint32_t i = 0; i < nest->ncarried / 2; i++) make(k, nest->carried[i].value);
  return KILN_OK;
}

static kiln_status check_inside(kl_check *k, const kl_node *n) {
  switch (n->kind) {
  case KL_NODE_LOOP: return check_loop(k, n);
  case KL_NODE_WHILE: return check_while(k, n);
  case KL_NODE_IF: return check_if(k, n);
  case KL_NODE_BEFORE: return check_before(k, n);
  case KL_NODE_LAST: return check_last(k, n);
  default: return check_update(k, n);
  }
}

static kiln_status check_nest(kl_check *k, const kl_node *n) {
  if (!n->nest) return kl_refute(k, "a loop or branch around nothing");
  const kl_place *up = k->place;
  kl_place here = {up, n->kind, n->index, n->kind == KL_NODE_LAST ? n->nest->arrival.of : 0};
  k->place = kl_arena_dup(k->arena, &here, sizeof here);
  if (n->kind == KL_NODE_LAST || n->kind == KL_NODE_BEFORE) note(k, KL_SYNCS, 0, NULL, KL_NONE);
  note(k, KL_ENTERS, 0, NULL, KL_NONE);
  KL_TRY(check_inside(k, n));
  note(k, KL_LEAVES, 0, NULL, KL_NONE);
  k->place = up;
  return KILN_OK;
}

static kiln_status check_sync(kl_check *k) {
  const kl_body *b = k->body;
  kl_look_at(k, KL_OF_BODY, 0);
  note(k, KL_SYNCS, 0, NULL, KL_NONE);
  if (is_uniform(k, kl_bound(b, KL_BIND_WARP) | kl_bound(b, KL_BIND_LANE))) return KILN_OK;
  return kl_refute(k, "a sync that not all threads come to");
}

// All blocks of a cluster come here, each with all its threads.
static kiln_status check_meet(kl_check *k) {
  const kl_plan_launch *l = k->launch;
  kl_look_at(k, KL_OF_BODY, 0);
  note(k, KL_SYNCS, 1, NULL, KL_NONE);
  if (l->cluster < 2 || l->cluster > kl_most_in_cluster(&k->p->target))
    return kl_refute(k, "no cluster of blocks meets");
  if (k->place->kind != KL_NODE_STEP) return kl_refute(k, "blocks meet in a loop or branch");
  if (k->gone_once) return kl_refute(k, "blocks meet behind one that comes last");
  if (l->nparts != 1 || k->p->parts[l->first_part].tail.threads || !k->body->blocks ||
      !kl_cluster_vars(k->body, l->cluster))
    return kl_refute(k, "not all blocks of a cluster of %u are known to meet", l->cluster);
  k->met = true;
  return KILN_OK;
}

static kiln_status check_node(kl_check *k, const kl_node *n) {
  switch (n->kind) {
  case KL_NODE_STEP: return check_step(k, n->index);
  case KL_NODE_STORE: return check_store(k, n->index);
  case KL_NODE_MEET: return check_meet(k);
  case KL_NODE_SYNC: return check_sync(k);
  default: return check_nest(k, n);
  }
}

static kiln_status check_seq(kl_check *k, const kl_seq *s) {
  for (uint32_t i = 0; i < s->n; i++) KL_TRY(check_node(k, &s->nodes[i]));
  return KILN_OK;
}

kiln_status kl_check_body(kl_check *k) {
  const kl_body *b = k->body;
  k->there = KL_NEW_N(k->arena, bool, b->nsteps + 1);
  k->stored = KL_NEW_N(k->arena, const kl_place *, b->nstores + 1);
  k->loops = k->gone = 0;
  k->gone_once = k->met = k->waited = false;
  k->place = KL_NEW(k->arena, kl_place);
  k->made.n = k->events.n = 0;
  kl_look_at(k, KL_OF_BODY, 0);
  KL_TRY(check_variables(k));
  k->anywhere = true;
  KL_TRY(check_guards(k));
  k->anywhere = false;
  KL_TRY(check_seq(k, &b->root));
  for (uint32_t i = 0; i < b->nstores; i++) {
    kl_look_at(k, KL_OF_STORE, i);
    if (!k->stored[i]) return kl_refute(k, "is never done");
  }
  return KILN_OK;
}
