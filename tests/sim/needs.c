// Instructions that not every version of PTX and not every target has: the simulator refuses what ptxas refuses, by
// line and name. What ptxas says is noted here, and asked again where it is installed.
#include "stage.h"
#include "support/ptxas.h"
#include "support/suite.h"

#include <stdio.h>

// Targets that an instruction is for; bits of `targets`.
static const char *const targets[] = {"sm_75",   "sm_80",  "sm_89",   "sm_90",  "sm_90a",  "sm_100", "sm_100f",
                                      "sm_100a", "sm_103", "sm_103a", "sm_120", "sm_120f", "sm_121a"};
enum { ALL = 0x1fff, FROM_100 = 0x1fe0, OWN = 1 << 7 | 1 << 9, SPECIFIC = 1 << 4 | 1 << 6 | 1 << 7 | 1 << 9 | 3 << 11 };
static const unsigned versions[] = {78, 80, 85, 86, 87, 88, 90};

static const struct {
  const char *text;
  unsigned version, targets;
  const char *named; // in the refusal
} rows[] = {
    {"max.f32 %f1, %f2, %f3, %f4;", 88, FROM_100, "three inputs"},
    {"min.ftz.NaN.f32 %f1, %f2, %f3, %f4;", 88, FROM_100, "three inputs"},
    {"min.abs.f32 %f1, %f2, %f3, %f4;", 88, FROM_100, "three inputs"},
    {"cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;", 87, OWN, "stochastic rounding"},
    {"cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;", 87, OWN, "stochastic rounding"},
    {"ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d1];", 88, FROM_100, "an access of 256 bits"},
    {"ld.global.v4.b64 {%d2, %d3, %d4, %d5}, [%d1];", 88, FROM_100, "an access of 256 bits"},
    {"ld.global.nc.v8.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%d1];", 88, FROM_100, "an access of 256 bits"},
    {"st.global.v8.f32 [%d1], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};", 88, FROM_100, "an access of 256 bits"},
    {"add.rn.f32x2 %d1, %d2, %d3;", 86, FROM_100, "pairs of f32"},
    {"sub.f32x2 %d1, %d2, %d3;", 86, FROM_100, "pairs of f32"},
    {"mul.ftz.f32x2 %d1, %d2, %d3;", 86, FROM_100, "pairs of f32"},
    {"fma.rn.f32x2 %d1, %d2, %d3, %d4;", 86, FROM_100, "pairs of f32"},
    {"setmaxnreg.inc.sync.aligned.u32 64;", 80, SPECIFIC, "setmaxnreg"},
    // and what is like these, which all have
    {"max.f32 %f1, %f2, %f3;", 78, ALL, NULL},
    {"ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d1];", 78, ALL, NULL},
    {"ld.global.v2.b64 {%d2, %d3}, [%d1];", 78, ALL, NULL},
    {"add.rn.f32 %f1, %f2, %f3;", 78, ALL, NULL},
    {"cvt.rn.f16.f32 %h1, %f1;", 78, ALL, NULL},
};
enum { LINE = 10 };

static int write_module(char *out, size_t size, const char *target, unsigned version, const char *text) {
  return snprintf(out, size,
                  ".version %u.%u\n.target %s\n.address_size 64\n.visible .entry k()\n{\n.reg .b16 %%h<9>;\n"
                  ".reg .b32 %%r<9>;\n.reg .f32 %%f<9>;\n.reg .b64 %%d<9>;\n%sret;\n}\n",
                  version / 10, version % 10, target, text);
}

static bool has(size_t row, size_t target, unsigned version) {
  return version >= rows[row].version && rows[row].targets >> target & 1;
}

static void try_one(size_t row, size_t target, unsigned version) {
  char ptx[1024], line[256];
  snprintf(line, sizeof line, "%s\n", rows[row].text);
  write_module(ptx, sizeof ptx, targets[target], version, line);
  stage s;
  stage_open(&s);
  bool taken = stage_load(&s, kl_str_of(ptx), "k");
  EXPECT(taken == has(row, target, version), "%s, PTX %u for %s: %s %s", rows[row].text, version, targets[target],
         taken ? "taken" : "refused", stage_why(&s));
  if (!taken) {
    const kiln_diagnostic *d = kiln_diagnostics_get(s.cx, 0);
    ck_assert_uint_eq(kiln_diagnostics_count(s.cx), 1);
    ck_assert_uint_eq(d->line, LINE);
    EXPECT(strstr(d->text, rows[row].named), "%s: not named in: %s", rows[row].text, d->text);
  }
  stage_close(&s);
}

START_TEST(as_noted) {
  for (size_t t = 0; t < KL_COUNT(targets); t++)
    for (size_t v = 0; v < KL_COUNT(versions); v++) try_one((size_t)_i, t, versions[v]);
}
END_TEST

// What ptxas says of all rows at once, one a line; some errors it only finds once others are gone.
static void ask(size_t target, unsigned version) {
  bool refused[KL_COUNT(rows)] = {false}, wrong[LINE + KL_COUNT(rows) + 4];
  for (bool more = true; more;) {
    char ptx[8192], body[4096];
    size_t n = 0;
    for (size_t k = 0; k < KL_COUNT(rows); k++)
      n += (size_t)snprintf(body + n, sizeof body - n, "%s\n", refused[k] ? "" : rows[k].text);
    int size = write_module(ptx, sizeof ptx, targets[target], version, body);
    if (!ptxas_lines(ptx, (size_t)size, targets[target], wrong, KL_COUNT(wrong))) return; // it has no such target
    more = false;
    for (size_t k = 0; k < KL_COUNT(rows); k++)
      if (wrong[LINE - 1 + k] && !refused[k]) refused[k] = more = true;
  }
  for (size_t k = 0; k < KL_COUNT(rows); k++)
    EXPECT(refused[k] != has(k, target, version), "ptxas %s %s in PTX %u for %s", refused[k] ? "refuses" : "takes",
           rows[k].text, version, targets[target]);
}

START_TEST(as_ptxas) {
  if (!ptxas_path()) return;
  for (size_t t = 0; t < KL_COUNT(targets); t++) ask(t, 90);
  for (size_t v = 0; v + 1 < KL_COUNT(versions); v++) {
    ask(0, versions[v]);
    if (versions[v] >= 80) ask(4, versions[v]); // sm_90a is of PTX 8.0
    if (versions[v] >= 86) ask(7, versions[v]); // sm_100a of 8.6
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("needs", NO_FRAME, {as_noted, (int)KL_COUNT(rows)}, {as_ptxas, 1});
}
