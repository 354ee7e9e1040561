// From arrays to entries: the tree of levels, depth first, by blocks. The last level, or the last run of levels that
// share entries, is read whole intervals at a time; the levels before it are the same for all of an interval.
#include "ir/sparse/store/store.h"

enum { PIECES = 256, LEAST = 1 << 12 }; // pieces of a tensor; entries of one

typedef struct cursor {
  const struct kl_reading *r;
  int64_t n;                          // entries of the block
  int64_t batch;                      //
  int64_t starts[KL_MOST_LEVELS + 2]; // of this batch, by buffer
  int64_t at[KL_MOST_LEVELS];         // coordinates of the levels before the last
  int64_t **levels;                   // registers of the way back: by level its column, then scratch
  int64_t **dims;                     // by dimension
  int64_t **back;                     // registers of the way there
  uint64_t *values;
  bool *bad, *bad_back;
  kl_entry_put *put;
  void *to;
  bool ended;
} cursor;

struct kl_reading {
  const kl_store *s;
  kl_reading_params p;
  kl_columns dims, back; // dimensions by levels; levels by dimensions
  bool plain;            // levels are dimensions as they are: what is within its level is within the tensor
  uint32_t tail;         // the level whose intervals are read whole; nlevels: there is none
  uint32_t top;          // levels from nbatch to here are dense and counted as one
  int64_t top_size;      //
  int64_t of_batch;      // pieces of a batch
  uint64_t implicit[KL_VALUE_WORDS];
  cursor *cursors;
};

static uint64_t get(const cursor *c, int32_t buffer, unsigned bits, int64_t i) {
  return kl_bits_get(c->r->s->arrays[buffer].data, bits, c->starts[buffer] + i);
}

// --- blocks ---------------------------------------------------------------------------------------------------------

// Marks what is no element of the tensor, but the rest of a block: it is outside, or does not come back from its
// dimensions.
static void mark_rest(cursor *c) {
  const kl_reading *r = c->r;
  const kl_store *s = r->s;
  memcpy(c->back, c->dims, s->e->ndims * sizeof *c->back);
  for (uint32_t d = 0; d < s->e->ndims; d++) {
    int64_t size = s->l->type.sizes[d];
    for (int64_t i = 0; i < c->n; i++) c->bad[i] |= c->dims[d][i] < 0 || c->dims[d][i] >= size;
  }
  kl_columns_run(&r->back, c->n, c->back, c->bad_back);
  for (uint32_t l = 0; l < s->e->nlevels; l++) {
    if (s->l->binding.levels[l].count >= 0) continue;
    const int64_t *again = c->back[r->back.out[l]];
    for (int64_t i = 0; i < c->n; i++) c->bad[i] |= c->bad_back[i] || again[i] != c->levels[l][i];
  }
}

static void slice(cursor *c, uint32_t d) {
  kl_slice x = c->r->p.slices[d];
  int64_t *at = c->dims[d];
  for (int64_t i = 0; i < c->n; i++) {
    int64_t k = at[i] - x.offset;
    c->bad[i] |= k < 0 || k % x.stride != 0 || k / x.stride >= x.size;
    at[i] = k / x.stride;
  }
}

// Entry i becomes entry n, which is not behind it.
static void move(cursor *c, int64_t i, int64_t n) {
  uint32_t words = kl_value_words(c->r->s);
  for (uint32_t d = 0; d < c->r->s->e->ndims; d++) c->dims[d][n] = c->dims[d][i];
  for (uint32_t w = 0; w < words; w++) c->values[n * words + w] = c->values[i * words + w];
}

// Only what is not bad stays.
static void compact(cursor *c) {
  int64_t n = 0;
  while (n < c->n && !c->bad[n]) n++;
  for (int64_t i = n; i < c->n; i++)
    if (!c->bad[i]) move(c, i, n++);
  c->n = n;
}

static bool is_implicit(const cursor *c, int64_t i, uint32_t words) {
  const uint64_t *v = c->values + i * words;
  return v[0] == c->r->implicit[0] && v[words - 1] == c->r->implicit[words - 1];
}

// Only what has another value than the implicit one.
static void drop_implicit(cursor *c) {
  uint32_t words = kl_value_words(c->r->s);
  int64_t n = 0;
  while (n < c->n && !is_implicit(c, n, words)) n++;
  for (int64_t i = n; i < c->n; i++)
    if (!is_implicit(c, i, words)) move(c, i, n++);
  c->n = n;
}

static void flush(cursor *c) {
  const kl_reading *r = c->r;
  if (!c->n || c->ended) return;
  if (r->dims.nsteps || !r->plain || r->p.slices) kl_columns_run(&r->dims, c->n, c->levels, c->bad);
  if (!r->plain) mark_rest(c);
  for (uint32_t d = 0; r->p.slices && d < r->s->e->ndims; d++)
    if (r->p.slices[d].given) slice(c, d);
  if (!r->plain || r->p.slices) compact(c);
  if (!r->p.all) drop_implicit(c);
  if (c->n) c->ended |= !c->put(c->to, &(kl_entry_block){c->n, c->dims, c->values});
  c->n = 0;
}

// Room for up to n entries more, of which the levels before the tail are set.
static int64_t reserve(cursor *c, int64_t n) {
  if (c->n == KL_BLOCK) flush(c);
  if (n > KL_BLOCK - c->n) n = KL_BLOCK - c->n;
  for (uint32_t l = 0; l < c->r->tail; l++)
    for (int64_t i = 0; i < n; i++) c->levels[l][c->n + i] = c->at[l];
  return n;
}

// --- intervals ------------------------------------------------------------------------------------------------------

static int64_t slots_of(const kl_level *l, kl_level_extent x) {
  return (x.size / l->m + (x.size % l->m != 0)) * l->n;
}

// The entries of level l whose parent is entry p.
static void interval(const cursor *c, uint32_t l, int64_t p, int64_t *begin, int64_t *end) {
  const kl_store *s = c->r->s;
  const kl_level_arrays *a = &s->of[l];
  int64_t scale = s->e->levels[l].format == KILN_LEVEL_LOOSE_COMPRESSED ? 2 : 1;
  *begin = 0;
  switch (s->e->levels[l].format) {
  case KILN_LEVEL_DENSE: *end = s->l->binding.levels[l].size; return;
  case KILN_LEVEL_STRUCTURED: *end = slots_of(&s->e->levels[l], s->l->binding.levels[l]); return;
  case KILN_LEVEL_SINGLETON:
    *begin = p;
    *end = p + 1;
    return;
  default:
    *begin = (int64_t)get(c, a->positions, a->pos_bits, p * scale);
    *end = (int64_t)get(c, a->positions, a->pos_bits, p * scale + 1);
  }
}

// Coordinate and place of entry i of an interval of level l; false where a group's slot is behind the level's end.
static bool entry(cursor *c, uint32_t l, int64_t p, int64_t i, int64_t *coordinate, int64_t *place) {
  const kl_store *s = c->r->s;
  const kl_level_arrays *a = &s->of[l];
  const kl_level *at = &s->e->levels[l];
  kl_level_extent x = s->l->binding.levels[l];
  int64_t k = i;
  *place = i;
  switch (at->format) {
  case KILN_LEVEL_DENSE: *place = p * x.size + i; break;
  case KILN_LEVEL_STRUCTURED:
    *place = p * slots_of(at, x) + i;
    k = i / at->n * at->m + (int64_t)get(c, a->coordinates, a->crd_bits, *place);
    break;
  default: k = (int64_t)get(c, a->coordinates, a->crd_bits, i * a->columns + a->column);
  }
  *coordinate = k + x.lo;
  return k < x.size;
}

static void read_column(cursor *c, uint32_t l, int64_t begin, int64_t n) {
  const kl_store *s = c->r->s;
  const kl_level_arrays *a = &s->of[l];
  const void *data = s->arrays[a->coordinates].data;
  int64_t *out = c->levels[l] + c->n, lo = s->l->binding.levels[l].lo, from = c->starts[a->coordinates] + a->column;
  if (a->crd_bits == 32 && a->columns == 1)
    for (int64_t i = 0; i < n; i++) out[i] = (int64_t)((const kl_u32 *)data)[from + begin + i] + lo;
  else
    for (int64_t i = 0; i < n; i++)
      out[i] = (int64_t)kl_bits_get(data, a->crd_bits, from + (begin + i) * a->columns) + lo;
}

// Values from this place on, of the entries behind those that are there.
static void read_values(cursor *c, int64_t place, int64_t n) {
  const kl_store *s = c->r->s;
  kl_values_get(s, c->starts[s->nbuffers - 1] + place, n, c->values + c->n * kl_value_words(s));
}

static void read_tail(cursor *c, int64_t p, int64_t begin, int64_t end) {
  const kl_store *s = c->r->s;
  uint32_t l = c->r->tail;
  for (int64_t n, place; begin < end && !c->ended; begin += n) {
    n = reserve(c, end - begin);
    if (sp_is_compressed(&s->e->levels[l])) {
      for (uint32_t k = l; k < s->e->nlevels; k++) read_column(c, k, begin, n);
      read_values(c, begin, n);
      c->n += n;
      continue;
    }
    for (int64_t i = 0; i < n; i++)
      if (entry(c, l, p, begin + i, &c->levels[l][c->n], &place)) {
        read_values(c, place, 1);
        c->n++;
      }
  }
}

static void read_level(cursor *c, uint32_t l, int64_t p);

static void read_interval(cursor *c, uint32_t l, int64_t p, int64_t begin, int64_t end) {
  int64_t place;
  if (l == c->r->tail) {
    read_tail(c, p, begin, end);
    return;
  }
  for (int64_t i = begin; i < end && !c->ended; i++)
    if (entry(c, l, p, i, &c->at[l], &place)) read_level(c, l + 1, place);
}

static void read_level(cursor *c, uint32_t l, int64_t p) {
  int64_t begin, end;
  interval(c, l, p, &begin, &end);
  read_interval(c, l, p, begin, end);
}

// --- pieces ---------------------------------------------------------------------------------------------------------

static void split(int64_t part, int64_t parts, int64_t *begin, int64_t *end) {
  int64_t n = *end - *begin, base = *begin;
  *begin = base + (int64_t)((__int128)n * part / parts);
  *end = base + (int64_t)((__int128)n * (part + 1) / parts);
}

// Entries begin .. end - 1 of the leading dense levels, counted as one.
static void read_top(cursor *c, int64_t begin, int64_t end) {
  const kl_store *s = c->r->s;
  for (int64_t i = begin; i < end && !c->ended; i++) {
    int64_t rest = i;
    for (uint32_t l = c->r->top; l-- > s->nbatch; rest /= s->l->binding.levels[l].size)
      c->at[l] = rest % s->l->binding.levels[l].size + s->l->binding.levels[l].lo;
    read_level(c, c->r->top, i);
  }
}

static void read_piece(void *arg, uint32_t worker, int64_t piece, kl_entry_put *put, void *to) {
  const kl_reading *r = arg;
  const kl_store *s = r->s;
  cursor *c = &r->cursors[worker];
  int64_t batch = piece / r->of_batch, rest = batch, begin = 0, end = r->top_size;
  c->put = put;
  c->to = to;
  c->n = 0;
  c->ended = false;
  for (uint32_t b = 0; b < s->nbuffers; b++) c->starts[b] = s->arrays[b].count / s->batches * batch;
  for (uint32_t l = s->nbatch; l-- > 0; rest /= s->l->binding.levels[l].size)
    c->at[l] = rest % s->l->binding.levels[l].size + s->l->binding.levels[l].lo;
  if (r->tail == s->e->nlevels) {
    reserve(c, 1);
    read_values(c, 0, 1);
    c->n = 1;
  } else if (r->top > s->nbatch) {
    split(piece % r->of_batch, r->of_batch, &begin, &end);
    read_top(c, begin, end);
  } else {
    interval(c, r->top, 0, &begin, &end);
    split(piece % r->of_batch, r->of_batch, &begin, &end);
    read_interval(c, r->top, 0, begin, end);
  }
  flush(c);
}

// --- opening --------------------------------------------------------------------------------------------------------

static bool open_cursor(kl_arena *a, const kl_reading *r, cursor *c) {
  uint32_t nd = r->s->e->ndims, nl = r->s->e->nlevels;
  size_t scratch = kl_columns_scratch(&r->dims), back = kl_columns_scratch(&r->back);
  size_t words = KL_BLOCK * (nl + kl_value_words(r->s)) + scratch + back;
  int64_t *at = kl_arena_try_alloc(a, words * sizeof *at);
  c->r = r;
  c->levels = kl_arena_try_alloc(a, (r->dims.nregisters + 1u) * sizeof *c->levels);
  c->back = kl_arena_try_alloc(a, (r->back.nregisters + 1u) * sizeof *c->back);
  c->dims = kl_arena_try_alloc(a, (nd + 1u) * sizeof *c->dims);
  c->bad = kl_arena_try_alloc(a, 2 * KL_BLOCK * sizeof *c->bad);
  if (!at || !c->levels || !c->back || !c->dims || !c->bad) return false;
  c->bad_back = c->bad + KL_BLOCK;
  for (uint32_t l = 0; l < nl; l++, at += KL_BLOCK) c->levels[l] = at;
  c->values = (uint64_t *)at, at += KL_BLOCK * kl_value_words(r->s);
  kl_columns_open(&r->dims, at, c->levels);
  kl_columns_open(&r->back, at + scratch, c->back);
  for (uint32_t d = 0; d < nd; d++) c->dims[d] = c->levels[r->dims.out[d]];
  return true;
}

// Both ways between levels and dimensions.
static void open_ways(kl_arena *a, kl_reading *r) {
  const kl_store *s = r->s;
  const kl_aff *values[KL_MOST_LEVELS] = {NULL};
  uint32_t n = 0;
  r->plain = true;
  for (uint32_t l = 0; l < s->e->nlevels; l++) {
    if (s->l->binding.levels[l].count >= 0) continue;
    values[l] = kl_tree_aff(s->l->pool, s->e->levels[l].value);
    r->plain &= kl_aff_is_var(values[l]) != NULL;
    n++;
  }
  r->plain &= n == s->e->ndims;
  kl_columns_make(a, s->l->binding.dims, s->e->ndims, s->e->nlevels, &r->dims);
  kl_columns_make(a, values, s->e->nlevels, s->e->ndims, &r->back);
  for (uint32_t d = 0; d < s->e->ndims; d++) r->plain &= r->dims.out[d] < s->e->nlevels;
}

static void open_pieces(kl_reading *r, kl_entry_source *out) {
  const kl_store *s = r->s;
  uint32_t n = s->e->nlevels;
  int64_t stored = s->arrays[s->nbuffers - 1].count, most = PIECES, of_batch;
  r->tail = n;
  if (n > s->nbatch) r->tail = s->of[n - 1].head;
  r->top = s->nbatch;
  r->top_size = 1;
  while (r->top < r->tail && s->e->levels[r->top].format == KILN_LEVEL_DENSE &&
         !__builtin_mul_overflow(r->top_size, s->l->binding.levels[r->top].size, &of_batch)) {
    r->top_size = of_batch;
    r->top++;
  }
  if (stored / LEAST < most) most = stored / LEAST;
  r->of_batch = s->batches > 0 && most / s->batches > 1 && n > s->nbatch ? most / s->batches : 1;
  out->most = stored;
  out->pieces = s->batches * r->of_batch;
  for (uint32_t l = 0; l < n; l++)
    if (s->l->binding.levels[l].size == 0) out->pieces = 0;
  // Where there is room for no value, none is stored, however many batches there are.
  if (!stored) out->pieces = 0;
}

kiln_status kl_reading_open(kl_arena *a, const kl_store *s, const kl_reading_params *params, kl_entry_source *out) {
  kl_reading *r = KL_NEW(a, kl_reading);
  r->s = s;
  r->p = *params;
  kl_value_implicit(s, r->implicit);
  open_ways(a, r);
  *out = (kl_entry_source){.workers = params->workers, .run = read_piece, .arg = r};
  open_pieces(r, out);
  r->cursors = KL_NEW_N(a, cursor, params->workers);
  for (uint32_t i = 0; i < params->workers; i++)
    if (!open_cursor(a, r, &r->cursors[i])) return kl_out_of_memory(s->cx, sizeof(cursor), "blocks of entries");
  return KILN_OK;
}
