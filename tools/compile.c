// kiln compile: PTX, machine code, C header, manifest, plan or LLVM IR of a module's kernels.

#include "manifest.h"
#include <string.h>

enum { O_TARGET, O_EMIT, O_OUT, O_FUSION, O_ALIGN, O_ALIAS, O_VALUE, O_COUNT, O_PROGRAMMATIC, O_AFTER };
static const option options[] = {
    {"--target", "TARGET", "sm_75 to sm_121, with a or f where NVIDIA has it, or host (default sm_90)"},
    {"--emit", "KIND", "ptx, cubin, header, json, plan or llvm (default ptx; for host llvm)"},
    {"-o", "OUT", "write to this file (default -, standard output)"},
    {"--fusion", "NAME", "only this fusion of ENTRY"},
    {"--align", "BYTES", "that every argument is aligned to (default 16)"},
    {"--alias", "P=R", "parameter P and result R may be the same buffer; may be given again"},
    {"--by-value", NULL, "rank-0 integer parameters are kernel arguments themselves"},
    {"--max-count", "N", "the element count, up to N, is given at run time"},
    {"--programmatic", NULL, "kernels may begin while the one before still runs, and wait for it (sm_90 on)"},
    {"--print-after", "PASS", "print the IR after this pass (build, early-cse, dce) or after all, to standard error"},
    {0},
};

static void print_pass(void *user, const char *kernel, const char *pass, const char *ir) {
  const char *want = user;
  if (strcmp(want, "all") != 0 && strcmp(want, pass) != 0) return;
  fprintf(stderr, "; %s after %s\n%s\n", kernel, pass, ir);
}

// --- what is asked for
// ------------------------------------------------------------------------------------------------

static const char *const kinds[] = {"ptx", "cubin", "header", "json", "plan", "llvm"};
static const char *const passes[] = {"build", "early-cse", "dce", "all"};

static bool is_one_of(const char *word, const char *const *words, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(word, words[i]) == 0) return true;
  return false;
}

static int check_words(const char *emit, const char *after) {
  bool known = is_one_of(emit, kinds, sizeof kinds / sizeof kinds[0]);
  bool pass = !after || is_one_of(after, passes, sizeof passes / sizeof passes[0]);
  if (!known) fprintf(stderr, "kiln compile: --emit '%s': expected ptx, cubin, header, json, plan or llvm\n", emit);
  if (!pass) fprintf(stderr, "kiln compile: --print-after '%s': expected build, early-cse, dce or all\n", after);
  return known && pass ? 0 : EXIT_BAD_INPUT;
}

static bool read_alias(const char *text, kiln_alias *out) {
  unsigned long long p, r;
  const char *equals = strchr(text, '=');
  char first[24] = "";
  if (!equals || (size_t)(equals - text) >= sizeof first) return false;
  memcpy(first, text, (size_t)(equals - text));
  if (!number(first, 0, UINT32_MAX, &p) || !number(equals + 1, 0, UINT32_MAX, &r)) return false;
  *out = (kiln_alias){(uint32_t)p, (uint32_t)r};
  return true;
}

static int read_numbers(const args *a, kiln_compile_params *p, kiln_alias *aliases) {
  unsigned long long n = 0;
  p->aliases = aliases;
  for (int i = 0; i < a->count; i++) {
    if (a->all[i].option != O_ALIAS) continue;
    if (!read_alias(a->all[i].value, &aliases[p->alias_count++])) {
      fprintf(stderr, "kiln compile: --alias '%s': expected P=R, the numbers of a parameter and a result\n",
              a->all[i].value);
      return EXIT_BAD_INPUT;
    }
  }
  if (a->values[O_ALIGN] && !number(a->values[O_ALIGN], 1, 4096, &n)) {
    fprintf(stderr, "kiln compile: --align '%s': expected a power of two up to 4096\n", a->values[O_ALIGN]);
    return EXIT_BAD_INPUT;
  }
  p->argument_align = (uint32_t)n;
  n = 0;
  if (a->values[O_COUNT] && !number(a->values[O_COUNT], 1, INT64_MAX, &n)) {
    fprintf(stderr, "kiln compile: --max-count '%s': expected a number of elements from 1\n", a->values[O_COUNT]);
    return EXIT_BAD_INPUT;
  }
  p->max_count = (int64_t)n;
  return 0;
}

// --- what comes out
// -----------------------------------------------------------------------------------------------------

static int write_text(const char *path, const kiln_artifact *a, kiln_text_kind kind) {
  size_t size;
  const char *text = kiln_artifact_text(a, kind, &size);
  if (text) return write_output(path, text, size);
  fprintf(stderr, "kiln compile: target %s has no PTX: --emit llvm, plan or json\n", kiln_artifact_manifest(a)->target);
  return EXIT_BAD_INPUT;
}

static int write_artifact(const char *emit, const char *path, const kiln_module *m, const kiln_artifact *a) {
  if (strcmp(emit, "json") == 0) return write_json(path, a);
  if (strcmp(emit, "header") == 0) return write_header(path, kiln_module_name(m), a);
  if (strcmp(emit, "cubin") == 0) return write_cubin(path, a);
  if (strcmp(emit, "plan") == 0) return write_text(path, a, KILN_TEXT_PLAN);
  return write_text(path, a, strcmp(emit, "llvm") == 0 ? KILN_TEXT_LLVM : KILN_TEXT_PTX);
}

static int run(const args *a) {
  const char *target = a->values[O_TARGET], *emit = a->values[O_EMIT], *after = a->values[O_AFTER];
  if (!emit) emit = target && strcmp(target, "host") == 0 ? "llvm" : "ptx";
  kiln_alias aliases[sizeof a->all / sizeof a->all[0]];
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .fusion = a->values[O_FUSION]};
  p.keep = (strcmp(emit, "plan") == 0 ? KILN_KEEP_PLAN : 0) | (strcmp(emit, "llvm") == 0 ? KILN_KEEP_LLVM : 0);
  p.scalars_by_value = a->values[O_VALUE] != NULL;
  p.programmatic = a->values[O_PROGRAMMATIC] != NULL;
  p.after_pass = after ? print_pass : NULL;
  p.user = (void *)after;
  int status = check_words(emit, after);
  if (!status) status = read_numbers(a, &p, aliases);
  if (status) return status;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *art = NULL;
  const char *out = a->values[O_OUT] && strcmp(a->values[O_OUT], "-") != 0 ? a->values[O_OUT] : NULL;
  status = open_module(cx, a->file, NULL, &m);
  if (!status) status = report(cx, kiln_compile(cx, m, &p, &art));
  if (!status) status = write_artifact(emit, out, m, art);
  kiln_artifact_destroy(&art);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  return status;
}

const verb verb_compile = {"compile",
                           "compile FILE.hlo [OPTION]...",
                           "compile to PTX, machine code or a C header",
                           "Compiles each fusion of ENTRY, or ENTRY itself if it has none, to a kernel.",
                           options,
                           run,
                           true};
