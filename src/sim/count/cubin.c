// Cubins: ELF files with a section of code for each function and DWARF's table of lines. Read with care: what is
// damaged gives a finding.

#include "sim/count/collect.h"

#include <elf.h>
#include <stdlib.h>

enum {
  INSTRUCTION = 16,
  OPCODE = 0xfff, // of its first 16 bits
  OP_NOP = 0x918,
  OP_BRANCH = 0x947,
  MACHINE = 190,   // EM_CUDA
  IS_ENTRY = 0x10, // in a symbol's st_other
};

// A piece of the file. All reads are checked: beyond the end they give 0 and mark it as damaged.
typedef struct bytes {
  const uint8_t *p;
  size_t n, at;
  bool damaged;
} bytes;

static const void *take(bytes *b, size_t n) {
  static const uint8_t nothing[16];
  if (b->damaged || n > b->n - b->at) {
    b->damaged = true;
    return nothing;
  }
  const void *p = b->p + b->at;
  b->at += n;
  return p;
}

static uint64_t take_number(bytes *b, unsigned size) {
  uint64_t v = 0;
  memcpy(&v, take(b, size), size);
  return v;
}

static uint64_t take_uleb(bytes *b) {
  uint64_t v = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint64_t byte = take_number(b, 1);
    if (shift < 64) v |= (byte & 0x7f) << shift;
    if (!(byte & 0x80)) return v;
  }
}

static int64_t take_sleb(bytes *b) {
  uint64_t v = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint64_t byte = take_number(b, 1);
    if (shift < 64) v |= (byte & 0x7f) << shift;
    if (byte & 0x80) continue;
    if (byte & 0x40 && shift + 7 < 64) v |= ~0ull << (shift + 7);
    return (int64_t)v;
  }
}

// --- sections -------------------------------------------------------------------------------------------------------

typedef struct elf {
  const uint8_t *p;
  size_t n;
  Elf64_Ehdr head;
  bytes names, symbols, strings;
} elf;

static bool section_at(const elf *e, uint32_t i, Elf64_Shdr *out) {
  if (i >= e->head.e_shnum) return false;
  memcpy(out, e->p + e->head.e_shoff + (size_t)i * sizeof *out, sizeof *out);
  return true;
}

static bytes content(const elf *e, const Elf64_Shdr *s) {
  if (s->sh_type == SHT_NOBITS || s->sh_offset > e->n || s->sh_size > e->n - s->sh_offset)
    return (bytes){.p = e->p, .damaged = s->sh_type != SHT_NOBITS};
  return (bytes){.p = e->p + s->sh_offset, .n = (size_t)s->sh_size};
}

static kl_str text_at(const bytes *b, uint64_t at) {
  if (b->damaged || at >= b->n) return (kl_str){"", 0};
  const char *p = (const char *)b->p + at;
  return (kl_str){p, strnlen(p, b->n - (size_t)at)};
}

static kl_str name_of(const elf *e, const Elf64_Shdr *s) {
  return text_at(&e->names, s->sh_name);
}

// The name behind a prefix: ".text." of ".text.k". False: another prefix.
static bool behind(kl_str name, const char *prefix, kl_str *rest) {
  size_t n = strlen(prefix);
  if (name.n < n || memcmp(name.p, prefix, n) != 0) return false;
  *rest = (kl_str){name.p + n, name.n - n};
  return true;
}

static bool symbol_at(const elf *e, uint64_t i, Elf64_Sym *out) {
  if (e->symbols.damaged || i >= e->symbols.n / sizeof *out) return false;
  memcpy(out, e->symbols.p + (size_t)i * sizeof *out, sizeof *out);
  return true;
}

static const char *open_elf(elf *e, const void *data, size_t size) {
  Elf64_Shdr s;
  *e = (elf){.p = data, .n = size};
  if (size < sizeof e->head || memcmp(data, ELFMAG, SELFMAG) != 0) return "no ELF file";
  memcpy(&e->head, data, sizeof e->head);
  if (e->head.e_ident[EI_CLASS] != ELFCLASS64 || e->head.e_machine != MACHINE) return "no code of an NVIDIA GPU";
  if (e->head.e_shentsize != sizeof s || e->head.e_shoff > size ||
      e->head.e_shnum > (size - e->head.e_shoff) / sizeof s || !section_at(e, e->head.e_shstrndx, &s))
    return "damaged: its sections lie outside";
  e->names = content(e, &s);
  for (uint32_t i = 0; section_at(e, i, &s); i++) {
    Elf64_Shdr strings;
    if (s.sh_type != SHT_SYMTAB || !section_at(e, s.sh_link, &strings)) continue;
    e->symbols = content(e, &s);
    e->strings = content(e, &strings);
  }
  return e->names.damaged || e->symbols.damaged || e->strings.damaged ? "damaged: its names lie outside" : NULL;
}

// --- code -----------------------------------------------------------------------------------------------------------

// Sections that count: the kernel's, and those of functions that are no kernels.
typedef struct code {
  bytes b;
  uint32_t instructions; // without those that fill up at the end
  uint32_t *line;        // by instruction; 0: none
  kl_sass_instruction *sass;
  uint8_t *rare; // of a function that is called for rare values
  kl_str name;   // of the function
} code;

static uint32_t opcode_at(const bytes *b, uint32_t k) {
  uint16_t low;
  memcpy(&low, b->p + (size_t)k * INSTRUCTION, sizeof low);
  return low & OPCODE;
}

// Behind the code stand a branch to itself, which nothing reaches, and NOPs.
static uint32_t without_filling(const bytes *b) {
  uint32_t n = (uint32_t)(b->n / INSTRUCTION);
  while (n && opcode_at(b, n - 1) == OP_NOP) n--;
  if (n && opcode_at(b, n - 1) == OP_BRANCH) {
    int32_t far;
    memcpy(&far, b->p + (size_t)(n - 1) * INSTRUCTION + 4, sizeof far);
    if (far == -INSTRUCTION || far == -INSTRUCTION / 4) n--;
  }
  return n;
}

// By section: does a kernel begin in it?
static const uint8_t *find_kernels(const elf *e, kl_arena *a) {
  uint8_t *is = kl_arena_alloc(a, (size_t)e->head.e_shnum + 1);
  Elf64_Sym s;
  for (uint64_t i = 0; symbol_at(e, i, &s); i++)
    if (s.st_shndx < e->head.e_shnum && s.st_other & IS_ENTRY) is[s.st_shndx] = 1;
  return is;
}

static bool holds(kl_str s, const char *word) {
  return memmem(s.p, s.n, word, strlen(word)) != NULL;
}

// What ptxas calls in place of a floating-point instruction of several (a quotient, a root) where its operands are
// denormal, infinite and the like: functions of its own behind the kernel's code, without lines. Those of integers are
// called for common values, too.
static void find_rare(const elf *e, code *codes) {
  Elf64_Sym s;
  for (uint64_t i = 0; symbol_at(e, i, &s); i++) {
    kl_str name = text_at(&e->strings, s.st_name), function;
    if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx >= e->head.e_shnum) continue;
    if (!behind(name, "$__internal_", &function) || !(holds(function, "path") || holds(function, "_full"))) continue;
    code *c = &codes[s.st_shndx];
    uint64_t first = s.st_value / INSTRUCTION, n = s.st_size / INSTRUCTION;
    for (uint64_t k = first; c->b.p && k < c->instructions && k - first < n; k++) c->rare[k] = 1;
  }
}

// By section; b.p NULL: not one that counts. False: there is none of the kernel.
static bool find_code(const elf *e, kl_arena *a, kl_str kernel, code *out) {
  Elf64_Shdr s;
  bool found = false;
  const uint8_t *is_kernel = find_kernels(e, a);
  for (uint32_t i = 0; section_at(e, i, &s); i++) {
    kl_str name;
    if (!behind(name_of(e, &s), ".text.", &name)) continue;
    bool own = kl_str_eq(name, kernel);
    bytes b = content(e, &s);
    if (b.damaged || (!own && is_kernel[i])) continue;
    found |= own;
    out[i] = (code){.b = b, .instructions = without_filling(&b), .name = name};
    out[i].line = KL_NEW_N(a, uint32_t, out[i].instructions + 1);
    out[i].sass = KL_NEW_N(a, kl_sass_instruction, out[i].instructions + 1);
    out[i].rare = kl_arena_alloc(a, out[i].instructions + 1);
  }
  find_rare(e, out);
  return found;
}

// --- lines ----------------------------------------------------------------------------------------------------------

typedef struct place {
  code *of; // NULL: code that does not count
  uint64_t address, line;
} place;

// How many instructions were given a line.
static uint64_t put_lines(const place *from, uint64_t to) {
  if (!from->of) return 0;
  uint64_t first = from->address / INSTRUCTION, last = to / INSTRUCTION;
  if (last > from->of->instructions) last = from->of->instructions;
  for (uint64_t k = first; k < last; k++) from->of->line[k] = from->line <= UINT32_MAX ? (uint32_t)from->line : 0;
  return first < last ? last - first : 0;
}

typedef struct relocation {
  uint64_t at, value;
  uint32_t section;
} relocation;
typedef struct lines {
  const elf *e;
  code *codes; // by section
  relocation *relocations;
  size_t nrelocations;
  bytes b; // of .debug_line
  uint8_t least, base_opcode, range;
  int8_t base;
  uint8_t operands[256];
  place at, row; // row: the last one; open: there is one
  bool open;
  uint64_t placed; // instructions given a line, some again
} lines;

static int by_offset(const void *a, const void *b) {
  const relocation *x = a, *y = b;
  return (x->at > y->at) - (x->at < y->at);
}

static void read_relocations(lines *l, kl_arena *a, const Elf64_Shdr *s) {
  bytes b = content(l->e, s);
  bool rela = s->sh_type == SHT_RELA;
  size_t size = rela ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
  l->relocations = KL_NEW_N(a, relocation, b.n / size + 1);
  for (size_t k = 0; k < b.n / size; k++) {
    Elf64_Rela r = {0};
    Elf64_Sym sym;
    memcpy(&r, b.p + k * size, size);
    if (!symbol_at(l->e, ELF64_R_SYM(r.r_info), &sym)) continue;
    l->relocations[l->nrelocations++] =
        (relocation){.at = r.r_offset, .value = sym.st_value + (uint64_t)r.r_addend, .section = sym.st_shndx};
  }
  qsort(l->relocations, l->nrelocations, sizeof *l->relocations, by_offset);
}

// Which code an address that stands at `offset` is in.
static void set_address(lines *l, size_t offset, uint64_t given) {
  const relocation want = {.at = offset}, *r = NULL;
  l->at.of = NULL;
  if (l->nrelocations) r = bsearch(&want, l->relocations, l->nrelocations, sizeof want, by_offset);
  if (!r) return;
  if (r->section < l->e->head.e_shnum && l->codes[r->section].b.p) l->at.of = &l->codes[r->section];
  l->at.address = r->value + given;
}

static void put_row(lines *l) {
  if (l->open && l->row.of == l->at.of) l->placed += put_lines(&l->row, l->at.address);
  if (l->placed > l->e->n) l->b.damaged = true; // it goes round and round
  l->row = l->at;
  l->open = true;
}

static void extended(lines *l) {
  uint64_t size = take_uleb(&l->b);
  size_t begin = l->b.at;
  if (size > l->b.n - begin) {
    l->b.damaged = true;
    return;
  }
  unsigned opcode = size ? (unsigned)take_number(&l->b, 1) : 0;
  if (opcode == 1) { // the end of a sequence
    put_row(l);
    l->open = false;
    l->at = (place){.line = 1};
  } else if (opcode == 2 && size == 9) {
    size_t at = l->b.at;
    uint64_t given = take_number(&l->b, 8);
    set_address(l, at, given);
  }
  l->b.at = begin + (size_t)size; // others, NVIDIA's own among them, change neither line nor address
}

static void standard(lines *l, unsigned opcode) {
  switch (opcode) {
  case 1: put_row(l); return;
  case 2: l->at.address += take_uleb(&l->b) * l->least; return;
  case 3: l->at.line += (uint64_t)take_sleb(&l->b); return;
  case 8: l->at.address += (uint64_t)((255 - l->base_opcode) / l->range) * l->least; return;
  case 9: l->at.address += take_number(&l->b, 2); return;
  default:
    for (unsigned k = 0; k < l->operands[opcode]; k++) take_uleb(&l->b);
  }
}

// The table's head. False: a version that is not read.
static bool read_head(lines *l) {
  uint64_t version = take_number(&l->b, 2), head = take_number(&l->b, 4);
  size_t begin = l->b.at;
  if (version < 2 || version > 4) return false;
  l->least = (uint8_t)take_number(&l->b, 1);
  if (version == 4) take_number(&l->b, 1);
  take_number(&l->b, 1);
  l->base = (int8_t)take_number(&l->b, 1);
  l->range = (uint8_t)take_number(&l->b, 1);
  l->base_opcode = (uint8_t)take_number(&l->b, 1);
  for (unsigned k = 1; k < l->base_opcode; k++) l->operands[k] = (uint8_t)take_number(&l->b, 1);
  if (l->b.damaged || l->range == 0 || l->base_opcode == 0 || head > l->b.n - begin) return false;
  l->b.at = begin + (size_t)head; // names of files
  return true;
}

static bool read_unit(lines *l) {
  uint64_t size = take_number(&l->b, 4);
  size_t end = l->b.at, whole = l->b.n;
  if (l->b.damaged || size > l->b.n - end) return false;
  l->b.n = end += (size_t)size;
  bool good = read_head(l);
  l->at = (place){.line = 1};
  l->open = false;
  while (good && l->b.at < l->b.n && !l->b.damaged) {
    unsigned opcode = (unsigned)take_number(&l->b, 1);
    if (opcode >= l->base_opcode) {
      unsigned k = opcode - l->base_opcode;
      l->at.address += (uint64_t)(k / l->range) * l->least;
      l->at.line += (uint64_t)(int64_t)(l->base + (int)(k % l->range));
      put_row(l);
    } else if (opcode == 0)
      extended(l);
    else
      standard(l, opcode);
  }
  l->b.n = whole;
  l->b.at = end;
  return good && !l->b.damaged;
}

static const char *read_lines(const elf *e, kl_arena *a, code *codes) {
  lines l = {.e = e, .codes = codes};
  Elf64_Shdr s;
  bool there = false;
  for (uint32_t i = 0; section_at(e, i, &s); i++) {
    kl_str name = name_of(e, &s);
    if (kl_str_is(name, ".debug_line")) l.b = content(e, &s), there = true;
    if (kl_str_is(name, ".rela.debug_line") || kl_str_is(name, ".rel.debug_line")) read_relocations(&l, a, &s);
  }
  if (!there) return "without a table of lines (ptxas -lineinfo makes one)";
  while (l.b.at < l.b.n && !l.b.damaged)
    if (!read_unit(&l)) return "damaged: its table of lines cannot be read";
  return l.b.damaged ? "damaged: its table of lines lies outside" : NULL;
}

// --- what the kernel takes ------------------------------------------------------------------------------------------

enum { INFO_VALUE = 4, INFO_FRAME = 0x11, INFO_REGISTERS = 0x2f };

static bool is_symbol(const elf *e, uint64_t number, kl_str name) {
  Elf64_Sym s;
  return symbol_at(e, number, &s) && kl_str_eq(text_at(&e->strings, s.st_name), name);
}

static void read_info(const elf *e, bytes b, kl_str kernel, kl_cubin *out) {
  while (b.at + 4 <= b.n && !b.damaged) {
    unsigned format = (unsigned)take_number(&b, 1), what = (unsigned)take_number(&b, 1);
    unsigned size = (unsigned)take_number(&b, 2);
    if (format != INFO_VALUE) continue;
    bytes value = {.p = take(&b, size), .n = b.damaged ? 0 : size};
    if (size < 8) continue;
    uint64_t symbol = take_number(&value, 4), number = take_number(&value, 4);
    if (!is_symbol(e, symbol, kernel)) continue;
    if (what == INFO_REGISTERS) out->registers = (uint32_t)number;
    if (what == INFO_FRAME) out->stack_bytes = (uint32_t)number;
  }
}

static void read_facts(const elf *e, kl_str kernel, kl_cubin *out) {
  Elf64_Shdr s;
  for (uint32_t i = 0; section_at(e, i, &s); i++) {
    kl_str name = name_of(e, &s), of;
    if (kl_str_is(name, ".nv.info")) read_info(e, content(e, &s), kernel, out);
    if (behind(name, ".nv.shared.", &of) && kl_str_eq(of, kernel)) out->shared_bytes = (uint32_t)s.sh_size;
  }
}

// --- all of it ------------------------------------------------------------------------------------------------------

static void add_up(const code *codes, uint32_t n, uint32_t most, kl_cubin *out) {
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; codes[i].b.p && k < codes[i].instructions; k++) {
      uint32_t line = codes[i].line[k] <= most ? codes[i].line[k] : 0;
      out->instructions++;
      if (codes[i].rare[k]) continue;
      out->lines[line]++;
      if (!out->code) continue;
      out->code[out->ncode] = codes[i].sass[k];
      out->code[out->ncode++].line = line;
    }
}

// What each instruction is. False: the text is of other code.
static bool read_code(kl_arena *a, const char *sass, code *codes, uint32_t n, kl_cubin *out) {
  kl_sass_code *of = KL_NEW_N(a, kl_sass_code, (size_t)n + 1);
  size_t count = 0, instructions = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!codes[i].b.p) continue;
    of[count++] = (kl_sass_code){.name = codes[i].name, .instructions = codes[i].sass, .n = codes[i].instructions};
    instructions += codes[i].instructions;
  }
  out->code = KL_NEW_N(a, kl_sass_instruction, instructions + 1);
  return kl_sass_read(sass, of, count);
}

static const char *read_all(kl_arena *a, const void *data, size_t size, const char *sass, kl_str kernel, uint32_t most,
                            kl_cubin *out) {
  elf e;
  const char *wrong = open_elf(&e, data, size);
  if (wrong) return wrong;
  code *codes = KL_NEW_N(a, code, (size_t)e.head.e_shnum + 1);
  if (!find_code(&e, a, kernel, codes)) return "without the kernel's code";
  wrong = read_lines(&e, a, codes);
  if (wrong) return wrong;
  read_facts(&e, kernel, out);
  out->lines = KL_NEW_N(a, uint32_t, (size_t)most + 1);
  out->nlines = most;
  if (sass && !read_code(a, sass, codes, e.head.e_shnum, out)) return "other code than the text of nvdisasm";
  add_up(codes, e.head.e_shnum, most, out);
  return NULL;
}

kiln_status kl_cubin_read(kl_ctx *cx, kl_arena *a, const void *data, size_t size, const char *sass, kl_str kernel,
                          uint32_t most, kl_cubin *out) {
  *out = (kl_cubin){0};
  const char *wrong = read_all(a, data, size, sass, kernel, most, out);
  if (!wrong) return KILN_OK;
  *out = (kl_cubin){0};
  return kl_invalid(cx, KL_NOWHERE, "expected a cubin of %.*s, found a file that is %s", KL_FMT(kernel), wrong);
}
