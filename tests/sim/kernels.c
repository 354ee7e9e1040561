// CUDA kernels that nvcc compiled, each with launches of three sizes: what they leave in memory against what the same
// source does on the host. PTX is taken from tests/sim/kernels/ptx; KILN_CUDA_PTX names a folder of more, as
// tests/sim/kernels/build makes it. Each launch also runs under the checks, which find nothing.

#include "kernels/kernels.h"
#include "sim/check/checks.h"
#include "support/suite.h"

#include <stdio.h>

static const char *const folders[] = {"sm_75", "sm_80", "sm_90", "sm_75-g", "sm_80-g", "sm_90-g"};

// --- modules ------------------------------------------------------------------------------------------------------

typedef struct text {
  char *p;
  size_t n;
} text;

static bool read_text(const char *root, const char *folder, const char *file, text *out) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s/%s.ptx", root, folder, file);
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  fseek(f, 0, SEEK_END);
  out->n = (size_t)ftell(f);
  rewind(f);
  out->p = malloc(out->n + 1);
  out->n = fread(out->p, 1, out->n, f);
  fclose(f);
  return true;
}

// Does the module have the kernel? Those for newer devices are left out of older ones' PTX.
static bool has_kernel(const kl_ptx_module *m, const char *name) {
  for (uint32_t k = 0; k < m->nfuncs; k++)
    if (m->funcs[k].entry && kl_str_is(m->funcs[k].name, name)) return true;
  return false;
}

static void give_up(kiln_context *cx, const char *where, const char *what) {
  size_t n = kiln_diagnostics_count(cx);
  ck_abort_msg("%s: %s: %s", where, what, n ? kiln_diagnostics_get(cx, n - 1)->text : "");
}

// --- one launch ---------------------------------------------------------------------------------------------------

static uint64_t place(kl_memory *m, const kl_loaded *l, const kernel_buffer *b) {
  uint64_t address = 0, bytes = b->bytes;
  if (b->symbol)
    ck_assert_msg(kl_loaded_variable(l, kl_str_of(b->symbol), &address, &bytes), "no variable %s", b->symbol);
  else
    ck_assert_int_eq(kl_memory_alloc(m, bytes ? bytes : 1, KL_REGION_USER, KL_STR(""), &address), KILN_OK);
  if (b->before && b->bytes) {
    memcpy(kl_memory_at(m, address, b->bytes), b->before, b->bytes);
    kl_memory_define(m, address, b->bytes);
  }
  return address;
}

static void put_arguments(const kl_kernel *k, const kernel_case *c, const uint64_t *address, char *params) {
  for (uint32_t n = 0; n < c->narg; n++) {
    uint32_t at = 0, bytes = 0;
    kl_kernel_param(k, n, &at, &bytes);
    ck_assert_uint_le(at + bytes, 4096);
    memcpy(params + at, c->args[n].value.bytes, bytes < c->args[n].size ? bytes : c->args[n].size);
    for (uint32_t p = 0; p < c->npatch; p++)
      if (c->patches[p].arg == n) memcpy(params + at + c->patches[p].offset, &address[c->patches[p].buffer], 8);
  }
}

// What is undefined before and looked at afterwards must be written, what is not looked at need not.
static void declare(kl_checks *checks, const kernel_case *c, const uint64_t *address) {
  for (uint32_t b = 0; b < c->nbuffer; b++) {
    const kernel_buffer *one = &c->buffers[b];
    if (one->compare == KERNEL_UNSEEN)
      kl_checks_use(checks, address[b], one->bytes, KL_USE_SCRATCH);
    else if (!one->before && !one->symbol)
      kl_checks_use(checks, address[b], one->bytes, KL_USE_OUTPUT);
  }
}

static void run_checked(kiln_context *cx, const char *where, kl_memory *m, const kernel_case *c,
                        const uint64_t *address, const kl_launch *l) {
  kl_checks checks;
  kl_fault fault;
  kl_checks_init(&checks, cx, m, KL_CHECK_ALL);
  declare(&checks, c, address);
  kiln_status s = kl_checks_run(&checks, l, &fault);
  if (checks.report.found.n) {
    kl_sb text;
    const kl_found *f = &checks.report.found.p[0];
    kl_sb_init(&text, cx);
    kl_report_put(&text, f);
    ck_abort_msg("%s, size %u: line %u: %s", where, c->size, f->at.instr ? f->at.instr->at.line : 0, text.p);
  }
  if (s) give_up(cx, where, "running under checks");
  kl_checks_free(&checks);
}

static void run_case(kiln_context *cx, const char *where, text t, const kernel_case *c, bool checked) {
  kl_memory m;
  kl_loaded *l = NULL;
  kl_kernel *k = NULL;
  kl_fault fault;
  char params[4096] = {0}, message[512];
  uint64_t address[KERNEL_MAX_BUFFERS];
  kl_memory_init(&m, cx, UINT64_MAX);
  if (kl_load(cx, &m, where, (kl_str){t.p, t.n}, &l)) give_up(cx, where, "loading");
  if (kl_kernel_prepare(cx, l, kl_str_of(c->row->name), &k)) give_up(cx, where, "decoding");
  for (uint32_t b = 0; b < c->nbuffer; b++) address[b] = place(&m, l, &c->buffers[b]);
  put_arguments(k, c, address, params);
  kl_launch launch = {.kernel = k,
                      .grid = {c->grid[0], c->grid[1], c->grid[2]},
                      .block = {c->block[0], c->block[1], c->block[2]},
                      .dynamic_shared = c->dynamic_shared,
                      .params = params,
                      .cooperative = c->cooperative};
  if (c->cluster[0] * c->cluster[1] * c->cluster[2] > 1) memcpy(launch.cluster, c->cluster, sizeof launch.cluster);
  if (checked)
    run_checked(cx, where, &m, c, address, &launch);
  else if (kl_launch_run(cx, &m, &launch, &fault))
    give_up(cx, where, "running");
  for (uint32_t b = 0; b < c->nbuffer; b++)
    if (c->buffers[b].bytes)
      EXPECT(kernel_case_agrees(c, b, kl_memory_at(&m, address[b], c->buffers[b].bytes), message, sizeof message),
             "%s, size %u, buffer %u: %s", where, c->size, b, message);
  kl_unload(cx, l);
  kl_memory_free(&m);
}

static unsigned ran;

static void run_row(const kernel_row *row, const char *root, const char *folder) {
  text t = {0};
  char where[256];
  kl_ptx_module *ptx = NULL;
  if (!read_text(root, folder, row->file, &t)) return;
  kiln_context *cx = kiln_context_create(NULL);
  snprintf(where, sizeof where, "%s/%s: %s", folder, row->file, row->name);
  if (kl_ptx_parse(cx, where, (kl_str){t.p, t.n}, &ptx)) give_up(cx, where, "parsing");
  bool has = has_kernel(ptx, row->name) && ptx->sm >= row->min_sm;
  kl_ptx_free(cx, ptx);
  for (uint32_t size = 0; has && size < KERNEL_SIZES; size++) {
    kernel_case *c = kernel_case_new(row, size, false);
    ck_assert_msg(c != NULL, "%s: no expectation", where);
    run_case(cx, where, t, c, false);
    run_case(cx, where, t, c, true);
    kernel_case_free(c);
    kiln_diagnostics_clear(cx);
    ran++;
  }
  kiln_context_destroy(&cx);
  free(t.p);
}

START_TEST(does_what_the_host_does) {
  const kernel_row *row = kernel_row_at((size_t)_i);
  const char *more = getenv("KILN_CUDA_PTX");
  for (size_t k = 0; k < KL_COUNT(folders); k++) {
    run_row(row, KL_TESTS "/sim/kernels/ptx", folders[k]);
    if (more) run_row(row, more, folders[k]);
  }
}
END_TEST

// --- kernels with one mistake -------------------------------------------------------------------------------------

// Line by line a mistake is made: the line is left out, or an access goes elsewhere. Where that changes what is left in
// memory, the checks find it; but for what they cannot know:
//   stores     that leave an older value where another one belongs: of a buffer that had contents before, of shared
//              memory or an array that is written several times
//   guards     of lanes whose work repeats another one's or lands in memory that is theirs to write, with values
//   constants  that begin a register for the second time, as in loops and behind branches
typedef enum mistake { STORES, GUARDS, CONSTANTS, INDICES, MISTAKES } mistake;
static const struct {
  const char *name;
  unsigned least; // of a hundred that change the outcome, so many are found
} mistakes[MISTAKES] = {{"stores", 60}, {"guards", 50}, {"constants", 60}, {"indices", 100}};
static struct {
  unsigned tried, changed, found, told; // told: found, though the outcome is the same
} seen_mistakes[MISTAKES];

static bool begins(const char *p, const char *with) {
  return strncmp(p, with, strlen(with)) == 0;
}

// What can be done wrong in a line, or MISTAKES.
static mistake mistake_of(const char *p, size_t n) {
  const char *open = memchr(p, '[', n), *close = memchr(p, ']', n);
  if (*p == '@') return memmem(p, n, "bra", 3) ? GUARDS : MISTAKES;
  if (begins(p, "mov.") && n > 2 && p[n - 2] >= '0' && p[n - 2] <= '9')
    return memmem(p, n, ", %", 3) || memmem(p, n, ", _", 3) ? MISTAKES : CONSTANTS;
  if (begins(p, "st.") && !begins(p, "st.param")) return STORES;
  if (begins(p, "ld.") && !begins(p, "ld.param") && open && close && open[1] == '%' &&
      !memchr(open, '+', (size_t)(close - open)))
    return INDICES;
  return MISTAKES;
}

static char *with_mistake(text t, size_t begin, size_t end, mistake m) {
  static const char far[] = "+268435456";
  char *out = malloc(t.n + sizeof far);
  memcpy(out, t.p, t.n);
  out[t.n] = 0;
  if (m != INDICES) {
    memset(out + begin, ' ', end - begin);
    return out;
  }
  size_t at = (size_t)((const char *)memchr(t.p + begin, ']', end - begin) - t.p);
  memcpy(out + at, far, sizeof far - 1);
  memcpy(out + at + sizeof far - 1, t.p + at, t.n - at);
  out[t.n + sizeof far - 1] = 0;
  return out;
}

static void try_mistake(const char *ptx, const kernel_case *c, mistake kind) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_memory m;
  kl_loaded *l = NULL;
  kl_kernel *k = NULL;
  kl_fault fault;
  kl_checks checks;
  char params[4096] = {0}, message[512];
  uint64_t address[KERNEL_MAX_BUFFERS];
  bool same = true;
  kl_memory_init(&m, cx, UINT64_MAX);
  if (!kl_load(cx, &m, "mistake", kl_str_of(ptx), &l) && !kl_kernel_prepare(cx, l, kl_str_of(c->row->name), &k)) {
    for (uint32_t b = 0; b < c->nbuffer; b++) address[b] = place(&m, l, &c->buffers[b]);
    put_arguments(k, c, address, params);
    kl_launch launch = {.kernel = k,
                        .grid = {c->grid[0], c->grid[1], c->grid[2]},
                        .block = {c->block[0], c->block[1], c->block[2]},
                        .dynamic_shared = c->dynamic_shared,
                        .params = params,
                        .cooperative = c->cooperative,
                        .most_branches = 200000};
    kl_checks_init(&checks, cx, &m, KL_CHECK_ALL);
    declare(&checks, c, address);
    bool ended = kl_checks_run(&checks, &launch, &fault) == KILN_OK;
    for (uint32_t b = 0; b < c->nbuffer && ended; b++)
      if (c->buffers[b].bytes)
        same &= kernel_case_agrees(c, b, kl_memory_at(&m, address[b], c->buffers[b].bytes), message, sizeof message);
    bool found = checks.report.found.n > 0, changed = !ended || !same;
    seen_mistakes[kind].tried++;
    seen_mistakes[kind].changed += changed;
    seen_mistakes[kind].found += changed && found;
    seen_mistakes[kind].told += !changed && found;
    kl_checks_free(&checks);
  }
  kl_unload(cx, l);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
}

// Every mistake in the kernel's text, or every n-th.
static void try_mistakes(const kernel_row *row, text t, const kernel_case *c, unsigned every) {
  char head[128];
  static unsigned count;
  snprintf(head, sizeof head, ".entry %s(", row->name);
  const char *body = memmem(t.p, t.n, head, strlen(head));
  for (const char *p = body, *next; p && *p != '}' && p < t.p + t.n; p = next) {
    const char *end = memchr(p, '\n', (size_t)(t.p + t.n - p));
    if (!end) break;
    next = end + 1;
    while (*p == '\t' || *p == ' ') p++;
    mistake m = p < end ? mistake_of(p, (size_t)(end - p)) : MISTAKES;
    if (m == MISTAKES || count++ % every) continue;
    char *wrong = with_mistake(t, (size_t)(p - t.p), (size_t)(end - t.p), m);
    try_mistake(wrong, c, m);
    free(wrong);
  }
}

START_TEST(mistakes_are_found) {
  unsigned every = getenv("KILN_TEST_EXHAUSTIVE") ? 1 : 11;
  for (size_t n = 0; kernel_row_at(n); n++) {
    const kernel_row *row = kernel_row_at(n);
    text t = {0};
    if (row->min_sm > 80 || !read_text(KL_TESTS "/sim/kernels/ptx", "sm_80", row->file, &t)) continue;
    kernel_case *c = kernel_case_new(row, 0, false);
    ck_assert_ptr_nonnull(c);
    t.p[t.n] = 0;
    try_mistakes(row, t, c, every);
    kernel_case_free(c);
    free(t.p);
  }
  for (int k = 0; k < MISTAKES; k++) {
    printf("# %s: %u tried, %u change the outcome, of which %u are found; %u are told beside\n", mistakes[k].name,
           seen_mistakes[k].tried, seen_mistakes[k].changed, seen_mistakes[k].found, seen_mistakes[k].told);
    EXPECT(seen_mistakes[k].found * 100 >= seen_mistakes[k].changed * mistakes[k].least, "%s are missed",
           mistakes[k].name);
  }
}
END_TEST

START_TEST(launches_ran) {
  printf("# %u launches\n", ran);
  ck_assert_uint_gt(ran, 150);
}
END_TEST

int main(void) {
  int n = 0;
  while (kernel_row_at((size_t)n)) n++;
  return RUN_TESTS("kernels", NO_FRAME, {does_what_the_host_does, n}, {mistakes_are_found}, {launches_ran});
}
