// The steps behind a convolution, as XLA:GPU writes them down for cuDNN's graphs: 7:[f32]conv();9:[f16]scale(7);
// Each has a number, the type that its value is rounded to, a name, and the steps before that it takes. A step that
// takes fewer than it needs takes the call's next operand behind input and kernel.
#include "ir/custom/room.h"

typedef struct reader {
  const kl_comp *c;
  const kl_instr *in;
  kl_str text;       // what is left
  uint32_t operands; // how many are taken
  int64_t number[KL_MOST_CONV_STEPS];
  kl_conv_steps *to;
} reader;

static const struct {
  const char *name;
  kl_conv_step_kind kind;
  bool two, scalar; // it takes two values; the second is a number
} kinds[] = {
    {"add", KL_CONV_STEP_ADD, true, false},        {"scale", KL_CONV_STEP_SCALE, true, true},
    {"invscale", KL_CONV_STEP_DIVIDE, true, true}, {"min", KL_CONV_STEP_MIN, true, false},
    {"max", KL_CONV_STEP_MAX, true, false},        {"relu", KL_CONV_STEP_RELU, false, false},
    {"elu", KL_CONV_STEP_ELU, false, false},       {"amax", KL_CONV_STEP_LARGEST, false, false},
};

// Up to this character, which is taken too; false: there is none.
static bool take_to(reader *r, char end, kl_str *out) {
  const char *at = r->text.n ? memchr(r->text.p, end, r->text.n) : NULL;
  if (!at) return false;
  *out = (kl_str){r->text.p, (size_t)(at - r->text.p)};
  r->text.n -= out->n + 1;
  r->text.p = at + 1;
  return true;
}

// The step of this number.
static bool find(const reader *r, kl_str number, int *out) {
  int64_t v;
  if (!kl_i64_from_text(number, &v)) return false;
  for (uint32_t i = 0; i < r->to->n; i++)
    if (r->number[i] == v && r->to->step[i].kind != KL_CONV_STEP_LARGEST) {
      *out = (int)i;
      return true;
    }
  return false;
}

static bool take_operand(reader *r, const kl_shape *result, bool scalar, int *out) {
  if (r->operands == r->in->noperands) return false;
  const kl_shape *s = kl_operand(r->c, r->in, r->operands)->shape;
  *out = (int)r->operands++;
  return kl_xla_is_array(s) && kl_is_float(s->dtype) && (scalar ? s->count == 1 : kl_shape_same_dims(s, result));
}

static bool take_step(reader *r, const kl_shape *result) {
  kl_str number, type, name, taken, one;
  kl_conv_step *s = &r->to->step[r->to->n];
  if (r->to->n == KL_MOST_CONV_STEPS || !take_to(r, ':', &number) || !kl_i64_from_text(number, &r->number[r->to->n]) ||
      !take_to(r, '[', &one) || one.n || !take_to(r, ']', &type) || !kl_dtype_from_str(type, &s->type) ||
      !kl_is_float(s->type) || kl_info(s->type)->bits > 32 || !take_to(r, '(', &name) || !take_to(r, ')', &taken) ||
      !take_to(r, ';', &one) || one.n)
    return false;
  s->a = s->b = s->operand = KL_NO_OPERAND;
  if (r->to->n == 0) {
    s->kind = KL_CONV_STEP_CONV;
    return kl_str_is(name, "conv") && !taken.n;
  }
  size_t k = 0;
  while (k < KL_COUNT(kinds) && !kl_str_is(name, kinds[k].name)) k++;
  if (k == KL_COUNT(kinds)) return false;
  s->kind = kinds[k].kind;
  reader ids = *r;
  ids.text = taken;
  bool both = take_to(&ids, ',', &one);
  if (!find(r, both ? one : taken, &s->a) || (both && (!kinds[k].two || kinds[k].scalar || !find(r, ids.text, &s->b))))
    return false;
  return both || !kinds[k].two || take_operand(r, result, kinds[k].scalar, &s->operand);
}

bool kl_xla_steps(const kl_comp *c, const kl_instr *in, kl_conv_steps *to, kl_fault *f) {
  kl_json config;
  if (!kl_xla_config(in, "cudnn_conv_backend_config", &config, f)) return false;
  kl_json v = kl_json_member(config, "serialized_graph");
  const kl_shape *all = in->shape, *result = all->dtype == KILN_TUPLE && all->nelems ? all->elems[0] : all;
  reader r = {.c = c, .in = in, .text = kl_json_string(v), .operands = 2, .to = to};
  *to = (kl_conv_steps){0};
  if (in->noperands < 2) return kl_faulty(f, "expected two arrays as operands", (kl_str){0});
  while (r.text.n) {
    if (!take_step(&r, result))
      return kl_faulty(f,
                       "expected steps NUMBER:[TYPE]NAME(NUMBERS); as serialized_graph, first conv(), then add, scale, "
                       "invscale, min, max, relu, elu or amax, with floats as further operands",
                       v.text);
    kl_conv_step *s = &to->step[to->n++];
    if (s->kind == KL_CONV_STEP_LARGEST)
      to->nlargest++;
    else
      to->last = to->n - 1;
  }
  if (!to->n || r.operands != in->noperands)
    return kl_faulty(f, "expected a serialized_graph of steps that take all operands", v.text);
  if (!kl_xla_result(in, 1 + to->nlargest, &to->spare) || to->step[to->last].type != result->dtype)
    return kl_faulty(f, "expected the value of the last step, what each amax gives, and memory (u8[N])", (kl_str){0});
  for (uint32_t i = 1; i <= to->nlargest; i++)
    if (all->elems[i]->rank || !kl_is_float(all->elems[i]->dtype))
      return kl_faulty(f, "expected one float as each largest magnitude", (kl_str){0});
  return kl_xla_conv_arrays(c, in, result, f);
}

bool kl_custom_steps(const kl_comp *c, const kl_instr *in, kl_conv_steps *out) {
  kl_fault f = {0};
  return kl_xla_steps(c, in, out, &f);
}
