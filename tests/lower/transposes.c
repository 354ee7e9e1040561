// Plans of transposes, executed on fingerprints: every element of every result is the right one and stored once,
// whatever machine and order of threads; and which of them go through tiles, and touch no sector twice.
#include "interpret/interpret.h"
#include "lower/choose/choose.h"
#include "lower/plan/cost/cost.h"
#include "support/suite.h"
#include "support/transposes.h"

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
enum { GPU, TARGETS = KL_COUNT(targets) };

static const transpose_case *row(int i) {
  return &transpose_cases[i / TARGETS];
}

static kiln_module *parse(const transpose_case *c) {
  kiln_module *m = NULL;
  char *text = kl_strf(&arena, "HloModule m\nENTRY e { %s }\n", c->text);
  EXPECT(kiln_module_parse(cx, "test", text, strlen(text), &m) == KILN_OK, "%s: %s", c->name, last_finding());
  return m;
}

static kl_plan *plan_of(const transpose_case *c, const kiln_module *m, const kl_target *t) {
  kl_plan *p = NULL;
  const kl_plan_params params = {.target = *t, .name = "k"};
  EXPECT(kl_plan_make(cx, m, &m->comp[m->entry], &params, &arena, &p) == KILN_OK, "%s: %s", c->name, last_finding());
  return p;
}

START_TEST(elements_are_stored_once) {
  const transpose_case *c = row(_i);
  kiln_module *m = parse(c);
  kl_plan *p = plan_of(c, m, &targets[_i % TARGETS]);
  leaves want = evaluate_graph(&arena, m, &m->comp[m->entry], number_arguments(&arena, &m->comp[m->entry]));
  const char *why = interpret(&arena, p, &want);
  EXPECT(!why, "%s: %s", c->name, why);
  EXPECT(kl_plan_verify(cx, p) == KILN_OK, "%s: %s", c->name, last_finding());
  for (uint32_t i = 0; i < p->nslots && c->what & WIDE; i++)
    EXPECT(!p->slots[i].unproved, "%s: slot %u: %s", c->name, i, p->slots[i].unproved);
  kl_plan_free(p);
  kiln_module_destroy(&m);
}
END_TEST

// Bytes that lanes move 16 at once, of what could be.
static int64_t moved_wide(const kl_access_cost *c) {
  return c->width[4] * 16 * 32;
}

// Each array once, a broadcast's as often as it is; 16 bytes at once; as many waves as bytes need.
static void expect_wide(const transpose_case *c, kl_plan *p, const kl_cost *cost) {
  for (uint32_t i = 0; i < p->nargs; i++) {
    const kl_slot_info *s = &p->slots[i];
    int64_t times = s->kind == KL_SLOT_IN && s->shape->count ? p->count / s->shape->count : 1,
            all = times * s->bytes / 32;
    int64_t found = cost->slots[i].load.asked.sectors + cost->slots[i].store.asked.sectors;
    EXPECT(kl_is_exact(&cost->slots[i]) && found <= all, "%s: slot %u: %lld sectors of %lld", c->name, i, (ll)found,
           (ll)all);
  }
  const kl_access_cost *memory[] = {&cost->load, &cost->store};
  for (size_t i = 0; i < 2; i++)
    EXPECT(moved_wide(memory[i]) >= memory[i]->bytes, "%s: %lld of %lld bytes by 16", c->name,
           (ll)moved_wide(memory[i]), (ll)memory[i]->bytes);
  const kl_access_cost *shared[] = {&cost->shared_load, &cost->shared_store};
  for (size_t i = 0; i < 2; i++)
    EXPECT(shared[i]->asked.wavefronts * 128 <= shared[i]->bytes, "%s: %lld waves for %lld bytes", c->name,
           (ll)shared[i]->asked.wavefronts, (ll)shared[i]->bytes);
}

START_TEST(tiles_are_taken_where_they_read_less) {
  const transpose_case *c = &transpose_cases[_i];
  kiln_module *m = parse(c);
  kl_plan *p = plan_of(c, m, &targets[GPU]);
  bool tiled = strcmp(p->kind, "transpose") == 0;
  kl_cost cost = kl_plan_cost(p, KL_COST_THOROUGH);
  EXPECT(tiled == ((c->what & IN_TILES) != 0), "%s is a %s", c->name, p->kind);
  if (c->what & WIDE) expect_wide(c, p, &cost);
  printf("# %s: %lld sectors read, %lld written; %lld waves put, %lld taken\n", c->name, (ll)cost.load.asked.sectors,
         (ll)cost.store.asked.sectors, (ll)cost.shared_store.asked.wavefronts, (ll)cost.shared_load.asked.wavefronts);
  kl_plan_free(p);
  kiln_module_destroy(&m);
}
END_TEST

// What is known not to be worth it, or not done yet, says so.
START_TEST(reasons_are_given) {
  static const char *const row[][2] = {
      {"x = f32[30,32] parameter(0) ROOT r = f32[32,30] transpose(x), dimensions={1,0}",
       "what is read across takes less than 4096 bytes"},
      {"x = bf16[64,128,2] parameter(0) ROOT r = bf16[128,64,2] transpose(x), dimensions={1,0,2}",
       "neighbours that it keeps are less than a sector, but no single element"},
  };
  transpose_case c = {row[_i][0], 0, row[_i][0]};
  kiln_module *m = parse(&c);
  kl_plan *p = plan_of(&c, m, &targets[GPU]);
  EXPECT(p->ndeclined == 1 && strcmp(p->declined->why, row[_i][1]) == 0, "%s: %s", c.text,
         p->ndeclined ? p->declined->why : "nothing");
  kl_plan_free(p);
  kiln_module_destroy(&m);
}
END_TEST

// What is too small, or would gain nothing.
START_TEST(others_are_declined) {
  static const char *const text[] = {
      "x = f32[16,16] parameter(0) ROOT r = f32[16,16] transpose(x), dimensions={1,0}",
      "x = f32[64,64] parameter(0) ROOT r = f32[64,64] negate(x)",
      "x = f32[4096] parameter(0) ROOT r = f32[4096,8] broadcast(x), dimensions={0}",
      "x = f32[0,64] parameter(0) ROOT r = f32[64,0] transpose(x), dimensions={1,0}",
      "x = f32[] parameter(0) ROOT r = f32[] copy(x)",
      "x = f32[4096,8] parameter(0) s = f32[512,8] slice(x), slice={[0:4096:8],[0:8]} ROOT r = f32[512,8] negate(s)",
  };
  transpose_case c = {text[_i], 0, text[_i]};
  kiln_module *m = parse(&c);
  for (size_t t = 0; t < TARGETS; t++) {
    kl_plan *p = plan_of(&c, m, &targets[t]);
    EXPECT(strcmp(p->kind, "loop") == 0, "%s is a %s", text[_i], p->kind);
    kl_plan_free(p);
  }
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("transposes", EACH(open_context, close_context),
                   {elements_are_stored_once, KL_COUNT(transpose_cases) * TARGETS},
                   {tiles_are_taken_where_they_read_less, KL_COUNT(transpose_cases)}, {others_are_declined, 6},
                   {reasons_are_given, 2});
}
