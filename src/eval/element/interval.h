// Between interval.c (order keys, corners, widening), interval_ops.c (ops with a rule of their own) and interval_same.c
// (ops on one value twice).
#ifndef KL_EVAL_INTERVAL_H
#define KL_EVAL_INTERVAL_H

#include "eval/impl.h"

enum { KL_IV_KEYS = 2 * KL_EV_CHUNK }; // two parts per complex element

struct kl_iv_scratch {
  int64_t lo[KL_IV_KEYS], hi[KL_IV_KEYS]; // of the result, as keys
  int64_t key[KL_IV_KEYS];
  int64_t in_lo[2][KL_IV_KEYS], in_hi[2][KL_IV_KEYS]; // of the first two operands
  uint8_t seen[KL_IV_KEYS];                           // KL_IV_NAN, KL_IV_NUMBER
  uint8_t open[KL_EV_CHUNK];                          // anything may be right
  uint8_t point[KL_EV_CHUNK];                         // every operand is known exactly
  _Alignas(16) char a[16 * KL_EV_CHUNK], b[16 * KL_EV_CHUNK];
};
enum { KL_IV_NAN = 1, KL_IV_NUMBER = 2 };

static inline bool kl_iv_has_zero(const kl_iv_scratch *s, int operand, int64_t i) {
  return s->in_lo[operand][i] <= 0 && s->in_hi[operand][i] >= -1;
}
static inline bool kl_iv_is_nan(const kl_iv_scratch *s, int operand, int64_t i) {
  return s->in_lo[operand][i] == KL_KEY_NAN;
}
// The number of keys per element.
static inline int kl_iv_lanes(kl_dtype t) {
  return kl_is_complex(t) ? 2 : 1;
}
static inline kl_dtype kl_iv_part(kl_dtype t) {
  return kl_is_complex(t) ? kl_info(t)->part : t;
}
int64_t kl_iv_infinity(kl_dtype t); // its key; past all keys where there is none
void kl_iv_load(kl_iv_scratch *s, int operand, kl_dtype t, int64_t n, const kl_iv_in *in);
// lo and hi from the result's data alone.
void kl_iv_start(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_out *out);
// Runs e on chosen planes and takes the results into lo, hi and seen.
void kl_iv_take(const kl_ew *e, kl_iv_scratch *s, int64_t n, const void *const in[3]);

// Both operands are `in`: finishes lo, hi, seen and open; false where that helps nothing.
bool kl_iv_same(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in *in);

// Each finishes lo, hi, seen and open for its op.
void kl_iv_compare(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const bool nan_open[3],
                   const kl_iv_out *out);
void kl_iv_finite(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3]);
void kl_iv_wave(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const kl_iv_out *out);
void kl_iv_complex_abs(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3]);
void kl_iv_complex_product(const kl_ew *e, kl_iv_scratch *s, int64_t n);
// Functions of complex operands that are not finite: where C leaves signs open, so do these.
void kl_iv_complex_corners(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const kl_iv_out *out);
// Widens functions whose bound is stated for both parts together.
void kl_iv_complex_function(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const kl_iv_out *out,
                            double bound);
// Writes the result's planes itself.
void kl_iv_select(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const kl_iv_out *out);

#endif
