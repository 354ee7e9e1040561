// Memory that runs out: allocations of every operation fail, one of each in a process of its own: the first twenty, and
// of further ones one in four (support/share.h). Small metadata may have the hook's last word; what fails with a status
// has a diagnostic, makes nothing, and gives back all it took.
#include "handles.h"
#include "support/share.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// In cx: what the operations start from.
static kiln_module *tuples, *two;
static kiln_eval_params threads = {.struct_size = sizeof threads, .threads = 1};

// %s: values enough for an allocation of their own.
enum { MANY = 3000 };
static char text[4 * MANY];
static const char text_format[] =
    "HloModule m\n"
    "f { p = s4[64] parameter(0) q = f32[64] convert(p) c = f32[64] iota(), iota_dimension=0\n"
    "  b = s32[%d] constant({%s}) d = s32[64] slice(b), slice={[0:64]} g = f32[64] convert(d)\n"
    "  k = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}}) s = f32[1,1] slice(k), slice={[0:1],[0:1]}\n"
    "  t = f32[] reshape(s) u = f32[64] broadcast(t), dimensions={} v = f32[64] add(q, u)\n"
    "  w = f32[64] add(v, g)\n"
    "  ROOT r = f32[64] add(w, c) }\n"
    "ENTRY e { p = s4[64] parameter(0) ROOT r = f32[64] fusion(p), kind=kLoop, calls=f }\n";
static const char tuple_text[] =
    "HloModule m, input_output_alias={ {1}: (0, {1}, may-alias) }\n"
    "ENTRY e { p = (f32[64], f32[64]) parameter(0) a = f32[64] get-tuple-element(p), index=0\n"
    "  b = f32[64] get-tuple-element(p), index=1 t = (f32[64], f32[64]) tuple(a, b) ROOT r = ((f32[64], f32[64]), "
    "f32[64]) "
    "tuple(t, a) }\n";
static const char two_text[] = "HloModule m\nf { p = f32[64] parameter(0) ROOT r = f32[64] negate(p) }\n"
                               "g { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"
                               "ENTRY e { p = f32[64] parameter(0) a = f32[64] fusion(p), kind=kLoop, calls=f\n"
                               "  ROOT b = f32[64] fusion(a), kind=kLoop, calls=f }\n";
static const char work_text[] =
    "HloModule m\ng { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"
    "h { x = s8[] parameter(0) y = s8[] parameter(1) ROOT z = pred[] compare(x, y), direction=LT }\n"
    "ENTRY e { p = s4[64] parameter(0) q = f32[64] convert(p) m = f32[64] map(q, q), dimensions={0}, to_apply=g\n"
    "  z = f32[] constant(0) r = f32[] reduce(m, z), dimensions={0}, to_apply=g w = f32[64] reduce-window(m, z), "
    "window={size=3 pad=1_1}, to_apply=g i = s32[4,1] iota(), iota_dimension=0 u = f32[4] broadcast(r), dimensions={}\n"
    "  s = f32[64] scatter(w, i, u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=g\n"
    "  o = s8[64] convert(p) l = s8[64] sort(o), dimensions={0}, to_apply=h f = f32[64] convert(l)\n"
    "  d = f32[] dot(s, f), lhs_contracting_dims={0}, rhs_contracting_dims={0} e = f32[64] broadcast(d), "
    "dimensions={}\n"
    "  ROOT a = f32[64] add(e, s) }\n";
static kiln_module *work;
static const char map_text[] = "(d0) -> (d0 mod 8 + (d0 floordiv 8) * 8), domain: d0 in [0, 255]";
static kiln_map *map;
static kiln_layout *layout;
static const char layout_text[] = "f32[9,17]{1,0:T(*,8)(2,4)}";

static void setup(void) {
  char values[2 * MANY];
  for (int i = 0; i < MANY; i++) values[2 * i] = '7', values[2 * i + 1] = i + 1 < MANY ? ',' : 0;
  snprintf(text, sizeof text, text_format, MANY, values);
  make_context();
  m = parse(text);
  tuples = parse(tuple_text);
  two = parse(two_text);
  work = parse(work_text);
  ck_assert_int_eq(kiln_map_parse(cx, "m", map_text, sizeof map_text - 1, &map), KILN_OK);
  ck_assert_int_eq(kiln_layout_parse(cx, layout_text, &layout), KILN_OK);
  open_handles(two, m);
}

static void teardown(void) {
  close_handles();
  kiln_module_destroy(&tuples);
  kiln_module_destroy(&two);
  kiln_module_destroy(&work);
  kiln_map_destroy(&map);
  kiln_layout_destroy(&layout);
  drop_context();
}

// --- the operations: each with a context whose memory fails, and each destroys what it made -------------------------

// Made if and only if it succeeded.
#define MADE(st, o) ((st) == KILN_OK) == ((o) != NULL) ? (st) : KILN_E_INTERNAL

#define MAKES_MODULE(name, call)                                                                                       \
  static kiln_status name(kiln_context *own) {                                                                         \
    kiln_module *o = (kiln_module *)in;                                                                                \
    kiln_status st = call;                                                                                             \
    st = MADE(st, o);                                                                                                  \
    if (o != (kiln_module *)in) kiln_module_destroy(&o);                                                               \
    return st;                                                                                                         \
  }
MAKES_MODULE(parse_text, kiln_module_parse(own, "m", text, strlen(text), &o))
MAKES_MODULE(parse_tuples, kiln_module_parse(own, "m", tuple_text, sizeof tuple_text - 1, &o))
MAKES_MODULE(parse_work, kiln_module_parse(own, "m", work_text, sizeof work_text - 1, &o))
MAKES_MODULE(clone, kiln_module_clone(own, m, &o))
MAKES_MODULE(remove_dead, kiln_module_remove_dead(own, m, &o))
MAKES_MODULE(inlined, kiln_module_inline(own, m, &o))
MAKES_MODULE(flatten, kiln_module_flatten_tuples(own, tuples, &o))
MAKES_MODULE(extract, kiln_module_extract(own, m, "r", &o))

#define MAKES_HANDLE(name, T, destroy, call)                                                                           \
  static kiln_status name(kiln_context *own) {                                                                         \
    T *o = (T *)in;                                                                                                    \
    kiln_status st = call;                                                                                             \
    st = MADE(st, o);                                                                                                  \
    if (o != (T *)in) destroy(&o);                                                                                     \
    return st;                                                                                                         \
  }
#define MAKES_MAP(name, call) MAKES_HANDLE(name, kiln_map, kiln_map_destroy, call)
MAKES_MAP(parse_map, kiln_map_parse(own, "m", map_text, sizeof map_text - 1, &o))
MAKES_MAP(simplify_map, kiln_map_simplify(own, map, &o))
MAKES_MAP(remove_unused_of_map, kiln_map_remove_unused(own, map, &o))
MAKES_MAP(compose_maps, kiln_map_compose(own, map, map, &o))
MAKES_MAP(invert_map, kiln_map_invert(own, map, &o))
MAKES_MAP(map_of_layout, kiln_layout_map(own, layout, &o))
MAKES_MAP(map_to_indices, kiln_layout_inverse_map(own, layout, &o))

MAKES_HANDLE(parse_layout, kiln_layout, kiln_layout_destroy, kiln_layout_parse(own, layout_text, &o))
MAKES_HANDLE(index_module, kiln_indexing, kiln_indexing_destroy, kiln_module_index(own, work, NULL, &o))
MAKES_HANDLE(tile_module, kiln_tiling, kiln_tiling_destroy, kiln_tiling_make(own, work, NULL, &o))
MAKES_HANDLE(search_tiles, kiln_tile_choices, kiln_tile_choices_destroy, kiln_tile_search(own, work, NULL, &o))

#define MAKES_TEXT(name, call)                                                                                         \
  static kiln_status name(kiln_context *own) {                                                                         \
    char *o = (char *)in;                                                                                              \
    size_t n = 1;                                                                                                      \
    kiln_status st = call;                                                                                             \
    st = MADE(st, o);                                                                                                  \
    if (o != (char *)in) kiln_text_free(own, o, n);                                                                    \
    return st;                                                                                                         \
  }
MAKES_TEXT(print, kiln_module_print(own, m, &o, &n))
MAKES_TEXT(print_map, kiln_map_print(own, map, KILN_MAP_LINES, &o, &n))
MAKES_TEXT(canonical, kiln_module_canonical_print(own, m, &o, &n))

static kiln_status hash(kiln_context *own) {
  uint8_t h[KILN_HASH_SIZE];
  return kiln_module_hash(own, m, h);
}

static kiln_status build(kiln_context *own) {
  static const float values[5000];
  kiln_module *o = (kiln_module *)in;
  kiln_builder *b = kiln_builder_create(own, "m");
  kiln_builder_begin(b, "main");
  kiln_value c = kiln_build_constant(b, kiln_type_text(b, "f32[5000]"), values, sizeof values, NULL);
  kiln_build_annotate(b, c, "metadata", "{op_name=\"c\"}");
  kiln_builder_annotate_module(b, "num_partitions", "2");
  c = kiln_build(b, "negate", KILN_VALUES(c), KILN_NO_TYPE, KILN_NONE);
  kiln_builder_end(b, c, true);
  kiln_status st = kiln_builder_finish(b, &o);
  st = MADE(st, o);
  kiln_builder_destroy(&b);
  if (o != (kiln_module *)in) kiln_module_destroy(&o);
  return st;
}

static kiln_status eval(kiln_context *own) {
  return kiln_module_eval(own, work, args, results, &threads);
}
static kiln_status check(kiln_context *own) {
  size_t n = 7;
  kiln_mismatch x[1];
  kiln_status st = kiln_module_check(own, work, args, (const void *const *)results, x, 1, &n, &threads);
  return st == KILN_OK || n == 0 ? st : KILN_E_INTERNAL;
}

static kiln_status compile_for(kiln_context *own, const char *target) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .keep = KILN_KEEP_PLAN | KILN_KEEP_LLVM};
  kiln_artifact *o = (kiln_artifact *)in;
  kiln_status st = kiln_compile(own, two, &p, &o);
  st = MADE(st, o);
  if (o != (kiln_artifact *)in) kiln_artifact_destroy(&o);
  return st;
}
static kiln_status compile_gpu(kiln_context *own) {
  return compile_for(own, "sm_90");
}
static kiln_status compile_host(kiln_context *own) {
  return compile_for(own, "host");
}
static kiln_status compile_check(kiln_context *own) {
  kiln_compile_params p = {.struct_size = sizeof p, .keep = KILN_KEEP_PLAN};
  return kiln_compile_check(own, two, &p);
}
static kiln_status load(kiln_context *own) {
  kiln_kernel *o = (kiln_kernel *)in;
  kiln_status st = kiln_kernel_load(own, host, &o);
  st = MADE(st, o);
  if (o != (kiln_kernel *)in) kiln_kernel_destroy(&o);
  return st;
}
static kiln_status run(kiln_context *own) {
  return kiln_kernel_run(own, on_host, args, results, NULL);
}
static kiln_status simulate(kiln_context *own) {
  static const char ptx[] =
      ".version 7.8\n.target sm_80\n.address_size 64\n.visible .global .b32 g[64];\n"
      ".visible .entry k(.param .u64 a) { .reg .b64 %a; ld.param.u64 %a, [a]; st.global.u32 [%a], 1; ret; }\n";
  kiln_simulator *s = (kiln_simulator *)in;
  kiln_sim_module *sm;
  kiln_sim_kernel *k;
  uint64_t at = 0;
  const void *arguments[] = {&at};
  kiln_sim_launch_params p = {
      .struct_size = sizeof p, .grid = {3}, .block = {40}, .arguments = arguments, .workers = 1};
  kiln_status st = kiln_simulator_open(own, &s);
  st = MADE(st, s);
  if (st == KILN_OK) st = kiln_simulator_load(own, s, "m", ptx, sizeof ptx - 1, &sm);
  if (st == KILN_OK) st = kiln_sim_module_kernel(own, sm, "k", &k);
  if (st == KILN_OK) st = kiln_simulator_alloc(own, s, 64, &at);
  if (st == KILN_OK) st = kiln_sim_kernel_launch(own, k, &p, NULL);
  kiln_profile *counted = (kiln_profile *)in;
  if (st == KILN_OK) {
    st = kiln_sim_kernel_profile(own, k, &p, NULL, NULL, &counted);
    st = MADE(st, counted);
  }
  if (counted != (kiln_profile *)in) kiln_profile_destroy(&counted);
  p.checks = KILN_SIM_CHECK_ALL;
  if (st == KILN_OK) st = kiln_sim_kernel_launch(own, k, &p, NULL);
  if (s != (kiln_simulator *)in) kiln_simulator_close(&s);
  return st;
}
static kiln_status open_driver(kiln_context *own) {
  kiln_driver_params p = {.struct_size = sizeof p, .resolve = standin_resolve};
  kiln_driver *o = (kiln_driver *)in;
  kiln_status st = kiln_driver_open(own, &p, &o);
  st = MADE(st, o);
  if (o != (kiln_driver *)in) kiln_driver_close(&o);
  return st;
}
static kiln_status open_device(kiln_context *own) {
  kiln_device *o = (kiln_device *)in;
  kiln_status st = kiln_device_open(own, driver, 0, &o);
  st = MADE(st, o);
  if (o != (kiln_device *)in) kiln_device_close(&o);
  return st;
}
static kiln_status make_kernel(kiln_context *own) {
  kiln_cuda_kernel *o = (kiln_cuda_kernel *)in;
  kiln_status st = kiln_cuda_kernel_create(own, driver, gpu, kiln_device_context(device), &o);
  st = MADE(st, o);
  if (o != (kiln_cuda_kernel *)in) kiln_cuda_kernel_destroy(&o);
  return st;
}
static kiln_status launch(kiln_context *own) {
  const uint64_t from = (uintptr_t)in, to = (uintptr_t)out;
  kiln_cuda_launch_params p = {.struct_size = sizeof p, .parameters = &from, .results = &to};
  return kiln_cuda_kernel_launch(own, on_gpu, &p);
}

#define ROW(f)                                                                                                         \
  { #f, f }
static const struct {
  const char *name;
  kiln_status (*run)(kiln_context *own);
} rows[] = {
    ROW(index_module), ROW(tile_module),   ROW(search_tiles),
    ROW(parse_map),    ROW(simplify_map),  ROW(remove_unused_of_map),
    ROW(compose_maps), ROW(invert_map),    ROW(print_map),
    ROW(parse_layout), ROW(map_of_layout), ROW(map_to_indices),
    ROW(parse_text),   ROW(parse_tuples),  ROW(parse_work),
    ROW(print),        ROW(canonical),     ROW(hash),
    ROW(clone),        ROW(remove_dead),   ROW(inlined),
    ROW(flatten),      ROW(extract),       ROW(build),
    ROW(eval),         ROW(check),         ROW(compile_gpu),
    ROW(compile_host), ROW(compile_check), ROW(load),
    ROW(run),          ROW(open_driver),   ROW(open_device),
    ROW(make_kernel),  ROW(launch),        ROW(simulate),
};
enum { ROWS = sizeof rows / sizeof rows[0] };

// --- memory that fails once -----------------------------------------------------------------------------------------

enum { FEWER = 10, LAST_WORD, STATUS, SURVIVED, NO_FINDING, LEAK, WRONG_STATUS };

typedef struct hook {
  size_t calls, fail_at, alive;
} hook;

static void *resize(void *user, void *p, size_t old_size, size_t size) {
  hook *h = user;
  if (size && ++h->calls == h->fail_at) return NULL;
  h->alive += size - old_size;
  if (size) return realloc(p, size);
  free(p);
  return NULL;
}

static void last_word(void *user, size_t size) {
  _exit(LAST_WORD);
}

// The context itself is made before the counting begins.
static int child(int row, size_t fail_at) {
  hook h = {0};
  open_gpu();
  kiln_context_params p = {.struct_size = sizeof p, .allocator = {&h, resize, last_word}};
  kiln_context *own = kiln_context_create(&p);
  h.calls = 0;
  h.fail_at = fail_at;
  kiln_status st = rows[row].run(own);
  bool reached = h.calls >= fail_at, said = false;
  for (size_t i = 0; i < kiln_diagnostics_count(own); i++)
    said |= kiln_diagnostics_get(own, i)->status == st || kiln_diagnostics_get(own, i)->severity == KILN_NOTE;
  kiln_context_destroy(&own);
  if (h.alive) return LEAK;
  if (!reached) return st == KILN_OK ? FEWER : WRONG_STATUS;
  if (st == KILN_OK) return SURVIVED;
  if (st != KILN_E_MEMORY) return WRONG_STATUS;
  return said ? STATUS : NO_FINDING;
}

static int outcome(int row, size_t fail_at) {
  int status = 0;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) _exit(child(row, fail_at));
  ck_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
  ck_assert_msg(WIFEXITED(status), "%s: allocation %zu fails: signal %d", rows[row].name, fail_at, WTERMSIG(status));
  return WEXITSTATUS(status);
}

enum { ALWAYS = 20, EVERY = 4 };

START_TEST(allocations_fail_once) {
  size_t n = 1;
  for (int got = 0; got != FEWER; n++) {
    if (n > ALWAYS && !share_has(n, EVERY)) continue;
    got = outcome(_i, n);
    ck_assert_msg(got != NO_FINDING, "%s: allocation %zu fails: a status without a diagnostic", rows[_i].name, n);
    ck_assert_msg(got != LEAK, "%s: allocation %zu fails: memory is left", rows[_i].name, n);
    ck_assert_msg(got == FEWER || got == LAST_WORD || got == STATUS || got == SURVIVED,
                  "%s: allocation %zu fails: not KILN_E_MEMORY, or something made (%d)", rows[_i].name, n, got);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("memory", ONCE(setup, teardown), {allocations_fail_once, ROWS});
}
