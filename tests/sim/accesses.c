// Loads and stores by where their lanes lie: side by side, all at one place, apart by one number or by none in common;
// all lanes or some; in every space and of every type. What they do is told by bytes, one after the other.
#include "sim/lanes/lanes.h"
#include "sim/machine/observe.h"
#include "stage.h"
#include "support/random.h"
#include "support/share.h"
#include "support/suite.h"

#include <limits.h>
#include <stdio.h>

enum { LANES = 32, MEMORY = 8192, MOST = 4, WORDS = MEMORY / 4 };

typedef struct form {
  const char *type, *registers; // of memory and of what holds an element
  unsigned bytes, count, wide;  // wide: bytes of the register
  bool sign;
} form;
static const form forms[] = {
    {"u8", "b16", 1, 1, 2},       {"u8", "b32", 1, 1, 4},     {"s8", "b16", 1, 1, 2, true},
    {"s8", "b64", 1, 1, 8, true}, {"u16", "b16", 2, 1, 2},    {"s16", "b32", 2, 1, 4, true},
    {"u16", "b64", 2, 1, 8},      {"b32", "b32", 4, 1, 4},    {"s32", "b64", 4, 1, 8, true},
    {"u32", "b64", 4, 1, 8},      {"b64", "b64", 8, 1, 8},    {"v2.b16", "b16", 2, 2, 2},
    {"v2.b32", "b32", 4, 2, 4},   {"v4.b32", "b32", 4, 4, 4}, {"v4.u8", "b32", 1, 4, 4},
    {"v2.b64", "b64", 8, 2, 8},   {"v4.b32", "b64", 4, 4, 8},
};

// space, how its addresses are made from %d2, which memory they reach
typedef enum memory_kind { GLOBAL, SHARED, LOCAL, CONSTANT } memory_kind;
static const struct {
  const char *name, *address, *reg;
  memory_kind kind;
} spaces[] = {
    {".global", "add.u64 %d3, %d6, %d2;\n", "%d3", GLOBAL},
    {"", "add.u64 %d3, %d6, %d2;\n", "%d3", GLOBAL},
    {".shared", "cvt.u32.u64 %r3, %d2;\nmov.u32 %r4, s;\nadd.u32 %r3, %r3, %r4;\n", "%r3", SHARED},
    {".shared", "mov.u64 %d3, s;\nadd.u64 %d3, %d3, %d2;\n", "%d3", SHARED},
    {"", "mov.u64 %d3, s;\ncvta.shared.u64 %d3, %d3;\nadd.u64 %d3, %d3, %d2;\n", "%d3", SHARED},
    {".local", "mov.u64 %d3, l;\nadd.u64 %d3, %d3, %d2;\n", "%d3", LOCAL},
    {"", "mov.u64 %d3, l;\ncvta.local.u64 %d3, %d3;\nadd.u64 %d3, %d3, %d2;\n", "%d3", LOCAL},
    {".const", "mov.u64 %d3, c;\nadd.u64 %d3, %d3, %d2;\n", "%d3", CONSTANT},
};

// Copies all memory between global %d6 and the space, word by word; threads' own take other values in each.
#define FILL(space, name, change)                                                                                      \
  "mov.u32 %r6, 0;\nfill:\nmul.wide.u32 %d8, %r6, 4;\nadd.u64 %d9, %d6, %d8;\nld.global.u32 %r7, [%d9];\n" change      \
  "mov.u64 %d9, " name ";\nadd.u64 %d9, %d9, %d8;\nst." space ".u32 [%d9], %r7;\nadd.u32 %r6, %r6, 1;\n"               \
  "setp.lt.u32 %p2, %r6, 2048;\n@%p2 bra fill;\nbar.sync 0;\n"
#define DUMP(space, name, to)                                                                                          \
  "bar.sync 0;\nmov.u32 %r6, 0;\ndump:\nmul.wide.u32 %d8, %r6, 4;\nmov.u64 %d9, " name ";\nadd.u64 %d9, %d9, %d8;\n"   \
  "ld." space ".u32 %r7, [%d9];\n" to "add.u64 %d9, %d9, %d8;\nst.global.u32 [%d9], %r7;\nadd.u32 %r6, %r6, 1;\n"      \
  "setp.lt.u32 %p2, %r6, 2048;\n@%p2 bra dump;\n"
static const char *const fills[] = {"", FILL("shared", "s", ""),
                                    FILL("local", "l", "mad.lo.u32 %r7, %r1, 16843009, %r7;\n"), ""};
static const char *const dumps[] = {"", DUMP("shared", "s", "mov.u64 %d9, %d6;\n"),
                                    DUMP("local", "l", "mul.wide.u32 %d9, %r1, 8192;\nadd.u64 %d9, %d9, %d6;\n"), ""};

// `%d7`: an element of 8 bytes for each lane and number, to write from or to read into.
static void write_kernel(kl_sb *b, const form *f, size_t space, bool store) {
  memory_kind kind = spaces[space].kind;
  kl_sb_puts(b, ".version 8.0\n.target sm_90\n.address_size 64\n");
  if (kind == CONSTANT) kl_sbf(b, ".const .align 16 .b8 c[%d];\n", MEMORY);
  kl_sb_puts(b, ".visible .entry k(.param .u64 offsets, .param .u64 memory, .param .u64 values) {\n"
                ".reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .b64 %d<12>;\n");
  if (kind == SHARED) kl_sbf(b, ".shared .align 16 .b8 s[%d];\n", MEMORY);
  if (kind == LOCAL) kl_sbf(b, ".local .align 16 .b8 l[%d];\n", MEMORY);
  kl_sbf(b, ".reg .%s %%x<4>;\n", f->registers);
  kl_sb_puts(b, "ld.param.u64 %d1, [offsets];\nld.param.u64 %d6, [memory];\nld.param.u64 %d7, [values];\n"
                "mov.u32 %r1, %tid.x;\nmul.wide.u32 %d4, %r1, 16;\nadd.u64 %d1, %d1, %d4;\nld.global.u64 %d2, [%d1];\n"
                "ld.global.u32 %r2, [%d1+8];\nsetp.ne.u32 %p1, %r2, 0;\nmul.wide.u32 %d4, %r1, 32;\n"
                "add.u64 %d7, %d7, %d4;\n");
  kl_sb_puts(b, fills[kind]);
  kl_sb_puts(b, spaces[space].address);
  for (unsigned k = 0; k < f->count; k++) kl_sbf(b, "ld.global.b%u %%x%u, [%%d7+%u];\n", 8 * f->wide, k, 8 * k);
  kl_sbf(b, "@%%p1 %s%s.%s ", store ? "st" : "ld", spaces[space].name, f->type);
  if (store) kl_sbf(b, "[%s], ", spaces[space].reg);
  kl_sb_puts(b, f->count > 1 ? "{" : "");
  for (unsigned k = 0; k < f->count; k++) kl_sbf(b, "%s%%x%u", k ? ", " : "", k);
  kl_sb_puts(b, f->count > 1 ? "}" : "");
  if (!store) kl_sbf(b, ", [%s]", spaces[space].reg);
  kl_sb_puts(b, ";\n");
  for (unsigned k = 0; k < f->count; k++) kl_sbf(b, "st.global.b%u [%%d7+%u], %%x%u;\n", 8 * f->wide, 8 * k, k);
  if (store) kl_sb_puts(b, dumps[kind]);
  kl_sb_puts(b, "ret;\n}\n");
}

// --- where lanes lie ------------------------------------------------------------------------------------------------

enum { PATTERNS = 9, MASKS = 4 };
static uint64_t offset_of(unsigned pattern, uint64_t i, uint64_t bytes) {
  switch (pattern) {
  case 0: return i * bytes;
  case 1: return 3 * bytes;
  case 2: return 2 * i * bytes;
  case 3: return (LANES - 1 - i) * bytes;
  case 4: return (i < 16 ? i : i + LANES) * bytes;
  case 5: return (i * i * 5 + i) % 61 * bytes;
  case 6: return i % 16 * bytes;
  case 7: return 7 * i * bytes;
  default: return (i == 29 ? 40 : i) * bytes; // one of them apart
  }
}
static bool executes(unsigned mask, unsigned i) {
  return mask == 0 ? true : mask == 1 ? i % 2 == 1 : mask == 2 ? i == 13 : i > 0;
}

typedef struct lane_row {
  uint64_t offset;
  uint32_t on, unused;
} lane_row;

static uint64_t element(const uint8_t *from, const form *f) {
  uint64_t v = 0;
  memcpy(&v, from, f->bytes);
  if (f->sign && f->bytes < 8 && v >> (8 * f->bytes - 1)) v |= ~(uint64_t)0 << 8 * f->bytes;
  return f->wide < 8 ? v & (((uint64_t)1 << 8 * f->wide) - 1) : v;
}

typedef struct images {
  uint8_t memory[LANES][MEMORY]; // local memory of each lane, else the first alone
  uint64_t values[LANES][MOST];
} images;

// What the instruction does to both.
static void perform(images *m, const form *f, memory_kind kind, const lane_row *rows, bool store) {
  for (unsigned i = 0; i < LANES; i++)
    for (unsigned k = 0; rows[i].on && k < f->count; k++) {
      uint8_t *at = m->memory[kind == LOCAL ? i : 0] + rows[i].offset + k * f->bytes;
      uint64_t v = element(at, f);
      if (store)
        memcpy(at, &m->values[i][k], f->bytes);
      else
        memcpy(&m->values[i][k], &v, f->wide);
    }
}

static void fill(images *m, memory_kind kind) {
  uint32_t words[WORDS], x = 12345;
  for (unsigned k = 0; k < WORDS; k++) words[k] = x = x * 1664525 + 1013904223;
  for (uint32_t i = 0; i < LANES; i++) {
    uint32_t own[WORDS];
    for (unsigned k = 0; k < WORDS; k++) own[k] = words[k] + (kind == LOCAL ? i * 0x01010101 : 0);
    memcpy(m->memory[i], own, MEMORY);
  }
  for (unsigned i = 0; i < LANES; i++)
    for (unsigned k = 0; k < MOST; k++) m->values[i][k] = (uint64_t)(i * 4 + k + 1) * 0xf1e2d3c4b5a69788;
}

static void try_pattern(stage *s, const form *f, memory_kind kind, uint64_t constants, unsigned pattern, unsigned mask,
                        bool store) {
  static images want;
  lane_row rows[LANES] = {{0}};
  uint64_t bytes = (uint64_t)f->bytes * f->count;
  for (unsigned i = 0; i < LANES; i++) rows[i] = (lane_row){offset_of(pattern, i, bytes), executes(mask, i), 0};
  fill(&want, kind);
  uint64_t at[] = {stage_memory(s, sizeof rows), stage_memory(s, sizeof want.memory),
                   stage_memory(s, sizeof want.values)};
  memcpy(kl_memory_at(&s->m, at[0], sizeof rows), rows, sizeof rows);
  char *memory = kl_memory_at(&s->m, at[1], sizeof want.memory),
       *values = kl_memory_at(&s->m, at[2], sizeof want.values);
  memcpy(memory, want.memory[0], MEMORY);
  memcpy(values, want.values, sizeof want.values);
  if (constants) memcpy(kl_memory_at(&s->m, constants, MEMORY), want.memory[0], MEMORY);
  kl_fault fault;
  kl_launch l = {.kernel = s->k, .grid = {1, 1, 1}, .block = {LANES, 1, 1}, .params = at, .workers = 1};
  ck_assert_int_eq(kl_launch_run(s->cx, &s->m, &l, &fault), KILN_OK);
  perform(&want, f, kind, rows, store);
  size_t compared = !store ? 0 : kind == LOCAL ? sizeof want.memory : MEMORY;
  EXPECT(memcmp(values, want.values, sizeof want.values) == 0, "%s of %s, pattern %u, mask %u: other values",
         store ? "a store" : "a load", f->type, pattern, mask);
  EXPECT(memcmp(memory, want.memory, compared) == 0, "a store of %s, pattern %u, mask %u: other memory", f->type,
         pattern, mask);
  for (int k = 0; k < 3; k++) kl_memory_release(&s->m, at[k]);
}

START_TEST(all_lanes_and_some) {
  static char ptx[1 << 14];
  size_t space = (size_t)_i / 2;
  bool store = _i % 2;
  uint64_t number = (uint64_t)_i * KL_COUNT(forms) * PATTERNS * MASKS; // one in three is tried
  if (store && spaces[space].kind == CONSTANT) return;
  for (size_t k = 0; k < KL_COUNT(forms); k++) {
    stage s;
    kl_sb text;
    uint64_t constants = 0, bytes;
    stage_open(&s);
    kl_sb_init(&text, s.cx);
    write_kernel(&text, &forms[k], space, store);
    snprintf(ptx, sizeof ptx, "%s", text.p);
    kl_sb_free(&text);
    stage_expect(&s, forms[k].type, ptx, "k");
    kl_loaded_variable(s.l, KL_STR("c"), &constants, &bytes);
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++)
      for (unsigned mask = 0; mask < MASKS; mask++, number++)
        if (share_has(number, 3)) try_pattern(&s, &forms[k], spaces[space].kind, constants, pattern, mask, store);
    stage_close(&s);
  }
}
END_TEST

// --- one lane leaves the memory -------------------------------------------------------------------------------------

// By 4 bytes from the begin of 4096: the step from lane to lane, and the lane at fault.
static const struct {
  uint64_t first, step;
  int lane; // -1: none
  kl_fault_kind fault;
} ends[] = {
    {0, 4, -1, KL_FAULT_NONE},
    {4096 - 128, 4, -1, KL_FAULT_NONE},
    {4096 - 124, 4, 31, KL_FAULT_ADDRESS},
    {4092, 0, -1, KL_FAULT_NONE},
    {4096, 0, 0, KL_FAULT_ADDRESS},
    {4092, (uint64_t)-132, -1, KL_FAULT_NONE},
    {4088, (uint64_t)-132, 31, KL_FAULT_ADDRESS},
    {2, 4, 0, KL_FAULT_MISALIGNED},
    {0, 6, 1, KL_FAULT_MISALIGNED},
    {0, (uint64_t)1 << 60, 1, KL_FAULT_ADDRESS},
    {0, (uint64_t)1 << 63, 1, KL_FAULT_ADDRESS},
    {0, 0xef7bdef7bdef7be0, 1, KL_FAULT_ADDRESS}, // 31 of these come back: 31 * step is 32 modulo 2^64
    {1024, 4096, 1, KL_FAULT_ADDRESS},
};

START_TEST(ends_of_memory) {
  static const char *const kinds[] = {"ld.global.u32 %r2, [%d1];\n", "st.global.u32 [%d1], %r1;\n",
                                      "ld.u32 %r2, [%d1];\n"};
  char ptx[1024];
  stage s;
  kl_fault fault = {0};
  const char *access = kinds[(size_t)_i % KL_COUNT(kinds)];
  size_t k = (size_t)_i / KL_COUNT(kinds);
  snprintf(ptx, sizeof ptx,
           ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 at, .param .u64 step) {\n"
           ".reg .b32 %%r<3>;\n.reg .b64 %%d<5>;\nld.param.u64 %%d1, [at];\nld.param.u64 %%d2, [step];\n"
           "mov.u32 %%r1, %%tid.x;\ncvt.u64.u32 %%d3, %%r1;\nmad.lo.u64 %%d1, %%d3, %%d2, %%d1;\n%sret;\n}\n",
           access);
  stage_open(&s);
  stage_expect(&s, access, ptx, "k");
  uint64_t params[] = {stage_memory(&s, 4096) + ends[k].first, ends[k].step};
  kl_launch l = {.kernel = s.k, .grid = {1, 1, 1}, .block = {LANES, 1, 1}, .params = params, .workers = 1};
  kiln_status status = kl_launch_run(s.cx, &s.m, &l, &fault);
  EXPECT((status == KILN_OK) == (ends[k].lane < 0), "row %zu, %s: %s", k, access, stage_why(&s));
  ck_assert_int_eq(fault.kind, ends[k].fault);
  if (ends[k].lane >= 0) ck_assert_uint_eq(fault.thread[0], (unsigned)ends[k].lane);
  stage_close(&s);
}
END_TEST

// --- one access after the other from the same register ------------------------------------------------------------

// Each thread's register is a place of its own, moved by `moved` bytes since the kernel began; lanes that execute.
enum { ODD = 0xaaaaaaaa };
#define FOUR "{%r1, %r2, %r3, %r4}"
static const struct {
  const char *text;
  int offset, moved;
  unsigned bytes;
  uint32_t lanes;
  bool shared;
} series[] = {
    {"ld.global.v4.b32 " FOUR ", [%d1+32];\n", 32, 0, 16, KL_ALL_LANES, false},
    {"st.global.v4.b32 [%d1+48], " FOUR ";\n", 48, 0, 16, KL_ALL_LANES, false},
    {"ld.v4.b32 " FOUR ", [%d1+64];\n", 64, 0, 16, KL_ALL_LANES, false},
    {"st.shared.v4.b32 [%r5+64], " FOUR ";\n", 64, -64, 16, KL_ALL_LANES, true},
    {"ld.shared.v4.b32 " FOUR ", [%r5+80];\n", 80, -64, 16, KL_ALL_LANES, true},
    {"ld.shared.b64 %d5, [%r5+72];\n", 72, -64, 8, KL_ALL_LANES, true},
    {"@%p1 ld.shared.b64 %d5, [%r5+88];\n", 88, -64, 8, ODD, true},
    {"ld.global.b32 %r1, [%d1+68];\n", 68, 0, 4, KL_ALL_LANES, false},
    {"@%p1 ld.global.b32 %r2, [%d1+64];\n", 64, 0, 4, ODD, false},
    {"@%p1 ld.global.b32 %r3, [%d1+60];\n", 60, 0, 4, ODD, false},
    {"@!%p1 st.global.b32 [%d1+60], %r2;\n", 60, 0, 4, ~ODD, false},
    {"@%p1 st.global.b32 [%d1+56], %r1;\n", 56, 0, 4, ODD, false},
    {"add.u64 %d1, %d1, 16;\nst.global.b32 [%d1+56], %r3;\n", 56, 16, 4, KL_ALL_LANES, false},
    {"st.global.b32 [%d1+52], %r4;\n", 52, 16, 4, KL_ALL_LANES, false},
    {"add.u64 %d1, %d1, %d4;\nld.global.b32 %r1, [%d1+52];\n", 52, 16, 4, KL_ALL_LANES, false}, // by 0
    {"ld.global.b32 %r2, [%d1+44];\n", 44, 16, 4, KL_ALL_LANES, false},
    {"add.u64 %d1, %d1, 4;\nld.global.b32 %r3, [%d1+48];\n", 48, 20, 4, KL_ALL_LANES, false},
    // The first is left out in the second round, the other one is not.
    {"mov.u32 %r7, 0;\nagain:\nsetp.ne.u32 %p0, %r7, 0;\n@%p0 bra past;\nld.global.b32 %r1, [%d1+24];\n", 24, 20, 4,
     KL_ALL_LANES, false},
    {"past:\nld.global.b32 %r2, [%d1+28];\nadd.u64 %d1, %d1, 16;\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p0, %r7, 2;\n"
     "@%p0 bra again;\n",
     28, 20, 4, KL_ALL_LANES, false},
    {"", 28, 36, 4, KL_ALL_LANES, false},
    // An address that is loaded over the one it comes from.
    {"add.u64 %d1, %d1, 4;\nadd.u64 %d5, %d1, 16;\nst.global.b64 [%d1+96], %d5;\n", 96, 56, 8, KL_ALL_LANES, false},
    {"mov.u64 %d6, %d1;\nld.global.b64 %d6, [%d6+96];\n", 96, 56, 8, KL_ALL_LANES, false},
    {"ld.global.b64 %d5, [%d6+96];\n", 96, 72, 8, KL_ALL_LANES, false},
};
enum { WARPS = 2, ROOM = 4096 }; // bytes of either memory

typedef struct onlooker {
  kl_observer observer;
  const kl_memory *memory;
  uint64_t base;
  unsigned pattern, seen[WARPS];
} onlooker;

static uint64_t place_of(unsigned pattern, unsigned thread) {
  return offset_of(pattern, thread % LANES, 16) + thread / LANES * 16;
}

// What is said of an access beside what each lane's place is, and the places of the one before.
static void look_on(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p) {
  onlooker *s = (onlooker *)(void *)o;
  if (m->where == KL_AT_PARAM) return;
  const unsigned n = s->seen[w->rank]++ - 1;
  uint64_t least = UINT64_MAX, most = 0, at[LANES];
  (void)op;
  if (n == UINT_MAX) return;         // of the table
  if (n >= KL_COUNT(series)) return; // what comes last
  const uint32_t lanes = series[n].lanes;
  ck_assert_uint_eq(w->x.mask, lanes);
  for (unsigned i = 0; i < LANES; i++) {
    at[i] = place_of(s->pattern, w->rank * LANES + i) + (uint64_t)(series[n].offset + series[n].moved);
    if (!series[n].shared) at[i] += s->base;
    if (!(lanes >> i & 1)) continue;
    const char *host = series[n].shared ? w->block->shared + at[i] : kl_memory_at(s->memory, at[i], series[n].bytes);
    EXPECT(p->address[i] == at[i] && p->host[i] == host, "pattern %u, access %u, lane %u: another place", s->pattern, n,
           i);
    least = at[i] < least ? at[i] : least, most = at[i] > most ? at[i] : most;
    bool joined = i > 0 && lanes >> (i - 1) & 1 && at[i] - at[i - 1] == series[n].bytes;
    EXPECT((p->joined >> i & 1) == joined, "pattern %u, access %u, lane %u: joined", s->pattern, n, i);
  }
  ck_assert_uint_eq(p->joined & ~lanes, 0);
  ck_assert_uint_eq(p->least, least);
  ck_assert_uint_eq(p->most, most);
}

// `last`: behind the series.
static void write_series(kl_sb *b, unsigned pattern, const char *last) {
  kl_sb_puts(b, ".version 8.0\n.target sm_90\n.address_size 64\n.const .align 16 .b8 places[1024] = {");
  for (unsigned i = 0; i < WARPS * LANES; i++)
    for (unsigned k = 0; k < 4; k++)
      kl_sbf(b, "%s%u", i + k ? ", " : "", (unsigned)(place_of(pattern, i) >> 8 * k & 255));
  kl_sb_puts(b, "};\n.visible .entry k(.param .u64 memory, .param .u64 zero) {\n.reg .pred %p<2>;\n"
                ".reg .b32 %r<8>;\n.reg .b64 %d<8>;\n.shared .align 16 .b8 s[4096];\nmov.u32 %r6, %tid.x;\n"
                "ld.param.u64 %d1, [memory];\nld.param.u64 %d4, [zero];\nmov.u64 %d2, places;\n"
                "mul.wide.u32 %d3, %r6, 4;\nadd.u64 %d2, %d2, %d3;\nld.const.u32 %r5, [%d2];\ncvt.u64.u32 %d3, %r5;\n"
                "add.u64 %d1, %d1, %d3;\nsub.u32 %r5, %r5, 64;\nand.b32 %r7, %r6, 1;\nsetp.ne.u32 %p1, %r7, 0;\n");
  for (size_t k = 0; k < KL_COUNT(series); k++) kl_sb_puts(b, series[k].text);
  kl_sbf(b, "%sret;\n}\n", last);
}

static void run_series(unsigned pattern, const char *last, bool observed, uint8_t memory[ROOM], kl_fault *fault) {
  stage s;
  kl_sb text;
  stage_open(&s);
  kl_sb_init(&text, s.cx);
  write_series(&text, pattern, last);
  stage_expect(&s, last, text.p, "k");
  uint64_t params[] = {stage_memory(&s, ROOM), 0};
  onlooker looks = {{.access = look_on}, &s.m, params[0], pattern, {0}};
  kl_observer *const observers[] = {&looks.observer};
  kl_launch l = {.kernel = s.k,
                 .grid = {1, 1, 1},
                 .block = {WARPS * LANES, 1, 1},
                 .params = params,
                 .workers = 1,
                 .observers = observers,
                 .nobservers = observed};
  char *host = kl_memory_at(&s.m, params[0], ROOM);
  for (unsigned k = 0; k < ROOM; k++) host[k] = (char)(k * 37 ^ k >> 8);
  *fault = (kl_fault){0};
  kiln_status status = kl_launch_run(s.cx, &s.m, &l, fault);
  EXPECT((status == KILN_OK) == !*last, "%s: %s", last, stage_why(&s));
  if (!*last && observed)
    for (unsigned k = 0; k < WARPS; k++) ck_assert_uint_eq(looks.seen[k], 1 + KL_COUNT(series));
  memcpy(memory, host, ROOM);
  kl_sb_free(&text);
  stage_close(&s);
}

START_TEST(from_one_register) {
  uint8_t alone[ROOM], beside[ROOM];
  kl_fault fault;
  run_series((unsigned)_i, "", false, alone, &fault);
  run_series((unsigned)_i, "", true, beside, &fault);
  ck_assert_mem_eq(alone, beside, sizeof alone);
}
END_TEST

// What lanes that lie scattered do behind the series.
static const struct {
  const char *text;
  kl_fault_kind fault;
} leaving[] = {
    {"ld.global.b32 %r1, [%d1+54];\n", KL_FAULT_MISALIGNED},
    {"ld.global.b32 %r1, [%d1+4096];\n", KL_FAULT_ADDRESS},
    {"ld.global.b32 %r1, [%d1+-4096];\n", KL_FAULT_ADDRESS},
    {"ld.global.b32 %r1, [%d1+1099511627776];\n", KL_FAULT_ADDRESS},
    {"ld.shared.b32 %r1, [%r5+4160];\n", KL_FAULT_ADDRESS},
    {"ld.shared.v4.b32 " FOUR ", [%r5+80];\nld.shared.v4.b32 " FOUR ", [%r5+88];\n", KL_FAULT_MISALIGNED},
    {"ld.shared.v4.b32 " FOUR ", [%r5+80];\nld.shared.v4.b32 " FOUR ", [%r5+4176];\n", KL_FAULT_ADDRESS},
};

START_TEST(from_one_register_out) {
  uint8_t memory[ROOM];
  kl_fault alone, beside;
  run_series(5, leaving[_i].text, false, memory, &alone);
  run_series(5, leaving[_i].text, true, memory, &beside);
  ck_assert_int_eq(alone.kind, leaving[_i].fault);
  ck_assert_int_eq(beside.kind, alone.kind);
  ck_assert_uint_eq(beside.thread[0], alone.thread[0]);
  ck_assert_uint_eq(beside.address, alone.address);
}
END_TEST

// --- what each instruction set says of lanes ------------------------------------------------------------------------

// Of lanes in a window of 4096 bytes, by the last one's place: what is asked of all of them beside one after the other.
static void ask_set(const kl_lane_memory *m, uint64_t first, uint64_t step, uint64_t last, uint32_t mask) {
  static _Alignas(64) uint64_t regs[KL_LANES];
  static char bytes[4096];
  const kl_window w = {.base = 0x10000, .room = 4096 - 4, .host = bytes};
  uint64_t at[KL_LANES], added[KL_LANES], least = UINT64_MAX, most = 0, low, high, found;
  uint32_t beside = 0;
  char *host[KL_LANES];
  bool even = true, within = true;
  kl_lanes x = {.base = {(char *)regs}, .mask = mask};
  m->rise(first, step, at);
  for (uint64_t i = 0; i < KL_LANES; i++) ck_assert_uint_eq(at[i], first + i * step);
  at[31] = last;
  memcpy(regs, at, sizeof at);
  for (unsigned i = 0; i < KL_LANES; i++) {
    even &= i == 0 || at[i] - at[i - 1] == at[1] - at[0];
    if (!(mask >> i & 1)) continue;
    within &= at[i] >= w.base && at[i] <= w.base + w.room && at[i] % 4 == 0;
    least = at[i] < least ? at[i] : least, most = at[i] > most ? at[i] : most;
  }
  ck_assert_int_eq(m->is_even(&x, 0, 8, &found), even);
  ck_assert(!even || found == step);
  m->addresses(&x, 0, 8, 12, added);
  for (unsigned i = 0; i < KL_LANES; i++) ck_assert_uint_eq(added[i], at[i] + 12);
  for (unsigned i = 0; i < KL_LANES; i++) host[i] = bytes + 8 + i;
  m->move_on(added, host, (uint64_t)-8);
  for (unsigned i = 0; i < KL_LANES; i++) ck_assert(added[i] == at[i] + 4 && host[i] == bytes + i);
  for (unsigned i = 0; i < KL_LANES; i++) host[i] = bytes;
  ck_assert_int_eq(m->places(&x, at, &w, 3, host), within);
  for (unsigned i = 0; i < KL_LANES && within; i++)
    if (mask >> i & 1) ck_assert_ptr_eq(host[i], bytes + (at[i] - w.base));
  if (!within) return;
  for (unsigned i = 1; i < KL_LANES; i++)
    beside |= (uint32_t)(mask >> i & mask >> (i - 1) & 1 && at[i] - at[i - 1] == 4) << i;
  ck_assert_uint_eq(m->survey(&x, at, host, 4, &low, &high) & mask & mask << 1, beside);
  ck_assert_uint_eq(low, least);
  ck_assert_uint_eq(high, most);
}

START_TEST(every_set) {
  static const uint64_t steps[] = {0, 4, 8, 128, (uint64_t)-4, (uint64_t)-128, 2, (uint64_t)1 << 60};
  static const uint64_t firsts[] = {0x10000, 0x10000 + 31 * 128, 0x10800, 0xfffc, 0x10ffc};
  static const uint32_t masks[] = {KL_ALL_LANES, 0xaaaaaaaa, 0x7fffffff, 1u << 31, 0xffff};
  size_t n;
  const kl_lane_set *const *sets = kl_lanes_sets(&n);
  for (size_t k = 0; k < n; k++)
    for (size_t s = 0; s < KL_COUNT(steps); s++)
      for (size_t f = 0; f < KL_COUNT(firsts); f++)
        for (size_t m = 0; m < KL_COUNT(masks); m++) {
          ask_set(sets[k]->memory, firsts[f], steps[s], firsts[f] + 31 * steps[s], masks[m]);
          ask_set(sets[k]->memory, firsts[f], steps[s], 0x10040, masks[m]);
        }
}
END_TEST

// --- what cells of shadows remember -------------------------------------------------------------------------------

// Accesses of 3 bits of site, 4 of step, 5 of lane and the rest of warp, in each of the ways to be asked for or not.
static uint64_t some_access(void) {
  if (random_bits() >> 60 == 0) return 0;
  uint64_t warp = 100 + (random_bits() >> 58), bits = random_bits() >> 52; // 64 warps, of which 40 may be asked for
  return (warp - 8) << 12 | bits;
}

START_TEST(glances) {
  size_t n;
  const kl_lane_set *const *sets = kl_lanes_sets(&n);
  for (int round = 0; round < 2000; round++) {
    kl_glance g = {.first = 100 + (random_bits() >> 62),
                   .warps = random_bits() | (random_bits() >> 63 ? ~(uint64_t)0 : 0),
                   .least = random_bits() >> 60,
                   .sites = random_bits() >> 61,
                   .site_mask = 7,
                   .step_mask = 15,
                   .of_step = 3,
                   .of_warp = 12};
    uint64_t cells[2 * KL_GLANCE];
    uint32_t expected = 0;
    g.first_sites = g.sites / 2;
    for (unsigned i = 0; i < KL_GLANCE; i++) {
      uint64_t v = cells[2 * i] = some_access(), warp = v >> 12;
      cells[2 * i + 1] = random_bits() >> 62 ? 0 : some_access();
      bool asked = warp >= g.first && warp - g.first < 64 && g.warps >> (warp - g.first) & 1 &&
                   (v >> 3 & 15) <= g.least && (v & 7) < g.sites;
      expected |= (uint32_t)((!v || asked) && !cells[2 * i + 1]) << i;
      expected |= (uint32_t)(!v || (asked && (v & 7) < g.first_sites)) << (i + KL_GLANCE);
    }
    for (size_t k = 0; k < n; k++) {
      uint32_t found = sets[k]->memory->glance(&g, cells);
      EXPECT(found == expected, "%s, round %d: expected %08x, found %08x", sets[k]->name, round, expected, found);
    }
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("accesses", NO_FRAME, {every_set, 1}, {glances, 1}, {all_lanes_and_some, 2 * (int)KL_COUNT(spaces)},
                   {ends_of_memory, 3 * (int)KL_COUNT(ends)}, {from_one_register, PATTERNS},
                   {from_one_register_out, (int)KL_COUNT(leaving)});
}
