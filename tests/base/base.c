// Memory, strings, diagnostics.
#include "base/base.h"
#include "support/suite.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// --- an allocator that checks every size and can fail -------------------------------------------------------------

enum { MAX_BLOCKS = 4096 };

typedef struct checker {
  struct {
    void *p;
    size_t size;
  } block[MAX_BLOCKS];
  size_t live, calls, faults;
  size_t fail_at; // call number that fails, 0: none
  bool fail_all;  // from then on
  jmp_buf *last_word;
  size_t last_size;
} checker;

static size_t find_block(checker *c, const void *p) {
  for (size_t i = 0; i < c->live; i++)
    if (c->block[i].p == p) return i;
  return SIZE_MAX;
}

// Moves every block on resize and fills what is new or freed with rubbish.
static void *checked_resize(void *user, void *p, size_t old_size, size_t size) {
  checker *c = user;
  size_t at = p ? find_block(c, p) : SIZE_MAX;
  if (p ? at == SIZE_MAX || c->block[at].size != old_size : old_size != 0) {
    c->faults++;
    return NULL;
  }
  if (size) {
    c->calls++;
    if (c->fail_at && (c->calls == c->fail_at || (c->fail_all && c->calls > c->fail_at))) return NULL;
  }
  char *q = NULL;
  if (size) {
    q = malloc(size);
    if (!q || c->live == MAX_BLOCKS) abort();
    memset(q, 0xa5, size);
    if (p) memcpy(q, p, old_size < size ? old_size : size);
  }
  if (p) {
    memset(p, 0x5a, old_size);
    free(p);
    c->block[at] = c->block[--c->live];
  }
  if (q) {
    c->block[c->live].p = q;
    c->block[c->live++].size = size;
  }
  return q;
}

static void checked_out_of_memory(void *user, size_t size) {
  checker *c = user;
  c->last_size = size;
  if (c->last_word) longjmp(*c->last_word, 1);
}

static checker mem;

static kl_ctx *new_context(void) {
  memset(&mem, 0, sizeof mem);
  kiln_context_params params = {.struct_size = sizeof params,
                                .allocator = {&mem, checked_resize, checked_out_of_memory}};
  return kiln_context_create(&params);
}

static void end_context(kl_ctx *cx) {
  kiln_context_destroy(&cx);
  ck_assert_ptr_null(cx);
  ck_assert_uint_eq(mem.live, 0);
  ck_assert_uint_eq(mem.faults, 0);
}

static bool all_zero(const void *p, size_t n) {
  const char *c = p;
  for (size_t i = 0; i < n; i++)
    if (c[i]) return false;
  return true;
}

// --- memory -------------------------------------------------------------------------------------------------------

START_TEST(context_life) {
  kiln_context *cx = kiln_context_create(NULL);
  ck_assert_ptr_nonnull(cx);
  void *p = kl_try_alloc(cx, 1 << 20);
  ck_assert(all_zero(p, 1 << 20));
  kl_free(cx, p, 1 << 20);
  ck_assert_ptr_null(kl_try_alloc(cx, SIZE_MAX));
  ck_assert_ptr_null(kl_try_alloc(cx, (size_t)PTRDIFF_MAX + 1));
  kiln_context_destroy(&cx);
  kiln_context_destroy(&cx);
  kiln_context_destroy(NULL);
  // A caller compiled against a shorter struct: what it does not know of is the default.
  kiln_context_params old = {.struct_size = sizeof(size_t), .allocator = {&mem, NULL, checked_out_of_memory}};
  cx = kiln_context_create(&old);
  ck_assert_ptr_null(cx->allocator.out_of_memory);
  kiln_context_destroy(&cx);
  memset(&mem, 0, sizeof mem);
  mem.fail_at = 1;
  kiln_context_params params = {.struct_size = sizeof params, .allocator = {&mem, checked_resize, NULL}};
  ck_assert_ptr_null(kiln_context_create(&params));
  ck_assert_str_eq(kiln_version(), "0.1.0");
  for (int s = KILN_OK; s <= KILN_E_INTERNAL; s++) ck_assert_str_ne(kiln_status_name((kiln_status)s), "");
  ck_assert_str_ne(kiln_status_name((kiln_status)99), "");
}
END_TEST

static int slots_destroyed;
static void destroy_slot(kl_ctx *cx, void *state) {
  slots_destroyed++;
  kl_free(cx, state, 40);
}

START_TEST(context_frees_its_slot) {
  kl_ctx *cx = new_context();
  slots_destroyed = 0;
  cx->jit = (kl_slot){kl_alloc(cx, 40), destroy_slot};
  end_context(cx);
  ck_assert_int_eq(slots_destroyed, 1);
}
END_TEST

START_TEST(plain_blocks) {
  kl_ctx *cx = new_context();
  static const size_t sizes[] = {0, 1, 15, 4096, 100000};
  for (size_t i = 0; i < KL_COUNT(sizes); i++) {
    char *p = kl_alloc(cx, sizes[i]), *q = kl_try_alloc(cx, sizes[i]);
    ck_assert_ptr_nonnull(p);
    ck_assert_ptr_nonnull(q);
    ck_assert(all_zero(p, sizes[i]) && all_zero(q, sizes[i]));
    memset(p, 7, sizes[i]);
    p = kl_resize(cx, p, sizes[i], sizes[i] * 3);
    for (size_t k = 0; k < sizes[i]; k++) EXPECT(p[k] == 7, "byte %zu", k);
    p = kl_resize(cx, p, sizes[i] * 3, 0);
    kl_free(cx, p, 0);
    kl_free(cx, q, sizes[i]);
    kl_free(cx, NULL, 0);
  }
  ck_assert_uint_eq(mem.live, 1);
  end_context(cx);
}
END_TEST

START_TEST(arena_blocks) {
  kl_ctx *cx = new_context();
  kl_arena a;
  kl_arena_init(&a, cx);
  unsigned char *kept[3000];
  size_t sizes[3000], asked = 0;
  for (size_t i = 0; i < KL_COUNT(kept); i++) {
    sizes[i] = i % 97 == 0 ? 5000 + i : i % 61;
    kept[i] = kl_arena_alloc(&a, sizes[i]);
    asked += sizes[i];
    ck_assert_uint_eq((uintptr_t)kept[i] % 16, 0);
    ck_assert(all_zero(kept[i], sizes[i]));
    memset(kept[i], (int)(i & 127) + 1, sizes[i]);
  }
  for (size_t i = 0; i < KL_COUNT(kept); i++)
    for (size_t k = 0; k < sizes[i]; k++) EXPECT(kept[i][k] == (i & 127) + 1, "byte %zu of %zu", k, i);
  ck_assert_uint_ge(a.total, asked);
  ck_assert_uint_le(a.total, 4 * asked);
  ck_assert_uint_lt(mem.calls, 100);
  ck_assert_ptr_null(kl_arena_try_alloc(&a, SIZE_MAX));
  ck_assert_ptr_null(kl_arena_try_alloc(&a, SIZE_MAX - 40));
  ck_assert_str_eq(kl_arena_dup(&a, "dup", 4), "dup");
  ck_assert_ptr_nonnull(kl_arena_dup(&a, NULL, 0));
  ck_assert(all_zero(KL_NEW_N(&a, uint64_t, 100), 800));
  size_t before = mem.calls;
  for (size_t i = 0; i < 100000; i++) kl_arena_alloc(&a, 24);
  ck_assert_uint_lt(mem.calls - before, 30); // blocks grow
  kl_arena_free(&a);
  ck_assert_uint_eq(mem.live, 1);
  ck_assert_uint_eq(a.total, 0);
  ck_assert_ptr_nonnull(kl_arena_alloc(&a, 8)); // an arena may be used again
  kl_arena_free(&a);
  end_context(cx);
}
END_TEST

// Reaching the last word leaves through longjmp, as an embedding runtime might.
#define EXPECT_LAST_WORD(expr)                                                                                         \
  do {                                                                                                                 \
    jmp_buf jump;                                                                                                      \
    mem.last_word = &jump;                                                                                             \
    if (!setjmp(jump)) {                                                                                               \
      (void)(expr);                                                                                                    \
      ck_abort_msg("the last word was not called");                                                                    \
    }                                                                                                                  \
    mem.last_word = NULL;                                                                                              \
  } while (0)

START_TEST(memory_runs_out) {
  kl_ctx *cx = new_context();
  kl_arena a;
  kl_arena_init(&a, cx);
  mem.fail_at = 2, mem.fail_all = true;
  ck_assert_ptr_null(kl_try_alloc(cx, 10));
  ck_assert_ptr_null(kl_arena_try_alloc(&a, 10));
  ck_assert_ptr_null(kl_arena_try_alloc(&a, 100000));
  EXPECT_LAST_WORD(kl_alloc(cx, 77));
  ck_assert_uint_eq(mem.last_size, 77);
  EXPECT_LAST_WORD(kl_resize(cx, NULL, 0, 78));
  EXPECT_LAST_WORD(kl_arena_alloc(&a, 79));
  mem.fail_at = 0;
  EXPECT_LAST_WORD(KL_NEW_N(&a, uint64_t, SIZE_MAX / 8 + 2));
  size_t cap = 0;
  EXPECT_LAST_WORD(kl_vec_grow(cx, NULL, &cap, SIZE_MAX / 2, 16));
  ck_assert_ptr_null(a.head);
  end_context(cx);
}
END_TEST

START_TEST(growable_arrays) {
  kl_ctx *cx = new_context();
  kl_arena a;
  kl_arena_init(&a, cx);
  VEC(uint32_t) v = {0};
  ck_assert_ptr_null(VEC_FREEZE(cx, &a, &v));
  for (uint32_t i = 0; i < 10000; i++) VEC_PUSH(cx, &v, i * 3);
  VEC_RESERVE(cx, &v, 20000);
  ck_assert_uint_ge(v.cap, 20000);
  ck_assert_uint_lt(mem.calls, 40);
  size_t n = v.n;
  uint32_t *frozen = VEC_FREEZE(cx, &a, &v);
  ck_assert(v.p == NULL && v.n == 0 && v.cap == 0);
  for (uint32_t i = 0; i < n; i++) ck_assert_uint_eq(frozen[i], i * 3);
  kl_arena_free(&a);
  end_context(cx);
}
END_TEST

// --- strings ------------------------------------------------------------------------------------------------------

START_TEST(text_builder) {
  kl_ctx *cx = new_context();
  kl_sb b;
  kl_sb_init(&b, cx);
  ck_assert_ptr_null(b.p);
  kl_sb_puts(&b, "a");
  kl_sb_putc(&b, '\0');
  kl_sb_put(&b, (kl_str){NULL, 0});
  kl_sb_i64(&b, INT64_MIN);
  kl_sb_putc(&b, ' ');
  kl_sb_i64(&b, -1);
  kl_sb_u64(&b, UINT64_MAX);
  kl_sb_u64(&b, 0);
  static const char want[] = "a\0-9223372036854775808 -1184467440737095516150";
  ck_assert_uint_eq(b.n, sizeof want - 1);
  ck_assert_mem_eq(b.p, want, sizeof want);
  kl_sb_free(&b);
  for (int i = 0; i < 500; i++) {
    kl_sbf(&b, "%d,%.*s;", i, KL_FMT(KL_STR("xyz")));
    ck_assert_uint_eq(strlen(b.p), b.n);
  }
  ck_assert_str_eq(b.p + b.n - 8, "499,xyz;");
  size_t n;
  char *z = kl_sb_take(&b, &n);
  ck_assert_uint_eq(strlen(z), n);
  ck_assert(b.p == NULL && b.n == 0);
  kl_free(cx, z, n + 1);
  z = kl_sb_take(&b, NULL);
  ck_assert_str_eq(z, "");
  kl_free(cx, z, 1);
  kl_arena a;
  kl_arena_init(&a, cx);
  ck_assert_str_eq(kl_strf(&a, "%s-%d", "x", 5), "x-5");
  ck_assert_str_eq(kl_strf(&a, "%s", ""), "");
  ck_assert_str_eq(kl_str_dup(&a, (kl_str){"hello", 2}).p, "he");
  ck_assert_uint_eq(kl_str_dup(&a, (kl_str){NULL, 0}).p[0], 0);
  kl_arena_free(&a);
  end_context(cx);
}
END_TEST

START_TEST(interning) {
  kl_ctx *cx = new_context();
  kl_arena a;
  kl_arena_init(&a, cx);
  kl_interner t;
  kl_interner_init(&t, &a);
  uint32_t sym = 77;
  ck_assert(!kl_intern_known(&t, KL_STR("x"), &sym));
  ck_assert(kl_intern_known(&t, KL_STR(""), &sym) && sym == 0);
  ck_assert_uint_eq(kl_intern(&t, (kl_str){NULL, 0}), 0);
  char z[32];
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < 20000; i++) {
      snprintf(z, sizeof z, "name.%u", i);
      EXPECT(kl_intern(&t, kl_str_of(z)) == i + 1 && kl_str_is(kl_symbol_text(&t, i + 1), z), "%s", z);
    }
  ck_assert(kl_intern_known(&t, KL_STR("name.123"), &sym) && sym == 124);
  ck_assert(!kl_intern_known(&t, KL_STR("name.20000"), &sym));
  ck_assert_uint_eq(kl_intern(&t, (kl_str){"a\0b", 3}), 20001);
  ck_assert_uint_eq(kl_intern(&t, (kl_str){"a\0c", 3}), 20002);
  kl_interner_free(&t);
  kl_interner_free(&t);
  kl_arena_free(&a);
  end_context(cx);
}
END_TEST

START_TEST(hashing) {
  // Pinned: caches keep this hash across runs and machines.
  ck_assert_uint_eq(kl_hash("", 0, 0), 0x3a2d21e68e2dfd4du);
  ck_assert_uint_eq(kl_hash("kiln", 4, 0), 0x3268b75702c9155eu);
  ck_assert_uint_eq(kl_hash("The quick brown fox jumps over the lazy dog", 43, 1), 0x5f6f15ea892468a4u);
  // Every byte, every length and the seed count.
  char z[64] = {0};
  for (size_t n = 0; n < 64; n++) {
    ck_assert_uint_ne(kl_hash(z, n, 0), kl_hash(z, n + (n < 63), 0) + (n == 63));
    ck_assert_uint_ne(kl_hash(z, n, 0), kl_hash(z, n, 1));
    uint64_t both[2];
    kl_hash_twice(z, n, (const uint64_t[]){1, 0}, both);
    ck_assert(both[0] == kl_hash(z, n, 1) && both[1] == kl_hash(z, n, 0));
    for (size_t i = 0; i < n; i++) {
      z[i] = 1;
      uint64_t h = kl_hash(z, n, 0);
      z[i] = 0;
      ck_assert_uint_ne(h, kl_hash(z, n, 0));
    }
  }
}
END_TEST

// --- diagnostics --------------------------------------------------------------------------------------------------

static const struct {
  const char *what, *text;
  size_t begin, end;
  uint32_t line, column;
  const char *tail;
} pictures[] = {
    {"a word", "ab\ncd efg h\nx", 6, 9, 2, 4, "    cd efg h\n       ^~~\n"},
    {"a point", "abc", 1, 1, 1, 2, "    abc\n     ^\n"},
    {"first byte", "abc", 0, 1, 1, 1, "    abc\n    ^\n"},
    {"end of text", "abc", 3, 3, 1, 4, "    abc\n       ^\n"},
    {"past the end", "abc", 99, 120, 1, 4, "    abc\n       ^\n"},
    {"backwards", "abc", 2, 1, 1, 3, "    abc\n      ^\n"},
    {"empty text", "", 0, 0, 1, 1, "    \n    ^\n"},
    {"empty last line", "abc\n", 4, 4, 2, 1, "    \n    ^\n"},
    {"the newline itself", "abc\nd", 3, 4, 1, 4, "    abc\n       ^\n"},
    {"over several lines", "ab cd\nef\ngh", 3, 10, 1, 4, "    ab cd\n       ^~\n"},
    {"carriage returns", "ab\r\ncd ef\r\n", 7, 9, 2, 4, "    cd ef\n       ^~\n"},
    {"tab before", "\tab", 1, 3, 1, 2, "            ab\n            ^~\n"},
    {"tab inside", "a\tb", 0, 3, 1, 1, "    a       b\n    ^~~~~~~~~\n"},
    {"control codes", "a\x1b[31mb", 1, 2, 1, 2, "    a\\x1b[31mb\n     ^~~~\n"},
    {"utf-8", "\xc3\xa4\xe2\x82\xac = z", 8, 9, 1, 9, "    \xc3\xa4\xe2\x82\xac = z\n         ^\n"},
    {"inside a character", "\xc3\xa4z", 1, 2, 1, 2, "    \xc3\xa4z\n    ^\n"},
    {"broken utf-8", "\xc3z\xff", 1, 2, 1, 2, "    \\xc3z\\xff\n        ^\n"},
    {"C1 control, surrogate", "\xc2\x9b\xc0\xaf\xed\xa0\x80", 0, 1, 1, 1,
     "    \\xc2\\x9b\\xc0\\xaf\\xed\\xa0\\x80\n    ^~~~\n"},
    {"overlong", "\xe0\x80\xaf", 0, 1, 1, 1, "    \\xe0\\x80\\xaf\n    ^~~~\n"},
    {"beyond unicode", "\xf4\x90\x80\x80", 0, 1, 1, 1, "    \\xf4\\x90\\x80\\x80\n    ^~~~\n"},
    {"right-to-left override", "\xe2\x80\xae", 0, 3, 1, 1, "    \\xe2\\x80\\xae\n    ^~~~~~~~~~~~\n"},
};

START_TEST(pictures_of_places) {
  kl_ctx *cx = new_context();
  for (size_t i = 0; i < KL_COUNT(pictures); i++) {
    kl_source src = {"f.hlo", kl_str_of(pictures[i].text)};
    kl_span at = {&src, pictures[i].begin, pictures[i].end};
    ck_assert_int_eq(kl_invalid(cx, at, "expected %s, found %d", "x", 3), KILN_E_INVALID);
    const kiln_diagnostic *d = kiln_diagnostics_get(cx, i);
    char want[300];
    snprintf(want, sizeof want, "f.hlo:%u:%u: error: expected x, found 3\n%s", pictures[i].line, pictures[i].column,
             pictures[i].tail);
    EXPECT(strcmp(d->text, want) == 0, "%s:\n%sand not\n%s", pictures[i].what, d->text, want);
    ck_assert_uint_eq(d->line, pictures[i].line);
    ck_assert_uint_eq(d->column, pictures[i].column);
    ck_assert_str_eq(d->file, "f.hlo");
    ck_assert_str_eq(d->message, "expected x, found 3");
    ck_assert(d->severity == KILN_ERROR && d->status == KILN_E_INVALID);
  }
  end_context(cx);
}
END_TEST

START_TEST(long_lines_show_a_window) {
  kl_ctx *cx = new_context();
  enum { N = 100000 };
  char *z = malloc(N);
  memset(z, '-', N);
  z[50000] = 'X';
  kl_source src = {"f", {z, N}};
  kl_fail(cx, KILN_E_UNSUPPORTED, (kl_span){&src, 50000, 90000}, "no");
  const char *text = kiln_diagnostics_get(cx, 0)->text;
  ck_assert_uint_lt(strlen(text), 300);
  ck_assert_int_eq(strncmp(text, "f:1:50001: error: no\n    ...-", 28), 0);
  const char *line = strchr(text, '\n') + 1, *marks = strchr(line, '\n') + 1;
  ck_assert_int_eq(strchr(line, 'X') - line, strchr(marks, '^') - marks);
  ck_assert_int_eq(strncmp(marks - 5, "-...\n", 5), 0);
  kl_fail(cx, KILN_E_INVALID, (kl_span){&src, 5, 6}, "no");
  text = kiln_diagnostics_get(cx, 1)->text;
  ck_assert_ptr_nonnull(strstr(text, "\n         ^\n"));
  kl_fail(cx, KILN_E_INVALID, (kl_span){&src, N, N}, "no");
  ck_assert_ptr_nonnull(strstr(kiln_diagnostics_get(cx, 2)->text, "-\n"));
  // A window that begins inside a character moves on to the next one.
  for (int i = 0; i + 3 < N; i += 3) memcpy(z + i, "\xe2\x82\xac", 3);
  for (size_t at = 50000; at < 50003; at++) {
    kl_fail(cx, KILN_E_INVALID, (kl_span){&src, at, at}, "no");
    ck_assert_ptr_null(strchr(kiln_diagnostics_get(cx, kiln_diagnostics_count(cx) - 1)->text, '\\'));
  }
  // The widest pieces push nothing out: the caret is in the picture always.
  static const char *const wide[] = {"\t\t\t\t", "\1\1\1\1", "\xf0\x9f\x98\x80", "a\1\tb", "\xff\xff\xff\xff"};
  for (size_t w = 0; w < KL_COUNT(wide); w++) {
    for (int i = 0; i + 4 <= N; i += 4) memcpy(z + i, wide[w], 4);
    for (size_t at = 0; at < 400; at++) {
      kiln_diagnostics_clear(cx);
      kl_fail(cx, KILN_E_INVALID, (kl_span){&src, at, at + 1}, "no");
      text = kiln_diagnostics_get(cx, 0)->text;
      ck_assert_uint_lt(strlen(text), 700);
      ck_assert_ptr_nonnull(strchr(text, '^'));
    }
  }
  free(z);
  end_context(cx);
}
END_TEST

START_TEST(findings_without_a_place) {
  kl_ctx *cx = new_context();
  ck_assert_int_eq(kl_out_of_memory(cx, 123, "a tensor"), KILN_E_MEMORY);
  kl_warn(cx, KL_NOWHERE, "be\ncareful\t%s", "\x1b[2J");
  kl_source src = {NULL, KL_STR("q")};
  kl_warn(cx, (kl_span){&src, 0, 1}, "hm");
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 3);
  ck_assert_uint_eq(cx->errors, 1);
  const kiln_diagnostic *d = kiln_diagnostics_get(cx, 0);
  ck_assert_str_eq(d->text, "error: out of memory: wanted 123 bytes for a tensor\n");
  ck_assert(d->file == NULL && d->line == 0 && d->column == 0);
  d = kiln_diagnostics_get(cx, 1);
  ck_assert_str_eq(d->message, "be\\x0acareful\\x09\\x1b[2J");
  ck_assert(d->severity == KILN_WARNING && d->status == KILN_OK);
  ck_assert_str_eq(kiln_diagnostics_get(cx, 2)->text, "<text>:1:1: warning: hm\n    q\n    ^\n");
  ck_assert_ptr_null(kiln_diagnostics_get(cx, 3));
  kiln_diagnostics_clear(cx);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 0);
  ck_assert_uint_eq(cx->errors, 0);
  ck_assert_ptr_null(kiln_diagnostics_get(cx, 0));
  // Whatever a message and a file's name contain, the text stays bounded.
  char *z = malloc(100001);
  memset(z, 2, 100000);
  z[100000] = 0;
  src.name = z;
  kl_fail(cx, KILN_E_INVALID, (kl_span){&src, 0, 1}, "%s", z);
  ck_assert_uint_lt(strlen(kiln_diagnostics_get(cx, 0)->text), 6000);
  ck_assert_ptr_nonnull(strstr(kiln_diagnostics_get(cx, 0)->text, "\\x02..."));
  free(z);
  end_context(cx);
}
END_TEST

START_TEST(many_findings) {
  kl_ctx *cx = new_context();
  enum { N = 1 << 20 };
  char *z = malloc(N);
  memset(z, '\n', N);
  kl_source src = {"f", {z, N}};
  clock_t begin = clock();
  for (size_t i = 0; i < 50000; i++) kl_warn(cx, (kl_span){&src, i * 20, i * 20}, "w");
  size_t warnings = kiln_diagnostics_count(cx);
  for (size_t i = 0; i < 50000; i++) kl_invalid(cx, (kl_span){&src, i * 20, i * 20}, "e");
  size_t n = kiln_diagnostics_count(cx);
  ck_assert_uint_lt(n, 1100);
  ck_assert_uint_gt(n, warnings + 100); // errors find room behind any number of warnings
  ck_assert_int_eq(kiln_diagnostics_get(cx, n - 2)->severity, KILN_ERROR);
  const kiln_diagnostic *d = kiln_diagnostics_get(cx, n - 1);
  char want[80];
  snprintf(want, sizeof want, "note: %zu more findings are not shown\n", 100000 - (n - 1));
  ck_assert_str_eq(d->text, want);
  ck_assert_int_eq(d->severity, KILN_NOTE);
  ck_assert_uint_eq(cx->errors, 50000);
  ck_assert_ptr_null(kiln_diagnostics_get(cx, n));
  ck_assert_double_lt((double)(clock() - begin) / CLOCKS_PER_SEC, 5);
  kiln_diagnostics_clear(cx);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 0);
  free(z);
  end_context(cx);
}
END_TEST

// A finding that memory is too short to keep still gives its status, and is counted.
START_TEST(findings_survive_short_memory) {
  for (size_t fail = 2; fail < 8; fail++) {
    kl_ctx *cx = new_context();
    kl_source src = {"f", KL_STR("abc")};
    mem.fail_at = fail, mem.fail_all = true;
    for (int i = 0; i < 100; i++)
      ck_assert_int_eq(kl_invalid(cx, (kl_span){&src, 1, 2}, "number %d of a hundred", i), KILN_E_INVALID);
    ck_assert_uint_eq(cx->errors, 100);
    size_t n = kiln_diagnostics_count(cx);
    ck_assert_uint_eq(cx->dropped, cx->dropped ? 100 - (n - 1) : 0);
    for (size_t i = 0; i < n; i++) ck_assert_ptr_nonnull(kiln_diagnostics_get(cx, i)->text);
    end_context(cx);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("base", NO_FRAME, {context_life}, {context_frees_its_slot}, {plain_blocks}, {arena_blocks},
                   {memory_runs_out}, {growable_arrays}, {text_builder}, {interning}, {hashing}, {pictures_of_places},
                   {long_lines_show_a_window}, {findings_without_a_place}, {many_findings},
                   {findings_survive_short_memory});
}
