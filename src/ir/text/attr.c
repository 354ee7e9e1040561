// Attributes behind an instruction's operands.
//
// What the op's rows name is parsed into the instruction. Everything else is kept as text, and said to be unknown
// unless it is known to carry no meaning for what is computed.
#include "ir/text/parse.h"

// Attributes that XLA knows and kiln keeps as text: they say where an instruction came from, how it is placed, stored
// or run, not what it computes.
#define KEEP(key, how)                                                                                                 \
  { {key, sizeof(key) - 1}, how }
static const struct {
  kl_str key;
  kl_raw_end until;
} kept[] = {
    KEEP("metadata", KL_RAW_VALUE),
    KEEP("sharding", KL_RAW_VALUE),
    KEEP("backend_config", KL_RAW_JSON),
    KEEP("frontend_attributes", KL_RAW_FIELDS),
    KEEP("origin", KL_RAW_VALUE),
    KEEP("original_value", KL_RAW_VALUE),
    KEEP("statistics", KL_RAW_VALUE),
    KEEP("result_accuracy", KL_RAW_VALUE),
    KEEP("parameter_replication", KL_RAW_VALUE),
    KEEP("inferred_dimension", KL_RAW_VALUE),
    KEEP("is_composite", KL_RAW_VALUE),
    KEEP("output_to_operand_aliasing", KL_RAW_VALUE),
    KEEP("operand_layout_constraints", KL_RAW_VALUE),
    KEEP("api_version", KL_RAW_VALUE),
    KEEP("schedule", KL_RAW_VALUE),
    KEEP("padding_type", KL_RAW_VALUE),
    KEEP("literal", KL_RAW_VALUE),
    KEEP("operand_precision", KL_RAW_VALUE), // of a custom call: dots and convolutions read it
    KEEP("conv_kind", KL_RAW_VALUE),
    KEEP("convolution_kind", KL_RAW_VALUE),
    KEEP("sparsity_config", KL_RAW_VALUE),
    KEEP("mode", KL_RAW_VALUE),
    KEEP("slice_sizes", KL_RAW_VALUE), // of a collective permute: gathers read it
    KEEP("async_execution_thread", KL_RAW_VALUE),
    KEEP("async_group_id", KL_RAW_VALUE),
    KEEP("cross_program_prefetch_index", KL_RAW_VALUE),
    KEEP("is_cross_program_prefetch", KL_RAW_VALUE),
    KEEP("infeed_config", KL_RAW_VALUE),
    KEEP("outfeed_config", KL_RAW_VALUE),
    KEEP("domain", KL_RAW_VALUE),
    KEEP("execution_thread", KL_RAW_VALUE), // of a computation
};

// Is the key one of these? *until: how its value is read.
static bool is_kept(kl_str key, kl_raw_end *until) {
  *until = KL_RAW_VALUE;
  for (size_t i = 0; i < KL_COUNT(kept); i++)
    if (kl_str_eq(key, kept[i].key)) {
      *until = kept[i].until;
      return true;
    }
  return false;
}

// Takes `key=`; the value begins at the current token then.
static bool parse_key(kl_parser *ps, kl_str *key, kl_span *span) {
  kl_lexer *lx = &ps->lx;
  if (lx->kind != KL_TOK_NAME) return kl_lex_expected(lx, "an attribute's name after ','");
  *key = lx->text;
  *span = kl_lex_span(lx);
  kl_lex_next(lx);
  if (kl_lex_eat(lx, '=')) return true;
  return kl_lex_expected(lx, "'=' after the attribute's name '%.*s'", (int)(key->n < 60 ? key->n : 60), key->p);
}

typedef VEC(kl_raw_attr) raw_list;

// Takes a value that is a type and, behind white space, values: s32[2] {1, 2}.
static bool parse_literal_text(kl_parser *ps, kl_raw_attr *a) {
  kl_str values;
  bool ends = ps->lx.punct != '{' && ps->lx.kind != KL_TOK_NUMBER && ps->lx.kind != KL_TOK_NAME;
  if (ends || kl_lex_on_new_line(&ps->lx)) return true;
  if (!kl_lex_raw(&ps->lx, ps->arena, KL_RAW_VALUE, &values)) return false;
  a->value = kl_str_of(kl_strf(ps->arena, "%.*s %.*s", KL_FMT(a->value), KL_FMT(values)));
  return true;
}

static bool parse_raw(kl_parser *ps, kl_str key, kl_raw_end until, kl_raw_attr *a) {
  a->key = kl_symbol_text(&ps->m->names, kl_intern(&ps->m->names, key));
  if (ps->lx.kind == KL_TOK_BAD || kl_lex_on_new_line(&ps->lx)) return kl_lex_expected(&ps->lx, "an attribute's value");
  if (!kl_lex_raw(&ps->lx, ps->arena, until, &a->value)) return false;
  if (a->value.n == 0) return kl_lex_expected(&ps->lx, "a value for the attribute '%.*s'", KL_FMT(a->key));
  return !kl_str_is(key, "literal") || parse_literal_text(ps, a);
}

void kl_warn_unknown(kl_parser *ps, const char *what, kl_str key, kl_span span) {
  kl_warn(ps->cx, span, "%s: the attribute '%.*s' is not known and kept as text", what,
          (int)(key.n < 100 ? key.n : 100), key.p);
}

bool kl_parse_raw_attr(kl_parser *ps, kl_raw_attr *out, kl_span *span, size_t *begin) {
  kl_str key;
  kl_raw_end until;
  if (!parse_key(ps, &key, span)) return false;
  *begin = ps->lx.begin;
  is_kept(key, &until);
  return parse_raw(ps, key, until, out);
}

bool kl_parse_raw_attrs(kl_parser *ps, uint32_t *n, const kl_raw_attr **out) {
  raw_list raw = {0};
  bool ok = true;
  while (ok && kl_lex_eat(&ps->lx, ',')) {
    kl_raw_attr a;
    kl_span span;
    size_t begin;
    kl_raw_end until;
    ok = kl_parse_raw_attr(ps, &a, &span, &begin);
    if (ok && !is_kept(a.key, &until)) kl_warn_unknown(ps, "computation", a.key, span);
    if (ok) VEC_PUSH(ps->cx, &raw, a);
  }
  *n = (uint32_t)raw.n;
  *out = VEC_FREEZE(ps->cx, ps->arena, &raw);
  return ok;
}

static int find_row(kl_attr_list list, kl_str key) {
  for (uint32_t i = 0; i < list.n; i++)
    if (kl_str_is(key, list.p[i].key)) return (int)i;
  return -1;
}

static bool parse_typed(kl_parser *ps, kl_draft_instr *d, const kl_attr_row *row, uint64_t bit, kl_span span) {
  if (d->in.given & bit) {
    kl_invalid(ps->cx, span, "%s: expected the attribute '%s' once, found it again", kl_op_name(d->in.op), row->key);
    return false;
  }
  d->in.given |= bit;
  return kl_parse_value(ps, d, row);
}

// {%a, %b}: instructions that come before this one.
static bool parse_control(kl_parser *ps, kl_draft_instr *d, kl_span span) {
  kl_lexer *lx = &ps->lx;
  if (d->ncontrol) {
    kl_invalid(ps->cx, span, "%s: expected the attribute 'control-predecessors' once, found it again",
               kl_op_name(d->in.op));
    return false;
  }
  d->first_control = (uint32_t)ps->uses.n;
  if (!kl_lex_need(lx, '{', "before the names")) return false;
  while (lx->punct != '}') {
    kl_use use = {.begin = (uint32_t)lx->begin, .end = (uint32_t)lx->pos};
    if (!kl_parse_name(ps, "an instruction's name", &use.symbol)) return false;
    VEC_PUSH(ps->cx, &ps->uses, use);
    d->ncontrol++;
    if (!kl_lex_eat(lx, ',')) break;
  }
  return kl_lex_need(lx, '}', "after the names");
}

static bool parse_attr(kl_parser *ps, kl_draft_instr *d, raw_list *raw) {
  kl_str key;
  kl_span span;
  if (!parse_key(ps, &key, &span)) return false;
  kl_attr_list list = kl_instr_attrs(&d->in);
  int row = find_row(list, key);
  if (row >= 0) return parse_typed(ps, d, &list.p[row], 1ull << row, span);
  if (kl_str_is(key, "control-predecessors")) return parse_control(ps, d, span);
  kl_raw_end until;
  bool known = is_kept(key, &until) || d->in.op == KL_OP_UNKNOWN;
  kl_raw_attr a;
  if (!parse_raw(ps, key, until, &a)) return false;
  VEC_PUSH(ps->cx, raw, a);
  if (!known) kl_warn_unknown(ps, kl_op_name(d->in.op), key, span);
  return true;
}

static bool has_required(kl_parser *ps, const kl_draft_instr *d) {
  kl_attr_list list = kl_instr_attrs(&d->in);
  bool ok = true;
  if (d->in.wrapped && d->in.op != KL_OP_ASYNC_START) return true; // the start has said it
  for (uint32_t i = 0; i < list.n; i++) {
    if (list.p[i].need != KL_ATTR_MUST || (d->in.given >> i & 1)) continue;
    kl_invalid(ps->cx, d->in.span, "%s: expected an attribute '%s=...', found none", kl_op_name(d->in.op),
               list.p[i].key);
    ok = false;
  }
  return ok;
}

// Into the order of the op's rows, which is that of kl_instr.called; the text may have another.
static void sort_callees(kl_parser *ps, kl_draft_instr *d) {
  d->ncallees = (uint32_t)(ps->callees.n - d->first_callee);
  if (d->ncallees < 2) return;
  kl_callee *c = ps->callees.p + d->first_callee;
  for (uint32_t i = 1; i < d->ncallees; i++)
    for (uint32_t k = i; k > 0 && c[k].row < c[k - 1].row; k--) {
      kl_callee t = c[k];
      c[k] = c[k - 1];
      c[k - 1] = t;
    }
}

bool kl_parse_attrs(kl_parser *ps, kl_draft_instr *d, bool may) {
  raw_list raw = {0};
  bool ok = true;
  kl_more *more = NULL;
  if (kl_op_has_more(d->in.wrapped ? d->in.wrapped : d->in.op)) {
    more = kl_arena_dup(ps->arena, &kl_no_more, sizeof *more);
    d->in.more = more;
  }
  kl_attrs_default(&d->in, more);
  d->first_callee = (uint32_t)ps->callees.n;
  while (ok && may && kl_lex_eat(&ps->lx, ',')) ok = parse_attr(ps, d, &raw);
  sort_callees(ps, d);
  d->in.nraw = (uint32_t)raw.n;
  d->in.raw = VEC_FREEZE(ps->cx, ps->arena, &raw);
  return ok && has_required(ps, d);
}
