// LLVM selects the PTX instructions by which GPU kernels are judged without a GPU (support/gpu_ir.c).
#include "jit/jit.h"
#include "support/context.h"
#include "support/gpu_ir.h"

#include <llvm-c/IRReader.h>
#include <stdio.h>

static char *ptx_of(const char *ir, const char *target) {
  kl_target t;
  char *why = NULL, *triple, *layout, *text = NULL;
  LLVMModuleRef m;
  LLVMMemoryBufferRef code;
  uint32_t version;
  ck_assert_int_eq(kl_target_parse(cx, target, &t), KILN_OK);
  ck_assert_int_eq(kl_machine_layout(cx, &t, &triple, &layout), KILN_OK);
  LLVMContextRef llcx = LLVMContextCreate();
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(ir, strlen(ir), "ir");
  if (LLVMParseIRInContext(llcx, buffer, &m, &why)) ck_abort_msg("%s\n%s", why, ir);
  LLVMSetTarget(m, triple);
  LLVMSetDataLayout(m, layout);
  LLVMDisposeMessage(triple);
  LLVMDisposeMessage(layout);
  if (kl_codegen(cx, llcx, m, &t, "k", NULL, NULL, &version, &code) == KILN_OK) {
    text = strndup(LLVMGetBufferStart(code), LLVMGetBufferSize(code));
    LLVMDisposeMemoryBuffer(code);
  }
  LLVMContextDispose(llcx);
  kiln_diagnostics_clear(cx);
  return text;
}

static bool has_instruction(const char *ptx, const char *mnemonic) {
  size_t n = strlen(mnemonic);
  for (const char *p = ptx; (p = strstr(p, mnemonic)); p += n) {
    if ((p[n] == ' ' || p[n] == '\t') && p > ptx && (p[-1] == '\t' || p[-1] == ' ')) return true;
  }
  return false;
}

// Where the table of IR operations lets it through at all: some need sm_80.
START_TEST(selects) {
  static const char *const targets[] = {"sm_70", "sm_75", "sm_80", "sm_90", "sm_100"};
  char ir[1024];
  unsigned seen = 0;
  for (size_t row = 0;; row++) {
    const char *mnemonic = gpu_ir_selection(row, ir, sizeof ir);
    if (!mnemonic) break;
    char *ptx = ptx_of(ir, targets[_i]);
    ck_assert_msg(ptx || _i < 2, "%s is not compiled for %s\n%s", mnemonic, targets[_i], ir);
    EXPECT(!ptx || has_instruction(ptx, mnemonic), "no %s for %s in\n%s\n%s", mnemonic, targets[_i], ir, ptx);
    seen += ptx != NULL;
    free(ptx);
  }
  ck_assert_uint_ge(seen, 50);
}
END_TEST

int main(void) {
  return RUN_TESTS("selection", EACH(make_context, drop_context), {selects, 5});
}
