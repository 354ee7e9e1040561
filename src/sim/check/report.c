#include "sim/check/report.h"

enum { MOST_FOUND = 1000 };

static bool is_same(const kl_found *a, const kl_found *b) {
  return a->kind == b->kind && a->fault == b->fault && a->at.func == b->at.func && a->at.instr == b->at.instr &&
         a->other.func == b->other.func && a->other.instr == b->other.instr && a->detail == b->detail &&
         (a->kind != KL_FOUND_NOT_WRITTEN || a->address == b->address);
}

void kl_report_add(kl_ctx *cx, kl_report *r, const kl_found *f) {
  uint64_t times = f->times ? f->times : 1;
  for (size_t k = 0; k < r->found.n; k++)
    if (is_same(&r->found.p[k], f)) {
      r->found.p[k].times += times;
      return;
    }
  if (r->found.n == MOST_FOUND) {
    r->lost++;
    return;
  }
  VEC_PUSH(cx, &r->found, *f);
  r->found.p[r->found.n - 1].times = times;
}

void kl_report_free(kl_ctx *cx, kl_report *r) {
  VEC_FREE(cx, &r->found);
}

const char *kl_found_text(kl_found_kind kind) {
  static const char *const texts[KL_FOUND_KINDS] = {
      [KL_FOUND_FAULT] = "a fault",
      [KL_FOUND_UNDEFINED_ADDRESS] = "an address made from values that were never written",
      [KL_FOUND_UNDEFINED_BRANCH] = "a branch on values that were never written",
      [KL_FOUND_UNDEFINED_OUTPUT] = "an output made from values that were never written",
      [KL_FOUND_NOT_WRITTEN] = "an output that was not written",
      [KL_FOUND_RACE] = "two accesses that nothing orders",
      [KL_FOUND_DIVERGENCE] = "threads that are not together where they must be",
      [KL_FOUND_COUNT] = "a barrier's number of threads",
      [KL_FOUND_INACTIVE] = "a value from a lane that takes no part",
  };
  return texts[kind];
}

static void put_at(kl_sb *b, const kl_found_at *at) {
  kl_sbf(b, "block (%u,%u,%u), thread (%u,%u,%u)", at->block[0], at->block[1], at->block[2], at->thread[0],
         at->thread[1], at->thread[2]);
}

// Line of the PTX text, and of the source where it is known.
static void put_line(kl_sb *b, const kl_found_at *at) {
  if (!at->instr) return;
  kl_sbf(b, "line %u", at->instr->at.line);
  if (at->instr->at.src_line) kl_sbf(b, " (source line %u)", at->instr->at.src_line);
}

void kl_report_put(kl_sb *b, const kl_memory *memory, const kl_found *f) {
  kl_sb_puts(b, f->kind == KL_FOUND_FAULT ? kl_fault_text(f->fault) : kl_found_text(f->kind));
  if (f->detail) kl_sbf(b, ": %s", f->detail);
  if (f->at.func) {
    kl_sbf(b, " in %.*s%s", KL_FMT(f->at.func->name), f->kind != KL_FOUND_NOT_WRITTEN ? ", " : "");
    if (f->kind != KL_FOUND_NOT_WRITTEN) put_at(b, &f->at);
  }
  if (f->at.instr && f->at.instr->at.src_line) kl_sbf(b, ", source line %u", f->at.instr->at.src_line);
  if (f->bytes) {
    if (f->kind == KL_FOUND_FAULT)
      kl_sbf(b, ", address 0x%llx", (unsigned long long)f->address);
    else
      kl_sbf(b, ", %llu bytes at 0x%llx", (unsigned long long)(f->kind == KL_FOUND_NOT_WRITTEN ? f->value : f->bytes),
             (unsigned long long)f->address);
    if (f->kind == KL_FOUND_FAULT)
      kl_memory_put_place(b, memory, f->address);
    else
      kl_memory_put_range(b, memory, f->address);
  }
  if (f->other.func) {
    kl_sb_puts(b, "; the other: ");
    put_line(b, &f->other);
    kl_sb_puts(b, f->other.instr ? ", " : "");
    put_at(b, &f->other);
  }
  if (f->times > 1) kl_sbf(b, "; %llu times", (unsigned long long)f->times);
}
