// Launching on the simulator's driver in every way that there is: all give what the evaluator says, again and again,
// for the buffers that they were last given.
#include "support/context.h"

#include "cuda/driver.h"
#include <kiln/kiln.h>
#include <stdio.h>

enum { MOST = 8, PLACES = 2, SKEW = 16 };

static kiln_driver *driver;
static kiln_device *device;
static void *stream;

static void setup(void) {
  kiln_driver_params p = {.struct_size = sizeof p, .resolve = kiln_sim_resolve, .initialize = true};
  make_context();
  EXPECT(kiln_driver_open(cx, &p, &driver) == KILN_OK && kiln_device_open(cx, driver, 0, &device) == KILN_OK, "%s",
         last_finding());
  stream = kiln_device_stream(device);
}

static void teardown(void) {
  kiln_device_close(&device);
  kiln_driver_close(&driver);
  drop_context();
}

// --- modules --------------------------------------------------------------------------------------------------------

typedef struct module_row {
  const char *what, *text;
  int64_t count; // of elements, given at run time; 0: no such artifact
  bool programmatic, by_value, loops;
  bool together; // loops are no steps
} module_row;

#define LESS "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }\n"
#define ADD  "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
// Of one parameter, or of another number that is computed; branches of which the last one hands on what it is given.
#define BRANCHES(index)                                                                                                \
  (LESS ADD                                                                                                            \
   "sum { x = f32[64] parameter(0) z = f32[] constant(0) s = f32[] reduce(x, z), dimensions={0}, to_apply=add "        \
   "ROOT b = f32[64] broadcast(s), dimensions={} }\n"                                                                  \
   "turn { x = f32[64] parameter(0) k = f32[64] sort(x), dimensions={0}, to_apply=less "                               \
   "ROOT r = f32[64] reverse(k), dimensions={0} }\n"                                                                   \
   "same { ROOT x = f32[64] parameter(0) }\n"                                                                          \
   "ENTRY e { i = s32[] parameter(0) x = f32[64] parameter(1) one = s32[] constant(1) j = s32[] subtract(i, one) "     \
   "ROOT r = f32[64] conditional(" index ", x, x, x), branch_computations={sum, turn, same} }")
// A loop of which data says the rounds.
#define LOOP                                                                                                           \
  ("cond { t = (s32[], f32[64]) parameter(0) i = s32[] get-tuple-element(t), index=0 n = s32[] constant(9) "           \
   "ROOT l = pred[] compare(i, n), direction=LT }\n"                                                                   \
   "body { t = (s32[], f32[64]) parameter(0) i = s32[] get-tuple-element(t), index=0 "                                 \
   "x = f32[64] get-tuple-element(t), index=1 c = s32[] constant(2) j = s32[] add(i, c) v = f32[64] reverse(x), "      \
   "dimensions={0} y = f32[64] add(v, v) ROOT r = (s32[], f32[64]) tuple(j, y) }\n"                                    \
   "ENTRY e { i = s32[] parameter(0) x = f32[64] parameter(1) t = (s32[], f32[64]) tuple(i, x) "                       \
   "ROOT w = (s32[], f32[64]) while(t), condition=cond, body=body }")
static const module_row rows[] = {
    {"one launch", "ENTRY e { p = f32[1000] parameter(0) ROOT r = f32[1000] negate(p) }", 0, false, false, false},
    {"rows at run time", "ENTRY e { p = f32[1000] parameter(0) ROOT r = f32[1000] negate(p) }", 1000, false, false,
     false},
    {"a scalar by value",
     "ENTRY e { p = s32[100] parameter(0) q = s32[] parameter(1) b = s32[100] broadcast(q), dimensions={} "
     "ROOT r = s32[100] add(p, b) }",
     0, false, true, false},
    {"several launches, one behind the other",
     "f { p = f32[1000] parameter(0) ROOT r = f32[1000] negate(p) }\n"
     "ENTRY e { p = f32[1000] parameter(0) a = f32[1000] fusion(p), kind=kLoop, calls=f "
     "ROOT b = f32[1000] fusion(a), kind=kLoop, calls=f }",
     0, true, false, false},
    {"counters in scratch memory",
     ADD "ENTRY e { p = f32[20000] parameter(0) z = f32[] constant(0) "
         "ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add }",
     0, false, false, false},
    {"launches for results in place and apart",
     "ENTRY e { p = f32[64,32] parameter(0) u = f32[5,32] parameter(1) i = s32[] parameter(2) z = s32[] constant(0) "
     "ROOT r = f32[64,32] dynamic-update-slice(p, u, i, z) }",
     0, false, false, false},
    {"nothing to launch", "ENTRY e { p = f32[0] parameter(0) ROOT r = f32[0] negate(p) }", 0, false, false, false},
    {"a loop", LOOP, 0, false, false, true},
    {"a loop in one launch", LOOP, 0, false, false, false, true},
    {"a loop in one launch that waits for the one before", LOOP, 0, true, false, false, true},
    {"a loop in a loop",
     "c1 { t = (s32[], s32[], f32[8]) parameter(0) i = s32[] get-tuple-element(t), index=1 n = s32[] constant(20) "
     "ROOT l = pred[] compare(i, n), direction=LT }\n"
     "b1 { t = (s32[], s32[], f32[8]) parameter(0) k = s32[] get-tuple-element(t), index=0 "
     "i = s32[] get-tuple-element(t), index=1 x = f32[8] get-tuple-element(t), index=2 c = s32[] constant(6) "
     "j = s32[] add(i, c) h = f32[] constant(0.5) hb = f32[8] broadcast(h), dimensions={} v = f32[8] reverse(x), "
     "dimensions={0} y = f32[8] add(v, hb) ROOT r = (s32[], s32[], f32[8]) tuple(k, j, y) }\n"
     "c0 { t = (s32[], s32[], f32[8]) parameter(0) k = s32[] get-tuple-element(t), index=0 n = s32[] constant(7) "
     "ROOT l = pred[] compare(k, n), direction=LT }\n"
     "b0 { t = (s32[], s32[], f32[8]) parameter(0) k = s32[] get-tuple-element(t), index=0 c = s32[] constant(3) "
     "m = s32[] add(k, c) x = f32[8] get-tuple-element(t), index=2 u = (s32[], s32[], f32[8]) tuple(m, m, x) "
     "ROOT w = (s32[], s32[], f32[8]) while(u), condition=c1, body=b1 }\n"
     "ENTRY e { k = s32[] parameter(0) x = f32[8] parameter(1) t = (s32[], s32[], f32[8]) tuple(k, k, x) "
     "ROOT w = (s32[], s32[], f32[8]) while(t), condition=c0, body=b0 }",
     0, false, false, true},
    {"a loop whose rounds are known",
     "cond { t = (s32[], f32[64]) parameter(0) i = s32[] get-tuple-element(t), index=0 n = s32[] constant(75) "
     "ROOT l = pred[] compare(i, n), direction=LT }\n"
     "body { t = (s32[], f32[64]) parameter(0) i = s32[] get-tuple-element(t), index=0 "
     "x = f32[64] get-tuple-element(t), index=1 c = s32[] constant(1) j = s32[] add(i, c) h = f32[] constant(0.5) "
     "b = f32[64] broadcast(h), dimensions={} v = f32[64] reverse(x), dimensions={0} y = f32[64] add(v, b) "
     "ROOT r = (s32[], f32[64]) tuple(j, y) }\n"
     "ENTRY e { x = f32[64] parameter(0) i = s32[] constant(0) t = (s32[], f32[64]) tuple(i, x) "
     "ROOT w = (s32[], f32[64]) while(t), condition=cond, body=body }",
     0, false, false, false},
    {"a branch by a number that may be none", BRANCHES("i"), 0, false, false, true},
    {"a branch by a number that is passed", BRANCHES("i"), 0, false, true, false},
    {"a branch by a number that is computed", BRANCHES("j"), 0, false, false, true},
    {"a branch by a truth, in a loop",
     ADD "again { t = (s32[], f32[64]) parameter(0) i = s32[] get-tuple-element(t), index=0 n = s32[] constant(9) "
         "ROOT l = pred[] compare(i, n), direction=LT }\n"
         "yes { x = f32[64] parameter(0) z = f32[] constant(0) s = f32[] reduce(x, z), dimensions={0}, to_apply=add "
         "b = f32[64] broadcast(s), dimensions={} ROOT r = f32[64] subtract(x, b) }\n"
         "no { ROOT x = f32[64] parameter(0) }\n"
         "body { t = (s32[], f32[64]) parameter(0) i = s32[] get-tuple-element(t), index=0 "
         "x = f32[64] get-tuple-element(t), index=1 c = s32[] constant(2) j = s32[] add(i, c) m = s32[] constant(5) "
         "q = pred[] compare(i, m), direction=LT y = f32[64] conditional(q, x, x), true_computation=yes, "
         "false_computation=no ROOT r = (s32[], f32[64]) tuple(j, y) }\n"
         "ENTRY e { i = s32[] parameter(0) x = f32[64] parameter(1) t = (s32[], f32[64]) tuple(i, x) "
         "ROOT w = (s32[], f32[64]) while(t), condition=again, body=body }",
     0, false, false, true},
};
enum { ROWS = sizeof rows / sizeof rows[0], CONSTANT = ROWS }; // behind them, one with a constant of more than 1 MiB

static kiln_module *parse_row(int row) {
  char text[4096];
  if (row < CONSTANT) {
    snprintf(text, sizeof text, "HloModule m\n%s", rows[row].text);
    return parse(text);
  }
  static char *big;
  size_t n = 0;
  enum { ELEMENTS = 300000 };
  if (!big) {
    big = malloc(12 * ELEMENTS + 300);
    n += (size_t)sprintf(big, "HloModule m\nENTRY e { p = f32[%d] parameter(0) c = f32[%d] constant({", ELEMENTS,
                         ELEMENTS);
    for (int i = 0; i < ELEMENTS; i++) n += (size_t)sprintf(big + n, "%s%d", i ? "," : "", i * 37 % 1009);
    sprintf(big + n, "}) ROOT r = f32[%d] multiply(p, c) }", ELEMENTS);
  }
  return parse(big);
}

// --- a kernel with buffers
// --------------------------------------------------------------------------------------------

// Buffers of several calls: a place each, with inputs of their own.
typedef struct bench {
  kiln_module *m;
  kiln_artifact *a;
  const kiln_manifest *f;
  kiln_cuda_kernel *k;
  int64_t count;
  void *in[PLACES][MOST], *out[MOST]; // on the host
  uint64_t parameters[PLACES][MOST], results[PLACES][MOST], scratch[PLACES];
} bench;

static void good(kiln_status st, const char *what) {
  EXPECT(st == KILN_OK, "%s: %s", what, last_finding());
}

static void make_place(bench *b, int place) {
  for (size_t i = 0; i < b->f->parameter_count; i++) {
    const kiln_slot *s = &b->f->slots[i];
    b->in[place][i] = calloc(1, (size_t)s->bytes + 8);
    kiln_module_parameter_leaf_fill(b->m, i, (uint64_t)place + 1, b->in[place][i]);
    if (s->type.rank == 0 && s->type.dtype == KILN_S32) *(int32_t *)b->in[place][i] = place; // trips, places, terms
    if (s->by_value) {
      memcpy(&b->parameters[place][i], b->in[place][i], 4);
      continue;
    }
    good(kiln_device_alloc(cx, device, (uint64_t)s->bytes + SKEW, &b->parameters[place][i]), "memory");
    good(kiln_device_upload(cx, device, b->parameters[place][i], b->in[place][i], (uint64_t)s->bytes), "memory");
  }
  for (size_t i = 0; i < b->f->result_count; i++)
    good(kiln_device_alloc(cx, device, (uint64_t)b->f->slots[b->f->parameter_count + i].bytes + SKEW,
                           &b->results[place][i]),
         "memory");
  good(kiln_device_alloc(cx, device, b->f->scratch_bytes, &b->scratch[place]), "memory");
  good(kiln_cuda_kernel_fill_scratch(cx, b->k, stream, b->f->scratch_bytes ? b->scratch[place] : 0), "scratch");
}

static void save_and_load(kiln_artifact **a) {
  void *bytes, *again;
  size_t n, k;
  kiln_artifact *loaded = NULL;
  good(kiln_artifact_save(cx, *a, &bytes, &n), "save");
  good(kiln_artifact_load(cx, bytes, n, &loaded), "load");
  good(kiln_artifact_save(cx, loaded, &again, &k), "save");
  EXPECT(n == k && memcmp(bytes, again, n) == 0, "other bytes");
  kiln_artifact_bytes_free(cx, bytes, n);
  kiln_artifact_bytes_free(cx, again, k);
  kiln_artifact_destroy(a);
  *a = loaded;
}

static bench open_bench_for(int row, uint32_t least_align) {
  const module_row *r = row < CONSTANT ? &rows[row] : &(module_row){0};
  kiln_compile_params p = {.struct_size = sizeof p,
                           .max_count = r->count,
                           .programmatic = r->programmatic,
                           .least_align = least_align,
                           .scalars_by_value = r->by_value,
                           .separate_launches = !r->together};
  bench b = {.m = parse_row(row), .count = r->count};
  good(kiln_compile(cx, b.m, &p, &b.a), "compile");
  EXPECT(!r->together || kiln_artifact_manifest(b.a)->launch_count == 1, "%s", r->what);
  if (least_align) save_and_load(&b.a);
  b.f = kiln_artifact_manifest(b.a);
  good(kiln_cuda_kernel_create(cx, driver, b.a, kiln_device_context(device), &b.k), "kernel");
  EXPECT(b.f->parameter_count <= MOST && b.f->result_count <= MOST, "buffers");
  for (int place = 0; place < PLACES; place++) make_place(&b, place);
  for (size_t i = 0; i < b.f->result_count; i++)
    b.out[i] = malloc((size_t)b.f->slots[b.f->parameter_count + i].bytes + 8);
  return b;
}

static bench open_bench(int row) {
  return open_bench_for(row, 0);
}

static void close_bench(bench *b) {
  kiln_cuda_kernel_destroy(&b->k);
  for (int place = 0; place < PLACES; place++) {
    for (size_t i = 0; i < b->f->parameter_count; i++) {
      free(b->in[place][i]);
      if (!b->f->slots[i].by_value) kiln_device_free(device, b->parameters[place][i]);
    }
    for (size_t i = 0; i < b->f->result_count; i++) kiln_device_free(device, b->results[place][i]);
    kiln_device_free(device, b->scratch[place]);
  }
  for (size_t i = 0; i < b->f->result_count; i++) free(b->out[i]);
  kiln_artifact_destroy(&b->a);
  kiln_module_destroy(&b->m);
}

static kiln_cuda_launch_params params_of(const bench *b, int place) {
  return (kiln_cuda_launch_params){.struct_size = sizeof(kiln_cuda_launch_params),
                                   .stream = stream,
                                   .parameters = b->parameters[place],
                                   .results = b->results[place],
                                   .scratch = b->f->scratch_bytes ? b->scratch[place] : 0,
                                   .count = b->count};
}

static void spoil(const bench *b, int place) {
  for (size_t i = 0; i < b->f->result_count; i++)
    good(kiln_device_fill(cx, device, b->results[place][i], 0xab,
                          (uint64_t)b->f->slots[b->f->parameter_count + i].bytes),
         "spoil");
}

// Is what is there what the module means?
static void judge(bench *b, int place, const char *way) {
  kiln_mismatch first[1];
  size_t n = 0;
  good(kiln_device_synchronize(cx, device), way);
  for (size_t i = 0; i < b->f->result_count; i++)
    good(kiln_device_download(cx, device, b->out[i], b->results[place][i],
                              (uint64_t)b->f->slots[b->f->parameter_count + i].bytes),
         way);
  good(kiln_module_check(cx, b->m, (const void *const *)b->in[place], (const void *const *)b->out, first, 1, &n, NULL),
       way);
  EXPECT(n == 0, "%s, place %d: %zu elements differ, the first at %lld of result %zu", way, place, n,
         (long long)first[0].element, first[0].result);
}

static const char *name_of(int row) {
  return row < CONSTANT ? rows[row].what : "a large constant";
}

// --- the ways -------------------------------------------------------------------------------------------------------

// Twice each: counters are what they were.
START_TEST(launched_one_by_one) {
  bench b = open_bench(_i);
  for (int turn = 0; turn < 2 * PLACES; turn++) {
    kiln_cuda_launch_params p = params_of(&b, turn % PLACES);
    spoil(&b, turn % PLACES);
    good(kiln_cuda_kernel_launch(cx, b.k, &p), name_of(_i));
    judge(&b, turn % PLACES, name_of(_i));
  }
  close_bench(&b);
}
END_TEST

START_TEST(frozen_and_rebound) {
  bench b = open_bench(_i);
  kiln_cuda_launch_params p[PLACES] = {params_of(&b, 0), params_of(&b, 1)};
  kiln_cuda_frozen *f = NULL;
  good(kiln_cuda_frozen_create(cx, b.k, &p[0], &f), name_of(_i));
  for (int turn = 0; turn < 2 * PLACES; turn++) {
    int place = turn / 2;
    if (turn == 2) good(kiln_cuda_frozen_bind(cx, f, &p[1]), name_of(_i));
    spoil(&b, place);
    good(kiln_cuda_frozen_launch(cx, f, stream), name_of(_i));
    judge(&b, place, name_of(_i));
  }
  kiln_cuda_frozen_destroy(&f);
  ck_assert_ptr_null(f);
  close_bench(&b);
}
END_TEST

// A result that is its parameter: other launches than for one that is not.
START_TEST(frozen_in_place_and_apart) {
  bench b = open_bench(5);
  kiln_cuda_launch_params p = params_of(&b, 0);
  kiln_cuda_frozen *f = NULL;
  uint64_t in_place[1] = {b.parameters[1][0]}, apart[1] = {b.results[1][0]};
  ck_assert_uint_eq(b.f->slots[0].alias, b.f->parameter_count);
  good(kiln_cuda_frozen_create(cx, b.k, &p, &f), "apart");
  p = params_of(&b, 1);
  p.results = in_place;
  good(kiln_cuda_frozen_bind(cx, f, &p), "in place");
  good(kiln_cuda_frozen_launch(cx, f, stream), "in place");
  b.results[1][0] = in_place[0];
  judge(&b, 1, "in place");
  b.results[1][0] = apart[0];
  kiln_cuda_frozen_destroy(&f);
  close_bench(&b);
}
END_TEST

// A bind that is refused changes nothing.
START_TEST(refused_buffers_change_nothing) {
  bench b = open_bench(3);
  kiln_cuda_launch_params p = params_of(&b, 0), wrong = params_of(&b, 1);
  uint64_t skewed[1] = {b.parameters[1][0] + 4};
  kiln_cuda_frozen *f = NULL;
  good(kiln_cuda_frozen_create(cx, b.k, &p, &f), "frozen");
  wrong.parameters = skewed;
  ck_assert_int_eq(kiln_cuda_frozen_bind(cx, f, &wrong), KILN_E_INVALID);
  EXPECT(strstr(last_finding(), "parameter 0: expected an address that is a multiple of 16"), "%s", last_finding());
  wrong = params_of(&b, 1);
  wrong.scratch = 0;
  ck_assert_int_eq(kiln_cuda_frozen_bind(cx, f, &wrong), KILN_E_INVALID);
  wrong = params_of(&b, 1);
  wrong.count = 7;
  ck_assert_int_eq(kiln_cuda_frozen_bind(cx, f, &wrong), KILN_E_INVALID);
  spoil(&b, 0);
  good(kiln_cuda_frozen_launch(cx, f, stream), "frozen");
  judge(&b, 0, "frozen");
  ck_assert_int_eq(kiln_cuda_kernel_fill_scratch(cx, b.k, stream, b.scratch[0] + 8), KILN_E_INVALID);
  kiln_cuda_frozen_destroy(&f);
  close_bench(&b);
}
END_TEST

// --- graphs ---------------------------------------------------------------------------------------------------------

START_TEST(as_a_graph_and_updated) {
  bench b = open_bench(_i);
  kiln_cuda_launch_params p[PLACES] = {params_of(&b, 0), params_of(&b, 1)};
  kiln_cuda_graph *g = NULL;
  good(kiln_cuda_graph_create(cx, b.k, &p[0], &g), name_of(_i));
  ck_assert_ptr_nonnull(kiln_cuda_graph_handle(g));
  for (int turn = 0; turn < 2 * PLACES; turn++) {
    int place = turn / 2;
    if (turn == 2) good(kiln_cuda_graph_update(cx, g, &p[1]), name_of(_i));
    spoil(&b, place);
    good(kiln_cuda_graph_launch(cx, g, stream), name_of(_i));
    judge(&b, place, name_of(_i));
  }
  kiln_cuda_graph_destroy(&g);
  ck_assert_ptr_null(g);
  close_bench(&b);
}
END_TEST

// Other launches are other nodes; a refused update changes nothing.
START_TEST(a_graph_in_place_and_apart) {
  bench b = open_bench(5);
  kiln_cuda_launch_params p = params_of(&b, 0), wrong = params_of(&b, 0);
  kiln_cuda_graph *g = NULL;
  uint64_t in_place[1] = {b.parameters[1][0]}, apart[1] = {b.results[1][0]}, skewed[1] = {b.results[0][0] + 8};
  good(kiln_cuda_graph_create(cx, b.k, &p, &g), "apart");
  wrong.results = skewed;
  ck_assert_int_eq(kiln_cuda_graph_update(cx, g, &wrong), KILN_E_INVALID);
  good(kiln_cuda_graph_launch(cx, g, stream), "apart");
  judge(&b, 0, "apart");
  p = params_of(&b, 1);
  p.results = in_place;
  good(kiln_cuda_graph_update(cx, g, &p), "in place");
  good(kiln_cuda_graph_launch(cx, g, stream), "in place");
  b.results[1][0] = in_place[0];
  judge(&b, 1, "in place");
  b.results[1][0] = apart[0];
  kiln_cuda_graph_destroy(&g);
  close_bench(&b);
}
END_TEST

// --- alignment ------------------------------------------------------------------------------------------------------

// All buffers of a place that much further on, with what is in them.
static void skew(bench *b, int place, int64_t by) {
  for (size_t i = 0; i < b->f->parameter_count; i++) {
    if (b->f->slots[i].by_value) continue;
    b->parameters[place][i] += (uint64_t)by;
    good(kiln_device_upload(cx, device, b->parameters[place][i], b->in[place][i], (uint64_t)b->f->slots[i].bytes),
         "skew");
  }
  for (size_t i = 0; i < b->f->result_count; i++) b->results[place][i] += (uint64_t)by;
}

// One artifact, from its bytes: buffers of 16 and of 4 bytes' alignment in turns, in each way, with the same scratch
// memory.
START_TEST(buffers_of_any_alignment) {
  static const int64_t steps[] = {4, 4, 4, -12};
  bench b = open_bench_for(_i, 4);
  kiln_cuda_launch_params p = params_of(&b, 0);
  kiln_cuda_frozen *f = NULL;
  kiln_cuda_graph *g = NULL;
  EXPECT(kiln_artifact_less(b.a) && !kiln_artifact_less(kiln_artifact_less(b.a)), "%s", name_of(_i));
  good(kiln_cuda_frozen_create(cx, b.k, &p, &f), name_of(_i));
  good(kiln_cuda_graph_create(cx, b.k, &p, &g), name_of(_i));
  for (size_t turn = 0; turn < sizeof steps / sizeof *steps; turn++) {
    skew(&b, 0, steps[turn]);
    for (int way = 0; way < 3; way++) {
      spoil(&b, 0);
      p = params_of(&b, 0);
      if (way == 0) good(kiln_cuda_kernel_launch(cx, b.k, &p), name_of(_i));
      if (way == 1) good(kiln_cuda_frozen_bind(cx, f, &p), name_of(_i));
      if (way == 1) good(kiln_cuda_frozen_launch(cx, f, stream), name_of(_i));
      if (way == 2) good(kiln_cuda_graph_update(cx, g, &p), name_of(_i));
      if (way == 2) good(kiln_cuda_graph_launch(cx, g, stream), name_of(_i));
      judge(&b, 0, name_of(_i));
    }
  }
  kiln_cuda_frozen_destroy(&f);
  kiln_cuda_graph_destroy(&g);
  close_bench(&b);
}
END_TEST

// --- captures -------------------------------------------------------------------------------------------------------

// The caller's own use of the driver.
#define CALL(name, version, ...)                                                                                       \
  do {                                                                                                                 \
    CUresult code = ((CUresult(*) SIGNATURE_##name)kiln_sim_resolve(NULL, #name, version))(__VA_ARGS__);               \
    EXPECT(code == CUDA_SUCCESS, "%s gave %d", #name, code);                                                           \
  } while (0)
#define SIGNATURE_cuStreamBeginCapture        (CUstream, CUstreamCaptureMode)
#define SIGNATURE_cuStreamEndCapture          (CUstream, CUgraph *)
#define SIGNATURE_cuGraphInstantiateWithFlags (CUgraphExec *, CUgraph, unsigned long long)
#define SIGNATURE_cuGraphLaunch               (CUgraphExec, CUstream)
#define SIGNATURE_cuGraphExecDestroy          (CUgraphExec)
#define SIGNATURE_cuGraphDestroy              (CUgraph)
#define SIGNATURE_cuCtxPushCurrent            (CUcontext)
#define SIGNATURE_cuCtxPopCurrent             (CUcontext *)

// Both places, one behind the other, with their scratch memory.
START_TEST(captured) {
  bench b = open_bench(_i);
  CUgraph graph;
  CUgraphExec exec;
  CUcontext popped;
  good(kiln_cuda_kernel_prepare(cx, b.k), name_of(_i));
  CALL(cuCtxPushCurrent, 12000, kiln_device_context(device));
  CALL(cuStreamBeginCapture, 12000, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  for (int place = 0; place < PLACES; place++) {
    kiln_cuda_launch_params p = params_of(&b, place);
    good(kiln_cuda_kernel_fill_scratch(cx, b.k, stream, p.scratch), name_of(_i));
    good(kiln_cuda_kernel_launch(cx, b.k, &p), name_of(_i));
  }
  CALL(cuStreamEndCapture, 12000, stream, &graph);
  CALL(cuGraphInstantiateWithFlags, 12000, &exec, graph, 0);
  for (int turn = 0; turn < 2; turn++) {
    for (int place = 0; place < PLACES; place++) {
      spoil(&b, place);
      good(kiln_device_fill(cx, device, b.scratch[place], 0x5a, b.f->scratch_bytes), "scratch");
    }
    CALL(cuGraphLaunch, 12000, exec, stream);
    for (int place = 0; place < PLACES; place++) judge(&b, place, name_of(_i));
  }
  CALL(cuGraphExecDestroy, 12000, exec);
  CALL(cuGraphDestroy, 12000, graph);
  CALL(cuCtxPopCurrent, 12000, &popped);
  close_bench(&b);
}
END_TEST

// A first call inside of a capture would have to load code, which ends the capture (vllm#36587): it says what to do,
// and the capture goes on.
START_TEST(a_first_launch_in_a_capture_says_what_to_do) {
  bench b = open_bench(3);
  kiln_cuda_launch_params p = params_of(&b, 0);
  CUgraph graph;
  CUcontext popped;
  CALL(cuCtxPushCurrent, 12000, kiln_device_context(device));
  CALL(cuStreamBeginCapture, 12000, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  ck_assert_int_eq(kiln_cuda_kernel_launch(cx, b.k, &p), KILN_E_INVALID);
  EXPECT(strstr(last_finding(), "call kiln_cuda_kernel_prepare before the capture begins"), "%s", last_finding());
  CALL(cuStreamEndCapture, 12000, stream, &graph);
  CALL(cuGraphDestroy, 12000, graph);
  CALL(cuCtxPopCurrent, 12000, &popped);
  good(kiln_cuda_kernel_launch(cx, b.k, &p), "outside");
  judge(&b, 0, "outside");
  close_bench(&b);
}
END_TEST

int main(void) {
  enum { ALL = CONSTANT + 1 };
  return RUN_TESTS("launches", ONCE(setup, teardown), {launched_one_by_one, ALL}, {frozen_and_rebound, ALL},
                   {frozen_in_place_and_apart}, {refused_buffers_change_nothing}, {as_a_graph_and_updated, ALL},
                   {a_graph_in_place_and_apart}, {buffers_of_any_alignment, ALL}, {captured, ALL},
                   {a_first_launch_in_a_capture_says_what_to_do});
}
