// The loop chooser: the flattened domain of results, consecutive elements to each thread.

#include "lower/choose/chooser.h"

// Variables of a body: threads, and the consecutive elements of each.
enum { THREAD, LANE, LOOP_VARS };

// --- the domain ---------------------------------------------------------------------------------------------------

static kiln_status find_domain(kl_ctx *cx, const kl_comp *c, const kl_slots *s, int64_t *count) {
  size_t nroots = kl_shape_leaf_count(kl_root(c)->shape);
  *count = 0;
  for (size_t r = 0; r < nroots; r++) {
    int64_t n = s->v.p[s->nargs - nroots + r].shape->count;
    if (r && n != *count)
      return kl_unsupported(cx, kl_root(c)->span,
                            "results of different sizes (%lld and %lld elements) in one fusion are not supported yet",
                            (long long)*count, (long long)n);
    *count = n;
  }
  return KILN_OK;
}

// Lanes per thread: as many as make the narrowest large array's access `max_bytes` wide, within 128 bytes of the widest
// so that one value of each lane fits the registers; small arrays (biases, scalars) have no say. Long bodies get fewer.
static uint32_t choose_lanes(const kl_plan *p, const kl_slots *s, uint32_t ninstr) {
  uint32_t narrow = 128, wide = 8, lowest = 1;
  for (uint32_t i = 0; i < s->nargs; i++) {
    const kl_slot_info *info = &s->v.p[i];
    uint32_t bits = kl_info(info->shape->dtype)->bits;
    if (info->kind == KL_SLOT_OUT && bits < 8 && 8 / bits > lowest) lowest = 8 / bits;
    if (info->kind == KL_SLOT_IN && info->shape->count < p->count / 4) continue;
    if (bits < narrow) narrow = bits;
    if (bits > wide) wide = bits;
  }
  uint32_t lanes = p->target.machine == KL_HOST ? p->target.host_lanes : p->target.max_bytes * 8 / narrow;
  while (lanes > 1 && lanes * wide > 128 * 8) lanes /= 2;
  while (lanes > 2 && (uint64_t)lanes * ninstr > 8192) lanes /= 2;
  // A small array keeps every multiprocessor busy before it makes accesses wide.
  int64_t most = p->target.multiprocessors * (int64_t)p->launches->block;
  while (lanes > 1 && !p->counted && most && p->count / lanes < most) lanes /= 2;
  return lanes < lowest ? lowest : lanes;
}

static uint32_t lowest_lanes(const kl_slots *s) {
  uint32_t lanes = 1;
  for (uint32_t i = 0; i < s->nargs; i++) {
    uint32_t bits = kl_info(s->v.p[i].shape->dtype)->bits;
    if (s->v.p[i].kind == KL_SLOT_OUT && bits < 8 && 8 / bits > lanes) lanes = 8 / bits;
  }
  return lanes;
}

// On a GPU `main` takes whole blocks only, so that its threads need no bounds check. Of a counted domain nothing is
// known but its largest size: both bodies are planned for all of it.
static void shape_body(const kl_plan *p, kl_body *b, uint32_t lanes, int64_t threads, int64_t first) {
  bool host = p->target.machine == KL_HOST;
  kl_var *vars = KL_NEW_N(p->arena, kl_var, LOOP_VARS);
  vars[THREAD] = (kl_var){KL_BIND_THREAD, threads, "t"};
  vars[LANE] = (kl_var){host ? KL_BIND_LANE : KL_BIND_REG, lanes, "lane"};
  *b = (kl_body){.nvars = LOOP_VARS, .vars = vars, .threads = threads, .lanes = lanes, .first = first};
  b->width = host ? lanes : 1;
}

static void shape_part(const kl_plan *p, uint32_t lanes, uint32_t tail_lanes, kl_part *part) {
  uint32_t block = p->launches->block;
  int64_t threads = part->count / lanes;
  if (p->target.machine == KL_NVPTX && !p->counted) threads -= threads % block;
  shape_body(p, &part->main, lanes, threads, 0);
  int64_t first = p->counted ? 0 : threads * lanes, rest = part->count - first;
  shape_body(p, &part->tail, tail_lanes, rest / tail_lanes + (rest % tail_lanes != 0), first);
  part->main_blocks = threads / block;
  // A counted tail begins, at most, behind the whole blocks.
  int64_t behind = part->tail.threads - (p->counted ? part->main_blocks * block * (lanes / tail_lanes) : 0);
  part->blocks = part->main_blocks + behind / block + (behind % block != 0);
}

static kiln_status shape_launch(kl_ctx *cx, kl_plan *p, const kl_slots *s) {
  uint32_t lanes = choose_lanes(p, s, p->comp->ninstr / p->nparts), tail_lanes = lowest_lanes(s);
  kl_plan_launch *l = p->launches;
  for (uint32_t i = 0; i < p->nparts; i++) {
    kl_part *part = &p->parts[i];
    shape_part(p, lanes, tail_lanes, part);
    part->first_block = l->grid;
    part->first_iteration = l->iterations;
    l->grid += part->blocks;
    l->iterations += part->main.threads;
  }
  if (p->target.machine == KL_NVPTX && l->grid > INT32_MAX)
    return kl_unsupported(cx, kl_root(p->comp)->span, "%lld elements need %lld blocks: a grid has at most 2^31-1",
                          (long long)p->count, (long long)l->grid);
  return KILN_OK;
}

// --- bodies ---------------------------------------------------------------------------------------------------------

// The index of the part's element `at`, in physical order; returns where it lies in the results.
static const kl_aff *index_in_part(kl_affs *p, const kl_part *part, const kl_shape *s, const kl_aff *at,
                                   const kl_aff **index) {
  if (part->dim == KL_NONE) {
    kl_index_at(p, s, at, index);
    return at;
  }
  kl_shape box = *s;
  int64_t dims[KILN_MAX_RANK];
  memcpy(dims, s->dims, s->rank * sizeof *dims);
  dims[part->dim] = part->size;
  box.dims = dims;
  kl_index_at(p, &box, at, index);
  index[part->dim] = kl_aff_addc(p, index[part->dim], part->lo);
  return kl_position_of(p, s, index);
}

static kiln_status write_roots(kl_walk *walk, const kl_part *part) {
  kl_affs *p = walk->affs;
  kl_writer *w = walk->w;
  const kl_body *b = w->body;
  const kl_comp *c = walk->plan->comp;
  const kl_aff *t = kl_aff_dim(p, THREAD), *j = kl_aff_dim(p, LANE);
  const kl_aff *at = kl_dom_simplify(b->domain, kl_aff_addc(p, kl_aff_addmul(p, j, t, b->lanes), b->first));
  bool never;
  uint32_t keep = kl_guard_and(&w->guards, KL_NONE, at, 0, part->count - 1, &never);
  uint32_t nroots = (uint32_t)kl_shape_leaf_count(kl_root(c)->shape);
  for (uint32_t r = 0; r < nroots; r++) {
    uint32_t slot = walk->slots->nargs - nroots + r, step;
    const kl_shape *s = walk->slots->v.p[slot].shape;
    const kl_aff *index[KILN_MAX_RANK], *linear = index_in_part(p, part, s, at, index);
    KL_TRY(kl_walk_want(walk, c->root, r, keep, index, &step));
    kl_write_store(w, slot, &walk->slots->v.p[slot], linear, step, keep);
  }
  return KILN_OK;
}

static kiln_status write_body(kl_ctx *cx, kl_plan *p, kl_slots *s, const kl_part *part, kl_body *body) {
  if (kl_body_is_empty(body)) return KILN_OK;
  kl_writer w;
  kl_walk walk;
  kl_write_begin(&w, cx, p, body);
  kl_walk_begin(&walk, cx, p, s, &w);
  kiln_status st = write_roots(&walk, part);
  kl_walk_free(&walk);
  if (st == KILN_OK)
    kl_write_end(&w);
  else
    kl_write_free(&w);
  return st;
}

// --- the plan -------------------------------------------------------------------------------------------------------

kiln_status kl_choose_loop(kl_choosing *c, const char **why_not) {
  kl_ctx *cx = c->cx;
  kl_plan *p = c->plan;
  *why_not = NULL;
  KL_TRY(find_domain(cx, p->comp, &c->slots, &p->count));
  KL_TRY(kl_split_domain(cx, p, &c->slots, c->params, c->arena));
  p->launches->nparts = p->nparts;
  if (p->count) KL_TRY(shape_launch(cx, p, &c->slots));
  for (uint32_t i = 0; i < p->nparts; i++) {
    kl_part *part = &p->parts[i];
    KL_TRY(write_body(cx, p, &c->slots, part, &part->main));
    KL_TRY(write_body(cx, p, &c->slots, part, &part->tail));
  }
  return KILN_OK;
}
