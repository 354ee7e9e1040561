// Predictions: each limiter once, in a kernel whose work is known, against what the model of docs/profiler.md gives by
// hand.
//
// All rates are those of one clock: an H100 has 132 multiprocessors at 1.98 GHz and a DRAM of 2 x 2.619 GHz x 5120
// bits, an A100 108 at 1.41 GHz, an L40S 142 at 2.52 GHz. One block takes the time of one multiprocessor. LOOP(n, body)
// is 1 load, 3 moves and a return, and n times the body, 2 integer instructions and a branch.
#include "profile.h"

#define TARGET    ".version 8.6\n.target sm_80\n.address_size 64\n.shared .align 16 .b8 s[1024];\n"
#define REGISTERS ".reg .pred %p<4>;\n.reg .b32 %r<40>, %f<9>;\n.reg .b64 %rd<20>;\n"
#define X4(x)     x x x x
#define X64(x)    X4(X4(X4(x)))
// %rd1 the buffer, %r1 the round, %r2 the thread; %r3 shared memory
#define LOOP(rounds, body)                                                                                             \
  TARGET ".visible .entry k(.param .u64 p) {\n" REGISTERS "ld.param.u64 %rd1, [p];\nmov.u32 %r1, 0;\n"                 \
         "mov.u32 %r2, %tid.x;\nmov.u32 %r3, s;\nL:\n" body "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, " #rounds     \
         ";\n@%p1 bra L;\nret;\n}\n"
// Each thread of the grid loads, or stores, its 16 bytes of the buffer.
#define STREAM(access)                                                                                                 \
  TARGET                                                                                                               \
  ".visible .entry k(.param .u64 p) {\n" REGISTERS "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n"                   \
  "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmad.lo.u32 %r4, %r2, %r3, %r1;\nmul.wide.u32 %rd2, %r4, 16;\n"       \
  "add.u64 %rd3, %rd1, %rd2;\n" access "ret;\n}\n"
#define LOADS  STREAM("ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd3];\n")
#define STORES STREAM("st.global.v4.u32 [%rd3], {%r1, %r1, %r1, %r1};\n")

#define H100   1.98e9
#define A100   1.41e9
#define L40S   2.52e9

static const struct {
  const char *limiter, *gpu, *ptx;
  uint32_t grid, block;
  double amount, rate, seconds; // of the row: its amount, its rate of the whole GPU, its time
} rows[] = {
    // 1056 x 1024 threads of 16 bytes; 92 % of 3.3523 TB/s; 5.61 us
    {"DRAM", "H100", LOADS, 1056, 1024, 17301504, 2 * 2.619e9 * 640 * 0.92, 17301504 / (2 * 2.619e9 * 640 * 0.92)},
    // the same bytes stored: L2 has 50 MiB and holds all of them at the end
    {"DRAM", "H100", STORES, 1056, 1024, 17301504, 2 * 2.619e9 * 640 * 0.92, 17301504 / (2 * 2.619e9 * 640 * 0.92)},
    // one warp, 100 loads of 128 bytes that nothing has loaded yet: 4 under way, each 0.7 us; 17.5 us
    {"loads in flight", "H100",
     LOOP(100, "mad.lo.u32 %r4, %r1, 128, 0;\nmad.lo.u32 %r4, %r2, 4, %r4;\ncvt.u64.u32 %rd2, %r4;\n"
               "add.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r5, [%rd3];\n"),
     1, 32, 12800, 4 * 128 / 0.7e-6, 12800 * 0.7e-6 / 512},
    // 132 blocks of 32 warps, 64 loads past L1 of 512 bytes each, all of the same 16 KiB; 70 % of 5120 bytes a clock;
    // 19.5 us
    {"L2", "H100",
     LOOP(64, "mul.wide.u32 %rd2, %r2, 16;\nadd.u64 %rd3, %rd1, %rd2;\n"
              "ld.global.cg.v4.u32 {%r5, %r6, %r7, %r8}, [%rd3];\n"),
     132, 1024, 132.0 * 32 * 64 * 512, 5120 * 0.7 * H100, 132.0 * 32 * 64 * 512 / (5120 * 0.7 * H100)},
    // 4 warps, 2,000 requests each, two clocks a request; 8.08 us
    {"one address", "H100", LOOP(2000, "red.global.add.u32 [%rd1], 1;\n"), 1, 128, 8000, H100 / 2, 8000 * 2 / H100},
    // 64,000 fma; 1 load, 3 moves and a return, 3,000 of the loop: 67,005 issues, 4 in a clock; 8.46 us
    {"issue", "H100", LOOP(1000, X64("fma.rn.f32 %f1, %f2, %f3, %f4;\n")), 1, 32, 67005, 4 * 132 * H100,
     67005 / 4.0 / H100},
    // 64,000 fma of 32 lanes, 64 lanes in a clock; 22.7 us
    {"f32", "A100", LOOP(1000, X64("fma.rn.f32 %f1, %f2, %f3, %f4;\n")), 1, 32, 64000.0 * 32, 64 * 108 * A100,
     64000 / 2 / A100},
    // 6,400 fma of 32 lanes, 2 lanes in a clock; 40.6 us
    {"f64", "L40S", LOOP(100, X64("fma.rn.f64 %rd4, %rd5, %rd6, %rd7;\n")), 1, 32, 6400.0 * 32, 2 * 142 * L40S,
     6400 * 16 / L40S},
    // 64,000 fma of 32 pairs, 64 pairs in a clock; 12.7 us
    {"half", "L40S", LOOP(1000, X64("fma.rn.f16x2 %f1, %f2, %f3, %f4;\n")), 1, 32, 64000.0 * 32, 64 * 142 * L40S,
     64000 / 2 / L40S},
    // 64,000 additions, 3 moves and 2,000 of the loop, of 32 lanes, 64 lanes in a clock; 16.7 us
    {"integer", "H100", LOOP(1000, X64("add.u32 %r4, %r4, 5;\n")), 1, 32, 66003.0 * 32, 64 * 132 * H100,
     66003 / 2.0 / H100},
    // the same, products counted too, in 133 blocks: one multiprocessor has two; 33.3 us
    {"integer", "H100", LOOP(1000, X64("mul.lo.u32 %r4, %r4, 5;\n")), 133, 32, 66003.0 * 32 * 133, 64 * 132 * H100,
     2 * 66003 / 2 / H100},
    // 12,800 conversions of 32 lanes, 16 lanes in a clock; 18.2 us
    {"convert", "A100", LOOP(200, X64("cvt.rn.f32.s32 %f1, %r1;\n")), 1, 32, 12800.0 * 32, 16 * 108 * A100,
     12800 * 2 / A100},
    // 12,800 exponentials of 32 lanes, 16 lanes in a clock; 12.9 us
    {"special", "H100", LOOP(200, X64("ex2.approx.f32 %f1, %f2;\n")), 1, 32, 12800.0 * 32, 16 * 132 * H100,
     12800 * 2 / H100},
    // 12,800 loads of the same word of all lanes and 1 of a parameter, a pass each, one in a clock; 6.46 us
    {"load/store", "H100", LOOP(200, X64("ld.shared.u32 %r4, [%r3];\n")), 1, 32, 12801, 132 * H100, 12801 / H100},
    // 12,800 shuffles, and the parameter
    {"load/store", "H100", LOOP(200, X64("shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;\n")), 1, 32, 12801, 132 * H100,
     12801 / H100},
    // 6,400 loads of 16 bytes of all lanes, 512 bytes of shared memory: 4 passes each
    {"load/store", "H100",
     LOOP(100, "shl.b32 %r5, %r2, 4;\nadd.u32 %r5, %r5, %r3;\n" X64("ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [%r5];\n")),
     1, 32, 6400 * 4 + 1, 132 * H100, (6400 * 4 + 1) / H100},
};

static const kiln_profile_rate *rate_of(const fixture *f, const char *name) {
  const kiln_prediction *p = &f->t.prediction;
  for (size_t k = 0; k < p->rate_count; k++)
    if (strcmp(p->rates[k].name, name) == 0) return &p->rates[k];
  ck_abort_msg("no row %s", name);
  return NULL;
}

static bool near(double a, double b) {
  return a > b * (1 - 1e-12) && a < b * (1 + 1e-12);
}

enum { BUFFER = 17301504 };

static void predict(fixture *f, int i, const kiln_profile_params *how) {
  fixture_open(f);
  uint64_t arguments[16] = {fixture_memory(f, BUFFER, NULL)};
  fixture_run(f, rows[i].ptx, (kiln_sim_launch_params){.grid = {rows[i].grid}, .block = {rows[i].block}}, arguments,
              how);
}

START_TEST(limiter) {
  fixture f;
  kiln_profile_params how = {.struct_size = sizeof how, .gpu = rows[_i].gpu};
  predict(&f, _i, &how);
  const kiln_profile_rate *r = rate_of(&f, rows[_i].limiter);
  EXPECT(strcmp(f.t.prediction.limiter, rows[_i].limiter) == 0, "row %d: limited by %s, not %s", _i,
         f.t.prediction.limiter, rows[_i].limiter);
  EXPECT(near(r->amount, rows[_i].amount), "%s: %.17g %s, expected %.17g", r->name, r->amount, r->unit,
         rows[_i].amount);
  EXPECT(near(r->rate, rows[_i].rate), "%s: a rate of %.17g, expected %.17g", r->name, r->rate, rows[_i].rate);
  EXPECT(near(r->seconds, rows[_i].seconds), "%s: %.17g s, expected %.17g", r->name, r->seconds, rows[_i].seconds);
  EXPECT(near(f.t.prediction.seconds, rows[_i].seconds + 2e-6), "%s: %.17g s in all", r->name, f.t.prediction.seconds);
  fixture_close(&f);
}
END_TEST

// What takes less than the launch is limited by it; the time is that of the longest row and 2 us.
START_TEST(launch) {
  fixture f;
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)};
  fixture_run(&f, LOOP(10, X64("add.u32 %r4, %r4, 5;\n")), (kiln_sim_launch_params){.block = {32}}, arguments, NULL);
  ck_assert_str_eq(f.t.prediction.limiter, "launch");
  ck_assert(near(f.t.prediction.seconds, 663 / 2.0 / H100 + 2e-6)); // 640 additions, 3 moves, 20 of the loop
  fixture_close(&f);
}
END_TEST

// What L1 has is no traffic of L2's: of 100 loads of the same 128 bytes one is.
START_TEST(hits) {
  fixture f;
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)};
  fixture_run(&f, LOOP(100, "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r5, [%rd3];\n"),
              (kiln_sim_launch_params){.block = {32}}, arguments, NULL);
  ck_assert(near(rate_of(&f, "L2")->amount, 128) && near(rate_of(&f, "DRAM")->amount, 128));
  ck_assert(near(rate_of(&f, "load/store")->amount, 101)); // four sectors a pass, and the parameter
  fixture_close(&f);
}
END_TEST

// A sample of 66 of 1056 blocks stands for all: the same amounts, rates and times.
START_TEST(a_sample) {
  fixture f;
  kiln_profile_params how = {.struct_size = sizeof how, .first = 3, .count = 66, .stride = 16};
  predict(&f, 0, &how);
  ck_assert_str_eq(f.t.prediction.limiter, "DRAM");
  ck_assert(f.t.sampled == 66 && near(rate_of(&f, "DRAM")->amount, rows[0].amount));
  ck_assert(near(f.t.prediction.seconds, rows[0].seconds + 2e-6));
  ck_assert(near(rate_of(&f, "L2")->amount, rows[0].amount));
  // 264 blocks of 32 warps run at once, each with one load of 512 bytes under way
  ck_assert(near(rate_of(&f, "loads in flight")->rate, 264 * 32 * 512 / 0.7e-6));
  // 8 blocks on each multiprocessor: 32 warps of 9 instructions, 4 in a clock; passes: 4 of a load, 1 of the parameter
  ck_assert(near(rate_of(&f, "issue")->seconds, 8 * 32 * 9 / 4.0 / H100));
  ck_assert(near(rate_of(&f, "load/store")->seconds, 8 * 32 * 5 / H100));
  ck_assert(near(f.t.occupancy.waves, 4) && f.t.occupancy.blocks == 2 && f.t.occupancy.warps == 64);
  ck_assert(f.t.occupancy.carveout + f.t.occupancy.l1_bytes == 256 * 1024);
  fixture_close(&f);
}
END_TEST

int main(void) {
  return RUN_TESTS("count_predict", NO_FRAME, {limiter, sizeof rows / sizeof rows[0]}, {launch}, {hits}, {a_sample});
}
