// What tests of maps begin with: a pool, maps from text and back.
#ifndef TESTS_IR_MAP_SUPPORT_H
#define TESTS_IR_MAP_SUPPORT_H

#include "ir/index/map/map.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static kl_ctx *cx;
static kl_arena arena;
static kl_affs *pool;

static inline void open_pool(void) {
  cx = kiln_context_create(NULL);
  kl_arena_init(&arena, cx);
  pool = kl_affs_create(cx, &arena);
}

static inline void close_pool(void) {
  kl_affs_destroy(&pool);
  kl_arena_free(&arena);
  kiln_context_destroy(&cx);
}

static inline void new_pool(void) {
  kl_affs_destroy(&pool);
  kl_arena_free(&arena);
  kl_arena_init(&arena, cx);
  pool = kl_affs_create(cx, &arena);
}

static inline const char *last_finding(void) {
  size_t n = kiln_diagnostics_count(cx);
  return n ? kiln_diagnostics_get(cx, n - 1)->text : "";
}

static inline const kl_map *read_map(const char *text) {
  kl_source src = {"map", {text, strlen(text)}};
  const kl_map *m = NULL;
  kiln_status s = kl_map_parse(pool, &src, &m);
  EXPECT(s == KILN_OK, "%s\n%s", text, last_finding());
  return m;
}

// The text lives as long as the pool.
static inline const char *print_form(const kl_map *m, kl_map_form form) {
  kl_sb b;
  kl_sb_init(&b, cx);
  EXPECT(kl_map_print(pool, &b, m, form), "too long to print");
  const char *text = kl_str_dup(&arena, (kl_str){b.p, b.n}).p;
  kl_sb_free(&b);
  return text;
}
static inline const char *print_map(const kl_map *m) {
  return print_form(m, KL_MAP_LINE);
}

// Equal but for white space?
static inline bool same_text(const char *a, const char *b) {
  for (;; a++, b++) {
    while (*a == ' ' || *a == '\n') a++;
    while (*b == ' ' || *b == '\n') b++;
    if (*a != *b) return false;
    if (!*a) return true;
  }
}

#endif
