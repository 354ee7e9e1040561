// CUDA kernels that nvcc compiled, each with launches of three sizes: what they leave in memory against what the same
// source does on the host. PTX is taken from tests/sim/kernels/ptx; KILN_CUDA_PTX names a folder of more, as
// tests/sim/kernels/build makes it. Each launch also runs under the checks, which find nothing.

#include "kernels/kernels.h"
#include "sim/check/checks.h"
#include "support/suite.h"

#include <stdio.h>

static const char *const folders[] = {"sm_75", "sm_80", "sm_90", "sm_75-g", "sm_80-g", "sm_90-g"};

// --- modules ------------------------------------------------------------------------------------------------------

typedef struct text {
  char *p;
  size_t n;
} text;

static bool read_text(const char *root, const char *folder, const char *file, text *out) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s/%s.ptx", root, folder, file);
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  fseek(f, 0, SEEK_END);
  out->n = (size_t)ftell(f);
  rewind(f);
  out->p = malloc(out->n + 1);
  out->n = fread(out->p, 1, out->n, f);
  fclose(f);
  return true;
}

// Does the module have the kernel? Those for newer devices are left out of older ones' PTX.
static bool has_kernel(const kl_ptx_module *m, const char *name) {
  for (uint32_t k = 0; k < m->nfuncs; k++)
    if (m->funcs[k].entry && kl_str_is(m->funcs[k].name, name)) return true;
  return false;
}

static void give_up(kiln_context *cx, const char *where, const char *what) {
  size_t n = kiln_diagnostics_count(cx);
  ck_abort_msg("%s: %s: %s", where, what, n ? kiln_diagnostics_get(cx, n - 1)->text : "");
}

// --- one launch ---------------------------------------------------------------------------------------------------

static uint64_t place(kl_memory *m, const kl_loaded *l, const kernel_buffer *b) {
  uint64_t address = 0, bytes = b->bytes;
  if (b->symbol)
    ck_assert_msg(kl_loaded_variable(l, kl_str_of(b->symbol), &address, &bytes), "no variable %s", b->symbol);
  else
    ck_assert_int_eq(kl_memory_alloc(m, bytes ? bytes : 1, KL_REGION_USER, KL_STR(""), &address), KILN_OK);
  if (b->before && b->bytes) {
    memcpy(kl_memory_at(m, address, b->bytes), b->before, b->bytes);
    kl_memory_define(m, address, b->bytes);
  }
  return address;
}

static void put_arguments(const kl_kernel *k, const kernel_case *c, const uint64_t *address, char *params) {
  for (uint32_t n = 0; n < c->narg; n++) {
    uint32_t at = 0, bytes = 0;
    kl_kernel_param(k, n, &at, &bytes);
    ck_assert_uint_le(at + bytes, 4096);
    memcpy(params + at, c->args[n].value.bytes, bytes < c->args[n].size ? bytes : c->args[n].size);
    for (uint32_t p = 0; p < c->npatch; p++)
      if (c->patches[p].arg == n) memcpy(params + at + c->patches[p].offset, &address[c->patches[p].buffer], 8);
  }
}

// Under the checks: what is undefined before and looked at afterwards must be written, what is not looked at need not.
static void run_checked(kiln_context *cx, const char *where, kl_memory *m, const kernel_case *c,
                        const uint64_t *address, const kl_launch *l) {
  kl_checks checks;
  kl_fault fault;
  kl_checks_init(&checks, cx, m, KL_CHECK_ALL);
  for (uint32_t b = 0; b < c->nbuffer; b++) {
    const kernel_buffer *one = &c->buffers[b];
    if (one->compare == KERNEL_UNSEEN)
      kl_checks_use(&checks, address[b], one->bytes, KL_USE_SCRATCH);
    else if (!one->before && !one->symbol)
      kl_checks_use(&checks, address[b], one->bytes, KL_USE_OUTPUT);
  }
  kiln_status s = kl_checks_run(&checks, l, &fault);
  if (checks.report.found.n) {
    kl_sb text;
    const kl_found *f = &checks.report.found.p[0];
    kl_sb_init(&text, cx);
    kl_report_put(&text, m, f);
    ck_abort_msg("%s, size %u: line %u: %s", where, c->size, f->at.instr ? f->at.instr->at.line : 0, text.p);
  }
  if (s) give_up(cx, where, "running under checks");
  kl_checks_free(&checks);
}

static void run_case(kiln_context *cx, const char *where, text t, const kernel_case *c, bool checked) {
  kl_memory m;
  kl_loaded *l = NULL;
  kl_kernel *k = NULL;
  kl_fault fault;
  char params[4096] = {0}, message[512];
  uint64_t address[KERNEL_MAX_BUFFERS];
  kl_memory_init(&m, cx, UINT64_MAX);
  if (kl_load(cx, &m, where, (kl_str){t.p, t.n}, &l)) give_up(cx, where, "loading");
  if (kl_kernel_prepare(cx, l, kl_str_of(c->row->name), &k)) give_up(cx, where, "decoding");
  for (uint32_t b = 0; b < c->nbuffer; b++) address[b] = place(&m, l, &c->buffers[b]);
  put_arguments(k, c, address, params);
  kl_launch launch = {.kernel = k,
                      .grid = {c->grid[0], c->grid[1], c->grid[2]},
                      .block = {c->block[0], c->block[1], c->block[2]},
                      .dynamic_shared = c->dynamic_shared,
                      .params = params,
                      .cooperative = c->cooperative};
  if (c->cluster[0] * c->cluster[1] * c->cluster[2] > 1) memcpy(launch.cluster, c->cluster, sizeof launch.cluster);
  if (checked)
    run_checked(cx, where, &m, c, address, &launch);
  else if (kl_launch_run(cx, &m, &launch, &fault))
    give_up(cx, where, "running");
  for (uint32_t b = 0; b < c->nbuffer; b++)
    if (c->buffers[b].bytes)
      EXPECT(kernel_case_agrees(c, b, kl_memory_at(&m, address[b], c->buffers[b].bytes), message, sizeof message),
             "%s, size %u, buffer %u: %s", where, c->size, b, message);
  kl_unload(cx, l);
  kl_memory_free(&m);
}

static unsigned ran;

static void run_row(const kernel_row *row, const char *root, const char *folder) {
  text t = {0};
  char where[256];
  kl_ptx_module *ptx = NULL;
  if (!read_text(root, folder, row->file, &t)) return;
  kiln_context *cx = kiln_context_create(NULL);
  snprintf(where, sizeof where, "%s/%s: %s", folder, row->file, row->name);
  if (kl_ptx_parse(cx, where, (kl_str){t.p, t.n}, &ptx)) give_up(cx, where, "parsing");
  bool has = has_kernel(ptx, row->name) && ptx->sm >= row->min_sm;
  kl_ptx_free(cx, ptx);
  for (uint32_t size = 0; has && size < KERNEL_SIZES; size++) {
    kernel_case *c = kernel_case_new(row, size, false);
    ck_assert_msg(c != NULL, "%s: no expectation", where);
    run_case(cx, where, t, c, false);
    run_case(cx, where, t, c, true);
    kernel_case_free(c);
    kiln_diagnostics_clear(cx);
    ran++;
  }
  kiln_context_destroy(&cx);
  free(t.p);
}

START_TEST(does_what_the_host_does) {
  const kernel_row *row = kernel_row_at((size_t)_i);
  const char *more = getenv("KILN_CUDA_PTX");
  for (size_t k = 0; k < KL_COUNT(folders); k++) {
    run_row(row, KL_TESTS "/sim/kernels/ptx", folders[k]);
    if (more) run_row(row, more, folders[k]);
  }
}
END_TEST

START_TEST(launches_ran) {
  printf("# %u launches\n", ran);
  ck_assert_uint_gt(ran, 150);
}
END_TEST

int main(void) {
  int n = 0;
  while (kernel_row_at((size_t)n)) n++;
  return RUN_TESTS("kernels", NO_FRAME, {does_what_the_host_does, n}, {launches_ran});
}
