// Numbers with their types, and types of tensors, as MLIR writes them.
#include "ir/sparse/text/reader.h"
#include "ir/text/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// --- types --------------------------------------------------------------------------------------------------------

static const struct {
  const char *name;
  kl_dtype dtype;
} floats[] = {{"f4E2M1FN", KILN_F4E2M1FN},
              {"f8E3M4", KILN_F8E3M4},
              {"f8E4M3", KILN_F8E4M3},
              {"f8E4M3FN", KILN_F8E4M3FN},
              {"f8E4M3FNUZ", KILN_F8E4M3FNUZ},
              {"f8E4M3B11FNUZ", KILN_F8E4M3B11FNUZ},
              {"f8E5M2", KILN_F8E5M2},
              {"f8E5M2FNUZ", KILN_F8E5M2FNUZ},
              {"f8E8M0FNU", KILN_F8E8M0FNU},
              {"f16", KILN_F16},
              {"bf16", KILN_BF16},
              {"f32", KILN_F32},
              {"f64", KILN_F64}};

static const struct {
  const char *name;
  kl_dtype dtype;
} integers[] = {{"i1", KILN_PRED},  {"i2", KILN_S2},    {"i4", KILN_S4},    {"i8", KILN_S8},    {"i16", KILN_S16},
                {"i32", KILN_S32},  {"i64", KILN_S64},  {"si2", KILN_S2},   {"si4", KILN_S4},   {"si8", KILN_S8},
                {"si16", KILN_S16}, {"si32", KILN_S32}, {"si64", KILN_S64}, {"ui2", KILN_U2},   {"ui4", KILN_U4},
                {"ui8", KILN_U8},   {"ui16", KILN_U16}, {"ui32", KILN_U32}, {"ui64", KILN_U64}, {"index", KILN_S64}};

static kl_dtype float_named(kl_str name) {
  for (size_t i = 0; i < KL_COUNT(floats); i++)
    if (kl_str_is(name, floats[i].name)) return floats[i].dtype;
  return KILN_DTYPE_NONE;
}

// "si8": i, si or ui with a number of bits.
static bool integer_named(kl_str s, kl_mtype *out) {
  size_t sign = s.n && (s.p[0] == 's' || s.p[0] == 'u');
  uint64_t bits;
  bool index = kl_str_is(s, "index");
  if (!index && (s.n < sign + 2 || s.p[sign] != 'i' || !kl_is_digit(s.p[sign + 1]) ||
                 !kl_u64_from_text((kl_str){s.p + sign + 1, s.n - sign - 1}, &bits) || bits == 0 || bits > 1 << 24))
    return false;
  out->cls = KL_NUMBER_INT;
  out->bits = index ? 64 : (unsigned)bits;
  out->sign = sign ? s.p[0] : 0;
  for (size_t i = 0; i < KL_COUNT(integers); i++)
    if (kl_str_is(s, integers[i].name)) out->dtype = integers[i].dtype;
  return true;
}

static kl_mtype named(kl_str name) {
  kl_mtype t = {.text = name};
  t.dtype = float_named(name);
  if (t.dtype)
    t.cls = KL_NUMBER_FLOAT;
  else
    integer_named(name, &t);
  return t;
}

static kl_dtype complex_of(kl_dtype part) {
  return part == KILN_F32 ? KILN_C64 : part == KILN_F64 ? KILN_C128 : KILN_DTYPE_NONE;
}

static const char *mlir_name(kl_dtype t) {
  for (size_t i = 0; i < KL_COUNT(floats); i++)
    if (floats[i].dtype == t) return floats[i].name;
  for (size_t i = 0; i < KL_COUNT(integers); i++)
    if (integers[i].dtype == t) return integers[i].name;
  return t == KILN_C64 ? "complex<f32>" : t == KILN_C128 ? "complex<f64>" : NULL;
}

kl_mtype kl_mtype_of(kl_dtype t) {
  const char *name = mlir_name(t);
  if (!name) return (kl_mtype){.text = kl_str_of(kl_info(t)->name), .dtype = t};
  if (!kl_is_complex(t)) return named(kl_str_of(name));
  return (kl_mtype){.text = kl_str_of(name), .cls = KL_NUMBER_COMPLEX, .dtype = t, .part = kl_info(t)->part};
}

// The text up to the bracket that closes the one at the token, without white space.
static bool read_angles(reader *r, kl_sb *b) {
  int depth = 0;
  do {
    if (r->kind == T_END) return sp_expected(r, KL_RULE_TYPE, "'>'");
    depth += sp_is(r, '<') - sp_is(r, '>');
    kl_sb_put(b, sp_text(r));
    sp_next(r);
  } while (depth > 0);
  return true;
}

bool sp_read_mtype(reader *r, kl_mtype *out) {
  kl_str name = sp_text(r);
  if (r->kind != T_WORD) return sp_expected(r, KL_RULE_TYPE, "a type such as f32");
  sp_next(r);
  if (!sp_is(r, '<')) {
    *out = named(kl_str_dup(r->arena, name));
    return true;
  }
  kl_sb b;
  kl_sb_init(&b, r->cx);
  kl_sb_put(&b, name);
  bool ok = read_angles(r, &b);
  *out = (kl_mtype){.text = kl_str_dup(r->arena, (kl_str){b.p, b.n})};
  kl_sb_free(&b);
  if (!ok || !kl_str_is(name, "complex")) return ok;
  out->cls = KL_NUMBER_COMPLEX;
  out->part = float_named((kl_str){out->text.p + 8, out->text.n - 9});
  out->dtype = complex_of(out->part);
  return true;
}

// --- numbers as text ----------------------------------------------------------------------------------------------

// Decimal text as a value of the type, rounded once.
static bool decimal(kl_str text, kl_dtype t, uint64_t *bits) {
  double v;
  if (!(t == KILN_F64 ? kl_double_from_text : kl_double_from_text_odd)(text, &v)) return false;
  *bits = kl_float_encode(t, v);
  return true;
}

// "1.000000e+00", where six digits name the value.
static bool put_short(kl_sb *b, kl_dtype t, double v, uint64_t bits) {
  uint64_t back;
  char text[64];
  snprintf(text, sizeof text, "%.5e", v);
  text[1 + (text[0] == '-')] = '.'; // whatever the locale has
  if (!decimal(kl_str_of(text), t, &back) || back != bits) return false;
  size_t mantissa = strcspn(text, "e");
  kl_sbf(b, "%.*s0%s", (int)mantissa, text, text + mantissa);
  return true;
}

// As many digits as name every value of the type; false for whole numbers that would have no point.
static bool put_long(kl_sb *b, kl_dtype t, double v) {
  char text[64];
  int digits = (int)(2 + (kl_info(t)->man_bits + 1u) * 59 / 196);
  snprintf(text, sizeof text, "%.*e", digits - 1, v);
  int sign = text[0] == '-', n = digits, exponent = atoi(strchr(text, 'e') + 1);
  memmove(text + sign + 1, text + sign + 2, (size_t)(n - 1)); // without the point
  while (n > 1 && text[sign + n - 1] == '0') n--;
  int last = exponent - n + 1; // the power of ten of the last digit
  if (last < 0 && exponent >= -3) {
    int whole = exponent < 0 ? 0 : exponent + 1;
    kl_sb_put(b, (kl_str){text, (size_t)(sign + whole)});
    kl_sb_puts(b, whole ? "." : "0.");
    for (int i = exponent + 1; i < 0; i++) kl_sb_putc(b, '0');
    kl_sb_put(b, (kl_str){text + sign + whole, (size_t)(n - whole)});
    return true;
  }
  if (last >= 0 && last <= 3 && exponent < digits) return false;
  kl_sbf(b, "%.*s.%.*sE%c%d", sign + 1, text, n > 1 ? n - 1 : 1, n > 1 ? text + sign + 1 : "0",
         exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
  return true;
}

static void put_float(kl_sb *b, kl_dtype t, double v) {
  uint64_t bits = kl_float_encode(t, v);
  if (isfinite(v) && (put_short(b, t, v, bits) || put_long(b, t, v))) return;
  kl_sbf(b, "0x%0*llX", (kl_info(t)->bits + 3) / 4, (unsigned long long)bits);
}

static void put_int(kl_sb *b, const kl_number *x) {
  uint64_t size = x->size;
  bool negative = x->negative && size;
  bool top = x->type.bits <= 64 && size >> (x->type.bits - 1) & 1;
  if (x->type.sign != 'u' && !negative && top) { // which is a sign
    size = x->type.bits == 64 ? 0 - size : (1ull << x->type.bits) - size;
    negative = true;
  }
  kl_sbf(b, "%s%llu", negative ? "-" : "", (unsigned long long)size);
}

static void put_number(kl_sb *b, const kl_number *x) {
  if (x->cls == KL_NUMBER_INT && x->type.bits == 1 && !x->type.sign) {
    kl_sb_puts(b, x->size ? "true" : "false");
    return;
  }
  if (x->cls == KL_NUMBER_COMPLEX) {
    kl_sbf(b, "#complex.number<:%s ", mlir_name(x->type.part));
    put_float(b, x->type.part, x->value[0]);
    kl_sb_puts(b, ", ");
    put_float(b, x->type.part, x->value[1]);
    kl_sb_putc(b, '>');
  } else if (x->cls == KL_NUMBER_INT) {
    put_int(b, x);
  } else {
    put_float(b, x->type.dtype, x->value[0]);
  }
  kl_sbf(b, " : %.*s", KL_FMT(x->type.text));
}

static void set_text(kl_arena *a, kl_number *x) {
  kl_sb b;
  kl_sb_init(&b, a->cx);
  put_number(&b, x);
  x->text = kl_str_dup(a, (kl_str){b.p, b.n});
  kl_sb_free(&b);
}

static void set_bits(kl_number *x) {
  kl_dtype t = x->type.dtype;
  if (x->cls == KL_NUMBER_INT) {
    x->bits[0] = x->negative ? 0 - x->size : x->size;
    if (t) x->bits[0] &= kl_int_mask(t);
  } else {
    kl_dtype part = x->cls == KL_NUMBER_COMPLEX ? x->type.part : t;
    for (int i = 0; i < 2; i++) x->bits[i] = kl_float_encode(part, x->value[i]);
  }
}

// --- reading ------------------------------------------------------------------------------------------------------

// The magnitude that the token has; decimal or 0x.
static bool integer_of(kl_str s, uint64_t *out) {
  uint64_t v = 0;
  if (s.n < 2 || (s.p[1] | 0x20) != 'x') return kl_u64_from_text(s, out);
  for (size_t i = 2; i < s.n; i++) {
    if (v >> 60) return false;
    v = v << 4 | (uint64_t)(s.p[i] <= '9' ? s.p[i] - '0' : (s.p[i] | 0x20) - 'a' + 10);
  }
  *out = v;
  return true;
}

static bool int_fits(const kl_mtype *t, bool negative, uint64_t size) {
  uint64_t top = t->bits >= 64 ? 1ull << 63 : 1ull << (t->bits - 1);
  if (size == 0) return true;
  if (t->bits > 64) return true;
  if (negative) return t->sign != 'u' && size <= top;
  return t->sign == 's' ? size < top : t->bits == 64 || size < 2 * top;
}

static bool float_of(kl_str s, bool hex, kl_dtype t, double *out) {
  uint64_t bits;
  if (hex) {
    if (!integer_of(s, &bits) || (kl_info(t)->bits < 64 && bits >> kl_info(t)->bits)) return false;
    *out = kl_float_decode(t, bits);
    return true;
  }
  if (!decimal(s, t, &bits)) return false;
  *out = kl_float_decode(t, bits);
  return true;
}

static bool no_value(reader *r, size_t begin, const kl_mtype *t) {
  kl_span where = sp_since(r, begin);
  kl_str s = {r->scan.src->text.p + begin, where.end - begin};
  return sp_broken(r, where, KL_RULE_NUMBER, "expected a number that %.*s has, found '%.*s'", KL_FMT(t->text),
                   KL_FMT(s));
}

static bool float_has_room(reader *r, size_t begin, const kl_mtype *t, kl_dtype part) {
  return part || sp_broken(r, sp_since(r, begin), KL_RULE_LARGE, "expected a float of at most 64 bits, found %.*s",
                           KL_FMT(t->text));
}

static bool is_hex_text(kl_str s) {
  return s.n > 2 && (s.p[1] | 0x20) == 'x';
}

// A sign, if it is there, and an integer or float.
static bool read_literal(reader *r, bool *negative, token *kind, kl_str *text) {
  *negative = sp_eat(r, '-');
  *kind = r->kind;
  *text = sp_text(r);
  if (r->kind != T_INTEGER && r->kind != T_FLOAT) return sp_expected(r, KL_RULE_NUMBER, "a number");
  sp_next(r);
  return true;
}

static bool set_plain(reader *r, kl_number *x, size_t begin, bool negative, token kind, kl_str text) {
  const kl_mtype *t = &x->type;
  x->cls = t->cls;
  if (t->cls == KL_NUMBER_INT) {
    x->negative = negative;
    if (kind != T_INTEGER || !integer_of(text, &x->size) || !int_fits(t, negative, x->size))
      return no_value(r, begin, t);
    x->negative = negative && x->size;
    return true;
  }
  bool hex = kind == T_INTEGER && is_hex_text(text);
  if (t->cls != KL_NUMBER_FLOAT && !kl_str_eq(t->text, KL_STR("f80")) && !kl_str_eq(t->text, KL_STR("f128")))
    return no_value(r, begin, t);
  if (!float_has_room(r, begin, t, t->dtype)) return false;
  if ((kind == T_INTEGER && !hex) || !float_of(text, hex, t->dtype, &x->value[0])) return no_value(r, begin, t);
  if (negative && hex) return no_value(r, begin, t);
  if (negative) x->value[0] = -x->value[0];
  return true;
}

static bool read_plain(reader *r, kl_number *x) {
  size_t begin = r->scan.begin;
  bool negative;
  token kind;
  kl_str text;
  if (!read_literal(r, &negative, &kind, &text)) return false;
  x->bare = !sp_eat(r, ':');
  if (x->bare)
    x->type = named(kind == T_FLOAT ? KL_STR("f64") : KL_STR("i64"));
  else if (!sp_read_mtype(r, &x->type))
    return false;
  return set_plain(r, x, begin, negative, kind, text);
}

// Behind #complex.number: <:f32 1.0, 0.0>, and maybe a type.
static bool read_complex(reader *r, kl_number *x) {
  size_t begin = r->scan.begin;
  kl_mtype part, given;
  kl_number half = {0};
  sp_next(r);
  if (!sp_need(r, '<', KL_RULE_NUMBER, "'<:' and a type") || !sp_need(r, ':', KL_RULE_NUMBER, "':' and a type") ||
      !sp_read_mtype(r, &part))
    return false;
  for (int i = 0; i < 2; i++) {
    bool negative;
    token kind;
    kl_str text;
    size_t at = r->scan.begin;
    if (i && !sp_need(r, ',', KL_RULE_NUMBER, "',' and the imaginary part")) return false;
    if (!read_literal(r, &negative, &kind, &text)) return false;
    half.type = part;
    if (part.cls != KL_NUMBER_FLOAT) return no_value(r, at, &part);
    if (!set_plain(r, &half, at, negative, kind, text)) return false;
    x->value[i] = half.value[0];
  }
  if (!sp_need(r, '>', KL_RULE_NUMBER, "'>'")) return false;
  kl_str text = kl_str_of(kl_strf(r->arena, "complex<%.*s>", KL_FMT(part.text)));
  x->cls = KL_NUMBER_COMPLEX;
  x->type = (kl_mtype){.text = text, .cls = KL_NUMBER_COMPLEX, .dtype = complex_of(part.dtype), .part = part.dtype};
  if (!sp_eat(r, ':')) return true;
  return sp_read_mtype(r, &given) && (kl_str_eq(given.text, text) || no_value(r, begin, &given));
}

bool sp_read_number(reader *r, kl_number *out, bool *number) {
  kl_number x = {0};
  bool yes = sp_is_word(r, "true");
  *number = true;
  if (yes || sp_is_word(r, "false")) {
    x = (kl_number){.cls = KL_NUMBER_INT, .type = named(KL_STR("i1")), .size = yes};
    sp_next(r);
  } else if (r->kind == T_HASH && kl_str_is(sp_text(r), "#complex.number")) {
    if (!read_complex(r, &x)) return false;
  } else if (r->kind == T_INTEGER || r->kind == T_FLOAT || sp_is(r, '-')) {
    if (!read_plain(r, &x)) return false;
  } else {
    *number = false;
    return true;
  }
  set_bits(&x);
  set_text(r->arena, &x);
  *out = x;
  return true;
}

// --- questions ----------------------------------------------------------------------------------------------------

bool sp_number_is_zero(const kl_number *x) {
  return x->cls == KL_NUMBER_INT ? x->size == 0 : x->value[0] == 0 && x->value[1] == 0;
}

bool kl_number_convert(kl_arena *a, const kl_number *x, const kl_mtype *type, kl_number *out) {
  kl_number y = {.cls = type->cls, .type = *type};
  double v = x->cls == KL_NUMBER_INT ? (double)x->size * (x->negative ? -1 : 1) : x->value[0];
  if (x->cls == KL_NUMBER_COMPLEX || !type->dtype) return false;
  if (type->cls == KL_NUMBER_INT) {
    bool exact = x->cls == KL_NUMBER_INT || (v == trunc(v) && fabs(v) < 0x1p63);
    y.size = x->cls == KL_NUMBER_INT ? x->size : exact ? (uint64_t)fabs(v) : 0;
    y.negative = v < 0;
    kl_mtype own = *type;
    if (!own.sign && own.bits > 1) own.sign = 's'; // kiln's are signed
    if (!exact || !int_fits(&own, y.negative, y.size)) return false;
  } else {
    kl_dtype part = type->cls == KL_NUMBER_COMPLEX ? type->part : type->dtype;
    y.value[0] = kl_float_decode(part, kl_float_encode(part, v));
    bool whole = x->cls != KL_NUMBER_INT || (v < 0x1p64 && (uint64_t)fabs(v) == x->size);
    if (x->cls == KL_NUMBER_INT && (!whole || y.value[0] != v)) return false;
    if (isfinite(v) && !isfinite(y.value[0])) return false;
  }
  set_bits(&y);
  set_text(a, &y);
  *out = y;
  return true;
}

// --- types of tensors ---------------------------------------------------------------------------------------------

static bool type_is_not(reader *r) {
  return sp_expected(r, KL_RULE_TYPE, "a tensor type such as 4x?xf32 or f32[4,8]");
}

static bool add_size(reader *r, kl_tensor_type *t, int64_t v) {
  if (t->rank == KL_MOST_LEVELS)
    return sp_broken(r, sp_here(r), KL_RULE_LARGE, "expected at most %d dimensions, found more", KL_MOST_LEVELS);
  t->sizes[t->rank++] = v;
  return true;
}

// f32[4,?]: the bracket is the token.
static bool read_brackets(reader *r, kl_tensor_type *t, kl_str name) {
  kl_dtype d;
  if (!kl_dtype_from_str(name, &d) || !kl_is_array_dtype(d)) return type_is_not(r);
  t->element = kl_mtype_of(d);
  sp_next(r);
  if (sp_eat(r, ']')) return true;
  do {
    int64_t v = -1;
    if (sp_eat(r, '<') && !sp_need(r, '=', KL_RULE_TYPE, "'<=' and a bound")) return false;
    if (!sp_eat(r, '?')) {
      if (r->kind != T_INTEGER || !kl_i64_from_text(sp_text(r), &v)) return type_is_not(r);
      sp_next(r);
    }
    if (!add_size(r, t, v)) return false;
  } while (sp_eat(r, ','));
  return sp_need(r, ']', KL_RULE_TYPE, "',' or ']' after a size");
}

// Takes "4x" or "?x", which are no tokens.
static bool read_size(reader *r, int64_t *out) {
  size_t i = r->scan.begin;
  kl_str s = r->scan.src->text;
  if (i < s.n && s.p[i] == '?') {
    *out = -1;
    i++;
  } else {
    while (i < s.n && kl_is_digit(s.p[i])) i++;
    if (i == r->scan.begin || !kl_i64_from_text((kl_str){s.p + r->scan.begin, i - r->scan.begin}, out)) return false;
  }
  if (i >= s.n || s.p[i] != 'x') return false;
  r->scan.pos = i + 1;
  sp_next(r);
  return true;
}

static bool read_sizes(reader *r, kl_tensor_type *t) {
  int64_t v;
  while (read_size(r, &v))
    if (!add_size(r, t, v)) return false;
  return true;
}

bool sp_read_type(reader *r, kl_tensor_type *out) {
  kl_tensor_type t = {.given = true};
  bool wrapped = sp_is_word(r, "tensor");
  if (wrapped) {
    sp_next(r);
    if (!sp_is(r, '<')) return type_is_not(r);
    r->scan.last_end = r->scan.pos;
    sp_next(r);
  }
  if (!read_sizes(r, &t)) return false;
  kl_str name = sp_text(r);
  if (r->kind != T_WORD) return type_is_not(r);
  if (!sp_read_mtype(r, &t.element)) return false;
  kl_dtype d;
  if (!r->e->strict && !t.element.cls && kl_dtype_from_str(t.element.text, &d)) t.element = kl_mtype_of(d);
  if (sp_is(r, '[') && !wrapped && t.rank == 0 && !read_brackets(r, &t, name)) return false;
  if (wrapped && !sp_need(r, '>', KL_RULE_TYPE, "'>'")) return false;
  if (r->kind != T_END) return type_is_not(r);
  *out = t;
  return true;
}
