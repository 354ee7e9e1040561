// kiln compile: PTX, machine code, C header, manifest, plan or LLVM IR of a module's kernels.

#include "manifest.h"
#include "params.h"
#include <string.h>

enum { O_EMIT = O_OTHERS, O_OUT, O_AFTER };
static const option options[] = {
    COMPILE_OPTIONS("sm_75 to sm_121, with a or f where NVIDIA has it, or host (default sm_90)"),
    {"--emit", "KIND", "ptx, cubin, header, json, plan or llvm (default ptx; for host llvm)"},
    {"-o", "OUT", "write to this file (default -, standard output)"},
    {"--print-after", "PASS", "print the IR after this pass (build, early-cse, dce) or after all, to standard error"},
    {0},
};

static void print_pass(void *user, const char *kernel, const char *pass, const char *ir) {
  const char *want = user;
  if (strcmp(want, "all") != 0 && strcmp(want, pass) != 0) return;
  fprintf(stderr, "; %s after %s\n%s\n", kernel, pass, ir);
}

// --- what is asked for -----------------------------------------------------------------------------------------------

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

// --- what comes out --------------------------------------------------------------------------------------------------

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
  kiln_alias aliases[MOST_ALIASES];
  kiln_compile_params p;
  int status = read_params(a, aliases, &p);
  if (!status) status = check_words(emit, after);
  if (status) return status;
  p.keep = (strcmp(emit, "plan") == 0 ? KILN_KEEP_PLAN : 0) | (strcmp(emit, "llvm") == 0 ? KILN_KEEP_LLVM : 0);
  p.after_pass = after ? print_pass : NULL;
  p.user = (void *)after;
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
