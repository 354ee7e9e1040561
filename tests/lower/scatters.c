// Plans of scatters, executed on fingerprints: every update comes to its element once, and in the order of the windows
// where threads run in theirs. Of rows, targets and forms one in three is tried, all by KILN_TEST_SHARE=3.
#include "interpret/interpret.h"
#include "lower/choose/choose.h"
#include "support/context.h"
#include "support/share.h"

#include <stdio.h>

static const kl_target plan_targets[] = {
    {.machine = KL_NVPTX, .sm = 90, .block = 128, .max_bytes = 16},
    {.machine = KL_NVPTX, .sm = 70, .block = 128, .max_bytes = 16},
    {.machine = KL_HOST, .block = 1, .max_bytes = 16, .host_lanes = 16},
};

// Updates in any order; by owners of places; element by element.
typedef enum form { UPDATES, OWNED, ORDERED } form;

typedef struct row {
  const char *type, *combiner; // what is made of a and b
  const char *array, *index, *updates, *numbers;
  form form; // on GPUs, from sm_90 on at least
} row;

#define ROWS ", update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
#define POINTS                                                                                                         \
  ", update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0"
#define BATCH                                                                                                          \
  ", update_window_dims={2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "     \
  "scatter_indices_batching_dims={0}, index_vector_dim=2"

#define GRID   ", update_window_dims={2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2"
#define SINGLE ", update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
#define WINDOWS                                                                                                        \
  ", update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1"

static const row rows[] = {
    {"f32", "add(a, b)", "[30,8]", "[40,1]", "[40,8]", ROWS, UPDATES},
    {"f16", "add(b, a)", "[30,7]", "[40,1]", "[40,7]", ROWS, UPDATES},
    {"s64", "maximum(a, b)", "[30,8]", "[40,1]", "[40,8]", ROWS, UPDATES},
    {"f32", "multiply(a, b)", "[30,8]", "[40,1]", "[40,8]", ROWS, UPDATES},
    {"u8", "add(a, b)", "[30,8]", "[40,1]", "[40,8]", ROWS, UPDATES},
    {"s4", "xor(a, b)", "[30,8]", "[40,1]", "[40,8]", ROWS, UPDATES},
    {"u8", "add(a, b)", "[5,3]", "[40,1]", "[40,3]", ROWS, OWNED}, // an odd number of bytes
    {"c128", "multiply(a, b)", "[30,8]", "[40,1]", "[40,8]", ROWS, OWNED},
    {"bf16", "copy(b)", "[30,8]", "[40,1]", "[40,8]", ROWS, UPDATES},
    {"f32", "add(a, b)", "[30,8]", "[4,1]", "[4,8]", ROWS, ORDERED}, // few windows
    {"s32", "add(a, b)", "[6,9]", "[2,200]", "[200]", POINTS, UPDATES},
    {"s32", "add(a, b)", "[3,20]", "[3,17,1]", "[3,17,4]", BATCH, UPDATES},
    {"f32", "multiply(a, b)", "[9,12]", "[40,2]", "[40,3,5]", WINDOWS, UPDATES}, // that overlap
    {"f32", "add(a, b)", "[20]", "[90,1]", "[90]", SINGLE, UPDATES},
    {"u64", "minimum(a, b)", "[9]", "[90,1]", "[90]", SINGLE, UPDATES},
    {"f16", "subtract(a, b)", "[30,3]", "[5,8,1]", "[5,8,3]", GRID, UPDATES}, // numbered by two dims
    {"f16", "subtract(a, b)", "[500,3]", "[300,1]", "[300,3]", ROWS, UPDATES},
    {"c128", "subtract(a, b)", "[3,20]", "[3,17,1]", "[3,17,4]", BATCH, OWNED},
};

static void put_text(kl_sb *b, const row *r) {
  kl_sbf(b, "HloModule m\nf {\n  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n", r->type, r->type);
  kl_sbf(b, "  ROOT r = %s[] %s\n}\nENTRY e {\n  x = %s%s parameter(0)\n", r->type, r->combiner, r->type, r->array);
  kl_sbf(b, "  i = s32%s parameter(1)\n  u = %s%s parameter(2)\n", r->index, r->type, r->updates);
  kl_sbf(b, "  ROOT y = %s%s scatter(x, i, u)%s, indices_are_sorted=true, to_apply=f\n}\n", r->type, r->array,
         r->numbers);
}

// Which combiners are joined by a GPU's instructions, and so in other forms than update by update.
static bool may_join(const row *r) {
  bool copies = strncmp(r->combiner, "copy", 4) == 0, product = strncmp(r->combiner, "mult", 4) == 0;
  return !copies && !product && strncmp(r->combiner, "sub", 3) != 0 && strcmp(r->type, "u8") != 0;
}

// Which forms take a row.
static bool may_be(const row *r, const kl_target *t, const char *chooser, kl_dtype type) {
  bool packed = kl_info(type)->bits < 8;
  if (strcmp(chooser, "owned scatter") == 0) return true;
  if (strcmp(chooser, "warp scatter") == 0 && !strstr(r->numbers, "update_window_dims={}")) return false;
  return t->machine == KL_NVPTX && may_join(r) && !(packed && chooser[0] == 'p');
}

// A form of kernels: what comes together before it comes to an element comes in any order.
static void judge_form(const kiln_module *m, const kl_target *t, const row *r, const char *chooser) {
  kl_arena arena;
  kl_plan *p;
  const kl_comp *c = &m->comp[m->entry];
  const kl_plan_params params = {.target = *t, .name = "k", .strategy = {.chooser = chooser}};
  order_of_sums_is_free = strcmp(chooser, "owned scatter") != 0;
  kl_arena_init(&arena, cx);
  leaves want = evaluate_graph(&arena, m, c, number_arguments(&arena, c));
  bool takes = may_be(r, t, chooser, kl_operand(c, kl_root(c), 0)->shape->dtype);
  kiln_status st = kl_plan_make(cx, m, c, &params, &arena, &p);
  EXPECT(st == (takes ? KILN_OK : KILN_E_UNSUPPORTED), "%s %s for sm %u by a %s: %s", r->type, r->combiner, t->sm,
         chooser, st == KILN_OK ? "is taken" : last_finding());
  if (st == KILN_OK) {
    EXPECT(kl_plan_verify(cx, p) == KILN_OK, "%s", last_finding());
    const char *why = interpret(&arena, p, &want);
    EXPECT(!why, "%s %s on sm %u by a %s: %s", r->type, r->combiner, t->sm, chooser, why);
    kl_plan_free(p);
  }
  kiln_diagnostics_clear(cx);
  kl_arena_free(&arena);
  order_of_sums_is_free = false;
}

static void judge(const kiln_module *m, const kl_target *t, const row *r, bool deterministic) {
  kl_arena arena;
  kl_plan *p;
  const kl_comp *c = &m->comp[m->entry];
  const kl_plan_params params = {.target = *t, .name = "k", .deterministic = deterministic};
  kl_arena_init(&arena, cx);
  EXPECT(kl_plan_make(cx, m, c, &params, &arena, &p) == KILN_OK, "%s", last_finding());
  order_of_sums_is_free = strcmp(p->kind, "scatter") != 0 && strcmp(p->kind, "owned scatter") != 0;
  leaves want = evaluate_graph(&arena, m, c, number_arguments(&arena, c));
  EXPECT(kl_plan_verify(cx, p) == KILN_OK, "%s", last_finding());
  const char *why = interpret(&arena, p, &want);
  EXPECT(!why, "%s %s on sm %u: %s", r->type, r->combiner, t->sm, why);
  order_of_sums_is_free = false;
  bool updated = p->slots[p->nargs - 1].mode == KL_MODE_UPDATE;
  form found = !updated ? ORDERED : strcmp(p->kind, "owned scatter") == 0 ? OWNED : UPDATES;
  if (t->sm == 90 && !deterministic) EXPECT(found == r->form, "%s %s: by %s", r->type, r->combiner, p->kind);
  bool is_float = r->type[0] == 'f' || r->type[0] == 'b' || r->type[0] == 'c';
  if (deterministic && is_float) EXPECT(found != UPDATES, "%s %s: updates in any order", r->type, r->combiner);
  kl_plan_free(p);
  kl_arena_free(&arena);
}

START_TEST(scatters) {
  kl_sb text;
  kl_sb_init(&text, cx);
  put_text(&text, &rows[_i]);
  kiln_module *m = parse(text.p);
  static const char *const forms[] = {NULL, NULL, "private scatter", "sorted scatter", "owned scatter", "warp scatter"};
  enum { FORMS = KL_COUNT(forms) };
  for (size_t k = 0; k < FORMS * KL_COUNT(plan_targets); k++) {
    const kl_target *t = &plan_targets[k / FORMS];
    const char *form = forms[k % FORMS];
    if (!share_has((uint64_t)_i * FORMS * KL_COUNT(plan_targets) + k, 3)) continue;
    if (form)
      judge_form(m, t, &rows[_i], form);
    else
      judge(m, t, &rows[_i], k % FORMS == 1);
  }
  kiln_module_destroy(&m);
  kl_sb_free(&text);
}
END_TEST

int main(void) {
  return RUN_TESTS("scatters", EACH(make_context, drop_context), {scatters, KL_COUNT(rows)});
}
