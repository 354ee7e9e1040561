// What calls of XLA:GPU have in common: configurations in JSON, results beside memory.
#include "ir/custom/room.h"

bool kl_faulty(kl_fault *f, const char *expected, kl_str found) {
  if (!f->expected) *f = (kl_fault){expected, found};
  return false;
}

bool kl_xla_config(const kl_instr *in, const char *name, kl_json *out, kl_fault *f) {
  kl_json whole;
  kl_str text = kl_custom_config(in);
  if (!kl_json_open(text, &whole) || !kl_json_is_object(whole))
    return kl_faulty(f, "expected an object in JSON as backend_config", text);
  *out = kl_json_member(whole, name);
  if (!out->text.n) *out = whole;
  return kl_json_is_object(*out) || kl_faulty(f, "expected an object of settings in backend_config", out->text);
}

bool kl_xla_number(kl_json config, const char *name, double *out, const char *expected, kl_fault *f) {
  kl_json v = kl_json_member(config, name);
  *out = 0;
  return !v.text.n || kl_json_number(v, out) || kl_faulty(f, expected, v.text);
}

bool kl_xla_truth(kl_json config, const char *name, bool *out, const char *expected, kl_fault *f) {
  kl_json v = kl_json_member(config, name);
  *out = false;
  return !v.text.n || kl_json_truth(v, out) || kl_faulty(f, expected, v.text);
}

bool kl_xla_is_array(const kl_shape *s) {
  if (!kl_shape_is_array(s) || s->dynamic) return false;
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->dims[d] == KL_DIM_UNKNOWN) return false;
  return true;
}

static bool is_memory(const kl_shape *s) {
  return kl_xla_is_array(s) && s->rank == 1 && (s->dtype == KILN_U8 || s->dtype == KILN_S8);
}

const kl_shape *kl_xla_result(const kl_instr *in, uint32_t n, bool *spare) {
  const kl_shape *s = in->shape;
  *spare = false;
  if (s->dtype != KILN_TUPLE) return n == 1 && kl_xla_is_array(s) ? s : NULL;
  *spare = s->nelems == n + 1 && is_memory(s->elems[n]);
  if (s->nelems != n + *spare) return NULL;
  for (uint32_t i = 0; i < n; i++)
    if (!kl_xla_is_array(s->elems[i])) return NULL;
  return s->elems[0];
}
