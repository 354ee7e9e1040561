#include "harness.h"
#include "counts.h"
#include "jit/jit.h"
#include "lower/choose/choose.h"
#include "support/bits.h"
#include "support/gpu_sim.h"
#include "support/share.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

const char *const targets[TARGETS + 2] = {
    "sm_70", "sm_75", "sm_80", "sm_90", "sm_100", [HOST] = "host", [FAMILY] = "sm_100a"};
const unsigned machines[MACHINES] = {0, 3, HOST};
kl_strategy strategy;
bool deterministic;
uint32_t keep;
void (*change_parameter)(const kiln_module *m, size_t parameter, unsigned seed, void *buffer);
enum { BATCH = 40, MOST_BUFFERS = 64 };

static void free_all(void **p) {
  for (int i = 0; i < MOST_BUFFERS; i++) free(p[i]);
}

void give_up(unsigned seed, const char *what, kiln_context *cx, const char *text) {
  const char *found = kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "";
  ck_abort_msg("seed %u: %s: %s\n%.3000s", seed, what, found, text);
}

// --- compiling ------------------------------------------------------------------------------------------------------

// What is counted of a plan is what the simulator counts. Where launches are one, they are counted apart.
static void check_counts(kiln_context *cx, const kiln_module *m, const kiln_artifact *a, const kiln_compile_params *p,
                         const char *text) {
  char why[256];
  int differ = counts_differ(cx, m, a, why, sizeof why);
  if (differ == 2 && counts_have_chains(a)) {
    kiln_artifact *apart = NULL;
    kl_strategy s = strategy;
    s.rounds = KL_NONE;
    if (kl_compile_as(cx, m, p, &s, &apart) != KILN_OK) give_up(0, "compiling apart", cx, text);
    differ = counts_differ(cx, m, apart, why, sizeof why);
    kiln_artifact_destroy(&apart);
  }
  ck_assert_msg(differ != 1, "for %s: %s\n%.3000s", kiln_artifact_manifest(a)->target, why, text);
}

// What the last text has been compiled to: a module that runs on several inputs, and is assembled, is compiled once.
static struct {
  uint8_t hash[KILN_HASH_SIZE]; // beside the text, which may be another module's that this one was made of
  char *text;
  unsigned n;
  struct {
    unsigned t;
    uint32_t align;
    bool deterministic;
    uint32_t keep;
    kl_strategy strategy;
    kiln_artifact *a;
  } made[2 * (TARGETS + 2)];
} last;

static void forget_artifacts(void) {
  while (last.n) kiln_artifact_destroy(&last.made[--last.n].a);
}

// Of kernels one in four is counted.
static const kiln_artifact *artifact_of(kiln_context *cx, const kiln_module *m, unsigned t, uint32_t align,
                                        unsigned seed, const char *text) {
  static uint64_t kernels;
  uint8_t hash[KILN_HASH_SIZE];
  if (kiln_module_hash(cx, m, hash) != KILN_OK) give_up(seed, "hashing", cx, text);
  if (!last.text || memcmp(last.hash, hash, sizeof hash) != 0 || strcmp(last.text, text) != 0) {
    forget_artifacts();
    free(last.text);
    memcpy(last.hash, hash, sizeof hash);
    last.text = strdup(text);
  }
  for (unsigned i = 0; i < last.n; i++)
    if (last.made[i].t == t && last.made[i].align == align && last.made[i].deterministic == deterministic &&
        last.made[i].keep == keep && memcmp(&last.made[i].strategy, &strategy, sizeof strategy) == 0)
      return last.made[i].a;
  if (last.n == KL_COUNT(last.made)) forget_artifacts();
  // Host code is made in two ways, whose bits are the same: of some modules in one, of others in the other.
  kl_strategy how = strategy;
  how.often |= t == HOST && hash[0] % 2;
  kiln_compile_params p = {.struct_size = sizeof p, .target = targets[t], .deterministic = deterministic};
  bool counts = t != HOST && share_has(kernels++, 4);
  p.argument_align = align, p.keep = keep | (counts ? KILN_KEEP_EXPLAIN : 0);
  kiln_artifact *a = NULL;
  if (kl_compile_as(cx, m, &p, &how, &a) != KILN_OK) give_up(seed, targets[t], cx, text);
  unsigned at = last.n++;
  last.made[at].t = t, last.made[at].align = align, last.made[at].deterministic = deterministic;
  last.made[at].keep = keep, last.made[at].a = a;
  memcpy(&last.made[at].strategy, &strategy, sizeof strategy);
  if (counts) check_counts(cx, m, a, &p, text);
  return a;
}

const kiln_artifact *compiled_for(kiln_context *cx, const kiln_module *m, unsigned t, unsigned number,
                                  const char *text) {
  return artifact_of(cx, m, t, 0, number, text);
}

// --- PTX -----------------------------------------------------------------------------------------------------------

static void assemble(batch *b, const char *target) {
  if (!b->kernels) return;
  kl_sb all;
  kl_sb_init(&all, b->text.cx);
  kl_sbf(&all, ".version %u.%u\n.target %s\n.address_size 64\n", b->version / 10, b->version % 10, target);
  kl_sb_put(&all, (kl_str){b->text.p, b->text.n});
  ptxas_result r = ptxas_run(all.p, all.n, target);
  ck_assert_msg(r.ok, "ptxas for %s refuses a batch from seed %u: %s", target, b->first, r.log);
  if (r.spill_stores)
    kl_sbf(&b->spilled, "%s, its seed behind k, spills %d bytes for %s\n", r.spiller, r.spill_stores, target);
  kl_sb_free(&all);
  b->text.n = b->kernels = b->version = 0;
}

void batches_init(batch *b, kiln_context *cx) {
  memset(b, 0, TARGETS * sizeof *b);
  for (size_t t = 0; t < TARGETS; t++) {
    kl_sb_init(&b[t].text, cx);
    kl_sb_init(&b[t].spilled, cx);
  }
}

void batches_free(batch *b) {
  for (size_t t = 0; t < TARGETS; t++) {
    assemble(&b[t], targets[t]);
    kl_sb_free(&b[t].text);
    ck_assert_msg(!b[t].spilled.n, "%s", b[t].spilled.p);
    kl_sb_free(&b[t].spilled);
  }
}

// ptxas may contract floating-point sums and products that carry no rounding, but for those that memory does: the first
// of them, or NULL.
static const char *contractible(const char *ptx) {
  static const char *const ops[] = {"add.f", "sub.f", "mul.f", "add.bf", "sub.bf", "mul.bf"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    for (const char *at = ptx; (at = strstr(at, ops[i])); at++)
      if (at - ptx < 7 || (strncmp(at - 7, "global.", 7) != 0 && strncmp(at - 7, "shared.", 7) != 0)) return at;
  }
  return NULL;
}

static void check_ptx(const char *ptx, unsigned seed) {
  const char *found = contractible(ptx);
  ck_assert_msg(!strstr(ptx, ".local"), "seed %u uses local memory", seed);
  ck_assert_msg(!found, "seed %u: an op without its rounding: %.20s", seed, found);
}

// Names that a module's text declares, outside of its functions: kernels, constants, shared memory of no known size.
enum { MOST_NAMES = 256 };
typedef struct names {
  kl_str at[MOST_NAMES];
  size_t n;
} names;

static bool is_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

// Declarations begin lines, as "[.visible] .entry NAME(" or ".global .align 16 .b8 NAME[64] = ..."; functions' lines
// are indented.
static void find_names(const char *ptx, names *all) {
  all->n = 0;
  for (const char *p = ptx; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
    const char *end = p + strcspn(p, "([=;\n"), *begin;
    if (*p != '.' || !*end || *end == '\n') continue;
    while (end > p && !is_in_name(end[-1])) end--;
    for (begin = end; begin > p && is_in_name(begin[-1]);) begin--;
    ck_assert_uint_lt(all->n, MOST_NAMES);
    all->at[all->n++] = (kl_str){begin, (size_t)(end - begin)};
  }
}

static bool is_declared(const names *all, kl_str name) {
  for (size_t i = 0; i < all->n; i++)
    if (kl_str_eq(all->at[i], name)) return true;
  return false;
}

// Takes the kernels without their module's header into the batch. The seed makes the names of what modules declare
// different: modules may have one name, as may what is made of it.
static void add_ptx(batch *b, const char *ptx, unsigned seed) {
  unsigned major, minor;
  const char *v = strstr(ptx, ".version "), *body = strstr(ptx, ".address_size 64");
  ck_assert(v && body && sscanf(v, ".version %u.%u", &major, &minor) == 2);
  if (major * 10 + minor > b->version) b->version = major * 10 + minor;
  if (!b->kernels) b->first = seed;
  b->kernels++;
  body += strlen(".address_size 64");
  names all;
  find_names(body, &all);
  for (const char *p = body; *p;) {
    const char *q = p;
    while (is_in_name(*q)) q++;
    bool whole = q > p && p[-1] != '.' && p[-1] != '%' && *q != '.'; // else of an op, or a register
    if (whole && is_declared(&all, (kl_str){p, (size_t)(q - p)})) kl_sbf(&b->text, "k%u_", seed);
    while (*q && !is_in_name(*q)) q++;
    kl_sb_put(&b->text, (kl_str){p, (size_t)(q - p)});
    p = q;
  }
}

// --- running ------------------------------------------------------------------------------------------------------

typedef struct buffers {
  void *in[MOST_BUFFERS], *out[MOST_BUFFERS];
} buffers;

static void fill_parameters(const kiln_module *m, unsigned seed, bool wild, void **in) {
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(m); i++) {
    kiln_array_type t;
    int64_t bytes = kiln_module_parameter_leaf_bytes(m, i);
    in[i] = aligned_alloc(16, ((size_t)bytes + 31) & ~(size_t)15);
    ck_assert(kiln_module_parameter_leaf_type(m, i, &t));
    gen_fill(seed * 31u + (unsigned)i, t.dtype, bytes, wild, in[i]);
    if (change_parameter) change_parameter(m, i, seed, in[i]);
  }
}

// With room behind each result that must stay as it is.
static void fill_buffers(const kiln_module *m, unsigned seed, buffers *b) {
  *b = (buffers){0};
  fill_parameters(m, seed, seed % 2, b->in);
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) {
    size_t all = ((size_t)kiln_module_result_leaf_bytes(m, i) + 31) & ~(size_t)15;
    b->out[i] = aligned_alloc(16, all);
    memset(b->out[i], 0x5a, all);
  }
}

static size_t room_of(const kiln_module *m, size_t result) {
  return ((size_t)kiln_module_result_leaf_bytes(m, result) + 31) & ~(size_t)15;
}

static void check_buffers(kiln_context *cx, const kiln_module *m, const buffers *b, unsigned seed, const char *where,
                          const char *text) {
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) {
    for (size_t k = (size_t)kiln_module_result_leaf_bytes(m, i); k < room_of(m, i); k++)
      ck_assert_msg(((uint8_t *)b->out[i])[k] == 0x5a, "seed %u writes past result %zu\n%s", seed, i, text);
  }
  kiln_mismatch x[MOST_BUFFERS];
  size_t n = 0;
  kiln_eval_params ep = {.struct_size = sizeof ep, .threads = 1};
  if (kiln_module_check(cx, m, (const void *const *)b->in, (const void *const *)b->out, x, MOST_BUFFERS, &n, &ep) !=
      KILN_OK)
    give_up(seed, "checking", cx, text);
  ck_assert_msg(n == 0, "seed %u on %s: result %zu element %lld (%lld differ): found %s, expected %s\n%.3000s", seed,
                where, x[0].result, (long long)x[0].element, (long long)x[0].count, x[0].found, x[0].expected, text);
}

static void free_buffers(buffers *b) {
  free_all(b->in);
  free_all(b->out);
}

void run_on(kiln_context *cx, const kiln_module *m, unsigned t, unsigned threads, uint32_t align, const void *const *in,
            void *const *out, const char *text) {
  const kiln_artifact *a = artifact_of(cx, m, t, align, t, text);
  kiln_kernel *k = NULL;
  kiln_run_params rp = {.struct_size = sizeof rp, .threads = threads};
  if (t != HOST)
    gpu_sim_run(cx, a, in, out, 0);
  else if (kiln_kernel_load(cx, a, &k) != KILN_OK || kiln_kernel_run(cx, k, in, out, &rp) != KILN_OK)
    give_up(t, "running", cx, text);
  kiln_kernel_destroy(&k);
}

static void run_artifact(kiln_context *cx, const kiln_artifact *a, const void *const *in, void *const *out,
                         unsigned seed, const char *text) {
  kiln_kernel *k = NULL;
  if (strcmp(kiln_artifact_manifest(a)->target, "host") != 0)
    gpu_sim_run(cx, a, in, out, 0);
  else if (kiln_kernel_load(cx, a, &k) != KILN_OK || kiln_kernel_run(cx, k, in, out, NULL) != KILN_OK)
    give_up(seed, "running", cx, text);
  kiln_kernel_destroy(&k);
}

unsigned pairs_of(const kiln_artifact *a) {
  const kiln_manifest *f = kiln_artifact_manifest(a);
  unsigned all = 0;
  for (size_t i = 0; i < f->parameter_count; i++)
    if (f->slots[i].alias != KILN_NO_SLOT) all |= 1u << i;
  return all;
}

void run_in_place_and_check(kiln_context *cx, const kiln_module *m, const kiln_artifact *a, unsigned shared,
                            unsigned seed, const char *text) {
  const kiln_manifest *f = kiln_artifact_manifest(a);
  buffers as_was = {0}, b = {0};
  void *results[MOST_BUFFERS];
  fill_parameters(m, seed, false, as_was.in);
  fill_parameters(m, seed, false, b.in);
  for (size_t i = 0; i < f->result_count; i++) {
    uint32_t with = f->slots[f->parameter_count + i].alias;
    b.out[i] = aligned_alloc(16, room_of(m, i));
    memset(b.out[i], 0x5a, room_of(m, i));
    results[i] = with != KILN_NO_SLOT && shared >> with & 1 ? b.in[with] : b.out[i];
  }
  run_artifact(cx, a, (const void *const *)b.in, results, seed, text);
  kiln_mismatch x[MOST_BUFFERS];
  size_t n = 0;
  if (kiln_module_check(cx, m, (const void *const *)as_was.in, (const void *const *)results, x, MOST_BUFFERS, &n, NULL))
    give_up(seed, "checking", cx, text);
  ck_assert_msg(n == 0, "on %s, %x shared: result %zu element %lld: found %s, expected %s\n%s", f->target, shared,
                x[0].result, (long long)x[0].element, x[0].found, x[0].expected, text);
  for (size_t i = 0; i < f->parameter_count; i++)
    ck_assert_msg(shared >> i & 1 || memcmp(b.in[i], as_was.in[i], (size_t)kiln_module_parameter_leaf_bytes(m, i)) == 0,
                  "parameter %zu has changed\n%s", i, text);
  free_buffers(&as_was);
  free_buffers(&b);
}

void run_and_check(kiln_context *cx, kiln_module *m, unsigned seed, const char *text) {
  buffers b;
  fill_buffers(m, seed, &b);
  run_on(cx, m, HOST, 1 + seed % 2, 0, (const void *const *)b.in, b.out, text);
  check_buffers(cx, m, &b, seed, "host", text);
  free_buffers(&b);
}

void run_gpu_and_check(kiln_context *cx, const kiln_module *m, unsigned t, unsigned seed, const char *text) {
  buffers b;
  fill_buffers(m, seed, &b);
  run_on(cx, m, t, 1, 0, (const void *const *)b.in, b.out, text);
  check_buffers(cx, m, &b, seed, targets[t], text);
  free_buffers(&b);
}

void run_both_and_check(kiln_context *cx, const kiln_module *m, unsigned t, unsigned seed, const char *text) {
  buffers b, gpu;
  bool order_shows = !deterministic && strstr(text, " scatter(");
  gpu_sim_order_shows = order_shows;
  fill_buffers(m, seed, &b);
  fill_buffers(m, seed, &gpu);
  run_on(cx, m, HOST, 1 + seed % 2, 0, (const void *const *)b.in, b.out, text);
  run_on(cx, m, t, 1, 0, (const void *const *)gpu.in, gpu.out, text);
  gpu_sim_order_shows = false;
  check_buffers(cx, m, &b, seed, "host", text);
  bool same = true;
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) {
    kiln_array_type type;
    ck_assert(kiln_module_result_leaf_type(m, i, &type));
    same &= memcmp(b.out[i], gpu.out[i], room_of(m, i)) == 0;
    ck_assert_msg(order_shows || same_bits(type.dtype, b.out[i], gpu.out[i], room_of(m, i)),
                  "seed %u: result %zu has other bits on %s than on the host\n%.3000s", seed, i, targets[t], text);
  }
  if (!same) check_buffers(cx, m, &gpu, seed, targets[t], text);
  free_buffers(&b);
  free_buffers(&gpu);
}

void evaluates_as(kiln_context *cx, const kiln_module *m, const kiln_module *other, unsigned seed, const char *text) {
  buffers b;
  kiln_eval_params ep = {.struct_size = sizeof ep, .threads = 1};
  fill_buffers(m, seed, &b);
  if (kiln_module_eval(cx, m, (const void *const *)b.in, b.out, &ep) != KILN_OK) give_up(seed, "evaluating", cx, text);
  check_buffers(cx, other, &b, seed, "the evaluator", text);
  free_buffers(&b);
}

// --- run-time counts ----------------------------------------------------------------------------------------------

static size_t bytes_of(const kiln_slot *s, int64_t elements) {
  return (size_t)(elements * kiln_dtype_bits(s->type.dtype) + 7) / 8;
}

static int64_t elements_of(const kiln_slot *s) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s->type.rank; d++) n *= s->type.dims[d];
  return n;
}

// Runs the first `count` elements alone: what lies behind them is other data, and none of it may be seen or written.
// The results take the place of the same elements of `b`, which are right for the whole.
static void run_prefix(kiln_context *cx, const kiln_artifact *a, int64_t count, unsigned seed, buffers *b,
                       const char *text) {
  const kiln_manifest *f = kiln_artifact_manifest(a);
  int64_t rows = count / f->count_unit;
  buffers part = {0};
  for (size_t i = 0; i < f->parameter_count; i++) {
    int64_t n = elements_of(&f->slots[i]);
    size_t all = bytes_of(&f->slots[i], n),
           known = bytes_of(&f->slots[i], f->slots[i].counted ? rows * f->slots[i].row : n);
    part.in[i] = aligned_alloc(16, (all + 31) & ~(size_t)15);
    memset(part.in[i], 0x7b, (all + 31) & ~(size_t)15);
    memcpy(part.in[i], b->in[i], known);
  }
  for (size_t i = 0; i < f->result_count; i++) {
    const kiln_slot *s = &f->slots[f->parameter_count + i];
    size_t all = (bytes_of(s, elements_of(s)) + 31) & ~(size_t)15;
    part.out[i] = aligned_alloc(16, all);
    memset(part.out[i], 0x5a, all);
  }
  kiln_kernel *k = NULL;
  kiln_run_params rp = {.struct_size = sizeof rp, .threads = 1, .count = count};
  if (strcmp(f->target, "host") != 0)
    gpu_sim_run(cx, a, (const void *const *)part.in, part.out, count);
  else if (kiln_kernel_load(cx, a, &k) != KILN_OK ||
           kiln_kernel_run(cx, k, (const void *const *)part.in, part.out, &rp) != KILN_OK)
    give_up(seed, "running a part", cx, text);
  for (size_t i = 0; i < f->result_count; i++) {
    const kiln_slot *s = &f->slots[f->parameter_count + i];
    size_t known = bytes_of(s, rows * s->row), all = bytes_of(s, elements_of(s));
    memcpy(b->out[i], part.out[i], known);
    for (size_t at = known; at < all; at++)
      ck_assert_msg(((uint8_t *)part.out[i])[at] == 0x5a, "seed %u writes behind %lld elements of result %zu\n%.3000s",
                    seed, (long long)count, i, text);
  }
  kiln_kernel_destroy(&k);
  free_all(part.in);
  free_all(part.out);
}

bool run_parts_and_check(kiln_context *cx, const kiln_module *m, unsigned t, unsigned seed, const char *text) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = "host"};
  kiln_artifact *whole = NULL, *part = NULL, *gpu = NULL;
  kiln_kernel *k = NULL;
  buffers b;
  if (kiln_compile(cx, m, &p, &whole) != KILN_OK) give_up(seed, "compiling for host", cx, text);
  p.max_count = 1 << 22;
  bool can = kiln_compile(cx, m, &p, &part) == KILN_OK;
  kiln_diagnostics_clear(cx);
  if (can) {
    p.target = targets[t];
    if (kiln_compile(cx, m, &p, &gpu) != KILN_OK) give_up(seed, "compiling with a count", cx, text);
    const kiln_manifest *f = kiln_artifact_manifest(part);
    int64_t rows = elements_of(&f->slots[f->parameter_count]) / f->count_unit;
    if (kiln_kernel_load(cx, whole, &k) != KILN_OK) give_up(seed, "loading", cx, text);
    fill_buffers(m, seed, &b);
    if (kiln_kernel_run(cx, k, (const void *const *)b.in, b.out, NULL) != KILN_OK) give_up(seed, "running", cx, text);
    run_prefix(cx, part, (rows + 1) / 2 * f->count_unit, seed, &b, text);
    run_prefix(cx, gpu, (rows + 2) / 3 * f->count_unit, seed, &b, text);
    check_buffers(cx, m, &b, seed, "parts", text);
    free_buffers(&b);
  }
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&whole);
  kiln_artifact_destroy(&part);
  kiln_artifact_destroy(&gpu);
  return can;
}

void batch_add(batch *b, unsigned t, kiln_context *cx, const kiln_module *m, unsigned number, const char *text) {
  const kiln_artifact *a = compiled_for(cx, m, t, number, text);
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
  check_ptx(ptx, number);
  if (ptxas_path() && kiln_artifact_manifest(a)->launches[0].grid[0]) add_ptx(&b[t], ptx, number);
  if (b[t].kernels == BATCH) assemble(&b[t], targets[t]);
}

// --- all inputs -----------------------------------------------------------------------------------------------------

int64_t wrong_of_all_16_bit(kiln_context *cx, const char *text, int flip, kiln_mismatch *x) {
  enum { ALL = 65536 };
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_kernel *k = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = "host"};
  uint16_t *in = malloc(ALL * sizeof *in), *out = malloc(ALL * sizeof *out);
  const void *ins[1] = {in};
  void *outs[1] = {out};
  size_t n = 0;
  for (unsigned i = 0; i < ALL; i++) in[i] = (uint16_t)i;
  if (kiln_module_parse(cx, "all.hlo", text, strlen(text), &m) != KILN_OK) give_up(0, "parsing", cx, text);
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, "compiling for host", cx, text);
  if (kiln_kernel_load(cx, a, &k) != KILN_OK) give_up(0, "loading", cx, text);
  if (kiln_kernel_run(cx, k, ins, outs, NULL) != KILN_OK) give_up(0, "running", cx, text);
  if (flip >= 0) out[flip] ^= 1;
  if (kiln_module_check(cx, m, ins, (const void *const *)outs, x, 1, &n, NULL) != KILN_OK)
    give_up(0, "checking", cx, text);
  free(in);
  free(out);
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  return n ? x->count : 0;
}

// --- examples -----------------------------------------------------------------------------------------------------

char *example(const char *name, size_t *size) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", KL_EXAMPLES, name);
  FILE *f = fopen(path, "rb");
  ck_assert_msg(f != NULL, "cannot open %s", path);
  char *text = calloc(1, 1 << 16);
  *size = fread(text, 1, 1 << 16, f);
  fclose(f);
  return text;
}

char *compile_example(const char *name, const char *target, kiln_launch *launch) {
  size_t size;
  char *text = example(name, &size), *ptx;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = target};
  if (kiln_module_parse(cx, name, text, size, &m) != KILN_OK) give_up(0, "parsing", cx, text);
  if (kiln_compile(cx, m, &p, &a) != KILN_OK) give_up(0, target, cx, text);
  ptx = strdup(kiln_artifact_text(a, KILN_TEXT_PTX, NULL));
  if (launch) *launch = kiln_artifact_manifest(a)->launches[0];
  free(text);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  return ptx;
}

unsigned occurrences(const char *text, const char *what) {
  unsigned n = 0;
  for (const char *p = text; (p = strstr(p, what)); p += strlen(what)) n++;
  return n;
}

// --- small modules
// ----------------------------------------------------------------------------------------------------

void check_small(const small *r, unsigned number) {
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sbf(&b, "HloModule fusion\nf {\n a = %s[] parameter(0)\n b = %s[] parameter(1)\n ROOT r = %s[] add(a, b)\n}\n",
         r->type, r->type, r->type);
  kl_sb_puts(&b, r->text);
  if (kiln_module_parse(cx, "small.hlo", b.p, b.n, &m) != KILN_OK) give_up(number, r->what, cx, b.p);
  for (unsigned i = 0; i < 2; i++) {
    deterministic = true;
    run_both_and_check(cx, m, i ? 3 : 1, i, b.p);
  }
  batch batches[TARGETS];
  batches_init(batches, cx);
  batch_add(batches, 1 + number % (TARGETS - 1), cx, m, number, b.p);
  batches_free(batches);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
  kiln_context_destroy(&cx);
}
