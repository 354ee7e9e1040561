// What must hold of a body whatever is executed: its variables, what is to be had where, and which variables what
// depends on.

#include "machine.h"

// The place in the tree.
typedef struct scope {
  bool *had;       // by step: its value is to be had
  kl_vars open;    // STEP variables of the loops around
  kl_vars gone;    // BLOCK variables without values
  uint32_t *times; // by step, then by store: how often it is done
} scope;

// --- variables ------------------------------------------------------------------------------------------------------

static void check_vars(machine *m) {
  const kl_body *b = m->body;
  kl_vars threads = bound_to(b, KL_BIND_THREAD), blocks = bound_to(b, KL_BIND_BLOCK), warps = bound_to(b, KL_BIND_WARP);
  kl_vars lanes = bound_to(b, KL_BIND_LANE);
  REQUIRE(m, b->nvars <= KL_MAX_VARS, "%u variables", b->nvars);
  for (uint32_t v = 0; v < b->nvars; v++) {
    kl_interval in = kl_dom_interval(b->domain, kl_aff_dim(m->plan->affs, v));
    REQUIRE(m, b->vars[v].extent > 0 && in.lo == 0 && in.hi == b->vars[v].extent - 1, "variable %s in %lld..%lld",
            b->vars[v].name, (ll)in.lo, (ll)in.hi);
  }
  REQUIRE(m, b->width == (m->host ? points_of(b, lanes) : 1), "copies of %u elements", b->width);
  if (b->threads) {
    REQUIRE(m, threads == 1 && b->vars[0].extent == b->threads, "%lld threads", (ll)b->threads);
    REQUIRE(m, !blocks && !warps && (m->host || !lanes), "threads of all blocks in one row, and others");
    return;
  }
  REQUIRE(m, !threads && b->blocks == points_of(b, blocks), "%lld blocks", (ll)b->blocks);
  if (m->host) {
    REQUIRE(m, points_of(b, warps) == 1, "several warps on the host");
    return;
  }
  REQUIRE(m, m->launch->block % WARP == 0, "a block of %u threads", m->launch->block);
  REQUIRE(m, !warps || points_of(b, warps) == m->launch->block / WARP, "%lld warps in a block of %u threads",
          (ll)points_of(b, warps), m->launch->block);
  REQUIRE(m, !lanes || points_of(b, lanes) == WARP, "%lld lanes in a warp", (ll)points_of(b, lanes));
}

static void check_guard_list(machine *m) {
  const kl_body *b = m->body;
  for (uint32_t g = 0; g < b->nguards; g++) {
    REQUIRE(m, b->guards[g].outer == KL_NONE || b->guards[g].outer < g, "guard %u before its outer one", g);
    for (uint32_t v = 0; v < b->nvars; v++) {
      if (!has_var(side_by_side(m), v) || b->vars[v].extent == 1) continue;
      uint32_t u = b->guards[g].uniform[v];
      REQUIRE(m, u && b->vars[v].extent % u == 0, "guard %u for %u of %lld values", g, u, (ll)b->vars[v].extent);
    }
  }
}

static void check_symbols(machine *m) {
  const kl_body *b = m->body;
  for (uint32_t i = 0; i < b->nsymbols; i++) {
    const kl_symbol *x = &b->symbols[i];
    if (i == 0 && m->plan->counted) {
      REQUIRE(m, x->step == KL_NONE && x->lo <= m->rows && m->rows <= x->hi && !x->vars, "the number of rows");
      continue;
    }
    REQUIRE(m, x->step < b->nsteps && b->steps[x->step].kind == KL_STEP_INDEX && b->steps[x->step].var == i,
            "symbol %u is what step %u makes", i, x->step);
    REQUIRE(m, x->lo <= x->hi && x->vars == b->steps[x->step].vars, "symbol %u", i);
    for (uint32_t v = 0; v < b->nvars; v++)
      if (has_var(x->vars & side_by_side(m), v) && b->vars[v].extent > 1)
        REQUIRE(m, x->uniform[v], "symbol %u over %s", i, b->vars[v].name);
  }
}

// Variables that have values wherever the body is: those of the machine.
static kl_vars given(const machine *m) {
  return ~(bound_to(m->body, KL_BIND_STEP) | bound_to(m->body, KL_BIND_REG));
}

static void check_taken(machine *m, const scope *s, uint32_t step, const char *what, uint32_t n) {
  REQUIRE(m, step < m->body->nsteps && s->had[step], "%s %u: step %u is not to be had", what, n, step);
}

// `regs`: those that have values; `copies`: those in whose copies symbols are taken.
static void check_index(machine *m, const scope *s, const kl_aff *e, kl_vars regs, kl_vars copies, const char *what,
                        uint32_t number) {
  named n = {0};
  names_in(m, e, &n);
  kl_vars unknown = n.vars & (~(given(m) | s->open | regs) | s->gone);
  REQUIRE(m, !unknown, "%s %u: %s has no value there", what, number, m->body->vars[__builtin_ctz(unknown)].name);
  for (uint32_t i = 0; i < m->body->nsymbols; i++) {
    if (!has_symbol(&n, i)) continue;
    uint32_t step = m->body->symbols[i].step;
    if (step == KL_NONE) continue;
    check_taken(m, s, step, what, number);
    REQUIRE(m, !(m->body->steps[step].regs & ~copies), "%s %u: symbol %u has more copies", what, number, i);
  }
}

static void check_guard_at(machine *m, const scope *s, uint32_t guard, kl_vars regs, const char *what,
                           uint32_t number) {
  for (; guard != KL_NONE; guard = m->body->guards[guard].outer) {
    REQUIRE(m, guard < m->body->nguards, "%s %u: guard %u", what, number, guard);
    check_index(m, s, m->body->guards[guard].expr, regs, regs, what, number);
  }
}

// --- accesses -------------------------------------------------------------------------------------------------------

static void check_slot(machine *m, uint32_t slot) {
  const kl_slot_info *s = &m->plan->slots[slot];
  REQUIRE(m, slot < m->plan->nslots, "slot %u", slot);
  bool given = s->kind == KL_SLOT_CONST || s->kind == KL_SLOT_SHARED;
  for (uint32_t i = 0; i < m->launch->nargs; i++) given = given || m->launch->args[i] == slot;
  REQUIRE(m, given, "slot %u is no argument", slot);
  if (s->kind != KL_SLOT_SHARED) return;
  REQUIRE(m, s->launch == m->launch - m->plan->launches, "slot %u is another launch's", slot);
  REQUIRE(m, s->at % s->align == 0 && s->at + s->bytes <= m->launch->shared_bytes, "slot %u: %lld bytes from %u on",
          slot, (ll)s->bytes, s->at);
  REQUIRE(m, s->bytes >= (s->shape->count * kl_info(s->shape->dtype)->bits + 7) / 8, "slot %u: %lld bytes", slot,
          (ll)s->bytes);
}

static void check_chunks(machine *m, const kl_access *a, const char *what, uint32_t n) {
  const kl_body *b = m->body;
  kl_vars runs = m->host ? bound_to(b, KL_BIND_LANE) : a->regs;
  REQUIRE(m, a->vec && a->vec * a->nchunks == points_of(b, a->regs) * b->width, "%s %u: %u chunks of %u elements", what,
          n, a->nchunks, a->vec);
  REQUIRE(m, a->run == KL_NONE ? a->vec == 1 : has_var(runs, a->run), "%s %u: runs along variable %u", what, n, a->run);
  if (a->run != KL_NONE)
    REQUIRE(m, b->vars[a->run].extent % a->vec == 0, "%s %u: chunks of %u of %lld elements", what, n, a->vec,
            (ll)b->vars[a->run].extent);
  REQUIRE(m, !a->reversed || (a->stride == 1 && a->vec > 1), "%s %u: reversed with stride %lld", what, n,
          (ll)a->stride);
}

static void check_alignment(machine *m, const kl_access *a, const char *what, uint32_t n) {
  const kl_slot_info *s = &m->plan->slots[a->slot];
  unsigned bits = kl_info(s->shape->dtype)->bits, part = kl_is_complex(s->shape->dtype) ? bits / 2 : bits;
  bool whole = a->stride == 1 && a->vec > 1;
  REQUIRE(m, (a->align & (a->align - 1)) == 0 && a->align <= s->align, "%s %u: alignment %u", what, n, a->align);
  if (whole || bits >= 8) REQUIRE(m, a->align * 8 >= (part < 8 ? 8 : part), "%s %u: alignment %u", what, n, a->align);
  if (whole) REQUIRE(m, a->vec * bits % 8 == 0, "%s %u: %u elements of %u bits", what, n, a->vec, bits);
}

static void check_access(machine *m, const scope *s, const kl_access *a, const char *what, uint32_t n) {
  const kl_body *b = m->body;
  kl_vars lanes = m->host ? bound_to(b, KL_BIND_LANE) : 0;
  check_slot(m, a->slot);
  REQUIRE(m, !(a->regs & ~bound_to(b, KL_BIND_REG)), "%s %u: registers of variables %#x", what, n, a->regs);
  check_chunks(m, a, what, n);
  check_alignment(m, a, what, n);
  for (uint32_t c = 0; c < a->nchunks; c++) {
    named names = {0};
    check_index(m, s, a->base[c], 0, a->regs, what, n);
    names_in(m, a->base[c], &names);
    REQUIRE(m, !(names.vars & lanes), "%s %u: a base that depends on the lane", what, n);
  }
  check_guard_at(m, s, a->guard, a->regs, what, n);
  if (a->guard != KL_NONE && a->vec > 1)
    REQUIRE(m, b->guards[a->guard].uniform[a->run] >= a->vec, "%s %u: guard inside a chunk", what, n);
}

// --- steps ----------------------------------------------------------------------------------------------------------

static kl_dtype type_of(const machine *m, uint32_t step) {
  return m->body->steps[step].dtype;
}

static void check_operands(machine *m, const scope *s, uint32_t n) {
  const kl_body *b = m->body;
  const kl_step *x = &b->steps[n];
  for (uint32_t i = 0; i < x->noperands; i++) {
    check_taken(m, s, x->operands[i], "step", n);
    kl_vars regs = b->steps[x->operands[i]].regs;
    if (x->kind == KL_STEP_TAKE) regs &= ~((kl_vars)1 << x->var);
    REQUIRE(m, !(regs & ~x->regs), "step %u: step %u has more copies", n, x->operands[i]);
    REQUIRE(m, b->steps[x->operands[i]].kind != KL_STEP_INDEX, "step %u: an index as operand", n);
    bool moves = x->kind == KL_STEP_CHOOSE || x->kind == KL_STEP_TAKE || x->kind == KL_STEP_SHUFFLE ||
                 x->kind == KL_STEP_ROTATE || x->kind == KL_STEP_EXCHANGE || x->kind == KL_STEP_ANY ||
                 x->kind == KL_STEP_SLIDE;
    REQUIRE(m, !moves || type_of(m, x->operands[i]) == x->dtype, "step %u: of another type", n);
  }
}

static void check_step(machine *m, const scope *s, uint32_t n) {
  const kl_body *b = m->body;
  const kl_step *x = &b->steps[n];
  REQUIRE(m, !(x->regs & ~bound_to(b, KL_BIND_REG)), "step %u: registers of variables %#x", n, x->regs);
  check_operands(m, s, n);
  if (x->expr) check_index(m, s, x->expr, x->regs, x->regs, "step", n);
  switch (x->kind) {
  case KL_STEP_LOAD:
    check_access(m, s, &x->access, "step", n);
    REQUIRE(m, x->access.regs == x->regs, "step %u: copies of another number than it loads", n);
    REQUIRE(m, m->plan->slots[x->access.slot].shape->dtype == x->dtype, "step %u: of another type", n);
    break;
  case KL_STEP_CHOOSE:
    for (uint32_t i = 0; i + 1 < x->noperands; i++) check_guard_at(m, s, x->guards[i], x->regs, "step", n);
    break;
  case KL_STEP_TAKE:
    REQUIRE(m, x->noperands == 1 && has_var(b->steps[x->operands[0]].regs, x->var), "step %u: nothing to take", n);
    REQUIRE(m, x->distance < b->vars[x->var].extent, "step %u: copy %u", n, x->distance);
    break;
  case KL_STEP_SLIDE:
    REQUIRE(m, x->noperands == 2 && !m->host && x->expr && x->var < b->nvars && has_var(x->regs, x->var),
            "step %u: nothing to slide", n);
    for (uint32_t i = 0; i < 2; i++)
      REQUIRE(m, has_var(b->steps[x->operands[i]].regs, x->var), "step %u: one copy slides", n);
    break;
  case KL_STEP_ROTATE:
  case KL_STEP_SHUFFLE: {
    uint32_t lanes = lanes_in_warp(m), d = x->distance;
    REQUIRE(m, x->noperands == 1 && !b->threads && bound_to(b, KL_BIND_LANE), "step %u: no lanes", n);
    REQUIRE(m, d && d < lanes, "step %u: distance %u of %u lanes", n, d, lanes);
    break;
  }
  case KL_STEP_EXCHANGE:
    REQUIRE(m, x->noperands == 1 && !m->host && !b->threads, "step %u: no lanes", n);
    REQUIRE(m, x->lane < b->nvars && b->vars[x->lane].binding == KL_BIND_LANE && b->vars[x->lane].extent == 2,
            "step %u: no lane of two", n);
    REQUIRE(m,
            x->var < b->nvars && has_var(b->steps[x->operands[0]].regs, x->var) &&
                b->steps[x->operands[0]].regs == x->regs,
            "step %u: nothing to exchange", n);
    REQUIRE(m,
            x->distance && (x->distance & (x->distance - 1)) == 0 &&
                b->vars[x->var].extent % (2 * (int64_t)x->distance) == 0,
            "step %u: digit %u", n, x->distance);
    break;
  case KL_STEP_ANY:
    REQUIRE(m, x->noperands == 1 && !m->host && !b->threads && x->dtype == KILN_PRED, "step %u: no lanes' truth", n);
    break;
  case KL_STEP_INDEX:
    REQUIRE(m, x->var < b->nsymbols && b->symbols[x->var].step == n, "step %u: symbol %u", n, x->var);
    REQUIRE(m, x->noperands == 1, "step %u: %u operands", n, x->noperands);
    REQUIRE(m, kl_is_int(b->steps[*x->operands].dtype) || b->steps[*x->operands].dtype == KILN_PRED,
            "step %u: no integer", n);
    break;
  case KL_STEP_CARRIED: broken(m, "step %u is carried, and stands in the tree", n);
  default: break;
  }
}

static void check_store(machine *m, const scope *s, uint32_t n) {
  const kl_body *b = m->body;
  const kl_store *x = &b->stores[n];
  check_taken(m, s, x->step, "store", n);
  check_access(m, s, &x->access, "store", n);
  const kl_slot_info *slot = &m->plan->slots[x->access.slot];
  unsigned bits = kl_info(slot->shape->dtype)->bits, per_byte = bits < 8 ? 8 / bits : 1;
  REQUIRE(m, slot->shape->dtype == type_of(m, x->step), "store %u: of another type", n);
  REQUIRE(m, slot->kind != KL_SLOT_IN && slot->kind != KL_SLOT_CONST, "store %u: slot %u is written", n,
          x->access.slot);
  REQUIRE(m, x->access.vec == 1 || (x->access.stride == 1 && !x->access.reversed), "store %u: stride %lld", n,
          (ll)x->access.stride);
  if (x->how == KL_STORE_PUT)
    REQUIRE(m, x->access.vec % per_byte == 0 && x->access.align, "store %u: parts of bytes", n);
  REQUIRE(m, x->access.guard == KL_NONE, "store %u: cannot go elsewhere", n);
  REQUIRE(m, !(b->steps[x->step].regs & ~x->access.regs), "store %u: step %u has more copies", n, x->step);
  check_guard_at(m, s, x->keep, x->access.regs, "store", n);
  if (x->keep != KL_NONE && x->access.vec > per_byte)
    REQUIRE(m, b->guards[x->keep].uniform[x->access.run] >= x->access.vec, "store %u: guard inside a chunk", n);
}

// --- the tree -------------------------------------------------------------------------------------------------------

static void check_seq(machine *m, scope *s, const kl_seq *seq);

static void check_carried(machine *m, scope *s, const kl_carried *c, uint32_t from) {
  const kl_body *b = m->body;
  REQUIRE(m, c->value < b->nsteps && b->steps[c->value].kind == KL_STEP_CARRIED, "step %u is carried", c->value);
  check_taken(m, s, from, "what is carried in step", c->value);
  REQUIRE(m, type_of(m, from) == type_of(m, c->value), "step %u: of another type", c->value);
  REQUIRE(m, !(b->steps[from].regs & ~b->steps[c->value].regs), "step %u: step %u has more copies", c->value, from);
}

// What is carried is had inside only; what is made inside, behind it too.
static void check_loop(machine *m, scope *s, const kl_node *n) {
  const kl_body *b = m->body;
  kl_vars var = (kl_vars)1 << n->index;
  REQUIRE(m, n->index < b->nvars && b->vars[n->index].binding == KL_BIND_STEP, "a loop over variable %u", n->index);
  REQUIRE(m, !(s->open & var), "a loop over %s in one", b->vars[n->index].name);
  for (uint32_t i = 0; i < n->nest->ncarried; i++) check_carried(m, s, &n->nest->carried[i], n->nest->carried[i].first);
  for (uint32_t i = 0; i < n->nest->ncarried; i++) {
    s->had[n->nest->carried[i].value] = true;
    s->times[n->nest->carried[i].value]++;
  }
  s->open |= var;
  check_seq(m, s, &n->nest->inside);
  for (uint32_t i = 0; i < n->nest->ncarried; i++) check_carried(m, s, &n->nest->carried[i], n->nest->carried[i].next);
  s->open &= ~var;
  for (uint32_t i = 0; i < n->nest->ncarried; i++) s->had[n->nest->carried[i].value] = false;
}

static void check_values_only(machine *m, const kl_seq *seq) {
  for (uint32_t i = 0; i < seq->n; i++) {
    kl_node_kind kind = seq->nodes[i].kind;
    REQUIRE(m, kind == KL_NODE_STEP || kind == KL_NODE_WHILE, "a loop of unknown rounds does more than make values");
    if (kind == KL_NODE_WHILE) check_values_only(m, &seq->nodes[i].nest->inside);
  }
}

// What is carried is had inside and behind; what is made inside, only there.
static void check_while(machine *m, scope *s, const kl_node *n) {
  const kl_body *b = m->body;
  bool *before = s->had, carries = false;
  check_values_only(m, &n->nest->inside);
  for (uint32_t i = 0; i < n->nest->ncarried; i++) {
    const kl_carried *c = &n->nest->carried[i];
    check_carried(m, s, c, c->first);
    carries = carries || c->value == n->index;
  }
  REQUIRE(m, carries && type_of(m, n->index) == KILN_PRED, "a loop while step %u, which it does not carry", n->index);
  for (uint32_t i = 0; i < n->nest->ncarried; i++) {
    const kl_carried *c = &n->nest->carried[i];
    REQUIRE(m, !(b->steps[n->index].regs & ~b->steps[c->value].regs), "step %u: the condition has more copies",
            c->value);
    s->times[c->value]++;
    before[c->value] = true;
  }
  s->had = kl_arena_dup(m->arena, before, (b->nsteps + 1) * sizeof *before);
  check_seq(m, s, &n->nest->inside);
  for (uint32_t i = 0; i < n->nest->ncarried; i++) check_carried(m, s, &n->nest->carried[i], n->nest->carried[i].next);
  s->had = before;
}

static void check_if(machine *m, scope *s, const kl_node *n) {
  bool *before = s->had;
  check_guard_at(m, s, n->index, 0, "branch on guard", n->index);
  REQUIRE(m, !(m->guard_vars[n->index] & side_by_side(m)), "a branch on guard %u, which is not one for all lanes",
          n->index);
  s->had = kl_arena_dup(m->arena, before, (m->body->nsteps + 1) * sizeof *before);
  check_seq(m, s, &n->nest->inside);
  s->had = before;
}

// What is made of the element is there inside only.
static void check_update(machine *m, scope *s, const kl_node *n) {
  const kl_body *b = m->body;
  bool *before = s->had;
  uint32_t value = n->nest->carried->value;
  REQUIRE(m, n->index < b->nstores && n->nest->ncarried == 1 && value < b->nsteps, "update %u", n->index);
  REQUIRE(m, b->steps[value].kind == KL_STEP_CARRIED && b->stores[n->index].how == KL_STORE_REPLACE, "update %u",
          n->index);
  s->had = kl_arena_dup(m->arena, before, (b->nsteps + 1) * sizeof *before);
  s->had[value] = true;
  s->times[value]++;
  check_seq(m, s, &n->nest->inside);
  check_store(m, s, n->index);
  s->times[b->nsteps + n->index]++;
  s->had = before;
}

// What lies to the left is had behind; all that is carried, inside.
static void check_before(machine *m, scope *s, const kl_node *n) {
  const kl_body *b = m->body;
  bool *before = s->had;
  uint32_t half = n->nest->ncarried / 2;
  REQUIRE(m, !m->host && m->launch->tickets && !s->open && !s->gone && half, "no waiting");
  REQUIRE(m, n->index < b->nvars && b->vars[n->index].binding == KL_BIND_BLOCK, "no block before");
  check_values_only(m, &n->nest->inside);
  for (uint32_t i = 0; i < 2 * half; i++) {
    const kl_carried *c = &n->nest->carried[i];
    check_carried(m, s, c, c->first);
    REQUIRE(m, !b->steps[c->value].regs && c->next == n->nest->carried[i % half].next, "step %u is joined", c->value);
    s->times[c->value]++;
  }
  s->had = kl_arena_dup(m->arena, before, (b->nsteps + 1) * sizeof *before);
  for (uint32_t i = 0; i < 2 * half; i++) s->had[n->nest->carried[i].value] = true;
  check_seq(m, s, &n->nest->inside);
  for (uint32_t i = 0; i < 2 * half; i++) check_carried(m, s, &n->nest->carried[i], n->nest->carried[i].next);
  s->had = before;
  for (uint32_t i = 0; i < half; i++) s->had[n->nest->carried[i].value] = true;
}

// Inside, variables that the blocks differ in have no values, nor has what depends on them.
static void check_last(machine *m, scope *s, const kl_node *n) {
  const kl_body *b = m->body;
  bool *before = s->had;
  kl_vars of = n->nest->arrival.of;
  check_slot(m, n->nest->arrival.slot);
  REQUIRE(m, !m->host && !s->open && !s->gone && !(of & ~bound_to(b, KL_BIND_BLOCK)), "who comes last of %#x", of);
  s->gone = of;
  check_index(m, s, n->nest->arrival.element, 0, 0, "a counter", 0);
  s->had = kl_arena_dup(m->arena, before, (b->nsteps + 1) * sizeof *before);
  for (uint32_t i = 0; i < b->nsteps; i++) s->had[i] = s->had[i] && !(b->steps[i].vars & of);
  check_seq(m, s, &n->nest->inside);
  s->had = before;
  s->gone = 0;
}

static void check_seq(machine *m, scope *s, const kl_seq *seq) {
  const kl_body *b = m->body;
  for (uint32_t i = 0; i < seq->n; i++) {
    const kl_node *n = &seq->nodes[i];
    switch (n->kind) {
    case KL_NODE_STEP:
      REQUIRE(m, n->index < b->nsteps, "step %u", n->index);
      check_step(m, s, n->index);
      s->had[n->index] = true;
      s->times[n->index]++;
      break;
    case KL_NODE_STORE:
      REQUIRE(m, n->index < b->nstores, "store %u", n->index);
      check_store(m, s, n->index);
      s->times[b->nsteps + n->index]++;
      break;
    case KL_NODE_LOOP: check_loop(m, s, n); break;
    case KL_NODE_WHILE: check_while(m, s, n); break;
    case KL_NODE_IF: check_if(m, s, n); break;
    case KL_NODE_UPDATE: check_update(m, s, n); break;
    case KL_NODE_BEFORE: check_before(m, s, n); break;
    case KL_NODE_LAST: check_last(m, s, n); break;
    case KL_NODE_MEET:
      REQUIRE(m, b->blocks && m->launch->cluster > 1 && m->launch->nparts == 1, "blocks of no cluster meet");
      break;
    case KL_NODE_SYNC: REQUIRE(m, !b->threads, "a sync among threads of all blocks"); break;
    }
  }
}

void check_body(machine *m) {
  const kl_body *b = m->body;
  check_vars(m);
  check_guard_list(m);
  check_symbols(m);
  scope s = {.had = KL_NEW_N(m->arena, bool, b->nsteps + 1)};
  s.times = KL_NEW_N(m->arena, uint32_t, b->nsteps + b->nstores + 1);
  check_seq(m, &s, &b->root);
  for (uint32_t i = 0; i < b->nsteps; i++) REQUIRE(m, s.times[i] == 1, "step %u stands in %u places", i, s.times[i]);
  for (uint32_t i = 0; i < b->nstores; i++)
    REQUIRE(m, s.times[b->nsteps + i] == 1, "store %u stands in %u places", i, s.times[b->nsteps + i]);
}
