// Maps: making them, and what moves variables about.

#include "ir/index/map/map.h"
#include "ir/index/impl.h"
#include <stdlib.h>

// --- making -------------------------------------------------------------------------------------------------------

const kl_map *kl_map_undefined(kl_affs *p, const char *why) {
  kl_map *m = KL_NEW(p->arena, kl_map);
  m->state = KL_MAP_UNDEFINED;
  m->why = why;
  return m;
}

static kl_map_var *copy_vars(kl_affs *p, const kl_map_var *v, uint32_t n) {
  return n ? kl_arena_dup(p->arena, v, n * sizeof *v) : NULL;
}

// The empty map of m's signature. Runtime variables keep their bounds.
static const kl_map *make_empty(kl_affs *p, const kl_map *m) {
  kl_map *e = kl_arena_dup(p->arena, m, sizeof *m);
  e->state = KL_MAP_EMPTY;
  e->nconstraints = 0;
  e->constraints = NULL;
  for (int k = 0; k <= KL_AFF_RANGE; k++) {
    kl_map_var *v = copy_vars(p, m->vars[k], m->nvars[k]);
    for (uint32_t i = 0; i < m->nvars[k]; i++) v[i].in = (kl_interval){0, -1};
    e->vars[k] = v;
  }
  const kl_aff **results = KL_NEW_N(p->arena, const kl_aff *, m->nresults + 1);
  for (uint32_t i = 0; i < m->nresults; i++) results[i] = kl_aff_const(p, 0);
  e->results = results;
  return e;
}

static int by_expression(const void *a, const void *b) {
  const kl_constraint *x = a, *y = b;
  return kl_aff_compare(x->e, y->e);
}

static void intersect(kl_interval *a, kl_interval b) {
  if (b.lo > a->lo) a->lo = b.lo;
  if (b.hi < a->hi) a->hi = b.hi;
}

// Moves bounds of dims and ranges out of the n constraints, drops what always holds, sorts, joins equal expressions.
// Returns how many stay; *empty tells that one never holds.
static uint32_t settle(kl_constraint *c, uint32_t n, kl_map_var *const vars[KL_AFF_VARS], bool *empty) {
  uint32_t out = 0;
  for (uint32_t i = 0; i < n; i++) {
    const kl_aff_atom *v = kl_aff_is_var(c[i].e);
    const kl_interval *known = v && v->kind == KL_AFF_RT ? &vars[v->kind][v->var].in : NULL;
    if (v && !known)
      intersect(&vars[v->kind][v->var].in, c[i].in);
    else if (known && c[i].in.lo <= known->lo && c[i].in.hi >= known->hi)
      continue;
    else if (kl_aff_is_const(c[i].e))
      *empty = *empty || c[i].e->c < c[i].in.lo || c[i].e->c > c[i].in.hi;
    else if (c[i].in.lo > c[i].in.hi)
      *empty = true;
    else if (c[i].in.lo > INT64_MIN || c[i].in.hi < INT64_MAX)
      c[out++] = c[i];
  }
  if (out > 1) qsort(c, out, sizeof *c, by_expression);
  n = out;
  out = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (out && c[out - 1].e == c[i].e) {
      intersect(&c[out - 1].in, c[i].in);
      *empty = *empty || c[out - 1].in.lo > c[out - 1].in.hi;
    } else {
      c[out++] = c[i];
    }
  }
  return out;
}

static const char *find_error(const kl_map *m) {
  for (uint32_t i = 0; i < m->nresults; i++) {
    if (m->results[i]->error) return kl_aff_error_text(m->results[i]->error);
  }
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    if (m->constraints[i].e->error) return kl_aff_error_text(m->constraints[i].e->error);
  }
  for (uint32_t i = 0; i < m->nvars[KL_AFF_RT]; i++) {
    const kl_producer *from = &m->vars[KL_AFF_RT][i].from;
    for (uint32_t j = 0; j < from->nindex; j++) {
      if (from->index[j]->error) return kl_aff_error_text(from->index[j]->error);
    }
  }
  return NULL;
}

const kl_map *kl_map_make(kl_affs *p, const kl_map *parts) {
  if (parts->state == KL_MAP_UNDEFINED) return parts;
  const char *error = find_error(parts);
  if (error) return kl_map_undefined(p, error);
  kl_map *m = kl_arena_dup(p->arena, parts, sizeof *parts);
  kl_map_var *vars[KL_AFF_VARS];
  bool empty = parts->state == KL_MAP_EMPTY;
  for (int k = 0; k < KL_AFF_VARS; k++) m->vars[k] = vars[k] = copy_vars(p, parts->vars[k], parts->nvars[k]);
  kl_constraint *c =
      parts->nconstraints ? kl_arena_dup(p->arena, parts->constraints, parts->nconstraints * sizeof *c) : NULL;
  m->nconstraints = c ? settle(c, parts->nconstraints, vars, &empty) : 0;
  m->constraints = m->nconstraints ? c : NULL;
  if (parts->nresults) m->results = kl_arena_dup(p->arena, parts->results, parts->nresults * sizeof *parts->results);
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) empty = empty || vars[k][i].in.lo > vars[k][i].in.hi;
  }
  return empty ? make_empty(p, m) : m;
}

const kl_map *kl_map_identity(kl_affs *p, uint32_t rank, const int64_t *sizes) {
  kl_map m = {.nvars = {rank}, .nresults = rank};
  kl_map_var *dims = KL_NEW_N(p->arena, kl_map_var, rank);
  const kl_aff **results = KL_NEW_N(p->arena, const kl_aff *, rank);
  for (uint32_t i = 0; i < rank; i++) {
    dims[i].in = (kl_interval){0, sizes[i] - 1};
    results[i] = kl_aff_dim(p, i);
  }
  m.vars[KL_AFF_DIM] = dims;
  m.results = results;
  return kl_map_make(p, &m);
}

const kl_map *kl_map_constrain(kl_affs *p, const kl_map *m, const kl_aff *e, kl_interval in) {
  if (m->state != KL_MAP_DEFINED) return m;
  kl_map parts = *m;
  kl_constraint *c = KL_NEW_N(p->arena, kl_constraint, m->nconstraints + 1);
  if (m->nconstraints) memcpy(c, m->constraints, m->nconstraints * sizeof *c);
  c[m->nconstraints] = (kl_constraint){e, in};
  parts.constraints = c;
  parts.nconstraints++;
  return kl_map_make(p, &parts);
}

const kl_map *kl_map_restrict(kl_affs *p, const kl_map *m, kl_aff_kind kind, uint32_t i, kl_interval in) {
  return kl_map_constrain(p, m, kl_aff_var(p, kind, i), in);
}

const kl_map *kl_map_with_results(kl_affs *p, const kl_map *m, const kl_aff *const *results, uint32_t n) {
  if (m->state == KL_MAP_UNDEFINED) return m;
  kl_map parts = *m;
  parts.results = results;
  parts.nresults = n;
  return kl_map_make(p, &parts);
}

const kl_map *kl_map_sub(kl_affs *p, const kl_map *m, const uint32_t *which, uint32_t n) {
  if (m->state == KL_MAP_UNDEFINED) return m;
  const kl_aff **results = KL_NEW_N(p->arena, const kl_aff *, n);
  for (uint32_t i = 0; i < n; i++) results[i] = m->results[which[i]];
  return kl_map_with_results(p, m, results, n);
}

const kl_map *kl_map_rename(kl_affs *p, const kl_map *m, kl_aff_kind kind, uint32_t i, kl_str name) {
  if (m->state == KL_MAP_UNDEFINED) return m;
  kl_map *r = kl_arena_dup(p->arena, m, sizeof *m);
  kl_map_var *v = copy_vars(p, m->vars[kind], m->nvars[kind]);
  v[i].name = kl_str_dup(p->arena, name);
  r->vars[kind] = v;
  return r;
}

// --- from another pool --------------------------------------------------------------------------------------------

// Sums of the other pool by id, once they are here.
typedef struct import {
  kl_affs *p;
  const kl_aff **done;
  size_t n;
} import;

static const kl_aff *import_sum(import *w, const kl_aff *e) {
  if (e->error) return kl_aff_error_value(w->p, e->error);
  if (e->id < w->n && w->done[e->id]) return w->done[e->id];
  kl_adder sum;
  kl_adder_open(&sum, e->c);
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    const kl_aff **arg = KL_NEW_N(w->p->arena, const kl_aff *, a->n + 1);
    for (uint32_t j = 0; j < a->n; j++) arg[j] = import_sum(w, a->arg[j]);
    const kl_aff *x = kl_aff_of(w->p, kl_affs_atom(w->p, a->kind, a->var, a->k, arg, a->n)); // normal form is the same
    kl_adder_add(w->p, &sum, x, e->terms[i].coef);
  }
  const kl_aff *r = kl_adder_sum(w->p, &sum);
  if (e->id >= w->n) {
    size_t n = (size_t)e->id * 2 + 64;
    w->done = kl_resize(w->p->cx, w->done, w->n * sizeof *w->done, n * sizeof *w->done);
    memset(w->done + w->n, 0, (n - w->n) * sizeof *w->done);
    w->n = n;
  }
  w->done[e->id] = r;
  return r;
}

static const kl_aff **import_list(import *w, const kl_aff *const *e, uint32_t n) {
  const kl_aff **out = KL_NEW_N(w->p->arena, const kl_aff *, n + 1);
  for (uint32_t i = 0; i < n; i++) out[i] = import_sum(w, e[i]);
  return out;
}

const kl_map *kl_map_import(kl_affs *p, const kl_map *m) {
import w = {.p = p };
  kl_map *r = kl_arena_dup(p->arena, m, sizeof *m);
  for (int k = 0; k < KL_AFF_VARS; k++) {
    kl_map_var *v = copy_vars(p, m->vars[k], m->nvars[k]);
    for (uint32_t i = 0; i < m->nvars[k]; i++) {
      v[i].name = kl_str_dup(p->arena, v[i].name);
      v[i].from.index = import_list(&w, v[i].from.index, v[i].from.nindex);
    }
    r->vars[k] = v;
  }
  r->results = import_list(&w, m->results, m->nresults);
  kl_constraint *c = KL_NEW_N(p->arena, kl_constraint, m->nconstraints + 1);
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    c[i] = (kl_constraint){import_sum(&w, m->constraints[i].e), m->constraints[i].in};
  }
  r->constraints = c;
  kl_free(p->cx, w.done, w.n * sizeof *w.done);
  return r;
}

// --- moving variables ---------------------------------------------------------------------------------------------

// Everything of m with its variables replaced; variables themselves are the caller's affair, but for the indices of
// `rts`, which are replaced too.
typedef struct parts {
  const kl_aff **results;
  kl_constraint *constraints;
} parts;

static void replace_index(kl_affs *p, const kl_aff_subst *s, kl_producer *from) {
  const kl_aff **index = KL_NEW_N(p->arena, const kl_aff *, from->nindex);
  kl_aff_replace(p, s, from->index, from->nindex, index);
  from->index = index;
}

static parts replace_all(kl_affs *p, const kl_aff_subst *s, const kl_map *m, uint32_t room) {
  parts out = {KL_NEW_N(p->arena, const kl_aff *, m->nresults + 1),
               KL_NEW_N(p->arena, kl_constraint, m->nconstraints + room + 1)};
  uint32_t n = m->nresults + m->nconstraints;
  const kl_aff **all = KL_NEW_N(p->arena, const kl_aff *, n + 1);
  for (uint32_t i = 0; i < m->nresults; i++) all[i] = m->results[i];
  for (uint32_t i = 0; i < m->nconstraints; i++) all[m->nresults + i] = m->constraints[i].e;
  kl_aff_replace(p, s, all, n, all);
  for (uint32_t i = 0; i < m->nresults; i++) out.results[i] = all[i];
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    out.constraints[i] = (kl_constraint){all[m->nresults + i], m->constraints[i].in};
  }
  return out;
}

// Where the variables of m go: kind and number, for each kind and number of now.
typedef struct place {
  kl_aff_kind kind;
  uint32_t i;
} place;
typedef struct moves {
  place *to[KL_AFF_VARS];
  uint32_t n[KL_AFF_VARS]; // variables of each kind afterwards
} moves;

static moves moves_of(kl_affs *p, const kl_map *m) {
  moves v = {.n = {m->nvars[0], m->nvars[1], m->nvars[2]}};
  for (int k = 0; k < KL_AFF_VARS; k++) {
    v.to[k] = KL_NEW_N(p->arena, place, m->nvars[k] + 1);
    for (uint32_t i = 0; i < m->nvars[k]; i++) v.to[k][i] = (place){(kl_aff_kind)k, i};
  }
  return v;
}

static const kl_map *move(kl_affs *p, const kl_map *m, const moves *v) {
  kl_aff_subst s = {.n = {m->nvars[0], m->nvars[1], m->nvars[2]}};
  kl_map r = *m;
  kl_map_var *vars[KL_AFF_VARS];
  for (int k = 0; k < KL_AFF_VARS; k++) {
    r.vars[k] = vars[k] = KL_NEW_N(p->arena, kl_map_var, v->n[k] + 1);
    r.nvars[k] = v->n[k];
  }
  for (int k = 0; k < KL_AFF_VARS; k++) {
    const kl_aff **to = KL_NEW_N(p->arena, const kl_aff *, m->nvars[k] + 1);
    for (uint32_t i = 0; i < m->nvars[k]; i++) {
      place at = v->to[k][i];
      to[i] = kl_aff_var(p, at.kind, at.i);
      vars[at.kind][at.i] = m->vars[k][i];
      if (at.kind != KL_AFF_RT) vars[at.kind][at.i].from = (kl_producer){0};
    }
    s.to[k] = to;
  }
  for (uint32_t i = 0; i < r.nvars[KL_AFF_RT]; i++) replace_index(p, &s, &vars[KL_AFF_RT][i].from);
  parts all = replace_all(p, &s, m, 0);
  r.results = all.results;
  r.constraints = all.constraints;
  return kl_map_make(p, &r);
}

const kl_map *kl_map_permute_dims(kl_affs *p, const kl_map *m, const uint32_t *order) {
  if (m->state == KL_MAP_UNDEFINED) return m;
  moves v = moves_of(p, m);
  for (uint32_t i = 0; i < m->nvars[KL_AFF_DIM]; i++) v.to[KL_AFF_DIM][order[i]].i = i;
  return move(p, m, &v);
}

// Variables of one kind become the last ones of another; those that stay close up.
static const kl_map *turn(kl_affs *p, const kl_map *m, kl_aff_kind from, kl_aff_kind to, const uint32_t *which,
                          uint32_t n) {
  if (m->state == KL_MAP_UNDEFINED) return m;
  moves v = moves_of(p, m);
  uint32_t stay = 0;
  for (uint32_t i = 0, j = 0; i < m->nvars[from]; i++) {
    if (j < n && which[j] == i)
      v.to[from][i] = (place){to, m->nvars[to] + j++};
    else
      v.to[from][i].i = stay++;
  }
  v.n[from] = stay;
  v.n[to] += n;
  return move(p, m, &v);
}

const kl_map *kl_map_project_dims(kl_affs *p, const kl_map *m, const uint32_t *which, uint32_t n) {
  return turn(p, m, KL_AFF_DIM, KL_AFF_RANGE, which, n);
}

const kl_map *kl_map_ranges_to_dims(kl_affs *p, const kl_map *m, const uint32_t *which, uint32_t n) {
  return turn(p, m, KL_AFF_RANGE, KL_AFF_DIM, which, n);
}

const kl_map *kl_map_symbols_to_dims(kl_affs *p, const kl_map *m) {
  if (m->state == KL_MAP_UNDEFINED) return m;
  moves v = moves_of(p, m);
  uint32_t dims = m->nvars[KL_AFF_DIM];
  for (int k = KL_AFF_RANGE; k <= KL_AFF_RT; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) v.to[k][i] = (place){KL_AFF_DIM, dims++};
    v.n[k] = 0;
  }
  v.n[KL_AFF_DIM] = dims;
  const kl_map *r = move(p, m, &v);
  if (r->state == KL_MAP_UNDEFINED) return r;
  kl_map *unnamed = kl_arena_dup(p->arena, r, sizeof *r);
  kl_map_var *names = copy_vars(p, r->vars[KL_AFF_DIM], dims);
  for (uint32_t i = m->nvars[KL_AFF_DIM]; i < dims; i++) names[i].name = (kl_str){0};
  unnamed->vars[KL_AFF_DIM] = names;
  return unnamed;
}

// --- unused variables ---------------------------------------------------------------------------------------------

typedef struct usage {
  bool *used[KL_AFF_VARS];
} usage;

static usage usage_of(kl_affs *p, const kl_map *m) {
  usage u;
  for (int k = 0; k < KL_AFF_VARS; k++) u.used[k] = KL_NEW_N(p->arena, bool, m->nvars[k] + 1);
  return u;
}

static bool any_used(const kl_map *m, const usage *u) {
  for (int k = 0; k < KL_AFF_VARS; k++) {
    if (m->nvars[k] && memchr(u->used[k], 1, m->nvars[k])) return true;
  }
  return false;
}

// Marks the variables of e as used if it has one that is; tells whether that marked any.
static bool spread(kl_affs *p, const kl_map *m, const kl_aff *e, usage *u, bool *kept) {
  usage own = usage_of(p, m);
  bool touches = false, grows = false;
  kl_aff_mark(p, e, own.used, m->nvars);
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) touches = touches || (own.used[k][i] && u->used[k][i]);
  }
  *kept = touches || !any_used(m, &own);
  for (int k = 0; k < KL_AFF_VARS && touches; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) {
      grows = grows || (own.used[k][i] && !u->used[k][i]);
      u->used[k][i] |= own.used[k][i];
    }
  }
  return grows;
}

// A constraint on a runtime variable is a condition, whatever else the variable is for.
static void mark_conditions(kl_affs *p, const kl_map *m, usage *u) {
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    usage own = usage_of(p, m);
    kl_aff_mark(p, m->constraints[i].e, own.used, m->nvars);
    for (uint32_t j = 0; j < m->nvars[KL_AFF_RT]; j++) u->used[KL_AFF_RT][j] |= own.used[KL_AFF_RT][j];
  }
}

// To a fixed point: what constraints tie to used variables, and what says which runtime value a used one is.
static void close_usage(kl_affs *p, const kl_map *m, usage *u, bool *kept) {
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < m->nconstraints; i++) {
      if (!kept[i] && spread(p, m, m->constraints[i].e, u, &kept[i])) more = true;
    }
    for (uint32_t i = 0; i < m->nvars[KL_AFF_RT]; i++) {
      const kl_producer *from = &m->vars[KL_AFF_RT][i].from;
      if (!u->used[KL_AFF_RT][i]) continue;
      usage own = usage_of(p, m);
      for (uint32_t j = 0; j < from->nindex; j++) kl_aff_mark(p, from->index[j], own.used, m->nvars);
      for (int k = 0; k < KL_AFF_VARS; k++) {
        for (uint32_t j = 0; j < m->nvars[k]; j++) {
          more = more || (own.used[k][j] && !u->used[k][j]);
          u->used[k][j] |= own.used[k][j];
        }
      }
    }
  }
}

// Only the dropped constraints and their variables: does nothing satisfy them?
static kl_truth dropped_is_empty(kl_affs *p, const kl_map *m, const bool *kept) {
  kl_map part = *m;
  kl_constraint *c = KL_NEW_N(p->arena, kl_constraint, m->nconstraints + 1);
  part.nconstraints = 0;
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    if (!kept[i]) c[part.nconstraints++] = m->constraints[i];
  }
  part.constraints = c;
  part.nresults = 0;
  return part.nconstraints ? kl_map_is_empty(p, &part, KL_MAP_QUOTA / 16, NULL) : KL_NO;
}

const kl_map *kl_map_remove_unused(kl_affs *p, const kl_map *m, bool dims, bool *const removed[KL_AFF_VARS]) {
  for (int k = 0; k < KL_AFF_VARS && removed; k++) {
    if (removed[k] && m->nvars[k]) memset(removed[k], 0, m->nvars[k]);
  }
  if (m->state == KL_MAP_UNDEFINED) return m;
  usage u = usage_of(p, m);
  bool *kept = KL_NEW_N(p->arena, bool, m->nconstraints + 1);
  for (uint32_t i = 0; i < m->nresults; i++) kl_aff_mark(p, m->results[i], u.used, m->nvars);
  if (!dims && m->nvars[KL_AFF_DIM]) memset(u.used[KL_AFF_DIM], 1, m->nvars[KL_AFF_DIM]);
  mark_conditions(p, m, &u);
  close_usage(p, m, &u, kept);
  kl_truth lost = dropped_is_empty(p, m, kept);
  kl_map r = *m;
  moves v = moves_of(p, m);
  kl_constraint *c = KL_NEW_N(p->arena, kl_constraint, m->nconstraints + 1);
  r.nconstraints = 0;
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    if (lost == KL_UNKNOWN && !kept[i]) { // what cannot be decided stays
      kl_aff_mark(p, m->constraints[i].e, u.used, m->nvars);
      kept[i] = true;
    }
    if (kept[i]) c[r.nconstraints++] = m->constraints[i];
  }
  close_usage(p, m, &u, kept);
  r.constraints = c;
  if (lost == KL_YES) r.state = KL_MAP_EMPTY;
  for (int k = 0; k < KL_AFF_VARS; k++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->nvars[k]; i++) {
      bool out = !u.used[k][i];
      v.to[k][i].i = out ? m->nvars[k] - 1 - (i - n) : n; // behind those that stay
      n += !out;
      if (removed && removed[k]) removed[k][i] = out;
    }
  }
  const kl_map *ordered = move(p, &r, &v);
  if (ordered->state == KL_MAP_UNDEFINED) return ordered;
  kl_map *cut = kl_arena_dup(p->arena, ordered, sizeof *ordered);
  for (int k = 0; k < KL_AFF_VARS; k++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->nvars[k]; i++) n += u.used[k][i];
    cut->nvars[k] = n;
  }
  return cut;
}

// --- composition --------------------------------------------------------------------------------------------------

static bool same_producer(const kl_producer *a, const kl_producer *b) {
  if (!a->id || a->id != b->id || a->nindex != b->nindex) return false;
  for (uint32_t i = 0; i < a->nindex; i++) {
    if (a->index[i] != b->index[i]) return false;
  }
  return true;
}

static kl_interval both(kl_interval a, kl_interval b) {
  intersect(&a, b);
  return a;
}

// Runtime variables of one producer and equal indices become the first of them.
static const kl_map *merge_rts(kl_affs *p, const kl_map *m) {
  uint32_t n = m->nvars[KL_AFF_RT], out = 0;
  bool any = false;
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < i && !any; j++)
      any = same_producer(&m->vars[KL_AFF_RT][i].from, &m->vars[KL_AFF_RT][j].from);
  }
  if (!any) return m;
  kl_map r = *m;
  kl_map_var *vars = KL_NEW_N(p->arena, kl_map_var, n);
  const kl_aff **to = KL_NEW_N(p->arena, const kl_aff *, n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = 0;
    while (j < out && !same_producer(&m->vars[KL_AFF_RT][i].from, &vars[j].from)) j++;
    if (j == out)
      vars[out++] = m->vars[KL_AFF_RT][i];
    else
      vars[j].in = both(vars[j].in, m->vars[KL_AFF_RT][i].in);
    to[i] = kl_aff_rt(p, j);
  }
  kl_aff_subst s = {.to = {NULL, NULL, to}, .n = {0, 0, n}};
  for (uint32_t i = 0; i < out; i++) replace_index(p, &s, &vars[i].from);
  parts all = replace_all(p, &s, m, 0);
  r.nvars[KL_AFF_RT] = out;
  r.vars[KL_AFF_RT] = vars;
  r.results = all.results;
  r.constraints = all.constraints;
  // An index may itself have held a variable that was merged.
  return merge_rts(p, kl_map_make(p, &r));
}

static kl_map_var *joined(kl_affs *p, const kl_map *second, const kl_map *first, int kind) {
  uint32_t a = second->nvars[kind], b = first->nvars[kind];
  kl_map_var *v = KL_NEW_N(p->arena, kl_map_var, a + b + 1);
  if (a) memcpy(v, second->vars[kind], a * sizeof *v);
  if (b) memcpy(v + a, first->vars[kind], b * sizeof *v);
  return v;
}

// Variables of first keep their dims; its ranges and runtime variables come behind second's.
static kl_aff_subst behind(kl_affs *p, const kl_map *first, const kl_map *second) {
  kl_aff_subst s = {.n = {0, first->nvars[KL_AFF_RANGE], first->nvars[KL_AFF_RT]}};
  for (int k = KL_AFF_RANGE; k <= KL_AFF_RT; k++) {
    const kl_aff **to = KL_NEW_N(p->arena, const kl_aff *, first->nvars[k] + 1);
    for (uint32_t i = 0; i < first->nvars[k]; i++) to[i] = kl_aff_var(p, (kl_aff_kind)k, second->nvars[k] + i);
    s.to[k] = to;
  }
  return s;
}

const kl_map *kl_map_compose(kl_affs *p, const kl_map *first, const kl_map *second) {
  if (first->state == KL_MAP_UNDEFINED) return first;
  if (second->state == KL_MAP_UNDEFINED) return second;
  if (first->nresults != second->nvars[KL_AFF_DIM]) {
    return kl_map_undefined(p, "the second map has not as many dims as the first has results");
  }
  kl_map r = {.nvars = {first->nvars[0], first->nvars[1] + second->nvars[1], first->nvars[2] + second->nvars[2]}};
  if (first->state == KL_MAP_EMPTY || second->state == KL_MAP_EMPTY) r.state = KL_MAP_EMPTY;
  kl_aff_subst s = behind(p, first, second);
  parts a = replace_all(p, &s, first, 0);
  kl_aff_subst into = {.to = {a.results}, .n = {first->nresults}};
  parts b = replace_all(p, &into, second, first->nconstraints + first->nresults);
  uint32_t n = second->nconstraints;
  for (uint32_t i = 0; i < first->nconstraints; i++) b.constraints[n++] = a.constraints[i];
  for (uint32_t i = 0; i < first->nresults; i++) {
    b.constraints[n++] = (kl_constraint){a.results[i], second->vars[KL_AFF_DIM][i].in};
  }
  r.vars[KL_AFF_DIM] = first->vars[KL_AFF_DIM];
  r.vars[KL_AFF_RANGE] = joined(p, second, first, KL_AFF_RANGE);
  kl_map_var *rts = joined(p, second, first, KL_AFF_RT);
  for (uint32_t i = 0; i < r.nvars[KL_AFF_RT]; i++) {
    replace_index(p, i < second->nvars[KL_AFF_RT] ? &into : &s, &rts[i].from);
  }
  r.vars[KL_AFF_RT] = rts;
  r.results = b.results;
  r.nresults = second->nresults;
  r.constraints = b.constraints;
  r.nconstraints = n;
  return merge_rts(p, kl_map_make(p, &r));
}

// --- points -------------------------------------------------------------------------------------------------------

bool kl_map_eval(kl_affs *p, const kl_map *m, const kl_point *x, int64_t *results) {
  if (m->state == KL_MAP_UNDEFINED) return false;
  for (uint32_t i = 0; i < m->nresults; i++) {
    if (!kl_aff_eval(p, m->results[i], x, &results[i])) return false;
  }
  return true;
}

bool kl_map_contains(kl_affs *p, const kl_map *m, const kl_point *x) {
  if (m->state != KL_MAP_DEFINED) return false;
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) {
      if (x->at[k][i] < m->vars[k][i].in.lo || x->at[k][i] > m->vars[k][i].in.hi) return false;
    }
  }
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    wide v;
    const kl_constraint *c = &m->constraints[i];
    if (!kl_aff_eval_wide(p, c->e, x, &v) || !kl_in_interval(v, c->in)) return false;
  }
  return true;
}

int64_t kl_map_points(const kl_map *m) {
  int64_t n = 1;
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) {
      kl_interval in = m->vars[k][i].in;
      wide size = (wide)in.hi - in.lo + 1;
      if (size <= 0) return 0;
      if (size > INT64_MAX || __builtin_mul_overflow(n, (int64_t)size, &n)) n = INT64_MAX;
    }
  }
  return n;
}
