// Accesses beyond the variable that their address was made from, which land in another one or between two.
//
// Which variables an address can come from is found once for each function, from its text: what is made from one
// variable's address by adding numbers points into it. Loaded values and parameters are numbers, and an address that is
// a number alone is not judged; nor is what is made from two addresses, or in ways that addresses are not made.

#include "sim/check/checks.h"
#include "sim/machine/execute.h"
#include "sim/machine/observe.h"

// --- what a register holds ------------------------------------------------------------------------------------------

// From less to more: nothing known yet; a number; an address in one of some variables; anything.
typedef enum holding { NOTHING, A_NUMBER, AN_ADDRESS, ANYTHING } holding;
typedef struct held {
  uint64_t set; // AN_ADDRESS: of these variables
  uint8_t what; // holding
} held;
enum { MOST_VARIABLES = 64 }; // of a function; an address of a further one is anything

static held either(held a, held b) {
  if (a.what == NOTHING) return b;
  if (b.what == NOTHING) return a;
  if (a.what != b.what) return (held){.what = ANYTHING};
  return (held){a.set | b.set, a.what};
}

// a + b, and what is like it: an address and a number make an address.
static held sum(held a, held b) {
  if (a.what == NOTHING || b.what == NOTHING) return (held){0};
  if (a.what == A_NUMBER) return b;
  return b.what == A_NUMBER ? a : (held){.what = ANYTHING};
}

// Two addresses in one variable are a number apart.
static held difference(held a, held b) {
  if (a.what == AN_ADDRESS && b.what == AN_ADDRESS && a.set == b.set && !(a.set & (a.set - 1)))
    return (held){.what = A_NUMBER};
  return b.what == AN_ADDRESS ? (held){.what = ANYTHING} : sum(a, b);
}

// Of what is not made of addresses.
static held mixed(held a, held b) {
  if (a.what == NOTHING || b.what == NOTHING) return (held){0};
  return (held){.what = a.what == A_NUMBER && b.what == A_NUMBER ? A_NUMBER : ANYTHING};
}

// --- a function's registers -----------------------------------------------------------------------------------------

typedef struct variable {
  bool local; // of the function, else of the module
  uint32_t index;
} variable;

typedef struct function {
  const kl_code *code;
  variable variables[MOST_VARIABLES];
  uint32_t n;
  held *regs;
  uint64_t (*sets)[2]; // by instruction: the variables of its first and second address; 0: not known
} function;

static held held_by(function *f, const kl_ptx_operand *o);

static held of_variable(function *f, const kl_ptx_operand *o) {
  bool local = o->kind == KL_PTX_LOCALVAR;
  for (uint32_t k = 0; k < f->n; k++)
    if (f->variables[k].local == local && f->variables[k].index == o->index)
      return (held){(uint64_t)1 << k, AN_ADDRESS};
  if (f->n == MOST_VARIABLES) return (held){.what = ANYTHING};
  f->variables[f->n] = (variable){local, o->index};
  return (held){(uint64_t)1 << f->n++, AN_ADDRESS};
}

static held of_items(function *f, const kl_ptx_operand *o) {
  held all = {.what = A_NUMBER};
  for (uint32_t k = 0; k < o->nitems; k++) all = mixed(all, held_by(f, &o->items[k]));
  return all;
}

static held held_by(function *f, const kl_ptx_operand *o) {
  switch (o->kind) {
  case KL_PTX_REG: return o->text.n ? mixed((held){.what = A_NUMBER}, f->regs[o->index]) : f->regs[o->index];
  case KL_PTX_VAR:
  case KL_PTX_LOCALVAR: return of_variable(f, o);
  case KL_PTX_VECTOR:
  case KL_PTX_PAIR:
  case KL_PTX_LIST: return of_items(f, o);
  default: return (held){.what = A_NUMBER};
  }
}

// --- what instructions make -----------------------------------------------------------------------------------------

static bool is(const kl_ptx_instr *i, const char *opcode) {
  return kl_str_is(i->opcode, opcode);
}

static bool reads_memory(const kl_ptx_instr *i) {
  return is(i, "ld") || is(i, "ldu") || is(i, "atom");
}

static held result(function *f, const kl_ptx_instr *i) {
  const kl_ptx_operand *o = i->operands;
  uint32_t n = i->noperands;
  if (reads_memory(i)) return (held){.what = A_NUMBER};
  if (n == 2 && (is(i, "mov") || is(i, "cvta") || is(i, "cvt"))) return held_by(f, &o[1]);
  if (n == 3 && is(i, "mapa")) return held_by(f, &o[1]);
  if (n == 3 && (is(i, "add") || is(i, "and") || is(i, "or") || is(i, "xor")))
    return sum(held_by(f, &o[1]), held_by(f, &o[2]));
  if (n == 3 && is(i, "sub")) return difference(held_by(f, &o[1]), held_by(f, &o[2]));
  if (n == 4 && is(i, "mad")) return sum(mixed(held_by(f, &o[1]), held_by(f, &o[2])), held_by(f, &o[3]));
  if (n == 4 && is(i, "selp")) return either(held_by(f, &o[1]), held_by(f, &o[2]));
  if (n == 5 && is(i, "lop3")) return sum(sum(held_by(f, &o[1]), held_by(f, &o[2])), held_by(f, &o[3]));
  held all = {.what = A_NUMBER};
  for (uint32_t k = 1; k < n; k++) all = mixed(all, held_by(f, &o[k]));
  return all;
}

static bool set_register(function *f, const kl_ptx_operand *o, held h) {
  bool changed = false;
  for (uint32_t k = 0; k < o->nitems && o->kind != KL_PTX_ADDRESS; k++) changed |= set_register(f, &o->items[k], h);
  if (o->kind != KL_PTX_REG) return changed;
  held *r = &f->regs[o->index], now = either(*r, h);
  changed |= now.what != r->what || now.set != r->set;
  *r = now;
  return changed;
}

// Everything that a register is ever given, until nothing changes: what it holds only grows. Text in which values go
// against the order of lines for long is not judged (false): compilers write none.
enum { MOST_PASSES = 64 };
static bool follow(function *f) {
  const kl_ptx_func *func = f->code->func;
  bool changed = true;
  for (int pass = 0; changed && pass < MOST_PASSES; pass++) {
    changed = false;
    for (uint32_t n = 0; n < func->ninstrs; n++)
      if (func->instrs[n].noperands)
        changed |= set_register(f, &func->instrs[n].operands[0], result(f, &func->instrs[n]));
  }
  return !changed;
}

static void find_addresses(function *f, const kl_ptx_instr *i, uint64_t sets[2]) {
  uint32_t found = 0;
  for (uint32_t k = 0; k < i->noperands && found < 2; k++) {
    const kl_ptx_operand *o = &i->operands[k];
    bool whole = o->kind == KL_PTX_ADDRESS && o->nitems;
    if (!whole && !o->indexed) continue;
    held h = held_by(f, whole ? &o->items[0] : o);
    sets[found++] = h.what == AN_ADDRESS ? h.set : 0;
  }
}

// --- accesses -------------------------------------------------------------------------------------------------------

// What an address may be one of.
typedef struct target {
  kl_piece piece;
  kl_space space;
} target;

typedef struct beyond {
  kl_observer observer;
  kl_checks *checks;
  const kl_launch *launch;
  kl_arena arena;
  function *functions; // by number in the module
  // Those of the last access that looked at any, unless they lie in the stack.
  const function *last;
  uint64_t last_set;
  uint32_t ntargets;
  target targets[MOST_VARIABLES];
  bool run_within; // the last load or store, and all others of its run
} beyond;

// Where a variable lies; of kind NONE: nobody knows how long it is.
static kl_piece piece_of(const beyond *s, const kl_warp *w, const function *f, variable v, kl_space *space) {
  const kl_kernel *k = s->launch->kernel;
  const kl_ptx_func *func = f->code->func;
  const kl_ptx_var *var = v.local ? &func->vars[v.index] : &k->of->ptx->vars[v.index];
  kl_piece p = {.kind = KL_PIECE_VARIABLE, .name = var->name, .size = var->bytes};
  bool of_kernel =
      v.local && func->entry && v.index >= func->nreturns && v.index < func->nreturns + (uint64_t)func->nparams;
  if (var->space == KL_PTX_SHARED) {
    *space = KL_SPACE_SHARED;
    p.base = v.local ? k->shared_of[f->code->function][v.index] : k->shared[v.index];
    if (!p.size) p.kind = KL_PIECE_DYNAMIC, p.size = w->block->shared_bytes - p.base;
  } else if (var->space == KL_PTX_GLOBAL || var->space == KL_PTX_CONST) {
    *space = KL_SPACE_DEVICE;
    p.base = v.local ? 0 : k->of->address[v.index];
  } else if (of_kernel) {
    *space = KL_SPACE_PARAM;
    p.base = k->param_at[v.index - func->nreturns];
  } else {
    *space = KL_SPACE_LOCAL;
    p.base = w->strand.frame->stack + f->code->var_at[v.index];
  }
  bool elsewhere = var->external && var->bytes;         // whoever defines it may give it more
  elsewhere |= *space == KL_SPACE_LOCAL && !var->bytes; // a parameter that takes what callers give
  if (elsewhere || (v.local && *space == KL_SPACE_DEVICE)) p.kind = KL_PIECE_NONE;
  return p;
}

// An access's address in its own space.
static uint64_t in_space(kl_where where, uint64_t address, kl_space *space) {
  static const kl_space of[] = {[KL_AT_GLOBAL] = KL_SPACE_DEVICE,
                                [KL_AT_SHARED] = KL_SPACE_SHARED,
                                [KL_AT_STACK] = KL_SPACE_LOCAL,
                                [KL_AT_PARAM] = KL_SPACE_PARAM};
  *space = of[where];
  if (where == KL_AT_GENERIC) {
    uint64_t window = address / KL_WINDOW;
    *space = address >= KL_DEVICE_MEMORY ? KL_SPACE_DEVICE
             : window == 1               ? KL_SPACE_SHARED
             : window == 2               ? KL_SPACE_LOCAL
                                         : KL_SPACE_PARAM;
    if (address < KL_DEVICE_MEMORY) address %= KL_WINDOW;
  }
  return *space == KL_SPACE_SHARED ? address % KL_SHARED_RANK : address;
}

static bool is_within(const target *t, uint32_t n, kl_where where, uint64_t address, uint64_t bytes) {
  kl_space space;
  uint64_t at = in_space(where, address, &space);
  for (uint32_t k = 0; k < n; k++)
    if (t[k].space == space && at >= t[k].piece.base && at - t[k].piece.base <= t[k].piece.size &&
        bytes <= t[k].piece.size - (at - t[k].piece.base))
      return true;
  return false;
}

// Of several that an address may come from, the one that it misses by the least.
static const kl_piece *missed(const target *t, uint32_t n, kl_where where, uint64_t address) {
  const kl_piece *nearest = NULL;
  uint64_t least = 0;
  kl_space space;
  uint64_t at = in_space(where, address, &space);
  for (uint32_t k = 0; k < n; k++) {
    const kl_piece *p = &t[k].piece;
    uint64_t away = at < p->base ? p->base - at : at - p->base;
    if (t[k].space == space && (!nearest || away < least)) nearest = p, least = away;
  }
  return nearest ? nearest : &t->piece;
}

static void found(beyond *s, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p,
                  uint32_t lanes, const kl_piece *from) {
  const kl_frame *f = w->strand.frame;
  unsigned lane = (unsigned)__builtin_ctz(lanes);
  kl_found found = {.kind = KL_FOUND_BEYOND,
                    .at = {.func = f->code->func, .instr = kl_instr_of(w, op), .calls = kl_calls_of(f)},
                    .spot = kl_spot_of(w, m->where, p->address[lane], (uint64_t)m->bytes * m->count),
                    .origin = {.kind = KL_ORIGIN_VARIABLE, .spot.piece = *from},
                    .times = (uint64_t)__builtin_popcount(lanes)};
  kl_thread_of(w, lane, found.at.block, found.at.thread);
  kl_report_add(s->checks->cx, &s->checks->report, &found);
}

// Finds the variables of a set. False: nobody knows how long one of them is.
static bool find_targets(beyond *s, const kl_warp *w, const function *f, uint64_t set) {
  bool in_stack = false;
  uint32_t n = 0;
  if (s->last == f && s->last_set == set) return true;
  s->last = NULL;
  for (uint64_t left = set; left; left &= left - 1, n++) {
    s->targets[n].piece = piece_of(s, w, f, f->variables[__builtin_ctzll(left)], &s->targets[n].space);
    if (s->targets[n].piece.kind == KL_PIECE_NONE) return false;
    in_stack |= s->targets[n].space == KL_SPACE_LOCAL;
  }
  s->last = in_stack ? NULL : f;
  s->last_set = set;
  s->ntargets = n;
  return true;
}

static void access(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p) {
  beyond *s = (beyond *)(void *)o;
  const function *f = &s->functions[w->strand.frame->code->function];
  if (!f->sets || (p->follows && s->run_within)) return;
  s->run_within = false;
  if (kl_is_keeping(f->code, (uint32_t)(op - f->code->ops))) return; // of the machine, not of the instruction at hand
  uint64_t set = f->sets[op->index][op->run == kl_x_copy_async && !m->store], bytes = (uint64_t)m->bytes * m->count;
  uint32_t out = 0;
  if (!set || !find_targets(s, w, f, set)) return;
  const target *t = s->targets;
  const uint32_t n = s->ntargets;
  const uint64_t span = p->most - p->least + bytes;
  if (is_within(t, n, m->where, p->least, span)) { // so are those between them
    // One register's address has the same variables in all of a run.
    s->run_within =
        m->run == m && is_within(t, n, m->where, p->least + (uint64_t)m->low, span + (uint64_t)(m->high - m->low));
    return;
  }
  for (unsigned i = 0; i < KL_LANES; i++)
    if ((w->x.mask >> i & 1) && !is_within(t, n, m->where, p->address[i], bytes)) out |= 1u << i;
  if (out) found(s, w, op, m, p, out, missed(t, n, m->where, p->address[__builtin_ctz(out)]));
}

// --- a launch -------------------------------------------------------------------------------------------------------

static bool prepare(beyond *s, const kl_code *code, function *f) {
  const kl_ptx_func *func = code->func;
  f->code = code;
  f->regs = kl_arena_try_alloc(&s->arena, (func->registers + 1) * sizeof *f->regs);
  f->sets = kl_arena_try_alloc(&s->arena, (func->ninstrs + 1) * sizeof *f->sets);
  if (!f->regs || !f->sets) return false;
  bool settled = follow(f);
  for (uint32_t n = 0; n < func->ninstrs && settled; n++) find_addresses(f, &func->instrs[n], f->sets[n]);
  return true;
}

static void end(kl_observer *o) {
  beyond *s = (beyond *)(void *)o;
  kl_arena_free(&s->arena);
  kl_free(s->checks->cx, s, sizeof *s);
}

kl_check kl_check_beyond(kl_checks *c, const kl_launch *l) {
  const kl_kernel *k = l->kernel;
  beyond *s = kl_alloc(c->cx, sizeof *s);
  bool all = true;
  s->observer.access = access;
  s->checks = c;
  s->launch = l;
  kl_arena_init(&s->arena, c->cx);
  s->functions = KL_NEW_N(&s->arena, function, k->of->ptx->nfuncs);
  for (uint32_t n = 0; n < k->of->ptx->nfuncs && all; n++)
    if (k->codes[n]) all = prepare(s, k->codes[n], &s->functions[n]);
  if (all) return (kl_check){&s->observer, end, false};
  end(&s->observer);
  return (kl_check){0};
}
