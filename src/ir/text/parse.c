// The parser of HLO modules: computations, the module around them, and going on after an error.
//
// Instructions become drafts whose operands are names; link.c resolves them once all computations are read. After
// an error reading goes on at the next line that looks like the beginning of an instruction or of a computation, so
// that one text gives many findings. What may be nested in the text (types of tuples, instructions as operands,
// computations as attributes) has a limit, so nothing recurses with the input's size.
#include "ir/text/parse.h"
#include "ir/shape.h"

// --- going on after an error --------------------------------------------------------------------------------------

static size_t skip_blanks(kl_str t, size_t pos) {
  while (pos < t.n && (t.p[pos] == ' ' || t.p[pos] == '\t')) pos++;
  return pos;
}

static size_t skip_space(kl_str t, size_t pos) {
  while (pos < t.n && kl_is_space(t.p[pos])) pos++;
  return pos;
}

// Behind %name or name, or 0.
static size_t skip_name(kl_str t, size_t pos) {
  size_t begin = pos < t.n && t.p[pos] == '%' ? pos + 1 : pos;
  for (pos = begin; pos < t.n && kl_is_name_char(t.p[pos]);) pos++;
  return pos > begin ? pos : 0;
}

static bool has_word(kl_str t, size_t pos, kl_str word) {
  if (t.n - pos <= word.n || memcmp(t.p + pos, word.p, word.n) != 0) return false;
  char next = t.p[pos + word.n];
  return kl_is_space(next) || next == '%' || next == '/';
}

bool kl_is_instruction(kl_str t, size_t pos) {
  if (has_word(t, pos, KL_STR("ROOT"))) return true;
  size_t behind = skip_name(t, pos);
  behind = behind ? skip_space(t, behind) : t.n;
  if (behind >= t.n || t.p[behind] != '=') return false;
  pos = skip_space(t, behind + 1);
  if (pos < t.n && t.p[pos] == '(') return true;
  behind = skip_name(t, pos);
  behind = behind ? skip_space(t, behind) : t.n;
  return behind < t.n && (t.p[behind] == '[' || t.p[behind] == '(');
}

static bool is_computation(kl_str t, size_t pos) {
  if (has_word(t, pos, KL_STR("ENTRY"))) return true;
  size_t behind = skip_name(t, pos);
  behind = behind ? skip_blanks(t, behind) : t.n;
  return behind < t.n && (t.p[behind] == '{' || t.p[behind] == '(');
}

static bool is_closing(kl_str t, size_t pos) {
  return pos < t.n && t.p[pos] == '}' && (pos + 1 == t.n || kl_is_space(t.p[pos + 1]) || t.p[pos + 1] == ',');
}

// Where a computation in the place of an attribute ends, else the text's end. It is looked for when it is needed, and
// no longer once a brace was found that nothing closes.
static size_t limit_of(kl_parser *ps) {
  size_t end = ps->lx.src->text.n;
  if (!ps->brace || ps->unclosed) return end;
  if (!ps->limit) ps->limit = kl_lex_closing(&ps->lx, ps->brace);
  ps->unclosed = ps->limit == end;
  return ps->limit;
}

void kl_parse_recover(kl_parser *ps, size_t pos, bool in_body) {
  kl_str t = ps->lx.src->text;
  size_t limit = limit_of(ps);
  if (pos < ps->resume) pos = ps->resume;
  if (ps->lx.kind == KL_TOK_BAD && ps->lx.pos == t.n) pos = t.n; // nothing behind a comment without end counts
  for (const char *nl; pos < limit && (nl = memchr(t.p + pos, '\n', limit - pos));) {
    pos = skip_blanks(t, (size_t)(nl - t.p) + 1);
    if (is_computation(t, pos) || (in_body && (kl_is_instruction(t, pos) || is_closing(t, pos)))) {
      kl_lex_seek(&ps->lx, pos);
      return;
    }
  }
  ps->ran_out = limit == t.n;
  kl_lex_seek(&ps->lx, limit);
}

// --- computations -------------------------------------------------------------------------------------------------

// (name: type, ...) -> type
static bool parse_signature(kl_parser *ps, kl_draft_comp *c) {
  kl_lexer *lx = &ps->lx;
  VEC(const kl_shape *) sig = {0};
  size_t begin = lx->begin;
  bool ok = true;
  kl_lex_next(lx);
  while (ok && lx->punct != ')') {
    uint32_t name;
    const kl_shape *s;
    ok = kl_parse_name(ps, "a parameter's name or ')'", &name) && kl_lex_need(lx, ':', "after the parameter's name") &&
         kl_parse_shape(ps, &s);
    if (ok) VEC_PUSH(ps->cx, &sig, s);
    if (!ok || !kl_lex_eat(lx, ',')) break;
  }
  c->nsig = (uint32_t)sig.n;
  c->sig = VEC_FREEZE(ps->cx, ps->arena, &sig);
  if (!ok || !kl_lex_need(lx, ')', "after the parameters")) return false;
  if (lx->kind != KL_TOK_ARROW) return kl_lex_expected(lx, "'->' after the parameters");
  kl_lex_next(lx);
  c->has_signature = kl_parse_shape(ps, &c->sig_result);
  c->sig_span = kl_lex_span_from(lx, begin);
  return c->has_signature;
}

static bool at_computation(const kl_parser *ps) {
  return (ps->lx.kind == KL_TOK_NAME || ps->lx.kind == KL_TOK_PERCENT) &&
         is_computation(ps->lx.src->text, ps->lx.begin);
}

static bool parse_comp_head(kl_parser *ps, kl_draft_comp *c) {
  kl_lexer *lx = &ps->lx;
  if (kl_lex_is_name(lx, "ENTRY")) {
    c->entry = true;
    kl_lex_next(lx);
  }
  c->c.span = kl_lex_span(lx);
  if (!kl_parse_name(ps, c->entry ? "the computation's name after ENTRY" : "a computation", &c->c.name)) return false;
  kl_lex_eat(lx, ':');
  if (lx->punct == '(' && !parse_signature(ps, c)) return false;
  return kl_lex_need(lx, '{', "before the computation's body");
}

// Takes instructions up to the closing brace, and that brace.
static bool parse_body(kl_parser *ps, kl_draft_comp *c) {
  kl_lexer *lx = &ps->lx;
  ps->lost = false;
  ps->first = c->first;
  while (lx->punct != '}' && lx->kind != KL_TOK_END && !at_computation(ps)) kl_parse_instruction(ps);
  c->broken |= ps->lost;
  c->n = ps->instrs.n - c->first;
  c->end = lx->begin;
  if (kl_lex_eat(lx, '}')) return true;
  c->broken = true;
  if (ps->ran_out) return false; // the brace may have been passed over
  return kl_lex_expected(lx, "'}' that closes the computation '%.*s'",
                         KL_FMT(kl_symbol_text(&ps->m->names, c->c.name)));
}

static void parse_computation(kl_parser *ps) {
  kl_draft_comp c = {.first = ps->instrs.n};
  size_t begin = ps->lx.begin;
  if (!parse_comp_head(ps, &c)) {
    kl_parse_recover(ps, begin, true);
    if (at_computation(ps) || ps->lx.kind == KL_TOK_END) return;
    c.broken = true; // the body goes on below: its own findings still count
  }
  if (parse_body(ps, &c) && !kl_parse_raw_attrs(ps, &c.c.nraw, &c.c.raw)) kl_parse_recover(ps, ps->lx.begin, false);
  VEC_PUSH(ps->cx, &ps->comps, c);
}

// The instructions around it are set aside meanwhile.
bool kl_parse_inline_computation(kl_parser *ps, uint32_t *index) {
  kl_draft_comp c = {.c.span = kl_lex_span(&ps->lx), .anonymous = true};
  if (ps->depth == KL_MAX_NESTED) return kl_lex_expected(&ps->lx, "computations nested at most %d deep", KL_MAX_NESTED);
  __typeof__(ps->instrs) around = ps->instrs;
  size_t first = ps->first, limit = ps->limit, brace = ps->brace;
  bool lost = ps->lost, implicit = ps->implicit;
  ps->implicit = false;
  ps->instrs = (__typeof__(ps->instrs)){0};
  ps->brace = ps->lx.begin;
  ps->limit = 0;
  ps->depth++;
  kl_lex_next(&ps->lx);
  bool ok = parse_body(ps, &c);
  ps->depth--;
  c.own = ps->instrs.p;
  c.own_cap = ps->instrs.cap;
  ps->instrs = around;
  ps->first = first;
  ps->limit = limit;
  ps->brace = brace;
  ps->resume = ps->lx.begin;
  ps->lost = lost;
  ps->implicit = implicit;
  *index = (uint32_t)ps->comps.n;
  VEC_PUSH(ps->cx, &ps->comps, c);
  return ok;
}

// --- modules ------------------------------------------------------------------------------------------------------

// Is there a parameter outside of braces?
static bool has_parameter(const kl_parser *ps) {
  kl_str t = ps->lx.src->text;
  int64_t depth = 0;
  for (size_t pos = 0; (pos = kl_lex_skip(&ps->lx, pos)) < t.n; pos++) {
    depth += t.p[pos] == '{' ? 1 : t.p[pos] == '}' ? -1 : 0;
    if (depth == 0 && t.n - pos > 10 && memcmp(t.p + pos, "parameter(", 10) == 0) return true;
  }
  return false;
}

// As XLA does with a single instruction.
static void schedule(kiln_module *m) {
  static const kl_raw_attr attr = {{"is_scheduled", 12}, {"true", 4}};
  m->nraw = 1;
  m->raw = &attr;
  m->header.is_scheduled = true;
}

// Instructions without a computation around them are ENTRY. Where they have no parameter, operands written with a type
// and not defined before are its parameters.
static void parse_bare(kl_parser *ps) {
  kl_draft_comp c = {.first = ps->instrs.n, .entry = true, .anonymous = true, .c.span = kl_lex_span(&ps->lx)};
  ps->implicit = !has_parameter(ps);
  ps->lost = false;
  ps->first = c.first;
  size_t n = 0;
  for (; ps->lx.kind != KL_TOK_END && !at_computation(ps); n++) kl_parse_instruction(ps);
  ps->implicit = false;
  if (n == 1) schedule(ps->m);
  c.broken = ps->lost;
  c.n = ps->instrs.n - c.first;
  c.end = ps->lx.begin;
  VEC_PUSH(ps->cx, &ps->comps, c);
}

static void parse_module(kl_parser *ps) {
  size_t begin = ps->lx.begin;
  if (kl_lex_is_name(&ps->lx, "HloModule")) {
    ps->has_header = true;
    if (!kl_parse_header(ps))
      kl_parse_recover(ps, begin, false);
    else if (!kl_parse_tables(ps))
      kl_parse_recover(ps, ps->lx.begin, false);
  } else if (kl_parse_is_foreign(ps)) {
    kl_lex_seek(&ps->lx, ps->lx.src->text.n);
    return;
  } else if (kl_is_instruction(ps->lx.src->text, begin) || (kl_parse_at_shape(ps) && !at_computation(ps))) {
    parse_bare(ps);
  } else if (!at_computation(ps)) {
    kl_lex_expected(&ps->lx, "'HloModule' at the beginning");
    kl_parse_recover(ps, begin, false);
  }
  while (ps->lx.kind != KL_TOK_END) parse_computation(ps);
}

static bool copy_text(kl_parser *ps, const char *name, const char *text, size_t size) {
  kiln_module *m = ps->m;
  char *copy = kl_arena_try_alloc(&m->arena, size + 1);
  if (!copy) {
    kl_out_of_memory(ps->cx, size + 1, "the module's text");
    return false;
  }
  if (size) memcpy(copy, text, size);
  m->source = KL_NEW(&m->arena, kl_source);
  *m->source = (kl_source){kl_str_dup(&m->arena, kl_str_of(name ? name : "<text>")).p, {copy, size}};
  return true;
}

static kiln_status parse_text(kl_parser *ps) {
  ps->errors_before = ps->cx->errors;
  kl_lex_init(&ps->lx, ps->cx, ps->m->source);
  kl_read_source(ps->cx, ps->m->source);
  parse_module(ps);
  kl_parse_names(ps);
  kiln_status linked = kl_parse_link(ps);
  kl_read_source(ps->cx, NULL);
  if (ps->no_memory) return KILN_E_MEMORY;
  return ps->cx->errors > ps->errors_before ? KILN_E_INVALID : linked;
}

// Findings come from several passes over the text: puts them into its order.
static void sort_findings(kl_ctx *cx, size_t first) {
  for (size_t i = first + 1; i < cx->diags.n; i++) {
    kiln_diagnostic d = cx->diags.p[i];
    size_t k = i;
    for (; k > first; k--) {
      const kiln_diagnostic *e = &cx->diags.p[k - 1];
      if (!d.line || e->line < d.line || (e->line == d.line && e->column <= d.column)) break;
      cx->diags.p[k] = *e;
    }
    cx->diags.p[k] = d;
  }
}

kiln_status kiln_module_parse(kiln_context *cx, const char *name, const char *text, size_t size, kiln_module **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, text, out);
  if (size >= INT32_MAX)
    return kl_invalid(cx, KL_NOWHERE, "expected a text of less than 2 GiB, found one of %zu bytes", size);
  size_t first = cx->diags.n;
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { // a byte order mark says nothing about UTF-8
    text += 3;
    size -= 3;
  }
  kl_parser ps = {.cx = cx, .m = kl_module_new(cx)};
  ps.arena = &ps.m->arena;
  kiln_status s = copy_text(&ps, name, text, size) ? parse_text(&ps) : KILN_E_MEMORY;
  for (size_t i = 0; i < ps.comps.n; i++)
    kl_free(cx, ps.comps.p[i].own, ps.comps.p[i].own_cap * sizeof *ps.comps.p[i].own);
  VEC_FREE(cx, &ps.instrs);
  VEC_FREE(cx, &ps.uses);
  VEC_FREE(cx, &ps.callees);
  VEC_FREE(cx, &ps.defined);
  VEC_FREE(cx, &ps.warned);
  VEC_FREE(cx, &ps.comps);
  sort_findings(cx, first);
  if (s == KILN_OK) {
    kl_interface_make(ps.m);
    *out = ps.m;
  } else {
    kiln_module_destroy(&ps.m);
  }
  return s;
}
