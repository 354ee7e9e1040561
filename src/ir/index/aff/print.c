// Expressions as text: "(d0 mod 8) * 4 + d1 / 16 - s0 + 3".
//
// Terms with a factor come first, then by kind as in XLA's text: mods, floors, ceilings, maxima, minima, variables; the
// constant last. Operands of * / mod and ceildiv are parenthesised unless they are leaves. Parts that normal form has
// moved out of a floor go back where that is shorter. A reader makes the same expression of it again.

#include "ir/index/impl.h"
#include <stdlib.h>

typedef struct printer {
  kl_affs *p;
  kl_sb *b;
  const kl_aff_names *names;
  uint32_t left; // terms that may still be written
  bool too_long;
} printer;

static void print_sum(printer *w, const kl_aff *e, int64_t modulus);

// --- what to write ------------------------------------------------------------------------------------------------

static uint64_t unit_cost(const kl_unit *u) {
  return 1 + (u->atom ? u->atom->size : u->sub->size);
}

static uint64_t sum_cost(kl_affs *p, const kl_aff *e) {
  kl_units u;
  if (!kl_aff_units(p, e, 0, &u)) return e->size;
  uint64_t n = 0;
  for (uint32_t i = 0; i < u.n; i++) n += unit_cost(&u.u[i]);
  return n;
}

static const kl_aff *atom_inner(const kl_unit *u) {
  return u->atom && u->atom->kind == KL_AFF_FLOOR ? u->atom->arg[0] : NULL;
}

// A unit with, for floors, what stands under the line: its own argument, or that and parts of the sum around it.
typedef struct part {
  kl_unit u;
  const kl_aff *inner;
} part;

static const kl_aff *part_value(kl_affs *p, const part *x) {
  return x->inner ? kl_aff_floordivc(p, x->inner, x->u.atom->k) : kl_unit_value(p, &x->u);
}

static uint64_t part_cost(kl_affs *p, const part *x) {
  return x->inner ? 1 + sum_cost(p, x->inner) : unit_cost(&x->u);
}

// Part f, a floor, with x inside of it too; NULL if that is no shorter, or normal form would not take x out again.
static const kl_aff *with_inside(kl_affs *p, const part *f, const part *x) {
  if (x->u.coef == INT64_MIN) return NULL;
  int64_t t, m = x->u.coef / f->u.coef;
  if (x->u.coef % f->u.coef != 0 || __builtin_mul_overflow(m, f->u.atom->k, &t)) return NULL;
  const kl_aff *value = part_value(p, x), *with = kl_aff_addmul(p, f->inner, value, t);
  if (with->error || sum_cost(p, with) >= sum_cost(p, f->inner) + part_cost(p, x)) return NULL;
  const kl_aff *both = kl_aff_addmul(p, part_value(p, f), value, m);
  return kl_aff_floordivc(p, with, f->u.atom->k) == both ? with : NULL;
}

// Moves other parts into the floor at f while that makes the whole shorter.
static void absorb(kl_affs *p, part *parts, uint32_t *n, uint32_t f) {
  for (uint32_t j = 0; j < *n;) {
    const kl_aff *with = j == f ? NULL : with_inside(p, &parts[f], &parts[j]);
    if (!with) {
      j++;
      continue;
    }
    parts[f].inner = with;
    (*n)--;
    memmove(&parts[j], &parts[j + 1], (*n - j) * sizeof *parts);
    if (f > j) f--;
    j = 0;
  }
}

enum { CLASS_MOD, CLASS_FLOOR, CLASS_CEIL, CLASS_QUOTIENT, CLASS_MAX, CLASS_MIN, CLASS_VARIABLE };

static bool is_ceiling(const part *x) {
  return x->inner && x->inner->c == x->u.atom->k - 1;
}

static int class_of(const part *x) {
  static const int of[] = {CLASS_VARIABLE, CLASS_VARIABLE, CLASS_VARIABLE, CLASS_VARIABLE,
                           CLASS_FLOOR,    CLASS_QUOTIENT, CLASS_MIN,      CLASS_MAX};
  if (!x->u.atom) return CLASS_MOD;
  return is_ceiling(x) ? CLASS_CEIL : of[x->u.atom->kind];
}

static int by_text(const void *a, const void *b) {
  const part *x = a, *y = b;
  bool fx = x->u.coef != 1 && x->u.coef != -1, fy = y->u.coef != 1 && y->u.coef != -1;
  fx = fx || (x->u.atom && x->u.atom->kind == KL_AFF_PRODUCT);
  fy = fy || (y->u.atom && y->u.atom->kind == KL_AFF_PRODUCT);
  if (fx != fy) return fx ? -1 : 1;
  int kx = class_of(x), ky = class_of(y);
  if (kx != ky) return kx - ky;
  if (x->u.atom && y->u.atom) return kl_aff_atom_compare(x->u.atom, y->u.atom);
  if (x->u.sub != y->u.sub) return kl_aff_compare(x->u.sub, y->u.sub);
  return (x->u.b > y->u.b) - (x->u.b < y->u.b);
}

// --- writing ------------------------------------------------------------------------------------------------------

static bool is_leaf(const kl_aff *e) {
  return (e->n == 0 && e->c >= 0) || kl_aff_is_var(e);
}

static void print_operand(printer *w, const kl_aff *e, int64_t modulus) {
  bool bare = is_leaf(e);
  if (!bare) kl_sb_putc(w->b, '(');
  print_sum(w, e, modulus);
  if (!bare) kl_sb_putc(w->b, ')');
}

static void print_variable(printer *w, const kl_aff_atom *a) {
  static const char *const letter[] = {"d", "s", "rt"};
  const kl_str *names = w->names ? w->names->of[a->kind] : NULL;
  if (names && names[a->var].n) {
    kl_sb_put(w->b, names[a->var]);
  } else {
    kl_sb_puts(w->b, letter[a->kind]);
    kl_sb_u64(w->b, a->var);
  }
}

static const char *slash(const printer *w) {
  return w->names && w->names->style == KL_AFF_WORDS ? " floordiv " : " / ";
}

// Calls have two arguments each, nested, as every reader takes them; where that would be another normal form, more.
static void print_arguments(printer *w, const kl_aff_atom *a) {
  const char *name = a->kind == KL_AFF_MIN ? "min(" : "max(";
  const kl_aff *e = a->arg[a->n - 1];
  for (uint32_t i = a->n - 1; i-- > 0;) {
    e = a->kind == KL_AFF_MIN ? kl_aff_min(w->p, a->arg[i], e) : kl_aff_max(w->p, a->arg[i], e);
  }
  bool nest = e == kl_aff_of(w->p, a);
  for (uint32_t i = 0; i < a->n; i++) {
    if (i == 0 || (nest && i + 1 < a->n)) kl_sb_puts(w->b, name);
    print_sum(w, a->arg[i], 0);
    if (i + 1 < a->n) kl_sb_puts(w->b, ", ");
  }
  for (uint32_t i = 1; i < (nest ? a->n : 2); i++) kl_sb_putc(w->b, ')');
}

static void print_floor(printer *w, const part *x) {
  bool up = is_ceiling(x);
  const kl_aff *e = up ? kl_aff_addc(w->p, x->inner, -x->inner->c) : x->inner;
  print_operand(w, e, 0);
  kl_sb_puts(w->b, up ? " ceildiv " : slash(w));
  kl_sb_i64(w->b, x->u.atom->k);
}

static void print_part(printer *w, const part *x) {
  const kl_aff_atom *a = x->u.atom;
  if (!a) {
    print_operand(w, x->u.sub, x->u.b);
    kl_sb_puts(w->b, " mod ");
    kl_sb_i64(w->b, x->u.b);
  } else if (a->kind < KL_AFF_VARS) {
    print_variable(w, a);
  } else if (a->kind == KL_AFF_FLOOR) {
    print_floor(w, x);
  } else if (a->kind == KL_AFF_MIN || a->kind == KL_AFF_MAX) {
    print_arguments(w, a);
  } else if (a->kind == KL_AFF_QUOTIENT) {
    print_operand(w, a->arg[0], 0);
    kl_sb_puts(w->b, slash(w));
    print_operand(w, a->arg[1], 0);
  } else {
    for (uint32_t i = 0; i < a->n; i++) {
      if (i) kl_sb_puts(w->b, " * ");
      print_operand(w, a->arg[i], 0);
    }
  }
}

static void print_term(printer *w, const part *x, bool first) {
  const kl_aff_atom *a = x->u.atom;
  int64_t c = x->u.coef;
  bool minus = c < 0 && c != INT64_MIN, factor = c != 1 && c != -1;
  bool call = a && (a->kind == KL_AFF_MIN || a->kind == KL_AFF_MAX);
  bool parens = !(a && a->kind < KL_AFF_VARS) && !call && (factor || (first && minus));
  if (first)
    kl_sb_puts(w->b, minus ? "-" : "");
  else
    kl_sb_puts(w->b, minus ? " - " : " + ");
  if (parens) kl_sb_putc(w->b, '(');
  print_part(w, x);
  if (parens) kl_sb_putc(w->b, ')');
  if (!factor) return;
  kl_sb_puts(w->b, " * ");
  kl_sb_i64(w->b, minus ? -c : c);
}

static void print_constant(printer *w, int64_t c, bool first) {
  bool minus = c < 0 && c != INT64_MIN;
  if (first)
    kl_sb_i64(w->b, c);
  else if (c)
    kl_sbf(w->b, "%s%lld", minus ? " - " : " + ", (long long)(minus ? -c : c));
}

static void print_parts(printer *w, part *parts, uint32_t n, int64_t c) {
  qsort(parts, n, sizeof *parts, by_text);
  uint32_t lead = 0;
  while (lead < n && parts[lead].u.coef < 0) lead++;
  if (lead == n) lead = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = i == 0 ? lead : i <= lead ? i - 1 : i;
    print_term(w, &parts[j], i == 0);
  }
  print_constant(w, c, n == 0);
}

// Sums of many terms are written as they stand.
static void print_long(printer *w, const kl_aff *e) {
  size_t bytes = e->n * sizeof(part);
  part *parts = kl_alloc(w->p->cx, bytes);
  for (uint32_t i = 0; i < e->n; i++) {
    parts[i].u = (kl_unit){e->terms[i].coef, e->terms[i].atom, NULL, 0};
    parts[i].inner = atom_inner(&parts[i].u);
  }
  print_parts(w, parts, e->n, e->c);
  kl_free(w->p->cx, parts, bytes);
}

static void print_short(printer *w, const kl_units *u, int64_t modulus) {
  part *parts = kl_alloc(w->p->cx, sizeof *parts * KL_MOST_UNITS); // frames are deep enough without it
  uint32_t n = u->n;
  for (uint32_t i = 0; i < n; i++) parts[i] = (part){u->u[i], atom_inner(&u->u[i])};
  for (int sign = 1; sign >= -1; sign -= 2) {
    for (uint32_t i = 0; n <= 8 && i < n; i++) {
      if (parts[i].inner && (parts[i].u.coef > 0) == (sign > 0)) absorb(w->p, parts, &n, i);
    }
  }
  wide c = u->c;
  if (modulus && c > modulus / 2) c -= modulus;
  print_parts(w, parts, n, (int64_t)c);
  kl_free(w->p->cx, parts, sizeof *parts * KL_MOST_UNITS);
}

// Do the units make the expression again? Residues may be written in several ways.
static bool is_faithful(kl_affs *p, const kl_units *u, const kl_aff *e, int64_t modulus) {
  if (u->c > INT64_MAX || u->c < INT64_MIN) return false;
  const kl_aff *r = kl_aff_const(p, (int64_t)u->c);
  for (uint32_t i = 0; i < u->n; i++) r = kl_aff_addmul(p, r, kl_unit_value(p, &u->u[i]), u->u[i].coef);
  return modulus ? kl_aff_modc(p, r, modulus) == kl_aff_modc(p, e, modulus) : r == e;
}

static void print_sum(printer *w, const kl_aff *e, int64_t modulus) {
  if (w->too_long || w->left < e->n) {
    w->too_long = true;
    return;
  }
  w->left -= e->n;
  kl_units *u = kl_alloc(w->p->cx, sizeof *u);
  bool fits = kl_aff_units(w->p, e, modulus, u) && is_faithful(w->p, u, e, modulus);
  if (fits)
    print_short(w, u, modulus);
  else
    print_long(w, e);
  kl_free(w->p->cx, u, sizeof *u);
}

bool kl_aff_print(kl_affs *p, kl_sb *b, const kl_aff *e, const kl_aff_names *names) {
  if (e->error) return false;
  printer w = {p, b, names, KL_MOST_PRINTED, false};
  size_t before = b->n;
  print_sum(&w, e, 0);
  if (w.too_long) {
    b->n = before;
    if (b->p) b->p[before] = 0;
  }
  return !w.too_long;
}
