// The floor of the house: memory, growable arrays, strings, diagnostics. Knows nothing of tensors.
//
// Ownership: an arena owns what is allocated in it and frees all of it at once. Growable arrays (VEC) live on the
// context's allocator and are freed by hand or frozen into an arena. kl_str is a borrowed slice, never owned.
#ifndef KL_BASE_H
#define KL_BASE_H

#include <kiln/base.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#define KL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define KL_COUNT(a)     (sizeof(a) / sizeof((a)[0]))
#define KL_TRY(expr)                                                                                                   \
  do {                                                                                                                 \
    kiln_status kl_try_s = (expr);                                                                                     \
    if (kl_try_s != KILN_OK) return kl_try_s;                                                                          \
  } while (0)

typedef kiln_context kl_ctx;

// --- memory -------------------------------------------------------------------------------------------------------

// Metadata allocation: never returns NULL; calls the hook's last word and aborts when memory is short.
void *kl_alloc(kl_ctx *cx, size_t size);                            // zeroed
void *kl_resize(kl_ctx *cx, void *p, size_t old_size, size_t size); // grown bytes are not zeroed
void kl_free(kl_ctx *cx, void *p, size_t size);
// Input-sized allocation: zeroed, or NULL (then kl_fail with KILN_E_MEMORY).
void *kl_try_alloc(kl_ctx *cx, size_t size);

typedef struct kl_arena_block kl_arena_block;
typedef struct kl_arena {
  kl_ctx *cx;
  kl_arena_block *head; // newest first
  size_t total;         // bytes of all blocks
} kl_arena;

void kl_arena_init(kl_arena *a, kl_ctx *cx);
void kl_arena_free(kl_arena *a);
void *kl_arena_alloc(kl_arena *a, size_t size);     // zeroed, 16-byte aligned; metadata rule
void *kl_arena_try_alloc(kl_arena *a, size_t size); // zeroed, 16-byte aligned, or NULL
void *kl_arena_dup(kl_arena *a, const void *p, size_t size);
void *kl_arena_alloc_n(kl_arena *a, size_t n,
                       size_t item); // as kl_arena_alloc of n * item; a product too large is no memory
#define KL_NEW(arena, T)      ((T *)kl_arena_alloc((arena), sizeof(T)))
#define KL_NEW_N(arena, T, n) ((T *)kl_arena_alloc_n((arena), (size_t)(n), sizeof(T)))

// VEC(T) is a growable array: {p, n, cap}. Zero-initialise; free with VEC_FREE.
#define VEC(T)                                                                                                         \
  struct {                                                                                                             \
    T *p;                                                                                                              \
    size_t n, cap;                                                                                                     \
  }
void *kl_vec_grow(kl_ctx *cx, void *p, size_t *cap, size_t need, size_t item);
#define VEC_RESERVE(cx, v, want)                                                                                       \
  ((want) <= (v)->cap ? (void)0 : (void)((v)->p = kl_vec_grow((cx), (v)->p, &(v)->cap, (want), sizeof(*(v)->p))))
#define VEC_PUSH(cx, v, ...)                                                                                           \
  do {                                                                                                                 \
    VEC_RESERVE((cx), (v), (v)->n + 1);                                                                                \
    (v)->p[(v)->n++] = (__VA_ARGS__);                                                                                  \
  } while (0)
#define VEC_FREE(cx, v)                                                                                                \
  do {                                                                                                                 \
    kl_free((cx), (v)->p, (v)->cap * sizeof(*(v)->p));                                                                 \
    (v)->p = NULL;                                                                                                     \
    (v)->n = (v)->cap = 0;                                                                                             \
  } while (0)
// Copies the elements into `arena` and frees the array; NULL for an empty one.
#define VEC_FREEZE(cx, arena, v)                                                                                       \
  ({                                                                                                                   \
    __typeof__((v)->p) kl_frozen = (v)->n ? kl_arena_dup((arena), (v)->p, (v)->n * sizeof(*(v)->p)) : NULL;            \
    VEC_FREE((cx), (v));                                                                                               \
    kl_frozen;                                                                                                         \
  })

// Finds entries of an array of the owner's by their hash: numbers from 0 up, in order of entry. On the context's
// allocator; zero-initialise.
typedef struct kl_ids {
  struct kl_id {
    uint64_t hash;
    uint32_t id; // + 1; 0: free
  } * slots;
  size_t nslots, n;
} kl_ids;
// The number of an entry that has this hash and is the same; else enters number n, which the owner then adds.
uint32_t kl_ids_find(kl_ctx *cx, kl_ids *t, uint64_t hash, bool (*same)(const void *arg, uint32_t id), const void *arg);
void kl_ids_free(kl_ctx *cx, kl_ids *t);

// Blocks whose size comes from input are refused once all blocks of the context would take more than `most` bytes; with
// `ask`, the machine is asked first how much there is.
typedef struct kl_memory_limit {
  int64_t most;
  bool ask;
  bool refused; // the last such block was
  int64_t left; // so many bytes were available then
} kl_memory_limit;
// Sets the limit to so many bytes more than are in use, or to what the machine has for 0. Returns the one before, which
// is put back by assigning it to cx->limit.
kl_memory_limit kl_limit_memory(kl_ctx *cx, uint64_t bytes);
// Is there room for so much? If not, the next kl_out_of_memory says how much there was.
bool kl_memory_fits(kl_ctx *cx, size_t size);
// kiln_memory_available with `root` put before the names of the kernel's files (machine.c).
int64_t kl_memory_available(const char *root);

// --- strings ------------------------------------------------------------------------------------------------------

typedef struct kl_str {
  const char *p;
  size_t n;
} kl_str;
#define KL_STR(lit) ((kl_str){(lit), sizeof(lit) - 1})
#define KL_FMT(s)   (int)((s).n < INT32_MAX ? (s).n : INT32_MAX), (s).p // for "%.*s"
static inline kl_str kl_str_of(const char *z) {
  return (kl_str){z, z ? strlen(z) : 0};
}
static inline bool kl_str_eq(kl_str a, kl_str b) {
  return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool kl_str_is(kl_str a, const char *z) {
  return kl_str_eq(a, kl_str_of(z));
}
kl_str kl_str_dup(kl_arena *a, kl_str s); // NUL-terminated copy
char *kl_strf(kl_arena *a, const char *fmt, ...) KL_PRINTF(2, 3);

// Text builder: grows on the context's allocator, always NUL-terminated once non-empty.
typedef struct kl_sb {
  kl_ctx *cx;
  char *p;
  size_t n, cap;
} kl_sb;
void kl_sb_init(kl_sb *b, kl_ctx *cx);
void kl_sb_free(kl_sb *b);
void kl_sb_put(kl_sb *b, kl_str s);
void kl_sb_puts(kl_sb *b, const char *z);
void kl_sb_putc(kl_sb *b, char c);
void kl_sb_i64(kl_sb *b, int64_t v);
void kl_sb_u64(kl_sb *b, uint64_t v);
void kl_sbf(kl_sb *b, const char *fmt, ...) KL_PRINTF(2, 3); // no float conversions: those depend on the locale
// Hands the text over as one NUL-terminated string of sb.n+1 bytes on the context's allocator; the builder is empty
// after.
char *kl_sb_take(kl_sb *b, size_t *n);

// Interned strings: equal text, equal symbol; symbol 0 is the empty string.
typedef struct kl_interner {
  kl_arena *arena;
  uint32_t *slots; // symbol+1, or 0; power-of-two table on the context's allocator
  size_t nslots;
  VEC(kl_str) strings;
} kl_interner;
void kl_interner_init(kl_interner *t, kl_arena *arena);
void kl_interner_free(kl_interner *t);
uint32_t kl_intern(kl_interner *t, kl_str s);
// Finds without adding.
bool kl_intern_known(const kl_interner *t, kl_str s, uint32_t *out);
static inline kl_str kl_symbol_text(const kl_interner *t, uint32_t sym) {
  return t->strings.p[sym];
}

uint64_t kl_hash(const void *p, size_t n, uint64_t seed); // same value on every run and machine
// By two seeds, in little more time than by one.
void kl_hash_twice(const void *p, size_t n, const uint64_t seeds[2], uint64_t out[2]);

// --- numbers as text ----------------------------------------------------------------------------------------------

// Shortest decimal that parses back to the same double: "0.5", "-1e+30", "-0.0", "inf", "-inf", "nan". `buf` holds 32
// bytes. Returns the length.
size_t kl_text_from_double(char buf[32], double v);
size_t kl_text_from_float(char buf[32], float v);
// Shortest decimal text of finite `v` for which same(arg, text) holds; of several, the one nearest to v. At least
// `least` significant digits are tried first (trailing zeros are dropped), at most `most` (<= 17), which must do. The
// exponent form is used below 1e-4 and from 10^plain on, or 10^most where more than `plain` digits are needed.
size_t kl_text_shortest(char buf[32], double v, int least, int plain, int most,
                        bool (*same)(const void *arg, kl_str text), const void *arg);
// Exact conversion of decimal text (also inf, nan, hex floats) to a double rounded to odd: the result carries a sticky
// last bit if it is inexact, so rounding it once more to any format of at most 51 significant bits is correctly
// rounded from the text. False if `s` is not one whole number.
bool kl_double_from_text_odd(kl_str s, double *out);
// As above, rounded to nearest even: the value of the double that the text names.
bool kl_double_from_text(kl_str s, double *out);
// Integers, decimal with optional sign; false on overflow or other characters.
bool kl_i64_from_text(kl_str s, int64_t *out);
bool kl_u64_from_text(kl_str s, uint64_t *out);

// --- diagnostics --------------------------------------------------------------------------------------------------

// A text that findings can point into. Owned by whoever parses; findings copy what they need.
typedef struct kl_source {
  const char *name;
  kl_str text;
} kl_source;

typedef struct kl_span {
  const kl_source *src; // NULL: no place
  size_t begin, end;    // byte offsets, end exclusive
} kl_span;
#define KL_NOWHERE ((kl_span){NULL, 0, 0})

// Many findings in one long text each go on from the line of the one before: from here on in `src`, which stays as it
// is until NULL is given.
void kl_read_source(kl_ctx *cx, const kl_source *src);

// Records a finding and returns `s`, so that `return kl_fail(...)` reads as one thought. Control characters and
// over-long parts of the source line are made harmless in the rendered text.
kiln_status kl_fail(kl_ctx *cx, kiln_status s, kl_span where, const char *fmt, ...) KL_PRINTF(4, 5);
kiln_status kl_vfail(kl_ctx *cx, kiln_status s, kl_span where, const char *fmt, va_list ap);
// A finding as another context has it.
void kl_diag_repeat(kl_ctx *cx, const kiln_diagnostic *d);
void kl_warn(kl_ctx *cx, kl_span where, const char *fmt, ...) KL_PRINTF(3, 4);
// Findings that nobody is to hear of, because what they are about was tried in another way: those from one mark to
// another, of the same context and with none cleared in between.
typedef struct kl_diag_mark {
  size_t kept;
} kl_diag_mark;
kl_diag_mark kl_diag_here(const kl_ctx *cx);
void kl_diag_forget(kl_ctx *cx, kl_diag_mark from, kl_diag_mark to);
#define kl_invalid(cx, ...)     kl_fail((cx), KILN_E_INVALID, __VA_ARGS__) // where, fmt, ...
#define kl_unsupported(cx, ...) kl_fail((cx), KILN_E_UNSUPPORTED, __VA_ARGS__)
// "out of memory: wanted N bytes for WHAT", and how many there are where they are limited.
kiln_status kl_out_of_memory(kl_ctx *cx, size_t size, const char *what);

// --- arguments of public functions (api.c) ------------------------------------------------------------------------

// A params struct of the caller's, or NULL, into `own`: `size` bytes as this version knows it. What an older caller's
// shorter struct lacks is zero; what a newer one's has beyond `size` must be. Else INVALID; without a finding if `cx`
// is NULL.
kiln_status kl_params_in(kl_ctx *cx, const char *type, const void *given, void *own, size_t size);
// The other way: as much as the caller's struct has room for; what this version does not know is set to zero.
kiln_status kl_params_out(kl_ctx *cx, const char *type, const void *own, size_t size, void *given);
// INVALID, with a finding that names function and argument, if one of the `n` pointers is NULL; `names` is their text,
// separated by commas.
kiln_status kl_expect(kl_ctx *cx, const char *function, const char *names, const void *const *pointers, size_t n);
// Returns from a public function unless all of these are there: KL_EXPECT(cx, m, out).
#define KL_EXPECT(cx, ...)                                                                                             \
  KL_TRY(kl_expect((cx), __func__, #__VA_ARGS__, (const void *const[]){__VA_ARGS__},                                   \
                   KL_COUNT(((const void *const[]){__VA_ARGS__}))))
// What an out argument gives on every failure, also where it is missing itself.
#define KL_CLEAR(out)                    ((out) ? (void)(*(out) = (__typeof__(*(out))){0}) : (void)0)
#define KL_PARAMS_IN(cx, T, given, own)  kl_params_in((cx), #T, (const T *){given}, (T *){own}, sizeof(T))
#define KL_PARAMS_OUT(cx, T, own, given) kl_params_out((cx), #T, (const T *){own}, sizeof(T), (T *){given})

// --- the context --------------------------------------------------------------------------------------------------

// An upper layer keeps its per-context state (LLVM's, say) in a slot; the context frees it without knowing what it is.
typedef struct kl_slot {
  void *state;
  void (*destroy)(kl_ctx *cx, void *state);
} kl_slot;

// Modules and builders hold their context's memory, so that they may be destroyed after it.
void kl_context_hold(kl_ctx *cx);
void kl_context_release(kl_ctx *cx);

// Where a line begins, for a position in it.
typedef struct kl_line {
  const kl_source *src; // NULL: none is known
  size_t pos, start, number;
} kl_line;

// Work that somebody follows, and may want to end: what it has done of all that there is to do so far, which may begin
// again where something else is tried.
typedef struct kl_watch {
  atomic_bool stop; // soon, please
  void (*step)(void *user, size_t done, size_t all);
  void *user;
} kl_watch;
// Between two pieces of work of the context: CANCELLED where it is to stop.
kiln_status kl_go_on(kl_ctx *cx, size_t done, size_t all);

struct kiln_context {
  kiln_allocator allocator;
  atomic_size_t holders;  // the caller's handle, and what is made from it
  _Atomic int64_t in_use; // bytes of all blocks
  kl_memory_limit limit;
  kl_arena diag_arena;
  VEC(kiln_diagnostic) diags;
  kl_line found;                // by the last finding in the text that is read
  size_t errors;                // reported, kept or not
  size_t clears;                // so often findings were cleared
  size_t dropped;               // findings not kept: too many, or no memory for them
  kiln_diagnostic dropped_note; // stands behind the last finding if dropped > 0
  char dropped_message[64], dropped_text[80];
  kl_slot jit;     // set by src/jit at first use
  kl_watch *watch; // NULL: nobody does
};

#endif
