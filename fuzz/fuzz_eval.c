// Evaluates what parses, on small arrays, with and without intervals: nothing may crash, run out of bounds or leak, and
// what the evaluator computes must lie within its own interval.
#include "eval/eval.h"
#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

enum { MOST_ELEMENTS = 4096, MOST_INSTRUCTIONS = 200 };

static bool is_small_shape(const kl_shape *s) {
  for (size_t i = 0; i < kl_shape_leaf_count(s) && i < 100; i++)
    if (kl_shape_leaf(s, i)->count > MOST_ELEMENTS) return false;
  return kl_shape_leaf_count(s) <= 100;
}

// Loops may run for ever, windows may cover much: both are left to tests that know what they do.
static bool is_small(const kiln_module *m) {
  if (kiln_module_instruction_count(m) > MOST_INSTRUCTIONS) return false;
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      if (in->op == KL_OP_WHILE || !is_small_shape(in->shape)) return false;
      int64_t cells = 1;
      for (uint32_t d = 0; d < in->more->nwindow; d++) {
        int64_t size = in->more->window[d].size;
        if (size > MOST_ELEMENTS || (cells *= size > 0 ? size : 1) > MOST_ELEMENTS) return false;
      }
    }
  return true;
}

static void check_within(const kl_result *r) {
  kl_dtype t = r->data.shape->dtype;
  for (int64_t i = 0; i < r->data.shape->count; i++) {
    uint64_t bits[2] = {kl_element_get(t, r->data.data, i, 0),
                        kl_is_complex(t) ? kl_element_get(t, r->data.data, i, 1) : 0};
    if (kl_result_allows(r, i, bits)) continue;
    fprintf(stderr, "element %lld is outside its own interval\n", (long long)i);
    abort();
  }
}

static void evaluate(kl_ctx *cx, const kiln_module *m, const kl_array *args, bool intervals) {
  size_t n = kl_shape_leaf_count(kl_root(&m->comp[m->entry])->shape);
  kl_result *results = calloc(n + 1, sizeof *results);
  if (!results) return;
  if (kl_eval(cx, m, m->entry, args, &(kl_eval_opts){.intervals = intervals, .threads = 1}, results) == KILN_OK)
    for (size_t i = 0; i < n; i++) {
      if (results[i].data.shape) check_within(&results[i]); // a token has none
      kl_result_free(cx, &results[i]);
    }
  free(results);
}

enum { MOST_PACKED = 1 << 28 };

static void run(kl_ctx *cx, const kiln_module *m) {
  size_t n = kiln_module_parameter_leaf_count(m);
  kl_array args[100] = {0};
  const kl_comp *c = &m->comp[m->entry];
  for (uint32_t p = 0, k = 0; p < c->nparams; p++)
    for (size_t leaf = 0; leaf < kl_shape_leaf_count(c->instr[c->params[p]].shape); leaf++, k++) {
      if (k >= KL_COUNT(args)) return;
      args[k].shape = kl_shape_leaf(c->instr[c->params[p]].shape, leaf);
      size_t bytes =
          kl_shape_is_array(args[k].shape) ? (size_t)args[k].shape->count * kl_info(args[k].shape->dtype)->bytes : 0;
      args[k].data = calloc(1, bytes + 1);
      int64_t room = kiln_module_parameter_leaf_bytes(m, k); // layouts may pad
      void *packed = room >= 0 && room < MOST_PACKED ? calloc(1, (size_t)room + 1) : NULL;
      if (packed && args[k].data && kiln_module_parameter_leaf_fill(m, k, k, packed))
        kl_array_unpack(&(kl_array){m->interface.shapes[k], args[k].data}, packed);
      free(packed);
    }
  for (int intervals = 0; intervals < 2; intervals++) evaluate(cx, m, args, intervals);
  for (size_t k = 0; k < n && k < KL_COUNT(args); k++) free(args[k].data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  if (size < 1 << 16 && kiln_module_parse(cx, "input", (const char *)data, size, &m) == KILN_OK) {
    if (is_small(m)) run(cx, m);
    kiln_module_destroy(&m);
  }
  kiln_context_destroy(&cx);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  return seed % 8 || !LLVMFuzzerMutate ? kl_mutate(data, size, max, seed) : LLVMFuzzerMutate(data, size, max);
}
