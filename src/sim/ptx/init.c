// Initial values of variables: numbers, addresses of variables and functions, in braces as in C.
#include "sim/ptx/parse.h"

#include <math.h>

#define MOST_BYTES ((uint64_t)1 << 32)

typedef struct init {
  kl_ptx_parser *ps;
  kl_ptx_var *v;
  uint64_t element;                       // bytes
  uint32_t levels;                        // dims, and the vector as the innermost
  uint64_t span[KL_PTX_MOST_NESTING + 2]; // elements of what stands in the braces of a level; 0: any number
  uint64_t next;                          // element
  uint8_t *bytes;                         // of what is stored so far, zero where nothing is
  uint64_t room;
  VEC(kl_ptx_reloc) relocs;
} init;

// --- one value ----------------------------------------------------------------------------------------------------

// The nearest value, ties to even, of a format with that many bits; the result's bits.
static uint64_t narrowed(double d, int exponent_bits, int fraction_bits) {
  uint64_t sign = signbit(d) ? (uint64_t)1 << (exponent_bits + fraction_bits) : 0;
  uint64_t inf = (((uint64_t)1 << exponent_bits) - 1) << fraction_bits;
  int least = 2 - (1 << (exponent_bits - 1)), exp;
  if (isnan(d)) return inf | ((uint64_t)1 << (fraction_bits - 1));
  if (isinf(d)) return sign | inf;
  if (d == 0) return sign;
  frexp(d, &exp);
  int unit = (exp - 1 < least ? least : exp - 1) - fraction_bits;
  double scaled = ldexp(fabs(d), -unit), whole = floor(scaled), rest = scaled - whole;
  uint64_t q = (uint64_t)whole;
  q += rest > 0.5 || (rest == 0.5 && (q & 1));
  uint64_t bits = q + ((uint64_t)(unit + fraction_bits - least) << fraction_bits);
  return sign | (bits < inf ? bits : inf);
}

static bool is_float(kl_ptx_type t) {
  return t == KL_PTX_f16 || t == KL_PTX_bf16 || t == KL_PTX_f32 || t == KL_PTX_f64;
}

static double double_of(kl_ptx_value v) {
  double d;
  if (v.type == KL_PTX_S64) return (double)(int64_t)v.bits;
  if (v.type == KL_PTX_U64) return (double)v.bits;
  memcpy(&d, &v.bits, sizeof d);
  return d;
}

static uint64_t float_bits(kl_ptx_type type, double d) {
  uint64_t bits = 0;
  float f = (float)d;
  if (type == KL_PTX_f64)
    memcpy(&bits, &d, sizeof d);
  else if (type == KL_PTX_f32)
    memcpy(&bits, &f, sizeof f);
  else
    bits = type == KL_PTX_f16 ? narrowed(d, 5, 10) : narrowed(d, 8, 7);
  return bits;
}

// The bits of a value as the variable's type has it.
static bool convert(init *in, kl_str at, kl_ptx_value v, uint64_t *out) {
  kl_ptx_type t = in->v->type;
  uint32_t bits = kl_ptx_type_bits[t];
  *out = v.bits;
  if (v.type == KL_PTX_S64 || v.type == KL_PTX_U64) {
    if (t == KL_PTX_f32 || t == KL_PTX_f64) *out = float_bits(t, double_of(v));
    return true;
  }
  bool raw = (t == KL_PTX_b32 && v.type == KL_PTX_F32) || (t == KL_PTX_b64 && v.type == KL_PTX_F64);
  if (raw || (v.type == KL_PTX_F32 && bits == 32 && is_float(t))) return true;
  if (!is_float(t) || v.type == KL_PTX_F32)
    return kl_ptx_wrong(in->ps, at, "expected a value of type .%s, found a floating-point number of %d bits",
                        kl_ptx_type_names[t], v.type == KL_PTX_F32 ? 32 : 64);
  *out = float_bits(t, double_of(v));
  return true;
}

// Makes room for so many bytes; what is new is zero.
static bool reserve(init *in, uint64_t bytes) {
  kl_ctx *cx = in->ps->cx;
  if (bytes <= in->room) return true;
  if (bytes > MOST_BYTES)
    return kl_ptx_refused(in->ps, in->v->name, "initial values of more than 2^32 bytes are not supported");
  uint64_t room = bytes > in->room * 2 ? bytes : in->room * 2;
  uint8_t *p = kl_try_alloc(cx, room);
  if (!p) {
    kl_out_of_memory(cx, room, "a variable's initial value");
    in->ps->out_of_memory = true;
    return false;
  }
  if (in->room) memcpy(p, in->bytes, in->room);
  kl_free(cx, in->bytes, in->room);
  in->bytes = p;
  in->room = room;
  return true;
}

static bool store(init *in, uint64_t bits) {
  uint64_t at = in->next * in->element;
  if (!reserve(in, at + in->element)) return false;
  memcpy(in->bytes + at, &bits, in->element < 8 ? in->element : 8);
  return true;
}

// --- addresses ----------------------------------------------------------------------------------------------------

static bool resolve(init *in, kl_str name, kl_ptx_reloc *r) {
  uint32_t number;
  const kl_ptx_symbol *s = kl_ptx_names_find(&in->ps->names, name, &number);
  if (!s || (s->kind != KL_PTX_VAR && s->kind != KL_PTX_FUNCTION))
    return kl_ptx_wrong(in->ps, name, "expected a number, or a declared variable or function, found '%.*s'",
                        KL_FMT(name));
  r->function = s->kind == KL_PTX_FUNCTION;
  r->symbol = s->index;
  return true;
}

// NAME, generic(NAME), with what is added.
static bool take_symbol(init *in, kl_ptx_reloc *r) {
  kl_ptx_parser *ps = in->ps;
  kl_str name;
  if (!kl_ptx_name(ps, "a variable or function", &name)) return false;
  if (kl_str_is(name, "generic") && kl_ptx_eat(ps, '(')) {
    r->generic = true;
    if (!kl_ptx_name(ps, "a variable or function", &name) || !resolve(in, name, r)) return false;
    if (!kl_ptx_offset(ps, &r->offset) || !kl_ptx_need(ps, ')', "after the symbol")) return false;
  } else if (!resolve(in, name, r)) {
    return false;
  }
  int64_t more;
  if (!kl_ptx_offset(ps, &more)) return false;
  r->offset = (int64_t)((uint64_t)r->offset + (uint64_t)more);
  return true;
}

// 0xff00(symbol): one byte of an address.
static bool take_mask(init *in, kl_ptx_reloc *r) {
  kl_ptx_parser *ps = in->ps;
  uint64_t mask = ps->lx.bits;
  while (r->byte < 8 && mask != (uint64_t)0xff << 8 * r->byte) r->byte++;
  if (r->byte == 8) return kl_ptx_expected(ps, "a mask of one byte such as 0xff00");
  kl_ptx_lex_next(&ps->lx);
  return kl_ptx_need(ps, '(', "after the mask") && take_symbol(in, r) && kl_ptx_need(ps, ')', "after the symbol");
}

static bool take_address(init *in, bool mask) {
  kl_ptx_parser *ps = in->ps;
  kl_str at = ps->lx.word;
  kl_ptx_reloc r = {.at = in->next * in->element, .bytes = (uint8_t)in->element};
  if (mask) at = (kl_str){ps->lx.src->text.p + ps->lx.begin, ps->lx.pos - ps->lx.begin};
  if (mask ? !take_mask(in, &r) : !take_symbol(in, &r)) return false;
  if (is_float(in->v->type) || (mask ? in->element != 1 : in->element != 4 && in->element != 8))
    return kl_ptx_wrong(ps, at, "expected %s, found .%s",
                        mask ? "a byte for a part of an address" : "a type that holds an address, such as .b64",
                        kl_ptx_type_names[in->v->type]);
  if (!store(in, 0)) return false;
  VEC_PUSH(ps->cx, &in->relocs, r);
  return true;
}

// Is the integer that is current the mask of an address?
static bool at_mask(const kl_ptx_parser *ps) {
  kl_str t = ps->lx.src->text;
  size_t pos = ps->lx.pos;
  while (pos < t.n && (t.p[pos] == ' ' || t.p[pos] == '\t')) pos++;
  return ps->lx.kind == KL_PTX_TOK_INT && pos < t.n && t.p[pos] == '(';
}

static bool take_element(init *in) {
  kl_ptx_parser *ps = in->ps;
  kl_str at = {ps->lx.src->text.p + ps->lx.begin, ps->lx.pos - ps->lx.begin};
  if (in->span[0] && in->next >= in->span[0])
    return kl_ptx_expected(ps, "at most %llu values of '%.*s'", (unsigned long long)in->span[0], KL_FMT(in->v->name));
  bool mask = at_mask(ps), name = ps->lx.kind == KL_PTX_TOK_NAME && !kl_str_is(ps->lx.word, "WARP_SZ");
  kl_ptx_value v;
  uint64_t bits;
  if (mask || name) {
    if (!take_address(in, mask)) return false;
  } else {
    if (!kl_ptx_expr(ps, &v) || !convert(in, at, v, &bits) || !store(in, bits)) return false;
  }
  in->next++;
  return true;
}

// --- braces -------------------------------------------------------------------------------------------------------

// Behind the opening brace of that level; what is left out is zero.
static bool take_braces(init *in, uint32_t level) {
  kl_ptx_parser *ps = in->ps;
  uint64_t span = in->span[level], end;
  if (__builtin_add_overflow(in->next, span, &end)) end = UINT64_MAX;
  while (!kl_ptx_at(ps, '}')) {
    if (span && in->next >= end)
      return kl_ptx_expected(ps, "at most %llu values between these braces", (unsigned long long)span);
    if (kl_ptx_at(ps, '{')) {
      if (level + 1 >= in->levels)
        return kl_ptx_expected(ps, "a value, as '%.*s' has no more dimensions", KL_FMT(in->v->name));
      uint64_t part = in->span[level + 1], behind = in->next % part;
      if (behind) in->next += part - behind;
      kl_ptx_lex_next(&ps->lx);
      if (!take_braces(in, level + 1)) return false;
    } else if (!take_element(in)) {
      return false;
    }
    if (!kl_ptx_eat(ps, ',') && !kl_ptx_at(ps, '}')) return kl_ptx_expected(ps, "',' or '}' after a value");
  }
  kl_ptx_lex_next(&ps->lx);
  if (level) in->next = end;
  return true;
}

static void set_spans(init *in, const kl_ptx_dims *d, uint32_t vector) {
  uint64_t span = 1;
  in->levels = d->n + (vector > 1);
  if (vector > 1) in->span[d->n] = span = vector;
  for (uint32_t i = d->n; i-- > 0;) in->span[i] = span *= d->size[i]; // a first dim without a size makes it 0
}

static bool take_all(init *in) {
  if (!in->levels) {
    in->span[0] = 1;
    if (!kl_ptx_eat(in->ps, '{')) return take_element(in);
    return take_element(in) && kl_ptx_need(in->ps, '}', "after the value");
  }
  return kl_ptx_need(in->ps, '{', "before the array's values") && take_braces(in, 0);
}

// An array without a size has as many elements as there are values.
static bool set_size(init *in, kl_ptx_dims *d, uint32_t vector) {
  if (!d->n || d->size[0]) return true;
  uint64_t part = in->levels > 1 ? in->span[1] : 1;
  d->size[0] = in->next / part + (in->next % part != 0);
  if (!d->size[0]) return kl_ptx_wrong(in->ps, in->v->name, "expected at least one value of an array without a size");
  in->v->bytes = d->size[0] * part * in->element;
  return true;
}

static bool keep(init *in) {
  kl_ptx_parser *ps = in->ps;
  uint8_t *p = kl_arena_try_alloc(ps->arena, in->v->bytes);
  if (!p) {
    kl_out_of_memory(ps->cx, in->v->bytes, "a variable's initial value");
    ps->out_of_memory = true;
    return false;
  }
  if (in->room) memcpy(p, in->bytes, in->room < in->v->bytes ? in->room : in->v->bytes);
  in->v->init = p;
  in->v->nrelocs = in->relocs.n;
  in->v->relocs = VEC_FREEZE(ps->cx, ps->arena, &in->relocs);
  return true;
}

bool kl_ptx_initialiser(kl_ptx_parser *ps, kl_ptx_var *v, kl_ptx_dims *dims, uint32_t vector) {
  init in = {.ps = ps, .v = v, .element = kl_ptx_type_bits[v->type] / 8};
  set_spans(&in, dims, vector);
  if (v->bytes > MOST_BYTES)
    return kl_ptx_refused(ps, v->name, "initial values of more than 2^32 bytes are not supported");
  bool ok = take_all(&in) && set_size(&in, dims, vector) && keep(&in);
  kl_free(ps->cx, in.bytes, in.room);
  VEC_FREE(ps->cx, &in.relocs);
  return ok;
}
