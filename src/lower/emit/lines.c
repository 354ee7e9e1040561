// Places in the HLO text: directives alone, which ptxas turns into a line table beside the same code.

#include "lower/emit/emit.h"

#include <llvm-c/DebugInfo.h>

struct kl_lines {
  LLVMDIBuilderRef b;
  LLVMMetadataRef file, scope;
  const kl_source *src;
  const size_t *starts; // of lines
  size_t n;
};

static void find_starts(kl_emit *e, kl_lines *l) {
  kl_str text = l->src->text;
  size_t n = 1;
  for (size_t i = 0; i < text.n; i++) n += text.p[i] == '\n';
  size_t *starts = KL_NEW_N(e->arena, size_t, n);
  for (size_t i = 0, line = 0; i < text.n; i++)
    if (text.p[i] == '\n') starts[++line] = i + 1;
  l->starts = starts;
  l->n = n;
}

// From 1.
static unsigned line_of(const kl_lines *l, size_t at) {
  size_t lo = 0, hi = l->n;
  while (hi - lo > 1) {
    size_t middle = lo + (hi - lo) / 2;
    if (l->starts[middle] <= at)
      lo = middle;
    else
      hi = middle;
  }
  return (unsigned)lo + 1;
}

static void make_unit(kl_emit *e, kl_lines *l) {
  enum { DIRECTIVES_ONLY = 3 }; // which LLVM-C has no name for
  static const char flag[] = "Debug Info Version";
  const char *name = l->src->name ? l->src->name : "<text>";
  LLVMValueRef version = LLVMConstInt(LLVMInt32TypeInContext(e->k.llcx), LLVMDebugMetadataVersion(), false);
  if (!LLVMGetModuleFlag(e->k.module, flag, sizeof flag - 1))
    LLVMAddModuleFlag(e->k.module, LLVMModuleFlagBehaviorWarning, flag, sizeof flag - 1, LLVMValueAsMetadata(version));
  l->file = LLVMDIBuilderCreateFile(l->b, name, strlen(name), "", 0);
  LLVMDIBuilderCreateCompileUnit(l->b, LLVMDWARFSourceLanguageC99, l->file, "kiln", 4, true, "", 0, 0, "", 0,
                                 (LLVMDWARFEmissionKind)DIRECTIVES_ONLY, 0, false, false, "", 0, "", 0);
}

void kl_lines_begin(kl_emit *e) {
  const kl_source *src = kl_root(e->plan->comp)->span.src;
  if (!e->plan->lineinfo || e->k.machine != KB_NVPTX || !src) return;
  kl_lines *l = KL_NEW(e->arena, kl_lines);
  *l = (kl_lines){.b = LLVMCreateDIBuilder(e->k.module), .src = src};
  find_starts(e, l);
  make_unit(e, l);
  e->lines = l;
}

void kl_lines_function(kl_emit *e, const char *name) {
  kl_lines *l = e->lines;
  if (!l) return;
  size_t n = strlen(name);
  unsigned line = line_of(l, kl_root(e->plan->comp)->span.begin);
  LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(l->b, l->file, NULL, 0, LLVMDIFlagZero);
  l->scope = LLVMDIBuilderCreateFunction(l->b, l->file, name, n, name, n, l->file, line, type, false, true, line,
                                         LLVMDIFlagZero, true);
  LLVMSetSubprogram(e->k.fn, l->scope);
  kl_lines_at(e, kl_root(e->plan->comp));
}

void kl_lines_at(kl_emit *e, const kl_instr *in) {
  kl_lines *l = e->lines;
  if (!l || !in || in->span.src != l->src) return;
  unsigned line = line_of(l, in->span.begin), column = (unsigned)(in->span.begin - l->starts[line - 1]) + 1;
  LLVMSetCurrentDebugLocation2(e->k.b, LLVMDIBuilderCreateDebugLocation(e->k.llcx, line, column, l->scope, NULL));
}

void kl_lines_end(kl_emit *e) {
  if (!e->lines) return;
  LLVMDIBuilderFinalize(e->lines->b);
  LLVMDisposeDIBuilder(e->lines->b);
}
