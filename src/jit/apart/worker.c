// A worker: compiles what it is sent, one module after the other.

#include "jit/apart/apart.h"

#include "ir/rewrite/canonical.h"

// Is it the module that the text was sent for? Another may have been made of it since.
static bool is_that_module(kl_ctx *cx, const kl_apart_request *r, const kiln_module *m) {
  uint8_t hash[KILN_HASH_SIZE];
  if (!r->written) return true;
  return kiln_module_hash(cx, m, hash) == KILN_OK && memcmp(hash, r->hash, sizeof hash) == 0 &&
         kl_module_names_hash(m) == r->names;
}

static void answer(kl_ctx *cx, const kl_apart_request *r, kl_sb *out) {
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_status st = kiln_module_parse(cx, r->name, r->text, r->size, &m);
  if (st == KILN_OK && !is_that_module(cx, r, m)) {
    kl_apart_reply_make(cx, KL_REPLY_OTHER_MODULE, KILN_OK, NULL, out);
  } else {
    if (st == KILN_OK) kiln_diagnostics_clear(cx); // who has parsed it has heard of that
    if (st == KILN_OK) st = kiln_compile(cx, m, &r->params, &a);
    kl_apart_reply_make(cx, KL_REPLY_RESULT, st, a, out);
  }
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}

static bool serve(kl_ctx *cx, int socket) {
  void *bytes;
  size_t size;
  if (kl_message_take(socket, NULL, cx, &bytes, &size) != KL_SENT) return false;
  kl_arena arena;
  kl_apart_request r;
  kl_sb out;
  kl_arena_init(&arena, cx);
  kl_sb_init(&out, cx);
  bool good = kl_apart_request_read(&arena, bytes, size, &r);
  if (good) answer(cx, &r, &out);
  if (good) good = kl_message_send(socket, NULL, out.p, out.n) == KL_SENT;
  kl_sb_free(&out);
  kl_arena_free(&arena);
  kl_free(cx, bytes, size + 1);
  kiln_diagnostics_clear(cx);
  return good;
}

int kiln_worker_run(int socket) {
  kiln_context *cx = kiln_context_create(NULL);
  if (!cx) return 1;
  while (serve(cx, socket)) {}
  kiln_context_destroy(&cx);
  return 0;
}
