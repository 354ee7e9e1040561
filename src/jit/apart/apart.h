// Compilation in a process of its own: what is sent there and what comes back.
#ifndef KL_APART_H
#define KL_APART_H

#include "ir/hlo.h"
#include "jit/archive.h"
#include "jit/jit.h"
#include <kiln/worker.h>

// --- messages (message.c) -------------------------------------------------------------------------------------------

// A length and as many bytes, over a socket. What ends waiting for the other side: the time, or the context's watch.
typedef struct kl_line_end {
  kl_ctx *cx;
  double until; // of kl_seconds; 0: never
} kl_line_end;

typedef enum kl_sent {
  KL_SENT,
  KL_SENT_NOTHING, // the other side is gone
  KL_SENT_LATE,
  KL_SENT_STOPPED,
  KL_SENT_TOO_MUCH, // a length that no message has, or that there is no memory for
} kl_sent;

kl_sent kl_message_send(int socket, const kl_line_end *e, const void *bytes, size_t size);
// *bytes is the caller's (kl_free with *size + 1).
kl_sent kl_message_take(int socket, const kl_line_end *e, kl_ctx *cx, void **bytes, size_t *size);

// --- what they say (words.c) ----------------------------------------------------------------------------------------

// A module as somebody wrote it, or as kiln prints it; and which module it is, for the other side to see whether its
// text is still what it was read from.
typedef struct kl_apart_request {
  const char *name;
  const void *text;
  size_t size;
  bool written; // by somebody
  uint8_t hash[KILN_HASH_SIZE];
  uint64_t names;
  kiln_compile_params params;
} kl_apart_request;
kiln_status kl_apart_request_make(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *p, bool written,
                                  kl_sb *out);
// False: these bytes are none. What is read lies in the arena.
bool kl_apart_request_read(kl_arena *arena, const void *bytes, size_t size, kl_apart_request *out);

typedef enum kl_apart_reply_kind {
  KL_REPLY_RESULT,
  KL_REPLY_OTHER_MODULE, // the text is not what the module is: it is wanted as kiln prints it
} kl_apart_reply_kind;
// With the context's findings; `a` may be NULL.
void kl_apart_reply_make(kl_ctx *cx, kl_apart_reply_kind kind, kiln_status st, const kiln_artifact *a, kl_sb *out);
// Findings go to the context. False: these bytes are no reply; *out is NULL then, and where there is no artifact.
bool kl_apart_reply_read(kl_ctx *cx, const void *bytes, size_t size, kl_apart_reply_kind *kind, kiln_status *st,
                         kiln_artifact **out);

// --- the caller's side (caller.c) -----------------------------------------------------------------------------------

// kiln_compile by a worker, which is started if the context has none. The params are whole and checked.
kiln_status kl_compile_apart(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *p, kiln_artifact **out);

#endif
