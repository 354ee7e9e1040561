// kiln compile: PTX, LLVM IR, plan or manifest of a module's kernels.

#include "kiln.h"
#include <string.h>

enum { O_TARGET, O_EMIT, O_OUT, O_FUSION, O_AFTER };
static const option options[] = {
    {"--target", "TARGET", "sm_75 to sm_121, with a or f where NVIDIA has it, or host (default sm_90)"},
    {"--emit", "KIND", "ptx, llvm, plan or json (default ptx; for host llvm)"},
    {"-o", "OUT", "write to this file (default -, standard output)"},
    {"--fusion", "NAME", "only this fusion of ENTRY"},
    {"--print-after", "PASS", "print the IR after this pass (build, early-cse, dce) or after all, to standard error"},
    {0},
};

static void print_pass(void *user, const char *kernel, const char *pass, const char *ir) {
  const char *want = user;
  if (strcmp(want, "all") != 0 && strcmp(want, pass) != 0) return;
  fprintf(stderr, "; %s after %s\n%s\n", kernel, pass, ir);
}

static void json_type(FILE *to, const kiln_array_type *t) {
  fprintf(to, "\"dtype\": \"%s\", \"dims\": [", kiln_dtype_name(t->dtype));
  for (uint32_t d = 0; d < t->rank; d++) fprintf(to, "%s%lld", d ? ", " : "", (long long)t->dims[d]);
  fprintf(to, "]");
}

static void json_launch(FILE *to, const kiln_launch *l) {
  static const char *const kinds[] = {"parameter", "result", "temporary"};
  fprintf(to, "{\"kernel\": ");
  json_string(to, l->kernel);
  fprintf(to,
          ", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"lanes\": %u, \"elements\": %lld, \"bytes\": %lld, "
          "\"slots\": [",
          l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->lanes, (long long)l->elements,
          (long long)l->bytes);
  for (size_t i = 0; i < l->slot_count; i++) {
    const kiln_slot *s = &l->slots[i];
    fprintf(to, "%s{\"buffer\": \"%s\", \"index\": %u, \"output\": %s, ", i ? ", " : "", kinds[s->kind], s->index,
            s->output ? "true" : "false");
    json_type(to, &s->type);
    fprintf(to, ", \"bytes\": %lld, \"align\": %u}", (long long)s->bytes, s->align);
  }
  fprintf(to, "]}");
}

static int write_json(const char *path, const kiln_artifact *a) {
  FILE *f = output_open(path);
  if (!f) return output_close(f, path);
  fprintf(f, "{\"target\": \"%s\", \"launches\": [", kiln_artifact_target(a));
  for (size_t i = 0; i < kiln_artifact_launch_count(a); i++) {
    if (i) fprintf(f, ", ");
    json_launch(f, kiln_artifact_launch(a, i));
  }
  fprintf(f, "]");
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
  if (ptx) {
    fprintf(f, ", \"ptx\": ");
    json_string(f, ptx);
  }
  fprintf(f, "}\n");
  return output_close(f, path);
}

static int write_text(const char *path, const kiln_artifact *a, kiln_text_kind kind) {
  size_t size;
  const char *text = kiln_artifact_text(a, kind, &size);
  if (text) return write_output(path, text, size);
  fprintf(stderr, "kiln compile: target %s has no PTX: --emit llvm, plan or json\n", kiln_artifact_target(a));
  return EXIT_BAD_INPUT;
}

static int check_words(const char *emit, const char *after) {
  static const char *const later[] = {"cubin", "header"}, *const kinds[] = {"ptx", "llvm", "plan", "json"},
                           *const passes[] = {"build", "early-cse", "dce", "all"};
  for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
    if (strcmp(emit, later[i]) != 0) continue;
    fprintf(stderr, "kiln compile: --emit %s is not supported yet: expected ptx, llvm, plan or json\n", emit);
    return EXIT_NOT_SUPPORTED;
  }
  bool known = false, pass = !after;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) known |= strcmp(emit, kinds[i]) == 0;
  for (size_t i = 0; after && i < sizeof passes / sizeof passes[0]; i++) pass |= strcmp(after, passes[i]) == 0;
  if (!known) fprintf(stderr, "kiln compile: --emit '%s': expected ptx, llvm, plan or json\n", emit);
  if (!pass) fprintf(stderr, "kiln compile: --print-after '%s': expected build, early-cse, dce or all\n", after);
  return known && pass ? 0 : EXIT_BAD_INPUT;
}

static int run(const args *a) {
  const char *target = a->values[O_TARGET], *emit = a->values[O_EMIT], *after = a->values[O_AFTER];
  if (!emit) emit = target && strcmp(target, "host") == 0 ? "llvm" : "ptx";
  int status = check_words(emit, after);
  if (status) return status;
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .fusion = a->values[O_FUSION]};
  p.keep = (strcmp(emit, "plan") == 0 ? KILN_KEEP_PLAN : 0) | (strcmp(emit, "llvm") == 0 ? KILN_KEEP_LLVM : 0);
  p.after_pass = after ? print_pass : NULL;
  p.user = (void *)after;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *art = NULL;
  const char *out = a->values[O_OUT] && strcmp(a->values[O_OUT], "-") != 0 ? a->values[O_OUT] : NULL;
  status = open_module(cx, a->file, NULL, &m);
  if (!status) status = report(cx, kiln_compile(cx, m, &p, &art));
  if (!status) {
    if (strcmp(emit, "json") == 0)
      status = write_json(out, art);
    else
      status = write_text(out, art,
                          strcmp(emit, "plan") == 0   ? KILN_TEXT_PLAN
                          : strcmp(emit, "llvm") == 0 ? KILN_TEXT_LLVM
                                                      : KILN_TEXT_PTX);
  }
  kiln_artifact_destroy(&art);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  return status;
}

const verb verb_compile = {"compile",
                           "compile FILE.hlo [OPTION]...",
                           "compile to PTX, LLVM IR, a plan or a manifest",
                           "Compiles each fusion of ENTRY, or ENTRY itself if it has none, to a kernel.",
                           options,
                           run,
                           true};
