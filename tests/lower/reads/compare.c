#include "compare.h"

#include <stdio.h>
#include <string.h>

compare_counts compared;

enum { MOST_VARS = 64 };

// --- pairs --------------------------------------------------------------------------------------------------------

// Pairs (a, b) of numbers below na and nb.
typedef struct pairs {
  int64_t na, nb;
  uint8_t *in;
} pairs;

static pairs pairs_new(int64_t na, int64_t nb) {
  return (pairs){na, nb, calloc((size_t)(na * nb) + 1, 1)};
}

static void pairs_add(pairs *p, int64_t a, int64_t b) {
  p->in[a * p->nb + b] = 1;
}

// --- the pairs of a map -------------------------------------------------------------------------------------------

// Dims and ranges are tried one by one, in that order. A runtime variable has its value as soon as its index does;
// constraints are looked at as soon as they can be.
typedef struct trial {
  const model *s;
  kl_affs *p;
  const uint32_t *frames; // of the map's runtime variables: the model's; NULL: the same
  const kl_map *m;
  const kl_shape *from, *to;
  uint32_t nvars;
  uint32_t needs_constraint[4 * MOST_VARS], needs_rt[MOST_VARS]; // variables that must have values
  int64_t x[KL_AFF_VARS][MOST_VARS];
  kl_point at;
  bool swap;
  pairs *out;
  const char *text;
} trial;

static uint32_t needs(const trial *t, const kl_aff *e) {
  bool used[KL_AFF_VARS][MOST_VARS] = {{false}};
  bool *const by_kind[KL_AFF_VARS] = {used[0], used[1], used[2]};
  uint32_t most = 0;
  kl_aff_mark(t->p, e, by_kind, t->m->nvars);
  for (uint32_t i = 0; i < t->m->nvars[KL_AFF_DIM]; i++)
    if (used[KL_AFF_DIM][i]) most = i + 1;
  for (uint32_t i = 0; i < t->m->nvars[KL_AFF_RANGE]; i++)
    if (used[KL_AFF_RANGE][i]) most = t->m->nvars[KL_AFF_DIM] + i + 1;
  for (uint32_t i = 0; i < t->m->nvars[KL_AFF_RT]; i++)
    if (used[KL_AFF_RT][i] && t->needs_rt[i] > most) most = t->needs_rt[i];
  return most;
}

// Runtime variables may stand in each other's indices: as often as there are variables is enough.
static void find_needs(trial *t) {
  uint32_t n = t->m->nvars[KL_AFF_RT];
  memset(t->needs_rt, 0, sizeof t->needs_rt);
  for (uint32_t round = 0; round <= n; round++)
    for (uint32_t i = 0; i < n; i++) {
      const kl_producer *from = &t->m->vars[KL_AFF_RT][i].from;
      for (uint32_t k = 0; k < from->nindex; k++) {
        uint32_t at = needs(t, from->index[k]);
        if (at > t->needs_rt[i]) t->needs_rt[i] = at;
      }
    }
  for (uint32_t i = 0; i < t->m->nconstraints; i++) t->needs_constraint[i] = needs(t, t->m->constraints[i].e);
}

// What a runtime variable is for the values so far; false where the element it names is not there.
static bool runtime_value(trial *t, uint32_t i, int64_t *out) {
  const kl_map_var *v = &t->m->vars[KL_AFF_RT][i];
  const kl_runtime *r = v->from.payload;
  EXPECT(r, "a runtime variable without a producer\n%s", t->text);
  const model_value *from = model_find(t->s, t->frames ? t->frames[r->frame] : r->frame, r->instr, r->leaf);
  int64_t node = 0;
  EXPECT(from->instr == r->instr && from->leaf == r->leaf, "no leaf %u\n%s", r->leaf, t->text);
  EXPECT(v->from.nindex == from->shape->rank, "an element with %u indices of %u\n%s", v->from.nindex, from->shape->rank,
         t->text);
  for (uint32_t k = 0; k < v->from.nindex; k++) {
    int64_t at;
    if (!kl_aff_eval(t->p, v->from.index[k], &t->at, &at) || at < 0 || at >= from->shape->dims[k]) return false;
    node = node * from->shape->dims[k] + at;
  }
  *out = model_integer(t->s, from->first + node);
  if (r->clamped) *out = *out < r->lo ? r->lo : *out > r->hi ? r->hi : *out;
  return true;
}

// With `n` variables given: do runtime variables and constraints that are due hold? Two rounds, as one variable's
// index may hold another variable.
static bool holds(trial *t, uint32_t n) {
  uint32_t nrt = t->m->nvars[KL_AFF_RT];
  bool known[MOST_VARS] = {false};
  for (uint32_t round = 0; round < nrt; round++)
    for (uint32_t i = 0; i < nrt; i++) {
      int64_t v;
      if (t->needs_rt[i] > n || known[i]) continue;
      bool used[KL_AFF_VARS][MOST_VARS] = {{false}}, ready = true;
      bool *const by_kind[KL_AFF_VARS] = {used[0], used[1], used[2]};
      const kl_map_var *var = &t->m->vars[KL_AFF_RT][i];
      for (uint32_t k = 0; k < var->from.nindex; k++) kl_aff_mark(t->p, var->from.index[k], by_kind, t->m->nvars);
      for (uint32_t k = 0; k < nrt; k++) ready = ready && (!used[KL_AFF_RT][k] || known[k]);
      if (!ready) continue;
      if (!runtime_value(t, i, &v)) return false;
      EXPECT(v >= var->in.lo && v <= var->in.hi, "runtime variable %u is %ld, out of its bounds\n%s", i, (long)v,
             t->text);
      t->x[KL_AFF_RT][i] = v;
      known[i] = true;
    }
  for (uint32_t i = 0; i < t->m->nconstraints; i++) {
    int64_t v;
    if (t->needs_constraint[i] > n) continue;
    if (!kl_aff_eval(t->p, t->m->constraints[i].e, &t->at, &v)) return false;
    if (v < t->m->constraints[i].in.lo || v > t->m->constraints[i].in.hi) return false;
  }
  return true;
}

static void point(trial *t) {
  int64_t y[KILN_MAX_RANK + 1], a = 0, b = 0;
  EXPECT(kl_map_eval(t->p, t->m, &t->at, y), "a result has no value\n%s", t->text);
  for (uint32_t d = 0; d < t->from->rank; d++) a = a * t->from->dims[d] + t->x[KL_AFF_DIM][d];
  for (uint32_t d = 0; d < t->to->rank; d++) {
    EXPECT(y[d] >= 0 && y[d] < t->to->dims[d], "result %u is %ld of %ld\n%s", d, (long)y[d], (long)t->to->dims[d],
           t->text);
    b = b * t->to->dims[d] + y[d];
  }
  pairs_add(t->out, t->swap ? b : a, t->swap ? a : b);
}

static void try_from(trial *t, uint32_t n) {
  if (!holds(t, n)) return;
  if (n == t->nvars) {
    point(t);
    return;
  }
  uint32_t nd = t->m->nvars[KL_AFF_DIM], kind = n < nd ? KL_AFF_DIM : KL_AFF_RANGE, i = n < nd ? n : n - nd;
  const kl_map_var *v = &t->m->vars[kind][i];
  for (int64_t x = v->in.lo; x <= v->in.hi; x++) {
    t->x[kind][i] = x;
    try_from(t, n + 1);
  }
}

// Adds the pairs (index in `from`, index in `to`) of a defined map; `swap`: the other way round.
static void add_map(const model *s, kl_affs *p, const uint32_t *frames, const kl_map *m, const kl_shape *from,
                    const kl_shape *to, bool swap, pairs *out, const char *text) {
  if (m->state == KL_MAP_EMPTY) return;
  trial t = {.s = s, .p = p, .frames = frames, .m = m, .from = from, .to = to, .swap = swap, .out = out, .text = text};
  EXPECT(m->nvars[KL_AFF_DIM] == from->rank && m->nresults == to->rank, "a map of %u dims and %u results\n%s",
         m->nvars[KL_AFF_DIM], m->nresults, text);
  for (uint32_t i = 0; i < from->rank; i++)
    EXPECT(m->vars[KL_AFF_DIM][i].in.lo >= 0 && m->vars[KL_AFF_DIM][i].in.hi < from->dims[i],
           "dim %u leaves its bounds\n%s", i, text);
  t.nvars = m->nvars[KL_AFF_DIM] + m->nvars[KL_AFF_RANGE];
  EXPECT(t.nvars < MOST_VARS && m->nconstraints < 4 * MOST_VARS && m->nvars[KL_AFF_RT] < MOST_VARS, "a map too large");
  for (int kind = 0; kind < KL_AFF_VARS; kind++) t.at.at[kind] = t.x[kind];
  find_needs(&t);
  try_from(&t, 0);
}

// --- dependences against the truth --------------------------------------------------------------------------------

// All pairs of some dependences, and those of the exact ones.
typedef struct claim {
  pairs all, exact;
  bool whole, known; // all are exact; none is undefined
} claim;

static claim claim_new(int64_t na, int64_t nb) {
  return (claim){pairs_new(na, nb), pairs_new(na, nb), true, true};
}

static void claim_add(claim *c, const model *s, kl_affs *p, const uint32_t *frames, const kl_dependence *d,
                      const kl_shape *from, const kl_shape *to, bool swap, const char *text) {
  compared.maps++;
  compared.exact += d->exact;
  compared.unknown += d->map->state == KL_MAP_UNDEFINED;
  if (!d->exact) {
    EXPECT(d->why, "neither exact nor a reason why not\n%s", text);
    c->whole = false;
  }
  if (d->map->state == KL_MAP_UNDEFINED) {
    EXPECT(!d->exact, "unknown, but exact\n%s", text);
    c->known = false;
    return;
  }
  add_map(s, p, frames, d->map, from, to, swap, &c->all, text);
  if (d->exact) add_map(s, p, frames, d->map, from, to, swap, &c->exact, text);
}

static void judge(claim *c, pairs *truth, const char *what, const char *text) {
  for (int64_t i = 0; i < truth->na * truth->nb; i++) {
    long a = (long)(i / truth->nb), b = (long)(i % truth->nb);
    EXPECT(!truth->in[i] || c->all.in[i] || !c->known, "%s: element %ld needs element %ld, no map says so\n%s", what, a,
           b, text);
    EXPECT(!c->exact.in[i] || truth->in[i], "%s: element %ld does not need element %ld, an exact map says so\n%s", what,
           a, b, text);
  }
  free(c->all.in);
  free(c->exact.in);
  free(truth->in);
}

// What the message of a failure names: the text of the dependences.
static const char *describe(kl_affs *p, kl_sb *b, kl_dependences deps, const char *text) {
  b->n = 0;
  for (uint32_t i = 0; i < deps.n; i++) {
    kl_sbf(b, "operand %u.%u%s: ", deps.p[i].operand, deps.p[i].leaf, deps.p[i].exact ? "" : " (over)");
    kl_map_print(p, b, deps.p[i].map, KL_MAP_LINE);
    kl_sb_putc(b, '\n');
  }
  kl_sbf(b, "%s", text);
  return b->p;
}

// --- single ops ---------------------------------------------------------------------------------------------------

static bool followed(const kl_instr *in) { // by walks, not by rules
  return in->op == KL_OP_FUSION || in->op == KL_OP_CALL || in->op == KL_OP_PARAMETER;
}

static pairs truth_of_op(const model *s, const model_value *v, uint32_t operand, uint32_t leaf,
                         const model_value *from) {
  pairs t = pairs_new(v->count, from->count);
  for (int64_t i = 0; i < v->count; i++)
    for (int64_t k = s->begin[v->first + i]; k < s->begin[v->first + i + 1]; k++)
      if (s->edges[k].operand == operand && s->edges[k].leaf == leaf) pairs_add(&t, i, s->edges[k].at);
  return t;
}

static kl_dependences of_operand(kl_dependences all, uint32_t operand, uint32_t leaf) {
  kl_dependences some = {0, all.p};
  for (uint32_t i = 0; i < all.n; i++) {
    if (all.p[i].operand != operand || all.p[i].leaf != leaf) continue;
    if (!some.n) some.p = &all.p[i];
    EXPECT(some.p + some.n == &all.p[i], "dependences are not in the order of operands");
    some.n++;
  }
  return some;
}

// Dependences on one operand's leaf against the model; `swap`: they are converses.
static void compare_some(const model *s, const kl_reader *r, const model_value *v, const model_value *from,
                         kl_dependences some, uint32_t operand, uint32_t leaf, bool swap, kl_sb *b, const char *text) {
  claim c = claim_new(v->count, from->count);
  const char *what = describe(r->affs, b, some, text);
  for (uint32_t i = 0; i < some.n; i++)
    claim_add(&c, s, r->affs, NULL, &some.p[i], swap ? from->shape : v->shape, swap ? v->shape : from->shape, swap,
              what);
  pairs truth = truth_of_op(s, v, operand, leaf, from);
  judge(&c, &truth, swap ? "converse" : "kl_reads", what);
}

// What the op reads, its converse by formulas, and its converse without.
static void compare_value(const model *s, const kl_reader *r, const model_value *v, kl_sb *b, const char *text) {
  const kl_comp *c = s->frames[v->frame].comp;
  const kl_instr *in = &c->instr[v->instr];
  kl_dependences reads = kl_reads(r, v->instr, v->leaf);
  for (uint32_t o = 0; o < in->noperands; o++) {
    uint32_t leaves = (uint32_t)kl_shape_leaf_count(kl_operand(c, in, o)->shape);
    for (uint32_t l = 0; l < leaves; l++) {
      const model_value *from = model_find(s, v->frame, in->operands[o], l);
      if (!kl_shape_is_array(from->shape)) continue;
      kl_dependences some = of_operand(reads, o, l), feeds = kl_feeds(r, v->instr, o, l, v->leaf);
      kl_dependence plain[64];
      EXPECT(some.n <= 64, "too many dependences\n%s", text);
      for (uint32_t i = 0; i < some.n; i++) plain[i] = kl_converse(r, v->instr, &some.p[i], 0);
      compare_some(s, r, v, from, some, o, l, false, b, text);
      compare_some(s, r, v, from, feeds, o, l, true, b, text);
      compare_some(s, r, v, from, (kl_dependences){some.n, plain}, o, l, true, b, text);
    }
  }
}

void compare_ops(const model *s, const char *text) {
  kl_ctx *cx = s->m->cx;
  kl_arena arena;
  kl_arena_init(&arena, cx);
  kl_affs *p = kl_affs_create(cx, &arena);
  struct kl_runtimes *runtimes = kl_runtimes_create(cx, &arena);
  kl_sb b = {.cx = cx};
  for (uint32_t i = 0; i < s->nvalues; i++) {
    const model_value *v = &s->values[i];
    if (followed(&s->frames[v->frame].comp->instr[v->instr]) || !kl_shape_is_array(v->shape)) continue;
    kl_reader r = {p, s->m, s->frames, v->frame, runtimes};
    compare_value(s, &r, v, &b, text);
    compared.ops++;
  }
  kl_sb_free(&b);
  kl_runtimes_destroy(&runtimes);
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
}

// --- walks --------------------------------------------------------------------------------------------------------

// truth[node * most + k]: node and element k of the start reach each other.
static uint8_t *reached(const model *s, const model_value *start, kl_reach_way way) {
  uint8_t *t = calloc((size_t)(s->nnodes * start->count) + 1, 1);
  int64_t n = start->count;
  for (int64_t k = 0; k < n; k++) t[(start->first + k) * n + k] = 1;
  if (way == KL_REACH_USERS)
    for (int64_t node = 0; node < s->nnodes; node++)
      for (int64_t e = s->begin[node]; e < s->begin[node + 1]; e++)
        for (int64_t k = 0, from = model_target(s, node, &s->edges[e]); k < n; k++) t[node * n + k] |= t[from * n + k];
  else
    for (int64_t node = s->nnodes; node-- > 0;)
      for (int64_t e = s->begin[node]; e < s->begin[node + 1]; e++)
        for (int64_t k = 0, to = model_target(s, node, &s->edges[e]); k < n; k++) t[to * n + k] |= t[node * n + k];
  return t;
}

static pairs truth_of_walk(const model_value *start, const model_value *v, const uint8_t *t) {
  pairs out = pairs_new(start->count, v->count);
  for (int64_t k = 0; k < start->count; k++)
    for (int64_t i = 0; i < v->count; i++)
      if (t[(v->first + i) * start->count + k]) pairs_add(&out, k, i);
  return out;
}

// Frames of the walk, by number, as frames of the model.
static void match_frames(const model *s, const kl_reach *r, uint32_t *frames) {
  frames[0] = 0;
  for (uint32_t f = 1; f < r->nframes; f++) {
    frames[f] = model_callee(s, frames[r->frames[f].parent], r->frames[f].caller);
    EXPECT(frames[f] != UINT32_MAX, "a frame that nobody calls");
  }
}

static void compare_walk(const model *s, const model_value *start, kl_reach_way way, const char *text) {
  kl_ctx *cx = s->m->cx;
  kl_arena arena;
  kl_arena_init(&arena, cx);
  kl_affs *p = kl_affs_create(cx, &arena);
  kl_reach r;
  kl_sb b = {.cx = cx};
  kl_reach_make(p, s->m, s->frames[0].comp, start->instr, start->leaf, way, &r);
  uint32_t *frames = malloc((r.nframes + 1) * sizeof *frames), *back = malloc((s->nframes + 1) * sizeof *back);
  match_frames(s, &r, frames);
  for (uint32_t f = 0; f < s->nframes; f++) back[f] = UINT32_MAX;
  for (uint32_t f = 0; f < r.nframes; f++) back[frames[f]] = f;
  uint8_t *t = reached(s, start, way);
  for (uint32_t i = 0; i < s->nvalues; i++) {
    const model_value *v = &s->values[i];
    if (!kl_shape_is_array(v->shape)) continue;
    kl_reach_value found = {0};
    if (back[v->frame] != UINT32_MAX) found = kl_reach_find(&r, back[v->frame], v->instr, v->leaf);
    claim c = claim_new(start->count, v->count);
    char what[64];
    snprintf(what, sizeof what, "walk %s, value %u.%u.%u", way == KL_REACH_USERS ? "on" : "back", v->frame, v->instr,
             v->leaf);
    const char *all = describe(p, &b, (kl_dependences){found.n, found.maps}, text);
    for (uint32_t k = 0; k < found.n; k++)
      claim_add(&c, s, p, frames, &found.maps[k], start->shape, v->shape, false, all);
    pairs truth = truth_of_walk(start, v, t);
    judge(&c, &truth, what, all);
  }
  free(t);
  free(frames);
  free(back);
  kl_sb_free(&b);
  kl_reach_free(&r);
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
  compared.walks++;
}

void compare_walks(const model *s, const char *text) {
  const kl_comp *c = s->frames[0].comp;
  for (uint32_t i = 0; i < s->nvalues; i++) {
    const model_value *v = &s->values[i];
    if (v->frame || !kl_shape_is_array(v->shape)) continue;
    if (v->instr == c->root) compare_walk(s, v, KL_REACH_OPERANDS, text);
    if (c->instr[v->instr].op == KL_OP_PARAMETER) compare_walk(s, v, KL_REACH_USERS, text);
  }
}
