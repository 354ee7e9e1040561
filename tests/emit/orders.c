// Fusions that only put elements into another order, between others: that few of them are launches, and that every
// result has the evaluator's bits, on the host and on the simulator. The evaluator reads the module as it is given,
// folds by layouts that it states, and knows of no others.
//
// 60 random modules (support/share.h); KILN_FUSION_SEED sets one seed to run alone and print.

#include "harness.h"
#include "support/bits.h"
#include "support/draw.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kiln_context *cx;

static void make(void) {
  cx = kiln_context_create(NULL);
}
static void drop(void) {
  kiln_context_destroy(&cx);
}

// --- random modules -------------------------------------------------------------------------------------------------

enum { MOST_DIMS = 5, MOST_VALUES = 12, MOST_ELEMENTS = 3000 };

typedef struct value {
  uint32_t rank;
  int64_t dims[MOST_DIMS];
  char layout[3 * MOST_DIMS];
  bool read;
} value;

typedef struct drawing {
  kl_sb bodies, entry;
  value v[MOST_VALUES];
  uint32_t n, parameters;
} drawing;

static int64_t count_of(const value *v) {
  int64_t n = 1;
  for (uint32_t d = 0; d < v->rank; d++) n *= v->dims[d];
  return n;
}

static void shuffle(uint32_t n, uint32_t *p) {
  for (uint32_t i = 0; i < n; i++) p[i] = i;
  for (uint32_t i = n; i-- > 1;) {
    uint32_t other = below(i + 1), t = p[i];
    p[i] = p[other];
    p[other] = t;
  }
}

static void draw_layout(value *v) {
  uint32_t order[MOST_DIMS];
  char *at = v->layout;
  shuffle(v->rank, order);
  bool rows = chance(40);
  at += sprintf(at, "{");
  for (uint32_t d = 0; d < v->rank; d++) at += sprintf(at, "%s%u", d ? "," : "", rows ? v->rank - 1 - d : order[d]);
  strcpy(at, "}");
}

static void put_type(kl_sb *b, const value *v) {
  kl_sb_puts(b, "f32[");
  for (uint32_t d = 0; d < v->rank; d++) kl_sbf(b, "%s%lld", d ? "," : "", (long long)v->dims[d]);
  kl_sbf(b, "]%s", v->layout);
}

static void put_list(kl_sb *b, const char *name, uint32_t n, const uint32_t *p) {
  kl_sbf(b, ", %s={", name);
  for (uint32_t i = 0; i < n; i++) kl_sbf(b, "%s%u", i ? "," : "", p[i]);
  kl_sb_puts(b, "}");
}

static value *fresh(drawing *d) {
  value *v = &d->v[d->n];
  memset(v, 0, sizeof *v);
  return v;
}

static void draw_parameter(drawing *d) {
  static const int64_t extents[] = {1, 2, 3, 4, 5, 6, 8, 12, 17, 32};
  value *v = fresh(d);
  do {
    v->rank = 1 + below(4);
    for (uint32_t i = 0; i < v->rank; i++) v->dims[i] = extents[below(sizeof extents / sizeof *extents)];
  } while (count_of(v) > MOST_ELEMENTS);
  draw_layout(v);
  kl_sbf(&d->entry, "  v%u = ", d->n);
  put_type(&d->entry, v);
  kl_sbf(&d->entry, " parameter(%u)\n", d->parameters++);
  d->n++;
}

// Begins the fusion of a value, whose parameter has a layout of its own.
static value begin_body(drawing *d, uint32_t from) {
  value own = d->v[from];
  d->v[from].read = true;
  if (chance(30)) draw_layout(&own);
  kl_sbf(&d->bodies, "f%u {\n  p = ", d->n);
  put_type(&d->bodies, &own);
  kl_sb_puts(&d->bodies, " parameter(0)\n");
  return own;
}

// The fusion's own layout is another one again.
static void end_body(drawing *d, uint32_t from, value *v) {
  kl_sb_puts(&d->bodies, "}\n");
  if (chance(40)) draw_layout(v);
  kl_sbf(&d->entry, "  v%u = ", d->n);
  put_type(&d->entry, v);
  kl_sbf(&d->entry, " fusion(v%u), kind=kLoop, calls=f%u\n", from, d->n);
  v->read = false;
  d->v[d->n++] = *v;
}

static void put_step(drawing *d, uint32_t step, bool last, const value *v) {
  kl_sbf(&d->bodies, last ? "  ROOT s%u = " : "  s%u = ", step);
  put_type(&d->bodies, v);
}

// Another shape of the same elements: a dim as two, or all in a row.
static void split(value *v) {
  uint32_t d = below(v->rank);
  if (v->rank == MOST_DIMS || chance(20)) {
    v->dims[0] = count_of(v);
    v->rank = 1;
    return;
  }
  int64_t low = 2 + below(3);
  if (v->dims[d] % low) low = 1;
  memmove(v->dims + d + 1, v->dims + d, (v->rank - d) * sizeof *v->dims);
  v->rank++;
  v->dims[d] /= low;
  v->dims[d + 1] = low;
}

static void draw_move(drawing *d, uint32_t from) {
  value v = begin_body(d, from);
  uint32_t steps = 1 + below(3);
  for (uint32_t s = 0; s < steps; s++) {
    value to = v;
    uint32_t order[MOST_DIMS], kind = below(4);
    char what[16] = "p";
    if (s) sprintf(what, "s%u", s - 1);
    shuffle(v.rank, order);
    for (uint32_t i = 0; kind == 0 && i < v.rank; i++) to.dims[i] = v.dims[order[i]];
    if (kind > 1) split(&to);
    draw_layout(&to);
    put_step(d, s, s + 1 == steps, &to);
    static const char *const ops[] = {"transpose", "copy", "reshape", "bitcast"};
    kl_sbf(&d->bodies, " %s(%s)", ops[kind], what);
    if (kind == 0) put_list(&d->bodies, "dimensions", v.rank, order);
    kl_sb_puts(&d->bodies, "\n");
    v = to;
  }
  end_body(d, from, &v);
}

static void draw_unary(drawing *d, uint32_t from) {
  value v = begin_body(d, from), to = v;
  draw_layout(&to);
  put_step(d, 0, true, &to);
  kl_sb_puts(&d->bodies, chance(50) ? " negate(p)\n" : " multiply(p, p)\n");
  end_body(d, from, &to);
}

static void draw_sum(drawing *d, uint32_t from) {
  value v = begin_body(d, from), to = {.rank = 0};
  uint32_t dims[MOST_DIMS], n = 0;
  for (uint32_t i = 0; i < v.rank; i++) {
    if (chance(50))
      dims[n++] = i;
    else
      to.dims[to.rank++] = v.dims[i];
  }
  draw_layout(&to);
  kl_sb_puts(&d->bodies, "  z = f32[] constant(0)\n");
  put_step(d, 0, true, &to);
  kl_sb_puts(&d->bodies, " reduce(p, z), to_apply=add");
  put_list(&d->bodies, "dimensions", n, dims);
  kl_sb_puts(&d->bodies, "\n");
  end_body(d, from, &to);
}

static void draw_product(drawing *d, uint32_t from) {
  const value *x = &d->v[from];
  int64_t rest = x->rank ? count_of(x) / (x->dims[x->rank - 1] ? x->dims[x->rank - 1] : 1) : MOST_ELEMENTS;
  if (!x->rank || 2 * x->rank - 2 > MOST_DIMS || rest * rest > MOST_ELEMENTS) return draw_unary(d, from);
  value v = begin_body(d, from), to = {.rank = 2 * v.rank - 2};
  for (uint32_t i = 0; i + 1 < v.rank; i++) to.dims[i] = to.dims[i + v.rank - 1] = v.dims[i];
  draw_layout(&to);
  put_step(d, 0, true, &to);
  kl_sbf(&d->bodies, " dot(p, p), lhs_contracting_dims={%u}, rhs_contracting_dims={%u}\n", v.rank - 1, v.rank - 1);
  end_body(d, from, &to);
}

// In ENTRY itself, as the bytes lie.
static void draw_bitcast(drawing *d, uint32_t from) {
  value to = d->v[from];
  d->v[from].read = true;
  if (!to.rank) return draw_unary(d, from);
  split(&to);
  draw_layout(&to);
  to.read = false;
  kl_sbf(&d->entry, "  v%u = ", d->n);
  put_type(&d->entry, &to);
  kl_sbf(&d->entry, " bitcast(v%u)\n", from);
  d->v[d->n++] = to;
}

static void draw_module(drawing *d) {
  uint32_t steps = 3 + below(MOST_VALUES - 5), results = 0;
  draw_parameter(d);
  if (chance(40)) draw_parameter(d);
  for (uint32_t i = 0; i < steps; i++) {
    uint32_t from = chance(60) ? d->n - 1 : below(d->n), kind = below(12);
    if (kind < 6 && d->v[from].rank)
      draw_move(d, from);
    else if (kind < 7)
      draw_bitcast(d, from);
    else
      (kind < 9 ? draw_sum : kind < 10 ? draw_product : draw_unary)(d, from);
  }
  kl_sb types, values;
  kl_sb_init(&types, d->entry.cx);
  kl_sb_init(&values, d->entry.cx);
  for (uint32_t i = 0; i < d->n; i++) {
    if (d->v[i].read && !chance(15)) continue;
    kl_sb_puts(&types, results ? ", " : "");
    put_type(&types, &d->v[i]);
    kl_sbf(&values, results++ ? ", v%u" : "v%u", i);
  }
  kl_sbf(&d->entry, "  ROOT r = (%s) tuple(%s)\n", types.p, values.p);
  kl_sb_free(&types);
  kl_sb_free(&values);
}

static void put_module(kl_sb *text) {
  drawing d = {.n = 0};
  kl_sb_init(&d.bodies, text->cx);
  kl_sb_init(&d.entry, text->cx);
  draw_module(&d);
  kl_sbf(text, "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n%s",
         d.bodies.p ? d.bodies.p : "");
  kl_sbf(text, "ENTRY e {\n%s}\n", d.entry.p);
  kl_sb_free(&d.bodies);
  kl_sb_free(&d.entry);
}

// --- their bits -----------------------------------------------------------------------------------------------------

static void compare(const kiln_module *m, void *const *want, void *const *got, const char *where, const char *text) {
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++)
    EXPECT(same_bits(KILN_F32, want[i], got[i], (size_t)kiln_module_result_leaf_bytes(m, i)),
           "result %zu on %s has other bits than the evaluator's\n%s", i, where, text);
}

static void check_bits(const kiln_module *m, unsigned target, const char *text) {
  void *in[MOST_VALUES] = {NULL}, *want[MOST_VALUES] = {NULL}, *got[MOST_VALUES] = {NULL};
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(m); i++) {
    int64_t bytes = kiln_module_parameter_leaf_bytes(m, i);
    in[i] = aligned_alloc(16, ((size_t)bytes + 31) & ~(size_t)15);
    gen_fill((unsigned)i, KILN_F32, bytes, false, in[i]);
  }
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) {
    size_t room = ((size_t)kiln_module_result_leaf_bytes(m, i) + 31) & ~(size_t)15;
    want[i] = aligned_alloc(16, room);
    got[i] = aligned_alloc(16, room);
  }
  if (kiln_module_eval(cx, m, (const void *const *)in, want, NULL) != KILN_OK) give_up(0, "eval", cx, text);
  run_on(cx, m, HOST, 2, 0, (const void *const *)in, got, text);
  compare(m, want, got, "the host", text);
  run_on(cx, m, target, 1, 0, (const void *const *)in, got, text);
  compare(m, want, got, "the simulator", text);
  for (size_t i = 0; i < MOST_VALUES; i++) free(in[i]), free(want[i]), free(got[i]);
}

typedef struct told {
  size_t launches, layouts; // layouts: lines that say of a move that it is none
} told;

static told compile(const kiln_module *m, const char *target, const char *text) {
  kiln_compile_params p = {
      .struct_size = sizeof p, .target = target, .keep = KILN_KEEP_EXPLAIN, .separate_launches = true};
  kiln_artifact *a = NULL;
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, target, cx, text);
  told t = {.launches = kiln_artifact_manifest(a)->launch_count};
  const char *at = kiln_artifact_text(a, KILN_TEXT_EXPLAIN, NULL);
  for (; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) t.layouts += strncmp(at, "layout ", 7) == 0;
  kiln_artifact_destroy(&a);
  return t;
}

static kiln_module *parse(const char *text) {
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "orders.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, "parse", cx, text);
  return m;
}

static unsigned all, with_layouts;

static void one(unsigned number, bool print) {
  kl_sb text;
  kl_sb_init(&text, cx);
  seed = number * 0x9e3779b97f4a7c15ull;
  put_module(&text);
  if (print) puts(text.p);
  kiln_module *m = parse(text.p);
  check_bits(m, number % TARGETS, text.p);
  with_layouts += compile(m, "sm_90", text.p).layouts > 0;
  all++;
  kiln_module_destroy(&m);
  kl_sb_free(&text);
}

enum { SLICES = 4 };

START_TEST(random_orders) {
  const char *alone = getenv("KILN_FUSION_SEED");
  if (alone && _i == 0) one((unsigned)strtoul(alone, NULL, 10), true);
  for (uint64_t s = (uint64_t)_i, n = alone ? 0 : share_of(60); s < n; s += SLICES) one((unsigned)s, false);
}
END_TEST

START_TEST(many_move_nothing) {
  if (getenv("KILN_FUSION_SEED")) return;
  printf("# layouts are chosen in %u of %u modules\n", with_layouts, all);
  ck_assert_uint_ge(3 * with_layouts, all);
}
END_TEST

// --- what is chosen -------------------------------------------------------------------------------------------------

#define ADD  "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
#define TURN "turn { p = f32[64,48] parameter(0) ROOT t = f32[48,64] transpose(p), dimensions={1,0} }\n"
#define ROWS                                                                                                           \
  "rows { p = f32[48,64] parameter(0) z = f32[] constant(0)\n"                                                         \
  "  ROOT s = f32[48] reduce(p, z), dimensions={1}, to_apply=add }\n"
#define SAME "same { p = f32[64,48] parameter(0) ROOT n = f32[64,48] negate(p) }\n"

typedef struct chosen {
  const char *what, *text;
  told want;
} chosen;
static const chosen choices[] = {
    {"what is written lies as it is read",
     ADD TURN ROWS SAME "ENTRY e {\n  p = f32[64,48] parameter(0)\n  a = f32[64,48] fusion(p), kind=kLoop, calls=same\n"
                        "  t = f32[48,64] fusion(a), kind=kLoop, calls=turn\n"
                        "  ROOT s = f32[48] fusion(t), kind=kInput, calls=rows\n}\n",
     {2, 1}},
    {"a parameter is read as it lies",
     ADD TURN ROWS "ENTRY e {\n  p = f32[64,48] parameter(0)\n  t = f32[48,64] fusion(p), kind=kLoop, calls=turn\n"
                   "  ROOT s = f32[48] fusion(t), kind=kInput, calls=rows\n}\n",
     {1, 1}},
    {"a parameter that lies otherwise than its values does not lie as they do",
     "HloModule m, entry_computation_layout={(f32[64,48]{0,1})->f32[48]{0}}\n" ADD TURN ROWS
     "ENTRY e {\n  p = f32[64,48] parameter(0)\n  t = f32[48,64] fusion(p), kind=kLoop, calls=turn\n"
     "  ROOT s = f32[48] fusion(t), kind=kInput, calls=rows\n}\n",
     {2, 0}},
    {"results lie as ENTRY says",
     TURN "ENTRY e {\n  p = f32[64,48] parameter(0)\n  ROOT t = f32[48,64] fusion(p), kind=kLoop, calls=turn\n}\n",
     {1, 0}},
    {"a value whose bytes are looked at lies as it did",
     TURN SAME "ENTRY e {\n  p = f32[64,48] parameter(0)\n  a = f32[64,48] fusion(p), kind=kLoop, calls=same\n"
               "  b = f32[3072] bitcast(a)\n  t = f32[48,64] fusion(a), kind=kLoop, calls=turn\n"
               "  ROOT r = (f32[3072], f32[48,64]) tuple(b, t)\n}\n",
     {2, 0}},
    {"a copy to a layout that is there",
     "same { p = f32[64,48]{0,1} parameter(0) ROOT n = f32[64,48]{0,1} negate(p) }\n"
     "copy { p = f32[64,48]{0,1} parameter(0) ROOT n = f32[64,48]{0,1} copy(p) }\n"
     "ENTRY e {\n  p = f32[64,48]{0,1} parameter(0)\n  a = f32[64,48]{0,1} fusion(p), kind=kLoop, calls=copy\n"
     "  ROOT b = f32[64,48]{0,1} fusion(a), kind=kLoop, calls=same\n}\n",
     {1, 1}},
    {"one of a fusion's results",
     "two { p = f32[64,48] parameter(0) n = f32[64,48] negate(p) s = f32[64,48] multiply(p, p)\n"
     "  ROOT t = (f32[64,48], f32[64,48]) tuple(n, s) }\n" TURN
     "ENTRY e {\n  p = f32[64,48] parameter(0)\n  t = (f32[64,48], f32[64,48]) fusion(p), kind=kLoop, calls=two\n"
     "  a = f32[64,48] get-tuple-element(t), index=0\n  b = f32[64,48] get-tuple-element(t), index=1\n"
     "  v = f32[48,64] fusion(b), kind=kLoop, calls=turn\n  ROOT r = (f32[64,48], f32[48,64]) tuple(a, v)\n}\n",
     {1, 1}},
};

START_TEST(orders_are_chosen) {
  const chosen *x = &choices[_i];
  char text[2000];
  snprintf(text, sizeof text, "%s%s", strncmp(x->text, "HloModule", 9) == 0 ? "" : "HloModule m\n", x->text);
  kiln_module *m = parse(text);
  told got = compile(m, "sm_90", text), host = compile(m, "host", text);
  EXPECT(got.launches == x->want.launches && got.layouts == x->want.layouts, "%s: %zu launches, %zu layouts", x->what,
         got.launches, got.layouts);
  EXPECT(host.layouts == got.layouts, "%s: %zu layouts on the host", x->what, host.layouts);
  check_bits(m, 3, text);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("orders", EACH(make, drop), {random_orders, SLICES}, {many_move_nothing},
                   {orders_are_chosen, KL_COUNT(choices)});
}
