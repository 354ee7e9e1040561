// Tables of lines of cubins (DWARF, .debug_line, versions 2 to 4): every opcode, in files made here byte by byte. What
// each instruction's line is follows from the DWARF standard's text (6.2.5), worked out in the rows.
#include "sim/count/count.h"
#include "support/suite.h"

#include <elf.h>
#include <string.h>

enum { ROOM = 8192, INSTRUCTIONS = 12, MOST_LINE = 20, BASE_OPCODE = 13, LINE_BASE = -3, LINE_RANGE = 12, LEAST = 4 };

// --- files ----------------------------------------------------------------------------------------------------------

typedef struct file {
  uint8_t p[ROOM];
  size_t n;
  Elf64_Shdr sections[8];
  unsigned nsections;
} file;

static void put(file *f, const void *p, size_t n) {
  ck_assert_uint_le(f->n + n, ROOM);
  if (n) memcpy(f->p + f->n, p, n);
  f->n += n;
}

static void put_section(file *f, unsigned name, unsigned type, unsigned link, const void *p, size_t n) {
  f->sections[f->nsections++] =
      (Elf64_Shdr){.sh_name = name, .sh_type = type, .sh_link = link, .sh_offset = f->n, .sh_size = n};
  put(f, p, n);
}

typedef struct table {
  uint8_t p[512];
  size_t n, address; // where the address stands that the relocation is of
} table;

static void put_byte(table *t, unsigned byte) {
  t->p[t->n++] = (uint8_t)byte;
}
static void put_number(table *t, uint64_t v, unsigned bytes) {
  memcpy(t->p + t->n, &v, bytes);
  t->n += bytes;
}

// DW_LNE_set_address: 0, the length, 2, and 8 bytes, which a relocation gives.
static void set_address(table *t, uint64_t given) {
  put_byte(t, 0), put_byte(t, 9), put_byte(t, 2);
  t->address = t->n;
  put_number(t, given, 8);
}

// A unit: its head, as ptxas writes it but for the numbers, the program, and the end of the sequence at `end`.
static void put_unit(table *t, unsigned version, uint64_t at, const uint8_t *program, size_t n) {
  static const uint8_t operands[BASE_OPCODE - 1] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
  size_t begin = t->n;
  put_number(t, 0, 4), put_number(t, version, 2), put_number(t, 0, 4);
  size_t head = t->n;
  put_byte(t, LEAST);
  if (version == 4) put_byte(t, 1); // most operations of an instruction
  put_byte(t, 1);
  put_byte(t, (uint8_t)LINE_BASE), put_byte(t, LINE_RANGE), put_byte(t, BASE_OPCODE);
  for (unsigned k = 0; k < sizeof operands; k++) put_byte(t, operands[k]);
  put_byte(t, 0);                                                                   // no folders
  put_byte(t, 'k'), put_byte(t, 0), put_byte(t, 0), put_byte(t, 0), put_byte(t, 0); // a file
  put_byte(t, 0);
  uint32_t size = (uint32_t)(t->n - head);
  memcpy(t->p + head - 4, &size, 4);
  set_address(t, at);
  memcpy(t->p + t->n, program, n);
  t->n += n;
  size = (uint32_t)(t->n - begin - 4);
  memcpy(t->p + begin, &size, 4);
}

// An ELF file of a kernel k of 12 instructions. `rela`: the relocation has an addend of its own.
static size_t make(file *f, const table *t, bool rela, int64_t addend) {
  static const char names[] = "\0.text.k\0.symtab\0.strtab\0.debug_line\0.rela.debug_line\0.rel.debug_line\0.names",
                    strings[] = "\0k";
  static const uint8_t code[INSTRUCTIONS * 16];
  Elf64_Sym symbols[2] = {{0}, {.st_name = 1, .st_other = 0x10, .st_shndx = 1}};
  Elf64_Rela r = {.r_offset = t->address, .r_info = ELF64_R_INFO(1, 2), .r_addend = addend};
  Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
                     .e_machine = 190,
                     .e_shentsize = sizeof(Elf64_Shdr)};
  *f = (file){.n = sizeof head, .nsections = 1};
#define NAME(text) (unsigned)((const char *)memmem(names, sizeof names, text, sizeof text) - names)
  put_section(f, NAME(".text.k"), SHT_PROGBITS, 0, code, sizeof code);
  put_section(f, NAME(".symtab"), SHT_SYMTAB, 3, symbols, sizeof symbols);
  put_section(f, NAME(".strtab"), SHT_STRTAB, 0, strings, sizeof strings);
  put_section(f, NAME(".debug_line"), SHT_PROGBITS, 0, t->p, t->n);
  if (rela)
    put_section(f, NAME(".rela.debug_line"), SHT_RELA, 2, &r, sizeof r);
  else
    put_section(f, NAME(".rel.debug_line"), SHT_REL, 2, &r, sizeof(Elf64_Rel));
  put_section(f, NAME(".names"), SHT_STRTAB, 0, names, sizeof names);
  head.e_shoff = f->n;
  head.e_shnum = (Elf64_Half)f->nsections;
  head.e_shstrndx = (Elf64_Half)(f->nsections - 1);
  put(f, f->sections, f->nsections * sizeof f->sections[0]);
  memcpy(f->p, &head, sizeof head);
  return f->n;
}

// --- programs -------------------------------------------------------------------------------------------------------

// A special opcode: the line goes on by `lines` (-3 to 8), the address by `steps` times LEAST; then a row.
#define SPECIAL(lines, steps) ((lines)-LINE_BASE + LINE_RANGE * (steps) + BASE_OPCODE)
#define COPY                  1
#define PC(n)                 2, (n) // an address further by n times LEAST
#define LINE(n)               3, ((n)&0x7f)
#define CONST_PC              8 // as opcode 255 would, without a row: (255 - 13) / 12 = 20 times 4 bytes
#define FIXED_PC(bytes)       9, (bytes)&0xff, (bytes) >> 8
#define END                   0, 1, 1

static const struct {
  const char *name;
  uint8_t program[64];
  size_t n;
  uint8_t lines[INSTRUCTIONS]; // of each; 0: none
} rows[] = {
#define ROW(name, ...)                                                                                                 \
  name, {__VA_ARGS__}, sizeof(uint8_t[]) {                                                                             \
    __VA_ARGS__                                                                                                        \
  }
    // line 1 to begin with
    {ROW("a copy", COPY, PC(8), END), {1, 1}},
    {ROW("lines and addresses", LINE(4), COPY, PC(4), LINE(2), COPY, PC(44), END),
     {5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
    {ROW("a line back, in more than a byte", LINE(9), COPY, PC(4), 3, 0xfd, 0x7f, COPY, PC(4), 2, 0x84, 0x00, END),
     {10, 7, 7}},
    {ROW("special opcodes", SPECIAL(2, 0), SPECIAL(-3, 4), SPECIAL(8, 8), PC(4), END), {3, 0, 0, 8}},
    {ROW("a constant address", LINE(1), COPY, CONST_PC, LINE(1), COPY, CONST_PC, END), {2, 2, 2, 2, 2, 3, 3, 3, 3, 3}},
    {ROW("a fixed address", LINE(1), COPY, FIXED_PC(32), LINE(5), COPY, FIXED_PC(256), END),
     {2, 2, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
    // file, column, statement, block, end of prologue, begin of epilogue, instruction set: operands passed over
    {ROW("what says nothing of lines", LINE(1), 4, 1, 5, 0x85, 0x03, 6, 7, COPY, PC(4), 10, 11, 12, 3, LINE(1), COPY,
         PC(4), END),
     {2, 3}},
    // unknown extended opcodes, NVIDIA's 0x90 among them, are as long as they say
    {ROW("extended opcodes", 0, 4, 0x90, 3, 3, 3, LINE(2), COPY, 0, 1, 0x80, PC(4), 0, 2, 4, 1, LINE(1), COPY, PC(4),
         END),
     {3, 4}},
    {ROW("behind the end begins line 1, nowhere", LINE(3), COPY, PC(4), END, LINE(6), COPY, PC(8), END), {4}},
    {ROW("a line that is none", LINE(30), COPY, PC(4), LINE(-29), COPY, PC(4), END), {0, 2}},
};

static void expect(const char *name, const uint8_t *data, size_t n, const uint8_t *lines) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_arena a;
  kl_cubin c;
  uint32_t want[MOST_LINE + 1] = {0};
  for (int k = 0; k < INSTRUCTIONS; k++) want[lines[k]]++;
  kl_arena_init(&a, cx);
  EXPECT(kl_cubin_read(cx, &a, data, n, NULL, KL_STR("k"), MOST_LINE, &c) == KILN_OK, "%s: %s", name,
         kiln_diagnostics_get(cx, 0)->text);
  ck_assert_uint_eq(c.instructions, INSTRUCTIONS);
  for (int k = 0; k <= MOST_LINE; k++)
    EXPECT(c.lines[k] == want[k], "%s: line %d has %u instructions, expected %u", name, k, c.lines[k], want[k]);
  kl_arena_free(&a);
  kiln_context_destroy(&cx);
}

START_TEST(opcodes) {
  static file f;
  for (unsigned version = 2; version <= 4; version++) {
    table t = {0};
    put_unit(&t, version, 0, rows[_i].program, rows[_i].n);
    expect(rows[_i].name, f.p, make(&f, &t, true, 0), rows[_i].lines);
  }
}
END_TEST

// Where the sequence begins: the symbol's value, the addend of the relocation or the bytes there; each unit its own.
START_TEST(addresses) {
  static const uint8_t program[] = {LINE(4), COPY, PC(8), END}, lines[INSTRUCTIONS] = {0, 0, 0, 5, 5};
  static file f;
  table t = {0};
  put_unit(&t, 3, 0, program, sizeof program);
  expect("an addend", f.p, make(&f, &t, true, 48), lines);
  t = (table){0};
  put_unit(&t, 3, 48, program, sizeof program);
  expect("in place", f.p, make(&f, &t, false, 0), lines);
  t = (table){0};
  put_unit(&t, 2, 0, program, sizeof program); // of no code: nothing relocates its address
  put_unit(&t, 4, 0, program, sizeof program);
  expect("two units", f.p, make(&f, &t, true, 48), lines);
}
END_TEST

int main(void) {
  return RUN_TESTS("count_lines", NO_FRAME, {opcodes, KL_COUNT(rows)}, {addresses});
}
