// Artifacts as bytes.

#include "jit/archive.h"
#include "jit/cache/cache.h"
#include <kiln/cache.h>

// A record: these bytes, its length behind the header, two hashes of what is there, and that.
static const char MAGIC[8] = {'k', 'i', 'l', 'n', 'a', 'r', 't', '3'};
static const char CODE_MAGIC[8] = {'k', 'i', 'l', 'n', 'c', 'u', 'b', '1'}; // one of machine code alone
enum { HEADER = 32 };

// Whoever adds a field to one of these structs describes it here.
_Static_assert(sizeof(kiln_slot) == 368 && sizeof(kiln_launch) == 128 && sizeof(kiln_argument) == 24 &&
                   sizeof(kl_host_launch) == 24 && sizeof(kiln_manifest) == 184 && sizeof(kiln_step) == 64,
               "these are all fields of an artifact");

static void array_type(kl_archive *a, kiln_array_type *t) {
  KL_CHOICE(a, t->dtype, KILN_DTYPE_COUNT - 1);
  KL_CHOICE(a, t->rank, KILN_MAX_RANK);
  for (uint32_t i = 0; i < t->rank && !a->bad; i++) KL_NUMBER(a, t->dims[i]);
}

static void slot(kl_archive *a, kiln_slot *s, size_t slots) {
  KL_FLAG(a, s->result);
  KL_NUMBER(a, s->index);
  kl_ar_name(a, &s->name);
  array_type(a, &s->type);
  for (uint32_t i = 0; i < s->type.rank && !a->bad; i++) KL_CHOICE(a, s->minor_to_major[i], s->type.rank - 1);
  kl_ar_name(a, &s->layout);
  KL_NUMBER(a, s->bytes);
  KL_NUMBER(a, s->align);
  KL_FLAG(a, s->counted);
  KL_NUMBER(a, s->row);
  KL_FLAG(a, s->by_value);
  KL_NUMBER(a, s->alias);
  KL_FLAG(a, s->donated);
  KL_CHOICE(a, s->role, KILN_SLOT_COUNTS);
  KL_NUMBER(a, s->leaf);
  KL_NUMBER(a, s->level);
  if (s->alias != KILN_NO_SLOT && s->alias >= slots) kl_ar_refuse(a, "an alias is no slot");
  if (!s->align || (s->align & (s->align - 1))) kl_ar_refuse(a, "an alignment is no power of two");
  if (s->bytes < -1 || s->row < 0) kl_ar_refuse(a, "a size is negative");
}

static void argument(kl_archive *a, kiln_argument *g, const kiln_manifest *f) {
  KL_CHOICE(a, g->kind, KILN_ARGUMENT_COUNT);
  KL_NUMBER(a, g->slot);
  KL_NUMBER(a, g->offset);
  KL_FLAG(a, g->output);
  if (g->kind == KILN_ARGUMENT_SLOT && g->slot >= f->parameter_count + f->result_count)
    kl_ar_refuse(a, "an argument is no slot");
  if (g->kind == KILN_ARGUMENT_SCRATCH && g->offset > f->scratch_bytes)
    kl_ar_refuse(a, "an argument is behind the scratch");
}

static void launch(kl_archive *a, kiln_launch *l, const kiln_manifest *f) {
  kl_ar_name(a, &l->kernel);
  KL_CHOICE(a, l->when, KILN_WHEN_IN_PLACE);
  for (int d = 0; d < 3; d++) {
    KL_NUMBER(a, l->grid[d]);
    KL_NUMBER(a, l->block[d]);
    KL_NUMBER(a, l->cluster[d]);
  }
  KL_NUMBER(a, l->shared_bytes);
  KL_NUMBER(a, l->dynamic_shared_bytes);
  KL_FLAG(a, l->programmatic);
  KL_NUMBER(a, l->vector_bytes);
  KL_NUMBER(a, l->lanes);
  KL_NUMBER(a, l->rest_lanes);
  KL_NUMBER(a, l->elements);
  KL_NUMBER(a, l->bytes);
  kl_ar_length(a, &l->argument_count);
  kiln_argument *list = (kiln_argument *)l->arguments;
  if (!a->writing) l->arguments = list = kl_ar_room(a, l->argument_count, sizeof *list);
  for (size_t i = 0; i < l->argument_count && !a->bad; i++) argument(a, &list[i], f);
  KL_NUMBER(a, l->count_whole);
  KL_NUMBER(a, l->count_rest);
  KL_NUMBER(a, l->count_blocks);
  if (f->counted && l->count_whole && (l->count_whole < 0 || l->count_rest <= 0))
    kl_ar_refuse(a, "a launch counts by nothing");
}

static void step(kl_archive *a, kiln_step *s, const kiln_manifest *f) {
  KL_CHOICE(a, s->kind, KILN_STEP_CASE);
  KL_NUMBER(a, s->condition_bytes);
  KL_NUMBER(a, s->times);
  uint64_t first = s->first, count = s->count, body = s->body;
  KL_NUMBER(a, first);
  KL_NUMBER(a, count);
  KL_NUMBER(a, body);
  s->first = (size_t)first, s->count = (size_t)count, s->body = (size_t)body;
  if (s->kind == KILN_STEP_LAUNCHES) {
    if (first > f->launch_count || count > f->launch_count - first) kl_ar_refuse(a, "a step is no launches");
    return;
  }
  if (!kl_reads_condition(s)) return;
  argument(a, &s->condition, f);
  uint64_t most = f->scratch_bytes, bytes = s->condition_bytes;
  if (bytes != 1 && (bytes != 4 || s->kind != KILN_STEP_BRANCH))
    kl_ar_refuse(a, "a condition is no truth and no number");
  if (a->bad) return;
  if (s->condition.kind == KILN_ARGUMENT_SLOT
          ? f->slots[s->condition.slot].bytes < (int64_t)bytes
          : s->condition.kind != KILN_ARGUMENT_SCRATCH || most < bytes || s->condition.offset > most - bytes)
    kl_ar_refuse(a, "a condition is no memory");
}

// Are a branch's `count` cases all that is behind it, and cases nowhere else?
static bool has_cases(const kiln_step *s, size_t left, bool *of_branch) {
  size_t at = 1;
  if (s->body > left || !s->count || (s->condition_bytes == 1 && s->count != 2)) return false;
  for (size_t k = 0; k < s->count; k++) {
    if (at > s->body || s[at].kind != KILN_STEP_CASE || s[at].body > s->body - at) return false;
    of_branch[at] = true;
    at += 1 + s[at].body;
  }
  return at == s->body + 1;
}

// Do loops and branches end within what they stand in? They nest by their ends, of which the innermost is last.
static void check_steps(kl_archive *a, const kiln_step *steps, size_t n) {
  size_t *ends = kl_ar_room(a, 2 * n, sizeof *ends), depth = 0;
  bool *of_branch = kl_ar_room(a, n, sizeof *of_branch);
  for (size_t i = 0; i < n && !a->bad; i++) {
    const kiln_step *s = &steps[i];
    while (depth && ends[depth - 1] <= i) depth--;
    if (s->kind == KILN_STEP_LAUNCHES) continue;
    size_t end = depth ? ends[depth - 1] : n, left = end - i - 1, own = s->kind == KILN_STEP_WHILE ? s->count : 0;
    if (own > left || s->body > left - own) kl_ar_refuse(a, "a loop is longer than what it stands in");
    if (!a->bad && s->kind == KILN_STEP_BRANCH && !has_cases(s, left, of_branch + i))
      kl_ar_refuse(a, "a branch has other cases");
    if (!a->bad && s->kind == KILN_STEP_CASE && !of_branch[i]) kl_ar_refuse(a, "a case is of no branch");
    if (a->bad) return;
    ends[depth++] = i + 1 + own + s->body;
    if (own) ends[depth++] = i + 1 + own; // the condition's own are done first
  }
}

static void host_launch(kl_archive *a, kl_host_launch *h) {
  KL_NUMBER(a, h->iterations);
  KL_NUMBER(a, h->least);
  KL_FLAG(a, h->any);
  KL_FLAG(a, h->flat);
}

static void manifest(kl_archive *a, kiln_manifest *f) {
  kl_ar_name(a, &f->kiln_version);
  kl_ar_name(a, &f->module);
  kl_ar_string(a, &f->fusion);
  for (int i = 0; i < KILN_HASH_SIZE; i++) KL_NUMBER(a, f->hash[i]);
  KL_NUMBER(a, f->ptx_version);
  KL_NUMBER(a, f->driver_version);
  kl_ar_length(a, &f->parameter_count);
  kl_ar_length(a, &f->result_count);
  KL_NUMBER(a, f->scratch_bytes);
  KL_NUMBER(a, f->scratch_zero_bytes);
  KL_NUMBER(a, f->scratch_align);
  KL_FLAG(a, f->counted);
  KL_NUMBER(a, f->max_count);
  KL_NUMBER(a, f->count_unit);
  KL_CHOICE(a, f->numerics, KILN_NUMERICS_FAST);
  size_t constants = f->constant_bytes;
  kl_ar_bytes(a, &f->constants, &constants);
  f->constant_bytes = constants;
  if (!constants) f->constants = NULL;
  if (f->counted && f->count_unit <= 0) kl_ar_refuse(a, "a count is of nothing");
  if (f->scratch_zero_bytes > f->scratch_bytes || constants > f->scratch_bytes - f->scratch_zero_bytes)
    kl_ar_refuse(a, "the scratch memory is too small");
  if (f->scratch_align & (f->scratch_align - 1)) kl_ar_refuse(a, "an alignment is no power of two");
  size_t slots = f->parameter_count + f->result_count;
  kiln_slot *list = (kiln_slot *)f->slots;
  if (!a->writing) f->slots = list = kl_ar_room(a, slots, sizeof *list);
  for (size_t i = 0; i < slots && !a->bad; i++) slot(a, &list[i], slots);
}

static void objects(kl_archive *a, kiln_artifact *x) {
  kl_ar_length(a, &x->object_count);
  if (!a->writing) x->objects = kl_ar_room(a, x->object_count, sizeof *x->objects);
  for (size_t i = 0; i < x->object_count && !a->bad; i++)
    kl_ar_bytes(a, (const void **)&x->objects[i].bytes, &x->objects[i].size);
}

static void artifact(kl_archive *a, kiln_artifact *x) {
  for (size_t i = 0; i < sizeof x->target; i++) KL_NUMBER(a, x->target[i]);
  if (x->target[sizeof x->target - 1]) kl_ar_refuse(a, "the target's name has no end");
  KL_FLAG(a, x->host);
  manifest(a, &x->manifest);
  x->manifest.target = x->target;
  kl_ar_length(a, &x->manifest.launch_count);
  size_t n = x->manifest.launch_count;
  if (!a->writing) {
    x->manifest.launches = x->launches = kl_ar_room(a, n, sizeof *x->launches);
    x->host_launches = kl_ar_room(a, n, sizeof *x->host_launches);
  }
  for (size_t i = 0; i < n && !a->bad; i++) launch(a, &x->launches[i], &x->manifest);
  for (size_t i = 0; i < n && !a->bad && x->host; i++) host_launch(a, &x->host_launches[i]);
  kl_ar_length(a, &x->manifest.step_count);
  kiln_step *steps = (kiln_step *)x->manifest.steps;
  if (!a->writing) x->manifest.steps = steps = kl_ar_room(a, x->manifest.step_count, sizeof *steps);
  for (size_t i = 0; i < x->manifest.step_count && !a->bad; i++) step(a, &steps[i], &x->manifest);
  if (!a->writing && !a->bad) check_steps(a, steps, x->manifest.step_count);
  if (x->host)
    objects(a, x);
  else
    kl_ar_bytes(a, (const void **)&x->text[KILN_TEXT_PTX], &x->text_size[KILN_TEXT_PTX]);
}

// --- the two ways -------------------------------------------------------------------------------------------------

static void hashes(const uint8_t *p, size_t n, uint64_t out[2]) {
  kl_hash_twice(p, n, (const uint64_t[]){1, 2}, out);
}

// Where a record begins, whose header is written once all is there.
static size_t begin(kl_sb *out) {
  uint8_t header[HEADER] = {0};
  kl_sb_put(out, (kl_str){(const char *)header, HEADER});
  return out->n - HEADER;
}

static void end(kl_sb *out, size_t at, const char magic[8]) {
  uint64_t words[3] = {out->n - at - HEADER};
  hashes((const uint8_t *)out->p + at + HEADER, words[0], words + 1);
  memcpy(out->p + at, magic, 8);
  memcpy(out->p + at + 8, words, sizeof words);
}

void kl_record_write(const kiln_artifact *a, kl_sb *out) {
  kl_archive w = {.writing = true, .out = out};
  size_t at = begin(out);
  artifact(&w, (kiln_artifact *)a);           // writing changes nothing
  if (a->less) kl_record_write(a->less, out); // a record in it, at its end
  end(out, at, MAGIC);
}

void kl_record_write_code(const void *code, size_t n, kl_sb *out) {
  size_t at = begin(out);
  kl_sb_put(out, (kl_str){code, n});
  end(out, at, CODE_MAGIC);
}

static const char *check_header(const uint8_t *p, size_t size, const char magic[8]) {
  uint64_t words[3], found[2];
  if (size < HEADER || memcmp(p, magic, 8) != 0) return "it does not begin as an artifact of this format";
  memcpy(words, p + 8, sizeof words);
  if (words[0] != size - HEADER) return "its length is not the one that it says";
  hashes(p + HEADER, words[0], found);
  return found[0] == words[1] && found[1] == words[2] ? NULL : "its bytes have changed";
}

const void *kl_record_read_code(const void *p, size_t size, size_t *n) {
  if (check_header(p, size, CODE_MAGIC)) return NULL;
  *n = size - HEADER;
  return (const uint8_t *)p + HEADER;
}

// Is one the other for buffers of less alignment, as far as launches rely on it?
static bool fit_together(const kiln_artifact *a, const kiln_artifact *less) {
  const kiln_manifest *f = &a->manifest, *g = &less->manifest;
  bool same = !a->host && !less->host && f->parameter_count == g->parameter_count &&
              f->result_count == g->result_count && f->scratch_bytes == g->scratch_bytes &&
              f->scratch_zero_bytes == g->scratch_zero_bytes && f->constant_bytes == g->constant_bytes &&
              f->scratch_align == g->scratch_align;
  for (size_t i = 0; same && i < f->parameter_count + f->result_count; i++)
    same = f->slots[i].result == g->slots[i].result && f->slots[i].index == g->slots[i].index &&
           f->slots[i].bytes == g->slots[i].bytes && f->slots[i].by_value == g->slots[i].by_value;
  return same;
}

// `inner`: there is none within it.
static kiln_artifact *read_record(const kiln_allocator *allocator, const void *p, size_t size, bool inner,
                                  const char **why) {
  if ((*why = check_header(p, size, MAGIC))) return NULL;
  kiln_context_params params = {.struct_size = sizeof params, .allocator = *allocator};
  kl_ctx *cx = kiln_context_create(&params);
  *why = "there is no memory for it";
  if (!cx) return NULL;
  kiln_artifact *x = kl_alloc(cx, sizeof *x);
  x->cx = cx;
  x->refs = 1;
  kl_arena_init(&x->arena, cx);
  x->manifest.struct_size = sizeof x->manifest;
  kl_archive r = {.p = (const uint8_t *)p + HEADER, .end = (const uint8_t *)p + size, .arena = &x->arena};
  artifact(&r, x);
  if (!r.bad && r.p != r.end && inner) kl_ar_refuse(&r, "there is more behind its end");
  if (!r.bad && r.p != r.end) x->less = read_record(allocator, r.p, (size_t)(r.end - r.p), true, &r.bad);
  if (!r.bad && x->less && !fit_together(x, x->less)) kl_ar_refuse(&r, "its kernels for less alignment are another's");
  if (r.bad) kiln_artifact_destroy(&x);
  *why = r.bad;
  return x;
}

kiln_artifact *kl_record_read(const kiln_allocator *allocator, const void *p, size_t size, const char **why) {
  return read_record(allocator, p, size, false, why);
}

// --- the API ------------------------------------------------------------------------------------------------------

kiln_status kiln_artifact_save(kiln_context *cx, const kiln_artifact *a, void **bytes, size_t *size) {
  kl_sb b;
  KL_CLEAR(bytes);
  KL_CLEAR(size);
  KL_EXPECT(cx, a, bytes, size);
  kl_sb_init(&b, cx);
  kl_record_write(a, &b);
  *bytes = kl_sb_take(&b, size);
  return KILN_OK;
}

void kiln_artifact_bytes_free(kiln_context *cx, void *bytes, size_t size) {
  if (cx && bytes) kl_free(cx, bytes, size + 1);
}

kiln_status kiln_artifact_load(kiln_context *cx, const void *bytes, size_t size, kiln_artifact **out) {
  const char *why;
  KL_CLEAR(out);
  KL_EXPECT(cx, bytes, out);
  kiln_artifact *x = kl_record_read(&cx->allocator, bytes, size, &why);
  if (!x) return kl_invalid(cx, KL_NOWHERE, "expected an artifact as kiln_artifact_save gives it: %s", why);
  *out = x;
  return KILN_OK;
}
