// Modules: what stands outside of functions.
#include "sim/ptx/parse.h"

// --- .version, .target, .address_size -----------------------------------------------------------------------------

static bool take_version(kl_ptx_parser *ps) {
  if (!kl_ptx_eat_dot(ps, "version")) return kl_ptx_expected(ps, ".version at the beginning");
  kl_str at = ps->lx.word;
  const char *point = ps->lx.kind == KL_PTX_TOK_FLOAT64 && at.n ? memchr(at.p, '.', at.n) : NULL;
  uint64_t major, minor;
  if (!point || !kl_u64_from_text((kl_str){at.p, (size_t)(point - at.p)}, &major) ||
      !kl_u64_from_text((kl_str){point + 1, at.n - (size_t)(point + 1 - at.p)}, &minor) || minor > 9)
    return kl_ptx_expected(ps, "a version such as 8.0");
  kl_ptx_lex_next(&ps->lx);
  if (major < 6 || major > 9)
    return kl_ptx_refused(ps, at, "PTX of versions 6.0 to 9.9 is supported, found %.*s", KL_FMT(at));
  ps->m->version = (uint32_t)(major * 10 + minor);
  return true;
}

// sm_90a, compute_90: the number begins behind the prefix.
static bool take_sm(kl_ptx_parser *ps, kl_str name, size_t prefix) {
  uint64_t sm;
  kl_str number = {name.p + prefix, name.n - prefix};
  char last = name.p[name.n - 1];
  bool variant = last == 'a' || last == 'f';
  number.n -= variant;
  if (!kl_u64_from_text(number, &sm) || sm == 0 || sm > 999)
    return kl_ptx_wrong(ps, name, "expected a target such as sm_90, found '%.*s'", KL_FMT(name));
  ps->m->sm = (uint32_t)sm;
  ps->m->variant = variant ? last : 0;
  return true;
}

static bool take_option(kl_ptx_parser *ps) {
  static const char *const options[] = {"debug", "texmode_unified", "texmode_independent"};
  kl_str name;
  if (!kl_ptx_name(ps, "a target such as sm_90", &name)) return false;
  if (name.n > 3 && memcmp(name.p, "sm_", 3) == 0) return take_sm(ps, name, 3);
  if (name.n > 8 && memcmp(name.p, "compute_", 8) == 0) return take_sm(ps, name, 8);
  for (size_t i = 0; i < KL_COUNT(options); i++)
    if (kl_str_is(name, options[i])) return true;
  return kl_ptx_wrong(ps, name, "expected a target such as sm_90, or an option, found '%.*s'", KL_FMT(name));
}

static bool take_target(kl_ptx_parser *ps) {
  if (!kl_ptx_eat_dot(ps, "target")) return kl_ptx_expected(ps, ".target after .version");
  const char *begin = ps->lx.src->text.p + ps->lx.begin;
  do {
    if (!take_option(ps)) return false;
  } while (kl_ptx_eat(ps, ','));
  ps->m->target = (kl_str){begin, (size_t)(ps->lx.src->text.p + ps->lx.last_end - begin)};
  return ps->m->sm || kl_ptx_wrong(ps, ps->m->target, "expected a target such as sm_90, found options only");
}

// The manual has 32 where none is given; assemblers for any target of today take 64.
static bool take_address_size(kl_ptx_parser *ps) {
  uint64_t bits = 64;
  kl_str at = {0};
  if (kl_ptx_eat_dot(ps, "address_size")) {
    at = kl_ptx_current(ps);
    if (!kl_ptx_number(ps, "an address size", 64, &bits)) return false;
    if (bits != 32 && bits != 64)
      return kl_ptx_wrong(ps, at, "expected an address size of 32 or 64, found %llu", (unsigned long long)bits);
  }
  ps->m->address_bits = (uint32_t)bits;
  return bits == 64 || kl_ptx_refused(ps, at, "addresses of 32 bits are not supported: .address_size 64 is wanted");
}

// --- directives ---------------------------------------------------------------------------------------------------

// .file number "name", time, size
static bool take_file(kl_ptx_parser *ps) {
  enum { MOST_FILES = 1 << 20 };
  uint64_t number, ignored;
  kl_ptx_lex_next(&ps->lx);
  if (!kl_ptx_number(ps, "a file's number", MOST_FILES, &number)) return false;
  if (ps->lx.kind != KL_PTX_TOK_STRING) return kl_ptx_expected(ps, "a file's name");
  while (ps->files.n <= number) VEC_PUSH(ps->cx, &ps->files, (kl_str){0});
  ps->files.p[number] = ps->lx.word;
  kl_ptx_lex_next(&ps->lx);
  while (kl_ptx_eat(ps, ','))
    if (!kl_ptx_number(ps, "a file's time or size", UINT64_MAX, &ignored)) return false;
  return true;
}

bool kl_ptx_skip_section(kl_ptx_parser *ps) {
  kl_ptx_lex_next(&ps->lx);
  if (ps->lx.kind != KL_PTX_TOK_DOT && ps->lx.kind != KL_PTX_TOK_NAME) return kl_ptx_expected(ps, "a section's name");
  kl_ptx_lex_next(&ps->lx);
  if (!kl_ptx_need(ps, '{', "before the section")) return false;
  while (!kl_ptx_at(ps, '}')) {
    if (ps->lx.kind == KL_PTX_TOK_END || ps->lx.kind == KL_PTX_TOK_BAD)
      return kl_ptx_expected(ps, "'}' after the section");
    kl_ptx_lex_next(&ps->lx);
  }
  kl_ptx_lex_next(&ps->lx);
  return true;
}

// .alias name, function;
static bool take_alias(kl_ptx_parser *ps) {
  kl_str names[2];
  uint32_t index[2], number;
  kl_ptx_lex_next(&ps->lx);
  if (!kl_ptx_name(ps, "a function's name", &names[0]) || !kl_ptx_need(ps, ',', "after the alias") ||
      !kl_ptx_name(ps, "a function's name", &names[1]) || !kl_ptx_need(ps, ';', "after the alias"))
    return false;
  for (int i = 0; i < 2; i++) {
    const kl_ptx_symbol *s = kl_ptx_names_find(&ps->names, names[i], &number);
    if (s && s->kind == KL_PTX_FUNCTION && ps->funcs.p[s->index].entry)
      return kl_ptx_wrong(ps, names[i], "expected a function, found the kernel '%.*s'", KL_FMT(names[i]));
    if (!s || s->kind != KL_PTX_FUNCTION || (i && !ps->funcs.p[s->index].defined))
      return kl_ptx_wrong(ps, names[i], "expected a function that is %s, found '%.*s'", i ? "defined" : "declared",
                          KL_FMT(names[i]));
    index[i] = s->index;
  }
  if (!kl_ptx_same_prototype(&ps->funcs.p[index[0]], &ps->funcs.p[index[1]]))
    return kl_ptx_wrong(ps, names[0], "expected '%.*s' to have the parameters and results of '%.*s', found others",
                        KL_FMT(names[0]), KL_FMT(names[1]));
  if (ps->funcs.p[index[0]].defined)
    return kl_ptx_wrong(ps, names[0], "expected a function without a body as an alias, found '%.*s'", KL_FMT(names[0]));
  ps->funcs.p[index[0]].alias = index[1] + 1;
  return true;
}

// .extern, .visible, .weak or .common
static kl_str take_linking(kl_ptx_parser *ps, kl_ptx_var *v) {
  kl_str word = ps->lx.word;
  v->external = kl_ptx_at_dot(ps, "extern");
  v->weak = kl_ptx_at_dot(ps, "weak");
  v->common = kl_ptx_at_dot(ps, "common");
  v->visible = v->weak || v->common || kl_ptx_at_dot(ps, "visible");
  if (!v->external && !v->visible) return (kl_str){0};
  kl_ptx_lex_next(&ps->lx);
  return word;
}

static bool take_declaration(kl_ptx_parser *ps) {
  kl_ptx_space space;
  kl_ptx_var v = {0};
  kl_str linked = take_linking(ps, &v);
  bool entry = kl_ptx_at_dot(ps, "entry");
  if (entry || kl_ptx_at_dot(ps, "func")) {
    if (v.common) return kl_ptx_wrong(ps, linked, "expected .common of a variable in .global, found a function");
    kl_ptx_lex_next(&ps->lx);
    return kl_ptx_function(ps,
                           (kl_ptx_func){.entry = entry, .external = v.external, .visible = v.visible, .weak = v.weak});
  }
  if (ps->lx.kind == KL_PTX_TOK_DOT && kl_ptx_space_of(ps->lx.word, &space) && space != KL_PTX_PARAM)
    return kl_ptx_variables(ps, v, linked);
  if (kl_ptx_at_dot(ps, "reg"))
    return kl_ptx_refused(ps, ps->lx.word, "registers outside of functions are not supported");
  if (kl_ptx_at_dot(ps, "tex")) return kl_ptx_refused(ps, ps->lx.word, "textures are not supported");
  return kl_ptx_expected(ps, "a declaration, such as .entry, .func or .global");
}

static bool take_directive(kl_ptx_parser *ps) {
  if (kl_ptx_at_dot(ps, "file")) return take_file(ps);
  if (kl_ptx_at_dot(ps, "section")) return kl_ptx_skip_section(ps);
  if (kl_ptx_at_dot(ps, "alias")) return take_alias(ps);
  if (kl_ptx_eat_dot(ps, "pragma")) return kl_ptx_pragma_strings(ps, &ps->pragmas);
  if (!kl_ptx_at(ps, KL_PTX_TWO('@', '@'))) return take_declaration(ps);
  kl_ptx_lex_skip_line(&ps->lx);
  return true;
}

// What is left of a declaration that was given up: up to its semicolon or the end of its braces.
static void recover(kl_ptx_parser *ps) {
  size_t depth = ps->braces;
  ps->nesting = ps->braces = 0;
  for (; ps->lx.kind != KL_PTX_TOK_END; kl_ptx_lex_next(&ps->lx)) {
    bool closed = kl_ptx_at(ps, '}') && (depth == 0 || --depth == 0);
    depth += kl_ptx_at(ps, '{');
    if (!closed && !(kl_ptx_at(ps, ';') && depth == 0)) continue;
    kl_ptx_lex_next(&ps->lx);
    if (closed) kl_ptx_eat(ps, ';');
    return;
  }
}

static void take_module(kl_ptx_parser *ps) {
  if (!take_version(ps) || !take_target(ps) || !take_address_size(ps)) return;
  while (ps->lx.kind != KL_PTX_TOK_END && !kl_ptx_too_many(ps))
    if (!take_directive(ps)) recover(ps);
}

// --- the whole ----------------------------------------------------------------------------------------------------

static void free_parser(kl_ptx_parser *ps) {
  kl_ctx *cx = ps->cx;
  kl_ptx_names_free(&ps->names);
  VEC_FREE(cx, &ps->vars);
  VEC_FREE(cx, &ps->funcs);
  VEC_FREE(cx, &ps->files);
  VEC_FREE(cx, &ps->pragmas);
  VEC_FREE(cx, &ps->operands);
  VEC_FREE(cx, &ps->mods);
  VEC_FREE(cx, &ps->regs);
  VEC_FREE(cx, &ps->locals);
  VEC_FREE(cx, &ps->instrs);
  VEC_FREE(cx, &ps->labels);
  VEC_FREE(cx, &ps->tables);
  VEC_FREE(cx, &ps->marks);
  VEC_FREE(cx, &ps->scope_fixups);
  VEC_FREE(cx, &ps->fixups);
  VEC_FREE(cx, &ps->statement_pragmas);
  VEC_FREE(cx, &ps->locs);
  VEC_FREE(cx, &ps->inlined);
}

static kl_ptx_module *new_module(kl_ctx *cx, const char *name, kl_str text) {
  kl_ptx_module *m = kl_alloc(cx, sizeof *m);
  const char *nul = text.n ? memchr(text.p, 0, text.n) : NULL;
  if (nul) text.n = (size_t)(nul - text.p);
  kl_arena_init(&m->arena, cx);
  m->source.name = kl_str_dup(&m->arena, kl_str_of(name ? name : "<ptx>")).p;
  char *copy = kl_arena_try_alloc(&m->arena, text.n + 1);
  if (!copy) {
    kl_out_of_memory(cx, text.n, "the PTX text");
    kl_ptx_free(cx, m);
    return NULL;
  }
  if (text.n) memcpy(copy, text.p, text.n);
  m->source.text = (kl_str){copy, text.n};
  return m;
}

static kiln_status read_module(kl_ctx *cx, kl_ptx_module *m) {
  kl_ptx_parser ps = {.cx = cx, .m = m, .arena = &m->arena};
  kl_read_source(cx, &m->source);
  kl_ptx_names_init(&ps.names, cx);
  kl_ptx_lex_init(&ps.lx, cx, &m->source);
  take_module(&ps);
  kl_read_source(cx, NULL);
  m->nvars = (uint32_t)ps.vars.n;
  m->vars = VEC_FREEZE(cx, &m->arena, &ps.vars);
  m->nfuncs = (uint32_t)ps.funcs.n;
  m->funcs = VEC_FREEZE(cx, &m->arena, &ps.funcs);
  m->nfiles = (uint32_t)ps.files.n;
  m->files = VEC_FREEZE(cx, &m->arena, &ps.files);
  m->ninlined = (uint32_t)ps.inlined.n;
  m->inlined = VEC_FREEZE(cx, &m->arena, &ps.inlined);
  m->npragmas = (uint32_t)ps.pragmas.n;
  m->pragmas = VEC_FREEZE(cx, &m->arena, &ps.pragmas);
  free_parser(&ps);
  if (ps.out_of_memory) return KILN_E_MEMORY;
  return ps.invalid ? KILN_E_INVALID : ps.unsupported ? KILN_E_UNSUPPORTED : KILN_OK;
}

kiln_status kl_ptx_parse(kl_ctx *cx, const char *name, kl_str text, kl_ptx_module **out) {
  *out = NULL;
  if (text.n >= UINT32_MAX)
    return kl_unsupported(cx, KL_NOWHERE, "PTX text of 4 GB or more is not supported, found %zu bytes", text.n);
  kl_ptx_module *m = new_module(cx, name, text);
  if (!m) return KILN_E_MEMORY;
  kiln_status s = read_module(cx, m);
  if (s == KILN_OK)
    *out = m;
  else
    kl_ptx_free(cx, m);
  return s;
}

void kl_ptx_free(kl_ctx *cx, kl_ptx_module *m) {
  if (!m) return;
  kl_arena_free(&m->arena);
  kl_free(cx, m, sizeof *m);
}

kl_span kl_ptx_span(const kl_ptx_module *m, kl_ptx_place at) {
  return (kl_span){&m->source, at.begin, at.end};
}
