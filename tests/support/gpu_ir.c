#include "gpu_ir.h"

#include "jit/jit.h"
#include <check.h>
#include <math.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <stdlib.h>

// --- approximate instructions -------------------------------------------------------------------------------------

static float flush(float x) {
  return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}
static float flushed(float (*fn)(float), float x) {
  return flush(fn(flush(x)));
}
static float reciprocal(float x) {
  return 1 / x;
}
static float reciprocal_root(float x) {
  return (float)(1 / sqrt((double)x));
}

// --- the text -----------------------------------------------------------------------------------------------------

static const struct {
  const char *from, *to;
} changes[] = {
    {"ptr addrspace(1)", "ptr"},
    {"addrspace(1) ", ""},
    {"ptx_kernel ", ""},
    {"call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()", "load i32, ptr @gpu_block"},
    {"call i32 @llvm.nvvm.read.ptx.sreg.tid.x()", "load i32, ptr @gpu_thread"},
    {"call void @llvm.nvvm.griddepcontrol", "; call void @llvm.nvvm.griddepcontrol"},
    {"target datalayout", "; target datalayout"},
    {"target triple", "; target triple"},
    {"@llvm.nvvm.", "@gpu."},
};

// NVPTX's instructions in words that the CPU has; their names begin with gpu in place of llvm.nvvm. Approximations are
// the C library's functions with denormals flushed on both sides: within the bounds that NVIDIA documents.
static const char instructions[] =
    "declare i32 @llvm.fptosi.sat.i32.f32(float)\ndeclare i32 @llvm.fptoui.sat.i32.f32(float)\n"
    "declare i32 @llvm.fptosi.sat.i32.f64(double)\ndeclare i32 @llvm.fptoui.sat.i32.f64(double)\n"
    "define i32 @gpu.f2i.rz(float %x) {\n  %r = call i32 @llvm.fptosi.sat.i32.f32(float %x)\n  ret i32 %r\n}\n"
    "define i32 @gpu.f2ui.rz(float %x) {\n  %r = call i32 @llvm.fptoui.sat.i32.f32(float %x)\n  ret i32 %r\n}\n"
    "define i32 @gpu.d2i.rz(double %x) {\n  %r = call i32 @llvm.fptosi.sat.i32.f64(double %x)\n  ret i32 %r\n}\n"
    "define i32 @gpu.d2ui.rz(double %x) {\n  %r = call i32 @llvm.fptoui.sat.i32.f64(double %x)\n  ret i32 %r\n}\n"
    // to bfloat, rounded once by integers; a NaN keeps a quiet bit
    "define i16 @gpu_to_bits(float %x) {\n  %b = bitcast float %x to i32\n  %s = lshr i32 %b, 16\n"
    "  %o = and i32 %s, 1\n  %h = add i32 %o, 32767\n  %r = add i32 %b, %h\n  %t = lshr i32 %r, 16\n"
    "  %n = fcmp uno float %x, 0.0\n  %q = or i32 %s, 64\n  %v = select i1 %n, i32 %q, i32 %t\n"
    "  %w = trunc i32 %v to i16\n  ret i16 %w\n}\n"
    "define bfloat @__truncsfbf2(float %x) {\n  %b = call i16 @gpu_to_bits(float %x)\n"
    "  %r = bitcast i16 %b to bfloat\n  ret bfloat %r\n}\n"
    "define <2 x bfloat> @gpu.ff2bf16x2.rn(float %hi, float %lo) {\n  %h = call i16 @gpu_to_bits(float %hi)\n"
    "  %l = call i16 @gpu_to_bits(float %lo)\n  %a = insertelement <2 x i16> undef, i16 %l, i32 0\n"
    "  %b = insertelement <2 x i16> %a, i16 %h, i32 1\n  %r = bitcast <2 x i16> %b to <2 x bfloat>\n"
    "  ret <2 x bfloat> %r\n}\n"
    "define <2 x half> @gpu.ff2f16x2.rn(float %hi, float %lo) {\n  %h = fptrunc float %hi to half\n"
    "  %l = fptrunc float %lo to half\n  %a = insertelement <2 x half> undef, half %l, i32 0\n"
    "  %b = insertelement <2 x half> %a, half %h, i32 1\n  ret <2 x half> %b\n}\n"
    // a product of two bfloats is exact in double, and so is the sum unless one term is far below the other's last bit
    "define float @gpu_widen(i16 %x) {\n  %a = zext i16 %x to i32\n  %b = shl i32 %a, 16\n"
    "  %r = bitcast i32 %b to float\n  ret float %r\n}\n"
    "define i16 @gpu_fma(i16 %a, i16 %b, i16 %c) {\n  %x = call float @gpu_widen(i16 %a)\n"
    "  %y = call float @gpu_widen(i16 %b)\n  %z = call float @gpu_widen(i16 %c)\n  %dx = fpext float %x to double\n"
    "  %dy = fpext float %y to double\n  %dz = fpext float %z to double\n  %p = fmul double %dx, %dy\n"
    "  %s = fadd double %p, %dz\n  %r = call i16 @gpu_round(double %s)\n  ret i16 %r\n}\n"
    // to odd first, so that the second rounding is the only one
    "define i16 @gpu_round(double %s) {\n  %f = fptrunc double %s to float\n  %e = fpext float %f to double\n"
    "  %same = fcmp ueq double %e, %s\n  %b = bitcast float %f to i32\n  %eb = bitcast double %e to i64\n"
    "  %sb = bitcast double %s to i64\n  %mag = and i64 %eb, 9223372036854775807\n"
    "  %want = and i64 %sb, 9223372036854775807\n  %over = icmp ugt i64 %mag, %want\n"
    "  %down = sub i32 %b, 1\n  %trunc = select i1 %over, i32 %down, i32 %b\n  %odd = or i32 %trunc, 1\n"
    "  %v = select i1 %same, i32 %b, i32 %odd\n  %r = bitcast i32 %v to float\n"
    "  %t = call i16 @gpu_to_bits(float %r)\n  ret i16 %t\n}\n"
    "define <2 x bfloat> @gpu.fma.rn.bf16x2(<2 x bfloat> %a, <2 x bfloat> %b, <2 x bfloat> %c) {\n"
    "  %x = bitcast <2 x bfloat> %a to <2 x i16>\n  %y = bitcast <2 x bfloat> %b to <2 x i16>\n"
    "  %z = bitcast <2 x bfloat> %c to <2 x i16>\n"
    "  %x0 = extractelement <2 x i16> %x, i32 0\n  %x1 = extractelement <2 x i16> %x, i32 1\n"
    "  %y0 = extractelement <2 x i16> %y, i32 0\n  %y1 = extractelement <2 x i16> %y, i32 1\n"
    "  %z0 = extractelement <2 x i16> %z, i32 0\n  %z1 = extractelement <2 x i16> %z, i32 1\n"
    "  %r0 = call i16 @gpu_fma(i16 %x0, i16 %y0, i16 %z0)\n  %r1 = call i16 @gpu_fma(i16 %x1, i16 %y1, i16 %z1)\n"
    "  %p = insertelement <2 x i16> undef, i16 %r0, i32 0\n  %q = insertelement <2 x i16> %p, i16 %r1, i32 1\n"
    "  %r = bitcast <2 x i16> %q to <2 x bfloat>\n  ret <2 x bfloat> %r\n}\n";

static const struct {
  const char *name;
  float (*fn)(float);
} approximations[] = {
    {"gpu.ex2.approx.ftz.f32", exp2f},
    {"gpu.lg2.approx.ftz.f", log2f},
    {"gpu.rcp.approx.ftz.f", reciprocal},
    {"gpu.rsqrt.approx.ftz.f", reciprocal_root},
};

static void add_instructions(kl_sb *b) {
  bool wanted = strstr(b->p, "@gpu.") || strstr(b->p, "bfloat");
  kl_sb_puts(b, "\n@gpu_block = internal global i32 0\n@gpu_thread = internal global i32 0\n");
  if (!wanted) return;
  kl_sb_puts(b, instructions);
  for (size_t i = 0; i < KL_COUNT(approximations); i++)
    kl_sbf(b,
           "define float @%s(float %%x) {\n  %%r = call float inttoptr (i64 %llu to ptr)(i64 %llu, float %%x)\n  ret "
           "float %%r\n}\n",
           approximations[i].name, (unsigned long long)(uintptr_t)flushed,
           (unsigned long long)(uintptr_t)approximations[i].fn);
}

// One line: what NVPTX alone has is called by another name, its declarations are left out.
static void retarget_line(kl_sb *b, const char *text, size_t n) {
  const char *end = text + n;
  if (n > 8 && strncmp(text, "declare ", 8) == 0 && memmem(text, n, "@llvm.nvvm.", 11)) return;
  const char *from = text; // not copied yet
  while (text < end) {
    size_t i = 0, n = 0;
    if (!strchr("@pact", *text)) { // no change begins so
      text++;
      continue;
    }
    for (; i < KL_COUNT(changes); i++) {
      n = strlen(changes[i].from);
      if (n <= (size_t)(end - text) && strncmp(text, changes[i].from, n) == 0) break;
    }
    if (i == KL_COUNT(changes)) {
      text++;
      continue;
    }
    kl_sb_put(b, (kl_str){from, (size_t)(text - from)});
    kl_sb_puts(b, changes[i].to);
    from = text += n;
  }
  kl_sb_put(b, (kl_str){from, (size_t)(end - from)});
}

static void retarget(kl_sb *b, const char *text) {
  while (*text) {
    size_t n = strcspn(text, "\n");
    retarget_line(b, text, n + (text[n] == '\n'));
    text += n + (text[n] == '\n');
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
  // A CPU that converts halves and fuses multiplications, and none that would round bfloats by itself.
  LLVMTargetRef target;
  char *triple = LLVMGetDefaultTargetTriple();
  ck_assert(!LLVMGetTargetFromTriple(triple, &target, &why));
  LLVMTargetMachineRef tm = LLVMCreateTargetMachine(target, triple, "haswell", "", LLVMCodeGenLevelDefault,
                                                    LLVMRelocPIC, LLVMCodeModelJITDefault);
  LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
  LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(tm));
  check(LLVMOrcCreateLLJIT(&jit, builder), "starting the JIT");
  LLVMDisposeMessage(triple);
  LLVMContextRef cx = LLVMContextCreate();
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, n, "gpu_ir");
  if (LLVMParseIRInContext(cx, buffer, &m, &why)) ck_abort_msg("%s\n%.2000s", why, text);
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

void gpu_ir_run(kiln_context *cx, const kiln_artifact *a, const void *const *params, void *const *results,
                int64_t count) {
  const kiln_manifest *m = kiln_artifact_manifest(a);
  kl_jit *state;
  kl_sb text;
  ck_assert_int_eq(kl_jit_get(cx, &state), KILN_OK);
  kl_sb_init(&text, cx);
  retarget(&text, kiln_artifact_text(a, KILN_TEXT_LLVM, NULL));
  add_instructions(&text);
  for (size_t i = 0; i < m->launch_count; i++) add_entry(&text, m, i);
  char *scratch = calloc(1, m->scratch_bytes + 1);
  LLVMOrcLLJITRef jit = load(text.p, text.n);
  for (size_t i = 0; i < m->launch_count; i++) {
    char name[32];
    LLVMOrcExecutorAddress at;
    snprintf(name, sizeof name, "gpu_run_%zu", i);
    check(LLVMOrcLLJITLookup(jit, &at, name), "finding a kernel");
    run_launch(m, i, (entry)(uintptr_t)at, params, results, count, scratch);
  }
  check(LLVMOrcDisposeLLJIT(jit), "ending the JIT");
  free(scratch);
  kl_sb_free(&text);
}
