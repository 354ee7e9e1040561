// Parses anything as PTX. What parses holds numbers that are in range, prints, and what is printed parses to the same
// text again.
#include "mutate.h"
#include "sim/ptx/ptx.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

static void fail(kl_ctx *cx, const char *what, const char *text, const char *again) {
  fprintf(stderr, "%s\n--- first\n%s--- second\n%s", what, text, again ? again : "(none)\n");
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  abort();
}

// --- numbers ------------------------------------------------------------------------------------------------------

static bool operand_is_sound(const kl_ptx_module *m, const kl_ptx_func *f, const kl_ptx_operand *o) {
  uint32_t count[KL_PTX_SINK + 1] = {
      [KL_PTX_REG] = f->registers,   [KL_PTX_VAR] = m->nvars,     [KL_PTX_LOCALVAR] = f->nvars,
      [KL_PTX_FUNCTION] = m->nfuncs, [KL_PTX_LABEL] = f->nlabels, [KL_PTX_TABLE] = f->ntables,
  };
  if (o->kind > KL_PTX_SINK || (count[o->kind] && o->index >= count[o->kind])) return false;
  if (!count[o->kind] && o->index) return false;
  for (uint32_t i = 0; i < o->nitems; i++)
    if (!operand_is_sound(m, f, &o->items[i])) return false;
  return true;
}

static bool body_is_sound(const kl_ptx_module *m, const kl_ptx_func *f) {
  for (uint32_t i = 0; i < f->ninstrs; i++) {
    const kl_ptx_instr *x = &f->instrs[i];
    if (x->guard > f->registers || x->at.begin >= x->at.end || x->at.end > m->source.text.n) return false;
    for (uint32_t k = 0; k < x->noperands; k++)
      if (!operand_is_sound(m, f, &x->operands[k])) return false;
  }
  for (uint32_t i = 0; i < f->nlabels; i++)
    if (f->labels[i].at > f->ninstrs) return false;
  for (uint32_t i = 0; i < f->ntables; i++)
    for (uint32_t k = 0; k < f->tables[i].n; k++)
      if (f->tables[i].targets[k] >= (f->tables[i].kind == KL_PTX_CALLTARGETS ? m->nfuncs : f->nlabels)) return false;
  for (uint32_t i = 0; i < f->nmarks; i++)
    if (f->marks[i].at > f->ninstrs || (i && f->marks[i].at < f->marks[i - 1].at)) return false;
  return true;
}

static bool is_sound(const kl_ptx_module *m) {
  for (uint32_t i = 0; i < m->nfuncs; i++)
    if (!body_is_sound(m, &m->funcs[i])) return false;
  for (uint32_t i = 0; i < m->nvars; i++)
    for (size_t k = 0; k < m->vars[i].nrelocs; k++) {
      const kl_ptx_reloc *r = &m->vars[i].relocs[k];
      if (r->symbol >= (r->function ? m->nfuncs : m->nvars) || r->at + r->bytes > m->vars[i].bytes) return false;
    }
  return true;
}

// --- text ---------------------------------------------------------------------------------------------------------

static void check_again(kl_ctx *cx, const kl_sb *text) {
  kl_ptx_module *m;
  kl_sb again;
  kl_sb_init(&again, cx);
  kiln_status s = kl_ptx_parse(cx, "printed", (kl_str){text->p, text->n}, &m);
  if (s == KILN_E_MEMORY) return;
  if (s != KILN_OK) fail(cx, "printed text does not parse", text->p, NULL);
  kl_ptx_print(&again, m);
  if (again.n != text->n || memcmp(again.p, text->p, text->n) != 0)
    fail(cx, "printed text is no fixed point", text->p, again.p);
  kl_sb_free(&again);
  kl_ptx_free(cx, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kl_ctx *cx = kiln_context_create(NULL);
  kl_ptx_module *m;
  kl_limit_memory(cx, (uint64_t)256 << 20);
  kiln_status s = kl_ptx_parse(cx, "input", (kl_str){(const char *)data, size}, &m);
  if (s == KILN_OK) {
    kl_sb text;
    kl_sb_init(&text, cx);
    if (!is_sound(m)) fail(cx, "a number is out of range", "", NULL);
    kl_ptx_print(&text, m);
    check_again(cx, &text);
    kl_sb_free(&text);
    kl_ptx_free(cx, m);
  } else if (m || kiln_diagnostics_count(cx) == 0) {
    fail(cx, "a failed parse left a module or no finding", "", NULL);
  }
  kiln_context_destroy(&cx);
  return 0;
}

// --- mutations ----------------------------------------------------------------------------------------------------

static void change_word(kl_mutation *m) {
  static const char *const words[] = {
      ".reg",
      ".param",
      ".local",
      ".shared",
      ".global",
      ".const",
      ".const[2]",
      ".align 8",
      ".align 16",
      ".ptr",
      ".v2",
      ".v4",
      ".b8",
      ".u8",
      ".u16",
      ".s32",
      ".b32",
      ".u64",
      ".b64",
      ".b128",
      ".f32",
      ".f64",
      ".pred",
      ".f16x2",
      ".entry",
      ".func",
      ".visible",
      ".extern",
      ".weak",
      ".common",
      ".alias",
      ".maxntid 1, 2",
      ".reqntid 32",
      ".minnctapersm 2",
      ".maxnreg 16",
      ".noreturn",
      ".pragma \"x\";",
      ".loc 1 2 3",
      ".file 1 \"a\"",
      ".branchtargets L<3>",
      ".calltargets f",
      ".callprototype (.param .b32 _) _ (.param .b32 _)",
      ".section .x { 1 }",
      ".attribute(.managed)",
      ".texref",
      "generic(x)",
      "0xff(x)",
      "WARP_SZ",
      "0f3f800000",
      "0d3ff0000000000000",
      "1.5",
      ".5e-3",
      "0x7fU",
      "0b11",
      "(.s64)",
      "(.u64)",
      "%tid.x",
      "%r<5>",
      "%r3",
      "%r03",
      "x.y",
      "L:",
      "@%p1",
      "@!p",
      "{",
      "}",
      "{ }",
      "[",
      "]",
      "[x+4]",
      "[%rd1+-4, {a, b}]",
      "(",
      ")",
      "call (r), f, (p), t",
      "p|q",
      "_",
      "!p",
      "-a",
      ";",
      ",",
      "? 1 : 2",
      "<<",
      "%",
      "&&",
      "+",
      "==",
      "//",
      "/*",
      "*/",
      "\"",
      "@@DWARF",
      "= {1, 2}",
      "[]",
      "[0]",
      "[3][2]",
  };
  kl_replace_text(m, kl_any_token(m), words[kl_below(m, KL_COUNT(words))]);
}

static void add_line(kl_mutation *m) {
  static const char *const lines[] = {
      "{\n",
      "}\n",
      "L:\n",
      ".reg .b32 %r<5>;\n",
      ".reg .pred p, q;\n",
      ".reg .v4 .f32 v<2>;\n",
      ".param .b32 x;\n",
      "add.s32 %r1, %r2, -3;\n",
      "@p bra L;\n",
      "ld.global.v2.b32 {%r1, %r2}, [%r3+4];\n",
      "t: .branchtargets L, L<2>;\n",
      "brx.idx %r1, t;\n",
      "setp.eq.s32 p|q, %r1, 1;\n",
      "mov.f32 v1.x, 0f00000000;\n",
      "call.uni (x), f, (%r1, 2);\n",
      ".func f(.param .b32 x);\n",
      ".global .u32 x[4] = {1, 2};\n",
      ".global .u64 y = generic(x)+4;\n",
      "ret;\n",
      ".func (.reg .b32 r) g(.reg .b32 a) { mov.b32 r, a; ret; }\n",
      ".pragma \"nounroll\";\n",
      "mov.u64 %r1, x[2];\n",
  };
  kl_token at = kl_line_at(m, kl_any_token(m).begin);
  const char *line = lines[kl_below(m, KL_COUNT(lines))];
  kl_replace(m, at.begin, at.begin, line, strlen(line));
}

// Mostly text that is nearly valid; bytes of all kinds now and then.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  static void (*const kinds[])(kl_mutation *) = {change_word, change_word, change_word, add_line, add_line};
  if (seed % 8 == 0 && LLVMFuzzerMutate) return LLVMFuzzerMutate(data, size, max);
  return kl_mutate_text(data, size, max, seed, (kl_kinds){kinds, KL_COUNT(kinds)});
}
