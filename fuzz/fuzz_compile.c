// Compiles what the bytes say. A first byte from 128 on: the rest drives the generator of random fusions, whose modules
// must compile for the target that the first byte picks; those for the host also run, and the evaluator must agree. A
// smaller first byte: all of it is HLO text, which may be refused, but never with an internal error; what compiles and
// is small is run and checked too.
#include "support/gen.h"
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const targets[] = {"host", "sm_75", "sm_80", "sm_90", "sm_100"};
enum { MOST_BUFFERS = 64, MOST_BYTES = 1 << 20, GUARD = 32 };

static void fail(kiln_context *cx, const char *what, const char *text) {
  fprintf(stderr, "%s\n%s\n", what, text);
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  abort();
}

// --- running --------------------------------------------------------------------------------------------------------

// Arrays of the evaluator and the buffers of a run have to fit.
static bool is_small(const kiln_module *m) {
  if (kiln_module_parameter_leaf_count(m) > MOST_BUFFERS || kiln_module_result_leaf_count(m) > MOST_BUFFERS)
    return false;
  int64_t all = 0;
  for (uint32_t c = 0; c < m->ncomp; c++) {
    for (uint32_t i = 0; i < m->comp[c].ninstr; i++) {
      const kl_shape *s = m->comp[c].instr[i].shape;
      for (size_t l = 0; l < kl_shape_leaf_count(s); l++) {
        int64_t bytes = kl_shape_bytes(kl_shape_leaf(s, l)), count = kl_shape_leaf(s, l)->count;
        if (bytes < 0 || bytes > MOST_BYTES || count > MOST_BYTES || (all += bytes + count) > 16 * MOST_BYTES)
          return false;
      }
    }
  }
  return true;
}

static void *guarded(int64_t bytes) {
  void *p = aligned_alloc(16, ((size_t)bytes + GUARD + 15) & ~(size_t)15);
  if (!p) abort();
  memset(p, 0x5a, (size_t)bytes + GUARD);
  return p;
}

static bool untouched(const void *buffer, int64_t bytes) {
  for (int i = 0; i < GUARD; i++) {
    if (((const uint8_t *)buffer)[bytes + i] != 0x5a) return false;
  }
  return true;
}

// NaN payloads and signs are not promised, and these ops make them into values.
static bool shows_nan_bits(const char *text) {
  return strstr(text, "bitcast") || strstr(text, "TOTALORDER");
}

static void check(kiln_context *cx, const kiln_module *m, const kiln_kernel *k, void **in, void **out, int64_t count,
                  const char *text, bool any_text) {
  kiln_run_params rp = {.struct_size = sizeof rp, .threads = 1, .count = count};
  if (kiln_kernel_run(cx, k, (const void *const *)in, out, &rp) != KILN_OK) fail(cx, "running", text);
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) {
    if (!untouched(out[i], kiln_module_result_leaf_bytes(m, i))) fail(cx, "written past a result", text);
  }
  kiln_mismatch x;
  size_t wrong = 0;
  kiln_eval_params ep = {.struct_size = sizeof ep, .threads = 1};
  kiln_status s = kiln_module_check(cx, m, (const void *const *)in, (const void *const *)out, &x, 1, &wrong, &ep);
  if (s != KILN_OK && (s != KILN_E_UNSUPPORTED || !any_text)) fail(cx, "checking", text);
  if (s != KILN_OK || !wrong || (any_text && shows_nan_bits(text))) return;
  fprintf(stderr, "result %zu element %lld: found %s, expected %s\n", x.result, (long long)x.element, x.found,
          x.expected);
  fail(cx, "wrong results", text);
}

// With a run-time count: the module's own.
static int64_t count_of(const kiln_module *m, const kiln_artifact *a) {
  kiln_array_type t;
  int64_t n = 1;
  if (!kiln_artifact_manifest(a)->counted || !kiln_module_result_leaf_type(m, 0, &t)) return 0;
  for (uint32_t d = 0; d < t.rank; d++) n *= t.dims[d];
  return n;
}

static void run(kiln_context *cx, const kiln_module *m, const kiln_artifact *a, uint64_t seed, const char *text,
                bool any_text) {
  kiln_kernel *k = NULL;
  if (kiln_kernel_load(cx, a, &k) != KILN_OK) fail(cx, "loading", text);
  void *in[MOST_BUFFERS] = {0}, *out[MOST_BUFFERS] = {0};
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(m); i++) {
    kiln_array_type t;
    int64_t bytes = kiln_module_parameter_leaf_bytes(m, i);
    in[i] = guarded(bytes);
    if (kiln_module_parameter_leaf_type(m, i, &t))
      gen_fill(seed + i, t.dtype, bytes, seed & 1, in[i]);
    else
      kiln_module_parameter_leaf_fill(m, i, seed, in[i]);
  }
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) out[i] = guarded(kiln_module_result_leaf_bytes(m, i));
  check(cx, m, k, in, out, count_of(m, a), text, any_text);
  for (size_t i = 0; i < MOST_BUFFERS; i++) {
    free(in[i]);
    free(out[i]);
  }
  kiln_kernel_destroy(&k);
}

// --- inputs ---------------------------------------------------------------------------------------------------------

static void compile_random(kiln_context *cx, const uint8_t *data, size_t size) {
  gen_source src = {.bytes = data + 1, .size = size - 1};
  kl_sb text;
  kl_sb_init(&text, cx);
  gen_fusion(&src, 1 + (data[0] >> 3) % 16 * 2, &text);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "random", text.p, text.n, &m) != KILN_OK)
    fail(cx, "a random module does not parse", text.p);
  kiln_compile_params p = {.struct_size = sizeof p, .target = targets[data[0] % KL_COUNT(targets)]};
  kiln_artifact *a = NULL;
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) fail(cx, "a random module does not compile", text.p);
  if (strcmp(p.target, "host") == 0) run(cx, m, a, src.seed, text.p, false);
  kiln_artifact_destroy(&a);
  p.max_count = 1 << 24; // the same with the element count given at run time, where that can be
  kiln_status counted = kiln_compile(cx, m, &p, &a);
  if (counted != KILN_OK && counted != KILN_E_UNSUPPORTED) fail(cx, "compiling with a run-time count", text.p);
  if (a && strcmp(p.target, "host") == 0) run(cx, m, a, src.seed, text.p, false);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
}

static void compile_text(kiln_context *cx, const uint8_t *data, size_t size) {
  kiln_module *m = NULL;
  char *text = malloc(size + 1);
  if (!text) abort();
  memcpy(text, data, size);
  text[size] = 0;
  kiln_status s = kiln_module_parse(cx, "input", text, size, &m);
  for (size_t t = 0; s == KILN_OK && t < KL_COUNT(targets); t += 3) { // host and sm_90
    kiln_compile_params p = {.struct_size = sizeof p, .target = targets[t], .max_count = size % 4 ? 0 : 1 << 24};
    kiln_artifact *a = NULL;
    kiln_status compiled = kiln_compile(cx, m, &p, &a);
    if (compiled == KILN_E_INTERNAL) fail(cx, p.target, text);
    if (compiled != KILN_OK && kiln_diagnostics_count(cx) == 0) fail(cx, "refused without a reason", text);
    if (compiled == KILN_OK && t == 0 && is_small(m)) run(cx, m, a, size, text, true);
    kiln_artifact_destroy(&a);
  }
  if (s == KILN_E_INTERNAL) fail(cx, "parsing", text);
  kiln_module_destroy(&m);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size) return 0;
  kiln_context *cx = kiln_context_create(NULL);
  if (data[0] >= 128)
    compile_random(cx, data, size);
  else
    compile_text(cx, data, size);
  kiln_context_destroy(&cx);
  return 0;
}
