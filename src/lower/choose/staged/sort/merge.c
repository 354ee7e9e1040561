// Merging: what comes to some neighbouring places of a pair of runs, and which elements these are.
//
// Elements of the left run come first unless the right one's is less: equal ones keep their order. Every place that
// data leads to is held to those that there are.

#include "lower/choose/staged/sort/merge.h"

static uint32_t op(kl_merging *m, kl_op o, uint32_t x, uint32_t y) {
  return kl_stage_op(&m->b, o, x, y);
}

static uint32_t compare(kl_merging *m, kl_direction d, uint32_t x, uint32_t y) {
  return kl_stage_compare(&m->b, d, KL_CMP_DEFAULT, x, y);
}

uint32_t kl_merge_whole(kl_merging *m, int64_t n) {
  return kl_write_scalar(&m->b.w, m->integer, (uint64_t)n, 0);
}

// --- elements -------------------------------------------------------------------------------------------------------

kiln_status kl_merge_fetch(kl_merging *m, uint32_t array, const kl_aff *place, uint32_t keep, uint32_t *value) {
  const kl_sort *s = m->x;
  const kl_aff *index[KILN_MAX_RANK];
  if (m->shared) {
    const kl_aff *at = kl_aff_add(s->s->p, m->row, place);
    *value = kl_stage_load(&m->b, m->shared[array], &at, KL_NONE, s->type[array]);
    return KILN_OK;
  }
  kl_stage_line_index(s->s->p, s->shape, s->dim, m->outer, m->inner, place, index);
  if (m->from) {
    *value = kl_stage_load(&m->b, m->from[array], index, keep, s->type[array]);
    return KILN_OK;
  }
  if (!s->less && array == 1) {
    *value = kl_stage_number(&m->b, KILN_S32, place);
    return KILN_OK;
  }
  return kl_walk_want(&m->b.walk, s->s->instr->operands[array], 0, keep, index, value);
}

// Those that are compared, at a place that is a value.
static kiln_status fetch_compared(kl_merging *m, uint32_t place, uint32_t *values) {
  const kl_aff *at = kl_write_index(&m->b.w, place, (kl_interval){0, m->span - 1});
  for (uint32_t i = 0; i < m->x->n; i++)
    if (m->x->compared[i]) KL_TRY(kl_merge_fetch(m, i, at, m->there, &values[i]));
  return KILN_OK;
}

// Is the element a to come before b?
static kiln_status less(kl_merging *m, const uint32_t *a, const uint32_t *b, uint32_t *out) {
  const kl_sort *s = m->x;
  if (!s->less) {
    kl_compare_type type = kl_is_float(*s->type) ? KL_CMP_TOTALORDER : KL_CMP_DEFAULT;
    *out = kl_stage_compare(&m->b, s->s->instr->more->largest ? KL_GT : KL_LT, type, *a, *b);
    return KILN_OK;
  }
  uint32_t *args = KL_NEW_N(s->s->c->arena, uint32_t, 2 * s->n);
  for (uint32_t i = 0; i < s->n; i++) {
    args[2 * i] = s->compared[i] ? a[i] : kl_write_scalar(&m->b.w, s->type[i], 0, 0);
    args[2 * i + 1] = s->compared[i] ? b[i] : args[2 * i];
  }
  return kl_walk_call(&m->b.walk, s->s->number, s->less, args, out);
}

// --- cuts -----------------------------------------------------------------------------------------------------------

kl_merge_runs kl_merge_find_pair(kl_merging *m, const kl_aff *place, const kl_aff *base, int64_t run) {
  const kl_sort *s = m->x;
  kl_affs *p = s->s->p;
  const kl_aff *left = kl_aff_mulc(p, kl_aff_floordivc(p, place, 2 * run), 2 * run), *right = kl_aff_addc(p, left, run);
  kl_merge_runs r = {.nleft = kl_merge_whole(m, run), .nright = kl_merge_whole(m, run)};
  r.left = kl_stage_number(&m->b, m->integer, left);
  r.right = kl_stage_number(&m->b, m->integer, right);
  if (s->length % (2 * run) == 0) return r;
  const kl_aff *rest = kl_aff_addc(p, kl_aff_mulc(p, kl_aff_add(p, right, base), -1), s->length);
  uint32_t least = op(m, KL_OP_MINIMUM, kl_stage_number(&m->b, m->integer, rest), r.nright);
  r.nright = op(m, KL_OP_MAXIMUM, kl_merge_whole(m, 0), least);
  return r;
}

int64_t kl_merge_rounds(int64_t run) {
  int64_t rounds = 1;
  for (; run > 1; run /= 2) rounds++;
  return rounds;
}

// The cut is between lo and hi.
static kiln_status narrow(kl_merging *m, const kl_merge_runs *r, uint32_t d, uint32_t *lo, uint32_t *hi) {
  uint32_t *a = KL_NEW_N(m->x->s->c->arena, uint32_t, 2 * m->x->n), *b = a + m->x->n, is_less;
  uint32_t one = kl_merge_whole(m, 1), middle = op(m, KL_OP_SHR_LOGICAL, op(m, KL_OP_ADD, *lo, *hi), one);
  KL_TRY(fetch_compared(m, op(m, KL_OP_ADD, r->left, middle), a));
  uint32_t last = op(m, KL_OP_SUBTRACT, op(m, KL_OP_ADD, r->right, d), one);
  KL_TRY(fetch_compared(m, op(m, KL_OP_SUBTRACT, last, middle), b));
  KL_TRY(less(m, b, a, &is_less));
  uint32_t open = compare(m, KL_LT, *lo, *hi);
  uint32_t fewer = kl_stage_select(&m->b, is_less, *lo, op(m, KL_OP_ADD, middle, one));
  *hi = kl_stage_select(&m->b, op(m, KL_OP_AND, open, is_less), middle, *hi);
  *lo = kl_stage_select(&m->b, open, fewer, *lo);
  return KILN_OK;
}

kiln_status kl_merge_search(kl_merging *m, const kl_merge_runs *r, uint32_t d, uint32_t step, uint32_t *cut) {
  uint32_t bounds[2];
  bounds[1] = op(m, KL_OP_MINIMUM, d, r->nleft);
  bounds[0] = op(m, KL_OP_MAXIMUM, kl_merge_whole(m, 0), op(m, KL_OP_SUBTRACT, d, r->nright));
  bounds[0] = op(m, KL_OP_MINIMUM, bounds[0], bounds[1]); // d may lie behind both
  if (step == KL_NONE) {
    KL_TRY(narrow(m, r, d, &bounds[0], &bounds[1]));
  } else {
    uint32_t carried[2];
    kl_write_loop(&m->b.w, step, 2, bounds, (kl_vars[]){0, 0}, carried);
    KL_TRY(narrow(m, r, d, &carried[0], &carried[1]));
    kl_write_loop_end(&m->b.w, carried);
    *bounds = *carried;
  }
  *cut = *bounds;
  return KILN_OK;
}

// From either end no run goes backwards: the half before has no more elements of a run than places, nor has the one
// behind.
static uint32_t settle(kl_merging *m, const kl_merge_cuts *ends, uint32_t half, uint32_t raw) {
  uint32_t least = op(m, KL_OP_MAXIMUM, ends->begin, op(m, KL_OP_SUBTRACT, ends->end, half));
  uint32_t most = op(m, KL_OP_MINIMUM, ends->end, op(m, KL_OP_ADD, ends->begin, half));
  return op(m, KL_OP_MINIMUM, op(m, KL_OP_MAXIMUM, raw, least), most);
}

kl_merge_cuts kl_merge_stored_cuts(kl_merging *m, const kl_merge_runs *r, const kl_merge_raw *raw) {
  kl_affs *p = m->x->s->p;
  kl_dom *d = m->b.w.body->domain;
  kl_merge_cuts cuts = {kl_merge_whole(m, 0), r->nleft};
  bool never;
  for (int64_t half = raw->pieces / 2; half; half /= 2) {
    const kl_aff *within = kl_aff_modc(p, raw->piece, 2 * half);
    const kl_aff *middle = kl_dom_simplify(d, kl_aff_addc(p, kl_aff_sub(p, raw->piece, within), half));
    uint32_t there = kl_guard_and(&m->b.w.guards, m->there, middle, 0, raw->there - 1, &never), cut = r->nleft;
    if (!never) {
      const kl_aff *at = kl_aff_add(p, raw->first, middle);
      cut = kl_write_choose(&m->b.w, there, kl_stage_load(&m->b, raw->slot, &at, there, m->integer), cut);
    }
    cut = settle(m, &cuts, kl_merge_whole(m, half * raw->size), cut);
    uint32_t behind = kl_guard_and(&m->b.w.guards, KL_NONE, kl_dom_simplify(d, within), half, 2 * half - 1, &never);
    if (!never) cuts.begin = kl_write_choose(&m->b.w, behind, cut, cuts.begin);
    cuts.end = never ? cut : kl_write_choose(&m->b.w, behind, cuts.end, cut);
  }
  return cuts;
}

// A node begins at `at`.
static kiln_status go_down(kl_merging *m, const kl_merge_runs *r, uint32_t d, uint32_t step, kl_merge_cuts *cuts,
                           uint32_t *at, uint32_t *half) {
  uint32_t middle = op(m, KL_OP_ADD, *at, *half), cut;
  KL_TRY(kl_merge_search(m, r, middle, step, &cut));
  cut = settle(m, cuts, *half, cut);
  uint32_t behind = compare(m, KL_GE, d, middle);
  cuts->begin = kl_stage_select(&m->b, behind, cut, cuts->begin);
  cuts->end = kl_stage_select(&m->b, behind, cuts->end, cut);
  *at = kl_stage_select(&m->b, behind, middle, *at);
  *half = op(m, KL_OP_SHR_LOGICAL, *half, kl_merge_whole(m, 1));
  return KILN_OK;
}

kiln_status kl_merge_searched_cuts(kl_merging *m, const kl_merge_runs *r, uint32_t d, int64_t whole,
                                   const uint32_t step[2], kl_merge_cuts *cuts) {
  uint32_t first[] = {kl_merge_whole(m, 0), r->nleft, kl_merge_whole(m, 0), kl_merge_whole(m, whole / 2)}, now[4];
  memcpy(now, first, sizeof now);
  if (step[0] != KL_NONE) kl_write_loop(&m->b.w, step[0], 4, first, (kl_vars[4]){0}, now);
  *cuts = (kl_merge_cuts){now[0], now[1]};
  KL_TRY(go_down(m, r, d, step[1], cuts, &now[2], &now[3]));
  now[0] = cuts->begin;
  now[1] = cuts->end;
  if (step[0] != KL_NONE) kl_write_loop_end(&m->b.w, now);
  *cuts = (kl_merge_cuts){now[0], now[1]};
  return KILN_OK;
}

// --- pieces ---------------------------------------------------------------------------------------------------------

// Where the next elements of the two runs are, and where the piece's end.
typedef struct ends {
  uint32_t left, right, left_end, right_end;
} ends;

static ends ends_of(kl_merging *m, const kl_merge_runs *r, uint32_t d, const kl_merge_cuts *cuts, int64_t each) {
  uint32_t next = op(m, KL_OP_ADD, d, kl_merge_whole(m, each));
  uint32_t end = op(m, KL_OP_MINIMUM, op(m, KL_OP_SUBTRACT, next, cuts->end), r->nright);
  return (ends){.left = op(m, KL_OP_ADD, r->left, cuts->begin),
                .right = op(m, KL_OP_ADD, r->right, op(m, KL_OP_SUBTRACT, d, cuts->begin)),
                .left_end = op(m, KL_OP_ADD, r->left, cuts->end),
                .right_end = op(m, KL_OP_ADD, r->right, end)};
}

// Does the right run's element come next?
static kiln_status takes_right(kl_merging *m, const ends *e, const uint32_t *a, const uint32_t *b, uint32_t *takes) {
  uint32_t is_less;
  KL_TRY(less(m, b, a, &is_less));
  uint32_t gone = compare(m, KL_GE, e->left, e->left_end), there = compare(m, KL_LT, e->right, e->right_end);
  *takes = op(m, KL_OP_OR, gone, op(m, KL_OP_AND, there, is_less));
  return KILN_OK;
}

kiln_status kl_merge_piece(kl_merging *m, const kl_merge_runs *r, uint32_t d, const kl_merge_cuts *cuts, int64_t each,
                           const bool *wanted, uint32_t *const *values) {
  const kl_sort *s = m->x;
  kl_stage_body *body = &m->b;
  uint32_t *a = KL_NEW_N(s->s->c->arena, uint32_t, 3 * s->n), *b = a + s->n, *next = b + s->n, takes;
  ends e = ends_of(m, r, d, cuts, each);
  KL_TRY(fetch_compared(m, e.left, a));
  KL_TRY(fetch_compared(m, e.right, b));
  for (int64_t v = 0; v < each; v++) {
    KL_TRY(takes_right(m, &e, a, b, &takes));
    uint32_t from = kl_stage_select(body, takes, e.right, e.left);
    for (uint32_t i = 0; i < s->n; i++) {
      if (!wanted[i]) continue;
      const kl_aff *at = kl_write_index(&body->w, from, (kl_interval){0, m->span - 1});
      if (s->compared[i])
        values[i][v] = kl_stage_select(body, takes, b[i], a[i]);
      else
        KL_TRY(kl_merge_fetch(m, i, at, m->there, &values[i][v]));
    }
    if (v + 1 == each) break;
    uint32_t behind = op(m, KL_OP_ADD, from, kl_merge_whole(m, 1));
    e.left = kl_stage_select(body, takes, e.left, behind);
    e.right = kl_stage_select(body, takes, behind, e.right);
    KL_TRY(fetch_compared(m, behind, next));
    for (uint32_t i = 0; i < s->n; i++) {
      if (!s->compared[i]) continue;
      a[i] = kl_stage_select(body, takes, a[i], next[i]);
      b[i] = kl_stage_select(body, takes, next[i], b[i]);
    }
  }
  return KILN_OK;
}

// --- few elements ---------------------------------------------------------------------------------------------------

// The elements v and v + 1 change places where the second is less, if it is there.
static kiln_status order_two(kl_merging *m, const kl_aff *place, int64_t v, const bool *wanted,
                             uint32_t *const *values) {
  const kl_sort *s = m->x;
  uint32_t *a = KL_NEW_N(s->s->c->arena, uint32_t, 2 * s->n), *b = a + s->n, swap;
  const kl_aff *second = kl_dom_simplify(m->b.w.body->domain, kl_aff_addc(s->s->p, place, v + 1));
  bool never;
  uint32_t there = kl_guard_and(&m->b.w.guards, KL_NONE, second, 0, s->length - 1, &never);
  if (never) return KILN_OK;
  for (uint32_t i = 0; i < s->n; i++) {
    if (!wanted[i]) continue;
    a[i] = values[i][v];
    b[i] = values[i][v + 1];
  }
  KL_TRY(less(m, b, a, &swap));
  swap = kl_write_choose(&m->b.w, there, swap, kl_write_scalar(&m->b.w, KILN_PRED, 0, 0));
  for (uint32_t i = 0; i < s->n; i++) {
    if (!wanted[i]) continue;
    values[i][v] = kl_stage_select(&m->b, swap, b[i], a[i]);
    values[i][v + 1] = kl_stage_select(&m->b, swap, a[i], b[i]);
  }
  return KILN_OK;
}

// Neighbours, those that begin at an even place and then the others, in n turns: then n elements are in order, and
// equal ones never pass each other. Straight code: what a loop carries need not keep the bits of a NaN, which total
// orders tell apart.
kiln_status kl_merge_few(kl_merging *m, const kl_aff *place, int64_t each, const bool *wanted,
                         uint32_t *const *values) {
  for (int64_t turn = 0; turn < each; turn++)
    for (int64_t v = turn % 2; v + 1 < each; v += 2) KL_TRY(order_two(m, place, v, wanted, values));
  return KILN_OK;
}
