// What a plan's launches are to those who launch them: grids, arguments in slots and scratch memory, counts.

#include "jit/launches.h"
#include "lower/plan/cost/cost.h"

static uint32_t widest_access(const kl_plan *p, const kl_plan_launch *l) {
  uint32_t most = 0;
  for (uint32_t k = l->first_part; k < l->first_part + l->nparts; k++) {
    const kl_body *b = kl_body_is_empty(&p->parts[k].main) ? &p->parts[k].tail : &p->parts[k].main;
    for (uint32_t i = 0; i < b->nstores; i++) {
      const kl_access *x = &b->stores[i].access;
      uint32_t bytes = x->vec * kl_info(p->slots[x->slot].shape->dtype)->bits / 8;
      if (bytes > x->align) bytes = x->align;
      if (bytes > most) most = bytes;
    }
  }
  return most > p->target.max_bytes ? p->target.max_bytes : most;
}

// Memory for what the plan's launches and blocks leave each other: by slot, what it is (kernels.h). Counters are there
// for good, since they are zero again.
static uint64_t *place_scratch(kl_launcher *x, const kl_kernel_unit *u, const kl_plan *p) {
  kl_kernels *k = x->kernels;
  uint32_t number = (uint32_t)(u - k->units);
  uint64_t *at = KL_NEW_N(x->scratch, uint64_t, p->nslots + 1);
  for (uint32_t i = p->nargs; i < p->nslots; i++) {
    const kl_slot_info *s = &p->slots[i];
    uint64_t bytes = (uint64_t)s->bytes;
    if (s->given) {
      at[i] = KL_AMONG_CONSTANTS | kl_add_constant(x->cx, k, s->data, bytes);
    } else if (s->kind == KL_SLOT_SCRATCH && s->zero) {
      at[i] = KL_AMONG_COUNTERS | x->zero_bytes;
      x->zero_bytes += (bytes + k->scratch_align - 1) / k->scratch_align * k->scratch_align;
    } else if (s->kind == KL_SLOT_SCRATCH) {
      at[i] = kl_add_buffer(x->cx, k, bytes, number, number);
    }
  }
  return at;
}

// What an argument has that the launch reads or writes; of what is updated in place the elements that it goes over.
static int64_t bytes_of(const kl_plan *p, const kl_plan_launch *l, uint32_t slot, const kl_shape *shape) {
  const kl_slot_info *s = &p->slots[slot];
  int64_t all = kl_shape_bytes(shape), count = 0;
  if (l->when != KL_IN_PLACE || s->alias == KL_NONE ||
      p->slots[s->kind == KL_SLOT_OUT ? slot : s->alias].mode != KL_MODE_IN_PLACE)
    return all;
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++) count += p->parts[i].count;
  return count < s->shape->count ? count * kl_info(s->shape->dtype)->bits / 8 : all;
}

// Of a kernel's only launch they are the kernel's own, and a count behind them.
static void bind_arguments(kl_launcher *x, const kl_kernel_unit *u, const kl_plan *p, const kl_plan_launch *from,
                           const uint64_t *scratch, kiln_launch *l) {
  kiln_argument *args = KL_NEW_N(x->arena, kiln_argument, from->nargs + 1u);
  for (uint32_t i = 0; i < from->nargs; i++) {
    uint32_t slot = from->args[i];
    if (slot < p->nargs)
      args[i] = u->arguments[slot], l->bytes += bytes_of(p, from, slot, u->shapes[slot]);
    else
      args[i] = (kiln_argument){
          .kind = KILN_ARGUMENT_SCRATCH, .offset = scratch[slot], .output = p->slots[slot].kind == KL_SLOT_SCRATCH};
  }
  l->argument_count = from->nargs;
  if (p->counted) args[l->argument_count++] = (kiln_argument){.kind = KILN_ARGUMENT_COUNT};
  l->arguments = args;
}

static int64_t largest_result(const kl_kernel_unit *u, const kl_plan *p) {
  int64_t most = 0;
  for (uint32_t i = p->nargs - (uint32_t)kl_shape_leaf_count(kl_root(u->comp)->shape); i < p->nargs; i++)
    if (u->shapes[i]->count > most) most = u->shapes[i]->count;
  return most;
}

// Instructions of vectors: about what starting a thread takes.
enum { WORTH_A_THREAD = 16384 };

static int64_t of_first_block(const kl_body *b) {
  kl_vars blocks = kl_bound(b, KL_BIND_BLOCK);
  return blocks ? b->vars[__builtin_ctz(blocks)].extent : 1;
}

// How many blocks, or iterations of the host, a count takes.
static void describe_count(const kl_plan *p, const kl_plan_launch *from, kiln_launch *l) {
  const kl_part *part = &p->parts[from->first_part];
  int64_t block = p->target.machine == KL_HOST ? 1 : from->block, group = from->group, unit = from->unit;
  l->count_blocks = 1;
  if (p->flat) {
    l->count_whole = l->lanes * block;
    l->count_rest = l->rest_lanes * block;
  } else if (group) {
    int64_t of_value = part->main.blocks / of_first_block(&part->main);
    l->count_whole = l->count_rest = p->row * (group > unit ? group / unit : 1);
    l->count_blocks = (uint32_t)(of_value * (unit > group ? unit / group : 1));
  }
}

// Sizes are those of the module's shapes: a counted plan's are the largest ones.
static kl_described describe_launch(kl_launcher *x, const kl_kernel_unit *u, const kl_plan *p,
                                    const kl_plan_launch *from, const uint64_t *scratch) {
  const kl_part *first = &p->parts[from->first_part]; // the only one, if the kernel is given a count
  static const kiln_when when[] = {
      [KL_ALWAYS] = KILN_WHEN_ALWAYS, [KL_APART] = KILN_WHEN_APART, [KL_IN_PLACE] = KILN_WHEN_IN_PLACE};
  kiln_launch l = {.kernel = kl_str_dup(x->arena, kl_str_of(from->name)).p,
                   .when = u->in_place ? KILN_WHEN_ALWAYS : when[from->when],
                   .grid = {(uint32_t)from->grid, 1, 1},
                   .block = {from->block, 1, 1},
                   .cluster = {from->cluster ? from->cluster : 1, 1, 1},
                   .shared_bytes = from->shared_bytes > KL_MOST_SHARED ? 0 : from->shared_bytes,
                   .dynamic_shared_bytes = from->shared_bytes > KL_MOST_SHARED ? from->shared_bytes : 0,
                   .programmatic = p->programmatic,
                   .vector_bytes = widest_access(p, from),
                   .lanes = kl_body_is_empty(&first->main) ? first->tail.lanes : first->main.lanes,
                   .rest_lanes = first->tail.lanes,
                   .elements = largest_result(u, p)};
  bind_arguments(x, u, p, from, scratch, &l);
  if (p->counted) describe_count(p, from, &l);
  if (p->target.machine == KL_HOST) l.grid[0] = p->count != 0;
  int64_t least = (int64_t)(WORTH_A_THREAD / kl_iteration_work(p, from)) + 1;
  return (kl_described){from, l, {from->iterations, least, p->count != 0, p->flat}, {0}};
}

kl_planned kl_describe_launches(kl_launcher *x, const kl_kernel_unit *u, kl_plan *p) {
  const uint64_t *scratch = place_scratch(x, u, p);
  kl_planned out = {.plan = p, .launches = KL_NEW_N(x->scratch, kl_described, p->nlaunches + 1)};
  for (uint32_t i = 0; i < p->nlaunches; i++)
    if (!u->in_place || p->launches[i].when != KL_APART)
      out.launches[out.n++] = describe_launch(x, u, p, &p->launches[i], scratch);
  return out;
}

// Counters, then constants, then buffers.
void kl_launcher_place(const kl_launcher *x, kiln_argument *a) {
  const kl_kernels *k = x->kernels;
  uint64_t at = a->offset & ~KL_AMONG, among = a->offset & KL_AMONG;
  if (a->kind != KILN_ARGUMENT_SCRATCH) return;
  a->offset = among == KL_AMONG_COUNTERS    ? at
              : among == KL_AMONG_CONSTANTS ? x->zero_bytes + at
                                            : x->zero_bytes + k->constant_bytes + k->buffers.p[at].at;
}
