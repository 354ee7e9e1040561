// Result shapes of random numbers, normalization, factorization and Fourier transforms.
#include "ir/rules/infer.h"

// The written type, where it is an array's.
static const kl_shape *wanted_array(const rule *r) {
  if (r->want && kl_shape_is_array(r->want)) return r->want;
  return fail(r, "expected an array as the result type, found %s", r->want ? text(r, r->want) : "none");
}

// --- random numbers -----------------------------------------------------------------------------------------------

const kl_shape *kl_infer_rng(rule *r) {
  if (!kl_rule_scalar(r, 0) || !kl_rule_scalar(r, 1) || !kl_rule_same_dtype(r, 1, 0) || !wanted_array(r)) return NULL;
  kl_dtype t = operand(r, 0)->dtype;
  bool normal = r->in->more->distribution == KL_RNG_NORMAL;
  if (normal ? !kl_is_float(t) : kl_is_complex(t))
    return fail(r, "expected %s for distribution=%s, found %s", normal ? "floats" : "pred, integers or floats",
                kl_rng_distribution_names[r->in->more->distribution], kl_info(t)->name);
  return kl_rule_like(r, t, r->want);
}

// Either the new state and the bits, or the bits alone; what they are is the written type's choice.
const kl_shape *kl_infer_rng_bits(rule *r) {
  const kl_shape *w = r->want, *state = operand(r, 0);
  if (!w) return fail(r, "expected a result type, found none");
  if (kl_shape_is_array(w)) return w;
  if (w->dtype != KILN_TUPLE || w->nelems != 2)
    return fail(r, "expected a result type of two arrays, the state and the bits, found %s", text(r, w));
  if (!kl_shape_compatible(w->elems[0], state))
    return fail(r, "expected the type of operand 0 ('%.*s'), %s, as that of the new state, found %s",
                KL_FMT(operand_name(r, 0)), text(r, state), text(r, w->elems[0]));
  if (!kl_shape_is_array(w->elems[1])) return fail(r, "expected an array of bits, found %s", text(r, w->elems[1]));
  return w;
}

const kl_shape *kl_infer_rng_state(rule *r) {
  r->dims[0] = 2;
  return kl_rule_array(r, KILN_U64, 1, r->dims);
}

const kl_shape *kl_infer_stochastic(rule *r) {
  kl_dtype from = operand(r, 0)->dtype, random = operand(r, 1)->dtype;
  if (!kl_is_float(from))
    return fail(r, "expected floats for operand 0 ('%.*s'), found %s", KL_FMT(operand_name(r, 0)),
                text(r, operand(r, 0)));
  if (!kl_is_int(random) || kl_is_signed(random) || kl_info(random)->bits != kl_info(from)->bits)
    return fail(r, "expected unsigned integers of %d bits as %s for operand 1 ('%.*s'), found %s", kl_info(from)->bits,
                kl_info(from)->name, KL_FMT(operand_name(r, 1)), text(r, operand(r, 1)));
  if (!kl_rule_same_dims(r, 1, 0, false) || !wanted_array(r)) return NULL;
  if (!kl_is_int(r->want->dtype) && !kl_is_float(r->want->dtype))
    return fail(r, "expected a result of integers or floats, found %s", text(r, r->want));
  return kl_rule_like(r, r->want->dtype, operand(r, 0));
}

// --- normalization ------------------------------------------------------------------------------------------------

// Operands from 1 on are vectors, one element for each feature; the last one of a gradient has operand 0's dimensions.
static bool check_features(const rule *r, int64_t features) {
  for (uint32_t i = 1; i < r->in->noperands; i++) {
    const kl_shape *s = operand(r, i);
    if (!kl_rule_same_dtype(r, i, 0)) return false;
    if (r->in->op == KL_OP_BATCH_NORM_GRAD && i == 4) return kl_rule_same_dims(r, i, 0, false);
    if (s->rank != 1 || s->dims[0] != features)
      return refuse(r, "expected %s elements, one for each feature, in one dimension of operand %u ('%.*s'), found %s",
                    kl_rule_size(r, features), i, KL_FMT(operand_name(r, i)), text(r, s));
  }
  return true;
}

const kl_shape *kl_infer_batch_norm(rule *r) {
  const kl_shape *s = operand(r, 0);
  int64_t at = r->in->more->feature_index;
  if (s->rank == 0) return fail(r, "expected an operand of at least one dimension, found %s", text(r, s));
  if (at < 0 || at >= s->rank)
    return fail(r, "expected feature_index from 0 to %u, found %lld", s->rank - 1, (long long)at);
  if (!check_features(r, s->dims[at])) return NULL;
  const kl_shape *whole = kl_rule_like(r, s->dtype, s);
  kl_rule_take_dim(r, 0, s, (uint32_t)at);
  const kl_shape *vector = kl_rule_result(r, s->dtype, 1);
  if (r->in->op == KL_OP_BATCH_NORM_INFERENCE || !whole || !vector) return whole;
  const kl_shape *elems[3] = {whole, vector, vector};
  return kl_rule_tuple(r, 3, elems);
}

// --- factorization ------------------------------------------------------------------------------------------------

// Operand 0 holds square matrices in its last two dimensions.
static bool check_square(const rule *r) {
  const kl_shape *s = operand(r, 0);
  if (s->rank >= 2 && s->dims[s->rank - 1] == s->dims[s->rank - 2]) return true;
  return refuse(r, "expected square matrices in the last two dimensions of operand 0 ('%.*s'), found %s",
                KL_FMT(operand_name(r, 0)), text(r, s));
}

const kl_shape *kl_infer_cholesky(rule *r) {
  return check_square(r) ? kl_rule_like(r, operand(r, 0)->dtype, operand(r, 0)) : NULL;
}

// op(a) x = b or x op(a) = b, for each pair of matrices.
const kl_shape *kl_infer_triangular_solve(rule *r) {
  const kl_shape *a = operand(r, 0), *b = operand(r, 1);
  if (!kl_rule_same_dtype(r, 1, 0) || !check_square(r)) return NULL;
  bool ok = a->rank == b->rank;
  for (uint32_t d = 0; ok && d + 2 < a->rank; d++) ok = a->dims[d] == b->dims[d];
  if (!ok)
    return fail(r, "expected operand 1 ('%.*s') to agree with operand 0 (%s) but in the last two dimensions, found %s",
                KL_FMT(operand_name(r, 1)), text(r, a), text(r, b));
  uint32_t shared = b->rank - (r->in->more->left_side ? 2 : 1);
  if (b->dims[shared] != a->dims[a->rank - 1])
    return fail(r, "expected %s elements in dimension %u of operand 1 ('%.*s') for left_side=%s, found %s",
                kl_rule_size(r, a->dims[a->rank - 1]), shared, KL_FMT(operand_name(r, 1)),
                r->in->more->left_side ? "true" : "false", text(r, b));
  return kl_rule_like(r, b->dtype, b);
}

// --- Fourier transforms -------------------------------------------------------------------------------------------

// RFFT takes real numbers, the others complex ones.
static bool check_fft_type(const rule *r, kl_fft_type type) {
  kl_dtype t = operand(r, 0)->dtype;
  if (type == KL_RFFT ? t == KILN_F32 || t == KILN_F64 : kl_is_complex(t)) return true;
  return refuse(r, "expected %s for fft_type=%s, found %s", type == KL_RFFT ? "f32 or f64" : "complex numbers",
                kl_fft_type_names[type], text(r, operand(r, 0)));
}

static bool check_fft_rank(const rule *r, kl_ints length) {
  if (length.n < 1 || length.n > 3) return refuse(r, "expected 1 to 3 entries of fft_length, found %u", length.n);
  if (length.n > operand(r, 0)->rank)
    return refuse(r, "expected an operand of at least %u dimensions as fft_length, found %s", length.n,
                  text(r, operand(r, 0)));
  for (uint32_t i = 0; i < length.n; i++)
    if (length.p[i] < 0)
      return refuse(r, "expected entries of fft_length of at least 0, found %lld", (long long)length.p[i]);
  return true;
}

// Elements of one row of `n` reals after RFFT; no elements have no transform.
static int64_t half_row(int64_t n) {
  return n ? n / 2 + 1 : 0;
}

// What the last dimensions of a real transform's operand are: the lengths, but the last one of IRFFT half of it. IRFFT
// may also make no elements of one.
static bool check_fft_dims(const rule *r, kl_ints length, bool inverse) {
  const kl_shape *s = operand(r, 0);
  for (uint32_t i = 0; i < length.n; i++) {
    uint32_t d = s->rank - length.n + i;
    bool half = inverse && i + 1 == length.n;
    int64_t want = half ? half_row(length.p[i]) : length.p[i];
    if (s->dims[d] == want || (half && length.p[i] == 0 && s->dims[d] == 1)) continue;
    return refuse(r, "expected %lld elements in dimension %u for fft_length %lld, found %s", (long long)want, d,
                  (long long)length.p[i], text(r, s));
  }
  return true;
}

const kl_shape *kl_infer_fft(rule *r) {
  kl_ints length = r->in->more->sizes;
  kl_fft_type type = r->in->more->fft;
  const kl_shape *s = operand(r, 0);
  if (!check_fft_type(r, type) || !check_fft_rank(r, length)) return NULL;
  if (type == KL_FFT || type == KL_IFFT) return kl_rule_like(r, s->dtype, s);
  if (!check_fft_dims(r, length, type == KL_IRFFT)) return NULL;
  int64_t n = length.p[length.n - 1];
  memcpy(r->dims, s->dims, s->rank * sizeof(int64_t));
  r->dims[s->rank - 1] = type == KL_RFFT ? half_row(n) : n;
  kl_dtype to = type == KL_IRFFT ? kl_info(s->dtype)->part : s->dtype == KILN_F32 ? KILN_C64 : KILN_C128;
  return kl_rule_resized(r, to, s);
}
