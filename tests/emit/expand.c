// Ops that are written out in others: random shapes, layouts, types and attributes. The evaluator, which means each of
// these ops by itself, judges, on the host and on the simulator, which must have the same bits; PTX goes through ptxas.
//
// KILN_EXPAND_SEED runs one seed alone and prints its text.
#include "drawn.h"

#include <stdlib.h>

// --- random bits ----------------------------------------------------------------------------------------------------

static bool has_random_bits(kl_dtype t) {
  return kl_is_int(t) || kl_is_float(t);
}

// Results are the state and bits, or something of the bits.
static void draw_bits(drawn *d, kl_sb *calls, kl_dtype first) {
  static const char *const algorithms[] = {"rng_default", "rng_philox", "rng_three_fry"};
  (void)calls;
  kl_dtype t = has_random_bits(first) ? first : draw_type(has_random_bits);
  unsigned algorithm = below(3), words = algorithm < 2 && chance(40) ? 3 : 2;
  draw_dims(d, 0);
  kl_sbf(&d->text, "  s = u64[%u] parameter(0)\n  r = (u64[%u], ", words, words);
  put_shape(d, kl_info(t)->name);
  kl_sbf(&d->text, ") rng-bit-generator(s), algorithm=%s\n  n = u64[%u] get-tuple-element(r), index=0\n  b = ",
         algorithms[algorithm], words);
  put_dims(&d->text, kl_info(t)->name, d->rank, d->dims);
  kl_sbf(&d->text, " get-tuple-element(r), index=1\n");
  bool more = kl_is_int(t) && chance(50);
  if (more) {
    kl_sb_puts(&d->text, "  y = ");
    put_shape(d, kl_info(t)->name);
    kl_sb_puts(&d->text, " not(b)\n");
  }
  kl_sbf(&d->text, "  ROOT t = (u64[%u], ", words);
  put_dims(&d->text, kl_info(t)->name, d->rank, d->dims);
  kl_sbf(&d->text, ") tuple(n, %s)\n", more ? "y" : "b");
}

// --- batch norms ----------------------------------------------------------------------------------------------------

static void draw_norm(drawn *d, kl_sb *calls, kl_dtype first) {
  static const struct {
    const char *name;
    unsigned vectors;
    bool gradient;
  } ops[] = {{"training", 2, false}, {"inference", 4, false}, {"grad", 3, true}};
  (void)calls;
  const char *t = kl_info(kl_is_float(first) ? first : draw_type(kl_is_float))->name;
  unsigned op = below(3), operands = 1 + ops[op].vectors + ops[op].gradient;
  draw_dims(d, 1);
  uint32_t feature = below(d->rank), rank = d->rank;
  int64_t whole[MOST_RANK];
  memcpy(whole, d->dims, sizeof whole);
  put_array(d, 0, t);
  d->rank = 1;
  d->dims[0] = whole[feature];
  for (unsigned i = 1; i <= ops[op].vectors; i++) put_array(d, i, t);
  d->rank = rank;
  memcpy(d->dims, whole, sizeof whole);
  if (ops[op].gradient) put_array(d, operands - 1, t);
  kl_sbf(&d->text, "  ROOT y = %s", op == 1 ? "" : "(");
  put_shape(d, t);
  for (unsigned i = 0; i < 2 && op != 1; i++) kl_sbf(&d->text, ", %s[%lld]", t, (long long)whole[feature]);
  kl_sbf(&d->text, "%s batch-norm-%s(", op == 1 ? "" : ")", ops[op].name);
  for (unsigned i = 0; i < operands; i++) kl_sbf(&d->text, i ? ", x%u" : "x%u", i);
  kl_sbf(&d->text, "), epsilon=%s, feature_index=%u\n", chance(70) ? "0.001" : chance(50) ? "0" : "2", feature);
}

// --- running --------------------------------------------------------------------------------------------------------

static drawing *const kinds[] = {draw_bits, draw_norm};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void run_one(unsigned number, bool print) {
  dtype_list all = dtypes_that(kl_is_array_dtype);
  drawn d;
  kiln_module *m = draw_module(&d, kinds[number % KINDS], all.at[number / KINDS % (unsigned)all.n], number, print);
  run_drawn(m, &d, number, number / KINDS);
  drop_drawn(m, &d);
}

enum { SLICES = 20, CASES = 120 };

START_TEST(random_ops) {
  const char *alone = getenv("KILN_EXPAND_SEED");
  if (alone && _i) return;
  if (alone) return run_one((unsigned)strtoul(alone, NULL, 10), true);
  for (unsigned i = (unsigned)_i; i < share_of(CASES); i += SLICES) run_one(i, false);
}
END_TEST

int main(void) {
  return RUN_TESTS("expand", EACH(open_batches, close_batches), {random_ops, SLICES});
}
