// What is counted of plans: at the sizes of workloads, and what that takes. That the counts are the simulator's is
// shown where kernels run (tests/emit/counted.c).
#include "lower/choose/choose.h"
#include "lower/plan/cost/cost.h"
#include "support/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

static kl_ctx *cx;
static kl_arena arena;

static void open_context(void) {
  cx = kiln_context_create(NULL);
  kl_arena_init(&arena, cx);
}
static void close_context(void) {
  kl_arena_free(&arena);
  kiln_context_destroy(&cx);
}

static const kl_target gpu = {.machine = KL_NVPTX, .sm = 90, .block = 128, .max_bytes = 16};

static kl_plan *plan_of(const kiln_module *m, uint32_t unit) {
  kl_unit *units;
  uint32_t n;
  kl_plan *p = NULL;
  if (kl_plan_units(cx, m, NULL, &arena, &units, &n) != KILN_OK || unit >= n) return NULL;
  kl_plan_params params = {.target = gpu, .name = "k"};
  return kl_plan_make(cx, m, units[unit].comp, &params, &arena, &p) == KILN_OK ? p : NULL;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The best of some, as other work disturbs; where that may be why they are above the limit, of more over some seconds.
static void time_plan(kl_plan *p, double limit, double *verify, double *count) {
  *verify = *count = 1;
  for (int i = 0; i < 15 || (i < 1000 && *verify + *count > limit); i++) {
    if (i >= 15) usleep(5000);
    double a = seconds();
    EXPECT(kl_plan_verify(cx, p) == KILN_OK, "not proved");
    double b = seconds();
    kl_plan_cost(p, KL_COST_QUICK);
    double c = seconds();
    if (b - a < *verify) *verify = b - a;
    if (c - b < *count) *count = c - b;
  }
}

// Of choosing and writing, all kinds together.
static double time_planning(const kiln_module *m) {
  double best = 1;
  for (int i = 0; i < 3; i++) {
    double a = seconds();
    kl_plan *p = plan_of(m, 0);
    double b = seconds();
    if (p) kl_plan_free(p);
    if (b - a < best) best = b - a;
  }
  return best;
}

// Sectors of workloads whose reads are shared, or that read again, no more than they have been; beside them the fewest
// that could be. batch_norm reads a channel for its mean, for its variance and for its results.
static const struct {
  const char *file;
  int64_t most, least;
} sectors[] = {
    {"scale_bias_relu.hlo", 34603008, 33556480},   {"bias_dropout_residual.hlo", 14811136, 14680576},
    {"embedding.hlo", 9175040, 8914944},           {"rope.hlo", 17301504, 16908288},
    {"layer_norm.hlo", 2162688, 2097664},          {"rms_norm.hlo", 17039360, 16777472},
    {"add_rms_norm.hlo", 4325376, 4194816},        {"batch_norm.hlo", 536904320, 268435488},
    {"layer_norm_backward.hlo", 6586880, 6292224},
};

static void check_sectors(const char *file, const kl_cost *c) {
  int64_t n = c->load.asked.sectors + c->store.asked.sectors;
  for (size_t i = 0; i < KL_COUNT(sectors); i++)
    if (strcmp(sectors[i].file, file) == 0)
      EXPECT(n <= sectors[i].most && n >= sectors[i].least, "%s: %lld sectors", file, (long long)n);
}

// Of every workload at its real size: all is proved; sectors at most 1.05 times the arguments' own, passes over banks
// at most 1.05 times those that the bytes need, and 19 bytes of 20 by accesses of 16 bytes.
static const struct {
  const char *file;
  double sectors, passes; // 0: as of all
} others[] = {
    {"batch_norm.hlo", 2.01, 0}, // a channel is read for its mean, its variance and its results
    {"dense.hlo", 10, 1.06},     // of products
};

static void check_promises(const char *file, const kl_plan *p, const kl_cost *c) {
  double least = 0, sectors = 1.05, passes = 1.05;
  for (size_t i = 0; i < KL_COUNT(others); i++) {
    if (strcmp(others[i].file, file) != 0) continue;
    if (others[i].sectors > 0) sectors = others[i].sectors;
    if (others[i].passes > 0) passes = others[i].passes;
  }
  for (uint32_t i = 0; i < p->nargs; i++) {
    EXPECT(!p->slots[i].unproved, "%s: slot %u: %s", file, i, p->slots[i].unproved);
    least += (double)((p->slots[i].bytes + 31) / 32);
  }
  int64_t n = c->load.asked.sectors + c->store.asked.sectors;
  EXPECT((double)n <= sectors * least, "%s: %lld sectors, %.0f would do", file, (long long)n, least);
  const kl_requests *a = &c->shared_load.asked, *b = &c->shared_store.asked;
  double ideal = (double)(a->ideal_wavefronts + b->ideal_wavefronts);
  n = a->wavefronts + b->wavefronts;
  EXPECT((double)n <= passes * ideal, "%s: %lld wavefronts, %.0f would do", file, (long long)n, ideal);
  double wide = 16.0 * 32 * (double)(c->load.width[4] + c->store.width[4]);
  double all = (double)(c->load.asked.unique + c->store.asked.unique);
  EXPECT(wide >= 0.95 * all, "%s: %.0f of %.0f bytes by accesses of 16", file, wide, all);
}

static kiln_module *read_module(const char *folder, const char *file) {
  char path[1024];
  kiln_module *m = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *f = fopen(path, "rb");
  char *text = kl_arena_alloc(&arena, 1 << 18);
  ck_assert_msg(f != NULL, "cannot open %s", path);
  size_t read = fread(text, 1, 1 << 18, f);
  fclose(f);
  EXPECT(kiln_module_parse(cx, file, text, read, &m) == KILN_OK, "%s", file);
  return m;
}

// Every workload at its real size: exact, and in a time that has nothing to do with that size.
START_TEST(workloads) {
  const char *folder = KL_TESTS "/../benchmarks/workloads";
  DIR *d = opendir(folder);
  unsigned n = 0, slow = 0, inexact = 0;
  double worst = 0;
  ck_assert_msg(d != NULL, "cannot open %s", folder);
  for (struct dirent *e; (e = readdir(d));) {
    size_t size = strlen(e->d_name);
    if (size < 4 || strcmp(e->d_name + size - 4, ".hlo") != 0) continue;
    kiln_module *m = read_module(folder, e->d_name);
    kl_plan *p = plan_of(m, 0);
    if (p) {
      double verify, count, limit = 200e-6 * p->nlaunches;
      time_plan(p, limit, &verify, &count);
      kl_cost c = kl_plan_cost(p, KL_COST_THOROUGH);
      check_sectors(e->d_name, &c);
      check_promises(e->d_name, p, &c);
      printf("# %-26s planned in %6.1f us, verified in %6.1f us, counted in %6.1f us%s\n", e->d_name,
             1e6 * time_planning(m), 1e6 * verify, 1e6 * count, c.exact ? "" : ", not exact");
      bool known = strcmp(e->d_name, "batch_norm.hlo") == 0 || strcmp(e->d_name, "transpose_reduce.hlo") == 0;
      inexact += !c.exact && !known; // those have more places than are looked at one by one
      n++;
      slow += verify + count > limit;
      if (verify + count > worst) worst = verify + count;
      kl_plan_free(p);
    }
    kiln_diagnostics_clear(cx);
    kiln_module_destroy(&m);
  }
  closedir(d);
  printf("# %u plans, %u above 200 us a kernel, the longest %.0f us\n", n, slow, 1e6 * worst);
  EXPECT(n >= 15, "%u plans", n);
#if defined(__OPTIMIZE__) && !defined(SANITIZED)
  EXPECT(slow == 0, "%u plans took more than 200 us a kernel", slow);
#endif
  EXPECT(inexact == 0, "%u are not exact", inexact);
}
END_TEST

// Examples whose reads are shared, at most 1.05 times the fewest.
static const struct {
  const char *file;
  int64_t most, least;
} examples[] = {
    {"bias_relu.hlo", 1081344, 1048832},
    {"scale_rows.hlo", 1097728, 1049088},
    {"dequantise_s4.hlo", 671744, 655616},
};

START_TEST(sectors_of_examples) {
  kiln_module *m = read_module(KL_TESTS "/../examples", examples[_i].file);
  kl_plan *p = plan_of(m, 0);
  kl_cost c = kl_plan_cost(p, KL_COST_THOROUGH);
  int64_t n = c.load.asked.sectors + c.store.asked.sectors;
  EXPECT(n <= examples[_i].most && n >= examples[_i].least, "%s: %lld sectors", examples[_i].file, (long long)n);
  kl_plan_free(p);
  kiln_module_destroy(&m);
}
END_TEST

// What rows and columns take that do not fill blocks, or not registers: what is the same for all of a row is asked for
// once, neighbouring results are neighbouring lanes', and who stores nothing loads nothing for it.
static const struct {
  const char *file;
  int64_t memory, shared; // requests
} odd_rows[] = {
    {"batch_norm.hlo", 92, 14},    {"column_sum.hlo", 129, 72},           {"rms_norm_channels.hlo", 78, 288},
    {"cross_entropy.hlo", 87, 24}, {"layer_norm_backward.hlo", 541, 144}, {"row_reductions.hlo", 115, 69},
};

START_TEST(requests_of_odd_rows) {
  kiln_module *m = read_module(KL_TESTS "/../benchmarks/workloads/small", odd_rows[_i].file);
  kl_plan *p = plan_of(m, 0);
  ck_assert_msg(p != NULL, "%s has no plan", odd_rows[_i].file);
  kl_cost c = kl_plan_cost(p, KL_COST_THOROUGH);
  int64_t memory = c.load.asked.requests + c.store.asked.requests;
  int64_t shared = c.shared_load.asked.requests + c.shared_store.asked.requests;
  EXPECT(memory <= odd_rows[_i].memory && shared <= odd_rows[_i].shared, "%s: %lld requests, %lld of shared memory",
         odd_rows[_i].file, (long long)memory, (long long)shared);
  kl_plan_free(p);
  kiln_module_destroy(&m);
}
END_TEST

// Of 400,001 elements and results that are the wider ones: an access has whole sectors.
static const struct {
  const char *from, *to;
  int64_t most, least;
} widening[] = {
    {"u8", "f64", 112502, 112502},    {"pred", "c64", 112502, 112502}, {"f8e8m0fnu", "c128", 212502, 212502},
    {"bf16", "c128", 225002, 225002}, {"s4", "f32", 56294, 56252},
};

START_TEST(sectors_of_wider_results) {
  kl_sb b;
  kiln_module *m = NULL;
  kl_sb_init(&b, cx);
  kl_sbf(&b, "HloModule m\nENTRY e { x = %s[400001] parameter(0) ROOT y = %s[400001] convert(x) }\n", widening[_i].from,
         widening[_i].to);
  EXPECT(kiln_module_parse(cx, "m", b.p, b.n, &m) == KILN_OK, "%s", b.p);
  kl_plan *p = plan_of(m, 0);
  kl_cost c = kl_plan_cost(p, KL_COST_THOROUGH);
  int64_t n = c.load.asked.sectors + c.store.asked.sectors;
  EXPECT(n <= widening[_i].most && n >= widening[_i].least, "%s to %s: %lld sectors", widening[_i].from,
         widening[_i].to, (long long)n);
  kl_plan_free(p);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

// Elements that lie a few apart come from whole vectors, each of which is asked for once: sectors as often as there are
// vectors in a thread's span, and what is stored.
static const struct {
  const char *text;
  int64_t most, least;
} strided[] = {
    {"x = f32[512,1024] parameter(0) s = f32[512,512] slice(x), slice={[0:512],[0:1024:2]} t = f32[512,512] slice(x), "
     "slice={[0:512],[1:1024:2]} ROOT r = f32[512,512] add(s, t)",
     163840, 98304},
    {"x = u8[512,1024] parameter(0) s = u8[512,512] slice(x), slice={[0:512],[0:1024:2]} t = u8[512,512] slice(x), "
     "slice={[0:512],[1:1024:2]} ROOT r = u8[512,512] add(s, t)",
     40960, 24576},
    {"x = bf16[3145728] parameter(0) ROOT r = bf16[1048576] slice(x), slice={[2:3145728:3]}", 655360, 262144},
};

START_TEST(sectors_of_strided_reads) {
  kl_sb b;
  kiln_module *m = NULL;
  kl_sb_init(&b, cx);
  kl_sbf(&b, "HloModule m\nENTRY e { %s }\n", strided[_i].text);
  EXPECT(kiln_module_parse(cx, "m", b.p, b.n, &m) == KILN_OK, "%s", b.p);
  kl_plan *p = plan_of(m, 0);
  kl_cost c = kl_plan_cost(p, KL_COST_THOROUGH);
  int64_t n = c.load.asked.sectors + c.store.asked.sectors;
  EXPECT(n <= strided[_i].most && n >= strided[_i].least, "%s: %lld sectors", b.p, (long long)n);
  kl_plan_free(p);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

// --- choice ---------------------------------------------------------------------------------------------------------

static kl_plan *plan_by(const kiln_module *m, const char *chooser) {
  kl_plan *p = NULL;
  kl_plan_params params = {.target = gpu, .name = "k", .strategy.chooser = chooser};
  size_t before = kiln_diagnostics_count(cx);
  kiln_status st = kl_plan_make(cx, m, &m->comp[m->entry], &params, &arena, &p);
  EXPECT(st == KILN_OK ? kiln_diagnostics_count(cx) == before : st == KILN_E_UNSUPPORTED, "status %d", st);
  kiln_diagnostics_clear(cx);
  return p;
}

static double clocks(kl_plan *p) {
  kl_cost c = kl_plan_cost(p, KL_COST_QUICK);
  return kl_clocks_of(p, &c).all;
}

static const struct {
  const char *text, *chosen, *lost; // lost: NULL, nothing else takes it
} choices[] = {
    {"x = f32[512,1024] parameter(0) ROOT y = f32[1024,512] transpose(x), dimensions={1,0}", "transpose", "loop"},
    {"x = bf16[77,1,300] parameter(0) ROOT y = bf16[300,77,1] transpose(x), dimensions={2,0,1}", "transpose", "loop"},
    {"x = s8[2048,2048] parameter(0) y = s8[2048,2048] transpose(x), dimensions={1,0} ROOT z = s8[2048,2048] add(y, y)",
     "transpose", "loop"},
    {"x = f32[5000] parameter(0) ROOT y = f32[5000] negate(x)", "loop", NULL},
};

START_TEST(the_cheapest_is_written) {
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sbf(&b, "HloModule m\nENTRY e { %s }\n", choices[_i].text);
  kiln_module *m = NULL;
  EXPECT(kiln_module_parse(cx, "m", b.p, b.n, &m) == KILN_OK, "%s", b.p);
  kl_plan *p = plan_by(m, NULL), *same = plan_by(m, choices[_i].chosen), *other = NULL;
  EXPECT(strcmp(p->kind, choices[_i].chosen) == 0, "%s: %s", b.p, p->kind);
  EXPECT(clocks(p) == clocks(same), "%s: %g clocks, asked for %g", b.p, clocks(p), clocks(same));
  if (choices[_i].lost) other = plan_by(m, choices[_i].lost);
  if (other) {
    EXPECT(strcmp(other->kind, choices[_i].lost) == 0, "%s: %s", b.p, other->kind);
    EXPECT(clocks(p) <= clocks(other), "%s: %g clocks, %g would do", b.p, clocks(p), clocks(other));
    EXPECT(p->ndeclined == 1 && strcmp(p->declined[0].kind, choices[_i].lost) == 0, "%u declined", p->ndeclined);
    kl_plan_free(other);
  }
  kl_plan_free(p);
  kl_plan_free(same);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

START_TEST(what_cannot_be_asked_for) {
  static const char text[] = "HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }\n";
  kiln_module *m = NULL;
  EXPECT(kiln_module_parse(cx, "m", text, sizeof text - 1, &m) == KILN_OK, "parsed");
  EXPECT(!plan_by(m, "reduction"), "a reduction");
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("cost", EACH(open_context, close_context), {workloads},
                   {sectors_of_examples, (int)KL_COUNT(examples)}, {requests_of_odd_rows, KL_COUNT(odd_rows)},
                   {sectors_of_wider_results, KL_COUNT(widening)}, {sectors_of_strided_reads, KL_COUNT(strided)},
                   {the_cheapest_is_written, KL_COUNT(choices)}, {what_cannot_be_asked_for});
}
