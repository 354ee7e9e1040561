// From the text of instructions to rows of the table: names, modifiers in other orders, numbers of operands.
#include "sim/isa/match.h"
#include "lanes/warp.h"
#include "support/draw.h"
#include "support/ptxas.h"
#include "support/suite.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MOST_MODS = 16 };

static kiln_context *cx;
static kl_isa_index *isa;
static kl_arena texts; // of instructions, which live as long as the index

static void make(void) {
  cx = kiln_context_create(NULL);
  isa = kl_isa_index_new(cx);
  kl_arena_init(&texts, cx);
}
static void drop(void) {
  kl_isa_index_free(isa);
  kl_arena_free(&texts);
  kiln_context_destroy(&cx);
}

// An instruction as a parser gives it.
static const kl_ptx_instr *instr_of(const char *mnemonic, uint32_t operands) {
  kl_ptx_instr *i = KL_NEW(&texts, kl_ptx_instr);
  kl_str *mods = KL_NEW_N(&texts, kl_str, MOST_MODS);
  const char *text = kl_strf(&texts, "%s", mnemonic);
  size_t n = strcspn(text, ".");
  i->opcode = (kl_str){text, n};
  for (const char *p = text + n; *p; p += n) {
    n = strcspn(++p, ".");
    mods[i->nmods++] = (kl_str){p, n};
  }
  i->mods = mods;
  i->noperands = operands;
  return i;
}

static kl_match match(const char *mnemonic, uint32_t operands) {
  return kl_isa_match(isa, instr_of(mnemonic, operands));
}

// --- what stands where --------------------------------------------------------------------------------------------

// Read as the second one; NULL: no instruction.
static const struct {
  const char *given, *as;
  uint32_t operands;
} readings[] = {
    {"add.sat.ftz.f32", "add.ftz.sat.f32", 3},
    {"add.ftz.rn.f32", "add.rn.ftz.f32", 3},
    {"add.f32.ftz", "add.ftz.f32", 3},
    {"min.f32.NaN.ftz", "min.ftz.NaN.f32", 3},
    {"cvt.sat.rni.s32.f32", "cvt.rni.sat.s32.f32", 2},
    {"cvt.f16.rn.f32", "cvt.rn.f16.f32", 2},
    {"setp.ftz.and.lt.f32", "setp.lt.and.ftz.f32", 4},
    {"set.u32.xor.s16.ne", "set.ne.xor.u32.s16", 4},
    {"max.abs.xorsign.NaN.f16x2", "max.NaN.xorsign.abs.f16x2", 3},
    {"cvt.relu.satfinite.rn.e4m3x2.f16x2", "cvt.rn.satfinite.relu.e4m3x2.f16x2", 2},
    {"vset2.add.u32.lt.s32", "vset2.u32.s32.lt.add", 4},
    {"prmt.f4e.b32", "prmt.b32.f4e", 4},
    {"mad.hi.s64.cc", "mad.hi.cc.s64", 4},
    {"ld.v4.nc.global.f32", "ld.global.nc.v4.f32", 2},
    {"ld.L2::128B.global.L1::no_allocate.b32", "ld.global.L1::no_allocate.L2::128B.b32", 2},
    {"atom.add.noftz.global.acq_rel.gpu.f16x2", "atom.acq_rel.gpu.global.add.noftz.f16x2", 3},
    {"atom.shared.b128.cas", "atom.shared.cas.b128", 4},
    {"shfl.bfly.sync.b32", "shfl.sync.bfly.b32", 5},
    // types keep their order
    {"cvt.f32.f16.sat", "cvt.sat.f32.f16", 2},
    {"cvt.rn.f32.s64", "cvt.rn.f32.s64", 2},
    {"cvt.s64.rn.f32", NULL, 2},
    {"dp4a.s32.u32", "dp4a.s32.u32", 4},
    // what belongs to the name stands behind the opcode
    {"mul.u32.lo", NULL, 3},
    {"mad.cc.lo.u32", NULL, 4},
    {"mad.sat.hi.s32", NULL, 4},
    {"shf.wrap.l.b32", NULL, 4},
    {"div.ftz.full.f32", NULL, 3},
    {"cvt.sat.pack.u16.s32", NULL, 3},
    {"cvta.u64.to.global", NULL, 2},
    {"bar.arrive.cta", NULL, 2},
    // nothing twice, nothing left over, no part of a word
    {"add.ftz.ftz.f32", NULL, 3},
    {"add.rn.rz.f32", NULL, 3},
    {"add.f32.f32", NULL, 3},
    {"add.f3", NULL, 3},
    {"ad.f32", NULL, 3},
    {"add", NULL, 3},
    {"", NULL, 0},
    {"an_opcode_whose_name_is_longer_than_that_of_any_instruction_there_is.f32", NULL, 3},
};

START_TEST(test_readings) {
  kl_match given = match(readings[_i].given, readings[_i].operands);
  if (!readings[_i].as) {
    ck_assert_ptr_null(given.form);
    return;
  }
  kl_match as = match(readings[_i].as, readings[_i].operands);
  ck_assert_ptr_nonnull(as.form);
  ck_assert_msg(given.form == as.form && given.flags == as.flags, "%s is read as %s", readings[_i].given,
                given.form ? given.form->pattern : "nothing");
}
END_TEST

START_TEST(test_too_many_modifiers) {
  char text[512] = "add";
  for (int k = 0; k < 15; k++) strcat(text, ".ftz");
  ck_assert_ptr_null(match(text, 3).form);
}
END_TEST

// What has no row: known and refused by that name, or not.
static const struct {
  const char *mnemonic, *name;
  bool known_opcode;
} refusals[] = {
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "mma", false},
    {"wgmma.fence.sync.aligned", "wgmma", false},
    {"cp.async.bulk.wait_group", "cp.async.bulk", true},
    {"cp.async.mbarrier.arrive.noinc.b64", "cp.async.mbarrier", true},
    {"prefetch.param.tensormap", "prefetch.param.tensormap", true},
    {"red.async.relaxed.cluster.global.add.u32", "red.async", true},
    {"multimem.ld_reduce.global.add.f32", "multimem", false},
    {"vote.ballot.b32", "vote.ballot", true},
    {"vote.sync.ballot.u32", NULL, true},
    {"addc.sat.s32", NULL, true},
    {"add.u99", NULL, true},
    {"mmap.sync", NULL, false},
    {"frobnicate.u32", NULL, false},
};

START_TEST(test_refusals) {
  kl_match m = match(refusals[_i].mnemonic, 3);
  ck_assert_ptr_null(m.form);
  ck_assert_int_eq(m.known_opcode, refusals[_i].known_opcode);
  ck_assert_int_eq(m.refused != NULL, refusals[_i].name != NULL);
  if (m.refused) ck_assert_str_eq(m.refused->name, refusals[_i].name);
}
END_TEST

// Every opcode of the PTX ISA, version 9.0, has rows or is refused by name.
static const char opcodes[] =
    "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi szext bmsk dp4a dp2a "
    "addc subc madc testp copysign fma rcp sqrt rsqrt sin cos lg2 ex2 tanh set setp selp slct and or xor not cnot lop3 "
    "shf shl shr mov shfl prmt ld ldu st multimem prefetch prefetchu applypriority discard createpolicy isspacep cvta "
    "cvt mapa getctarank cp tensormap tex tld4 txq istypep suld sust sured suq bra brx call ret exit bar barrier "
    "membar "
    "fence atom red vote match activemask redux griddepcontrol elect mbarrier clusterlaunchcontrol wmma mma ldmatrix "
    "stmatrix movmatrix wgmma tcgen05 stacksave stackrestore alloca vadd vsub vabsdiff vmin vmax vshl vshr vmad vset "
    "vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4 brkpt nanosleep "
    "pmevent trap setmaxnreg ";

static bool has_rows(const char *opcode, size_t n) {
  for (size_t t = 0; t < kl_ntopics; t++)
    for (size_t r = 0; r < kl_topics[t].n; r++) {
      const char *pattern = kl_topics[t].rows[r].pattern;
      if (strncmp(pattern, opcode, n) == 0 && strcspn(pattern, ".({") == n) return true;
    }
  return false;
}

START_TEST(test_opcodes) {
  size_t n = 0;
  for (const char *p = opcodes; *p; p += n + 1) {
    char opcode[32];
    n = strcspn(p, " ");
    snprintf(opcode, sizeof opcode, "%.*s", (int)n, p);
    EXPECT(has_rows(p, n) || match(opcode, 3).refused, "%s is neither simulated nor refused", opcode);
  }
}
END_TEST

// Several rows may be spelled alike; the number of operands tells which.
static const struct {
  const char *mnemonic;
  uint32_t operands;
  const char *letters;
} counts[] = {
    {"min.ftz.f32", 3, "w=ww"},      {"min.ftz.f32", 4, "w=www"},     {"max.NaN.f32", 3, "w=ww"},
    {"max.NaN.f32", 4, "w=www"},     {"max.abs.f32", 4, "w=www"},     {"setp.lt.f32", 3, "P=ww"},
    {"setp.lt.and.f32", 4, "P=wwp"}, {"cvt.rn.f16x2.f32", 3, "w=ww"}, {"add.u32", 7, "w=ww"},
};

START_TEST(test_counts) {
  kl_match m = match(counts[_i].mnemonic, counts[_i].operands);
  ck_assert_ptr_nonnull(m.form);
  ck_assert_str_eq(m.form->operands, counts[_i].letters);
}
END_TEST

// Spellings of every row, all or a share of them, are read as that row, or as one before it that is spelled so, too.
enum { MOST_SPELLINGS = 250 };
START_TEST(test_spellings) {
  char text[160];
  size_t count = 0;
  seed = 2;
  for (size_t t = 0; t < kl_ntopics; t++)
    for (size_t r = 0; r < kl_topics[t].n; r++) {
      const kl_form *f = &kl_topics[t].rows[r];
      uint32_t operands = 0;
      for (const char *p = f->operands; strchr(f->operands, '=') && *p; p++)
        operands += isalpha((unsigned char)*p) != 0;
      operands -= strstr(f->operands, "|p") != NULL;
      size_t all = spellings(f->pattern), n = all < MOST_SPELLINGS ? all : MOST_SPELLINGS;
      count += n;
      for (size_t k = 0; k < n; k++) {
        ck_assert(spell(f->pattern, n == all ? k : below((uint32_t)all), text, sizeof text));
        kl_match m = match(text, operands);
        EXPECT(m.form == f || (m.form && (m.topic < t || (m.topic == t && m.row < r))), "%s of %s is read as %s", text,
               f->pattern, m.form ? m.form->pattern : "nothing");
      }
    }
  ck_assert_uint_gt(count, 11000);
}
END_TEST

// --- as ptxas reads them ------------------------------------------------------------------------------------------

static bool is_type(const char *mod) {
  static const char *const others[] = {".pred", ".tf32", ".bf16", ".bf16x2"};
  for (size_t k = 0; k < KL_COUNT(others); k++)
    if (strcmp(mod, others[k]) == 0) return true;
  return strchr("busfe", mod[1]) && isdigit((unsigned char)mod[2]) ? true : strncmp(mod, ".ue8m0", 6) == 0;
}

// The modifiers in another order, those that are types in theirs.
static void shuffle(const char *mnemonic, char *out, size_t n) {
  char text[160], *mods[MOST_MODS], *types[MOST_MODS];
  size_t count = 0, ntypes = 0, taken = 0;
  snprintf(text, sizeof text, "%s", mnemonic);
  for (char *p = strrchr(text, '.'); p; p = strrchr(text, '.')) {
    mods[count++] = strdup(p);
    *p = 0;
  }
  for (size_t k = count; k > 1; k--) {
    size_t at = below((uint32_t)k);
    char *swap = mods[k - 1];
    mods[k - 1] = mods[at], mods[at] = swap;
  }
  char rest[160];
  snprintf(rest, sizeof rest, "%s", mnemonic);
  for (char *p = strchr(rest, '.'), *end; p; p = end) {
    end = strchr(p + 1, '.');
    if (end) *end = 0;
    if (is_type(p)) types[ntypes++] = strdup(p);
    if (end) *end = '.';
  }
  size_t at = (size_t)snprintf(out, n, "%s", text);
  for (size_t k = 0; k < count; k++)
    at += (size_t)snprintf(out + at, n - at, "%s", is_type(mods[k]) ? types[taken++] : mods[k]);
  for (size_t k = 0; k < count; k++) free(mods[k]);
  for (size_t k = 0; k < ntypes; k++) free(types[k]);
}

static const char header[] =
    ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n"
    ".reg .pred %p<9>;\n.reg .b8 %b<9>;\n.reg .b16 %h<9>;\n.reg .b32 %w<9>;\n.reg .b64 %l<9>;\n";
enum { HEADER_LINES = 9, MOST_LINES = 1 << 15 };

typedef struct case_of {
  char mnemonic[160], given[160];
  uint32_t operands;
} case_of;

// An instruction that ptxas takes with its modifiers in any order is taken here in that order, and no other.
START_TEST(test_orders) {
  static bool wrong[MOST_LINES];
  case_of *cases = calloc(MOST_LINES, sizeof *cases);
  char *text = NULL;
  size_t size = 0, n = 0, accepted = 0;
  if (!ptxas_path()) return;
  seed = 1;
  FILE *f = open_memstream(&text, &size);
  fputs(header, f);
  for (size_t r = 0; r < lane_form_count; r++) {
    instruction i;
    if (!lane_forms[r].pattern || !strchr(lane_forms[r].pattern, '.')) continue;
    for (int k = 0; k < 4; k++) {
      ck_assert(instruction_at(&lane_forms[r], below((uint32_t)spellings(lane_forms[r].pattern)), &i));
      snprintf(cases[n].mnemonic, sizeof cases[n].mnemonic, "%s", i.mnemonic);
      shuffle(i.mnemonic, cases[n].given, sizeof cases[n].given);
      cases[n].operands = put_operands(f, &i, cases[n].given);
      n++;
    }
  }
  fputs("ret;\n}\n", f);
  fclose(f);
  ck_assert_uint_lt(HEADER_LINES + n, MOST_LINES);
  ck_assert(ptxas_lines(text, size, "sm_100a", wrong, HEADER_LINES + n));
  for (size_t k = 0; k < n; k++) {
    bool right = !wrong[HEADER_LINES + k];
    kl_match given = match(cases[k].given, cases[k].operands), as = match(cases[k].mnemonic, cases[k].operands);
    EXPECT((given.form != NULL) == right, "%s is %s here, unlike to ptxas", cases[k].given,
           right ? "no instruction" : "an instruction");
    EXPECT(!given.form || (given.form == as.form && given.flags == as.flags), "%s is not read as %s", cases[k].given,
           cases[k].mnemonic);
    accepted += right;
  }
  ck_assert_uint_gt(accepted, n / 2);
  free(text);
  free(cases);
}
END_TEST

int main(void) {
  return RUN_TESTS("ISA", ONCE(make, drop), {test_readings, KL_COUNT(readings)}, {test_too_many_modifiers},
                   {test_refusals, KL_COUNT(refusals)}, {test_opcodes}, {test_counts, KL_COUNT(counts)},
                   {test_spellings}, {test_orders});
}
