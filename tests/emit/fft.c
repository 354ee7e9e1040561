// fft: random types, transforms, lengths, ranks, batches and layouts, operands that are parameters or computed, results
// that are more than one thing. The evaluator judges, on the host and on the simulator with all of its checks, which
// must have the same bits; PTX goes through ptxas.
//
// KILN_FFT_SEED runs one seed alone and prints its text.
#include "harness.h"
#include "support/context.h"
#include "support/draw.h"
#include "support/share.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_BATCH = 2, MOST_LENGTHS = 3, MOST_POINTS = 1500 };

// A transform, while a module is drawn.
typedef struct drawn {
  kl_sb text;
  const char *whole, *part, *type; // complex, real; of the transform
  uint32_t nbatch, n;
  int64_t batch[MOST_BATCH], length[MOST_LENGTHS];
} drawn;

static bool is(const drawn *d, const char *type) {
  return strcmp(d->type, type) == 0;
}

// The operand or the result; of real numbers one of them is real, and the other one half a spectrum.
static void put_shape(drawn *d, bool result, bool layout) {
  const char *real = result ? "IRFFT" : "RFFT", *half = result ? "RFFT" : "IRFFT";
  uint32_t rank = d->nbatch + d->n;
  kl_sbf(&d->text, "%s[", is(d, real) ? d->part : d->whole);
  for (uint32_t k = 0; k < d->nbatch; k++) kl_sbf(&d->text, "%lld,", (long long)d->batch[k]);
  for (uint32_t k = 0; k + 1 < d->n; k++) kl_sbf(&d->text, "%lld,", (long long)d->length[k]);
  int64_t last = d->length[d->n - 1];
  kl_sbf(&d->text, "%lld]", (long long)(is(d, half) ? last / 2 + 1 : last));
  if (!layout || chance(80)) return;
  for (uint32_t k = 0; k < rank; k++) kl_sbf(&d->text, "%s%u", k ? "," : "{", k);
  kl_sb_puts(&d->text, "}");
}

static int64_t draw_length(void) {
  static const int64_t some[] = {1, 2, 3, 4, 8, 11, 13, 16, 17, 31, 32, 34, 49, 64, 77, 97, 100, 125, 128, 221, 256};
  return chance(60) ? some[below(sizeof some / sizeof *some)] : 1 + below(chance(30) ? 300 : 60);
}

static int64_t points_of(const drawn *d) {
  int64_t n = 1;
  for (uint32_t k = 0; k < d->n; k++) n *= d->length[k];
  for (uint32_t k = 0; k < d->nbatch; k++) n *= d->batch[k];
  return n;
}

static void draw_sizes(drawn *d) {
  d->n = chance(60) ? 1 : 1 + below(MOST_LENGTHS);
  d->nbatch = below(MOST_BATCH + 1);
  for (uint32_t k = 0; k < d->nbatch; k++) d->batch[k] = chance(4) ? 0 : 1 + below(7);
  for (uint32_t k = 0; k < d->n; k++) d->length[k] = draw_length();
  while (points_of(d) > MOST_POINTS)
    for (uint32_t k = 0; k < d->n; k++) d->length[k] = d->length[k] > 3 ? d->length[k] / 2 : d->length[k];
}

static void draw_module(drawn *d) {
  static const char *const types[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  bool more = chance(25), computed = chance(25), wide = chance(40);
  d->type = types[below(4)];
  d->whole = wide ? "c128" : "c64";
  d->part = wide ? "f64" : "f32";
  draw_sizes(d);
  kl_sb_puts(&d->text, "HloModule m\n\nENTRY m {\n  p = ");
  put_shape(d, false, true);
  kl_sb_puts(&d->text, " parameter(0)\n");
  if (computed) {
    kl_sb_puts(&d->text, "  x = ");
    put_shape(d, false, false);
    kl_sb_puts(&d->text, " add(p, p)\n");
  }
  kl_sb_puts(&d->text, more ? "  y = " : "  ROOT y = ");
  put_shape(d, true, true);
  kl_sbf(&d->text, " fft(%s), fft_type=%s, fft_length={", computed ? "x" : "p", d->type);
  for (uint32_t k = 0; k < d->n; k++) kl_sbf(&d->text, "%s%lld", k ? "," : "", (long long)d->length[k]);
  kl_sb_puts(&d->text, "}\n");
  if (more) {
    kl_sb_puts(&d->text, "  ROOT z = ");
    put_shape(d, true, false);
    kl_sb_puts(&d->text, " multiply(y, y)\n");
  }
  kl_sb_puts(&d->text, "}\n");
}

static batch batches[TARGETS];

static void open_batches(void) {
  make_context();
  batches_init(batches, cx);
}
static void close_batches(void) {
  batches_free(batches);
  drop_context();
}

static void run_text(const char *text, unsigned number) {
  unsigned t = number % TARGETS;
  kiln_module *m = parse(text);
  run_both_and_check(cx, m, t, number, text);
  if (share_has(number, 3)) batch_add(batches, t, cx, m, number, text);
  kiln_module_destroy(&m);
}

static void run_one(unsigned number, bool print) {
  drawn d = {0};
  seed = number * 0x9e3779b97f4a7c15ull;
  kl_sb_init(&d.text, cx);
  draw_module(&d);
  if (print) puts(d.text.p);
  run_text(d.text.p, number);
  kl_sb_free(&d.text);
}

enum { SLICES = 4, CASES = 20 };

START_TEST(random_transforms) {
  const char *alone = getenv("KILN_FFT_SEED");
  if (alone && _i) return;
  if (alone) return run_one((unsigned)strtoul(alone, NULL, 10), true);
  for (unsigned i = (unsigned)_i; i < share_of(CASES); i += SLICES) run_one(i, false);
}
END_TEST

// Several launches of one line, and convolutions: on the host, as the simulator would take long.
static const char *const large[] = {
    "x = c64[2,8192] parameter(0) ROOT y = c64[2,8192] fft(x), fft_type=FFT, fft_length={8192}",
    "x = c128[6006] parameter(0) ROOT y = c128[6006] fft(x), fft_type=IFFT, fft_length={6006}",
    "x = f64[3,4097] parameter(0) ROOT y = c128[3,2049] fft(x), fft_type=RFFT, fft_length={4097}",
    "x = c64[2,4100] parameter(0) ROOT y = f32[2,8198] fft(x), fft_type=IRFFT, fft_length={8198}",
    "x = c64[128,100] parameter(0) ROOT y = c64[128,100] fft(x), fft_type=FFT, fft_length={128,100}",
    // The chirp is made in a launch, too.
    "x = c64[2,16411] parameter(0) ROOT y = c64[2,16411] fft(x), fft_type=FFT, fft_length={16411}",
    "x = c128[16412] parameter(0) ROOT y = f64[32822] fft(x), fft_type=IRFFT, fft_length={32822}",
    "x = c64[16411,2] parameter(0) ROOT y = c64[16411,2] fft(x), fft_type=IFFT, fft_length={16411,2}",
};

START_TEST(large_transforms) {
  char text[300];
  if (!share_has((uint64_t)_i, 1)) return;
  snprintf(text, sizeof text, "HloModule m\nENTRY m { %s }\n", large[_i]);
  kiln_module *m = parse(text);
  run_and_check(cx, m, 2, text);
  kiln_module_destroy(&m);
}
END_TEST

// What is no transform is refused, and says why.
static const char *const refused[][2] = {
    {"x = c64[8] parameter(0) ROOT y = c64[8] fft(x), fft_type=FFT, fft_length={4}", "does not fit"},
    {"x = f32[0] parameter(0) ROOT y = c64[1] fft(x), fft_type=RFFT, fft_length={0}", "does not fit"},
    {"x = c64[2147483659] parameter(0) ROOT y = c64[2147483659] fft(x), fft_type=FFT, fft_length={2147483659}",
     "expected at most"},
};

START_TEST(refusals) {
  char text[300];
  snprintf(text, sizeof text, "HloModule m\nENTRY m { %s }\n", refused[_i][0]);
  kiln_module *m = NULL;
  kiln_status st = kiln_module_parse(cx, "test", text, strlen(text), &m);
  for (int host = 0; host < 2 && st == KILN_OK; host++) {
    if (!share_has(2 * (uint64_t)_i + (uint64_t)host, 2)) continue;
    kiln_compile_params p = {.struct_size = sizeof p, .target = host ? "host" : "sm_90"};
    EXPECT(kiln_compile_check(cx, m, &p) == KILN_E_UNSUPPORTED, "%s is not refused", text);
    size_t n = kiln_diagnostics_count(cx);
    EXPECT(n && strstr(kiln_diagnostics_get(cx, n - 1)->text, refused[_i][1]), "%s: %s", text,
           n ? kiln_diagnostics_get(cx, n - 1)->text : "nothing is said");
    kiln_diagnostics_clear(cx);
  }
  kiln_module_destroy(&m);
}
END_TEST

// Whatever the factors of lengths are, plans are proved: what launches leave to each other is more than is looked at
// number by number.
static const char *const proved[] = {
    "x = c64[1000000] parameter(0) ROOT y = c64[1000000] fft(x), fft_type=FFT, fft_length={1000000}",
    "x = c128[3,390625] parameter(0) ROOT y = c128[3,390625] fft(x), fft_type=IFFT, fft_length={390625}",
    "x = f32[2,4826809] parameter(0) ROOT y = c64[2,2413405] fft(x), fft_type=RFFT, fft_length={4826809}",
    "x = c64[1000,1000] parameter(0) ROOT y = c64[1000,1000] fft(x), fft_type=FFT, fft_length={1000,1000}",
    "x = c64[3100,3001] parameter(0) ROOT y = c64[3100,3001] fft(x), fft_type=FFT, fft_length={3100,3001}",
    "x = c64[134217757] parameter(0) ROOT y = c64[134217757] fft(x), fft_type=FFT, fft_length={134217757}",
};

START_TEST(proofs) {
  char text[300];
  snprintf(text, sizeof text, "HloModule m\nENTRY m { %s }\n", proved[_i]);
  kiln_module *m = parse(text);
  for (int host = 0; host < 2; host++) {
    if (!share_has(2 * (uint64_t)_i + (uint64_t)host, 1)) continue;
    kiln_compile_params p = {.struct_size = sizeof p, .target = host ? "host" : "sm_90"};
    size_t n = kiln_diagnostics_count(cx);
    EXPECT(kiln_compile_check(cx, m, &p) == KILN_OK, "%s: %s", text,
           kiln_diagnostics_count(cx) > n ? kiln_diagnostics_get(cx, n)->text : "");
  }
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("fft", EACH(open_batches, close_batches), {random_transforms, SLICES},
                   {large_transforms, sizeof large / sizeof *large}, {refusals, sizeof refused / sizeof *refused},
                   {proofs, sizeof proved / sizeof *proved});
}
