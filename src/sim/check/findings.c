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
    [KL_FOUND_BEYOND] = "memory",
    [KL_FOUND_UNDEFINED_ADDRESS] = "undefined",
    [KL_FOUND_UNDEFINED_BRANCH] = "undefined",
    [KL_FOUND_UNDEFINED_OUTPUT] = "undefined",
    [KL_FOUND_NOT_WRITTEN] = "unwritten",
    [KL_FOUND_RACE] = "race",
    [KL_FOUND_ABSENT] = "race",
    [KL_FOUND_DIVERGENCE] = "sync",
    [KL_FOUND_COUNT] = "sync",
    [KL_FOUND_INACTIVE] = "sync",
};

enum { MOST_FINDINGS = 1000 };

static bool is_same(const kiln_sim_finding *a, const kiln_sim_finding *b) {
  return strcmp(a->what, b->what) == 0 && strcmp(a->kernel, b->kernel) == 0 && strcmp(a->function, b->function) == 0 &&
         a->line == b->line && a->other_line == b->other_line && (a->line || a->address == b->address);
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
  const char **texts[] = {&own.text, &own.kernel, &own.function, &own.source, &own.place, &own.origin};
  for (size_t k = 0; k < KL_COUNT(texts); k++) *texts[k] = kl_str_dup(&f->arena, kl_str_of(*texts[k])).p;
  kiln_sim_call *calls = KL_NEW_N(&f->arena, kiln_sim_call, one->call_count + 1);
  own.calls = calls;
  for (size_t k = 0; k < one->call_count; k++) {
    calls[k] = one->calls[k];
    calls[k].function = kl_str_dup(&f->arena, kl_str_of(one->calls[k].function)).p;
  }
  VEC_PUSH(f->cx, &f->list, own);
  return true;
}

// --- from what a report holds ---------------------------------------------------------------------------------------

static const char *const spaces[] = {[KL_SPACE_NONE] = "",
                                     [KL_SPACE_DEVICE] = "global",
                                     [KL_SPACE_SHARED] = "shared",
                                     [KL_SPACE_LOCAL] = "local",
                                     [KL_SPACE_PARAM] = "param"};

static void put_spot(const kl_spot *s, const char *place, kiln_sim_finding *out) {
  out->place = "";
  out->space = s->bytes ? spaces[s->space] : "";
  if (!s->bytes) return;
  out->address = s->address;
  out->bytes = s->bytes;
  if (s->piece.kind == KL_PIECE_NONE) return;
  out->place = place;
  out->place_offset = (int64_t)(s->address - s->piece.base);
  out->place_bytes = s->piece.size;
}

static const char *text_of(kl_arena *arena, kl_str s) {
  return kl_str_dup(arena, s).p;
}

// What is put into a text of its own.
static const char *put_text(kl_arena *arena, kl_sb *b) {
  const char *text = text_of(arena, (kl_str){b->p, b->n});
  kl_sb_free(b);
  return text;
}

static const kiln_sim_call *calls_of(kl_arena *arena, const kl_calls *c) {
  kiln_sim_call *out = KL_NEW_N(arena, kiln_sim_call, KL_MOST_CALLS);
  for (uint32_t k = 0; k < c->n; k++) {
    out[k].function = text_of(arena, c->of[k].func->name);
    out[k].line = c->of[k].instr->at.line;
    out[k].source_line = c->of[k].instr->at.src_line;
    out[k].times = c->of[k].times;
  }
  return out;
}

// Its texts are the arena's.
static kiln_sim_finding plain(kl_ctx *cx, kl_arena *arena, const kl_ptx_module *ptx, const kl_found *f) {
  kiln_sim_finding out = {.check = checks[f->kind],
                          .what = f->kind == KL_FOUND_FAULT ? kl_fault_text(f->fault) : kl_found_text(f->kind),
                          .kernel = f->kernel ? text_of(arena, kl_kernel_describe(f->kernel).name) : "",
                          .function = f->at.func ? text_of(arena, f->at.func->name) : "",
                          .source = "",
                          .calls = calls_of(arena, &f->at.calls),
                          .call_count = f->at.calls.n,
                          .value = f->value,
                          .unknown = f->unknown,
                          .value_bytes = f->value_bytes,
                          .times = f->times};
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_report_put(&b, f);
  out.text = put_text(arena, &b);
  kl_sb_init(&b, cx);
  kl_piece_put(&b, &f->spot.piece);
  put_spot(&f->spot, put_text(arena, &b), &out);
  if (f->at.instr) {
    out.line = f->at.instr->at.line, out.source_line = f->at.instr->at.src_line;
    kl_sb_init(&b, cx);
    kl_source_put(&b, ptx, f->at.instr->at);
    out.source = put_text(arena, &b);
  }
  kl_sb_init(&b, cx);
  kl_origin_put(&b, f);
  out.origin = put_text(arena, &b);
  if (f->origin.instr) out.origin_line = f->origin.instr->at.line;
  if (f->other.instr) out.other_line = f->other.instr->at.line;
  memcpy(out.block, f->at.block, sizeof out.block);
  memcpy(out.thread, f->at.thread, sizeof out.thread);
  memcpy(out.other_block, f->other.block, sizeof out.other_block);
  memcpy(out.other_thread, f->other.thread, sizeof out.other_thread);
  return out;
}

static void take_one(kl_findings *f, const kl_checks *c, const kl_ptx_module *ptx, const kl_found *found) {
  kl_arena scratch;
  kl_arena_init(&scratch, f->cx);
  kiln_sim_finding one = plain(f->cx, &scratch, ptx, found);
  if (enter(f, &one) && found->kind != KL_FOUND_FAULT)
    kl_fail(c->cx, KILN_E_DEVICE, found->at.instr ? kl_ptx_span(ptx, found->at.instr->at) : KL_NOWHERE, "%s", one.text);
  kl_arena_free(&scratch);
}

bool kl_findings_take(kl_findings *f, const kl_checks *c, const kl_ptx_module *ptx) {
  for (size_t k = 0; k < c->report.found.n; k++) take_one(f, c, ptx, &c->report.found.p[k]);
  return c->report.found.n > 0;
}

void kl_findings_unwritten(kl_findings *f, const kl_memory *m, uint64_t address, uint64_t bytes) {
  kl_spot spot = kl_spot_in_memory(m, NULL, address, bytes);
  kl_arena scratch;
  kl_sb text, place;
  kl_arena_init(&scratch, f->cx);
  kl_sb_init(&text, f->cx);
  kl_sb_init(&place, f->cx);
  kl_sbf(&text, "%s: the host reads it", kl_found_text(KL_FOUND_NOT_WRITTEN));
  kl_spot_put(&text, &spot);
  kl_piece_put(&place, &spot.piece);
  kiln_sim_finding one = {.check = "unwritten",
                          .what = kl_found_text(KL_FOUND_NOT_WRITTEN),
                          .text = put_text(&scratch, &text),
                          .kernel = "",
                          .function = "",
                          .source = "",
                          .origin = "",
                          .times = 1};
  put_spot(&spot, put_text(&scratch, &place), &one);
  if (enter(f, &one)) kl_fail(f->cx, KILN_E_DEVICE, KL_NOWHERE, "%s", one.text);
  kl_arena_free(&scratch);
}

kiln_status kl_findings_get(kl_ctx *cx, const kl_findings *f, size_t i, kiln_sim_finding *out) {
  if (i >= f->list.n) return kl_invalid(cx, KL_NOWHERE, "expected a finding below %zu, found %zu", f->list.n, i);
  return KL_PARAMS_OUT(cx, kiln_sim_finding, &f->list.p[i], out);
}
