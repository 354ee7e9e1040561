// Plans, without LLVM: index maps against each op's definition, plans executed element by element against a naive
// reading of the graph, and rows of what a plan must say or why it refuses.
#include "support/gen.h"
#include "support/share.h"
#include "support/suite.h"
#include "ir/index/layout/map.h"
#include "lower/analysis/reads/reads.h"
#include "lower/choose/choose.h"
#include "lower/plan/cost/cost.h"
#include "interpret/interpret.h"
#include "plans.h"

#include <stdio.h>
#include <time.h>

static kl_ctx *cx;
static kl_arena arena;
static const char *about = ""; // what is being planned, for messages

static void open_context(void) {
  cx = kiln_context_create(NULL);
  kl_arena_init(&arena, cx);
}
static void close_context(void) {
  kl_arena_free(&arena);
  kiln_context_destroy(&cx);
}
static void fresh_arena(void) {
  kl_arena_free(&arena);
  kl_arena_init(&arena, cx);
}

static const char *last_finding(void) {
  size_t n = kiln_diagnostics_count(cx);
  return n ? kiln_diagnostics_get(cx, n - 1)->message : "";
}

static kiln_module *parse(const char *text) {
  kiln_module *m = NULL;
  EXPECT(kiln_module_parse(cx, "test", text, strlen(text), &m) == KILN_OK, "%s\n%s", last_finding(), text);
  return m;
}

static const kl_target gpu = {.machine = KL_NVPTX, .sm = 90, .block = 128, .max_bytes = 16};
static const kl_target host = {.machine = KL_HOST, .block = 1, .max_bytes = 16, .host_lanes = 16};

// --- whole fusions -----------------------------------------------------------------------------------------------

static uint32_t cut_operands, cut_bytes; // 0: as always
static uint32_t times;                   // elements apart of a thread; 0: as always
static unsigned in_parts;                // plans so far that have several

// Of every argument: it may be written over.
static const bool *all_lent(const kl_comp *c) {
  size_t n = kl_shape_leaf_count(kl_root(c)->shape);
  for (uint32_t i = 0; i < c->nparams; i++) n += kl_shape_leaf_count(c->instr[c->params[i]].shape);
  bool *lent = KL_NEW_N(&arena, bool, n + 1);
  memset(lent, true, n);
  return lent;
}

static kiln_status plan(const kiln_module *m, const kl_target *target, uint32_t align, kl_plan **p) {
  kl_unit *units;
  uint32_t n;
  KL_TRY(kl_plan_units(cx, m, NULL, &arena, &units, &n));
  kl_plan_params params = {.target = *target, .name = "k", .align = align};
  params.lent = all_lent(units[0].comp);
  params.cut_operands = cut_operands;
  params.cut_bytes = cut_bytes;
  params.strategy.times = times;
  KL_TRY(kl_plan_make(cx, m, units[0].comp, &params, &arena, p));
  in_parts += (*p)->nparts > 1;
  return KILN_OK;
}

static void plan_and_run(const char *text, uint32_t align) {
  kiln_module *m = parse(text);
  kl_plan *p;
  leaves want = {0};
  for (int h = 0; h < 2; h++) {
    EXPECT(plan(m, h ? &host : &gpu, align, &p) == KILN_OK, "%s: %s\n%s", about, last_finding(), text);
    if (!h) want = evaluate_graph(&arena, m, p->comp, number_arguments(&arena, p->comp));
    const char *why = interpret(&arena, p, &want);
    EXPECT(!why, "%s: %s", about, why);
    kl_plan_free(p);
  }
  kiln_module_destroy(&m);
  fresh_arena();
}

START_TEST(random_fusions_take_the_right_elements) {
  for (uint64_t i = (uint64_t)_i, n = share_of(400); i < n; i += 10) {
    unsigned seed = (unsigned)i;
    gen_source src = {.seed = seed * 0x9e3779b97f4a7c15ull + 5};
    char name[32];
    snprintf(name, sizeof name, "seed %u", seed);
    about = name;
    kl_sb text;
    kl_sb_init(&text, cx);
    gen_fusion(&src, 3 + seed % 23, &text);
    times = seed % 3 == 1 ? 2 + seed % 5 : 0;
    plan_and_run(text.p, seed % 5 ? 16 : 8);
    times = 0;
    kl_sb_free(&text);
    about = "";
  }
}
END_TEST

// --- parts -------------------------------------------------------------------------------------------------------

// A concatenate of n operands x0 .. with `dims` but for dimension `dim`, whose extents go through `extents`.
typedef struct cut_row {
  const char *what, *type, *dims; // a %d stands for the extent of an operand, or of all
  int dim, n;
  int extents[3];
  const char *root;  // of c; %d: the extent of all
  uint32_t parts[2]; // on a GPU, on the host; 0: 1
} cut_row;

// clang-format off
static const cut_row cut_rows[] = {
  {"one dimension", "f32", "[%d]", 0, 12, {5, 40, 1}, "ROOT r = f32[%d] negate(c)", {5, 12}},
  {"few operands", "f32", "[%d]", 0, 8, {100, 100, 100}, "ROOT r = f32[%d] negate(c)", {1, 1}},
  {"few operands that lie anywhere", "f32", "[%d]", 0, 3, {3001, 4003, 5000}, "ROOT r = f32[%d] negate(c)", {5, 1}},
  {"few operands on sectors", "bf16", "[40,%d]", 1, 3, {128, 64, 256}, "ROOT r = bf16[40,%d] negate(c)", {3, 1}},
  {"few operands in odd rows", "f32", "[50,%d]", 1, 2, {65, 66, 1}, "ROOT r = f32[50,%d] negate(c)", {1, 1}},
  {"few rows, one of them short", "s8", "[%d,64]", 0, 4, {40, 2, 50}, "ROOT r = s8[%d,64] negate(c)", {4, 1}},
  {"few operands of four bits", "s4", "[%d,5]", 0, 2, {2001, 1003, 1}, "ROOT r = s4[%d,5] copy(c)", {3, 1}},
  {"rows of the slow dimension", "f16", "[%d,7]", 0, 9, {3, 1, 2}, "ROOT r = f16[%d,7] copy(c)", {2, 9}},
  {"columns", "f32", "[6,%d]", 1, 20, {1, 1, 1}, "ROOT r = f32[6,%d] copy(c)", {2, 20}},
  {"wide columns", "f32", "[6,%d]", 1, 10, {33, 32, 48}, "ROOT r = f32[6,%d] copy(c)", {10, 10}},
  {"the layout turns rows to columns", "f32", "[%d,7]", 0, 9, {3, 1, 2}, "ROOT r = f32[%d,7]{0,1} copy(c)", {1, 9}},
  {"the middle of three", "s8", "[3,%d,5]", 1, 9, {4, 9, 2}, "ROOT r = s8[3,%d,5] copy(c)", {2, 9}},
  {"behind a transpose", "f32", "[%d,4]", 0, 9, {16, 8, 1}, "ROOT r = f32[4,%d] transpose(c), dimensions={1,0}", {3, 9}},
  {"behind a reverse", "f32", "[%d]", 0, 9, {16, 31, 33}, "ROOT r = f32[%d] reverse(c), dimensions={0}", {6, 9}},
  {"behind a broadcast", "f32", "[%d]", 0, 9, {3, 1, 2}, "ROOT r = f32[%d,64] broadcast(c), dimensions={0}", {9, 9}},
  {"behind a reshape that keeps it", "f32", "[%d,6]", 0, 9, {3, 1, 2}, "ROOT r = f32[%d,6] reshape(c)", {3, 9}},
  {"without elements in some", "f32", "[%d]", 0, 12, {0, 40, 0}, "ROOT r = f32[%d] negate(c)", {1, 1}},
  {"four bits, whole bytes", "s4", "[%d,6]", 0, 9, {3, 1, 2}, "ROOT r = s4[%d,6] copy(c)", {1, 9}},
  {"four bits, half bytes", "s4", "[%d,5]", 0, 9, {3, 1, 2}, "ROOT r = s4[%d,5] copy(c)", {1, 1}},
  {"two bits, half bytes", "u2", "[%d,6]", 0, 9, {3, 1, 2}, "ROOT r = u2[%d,6] copy(c)", {1, 1}},
  {"two results", "f32", "[%d]", 0, 9, {40, 33, 50}, "n = f32[%d] negate(c)\n  ROOT t = (f32[%d], f32[%d]) tuple(n, c)", {9, 9}},
  {"results of different shapes", "f32", "[%d,2]", 0, 9, {40, 33, 50}, "n = f32[2,%d] reshape(c)\n  ROOT t = (f32[2,%d], f32[%d,2]) tuple(n, c)", {1, 1}},
};
// clang-format on

static void put_with(kl_sb *b, const char *text, int n) {
  for (; *text; text++) {
    if (text[0] == '%' && text[1] == 'd') {
      kl_sbf(b, "%d", n);
      text++;
    } else {
      kl_sb_putc(b, *text);
    }
  }
}

static void put_cut_row(kl_sb *b, const cut_row *r) {
  int all = 0;
  kl_sb_puts(b, "HloModule m\nENTRY e {\n");
  for (int i = 0; i < r->n; i++) {
    kl_sbf(b, "  x%d = %s", i, r->type);
    put_with(b, r->dims, r->extents[i % 3]);
    kl_sbf(b, " parameter(%d)\n", i);
    all += r->extents[i % 3];
  }
  kl_sbf(b, "  c = %s", r->type);
  put_with(b, r->dims, all);
  for (int i = 0; i < r->n; i++) kl_sbf(b, i ? ", x%d" : " concatenate(x%d", i);
  kl_sbf(b, "), dimensions={%d}\n  ", r->dim);
  put_with(b, r->root, all);
  kl_sb_puts(b, "\n}\n");
}

START_TEST(concatenates_cut_the_domain) {
  const cut_row *r = &cut_rows[_i];
  kl_sb b;
  kl_sb_init(&b, cx);
  put_cut_row(&b, r);
  kiln_module *m = parse(b.p);
  for (int h = 0; h < 2; h++) {
    kl_plan *p;
    EXPECT(plan(m, h ? &host : &gpu, 0, &p) == KILN_OK, "%s: %s", r->what, last_finding());
    EXPECT(p->nparts == r->parts[h], "%s: %u parts", r->what, p->nparts);
    kl_plan_free(p);
  }
  kiln_module_destroy(&m);
  about = r->what;
  plan_and_run(b.p, 0);
  cut_bytes = 12;
  plan_and_run(b.p, 0);
  cut_bytes = 0;
  kl_sb_free(&b);
}
END_TEST

// Every concatenate cuts, wherever it can.
START_TEST(random_fusions_in_parts) {
  unsigned before = in_parts;
  cut_operands = 2;
  uint64_t tried = share_of(250);
  for (uint64_t i = (uint64_t)_i; i < tried; i += 5) {
    unsigned seed = (unsigned)i;
    gen_source src = {.seed = seed * 0x9e3779b97f4a7c15ull + 77};
    char name[32];
    snprintf(name, sizeof name, "seed %u", seed);
    about = name;
    cut_bytes = 1 + seed % 3 * 16;
    kl_sb text;
    kl_sb_init(&text, cx);
    gen_fusion(&src, 3 + seed % 23, &text);
    plan_and_run(text.p, 16);
    kl_sb_free(&text);
    about = "";
  }
  cut_operands = cut_bytes = 0;
  EXPECT(in_parts - before >= tried / 250, "%u plans in parts", in_parts - before);
}
END_TEST

static int64_t steps_of(const kl_plan *p) {
  int64_t n = 0;
  for (uint32_t i = 0; i < p->nparts; i++) n += p->parts[i].main.nsteps + p->parts[i].tail.nsteps;
  return n;
}

// What is planned grows with what is asked for: steps, and expressions met on the way.
START_TEST(plans_of_concatenates_grow_linearly) {
  for (int h = 0; h < 2; h++) {
    for (int n = 250; n <= 4000; n *= 4) {
      const cut_row r = {"", "f32", "[%d]", 0, n, {8, 12, 9}, "ROOT r = f32[%d] negate(c)", {0}};
      kl_sb b;
      kl_plan *p;
      kl_sb_init(&b, cx);
      put_cut_row(&b, &r);
      kiln_module *m = parse(b.p);
      EXPECT(plan(m, h ? &host : &gpu, 0, &p) == KILN_OK, "%s", last_finding());
      for (uint32_t i = 0; i < p->nparts; i++) // nor does an element pay for the operands it is not in
        EXPECT(p->parts[i].main.nsteps <= 20 && p->parts[i].tail.nsteps <= 20, "part %u of %d operands", i, n);
      EXPECT(steps_of(p) <= 4 * n, "%lld steps for %d operands", (long long)steps_of(p), n);
      uint32_t made = kl_affs_count(p->affs);
      EXPECT(made <= 40u * (uint32_t)n, "%u expressions for %d operands", made, n);
      kl_plan_free(p);
      kiln_module_destroy(&m);
      kl_sb_free(&b);
      fresh_arena();
    }
  }
}
END_TEST

// Of many pairs of slots, every other one reversed: which may be one memory is told by one walk over the steps.
START_TEST(pairs_of_slots_are_judged_at_once) {
  enum { N = 8000 };
  kl_sb b;
  kl_plan *p;
  uint32_t *result = malloc(sizeof *result * 2 * N);
  bool *shared = malloc(2 * N);
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nENTRY e {\n");
  for (int i = 0; i < N; i++)
    kl_sbf(&b, "  p%d = f32[64] parameter(%d)\n  x%d = f32[64] %s(p%d)%s\n", i, i, i, i % 2 ? "reverse" : "negate", i,
           i % 2 ? ", dimensions={0}" : "");
  kl_sb_puts(&b, "  ROOT t = (f32[64]");
  for (int i = 1; i < N; i++) kl_sb_puts(&b, ", f32[64]");
  kl_sb_puts(&b, ") tuple(x0");
  for (int i = 1; i < N; i++) kl_sbf(&b, ", x%d", i);
  kl_sb_puts(&b, ")\n}\n");
  kiln_module *m = parse(b.p);
  EXPECT(plan(m, &host, 0, &p) == KILN_OK && p->nslots == 2 * N, "%s", last_finding());
  for (uint32_t i = 0; i < 2 * N; i++) result[i] = i < N && i % 8 < 6 ? N + i : KL_NONE;
  clock_t start = clock();
  kl_plan_alias(p, result, shared);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  for (uint32_t i = 0; i < 2 * N; i++) {
    bool may = i % N % 8 < 6 && i % 2 == 0;
    EXPECT(shared[i] == (may && i < N), "slot %u shared: %d", i, shared[i]);
    EXPECT(p->slots[i].alias == (may ? (i + N) % (2 * N) : KL_NONE), "slot %u with %u", i, p->slots[i].alias);
  }
  printf("# %d pairs: %.4f s\n", N, seconds);
  EXPECT(seconds < 0.05, "%d pairs took %.3f s", N, seconds);
  kl_plan_free(p);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
  free(result), free(shared);
}
END_TEST

// --- index maps --------------------------------------------------------------------------------------------------

// One op on parameters p0, p1 ...: shapes of the parameters, then the op. With layouts for bitcast.
static const char *const index_ops[][4] = {
    {"r = f32[3,4] negate(p0)", "f32[3,4]"},
    {"r = f32[3,4] add(p0, p1)", "f32[3,4]", "f32[3,4]{0,1}"},
    {"r = f32[3,4] select(p0, p1, p2)", "pred[3,4]", "f32[3,4]", "f32[3,4]"},
    {"r = f32[3,4] select(p0, p1, p2)", "pred[]", "f32[3,4]", "f32[3,4]"},
    {"r = f32[3,4] clamp(p0, p1, p2)", "f32[]", "f32[3,4]", "f32[]"},
    {"r = s8[3,4] convert(p0)", "f32[3,4]"},
    {"r = f32[] negate(p0)", "f32[]"},
    {"r = f32[3,4] broadcast(p0), dimensions={}", "f32[]"},
    {"r = f32[3,4] broadcast(p0), dimensions={0}", "f32[3]"},
    {"r = f32[3,4] broadcast(p0), dimensions={1}", "f32[4]"},
    {"r = f32[2,3,4,5] broadcast(p0), dimensions={1,3}", "f32[3,5]"},
    {"r = f32[4,3] broadcast(p0), dimensions={1,0}", "f32[3,4]"},
    {"r = f32[3,1] broadcast(p0), dimensions={1}", "f32[1]"},
    {"r = f32[6,4] reshape(p0)", "f32[2,3,4]"},
    {"r = f32[2,3,4] reshape(p0)", "f32[6,4]"},
    {"r = f32[2,3,4] reshape(p0)", "f32[4,6]{0,1}"},
    {"r = f32[24] reshape(p0)", "f32[4,1,6]"},
    {"r = f32[1,4,1,6,1] reshape(p0)", "f32[3,8]"},
    {"r = f32[] reshape(p0)", "f32[1,1]"},
    {"r = f32[1] reshape(p0)", "f32[]"},
    {"r = f32[5,7] reshape(p0)", "f32[7,5]"},
    {"r = f32[3,5,4] transpose(p0), dimensions={1,2,0}", "f32[4,3,5]"},
    {"r = f32[5,3,4] transpose(p0), dimensions={2,1,0}", "f32[4,3,5]"},
    {"r = f32[3,4,2,5] transpose(p0), dimensions={1,3,0,2}", "f32[2,3,5,4]"},
    {"r = f32[4,3]{1,0} bitcast(p0)", "f32[3,4]{0,1}"},
    {"r = f32[4,3]{0,1} bitcast(p0)", "f32[3,4]{0,1}"},
    {"r = f32[2,2,3]{0,2,1} bitcast(p0)", "f32[3,4]{0,1}"},
    {"r = s32[12] bitcast(p0)", "f32[2,3,2]{1,2,0}"},
    {"r = f32[6,2]{0,1} bitcast(p0)", "f32[2,3,2]{2,0,1}"},
    {"r = f32[2,3] slice(p0), slice={[1:3], [0:3]}", "f32[4,3]"},
    {"r = f32[3,2] slice(p0), slice={[1:9:3], [2:5:2]}", "f32[9,5]"},
    {"r = f32[1] slice(p0), slice={[6:7:5]}", "f32[7]"},
    {"r = f32[3] slice(p0), slice={[0:7:3]}", "f32[7]"},
    {"r = f32[3,4] reverse(p0), dimensions={0}", "f32[3,4]"},
    {"r = f32[3,4] reverse(p0), dimensions={1,0}", "f32[3,4]"},
    {"r = f32[3,4] reverse(p0), dimensions={}", "f32[3,4]"},
    {"r = f32[9,2] concatenate(p0, p1, p2), dimensions={0}", "f32[4,2]", "f32[2,2]", "f32[3,2]"},
    {"r = f32[2,6] concatenate(p0, p1, p2), dimensions={1}", "f32[2,1]", "f32[2,4]", "f32[2,1]"},
    {"r = f32[4,2] concatenate(p0), dimensions={0}", "f32[4,2]"},
    {"r = f32[7,5] pad(p0, p1), padding=1_2x0_1", "f32[4,4]", "f32[]"},
    {"r = f32[7,10] pad(p0, p1), padding=0_0_1x1_2_1", "f32[4,4]", "f32[]"},
    {"r = f32[12] pad(p0, p1), padding=-2_1_3", "f32[4]", "f32[]"},
    {"r = f32[2] pad(p0, p1), padding=-1_-1", "f32[4]", "f32[]"},
    {"r = f32[4] pad(p0, p1), padding=-2_-1_1", "f32[4]", "f32[]"},
    {"r = f32[5] pad(p0, p1), padding=7_-12_2", "f32[4]", "f32[]"},
    {"r = f32[4,4] pad(p0, p1), padding=0_0x0_0", "f32[4,4]", "f32[]"},
    {"r = f32[3,4] copy(p0)", "f32[3,4]{0,1}"},
};

static char *module_of(const char *const *params, unsigned n, const char *body) {
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nENTRY e {\n");
  for (unsigned i = 0; i < n && params[i]; i++) kl_sbf(&b, "  p%u = %s parameter(%u)\n", i, params[i], i);
  kl_sbf(&b, "  ROOT %s\n}\n", body);
  char *text = kl_strf(&arena, "%s", b.p);
  kl_sb_free(&b);
  return text;
}

// The fingerprint of the operand that is needed at a point; false if a constraint fails.
static bool needed(kl_affs *pool, const kl_comp *c, const kl_instr *in, const kl_need *need, const int64_t *at,
                   const leaves *args, uint64_t *x) {
  const kl_shape *os = kl_operand(c, in, need->operand)->shape;
  const kl_point point = {.at = {at}};
  EXPECT(need->nindex == os->rank && need->known && need->exact, "%s: rank %u", about, need->nindex);
  bool ok = true;
  for (uint32_t i = 0; i < need->nconstraints; i++) {
    const kl_constraint *k = &need->constraints[i];
    int64_t v = 0;
    EXPECT(kl_aff_eval(pool, k->e, &point, &v), "%s: a constraint without value", about);
    ok = ok && v >= k->in.lo && v <= k->in.hi;
  }
  int64_t index[KILN_MAX_RANK];
  for (uint32_t d = 0; d < need->nindex; d++) {
    EXPECT(kl_aff_eval(pool, need->index[d], &point, &index[d]), "%s: an index without value", about);
    EXPECT(!ok || (index[d] >= 0 && index[d] < os->dims[d]), "%s: dim %u of operand %u at %lld", about, d,
           need->operand, (ll)index[d]);
  }
  if (ok) *x = args[need->operand].v[0][at_index(os, index)];
  return ok;
}

START_TEST(index_maps_follow_the_definition) {
  about = index_ops[_i][0];
  kiln_module *m = parse(module_of(&index_ops[_i][1], 3, about));
  const kl_comp *c = &m->comp[m->entry];
  const kl_instr *in = kl_root(c);
  leaves *args = number_arguments(&arena, c), want = evaluate_graph(&arena, m, c, args);
  kl_affs *pool = kl_affs_create(cx, &arena);
  const kl_aff *out[KILN_MAX_RANK];
  for (uint32_t d = 0; d < in->shape->rank; d++) out[d] = kl_aff_dim(pool, d);
  kl_reader reader = {pool, m, &(kl_frame){.comp = c}, 0, NULL};
  kl_needs needs = kl_needs_of(&reader, c->root, 0, out);
  for (int64_t n = 0; n < in->shape->count; n++) {
    int64_t at[KILN_MAX_RANK];
    uint64_t x[3] = {0}, got;
    unsigned nx = 0;
    index_at(in->shape, n, at);
    bool choice = in->op == KL_OP_PAD || in->op == KL_OP_CONCATENATE;
    for (uint32_t i = 0, last = KL_NONE; i < needs.n; i++) {
      bool ok = needed(pool, c, in, &needs.p[i], at, args, &x[nx]);
      if (ok && last == needs.p[i].operand) continue; // for one more reason
      if (ok) last = needs.p[i].operand;
      EXPECT(ok || choice, "%s: a condition on operand %u", about, needs.p[i].operand);
      EXPECT(!ok || !choice || nx == 0, "%s: two operands at %lld", about, (ll)n);
      nx += ok;
    }
    EXPECT(nx, "%s: no operand at %lld", about, (ll)n);
    bool moves = choice || in->op == KL_OP_COPY || !kl_op_is_elementwise(in->op);
    got = moves && in->shape->dtype == kl_operand(c, in, 0)->shape->dtype
              ? x[0]
              : of_instr(in, kl_operand(c, in, 0)->shape->dtype, nx, x);
    EXPECT(got == want.v[0][n], "%s: element %lld", about, (ll)n);
  }
  kl_affs_destroy(&pool);
  kiln_module_destroy(&m);
  about = "";
}
END_TEST

// --- fusions by hand ---------------------------------------------------------------------------------------------

START_TEST(fusions_by_hand) {
  char name[32];
  snprintf(name, sizeof name, "fusion %d", _i);
  about = name;
  plan_and_run(by_hand[_i], 16);
  about = "";
}
END_TEST

// --- rows --------------------------------------------------------------------------------------------------------

// A row's text is a whole module, or shapes of parameters up to a bar and the root.
static char *row_text(const char *text) {
  const char *params[8] = {NULL}, *bar = strchr(text, '|');
  unsigned n = 0;
  if (!bar) return kl_strf(&arena, "%s", text);
  char *list = kl_strf(&arena, "%.*s", (int)(bar - text), text);
  for (char *p = strtok(list, ";"); p && *p != ' '; p = strtok(NULL, ";")) params[n++] = p;
  return module_of(params, n, bar + 2);
}

static void forget_instructions(kl_body *b) {
  kl_step *steps = kl_arena_dup(&arena, b->steps, b->nsteps * sizeof *steps);
  for (uint32_t i = 0; i < b->nsteps; i++) steps[i].instr = NULL;
  b->steps = steps;
}

// Takes the names at the ends of lines away.
static void drop_names(char *text) {
  for (char *name; (name = strstr(text, "  ; "));) {
    char *end = name + strcspn(name, "\n");
    memmove(name, end, strlen(end) + 1);
  }
}

// Instructions give names to lines and nothing else. `text` is the plan's.
static void check_names(kl_plan *p, char *text) {
  for (uint32_t i = 0; i < p->nparts; i++) {
    forget_instructions(&p->parts[i].main);
    forget_instructions(&p->parts[i].tail);
  }
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_plan_print(&b, p);
  drop_names(text);
  EXPECT(strcmp(b.p, text) == 0, "%s\nexpected\n%s\nfound\n%s", about, text, b.p);
  kl_sb_free(&b);
}

START_TEST(plan_rows) {
  about = plan_row[_i].text;
  kiln_module *m = parse(row_text(about));
  kl_plan *p;
  kl_target t = plan_row[_i].machine == 'h' ? host : gpu;
  EXPECT(plan(m, &t, plan_row[_i].align, &p) == KILN_OK, "%s: %s", about, last_finding());
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_plan_print(&b, p);
  for (size_t i = 0; i < KL_COUNT(plan_row[_i].says) && plan_row[_i].says[i]; i++) {
    const char *says = plan_row[_i].says[i];
    EXPECT(*says == '!' ? !strstr(b.p, says + 1) : strstr(b.p, says) != NULL, "%s\nexpected '%s'\n%s", about, says,
           b.p);
  }
  check_names(p, b.p);
  const char *why = p->count ? interpret_some(&arena, p, NULL) : NULL;
  EXPECT(!why, "%s: %s", about, why);
  kl_sb_free(&b);
  kl_plan_free(p);
  kiln_module_destroy(&m);
  about = "";
}
END_TEST

START_TEST(refusals) {
  kiln_module *m = parse(row_text(refused_row[_i].text));
  for (int h = 0; h < (refused_row[_i].machine == '*' ? 2 : 1); h++) {
    kl_plan *p;
    kiln_diagnostics_clear(cx);
    kiln_status s = plan(m, h ? &host : &gpu, refused_row[_i].align, &p);
    EXPECT(s == refused_row[_i].status, "%s: status %d: %s", refused_row[_i].text, s, last_finding());
    EXPECT(strstr(last_finding(), refused_row[_i].why), "%s: %s", refused_row[_i].text, last_finding());
  }
  kiln_module_destroy(&m);
}
END_TEST

// --- what is too much --------------------------------------------------------------------------------------------

// Terms of an expression and of everything under its floors.
static uint32_t terms_of(const kl_aff *e) {
  uint32_t n = e->n;
  for (uint32_t i = 0; i < e->n; i++) {
    for (uint32_t k = 0; k < e->terms[i].atom->n; k++) n += terms_of(e->terms[i].atom->arg[k]);
  }
  return n;
}

static void count_terms(const kl_aff *e, uint32_t *most) {
  uint32_t n = terms_of(e);
  EXPECT(e->size == n, "an expression of %u terms counts %u", n, (uint32_t)e->size);
  if (n > *most) *most = n;
}

static void count_in_access(const kl_access *a, uint32_t *most) {
  for (uint32_t i = 0; i < a->nchunks; i++) count_terms(a->base[i], most);
}

static uint32_t largest_index(const kl_plan *p) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < 2 * p->nparts; i++) {
    const kl_body *b = i % 2 ? &p->parts[i / 2].tail : &p->parts[i / 2].main;
    for (uint32_t k = 0; k < b->nsteps; k++) {
      if (b->steps[k].kind == KL_STEP_LOAD) count_in_access(&b->steps[k].access, &most);
      if (b->steps[k].expr) count_terms(b->steps[k].expr, &most);
    }
    for (uint32_t k = 0; k < b->nguards; k++) count_terms(b->guards[k].expr, &most);
    for (uint32_t k = 0; k < b->nstores; k++) count_in_access(&b->stores[k].access, &most);
  }
  return most;
}

// Plans a text that the function writes for a size; "" if it is planned, else the reason. Either must be quick.
static const char *reason(const kl_target *t, void (*write)(kl_sb *, int), int size, uint32_t *largest) {
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nENTRY e {\n");
  write(&b, size);
  kl_sb_puts(&b, "}\n");
  kiln_module *m = parse(b.p);
  kl_plan *p;
  kiln_diagnostics_clear(cx);
  clock_t start = clock();
  kiln_status s = plan(m, t, 0, &p);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  EXPECT(seconds < 5, "size %d took %.1f s", size, seconds);
  EXPECT(s == KILN_OK || s == KILN_E_UNSUPPORTED, "status %d", s);
  *largest = s == KILN_OK ? largest_index(p) : 0;
  if (s == KILN_OK) kl_plan_free(p);
  const char *why = s == KILN_OK ? "" : kl_strf(&arena, "%s", last_finding());
  kiln_module_destroy(&m);
  kl_sb_free(&b);
  return why;
}

static void many_ops(kl_sb *b, int n) {
  kl_sb_puts(b, "  x0 = f32[64] parameter(0)\n");
  for (int i = 1; i <= n; i++) kl_sbf(b, "  %sx%d = f32[64] negate(x%d)\n", i == n ? "ROOT " : "", i, i - 1);
}

// Level i needs i different elements of the level below it.
static void many_elements(kl_sb *b, int n) {
  kl_sbf(b, "  x0 = f32[%d] parameter(0)\n", 64 + n);
  for (int i = 1; i <= n; i++) {
    int size = 64 + n - i;
    kl_sbf(b, "  a%d = f32[%d] slice(x%d), slice={[0:%d]}\n", i, size, i - 1, size);
    kl_sbf(b, "  b%d = f32[%d] slice(x%d), slice={[1:%d]}\n", i, size, i - 1, size + 1);
    kl_sbf(b, "  %sx%d = f32[%d] add(a%d, b%d)\n", i == n ? "ROOT " : "", i, size, i, i);
  }
}

// Floors in floors: the index doubles with every level.
static void odd_reshapes(kl_sb *b, int n) {
  kl_sb_puts(b, "  x0 = f32[5,7] parameter(0)\n");
  for (int i = 1; i <= n; i++) {
    kl_sbf(b, "  r%d = f32[7,5] reshape(x%d)\n", i, i - 1);
    kl_sbf(b, "  %sx%d = f32[5,7] transpose(r%d), dimensions={1,0}\n", i == n ? "ROOT " : "", i, i);
  }
}

// The same, needed at two places of every level: twice as many indices, too, where each is twice as long.
static void odd_reshapes_twice(kl_sb *b, int n) {
  kl_sb_puts(b, "  x0 = f32[33,65,129] parameter(0)\n");
  for (int i = 1; i <= n; i++) {
    kl_sbf(b, "  r%d = f32[129,65,33] reshape(x%d)\n", i, i - 1);
    kl_sbf(b, "  t%d = f32[33,65,129] transpose(r%d), dimensions={2,1,0}\n", i, i);
    kl_sbf(b, "  v%d = f32[33,65,129] reverse(x%d), dimensions={0}\n", i, i - 1);
    kl_sbf(b, "  %sx%d = f32[33,65,129] add(t%d, v%d)\n", i == n ? "ROOT " : "", i, i, i);
  }
}

static void large_constant(kl_sb *b, int n) {
  kl_sbf(b, "  ROOT c = s64[%d] constant({1", n);
  for (int i = 1; i < n; i++) kl_sb_puts(b, ",0");
  kl_sb_puts(b, "})\n");
}

static void equal_constant(kl_sb *b, int n) {
  kl_sbf(b, "  ROOT c = s64[%d] constant({0", n);
  for (int i = 1; i < n; i++) kl_sb_puts(b, ",0");
  kl_sb_puts(b, "})\n");
}

static void many_parameters(kl_sb *b, int n) {
  kl_sb_puts(b, "  p0 = f32[] parameter(0)\n");
  for (int i = 1; i < n; i++) kl_sbf(b, "  p%d = f32[] parameter(%d)\n", i, i);
  kl_sb_puts(b, "  ROOT r = f32[] negate(p0)\n");
}

// Bounds of what may be planned, 0: another row's; `size` is the longest index in the plan of what just fits, 0 if that
// is not the point.
static const struct {
  void (*write)(kl_sb *, int);
  int fits, does_not;
  const char *why;
  uint32_t size;
} bound[] = {
    {many_ops, 65000, 65536, "more than 65536 operations per element"},
    {many_elements, 100, 400, "more than 65536 operations per element"},
    {odd_reshapes, 9, 11, "an index of this fusion is too complex: too many reshapes of odd sizes in a row", 441},
    {odd_reshapes, 0, 500, "an index of this fusion is too complex: too many reshapes of odd sizes in a row", 0},
    {odd_reshapes_twice, 5, 14, "an index of this fusion is too complex: too many reshapes of odd sizes in a row", 323},
    {odd_reshapes_twice, 0, 500, "an index of this fusion is too complex: too many reshapes of odd sizes in a row", 0},
    {large_constant, 131073, 0, ""},
    {equal_constant, 131073, 0, ""},
    {many_parameters, 4094, 4096, "4097 parameters and results"},
};

START_TEST(bounds) {
  for (int h = 0; h < 2; h++) {
    const kl_target *t = h ? &host : &gpu;
    uint32_t largest;
    const char *why = bound[_i].fits ? reason(t, bound[_i].write, bound[_i].fits, &largest) : "";
    EXPECT(*why == 0, "%s", why);
    EXPECT(!bound[_i].fits || largest >= bound[_i].size, "the longest index has %u terms", largest);
    if (!bound[_i].does_not || (h && bound[_i].write == many_parameters)) continue;
    why = reason(t, bound[_i].write, bound[_i].does_not, &largest);
    EXPECT(strstr(why, bound[_i].why), "'%s'", why);
    fresh_arena();
  }
}
END_TEST

// Lanes halve where lanes times instructions exceed 8192, down to two.
START_TEST(long_bodies_get_fewer_lanes) {
  static const struct {
    int ops;
    uint32_t lanes;
  } row[] = {{511, 16}, {512, 8}, {1023, 8}, {1024, 4}, {2048, 2}, {10000, 2}};
  for (size_t i = 0; i < KL_COUNT(row); i++) {
    kl_sb b;
    kl_plan *p;
    kl_sb_init(&b, cx);
    kl_sb_puts(&b, "HloModule m\nENTRY e {\n");
    many_ops(&b, row[i].ops);
    kl_sb_puts(&b, "}\n");
    kiln_module *m = parse(b.p);
    EXPECT(plan(m, &host, 0, &p) == KILN_OK, "%s", last_finding());
    EXPECT(p->parts->main.lanes == row[i].lanes, "%d operations on %u lanes", row[i].ops, p->parts->main.lanes);
    kl_plan_free(p);
    kiln_module_destroy(&m);
    kl_sb_free(&b);
  }
}
END_TEST

// --- units and names ---------------------------------------------------------------------------------------------

static const char two_fusions[] = "HloModule m\nf {\n  p = f32[4] parameter(0)\n  ROOT x = f32[4] negate(p)\n}\n"
                                  "g {\n  p = f32[4] parameter(0)\n  ROOT x = f32[4] frobnicate(p)\n}\n"
                                  "ENTRY e {\n  p = f32[4] parameter(0)\n  a = f32[4] fusion(p), kind=kLoop, calls=f\n"
                                  "  b = f32[4] fusion(a), kind=kLoop, calls=g\n  t = (f32[4], f32[4]) tuple(a, b)\n"
                                  "  ROOT r = f32[4] get-tuple-element(t), index=1\n}\n";

// Known cases of coalesced operands, by what is counted: T where more than nine tenths of the sectors that a slot's
// requests touch would be needed for the same bytes anyway. Beside it what XLA's analysis says of operands, of these
// plans: it knows nothing of where sectors begin.
static const struct {
  const char *text;
  const char *slots; // parameters, then results
  const char *xla;   // parameters
} coalesced[] = {
    {"a = f32[100,200] parameter(0) b = f32[100,200] parameter(1) ROOT r = f32[100,200] add(a, b)", "TTT", "TT"},
    {"a = f32[100,200] parameter(0) b = f32[100,200]{0,1} parameter(1) ROOT r = f32[100,200]{1,0} add(a, b)", "TTT",
     "TT"},
    {"a = f32[100,200]{1,0} parameter(0) b = f32[100,200]{1,0} parameter(1) ROOT r = f32[100,200]{0,1} add(a, b)",
     "TTT", "TT"},
    {"a = f32[100,200]{0,1} parameter(0) b = f32[100,200]{1,0} parameter(1) ROOT r = f32[100,200]{0,1} add(a, b)",
     "TTT", "TT"},
    {"a = f32[100,200] parameter(0) b = f32[100,200] parameter(1) c = f32[100,200] parameter(2) "
     "ROOT r = f32[100,600] concatenate(a, b, c), dimensions={1}",
     "TTTT", "TTT"},
    {"a = f32[8,16,64] parameter(0) ROOT r = f32[16,8,64] transpose(a), dimensions={1,0,2}", "TT", "T"},
    {"a = f32[20,20] parameter(0) b = f32[20,20] add(a, a) ROOT r = f32[20,20] transpose(b), dimensions={1,0}", "FT",
     "F"},
    {"a = f32[] parameter(0) b = f32[20,20] broadcast(a), dimensions={} ROOT r = f32[20,20] transpose(b), "
     "dimensions={1,0}",
     "TT", "T"},
    {"a = f32[5000] parameter(0) ROOT r = f32[5000] reverse(a), dimensions={0}", "TT", "T"},
    // rows of 436 begin on sectors no more than those of 512 do, but four elements of a thread lie together
    {"a = f32[997,436] parameter(0) z = f32[] parameter(1) ROOT r = f32[1024,512] pad(a, z), padding=10_17x24_52",
     "TTT", "TT"},
};

START_TEST(coalesced_as_known) {
  kl_plan *p;
  char found[8] = "", xla[8] = "";
  kiln_module *m = parse(kl_strf(&arena, "HloModule m\nENTRY e { %s }\n", coalesced[_i].text));
  EXPECT(plan(m, &gpu, 0, &p) == KILN_OK, "%s", last_finding());
  kl_cost cost = kl_plan_cost(p, KL_COST_THOROUGH);
  for (uint32_t i = 0; i < p->nargs; i++) {
    const kl_slot_cost *s = &cost.slots[i];
    const kl_requests *t = s->load.asked.requests ? &s->load.asked : &s->store.asked;
    EXPECT(kl_is_exact(s) && t->requests && t->least <= t->sectors, "slot %u of %s", i, coalesced[_i].text);
    found[i] = 10 * t->least > 9 * t->sectors ? 'T' : 'F';
    if (s->load.asked.requests) xla[strlen(xla)] = s->coalesced_for_xla ? 'T' : 'F';
  }
  EXPECT(strcmp(found, coalesced[_i].slots) == 0, "%s: %s, expected %s", coalesced[_i].text, found,
         coalesced[_i].slots);
  EXPECT(strcmp(xla, coalesced[_i].xla) == 0, "%s: for XLA %s, expected %s", coalesced[_i].text, xla,
         coalesced[_i].xla);
  kl_plan_free(p);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(units) {
  kiln_module *m = parse(two_fusions), *plain = parse("HloModule m\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n");
  kl_unit *u;
  uint32_t n;
  EXPECT(kl_plan_units(cx, m, NULL, &arena, &u, &n) == KILN_OK && n == 2, "%s", last_finding());
  EXPECT(kl_str_is(kl_symbol_text(&m->names, u[0].from->name), "a") && u[0].comp == &m->comp[u[0].from->called[0]],
         "first");
  EXPECT(kl_str_is(kl_symbol_text(&m->names, u[1].from->name), "b") && u[1].comp == &m->comp[u[1].from->called[0]],
         "second");
  EXPECT(kl_plan_units(cx, m, "b", &arena, &u, &n) == KILN_OK && n == 1 && u[0].comp == &m->comp[u[0].from->called[0]],
         "one");
  EXPECT(kl_str_is(kl_symbol_text(&m->names, u[0].from->name), "b"), "the one named");
  EXPECT(kl_plan_units(cx, m, "t", &arena, &u, &n) == KILN_E_INVALID, "not a fusion");
  EXPECT(strcmp(last_finding(), "no fusion named 't' in ENTRY") == 0, "%s", last_finding());
  EXPECT(kl_plan_units(cx, plain, NULL, &arena, &u, &n) == KILN_OK && n == 1, "ENTRY itself");
  EXPECT(u[0].comp == &plain->comp[plain->entry] && !u[0].from, "ENTRY itself");
  EXPECT(kl_plan_units(cx, plain, "p", &arena, &u, &n) == KILN_E_INVALID, "no fusion");
  EXPECT(strcmp(last_finding(), "no fusion named 'p': ENTRY calls no fusion") == 0, "%s", last_finding());
  kiln_module_destroy(&m);
  kiln_module_destroy(&plain);
}
END_TEST

START_TEST(kernel_names) {
  static const char *const row[][2] = {
      {"fusion", "fusion"},
      {"loop_fusion.1", "loop_fusion_1"},
      {"a-b%c$\xc3\xa9", "a_b_c___"},
      {"1x", "kiln_1x"},
      {"", "kiln_"},
      {"_x", "_x"},
      {"_", "kiln__"},
      {"WARP_SZ", "kiln_WARP_SZ"},
  };
  kiln_module *m = parse("HloModule m\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n");
  for (size_t i = 0; i < KL_COUNT(row); i++) {
    kl_plan_params params = {.target = gpu, .name = row[i][0]};
    kl_plan *p;
    EXPECT(kl_plan_make(cx, m, &m->comp[m->entry], &params, &arena, &p) == KILN_OK, "%s", last_finding());
    EXPECT(strcmp(p->name, row[i][1]) == 0, "'%s' becomes '%s'", row[i][0], p->name);
    kl_plan_free(p);
  }
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("plan", EACH(open_context, close_context), {random_fusions_take_the_right_elements, 10},
                   {random_fusions_in_parts, 5}, {concatenates_cut_the_domain, KL_COUNT(cut_rows)},
                   {plans_of_concatenates_grow_linearly}, {pairs_of_slots_are_judged_at_once},
                   {index_maps_follow_the_definition, KL_COUNT(index_ops)}, {fusions_by_hand, KL_COUNT(by_hand)},
                   {plan_rows, KL_COUNT(plan_row)}, {refusals, KL_COUNT(refused_row)}, {bounds, KL_COUNT(bound)},
                   {coalesced_as_known, KL_COUNT(coalesced)}, {long_bodies_get_fewer_lanes}, {units}, {kernel_names});
}
