// Reading JSON where it stands.
#include "ir/custom/json.h"

enum { MOST_DEPTH = 64 };

// What is left of a text. A character of the JSON is one of the text, or two where that is a string: \" is a quote and
// \\ a backslash.
typedef struct reader {
  kl_str s;
  bool escaped;
} reader;

// The next character, and its length; 0 at the end.
static char look(const reader *r, size_t *length) {
  *length = r->s.n > 0;
  if (!r->s.n) return 0;
  if (!r->escaped || r->s.p[0] != '\\' || r->s.n < 2) return r->s.p[0];
  *length = 2;
  return r->s.p[1];
}

static void drop(reader *r, size_t n) {
  r->s.p += n, r->s.n -= n;
}

static char take(reader *r) {
  size_t n;
  char c = look(r, &n);
  drop(r, n);
  return c;
}

static bool take_if(reader *r, char want) {
  size_t n;
  if (look(r, &n) != want) return false;
  drop(r, n);
  return true;
}

static void skip_space(reader *r) {
  size_t n;
  for (char c = look(r, &n); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = look(r, &n)) drop(r, n);
}

// Past the quote that closes the string whose first one is behind; false: there is none.
static bool skip_string(reader *r) {
  while (r->s.n) {
    char c = take(r);
    if (c == '"') return true;
    if (c == '\\') take(r);
  }
  return false;
}

static bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
}

static bool skip_value(reader *r, int depth);

// Members or entries, up to the bracket that closes them; the first one is behind.
static bool skip_list(reader *r, char closing, int depth) {
  skip_space(r);
  if (take_if(r, closing)) return true;
  do {
    skip_space(r);
    if (closing == '}') {
      if (!take_if(r, '"') || !skip_string(r)) return false;
      skip_space(r);
      if (!take_if(r, ':')) return false;
    }
    if (!skip_value(r, depth)) return false;
    skip_space(r);
  } while (take_if(r, ','));
  return take_if(r, closing);
}

static bool skip_value(reader *r, int depth) {
  size_t n;
  skip_space(r);
  if (take_if(r, '"')) return skip_string(r);
  if (depth < MOST_DEPTH && take_if(r, '{')) return skip_list(r, '}', depth + 1);
  if (depth < MOST_DEPTH && take_if(r, '[')) return skip_list(r, ']', depth + 1);
  if (!is_word(look(r, &n))) return false;
  while (is_word(look(r, &n))) drop(r, n);
  return true;
}

// The value that comes next.
static bool take_value(reader *r, kl_json *out) {
  skip_space(r);
  const char *from = r->s.p;
  if (!skip_value(r, 0)) return false;
  *out = (kl_json){{from, (size_t)(r->s.p - from)}, r->escaped};
  return true;
}

bool kl_json_open(kl_str text, kl_json *out) {
  reader r = {text, false};
  *out = (kl_json){0};
  if (text.n >= 2 && text.p[0] == '"') r = (reader){{text.p + 1, text.n - 2}, true};
  bool whole = take_value(&r, out);
  skip_space(&r);
  if (whole && !r.s.n) return true;
  *out = (kl_json){0};
  return false;
}

// --- parts ----------------------------------------------------------------------------------------------------------

static reader inside(kl_json v) {
  reader r = {v.text, v.escaped};
  take(&r);
  return r;
}

static bool starts_with(kl_json v, char c) {
  size_t n;
  reader r = {v.text, v.escaped};
  return look(&r, &n) == c;
}

bool kl_json_is_object(kl_json v) {
  return starts_with(v, '{');
}

bool kl_json_is_array(kl_json v) {
  return starts_with(v, '[');
}

kl_str kl_json_string(kl_json v) {
  size_t quote = v.escaped ? 2 : 1;
  if (!starts_with(v, '"')) return (kl_str){0};
  return (kl_str){v.text.p + quote, v.text.n - 2 * quote};
}

kl_json kl_json_member(kl_json object, const char *name) {
  kl_json key, value;
  if (!kl_json_is_object(object)) return (kl_json){0};
  for (reader r = inside(object); take_value(&r, &key);) {
    skip_space(&r);
    if (!take_if(&r, ':') || !take_value(&r, &value)) break;
    if (kl_str_is(kl_json_string(key), name)) return value;
    skip_space(&r);
    if (!take_if(&r, ',')) break;
  }
  return (kl_json){0};
}

kl_json kl_json_entry(kl_json array, uint32_t i) {
  kl_json value;
  if (!kl_json_is_array(array)) return (kl_json){0};
  for (reader r = inside(array); take_value(&r, &value); i--) {
    if (i == 0) return value;
    skip_space(&r);
    if (!take_if(&r, ',')) break;
  }
  return (kl_json){0};
}

// --- values ---------------------------------------------------------------------------------------------------------

static kl_str word(kl_json v) {
  return starts_with(v, '"') ? kl_json_string(v) : v.text;
}

bool kl_json_number(kl_json v, double *out) {
  static const struct {
    const char *text;
    double value;
  } others[] = {{"NaN", __builtin_nan("")}, {"Infinity", __builtin_inf()}, {"-Infinity", -__builtin_inf()}};
  kl_str w = word(v);
  for (size_t i = 0; i < KL_COUNT(others); i++)
    if (kl_str_is(w, others[i].text)) {
      *out = others[i].value;
      return true;
    }
  return w.n && kl_double_from_text(w, out);
}

bool kl_json_integer(kl_json v, int64_t *out) {
  kl_str w = word(v);
  return w.n && kl_i64_from_text(w, out);
}

bool kl_json_truth(kl_json v, bool *out) {
  *out = kl_str_is(v.text, "true");
  return *out || kl_str_is(v.text, "false");
}
