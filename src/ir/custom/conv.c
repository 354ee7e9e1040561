// Convolutions as XLA:GPU has cuDNN make them. The window and the labels are those of the convolution forward,
// whichever of input, kernel and result the call makes of the two others.
#include "ir/custom/room.h"

typedef struct call {
  const kl_comp *c;
  const kl_instr *in;
  kl_json config;
  kl_fault *f;
  kl_custom kind;
  const kl_shape *to, *input, *kernel, *result; // `to` is one of the three
} call;

static bool faulty(const call *k, const char *expected) {
  return kl_faulty(k->f, expected, (kl_str){0});
}

static const kl_shape *shape(const call *k, uint32_t i) {
  return kl_operand(k->c, k->in, i)->shape;
}

// --- what is folded -------------------------------------------------------------------------------------------------

static bool read_arrays(call *k) {
  if (k->in->noperands < 2 || !kl_xla_is_array(shape(k, 0)) || !kl_xla_is_array(shape(k, 1)))
    return faulty(k, "expected two arrays as operands");
  k->input = k->kind == KL_CUSTOM_CONV_INPUT ? k->to : shape(k, 0);
  k->kernel = k->kind == KL_CUSTOM_CONV_KERNEL ? k->to : shape(k, 1);
  k->result = k->kind == KL_CUSTOM_CONV_INPUT ? shape(k, 0) : k->kind == KL_CUSTOM_CONV_KERNEL ? shape(k, 1) : k->to;
  return true;
}

// Elements from the first one that there is to the last, with holes between them.
static bool reach(int64_t n, int64_t dilation, int64_t *out) {
  *out = 0;
  return n <= 0 || (!__builtin_mul_overflow(n - 1, dilation, out) && !__builtin_add_overflow(*out, 1, out));
}

// How many places a window has.
static bool places(const kl_window_dim *w, int64_t size, int64_t *out) {
  int64_t base, window, padded;
  if (w->size < 0 || w->stride < 1 || w->base_dilation < 1 || w->window_dilation < 1) return false;
  if (!reach(size, w->base_dilation, &base) || !reach(w->size, w->window_dilation, &window) ||
      __builtin_add_overflow(base, w->low, &padded) || __builtin_add_overflow(padded, w->high, &padded))
    return false;
  *out = padded < window || padded <= 0 ? 0 : (padded - window) / w->stride + 1;
  return true;
}

// Numbers whose products fit: what a convolution back is made of is computed from them.
static bool is_moderate(const kl_window_dim *w, int64_t n) {
  const int64_t most = (int64_t)1 << 31;
  return w->base_dilation == 1 && w->size <= most && w->stride <= most && w->window_dilation <= most && n <= most &&
         w->low <= most && w->low >= -most && w->high <= most && w->high >= -most;
}

static bool check_window(const call *k) {
  const kl_more *m = k->in->more;
  const kl_conv_dims *d = m->conv;
  uint32_t rank = d ? d->n + 2 : 0;
  int64_t groups = m->feature_groups, n;
  bool forward = k->kind != KL_CUSTOM_CONV_INPUT && k->kind != KL_CUSTOM_CONV_KERNEL;
  if (!d) return faulty(k, "expected dim_labels");
  if (d->input_rank || d->kernel_rank || d->result_rank || k->input->rank != rank || k->kernel->rank != rank ||
      k->result->rank != rank || m->nwindow != d->n)
    return faulty(k, "expected arrays and a window of as many dimensions as dim_labels names");
  bool fits = groups >= 1 && m->batch_groups == 1 && k->input->dims[d->input_feature] % groups == 0 &&
              k->input->dims[d->input_feature] / groups == k->kernel->dims[d->kernel_input] &&
              k->kernel->dims[d->kernel_output] % groups == 0 &&
              k->kernel->dims[d->kernel_output] == k->result->dims[d->result_feature] &&
              k->input->dims[d->input_batch] == k->result->dims[d->result_batch];
  for (uint32_t i = 0; fits && i < d->n; i++)
    fits = m->window[i].size == k->kernel->dims[d->kernel[i]] &&
           places(&m->window[i], k->input->dims[d->input[i]], &n) && n == k->result->dims[d->result[i]] &&
           (forward || is_moderate(&m->window[i], k->input->dims[d->input[i]]));
  return fits || faulty(k, "expected input, kernel and result of a convolution forward, as dim_labels and window say");
}

static bool check_types(const call *k) {
  kl_dtype a = shape(k, 0)->dtype, b = shape(k, 1)->dtype, t = k->to->dtype;
  bool floats = kl_is_float(a) && kl_is_float(b) && kl_is_float(t);
  bool integers = kl_is_int(a) && kl_is_int(b) && (kl_is_int(t) || kl_is_float(t));
  return floats || integers || faulty(k, "expected floats, or integers that a convolution makes integers or floats of");
}

// --- what becomes of it ---------------------------------------------------------------------------------------------

static const struct {
  const char *name;
  kl_activation activation;
} modes[] = {
    {"kNone", KL_ACTIVATION_NONE},
    {"kSigmoid", KL_ACTIVATION_SIGMOID},
    {"kRelu", KL_ACTIVATION_RELU},
    {"kRelu6", KL_ACTIVATION_RELU6},
    {"kTanh", KL_ACTIVATION_TANH},
    {"kElu", KL_ACTIVATION_ELU},
    {"kLeakyRelu", KL_ACTIVATION_LEAKY_RELU},
    {"kGeluExact", KL_ACTIVATION_GELU_ERF},
};

static bool read_mode(const call *k, kl_after *x) {
  kl_json v = kl_json_member(k->config, "activation_mode");
  x->activation = KL_ACTIVATION_NONE;
  if (!v.text.n) return true;
  for (size_t i = 0; i < KL_COUNT(modes); i++)
    if (kl_str_is(kl_json_string(v), modes[i].name)) {
      x->activation = modes[i].activation;
      return true;
    }
  return kl_faulty(k->f, "expected an activation_mode that is known (kNone, kRelu, kRelu6, kElu, kLeakyRelu ...)",
                   v.text);
}

static bool read_bias(const call *k, kl_after *x) {
  const kl_shape *s = k->in->noperands > 2 ? shape(k, 2) : NULL;
  int64_t feature = k->in->more->conv->result_feature;
  if (!s || !kl_xla_is_array(s) || !kl_is_float(s->dtype) || s->rank != 1 || s->dims[0] != k->to->dims[feature])
    return faulty(k, "expected a bias of floats as third operand, one for each feature of the result");
  x->bias = 2;
  x->bias_dims[0] = feature;
  if (k->in->noperands == 3) return true;
  s = shape(k, 3);
  if (k->in->noperands != 4 || !kl_xla_is_array(s) || !kl_shape_same_dims(s, k->to) ||
      !(kl_is_float(s->dtype) || kl_is_int(s->dtype)))
    return faulty(k, "expected an array like the result as fourth operand, or none");
  if (x->beta != 0) x->addend = 3;
  return true;
}

static bool read_after(const call *k, kl_after *x) {
  bool reordered;
  x->addend = x->bias = x->scale[0] = x->scale[1] = x->result_scale = KL_NO_OPERAND;
  x->before = x->most = false;
  x->alpha[1] = 0;
  if (!kl_xla_number(k->config, "conv_result_scale", &x->alpha[0], "expected a number as conv_result_scale", k->f) ||
      !kl_xla_number(k->config, "side_input_scale", &x->beta, "expected a number as side_input_scale", k->f) ||
      !kl_xla_number(k->config, "leakyrelu_alpha", &x->slope, "expected a number as leakyrelu_alpha", k->f) ||
      !kl_xla_truth(k->config, "reordered_int8_nchw_vect", &reordered,
                    "expected true or false as reordered_int8_nchw_vect", k->f) ||
      !read_mode(k, x))
    return false;
  if (reordered) return faulty(k, "expected a kernel in its own order, not one of reordered_int8_nchw_vect");
  bool f64 = k->to->dtype == KILN_F64 || shape(k, 0)->dtype == KILN_F64 || shape(k, 1)->dtype == KILN_F64;
  x->steps = f64 ? KILN_F64 : KILN_F32;
  if (k->kind == KL_CUSTOM_CONV_BIAS) return read_bias(k, x);
  return k->in->noperands == 2 || faulty(k, "expected two operands, as bias and side input have a target of their own");
}

bool kl_xla_conv_arrays(const kl_comp *c, const kl_instr *in, const kl_shape *to, kl_fault *f) {
  call k = {c, in, .f = f, .kind = kl_custom_named(in), .to = to};
  return read_arrays(&k) && check_types(&k) && check_window(&k);
}

bool kl_xla_conv(const kl_comp *c, const kl_instr *in, kl_after *x, kl_fault *f) {
  call k = {c, in, .f = f, .kind = kl_custom_named(in)};
  if (!kl_xla_config(in, "cudnn_conv_backend_config", &k.config, f)) return false;
  k.to = kl_xla_result(in, 1, &x->spare);
  if (!k.to) return faulty(&k, "expected a result beside memory (u8[N])");
  return kl_xla_conv_arrays(c, in, k.to, f) && read_after(&k, x);
}

bool kl_custom_conv(const kl_comp *c, const kl_instr *in, kl_after *out) {
  kl_fault f = {0};
  return kl_xla_conv(c, in, out, &f);
}
