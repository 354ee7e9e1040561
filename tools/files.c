// Files, findings, clocks and JSON strings.

#include "kiln.h"
#include "memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *shown(const char *path) {
  return *path ? path : "''";
}

// --- reading --------------------------------------------------------------------------------------------------------

static struct stat module_file; // what open_module has read: nothing is written over it

// Files that are longer, or that never end, are not read whole: kiln parses no text of 2 GiB, and parsing takes a few
// times a text's size.
static size_t longest(void) {
  int64_t most = kiln_memory_available() / 4;
  if (most < 1 << 20) most = 1 << 20;
  return most < INT32_MAX - 1 ? (size_t)most : INT32_MAX - 1;
}

static char *too_long(const char *name, size_t limit) {
  char text[32];
  memory_text((int64_t)limit, text, sizeof text);
  fprintf(stderr, "kiln: cannot read %s: it has more than %zu bytes (%s), the most that can be read here\n", name,
          limit, text);
  return NULL;
}

// At most limit + 1 bytes, and a NUL behind them; NULL with errno set.
static char *read_all(FILE *f, size_t limit, size_t *size) {
  char *text = NULL;
  size_t n = 0, cap = 0;
  for (size_t got = 1; got && n <= limit;) {
    if (n == cap) {
      cap = cap ? cap * 2 : 65536;
      if (cap > limit + 1) cap = limit + 1;
      char *more = realloc(text, cap + 1);
      if (!more) break;
      text = more;
    }
    n += got = fread(text + n, 1, cap - n, f);
    *size = n;
    text[n] = 0;
    if (got == 0 && !ferror(f)) return text;
  }
  if (n > limit) return text;
  free(text);
  return NULL;
}

static char *read_stream(FILE *f, const char *name, size_t *size) {
  size_t limit = longest();
  if (f && fstat(fileno(f), &module_file) == 0 && S_ISREG(module_file.st_mode) && module_file.st_size > (off_t)limit)
    return too_long(name, limit);
  char *text = f ? read_all(f, limit, size) : NULL;
  if (!text) fprintf(stderr, "kiln: cannot read %s: %s\n", name, strerror(errno));
  if (!text || *size <= limit) return text;
  free(text);
  return too_long(name, limit);
}

char *read_file(const char *path, size_t *size) {
  bool is_stdin = strcmp(path, "-") == 0;
  FILE *f = is_stdin ? stdin : fopen(path, "rb");
  char *text = read_stream(f, is_stdin ? "standard input" : shown(path), size);
  if (f && f != stdin) fclose(f);
  return text;
}

// --- writing --------------------------------------------------------------------------------------------------------

static bool is_module_file(const char *path) {
  struct stat st;
  return S_ISREG(module_file.st_mode) && stat(path, &st) == 0 && st.st_dev == module_file.st_dev &&
         st.st_ino == module_file.st_ino;
}

FILE *output_open(const char *path) {
  return !path ? stdout : is_module_file(path) ? NULL : fopen(path, "wb");
}

int output_close(FILE *f, const char *path) {
  bool ok = f && fflush(f) == 0 && !ferror(f);
  if (!ok)
    fprintf(stderr, "kiln: cannot write %s: %s\n", path ? shown(path) : "standard output",
            !f && is_module_file(path) ? "it is the file that was read" : strerror(errno));
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

// --- modules --------------------------------------------------------------------------------------------------------

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
  case KILN_E_INTERNAL:
  case KILN_E_CANCELLED: return EXIT_DEVICE;
  default: return EXIT_BAD_INPUT;
  }
}

int parse_module(kiln_context *cx, const char *path, const char *text, size_t size, const char *fusion,
                 kiln_module **out) {
  *out = NULL;
  if (kiln_bundle_is_saved(text, size)) {
    fprintf(stderr, "kiln: %s: expected the text of a module, found a compiled artifact, which kiln run takes\n",
            shown(path));
    return EXIT_BAD_INPUT;
  }
  kiln_status s = kiln_module_parse(cx, strcmp(path, "-") == 0 ? "<stdin>" : path, text, size, out);
  if (s == KILN_OK && fusion) {
    kiln_module *part = NULL;
    s = kiln_module_extract(cx, *out, fusion, &part);
    kiln_module_destroy(out);
    *out = part;
  }
  return report(cx, s);
}

int open_module(kiln_context *cx, const char *path, const char *fusion, kiln_module **out) {
  size_t size;
  char *text = read_file(path, &size);
  *out = NULL;
  if (!text) return EXIT_BAD_INPUT;
  int status = parse_module(cx, path, text, size, fusion, out);
  free(text);
  return status;
}

// --- talk -----------------------------------------------------------------------------------------------------------

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
