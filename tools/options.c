// Words of the command line.

#include "kiln.h"
#include <string.h>

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

// "--name VALUE" and "--name=VALUE".
static int take_option(const verb *v, int argc, char **argv, int *at, args *out) {
  const char *word = argv[*at], *equals = strchr(word, '=');
  size_t n = equals ? (size_t)(equals - word) : strlen(word);
  int o = find_option(v, word, n);
  if (o < 0) return bad(v, "unknown option", word);
  const char *value = "";
  if (v->options[o].value) {
    if (equals)
      value = equals + 1;
    else if (*at + 1 < argc)
      value = argv[++*at];
    else
      return bad(v, "a value is missing after", word);
  } else if (equals) {
    return bad(v, "no value goes with", word);
  }
  if (out->count == (int)(sizeof out->all / sizeof out->all[0])) return bad(v, "too many options at", word);
  out->values[o] = value;
  out->all[out->count].option = o;
  out->all[out->count++].value = value;
  return 0;
}

int args_parse(const verb *v, int argc, char **argv, args *out) {
  memset(out, 0, sizeof *out);
  bool options = true;
  for (int i = 0; i < argc; i++) {
    int status = 0;
    if (options && strcmp(argv[i], "--") == 0)
      options = false;
    else if (options && argv[i][0] == '-' && argv[i][1])
      status = take_option(v, argc, argv, &i, out);
    else if (!v->takes_file || out->file)
      status = bad(v, "unexpected word", argv[i]);
    else
      out->file = argv[i];
    if (status) return status;
  }
  if (v->takes_file && !out->file) {
    fprintf(stderr, "kiln %s: expected a file: kiln %s\n", v->name, v->synopsis);
    return EXIT_BAD_INPUT;
  }
  return 0;
}

void verb_help(const verb *v, FILE *to) {
  fprintf(to, "kiln %s\n\n%s\n", v->synopsis, v->help);
  if (v->options[0].name) fprintf(to, "\nOptions:\n");
  for (const option *o = v->options; o->name; o++) {
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    fprintf(to, "  %-26s %s\n", left, o->help);
  }
}

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
