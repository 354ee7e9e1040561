// The header of a module: attributes, all kept as text, some of them read as well; and the tables of source places that
// newer texts have behind it.
#include "ir/text/parse.h"

// --- what several attributes are made of --------------------------------------------------------------------------

// {0, 1}: the way to a part of a tuple.
static bool parse_path(kl_parser *ps, kl_ints *out) {
  kl_lexer *lx = &ps->lx;
  VEC(int64_t) list = {0};
  bool ok = kl_lex_need(lx, '{', "before the way into the tuple");
  while (ok && lx->punct != '}') {
    int64_t index = 0;
    size_t begin = lx->begin;
    ok = kl_lex_int(lx, "an index into a tuple", &index);
    if (ok && index < 0) {
      kl_invalid(ps->cx, kl_lex_span_from(lx, begin), "expected an index of at least 0, found %lld", (long long)index);
      ok = false;
    }
    if (ok) VEC_PUSH(ps->cx, &list, index);
    if (!ok || !kl_lex_eat(lx, ',')) break;
  }
  out->n = (uint32_t)list.n;
  out->p = VEC_FREEZE(ps->cx, ps->arena, &list);
  return ok && kl_lex_need(lx, '}', "after the way into the tuple");
}

// (0, {1}: a parameter and a part of it.
static bool parse_param_part(kl_parser *ps, int64_t *param, kl_ints *path) {
  kl_lexer *lx = &ps->lx;
  return kl_lex_need(lx, '(', "before a parameter's number") && kl_lex_int(lx, "a parameter's number", param) &&
         kl_lex_need(lx, ',', "after a parameter's number") && parse_path(ps, path);
}

static bool parse_bool(kl_parser *ps, bool *out) {
  *out = kl_lex_is_name(&ps->lx, "true");
  if (!*out && !kl_lex_is_name(&ps->lx, "false")) return kl_lex_expected(&ps->lx, "true or false");
  kl_lex_next(&ps->lx);
  return true;
}

// --- attributes that are read -------------------------------------------------------------------------------------

// {(f32[2]{0}, s32[])->f32[2]{0}}
static bool parse_entry_layout(kl_parser *ps) {
  kl_lexer *lx = &ps->lx;
  VEC(const kl_shape *) params = {0};
  bool ok = kl_lex_need(lx, '{', "before the layout") && kl_lex_need(lx, '(', "before the parameters' types");
  while (ok && lx->punct != ')') {
    const kl_shape *s = NULL;
    ok = kl_parse_shape(ps, &s);
    if (ok) VEC_PUSH(ps->cx, &params, s);
    if (!ok || !kl_lex_eat(lx, ',')) break;
  }
  kl_header *h = &ps->m->header;
  h->nparams = (uint32_t)params.n;
  h->params = VEC_FREEZE(ps->cx, ps->arena, &params);
  if (!ok || !kl_lex_need(lx, ')', "after the parameters' types")) return false;
  if (lx->kind != KL_TOK_ARROW) return kl_lex_expected(lx, "'->' after the parameters' types");
  kl_lex_next(lx);
  return kl_parse_shape(ps, &h->result) && kl_lex_need(lx, '}', "after the layout");
}

static bool parse_alias_kind(kl_parser *ps, kl_alias *a) {
  kl_lexer *lx = &ps->lx;
  if (!kl_lex_eat(lx, ',')) return true;
  a->must = kl_lex_is_name(lx, "must-alias");
  if (!a->must && !kl_lex_is_name(lx, "may-alias")) return kl_lex_expected(lx, "may-alias or must-alias");
  kl_lex_next(lx);
  return true;
}

// { {0}: (1, {}, may-alias), ... }
static bool parse_aliases(kl_parser *ps) {
  kl_lexer *lx = &ps->lx;
  VEC(kl_alias) list = {0};
  bool ok = kl_lex_need(lx, '{', "before the aliases");
  while (ok && lx->punct != '}') {
    kl_alias a = {0};
    ok = parse_path(ps, &a.result) && kl_lex_need(lx, ':', "after a result's part") &&
         parse_param_part(ps, &a.param, &a.path) && parse_alias_kind(ps, &a) && kl_lex_need(lx, ')', "after an alias");
    if (ok) VEC_PUSH(ps->cx, &list, a);
    if (!ok || !kl_lex_eat(lx, ',')) break;
  }
  ps->m->header.naliases = (uint32_t)list.n;
  ps->m->header.aliases = VEC_FREEZE(ps->cx, ps->arena, &list);
  return ok && kl_lex_need(lx, '}', "after the aliases");
}

// { (0, {}), (1, {0}) }
static bool parse_donors(kl_parser *ps) {
  kl_lexer *lx = &ps->lx;
  VEC(kl_donor) list = {0};
  bool ok = kl_lex_need(lx, '{', "before the donors");
  while (ok && lx->punct != '}') {
    kl_donor d = {0};
    ok = parse_param_part(ps, &d.param, &d.path) && kl_lex_need(lx, ')', "after a donor");
    if (ok) VEC_PUSH(ps->cx, &list, d);
    if (!ok || !kl_lex_eat(lx, ',')) break;
  }
  ps->m->header.ndonors = (uint32_t)list.n;
  ps->m->header.donors = VEC_FREEZE(ps->cx, ps->arena, &list);
  return ok && kl_lex_need(lx, '}', "after the donors");
}

static bool parse_is_scheduled(kl_parser *ps) {
  return parse_bool(ps, &ps->m->header.is_scheduled);
}

static bool parse_any_bool(kl_parser *ps) {
  bool value;
  return parse_bool(ps, &value);
}

static bool parse_replicas(kl_parser *ps) {
  return kl_lex_int(&ps->lx, "a number of replicas", &ps->m->header.replica_count);
}

static bool parse_partitions(kl_parser *ps) {
  return kl_lex_int(&ps->lx, "a number of partitions", &ps->m->header.num_partitions);
}

// true or {true,false}
static bool parse_bools(kl_parser *ps) {
  if (!kl_lex_eat(&ps->lx, '{')) return parse_any_bool(ps);
  while (ps->lx.punct != '}') {
    if (!parse_any_bool(ps)) return false;
    if (!kl_lex_eat(&ps->lx, ',')) break;
  }
  return kl_lex_need(&ps->lx, '}', "after the list");
}

static const struct {
  const char *key;
  bool (*parse)(kl_parser *ps); // NULL: text alone
} attributes[] = {
    {"entry_computation_layout", parse_entry_layout},
    {"input_output_alias", parse_aliases},
    {"buffer_donor", parse_donors},
    {"is_scheduled", parse_is_scheduled},
    {"replica_count", parse_replicas},
    {"num_partitions", parse_partitions},
    {"alias_passthrough_params", parse_any_bool},
    {"allow_spmd_sharding_propagation_to_parameters", parse_bools},
    {"allow_spmd_sharding_propagation_to_output", parse_bools},
    {"use_auto_spmd_partitioning", parse_any_bool},
    {"frontend_attributes", NULL},
    {"origin_recovery_table", NULL},
};

// --- the header ---------------------------------------------------------------------------------------------------

// Reads the value that was kept as text and lies between `begin` and the current token.
static bool read_value(kl_parser *ps, size_t row, size_t begin) {
  kl_lexer *lx = &ps->lx;
  kl_lexer behind = *lx;
  if (!attributes[row].parse) return true;
  kl_lex_seek(lx, begin);
  bool ok = attributes[row].parse(ps) && (lx->last_end == behind.last_end || kl_lex_expected(lx, "',' or a new line"));
  *lx = behind;
  return ok;
}

static bool parse_attribute(kl_parser *ps, kl_raw_attr *a, uint32_t *seen, bool *ok) {
  kl_span span;
  size_t begin, row = 0;
  if (!kl_parse_raw_attr(ps, a, &span, &begin)) return false;
  while (row < KL_COUNT(attributes) && !kl_str_is(a->key, attributes[row].key)) row++;
  if (row == KL_COUNT(attributes)) {
    kl_warn_unknown(ps, "HloModule", a->key, span);
  } else if (*seen >> row & 1) {
    kl_invalid(ps->cx, span, "HloModule: expected the attribute '%s' once, found it again", attributes[row].key);
    *ok = false;
  } else {
    *seen |= 1u << row;
    *ok &= read_value(ps, row, begin);
    if (attributes[row].parse == parse_entry_layout) ps->layout_span = span;
  }
  return true;
}

bool kl_parse_header(kl_parser *ps) {
  kl_lexer *lx = &ps->lx;
  VEC(kl_raw_attr) raw = {0};
  uint32_t seen = 0;
  bool ok = true, whole = true;
  kl_lex_next(lx);
  if (!kl_parse_name(ps, "the module's name", &ps->m->name)) return false;
  kl_lex_eat(lx, ':');
  while (whole && kl_lex_eat(lx, ',')) {
    kl_raw_attr a;
    whole = parse_attribute(ps, &a, &seen, &ok);
    if (whole) VEC_PUSH(ps->cx, &raw, a);
  }
  ps->m->nraw = (uint32_t)raw.n;
  ps->m->raw = VEC_FREEZE(ps->cx, ps->arena, &raw);
  if (!ok) ps->m->header.result = NULL; // half read: not to be compared with ENTRY
  return whole;
}

// --- tables of source places --------------------------------------------------------------------------------------

static bool at_table(const kl_lexer *lx) {
  static const char *const titles[] = {"FileNames", "FunctionNames", "FileLocations", "StackFrames"};
  for (size_t i = 0; i < KL_COUNT(titles); i++)
    if (kl_lex_is_name(lx, titles[i])) return true;
  return false;
}

// 1 "name" or 1 {file_name_id=1 line=5}
static bool parse_entry(kl_parser *ps, kl_sb *out) {
  kl_lexer *lx = &ps->lx;
  kl_str value;
  kl_sb_put(out, lx->text);
  kl_lex_next(lx);
  if (lx->kind != KL_TOK_STRING && lx->punct != '{') return kl_lex_expected(lx, "a text in quotes or '{'");
  if (!kl_lex_raw(lx, ps->arena, KL_RAW_VALUE, &value)) return false;
  kl_sb_putc(out, ' ');
  kl_sb_put(out, value);
  kl_sb_putc(out, '\n');
  return true;
}

bool kl_parse_tables(kl_parser *ps) {
  kl_lexer *lx = &ps->lx;
  kl_sb text;
  bool ok = true;
  kl_sb_init(&text, ps->cx);
  while (ok && at_table(lx)) {
    kl_sb_putc(&text, '\n');
    kl_sb_put(&text, lx->text);
    kl_sb_putc(&text, '\n');
    for (kl_lex_next(lx); ok && lx->kind == KL_TOK_NUMBER;) ok = parse_entry(ps, &text);
  }
  ps->m->tables = kl_str_dup(ps->arena, (kl_str){text.p, text.n});
  kl_sb_free(&text);
  return ok;
}

// --- against the program ------------------------------------------------------------------------------------------

static bool fits(kiln_module *m, kl_span where, const kl_shape *have, const kl_shape *said, const char *what,
                 uint32_t number) {
  if (!have || kl_shape_compatible(have, said)) return true;
  kl_invalid(m->cx, where, "entry_computation_layout: expected %s for %s %u of ENTRY, found %s",
             kl_shape_text(&m->arena, have), what, number, kl_shape_text(&m->arena, said));
  return false;
}

kiln_status kl_check_header(kl_ctx *cx, kiln_module *m, kl_span where) {
  const kl_header *h = &m->header;
  const kl_comp *c = &m->comp[m->entry];
  if (!h->result || c->ninstr == 0) return KILN_OK;
  if (h->nparams != c->nparams)
    return kl_invalid(cx, where, "entry_computation_layout: expected the %u parameters of ENTRY, found %u", c->nparams,
                      h->nparams);
  bool ok = true;
  for (uint32_t i = 0; i < h->nparams; i++)
    ok &= fits(m, where, c->instr[c->params[i]].shape, h->params[i], "parameter", i);
  ok &= fits(m, where, kl_root(c)->shape, h->result, "result", 0);
  return ok ? KILN_OK : KILN_E_INVALID;
}
