// From shapes to physical layouts, positions to indices and back.
#include "ir/index/layout/layout.h"

// --- making -------------------------------------------------------------------------------------------------------

static uint16_t add_value(kl_physical *p, kl_value v) {
  p->values[p->nvalues] = v;
  return (uint16_t)p->nvalues++;
}

static int64_t tiles_of(int64_t extent, int64_t size) {
  return extent ? (extent - 1) / size + 1 : 0;
}

// The values that the dimensions are so far, major to minor.
typedef struct dims {
  uint32_t n;
  uint16_t of[KL_MAX_DIGITS];
} dims;

static void prepend_units(kl_physical *p, dims *d, uint32_t n, uint16_t tile) {
  if (d->n >= n) return;
  uint32_t more = n - d->n;
  memmove(d->of + more, d->of, d->n * sizeof *d->of);
  for (uint32_t i = 0; i < more; i++)
    d->of[i] = add_value(p, (kl_value){.kind = KL_VALUE_UNIT, .tile = tile, .by = 1, .extent = 1, .bound = 1});
  d->n = n;
}

// Combines and splits the minor dimensions that the tile covers: then come the numbers of tiles, then what is inside.
static kl_physical_error apply_tile(kl_physical *p, dims *d, const kl_tile *t, uint16_t tile) {
  if (!t->n || t->dims[t->n - 1] == KL_TILE_COMBINE) return KL_PHYSICAL_TILE;
  prepend_units(p, d, t->n, tile);
  uint32_t first = d->n - t->n, n = 0;
  uint16_t inside[KL_MAX_TILE_SIZES], v = 0;
  bool pending = false;
  for (uint32_t i = 0; i < t->n; i++) {
    uint16_t minor = d->of[first + i];
    kl_value c = {.kind = KL_VALUE_COMBINED, .a = v, .b = minor, .tile = tile, .by = p->values[minor].extent};
    if (pending && __builtin_mul_overflow(p->values[v].extent, c.by, &c.extent)) return KL_PHYSICAL_LARGE;
    if (pending && c.extent) c.bound = (p->values[v].bound - 1) * c.by + p->values[minor].bound;
    v = pending ? add_value(p, c) : minor;
    pending = t->dims[i] == KL_TILE_COMBINE;
    if (pending) continue;
    if (t->dims[i] < 1) return KL_PHYSICAL_TILE;
    kl_value q = {.kind = KL_VALUE_QUOTIENT, .a = v, .tile = tile, .by = t->dims[i]}, r = q;
    q.extent = tiles_of(p->values[v].extent, q.by);
    q.bound = tiles_of(p->values[v].bound, q.by);
    r.kind = KL_VALUE_REMAINDER;
    r.extent = r.by;
    r.bound = r.by < p->values[v].bound ? r.by : p->values[v].bound;
    d->of[first + n] = add_value(p, q);
    inside[n++] = add_value(p, r);
  }
  memcpy(d->of + first + n, inside, n * sizeof *inside);
  d->n = first + 2 * n;
  return KL_PHYSICAL_OK;
}

// Extents of 0 count as 1: so strides fit, and whether a layout does depends on no dimension's being empty.
static bool set_digits(kl_physical *p, const dims *d) {
  int64_t stride = 1;
  bool empty = false;
  p->ndigits = d->n;
  for (uint32_t i = d->n; i-- > 0;) {
    int64_t extent = p->values[d->of[i]].extent;
    p->digits[i] = (kl_digit){d->of[i], extent, stride};
    if (__builtin_mul_overflow(stride, extent ? extent : 1, &stride)) return false;
    empty |= extent == 0;
  }
  p->tiled = empty ? 0 : stride;
  return true;
}

static bool set_size(kl_physical *p, const kl_layout *l) {
  int64_t align = l->tail_padding > 1 ? l->tail_padding : 1;
  if (__builtin_mul_overflow(tiles_of(p->tiled, align), align, &p->positions)) return false;
  __int128 bytes = ((__int128)p->positions * p->bits + 7) / 8 + p->prefix;
  p->bytes = (int64_t)bytes;
  return bytes <= INT64_MAX;
}

static kl_physical_error usable(const kl_shape *s) {
  const kl_layout *l = &s->layout;
  if (!kl_shape_is_array(s)) return KL_PHYSICAL_NO_ARRAY;
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->dims[d] < 0) return KL_PHYSICAL_UNKNOWN;
  if (!l->present) return KL_PHYSICAL_OK;
  if (l->dim_level_types) return KL_PHYSICAL_SPARSE;
  if (l->sparse) return KL_PHYSICAL_ENCODED;
  if (l->split_configs) return KL_PHYSICAL_SPLIT;
  if (l->physical_shape) return KL_PHYSICAL_OTHER;
  unsigned least = s->dtype == KILN_PRED ? 1 : kl_info(s->dtype)->bits;
  if (l->element_bits && l->element_bits < least) return KL_PHYSICAL_BITS;
  uint64_t sizes = 0;
  for (uint32_t i = 0; i < l->ntiles; i++) sizes += l->tiles[i].n;
  return sizes > KL_MAX_TILE_SIZES ? KL_PHYSICAL_TILES : KL_PHYSICAL_OK;
}

kl_physical_error kl_physical_of(const kl_shape *s, kl_physical *p) {
  const kl_layout *l = &s->layout;
  kl_physical_error error = usable(s);
  if (error) return error;
  p->rank = s->rank;
  p->nvalues = 0;
  p->elements = s->count;
  p->bits = l->element_bits ? l->element_bits : kl_info(s->dtype)->bits;
  p->prefix = l->metadata_prefix;
  dims d = {.n = s->rank};
  for (uint32_t i = 0; i < s->rank; i++) {
    add_value(p, (kl_value){.kind = KL_VALUE_INDEX, .by = 1, .extent = s->dims[i], .bound = s->dims[i]});
    d.of[s->rank - 1 - i] = (uint16_t)kl_shape_minor_to_major(s, i);
  }
  for (uint32_t i = 0; i < l->ntiles && !error; i++) error = apply_tile(p, &d, &l->tiles[i], (uint16_t)(i + 1));
  if (error) return error;
  return set_digits(p, &d) && set_size(p, l) ? KL_PHYSICAL_OK : KL_PHYSICAL_LARGE;
}

const char *kl_physical_error_text(kl_physical_error e) {
  switch (e) {
  case KL_PHYSICAL_NO_ARRAY: return "no array";
  case KL_PHYSICAL_UNKNOWN: return "a dimension without a bound";
  case KL_PHYSICAL_SPARSE: return "a sparse layout (D)";
  case KL_PHYSICAL_ENCODED: return "a sparse encoding (SP)";
  case KL_PHYSICAL_SPLIT: return "a layout of split dimensions (SC)";
  case KL_PHYSICAL_OTHER: return "a layout with a physical shape of its own (P)";
  case KL_PHYSICAL_TILE: return "a tile that is empty, has a size below 1, or ends in '*'";
  case KL_PHYSICAL_TILES: return "tiles of more than 128 sizes together";
  case KL_PHYSICAL_BITS: return "a layout whose elements take fewer bits (E) than their type";
  case KL_PHYSICAL_LARGE: return "a layout of more than 2^63 positions or bytes, padding included";
  case KL_PHYSICAL_OK: break;
  }
  return "";
}

bool kl_layout_is_order(const kl_shape *s) {
  const kl_layout *l = &s->layout;
  bool sized = l->element_bits == 0 || l->element_bits == kl_info(s->dtype)->bits;
  return !l->present || (sized && !l->ntiles && l->tail_padding <= 1 && !l->dim_level_types && !l->split_configs &&
                         !l->physical_shape && !l->metadata_prefix && !l->sparse);
}

// --- positions ----------------------------------------------------------------------------------------------------

int64_t kl_physical_position(const kl_physical *p, const int64_t *index) {
  int64_t n, step;
  if (p->rank) return kl_physical_run(p, index, 0, &n, &step);
  return 0;
}

// `rate` is by how much a value grows from one element of the run to the next. While the run has two elements, every
// value and the one after it lie below their bounds, so nothing overflows; a run of one has no rates.
int64_t kl_physical_run(const kl_physical *p, const int64_t *index, uint32_t dim, int64_t *n, int64_t *step) {
  int64_t at[KL_MAX_VALUES], rate[KL_MAX_VALUES], most = p->values[dim].bound - index[dim], position = 0;
  for (uint32_t i = 0; i < p->nvalues; i++) {
    const kl_value *v = &p->values[i];
    rate[i] = 0;
    switch (v->kind) {
    case KL_VALUE_INDEX:
      at[i] = index[i];
      rate[i] = i == dim;
      break;
    case KL_VALUE_UNIT: at[i] = 0; break;
    case KL_VALUE_COMBINED:
      at[i] = at[v->a] * v->by + at[v->b];
      if (most > 1) rate[i] = rate[v->a] * v->by + rate[v->b];
      break;
    case KL_VALUE_QUOTIENT:
      at[i] = at[v->a] / v->by;
      if (rate[v->a] % v->by == 0) rate[i] = rate[v->a] / v->by;
      break;
    case KL_VALUE_REMAINDER:
      at[i] = at[v->a] % v->by;
      if (rate[v->a] % v->by == 0) break;
      rate[i] = rate[v->a]; // until it wraps
      if (most > (v->by - 1 - at[i]) / rate[i] + 1) most = (v->by - 1 - at[i]) / rate[i] + 1;
      break;
    }
  }
  *step = 0;
  for (uint32_t i = 0; i < p->ndigits; i++) {
    position += at[p->digits[i].value] * p->digits[i].stride;
    if (most > 1) *step += rate[p->digits[i].value] * p->digits[i].stride;
  }
  *n = most;
  return position;
}

// The dimension along which runs are longest.
static uint32_t longest_runs(const kl_shape *s, const kl_physical *p) {
  int64_t zero[KILN_MAX_RANK] = {0}, n, step, most = 0;
  uint32_t best = 0;
  for (uint32_t d = s->rank; d-- > 0;) {
    kl_physical_run(p, zero, d, &n, &step);
    if (n > most) most = n, best = d;
  }
  return best;
}

void kl_physical_runs(const kl_shape *s, const kl_physical *p, void (*visit)(void *arg, const kl_run *r), void *arg) {
  int64_t index[KILN_MAX_RANK] = {0};
  if (!s->count) return;
  if (!s->rank) {
    visit(arg, &(kl_run){.index = index, .n = 1, .position = kl_physical_position(p, index)});
    return;
  }
  uint32_t dim = longest_runs(s, p), d;
  do {
    kl_run r = {.index = index, .dim = dim};
    for (index[dim] = 0; index[dim] < s->dims[dim]; index[dim] += r.n) {
      r.position = kl_physical_run(p, index, dim, &r.n, &r.step);
      visit(arg, &r);
    }
    index[dim] = 0;
    for (d = s->rank; d-- > 0;) {
      if (d == dim) continue;
      if (++index[d] < s->dims[d]) break;
      index[d] = 0;
    }
  } while (d != UINT32_MAX);
}

// The position's digits, as values; `rate` as above, for positions that follow one another. *n: until the most minor
// digit wraps.
static void split_position(const kl_physical *p, int64_t position, int64_t *at, int64_t *rate, int64_t *n) {
  *n = 1;
  for (uint32_t i = p->ndigits; i-- > 0;) {
    const kl_digit *d = &p->digits[i];
    at[d->value] = position % d->extent;
    position /= d->extent;
    bool minor = d->stride == 1 && d->extent > 1;
    rate[d->value] = minor;
    if (minor) *n = d->extent - at[d->value];
  }
}

static void at_most(int64_t *n, int64_t room, int64_t rate) {
  if (rate && *n > room / rate + 1) *n = room / rate + 1;
}

// Undoes the values; true if the position is an element's. The first *n positions from here on are alike.
static bool undo(const kl_physical *p, int64_t position, int64_t *at, int64_t *n) {
  int64_t rate[KL_MAX_VALUES];
  split_position(p, position, at, rate, n);
  for (uint32_t i = p->nvalues; i-- > 0;) {
    const kl_value *v = &p->values[i];
    if (v->kind == KL_VALUE_COMBINED) {
      at[v->a] = at[i] / v->by;
      at[v->b] = at[i] % v->by;
      bool whole = rate[i] % v->by == 0;
      rate[v->a] = whole ? rate[i] / v->by : 0;
      rate[v->b] = whole ? 0 : rate[i];
      if (!whole) at_most(n, v->by - 1 - at[v->b], rate[i]);
    } else if (v->kind == KL_VALUE_QUOTIENT) { // its remainder comes behind it
      int64_t bound = p->values[v->a].bound;
      at[v->a] = at[i] * v->by + at[i + 1];
      if (at[v->a] >= bound) return false;
      rate[v->a] = *n > 1 ? rate[i] * v->by + rate[i + 1] : 0;
      at_most(n, bound - 1 - at[v->a], rate[v->a]);
    }
  }
  return true;
}

bool kl_physical_index(const kl_physical *p, int64_t position, int64_t *index) {
  int64_t at[KL_MAX_VALUES], n;
  if (position < 0 || position >= p->tiled || !undo(p, position, at, &n)) return false;
  memcpy(index, at, p->rank * sizeof *index);
  return true;
}

bool kl_physical_stretch(const kl_physical *p, int64_t position, int64_t *n) {
  int64_t at[KL_MAX_VALUES];
  *n = p->positions - position;
  return position < p->tiled && undo(p, position, at, n);
}

int64_t kl_physical_next_padding(const kl_physical *p, int64_t from) {
  int64_t at = from < 0 ? 0 : from, n;
  if (p->elements == p->positions) return -1;
  while (at < p->positions && kl_physical_stretch(p, at, &n)) at += n;
  return at < p->positions ? at : -1;
}

kl_bit kl_physical_bit(const kl_physical *p, int64_t position) {
  __int128 bit = (__int128)position * p->bits;
  return (kl_bit){p->prefix + (int64_t)(bit >> 3), (unsigned)(bit & 7)};
}

// --- values as digits of others -----------------------------------------------------------------------------------

static kl_form combined_form(const kl_physical *p, const kl_form *forms, uint16_t i) {
  const kl_value *v = &p->values[i];
  kl_form a = forms[v->a], b = forms[v->b];
  if (a.base == KL_FORM_ZERO) return b;
  if (v->by == 1) return a;
  // Two neighbouring digits of one base are one digit of it.
  if (a.base == b.base && b.mod == v->by && a.div == b.div * b.mod)
    return (kl_form){a.base, b.div, a.mod ? a.mod * b.mod : 0};
  return (kl_form){i, 1, 0};
}

// Both need by < bound of a: else the quotient is 0 and the remainder a.
static kl_form part_form(const kl_value *v, kl_form a) {
  bool quotient = v->kind == KL_VALUE_QUOTIENT;
  if (a.mod % v->by) a = (kl_form){v->a, 1, 0}; // no digit of its base: the floors do not nest
  if (quotient) return (kl_form){a.base, a.div * v->by, a.mod / v->by};
  return (kl_form){a.base, a.div, v->by};
}

static kl_form form_of(const kl_physical *p, const kl_form *indices, const kl_form *forms, uint16_t i) {
  const kl_value *v = &p->values[i];
  if (v->bound <= 1) return (kl_form){KL_FORM_ZERO, 1, 0};
  switch (v->kind) {
  case KL_VALUE_INDEX: return indices ? indices[i] : (kl_form){i, 1, 0};
  case KL_VALUE_UNIT: return (kl_form){KL_FORM_ZERO, 1, 0};
  case KL_VALUE_COMBINED: return combined_form(p, forms, i);
  default: break;
  }
  if (v->kind == KL_VALUE_REMAINDER && v->by >= p->values[v->a].bound) return forms[v->a];
  return part_form(v, forms[v->a]);
}

void kl_physical_forms(const kl_physical *p, const kl_form *indices, kl_form *forms) {
  for (uint16_t i = 0; i < p->nvalues; i++) forms[i] = form_of(p, indices, forms, i);
}
