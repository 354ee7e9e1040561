// Shared memory of another block of the cluster is there from that block's begin to its end. So a thread that accesses
// it must know that the block has begun, and the block must wait for the access before it ends: at a barrier of the
// cluster, whether that orders memory (.release) or not (.relaxed), or by whatever else orders the two.

#include "sim/check/order/state.h"

static void found(kl_ordering *r, const kl_found_at *at, const kl_spot *spot, const char *detail) {
  kl_found f = {.kind = KL_FOUND_ABSENT, .at = *at, .detail = detail};
  if (spot) f.spot = *spot;
  kl_report_add(r->cx, r->report, &f);
}

// --- the begin ----------------------------------------------------------------------------------------------------

static bool has_begun(const kl_order_warp *ow, unsigned lane, uint64_t block) {
  if (ow->meetings[lane]) return true;
  const kl_past *p = ow->t.past[lane];
  for (size_t k = 0; p && k < p->n; k++)
    if (p->of[k].block == block) return true;
  return false;
}

// --- the end ------------------------------------------------------------------------------------------------------

// The last accesses of another block's warp, by lane.
struct kl_visit {
  uint32_t lanes; // that have made any
  uint32_t step[KL_LANES], site[KL_LANES], arrivals[KL_LANES];
  kl_spot spot; // of lane `lane`
  unsigned lane;
};

static kl_visit *visit_of(kl_ordering *r, kl_order_block *host, uint32_t guest, uint32_t rank) {
  if (!host->visits) host->visits = kl_alloc(r->cx, (size_t)r->run->blocks * r->warps * sizeof *host->visits);
  kl_visit **v = &host->visits[guest * r->warps + rank];
  if (!*v) *v = kl_alloc(r->cx, sizeof **v);
  return *v;
}

static bool is_known(const kl_ordering *r, const kl_order_block *host, uint64_t block, uint32_t rank, unsigned lane,
                     uint32_t step) {
  for (uint32_t k = 0; k < r->warps; k++)
    for (unsigned i = 0; i < KL_LANES; i++)
      if (kl_knows(&host->warps[k].t, i, block, rank, lane, step)) return true;
  return false;
}

static void judge(kl_ordering *r, const kl_order_block *host, const kl_visit *v, uint64_t block, uint32_t rank) {
  KL_EACH_LANE(i, v->lanes) {
    if (v->arrivals[i] < host->meetings || is_known(r, host, block, rank, i, v->step[i])) continue;
    const kl_site *s = &r->sites.p[v->site[i]];
    kl_found_at at = kl_found_thread(r, block, rank, i, s->code, &s->code->ops[s->op]);
    found(r, &at, i == v->lane ? &v->spot : NULL, "it may end before the access");
  }
}

void kl_remote_end(kl_ordering *r, kl_order_block *host, bool failed) {
  if (!host->visits) return;
  uint64_t first = host->number - host->number % r->run->blocks;
  for (uint32_t k = 0; k < r->run->blocks * r->warps; k++) {
    kl_visit *v = host->visits[k];
    if (!v) continue;
    if (!failed) judge(r, host, v, first + k / r->warps, k % r->warps);
    kl_free(r->cx, v, sizeof *v);
  }
  kl_free(r->cx, host->visits, (size_t)r->run->blocks * r->warps * sizeof *host->visits);
  host->visits = NULL;
}

// --- accesses -----------------------------------------------------------------------------------------------------

static void visit(kl_ordering *r, kl_order_block *ob, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m,
                  const kl_places *p, uint32_t site, unsigned lane, const kl_block *host) {
  kl_order_block *there = kl_order_block_of(r, host);
  kl_order_warp *ow = &ob->warps[w->rank];
  if (!there) return;
  if (!has_begun(ow, lane, host->number)) {
    const kl_code *code = w->strand.frame->code;
    kl_found_at at = kl_found_thread(r, ob->number, w->rank, lane, code, op);
    kl_spot spot = kl_spot_of(w, m->where, p->address[lane], (uint64_t)m->bytes * m->count);
    at.calls = kl_calls_of(w->strand.frame);
    found(r, &at, &spot, "it may not have begun");
  }
  kl_visit *v = visit_of(r, there, w->block->rank, w->rank);
  if (!v->lanes || (v->lane == lane && v->site[lane] != site)) {
    v->spot = kl_spot_of(w, m->where, p->address[lane], (uint64_t)m->bytes * m->count);
    v->lane = lane;
  }
  v->lanes |= 1u << lane;
  v->step[lane] = ow->t.step[lane];
  v->arrivals[lane] = ow->arrivals[lane];
  v->site[lane] = site;
}

void kl_remote_access(kl_ordering *r, kl_order_block *ob, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m,
                      const kl_places *p, uint32_t site) {
  KL_EACH_LANE(i, w->x.mask) {
    uint64_t at = p->address[i];
    if (m->where == KL_AT_GENERIC) {
      if (at / KL_WINDOW != 1) continue;
      at %= KL_WINDOW;
    }
    if (at < KL_SHARED_RANK) continue;
    const kl_block *host = &w->block->cluster->blocks[at / KL_SHARED_RANK - 1];
    if (host != w->block) visit(r, ob, w, op, m, p, site, i, host);
  }
}
