// Files, findings, clocks and JSON strings.

#include "kiln.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

char *read_file(const char *path, size_t *size) {
  FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  char *text = NULL;
  size_t n = 0, cap = 0;
  if (f) {
    for (;;) {
      if (n == cap) {
        char *more = realloc(text, cap = cap ? cap * 2 : 65536);
        if (!more) break;
        text = more;
      }
      size_t got = fread(text + n, 1, cap - n, f);
      n += got;
      if (!got) break;
    }
  }
  if (!f || ferror(f) || !text) {
    fprintf(stderr, "kiln: cannot read %s: %s\n", path, strerror(errno));
    free(text);
    text = NULL;
  }
  if (f && f != stdin) fclose(f);
  *size = n;
  return text;
}

int write_output(const char *path, const char *text, size_t size) {
  FILE *f = path ? fopen(path, "wb") : stdout;
  bool ok = f && fwrite(text, 1, size, f) == size;
  if (f && path)
    ok = fclose(f) == 0 && ok;
  else if (f)
    ok = fflush(f) == 0 && ok;
  if (ok) return 0;
  fprintf(stderr, "kiln: cannot write %s: %s\n", path ? path : "standard output", strerror(errno));
  if (path) remove(path);
  return EXIT_BAD_INPUT;
}

int report(kiln_context *cx, kiln_status s) {
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  kiln_diagnostics_clear(cx);
  switch (s) {
  case KILN_OK: return EXIT_DONE;
  case KILN_E_UNSUPPORTED: return EXIT_NOT_SUPPORTED;
  case KILN_E_DEVICE:
  case KILN_E_INTERNAL: return EXIT_DEVICE;
  default: return EXIT_BAD_INPUT;
  }
}

int open_module(kiln_context *cx, const char *path, const char *fusion, kiln_module **out) {
  size_t size;
  char *text = read_file(path, &size);
  *out = NULL;
  if (!text) return EXIT_BAD_INPUT;
  kiln_status s = kiln_module_parse(cx, path, text, size, out);
  free(text);
  if (s == KILN_OK && fusion) {
    kiln_module *part = NULL;
    s = kiln_module_extract(cx, *out, fusion, &part);
    kiln_module_destroy(out);
    *out = part;
  }
  return report(cx, s);
}

double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void json_string(FILE *to, const char *text) {
  fputc('"', to);
  for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
    if (*p == '"' || *p == '\\')
      fprintf(to, "\\%c", *p);
    else if (*p < 32)
      fprintf(to, "\\u%04x", *p);
    else
      fputc(*p, to);
  }
  fputc('"', to);
}
