#include "sim/check/findings.h"

void kl_findings_init(kl_findings *f, kl_ctx *cx) {
  *f = (kl_findings){.cx = cx};
  kl_arena_init(&f->arena, cx);
}

void kl_findings_free(kl_findings *f) {
  if (!f->cx) return;
  VEC_FREE(f->cx, &f->list);
  kl_arena_free(&f->arena);
}

void kl_findings_clear(kl_findings *f) {
  f->list.n = 0;
  kl_arena_free(&f->arena);
  kl_arena_init(&f->arena, f->cx);
}

static const char *const checks[KL_FOUND_KINDS] = {
    [KL_FOUND_FAULT] = "memory",
    [KL_FOUND_UNDEFINED_ADDRESS] = "undefined",
    [KL_FOUND_UNDEFINED_BRANCH] = "undefined",
    [KL_FOUND_UNDEFINED_OUTPUT] = "undefined",
    [KL_FOUND_NOT_WRITTEN] = "unwritten",
    [KL_FOUND_RACE] = "race",
    [KL_FOUND_DIVERGENCE] = "sync",
    [KL_FOUND_COUNT] = "sync",
    [KL_FOUND_INACTIVE] = "sync",
};

enum { MOST_FINDINGS = 1000 };

static bool is_same(const kiln_sim_finding *a, const kiln_sim_finding *b) {
  return strcmp(a->what, b->what) == 0 && strcmp(a->kernel, b->kernel) == 0 && a->line == b->line &&
         a->other_line == b->other_line && (a->line || a->address == b->address);
}

// True: it is new.
static bool enter(kl_findings *f, const kiln_sim_finding *one) {
  for (size_t k = 0; k < f->list.n; k++)
    if (is_same(&f->list.p[k], one)) {
      f->list.p[k].times += one->times;
      return false;
    }
  if (f->list.n == MOST_FINDINGS) return false;
  kiln_sim_finding own = *one;
  own.struct_size = sizeof own;
  own.text = kl_str_dup(&f->arena, kl_str_of(one->text)).p;
  own.kernel = kl_str_dup(&f->arena, kl_str_of(one->kernel)).p;
  VEC_PUSH(f->cx, &f->list, own);
  return true;
}

static kiln_sim_finding plain(const kl_found *f, const char *text, const char *kernel) {
  kiln_sim_finding out = {.check = checks[f->kind],
                          .what = f->kind == KL_FOUND_FAULT ? kl_fault_text(f->fault) : kl_found_text(f->kind),
                          .text = text,
                          .kernel = kernel,
                          .address = f->bytes ? f->address : 0,
                          .bytes = f->kind == KL_FOUND_NOT_WRITTEN ? f->value : f->bytes,
                          .times = f->times};
  if (f->at.instr) out.line = f->at.instr->at.line, out.source_line = f->at.instr->at.src_line;
  if (f->other.instr) out.other_line = f->other.instr->at.line;
  memcpy(out.block, f->at.block, sizeof out.block);
  memcpy(out.thread, f->at.thread, sizeof out.thread);
  memcpy(out.other_block, f->other.block, sizeof out.other_block);
  memcpy(out.other_thread, f->other.thread, sizeof out.other_thread);
  return out;
}

static void take_one(kl_findings *f, const kl_checks *c, const kl_ptx_module *ptx, const kl_found *found) {
  kl_sb text;
  kl_arena scratch;
  kl_arena_init(&scratch, f->cx);
  kl_sb_init(&text, f->cx);
  kl_report_put(&text, c->memory, found);
  kl_str kernel = found->at.func ? found->at.func->name : KL_STR("");
  kiln_sim_finding one = plain(found, text.p, kl_str_dup(&scratch, kernel).p);
  if (enter(f, &one) && found->kind != KL_FOUND_FAULT)
    kl_fail(c->cx, KILN_E_DEVICE, found->at.instr ? kl_ptx_span(ptx, found->at.instr->at) : KL_NOWHERE, "%s", text.p);
  kl_sb_free(&text);
  kl_arena_free(&scratch);
}

bool kl_findings_take(kl_findings *f, const kl_checks *c, const kl_ptx_module *ptx) {
  for (size_t k = 0; k < c->report.found.n; k++) take_one(f, c, ptx, &c->report.found.p[k]);
  return c->report.found.n > 0;
}

void kl_findings_unwritten(kl_findings *f, const kl_memory *m, uint64_t address, uint64_t bytes) {
  kl_sb text;
  kl_sb_init(&text, f->cx);
  kl_sbf(&text, "%s: the host reads %llu bytes at 0x%llx", kl_found_text(KL_FOUND_NOT_WRITTEN),
         (unsigned long long)bytes, (unsigned long long)address);
  kl_memory_put_range(&text, m, address);
  kiln_sim_finding one = {.check = "unwritten",
                          .what = kl_found_text(KL_FOUND_NOT_WRITTEN),
                          .text = text.p,
                          .kernel = "",
                          .address = address,
                          .bytes = bytes,
                          .times = 1};
  if (enter(f, &one)) kl_fail(f->cx, KILN_E_DEVICE, KL_NOWHERE, "%s", text.p);
  kl_sb_free(&text);
}

kiln_status kl_findings_get(kl_ctx *cx, const kl_findings *f, size_t i, kiln_sim_finding *out) {
  if (i >= f->list.n) return kl_invalid(cx, KL_NOWHERE, "expected a finding below %zu, found %zu", f->list.n, i);
  return KL_PARAMS_OUT(cx, kiln_sim_finding, &f->list.p[i], out);
}
