// How much memory an evaluation takes, and that it is refused before it takes more than it may: by an allocator that
// counts.
#include "support/suite.h"
#include <kiln/ir.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- an allocator that counts -------------------------------------------------------------------------------------

typedef struct account {
  int64_t live, most;
} account;

static account counted;

static void *resize(void *user, void *p, size_t old_size, size_t size) {
  account *a = user;
  a->live += (int64_t)size - (int64_t)(p ? old_size : 0);
  a->most = a->live > a->most ? a->live : a->most;
  if (size) return realloc(p, size);
  free(p);
  return NULL;
}

static kiln_context *cx;

static void make_context(void) {
  counted = (account){0, 0};
  kiln_context_params p = {.struct_size = sizeof p, .allocator = {.user = &counted, .resize = resize}};
  cx = kiln_context_create(&p);
}
static void drop_context(void) {
  kiln_context_destroy(&cx);
  EXPECT(counted.live == 0, "%lld bytes are left", (long long)counted.live);
}

// --- limits -------------------------------------------------------------------------------------------------------

#define MIB (1 << 20)
#define ADD "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
#define LT  "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }\n"
#define V   "f32[1048576]" // 4 MiB

typedef struct limit_row {
  const char *text;
  uint64_t most;
  bool check;
  const char *refusal; // what the message has; NULL: there is room
} limit_row;

// Parameters and results are the caller's.
static const limit_row limits[] = {
    {"ENTRY e { x = " V " parameter(0) ROOT r = " V " add(x, x) }", 5 * MIB, false, NULL},
    {"ENTRY e { x = " V " parameter(0) ROOT r = " V " add(x, x) }", 3 * MIB, false, "4194304 bytes for arrays"},
    // Two arrays at a time, however many there are.
    {"ENTRY e { x = " V " parameter(0) a = " V " add(x, x) b = " V " add(a, x) c = " V " add(b, x) d = " V
     " add(c, x) ROOT r = " V " add(d, x) }",
     9 * MIB, false, NULL},
    {"ENTRY e { x = " V " parameter(0) a = " V " add(x, x) b = " V " add(a, x) c = " V " add(b, x) d = " V
     " add(c, x) ROOT r = " V " add(d, x) }",
     7 * MIB, false, "8388608 bytes for arrays"},
    {"ENTRY e { x = " V " parameter(0) a = " V " add(x, x) b = " V " multiply(x, x) c = " V " negate(x) d = " V
     " add(a, b) ROOT r = " V " add(d, c) }",
     15 * MIB, false, "16777216 bytes for arrays"},
    {"ENTRY e { x = " V " parameter(0) t = (" V ", " V ") tuple(x, x) g = " V " get-tuple-element(t), index=1 h = " V
     " reshape(g) k = " V " copy(h) ROOT r = " V " bitcast(k) }",
     5 * MIB, false, NULL},
    // One element that stands for all takes no room.
    {"ENTRY e { c = f32[] constant(2) b = f32[1099511627776] broadcast(c), dimensions={} s = f32[1099511627776] "
     "sine(b) "
     "ROOT r = f32[4] slice(s), slice={[7:11]} }",
     1 * MIB, true, NULL},
    // What callees make is seen when they make it.
    {"f { x = " V " parameter(0) a = " V " add(x, x) b = " V " add(a, x) ROOT c = " V " add(b, a) }\n"
     "ENTRY e { x = " V " parameter(0) ROOT r = " V " fusion(x), kind=kLoop, calls=f }",
     9 * MIB, false, "an evaluated array, found"},
    {"f { x = " V " parameter(0) a = " V " add(x, x) b = " V " add(a, x) ROOT c = " V " add(b, a) }\n"
     "ENTRY e { x = " V " parameter(0) ROOT r = " V " fusion(x), kind=kLoop, calls=f }",
     13 * MIB, false, NULL},
    {"c { t = (s32[], " V ") parameter(0) i = s32[] get-tuple-element(t), index=0 n = s32[] constant(50) "
     "ROOT r = pred[] compare(i, n), direction=LT }\n"
     "b { t = (s32[], " V ") parameter(0) i = s32[] get-tuple-element(t), index=0 x = " V
     " get-tuple-element(t), index=1 o = s32[] constant(1) j = s32[] add(i, o) y = " V " add(x, x) "
     "ROOT r = (s32[], " V ") tuple(j, y) }\n"
     "ENTRY e { x = " V " parameter(0) z = s32[] constant(0) t = (s32[], " V ") tuple(z, x) w = (s32[], " V
     ") while(t), condition=c, body=b ROOT r = " V " get-tuple-element(w), index=1 }",
     9 * MIB, false, NULL},
    // Scratch memory counts.
    {LT "ENTRY e { x = " V " parameter(0) ROOT r = " V " sort(x), dimensions={0}, to_apply=lt }", 5 * MIB, false,
     "a sort, found"},
    {LT "ENTRY e { x = " V " parameter(0) ROOT r = " V " sort(x), dimensions={0}, to_apply=lt }", 70 * MIB, false,
     NULL},
    // Intervals take three planes more.
    {"ENTRY e { x = " V " parameter(0) ROOT r = " V " sine(x) }", 6 * MIB, false, NULL},
    {"ENTRY e { x = " V " parameter(0) ROOT r = " V " sine(x) }", 6 * MIB, true, "an evaluated array, found"},
    // Sums by sliding want room; without, each window is added up by itself.
    {ADD "ENTRY e { x = f32[300,300] parameter(0) z = f32[] constant(0) ROOT r = f32[281,281] reduce-window(x, z), "
         "window={size=20x20}, to_apply=add }",
     2 * MIB, false, NULL},
    // Far more than any machine has.
    {ADD "ENTRY e { x = f32[4398046511104] iota(), iota_dimension=0 z = f32[] constant(0) "
         "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }",
     0, true, "17592186044420 bytes for arrays"},
    {ADD "f { x = f32[4398046511104] iota(), iota_dimension=0 z = f32[] constant(0) "
         "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }\nENTRY e { ROOT r = f32[] call(), to_apply=f }",
     0, false, "17592186044416 bytes for an evaluated array, found"},
    {"ENTRY e { x = " V " parameter(0) a = " V " add(x, x) b = " V " add(a, x) ROOT r = " V " add(b, a) }", 0, true,
     NULL},
};

static void **make_buffers(const kiln_module *m, size_t n, int64_t (*bytes)(const kiln_module *, size_t)) {
  void **b = calloc(n + 1, sizeof *b);
  for (size_t i = 0; i < n; i++) b[i] = calloc((size_t)bytes(m, i) + 64, 1);
  return b;
}
static void free_buffers(void **b, size_t n) {
  for (size_t i = 0; i < n; i++) free(b[i]);
  free(b);
}

static kiln_status run(const limit_row *l, const kiln_module *m, void **in, void **out) {
  kiln_eval_params p = {.struct_size = sizeof p, .threads = 2, .max_bytes = l->most};
  kiln_mismatch wrong;
  size_t count;
  const void *const *args = (const void *const *)in;
  kiln_diagnostics_clear(cx);
  counted.most = counted.live;
  return l->check ? kiln_module_check(cx, m, args, (const void *const *)out, &wrong, 1, &count, &p)
                  : kiln_module_eval(cx, m, args, out, &p);
}

START_TEST(limits_hold) {
  enum { METADATA = 64 << 10 };
  const limit_row *l = &limits[_i];
  char text[3000];
  kiln_module *m = NULL;
  snprintf(text, sizeof text, "HloModule m\n%s", l->text);
  EXPECT(kiln_module_parse(cx, "test", text, strlen(text), &m) == KILN_OK, "%s",
         kiln_diagnostics_get(cx, 0) ? kiln_diagnostics_get(cx, 0)->text : text);
  size_t nin = kiln_module_parameter_leaf_count(m), nout = kiln_module_result_leaf_count(m);
  void **in = make_buffers(m, nin, kiln_module_parameter_leaf_bytes),
       **out = make_buffers(m, nout, kiln_module_result_leaf_bytes);
  int64_t before = counted.live;
  kiln_status status = run(l, m, in, out);
  const kiln_diagnostic *d = kiln_diagnostics_get(cx, 0);
  EXPECT(status == (l->refusal ? KILN_E_MEMORY : KILN_OK), "status %s: %s\n%s", kiln_status_name(status),
         d ? d->message : "", text);
  EXPECT(!l->refusal || (d && strstr(d->message, l->refusal) && strstr(d->message, " available")), "'%s'\n%s",
         d ? d->message : "", text);
  EXPECT(kiln_diagnostics_count(cx) == (l->refusal != NULL), "%zu findings", kiln_diagnostics_count(cx));
  EXPECT(!l->most || counted.most - before <= (int64_t)l->most + METADATA, "took %lld of %llu bytes\n%s",
         (long long)(counted.most - before), (unsigned long long)l->most, text);
  // The limit was that evaluation's.
  limit_row all = *l;
  all.most = 0;
  if (l->most) EXPECT(run(&all, m, in, out) == KILN_OK, "without a limit\n%s", text);
  free_buffers(in, nin);
  free_buffers(out, nout);
  kiln_module_destroy(&m);
}
END_TEST

// What is made afterwards may be larger than that.
START_TEST(limits_end) {
  enum { BYTES = 40 };
  const limit_row none = {"", 1, false, NULL}, judged = {"", 1, true, NULL};
  const limit_row *const runs[] = {&none, &judged};
  const char *text = "HloModule m\nENTRY e { x = f32[10] parameter(0) ROOT r = f32[10] sine(x) }";
  kiln_module *m = NULL, *copy = NULL;
  EXPECT(kiln_module_parse(cx, "test", text, strlen(text), &m) == KILN_OK, "%s", text);
  float x[10] = {1}, y[10];
  for (int k = 0; k < 2; k++) {
    EXPECT(run(runs[k], m, (void *[]){x}, (void *[]){y}) == KILN_E_MEMORY, "room for %d bytes in one", BYTES);
    EXPECT(kiln_module_clone(cx, m, &copy) == KILN_OK, "no room after");
    kiln_module_destroy(&copy);
  }
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_memory", EACH(make_context, drop_context), {limits_hold, sizeof limits / sizeof *limits},
                   {limits_end});
}
