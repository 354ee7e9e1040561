// The map of an encoding:
//
//   map   := ('[' names? ']')? ('{' names? '}')? '(' (dim (',' dim)*)? ')' '->' '(' (level (',' level)*)? ')'
//   dim   := NAME ('=' expr)? (':' '#sparse_tensor<slice(' v ',' v ',' v ')>')?        v := INTEGER | '?'
//   level := (NAME '=')? expr ':' format ('[' INTEGER ',' INTEGER ']')? ('(' (property (',' property)*)? ')')?
//   expr  := term (('+' | '-') term)*
//   term  := factor (('*' | 'floordiv' | 'ceildiv' | 'mod') factor)*
//   factor := INTEGER | NAME | '-' factor | '(' expr ')'
//
// Names that are operators are variables where an operand is expected.
#include "ir/sparse/text/reader.h"

// --- variables ----------------------------------------------------------------------------------------------------

static bool find(const reader *r, variable_kind kind, kl_str name, uint32_t *out) {
  for (size_t i = 0; i < r->vars.of[kind].n; i++)
    if (kl_str_eq(r->vars.of[kind].p[i], name)) {
      *out = (uint32_t)i;
      return true;
    }
  return false;
}

static bool declare(reader *r, variable_kind kind) {
  static const char *const what[] = {"a dimension's name", "a symbol's name", "a level's name"};
  kl_str name = sp_text(r);
  uint32_t at;
  if (r->kind != T_WORD) return sp_expected(r, KL_RULE_IDENT, what[kind]);
  for (int k = 0; k < 3; k++)
    if (find(r, (variable_kind)k, name, &at))
      return sp_broken(r, sp_here(r), KL_RULE_REDEF, "expected a new name, found '%.*s', which is declared before",
                       KL_FMT(name));
  if (r->vars.of[kind].n == KL_MOST_LEVELS)
    return sp_broken(r, sp_here(r), KL_RULE_LARGE, "expected at most %d variables of a kind, found more",
                     KL_MOST_LEVELS);
  VEC_PUSH(r->cx, &r->vars.of[kind], name);
  sp_next(r);
  return true;
}

// Names between brackets, if the opening one is there.
static bool read_names(reader *r, char open, char close, variable_kind kind) {
  if (!sp_eat(r, open)) return true;
  if (sp_eat(r, close)) return true;
  do {
    if (!declare(r, kind)) return false;
  } while (sp_eat(r, ','));
  return sp_need(r, close, KL_RULE_LIST, kind == V_SYMBOL ? "',' or ']' after a symbol" : "',' or '}' after a level");
}

// --- expressions --------------------------------------------------------------------------------------------------

// `scope`: V_DIM or V_LEVEL, whose variables may be used beside symbols.
static const kl_tree *read_expr(reader *r, variable_kind scope);

static const kl_tree *made(reader *r, const kl_tree *e, size_t begin) {
  if (!e && r->status == KILN_OK)
    sp_broken(r, sp_since(r, begin), KL_RULE_LARGE, "expressions nest at most %d deep", KL_TREE_DEEPEST);
  return e;
}

static const kl_tree *read_integer(reader *r) {
  kl_str s = sp_text(r);
  uint64_t v = 0;
  bool hex = s.n > 1 && (s.p[1] | 0x20) == 'x', fits = true;
  for (size_t i = hex ? 2 : 0; i < s.n; i++) {
    unsigned d = (unsigned)(s.p[i] <= '9' ? s.p[i] - '0' : (s.p[i] | 0x20) - 'a' + 10);
    fits = fits && !__builtin_mul_overflow(v, hex ? 16 : 10, &v) && !__builtin_add_overflow(v, d, &v);
  }
  if (!fits || v > INT64_MAX) {
    sp_broken(r, sp_here(r), KL_RULE_AFFINE, "expected an integer of 64 bits, found '%.*s'", KL_FMT(s));
    return NULL;
  }
  sp_next(r);
  return kl_tree_leaf(&r->e->trees, KL_TREE_CONST, (int64_t)v);
}

static const kl_tree *read_variable(reader *r, variable_kind scope) {
  uint32_t at;
  kl_str name = sp_text(r);
  if (find(r, scope, name, &at)) {
    sp_next(r);
    return kl_tree_leaf(&r->e->trees, KL_TREE_DIM, at);
  }
  if (find(r, V_SYMBOL, name, &at)) {
    sp_next(r);
    return kl_tree_leaf(&r->e->trees, KL_TREE_SYMBOL, at);
  }
  sp_broken(r, sp_here(r), KL_RULE_UNDEF, "expected one of the %s or symbols, found '%.*s'",
            scope == V_DIM ? "dimensions" : "levels", KL_FMT(name));
  return NULL;
}

static const kl_tree *read_factor(reader *r, variable_kind scope) {
  const kl_tree *e = NULL;
  size_t begin = r->scan.begin;
  if (r->depth++ >= KL_TREE_DEEPEST) {
    made(r, NULL, begin);
  } else if (r->kind == T_INTEGER) {
    e = read_integer(r);
  } else if (r->kind == T_WORD) {
    e = read_variable(r, scope);
  } else if (sp_eat(r, '-')) {
    const kl_tree *minus = kl_tree_leaf(&r->e->trees, KL_TREE_CONST, -1);
    e = read_factor(r, scope);
    if (e) e = made(r, kl_tree_binary(&r->e->trees, KL_TREE_MUL, minus, e), begin);
  } else if (sp_eat(r, '(')) {
    e = read_expr(r, scope);
    if (e && !sp_need(r, ')', KL_RULE_AFFINE, "')' or an operator")) e = NULL;
  } else {
    sp_expected(r, KL_RULE_AFFINE, "an expression");
  }
  r->depth--;
  return e;
}

static bool read_operator(reader *r, kl_tree_kind *out) {
  if (sp_eat(r, '*')) {
    *out = KL_TREE_MUL;
    return true;
  }
  if (sp_is_word(r, "floordiv"))
    *out = KL_TREE_FLOOR;
  else if (sp_is_word(r, "ceildiv"))
    *out = KL_TREE_CEIL;
  else if (sp_is_word(r, "mod"))
    *out = KL_TREE_MOD;
  else
    return false;
  sp_next(r);
  return true;
}

static bool is_affine(reader *r, kl_tree_kind op, const kl_tree *a, const kl_tree *b, size_t begin) {
  if (op == KL_TREE_MUL && !a->symbolic && !b->symbolic)
    return sp_broken(r, sp_since(r, begin), KL_RULE_AFFINE,
                     "expected a product by a constant or symbol, found one of two variables");
  if (op != KL_TREE_MUL && !b->symbolic)
    return sp_broken(r, sp_since(r, begin), KL_RULE_AFFINE,
                     "expected a constant or symbol as divisor, found one that has variables");
  return true;
}

static const kl_tree *read_term(reader *r, variable_kind scope) {
  size_t begin = r->scan.begin;
  kl_tree_kind op;
  const kl_tree *e = read_factor(r, scope);
  while (e && read_operator(r, &op)) {
    const kl_tree *b = read_factor(r, scope);
    if (!b || !is_affine(r, op, e, b, begin)) return NULL;
    e = made(r, kl_tree_binary(&r->e->trees, op, e, b), begin);
  }
  return e;
}

static const kl_tree *read_expr(reader *r, variable_kind scope) {
  size_t begin = r->scan.begin;
  const kl_tree *e = read_term(r, scope);
  while (e && (sp_is(r, '+') || sp_is(r, '-'))) {
    bool minus = sp_is(r, '-');
    sp_next(r);
    const kl_tree *b = read_term(r, scope);
    if (b && minus)
      b = made(r, kl_tree_binary(&r->e->trees, KL_TREE_MUL, b, kl_tree_leaf(&r->e->trees, KL_TREE_CONST, -1)), begin);
    e = b ? made(r, kl_tree_binary(&r->e->trees, KL_TREE_ADD, e, b), begin) : NULL;
  }
  return e;
}

// --- dimensions ---------------------------------------------------------------------------------------------------

static bool read_slice_number(reader *r, int64_t *out) {
  kl_str s = sp_text(r);
  if (sp_eat(r, '?')) {
    *out = KL_SLICE_DYNAMIC;
    return true;
  }
  if (r->kind != T_INTEGER) return sp_expected(r, KL_RULE_SLICENEG, "a number from 0 on, or '?'");
  if (!kl_i64_from_text(s, out))
    return sp_broken(r, sp_here(r), KL_RULE_SLICENEG, "expected a decimal number of 64 bits, found '%.*s'", KL_FMT(s));
  sp_next(r);
  return true;
}

// Behind the colon.
static bool read_slice(reader *r, kl_slice *s) {
  size_t begin = r->scan.begin;
  if (r->kind != T_HASH || !kl_str_is(sp_text(r), "#sparse_tensor"))
    return sp_expected(r, KL_RULE_SLICEATTR, "a slice, #sparse_tensor<slice(OFFSET, SIZE, STRIDE)>");
  sp_next(r);
  if (!sp_need(r, '<', KL_RULE_SLICEATTR, "'<slice('")) return false;
  if (!sp_is_word(r, "slice")) return sp_expected(r, KL_RULE_SLICEATTR, "slice(OFFSET, SIZE, STRIDE)");
  sp_next(r);
  bool ok = sp_need(r, '(', KL_RULE_LIST, "'(' and offset, size and stride") && read_slice_number(r, &s->offset) &&
            sp_need(r, ',', KL_RULE_LIST, "',' and the size") && read_slice_number(r, &s->size) &&
            sp_need(r, ',', KL_RULE_LIST, "',' and the stride") && read_slice_number(r, &s->stride) &&
            sp_need(r, ')', KL_RULE_LIST, "')'") && sp_need(r, '>', KL_RULE_LIST, "'>'");
  s->given = true;
  if (ok && s->size == 0) return sp_broken(r, sp_since(r, begin), KL_RULE_SLICESZ, "expected a size, found 0");
  if (ok && s->stride == 0) return sp_broken(r, sp_since(r, begin), KL_RULE_SLICEST, "expected a stride, found 0");
  return ok;
}

static bool read_dim(reader *r) {
  const kl_tree *e = NULL;
  kl_slice s = {false, 0, KL_SLICE_DYNAMIC, 1};
  if (!declare(r, V_DIM)) return false;
  if (sp_eat(r, '=') && !(e = read_expr(r, V_LEVEL))) return false;
  if (sp_eat(r, ':') && !read_slice(r, &s)) return false;
  VEC_PUSH(r->cx, &r->inverse, e);
  VEC_PUSH(r->cx, &r->slices, s);
  return true;
}

// --- levels -------------------------------------------------------------------------------------------------------

static bool read_size(reader *r, int64_t *out) {
  bool minus = sp_eat(r, '-');
  if (r->kind != T_INTEGER) return sp_expected(r, KL_RULE_NM2, "a size");
  if (minus)
    return sp_broken(r, sp_here(r), KL_RULE_NMNEG, "expected a size from 0 on, found -%.*s", KL_FMT(sp_text(r)));
  if (!kl_i64_from_text(sp_text(r), out))
    return sp_broken(r, sp_here(r), KL_RULE_NMNEG, "expected a decimal size of 64 bits, found '%.*s'",
                     KL_FMT(sp_text(r)));
  sp_next(r);
  return true;
}

enum { MOST_OF_GROUP = 1 << 16 };

static bool read_sizes(reader *r, kl_level *l) {
  size_t begin = r->scan.begin;
  if (!sp_need(r, '[', KL_RULE_NM2, "'[' and the sizes n and m of structured") || !read_size(r, &l->n) ||
      !sp_need(r, ',', KL_RULE_NM2, "',' and the size m of structured") || !read_size(r, &l->m) ||
      !sp_need(r, ']', KL_RULE_NM2, "']' after two sizes"))
    return false;
  kl_span where = sp_since(r, begin);
  if (l->n > l->m)
    return sp_broken(r, where, KL_RULE_NMORD, "expected n <= m, found n = %lld and m = %lld", (long long)l->n,
                     (long long)l->m);
  if (!r->e->strict && (l->m > MOST_OF_GROUP || l->m == 0))
    return sp_broken(r, where, KL_RULE_NMMAX, "expected groups of 1 to %d elements, found %lld", MOST_OF_GROUP,
                     (long long)l->m);
  if (r->e->strict) { // it keeps bytes
    l->n &= 255;
    l->m &= 255;
  }
  return true;
}

static bool read_property(reader *r, kl_level *l) {
  unsigned bit = 0;
  kl_str word = sp_text(r);
  bool relaxed = !r->e->strict && l->format == KILN_LEVEL_COMPRESSED;
  if (r->kind != T_WORD) return sp_expected(r, KL_RULE_PROP, "a property: nonunique, nonordered or soa");
  if (relaxed && kl_str_is(word, "high")) {
    l->format = KILN_LEVEL_LOOSE_COMPRESSED;
  } else if (relaxed && kl_str_is(word, "block2_4")) {
    l->format = KILN_LEVEL_STRUCTURED;
    l->n = 2, l->m = 4;
  } else if (!sp_property(word, &bit)) {
    return sp_expected(r, KL_RULE_PROP, "a property: nonunique, nonordered or soa");
  }
  l->properties |= bit;
  if (l->properties & ~sp_format_allows(l->format))
    return sp_broken(r, sp_here(r), KL_RULE_PROPFMT, "expected a property that %s levels can have, found '%.*s'",
                     sp_format_name(l->format), KL_FMT(word));
  sp_next(r);
  return true;
}

static bool read_level_type(reader *r, kl_level *l) {
  static const char formats[] = "a level's format: dense, batch, compressed, loose_compressed, singleton or structured";
  const level_word *w = r->kind == T_WORD ? sp_level_word(sp_text(r), r->e->strict) : NULL;
  if (!w) return sp_expected(r, KL_RULE_FMT, formats);
  l->format = w->format;
  l->properties = w->properties;
  l->n = w->n;
  l->m = w->m;
  sp_next(r);
  if (l->format == KILN_LEVEL_STRUCTURED && !l->m && !read_sizes(r, l)) return false;
  if (!sp_eat(r, '(')) return true;
  if (sp_eat(r, ')')) return true;
  do {
    if (!read_property(r, l)) return false;
  } while (sp_eat(r, ','));
  return sp_need(r, ')', KL_RULE_LIST, "',' or ')' after a property");
}

// "NAME =" before a level's expression, where levels are declared.
static bool read_binding(reader *r) {
  uint32_t at;
  size_t number = r->nlast;
  kl_str name = sp_text(r);
  kl_span where = sp_here(r);
  if (r->kind != T_WORD) return sp_expected(r, KL_RULE_LVLBIND, "a level's name and '='");
  if (!find(r, V_LEVEL, name, &at))
    return sp_broken(r, where, KL_RULE_UNDEF, "expected one of the levels that are declared, found '%.*s'",
                     KL_FMT(name));
  if (at != number)
    return sp_broken(r, where, KL_RULE_LVLORDER, "expected '%.*s', which is declared as level %zu, found '%.*s'",
                     KL_FMT(r->vars.of[V_LEVEL].p[number < r->vars.of[V_LEVEL].n ? number : at]), number, KL_FMT(name));
  sp_next(r);
  return sp_need(r, '=', KL_RULE_LVLBIND, "'=' and the level's expression");
}

static bool read_level(reader *r) {
  kl_level l = {0};
  size_t begin = r->scan.begin;
  if (r->vars.of[V_LEVEL].n && !read_binding(r)) return false;
  l.value = read_expr(r, V_DIM);
  if (!l.value || !sp_need(r, ':', KL_RULE_COLON, "':' and the level's type") || !read_level_type(r, &l)) return false;
  if (r->levels.n == KL_MOST_LEVELS)
    return sp_broken(r, sp_since(r, begin), KL_RULE_LARGE, "expected at most %d levels, found more", KL_MOST_LEVELS);
  VEC_PUSH(r->cx, &r->levels, l);
  VEC_PUSH(r->cx, &r->level_spans, sp_since(r, begin));
  r->nlast++;
  return true;
}

// --- the map ------------------------------------------------------------------------------------------------------

static bool read_list(reader *r, bool (*read)(reader *r), const char *open, const char *close) {
  if (!sp_need(r, '(', KL_RULE_LIST, open)) return false;
  if (sp_eat(r, ')')) return true;
  do {
    if (!read(r)) return false;
  } while (sp_eat(r, ','));
  return sp_need(r, ')', KL_RULE_LIST, close);
}

bool sp_read_map(reader *r) {
  size_t begin = r->scan.begin;
  for (int k = 0; k < 3; k++) r->vars.of[k].n = 0;
  r->inverse.n = 0;
  r->nlast = 0;
  r->has_map = true;
  if (!read_names(r, '[', ']', V_SYMBOL) || !read_names(r, '{', '}', V_LEVEL) ||
      !read_list(r, read_dim, "'(' and the dimensions", "',' or ')' after a dimension"))
    return false;
  if (r->kind != T_ARROW) return sp_expected(r, KL_RULE_ARROW, "'->' and the levels");
  sp_next(r);
  if (!read_list(r, read_level, "'(' and the levels", "',' or ')' after a level")) return false;
  r->map_span = sp_since(r, begin);
  size_t declared = r->vars.of[V_LEVEL].n;
  if (declared && declared != r->nlast)
    return sp_broken(r, r->map_span, KL_RULE_LVLCOUNT, "expected as many levels as are declared, %zu, found %u",
                     declared, r->nlast);
  return true;
}
