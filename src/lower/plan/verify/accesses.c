// Accesses: bases and strides against the element that copies are said to be, bounds, alignment, chunks.

#include "lower/plan/verify/check.h"

// Is the symbol's value there, and does it depend on nothing else?
static bool is_symbol(const kl_check *k, uint32_t var, kl_vars allowed) {
  const kl_body *b = k->body;
  if (var < KL_FIRST_SYMBOL || var - KL_FIRST_SYMBOL >= b->nsymbols) return false;
  const kl_symbol *s = &b->symbols[var - KL_FIRST_SYMBOL];
  if (kl_is_counted_in(s)) return k->p->counted && var == KL_FIRST_SYMBOL;
  return s->step < b->nsteps && (k->anywhere || k->there[s->step]) && !(s->vars & ~allowed);
}

static bool is_atom(const kl_check *k, const kl_aff_atom *a, kl_vars allowed) {
  switch (a->kind) {
  case KL_AFF_DIM: return a->var < KL_MAX_VARS && kl_has_var(allowed, a->var);
  case KL_AFF_RT: return is_symbol(k, a->var, allowed);
  case KL_AFF_FLOOR:
  case KL_AFF_MIN:
  case KL_AFF_MAX: break;
  default: return false;
  }
  for (uint32_t i = 0; i < a->n; i++)
    if (!kl_is_index(k, a->arg[i], allowed)) return false;
  return true;
}

bool kl_is_index(const kl_check *k, const kl_aff *e, kl_vars allowed) {
  if (e->error) return false;
  for (uint32_t i = 0; i < e->n; i++)
    if (!is_atom(k, e->terms[i].atom, allowed)) return false;
  return true;
}

// An access, and what it is about.
typedef struct reach {
  kl_check *k;
  const kl_access *a;
  const kl_slot_info *s;
  unsigned bits;
  kl_vars copies;      // variables that number its elements
  kl_conditions where; // it is done
} reach;

static kl_vars copies_of(const kl_body *b, const kl_access *a) {
  return a->regs | (b->width > 1 ? kl_bound(b, KL_BIND_LANE) : 0);
}

static bool is_whole(const kl_access *a) {
  return a->vec > 1 && a->stride == 1;
}

// --- form -----------------------------------------------------------------------------------------------------------

static kiln_status check_form(reach *x) {
  kl_check *k = x->k;
  const kl_body *b = k->body;
  const kl_access *a = x->a;
  unsigned part = kl_is_complex(x->s->shape->dtype) ? x->bits / 2 : x->bits;
  if (a->regs & ~kl_bound(b, KL_BIND_REG)) return kl_refute(k, "copies are numbered by variables that are not reg");
  int64_t n = kl_extent(b, x->copies);
  if (n > KL_MAX_COPIES) return kl_refute(k, "%lld copies, of at most %d", (long long)n, KL_MAX_COPIES);
  if (a->vec == 0 || (a->vec & (a->vec - 1)) || (int64_t)a->vec * a->nchunks != n)
    return kl_refute(k, "%u chunks of %u for %lld elements", a->nchunks, a->vec, (long long)n);
  if (a->run != KL_NONE && (a->run >= b->nvars || !kl_has_var(x->copies, a->run)))
    return kl_refute(k, "runs along a variable that does not number its elements");
  if (a->vec > 1 && (a->run == KL_NONE || b->vars[a->run].extent % a->vec))
    return kl_refute(k, "chunks of %u do not divide the variable they run along", a->vec);
  if (a->reversed && !is_whole(a)) return kl_refute(k, "reversed, with a stride of %lld", (long long)a->stride);
  if (a->align & (a->align - 1) || a->align > x->s->align || (part >= 8 && a->align < part / 8))
    return kl_refute(k, "aligned to %u bytes, in a slot aligned to %u", a->align, x->s->align);
  if (is_whole(a) && (a->align == 0 || a->vec * x->bits % 8))
    return kl_refute(k, "chunks of %u elements of %u bits are no bytes", a->vec, x->bits);
  return KILN_OK;
}

// --- bases ----------------------------------------------------------------------------------------------------------

// Where no floor has them, the variables that number copies add a constant.
static bool adds_constants(const reach *x) {
  const kl_aff *e = x->a->element;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *at = e->terms[i].atom;
    if (at->kind == KL_AFF_FLOOR && kl_vars_of(x->k->body, at->arg[0]) & x->copies) return false;
  }
  return true;
}

// Is `base` e + more, with the values `at` of the copies' variables?
static bool is_sum_at(const reach *x, const kl_aff *e, const int64_t *at, int64_t more, const kl_aff *base) {
  kl_wide c = (kl_wide)e->c + more;
  uint32_t n = 0;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_term *t = &e->terms[i];
    if (t->atom->kind == KL_AFF_DIM && kl_has_var(x->copies, t->atom->var)) {
      c += (kl_wide)t->coef * at[t->atom->var];
      continue;
    }
    if (n == base->n || base->terms[n].atom != t->atom || base->terms[n].coef != t->coef) return false;
    n++;
  }
  return n == base->n && c == base->c;
}

// Does e use one of the variables itself? Symbols have their value at the copy.
static bool uses(const kl_aff *e, kl_vars vars) {
  bool inside = false;
  for (uint32_t v = 0; v < KL_MAX_VARS; v++)
    if (kl_has_var(vars, v) && kl_aff_uses(e, v, &inside)) return true;
  return false;
}

static bool is_base(const reach *x, uint32_t chunk, bool sums) {
  kl_check *k = x->k;
  const kl_access *a = x->a;
  int64_t at[KL_MAX_VARS] = {0}, more = a->reversed ? -(int64_t)(a->vec - 1) : 0;
  kl_nth_point(k->body, x->copies, a->run, chunk * a->vec, at);
  if (a->base[chunk]->error) return false;
  if (sums && is_sum_at(x, a->element, at, more, a->base[chunk])) return true;
  const kl_aff *e = kl_at_point(k->p->affs, k->body, a->element, x->copies, at);
  e = kl_aff_sub(k->p->affs, kl_aff_addc(k->p->affs, e, more), a->base[chunk]);
  kl_interval in = kl_dom_interval(k->body->domain, e);
  return !e->error && in.lo == 0 && in.hi == 0 && !uses(a->base[chunk], x->copies);
}

// Is every value of the expression, in elements, a multiple of as many bytes?
static bool is_aligned(const kl_aff *e, unsigned bits, uint32_t bytes) {
  int64_t unit = (int64_t)bytes * 8;
  while (unit % 2 == 0 && bits % 2 == 0) unit /= 2, bits /= 2;
  if (e->c % unit) return false;
  for (uint32_t i = 0; i < e->n; i++)
    if (e->terms[i].coef % unit) return false;
  return true;
}

static kiln_status check_bases(reach *x) {
  kl_check *k = x->k;
  const kl_access *a = x->a;
  bool sums = adds_constants(x);
  for (uint32_t c = 0; c < a->nchunks; c++) {
    if (!is_base(x, c, sums)) return kl_refute(k, "chunk %u is not known to begin where its elements do", c);
    if (a->align && !is_aligned(a->base[c], x->bits, a->align))
      return kl_refute(k, "chunk %u is not known to be aligned to %u bytes", c, a->align);
  }
  int64_t each = 0;
  if (a->vec == 1) return KILN_OK;
  if (!kl_spread(k->body, a->element, a->run, a->vec, &each) || each != (a->reversed ? -1 : a->stride))
    return kl_refute(k, "elements of a chunk are not known to be %lld apart", (long long)a->stride);
  return KILN_OK;
}

// --- bounds ---------------------------------------------------------------------------------------------------------

// A chunk that begins at a multiple of its length lies in an array of such a length, if one of its elements does: if it
// does not begin before or behind all of them.
static bool chunks_are_within(reach *x) {
  kl_check *k = x->k;
  const kl_access *a = x->a;
  int64_t v = a->vec, count = x->s->shape->count;
  if (!is_whole(a) || a->reversed || count % v) return false;
  for (uint32_t c = 0; c < a->nchunks; c++) {
    const kl_aff *e = a->base[c];
    if (e->c % v) return false;
    for (uint32_t i = 0; i < e->n; i++)
      if (e->terms[i].coef % v) return false;
  }
  kl_affs *p = k->p->affs;
  const kl_aff *to[KL_MAX_VARS], *first = a->element;
  for (uint32_t d = 0; d < k->body->nvars; d++) to[d] = kl_aff_dim(p, d);
  to[a->run] = kl_aff_mulc(p, kl_aff_floordivc(p, to[a->run], v), v);
  kl_aff_replace(p, &(kl_aff_subst){.to = {to}, .n = {k->body->nvars}}, &first, 1, &first);
  return kl_is_within(k, kl_dom_simplify(k->body->domain, first), 1 - v, count - 1, &x->where);
}

static kiln_status check_bounds(reach *x, bool load) {
  kl_check *k = x->k;
  int64_t last = x->s->shape->count - 1;
  if (x->s->row && !kl_is_in_rows(k, x->s, x->a->element, &x->where))
    return kl_refute(k, "elements are not known to lie in the rows that there are");
  if (load && !x->s->row && x->a->guard != KL_NONE && chunks_are_within(x)) return KILN_OK;
  if (kl_is_within(k, x->a->element, 0, last, &x->where)) return KILN_OK;
  return kl_refute(k, "elements are not known to lie in 0..%lld", (long long)last);
}

// Guards' own form is checked once; here, that what they depend on is there.
static kiln_status check_guard(reach *x, uint32_t guard) {
  kl_check *k = x->k;
  if (guard == KL_NONE) return KILN_OK;
  if (guard >= k->body->nguards) return kl_refute(k, "there is no guard g%u", guard);
  if (!kl_guard_is_there(k, guard, kl_known_vars(k) | x->copies))
    return kl_refute(k, "g%u depends on what the access does not", guard);
  return KILN_OK;
}

// What a load may read, or a store write. What the launch stores in scratch memory, blocks that come last, or have met,
// read in it.
static bool may_touch(const kl_check *k, const kl_access *a, bool load) {
  const kl_slot_info *s = &k->p->slots[a->slot];
  uint32_t launch = (uint32_t)(k->launch - k->p->launches);
  if (s->mode == KL_MODE_GROWS) return !load || kl_first_writer(k->p, a->slot) < launch;
  switch (s->kind) {
  case KL_SLOT_IN:
  case KL_SLOT_CONST: return load;
  case KL_SLOT_OUT: return !load || (s->mode == KL_MODE_UPDATE && kl_first_writer(k->p, a->slot) < launch);
  case KL_SLOT_SHARED: return s->launch == launch;
  case KL_SLOT_SCRATCH: {
    uint32_t first = kl_first_writer(k->p, a->slot);
    bool own = load && kl_launch_stores(k->p, launch, a->slot);
    return !s->zero && (!load || (!own && first < launch) || (first == launch && (k->gone || k->met)));
  }
  }
  return false;
}

bool kl_is_given(const kl_check *k, uint32_t slot) {
  const kl_slot_info *s = &k->p->slots[slot];
  if ((s->kind == KL_SLOT_CONST && !s->given) || s->kind == KL_SLOT_SHARED) return true;
  for (uint32_t i = 0; i < k->launch->nargs; i++)
    if (k->launch->args[i] == slot) return true;
  return false;
}

static kiln_status begin(reach *x, kl_check *k, const kl_access *a, bool load, uint32_t guard) {
  if (a->slot >= k->p->nslots) return kl_refute(k, "there is no slot s%u", a->slot);
  x->k = k;
  x->a = a;
  x->s = &k->p->slots[a->slot];
  x->bits = kl_info(x->s->shape->dtype)->bits;
  x->copies = copies_of(k->body, a);
  if (!may_touch(k, a, load)) return kl_refute(k, "s%u cannot be %s", a->slot, load ? "read" : "written");
  if (!kl_is_given(k, a->slot)) return kl_refute(k, "s%u is no argument", a->slot);
  KL_TRY(check_form(x));
  if (!kl_is_index(k, a->element, kl_known_vars(k) | x->copies))
    return kl_refute(k, "its element depends on what is not known there");
  KL_TRY(check_guard(x, guard));
  kl_conditions_at(k, k->place, guard, &x->where);
  return check_bases(x);
}

// --- loads ----------------------------------------------------------------------------------------------------------

static bool splits_chunks(const kl_body *b, const kl_access *a, uint32_t guard) {
  return guard != KL_NONE && a->vec > 1 && b->guards[guard].uniform[a->run] % a->vec != 0;
}

// Off its guard a chunk is that of element 0.
kiln_status kl_check_load(kl_check *k, const kl_step *s) {
  const kl_access *a = &s->access;
  reach x;
  KL_TRY(begin(&x, k, a, true, a->guard));
  if (s->regs != a->regs) return kl_refute(k, "is not there as often as it is read");
  if (s->dtype != x.s->shape->dtype) return kl_refute(k, "reads %s as another type", kl_info(x.s->shape->dtype)->name);
  if (splits_chunks(k->body, a, a->guard)) return kl_refute(k, "g%u changes inside of chunks", a->guard);
  kl_wide way = (kl_wide)a->stride * (a->vec - 1), least = x.s->row ? x.s->row : x.s->shape->count;
  if (a->guard != KL_NONE && (way < 0 || way >= least))
    return kl_refute(k, "off g%u a chunk reaches beyond its slot", a->guard);
  return check_bounds(&x, true);
}

// --- stores ---------------------------------------------------------------------------------------------------------

// A chunk of one byte is stored whole if its first element is. So an element of the slot must be kept, wherever the
// guard changes; what is one for all of the chunk, outside of that, holds.
static kiln_status check_padding(reach *x, uint32_t keep) {
  kl_check *k = x->k;
  uint32_t whole = k->body->guards[keep].outer;
  while (splits_chunks(k->body, x->a, whole)) whole = k->body->guards[whole].outer;
  if (x->a->vec * x->bits != 8) return kl_refute(k, "g%u changes inside of chunks", keep);
  kl_conditions inside, kept;
  kl_conditions_at(k, k->place, whole, &inside);
  if (inside.n == KL_MOST_CONDITIONS) inside.n--;
  inside.c[inside.n++] = (kl_condition){x->a->element, 0, x->s->shape->count - 1};
  kl_conditions_at(k, NULL, keep, &kept);
  for (uint32_t i = 0; i < kept.n; i++)
    if (!kl_is_within(k, kept.c[i].e, kept.c[i].lo, kept.c[i].hi, &inside))
      return kl_refute(k, "elements off g%u, stored as 0, are not known to lie behind the end", keep);
  return KILN_OK;
}

// Of a slot that is updated. What nobody else touches is changed as one likes, but for parts of bytes.
static kiln_status check_change(reach *x, const kl_store *s) {
  kl_check *k = x->k;
  const kl_target *t = &k->p->target;
  uint32_t most = KL_MAX_COPIES;
  bool can = false;
  bool shared = x->s->kind == KL_SLOT_SHARED && s->how == KL_STORE_COMBINE;
  if (!shared && (x->s->kind != KL_SLOT_OUT || x->s->mode == KL_MODE_COVER || x->s->mode == KL_MODE_GROWS))
    return kl_refute(k, "changes what is not updated");
  switch (s->how) {
  case KL_STORE_COMBINE: can = kl_can_combine(t, s->combine, x->s, &most); break;
  case KL_STORE_TAKE: can = x->bits >= 8 && (s->alone || x->bits <= 64); break;
  default:
    can = (s->alone && x->bits >= 8) || kl_can_replace(t, x->s);
    if (!s->alone || t->machine == KL_HOST) most = 1;
  }
  if (!can || s->access.vec > most) return kl_refute(k, "changes elements as the target cannot");
  if (splits_chunks(k->body, x->a, s->keep)) return kl_refute(k, "g%u changes inside of chunks", s->keep);
  return check_bounds(x, false);
}

kiln_status kl_check_store(kl_check *k, const kl_store *s) {
  const kl_access *a = &s->access;
  const kl_step *from = &k->body->steps[s->step];
  reach x;
  KL_TRY(begin(&x, k, a, false, s->keep));
  if (a->guard != KL_NONE) return kl_refute(k, "has a guard for another element");
  if (from->regs & ~a->regs) return kl_refute(k, "v%u has more copies than are stored", s->step);
  if (from->dtype != x.s->shape->dtype) return kl_refute(k, "stores %s as another type", kl_info(from->dtype)->name);
  if (a->vec > 1 && (a->stride != 1 || a->reversed)) return kl_refute(k, "stores chunks that are no run upwards");
  if (s->how != KL_STORE_PUT) return check_change(&x, s);
  if (x.bits < 8 && (a->align == 0 || a->vec * x.bits % 8)) return kl_refute(k, "stores parts of bytes");
  KL_TRY(check_bounds(&x, false));
  return splits_chunks(k->body, a, s->keep) ? check_padding(&x, s->keep) : KILN_OK;
}
