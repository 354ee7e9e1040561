// Reading maps. One grammar takes all forms in use:
//
//   text   := '#' NAME ('.' NAME)* '<' '"'? map '"'? '>'  |  map  |  'UNDEFINED'  |  'KNOWN' 'EMPTY'
//   map    := '(' names? ')' ('[' names? ']')? ('{' names? '}')? '->' '(' exprs? ')' (','? 'domain' ':' decls)?
//             (',' 'is_simplified' ':' NAME)?
//   decls  := NAME 'in' ival for every variable in order, then expr 'in' ival; commas between them may be missing
//   ival   := '[' INT ',' INT ']'
//   expr   := term (('+' | '-') term)*
//   term   := factor (('*' | '/' | 'floordiv' | 'ceildiv' | 'mod') factor)*
//   factor := INT NAME? | NAME | '(' expr ')' | '-' factor | ('min' | 'max') '(' expr (',' expr)+ ')'
//
// "100d0" is 100 * d0. A variable spelled like its default name has none of its own.

#include "ir/index/map/map.h"
#include "ir/text/scan.h"
#include "ir/index/impl.h"

enum { MOST_NESTED = 400, MOST_VARIABLES = 1 << 14 };

typedef enum token { T_END, T_INT, T_NAME, T_ARROW, T_PUNCT } token;

typedef struct reader {
  kl_affs *p;
  kl_ctx *cx;
  kl_scan scan;
  kl_arena names_arena;
  kl_interner names;          // of all variables, in order: symbol - 1 is the position
  uint32_t ends[KL_AFF_VARS]; // positions where the variables of each kind end
  token kind;
  char punct;
  unsigned depth;
  kiln_status status;
} reader;

// --- tokens -------------------------------------------------------------------------------------------------------

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char at(const reader *r, size_t i) {
  return kl_scan_at(&r->scan, i);
}

static void next(reader *r) {
  kl_scan *s = &r->scan;
  s->last_end = s->pos;
  kl_scan_skip_space(s);
  s->begin = s->pos;
  r->punct = 0;
  char c = at(r, s->pos);
  if (kl_scan_ended(s)) {
    r->kind = T_END;
  } else if (is_digit(c)) {
    r->kind = T_INT;
    while (is_digit(at(r, s->pos))) s->pos++;
  } else if (is_letter(c)) {
    r->kind = T_NAME;
    while (is_letter(at(r, s->pos)) || is_digit(at(r, s->pos))) s->pos++;
  } else if (kl_scan_eat(s, "->")) {
    r->kind = T_ARROW;
  } else {
    r->kind = T_PUNCT;
    r->punct = c;
    kl_scan_character(s);
  }
}

static kl_str text(const reader *r) {
  return kl_scan_text(&r->scan);
}
static kl_span here(const reader *r) {
  return kl_scan_here(&r->scan);
}

static bool expected(reader *r, const char *what) {
  if (r->status != KILN_OK) return false;
  if (r->kind == T_END)
    r->status = kl_invalid(r->cx, here(r), "expected %s, found the end of the text", what);
  else
    r->status = kl_invalid(r->cx, here(r), "expected %s, found '%.*s'", what, KL_FMT(text(r)));
  return false;
}

static bool eat(reader *r, char punct) {
  if (r->kind != T_PUNCT || r->punct != punct) return false;
  next(r);
  return true;
}
static bool is_name(const reader *r, const char *name) {
  return r->kind == T_NAME && kl_str_is(text(r), name);
}
static bool eat_name(reader *r, const char *name) {
  if (!is_name(r, name)) return false;
  next(r);
  return true;
}
static bool need(reader *r, char punct, const char *what) {
  return eat(r, punct) || expected(r, what);
}

// --- expressions --------------------------------------------------------------------------------------------------

static const kl_aff *read_expr(reader *r);

// The value, or NULL with a finding at the text since `begin`.
static const kl_aff *value(reader *r, const kl_aff *e, size_t begin) {
  if (!e || r->status != KILN_OK) return NULL;
  if (!e->error) return e;
  kl_span where = kl_scan_since(&r->scan, begin);
  if (e->error == KL_AFF_DIV_BY_ZERO)
    r->status = kl_invalid(r->cx, where, "division by 0");
  else
    r->status = kl_unsupported(r->cx, where, "%s", kl_aff_error_text(e->error));
  return NULL;
}

// A literal; minus signs belong to it where the caller says so.
static bool read_int(reader *r, bool minus, int64_t *out) {
  char digits[24] = "-";
  kl_str s = text(r);
  if (r->kind != T_INT) return expected(r, "an integer");
  bool fits = s.n <= 19;
  if (fits) {
    memcpy(digits + 1, s.p, s.n);
    fits = kl_i64_from_text((kl_str){digits + !minus, s.n + minus}, out);
  }
  if (!fits && r->status == KILN_OK) {
    r->status =
        kl_unsupported(r->cx, here(r), "integers go up to 64 bits, found '%s%.*s'", minus ? "-" : "", KL_FMT(s));
  }
  next(r);
  return fits;
}

static const kl_aff *variable(reader *r, uint32_t position) {
  uint32_t begin = 0;
  for (int k = 0; k < KL_AFF_VARS; k++) {
    if (position < r->ends[k]) return kl_aff_var(r->p, (kl_aff_kind)k, position - begin);
    begin = r->ends[k];
  }
  return NULL;
}

static bool is_keyword(kl_str s) {
  static const char *const words[] = {"in",       "domain",   "mod",     "min",    "max",
                                      "floordiv", "floorDiv", "ceildiv", "ceilDiv"};
  for (size_t i = 0; i < KL_COUNT(words); i++) {
    if (kl_str_is(s, words[i])) return true;
  }
  return false;
}

static const kl_aff *read_name(reader *r) {
  uint32_t symbol;
  if (is_keyword(text(r))) {
    expected(r, "an expression");
    return NULL;
  }
  if (!kl_intern_known(&r->names, text(r), &symbol) || symbol == 0) {
    if (r->status == KILN_OK) {
      r->status = kl_invalid(r->cx, here(r), "'%.*s' is not one of the map's variables", KL_FMT(text(r)));
    }
    return NULL;
  }
  next(r);
  return variable(r, symbol - 1);
}

typedef VEC(const kl_aff *) affs;

static const kl_aff *read_extremum(reader *r) {
  kl_aff_kind kind = is_name(r, "min") ? KL_AFF_MIN : KL_AFF_MAX;
  size_t begin = r->scan.begin;
  affs list = {0};
  next(r);
  bool ok = need(r, '(', "'(' after min or max");
  while (ok) {
    const kl_aff *e = read_expr(r);
    ok = e != NULL;
    if (ok) VEC_PUSH(r->cx, &list, e);
    if (!ok || !eat(r, ',')) break;
  }
  if (ok && list.n < 2) ok = expected(r, "',' and a second argument");
  ok = ok && need(r, ')', "')' or another argument");
  const kl_aff *e = ok ? value(r, kl_aff_extremum(r->p, kind, list.p, (uint32_t)list.n), begin) : NULL;
  VEC_FREE(r->cx, &list);
  return e;
}

static bool is_literal_minus(const reader *r) {
  return r->kind == T_PUNCT && r->punct == '-' && is_digit(at(r, r->scan.pos));
}

static const kl_aff *read_literal(reader *r) {
  int64_t v;
  size_t begin = r->scan.begin;
  bool minus = eat(r, '-');
  if (!read_int(r, minus, &v)) return NULL;
  const kl_aff *e = kl_aff_const(r->p, v);
  bool touches = r->kind == T_NAME && r->scan.begin == r->scan.last_end;
  if (!touches) return e;
  const kl_aff *name = read_name(r);
  return name ? value(r, kl_aff_mul(r->p, e, name), begin) : NULL;
}

static const kl_aff *read_factor(reader *r) {
  const kl_aff *e = NULL;
  size_t begin = r->scan.begin;
  if (r->depth++ >= MOST_NESTED) {
    if (r->status == KILN_OK) {
      r->status = kl_unsupported(r->cx, here(r), "expressions nest at most %d deep", MOST_NESTED);
    }
  } else if (r->kind == T_INT || is_literal_minus(r)) {
    e = read_literal(r);
  } else if (eat(r, '-')) {
    e = read_factor(r);
    if (e) e = value(r, kl_aff_mulc(r->p, e, -1), begin);
  } else if (eat(r, '(')) {
    e = read_expr(r);
    if (e && !need(r, ')', "')' or an operator")) e = NULL;
  } else if (is_name(r, "min") || is_name(r, "max")) {
    e = read_extremum(r);
  } else if (r->kind == T_NAME) {
    e = read_name(r);
  } else {
    expected(r, "an expression");
  }
  r->depth--;
  return e;
}

typedef const kl_aff *binary(kl_affs *, const kl_aff *, const kl_aff *);

static binary *read_operator(reader *r) {
  static const struct {
    const char *name;
    binary *op;
  } words[] = {{"floordiv", kl_aff_floordiv},
               {"floorDiv", kl_aff_floordiv},
               {"ceildiv", kl_aff_ceildiv},
               {"ceilDiv", kl_aff_ceildiv},
               {"mod", kl_aff_mod}};
  if (eat(r, '*')) return kl_aff_mul;
  if (eat(r, '/')) return kl_aff_floordiv;
  for (size_t i = 0; i < KL_COUNT(words); i++) {
    if (eat_name(r, words[i].name)) return words[i].op;
  }
  return NULL;
}

static const kl_aff *read_term(reader *r) {
  size_t begin = r->scan.begin;
  const kl_aff *e = read_factor(r);
  while (e) {
    binary *op = read_operator(r);
    if (!op) break;
    const kl_aff *b = read_factor(r);
    e = b ? value(r, op(r->p, e, b), begin) : NULL;
  }
  return e;
}

static const kl_aff *read_expr(reader *r) {
  size_t begin = r->scan.begin;
  const kl_aff *e = read_term(r);
  kl_adder sum;
  if (!e || r->kind != T_PUNCT || (r->punct != '+' && r->punct != '-')) return e;
  kl_adder_open(&sum, 0);
  kl_adder_add(r->p, &sum, e, 1);
  while (e && r->kind == T_PUNCT && (r->punct == '+' || r->punct == '-')) {
    int64_t sign = r->punct == '+' ? 1 : -1;
    next(r);
    e = read_term(r);
    if (e) kl_adder_add(r->p, &sum, e, sign);
  }
  const kl_aff *total = kl_adder_sum(r->p, &sum);
  return e ? value(r, total, begin) : NULL;
}

// --- maps ---------------------------------------------------------------------------------------------------------

static bool read_variable_name(reader *r) {
  kl_str name = text(r);
  uint32_t symbol;
  if (r->kind != T_NAME || is_keyword(name)) return expected(r, "a variable's name");
  if (kl_intern_known(&r->names, name, &symbol) && symbol) {
    r->status = kl_invalid(r->cx, here(r), "a second variable '%.*s'", KL_FMT(name));
    return false;
  }
  if (r->names.strings.n > MOST_VARIABLES) {
    r->status = kl_unsupported(r->cx, here(r), "maps have at most %d variables", MOST_VARIABLES);
    return false;
  }
  kl_intern(&r->names, name);
  next(r);
  return true;
}

static uint32_t count_names(const reader *r) {
  return r->names.strings.n ? (uint32_t)r->names.strings.n - 1 : 0;
}

static bool read_names(reader *r, char open, char close, const char *what, kl_aff_kind kind) {
  bool ok = true;
  bool there = kind == KL_AFF_DIM || (r->kind == T_PUNCT && r->punct == open);
  if (there) ok = need(r, open, "'(' and the names of the dims");
  if (there && ok && !eat(r, close)) {
    do ok = read_variable_name(r);
    while (ok && eat(r, ','));
    ok = ok && need(r, close, what);
  }
  for (int k = kind; k < KL_AFF_VARS; k++) r->ends[k] = count_names(r);
  return ok;
}

typedef VEC(kl_constraint) constraints;

static bool read_results(reader *r, affs *out) {
  if (r->kind != T_ARROW) return expected(r, "'->'");
  next(r);
  if (!need(r, '(', "'(' and the results")) return false;
  if (eat(r, ')')) return true;
  do {
    const kl_aff *e = read_expr(r);
    if (!e) return false;
    VEC_PUSH(r->cx, out, e);
  } while (eat(r, ','));
  return need(r, ')', "',', ')' or an operator");
}

static bool read_bound(reader *r, int64_t *out) {
  return read_int(r, eat(r, '-'), out);
}

static bool read_interval(reader *r, kl_interval *in) {
  if (!eat_name(r, "in")) return expected(r, "'in' and an interval");
  return need(r, '[', "'[' and the bounds") && read_bound(r, &in->lo) && need(r, ',', "',' and the upper bound") &&
         read_bound(r, &in->hi) && need(r, ']', "']'");
}

// The bounds of variable number i: its declaration is next, and no other.
static bool read_declaration(reader *r, uint32_t i, kl_map_var *var) {
  kl_str name = kl_symbol_text(&r->names, i + 1);
  if (r->kind != T_NAME || !kl_str_eq(text(r), name)) {
    return expected(r, kl_strf(&r->names_arena, "the bounds of '%.*s'", KL_FMT(name)));
  }
  next(r);
  return read_interval(r, &var->in);
}

static bool at_end(const reader *r) {
  return r->kind == T_END || (r->kind == T_PUNCT && (r->punct == '"' || r->punct == '>')) ||
         is_name(r, "is_simplified");
}

static bool read_constraints(reader *r, constraints *out) {
  while (!at_end(r)) {
    kl_constraint c;
    c.e = read_expr(r);
    if (!c.e || !read_interval(r, &c.in)) return false;
    VEC_PUSH(r->cx, out, c);
    eat(r, ',');
  }
  return true;
}

static void set_names(reader *r, kl_map_var *vars[KL_AFF_VARS]) {
  static const char *const letter[] = {"d", "s", "rt"};
  for (uint32_t i = 0, k = 0, first = 0; i < count_names(r); i++) {
    while (i >= r->ends[k]) first = r->ends[k++];
    kl_str name = kl_symbol_text(&r->names, i + 1);
    char usual[16];
    kl_sb b;
    kl_sb_init(&b, r->cx);
    kl_sb_puts(&b, letter[k]);
    kl_sb_u64(&b, i - first);
    memcpy(usual, b.p, b.n < sizeof usual ? b.n + 1 : 1);
    kl_sb_free(&b);
    if (!kl_str_is(name, usual)) vars[k][i - first].name = kl_str_dup(r->p->arena, name);
  }
}

static bool read_domain(reader *r, kl_map_var *vars[KL_AFF_VARS], constraints *out) {
  uint32_t n = count_names(r);
  bool comma = eat(r, ',');
  if (at_end(r) && n == 0) return true;
  if (!eat_name(r, "domain")) return expected(r, n || comma ? "'domain:' and the bounds of every variable" : "the end");
  if (!need(r, ':', "':'")) return false;
  for (uint32_t i = 0, k = 0, first = 0; i < n; i++) {
    while (i >= r->ends[k]) first = r->ends[k++];
    if (!read_declaration(r, i, &vars[k][i - first])) return false;
    eat(r, ',');
  }
  return read_constraints(r, out);
}

static bool read_tail(reader *r) {
  if (!eat_name(r, "is_simplified")) return true;
  if (!need(r, ':', "':'")) return false;
  return eat_name(r, "true") || eat_name(r, "false") || expected(r, "true or false");
}

static bool read_map(reader *r, const kl_map **out) {
  affs results = {0};
  constraints c = {0};
  kl_map parts = {.nvars = {0}};
  kl_map_var *vars[KL_AFF_VARS] = {NULL};
  bool ok = read_names(r, '(', ')', "',' or ')'", KL_AFF_DIM) && read_names(r, '[', ']', "',' or ']'", KL_AFF_RANGE) &&
            read_names(r, '{', '}', "',' or '}'", KL_AFF_RT) && read_results(r, &results);
  for (int k = 0; k < KL_AFF_VARS; k++) {
    parts.nvars[k] = r->ends[k] - (k ? r->ends[k - 1] : 0);
    parts.vars[k] = vars[k] = KL_NEW_N(r->p->arena, kl_map_var, parts.nvars[k] + 1);
  }
  if (ok) set_names(r, vars);
  ok = ok && read_domain(r, vars, &c) && read_tail(r);
  parts.results = results.p;
  parts.nresults = (uint32_t)results.n;
  parts.constraints = c.p;
  parts.nconstraints = (uint32_t)c.n;
  if (ok) *out = kl_map_make(r->p, &parts);
  VEC_FREE(r->cx, &results);
  VEC_FREE(r->cx, &c);
  return ok;
}

static bool read_state(reader *r, const kl_map **out) {
  if (eat_name(r, "UNDEFINED")) {
    *out = kl_map_undefined(r->p, "the text says so");
    return true;
  }
  if (!eat_name(r, "KNOWN")) return read_map(r, out);
  if (!eat_name(r, "EMPTY")) return expected(r, "'EMPTY'");
  *out = kl_map_make(r->p, &(kl_map){.state = KL_MAP_EMPTY});
  return true;
}

static bool read_attribute(reader *r, const kl_map **out) {
  if (!eat(r, '#')) return read_state(r, out);
  do {
    if (r->kind != T_NAME) return expected(r, "the attribute's name");
    next(r);
  } while (eat(r, '.'));
  if (!need(r, '<', "'<'")) return false;
  bool quoted = eat(r, '"');
  if (!read_state(r, out) || (quoted && !need(r, '"', "'\"'"))) return false;
  if (eat(r, ',') && !read_tail(r)) return false;
  return need(r, '>', "'>'");
}

kiln_status kl_map_parse(kl_affs *p, const kl_source *src, const kl_map **out) {
  reader r = {.p = p, .cx = p->cx, .scan = {.src = src}, .status = KILN_OK};
  kl_arena_init(&r.names_arena, p->cx);
  kl_interner_init(&r.names, &r.names_arena);
  next(&r);
  *out = NULL;
  bool ok = read_attribute(&r, out) && (r.kind == T_END || expected(&r, "the end of the text"));
  kl_interner_free(&r.names);
  kl_arena_free(&r.names_arena);
  if (ok) return KILN_OK;
  *out = NULL;
  return r.status == KILN_OK ? KILN_E_INTERNAL : r.status;
}
