#include "cases.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// --- reading --------------------------------------------------------------------------------------------------------

char *read_whole_file(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *text = NULL;
  long n;
  if (fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0) {
    text = malloc((size_t)n + 1);
    if (text) {
      *size = fread(text, 1, (size_t)n, f);
      text[*size] = 0;
    }
  }
  fclose(f);
  return text;
}

bool case_file_open(const char *path, case_file *f) {
  *f = (case_file){0};
  f->text = f->at = read_whole_file(path, &f->size);
  if (!f->text) snprintf(f->error, sizeof f->error, "cannot be read");
  return f->text != NULL;
}

void case_file_close(case_file *f) {
  free(f->text);
  *f = (case_file){0};
}

static bool malformed(case_file *f, const char *what) {
  snprintf(f->error, sizeof f->error, "line %d: %s", f->line, what);
  return false;
}

static bool starts(const char *line, const char *word) {
  return strncmp(line, word, strlen(word)) == 0;
}

// Takes one line, its end replaced by NUL; NULL at the end of the file.
static char *take_line(case_file *f) {
  if (!*f->at) return NULL;
  char *line = f->at, *end = strchr(line, '\n');
  f->line++;
  f->at = end ? end + 1 : line + strlen(line);
  if (end) *end = 0;
  return line;
}

// The elements after " = " in `line` and on the lines that continue it.
static bool take_elements(case_file *f, char *line, case_array *a) {
  char *eq = strstr(line, " =");
  if (!eq) return malformed(f, "'=' expected");
  *eq = 0;
  a->begin = eq + 2;
  while (*f->at == ' ') {
    if (f->at > a->begin) f->at[-1] = ' ';
    take_line(f);
  }
  a->end = f->at > f->text && !f->at[-1] ? f->at - 1 : f->at;
  return true;
}

static bool take_output(case_file *f, char *line, case_array *a) {
  if (!take_elements(f, line, a)) return false;
  char *rest = line + 4;
  if (starts(rest, "exact")) {
    a->rule = CASE_EXACT;
  } else if (starts(rest, "within ")) {
    a->rule = CASE_WITHIN;
    a->a = strtod(rest + 7, NULL);
  } else if (starts(rest, "near ")) {
    a->rule = CASE_NEAR;
    a->a = strtod(rest + 5, &rest);
    a->b = strtod(rest, NULL);
  } else {
    return malformed(f, "a rule expected");
  }
  return true;
}

// The lines of the module without their "| ", moved together in place.
static void take_module(case_file *f, char *line, test_case *t) {
  char *to = line;
  t->module = line;
  for (;;) {
    size_t skip = line[1] == ' ' ? 2 : 1, n = strlen(line + skip);
    memmove(to, line + skip, n);
    to += n;
    *to++ = '\n';
    if (*f->at != '|') break;
    line = take_line(f);
  }
  *to = 0;
  t->module_size = (size_t)(to - t->module);
}

static bool take_item(case_file *f, char *line, test_case *t) {
  if (*line == '#' || !*line || starts(line, "by ")) return true;
  if (*line == '|') {
    take_module(f, line, t);
    return true;
  }
  bool in = starts(line, "in ");
  if (!in && !starts(line, "out ")) return malformed(f, "'case', 'by', '|', 'in' or 'out' expected");
  int *n = in ? &t->nin : &t->nout;
  if (*n == CASE_MAX_ARRAYS) return malformed(f, "too many arrays");
  case_array *a = in ? &t->in[(*n)++] : &t->out[(*n)++];
  *a = (case_array){.rule = CASE_INPUT, .shape = line + 3};
  return in ? take_elements(f, line, a) : take_output(f, line, a);
}

bool case_file_next(case_file *f, test_case *t) {
  char *line = NULL;
  t->name = t->module = "";
  t->module_size = 0;
  t->nin = t->nout = 0;
  while (!starts(f->at, "case ") && !starts(f->at, "in ") && !starts(f->at, "out "))
    if (!take_line(f)) return false;
  t->line = f->line + 1;
  if (starts(f->at, "case ")) {
    line = take_line(f);
    t->name = line + 5;
  }
  while (*f->at && !starts(f->at, "case ")) {
    line = take_line(f);
    if (!take_item(f, line, t)) return false;
  }
  return true;
}

// --- elements -------------------------------------------------------------------------------------------------------

static bool fail(char *why, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, size, format, args);
  va_end(args);
  return false;
}

static bool take_hex(const char **p, const char *end, uint64_t *out) {
  while (*p < end && (**p == ' ' || **p == '\n')) ++*p;
  const char *start = *p;
  for (*out = 0; *p < end; ++*p) {
    char c = **p;
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) break;
    *out = *out << 4 | (uint64_t)digit;
  }
  return *p > start;
}

// Elements' text, one number after another: those of a run are given one by one.
typedef struct words {
  const char *p, *end;
  uint64_t next, step, left; // of a run
} words;

static bool take_word(words *w, uint64_t *out) {
  if (!w->left) {
    if (!take_hex(&w->p, w->end, &w->next)) return false;
    w->left = 1;
    w->step = 0;
    if (w->p < w->end && *w->p == '*') {
      w->left = strtoull(w->p + 1, (char **)&w->p, 10);
    } else if (w->p + 1 < w->end && w->p[0] == '.' && w->p[1] == '.') {
      uint64_t last;
      w->p += 2;
      if (!take_hex(&w->p, w->end, &last) || last < w->next) return false;
      w->left = last - w->next + 1;
      w->step = 1;
    }
    if (!w->left) return false;
  }
  *out = w->next;
  w->next += w->step;
  w->left--;
  return true;
}

// Fills an array of the given shape; all of the text must be used.
static bool read_elements(const case_array *a, const kl_shape *s, void *data) {
  words w = {.p = a->begin, .end = a->end};
  uint64_t v;
  for (int64_t i = 0; i < s->count; i++)
    for (int part = 0; part < 1 + kl_is_complex(s->dtype); part++) {
      if (!take_word(&w, &v)) return false;
      kl_element_set(s->dtype, data, i, part, v);
    }
  return !take_word(&w, &v) && w.p == w.end;
}

static bool new_array(const case_array *a, const kl_shape *s, kl_array *out) {
  *out = (kl_array){s, calloc((size_t)s->count + 1, kl_info(s->dtype)->bytes)};
  return out->data && read_elements(a, s, out->data);
}

// --- comparing ------------------------------------------------------------------------------------------------------

// Places of values in the order of a float type, both zeros in one place.
static double place_of(kl_dtype t, uint64_t bits) {
  if (kl_info(t)->kind == KL_E8M0) return (double)bits;
  uint64_t minus = 1ull << (kl_info(t)->bits - 1);
  return bits & minus ? -(double)(bits & (minus - 1)) : (double)bits;
}

static double distance(kl_dtype t, uint64_t a, uint64_t b) {
  if (kl_is_float(t)) {
    if (kl_float_is_nan(t, a) || kl_float_is_nan(t, b))
      return kl_float_is_nan(t, a) && kl_float_is_nan(t, b) ? 0 : 1e30;
    uint64_t minus = 1ull << (kl_info(t)->bits - 1);
    // Exact where it matters: both patterns on the same side.
    if (t != KILN_F8E8M0FNU && (a & minus) == (b & minus)) return a > b ? (double)(a - b) : (double)(b - a);
    return fabs(place_of(t, a) - place_of(t, b));
  }
  return a == b ? 0 : 1e30;
}

static bool parts_equal(kl_dtype t, const uint64_t a[2], const uint64_t b[2], double n) {
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  for (int p = 0; p < 1 + kl_is_complex(t); p++) {
    if (n == 0 && kl_is_float(part) && !kl_float_is_nan(part, a[p]) && a[p] != b[p]) return false;
    if (!(distance(part, a[p], b[p]) <= n)) return false;
  }
  return true;
}

static bool is_near(kl_dtype t, const uint64_t a[2], const uint64_t b[2], double abs, double rel) {
  kl_dtype part = kl_is_complex(t) ? kl_info(t)->part : t;
  double off = 0, size = 0;
  for (int p = 0; p < 1 + kl_is_complex(t); p++) {
    double x = kl_float_decode(part, a[p]), y = kl_float_decode(part, b[p]);
    if (isnan(x) && isnan(y)) continue;
    if (isnan(x) || isnan(y)) return false;
    if (isinf(x) || isinf(y)) {
      if (x != y) return false;
      continue;
    }
    off = hypot(off, x - y);
    size = hypot(size, y);
  }
  return off <= abs + rel * size;
}

static bool element_holds(const case_array *rule, const kl_result *r, int64_t i, const uint64_t found[2],
                          const uint64_t want[2], bool intervals) {
  kl_dtype t = r->data.shape->dtype;
  bool number = kl_is_float(t) || kl_is_complex(t);
  switch (rule->rule) {
  case CASE_WITHIN:
    return (!intervals || kl_result_allows(r, i, want)) && parts_equal(t, found, want, number ? rule->a : 0);
  case CASE_NEAR: return number ? is_near(t, found, want, rule->a, rule->b) : parts_equal(t, found, want, 0);
  default: return parts_equal(t, found, want, 0) && (!intervals || kl_result_allows(r, i, want));
  }
}

static void element_text(char *buf, size_t size, kl_dtype t, const void *data, int64_t i) {
  char text[96];
  uint64_t bits[2] = {kl_element_get(t, data, i, 0), kl_is_complex(t) ? kl_element_get(t, data, i, 1) : 0};
  kl_scalar_text(text, t, bits);
  snprintf(buf, size, "%s (%llx%s%.0llx)", text, (unsigned long long)bits[0], kl_is_complex(t) ? " " : "",
           (unsigned long long)bits[1]);
}

static bool result_holds(const case_array *rule, int k, const kl_result *r, bool intervals, char *why, size_t size) {
  const kl_shape *s = r->data.shape;
  kl_array want;
  bool ok = new_array(rule, s, &want);
  if (!ok) fail(why, size, "result %d: the case's elements do not fit its shape", k);
  for (int64_t i = 0; i < s->count && ok; i++) {
    uint64_t found[2] = {0}, expected[2] = {0};
    for (int p = 0; p < 1 + kl_is_complex(s->dtype); p++) {
      found[p] = kl_element_get(s->dtype, r->data.data, i, p);
      expected[p] = kl_element_get(s->dtype, want.data, i, p);
    }
    if (element_holds(rule, r, i, found, expected, intervals)) continue;
    char a[160], b[160], lo[160], hi[160];
    element_text(a, sizeof a, s->dtype, r->data.data, i);
    element_text(b, sizeof b, s->dtype, want.data, i);
    element_text(lo, sizeof lo, s->dtype, r->lo, i);
    element_text(hi, sizeof hi, s->dtype, r->hi, i);
    ok = fail(why, size, "result %d (%s), element %lld%s: found %s in [%s, %s], expected %s", k,
              kiln_dtype_name(s->dtype), (long long)i, intervals ? " with intervals" : "", a, lo, hi, b);
  }
  free(want.data);
  return ok;
}

// --- running --------------------------------------------------------------------------------------------------------

static const char *last_finding(kl_ctx *cx) {
  size_t n = kiln_diagnostics_count(cx);
  return n ? kiln_diagnostics_get(cx, n - 1)->text : "";
}

static bool make_inputs(const kiln_module *m, const test_case *t, kl_array *args, char *why, size_t size) {
  const kl_comp *c = &m->comp[m->entry];
  int n = 0;
  for (uint32_t p = 0; p < c->nparams; p++) {
    const kl_shape *s = c->instr[c->params[p]].shape;
    for (size_t l = 0; l < kl_shape_leaf_count(s); l++, n++) {
      if (n >= t->nin) return fail(why, size, "the module has more parameters than the case has inputs");
      if (!new_array(&t->in[n], kl_shape_leaf(s, l), &args[n])) return fail(why, size, "input %d does not fit", n);
    }
  }
  return n == t->nin || fail(why, size, "the module has %d parameters, the case %d inputs", n, t->nin);
}

bool case_holds(kl_ctx *cx, const kiln_module *m, const test_case *t, const kl_eval_opts *opts, char *why,
                size_t size) {
  const kl_comp *c = &m->comp[m->entry];
  kl_array args[CASE_MAX_ARRAYS] = {0};
  kl_result results[CASE_MAX_ARRAYS] = {0};
  int n = (int)kl_shape_leaf_count(kl_root(c)->shape);
  bool ok = make_inputs(m, t, args, why, size);
  if (ok && n != t->nout) ok = fail(why, size, "the module has %d results, the case %d", n, t->nout);
  if (ok) {
    kiln_diagnostics_clear(cx);
    ok = kl_eval(cx, m, m->entry, args, opts, results) == KILN_OK;
    if (!ok) fail(why, size, "%s", last_finding(cx));
    for (int k = 0; k < n && ok; k++) ok = result_holds(&t->out[k], k, &results[k], opts->intervals, why, size);
    for (int k = 0; k < n; k++) kl_result_free(cx, &results[k]);
  }
  for (int k = 0; k < t->nin; k++) free(args[k].data);
  return ok;
}
