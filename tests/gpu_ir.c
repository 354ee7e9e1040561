#include "gpu_ir.h"

#include "jit/jit.h"
#include <check.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <stdio.h>
#include <stdlib.h>

// --- the text -----------------------------------------------------------------------------------------------------

static const struct {
  const char *from, *to;
} changes[] = {
    {"ptr addrspace(1)", "ptr"},
    {"addrspace(1) ", ""},
    {"ptx_kernel ", ""},
    {"call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()", "load i32, ptr @gpu_block"},
    {"call i32 @llvm.nvvm.read.ptx.sreg.tid.x()", "load i32, ptr @gpu_thread"},
    {"target datalayout", "; target datalayout"},
    {"target triple", "; target triple"},
    {"call void @llvm.nvvm.griddepcontrol", "; call void @llvm.nvvm.griddepcontrol"},
};

static void retarget(kl_sb *b, const char *text) {
  while (*text) {
    size_t i = 0, n = 0;
    for (; i < KL_COUNT(changes); i++) {
      n = strlen(changes[i].from);
      if (strncmp(text, changes[i].from, n) == 0) break;
    }
    if (i < KL_COUNT(changes)) {
      kl_sbf(b, "%s", changes[i].to);
      text += n;
    } else {
      kl_sbf(b, "%c", *text++);
    }
  }
}

static const char *type_of(const kiln_manifest *m, const kiln_argument *a) {
  if (a->kind == KILN_ARGUMENT_COUNT) return "i64";
  if (a->kind == KILN_ARGUMENT_SLOT && m->slots[a->slot].by_value)
    return kiln_dtype_bits(m->slots[a->slot].type.dtype) == 64 ? "i64" : "i32";
  return "ptr";
}

// void gpu_run_K(args, block, thread): one thread of launch K.
static void add_entry(kl_sb *b, const kiln_manifest *m, size_t i) {
  const kiln_launch *l = &m->launches[i];
  kl_sbf(b, "define void @gpu_run_%zu(ptr %%a, i32 %%b, i32 %%t) {\n", i);
  kl_sbf(b, "  store i32 %%b, ptr @gpu_block\n  store i32 %%t, ptr @gpu_thread\n");
  for (size_t k = 0; k < l->argument_count; k++)
    kl_sbf(b, "  %%p%zu = getelementptr i64, ptr %%a, i64 %zu\n  %%v%zu = load %s, ptr %%p%zu\n", k, k, k,
           type_of(m, &l->arguments[k]), k);
  kl_sbf(b, "  call void @%s(", l->kernel);
  for (size_t k = 0; k < l->argument_count; k++)
    kl_sbf(b, "%s%s %%v%zu", k ? ", " : "", type_of(m, &l->arguments[k]), k);
  kl_sbf(b, ")\n  ret void\n}\n");
}

// --- running ------------------------------------------------------------------------------------------------------

typedef void (*entry)(const uint64_t *args, uint32_t block, uint32_t thread);

static void check(LLVMErrorRef e, const char *what) {
  if (e) ck_abort_msg("%s: %s", what, LLVMGetErrorMessage(e));
}

static LLVMOrcLLJITRef load(const char *text, size_t n) {
  LLVMOrcLLJITRef jit;
  LLVMModuleRef m;
  char *why = NULL;
  check(LLVMOrcCreateLLJIT(&jit, NULL), "starting the JIT");
  LLVMContextRef cx = LLVMContextCreate();
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, n, "gpu_ir");
  if (LLVMParseIRInContext(cx, buffer, &m, &why)) ck_abort_msg("%s\n%s", why, text);
  LLVMOrcThreadSafeContextRef safe = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(cx);
  LLVMSetTarget(m, LLVMOrcLLJITGetTripleString(jit));
  LLVMSetDataLayout(m, LLVMOrcLLJITGetDataLayoutStr(jit));
  check(LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcCreateNewThreadSafeModule(m, safe)),
        "adding the kernels");
  LLVMOrcDisposeThreadSafeContext(safe);
  return jit;
}

static uint64_t value_of(const kiln_slot *s, const void *p) {
  uint64_t v = 0;
  unsigned bits = kiln_dtype_bits(s->type.dtype);
  memcpy(&v, p, bits < 8 ? 1 : bits / 8);
  return v;
}

static uint32_t grid_of(const kiln_manifest *m, const kiln_launch *l, int64_t count) {
  if (!m->counted) return l->grid[0];
  int64_t block = (int64_t)l->lanes * l->block[0], rest = (int64_t)l->rest_lanes * l->block[0];
  int64_t whole = count / block;
  return (uint32_t)(whole + (count - whole * block + rest - 1) / rest);
}

static void run_launch(const kiln_manifest *m, size_t i, entry fn, const void *const *params, void *const *results,
                       int64_t count, char *scratch) {
  const kiln_launch *l = &m->launches[i];
  uint64_t args[64];
  ck_assert_uint_le(l->argument_count, 64);
  for (size_t k = 0; k < l->argument_count; k++) {
    const kiln_argument *a = &l->arguments[k];
    args[k] = (uint64_t)count;
    if (a->kind == KILN_ARGUMENT_SCRATCH) args[k] = (uintptr_t)(scratch + a->offset);
    if (a->kind != KILN_ARGUMENT_SLOT) continue;
    const kiln_slot *s = &m->slots[a->slot];
    const void *p = s->result ? results[s->index] : params[s->index];
    args[k] = s->by_value ? value_of(s, p) : (uintptr_t)p;
  }
  for (uint32_t b = 0, grid = grid_of(m, l, count); b < grid; b++)
    for (uint32_t t = 0; t < l->block[0]; t++) fn(args, b, t);
}

bool gpu_ir_run(kiln_context *cx, const kiln_artifact *a, const void *const *params, void *const *results,
                int64_t count) {
  const kiln_manifest *m = kiln_artifact_manifest(a);
  kl_jit *state;
  kl_sb text;
  ck_assert_int_eq(kl_jit_get(cx, &state), KILN_OK);
  kl_sb_init(&text, cx);
  retarget(&text, kiln_artifact_text(a, KILN_TEXT_LLVM, NULL));
  bool can = !strstr(text.p, "call float @llvm.nvvm") && !strstr(text.p, "@llvm.nvvm.f") &&
             !strstr(text.p, "@llvm.nvvm.e") && !strstr(text.p, "@llvm.nvvm.d2") && !strstr(text.p, "@llvm.nvvm.l");
  kl_sbf(&text, "\n@gpu_block = internal global i32 0\n@gpu_thread = internal global i32 0\n");
  for (size_t i = 0; i < m->launch_count; i++) add_entry(&text, m, i);
  char *scratch = calloc(1, m->scratch_bytes + 1);
  if (can) {
    LLVMOrcLLJITRef jit = load(text.p, text.n);
    for (size_t i = 0; i < m->launch_count; i++) {
      char name[32];
      LLVMOrcExecutorAddress at;
      snprintf(name, sizeof name, "gpu_run_%zu", i);
      check(LLVMOrcLLJITLookup(jit, &at, name), "finding a kernel");
      run_launch(m, i, (entry)(uintptr_t)at, params, results, count, scratch);
    }
    check(LLVMOrcDisposeLLJIT(jit), "ending the JIT");
  }
  free(scratch);
  kl_sb_free(&text);
  return can;
}
