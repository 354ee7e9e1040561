// Launches of kernels as members of one kernel, and that kernel's launch.

#include "jit/members.h"

// Of one launch; arguments that a kernel has; steps of plans.
enum { MOST_MEMBERS = 64, MOST_ARGUMENTS = 256, MOST_STEPS = 1 << 14 };

void kl_gather_anew(kl_gathered *g) {
  g->arguments.n = g->members.n = g->plan_steps = 0;
  g->why = NULL;
}

void kl_gather_free(kl_gathered *g) {
  VEC_FREE(g->cx, &g->arguments);
  VEC_FREE(g->cx, &g->members);
  VEC_FREE(g->cx, &g->known);
}

static bool same_argument(const kiln_argument *a, const kiln_argument *b) {
  return a->kind == b->kind && a->slot == b->slot && a->offset == b->offset && a->output == b->output;
}

uint32_t kl_gather_argument(kl_gathered *g, const kiln_argument *a) {
  for (uint32_t i = 0; i < g->arguments.n; i++)
    if (same_argument(&g->arguments.p[i], a)) return i;
  VEC_PUSH(g->cx, &g->arguments, *a);
  if (g->arguments.n > MOST_ARGUMENTS) g->why = "it would have too many arguments";
  return (uint32_t)g->arguments.n - 1;
}

uint32_t kl_gathered_steps(const kl_plan *p, const kl_plan_launch *l) {
  uint32_t n = 0;
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++)
    n += p->parts[i].main.nsteps + p->parts[i].tail.nsteps;
  return n;
}

const char *kl_why_not_gathered(kl_gathered *g, uint32_t unit) {
  const kl_planned *p = &g->planned[unit];
  const char *why = NULL;
  for (uint32_t i = 0; i < p->n && !why; i++)
    why = kl_no_member(p->plan, p->launches[i].from, g->k->units[unit].in_place);
  return why ? kl_strf(g->k->arena, "of kernel %s %s", g->k->units[unit].name, why) : NULL;
}

const kl_member *kl_gathered_member(kl_gathered *g, kl_planned *p, uint32_t launch) {
  kl_described *d = &p->launches[launch];
  if (d->member.plan) return &d->member;
  for (size_t i = 0; i < g->known.n && !p->own; i++)
    if (g->known.p[i].launch == d->from) d->member = g->known.p[i];
  if (d->member.plan) return &d->member;
  d->member = kl_member_of(p->plan, d->from);
  if (!p->own) VEC_PUSH(g->cx, &g->known, d->member);
  return &d->member;
}

void kl_gather(kl_gathered *g, uint32_t unit) {
  kl_planned *p = &g->planned[unit];
  if (!g->why) g->why = kl_why_not_gathered(g, unit);
  for (uint32_t i = 0; i < p->n && !g->why; i++) {
    const kl_described *d = &p->launches[i];
    if (d->launch.argument_count > MOST_ARGUMENTS) g->why = "it would have too many arguments";
    if (g->why) return;
    kl_member m = *kl_gathered_member(g, p, i);
    uint32_t *args = KL_NEW_N(g->k->arena, uint32_t, d->launch.argument_count + 1);
    for (uint32_t a = 0; a < d->launch.argument_count && !g->why; a++)
      args[a] = kl_gather_argument(g, &d->launch.arguments[a]);
    m.args = args;
    VEC_PUSH(g->cx, &g->members, m);
    g->plan_steps += kl_gathered_steps(p->plan, d->from);
  }
  if (g->members.n > MOST_MEMBERS || g->plan_steps > MOST_STEPS) g->why = "it would be too long";
}

const char *kl_gathered_name(const kl_kernels *k, const char *first, const char *what, uint32_t unit) {
  const char *name = kl_strf(k->arena, "%s_%s", first, what);
  for (size_t i = 0; i < k->grouped.n; i++)
    if (!strcmp(k->grouped.p[i].rounds.name, name)) return kl_strf(k->arena, "%s_%u", name, unit);
  return name;
}

// What it is given it has once, however often it is looked at.
kiln_launch kl_grouped_launch(const kl_kernels *k, const kl_grouped *g, const char *name, const kl_planned *planned,
                              kl_arena *arena) {
  const kl_rounds *r = &g->rounds;
  bool asks = r->shared_bytes > KL_MOST_SHARED;
  kiln_launch l = {.kernel = kl_str_dup(arena, kl_str_of(name)).p,
                   .when = KILN_WHEN_ALWAYS,
                   .grid = {r->grid ? (uint32_t)r->grid : r->cluster, 1, 1},
                   .block = {r->block, 1, 1},
                   .cluster = {r->cluster, 1, 1},
                   .shared_bytes = asks ? 0 : r->shared_bytes,
                   .dynamic_shared_bytes = asks ? r->shared_bytes : 0,
                   .programmatic = r->programmatic,
                   .argument_count = r->nargs,
                   .arguments = kl_arena_dup(arena, g->arguments, r->nargs * sizeof *g->arguments)};
  for (uint32_t i = g->first; i < g->end; i++)
    for (uint32_t n = 0; n < planned[i].n; n++) {
      const kiln_launch *x = &planned[i].launches[n].launch;
      if (x->vector_bytes > l.vector_bytes) l.vector_bytes = x->vector_bytes;
      if (x->lanes > l.lanes) l.lanes = x->lanes;
      if (x->elements > l.elements) l.elements = x->elements;
    }
  for (uint32_t i = 0; i < r->nargs; i++)
    if (g->arguments[i].kind == KILN_ARGUMENT_SLOT) l.bytes += (uint64_t)k->slots[g->arguments[i].slot].bytes;
  return l;
}
