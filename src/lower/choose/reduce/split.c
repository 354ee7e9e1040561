// Several blocks for one result: how many.
//
// A block reads as fast as its multiprocessor lets it, all together as memory does; joining what they have made takes a
// while. What depends on a reduction waits for it in a launch of its own, so that each level reads all elements; blocks
// of a cluster wait for each other.

#include "lower/choose/reduce/reduce.h"

// Of a GPU whose own numbers are not known, and the host: processors, bytes that one of them reads in a microsecond,
// nanoseconds until partial results are joined, and of a launch more.
typedef struct machine {
  int64_t processors, bytes, join, launch;
} machine;

static machine machine_of(const kl_target *t) {
  if (t->machine == KL_HOST) return (machine){32, 8 << 10, 20000, 20000};
  return (machine){t->multiprocessors ? t->multiprocessors : 132, 24 << 10, 2000, 3000};
}

static int64_t bytes_read(const kl_reducing *g) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < g->c->slots.nargs; i++) {
    const kl_slot_info *s = &g->c->slots.v.p[i];
    if (s->kind == KL_SLOT_IN && s->shape->count >= g->x->rows * g->x->length / 2) bytes += s->bytes;
  }
  return bytes;
}

// Nanoseconds that blocks take to read all elements once.
static int64_t time_of(const machine *m, int64_t bytes, int64_t blocks) {
  int64_t rounds = kl_ceil_div(blocks, m->processors);
  return bytes / blocks * 1000 / m->bytes * rounds;
}

// Launches behind the first: reductions of others, and results for each element.
static int64_t levels_behind(const kl_reducing *g) {
  int64_t n = g->x->levels - 1;
  uint32_t first = g->c->slots.nargs - (uint32_t)kl_shape_leaf_count(kl_root(g->c->plan->comp)->shape);
  for (uint32_t i = first; i < g->c->slots.nargs; i++)
    if (kl_result_of(g->x, g->c->slots.v.p[i].shape) == KL_RESULT_ELEMENT) return n + 1;
  return n;
}

int64_t kl_best_split(const kl_reducing *g, int64_t blocks, int64_t least, int64_t most, bool again, int64_t *cost) {
  machine m = machine_of(&g->c->plan->target);
  uint32_t forced = g->c->params->strategy.split;
  int64_t bytes = bytes_read(g), best = least, behind = levels_behind(g);
  *cost = INT64_MAX;
  if (forced) return forced <= least ? least : kl_least(kl_power_of_two(forced), most);
  for (int64_t n = least; n == least || (n <= most && blocks * n <= 8 * m.processors * least); n *= 2) {
    int64_t t = time_of(&m, bytes, blocks * n);
    if (n == 1 && again) t *= behind + 1;
    if (n > 1) t = (behind + 1) * (t + m.join) + behind * m.launch;
    if (t < *cost) *cost = t, best = n;
  }
  return best;
}

int64_t kl_cluster_cost(const kl_reducing *g, int64_t blocks, int64_t n, bool held) {
  machine m = machine_of(&g->c->plan->target);
  int64_t times = held ? 1 : levels_behind(g) + 1, rounds = kl_ceil_div(blocks * n, m.processors);
  return times * time_of(&m, bytes_read(g), blocks * n) + rounds * g->x->levels * m.join / 2;
}

void kl_begin_last(kl_reducing *g, uint32_t split, const kl_aff *counter, int64_t counters) {
  kl_arrival a = {.of = split == KL_NONE ? 0 : (kl_vars)1 << split, .element = counter};
  a.slot = kl_add_counters(g->c->cx, g->c->plan, &g->c->slots, counters);
  kl_write_last(&g->w, &a);
}
