// Outputs that must be written whole: which bytes stores, atomics and copies have reached.

#include "sim/check/checks.h"
#include "sim/machine/observe.h"

typedef struct output {
  uint64_t address, bytes;
  uint8_t *written; // by byte
} output;

typedef struct outputs {
  kl_observer observer;
  kl_checks *checks;
  const kl_launch *launch;
  output *at;
  size_t n;
} outputs;

static void mark(outputs *s, uint64_t address, uint64_t bytes) {
  for (size_t k = 0; k < s->n; k++) {
    output *o = &s->at[k];
    if (bytes == 4 && o->bytes >= 4 && address - o->address <= o->bytes - 4) { // what most are
      memset(o->written + (address - o->address), 1, 4);
      continue;
    }
    uint64_t begin = address > o->address ? address : o->address, end = address + bytes;
    if (end > o->address + o->bytes) end = o->address + o->bytes;
    if (begin < end) memset(o->written + (begin - o->address), 1, end - begin);
  }
}

static void access(kl_observer *observer, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p) {
  outputs *s = (outputs *)(void *)observer;
  (void)op;
  if (!m->store || (m->where != KL_AT_GLOBAL && m->where != KL_AT_GENERIC)) return;
  for (unsigned i = 0; i < KL_LANES; i++)
    if ((w->x.mask >> i & 1) && p->address[i] >= KL_DEVICE_MEMORY)
      mark(s, p->address[i], (uint64_t)m->bytes * m->count);
}

static void judge(const outputs *s, const output *o) {
  for (uint64_t k = 0, n; k < o->bytes; k += n) {
    for (n = 1; k + n < o->bytes && o->written[k + n] == o->written[k];) n++;
    if (o->written[k]) continue;
    kl_found found = {.kind = KL_FOUND_NOT_WRITTEN,
                      .at = {.func = s->launch->kernel->func},
                      .spot = kl_spot_in_memory(s->checks->memory, s->launch, o->address + k, n)};
    kl_report_add(s->checks->cx, &s->checks->report, &found);
  }
}

static void release(outputs *s) {
  kl_ctx *cx = s->checks->cx;
  for (size_t k = 0; k < s->n; k++) kl_free(cx, s->at[k].written, s->at[k].written ? s->at[k].bytes : 0);
  kl_free(cx, s->at, (s->n + 1) * sizeof *s->at);
  kl_free(cx, s, sizeof *s);
}

static void end(kl_observer *observer) {
  outputs *s = (outputs *)(void *)observer;
  for (size_t k = 0; k < s->n && !s->checks->failed; k++) judge(s, &s->at[k]);
  release(s);
}

kl_check kl_check_outputs(kl_checks *c, const kl_launch *l) {
  outputs *s = kl_alloc(c->cx, sizeof *s);
  s->observer.access = access;
  s->checks = c;
  s->launch = l;
  for (size_t k = 0; k < c->bytes.n; k++) s->n += c->bytes.p[k].use == KL_USE_OUTPUT;
  s->at = kl_alloc(c->cx, (s->n + 1) * sizeof *s->at);
  size_t n = 0;
  for (size_t k = 0; k < c->bytes.n; k++)
    if (c->bytes.p[k].use == KL_USE_OUTPUT)
      s->at[n++] = (output){.address = c->bytes.p[k].address,
                            .bytes = c->bytes.p[k].bytes,
                            .written = kl_try_alloc(c->cx, c->bytes.p[k].bytes)};
  for (size_t k = 0; k < n; k++)
    if (!s->at[k].written) {
      release(s);
      return (kl_check){0};
    }
  return (kl_check){&s->observer, end, false};
}
