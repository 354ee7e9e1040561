// Attention as JAX has cuDNN make it: kl_attention.
#include "ir/custom/room.h"

typedef struct call {
  const kl_comp *c;
  const kl_instr *in;
  kl_json config;
  kl_fault *f;
  kl_attention *to;
} call;

static bool faulty(const call *k, const char *expected) {
  return kl_faulty(k->f, expected, (kl_str){0});
}

static const kl_shape *shape(const call *k, uint32_t i) {
  return kl_operand(k->c, k->in, i)->shape;
}

// --- settings -------------------------------------------------------------------------------------------------------

static bool none(const call *k, const char *name, double most, const char *expected) {
  double v;
  if (!kl_xla_number(k->config, name, &v, expected, k->f)) return false;
  return v <= most || kl_faulty(k->f, expected, kl_json_member(k->config, name).text);
}

static bool read_settings(const call *k) {
  bool paged;
  double window;
  kl_attention *a = k->to;
  kl_json mask = kl_json_member(k->config, "mask_type");
  kl_json numbers =
      kl_json_member(k->config, a->back ? "bmm1_grad_gemm1_dot_dimension_numbers" : "bmm1_dot_dimension_numbers");
  kl_json batches = kl_json_member(numbers, a->back ? "rhs_batch_dimensions" : "lhs_batch_dimensions");
  int64_t batch, heads;
  if (!kl_json_integer(kl_json_entry(batches, 0), &batch) || !kl_json_integer(kl_json_entry(batches, 1), &heads) ||
      batch != 0 || (heads != 1 && heads != 2))
    return kl_faulty(k->f, "expected 0, and 1 or 2, as batches of the first product", batches.text);
  a->heads = (uint32_t)heads;
  a->causal = kl_str_is(kl_json_string(mask), "CAUSAL");
  if (mask.text.n && !a->causal && !kl_str_is(kl_json_string(mask), "NO_MASK"))
    return kl_faulty(k->f, "expected NO_MASK or CAUSAL as mask_type", mask.text);
  if (!kl_xla_number(k->config, "fmha_scale", &a->scale, "expected a number as fmha_scale", k->f) ||
      !none(k, "dropout_rate", 0, "expected 0 as dropout_rate") ||
      !none(k, "max_seg_per_batch", 1, "expected one sequence a batch (max_seg_per_batch 1)") ||
      !kl_xla_truth(k->config, "is_paged_attention", &paged, "expected false as is_paged_attention", k->f) ||
      !kl_xla_number(k->config, "sliding_window_length", &window, "expected a number as sliding_window_length", k->f))
    return false;
  a->window = window > 0 && window < INT32_MAX ? (int64_t)window : 0;
  if (a->window && !a->causal) return faulty(k, "expected a sliding window with a CAUSAL mask alone");
  return !paged || faulty(k, "expected false as is_paged_attention");
}

// --- arrays ---------------------------------------------------------------------------------------------------------

static bool is_like(const kl_shape *s, uint32_t rank, const int64_t *dims) {
  bool fits = kl_xla_is_array(s) && s->rank == rank && kl_is_float(s->dtype) && kl_info(s->dtype)->bits <= 32;
  for (uint32_t d = 0; fits && d < rank; d++) fits = s->dims[d] == dims[d];
  return fits;
}

// [batch, tokens, heads, width], or heads before tokens.
static bool is_given(const call *k, const kl_shape *s, int64_t tokens, int64_t width) {
  const kl_attention *a = k->to;
  int64_t dims[4] = {a->size[0], a->heads == 1 ? a->size[1] : tokens, a->heads == 1 ? tokens : a->size[1], width};
  return is_like(s, 4, dims);
}

// What the call makes has heads before tokens.
static bool is_made(const call *k, const kl_shape *s, int64_t tokens, int64_t width) {
  const kl_attention *a = k->to;
  return is_like(s, 4, (int64_t[]){a->size[0], a->size[1], tokens, width});
}

static bool is_bias(const call *k, const kl_shape *s) {
  const kl_attention *a = k->to;
  bool fits = kl_xla_is_array(s) && s->rank == 4 && kl_is_float(s->dtype) && kl_info(s->dtype)->bits <= 32;
  for (int d = 0; fits && d < 4; d++) fits = s->dims[d] == a->size[d] || s->dims[d] == 1;
  return fits;
}

static bool read_arrays(const call *k, bool biased) {
  static const char expected[] =
      "expected queries, keys and values of four dimensions, floats of at most 32 bits, with "
      "as many heads, and a bias where the target has one";
  kl_attention *a = k->to;
  uint32_t n = (a->back ? 6 : 3) + biased, tokens = 3 - a->heads;
  if (k->in->noperands != n)
    return faulty(k, "expected (q, k, v, [bias]), or back (q, k, v, logarithms, gradient, [bias], result)");
  const kl_shape *q = shape(k, 0), *key = shape(k, 1), *v = shape(k, 2);
  if (!kl_xla_is_array(q) || !kl_xla_is_array(key) || !kl_xla_is_array(v) || q->rank != 4 || key->rank != 4 ||
      v->rank != 4)
    return faulty(k, expected);
  int64_t size[4] = {q->dims[0], q->dims[a->heads], q->dims[tokens], key->dims[tokens]};
  memcpy(a->size, size, sizeof size);
  a->width = v->dims[3];
  a->bias = biased ? (a->back ? 5 : 3) : KL_NO_OPERAND;
  bool fits = is_given(k, q, size[2], q->dims[3]) && is_given(k, key, size[3], q->dims[3]) &&
              is_given(k, v, size[3], a->width) && (!biased || is_bias(k, shape(k, (uint32_t)a->bias)));
  if (fits && a->back)
    fits = is_like(shape(k, 3), 3, size) && is_given(k, shape(k, 4), size[2], a->width) &&
           is_given(k, shape(k, n - 1), size[2], a->width);
  return fits || faulty(k, expected);
}

static bool read_results(const call *k) {
  const kl_shape *s = k->in->shape, *q = shape(k, 0);
  kl_attention *a = k->to;
  uint32_t most = a->back ? 4 : 2, n = a->back ? 3 : 1;
  while (n <= most && !kl_xla_result(k->in, n, &a->spare)) n++;
  bool fits = n <= most && s->dtype == KILN_TUPLE;
  a->more = n == most;
  if (fits && a->back)
    fits = is_made(k, s->elems[0], a->size[2], q->dims[3]) && is_made(k, s->elems[1], a->size[3], q->dims[3]) &&
           is_made(k, s->elems[2], a->size[3], a->width) &&
           (!a->more || (a->bias != KL_NO_OPERAND && is_like(s->elems[3], 4, shape(k, (uint32_t)a->bias)->dims)));
  else if (fits)
    fits = is_made(k, s->elems[0], a->size[2], a->width) && (!a->more || is_like(s->elems[1], 3, a->size));
  return fits ||
         faulty(k, "expected a result, maybe its logarithms, or gradients, with heads before tokens, and memory");
}

bool kl_xla_attention(const kl_comp *c, const kl_instr *in, kl_attention *out, kl_fault *f) {
  call k = {c, in, .f = f, .to = out};
  kl_str target = kl_custom_target(in);
  *out = (kl_attention){.back = kl_custom_has(target, "Backward")};
  return kl_xla_config(in, "cudnn_fmha_backend_config", &k.config, f) && read_settings(&k) &&
         read_arrays(&k, kl_custom_has(target, "Bias")) && read_results(&k);
}

bool kl_custom_attention(const kl_comp *c, const kl_instr *in, kl_attention *out) {
  kl_fault f = {0};
  return kl_xla_attention(c, in, out, &f);
}
