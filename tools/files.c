// Files, findings, clocks and JSON strings.

#include "kiln.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

char *read_file(const char *path, size_t *size) {
  FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  char *text = NULL;
  size_t n = 0, cap = 0;
  bool ok = f != NULL;
  for (size_t got = 1; ok && got;) {
    if (n == cap) {
      char *more = realloc(text, cap = cap ? cap * 2 : 65536);
      if (!more) ok = false;
      if (!more) break;
      text = more;
    }
    n += got = fread(text + n, 1, cap - n, f);
    ok = !ferror(f);
  }
  if (!ok) {
    fprintf(stderr, "kiln: cannot read %s: %s\n", f == stdin ? "standard input" : path, strerror(errno));
    free(text);
    text = NULL;
  }
  if (f && f != stdin) fclose(f);
  *size = n;
  return text;
}

FILE *output_open(const char *path) {
  return path ? fopen(path, "wb") : stdout;
}

int output_close(FILE *f, const char *path) {
  bool ok = f && fflush(f) == 0 && !ferror(f);
  if (!ok) fprintf(stderr, "kiln: cannot write %s: %s\n", path ? path : "standard output", strerror(errno));
  if (f && f != stdout) {
    struct stat st;
    fclose(f);
    if (!ok && lstat(path, &st) == 0 && S_ISREG(st.st_mode)) remove(path); // a device or a link stays
  }
  return ok ? 0 : EXIT_BAD_INPUT;
}

int write_output(const char *path, const char *text, size_t size) {
  FILE *f = output_open(path);
  if (f) fwrite(text, 1, size, f);
  return output_close(f, path);
}

int report(kiln_context *cx, kiln_status s) {
  if (s == KILN_E_MEMORY && kiln_diagnostics_count(cx) == 0) fprintf(stderr, "kiln: out of memory\n");
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) {
    const kiln_diagnostic *d = kiln_diagnostics_get(cx, i);
    fprintf(stderr, "%s%s", d->file ? "" : "kiln: ", d->text);
  }
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
  kiln_status s = kiln_module_parse(cx, strcmp(path, "-") == 0 ? "<stdin>" : path, text, size, out);
  free(text);
  if (s == KILN_OK && fusion) {
    kiln_module *part = NULL;
    s = kiln_module_extract(cx, *out, fusion, &part);
    kiln_module_destroy(out);
    *out = part;
  }
  return report(cx, s);
}

void progress(const char *doing) {
  if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K%s%s", doing ? doing : "", doing ? " ..." : "");
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
    else if (*p == '\n')
      fputs("\\n", to);
    else if (*p == '\t')
      fputs("\\t", to);
    else if (*p < 32 || *p == 127)
      fprintf(to, "\\u%04x", *p);
    else
      fputc(*p, to);
  }
  fputc('"', to);
}

int out_of_memory(int64_t bytes) {
  fprintf(stderr, "kiln: no memory for an array of %lld bytes\n", (long long)bytes);
  return EXIT_BAD_INPUT;
}
