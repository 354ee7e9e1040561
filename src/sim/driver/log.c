// What the driver found, in words: kept for those who ask, told to those who registered, written where CUDA_LOG_FILE
// says.

#include "sim/driver/impl.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_ENTRIES = 100, MOST_LISTENERS = 16 };

typedef struct entry {
  CUlogLevel level;
  char *text;  // one line or more, without the last end of line
  size_t size; // of its block
} entry;

static struct {
  entry entries[MOST_ENTRIES]; // a ring, by number
  unsigned n, told;            // ever made; told to listeners
  struct {
    CUlogsCallback fn;
    void *data;
  } listeners[MOST_LISTENERS];
  FILE *file;
  bool opened;
} the_log;

void kl_log_open(void) {
  const char *name = getenv("CUDA_LOG_FILE");
  if (the_log.opened || !name || !*name) return;
  the_log.opened = true;
  the_log.file = strcmp(name, "stdout") == 0 ? stdout : strcmp(name, "stderr") == 0 ? stderr : fopen(name, "a");
}

// --- telling --------------------------------------------------------------------------------------------------------

typedef struct telling {
  CUlogsCallback fn;
  void *data;
  CUlogLevel level;
  char *text;
} telling;

static void tell(void *arg) {
  telling *t = arg;
  t->fn(t->data, t->level, t->text, strlen(t->text));
}

static void add(CUlogLevel level, const char *text) {
  entry *e = &the_log.entries[the_log.n % MOST_ENTRIES];
  size_t n = strlen(text);
  while (n && text[n - 1] == '\n') n--;
  kl_free(kl_sim.cx, e->text, e->size);
  *e = (entry){.level = level, .text = kl_alloc(kl_sim.cx, n + 1), .size = n + 1};
  memcpy(e->text, text, n);
  the_log.n++;
  if (the_log.file) fprintf(the_log.file, "%s\n", e->text), fflush(the_log.file);
}

// The lock is free while a listener is told, so others may add entries meanwhile, and tell them.
static void tell_all(void) {
  while (the_log.told < the_log.n) {
    const entry *e = &the_log.entries[the_log.told++ % MOST_ENTRIES];
    for (int i = 0; i < MOST_LISTENERS; i++) {
      if (!the_log.listeners[i].fn) continue;
      size_t size = e->size;
      telling t = {the_log.listeners[i].fn, the_log.listeners[i].data, e->level, kl_alloc(kl_sim.cx, size)};
      memcpy(t.text, e->text, size);
      kl_sim_call_out(tell, &t);
      kl_free(kl_sim.cx, t.text, size);
    }
  }
}

void kl_log_findings(void) {
  kl_ctx *cx = kl_sim.cx;
  size_t n = cx ? kiln_diagnostics_count(cx) : 0;
  if (n == 0) return;
  for (size_t i = 0; i < n; i++) {
    const kiln_diagnostic *d = kiln_diagnostics_get(cx, i);
    if (d->severity != KILN_NOTE) add(d->severity == KILN_ERROR ? CU_LOG_LEVEL_ERROR : CU_LOG_LEVEL_WARNING, d->text);
  }
  kiln_diagnostics_clear(cx);
  tell_all();
}

// --- the driver's calls
// -----------------------------------------------------------------------------------------------

CUresult kl_cuLogsRegisterCallback(CUlogsCallback fn, void *data, CUlogsCallbackHandle *out) {
  KL_GIVEN((void *)(uintptr_t)fn, out);
  for (int i = 0; i < MOST_LISTENERS; i++) {
    if (the_log.listeners[i].fn) continue;
    the_log.listeners[i].fn = fn;
    the_log.listeners[i].data = data;
    *out = (CUlogsCallbackHandle)(uintptr_t)(i + 1);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult kl_cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  uintptr_t i = (uintptr_t)handle - 1;
  if (i >= MOST_LISTENERS || !the_log.listeners[i].fn) return CUDA_ERROR_INVALID_VALUE;
  the_log.listeners[i].fn = NULL;
  return CUDA_SUCCESS;
}

CUresult kl_cuLogsCurrent(CUlogIterator *out, unsigned flags) {
  KL_GIVEN(out);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  *out = the_log.n;
  return CUDA_SUCCESS;
}

// The entries from an iterator's on, or all that are kept.
static unsigned first_of(const CUlogIterator *from) {
  unsigned kept = the_log.n > MOST_ENTRIES ? the_log.n - MOST_ENTRIES : 0;
  return from && *from > kept ? *from : kept;
}

CUresult kl_cuLogsDumpToFile(CUlogIterator *from, const char *path, unsigned flags) {
  KL_GIVEN(path);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  FILE *f = fopen(path, "w");
  if (!f) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = first_of(from); i < the_log.n; i++) fprintf(f, "%s\n", the_log.entries[i % MOST_ENTRIES].text);
  bool failed = ferror(f);
  failed |= fclose(f) != 0;
  if (failed) return CUDA_ERROR_OPERATING_SYSTEM;
  if (from) *from = the_log.n;
  return CUDA_SUCCESS;
}

// Whole entries, the newest that find room; *size: the buffer's, then the text's with its NUL.
CUresult kl_cuLogsDumpToMemory(CUlogIterator *from, char *to, size_t *size, unsigned flags) {
  KL_GIVEN(to, size);
  if (flags || *size == 0) return CUDA_ERROR_INVALID_VALUE;
  unsigned first = the_log.n, least = first_of(from);
  size_t n = 1;
  while (first > least) {
    size_t line = strlen(the_log.entries[(first - 1) % MOST_ENTRIES].text) + 1;
    if (n + line > *size) break;
    n += line;
    first--;
  }
  char *at = to;
  *at = 0;
  for (; first < the_log.n; first++) at += sprintf(at, "%s\n", the_log.entries[first % MOST_ENTRIES].text);
  *size = n;
  if (from) *from = the_log.n;
  return CUDA_SUCCESS;
}
