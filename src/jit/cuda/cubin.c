// What the head of machine code says of itself. Cubins are ELF files; NVIDIA has not written down what the words of
// their own mean, so only what its tools from CUDA 11 to 13 do alike is relied on, and anything else is not known.

#include "jit/cuda/kernel.h"

#include <elf.h>

enum {
  MACHINE = 190,       // EM_CUDA
  RELEASE_IN_HEAD = 7, // ABI versions: e_version is the release of the tools, 128 for 12.8
  RELEASE_IN_NOTE = 8, // a note has it; from CUDA 12.8 on, whose own lacks it
  FIRST_OF_NOTES = 128,
};

bool kl_cubin_is_whole(const void *cubin, size_t size) {
  Elf64_Ehdr h;
  if (size < sizeof h || memcmp(cubin, ELFMAG, SELFMAG) != 0) return false;
  memcpy(&h, cubin, sizeof h);
  uint64_t sections = (uint64_t)h.e_shnum * h.e_shentsize;
  return h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_shoff <= size && sections <= size - h.e_shoff;
}

// --- the note
// ---------------------------------------------------------------------------------------------------------

typedef struct cubin {
  const char *bytes;
  size_t size;
  Elf64_Ehdr head;
} cubin;

// The bytes of section i; false: it has none in the file.
static bool read_section(const cubin *c, size_t i, Elf64_Shdr *s, kl_str *out) {
  if (i >= c->head.e_shnum || c->head.e_shentsize != sizeof *s) return false;
  memcpy(s, c->bytes + c->head.e_shoff + i * sizeof *s, sizeof *s); // the sections are there: it is whole
  if (s->sh_type == SHT_NOBITS || s->sh_offset > c->size || s->sh_size > c->size - s->sh_offset) return false;
  *out = (kl_str){c->bytes + s->sh_offset, (size_t)s->sh_size};
  return true;
}

static bool is_called(kl_str names, uint32_t at, const char *name) {
  size_t n = strlen(name) + 1;
  return at <= names.n && n <= names.n - at && memcmp(names.p + at, name, n) == 0;
}

// Its content is three numbers of 16 bits: a version, the architecture, the release.
static int release_in(kl_str note) {
  Elf64_Nhdr h;
  uint16_t words[3];
  if (note.n < sizeof h) return 0;
  memcpy(&h, note.p, sizeof h);
  uint64_t at = sizeof h + (((uint64_t)h.n_namesz + 3) & ~3ull);
  if (h.n_descsz < sizeof words || at > note.n || sizeof words > note.n - at) return 0;
  memcpy(words, note.p + at, sizeof words);
  return words[2];
}

static int release_of_notes(const cubin *c) {
  Elf64_Shdr s;
  kl_str names, note;
  if (!read_section(c, c->head.e_shstrndx, &s, &names)) return 0;
  for (size_t i = 0; i < c->head.e_shnum; i++)
    if (read_section(c, i, &s, &note) && s.sh_type == SHT_NOTE && is_called(names, s.sh_name, ".note.nv.cuinfo"))
      return release_in(note);
  return FIRST_OF_NOTES;
}

// --- the driver
// -------------------------------------------------------------------------------------------------------

// Machine code runs with all drivers of its own major release and with newer ones.
static int driver_of(int release) {
  return release / 10 * 1000;
}

int kiln_cubin_driver_version(const void *bytes, size_t size) {
  cubin c = {bytes, size, {{0}, 0}};
  if (!bytes || !kl_cubin_is_whole(bytes, size)) return 0;
  memcpy(&c.head, bytes, sizeof c.head);
  if (c.head.e_machine != MACHINE) return 0;
  switch (c.head.e_ident[EI_ABIVERSION]) {
  case RELEASE_IN_HEAD: return c.head.e_version < 1000 ? driver_of((int)c.head.e_version) : 0;
  case RELEASE_IN_NOTE: return driver_of(release_of_notes(&c));
  default: return 0;
  }
}
