// The verifier: launches, slots, each body, each result.

#include "lower/plan/verify/check.h"
#include <stdio.h>

kiln_status kl_refute(kl_check *k, const char *fmt, ...) {
  static const char *const subjects[] = {
      [KL_OF_STEP] = "v", [KL_OF_STORE] = "store ", [KL_OF_GUARD] = "g", [KL_OF_SLOT] = "s"};
  char what[32] = "", why[256], where[64] = "";
  va_list ap;
  if (k->quiet) return KILN_E_INTERNAL;
  va_start(ap, fmt);
  vsnprintf(why, sizeof why, fmt, ap);
  va_end(ap);
  if (subjects[k->subject]) snprintf(what, sizeof what, "%s%u: ", subjects[k->subject], k->number);
  if (k->subject != KL_OF_PLAN && k->subject != KL_OF_SLOT)
    snprintf(where, sizeof where, k->p->nparts > 1 ? "%s of part %u: " : "%s: ", k->name, k->part);
  return kl_fail(k->cx, KILN_E_INTERNAL, KL_NOWHERE,
                 "the plan of %s does not pass its checks, please report it: %s%s%s", k->p->name, where, what, why);
}

// --- slots ----------------------------------------------------------------------------------------------------------

enum { SHARED_ALIGN = 16 };

static kiln_status check_shared(kl_check *k, const kl_slot_info *s, int64_t *ends) {
  if (s->launch >= k->p->nlaunches) return kl_refute(k, "belongs to launch %u", s->launch);
  if (s->at % s->align || s->align > SHARED_ALIGN)
    return kl_refute(k, "begins at byte %u, aligned to %u", s->at, s->align);
  if (s->at < ends[s->launch] || s->at + s->bytes > k->p->launches[s->launch].shared_bytes)
    return kl_refute(k, "bytes %u..%lld of a block are those of others", s->at, (long long)(s->at + s->bytes - 1));
  ends[s->launch] = s->at + s->bytes;
  return KILN_OK;
}

static kiln_status check_alias(kl_check *k, const kl_slot_info *s) {
  const kl_plan *p = k->p;
  if (s->alias == KL_NONE) return KILN_OK;
  kl_slot_kind other = s->kind == KL_SLOT_IN ? KL_SLOT_OUT : KL_SLOT_IN;
  bool may =
      s->alias < p->nargs && p->slots[s->alias].kind == other && (s->kind == KL_SLOT_IN || s->kind == KL_SLOT_OUT);
  return may ? KILN_OK : kl_refute(k, "cannot be the memory of s%u", s->alias);
}

static kiln_status check_slot(kl_check *k, uint32_t i, int64_t *ends) {
  const kl_slot_info *s = &k->p->slots[i];
  const kl_dtype_info *t = kl_info(s->shape->dtype);
  unsigned part = kl_is_complex(s->shape->dtype) ? t->bits / 2 : t->bits;
  bool argument = s->kind == KL_SLOT_IN || s->kind == KL_SLOT_OUT;
  if (argument != (i < k->p->nargs)) return kl_refute(k, "is not in its place");
  kl_wide bytes = ((kl_wide)s->shape->count * t->bits + 7) / 8;
  if (s->bytes < bytes)
    return kl_refute(k, "%lld bytes for %lld elements", (long long)s->bytes, (long long)s->shape->count);
  if (s->align == 0 || s->align & (s->align - 1) || s->align < part / 8) return kl_refute(k, "aligned to %u", s->align);
  if (s->row < 0 || (s->row && (!k->p->counted || s->row * k->p->rows != s->shape->count)))
    return kl_refute(k, "%lld elements for each row", (long long)s->row);
  if (s->by_value && (s->kind != KL_SLOT_IN || s->shape->count != 1)) return kl_refute(k, "cannot come by value");
  if (s->mode == KL_MODE_GROWS && s->kind != KL_SLOT_OUT && s->kind != KL_SLOT_SCRATCH)
    return kl_refute(k, "cannot grow");
  if (s->zero && s->kind != KL_SLOT_SCRATCH) return kl_refute(k, "cannot be zero before");
  if (s->kind == KL_SLOT_CONST && s->bytes && !s->data) return kl_refute(k, "has no data");
  if (s->given && s->kind != KL_SLOT_CONST) return kl_refute(k, "cannot be given as a constant");
  if (s->kind == KL_SLOT_SHARED) KL_TRY(check_shared(k, s, ends));
  return check_alias(k, s);
}

static kiln_status check_slots(kl_check *k) {
  int64_t *ends = KL_NEW_N(k->arena, int64_t, k->p->nlaunches + 1);
  uint32_t most = kl_most_shared(&k->p->target);
  for (uint32_t i = 0; i < k->p->nlaunches; i++)
    if (k->p->target.machine == KL_NVPTX && k->p->launches[i].shared_bytes > most)
      return kl_refute(k, "%u bytes of shared memory, of at most %u", k->p->launches[i].shared_bytes, most);
  for (uint32_t i = 0; i < k->p->nslots; i++) {
    kl_look_at(k, KL_OF_SLOT, i);
    KL_TRY(check_slot(k, i, ends));
  }
  return KILN_OK;
}

// --- launches -------------------------------------------------------------------------------------------------------

// Threads that a body has not are kept off by nobody where they fill blocks.
static bool fills_blocks(const kl_plan_launch *l, int64_t threads, int64_t blocks) {
  int64_t block = l->block;
  return threads % block ? blocks == threads / block + 1 : blocks == threads / block;
}

// Of a flat domain whole blocks of `main`, and no tail behind what `main` may have done.
static bool is_flat_part(const kl_plan *p, const kl_part *part) {
  const kl_body *main = &part->main, *tail = &part->tail;
  const kl_plan_launch *l = p->launches;
  int64_t of_block = (int64_t)main->lanes * l->block;
  if (p->nparts != 1 || main->blocks || tail->blocks || main->first || tail->first) return false;
  if (tail->lanes == 0 || (main->threads && of_block % tail->lanes)) return false;
  int64_t behind = tail->threads - part->main_blocks * (main->threads ? of_block / tail->lanes : 0);
  return part->main_blocks == main->threads / l->block && fills_blocks(l, behind, part->blocks - part->main_blocks);
}

static bool is_part(const kl_plan *p, const kl_plan_launch *l, const kl_part *part) {
  if (p->flat) return is_flat_part(p, part);
  bool main =
      part->main.threads ? part->main.threads == part->main_blocks * l->block : part->main.blocks == part->main_blocks;
  return main && fills_blocks(l, part->tail.threads, part->blocks - part->main_blocks);
}

static kiln_status check_launch(kl_check *k, const kl_plan_launch *l) {
  const kl_plan *p = k->p;
  int64_t blocks = 0, iterations = 0;
  if (l->block == 0) return kl_refute(k, "blocks of no threads");
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++) {
    const kl_part *part = &p->parts[i];
    if (part->tail.blocks) return kl_refute(k, "the tail of part %u has blocks of its own", i);
    if (p->target.machine == KL_NVPTX && !is_part(p, l, part))
      return kl_refute(k, "part %u has %lld blocks, %lld of main, for others", i, (long long)part->blocks,
                       (long long)part->main_blocks);
    if (part->first_block != blocks || part->first_iteration != iterations)
      return kl_refute(k, "part %u does not begin where the one before ends", i);
    blocks += part->blocks;
    iterations += part->main.threads + part->main.blocks;
  }
  if (blocks != l->grid || iterations != l->iterations)
    return kl_refute(k, "a grid of %lld, for %lld blocks", (long long)l->grid, (long long)blocks);
  return KILN_OK;
}

static bool body_touches(const kl_body *b, uint32_t slot) {
  for (uint32_t i = 0; i < b->nsteps; i++)
    if (b->steps[i].kind == KL_STEP_LOAD && b->steps[i].access.slot == slot) return true;
  for (uint32_t i = 0; i < b->nstores; i++)
    if (b->stores[i].access.slot == slot) return true;
  return false;
}

// Has nobody else the slot, and the kernel it, with so many elements of the type at least?
static bool is_own(kl_check *k, const kl_plan_launch *l, uint32_t slot, kl_slot_kind kind, kl_dtype t, int64_t least) {
  const kl_plan *p = k->p;
  bool given = kind == KL_SLOT_SHARED;
  if (slot >= p->nslots || k->counts[slot]++) return false;
  const kl_slot_info *s = &p->slots[slot];
  if (s->kind != kind || s->shape->dtype != t || s->shape->count < least) return false;
  for (uint32_t i = 0; i < l->nargs; i++) given |= l->args[i] == slot;
  for (uint32_t i = 0; i < p->nparts; i++)
    if (body_touches(&p->parts[i].main, slot) || body_touches(&p->parts[i].tail, slot)) return false;
  return given;
}

static kiln_status check_tickets(kl_check *k, const kl_plan_launch *l) {
  const kl_plan *p = k->p;
  const kl_tickets *t = l->tickets;
  const kl_part *part = &p->parts[l->first_part];
  if (p->target.machine != KL_NVPTX || l->nparts != 1 || part->tail.threads || part->main.blocks != l->grid ||
      l->block % 32 || l->cluster || l->group)
    return kl_refute(k, "launch %s has tickets for other blocks than all of one body", l->name);
  if (!is_own(k, l, t->counters, KL_SLOT_SCRATCH, KILN_U32, l->grid + 2) || !p->slots[t->counters].zero)
    return kl_refute(k, "s%u does not count the blocks of launch %s", t->counters, l->name);
  if (t->values >= p->nslots) return kl_refute(k, "there is no slot s%u", t->values);
  kl_dtype word = p->slots[t->values].shape->dtype == KILN_U64 ? KILN_U64 : KILN_U32;
  if (!is_own(k, l, t->values, KL_SLOT_SCRATCH, word, l->grid) || p->slots[t->values].zero ||
      p->slots[t->values].shape->count > UINT32_MAX)
    return kl_refute(k, "s%u does not hold values of launch %s", t->values, l->name);
  if (!is_own(k, l, t->told, KL_SLOT_SHARED, KILN_U64, 2) || &p->launches[p->slots[t->told].launch] != l)
    return kl_refute(k, "s%u tells nothing to blocks of launch %s", t->told, l->name);
  return KILN_OK;
}

static bool stores_in(const kl_plan *p, const kl_plan_launch *l, uint32_t slot) {
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++) {
    const kl_body *bodies[2] = {&p->parts[i].main, &p->parts[i].tail};
    for (int t = 0; t < 2; t++)
      for (uint32_t k = 0; k < bodies[t]->nstores; k++)
        if (bodies[t]->stores[k].access.slot == slot) return true;
  }
  return false;
}

// Who launches asks of the results that a launch stores in whether they are apart: all of them must ask the same.
static kiln_status check_condition(kl_check *k, const kl_plan_launch *l) {
  const kl_plan *p = k->p;
  uint32_t pairs = 0;
  for (uint32_t i = 0; i < p->nargs && l->when != KL_ALWAYS; i++) {
    if (p->slots[i].kind != KL_SLOT_OUT || p->slots[i].alias == KL_NONE) continue;
    if (!stores_in(p, l, i)) return kl_refute(k, "s%u may be in place, and launch %s does not store in it", i, l->name);
    pairs++;
  }
  return pairs || l->when == KL_ALWAYS ? KILN_OK : kl_refute(k, "launch %s is for results that cannot be", l->name);
}

// Every part belongs to one launch, and launches and parts go in the same order.
static kiln_status check_launches(kl_check *k) {
  const kl_plan *p = k->p;
  uint32_t part = 0;
  kl_look_at(k, KL_OF_PLAN, 0);
  if (p->nlaunches == 0 || (p->flat && p->nlaunches > 1)) return kl_refute(k, "%u launches", p->nlaunches);
  if (p->counted ? p->rows < 1 || p->row < 1 : p->flat) return kl_refute(k, "a count of what has none");
  for (uint32_t i = 0; i < p->nlaunches; i++) {
    const kl_plan_launch *l = &p->launches[i];
    if (l->first_part != part || l->nparts == 0 || l->nparts > p->nparts - part)
      return kl_refute(k, "launch %u has parts from %u on, not %u", i, l->first_part, part);
    part += l->nparts;
    KL_TRY(check_launch(k, l));
    KL_TRY(check_condition(k, l));
    if (l->tickets) KL_TRY(check_tickets(k, l));
  }
  return part == p->nparts ? KILN_OK : kl_refute(k, "%u parts, of which %u are launched", p->nparts, part);
}

// --- bodies and results ---------------------------------------------------------------------------------------------

typedef VEC(kl_writing) writings;

static kiln_status check_body(kl_check *k, uint32_t part, bool tail, writings *out) {
  const kl_body *b = tail ? &k->p->parts[part].tail : &k->p->parts[part].main;
  if (kl_body_is_empty(b)) return KILN_OK;
  k->body = b;
  k->part = part;
  k->launch = kl_launch_of(k->p, part);
  k->name = tail ? "tail" : "main";
  kl_set_launched(k);
  KL_TRY(kl_check_body(k));
  kl_look_at(k, KL_OF_BODY, 0);
  if (!kl_body_fits(b, k->p->index64 ? 64 : 32))
    return kl_refute(k, "not every index is known to fit %d bits", k->p->index64 ? 64 : 32);
  KL_TRY(kl_check_counted(k));
  KL_TRY(kl_check_sharing(k));
  for (uint32_t i = 0; i < b->nstores; i++) {
    uint32_t slot = b->stores[i].access.slot;
    if (k->p->slots[slot].kind != KL_SLOT_OUT && k->p->slots[slot].kind != KL_SLOT_SCRATCH) continue;
    VEC_PUSH(k->cx, out, (kl_writing){slot, part, k->name, b, i, k->stored[i]});
  }
  return KILN_OK;
}

// Whether results that may be parameters' memory are it, or are not.
static kiln_status check_result(kl_check *k, uint32_t slot, const kl_writing *w, uint32_t n) {
  kl_writing *some = KL_NEW_N(k->arena, kl_writing, n + 1);
  for (int in_place = 0; in_place <= kl_has_conditions(k->p); in_place++) {
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++)
      if (kl_is_launched(kl_launch_of(k->p, w[i].part), in_place)) some[m++] = w[i];
    KL_TRY(kl_check_cover(k, slot, some, m, in_place));
  }
  return KILN_OK;
}

// Launches may store in scratch memory one behind the other: each then stores all of it, but of what grows.
static kiln_status check_scratch(kl_check *k, uint32_t slot, const kl_writing *w, uint32_t n) {
  if (!n || k->p->slots[slot].mode == KL_MODE_GROWS) return check_result(k, slot, w, n);
  for (uint32_t i = 0, end; i < n; i = end) {
    const kl_plan_launch *l = kl_launch_of(k->p, w[i].part);
    for (end = i + 1; end < n && kl_launch_of(k->p, w[end].part) == l; end++) continue;
    KL_TRY(check_result(k, slot, w + i, end - i));
  }
  return KILN_OK;
}

// Those of one slot together, in the order they were met.
static kiln_status check_results(kl_check *k, const writings *w) {
  const kl_plan *p = k->p;
  uint32_t *first = KL_NEW_N(k->arena, uint32_t, p->nslots + 2);
  kl_writing *sorted = KL_NEW_N(k->arena, kl_writing, w->n + 1);
  for (size_t i = 0; i < w->n; i++) first[w->p[i].slot + 2]++;
  for (uint32_t s = 2; s < p->nslots + 2; s++) first[s] += first[s - 1];
  for (size_t i = 0; i < w->n; i++) sorted[first[w->p[i].slot + 1]++] = w->p[i];
  for (uint32_t s = 0; s < p->nslots; s++)
    if (p->slots[s].kind == KL_SLOT_OUT)
      KL_TRY(check_result(k, s, sorted + first[s], first[s + 1] - first[s]));
    else if (p->slots[s].kind == KL_SLOT_SCRATCH && !p->slots[s].zero && !k->counts[s])
      KL_TRY(check_scratch(k, s, sorted + first[s], first[s + 1] - first[s]));
  return KILN_OK;
}

static kiln_status check_plan(kl_check *k, writings *w) {
  kl_look_at(k, KL_OF_PLAN, 0);
  k->counts = KL_NEW_N(k->arena, uint8_t, k->p->nslots + 1);
  KL_TRY(check_launches(k));
  KL_TRY(check_slots(k));
  for (uint32_t i = 0; i < k->p->nparts; i++) {
    KL_TRY(check_body(k, i, false, w));
    KL_TRY(check_body(k, i, true, w));
  }
  return check_results(k, w);
}

static kiln_status verify(kl_ctx *cx, kl_plan *p, bool quiet) {
  kl_arena scratch;
  writings w = {0};
  kl_arena_init(&scratch, cx);
  kl_check k = {.cx = cx, .p = p, .arena = &scratch, .quiet = quiet};
  kiln_status st = check_plan(&k, &w);
  VEC_FREE(cx, &w);
  VEC_FREE(cx, &k.made);
  VEC_FREE(cx, &k.events);
  kl_arena_free(&scratch);
  return st;
}

kiln_status kl_plan_verify(kl_ctx *cx, kl_plan *p) {
  return verify(cx, p, false);
}

bool kl_plan_is_proved(kl_ctx *cx, kl_plan *p) {
  return verify(cx, p, true) == KILN_OK;
}
