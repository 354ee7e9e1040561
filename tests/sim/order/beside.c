// Threads whose bytes lie side by side are judged together, threads that are named in another order one by one: where
// every thread of a program does what its neighbour did, the same lines race. Random programs of plain accesses of all
// widths, guards and barriers, some of them racing.

#include "../stage.h"
#include "sim/check/order.h"
#include "support/random.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>

enum { PROGRAMS = 500, MOST_STEPS = 10, MOST_PAIRS = 64, BLOCKS = 3 };

// %r1 the thread's name, %d1 global memory, %r4 shared memory, %r2 the block.
static const char head[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .u64 p, .param .u32 flip) {\n.shared .align 16 .b8 s[16384];\n"
    ".reg .pred %p<4>;\n.reg .b32 %r<40>;\n.reg .b64 %d<20>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r3, [flip];\nmov.u32 %r1, %tid.x;\nxor.b32 %r1, %r1, %r3;\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r4, s;\nmov.u32 %r10, 1;\nmov.u32 %r11, 2;\nmov.u32 %r12, 3;\nmov.u32 %r13, 4;\n";

static unsigned below(unsigned n) {
  return (unsigned)(random_bits() >> 33) % n;
}

static const char *const widths[] = {"u8", "u16", "u32", "v2.u32", "v4.u32"};

// Which element a thread's number, below 128, makes its own: mostly its own one; or one far from its neighbours' ones;
// or that of others as well, which loads may share: whether stores of the same bytes race is a matter of their values.
static const char *const elements[] = {
    "mul.lo.u32 %r5, %r5, 17;\nand.b32 %r5, %r5, 127;\n",
    "mul.lo.u32 %r5, %r5, 33;\nand.b32 %r5, %r5, 127;\nadd.u32 %r5, %r5, 3;\n",
    "shr.u32 %r5, %r5, 2;\n",
    "and.b32 %r5, %r5, 3;\n",
    "and.b32 %r5, %r5, 15;\n",
};
enum { APART = 2 };

// An access of 1 << width bytes each, by the name of the thread and some steps aside, in one of a few places.
static void put_access(kl_sb *b) {
  unsigned width = below(5), guard = below(4), first = 16 * below(6), place = 4096 * below(2), aside = below(3) * 8;
  bool shared = below(2), store = below(2), own = below(2);
  if (below(8) == 0) aside += below(4);
  kl_sbf(b, "add.u32 %%r5, %%r1, %u;\nand.b32 %%r5, %%r5, 127;\n", aside);
  unsigned element = below(2 * KL_COUNT(elements));
  if (element < (store ? APART : KL_COUNT(elements))) kl_sb_puts(b, elements[element]);
  kl_sbf(b, "shl.b32 %%r5, %%r5, %u;\n", width);
  if (shared) {
    kl_sbf(b, "add.u32 %%r6, %%r4, %%r5;\n");
  } else {
    kl_sbf(b, "mad.lo.u32 %%r5, %%r2, %u, %%r5;\ncvt.u64.u32 %%d2, %%r5;\nadd.u64 %%d3, %%d1, %%d2;\n", own ? 8192 : 0);
  }
  kl_sbf(b, "setp.%s.u32 %%p1, %%r1, %u;\n", guard == 1 ? "lt" : "ge", guard ? first : 0);
  kl_sbf(b, "mov.u32 %%r10, %s;\n", below(3) ? "%r1" : "7");
  const char *at = shared ? "%r6" : "%d3", *values = width < 3    ? "%r10"
                                                     : width == 3 ? "{%r10, %r11}"
                                                                  : "{%r10, %r11, %r12, %r13}";
  if (store)
    kl_sbf(b, "@%%p1 st.%s.%s [%s+%u], %s;\n", shared ? "shared" : "global", widths[width], at, place, values);
  else
    kl_sbf(b, "@%%p1 ld.%s.%s %s, [%s+%u];\n", shared ? "shared" : "global", widths[width], values, at, place);
}

static char *program(void) {
  kl_sb b;
  kiln_context *cx = kiln_context_create(NULL);
  unsigned n = 2 + below(MOST_STEPS - 1);
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, head);
  for (unsigned k = 0; k < n; k++) {
    put_access(&b);
    unsigned meet = below(5);
    if (meet < 2) kl_sb_puts(&b, meet ? "bar.sync 0;\n" : "bar.warp.sync -1;\n");
  }
  kl_sb_puts(&b, "ret;\n}\n");
  char *text = malloc(b.n + 1);
  memcpy(text, b.p, b.n + 1);
  kl_sb_free(&b);
  kiln_context_destroy(&cx);
  return text;
}

typedef struct pairs {
  uint32_t of[MOST_PAIRS][2];
  size_t n;
} pairs;

static int by_lines(const void *a, const void *b) {
  return memcmp(a, b, sizeof(uint32_t[2]));
}

// Pairs of lines that race where the thread named n is number n ^ flip.
static pairs races(const char *text, uint32_t flip, uint32_t threads) {
  struct {
    uint64_t p;
    uint32_t flip;
  } params = {.flip = flip};
  pairs found = {0};
  kl_report report = {0};
  kl_fault fault;
  stage s;
  stage_open(&s);
  stage_expect(&s, "a program", text, "k");
  params.p = stage_memory(&s, 65536);
  kl_observer *o = kl_order_new(s.cx, &report, KL_ORDER_RACES);
  kl_launch l = {.kernel = s.k,
                 .grid = {BLOCKS, 1, 1},
                 .block = {threads, 1, 1},
                 .params = &params,
                 .observers = &o,
                 .nobservers = 1};
  ck_assert_int_eq(kl_launch_run(s.cx, &s.m, &l, &fault), KILN_OK);
  kl_order_free(o);
  for (size_t k = 0; k < report.found.n && k < MOST_PAIRS; k++) {
    uint32_t x = report.found.p[k].at.instr->at.line, y = report.found.p[k].other.instr->at.line;
    found.of[k][0] = x < y ? x : y;
    found.of[k][1] = x < y ? y : x;
    found.n++;
  }
  qsort(found.of, found.n, sizeof found.of[0], by_lines);
  kl_report_free(s.cx, &report);
  stage_close(&s);
  return found;
}

static uint64_t racing, clean;

START_TEST(names_change_nothing) {
  static const uint32_t sizes[] = {32, 64, 96, 128};
  for (uint64_t n = 0; n < share_of(PROGRAMS); n++) {
    random_seed(n);
    char *text = program();
    uint32_t threads = sizes[below(4)];
    pairs straight = races(text, 0, threads);
    *(straight.n ? &racing : &clean) += 1;
    for (uint32_t flip = 1; flip < 16; flip += 6) {
      pairs other = races(text, flip, threads);
      EXPECT(straight.n == other.n && memcmp(straight.of, other.of, straight.n * sizeof straight.of[0]) == 0,
             "program %llu: %zu races in order, %zu where threads are flipped by %u:\n%s", (unsigned long long)n,
             straight.n, other.n, flip, text);
    }
    free(text);
  }
}
END_TEST

START_TEST(both_kinds_ran) {
  printf("# %llu programs race, %llu do not\n", (unsigned long long)racing, (unsigned long long)clean);
  EXPECT(racing && (clean || test_share() < 0.1), "programs of one kind only");
}
END_TEST

int main(void) {
  return RUN_TESTS("order_beside", NO_FRAME, {names_change_nothing, 1}, {both_kinds_ran, 1});
}
