// Declarations: variables of all spaces, registers, parameters.
#include "sim/ptx/parse.h"

const char *const kl_ptx_type_names[] = {
#define X(name, bits) #name,
    KL_PTX_TYPES(X)
#undef X
};
const uint8_t kl_ptx_type_bits[] = {
#define X(name, bits) bits,
    KL_PTX_TYPES(X)
#undef X
};

static const char *const space_names[] = {
    [KL_PTX_GLOBAL] = "global", [KL_PTX_CONST] = "const", [KL_PTX_SHARED] = "shared",
    [KL_PTX_LOCAL] = "local",   [KL_PTX_PARAM] = "param",
};

bool kl_ptx_space_of(kl_str word, kl_ptx_space *out) {
  for (size_t i = 0; i < KL_COUNT(space_names); i++) {
    if (!kl_str_is(word, space_names[i])) continue;
    *out = (kl_ptx_space)i;
    return true;
  }
  return false;
}

static bool type_of(kl_str word, kl_ptx_type *out) {
  for (size_t i = 0; i < KL_COUNT(kl_ptx_type_names); i++) {
    if (!kl_str_is(word, kl_ptx_type_names[i])) continue;
    *out = (kl_ptx_type)i;
    return true;
  }
  return false;
}

// --- what stands before the names ---------------------------------------------------------------------------------

typedef struct head {
  kl_ptx_var v; // space, type, alignment, pointer
  kl_str type;
  uint8_t vector;
  bool has_type;
} head;

static bool take_align(kl_ptx_parser *ps, uint32_t *out) {
  uint64_t align;
  kl_str at = kl_ptx_current(ps);
  if (!kl_ptx_number(ps, "an alignment", 1 << 30, &align)) return false;
  if (align == 0 || (align & (align - 1)))
    return kl_ptx_wrong(ps, at, "expected an alignment that is a power of two, found %llu", (unsigned long long)align);
  *out = (uint32_t)align;
  return true;
}

bool kl_ptx_attributes(kl_ptx_parser *ps) {
  if (!kl_ptx_need(ps, '(', "after .attribute")) return false;
  do {
    uint64_t ignored;
    if (kl_ptx_eat_dot(ps, "managed")) continue;
    if (!kl_ptx_eat_dot(ps, "unified")) return kl_ptx_expected(ps, "an attribute, one of .managed .unified");
    if (!kl_ptx_need(ps, '(', "after .unified") || !kl_ptx_number(ps, "a number", UINT64_MAX, &ignored) ||
        !kl_ptx_need(ps, ',', "after the number") || !kl_ptx_number(ps, "a number", UINT64_MAX, &ignored) ||
        !kl_ptx_need(ps, ')', "after the numbers"))
      return false;
  } while (kl_ptx_eat(ps, ','));
  return kl_ptx_need(ps, ')', "after the attributes");
}

static uint8_t vector_of(kl_str word) {
  return kl_str_is(word, "v2") ? 2 : kl_str_is(word, "v4") ? 4 : 1;
}

// One word behind a dot, which is current. Alignment comes before the vector's size, that before the type, and what a
// pointer points to behind it.
static bool head_word(kl_ptx_parser *ps, head *h) {
  kl_str word = ps->lx.word;
  kl_ptx_space space;
  bool before = !h->has_type && h->vector == 1, behind = h->v.pointer && !h->v.pointer_align;
  if ((before || behind) && kl_str_is(word, "align")) {
    kl_ptx_lex_next(&ps->lx);
    return take_align(ps, h->v.pointer ? &h->v.pointer_align : &h->v.align);
  }
  if (before && kl_str_is(word, "attribute")) {
    kl_ptx_lex_next(&ps->lx);
    return kl_ptx_attributes(ps);
  }
  if (before && vector_of(word) > 1)
    h->vector = vector_of(word);
  else if (h->has_type && !h->v.pointer && kl_str_is(word, "ptr"))
    h->v.pointer = true;
  else if (behind && h->v.pointer_space < 0 && kl_ptx_space_of(word, &space))
    h->v.pointer_space = (int8_t)space;
  else if (!h->has_type && type_of(word, &h->v.type))
    h->has_type = true, h->type = word;
  else
    return kl_ptx_expected(ps, h->has_type ? "a name" : "a type");
  kl_ptx_lex_next(&ps->lx);
  return true;
}

static bool take_head(kl_ptx_parser *ps, head *h) {
  h->vector = 1;
  h->v.pointer_space = -1;
  while (ps->lx.kind == KL_PTX_TOK_DOT)
    if (!head_word(ps, h)) return false;
  return h->has_type || kl_ptx_expected(ps, "a type");
}

// --- variables ----------------------------------------------------------------------------------------------------

// A size of 0 says as little as none; it is let through where none may be said.
static bool take_dims(kl_ptx_parser *ps, bool may_be_none, kl_ptx_dims *d) {
  while (kl_ptx_eat(ps, '[')) {
    uint64_t size = 0;
    kl_str at = kl_ptx_current(ps);
    if (d->n == KL_COUNT(d->size)) return kl_ptx_expected(ps, "an array of at most %zu dimensions", KL_COUNT(d->size));
    if (kl_ptx_at(ps, ']') && d->n) return kl_ptx_expected(ps, "the size of a dimension other than the first");
    if (!kl_ptx_at(ps, ']')) {
      if (!kl_ptx_number(ps, "the size of an array", INT64_MAX, &size)) return false;
      if (size == 0 && (d->n || !may_be_none))
        return kl_ptx_wrong(ps, at, "expected the size of an array, at least 1, found 0");
    }
    if (!kl_ptx_need(ps, ']', "after the array's size")) return false;
    d->size[d->n++] = size;
  }
  return true;
}

static uint64_t natural_bytes(const head *h) {
  return (uint64_t)(kl_ptx_type_bits[h->v.type] / 8) * h->vector;
}

static bool set_size(kl_ptx_parser *ps, const kl_ptx_dims *d, uint64_t element, kl_ptx_var *v) {
  uint64_t bytes = element;
  for (uint32_t i = d->n; i-- > 0;) {
    uint64_t size = d->size[i] ? d->size[i] : 1;
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > INT64_MAX)
      return kl_ptx_wrong(ps, v->name, "expected a variable of fewer than 2^63 bytes, found more");
  }
  v->bytes = d->n && !d->size[0] ? 0 : bytes;
  return true;
}

// Name, dims, and what follows from the head.
static bool take_declarator(kl_ptx_parser *ps, const head *h, const char *what, kl_ptx_dims *d, kl_ptx_var *v) {
  *v = h->v;
  v->at = kl_ptx_here(ps);
  d->n = 0;
  if (!kl_ptx_name(ps, what, &v->name) || !take_dims(ps, h->v.external, d)) return false;
  if (!v->align) v->align = (uint32_t)natural_bytes(h);
  return set_size(ps, d, natural_bytes(h), v);
}

static bool check_head(kl_ptx_parser *ps, const head *h) {
  if (h->v.type == KL_PTX_pred) return kl_ptx_wrong(ps, h->type, "expected a type that memory can hold, found .pred");
  if (h->v.type >= KL_PTX_texref)
    return kl_ptx_refused(ps, h->type, "textures, samplers and surfaces are not supported (.%.*s)", KL_FMT(h->type));
  return true;
}

static bool no_vector(kl_ptx_parser *ps, const head *h) {
  return kl_ptx_wrong(ps, h->type, "expected a parameter of one element, or an array, found a vector");
}

static bool declare_variable(kl_ptx_parser *ps, kl_ptx_kind kind, kl_ptx_vars *list, const kl_ptx_var *v) {
  if (!kl_ptx_declare(ps, (kl_ptx_symbol){.name = v->name, .kind = kind, .index = (uint32_t)list->n})) return false;
  VEC_PUSH(ps->cx, list, *v);
  return true;
}

static bool is_same(const kl_ptx_var *a, const kl_ptx_var *b) {
  return a->space == b->space && a->type == b->type && (!a->bytes || !b->bytes || a->bytes == b->bytes);
}

// A variable of the module may be declared where it is not defined, as often as one likes.
static bool add_global(kl_ptx_parser *ps, const kl_ptx_var *v) {
  uint32_t number;
  const kl_ptx_symbol *s = kl_ptx_names_find(&ps->names, v->name, &number);
  kl_ptx_var *old = s && s->kind == KL_PTX_VAR ? &ps->vars.p[s->index] : NULL;
  if (!old || !(old->external || v->external)) return declare_variable(ps, KL_PTX_VAR, &ps->vars, v);
  if (!is_same(old, v))
    return kl_ptx_wrong(ps, v->name, "expected '%.*s' as it is declared in line %u, found another space, type or size",
                        KL_FMT(v->name), old->at.line);
  const kl_ptx_var *definition = v->external ? old : v;
  if (!definition->external && !definition->visible)
    return kl_ptx_wrong(ps, v->name, "expected '%.*s' to be .visible or .weak, as it is declared .extern too",
                        KL_FMT(v->name));
  bool forward = old->external || old->forward;
  if (!v->external || (old->external && !old->bytes)) *old = *v;
  old->forward = forward;
  return true;
}

static bool take_variable(kl_ptx_parser *ps, const head *h) {
  kl_ptx_dims d;
  kl_ptx_var v;
  if (!take_declarator(ps, h, "a variable's name", &d, &v)) return false;
  kl_str at = v.name;
  if (kl_ptx_at(ps, '=')) {
    if (v.space != KL_PTX_GLOBAL && v.space != KL_PTX_CONST)
      return kl_ptx_wrong(ps, at, "expected no initial value but in .global and .const, found one of '%.*s'",
                          KL_FMT(at));
    if (v.external) return kl_ptx_wrong(ps, at, "expected no initial value of what is .extern, found one");
    kl_ptx_lex_next(&ps->lx);
    if (!kl_ptx_initialiser(ps, &v, &d, h->vector)) return false;
  } else if (d.n && !d.size[0] && !v.external) {
    return kl_ptx_wrong(ps, at, "expected the size of the array '%.*s', found none", KL_FMT(at));
  }
  if (!ps->f) return add_global(ps, &v);
  kl_ptx_mark_here(ps, KL_PTX_MARK_VAR, ps->locals.n);
  return declare_variable(ps, KL_PTX_LOCALVAR, &ps->locals, &v);
}

static bool check_space(kl_ptx_parser *ps, const kl_ptx_var *v, kl_str word, kl_str linked) {
  if (!ps->f && v->space == KL_PTX_LOCAL)
    return kl_ptx_wrong(ps, word, "expected .local inside of a function, found it outside");
  if (kl_str_is(linked, "common") && v->space != KL_PTX_GLOBAL)
    return kl_ptx_wrong(ps, linked, "expected .common of a variable in .global, found .%.*s", KL_FMT(word));
  return true;
}

bool kl_ptx_variables(kl_ptx_parser *ps, kl_ptx_var linking, kl_str linked) {
  head h = {.v = linking};
  uint64_t bank = 0;
  kl_str word = ps->lx.word;
  kl_ptx_space_of(word, &h.v.space);
  kl_ptx_lex_next(&ps->lx);
  if (!check_space(ps, &h.v, word, linked)) return false;
  if (h.v.space == KL_PTX_CONST && kl_ptx_eat(ps, '[') &&
      !(kl_ptx_number(ps, "a bank of constants", 10, &bank) && kl_ptx_need(ps, ']', "after the bank")))
    return false;
  h.v.bank = (uint8_t)bank;
  if (!take_head(ps, &h) || !check_head(ps, &h)) return false;
  if (h.v.space == KL_PTX_PARAM && h.vector > 1) return no_vector(ps, &h);
  do {
    if (!take_variable(ps, &h)) return false;
  } while (kl_ptx_eat(ps, ','));
  return kl_ptx_need(ps, ';', "after the variable");
}

// --- registers ----------------------------------------------------------------------------------------------------

static bool add_register(kl_ptx_parser *ps, kl_str name, const head *h, bool run, uint64_t count) {
  kl_ptx_reg r = {.name = name, .numbered = run, .vector = h->vector, .type = h->v.type};
  uint64_t n = count * h->vector, first = ps->f->registers;
  if (first + n > UINT32_MAX / 2) return kl_ptx_wrong(ps, name, "expected fewer than 2^31 registers, found more");
  r.first = (uint32_t)first;
  r.count = (uint32_t)n;
  kl_ptx_symbol s = {.name = name, .kind = KL_PTX_REG, .run = run, .vector = h->vector, .index = r.first};
  s.count = (uint32_t)count;
  s.type = r.type;
  if (!kl_ptx_declare(ps, s)) return false;
  ps->f->registers += r.count;
  VEC_PUSH(ps->cx, &ps->regs, r);
  return true;
}

static bool take_register(kl_ptx_parser *ps, const head *h) {
  kl_str name;
  uint64_t count = 1;
  if (!kl_ptx_name(ps, "a register's name", &name)) return false;
  bool run = kl_ptx_eat(ps, '<');
  if (run) {
    // An expression would take the closing bracket for a comparison.
    if (ps->lx.kind != KL_PTX_TOK_INT) return kl_ptx_expected(ps, "a number of registers");
    count = ps->lx.bits;
    if (count > INT32_MAX) return kl_ptx_expected(ps, "a number of registers below 2^31");
    kl_ptx_lex_next(&ps->lx);
    if (!kl_ptx_need(ps, '>', "after the number of registers")) return false;
  }
  if (kl_ptx_at(ps, '[')) return kl_ptx_expected(ps, "registers without an array's size");
  kl_ptx_mark_here(ps, KL_PTX_MARK_REG, ps->regs.n);
  return add_register(ps, name, h, run, count);
}

bool kl_ptx_registers(kl_ptx_parser *ps) {
  head h = {0};
  kl_ptx_lex_next(&ps->lx);
  if (!take_head(ps, &h)) return false;
  if (h.v.type >= KL_PTX_texref)
    return kl_ptx_wrong(ps, h.type, "expected a type of registers, found .%.*s", KL_FMT(h.type));
  if (h.v.type == KL_PTX_pred && h.vector > 1)
    return kl_ptx_wrong(ps, h.type, "expected a type of vectors, found .pred");
  do {
    if (!take_register(ps, &h)) return false;
  } while (kl_ptx_eat(ps, ','));
  return kl_ptx_need(ps, ';', "after the registers");
}

// --- parameters ---------------------------------------------------------------------------------------------------

static bool take_param(kl_ptx_parser *ps, kl_ptx_vars *out) {
  head h = {.v.space = KL_PTX_PARAM};
  kl_ptx_dims d;
  kl_ptx_var v;
  bool reg = kl_ptx_at_dot(ps, "reg");
  if (!reg && !kl_ptx_at_dot(ps, "param")) return kl_ptx_expected(ps, "a parameter in .param or .reg");
  kl_ptx_lex_next(&ps->lx);
  if (!take_head(ps, &h) || (!reg && !check_head(ps, &h))) return false;
  if (h.vector > 1) return no_vector(ps, &h);
  if (!take_declarator(ps, &h, "a parameter's name", &d, &v)) return false;
  if (reg && (d.n || h.v.type >= KL_PTX_texref))
    return kl_ptx_wrong(ps, v.name, "expected a type of registers, found an array or a texture");
  v.reg = reg;
  VEC_PUSH(ps->cx, out, v);
  return true;
}

bool kl_ptx_params(kl_ptx_parser *ps, kl_ptx_vars *out) {
  size_t begin = out->n;
  if (!kl_ptx_need(ps, '(', "before the parameters")) return false;
  if (kl_ptx_eat(ps, ')')) return true;
  do {
    if (!take_param(ps, out)) return false;
  } while (kl_ptx_eat(ps, ','));
  for (size_t i = begin; i + 1 < out->n; i++)
    if (!out->p[i].bytes && !out->p[i].reg)
      return kl_ptx_wrong(ps, out->p[i].name, "expected an array without a size as the last parameter only");
  return kl_ptx_need(ps, ')', "after the parameters");
}

bool kl_ptx_declare_params(kl_ptx_parser *ps) {
  for (uint32_t i = 0; i < ps->locals.n; i++) {
    kl_ptx_var *v = &ps->locals.p[i];
    head h = {.v.type = v->type, .vector = 1};
    if (v->reg) {
      v->reg = ps->f->registers + 1;
      if (!add_register(ps, v->name, &h, false, 1)) return false;
    } else if (!kl_str_is(v->name, "_") &&
               !kl_ptx_declare(ps, (kl_ptx_symbol){.name = v->name, .kind = KL_PTX_LOCALVAR, .index = i})) {
      return false;
    }
  }
  return true;
}
