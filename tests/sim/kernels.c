// CUDA kernels that nvcc compiled, each with launches of three sizes: what they leave in memory against what the same
// source does on the host. PTX is taken from tests/sim/kernels/ptx; KILN_CUDA_PTX names a folder of more, as
// tests/sim/kernels/build makes it. Each launch also runs under the checks, which find nothing. A share of 1 tries all
// launches, a smaller one a fourth of its part.

#include "case_run.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>

// Does the module have the kernel? Those for newer devices are left out of older ones' PTX.
static bool has_kernel(const char *where, const char *text, const kernel_row *row) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_ptx_module *m = NULL;
  bool has = false;
  if (kl_ptx_parse(cx, where, kl_str_of(text), &m))
    ck_abort_msg("%s: parsing: %s", where, kiln_diagnostics_get(cx, 0)->text);
  for (uint32_t k = 0; k < m->nfuncs; k++) has |= m->funcs[k].entry && kl_str_is(m->funcs[k].name, row->name);
  has &= m->sm >= row->min_sm;
  kl_ptx_free(cx, m);
  kiln_context_destroy(&cx);
  return has;
}

static void run_checked(case_run *r, const char *where) {
  kl_checks checks;
  kiln_status s = case_check(r, &checks);
  if (checks.report.found.n) {
    kl_sb text;
    const kl_found *f = &checks.report.found.p[0];
    kl_sb_init(&text, r->s.cx);
    kl_report_put(&text, f);
    ck_abort_msg("%s, size %u: line %u: %s", where, r->c->size, f->at.instr ? f->at.instr->at.line : 0, text.p);
  }
  ck_assert_msg(s == KILN_OK, "%s, size %u: %s", where, r->c->size, stage_why(&r->s));
  kl_checks_free(&checks);
}

static void run_case(const char *where, const char *text, const kernel_case *c, bool checked) {
  case_run r;
  kl_fault fault;
  char message[512];
  ck_assert_msg(case_open(&r, kl_str_of(text), c), "%s: %s", where, stage_why(&r.s));
  if (checked)
    run_checked(&r, where);
  else
    ck_assert_msg(kl_launch_run(r.s.cx, &r.s.m, &r.launch, &fault) == KILN_OK, "%s: %s", where, stage_why(&r.s));
  EXPECT(case_agrees(&r, message, sizeof message), "%s, size %u: %s", where, c->size, message);
  case_close(&r);
}

static unsigned number, ran;

static void run_row(const kernel_row *row, const char *root, const char *folder) {
  char where[256], *text = case_text(root, folder, row->file);
  if (!text) text = case_text_alike(root, folder, row->file);
  if (!text) return;
  snprintf(where, sizeof where, "%s/%s: %s", folder, row->file, row->name);
  bool has = has_kernel(where, text, row);
  for (uint32_t size = 0; has && size < KERNEL_SIZES; size++) {
    if (!share_has(number++, test_share() < 1 ? 4 : 1)) continue;
    kernel_case *c = kernel_case_new(row, size, false);
    ck_assert_msg(c != NULL, "%s: no expectation", where);
    run_case(where, text, c, false);
    run_case(where, text, c, true);
    kernel_case_free(c);
    ran++;
  }
  free(text);
}

START_TEST(does_what_the_host_does) {
  const kernel_row *row = kernel_row_at((size_t)_i);
  const char *more = getenv("KILN_CUDA_PTX");
  for (size_t k = 0; k < CASE_FOLDERS; k++) {
    run_row(row, KL_TESTS "/sim/kernels/ptx", case_folders[k]);
    if (more) run_row(row, more, case_folders[k]);
  }
}
END_TEST

START_TEST(launches_ran) {
  printf("# %u launches\n", ran);
  ck_assert_uint_gt(number, 600);
  ck_assert_uint_gt(ran, 0);
}
END_TEST

int main(void) {
  int n = 0;
  while (kernel_row_at((size_t)n)) n++;
  return RUN_TESTS("kernels", NO_FRAME, {does_what_the_host_does, n}, {launches_ran});
}
