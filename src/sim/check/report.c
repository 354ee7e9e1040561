#include "sim/check/report.h"

enum { MOST_FOUND = 1000 };

static bool is_same(const kl_found *a, const kl_found *b) {
  return a->kind == b->kind && a->fault == b->fault && a->at.func == b->at.func && a->at.instr == b->at.instr &&
         a->other.func == b->other.func && a->other.instr == b->other.instr && a->detail == b->detail &&
         (a->kind != KL_FOUND_NOT_WRITTEN || a->spot.address == b->spot.address);
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
  r->found.p[r->found.n - 1].kernel = r->kernel;
}

void kl_report_free(kl_ctx *cx, kl_report *r) {
  VEC_FREE(cx, &r->found);
}

const char *kl_found_text(kl_found_kind kind) {
  static const char *const texts[KL_FOUND_KINDS] = {
      [KL_FOUND_FAULT] = "a fault",
      [KL_FOUND_BEYOND] = "an access beyond the variable that its address comes from",
      [KL_FOUND_UNDEFINED_ADDRESS] = "an address made from values that were never written",
      [KL_FOUND_UNDEFINED_BRANCH] = "a branch on values that were never written",
      [KL_FOUND_UNDEFINED_OUTPUT] = "an output made from values that were never written",
      [KL_FOUND_NOT_WRITTEN] = "an output that was not written",
      [KL_FOUND_RACE] = "two accesses that nothing orders",
      [KL_FOUND_ABSENT] = "shared memory of another block that may not be there",
      [KL_FOUND_DIVERGENCE] = "threads that are not together where they must be",
      [KL_FOUND_COUNT] = "a barrier's number of threads",
      [KL_FOUND_INACTIVE] = "a value from a lane that takes no part",
  };
  return texts[kind];
}

static const kl_ptx_module *module_of(const kl_found *f) {
  return f->kernel ? kl_loaded_ptx(kl_kernel_module(f->kernel)) : NULL;
}

static void put_at(kl_sb *b, const kl_found_at *at) {
  kl_sbf(b, "block (%u,%u,%u), thread (%u,%u,%u)", at->block[0], at->block[1], at->block[2], at->thread[0],
         at->thread[1], at->thread[2]);
}

static void put_source(kl_sb *b, const kl_ptx_module *m, const kl_found_at *at, const char *before,
                       const char *behind) {
  if (!at->instr || !at->instr->at.src_line) return;
  kl_sb_puts(b, before);
  kl_source_put(b, m, at->instr->at);
  kl_sb_puts(b, behind);
}

static void put_value(kl_sb *b, const kl_found *f) {
  uint64_t all = f->value_bytes < 8 ? ((uint64_t)1 << 8 * f->value_bytes) - 1 : ~(uint64_t)0;
  if (!f->value_bytes) return;
  if (f->kind == KL_FOUND_COUNT) {
    kl_sbf(b, ", %llu threads", (unsigned long long)f->value);
    return;
  }
  kl_sbf(b, ", %s 0x%llx", f->spot.bytes ? "holding" : "value", (unsigned long long)(f->value & all));
  if (f->unknown & all) kl_sbf(b, " (bits 0x%llx without a value)", (unsigned long long)(f->unknown & all));
}

void kl_origin_put(kl_sb *b, const kl_found *f) {
  const kl_origin *o = &f->origin;
  if (o->kind == KL_ORIGIN_VARIABLE) kl_piece_put(b, &o->spot.piece);
  if (o->kind == KL_ORIGIN_NONE || o->kind == KL_ORIGIN_VARIABLE) return;
  if (o->kind == KL_ORIGIN_REGISTER) {
    if (o->reg)
      kl_ptx_put_register(b, o->func, o->reg - 1);
    else
      kl_sb_puts(b, "a register");
    kl_sb_puts(b, ", which ");
  }
  kl_sbf(b, "line %u", o->instr ? o->instr->at.line : 0);
  if (o->func != f->at.func) kl_sbf(b, " of %.*s", KL_FMT(o->func->name));
  if (o->instr && o->instr->at.src_line) {
    kl_sb_puts(b, " (");
    kl_source_put(b, module_of(f), o->instr->at);
    kl_sb_puts(b, ")");
  }
  if (o->kind == KL_ORIGIN_REGISTER) {
    kl_sb_puts(b, " reads before anything sets it");
  } else if (o->kind == KL_ORIGIN_LANE) {
    kl_sb_puts(b, ", which takes it from a lane that takes no part");
  } else if (o->kind == KL_ORIGIN_COPY) {
    kl_sb_puts(b, ", whose copy has not arrived");
  } else {
    kl_sb_puts(b, ", which loads what has no value yet");
    if (o->spot.bytes) kl_spot_put(b, &o->spot);
  }
}

static void put_origin(kl_sb *b, const kl_found *f) {
  if (f->origin.kind == KL_ORIGIN_NONE) return;
  kl_sb_puts(b, "; from ");
  kl_origin_put(b, f);
}

static void put_other(kl_sb *b, const kl_ptx_module *m, const kl_found_at *at) {
  if (!at->func) return;
  kl_sb_puts(b, "; the other: ");
  if (at->instr) {
    kl_sbf(b, "line %u", at->instr->at.line);
    put_source(b, m, at, " (", ")");
    kl_sb_puts(b, ", ");
  }
  put_at(b, at);
  kl_calls_put(b, m, &at->calls);
}

void kl_report_put(kl_sb *b, const kl_found *f) {
  const kl_ptx_module *m = module_of(f);
  kl_sb_puts(b, f->kind == KL_FOUND_FAULT ? kl_fault_text(f->fault) : kl_found_text(f->kind));
  if (f->detail) kl_sbf(b, ": %s", f->detail);
  if (f->at.func) {
    kl_sbf(b, " in %.*s", KL_FMT(f->at.func->name));
    if (f->kind != KL_FOUND_NOT_WRITTEN) {
      kl_sb_puts(b, ", ");
      put_at(b, &f->at);
    }
  }
  put_source(b, m, &f->at, ", ", "");
  if (f->spot.bytes) kl_spot_put(b, &f->spot);
  put_value(b, f);
  kl_calls_put(b, m, &f->at.calls);
  put_origin(b, f);
  put_other(b, m, &f->other);
  if (f->times > 1) kl_sbf(b, "; %llu times", (unsigned long long)f->times);
}
