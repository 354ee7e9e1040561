// Literals: the text between the parentheses of constant(...).
//
// Arrays nest one pair of braces per dimension; tuples are in parentheses. An array without elements may also be
// written
// {}. Where `...` leaves values out the literal is kept as text: the module has a constant without values then.
#include "ir/text/parse.h"

typedef struct literal {
  kl_parser *ps;
  const kl_shape *shape;
  kl_array *array;
  size_t pos; // where reading goes on
  uint32_t depth;
  int64_t at[KILN_MAX_RANK]; // elements taken at each open level
  int64_t n;                 // scalars taken
  bool elided;               // came upon `...`
} literal;

static bool fail_at(literal *l, size_t begin, size_t end, const char *fmt, ...) KL_PRINTF(4, 5);
static bool fail_at(literal *l, size_t begin, size_t end, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  kl_vfail(l->ps->cx, KILN_E_INVALID, (kl_span){l->ps->lx.src, begin, end}, fmt, ap);
  va_end(ap);
  return false;
}

static bool ends_scalar(kl_str t, size_t pos) {
  char c = t.p[pos];
  return kl_is_space(c) || c == ',' || c == '{' || c == '}' || c == '(' || c == ')' ||
         (c == '/' && pos + 1 < t.n && (t.p[pos + 1] == '/' || t.p[pos + 1] == '*'));
}

// Behind the group that begins at `pos`, on the same line; or 0.
static size_t group_end(kl_str t, size_t pos) {
  int depth = 0;
  for (; pos < t.n && t.p[pos] != '\n'; pos++) {
    depth += t.p[pos] == '(' ? 1 : t.p[pos] == ')' ? -1 : 0;
    if (depth == 0) return pos + 1;
  }
  return 0;
}

// Behind the scalar that begins at `pos`: a word, a word with a NaN's payload behind it, or a complex pair.
static size_t scalar_end(kl_str t, size_t pos) {
  size_t end = pos;
  while (end < t.n && !ends_scalar(t, end)) end++;
  bool group = end < t.n && t.p[end] == '(' && (end == pos || (end - pos >= 3 && memcmp(t.p + end - 3, "nan", 3) == 0));
  size_t behind = group ? group_end(t, end) : 0;
  return behind ? behind : end;
}

static bool take_scalar(literal *l, kl_str t) {
  size_t begin = l->pos, end = scalar_end(t, begin);
  kl_dtype dtype = l->shape->dtype;
  const char *type = kl_info(dtype)->name, *why = NULL;
  kl_str word = {t.p + begin, end - begin};
  uint64_t bits[2] = {0, 0};
  if (end == begin)
    return fail_at(l, begin, begin + 1, "constant: expected a value of type %s, found '%c'", type, t.p[begin]);
  if (!kl_scalar_parse(word, dtype, bits, &why))
    return fail_at(l, begin, end, "constant: expected a value of type %s, found '%.*s'%s%s", type,
                   (int)(word.n < 60 ? word.n : 60), word.p, why ? ": " : "", why ? why : "");
  kl_element_set(dtype, l->array->data, l->n, 0, bits[0]);
  if (kl_is_complex(dtype)) kl_element_set(dtype, l->array->data, l->n, 1, bits[1]);
  l->n++;
  l->pos = end;
  return true;
}

static bool open_level(literal *l) {
  if (l->depth == l->shape->rank)
    return fail_at(l, l->pos, l->pos + 1, "constant: expected a value of type %s, found '{' beyond the %u levels of %s",
                   kl_info(l->shape->dtype)->name, l->shape->rank, kl_shape_text(l->ps->arena, l->shape));
  l->at[l->depth++] = 0;
  l->pos++;
  return true;
}

static bool close_level(literal *l) {
  uint32_t d = l->depth - 1;
  bool empty = d == 0 && l->at[0] == 0 && l->shape->count == 0;
  if (l->at[d] != l->shape->dims[d] && !empty)
    return fail_at(l, l->pos, l->pos + 1, "constant: expected %lld elements in dimension %u of %s, found %lld",
                   (long long)l->shape->dims[d], d, kl_shape_text(l->ps->arena, l->shape), (long long)l->at[d]);
  l->depth--;
  l->pos++;
  return true;
}

// Counts an element and takes the comma behind it. *more tells whether one was there.
static bool finish_element(literal *l, kl_str t, bool *more) {
  l->at[l->depth - 1]++;
  l->pos = kl_lex_skip(&l->ps->lx, l->pos);
  *more = l->pos < t.n && t.p[l->pos] == ',';
  if (*more) l->pos++;
  if (*more || l->pos == t.n || t.p[l->pos] == '}') return true;
  return fail_at(l, l->pos, l->pos + 1, "constant: expected ',' or '}' after an element, found '%c'", t.p[l->pos]);
}

static bool at_dots(kl_str t, size_t pos) {
  return t.n - pos >= 3 && memcmp(t.p + pos, "...", 3) == 0;
}

static bool has_room(literal *l) {
  uint32_t d = l->depth - 1;
  if (l->at[d] < l->shape->dims[d]) return true;
  return fail_at(l, l->pos, l->pos + 1, "constant: expected %lld elements in dimension %u of %s, found more",
                 (long long)l->shape->dims[d], d, kl_shape_text(l->ps->arena, l->shape));
}

// Opens or closes braces or takes a scalar. *comma: a comma was the last thing taken at this level.
static bool take_piece(literal *l, kl_str t, bool *comma) {
  l->pos = kl_lex_skip(&l->ps->lx, l->pos);
  if (l->pos >= t.n) return fail_at(l, t.n, t.n, "constant: expected a value or '}', found the end of the text");
  char c = t.p[l->pos];
  if (c == '}' && !*comma) return close_level(l) && (l->depth == 0 || finish_element(l, t, comma));
  if (c == '}') return fail_at(l, l->pos, l->pos + 1, "constant: expected an element after ',', found '}'");
  if (l->depth && !has_room(l)) return false;
  if (c == '{') {
    *comma = false;
    return open_level(l);
  }
  l->elided = l->depth && at_dots(t, l->pos);
  if (l->elided) return false;
  if (l->depth < l->shape->rank)
    return fail_at(l, l->pos, l->pos + 1, "constant: expected '{' at level %u of %s, found '%c'", l->depth + 1,
                   kl_shape_text(l->ps->arena, l->shape), c);
  return take_scalar(l, t) && finish_element(l, t, comma);
}

static bool take_array(literal *l, kl_str t) {
  bool comma = false;
  do {
    if (!take_piece(l, t, &comma)) return false;
  } while (l->depth);
  return true;
}

// One element needs no braces.
static bool is_single(const literal *l, kl_str t) {
  return l->shape->count == 1 && !l->shape->dynamic && t.p[l->pos] != '{';
}

static bool opens(literal *l, kl_str t) {
  if (t.p[l->pos] == '{' || l->shape->count == 1) return true;
  size_t end = scalar_end(t, l->pos);
  uint64_t bits[2];
  const char *why, *type = kl_shape_text(l->ps->arena, l->shape);
  kl_str word = {t.p + l->pos, end - l->pos};
  if (word.n > 40 || !kl_scalar_parse(word, l->shape->dtype, bits, &why))
    return fail_at(l, l->pos, l->pos + 1, "constant: expected '{' at level 1 of %s, found '%c'", type, t.p[l->pos]);
  return fail_at(l, l->pos, end,
                 "constant: expected '{' at level 1 of %s, found '%.*s'; one value for all elements is written "
                 "%s broadcast(%s[] constant(%.*s)), dimensions={}",
                 type, KL_FMT(word), type, kl_info(l->shape->dtype)->name, KL_FMT(word));
}

// Every element takes a character at least: no short text makes a large array.
static bool reserve(literal *l, kl_str t) {
  kl_parser *ps = l->ps;
  for (uint32_t d = 0; d < l->shape->rank; d++)
    if (l->shape->dims[d] < 0)
      return fail_at(l, l->pos, l->pos + 1, "constant: expected a type of known size, found %s",
                     kl_shape_text(ps->arena, l->shape));
  if ((uint64_t)l->shape->count > t.n - l->pos)
    return fail_at(l, l->pos, l->pos + 1, "constant: expected %lld values for %s, found a text too short for them",
                   (long long)l->shape->count, kl_shape_text(ps->arena, l->shape));
  size_t size = (size_t)l->shape->count * kl_info(l->shape->dtype)->bytes;
  *l->array = (kl_array){l->shape, kl_arena_try_alloc(ps->arena, size)};
  if (l->array->data) return true;
  kl_out_of_memory(ps->cx, size, "a constant");
  ps->no_memory = true;
  return false;
}

// Is the text a `{...}`?
static bool is_elided(const literal *l, kl_str t) {
  size_t pos = l->pos < t.n && t.p[l->pos] == '{' ? kl_lex_skip(&l->ps->lx, l->pos + 1) : t.n;
  return at_dots(t, pos);
}

static bool take_leaf(literal *l, kl_str t) {
  if (l->pos >= t.n) return fail_at(l, t.n, t.n, "constant: expected a value, found the end of the text");
  if (!kl_shape_is_array(l->shape))
    return fail_at(l, l->pos, l->pos + 1, "constant: expected an array, found the type %s",
                   kl_shape_text(l->ps->arena, l->shape));
  l->elided = l->shape->rank && is_elided(l, t);
  if (l->elided || (l->shape->rank && !opens(l, t)) || !reserve(l, t)) return false;
  l->n = 0;
  return l->shape->rank && !is_single(l, t) ? take_array(l, t) : take_scalar(l, t);
}

// Punctuation of a tuple.
static bool take_mark(literal *l, kl_str t, char mark, const char *context) {
  l->pos = kl_lex_skip(&l->ps->lx, l->pos);
  if (l->pos >= t.n)
    return fail_at(l, t.n, t.n, "constant: expected '%c' %s, found the end of the text", mark, context);
  if (t.p[l->pos++] == mark) return true;
  return fail_at(l, l->pos - 1, l->pos, "constant: expected '%c' %s, found '%c'", mark, context, t.p[l->pos - 1]);
}

static bool take_literal(literal *l, kl_str t, const kl_shape *shape);

// (1, {2, 3}, ())
static bool take_tuple(literal *l, kl_str t, const kl_shape *shape) {
  if (!take_mark(l, t, '(', "before a tuple's values")) return false;
  for (uint32_t i = 0; i < shape->nelems; i++)
    if ((i && !take_mark(l, t, ',', "between a tuple's values")) || !take_literal(l, t, shape->elems[i])) return false;
  return take_mark(l, t, ')', "after a tuple's values");
}

static bool take_literal(literal *l, kl_str t, const kl_shape *shape) {
  l->pos = kl_lex_skip(&l->ps->lx, l->pos);
  if (shape->dtype == KILN_TUPLE) {
    l->elided = is_elided(l, t);
    return !l->elided && take_tuple(l, t, shape);
  }
  l->shape = shape;
  bool ok = take_leaf(l, t);
  l->array++;
  return ok;
}

// Every leaf but those of no elements takes a character at least, and those take two.
static bool reserve_leaves(literal *l, kl_str t, const kl_shape *shape) {
  kl_parser *ps = l->ps;
  size_t n = kl_shape_leaf_count(shape);
  if (n > t.n - l->pos && !is_elided(l, t))
    return fail_at(l, l->pos, l->pos, "constant: expected %zu arrays, found a text too short for them", n);
  l->array = n > t.n - l->pos ? NULL : KL_NEW_N(ps->arena, kl_array, n);
  return true;
}

bool kl_parse_literal(kl_parser *ps, kl_draft_instr *d) {
  kl_lexer *lx = &ps->lx;
  literal l = {.ps = ps, .pos = lx->begin};
  if (!reserve_leaves(&l, lx->src->text, d->in.shape)) return false;
  const kl_array *leaves = l.array;
  if (take_literal(&l, lx->src->text, d->in.shape)) {
    d->in.literal = leaves;
    lx->last_end = l.pos;
    kl_lex_seek(lx, l.pos);
    return true;
  }
  return l.elided && kl_lex_raw(lx, ps->arena, KL_RAW_GROUP, &d->in.raw_operands);
}
