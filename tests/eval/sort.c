// sort and topk against an insertion sort with comparators of its own: element types, dimensions, payloads, NaNs,
// comparators that are no order; and what intervals say of keys that are equal or not known exactly.
#include "support/context.h"
#include "support/draw.h"
#include "support/dtypes.h"
#include "eval/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// --- values ---------------------------------------------------------------------------------------------------------

enum { MAX_OPERANDS = 3 };

typedef struct array {
  kl_dtype t;
  char *data;
} array;

static kl_dtype part_of(kl_dtype t) {
  return kl_is_complex(t) ? kl_info(t)->part : t;
}

// Few different values, so that many are equal; floats with both zeros, and NaNs of both signs if wanted.
static void fill(array *a, int64_t n, bool nans) {
  kl_dtype p = part_of(a->t);
  a->data = calloc((size_t)n + 1, kl_info(a->t)->bytes);
  for (int64_t i = 0; i < n; i++)
    for (int part = 0; part < 1 + kl_is_complex(a->t); part++) {
      int v = (int)below(12) - 5;
      uint64_t bits = (uint64_t)(p == KILN_U64 ? v + 5 : v) & kl_int_mask(p);
      if (p == KILN_PRED) bits &= 1;
      bool ieee = kl_info(p)->kind == KL_IEEE, e8m0 = kl_info(p)->kind == KL_E8M0;
      if (kl_is_float(p)) bits = kl_float_encode(p, e8m0 ? v + 7 : v == 6 ? -0.0 : v == 5 && ieee ? INFINITY : v);
      if (kl_is_float(p) && nans && chance(20)) {
        bits = kl_float_encode(p, NAN);
        if (kl_info(p)->kind == KL_IEEE && chance(50)) bits ^= 1ull << (kl_info(p)->bits - 1);
      }
      kl_element_set(a->t, a->data, i, part, bits);
    }
}

static double number(const array *a, int64_t i) {
  uint64_t bits = kl_element_get(a->t, a->data, i, 0);
  if (a->t == KILN_PRED) return (double)bits;
  return kl_is_float(a->t) ? kl_float_decode(a->t, bits) : (double)kl_int_decode(a->t, bits);
}

// -NaN < -inf .. -0 < +0 .. inf < NaN; the one NaN of fnuz formats has the pattern of -0.
static int total_order(const array *a, int64_t i, int64_t j) {
  double rank[2], value[2];
  for (int k = 0; k < 2; k++) {
    double v = number(a, k ? j : i);
    uint64_t bits = kl_element_get(a->t, a->data, k ? j : i, 0);
    bool minus = kl_is_float(a->t) && kl_info(a->t)->kind != KL_E8M0 && bits >> (kl_info(a->t)->bits - 1);
    if (v != v && kl_info(a->t)->kind == KL_FNUZ) v = -0.0;
    rank[k] = v != v ? (minus ? -2 : 2) : 0;
    value[k] = v != v ? 0 : v == 0 && kl_is_float(a->t) ? (minus ? -0.1 : 0.1) : v;
  }
  if (rank[0] != rank[1]) return rank[0] < rank[1] ? -1 : 1;
  return value[0] < value[1] ? -1 : value[0] > value[1];
}

// The table's types but complex ones; a random one, from the `from`-th on.
static kl_dtype sortable(int from) {
  dtype_list all = dtypes_that(is_real);
  return all.at[from + (int)below((uint32_t)(all.n - from))];
}

// --- comparators ----------------------------------------------------------------------------------------------------

typedef enum how { LT, GT, SWAPPED, TOTAL_LT, TOTAL_GT, CANONICAL, SECOND, PAIR, ABS, DIFFERENCE, HOWS } how;

static bool before(how h, const array *in, int64_t i, int64_t j) {
  double x = number(&in[0], i), y = number(&in[0], j);
  switch (h) {
  case LT: return x < y;
  case GT: return x > y;
  case SWAPPED: return y < x;
  case TOTAL_LT: return total_order(&in[0], i, j) < 0;
  case TOTAL_GT: return total_order(&in[0], i, j) > 0;
  case CANONICAL: return x == x && (y != y || x < y); // NaNs are equal and last, zeros are equal
  case SECOND: return number(&in[1], i) < number(&in[1], j);
  case PAIR: return x == y ? number(&in[1], i) < number(&in[1], j) : x < y;
  case DIFFERENCE: return x - number(&in[1], i) < y - number(&in[1], j);
  default: return fabs(x) < fabs(y);
  }
}

// The comparator's parameters, and what it returns.
static void comparator_text(how h, const array *in, int n, char text[3000]) {
  int used = 0;
  const char *a = kiln_dtype_name(in[0].t);
  for (int k = 0; k < 2 * n; k++)
    used += snprintf(text + used, 200, "  p%d = %s[] parameter(%d)\n", k, kiln_dtype_name(in[k / 2].t), k);
  char *to = text + used;
  switch (h) {
  case LT: sprintf(to, "  ROOT r = pred[] compare(p0, p1), direction=LT\n"); break;
  case GT: sprintf(to, "  ROOT r = pred[] compare(p0, p1), direction=GT\n"); break;
  case SWAPPED: sprintf(to, "  ROOT r = pred[] compare(p1, p0), direction=LT\n"); break;
  case TOTAL_LT: sprintf(to, "  ROOT r = pred[] compare(p0, p1), direction=LT, type=TOTALORDER\n"); break;
  case TOTAL_GT: sprintf(to, "  ROOT r = pred[] compare(p0, p1), direction=GT, type=TOTALORDER\n"); break;
  case CANONICAL:
    sprintf(to,
            "  n = %s[] constant(nan)\n  z = %s[] constant(0)\n  a0 = pred[] compare(p0, p0), direction=NE\n"
            "  a1 = pred[] compare(p0, z), direction=EQ\n  a2 = %s[] select(a1, z, p0)\n"
            "  a3 = %s[] select(a0, n, a2)\n  b0 = pred[] compare(p1, p1), direction=NE\n"
            "  b1 = pred[] compare(p1, z), direction=EQ\n  b2 = %s[] select(b1, z, p1)\n"
            "  b3 = %s[] select(b0, n, b2)\n  ROOT r = pred[] compare(a3, b3), direction=LT, type=TOTALORDER\n",
            a, a, a, a, a, a);
    break;
  case SECOND: sprintf(to, "  ROOT r = pred[] compare(p2, p3), direction=LT\n"); break;
  case PAIR:
    sprintf(to, "  e = pred[] compare(p0, p1), direction=EQ\n  l = pred[] compare(p0, p1), direction=LT\n"
                "  m = pred[] compare(p2, p3), direction=LT\n  ROOT r = pred[] select(e, m, l)\n");
    break;
  case DIFFERENCE:
    sprintf(to, "  a = s32[] add(p0, p3)\n  b = s32[] add(p1, p2)\n  ROOT r = pred[] compare(a, b), direction=LT\n");
    break;
  default: sprintf(to, "  a = %s[] abs(p0)\n  b = %s[] abs(p1)\n  ROOT r = pred[] compare(a, b), direction=LT\n", a, a);
  }
}

static bool suits(how h, const array *in, int n, bool nans) {
  bool is_float = kl_is_float(in[0].t);
  if (h == DIFFERENCE) return n > 1 && in[0].t == KILN_S32 && in[1].t == KILN_S32;
  if (h == TOTAL_LT || h == TOTAL_GT) return is_float;
  if (h == CANONICAL) return is_float && kl_info(in[0].t)->kind == KL_IEEE; // others have no NaN and zero of their own
  if (nans) return false;
  if (h == ABS)
    return is_float ? kl_info(in[0].t)->kind != KL_E8M0 : kl_is_signed(in[0].t) && kl_info(in[0].t)->bits > 4;
  return n > 1 || (h != SECOND && h != PAIR);
}

// --- sort -----------------------------------------------------------------------------------------------------------

typedef struct sorting {
  int rank, dim, n;
  int64_t extent[3], count, length, stride;
  array in[MAX_OPERANDS];
} sorting;

static void sort_text(const sorting *s, const char *comparator, bool stable, char text[6000]) {
  char dims[80] = "", list[200] = "", types[200] = "";
  int used = snprintf(text, 6000, "HloModule t\nc {\n%s}\nENTRY e {\n", comparator);
  for (int d = 0; d < s->rank; d++) snprintf(dims + strlen(dims), 30, "%s%lld", d ? "," : "", (long long)s->extent[d]);
  for (int k = 0; k < s->n; k++) {
    used += snprintf(text + used, 200, "  x%d = %s[%s] parameter(%d)\n", k, kiln_dtype_name(s->in[k].t), dims, k);
    snprintf(list + strlen(list), 20, "%sx%d", k ? ", " : "", k);
    snprintf(types + strlen(types), 60, "%s%s[%s]", k ? ", " : "", kiln_dtype_name(s->in[k].t), dims);
  }
  snprintf(text + used, 600, "  ROOT r = %s%s%s sort(%s), dimensions={%d}%s, to_apply=c\n}\n", s->n > 1 ? "(" : "",
           types, s->n > 1 ? ")" : "", list, s->dim, stable ? ", is_stable=true" : "");
}

static void make_sorting(sorting *s, bool nans) {
  *s = (sorting){.rank = 1 + (int)below(3), .n = 1 + (int)below(MAX_OPERANDS), .count = 1, .stride = 1};
  s->dim = (int)below((uint32_t)s->rank);
  for (int d = 0; d < s->rank; d++) {
    s->extent[d] = chance(3) ? 0 : d == s->dim ? 1 + below(chance(20) ? 150 : 12) : 1 + below(4);
    s->count *= s->extent[d];
    if (d > s->dim) s->stride *= s->extent[d];
  }
  s->length = s->extent[s->dim];
  bool s32 = !nans && chance(15);
  for (int k = 0; k < s->n; k++) {
    s->in[k].t = k == 2 ? KILN_C64 : s32 ? KILN_S32 : sortable(0);
    fill(&s->in[k], s->count, nans && k == 0);
  }
}

static void free_sorting(sorting *s) {
  for (int k = 0; k < s->n; k++) free(s->in[k].data);
}

// The element that belongs at each place.
static int64_t *sort_naively(const sorting *s, how h) {
  int64_t *order = malloc(sizeof(int64_t) * (size_t)(s->count + 1));
  for (int64_t i = 0; i < s->count; i++) {
    int64_t back = i / s->stride % s->length, to = i;
    for (; back > 0 && before(h, s->in, i, order[to - s->stride]); back--, to -= s->stride)
      order[to] = order[to - s->stride];
    order[to] = i;
  }
  return order;
}

static void eval_sort(const sorting *s, const char *text, bool intervals, kiln_module **m, kl_result *r) {
  kl_array args[MAX_OPERANDS];
  *m = parse(text);
  for (int k = 0; k < s->n; k++) args[k].data = s->in[k].data;
  EXPECT(kl_eval(cx, *m, (*m)->entry, args, &(kl_eval_opts){.threads = 2, .intervals = intervals}, r) == KILN_OK,
         "%s\n%s", last_finding(), text);
}

static void check_sort(bool nans) {
  sorting s;
  static char comparator[3000], text[6000];
  kl_result r[MAX_OPERANDS];
  kiln_module *m;
  make_sorting(&s, nans);
  how h;
  for (int tries = 0; !suits(h = (how)below(HOWS), s.in, s.n, nans); tries++)
    if (tries > 50) {
      free_sorting(&s);
      return;
    }
  bool stable = chance(50), intervals = stable && chance(40);
  comparator_text(h, s.in, s.n, comparator);
  sort_text(&s, comparator, stable, text);
  eval_sort(&s, text, intervals, &m, r);
  int64_t *order = sort_naively(&s, h);
  for (int k = 0; k < s.n; k++) {
    size_t size = kl_info(s.in[k].t)->bytes;
    for (int64_t i = 0; i < s.count; i++)
      EXPECT(memcmp((char *)r[k].data.data + (size_t)i * size, s.in[k].data + (size_t)order[i] * size, size) == 0,
             "operand %d, element %lld\n%s", k, (long long)i, text);
    EXPECT(r[k].lo == r[k].data.data && !r[k].any, "%s", text);
    kl_result_free(cx, &r[k]);
  }
  kiln_module_destroy(&m);
  free(order);
  free_sorting(&s);
}

START_TEST(sorts) {
  seed = 1;
  for (int i = 0; i < 4000; i++) check_sort(false);
}
END_TEST

START_TEST(sorts_with_nan) {
  seed = 2;
  for (int i = 0; i < 1500; i++) check_sort(true);
}
END_TEST

// Comparators that are no strict weak order: some permutation comes out, the same for all operands.
static const char *const disorders[] = {
    "  ROOT r = pred[] constant(true)\n",
    "  ROOT r = pred[] constant(false)\n",
    "  ROOT r = pred[] compare(p0, p1), direction=LE\n",
    "  ROOT r = pred[] compare(p0, p1), direction=NE\n",
    "  ROOT r = pred[] compare(p0, p1), direction=LT\n", // with NaNs
    "  a = f32[] sine(p0)\n  b = f32[] cosine(p1)\n  ROOT r = pred[] compare(a, b), direction=LT\n",
};

START_TEST(disorder) {
  seed = 3;
  for (int round = 0; round < 40; round++) {
    sorting s = {.rank = 1, .n = 2, .stride = 1};
    char text[6000], comparator[3000];
    kl_result r[2];
    kiln_module *m;
    s.extent[0] = s.count = s.length = 2 + below(300);
    s.in[0].t = KILN_F32;
    s.in[1].t = KILN_S32;
    for (int k = 0; k < 2; k++) fill(&s.in[k], s.count, true);
    for (int64_t i = 0; i < s.count; i++) ((int32_t *)s.in[1].data)[i] = (int32_t)i;
    snprintf(comparator, sizeof comparator,
             "  p0 = f32[] parameter(0)\n  p1 = f32[] parameter(1)\n  p2 = s32[] parameter(2)\n  p3 = s32[] "
             "parameter(3)\n%s",
             disorders[_i]);
    sort_text(&s, comparator, false, text);
    eval_sort(&s, text, round % 2, &m, r);
    char seen[512] = {0};
    for (int64_t i = 0; i < s.count; i++) {
      int32_t from = ((int32_t *)r[1].data.data)[i];
      ck_assert(from >= 0 && from < s.count && !seen[from]);
      seen[from] = 1;
      ck_assert(memcmp((char *)r[0].data.data + 4 * i, s.in[0].data + 4 * from, 4) == 0);
    }
    for (int k = 0; k < 2; k++) kl_result_free(cx, &r[k]);
    kiln_module_destroy(&m);
    free_sorting(&s);
  }
}
END_TEST

static int by_u32(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

// By key, and by a comparator that is none: a pair of keys, the second the index, so that the order is total.
START_TEST(large_sorts) {
  enum { N = 300000 };
  sorting s = {.rank = 1, .n = 2, .stride = 1, .extent = {N}, .count = N, .length = N};
  char text[6000], comparator[3000];
  kl_result r[2];
  kiln_module *m;
  seed = 4;
  s.in[0] = (array){KILN_U32, malloc(4 * N)};
  s.in[1] = (array){KILN_U32, malloc(4 * N)};
  uint32_t *key = (uint32_t *)s.in[0].data, *index = (uint32_t *)s.in[1].data, *sorted = malloc(4 * N);
  for (uint32_t i = 0; i < N; i++) sorted[i] = key[i] = _i ? below(1000) : below(UINT32_MAX), index[i] = i;
  qsort(sorted, N, 4, by_u32);
  comparator_text(_i ? PAIR : LT, s.in, 2, comparator);
  sort_text(&s, comparator, false, text);
  eval_sort(&s, text, false, &m, r);
  const uint32_t *keys = r[0].data.data, *from = r[1].data.data;
  ck_assert(memcmp(keys, sorted, 4 * N) == 0);
  for (int i = 0; i < N; i++)
    ck_assert(key[from[i]] == keys[i] && (i == 0 || keys[i - 1] < keys[i] || from[i - 1] < from[i]));
  for (int k = 0; k < 2; k++) kl_result_free(cx, &r[k]);
  kiln_module_destroy(&m);
  free(sorted);
  free_sorting(&s);
}
END_TEST

// --- intervals ------------------------------------------------------------------------------------------------------

static bool allows(const kl_result *r, int64_t i, uint32_t v) {
  uint64_t bits[2] = {v, 0};
  return kl_result_allows(r, i, bits);
}
static uint32_t f32(float v) {
  uint32_t u;
  memcpy(&u, &v, 4);
  return u;
}

#define KEY_AND_INDEX(stable, key)                                                                                     \
  "HloModule t\nc {\n  p0 = f32[] parameter(0)\n  p1 = f32[] parameter(1)\n  p2 = s32[] parameter(2)\n"                \
  "  p3 = s32[] parameter(3)\n  ROOT r = pred[] compare(p0, p1), direction=LT" key "\n}\nENTRY e {\n"                  \
  "  x = f32[5] parameter(0)\n  i = s32[5] iota(), iota_dimension=0\n"                                                 \
  "  ROOT r = (f32[5], s32[5]) sort(x, i), dimensions={0}, to_apply=c" stable "\n}\n"

// Equal keys may change places on a device unless the sort is stable: {3, 1, 2, 1, 1} with their indices.
START_TEST(equal_keys) {
  static const char *const text[2] = {KEY_AND_INDEX("", ""), KEY_AND_INDEX(", is_stable=true", "")};
  const float x[5] = {3, 1, 2, 1, 1};
  for (int stable = 0; stable < 2; stable++) {
    kl_result r[2];
    kiln_module *m = parse(text[stable]);
    EXPECT(kl_eval(cx, m, m->entry, &(kl_array){NULL, (void *)x}, &(kl_eval_opts){.intervals = true}, r) == KILN_OK,
           "%s", last_finding());
    ck_assert(r[0].lo == r[0].data.data && ((float *)r[0].data.data)[3] == 2);
    ck_assert(allows(&r[1], 0, 1) && allows(&r[1], 0, 4) == !stable && !allows(&r[1], 0, 0));
    ck_assert(allows(&r[1], 2, 4) && allows(&r[1], 2, 1) == !stable && allows(&r[1], 3, 2) && !allows(&r[1], 3, 3));
    for (int k = 0; k < 2; k++) kl_result_free(cx, &r[k]);
    kiln_module_destroy(&m);
  }
}
END_TEST

// Less or equal is no order: elements with equal keys may change places even where the sort is stable. Of a pair of
// keys and no key at all, in the form that is merged.
START_TEST(equal_keys_merged) {
  static const char *const compare[3] = {"LE", "LT", "LT"};
  const float x[5] = {3, 1, 2, 1, 1};
  char text[2000];
  kl_result r[2];
  snprintf(text, sizeof text,
           "HloModule t\nc {\n  p0 = f32[] parameter(0)\n  p1 = f32[] parameter(1)\n  p2 = s32[] parameter(2)\n"
           "  p3 = s32[] parameter(3)\n  q = pred[] compare(p0, p1), direction=%s\n  ROOT r = pred[] and(q, q)\n}\n"
           "ENTRY e {\n  x = f32[5] parameter(0)\n  i = s32[5] iota(), iota_dimension=0\n"
           "  ROOT r = (f32[5], s32[5]) sort(x, i), dimensions={0}, to_apply=c, is_stable=%s\n}\n",
           compare[_i], _i == 1 ? "false" : "true");
  kiln_module *m = parse(text);
  EXPECT(kl_eval(cx, m, m->entry, &(kl_array){NULL, (void *)x}, &(kl_eval_opts){.intervals = true}, r) == KILN_OK, "%s",
         last_finding());
  ck_assert(r[0].lo == r[0].data.data && ((float *)r[0].data.data)[3] == 2);
  for (uint32_t k = 1; k < 5; k += k == 1 ? 2 : 1) ck_assert(allows(&r[1], 0, k) == (_i < 2 || k == 1));
  ck_assert(!allows(&r[1], 0, 0) && allows(&r[1], 3, 2) && !allows(&r[1], 3, 3));
  for (int k = 0; k < 2; k++) kl_result_free(cx, &r[k]);
  kiln_module_destroy(&m);
}
END_TEST

// Keys known within bounds: those that overlap may change places, others may not. By a key of its own, by merging.
START_TEST(inexact_keys) {
  static const char *const compare[2] = {
      "ROOT r = pred[] compare(p0, p1), direction=LT",
      "e = pred[] compare(p0, p1), direction=LT\n f = pred[] compare(p2, p3), direction=LT\n g = pred[] and(e, f)\n"
      "h = pred[] or(e, g)\n ROOT r = pred[] copy(h)"};
  char text[2000];
  const float x[4] = {2, 1, nextafterf(1, 2), -3};
  kl_result r[2];
  snprintf(text, sizeof text,
           "HloModule t\nc {\n p0 = f32[] parameter(0)\n p1 = f32[] parameter(1)\n p2 = s32[] parameter(2)\n"
           "p3 = s32[] parameter(3)\n %s\n}\nENTRY e {\n  x = f32[4] parameter(0)\n  y = f32[4] exponential(x)\n"
           "  i = s32[4] iota(), iota_dimension=0\n"
           "  ROOT r = (f32[4], s32[4]) sort(y, i), dimensions={0}, is_stable=true, to_apply=c\n}\n",
           compare[_i]);
  kiln_module *m = parse(text);
  EXPECT(kl_eval(cx, m, m->entry, &(kl_array){NULL, (void *)x}, &(kl_eval_opts){.intervals = true}, r) == KILN_OK, "%s",
         last_finding());
  const int32_t *order = r[1].data.data;
  ck_assert(order[0] == 3 && order[3] == 0);
  ck_assert(allows(&r[1], 1, 1) && allows(&r[1], 1, 2) && allows(&r[1], 2, 1) && allows(&r[1], 2, 2));
  ck_assert(allows(&r[0], 1, f32(nextafterf((float)exp(1), 9))));
  ck_assert(_i == 1 || (!allows(&r[1], 0, 1) && !allows(&r[1], 3, 2) && !allows(&r[0], 0, f32(2.7f))));
  for (int k = 0; k < 2; k++) kl_result_free(cx, &r[k]);
  kiln_module_destroy(&m);
}
END_TEST

// {0.5, 1, c} with c near 4 but perhaps below 0: every place may hold each of the three.
START_TEST(one_wide_key) {
  const float x[1] = {18};
  kl_result r[2];
  kiln_module *m =
      parse("HloModule t\nc {\n p0 = f32[] parameter(0)\n p1 = f32[] parameter(1)\n p2 = s32[] parameter(2)\n"
            "p3 = s32[] parameter(3)\n ROOT r = pred[] compare(p0, p1), direction=LT\n}\nENTRY e {\n"
            "  x = f32[1] parameter(0)\n  y = f32[1] exponential(x)\n  w = f32[1] constant({-65659964})\n"
            "  v = f32[1] add(y, w)\n  a = f32[2] constant({0.5, 1})\n  k = f32[3] concatenate(a, v), dimensions={0}\n"
            "  i = s32[3] iota(), iota_dimension=0\n"
            "  ROOT r = (f32[3], s32[3]) sort(k, i), dimensions={0}, is_stable=true, to_apply=c\n}\n");
  EXPECT(kl_eval(cx, m, m->entry, &(kl_array){NULL, (void *)x}, &(kl_eval_opts){.intervals = true}, r) == KILN_OK, "%s",
         last_finding());
  for (int i = 0; i < 3; i++) ck_assert(allows(&r[1], i, 0) && allows(&r[1], i, 1) && allows(&r[1], i, 2));
  for (int k = 0; k < 2; k++) kl_result_free(cx, &r[k]);
  kiln_module_destroy(&m);
}
END_TEST

// NaNs that were computed promise no sign: in the total order they may be first or last.
START_TEST(nans_of_unknown_sign) {
  const float x[5] = {3, -1, NAN, 1, 0};
  char text[2000] = KEY_AND_INDEX(", is_stable=true", ", type=TOTALORDER");
  kl_result r[2];
  if (_i) {
    char *at = strstr(text, "sort(x");
    memcpy(at, "sort(y", 6);
    at = strstr(text, "  i = s32[5]");
    memmove(at + 23, at, strlen(at) + 1);
    memcpy(at, "  y = f32[5] sqrt(x)   \n", 23);
  }
  kiln_module *m = parse(text);
  EXPECT(kl_eval(cx, m, m->entry, &(kl_array){NULL, (void *)x}, &(kl_eval_opts){.intervals = true}, r) == KILN_OK, "%s",
         last_finding());
  ck_assert(allows(&r[0], 0, f32(5)) == (_i == 1));
  for (int k = 0; k < 2; k++) kl_result_free(cx, &r[k]);
  kiln_module_destroy(&m);
}
END_TEST

// --- topk -----------------------------------------------------------------------------------------------------------

static void check_topk(void) {
  static char text[1000];
  array a = {.t = sortable(1)}; // not pred
  int64_t rows = below(5), n = 1 + below(chance(20) ? 200 : 10), k = chance(3) ? 0 : 1 + below((uint32_t)n);
  bool largest = chance(60), ranked = chance(70), nans = chance(50) && kl_info(a.t)->kind != KL_FN0;
  if (!ranked) rows = 1;
  fill(&a, rows * n, nans);
  const char *t = kiln_dtype_name(a.t);
  char batch[20] = "";
  if (ranked) snprintf(batch, sizeof batch, "%lld,", (long long)rows);
  snprintf(
      text, sizeof text,
      "HloModule t\nENTRY e {\n  x = %s[%s%lld] parameter(0)\n  ROOT r = (%s[%s%lld], s32[%s%lld]) topk(x), k=%lld, "
      "largest=%s\n}\n",
      t, batch, (long long)n, t, batch, (long long)k, batch, (long long)k, (long long)k, largest ? "true" : "false");
  kiln_module *m = parse(text);
  kl_result r[2];
  EXPECT(kl_eval(cx, m, m->entry, &(kl_array){NULL, a.data}, &(kl_eval_opts){.threads = 2, .intervals = chance(30)},
                 r) == KILN_OK,
         "%s\n%s", last_finding(), text);
  size_t size = kl_info(a.t)->bytes;
  char *taken = calloc((size_t)n, 1);
  for (int64_t row = 0; row < rows; row++) {
    memset(taken, 0, (size_t)n);
    for (int64_t i = 0; i < k; i++) { // the first of the best that are left
      int64_t best = -1;
      for (int64_t e = 0; e < n; e++) {
        if (taken[e]) continue;
        int o = best < 0 ? 0 : total_order(&a, row * n + e, row * n + best);
        if (best < 0 || (largest ? o > 0 : o < 0)) best = e;
      }
      taken[best] = 1;
      ck_assert_int_eq(((int32_t *)r[1].data.data)[row * k + i], best);
      ck_assert(memcmp((char *)r[0].data.data + (size_t)(row * k + i) * size, a.data + (size_t)(row * n + best) * size,
                       size) == 0);
    }
  }
  free(taken);
  for (int i = 0; i < 2; i++) kl_result_free(cx, &r[i]);
  kiln_module_destroy(&m);
  free(a.data);
}

START_TEST(topks) {
  seed = 5;
  for (int i = 0; i < 2000; i++) check_topk();
}
END_TEST

// The second of {e, e, 1}: either e, within its bounds; the third for certain.
START_TEST(inexact_topk) {
  const float x[4] = {0, 1, nextafterf(1, 2), -1};
  kl_result r[2];
  kiln_module *m = parse("HloModule t\nENTRY e {\n  x = f32[4] parameter(0)\n  y = f32[4] exponential(x)\n"
                         "  ROOT r = (f32[3], s32[3]) topk(y), k=3, largest=true\n}\n");
  EXPECT(kl_eval(cx, m, m->entry, &(kl_array){NULL, (void *)x}, &(kl_eval_opts){.intervals = true}, r) == KILN_OK, "%s",
         last_finding());
  ck_assert(allows(&r[1], 0, 1) && allows(&r[1], 0, 2) && allows(&r[1], 1, 1) && !allows(&r[1], 1, 0));
  ck_assert(allows(&r[1], 2, 0) && !allows(&r[1], 2, 1) && !allows(&r[0], 0, f32(3)) && allows(&r[0], 2, f32(1)));
  for (int k = 0; k < 2; k++) kl_result_free(cx, &r[k]);
  kiln_module_destroy(&m);
}
END_TEST

// --- verdicts on lines in some order --------------------------------------------------------------------------------

// Comparators of s32 keys, with NaN for some where they are f32, and whether all that is right is that elements stay
// what they are.
static const struct {
  const char *type, *text;
  bool open;
} comparators[] = {
    {"s32",
     "k = s32[] constant(-1640531535) c = s32[] multiply(a, k) d = s32[] xor(c, b) e = s32[] multiply(d, k) "
     "z = s32[] constant(0) ROOT r = pred[] compare(e, z), direction=LT",
     true},
    {"s32", // within 3 of each other they are equal, which is none
     "k = s32[] constant(3) c = s32[] add(a, k) ROOT r = pred[] compare(c, b), direction=LT", true},
    {"f32", "ROOT r = pred[] compare(a, b), direction=LT", true},
    {"s32", "ROOT r = pred[] compare(a, b), direction=LT", false},
    {"s32",
     "k = s32[] constant(7) c = s32[] and(a, k) d = s32[] and(b, k) l = pred[] compare(c, d), direction=LT "
     "e = pred[] compare(c, d), direction=EQ g = pred[] compare(a, b), direction=GT f = pred[] and(e, g) "
     "ROOT r = pred[] or(l, f)",
     false},
};
enum { LINE = 70, LINES = 3 };

// Of [LINE, LINES] arrays, each line along the first dimension: other places in the order of the evaluator's.
static void turn(const uint32_t *from, uint32_t *to, int step) {
  for (int i = 0; i < LINE * LINES; i++) to[i] = from[i / LINES * step % LINE * LINES + i % LINES];
}

static size_t check_results(const kiln_module *m, const uint32_t *in, uint32_t *const out[2], kiln_mismatch *first) {
  size_t count;
  ck_assert_int_eq(kiln_module_check(cx, m, (const void *const[]){in}, (const void *const[]){out[0], out[1]}, first, 1,
                                     &count, NULL),
                   KILN_OK);
  return count;
}

START_TEST(arranged) {
  const char *t = comparators[_i].type;
  uint32_t in[LINE * LINES], made[2][LINE * LINES], x[2][LINE * LINES], *out[2] = {x[0], x[1]};
  char text[2000];
  kiln_mismatch what;
  snprintf(text, sizeof text,
           "HloModule t\nless { a = %s[] parameter(0) b = %s[] parameter(1) c2 = s32[] parameter(2) d2 = s32[] "
           "parameter(3) %s }\nENTRY e { x = %s[70,3] parameter(0) i = s32[70,3] iota(), iota_dimension=0 "
           "s = (%s[70,3], s32[70,3]) sort(x, i), dimensions={0}, to_apply=less, is_stable=true "
           "v = %s[70,3] get-tuple-element(s), index=0 w = s32[70,3] get-tuple-element(s), index=1 "
           "ROOT r = (s32[210], %s[70,3]) tuple(s32[210] reshape(w), v) }",
           t, t, comparators[_i].text, t, t, t, t);
  kiln_module *m = parse(text);
  seed = 9;
  for (int i = 0; i < LINE * LINES; i++) in[i] = *t == 'f' ? f32(i % 7 ? (float)below(50) : NAN) : below(50);
  ck_assert_int_eq(kiln_module_eval(cx, m, (const void *const[]){in}, (void *const[]){made[0], made[1]}, NULL),
                   KILN_OK);
  memcpy(x, made, sizeof x);
  ck_assert_uint_eq(check_results(m, in, out, &what), 0);
  for (int k = 0; k < 2; k++) turn(made[k], x[k], 3); // elements together
  ck_assert(comparators[_i].open == !check_results(m, in, out, &what));
  turn(made[1], x[1], 9); // apart
  ck_assert(check_results(m, in, out, &what));
  for (int k = 0; k < 2; k++) turn(made[k], x[k], 3);
  x[0][37] = x[0][37 + LINES]; // one comes twice: the index
  ck_assert_uint_ge(check_results(m, in, out, &what), 1);
  ck_assert(!comparators[_i].open || (what.count == 1 && what.result == 0 && what.element >= 37));
  for (int k = 0; k < 2; k++) memcpy(x[k], made[k], sizeof made[k]);
  for (int k = 0; k < 2; k++) { // from one line to another
    uint32_t keep = x[k][30];
    x[k][30] = x[k][34];
    x[k][34] = keep;
  }
  ck_assert(check_results(m, in, out, &what) || (x[0][30] == made[0][30] && x[1][30] == made[1][30]));
  kiln_module_destroy(&m);
}
END_TEST

// What is made of such a result is anything.
START_TEST(made_of_arranged) {
  uint32_t in[5] = {1, 2, 3, 4, 5}, out[5] = {9, 9, 9, 9, 9};
  char text[1000];
  kiln_mismatch what;
  snprintf(text, sizeof text,
           "HloModule t\nless { a = s32[] parameter(0) b = s32[] parameter(1) %s }\nENTRY e { x = s32[5] parameter(0) "
           "s = s32[5] sort(x), dimensions={0}, to_apply=less u = s32[1] slice(x), slice={[0:1]} z = s32[] constant(0) "
           "ROOT r = s32[5] %s }",
           comparators[0].text, _i ? "dynamic-update-slice(s, u, z)" : "negate(s)");
  kiln_module *m = parse(text);
  size_t count;
  out[0] = _i ? 1 : 9;
  ck_assert_int_eq(
      kiln_module_check(cx, m, (const void *const[]){in}, (const void *const[]){out}, &what, 1, &count, NULL), KILN_OK);
  ck_assert_uint_eq(count, 0);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_sort", EACH(make_context, drop_context), {sorts}, {sorts_with_nan},
                   {disorder, KL_COUNT(disorders)}, {large_sorts, 2}, {equal_keys}, {equal_keys_merged, 3},
                   {inexact_keys, 2}, {one_wide_key}, {nans_of_unknown_sign, 2}, {topks}, {inexact_topk},
                   {arranged, KL_COUNT(comparators)}, {made_of_arranged, 2});
}
