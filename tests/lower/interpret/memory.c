// Slots: what is read and written, element by element.

#include "machine.h"

static const kl_slot_info *slot_of(const machine *m, uint32_t slot) {
  return &m->plan->slots[slot];
}

static unsigned bits_of(const machine *m, uint32_t slot) {
  return kl_info(slot_of(m, slot)->shape->dtype)->bits;
}

// Bytes that an element has a part of.
typedef struct extent {
  int64_t first, end;
} extent;

static extent bytes_of(const machine *m, uint32_t slot, int64_t e) {
  int64_t bits = bits_of(m, slot);
  return (extent){e * bits / 8, (e * bits + bits + 7) / 8};
}

// --- shared memory --------------------------------------------------------------------------------------------------

void clear_shared(machine *m) {
  for (uint32_t i = 0; i < m->launch->shared_bytes; i++)
    m->shared[i] = (shared_byte){.slot = KL_NONE, .writer = NOBODY, .reader = NOBODY};
}

// Values of an element of which a byte was another slot's last are gone.
static void read_shared(machine *m, uint32_t slot, int64_t e, int32_t thread) {
  extent x = bytes_of(m, slot, e);
  for (int64_t i = x.first; i < x.end; i++) {
    shared_byte *b = &m->shared[slot_of(m, slot)->at + i];
    REQUIRE(m, b->slot == slot, "slot %u: element %lld is read, and nobody has written it", slot, (ll)e);
    REQUIRE(m, b->writer == thread || b->written < m->syncs,
            "slot %u: thread %d reads element %lld, thread %d writes it", slot, thread, (ll)e, b->writer);
    b->reader = b->read == m->syncs && b->reader != thread && b->reader != NOBODY ? SEVERAL : thread;
    b->read = m->syncs;
  }
}

static void write_shared(machine *m, uint32_t slot, int64_t e, int32_t thread) {
  extent x = bytes_of(m, slot, e);
  for (int64_t i = x.first; i < x.end; i++) {
    shared_byte *b = &m->shared[slot_of(m, slot)->at + i];
    REQUIRE(m, b->writer == NOBODY || b->writer == thread || b->written < m->syncs,
            "slot %u: threads %d and %d write element %lld", slot, b->writer, thread, (ll)e);
    REQUIRE(m, b->reader == NOBODY || b->reader == thread || b->read < m->syncs,
            "slot %u: thread %d writes element %lld, another reads it", slot, thread, (ll)e);
    b->slot = slot;
    b->writer = thread;
    b->written = m->syncs;
  }
}

// --- memory that a parameter and a result may share -----------------------------------------------------------------

// On the host a vector is read before it is written.
static int64_t actor(const machine *m, uint32_t thread) {
  return m->host ? m->group : m->group * m->nthreads + thread;
}

// Everybody reads what he overwrites himself, and before he does.
static void read_alias(machine *m, uint32_t slot, int64_t e, uint32_t thread) {
  uint32_t result = slot_of(m, slot)->alias;
  if (result == KL_NONE || !m->readers[result] || (m->launch->when == KL_APART && m->pairs == 1)) return;
  int64_t *reader = &m->readers[result][e], me = actor(m, thread) + 1;
  REQUIRE(m, !m->stored[result][e], "slot %u: element %lld is read, and has become a result", slot, (ll)e);
  REQUIRE(m, !*reader || *reader == me, "slot %u: element %lld is read by several, and becomes a result", slot, (ll)e);
  *reader = me;
}

static void overwrite_alias(machine *m, uint32_t slot, int64_t e, uint32_t thread) {
  if (!m->readers[slot] || (m->launch->when == KL_APART && m->pairs == 1)) return;
  int64_t reader = m->readers[slot][e];
  REQUIRE(m, !reader || reader == actor(m, thread) + 1, "slot %u: element %lld is written, and another reads it", slot,
          (ll)e);
}

// --- elements -------------------------------------------------------------------------------------------------------

static uint64_t of_constant(const kl_slot_info *s, int64_t e) {
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

// `wanted`: not in the place of what is off a guard.
static uint64_t read_element(machine *m, uint32_t slot, int64_t e, uint32_t thread, bool wanted) {
  const kl_slot_info *s = slot_of(m, slot);
  REQUIRE(m, e >= 0 && e < length_of(m, s), "slot %u: element %lld is read", slot, (ll)e);
  switch (s->kind) {
  case KL_SLOT_IN:
    if (wanted) read_alias(m, slot, e, thread);
    return of_parameter(slot, e);
  case KL_SLOT_CONST: return of_constant(s, e);
  case KL_SLOT_SHARED: read_shared(m, slot, e, (int32_t)thread); return m->elements[slot][e];
  case KL_SLOT_SCRATCH:
    if (!m->elements[slot]) return 0;
    REQUIRE(m, m->stored[slot][e], "slot %u: element %lld is read, and nobody has written it", slot, (ll)e);
    if (m->stored[slot][e] == 1 + (m->launch - m->plan->launches) && m->others) {
      int64_t of = m->launch->cluster;
      REQUIRE(m, m->writers[slot][e] / of == m->group / of && m->met_before[slot][e] < m->met,
              "slot %u: element %lld is read, and a block has written it that has not met this one since", slot, (ll)e);
    } else if (m->stored[slot][e] == 1 + (m->launch - m->plan->launches))
      REQUIRE(m, m->last != NOT && m->arrived[m->writers[slot][e]] == m->last,
              "slot %u: element %lld is read, and a block has written it that does not come before", slot, (ll)e);
    return m->elements[slot][e];
  case KL_SLOT_OUT: return element_now(m, slot, e);
  }
  broken(m, "slot %u is read", slot);
}

static void write_element(machine *m, uint32_t slot, int64_t e, uint32_t thread, uint64_t value) {
  if (slot_of(m, slot)->kind == KL_SLOT_SHARED) {
    write_shared(m, slot, e, (int32_t)thread);
  } else if (m->stored[slot]) {
    REQUIRE(m, !m->stored[slot][e], "slot %u: element %lld is written twice", slot, (ll)e);
    overwrite_alias(m, slot, e, thread);
    if (m->writers[slot]) m->met_before[slot][e] = m->met;
    if (m->writers[slot]) m->writers[slot][e] = m->last == NOT ? m->group : m->no_group;
    m->stored[slot][e] = (uint8_t)(1 + (m->launch - m->plan->launches));
  }
  if (m->elements[slot]) m->elements[slot][e] = value;
}

// --- accesses -------------------------------------------------------------------------------------------------------

// An access by a thread, or on the host by all lanes: what its elements are numbered by.
typedef struct access {
  const kl_access *a;
  uint32_t thread;
  kl_vars vars;
} access;

// Element i of all: the point, and the thread it is of. Copies are vectors on the host: lanes are the faster.
static uint32_t element_at(const machine *m, const access *x, int64_t i, int64_t *at) {
  const kl_body *b = m->body;
  uint32_t thread = x->thread;
  if (m->host) {
    thread = (uint32_t)(i % b->width);
    i /= b->width;
  }
  memcpy(at, m->vars[thread], sizeof m->vars[thread]);
  to_point(b, x->a->regs, m->host ? KL_NONE : x->a->run, i, at);
  return thread;
}

// The first element of a chunk, and is its guard met?
static int64_t start_of(machine *m, const access *x, uint32_t chunk, bool *wanted) {
  const kl_access *a = x->a;
  int64_t at[KL_MAX_VARS];
  uint32_t thread = element_at(m, x, (int64_t)chunk * a->vec, at);
  *wanted = holds_at(m, a->guard, thread, at);
  int64_t start = *wanted ? value_at(m, a->base[chunk], thread, at) : 0;
  if (a->align)
    REQUIRE(m, start * bits_of(m, a->slot) % (a->align * 8) == 0, "slot %u: element %lld is not aligned to %u bytes",
            a->slot, (ll)start, a->align);
  return start;
}

// Bases and strides say what the expression for all elements does.
static void check_element(machine *m, const kl_access *a, uint32_t thread, const int64_t *at, int64_t e) {
  if (!a->element) return;
  int64_t right = exact_at(m, a->element, thread, at);
  REQUIRE(m, e == right, "slot %u: element %lld in the place of %lld", a->slot, (ll)e, (ll)right);
}

static void load(machine *m, uint32_t step, uint32_t thread) {
  const kl_step *s = &m->body->steps[step];
  const access x = {&s->access, thread, s->access.regs};
  for (uint32_t c = 0; c < x.a->nchunks; c++) {
    bool wanted;
    int64_t start = start_of(m, &x, c, &wanted), at[KL_MAX_VARS];
    for (uint32_t i = 0; i < x.a->vec; i++) {
      uint32_t t = element_at(m, &x, (int64_t)c * x.a->vec + i, at);
      int64_t place = (x.a->reversed ? x.a->vec - 1 - i : i) * x.a->stride;
      if (wanted) check_element(m, x.a, t, at, start + place);
      values_of(m, step, t)[of_point(m->body, s->regs, at)] = read_element(m, x.a->slot, start + place, t, wanted);
    }
  }
}

// What shares a byte with what is kept is written, too: it must be beyond the end.
static void store_chunk(machine *m, const kl_store *s, const access *x, uint32_t chunk) {
  const kl_access *a = x->a;
  unsigned bits = bits_of(m, a->slot);
  int64_t count = length_of(m, slot_of(m, a->slot)), per_byte = bits < 8 ? 8 / bits : 1, at[KL_MAX_VARS];
  uint32_t first = element_at(m, x, (int64_t)chunk * a->vec, at);
  if (!holds_at(m, s->keep, first, at)) return;
  bool wanted;
  int64_t start = start_of(m, x, chunk, &wanted);
  for (uint32_t i = 0; i < a->vec; i++) {
    int64_t e = start + i;
    uint32_t thread = element_at(m, x, (int64_t)chunk * a->vec + i, at);
    bool kept = holds_at(m, s->keep, thread, at);
    REQUIRE(m, e >= 0 && (e < count) == kept, "slot %u: element %lld is written", a->slot, (ll)e);
    if (!kept)
      REQUIRE(m, e / per_byte == (count - 1) / per_byte, "slot %u: the byte of element %lld is written", a->slot,
              (ll)e);
    if (kept) check_element(m, a, thread, at, e);
    if (kept) write_element(m, a->slot, e, thread, operand_at(m, s->step, thread, at));
  }
}

// --- changes --------------------------------------------------------------------------------------------------------

bool changed_element(machine *m, const kl_store *s, uint32_t actor, int64_t i, int64_t *e, uint32_t *thread,
                     int64_t *at) {
  const access x = {&s->access, actor, s->access.regs};
  *thread = element_at(m, &x, i, at);
  if (!holds_at(m, s->keep, *thread, at)) return false;
  *e = value_at(m, s->access.element, *thread, at);
  REQUIRE(m, *e >= 0 && *e < slot_of(m, s->access.slot)->shape->count, "slot %u: element %lld is changed",
          s->access.slot, (ll)*e);
  return true;
}

// Of shared memory: whoever reads or writes comes before a sync or behind it, and changes are all by one op.
static uint64_t shared_now(machine *m, const kl_store *s, int64_t e, uint32_t thread) {
  uint32_t slot = s->access.slot;
  extent x = bytes_of(m, slot, e);
  REQUIRE(m, s->how == KL_STORE_COMBINE, "slot %u: element %lld is replaced in shared memory", slot, (ll)e);
  for (int64_t i = x.first; i < x.end; i++) {
    shared_byte *b = &m->shared[slot_of(m, slot)->at + i];
    REQUIRE(m, b->slot == slot, "slot %u: element %lld is changed, and nobody has written it", slot, (ll)e);
    REQUIRE(m, b->written < m->syncs || (b->writer == CHANGED && b->combine == s->combine),
            "slot %u: thread %u changes element %lld, thread %d writes it", slot, thread, (ll)e, b->writer);
    REQUIRE(m, b->reader == NOBODY || b->read < m->syncs, "slot %u: thread %u changes element %lld, another reads it",
            slot, thread, (ll)e);
    b->writer = CHANGED;
    b->combine = s->combine;
    b->written = m->syncs;
  }
  return m->elements[slot][e];
}

// What another launch has put there.
uint64_t element_now(machine *m, uint32_t slot, int64_t e) {
  const kl_slot_info *s = slot_of(m, slot);
  REQUIRE(m, s->mode == KL_MODE_UPDATE || (s->mode == KL_MODE_IN_PLACE && m->in_place), "slot %u is changed", slot);
  if (!m->elements[slot]) return 0;
  REQUIRE(m, m->stored[slot][e] || m->in_place, "slot %u: element %lld is changed, and nobody has written it", slot,
          (ll)e);
  return m->elements[slot][e];
}

void change_element(machine *m, uint32_t slot, int64_t e, uint64_t value) {
  if (m->elements[slot]) m->elements[slot][e] = value;
}

static void run_change(machine *m, const kl_store *s, uint32_t actor) {
  kl_dtype t = slot_of(m, s->access.slot)->shape->dtype;
  for (int64_t i = 0; i < (int64_t)s->access.nchunks * s->access.vec; i++) {
    int64_t e, at[KL_MAX_VARS];
    uint32_t thread;
    if (!changed_element(m, s, actor, i, &e, &thread, at)) continue;
    bool shared = slot_of(m, s->access.slot)->kind == KL_SLOT_SHARED;
    uint64_t was = shared ? shared_now(m, s, e, thread) : element_now(m, s->access.slot, e);
    uint64_t x[2] = {was, operand_at(m, s->step, thread, at)};
    bool combines = s->how == KL_STORE_COMBINE;
    change_element(m, s->access.slot, e, combines ? of_op(&(kl_plan_op){.op = s->combine}, t, t, 2, x) : x[1]);
  }
}

// On the host all lanes are where one is.
uint32_t actors(const machine *m) {
  return m->host ? 1 : m->nthreads;
}

void run_load(machine *m, uint32_t step) {
  for (uint32_t t = 0; t < actors(m); t++)
    if (m->active[t]) load(m, step, t);
}

void run_store(machine *m, const kl_store *s) {
  for (uint32_t t = 0; t < actors(m); t++) {
    const access x = {&s->access, t, s->access.regs};
    if (s->how != KL_STORE_PUT && m->active[t]) run_change(m, s, t);
    for (uint32_t c = 0; s->how == KL_STORE_PUT && m->active[t] && c < s->access.nchunks; c++) store_chunk(m, s, &x, c);
  }
}
