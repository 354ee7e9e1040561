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

// Instructions of 16 bytes; of their 12 bits of opcode 0x918 is NOP, which fills sections up.
static long instructions_in(const char *code, size_t bytes) {
  long n = 0;
  for (size_t i = 0; i + 16 <= bytes; i += 16) {
    uint16_t low;
    memcpy(&low, code + i, sizeof low);
    n += (low & 0xfff) != 0x918;
  }
  return n;
}

static long count_sass(const char *cubin) {
  size_t n;
  char *p = slurp(cubin, &n);
  long total = 0;
  if (p && n > sizeof(Elf64_Ehdr)) {
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)p;
    const Elf64_Shdr *s = (const Elf64_Shdr *)(p + h->e_shoff);
    const char *names = p + s[h->e_shstrndx].sh_offset;
    for (int i = 0; i < h->e_shnum; i++) {
      if (strncmp(names + s[i].sh_name, ".text", 5) == 0) total += instructions_in(p + s[i].sh_offset, s[i].sh_size);
    }
  }
  free(p);
  return total;
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

// Runs ptxas: its words, which the caller frees, or NULL. The code's instructions are counted where `sass` is not NULL.
static char *assemble(const char *ptx, size_t size, const char *target, bool *ok, long *sass) {
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
  if (*ok && sass) *sass = count_sass(out);
  unlink(in);
  unlink(out);
  unlink(log);
  rmdir(dir);
  return text;
}

ptxas_result ptxas_run(const char *ptx, size_t size, const char *target) {
  ptxas_result r = {0};
  char *text = assemble(ptx, size, target, &r.ok, &r.sass);
  snprintf(r.log, sizeof r.log, "%s", text ? text : "");
  if (text) {
    r.registers = number_before(text, " registers");
    r.spill_stores = number_before(text, " bytes spill stores");
    r.stack = number_before(text, " bytes stack frame");
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
