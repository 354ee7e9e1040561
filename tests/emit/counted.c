// What is counted of plans is what the simulator counts of their kernels: of examples, fusions and workloads.

#include "counts.h"
#include "support/gen.h"
#include "support/share.h"
#include "support/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const targets[] = {"sm_75", "sm_90"};

static unsigned compared, left_out, fewer;

static void one(kiln_context *cx, const char *name, const char *text, size_t size, const char *target) {
  kiln_module *m = NULL;
  char why[256];
  ck_assert_msg(kiln_module_parse(cx, name, text, size, &m) == KILN_OK, "%s", name);
  kiln_compile_params p = {
      .struct_size = sizeof p, .target = target, .keep = KILN_KEEP_EXPLAIN, .separate_launches = true};
  kiln_artifact *a = NULL;
  kiln_status st = kiln_compile(cx, m, &p, &a);
  ck_assert_msg(st == KILN_OK || st == KILN_E_UNSUPPORTED, "%s for %s is not compiled", name, target);
  int differ = st == KILN_OK ? counts_differ(cx, m, a, why, sizeof why) : 3;
  kiln_diagnostics_clear(cx);
  kiln_artifact_destroy(&a);
  ck_assert_msg(differ != 1, "%s for %s: %s\n%.3000s", name, target, why, text);
  compared += differ == 0;
  left_out += differ == 2;
  fewer += differ == 4;
  kiln_module_destroy(&m);
}

// --- files ----------------------------------------------------------------------------------------------------------

enum { RANDOM = 1 }; // fusions that nobody wrote by hand
static const char *const folders[] = {KL_EXAMPLES, KL_TESTS "/fusions", KL_TESTS "/../benchmarks/workloads/small"};

// Of files and targets one in four, in whatever order they come.
START_TEST(files) {
  kiln_context *cx = kiln_context_create(NULL);
  DIR *d = opendir(folders[_i]);
  ck_assert_msg(d != NULL, "cannot open %s", folders[_i]);
  compared = left_out = fewer = 0;
  for (struct dirent *e; (e = readdir(d));) {
    char path[1024];
    size_t n = strlen(e->d_name);
    if (n < 4 || strcmp(e->d_name + n - 4, ".hlo") != 0) continue;
    uint64_t name = 0;
    for (const char *p = e->d_name; *p; p++) name = name * 31 + (uint8_t)*p;
    snprintf(path, sizeof path, "%s/%s", folders[_i], e->d_name);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "cannot open %s", path);
    char *text = calloc(1, 1 << 18);
    size_t size = fread(text, 1, 1 << 18, f);
    fclose(f);
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
      if (share_has(name + t, 4)) one(cx, e->d_name, text, size, targets[t]);
    free(text);
  }
  closedir(d);
  printf("# %u agree, of %u data decides, of %u some loads were cut\n", compared, left_out, fewer);
  if (test_share() >= 1) ck_assert(compared > 3 * left_out && (_i != RANDOM || fewer < compared));
  ck_assert(_i == RANDOM || fewer == 0);
  kiln_context_destroy(&cx);
}
END_TEST

// --- found ----------------------------------------------------------------------------------------------------------

// What random fusions have found: lanes that leave loops one after the other and then exchange; copies of narrow floats
// whose element there is in no thread; a load that nothing takes, and one of the same place in a branch; lanes that go
// round on their own, after all did; shared memory whose size the launch says.
static const char *const found[] = {
    "HloModule m\nENTRY e { x = f32[4096] parameter(0) a = f32[4096] add(x, x) b = f32[4096] multiply(a, a)\n"
    "c = f32[4096] multiply(b, a) d = f32[4096] remainder(c, a) p = pred[4096] convert(d)\n"
    "ROOT t = (f32[4096], pred[4096]) tuple(d, p) }\n",
    "HloModule m\nENTRY e { x = f8e3m4[7] parameter(0) u = u1[7] convert(x)\n"
    "c = u1[21] concatenate(u, u, u), dimensions={0} ROOT r = u1[21] count-leading-zeros(c) }\n",
    "HloModule m\nadd { a = f16[] parameter(0) b = f16[] parameter(1) ROOT r = f16[] add(a, b) }\n"
    "ENTRY e { x = f16[33,5] parameter(0) z = f16[] constant(0) n = f16[33,5] negate(x)\n"
    "s = f16[5] reduce(x, z), dimensions={0}, to_apply=add t = f16[5] reduce(n, z), dimensions={0}, to_apply=add\n"
    "ROOT r = (f16[5], f16[5]) tuple(s, t) }\n",
    "HloModule m\nfirst { a = s2[] parameter(0) b = s2[] parameter(1) ROOT r = s2[] copy(a) }\n"
    "ENTRY e { x = s2[4] parameter(0) h = s2[1] slice(x), slice={[0:1]} z = s2[] reshape(h)\n"
    "s = s2[] reduce(x, z), dimensions={0}, to_apply=first k = s8[] constant(0) d = s8[] divide(k, k)\n"
    "ROOT r = (s8[], s2[]) tuple(d, s) }\n",
    "HloModule m\nENTRY e { a = c128[105,105] parameter(0) b = c128[1,105] parameter(1)\n"
    "ROOT y = c128[1,105] triangular-solve(a, b), left_side=false, lower=true, unit_diagonal=false, "
    "transpose_a=ADJOINT }\n",
    "HloModule m\nENTRY e { a = c128[64,64] parameter(0) b = c128[64,33] parameter(1)\n"
    "ROOT y = c128[64,33] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=true, "
    "transpose_a=NO_TRANSPOSE }\n",
};

START_TEST(what_was_found) {
  kiln_context *cx = kiln_context_create(NULL);
  compared = 0;
  for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
    one(cx, "found", found[_i], strlen(found[_i]), targets[t]);
  ck_assert_uint_eq(compared, sizeof targets / sizeof *targets);
  kiln_context_destroy(&cx);
}
END_TEST

// --- random fusions -------------------------------------------------------------------------------------------------

START_TEST(random_fusions) {
  kiln_context *cx = kiln_context_create(NULL);
  compared = left_out = fewer = 0;
  for (unsigned seed = 0, n = (unsigned)share_up_to(100, UINT32_MAX); seed < n; seed++) {
    gen_source src = {.seed = (seed + 1) * 0x9e3779b97f4a7c15ull};
    kl_sb text;
    char name[32];
    snprintf(name, sizeof name, "seed %u", seed);
    kl_sb_init(&text, cx);
    gen_fusion(&src, 3 + seed % 29, &text);
    one(cx, name, text.p, text.n, targets[seed % 2]);
    kl_sb_free(&text);
  }
  printf("# %u agree, of %u data decides, of %u some loads were cut\n", compared, left_out, fewer);
  ck_assert_uint_gt(compared, fewer + left_out);
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  return RUN_TESTS("counted", NO_FRAME, {files, 3}, {what_was_found, sizeof found / sizeof *found}, {random_fusions});
}
