// From names to what they name: operands, called computations, parameters, roots; then the order of computations and
// the checks.
#include "ir/text/parse.h"

typedef struct linker {
  kl_parser *ps;
  kiln_module *m;
  kl_arena scratch;
  uint32_t *where;   // by symbol: 1 + index among all drafts of the first instruction of that name seen last
  uint32_t *comp_of; // by symbol: 1 + index of the computation
  uint32_t *order;   // new index of each draft computation
  bool *skip;        // by draft instruction
  uint32_t nsimilar; // searches for similar names so far
} linker;

enum { MOST_LINES = 1000 };

enum { NEW = 0, OPEN, DONE }; // states of a depth-first walk

#define NAME(l, symbol) KL_FMT(kl_symbol_text(&(l)->m->names, (symbol)))

static kl_span span_at(const linker *l, size_t begin, size_t end) {
  return (kl_span){l->m->source, begin, end};
}

// For messages; findings beyond a number that nobody reads need not be exact, but must not take long.
static size_t line_of(const linker *l, size_t pos) {
  kl_str t = l->m->source->text;
  size_t line = 1;
  if (l->ps->cx->errors - l->ps->errors_before > MOST_LINES) return 0;
  for (const char *p = t.p, *nl; (nl = memchr(p, '\n', (size_t)(t.p + pos - p))); p = nl + 1) line++;
  return line;
}

// --- names that are not there -------------------------------------------------------------------------------------

enum { MOST_COMPARED = 2000, MOST_SEARCHES = 50 };

// The name among the computation's that is most like `name`, or none.
static kl_str similar_name(linker *l, const kl_draft_comp *c, kl_str name) {
  size_t best = name.n < 4 ? 2 : 3, n = c->n < MOST_COMPARED ? c->n : MOST_COMPARED;
  kl_str found = {0};
  if (l->nsimilar++ >= MOST_SEARCHES) return found;
  for (size_t i = 0; i < n; i++) {
    kl_str other = kl_symbol_text(&l->m->names, l->ps->instrs.p[c->first + i].in.name);
    size_t d = kl_distance(name, other, best - 1);
    if (d >= best) continue;
    best = d;
    found = other;
  }
  return found;
}

static void report_undefined(linker *l, const kl_draft_comp *c, const kl_use *u) {
  kl_str similar = similar_name(l, c, kl_symbol_text(&l->m->names, u->symbol));
  kl_invalid(l->ps->cx, span_at(l, u->begin, u->end),
             "expected the name of an instruction of '%.*s', found '%.*s'%s%.*s%s", NAME(l, c->c.name),
             NAME(l, u->symbol), similar.n ? "; the most similar name is '" : "", KL_FMT(similar),
             similar.n ? "'" : "");
}

// --- operands -----------------------------------------------------------------------------------------------------

// Index of the operand in its computation, or UINT32_MAX after a finding. Bare words of unknown ops may be no names.
static uint32_t resolve(linker *l, const kl_draft_comp *c, const kl_use *u) {
  if (u->indexed) return u->symbol;
  size_t i = l->where[u->symbol];
  if (i > c->first && i <= c->first + c->n) return (uint32_t)(i - 1 - c->first);
  if (!u->bare) report_undefined(l, c, u);
  return UINT32_MAX;
}

static const kl_use *use_of(const linker *l, const kl_draft_instr *d, uint32_t i) {
  return d->own_uses ? &d->own_uses[i] : &l->ps->uses.p[d->first_use + i];
}

static bool check_written_type(linker *l, const kl_draft_comp *c, const kl_use *u, uint32_t operand) {
  const kl_shape *s = l->ps->instrs.p[c->first + operand].in.shape;
  if (!u->type || !s || kl_shape_compatible(u->type, s)) return true;
  kl_invalid(l->ps->cx, span_at(l, u->begin, u->end), "expected '%.*s' to have the type %s written before it, found %s",
             NAME(l, u->symbol), kl_shape_text(&l->m->arena, u->type), kl_shape_text(&l->m->arena, s));
  return false;
}

static void link_operands(linker *l, kl_draft_comp *c, size_t index) {
  kl_draft_instr *d = &l->ps->instrs.p[index];
  uint32_t *operands = KL_NEW_N(&l->m->arena, uint32_t, d->nuses), n = 0;
  bool is_unknown = d->in.op == KL_OP_UNKNOWN, all = d->all_names;
  for (uint32_t i = 0; i < d->nuses; i++) {
    const kl_use *u = use_of(l, d, i);
    size_t errors = l->ps->cx->errors;
    uint32_t operand = resolve(l, c, u);
    if (operand != UINT32_MAX) check_written_type(l, c, u, operand);
    if (l->ps->cx->errors > errors) d->broken = true;
    all &= operand != UINT32_MAX;
    if (operand != UINT32_MAX || !is_unknown) operands[n++] = operand;
    c->forward |= operand != UINT32_MAX && operand >= index - c->first;
  }
  if (is_unknown && all) d->in.raw_operands = (kl_str){0};
  d->in.noperands = n;
  d->in.operands = operands;
}

static void link_control(linker *l, kl_draft_comp *c, size_t index) {
  kl_draft_instr *d = &l->ps->instrs.p[index];
  if (d->ncontrol == 0) return;
  uint32_t *control = KL_NEW_N(&l->m->arena, uint32_t, d->ncontrol);
  for (uint32_t i = 0; i < d->ncontrol; i++) {
    control[i] = resolve(l, c, &l->ps->uses.p[d->first_control + i]);
    d->broken |= control[i] == UINT32_MAX;
    c->forward |= control[i] != UINT32_MAX && control[i] >= index - c->first;
  }
  d->in.ncontrol = d->ncontrol;
  d->in.control = control;
}

// --- one computation ----------------------------------------------------------------------------------------------

static void enter_names(linker *l, kl_draft_comp *c) {
  for (size_t i = c->first; i < c->first + c->n; i++) {
    kl_draft_instr *d = &l->ps->instrs.p[i];
    size_t before = l->where[d->in.name];
    if (before > c->first && before <= c->first + c->n) {
      kl_invalid(l->ps->cx, span_at(l, d->name_begin, d->name_end),
                 "expected a name not yet used in '%.*s', found '%.*s', defined in line %zu", NAME(l, c->c.name),
                 NAME(l, d->in.name), line_of(l, l->ps->instrs.p[before - 1].name_begin));
      continue;
    }
    l->where[d->in.name] = (uint32_t)i + 1;
  }
}

static void find_root(linker *l, kl_draft_comp *c) {
  size_t root = SIZE_MAX;
  for (size_t i = c->first; i < c->first + c->n; i++) {
    const kl_draft_instr *d = &l->ps->instrs.p[i];
    if (!d->is_root) continue;
    if (root != SIZE_MAX)
      kl_invalid(l->ps->cx, span_at(l, d->name_begin, d->name_end),
                 "expected one ROOT in '%.*s', found '%.*s' beside '%.*s'", NAME(l, c->c.name), NAME(l, d->in.name),
                 NAME(l, l->ps->instrs.p[root].in.name));
    else
      root = i;
  }
  c->c.root = (uint32_t)((root != SIZE_MAX ? root : c->first + c->n - 1) - c->first);
}

// Which instruction is parameter i. Numbers are checked against each other here, with the names' places at hand.
static void find_params(linker *l, kl_draft_comp *c) {
  uint32_t n = 0;
  for (size_t i = c->first; i < c->first + c->n; i++) n += l->ps->instrs.p[i].in.op == KL_OP_PARAMETER;
  uint32_t *params = KL_NEW_N(&l->m->arena, uint32_t, n);
  bool *have = KL_NEW_N(&l->scratch, bool, n);
  for (size_t i = c->first; i < c->first + c->n; i++) {
    const kl_draft_instr *d = &l->ps->instrs.p[i];
    if (d->in.op != KL_OP_PARAMETER || d->broken) continue;
    if (d->in.number >= n || have[d->in.number]) {
      if (d->in.number < n || !c->broken)
        kl_invalid(l->ps->cx, d->in.span, "parameter: expected each number from 0 to %u once, found %lld%s", n - 1,
                   (long long)d->in.number, d->in.number < n ? " again" : "");
      c->broken = true;
    } else {
      have[d->in.number] = true;
      params[d->in.number] = (uint32_t)(i - c->first);
    }
  }
  c->c.nparams = n;
  c->c.params = params;
}

static void link_called(linker *l, kl_draft_instr *d) {
  if (d->ncallees == 0) return;
  uint32_t *called = KL_NEW_N(&l->m->arena, uint32_t, d->ncallees);
  for (uint32_t i = 0; i < d->ncallees; i++) {
    const kl_callee *callee = &l->ps->callees.p[d->first_callee + i];
    called[i] = (callee->inlined ? callee->inlined : l->comp_of[callee->symbol]) - 1;
    if (called[i] != UINT32_MAX) continue;
    d->broken = true;
    kl_invalid(l->ps->cx, span_at(l, callee->begin, callee->end),
               "%s: expected the name of a computation, found '%.*s'", kl_op_name(d->in.op), NAME(l, callee->symbol));
  }
  d->in.called = called;
  d->in.ncalled = d->broken ? 0 : d->ncallees;
}

// --- the order of instructions ------------------------------------------------------------------------------------

typedef struct step {
  uint32_t instr, next; // the operand or control-predecessor to look at
} step;

// The next one that is not placed yet; UINT32_MAX if there is none.
static uint32_t next_before(const kl_draft_instr *d, step *s, const uint8_t *state) {
  for (; s->next < d->in.noperands + d->in.ncontrol; s->next++) {
    uint32_t k = s->next, i = k < d->in.noperands ? d->in.operands[k] : d->in.control[k - d->in.noperands];
    if (i != UINT32_MAX && state[i] != DONE) return i;
  }
  return UINT32_MAX;
}

// `on` is what it needs; a use may be an instruction written in place, without a name of its own.
static void report_cycle(linker *l, kl_draft_comp *c, kl_draft_instr *d, const step *s, const kl_draft_instr *on) {
  uint32_t k = s->next;
  const kl_use *u = k < d->in.noperands ? use_of(l, d, k) : &l->ps->uses.p[d->first_control + k - d->in.noperands];
  c->broken = true;
  d->broken = true;
  kl_invalid(l->ps->cx, span_at(l, u->begin, u->end),
             "expected an operand that does not need '%.*s' itself, found '%.*s', which does", NAME(l, d->in.name),
             NAME(l, on->in.name));
}

// Depth first in the order of the text; order[new] = old.
static bool order_instructions(linker *l, kl_draft_comp *c, uint32_t *order) {
  kl_draft_instr *drafts = l->ps->instrs.p + c->first;
  uint8_t *state = KL_NEW_N(&l->scratch, uint8_t, c->n);
  VEC(step) stack = {0};
  uint32_t placed = 0;
  bool ok = true;
  for (uint32_t i = 0; i < c->n && ok; i++) {
    if (state[i] == NEW) VEC_PUSH(l->ps->cx, &stack, (step){i, 0});
    while (stack.n && ok) {
      step *s = &stack.p[stack.n - 1];
      state[s->instr] = OPEN;
      uint32_t before = next_before(&drafts[s->instr], s, state);
      if (before == UINT32_MAX) {
        state[s->instr] = DONE;
        order[placed++] = s->instr;
        stack.n--;
      } else if (state[before] == NEW) {
        VEC_PUSH(l->ps->cx, &stack, (step){before, 0});
      } else {
        report_cycle(l, c, &drafts[s->instr], s, &drafts[before]);
        ok = false;
      }
    }
  }
  VEC_FREE(l->ps->cx, &stack);
  return ok;
}

static void renumber(uint32_t *list, uint32_t n, const uint32_t *where) {
  for (uint32_t i = 0; i < n; i++)
    if (list[i] != UINT32_MAX) list[i] = where[list[i]];
}

// Puts operands before their users, where the text has another order.
static void sort_instructions(linker *l, kl_draft_comp *c) {
  uint32_t n = (uint32_t)c->n, *order = KL_NEW_N(&l->scratch, uint32_t, n);
  if (!order_instructions(l, c, order)) return;
  uint32_t *where = KL_NEW_N(&l->scratch, uint32_t, n);
  kl_draft_instr *drafts = l->ps->instrs.p + c->first;
  kl_draft_instr *sorted = KL_NEW_N(&l->scratch, kl_draft_instr, n);
  for (uint32_t i = 0; i < n; i++) {
    where[order[i]] = i;
    sorted[i] = drafts[order[i]];
  }
  for (uint32_t i = 0; i < n; i++) {
    renumber((uint32_t *)sorted[i].in.operands, sorted[i].in.noperands, where);
    renumber((uint32_t *)sorted[i].in.control, sorted[i].in.ncontrol, where);
  }
  renumber((uint32_t *)c->c.params, c->c.nparams, where);
  c->c.root = where[c->c.root];
  memcpy(drafts, sorted, n * sizeof *sorted);
}

static void link_computation(linker *l, kl_draft_comp *c) {
  if (c->n == 0) {
    if (!c->broken)
      kl_invalid(l->ps->cx, c->c.span, "expected at least one instruction in '%.*s', found none", NAME(l, c->c.name));
    c->broken = true;
    return;
  }
  enter_names(l, c);
  for (size_t i = c->first; i < c->first + c->n; i++) {
    link_operands(l, c, i);
    link_control(l, c, i);
    link_called(l, &l->ps->instrs.p[i]);
  }
  find_root(l, c);
  find_params(l, c);
  if (c->forward) sort_instructions(l, c);
}

// --- the order of computations ------------------------------------------------------------------------------------

typedef struct visit {
  uint32_t comp;
  size_t next;   // instruction to look at
  uint32_t call; // of its calls
} visit;

static void report_recursion(linker *l, kl_draft_instr *d, uint32_t comp, uint32_t call) {
  const kl_callee *callee = &l->ps->callees.p[d->first_callee + call];
  d->broken = true;
  kl_invalid(l->ps->cx, span_at(l, callee->begin, callee->end),
             "%s: expected a computation that does not lead back here, found the recursion '%.*s' -> '%.*s'",
             kl_op_name(d->in.op), NAME(l, l->ps->comps.p[comp].c.name),
             NAME(l, l->ps->comps.p[d->in.called[call]].c.name));
}

// Steps to the next call of the visited computation; UINT32_MAX if there is none.
static uint32_t next_call(linker *l, visit *v, const uint8_t *state) {
  const kl_draft_comp *c = &l->ps->comps.p[v->comp];
  for (; v->next < c->n; v->next++, v->call = 0) {
    kl_draft_instr *d = &l->ps->instrs.p[c->first + v->next];
    for (; v->call < d->in.ncalled; v->call++) {
      uint32_t called = d->in.called[v->call];
      if (state[called] == DONE) continue;
      if (state[called] == NEW) return called;
      report_recursion(l, d, v->comp, v->call);
      d->in.ncalled = 0;
    }
  }
  return UINT32_MAX;
}

// Depth first in the order of the text, so that computations already in a good order keep it.
static void order_computations(linker *l) {
  size_t n = l->ps->comps.n;
  uint8_t *state = KL_NEW_N(&l->scratch, uint8_t, n);
  VEC(visit) stack = {0};
  uint32_t placed = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (state[i] == NEW) VEC_PUSH(l->ps->cx, &stack, (visit){i, 0, 0});
    while (stack.n) {
      visit *v = &stack.p[stack.n - 1];
      state[v->comp] = OPEN;
      uint32_t called = next_call(l, v, state);
      if (called != UINT32_MAX) {
        VEC_PUSH(l->ps->cx, &stack, (visit){called, 0, 0});
      } else {
        state[v->comp] = DONE;
        l->order[v->comp] = placed++;
        stack.n--;
      }
    }
  }
  VEC_FREE(l->ps->cx, &stack);
}

// --- the module ---------------------------------------------------------------------------------------------------

static void enter_computations(linker *l) {
  for (size_t i = 0; i < l->ps->comps.n; i++) {
    const kl_draft_comp *c = &l->ps->comps.p[i];
    uint32_t *slot = &l->comp_of[c->c.name];
    if (*slot && c->c.name)
      kl_invalid(l->ps->cx, c->c.span, "expected a computation's name not yet used, found '%.*s' again",
                 NAME(l, c->c.name));
    else
      *slot = (uint32_t)i + 1;
  }
}

static void find_entry(linker *l) {
  size_t entry = SIZE_MAX, n = l->ps->comps.n;
  for (size_t i = 0; i < n; i++) {
    const kl_draft_comp *c = &l->ps->comps.p[i];
    if (!c->entry) continue;
    if (entry != SIZE_MAX)
      kl_invalid(l->ps->cx, c->c.span, "expected one ENTRY, found '%.*s' beside '%.*s'", NAME(l, c->c.name),
                 NAME(l, l->ps->comps.p[entry].c.name));
    else
      entry = i;
  }
  l->m->entry = l->order[entry != SIZE_MAX ? entry : n - 1];
}

// Moves the drafts into the module, in their new order.
static void place_computations(linker *l) {
  kl_parser *ps = l->ps;
  l->m->ncomp = (uint32_t)ps->comps.n;
  l->m->comp = KL_NEW_N(&l->m->arena, kl_comp, ps->comps.n);
  for (size_t i = 0; i < ps->comps.n; i++) {
    kl_draft_comp *c = &ps->comps.p[i];
    c->c.ninstr = (uint32_t)c->n;
    c->c.instr = KL_NEW_N(&l->m->arena, kl_instr, c->n);
    for (size_t k = 0; k < c->n; k++) {
      const kl_draft_instr *d = &ps->instrs.p[c->first + k];
      bool skip = d->broken;
      for (uint32_t j = 0; j < d->in.ncalled; j++) {
        skip |= ps->comps.p[d->in.called[j]].broken;
        ((uint32_t *)d->in.called)[j] = l->order[d->in.called[j]];
      }
      c->c.instr[k] = d->in;
      l->skip[c->first + k] = skip;
    }
    l->m->comp[l->order[i]] = c->c;
  }
}

// What a signature says is not used: the body counts.
static void check_signature(linker *l, const kl_draft_comp *d, const kl_comp *c) {
  kl_ctx *cx = l->ps->cx;
  kl_arena *a = &l->m->arena;
  if (!d->has_signature) return;
  if (d->nsig != c->nparams)
    kl_warn(cx, d->sig_span, "the signature of '%.*s' says %u parameters, its body has %u: the body counts",
            NAME(l, c->name), d->nsig, c->nparams);
  for (uint32_t i = 0; i < d->nsig && i < c->nparams; i++) {
    const kl_shape *s = c->instr[c->params[i]].shape;
    if (s && !kl_shape_compatible(s, d->sig[i]))
      kl_warn(cx, d->sig_span, "the signature of '%.*s' says %s for parameter %u, its body %s: the body counts",
              NAME(l, c->name), kl_shape_text(a, d->sig[i]), i, kl_shape_text(a, s));
  }
  const kl_shape *root = kl_root(c)->shape;
  if (root && !kl_shape_compatible(root, d->sig_result))
    kl_warn(cx, d->sig_span, "the signature of '%.*s' says the result %s, its body %s: the body counts",
            NAME(l, c->name), kl_shape_text(a, d->sig_result), kl_shape_text(a, root));
}

// Callees first, so that their results' shapes are known at their calls.
static kiln_status check_all(linker *l) {
  uint32_t n = l->m->ncomp, *draft = KL_NEW_N(&l->scratch, uint32_t, n);
  for (uint32_t i = 0; i < n; i++) draft[l->order[i]] = i;
  kiln_status s = KILN_OK;
  for (uint32_t i = 0; i < n; i++) {
    const kl_draft_comp *d = &l->ps->comps.p[draft[i]];
    if (d->n == 0) continue;
    kiln_status one = kl_check_computation(l->m, &l->m->comp[i], l->skip + d->first);
    if (one != KILN_OK) s = one;
    if (!d->broken) check_signature(l, d, &l->m->comp[i]);
  }
  if (l->ps->cx->errors == l->ps->errors_before) kl_check_header(l->ps->cx, l->m, l->ps->layout_span);
  return s;
}

kiln_status kl_parse_link(kl_parser *ps) {
  size_t symbols = ps->m->names.strings.n;
  if (ps->comps.n == 0) {
    bool reported = ps->cx->errors > ps->errors_before;
    return reported ? KILN_E_INVALID
                    : kl_invalid(ps->cx, kl_lex_span(&ps->lx), "expected a computation, found the end of the text");
  }
  linker l = {.ps = ps, .m = ps->m};
  kl_arena_init(&l.scratch, ps->cx);
  l.where = KL_NEW_N(&l.scratch, uint32_t, symbols);
  l.comp_of = KL_NEW_N(&l.scratch, uint32_t, symbols);
  l.order = KL_NEW_N(&l.scratch, uint32_t, ps->comps.n);
  l.skip = KL_NEW_N(&l.scratch, bool, ps->instrs.n);
  enter_computations(&l);
  for (size_t i = 0; i < ps->comps.n; i++) link_computation(&l, &ps->comps.p[i]);
  order_computations(&l);
  find_entry(&l);
  place_computations(&l);
  kiln_status s = check_all(&l);
  kl_arena_free(&l.scratch);
  return s;
}
