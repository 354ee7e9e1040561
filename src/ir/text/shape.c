// Shapes in HLO text: b(f32[2]), f32[2,<=3,?]{2,1,0:T(8,128)S(1)}, (f32[], (s32[4])), token[].
#include "ir/sparse/text/text.h"
#include "ir/text/parse.h"
#include "ir/index/layout/layout.h"
#include "ir/shape.h"

static bool is_before(const kl_parser *ps, char mark) {
  kl_str t = ps->lx.src->text;
  size_t pos = kl_lex_skip(&ps->lx, ps->lx.pos);
  return pos < t.n && t.p[pos] == mark;
}

static bool at_buffer(const kl_parser *ps) {
  return kl_lex_is_name(&ps->lx, "b") && is_before(ps, '(');
}

bool kl_parse_at_shape(const kl_parser *ps) {
  return ps->lx.punct == '(' || (ps->lx.kind == KL_TOK_NAME && is_before(ps, '[')) || at_buffer(ps);
}

// --- dimensions ---------------------------------------------------------------------------------------------------

typedef struct dim_list {
  uint32_t n;
  int64_t v[KILN_MAX_RANK];
  bool dynamic[KILN_MAX_RANK], any_dynamic;
} dim_list;

static bool parse_dim(kl_parser *ps, dim_list *d) {
  kl_lexer *lx = &ps->lx;
  if (d->n == KILN_MAX_RANK) return kl_lex_expected(lx, "at most %d dimensions", KILN_MAX_RANK);
  bool unknown = lx->punct == '?';
  d->dynamic[d->n] = unknown || lx->kind == KL_TOK_AT_MOST;
  d->any_dynamic |= d->dynamic[d->n];
  if (d->dynamic[d->n]) kl_lex_next(lx);
  if (unknown) {
    d->v[d->n++] = KL_DIM_UNKNOWN;
    return true;
  }
  size_t begin = lx->begin;
  if (!kl_lex_int(lx, "a dimension's size", &d->v[d->n])) return false;
  if (d->v[d->n] < 0) {
    kl_invalid(ps->cx, kl_lex_span_from(lx, begin), "expected a dimension's size of at least 0, found %lld",
               (long long)d->v[d->n]);
    return false;
  }
  d->n++;
  return true;
}

static bool parse_dims(kl_parser *ps, dim_list *d) {
  if (!kl_lex_need(&ps->lx, '[', "before the dimensions")) return false;
  if (kl_lex_eat(&ps->lx, ']')) return true;
  do {
    if (!parse_dim(ps, d)) return false;
  } while (kl_lex_eat(&ps->lx, ','));
  return kl_lex_need(&ps->lx, ']', "after the dimensions");
}

// --- layout -------------------------------------------------------------------------------------------------------

// A brace behind a shape begins a layout only if a layout's text follows: else it is a computation's body.
static bool at_layout(const kl_parser *ps) {
  if (ps->lx.punct != '{') return false;
  kl_str t = ps->lx.src->text;
  size_t pos = kl_lex_skip(&ps->lx, ps->lx.pos);
  return pos < t.n && (kl_is_digit(t.p[pos]) || t.p[pos] == ':' || t.p[pos] == '}' || t.p[pos] == '-');
}

static bool parse_minor_to_major(kl_parser *ps, uint32_t rank, int64_t order[KILN_MAX_RANK], uint32_t *n) {
  kl_lexer *lx = &ps->lx;
  uint64_t seen = 0;
  if (lx->kind != KL_TOK_NUMBER) return true;
  do {
    size_t begin = lx->begin;
    int64_t v;
    if (!kl_lex_int(lx, "a dimension's number", &v)) return false;
    if (v < 0 || v >= rank || (seen >> v & 1)) {
      kl_invalid(ps->cx, kl_lex_span_from(lx, begin),
                 "layout: expected each dimension from 0 to %d once, minor to major, found %lld%s", (int)rank - 1,
                 (long long)v, v >= 0 && v < rank ? " again" : "");
      return false;
    }
    seen |= 1ull << v;
    order[(*n)++] = v;
  } while (kl_lex_eat(lx, ','));
  return true;
}

// A size, or '*' with a size behind it.
static bool parse_tile_size(kl_parser *ps, int64_t *v) {
  kl_lexer *lx = &ps->lx;
  size_t begin = lx->begin;
  *v = KL_TILE_COMBINE;
  if (kl_lex_eat(lx, '*'))
    return lx->punct == ',' ||
           kl_lex_expected(lx, "',' and a size: '*' combines a dimension with the next more minor one");
  if (!kl_lex_int(lx, "a tile's dimension or '*'", v)) return false;
  if (*v >= 1) return true;
  kl_invalid(ps->cx, kl_lex_span_from(lx, begin), "expected a tile's size of at least 1, found %lld", (long long)*v);
  return false;
}

static bool parse_tile(kl_parser *ps, kl_tile *tile) {
  VEC(int64_t) dims = {0};
  bool ok = kl_lex_need(&ps->lx, '(', "before a tile's dimensions");
  do {
    int64_t v;
    ok = ok && parse_tile_size(ps, &v);
    if (ok) VEC_PUSH(ps->cx, &dims, v);
  } while (ok && kl_lex_eat(&ps->lx, ','));
  ok = ok && kl_lex_need(&ps->lx, ')', "after a tile's dimensions");
  tile->n = (uint32_t)dims.n;
  tile->dims = VEC_FREEZE(ps->cx, ps->arena, &dims);
  return ok;
}

static bool parse_tiles(kl_parser *ps, kl_layout *l) {
  VEC(kl_tile) tiles = {0};
  size_t begin = ps->lx.begin, sizes = 0;
  bool ok = true;
  do {
    kl_tile tile;
    ok = parse_tile(ps, &tile);
    if (ok) VEC_PUSH(ps->cx, &tiles, tile);
    sizes += ok ? tile.n : 0;
  } while (ok && ps->lx.punct == '(');
  if (ok && sizes > KL_MAX_TILE_SIZES) {
    kl_invalid(ps->cx, kl_lex_span_from(&ps->lx, begin), "expected tiles of at most %d sizes together, found %zu",
               KL_MAX_TILE_SIZES, sizes);
    ok = false;
  }
  l->ntiles = (uint32_t)tiles.n;
  l->tiles = VEC_FREEZE(ps->cx, ps->arena, &tiles);
  return ok;
}

static bool parse_group_int(kl_parser *ps, const char *what, int64_t least, int64_t *out) {
  kl_lexer *lx = &ps->lx;
  if (!kl_lex_need(lx, '(', "before a layout's number")) return false;
  size_t begin = lx->begin;
  if (!kl_lex_int(lx, what, out)) return false;
  if (*out < least) {
    kl_invalid(ps->cx, kl_lex_span_from(lx, begin), "expected %s of at least %lld, found %lld", what, (long long)least,
               (long long)*out);
    return false;
  }
  return kl_lex_need(lx, ')', "after a layout's number");
}

static bool parse_group_dtype(kl_parser *ps, kl_dtype *out) {
  kl_lexer *lx = &ps->lx;
  if (!kl_lex_need(lx, '(', "before a layout's type")) return false;
  if (lx->kind != KL_TOK_NAME || !kl_dtype_from_str(lx->text, out) || !kl_is_int(*out))
    return kl_lex_expected(lx, "an integer type");
  kl_lex_next(lx);
  return kl_lex_need(lx, ')', "after a layout's type");
}

// "(a)(b)" gives "a)(b".
static bool parse_group_text(kl_parser *ps, const char **out) {
  kl_lexer *lx = &ps->lx;
  kl_sb b;
  kl_sb_init(&b, ps->cx);
  bool ok = lx->punct == '(' || kl_lex_expected(lx, "'(' in the layout");
  while (ok && kl_lex_eat(lx, '(')) {
    kl_str part;
    if (b.n) kl_sb_puts(&b, ")(");
    ok = kl_lex_raw(lx, ps->arena, KL_RAW_GROUP, &part);
    if (ok) kl_sb_put(&b, part);
    ok = ok && kl_lex_need(lx, ')', "in the layout");
  }
  *out = kl_str_dup(ps->arena, (kl_str){b.p, b.n}).p;
  kl_sb_free(&b);
  return ok;
}

// A text that is an encoding of this shape's dimensions gives its normal form.
static bool parse_encoding(kl_parser *ps, const kl_shape *s, const char **out) {
  kl_lexer *lx = &ps->lx;
  kl_str raw;
  if (!kl_lex_need(lx, '(', "before an encoding")) return false;
  kl_encoding_reading how = {.begin = lx->begin};
  kl_tensor_type type = {.given = true, .rank = s->rank, .element = kl_mtype_of(s->dtype)};
  for (uint32_t d = 0; d < s->rank; d++) type.sizes[d] = s->dims[d];
  how.tensor = &type;
  if (!kl_lex_raw(lx, ps->arena, KL_RAW_GROUP, &raw)) return false;
  *out = kl_encoding_normal(ps->cx, ps->arena, &(kl_source){lx->src->name, {lx->src->text.p, lx->begin}}, &how);
  return *out && kl_lex_need(lx, ')', "after an encoding");
}

enum {
  F_LEVELS,
  F_TILES,
  F_TAIL,
  F_INDEX,
  F_POINTER,
  F_BITS,
  F_SPACE,
  F_SPLIT,
  F_PHYSICAL,
  F_PREFIX,
  F_SPARSE,
  F_COUNT
};
static const char *const field_names[F_COUNT] = {"D", "T", "L", "#", "*", "E", "S", "SC", "P", "M", "SP"};

static int field_of(const kl_lexer *lx) {
  for (int f = 0; f < F_COUNT; f++)
    if (lx->kind == KL_TOK_NAME ? kl_str_is(lx->text, field_names[f]) : lx->punct && lx->punct == field_names[f][0])
      return f;
  return -1;
}

static bool parse_field(kl_parser *ps, const kl_shape *s, int field, kl_layout *l) {
  switch (field) {
  case F_LEVELS: return parse_group_text(ps, &l->dim_level_types);
  case F_TILES: return parse_tiles(ps, l);
  case F_TAIL: return parse_group_int(ps, "a tail padding alignment", 1, &l->tail_padding);
  case F_INDEX: return parse_group_dtype(ps, &l->index_type);
  case F_POINTER: return parse_group_dtype(ps, &l->pointer_type);
  case F_BITS: return parse_group_int(ps, "a number of element bits", 0, &l->element_bits);
  case F_SPACE: return parse_group_int(ps, "a memory space", 0, &l->memory_space);
  case F_SPLIT: return parse_group_text(ps, &l->split_configs);
  case F_PHYSICAL: return parse_group_text(ps, &l->physical_shape);
  case F_SPARSE: return parse_encoding(ps, s, &l->sparse);
  default: return parse_group_int(ps, "a metadata prefix's size", 0, &l->metadata_prefix);
  }
}

static bool parse_fields(kl_parser *ps, const kl_shape *s, kl_layout *l) {
  uint32_t seen = 0;
  size_t begin = ps->lx.begin;
  while (ps->lx.punct != '}') {
    int f = field_of(&ps->lx);
    if (f < 0 || (seen >> f & 1))
      return kl_lex_expected(&ps->lx, "'}' or one of the layout fields D T L # * E S SC P M SP, each once");
    seen |= 1u << f;
    kl_lex_next(&ps->lx);
    if (!parse_field(ps, s, f, l)) return false;
  }
  if (!l->sparse || !(seen & ~(1u << F_SPARSE | 1u << F_SPACE))) return true;
  kl_invalid(ps->cx, kl_lex_span_from(&ps->lx, begin), "expected SP with no other field than S, found more");
  return false;
}

static bool parse_layout(kl_parser *ps, const kl_shape *s, kl_layout *l, int64_t order[KILN_MAX_RANK]) {
  kl_lexer *lx = &ps->lx;
  uint32_t rank = s->rank;
  size_t begin = lx->begin;
  *l = (kl_layout){.present = true, .minor_to_major = order, .tail_padding = 1};
  kl_lex_next(lx);
  if (!parse_minor_to_major(ps, rank, order, &l->rank)) return false;
  if (kl_lex_eat(lx, ':') && !parse_fields(ps, s, l)) return false;
  if (!kl_lex_need(lx, '}', "after the layout")) return false;
  if (l->rank == rank) return true;
  kl_invalid(ps->cx, kl_lex_span_from(lx, begin), "layout: expected %u dimensions minor to major, found %u", rank,
             l->rank);
  return false;
}

// --- shapes -------------------------------------------------------------------------------------------------------

static bool intern(kl_parser *ps, const kl_shape *s, size_t begin, const kl_shape **out) {
  *out = kl_shape_intern(ps->m, s);
  if (*out) return true;
  const char *limit =
      s->dtype == KILN_TUPLE ? "a tuple of at most 2^24 arrays, nested at most 100 deep, found more"
      : kl_layout_is_order(s)
          ? "an array of less than 2^60 elements and 2^63 bytes, found one that is larger"
          : "an array of less than 2^60 elements and 2^63 bytes with its padding, found one that is larger";
  kl_invalid(ps->cx, kl_lex_span_from(&ps->lx, begin), "expected %s", limit);
  return false;
}

static bool parse_array(kl_parser *ps, const kl_shape **out) {
  kl_lexer *lx = &ps->lx;
  size_t begin = lx->begin;
  kl_shape s = {.layout.tail_padding = 1};
  if (lx->kind != KL_TOK_NAME || !kl_dtype_from_str(lx->text, &s.dtype) || s.dtype == KILN_TUPLE)
    return kl_lex_expected(lx, "an element type such as f32");
  kl_lex_next(lx);
  dim_list d = {0};
  if (!parse_dims(ps, &d)) return false;
  if (d.n && !kl_is_array_dtype(s.dtype)) {
    kl_invalid(ps->cx, kl_lex_span_from(lx, begin), "expected %s[] without dimensions, found %u of them",
               kl_info(s.dtype)->name, d.n);
    return false;
  }
  s.rank = d.n;
  s.dims = d.v;
  if (d.any_dynamic) s.dynamic = d.dynamic;
  int64_t order[KILN_MAX_RANK];
  if (at_layout(ps) && !parse_layout(ps, &s, &s.layout, order)) return false;
  return intern(ps, &s, begin, out);
}

static bool parse_nested(kl_parser *ps, uint32_t depth, const kl_shape **out);

static bool parse_tuple(kl_parser *ps, uint32_t depth, const kl_shape **out) {
  kl_lexer *lx = &ps->lx;
  size_t begin = lx->begin;
  VEC(const kl_shape *) elems = {0};
  bool ok = depth < KL_MAX_TUPLE_DEPTH || kl_lex_expected(lx, "tuples at most %d deep", KL_MAX_TUPLE_DEPTH);
  if (ok) kl_lex_next(lx);
  while (ok && lx->punct != ')') {
    const kl_shape *e = NULL;
    ok = parse_nested(ps, depth + 1, &e);
    if (ok) VEC_PUSH(ps->cx, &elems, e);
    if (!ok || !kl_lex_eat(lx, ',')) break;
  }
  ok = ok && kl_lex_need(lx, ')', "after the tuple's types");
  kl_shape s = {.dtype = KILN_TUPLE, .nelems = (uint32_t)elems.n, .elems = elems.p, .layout.tail_padding = 1};
  ok = ok && intern(ps, &s, begin, out);
  VEC_FREE(ps->cx, &elems);
  return ok;
}

// b(f32[2]{0})
static bool parse_buffer(kl_parser *ps, const kl_shape **out) {
  kl_lexer *lx = &ps->lx;
  size_t begin = lx->begin;
  const kl_shape *held = NULL;
  kl_lex_next(lx);
  if (!kl_lex_need(lx, '(', "before a buffer's type") || !parse_array(ps, &held)) return false;
  if (!kl_lex_need(lx, ')', "after a buffer's type")) return false;
  kl_shape s = {.dtype = KILN_OPAQUE, .nelems = 1, .elems = &held, .layout.tail_padding = 1};
  return intern(ps, &s, begin, out);
}

static bool parse_nested(kl_parser *ps, uint32_t depth, const kl_shape **out) {
  if (at_buffer(ps)) return parse_buffer(ps, out);
  return ps->lx.punct == '(' ? parse_tuple(ps, depth, out) : parse_array(ps, out);
}

// The same text means the same shape; white space and no layout behind it show that it ends there.
static bool same_as_last(const kl_parser *ps) {
  kl_str t = ps->lx.src->text, last = ps->last_text;
  size_t begin = ps->lx.begin, end = begin + last.n;
  return last.n && end + 1 < t.n && memcmp(t.p + begin, last.p, last.n) == 0 && t.p[end] == ' ' &&
         (kl_is_name_start(t.p[end + 1]) || t.p[end + 1] == '%');
}

bool kl_parse_shape(kl_parser *ps, const kl_shape **out) {
  if (same_as_last(ps)) {
    *out = ps->last_shape;
    ps->lx.last_end = ps->lx.begin + ps->last_text.n;
    kl_lex_seek(&ps->lx, ps->lx.last_end);
    return true;
  }
  size_t begin = ps->lx.begin;
  if (!parse_nested(ps, 0, out)) return false;
  ps->last_shape = *out;
  ps->last_text = (kl_str){ps->lx.src->text.p + begin, ps->lx.last_end - begin};
  return true;
}
