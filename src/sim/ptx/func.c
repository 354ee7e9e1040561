// Functions and kernels: heads, directives, a declaration and its definition as one.
#include "sim/ptx/parse.h"

#include <stddef.h>

// --- directives ---------------------------------------------------------------------------------------------------

// How many numbers, and where they go; a flag has none. `biased`: kept as one more than the number.
static const struct {
  const char *name;
  size_t offset;
  uint8_t most;
  bool biased, of_entry, of_func;
} directives[] = {
    {"maxntid", offsetof(kl_ptx_tuning, maxntid), 3, false, true, false},
    {"reqntid", offsetof(kl_ptx_tuning, reqntid), 3, false, true, false},
    {"minnctapersm", offsetof(kl_ptx_tuning, minnctapersm), 1, false, true, false},
    {"maxnctapersm", offsetof(kl_ptx_tuning, maxnctapersm), 1, false, true, false},
    {"maxnreg", offsetof(kl_ptx_tuning, maxnreg), 1, false, true, false},
    {"reqnctapercluster", offsetof(kl_ptx_tuning, reqnctapercluster), 3, false, true, false},
    {"maxclusterrank", offsetof(kl_ptx_tuning, maxclusterrank), 1, false, true, false},
    {"explicitcluster", offsetof(kl_ptx_tuning, explicitcluster), 0, false, true, false},
    {"blocksareclusters", offsetof(kl_ptx_tuning, blocksareclusters), 0, false, true, false},
    {"noreturn", offsetof(kl_ptx_tuning, noreturn), 0, false, false, true},
    {"unique", offsetof(kl_ptx_tuning, unique), 0, false, false, true},
    {"abi_preserve", offsetof(kl_ptx_tuning, abi_preserve), 1, true, false, true},
    {"abi_preserve_control", offsetof(kl_ptx_tuning, abi_preserve_control), 1, true, false, true},
};

// Extents that are left out are 1.
static bool take_numbers(kl_ptx_parser *ps, uint32_t *to, uint8_t most, bool biased) {
  for (uint8_t i = 0; i < most; i++) to[i] = 1;
  for (uint8_t i = 0; i < most; i++) {
    uint64_t v;
    if (!kl_ptx_number(ps, "a number", INT32_MAX, &v)) return false;
    to[i] = (uint32_t)v + biased;
    if (i + 1 == most || !kl_ptx_eat(ps, ',')) break;
  }
  return true;
}

static bool take_directive(kl_ptx_parser *ps, kl_ptx_tuning *t, bool entry) {
  for (size_t i = 0; i < KL_COUNT(directives); i++) {
    if (!kl_ptx_at_dot(ps, directives[i].name)) continue;
    if (!(entry ? directives[i].of_entry : directives[i].of_func))
      return kl_ptx_expected(ps, "a directive of %s", entry ? "kernels" : "functions");
    char *to = (char *)t + directives[i].offset;
    kl_ptx_lex_next(&ps->lx);
    if (directives[i].most) return take_numbers(ps, (uint32_t *)to, directives[i].most, directives[i].biased);
    *(bool *)to = true;
    return true;
  }
  return kl_ptx_expected(ps, "a directive, ';' or a body");
}

bool kl_ptx_pragma_strings(kl_ptx_parser *ps, kl_ptx_strs *out) {
  do {
    if (ps->lx.kind != KL_PTX_TOK_STRING) return kl_ptx_expected(ps, "a string after .pragma");
    VEC_PUSH(ps->cx, out, ps->lx.word);
    kl_ptx_lex_next(&ps->lx);
  } while (kl_ptx_eat(ps, ','));
  return kl_ptx_need(ps, ';', "after .pragma");
}

bool kl_ptx_tune(kl_ptx_parser *ps, kl_ptx_tuning *t, bool entry, kl_ptx_strs *pragmas) {
  while (ps->lx.kind == KL_PTX_TOK_DOT) {
    if (pragmas && kl_ptx_eat_dot(ps, "pragma")) {
      if (!kl_ptx_pragma_strings(ps, pragmas)) return false;
    } else if (!take_directive(ps, t, entry)) {
      return false;
    }
  }
  return true;
}

// --- heads --------------------------------------------------------------------------------------------------------

static bool check_params(kl_ptx_parser *ps, kl_ptx_func *f) {
  const kl_ptx_vars *vars = &ps->locals;
  uint32_t in_memory = 0;
  for (uint32_t i = 0; i < vars->n; i++) {
    const kl_ptx_var *v = &vars->p[i];
    if (f->entry && (v->reg || !v->bytes))
      return kl_ptx_wrong(ps, v->name, "expected a kernel's parameter in .param and with a size, found '%.*s'",
                          KL_FMT(v->name));
    f->register_params |= v->reg != 0;
    in_memory += i < f->nreturns && !v->reg;
  }
  if (in_memory && f->nreturns > 1)
    return kl_ptx_wrong(ps, f->name, "expected one result in .param, found %u results", f->nreturns);
  return true;
}

static bool check_tuning(kl_ptx_parser *ps, const kl_ptx_func *f) {
  const kl_ptx_tuning *t = &f->tuning;
  const char *both = t->maxntid[0] && t->reqntid[0]                 ? ".maxntid and .reqntid"
                     : t->maxclusterrank && t->reqnctapercluster[0] ? ".maxclusterrank and .reqnctapercluster"
                     : t->noreturn && f->nreturns                   ? "results and .noreturn"
                                                                    : NULL;
  return !both || kl_ptx_wrong(ps, f->name, "expected one of %s, found both", both);
}

static bool take_head(kl_ptx_parser *ps, kl_ptx_func *f, kl_ptx_strs *pragmas) {
  kl_ptx_vars *vars = &ps->locals;
  if (kl_ptx_eat_dot(ps, "attribute") && !kl_ptx_attributes(ps)) return false;
  if (!f->entry && kl_ptx_at(ps, '(') && !kl_ptx_params(ps, vars)) return false;
  f->nreturns = (uint32_t)vars->n;
  f->at = kl_ptx_here(ps);
  if (!kl_ptx_name(ps, f->entry ? "a kernel's name" : "a function's name", &f->name)) return false;
  if (kl_ptx_at(ps, '(') && !kl_ptx_params(ps, vars)) return false;
  f->nparams = (uint32_t)vars->n - f->nreturns;
  return check_params(ps, f) && kl_ptx_tune(ps, &f->tuning, f->entry, pragmas) && check_tuning(ps, f);
}

bool kl_ptx_same_prototype(const kl_ptx_func *a, const kl_ptx_func *b) {
  if (a->entry != b->entry || a->nreturns != b->nreturns || a->nparams != b->nparams) return false;
  for (uint32_t i = 0; i < a->nreturns + a->nparams; i++) {
    const kl_ptx_var *v = &a->vars[i], *w = &b->vars[i];
    if (v->type != w->type || v->bytes != w->bytes || v->align != w->align || !v->reg != !w->reg) return false;
  }
  return true;
}

// The function of that name, made if there is none.
static bool enter_function(kl_ptx_parser *ps, const kl_ptx_func *f, bool defines, uint32_t *index) {
  uint32_t number;
  const kl_ptx_symbol *s = kl_ptx_names_find(&ps->names, f->name, &number);
  if (!s || s->kind != KL_PTX_FUNCTION) {
    *index = (uint32_t)ps->funcs.n;
    if (!kl_ptx_declare(ps, (kl_ptx_symbol){.name = f->name, .kind = KL_PTX_FUNCTION, .index = *index})) return false;
    VEC_PUSH(ps->cx, &ps->funcs, *f);
    return true;
  }
  *index = s->index;
  const kl_ptx_func *old = &ps->funcs.p[s->index];
  if (old->defined)
    return kl_ptx_wrong(ps, f->name, "expected no more of '%.*s', which is defined in line %u, found it again",
                        KL_FMT(f->name), old->at.line);
  if (old->alias && defines)
    return kl_ptx_wrong(ps, f->name, "expected no body of the alias '%.*s', found one", KL_FMT(f->name));
  if (old->external && defines)
    return kl_ptx_wrong(ps, f->name, "expected no body of '%.*s', which is .extern in line %u, found one",
                        KL_FMT(f->name), old->at.line);
  return kl_ptx_same_prototype(old, f) ||
         kl_ptx_wrong(ps, f->name, "expected '%.*s' as it is declared in line %u, found other parameters or results",
                      KL_FMT(f->name), old->at.line);
}

// --- functions ----------------------------------------------------------------------------------------------------

static void reset(kl_ptx_parser *ps) {
  ps->regs.n = ps->locals.n = ps->instrs.n = ps->labels.n = ps->tables.n = 0;
  ps->marks.n = ps->fixups.n = ps->scope_fixups.n = ps->statement_pragmas.n = 0;
  ps->locs.n = 0;
  ps->loc = (kl_ptx_place){0};
}

#define KEEP(ps, v) ((v)->n ? kl_arena_dup((ps)->arena, (v)->p, (v)->n * sizeof *(v)->p) : NULL)

static void keep_body(kl_ptx_parser *ps, kl_ptx_func *f) {
  f->regs = KEEP(ps, &ps->regs);
  f->nregs = (uint32_t)ps->regs.n;
  f->instrs = KEEP(ps, &ps->instrs);
  f->ninstrs = (uint32_t)ps->instrs.n;
  f->labels = KEEP(ps, &ps->labels);
  f->nlabels = (uint32_t)ps->labels.n;
  f->tables = KEEP(ps, &ps->tables);
  f->ntables = (uint32_t)ps->tables.n;
  f->marks = KEEP(ps, &ps->marks);
  f->nmarks = (uint32_t)ps->marks.n;
  f->statement_pragmas = KEEP(ps, &ps->statement_pragmas);
  f->nstatement_pragmas = (uint32_t)ps->statement_pragmas.n;
}

static bool define(kl_ptx_parser *ps, kl_ptx_func *f) {
  kl_ptx_names_open(&ps->names);
  ps->f = f;
  bool ok = kl_ptx_declare_params(ps);
  kl_ptx_body(ps);
  ps->f = NULL;
  keep_body(ps, f);
  f->defined = true;
  return ok;
}

static void keep_vars(kl_ptx_parser *ps, kl_ptx_func *f) {
  f->vars = KEEP(ps, &ps->locals);
  f->nvars = (uint32_t)ps->locals.n;
}

bool kl_ptx_function(kl_ptx_parser *ps, kl_ptx_func f) {
  kl_ptx_strs pragmas = {0};
  uint32_t index = 0;
  reset(ps);
  bool ok = take_head(ps, &f, &pragmas);
  f.npragmas = (uint32_t)pragmas.n;
  f.pragmas = VEC_FREEZE(ps->cx, ps->arena, &pragmas);
  if (!ok) return false;
  bool defines = kl_ptx_at(ps, '{');
  keep_vars(ps, &f);
  if (!defines && !kl_ptx_need(ps, ';', "or a body after the function's head")) return false;
  if (!enter_function(ps, &f, defines, &index)) return false;
  if (defines) {
    if (f.external) return kl_ptx_wrong(ps, f.name, "expected no body of what is .extern, found one");
    kl_ptx_lex_next(&ps->lx);
    ok = define(ps, &f);
    keep_vars(ps, &f);
  }
  const kl_ptx_func *old = &ps->funcs.p[index];
  f.visible |= old->visible;
  f.weak |= old->weak;
  f.external |= old->external && !f.defined;
  f.alias = old->alias;
  ps->funcs.p[index] = f;
  return ok;
}
