// Modules as text. Scopes are kept, so that every name prints as it was read; what PTX says in several ways (sizes,
// constants, linking) prints in one.
#include "sim/ptx/ptx.h"

#include <stdlib.h>

static void put_quoted(kl_sb *b, const char *before, kl_str s, const char *after) {
  kl_sb_puts(b, before);
  kl_sb_putc(b, '"');
  kl_sb_put(b, s);
  kl_sb_putc(b, '"');
  kl_sb_puts(b, after);
}

static void put_word(kl_sb *b, const char *before, uint64_t n) {
  kl_sb_puts(b, before);
  kl_sb_u64(b, n);
}

// --- registers ----------------------------------------------------------------------------------------------------

static const kl_ptx_reg *run_of(const kl_ptx_func *f, uint32_t reg) {
  uint32_t low = 0, high = f->nregs;
  while (low + 1 < high) {
    uint32_t mid = low + (high - low) / 2;
    if (f->regs[mid].first <= reg)
      low = mid;
    else
      high = mid;
  }
  return &f->regs[low];
}

kl_ptx_type kl_ptx_register_type(const kl_ptx_func *f, uint32_t reg) {
  return run_of(f, reg)->type;
}

void kl_ptx_put_register(kl_sb *b, const kl_ptx_func *f, uint32_t reg) {
  const kl_ptx_reg *r = run_of(f, reg);
  uint32_t at = reg - r->first;
  kl_sb_put(b, r->name);
  if (r->numbered) kl_sb_u64(b, at / r->vector);
  if (r->vector == 1) return;
  kl_sb_putc(b, '.');
  kl_sb_putc(b, "xyzw"[at % r->vector]);
}

// --- operands and instructions ------------------------------------------------------------------------------------

typedef struct printer {
  kl_sb *b;
  const kl_ptx_module *m;
  const kl_ptx_func *f;
} printer;

static void put_offset(kl_sb *b, int64_t offset) {
  if (offset) kl_sb_putc(b, '+');
  if (offset) kl_sb_i64(b, offset);
}

static void put_operand(const printer *p, const kl_ptx_operand *o);

static void put_items(const printer *p, const kl_ptx_operand *o, const char *open, const char *between,
                      const char *close) {
  kl_sb_puts(p->b, open);
  for (uint32_t i = 0; i < o->nitems; i++) {
    if (i) kl_sb_puts(p->b, between);
    put_operand(p, &o->items[i]);
  }
  kl_sb_puts(p->b, close);
}

static void put_address(const printer *p, const kl_ptx_operand *o) {
  kl_sb_putc(p->b, '[');
  put_operand(p, &o->items[0]);
  put_offset(p->b, o->offset);
  for (uint32_t i = 1; i < o->nitems; i++) {
    kl_sb_puts(p->b, ", ");
    put_operand(p, &o->items[i]);
  }
  kl_sb_putc(p->b, ']');
}

static void put_register_operand(const printer *p, const kl_ptx_operand *o) {
  kl_ptx_put_register(p->b, p->f, o->index);
  if (!o->text.n) return;
  kl_sb_putc(p->b, '.');
  kl_sb_put(p->b, o->text);
}

static void put_index(const printer *p, const kl_ptx_operand *o) {
  const kl_ptx_var *v = o->kind == KL_PTX_VAR ? &p->m->vars[o->index] : &p->f->vars[o->index];
  kl_sb_putc(p->b, '[');
  kl_sb_i64(p->b, o->offset / (kl_ptx_type_bits[v->type] / 8));
  kl_sb_putc(p->b, ']');
}

static void put_operand(const printer *p, const kl_ptx_operand *o) {
  kl_sb *b = p->b;
  if (o->negated) kl_sb_putc(b, o->minus ? '-' : '!');
  switch ((kl_ptx_kind)o->kind) {
  case KL_PTX_REG: put_register_operand(p, o); break;
  case KL_PTX_SPECIAL: kl_sb_put(b, o->text); break;
  case KL_PTX_INT: o->negative ? kl_sb_i64(b, (int64_t)o->bits) : kl_sb_u64(b, o->bits); break;
  case KL_PTX_FLOAT32: kl_sbf(b, "0f%08llx", (unsigned long long)o->bits); break;
  case KL_PTX_FLOAT64: kl_sbf(b, "0d%016llx", (unsigned long long)o->bits); break;
  case KL_PTX_VAR: kl_sb_put(b, p->m->vars[o->index].name); break;
  case KL_PTX_LOCALVAR: kl_sb_put(b, p->f->vars[o->index].name); break;
  case KL_PTX_FUNCTION: kl_sb_put(b, p->m->funcs[o->index].name); break;
  case KL_PTX_LABEL: kl_sb_put(b, p->f->labels[o->index].name); break;
  case KL_PTX_TABLE: kl_sb_put(b, p->f->tables[o->index].name); break;
  case KL_PTX_ADDRESS: put_address(p, o); return;
  case KL_PTX_VECTOR: put_items(p, o, "{", ", ", "}"); break;
  case KL_PTX_PAIR: put_items(p, o, "", "|", ""); break;
  case KL_PTX_LIST: put_items(p, o, "(", ", ", ")"); break;
  case KL_PTX_SINK: kl_sb_putc(b, '_'); break;
  }
  if (o->indexed)
    put_index(p, o);
  else
    put_offset(b, o->offset);
}

void kl_ptx_put_instr(kl_sb *b, const kl_ptx_module *m, const kl_ptx_func *f, const kl_ptx_instr *i) {
  printer p = {b, m, f};
  if (i->guard) {
    kl_sb_puts(b, i->guard_negated ? "@!" : "@");
    kl_ptx_put_register(b, f, i->guard - 1);
    kl_sb_putc(b, ' ');
  }
  kl_sb_put(b, i->opcode);
  for (uint32_t k = 0; k < i->nmods; k++) {
    kl_sb_putc(b, '.');
    kl_sb_put(b, i->mods[k]);
  }
  for (uint32_t k = 0; k < i->noperands; k++) {
    kl_sb_puts(b, k ? ", " : " ");
    put_operand(&p, &i->operands[k]);
  }
  kl_sb_putc(b, ';');
}

// --- variables ----------------------------------------------------------------------------------------------------

static const char *const spaces[] = {
    [KL_PTX_GLOBAL] = "global", [KL_PTX_CONST] = "const", [KL_PTX_SHARED] = "shared",
    [KL_PTX_LOCAL] = "local",   [KL_PTX_PARAM] = "param",
};

static void put_dotted(kl_sb *b, const char *word) {
  kl_sb_putc(b, '.');
  kl_sb_puts(b, word);
  kl_sb_putc(b, ' ');
}

// Space, alignment, type, name, size.
static void put_variable(kl_sb *b, const kl_ptx_var *v) {
  uint64_t element = kl_ptx_type_bits[v->type] / 8;
  put_dotted(b, v->reg ? "reg" : spaces[v->space]);
  if (v->bank) kl_sbf(b, "[%u] ", v->bank);
  if (!v->reg && v->align != element) kl_sbf(b, ".align %u ", v->align);
  put_dotted(b, kl_ptx_type_names[v->type]);
  if (v->pointer) {
    kl_sb_puts(b, ".ptr ");
    if (v->pointer_space >= 0) put_dotted(b, spaces[v->pointer_space]);
    if (v->pointer_align) kl_sbf(b, ".align %u ", v->pointer_align);
  }
  kl_sb_put(b, v->name);
  if (v->reg) return;
  if (!v->bytes)
    kl_sb_puts(b, "[]");
  else if (v->bytes != element)
    kl_sbf(b, "[%llu]", (unsigned long long)(v->bytes / element));
}

static void put_reloc(kl_sb *b, const kl_ptx_module *m, const kl_ptx_reloc *r) {
  if (r->bytes == 1) kl_sbf(b, "0x%llx(", (unsigned long long)0xff << 8 * r->byte);
  if (r->generic) kl_sb_puts(b, "generic(");
  kl_sb_put(b, r->function ? m->funcs[r->symbol].name : m->vars[r->symbol].name);
  if (r->generic) kl_sb_putc(b, ')');
  put_offset(b, r->offset);
  if (r->bytes == 1) kl_sb_putc(b, ')');
}

static void put_bits(kl_sb *b, kl_ptx_type type, const uint8_t *p) {
  uint64_t bits = 0, bytes = kl_ptx_type_bits[type] / 8;
  memcpy(&bits, p, bytes < 8 ? bytes : 8);
  if (type == KL_PTX_f32)
    kl_sbf(b, "0f%08llx", (unsigned long long)bits);
  else if (type == KL_PTX_f64)
    kl_sbf(b, "0d%016llx", (unsigned long long)bits);
  else
    kl_sb_u64(b, bits);
}

// Zeros at the end are left out, but for one value at least.
static void put_initial(kl_sb *b, const kl_ptx_module *m, const kl_ptx_var *v) {
  uint64_t element = kl_ptx_type_bits[v->type] / 8, n = v->bytes / element;
  uint64_t last = v->nrelocs ? v->relocs[v->nrelocs - 1].at / element : 0, end = v->ninit;
  while (end > (last + 1) * element && v->init[end - 1] == 0) end--;
  size_t r = 0;
  kl_sb_puts(b, n > 1 ? " = {" : " = ");
  for (uint64_t i = 0; i * element < end; i++) {
    if (i) kl_sb_puts(b, ", ");
    if (r < v->nrelocs && v->relocs[r].at == i * element)
      put_reloc(b, m, &v->relocs[r++]);
    else
      put_bits(b, v->type, v->init + i * element);
  }
  if (n > 1) kl_sb_putc(b, '}');
}

static int by_place(const void *a, const void *b, void *module) {
  const kl_ptx_module *m = module;
  uint32_t x = m->vars[*(const uint32_t *)a].at.begin, y = m->vars[*(const uint32_t *)b].at.begin;
  return (x > y) - (x < y);
}

// First what is declared, in the order of numbers; then what is defined, in the order of the text, since initial values
// name what stands before them.
static void put_module_variables(kl_sb *b, const kl_ptx_module *m) {
  uint32_t *order = kl_alloc(b->cx, m->nvars * sizeof *order), n = 0;
  for (uint32_t i = 0; i < m->nvars; i++) {
    if (!m->vars[i].external) order[n++] = i;
    if (!m->vars[i].external && !m->vars[i].forward) continue;
    kl_sb_puts(b, ".extern ");
    put_variable(b, &m->vars[i]);
    kl_sb_puts(b, ";\n");
  }
  qsort_r(order, n, sizeof *order, by_place, (void *)m);
  for (uint32_t i = 0; i < n; i++) {
    const kl_ptx_var *v = &m->vars[order[i]];
    kl_sb_puts(b, v->weak ? ".weak " : v->common ? ".common " : v->visible ? ".visible " : "");
    put_variable(b, v);
    if (v->init) put_initial(b, m, v);
    kl_sb_puts(b, ";\n");
  }
  kl_free(b->cx, order, m->nvars * sizeof *order);
}

// --- heads of functions -------------------------------------------------------------------------------------------

// Variables from `first` on.
static void put_params(kl_sb *b, const kl_ptx_var *v, uint32_t first, uint32_t n) {
  kl_sb_putc(b, '(');
  for (uint32_t i = first; i < first + n; i++) {
    kl_sb_puts(b, i > first ? ", " : "");
    put_variable(b, &v[i]);
  }
  kl_sb_putc(b, ')');
}

static void put_extents(kl_sb *b, const char *word, const uint32_t v[3]) {
  if (v[0]) kl_sbf(b, " .%s %u, %u, %u", word, v[0], v[1], v[2]);
}

static void put_count(kl_sb *b, const char *word, uint32_t v) {
  if (v) kl_sbf(b, " .%s %u", word, v);
}

static void put_tuning(kl_sb *b, const kl_ptx_tuning *t) {
  put_extents(b, "maxntid", t->maxntid);
  put_extents(b, "reqntid", t->reqntid);
  put_count(b, "minnctapersm", t->minnctapersm);
  put_count(b, "maxnctapersm", t->maxnctapersm);
  put_count(b, "maxnreg", t->maxnreg);
  put_extents(b, "reqnctapercluster", t->reqnctapercluster);
  put_count(b, "maxclusterrank", t->maxclusterrank);
  if (t->explicitcluster) kl_sb_puts(b, " .explicitcluster");
  if (t->blocksareclusters) kl_sb_puts(b, " .blocksareclusters");
  if (t->noreturn) kl_sb_puts(b, " .noreturn");
  if (t->unique) kl_sb_puts(b, " .unique");
  if (t->abi_preserve) put_word(b, " .abi_preserve ", t->abi_preserve - 1);
  if (t->abi_preserve_control) put_word(b, " .abi_preserve_control ", t->abi_preserve_control - 1);
}

static void put_head(kl_sb *b, const kl_ptx_func *f) {
  kl_sb_puts(b, f->external ? ".extern " : f->weak ? ".weak " : f->visible ? ".visible " : "");
  kl_sb_puts(b, f->entry ? ".entry " : ".func ");
  if (f->nreturns) put_params(b, f->vars, 0, f->nreturns);
  if (f->nreturns) kl_sb_putc(b, ' ');
  kl_sb_put(b, f->name);
  put_params(b, f->vars, f->nreturns, f->nparams);
  put_tuning(b, &f->tuning);
  for (uint32_t i = 0; i < f->npragmas; i++) put_quoted(b, " .pragma ", f->pragmas[i], ";");
}

// --- bodies -------------------------------------------------------------------------------------------------------

typedef struct body {
  printer p;
  uint32_t depth;
  uint32_t file, src_line;
} body;

static void indent(body *w, bool label) {
  for (uint32_t i = 0; i < w->depth; i++) kl_sb_puts(w->p.b, i + 1 < w->depth || !label ? "  " : "");
}

static void put_reg(kl_sb *b, const kl_ptx_reg *r) {
  kl_sb_puts(b, ".reg ");
  if (r->vector > 1) kl_sbf(b, ".v%u ", r->vector);
  put_dotted(b, kl_ptx_type_names[r->type]);
  kl_sb_put(b, r->name);
  if (r->numbered) kl_sbf(b, "<%u>", r->count / r->vector);
  kl_sb_puts(b, ";\n");
}

static void put_targets(const printer *p, const kl_ptx_table *t) {
  bool calls = t->kind == KL_PTX_CALLTARGETS;
  kl_sb_puts(p->b, calls ? ".calltargets " : ".branchtargets ");
  for (uint32_t i = 0; i < t->n; i++) {
    kl_sb_puts(p->b, i ? ", " : "");
    kl_sb_put(p->b, calls ? p->m->funcs[t->targets[i]].name : p->f->labels[t->targets[i]].name);
  }
}

static void put_table(const printer *p, const kl_ptx_table *t) {
  kl_sb_put(p->b, t->name);
  kl_sb_puts(p->b, ": ");
  if (t->kind == KL_PTX_CALLPROTOTYPE) {
    kl_sb_puts(p->b, ".callprototype ");
    if (t->nreturns) put_params(p->b, t->returns, 0, t->nreturns);
    kl_sb_puts(p->b, t->nreturns ? " _ " : "_ ");
    put_params(p->b, t->params, 0, t->nparams);
    put_tuning(p->b, &t->tuning);
  } else {
    put_targets(p, t);
  }
  kl_sb_puts(p->b, ";\n");
}

static void put_line(body *w, const kl_ptx_instr *i) {
  if (i->at.src_line && (i->at.file != w->file || i->at.src_line != w->src_line)) {
    indent(w, false);
    kl_sbf(w->p.b, ".loc %u %u 0\n", i->at.file, i->at.src_line);
    w->file = i->at.file;
    w->src_line = i->at.src_line;
  }
  indent(w, false);
  kl_ptx_put_instr(w->p.b, w->p.m, w->p.f, i);
  kl_sb_putc(w->p.b, '\n');
}

static void put_mark(body *w, const kl_ptx_mark *k) {
  const kl_ptx_func *f = w->p.f;
  kl_sb *b = w->p.b;
  w->depth -= k->kind == KL_PTX_MARK_CLOSE;
  indent(w, k->kind == KL_PTX_MARK_LABEL);
  switch (k->kind) {
  case KL_PTX_MARK_REG: put_reg(b, &f->regs[k->index]); break;
  case KL_PTX_MARK_VAR:
    put_variable(b, &f->vars[k->index]);
    if (f->vars[k->index].init) put_initial(b, w->p.m, &f->vars[k->index]);
    kl_sb_puts(b, ";\n");
    break;
  case KL_PTX_MARK_TABLE: put_table(&w->p, &f->tables[k->index]); break;
  case KL_PTX_MARK_LABEL:
    kl_sb_put(b, f->labels[k->index].name);
    kl_sb_puts(b, ":\n");
    break;
  case KL_PTX_MARK_PRAGMA: put_quoted(b, ".pragma ", f->statement_pragmas[k->index].text, ";\n"); break;
  case KL_PTX_MARK_OPEN: kl_sb_puts(b, "{\n"); break;
  case KL_PTX_MARK_CLOSE: kl_sb_puts(b, "}\n"); break;
  }
  w->depth += k->kind == KL_PTX_MARK_OPEN;
}

static void put_body(kl_sb *b, const kl_ptx_module *m, const kl_ptx_func *f) {
  body w = {.p = {b, m, f}, .depth = 1};
  uint32_t at = 0;
  kl_sb_puts(b, "{\n");
  for (uint32_t i = 0; i < f->nmarks; i++) {
    while (at < f->marks[i].at) put_line(&w, &f->instrs[at++]);
    put_mark(&w, &f->marks[i]);
  }
  while (at < f->ninstrs) put_line(&w, &f->instrs[at++]);
  kl_sb_puts(b, "}\n");
}

// --- modules ------------------------------------------------------------------------------------------------------

static void put_functions(kl_sb *b, const kl_ptx_module *m, bool entries) {
  for (uint32_t i = 0; i < m->nfuncs; i++) {
    if (m->funcs[i].entry != entries || !m->funcs[i].defined) continue;
    kl_sb_putc(b, '\n');
    put_head(b, &m->funcs[i]);
    kl_sb_putc(b, '\n');
    put_body(b, m, &m->funcs[i]);
  }
}

// Of kernels only those whose address a variable holds, or that have no body.
static void put_prototypes(kl_sb *b, const kl_ptx_module *m) {
  bool *named = kl_alloc(b->cx, m->nfuncs);
  for (uint32_t i = 0; i < m->nvars; i++)
    for (size_t r = 0; r < m->vars[i].nrelocs; r++)
      if (m->vars[i].relocs[r].function) named[m->vars[i].relocs[r].symbol] = true;
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < m->nfuncs; i++) {
      const kl_ptx_func *f = &m->funcs[i];
      if (f->entry != (pass == 1) || (f->entry && f->defined && !named[i])) continue;
      put_head(b, f);
      kl_sb_puts(b, ";\n");
    }
  kl_free(b->cx, named, m->nfuncs);
}

// Functions are declared before all that may name them, in the order of their numbers.
void kl_ptx_print(kl_sb *b, const kl_ptx_module *m) {
  kl_sbf(b, ".version %u.%u\n.target ", m->version / 10, m->version % 10);
  kl_sb_put(b, m->target);
  kl_sbf(b, "\n.address_size %u\n\n", m->address_bits);
  for (uint32_t i = 0; i < m->nfiles; i++)
    if (m->files[i].p) {
      put_word(b, ".file ", i);
      put_quoted(b, " ", m->files[i], "\n");
    }
  for (uint32_t i = 0; i < m->npragmas; i++) put_quoted(b, ".pragma ", m->pragmas[i], ";\n");
  put_prototypes(b, m);
  put_module_variables(b, m);
  put_functions(b, m, false);
  put_functions(b, m, true);
  for (uint32_t i = 0; i < m->nfuncs; i++) {
    if (!m->funcs[i].alias) continue;
    kl_sb_puts(b, ".alias ");
    kl_sb_put(b, m->funcs[i].name);
    kl_sb_puts(b, ", ");
    kl_sb_put(b, m->funcs[m->funcs[i].alias - 1].name);
    kl_sb_puts(b, ";\n");
  }
}
