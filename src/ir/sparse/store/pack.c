// From entries to sorted records: level coordinates, packed into a key in the order of levels; a sort that adds
// entries of one element up; slots of levels that count.
#include "ir/sparse/store/pack.h"

enum { LEAST = 1 << 15 }; // entries that a second thread is worth

// --- keys -----------------------------------------------------------------------------------------------------------

static unsigned bits_of(int64_t size) {
  return size > 1 ? 64 - (unsigned)__builtin_clzll((uint64_t)size - 1) : 0;
}

static void add_values(const void *arg, uint64_t *sum, const uint64_t *value) {
  const kl_store *s = arg;
  kl_value_add(s->l->type.element.dtype, sum, value);
}

// Fields from the last level to the first, from the last word's low bits up; none is in two words.
static kiln_status lay_out(kl_packer *p) {
  uint32_t n = p->s->e->nlevels, word = 0;
  unsigned at = 0;
  for (uint32_t l = n; l-- > 0;) {
    unsigned bits = bits_of(p->s->l->binding.levels[l].size);
    if (at + bits > 64) {
      word++;
      at = 0;
    }
    p->fields[l] = (kl_field){word, bits ? at : 0, bits >= 64 ? UINT64_MAX : (1ull << bits) - 1};
    at += bits;
  }
  p->form.words = word + 1;
  p->form.value_words = kl_value_words(p->s);
  p->form.value_bits = kl_info(p->s->l->type.element.dtype)->bytes * 8;
  p->form.used = at;
  p->form.add = add_values;
  p->form.arg = p->s;
  uint8_t *of = kl_arena_try_alloc(p->arena, p->form.words * 64ul);
  if (!of) return kl_out_of_memory(p->s->cx, p->form.words * 64ul, "keys of entries");
  p->level_of = of;
  for (uint32_t l = 0; l < n; l++) {
    kl_field *f = &p->fields[l];
    f->word = word - f->word; // the first is the most significant
    for (unsigned b = 0; b < 64 && f->mask >> b; b++) of[f->word * 64 + f->shift + b] = (uint8_t)l;
  }
  p->form.borders[p->form.nborders++] = 64;
  for (uint32_t l = 0; l < n && p->form.nborders < KL_MOST_BORDERS; l++)
    if (p->fields[l].mask) p->form.borders[p->form.nborders++] = p->fields[l].shift;
  return KILN_OK;
}

// --- records of entries ---------------------------------------------------------------------------------------------

typedef struct keying_worker {
  int64_t **registers;
  bool *bad;
  uint64_t *keys;
  bool failed;
} keying_worker;

typedef struct keying {
  const kl_packer *p;
  const kl_entry_source *from;
  kl_columns levels;
  keying_worker *workers;
  kiln_status found;
} keying;

typedef struct keying_run {
  const keying *of;
  keying_worker *w;
  kl_records_put *put;
  void *to;
} keying_run;

// The levels' coordinates of a block, in the worker's registers. False: some are beyond 64 bits.
static bool find_levels(const keying *k, keying_worker *w, const kl_entry_block *b) {
  memcpy(w->registers, b->dims, k->p->s->e->ndims * sizeof *w->registers);
  if (!k->levels.nsteps) return true;
  kl_columns_run(&k->levels, b->n, w->registers, w->bad);
  for (int64_t i = 0; i < b->n; i++) w->failed |= w->bad[i];
  return !w->failed;
}

// Adds level l's field to one word of keys, which are `words` words apart.
static void put_field(const keying *k, const keying_worker *w, uint32_t l, int64_t n, uint64_t *to, uint32_t words) {
  const kl_store *s = k->p->s;
  const int64_t *v = w->registers[k->levels.out[l]];
  const unsigned shift = k->p->fields[l].shift;
  const int64_t lo = s->l->binding.levels[l].count < 0 ? s->l->binding.levels[l].lo : 0;
  if (words == 1)
    for (int64_t i = 0; i < n; i++) to[i] |= (uint64_t)(v[i] - lo) << shift;
  else
    for (int64_t i = 0; i < n; i++) to[i * words] |= (uint64_t)(v[i] - lo) << shift;
}

static bool put_keys(void *to, const kl_entry_block *b) {
  const keying_run *run = to;
  const kl_packer *p = run->of->p;
  keying_worker *w = run->w;
  uint32_t words = p->form.words;
  if (!find_levels(run->of, w, b)) return false;
  memset(w->keys, 0, (size_t)b->n * words * sizeof *w->keys);
  for (uint32_t l = 0; l < p->s->e->nlevels; l++)
    if (p->fields[l].mask) put_field(run->of, w, l, b->n, w->keys + p->fields[l].word, words);
  run->put(run->to, w->keys, b->values, b->n);
  return true;
}

static void run_keys(void *arg, uint32_t worker, int64_t piece, kl_records_put *put, void *to) {
  const keying *k = arg;
  keying_run run = {k, &k->workers[worker], put, to};
  k->from->run(k->from->arg, worker, piece, put_keys, &run);
}

// --- counts of their digits -----------------------------------------------------------------------------------------

typedef struct digit_run {
  const keying *of;
  keying_worker *w;
  kl_digit d;
  int64_t *counts;
} digit_run;

// Of the keys only what the digit is made of.
static bool put_digits(void *to, const kl_entry_block *b) {
  const digit_run *run = to;
  const kl_packer *p = run->of->p;
  uint64_t *word = run->w->keys, mask = ((uint64_t)1 << run->d.bits) - 1;
  if (!find_levels(run->of, run->w, b)) return false;
  memset(word, 0, (size_t)b->n * sizeof *word);
  for (uint32_t l = 0; l < p->s->e->nlevels; l++)
    if (p->fields[l].word == run->d.word && p->fields[l].mask << p->fields[l].shift & mask << run->d.shift)
      put_field(run->of, run->w, l, b->n, word, 1);
  for (int64_t i = 0; i < b->n; i++) run->counts[word[i] >> run->d.shift & mask]++;
  return true;
}

static void count_digits(void *arg, uint32_t worker, int64_t piece, kl_digit d, int64_t *counts) {
  const keying *k = arg;
  digit_run run = {k, &k->workers[worker], d, counts};
  k->from->run(k->from->arg, worker, piece, put_digits, &run);
}

static bool keys_failed(void *arg) {
  keying *k = arg;
  bool failed = false;
  if (k->from->found) k->found = k->from->found(k->from->arg);
  for (uint32_t i = 0; i < k->from->workers; i++) failed |= k->workers[i].failed;
  if (k->found == KILN_OK && failed)
    k->found = kl_unsupported(k->p->s->cx, KL_NOWHERE, "levels have values beyond 64 bits");
  return k->found != KILN_OK;
}

static bool open_worker(kl_packer *p, const kl_columns *c, keying_worker *w) {
  w->registers = kl_arena_try_alloc(p->arena, (c->nregisters + 1u) * sizeof *w->registers);
  w->bad = kl_arena_try_alloc(p->arena, KL_BLOCK * sizeof *w->bad);
  w->keys = kl_arena_try_alloc(p->arena, KL_BLOCK * p->form.words * sizeof *w->keys);
  int64_t *scratch = kl_arena_try_alloc(p->arena, kl_columns_scratch(c) * sizeof *scratch + 1);
  if (!w->registers || !w->bad || !w->keys || !scratch) return false;
  kl_columns_open(c, scratch, w->registers);
  return true;
}

static kiln_status sort_entries(kl_packer *p, const kl_entry_source *from) {
  const kl_store *s = p->s;
  const kl_aff *values[KL_MOST_LEVELS] = {NULL};
  keying k = {.p = p, .from = from, .found = KILN_OK};
  for (uint32_t l = 0; l < s->e->nlevels; l++)
    if (s->l->binding.levels[l].count < 0) values[l] = kl_tree_aff(s->l->pool, s->e->levels[l].value);
  kl_columns_make(p->arena, values, s->e->nlevels, s->e->ndims, &k.levels);
  k.workers = KL_NEW_N(p->arena, keying_worker, from->workers);
  for (uint32_t i = 0; i < from->workers; i++)
    if (!open_worker(p, &k.levels, &k.workers[i]))
      return kl_out_of_memory(s->cx, sizeof *k.workers, "blocks of entries");
  kl_record_stream stream = {from->most, from->pieces, run_keys, count_digits, &k, keys_failed};
  kiln_status status = kl_records_sort(p->arena, p->threads, &p->form, &stream, &p->r);
  return k.found != KILN_OK ? k.found : status;
}

// --- what becomes of sorted entries ---------------------------------------------------------------------------------

static kiln_status wrong_value(const kl_packer *p, const uint64_t *key) {
  int64_t at[KL_MOST_LEVELS], d = 0;
  for (uint32_t l = 0; l < p->s->e->nlevels; l++) at[l] = kl_field_get(p, key, l) + p->s->l->binding.levels[l].lo;
  kl_sb b;
  kl_sb_init(&b, p->s->cx);
  for (uint32_t i = 0; i < p->s->e->ndims; i++) {
    kl_aff_eval(p->s->l->pool, p->s->l->binding.dims[i], &(kl_point){{at}}, &d);
    kl_sbf(&b, i ? ", %lld" : "%lld", (long long)d);
  }
  kiln_status status =
      kl_invalid(p->s->cx, KL_NOWHERE, "element (%s): expected the value %.*s of explicitVal, found another",
                 b.n ? b.p : "", KL_FMT(p->s->l->explicit_value.text));
  kl_sb_free(&b);
  return status;
}

// Where all values are one, others are not stored.
static kiln_status check_values(const kl_packer *p) {
  const kl_number *x = &p->s->l->explicit_value;
  kl_dtype t = p->s->l->type.element.dtype;
  uint32_t words = p->form.words, value_words = p->form.value_words;
  uint64_t value[KL_VALUE_WORDS] = {0};
  if (!x->cls) return KILN_OK;
  for (int part = 0; part < (kl_is_complex(t) ? 2 : 1); part++) kl_element_set(t, value, 0, part, x->bits[part]);
  size_t size = KL_BLOCK * (size_t)(words + value_words) * sizeof(uint64_t);
  uint64_t *keys = kl_arena_try_alloc(p->arena, size), *values = keys + (size_t)KL_BLOCK * words;
  if (!keys) return kl_out_of_memory(p->s->cx, size, "blocks of entries");
  for (int64_t first = 0, n; first < p->r.n; first += n) {
    n = p->r.n - first < KL_BLOCK ? p->r.n - first : KL_BLOCK;
    kl_records_read(&p->r, first, n, keys, values);
    for (int64_t i = 0; i < n; i++)
      if (memcmp(values + i * value_words, value, kl_info(t)->bytes)) return wrong_value(p, keys + i * words);
  }
  return KILN_OK;
}

// A level that counts: slots by how many entries of the dimension's coordinate come before.
static kiln_status count_slots(const kl_packer *p, uint32_t level, uint64_t *keys) {
  const kl_store *s = p->s;
  kl_level_extent x = s->l->binding.levels[level];
  size_t size = (size_t)s->l->type.sizes[x.count] * sizeof(int64_t) + 1;
  int64_t *seen = kl_try_alloc(s->cx, size), at[KL_MOST_LEVELS], d = 0;
  kiln_status status = seen ? KILN_OK : kl_out_of_memory(s->cx, size, "counts of entries");
  for (int64_t k = 0; k < p->r.n && status == KILN_OK; k++) {
    uint64_t *key = keys + k * p->form.words;
    for (uint32_t l = 0; l < s->e->nlevels; l++) at[l] = kl_field_get(p, key, l) + s->l->binding.levels[l].lo;
    kl_aff_eval(s->l->pool, s->l->binding.dims[x.count], &(kl_point){{at}}, &d);
    int64_t slot = seen[d]++;
    if (slot >= x.size)
      status = kl_invalid(s->cx, KL_NOWHERE, "level %u: expected at most %lld entries of coordinate %lld, found more",
                          level, (long long)x.size, (long long)d);
    else
      key[p->fields[level].word] |= (uint64_t)slot << p->fields[level].shift;
  }
  kl_free(s->cx, seen, size);
  return status;
}

// All records: keys, and values behind them. NULL: no memory.
static uint64_t *read_all(const kl_packer *p, uint64_t **values) {
  size_t words = (size_t)p->r.n * p->form.words, size = (words + (size_t)p->r.n * p->form.value_words) * 8;
  uint64_t *keys = kl_arena_try_alloc(p->arena, size);
  if (!keys) {
    kl_out_of_memory(p->s->cx, size, "entries");
    return NULL;
  }
  *values = keys + words;
  kl_records_read(&p->r, 0, p->r.n, keys, *values);
  return keys;
}

static kiln_status count_all(kl_packer *p) {
  uint64_t *keys = NULL, *values = NULL;
  for (uint32_t l = 0; l < p->s->e->nlevels; l++) {
    if (p->s->l->binding.levels[l].count < 0) continue;
    if (!keys) keys = read_all(p, &values);
    if (!keys) return KILN_E_MEMORY;
    KL_TRY(count_slots(p, l, keys));
  }
  if (!keys) return KILN_OK;
  kl_record_run run = {keys, values, p->r.n, p->form.words, p->form.value_words};
  kl_record_stream stream = kl_record_stream_of(&run);
  return kl_records_sort(p->arena, p->threads, &p->form, &stream, &p->r);
}

static kiln_status arrange(kl_packer *p, const kl_entry_source *from) {
  KL_TRY(lay_out(p));
  KL_TRY(sort_entries(p, from));
  KL_TRY(check_values(p));
  return count_all(p);
}

kiln_status kl_pack(kl_store *s, const kl_entry_source *from) {
  kl_arena a;
  kl_arena_init(&a, s->cx);
  kl_packer p = {.s = s, .arena = &a, .threads = from->most < LEAST ? 1 : from->workers};
  kiln_status status = arrange(&p, from);
  if (status == KILN_OK) status = kl_build(&p);
  kl_arena_free(&a);
  return status;
}
