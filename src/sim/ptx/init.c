// Initial values of variables: numbers, addresses of variables and functions, in braces as in C.
#include "sim/ptx/parse.h"

#define MOST_BYTES ((uint64_t)1 << 32)

typedef struct init {
  kl_ptx_parser *ps;
  kl_ptx_var *v;
  uint64_t element;                       // bytes
  uint32_t levels;                        // dims, and the vector as the innermost
  uint64_t span[KL_PTX_MOST_NESTING + 2]; // elements of what stands in the braces of a level; 0: any number
  uint64_t next;                          // element
  bool lacking;                           // braces within others ended before they were full
  uint8_t *bytes;                         // of what is stored so far, zero where nothing is
  uint64_t room, end;                     // of `bytes`: allocated, stored
  VEC(kl_ptx_reloc) relocs;
} init;

// --- one value ----------------------------------------------------------------------------------------------------

static double double_of(uint64_t bits) {
  double d;
  memcpy(&d, &bits, sizeof d);
  return d;
}

static uint64_t float_bits(double d) {
  float f = (float)d;
  uint32_t bits;
  memcpy(&bits, &f, sizeof f);
  return bits;
}

// The bits of a value as the variable's type has it: integers are cut off, doubles rounded to 32 bits.
static bool convert(init *in, kl_str at, kl_ptx_value v, uint64_t *out) {
  kl_ptx_type t = in->v->type;
  bool f32 = t == KL_PTX_f32 || t == KL_PTX_b32, f64 = t == KL_PTX_f64 || t == KL_PTX_b64, fits;
  *out = v.bits;
  switch (v.type) {
  case KL_PTX_F32: fits = f32; break;
  case KL_PTX_F64:
    fits = f32 || f64;
    if (f32) *out = float_bits(double_of(v.bits));
    break;
  default: fits = t != KL_PTX_f32 && t != KL_PTX_f64; break;
  }
  if (fits) return true;
  static const char *const found[] = {"an integer", "an integer", "a double", "a float of 32 bits"};
  return kl_ptx_wrong(in->ps, at, "expected a value of type .%s, found %s", kl_ptx_type_names[t], found[v.type]);
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
  in->end = at + in->element;
  return true;
}

// --- addresses ----------------------------------------------------------------------------------------------------

static bool resolve(init *in, kl_str name, kl_ptx_reloc *r) {
  kl_ptx_parser *ps = in->ps;
  uint32_t number;
  const kl_ptx_symbol *s = kl_ptx_names_find(&ps->names, name, &number);
  if (!s || (s->kind != KL_PTX_VAR && s->kind != KL_PTX_FUNCTION))
    return kl_ptx_wrong(ps, name, "expected a number, or a declared variable or function, found '%.*s'", KL_FMT(name));
  r->function = s->kind == KL_PTX_FUNCTION;
  r->symbol = s->index;
  kl_ptx_space space = r->function ? KL_PTX_GLOBAL : ps->vars.p[s->index].space;
  if (space != KL_PTX_GLOBAL && space != KL_PTX_CONST)
    return kl_ptx_wrong(ps, name, "expected a variable in .global or .const, found '%.*s'", KL_FMT(name));
  if (r->function && r->generic)
    return kl_ptx_wrong(ps, name, "expected a variable inside of generic(), found a function");
  return true;
}

// NAME + offset, generic(NAME) + offset
static bool take_symbol(init *in, kl_ptx_reloc *r) {
  kl_ptx_parser *ps = in->ps;
  kl_str name;
  if (!kl_ptx_name(ps, "a variable or function", &name)) return false;
  if (kl_str_is(name, "generic") && kl_ptx_eat(ps, '(')) {
    r->generic = true;
    if (!kl_ptx_name(ps, "a variable", &name) || !resolve(in, name, r)) return false;
    if (!kl_ptx_need(ps, ')', "after the variable")) return false;
  } else if (!resolve(in, name, r)) {
    return false;
  }
  if (r->function && kl_ptx_at(ps, '+')) return kl_ptx_expected(ps, "nothing to be added to a function's address");
  return kl_ptx_offset(ps, false, &r->offset);
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
  kl_ptx_type t = in->v->type;
  kl_str at = kl_ptx_current(ps);
  kl_ptx_reloc r = {.at = in->next * in->element, .bytes = (uint8_t)in->element};
  if (mask ? !take_mask(in, &r) : !take_symbol(in, &r)) return false;
  if (mask ? t != KL_PTX_u8 && t != KL_PTX_b8 : t != KL_PTX_u64 && t != KL_PTX_b64 && t != KL_PTX_u32)
    return kl_ptx_wrong(ps, at, "expected an address in .%s, found .%s", mask ? "u8" : "u64", kl_ptx_type_names[t]);
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

static bool take_value(init *in) {
  kl_ptx_parser *ps = in->ps;
  kl_str at = kl_ptx_current(ps);
  kl_ptx_value v;
  uint64_t bits;
  bool mask = at_mask(ps);
  if (mask || (ps->lx.kind == KL_PTX_TOK_NAME && !kl_str_is(ps->lx.word, "WARP_SZ"))) return take_address(in, mask);
  return kl_ptx_expr(ps, &v) && convert(in, at, v, &bits) && store(in, bits);
}

// --- braces -------------------------------------------------------------------------------------------------------

// What stands between the braces of that level: values, or braces where there are more levels. Values that are left out
// are zero. Assemblers differ from C in where values go behind braces that are not full, so only the last may lack
// some.
static bool take_braces(init *in, uint32_t level) {
  kl_ptx_parser *ps = in->ps;
  uint64_t span = in->span[level], begin = in->next;
  if (!kl_ptx_need(ps, '{', "before the values")) return false;
  ps->braces++;
  if (!kl_ptx_at(ps, '}')) do {
      if (kl_ptx_at(ps, '}')) return kl_ptx_expected(ps, "a value after ','");
      if (in->lacking) return kl_ptx_expected(ps, "the values that the braces before lack");
      if (span && in->next - begin >= span)
        return kl_ptx_expected(ps, "at most %llu values between these braces", (unsigned long long)span);
      if (level + 1 < in->levels ? !take_braces(in, level + 1) : !take_value(in)) return false;
      in->next += level + 1 == in->levels;
    } while (kl_ptx_eat(ps, ','));
  in->lacking |= level && in->next - begin < span;
  if (!kl_ptx_eat(ps, '}')) return kl_ptx_expected(ps, "',' or '}' after a value");
  ps->braces--;
  return true;
}

static void set_spans(init *in, const kl_ptx_dims *d, uint32_t vector) {
  uint64_t span = 1;
  in->levels = d->n + (vector > 1);
  if (vector > 1) in->span[d->n] = span = vector;
  for (uint32_t i = d->n; i-- > 0;) in->span[i] = span *= d->size[i]; // a first dim without a size makes it 0
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
  if (in->end) memcpy(p, in->bytes, in->end);
  in->v->init = p;
  in->v->ninit = in->end;
  in->v->nrelocs = in->relocs.n;
  in->v->relocs = VEC_FREEZE(ps->cx, ps->arena, &in->relocs);
  return true;
}

bool kl_ptx_initialiser(kl_ptx_parser *ps, kl_ptx_var *v, kl_ptx_dims *dims, uint32_t vector) {
  init in = {.ps = ps, .v = v, .element = kl_ptx_type_bits[v->type] / 8};
  set_spans(&in, dims, vector);
  if (v->bytes > MOST_BYTES)
    return kl_ptx_refused(ps, v->name, "initial values of more than 2^32 bytes are not supported");
  bool ok = (in.levels ? take_braces(&in, 0) : take_value(&in)) && set_size(&in, dims, vector) && keep(&in);
  kl_free(ps->cx, in.bytes, in.room);
  VEC_FREE(ps->cx, &in.relocs);
  return ok;
}
