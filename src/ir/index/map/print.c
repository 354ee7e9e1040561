// Maps as text. Variables in order, then constraints in order of their text.

#include "ir/index/map/map.h"
#include "ir/index/impl.h"
#include <stdlib.h>

static const char *const letter[] = {"d", "s", "rt"};

static void put_name(kl_sb *b, const kl_map *m, int k, uint32_t i, bool named) {
  kl_str name = m->vars[k][i].name;
  if (named && name.n) {
    kl_sb_put(b, name);
  } else {
    kl_sb_puts(b, letter[k]);
    kl_sb_u64(b, i);
  }
}

static void put_names(kl_sb *b, const kl_map *m, int k, bool named) {
  static const char open[] = "([{", close[] = ")]}";
  if (k > 0 && m->nvars[k] == 0) return;
  kl_sb_putc(b, open[k]);
  for (uint32_t i = 0; i < m->nvars[k]; i++) {
    if (i) kl_sb_puts(b, ", ");
    put_name(b, m, k, i, named);
  }
  kl_sb_putc(b, close[k]);
}

// Names of variables brought together from several maps may be the same, or one the default of another. Then none is
// used.
static bool names_differ(kl_affs *p, const kl_map *m) {
  kl_arena arena;
  kl_interner names;
  uint32_t n = 0;
  bool any = false;
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) any = any || m->vars[k][i].name.n;
  }
  if (!any) return false;
  kl_arena_init(&arena, p->cx);
  kl_interner_init(&names, &arena);
  kl_sb b;
  kl_sb_init(&b, p->cx);
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++, n++) {
      b.n = 0;
      put_name(&b, m, k, i, true);
      kl_intern(&names, (kl_str){b.p, b.n});
    }
  }
  bool differ = names.strings.n == n + 1;
  kl_sb_free(&b);
  kl_interner_free(&names);
  kl_arena_free(&arena);
  return differ;
}

static void put_interval(kl_sb *b, kl_interval in) {
  kl_sbf(b, " in [%lld, %lld]", (long long)in.lo, (long long)in.hi);
}

static int by_text(const void *a, const void *b) {
  const kl_str *x = a, *y = b;
  int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
  return order ? order : (x->n > y->n) - (x->n < y->n);
}

static bool put_constraints(kl_affs *p, kl_sb *b, const kl_map *m, const kl_aff_names *names, const char *separator) {
  kl_arena arena;
  kl_arena_init(&arena, p->cx);
  kl_str *lines = KL_NEW_N(&arena, kl_str, m->nconstraints + 1);
  bool ok = true;
  for (uint32_t i = 0; i < m->nconstraints && ok; i++) {
    kl_sb line;
    kl_sb_init(&line, p->cx);
    ok = kl_aff_print(p, &line, m->constraints[i].e, names);
    put_interval(&line, m->constraints[i].in);
    lines[i] = kl_str_dup(&arena, (kl_str){line.p, line.n});
    kl_sb_free(&line);
  }
  if (ok && m->nconstraints) qsort(lines, m->nconstraints, sizeof *lines, by_text);
  for (uint32_t i = 0; i < m->nconstraints && ok; i++) {
    kl_sb_puts(b, separator);
    kl_sb_put(b, lines[i]);
  }
  kl_arena_free(&arena);
  return ok;
}

static bool put_domain(kl_affs *p, kl_sb *b, const kl_map *m, const kl_aff_names *names, kl_map_form form, bool named) {
  static const char *const first[] = {", domain: ", ",\ndomain:\n"}, *const between[] = {", ", ",\n"};
  bool any = false;
  if (m->nvars[0] + m->nvars[1] + m->nvars[2] == 0) return true;
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) {
      kl_sb_puts(b, any ? between[form] : first[form]);
      put_name(b, m, k, i, named);
      put_interval(b, m->vars[k][i].in);
      any = true;
    }
  }
  return put_constraints(p, b, m, names, between[form]);
}

static bool put_map(kl_affs *p, kl_sb *b, const kl_map *m, kl_map_form form) {
  bool named = names_differ(p, m);
  kl_aff_names names = {.style = form == KL_MAP_LINES ? KL_AFF_WORDS : KL_AFF_SLASH};
  kl_arena arena;
  kl_arena_init(&arena, p->cx);
  for (int k = 0; k < KL_AFF_VARS && named; k++) {
    kl_str *list = KL_NEW_N(&arena, kl_str, m->nvars[k] + 1);
    for (uint32_t i = 0; i < m->nvars[k]; i++) list[i] = m->vars[k][i].name;
    names.of[k] = list;
  }
  for (int k = 0; k < KL_AFF_VARS; k++) put_names(b, m, k, named);
  kl_sb_puts(b, " -> (");
  bool ok = true;
  for (uint32_t i = 0; i < m->nresults && ok; i++) {
    if (i) kl_sb_puts(b, ", ");
    ok = kl_aff_print(p, b, m->results[i], &names);
  }
  kl_sb_putc(b, ')');
  ok = ok && put_domain(p, b, m, &names, form, named);
  kl_arena_free(&arena);
  return ok;
}

bool kl_map_print(kl_affs *p, kl_sb *b, const kl_map *m, kl_map_form form) {
  size_t before = b->n;
  if (m->state != KL_MAP_DEFINED) {
    kl_sb_puts(b, m->state == KL_MAP_EMPTY ? "KNOWN EMPTY" : "UNDEFINED");
    return true;
  }
  if (put_map(p, b, m, form)) return true;
  b->n = before;
  if (b->p) b->p[before] = 0;
  return false;
}
