// Plans for any number of rows, executed on fingerprints for some; and broken in what they say of rows.
#include "interpret/interpret.h"
#include "lower/choose/choose.h"
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

// Of 4 rows in the text. `f` adds.
typedef struct row {
  const char *what, *text;
  kl_strategy strategy;
} row;

// clang-format off
static const row rows[] = {
  {"elementwise", "p = f32[4,37] parameter(0)\n q = f32[37] parameter(1)\n b = f32[4,37] broadcast(q), dimensions={1}\n ROOT r = f32[4,37] add(p, b)", {0}},
  {"several widths", "p = s8[4,24] parameter(0)\n q = f32[4,24] convert(p)\n r = bf16[4,24] convert(p)\n ROOT t = (f32[4,24], bf16[4,24]) tuple(q, r)", {0}},
  {"sums", "p = f32[4,40] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=f", {0}},
  {"sums of long rows", "p = f32[4,1500] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=f", {0}},
  {"the last of several blocks", "p = f32[4,3000] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=f", {.split = 4}},
  {"a launch joins several blocks", "p = f32[4,3000] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=f", {.split = 4, .two_launches = true}},
  {"a cluster", "p = f32[4,3000] parameter(0)\n z = f32[] parameter(1)\n s = f32[4] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[4,3000] broadcast(s), dimensions={0}\n ROOT r = f32[4,3000] subtract(p, b)", {.split = 2, .cluster = true}},
  {"less the sum", "p = f32[4,6] parameter(0)\n z = f32[] parameter(1)\n s = f32[4] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[4,6] broadcast(s), dimensions={0}\n d = f32[4,6] subtract(p, b)\n ROOT t = (f32[4,6], f32[4]) tuple(d, s)", {0}},
  {"scaled, several rows one behind the other", "p = f32[4,64] parameter(0)\n w = f32[64] parameter(1)\n z = f32[] parameter(2)\n s = f32[4] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[4,64] broadcast(s), dimensions={0}\n v = f32[4,64] broadcast(w), dimensions={1}\n d = f32[4,64] subtract(p, b)\n ROOT r = f32[4,64] multiply(d, v)", {.times = 3}},
  {"several sums in a row", "p = f32[4,3,20] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[4,3] reduce(p, z), dimensions={2}, to_apply=f", {0}},
  {"columns of rows", "p = f32[4,9,20] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[4,20] reduce(p, z), dimensions={1}, to_apply=f", {0}},
  {"columns of rows, of several blocks", "p = f32[4,300,6] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[4,6] reduce(p, z), dimensions={1}, to_apply=f", {.split = 4}},
  {"sums of sums", "p = f32[4,5,8] parameter(0)\n z = f32[] parameter(1)\n a = f32[4,5] reduce(p, z), dimensions={2}, to_apply=f\n ROOT r = f32[4] reduce(a, z), dimensions={1}, to_apply=f", {0}},
  {"sums turned in their row", "p = f32[4,4,6] parameter(0)\n z = f32[] parameter(1)\n a = f32[4,4] reduce(p, z), dimensions={2}, to_apply=f\n v = f32[4,4] reverse(a), dimensions={1}\n b = f32[4,4,6] broadcast(v), dimensions={0,1}\n ROOT r = f32[4,4,6] add(p, b)", {0}},
  {"beside what has no rows", "p = f32[4,12] parameter(0)\n w = f32[9,12] parameter(1)\n z = f32[] parameter(2)\n a = f32[12] reduce(w, z), dimensions={0}, to_apply=f\n b = f32[4,12] broadcast(a), dimensions={1}\n ROOT r = f32[4,12] add(p, b)", {0}},
  {"rows taken", "p = f16[50,40] parameter(0)\n i = s32[4] parameter(1)\n ROOT r = f16[4,40] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,40}", {0}},
  {"odd rows taken, and scaled", "p = f32[50,7] parameter(0)\n i = u8[4,3] parameter(1)\n s = f32[4] parameter(2)\n g = f32[4,3,7] gather(p, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,7}\n c = f32[4,3,7] broadcast(s), dimensions={0}\n ROOT r = f32[4,3,7] multiply(g, c)", {0}},
  {"moved in their row", "p = s16[4,4,6] parameter(0)\n z = s16[] parameter(1)\n t = s16[4,6,4] transpose(p), dimensions={0,2,1}\n r = s16[4,24] reshape(t)\n v = s16[4,24] reverse(r), dimensions={1}\n s = s16[4,10] slice(v), slice={[0:4],[3:13]}\n u = s16[4,15] pad(s, z), padding=0_0x2_3\n ROOT c = s16[4,39] concatenate(u, r), dimensions={1}", {0}},
  {"results of different rows", "p = f32[4,5] parameter(0)\n q = u8[4,3] parameter(1)\n a = f32[4,5] negate(p)\n b = u8[4,3] not(q)\n ROOT t = (f32[4,5], u8[4,3]) tuple(a, b)", {0}},
};
// clang-format on

enum { MOST_ROWS = 37 };

// The plan, and what it is to make of MOST_ROWS rows; NULL: it is not written.
static kl_plan *plan_of(const row *r, const kl_target *t, kiln_module **m, leaves *want) {
  kl_sb b;
  kl_plan *p;
  kl_sb_init(&b, cx);
  kl_sbf(&b,
         "HloModule m\nf {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n"
         "ENTRY e {\n %s\n}\n",
         r->text);
  EXPECT(kiln_module_parse(cx, "test", b.p, strlen(b.p), m) == KILN_OK, "%s: %s", r->what, last_finding());
  kl_sb_free(&b);
  kl_counted it = {.comp = &(*m)->comp[(*m)->entry], .shapes = (*m)->interface.shapes};
  const kl_shape *first = kl_shape_leaf(kl_root(it.comp)->shape, 0);
  EXPECT(kl_plan_recount(cx, &it, first->count / 4 * MOST_ROWS, &arena, &it) == KILN_OK, "%s: %s", r->what,
         last_finding());
  EXPECT(it.rows == MOST_ROWS && it.row == first->count / 4, "%s", r->what);
  const kl_plan_params params = {
      .target = *t, .name = "k", .shapes = it.shapes, .counted = &it, .strategy = r->strategy};
  EXPECT(kl_plan_make(cx, *m, it.comp, &params, &arena, &p) == KILN_OK, "%s: %s", r->what, last_finding());
  *want = evaluate_graph(&arena, *m, it.comp, number_arguments(&arena, it.comp));
  return p;
}

START_TEST(any_number_of_rows) {
  if (!share_has((uint64_t)_i, 1)) return;
  static const int64_t some[] = {1, 2, 5, 16, 33, MOST_ROWS};
  const row *r = &rows[_i / KL_COUNT(targets)];
  kiln_module *m;
  leaves want;
  kl_plan *p = plan_of(r, &targets[_i % KL_COUNT(targets)], &m, &want);
  EXPECT(kl_plan_verify(cx, p) == KILN_OK, "%s: %s", r->what, last_finding());
  for (uint32_t i = 0; i < p->nargs; i++) EXPECT(!p->slots[i].unproved, "%s: %s", r->what, p->slots[i].unproved);
  for (size_t n = 0; n < KL_COUNT(some); n++) {
    if (!share_has((uint64_t)_i * KL_COUNT(some) + n, 2)) continue;
    const char *why = interpret_rows(&arena, p, &want, some[n]);
    EXPECT(!why, "%s, target %d, %lld rows: %s", r->what, _i % (int)KL_COUNT(targets), (ll)some[n], why);
  }
  kl_plan_free(p);
  kiln_module_destroy(&m);
}
END_TEST

// --- broken ---------------------------------------------------------------------------------------------------------

static bool asks_for_rows(const kl_aff *e) {
  for (uint32_t i = 0; i < e->n; i++)
    if (e->terms[i].atom->kind == KL_AFF_RT && e->terms[i].atom->var == KL_FIRST_SYMBOL) return true;
  return false;
}

static bool is_kept_by(const kl_body *b, uint32_t guard) {
  for (uint32_t i = 0; i < b->nstores; i++)
    for (uint32_t g = b->stores[i].keep; g != KL_NONE; g = b->guards[g].outer)
      if (g == guard) return true;
  return false;
}

// Guards that ask for the number of rows hold for one more or one less; or always. False: there is no such place.
// *proved: the verifier has to do with it; what a load leaves out is a question of values.
static bool break_guard(kl_plan *q, uint32_t place, int how, bool *proved) {
  q->parts = kl_arena_dup(&arena, q->parts, q->nparts * sizeof *q->parts);
  for (uint32_t i = 0; i < 2 * q->nparts; i++) {
    kl_body *b = i % 2 ? &q->parts[i / 2].tail : &q->parts[i / 2].main;
    if (!b->nguards) continue;
    kl_guard *guards = kl_arena_dup(&arena, b->guards, b->nguards * sizeof *guards);
    for (uint32_t g = 0; g < b->nguards; g++) {
      if (!asks_for_rows(guards[g].expr) || place-- > 0) continue;
      *proved = how < 2 || is_kept_by(b, g);
      guards[g].hi = how == 0 ? INT64_MAX : guards[g].hi + (how == 1 ? 1 : -1);
      b->guards = guards;
      return true;
    }
  }
  return false;
}

// Blocks are launched for more rows, or for fewer.
static bool break_launch(kl_plan *q, uint32_t place, int how) {
  q->launches = kl_arena_dup(&arena, q->launches, q->nlaunches * sizeof *q->launches);
  if (place >= q->nlaunches) return false;
  kl_plan_launch *l = &q->launches[place];
  *(how ? &l->group : &l->unit) *= 2;
  return true;
}

// What a plan may do wrong for some number of rows; what stays right in spite of it is none.
static bool is_wrong(const kl_plan *q, const leaves *want) {
  static const int64_t some[] = {1, 5, 16, MOST_ROWS - 1, MOST_ROWS};
  for (size_t i = 0; i < KL_COUNT(some); i++)
    if (interpret_rows(&arena, q, want, some[i])) return true;
  return false;
}

START_TEST(what_is_said_of_rows_is_proved) {
  if (!share_has((uint64_t)_i, 3)) return; // one in three (support/share.h)
  const row *r = &rows[_i / KL_COUNT(targets)];
  kiln_module *m;
  leaves want;
  unsigned number = 0, places = 0, believed = 0;
  bool all = true;
  kl_plan *p = plan_of(r, &targets[_i % KL_COUNT(targets)], &m, &want);
  for (int how = 0; how < 5; how++)
    for (uint32_t place = 0;; place++) {
      kl_plan *q = kl_arena_dup(&arena, p, sizeof *p);
      bool proved = true;
      if (how < 3 ? !break_guard(q, place, how, &proved) : !break_launch(q, place, how - 3)) break;
      bool tried = share_has(number++, 3);
      all = all && tried;
      if (!tried || !is_wrong(q, &want)) continue;
      places++;
      if (!proved || kl_plan_verify(cx, q) == KILN_E_INTERNAL) continue;
      printf("# %s, target %d: %d at %u is believed\n", r->what, _i % (int)KL_COUNT(targets), how, place);
      believed++;
    }
  printf("# %s, target %d: %u places\n", r->what, _i % (int)KL_COUNT(targets), places);
  EXPECT(!believed && (places || !all || p->flat || p->nparts > 1), "%s: %u of %u", r->what, believed, places);
  kl_plan_free(p);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("counts", EACH(open_context, close_context),
                   {any_number_of_rows, (int)(KL_COUNT(rows) * KL_COUNT(targets))},
                   {what_is_said_of_rows_is_proved, (int)(KL_COUNT(rows) * KL_COUNT(targets))});
}
