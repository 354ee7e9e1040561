// Sectors, bytes, widths, passes over banks and meetings of lanes: for access patterns of every kind, against a model
// that looks at each byte.
#include "profile.h"

enum { BUFFER = 1 << 16, THREADS = 160, NOBODY = -1 };

// --- the kernels ----------------------------------------------------------------------------------------------------

// Each thread takes an offset from a table, or does nothing where that is -1.
#define BODY(shared, base, access)                                                                                     \
  HEADER shared ".visible .entry k(.param .u64 table, .param .u64 buffer) {\n"                                         \
                ".reg .b64 %rd<9>;\n.reg .b32 %r<20>;\n.reg .b16 %h<9>;\n.reg .pred %p;\n.reg .b128 %q;\n"             \
                "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r1, %r1, %r2, "      \
                "%r3;\nld.param.u64 %rd1, [table];\nld.param.u64 %rd2, [buffer];\nmul.wide.u32 %rd3, %r1, 8;\n"        \
                "add.u64 %rd1, %rd1, %rd3;\nld.global.u64 %rd4, [%rd1];\nsetp.ge.s64 %p, %rd4, 0;\n" base              \
                "@%p " access ";\nret;\n}\n"
#define GLOBAL(access) BODY("", "add.u64 %rd5, %rd2, %rd4;\n", access)
#define SHARED(access)                                                                                                 \
  BODY(".shared .align 16 .b8 s[65536];\n", "mov.u64 %rd5, s;\nadd.u64 %rd5, %rd5, %rd4;\n", access)
#define GENERIC(access)                                                                                                \
  BODY(".shared .align 16 .b8 s[65536];\n",                                                                            \
       "mov.u64 %rd5, s;\nadd.u64 %rd5, %rd5, %rd4;\ncvta.shared.u64 %rd5, %rd5;\n", access)

static const struct {
  const char *ptx, *text;
  kiln_access_kind kind;
  unsigned bytes;
} accesses[] = {
    {GLOBAL("ld.global.u8 %r4, [%rd5]"), "ld.global.u8", KILN_ACCESS_GLOBAL_LOAD, 1},
    {GLOBAL("ld.global.nc.u16 %h1, [%rd5]"), "ld.global.nc.u16", KILN_ACCESS_GLOBAL_LOAD, 2},
    {GLOBAL("ld.u32 %r4, [%rd5]"), "ld.u32", KILN_ACCESS_GLOBAL_LOAD, 4},
    {GLOBAL("ld.global.v2.u16 {%h1, %h2}, [%rd5]"), "v2.u16", KILN_ACCESS_GLOBAL_LOAD, 4},
    {GLOBAL("ld.global.b64 %rd6, [%rd5]"), "ld.global.b64", KILN_ACCESS_GLOBAL_LOAD, 8},
    {GLOBAL("ld.global.v4.f32 {%r4, %r5, %r6, %r7}, [%rd5]"), "v4.f32", KILN_ACCESS_GLOBAL_LOAD, 16},
    {GLOBAL("ld.global.v4.b64 {%rd5, %rd6, %rd7, %rd8}, [%rd5]"), "v4.b64", KILN_ACCESS_GLOBAL_LOAD, 32},
    {GLOBAL("st.global.u8 [%rd5], %r1"), "st.global.u8", KILN_ACCESS_GLOBAL_STORE, 1},
    {GLOBAL("st.u64 [%rd5], %rd4"), "st.u64", KILN_ACCESS_GLOBAL_STORE, 8},
    {GLOBAL("st.global.v4.u32 [%rd5], {%r1, %r1, %r1, %r1}"), "v4.u32", KILN_ACCESS_GLOBAL_STORE, 16},
    {GLOBAL("atom.global.add.u32 %r4, [%rd5], 1"), "atom.global", KILN_ACCESS_GLOBAL_ATOMIC, 4},
    {GLOBAL("red.global.add.u64 [%rd5], 1"), "red.global", KILN_ACCESS_GLOBAL_ATOMIC, 8},
    {SHARED("ld.shared.u8 %r4, [%rd5]"), "ld.shared.u8", KILN_ACCESS_SHARED_LOAD, 1},
    {SHARED("ld.shared.u16 %h1, [%rd5]"), "ld.shared.u16", KILN_ACCESS_SHARED_LOAD, 2},
    {SHARED("ld.shared.f32 %r4, [%rd5]"), "ld.shared.f32", KILN_ACCESS_SHARED_LOAD, 4},
    {SHARED("ld.shared.v2.f32 {%r4, %r5}, [%rd5]"), "v2.f32", KILN_ACCESS_SHARED_LOAD, 8},
    {SHARED("ld.shared.v4.f32 {%r4, %r5, %r6, %r7}, [%rd5]"), "v4.f32", KILN_ACCESS_SHARED_LOAD, 16},
    {SHARED("st.shared.u32 [%rd5], %r1"), "st.shared.u32", KILN_ACCESS_SHARED_STORE, 4},
    {SHARED("st.shared.u64 [%rd5], %rd4"), "st.shared.u64", KILN_ACCESS_SHARED_STORE, 8},
    {GENERIC("st.v2.u64 [%rd5], {%rd4, %rd4}"), "st.v2.u64", KILN_ACCESS_SHARED_STORE, 16},
    {GENERIC("ld.u32 %r4, [%rd5]"), "ld.u32", KILN_ACCESS_SHARED_LOAD, 4},
    {SHARED("atom.shared.add.u32 %r4, [%rd5], 1"), "atom.shared", KILN_ACCESS_SHARED_ATOMIC, 4},
};
enum { ACCESSES = sizeof accesses / sizeof accesses[0] };

// --- patterns -------------------------------------------------------------------------------------------------------

static const char *const patterns[] = {"in order", "backwards",  "one place",   "two places", "apart",  "far apart",
                                       "banks",    "misaligned", "every third", "diagonal",   "random", "few"};
enum { PATTERNS = sizeof patterns / sizeof patterns[0] };

static int64_t place(int pattern, int thread, int bytes, uint64_t *seed) {
  int64_t most = BUFFER / bytes, at = 0;
  uint64_t draw = *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  draw >>= 33;
  switch (pattern) {
  case 0: at = thread; break;
  case 1: at = THREADS - thread; break;
  case 2: at = 7; break;
  case 3: at = thread % 2 * 100; break;
  case 4: at = thread * 2; break;
  case 5: at = thread * (512 / bytes); break;
  case 6: at = thread * (128 / bytes) + 3; break;
  case 7: at = thread + 5; break;
  case 8:
    if (thread % 3) return NOBODY;
    at = thread;
    break;
  case 9: at = thread * 33; break;
  case 10: at = (int64_t)(draw % (uint64_t)most); break;
  case 11:
    if (draw % 7) return NOBODY;
    at = (int64_t)(draw / 7 % 40);
    break;
  }
  return at % most * bytes;
}

// --- the model ------------------------------------------------------------------------------------------------------

static kiln_access_counts model; // by the fields that it has
static uint8_t touched[BUFFER];

static unsigned count_marks(const uint8_t *marks, unsigned step) {
  unsigned n = 0;
  for (unsigned i = 0; i < BUFFER; i += step) n += memchr(marks + i, 1, step) != NULL;
  return n;
}

// Of so many lanes: for each bank the words that are asked of it.
static void model_banks(const int64_t *at, int lanes, int bytes, bool atomic) {
  static uint8_t words[BUFFER / 4];
  unsigned most = 0, all = 0;
  memset(words, 0, sizeof words);
  for (int i = 0; i < lanes; i++)
    for (int64_t b = at[i] / 4; at[i] >= 0 && b <= (at[i] + bytes - 1) / 4; b++) words[b]++;
  for (unsigned bank = 0; bank < 32; bank++) {
    unsigned n = 0;
    for (unsigned w = bank; w < BUFFER / 4; w += 32) n += atomic ? words[w] : words[w] != 0;
    most = n > most ? n : most;
  }
  for (unsigned w = 0; w < BUFFER / 4; w++) all += words[w] != 0;
  model.wavefronts += most;
  model.ideal_wavefronts += (all + 31) / 32;
}

static void model_warp(const int64_t *at, int bytes, kiln_access_kind kind) {
  static uint8_t marks[BUFFER];
  bool shared = kind >= KILN_ACCESS_SHARED_LOAD, atomic = strstr(kiln_access_kind_name(kind), "atomic") != NULL;
  unsigned lanes = 0, width = 0;
  int64_t only = NOBODY; // where all are
  bool apart = false;
  memset(marks, 0, sizeof marks);
  for (int i = 0; i < 32; i++) {
    unsigned same = 0;
    bool first = true;
    if (at[i] < 0) continue;
    lanes++;
    apart |= only != NOBODY && only != at[i];
    only = at[i];
    memset(marks + at[i], 1, (size_t)bytes);
    memset(touched + at[i], 1, (size_t)bytes);
    for (int j = 0; j < 32; j++) same += at[j] == at[i], first &= j >= i || at[j] != at[i];
    if (atomic && first) model.addresses++;
    if (atomic && same > model.most_on_one) model.most_on_one = same;
  }
  if (!lanes) return;
  while (1 << width < bytes) width++;
  model.requests++;
  model.lanes += lanes;
  model.bytes += lanes * (unsigned)bytes;
  model.width[width]++;
  if (shared) {
    bool together = bytes <= 4 || (kind == KILN_ACCESS_SHARED_LOAD && !apart);
    int group = together ? 32 : 128 / bytes;
    for (int i = 0; i < 32; i += group) model_banks(at + i, group, bytes, atomic);
    return;
  }
  model.unique_bytes += count_marks(marks, 1);
  model.sectors += count_marks(marks, 32);
  model.ideal_sectors += (count_marks(marks, 1) + 31) / 32;
}

// --- both -----------------------------------------------------------------------------------------------------------

#define SAME(field)                                                                                                    \
  EXPECT(got->field == model.field, "%s, %s: %s: found %llu, expected %llu", accesses[_i].text, patterns[k], #field,   \
         (unsigned long long)got->field, (unsigned long long)model.field)

static void no_fields(kiln_access_counts *a) {
  memset(a, 0, sizeof *a);
}

START_TEST(every_pattern) {
  fixture f;
  void *host;
  uint64_t seed = 5 + (uint64_t)_i;
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, THREADS * 8, &host), 0};
  for (int k = 0; k < PATTERNS; k++) {
    int64_t *table = host, at[32];
    arguments[1] = fixture_memory(&f, BUFFER, NULL);
    no_fields(&model);
    memset(touched, 0, sizeof touched);
    for (int i = 0; i < THREADS; i++) table[i] = place(k, i, (int)accesses[_i].bytes, &seed);
    for (int block = 0; block < 2; block++) // blocks of 80: warps of 32, 32, 16
      for (int first = 0; first < 80; first += 32) {
        for (int i = 0; i < 32; i++) at[i] = first + i < 80 ? table[block * 80 + first + i] : NOBODY;
        model_warp(at, (int)accesses[_i].bytes, accesses[_i].kind);
      }
    fixture_run(&f, accesses[_i].ptx, (kiln_sim_launch_params){.grid = {2}, .block = {80}}, arguments, NULL);
    const kiln_profile_line *l = line_with(&f, accesses[_i].text, 0);
    ck_assert_uint_eq(l->warps, 6);
    ck_assert_uint_eq(l->active, THREADS);
    ck_assert_uint_eq(l->lanes, model.lanes);
    if (!model.requests) continue;
    const kiln_access_counts *got = access_of(l, accesses[_i].kind);
    SAME(requests);
    SAME(lanes);
    SAME(bytes);
    SAME(unique_bytes);
    SAME(sectors);
    SAME(ideal_sectors);
    SAME(wavefronts);
    SAME(ideal_wavefronts);
    SAME(addresses);
    SAME(most_on_one);
    for (int w = 0; w < 6; w++) SAME(width[w]);
    bool store = accesses[_i].kind == KILN_ACCESS_GLOBAL_STORE, atomic = accesses[_i].kind == KILN_ACCESS_GLOBAL_ATOMIC;
    for (size_t b = 0; b < f.t.buffer_count && accesses[_i].kind < KILN_ACCESS_LOCAL_LOAD; b++) {
      if (f.t.buffers[b].address != arguments[1]) continue;
      ck_assert_uint_eq(f.t.buffers[b].read_bytes, store ? 0 : count_marks(touched, 1));
      ck_assert_uint_eq(f.t.buffers[b].written_bytes, store || atomic ? count_marks(touched, 1) : 0);
      ck_assert_uint_eq(f.t.buffers[b].bytes, BUFFER);
    }
  }
  fixture_close(&f);
}
END_TEST

// Local memory lies word by word beside that of the other lanes: a whole warp's words at one place are four sectors.
static const struct {
  const char *access;
  unsigned bytes, sectors; // of a full warp
} locals[] = {{"st.local.u32 [%rd1], %r1", 4, 4},
              {"st.local.u8 [%rd1], %r1", 1, 4},
              {"st.local.u64 [%rd1], %rd2", 8, 8},
              {"st.local.v4.u32 [%rd1], {%r1, %r1, %r1, %r1}", 16, 16}};

START_TEST(local_memory) {
  fixture f;
  char ptx[1024];
  uint64_t arguments[16] = {0};
  fixture_open(&f);
  snprintf(ptx, sizeof ptx,
           HEADER ".visible .entry k() {\n.local .align 16 .b8 depot[64];\n.reg .b64 %%rd<9>;\n.reg .b32 %%r<9>;\n"
                  "mov.u64 %%rd1, depot;\nmov.u32 %%r1, %%tid.x;\nmov.u64 %%rd2, 5;\n%s;\nld.local.u32 %%r2, "
                  "[%%rd1];\nret;\n}\n",
           locals[_i].access);
  fixture_run(&f, ptx, (kiln_sim_launch_params){.grid = {3}, .block = {72}}, arguments, NULL);
  const kiln_access_counts *st = &f.t.accesses[KILN_ACCESS_LOCAL_STORE], *ld = &f.t.accesses[KILN_ACCESS_LOCAL_LOAD];
  ck_assert_uint_eq(st->requests, 9);
  ck_assert_uint_eq(st->bytes, 3 * 72 * locals[_i].bytes);
  ck_assert_uint_eq(st->sectors, 3 * (2 * locals[_i].sectors + locals[_i].sectors / 4)); // 32, 32 and 8 lanes
  ck_assert_uint_eq(ld->sectors, 3 * (4 + 4 + 1));
  ck_assert_uint_eq(ld->l1_hits, ld->sectors); // what was just written
  fixture_close(&f);
}
END_TEST

// Parameters and constants are requests; a copy is a load and a store; lanes of one generic access may go apart.
START_TEST(other_spaces) {
  fixture f;
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)};
  fixture_run(&f,
              HEADER ".const .align 4 .b32 c[4] = {1, 2, 3, 4};\n.shared .align 16 .b8 s[4096];\n"
                     ".visible .entry k(.param .u64 p) {\n.reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n.reg .pred %p<3>;\n"
                     "ld.param.u64 %rd1, [p];\nld.const.u32 %r1, [c+4];\nmov.u32 %r2, %tid.x;\nmul.lo.u32 %r3, %r2, "
                     "16;\ncvt.u64.u32 %rd2, %r3;\nadd.u64 %rd3, %rd1, %rd2;\nmov.u64 %rd4, s;\nadd.u64 %rd4, %rd4, "
                     "%rd2;\nshl.b32 %r4, %r2, 1;\nmin.u32 %r4, %r4, 16;\n"
                     "cp.async.cg.shared.global [%rd4], [%rd3], 16, %r4;\ncp.async.commit_group;\n"
                     "cp.async.wait_all;\ncvta.shared.u64 %rd5, %rd4;\nsetp.lt.u32 %p1, %r2, 8;\n"
                     "selp.u64 %rd6, %rd5, %rd3, %p1;\nst.u32 [%rd6], %r2;\nret;\n}\n",
              (kiln_sim_launch_params){.block = {32}}, arguments, NULL);
  const kiln_access_counts *c = &f.t.accesses[KILN_ACCESS_CONSTANT];
  ck_assert(c->requests == 2 && c->lanes == 64 && c->bytes == 32 * (8 + 4) && c->sectors == 0);
  // lane i copies min(2i, 16) bytes: none in lane 0, all from lane 8 on
  const kiln_access_counts *from = access_of(line_with(&f, "cp.async.cg", 0), KILN_ACCESS_GLOBAL_LOAD);
  const kiln_access_counts *to = access_of(line_with(&f, "cp.async.cg", 0), KILN_ACCESS_SHARED_STORE);
  ck_assert(from->requests == 1 && from->lanes == 31 && from->bytes == 2 * 28 + 24 * 16 && from->sectors == 16);
  ck_assert(to->requests == 1 && to->lanes == 32 && to->wavefronts == 4 && to->width[4] == 1);
  ck_assert_uint_eq(line_with(&f, "commit_group", 0)->warps, 1);
  const kiln_profile_line *l = line_with(&f, "[%rd6]", 0);
  ck_assert(access_of(l, KILN_ACCESS_SHARED_STORE)->lanes == 8 && access_of(l, KILN_ACCESS_GLOBAL_STORE)->lanes == 24);
  ck_assert(access_of(l, KILN_ACCESS_GLOBAL_STORE)->sectors == 12 && l->access_count == 2);
  ck_assert_uint_eq(access_of(l, KILN_ACCESS_SHARED_STORE)->wavefronts, 1);
  fixture_close(&f);
}
END_TEST

// Copies whose sources overlap by lanes of different sizes: bytes and sectors count once, whichever lane comes first.
static const struct {
  const char *name, *size, *at; // of lane %r2: bytes to %r4, how far from the buffer to %r5
  unsigned lanes, bytes, unique, sectors;
} overlaps[] = {
    // 2, 4, ..., 16, 16 ... bytes of the same 16
    {"rising", "shl.b32 %r4, %r2, 1;\nadd.u32 %r4, %r4, 2;\nmin.u32 %r4, %r4, 16;\n", "mov.u32 %r5, 0;\n", 32, 456, 16,
     1},
    // 16 bytes of lane 0, 15 of lane 1, ..., 1 of lane 15, none of the others
    {"falling", "sub.s32 %r4, 16, %r2;\nmax.s32 %r4, %r4, 0;\n", "mov.u32 %r5, 0;\n", 16, 136, 16, 1},
    // pairs of lanes at each 16 bytes: 4 bytes of the even lane, 12 of the odd one
    {"pairs", "and.b32 %r4, %r2, 1;\nmad.lo.u32 %r4, %r4, 8, 4;\n", "shr.u32 %r5, %r2, 1;\nshl.b32 %r5, %r5, 4;\n", 32,
     256, 192, 8},
    // the lanes in reverse, 8 bytes each of 16
    {"apart", "mov.u32 %r4, 8;\n", "sub.u32 %r5, 31, %r2;\nshl.b32 %r5, %r5, 4;\n", 32, 256, 256, 16},
};

START_TEST(overlapping_copies) {
  fixture f;
  char ptx[2048];
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)};
  snprintf(ptx, sizeof ptx,
           HEADER ".shared .align 16 .b8 s[512];\n.visible .entry k(.param .u64 p) {\n.reg .b64 %%rd<9>;\n"
                  ".reg .b32 %%r<9>;\nld.param.u64 %%rd1, [p];\nmov.u32 %%r2, %%tid.x;\n%s%scvt.u64.u32 %%rd2, %%r5;\n"
                  "add.u64 %%rd3, %%rd1, %%rd2;\nmov.u32 %%r6, s;\nshl.b32 %%r7, %%r2, 4;\nadd.u32 %%r7, %%r6, %%r7;\n"
                  "cp.async.cg.shared.global [%%r7], [%%rd3], 16, %%r4;\ncp.async.wait_all;\nret;\n}\n",
           overlaps[_i].size, overlaps[_i].at);
  fixture_run(&f, ptx, (kiln_sim_launch_params){.block = {32}}, arguments, NULL);
  const kiln_access_counts *a = access_of(line_with(&f, "cp.async.cg", 0), KILN_ACCESS_GLOBAL_LOAD);
  EXPECT(a->lanes == overlaps[_i].lanes && a->bytes == overlaps[_i].bytes && a->unique_bytes == overlaps[_i].unique &&
             a->sectors == overlaps[_i].sectors && a->ideal_sectors == (overlaps[_i].unique + 31) / 32,
         "%s: %d lanes, %d bytes, %d unique, %d sectors, %d at least", overlaps[_i].name, (int)a->lanes, (int)a->bytes,
         (int)a->unique_bytes, (int)a->sectors, (int)a->ideal_sectors);
  ck_assert_uint_eq(f.t.buffers[0].read_bytes, overlaps[_i].unique);
  fixture_close(&f);
}
END_TEST

// Shared memory of a cluster: words of two blocks at one offset are two, which one bank serves one after the other.
START_TEST(another_block) {
  static const char ptx[] =
      HEADER ".shared .align 16 .b8 s[512];\n.visible .entry k(.param .u64 p) {\n.reg .b32 %r<9>;\n.reg .pred %p<3>;\n"
             "mov.u32 %r1, %tid.x;\nmov.u32 %r2, s;\nshr.u32 %r3, %r1, 4;\nmapa.shared::cluster.u32 %r4, %r2, %r3;\n"
             "ld.shared::cluster.u32 %r5, [%r4];\nmapa.shared::cluster.u32 %r4, %r2, 0;\n"
             "ld.shared::cluster.u32 %r6, [%r4+4];\natom.shared.add.u32 %r7, [%r2], 1;\nret;\n}\n";
  fixture f;
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)};
  fixture_run(&f, ptx, (kiln_sim_launch_params){.grid = {2}, .block = {32}, .cluster = {2, 1, 1}}, arguments, NULL);
  // half of the lanes in each block's memory, whichever is the own one
  const kiln_access_counts *a = access_of(line_with(&f, "[%r4]", 0), KILN_ACCESS_SHARED_LOAD);
  ck_assert(a->requests == 2 && a->remote == 2 && a->wavefronts == 4 && a->ideal_wavefronts == 2);
  // all in the first block's: another one's for the second
  a = access_of(line_with(&f, "[%r4+4]", 0), KILN_ACCESS_SHARED_LOAD);
  ck_assert(a->requests == 2 && a->remote == 1 && a->wavefronts == 2);
  // lanes that meet at an address of shared memory are no traffic on one of the device's
  a = access_of(line_with(&f, "atom.shared", 0), KILN_ACCESS_SHARED_ATOMIC);
  ck_assert(a->addresses == 2 && a->most_on_one == 32 && a->wavefronts == 64);
  ck_assert(f.t.hottest_requests == 0 && f.t.hottest_address == 0);
  fixture_close(&f);
}
END_TEST

int main(void) {
  return RUN_TESTS("count_memory", NO_FRAME, {every_pattern, ACCESSES},
                   {local_memory, sizeof locals / sizeof locals[0]}, {other_spaces},
                   {overlapping_copies, sizeof overlaps / sizeof overlaps[0]}, {another_block});
}
