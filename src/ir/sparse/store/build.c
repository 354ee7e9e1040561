// From sorted records to arrays. Records are cut into pieces that threads share: the first round counts how many nodes
// begin in each, which says how large arrays are and where every piece goes on; the second writes, level by level of a
// block of records.
#include "base/threads.h"
#include "ir/sparse/store/pack.h"

enum { PIECE = 1 << 15 }; // records

typedef enum wrong_kind { W_NONE, W_SINGLETON, W_COORDINATE, W_GROUP } wrong_kind;
typedef struct wrong {
  wrong_kind kind;
  uint32_t level;
  int64_t expected, found;
} wrong;

typedef struct piece {
  int64_t first, end, batch;
  bool begins, ends;  // the batch
  int64_t before;     // batches without entries directly before this one, which it writes, too
  int64_t *nodes;     // by level: that begin in the piece; then: in those of the batch before it
  const int64_t *all; // by level: in the batch
  wrong wrong;
} piece;

// Where the writing of a piece stands in a level.
typedef struct level_state {
  int64_t nodes;   // begun, of the batch
  int64_t parent;  // of the last entry; -1: there was none
  int64_t group;   // of the last entry, counted over all parents; -1
  uint32_t slot;   // that is next in the group
  uint32_t *slots; // coordinates within the group, ascending
} level_state;

// Keys of records that follow each other.
typedef struct window {
  int64_t first, n;
  uint64_t *keys; // room for KL_BLOCK + 1
} window;

typedef struct writer {
  level_state *levels;
  window block, seen;                     // of the block that is written; of what is looked at besides
  uint64_t *values;                       // of the block
  int64_t starts[2 * KL_MOST_LEVELS + 1]; // of the batch, by buffer
  int64_t place;                          // of the last value; -1
} writer;

typedef struct builder {
  const kl_packer *p;
  const kl_store *s;
  uint32_t nlevels;
  piece *pieces;
  int64_t npieces;
  int64_t *need;    // by buffer, for each batch
  uint32_t *breaks; // by level: a node begins where records differ in a level before this one
  bool *looks;      // by level: do coordinates have to be looked at while counting?
  bool differ;      // does it matter to any level in which one records differ? Else a node begins with each
  uint64_t implicit[KL_VALUE_WORDS];
  writer *writers;
} builder;

// --- keys -----------------------------------------------------------------------------------------------------------

static const uint64_t *look_at(const builder *b, window *w, int64_t first, int64_t n, uint64_t *values) {
  int64_t before = first > 0;
  uint32_t words = b->p->form.words;
  w->first = first - before;
  w->n = n + before;
  if (before) kl_records_read(&b->p->r, first - 1, 1, w->keys, NULL);
  kl_records_read(&b->p->r, first, n, w->keys + before * words, values);
  return w->keys + before * words;
}

// The key of record k, behind that of the one before it; valid until another is asked for. Walks either way look at
// most keys once.
static const uint64_t *key_at(const builder *b, window *w, int64_t k) {
  if (k < w->first + (k > 0) || k >= w->first + w->n) {
    int64_t first = k < w->first + 1 ? k - KL_BLOCK + 1 : k, n = b->p->r.n - first;
    if (first < 0) first = 0, n = k + 1;
    look_at(b, w, first, n < KL_BLOCK ? n : KL_BLOCK, NULL);
  }
  return w->keys + (k - w->first) * b->p->form.words;
}

static int64_t field_at(const builder *b, window *w, uint32_t l, int64_t k) {
  return kl_field_get(b->p, key_at(b, w, k), l);
}

// --- groups ---------------------------------------------------------------------------------------------------------

static int64_t groups_of(const builder *b, uint32_t l) {
  int64_t size = b->s->l->binding.levels[l].size, m = b->s->e->levels[l].m;
  return size / m + (size % m != 0);
}

// Is record k in another group than the one before, which is of the same batch?
static bool begins_group(const builder *b, window *w, uint32_t l, int64_t k) {
  const uint64_t *key = key_at(b, w, k);
  uint32_t d = kl_first_difference(b->p, key);
  int64_t m = b->s->e->levels[l].m;
  if (d != l) return d < l;
  return kl_field_get(b->p, key, l) / m != kl_field_get(b->p, key - b->p->form.words, l) / m;
}

// The slots of the group that begins with record k: the coordinates that entries have, and the smallest others,
// ascending. Behind the last record: no entries.
static wrong open_group(const builder *b, window *w, uint32_t l, int64_t k, uint32_t *slots) {
  const kl_level *at = &b->s->e->levels[l];
  unsigned bits = b->s->of[l].crd_bits;
  int64_t used = 0, slot = 0, last = k;
  for (; last < b->p->r.n && (last == k || !begins_group(b, w, l, last)); last++)
    used += last == k || kl_first_difference(b->p, key_at(b, w, last)) == l;
  if (used > at->n) return (wrong){W_GROUP, l, 0, used};
  int64_t fill = at->n - used;
  for (int64_t c = 0; c < at->m && slot < at->n; c++) {
    bool mine = false;
    for (; k < last && field_at(b, w, l, k) % at->m == c; k++) mine = true;
    if (!mine && fill-- <= 0) continue;
    if (bits < 64 && c >> bits) return (wrong){W_COORDINATE, l, bits, c};
    slots[slot++] = (uint32_t)c;
  }
  return (wrong){W_NONE};
}

static void put_group(const builder *b, const writer *w, uint32_t l, int64_t group, const uint32_t *slots) {
  const kl_level_arrays *a = &b->s->of[l];
  int64_t n = b->s->e->levels[l].n;
  for (int64_t i = 0; i < n; i++)
    kl_bits_set(b->s->arrays[a->coordinates].data, a->crd_bits, w->starts[a->coordinates] + group * n + i, slots[i]);
}

// Groups without entries.
static void put_empty_groups(const builder *b, writer *w, uint32_t l, int64_t begin, int64_t end) {
  uint32_t *slots = w->levels[l].slots;
  if (begin < end) open_group(b, &w->seen, l, b->p->r.n, slots);
  for (; begin < end; begin++) put_group(b, w, l, begin, slots);
}

// --- counting -------------------------------------------------------------------------------------------------------

// In which level record k of the piece is another than the one before.
static uint32_t difference(const builder *b, const piece *q, int64_t k, const uint64_t *key) {
  return k == q->first && q->begins ? b->s->nbatch : kl_first_difference(b->p, key);
}

static void note(piece *q, wrong w) {
  if (!q->wrong.kind) q->wrong = w;
}

// What may be wrong with a level's coordinates.
static void look(const builder *b, writer *w, piece *q, uint32_t l) {
  unsigned bits = b->s->of[l].crd_bits;
  for (int64_t k = q->first; k < q->end && !q->wrong.kind; k++) {
    if (b->s->e->levels[l].format != KILN_LEVEL_STRUCTURED) {
      int64_t v = field_at(b, &w->seen, l, k);
      if (bits < 64 && v >> bits) note(q, (wrong){W_COORDINATE, l, bits, v});
    } else if (k == 0 || begins_group(b, &w->seen, l, k)) {
      note(q, open_group(b, &w->seen, l, k, w->levels[l].slots));
    }
  }
}

// Two entries of a unique level that a singleton follows.
static void look_at_singleton(const builder *b, writer *w, piece *q, uint32_t l) {
  for (int64_t k = q->first; k < q->end; k++) {
    const uint64_t *key = key_at(b, &w->seen, k);
    if (difference(b, q, k, key) == l)
      note(q, (wrong){W_SINGLETON, l, kl_field_get(b->p, key - b->p->form.words, l), kl_field_get(b->p, key, l)});
  }
}

static void count_differences(const builder *b, writer *w, const piece *q, int64_t *begin) {
  for (int64_t at = q->first, n; at < q->end; at += n) {
    n = q->end - at < KL_BLOCK ? q->end - at : KL_BLOCK;
    const uint64_t *keys = look_at(b, &w->block, at, n, NULL);
    for (int64_t i = 0; i < n; i++) begin[difference(b, q, at + i, keys + i * b->p->form.words)]++;
  }
}

static void count_piece(const builder *b, writer *w, piece *q) {
  int64_t begin[KL_MOST_LEVELS + 1] = {0}, n = 0;
  if (b->differ) count_differences(b, w, q, begin);
  for (uint32_t l = b->s->nbatch, d = b->s->nbatch; l < b->nlevels; l++) {
    const kl_level *at = &b->s->e->levels[l];
    if (at->format == KILN_LEVEL_SINGLETON && begin[l] && b->breaks[b->s->of[l].head] <= l)
      look_at_singleton(b, w, q, l);
    if (b->looks[l]) look(b, w, q, l);
    if (!sp_is_compressed(at)) continue;
    for (; d < b->breaks[l]; d++) n += begin[d];
    q->nodes[l] = b->differ ? n : q->end - q->first;
  }
}

static void count_pieces(void *arg, uint32_t worker, int64_t first, int64_t end) {
  const builder *b = arg;
  for (int64_t i = first; i < end; i++) count_piece(b, &b->writers[worker], &b->pieces[i]);
}

static kiln_status report(const builder *b, wrong w) {
  const kl_level *at = &b->s->e->levels[w.level];
  kl_ctx *cx = b->s->cx;
  switch (w.kind) {
  case W_SINGLETON:
    return kl_invalid(cx, KL_NOWHERE,
                      "level %u: expected one coordinate for each entry of the level before, which is unique, found "
                      "%lld and %lld",
                      w.level, (long long)w.expected, (long long)w.found);
  case W_COORDINATE:
    return kl_invalid(cx, KL_NOWHERE, "level %u: expected a coordinate of %lld bits, found %lld", w.level,
                      (long long)w.expected, (long long)w.found);
  case W_GROUP:
    return kl_invalid(cx, KL_NOWHERE, "level %u: expected at most %lld of %lld consecutive entries, found %lld",
                      w.level, (long long)at->n, (long long)at->m, (long long)w.found);
  default: return KILN_OK;
  }
}

// --- sizes ----------------------------------------------------------------------------------------------------------

// Of a level's arrays in one batch, where the level before has so many entries; -1: beyond 64 bits.
typedef struct sizes {
  int64_t positions, coordinates;
  int64_t entries;
} sizes;

static int64_t times(int64_t a, int64_t n) {
  return a < 0 || __builtin_mul_overflow(a, n, &a) ? -1 : a;
}

static sizes sizes_of(const builder *b, uint32_t l, int64_t before, int64_t nodes) {
  const kl_level *at = &b->s->e->levels[l];
  int64_t columns = b->s->of[l].columns, n;
  switch (at->format) {
  case KILN_LEVEL_DENSE: return (sizes){.entries = times(before, b->s->l->binding.levels[l].size)};
  case KILN_LEVEL_STRUCTURED:
    n = times(times(before, groups_of(b, l)), at->n);
    return (sizes){.coordinates = n, .entries = n};
  case KILN_LEVEL_SINGLETON: return (sizes){.coordinates = times(before, columns), .entries = before};
  case KILN_LEVEL_LOOSE_COMPRESSED: return (sizes){times(before, 2), times(nodes, columns), nodes};
  default: return (sizes){before == INT64_MAX ? -1 : before + 1, times(nodes, columns), nodes};
  }
}

static kiln_status need(builder *b, int32_t buffer, int64_t n) {
  if (n < 0) return kl_unsupported(b->s->cx, KL_NOWHERE, "arrays of more elements than 64 bits count");
  if (buffer >= 0 && n > b->need[buffer]) b->need[buffer] = n;
  return KILN_OK;
}

// What arrays a batch needs whose levels have so many nodes.
static kiln_status measure(builder *b, const int64_t *nodes) {
  int64_t places = 1;
  for (uint32_t l = b->s->nbatch; l < b->nlevels; l++) {
    const kl_level *at = &b->s->e->levels[l];
    const kl_level_arrays *a = &b->s->of[l];
    sizes z = sizes_of(b, l, places, nodes[l]);
    if (z.entries < 0) return kl_unsupported(b->s->cx, KL_NOWHERE, "a level of more entries than 64 bits count");
    KL_TRY(need(b, a->positions, z.positions));
    KL_TRY(need(b, a->coordinates, z.coordinates));
    places = z.entries;
    if (at->format == KILN_LEVEL_STRUCTURED && places && a->crd_bits < 64 && (at->n - 1) >> a->crd_bits)
      return report(b, (wrong){W_COORDINATE, l, a->crd_bits, at->n - 1});
    if (sp_is_compressed(at) && a->pos_bits < 64 && places >> a->pos_bits)
      return kl_invalid(b->s->cx, KL_NOWHERE, "level %u: expected a position of %u bits, found %lld", l, a->pos_bits,
                        (long long)places);
  }
  return need(b, (int32_t)b->s->nbuffers - 1, places);
}

// Nodes of pieces become those before them; arrays' sizes.
static kiln_status add_up(builder *b) {
  int64_t *all = NULL;
  for (int64_t i = 0; i < b->npieces; i++) KL_TRY(report(b, b->pieces[i].wrong));
  for (int64_t i = 0, first = 0; i < b->npieces; i++) {
    piece *q = &b->pieces[i];
    if (q->begins) {
      first = i;
      all = kl_arena_try_alloc(b->p->arena, b->nlevels * sizeof *all + 1);
      if (!all) return kl_out_of_memory(b->s->cx, b->nlevels * sizeof *all, "counts of entries");
    }
    for (uint32_t l = 0; l < b->nlevels; l++) {
      int64_t own = q->nodes[l];
      q->nodes[l] = all[l];
      all[l] += own;
    }
    if (!q->ends) continue;
    for (int64_t j = first; j <= i; j++) b->pieces[j].all = all;
    KL_TRY(measure(b, all));
  }
  return KILN_OK;
}

// --- writing --------------------------------------------------------------------------------------------------------

typedef struct block {
  int64_t n;
  const uint64_t *keys;
  uint32_t differ[KL_BLOCK]; // in which level, from the record before
  int64_t at[KL_BLOCK];      // place in the level that is written
  int64_t values[KL_BLOCK];  // of the level
} block;

static void put_zeros(const builder *b, const writer *w, int32_t buffer, unsigned bits, int64_t from) {
  int64_t end = b->need[buffer];
  for (; from < end; from++) kl_bits_set(b->s->arrays[buffer].data, bits, w->starts[buffer] + from, 0);
}

// Positions behind those of the last parent up to those of `next`, whose first node comes now, or which is none.
static void end_intervals(const builder *b, const writer *w, uint32_t l, int64_t next, bool none) {
  const kl_level_arrays *a = &b->s->of[l];
  const level_state *st = &w->levels[l];
  void *data = b->s->arrays[a->positions].data;
  int64_t start = w->starts[a->positions], v = st->nodes;
  if (b->s->e->levels[l].format != KILN_LEVEL_LOOSE_COMPRESSED) {
    for (int64_t i = st->parent + 1; i <= next; i++) kl_bits_set(data, a->pos_bits, start + i, (uint64_t)v);
    return;
  }
  int64_t begin = st->parent < 0 ? 0 : 2 * st->parent + 1;
  for (int64_t i = begin; i <= 2 * next - none; i++) kl_bits_set(data, a->pos_bits, start + i, (uint64_t)v);
}

static void put_coordinates(const builder *b, const writer *w, uint32_t l, uint32_t breaks, const block *k) {
  const kl_level_arrays *a = &b->s->of[l];
  void *data = b->s->arrays[a->coordinates].data;
  int64_t start = w->starts[a->coordinates] + a->column;
  if (a->crd_bits == 32 && a->columns == 1 && breaks == b->nlevels) { // a node each, one behind the other
    kl_u32 *to = (kl_u32 *)data + start + k->at[0];
    for (int64_t i = 0; i < k->n; i++) to[i] = (uint32_t)k->values[i];
    return;
  }
  for (int64_t i = 0; i < k->n; i++)
    if (k->differ[i] < breaks) kl_bits_set(data, a->crd_bits, start + k->at[i] * a->columns, (uint64_t)k->values[i]);
}

static void write_compressed(const builder *b, writer *w, uint32_t l, block *k) {
  level_state *st = &w->levels[l];
  const uint32_t breaks = b->breaks[l];
  for (int64_t i = 0; i < k->n; i++) {
    if (k->at[i] != st->parent) {
      end_intervals(b, w, l, k->at[i], false);
      st->parent = k->at[i];
    }
    st->nodes += k->differ[i] < breaks;
    k->at[i] = st->nodes - 1;
  }
  put_coordinates(b, w, l, breaks, k);
}

static void write_structured(const builder *b, writer *w, uint32_t l, int64_t first, block *k) {
  const kl_level *at = &b->s->e->levels[l];
  level_state *st = &w->levels[l];
  int64_t groups = groups_of(b, l);
  for (int64_t i = 0; i < k->n; i++) {
    int64_t group = k->at[i] * groups + k->values[i] / at->m;
    if (group != st->group) {
      put_empty_groups(b, w, l, st->group + 1, group);
      open_group(b, &w->seen, l, first + i, st->slots);
      put_group(b, w, l, group, st->slots);
      st->group = group;
      st->slot = 0;
    }
    while (st->slots[st->slot] != (uint32_t)(k->values[i] % at->m)) st->slot++;
    k->at[i] = group * at->n + st->slot;
  }
}

static void put_implicit(const builder *b, const writer *w, int64_t begin, int64_t end) {
  int64_t at = w->starts[b->s->nbuffers - 1];
  for (; begin < end; begin++) kl_values_put(b->s, at + begin, 1, b->implicit);
}

static void write_values(const builder *b, writer *w, const block *k) {
  const int64_t start = w->starts[b->s->nbuffers - 1];
  const uint32_t words = b->p->form.value_words;
  for (int64_t i = 0, n; i < k->n; i += n) { // as many at once as lie one behind the other
    put_implicit(b, w, w->place + 1, k->at[i]);
    for (n = 1; i + n < k->n && k->at[i + n] == k->at[i] + n;) n++;
    kl_values_put(b->s, start + k->at[i], n, w->values + i * words);
    w->place = k->at[i] + n - 1;
  }
}

static void write_block(const builder *b, writer *w, const piece *q, int64_t first, block *k) {
  const uint32_t words = b->p->form.words;
  k->keys = look_at(b, &w->block, first, k->n, w->values);
  for (int64_t i = 0; i < k->n; i++)
    k->differ[i] = b->differ ? difference(b, q, first + i, k->keys + i * words) : b->s->nbatch;
  memset(k->at, 0, (size_t)k->n * sizeof *k->at);
  for (uint32_t l = b->s->nbatch; l < b->nlevels; l++) {
    int64_t size = b->s->l->binding.levels[l].size;
    kl_field f = b->p->fields[l];
    for (int64_t i = 0; i < k->n; i++) k->values[i] = (int64_t)(k->keys[i * words + f.word] >> f.shift & f.mask);
    switch (b->s->e->levels[l].format) {
    case KILN_LEVEL_DENSE:
      for (int64_t i = 0; i < k->n; i++) k->at[i] = k->at[i] * size + k->values[i];
      break;
    case KILN_LEVEL_SINGLETON: put_coordinates(b, w, l, b->breaks[b->s->of[l].head], k); break;
    case KILN_LEVEL_STRUCTURED: write_structured(b, w, l, first, k); break;
    default: write_compressed(b, w, l, k);
    }
  }
  write_values(b, w, k);
}

// The batch's ends: parents and groups without entries, values of what has none, zeros behind.
static void finish(const builder *b, writer *w, const int64_t *nodes) {
  int64_t places = 1;
  for (uint32_t l = b->s->nbatch; l < b->nlevels; l++) {
    const kl_level_arrays *a = &b->s->of[l];
    sizes z = sizes_of(b, l, places, nodes[l]);
    if (b->s->e->levels[l].format == KILN_LEVEL_STRUCTURED)
      put_empty_groups(b, w, l, w->levels[l].group + 1, places * groups_of(b, l));
    if (sp_is_compressed(&b->s->e->levels[l])) end_intervals(b, w, l, places, true);
    if (a->positions >= 0) put_zeros(b, w, a->positions, a->pos_bits, z.positions);
    if (a->coordinates >= 0) put_zeros(b, w, a->coordinates, a->crd_bits, z.coordinates);
    places = z.entries;
  }
  uint64_t zero[KL_VALUE_WORDS] = {0};
  int64_t last = (int64_t)b->s->nbuffers - 1, at = w->starts[last];
  put_implicit(b, w, w->place + 1, places);
  for (int64_t i = places; i < b->need[last]; i++) kl_values_put(b->s, at + i, 1, zero);
}

static void begin(const builder *b, writer *w, int64_t batch) {
  for (uint32_t i = 0; i < b->s->nbuffers; i++) w->starts[i] = b->need[i] * batch;
  for (uint32_t l = 0; l < b->nlevels; l++) {
    level_state *st = &w->levels[l];
    st->nodes = 0;
    st->parent = st->group = -1;
  }
  w->place = -1;
}

// As if all of the batch before the piece had been written.
static void resume(const builder *b, writer *w, const piece *q) {
  int64_t at = 0;
  for (uint32_t l = b->s->nbatch; l < b->nlevels; l++) {
    const kl_level *level = &b->s->e->levels[l];
    level_state *st = &w->levels[l];
    int64_t k = q->first - 1, v = field_at(b, &w->seen, l, k);
    st->parent = at;
    st->nodes = q->nodes[l];
    switch (level->format) {
    case KILN_LEVEL_DENSE: at = at * b->s->l->binding.levels[l].size + v; break;
    case KILN_LEVEL_SINGLETON: break;
    case KILN_LEVEL_STRUCTURED:
      st->group = at * groups_of(b, l) + v / level->m;
      while (k > 0 && !begins_group(b, &w->seen, l, k)) k--;
      open_group(b, &w->seen, l, k, st->slots);
      for (st->slot = 0; st->slots[st->slot] != (uint32_t)(v % level->m);) st->slot++;
      at = st->group * level->n + st->slot;
      break;
    default: at = st->nodes - 1;
    }
  }
  w->place = at;
}

static void write_pieces(void *arg, uint32_t worker, int64_t first, int64_t end) {
  const builder *b = arg;
  writer *w = &b->writers[worker];
  block k;
  for (int64_t i = first; i < end; i++) {
    const piece *q = &b->pieces[i];
    int64_t none[KL_MOST_LEVELS] = {0};
    for (int64_t batch = q->batch - q->before; batch < q->batch; batch++) {
      begin(b, w, batch);
      finish(b, w, none);
    }
    begin(b, w, q->batch);
    if (!q->begins) resume(b, w, q);
    for (int64_t at = q->first; at < q->end; at += k.n) {
      k.n = q->end - at < KL_BLOCK ? q->end - at : KL_BLOCK;
      write_block(b, w, q, at, &k);
    }
    if (q->ends) finish(b, w, q->all);
  }
}

// --- pieces ---------------------------------------------------------------------------------------------------------

static int64_t batch_of(const builder *b, int64_t k) {
  const kl_store *s = b->s;
  int64_t batch = 0;
  for (uint32_t l = 0; l < s->nbatch; l++)
    batch = batch * s->l->binding.levels[l].size + field_at(b, &b->writers[0].seen, l, k);
  return batch;
}

// Where the batch of record k ends.
static int64_t batch_end(const builder *b, int64_t k) {
  int64_t batch = batch_of(b, k), lo = k, step = 1, hi = b->p->r.n;
  if (!b->s->nbatch) return hi;
  while (lo + step < hi && batch_of(b, lo + step) == batch) {
    lo += step;
    step *= 2;
  }
  if (lo + step < hi) hi = lo + step;
  while (hi - lo > 1) {
    int64_t mid = lo + (hi - lo) / 2;
    if (batch_of(b, mid) == batch)
      lo = mid;
    else
      hi = mid;
  }
  return hi;
}

// Pieces of a tensor's batches with entries; `out` NULL: how many.
static int64_t cut(const builder *b, piece *out) {
  int64_t n = 0, next = 0;
  for (int64_t k = 0, end; k < b->p->r.n; k = end) {
    int64_t batch = batch_of(b, k);
    end = batch_end(b, k);
    for (int64_t first = k; first < end; first += PIECE, n++) {
      int64_t last = end - first > PIECE ? first + PIECE : end;
      if (out)
        out[n] = (piece){.first = first,
                         .end = last,
                         .batch = batch,
                         .begins = first == k,
                         .ends = last == end,
                         .before = first == k ? batch - next : 0,
                         .nodes = out[n].nodes};
    }
    next = batch + 1;
  }
  return n;
}

// --- the whole ------------------------------------------------------------------------------------------------------

// Arrays become as long as they have to be; false where none has room yet.
static kiln_status set_lengths(const builder *b, bool *room) {
  const kl_store *s = b->s;
  int64_t n;
  *room = false;
  for (uint32_t i = 0; i < s->nbuffers; i++) *room |= s->arrays[i].data != NULL;
  for (uint32_t i = 0; i < s->nbuffers; i++) {
    if (__builtin_mul_overflow(b->need[i], s->batches, &n))
      return kl_unsupported(s->cx, KL_NOWHERE, "arrays of more elements than 64 bits count");
    if (*room && (s->arrays[i].count < n || (n && !s->arrays[i].data)))
      return kl_invalid(s->cx, KL_NOWHERE, "array %u: expected room for %lld elements, found %lld", i, (long long)n,
                        (long long)(s->arrays[i].data ? s->arrays[i].count : 0));
  }
  for (uint32_t i = 0; i < s->nbuffers; i++) s->arrays[i].count = b->need[i] * s->batches;
  return KILN_OK;
}

// Bits that no element has are zero. Are there arrays whose elements share bytes?
static bool shares_bytes(const builder *b) {
  kiln_sparse_buffer x;
  bool any = false;
  for (uint32_t i = 0; kiln_sparse_layout_buffer_at(b->s->l, i, &x); i++) {
    int64_t n = b->s->arrays[i].count;
    if (x.bits >= 8) continue;
    any = true;
    if (n) memset(b->s->arrays[i].data, 0, ((size_t)n * x.bits + 7) / 8);
  }
  return any;
}

static kiln_status write_all(builder *b) {
  int64_t n = 0;
  for (uint32_t i = 0; i < b->s->nbuffers; i++) n |= b->s->arrays[i].count;
  if (!n) return KILN_OK;
  uint32_t threads = shares_bytes(b) ? 1 : b->p->threads;
  kl_parallel(threads, b->npieces, 1, write_pieces, b);
  // Batches behind the last entry.
  int64_t next = b->npieces ? b->pieces[b->npieces - 1].batch + 1 : 0, none[KL_MOST_LEVELS] = {0};
  for (; next < b->s->batches; next++) {
    begin(b, b->writers, next);
    finish(b, b->writers, none);
  }
  return KILN_OK;
}

static bool open_writer(const builder *b, writer *w) {
  kl_arena *a = b->p->arena;
  size_t keys = (KL_BLOCK + 1) * (size_t)b->p->form.words;
  w->levels = kl_arena_try_alloc(a, (b->nlevels + 1u) * sizeof *w->levels);
  w->block.keys = kl_arena_try_alloc(a, keys * sizeof *w->block.keys);
  w->seen.keys = kl_arena_try_alloc(a, keys * sizeof *w->seen.keys);
  w->values = kl_arena_try_alloc(a, KL_BLOCK * b->p->form.value_words * sizeof *w->values);
  if (!w->levels || !w->block.keys || !w->seen.keys || !w->values) return false;
  for (uint32_t l = 0; l < b->nlevels; l++) {
    const kl_level *at = &b->s->e->levels[l];
    if (at->format != KILN_LEVEL_STRUCTURED) continue;
    w->levels[l].slots = kl_arena_try_alloc(a, (size_t)(at->n + 1) * sizeof(uint32_t));
    if (!w->levels[l].slots) return false;
  }
  return true;
}

static bool open_pieces(builder *b) {
  kl_arena *a = b->p->arena;
  b->npieces = cut(b, NULL);
  b->pieces = kl_arena_try_alloc(a, (size_t)b->npieces * sizeof *b->pieces + 1);
  int64_t *nodes = kl_arena_try_alloc(a, (size_t)b->npieces * b->nlevels * sizeof *nodes + 1);
  if (!b->pieces || !nodes) return false;
  for (int64_t i = 0; i < b->npieces; i++) b->pieces[i].nodes = nodes + i * b->nlevels;
  cut(b, b->pieces);
  return true;
}

static bool open_builder(builder *b) {
  kl_arena *a = b->p->arena;
  b->need = kl_arena_try_alloc(a, b->s->nbuffers * sizeof *b->need);
  b->breaks = kl_arena_try_alloc(a, (b->nlevels + 1u) * sizeof *b->breaks);
  b->looks = kl_arena_try_alloc(a, (b->nlevels + 1u) * sizeof *b->looks);
  b->writers = kl_arena_try_alloc(a, b->p->threads * sizeof *b->writers);
  if (!b->need || !b->breaks || !b->looks || !b->writers) return false;
  for (uint32_t i = 0; i < b->p->threads; i++)
    if (!open_writer(b, &b->writers[i])) return false;
  kl_value_implicit(b->s, b->implicit);
  for (uint32_t l = 0; l < b->nlevels; l++) {
    const kl_level *at = &b->s->e->levels[l];
    int64_t size = b->s->l->binding.levels[l].size;
    unsigned bits = b->s->of[l].crd_bits;
    // Where coordinates may repeat, only what agrees in all levels of the run is one node.
    b->breaks[l] = l + (at->properties & KILN_LEVEL_NONUNIQUE ? b->s->of[l].run : 1);
    b->differ |= sp_is_compressed(at) && b->breaks[l] < b->nlevels;
    b->looks[l] = at->format == KILN_LEVEL_STRUCTURED ||
                  (b->s->of[l].coordinates >= 0 && size > 0 && bits < 64 && (size - 1) >> bits);
  }
  return open_pieces(b);
}

kiln_status kl_build(kl_packer *p) {
  builder b = {.p = p, .s = p->s, .nlevels = p->s->e->nlevels};
  int64_t none[KL_MOST_LEVELS] = {0};
  bool room;
  if (!open_builder(&b)) return kl_out_of_memory(p->s->cx, (size_t)b.npieces * sizeof *b.pieces, "pieces of a tensor");
  kl_parallel(p->threads, b.npieces, 1, count_pieces, &b);
  if (!b.npieces && b.s->batches) KL_TRY(measure(&b, none));
  KL_TRY(add_up(&b));
  KL_TRY(set_lengths(&b, &room));
  return room ? write_all(&b) : KILN_OK;
}
