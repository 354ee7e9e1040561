// Topk by threads that keep the first of what they have seen: every type that has an order, numbers that are kept from
// one to all, lines from one element to those of several blocks. The evaluator judges; keys are few different ones, or
// have all bits.
//
// KILN_TOP_SEED runs one seed alone and prints its text.
#include "drawn.h"
#include "jit/jit.h"
#include "lower/choose/choose.h"

#include <stdlib.h>

enum { CASES = 120, SLICES = 6 };

static bool is_ordered(kl_dtype t) {
  return kl_is_int(t) || kl_is_float(t);
}

static void put_result(kl_sb *b, const drawn *d, const char *type) {
  put_dims(b, type, d->rank, d->dims);
  put_layout(b, d->rank);
}

// What is kept, of lines of so many elements, of other dimensions that are drawn already.
static void draw_kept(drawn *d, kl_dtype type, int64_t length, int64_t k, bool largest) {
  const char *name = kl_info(type)->name;
  d->dims[d->rank - 1] = length;
  put_array(d, 0, name);
  d->dims[d->rank - 1] = k;
  kl_sb_puts(&d->text, "  y = (");
  put_result(&d->text, d, name);
  kl_sb_puts(&d->text, ", ");
  put_dims(&d->text, "s32", d->rank, d->dims);
  kl_sbf(&d->text, ") topk(x0), k=%lld, largest=%s\n", (long long)k, largest ? "true" : "false");
  const char *wanted = chance(20) ? "i" : chance(20) ? "v" : "t";
  kl_sbf(&d->text, "  %sv = ", *wanted == 'v' ? "ROOT " : "");
  put_dims(&d->text, name, d->rank, d->dims);
  kl_sb_puts(&d->text, " get-tuple-element(y), index=0\n");
  kl_sbf(&d->text, "  %si = ", *wanted == 'i' ? "ROOT " : "");
  put_dims(&d->text, "s32", d->rank, d->dims);
  kl_sb_puts(&d->text, " get-tuple-element(y), index=1\n");
  if (*wanted != 't') return;
  kl_sb_puts(&d->text, "  n = ");
  put_dims(&d->text, "s32", d->rank, d->dims);
  kl_sb_puts(&d->text, " negate(i)\n  ROOT t = (");
  put_dims(&d->text, name, d->rank, d->dims);
  kl_sb_puts(&d->text, ", ");
  put_dims(&d->text, "s32", d->rank, d->dims);
  kl_sb_puts(&d->text, ") tuple(v, n)\n");
}

// Few kept of few, of many, and all that may be.
static void draw_top(drawn *d, kl_sb *calls, kl_dtype type) {
  (void)calls;
  int64_t most = kl_info(type)->bits > 32 ? 256 : 512;
  draw_dims(d, 1);
  int64_t length = chance(40) ? 1 + below(40) : chance(80) ? 1 + below(1200) : 1 + below(9000);
  for (uint32_t i = 0; i + 1 < d->rank; i++) d->dims[i] = 1 + (length > 40 ? below(3) : (uint32_t)d->dims[i]);
  int64_t k = 1 + (chance(40) ? below(4) : chance(60) ? below(40) : below((uint32_t)most));
  if (k > length) k = chance(50) ? length : 1;
  draw_kept(d, type, length, k, chance(60));
}

// Both machines, where the host keeps as many: of its 16 lanes each has 16, of 64-bit keys 8.
static void run_module(const kiln_module *m, kl_dtype type, int64_t k, unsigned number, unsigned inputs,
                       const char *text) {
  bool both = k <= (kl_info(type)->bits > 32 ? 128 : 256);
  strategy = (kl_strategy){.chooser = "top of lines"};
  (both ? run_both_and_check : run_gpu_and_check)(cx, m, number % TARGETS, inputs, text);
  strategy = (kl_strategy){0};
}

static void run_case(unsigned number, bool print) {
  dtype_list all = dtypes_that(is_ordered);
  kl_dtype type = all.at[number % (unsigned)all.n];
  drawn d;
  kiln_module *m = draw_module(&d, draw_top, type, number, print);
  run_module(m, type, d.dims[d.rank - 1], number, number, d.text.p);
  if (share_has(number, 3)) batch_add(batches, number % TARGETS, cx, m, number, d.text.p);
  kiln_module_destroy(&m);
  kl_sb_free(&d.text);
}

START_TEST(random_lines) {
  const char *one = getenv("KILN_TOP_SEED");
  if (one) {
    if (_i == 0) run_case((unsigned)strtoul(one, NULL, 10), true);
    return;
  }
  for (uint64_t n = (uint64_t)_i; n < share_of(CASES); n += SLICES) run_case((unsigned)n, false);
}
END_TEST

// By type: words that hold key and place, and two; lists of one lane and of all; one block and several; lines that lie
// beside each other.
static const struct {
  const char *type, *dims;
  int64_t length, k;
  const char *layout;
} rows[] = {
    {"f32", "", 150001, 10, ""},      {"f64", "", 90000, 3, ""},          {"u16", "2,", 70000, 33, ""},
    {"bf16", "3,", 40000, 512, ""},   {"s64", "", 60000, 256, ""},        {"u8", "", 100003, 64, ""},
    {"f32", "700,", 64, 2, ""},       {"f16", "301,", 128, 8, ""},        {"s8", "5,3,", 4097, 16, ""},
    {"f32", "70000,", 8, 2, ""},      {"u32", "1111,", 16, 16, ""},       {"f8e4m3fn", "9,", 3000, 100, ""},
    {"f32", "37,", 513, 40, "{0,1}"}, {"f64", "2,5,", 700, 9, "{1,0,2}"}, {"s4", "7,", 999, 5, ""},
    {"f32", "40000,", 128, 4, ""},
};

START_TEST(sizes) {
  if (!share_has((unsigned)_i, 2)) return;
  char text[600];
  const char *t = rows[_i].type, *dims = rows[_i].dims;
  long long k = rows[_i].k;
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e { x = %s[%s%lld]%s parameter(0) ROOT y = (%s[%s%lld], s32[%s%lld]) topk(x), k=%lld, "
           "largest=%s }\n",
           t, dims, (long long)rows[_i].length, rows[_i].layout, t, dims, k, dims, k, k, _i % 2 ? "false" : "true");
  kiln_module *m = parse(text);
  kiln_array_type x;
  ck_assert(kiln_module_parameter_leaf_type(m, 0, &x));
  for (unsigned inputs = 0; inputs < 2; inputs++) run_module(m, x.dtype, k, (unsigned)_i, inputs, text);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("top", EACH(open_batches, close_batches), {random_lines, SLICES}, {sizes, KL_COUNT(rows)});
}
