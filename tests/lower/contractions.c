// Plans of dots, executed on fingerprints: each element is the sum of its pairs in the order of docs/numerics.md,
// whoever does what, by tiles, by rows of vectors, element by element, with blocks of its own for each leaf or without.
#include "interpret/interpret.h"
#include "lower/choose/choose.h"
#include "support/context.h"

#include <stdio.h>

static const kl_target plan_targets[] = {
    {.machine = KL_NVPTX, .sm = 90, .block = 128, .max_bytes = 16},
    {.machine = KL_HOST, .block = 1, .max_bytes = 16, .host_lanes = 16},
};

static const kl_strategy ways[] = {{.chooser = "tiled contraction", .split = 1},
                                   {.chooser = "tiled contraction", .split = 2},
                                   {.chooser = "contraction of few rows", .split = 1},
                                   {.chooser = "contraction of few rows", .split = 2},
                                   {.chooser = "contraction", .split = 1},
                                   {.chooser = "contraction", .split = 2},
                                   {0}};

// The operands' types and shapes, the result's, and what is said of dims; the array that the left operand is cut from
// with these bounds, NULL: it is one of its own.
typedef struct row {
  const char *type, *lhs, *rhs, *out, *numbers, *whole, *bounds;
} row;

#define PLAIN ", lhs_contracting_dims={1}, rhs_contracting_dims={0}"

static const row rows[] = {
    {"f32", "[33,40]", "[40,35]", "[33,35]", PLAIN},
    {"f32", "[20,270]", "[270,18]", "[20,18]", PLAIN},
    {"bf16", "[17,519]", "[519,24]", "[17,24]", PLAIN}, // a short leaf
    {"f32", "[40,33]{0,1}", "[35,40]", "[33,35]{0,1}", ", lhs_contracting_dims={0}, rhs_contracting_dims={1}"},
    {"f32", "[3,18,20]", "[20,3,17]", "[3,18,17]",
     ", lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}"},
    {"bf16", "[1,300]", "[300,40]", "[1,40]", PLAIN},
    {"f32", "[600]", "[600]", "[]", ", lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
    {"f32", "[5,7]", "[6]", "[5,7,6]", ""}, // pairs of nothing but one
    {"f32", "[9,0]", "[0,5]", "[9,5]", PLAIN},
    {"f32", "[67,41]", "[41,131]", "[67,131]", PLAIN},   // rows and pairs beyond whole tiles and slabs
    {"f32", "[130,300]", "[300,66]", "[130,66]", PLAIN}, // by runs
    {"bf16", "[69,531]", "[531,37]", "[69,37]", PLAIN},  // several slabs of a short leaf
    // Whole accesses, but not whole runs: of pairs, of rows.
    {"f32", "[40,22]", "[22,35]", "[40,35]", PLAIN, "[40,32]", "0:40], [0:22"},
    {"f32", "[22,33]", "[22,35]", "[33,35]", ", lhs_contracting_dims={0}, rhs_contracting_dims={0}", "[22,36]",
     "0:22], [0:33"},
    // Few rows, or columns: leaves that a block has at once, and in rounds, of which one is short or not there; along
    // pairs, and along columns of whole accesses or not.
    {"f32", "[600]", "[600,64]", "[64]", ", lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
    {"f32", "[2100]", "[2100,33]", "[33]", ", lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
    {"bf16", "[36,520]", "[520]", "[36]", ", lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"bf16", "[3,70]", "[3,5,70]", "[3,5]",
     ", lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={2}"},
    {"f64", "[13,270]", "[35,270]", "[13,35]", ", lhs_contracting_dims={1}, rhs_contracting_dims={1}"},
    {"f32", "[4,9,5]", "[5,9,18]", "[4,18]", ", lhs_contracting_dims={2,1}, rhs_contracting_dims={0,1}"},
};

static void put_text(kl_sb *b, const row *r) {
  kl_sbf(b, "HloModule m\nENTRY e {\n  w = %s%s parameter(0)\n  y = %s%s parameter(1)\n", r->type,
         r->whole ? r->whole : r->lhs, r->type, r->rhs);
  if (r->whole) kl_sbf(b, "  x = %s%s slice(w), slice={[%s]}\n", r->type, r->lhs, r->bounds);
  kl_sbf(b, "  n = %s%s negate(y)\n  d = %s%s dot(%s, n)%s\n", r->type, r->rhs, r->type, r->out, r->whole ? "x" : "w",
         r->numbers);
  kl_sbf(b, "  ROOT r = %s%s abs(d)\n}\n", r->type, r->out);
}

// Was there such a plan?
static bool judge(const kiln_module *m, const kl_target *t, const row *r, const kl_strategy *way, const leaves *want) {
  kl_arena arena;
  kl_plan *p;
  const kl_comp *c = &m->comp[m->entry];
  const kl_plan_params params = {.target = *t, .name = "k", .strategy = *way};
  kl_arena_init(&arena, cx);
  kiln_status st = kl_plan_make(cx, m, c, &params, &arena, &p);
  EXPECT(st == KILN_OK || (way->chooser && st == KILN_E_UNSUPPORTED), "%s %s: %s", r->lhs, r->rhs, last_finding());
  if (st == KILN_OK) {
    EXPECT(kl_plan_verify(cx, p) == KILN_OK, "%s", last_finding());
    const char *why = interpret(&arena, p, want);
    EXPECT(!why, "%s %s on sm %u by a %s of %u launches: %s", r->lhs, r->rhs, t->sm, p->kind, p->nlaunches, why);
    kl_plan_free(p);
  }
  kiln_diagnostics_clear(cx);
  kl_arena_free(&arena);
  return st == KILN_OK;
}

START_TEST(contractions) {
  kl_sb text;
  unsigned taken = 0;
  kl_sb_init(&text, cx);
  put_text(&text, &rows[_i]);
  kiln_module *m = parse(text.p);
  const kl_comp *c = &m->comp[m->entry];
  kl_arena arena;
  kl_arena_init(&arena, cx);
  leaves want = evaluate_graph(&arena, m, c, number_arguments(&arena, c));
  for (size_t t = 0; t < KL_COUNT(plan_targets); t++)
    for (size_t w = 0; w < KL_COUNT(ways); w++) taken += judge(m, &plan_targets[t], &rows[_i], &ways[w], &want);
  kl_arena_free(&arena);
  EXPECT(taken >= 3 * KL_COUNT(plan_targets), "%s %s: %u of %zu ways", rows[_i].lhs, rows[_i].rhs, taken,
         KL_COUNT(ways) * KL_COUNT(plan_targets));
  kiln_module_destroy(&m);
  kl_sb_free(&text);
}
END_TEST

int main(void) {
  return RUN_TESTS("contractions", EACH(make_context, drop_context), {contractions, KL_COUNT(rows)});
}
