// Names by their hash; each has a stack of symbols, the innermost on top. A run stands under its prefix, told from a
// plain name by the seed of its hash. Beside each name that ends in digits, marks stand under its possible prefixes
// with the least number seen there, so that a run declared later finds those it would declare again.
#include "sim/ptx/names.h"

enum { PLAIN = 1, RUN = 2, MARK = 3, MOST_DIGITS = 10 };

void kl_ptx_names_init(kl_ptx_names *t, kl_ctx *cx) {
  *t = (kl_ptx_names){.cx = cx};
}

void kl_ptx_names_free(kl_ptx_names *t) {
  kl_free(t->cx, t->slots, t->nslots * sizeof *t->slots);
  VEC_FREE(t->cx, &t->symbols);
  VEC_FREE(t->cx, &t->scopes);
  *t = (kl_ptx_names){.cx = t->cx};
}

// --- slots --------------------------------------------------------------------------------------------------------

// The kind of entry is in the low bits of the hash that is kept, so that equal texts of other kinds are others.
static uint64_t hash_of(kl_str name, int what) {
  return (kl_hash(name.p, name.n, 0) & ~(uint64_t)3) | (uint64_t)what;
}

static size_t slot_of(const kl_ptx_names *t, kl_str name, uint64_t hash) {
  size_t mask = t->nslots - 1, i = (hash >> 2) & mask;
  for (; t->slots[i].hash; i = (i + 1) & mask)
    if (t->slots[i].hash == hash && kl_str_eq(t->slots[i].name, name)) break;
  return i;
}

static void grow(kl_ptx_names *t) {
  struct kl_ptx_name *old = t->slots;
  size_t n = t->nslots;
  t->nslots = n ? n * 2 : 256;
  t->slots = kl_alloc(t->cx, t->nslots * sizeof *t->slots);
  for (size_t i = 0; i < n; i++) {
    if (!old[i].hash) continue;
    size_t to = slot_of(t, old[i].name, old[i].hash);
    t->slots[to] = old[i];
    for (uint32_t s = old[i].top; s; s = t->symbols.p[s - 1].below) t->symbols.p[s - 1].slot = (uint32_t)to;
  }
  kl_free(t->cx, old, n * sizeof *old);
}

static const kl_ptx_symbol *top_of(const kl_ptx_names *t, kl_str name, int what) {
  if (!t->nslots) return NULL;
  uint32_t top = t->slots[slot_of(t, name, hash_of(name, what))].top;
  return top ? &t->symbols.p[top - 1] : NULL;
}

static void push(kl_ptx_names *t, kl_ptx_symbol s, int what) {
  if (t->n * 2 >= t->nslots) grow(t);
  uint64_t hash = hash_of(s.name, what);
  size_t i = slot_of(t, s.name, hash);
  if (!t->slots[i].hash) {
    t->slots[i] = (struct kl_ptx_name){.name = s.name, .hash = hash};
    t->n++;
  }
  s.slot = (uint32_t)i;
  s.below = t->slots[i].top;
  VEC_PUSH(t->cx, &t->symbols, s);
  t->slots[i].top = (uint32_t)t->symbols.n;
}

void kl_ptx_names_open(kl_ptx_names *t) {
  VEC_PUSH(t->cx, &t->scopes, t->symbols.n);
}

void kl_ptx_names_close(kl_ptx_names *t) {
  size_t keep = t->scopes.p[--t->scopes.n];
  while (t->symbols.n > keep) {
    kl_ptx_symbol *s = &t->symbols.p[--t->symbols.n];
    t->slots[s->slot].top = s->below;
  }
}

// --- runs ---------------------------------------------------------------------------------------------------------

// The ways to split a name into a prefix and a number without leading zeros, from the shortest number on.
typedef struct split {
  kl_str name;
  size_t prefix;
  uint64_t number, place; // of the next digit
} split;

static bool next_split(split *s) {
  while (s->prefix > 1 && s->name.n - s->prefix < MOST_DIGITS) {
    char c = s->name.p[s->prefix - 1];
    if (c < '0' || c > '9') return false;
    s->number += (uint64_t)(c - '0') * s->place;
    s->place *= 10;
    s->prefix--;
    if (c != '0' || s->name.n - s->prefix == 1) return s->number <= UINT32_MAX;
  }
  return false;
}

static split splits(kl_str name) {
  return (split){.name = name, .prefix = name.n, .place = 1};
}

// The innermost run of that prefix that reaches the number.
static const kl_ptx_symbol *run_with(const kl_ptx_names *t, kl_str prefix, uint32_t number) {
  const kl_ptx_symbol *s = top_of(t, prefix, RUN);
  while (s && s->count <= number) s = s->below ? &t->symbols.p[s->below - 1] : NULL;
  return s;
}

const kl_ptx_symbol *kl_ptx_names_find(const kl_ptx_names *t, kl_str name, uint32_t *number) {
  const kl_ptx_symbol *best = top_of(t, name, PLAIN);
  *number = 0;
  for (split s = splits(name); next_split(&s);) {
    const kl_ptx_symbol *run = run_with(t, (kl_str){name.p, s.prefix}, (uint32_t)s.number);
    if (!run || (best && run->depth <= best->depth)) continue;
    best = run;
    *number = (uint32_t)s.number;
  }
  return best;
}

// --- declaring ----------------------------------------------------------------------------------------------------

static bool is_here(const kl_ptx_names *t, const kl_ptx_symbol *s) {
  return s && s->depth == kl_ptx_names_depth(t);
}

// Is one of the names that the run declares already declared in this scope? `first` is the run's first name.
static bool run_is_here(const kl_ptx_names *t, kl_ptx_symbol s) {
  const kl_ptx_symbol *mark = top_of(t, s.name, MARK);
  return is_here(t, top_of(t, s.name, RUN)) || (is_here(t, mark) && mark->index < s.count);
}

// A run's least name has a 0 behind its prefix.
static void mark(kl_ptx_names *t, kl_str name, bool run) {
  for (split s = splits(name); next_split(&s);) {
    uint64_t number = run ? s.number * 10 : s.number;
    if (number > UINT32_MAX) return;
    kl_ptx_symbol m = {.name = {name.p, s.prefix}, .index = (uint32_t)number, .depth = kl_ptx_names_depth(t)};
    const kl_ptx_symbol *top = top_of(t, m.name, MARK);
    if (!is_here(t, top))
      push(t, m, MARK);
    else if (m.index < top->index)
      ((kl_ptx_symbol *)top)->index = m.index;
  }
}

// The text behind a run's prefix in the source is not its first name, so that one is built for a moment. Prefixes
// longer than this are declared without it: that overlaps with other prefixes go unnoticed there hurts nobody.
static bool first_of_run_is_here(kl_ptx_names *t, kl_ptx_symbol s) {
  char first[256];
  uint32_t number;
  if (s.name.n >= sizeof first) return false;
  memcpy(first, s.name.p, s.name.n);
  first[s.name.n] = '0';
  return is_here(t, kl_ptx_names_find(t, (kl_str){first, s.name.n + 1}, &number));
}

bool kl_ptx_names_add(kl_ptx_names *t, kl_ptx_symbol s) {
  uint32_t number;
  s.depth = kl_ptx_names_depth(t);
  if (s.run ? run_is_here(t, s) || first_of_run_is_here(t, s) : is_here(t, kl_ptx_names_find(t, s.name, &number)))
    return false;
  push(t, s, s.run ? RUN : PLAIN);
  mark(t, s.name, s.run);
  return true;
}
