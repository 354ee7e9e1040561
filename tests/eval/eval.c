// The evaluator: results against cases computed without kiln (data, made by data/cases.py) and against corner
// tables written by hand; data movement against a naive reading of each op; calls, errors, memory, threads.
#include "support/context.h"
#include "eval/eval.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool same(kl_dtype t, uint64_t a, uint64_t b) {
  return a == b || (kl_is_float(t) && kl_float_is_nan(t, a) && kl_float_is_nan(t, b));
}

static kl_dtype part_of(kl_dtype t) {
  return kl_is_complex(t) ? kl_info(t)->part : t;
}

// --- one op on rows of scalars --------------------------------------------------------------------------------------

enum { MAX_ROWS = 1024 };

typedef struct op_case {
  char op[40], attrs[80];
  kl_dtype in[3], out;
  int nin, rows;
  uint64_t value[MAX_ROWS][4][2]; // operands, then the result
} op_case;

// A module that applies the op to arrays of `n` elements.
static kiln_module *op_module(const op_case *c, int64_t n) {
  char text[1024];
  int at = snprintf(text, sizeof text, "HloModule t\nENTRY e {\n");
  for (int k = 0; k < c->nin; k++)
    at += snprintf(text + at, sizeof text - (size_t)at, "  p%d = %s[%lld] parameter(%d)\n", k,
                   kiln_dtype_name(c->in[k]), (long long)n, k);
  at += snprintf(text + at, sizeof text - (size_t)at, "  ROOT r = %s[%lld] %s(%s)%s%s\n}\n", kiln_dtype_name(c->out),
                 (long long)n, c->op, (const char *[]){"p0", "p0, p1", "p0, p1, p2"}[c->nin - 1],
                 c->attrs[0] ? ", " : "", c->attrs);
  return parse(text);
}

static void fill(const op_case *c, int k, int64_t n, kl_array *a) {
  kl_dtype t = c->in[k];
  a->data = calloc((size_t)n + 1, kl_info(t)->bytes);
  for (int64_t i = 0; i < n; i++)
    for (int lane = 0; lane < 1 + kl_is_complex(t); lane++)
      kl_element_set(t, a->data, i, lane, c->value[i % c->rows][k][lane]);
}

static void compare_rows(const op_case *c, int64_t n, const kl_result *r) {
  kl_dtype part = part_of(c->out);
  for (int64_t i = 0; i < n; i++)
    for (int lane = 0; lane < 1 + kl_is_complex(c->out); lane++) {
      const uint64_t(*v)[2] = c->value[i % c->rows];
      uint64_t got = kl_element_get(c->out, r->data.data, i, lane), want = v[c->nin][lane];
      EXPECT(same(part, got, want),
             "%s %s -> %s %s, element %lld part %d of %lld: in %llx:%llx %llx:%llx %llx got %llx want %llx", c->op,
             kiln_dtype_name(c->in[0]), kiln_dtype_name(c->out), c->attrs, (long long)i, lane, (long long)n,
             (unsigned long long)v[0][0], (unsigned long long)v[0][1], (unsigned long long)v[1][0],
             (unsigned long long)v[1][1], (unsigned long long)v[2][0], (unsigned long long)got,
             (unsigned long long)want);
    }
}

static void run_op(const op_case *c, int64_t n) {
  kiln_module *m = op_module(c, n);
  kl_array args[3];
  kl_result r;
  for (int k = 0; k < c->nin; k++) fill(c, k, n, &args[k]);
  EXPECT(kl_eval(cx, m, m->entry, args, &(kl_eval_opts){.threads = 2}, &r) == KILN_OK, "%s", last_finding());
  ck_assert(r.lo == r.data.data && r.hi == r.data.data && !r.any);
  compare_rows(c, n, &r);
  kl_result_free(cx, &r);
  for (int k = 0; k < c->nin; k++) free(args[k].data);
  kiln_module_destroy(&m);
}

// Once as it is, and once in an array large enough for tables and threads.
static void run_op_both(const op_case *c) {
  int size = kl_info(c->in[0])->bytes;
  run_op(c, c->rows);
  if (size == 1 && c->nin == 1) run_op(c, 700);
  if ((size == 2 && c->nin == 1) || (size == 1 && c->nin == 2)) run_op(c, 131101);
}

// --- cases from files ----------------------------------------------------------------------------------------------

static uint64_t parse_word(kl_dtype part, const char *text, char **end) {
  if (*text != 'n') return strtoull(text, end, 16);
  *end = (char *)text + 1;
  return kl_float_encode(part, NAN);
}

static void parse_types(op_case *c, char *list) {
  c->nin = 0;
  for (char *p = strtok(list, ","); p; p = strtok(NULL, ",")) c->in[c->nin++] = kiln_dtype_from_name(p);
}

static bool read_case(FILE *f, op_case *c) {
  char line[512], ins[64], out[16];
  int used = 0;
  if (!fgets(line, sizeof line, f)) return false;
  EXPECT(sscanf(line, "%39s %63s %15s %d%n", c->op, ins, out, &c->rows, &used) == 4 && c->rows <= MAX_ROWS, "%s", line);
  snprintf(c->attrs, sizeof c->attrs, "%s", line + used + (line[used] == ' '));
  c->attrs[strcspn(c->attrs, "\n")] = 0;
  c->out = kiln_dtype_from_name(out);
  parse_types(c, ins);
  for (int i = 0; i < c->rows; i++) {
    EXPECT(fgets(line, sizeof line, f), "short file");
    char *p = line;
    for (int k = 0; k <= c->nin; k++) {
      kl_dtype part = part_of(k < c->nin ? c->in[k] : c->out);
      c->value[i][k][0] = parse_word(part, p, &p);
      c->value[i][k][1] = *p == ':' ? parse_word(part, p + 1, &p) : 0;
      while (*p == ' ') p++;
    }
  }
  return true;
}

static const struct {
  const char *file;
  int cases;
} files[] = {{"int", 338}, {"float", 602}, {"convert", 676}, {"complex", 72}, {"functions", 169}};

START_TEST(computed_cases) {
  static op_case c;
  char path[1024];
  int n = 0;
  snprintf(path, sizeof path, "%s/eval/data/%s.txt", KL_TESTS, files[_i].file);
  FILE *f = fopen(path, "r");
  EXPECT(f, "cannot open %s", path);
  for (; read_case(f, &c); n++) run_op_both(&c);
  fclose(f);
  ck_assert_int_eq(n, files[_i].cases);
}
END_TEST

// --- corners by hand -------------------------------------------------------------------------------------------------

// Columns hold scalars as HLO text, separated by blanks.
// clang-format off
static const struct {
  const char *op, *in, *out, *attrs, *a, *b, *c, *want;
} corners[] = {
    {"divide", "s32,s32", "s32", "", "7 -7 5 -2147483648 -2147483648 0", "2 2 0 -1 0 0", "", "3 -3 -1 -2147483648 -1 -1"},
    {"remainder", "s32,s32", "s32", "", "7 -7 7 -2147483648 5 -5", "3 3 -3 -1 0 0", "", "1 -1 1 0 5 -5"},
    {"divide", "u8,u8", "u8", "", "7 255 255 0", "2 255 0 0", "", "3 1 255 255"},
    {"divide", "s2,s2", "s2", "", "-2 -2 1 1", "-1 0 -1 -2", "", "-2 -1 -1 0"},
    {"divide", "s64,s64", "s64", "", "-9223372036854775808 9", "-1 -2", "", "-9223372036854775808 -4"},
    {"power", "s32,s32", "s32", "", "2 3 -1 -1 1 0 0 5 -2", "10 -1 -3 -4 -9 -1 0 0 31", "", "1024 0 -1 1 1 0 1 1 -2147483648"},
    {"power", "u8,u8", "u8", "", "3 2 2 255", "5 7 8 255", "", "243 128 0 255"},
    {"shift-left", "s32,s32", "s32", "", "1 1 1 1 -1", "31 32 -1 0 4", "", "-2147483648 0 0 1 -16"},
    {"shift-right-arithmetic", "s8,s8", "s8", "", "-128 -128 127 -1 64", "7 8 -1 100 6", "", "-1 -1 0 -1 1"},
    {"shift-right-arithmetic", "u8,u8", "u8", "", "128 128 127", "7 200 200", "", "255 255 0"},
    {"shift-right-logical", "s8,s8", "s8", "", "-128 -128 -1", "7 8 4", "", "1 0 15"},
    {"shift-right-logical", "s4,s4", "s4", "", "-8 -1 -1", "3 1 -8", "", "1 7 0"},
    {"abs", "s8", "s8", "", "-128 -127 5", "", "", "-128 127 5"},
    {"negate", "s8", "s8", "", "-128 1 0", "", "", "-128 -1 0"},
    {"negate", "u8", "u8", "", "1 255 0", "", "", "255 1 0"},
    {"sign", "u8", "u8", "", "0 1 200", "", "", "0 1 1"},
    {"not", "s4", "s4", "", "0 -8 7", "", "", "-1 7 -8"},
    {"count-leading-zeros", "s16", "s16", "", "0 -1 1 256", "", "", "16 0 15 7"},
    {"popcnt", "s64", "s64", "", "-1 0 6", "", "", "64 0 2"},
    {"maximum", "f32,f32", "f32", "", "-0 0 nan 1 -inf", "0 -0 1 nan inf", "", "0 0 nan nan inf"},
    {"minimum", "f32,f32", "f32", "", "-0 0 nan 1 -inf", "0 -0 1 nan inf", "", "-0 -0 nan nan -inf"},
    {"maximum", "bf16,bf16", "bf16", "", "-0 0 nan 1", "0 -0 1 nan", "", "0 0 nan nan"},
    {"minimum", "f16,f16", "f16", "", "-0 0 nan 1", "0 -0 1 nan", "", "-0 -0 nan nan"},
    {"maximum", "f64,f64", "f64", "", "-0 nan", "0 1", "", "0 nan"},
    {"sign", "f32", "f32", "", "-0 0 nan -inf 1e-40", "", "", "-0 0 nan -1 1"},
    {"sign", "f16", "f16", "", "-0 0 nan -5", "", "", "-0 0 nan -1"},
    {"clamp", "f32,f32,f32", "f32", "", "0 nan 0 0 5 -0", "1 1 nan 1 0 0", "2 2 2 nan 3 -0", "1 nan nan nan 3 -0"},
    {"clamp", "s8,s8,s8", "s8", "", "0 0 5", "7 -7 4", "5 5 3", "5 0 3"},
    {"compare", "f32,f32", "pred", "direction=EQ", "nan 0 -0", "nan -0 0", "", "false true true"},
    {"compare", "f32,f32", "pred", "direction=NE", "nan 0 1", "nan -0 2", "", "true false true"},
    {"compare", "f32,f32", "pred", "direction=GE", "nan 1 -inf", "1 nan -inf", "", "false false true"},
    {"compare", "f32,f32", "pred", "direction=LT, type=TOTALORDER", "-0 0 1 -nan nan", "0 -0 nan -inf inf", "", "true false true true false"},
    {"compare", "u8,u8", "pred", "direction=GT", "200 1", "100 2", "", "true false"},
    {"compare", "c64,c64", "pred", "direction=EQ", "(1,2) (1,2) (0,-0) (nan,1)", "(1,2) (1,3) (-0,0) (nan,1)", "", "true false true false"},
    {"compare", "c64,c64", "pred", "direction=NE", "(1,2) (1,2) (0,-0) (nan,1)", "(1,2) (1,3) (-0,0) (nan,1)", "", "false true false true"},
    {"convert", "f32", "s32", "", "3.7 -3.7 1e10 -1e10 nan inf", "", "", "3 -3 2147483647 -2147483648 0 2147483647"},
    {"convert", "f32", "u8", "", "-1 255.9 256 nan", "", "", "0 255 255 0"},
    {"convert", "f32", "pred", "", "0 -0 nan 0.1", "", "", "false false true true"},
    {"convert", "s32", "s8", "", "128 -129 255", "", "", "-128 127 -1"},
    {"convert", "f32", "f8e4m3fn", "", "448 464 465 inf nan", "", "", "448 448 nan nan nan"},
    {"convert", "c64", "f32", "", "(1,2) (nan,1)", "", "", "1 nan"},
    {"convert", "c64", "pred", "", "(0,0) (0,2) (-0,0) (1,0)", "", "", "false true false true"},
    {"remainder", "f32,f32", "f32", "", "5.5 -5.5 1 inf 1 -0", "2 2 0 1 inf 1", "", "1.5 -1.5 nan nan 1 -0"},
    {"divide", "f32,f32", "f32", "", "1 -1 0 inf 1e-40", "0 0 0 inf 2", "", "inf -inf nan nan 5e-41"},
    {"power", "f32,f32", "f32", "", "nan 1 -8 0 -0 -2", "0 nan 0.5 -1 -1 3", "", "1 1 nan inf -inf -8"},
    {"round-nearest-afz", "f32", "f32", "", "0.5 -0.5 1.5 2.5 -0.4", "", "", "1 -1 2 3 -0"},
    {"round-nearest-even", "f32", "f32", "", "0.5 -0.5 1.5 2.5 -0.4", "", "", "0 -0 2 2 -0"},
    {"is-finite", "f32", "pred", "", "1 inf -inf nan", "", "", "true false false false"},
    {"is-finite", "f8e4m3fn", "pred", "", "448 nan", "", "", "true false"},
    {"select", "pred,s4,s4", "s4", "", "true false", "3 4", "-1 -2", "3 -2"},
    {"select", "pred,c128,c128", "c128", "", "true false", "(1,2) (3,4)", "(5,6) (7,8)", "(1,2) (7,8)"},
    {"imag", "f32", "f32", "", "3 nan", "", "", "0 0"},
    {"abs", "c64", "f32", "", "(3,4) (inf,nan) (nan,inf) (0,-0) (3e38,3e38)", "", "", "5 inf inf 0 inf"},
    {"abs", "c128", "f64", "", "(3e300,4e300) (nan,1)", "", "", "5e300 nan"},
    {"multiply", "c64,c64", "c64", "", "(1,2) (inf,0) (inf,0)", "(3,4) (1,1) (0,1)", "", "(-5,10) (inf,inf) (nan,inf)"},
    {"divide", "c64,c64", "c64", "", "(1,2) (1,0) (1,-1) (inf,0) (1,1) (0,0) (nan,1)", "(3,4) (0,0) (-0,0) (1,1) (inf,0) (0,0) (1,1)", "", "(0.44,0.08) (inf,nan) (-inf,inf) (inf,-inf) (0,0) (nan,nan) (nan,nan)"},
    {"divide", "c128,c128", "c128", "", "(1e300,1e300) (4,2)", "(1e300,1e300) (0,2)", "", "(1,0) (1,-2)"},
    {"sign", "c64", "c64", "", "(3,4) (0,-0) (-2,0)", "", "", "(0.6,0.8) (0,-0) (-1,0)"},
    {"exponential", "c64", "c64", "", "(0,0) (-inf,0)", "", "", "(1,0) (0,0)"},
    {"log", "c64", "c64", "", "(1,0) (-1,0) (-1,-0)", "", "", "(0,0) (0,3.1415927) (0,-3.1415927)"},
    {"sqrt", "c64", "c64", "", "(-4,0) (-4,-0) (0,0)", "", "", "(0,2) (0,-2) (0,0)"},
    {"rsqrt", "c64", "c64", "", "(4,0) (0,0) (inf,1)", "", "", "(0.5,-0) (inf,nan) (0,-0)"},
    {"power", "c64,c64", "c64", "", "(0,0) (0,0) (2,0)", "(0,0) (1,0) (0,0)", "", "(1,0) (0,0) (1,0)"},
    {"maximum", "c64,c64", "c64", "", "(1,5) (2,0) (1,1)", "(1,4) (3,0) (1,2)", "", "(1,5) (3,0) (1,2)"},
    {"reduce-precision", "f32", "f32", "exponent_bits=5, mantissa_bits=0", "nan 65536 1e-6 -1e-6 1.5 -0", "", "", "inf inf 0 -0 2 -0"},
    {"reduce-precision", "f32", "f32", "exponent_bits=5, mantissa_bits=10", "nan 65519 65520 -1e-6 1.0004883", "", "", "nan 65504 inf -0 1"},
    {"reduce-precision", "f32", "f32", "exponent_bits=8, mantissa_bits=7", "1e-45 1e-39", "", "", "0 0x1.6p-130"},
    {"reduce-precision", "f8e4m3fn", "f8e4m3fn", "exponent_bits=4, mantissa_bits=1", "448 1.75 nan", "", "", "nan 2 nan"},
    {"mulhi", "s2,s2", "s2", "", "-2 1 -1", "-2 1 1", "", "1 0 -1"},
    {"stochastic-convert", "f32,u32", "s32", "", "1.5 1.5 -1.5 -1.5 3e9 -3e9 nan", "2147483647 2147483648 2147483647 2147483648 0 0 0", "", "2 1 -2 -1 2147483647 -2147483648 0"},
    {"stochastic-convert", "f16,u16", "u8", "", "1.75 1.75 -0.5 255.5", "49151 49152 0 65535", "", "2 1 0 255"},
    {"stochastic-convert", "f32,u32", "f16", "", "1.0001221 1.0001221 -1.0001221 65512 65512 1e9 -inf nan 5e-8 5e-8", "536346624 536870912 0 1073741823 2147483648 0 7 7 1 4000000000", "", "1.001 1 -1.001 inf 65504 inf -inf nan 6e-08 0"},
    {"stochastic-convert", "f64,u64", "f8e4m3fn", "", "450 450 500 1e30", "0 18446744073709551615 0 0", "", "nan 448 nan nan"},
    {"stochastic-convert", "bf16,u16", "f32", "", "1.5 -0", "0 0", "", "1.5 -0"},
    {"divide", "s1,s1", "s1", "", "-1 -1 0 0", "-1 0 -1 0", "", "-1 -1 0 -1"},
    {"remainder", "s1,s1", "s1", "", "-1 -1 0 0", "-1 0 -1 0", "", "0 -1 0 0"},
    {"power", "s1,s1", "s1", "", "-1 -1 0 0", "-1 0 -1 0", "", "-1 -1 0 -1"},
    {"abs", "s1", "s1", "", "-1 0", "", "", "-1 0"},
    {"negate", "s1", "s1", "", "-1 0", "", "", "-1 0"},
    {"sign", "s1", "s1", "", "-1 0", "", "", "-1 0"},
    {"not", "u1", "u1", "", "1 0", "", "", "0 1"},
    {"add", "u1,u1", "u1", "", "1 1 0", "1 0 0", "", "0 1 0"},
    {"multiply", "s1,s1", "s1", "", "-1 -1 0", "-1 0 0", "", "-1 0 0"},
    {"maximum", "s1,s1", "s1", "", "-1 -1 0", "-1 0 0", "", "-1 0 0"},
    {"maximum", "u1,u1", "u1", "", "1 1 0", "1 0 0", "", "1 1 0"},
    {"divide", "u1,u1", "u1", "", "1 1 0 0", "1 0 1 0", "", "1 1 0 1"},
    {"shift-left", "s1,s1", "s1", "", "-1 -1 0", "0 -1 -1", "", "-1 0 0"},
    {"shift-right-arithmetic", "s1,s1", "s1", "", "-1 -1 0", "0 -1 -1", "", "-1 -1 0"},
    {"shift-right-logical", "u1,u1", "u1", "", "1 1 0", "0 1 1", "", "1 0 0"},
    {"count-leading-zeros", "u1", "u1", "", "1 0", "", "", "0 1"},
    {"popcnt", "s1", "s1", "", "-1 0", "", "", "-1 0"},
    {"compare", "s1,s1", "pred", "direction=LT", "-1 0", "0 -1", "", "true false"},
    {"compare", "u1,u1", "pred", "direction=LT", "1 0", "0 1", "", "false true"},
    {"convert", "f32", "s1", "", "1.5 -0.5 -1.5 nan -inf inf", "", "", "0 0 -1 0 -1 0"},
    {"convert", "f32", "u1", "", "0.9 1.5 2 -1 nan inf", "", "", "0 1 1 0 0 1"},
    {"convert", "s1", "f32", "", "-1 0", "", "", "-1 0"},
    {"convert", "pred", "s1", "", "true false", "", "", "-1 0"},
    {"convert", "s1", "pred", "", "-1 0", "", "", "true false"},
    {"convert", "s1", "s32", "", "-1 0", "", "", "-1 0"},
    {"convert", "u1", "s32", "", "1 0", "", "", "1 0"},
    {"bitcast-convert", "s1", "u1", "", "-1 0", "", "", "1 0"},
    {"select", "pred,u1,u1", "u1", "", "true false", "1 1", "0 0", "1 0"},
    {"copy", "u2", "u2", "", "3 0", "", "", "3 0"},
    {"add", "pred,pred", "pred", "", "true true false", "true false false", "", "true true false"},
    {"bitcast-convert", "f32", "s32", "", "1 -0", "", "", "1065353216 -2147483648"},
    {"bitcast-convert", "s4", "u4", "", "-1 -8 3", "", "", "15 8 3"},
};
// clang-format on

static int parse_column(const char *text, kl_dtype t, op_case *c, int k) {
  int n = 0;
  while (*text) {
    size_t len = strcspn(text, " ");
    const char *why = "";
    EXPECT(kl_scalar_parse((kl_str){text, len}, t, c->value[n][k], &why), "%.*s: %s", (int)len, text, why);
    n++;
    text += len + (text[len] == ' ');
  }
  return n;
}

START_TEST(corner_rows) {
  static op_case c;
  char ins[64];
  snprintf(c.op, sizeof c.op, "%s", corners[_i].op);
  snprintf(c.attrs, sizeof c.attrs, "%s", corners[_i].attrs);
  snprintf(ins, sizeof ins, "%s", corners[_i].in);
  parse_types(&c, ins);
  c.out = kiln_dtype_from_name(corners[_i].out);
  const char *columns[3] = {corners[_i].a, corners[_i].b, corners[_i].c};
  c.rows = parse_column(corners[_i].want, c.out, &c, c.nin);
  for (int k = 0; k < c.nin; k++) ck_assert_int_eq(parse_column(columns[k], c.in[k], &c, k), c.rows);
  run_op_both(&c);
}
END_TEST

// The fast 16-bit paths against the exact conversions they stand for.
START_TEST(narrow_paths) {
  for (int wide = 0; wide < 2; wide++) {
    kl_dtype t = wide ? KILN_BF16 : KILN_F16;
    static op_case c;
    c = (op_case){.op = "convert", .nin = 1, .rows = MAX_ROWS, .in = {KILN_F32}, .out = t};
    uint64_t seed = 1;
    for (int round = 0; round < 64; round++) {
      for (int i = 0; i < MAX_ROWS; i++) {
        seed = kl_hash(&i, sizeof i, seed);
        // Every half a pattern of t with a tail near a tie, else any bits.
        uint64_t near =
            kl_float_encode(KILN_F32, kl_float_decode(t, seed >> 48)) + (seed & 3) + (1u << (wide ? 15 : 12)) - 1;
        c.value[i][0][0] = (i & 1 ? near : seed >> 32) & 0xffffffff;
        c.value[i][1][0] = kl_convert(KILN_F32, t, c.value[i][0][0]);
      }
      run_op(&c, MAX_ROWS);
    }
  }
}
END_TEST

// --- moving data -----------------------------------------------------------------------------------------------------

// Evaluates text on s32 parameters that count up (parameter k from 1000 k); the result's elements must be `want`.
static void expect_s32(const char *text, const int32_t *want, int64_t count) {
  kiln_module *m = parse(text);
  const kl_comp *c = &m->comp[m->entry];
  kl_array args[4];
  kl_result r;
  for (uint32_t k = 0; k < c->nparams; k++) {
    int64_t n = c->instr[c->params[k]].shape->count;
    int32_t *p = args[k].data = malloc((size_t)(n + 1) * 4);
    for (int64_t i = 0; i < n; i++) p[i] = (int32_t)(1000 * k + i);
  }
  EXPECT(kl_eval(cx, m, m->entry, args, NULL, &r) == KILN_OK, "%s", last_finding());
  EXPECT(r.data.shape->count == count, "count\n%s", text);
  for (int64_t i = 0; i < count; i++)
    EXPECT(((int32_t *)r.data.data)[i] == want[i], "element %lld: %d, not %d\n%s", (long long)i,
           ((int32_t *)r.data.data)[i], want[i], text);
  kl_result_free(cx, &r);
  for (uint32_t k = 0; k < c->nparams; k++) free(args[k].data);
  kiln_module_destroy(&m);
}

// clang-format off
#define P0 "HloModule t\nENTRY e { p = s32[2,3] parameter(0)\n q = s32[] parameter(1)\n"
static const struct {
  const char *body;
  int32_t n, want[40];
} moves[] = {
    {"ROOT r = s32[3,2] transpose(p), dimensions={1,0}", 6, {0, 3, 1, 4, 2, 5}},
    {"ROOT r = s32[2,2,3] broadcast(p), dimensions={1,2}", 12, {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}},
    {"ROOT r = s32[2,2,3] broadcast(p), dimensions={0,2}", 12, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}},
    {"ROOT r = s32[2,2] broadcast(q), dimensions={}", 4, {1000, 1000, 1000, 1000}},
    {"ROOT r = s32[6] reshape(p)", 6, {0, 1, 2, 3, 4, 5}},
    {"ROOT r = s32[1,2] slice(p), slice={[1:2], [0:3:2]}", 2, {3, 5}},
    {"ROOT r = s32[2,0] slice(p), slice={[0:2], [1:1]}", 0, {0}},
    {"ROOT r = s32[2,3] reverse(p), dimensions={1}", 6, {2, 1, 0, 5, 4, 3}},
    {"ROOT r = s32[2,3] reverse(p), dimensions={0,1}", 6, {5, 4, 3, 2, 1, 0}},
    {"ROOT r = s32[2,6] concatenate(p, p), dimensions={1}", 12, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}},
    {"b = s32[2,1] broadcast(q), dimensions={}\n ROOT r = s32[2,4] concatenate(b, p), dimensions={1}", 8, {1000, 0, 1, 2, 1000, 3, 4, 5}},
    {"ROOT r = s32[3,5] pad(p, q), padding=1_0x0_0_1", 15, {1000, 1000, 1000, 1000, 1000, 0, 1000, 1, 1000, 2, 3, 1000, 4, 1000, 5}},
    {"ROOT r = s32[2,2] pad(p, q), padding=0_0x-1_0", 4, {1, 2, 4, 5}},
    {"ROOT r = s32[2,3] pad(p, q), padding=0_0x-1_-1_1", 6, {1000, 1, 1000, 1000, 4, 1000}},
    {"ROOT r = s32[2,2] pad(p, q), padding=0_0x-4_3", 4, {1000, 1000, 1000, 1000}},
    {"z = s32[2,0] slice(p), slice={[0:2], [0:0]}\n ROOT r = s32[2,2] pad(z, q), padding=0_0x1_1", 4, {1000, 1000, 1000, 1000}},
    {"b = s32[2] broadcast(q), dimensions={}\n ROOT r = s32[4] pad(b, q), padding=1_1", 4, {1000, 1000, 1000, 1000}},
    {"ROOT r = s32[2,3] iota(), iota_dimension=1", 6, {0, 1, 2, 0, 1, 2}},
    {"ROOT r = s32[2,3] iota(), iota_dimension=0", 6, {0, 0, 0, 1, 1, 1}},
    {"i = u2[6] iota(), iota_dimension=0\n ROOT r = s32[6] convert(i)", 6, {0, 1, 2, 3, 0, 1}},
    {"i = c64[3] iota(), iota_dimension=0\n j = f32[3] real(i)\n k = f32[3] imag(i)\n l = f32[3] subtract(j, k)\n ROOT r = s32[3] convert(l)", 3, {0, 1, 2}},
    {"ROOT r = s32[3,2]{0,1} bitcast(p)", 6, {0, 3, 1, 4, 2, 5}},
    {"ROOT r = s32[3,2] bitcast(p)", 6, {0, 1, 2, 3, 4, 5}},
    {"t = s32[2,3]{0,1} copy(p)\n ROOT r = s32[3,2] bitcast(t)", 6, {0, 3, 1, 4, 2, 5}},
    {"b = s8[2,3,4] bitcast-convert(p)\n s = s8[2,3,1] slice(b), slice={[0:2], [0:3], [0:1]}\n ROOT r = s32[2,3,1] convert(s)", 6, {0, 1, 2, 3, 4, 5}},
    {"c = s8[2,3] convert(p)\n d = u4[2,3,2] bitcast-convert(c)\n e = s8[2,3] bitcast-convert(d)\n ROOT r = s32[2,3] convert(e)", 6, {0, 1, 2, 3, 4, 5}},
    {"c = s8[2,3] convert(p)\n d = u4[2,3,2] bitcast-convert(c)\n ROOT r = s32[2,3,2] convert(d)", 12, {0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0}},
    {"z = s32[0] iota(), iota_dimension=0\n ROOT r = s32[0] add(z, z)", 0, {0}},
    {"b = s32[2,3] broadcast(q), dimensions={}\n ROOT r = s32[2,3] add(b, p)", 6, {1000, 1001, 1002, 1003, 1004, 1005}},
    {"b = s32[2,3] broadcast(q), dimensions={}\n c = s32[2,3] negate(b)\n d = s32[3,2] transpose(c), dimensions={1,0}\n ROOT r = s32[3,2] add(d, d)", 6, {-2000, -2000, -2000, -2000, -2000, -2000}},
    {"t = (s32[2,3], s32[]) tuple(p, q)\n g = s32[] get-tuple-element(t), index=1\n ROOT r = s32[] add(g, g)", 1, {2000}},
    {"ROOT r = s32[2,3] copy(p)", 6, {0, 1, 2, 3, 4, 5}},
};
// clang-format on

START_TEST(moved_data) {
  char text[1024];
  snprintf(text, sizeof text, P0 "%s\n}", moves[_i].body);
  expect_s32(text, moves[_i].want, moves[_i].n);
}
END_TEST

// Large enough for threads, against the index arithmetic spelled out.
START_TEST(large_moves) {
  enum { A = 37, B = 129, C = 65, N = A * B * C };
  static int32_t want[N + 1];
  char text[512];
  for (int i = 0; i < N; i++) want[i] = (i % A) * B * C + (i / A % C) + (i / A / C) * C;
  snprintf(text, sizeof text,
           "HloModule t\nENTRY e { p = s32[%d,%d,%d] parameter(0)\n ROOT r = s32[%d,%d,%d] transpose(p), "
           "dimensions={1,2,0} }",
           A, B, C, B, C, A);
  expect_s32(text, want, N);
  for (int i = 0; i < N; i++) want[i] = N - 1 - i;
  snprintf(text, sizeof text,
           "HloModule t\nENTRY e { p = s32[%d] parameter(0)\n ROOT r = s32[%d] reverse(p), dimensions={0} }", N, N);
  expect_s32(text, want, N);
}
END_TEST

// --- structure, errors, environment ----------------------------------------------------------------------------------

START_TEST(calls_and_tuples) {
  const char *text = "HloModule t\n"
                     "pair { a = f32[4] parameter(0)\n b = f32[4] parameter(1)\n s = f32[4] add(a, b)\n"
                     " d = f32[4] subtract(a, b)\n i = (f32[4], f32[4]) tuple(d, a)\n"
                     " ROOT t = (f32[4], (f32[4], f32[4])) tuple(s, i) }\n"
                     "ENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n"
                     " f = (f32[4], (f32[4], f32[4])) fusion(x, y), kind=kLoop, calls=pair\n"
                     " g = (f32[4], f32[4]) get-tuple-element(f), index=1\n"
                     " c = (f32[4], (f32[4], f32[4])) call(x, x), to_apply=pair\n"
                     " h = f32[4] get-tuple-element(c), index=0\n"
                     " ROOT r = ((f32[4], f32[4]), f32[4], f32[4]) tuple(g, h, h) }";
  kiln_module *m = parse(text);
  float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40}, r[4][4];
  const void *args[2] = {x, y};
  void *results[4] = {r[0], r[1], r[2], r[3]};
  EXPECT(kiln_module_eval(cx, m, args, results, NULL) == KILN_OK, "%s", last_finding());
  for (int i = 0; i < 4; i++) {
    ck_assert_float_eq(r[0][i], x[i] - y[i]);
    ck_assert_float_eq(r[1][i], x[i]);
    ck_assert_float_eq(r[2][i], 2 * x[i]);
    ck_assert_float_eq(r[3][i], 2 * x[i]);
  }
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(buffers_have_layouts) {
  kiln_module *m = parse("HloModule t\nENTRY e { p = s4[2,3]{0,1} parameter(0)\n ROOT r = s4[2,3]{1,0} negate(p) }");
  // Columns (1,4) (2,5) (3,-8), element 0 in the low bits.
  const uint8_t in[3] = {0x41, 0x52, 0x83};
  uint8_t out[3];
  EXPECT(kiln_module_eval(cx, m, (const void *const[]){in}, (void *const[]){out}, NULL) == KILN_OK, "%s",
         last_finding());
  ck_assert_int_eq(out[0], 0xef); // -1 -2
  ck_assert_int_eq(out[1], 0xcd); // -3 -4
  ck_assert_int_eq(out[2], 0x8b); // -5 -8
  size_t count = 9;
  EXPECT(kiln_module_check(cx, m, (const void *const[]){in}, (const void *const[]){out}, NULL, 0, &count, NULL) ==
             KILN_OK,
         "%s", last_finding());
  ck_assert_uint_eq(count, 0);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(check_reports_mismatches) {
  kiln_module *m = parse(
      "HloModule t\nENTRY e { p = f32[5] parameter(0)\n q = bf16[5] convert(p)\n e = f32[5] exponential(p)\n"
      " c = pred[5] compare(p, p), direction=EQ\n ROOT r = (f32[5], bf16[5], f32[5], pred[5]) tuple(p, q, e, c) }");
  float p[5] = {1, 2, NAN, 4, 5}, exps[5], same_p[5];
  uint16_t q[5];
  uint8_t c[5];
  void *out[4] = {same_p, q, exps, c};
  const void *args[1] = {p};
  size_t count;
  kiln_mismatch found[4];
  ck_assert_int_eq(kiln_module_eval(cx, m, args, out, NULL), KILN_OK);
  ck_assert_int_eq(kiln_module_check(cx, m, args, (const void *const *)out, found, 4, &count, NULL), KILN_OK);
  ck_assert_uint_eq(count, 0);
  exps[3] = nextafterf(exps[3], INFINITY); // within one unit
  q[2] ^= 0x8001;                          // still NaN
  ck_assert_int_eq(kiln_module_check(cx, m, args, (const void *const *)out, found, 4, &count, NULL), KILN_OK);
  ck_assert_uint_eq(count, 0);
  exps[3] *= 1.00001f;
  exps[4] = NAN;
  q[1] ^= 1;
  c[0] = 2;
  ck_assert_int_eq(kiln_module_check(cx, m, args, (const void *const *)out, found, 2, &count, NULL), KILN_OK);
  ck_assert_uint_eq(count, 3);
  ck_assert_uint_eq(found[0].result, 1);
  ck_assert_int_eq(found[0].element, 1);
  ck_assert_int_eq(found[0].count, 1);
  ck_assert_str_eq(found[0].found, "2.02");
  ck_assert_str_eq(found[0].expected, "2");
  ck_assert_uint_eq(found[1].result, 2);
  ck_assert_int_eq(found[1].element, 3);
  ck_assert_int_eq(found[1].count, 2);
  EXPECT(found[1].expected[0] == '[' && strstr(found[1].expected, ", 54.59815"), "%s", found[1].expected);
  ck_assert_int_eq(kiln_module_check(cx, m, args, (const void *const *)out, found, 4, &count, NULL), KILN_OK);
  ck_assert_uint_eq(found[2].result, 3);
  ck_assert_str_eq(found[2].expected, "true");
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(unknown_ops_are_named) {
  kiln_module *m = parse(
      "HloModule t\nENTRY e { p = f32[4] parameter(0)\n d = f32[4] frobnicate(p), k=3\n ROOT r = f32[4] negate(d) }");
  float p[4] = {0};
  const void *args[1] = {p};
  void *out[1] = {p};
  ck_assert_int_eq(kiln_module_eval(cx, m, args, out, NULL), KILN_E_UNSUPPORTED);
  EXPECT(strstr(last_finding(), "'frobnicate'") && strstr(last_finding(), "test:3:"), "%s", last_finding());
  kiln_module_destroy(&m);
}
END_TEST

// Each level of calls takes C stack: there is a limit, and the finding says so.
START_TEST(deep_calls_are_refused) {
  enum { DEPTH = 400 };
  static char text[DEPTH * 100 + 200];
  size_t n = (size_t)sprintf(text, "HloModule t\nc0 { p = f32[] parameter(0)\n ROOT r = f32[] negate(p) }\n");
  for (int k = 1; k <= DEPTH; k++)
    n += (size_t)sprintf(text + n, "c%d { p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=c%d }\n", k, k - 1);
  for (int depth = 100; depth <= DEPTH; depth += 300) {
    sprintf(text + n, "ENTRY e { p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=c%d }\n", depth);
    kiln_module *m = parse(text);
    float x = 3, y = 0;
    kiln_status s = kiln_module_eval(cx, m, (const void *const[]){&x}, (void *const[]){&y}, NULL);
    ck_assert_int_eq(s, depth == 100 ? KILN_OK : KILN_E_UNSUPPORTED);
    EXPECT(depth == 100 ? y == -3 : strstr(last_finding(), "nested") != NULL, "%s", last_finding());
    kiln_module_destroy(&m);
  }
}
END_TEST

// The number of threads changes no bit.
START_TEST(threads_change_nothing) {
  enum { COUNT = 300001 };
  kiln_module *m = parse("HloModule t\nENTRY e { p = f32[300001] parameter(0)\n e = f32[300001] tanh(p)\n"
                         " c = bf16[300001] convert(e)\n s = bf16[300001] sine(c)\n"
                         " ROOT r = (f32[300001], bf16[300001]) tuple(e, s) }");
  float *p = malloc(COUNT * sizeof(float));
  for (int i = 0; i < COUNT; i++) p[i] = (float)(i - COUNT / 2) * 1e-4f;
  kl_result r[2][2];
  for (int k = 0; k < 2; k++)
    ck_assert_int_eq(
        kl_eval(cx, m, m->entry, &(kl_array){NULL, p}, &(kl_eval_opts){.intervals = true, .threads = k ? 1 : 7}, r[k]),
        KILN_OK);
  for (int k = 0; k < 2; k++) {
    size_t size = COUNT * (size_t)(k ? 2 : 4);
    ck_assert(memcmp(r[0][k].data.data, r[1][k].data.data, size) == 0);
    ck_assert(memcmp(r[0][k].lo, r[1][k].lo, size) == 0 && memcmp(r[0][k].hi, r[1][k].hi, size) == 0);
    kl_result_free(cx, &r[0][k]);
    kl_result_free(cx, &r[1][k]);
  }
  free(p);
  kiln_module_destroy(&m);
}
END_TEST

// Flush-to-zero, denormals-are-zero and another rounding mode in the caller change nothing, and stay as they were.
#if defined(__x86_64__)
static unsigned get_mode(void) {
  return __builtin_ia32_stmxcsr() & 0xffc0;
}
static void flush_denormals(void) {
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
}
#else
static unsigned get_mode(void) {
  return (unsigned)fegetround();
}
static void flush_denormals(void) {}
#endif

START_TEST(environment_is_ours) {
  kiln_module *m = parse("HloModule t\nENTRY e { p = f32[2] parameter(0)\n q = f32[2] parameter(1)\n"
                         " ROOT r = f32[2] multiply(p, q) }");
  float p[2] = {1e-40f, 0x1.000002p0f}, q[2] = {2, 0x1.000002p0f}, r[2] = {0}, twice = 2 * p[0];
  fenv_t env;
  fegetenv(&env);
  fesetround(FE_UPWARD);
  flush_denormals();
  unsigned before = get_mode();
  kiln_status s = kiln_module_eval(cx, m, (const void *const[]){p, q}, (void *const[]){r}, NULL);
  unsigned after = get_mode();
  fesetenv(&env);
  ck_assert_int_eq(s, KILN_OK);
  ck_assert_uint_eq(after, before);
  ck_assert(r[0] == twice && r[1] == 0x1.000004p0f);
  kiln_module_destroy(&m);
}
END_TEST

// --- memory ----------------------------------------------------------------------------------------------------------

typedef struct meter {
  size_t live, calls, fail_at; // fail_at: which large allocation fails, from 1
  bool wrong;
} meter;

static void *metered(void *user, void *p, size_t old_size, size_t size) {
  meter *m = user;
  size_t *block = p ? (size_t *)p - 2 : NULL;
  if (block && block[0] != old_size) m->wrong = true;
  if (size >= 100000 && ++m->calls == m->fail_at) return NULL;
  m->live += size;
  m->live -= old_size;
  if (size == 0) {
    free(block);
    return NULL;
  }
  block = realloc(block, size + 16);
  block[0] = size;
  return block + 2;
}

START_TEST(memory_is_given_back) {
  const char *text =
      "HloModule t\n"
      "f { a = f32[60000] parameter(0)\n e = f32[60000] tanh(a)\n s = f32[60000] sine(e)\n"
      " b = bf16[60000] convert(s)\n ROOT t = (f32[60000], bf16[60000]) tuple(s, b) }\n"
      "ENTRY e { p = f32[60000] parameter(0)\n f = (f32[60000], bf16[60000]) fusion(p), kind=kLoop, calls=f\n"
      " g = f32[60000] get-tuple-element(f), index=0\n h = f32[60000] reverse(g), dimensions={0}\n"
      " c = f32[120000] concatenate(g, h), dimensions={0}\n b = f32[120000] bitcast(c)\n"
      " i = u8[120000,4] bitcast-convert(b)\n ROOT r = (u8[120000,4], f32[60000]) tuple(i, g) }";
  meter meter = {0};
  kiln_context_params params = {.struct_size = sizeof params, .allocator = {&meter, metered, NULL}};
  kiln_context *mine = kiln_context_create(&params);
  kiln_module *m = NULL;
  ck_assert_int_eq(kiln_module_parse(mine, "test", text, strlen(text), &m), KILN_OK);
  float *p = calloc(60000, 4);
  kl_array arg = {NULL, p};
  kl_eval_opts opts = {.intervals = true, .threads = 2};
  size_t live = meter.live;
  bool done = false;
  for (size_t k = 1; !done; k++) {
    ck_assert_uint_lt(k, 200);
    kl_result r[2] = {0};
    meter.calls = 0;
    meter.fail_at = k;
    kiln_status s = kl_eval(mine, m, m->entry, &arg, &opts, r);
    done = meter.calls < k;
    ck_assert_int_eq(s, done ? KILN_OK : KILN_E_MEMORY);
    for (int i = 0; i < 2 && done; i++) kl_result_free(mine, &r[i]);
    meter.fail_at = 0;
    kiln_diagnostics_clear(mine);
    ck_assert(!meter.wrong);
    if (k == 1) live = meter.live; // the diagnostics' own arena
    EXPECT(meter.live <= live, "%zu bytes more are live", meter.live - live);
  }
  free(p);
  kiln_module_destroy(&m);
  kiln_context_destroy(&mine);
  ck_assert_uint_eq(meter.live, 0);
}
END_TEST

// --- the example everything is measured by ---------------------------------------------------------------------------

static const char gelu[] =
    "HloModule m\n"
    "gelu {\n"
    "  p = bf16[65536] parameter(0)\n"
    "  c0 = bf16[] constant(0.5)\n  b0 = bf16[65536] broadcast(c0), dimensions={}\n"
    "  c1 = bf16[] constant(1)\n  b1 = bf16[65536] broadcast(c1), dimensions={}\n"
    "  c2 = bf16[] constant(0.79785)\n  b2 = bf16[65536] broadcast(c2), dimensions={}\n"
    "  c3 = bf16[] constant(0.044708)\n  b3 = bf16[65536] broadcast(c3), dimensions={}\n"
    "  square = bf16[65536] multiply(p, p)\n  cube = bf16[65536] multiply(square, p)\n"
    "  m3 = bf16[65536] multiply(cube, b3)\n  a1 = bf16[65536] add(p, m3)\n"
    "  m2 = bf16[65536] multiply(a1, b2)\n  t = bf16[65536] tanh(m2)\n"
    "  a0 = bf16[65536] add(t, b1)\n  m1 = bf16[65536] multiply(a0, b0)\n"
    "  ROOT r = bf16[65536] multiply(p, m1)\n}\n"
    "ENTRY e { p = bf16[65536] parameter(0)\n ROOT f = bf16[65536] fusion(p), kind=kLoop, calls=gelu }\n";

static uint64_t bf16(double v) {
  return kl_float_encode(KILN_BF16, v);
}
static double of(uint64_t b) {
  return kl_float_decode(KILN_BF16, b);
}
static double round_bf16(double v) {
  return of(bf16(v));
}

START_TEST(gelu_on_all_inputs) {
  kiln_module *m = parse(gelu);
  static uint16_t in[65536], out[65536];
  for (int i = 0; i < 65536; i++) in[i] = (uint16_t)i;
  ck_assert_int_eq(kiln_module_eval(cx, m, (const void *const[]){in}, (void *const[]){out}, NULL), KILN_OK);
  for (int i = 0; i < 65536; i++) {
    double x = of((uint64_t)i), cube = round_bf16(round_bf16(x * x) * x);
    double inner = round_bf16(round_bf16(x + round_bf16(cube * round_bf16(0.044708))) * round_bf16(0.79785));
    uint64_t want = bf16(x * round_bf16(round_bf16(round_bf16(tanh(inner)) + 1) * 0.5));
    EXPECT(same(KILN_BF16, out[i], want), "gelu(%g) = %g, not %g", x, of(out[i]), of(want));
  }
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("eval", EACH(make_context, drop_context), {computed_cases, (int)KL_COUNT(files)},
                   {corner_rows, (int)KL_COUNT(corners)}, {narrow_paths}, {gelu_on_all_inputs},
                   {moved_data, (int)KL_COUNT(moves)}, {large_moves}, {calls_and_tuples}, {buffers_have_layouts},
                   {check_reports_mismatches}, {unknown_ops_are_named}, {deep_calls_are_refused},
                   {threads_change_nothing}, {environment_is_ours}, {memory_is_given_back});
}
