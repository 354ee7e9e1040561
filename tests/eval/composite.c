// Ops that are whole algorithms: random bits, matrices, Fourier transforms, batch normalization. Against exact results
// and against XLA's (data, made by data/composite.py): data is the exact result, rounded; intervals hold it
// and what XLA computes, and are no wider than the case says.
#include "support/context.h"
#include "eval/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 5 };

static kl_dtype part_of(kl_dtype t) {
  return kl_is_complex(t) ? kl_info(t)->part : t;
}

// --- reading -------------------------------------------------------------------------------------------------------

typedef struct column {
  kl_dtype type;
  int64_t n;
  void *data;
  bool *promised; // false: '?'
  bool absent;    // "-"
} column;

typedef struct test_case {
  char *text;
  double width;
  column param[MOST], want[MOST], xla[MOST];
  int nparams, nresults, nxla;
} test_case;

static uint64_t parse_word(kl_dtype part, char **p) {
  if (**p == 'n') {
    ++*p;
    return kl_float_encode(part, NAN);
  }
  return strtoull(*p, p, 16);
}

static column parse_column(char *line) {
  char name[16];
  int used = 0;
  EXPECT(sscanf(line, "%*c %15s%n", name, &used) == 1, "%s", line);
  if (name[0] == '-') return (column){.absent = true};
  column c = {.type = kiln_dtype_from_name(name)};
  size_t room = strlen(line) / 2 + 2;
  c.data = calloc(room, kl_info(c.type)->bytes);
  c.promised = calloc(room, 1);
  for (char *p = line + used; *p == ' '; c.n++) {
    p++;
    c.promised[c.n] = *p != '?';
    if (*p == '?') {
      while (*p == '?' || *p == ':') p++;
      continue;
    }
    kl_element_set(c.type, c.data, c.n, 0, parse_word(part_of(c.type), &p));
    if (*p == ':') p++, kl_element_set(c.type, c.data, c.n, 1, parse_word(part_of(c.type), &p));
  }
  return c;
}

static void drop_case(test_case *c) {
  for (int k = 0; k < MOST; k++) {
    column *all[3] = {&c->param[k], &c->want[k], &c->xla[k]};
    for (int i = 0; i < 3; i++) free(all[i]->data), free(all[i]->promised);
  }
  free(c->text);
  *c = (test_case){0};
}

// Reads one case; *line holds the first line of it, and of the next one after.
static bool read_case(FILE *f, char **line, size_t *room, test_case *c) {
  *c = (test_case){0};
  if (!*line || strncmp(*line, "HLO ", 4) != 0) return false;
  char *text;
  c->width = strtod(*line + 4, &text);
  c->text = strdup(text);
  ssize_t n;
  while ((n = getline(line, room, f)) > 0 && (*line)[0] != 'H') {
    (*line)[strcspn(*line, "\n")] = 0;
    if ((*line)[0] == 'P') c->param[c->nparams++] = parse_column(*line);
    if ((*line)[0] == 'R') c->want[c->nresults++] = parse_column(*line);
    if ((*line)[0] == 'X') c->xla[c->nxla++] = parse_column(*line);
    EXPECT(c->nparams <= MOST && c->nresults <= MOST && c->nxla <= MOST, "%s", *line);
  }
  if (n <= 0) (*line)[0] = 0;
  return true;
}

// --- judging -------------------------------------------------------------------------------------------------------

static bool same(kl_dtype part, uint64_t a, uint64_t b) {
  return a == b || (kl_is_float(part) && kl_float_is_nan(part, a) && kl_float_is_nan(part, b));
}

static bool is_random(const test_case *c) {
  return strstr(c->text, "rng-bit-generator") != NULL;
}

// Data is in long double: for f64 it need not be the nearest value, but is far more exact than any device has to be.
static bool near(const test_case *c, kl_dtype part, const column *w, const kl_result *r, int64_t i, int lane) {
  double got = kl_float_decode(part, kl_element_get(w->type, r->data.data, i, lane)),
         want = kl_float_decode(part, kl_element_get(w->type, w->data, i, lane)),
         lo = kl_float_decode(part, kl_element_get(w->type, r->lo, i, lane)),
         hi = kl_float_decode(part, kl_element_get(w->type, r->hi, i, lane));
  double unit = kl_float_decode(part, kl_float_next(part, kl_float_encode(part, fabs(want)), true)) - fabs(want);
  return part == KILN_F64 && c->width > 0 && fabs(got - want) <= unit + (hi - lo) / 500;
}

static void expect_data(const test_case *c, int k, const kl_result *r) {
  const column *w = &c->want[k];
  kl_dtype part = part_of(w->type);
  EXPECT(r->data.shape->dtype == w->type && r->data.shape->count == w->n, "result %d has %lld elements, not %lld\n%s",
         k, (long long)r->data.shape->count, (long long)w->n, c->text);
  for (int64_t i = 0; i < w->n; i++)
    for (int lane = 0; lane < 1 + kl_is_complex(w->type); lane++) {
      uint64_t got = kl_element_get(w->type, r->data.data, i, lane), want = kl_element_get(w->type, w->data, i, lane);
      if (!w->promised[i]) continue;
      bool zero = kl_is_float(part) && kl_float_decode(part, got) == 0 && kl_float_decode(part, want) == 0;
      bool right = is_random(c) ? got == want : same(part, got, want) || zero || near(c, part, w, r, i, lane);
      EXPECT(right, "result %d element %lld part %d: %llx, not %llx\n%s", k, (long long)i, lane,
             (unsigned long long)got, (unsigned long long)want, c->text);
    }
}

static void expect_allowed(const test_case *c, int k, const kl_result *r, const column *found, const char *whose) {
  for (int64_t i = 0; !found->absent && i < found->n; i++) {
    uint64_t bits[2] = {kl_element_get(found->type, found->data, i, 0),
                        kl_is_complex(found->type) ? kl_element_get(found->type, found->data, i, 1) : 0};
    char lo[96], hi[96], v[96];
    uint64_t ends[2][2] = {{0}};
    for (int lane = 0; lane < 1 + kl_is_complex(found->type); lane++) {
      ends[0][lane] = kl_element_get(found->type, r->lo, i, lane);
      ends[1][lane] = kl_element_get(found->type, r->hi, i, lane);
    }
    kl_scalar_text(lo, found->type, ends[0]);
    kl_scalar_text(hi, found->type, ends[1]);
    kl_scalar_text(v, found->type, bits);
    EXPECT(!c->want[k].promised[i] || kl_result_allows(r, i, bits),
           "%s result %d element %lld: %s is not in [%s, %s]\n%s", whose, k, (long long)i, v, lo, hi, c->text);
  }
}

static double largest_of(const test_case *c) {
  double largest = 1e-30; // sums of nothing may round to the least values
  for (int k = 0; k < c->nresults; k++) {
    const column *w = &c->want[k];
    for (int64_t i = 0; i < w->n; i++)
      for (int lane = 0; lane < 1 + kl_is_complex(w->type) && w->promised[i]; lane++)
        largest = fmax(largest, fabs(kl_float_decode(part_of(w->type), kl_element_get(w->type, w->data, i, lane))));
  }
  return largest;
}

// No element that is promised is open, none is wider than c->width of the largest.
static void expect_narrow(const test_case *c, int k, const kl_result *r) {
  const column *w = &c->want[k];
  kl_dtype part = part_of(w->type);
  double largest = largest_of(c);
  for (int64_t i = 0; i < w->n; i++)
    for (int lane = 0; lane < 1 + kl_is_complex(w->type) && w->promised[i]; lane++) {
      double lo = kl_float_decode(part, kl_element_get(w->type, r->lo, i, lane)),
             hi = kl_float_decode(part, kl_element_get(w->type, r->hi, i, lane));
      if (isnan(lo) && isnan(kl_float_decode(part, kl_element_get(w->type, w->data, i, lane)))) continue;
      EXPECT(!r->any || !(r->any[i / 64] >> (i % 64) & 1), "result %d element %lld is open\n%s", k, (long long)i,
             c->text);
      EXPECT(hi - lo <= c->width * largest, "result %d element %lld is %g wide of %g\n%s", k, (long long)i, hi - lo,
             largest, c->text);
    }
}

static void judge(const test_case *c) {
  kiln_module *m = NULL;
  EXPECT(kiln_module_parse(cx, "test", c->text, strlen(c->text), &m) == KILN_OK, "%s\n%s", last_finding(), c->text);
  kl_array args[MOST];
  kl_result r[MOST];
  for (int k = 0; k < c->nparams; k++) args[k] = (kl_array){NULL, c->param[k].data};
  EXPECT(kl_eval(cx, m, m->entry, args, &(kl_eval_opts){.intervals = true, .threads = 2}, r) == KILN_OK, "%s\n%s",
         last_finding(), c->text);
  for (int k = 0; k < c->nresults; k++) {
    expect_data(c, k, &r[k]);
    if (c->width > 0) {
      expect_allowed(c, k, &r[k], &c->want[k], "exact");
      expect_allowed(c, k, &r[k], &c->xla[k], "XLA's");
      expect_narrow(c, k, &r[k]);
    } else {
      EXPECT(r[k].lo == r[k].data.data && !r[k].any, "result %d is not exact\n%s", k, c->text);
    }
    kl_result_free(cx, &r[k]);
  }
  EXPECT(kl_eval(cx, m, m->entry, args, &(kl_eval_opts){.threads = 1}, r) == KILN_OK, "%s", last_finding());
  for (int k = 0; k < c->nresults; k++) {
    expect_data(c, k, &r[k]);
    kl_result_free(cx, &r[k]);
  }
  kiln_module_destroy(&m);
}

static const struct {
  const char *file;
  int cases;
} files[] = {{"rng", 289}, {"linalg", 224}, {"fft", 168}, {"norm", 192}};

START_TEST(computed_cases) {
  char path[1024], *line = NULL;
  size_t room = 0;
  int n = 0;
  test_case c;
  snprintf(path, sizeof path, "%s/eval/data/%s.txt", KL_TESTS, files[_i].file);
  FILE *f = fopen(path, "r");
  EXPECT(f && getline(&line, &room, f) > 0, "cannot read %s", path);
  for (; read_case(f, &line, &room, &c); n++) {
    judge(&c);
    drop_case(&c);
  }
  fclose(f);
  free(line);
  ck_assert_int_eq(n, files[_i].cases);
}
END_TEST

// --- refusals and memory -------------------------------------------------------------------------------------------

static const struct {
  const char *body, *reason;
} refused[] = {
    {"ROOT r = u64[2] rng-get-and-update-state(), delta=4", "outlives the program"},
};

START_TEST(undetermined_ops_are_refused) {
  char text[512];
  kiln_module *m = NULL;
  float p[2] = {0, 1};
  kl_array args[2] = {{NULL, &p[0]}, {NULL, &p[1]}};
  kl_result r;
  snprintf(text, sizeof text, "HloModule t ENTRY e { %s }", refused[_i].body);
  EXPECT(kiln_module_parse(cx, "test", text, strlen(text), &m) == KILN_OK, "%s", last_finding());
  ck_assert_int_eq(kl_eval(cx, m, m->entry, args, NULL, &r), KILN_E_UNSUPPORTED);
  EXPECT(strstr(last_finding(), refused[_i].reason), "%s", last_finding());
  kiln_module_destroy(&m);
}
END_TEST

// In a format that overflows to NaN: where an end of what is right does, NaN is right, and so are all values up to
// there.
START_TEST(ends_that_overflow) {
  static const double right[] = {288, 416, 448};
  kl_result r;
  kiln_module *m = parse("HloModule t ENTRY e { x = f8e4m3fn[1,1] constant({{1}}) s = f8e4m3fn[1] constant({16}) "
                         "z = f8e4m3fn[1] constant({0}) ROOT r = f8e4m3fn[1,1] batch-norm-inference(x, s, z, z, z), "
                         "epsilon=0.001, feature_index=1 }");
  EXPECT(kl_eval(cx, m, m->entry, NULL, &(kl_eval_opts){.intervals = true}, &r) == KILN_OK, "%s", last_finding());
  for (size_t i = 0; i < KL_COUNT(right); i++)
    EXPECT(kl_result_allows(&r, 0, (uint64_t[2]){kl_float_encode(KILN_F8E4M3FN, right[i]), 0}), "%g is not right",
           right[i]);
  EXPECT(kl_result_allows(&r, 0, (uint64_t[2]){0x7f, 0}), "NaN is not right");
  kl_result_free(cx, &r);
  kiln_module_destroy(&m);
}
END_TEST

typedef struct meter {
  size_t live, calls, fail_at; // fail_at: which large allocation fails, from 1
} meter;

static void *metered(void *user, void *p, size_t old_size, size_t size) {
  meter *m = user;
  if (size >= 50000 && ++m->calls == m->fail_at) return NULL;
  m->live += size;
  m->live -= old_size;
  if (size == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, size);
}

// One parameter, filled with ones on a diagonal of 120, or the like.
static const char *const large[] = {
    "p = f32[120,120] parameter(0) ROOT r = f32[120,120] cholesky(p), lower=true",
    "p = f64[120,120] parameter(0) ROOT r = f64[120,120] triangular-solve(p, p), left_side=true, lower=true, "
    "unit_diagonal=false, transpose_a=NO_TRANSPOSE",
    "p = c64[10007] parameter(0) ROOT r = c64[10007] fft(p), fft_type=FFT, fft_length={10007}",
    "p = f32[20000,2] parameter(0) s = f32[2] constant({1, 2}) ROOT r = (f32[20000,2], f32[2], f32[2]) "
    "batch-norm-training(p, s, s), epsilon=0.001, feature_index=1",
    "p = u64[2] parameter(0) ROOT r = (u64[2], u32[20000]) rng-bit-generator(p), algorithm=rng_default",
    "p = f32[20000] parameter(0) q = u32[20000] bitcast-convert(p) ROOT r = s16[20000] stochastic-convert(p, q)",
};

START_TEST(memory_is_given_back) {
  meter meter = {0};
  kiln_context_params params = {.struct_size = sizeof params, .allocator = {&meter, metered, NULL}};
  kiln_context *mine = kiln_context_create(&params);
  kiln_module *m = NULL;
  char text[512];
  snprintf(text, sizeof text, "HloModule t ENTRY e { %s }", large[_i]);
  ck_assert_int_eq(kiln_module_parse(mine, "test", text, strlen(text), &m), KILN_OK);
  double *p = calloc(20000, sizeof *p);
  for (int i = 0; i < 120; i++) {
    if (strstr(large[_i], "f64"))
      p[i * 121] = 1;
    else
      ((float *)p)[i * 121] = 1;
  }
  size_t live = meter.live;
  bool done = false;
  for (size_t k = 1; !done; k++) {
    ck_assert_uint_lt(k, 100);
    kl_result r[3] = {{{0}}};
    meter.calls = 0;
    meter.fail_at = k;
    kiln_status s =
        kl_eval(mine, m, m->entry, &(kl_array){NULL, p}, &(kl_eval_opts){.intervals = true, .threads = 2}, r);
    done = meter.calls < k;
    ck_assert_int_eq(s, done ? KILN_OK : KILN_E_MEMORY);
    for (int i = 0; i < 3 && done; i++) kl_result_free(mine, &r[i]);
    ck_assert(!done || k > 1);
    meter.fail_at = 0;
    kiln_diagnostics_clear(mine);
    if (k == 1) live = meter.live; // the diagnostics' own arena
    EXPECT(meter.live <= live, "%zu bytes more are live\n%s", meter.live - live, text);
  }
  free(p);
  kiln_module_destroy(&m);
  kiln_context_destroy(&mine);
  ck_assert_uint_eq(meter.live, 0);
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_composite", EACH(make_context, drop_context), {computed_cases, (int)KL_COUNT(files)},
                   {undetermined_ops_are_refused, (int)KL_COUNT(refused)}, {ends_that_overflow},
                   {memory_is_given_back, (int)KL_COUNT(large)});
}
