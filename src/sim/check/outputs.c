// Outputs that must be written whole: which bytes stores, atomics and copies have reached.

#include "sim/check/checks.h"
#include "sim/machine/observe.h"

typedef struct output {
  uint64_t address, bytes;
  uint64_t *written; // a bit for each byte
} output;

typedef struct outputs {
  kl_observer observer;
  kl_checks *checks;
  const kl_launch *launch;
  output *at;
  size_t n;
} outputs;

static size_t bits_bytes(const output *o) {
  return (size_t)(o->bytes / 64 + 1) * sizeof *o->written;
}

static void set_bits(uint64_t *to, uint64_t begin, uint64_t end) {
  const uint64_t from = ~(uint64_t)0 << begin % 64, until = ~(~(uint64_t)0 << end % 64); // of the first and last word
  uint64_t k = begin / 64;
  if (k == end / 64) {
    to[k] |= from & until;
    return;
  }
  for (to[k] |= from; ++k < end / 64;) to[k] = ~(uint64_t)0;
  to[k] |= until; // there is one word more than bytes fill
}

static void mark(outputs *s, uint64_t address, uint64_t bytes) {
  for (size_t k = 0; k < s->n; k++) {
    output *o = &s->at[k];
    uint64_t begin = address > o->address ? address : o->address, end = address + bytes;
    if (end > o->address + o->bytes) end = o->address + o->bytes;
    if (begin < end) set_bits(o->written, begin - o->address, end - o->address);
  }
}

static void access(kl_observer *observer, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p) {
  outputs *s = (outputs *)(void *)observer;
  (void)op;
  if (!m->store || (m->where != KL_AT_GLOBAL && m->where != KL_AT_GENERIC)) return;
  for (uint32_t left = w->x.mask; left;) {
    kl_stretch t = kl_next_stretch(p, &left);
    if (p->address[t.first] >= KL_DEVICE_MEMORY) mark(s, p->address[t.first], (uint64_t)m->bytes * m->count * t.n);
  }
}

// The first byte from `k` on that was written, or was not; o->bytes: none.
static uint64_t next_byte(const output *o, uint64_t k, bool written) {
  for (; k < o->bytes; k = (k / 64 + 1) * 64) {
    uint64_t those = (written ? o->written[k / 64] : ~o->written[k / 64]) >> k % 64;
    if (!those) continue;
    k += (uint64_t)__builtin_ctzll(those);
    return k < o->bytes ? k : o->bytes;
  }
  return o->bytes;
}

static void judge(const outputs *s, const output *o) {
  for (uint64_t k = 0, end; (k = next_byte(o, k, false)) < o->bytes; k = end) {
    end = next_byte(o, k, true);
    kl_found found = {.kind = KL_FOUND_NOT_WRITTEN,
                      .at = {.func = s->launch->kernel->func},
                      .spot = kl_spot_in_memory(s->checks->memory, s->launch, o->address + k, end - k)};
    kl_report_add(s->checks->cx, &s->checks->report, &found);
  }
}

static void release(outputs *s) {
  kl_ctx *cx = s->checks->cx;
  for (size_t k = 0; k < s->n; k++) kl_free(cx, s->at[k].written, s->at[k].written ? bits_bytes(&s->at[k]) : 0);
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
      s->at[n++] = (output){.address = c->bytes.p[k].address, .bytes = c->bytes.p[k].bytes};
  for (size_t k = 0; k < n; k++) s->at[k].written = kl_try_alloc(c->cx, bits_bytes(&s->at[k]));
  for (size_t k = 0; k < n; k++)
    if (!s->at[k].written) {
      release(s);
      return (kl_check){0};
    }
  return (kl_check){&s->observer, end, false};
}
