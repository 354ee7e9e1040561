// Memory of what was accessed: pages of rows of cells, made when first touched. A cell stands for as many bytes of
// memory as the narrowest access to its page has. Where lanes access what lies side by side their row stays one cell;
// where they do not it has 16 bytes for each of its own, and lists where more than two lanes meet.

#include "sim/check/order/state.h"

// --- cells --------------------------------------------------------------------------------------------------------

static kl_seen_list *list_of(const kl_cell *c) {
  return c->a & KL_MANY ? (kl_seen_list *)(uintptr_t)(c->a & ~KL_MANY) : NULL;
}

static unsigned class_of(uint32_t cap) {
  unsigned k = 0;
  while ((1u << k) < cap) k++;
  return k;
}
static size_t list_bytes(uint32_t cap) {
  return sizeof(kl_seen_list) + cap * sizeof(kl_seen);
}
static kl_seen_list *new_list(kl_ordering *r, uint32_t n) {
  unsigned k = class_of(n);
  kl_seen_list *l;
  if (r->free_lists[k].n) return r->free_lists[k].p[--r->free_lists[k].n];
  l = kl_try_alloc(r->cx, list_bytes(1u << k));
  if (l) l->cap = (uint16_t)(1u << k);
  return l;
}
static void drop_list(kl_ordering *r, kl_seen_list *l) {
  if (l) VEC_PUSH(r->cx, &r->free_lists[class_of(l->cap)], l);
}

static kl_seen unpack(const kl_ordering *r, uint64_t v) {
  uint64_t thread = v >> (r->site_bits + r->step_bits);
  return (kl_seen){.warp = thread >> 5,
                   .step = (uint32_t)(v >> r->site_bits & (((uint64_t)1 << r->step_bits) - 1)),
                   .lanes = 1u << (thread & 31),
                   .site = (uint32_t)(v & (((uint64_t)1 << r->site_bits) - 1))};
}
static uint64_t packed(const kl_ordering *r, const kl_seen *s) {
  return kl_pack(r, s->warp, (unsigned)__builtin_ctz(s->lanes), s->step, s->site);
}

uint32_t kl_cell_get(const kl_ordering *r, const kl_cell *c, kl_seen *out) {
  const kl_seen_list *l = list_of(c);
  if (l) {
    memcpy(out, l->of, l->n * sizeof *out);
    return l->n;
  }
  if (!c->a) return 0;
  out[0] = unpack(r, c->a);
  if (!c->b) return 1;
  out[1] = unpack(r, c->b);
  return 2;
}

void kl_cell_put(kl_ordering *r, kl_cell *c, const kl_seen *seen, uint32_t n) {
  kl_seen_list *l = list_of(c);
  bool single = n <= 2;
  for (uint32_t k = 0; k < n; k++) single &= (seen[k].lanes & (seen[k].lanes - 1)) == 0 && !seen[k].cut;
  if (single) {
    drop_list(r, l);
    c->a = n > 0 ? packed(r, &seen[0]) : 0;
    c->b = n > 1 ? packed(r, &seen[1]) : 0;
    return;
  }
  if (!l || l->cap < n) {
    drop_list(r, l);
    l = new_list(r, n);
    if (!l) {
      *c = (kl_cell){0};
      r->blind = true;
      return;
    }
    c->a = KL_MANY | (uint64_t)(uintptr_t)l;
    c->b = 0;
  }
  l->n = (uint16_t)n;
  memcpy(l->of, seen, n * sizeof *seen);
}

// --- rows ---------------------------------------------------------------------------------------------------------

static kl_cell *new_cells(kl_ordering *r) {
  if (r->free_cells.n) return r->free_cells.p[--r->free_cells.n];
  kl_cell *cells = kl_try_alloc(r->cx, KL_ROW * sizeof *cells);
  if (!cells) r->blind = true;
  return cells;
}

static void drop_lists(kl_ordering *r, kl_row *row) {
  uint64_t any = row->all.a;
  for (uint32_t k = 0; kl_is_apart(row) && k < KL_ROW; k++) any |= row->cells[k].a;
  if (!(any & KL_MANY)) return;
  drop_list(r, list_of(&row->all));
  for (uint32_t k = 0; kl_is_apart(row) && k < KL_ROW; k++) drop_list(r, list_of(&row->cells[k]));
}

// What was cleared mostly sees the like again: the room for its cells stays.
void kl_row_renew(kl_ordering *r, kl_row *row, uint32_t age) {
  drop_lists(r, row);
  row->all = (kl_cell){0};
  row->state = age;
}

void kl_row_set(kl_ordering *r, kl_row *row, kl_cell all) {
  drop_lists(r, row);
  if (row->cells) VEC_PUSH(r->cx, &r->free_cells, row->cells);
  row->cells = NULL;
  row->all = all;
  row->state &= ~1u;
}

static uint64_t packed_beside(const kl_ordering *r, uint64_t v, unsigned shift, uint32_t at) {
  return v ? v + ((uint64_t)kl_lanes_beside(kl_site_of(r, v), shift, at) << (r->site_bits + r->step_bits)) : 0;
}

// What cell `at` of a row has seen where the first one has seen the like of c: the same by the lanes whose bytes lie
// there.
static kl_cell beside(kl_ordering *r, const kl_cell *c, unsigned shift, uint32_t at) {
  if (!list_of(c)) return (kl_cell){packed_beside(r, c->a, shift, at), packed_beside(r, c->b, shift, at)};
  kl_seen seen[KL_MOST_SEEN + 1];
  kl_cell out = {0};
  uint32_t n = kl_cell_get(r, c, seen);
  for (uint32_t k = 0; k < n; k++) seen[k].lanes <<= kl_lanes_beside(&r->sites.p[seen[k].site], shift, at);
  kl_cell_put(r, &out, seen, n);
  return out;
}

kl_cell *kl_cells_at(kl_ordering *r, kl_page *p, uint32_t at) {
  kl_row *row = kl_row_of(r, p, at);
  if (!kl_is_apart(row)) {
    if (!row->cells) row->cells = new_cells(r);
    if (!row->cells) return NULL;
    if (row->all.a)
      for (uint32_t k = 0; k < KL_ROW; k++) row->cells[k] = beside(r, &row->all, p->shift, k);
    else
      memset(row->cells, 0, KL_ROW * sizeof *row->cells);
    drop_list(r, list_of(&row->all));
    row->all = (kl_cell){0};
    row->state |= 1;
  }
  return &row->cells[at % KL_ROW];
}

// --- pages --------------------------------------------------------------------------------------------------------

static uint32_t rows_of(const kl_page *p) {
  return (uint32_t)KL_PAGE_BYTES >> p->shift >> KL_ROW_BITS;
}

static kl_page *new_page(kl_ordering *r, uint64_t number, unsigned shift) {
  kl_page *p = kl_try_alloc(r->cx, sizeof *p);
  if (p) {
    p->number = number;
    p->shift = (uint8_t)shift;
    p->rows = kl_try_alloc(r->cx, rows_of(p) * sizeof *p->rows);
  }
  if (!p || !p->rows) {
    if (p) kl_free(r->cx, p, sizeof *p);
    r->blind = true;
    return NULL;
  }
  return p;
}

// A cell's parts, which have seen what it has.
static bool split_cell(kl_ordering *r, const kl_cell *from, kl_page *to, uint32_t at, uint32_t parts) {
  const kl_seen_list *l = list_of(from);
  for (uint32_t k = 0; k < parts; k++) {
    kl_cell *c = kl_cells_at(r, to, at + k);
    if (!c) return false;
    if (l)
      kl_cell_put(r, c, l->of, l->n);
    else
      *c = *from;
  }
  return true;
}

static bool split_row(kl_ordering *r, const kl_page *p, uint32_t row, kl_page *to) {
  const uint32_t parts = 1u << (p->shift - to->shift), first = row * KL_ROW * parts;
  const kl_row *from = kl_row_of(r, p, row * KL_ROW);
  for (uint32_t k = 0; k < KL_ROW; k++) {
    if (kl_is_apart(from) && !split_cell(r, &from->cells[k], to, first + k * parts, parts)) return false;
    if (!kl_is_apart(from) && k < parts)
      kl_row_of(r, to, first + k * KL_ROW)->all = beside(r, &from->all, to->shift, k * KL_ROW);
  }
  return true;
}

static void free_rows(kl_ordering *r, kl_page *p) {
  for (uint32_t k = 0; p->rows && k < rows_of(p); k++) kl_row_set(r, &p->rows[k], (kl_cell){0});
  if (p->rows) kl_free(r->cx, p->rows, rows_of(p) * sizeof *p->rows);
}

static bool split(kl_ordering *r, kl_page *p, unsigned shift) {
  kl_page to = {.shift = (uint8_t)shift}, was = *p;
  to.rows = kl_try_alloc(r->cx, rows_of(&to) * sizeof *to.rows);
  bool done = to.rows != NULL;
  for (uint32_t k = 0; done && k < rows_of(p); k++) done = split_row(r, p, k, &to);
  if (!done) { // some of its rows may be made: they are no use to anybody
    r->blind = true;
    was = to;
  } else {
    p->rows = to.rows;
    p->shift = to.shift;
    p->age = to.age;
  }
  free_rows(r, &was);
  return done;
}

static unsigned shift_of(unsigned bytes) {
  return bytes >= 16 ? 4 : (unsigned)__builtin_ctz(bytes);
}

static size_t slot_of(const kl_ordering *r, uint64_t number) {
  return (size_t)((number * 0x9e3779b97f4a7c15) >> 32) & (r->page_slots - 1);
}

static bool grow(kl_ordering *r) {
  size_t had = r->page_slots, slots = had ? had * 4 : 1024;
  kl_page **old = r->pages, **pages = kl_try_alloc(r->cx, slots * sizeof *pages);
  if (!pages) return false;
  r->pages = pages;
  r->page_slots = slots;
  for (size_t k = 0; k < had; k++)
    for (kl_page *p = old[k], *next; p; p = next) {
      size_t at = slot_of(r, p->number);
      next = p->next;
      p->next = pages[at];
      pages[at] = p;
    }
  if (old) kl_free(r->cx, old, had * sizeof *old);
  return true;
}

kl_page *kl_page_of(kl_ordering *r, uint64_t number, unsigned bytes) {
  unsigned shift = shift_of(bytes);
  kl_page *p = kl_recent_page(r, number);
  if (!p) {
    if (r->npages >= r->page_slots && !grow(r) && !r->page_slots) {
      r->blind = true;
      return NULL;
    }
    size_t at = slot_of(r, number);
    for (p = r->pages[at]; p && p->number != number; p = p->next) {}
    if (!p) {
      p = new_page(r, number, shift);
      if (!p) return NULL;
      p->next = r->pages[at];
      r->pages[at] = p;
      r->npages++;
    }
    r->recent[number % KL_RECENT_PAGES] = p;
  }
  return p->shift <= shift || split(r, p, shift) ? p : NULL;
}

kl_page *kl_page_of_shared(kl_ordering *r, kl_order_block *b, uint64_t number, unsigned bytes) {
  unsigned shift = shift_of(bytes);
  kl_page **p = &b->shared[number];
  if (!*p) *p = new_page(r, number, shift);
  return *p && ((*p)->shift <= shift || split(r, *p, shift)) ? *p : NULL;
}

void kl_page_clear(kl_ordering *r, kl_page *p) {
  p->age += 2;
  if (p->age == 0) // rows of the first age have not been looked at since
    for (uint32_t k = 0; k < rows_of(p); k++) kl_row_renew(r, &p->rows[k], 0);
  kl_channels_free(r, p);
}

void kl_page_free(kl_ordering *r, kl_page *p) {
  if (!p) return;
  free_rows(r, p);
  kl_channels_free(r, p);
  kl_free(r->cx, p, sizeof *p);
}

void kl_pages_free(kl_ordering *r) {
  for (size_t k = 0; k < r->page_slots; k++)
    for (kl_page *p = r->pages[k], *next; p; p = next) {
      next = p->next;
      kl_page_free(r, p);
    }
  if (r->pages) kl_free(r->cx, r->pages, r->page_slots * sizeof *r->pages);
  for (size_t c = 0; c < KL_COUNT(r->free_lists); c++) {
    for (size_t k = 0; k < r->free_lists[c].n; k++)
      kl_free(r->cx, r->free_lists[c].p[k], list_bytes(r->free_lists[c].p[k]->cap));
    VEC_FREE(r->cx, &r->free_lists[c]);
  }
  for (size_t k = 0; k < r->free_cells.n; k++) kl_free(r->cx, r->free_cells.p[k], KL_ROW * sizeof(kl_cell));
  VEC_FREE(r->cx, &r->free_cells);
}
