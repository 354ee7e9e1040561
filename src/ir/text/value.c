// Values of attributes, by the type of their row.
//
// Lists and names are read token by token. Values with a grammar of their own (windows, padding, dimension labels,
// groups of devices) are taken as canonical text first and read from there.
#include "ir/attrs.h"
#include "ir/text/parse.h"

#include <math.h>

// --- short texts --------------------------------------------------------------------------------------------------

typedef struct scan {
  const char *p, *end;
} scan;

static scan scan_of(kl_str s) {
  return (scan){s.p, s.p + s.n};
}

static bool take(scan *s, char c) {
  if (s->p == s->end || *s->p != c) return false;
  s->p++;
  return true;
}

static bool take_text(scan *s, const char *z) {
  size_t n = strlen(z);
  if ((size_t)(s->end - s->p) < n || memcmp(s->p, z, n) != 0) return false;
  s->p += n;
  return true;
}

static void take_spaces(scan *s) {
  while (take(s, ' ')) {}
}

static bool take_int(scan *s, int64_t *out) {
  const char *begin = s->p;
  take(s, '-');
  while (s->p < s->end && kl_is_digit(*s->p)) s->p++;
  return kl_i64_from_text((kl_str){begin, (size_t)(s->p - begin)}, out);
}

// --- the reader's place -------------------------------------------------------------------------------------------

typedef struct value {
  kl_parser *ps;
  kl_draft_instr *d;
  const kl_attr_row *row;
  void *at; // where the value goes
  size_t begin;
} value;

static bool misfit(const value *v, kl_str found, const char *expected) {
  kl_invalid(v->ps->cx, kl_lex_span_from(&v->ps->lx, v->begin), "%s: expected %s, found '%.*s'",
             kl_op_name(v->d->in.op), expected, (int)(found.n < 60 ? found.n : 60), found.p);
  return false;
}

static bool take_raw(const value *v, kl_str *out) {
  return kl_lex_raw(&v->ps->lx, v->ps->arena, KL_RAW_VALUE, out);
}

// --- numbers, names, lists ----------------------------------------------------------------------------------------

static bool parse_int_list(const value *v, uint32_t *n, const int64_t **out) {
  kl_parser *ps = v->ps;
  VEC(int64_t) list = {0};
  bool ok = kl_lex_need(&ps->lx, '{', "before the dimensions");
  while (ok && ps->lx.punct != '}') {
    int64_t one;
    ok = kl_lex_int(&ps->lx, "a dimension", &one);
    if (ok) VEC_PUSH(ps->cx, &list, one);
    if (!ok || !kl_lex_eat(&ps->lx, ',')) break;
  }
  ok = ok && kl_lex_need(&ps->lx, '}', "after the dimensions");
  *n = (uint32_t)list.n;
  *out = VEC_FREEZE(ps->cx, ps->arena, &list);
  return ok;
}

static bool parse_int(const value *v) {
  return kl_lex_int(&v->ps->lx, "an integer", v->at);
}

static bool parse_bits(const value *v) {
  int64_t bits;
  if (!kl_lex_int(&v->ps->lx, "a number of bits", &bits)) return false;
  *(int32_t *)v->at = (int32_t)bits;
  if (bits >= 0 && bits <= 64) return true;
  kl_invalid(v->ps->cx, kl_lex_span_from(&v->ps->lx, v->begin), "expected a number of bits from 0 to 64, found %lld",
             (long long)bits);
  return false;
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

// Is the current name this word, in capitals or not?
static bool is_word(const kl_lexer *lx, const char *word) {
  bool same = lx->kind == KL_TOK_NAME && lx->text.n == strlen(word);
  for (size_t i = 0; same && i < lx->text.n; i++) same = lower(lx->text.p[i]) == lower(word[i]);
  return same;
}

static bool parse_bool(const value *v) {
  kl_lexer *lx = &v->ps->lx;
  bool yes = is_word(lx, "true") || (lx->kind == KL_TOK_NUMBER && kl_str_is(lx->text, "1"));
  bool no = is_word(lx, "false") || (lx->kind == KL_TOK_NUMBER && kl_str_is(lx->text, "0"));
  if (!yes && !no) return kl_lex_expected(lx, "true or false");
  *(bool *)v->at = yes;
  kl_lex_next(lx);
  return true;
}

static bool parse_real(const value *v) {
  kl_str text;
  double real;
  if (!take_raw(v, &text)) return false;
  if (!kl_double_from_text(text, &real)) return misfit(v, text, "a number");
  *(double *)v->at = (float)real;
  return true;
}

// The index of the current name among the row's.
static bool parse_choice(const value *v, int64_t *out) {
  const kl_attr_row *r = v->row;
  for (uint8_t i = 0; i < r->nnames; i++) {
    if (!r->names[i] || !is_word(&v->ps->lx, r->names[i])) continue;
    *out = i;
    kl_lex_next(&v->ps->lx);
    return true;
  }
  char list[400] = "";
  for (size_t i = 0, n = 0; i < r->nnames && n + 40 < sizeof list; i++) {
    if (!r->names[i]) continue;
    list[n++] = ' ';
    memcpy(list + n, r->names[i], strlen(r->names[i]) + 1);
    n += strlen(r->names[i]);
  }
  return kl_lex_expected(&v->ps->lx, "%s, one of%s", r->what, list);
}

static bool parse_name(const value *v) {
  int64_t choice = 0;
  bool ok = parse_choice(v, &choice);
  *(int *)v->at = (int)choice;
  return ok;
}

static bool parse_names(const value *v) {
  kl_parser *ps = v->ps;
  kl_ints *out = v->at;
  VEC(int64_t) list = {0};
  bool ok = kl_lex_need(&ps->lx, '{', "before the list");
  while (ok && ps->lx.punct != '}') {
    int64_t one;
    ok = parse_choice(v, &one);
    if (ok) VEC_PUSH(ps->cx, &list, one);
    if (!ok || !kl_lex_eat(&ps->lx, ',')) break;
  }
  ok = ok && kl_lex_need(&ps->lx, '}', "after the list");
  out->n = (uint32_t)list.n;
  out->p = VEC_FREEZE(ps->cx, ps->arena, &list);
  return ok;
}

static bool parse_quoted(const value *v) {
  if (v->ps->lx.kind != KL_TOK_STRING) return kl_lex_expected(&v->ps->lx, "a text in quotes");
  return take_raw(v, v->at);
}

// --- slices and padding -------------------------------------------------------------------------------------------

static bool parse_slice_dim(kl_parser *ps, kl_slice_dim *s) {
  kl_lexer *lx = &ps->lx;
  *s = (kl_slice_dim){.stride = 1};
  return kl_lex_need(lx, '[', "before a slice's bounds") && kl_lex_int(lx, "a slice's start", &s->start) &&
         kl_lex_need(lx, ':', "after a slice's start") && kl_lex_int(lx, "a slice's limit", &s->limit) &&
         (!kl_lex_eat(lx, ':') || kl_lex_int(lx, "a slice's stride", &s->stride)) &&
         kl_lex_need(lx, ']', "after a slice's bounds");
}

static bool parse_slices(const value *v) {
  kl_parser *ps = v->ps;
  VEC(kl_slice_dim) list = {0};
  bool ok = kl_lex_need(&ps->lx, '{', "before the slices");
  while (ok && ps->lx.punct != '}') {
    kl_slice_dim s;
    ok = parse_slice_dim(ps, &s);
    if (ok) VEC_PUSH(ps->cx, &list, s);
    if (!ok || !kl_lex_eat(&ps->lx, ',')) break;
  }
  ok = ok && kl_lex_need(&ps->lx, '}', "after the slices");
  v->d->in.ndims = (uint32_t)list.n;
  v->d->in.slice = VEC_FREEZE(ps->cx, ps->arena, &list);
  return ok;
}

// low_high or low_high_interior.
static bool take_padding_dim(scan *s, kl_pad_dim *d) {
  *d = (kl_pad_dim){0};
  if (!take_int(s, &d->low) || !take(s, '_') || !take_int(s, &d->high)) return false;
  return !take(s, '_') || take_int(s, &d->interior);
}

// An array of rank 0 has no padding: then nothing follows the equals sign.
static bool at_no_padding(const kl_lexer *lx) {
  return lx->kind == KL_TOK_END || lx->punct == ',' || lx->punct == '}' || kl_lex_on_new_line(lx) ||
         kl_is_instruction(lx->src->text, lx->begin);
}

static bool parse_padding(const value *v) {
  kl_parser *ps = v->ps;
  kl_str text;
  if (at_no_padding(&ps->lx)) return true;
  if (!take_raw(v, &text)) return false;
  VEC(kl_pad_dim) list = {0};
  scan s = scan_of(text);
  bool ok = true;
  while (ok && s.p < s.end) {
    kl_pad_dim dim;
    ok = take_padding_dim(&s, &dim) && (s.p == s.end || (take(&s, 'x') && s.p < s.end));
    if (ok) VEC_PUSH(ps->cx, &list, dim);
  }
  v->d->in.ndims = (uint32_t)list.n;
  v->d->in.pad = VEC_FREEZE(ps->cx, ps->arena, &list);
  return ok || misfit(v, text, "padding such as 0_1x2_3_1 (low_high or low_high_interior, one per dimension)");
}

// --- windows ------------------------------------------------------------------------------------------------------

enum { SIZE, STRIDE, PAD, LHS_DILATE, RHS_DILATE, RHS_REVERSAL, WINDOW_KEYS };
static const char *const window_keys[WINDOW_KEYS] = {
    "size=", "stride=", "pad=", "lhs_dilate=", "rhs_dilate=", "rhs_reversal="};

static bool take_window_entry(scan *s, int key, kl_window_dim *d) {
  int64_t reversed;
  switch (key) {
  case SIZE: return take_int(s, &d->size);
  case STRIDE: return take_int(s, &d->stride);
  case PAD: return take_int(s, &d->low) && take(s, '_') && take_int(s, &d->high);
  case LHS_DILATE: return take_int(s, &d->base_dilation);
  case RHS_DILATE: return take_int(s, &d->window_dilation);
  default:
    if (!take_int(s, &reversed) || reversed < 0 || reversed > 1) return false;
    d->reversed = reversed != 0;
    return true;
  }
}

// key=AxBxC; *n is the number of entries.
static bool take_window_key(scan *s, kl_window_dim w[KILN_MAX_RANK], uint32_t *seen, uint32_t *n) {
  int key = 0;
  while (key < WINDOW_KEYS && !take_text(s, window_keys[key])) key++;
  if (key == WINDOW_KEYS || (*seen >> key & 1)) return false;
  *seen |= 1u << key;
  *n = 0;
  do {
    if (*n == KILN_MAX_RANK || !take_window_entry(s, key, &w[*n])) return false;
    ++*n;
  } while (take(s, 'x'));
  return true;
}

static bool parse_window(const value *v) {
  kl_str text;
  if (!take_raw(v, &text)) return false;
  scan s = scan_of(text);
  kl_window_dim w[KILN_MAX_RANK];
  uint32_t seen = 0, n = 0;
  for (int i = 0; i < KILN_MAX_RANK; i++) w[i] = (kl_window_dim){1, 1, 0, 0, 1, 1, false};
  bool ok = take(&s, '{');
  take_spaces(&s);
  for (uint32_t k = 0; ok && s.p < s.end && *s.p != '}'; take_spaces(&s)) {
    bool first = seen == 0;
    ok = take_window_key(&s, w, &seen, &k) && (first || k == n);
    n = k;
  }
  ok = ok && take(&s, '}') && s.p == s.end && (seen == 0 || (seen & 1u << SIZE));
  if (!ok) return misfit(v, text, "a window such as {size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=1x1 rhs_dilate=2x2}");
  kl_more *more = (kl_more *)v->d->in.more;
  more->nwindow = n;
  more->window = kl_arena_dup(v->ps->arena, w, n * sizeof *w);
  return true;
}

// --- dimension labels ---------------------------------------------------------------------------------------------

// Letters `a` and `b` each once, the digits 0 .. n-1 each once, and `?` for dimensions of no meaning; *rank is 0 where
// there are none of those.
static bool take_labels(scan *s, char a, char b, int64_t *at_a, int64_t *at_b, int64_t spatial[10], uint32_t *n,
                        uint32_t *rank) {
  uint32_t seen = 0, at = 0, unknown = 0;
  *at_a = *at_b = -1;
  for (; s->p < s->end && *s->p != '_' && *s->p != '-'; s->p++, at++) {
    int64_t *slot = *s->p == a ? at_a : *s->p == b ? at_b : NULL;
    if (*s->p == '?' && ++unknown < KILN_MAX_RANK) continue;
    if (slot ? *slot >= 0 : !kl_is_digit(*s->p) || (seen >> (*s->p - '0') & 1)) return false;
    if (slot) {
      *slot = at;
    } else {
      seen |= 1u << (*s->p - '0');
      spatial[*s->p - '0'] = at;
    }
  }
  *n = (uint32_t)__builtin_popcount(seen);
  *rank = unknown ? at : 0;
  return *at_a >= 0 && *at_b >= 0 && seen == (1u << *n) - 1;
}

static bool parse_dim_labels(const value *v) {
  kl_str text;
  if (!take_raw(v, &text)) return false;
  scan s = scan_of(text);
  kl_conv_dims c = {0};
  int64_t input[10], kernel[10], result[10];
  uint32_t n = 0, nkernel = 0, nresult = 0;
  bool ok = take_labels(&s, 'b', 'f', &c.input_batch, &c.input_feature, input, &n, &c.input_rank) && take(&s, '_') &&
            take_labels(&s, 'i', 'o', &c.kernel_input, &c.kernel_output, kernel, &nkernel, &c.kernel_rank) &&
            take_text(&s, "->") &&
            take_labels(&s, 'b', 'f', &c.result_batch, &c.result_feature, result, &nresult, &c.result_rank) &&
            s.p == s.end && n == nkernel && n == nresult;
  if (!ok) return misfit(v, text, "labels such as b01f_01io->b01f, each dimension once");
  c.n = n;
  c.input = kl_arena_dup(v->ps->arena, input, n * sizeof *input);
  c.kernel = kl_arena_dup(v->ps->arena, kernel, n * sizeof *kernel);
  c.result = kl_arena_dup(v->ps->arena, result, n * sizeof *result);
  *(const kl_conv_dims **)v->at = kl_arena_dup(v->ps->arena, &c, sizeof c);
  return true;
}

// --- devices ------------------------------------------------------------------------------------------------------

typedef VEC(int64_t) int_list;

// {{0,1},{2,3}} or {}; shorter groups are filled up with -1.
static bool take_groups(const value *v, scan *s, kl_groups *g, int_list *ids) {
  kl_ctx *cx = v->ps->cx;
  VEC(uint32_t) sizes = {0};
  bool ok = take(s, '{');
  int_list flat = {0};
  while (ok && s->p < s->end && *s->p == '{') {
    uint32_t size = 0;
    for (take(s, '{'); ok && s->p < s->end && *s->p != '}'; size++) {
      int64_t id;
      ok = take_int(s, &id) && id >= 0;
      if (ok) VEC_PUSH(cx, &flat, id);
      if (!take_text(s, ", ")) take(s, ',');
    }
    ok = ok && take(s, '}');
    VEC_PUSH(cx, &sizes, size);
    if (size > g->size) g->size = size;
    if (!take_text(s, ", ")) take(s, ',');
  }
  g->ngroups = (uint32_t)sizes.n;
  for (size_t k = 0, at = 0; ok && k < sizes.n; k++)
    for (int64_t i = 0; i < g->size; i++) VEC_PUSH(cx, ids, i < sizes.p[k] ? flat.p[at++] : -1);
  VEC_FREE(cx, &sizes);
  VEC_FREE(cx, &flat);
  return ok && take(s, '}');
}

static bool take_dims(scan *s, char open, char close, int64_t dims[KILN_MAX_RANK], uint32_t *n) {
  *n = 0;
  if (!take(s, open)) return false;
  do {
    take_spaces(s);
    if (*n == KILN_MAX_RANK || !take_int(s, &dims[*n]) || dims[*n] < 0) return false;
    ++*n;
  } while (take(s, ','));
  return take(s, close);
}

// [2,4]<=[8] or [2,4]<=[4,2]T(1,0): the numbers from 0 on in the second shape, transposed, then in the first shape,
// whose last dimension runs over one group.
static bool take_iota(const value *v, scan *s, kl_groups *g, int_list *ids) {
  enum { MOST_DEVICES = 1 << 20 };
  int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK], perm[KILN_MAX_RANK], stride[KILN_MAX_RANK], count = 1, total = 1;
  uint32_t nto, nfrom, nperm;
  if (!take_dims(s, '[', ']', to, &nto) || !take_text(s, "<=") || !take_dims(s, '[', ']', from, &nfrom)) return false;
  nperm = nfrom;
  for (uint32_t i = 0; i < nfrom; i++) perm[i] = i;
  if (take(s, 'T') && !take_dims(s, '(', ')', perm, &nperm)) return false;
  uint64_t seen = 0;
  for (uint32_t i = 0; i < nperm; i++) seen |= perm[i] < nfrom ? 1ull << perm[i] : 0;
  if (nperm != nfrom || seen != (1ull << nfrom) - 1) return false;
  for (uint32_t i = 0; i < nto; i++)
    if (__builtin_mul_overflow(count, to[i], &count) || count > MOST_DEVICES) return false;
  for (uint32_t i = nfrom; i-- > 0;) {
    stride[i] = total;
    if (__builtin_mul_overflow(total, from[i], &total) || total > MOST_DEVICES) return false;
  }
  if (total != count || count == 0) return false;
  g->size = to[nto - 1];
  g->ngroups = (uint32_t)(count / g->size);
  for (int64_t k = 0; k < count; k++) {
    int64_t id = 0, rest = k;
    for (uint32_t i = nfrom; i-- > 0; rest /= from[perm[i]]) id += rest % from[perm[i]] * stride[perm[i]];
    VEC_PUSH(v->ps->cx, ids, id);
  }
  return true;
}

// mesh[x=2,y=4] {x}, mesh[x=2], device_ids=([2]T(0)) {x}, @mesh {x}: pieces with white space between them.
static bool take_mesh(const value *v, kl_str *text) {
  kl_lexer *lx = &v->ps->lx;
  kl_str piece;
  if (!take_raw(v, text)) return false;
  bool mesh = text->n && (text->p[0] == 'm' || text->p[0] == '@');
  while (mesh && !kl_lex_on_new_line(lx)) {
    bool ids = lx->punct == ',';
    kl_lexer before = *lx;
    if (ids) kl_lex_next(lx);
    if (ids ? !kl_lex_is_name(lx, "device_ids") : lx->punct != '{') {
      *lx = before;
      break;
    }
    if (!take_raw(v, &piece)) return false;
    *text = kl_str_of(kl_strf(v->ps->arena, ids ? "%.*s, %.*s" : "%.*s %.*s", KL_FMT(*text), KL_FMT(piece)));
  }
  return true;
}

// A device mesh with axes is kept as text alone.
static bool parse_groups(const value *v) {
  kl_groups *g = v->at;
  int_list ids = {0};
  if (!take_mesh(v, &g->text)) return false;
  scan s = scan_of(g->text);
  bool listed = s.p < s.end && *s.p == '{', iota = s.p < s.end && *s.p == '[';
  bool ok = listed ? take_groups(v, &s, g, &ids) : iota ? take_iota(v, &s, g, &ids) : g->text.n > 0;
  ok = ok && (s.p == s.end || (!listed && !iota));
  g->ids.n = (uint32_t)ids.n;
  g->ids.p = VEC_FREEZE(v->ps->cx, v->ps->arena, &ids);
  return ok || misfit(v, g->text, "groups of devices such as {{0,1},{2,3}} or [2,2]<=[4]");
}

static bool parse_pairs(const value *v) {
  kl_ints *out = v->at;
  kl_groups g = {0};
  int_list ids = {0};
  kl_str text;
  if (!take_raw(v, &text)) return false;
  scan s = scan_of(text);
  bool ok = take_groups(v, &s, &g, &ids) && s.p == s.end && (g.ngroups == 0 || g.size == 2);
  for (size_t i = 0; i < ids.n; i++) ok &= ids.p[i] >= 0;
  out->n = (uint32_t)ids.n;
  out->p = VEC_FREEZE(v->ps->cx, v->ps->arena, &ids);
  return ok || misfit(v, text, "pairs of devices such as {{0,1},{1,0}}");
}

// --- computations -------------------------------------------------------------------------------------------------

// Computations that it calls itself are set aside, so that those of one instruction stay together.
static bool parse_inline(const value *v, uint32_t *index) {
  kl_parser *ps = v->ps;
  size_t n = ps->callees.n - v->d->first_callee;
  kl_callee *before = n ? kl_arena_dup(ps->arena, ps->callees.p + v->d->first_callee, n * sizeof *before) : NULL;
  bool ok = kl_parse_inline_computation(ps, index);
  v->d->first_callee = (uint32_t)ps->callees.n;
  for (size_t i = 0; i < n; i++) VEC_PUSH(ps->cx, &ps->callees, before[i]);
  return ok;
}

static bool parse_comp(const value *v) {
  kl_callee callee = {.row = v->row, .begin = (uint32_t)v->ps->lx.begin, .end = (uint32_t)v->ps->lx.pos};
  bool inlined = v->ps->lx.punct == '{';
  if (inlined ? !parse_inline(v, &callee.inlined) : !kl_parse_name(v->ps, "a computation's name", &callee.symbol))
    return false;
  callee.inlined += inlined;
  VEC_PUSH(v->ps->cx, &v->ps->callees, callee);
  return true;
}

static bool parse_comps(const value *v) {
  kl_lexer *lx = &v->ps->lx;
  if (!kl_lex_need(lx, '{', "before the computations")) return false;
  while (lx->punct != '}') {
    if (!parse_comp(v)) return false;
    if (!kl_lex_eat(lx, ',')) break;
  }
  return kl_lex_need(lx, '}', "after the computations");
}

// --- by type ------------------------------------------------------------------------------------------------------

bool kl_parse_value(kl_parser *ps, kl_draft_instr *d, const kl_attr_row *row) {
  value v = {ps, d, row, (void *)kl_attr_at(&d->in, row), ps->lx.begin};
  kl_ints *list = v.at;
  switch (row->type) {
  case KL_ATTR_DIMS: return parse_int_list(&v, &d->in.ndims, &d->in.dims);
  case KL_ATTR_INTS: return parse_int_list(&v, &list->n, &list->p);
  case KL_ATTR_INT: return parse_int(&v);
  case KL_ATTR_BITS: return parse_bits(&v);
  case KL_ATTR_BOOL: return parse_bool(&v);
  case KL_ATTR_REAL: return parse_real(&v);
  case KL_ATTR_NAME: return parse_name(&v);
  case KL_ATTR_NAMES: return parse_names(&v);
  case KL_ATTR_QUOTED: return parse_quoted(&v);
  case KL_ATTR_SLICES: return parse_slices(&v);
  case KL_ATTR_PADDING: return parse_padding(&v);
  case KL_ATTR_WINDOW: return parse_window(&v);
  case KL_ATTR_DIM_LABELS: return parse_dim_labels(&v);
  case KL_ATTR_GROUPS: return parse_groups(&v);
  case KL_ATTR_PAIRS: return parse_pairs(&v);
  case KL_ATTR_COMP: return parse_comp(&v);
  case KL_ATTR_COMPS: return parse_comps(&v);
  case KL_ATTR_SHAPE: return kl_parse_shape(ps, v.at);
  }
  return false;
}
