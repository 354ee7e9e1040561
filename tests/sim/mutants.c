// The CUDA kernels of tests/sim/kernels with one mistake each (mutants/mutate.h), under all checks. What changes the
// outcome or the order of accesses is found; but for what mutants/misses.txt lists, line by line, with what the
// witness says is the reason: a launch that differs from the right one in that way is one that the checks cannot know
// to be wrong. A miss that is not listed fails, one that is listed and found as well.
//
// One mistake in thirty is made: about 5 s for more than 100 kernels of their own and 94 right ones. All are with
// KILN_TEST_SHARE=30 (support/share.h), in about two minutes. `test_sim_mutants --list FILE` writes the lines of the
// list.

#include "case_run.h"
#include "mutants/mutate.h"
#include "mutants/witness.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>

static const char *const reasons[DIFFERENCES] = {
    [SAME_BYTES] = "values",           [READS_UNDEFINED] = "reads-undefined", [NOT_WRITTEN] = "not-written",
    [WRITES_OTHERS] = "writes-others", [KEEPS_OLDER] = "keeps-older",         [READS_OTHERS] = "reads-others"};

static FILE *list; // that is written; NULL: it is read

// --- the list -----------------------------------------------------------------------------------------------------

enum { MOST_MISSES = 4096, MOST_LINE = 512 };
static char listed[MOST_MISSES][MOST_LINE]; // REASON FILE:LINE KERNEL KIND.WAY | INSTRUCTION
static bool was_met[MOST_MISSES];
static size_t nlisted;

START_TEST(there_is_a_list) {
  if (list) return;
  FILE *f = fopen(KL_TESTS "/sim/mutants/misses.txt", "rb");
  ck_assert_ptr_nonnull(f);
  while (nlisted < MOST_MISSES && fgets(listed[nlisted], MOST_LINE, f)) {
    listed[nlisted][strcspn(listed[nlisted], "\n")] = 0;
    nlisted += listed[nlisted][0] != '#' && listed[nlisted][0] != 0;
  }
  fclose(f);
  ck_assert_uint_lt(nlisted, MOST_MISSES);
}
END_TEST

// The line of the list without its reason, or NULL.
static const char *find_listed(const char *mutant) {
  for (size_t k = 0; k < nlisted; k++) {
    const char *rest = strchr(listed[k], ' ');
    if (!rest || strcmp(rest + 1, mutant) != 0) continue;
    was_met[k] = true;
    return listed[k];
  }
  return NULL;
}

// --- running ------------------------------------------------------------------------------------------------------

// Notes which instructions run, where they stand in the text.
typedef struct coverage {
  kl_observer o; // first
  kl_ptx_place *places;
  size_t n, cap;
} coverage;

static void on_step(kl_observer *o, kl_warp *w, const kl_sim_op *op) {
  coverage *c = (coverage *)o;
  const kl_code *code = w->strand.frame->code;
  if (!code->forms[op - code->ops] || !code->func->ninstrs) return;
  kl_ptx_place at = code->func->instrs[op->index].at;
  for (size_t k = c->n; k-- > 0;)
    if (c->places[k].begin == at.begin) return;
  if (c->n == c->cap) c->places = realloc(c->places, (c->cap = c->cap * 2 + 64) * sizeof *c->places);
  c->places[c->n++] = at;
}

static int by_place(const void *a, const void *b) {
  const kl_ptx_place *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

enum { MOST_BRANCHES = 200000 };

// Runs the case without checks, with one observer who is told what is undefined.
static bool look(const char *text, const kernel_case *c, uint64_t seed, kl_observer *o, witness *w) {
  case_run r;
  kl_fault fault;
  bool ok = case_open(&r, kl_str_of(text), c);
  for (uint32_t b = 0; ok && w && b < c->nbuffer; b++)
    if (!c->buffers[b].before && !c->buffers[b].symbol)
      witness_undefined(w, r.address[b], c->buffers[b].bytes ? c->buffers[b].bytes : 1);
  r.launch.observers = &o;
  r.launch.nobservers = 1;
  r.launch.shuffle = seed;
  r.launch.most_branches = MOST_BRANCHES;
  if (ok) kl_launch_run(r.s.cx, &r.s.m, &r.launch, &fault);
  case_close(&r);
  return ok;
}

typedef struct verdict {
  bool runs, found, changed;
} verdict;

static verdict check(const char *text, const kernel_case *c, uint64_t seed) {
  case_run r;
  kl_checks checks;
  char message[512];
  verdict v = {.runs = case_open(&r, kl_str_of(text), c)};
  r.launch.most_branches = MOST_BRANCHES;
  r.launch.shuffle = seed;
  if (v.runs) {
    bool ended = case_check(&r, &checks) == KILN_OK;
    v.found = checks.report.found.n > 0;
    v.changed = !ended || !case_agrees(&r, message, sizeof message);
    kl_checks_free(&checks);
  }
  case_close(&r);
  return v;
}

// --- judging ------------------------------------------------------------------------------------------------------

static struct {
  unsigned tried, wrong, found; // wrong: the outcome or the order of accesses is another one
} tally[MISTAKES];

enum { ORDERS_TRIED = 3 };

// Why the mistake is missed: NULL if it is found, or changes nothing.
static const char *judge(const char *text, const char *right, const kernel_case *c, mistake kind) {
  verdict all = {0};
  unsigned seeds = kind == ORDERS ? ORDERS_TRIED : 1;
  for (unsigned seed = 0; seed < seeds && !all.found; seed++) {
    verdict v = check(text, c, seed);
    if (!v.runs) return NULL;
    all.found |= v.found;
    all.changed |= v.changed;
  }
  tally[kind].tried++;
  if (all.found) {
    tally[kind].found += all.changed || kind == ORDERS;
    tally[kind].wrong += all.changed || kind == ORDERS;
    return NULL;
  }
  witness *was = witness_new(), *is = witness_new();
  look(right, c, 0, witness_observer(was), was);
  look(text, c, 0, witness_observer(is), is);
  bool raced = witness_raced(is);
  difference d = witness_compare(was, is);
  witness_free(was);
  witness_free(is);
  if (!raced && !all.changed) return NULL;
  tally[kind].wrong++;
  return raced ? "races" : reasons[d];
}

static void judge_mutant(const char *text, const char *right, const kernel_case *c, mistake kind, const char *name) {
  const char *why = judge(text, right, c, kind), *was = find_listed(name);
  if (list) {
    if (why) fprintf(list, "%s %s\n", why, name);
    return;
  }
  EXPECT(why || !was, "%s: no longer missed", was);
  EXPECT(!why || was, "%s %s: missed", why, name);
  EXPECT(!why || strncmp(was, why, strcspn(was, " ")) == 0, "%s: missed by reason %s", was, why);
}

// --- all of them --------------------------------------------------------------------------------------------------

static unsigned count;

static void name_mutant(const char *folder, const kernel_row *row, const char *text, kl_ptx_place at, size_t way,
                        char *out) {
  char instr[160];
  snprintf(instr, sizeof instr, "%.*s", (int)(at.end - at.begin), text + at.begin);
  for (char *p = instr; *p; p++)
    if (*p == '\t' || *p == '\n') *p = ' ';
  snprintf(out, MOST_LINE, "%s/%s:%u %s %s.%zu | %s", folder, row->file, at.line, row->name,
           mistake_names[mutation_kind(way)], way, instr);
}

// Mistakes in values are made in one target's code, those of order in all.
static void try_folder(const kernel_row *row, const char *folder, const char *text, const kernel_case *c, bool values) {
  coverage seen = {.o = {.step = on_step}};
  look(text, c, 0, &seen.o, NULL);
  if (seen.n) qsort(seen.places, seen.n, sizeof *seen.places, by_place);
  for (size_t i = 0; i < seen.n; i++)
    for (size_t way = 0; way < mutation_count(); way++) {
      char name[MOST_LINE], *wrong;
      if ((!values && mutation_kind(way) != ORDERS) || !(wrong = mutate(text, seen.places[i], way))) continue;
      name_mutant(folder, row, text, seen.places[i], way, name);
      if (share_has(count++, 30) || list)
        judge_mutant(wrong, text, c, mutation_kind(way), name);
      else
        find_listed(name);
      free(wrong);
    }
  free(seen.places);
}

START_TEST(mistakes_are_found) {
  const kernel_row *row = kernel_row_at((size_t)_i);
  kernel_case *c = kernel_case_new(row, 0, false);
  ck_assert_ptr_nonnull(c);
  for (size_t k = 0; k < CASE_FOLDERS; k++) {
    char *text = case_text(KL_TESTS "/sim/kernels/ptx", case_folders[k], row->file);
    if (!text) continue;
    try_folder(row, case_folders[k], text, c, strcmp(case_folders[k], row->min_sm > 80 ? "sm_90" : "sm_80") == 0);
    free(text);
  }
  kernel_case_free(c);
}
END_TEST

START_TEST(the_list_is_of_these) {
  for (int k = 0; k < MISTAKES; k++)
    printf("# %s: %u tried, %u change the outcome or the order of accesses, of which %u are found\n", mistake_names[k],
           tally[k].tried, tally[k].wrong, tally[k].found);
  for (size_t k = 0; k < nlisted; k++) EXPECT(was_met[k], "there is no such mistake: %s", listed[k]);
}
END_TEST

int main(int argc, char **argv) {
  int n = 0;
  if (argc > 2 && strcmp(argv[1], "--list") == 0) list = fopen(argv[2], "wb");
  while (kernel_row_at((size_t)n)) n++;
  int status = RUN_TESTS("mutants", NO_FRAME, {there_is_a_list}, {mistakes_are_found, n}, {the_list_is_of_these});
  if (list) fclose(list);
  return status;
}
