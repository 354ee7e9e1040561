// What there is to say of a plan beside its steps.

#include "lower/plan/explain.h"
#include "lower/plan/cost/cost.h"

// --- accesses -------------------------------------------------------------------------------------------------------

// An access, and what keeps its instructions from being wider.
typedef struct seen {
  const char *body;
  const kl_access *a;
  bool store;
  const kl_instr *instr; // NULL: the plan's own
  uint32_t width;        // bytes of a thread's instruction
  const char *limit;     // NULL: none
} seen;

typedef struct listing {
  kl_plan *p;
  VEC(seen) v;
} listing;

enum { WIDEST = 16 };

static void judge(const kl_plan *p, const kl_body *b, uint32_t guard, seen *s) {
  const kl_access *a = s->a;
  unsigned bits = kl_info(p->slots[a->slot].shape->dtype)->bits;
  uint32_t side_by_side = a->stride == 1 || s->store ? a->vec : 1, bytes = (side_by_side * bits + 7) / 8;
  uint32_t align = a->align ? a->align : 1;
  s->width = bytes < WIDEST ? bytes : WIDEST;
  if (align < s->width) s->width = align;
  if (s->width == WIDEST || p->slots[a->slot].by_value) return;
  int64_t run = a->run == KL_NONE ? 1 : b->vars[a->run].extent;
  bool cut = guard != KL_NONE && a->run != KL_NONE && b->guards[guard].uniform[a->run] == a->vec;
  uint32_t given = p->slots[a->slot].kind == KL_SLOT_SHARED ? WIDEST : p->slots[a->slot].align;
  if (align < bytes || (given < WIDEST && given <= s->width))
    s->limit = given < WIDEST && given <= s->width ? "the argument's alignment" : "the alignment of its index";
  else if (a->vec > 1 && side_by_side == 1)
    s->limit = a->stride ? "its stride" : "one element for all";
  else if (a->vec >= run)
    s->limit = "as many elements as a thread has";
  else
    s->limit = cut ? "bounds between elements" : "its neighbours end";
}

static void list_body(listing *l, const char *name, const kl_body *b) {
  kl_ctx *cx = kl_affs_context(l->p->affs);
  if (kl_body_is_empty(b)) return;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *step = &b->steps[i];
    if (step->kind != KL_STEP_LOAD) continue;
    seen s = {.body = name, .a = &step->access, .instr = step->instr};
    judge(l->p, b, step->access.guard, &s);
    VEC_PUSH(cx, &l->v, s);
  }
  for (uint32_t i = 0; i < b->nstores; i++) {
    seen s = {.body = name, .a = &b->stores[i].access, .store = true, .instr = b->steps[b->stores[i].step].instr};
    judge(l->p, b, b->stores[i].keep, &s);
    VEC_PUSH(cx, &l->v, s);
  }
}

static listing list(kl_plan *p) {
  listing l = {.p = p};
  for (uint32_t i = 0; i < p->nparts; i++) {
    list_body(&l, "main", &p->parts[i].main);
    list_body(&l, "tail", &p->parts[i].tail);
  }
  return l;
}

static void end(listing *l) {
  VEC_FREE(kl_affs_context(l->p->affs), &l->v);
}

// --- JSON -----------------------------------------------------------------------------------------------------------

static void json_text(kl_sb *b, const char *text) {
  kl_sb_putc(b, '"');
  for (const char *p = text; *p; p++) {
    unsigned char ch = (unsigned char)*p;
    if (ch == '"' || ch == '\\')
      kl_sbf(b, "\\%c", ch);
    else if (ch < 0x20)
      kl_sbf(b, "\\u%04x", ch);
    else
      kl_sb_putc(b, (char)ch);
  }
  kl_sb_putc(b, '"');
}

static const char *const slot_kinds[] = {
    [KL_SLOT_IN] = "in",         [KL_SLOT_OUT] = "out",         [KL_SLOT_CONST] = "constant",
    [KL_SLOT_SHARED] = "shared", [KL_SLOT_SCRATCH] = "scratch",
};

static void json_counts(kl_sb *b, const char *name, const kl_access_cost *c, bool shared) {
  const kl_requests *r = &c->asked;
  kl_sbf(b, "\"%s\": {\"requests\": %lld, \"lanes\": %lld, \"bytes\": %lld, \"widths\": [", name,
         (long long)r->requests, (long long)r->lanes, (long long)c->bytes);
  for (int k = 0; k < KL_COST_WIDTHS; k++) kl_sbf(b, "%s%lld", k ? ", " : "", (long long)c->width[k]);
  if (shared)
    kl_sbf(b, "], \"wavefronts\": %lld, \"ideal_wavefronts\": %lld}", (long long)r->wavefronts,
           (long long)r->ideal_wavefronts);
  else
    kl_sbf(b, "], \"unique_bytes\": %lld, \"sectors\": %lld, \"ideal_sectors\": %lld}", (long long)r->unique,
           (long long)r->sectors, (long long)r->least);
}

static void json_cost(kl_sb *b, const kl_plan *p, const kl_cost *c) {
  static const char *const limiters[] = {[KL_LIMIT_DRAM] = "dram",
                                         [KL_LIMIT_L2] = "l2",
                                         [KL_LIMIT_SHARED] = "shared",
                                         [KL_LIMIT_ISSUE] = "issue",
                                         [KL_LIMIT_MEET] = "meet"};

  kl_sbf(b, "{\"exact\": %s, \"data\": %s, ", c->exact ? "true" : "false", c->data ? "true" : "false");
  json_counts(b, "global_load", &c->load, false);
  kl_sb_puts(b, ", ");
  json_counts(b, "global_store", &c->store, false);
  kl_sb_puts(b, ", ");
  json_counts(b, "global_change", &c->change, false);
  kl_sb_puts(b, ", ");
  json_counts(b, "shared_load", &c->shared_load, true);
  kl_sb_puts(b, ", ");
  json_counts(b, "shared_store", &c->shared_store, true);
  kl_sb_puts(b, ", ");
  json_counts(b, "shared_change", &c->shared_change, true);
  kl_sbf(b,
         ", \"warps\": %lld, \"shuffles\": %lld, \"syncs\": %lld, \"instructions\": %lld, \"registers\": %d, "
         "\"limiter\": \"%s\"}",
         (long long)c->warps, (long long)c->shuffles, (long long)c->syncs, (long long)c->instructions,
         (int)c->registers, limiters[kl_clocks_of(p, c).limiter]);
}

static void json_accesses(kl_sb *b, kl_plan *p) {
  listing l = list(p);
  for (size_t i = 0; i < l.v.n; i++) {
    const seen *s = &l.v.p[i];
    kl_sbf(b, "%s{\"body\": \"%s\", \"slot\": %u, \"store\": %s, \"width\": %u, \"value\": ", i ? ", " : "", s->body,
           s->a->slot, s->store ? "true" : "false", s->width);
    if (s->instr)
      json_text(b, kl_str_dup(p->arena, kl_symbol_text(&p->module->names, s->instr->name)).p);
    else
      kl_sb_puts(b, "null");
    kl_sb_puts(b, ", \"limit\": ");
    if (s->limit)
      json_text(b, s->limit);
    else
      kl_sb_puts(b, "null");
    kl_sb_putc(b, '}');
  }
  end(&l);
}

void kl_plan_explain_json(kl_sb *b, kl_plan *p) {
  kl_sbf(b, "{\"kernel\": \"%s\", \"chooser\": \"%s\", \"declined\": [", p->name, p->kind);
  for (uint32_t i = 0; i < p->ndeclined; i++) {
    kl_sbf(b, "%s{\"chooser\": \"%s\", \"why\": ", i ? ", " : "", p->declined[i].kind);
    json_text(b, p->declined[i].why);
    kl_sb_putc(b, '}');
  }
  kl_sbf(b, "], \"elements\": %lld, \"launches\": [", (long long)p->count);
  for (uint32_t i = 0; i < p->nlaunches; i++) {
    const kl_plan_launch *l = &p->launches[i];
    kl_sbf(b, "%s{\"kernel\": \"%s\", \"grid\": %lld, \"block\": %u, \"shared_bytes\": %u, \"resident_blocks\": ",
           i ? ", " : "", l->name, (long long)l->grid, l->block, l->shared_bytes);
    kl_sbf(b, l->resident ? "%u}" : "null}", l->resident);
  }
  kl_sb_puts(b, "], \"slots\": [");
  for (uint32_t i = 0; i < p->nslots; i++)
    kl_sbf(b, "%s{\"kind\": \"%s\", \"bytes\": %lld, \"align\": %u}", i ? ", " : "", slot_kinds[p->slots[i].kind],
           (long long)p->slots[i].bytes, p->slots[i].align);
  kl_sb_puts(b, "], \"accesses\": [");
  json_accesses(b, p);
  kl_sb_puts(b, "], \"cost\": ");
  if (p->target.machine == KL_HOST || p->flat) {
    kl_sb_puts(b, "null}");
    return;
  }
  kl_cost c = kl_plan_cost(p, KL_COST_THOROUGH);
  json_cost(b, p, &c);
  kl_sb_putc(b, '}');
}

// --- words ----------------------------------------------------------------------------------------------------------

// Bytes of parameters and results, each moved once.
static int64_t bytes_needed(const kl_plan *p) {
  int64_t n = 0;
  for (uint32_t i = 0; i < p->nargs; i++)
    if (!p->slots[i].by_value) n += p->slots[i].bytes;
  return n;
}

static bool say_the_same(const seen *x, const seen *y) {
  return x->body == y->body && x->a->slot == y->a->slot && x->store == y->store && x->width == y->width &&
         x->limit == y->limit && x->instr == y->instr;
}

static void put_access(kl_sb *b, const kl_plan *p, const seen *s, unsigned times) {
  static const char *const kinds[] = {
      [KL_SLOT_IN] = "",
      [KL_SLOT_OUT] = "",
      [KL_SLOT_CONST] = " of constants",
      [KL_SLOT_SHARED] = " of shared memory",
      [KL_SLOT_SCRATCH] = " of scratch memory",
  };
  const kl_slot_info *slot = &p->slots[s->a->slot];
  kl_sbf(b, "  %s: %s s%u%s", s->body, s->store ? "store to" : "load from", s->a->slot, kinds[slot->kind]);
  if (s->instr) kl_sbf(b, " for %.*s", KL_FMT(kl_symbol_text(&p->module->names, s->instr->name)));
  if (slot->by_value)
    kl_sb_puts(b, ": by value");
  else
    kl_sbf(b, ": %u bytes a thread", s->width);
  if (times > 1) kl_sbf(b, ", %u times", times);
  if (s->limit) kl_sbf(b, "; not wider: %s", s->limit);
  kl_sb_putc(b, '\n');
}

static void put_accesses(kl_sb *b, kl_plan *p) {
  listing l = list(p);
  for (size_t i = 0; i < l.v.n; i++) {
    unsigned times = 0, before = 0;
    for (size_t k = 0; k < l.v.n; k++)
      if (say_the_same(&l.v.p[i], &l.v.p[k])) times++, before += k < i;
    if (!before) put_access(b, p, &l.v.p[i], times);
  }
  end(&l);
}

static void put_cost(kl_sb *b, const kl_plan *p, const kl_cost *c) {
  int64_t sectors = c->load.asked.sectors + c->store.asked.sectors, moved = KL_SECTOR_BYTES * sectors,
          needed = bytes_needed(p), wide = c->load.width[4] + c->store.width[4],
          requests = c->load.asked.requests + c->store.asked.requests;
  const char *about = c->exact && !c->data ? "" : "about ";
  kl_sbf(b, "  global memory: %s%lld bytes in sectors, %lld needed", about, (long long)moved, (long long)needed);
  if (needed) kl_sbf(b, ": %.2f times", (double)moved / (double)needed);
  kl_sbf(b, "; %lld of %lld requests with 16 bytes a thread%s\n", (long long)wide, (long long)requests,
         c->data ? "; data decides" : "");
  int64_t passes = c->shared_load.asked.wavefronts + c->shared_store.asked.wavefronts,
          ideal = c->shared_load.asked.ideal_wavefronts + c->shared_store.asked.ideal_wavefronts;
  if (passes) kl_sbf(b, "  shared memory: %lld wavefronts, %lld would do\n", (long long)passes, (long long)ideal);
  const kl_requests *changes = &c->change.asked, *shared = &c->shared_change.asked;
  if (changes->requests)
    kl_sbf(b, "  changes of elements: about %lld in %lld requests, %lld sectors\n", (long long)changes->lanes,
           (long long)changes->requests, (long long)changes->sectors);
  if (shared->requests)
    kl_sbf(b, "  changes in shared memory: about %lld in %lld requests, %lld wavefronts\n", (long long)shared->lanes,
           (long long)shared->requests, (long long)shared->wavefronts);
  static const char *const limits[] = {[KL_LIMIT_DRAM] = "memory",
                                       [KL_LIMIT_L2] = "sectors of L2",
                                       [KL_LIMIT_SHARED] = "shared memory",
                                       [KL_LIMIT_ISSUE] = "the issue of instructions",
                                       [KL_LIMIT_MEET] = "changes of the same elements"};
  kl_sbf(b, "  limited by %s, it is expected: about %lld instructions of warps, %d registers a thread\n",
         limits[kl_clocks_of(p, c).limiter], (long long)c->instructions, (int)c->registers);
  kl_sbf(b, "  warps: %lld, with %lld shuffles and %lld syncs\n", (long long)c->warps, (long long)c->shuffles,
         (long long)c->syncs);
}

void kl_plan_explain(kl_sb *b, kl_plan *p) {
  kl_sbf(b, "kernel %s: %s over %lld elements\n", p->name, p->kind, (long long)p->count);
  for (uint32_t i = 0; i < p->ndeclined; i++) kl_sbf(b, "  no %s: %s\n", p->declined[i].kind, p->declined[i].why);
  for (uint32_t i = 0; i < p->nlaunches && p->target.machine == KL_NVPTX; i++) {
    const kl_plan_launch *l = &p->launches[i];
    kl_sbf(b, "  launch %s%s: %lld blocks of %u threads", l->name, kl_when_text(l), (long long)l->grid, l->block);
    if (l->shared_bytes) kl_sbf(b, " with %u bytes of shared memory", l->shared_bytes);
    if (l->resident) kl_sbf(b, "; registers are for %u on a multiprocessor", l->resident);
    if (l->resident) kl_sb_puts(b, l->resident == l->at_most ? ", no more" : ", as there are no more");
    kl_sb_putc(b, '\n');
  }
  put_accesses(b, p);
  if (p->target.machine == KL_HOST || p->flat) return;
  kl_cost c = kl_plan_cost(p, KL_COST_THOROUGH);
  put_cost(b, p, &c);
}
