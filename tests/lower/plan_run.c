#include "plan_run.h"
#include "support/suite.h"

// A plan at work.
typedef struct machine {
  kl_arena *arena;
  const char *about; // for messages
  const kl_plan *p;
  const kl_body *body;
  uint64_t *vals;    // [step * lanes + lane]
  uint64_t **out;    // by slot and element
  uint8_t **touched; // by slot and element
} machine;

// The value in arithmetic of 32 bits, the way the emitter writes it: sums wrap, dividends are moved up to be unsigned.
static uint32_t in_32_bits(const machine *m, const kl_aff *e, const int64_t *vars) {
  uint32_t sum = (uint32_t)e->c;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    uint32_t x;
    EXPECT(a->kind == KL_AFF_DIM || a->kind == KL_AFF_FLOOR, "%s: an index of another kind", m->about);
    if (a->kind == KL_AFF_DIM)
      x = (uint32_t)vars[a->var];
    else {
      int64_t lo = kl_dom_interval(m->body->domain, a->arg[0]).lo, up = lo < 0 ? (-lo + a->k - 1) / a->k : 0;
      x = (in_32_bits(m, a->arg[0], vars) + (uint32_t)(up * a->k)) / (uint32_t)a->k - (uint32_t)up;
    }
    sum += (uint32_t)e->terms[i].coef * x;
  }
  return sum;
}

static int64_t value(const machine *m, const kl_aff *e, int64_t thread, int64_t lane) {
  int64_t vars[KL_VAR_COUNT] = {[KL_VAR_THREAD] = thread, [KL_VAR_LANE] = lane}, v = 0;
  kl_interval in = kl_dom_interval(m->body->domain, e);
  EXPECT(kl_aff_eval(m->p->affs, e, &(kl_point){.at = {vars}}, &v), "%s: an index without value", m->about);
  EXPECT(in.lo <= v && v <= in.hi, "%s: thread %lld, lane %lld: %lld is outside %lld..%lld", m->about, (ll)thread,
         (ll)lane, (ll)v, (ll)in.lo, (ll)in.hi);
  if (!m->p->index64)
    EXPECT((int32_t)in_32_bits(m, e, vars) == v, "%s: thread %lld: %lld does not fit 32 bits", m->about, (ll)thread,
           (ll)v);
  return v;
}

static bool holds(const machine *m, uint32_t guard, int64_t thread, int64_t lane) {
  for (; guard != KL_NONE; guard = m->body->guards[guard].outer) {
    const kl_guard *g = &m->body->guards[guard];
    EXPECT(g->outer == KL_NONE || g->outer < guard, "%s: guard %u before its outer one", m->about, guard);
    int64_t v = value(m, g->expr, thread, lane);
    if (v < g->lo || v > g->hi) return false;
  }
  return true;
}

static void check_guards(const machine *m, int64_t thread) {
  for (uint32_t i = 0; i < m->body->nguards; i++) {
    uint32_t u = m->body->guards[i].uniform;
    EXPECT(u && m->body->lanes % u == 0, "%s: guard %u for %u of %u lanes", m->about, i, u, m->body->lanes);
    for (uint32_t l = 0; l < m->body->lanes; l++)
      EXPECT(holds(m, i, thread, l) == holds(m, i, thread, l - l % u), "%s: guard %u changes in lane %u of thread %lld",
             m->about, i, l, (ll)thread);
  }
}

static unsigned bits_of(const machine *m, uint32_t slot) {
  return kl_info(m->p->slots[slot].shape->dtype)->bits;
}

// What must hold of an access at any thread.
static void check_access(const machine *m, const kl_access *a) {
  const kl_slot_info *s = &m->p->slots[a->slot];
  unsigned bits = bits_of(m, a->slot), part = kl_is_complex(s->shape->dtype) ? bits / 2 : bits;
  EXPECT(a->vec && a->vec * a->nchunks == m->body->lanes, "%s: %u chunks of %u lanes", m->about, a->nchunks, a->vec);
  EXPECT((a->align & (a->align - 1)) == 0 && a->align <= s->align, "%s: alignment %u", m->about, a->align);
  EXPECT(!a->reversed || (a->stride == 1 && a->vec > 1), "%s: reversed with stride %lld", m->about, (ll)a->stride);
  bool whole = a->stride == 1 && a->vec > 1;
  if (whole || bits >= 8) EXPECT(a->align * 8 >= (part < 8 ? 8 : part), "%s: alignment %u", m->about, a->align);
  if (whole) EXPECT(a->vec * bits % 8 == 0, "%s: %u lanes of %u bits", m->about, a->vec, bits);
  if (a->guard != KL_NONE) EXPECT(m->body->guards[a->guard].uniform >= a->vec, "%s: guard inside a chunk", m->about);
}

// First element of a chunk.
static int64_t chunk_start(const machine *m, const kl_access *a, uint32_t chunk, int64_t thread) {
  int64_t start = 0;
  if (holds(m, a->guard, thread, chunk * a->vec)) start = value(m, a->base[chunk], thread, 0);
  bool inside = false;
  EXPECT(!kl_aff_uses(a->base[chunk], KL_VAR_LANE, &inside), "%s: a base that depends on the lane", m->about);
  if (a->align)
    EXPECT(start * bits_of(m, a->slot) % (a->align * 8) == 0, "%s: element %lld is not aligned to %u bytes", m->about,
           (ll)start, a->align);
  return start;
}

static uint64_t read_element(const machine *m, uint32_t slot, int64_t e) {
  const kl_slot_info *s = &m->p->slots[slot];
  EXPECT(e >= 0 && e < s->shape->count, "%s: element %lld of slot %u is read", m->about, (ll)e, slot);
  EXPECT(s->kind != KL_SLOT_OUT, "%s: slot %u is read", m->about, slot);
  if (s->kind == KL_SLOT_IN) return of_parameter(slot, e);
  kl_dtype t = s->shape->dtype;
  unsigned bits = kl_info(t)->bits, n = kl_is_complex(t) ? 2 : 1;
  uint64_t v[2] = {0};
  for (unsigned i = 0; i < n; i++) {
    int64_t at = e * bits + i * (bits / n);
    memcpy(&v[i], (const char *)s->data + at / 8, bits / n < 8 ? 1 : bits / n / 8);
    if (bits < 8) v[i] = v[i] >> at % 8 & ((1u << bits) - 1);
  }
  return of_bits(t, v);
}

static void load(const machine *m, const kl_access *a, int64_t thread, uint64_t *lanes) {
  for (uint32_t c = 0; c < a->nchunks; c++) {
    int64_t start = chunk_start(m, a, c, thread);
    for (uint32_t i = 0; i < a->vec; i++)
      lanes[c * a->vec + i] = read_element(m, a->slot, start + (a->reversed ? a->vec - 1 - i : i) * a->stride);
  }
}

static uint64_t step_lane(const machine *m, const kl_step *s, int64_t thread, uint32_t lane) {
  uint64_t x[64];
  for (uint32_t i = 0; i < s->noperands; i++) x[i] = m->vals[s->operands[i] * m->body->lanes + lane];
  switch (s->kind) {
  case KL_STEP_SCALAR: return of_bits(s->dtype, s->bits);
  case KL_STEP_IOTA: return of_iota(s->dtype, value(m, s->expr, thread, lane));
  case KL_STEP_SPLIT: return of_part(x[0], (uint64_t)value(m, s->expr, thread, lane));
  case KL_STEP_JOIN: return of_join(s->noperands, x);
  case KL_STEP_CHOOSE:
    for (uint32_t i = 0; i + 1 < s->noperands; i++) {
      if (holds(m, s->guards[i], thread, lane)) return x[i];
    }
    return x[s->noperands - 1];
  default: return of_op(s->instr, s->noperands, x);
  }
}

static void run_store(const machine *m, const kl_store *s, int64_t thread) {
  const kl_access *a = &s->access;
  unsigned bits = bits_of(m, a->slot);
  int64_t count = m->p->slots[a->slot].shape->count, per_byte = bits < 8 ? 8 / bits : 1;
  EXPECT(m->p->slots[a->slot].kind == KL_SLOT_OUT, "%s: slot %u is written", m->about, a->slot);
  EXPECT(a->vec == 1 || (a->stride == 1 && !a->reversed), "%s: a store with stride %lld", m->about, (ll)a->stride);
  EXPECT(a->vec % per_byte == 0 && a->align, "%s: a store of parts of bytes", m->about);
  EXPECT(a->guard == KL_NONE, "%s: a store cannot go elsewhere", m->about);
  for (uint32_t c = 0; c < a->nchunks; c++) {
    if (!holds(m, s->keep, thread, c * a->vec)) continue;
    int64_t start = chunk_start(m, a, c, thread);
    for (uint32_t i = 0; i < a->vec; i++) {
      int64_t e = start + i;
      uint32_t lane = c * a->vec + i;
      bool kept = holds(m, s->keep, thread, lane);
      EXPECT(e >= 0 && (e < count) == kept, "%s: element %lld of slot %u is written", m->about, (ll)e, a->slot);
      if (!kept) EXPECT(e / per_byte == (count - 1) / per_byte, "%s: byte of element %lld is written", m->about, (ll)e);
      if (!kept) continue;
      EXPECT(!m->touched || !m->touched[a->slot][e], "%s: element %lld of slot %u is written twice", m->about, (ll)e,
             a->slot);
      if (m->touched) m->touched[a->slot][e] = 1;
      if (m->out) m->out[a->slot][e] = m->vals[s->step * m->body->lanes + lane];
    }
  }
}

static void run_thread(const machine *m, int64_t thread) {
  const kl_body *b = m->body;
  check_guards(m, thread);
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    for (uint32_t k = 0; k < s->noperands; k++)
      EXPECT(s->operands[k] < i, "%s: step %u uses step %u", m->about, i, s->operands[k]);
    if (s->kind == KL_STEP_LOAD) load(m, &s->access, thread, &m->vals[i * b->lanes]);
    for (uint32_t l = 0; s->kind != KL_STEP_LOAD && l < b->lanes; l++)
      m->vals[i * b->lanes + l] = step_lane(m, s, thread, l);
  }
  for (uint32_t i = 0; i < b->nstores; i++) run_store(m, &b->stores[i], thread);
}

static void enter_body(machine *m, const kl_body *b) {
  m->body = b;
  m->vals = KL_NEW_N(m->arena, uint64_t, b->nsteps * b->lanes + 1);
  for (uint32_t i = 0; i < b->nsteps; i++) {
    if (b->steps[i].kind == KL_STEP_LOAD) check_access(m, &b->steps[i].access);
  }
  for (uint32_t i = 0; i < b->nstores; i++) check_access(m, &b->stores[i].access);
}

// Every launched thread has work or is beyond the tail; the bodies cover the part without a gap, and parts follow one
// another.
static void check_part(const machine *m, const kl_part *p) {
  int64_t block = m->p->target.block;
  EXPECT(p->main.first == 0 && p->main.threads * p->main.lanes + p->tail.threads * p->tail.lanes >= p->count,
         "%s: the bodies do not cover %lld elements", m->about, (ll)p->count);
  if (p->tail.threads) {
    EXPECT(p->tail.first == p->main.threads * p->main.lanes, "%s: tail from %lld", m->about, (ll)p->tail.first);
    EXPECT((p->tail.threads - 1) * p->tail.lanes < p->count - p->tail.first, "%s: idle threads in the tail", m->about);
  }
  EXPECT(p->main.threads * p->main.lanes <= p->count, "%s: main reaches beyond the end", m->about);
  EXPECT(p->main.threads == p->main_blocks * block, "%s: %lld threads in %lld blocks", m->about, (ll)p->main.threads,
         (ll)p->main_blocks);
  EXPECT(p->blocks == p->main_blocks + (p->tail.threads + block - 1) / block, "%s: %lld blocks", m->about,
         (ll)p->blocks);
  for (uint32_t i = 0; i < p->main.nstores; i++)
    EXPECT(p->main.stores[i].keep == KL_NONE, "%s: bounds check in main", m->about);
}

static void check_launch(const machine *m) {
  int64_t count = 0, blocks = 0, iterations = 0;
  for (uint32_t i = 0; i < m->p->nparts; i++) {
    const kl_part *p = &m->p->parts[i];
    EXPECT(p->first_block == blocks && p->first_iteration == iterations, "%s: part %u is not in the row", m->about, i);
    check_part(m, p);
    count += p->count;
    blocks += p->blocks;
    iterations += p->main.threads;
  }
  EXPECT(count == m->p->count && blocks == m->p->grid && iterations == m->p->iterations, "%s: grid %lld", m->about,
         (ll)m->p->grid);
}

static void make_results(machine *m) {
  const kl_plan *p = m->p;
  m->out = KL_NEW_N(m->arena, uint64_t *, p->nslots + 1);
  m->touched = KL_NEW_N(m->arena, uint8_t *, p->nslots + 1);
  for (uint32_t i = 0; i < p->nslots; i++) {
    if (p->slots[i].kind != KL_SLOT_OUT) continue;
    m->out[i] = KL_NEW_N(m->arena, uint64_t, p->slots[i].shape->count + 1);
    m->touched[i] = KL_NEW_N(m->arena, uint8_t, p->slots[i].shape->count + 1);
  }
}

static void compare_results(const machine *m, const leaves *want) {
  const kl_plan *p = m->p;
  for (uint32_t r = 0; r < want->n; r++) {
    uint32_t slot = p->nargs - want->n + r;
    for (int64_t e = 0; e < p->slots[slot].shape->count; e++) {
      EXPECT(m->touched[slot][e], "%s: element %lld of result %u is not written", m->about, (ll)e, r);
      EXPECT(m->out[slot][e] == want->v[r][in_memory(p->slots[slot].shape, e)],
             "%s: element %lld of result %u comes from elsewhere", m->about, (ll)e, r);
    }
  }
}

void run_plan(kl_arena *arena, const kl_plan *p, const leaves *want, const char *about) {
  machine m = {.arena = arena, .about = about, .p = p};
  make_results(&m);
  check_launch(&m);
  for (uint32_t b = 0; b < 2 * p->nparts; b++) {
    const kl_body *body = b % 2 ? &p->parts[b / 2].tail : &p->parts[b / 2].main;
    if (body->threads) enter_body(&m, body);
    for (int64_t t = 0; t < body->threads; t++) run_thread(&m, t);
  }
  compare_results(&m, want);
}

void run_some_threads(kl_arena *arena, const kl_plan *p, const char *about) {
  machine m = {.arena = arena, .about = about, .p = p};
  check_launch(&m);
  for (uint32_t b = 0; b < 2 * p->nparts; b++) {
    const kl_body *body = b % 2 ? &p->parts[b / 2].tail : &p->parts[b / 2].main;
    if (!body->threads) continue;
    enter_body(&m, body);
    for (int64_t n = 0; n < 12; n++)
      run_thread(&m, n % 2 ? body->threads - 1 - n / 2 % body->threads : n * n * n * 7919 % body->threads);
  }
}
