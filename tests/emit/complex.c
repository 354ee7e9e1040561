// Functions of complex numbers as they are compiled, on the host and on the simulator: within their bounds of MPFR's
// results, part by part where that is promised, and C's Annex G for zeros, infinities and NaN.
#include "complex_cases.h"
#include "eval/eval.h"
#include "harness.h"
#include "support/random.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

static const kl_op ops[] = {KL_OP_EXP,   KL_OP_EXPM1, KL_OP_EXP10, KL_OP_LOG,    KL_OP_LOG1P, KL_OP_LOGISTIC,
                            KL_OP_SQRT,  KL_OP_RSQRT, KL_OP_SIGN,  KL_OP_SINH,   KL_OP_COSH,  KL_OP_TANH,
                            KL_OP_SIN,   KL_OP_COS,   KL_OP_TAN,   KL_OP_ASIN,   KL_OP_ACOS,  KL_OP_ATAN,
                            KL_OP_ASINH, KL_OP_ACOSH, KL_OP_ATANH, KL_OP_DIVIDE, KL_OP_POWER, KL_OP_ATAN2};
enum { OPS = KL_COUNT(ops), GPU = 3 };

static bool of_two(kl_op op) {
  return kl_op_table[op].arity == 2;
}

typedef cc_number number;

// --- running ------------------------------------------------------------------------------------------------------

static void run_text(kiln_context *cx, const char *text, kl_dtype t, int n, const number *x, const number *y, number *r,
                     unsigned machine) {
  size_t part = t == KILN_C64 ? 4 : 8, bytes = 2 * part * (size_t)n;
  void *in[2] = {NULL, NULL}, *out[1];
  const number *from[2] = {x, y};
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "complex.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, "parsing", cx, text);
  for (int k = 0; k < 2; k++) {
    in[k] = aligned_alloc(16, (bytes + 15) & ~(size_t)15);
    for (int i = 0; from[k] && i < 2 * n; i++) {
      double v = i % 2 ? from[k][i / 2].im : from[k][i / 2].re;
      if (part == 4)
        ((float *)in[k])[i] = (float)v;
      else
        ((double *)in[k])[i] = v;
    }
  }
  out[0] = aligned_alloc(16, (bytes + 15) & ~(size_t)15);
  run_on(cx, m, machine, 1, 0, (const void *const *)in, out, text);
  for (int i = 0; i < n; i++) {
    if (part == 4)
      r[i] = (number){((float *)out[0])[2 * i], ((float *)out[0])[2 * i + 1]};
    else
      r[i] = ((number *)out[0])[i];
  }
  free(in[0]), free(in[1]), free(out[0]);
  kiln_module_destroy(&m);
}

static void run_op(kl_op op, kl_dtype t, int n, const number *x, const number *y, number *r, unsigned machine) {
  char text[512];
  const char *name = kl_info(t)->name;
  kiln_context *cx = kiln_context_create(NULL);
  snprintf(text, sizeof text,
           "HloModule fusion\n\nENTRY fusion {\n  x = %s[%d] parameter(0)\n  y = %s[%d] parameter(1)\n"
           "  ROOT r = %s[%d] %s(x%s)\n}\n",
           name, n, name, n, name, n, kl_op_name(op), of_two(op) ? ", y" : "");
  run_text(cx, text, t, n, x, y, r, machine);
  kiln_context_destroy(&cx);
}

// Is the function or row i / 2 tried on type i % 2? Each on one of the types, on the other one in six.
static bool is_tried(int i) {
  return share_has((uint64_t)i, i % 2 == i / 2 % 2 ? 1 : 6);
}

// --- bounds -------------------------------------------------------------------------------------------------------

START_TEST(within_the_bounds) {
  kl_op op = ops[_i / 2];
  kl_dtype t = _i % 2 ? KILN_C128 : KILN_C64;
  if (!is_tried(_i)) return;
  int n = (int)share_up_to(_i % 2 ? 400 : 800, 1 << 24);
  number *x = calloc((size_t)n, sizeof *x), *y = calloc((size_t)n, sizeof *y), *r = calloc((size_t)n, sizeof *r),
         *s = calloc((size_t)n, sizeof *s);
  random_seed((uint64_t)_i);
  for (int i = 0; i < n; i++) {
    x[i] = cc_draw(t, i);
    y[i] = of_two(op) ? cc_draw_second(t, op, x[i], i) : x[i];
  }
  run_op(op, t, n, x, y, r, HOST);
  run_op(op, t, n, x, y, s, GPU);
  cr_open(t == KILN_C64 ? 420 : 2300);
  cr_complex a, b, want;
  cr_init(&a, 53), cr_init(&b, 53), cr_init(&want, t == KILN_C64 ? 420 : 2300);
  double worst = 0;
  number at = {0, 0}, at_y = {0, 0}, got = {0, 0};
  for (int i = 0; i < n; i++) {
    EXPECT((memcmp(&r[i].re, &s[i].re, 8) == 0 || (isnan(r[i].re) && isnan(s[i].re))) &&
               (memcmp(&r[i].im, &s[i].im, 8) == 0 || (isnan(r[i].im) && isnan(s[i].im))),
           "%s %s(%a, %a): %a, %a on the host, %a, %a on the simulator", kl_info(t)->name, kl_op_name(op), x[i].re,
           x[i].im, r[i].re, r[i].im, s[i].re, s[i].im);
    if (!isfinite(x[i].re + x[i].im + y[i].re + y[i].im) || cc_on_axis(x[i]) || cc_on_axis(y[i])) continue;
    cr_set(&a, x[i].re, x[i].im), cr_set(&b, y[i].re, y[i].im);
    cr_function(op, &want, &a, &b);
    double e = cc_error(op, t, kl_op_bound_is_normwise(op, t), x[i], y[i], &want, r[i]);
    if (e > worst) worst = e, at = x[i], at_y = y[i], got = r[i];
  }
  if (test_share() > 1)
    printf("# %s %s: %.3f at (%a, %a) (%a, %a): (%a, %a)\n", kl_info(t)->name, kl_op_name(op), worst, at.re, at.im,
           at_y.re, at_y.im, got.re, got.im);
  ck_assert_msg(worst <= kl_op_ulp_bound(op, t), "%s %s((%a, %a), (%a, %a)) = (%a, %a): %.3f units", kl_info(t)->name,
                kl_op_name(op), at.re, at.im, at_y.re, at_y.im, got.re, got.im, worst);
  cr_clear(&a), cr_clear(&b), cr_clear(&want);
  cr_close();
  free(x), free(y), free(r), free(s);
}
END_TEST

// On an axis, where the other part is a zero of either sign, and on branch cuts, where that sign says which side.
START_TEST(on_the_axes) {
  kl_op op = ops[_i / 2];
  kl_dtype t = _i % 2 ? KILN_C128 : KILN_C64;
  if (of_two(op) || !is_tried(_i)) return;
  int n = (int)share_up_to(200, 1 << 20);
  number *x = calloc((size_t)n, sizeof *x), *r = calloc((size_t)n, sizeof *r);
  random_seed((uint64_t)_i);
  for (int i = 0; i < n; i++) {
    x[i] = cc_draw(t, i / 4);
    *(i & 1 ? &x[i].re : &x[i].im) = i & 2 ? 0.0 : -0.0;
  }
  run_op(op, t, n, x, x, r, HOST);
  cr_open(t == KILN_C64 ? 420 : 2300);
  cr_complex a, want;
  cr_init(&a, 53), cr_init(&want, t == KILN_C64 ? 420 : 2300);
  for (int i = 0; i < n; i++) {
    if (!isfinite(x[i].re + x[i].im) || (x[i].re == 0 && x[i].im == 0)) continue;
    cr_set(&a, x[i].re, x[i].im);
    cr_function(op, &want, &a, &a);
    double e = cc_error(op, t, kl_op_bound_is_normwise(op, t), x[i], x[i], &want, r[i]);
    EXPECT(e <= kl_op_ulp_bound(op, t), "%s %s(%a, %a) = (%a, %a), not (%a, %a): %.3f units", kl_info(t)->name,
           kl_op_name(op), x[i].re, x[i].im, r[i].re, r[i].im, mpfr_get_d(want.re, MPFR_RNDN),
           mpfr_get_d(want.im, MPFR_RNDN), e);
  }
  cr_clear(&a), cr_clear(&want);
  cr_close();
  free(x), free(r);
}
END_TEST

// Where y / x, rounded, is on the pole itself or twice as far from it as the exact quotient, or nearer to it than the
// least number can say.
static const number next_to_poles[][2] = {
    {{0x1.d9e26ae052712p-110, -1}, {0x1.fffffffffffffp-1, 0x1.d9e26ae052712p-110}},
    {{1, 0x1p-60}, {0x1p-60, -0x1.fffffep-1}},
    {{0x1.10003cp-6, 0x1.ffede2p-1}, {0x1.ffedep-1, -0x1.10003cp-6}},
    {{-0x1p-30, 1}, {0x1.fffffep-1, 0x1p-31}},
    {{-0x1p-10, 0x1p-2}, {0x1.000002p-2, 0x1p-10}},
    {{0x1.3c89cp+5, 0x1.3e7252p-6}, {-0x1.3e7252p-6, 0x1.3c89cp+5}},
    {{-0x1.8ecf64p+1, 0x1.606d6cp-12}, {0x1.606d6cp-12, 0x1.8ecf64p+1}},
    {{0, 2}, {2, 0x1p-149}},
    {{0, -2}, {2, -0x1p-149}},
    {{0, 2}, {-2, 0x1p-149}},
    {{0x1p-149, 0x1p+127}, {0x1p+127, 0}},
    {{-0x1.8p+127, 0x1p-149}, {0x1p-148, 0x1.8p+127}},
    {{0x1p-149, 0x1p-149}, {0x1p-149, 0x1p-149}},
    {{0x1p-149, 0x1.8p-130}, {0x1.8p-130, 0}},
    {{0, 2}, {2, 0x1p-1074}},
    {{0x1p-1074, 0x1p+1023}, {0x1p+1023, 0}},
    {{0x1p-1074, 0x1p+1023}, {0x1p+1023, -0x1p-1073}},
    {{-0x1.8p+1023, 0x1p-1074}, {0x1p-1073, 0x1.8p+1023}},
    {{0x1p-1074, 0x1.8p-1030}, {0x1.8p-1030, 0}},
};
enum { POLES = KL_COUNT(next_to_poles) };

static void draw_next_to_pole(kl_dtype t, number *y, number *x) {
  double range = t == KILN_C64 ? 126 : 1022;
  y->re = cc_to_type(t, cc_spread(range));
  y->im = cc_to_type(t, cc_spread(range));
  number z = cc_next_to_pole(t, *y);
  *x = (number){cc_to_type(t, z.re), cc_to_type(t, z.im)};
}

START_TEST(atan2_next_to_its_poles) {
  kl_dtype t = _i % 2 ? KILN_C128 : KILN_C64;
  int n = POLES + (int)share_up_to(200, 1 << 20);
  number *a = calloc((size_t)n, sizeof *a), *b = calloc((size_t)n, sizeof *b), *r = calloc((size_t)n, sizeof *r);
  random_seed((uint64_t)_i % 2);
  for (int i = 0; i < n; i++) {
    if (i < POLES)
      for (int k = 0; k < 2; k++)
        *(k ? &b[i] : &a[i]) = (number){cc_to_type(t, next_to_poles[i][k].re), cc_to_type(t, next_to_poles[i][k].im)};
    else
      draw_next_to_pole(t, &a[i], &b[i]);
  }
  run_op(KL_OP_ATAN2, t, n, a, b, r, _i / 2 ? (unsigned)GPU : (unsigned)HOST);
  mpfr_prec_t bits = t == KILN_C64 ? 420 : 2300;
  cr_open(bits);
  cr_complex u, v, want;
  cr_init(&u, 53), cr_init(&v, 53), cr_init(&want, bits);
  double worst = 0;
  for (int i = 0; i < n; i++) {
    if (!isfinite(a[i].re + a[i].im + b[i].re + b[i].im) || (a[i].im == 0 && b[i].im == 0)) continue;
    cr_set(&u, a[i].re, a[i].im), cr_set(&v, b[i].re, b[i].im);
    cr_function(KL_OP_ATAN2, &want, &u, &v);
    double e = cc_error(KL_OP_ATAN2, t, true, a[i], b[i], &want, r[i]);
    worst = fmax(worst, e);
    EXPECT(e <= kl_op_ulp_bound(KL_OP_ATAN2, t), "%s atan2((%a, %a), (%a, %a)) = (%a, %a): %.3f units",
           kl_info(t)->name, a[i].re, a[i].im, b[i].re, b[i].im, r[i].re, r[i].im, e);
  }
  if (test_share() > 1) printf("# %s atan2 next to its poles: %.3f\n", kl_info(t)->name, worst);
  cr_clear(&u), cr_clear(&v), cr_clear(&want);
  cr_close();
  free(a), free(b), free(r);
}
END_TEST

// --- corners ------------------------------------------------------------------------------------------------------

// The tables of C99's Annex G, G.6.1.1 to G.6.4.2, for numbers with an imaginary part that has no sign; ANY is any
// finite number other than zero. Those with one follow by f(conj z) = conj f(z), and by what the functions are odd or
// even in. RE, IM: the sign of that part is left open. TURN: the signs of the results are those of cis(y)'s parts.
enum { RE = 1, IM = 2, TURN = 4 };
typedef struct corner {
  double re, im, want_re, want_im;
  unsigned flags;
} corner;
#define INF INFINITY
#define PI  M_PI
#define ANY 0.75

static const corner acos_corners[] = {
    {0, 0, PI / 2, -0.0, 0},          {-0.0, 0, PI / 2, -0.0, 0},  {0, NAN, PI / 2, NAN, 0},
    {-0.0, NAN, PI / 2, NAN, 0},      {ANY, INF, PI / 2, -INF, 0}, {-ANY, INF, PI / 2, -INF, 0},
    {0, INF, PI / 2, -INF, 0},        {ANY, NAN, NAN, NAN, 0},     {-INF, ANY, PI, -INF, 0},
    {-INF, 0, PI, -INF, 0},           {INF, ANY, 0, -INF, 0},      {INF, 0, 0, -INF, 0},
    {-INF, INF, PI * 3 / 4, -INF, 0}, {INF, INF, PI / 4, -INF, 0}, {INF, NAN, NAN, INF, IM},
    {-INF, NAN, NAN, INF, IM},        {NAN, ANY, NAN, NAN, 0},     {NAN, INF, NAN, -INF, 0},
    {NAN, NAN, NAN, NAN, 0},
};
static const corner acosh_corners[] = {
    {0, 0, 0, PI / 2, 0},     {-0.0, 0, 0, PI / 2, 0},         {ANY, INF, INF, PI / 2, 0}, {-ANY, INF, INF, PI / 2, 0},
    {ANY, NAN, NAN, NAN, 0},  {-INF, ANY, INF, PI, 0},         {-INF, 0, INF, PI, 0},      {INF, ANY, INF, 0, 0},
    {INF, 0, INF, 0, 0},      {-INF, INF, INF, PI * 3 / 4, 0}, {INF, INF, INF, PI / 4, 0}, {INF, NAN, INF, NAN, 0},
    {-INF, NAN, INF, NAN, 0}, {NAN, ANY, NAN, NAN, 0},         {NAN, INF, INF, NAN, 0},    {NAN, NAN, NAN, NAN, 0},
};
static const corner asinh_corners[] = {
    {0, 0, 0, 0, 0},       {ANY, INF, INF, PI / 2, 0}, {0, INF, INF, PI / 2, 0},   {ANY, NAN, NAN, NAN, 0},
    {INF, ANY, INF, 0, 0}, {INF, 0, INF, 0, 0},        {INF, INF, INF, PI / 4, 0}, {INF, NAN, INF, NAN, 0},
    {NAN, 0, NAN, 0, 0},   {NAN, ANY, NAN, NAN, 0},    {NAN, INF, INF, NAN, RE},   {NAN, NAN, NAN, NAN, 0},
};
static const corner atanh_corners[] = {
    {0, 0, 0, 0, 0},          {0, NAN, 0, NAN, 0},     {1, 0, INF, 0, 0},        {ANY, INF, 0, PI / 2, 0},
    {0, INF, 0, PI / 2, 0},   {ANY, NAN, NAN, NAN, 0}, {INF, ANY, 0, PI / 2, 0}, {INF, 0, 0, PI / 2, 0},
    {INF, INF, 0, PI / 2, 0}, {INF, NAN, 0, NAN, 0},   {NAN, ANY, NAN, NAN, 0},  {NAN, INF, 0, PI / 2, RE},
    {NAN, NAN, NAN, NAN, 0},
};
static const corner cosh_corners[] = {
    {0, 0, 1, 0, 0},          {0, INF, NAN, 0, IM},    {0, NAN, NAN, 0, IM},       {ANY, INF, NAN, NAN, 0},
    {ANY, NAN, NAN, NAN, 0},  {INF, 0, INF, 0, 0},     {INF, ANY, INF, INF, TURN}, {INF, 2 * ANY + 1, INF, INF, TURN},
    {INF, INF, INF, NAN, RE}, {INF, NAN, INF, NAN, 0}, {NAN, 0, NAN, 0, IM},       {NAN, ANY, NAN, NAN, 0},
    {NAN, NAN, NAN, NAN, 0},
};
static const corner sinh_corners[] = {
    {0, 0, 0, 0, 0},          {0, INF, 0, NAN, RE},     {0, NAN, 0, NAN, RE},       {ANY, INF, NAN, NAN, 0},
    {ANY, NAN, NAN, NAN, 0},  {INF, 0, INF, 0, 0},      {INF, ANY, INF, INF, TURN}, {INF, 2 * ANY + 1, INF, INF, TURN},
    {INF, INF, INF, NAN, RE}, {INF, NAN, INF, NAN, RE}, {NAN, 0, NAN, 0, 0},        {NAN, ANY, NAN, NAN, 0},
    {NAN, NAN, NAN, NAN, 0},
};
static const corner tanh_corners[] = {
    {0, 0, 0, 0, 0},     {ANY, INF, NAN, NAN, 0},        {ANY, NAN, NAN, NAN, 0}, {INF, 0, 1, 0, 0},
    {INF, ANY, 1, 0, 0}, {INF, 2 * ANY + 1, 1, -0.0, 0}, {INF, INF, 1, 0, IM},    {INF, NAN, 1, 0, IM},
    {NAN, 0, NAN, 0, 0}, {NAN, ANY, NAN, NAN, 0},        {NAN, NAN, NAN, NAN, 0},
};
static const corner exp_corners[] = {
    {0, 0, 1, 0, 0},
    {-0.0, 0, 1, 0, 0},
    {ANY, INF, NAN, NAN, 0},
    {ANY, NAN, NAN, NAN, 0},
    {INF, 0, INF, 0, 0},
    {-INF, ANY, 0, 0, TURN},
    {-INF, 2 * ANY + 1, 0, 0, TURN},
    {INF, ANY, INF, INF, TURN},
    {INF, 2 * ANY + 1, INF, INF, TURN},
    {-INF, INF, 0, 0, RE | IM},
    {INF, INF, INF, NAN, RE},
    {-INF, NAN, 0, 0, RE | IM},
    {INF, NAN, INF, NAN, RE},
    {NAN, 0, NAN, 0, 0},
    {NAN, ANY, NAN, NAN, 0},
    {NAN, NAN, NAN, NAN, 0},
};
static const corner log_corners[] = {
    {-0.0, 0, -INF, PI, 0},     {0, 0, -INF, 0, 0},      {ANY, INF, INF, PI / 2, 0}, {-ANY, INF, INF, PI / 2, 0},
    {ANY, NAN, NAN, NAN, 0},    {-INF, ANY, INF, PI, 0}, {INF, ANY, INF, 0, 0},      {-INF, INF, INF, PI * 3 / 4, 0},
    {INF, INF, INF, PI / 4, 0}, {INF, NAN, INF, NAN, 0}, {-INF, NAN, INF, NAN, 0},   {NAN, ANY, NAN, NAN, 0},
    {NAN, INF, INF, NAN, 0},    {NAN, NAN, NAN, NAN, 0},
};
static const corner sqrt_corners[] = {
    {0, 0, 0, 0, 0},         {-0.0, 0, 0, 0, 0},        {ANY, INF, INF, INF, 0}, {-INF, INF, INF, INF, 0},
    {INF, INF, INF, INF, 0}, {NAN, INF, INF, INF, 0},   {ANY, NAN, NAN, NAN, 0}, {-INF, ANY, 0, INF, 0},
    {INF, ANY, INF, 0, 0},   {-INF, NAN, NAN, INF, IM}, {INF, NAN, INF, NAN, 0}, {NAN, ANY, NAN, NAN, 0},
    {NAN, NAN, NAN, NAN, 0},
};

enum { NEITHER, ODD, EVEN };
static const struct {
  kl_op op, turned; // turned(z) is -i op(iz), of cosh op(iz)
  const corner *rows;
  int n, parity;
} corners[] = {
    {KL_OP_ACOS, 0, acos_corners, KL_COUNT(acos_corners), NEITHER},
    {KL_OP_ACOSH, 0, acosh_corners, KL_COUNT(acosh_corners), NEITHER},
    {KL_OP_ASINH, KL_OP_ASIN, asinh_corners, KL_COUNT(asinh_corners), ODD},
    {KL_OP_ATANH, KL_OP_ATAN, atanh_corners, KL_COUNT(atanh_corners), ODD},
    {KL_OP_COSH, KL_OP_COS, cosh_corners, KL_COUNT(cosh_corners), EVEN},
    {KL_OP_SINH, KL_OP_SIN, sinh_corners, KL_COUNT(sinh_corners), ODD},
    {KL_OP_TANH, KL_OP_TAN, tanh_corners, KL_COUNT(tanh_corners), ODD},
    {KL_OP_EXP, 0, exp_corners, KL_COUNT(exp_corners), NEITHER},
    {KL_OP_LOG, 0, log_corners, KL_COUNT(log_corners), NEITHER},
    {KL_OP_SQRT, 0, sqrt_corners, KL_COUNT(sqrt_corners), NEITHER},
};

static bool matches(kl_dtype t, double want, double z, bool any_sign) {
  if (isnan(want) || isnan(z)) return isnan(want) && isnan(z);
  if (any_sign) want = fabs(want), z = fabs(z);
  if (want == 0 || isinf(want)) return want == z && !signbit(want) == !signbit(z);
  return fabs(z - want) <= fabs(want) * (t == KILN_C64 ? 0x1p-22 : 0x1p-51);
}

static void check_corner(kl_op op, kl_dtype t, unsigned machine, number z, number want, bool any_re, bool any_im,
                         number r) {
  EXPECT(matches(t, want.re, r.re, any_re) && matches(t, want.im, r.im, any_im),
         "%s %s(%g, %g) = (%g, %g), not (%g, %g), on machine %u", kl_info(t)->name, kl_op_name(op), z.re, z.im, r.re,
         r.im, want.re, want.im, machine);
}

static number negative(number z) {
  return (number){-z.re, -z.im};
}

START_TEST(corners_are_those_of_annex_g) {
  enum { MOST = 128 };
  kl_dtype t = _i % 2 ? KILN_C128 : KILN_C64;
  int row = _i / 2, n = 0;
  number z[MOST], want[MOST], r[MOST], iz[MOST], turned_want[MOST];
  unsigned flags[MOST];
  for (int i = 0; i < corners[row].n; i++) {
    const corner *c = &corners[row].rows[i];
    number a = {c->re, c->im}, w = {c->want_re, c->want_im};
    if (c->flags & TURN) w = (number){copysign(w.re, cos(a.im)), copysign(w.im, sin(a.im))};
    for (int k = 0; k < 4; k++) {
      if (k & 2 && !corners[row].parity) break;
      number b = a, v = w;
      if (k & 1) b.im = -b.im, v.im = -v.im;
      if (k & 2) b = negative(b);
      if (k & 2 && corners[row].parity == ODD) v = negative(v);
      z[n] = b, want[n] = v, flags[n++] = c->flags;
    }
  }
  // With iz = b: turned(z) = -i op(b), z = -i b.
  for (int i = 0; i < n; i++) {
    iz[i] = (number){z[i].im, -z[i].re};
    turned_want[i] = corners[row].op == KL_OP_COSH ? want[i] : (number){want[i].im, -want[i].re};
  }
  for (unsigned k = 0; k < 2; k++) {
    unsigned machine = k ? (unsigned)GPU : (unsigned)HOST;
    if (!share_has(2 * (uint64_t)_i + k, k ? 4 : 1)) continue;
    run_op(corners[row].op, t, n, z, z, r, machine);
    for (int i = 0; i < n; i++)
      check_corner(corners[row].op, t, machine, z[i], want[i], flags[i] & RE, flags[i] & IM, r[i]);
    if (!corners[row].turned) continue;
    bool straight = corners[row].op == KL_OP_COSH;
    run_op(corners[row].turned, t, n, iz, iz, r, machine);
    for (int i = 0; i < n; i++)
      check_corner(corners[row].turned, t, machine, iz[i], turned_want[i], flags[i] & (straight ? RE : IM),
                   flags[i] & (straight ? IM : RE), r[i]);
  }
}
END_TEST

static bool is_infinite(number z) {
  return isinf(z.re) || isinf(z.im);
}
static bool is_finite(number z) {
  return isfinite(z.re) && isfinite(z.im);
}

// G.5.1: what is infinite over what is finite is infinite, finite over infinite is zero, and what is neither zero nor
// NaN over zero is infinite; a NaN beside an infinity counts for nothing.
START_TEST(quotients_are_those_of_annex_g) {
  static const double parts[] = {0, -0.0, 1, -0.75, INFINITY, -INFINITY, NAN};
  enum { P = KL_COUNT(parts), ALL = P * P * P * P };
  kl_dtype t = _i % 2 ? KILN_C128 : KILN_C64;
  static number x[ALL], y[ALL], r[ALL];
  for (int i = 0; i < ALL; i++) {
    x[i] = (number){parts[i % P], parts[i / P % P]};
    y[i] = (number){parts[i / P / P % P], parts[i / P / P / P]};
  }
  run_op(KL_OP_DIVIDE, t, ALL, x, y, r, _i / 2 ? (unsigned)GPU : (unsigned)HOST);
  for (int i = 0; i < ALL; i++) {
    bool zero_x = x[i].re == 0 && x[i].im == 0, zero_y = y[i].re == 0 && y[i].im == 0, good = true;
    if (is_infinite(x[i]) && is_finite(y[i])) good = is_infinite(r[i]);
    if (is_finite(x[i]) && is_infinite(y[i])) good = r[i].re == 0 && r[i].im == 0;
    if (is_finite(x[i]) && zero_y) good = zero_x ? isnan(r[i].re) && isnan(r[i].im) : is_infinite(r[i]);
    EXPECT(good, "%s (%g, %g) / (%g, %g) = (%g, %g)", kl_info(t)->name, x[i].re, x[i].im, y[i].re, y[i].im, r[i].re,
           r[i].im);
  }
}
END_TEST

// What an operand without end, beside the least and the greatest numbers, makes of functions of two, and of log1p(-0).
// E: the least number, M: three quarters of the greatest.
#define E 0x1p-1074
#define M 0x1.8p+1023
static const struct {
  kl_op op;
  number x, y, want;
} limits[] = {
    {KL_OP_POWER, {0, -INF}, {-1, M}, {0, 0}},    {KL_OP_POWER, {0, M}, {M, INF}, {0, 0}},
    {KL_OP_POWER, {1, E}, {-INF, 0.5}, {0, 0}},   {KL_OP_POWER, {-1, E}, {-INF, INF}, {0, 0}},
    {KL_OP_POWER, {2, E}, {1, INF}, {0, 0}},      {KL_OP_POWER, {INF, 1}, {1, -INF}, {NAN, NAN}},
    {KL_OP_POWER, {-1, -INF}, {-INF, M}, {0, 0}}, {KL_OP_ATAN2, {1, M}, {0, 1}, {PI / 2, 0}},
    {KL_OP_ATAN2, {1, -M}, {0, 1}, {PI / 2, 0}},  {KL_OP_LOG1P, {-0.0, 0}, {0, 0}, {-0.0, 0}},
    {KL_OP_LOG1P, {0, -0.0}, {0, 0}, {0, -0.0}},
};
#undef E
#undef M

static number in_range(kl_dtype t, number z) {
  double *part[2] = {&z.re, &z.im};
  for (int k = 0; k < 2 && t == KILN_C64; k++)
    *part[k] = *part[k] == 0x1p-1074           ? 0x1p-149
               : fabs(*part[k]) == 0x1.8p+1023 ? copysign(0x1.8p+127, *part[k])
                                               : *part[k];
  return z;
}

// All of one op in one call.
START_TEST(limits_beside_the_least_and_the_greatest) {
  static const kl_op of[] = {KL_OP_POWER, KL_OP_ATAN2, KL_OP_LOG1P};
  kl_dtype t = _i % 2 ? KILN_C128 : KILN_C64;
  unsigned machine = _i / 2 ? (unsigned)GPU : (unsigned)HOST;
  number x[KL_COUNT(limits)], y[KL_COUNT(limits)], want[KL_COUNT(limits)], r[KL_COUNT(limits)];
  size_t all = 0;
  for (size_t o = 0; o < KL_COUNT(of); o++) {
    int n = 0;
    for (size_t i = 0; i < KL_COUNT(limits); i++) {
      if (limits[i].op != of[o]) continue;
      x[n] = in_range(t, limits[i].x), y[n] = in_range(t, limits[i].y), want[n++] = limits[i].want;
    }
    all += (size_t)n;
    run_op(of[o], t, n, x, y, r, machine);
    bool any_sign = of[o] == KL_OP_POWER;
    for (int i = 0; i < n; i++) {
      if (of[o] == KL_OP_ATAN2 && fabs(r[i].im) < 0x1p-20) r[i].im = 0; // its bound is one for both parts
      check_corner(of[o], t, machine, x[i], want[i], any_sign, any_sign, r[i]);
    }
  }
  ck_assert_uint_eq(all, KL_COUNT(limits));
}
END_TEST

int main(void) {
  return RUN_TESTS("complex", NO_FRAME, {within_the_bounds, 2 * OPS}, {on_the_axes, 2 * OPS},
                   {atan2_next_to_its_poles, 4}, {corners_are_those_of_annex_g, 2 * (int)KL_COUNT(corners)},
                   {quotients_are_those_of_annex_g, 4}, {limits_beside_the_least_and_the_greatest, 4});
}
