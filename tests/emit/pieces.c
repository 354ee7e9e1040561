// Computations that are cut into several kernels: values that chains of indices would multiply, and what one kernel
// cannot do together. How many kernels there are, how their code grows, and that they are right.

#include "harness.h"
#include "support/suite.h"

#include <stdlib.h>
#include <time.h>

static kiln_context *cx;
static kl_sb text;

static void make(void) {
  cx = kiln_context_create(NULL);
  kl_sb_init(&text, cx);
}
static void drop(void) {
  kl_sb_free(&text);
  kiln_context_destroy(&cx);
}

static kiln_module *parse_text(void) {
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "pieces.hlo", text.p, text.n, &m) != KILN_OK) give_up(0, "parsing", cx, text.p);
  return m;
}

typedef struct cost {
  size_t launches, bytes; // of the PTX
} cost;

static cost compile(const char *target) {
  kiln_module *m = parse_text();
  kiln_compile_params params = {.struct_size = sizeof params, .target = target, .separate_launches = true};
  kiln_artifact *a = NULL;
  if (kiln_compile(cx, m, &params, &a) != KILN_OK) give_up(0, "compiling", cx, text.p);
  cost c = {.launches = kiln_artifact_manifest(a)->launch_count};
  if (!kiln_artifact_text(a, KILN_TEXT_PTX, &c.bytes)) c.bytes = 0;
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  return c;
}

static void run_everywhere(void) {
  kiln_module *m = parse_text();
  for (unsigned seed = 0; seed < 2; seed++) {
    run_and_check(cx, m, seed, text.p);
    run_gpu_and_check(cx, m, 3, seed, text.p);
  }
  kiln_module_destroy(&m);
}

// --- values that multiply -------------------------------------------------------------------------------------------

// Each level adds to every element the one some places on, round the end: 2^levels of the parameter make one result.
static void put_doubling(int levels, int n) {
  text.n = 0;
  kl_sbf(&text, "HloModule doubling\n\nENTRY e {\n  x0 = f32[%d] parameter(0)\n", n);
  for (int i = 0; i < levels; i++) {
    int by = (int)((1ll << (i % 20)) * 7 + i) % n;
    if (!by) by = 1;
    kl_sbf(&text, "  a%d = f32[%d] slice(x%d), slice={[%d:%d]}\n", i, n - by, i, by, n);
    kl_sbf(&text, "  b%d = f32[%d] slice(x%d), slice={[0:%d]}\n", i, by, i, by);
    kl_sbf(&text, "  r%d = f32[%d] concatenate(a%d, b%d), dimensions={0}\n", i, n, i, i);
    kl_sbf(&text, "  m%d = f32[%d] maximum(x%d, r%d)\n  x%d = f32[%d] subtract(m%d, r%d)\n", i, n, i, i, i + 1, n, i,
           i);
  }
  kl_sbf(&text, "  ROOT y = f32[%d] negate(x%d)\n}\n", n, levels);
}

START_TEST(doubling_is_linear) {
  for (int host = 0; host < 2; host++) {
    const char *target = host ? "host" : "sm_90";
    put_doubling(20, 331);
    cost half = compile(target);
    put_doubling(40, 331);
    cost all = compile(target);
    ck_assert_uint_gt(half.launches, 1);
    ck_assert_uint_le(all.launches, 2 * half.launches + 1);
    ck_assert_uint_le(all.bytes, half.bytes * 5 / 2);
  }
  put_doubling(40, 331);
  run_everywhere();
}
END_TEST

// What few indices want is one kernel.
START_TEST(a_few_are_one_kernel) {
  put_doubling(3, 331);
  ck_assert_uint_eq(compile("sm_90").launches, 1);
  run_everywhere();
}
END_TEST

// Two sums of 25 neighbours, one behind the other, want 81 elements and 625 functions of them, or are two kernels that
// make 25 each: for the large array, where that is worth a launch.
static void put_stencils(int n) {
  text.n = 0;
  kl_sbf(&text, "HloModule stencils\n\nENTRY e {\n  p = f32[%d,%d] parameter(0)\n  z = f32[] constant(0)\n", n, n);
  const char *in = "p";
  for (int stage = 0; stage < 2; stage++) {
    char c = (char)('a' + stage);
    kl_sbf(&text, "  %c = f32[%d,%d] pad(%s, z), padding=2_2x2_2\n", c, n + 4, n + 4, in);
    for (int i = 0; i < 25; i++) {
      kl_sbf(&text, "  %cs%d = f32[%d,%d] slice(%c), slice={[%d:%d], [%d:%d]}\n", c, i, n, n, c, i / 5, n + i / 5,
             i % 5, n + i % 5);
      kl_sbf(&text, "  %ct%d = f32[%d,%d] tanh(%cs%d)\n", c, i, n, n, c, i);
      if (i) kl_sbf(&text, "  %cu%d = f32[%d,%d] add(%c%c%d, %ct%d)\n", c, i, n, n, c, i == 1 ? 't' : 'u', i - 1, c, i);
    }
    in = "au24";
  }
  kl_sb_puts(&text, "  ROOT r = ");
  kl_sbf(&text, "f32[%d,%d] negate(bu24)\n}\n", n, n);
}

START_TEST(work_is_weighed) {
  put_stencils(4096);
  ck_assert_uint_eq(compile("sm_90").launches, 2);
  put_stencils(23);
  run_everywhere();
}
END_TEST

// --- one after the other
// ----------------------------------------------------------------------------------------------

// Rounds of a cipher, each of the one before: one kernel, whose code and time to compile grow with their number.
static void put_chain(int ops) {
  static const int turns[] = {13, 15, 26, 6, 17, 29, 16, 24};
  static const char type[] = "u32[1280,1280]";
  text.n = 0;
  kl_sbf(&text, "HloModule chain\n\nENTRY e {\n  x0 = %s parameter(0)\n  y0 = %s parameter(1)\n", type, type);
  for (int i = 0; i < 8; i++) {
    kl_sbf(&text, "  c%d = u32[] constant(%d)\n  l%d = %s broadcast(c%d), dimensions={}\n", i, turns[i], i, type, i);
    kl_sbf(&text, "  d%d = u32[] constant(%d)\n  h%d = %s broadcast(d%d), dimensions={}\n", i, 32 - turns[i], i, type,
           i);
  }
  int n = ops / 5;
  for (int i = 0; i < n; i++) {
    kl_sbf(&text, "  x%d = %s add(x%d, y%d)\n", i + 1, type, i, i);
    kl_sbf(&text, "  a%d = %s shift-left(y%d, l%d)\n", i, type, i, i % 8);
    kl_sbf(&text, "  b%d = %s shift-right-logical(y%d, h%d)\n", i, type, i, i % 8);
    kl_sbf(&text, "  o%d = %s or(a%d, b%d)\n  y%d = %s xor(o%d, x%d)\n", i, type, i, i, i + 1, type, i, i + 1);
  }
  kl_sbf(&text, "  ROOT r = (%s, %s) tuple(x%d, y%d)\n}\n", type, type, n, n);
}

START_TEST(long_chains_are_linear) {
  put_chain(10000);
  cost half = compile("sm_90");
  put_chain(20000);
  cost all = compile("sm_90");
  ck_assert_uint_eq(all.launches, 1);
  ck_assert_uint_le(all.bytes, half.bytes * 21 / 10);
}
END_TEST

// Random bits of as many generators, joined: each generator's rounds are cut, and none is looked at for each cut.
static double seconds_of_generators(int n) {
  text.n = 0;
  kl_sb_puts(&text, "HloModule generators\n\nENTRY e {\n  x0 = u32[4096] parameter(0)\n  s = u64[2] parameter(1)\n");
  for (int i = 0; i < n; i++) {
    kl_sbf(&text, "  c%d = u64[] constant(%d)\n  d%d = u64[2] broadcast(c%d), dimensions={}\n", i, i, i, i);
    kl_sbf(&text, "  s%d = u64[2] add(s, d%d)\n", i, i);
    kl_sbf(&text, "  g%d = (u64[2], u32[4096]) rng-bit-generator(s%d), algorithm=rng_philox\n", i, i);
    kl_sbf(&text, "  b%d = u32[4096] get-tuple-element(g%d), index=1\n", i, i);
    kl_sbf(&text, "  x%d = u32[4096] xor(x%d, b%d)\n", i + 1, i, i);
  }
  kl_sbf(&text, "  ROOT r = u32[4096] negate(x%d)\n}\n", n);
  struct timespec a, b;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
  compile("sm_90");
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
  return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

START_TEST(generators_are_linear) {
  double few = seconds_of_generators(16), many = seconds_of_generators(64);
  EXPECT(many < 7 * few, "4 times as many took %.1f times as long: %.2f s", many / few, many);
}
END_TEST

// --- what one kernel cannot do
// ------------------------------------------------------------------------------------------

#define SUM "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
static const char *const together[] = {
    // sums over rows and columns of values that depend on each other, and all of the elements
    SUM "ENTRY e {\n  p = f32[19,37] parameter(0)\n  z = f32[] constant(0)\n"
        "  r = f32[19] reduce(p, z), dimensions={1}, to_apply=add\n"
        "  b = f32[19,37] broadcast(r), dimensions={0}\n  d = f32[19,37] subtract(p, b)\n"
        "  c = f32[37] reduce(d, z), dimensions={0}, to_apply=add\n"
        "  cb = f32[19,37] broadcast(c), dimensions={1}\n  e = f32[19,37] add(d, cb)\n"
        "  ROOT t = (f32[19,37], f32[37], f32[19]) tuple(e, c, r)\n}\n",
    // a sum that is wanted at other places than where it is made, through a fusion's tuple
    SUM "fused {\n  p = f32[8,8] parameter(0)\n  z = f32[] constant(0)\n"
        "  r = f32[8] reduce(p, z), dimensions={1}, to_apply=add\n  v = f32[8] reverse(r), dimensions={0}\n"
        "  s = f32[8] subtract(r, v)\n  u = f32[8,8] broadcast(v), dimensions={1}\n"
        "  w = f32[8,8] add(u, p)\n  ROOT t = (f32[8], f32[8,8], f32[8]) tuple(s, w, r)\n}\n"
        "ENTRY e {\n  p = f32[8,8] parameter(0)\n"
        "  ROOT f = (f32[8], f32[8,8], f32[8]) fusion(p), kind=kInput, calls=fused\n}\n",
    // several values at once, one behind another
    "pair { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)\n"
    "  g = pred[] compare(a, b), direction=GE\n  m = f32[] select(g, a, b)\n  k = s32[] select(g, i, j)\n"
    "  ROOT t = (f32[], s32[]) tuple(m, k) }\n" SUM
    "ENTRY e {\n  p = f32[5,70] parameter(0)\n  i = s32[5,70] iota(), iota_dimension=1\n"
    "  low = f32[] constant(-inf)\n  none = s32[] constant(-1)\n  z = f32[] constant(0)\n"
    "  t = (f32[5], s32[5]) reduce(p, i, low, none), dimensions={1}, to_apply=pair\n"
    "  m = f32[5] get-tuple-element(t), index=0\n  k = s32[5] get-tuple-element(t), index=1\n"
    "  all = f32[] reduce(m, z), dimensions={0}, to_apply=add\n"
    "  ROOT r = (s32[5], f32[], f32[5]) tuple(k, all, m)\n}\n",
};

START_TEST(one_after_the_other) {
  text.n = 0;
  kl_sbf(&text, "HloModule together\n\n%s", together[_i]);
  run_everywhere();
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 0); // nobody hears of what was tried first
}
END_TEST

// --- what is made with products
// ---------------------------------------------------------------------------------------

typedef struct behind {
  const char *text;
  size_t launches;
} behind;
static const behind behinds[] = {
    // heads of attention, with something added, which are a result, too
    {"  x = f32[16,32] parameter(0)\n  w = f32[32,24] parameter(1)\n  b = f32[6] parameter(2)\n"
     "  k = f32[4,6,16] parameter(3)\n"
     "  d = f32[16,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "  s = f32[16,4,6] reshape(d)\n  t = f32[4,16,6] transpose(s), dimensions={1,0,2}\n"
     "  v = f32[4,16,6] broadcast(b), dimensions={2}\n  q = f32[4,16,6] add(t, v)\n"
     "  e = f32[4,16,16] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
     "rhs_contracting_dims={1}\n  ROOT r = (f32[4,16,6], f32[4,16,16]) tuple(q, e)\n",
     2},
    // and put back, in a layout of their own
    {"  p = f32[2,5,7] parameter(0)\n  q = f32[2,7,6] parameter(1)\n  w = f32[12,3] parameter(2)\n"
     "  d = f32[2,5,6] dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
     "rhs_contracting_dims={1}\n"
     "  t = f32[5,2,6]{2,0,1} transpose(d), dimensions={1,0,2}\n  c = f32[5,2,6] copy(t)\n  s = f32[5,12] reshape(c)\n"
     "  e = f32[5,3] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "  ROOT r = (f32[5,12], f32[5,3]) tuple(s, e)\n",
     2},
    // the same elements in two orders
    {"  p = f32[9,5] parameter(0)\n  q = f32[5,11] parameter(1)\n"
     "  d = f32[9,11] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "  t = f32[11,9] transpose(d), dimensions={1,0}\n"
     "  e = f32[9,9] dot(d, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "  ROOT r = (f32[9,11], f32[11,9], f32[9,9]) tuple(d, t, e)\n",
     3},
};

START_TEST(orders_are_made_with_products) {
  text.n = 0;
  kl_sbf(&text, "HloModule behind\n\nENTRY e {\n%s}\n", behinds[_i].text);
  ck_assert_uint_eq(compile("sm_90").launches, behinds[_i].launches);
  run_everywhere();
}
END_TEST

// Neighbours of the result are of other batches, and so of other tiles. Of few elements what is written is no matter.
static void put_batches(int batches, int rows) {
  text.n = 0;
  kl_sbf(&text, "HloModule batches\n\nENTRY e {\n  p = f32[%d,%d,%d] parameter(0)\n", batches, rows, batches);
  kl_sbf(&text,
         "  d = f32[%d,%d,%d] dot(p, p), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
         "rhs_contracting_dims={2}\n  t = f32[%d,%d,%d] transpose(d), dimensions={1,2,0}\n",
         batches, rows, rows, rows, rows, batches);
  kl_sbf(&text,
         "  e = f32[%d,%d,%d] dot(t, t), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
         "rhs_contracting_dims={2}\n  ROOT r = (f32[%d,%d,%d], f32[%d,%d,%d]) tuple(t, e)\n}\n",
         rows, rows, rows, rows, rows, batches, rows, rows, rows);
}

START_TEST(sectors_are_written_whole) {
  put_batches(64, 512);
  ck_assert_uint_eq(compile("sm_90").launches, 3);
  put_batches(16, 6);
  ck_assert_uint_eq(compile("sm_90").launches, 2);
  run_everywhere();
}
END_TEST

int main(void) {
  return RUN_TESTS("pieces", EACH(make, drop), {doubling_is_linear}, {a_few_are_one_kernel}, {work_is_weighed},
                   {long_chains_are_linear}, {generators_are_linear}, {one_after_the_other, KL_COUNT(together)},
                   {orders_are_made_with_products, KL_COUNT(behinds)}, {sectors_are_written_whole});
}
