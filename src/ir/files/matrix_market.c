// The Matrix Market's exchange format: a line that says what follows, comments, sizes, and a line for each entry
// ("coordinate", counted from 1) or each element of columns one behind the other ("array"). Of symmetric matrices one
// triangle stands there.
#include "ir/files/list.h"
#include "ir/text/scan.h"

typedef enum field { F_REAL, F_INTEGER, F_UNSIGNED, F_COMPLEX, F_PATTERN, FIELDS } field;
typedef enum symmetry { S_GENERAL, S_SYMMETRIC, S_SKEW, S_HERMITIAN, SYMMETRIES } symmetry;
static const char *const fields[FIELDS] = {"real", "integer", "unsigned-integer", "complex", "pattern"};
static const char *const symmetries[SYMMETRIES] = {"general", "symmetric", "skew-symmetric", "hermitian"};

typedef struct reader {
  kl_ctx *cx;
  kl_scan scan;
  bool array;
  field field;
  symmetry symmetry;
  int64_t sizes[2], count;
  kiln_sparse_list *l;
} reader;

// --- tokens ---------------------------------------------------------------------------------------------------------

static char at(const reader *r, size_t i) {
  return i < r->scan.src->text.n ? r->scan.src->text.p[i] : '\n';
}
static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
static bool ended(const reader *r) {
  return kl_scan_ended(&r->scan);
}

static kl_str token(reader *r) {
  while (is_blank(at(r, r->scan.pos))) r->scan.pos++;
  r->scan.begin = r->scan.pos;
  while (!is_blank(at(r, r->scan.pos)) && at(r, r->scan.pos) != '\n') r->scan.pos++;
  return kl_scan_text(&r->scan);
}

static kl_span here(const reader *r) {
  return kl_scan_here(&r->scan);
}

static kiln_status expected(const reader *r, const char *what) {
  if (r->scan.begin == r->scan.pos)
    return kl_invalid(r->cx, here(r), "expected %s, found the end of the %s", what, ended(r) ? "text" : "line");
  kl_str s = kl_scan_text(&r->scan);
  return kl_invalid(r->cx, here(r), "expected %s, found '%.*s'", what, KL_FMT(s));
}

static kiln_status end_line(reader *r) {
  if (token(r).n) return expected(r, "the end of the line");
  r->scan.pos += !ended(r);
  return KILN_OK;
}

// To the first line that is neither blank nor a comment.
static void skip(reader *r) {
  for (;;) {
    size_t i = r->scan.pos;
    while (i < r->scan.src->text.n && is_blank(r->scan.src->text.p[i])) i++;
    if (i >= r->scan.src->text.n || (at(r, i) != '%' && at(r, i) != '\n')) return;
    while (i < r->scan.src->text.n && r->scan.src->text.p[i] != '\n') i++;
    r->scan.pos = i + (i < r->scan.src->text.n);
  }
}

static bool same(kl_str s, const char *word) {
  if (s.n != strlen(word)) return false;
  for (size_t i = 0; i < s.n; i++)
    if ((s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] + 32 : s.p[i]) != word[i]) return false;
  return true;
}

static kiln_status read_word(reader *r, const char *const *words, int n, const char *what, int *out) {
  kl_str s = token(r);
  for (*out = 0; *out < n; ++*out)
    if (same(s, words[*out])) return KILN_OK;
  return expected(r, what);
}

static kiln_status read_whole(reader *r, int64_t least, int64_t most, const char *what, int64_t *out) {
  kl_str s = token(r);
  if (!s.n || s.p[0] < '0' || s.p[0] > '9' || !kl_i64_from_text(s, out)) return expected(r, what);
  if (*out >= least && *out <= most) return KILN_OK;
  return kl_invalid(r->cx, here(r), "expected %s, %lld to %lld, found %.*s", what, (long long)least, (long long)most,
                    KL_FMT(s));
}

// --- the head -------------------------------------------------------------------------------------------------------

static kiln_status read_header(reader *r) {
  static const char *const magic[] = {"%%matrixmarket"}, *const object[] = {"matrix"},
                           *const forms[] = {"coordinate", "array"};
  int w, form, f, s;
  KL_TRY(read_word(r, magic, 1, "%%MatrixMarket", &w));
  KL_TRY(read_word(r, object, 1, "matrix", &w));
  KL_TRY(read_word(r, forms, 2, "coordinate or array", &form));
  KL_TRY(read_word(r, fields, FIELDS, "real, integer, unsigned-integer, complex or pattern", &f));
  if (form && f == F_PATTERN) return expected(r, "an array's real, integer, unsigned-integer or complex");
  KL_TRY(read_word(r, symmetries, SYMMETRIES, "general, symmetric, skew-symmetric or hermitian", &s));
  if (s == S_HERMITIAN && f != F_COMPLEX) return expected(r, "the symmetry of what is not complex");
  if (s == S_SKEW && (f == F_PATTERN || f == F_UNSIGNED)) return expected(r, "the symmetry of what has no sign");
  r->array = form;
  r->field = (field)f;
  r->symmetry = (symmetry)s;
  return end_line(r);
}

// Every entry takes so many bytes at least, so that no count asks for more memory than the text is worth.
static kiln_status read_sizes(reader *r) {
  skip(r);
  KL_TRY(read_whole(r, 0, INT64_MAX, "the number of rows", &r->sizes[0]));
  KL_TRY(read_whole(r, 0, INT64_MAX, "the number of columns", &r->sizes[1]));
  if (r->symmetry != S_GENERAL && r->sizes[0] != r->sizes[1]) return expected(r, "as many columns as rows");
  if (!r->array) {
    KL_TRY(read_whole(r, 0, INT64_MAX, "the number of entries", &r->count));
  } else if (__builtin_mul_overflow(r->sizes[0], r->sizes[1], &r->count)) {
    return expected(r, "a number of elements that 64 bits hold");
  } else if (r->symmetry != S_GENERAL) {
    int64_t n = r->sizes[0];
    r->count = n % 2 ? (n + 1) / 2 * n : n / 2 * (n + 1);
    if (r->symmetry == S_SKEW) r->count -= n;
  }
  size_t least = r->array ? 2 : 4;
  if ((uint64_t)r->count > (r->scan.src->text.n - r->scan.pos) / least + 1)
    return kl_invalid(r->cx, here(r), "expected %lld entries, found a text that is too short for them",
                      (long long)r->count);
  return end_line(r);
}

// --- entries --------------------------------------------------------------------------------------------------------

static kiln_dtype type_of(field f) {
  return f == F_REAL       ? KILN_F64
         : f == F_INTEGER  ? KILN_S64
         : f == F_UNSIGNED ? KILN_U64
         : f == F_COMPLEX  ? KILN_C128
                           : KILN_PRED;
}

// A number, as one of the list's type or of its parts; `negated` gets that of the other sign.
static kiln_status read_number(reader *r, bool negate, uint64_t *out, uint64_t *negated) {
  kiln_dtype t = r->l->info.dtype, part = kl_is_complex(t) ? kl_info(t)->part : t;
  kl_str s = token(r);
  const char *why = "no number";
  uint64_t bits[2] = {0};
  char text[128] = "-";
  if (!s.n) return expected(r, "a number");
  if (s.p[0] == '+') s.p++, s.n--;
  if (!kl_scalar_parse(s, part, bits, &why)) return kl_invalid(r->cx, here(r), "'%.*s': %s", KL_FMT(s), why);
  *out = bits[0];
  if (!negate) return KILN_OK;
  if (s.n >= sizeof text - 1) return expected(r, "a number of fewer digits");
  bool minus = s.p[0] == '-';
  memcpy(text + !minus, s.p, s.n);
  kl_str other = minus ? (kl_str){text + 1, s.n - 1} : (kl_str){text, s.n + 1};
  if (!kl_scalar_parse(other, part, bits, &why)) return kl_invalid(r->cx, here(r), "'%.*s': %s", KL_FMT(other), why);
  *negated = bits[0];
  return KILN_OK;
}

static kiln_status read_value(reader *r, uint64_t value[2], uint64_t mirrored[2]) {
  const char *why;
  kiln_dtype t = r->l->info.dtype;
  value[1] = mirrored[1] = 0;
  if (r->field == F_PATTERN) {
    kl_scalar_parse(KL_STR("1"), kl_is_complex(t) ? kl_info(t)->part : t, value, &why);
    value[1] = 0;
    memcpy(mirrored, value, 2 * sizeof *value);
    return KILN_OK;
  }
  bool skew = r->symmetry == S_SKEW;
  KL_TRY(read_number(r, skew, &value[0], &mirrored[0]));
  if (!skew) mirrored[0] = value[0];
  if (r->field != F_COMPLEX) return KILN_OK;
  bool other = skew || r->symmetry == S_HERMITIAN;
  KL_TRY(read_number(r, other, &value[1], &mirrored[1]));
  if (!other) mirrored[1] = value[1];
  return KILN_OK;
}

static void add(reader *r, int64_t i, int64_t j, const uint64_t value[2]) {
  kiln_sparse_list *l = r->l;
  int64_t k = kl_list_add(l);
  l->coordinates[2 * k] = i;
  l->coordinates[2 * k + 1] = j;
  for (int part = 0; part < (kl_is_complex(l->info.dtype) ? 2 : 1); part++)
    kl_element_set(l->info.dtype, l->values, k, part, value[part]);
}

static void add_both(reader *r, int64_t i, int64_t j, const uint64_t value[2], const uint64_t mirrored[2]) {
  add(r, i, j, value);
  if (r->symmetry != S_GENERAL && i != j) add(r, j, i, mirrored);
}

static kiln_status read_entry(reader *r) {
  uint64_t value[2], mirrored[2];
  int64_t i, j;
  KL_TRY(read_whole(r, 1, r->sizes[0], "a row", &i));
  KL_TRY(read_whole(r, 1, r->sizes[1], "a column", &j));
  if (r->symmetry == S_SKEW && i == j) return expected(r, "a column that is not the row, of a skew-symmetric matrix");
  KL_TRY(read_value(r, value, mirrored));
  add_both(r, i - 1, j - 1, value, mirrored);
  return end_line(r);
}

static kiln_status read_entries(reader *r) {
  for (int64_t k = 0; k < r->count; k++) {
    skip(r);
    r->scan.begin = r->scan.pos;
    if (ended(r))
      return kl_invalid(r->cx, here(r), "expected %lld entries, found %lld", (long long)r->count, (long long)k);
    KL_TRY(read_entry(r));
  }
  return KILN_OK;
}

// Elements by column; zeros are no entries.
static kiln_status read_elements(reader *r) {
  uint64_t value[2], mirrored[2];
  static const uint64_t zero[2] = {0};
  for (int64_t j = 0; j < r->sizes[1]; j++)
    for (int64_t i = r->symmetry == S_GENERAL ? 0 : j + (r->symmetry == S_SKEW); i < r->sizes[0]; i++) {
      skip(r);
      r->scan.begin = r->scan.pos;
      if (ended(r)) return kl_invalid(r->cx, here(r), "expected %lld elements, found fewer", (long long)r->count);
      KL_TRY(read_value(r, value, mirrored));
      KL_TRY(end_line(r));
      if (memcmp(value, zero, sizeof zero)) add_both(r, i, j, value, mirrored);
    }
  return KILN_OK;
}

static kiln_status read_all(reader *r, kiln_dtype dtype) {
  KL_TRY(read_header(r));
  KL_TRY(read_sizes(r));
  if (!dtype) dtype = type_of(r->field);
  if (r->field == F_COMPLEX && !kl_is_complex(dtype))
    return kl_invalid(r->cx, KL_NOWHERE, "%s: expected a complex type for complex numbers, found %s", r->scan.src->name,
                      kl_info(dtype)->name);
  KL_TRY(kl_list_open(r->cx, 2, dtype, r->symmetry == S_GENERAL ? r->count : 2 * r->count, &r->l));
  memcpy(r->l->sizes, r->sizes, sizeof r->sizes);
  KL_TRY(r->array ? read_elements(r) : read_entries(r));
  skip(r);
  r->scan.begin = r->scan.pos;
  return ended(r) ? KILN_OK
                  : kl_invalid(r->cx, (kl_span){r->scan.src, r->scan.pos, r->scan.pos},
                               "expected %lld entries, found more", (long long)r->count);
}

kiln_status kl_matrix_market_read(kl_ctx *cx, const kl_source *src, kiln_dtype dtype, kiln_sparse_list **out) {
  reader r = {.cx = cx, .scan = {.src = src}};
  kiln_status status = read_all(&r, dtype);
  if (status == KILN_OK)
    *out = r.l;
  else
    kiln_sparse_list_destroy(&r.l);
  return status;
}

// --- writing --------------------------------------------------------------------------------------------------------

static field field_of(kiln_dtype t) {
  if (t == KILN_PRED) return F_PATTERN;
  if (kl_is_complex(t)) return F_COMPLEX;
  if (kl_is_float(t)) return F_REAL;
  return kl_is_signed(t) ? F_INTEGER : F_UNSIGNED;
}

static void put_part(kl_sb *b, const kiln_sparse_list *l, int64_t k, int part) {
  kiln_dtype t = l->info.dtype, own = kl_is_complex(t) ? kl_info(t)->part : t;
  uint64_t bits[2] = {kl_element_get(t, l->values, k, part)};
  char text[96];
  kl_scalar_text(text, own, bits);
  kl_sb_putc(b, ' ');
  kl_sb_puts(b, strstr(text, "nan") ? "nan" : text); // no other text of NaN is common
}

// What a pattern has no entry for is false.
static bool is_written(const kiln_sparse_list *l, int64_t k) {
  return l->info.dtype != KILN_PRED || l->values[k];
}

kiln_status kl_matrix_market_write(kl_ctx *cx, const kiln_sparse_list *l, kl_sb *b) {
  field f = field_of(l->info.dtype);
  int64_t n = 0;
  if (l->info.rank != 2)
    return kl_unsupported(cx, KL_NOWHERE, "Matrix Market files hold matrices, not tensors of %zu dimensions",
                          l->info.rank);
  for (int64_t k = 0; k < l->info.entries.count; k++) n += is_written(l, k);
  kl_sbf(b, "%%%%MatrixMarket matrix coordinate %s general\n%lld %lld %lld\n", fields[f], (long long)l->sizes[0],
         (long long)l->sizes[1], (long long)n);
  for (int64_t k = 0; k < l->info.entries.count; k++) {
    if (!is_written(l, k)) continue;
    kl_sb_i64(b, l->coordinates[2 * k] + 1);
    kl_sb_putc(b, ' ');
    kl_sb_i64(b, l->coordinates[2 * k + 1] + 1);
    for (int part = 0; f != F_PATTERN && part < (f == F_COMPLEX ? 2 : 1); part++) put_part(b, l, k, part);
    kl_sb_putc(b, '\n');
  }
  return KILN_OK;
}
