// Barriers, member masks and shuffles that are used in ways the PTX ISA leaves undefined. PTX ISA 9.7.9.6, 9.7.13.

#include "sim/check/order/state.h"

static kl_found_at here(const kl_ordering *r, const kl_warp *w, unsigned lane, const kl_frame *f, const kl_sim_op *op) {
  kl_found_at at = kl_found_thread(r, w->block->number, w->rank, lane, f->code, op);
  at.calls = kl_calls_of(f);
  return at;
}

// Who came first to a barrier.
static kl_found_at first_to(const kl_ordering *r, const kl_order_block *ob, const kl_arrivals *a) {
  kl_found_at at = kl_found_thread(r, ob->number, a->warp, a->lane, a->code, a->op);
  at.calls = a->calls;
  return at;
}

static void add(kl_ordering *r, kl_found_kind kind, const char *detail, kl_found_at at, kl_found_at other) {
  kl_found f = {.kind = kind, .detail = detail, .at = at, .other = other};
  kl_report_add(r->cx, r->report, &f);
}

// Of a barrier's number of threads.
static void add_count(kl_ordering *r, uint32_t count, const char *detail, kl_found_at at, kl_found_at other) {
  kl_found f = {
      .kind = KL_FOUND_COUNT, .detail = detail, .at = at, .other = other, .value = count, .value_bytes = sizeof count};
  kl_report_add(r->cx, r->report, &f);
}

static unsigned first_of(uint32_t lanes) {
  return (unsigned)__builtin_ctz(lanes);
}

// --- barriers of a block ------------------------------------------------------------------------------------------

static bool is_aligned(kl_ordering *r, const kl_code *code, const kl_sim_op *op) {
  return r->ops[code->function][op - code->ops].aligned;
}

// Sync and arrive may meet at one barrier, a reduction only with its like.
static int reduction_of(const kl_sim_op *op) {
  return op->run == kl_x_barrier ? (int)op->imm : KL_REDUCE_NONE;
}

// Lanes that have just come apart because they name another barrier.
static void other_barrier(kl_ordering *r, const kl_warp *w, const kl_sim_op *op, unsigned barrier, kl_found_at me) {
  const kl_lanes *x = &w->x;
  const kl_code *code = w->strand.frame->code;
  for (uint32_t k = 0; k < w->nwaiting; k++) {
    const kl_strand *s = &w->waiting[k];
    if (s->wait != KL_READY || s->frame != w->strand.frame || &code->ops[s->pc] != op) continue;
    unsigned i = first_of(s->mask);
    if (AT(uint32_t, op->a)[i] != barrier)
      add(r, KL_FOUND_DIVERGENCE, "lanes of a warp at different barriers", me, here(r, w, i, s->frame, op));
  }
}

void kl_misuse_arrive(kl_ordering *r, kl_order_block *ob, kl_warp *w, const kl_sim_op *op, unsigned barrier,
                      uint32_t expected, uint32_t lanes) {
  kl_arrivals *a = &ob->arrivals[barrier];
  const kl_frame *f = w->strand.frame;
  kl_found_at me = here(r, w, first_of(lanes), f, op), none = {0};
  uint32_t all = r->run->warps * KL_LANES, count = expected ? expected : all;
  if (op->run == kl_x_arrive && !expected) add(r, KL_FOUND_COUNT, "bar.arrive without one", me, none);
  if (count > all) add_count(r, count, "more than the block has", me, none);
  if (a->op) {
    kl_found_at other = first_to(r, ob, a);
    if (a->expected != count) add_count(r, count, "others gave another one", me, other);
    if (reduction_of(a->op) != reduction_of(op)) add(r, KL_FOUND_COUNT, "a reduction and something else", me, other);
    if (a->come[w->rank] & lanes)
      add(r, KL_FOUND_COUNT, "the same thread arrives again before it opens",
          here(r, w, first_of(a->come[w->rank] & lanes), f, op), other);
  } else {
    *a = (kl_arrivals){a->came, a->come, op, f->code, count, w->rank, first_of(lanes), me.calls};
  }
  a->come[w->rank] |= lanes;
  if (is_aligned(r, f->code, op)) other_barrier(r, w, op, barrier, me);
}

// Where a warp's lanes wait in the barrier that opens: an aligned one is the same instruction for all of them.
static void same_instruction(kl_ordering *r, const kl_warp *w, unsigned barrier) {
  const kl_strand *first = NULL;
  for (uint32_t i = 0; i < w->nwaiting; i++) {
    const kl_strand *s = &w->waiting[i];
    if (s->wait != KL_AT_BARRIER || s->barrier != barrier) continue;
    const kl_code *code = s->frame->code;
    const kl_sim_op *op = &code->ops[s->pc];
    if (!first) {
      first = s;
      continue;
    }
    const kl_code *before = first->frame->code;
    if ((before != code || first->pc != s->pc) &&
        (is_aligned(r, code, op) || is_aligned(r, before, &before->ops[first->pc])))
      add(r, KL_FOUND_DIVERGENCE, "lanes of a warp in different instructions of a barrier",
          here(r, w, first_of(s->mask), s->frame, op),
          here(r, w, first_of(first->mask), first->frame, &before->ops[first->pc]));
  }
  uint32_t missing = w->alive & ~w->arrived[barrier];
  if (!first || !missing) return;
  const kl_code *code = first->frame->code;
  const kl_sim_op *op = &code->ops[first->pc];
  if (is_aligned(r, code, op))
    add(r, KL_FOUND_DIVERGENCE, "lanes of the warp are missing", here(r, w, first_of(first->mask), first->frame, op),
        kl_found_thread(r, w->block->number, w->rank, first_of(missing), code, NULL));
}

void kl_misuse_open(kl_ordering *r, kl_block *b, unsigned barrier) {
  kl_order_block *ob = kl_order_block_of(r, b);
  kl_arrivals *a = &ob->arrivals[barrier];
  uint32_t come = 0;
  for (uint32_t k = 0; k < b->nwarps; k++) {
    same_instruction(r, &b->warps[k], barrier);
    if (a->come[k]) come += KL_LANES;
    a->come[k] = 0;
  }
  if (a->op && come > a->expected)
    add_count(r, a->expected, "more have come than it opens for", first_to(r, ob, a), (kl_found_at){0});
  *a = (kl_arrivals){.came = a->came, .come = a->come};
}

void kl_misuse_end(kl_ordering *r, kl_order_block *ob, const kl_block *b) {
  if (b->alive) return; // the launch failed
  for (unsigned k = 0; k < KL_BARRIERS; k++) {
    const kl_arrivals *a = &ob->arrivals[k];
    if (a->op)
      add(r, KL_FOUND_COUNT, "some have come, and the block has ended before it opened", first_to(r, ob, a),
          (kl_found_at){0});
  }
}

// --- barriers of a cluster ----------------------------------------------------------------------------------------

void kl_misuse_cluster(kl_ordering *r, kl_order_warp *ow, kl_warp *w, const kl_sim_op *op, const kl_order_op *how,
                       bool arrives) {
  const kl_code *code = w->strand.frame->code;
  KL_EACH_LANE(i, w->x.mask) {
    kl_found_at me = here(r, w, i, w->strand.frame, op);
    if (!arrives) {
      if (!ow->arrive[i]) {
        add(r, KL_FOUND_COUNT, "barrier.cluster.wait without arrive", me, (kl_found_at){0});
        return;
      }
      continue;
    }
    if (ow->arrive[i]) {
      add(r, KL_FOUND_COUNT, "barrier.cluster.arrive twice without wait", me,
          kl_found_thread(r, w->block->number, w->rank, i, ow->arrive_code[i], ow->arrive[i]));
      return;
    }
  }
  if (!arrives) return;
  uint32_t others = 0;
  KL_EACH_LANE(i, w->x.mask) {
    ow->arrive[i] = op;
    ow->arrive_code[i] = code;
  }
  for (unsigned i = 0; i < KL_LANES; i++) others |= (uint32_t)(ow->arrive[i] && ow->arrive[i] != op) << i;
  others = kl_cluster_waits(w, others); // others have been let go, and will see
  if (others && how->aligned) {
    unsigned i = first_of(others);
    add(r, KL_FOUND_DIVERGENCE, "lanes of a warp in different instructions of a barrier",
        here(r, w, first_of(w->x.mask), w->strand.frame, op),
        kl_found_thread(r, w->block->number, w->rank, i, ow->arrive_code[i], ow->arrive[i]));
  }
}

// --- what lanes do together ---------------------------------------------------------------------------------------

static const uint32_t *word(const kl_party *p, unsigned lane, kl_ref ref) {
  uint32_t at = ref & ~(kl_ref)3;
  switch (ref & 3) {
  case KL_IN_REGISTERS: return (const uint32_t *)(p->frame[lane]->regs + at) + lane;
  case KL_IN_CONSTANTS: return (const uint32_t *)(p->frame[lane]->code->constants + at) + lane;
  default: return (const uint32_t *)(p->w->x.base[ref & 3] + at) + lane;
  }
}

// The lane a shuffle takes its value from; itself where that is outside its segment.
static unsigned source_of(const kl_party *p, unsigned lane) {
  const kl_sim_op *op = p->op[lane];
  bool inside;
  return kl_source_lane((kl_shuffle)op->imm, lane, *word(p, lane, op->b), *word(p, lane, op->c), &inside);
}

void kl_misuse_meet(kl_ordering *r, const kl_party *p) {
  const kl_warp *w = p->w;
  unsigned first = first_of(p->mask);
  uint32_t members = *word(p, first, p->op[first]->f);
  if (p->mask & ~members) {
    unsigned i = first_of(p->mask & ~members);
    add(r, KL_FOUND_INACTIVE, "the thread is not in its own member mask", here(r, w, i, p->frame[i], p->op[i]),
        (kl_found_at){0});
  }
  if (p->op[first]->run != kl_x_shuffle || p->mask == KL_ALL_LANES) return;
  KL_EACH_LANE(i, p->mask) {
    unsigned from = source_of(p, i);
    if (p->mask >> from & 1) continue;
    kl_found_at other = w->lanes >> from & 1
                            ? kl_found_thread(r, w->block->number, w->rank, from, p->frame[i]->code, NULL)
                            : (kl_found_at){0};
    add(r, KL_FOUND_INACTIVE,
        !(members >> from & 1) ? "a shuffle from a lane outside of the member mask"
        : w->lanes >> from & 1 ? "a shuffle from a lane that has exited"
                               : "a shuffle from a lane that the block does not have",
        here(r, w, i, p->frame[i], p->op[i]), other);
    return;
  }
}

// Lanes that execute it together: who names another one must be named the same way by it.
void kl_misuse_collective(kl_ordering *r, kl_warp *w, const kl_sim_op *op) {
  const kl_lanes *x = &w->x;
  const uint32_t *members = AT(uint32_t, op->f);
  uint32_t first = members[first_of(x->mask)], other = 0;
  for (unsigned i = 0; i < KL_LANES; i++) other |= (members[i] ^ first) & x->on32[i];
  if (!other) return;
  KL_EACH_LANE(i, x->mask) {
    KL_EACH_LANE(k, members[i] & x->mask) {
      if (members[k] == members[i]) continue;
      const kl_frame *f = w->strand.frame;
      add(r, KL_FOUND_INACTIVE, "lanes name each other in different member masks", here(r, w, i, f, op),
          here(r, w, k, f, op));
      return;
    }
  }
}

// --- threads that wait for ever -----------------------------------------------------------------------------------

static const char *wait_text(const kl_strand *s) {
  switch ((kl_wait)s->wait) {
  case KL_AT_BARRIER: return "threads wait for ever at a barrier of the block";
  case KL_AT_WARP: return "threads wait for ever for lanes of their member mask";
  case KL_AT_CLUSTER: return "threads wait for ever at the cluster's barrier";
  case KL_READY: return "threads go on";
  }
  return NULL;
}

// In a deadlock: each place where threads wait, with how many do.
void kl_misuse_fault(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_fault *f) {
  kl_ordering *r = kl_order_of(o);
  const kl_cluster *c = w->block->cluster;
  (void)op;
  if (f->kind != KL_FAULT_DEADLOCK || !(r->checks & KL_ORDER_SYNC)) return;
  for (uint32_t k = 0; k < c->n; k++)
    for (uint32_t i = 0; i < c->blocks[k].nwarps; i++) {
      const kl_warp *v = &c->blocks[k].warps[i];
      for (uint32_t n = 0; n < v->nwaiting; n++) {
        const kl_strand *s = &v->waiting[n];
        kl_found found = {.kind = KL_FOUND_DIVERGENCE,
                          .detail = wait_text(s),
                          .at = here(r, v, first_of(s->mask), s->frame, &s->frame->code->ops[s->pc]),
                          .times = (uint64_t)__builtin_popcount(s->mask)};
        kl_report_add(r->cx, r->report, &found);
      }
    }
}
