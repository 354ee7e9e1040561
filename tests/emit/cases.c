// Cases of each kind of kernel: the modules of the files in cases/, a folder for each kind. Host and simulator, the
// same bits, against the evaluator; in place where a result may be a parameter; PTX through ptxas.
//
// A file has one module or several, with an empty line and a comment between them. Lines of the comment that stand
// above a module may say what parameters are filled with, and what plan or PTX must have:
//
//   // parameter 1: below 8x9 sorted       vectors of places in 8 x 9, of which any may come again; `unique`: none does
//   // parameter 2: -3..12                 integers
//   // sm_90 plan has: transpose over      or lacks, or once; or ptx
//   // plans only                          it is too large to run
//
// By default the first module of each file runs for one GPU of four with one set of data of two, and so does one in
// four of the others; one in sixteen is assembled for one. KILN_TEST_SHARE=64 is everything.
#include "harness.h"
#include "support/random.h"
#include "support/share.h"
#include "support/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_FILES = 512, MOST_MODULES = 2 * MOST_FILES, MOST_TEXT = 1 << 18, GPUS = TARGETS - 1 };

typedef struct module {
  const char *path, *text;
  bool first; // of its file
} module;

static module modules[MOST_MODULES];
static int nmodules;
static const char *running; // the module whose parameters are filled

// --- files ----------------------------------------------------------------------------------------------------------

static void *out_of(const char *path) {
  fprintf(stderr, "%s: cannot be read\n", path);
  exit(EXIT_FAILURE);
}

// The text is never given back: modules are parts of it.
static char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  char *text = f ? calloc(1, MOST_TEXT) : out_of(path);
  if (!text || fread(text, 1, MOST_TEXT - 1, f) == 0) out_of(path);
  fclose(f);
  return text;
}

static void take_modules(const char *path) {
  char *text = read_file(path);
  for (char *p = text, *next; p; p = next) {
    next = strstr(p, "\n\n// ");
    if (next) *next = '\0', next += 2;
    if (nmodules == MOST_MODULES) out_of(path);
    modules[nmodules++] = (module){path, p, p == text};
  }
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

// Entries of a folder in order, whose names end so; "": have no ending.
static size_t list(const char *folder, const char *end, char **out, size_t n) {
  DIR *d = opendir(folder);
  if (!d) out_of(folder);
  size_t first = n;
  for (struct dirent *e; (e = readdir(d));) {
    const char *dot = strrchr(e->d_name, '.');
    if (strcmp(dot ? dot : "", end) != 0) continue;
    if (n == MOST_FILES || asprintf(&out[n++], "%s/%s", folder, e->d_name) < 0) out_of(folder);
  }
  closedir(d);
  qsort(out + first, n - first, sizeof *out, by_name);
  return n;
}

static void find_modules(void) {
  static char *kinds[MOST_FILES], *files[MOST_FILES];
  size_t n = 0;
  for (size_t k = 0, all = list(KL_TESTS "/emit/cases", "", kinds, 0); k < all; k++)
    n = list(kinds[k], ".hlo", files, n);
  for (size_t i = 0; i < n; i++) take_modules(files[i]);
}

// The next comment line of a module's text that begins so; what follows there, up to its end.
static const char *next_line(const char **at, const char *begin, char *line, size_t size) {
  for (const char *p = *at; p && strncmp(p, "//", 2) == 0; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
    if (strncmp(p + 3, begin, strlen(begin)) != 0) continue;
    p += 3 + strlen(begin);
    snprintf(line, size, "%.*s", (int)strcspn(p, "\n"), p);
    *at = p + strcspn(p, "\n");
    *at += **at == '\n';
    return line;
  }
  return NULL;
}

// --- parameters -----------------------------------------------------------------------------------------------------

static void shuffle(int64_t *v, size_t n) {
  for (size_t i = n; i > 1; i--) {
    size_t k = random_bits() % i;
    int64_t t = v[i - 1];
    v[i - 1] = v[k], v[k] = t;
  }
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// n of the numbers below `places`, in ascending order where they are sorted.
static void draw_places(int64_t *v, size_t n, int64_t places, bool sorted, bool unique) {
  size_t k = 0;
  for (int64_t at = 0; unique && at < places; at++)
    if (random_bits() % (uint64_t)(places - at) < n - k) v[k++] = at;
  for (; k < n; k++) v[k] = (int64_t)(random_bits() % (uint64_t)places);
  if (sorted) qsort(v, n, sizeof *v, by_value);
  if (!sorted) shuffle(v, n);
}

// Entries of vectors that are places in an array of these dimensions.
static void draw_vectors(const char *dims, bool sorted, bool unique, int64_t *v, size_t n) {
  int64_t size[KILN_MAX_RANK], places = 1;
  size_t rank = 0;
  for (char *end; rank < KILN_MAX_RANK; dims = end + 1) {
    places *= size[rank++] = strtoll(dims, &end, 10);
    if (*end != 'x') break;
  }
  size_t vectors = n / rank;
  draw_places(v, vectors, places, sorted, unique);
  for (size_t i = vectors; i-- > 0;)
    for (size_t d = rank, place = (size_t)v[i]; d-- > 0; place /= (size_t)size[d])
      v[i * rank + d] = (int64_t)(place % (size_t)size[d]);
}

static void change(const kiln_module *m, size_t parameter, unsigned seed, void *buffer) {
  char what[128], key[32];
  kiln_array_type t;
  const char *at = running;
  snprintf(key, sizeof key, "parameter %zu: ", parameter);
  if (!next_line(&at, key, what, sizeof what)) return;
  ck_assert(kiln_module_parameter_leaf_type(m, parameter, &t));
  size_t bytes = kiln_dtype_bits(t.dtype) / 8, n = (size_t)kiln_module_parameter_leaf_bytes(m, parameter) / bytes;
  int64_t *v = calloc(n + 1, sizeof *v);
  long long low, high;
  random_seed(seed * 64u + parameter);
  if (strncmp(what, "below ", 6) == 0) {
    draw_vectors(what + 6, strstr(what, " sorted"), strstr(what, " unique"), v, n);
  } else {
    ck_assert_msg(sscanf(what, "%lld..%lld", &low, &high) == 2, "%s", what);
    for (size_t i = 0; i < n; i++) v[i] = low + (int64_t)(random_bits() % (uint64_t)(high - low + 1));
  }
  for (size_t i = 0; i < n; i++) memcpy((char *)buffer + i * bytes, &v[i], bytes);
  free(v);
}

// --- what must be there ---------------------------------------------------------------------------------------------

// How often, at least and at most.
static void bounds_of(const char *verb, unsigned *least, unsigned *most) {
  *least = strncmp(verb, "lacks", 5) != 0;
  *most = strncmp(verb, "has", 3) == 0 ? UINT32_MAX : *least;
}

static void check_text(kiln_context *cx, const kiln_module *m, unsigned t, const char *text) {
  char line[512], key[32];
  const kiln_artifact *a = NULL;
  snprintf(key, sizeof key, "%s ", targets[t]);
  for (const char *at = text; next_line(&at, key, line, sizeof line);) {
    bool ptx = strncmp(line, "ptx ", 4) == 0;
    const char *verb = strchr(line, ' ') + 1, *what = strstr(verb, ": ");
    unsigned least, most;
    ck_assert_msg(what && (ptx || strncmp(line, "plan ", 5) == 0), "%s", line);
    bounds_of(verb, &least, &most);
    if (!a) a = compiled_for(cx, m, t, t, text);
    const char *in = kiln_artifact_text(a, ptx ? KILN_TEXT_PTX : KILN_TEXT_PLAN, NULL);
    unsigned n = occurrences(in, what + 2);
    ck_assert_msg(least <= n && n <= most, "%s %s: found %u times\n%s\n%s", targets[t], line, n, text, in);
  }
}

// --- running --------------------------------------------------------------------------------------------------------

static void run_in_place(kiln_context *cx, const kiln_module *m, unsigned t, unsigned number, const char *text) {
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = targets[t]};
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(number, targets[t], cx, text);
  if (pairs_of(a)) run_in_place_and_check(cx, m, a, pairs_of(a), number, text);
  kiln_artifact_destroy(&a);
}

static void run(kiln_context *cx, const kiln_module *m, unsigned number, const char *text) {
  running = text;
  for (unsigned k = 0; k < share_up_to(1, 2 * GPUS); k++) {
    unsigned t = 1 + (number + k) % GPUS, data = number / GPUS + k / GPUS;
    deterministic = (number + k) % 3 == 0;
    run_both_and_check(cx, m, t, data % 2, text);
    if (strstr(text, "must-alias")) run_in_place(cx, m, k ? t : HOST, data, text), run_in_place(cx, m, t, data, text);
  }
  deterministic = false;
}

START_TEST(is_right_everywhere) {
  if (!share_has((uint64_t)_i, 1)) return;
  const char *text = modules[_i].text;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, modules[_i].path, text, strlen(text), &m) != KILN_OK)
    give_up(0, modules[_i].path, cx, text);
  for (unsigned t = 1; t <= FAMILY; t++)
    if (t != HOST) check_text(cx, m, t, text);
  bool runs = !strstr(text, "// plans only") && (modules[_i].first || share_has((uint64_t)_i, 4));
  if (runs) run(cx, m, (unsigned)_i, text);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
}
END_TEST

// All for one target in one run of ptxas.
START_TEST(is_assembled) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  for (int i = 0; i < nmodules; i++) {
    kiln_module *m = NULL;
    const char *text = modules[i].text;
    if (!share_has((uint64_t)(i * GPUS + _i), 16 * GPUS)) continue;
    if (kiln_module_parse(cx, modules[i].path, text, strlen(text), &m) != KILN_OK)
      give_up(0, modules[i].path, cx, text);
    batch_add(batches, 1 + (unsigned)_i, cx, m, (unsigned)i, text);
    kiln_module_destroy(&m);
  }
  batches_free(batches);
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  change_parameter = change;
  keep = KILN_KEEP_PLAN;
  find_modules();
  return RUN_TESTS("cases", NO_FRAME, {is_right_everywhere, nmodules}, {is_assembled, GPUS});
}
