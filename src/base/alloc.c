// Memory: the allocator hook, metadata and input-sized allocation, arenas, growable arrays, the context's life.
//
// A request of zero bytes is treated as one byte everywhere, so that NULL always means failure and the hook sees the
// same size when a block is made and when it is freed.
#include "base/base.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define KL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KL_ASAN 1
#endif
#endif

// Under the address sanitizer, unused arena bytes are poisoned and allocations keep a gap, so that overruns are seen.
#ifdef KL_ASAN
#include <sanitizer/asan_interface.h>
#define KL_POISON(p, n)   ASAN_POISON_MEMORY_REGION((p), (n))
#define KL_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#define KL_ARENA_GAP      16
#else
#define KL_POISON(p, n)   ((void)(p), (void)(n))
#define KL_UNPOISON(p, n) ((void)(p), (void)(n))
#define KL_ARENA_GAP      0
#endif

static void *malloc_resize(void *user, void *p, size_t old_size, size_t size) {
  if (size == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, size);
}

static size_t at_least_one(size_t size) {
  return size ? size : 1;
}

static _Noreturn void last_word(kl_ctx *cx, size_t size) {
  if (cx->allocator.out_of_memory) cx->allocator.out_of_memory(cx->allocator.user, size);
  abort();
}

static void *hook_resize(kl_ctx *cx, void *p, size_t old_size, size_t size) {
  if (size > PTRDIFF_MAX) return NULL;
  return cx->allocator.resize(cx->allocator.user, p, old_size, size);
}

// Blocks may be freed on other threads than the context's.
static void count(kl_ctx *cx, size_t taken, size_t given) {
  atomic_fetch_add_explicit(&cx->in_use, (int64_t)taken - (int64_t)given, memory_order_relaxed);
}

static void *alloc(kl_ctx *cx, size_t size) {
  size = at_least_one(size);
  void *p = NULL;
  // calloc gets fresh pages already zeroed, which matters for large tensors.
  if (cx->allocator.resize == malloc_resize)
    p = size > PTRDIFF_MAX ? NULL : calloc(1, size);
  else if ((p = hook_resize(cx, NULL, 0, size)) != NULL)
    memset(p, 0, size);
  if (p) count(cx, size, 0);
  return p;
}

void *kl_try_alloc(kl_ctx *cx, size_t size) {
  return kl_memory_fits(cx, size) ? alloc(cx, size) : NULL;
}

void *kl_alloc(kl_ctx *cx, size_t size) {
  void *p = alloc(cx, size);
  if (!p) last_word(cx, size);
  return p;
}

void *kl_resize(kl_ctx *cx, void *p, size_t old_size, size_t size) {
  size_t old = p ? at_least_one(old_size) : 0;
  void *q = hook_resize(cx, p, old, at_least_one(size));
  if (!q) last_word(cx, size);
  count(cx, at_least_one(size), old);
  return q;
}

void kl_free(kl_ctx *cx, void *p, size_t size) {
  if (!p) return;
  count(cx, 0, at_least_one(size));
  cx->allocator.resize(cx->allocator.user, p, at_least_one(size), 0);
}

// --- limits -------------------------------------------------------------------------------------------------------

// The machine is asked only once this much has been taken: that costs more than a small evaluation.
enum { UNASKED = 1 << 26 };

static int64_t in_use(const kl_ctx *cx) {
  return atomic_load_explicit(&cx->in_use, memory_order_relaxed);
}

static int64_t beyond(int64_t used, int64_t bytes) {
  int64_t most;
  return __builtin_add_overflow(used, bytes, &most) ? INT64_MAX : most;
}

kl_memory_limit kl_limit_memory(kl_ctx *cx, uint64_t bytes) {
  kl_memory_limit before = cx->limit;
  int64_t room = bytes == 0 ? UNASKED : bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
  cx->limit = (kl_memory_limit){.most = beyond(in_use(cx), room), .ask = bytes == 0};
  return before;
}

static int64_t room(kl_ctx *cx, size_t size) {
  if (cx->limit.most == INT64_MAX) return INT64_MAX;
  int64_t left = cx->limit.most - in_use(cx);
  if (left < 0) left = 0;
  if (size <= (uint64_t)left || !cx->limit.ask) return left;
  left = kiln_memory_available();
  cx->limit.most = beyond(in_use(cx), left);
  return left;
}

bool kl_memory_fits(kl_ctx *cx, size_t size) {
  cx->limit.left = room(cx, size);
  cx->limit.refused = size > (uint64_t)cx->limit.left;
  return !cx->limit.refused;
}

void *kl_vec_grow(kl_ctx *cx, void *p, size_t *cap, size_t need, size_t item) {
  size_t want = *cap < 8 ? 8 : *cap + *cap / 2, bytes;
  if (want < need) want = need;
  if (__builtin_mul_overflow(want, item, &bytes)) last_word(cx, SIZE_MAX);
  void *q = kl_resize(cx, p, *cap * item, bytes);
  *cap = want;
  return q;
}

// --- arenas -------------------------------------------------------------------------------------------------------

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

struct kl_arena_block {
  kl_arena_block *next;
  size_t size; // of the block, header included
  size_t used; // bytes from the block's start
  size_t pad;  // keeps what follows the header aligned to 16
};
_Static_assert(sizeof(kl_arena_block) % 16 == 0, "arena memory is 16-byte aligned");

void kl_arena_init(kl_arena *a, kl_ctx *cx) {
  *a = (kl_arena){.cx = cx};
}

void kl_arena_free(kl_arena *a) {
  for (kl_arena_block *b = a->head, *next; b; b = next) {
    next = b->next;
    KL_UNPOISON((char *)b, b->size);
    kl_free(a->cx, b, b->size);
  }
  *a = (kl_arena){.cx = a->cx};
}

// Blocks double up to a limit. A request that would waste much of a block gets one of its own behind the head, so the
// head keeps serving small requests.
static kl_arena_block *arena_block(kl_arena *a, size_t need) {
  size_t size = FIRST_BLOCK;
  while (size < a->total && size < LARGEST_BLOCK) size *= 2;
  bool own = need > size / 4;
  if (own && __builtin_add_overflow(need, sizeof(kl_arena_block), &size)) return NULL;
  kl_arena_block *b = kl_try_alloc(a->cx, size);
  if (!b) return NULL;
  b->size = size;
  b->used = sizeof *b;
  if (own && a->head) {
    b->next = a->head->next;
    a->head->next = b;
  } else {
    b->next = a->head;
    a->head = b;
  }
  a->total += size;
  KL_POISON((char *)b + b->used, b->size - b->used);
  return b;
}

void *kl_arena_try_alloc(kl_arena *a, size_t size) {
  size_t need;
  if (__builtin_add_overflow(at_least_one(size), (size_t)(15 + KL_ARENA_GAP), &need)) return NULL;
  need &= ~(size_t)15;
  kl_arena_block *b = a->head;
  if (!b || b->size - b->used < need) b = arena_block(a, need);
  if (!b) return NULL;
  char *p = (char *)b + b->used;
  b->used += need;
  KL_UNPOISON(p, size);
  return p;
}

void *kl_arena_alloc(kl_arena *a, size_t size) {
  void *p = kl_arena_try_alloc(a, size);
  if (!p) last_word(a->cx, size);
  return p;
}

void *kl_arena_alloc_n(kl_arena *a, size_t n, size_t item) {
  size_t size;
  if (__builtin_mul_overflow(n, item, &size)) last_word(a->cx, SIZE_MAX);
  return kl_arena_alloc(a, size);
}

void *kl_arena_dup(kl_arena *a, const void *p, size_t size) {
  void *q = kl_arena_alloc(a, size);
  return size ? memcpy(q, p, size) : q;
}

// --- the context --------------------------------------------------------------------------------------------------

kiln_context *kiln_context_create(const kiln_context_params *params) {
  kiln_context_params given;
  if (KL_PARAMS_IN(NULL, kiln_context_params, params, &given) != KILN_OK) return NULL;
  kiln_allocator hook = given.allocator;
  if (!hook.resize) hook.resize = malloc_resize;
  kiln_context *cx = hook.resize(hook.user, NULL, 0, sizeof *cx);
  if (!cx) return NULL;
  memset(cx, 0, sizeof *cx);
  cx->allocator = hook;
  cx->limit.most = INT64_MAX;
  atomic_init(&cx->in_use, 0);
  atomic_init(&cx->holders, 1);
  kl_arena_init(&cx->diag_arena, cx);
  return cx;
}

void kl_context_hold(kl_ctx *cx) {
  atomic_fetch_add_explicit(&cx->holders, 1, memory_order_relaxed);
}

void kl_context_release(kl_ctx *cx) {
  if (atomic_fetch_sub_explicit(&cx->holders, 1, memory_order_acq_rel) != 1) return;
  VEC_FREE(cx, &cx->diags);
  kl_arena_free(&cx->diag_arena);
  cx->allocator.resize(cx->allocator.user, cx, sizeof *cx, 0);
}

void kiln_context_destroy(kiln_context **cx) {
  if (!cx || !*cx) return;
  kiln_context *c = *cx;
  if (c->jit.destroy) c->jit.destroy(c, c->jit.state);
  c->jit = (kl_slot){0};
  *cx = NULL;
  kl_context_release(c);
}
