// The evaluator and buffers of ENTRY in tiled layouts: the same values as without tiles, each where its layout says.
#include "ir/hlo.h"
#include "ir/index/layout/layout.h"
#include "support/context.h"
#include "support/random.h"

#include <stdio.h>

// Buffers of a module's parameters (or results), and their elements.
typedef struct buffers {
  size_t n;
  void *p[4];
  void *elements[4];
} buffers;

static const kl_shape *leaf_shape(const kiln_module *m, bool param, size_t i) {
  return m->interface.shapes[param ? i : m->interface.nparams + i];
}

static buffers make_buffers(const kiln_module *m, bool param) {
  buffers b = {.n = param ? kiln_module_parameter_leaf_count(m) : kiln_module_result_leaf_count(m)};
  for (size_t i = 0; i < b.n; i++) {
    const kl_shape *s = leaf_shape(m, param, i);
    int64_t bytes = param ? kiln_module_parameter_leaf_bytes(m, i) : kiln_module_result_leaf_bytes(m, i);
    EXPECT(bytes >= 0, "no buffer for leaf %zu", i);
    b.p[i] = malloc((size_t)bytes + 1);
    b.elements[i] = calloc((size_t)s->count + 1, kl_info(s->dtype)->bytes);
    memset(b.p[i], 0xa5, (size_t)bytes + 1);
  }
  return b;
}

static void free_buffers(buffers *b) {
  for (size_t i = 0; i < b->n; i++) {
    free(b->p[i]);
    free(b->elements[i]);
  }
}

static void no_padding_left(const char *text, const kl_shape *s, const unsigned char *buffer) {
  kl_physical p;
  if (kl_physical_of(s, &p) || p.bits % 8) return;
  for (int64_t at = kl_physical_next_padding(&p, 0); at >= 0; at = kl_physical_next_padding(&p, at + 1))
    for (int64_t k = 0; k < p.bits / 8; k++)
      EXPECT(buffer[kl_physical_bit(&p, at).byte + k] == 0, "%s: padding at %ld is not zero", text, (long)at);
}

static void run(const kiln_module *m, const char *text, buffers *args, buffers *results) {
  *args = make_buffers(m, true);
  *results = make_buffers(m, false);
  for (size_t i = 0; i < args->n; i++) EXPECT(kiln_module_parameter_leaf_fill(m, i, 7, args->p[i]), "%s: fill", text);
  EXPECT(kiln_module_eval(cx, m, (const void *const *)args->p, results->p, NULL) == KILN_OK, "%s\n%s", last_finding(),
         text);
  for (size_t i = 0; i < args->n; i++)
    kl_array_unpack(&(kl_array){leaf_shape(m, true, i), args->elements[i]}, args->p[i]);
  for (size_t i = 0; i < results->n; i++) {
    const kl_shape *s = leaf_shape(m, false, i);
    no_padding_left(text, s, results->p[i]);
    EXPECT(((unsigned char *)results->p[i])[kl_shape_bytes(s)] == 0xa5, "%s: written too far", text);
    kl_array_unpack(&(kl_array){s, results->elements[i]}, results->p[i]);
  }
}

static void expect_equal(const char *text, const kiln_module *m, bool param, const buffers *a, const buffers *b) {
  for (size_t i = 0; i < a->n; i++) {
    const kl_shape *s = leaf_shape(m, param, i);
    EXPECT(memcmp(a->elements[i], b->elements[i], (size_t)s->count * kl_info(s->dtype)->bytes) == 0, "%s\n%s %zu", text,
           param ? "parameter" : "result", i);
  }
}

// The module as it ran, judged; then with one element of a result changed.
static void check_judges(const char *text, const kiln_module *m, const buffers *args, buffers *results) {
  kiln_mismatch found;
  size_t count;
  const kl_shape *s = leaf_shape(m, false, 0);
  EXPECT(kiln_module_check(cx, m, (const void *const *)args->p, (const void *const *)results->p, &found, 1, &count,
                           NULL) == KILN_OK &&
             count == 0,
         "%s: %s", text, last_finding());
  kl_physical p;
  if (!s->count || s->dtype == KILN_PRED || kl_physical_of(s, &p) || p.bits % 8) return;
  int64_t element = (int64_t)(random_bits() % (uint64_t)s->count), index[KILN_MAX_RANK], rest = element;
  for (uint32_t d = s->rank; d-- > 0; rest /= s->dims[d]) index[d] = rest % s->dims[d];
  char *at = (char *)results->p[0] + kl_physical_bit(&p, kl_physical_position(&p, index)).byte;
  for (int64_t k = 0; k < p.bits / 8 && k < kl_info(s->dtype)->bytes; k++)
    at[k] ^= 1 << (kl_info(s->dtype)->bits < 8 ? 1 : 6);
  EXPECT(kiln_module_check(cx, m, (const void *const *)args->p, (const void *const *)results->p, &found, 1, &count,
                           NULL) == KILN_OK &&
             count == 1 && found.element == element && found.count == 1,
         "%s: element %ld: %zu found, %ld", text, (long)element, count, (long)found.element);
}

// $: a layout of the rank that follows.
static const char *const programs[] = {
    "p = f32[3,5]$2 parameter(0)\n ROOT r = f32[3,5]$2 negate(p)",
    "p = f32[9,20]$2 parameter(0)\n q = f32[9,20]$2 parameter(1)\n ROOT r = f32[9,20]$2 add(p, q)",
    "p = bf16[5,7,6]$3 parameter(0)\n ROOT r = bf16[6,5,7]$3 transpose(p), dimensions={2,0,1}",
    "p = s8[4,3]$2 parameter(0)\n q = s8[3,5]$2 parameter(1)\n ROOT r = s32[4,5]$2 dot(p, q), "
    "lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0}",
    "p = s4[5,6]$2 parameter(0)\n ROOT r = s8[5,6]$2 convert(p)",
    "p = s8[5,6]$2 parameter(0)\n ROOT r = u4[5,6]$2 convert(p)",
    "p = pred[17]$1 parameter(0)\n a = f16[17]$1 parameter(1)\n b = f16[17] parameter(2)\n ROOT r = f16[17]$1 "
    "select(p, "
    "a, b)",
    "p = f64[3,4]$2 parameter(0)\n q = f64[3,4]$2 parameter(1)\n ROOT r = pred[3,4]$2 compare(p, q), direction=LT",
    "p = c64[3,4]$2 parameter(0)\n ROOT r = c64[12]$1 reshape(p)",
    ("p = c128[7]$1 parameter(0)\n s = c128[4]$1 slice(p), slice={[0:7:2]}\n ROOT r = (c128[4]$1, c128[7]$1) tuple(s, "
     "p)"),
    "p = f32[]$0 parameter(0)\n ROOT r = f32[2,3]$2 broadcast(p), dimensions={}",
    "p = f32[0,4]$2 parameter(0)\n ROOT r = f32[4,0]$2 transpose(p), dimensions={1,0}",
    "p = f8e4m3fn[4,4,2]$3 parameter(0)\n ROOT r = f8e4m3fn[4,4,2]$3 reverse(p), dimensions={0,2}",
    "p = f32[3,5]$2 parameter(0)\n c = f32[3,5]$2 copy(p)\n ROOT r = f32[3,5] multiply(c, p)",
};

static int below(int n) {
  return (int)((random_bits() >> 20) % (unsigned)n);
}

static void put_layout(char **at, int rank, const char *type) {
  static const int bits[] = {0, 0, 128, 136, 3};
  int extra = bits[below(5)];
  *at += sprintf(*at, "{");
  for (int d = rank; d-- > 0;) *at += sprintf(*at, "%d%s", d, d ? "," : "");
  *at += sprintf(*at, ":");
  if (below(4)) {
    *at += sprintf(*at, "T");
    for (int k = 1 + below(3); k > 0; k--) {
      int n = 1 + below(rank + 1);
      *at += sprintf(*at, "(");
      for (int i = 0; i < n; i++)
        *at +=
            i + 1 < n && below(4) == 0 ? sprintf(*at, "*,") : sprintf(*at, "%d%s", 1 + below(4), i + 1 < n ? "," : ")");
    }
  }
  if (below(3) == 0) *at += sprintf(*at, "L(%d)", 1 + below(9));
  if (strcmp(type, "pred") == 0 && below(2)) extra = 1;
  if (extra == 3) extra = type[1] == '4' || strcmp(type, "pred") == 0 ? 7 : 0;
  if (extra) *at += sprintf(*at, "E(%d)", extra);
  *at += sprintf(*at, "S(3)");
  if (below(4) == 0) *at += sprintf(*at, "M(%d)", below(9));
  *at += sprintf(*at, "}");
}

// The program with layouts in place of the marks, or without any.
static void write_module(char *at, const char *program, bool tiled) {
  char type[16] = "";
  at += sprintf(at, "HloModule m\nENTRY e {\n ");
  for (const char *p = program; *p; p++) {
    if (*p == '[') {
      const char *begin = p;
      while (begin[-1] != ' ' && begin[-1] != '(') begin--;
      sprintf(type, "%.*s", (int)(p - begin), begin);
    }
    if (*p != '$') {
      *at++ = *p;
      continue;
    }
    p++;
    if (tiled) put_layout(&at, *p - '0', type);
  }
  sprintf(at, "\n}\n");
}

START_TEST(tiles_change_no_value) {
  for (int i = 0; i < 60; i++) {
    char text[2048], plain_text[2048];
    buffers args, results, plain_args, plain_results;
    write_module(text, programs[_i], true);
    write_module(plain_text, programs[_i], false);
    kiln_module *m = parse(text), *plain = parse(plain_text);
    run(m, text, &args, &results);
    run(plain, plain_text, &plain_args, &plain_results);
    expect_equal(text, m, true, &args, &plain_args);
    expect_equal(text, m, false, &results, &plain_results);
    check_judges(text, m, &args, &results);
    for (size_t k = 0; k < args.n; k++) { // elements go in as they come out
      memset(args.p[k], 0x5a, (size_t)kiln_module_parameter_leaf_bytes(m, k));
      EXPECT(kiln_module_parameter_leaf_pack(m, k, args.elements[k], args.p[k]), "%s", text);
      kl_array_unpack(&(kl_array){leaf_shape(m, true, k), args.elements[k]}, args.p[k]);
    }
    expect_equal(text, m, true, &args, &plain_args);
    free_buffers(&args), free_buffers(&results), free_buffers(&plain_args), free_buffers(&plain_results);
    kiln_module_destroy(&m), kiln_module_destroy(&plain);
  }
}
END_TEST

// --- bitcasts -----------------------------------------------------------------------------------------------------

static const char *const bitcasts[][2] = {
    {"f32[3,5]{1,0:T(2,2)}", "f32[3,5]{1,0:T(2,2)}"},
    {"f32[24]", "f32[3,5]{1,0:T(2,2)}"}, // 9 of 24 elements are nobody's
    {"f32[8,128]{1,0:T(8,128)}", "f32[1024]"},
    {"f32[8,256]{1,0:T(8,128)}", "f32[2,8,128]"},
    {"f32[8,100]{1,0:T(8,128)}", "f32[1,8,100]{2,1,0:T(8,128)}"},
    {"bf16[8,128]{1,0:T(8,128)(2,1)}", "u32[4,128]{1,0:T(4,128)}"}, // pairs of rows are words
    {"s8[8,128]{1,0:T(8,128)(4,1)}", "f32[2,128]"},
    {"pred[32,128]{1,0:T(32,128)(32,1)E(1)}", "pred[4096]{0:E(1)}"},
    {"u4[6,4]{1,0:T(2,2)}", "u4[6,2,2]{1,2,0:T(2,1)}"},
    {"u4[6,4]{1,0:T(2,2)}", "s8[12]"},
    {"s4[4]", "s4[3]"},
    {"s4[4]{0:E(8)}", "s4[4]{0:E(8)S(1)}"},
    {"u8[5]{0:E(16)}", "u8[5]{0:E(16)}"},
    {"f32[5]{0:M(8)}", "f32[5]{0:M(8)}"},
};

START_TEST(a_bitcast_keeps_the_bytes_of_elements) {
  char text[512];
  kl_physical p;
  sprintf(text, "HloModule m\nENTRY e {\n p = %s parameter(0)\n ROOT r = %s bitcast(p)\n}\n", bitcasts[_i][0],
          bitcasts[_i][1]);
  kiln_module *m = parse(text);
  buffers args, results;
  run(m, text, &args, &results);
  const kl_shape *s = leaf_shape(m, false, 0);
  EXPECT(!kl_physical_of(s, &p), "%s", text);
  int64_t index[KILN_MAX_RANK];
  const unsigned char *from = args.p[0], *to = results.p[0];
  for (int64_t i = 0; i < p.positions; i++)
    for (int64_t b = 0; b < p.bits && b < kl_info(s->dtype)->bits && kl_physical_index(&p, i, index); b++) {
      int64_t k = p.prefix * 8 + i * p.bits + b;
      EXPECT((from[k / 8] >> k % 8 & 1) == (to[k / 8] >> k % 8 & 1), "%s: bit %ld of position %ld", text, (long)b,
             (long)i);
    }
  size_t count;
  EXPECT(kiln_module_check(cx, m, (const void *const *)args.p, (const void *const *)results.p, NULL, 0, &count, NULL) ==
                 KILN_OK &&
             count == 0,
         "%s", text);
  free_buffers(&args), free_buffers(&results);
  kiln_module_destroy(&m);
}
END_TEST

// Elements that nothing is known of keep their places, too.
START_TEST(a_bitcast_carries_what_is_open) {
  kiln_module *m = parse("HloModule m\nENTRY e {\n p = f32[3,5] parameter(0)\n a = f32[3,5] exponential(p)\n"
                         " b = u4[3,5,8]{2,1,0:T(2,2)E(4)} bitcast-convert(a)\n"
                         " c = u4[1,3,5,8]{3,2,1,0:T(2,2)E(4)} bitcast(b)\n ROOT r = u4[120]{0:E(8)} reshape(c)\n}\n");
  buffers args, results;
  run(m, "open", &args, &results);
  kiln_mismatch found;
  size_t count;
  for (int i = 0; i < 120; i++) ((unsigned char *)results.p[0])[i] ^= 5;
  EXPECT(kiln_module_check(cx, m, (const void *const *)args.p, (const void *const *)results.p, &found, 1, &count,
                           NULL) == KILN_OK,
         "%s", last_finding());
  EXPECT(count == 0, "element %ld is not open", (long)found.element);
  free_buffers(&args), free_buffers(&results);
  kiln_module_destroy(&m);
}
END_TEST

// --- refused ------------------------------------------------------------------------------------------------------

static const struct {
  const char *body, *why;
} refused[] = {
    {"p = f32[3,5]{1,0:T(2,2)} parameter(0)\n ROOT r = f32[24] bitcast(p)",
     "no evaluation of a bitcast that reads its operand's padding"},
    {"p = f32[8]{0:L(16)} parameter(0)\n ROOT r = f32[16] bitcast(p)",
     "no evaluation of a bitcast that reads its operand's padding"},
    {"p = s4[5] parameter(0)\n ROOT r = s4[6] bitcast(p)",
     "no evaluation of a bitcast that reads its operand's padding"},
    {"p = f32[8] parameter(0)\n ROOT r = f32[8]{0:SC(0:4)} bitcast(p)",
     "no evaluation of a bitcast with a layout of split dimensions (SC)"},
    {"p = f32[8]{0:D(C)} parameter(0)\n ROOT r = f32[8] negate(p)", "a parameter has a sparse layout (D)"},
    {"p = f32[8] parameter(0)\n ROOT r = f32[8]{0:P(f32[9])} negate(p)",
     "a result has a layout with a physical shape of its own (P)"},
    {"p = f32[8]{0:E(16)} parameter(0)\n ROOT r = f32[8] negate(p)",
     "a parameter has a layout whose elements take fewer bits (E) than their type"},
};

START_TEST(what_has_no_place_is_refused) {
  char text[512];
  static float data[64], out[64];
  sprintf(text, "HloModule m\nENTRY e {\n %s\n}\n", refused[_i].body);
  kiln_module *m = parse(text);
  ck_assert_int_eq(kiln_module_eval(cx, m, (const void *const[]){data}, (void *const[]){out}, NULL),
                   KILN_E_UNSUPPORTED);
  EXPECT(strstr(last_finding(), refused[_i].why), "%s", last_finding());
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(buffers_without_places_have_no_size) {
  kiln_module *m =
      parse("HloModule m\nENTRY e {\n p = f32[8]{0:E(16)} parameter(0)\n ROOT r = f32[8]{0:D(C)} copy(p)\n}");
  float x[8] = {0};
  ck_assert_int_eq(kiln_module_parameter_leaf_bytes(m, 0), -1);
  ck_assert_int_eq(kiln_module_result_leaf_bytes(m, 0), -1);
  ck_assert(!kiln_module_parameter_leaf_pack(m, 0, x, x) && !kiln_module_parameter_leaf_fill(m, 0, 0, x));
  ck_assert(!kiln_module_result_leaf_unpack(m, 0, x, x));
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("layout", EACH(make_context, drop_context), {tiles_change_no_value, KL_COUNT(programs)},
                   {a_bitcast_keeps_the_bytes_of_elements, KL_COUNT(bitcasts)}, {a_bitcast_carries_what_is_open},
                   {what_has_no_place_is_refused, KL_COUNT(refused)}, {buffers_without_places_have_no_size});
}
