// What caller and worker say to each other.

#include "ir/rewrite/canonical.h"
#include "jit/apart/apart.h"
#include "jit/cache/cache.h"
#include "jit/params.h"

// --- requests -------------------------------------------------------------------------------------------------------

static void head(kl_archive *a, kl_apart_request *r) {
  kl_ar_name(a, &r->name);
  kl_ar_bytes(a, &r->text, &r->size);
  KL_FLAG(a, r->written);
  for (int i = 0; i < KILN_HASH_SIZE; i++) KL_NUMBER(a, r->hash[i]);
  KL_NUMBER(a, r->names);
  KL_NUMBER(a, r->params.threads);
}

kiln_status kl_apart_request_make(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *p, bool written,
                                  kl_sb *out) {
  char *printed = NULL;
  size_t size = 0;
  kl_apart_request r = {.written = written && m->source, .names = kl_module_names_hash(m)};
  kl_archive w = {.writing = true, .out = out};
  KL_TRY(kiln_module_hash(cx, m, r.hash));
  if (!r.written) KL_TRY(kiln_module_print(cx, m, &printed, &size));
  r.name = r.written ? m->source->name : kiln_module_name(m);
  r.text = r.written ? m->source->text.p : printed;
  r.size = r.written ? m->source->text.n : size;
  r.params.threads = p->threads;
  head(&w, &r);
  kiln_text_free(cx, printed, size);
  return kl_params_write(cx, m, p, out);
}

bool kl_apart_request_read(kl_arena *arena, const void *bytes, size_t size, kl_apart_request *out) {
  kl_archive r = {.p = bytes, .end = (const uint8_t *)bytes + size, .arena = arena};
  *out = (kl_apart_request){0};
  head(&r, out);
  uint32_t threads = out->params.threads;
  kl_params_read(&r, &out->params);
  out->params.threads = threads;
  return !r.bad && r.p == r.end;
}

// --- replies --------------------------------------------------------------------------------------------------------

static void finding(kl_archive *a, kiln_diagnostic *d) {
  KL_CHOICE(a, d->severity, KILN_NOTE);
  KL_CHOICE(a, d->status, KILN_E_CANCELLED);
  kl_ar_string(a, &d->file);
  KL_NUMBER(a, d->line);
  KL_NUMBER(a, d->column);
  kl_ar_name(a, &d->message);
  kl_ar_name(a, &d->text);
}

// Texts that were kept are no part of a record.
static void text(kl_archive *a, char **z, size_t *n) {
  bool there = *z != NULL;
  KL_FLAG(a, there);
  if (there && !a->bad) kl_ar_bytes(a, (const void **)z, n);
}

void kl_apart_reply_make(kl_ctx *cx, kl_apart_reply_kind kind, kiln_status st, const kiln_artifact *a, kl_sb *out) {
  kl_archive w = {.writing = true, .out = out};
  size_t findings = kiln_diagnostics_count(cx);
  bool there = a != NULL;
  KL_NUMBER(&w, kind);
  KL_NUMBER(&w, st);
  kl_ar_length(&w, &findings);
  for (size_t i = 0; i < findings; i++) {
    kiln_diagnostic d = *kiln_diagnostics_get(cx, i);
    finding(&w, &d);
  }
  KL_FLAG(&w, there);
  if (!there) return;
  for (size_t i = 0; i < KL_COUNT(a->text); i++) {
    char *z = i == KILN_TEXT_PTX ? NULL : a->text[i];
    size_t n = a->text_size[i];
    text(&w, &z, &n);
  }
  kl_record_write(a, out);
}

static kiln_artifact *read_artifact(kl_archive *r, kl_ctx *cx) {
  char *texts[KL_COUNT(((kiln_artifact *)0)->text)] = {0};
  size_t sizes[KL_COUNT(texts)] = {0};
  const char *why;
  for (size_t i = 0; i < KL_COUNT(texts) && !r->bad; i++) text(r, &texts[i], &sizes[i]);
  if (r->bad) return NULL;
  kiln_artifact *a = kl_record_read(&cx->allocator, r->p, (size_t)(r->end - r->p), &why);
  for (size_t i = 0; i < KL_COUNT(texts) && a; i++) {
    if (!texts[i]) continue;
    a->text[i] = kl_arena_dup(&a->arena, texts[i], sizes[i] + 1);
    a->text_size[i] = sizes[i];
  }
  return a;
}

bool kl_apart_reply_read(kl_ctx *cx, const void *bytes, size_t size, kl_apart_reply_kind *kind, kiln_status *st,
                         kiln_artifact **out) {
  kl_arena arena;
  kl_arena_init(&arena, cx);
  kl_archive r = {.p = bytes, .end = (const uint8_t *)bytes + size, .arena = &arena};
  size_t findings = 0;
  bool there = false;
  *out = NULL;
  KL_CHOICE(&r, *kind, KL_REPLY_OTHER_MODULE);
  KL_CHOICE(&r, *st, KILN_E_CANCELLED);
  kl_ar_length(&r, &findings);
  for (size_t i = 0; i < findings && !r.bad; i++) {
    kiln_diagnostic d = {0};
    finding(&r, &d);
    if (!r.bad) kl_diag_repeat(cx, &d);
  }
  KL_FLAG(&r, there);
  if (!r.bad && there) *out = read_artifact(&r, cx);
  bool good =
      !r.bad && (there ? *out != NULL : r.p == r.end) && (there == (*kind == KL_REPLY_RESULT && *st == KILN_OK));
  if (!good) kiln_artifact_destroy(out);
  kl_arena_free(&arena);
  return good;
}
