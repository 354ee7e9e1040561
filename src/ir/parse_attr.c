// Attributes behind an instruction's operands.
//
// Each op has rows for the attributes that mean something to it; they are parsed into the instruction. Everything else
// is kept as text, and said to be unknown unless it is known to carry no meaning for what is computed.
#include "ir/parse.h"

// --- values -------------------------------------------------------------------------------------------------------

static bool parse_int_list(kl_parser *ps, kl_draft_instr *d) {
  VEC(int64_t) v = {0};
  bool ok = kl_lex_need(&ps->lx, '{', "before the dimensions");
  while (ok && ps->lx.punct != '}') {
    int64_t dim;
    ok = kl_lex_int(&ps->lx, "a dimension", &dim);
    if (ok) VEC_PUSH(ps->cx, &v, dim);
    if (!ok || !kl_lex_eat(&ps->lx, ',')) break;
  }
  ok = ok && kl_lex_need(&ps->lx, '}', "after the dimensions");
  d->in.ndims = (uint32_t)v.n;
  d->in.dims = VEC_FREEZE(ps->cx, ps->arena, &v);
  return ok;
}

static bool parse_slice_dim(kl_parser *ps, kl_slice_dim *s) {
  kl_lexer *lx = &ps->lx;
  *s = (kl_slice_dim){.stride = 1};
  return kl_lex_need(lx, '[', "before a slice's bounds") && kl_lex_int(lx, "a slice's start", &s->start) &&
         kl_lex_need(lx, ':', "after a slice's start") && kl_lex_int(lx, "a slice's limit", &s->limit) &&
         (!kl_lex_eat(lx, ':') || kl_lex_int(lx, "a slice's stride", &s->stride)) &&
         kl_lex_need(lx, ']', "after a slice's bounds");
}

static bool parse_slice(kl_parser *ps, kl_draft_instr *d) {
  VEC(kl_slice_dim) v = {0};
  bool ok = kl_lex_need(&ps->lx, '{', "before the slices");
  while (ok && ps->lx.punct != '}') {
    kl_slice_dim s;
    ok = parse_slice_dim(ps, &s);
    if (ok) VEC_PUSH(ps->cx, &v, s);
    if (!ok || !kl_lex_eat(&ps->lx, ',')) break;
  }
  ok = ok && kl_lex_need(&ps->lx, '}', "after the slices");
  d->in.ndims = (uint32_t)v.n;
  d->in.slice = VEC_FREEZE(ps->cx, ps->arena, &v);
  return ok;
}

static bool take_padding_int(const char **p, const char *end, int64_t *out) {
  const char *begin = *p;
  if (*p < end && **p == '-') ++*p;
  while (*p < end && kl_is_digit(**p)) ++*p;
  return kl_i64_from_text((kl_str){begin, (size_t)(*p - begin)}, out);
}

// low_high or low_high_interior.
static bool take_padding_dim(const char **p, const char *end, kl_pad_dim *d) {
  *d = (kl_pad_dim){0};
  if (!take_padding_int(p, end, &d->low) || *p == end || *(*p)++ != '_' || !take_padding_int(p, end, &d->high))
    return false;
  if (*p == end || **p != '_') return true;
  ++*p;
  return take_padding_int(p, end, &d->interior);
}

static bool padding_fail(kl_parser *ps, size_t begin, kl_str text) {
  kl_invalid(ps->cx, kl_lex_span_from(&ps->lx, begin),
             "pad: expected padding such as 0_1x2_3_1 (low_high or low_high_interior, one per dimension), found '%.*s'",
             (int)(text.n < 60 ? text.n : 60), text.p);
  return false;
}

// An array of rank 0 has no padding: then nothing follows the equals sign.
static bool parse_padding(kl_parser *ps, kl_draft_instr *d) {
  kl_str text;
  size_t begin = ps->lx.begin;
  if (kl_lex_on_new_line(&ps->lx)) return true;
  if (!kl_lex_raw(&ps->lx, ps->arena, KL_RAW_VALUE, &text)) return false;
  VEC(kl_pad_dim) v = {0};
  const char *p = text.p, *end = text.p + text.n;
  bool ok = true;
  while (ok && p < end) {
    kl_pad_dim dim;
    ok = take_padding_dim(&p, end, &dim) && (p == end || (*p == 'x' && p + 1 < end));
    if (ok) VEC_PUSH(ps->cx, &v, dim);
    if (p < end) p++;
  }
  d->in.ndims = (uint32_t)v.n;
  d->in.pad = VEC_FREEZE(ps->cx, ps->arena, &v);
  return ok || padding_fail(ps, begin, text);
}

// The index of the current name among `names`.
static bool parse_choice(kl_parser *ps, const char *what, const char *const *names, int n, int *out) {
  for (int i = 0; i < n; i++) {
    if (!names[i] || !kl_lex_is_name(&ps->lx, names[i])) continue;
    *out = i;
    kl_lex_next(&ps->lx);
    return true;
  }
  return kl_lex_expected(&ps->lx, "%s", what);
}

static bool parse_direction(kl_parser *ps, kl_draft_instr *d) {
  int v = 0;
  if (!parse_choice(ps, "a direction, one of EQ NE LT LE GT GE", kl_direction_names, 6, &v)) return false;
  d->in.direction = (kl_direction)v;
  return true;
}

static bool parse_compare_type(kl_parser *ps, kl_draft_instr *d) {
  int v = 0;
  if (!parse_choice(ps, "a comparison type, one of FLOAT TOTALORDER SIGNED UNSIGNED", kl_compare_type_names, 5, &v))
    return false;
  d->in.compare_type = (kl_compare_type)v;
  return true;
}

static bool parse_fusion_kind(kl_parser *ps, kl_draft_instr *d) {
  static const char *const kinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
  int v = 0;
  if (!parse_choice(ps, "a fusion kind, one of kLoop kInput kOutput kCustom", kinds, 4, &v)) return false;
  d->in.fusion_kind = kl_str_of(kinds[v]);
  return true;
}

static bool parse_number(kl_parser *ps, kl_draft_instr *d) {
  return kl_lex_int(&ps->lx, "an integer", &d->in.number);
}

static bool parse_bits(kl_parser *ps, int32_t *out) {
  size_t begin = ps->lx.begin;
  int64_t v;
  if (!kl_lex_int(&ps->lx, "a number of bits", &v)) return false;
  *out = (int32_t)v;
  if (v >= 0 && v <= 64) return true;
  kl_invalid(ps->cx, kl_lex_span_from(&ps->lx, begin), "expected a number of bits from 0 to 64, found %lld",
             (long long)v);
  return false;
}

static bool parse_exponent_bits(kl_parser *ps, kl_draft_instr *d) {
  return parse_bits(ps, &d->in.exponent_bits);
}
static bool parse_mantissa_bits(kl_parser *ps, kl_draft_instr *d) {
  return parse_bits(ps, &d->in.mantissa_bits);
}

static bool parse_called(kl_parser *ps, kl_draft_instr *d) {
  d->called_begin = (uint32_t)ps->lx.begin;
  d->called_end = (uint32_t)ps->lx.pos;
  return kl_parse_name(ps, "a computation's name", &d->called_name);
}

// --- which op has which -------------------------------------------------------------------------------------------

typedef struct attr_row {
  kl_op op;
  const char *key;
  bool required;
  bool (*parse)(kl_parser *ps, kl_draft_instr *d);
} attr_row;

// Broadcasts and pads of scalars may leave theirs out: inference checks their number against the rank.
static const attr_row attr_rows[] = {
    // op                   key                required parse
    {KL_OP_BROADCAST, "dimensions", false, parse_int_list},
    {KL_OP_TRANSPOSE, "dimensions", true, parse_int_list},
    {KL_OP_REVERSE, "dimensions", true, parse_int_list},
    {KL_OP_CONCATENATE, "dimensions", true, parse_int_list},
    {KL_OP_IOTA, "iota_dimension", true, parse_number},
    {KL_OP_SLICE, "slice", true, parse_slice},
    {KL_OP_PAD, "padding", false, parse_padding},
    {KL_OP_COMPARE, "direction", true, parse_direction},
    {KL_OP_COMPARE, "type", false, parse_compare_type},
    {KL_OP_REDUCE_PRECISION, "exponent_bits", true, parse_exponent_bits},
    {KL_OP_REDUCE_PRECISION, "mantissa_bits", true, parse_mantissa_bits},
    {KL_OP_GET_TUPLE_ELEMENT, "index", true, parse_number},
    {KL_OP_FUSION, "kind", true, parse_fusion_kind},
    {KL_OP_FUSION, "calls", true, parse_called},
    {KL_OP_CALL, "to_apply", true, parse_called},
};
_Static_assert(KL_COUNT(attr_rows) <= 32, "kl_draft_instr.seen holds one bit per row");

// These say where an instruction came from or how it is to be placed, not what it computes.
static const char *const silent_keys[] = {
    "metadata",
    "sharding",
    "backend_config",
    "frontend_attributes",
    "control-predecessors",
    "inferred_dimension",
    "operand_precision",
    "origin",
    "statistics",
    "is_composite",
    "original_value",
    "parameter_replication",
};

static bool is_silent(kl_str key) {
  for (size_t i = 0; i < KL_COUNT(silent_keys); i++)
    if (kl_str_is(key, silent_keys[i])) return true;
  return false;
}

static int find_row(kl_op op, kl_str key) {
  for (size_t i = 0; op != KL_OP_UNKNOWN && i < KL_COUNT(attr_rows); i++)
    if (attr_rows[i].op == op && kl_str_is(key, attr_rows[i].key)) return (int)i;
  return -1;
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

static bool parse_raw(kl_parser *ps, kl_str key, raw_list *raw) {
  kl_raw_attr a = {.key = kl_str_dup(ps->arena, key)};
  if (ps->lx.kind == KL_TOK_BAD || kl_lex_on_new_line(&ps->lx)) return kl_lex_expected(&ps->lx, "an attribute's value");
  if (!kl_lex_raw(&ps->lx, ps->arena, KL_RAW_VALUE, &a.value)) return false;
  if (a.value.n == 0) return kl_lex_expected(&ps->lx, "a value for the attribute '%.*s'", KL_FMT(a.key));
  VEC_PUSH(ps->cx, raw, a);
  return true;
}

bool kl_parse_raw_attrs(kl_parser *ps, uint32_t *n, const kl_raw_attr **out) {
  raw_list raw = {0};
  bool ok = true;
  while (ok && kl_lex_eat(&ps->lx, ',')) {
    kl_str key;
    kl_span span;
    ok = parse_key(ps, &key, &span) && parse_raw(ps, key, &raw);
  }
  *n = (uint32_t)raw.n;
  *out = VEC_FREEZE(ps->cx, ps->arena, &raw);
  return ok;
}

static bool parse_typed(kl_parser *ps, kl_draft_instr *d, int row, kl_span span) {
  if (d->seen >> row & 1) {
    kl_invalid(ps->cx, span, "%s: expected the attribute '%s' once, found it again", kl_op_name(d->in.op),
               attr_rows[row].key);
    return false;
  }
  d->seen |= 1u << row;
  return attr_rows[row].parse(ps, d);
}

static bool parse_attr(kl_parser *ps, kl_draft_instr *d, raw_list *raw) {
  kl_str key;
  kl_span span;
  if (!parse_key(ps, &key, &span)) return false;
  int row = find_row(d->in.op, key);
  if (row >= 0) return parse_typed(ps, d, row, span);
  if (!parse_raw(ps, key, raw)) return false;
  if (d->in.op != KL_OP_UNKNOWN && !is_silent(key))
    kl_warn(ps->cx, span, "%s: the attribute '%.*s' is not known and kept as text", kl_op_name(d->in.op),
            (int)(key.n < 100 ? key.n : 100), key.p);
  return true;
}

static bool has_required(kl_parser *ps, const kl_draft_instr *d) {
  bool ok = true;
  for (size_t i = 0; d->in.op != KL_OP_UNKNOWN && i < KL_COUNT(attr_rows); i++) {
    if (attr_rows[i].op != d->in.op || !attr_rows[i].required || (d->seen >> i & 1)) continue;
    kl_invalid(ps->cx, d->in.span, "%s: expected an attribute '%s=...', found none", kl_op_name(d->in.op),
               attr_rows[i].key);
    ok = false;
  }
  return ok;
}

bool kl_parse_attrs(kl_parser *ps, kl_draft_instr *d) {
  raw_list raw = {0};
  bool ok = true;
  while (ok && kl_lex_eat(&ps->lx, ',')) ok = parse_attr(ps, d, &raw);
  d->in.nraw = (uint32_t)raw.n;
  d->in.raw = VEC_FREEZE(ps->cx, ps->arena, &raw);
  return ok && has_required(ps, d);
}
