// Bodies of functions: scopes, labels, tables, directives among the statements.
#include "sim/ptx/parse.h"

// --- scopes -------------------------------------------------------------------------------------------------------

static void open_scope(kl_ptx_parser *ps) {
  VEC_PUSH(ps->cx, &ps->scope_fixups, ps->fixups.n);
}

static void resolve(const kl_ptx_fixup *x, const kl_ptx_symbol *s) {
  if (x->target) {
    *x->target = s->index;
    return;
  }
  x->operand->kind = (uint8_t)s->kind;
  x->operand->index = s->index;
}

// Is that what the name means? `last`: no scope around this one has labels, so it may be what the module declares.
static bool fits(const kl_ptx_parser *ps, const kl_ptx_fixup *x, const kl_ptx_symbol *s, bool last) {
  if (!s) return false;
  if (s->kind == KL_PTX_LABEL) return s->depth == kl_ptx_names_depth(&ps->names);
  return last && !x->target && (s->kind == KL_PTX_VAR || s->kind == KL_PTX_FUNCTION);
}

// Names that mean something in the scope that ends; the others are left to the one around it.
static void resolve_fixups(kl_ptx_parser *ps, size_t from, bool last) {
  size_t kept = from;
  for (size_t i = from; i < ps->fixups.n; i++) {
    kl_ptx_fixup x = ps->fixups.p[i];
    uint32_t number;
    const kl_ptx_symbol *s = kl_ptx_names_find(&ps->names, x.name, &number);
    if (fits(ps, &x, s, last))
      resolve(&x, s);
    else if (!last)
      ps->fixups.p[kept++] = x;
    else if (!kl_ptx_too_many(ps))
      kl_ptx_wrong(ps, x.at, "expected %s, found '%.*s'", x.target ? "a label" : "a name that is declared",
                   KL_FMT(x.name));
  }
  ps->fixups.n = kept;
}

static void close_scope(kl_ptx_parser *ps) {
  size_t from = ps->scope_fixups.p[--ps->scope_fixups.n];
  resolve_fixups(ps, from, ps->scope_fixups.n == 0);
  kl_ptx_names_close(&ps->names);
}

// --- tables -------------------------------------------------------------------------------------------------------

// A target as the list has it, and the name it makes.
typedef struct target {
  kl_str at, name;
} target;
typedef VEC(target) targets;

// N<5>, behind the name: N0 to N4.
static bool take_run(kl_ptx_parser *ps, kl_str prefix, targets *out) {
  if (ps->lx.kind != KL_PTX_TOK_INT || !ps->lx.bits) return kl_ptx_expected(ps, "a number of labels, at least 1");
  uint64_t n = ps->lx.bits;
  if (n > KL_PTX_MOST_EXPANDED - ps->expanded)
    return kl_ptx_refused(ps, prefix, "more than %d labels in runs are not supported", KL_PTX_MOST_EXPANDED);
  ps->expanded += (uint32_t)n;
  for (uint32_t i = 0; i < n; i++)
    VEC_PUSH(ps->cx, out, (target){prefix, kl_str_of(kl_strf(ps->arena, "%.*s%u", KL_FMT(prefix), i))});
  kl_ptx_lex_next(&ps->lx);
  return kl_ptx_need(ps, '>', "after the number of labels");
}

static bool take_targets(kl_ptx_parser *ps, bool runs, targets *out) {
  do {
    kl_str name;
    if (!kl_ptx_name(ps, "a target", &name)) return false;
    if (!runs || !kl_ptx_eat(ps, '<'))
      VEC_PUSH(ps->cx, out, (target){name, name});
    else if (!take_run(ps, name, out))
      return false;
  } while (kl_ptx_eat(ps, ','));
  return true;
}

static bool is_function(kl_ptx_parser *ps, kl_str name, uint32_t *index) {
  uint32_t number;
  const kl_ptx_symbol *s = kl_ptx_names_find(&ps->names, name, &number);
  if (!s || s->kind != KL_PTX_FUNCTION)
    return kl_ptx_wrong(ps, name, "expected a function that is declared, found '%.*s'", KL_FMT(name));
  *index = s->index;
  return true;
}

static bool take_target_list(kl_ptx_parser *ps, kl_ptx_table *t) {
  targets list = {0};
  bool labels = t->kind == KL_PTX_BRANCHTARGETS, ok = take_targets(ps, labels, &list);
  uint32_t *numbers = KL_NEW_N(ps->arena, uint32_t, list.n);
  t->targets = numbers;
  t->n = (uint32_t)list.n;
  for (size_t i = 0; i < list.n && ok; i++) {
    target x = list.p[i];
    if (labels)
      VEC_PUSH(ps->cx, &ps->fixups, (kl_ptx_fixup){.name = x.name, .at = x.at, .target = &numbers[i]});
    else
      ok = is_function(ps, x.name, &numbers[i]);
  }
  VEC_FREE(ps->cx, &list);
  return ok;
}

static bool take_no_name(kl_ptx_parser *ps) {
  if (ps->lx.kind != KL_PTX_TOK_NAME || !kl_str_is(ps->lx.word, "_"))
    return kl_ptx_expected(ps, "'_' in the place of the function's name");
  kl_ptx_lex_next(&ps->lx);
  return true;
}

// (results) _ (parameters) directives
static bool take_prototype(kl_ptx_parser *ps, kl_ptx_table *t) {
  kl_ptx_vars vars = {0};
  bool ok = !kl_ptx_at(ps, '(') || kl_ptx_params(ps, &vars);
  t->nreturns = (uint32_t)vars.n;
  ok = ok && take_no_name(ps) && (!kl_ptx_at(ps, '(') || kl_ptx_params(ps, &vars)) &&
       kl_ptx_tune(ps, &t->tuning, false, NULL);
  t->nparams = (uint32_t)vars.n - t->nreturns;
  t->returns = VEC_FREEZE(ps->cx, ps->arena, &vars);
  t->params = t->returns ? t->returns + t->nreturns : NULL;
  return ok;
}

bool kl_ptx_table_directive(kl_ptx_parser *ps, kl_str name) {
  kl_ptx_table t = {.name = name};
  bool ok;
  if (kl_ptx_eat_dot(ps, "branchtargets")) {
    t.kind = KL_PTX_BRANCHTARGETS;
    ok = take_target_list(ps, &t);
  } else if (kl_ptx_eat_dot(ps, "calltargets")) {
    t.kind = KL_PTX_CALLTARGETS;
    ok = take_target_list(ps, &t);
  } else {
    kl_ptx_lex_next(&ps->lx);
    t.kind = KL_PTX_CALLPROTOTYPE;
    ok = take_prototype(ps, &t);
  }
  kl_ptx_symbol s = {.name = name, .kind = KL_PTX_TABLE, .index = (uint32_t)ps->tables.n};
  ok = ok && kl_ptx_declare(ps, s);
  kl_ptx_mark_here(ps, KL_PTX_MARK_TABLE, ps->tables.n);
  VEC_PUSH(ps->cx, &ps->tables, t);
  return ok && kl_ptx_need(ps, ';', "after the list");
}

// --- statements ---------------------------------------------------------------------------------------------------

static bool at_table(const kl_ptx_parser *ps) {
  return kl_ptx_at_dot(ps, "branchtargets") || kl_ptx_at_dot(ps, "calltargets") || kl_ptx_at_dot(ps, "callprototype");
}

static bool take_label(kl_ptx_parser *ps, kl_str name) {
  if (at_table(ps)) return kl_ptx_table_directive(ps, name);
  uint32_t index = (uint32_t)ps->labels.n;
  kl_ptx_mark_here(ps, KL_PTX_MARK_LABEL, index);
  VEC_PUSH(ps->cx, &ps->labels, (kl_ptx_label){name, (uint32_t)ps->instrs.n});
  return kl_ptx_declare(ps, (kl_ptx_symbol){.name = name, .kind = KL_PTX_LABEL, .index = index});
}

static bool take_integer(kl_ptx_parser *ps, const char *what, uint64_t *out) {
  if (ps->lx.kind != KL_PTX_TOK_INT || ps->lx.bits > UINT32_MAX) return kl_ptx_expected(ps, "%s", what);
  *out = ps->lx.bits;
  kl_ptx_lex_next(&ps->lx);
  return true;
}

static bool take_place(kl_ptx_parser *ps, const char *file_of, kl_ptx_inlined *out) {
  uint64_t file = 0, line = 0, column = 0;
  if (!take_integer(ps, file_of, &file) || !take_integer(ps, "a line", &line) || !take_integer(ps, "a column", &column))
    return false;
  *out = (kl_ptx_inlined){(uint32_t)file, (uint32_t)line, (uint32_t)column, 0};
  return true;
}

static bool is_at(const kl_ptx_inlined *a, const kl_ptx_inlined *b) {
  return a->file == b->file && a->line == b->line && a->column == b->column;
}

// What a place was itself inlined into, as the last .loc of it says; one that is far away in the text is not found.
enum { MOST_LOCS = 4096 };
static uint32_t inlined_into(const kl_ptx_parser *ps, const kl_ptx_inlined *at) {
  size_t least = ps->locs.n > MOST_LOCS ? ps->locs.n - MOST_LOCS : 0;
  for (size_t k = ps->locs.n; k-- > least;)
    if (is_at(&ps->locs.p[k], at)) return ps->locs.p[k].inlined;
  return 0;
}

// The number + 1 of such a place; the last few are looked through, as neighbours are inlined together.
static uint32_t inlined_number(kl_ptx_parser *ps, kl_ptx_inlined at) {
  at.inlined = inlined_into(ps, &at);
  for (size_t k = ps->inlined.n, back = 0; k-- > 0 && back < 16; back++)
    if (is_at(&ps->inlined.p[k], &at) && ps->inlined.p[k].inlined == at.inlined) return (uint32_t)k + 1;
  VEC_PUSH(ps->cx, &ps->inlined, at);
  return (uint32_t)ps->inlined.n;
}

// , function_name label + offset, inlined_at file line column. Names of functions are in debug sections, and skipped.
static bool take_inlined(kl_ptx_parser *ps, uint32_t *out) {
  kl_str name;
  *out = 0;
  while (kl_ptx_eat(ps, ',')) {
    if (!kl_ptx_name(ps, "function_name or inlined_at", &name)) return false;
    if (kl_str_is(name, "inlined_at")) {
      kl_ptx_inlined at;
      if (!take_place(ps, "a file's number", &at)) return false;
      *out = inlined_number(ps, at);
      continue;
    }
    int64_t offset;
    if (!kl_str_is(name, "function_name"))
      return kl_ptx_wrong(ps, name, "expected function_name or inlined_at, found '%.*s'", KL_FMT(name));
    if (ps->lx.kind != KL_PTX_TOK_NAME && ps->lx.kind != KL_PTX_TOK_DOT) return kl_ptx_expected(ps, "a label");
    kl_ptx_lex_next(&ps->lx);
    if (!kl_ptx_offset(ps, false, &offset)) return false;
  }
  return true;
}

static bool take_loc(kl_ptx_parser *ps) {
  kl_ptx_inlined at;
  kl_ptx_lex_next(&ps->lx);
  if (!take_place(ps, "a file's number after .loc", &at) || !take_inlined(ps, &at.inlined)) return false;
  ps->loc = (kl_ptx_place){.file = at.file, .src_line = at.line, .column = at.column, .inlined = at.inlined};
  VEC_PUSH(ps->cx, &ps->locs, at);
  return true;
}

static bool take_pragma(kl_ptx_parser *ps) {
  kl_ptx_strs list = {0};
  kl_ptx_lex_next(&ps->lx);
  bool ok = kl_ptx_pragma_strings(ps, &list);
  for (size_t i = 0; i < list.n; i++) {
    kl_ptx_mark_here(ps, KL_PTX_MARK_PRAGMA, ps->statement_pragmas.n);
    VEC_PUSH(ps->cx, &ps->statement_pragmas, (kl_ptx_pragma){list.p[i], (uint32_t)ps->instrs.n});
  }
  VEC_FREE(ps->cx, &list);
  return ok;
}

static bool take_directive(kl_ptx_parser *ps) {
  kl_ptx_space space;
  if (kl_ptx_at_dot(ps, "loc")) return take_loc(ps);
  if (kl_ptx_at_dot(ps, "reg")) return kl_ptx_registers(ps);
  if (kl_ptx_at_dot(ps, "pragma")) return take_pragma(ps);
  if (kl_ptx_space_of(ps->lx.word, &space)) return kl_ptx_variables(ps, (kl_ptx_var){0}, (kl_str){0});
  if (at_table(ps)) return kl_ptx_expected(ps, "a label before the directive");
  return kl_ptx_expected(ps, "a directive of a function's body");
}

static bool take_statement(kl_ptx_parser *ps) {
  if (ps->lx.kind == KL_PTX_TOK_DOT) return take_directive(ps);
  if (kl_ptx_at(ps, '@')) return kl_ptx_instruction(ps, (kl_str){0}, kl_ptx_here(ps));
  if (kl_ptx_at(ps, KL_PTX_TWO('@', '@'))) {
    kl_ptx_lex_skip_line(&ps->lx);
    return true;
  }
  kl_ptx_place at = kl_ptx_here(ps);
  kl_str name;
  if (!kl_ptx_name(ps, "a statement", &name)) return false;
  return kl_ptx_eat(ps, ':') ? take_label(ps, name) : kl_ptx_instruction(ps, name, at);
}

static bool take_brace(kl_ptx_parser *ps) {
  if (ps->scope_fixups.n == KL_PTX_MOST_SCOPES)
    return kl_ptx_expected(ps, "braces at most %d deep", KL_PTX_MOST_SCOPES);
  kl_ptx_lex_next(&ps->lx);
  kl_ptx_names_open(&ps->names);
  kl_ptx_mark_here(ps, KL_PTX_MARK_OPEN, 0);
  open_scope(ps);
  return true;
}

bool kl_ptx_body(kl_ptx_parser *ps) {
  open_scope(ps);
  while (ps->scope_fixups.n && !kl_ptx_too_many(ps)) {
    if (ps->lx.kind == KL_PTX_TOK_END) {
      kl_ptx_expected(ps, "'}' at the end of '%.*s'", KL_FMT(ps->f->name));
      break;
    }
    if (kl_ptx_at(ps, '}')) {
      close_scope(ps);
      if (ps->scope_fixups.n) kl_ptx_mark_here(ps, KL_PTX_MARK_CLOSE, 0);
      kl_ptx_lex_next(&ps->lx);
    } else if (kl_ptx_at(ps, '{') ? !take_brace(ps) : !take_statement(ps)) {
      kl_ptx_recover(ps);
    }
  }
  while (ps->scope_fixups.n) close_scope(ps);
  return true;
}
