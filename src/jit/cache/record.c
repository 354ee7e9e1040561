// Artifacts as bytes. One description of every struct serves both ways, so that what is written is what is read.

#include "jit/cache/cache.h"
#include <kiln/cache.h>

// A record: these bytes, its length behind the header, two hashes of what is there, and that.
static const char MAGIC[8] = {'k', 'i', 'l', 'n', 'a', 'r', 't', '2'};
static const char CODE_MAGIC[8] = {'k', 'i', 'l', 'n', 'c', 'u', 'b', '1'}; // one of machine code alone
enum { HEADER = 32 };

typedef struct archive {
  bool writing;
  kl_sb *out;
  const uint8_t *p, *end;
  kl_arena *arena; // of what is read
  const char *bad; // why what is read is no artifact
} archive;

static void refuse(archive *a, const char *why) {
  if (!a->bad && !a->writing) a->bad = why;
}

static void number(archive *a, void *field, size_t size) {
  uint8_t bytes[8];
  uint64_t v = 0;
  if (a->writing) {
    memcpy(&v, field, size); // this machine is little-endian, as all that kiln runs on
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(v >> 8 * i);
    kl_sb_put(a->out, (kl_str){(const char *)bytes, size});
  } else if ((size_t)(a->end - a->p) < size) {
    refuse(a, "it ends too early");
  } else {
    memcpy(field, a->p, size);
    a->p += size;
  }
}
#define NUMBER(a, field) number((a), &(field), sizeof(field))

// A field of at most `most`.
static void choice(archive *a, void *field, size_t size, uint64_t most) {
  uint64_t v = 0;
  number(a, field, size);
  memcpy(&v, field, size);
  if (v > most) refuse(a, "a value is out of range");
}
#define CHOICE(a, field, most) choice((a), &(field), sizeof(field), (most))
#define FLAG(a, field)         flag((a), &(field))

static void flag(archive *a, bool *field) {
  uint8_t v = *field;
  choice(a, &v, 1, 1);
  *field = v == 1;
}

// A list's length; each entry takes a byte at least.
static void length(archive *a, size_t *n) {
  uint64_t v = *n;
  NUMBER(a, v);
  if (!a->writing && v > (uint64_t)(a->end - a->p)) refuse(a, "it ends too early");
  *n = a->bad ? 0 : (size_t)v;
}

// Room for a list that is read.
static void *room(archive *a, size_t n, size_t item) {
  size_t size;
  void *p = NULL;
  if (!a->bad && !__builtin_mul_overflow(n + 1, item, &size)) p = kl_arena_try_alloc(a->arena, size);
  if (!p) refuse(a, "there is no memory for it");
  return p;
}

static void bytes(archive *a, const void **p, size_t *n) {
  length(a, n);
  if (a->writing) {
    kl_sb_put(a->out, (kl_str){*p, *n});
    return;
  }
  char *copy = room(a, *n, 1); // a NUL ends it
  *p = copy;
  if (!copy) *n = 0;
  if (*n) memcpy(copy, a->p, *n);
  a->p += *n;
}

// NULL is kept apart from "".
static void string(archive *a, const char **z) {
  bool there = *z != NULL;
  size_t n = *z ? strlen(*z) : 0;
  FLAG(a, there);
  if (!there || a->bad) {
    if (!a->writing) *z = NULL;
    return;
  }
  bytes(a, (const void **)z, &n);
  if (!a->writing && *z && strlen(*z) != n) refuse(a, "a name has a NUL");
}

static void name(archive *a, const char **z) {
  string(a, z);
  if (!*z) refuse(a, "a name is missing");
}

// Whoever adds a field to one of these structs describes it here.
_Static_assert(sizeof(kiln_slot) == 368 && sizeof(kiln_launch) == 128 && sizeof(kiln_argument) == 24 &&
                   sizeof(kl_host_launch) == 24 && sizeof(kiln_manifest) == 184 && sizeof(kiln_step) == 64,
               "these are all fields of an artifact");

static void array_type(archive *a, kiln_array_type *t) {
  CHOICE(a, t->dtype, KILN_DTYPE_COUNT - 1);
  CHOICE(a, t->rank, KILN_MAX_RANK);
  for (uint32_t i = 0; i < t->rank && !a->bad; i++) NUMBER(a, t->dims[i]);
}

static void slot(archive *a, kiln_slot *s, size_t slots) {
  FLAG(a, s->result);
  NUMBER(a, s->index);
  name(a, &s->name);
  array_type(a, &s->type);
  for (uint32_t i = 0; i < s->type.rank && !a->bad; i++) CHOICE(a, s->minor_to_major[i], s->type.rank - 1);
  name(a, &s->layout);
  NUMBER(a, s->bytes);
  NUMBER(a, s->align);
  FLAG(a, s->counted);
  NUMBER(a, s->row);
  FLAG(a, s->by_value);
  NUMBER(a, s->alias);
  FLAG(a, s->donated);
  CHOICE(a, s->role, KILN_SLOT_COUNTS);
  NUMBER(a, s->leaf);
  NUMBER(a, s->level);
  if (s->alias != KILN_NO_SLOT && s->alias >= slots) refuse(a, "an alias is no slot");
  if (!s->align || (s->align & (s->align - 1))) refuse(a, "an alignment is no power of two");
  if (s->bytes < -1 || s->row < 0) refuse(a, "a size is negative");
}

static void argument(archive *a, kiln_argument *g, const kiln_manifest *f) {
  CHOICE(a, g->kind, KILN_ARGUMENT_COUNT);
  NUMBER(a, g->slot);
  NUMBER(a, g->offset);
  FLAG(a, g->output);
  if (g->kind == KILN_ARGUMENT_SLOT && g->slot >= f->parameter_count + f->result_count)
    refuse(a, "an argument is no slot");
  if (g->kind == KILN_ARGUMENT_SCRATCH && g->offset > f->scratch_bytes) refuse(a, "an argument is behind the scratch");
}

static void launch(archive *a, kiln_launch *l, const kiln_manifest *f) {
  name(a, &l->kernel);
  CHOICE(a, l->when, KILN_WHEN_IN_PLACE);
  for (int d = 0; d < 3; d++) {
    NUMBER(a, l->grid[d]);
    NUMBER(a, l->block[d]);
    NUMBER(a, l->cluster[d]);
  }
  NUMBER(a, l->shared_bytes);
  NUMBER(a, l->dynamic_shared_bytes);
  FLAG(a, l->programmatic);
  NUMBER(a, l->vector_bytes);
  NUMBER(a, l->lanes);
  NUMBER(a, l->rest_lanes);
  NUMBER(a, l->elements);
  NUMBER(a, l->bytes);
  length(a, &l->argument_count);
  kiln_argument *list = (kiln_argument *)l->arguments;
  if (!a->writing) l->arguments = list = room(a, l->argument_count, sizeof *list);
  for (size_t i = 0; i < l->argument_count && !a->bad; i++) argument(a, &list[i], f);
  NUMBER(a, l->count_whole);
  NUMBER(a, l->count_rest);
  NUMBER(a, l->count_blocks);
  if (f->counted && l->count_whole && (l->count_whole < 0 || l->count_rest <= 0))
    refuse(a, "a launch counts by nothing");
}

static void step(archive *a, kiln_step *s, const kiln_manifest *f) {
  CHOICE(a, s->kind, KILN_STEP_CASE);
  NUMBER(a, s->condition_bytes);
  NUMBER(a, s->times);
  uint64_t first = s->first, count = s->count, body = s->body;
  NUMBER(a, first);
  NUMBER(a, count);
  NUMBER(a, body);
  s->first = (size_t)first, s->count = (size_t)count, s->body = (size_t)body;
  if (s->kind == KILN_STEP_LAUNCHES) {
    if (first > f->launch_count || count > f->launch_count - first) refuse(a, "a step is no launches");
    return;
  }
  if (!kl_reads_condition(s)) return;
  argument(a, &s->condition, f);
  uint64_t most = f->scratch_bytes, bytes = s->condition_bytes;
  if (bytes != 1 && (bytes != 4 || s->kind != KILN_STEP_BRANCH)) refuse(a, "a condition is no truth and no number");
  if (a->bad) return;
  if (s->condition.kind == KILN_ARGUMENT_SLOT
          ? f->slots[s->condition.slot].bytes < (int64_t)bytes
          : s->condition.kind != KILN_ARGUMENT_SCRATCH || most < bytes || s->condition.offset > most - bytes)
    refuse(a, "a condition is no memory");
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
static void check_steps(archive *a, const kiln_step *steps, size_t n) {
  size_t *ends = room(a, 2 * n, sizeof *ends), depth = 0;
  bool *of_branch = room(a, n, sizeof *of_branch);
  for (size_t i = 0; i < n && !a->bad; i++) {
    const kiln_step *s = &steps[i];
    while (depth && ends[depth - 1] <= i) depth--;
    if (s->kind == KILN_STEP_LAUNCHES) continue;
    size_t end = depth ? ends[depth - 1] : n, left = end - i - 1, own = s->kind == KILN_STEP_WHILE ? s->count : 0;
    if (own > left || s->body > left - own) refuse(a, "a loop is longer than what it stands in");
    if (!a->bad && s->kind == KILN_STEP_BRANCH && !has_cases(s, left, of_branch + i))
      refuse(a, "a branch has other cases");
    if (!a->bad && s->kind == KILN_STEP_CASE && !of_branch[i]) refuse(a, "a case is of no branch");
    if (a->bad) return;
    ends[depth++] = i + 1 + own + s->body;
    if (own) ends[depth++] = i + 1 + own; // the condition's own are done first
  }
}

static void host_launch(archive *a, kl_host_launch *h) {
  NUMBER(a, h->iterations);
  NUMBER(a, h->least);
  FLAG(a, h->any);
  FLAG(a, h->flat);
}

static void manifest(archive *a, kiln_manifest *f) {
  name(a, &f->kiln_version);
  name(a, &f->module);
  string(a, &f->fusion);
  for (int i = 0; i < KILN_HASH_SIZE; i++) NUMBER(a, f->hash[i]);
  NUMBER(a, f->ptx_version);
  NUMBER(a, f->driver_version);
  length(a, &f->parameter_count);
  length(a, &f->result_count);
  NUMBER(a, f->scratch_bytes);
  NUMBER(a, f->scratch_zero_bytes);
  NUMBER(a, f->scratch_align);
  FLAG(a, f->counted);
  NUMBER(a, f->max_count);
  NUMBER(a, f->count_unit);
  CHOICE(a, f->numerics, KILN_NUMERICS_FAST);
  size_t constants = f->constant_bytes;
  bytes(a, &f->constants, &constants);
  f->constant_bytes = constants;
  if (!constants) f->constants = NULL;
  if (f->counted && f->count_unit <= 0) refuse(a, "a count is of nothing");
  if (f->scratch_zero_bytes > f->scratch_bytes || constants > f->scratch_bytes - f->scratch_zero_bytes)
    refuse(a, "the scratch memory is too small");
  if (f->scratch_align & (f->scratch_align - 1)) refuse(a, "an alignment is no power of two");
  size_t slots = f->parameter_count + f->result_count;
  kiln_slot *list = (kiln_slot *)f->slots;
  if (!a->writing) f->slots = list = room(a, slots, sizeof *list);
  for (size_t i = 0; i < slots && !a->bad; i++) slot(a, &list[i], slots);
}

static void artifact(archive *a, kiln_artifact *x) {
  for (size_t i = 0; i < sizeof x->target; i++) NUMBER(a, x->target[i]);
  if (x->target[sizeof x->target - 1]) refuse(a, "the target's name has no end");
  FLAG(a, x->host);
  manifest(a, &x->manifest);
  x->manifest.target = x->target;
  length(a, &x->manifest.launch_count);
  size_t n = x->manifest.launch_count;
  if (!a->writing) {
    x->manifest.launches = x->launches = room(a, n, sizeof *x->launches);
    x->host_launches = room(a, n, sizeof *x->host_launches);
  }
  for (size_t i = 0; i < n && !a->bad; i++) launch(a, &x->launches[i], &x->manifest);
  for (size_t i = 0; i < n && !a->bad && x->host; i++) host_launch(a, &x->host_launches[i]);
  length(a, &x->manifest.step_count);
  kiln_step *steps = (kiln_step *)x->manifest.steps;
  if (!a->writing) x->manifest.steps = steps = room(a, x->manifest.step_count, sizeof *steps);
  for (size_t i = 0; i < x->manifest.step_count && !a->bad; i++) step(a, &steps[i], &x->manifest);
  if (!a->writing && !a->bad) check_steps(a, steps, x->manifest.step_count);
  const void *code = x->host ? x->object : x->text[KILN_TEXT_PTX];
  size_t size = x->host ? x->object_size : x->text_size[KILN_TEXT_PTX];
  bytes(a, &code, &size);
  if (x->host) {
    x->object = (void *)code;
    x->object_size = size;
  } else {
    x->text[KILN_TEXT_PTX] = (char *)code;
    x->text_size[KILN_TEXT_PTX] = size;
  }
}

// --- the two ways -------------------------------------------------------------------------------------------------

static void hashes(const uint8_t *p, size_t n, uint64_t out[2]) {
  out[0] = kl_hash(p, n, 1);
  out[1] = kl_hash(p, n, 2);
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
  archive w = {.writing = true, .out = out};
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
  archive r = {.p = (const uint8_t *)p + HEADER, .end = (const uint8_t *)p + size, .arena = &x->arena};
  artifact(&r, x);
  if (!r.bad && r.p != r.end && inner) refuse(&r, "there is more behind its end");
  if (!r.bad && r.p != r.end) x->less = read_record(allocator, r.p, (size_t)(r.end - r.p), true, &r.bad);
  if (!r.bad && x->less && !fit_together(x, x->less)) refuse(&r, "its kernels for less alignment are another's");
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
