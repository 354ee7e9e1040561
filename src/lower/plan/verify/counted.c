// Slots that are as long as rows are launched.
//
// The number of rows is a symbol in guards; what is launched says something of it, too. Nobody reads or writes beyond
// the rows that there are, and all that is in them is stored: what a plan covers for the most rows, it covers for any
// number of them, as far as these go.

#include "lower/plan/verify/check.h"

static const kl_aff *rows(const kl_check *k) {
  return kl_aff_rt(k->p->affs, KL_FIRST_SYMBOL);
}

// Blocks of a group have rows from group * q / unit on. Whole blocks of a flat domain have all their elements, and so
// has each thread of its tail.
void kl_set_launched(kl_check *k) {
  kl_affs *p = k->p->affs;
  const kl_body *b = k->body;
  const kl_plan_launch *l = k->launch;
  k->launched = NULL;
  if (k->p->flat && b->threads) {
    const kl_aff *last = kl_aff_addc(p, kl_aff_mulc(p, kl_aff_dim(p, 0), b->lanes), (int64_t)b->lanes - 1);
    k->launched = kl_aff_addmul(p, last, rows(k), -k->p->row);
  }
  kl_vars blocks = kl_bound(b, KL_BIND_BLOCK);
  if (!l->group || !blocks || l->unit <= 0) return;
  const kl_aff *q = kl_aff_dim(p, (uint32_t)__builtin_ctz(blocks));
  int64_t by = l->group < l->unit ? l->group : l->unit;
  k->launched = kl_aff_addmul(p, kl_aff_mulc(p, q, l->group / by), rows(k), -(l->unit / by));
}

static bool is_below_rows(kl_check *k, const kl_aff *e, int64_t row, const kl_conditions *c) {
  return kl_is_within(k, kl_aff_addmul(k->p->affs, e, rows(k), -row), INT64_MIN, -1, c);
}

// c * floor(a / k) and less than c besides is below row * N if floor(a / k) is below row / c * N, which a says.
static bool is_floor_below(kl_check *k, const kl_aff *e, int64_t row, const kl_aff_term *t, const kl_conditions *c) {
  int64_t of_floor;
  if (t->atom->kind != KL_AFF_FLOOR || t->coef < 1 || row % t->coef) return false;
  const kl_aff *rest = kl_aff_addmul(k->p->affs, e, kl_aff_of(k->p->affs, t->atom), -t->coef);
  if (!kl_is_within(k, rest, INT64_MIN, t->coef - 1, c)) return false;
  if (__builtin_mul_overflow(row / t->coef, t->atom->k, &of_floor)) return false;
  return is_below_rows(k, t->atom->arg[0], of_floor, c);
}

bool kl_is_in_rows(kl_check *k, const kl_slot_info *s, const kl_aff *element, const kl_conditions *c) {
  for (uint32_t i = 0; i < element->n; i++)
    if (is_floor_below(k, element, s->row, &element->terms[i], c)) return true;
  return is_below_rows(k, element, s->row, c);
}

// A store of a block that is left out: its element lies behind group * q rows of its slot, times unit.
static kiln_status check_left_out(kl_check *k, uint32_t store) {
  const kl_body *b = k->body;
  const kl_plan_launch *l = k->launch;
  const kl_store *s = &b->stores[store];
  const kl_slot_info *slot = &k->p->slots[s->access.slot];
  kl_affs *p = k->p->affs;
  if (slot->kind == KL_SLOT_SHARED) return KILN_OK;
  kl_look_at(k, KL_OF_STORE, store);
  int64_t of_group;
  if (!slot->row || __builtin_mul_overflow(slot->row, l->group, &of_group))
    return kl_refute(k, "is in a launch of some blocks, and s%u has no rows", s->access.slot);
  const kl_aff *q = kl_aff_dim(p, (uint32_t)__builtin_ctz(kl_bound(b, KL_BIND_BLOCK)));
  const kl_aff *behind = kl_aff_addmul(p, kl_aff_mulc(p, s->access.element, l->unit), q, -of_group);
  kl_conditions where;
  const kl_aff *launched = k->launched; // it is about others
  k->launched = NULL;
  kl_conditions_at(k, k->stored[store], s->keep, &where);
  k->launched = launched;
  return kl_is_within(k, behind, 0, INT64_MAX, &where)
             ? KILN_OK
             : kl_refute(k, "is not known to lie behind the first row of its block");
}

static kiln_status check_symbol(kl_check *k) {
  const kl_body *b = k->body;
  kl_look_at(k, KL_OF_BODY, 0);
  for (uint32_t i = 0; i < b->nsymbols; i++)
    if (kl_is_counted_in(&b->symbols[i]) != (i == 0 && k->p->counted))
      return kl_refute(k, "no step makes symbol %u", i);
  if (!k->p->counted) return KILN_OK;
  if (b->nsymbols == 0) return kl_refute(k, "does not know the number of rows");
  kl_interval in = kl_dom_interval(b->domain, rows(k));
  if (b->symbols->lo != 1 || b->symbols->hi != k->p->rows || b->symbols->vars || in.lo != 1 || in.hi != k->p->rows)
    return kl_refute(k, "takes %lld..%lld for the number of rows", (long long)in.lo, (long long)in.hi);
  return KILN_OK;
}

kiln_status kl_check_counted(kl_check *k) {
  const kl_plan_launch *l = k->launch;
  KL_TRY(check_symbol(k));
  if (!l->group) return KILN_OK;
  kl_look_at(k, KL_OF_BODY, 0);
  bool divides = l->group > 0 && l->unit > 0 && (l->group % l->unit == 0 || l->unit % l->group == 0);
  if (!k->p->counted || k->p->flat || !divides || l->nparts != 1 || k->p->parts[l->first_part].tail.threads ||
      !kl_bound(k->body, KL_BIND_BLOCK))
    return kl_refute(k, "is in a launch of some blocks, %lld rows for %lld", (long long)l->group, (long long)l->unit);
  for (uint32_t i = 0; i < k->body->nstores; i++) KL_TRY(check_left_out(k, i));
  return KILN_OK;
}

// The coefficient of the number of rows; 0: it has no part in e.
static int64_t of_rows(const kl_aff *e) {
  for (uint32_t i = 0; i < e->n; i++)
    if (e->terms[i].atom->kind == KL_AFF_RT && e->terms[i].atom->var == KL_FIRST_SYMBOL) return e->terms[i].coef;
  return 0;
}

static bool is_of_rows(const kl_aff *e) {
  return of_rows(e) != 0;
}

// Is by * e below by * (hi + 1)? Then e is at most hi: what is known may be of a multiple of it.
static bool is_multiple_below(kl_check *k, const kl_condition *c, int64_t by, const kl_conditions *known) {
  int64_t most;
  if (c->hi == INT64_MAX || __builtin_mul_overflow(by, c->hi + 1, &most)) return false;
  return kl_is_within(k, kl_aff_mulc(k->p->affs, c->e, by), INT64_MIN, most - 1, known);
}

// Is e in lo .. hi, where what is known is of elements, `row` for each row, and e of fewer for each?
static bool is_within_rows(kl_check *k, const kl_condition *c, int64_t each, int64_t row, const kl_conditions *known) {
  if (kl_is_within(k, c->e, c->lo, c->hi, known)) return true;
  if (each < 1 || row % each || !kl_is_within(k, c->e, c->lo, INT64_MAX, known)) return false;
  return is_multiple_below(k, c, row / each, known);
}

// each * rows + e <= hi, as a condition on e. One that follows from the others is none.
void kl_have_most_rows(kl_check *k, const kl_slot_info *s, kl_conditions *c) {
  kl_conditions all = *c;
  if (!k->p->counted) return;
  c->n = 0;
  for (uint32_t i = 0; i < all.n; i++)
    if (!is_of_rows(all.c[i].e)) c->c[c->n++] = all.c[i];
  for (uint32_t i = 0; i < all.n; i++) {
    int64_t each = of_rows(all.c[i].e), hi;
    if (each == 0) continue;
    const kl_aff *e = kl_aff_addmul(k->p->affs, all.c[i].e, rows(k), -each);
    if (__builtin_mul_overflow(each, k->p->rows, &hi) || __builtin_sub_overflow(all.c[i].hi, hi, &hi)) hi = INT64_MAX;
    kl_condition most = {e, INT64_MIN, hi};
    if (!is_within_rows(k, &most, -each, s->row, c)) c->c[c->n++] = most;
  }
}

// Where all other guards hold, and the element is in a row that there is, those that ask for the number of rows do.
kiln_status kl_check_kept_rows(kl_check *k, const kl_store *s, const kl_place *place) {
  const kl_slot_info *slot = &k->p->slots[s->access.slot];
  kl_conditions all, others = {.all = true};
  kl_conditions_at(k, place, s->keep, &all);
  for (uint32_t i = 0; i < all.n; i++)
    if (!is_of_rows(all.c[i].e)) others.c[others.n++] = all.c[i];
  if (!all.all || others.n == KL_MOST_CONDITIONS) return kl_refute(k, "has more guards than can be followed");
  const kl_aff *there = kl_aff_addmul(k->p->affs, s->access.element, rows(k), -slot->row);
  others.c[others.n++] = (kl_condition){there, INT64_MIN, -1};
  for (uint32_t i = 0; i < all.n; i++)
    if (all.c[i].e != k->launched && is_of_rows(all.c[i].e) &&
        !is_within_rows(k, &all.c[i], -of_rows(all.c[i].e), slot->row, &others))
      return kl_refute(k, "is not known to store all elements of the rows that there are");
  return KILN_OK;
}
