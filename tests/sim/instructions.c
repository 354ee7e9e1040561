// docs/instructions.md is what the tables say: made from them with `--print`, and compared.
#include "sim/isa/match.h"
#include "sim/isa/needs.h"
#include "sim/isa/special.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

static const struct {
  const char *topic, *title;
} titles[] = {
    {"integer", "Integers"},
    {"bits", "Bits and fields"},
    {"carry", "Sums in several words"},
    {"logic", "Logic, shifts, bytes"},
    {"compare", "Comparisons and selections"},
    {"float", "f32, f64 and pairs of f32"},
    {"special", "Approximations"},
    {"half", "f16, bf16 and their pairs"},
    {"convert", "Conversions"},
    {"narrow", "Conversions of f8, f6, f4, tf32, packed integers"},
    {"video", "SIMD within a word"},
    {"move", "Moves and addresses"},
    {"memory", "Loads, stores, prefetches, copies"},
    {"atomic", "Atomic operations"},
    {"control", "Control"},
    {"warp", "Barriers, fences, what lanes do together"},
};

static const char *title_of(const char *topic) {
  for (size_t k = 0; k < KL_COUNT(titles); k++)
    if (strcmp(topic, titles[k].topic) == 0) return titles[k].title;
  return NULL;
}

static const char *const units[] = {
    [KL_UNIT_INTEGER] = "integer", [KL_UNIT_MULTIPLY] = "multiply", [KL_UNIT_FLOAT] = "f32",
    [KL_UNIT_DOUBLE] = "f64",      [KL_UNIT_HALF] = "half",         [KL_UNIT_CONVERT] = "convert",
    [KL_UNIT_SPECIAL] = "special", [KL_UNIT_MEMORY] = "memory",     [KL_UNIT_ATOMIC] = "atomic",
    [KL_UNIT_CONTROL] = "control", [KL_UNIT_SYNC] = "sync",         [KL_UNIT_WARP] = "warp",
};

static const char introduction[] =
    "# Instructions\n\n"
    "Every form of an instruction that the simulator has, and those that it refuses. This page is made from the tables "
    "that\n"
    "its decoder reads (`src/sim/isa`), and a test compares it with them.\n\n"
    "- **Pattern**: the opcode and its modifiers: `{.a|.b}` is one of these or none, `(.a|.b)` one of these. Modifiers "
    "may\n"
    "  stand in any order, as ptxas reads them; types keep theirs, and what belongs to a name (`mul.lo`, `shf.l`, "
    "`cp.async`)\n"
    "  stands behind the opcode.\n"
    "- **Operands**: destinations before `=`, a letter each: `h`, `w`, `l`, `q` have 16, 32, 64, 128 bits; `H`, `W`, "
    "`L` may\n"
    "  be wider registers, `B` is one of 8 bits; `p` is a predicate, `P` one or two (`p|q`), `i` a constant, `4w` four "
    "in\n"
    "  braces. Other rows are written as in the PTX ISA.\n"
    "- **Unit**: what counts for the profile.\n"
    "- **Result**: *exact*: the bits that the PTX ISA says. *Modelled*: where the ISA allows an error, the correctly "
    "rounded\n"
    "  value; where it leaves bits open, one choice.\n"
    "- **Section** of the PTX ISA, version 9.0, that says what the instruction means.\n\n"
    "What the ISA leaves open, in short: an f32 NaN is `0x7fffffff`, one of a half `0x7fff`; one of f64 is the first "
    "operand\n"
    "that is one, made quiet. Caching, eviction, prefetch and policies are hints that change nothing. What "
    "`cp.async`\n"
    "copies arrives when its thread waits for it or exits, and in shuffled orders at any time before. Proxies see the "
    "same\n"
    "memory, so that fences between them do nothing. A row of `ldmatrix` and `stmatrix` is an access of the lane that\n"
    "names it.\n"
    "Forms that ptxas takes and the ISA does not describe, such as `addc.sat.s32`, are refused.\n";

// A pattern in a table's cell: bars would end it.
static void put_cell(FILE *f, const char *text) {
  if (!*text) return;
  fputc('`', f);
  for (; *text; text++) fprintf(f, *text == '|' ? "\\|" : "%c", *text);
  fputc('`', f);
}

static void put_rows(FILE *f, const kl_topic *t) {
  fprintf(f, "\n## %s\n\n| pattern | operands | unit | result | section |\n|---|---|---|---|---|\n", title_of(t->name));
  for (size_t r = 0; r < t->n; r++) {
    const kl_form *row = &t->rows[r];
    fputs("| ", f);
    put_cell(f, row->pattern);
    fputs(" | ", f);
    put_cell(f, row->operands);
    fprintf(f, " | %s | %s | %s |\n", units[row->unit], row->grade == KL_EXACT ? "exact" : "modelled", row->section);
  }
}

static void put_bounds(FILE *f) {
#define BOUND(function, ulps, relative, absolute, instructions, text) {instructions, text},
  static const char *const bounds[][2] = {KL_ISA_BOUNDS(BOUND)};
  fputs("\nHow far results may lie from the function's value, by the ISA; where perturbation is asked for, results lie "
        "anywhere\n"
        "within it ([the simulator](simulator.md#perturbation)). What is not listed is not perturbed.\n\n"
        "| instructions | bound |\n|---|---|\n",
        f);
  for (size_t k = 0; k < KL_COUNT(bounds); k++) fprintf(f, "| `%s` | %s |\n", bounds[k][0], bounds[k][1]);
}

static void put_needs(FILE *f) {
#define NEED(what, opcodes, which, version, sm, targets, section)                                                      \
  {opcodes, {what, section, version, sm, KL_HAVE_##targets}},
  static const struct {
    const char *opcodes;
    kl_need need;
  } needs[] = {KL_ISA_NEEDS(NEED)};
  fputs("\n## Versions and targets\n\nA module that has one of these and says an older version of PTX, or a target "
        "without it, is not loaded.\nWhat else older versions and targets lack runs all the same: ptxas tells of "
        "it.\n\n| what | of | PTX | targets | section |\n|---|---|---|---|---|\n",
        f);
  for (size_t k = 0; k < KL_COUNT(needs); k++)
    fprintf(f, "| %s | `%s` | %u.%u | %s | %s |\n", needs[k].need.what, needs[k].opcodes, needs[k].need.version / 10,
            needs[k].need.version % 10, kl_need_targets(&needs[k].need), needs[k].need.section);
}

static char *page(void) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  fputs(introduction, f);
  for (size_t t = 0; t < kl_ntopics; t++) {
    put_rows(f, &kl_topics[t]);
    if (strcmp(kl_topics[t].name, "special") == 0) put_bounds(f);
  }
  put_needs(f);
  fputs("\n## Refused\n\nPreparing a kernel that has one of these fails, with its name and line.\n\n"
        "| instruction | belongs to | section |\n|---|---|---|\n",
        f);
  for (size_t k = 0; k < kl_nrefusals; k++)
    fprintf(f, "| `%s` | %s | %s |\n", kl_refusals[k].name, kl_refusals[k].part_of, kl_refusals[k].section);
  fclose(f);
  return text;
}

START_TEST(test_page) {
  static char committed[1 << 20];
  FILE *f = fopen(KL_TESTS "/../docs/instructions.md", "rb");
  ck_assert_msg(f != NULL, "docs/instructions.md cannot be read");
  size_t n = fread(committed, 1, sizeof committed - 1, f);
  fclose(f);
  committed[n] = 0;
  char *made = page();
  size_t same = 0, line = 1;
  for (; made[same] && made[same] == committed[same]; same++) line += made[same] == '\n';
  ck_assert_msg(made[same] == committed[same],
                "docs/instructions.md differs in line %zu from the tables; test_sim_instructions --print makes it",
                line);
  free(made);
}
END_TEST

// Every topic and unit has a name, and every row and refusal a section.
START_TEST(test_rows) {
  for (size_t t = 0; t < kl_ntopics; t++) {
    ck_assert_msg(title_of(kl_topics[t].name) != NULL, "%s has no title", kl_topics[t].name);
    for (size_t r = 0; r < kl_topics[t].n; r++) {
      const kl_form *row = &kl_topics[t].rows[r];
      EXPECT(strncmp(row->section, "9.7.", 4) == 0 && row->unit < KL_COUNT(units), "%s: %s", row->pattern,
             row->section);
    }
  }
  for (size_t k = 0; k < kl_nrefusals; k++)
    EXPECT(strncmp(kl_refusals[k].section, "9.7.", 4) == 0, "%s", kl_refusals[k].name);
}
END_TEST

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--print") == 0) {
    char *text = page();
    fputs(text, stdout);
    free(text);
    return EXIT_SUCCESS;
  }
  return RUN_TESTS("instructions", NO_FRAME, {test_rows}, {test_page});
}
