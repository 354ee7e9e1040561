// What other compilers make of an HLO file, on the simulator, against the evaluator. They round differently: they keep
// f32 between operations on 16 bits, approximate functions, and sum in other orders. So results are compared within a
// bound by type, relative to the larger of the value and the array's mean magnitude; integers exactly.

#include "ir/hlo.h"
#include "sim/check/checks.h"
#include "support/suite.h"
#include <kiln/ir.h>

#include <math.h>
#include <stdio.h>

static const char *const names[] = {
    "argmax.triton",
    "argmax.xla",
    "axpy.xla",
    "bias_relu.xla",
    "causal_mask.xla",
    "column_sum.triton",
    "column_sum.xla",
    "complex_multiply.xla",
    "concatenate.xla",
    "cross_entropy.xla",
    "cumulative_sum.triton",
    "cumulative_sum.xla",
    "dequantise_s4.xla",
    "embedding.xla",
    "full_sum.xla",
    "gelu.xla",
    "gelu_erf.xla",
    "gelu_f32.triton",
    "gelu_f32.xla",
    "layer_norm.triton",
    "layer_norm.xla",
    "multi_output.xla",
    "pad_slice.xla",
    "quantise_f8.xla",
    "residual_dropout.xla",
    "row_sum.triton",
    "row_sum.xla",
    "scale_rows.xla",
    "scatter_add.triton",
    "scatter_add.xla",
    "scatter_rows.xla",
    "softmax.triton",
    "softmax.xla",
    "sort_pairs.xla",
    "swiglu.triton",
    "swiglu.xla",
    "transpose.triton",
    "transpose.xla",
    "transpose_cube.xla",
    "transpose_heads.xla",
};

enum { MOST = 64 };

typedef struct session {
  kiln_context *cx;
  kiln_module *m;
  kl_memory memory;
  uint64_t buffers[MOST];
  void *in[MOST], *out[MOST];
  kl_loaded *loaded[8];
  char files[8][128];
  size_t nloaded;
  const char *name;
} session;

static char *read_all(const char *file, size_t *n) {
  char path[1024];
  snprintf(path, sizeof path, "%s/sim/peers/%s", KL_TESTS, file);
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  *n = (size_t)ftell(f);
  rewind(f);
  char *p = malloc(*n + 1);
  *n = fread(p, 1, *n, f);
  p[*n] = 0;
  fclose(f);
  return p;
}

static const char *found(const session *s) {
  size_t n = kiln_diagnostics_count(s->cx);
  return n ? kiln_diagnostics_get(s->cx, n - 1)->text : "";
}

// --- the lines ----------------------------------------------------------------------------------------------------

static uint64_t place_of(const session *s, const char *text) {
  unsigned long long buffer = 0, offset = 0;
  ck_assert_int_eq(sscanf(text, "%llu+%llu", &buffer, &offset), 2);
  ck_assert_uint_lt(buffer, MOST);
  return s->buffers[buffer] + offset;
}

static kl_loaded *module_of(session *s, const char *file) {
  size_t n = 0;
  for (size_t k = 0; k < s->nloaded; k++)
    if (strcmp(s->files[k], file) == 0) return s->loaded[k];
  char *text = read_all(file, &n);
  ck_assert_msg(text != NULL, "no file %s", file);
  if (kl_load(s->cx, &s->memory, file, (kl_str){text, n}, &s->loaded[s->nloaded])) ck_abort_msg("%s", found(s));
  snprintf(s->files[s->nloaded], sizeof s->files[0], "%s", file);
  free(text);
  return s->loaded[s->nloaded++];
}

static void put_argument(const session *s, const kl_kernel *k, uint32_t i, const char *text, char *params) {
  uint32_t at = 0, bytes = 0;
  uint64_t value = 0;
  kl_kernel_param(k, i, &at, &bytes);
  if (strncmp(text, "i32=", 4) == 0)
    value = (uint64_t)(uint32_t)strtol(text + 4, NULL, 10);
  else if (strcmp(text, "null") != 0)
    value = place_of(s, text);
  memcpy(params + at, &value, bytes < 8 ? bytes : 8);
}

static void launch(session *s, char *line) {
  char *words[80];
  size_t n = 0;
  for (char *w = strtok(line, " "); w && n < KL_COUNT(words); w = strtok(NULL, " ")) words[n++] = w;
  kl_kernel *k = NULL;
  char params[4096] = {0};
  kl_kernel_prepare(s->cx, module_of(s, words[1]), kl_str_of(words[2]), &k);
  ck_assert_msg(k != NULL, "%s", found(s));
  for (size_t a = 10; a < n; a++) put_argument(s, k, (uint32_t)(a - 10), words[a], params);
  kl_launch l = {.kernel = k, .params = params};
  for (int d = 0; d < 3; d++) {
    l.grid[d] = (uint32_t)strtoul(words[3 + d], NULL, 10);
    l.block[d] = (uint32_t)strtoul(words[6 + d], NULL, 10);
  }
  uint32_t shared = (uint32_t)strtoul(words[9], NULL, 10), own = kl_kernel_describe(k).shared_bytes;
  l.dynamic_shared = shared > own ? shared - own : 0;
  // The HLO promises that its indices differ; those that the test makes up do not, so it does race.
  bool races = strcmp(s->name, "scatter_rows.xla") == 0;
  uint32_t checks = races ? KL_CHECK_ALL & ~(uint32_t)KL_CHECK_RACE : KL_CHECK_ALL;
  if (kl_checks_expect_nothing(s->cx, &s->memory, &l, checks)) ck_abort_msg("%s: %s", s->name, found(s));
  if (races) ck_assert_int_eq(kl_checks_expect_nothing(s->cx, &s->memory, &l, KL_CHECK_RACE), KILN_E_DEVICE);
}

static void copy(session *s, const char *to, const char *from, uint64_t bytes) {
  memcpy(kl_memory_at(&s->memory, place_of(s, to), bytes), kl_memory_at(&s->memory, place_of(s, from), bytes), bytes);
  kl_memory_define_as(&s->memory, place_of(s, to), place_of(s, from), bytes);
}

// --- results ------------------------------------------------------------------------------------------------------

static double bound_of(kl_dtype t) {
  switch (t) {
  case KILN_F64:
  case KILN_C128: return 1e-12;
  case KILN_F32:
  case KILN_C64: return 2e-5;
  case KILN_F16: return 4e-3;
  case KILN_BF16: return 3e-2;
  default: return 0.26; // floats of 8 bits: a step
  }
}

static double element(kl_dtype t, const char *p, size_t i) {
  uint64_t bits = 0;
  unsigned bytes = kiln_dtype_bits(t) / 8;
  memcpy(&bits, p + i * bytes, bytes);
  return kl_float_decode(t, bits);
}

static void compare(const session *s, size_t index, const char *got, int64_t bytes) {
  kiln_array_type t;
  ck_assert(kiln_module_result_leaf_type(s->m, index, &t));
  const char *want = s->out[index];
  kl_dtype e = t.dtype == KILN_C64 ? KILN_F32 : t.dtype == KILN_C128 ? KILN_F64 : t.dtype;
  if (!kl_is_float(e)) {
    EXPECT(memcmp(got, want, (size_t)bytes) == 0, "%s: result %zu differs", s->name, index);
    return;
  }
  size_t n = (size_t)bytes * 8 / kiln_dtype_bits(e), finite = 0;
  double sum = 0, worst = 0;
  for (size_t i = 0; i < n; i++) {
    double w = element(e, want, i);
    if (isfinite(w)) sum += fabs(w), finite++;
  }
  double mean = finite ? sum / (double)finite : 0;
  for (size_t i = 0; i < n; i++) {
    double w = element(e, want, i), g = element(e, got, i), scale = fabs(w) > mean ? fabs(w) : mean;
    if ((isnan(w) && isnan(g)) || w == g) continue;
    double off = fabs(w - g) / scale;
    EXPECT(off <= bound_of(t.dtype), "%s: result %zu, element %zu: found %.9g, expected %.9g", s->name, index, i, g, w);
    worst = off > worst ? off : worst;
  }
  printf("# %s: result %zu within %.2g\n", s->name, index, worst);
}

static void do_line(session *s, char *line) {
  char kind[16], a[64], b[64];
  unsigned long long n = 0, bytes = 0;
  ck_assert_int_eq(sscanf(line, "%15s", kind), 1);
  if (strcmp(kind, "buffer") == 0) {
    ck_assert_int_eq(sscanf(line, "%*s %llu %llu", &n, &bytes), 2);
    ck_assert_uint_lt(n, MOST);
    ck_assert_int_eq(kl_memory_alloc(&s->memory, bytes, KL_REGION_USER, KL_STR(""), &s->buffers[n]), KILN_OK);
  } else if (strcmp(kind, "input") == 0) {
    ck_assert_int_eq(sscanf(line, "%*s %llu %63s %llu", &n, a, &bytes), 3);
    memcpy(kl_memory_at(&s->memory, place_of(s, a), bytes), s->in[n], bytes);
    kl_memory_define(&s->memory, place_of(s, a), bytes);
  } else if (strcmp(kind, "output") == 0) {
    ck_assert_int_eq(sscanf(line, "%*s %llu %63s %llu", &n, a, &bytes), 3);
    compare(s, n, kl_memory_at(&s->memory, place_of(s, a), bytes), (int64_t)bytes);
  } else if (strcmp(kind, "copy") == 0) {
    ck_assert_int_eq(sscanf(line, "%*s %63s %63s %llu", a, b, &bytes), 3);
    copy(s, a, b, bytes);
  } else {
    ck_assert_str_eq(kind, "launch");
    launch(s, line);
  }
}

// --- one file -----------------------------------------------------------------------------------------------------

static void evaluate(session *s) {
  char file[128];
  size_t n = 0;
  snprintf(file, sizeof file, "%.*s.hlo", (int)strcspn(s->name, "."), s->name);
  char *text = read_all(file, &n);
  ck_assert_msg(text != NULL, "no file %s", file);
  if (kiln_module_parse(s->cx, file, text, n, &s->m)) ck_abort_msg("%s", found(s));
  free(text);
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(s->m); i++) {
    s->in[i] = calloc(1, (size_t)kiln_module_parameter_leaf_bytes(s->m, i) + 16);
    ck_assert(kiln_module_parameter_leaf_fill(s->m, i, 7 + i, s->in[i]));
  }
  for (size_t i = 0; i < kiln_module_result_leaf_count(s->m); i++)
    s->out[i] = calloc(1, (size_t)kiln_module_result_leaf_bytes(s->m, i) + 16);
  if (kiln_module_eval(s->cx, s->m, (const void *const *)s->in, s->out, NULL)) ck_abort_msg("%s", found(s));
}

START_TEST(agrees) {
  session s = {.cx = kiln_context_create(NULL), .name = names[_i]};
  char file[128], *line, *rest = NULL;
  size_t n = 0;
  kl_memory_init(&s.memory, s.cx, UINT64_MAX);
  evaluate(&s);
  snprintf(file, sizeof file, "%s.launches", s.name);
  char *lines = read_all(file, &n);
  ck_assert_msg(lines != NULL, "no file %s", file);
  for (line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) do_line(&s, line);
  for (size_t k = 0; k < s.nloaded; k++) kl_unload(s.cx, s.loaded[k]);
  for (size_t k = 0; k < MOST; k++) free(s.in[k]), free(s.out[k]);
  free(lines);
  kl_memory_free(&s.memory);
  kiln_module_destroy(&s.m);
  kiln_context_destroy(&s.cx);
}
END_TEST

int main(void) {
  return RUN_TESTS("peers", NO_FRAME, {agrees, (int)KL_COUNT(names)});
}
