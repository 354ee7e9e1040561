// Words of the command line.

#include "kiln.h"
#include <stdlib.h>
#include <string.h>

// --- misspelt words -------------------------------------------------------------------------------------------------

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

enum { LONGEST_WORD = 40 };

// Letters to insert, drop, replace or swap with their neighbour until `a` is `b`.
static size_t distance(const char *a, size_t na, const char *b, size_t nb) {
  size_t rows[3][LONGEST_WORD + 1]; // of the prefix of `a` two letters, one letter shorter, and this one
  if (na > LONGEST_WORD || nb > LONGEST_WORD) return LONGEST_WORD;
  for (size_t j = 0; j <= nb; j++) rows[1][j] = j;
  for (size_t i = 1; i <= na; i++) {
    size_t *now = rows[2];
    now[0] = i;
    for (size_t j = 1; j <= nb; j++) {
      now[j] = least(rows[1][j - 1] + (a[i - 1] != b[j - 1]), least(rows[1][j], now[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = least(now[j], rows[0][j - 2] + 1);
    }
    memmove(rows, rows + 1, 2 * sizeof rows[0]);
  }
  return rows[1][nb];
}

const char *nearest(const char *word, size_t n, const char *const *words) {
  const char *best = NULL;
  size_t least_distance = 3;
  for (; *words; words++) {
    size_t length = strlen(*words), d = distance(word, n, *words, length);
    bool begun = n >= 3 && n < length && strncmp(word, *words, n) == 0;
    if (begun && d > 2) d = 2;
    if (d >= least_distance || d >= length) continue;
    least_distance = d;
    best = *words;
  }
  return best;
}

// --- options --------------------------------------------------------------------------------------------------------

static int find_option(const verb *v, const char *word, size_t n) {
  for (int i = 0; v->options[i].name; i++) {
    if (strlen(v->options[i].name) == n && memcmp(v->options[i].name, word, n) == 0) return i;
  }
  return -1;
}

static int bad(const verb *v, const char *what, const char *word) {
  fprintf(stderr, "kiln %s: %s '%s' (kiln %s --help lists the options)\n", v->name, what, word, v->name);
  return EXIT_BAD_INPUT;
}

static int unknown(const verb *v, const char *word, size_t n) {
  const char *names[64], *meant;
  int count = 0;
  for (; v->options[count].name && count < 63; count++) names[count] = v->options[count].name;
  names[count] = NULL;
  meant = nearest(word, n, names);
  if (!meant) return bad(v, "unknown option", word);
  fprintf(stderr, "kiln %s: unknown option '%s': did you mean %s? (kiln %s --help lists the options)\n", v->name, word,
          meant, v->name);
  return EXIT_BAD_INPUT;
}

// A word that is itself an option is no value, unless it is written so: "--output=--check".
static int missing(const verb *v, const char *word, const char *next) {
  if (!next) return bad(v, "a value is missing after", word);
  fprintf(stderr, "kiln %s: a value is missing after '%s': %s is an option (if it is meant, write %s=%s)\n", v->name,
          word, next, word, next);
  return EXIT_BAD_INPUT;
}

// "--name VALUE", "--name=VALUE", and "-nVALUE" where the name is a letter.
static int take_option(int argc, char **argv, int *at, args *out) {
  const verb *v = out->verb;
  const char *word = argv[*at], *equals = strchr(word, '='), *value = "", *attached = equals ? equals + 1 : NULL;
  size_t n = equals ? (size_t)(equals - word) : strlen(word);
  int o = find_option(v, word, n);
  if (o < 0 && n > 2 && word[1] != '-' && (o = find_option(v, word, 2)) >= 0) attached = word + 2;
  if (o < 0) return unknown(v, word, n);
  if (!v->options[o].value) {
    if (attached) return bad(v, "no value goes with", word);
  } else if (attached || v->options[o].value[0] == '[') {
    value = attached ? attached : "";
  } else {
    const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;
    if (!next || find_option(v, next, strcspn(next, "=")) >= 0) return missing(v, word, next);
    value = argv[++*at];
  }
  if (v->options[o].value && !v->options[o].many && out->values[o])
    return bad(v, "more than one value for", v->options[o].name);
  out->values[o] = value;
  out->all[out->count++] = (given){o, value};
  return 0;
}

int args_parse(const verb *v, int argc, char **argv, args *out) {
  *out = (args){.verb = v, .all = calloc((size_t)argc + 1, sizeof *out->all)};
  bool options = true;
  if (!out->all) return bad(v, "no memory for", "the words");
  for (int i = 0; i < argc; i++) {
    int status = 0;
    if (options && strcmp(argv[i], "--") == 0)
      options = false;
    else if (options && argv[i][0] == '-' && argv[i][1])
      status = take_option(argc, argv, &i, out);
    else if (v->takes_file && !out->file)
      out->file = argv[i];
    else if (v->takes_second && !out->second)
      out->second = argv[i];
    else
      status = bad(v, "unexpected word", argv[i]);
    if (status) return status;
  }
  bool alone = false;
  for (int i = 0; i < out->count; i++) alone |= v->options[out->all[i].option].alone;
  if (v->takes_file && !out->file && !alone) {
    fprintf(stderr, "kiln %s: a word is missing: kiln %s\n", v->name, v->synopsis);
    return EXIT_BAD_INPUT;
  }
  return 0;
}

void args_free(args *a) {
  free(a->all);
  a->all = NULL;
}

// --- values ---------------------------------------------------------------------------------------------------------

bool number(const char *text, unsigned long long lo, unsigned long long hi, unsigned long long *out) {
  unsigned long long v = 0;
  if (!*text) return false;
  for (; *text; text++) {
    if (*text < '0' || *text > '9') return false;
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (unsigned)(*text - '0'), &v)) return false;
  }
  *out = v;
  return v >= lo && v <= hi;
}

int bad_value(const args *a, int option, const char *value, const char *expected) {
  fprintf(stderr, "kiln %s: %s '%s': %s\n", a->verb->name, a->verb->options[option].name, value, expected);
  return EXIT_BAD_INPUT;
}

int read_number(const args *a, int option, unsigned long long lo, unsigned long long hi, const char *expected,
                unsigned long long *out) {
  const char *value = a->values[option];
  unsigned long long n;
  if (!value) return 0;
  if (!number(value, lo, hi, &n)) return bad_value(a, option, value, expected);
  *out = n;
  return 0;
}

// --- help -----------------------------------------------------------------------------------------------------------

void verb_help(const verb *v, FILE *to) {
  fprintf(to, "kiln %s\n\n%s\n", v->synopsis, v->help);
  if (v->options[0].name) fprintf(to, "\nOptions:\n");
  for (const option *o = v->options; o->name; o++) {
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", o->name, o->value && *o->value != '[' ? " " : "", o->value ? o->value : "");
    fprintf(to, "  %-26s %s%s\n", left, o->help, o->many ? "; may be given again" : "");
  }
}
