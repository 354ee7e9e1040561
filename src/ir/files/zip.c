// ZIP archives. What is read is the directory at the end, which says where members are; what stands before a member
// says the same again and is only skipped.
#include "ir/files/zip.h"
#include "ir/files/inflate.h"

enum { END = 22, ENTRY = 46, LOCAL = 30, END64 = 56, LOCATOR = 20, MOST_RATIO = 1032 };

static uint64_t number(const unsigned char *p, unsigned bytes) {
  uint64_t v = 0;
  for (unsigned i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
  return v;
}

static kiln_status broken(const kl_zip *z, const char *what, size_t at) {
  return kl_invalid(z->cx, KL_NOWHERE, "%s: byte %zu: %s", z->name, at, what);
}

typedef struct directory {
  uint64_t at, n;
} directory;

// The record at the very end, which a comment may follow; -1: none.
static int64_t find_end(const unsigned char *p, size_t size) {
  for (size_t at = size < END ? 0 : size - END + 1; at-- > 0 && size - at <= END + 0xffff;)
    if (memcmp(p + at, "PK\5\6", 4) == 0 && number(p + at + 20, 2) == size - at - END) return (int64_t)at;
  return -1;
}

static kiln_status find_directory(const kl_zip *z, const unsigned char *p, size_t size, directory *out) {
  int64_t end = find_end(p, size);
  if (end < 0)
    return kl_invalid(z->cx, KL_NOWHERE, "%s: this is no .npz file: it has no directory of a ZIP archive", z->name);
  *out = (directory){number(p + end + 16, 4), number(p + end + 10, 2)};
  if (number(p + end + 4, 2) || number(p + end + 6, 2)) return broken(z, "an archive in several parts", (size_t)end);
  if (out->at != 0xffffffff && out->n != 0xffff) return KILN_OK;
  if (end < LOCATOR || memcmp(p + end - LOCATOR, "PK\6\7", 4) != 0) return KILN_OK;
  uint64_t at = number(p + end - LOCATOR + 8, 8);
  if (at > size || size - at < END64 || memcmp(p + at, "PK\6\6", 4) != 0)
    return broken(z, "expected the end of a long directory there, found none", (size_t)end - LOCATOR + 8);
  *out = (directory){number(p + at + 48, 8), number(p + at + 32, 8)};
  return KILN_OK;
}

// Sizes and place of long members stand behind the name, in the order in which they are missing.
static void read_long(const unsigned char *extra, size_t n, uint64_t *values[3]) {
  while (n >= 4) {
    size_t own = number(extra + 2, 2);
    const unsigned char *p = extra + 4;
    if (own > n - 4) return;
    for (int i = 0; i < 3 && number(extra, 2) == 1; i++) {
      if (*values[i] != 0xffffffff) continue;
      if (own < 8) return;
      *values[i] = number(p, 8);
      p += 8, own -= 8;
    }
    size_t all = 4 + number(extra + 2, 2);
    extra += all, n -= all;
  }
}

static kiln_status read_member(const kl_zip *z, const unsigned char *bytes, size_t size, size_t at, kl_zip_member *out,
                               size_t *next) {
  const unsigned char *p = bytes + at;
  if (size - at < ENTRY || memcmp(p, "PK\1\2", 4) != 0)
    return broken(z, "expected a member of the directory, found none", at);
  size_t name = number(p + 28, 2), extra = number(p + 30, 2), comment = number(p + 32, 2);
  if (size - at - ENTRY < name + extra + comment) return broken(z, "a member of the directory is cut short", at);
  uint64_t packed = number(p + 20, 4), whole = number(p + 24, 4), place = number(p + 42, 4);
  read_long(p + ENTRY + name, extra, (uint64_t *[3]){&whole, &packed, &place});
  unsigned method = (unsigned)number(p + 10, 2);
  if (number(p + 8, 2) & 1) return broken(z, "the member is encrypted", at);
  if (method != 0 && method != 8)
    return broken(z, "expected a member that is stored or deflated, found another method", at + 10);
  if (place > size || size - place < LOCAL || memcmp(bytes + place, "PK\3\4", 4) != 0)
    return broken(z, "expected a member where the directory says, found none", at + 42);
  uint64_t begin = place + LOCAL + number(bytes + place + 26, 2) + number(bytes + place + 28, 2);
  if (begin > size || size - begin < packed) return broken(z, "the member is cut short", place);
  if (method == 0 ? packed != whole : whole / MOST_RATIO > packed + 1)
    return broken(z, "the member cannot hold as much as it says", at + 24);
  *out = (kl_zip_member){{(const char *)p + ENTRY, name}, bytes + begin, packed, whole,
                         (uint32_t)number(p + 16, 4),     method == 8};
  *next = at + ENTRY + name + extra + comment;
  return KILN_OK;
}

kiln_status kl_zip_open(kl_ctx *cx, kl_arena *a, const char *name, const void *bytes, size_t size, kl_zip *out) {
  directory d = {0};
  *out = (kl_zip){.cx = cx, .arena = a, .name = name};
  KL_TRY(find_directory(out, bytes, size, &d));
  if (d.at > size || d.n > (size - d.at) / ENTRY)
    return broken(out, "expected the directory there, found the end", size);
  out->members = kl_arena_try_alloc(a, (size_t)d.n * sizeof *out->members + 1);
  if (!out->members) return kl_out_of_memory(cx, (size_t)d.n * sizeof *out->members, "members");
  for (size_t at = (size_t)d.at; out->n < d.n; out->n++)
    KL_TRY(read_member(out, bytes, size, at, &out->members[out->n], &at));
  return KILN_OK;
}

const kl_zip_member *kl_zip_find(const kl_zip *z, const char *name) {
  for (size_t i = 0; i < z->n; i++)
    if (kl_str_is(z->members[i].name, name)) return &z->members[i];
  return NULL;
}

kiln_status kl_zip_read(const kl_zip *z, const kl_zip_member *m, const unsigned char **out) {
  size_t at = 0;
  *out = m->data;
  if (m->deflated) {
    unsigned char *data = kl_arena_try_alloc(z->arena, m->size + 1);
    if (!data) return kl_out_of_memory(z->cx, m->size, "a member");
    const char *wrong = kl_inflate(m->data, m->packed, data, m->size, &at);
    if (wrong)
      return kl_invalid(z->cx, KL_NOWHERE, "%s: %.*s: byte %zu of it: %s", z->name, KL_FMT(m->name), at, wrong);
    *out = data;
  }
  if (kl_crc32(0, *out, m->size) != m->crc)
    return kl_invalid(z->cx, KL_NOWHERE, "%s: %.*s: its checksum is another one", z->name, KL_FMT(m->name));
  return KILN_OK;
}

// --- writing --------------------------------------------------------------------------------------------------------

static void put(kl_sb *b, uint64_t v, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) kl_sb_putc(b, (char)(v >> (8 * i)));
}

void kl_zip_begin(kl_zip_writer *w, kl_ctx *cx) {
  *w = (kl_zip_writer){.n = 0};
  kl_sb_init(&w->bytes, cx);
  kl_sb_init(&w->directory, cx);
}

// What local headers and the directory have in common, from the version on; dates are 1980-01-01.
static void put_common(kl_sb *b, uint32_t crc, size_t size, size_t name) {
  put(b, 20, 2), put(b, 0, 2), put(b, 0, 2), put(b, 0, 2), put(b, 0x21, 2);
  put(b, crc, 4), put(b, size, 4), put(b, size, 4), put(b, name, 2), put(b, 0, 2);
}

kiln_status kl_zip_add(kl_zip_writer *w, const char *name, const void *head, size_t head_size, const void *data,
                       size_t size) {
  size_t all = head_size + size, at = w->bytes.n;
  if (all > UINT32_MAX || at + all > UINT32_MAX - (1u << 20))
    return kl_unsupported(w->bytes.cx, KL_NOWHERE, "archives of more than 4 GiB are not written");
  uint32_t crc = kl_crc32(kl_crc32(0, head, head_size), data, size);
  kl_sb_put(&w->bytes, (kl_str){"PK\3\4", 4});
  put_common(&w->bytes, crc, all, strlen(name));
  kl_sb_puts(&w->bytes, name);
  kl_sb_put(&w->bytes, (kl_str){head, head_size});
  kl_sb_put(&w->bytes, (kl_str){data, size});
  kl_sb_put(&w->directory, (kl_str){"PK\1\2\24\0", 6});
  put_common(&w->directory, crc, all, strlen(name));
  put(&w->directory, 0, 2), put(&w->directory, 0, 2), put(&w->directory, 0, 2), put(&w->directory, 0, 4);
  put(&w->directory, at, 4);
  kl_sb_puts(&w->directory, name);
  w->n++;
  return KILN_OK;
}

void kl_zip_end(kl_zip_writer *w, char **out, size_t *size) {
  size_t at = w->bytes.n;
  if (out) {
    kl_sb_put(&w->bytes, (kl_str){w->directory.p, w->directory.n});
    kl_sb_put(&w->bytes, (kl_str){"PK\5\6\0\0\0\0", 8});
    put(&w->bytes, w->n, 2), put(&w->bytes, w->n, 2), put(&w->bytes, w->directory.n, 4), put(&w->bytes, at, 4);
    put(&w->bytes, 0, 2);
    *out = kl_sb_take(&w->bytes, size);
  }
  kl_sb_free(&w->bytes);
  kl_sb_free(&w->directory);
}
