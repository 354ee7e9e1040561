// Plans of reductions, executed on fingerprints: every element comes in once, in the order that the reduction has
// whatever the kernel. Of all shapes and reducers one pair in 24 (support/share.h).
#include "interpret/interpret.h"
#include "lower/choose/choose.h"
#include "lower/plan/cost/cost.h"
#include "support/reductions.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>

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

static const char *last_finding(void) {
  size_t n = kiln_diagnostics_count(cx);
  return n ? kiln_diagnostics_get(cx, n - 1)->message : "";
}

static const kl_target targets[] = {
    {.machine = KL_NVPTX, .sm = 90, .block = 128, .max_bytes = 16},
    {.machine = KL_HOST, .block = 1, .max_bytes = 16, .host_lanes = 16},
    {.machine = KL_HOST, .block = 1, .max_bytes = 16, .host_lanes = 4},
};

enum { WHOLE = 1 << 22 }; // steps in threads beyond which some blocks do

static bool is_small(const kl_plan *p) {
  int64_t work = 0;
  for (uint32_t i = 0; i < p->nparts; i++) {
    const kl_body *b = &p->parts[i].main;
    work += b->blocks * kl_launch_of(p, i)->block * b->nsteps + b->threads * b->lanes * b->nsteps;
  }
  return work <= WHOLE;
}

static unsigned planned, refused;

// As it is best; one block; a few that the last of them, or a launch, joins.
static const kl_strategy strategies[] = {
    {0},
    {.split = 2, .times = 3},
    {.split = 4},
    {.split = 64},
    {.split = 2, .two_launches = true},
    {.split = 16, .two_launches = true},
    {.across = true},
    {.split = 4, .across = true},
    {.split = 2, .cluster = true},
    {.split = 8, .cluster = true},
};
static const kl_strategy *strategy = strategies;

// What is wrong with a plan of it, NULL if nothing is.
static const char *judge_on(const kiln_module *m, const kl_target *t, const leaves *want, bool may_refuse) {
  kl_plan *p;
  const kl_plan_params params = {.target = *t, .name = "k", .strategy = *strategy};
  kiln_status s = kl_plan_make(cx, m, &m->comp[m->entry], &params, &arena, &p);
  if (s == KILN_E_UNSUPPORTED && may_refuse) return refused++, NULL;
  if (s != KILN_OK) return last_finding();
  planned++;
  if (kl_plan_verify(cx, p) != KILN_OK) return last_finding();
  const char *why = (is_small(p) ? interpret : interpret_some)(&arena, p, want);
  kl_plan_free(p);
  return why;
}

// On all targets; `text` is a module whose ENTRY is planned. How many are wrong.
static unsigned judge(const char *what, const char *text, bool may_refuse) {
  kiln_module *m = NULL;
  unsigned wrong = 0;
  EXPECT(kiln_module_parse(cx, "test", text, strlen(text), &m) == KILN_OK, "%s: %s\n%s", what, last_finding(), text);
  leaves want = evaluate_graph(&arena, m, &m->comp[m->entry], number_arguments(&arena, &m->comp[m->entry]));
  for (size_t t = 0; t < KL_COUNT(targets); t++) {
    const char *why = judge_on(m, &targets[t], &want, may_refuse);
    if (why) printf("# %s, target %zu: %s\n", what, t, why);
    wrong += why != NULL;
  }
  kiln_module_destroy(&m);
  kl_arena_free(&arena);
  kl_arena_init(&arena, cx);
  return wrong;
}

// --- reducers --------------------------------------------------------------------------------------------------------

// T: the type. `what` is one op of two values, or a name of those below.
typedef struct reducer {
  const char *op, *type;
} reducer;

// The larger value with its number, the earlier of two that are the same; and a sum of two things at once.
static const char pair_text[] = "f {\n  a = T[] parameter(0)\n  i = s32[] parameter(1)\n  b = T[] parameter(2)\n"
                                "  j = s32[] parameter(3)\n  c = pred[] compare(a, b), direction=GE\n"
                                "  x = T[] select(c, a, b)\n  k = s32[] select(c, i, j)\n"
                                "  ROOT r = (T[], s32[]) tuple(x, k)\n}\n";
static const char odd_text[] = "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  c = T[] multiply(b, b)\n"
                               "  d = T[] subtract(a, c)\n  ROOT r = T[] negate(d)\n}\n";
static const char op_text[] = "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  ROOT r = T[] OP(a, b)\n}\n";
static const char turned_text[] = "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  ROOT r = T[] add(b, a)\n}\n";

static const reducer reducers[] = {
    {"add", "f32"},       {"add", "f16"},       {"add", "bf16"},        {"add", "f8e4m3fn"},   {"add", "f64"},
    {"multiply", "f32"},  {"multiply", "bf16"}, {"maximum", "f32"},     {"maximum", "f8e5m2"}, {"minimum", "f4e2m1fn"},
    {"add", "s32"},       {"add", "s8"},        {"multiply", "u16"},    {"minimum", "s4"},     {"maximum", "u2"},
    {"and", "pred"},      {"or", "pred"},       {"xor", "u64"},         {"and", "s1"},         {"add", "c64"},
    {"multiply", "c128"}, {"subtract", "f32"},  {"subtract", "bf16"},   {"divide", "s32"},     {"odd", "f32"},
    {"odd", "f16"},       {"pair", "f32"},      {"pair", "f8e4m3fnuz"}, {"pair", "s64"},       {"turned", "f16"},
    {"turned", "f32"},    {"maximum", "pred"},  {"minimum", "u64"},     {"add", "u4"},         {"add", "f4e2m1fn"},
};

// Puts `text` with the type for T and the operation for OP.
static void put(kl_sb *b, const char *text, const reducer *r) {
  for (; *text; text++) {
    if (text[0] == 'T' && (text[1] == '[' || text[1] == 'T')) {
      kl_sb_puts(b, r->type);
    } else if (strncmp(text, "OP(", 3) == 0) {
      kl_sb_puts(b, r->op);
      text++;
    } else {
      kl_sb_putc(b, *text);
    }
  }
}

static bool is(const reducer *r, const char *op) {
  return strcmp(r->op, op) == 0;
}

static void put_reducer(kl_sb *b, const reducer *r) {
  put(b, is(r, "pair") ? pair_text : is(r, "odd") ? odd_text : is(r, "turned") ? turned_text : op_text, r);
}

// --- shapes ----------------------------------------------------------------------------------------------------------

typedef struct shape_row {
  const char *from, *dims, *to; // operand, with layout; reduced dimensions; result
} shape_row;

// clang-format off
static const shape_row shapes[] = {
  // rows
  {"[1,1]", "1", "[1]"}, {"[3,1]", "1", "[3]"}, {"[1,7]", "1", "[1]"}, {"[5,0]", "1", "[5]"}, {"[0,5]", "1", "[0]"},
  {"[7,31]", "1", "[7]"}, {"[2,33]", "1", "[2]"}, {"[33,100]", "1", "[33]"}, {"[129,8]", "1", "[129]"},
  {"[3,255]", "1", "[3]"}, {"[3,256]", "1", "[3]"}, {"[3,257]", "1", "[3]"}, {"[300,17]", "1", "[300]"},
  {"[2,1023]", "1", "[2]"}, {"[2,1024]", "1", "[2]"}, {"[2,1025]", "1", "[2]"}, {"[5,4100]", "1", "[5]"},
  {"[1,33001]", "1", "[1]"}, {"[2,66000]", "1", "[2]"}, {"[40]", "0", "[]"}, {"[1000]", "0", "[]"}, {"[]", "", "[]"},
  {"[2,3,5,7]", "2,3", "[2,3]"}, {"[2,3,5,7]", "1,3", "[2,5]"}, {"[4,6,1]", "1", "[4,1]"},
  {"[10,12]{0,1}", "0", "[12]"}, {"[4,5,6]{0,2,1}", "0,2", "[5]"},
  // rows that begin anywhere in a vector
  {"[4,130]", "1", "[4]"}, {"[16,253]", "1", "[16]"}, {"[3,4,257]", "2", "[3,4]"}, {"[8,1021]", "1", "[8]"}, {"[4,1027]{0,1}", "0", "[1027]"},
  {"[32,7,37]", "1,2", "[32]"}, {"[16,2050]", "1", "[16]"},
  // columns
  {"[7,1]", "0", "[1]"}, {"[7,3]", "0", "[3]"}, {"[0,3]", "0", "[3]"}, {"[31,5]", "0", "[5]"}, {"[100,33]", "0", "[33]"},
  {"[8,128]", "0", "[128]"}, {"[9,129]", "0", "[129]"}, {"[127,4]", "0", "[4]"}, {"[128,64]", "0", "[64]"},
  {"[129,12]", "0", "[12]"}, {"[1025,2]", "0", "[2]"}, {"[4099,3]", "0", "[3]"}, {"[5,6,8]", "1", "[5,8]"},
  {"[3,4,5,6]", "0,2", "[4,6]"}, {"[2,70,3,2]", "1", "[2,3,2]"}, {"[6,16]{0,1}", "1", "[6]"},
  {"[4,5,6]{1,2,0}", "0,2", "[5]"},
};
// clang-format on

static void put_reduce(kl_sb *b, const shape_row *s, const reducer *r) {
  kl_sb_puts(b, "HloModule m\n");
  put_reducer(b, r);
  kl_sbf(b, "ENTRY e {\n  p = %s%s parameter(0)\n  z = %s[] parameter(1)\n", r->type, s->from, r->type);
  if (is(r, "pair")) {
    kl_sbf(b, "  i = s32%s parameter(2)\n  n = s32[] constant(-1)\n", s->from);
    kl_sbf(b, "  ROOT r = (%s%s, s32%s) reduce(p, i, z, n), dimensions={%s}, to_apply=f\n}\n", r->type, s->to, s->to,
           s->dims);
  } else {
    kl_sbf(b, "  ROOT r = %s%s reduce(p, z), dimensions={%s}, to_apply=f\n}\n", r->type, s->to, s->dims);
  }
}

// Where results of several threads would share a byte, a plan is refused.
static bool shares_bytes(const reducer *r) {
  return strcmp(r->type, "s1") == 0 || strcmp(r->type, "u2") == 0 || strcmp(r->type, "s4") == 0 ||
         strcmp(r->type, "u4") == 0 || strcmp(r->type, "f4e2m1fn") == 0;
}

START_TEST(reductions_have_their_order) {
  const shape_row *s = &shapes[_i];
  unsigned wrong = planned = refused = 0;
  for (size_t k = 0; k < KL_COUNT(reducers); k++) {
    const reducer *r = &reducers[k];
    if (!share_has((size_t)_i * KL_COUNT(reducers) + k, 24)) continue;
    kl_sb text;
    char what[64];
    snprintf(what, sizeof what, "%s of %s%s over %s", r->op, r->type, s->from, s->dims);
    kl_sb_init(&text, cx);
    put_reduce(&text, s, r);
    wrong += judge(what, text.p, shares_bytes(r));
    kl_sb_free(&text);
  }
  printf("# dimensions %s of %s: %u plans, %u refused\n", s->dims, s->from, planned, refused);
  EXPECT(!wrong, "%u plans over dimensions %s of %s", wrong, s->dims, s->from);
}
END_TEST

// --- several blocks for a result ------------------------------------------------------------------------------------

// clang-format off
static const shape_row split_shapes[] = {
  {"[1,1025]", "1", "[1]"}, {"[2,2048]", "1", "[2]"}, {"[3,3000]", "1", "[3]"}, {"[4096]", "0", "[]"}, {"[70,1100]", "1", "[70]"},
  {"[2,3,1030]", "1,2", "[2]"}, {"[1,17000]", "1", "[1]"},
  {"[129,2]", "0", "[2]"}, {"[257,15]", "0", "[15]"}, {"[1000,3]", "0", "[3]"}, {"[300,40]", "0", "[40]"}, {"[130,300]", "0", "[300]"},
  {"[3,200,7]", "1", "[3,7]"}, {"[4000,1,1]{0,1,2}", "1", "[4000,1]"}, {"[2500,1]", "0", "[1]"},
};
// clang-format on

START_TEST(blocks_share_a_result) {
  const shape_row *s = &split_shapes[_i];
  unsigned wrong = planned = refused = 0;
  for (size_t k = 0; k < KL_COUNT(reducers); k++) {
    const reducer *r = &reducers[k];
    if (!share_has((size_t)_i * KL_COUNT(reducers) + k, 24)) continue;
    strategy = &strategies[1 + k % (KL_COUNT(strategies) - 1)];
    kl_sb text;
    char what[96];
    snprintf(what, sizeof what, "%s of %s%s over %s by %u blocks%s", r->op, r->type, s->from, s->dims, strategy->split,
             strategy->two_launches ? ", two launches" : "");
    kl_sb_init(&text, cx);
    put_reduce(&text, s, r);
    wrong += judge(what, text.p, shares_bytes(r));
    kl_sb_free(&text);
  }
  strategy = strategies;
  printf("# dimensions %s of %s: %u plans, %u refused\n", s->dims, s->from, planned, refused);
  EXPECT(!wrong, "%u plans over dimensions %s of %s", wrong, s->dims, s->from);
}
END_TEST

// --- several launches ------------------------------------------------------------------------------------------------

START_TEST(reductions_meet_in_memory) {
  kl_sb text;
  kl_sb_init(&text, cx);
  put_fusion(&text, &fusions[_i]);
  for (size_t i = 0; i < KL_COUNT(strategies); i += 2) {
    if (!share_has((uint64_t)_i * KL_COUNT(strategies) / 2 + i / 2, 3)) continue;
    strategy = &strategies[i];
    EXPECT(judge(fusions[_i].what, text.p, false) == 0, "%s, strategy %zu", fusions[_i].what, i);
  }
  strategy = strategies;
  kl_sb_free(&text);
}
END_TEST

// --- clusters -------------------------------------------------------------------------------------------------------

// The plan of a fusion as a cluster makes it.
static kl_plan *plan_in_cluster(const fusion_row *f, uint32_t blocks, kiln_module **m) {
  kl_sb text;
  kl_plan *p = NULL;
  kl_sb_init(&text, cx);
  put_fusion(&text, f);
  EXPECT(kiln_module_parse(cx, f->what, text.p, text.n, m) == KILN_OK, "%s: %s", f->what, last_finding());
  const kl_plan_params params = {.target = targets[0], .name = "k", .strategy = {.split = blocks, .cluster = true}};
  EXPECT(kl_plan_make(cx, *m, &(*m)->comp[(*m)->entry], &params, &arena, &p) == KILN_OK, "%s: %s", f->what,
         last_finding());
  kl_sb_free(&text);
  return p;
}

// The root without the meeting that is number `n`; false: there are not so many.
static bool drop_meeting(kl_body *b, uint32_t n) {
  kl_node *nodes = kl_arena_dup(&arena, b->root.nodes, b->root.n * sizeof *nodes);
  for (uint32_t i = 0; i < b->root.n; i++) {
    if (nodes[i].kind != KL_NODE_MEET || n--) continue;
    nodes[i].kind = KL_NODE_SYNC;
    b->root.nodes = nodes;
    return true;
  }
  return false;
}

START_TEST(blocks_that_do_not_meet_are_noticed) {
  static const fusion_row rows = {
      "two levels",
      "p = f32[2,3000] parameter(0)\n z = f32[] parameter(1)\n a = f32[2] reduce(p, z), dimensions={1}, to_apply=f\n b "
      "= "
      "f32[2,3000] broadcast(a), dimensions={0}\n d = f32[2,3000] subtract(p, b)\n c = f32[2] reduce(d, z), "
      "dimensions={1}, to_apply=f\n e = f32[2,3000] broadcast(c), dimensions={0}\n ROOT g = f32[2,3000] divide(d, e)"};
  for (uint32_t n = 0; n < 3; n++) {
    kiln_module *m;
    kl_plan *p = plan_in_cluster(&rows, 4, &m);
    const kl_comp *entry = &m->comp[m->entry];
    leaves want = evaluate_graph(&arena, m, entry, number_arguments(&arena, entry));
    EXPECT(p->nlaunches == 1 && p->launches->cluster == 4, "%u launches, clusters of %u", p->nlaunches,
           p->launches->cluster);
    EXPECT(kl_plan_verify(cx, p) == KILN_OK && !interpret(&arena, p, &want), "it is right as it is");
    EXPECT(drop_meeting(&p->parts->main, n) == (n < 2), "meeting %u", n);
    if (n < 2) {
      EXPECT(kl_plan_verify(cx, p) == KILN_E_INTERNAL, "the verifier lets it through without meeting %u", n);
      EXPECT(interpret(&arena, p, &want) != NULL, "the interpreter lets it through without meeting %u", n);
    }
    kl_plan_free(p);
    kiln_module_destroy(&m);
  }
}
END_TEST

// Rows that the registers of a cluster do not hold are read again by the same blocks: once for each reduction, and for
// the results.
START_TEST(blocks_of_a_cluster_read_again) {
  static const fusion_row rows = {
      "two levels of 66,000",
      "p = f32[2,66000] parameter(0)\n z = f32[] parameter(1)\n a = f32[2] reduce(p, z), dimensions={1}, to_apply=f\n "
      "b = f32[2,66000] broadcast(a), dimensions={0}\n d = f32[2,66000] subtract(p, b)\n c = f32[2] reduce(d, z), "
      "dimensions={1}, to_apply=f\n e = f32[2,66000] broadcast(c), dimensions={0}\n g = f32[2,66000] divide(d, e)\n "
      "ROOT t = (f32[2,66000], f32[2]) tuple(g, a)"};
  for (uint32_t blocks = 2; blocks <= 4; blocks *= 2) {
    if (!share_has(blocks / 4, 1)) continue;
    kiln_module *m;
    kl_plan *p = plan_in_cluster(&rows, blocks, &m);
    const kl_comp *entry = &m->comp[m->entry];
    leaves want = evaluate_graph(&arena, m, entry, number_arguments(&arena, entry));
    uint32_t loads = 0;
    for (uint32_t i = 0; i < p->parts->main.nsteps; i++) {
      const kl_step *s = &p->parts->main.steps[i];
      loads += s->kind == KL_STEP_LOAD && s->access.slot == 0;
    }
    EXPECT(p->nlaunches == 1 && p->launches->cluster == blocks, "%u launches, clusters of %u", p->nlaunches,
           p->launches->cluster);
    EXPECT(loads == (blocks == 2 ? 3 : 1), "%u loads with %u blocks", loads, blocks);
    EXPECT(kl_plan_verify(cx, p) == KILN_OK, "%s", last_finding());
    const char *why = interpret(&arena, p, &want);
    EXPECT(!why, "%u blocks: %s", blocks, why ? why : "");
    kl_plan_free(p);
    kiln_module_destroy(&m);
  }
}
END_TEST

// --- columns beside rows --------------------------------------------------------------------------------------------

// Elements that rows and columns have in common are read once.
static const fusion_row beside[] = {
    {"sums of both", "p = f32[300,512] parameter(0)\n z = f32[] parameter(1)\n a = f32[300] reduce(p, z), "
                     "dimensions={1}, to_apply=f\n c = f32[512] reduce(p, z), dimensions={0}, to_apply=f\n ROOT t = "
                     "(f32[300], f32[512]) tuple(a, c)"},
    {"columns of what rows leave, of an odd number",
     "p = f32[130,90] parameter(0)\n z = f32[] parameter(1)\n a = f32[130] reduce(p, z), dimensions={1}, to_apply=f\n "
     "b = f32[130,90] broadcast(a), dimensions={0}\n d = f32[130,90] subtract(p, b)\n c = f32[90] reduce(d, z), "
     "dimensions={0}, to_apply=f\n n = f32[90] negate(c)\n ROOT t = (f32[130,90], f32[90]) tuple(d, n)"},
    {"rows of several warps", "p = f32[20,2100] parameter(0)\n z = f32[] parameter(1)\n a = f32[20] reduce(p, z), "
                              "dimensions={1}, to_apply=f\n b = f32[20,2100] broadcast(a), dimensions={0}\n d = "
                              "f32[20,2100] subtract(p, b)\n c = f32[2100] reduce(d, z), dimensions={0}, to_apply=f\n "
                              "ROOT t = (f32[20,2100], f32[2100], f32[20]) tuple(d, c, a)"},
    {"columns of three dimensions",
     "p = f32[9,15,70] parameter(0)\n z = f32[] parameter(1)\n a = f32[9,15] reduce(p, z), "
     "dimensions={2}, to_apply=f\n c = f32[70] reduce(p, z), dimensions={0,1}, to_apply=f\n "
     "ROOT t = (f32[9,15], f32[70]) tuple(a, c)"},
};

static kl_plan *plan_with_teams(const fusion_row *f, uint32_t teams, kiln_module **m) {
  kl_sb text;
  kl_plan *p = NULL;
  kl_sb_init(&text, cx);
  put_fusion(&text, f);
  EXPECT(kiln_module_parse(cx, f->what, text.p, text.n, m) == KILN_OK, "%s: %s", f->what, last_finding());
  const kl_plan_params params = {.target = targets[0], .name = "k", .strategy = {.teams = teams}};
  EXPECT(kl_plan_make(cx, *m, &(*m)->comp[(*m)->entry], &params, &arena, &p) == KILN_OK, "%s: %s", f->what,
         last_finding());
  kl_sb_free(&text);
  return p;
}

static unsigned loads_of_first(const kl_plan *p) {
  unsigned n = 0;
  for (uint32_t i = 0; i < p->nparts; i++)
    for (uint32_t k = 0; k < p->parts[i].main.nsteps; k++) {
      const kl_step *s = &p->parts[i].main.steps[k];
      n += s->kind == KL_STEP_LOAD && s->access.slot == 0;
    }
  return n;
}

START_TEST(columns_are_made_beside_rows) {
  const fusion_row *f = &beside[_i];
  for (uint32_t k = 0; k < 4; k++) {
    uint32_t teams = 1u << k;
    if (!share_has((uint64_t)_i * 4 + k, 2)) continue;
    kiln_module *m;
    kl_plan *p = plan_with_teams(f, teams, &m);
    const kl_comp *entry = &m->comp[m->entry];
    leaves want = evaluate_graph(&arena, m, entry, number_arguments(&arena, entry));
    EXPECT(p->nlaunches == 2 && loads_of_first(p) == 1, "%s, %u teams: %u launches, %u loads", f->what, teams,
           p->nlaunches, loads_of_first(p));
    EXPECT(kl_plan_verify(cx, p) == KILN_OK, "%s, %u teams: %s", f->what, teams, last_finding());
    const char *why = interpret(&arena, p, &want);
    EXPECT(!why, "%s, %u teams: %s", f->what, teams, why ? why : "");
    kl_plan_free(p);
    kiln_module_destroy(&m);
  }
}
END_TEST

// --- what is read ---------------------------------------------------------------------------------------------------

// `f` adds. How many sectors a kernel may touch of what would do, in hundredths.
typedef struct read_row {
  const char *what, *text;
  int64_t most;
} read_row;

// clang-format off
static const read_row reads[] = {
  {"rows", "p = f32[128,4096] parameter(0)\n z = f32[] constant(0)\n ROOT a = f32[128] reduce(p, z), dimensions={1}, to_apply=f", 105},
  {"rows that begin anywhere", "p = f32[64,4095] parameter(0)\n z = f32[] constant(0)\n ROOT a = f32[64] reduce(p, z), dimensions={1}, to_apply=f", 105},
  {"rows that begin anywhere, of half a vector", "p = bf16[64,2047] parameter(0)\n z = f32[] constant(0)\n q = f32[64,2047] convert(p)\n ROOT a = f32[64] reduce(q, z), dimensions={1}, to_apply=f", 105},
  {"rows that begin anywhere, and their elements", "p = f32[64,1023] parameter(0)\n z = f32[] constant(0)\n a = f32[64] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[64,1023] broadcast(a), dimensions={0}\n ROOT d = f32[64,1023] subtract(p, b)", 105},
  {"rows of 131,072 that are read twice", "p = bf16[64,131072] parameter(0)\n z = f32[] constant(0)\n q = f32[64,131072] convert(p)\n a = f32[64] reduce(q, z), dimensions={1}, to_apply=f\n b = f32[64,131072] broadcast(a), dimensions={0}\n d = f32[64,131072] subtract(q, b)\n ROOT r = bf16[64,131072] convert(d)", 105},
  {"rows of what is turned", "p = f32[4096,512] parameter(0)\n z = f32[] constant(0)\n t = f32[512,4096] transpose(p), dimensions={1,0}\n ROOT a = f32[512] reduce(t, z), dimensions={1}, to_apply=f", 105},
  {"the same by its layout", "p = f32[512,4096]{0,1} parameter(0)\n z = f32[] constant(0)\n t = f32[512,4096]{1,0} copy(p)\n ROOT a = f32[512] reduce(t, z), dimensions={1}, to_apply=f", 105},
  {"four rows side by side", "p = f32[4,64,4096,4] parameter(0)\n z = f32[] constant(0)\n t = f32[4,4,64,4096] transpose(p), dimensions={0,3,1,2}\n q = f32[4,4,64,4096] multiply(t, t)\n ROOT a = f32[4,4,64] reduce(q, z), dimensions={3}, to_apply=f", 105},
  {"two sums of columns", "p = bf16[16384,1024] parameter(0)\n z = f32[] constant(0)\n q = f32[16384,1024] convert(p)\n a = f32[1024] reduce(q, z), dimensions={0}, to_apply=f\n u = f32[16384,1024] multiply(q, q)\n b = f32[1024] reduce(u, z), dimensions={0}, to_apply=f\n ROOT r = (f32[1024], f32[1024]) tuple(a, b)", 105},
  {"columns of what is turned", "p = f32[500,64,128] parameter(0)\n z = f32[] constant(0)\n t = f32[500,128,64] transpose(p), dimensions={0,2,1}\n ROOT a = f32[128,64] reduce(t, z), dimensions={0}, to_apply=f", 105},
  {"backwards", "p = f32[4096,512] parameter(0)\n z = f32[] constant(0)\n t = f32[512,4096] transpose(p), dimensions={1,0}\n u = f32[512,4096] reverse(t), dimensions={0,1}\n ROOT a = f32[512] reduce(u, z), dimensions={1}, to_apply=f", 105},
  {"beside more that is not turned", "p = f32[512,4096] parameter(0)\n o = f32[4096,512] parameter(1)\n u = f32[512,4096] parameter(2)\n z = f32[] constant(0)\n t = f32[512,4096] transpose(o), dimensions={1,0}\n v = f32[512,4096] multiply(p, u)\n w = f32[512,4096] multiply(v, t)\n ROOT a = f32[512] reduce(w, z), dimensions={1}, to_apply=f", 340},
};
// clang-format on

START_TEST(neighbours_are_read_together) {
  const read_row *r = &reads[_i];
  kl_sb text;
  kl_plan *p;
  kiln_module *m;
  kl_sb_init(&text, cx);
  put_fusion(&text, &(fusion_row){r->what, r->text});
  EXPECT(kiln_module_parse(cx, r->what, text.p, text.n, &m) == KILN_OK, "%s: %s", r->what, last_finding());
  const kl_plan_params params = {.target = targets[0], .name = "k"};
  EXPECT(kl_plan_make(cx, m, &m->comp[m->entry], &params, &arena, &p) == KILN_OK, "%s: %s", r->what, last_finding());
  kl_cost c = kl_plan_cost(p, KL_COST_THOROUGH);
  int64_t least = 0, sectors = c.load.asked.sectors + c.store.asked.sectors;
  for (uint32_t i = 0; i < p->nargs; i++) least += (p->slots[i].bytes + 31) / 32;
  const kl_requests *put = &c.shared_store.asked, *got = &c.shared_load.asked;
  EXPECT(100 * (put->wavefronts + got->wavefronts) <= 105 * (put->ideal_wavefronts + got->ideal_wavefronts),
         "%s: %lld wavefronts of stores, %lld of loads", r->what, (long long)put->wavefronts,
         (long long)got->wavefronts);
  EXPECT(100 * sectors <= r->most * least, "%s: %lld sectors, %lld would do", r->what, (long long)sectors,
         (long long)least);
  kl_plan_free(p);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
}
END_TEST

int main(void) {
  return RUN_TESTS("reductions", EACH(open_context, close_context), {reductions_have_their_order, KL_COUNT(shapes)},
                   {blocks_share_a_result, KL_COUNT(split_shapes)}, {reductions_meet_in_memory, KL_COUNT(fusions)},
                   {blocks_that_do_not_meet_are_noticed, 1}, {blocks_of_a_cluster_read_again, 1},
                   {columns_are_made_beside_rows, KL_COUNT(beside)}, {neighbours_are_read_together, KL_COUNT(reads)});
}
