// What ptxas makes of a kernel: texts for it, in which each instruction has a line of its own, and what its output says
// of them.

#include "sim/count/collect.h"

#include <stdlib.h>

// --- loops ----------------------------------------------------------------------------------------------------------

// Labels that an instruction branches to; the n-th, or false.
static bool target(const kl_ptx_func *f, const kl_ptx_instr *i, uint32_t n, uint32_t *label) {
  if (kl_str_is(i->opcode, "bra") && i->noperands == 1 && i->operands[0].kind == KL_PTX_LABEL) {
    *label = i->operands[0].index;
    return n == 0;
  }
  if (!kl_str_is(i->opcode, "brx") || i->noperands != 2 || i->operands[1].kind != KL_PTX_TABLE) return false;
  const kl_ptx_table *t = &f->tables[i->operands[1].index];
  if (t->kind != KL_PTX_BRANCHTARGETS || n >= t->n) return false;
  *label = t->targets[n];
  return true;
}

void kl_find_loops(kl_ctx *cx, const kl_ptx_func *f, uint32_t *loop, uint8_t *header) {
  uint32_t label, depth = 0, n = f->ninstrs, *end = kl_alloc(cx, (2 * (size_t)n + 1) * sizeof *end), *open = end + n;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; target(f, &f->instrs[i], k, &label); k++) {
      uint32_t to = f->labels[label].at;
      if (to > i) continue;
      end[to] = i + 1;
      header[to] = 1;
    }
  for (uint32_t i = 0; loop && i < n; i++) {
    if (end[i]) open[depth++] = i;
    while (depth && end[open[depth - 1]] <= i) depth--;
    loop[i] = depth ? open[depth - 1] + 1 : 0;
  }
  kl_free(cx, end, (2 * (size_t)n + 1) * sizeof *end);
}

// --- texts ----------------------------------------------------------------------------------------------------------

typedef struct writer {
  kl_sb text;
  kl_str from;
  size_t at; // so much of `from` is written
} writer;

static bool begins(kl_str line, const char *word) {
  size_t n = strlen(word), blank = 0;
  while (blank < line.n && line.p[blank] == ' ') blank++;
  return line.n - blank >= n && memcmp(line.p + blank, word, n) == 0;
}

// Whole lines up to the one that holds byte `to`; lines of the source it was made from are left out.
static void write_up_to(writer *w, size_t to) {
  while (w->at < to) {
    const char *p = w->from.p + w->at, *end = memchr(p, '\n', w->from.n - w->at);
    kl_str line = {p, end ? (size_t)(end + 1 - p) : w->from.n - w->at};
    if (w->at + line.n > to && to < w->from.n) return;
    w->at += line.n;
    if (begins(line, ".loc ") || begins(line, ".file ")) continue;
    if (begins(line, ".target ") && line.n > 8 && memchr(line.p, ',', line.n)) // ", debug" is for ptxas -g
      line.n = (size_t)((const char *)memchr(line.p, ',', line.n) - line.p);
    kl_sb_put(&w->text, line);
    if (line.p[line.n - 1] != '\n') kl_sb_putc(&w->text, '\n');
    if (begins(line, ".address_size")) kl_sb_puts(&w->text, ".file 1 \"kernel.ptx\"\n");
  }
}

// Numbers of the functions' first instructions among all of the module's, from 1, by name.
typedef struct numbered {
  kl_str name;
  uint32_t first;
} numbered;

static int by_name(const void *a, const void *b) {
  const numbered *x = a, *y = b;
  size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
  int c = memcmp(x->name.p, y->name.p, n);
  return c ? c : (x->name.n > y->name.n) - (x->name.n < y->name.n);
}

static numbered *number_functions(kl_arena *a, const kl_ptx_module *ptx, const uint32_t *first, size_t *n) {
  numbered *out = KL_NEW_N(a, numbered, ptx->nfuncs + 1);
  *n = 0;
  for (uint32_t k = 0; k < ptx->nfuncs; k++)
    if (ptx->funcs[k].defined) out[(*n)++] = (numbered){ptx->funcs[k].name, first[k]};
  qsort(out, *n, sizeof *out, by_name);
  return out;
}

static uint32_t first_of(const numbered *of, size_t n, kl_str name) {
  const numbered want = {.name = name}, *found = n ? bsearch(&want, of, n, sizeof want, by_name) : NULL;
  return found ? found->first : 0;
}

static int by_place(const void *a, const void *b) {
  const kl_ptx_func *x = *(const kl_ptx_func *const *)a, *y = *(const kl_ptx_func *const *)b;
  uint32_t p = x->instrs[0].at.begin, q = y->instrs[0].at.begin;
  return (p > q) - (p < q);
}

// The text again with a .loc before each instruction; `headers`: by number of the instruction, loops that stay.
static char *with_lines(kiln_profile *p, const kl_ptx_module *own, kl_str text, const numbered *numbers, size_t count,
                        const uint8_t *headers, size_t *size) {
  writer w = {.from = text};
  const kl_ptx_func **order = KL_NEW_N(&p->arena, const kl_ptx_func *, own->nfuncs + 1);
  size_t n = 0;
  kl_sb_init(&w.text, p->cx);
  for (uint32_t k = 0; k < own->nfuncs; k++)
    if (own->funcs[k].ninstrs) order[n++] = &own->funcs[k];
  qsort(order, n, sizeof *order, by_place);
  for (size_t k = 0; k < n; k++) {
    uint32_t id = first_of(numbers, count, order[k]->name);
    for (uint32_t i = 0; id && i < order[k]->ninstrs; i++, id++) {
      write_up_to(&w, order[k]->instrs[i].at.begin);
      if (headers && headers[id]) kl_sb_puts(&w.text, ".pragma \"nounroll\";\n");
      kl_sbf(&w.text, ".loc 1 %u 0\n", id);
    }
  }
  write_up_to(&w, text.n);
  char *out = kl_arena_dup(&p->arena, w.text.p, w.text.n + 1);
  *size = w.text.n;
  kl_sb_free(&w.text);
  return out;
}

// The module's text, read again: where its instructions stand in it.
static void write_sources(kiln_profile *p, const kl_ptx_module *ptx, const uint32_t *first, const uint8_t *headers) {
  kl_sb printed;
  kl_ptx_module *own = NULL;
  kl_sb_init(&printed, p->cx);
  kl_ptx_print(&printed, ptx);
  kl_str text = {printed.p, printed.n};
  if (kl_ptx_parse(p->cx, "printed", text, &own) == KILN_OK) {
    size_t n;
    const numbered *numbers = number_functions(&p->arena, ptx, first, &n);
    p->source = with_lines(p, own, text, numbers, n, NULL, &p->source_size);
    if (headers) p->loops = with_lines(p, own, text, numbers, n, headers, &p->loops_size);
    kl_ptx_free(p->cx, own);
  }
  kl_sb_free(&printed);
}

void kl_sass_sources(kiln_profile *p, const kl_ptx_module *ptx) {
  uint32_t id = 1;
  bool loops = false;
  uint32_t *first = KL_NEW_N(&p->arena, uint32_t, ptx->nfuncs + 1);
  for (uint32_t k = 0; k < ptx->nfuncs; k++) first[k] = id, id += ptx->funcs[k].ninstrs;
  uint8_t *headers = kl_arena_alloc(&p->arena, id + 1);
  for (uint32_t k = 0; k < ptx->nfuncs; k++) kl_find_loops(p->cx, &ptx->funcs[k], NULL, headers + first[k]);
  for (uint32_t k = 0; k < id; k++) loops |= headers[k];
  p->most_id = id - 1;
  write_sources(p, ptx, first, loops ? headers : NULL);
}

const char *kiln_profile_source(const kiln_profile *p, bool keep_loops, size_t *size) {
  if (size) *size = !p ? 0 : keep_loops ? p->loops_size : p->source_size;
  return !p ? NULL : keep_loops ? p->loops : p->source;
}

// --- what came out --------------------------------------------------------------------------------------------------

// The number before a word of the lines that are about the kernel; 0: none.
static uint32_t number_before(const char *log, const char *kernel, const char *word) {
  size_t n = strlen(kernel);
  for (const char *p = log; p && (p = strstr(p, kernel)); p += n) {
    if (p == log || p[-1] != '\'' || p[n] != '\'') continue;
    const char *next = strstr(p + n, "Compiling entry function"), *at = strstr(p, word);
    if (!at || (next && at > next)) return 0;
    while (at > p && at[-1] == ' ') at--;
    while (at > p && at[-1] >= '0' && at[-1] <= '9') at--;
    return (uint32_t)strtoul(at, NULL, 10);
  }
  return 0;
}

kiln_status kiln_profile_assembled(kiln_context *cx, kiln_profile *p, const kiln_profile_assembly *assembly) {
  kiln_profile_assembly own;
  KL_EXPECT(cx, p, assembly);
  KL_TRY(KL_PARAMS_IN(cx, kiln_profile_assembly, assembly, &own));
  if (!own.cubin) return kl_invalid(cx, KL_NOWHERE, "expected a cubin, found NULL");
  kl_arena arena;
  kl_cubin code, loops = {0};
  kl_str kernel = kl_str_of(p->info.kernel);
  kl_arena_init(&arena, cx);
  kiln_status st = kl_cubin_read(cx, &arena, own.cubin, own.cubin_size, own.sass, kernel, p->most_id, &code);
  if (st == KILN_OK && own.loops_cubin)
    st = kl_cubin_read(cx, &arena, own.loops_cubin, own.loops_cubin_size, own.loops_sass, kernel, p->most_id, &loops);
  if (st == KILN_OK) {
    p->info.sass = (kiln_profile_sass){
        .known = true,
        .registers = code.registers,
        .stack_bytes = code.stack_bytes,
        .shared_bytes = code.shared_bytes,
        .instructions = code.instructions,
        .spill_store_bytes = number_before(own.log, p->info.kernel, " bytes spill stores"),
        .spill_load_bytes = number_before(own.log, p->info.kernel, " bytes spill loads"),
    };
    kl_sass_take(p, &code, &loops);
    kl_predict(p);
  }
  kl_arena_free(&arena);
  return st;
}
