// One module's kernels for a GPU, which the simulator runs, and for this machine; and buffers for them.
#ifndef KL_TEST_BOTH_H
#define KL_TEST_BOTH_H

#include "support/context.h"
#include "support/gpu_sim.h"
#include "support/ptxas.h"
#include "base/base.h"
#include <stdio.h>
#include <string.h>

static inline kiln_artifact *compile(const kiln_module *m, kiln_compile_params p, const char *target) {
  kiln_artifact *a = NULL;
  p.struct_size = sizeof p;
  p.target = target;
  ck_assert_msg(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s", last_finding());
  return a;
}

static inline void assembles(const kiln_artifact *a) {
  size_t n;
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &n);
  if (!ptxas_path()) return;
  ptxas_result r = ptxas_run(ptx, n, kiln_artifact_manifest(a)->target);
  ck_assert_msg(r.ok, "%s\n%s", r.log, ptx);
}

// One module's kernels for a GPU, which the simulator runs, and for this machine.
typedef struct both {
  kiln_artifact *gpu, *host;
  kiln_kernel *k; // of `host`
} both;

static inline both compile_both(const kiln_module *m, kiln_compile_params p, const char *target) {
  both c = {compile(m, p, target), compile(m, p, "host"), NULL};
  ck_assert_msg(kiln_kernel_load(cx, c.host, &c.k) == KILN_OK, "%s", last_finding());
  return c;
}

static inline void drop_both(both *c) {
  kiln_kernel_destroy(&c->k);
  kiln_artifact_destroy(&c->host);
  kiln_artifact_destroy(&c->gpu);
}

// Runs them by 0, this machine, or by 1, as the GPU would; which of them, for messages.
static const char *run_on(int by, const both *c, const void *params, const void *results, int64_t count) {
  kiln_run_params rp = {.struct_size = sizeof rp, .threads = 1 + count % 3, .count = count};
  if (by)
    gpu_sim_run(cx, c->gpu, params, (void *const *)results, count);
  else
    ck_assert_msg(kiln_kernel_run(cx, c->k, params, (void *const *)results, &rp) == KILN_OK, "%s", last_finding());
  return by ? "gpu" : "host";
}

// --- buffers ------------------------------------------------------------------------------------------------------

enum { MOST = 8, PAD = 64, SENTINEL = 0x5a };

// Buffers of a module's interface, each with room behind it that must stay as it is.
typedef struct buffers {
  size_t nparams, nresults;
  char *param[MOST], *result[MOST];
  size_t param_bytes[MOST], result_bytes[MOST];
} buffers;

static inline char *padded(size_t bytes) {
  char *p = aligned_alloc(64, (bytes + 2 * PAD) & ~(size_t)63);
  memset(p, SENTINEL, (bytes + 2 * PAD) & ~(size_t)63);
  return p;
}

static inline buffers make_buffers(const kiln_module *m, uint64_t seed) {
  buffers b = {.nparams = kiln_module_parameter_leaf_count(m), .nresults = kiln_module_result_leaf_count(m)};
  for (size_t i = 0; i < b.nparams; i++) {
    b.param_bytes[i] = (size_t)kiln_module_parameter_leaf_bytes(m, i);
    b.param[i] = padded(b.param_bytes[i]);
    kiln_module_parameter_leaf_fill(m, i, seed, b.param[i]);
  }
  for (size_t i = 0; i < b.nresults; i++) {
    b.result_bytes[i] = (size_t)kiln_module_result_leaf_bytes(m, i);
    b.result[i] = padded(b.result_bytes[i]);
  }
  return b;
}

static inline void drop_buffers(buffers *b) {
  for (size_t i = 0; i < b->nparams; i++) free(b->param[i]);
  for (size_t i = 0; i < b->nresults; i++) free(b->result[i]);
}

// The evaluator agrees, and nothing is written behind a result. `params`: the parameters as they were.
static inline void expect_right(const kiln_module *m, buffers *b, char *const *params, const char *what) {
  kiln_mismatch x[MOST];
  size_t n = 0;
  kiln_eval_params ep = {.struct_size = sizeof ep, .threads = 1};
  ck_assert_msg(kiln_module_check(cx, m, (const void *const *)params, (const void *const *)b->result, x, MOST, &n,
                                  &ep) == KILN_OK,
                "%s: %s", what, last_finding());
  ck_assert_msg(n == 0, "%s: result %zu element %lld (%lld differ): found %s, expected %s", what, x[0].result,
                (long long)x[0].element, (long long)x[0].count, x[0].found, x[0].expected);
  for (size_t i = 0; i < b->nresults; i++)
    for (size_t k = 0; k < PAD; k++)
      ck_assert_msg(b->result[i][b->result_bytes[i] + k] == SENTINEL, "%s writes past result %zu", what, i);
}

static inline void clear_results(buffers *b) {
  for (size_t i = 0; i < b->nresults; i++) memset(b->result[i], SENTINEL, b->result_bytes[i]);
}

// Both are right for values of this seed.
static inline void expect_both_right(const kiln_module *m, const both *c, uint64_t seed) {
  buffers b = make_buffers(m, seed);
  for (int by = 0; by < 2; by++) {
    clear_results(&b);
    expect_right(m, &b, b.param, run_on(by, c, b.param, b.result, 0));
  }
  drop_buffers(&b);
}

// `rows` in the place of each %d.
static inline void spell(char *to, size_t size, const char *text, int rows) {
  size_t n = (size_t)snprintf(to, size, "HloModule m\n");
  for (; *text; text++) {
    if (text[0] == '%' && text[1] == 'd') {
      n += (size_t)snprintf(to + n, size - n, "%d", rows);
      text++;
    } else {
      to[n++] = *text;
    }
  }
  to[n] = 0;
}

#endif
