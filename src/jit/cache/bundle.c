// Bundles: artifacts for several targets, which of them runs where, and all of them as bytes.

#include "jit/cache/cache.h"
#include <kiln/bundle.h>
#include <stdio.h>

typedef struct entry {
  kl_target target;
  kiln_artifact *a;
} entry;

struct kiln_bundle {
  kl_ctx *cx;         // its own
  VEC(entry) entries; // the one to try first in front
};

// --- which runs where -----------------------------------------------------------------------------------------------

// Families are the architectures of one major version; 10.1 is one by itself, since called 11.0.
static bool is_family(uint32_t sm, uint32_t other) {
  return sm == other || (sm / 10 == other / 10 && sm != 101 && other != 101);
}

static bool runs_on(const kl_target *t, uint32_t sm) {
  if (t->machine == KL_HOST || !sm) return t->machine == KL_HOST && !sm;
  if (t->variant == 'a') return t->sm == sm;
  return t->sm <= sm && (t->variant != 'f' || is_family(t->sm, sm));
}

// Greater: to be tried before. "a" can do more than "f", and that more than neither.
static uint32_t rank(const kl_target *t) {
  return t->machine == KL_HOST ? 0 : t->sm * 4 + (t->variant == 'a' ? 2 : t->variant == 'f');
}

// --- what is one ----------------------------------------------------------------------------------------------------

static bool same_text(const char *a, const char *b) {
  return !a || !b ? a == b : strcmp(a, b) == 0;
}

static bool same_type(const kiln_array_type *a, const kiln_array_type *b) {
  return a->dtype == b->dtype && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

// What a caller gives, but for where it lies: alignment and aliases are each target's own.
static bool same_slot(const kiln_slot *a, const kiln_slot *b) {
  return same_text(a->name, b->name) && same_type(&a->type, &b->type) && same_text(a->layout, b->layout) &&
         a->bytes == b->bytes && a->counted == b->counted && a->row == b->row && a->by_value == b->by_value &&
         a->role == b->role && a->leaf == b->leaf && a->level == b->level;
}

// NULL: they are of one kind; else what they differ in.
static const char *difference(const kiln_manifest *a, const kiln_manifest *b) {
  if (strcmp(a->target, b->target) == 0) return "are for the same target";
  if (memcmp(a->hash, b->hash, sizeof a->hash) != 0) return "are of different modules";
  if (!same_text(a->fusion, b->fusion)) return "are of different fusions";
  if (a->parameter_count != b->parameter_count || a->result_count != b->result_count)
    return "have different numbers of slots";
  if (a->counted != b->counted || a->max_count != b->max_count || a->count_unit != b->count_unit)
    return "differ in their run-time count";
  if (a->numerics != b->numerics) return "differ in numerics";
  for (size_t i = 0; i < a->parameter_count + a->result_count; i++)
    if (!same_slot(&a->slots[i], &b->slots[i])) return "have different slots";
  return NULL;
}

// --- life -----------------------------------------------------------------------------------------------------------

// No target comes twice, so there are never many.
static kiln_status add(kl_ctx *cx, kiln_bundle *b, const kiln_artifact *a) {
  entry e = {.a = NULL};
  KL_TRY(kl_target_parse(cx, a->target, &e.target));
  for (size_t i = 0; i < b->entries.n; i++) {
    const char *why = difference(&b->entries.p[i].a->manifest, &a->manifest);
    if (why)
      return kl_invalid(cx, KL_NOWHERE,
                        "expected artifacts of one module for different targets, found two (%s, %s) that %s",
                        b->entries.p[i].a->target, a->target, why);
  }
  size_t at = b->entries.n;
  VEC_PUSH(b->cx, &b->entries, e);
  for (; at && rank(&b->entries.p[at - 1].target) < rank(&e.target); at--) b->entries.p[at] = b->entries.p[at - 1];
  e.a = kl_artifact_share(a);
  b->entries.p[at] = e;
  return KILN_OK;
}

static kiln_status make(kl_ctx *cx, kiln_bundle **out) {
  kiln_context_params own = {.struct_size = sizeof own, .allocator = cx->allocator};
  kl_ctx *bcx = kiln_context_create(&own);
  if (!bcx) return kl_out_of_memory(cx, sizeof *bcx, "a bundle");
  *out = kl_alloc(bcx, sizeof **out);
  (*out)->cx = bcx;
  return KILN_OK;
}

// What has gone well so far is given out, anything else taken back.
static kiln_status finish(kiln_status st, kiln_bundle **b, kiln_bundle **out) {
  if (st == KILN_OK)
    *out = *b;
  else
    kiln_bundle_destroy(b);
  return st;
}

kiln_status kiln_bundle_create(kiln_context *cx, const kiln_artifact *const *artifacts, size_t count,
                               kiln_bundle **out) {
  kiln_bundle *b = NULL;
  KL_CLEAR(out);
  KL_EXPECT(cx, artifacts, out);
  if (!count) return kl_invalid(cx, KL_NOWHERE, "expected at least one artifact for a bundle, found none");
  for (size_t i = 0; i < count; i++)
    if (!artifacts[i]) return kl_invalid(cx, KL_NOWHERE, "expected %zu artifacts, found NULL for number %zu", count, i);
  KL_TRY(make(cx, &b));
  kiln_status st = KILN_OK;
  for (size_t i = 0; i < count && st == KILN_OK; i++) st = add(cx, b, artifacts[i]);
  return finish(st, &b, out);
}

void kiln_bundle_destroy(kiln_bundle **bp) {
  if (!bp || !*bp) return;
  kiln_bundle *b = *bp;
  kl_ctx *cx = b->cx;
  for (size_t i = 0; i < b->entries.n; i++) kiln_artifact_destroy(&b->entries.p[i].a);
  VEC_FREE(cx, &b->entries);
  kl_free(cx, b, sizeof *b);
  kiln_context_destroy(&cx);
  *bp = NULL;
}

static kiln_status compile_one(kl_ctx *cx, const kiln_module *m, const char *target, kiln_compile_params *p,
                               kiln_bundle *b) {
  kiln_artifact *a = NULL;
  p->target = target;
  kiln_status st = kiln_compile(cx, m, p, &a);
  if (st != KILN_OK) return kl_fail(cx, st, KL_NOWHERE, "the module is not compiled for target %s", target);
  st = add(cx, b, a);
  kiln_artifact_destroy(&a);
  return st;
}

kiln_status kiln_bundle_compile(kiln_context *cx, const kiln_module *m, const char *const *targets, size_t count,
                                const kiln_compile_params *params, kiln_bundle **out) {
  kiln_bundle *b = NULL;
  kiln_compile_params p;
  KL_CLEAR(out);
  KL_EXPECT(cx, m, targets, out);
  KL_TRY(KL_PARAMS_IN(cx, kiln_compile_params, params, &p));
  if (!count) return kl_invalid(cx, KL_NOWHERE, "expected at least one target, found none");
  if (p.target) return kl_invalid(cx, KL_NOWHERE, "target: expected NULL beside a list of them, found '%s'", p.target);
  if (p.device) return kl_invalid(cx, KL_NOWHERE, "device: expected NULL beside a list of targets");
  for (size_t i = 0; i < count; i++)
    if (!targets[i]) return kl_invalid(cx, KL_NOWHERE, "expected %zu targets, found NULL for number %zu", count, i);
  KL_TRY(make(cx, &b));
  kiln_status st = KILN_OK;
  for (size_t i = 0; i < count && st == KILN_OK; i++) st = compile_one(cx, m, targets[i], &p, b);
  return finish(st, &b, out);
}

size_t kiln_bundle_count(const kiln_bundle *b) {
  return b ? b->entries.n : 0;
}

const kiln_artifact *kiln_bundle_get(const kiln_bundle *b, size_t i) {
  return b && i < b->entries.n ? b->entries.p[i].a : NULL;
}

// --- the one for a device -------------------------------------------------------------------------------------------

static kiln_status none_runs(kl_ctx *cx, const kiln_bundle *b, uint32_t sm) {
  char where[32] = "the host";
  kl_sb there;
  kl_sb_init(&there, cx);
  if (sm) snprintf(where, sizeof where, "sm_%u", sm);
  for (size_t i = 0; i < b->entries.n; i++) kl_sbf(&there, "%s%s", i ? ", " : "", b->entries.p[i].a->target);
  kiln_status st = kl_unsupported(cx, KL_NOWHERE, "expected an artifact that runs on %s, found those for %.*s", where,
                                  (int)there.n, there.p);
  kl_sb_free(&there);
  return st;
}

kiln_status kiln_bundle_choose(kiln_context *cx, const kiln_bundle *b, uint32_t sm, kiln_artifact **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, b, out);
  for (size_t i = 0; i < b->entries.n && !*out; i++)
    if (runs_on(&b->entries.p[i].target, sm)) *out = kl_artifact_share(b->entries.p[i].a);
  return *out ? KILN_OK : none_runs(cx, b, sm);
}

// --- bytes ----------------------------------------------------------------------------------------------------------

// These, the number of records, and of each its length and itself. A record alone is a bundle, too.
static const char MAGIC[8] = {'k', 'i', 'l', 'n', 'b', 'n', 'd', '1'};

static void put_number(kl_sb *out, uint64_t v) {
  kl_sb_put(out, (kl_str){(const char *)&v, sizeof v}); // this machine is little-endian, as all that kiln runs on
}

kiln_status kiln_bundle_save(kiln_context *cx, const kiln_bundle *b, void **bytes, size_t *size) {
  kl_sb out;
  KL_CLEAR(bytes);
  KL_CLEAR(size);
  KL_EXPECT(cx, b, bytes, size);
  kl_sb_init(&out, cx);
  kl_sb_put(&out, (kl_str){MAGIC, sizeof MAGIC});
  put_number(&out, b->entries.n);
  for (size_t i = 0; i < b->entries.n; i++) {
    size_t at = out.n;
    put_number(&out, 0);
    kl_record_write(b->entries.p[i].a, &out);
    uint64_t n = out.n - at - sizeof n;
    memcpy(out.p + at, &n, sizeof n);
  }
  *bytes = kl_sb_take(&out, size);
  return KILN_OK;
}

typedef struct reader {
  const uint8_t *p, *end;
  const char *bad; // why it is no bundle
} reader;

static uint64_t take_number(reader *r) {
  uint64_t v = 0;
  if ((size_t)(r->end - r->p) < sizeof v) {
    r->bad = "it ends too early";
    return 0;
  }
  memcpy(&v, r->p, sizeof v);
  r->p += sizeof v;
  return v;
}

static kiln_status read_record(kl_ctx *cx, kiln_bundle *b, reader *r, size_t n) {
  kiln_artifact *a = kl_record_read(&cx->allocator, r->p, n, &r->bad);
  if (!a) return KILN_E_INVALID;
  r->p += n;
  kiln_status st = add(cx, b, a);
  kiln_artifact_destroy(&a);
  return st;
}

static kiln_status read_records(kl_ctx *cx, kiln_bundle *b, reader *r) {
  r->p += sizeof MAGIC;
  uint64_t count = take_number(r);
  if (!r->bad && !count) r->bad = "there is no artifact in it";
  for (uint64_t i = 0; i < count && !r->bad; i++) {
    uint64_t n = take_number(r);
    if (!r->bad && n > (uint64_t)(r->end - r->p)) r->bad = "it ends too early";
    if (!r->bad) KL_TRY(read_record(cx, b, r, (size_t)n));
  }
  if (!r->bad && r->p != r->end) r->bad = "there is more behind its end";
  return r->bad ? KILN_E_INVALID : KILN_OK;
}

bool kiln_bundle_is_saved(const void *bytes, size_t size) {
  return bytes && size >= 7 && (memcmp(bytes, MAGIC, 7) == 0 || memcmp(bytes, "kilnart", 7) == 0);
}

kiln_status kiln_bundle_load(kiln_context *cx, const void *bytes, size_t size, kiln_bundle **out) {
  kiln_bundle *b = NULL;
  KL_CLEAR(out);
  KL_EXPECT(cx, bytes, out);
  reader r = {.p = bytes, .end = (const uint8_t *)bytes + size};
  KL_TRY(make(cx, &b));
  bool many = size >= sizeof MAGIC && memcmp(bytes, MAGIC, sizeof MAGIC) == 0;
  kiln_status st = many ? read_records(cx, b, &r) : read_record(cx, b, &r, size);
  if (r.bad)
    st = kl_invalid(cx, KL_NOWHERE, "expected artifacts as kiln_bundle_save or kiln_artifact_save gives them: %s",
                    r.bad);
  return finish(st, &b, out);
}
