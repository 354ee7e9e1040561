// Reads any text as a map. What is read must print and read back as the same map; simplified, it must hold the same
// points and results at the corners of its box and at points between, and be settled; emptiness must not be claimed of
// a map with a point; what other operations make must be maps.
#include "mutate.h"

#include "ir/index/map/map.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

enum { POINTS = 48, QUOTA = 1 << 11, MOST_VARS = 64, MOST_RESULTS = 64 };

static void fail(const char *what, const char *a, const char *b) {
  fprintf(stderr, "%s\n%s\n%s\n", what, a, b);
  abort();
}

// NULL where the text would be too long.
static char *print(kl_affs *p, kl_ctx *cx, const kl_map *m, kl_map_form form) {
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "");
  char *text = kl_map_print(p, &b, m, form) ? strdup(b.p) : NULL;
  kl_sb_free(&b);
  return text;
}

static void check_text(kl_affs *p, kl_ctx *cx, const kl_map *m) {
  for (int form = 0; form < 2; form++) {
    char *text = print(p, cx, m, (kl_map_form)form);
    if (!text) continue;
    kl_source src = {"printed", {text, strlen(text)}};
    const kl_map *again;
    if (kl_map_parse(p, &src, &again) != KILN_OK)
      fail("printed text is not read", text, kiln_diagnostics_get(cx, 0)->text);
    char *twice = print(p, cx, again, (kl_map_form)form);
    if (!twice || strcmp(text, twice) != 0) fail("printed text is no fixed point", text, twice ? twice : "");
    for (uint32_t i = 0; i < m->nresults && m->state == KL_MAP_DEFINED; i++) {
      if (m->results[i] != again->results[i]) fail("printed text is another expression", text, twice);
    }
    free(text);
    free(twice);
  }
}

// Point number i: all lows, all highs, then anything between.
static int64_t coordinate(kl_interval in, int i, uint64_t *random) {
  *random = *random * 6364136223846793005u + 1442695040888963407u;
  if (i == 0) return in.lo;
  if (i == 1) return in.hi;
  uint64_t size = (uint64_t)in.hi - (uint64_t)in.lo + 1, at = *random >> 11;
  if (i % 3 == 0 && at % 2) return at % 4 == 1 ? in.lo : in.hi;
  return (int64_t)((uint64_t)in.lo + (size ? at % size : at));
}

static void check_points(kl_affs *p, kl_ctx *cx, const kl_map *m, const kl_map *s) {
  int64_t x[MOST_VARS], a[MOST_RESULTS], b[MOST_RESULTS];
  uint64_t random = 7;
  kl_point at = {{x, x + m->nvars[0], x + m->nvars[0] + m->nvars[1]}};
  if (m->nvars[0] + m->nvars[1] + m->nvars[2] > MOST_VARS || m->nresults > MOST_RESULTS) return;
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    if (m->constraints[i].e->partial) return; // where there is no value, simplifying may find one
  }
  for (int i = 0; i < POINTS; i++) {
    uint32_t n = 0;
    for (int k = 0; k < KL_AFF_VARS; k++) {
      for (uint32_t v = 0; v < m->nvars[k]; v++) x[n++] = coordinate(m->vars[k][v].in, i, &random);
    }
    bool wide = false; // products of several such values do not fit 128 bits, in one form or the other
    for (uint32_t v = 0; v < n; v++) wide = wide || x[v] > INT32_MAX || x[v] < INT32_MIN;
    if (!kl_map_contains(p, m, &at)) continue;
    bool in = kl_map_contains(p, s, &at);
    if (!in && wide) continue;
    if (!in) fail("simplifying lost a point", print(p, cx, m, 0), print(p, cx, s, 0));
    if (!kl_map_eval(p, m, &at, a)) continue;
    bool has = kl_map_eval(p, s, &at, b);
    if (!has && wide) continue;
    if (!has) fail("simplifying lost a value", print(p, cx, m, 0), print(p, cx, s, 0));
    for (uint32_t r = 0; r < m->nresults; r++) {
      if (a[r] != b[r]) fail("simplifying changed a value", print(p, cx, m, 0), print(p, cx, s, 0));
    }
  }
}

static void check_operations(kl_affs *p, kl_ctx *cx, const kl_map *m, const kl_map *s) {
  const kl_map *made[] = {kl_map_remove_unused(p, m, true, NULL), kl_map_rescale(p, m),    kl_map_invert(p, m, QUOTA),
                          kl_map_symbols_to_dims(p, m),           kl_map_compose(p, m, m), kl_map_simplify(p, s, 0)};
  for (size_t i = 0; i < KL_COUNT(made); i++) check_text(p, cx, made[i]);
  char *once = print(p, cx, s, KL_MAP_LINE), *twice = print(p, cx, made[5], KL_MAP_LINE);
  if (once && (!twice || strcmp(once, twice) != 0)) fail("simplifying is not settled", once, twice ? twice : "");
  free(once);
  free(twice);
  kl_truth e = kl_map_is_empty(p, m, QUOTA, NULL), f = kl_map_is_empty(p, s, QUOTA, NULL);
  if (e != KL_UNKNOWN && f != KL_UNKNOWN && e != f)
    fail("emptiness depends on form", print(p, cx, m, 0), print(p, cx, s, 0));
  kl_truth in = kl_map_included(p, s, m, QUOTA, NULL);
  if (in == KL_NO) fail("simplified is not included", print(p, cx, m, 0), print(p, cx, s, 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_arena arena;
  kl_arena_init(&arena, cx);
  kl_affs *p = kl_affs_create(cx, &arena);
  kl_source src = {"input", {(const char *)data, size}};
  const kl_map *m;
  if (kl_map_parse(p, &src, &m) == KILN_OK) {
    check_text(p, cx, m);
    const kl_map *s = kl_map_simplify(p, m, 0);
    check_text(p, cx, s);
    if (m->state == KL_MAP_DEFINED) check_points(p, cx, m, s);
    check_operations(p, cx, m, s);
  } else if (m || kiln_diagnostics_count(cx) == 0) {
    fail("a failed reading left a map or no finding", "", "");
  }
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
  kiln_context_destroy(&cx);
  return 0;
}

static bool in_word(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// A word becomes an operand: "d0" may become "(d0 mod 8)".
static size_t wrap_word(uint8_t *data, size_t size, size_t max, unsigned seed) {
  static const char *const tail[] = {" mod 8)",    " / 4)",  " * 3)",        " - 7)",         " ceildiv 5)", " + d0)",
                                     " * -1)",     " / -3)", " mod 12 * 2)", " + s0 * 16)",   " mod 3 / 2)", " * d1)",
                                     " + d1 * 8)", " / d0)", " - rt0)",      " * 1000000007)"};
  static const char *const head[] = {"(", "(", "(", "(-", "min(3, ", "max(d0, ", "min(d1 * 2, "};
  char with[64];
  if (!size) return size;
  size_t begin = (seed >> 8) % size, end;
  while (begin < size && !in_word(data[begin])) begin++;
  while (begin > 0 && in_word(data[begin - 1])) begin--;
  for (end = begin; end < size && in_word(data[end]);) end++;
  if (end == begin || end - begin > 16) return size;
  int n = snprintf(with, sizeof with, "%s%.*s%s", head[seed % KL_COUNT(head)], (int)(end - begin), (char *)data + begin,
                   tail[(seed >> 4) % KL_COUNT(tail)]);
  if (n <= 0 || size - (end - begin) + (size_t)n > max) return size;
  memmove(data + begin + n, data + end, size - end);
  memcpy(data + begin, with, (size_t)n);
  return size - (end - begin) + (size_t)n;
}

// Mostly text that is nearly valid; bytes of all kinds now and then.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  switch (seed % 4) {
  case 0:
  case 1: return wrap_word(data, size, max, seed / 4);
  case 2: return kl_mutate(data, size, max, seed);
  default: return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, max) : size;
  }
}
