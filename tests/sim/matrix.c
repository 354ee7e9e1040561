// ldmatrix and stmatrix: which element goes where, as the figures of PTX ISA 9.7.14.5.15 and 9.7.14.5.16 have it; what
// they count as; what the checks say.
#include "count/profile.h"
#include "sim/check/checks.h"
#include "stage.h"
#include "support/ptxas.h"

enum { LANES = 32, ROW = 16 };

// Thread t has %r5 = s + t * PITCH, where a row of 16 bytes of the input, %rd1 + 16 t, is put; %rd2 are 16 bytes of the
// output. %r10 to %r13 are what it is given. Rows of lanes that no matrix has are named 1, which is no address of a
// row.
#define BEGIN(lanes, pitch)                                                                                            \
  HEADER ".shared .align 16 .b8 s[8192];\n.visible .entry k(.param .u64 in, .param .u64 out) {\n.reg .pred %p<9>;\n"   \
         ".reg .b32 %r<40>;\n.reg .b64 %rd<9>;\nmov.u32 %r1, %tid.x;\nld.param.u64 %rd1, [in];\nld.param.u64 %rd2, "   \
         "[out];\nmul.wide.u32 %rd3, %r1, 16;\nadd.u64 %rd1, %rd1, %rd3;\nadd.u64 %rd2, %rd2, %rd3;\nmov.u32 %r4, "    \
         "s;\nmad.lo.u32 %r5, %r1, " pitch ", %r4;\nmov.u32 %r6, %r5;\nsetp.ge.u32 %p1, %r1, " lanes                   \
         ";\n@%p1 mov.u32 "                                                                                            \
         "%r6, 1;\nld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd1];\n"
#define PUT  "st.shared.v4.b32 [%r5], {%r10, %r11, %r12, %r13};\nmov.u32 %r11, 0;\nmov.u32 %r12, 0;\nmov.u32 %r13, 0;\n"
#define SYNC "bar.sync 0;\n"
#define TAKE "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r5];\n"
#define GIVE "st.global.v4.b32 [%rd2], {%r10, %r11, %r12, %r13};\nret;\n}\n"

#define LOAD(lanes, pitch, n, trans, regs)                                                                             \
  BEGIN(lanes, pitch) PUT SYNC "ldmatrix.sync.aligned.m8n8." n trans ".shared.b16 {" regs "}, [%r6];\n" GIVE
#define STORE(lanes, pitch, n, trans, regs)                                                                            \
  BEGIN(lanes, pitch)                                                                                                  \
  "st.shared.v4.b32 [%r5], {%r1, %r1, %r1, %r1};\n" SYNC "stmatrix.sync.aligned.m8n8." n trans                         \
  ".shared.b16 [%r6], {" regs "};\n" SYNC TAKE GIVE

static const struct {
  const char *ptx;
  unsigned count, pitch;
  bool transposed, store;
} rows[] = {
    {LOAD("32", "16", "x4", "", "%r10, %r11, %r12, %r13"), 4, 16, false, false},
    {LOAD("32", "16", "x4", ".trans", "%r10, %r11, %r12, %r13"), 4, 16, true, false},
    {LOAD("32", "144", "x4", "", "%r10, %r11, %r12, %r13"), 4, 144, false, false},
    {LOAD("32", "128", "x4", ".trans", "%r10, %r11, %r12, %r13"), 4, 128, true, false},
    {LOAD("16", "16", "x2", "", "%r10, %r11"), 2, 16, false, false},
    {LOAD("16", "32", "x2", ".trans", "%r10, %r11"), 2, 32, true, false},
    {LOAD("8", "16", "x1", "", "%r10"), 1, 16, false, false},
    {LOAD("8", "16", "x1", ".trans", "%r10"), 1, 16, true, false},
    {STORE("32", "16", "x4", "", "%r10, %r11, %r12, %r13"), 4, 16, false, true},
    {STORE("32", "128", "x4", ".trans", "%r10, %r11, %r12, %r13"), 4, 128, true, true},
    {STORE("16", "144", "x2", "", "%r10, %r11"), 2, 144, false, true},
    {STORE("16", "16", "x2", ".trans", "%r10, %r11"), 2, 16, true, true},
    {STORE("8", "16", "x1", "", "%r10"), 1, 16, false, true},
    {STORE("8", "16", "x1", ".trans", "%r10"), 1, 16, true, true},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

// The thread that has an element, and which half of its register it is.
static unsigned holder(bool transposed, unsigned row, unsigned column, unsigned *half) {
  unsigned along = transposed ? row : column, across = transposed ? column : row;
  *half = along % 2;
  return across * 4 + along / 2;
}

// What the threads write, of what they read: 8 elements of 16 bits each, as a row or as what matrices give them.
static void expected(int k, const uint16_t in[LANES][8], uint16_t out[LANES][8]) {
  for (unsigned t = 0; t < LANES; t++)
    for (unsigned e = 0; e < 8; e++) out[t][e] = rows[k].store && e % 2 == 0 ? (uint16_t)t : 0;
  for (unsigned m = 0; m < rows[k].count; m++)
    for (unsigned row = 0; row < 8; row++)
      for (unsigned column = 0; column < 8; column++) {
        unsigned half, t = holder(rows[k].transposed, row, column, &half);
        if (rows[k].store)
          out[8 * m + row][column] = in[t][2 * m + half];
        else
          out[t][2 * m + half] = in[8 * m + row][column];
      }
}

START_TEST(elements) {
  fixture f;
  uint16_t in[LANES][8], want[LANES][8], *given, *found;
  void *host;
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, sizeof in, &host)};
  given = host;
  for (unsigned n = 0; n < LANES * 8; n++) given[n] = (uint16_t)(0x8000 + 37 * n);
  memcpy(in, given, sizeof in);
  arguments[1] = fixture_memory(&f, sizeof want, &host);
  found = host;
  fixture_run(&f, rows[_i].ptx, (kiln_sim_launch_params){.grid = {1}, .block = {LANES}}, arguments, NULL);
  expected(_i, in, want);
  for (unsigned n = 0; n < LANES * 8; n++)
    EXPECT(found[n] == want[n / 8][n % 8], "thread %u, element %u: %x, not %x\n%s", n / 8, n % 8, found[n],
           want[n / 8][n % 8], rows[_i].ptx);
  fixture_close(&f);
  if (!ptxas_path()) return;
  ptxas_result r = ptxas_run(rows[_i].ptx, strlen(rows[_i].ptx), "sm_100");
  ck_assert_msg(r.ok, "%s", r.log);
}
END_TEST

// One request of all lanes; the rows of a matrix in one pass, unless they lie in the same banks.
START_TEST(counts) {
  fixture f;
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 2 * LANES * ROW, NULL), fixture_memory(&f, 2 * LANES * ROW, NULL)};
  fixture_run(&f, rows[_i].ptx, (kiln_sim_launch_params){.grid = {1}, .block = {LANES}}, arguments, NULL);
  const kiln_profile_line *l = line_with(&f, "matrix.sync", 0);
  const kiln_access_counts *a = access_of(l, rows[_i].store ? KILN_ACCESS_SHARED_STORE : KILN_ACCESS_SHARED_LOAD);
  unsigned n = rows[_i].count, passes = rows[_i].pitch == 128 ? 8 : rows[_i].pitch == 32 ? 2 : 1;
  ck_assert(l->kind == (rows[_i].store ? KILN_CLASS_STORE : KILN_CLASS_LOAD));
  ck_assert(l->warps == 1 && l->active == 32 && l->lanes == 32 && l->partial == 0);
  ck_assert(a->requests == 1 && a->lanes == 8 * n && a->bytes == 8 * n * ROW && a->width[4] == 1);
  ck_assert_uint_eq(a->wavefronts, n * passes);
  ck_assert_uint_eq(a->ideal_wavefronts, n);
  fixture_close(&f);
}
END_TEST

// --- lanes apart, faults, findings --------------------------------------------------------------------------------

#define X1(address) "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [" address "];\n"
// Halves of the warp come one after the other; the matrix is the same.
static const char parted[] = BEGIN("8", "16") PUT SYNC "and.b32 %r7, %r1, 1;\nsetp.eq.u32 %p2, %r7, 1;\n@%p2 bra "
                                                       "L;\nadd.u32 %r8, %r1, 1;\nL:\n" X1("%r6") GIVE;
static const char guarded[] = BEGIN("8", "16") PUT SYNC "setp.ge.u32 %p2, %r1, 99;\n@%p2 " X1("%r6") GIVE;

START_TEST(lanes_apart) {
  for (int k = 0; k < 2; k++) {
    fixture f;
    void *host;
    fixture_open(&f);
    uint64_t arguments[16] = {fixture_memory(&f, LANES * ROW, &host)};
    for (unsigned n = 0; n < LANES * 4; n++) ((uint32_t *)host)[n] = 5 + n;
    arguments[1] = fixture_memory(&f, LANES * ROW, &host);
    fixture_run(&f, k ? guarded : parted, (kiln_sim_launch_params){.grid = {1}, .block = {LANES}}, arguments, NULL);
    for (unsigned t = 0; t < LANES; t++) ck_assert_uint_eq(((uint32_t *)host)[4 * t], k ? 5 + 4 * t : 5 + t);
    fixture_close(&f);
  }
}
END_TEST

// A row is read and written by the lane that names it: %r5 and %r6 are another one's.
#define NEIGHBOUR "xor.b32 %r7, %r1, 1;\nmad.lo.u32 %r5, %r7, 16, %r4;\nmov.u32 %r6, %r5;\n"

// The first finding; -1: there is none.
static const struct {
  const char *ptx;
  int found;
} checked[] = {
    {BEGIN("8", "16") PUT SYNC X1("%r6") GIVE, -1},
    {BEGIN("8", "16") PUT NEIGHBOUR X1("%r6") GIVE, KL_FOUND_RACE},
    {BEGIN("8", "16") SYNC X1("%r6") GIVE, KL_FOUND_UNDEFINED_OUTPUT},
    {BEGIN("8", "16") PUT SYNC "add.u32 %r6, %r6, 8;\n" X1("%r6") GIVE, KL_FOUND_FAULT},
    {BEGIN("8", "16") PUT SYNC X1("%r20") GIVE, KL_FOUND_UNDEFINED_ADDRESS},
    {BEGIN("8", "16") "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r10};\n" SYNC
                      "setp.lt.u32 %p2, %r1, 8;\n@%p2 " TAKE GIVE,
     -1},
    {BEGIN("8", "16") "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r20};\n" SYNC
                      "setp.lt.u32 %p2, %r1, 8;\n@%p2 " TAKE GIVE,
     KL_FOUND_UNDEFINED_OUTPUT},
    {BEGIN("8", "16") "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r10};\n" NEIGHBOUR
                      "setp.lt.u32 %p2, %r1, 8;\n@%p2 " TAKE GIVE,
     KL_FOUND_RACE},
};

START_TEST(is_checked) {
  stage s;
  kl_fault fault;
  kl_checks c;
  stage_open(&s);
  stage_expect(&s, "a kernel", checked[_i].ptx, "k");
  uint64_t params[] = {stage_words(&s, LANES * 4, 100), stage_memory(&s, LANES * ROW)};
  kl_launch l = {.kernel = s.k, .grid = {1, 1, 1}, .block = {LANES, 1, 1}, .params = params};
  kl_checks_init(&c, s.cx, &s.m, KL_CHECK_ALL);
  kl_checks_run(&c, &l, &fault);
  size_t n = c.report.found.n;
  EXPECT(checked[_i].found < 0 ? n == 0 : n > 0 && (int)c.report.found.p[0].kind == checked[_i].found,
         "row %d: %zu findings: %s", _i, n, n ? kl_found_text(c.report.found.p[0].kind) : "");
  kl_checks_free(&c);
  stage_close(&s);
}
END_TEST

static const struct {
  const char *ptx, *message;
} refused[] = {
    {BEGIN("8", "16") "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10}, [%r6];\n" GIVE, "expected 2 registers"},
    {BEGIN("8", "16") "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%rd3}, [%r6];\n" GIVE, "bits"},
    {BEGIN("8", "16") "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%p1};\n" GIVE, "bits"},
    {BEGIN("8", "16") "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r10, %r11}, [%r6];\n" GIVE, "tensor cores"},
};

START_TEST(is_refused) {
  stage s;
  stage_open(&s);
  ck_assert(!stage_load(&s, kl_str_of(refused[_i].ptx), "k"));
  ck_assert_msg(strstr(stage_why(&s), refused[_i].message), "%s", stage_why(&s));
  stage_close(&s);
}
END_TEST

int main(void) {
  return RUN_TESTS("matrices", NO_FRAME, {elements, ROWS}, {counts, ROWS}, {lanes_apart},
                   {is_checked, sizeof checked / sizeof checked[0]}, {is_refused, sizeof refused / sizeof refused[0]});
}
