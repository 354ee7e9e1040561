// Machine code of each instruction: a stored cubin whose table of lines was read by another program, the same file cut
// short and changed byte by byte; and where ptxas is installed kernels of known code.
#include "../../support/ptxas.h"
#include "profile.h"
#include "sim/count/collect.h"

#include <unistd.h>

static char *stored(size_t *n) {
  static char bytes[65536];
  FILE *f = fopen(KL_TESTS "/../fuzz/corpus/cubin/axpy.cubin", "rb");
  ck_assert(f != NULL);
  *n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  return bytes;
}

// As readelf shows the rows of its table: from 0x00 line 1, 0x10 3, 0x30 7, 0x40 3, 0x60 4, 0xa0 3, 0x100 6, 0x180 9,
// 0x190 4, 0x1a0 7, 0x1b0 8, 0x1c0 4, where the code ends at 0x1e0.
START_TEST(a_stored_cubin) {
  static const uint32_t lines[] = {0, 1, 0, 10, 7, 0, 8, 2, 1, 1, 0, 0};
  kiln_context *cx = kiln_context_create(NULL);
  kl_arena a;
  kl_cubin c;
  size_t n;
  const char *bytes = stored(&n);
  kl_arena_init(&a, cx);
  ck_assert_int_eq(kl_cubin_read(cx, &a, bytes, n, NULL, KL_STR("axpy"), 11, &c), KILN_OK);
  ck_assert_mem_eq(c.lines, lines, sizeof lines);
  ck_assert(c.instructions == 30 && c.registers == 12 && c.stack_bytes == 0 && c.shared_bytes == 0);
  ck_assert_int_eq(kl_cubin_read(cx, &a, bytes, n, NULL, KL_STR("axpy"), 5, &c), KILN_OK); // lines beyond are none
  ck_assert(c.lines[0] == 12 && c.lines[4] == 7 && c.nlines == 5);
  ck_assert_int_eq(kl_cubin_read(cx, &a, bytes, n, NULL, KL_STR("ax"), 11, &c), KILN_E_INVALID);
  ck_assert(c.lines == NULL && strstr(found_in(cx), "without the kernel's code"));
  kl_arena_free(&a);
  kiln_context_destroy(&cx);
}
END_TEST

// --- classes --------------------------------------------------------------------------------------------------------

static char *slurp(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  char *p = calloc(1, 1 << 20);
  *n = f && p ? fread(p, 1, (1 << 20) - 1, f) : 0;
  if (f) fclose(f);
  return p;
}

// What nvdisasm 13 says of the stored cubin: of its 30 instructions 5 are IMAD; LDC, ULDC and LDG load, 9 in all.
START_TEST(classes_of_a_stored_cubin) {
  static const struct {
    kiln_profile_class kind;
    uint32_t n;
  } all[] = {{KILN_CLASS_MULTIPLY, 5}, {KILN_CLASS_F32_FMA, 1}, {KILN_CLASS_LOAD, 9},    {KILN_CLASS_STORE, 1},
             {KILN_CLASS_BRANCH, 1},   {KILN_CLASS_CONTROL, 2}, {KILN_CLASS_INTEGER, 11}};
  kiln_context *cx = kiln_context_create(NULL);
  kl_arena a;
  kl_cubin c;
  size_t n, size;
  const char *bytes = stored(&n);
  char *text = slurp(KL_TESTS "/sim/count/axpy.sass", &size);
  uint32_t kinds[KILN_CLASS_COUNT + 1] = {0}, lines[12] = {0};
  kl_arena_init(&a, cx);
  ck_assert_int_eq(kl_cubin_read(cx, &a, bytes, n, text, KL_STR("axpy"), 11, &c), KILN_OK);
  ck_assert_uint_eq(c.ncode, 30);
  for (uint32_t k = 0; k < c.ncode; k++) kinds[c.code[k].kind]++, lines[c.code[k].line]++;
  ck_assert_mem_eq(lines, c.lines, sizeof lines);
  for (size_t k = 0; k < KL_COUNT(all); k++)
    EXPECT(kinds[all[k].kind] == all[k].n, "%s: %u, expected %u", kiln_profile_class_name(all[k].kind),
           kinds[all[k].kind], all[k].n);
  // each byte of the text another one: read, or refused
  for (size_t k = 0; k < size; k++) {
    char was = text[k];
    text[k] = (char)(was ^ (1 + k % 127));
    kiln_status st = kl_cubin_read(cx, &a, bytes, n, text, KL_STR("axpy"), 11, &c);
    EXPECT(st == KILN_OK || st == KILN_E_INVALID, "byte %zu", k);
    text[k] = was;
  }
  kiln_diagnostics_clear(cx);
  // a text that is cut short, and others
  *strstr(text, "/*01d0*/") = 0;
  ck_assert_int_eq(kl_cubin_read(cx, &a, bytes, n, text, KL_STR("axpy"), 11, &c), KILN_E_INVALID);
  ck_assert(strstr(found_in(cx), "other code than the text"));
  ck_assert_int_eq(kl_cubin_read(cx, &a, bytes, n, "", KL_STR("axpy"), 11, &c), KILN_E_INVALID);
  ck_assert_int_eq(
      kl_cubin_read(cx, &a, bytes, n, ".text.axpy:\n/*\n/*0000\n/*0000*/\n/*0000*/ @", KL_STR("axpy"), 11, &c),
      KILN_E_INVALID);
  free(text);
  kl_arena_free(&a);
  kiln_context_destroy(&cx);
}
END_TEST

// What is to be known of instructions, by a letter each: b one begins a block, a accesses memory, w is a witness of how
// often its block runs, j jumps.
static const struct {
  const char *text, *is;
} said[] = {
    {"MOV R1, R2 ;", "b"},
    {"LDG.E R0, desc[UR4][R2.64] ;", "a"},
    {"@P0 LDS R0, [R2] ;", "a"},
    {"LDC R1, c[0x0][0x28] ;", ""},
    {"ULDC.64 UR4, c[0x0][0x118] ;", ""},
    {"STG.E desc[UR4][R2.64], R0 ;", "aws"},
    {"@!P0 STS [R2], R0 ;", "as"},
    {"RED.E.ADD desc[UR4][R2.64], R0 ;", "aws"},
    {"BAR.SYNC.DEFER_BLOCKING 0x0 ;", "ws"},
    {"SHFL.BFLY PT, R0, R0, 0x1, 0x1f ;", "ws"},
    {"@P0 BRA `(.L_x_1) ;", "wj"},
    {"IADD3 R0, R0, 0x1, RZ ;", "b"},
    {".L_x_0:", NULL},
    {"IADD3 R0, R0, 0x1, RZ ;", "b"},
    {"BRA `(.L_x_0) ;", "wj"},
    {"@P1 EXIT ;", "bwj"},
    {"EXIT ;", "bj"},
    {"$k$__internal_0_$__cuda_sm20_rcp_rn_f32_slowpath:", NULL},
    {"RET.REL.NODEC R2 `(k) ;", "bj"},
};

START_TEST(what_texts_say) {
  static kl_sass_instruction read[KL_COUNT(said)];
  kl_sass_code code = {.name = KL_STR("k"), .instructions = read};
  char text[4096] = ".section .text.k\n.text.k:\n";
  for (size_t k = 0; k < KL_COUNT(said); k++) {
    char line[128];
    if (said[k].is)
      snprintf(line, sizeof line, "        /*%04x*/                   %s\n", code.n++ * 16, said[k].text);
    else
      snprintf(line, sizeof line, "%s\n", said[k].text);
    strcat(text, line);
  }
  ck_assert(kl_sass_read(text, &code, 1));
  for (size_t k = 0, n = 0; k < KL_COUNT(said); k++) {
    if (!said[k].is) continue;
    char is[8];
    const kl_sass_instruction *i = &read[n++];
    snprintf(is, sizeof is, "%s%s%s%s%s", i->begins ? "b" : "", i->accesses ? "a" : "", i->witness ? "w" : "",
             i->stays ? "s" : "", i->jumps ? "j" : "");
    EXPECT(strcmp(is, said[k].is) == 0, "%s: %s, expected %s", said[k].text, is, said[k].is);
  }
}
END_TEST

// Code by hand for a kernel of four warps, of which one does not branch: instructions by the number of their line, with
// the letters of above. How often they are issued, and of the lines of accesses in how many warps.
#define HAND                                                                                                           \
  ".visible .entry k(.param .u64 p) {\n.reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n"                       \
  "mov.u32 %r2, %tid.x;\nld.param.u64 %rd2, [p];\nmul.wide.u32 %rd3, %r2, 4;\nadd.u64 %rd1, %rd2, %rd3;\n"             \
  "ld.global.u32 %r3, [%rd1];\nld.global.u32 %r4, [%rd1];\nld.global.u32 %r5, [%rd1+512];\n"                           \
  "setp.ge.u32 %p1, %r2, 32;\n@%p1 bra L;\nst.global.u32 [%rd1+1024], %r5;\nadd.u32 %r4, %r4, 1;\n"                    \
  "L: add.u32 %r3, %r3, %r4;\nst.global.u32 [%rd1], %r3;\nret;\n}\n"
enum { A_LOAD = 5, THE_SAME = 6, A_THIRD = 7, BRANCH = 9, INSIDE = 10, MORE = 11, ADD = 12, OUTSIDE = 13, RETURN = 14 };
typedef struct by_hand {
  uint8_t line;
  const char *is;
} by_hand;
static const struct {
  const char *name;
  by_hand code[12];
  uint64_t executed, kept[5]; // of the lines of accesses, as they come
  uint64_t loads, load_sectors, stores;
} hand[] = {
    {"as it stands",
     {{A_LOAD, "a"}, {THE_SAME, "a"}, {A_THIRD, "a"}, {BRANCH, "wj"}, {INSIDE, "baw"}, {OUTSIDE, "baw"}, {RETURN, "j"}},
     4 * 4 + 1 + 2 * 4,
     {4, 4, 4, 1, 4},
     12,
     48,
     5},
    {"one load for two",
     {{A_LOAD, "a"}, {A_THIRD, "a"}, {BRANCH, "wj"}, {INSIDE, "baw"}, {OUTSIDE, "baw"}},
     3 * 4 + 1 + 4,
     {4, 0, 4, 1, 4},
     8,
     32,
     5},
    {"a load behind the branch",
     {{A_LOAD, "a"}, {THE_SAME, "a"}, {BRANCH, "wj"}, {A_THIRD, "ba"}, {ADD, ""}, {INSIDE, "aw"}, {OUTSIDE, "baw"}},
     3 * 4 + 3 + 4,
     {4, 4, 1, 1, 4},
     9,
     36,
     5},
    {"a load twice",
     {{A_LOAD, "a"}, {BRANCH, "wj"}, {A_LOAD, "ba"}, {INSIDE, "aw"}, {OUTSIDE, "baw"}},
     2 * 4 + 2 + 4,
     {4, 0, 0, 1, 4},
     4,
     16,
     5},
    {"a guard in place of the branch",
     {{A_LOAD, "a"}, {THE_SAME, "a"}, {A_THIRD, "a"}, {INSIDE, "a"}, {OUTSIDE, "aw"}},
     5 * 4,
     {4, 4, 4, 1, 4},
     12,
     48,
     5},
    {"no witness: most of the block",
     {{A_LOAD, "a"}, {ADD, ""}, {BRANCH, "wj"}, {MORE, "b"}, {ADD, ""}, {MORE, ""}},
     3 * 4 + 3,
     {4, 0, 0, 0, 0},
     4,
     16,
     0},
    {"no witness: as many say this as that", {{MORE, "b"}, {ADD, ""}}, 2 * 4, {0, 0, 0, 0, 0}, 0, 0, 0},
    {"a store among others",
     {{A_LOAD, "a"}, {BRANCH, "wj"}, {INSIDE, "baws"}, {MORE, "w"}, {OUTSIDE, "aws"}},
     2 * 4 + 3,
     {4, 0, 0, 1, 4},
     4,
     16,
     5},
    {"no lines", {{0, "b"}, {BRANCH, "wj"}, {0, "b"}, {0, ""}}, 2 * 4 + 2 * 4, {0, 0, 0, 0, 0}, 0, 0, 0},
};

static void make_code(const by_hand *from, kl_cubin *c) {
  for (; from->is; from++) {
    c->code[c->ncode++] = (kl_sass_instruction){.line = from->line,
                                                .kind = KILN_CLASS_COUNT,
                                                .begins = strchr(from->is, 'b'),
                                                .accesses = strchr(from->is, 'a'),
                                                .stays = strchr(from->is, 's'),
                                                .witness = strchr(from->is, 'w'),
                                                .jumps = strchr(from->is, 'j')};
    c->lines[from->line]++;
  }
}

START_TEST(code_by_hand) {
  fixture f;
  kl_sass_instruction code[12] = {{0}};
  uint32_t lines[RETURN + 1] = {0};
  kl_cubin made = {.code = code, .lines = lines, .nlines = RETURN}, none = {0};
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)}, executed = 0;
  fixture_run(&f, HEADER HAND, (kiln_sim_launch_params){.block = {128}}, arguments, NULL);
  ck_assert(f.t.kept_warps == NULL);
  make_code(hand[_i].code, &made);
  kl_sass_take(f.p, &made, &none);
  ck_assert_int_eq(kiln_profile_describe(f.cx, f.p, &f.t), KILN_OK);
  EXPECT(f.t.sass.executed == hand[_i].executed && f.t.sass_other == hand[_i].executed, "%s: %u issues", hand[_i].name,
         (unsigned)f.t.sass.executed);
  for (size_t k = 0, n = 0; k < f.t.line_count; k++) {
    executed += f.t.lines[k].sass_executed;
    if (!strstr(f.t.lines[k].text, "global")) continue;
    EXPECT(f.t.kept_warps[k] == hand[_i].kept[n], "%s: %s in %u", hand[_i].name, f.t.lines[k].text,
           (unsigned)f.t.kept_warps[k]);
    n++;
  }
  if (!lines[0]) ck_assert_uint_eq(executed, f.t.sass.executed);
  const kiln_access_counts *load = &f.t.kept[KILN_ACCESS_GLOBAL_LOAD], *store = &f.t.kept[KILN_ACCESS_GLOBAL_STORE];
  ck_assert(load->kind == KILN_ACCESS_GLOBAL_LOAD && store->kind == KILN_ACCESS_GLOBAL_STORE);
  EXPECT(load->requests == hand[_i].loads && load->sectors == hand[_i].load_sectors, "%s: %u loads", hand[_i].name,
         (unsigned)load->requests);
  ck_assert(load->bytes == 32 * load->sectors && load->width[2] == load->requests);
  EXPECT(store->requests == hand[_i].stores, "%s: %u stores", hand[_i].name, (unsigned)store->requests);
  ck_assert_uint_eq(f.t.kept[KILN_ACCESS_CONSTANT].requests, f.t.accesses[KILN_ACCESS_CONSTANT].requests);
  // where only lines are known, each of them as often as it is issued
  made.code = NULL, made.ncode = 0;
  kl_sass_take(f.p, &made, &none);
  ck_assert_int_eq(kiln_profile_describe(f.cx, f.p, &f.t), KILN_OK);
  ck_assert(f.t.kept_warps == NULL && f.t.kept[KILN_ACCESS_GLOBAL_LOAD].requests == 0 && !f.t.sass_classified);
  fixture_close(&f);
}
END_TEST

// Two warps, of which half the lanes go by the stores: 16 of a warp load 16 bytes each from shared memory in 2 passes,
// and 64 bytes of global memory in 2 sectors. Both values of the second store are needed behind a second branch alone,
// that of the first behind the first; that of the last one by all lanes. In a loop of three rounds, if there is
// one, of which the last two load one place of each memory.
#define SINK(loop)                                                                                                     \
  ".visible .entry k(.param .u64 p) {\n.reg .pred %p<9>;\n.reg .b32 %r<19>;\n.reg .b64 %rd<9>;\n"                      \
  ".shared .align 16 .b8 s[1024];\nmov.u32 %r1, %tid.x;\nld.param.u64 %rd2, [p];\nmul.wide.u32 %rd3, %r1, 4;\n"        \
  "add.u64 %rd1, %rd2, %rd3;\nmul.lo.u32 %r2, %r1, 16;\nmov.u32 %r3, s;\nadd.u32 %r2, %r2, %r3;\n"                     \
  "mov.u32 %r12, 0;\nR: ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\nld.global.u32 %r8, [%rd1];\n"                   \
  "ld.global.u32 %r11, [%rd1];\nadd.u32 %r9, %r4, %r8;\nand.b32 %r10, %r1, 16;\nsetp.ne.u32 %p1, %r10, 0;\n"           \
  "@%p1 bra L;\nst.global.u32 [%rd1+1024], %r11;\nL: bar.warp.sync -1;\n@%p1 bra M;\n"                                 \
  "st.global.u32 [%rd1+2048], %r9;\nM: add.u32 %r12, %r12, 1;\nsetp.lt.u32 %p2, %r12, 3;\n" loop                       \
  "ld.global.u32 %r13, [%rd1+512];\n@%p1 bra E;\nE: st.global.u32 [%rd1], %r13;\nret;\n}\n"
enum {
  S_SHARED = 9,
  S_GLOBAL,
  S_OTHER,
  S_ADD,
  S_BRANCH = 15,
  S_FIRST,
  S_SYNC,
  S_SECOND_BRANCH,
  S_SECOND,
  S_COUNT,
  S_LATE = 22,
  S_LOOP = 24
};
static const struct {
  const char *name, *ptx;
  uint32_t loop; // lines that it adds
  by_hand code[12], rounds[12];
  uint64_t passes, sectors, kept[4];
} sinks[] = {
    {"as it stands",
     SINK(""),
     0,
     {{S_SHARED, "a"},
      {S_GLOBAL, "a"},
      {S_OTHER, "a"},
      {S_BRANCH, "wj"},
      {S_FIRST, "baws"},
      {S_SECOND, "baws"},
      {S_LATE, "ba"}},
     {{0}},
     8,
     24,
     {2, 2, 2, 2}},
    {"behind the branch that wants them",
     SINK(""),
     0,
     {{S_BRANCH, "wj"},
      {S_OTHER, "ba"},
      {S_FIRST, "aws"},
      {S_SECOND_BRANCH, "bwj"},
      {S_SHARED, "ba"},
      {S_GLOBAL, "a"},
      {S_ADD, ""},
      {S_SECOND, "aws"},
      {S_LATE, "ba"}},
     {{0}},
     4,
     16,
     {2, 2, 2, 2}},
    {"two branches made one",
     SINK(""),
     0,
     {{S_BRANCH, "wj"}, {S_SHARED, "ba"}, {S_GLOBAL, "a"}, {S_OTHER, "a"}, {S_SECOND, "aws"}, {S_FIRST, "aws"}},
     {{0}},
     4,
     8,
     {2, 2, 2, 0}},
    {"behind a branch that nobody tells of: what stands there as well",
     SINK(""),
     0,
     {{S_BRANCH, "wj"}, {S_SECOND, "bas"}, {S_SHARED, "a"}},
     {{0}},
     4,
     0,
     {2, 0, 0, 0}},
    {"a guard in place of the branch",
     SINK(""),
     0,
     {{S_SHARED, "a"}, {S_GLOBAL, "a"}, {S_SECOND, "aws"}, {S_BRANCH, "wj"}},
     {{0}},
     8,
     8,
     {2, 2, 0, 0}},
    {"here and there",
     SINK(""),
     0,
     {{S_SHARED, "a"}, {S_BRANCH, "wj"}, {S_SHARED, "ba"}, {S_SECOND, "aws"}},
     {{0}},
     8,
     0,
     {2, 0, 0, 0}},
    {"in a block that it may not go to",
     SINK(""),
     0,
     {{S_BRANCH, "wj"}, {S_SHARED, "ba"}, {S_FIRST, "aws"}},
     {{0}},
     8,
     0,
     {2, 0, 0, 0}},
    {"where all lanes come",
     SINK(""),
     0,
     {{S_SYNC, "ws"}, {S_SHARED, "a"}, {S_GLOBAL, "a"}},
     {{0}},
     8,
     8,
     {2, 2, 0, 0}},
    {"in each round",
     SINK("mov.u32 %r2, %r3;\nmov.u64 %rd1, %rd2;\n@%p2 bra R;\n"),
     3,
     {{S_LATE + 3, "ba"}},
     {{S_BRANCH, "wj"},
      {S_OTHER, "ba"},
      {S_FIRST, "aws"},
      {S_SECOND_BRANCH, "bwj"},
      {S_SHARED, "ba"},
      {S_GLOBAL, "a"},
      {S_SECOND, "aws"},
      {S_LOOP, "bwj"}},
     4 + 2 * 2,
     8 + 2 * 4 + 2,
     {6, 6, 6, 2}},
};

START_TEST(loads_that_sink) {
  fixture f;
  kl_sass_instruction code[12] = {{0}}, rounds[12] = {{0}};
  uint32_t lines[40] = {0}, round_lines[40] = {0};
  kl_cubin made = {.code = code, .lines = lines, .nlines = 39};
  kl_cubin loops = {.code = rounds, .lines = sinks[_i].loop ? round_lines : NULL, .nlines = 39};
  char ptx[2048];
  fixture_open(&f);
  uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)};
  snprintf(ptx, sizeof ptx, "%s%s", HEADER, sinks[_i].ptx);
  fixture_run(&f, ptx, (kiln_sim_launch_params){.block = {64}}, arguments, NULL);
  // what the PTX costs stays what it is
  ck_assert_uint_eq(f.t.accesses[KILN_ACCESS_SHARED_LOAD].wavefronts, sinks[_i].loop ? 8 + 2 * 2 : 8);
  ck_assert_uint_eq(f.t.accesses[KILN_ACCESS_GLOBAL_LOAD].sectors, sinks[_i].loop ? 16 + 2 * 4 + 2 : 16 + 8);
  for (int again = 0; again < 2; again++) { // the second takes the place of the first
    made.ncode = loops.ncode = 0;
    make_code(sinks[again || sinks[_i].loop ? _i : 1].code, &made);
    if (sinks[_i].loop) make_code(sinks[_i].rounds, &loops);
    kl_sass_take(f.p, &made, &loops);
    ck_assert_int_eq(kiln_profile_describe(f.cx, f.p, &f.t), KILN_OK);
    if (!again) continue;
    const kiln_access_counts *shared = &f.t.kept[KILN_ACCESS_SHARED_LOAD], *global = &f.t.kept[KILN_ACCESS_GLOBAL_LOAD];
    EXPECT(shared->wavefronts == sinks[_i].passes, "%s: %u passes", sinks[_i].name, (unsigned)shared->wavefronts);
    EXPECT(sinks[_i].loop || shared->bytes == 128 * shared->wavefronts, "%s: %u bytes", sinks[_i].name,
           (unsigned)shared->bytes);
    EXPECT(global->sectors == sinks[_i].sectors, "%s: %u sectors", sinks[_i].name, (unsigned)global->sectors);
    EXPECT(sinks[_i].loop || (global->bytes == 32 * global->sectors && global->ideal_sectors == global->sectors),
           "%s: %u bytes", sinks[_i].name, (unsigned)global->bytes);
    for (size_t k = 0, n = 0; k < f.t.line_count; k++) {
      if (!strstr(f.t.lines[k].text, "ld.global") && !strstr(f.t.lines[k].text, "ld.shared")) continue;
      EXPECT(f.t.kept_warps[k] == sinks[_i].kept[n], "%s: %s in %u", sinks[_i].name, f.t.lines[k].text,
             (unsigned)f.t.kept_warps[k]);
      n++;
    }
  }
  fixture_close(&f);
}
END_TEST

START_TEST(a_damaged_cubin) {
  size_t n, refused = 0;
  char *bytes = stored(&n);
  for (size_t k = 0; k < 2 * n; k++) {
    kiln_context *cx = kiln_context_create(NULL);
    kl_arena a;
    kl_cubin c;
    bool cut = k < n;
    size_t size = cut ? k : n;
    char *copy = malloc(size ? size : 1); // of exactly that size
    memcpy(copy, bytes, size);
    if (!cut) copy[k - n] ^= (char)(1 + k % 255);
    kl_arena_init(&a, cx);
    kiln_status st = kl_cubin_read(cx, &a, copy, size, NULL, KL_STR("axpy"), 11, &c);
    refused += st != KILN_OK;
    EXPECT(st == KILN_OK || (st == KILN_E_INVALID && kiln_diagnostics_count(cx) == 1), "byte %zu", k);
    EXPECT(!cut || k >= 5288 || st != KILN_OK, "cut to %zu bytes", k); // where its table of sections ends
    kl_arena_free(&a);
    kiln_context_destroy(&cx);
    free(copy);
  }
  ck_assert_uint_gt(refused, 5288 + 100);
}
END_TEST

// --- kernels --------------------------------------------------------------------------------------------------------

static char *assemble(const char *ptx, const char *target, size_t *n, char *log, char **sass) {
  char dir[] = "/tmp/kiln-sass-XXXXXX", in[64], out[64], said[64], command[8192];
  size_t logged;
  ck_assert(mkdtemp(dir) != NULL);
  snprintf(in, sizeof in, "%s/k.ptx", dir), snprintf(out, sizeof out, "%s/k.cubin", dir);
  snprintf(said, sizeof said, "%s/log", dir);
  FILE *f = fopen(in, "wb");
  fputs(ptx, f);
  fclose(f);
  snprintf(command, sizeof command, "'%s' -v -lineinfo -arch=%s -o %s %s >%s 2>&1", ptxas_path(), target, out, in,
           said);
  int status = system(command);
  char *text = slurp(said, &logged), *cubin = slurp(out, n);
  ck_assert_msg(status == 0, "%s\n%s", text, ptx);
  snprintf(log, 4096, "%s", text);
  free(text);
  *sass = NULL;
  if (nvdisasm_path()) {
    snprintf(command, sizeof command, "'%s' -c -ndf %s >%s 2>&1", nvdisasm_path(), out, said);
    ck_assert_int_eq(system(command), 0);
    *sass = slurp(said, &logged);
  }
  unlink(in), unlink(out), unlink(said), rmdir(dir);
  return cubin;
}

// Instructions of functions that ptxas adds behind a kernel, as nvdisasm names them; behind these stand a branch to
// itself and NOPs.
static uint64_t instructions_of_functions(const char *sass) {
  uint64_t n = 0;
  const char *p = strstr(sass, "\n$__internal_"), *end = p ? strstr(p, "\n//--") : NULL; // the next section
  for (; p && p != end; p = strchr(p + 1, '\n')) {
    size_t size = 1 + strcspn(p + 1, "\n");
    n += memmem(p, size, "/*", 2) && memchr(p, ';', size) && !memmem(p, size, "NOP", 3);
  }
  return n ? n - 1 : 0;
}

// A row of a kernel: an instruction and how many of its SASS instructions run in two warps; -1: any number, -2: and
// there are functions for rare values.
static const struct {
  const char *ptx, *text;
  int sass;
  uint64_t warps;
  bool estimated;
} kernels[] = {
    // the same work without and with a loop that ptxas would unroll
    {"ld.global.f32 %r5, [%rd1];\nfma.rn.f32 %r5, %r5, %r5, %r5;\nst.global.f32 [%rd1], %r5;\n", "fma", 1, 2, false},
    {"ld.global.f32 %r5, [%rd1];\nfma.rn.f32 %r5, %r5, %r5, %r5;\nst.global.f32 [%rd1], %r5;\n", "st.global", 1, 2,
     false},
    {"ld.global.f32 %r5, [%rd1];\nmov.u32 %r6, 0;\nL: fma.rn.f32 %r5, %r5, %r5, %r5;\nadd.s32 %r6, %r6, "
     "1;\nsetp.lt.s32 "
     "%p1, %r6, 64;\n@%p1 bra L;\nst.global.f32 [%rd1], %r5;\n",
     "fma", 1, 128, true},
    {"ld.global.f64 %rd5, [%rd2];\ndiv.rn.f64 %rd5, %rd5, %rd5;\nst.global.f64 [%rd2], %rd5;\n", "div.rn", -2, 2,
     false},
    {"ld.global.f32 %r5, [%rd1];\nrcp.rn.f32 %r5, %r5;\nst.global.f32 [%rd1], %r5;\n", "rcp.rn", -2, 2, false},
    {"ld.global.f32 %r5, [%rd1];\nsqrt.rn.f32 %r5, %r5;\nst.global.f32 [%rd1], %r5;\n", "sqrt.rn", -2, 2, false},
    // its function is for all values that have more than 32 bits
    {"ld.global.u64 %rd5, [%rd2];\ndiv.u64 %rd5, %rd2, %rd5;\nst.global.u64 [%rd2], %rd5;\n", "div.u64", -1, 2, false},
};

START_TEST(of_each_line) {
  if (!ptxas_path()) return;
  static const char *const targets[] = {"sm_80", "sm_90", "sm_100"};
  for (int t = 0; t < 3; t++) {
    fixture f;
    char ptx[2048], log[2][4096], *text[2] = {NULL, NULL};
    fixture_open(&f);
    uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL)};
    snprintf(ptx, sizeof ptx, ".version 8.7\n.target sm_80\n.address_size 64\n%s%s%s",
             ".visible .entry other() { ret; }\n.visible .entry k(.param .u64 p) {\n.reg .pred %p<9>;\n.reg .b32 "
             "%r<40>;\n.reg .b64 %rd<20>;\nmov.u32 %r2, %tid.x;\nld.param.u64 %rd2, [p];\nmul.wide.u32 %rd3, %r2, "
             "4;\nadd.u64 %rd1, %rd2, %rd3;\n",
             kernels[_i].ptx, "ret;\n}\n");
    fixture_run(&f, ptx, (kiln_sim_launch_params){.block = {64}}, arguments, NULL);
    ck_assert(!f.t.sass.known && !f.t.occupancy.registers_real);
    kiln_profile_assembly made = {.struct_size = sizeof made, .log = log[0]};
    const char *loops = kiln_profile_source(f.p, true, NULL);
    ck_assert_int_eq(loops != NULL, kernels[_i].estimated);
    made.cubin = assemble(kiln_profile_source(f.p, false, NULL), targets[t], &made.cubin_size, log[0], &text[0]);
    if (loops) made.loops_cubin = assemble(loops, targets[t], &made.loops_cubin_size, log[1], &text[1]);
    made.sass = text[0], made.loops_sass = text[1];
    ck_assert_msg(kiln_profile_assembled(f.cx, f.p, &made) == KILN_OK, "%s", found_in(f.cx));
    ck_assert_int_eq(kiln_profile_describe(f.cx, f.p, &f.t), KILN_OK);
    const kiln_profile_line *l = line_with(&f, kernels[_i].text, 0);
    if (kernels[_i].sass >= 0) ck_assert_uint_eq(l->sass, (uint32_t)kernels[_i].sass);
    if (kernels[_i].sass < 0) ck_assert_uint_gt(l->sass, 3);
    ck_assert(l->warps == kernels[_i].warps && l->sass_executed == l->warps * l->sass);
    ck_assert_int_eq(f.t.sass.estimated, kernels[_i].estimated);
    // All of the code, its branch to itself aside, and registers: as ptxas says and tests elsewhere count.
    const char *alone = strstr(ptx, ".visible .entry k");
    char own[2048];
    snprintf(own, sizeof own, ".version 8.7\n.target sm_80\n.address_size 64\n%s", alone);
    ptxas_result r = ptxas_run(own, strlen(own), targets[t]);
    ck_assert_msg(r.ok, "%s", r.log);
    ck_assert_uint_eq(f.t.sass.registers, (uint32_t)r.registers);
    ck_assert_uint_eq(f.t.sass.instructions, (uint64_t)r.sass - 1);
    ck_assert(f.t.occupancy.registers_real && f.t.occupancy.registers == (uint32_t)r.registers);
    uint64_t sum = 0;
    for (size_t k = 0; k < f.t.line_count; k++) sum += f.t.lines[k].sass;
    uint64_t rare = loops ? 0 : f.t.sass.instructions - sum;
    if (!loops) ck_assert_uint_eq(f.t.sass.executed, 2 * sum);
    if (!loops) ck_assert_int_eq(rare > 0, kernels[_i].sass == -2);
    if (rare && text[0]) ck_assert_uint_eq(rare, instructions_of_functions(text[0]));
    ck_assert_str_eq(f.t.prediction.rates[4].unit, "SASS instructions");
    ck_assert(f.t.prediction.rates[4].amount == (double)f.t.sass.executed);
    // by class: all of it; the fma once in a round or, where there is no loop, in each of two warps
    ck_assert_int_eq(f.t.sass_classified, text[0] != NULL);
    uint64_t all = f.t.sass_other;
    for (int c = 0; c < KILN_CLASS_COUNT; c++) all += f.t.sass_warps[c];
    if (text[0]) ck_assert(all == f.t.sass.executed && f.t.sass_other == 0);
    if (text[0] && strstr(kernels[_i].text, "fma")) ck_assert_uint_eq(f.t.sass_warps[KILN_CLASS_F32_FMA], l->warps);
    if (text[0] && strstr(kernels[_i].text, "div.rn")) ck_assert_uint_gt(f.t.sass_warps[KILN_CLASS_F64_FMA], 8);
    made.cubin_size /= 2; // what cannot be read changes nothing
    kiln_profile_info before = f.t;
    ck_assert_int_eq(kiln_profile_assembled(f.cx, f.p, &made), KILN_E_INVALID);
    ck_assert_int_eq(kiln_profile_describe(f.cx, f.p, &f.t), KILN_OK);
    ck_assert_mem_eq(&before.sass, &f.t.sass, sizeof before.sass);
    free((void *)made.cubin), free((void *)made.loops_cubin), free(text[0]), free(text[1]);
    fixture_close(&f);
  }
}
END_TEST

// Four warps, of which one does not branch: ptxas makes one load of two that are equal, and takes one to where its
// value is needed.
START_TEST(what_ptxas_keeps) {
  static const char ptx[] =
      ".version 8.7\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q) {\n"
      ".reg .pred %p<4>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n.shared .align 16 .b8 s[1024];\n"
      "mov.u32 %r1, %tid.x;\nld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nmul.wide.u32 %rd3, %r1, 4;\n"
      "add.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\nld.global.nc.u32 %r2, [%rd4];\n"
      "ld.global.nc.u32 %r3, [%rd4];\nadd.u32 %r4, %r2, %r3;\nshl.b32 %r5, %r1, 2;\nmov.u32 %r6, s;\n"
      "add.u32 %r6, %r6, %r5;\nst.shared.u32 [%r6], %r4;\nbar.sync 0;\nxor.b32 %r7, %r5, 4;\nmov.u32 %r9, s;\n"
      "add.u32 %r9, %r9, %r7;\nld.shared.u32 %r8, [%r9];\nsetp.ge.u32 %p1, %r1, 32;\n@%p1 bra L;\n"
      "st.global.u32 [%rd5], %r8;\nst.global.u32 [%rd5+1024], %r4;\nmembar.gl;\nst.global.u32 [%rd5+2048], %r4;\n"
      "L: ret;\n}\n";
  static const char *const targets[] = {"sm_80", "sm_90", "sm_100"};
  if (!ptxas_path() || !nvdisasm_path()) return;
  for (int t = 0; t < 3; t++) {
    fixture f;
    char log[4096], *text;
    fixture_open(&f);
    uint64_t arguments[16] = {fixture_memory(&f, 4096, NULL), fixture_memory(&f, 4096, NULL)};
    fixture_run(&f, ptx, (kiln_sim_launch_params){.block = {128}}, arguments, NULL);
    kiln_profile_assembly made = {.struct_size = sizeof made, .log = log};
    made.cubin = assemble(kiln_profile_source(f.p, false, NULL), targets[t], &made.cubin_size, log, &text);
    made.sass = text;
    ck_assert_msg(kiln_profile_assembled(f.cx, f.p, &made) == KILN_OK, "%s", found_in(f.cx));
    ck_assert_int_eq(kiln_profile_describe(f.cx, f.p, &f.t), KILN_OK);
    const kiln_access_counts *was = f.t.accesses, *is = f.t.kept;
    ck_assert(was[KILN_ACCESS_GLOBAL_LOAD].requests == 8 && is[KILN_ACCESS_GLOBAL_LOAD].requests == 4);
    ck_assert(was[KILN_ACCESS_GLOBAL_LOAD].sectors == 32 && is[KILN_ACCESS_GLOBAL_LOAD].sectors == 16);
    ck_assert(was[KILN_ACCESS_SHARED_LOAD].wavefronts == 4 && is[KILN_ACCESS_SHARED_LOAD].wavefronts == 1);
    ck_assert(is[KILN_ACCESS_GLOBAL_STORE].requests == 3 && is[KILN_ACCESS_SHARED_STORE].requests == 4);
    ck_assert_uint_eq(f.t.kept_warps[line_with(&f, "ld.global.nc.u32 %r2", 0) - f.t.lines] +
                          f.t.kept_warps[line_with(&f, "ld.global.nc.u32 %r3", 0) - f.t.lines],
                      4);
    ck_assert_uint_eq(f.t.kept_warps[line_with(&f, "ld.shared", 0) - f.t.lines], 1);
    free((void *)made.cubin), free(text);
    fixture_close(&f);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("count_sass", NO_FRAME, {a_stored_cubin}, {classes_of_a_stored_cubin}, {what_texts_say},
                   {code_by_hand, sizeof hand / sizeof hand[0]}, {loads_that_sink, sizeof sinks / sizeof sinks[0]},
                   {a_damaged_cubin}, {what_ptxas_keeps}, {of_each_line, sizeof kernels / sizeof kernels[0]});
}
