// Asynchronous copies (cp.async, PTX ISA 9.7.9.25): what is copied arrives when its thread waits for it, or exits; so
// one that nobody waits for is late, and what reads it too early reads what was there before. In a launch whose order
// is shuffled each may arrive at any time before: when the warp is given a turn, or has more to do with copies.

#include "sim/machine/execute.h"
#include "sim/machine/observe.h"
#include <stdlib.h>

// More are not kept: the older half arrives.
enum { MOST_FLIGHTS = 1 << 16 };

static void arrive(kl_warp *w, kl_flight *f) {
  if (w->observed) KL_TELL(w->block, copy, w, f, true);
  if (f->taken) memcpy(f->to, f->from, f->taken);
  memset(f->to + f->taken, 0, f->bytes - f->taken);
}

// Room for one more; false if there is no memory for any.
static bool make_room(kl_warp *w) {
  uint32_t room = w->flight_room ? w->flight_room * 2 : 64, half = w->nflights / 2;
  kl_flight *p = room <= MOST_FLIGHTS ? realloc(w->flights, room * sizeof *p) : NULL;
  if (p) {
    w->flights = p;
    w->flight_room = room;
    return true;
  }
  for (uint32_t k = 0; k < half; k++) arrive(w, &w->flights[k]);
  w->nflights -= half;
  if (half) memmove(w->flights, w->flights + half, w->nflights * sizeof *w->flights);
  return half > 0;
}

static void begin(kl_warp *w, const kl_flight *f) {
  kl_flight own = *f, *at = &own;
  bool stays = w->nflights < w->flight_room || make_room(w);
  if (stays) {
    at = &w->flights[w->nflights++];
    *at = own;
  }
  if (w->observed) KL_TELL(w->block, copy, w, at, false);
  if (!stays) arrive(w, at);
}

// Those of these lanes arrive that belong to all but the last `left` groups; UINT32_MAX: all.
static void wait(kl_warp *w, uint32_t lanes, uint32_t left) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < w->nflights; k++) {
    kl_flight *f = &w->flights[k];
    // Of group g, the lane having committed n: n - g later ones, itself not among them, may be on their way.
    bool done = lanes >> f->lane & 1 &&
                (left == UINT32_MAX || (f->group < w->group[f->lane] && w->group[f->lane] - f->group > left));
    if (done)
      arrive(w, f);
    else
      w->flights[kept++] = *f;
  }
  w->nflights = kept;
}

void kl_copies_drift(kl_warp *w) {
  uint32_t kept = 0;
  if (!w->block->cluster->random) return;
  for (uint32_t k = 0; k < w->nflights; k++)
    if (kl_draw_below(w->block->cluster, 4) == 0)
      arrive(w, &w->flights[k]);
    else
      w->flights[kept++] = w->flights[k];
  w->nflights = kept;
}

void kl_copies_after_exit(kl_warp *w, uint32_t lanes) {
  if (w->nflights) wait(w, lanes, UINT32_MAX);
}

void kl_x_copy_async(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  const kl_copy *c = (const kl_copy *)(uintptr_t)o->imm;
  const uint32_t *size = c->size == KL_NO_REF ? NULL : AT(uint32_t, c->size);
  uint32_t all = x->mask;
  kl_places to, from;
  for (int i = 0; size && i < KL_LANES; i++)
    if (size[i] == 0) x->mask &= ~(1u << i); // nothing is read, wherever the address points
  bool fits = x->mask == 0 || kl_access_places(x, o, &c->from, &from);
  x->mask = all;
  if (!fits || !kl_access_places(x, o, &c->to, &to)) return;
  kl_copies_drift(w);
  for (unsigned i = 0; i < KL_LANES; i++) {
    if (!(x->mask >> i & 1)) continue;
    kl_flight f = {.to = to.host[i],
                   .to_address = to.address[i],
                   .op = o,
                   .group = w->group[i],
                   .bytes = c->to.bytes,
                   .taken = (uint8_t)(size && size[i] < c->to.bytes ? size[i] : c->to.bytes),
                   .lane = (uint8_t)i};
    if (f.taken) f.from = from.host[i], f.from_address = from.address[i];
    begin(w, &f);
  }
}

void kl_x_copy_commit(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  (void)o;
  for (unsigned i = 0; i < KL_LANES; i++) w->group[i] += x->mask >> i & 1;
  kl_copies_drift(w);
}

void kl_x_copy_wait(kl_lanes *x, const kl_sim_op *o) {
  wait(kl_warp_of(x), x->mask, (uint32_t)o->imm);
  kl_copies_drift(kl_warp_of(x));
}
