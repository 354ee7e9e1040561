#include "ptxas.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static bool find(const char *program, char path[4096]) {
  const char *dirs = getenv("PATH");
  char all[16384];
  snprintf(all, sizeof all, "%s:/usr/local/cuda/bin", dirs ? dirs : "");
  for (char *d = strtok(all, ":"); d; d = strtok(NULL, ":")) {
    snprintf(path, 4096, "%s/%s", d, program);
    if (access(path, X_OK) == 0) return true;
  }
  path[0] = 0;
  return false;
}

const char *ptxas_path(void) {
  static char path[4096];
  static bool looked;
  if (!looked && !find("ptxas", path)) printf("# ptxas is not installed: no PTX is assembled\n");
  looked = true;
  return path[0] ? path : NULL;
}

const char *nvdisasm_path(void) {
  static char path[4096];
  static bool looked;
  if (!looked && !find("nvdisasm", path)) printf("# nvdisasm is not installed: no SASS is told by class\n");
  looked = true;
  return path[0] ? path : NULL;
}

static char *slurp(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  *n = 0;
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  rewind(f);
  char *p = calloc(1, (size_t)size + 1);
  if (p) *n = fread(p, 1, (size_t)size, f);
  fclose(f);
  return p;
}

// Instructions of 16 bytes; of their 12 bits of opcode 0x918 is NOP, which fills sections up. The low 9 of FFMA's are
// 0x23, of DFMA's 0x2b, whatever their operands are.
enum { NOP = 0x918, BRA = 0x947, FORM = 0x1ff, FFMA = 0x23, DFMA = 0x2b };

static uint64_t word_at(const char *code, size_t i) {
  uint64_t word;
  memcpy(&word, code + 16 * i, sizeof word);
  return word;
}

static unsigned opcode(const char *code, size_t i) {
  return word_at(code, i) & 0xfff;
}

// How many instructions behind the next one a BRA goes: bytes, or from sm_90 on instructions, of which the low 6 bits
// stand elsewhere.
static int64_t jump_of(uint64_t word, unsigned sm) {
  int64_t high = (int32_t)(word >> 32);
  return sm < 90 ? high / 16 : high / 4 * 64 + (int64_t)(word >> 18 & 63);
}

static void count_in(const char *code, size_t n, unsigned sm, ptxas_result *out) {
  size_t begin = 0; // of what no loop that ends before has
  for (size_t i = 0; i < n; i++) {
    out->sass += opcode(code, i) != NOP;
    int64_t jump = opcode(code, i) == BRA ? jump_of(word_at(code, i), sm) : 0, to = (int64_t)i + 1 + jump;
    if (jump >= -1 || to < (int64_t)begin) continue;
    long products = 0;
    for (size_t k = (size_t)to; k <= i; k++) {
      unsigned form = opcode(code, k) & FORM;
      products += form == FFMA || form == DFMA;
    }
    begin = (size_t)to + 1;
    bool more = products > out->products || (products == out->products && (long)i + 1 - (long)to > out->loop);
    if (!more) continue;
    out->products = products;
    out->loop = (long)i + 1 - (long)to;
  }
}

static void count_sass(const char *cubin, unsigned sm, ptxas_result *out) {
  size_t n;
  char *p = slurp(cubin, &n);
  if (p && n > sizeof(Elf64_Ehdr)) {
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)p;
    const Elf64_Shdr *s = (const Elf64_Shdr *)(p + h->e_shoff);
    const char *names = p + s[h->e_shstrndx].sh_offset;
    for (int i = 0; i < h->e_shnum; i++)
      if (strncmp(names + s[i].sh_name, ".text", 5) == 0) count_in(p + s[i].sh_offset, s[i].sh_size / 16, sm, out);
  }
  free(p);
}

// The largest of the numbers that stand before a word.
static int number_before(const char *log, const char *word) {
  int most = 0;
  for (const char *p = log; (p = strstr(p, word)); p++) {
    const char *at = p;
    while (at > log && at[-1] == ' ') at--;
    while (at > log && at[-1] >= '0' && at[-1] <= '9') at--;
    if (atoi(at) > most) most = atoi(at);
  }
  return most;
}

// Runs ptxas: its words, which the caller frees, or NULL. The code's instructions are counted where `counts` is not
// NULL.
static char *assemble(const char *ptx, size_t size, const char *target, bool *ok, ptxas_result *counts) {
  char dir[] = "/tmp/kiln-ptx-XXXXXX", in[64], out[64], log[64], command[8192];
  if (!mkdtemp(dir)) return NULL;
  snprintf(in, sizeof in, "%s/k.ptx", dir);
  snprintf(out, sizeof out, "%s/k.cubin", dir);
  snprintf(log, sizeof log, "%s/log", dir);
  FILE *f = fopen(in, "wb");
  if (f) {
    fwrite(ptx, 1, size, f);
    fclose(f);
  }
  if (strcmp(target, "sm_70") == 0 || strcmp(target, "sm_72") == 0) target = "sm_75";
  snprintf(command, sizeof command, "'%s' -v -arch=%s -o %s %s >%s 2>&1", ptxas_path(), target, out, in, log);
  *ok = system(command) == 0;
  size_t n;
  char *text = slurp(log, &n);
  if (*ok && counts) count_sass(out, (unsigned)atoi(target + 3), counts);
  unlink(in);
  unlink(out);
  unlink(log);
  rmdir(dir);
  return text;
}

// ptxas has a line for each kernel, "Compiling entry function 'NAME'", and what it takes behind it.
static void find_spiller(const char *log, char *name, size_t room) {
  const char *kernel = log;
  for (const char *p = log; (p = strstr(p, " bytes spill stores")); p++) {
    const char *of = kernel;
    for (const char *next = log; (next = strstr(next, "entry function '")) && next < p; next++) of = next;
    kernel = of;
    if (p - log > 2 && p[-1] == '0' && p[-2] == ' ') continue;
    const char *from = strchr(kernel, '\'') + 1;
    snprintf(name, room, "%.*s", (int)strcspn(from, "'"), from);
    return;
  }
}

ptxas_result ptxas_run(const char *ptx, size_t size, const char *target) {
  ptxas_result r = {0};
  char *text = assemble(ptx, size, target, &r.ok, &r);
  snprintf(r.log, sizeof r.log, "%s", text ? text : "");
  if (text) {
    r.registers = number_before(text, " registers");
    r.spill_stores = number_before(text, " bytes spill stores");
    r.stack = number_before(text, " bytes stack frame");
    if (r.spill_stores) find_spiller(text, r.spiller, sizeof r.spiller);
  }
  free(text);
  return r;
}

bool ptxas_lines(const char *ptx, size_t size, const char *target, bool *wrong, size_t lines) {
  bool ok, told = false;
  char *text = assemble(ptx, size, target, &ok, NULL);
  memset(wrong, 0, lines * sizeof *wrong);
  for (char *p = text; p && *p;) {
    static const char error[] = ", line ",
                      narrow[] = "32-bit address on line '"; // which ends the assembly, unlike others
    char *end = strchr(p, '\n');
    if (end) *end = 0;
    const char *at = strstr(p, error), *address = strstr(p, narrow);
    if (address || (at && (strstr(p, "; error") || strstr(p, "; fatal")))) {
      unsigned long line = strtoul(address ? address + sizeof narrow - 1 : at + sizeof error - 1, NULL, 10);
      if (line >= 1 && line <= lines) wrong[line - 1] = told = true;
    }
    p = end ? end + 1 : NULL;
  }
  bool asked = text != NULL && (ok || told);
  free(text);
  return asked;
}
