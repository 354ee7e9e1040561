// LLVM's side of a context: targets, machines, passes, code generation.

#include "jit/jit.h"
#include "jit/llvm_compat.h"
#include "lower/emit/irtable.h"
#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>

static pthread_once_t targets_once = PTHREAD_ONCE_INIT;
static void init_targets(void) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

static void jit_free(kl_ctx *cx, void *state) {
  kl_jit *j = state;
  kl_worker_end(cx, &j->worker);
  for (size_t i = 0; i < j->machines.n; i++) LLVMDisposeTargetMachine(j->machines.p[i].tm);
  VEC_FREE(cx, &j->machines);
  kl_free(cx, j, sizeof *j);
}

kiln_status kl_jit_get(kl_ctx *cx, kl_jit **out) {
  if (!cx->jit.state) {
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    if (major != LLVM_VERSION_MAJOR)
      return kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "built for LLVM %d, loaded LLVM %u", LLVM_VERSION_MAJOR, major);
    pthread_once(&targets_once, init_targets);
    cx->jit = (kl_slot){kl_alloc(cx, sizeof(kl_jit)), jit_free};
  }
  *out = cx->jit.state;
  return KILN_OK;
}

kiln_status kl_llvm_error(kl_ctx *cx, LLVMErrorRef e, const char *doing) {
  if (!e) return KILN_OK;
  char *text = LLVMGetErrorMessage(e);
  kiln_status s = kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "%s: %s", doing, text);
  LLVMDisposeErrorMessage(text);
  return s;
}

// --- targets ------------------------------------------------------------------------------------------------------

static kiln_status unknown_target(kl_ctx *cx, const char *name) {
  return kl_invalid(
      cx, KL_NOWHERE,
      "unknown target '%s': expected host, sm_70, sm_72, sm_75, sm_80, sm_86, sm_87, sm_88, sm_89, sm_90, sm_90a, "
      "sm_100, sm_103, sm_110, sm_120 or sm_121 (from sm_100 on also with a or f)",
      name);
}

static bool has_feature(const char *features, const char *want) {
  size_t n = strlen(want);
  for (const char *p = features; (p = strstr(p, want)); p++) {
    if ((p == features || p[-1] == ',') && (p[n] == 0 || p[n] == ',')) return true;
  }
  return false;
}

// Before AVX-512 LLVM takes as many loads as lanes, and addresses by way of vectors besides.
static bool host_gathers(void) {
  char *features = LLVMGetHostCPUFeatures();
  bool yes = has_feature(features, "+avx512f");
  LLVMDisposeMessage(features);
  return yes;
}

kiln_status kl_target_parse(kl_ctx *cx, const char *name, kl_target *out) {
  if (!name) name = "sm_90";
  *out = (kl_target){.machine = KL_HOST, .block = 1, .max_bytes = 64, .host_lanes = 16};
  if (strcmp(name, "host") == 0) {
    out->gathers = host_gathers();
    return KILN_OK;
  }
  *out = (kl_target){.machine = KL_NVPTX, .block = 128, .max_bytes = 16};
  if (strncmp(name, "sm_", 3) != 0) return unknown_target(cx, name);
  size_t i = 3;
  for (; name[i] >= '0' && name[i] <= '9' && name[3] != '0' && i < 7; i++)
    out->sm = out->sm * 10 + (uint32_t)(name[i] - '0');
  if (name[i] == 'a' || name[i] == 'f') out->variant = name[i++];
  if (name[i] || !kl_ptx_floor(out->sm, out->variant)) return unknown_target(cx, name);
  return KILN_OK;
}

static const char nvptx_triple[] = "nvptx64-nvidia-cuda";

// On NVPTX ptxas optimises whatever it gets, and LLVM's own work above level none goes mostly into strength reduction
// of straight-line code, which finds nothing here and doubles the time. The host has no second compiler. What is run
// seldom is generated in half the time, and takes three times as long to run.
static LLVMCodeGenOptLevel codegen_level(const kl_target *t, bool seldom) {
  return t->machine == KL_HOST && !seldom ? LLVMCodeGenLevelDefault : LLVMCodeGenLevelNone;
}

static kiln_status make_machine(kl_ctx *cx, const kl_target *t, uint32_t ptx, bool seldom, LLVMTargetMachineRef *out) {
  char *triple = t->machine == KL_HOST ? LLVMGetDefaultTargetTriple() : LLVMCreateMessage(nvptx_triple);
  char *cpu = t->machine == KL_HOST ? LLVMGetHostCPUName() : NULL, *features = NULL, *why = NULL;
  char sm[16], version[16];
  LLVMTargetRef target;
  kiln_status st = KILN_OK;
  if (t->machine == KL_HOST) {
    features = LLVMGetHostCPUFeatures();
    if (!has_feature(features, "+fma"))
      st = kl_unsupported(cx, KL_NOWHERE, "the host device needs a CPU with fused multiply-add (FMA3)");
  } else {
    snprintf(sm, sizeof sm, t->variant ? "sm_%u%c" : "sm_%u", t->sm, t->variant);
    snprintf(version, sizeof version, "+ptx%u", ptx);
  }
  if (st == KILN_OK && LLVMGetTargetFromTriple(triple, &target, &why))
    st = kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "LLVM has no target for %s: %s", triple, why);
  if (st == KILN_OK)
    *out = LLVMCreateTargetMachine(target, triple, cpu ? cpu : sm, features ? features : version,
                                   codegen_level(t, seldom), LLVMRelocPIC, LLVMCodeModelDefault);
  LLVMDisposeMessage(triple);
  if (cpu) LLVMDisposeMessage(cpu);
  if (features) LLVMDisposeMessage(features);
  if (why) LLVMDisposeMessage(why);
  return st;
}

kiln_status kl_machine_get(kl_ctx *cx, const kl_target *t, uint32_t ptx, bool seldom, LLVMTargetMachineRef *out) {
  kl_jit *j = NULL;
  KL_TRY(kl_jit_get(cx, &j));
  for (size_t i = 0; i < j->machines.n; i++) {
    kl_machine_entry *e = &j->machines.p[i];
    if (e->sm == t->sm && e->variant == t->variant && e->ptx == ptx && e->seldom == seldom) {
      *out = e->tm;
      return KILN_OK;
    }
  }
  KL_TRY(make_machine(cx, t, ptx, seldom, out));
  VEC_PUSH(cx, &j->machines, (kl_machine_entry){t->sm, ptx, t->variant, seldom, *out});
  return KILN_OK;
}

kiln_status kl_machine_layout(kl_ctx *cx, const kl_target *t, char **triple, char **layout) {
  LLVMTargetMachineRef tm;
  KL_TRY(kl_machine_get(cx, t, kl_ptx_floor(t->sm, t->variant), false, &tm));
  LLVMTargetDataRef data = LLVMCreateTargetDataLayout(tm);
  *layout = LLVMCopyStringRepOfTargetData(data);
  LLVMDisposeTargetData(data);
  *triple = LLVMGetTargetMachineTriple(tm);
  return KILN_OK;
}

// --- passes -------------------------------------------------------------------------------------------------------

// Our whole pass list: the emitter leaves little to do. Index arithmetic repeats between accesses, hence the CSE; what
// folding leaves unused goes with the DCE.
static const char *const passes[] = {"early-cse", "dce"};

static void show(LLVMModuleRef m, const char *name, const char *pass, kl_after_pass after, void *user) {
  if (!after) return;
  char *text = LLVMPrintModuleToString(m);
  after(user, name, pass, text);
  LLVMDisposeMessage(text);
}

static kiln_status run_passes(kl_ctx *cx, LLVMModuleRef m, const char *name, LLVMTargetMachineRef tm,
                              kl_after_pass after, void *user) {
  LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  kiln_status st = KILN_OK;
  show(m, name, "build", after, user);
  if (!after) st = kl_llvm_error(cx, LLVMRunPasses(m, "function(early-cse,dce)", tm, o), "running passes");
  for (size_t i = 0; after && st == KILN_OK && i < KL_COUNT(passes); i++) {
    st = kl_llvm_error(cx, LLVMRunPasses(m, passes[i], tm, o), passes[i]);
    show(m, name, passes[i], after, user);
  }
  LLVMDisposePassBuilderOptions(o);
  return st;
}

// --- code generation ----------------------------------------------------------------------------------------------

// LLVM reports trouble in instruction selection here and then succeeds with undefined code: errors must be counted.
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user) {
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
  char *text = LLVMGetDiagInfoDescription(info);
  kl_fail(user, KILN_E_INTERNAL, KL_NOWHERE, "code generation: %s", text);
  LLVMDisposeMessage(text);
}

static kiln_status generate(kl_ctx *cx, LLVMModuleRef m, const kl_target *t, bool seldom, const char *name,
                            kl_after_pass after, void *user, uint32_t *ptx, LLVMMemoryBufferRef *out) {
  *ptx = kl_ptx_floor(t->sm, t->variant);
  LLVMTargetMachineRef tm;
  KL_TRY(kl_machine_get(cx, t, *ptx, seldom, &tm));
  KL_TRY(run_passes(cx, m, name, tm, after, user));
  KL_TRY(kl_ir_check(cx, m, t->sm, ptx));
  KL_TRY(kl_machine_get(cx, t, *ptx, seldom, &tm));
  char *why = NULL;
  LLVMCodeGenFileType type = t->machine == KL_HOST ? LLVMObjectFile : LLVMAssemblyFile;
  size_t errors = cx->errors;
  LLVMBool failed = LLVMTargetMachineEmitToMemoryBuffer(tm, m, type, &why, out);
  if (failed) {
    kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "code generation: %s", why ? why : "failed");
    if (why) LLVMDisposeMessage(why);
    return KILN_E_INTERNAL;
  }
  if (cx->errors == errors) return KILN_OK;
  LLVMDisposeMemoryBuffer(*out);
  return KILN_E_INTERNAL;
}

kiln_status kl_codegen(kl_ctx *cx, LLVMContextRef llcx, LLVMModuleRef m, const kl_target *t, bool seldom,
                       const char *name, kl_after_pass after, void *user, uint32_t *ptx, LLVMMemoryBufferRef *out) {
  LLVMContextSetDiagnosticHandler(llcx, on_diagnostic, cx);
  kiln_status st = generate(cx, m, t, seldom, name, after, user, ptx, out);
  LLVMDisposeModule(m);
  return st;
}
