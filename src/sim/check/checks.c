#include "sim/check/checks.h"

#include "sim/check/order.h"

static kl_check check_order(kl_checks *c, const kl_launch *l) {
  unsigned which = (c->which & KL_CHECK_RACE ? KL_ORDER_RACES : 0) | (c->which & KL_CHECK_SYNC ? KL_ORDER_SYNC : 0);
  return (kl_check){.observer = kl_order_new(c->cx, &c->report, which), .end = kl_order_free};
}

// Which bits make which check run.
static const struct {
  uint32_t bits;
  kl_check_open *open;
} checks[] = {
    {KL_CHECK_MEMORY, kl_check_beyond},
    {KL_CHECK_UNDEFINED, kl_check_values},
    {KL_CHECK_UNWRITTEN, kl_check_outputs},
    {KL_CHECK_RACE | KL_CHECK_SYNC, check_order},
};
enum { MOST_OBSERVERS = 16 };

static const struct {
  const char *name;
  uint32_t bits;
} names[] = {
    {"all", KL_CHECK_ALL},
    {"memory", KL_CHECK_MEMORY},
    {"undefined", KL_CHECK_UNDEFINED},
    {"unwritten", KL_CHECK_UNWRITTEN},
    {"race", KL_CHECK_RACE},
    {"sync", KL_CHECK_SYNC},
};

static uint32_t bits_of(kl_str name) {
  for (size_t k = 0; k < KL_COUNT(names); k++)
    if (kl_str_is(name, names[k].name)) return names[k].bits;
  return 0;
}

bool kl_checks_from_text(kl_str text, uint32_t *out) {
  *out = 0;
  for (size_t begin = 0, end; begin <= text.n; begin = end + 1) {
    for (end = begin; end < text.n && text.p[end] != ',';) end++;
    uint32_t bits = bits_of((kl_str){text.p + begin, end - begin});
    if (!bits) return false;
    *out |= bits;
  }
  return true;
}

void kl_checks_init(kl_checks *c, kl_ctx *cx, kl_memory *m, uint32_t which) {
  *c = (kl_checks){.cx = cx, .memory = m, .which = which};
}

void kl_checks_free(kl_checks *c) {
  VEC_FREE(c->cx, &c->bytes);
  kl_report_free(c->cx, &c->report);
}

void kl_checks_use(kl_checks *c, uint64_t address, uint64_t bytes, kl_use use) {
  if (bytes) VEC_PUSH(c->cx, &c->bytes, ((kl_checked_bytes){address, bytes, use}));
}

static void found_fault(kl_checks *c, const kl_fault *f) {
  kl_found found = {.kind = KL_FOUND_FAULT,
                    .fault = f->kind,
                    .at = {.func = f->func, .instr = f->instr, .calls = f->calls},
                    .spot = f->spot};
  memcpy(found.at.block, f->block, sizeof f->block);
  memcpy(found.at.thread, f->thread, sizeof f->thread);
  kl_report_add(c->cx, &c->report, &found);
}

kiln_status kl_checks_expect_nothing(kl_ctx *cx, kl_memory *m, const kl_launch *l, uint32_t which) {
  kl_checks c;
  kl_fault fault;
  kl_checks_init(&c, cx, m, which);
  kiln_status s = kl_checks_run(&c, l, &fault);
  if (s == KILN_OK && c.report.found.n) {
    const kl_found *f = &c.report.found.p[0];
    kl_sb text;
    kl_sb_init(&text, cx);
    kl_report_put(&text, f);
    s = kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE, "line %u: %s", f->at.instr ? f->at.instr->at.line : 0, text.p);
    kl_sb_free(&text);
  }
  kl_checks_free(&c);
  return s;
}

kiln_status kl_checks_run(kl_checks *c, const kl_launch *launch, kl_fault *fault) {
  kl_launch l = *launch;
  kl_check open[KL_COUNT(checks)];
  kl_observer *all[MOST_OBSERVERS];
  uint32_t n = 0;
  for (; n < l.nobservers && n < MOST_OBSERVERS - KL_COUNT(checks); n++) all[n] = l.observers[n];
  *fault = (kl_fault){0};
  c->report.kernel = l.kernel;
  for (size_t k = 0; k < KL_COUNT(checks); k++) {
    open[k] = c->which & checks[k].bits ? checks[k].open(c, &l) : (kl_check){0};
    if (open[k].observer) all[n++] = open[k].observer;
    c->no_memory |= (c->which & checks[k].bits) && !open[k].observer;
  }
  l.observers = all;
  l.nobservers = n;
  for (size_t k = 0; k < KL_COUNT(checks); k++) l.shadows |= open[k].observer && open[k].shadows;
  if (!(c->which & KL_CHECK_UNDEFINED)) kl_memory_define_all(c->memory);
  kiln_status s =
      c->no_memory ? kl_out_of_memory(c->cx, 0, "the checks of a launch") : kl_launch_run(c->cx, c->memory, &l, fault);
  c->failed = s != KILN_OK;
  if (s == KILN_E_DEVICE && fault->kind) found_fault(c, fault);
  for (size_t k = 0; k < KL_COUNT(checks); k++)
    if (open[k].observer) open[k].end(open[k].observer);
  c->bytes.n = 0;
  c->no_memory = false;
  return s;
}
