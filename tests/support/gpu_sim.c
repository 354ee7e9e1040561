#include "gpu_sim.h"

#include "gpu_cuda.h"
#include "share.h"
#include "sim/check/checks.h"
#include "suite.h"
#include <stdlib.h>

enum { MOST = 64 };
bool gpu_sim_order_shows;
uint64_t gpu_sim_perturb;

typedef struct buffer {
  const void *host; // the caller's
  uint64_t bytes, address;
  bool result;
} buffer;

typedef struct session {
  kiln_context *cx;
  const kiln_manifest *m;
  int64_t count;
  kl_memory memory;
  buffer buffers[MOST];
  size_t n;
  uint64_t at[MOST]; // by slot
  uint64_t scratch, shuffle;
  kl_loaded *code;
  bool shares; // a kernel has shared memory
} session;

static void failed(kiln_context *cx, const char *what) {
  size_t n = kiln_diagnostics_count(cx);
  ck_abort_msg("%s: %s", what, n ? kiln_diagnostics_get(cx, n - 1)->text : "");
}

static uint64_t bytes_of(const session *s, const kiln_slot *slot) {
  if (!slot->counted) return (uint64_t)slot->bytes;
  uint64_t n = (uint64_t)(s->count / s->m->count_unit * slot->row);
  return (n * kiln_dtype_bits(slot->type.dtype) + 7) / 8;
}

// Memory for a slot; two slots of one buffer get the same.
static uint64_t upload(session *s, const kiln_slot *slot, const void *host) {
  uint64_t bytes = bytes_of(s, slot), address = 0;
  for (size_t k = 0; k < s->n; k++)
    if (s->buffers[k].host == host && s->buffers[k].bytes == bytes) {
      s->buffers[k].result |= slot->result;
      return s->buffers[k].address;
    }
  ck_assert_uint_lt(s->n, MOST);
  if (bytes == 0) return KL_DEVICE_MEMORY;
  ck_assert_int_eq(kl_memory_alloc(&s->memory, bytes, KL_REGION_USER, KL_STR(""), &address), KILN_OK);
  memcpy(kl_memory_at(&s->memory, address, bytes), host, bytes);
  if (!slot->result) kl_memory_define(&s->memory, address, bytes);
  s->buffers[s->n++] = (buffer){host, bytes, address, slot->result};
  return address;
}

static uint64_t value_of(const kiln_slot *slot, const void *p) {
  uint64_t v = 0;
  unsigned bits = kiln_dtype_bits(slot->type.dtype);
  memcpy(&v, p, bits < 8 ? 1 : bits / 8);
  return v;
}

static uint32_t grid_of(const kiln_manifest *m, const kiln_launch *l, int64_t count) {
  if (!m->counted) return l->grid[0];
  if (count == 0 || l->count_whole == 0) return count ? l->grid[0] : 0;
  int64_t whole = count / l->count_whole, rest = count - whole * l->count_whole;
  return (uint32_t)(whole + (rest + l->count_rest - 1) / l->count_rest) * l->count_blocks;
}

// Is it for results that are where these are?
static bool is_due(const session *s, const kiln_launch *l) {
  bool apart = false;
  for (size_t k = 0; k < l->argument_count; k++) {
    const kiln_argument *a = &l->arguments[k];
    if (a->kind != KILN_ARGUMENT_SLOT || !a->output || s->m->slots[a->slot].alias == KILN_NO_SLOT) continue;
    apart = apart || s->at[a->slot] != s->at[s->m->slots[a->slot].alias];
  }
  return l->when == KILN_WHEN_ALWAYS || (l->when == KILN_WHEN_APART) == apart;
}

static void run_launch(session *s, const kiln_launch *l) {
  kl_kernel *kernel = NULL;
  char params[4096] = {0};
  uint32_t grid = grid_of(s->m, l, s->count);
  if (grid == 0 || !is_due(s, l)) return;
  if (kl_kernel_prepare(s->cx, s->code, kl_str_of(l->kernel), &kernel)) failed(s->cx, l->kernel);
  s->shares |= l->dynamic_shared_bytes || kl_kernel_describe(kernel).shared_bytes;
  ck_assert_uint_eq(kl_kernel_describe(kernel).params, l->argument_count);
  for (size_t k = 0; k < l->argument_count; k++) {
    const kiln_argument *a = &l->arguments[k];
    uint64_t value = a->kind == KILN_ARGUMENT_SLOT      ? s->at[a->slot]
                     : a->kind == KILN_ARGUMENT_SCRATCH ? s->scratch + a->offset
                                                        : (uint64_t)s->count;
    uint32_t at = 0, bytes = 0;
    kl_kernel_param(kernel, (uint32_t)k, &at, &bytes);
    ck_assert_uint_le(at + bytes, sizeof params);
    memcpy(params + at, &value, bytes < 8 ? bytes : 8);
  }
  kl_launch launch = {.kernel = kernel,
                      .grid = {grid, l->grid[1], l->grid[2]},
                      .block = {l->block[0], l->block[1], l->block[2]},
                      .cluster = {l->cluster[0], l->cluster[1], l->cluster[2]},
                      .dynamic_shared = l->dynamic_shared_bytes,
                      .params = params,
                      .perturb = gpu_sim_perturb,
                      .shuffle = s->shuffle,
                      .workers = 1};
  if (kl_checks_expect_nothing(s->cx, &s->memory, &launch, KL_CHECK_ALL)) failed(s->cx, l->kernel);
}

static const char *condition_at(session *s, const kiln_step *x) {
  bool slot = x->condition.kind == KILN_ARGUMENT_SLOT;
  uint64_t at = slot ? s->at[x->condition.slot] : s->scratch + x->condition.offset;
  if (slot && s->m->slots[x->condition.slot].by_value) return (const char *)&s->at[x->condition.slot];
  return kl_memory_at(&s->memory, at, x->condition_bytes);
}

static void run_steps(session *s, size_t first, size_t count);

// Case by case, until the number is at hand; what has none is the last.
static void run_branch(session *s, size_t i) {
  const kiln_step *x = &s->m->steps[i];
  int32_t number;
  const char *condition = condition_at(s, x);
  if (x->condition_bytes == 4)
    memcpy(&number, condition, 4);
  else
    number = *condition ? 0 : 1;
  size_t at = i + 1;
  for (size_t k = 0; k < x->count; at += 1 + s->m->steps[at].body, k++) {
    ck_assert_int_eq(s->m->steps[at].kind, KILN_STEP_CASE);
    if (number >= 0 && k == (size_t)number) return run_steps(s, at + 1, s->m->steps[at].body);
    if (k + 1 == x->count) return run_steps(s, at + 1, s->m->steps[at].body);
  }
}

static void run_steps(session *s, size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) {
    const kiln_step *x = &s->m->steps[i];
    for (size_t k = 0; x->kind == KILN_STEP_LAUNCHES && k < x->count; k++) run_launch(s, &s->m->launches[x->first + k]);
    if (x->kind == KILN_STEP_LAUNCHES) continue;
    for (uint64_t k = 0; x->kind == KILN_STEP_REPEAT && k < x->times; k++) run_steps(s, i + 1, x->body);
    if (x->kind == KILN_STEP_BRANCH) run_branch(s, i);
    if (x->kind == KILN_STEP_WHILE) {
      const char *again = condition_at(s, x);
      for (run_steps(s, i + 1, x->count); *again; run_steps(s, i + 1, x->count))
        run_steps(s, i + 1 + x->count, x->body);
      i += x->count;
    }
    i += x->body;
  }
}

static void run(session *s, const kiln_artifact *a, const void *const *params, void *const *results) {
  kl_memory_init(&s->memory, s->cx, UINT64_MAX);
  size_t n = 0, slots = s->m->parameter_count + s->m->result_count;
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &n);
  ck_assert_uint_le(slots, MOST);
  if (s->m->launch_count && kl_load(s->cx, &s->memory, "kernel", (kl_str){ptx, n}, &s->code)) failed(s->cx, "loading");
  for (size_t k = 0; k < slots; k++) {
    const kiln_slot *slot = &s->m->slots[k];
    const void *p = slot->result ? results[slot->index] : params[slot->index];
    s->at[k] = slot->by_value ? value_of(slot, p) : upload(s, slot, p);
  }
  if (s->m->scratch_bytes)
    ck_assert_int_eq(kl_memory_alloc(&s->memory, s->m->scratch_bytes, KL_REGION_USER, KL_STR(""), &s->scratch),
                     KILN_OK);
  uint64_t zero = s->m->scratch_zero_bytes;
  if (zero) memset(kl_memory_at(&s->memory, s->scratch, zero), 0, zero);
  if (zero) kl_memory_define(&s->memory, s->scratch, zero);
  uint64_t constants = s->m->constant_bytes;
  if (constants) memcpy(kl_memory_at(&s->memory, s->scratch + zero, constants), s->m->constants, constants);
  if (constants) kl_memory_define(&s->memory, s->scratch + zero, constants);
  for (size_t k = 0; k < s->m->launch_count && !s->m->step_count; k++) run_launch(s, &s->m->launches[k]);
  run_steps(s, 0, s->m->step_count);
  for (uint64_t i = 0; i < zero; i++)
    EXPECT(((const uint8_t *)kl_memory_at(&s->memory, s->scratch, zero))[i] == 0, "a counter is not zero again");
  EXPECT(!constants || memcmp(kl_memory_at(&s->memory, s->scratch + zero, constants), s->m->constants, constants) == 0,
         "constants have changed");
}

static char *bytes_at(const session *s, size_t k) {
  return kl_memory_at(&s->memory, s->buffers[k].address, s->buffers[k].bytes);
}

static void finish(session *s) {
  kl_unload(s->cx, s->code);
  kl_memory_free(&s->memory);
}

// Lanes, warps and blocks in another order leave the same bytes.
static void run_shuffled(const session *s, const kiln_artifact *a, const void *const *params, void *const *results,
                         uint64_t seed) {
  session t = {.cx = s->cx, .m = s->m, .count = s->count, .shuffle = seed};
  run(&t, a, params, results);
  for (size_t k = 0; k < s->n; k++)
    EXPECT(!s->buffers[k].result || memcmp(bytes_at(s, k), bytes_at(&t, k), s->buffers[k].bytes) == 0,
           "in the order of seed %llu a result is another one", (unsigned long long)seed);
  finish(&t);
}

// Of kernels whose threads see each other's values one in two, of others one in sixteen.
static bool is_run_again(const session *s) {
  static uint64_t alone, together;
  return s->shares ? share_has(together++, 2) : share_has(alone++, 16);
}

void gpu_sim_run(kiln_context *cx, const kiln_artifact *a, const void *const *params, void *const *results,
                 int64_t count) {
  static uint64_t seed;
  session s = {.cx = cx, .m = kiln_artifact_manifest(a), .count = count};
  gpu_cuda_run *gpu = gpu_cuda_begin(cx, a, params, results, count);
  if (gpu_sim_order_shows) s.shuffle = ++seed;
  run(&s, a, params, results);
  if (!gpu_sim_order_shows && is_run_again(&s)) run_shuffled(&s, a, params, results, ++seed);
  for (size_t k = 0; k < s.n; k++) {
    uint64_t at, left;
    EXPECT(!s.buffers[k].result ||
               !kl_memory_find_undefined(&s.memory, s.buffers[k].address, s.buffers[k].bytes, &at, &left),
           "%llu bytes of a result are not written", (unsigned long long)left);
    if (s.buffers[k].result) memcpy((void *)(uintptr_t)s.buffers[k].host, bytes_at(&s, k), s.buffers[k].bytes);
  }
  gpu_cuda_end(gpu, results, !gpu_sim_order_shows && !gpu_sim_perturb && s.m->numerics == KILN_NUMERICS_STRICT);
  finish(&s);
}
