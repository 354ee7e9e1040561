// Every spelling of every arithmetic row of the instruction table as a kernel of its own, launched through a driver:
// what it makes of drawn and edge operands is what the row's executor makes of them, bit by bit. By default the driver
// is the simulator, so that parser, decoder and machine are judged; with KILN_TEST_CUDA (cu.h) it is a GPU, which
// judges the executors, and so what the PTX ISA's text was taken to mean. Of instructions that are modelled by their
// correctly rounded result it only tells how far off a GPU's are; of two NaNs, that their bits differ. One spelling in
// 32 is tried, all with KILN_TEST_SHARE=32 (support/share.h).
#include "cu.h"
#include "lanes/warp.h"
#include "support/share.h"

#include <string.h>

enum { WARPS = 512, THREADS = WARPS * KL_LANES, OF_MODULE = 32, SLOT = 16, SELECTED = 0x1a };

typedef struct tried {
  instruction i;
  warp *w; // WARPS of them: operands, and what executors make of them
} tried;

static CUdeviceptr in, out;
static char *host;
static unsigned compared, refused, modelled, apart, all_wrong;
static bool on_gpu;

static void make(void) {
  CUcontext c;
  cu_open();
  on_gpu = getenv("KILN_TEST_CUDA") != NULL;
  WORKS(cu.cuInit(0));
  WORKS(cu.cuDevicePrimaryCtxRetain(&c, 0));
  WORKS(cu.cuCtxSetCurrent(c));
  in = cu_memory((size_t)THREADS * SLOT * (MOST_SOURCES + 1));
  out = cu_memory((size_t)THREADS * SLOT * (MOST_RESULTS + 1));
  host = malloc((size_t)THREADS * SLOT * (MOST_SOURCES + 1));
}

static void drop(void) {
  printf("# %u instructions agree, %u of them by the bounds of approximations; %u leave the ISA's text; %u are not for "
         "this device\n",
         compared - apart - all_wrong, modelled, apart, refused);
  free(host);
}

// --- kernels --------------------------------------------------------------------------------------------------------

static char letter_of(int bits) {
  switch (bits) {
  case 1: return 'p';
  case 8: return 'b';
  case 16: return 'h';
  case 64: return 'l';
  case 128: return 'q';
  default: return 'w';
  }
}

// Register n of so many bits from or to slot `at` of this thread; predicates are words of 0 or 1.
static void put_load(FILE *f, int bits, int n, int at) {
  char c = letter_of(bits);
  long place = (long)at * THREADS * SLOT;
  if (c == 'p')
    fprintf(f, "  ld.global.u32 %%t, [%%in+%ld];\n  setp.ne.u32 %%p%d, %%t, 0;\n", place, n);
  else if (c == 'q')
    fprintf(f, "  ld.global.v2.u64 {%%lo, %%hi}, [%%in+%ld];\n  mov.b128 %%q%d, {%%lo, %%hi};\n", place, n);
  else
    fprintf(f, "  ld.global.b%d %%%c%d, [%%in+%ld];\n", bits == 8 ? 16 : bits, c, n, place);
}

static void put_store(FILE *f, int bits, int n, int at) {
  char c = letter_of(bits);
  long place = (long)at * THREADS * SLOT;
  if (c == 'p')
    fprintf(f, "  selp.u32 %%t, 1, 0, %%p%d;\n  st.global.u32 [%%out+%ld], %%t;\n", n, place);
  else if (c == 'q')
    fprintf(f, "  mov.b128 {%%lo, %%hi}, %%q%d;\n  st.global.v2.u64 [%%out+%ld], {%%lo, %%hi};\n", n, place);
  else
    fprintf(f, "  st.global.b%d [%%out+%ld], %%%c%d;\n", bits == 8 ? 16 : bits, place, c, n);
}

static bool carries(const instruction *i) {
  return has(i, ".cc") || is(i, "addc") || is(i, "subc") || is(i, "madc");
}

// The carry is set by a sum, and read by another.
static void put_kernel(FILE *f, const instruction *i, unsigned number) {
  fprintf(
      f,
      ".visible .entry k%u(.param .u64 from, .param .u64 to) {\n"
      "  .reg .pred %%p<12>; .reg .b16 %%b<12>, %%h<12>; .reg .b32 %%w<12>, %%t; .reg .b64 %%l<12>, %%in, %%out, %%at, "
      "%%lo, %%hi; .reg .b128 %%q<12>;\n"
      "  ld.param.u64 %%in, [from]; ld.param.u64 %%out, [to];\n"
      "  mov.u32 %%t, %%ctaid.x; mov.u32 %%w11, %%ntid.x; mov.u32 %%w10, %%tid.x; mad.lo.u32 %%t, %%t, %%w11, %%w10;\n"
      "  mul.wide.u32 %%at, %%t, %d; add.u64 %%in, %%in, %%at; add.u64 %%out, %%out, %%at;\n",
      number, SLOT);
  int n = 1;
  for (int k = 0; k < i->sources; k++)
    if (i->source_bits[k]) put_load(f, i->source_bits[k], n++, k);
  for (int k = 0; k < i->results; k++) // what is written in part has a value before
    if (i->result_bits[k] > 1) put_load(f, i->result_bits[k], 0, 0);
  if (carries(i))
    fprintf(f, "  ld.global.u32 %%t, [%%in+%ld];\n  add.cc.u32 %%t, %%t, -1;\n", (long)MOST_SOURCES * THREADS * SLOT);
  fputs("  ", f);
  put_operands(f, i, i->mnemonic);
  if (carries(i))
    fprintf(f, "  addc.u32 %%t, 0, 0;\n  st.global.u32 [%%out+%ld], %%t;\n", (long)MOST_RESULTS * THREADS * SLOT);
  for (int k = 0; k < i->results; k++) put_store(f, i->result_bits[k], k, k);
  fputs("  ret;\n}\n", f);
}

static char *text_of(const tried *t, unsigned n, const char *target) {
  char *text = NULL;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  fprintf(f, ".version 8.8\n.target %s\n.address_size 64\n", target);
  for (unsigned k = 0; k < n; k++) put_kernel(f, &t[k].i, k);
  fclose(f);
  return text;
}

// --- operands -------------------------------------------------------------------------------------------------------

// All pairs of edges in the first two sources, then what is drawn; every lane executes.
static void fill(tried *t) {
  const instruction *i = &t->i;
  uint64_t state = 1;
  size_t na = edge_count(i->source_bits[0] ? i->source_bits[0] : 32);
  size_t nb = i->sources > 1 && i->source_bits[1] ? edge_count(i->source_bits[1]) : 1, pair = 0;
  size_t step = na * nb > THREADS ? na * nb / THREADS + 1 : 1;
  for (int w = 0; w < WARPS; w++) {
    warp *to = &t->w[w];
    *to = (warp){.mask = KL_ALL_LANES, .alias = -1, .carry = (uint32_t)random_next(&state)};
    for (int k = 0; k < i->sources; k++)
      if (!i->source_bits[k]) to->constant = SELECTED;
    for (int l = 0; l < KL_LANES; l++, pair += step) {
      for (int k = 0; k < i->sources; k++) {
        value high = i->source_bits[k] == 128 ? random_next(&state) : 0;
        to->source[k][l] = i->source_bits[k] ? draw_value(&state, i->source_bits[k]) | high << 64 : SELECTED;
      }
      if (pair >= na * nb) continue;
      if (i->source_bits[0]) to->source[0][l] = edge(i->source_bits[0], pair % na);
      if (i->sources > 1 && i->source_bits[1]) to->source[1][l] = edge(i->source_bits[1], pair / na);
    }
  }
}

static void upload(const tried *t) {
  memset(host, 0, (size_t)THREADS * SLOT * (MOST_SOURCES + 1));
  for (int w = 0; w < WARPS; w++)
    for (int l = 0; l < KL_LANES; l++) {
      char *p = host + ((size_t)w * KL_LANES + (size_t)l) * SLOT;
      for (int k = 0; k < t->i.sources; k++) memcpy(p + (size_t)k * THREADS * SLOT, &t->w[w].source[k][l], SLOT);
      p[(size_t)MOST_SOURCES * THREADS * SLOT] = t->w[w].carry >> l & 1;
    }
  WORKS(cu.cuMemcpyHtoD_v2(in, host, (size_t)THREADS * SLOT * (MOST_SOURCES + 1)));
  WORKS(cu.cuMemsetD8_v2(out, 0, (size_t)THREADS * SLOT * (MOST_RESULTS + 1)));
}

// --- comparing ------------------------------------------------------------------------------------------------------

// Formats of the type that a mnemonic's result has: bits of the exponent and of the mantissa; 0: no float.
static void float_of(const instruction *i, int *exponent, int *mantissa) {
  static const struct {
    const char *type;
    int exponent, mantissa;
  } types[] = {{".f64", 11, 52},  {".f32", 8, 23}, {".f32x2", 8, 23}, {".f16", 5, 10},
               {".f16x2", 5, 10}, {".bf16", 8, 7}, {".bf16x2", 8, 7}, {".tf32", 8, 23}};
  const char *first = NULL;
  *exponent = *mantissa = 0;
  for (size_t k = 0; k < KL_COUNT(types); k++) {
    const char *p = has(i, types[k].type) ? strstr(i->mnemonic, types[k].type) : NULL;
    if (!p || (first && p > first)) continue;
    first = p;
    *exponent = types[k].exponent;
    *mantissa = types[k].mantissa;
  }
}

// All elements that differ are NaNs in both; of the others, *off is the greatest distance in units of the last place.
static bool only_nans(value a, value b, int bits, int exponent, int mantissa, uint64_t *off) {
  int size = 1 + exponent + mantissa;
  bool all = exponent > 0;
  if (!exponent || bits < size) return *off = UINT64_MAX, false;
  for (int at = 0; at < bits; at += size) {
    uint64_t mask = size == 64 ? UINT64_MAX : (1ull << size) - 1, sign = 1ull << (size - 1);
    uint64_t x = (uint64_t)(a >> at) & mask, y = (uint64_t)(b >> at) & mask;
    uint64_t infinity = (sign - 1) >> mantissa << mantissa;
    if (x == y) continue;
    if ((x & ~sign) > infinity && (y & ~sign) > infinity) continue;
    all = false;
    if ((x & ~sign) > infinity || (y & ~sign) > infinity) return *off = UINT64_MAX, false;
    uint64_t p = x & sign ? 0 - (x & ~sign) : x, q = y & sign ? 0 - (y & ~sign) : y, d = p > q ? p - q : q - p;
    d = d > 1ull << 63 ? 0 - d : d;
    if (d > *off) *off = d;
  }
  return all;
}

typedef struct difference {
  unsigned results, nans, carries;
  uint64_t off;
  char first[512];
} difference;

static const char *hex(value v, char *to) {
  if (v >> 64)
    sprintf(to, "%llx%016llx", (unsigned long long)(v >> 64), (unsigned long long)v);
  else
    sprintf(to, "%llx", (unsigned long long)v);
  return to;
}

static void tell(difference *d, const instruction *i, const warp *w, int l, int k, value found) {
  char a[40], *p = d->first;
  p += sprintf(p, "of");
  for (int s = 0; s < i->sources; s++) p += sprintf(p, " %s", hex(w->source[s][l], a));
  p += sprintf(p, ": result %d is %s", k, hex(found, a));
  sprintf(p, ", expected %s", hex(w->result[k][l], a));
}

static void compare(tried *t, difference *d) {
  size_t n;
  const kl_lane_set *set = kl_lanes_sets(&n)[0];
  int exponent, mantissa;
  float_of(&t->i, &exponent, &mantissa);
  *d = (difference){0};
  WORKS(cu.cuMemcpyDtoH_v2(host, out, (size_t)THREADS * SLOT * (MOST_RESULTS + 1)));
  for (int w = 0; w < WARPS; w++) {
    for (int k = 0; k < t->i.results; k++)
      for (int l = 0; l < KL_LANES; l++) t->w[w].result[k][l] = t->w[w].source[0][l];
    uint32_t before = t->w[w].carry;
    warp_run(set, &t->i, &t->w[w]);
    for (int l = 0; l < KL_LANES; l++) {
      const char *p = host + ((size_t)w * KL_LANES + (size_t)l) * SLOT;
      for (int k = 0; k < t->i.results; k++) {
        value found = 0, expected = t->w[w].result[k][l];
        int bits = t->i.result_bits[k];
        memcpy(&found, p + (size_t)k * THREADS * SLOT, bits == 1 ? 4 : bits == 8 ? 2 : (size_t)bits / 8);
        if (found == expected) continue;
        if (only_nans(found, expected, bits, exponent, mantissa, &d->off)) {
          d->nans++;
          continue;
        }
        if (!d->results++) tell(d, &t->i, &t->w[w], l, k, found);
      }
      if (carries(&t->i))
        d->carries += ((t->w[w].carry >> l ^ (uint32_t)(unsigned char)p[(size_t)MOST_RESULTS * THREADS * SLOT]) & 1);
    }
    t->w[w].carry = before;
  }
}

// Where the H200 leaves the ISA's text, which stays what the simulator does: rows that are told, not judged. Video
// instructions, which GPUs make of others, differ in saturation and in which sign their last step takes operands to
// have; NaNs become infinities as tf32; fns goes wrong from the least offset.
static bool leaves_the_text(const instruction *i) {
  return on_gpu && (i->mnemonic[0] == 'v' || is(i, "fns") || (is(i, "cvt") && has(i, ".rna") && has(i, ".tf32")));
}

// --- running --------------------------------------------------------------------------------------------------------

static unsigned wrong;

static void run(CUmodule m, tried *t, unsigned number) {
  char name[16];
  difference d;
  void *arguments[] = {&in, &out};
  snprintf(name, sizeof name, "k%u", number);
  CUfunction f = cu_function(m, name);
  upload(t);
  WORKS(cu.cuLaunchKernel(f, WARPS / 4, 1, 1, 4 * KL_LANES, 1, 1, 0, NULL, arguments, NULL));
  WORKS(cu.cuCtxSynchronize());
  compare(t, &d);
  bool exact = t->i.form->grade == KL_EXACT;
  compared++;
  modelled += !exact && on_gpu;
  if (d.nans) printf("# %s: %u NaNs have other bits\n", t->i.mnemonic, d.nans);
  if (d.results && !exact && on_gpu)
    printf("# %s: %u of %d differ, by up to %llu units in the last place; %s\n", t->i.mnemonic, d.results, THREADS,
           (unsigned long long)d.off, d.first);
  if (d.carries || (d.results && (exact || !on_gpu))) {
    bool known = leaves_the_text(&t->i);
    printf("# %s: %u of %d are %s, %u carries; %s\n", t->i.mnemonic, d.results, THREADS,
           known ? "not the text's" : "wrong", d.carries, d.first);
    wrong += !known;
    apart += known;
  }
}

static CUmodule module_of(const tried *t, unsigned n) {
  static const char *const targets[] = {"sm_90a", "sm_100a", "sm_120a", "sm_89", "sm_80", "sm_75"};
  CUmodule m = NULL;
  for (size_t k = 0; k < KL_COUNT(targets) && !m; k++) {
    char *text = text_of(t, n, targets[k]);
    if (cu.cuModuleLoadDataEx(&m, text, 0, NULL, NULL) != CUDA_SUCCESS) m = NULL;
    free(text);
  }
  return m;
}

// Together where the device has all of them; else one by one.
static void run_all(tried *t, unsigned n) {
  CUmodule m = module_of(t, n);
  if (!m && n == 1) refused++;
  for (unsigned k = 0; k < n; k++) {
    if (m)
      run(m, &t[k], k);
    else if (n > 1)
      run_all(&t[k], 1);
  }
  if (m) WORKS(cu.cuModuleUnload(m));
}

static const lane_form *topic_at(int n) {
  for (size_t r = 0, k = 0; r < lane_form_count; r++)
    if (!lane_forms[r].executor && (int)k++ == n) return &lane_forms[r];
  return NULL;
}

START_TEST(what_instructions_make) {
  const lane_form *head = topic_at(_i);
  if (!head || strcmp(head->topic, "glue") == 0) return;
  static tried t[OF_MODULE];
  unsigned n = 0;
  uint64_t spelling = 0;
  wrong = 0;
  for (const lane_form *f = head + 1; f < lane_forms + lane_form_count && f->executor; f++) {
    instruction i;
    for (size_t k = 0; instruction_at(f, k, &i); k++) {
      if (!share_has(spelling++, 32)) continue;
      if (!t[n].w) t[n].w = malloc(WARPS * sizeof *t[n].w);
      t[n].i = i;
      fill(&t[n++]);
      if (n == OF_MODULE) run_all(t, n), n = 0;
    }
  }
  if (n) run_all(t, n);
  all_wrong += wrong;
  EXPECT(wrong == 0, "%s: %u instructions", head->topic, wrong);
}
END_TEST

int main(void) {
  int topics = 0;
  while (topic_at(topics)) topics++;
  return RUN_TESTS("hardware", ONCE(make, drop), {what_instructions_make, topics});
}
