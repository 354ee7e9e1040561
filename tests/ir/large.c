// Texts of great size take time by their size: each row took a hundred times as long where something was looked for
// again and again.
#include "support/context.h"
#include "base/base.h"

#include <stdio.h>
#include <time.h>

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void devices(kl_sb *b, int n) {
  kl_sbf(b, "  ROOT r = f32[%lld] all-gather(x), dimensions={0}, replica_groups={{", 4 * (long long)n);
  for (int i = 0; i < n; i++) kl_sbf(b, i ? ",%d" : "%d", (int)((i * 7919LL) % n));
  kl_sb_puts(b, "}}\n");
}

// The last one is there twice.
static void twin_devices(kl_sb *b, int n) {
  kl_sb_puts(b, "  ROOT r = f32[4] all-reduce(x), to_apply=add, replica_groups={");
  for (int i = 0; i <= n; i++) kl_sbf(b, i ? ",{%d}" : "{%d}", i < n ? i : n - 1);
  kl_sb_puts(b, "}\n");
}

static void pairs(kl_sb *b, int n) {
  kl_sb_puts(b, "  ROOT r = f32[4] collective-permute(x), source_target_pairs={");
  for (int i = 0; i < n; i++) kl_sbf(b, i ? ",{%d,%d}" : "{%d,%d}", i, n - 1 - i);
  kl_sb_puts(b, "}\n");
}

// Behind so many MB on one line.
static void findings_far_behind(kl_sb *b, int n) {
  char *filler = malloc((1 << 20) + 1);
  memset(filler, '-', 1 << 20);
  filler[1 << 20] = 0;
  kl_sb_puts(b, "  /*");
  for (int i = 0; i < n; i++) kl_sb_puts(b, filler);
  kl_sb_puts(b, "*/ y = f32[4] add(x)");
  for (int i = 0; i < 1000; i++) kl_sbf(b, " y%d = f32[4] add(x)", i);
  kl_sb_puts(b, "\n");
  free(filler);
}

static void misspelt(kl_sb *b, int n) {
  for (int i = 0; i < n; i++) kl_sbf(b, "  y%d = f32[4] negate(no%d)\n", i, i);
}

static const struct {
  const char *what;
  void (*put)(kl_sb *, int);
  int n;
  kiln_status status;
} rows[] = {
    {"devices of a group", devices, 200000, KILN_OK},
    {"devices, one of them twice", twin_devices, 200000, KILN_E_INVALID},
    {"pairs of devices", pairs, 200000, KILN_OK},
    {"findings behind a long line", findings_far_behind, 100, KILN_E_INVALID},
    {"names that are not there", misspelt, 100000, KILN_E_INVALID},
};

static double seconds_of(const kl_sb *b, kiln_status want) {
  kiln_module *m = NULL;
  kiln_diagnostics_clear(cx);
  double begin = cpu_seconds();
  kiln_status s = kiln_module_parse(cx, "test", b->p, b->n, &m);
  double took = cpu_seconds() - begin;
  ck_assert_msg(s == want, "status %d: %s", s, last_finding());
  kiln_module_destroy(&m);
  return took;
}

static void begin_module(kl_sb *b) {
  kl_sb_init(b, cx);
  kl_sb_puts(b, "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
                "ENTRY e {\n  x = f32[4] parameter(0)\n");
}

START_TEST(time_grows_by_size) {
  kl_sb b;
  begin_module(&b);
  rows[_i].put(&b, rows[_i].n);
  kl_sb_puts(&b, "}\n");
  double took = seconds_of(&b, rows[_i].status);
  printf("# %d %s: %.3f s\n", rows[_i].n, rows[_i].what, took);
  ck_assert_msg(took < 3, "%d %s took %.1f s", rows[_i].n, rows[_i].what, took);
  kl_sb_free(&b);
}
END_TEST

// What an opcode is similar to is looked for once each, and costs about as much as to read the line.
START_TEST(unknown_opcodes_cost_little) {
  static const char *const ends[] = {"", "-done", "-start"};
  enum { N = 20000 };
  kl_sb b;
  double took[2];
  for (int unknown = 0; unknown < 2; unknown++) {
    begin_module(&b);
    for (int i = 0; i < N; i++) {
      char name[40] = "negate";
      if (unknown)
        snprintf(name, sizeof name, "qz%c%c%c%cxw%s", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676 % 26,
                 'a' + i / 17576, ends[i % 3]);
      kl_sbf(&b, "  y%d = f32[4] %s(x), metadata={op_name=\"jit(step)/layer_%d/mul\" source_line=%d}\n", i, name, i, i);
    }
    kl_sb_puts(&b, "}\n");
    took[unknown] = seconds_of(&b, KILN_OK);
    for (int again = 0; again < 2; again++) {
      double t = seconds_of(&b, KILN_OK);
      if (t < took[unknown]) took[unknown] = t;
    }
    kl_sb_free(&b);
  }
  printf("# %d lines of known opcodes: %.3f s, of unknown ones: %.3f s\n", N, took[0], took[1]);
  ck_assert_msg(took[1] < 8 * took[0], "known opcodes: %.3f s, unknown ones: %.3f s", took[0], took[1]);
}
END_TEST

int main(void) {
  return RUN_TESTS("large", ONCE(make_context, drop_context), {time_grows_by_size, KL_COUNT(rows)},
                   {unknown_opcodes_cost_little});
}
