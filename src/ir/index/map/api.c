// Maps as the public API has them: each with a pool of its own, so that freeing one frees all that it needed.

#include "ir/index/decide/solve.h"
#include <kiln/index.h>

struct kiln_map {
  kl_ctx *cx;
  kl_arena arena;
  kl_affs *pool;
  const kl_map *m;
};

_Static_assert((int)KILN_MAP_DEFINED == (int)KL_MAP_DEFINED && (int)KILN_MAP_EMPTY == (int)KL_MAP_EMPTY &&
                   (int)KILN_MAP_UNDEFINED == (int)KL_MAP_UNDEFINED,
               "states are the same");
_Static_assert((int)KILN_NO == (int)KL_NO && (int)KILN_YES == (int)KL_YES && (int)KILN_UNKNOWN == (int)KL_UNKNOWN,
               "truth values are the same");
_Static_assert((int)KILN_MAP_DIM == (int)KL_AFF_DIM && (int)KILN_MAP_RUNTIME == (int)KL_AFF_RT, "kinds are the same");
_Static_assert((int)KILN_MAP_LINES == (int)KL_MAP_LINES, "forms are the same");

static kiln_map *make(kl_ctx *cx) {
  kiln_map *h = kl_alloc(cx, sizeof *h);
  h->cx = cx;
  kl_context_hold(cx);
  kl_arena_init(&h->arena, cx);
  h->pool = kl_affs_create(cx, &h->arena);
  return h;
}

kiln_map *kl_map_publish(kl_ctx *cx, const kl_map *m) {
  kiln_map *h = make(cx);
  h->m = kl_map_import(h->pool, m);
  return h;
}

const kl_map *kl_map_published(const kiln_map *m) {
  return m->m;
}

void kiln_map_destroy(kiln_map **m) {
  kiln_map *h = m ? *m : NULL;
  if (!h) return;
  kl_ctx *cx = h->cx;
  kl_affs_destroy(&h->pool);
  kl_arena_free(&h->arena);
  kl_free(cx, h, sizeof *h);
  kl_context_release(cx);
  *m = NULL;
}

kiln_status kiln_map_parse(kiln_context *cx, const char *name, const char *text, size_t size, kiln_map **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, text, out);
  kl_source src = {name ? name : "map", {text, size}};
  kiln_map *h = make(cx);
  kiln_status s = kl_map_parse(h->pool, &src, &h->m);
  if (s != KILN_OK)
    kiln_map_destroy(&h);
  else
    *out = h;
  return s;
}

kiln_status kiln_map_print(kiln_context *cx, const kiln_map *m, kiln_map_form form, char **text, size_t *size) {
  kl_sb b;
  KL_CLEAR(text);
  KL_CLEAR(size);
  KL_EXPECT(cx, m, text);
  kl_sb_init(&b, cx);
  if (!kl_map_print(m->pool, &b, m->m, form == KILN_MAP_LINES ? KL_MAP_LINES : KL_MAP_LINE)) {
    kl_sb_free(&b);
    return kl_unsupported(cx, KL_NOWHERE,
                          "the map's text would be too long: its expressions share parts many times over");
  }
  *text = kl_sb_take(&b, size);
  return KILN_OK;
}

kiln_map_state kiln_map_get_state(const kiln_map *m) {
  return m ? (kiln_map_state)m->m->state : KILN_MAP_UNDEFINED;
}
const char *kiln_map_reason(const kiln_map *m) {
  return m && m->m->why ? m->m->why : "";
}
size_t kiln_map_variable_count(const kiln_map *m, kiln_map_variable kind) {
  return m && (unsigned)kind < KL_AFF_VARS ? m->m->nvars[kind] : 0;
}
size_t kiln_map_result_count(const kiln_map *m) {
  return m ? m->m->nresults : 0;
}
size_t kiln_map_constraint_count(const kiln_map *m) {
  return m ? m->m->nconstraints : 0;
}

bool kiln_map_bounds(const kiln_map *m, kiln_map_variable kind, size_t i, kiln_interval *out) {
  if (!out || i >= kiln_map_variable_count(m, kind)) return false;
  kl_interval in = m->m->vars[kind][i].in;
  *out = (kiln_interval){in.lo, in.hi};
  return true;
}

// --- new maps -----------------------------------------------------------------------------------------------------

// A map with m in its pool, so that m itself stays as it is, and what comes of m on the way goes with the result.
static kiln_map *copy_of(kl_ctx *cx, const kiln_map *m) {
  return kl_map_publish(cx, m->m);
}

kiln_status kiln_map_simplify(kiln_context *cx, const kiln_map *m, kiln_map **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  kiln_map *h = *out = copy_of(cx, m);
  h->m = kl_map_simplify(h->pool, h->m, 0);
  return KILN_OK;
}

kiln_status kiln_map_remove_unused(kiln_context *cx, const kiln_map *m, kiln_map **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  kiln_map *h = *out = copy_of(cx, m);
  h->m = kl_map_remove_unused(h->pool, h->m, true, NULL);
  return KILN_OK;
}

kiln_status kiln_map_compose(kiln_context *cx, const kiln_map *first, const kiln_map *second, kiln_map **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, first, second, out);
  bool both = first->m->state != KL_MAP_UNDEFINED && second->m->state != KL_MAP_UNDEFINED;
  if (both && first->m->nresults != second->m->nvars[KL_AFF_DIM]) {
    return kl_invalid(cx, KL_NOWHERE, "expected a second map of %u dims, one for each result of the first, found %u",
                      first->m->nresults, second->m->nvars[KL_AFF_DIM]);
  }
  kiln_map *h = make(cx);
  h->m = kl_map_compose(h->pool, kl_map_import(h->pool, first->m), kl_map_import(h->pool, second->m));
  *out = h;
  return KILN_OK;
}

kiln_status kiln_map_invert(kiln_context *cx, const kiln_map *m, kiln_map **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  kiln_map *h = copy_of(cx, m);
  kiln_status s = KILN_OK;
  h->m = kl_map_invert(h->pool, h->m, KL_MAP_QUOTA);
  if (h->m->state == KL_MAP_UNDEFINED) {
    s = kl_unsupported(cx, KL_NOWHERE, "no converse: %s", h->m->why);
    kiln_map_destroy(&h);
  }
  *out = h;
  return s;
}

// --- questions ----------------------------------------------------------------------------------------------------

bool kiln_map_result_range(const kiln_map *m, size_t i, kiln_interval *out) {
  if (!out || i >= kiln_map_result_count(m)) return false;
  kiln_map *h = copy_of(m->cx, m);
  const uint32_t which = (uint32_t)i;
  kl_interval in;
  bool known = kl_map_result_ranges(h->pool, kl_map_sub(h->pool, h->m, &which, 1), &in);
  if (known) *out = (kiln_interval){in.lo, in.hi};
  kiln_map_destroy(&h);
  return known;
}

static uint32_t enough(uint32_t quota) {
  return quota ? quota : KL_MAP_QUOTA;
}

kiln_truth kiln_map_is_empty(const kiln_map *m, uint32_t quota) {
  if (!m) return KILN_UNKNOWN;
  kiln_map *h = copy_of(m->cx, m);
  kiln_truth t = (kiln_truth)kl_map_is_empty(h->pool, h->m, enough(quota), NULL);
  kiln_map_destroy(&h);
  return t;
}

static kiln_truth of_pair(const kiln_map *a, const kiln_map *b, uint32_t quota,
                          kl_truth (*ask)(kl_affs *, const kl_map *, const kl_map *, uint32_t, const char **)) {
  if (!a || !b) return KILN_UNKNOWN;
  kiln_map *both = copy_of(a->cx, a);
  kiln_truth t = (kiln_truth)ask(both->pool, both->m, kl_map_import(both->pool, b->m), enough(quota), NULL);
  kiln_map_destroy(&both);
  return t;
}

kiln_truth kiln_map_is_included(const kiln_map *a, const kiln_map *b, uint32_t quota) {
  return of_pair(a, b, quota, kl_map_included);
}
kiln_truth kiln_map_is_equal(const kiln_map *a, const kiln_map *b, uint32_t quota) {
  return of_pair(a, b, quota, kl_map_equal);
}

// A list of values may be missing where there are no variables of its kind.
static bool has_values(const kiln_map *m, const kl_point *p) {
  for (uint32_t k = 0; m && k < KL_AFF_VARS; k++)
    if (m->m->nvars[k] && !p->at[k]) return false;
  return m != NULL;
}

bool kiln_map_contains(const kiln_map *m, const int64_t *dims, const int64_t *ranges, const int64_t *runtime) {
  const kl_point p = {{dims, ranges, runtime}};
  return has_values(m, &p) && kl_map_contains(m->pool, m->m, &p);
}

bool kiln_map_evaluate(const kiln_map *m, const int64_t *dims, const int64_t *ranges, const int64_t *runtime,
                       int64_t *results) {
  const kl_point p = {{dims, ranges, runtime}};
  return has_values(m, &p) && (results || !m->m->nresults) && kl_map_eval(m->pool, m->m, &p, results);
}
