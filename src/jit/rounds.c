// Loops of ENTRY that one block runs, or one cluster, in one launch: where that takes less time than launches, and a
// value that is read between them, do. Kernels before and behind them that are quickly done are part of it.

#include "jit/members.h"

// Kernels that are looked at before and behind a loop. Plans are kept from the first kernel of a loop to the last: of
// so many at most.
enum { BESIDE = 8, MOST_PLANS = 1024 };

// --- steps ----------------------------------------------------------------------------------------------------------

static size_t length_of(const kiln_step *s) { // with those that belong to it
  return 1 + s->body + (s->kind == KILN_STEP_WHILE ? s->count : 0);
}

static bool is_loop(const kiln_step *s) {
  return s->kind == KILN_STEP_WHILE || s->kind == KILN_STEP_REPEAT;
}

// Kernels of steps: first .. end - 1; false: there are none.
static bool kernels_of(const kl_kernels *k, size_t step, size_t count, uint32_t *first, uint32_t *end) {
  *first = UINT32_MAX;
  *end = 0;
  for (size_t i = step; i < step + count; i++) {
    const kiln_step *s = &k->steps.p[i];
    if (s->kind != KILN_STEP_LAUNCHES || !s->count) continue;
    if (s->first < *first) *first = (uint32_t)s->first;
    if (s->first + s->count > *end) *end = (uint32_t)(s->first + s->count);
  }
  return *first < *end;
}

static bool has_loop(const kl_kernels *k, size_t step) {
  for (size_t i = step; i < step + length_of(&k->steps.p[step]); i++)
    if (is_loop(&k->steps.p[i])) return true;
  return false;
}

// Kernels of a step of ENTRY that has a loop, and some of those that stand beside it.
typedef struct window {
  uint32_t first, end;
} window;

static bool window_of(const kl_kernels *k, size_t step, size_t before, window *w) {
  const kiln_step *all = k->steps.p;
  size_t behind = step + length_of(&all[step]);
  if (!has_loop(k, step) || !kernels_of(k, step, behind - step, &w->first, &w->end)) return false;
  if (w->end - w->first > MOST_PLANS) return false;
  if (before < step && all[before].kind == KILN_STEP_LAUNCHES)
    w->first -= all[before].count < BESIDE ? (uint32_t)all[before].count : BESIDE;
  if (behind < k->steps.n && all[behind].kind == KILN_STEP_LAUNCHES)
    w->end += all[behind].count < BESIDE ? (uint32_t)all[behind].count : BESIDE;
  return true;
}

uint32_t kl_planned_together(const kl_kernels *k, uint32_t first) {
  uint32_t end = first + 1;
  size_t before = 0;
  for (size_t i = 0; i < k->steps.n; before = i, i += length_of(&k->steps.p[i])) {
    window w;
    if (!window_of(k, i, before, &w) || w.end <= first) continue;
    if (w.first > first && w.first >= end) break;
    if (w.end > end) end = w.end;
  }
  return end;
}

bool kl_is_in_loop(const kl_kernels *k, uint32_t unit) {
  for (size_t i = 0; i < k->loops.n; i++)
    if (k->loops.p[i].first <= unit && unit <= k->loops.p[i].last) return true;
  return false;
}

// --- steps as rounds -------------------------------------------------------------------------------------------------

typedef struct building {
  kl_ctx *cx;
  kl_kernels *k;
  const kl_target *t;
  const kl_strategy *s;
  uint32_t first, end; // kernels whose plans are there
  uint32_t free;       // the first that is in no group
  kl_gathered of;
  VEC(kl_round) steps;
} building;

static void add_kernels(building *b, uint32_t first, uint32_t end) {
  kl_round s = {.kind = KL_ROUND_MEMBERS, .first = (uint32_t)b->of.members.n};
  for (uint32_t u = first; u < end && !b->of.why; u++) kl_gather(&b->of, u);
  s.count = (uint32_t)b->of.members.n - s.first;
  VEC_PUSH(b->cx, &b->steps, s);
}

static void add_step(building *b, const kiln_step *s) {
  static const kl_round_kind kinds[] = {[KILN_STEP_LAUNCHES] = KL_ROUND_MEMBERS,
                                        [KILN_STEP_WHILE] = KL_ROUND_WHILE,
                                        [KILN_STEP_REPEAT] = KL_ROUND_REPEAT,
                                        [KILN_STEP_BRANCH] = KL_ROUND_BRANCH,
                                        [KILN_STEP_CASE] = KL_ROUND_CASE};
  if (s->kind == KILN_STEP_LAUNCHES) return add_kernels(b, (uint32_t)s->first, (uint32_t)(s->first + s->count));
  kl_round r = {.kind = kinds[s->kind],
                .count = (uint32_t)s->count,
                .body = (uint32_t)s->body,
                .times = s->times,
                .condition_bytes = s->condition_bytes};
  if (kl_reads_condition(s)) {
    kiln_argument a = s->condition;
    a.output = false;
    if (a.kind == KILN_ARGUMENT_SLOT && b->k->slots[a.slot].by_value) b->of.why = "a condition is passed by value";
    r.condition = kl_gather_argument(&b->of, &a);
  }
  VEC_PUSH(b->cx, &b->steps, r);
}

// --- one loop -------------------------------------------------------------------------------------------------------

static void tell(const building *b, size_t step, const kl_rounds *r) {
  kl_kernels *k = b->k;
  for (size_t i = 0; k->why && i < k->loops.n; i++) {
    if (k->loops.p[i].step != step) continue;
    kl_sb_puts(k->why, "loop ");
    kl_sb_put(k->why, kl_symbol_text(&k->m->names, k->loops.p[i].in->name));
    if (r && !b->of.why)
      kl_sbf(k->why, ": with %u launches in one, %s: about %llu clocks, %llu as launches\n", r->nmembers,
             r->cluster > 1 ? kl_strf(k->arena, "%u blocks of %u threads", r->cluster, r->block)
                            : kl_strf(k->arena, "one block of %u threads", r->block),
             (unsigned long long)r->clocks, (unsigned long long)r->apart);
    else
      kl_sbf(k->why, ": in launches of its own: %s\n", b->of.why);
  }
}

// Kernels before the loop, the loop, those behind it. They are the building's until they are kept.
static void build(building *b, size_t step, uint32_t before, uint32_t first, uint32_t end, uint32_t behind,
                  kl_rounds *r) {
  const kl_kernels *k = b->k;
  kl_gather_anew(&b->of);
  b->steps.n = 0;
  if (before < first) add_kernels(b, before, first);
  for (size_t i = step; i < step + length_of(&k->steps.p[step]) && !b->of.why; i++) add_step(b, &k->steps.p[i]);
  if (behind > end && !b->of.why) add_kernels(b, end, behind);
  *r = (kl_rounds){.nargs = (uint32_t)b->of.arguments.n,
                   .nmembers = (uint32_t)b->of.members.n,
                   .nsteps = (uint32_t)b->steps.n,
                   .members = b->of.members.p,
                   .steps = b->steps.p};
  if (!b->of.why && !r->nmembers) b->of.why = "nothing is launched in it";
  if (b->of.why) return;
  r->name = kl_gathered_name(k, r->members[0].launch->name, "rounds", before);
  r->programmatic = r->members[0].plan->programmatic;
  b->of.why = kl_rounds_fit(r, b->t, b->s->rounds);
}

static void keep(building *b, size_t step, uint32_t first, uint32_t end, kl_rounds *r) {
  kl_arena *arena = b->k->arena;
  r->members = kl_arena_dup(arena, r->members, r->nmembers * sizeof *r->members);
  r->steps = kl_arena_dup(arena, r->steps, r->nsteps * sizeof *r->steps);
  const kiln_argument *arguments = kl_arena_dup(arena, b->of.arguments.p, r->nargs * sizeof *arguments);
  VEC_PUSH(b->cx, &b->k->grouped, ((kl_grouped){first, end, step, length_of(&b->k->steps.p[step]), *r, arguments}));
  b->free = end;
}

// Is it done in the loop's kernel before a launch of its own would have begun?
static bool joins(building *b, const kl_rounds *r, uint32_t unit) {
  kl_planned *p = &b->of.planned[unit];
  bool quick = !kl_why_not_gathered(&b->of, unit);
  for (uint32_t i = 0; i < p->n && quick; i++) {
    const kl_member *m = kl_gathered_member(&b->of, p, i);
    quick = kl_member_together(r, m, b->t) <= kl_member_apart(m);
  }
  return quick;
}

// Of steps that follow each other the loop at `step`, between `before` (itself: nothing is) and `behind`.
static bool try_loop(building *b, size_t step, size_t before, size_t behind) {
  const kiln_step *all = b->k->steps.p;
  uint32_t first, end;
  kl_rounds r = {0};
  if (!kernels_of(b->k, step, length_of(&all[step]), &first, &end)) return false;
  build(b, step, first, first, end, end, &r);
  if (!b->of.why && !b->s->rounds && r.clocks > r.apart)
    b->of.why = kl_strf(b->k->arena, "in one about %llu clocks, and %llu so", (unsigned long long)r.clocks,
                        (unsigned long long)r.apart);
  if (b->of.why) {
    tell(b, step, NULL);
    return false;
  }
  uint32_t from = first, to = end;
  if (before != step && all[before].kind == KILN_STEP_LAUNCHES)
    while (from > b->free && from > all[before].first && joins(b, &r, from - 1)) from--;
  if (behind && all[behind].kind == KILN_STEP_LAUNCHES)
    while (to < b->end && to < all[behind].first + all[behind].count && joins(b, &r, to)) to++;
  if (from < first || to > end) {
    build(b, step, from, first, end, to, &r);
    if (b->of.why) build(b, step, from = first, first, end, to = end, &r);
  }
  tell(b, step, &r);
  keep(b, step, from, to, &r);
  return true;
}

// Loops among steps that follow each other: of one that stays, those inside.
static void find_loops(building *b, size_t first, size_t count) {
  const kiln_step *all = b->k->steps.p;
  for (size_t i = first, before = first; i < first + count; before = i, i += length_of(&all[i])) {
    const kiln_step *s = &all[i];
    uint32_t from, to;
    size_t behind = i + length_of(s);
    if (s->kind == KILN_STEP_LAUNCHES || !kernels_of(b->k, i, behind - i, &from, &to)) continue;
    if (from < b->first || to > b->end) continue;
    if (is_loop(s) && try_loop(b, i, before, behind < first + count ? behind : 0)) continue;
    size_t inside = i + 1;
    if (s->kind == KILN_STEP_WHILE) {
      find_loops(b, inside, s->count);
      inside += s->count;
    }
    find_loops(b, inside, s->body);
  }
}

void kl_group(kl_ctx *cx, kl_kernels *k, const kl_target *t, const kl_strategy *s, uint32_t first, uint32_t end,
              kl_planned *planned) {
  building b = {.cx = cx, .k = k, .t = t, .s = s, .first = first, .end = end, .free = first};
  b.of = (kl_gathered){.cx = cx, .k = k, .planned = planned};
  find_loops(&b, 0, k->steps.n);
  kl_gather_free(&b.of);
  VEC_FREE(cx, &b.steps);
}

const kl_grouped *kl_group_at(const kl_kernels *k, uint32_t unit) {
  for (size_t i = k->grouped.n; i-- > 0;)
    if (k->grouped.p[i].first == unit) return &k->grouped.p[i];
  return NULL;
}

// --- equal groups ---------------------------------------------------------------------------------------------------

// Kernels that are alike have one plan (repeats.c). Plans are not moved, so two are one if they lie in one place.
static bool same_member(const kl_member *a, const kl_member *b) {
  return a->plan == b->plan && a->launch == b->launch && a->teams == b->teams && a->share == b->share &&
         memcmp(a->args, b->args, a->launch->nargs * sizeof *a->args) == 0;
}

static bool same_step(const kl_round *a, const kl_round *b) {
  return a->kind == b->kind && a->first == b->first && a->count == b->count && a->body == b->body &&
         a->times == b->times && a->condition == b->condition && a->condition_bytes == b->condition_bytes;
}

static bool same_rounds(const kl_rounds *a, const kl_rounds *b) {
  if (a->nargs != b->nargs || a->nmembers != b->nmembers || a->nsteps != b->nsteps) return false;
  if (a->block != b->block || a->cluster != b->cluster || a->programmatic != b->programmatic) return false;
  if (a->grid != b->grid || (a->grid && memcmp(a->same, b->same, a->nargs * sizeof *a->same) != 0)) return false;
  for (uint32_t i = 0; i < a->nmembers; i++)
    if (!same_member(&a->members[i], &b->members[i])) return false;
  for (uint32_t i = 0; i < a->nsteps; i++)
    if (!same_step(&a->steps[i], &b->steps[i])) return false;
  return true;
}

const kl_grouped *kl_group_like(const kl_kernels *k, const kl_grouped *g) {
  const kl_grouped *x = k->grouped.p;
  while (x != g && !same_rounds(&x->rounds, &g->rounds)) x++;
  return x;
}

// --- steps that are left --------------------------------------------------------------------------------------------

typedef VEC(kiln_step) steps;

static const kl_grouped *group_of_step(const kl_kernels *k, size_t step) {
  for (size_t i = 0; i < k->grouped.n; i++)
    if (k->grouped.p[i].step == step) return &k->grouped.p[i];
  return NULL;
}

// Behind launches they are some more of them, where the steps since `from` follow each other.
static void put_launches(kl_ctx *cx, steps *out, size_t from, size_t *last, uint32_t first, uint32_t end) {
  if (*last != SIZE_MAX && *last >= from) {
    out->p[*last].count = end - out->p[*last].first;
    return;
  }
  *last = out->n;
  VEC_PUSH(cx, out, ((kiln_step){.kind = KILN_STEP_LAUNCHES, .first = first, .count = end - first}));
}

// The number of steps that these become.
static size_t copy_steps(kl_ctx *cx, const kl_kernels *k, size_t first, size_t count, steps *out) {
  size_t from = out->n, last = SIZE_MAX;
  for (size_t i = first; i < first + count; i += length_of(&k->steps.p[i])) {
    const kiln_step *s = &k->steps.p[i];
    uint32_t a = (uint32_t)s->first, b = (uint32_t)(s->first + s->count);
    bool group = group_of_step(k, i);
    if (group) kernels_of(k, i, length_of(s), &a, &b);
    if (group || s->kind == KILN_STEP_LAUNCHES) {
      put_launches(cx, out, from, &last, a, b);
      continue;
    }
    size_t own = out->n, inside = i + 1;
    VEC_PUSH(cx, out, *s);
    if (s->kind == KILN_STEP_WHILE) {
      size_t n = copy_steps(cx, k, inside, s->count, out);
      out->p[own].count = n;
      inside += s->count;
    }
    size_t n = copy_steps(cx, k, inside, s->body, out);
    out->p[own].body = n;
    last = SIZE_MAX;
  }
  return out->n - from;
}

void kl_list_steps(kl_ctx *cx, kl_kernels *k) {
  steps out = {0};
  if (!k->grouped.n) return;
  copy_steps(cx, k, 0, k->steps.n, &out);
  bool plain = out.n == 1 && out.p[0].kind == KILN_STEP_LAUNCHES;
  k->steps.n = 0;
  for (size_t i = 0; i < out.n && !plain; i++) VEC_PUSH(cx, &k->steps, out.p[i]);
  VEC_FREE(cx, &out);
}
