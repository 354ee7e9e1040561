// Transposes: random modules on the host and on the simulator against the evaluator; their PTX through ptxas. All
// permutations and layouts, every type, sizes that fill tiles and such that do not, dimensions that move together;
// values made before and behind, results in both orders, several values across, and transposes that no opcode names.
//
// 40 (support/share.h); KILN_FUSION_SEED sets one seed to run alone and print.

#include "harness.h"
#include "support/draw.h"
#include "support/share.h"
#include "support/suite.h"
#include "support/transposes.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct array {
  uint32_t rank;
  int64_t dims[5];
  char layout[24]; // with its braces; empty: the default
} array;

static const char *const types[] = {"f32", "f32",  "bf16", "f16", "f64",      "s32", "u8",  "s8",      "u64",
                                    "c64", "pred", "c128", "s4",  "f8e4m3fn", "u2",  "s16", "f4e2m1fn"};

static bool is(const char *type, const char *name) {
  return strcmp(type, name) == 0;
}

static int64_t count_of(const array *a) {
  int64_t n = 1;
  for (uint32_t d = 0; d < a->rank; d++) n *= a->dims[d];
  return n;
}

static void shuffle(uint32_t *order, uint32_t n) {
  for (uint32_t d = 0; d < n; d++) order[d] = d;
  for (uint32_t d = n; d-- > 1;) {
    uint32_t other = below(d + 1), t = order[d];
    order[d] = order[other];
    order[other] = t;
  }
}

static void draw_layout(array *a) {
  uint32_t order[5];
  a->layout[0] = 0;
  if (a->rank < 2 || chance(70)) return;
  shuffle(order, a->rank);
  char *at = a->layout;
  for (uint32_t d = 0; d < a->rank; d++) at += sprintf(at, "%c%u", d ? ',' : '{', order[d]);
  strcpy(at, "}");
}

// Some dimensions are long enough for a tile, whole or not.
static void draw_array(array *a) {
  static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 16, 24, 31, 32, 33, 40, 48, 64, 65, 96, 100, 128, 130};
  *a = (array){.rank = 2 + below(3)};
  for (uint32_t d = 0; d < a->rank; d++) a->dims[d] = extents[below(sizeof extents / sizeof *extents)];
  while (count_of(a) > 30000) a->dims[below(a->rank)] = 1 + below(5);
  while (count_of(a) < 5000) a->dims[below(a->rank)] *= 2;
  draw_layout(a);
}

static void put_shape(kl_sb *b, const char *type, const array *a) {
  kl_sbf(b, "%s[", type);
  for (uint32_t d = 0; d < a->rank; d++) kl_sbf(b, "%s%lld", d ? "," : "", (long long)a->dims[d]);
  kl_sbf(b, "]%s", a->layout);
}

static void put_line(kl_sb *b, const char *name, const char *type, const array *a, const char *what) {
  kl_sbf(b, "  %s = ", name);
  put_shape(b, type, a);
  kl_sbf(b, " %s\n", what);
}

static void put_transpose(kl_sb *b, const char *name, const char *type, const array *from, const uint32_t *order,
                          const char *of, array *to) {
  *to = (array){.rank = from->rank};
  for (uint32_t d = 0; d < to->rank; d++) to->dims[d] = from->dims[order[d]];
  draw_layout(to);
  kl_sbf(b, "  %s = ", name);
  put_shape(b, type, to);
  kl_sbf(b, " transpose(%s), dimensions={", of);
  for (uint32_t d = 0; d < to->rank; d++) kl_sbf(b, "%s%u", d ? "," : "", order[d]);
  kl_sb_puts(b, "}\n");
}

// An op on every element that the type has.
static const char *unary(const char *type) {
  if (is(type, "pred") || is(type, "u2") || is(type, "u8") || is(type, "u64")) return "not";
  return "negate";
}
static const char *binary(const char *type) {
  return is(type, "pred") ? "xor" : "add";
}

static void put_tuple(kl_sb *b, const char *type, uint32_t n, const array *const *shapes, const char *const *names) {
  kl_sb_puts(b, "  ROOT t = (");
  for (uint32_t i = 0; i < n; i++) {
    kl_sb_puts(b, i ? ", " : "");
    put_shape(b, type, shapes[i]);
  }
  kl_sb_puts(b, ") tuple(");
  for (uint32_t i = 0; i < n; i++) kl_sbf(b, "%s%s", i ? ", " : "", names[i]);
  kl_sb_puts(b, ")\n");
}

// A text of one op of one operand.
static const char *call(kl_sb *b, const char *op, const char *of) {
  static char text[80];
  (void)b;
  snprintf(text, sizeof text, "%s(%s)", op, of);
  return text;
}

// Two arrays across, joined before or behind, with one that is not.
static void put_several(kl_sb *b, const char *type, const array *a, const uint32_t *order) {
  array to, other;
  bool before = chance(50);
  put_line(b, "y", type, a, "parameter(1)");
  if (before) put_line(b, "xy", type, a, is(type, "pred") ? "xor(x, y)" : "add(x, y)");
  put_transpose(b, "p", type, a, order, before ? "xy" : "x", &to);
  other = to;
  draw_layout(&other);
  put_line(b, "z", type, &other, "parameter(2)");
  if (!before) {
    put_transpose(b, "q", type, a, order, "y", &to);
    put_line(b, "pq", type, &to, is(type, "pred") ? "xor(p, q)" : "add(p, q)");
  }
  char text[40];
  snprintf(text, sizeof text, "%s(%s, z)", binary(type), before ? "p" : "pq");
  put_line(b, "ROOT r", type, &to, text);
}

// Results in both orders.
static void put_side(kl_sb *b, const char *type, const array *a, const uint32_t *order) {
  array to;
  put_line(b, "e", type, a, call(b, unary(type), "x"));
  put_transpose(b, "p", type, a, order, "e", &to);
  put_line(b, "r", type, &to, call(b, unary(type), "p"));
  bool first = chance(50);
  const array *shapes[] = {first ? a : &to, first ? &to : a, &to};
  const char *names[] = {first ? "e" : "r", first ? "r" : "e", "p"};
  put_tuple(b, type, 2 + below(2), shapes, names);
}

// Of merged dimensions, of a slice that data places, in a larger array, of both orders at once.
static void put_hidden(kl_sb *b, const char *type, const array *a, const uint32_t *order) {
  array to, flat = {.rank = 2, .dims = {a->dims[0], count_of(a) / a->dims[0]}}, turned = flat;
  switch (below(4)) {
  case 0:
    put_line(b, "f", type, &flat, "reshape(x)");
    put_transpose(b, "p", type, &flat, (uint32_t[]){1, 0}, "f", &turned);
    put_line(b, "ROOT r", type, &turned, call(b, unary(type), "p"));
    return;
  case 1: {
    array part = *a;
    part.layout[0] = 0;
    part.dims[0] = 1 + a->dims[0] / 2;
    kl_sb_puts(b, "  i = s32[] parameter(1)\n  zero = s32[] constant(0)\n  s = ");
    put_shape(b, type, &part);
    kl_sb_puts(b, " dynamic-slice(x, i");
    for (uint32_t d = 1; d < a->rank; d++) kl_sb_puts(b, ", zero");
    kl_sb_puts(b, "), dynamic_slice_sizes={");
    for (uint32_t d = 0; d < a->rank; d++) kl_sbf(b, "%s%lld", d ? "," : "", (long long)part.dims[d]);
    kl_sb_puts(b, "}\n");
    put_transpose(b, "ROOT r", type, &part, order, "s", &to);
    return;
  }
  case 2: {
    array more = {.rank = a->rank + 1, .dims = {3}};
    put_transpose(b, "p", type, a, order, "x", &to);
    memcpy(more.dims + 1, to.dims, sizeof(int64_t) * a->rank);
    kl_sb_puts(b, "  ROOT r = ");
    put_shape(b, type, &more);
    kl_sb_puts(b, " broadcast(p), dimensions={");
    for (uint32_t d = 0; d < a->rank; d++) kl_sbf(b, "%s%u", d ? "," : "", d + 1);
    kl_sb_puts(b, "}\n");
    return;
  }
  default:
    put_transpose(b, "p", type, a, order, "x", &to);
    kl_sbf(b, "  c = %s[] constant(1)\n", type);
    array wide = {.rank = to.rank};
    for (uint32_t d = 0; d < to.rank; d++) wide.dims[d] = to.dims[d] + (d == 0 ? 3 : d);
    kl_sb_puts(b, "  ROOT r = ");
    put_shape(b, type, &wide);
    kl_sb_puts(b, " pad(p, c), padding=");
    for (uint32_t d = 0; d < to.rank; d++) kl_sbf(b, "%s%u_%u", d ? "x" : "", d == 0 ? 1 : 0, d == 0 ? 2 : d);
    kl_sb_puts(b, "\n");
  }
}

// A copy of other layout, or what the transpose makes and nothing more.
static void put_plain(kl_sb *b, const char *type, const array *a, const uint32_t *order) {
  array to = *a;
  if (chance(20)) {
    draw_layout(&to);
    put_line(b, "ROOT r", type, &to, "copy(x)");
    return;
  }
  put_transpose(b, "ROOT r", type, a, order, "x", &to);
}

static void put_converted(kl_sb *b, const char *type, const array *a, const uint32_t *order) {
  static const char *const others[] = {"f32", "bf16", "s8", "f64"};
  const char *other = others[below(4)];
  array to;
  if (is(type, "c64") || is(type, "c128")) return put_plain(b, type, a, order);
  bool before = chance(50);
  if (before) put_line(b, "y", other, a, "convert(x)");
  put_transpose(b, before ? "ROOT r" : "p", before ? other : type, a, order, before ? "y" : "x", &to);
  if (!before) put_line(b, "ROOT r", other, &to, "convert(p)");
}

static void put_module(kl_sb *b) {
  array a;
  uint32_t order[5];
  const char *type = types[below(sizeof types / sizeof *types)];
  draw_array(&a);
  shuffle(order, a.rank);
  kl_sb_puts(b, "HloModule fusion\n\nENTRY main {\n");
  put_line(b, "x", type, &a, "parameter(0)");
  switch (below(6)) {
  case 0: put_several(b, type, &a, order); break;
  case 1: put_side(b, type, &a, order); break;
  case 2: put_hidden(b, type, &a, order); break;
  case 3: put_converted(b, type, &a, order); break;
  default: put_plain(b, type, &a, order); break;
  }
  kl_sb_puts(b, "}\n");
}

// --- running --------------------------------------------------------------------------------------------------------

static unsigned tiled, others;

static bool is_tiled(kiln_context *cx, const kiln_module *m, unsigned t, unsigned number, const char *text) {
  const kiln_artifact *a = compiled_for(cx, m, t, number, text);
  return strstr(kiln_artifact_text(a, KILN_TEXT_PLAN, NULL), ": transpose over ") != NULL;
}

static void one(kiln_context *cx, unsigned number, batch *batches, bool print) {
  seed = number * 0x9e3779b97f4a7c15ull;
  kl_sb text;
  kl_sb_init(&text, cx);
  put_module(&text);
  if (print) puts(text.p);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "transpose.hlo", text.p, text.n, &m) != KILN_OK) give_up(number, "parsing", cx, text.p);
  unsigned t = number % TARGETS;
  *(is_tiled(cx, m, t, number, text.p) ? &tiled : &others) += 1;
  run_and_check(cx, m, number, text.p);
  run_gpu_and_check(cx, m, t, number, text.p);
  batch_add(batches, t, cx, m, number, text.p);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
  kiln_diagnostics_clear(cx);
}

enum { SLICES = 4 };

START_TEST(random_transposes) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  const char *alone = getenv("KILN_FUSION_SEED");
  if (alone && _i == 0) one(cx, (unsigned)strtoul(alone, NULL, 10), batches, true);
  for (uint64_t s = (uint64_t)_i, n = alone ? 0 : share_of(24); s < n; s += SLICES)
    one(cx, (unsigned)s, batches, false);
  batches_free(batches);
  kiln_context_destroy(&cx);
}
END_TEST

START_TEST(many_are_tiled) {
  if (getenv("KILN_FUSION_SEED")) return;
  printf("# %u through tiles, %u not\n", tiled, others);
  if (test_share() >= 1) ck_assert_uint_ge(4 * tiled + 4, others);
}
END_TEST

// --- known cases ----------------------------------------------------------------------------------------------------

enum { CASES = sizeof transpose_cases / sizeof *transpose_cases, KNOWN_SLICES = 3 };

// Each on the host or as a kernel, some as both, some assembled.
START_TEST(known_transposes) {
  kiln_context *cx = kiln_context_create(NULL);
  batch batches[TARGETS];
  batches_init(batches, cx);
  for (unsigned i = (unsigned)_i; i < CASES; i += KNOWN_SLICES) {
    if (!share_has(i, 1)) continue;
    kl_sb text;
    kiln_module *m = NULL;
    kl_sb_init(&text, cx);
    kl_sbf(&text, "HloModule fusion\nENTRY main { %s }\n", transpose_cases[i].text);
    if (kiln_module_parse(cx, "transpose.hlo", text.p, text.n, &m) != KILN_OK) give_up(i, "parsing", cx, text.p);
    if (share_has(i, i % 2 ? 4 : 1)) run_and_check(cx, m, i, text.p);
    if (share_has(i, i % 2 ? 1 : 4)) run_gpu_and_check(cx, m, machines[i / 2 % (MACHINES - 1)], i, text.p);
    for (unsigned t = 0; t < TARGETS; t++)
      if (share_has((uint64_t)i * TARGETS + t, 8)) batch_add(batches, t, cx, m, i, text.p);
    kiln_module_destroy(&m);
    kl_sb_free(&text);
  }
  batches_free(batches);
  kiln_context_destroy(&cx);
}
END_TEST

int main(void) {
  keep = KILN_KEEP_PLAN;
  return RUN_TESTS("transpose", NO_FRAME, {known_transposes, KNOWN_SLICES}, {random_transposes, SLICES},
                   {many_are_tiled});
}
