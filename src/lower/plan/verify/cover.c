// Is each element of a result stored once?
//
// A store's element tells its points apart; different stores' elements lie apart, in number or in one digit of it; and
// there are as many points as elements, which all lie in the slot. Scratch memory of which this is not known is looked
// at element by element, if it is small. Of a kernel that is given its count each body stores
// the elements of a thread together, and threads follow one another.

#include "lower/plan/verify/check.h"
#include <stdlib.h>

typedef struct cover {
  kl_check *k;
  uint32_t slot;
  const kl_writing *w;
  kl_form *forms; // by store
  int64_t *counts;
  uint32_t n;
} cover;

static void unproved(cover *x, const char *why) {
  kl_slot_info *s = &x->k->p->slots[x->slot];
  if (!s->unproved) s->unproved = why;
}

static void look_at(cover *x, uint32_t i) {
  x->k->part = x->w[i].part;
  x->k->launch = kl_launch_of(x->k->p, x->w[i].part);
  x->k->name = x->w[i].name;
  x->k->body = x->w[i].body;
  kl_set_launched(x->k);
  kl_look_at(x->k, KL_OF_STORE, x->w[i].store);
}

// Variables that number the elements that a store stores in all.
static kl_vars stored_over(const kl_body *b, const kl_access *a, const kl_place *place) {
  kl_vars all = (kl_vars)(((uint64_t)1 << b->nvars) - 1), inner = kl_bound(b, KL_BIND_REG);
  kl_vars vars = (all & ~(inner | kl_bound(b, KL_BIND_STEP))) | a->regs;
  for (; place; place = place->up) {
    if (place->kind == KL_NODE_LOOP) vars |= (kl_vars)1 << place->index;
    vars &= ~place->gone;
  }
  return vars;
}

// --- what data says to all threads alike: it moves all elements alike ---

// The symbol of such a term, or NULL.
static const kl_symbol *shift_of(const kl_body *b, const kl_aff_atom *a) {
  bool symbol = a->kind == KL_AFF_RT && a->var >= KL_FIRST_SYMBOL;
  const kl_symbol *s = symbol ? &b->symbols[a->var - KL_FIRST_SYMBOL] : NULL;
  return s && !s->vars ? s : NULL;
}

static const kl_aff *without_shift(kl_check *k, const kl_aff *e) {
  kl_affs *p = k->p->affs;
  const kl_aff *r = e;
  for (uint32_t i = 0; i < e->n; i++)
    if (shift_of(k->body, e->terms[i].atom))
      r = kl_aff_addmul(p, r, kl_aff_var(p, KL_AFF_RT, e->terms[i].atom->var), -e->terms[i].coef);
  return r;
}

// Do steps of two bodies make the same of the same data, for all threads?
static bool same_value(const kl_body *a, uint32_t i, const kl_body *b, uint32_t k) {
  const kl_step *x = &a->steps[i], *y = &b->steps[k];
  if (x->kind != y->kind || x->dtype != y->dtype || x->vars || y->vars || x->noperands != y->noperands) return false;
  for (uint32_t n = 0; n < x->noperands; n++)
    if (!same_value(a, x->operands[n], b, y->operands[n])) return false;
  switch (x->kind) {
  case KL_STEP_SCALAR: return x->bits[0] == y->bits[0] && x->bits[1] == y->bits[1];
  case KL_STEP_LOAD:
    return x->access.slot == y->access.slot && x->access.element == y->access.element && x->access.guard == KL_NONE &&
           y->access.guard == KL_NONE && !kl_has_symbols(x->access.element);
  case KL_STEP_OP: return memcmp(&x->op, &y->op, sizeof x->op) == 0;
  default: return x->kind == KL_STEP_INDEX;
  }
}

// The next term from *i on that moves all elements; NULL: there is none.
static const kl_aff_term *next_shift(const kl_body *b, const kl_aff *e, uint32_t *i) {
  while (*i < e->n && !shift_of(b, e->terms[*i].atom)) ++*i;
  return *i < e->n ? &e->terms[(*i)++] : NULL;
}

static bool same_shift(const kl_writing *x, const kl_writing *y) {
  const kl_aff *a = x->body->stores[x->store].access.element, *b = y->body->stores[y->store].access.element;
  for (uint32_t i = 0, k = 0;;) {
    const kl_aff_term *s = next_shift(x->body, a, &i), *t = next_shift(y->body, b, &k);
    if (!s || !t) return !s && !t;
    const kl_symbol *u = shift_of(x->body, s->atom), *v = shift_of(y->body, t->atom);
    if (s->coef != t->coef || u->lo != v->lo || u->hi != v->hi || !same_value(x->body, u->step, y->body, v->step))
      return false;
  }
}

// --- a store --------------------------------------------------------------------------------------------------------

// Of the rows whose number comes at run time there are the most.
kl_truth kl_stores_once(kl_check *k, const kl_store *s, const kl_place *place, kl_points *points, kl_form *form) {
  kl_conditions c;
  kl_conditions_at(k, place, s->keep, &c);
  kl_have_most_rows(k, &k->p->slots[s->access.slot], &c);
  kl_points_of(k, stored_over(k->body, &s->access, place), &c, points);
  return kl_points_differ(points, without_shift(k, s->access.element), form);
}

static kiln_status check_store(cover *x, uint32_t i) {
  const kl_store *s = &x->w[i].body->stores[x->w[i].store];
  kl_points points;
  look_at(x, i);
  kl_truth differ = kl_stores_once(x->k, s, x->w[i].place, &points, &x->forms[i]);
  if (differ == KL_NO) return kl_refute(x->k, "stores elements more than once");
  if (differ == KL_UNKNOWN) unproved(x, "whether a store stores an element twice");
  if (!kl_points_count(&points, &x->counts[i])) unproved(x, "how many elements a store stores");
  return KILN_OK;
}

// --- apart ----------------------------------------------------------------------------------------------------------

// Elements of a store lie in first .. last, and by a modulus in window .. window_end.
typedef struct extent {
  kl_wide first, last;
  int64_t window, window_end;
} extent;

static kl_wide last_of(const kl_form *f) {
  kl_wide v = f->least;
  for (uint32_t i = 0; i < f->n; i++) v += (kl_wide)f->d[i].coef * f->d[i].most;
  return v;
}

// The remainders of elements lie together if they do not run over the modulus.
static void set_window(const kl_form *f, int64_t modulus, extent *x) {
  kl_wide from = f->least % modulus, to;
  if (from < 0) from += modulus;
  to = from;
  for (uint32_t i = 0; i < f->n; i++)
    if (f->d[i].coef % modulus) to += (kl_wide)f->d[i].coef * f->d[i].most;
  x->window = to < modulus ? (int64_t)from : 0;
  x->window_end = to < modulus ? (int64_t)to : modulus - 1;
}

static int by_first(const void *a, const void *b) {
  const extent *x = a, *y = b;
  return x->first < y->first ? -1 : x->first > y->first;
}

static int by_window(const void *a, const void *b) {
  const extent *x = a, *y = b;
  return x->window < y->window ? -1 : x->window > y->window;
}

static bool are_apart(extent *x, uint32_t n) {
  qsort(x, n, sizeof *x, by_first);
  for (uint32_t i = 1; i < n; i++)
    if (x[i].first <= x[i - 1].last) return false;
  return true;
}

// Those whose windows meet must lie apart otherwise.
static bool are_apart_by_window(extent *x, uint32_t n) {
  qsort(x, n, sizeof *x, by_window);
  for (uint32_t i = 0, end; i < n; i = end) {
    int64_t last = x[i].window_end;
    for (end = i + 1; end < n && x[end].window <= last; end++)
      if (x[end].window_end > last) last = x[end].window_end;
    if (end - i > 1 && !are_apart(x + i, end - i)) return false;
  }
  return true;
}

// Of a few stores each two may lie apart in another way.
enum { MOST_PAIRED = 32 };

static bool two_are_apart(const cover *x, uint32_t i, uint32_t k) {
  extent a = {.first = x->forms[i].least, .last = last_of(&x->forms[i])};
  extent b = {.first = x->forms[k].least, .last = last_of(&x->forms[k])};
  if (a.last < b.first || b.last < a.first) return true;
  for (uint32_t d = 0; d < x->forms[i].n; d++) {
    int64_t modulus = x->forms[i].d[d].coef;
    if (modulus < 2) continue;
    set_window(&x->forms[i], modulus, &a);
    set_window(&x->forms[k], modulus, &b);
    if (a.window_end < b.window || b.window_end < a.window) return true;
  }
  return false;
}

static bool pairs_are_apart(const cover *x) {
  if (x->n > MOST_PAIRED) return false;
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t k = 0; k < i; k++)
      if (!two_are_apart(x, i, k)) return false;
  return true;
}

// A modulus that cuts the elements in as many pieces as possible is a coefficient of some store.
static bool stores_are_apart(cover *x) {
  extent *all = KL_NEW_N(x->k->arena, extent, x->n + 1);
  for (uint32_t i = 0; i < x->n; i++) all[i] = (extent){.first = x->forms[i].least, .last = last_of(&x->forms[i])};
  if (are_apart(all, x->n)) return true;
  for (uint32_t d = x->forms[0].n; d-- > 0;) {
    if (x->forms[0].d[d].coef < 2) break;
    for (uint32_t i = 0; i < x->n; i++) {
      all[i] = (extent){.first = x->forms[i].least, .last = last_of(&x->forms[i])};
      set_window(&x->forms[i], x->forms[0].d[d].coef, &all[i]);
    }
    if (are_apart_by_window(all, x->n)) return true;
  }
  return pairs_are_apart(x);
}

// --- all of them ----------------------------------------------------------------------------------------------------

// What is stored for no point has no elements.
static void drop_empty(cover *x) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->counts[i] == 0) continue;
    x->forms[n] = x->forms[i];
    x->counts[n++] = x->counts[i];
  }
  x->n = n;
}

static kiln_status check_total(cover *x) {
  kl_check *k = x->k;
  int64_t total = 0, want = k->p->slots[x->slot].shape->count;
  for (uint32_t i = 0; i < x->n; i++)
    if (__builtin_add_overflow(total, x->counts[i], &total)) total = INT64_MAX;
  kl_look_at(k, KL_OF_SLOT, x->slot);
  if (total != want) return kl_refute(k, "%lld elements are stored of %lld", (long long)total, (long long)want);
  drop_empty(x);
  if (!stores_are_apart(x)) unproved(x, "whether two stores store one element");
  return KILN_OK;
}

// Of a flat domain thread t stores elements t*lanes .. t*lanes+lanes-1, those it keeps.
static kiln_status check_flat(cover *x, uint32_t i) {
  const kl_body *b = x->w[i].body;
  const kl_access *a = &b->stores[x->w[i].store].access;
  kl_affs *p = x->k->p->affs;
  look_at(x, i);
  const kl_aff *in_thread = kl_aff_addmul(p, a->element, kl_aff_dim(p, 0), -(int64_t)b->lanes);
  kl_interval in = kl_dom_interval(b->domain, in_thread);
  if (in.lo != 0 || in.hi != b->lanes - 1 || kl_extent(b, stored_over(b, a, x->w[i].place)) != b->threads * b->lanes)
    return kl_refute(x->k, "is not known to store the elements of one thread together");
  return KILN_OK;
}

// --- one by one -----------------------------------------------------------------------------------------------------

enum { MOST_POINTS = 1 << 18 };

// Of what a store stores, each element is in `there` afterwards and was not before.
static bool marks_new(cover *x, uint32_t i, uint8_t *there, int64_t *marked) {
  kl_check *k = x->k;
  const kl_body *b = x->w[i].body;
  const kl_store *s = &b->stores[x->w[i].store];
  const kl_aff *e = s->access.element;
  kl_vars vars = stored_over(b, &s->access, x->w[i].place);
  int64_t at[KL_MAX_VARS] = {0}, value, points = kl_extent(b, vars), count = k->p->slots[x->slot].shape->count;
  kl_conditions c;
  look_at(x, i);
  kl_conditions_at(k, x->w[i].place, s->keep, &c);
  if (!c.all || points > MOST_POINTS || kl_has_symbols(e) || kl_vars_of(b, e) & ~vars) return false;
  for (uint32_t n = 0; n < c.n; n++)
    if (kl_has_symbols(c.c[n].e) || kl_vars_of(b, c.c[n].e) & ~vars) return false;
  const kl_point point = {.at = {[KL_AFF_DIM] = at}};
  for (int64_t n = 0; n < points; n++) {
    bool holds = true;
    kl_nth_point(b, vars, KL_NONE, (uint32_t)n, at);
    for (uint32_t g = 0; g < c.n && holds; g++) {
      if (!kl_aff_eval(k->p->affs, c.c[g].e, &point, &value)) return false;
      holds = value >= c.c[g].lo && value <= c.c[g].hi;
    }
    if (!holds) continue;
    if (!kl_aff_eval(k->p->affs, e, &point, &value) || value < 0 || value >= count || there[value]) return false;
    there[value] = 1;
    ++*marked;
  }
  return true;
}

// Small scratch memory is looked at element by element where forms do not tell.
static bool is_covered(cover *x) {
  int64_t count = x->k->p->slots[x->slot].shape->count, marked = 0;
  if (count > MOST_POINTS) return false;
  uint8_t *there = KL_NEW_N(x->k->arena, uint8_t, (size_t)count + 1);
  for (uint32_t i = 0; i < x->n; i++)
    if (!marks_new(x, i, there, &marked)) return false;
  return marked == count;
}

// What nobody has stored is never read.
static kiln_status refute_scratch(cover *x) {
  kl_slot_info *s = &x->k->p->slots[x->slot];
  if (is_covered(x)) {
    s->unproved = NULL;
    return KILN_OK;
  }
  kl_look_at(x->k, KL_OF_SLOT, x->slot);
  return kl_refute(x->k, "it is not known %s", s->unproved);
}

static uint32_t launch_of(const kl_check *k, const kl_writing *w) {
  return (uint32_t)(kl_launch_of(k->p, w->part) - k->p->launches);
}

// Is what it stores what the slot's alias has there?
static bool is_copy(const kl_check *k, const kl_writing *w) {
  const kl_store *s = &w->body->stores[w->store];
  const kl_step *from = &w->body->steps[s->step];
  const kl_access *a = &from->access;
  return from->kind == KL_STEP_LOAD && a->slot == k->p->slots[w->slot].alias && a->element == s->access.element &&
         (a->guard == KL_NONE || a->guard == s->keep);
}

// Those that put an element there, which come first; changes stand behind them in launches of their own. In place what
// the parameter has is there.
static kiln_status check_changes(cover *x, const kl_writing *w, uint32_t n, bool in_place) {
  kl_check *k = x->k;
  const kl_slot_info *s = &k->p->slots[x->slot];
  kl_writing *put = KL_NEW_N(k->arena, kl_writing, n + 1);
  uint32_t last = 0, first = UINT32_MAX;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t launch = launch_of(k, &w[i]);
    bool puts = w[i].body->stores[w[i].store].how == KL_STORE_PUT;
    if (puts) put[x->n++] = w[i];
    if (puts && kl_launch_of(k->p, w[i].part)->when == KL_APART && !is_copy(k, &w[i]))
      return look_at(x, i), kl_refute(k, "is not known to copy what is there in place");
    if (puts && launch > last) last = launch;
    if (!puts && launch < first) first = launch;
  }
  x->w = put;
  kl_look_at(k, KL_OF_SLOT, x->slot);
  if (x->n && first <= last) return kl_refute(k, "is changed before it has a value");
  if (x->n == 0 && s->shape->count && !(in_place && s->alias != KL_NONE))
    return kl_refute(k, "is changed and has no value");
  return KILN_OK;
}

// Each element once, or not at all.
static kiln_status check_some(cover *x) {
  for (uint32_t i = 0; i < x->n; i++) {
    KL_TRY(check_store(x, i));
    if (!same_shift(x->w, &x->w[i])) unproved(x, "whether two stores go to places that data says alike");
  }
  drop_empty(x);
  if (x->n > 1 && !x->k->p->slots[x->slot].unproved && !stores_are_apart(x))
    unproved(x, "whether two stores store one element");
  return KILN_OK;
}

// Does data say where all stores go?
static bool scatters(const cover *x) {
  for (uint32_t i = 0; i < x->n; i++)
    if (!kl_has_symbols(x->w[i].body->stores[x->w[i].store].access.element)) return false;
  return true;
}

static kiln_status check_all(cover *x) {
  kl_slot_info *s = &x->k->p->slots[x->slot];
  bool scratch = s->kind == KL_SLOT_SCRATCH;
  for (uint32_t i = 0; i < x->n; i++) {
    KL_TRY(check_store(x, i));
    if (x->k->p->flat) KL_TRY(check_flat(x, i));
    if (s->row) KL_TRY(kl_check_kept_rows(x->k, &x->w[i].body->stores[x->w[i].store], x->w[i].place));
  }
  if (s->scattered && scatters(x)) return s->unproved = NULL, KILN_OK;
  if (s->unproved || x->k->p->flat) return scratch ? refute_scratch(x) : KILN_OK;
  KL_TRY(check_total(x));
  return scratch && s->unproved ? refute_scratch(x) : KILN_OK;
}

kiln_status kl_check_cover(kl_check *k, uint32_t slot, const kl_writing *w, uint32_t n, bool in_place) {
  cover x = {.k = k, .slot = slot, .w = w, .n = n};
  kl_slot_info *s = &k->p->slots[slot];
  if (s->mode == KL_MODE_UPDATE) {
    x.n = 0;
    KL_TRY(check_changes(&x, w, n, in_place));
    if (x.n == 0) return KILN_OK;
  }
  x.forms = KL_NEW_N(k->arena, kl_form, x.n + 1);
  x.counts = KL_NEW_N(k->arena, int64_t, x.n + 1);
  if (!in_place) s->unproved = NULL;
  return in_place && s->mode == KL_MODE_IN_PLACE ? check_some(&x) : check_all(&x);
}
