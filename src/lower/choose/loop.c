// The loop chooser: slots, the flattened domain, lanes per thread, launch shape.

#include "lower/choose/walk.h"

// --- slots --------------------------------------------------------------------------------------------------------

static kiln_status add_slot(kl_ctx *cx, const kiln_module *m, kl_slots *s, const kl_instr *in, const kl_shape *shape,
                            kl_slot_kind kind, uint32_t align) {
  kl_instr part = {.op = KL_OP_PARAMETER, .shape = shape, .span = in->span};
  KL_TRY(kl_plan_check_op(cx, m, NULL, &part));
  int64_t bytes = kl_shape_bytes(shape);
  if (bytes < 0) return kl_invalid(cx, in->span, "the array is larger than 2^63 bytes");
  uint32_t bits = kl_info(shape->dtype)->bits, need = kl_is_complex(shape->dtype) ? bits / 16 : bits / 8;
  if (align < need)
    return kl_invalid(cx, in->span, "arguments are declared aligned to %u bytes: %s needs %u", align,
                      kl_info(shape->dtype)->name, need);
  VEC_PUSH(cx, &s->v, (kl_slot_info){.kind = kind, .shape = shape, .bytes = bytes, .align = align, .alias = KL_NONE});
  return KILN_OK;
}

// Slots lie in memory as their owners have them, in whatever layout the computation has their values.
static kiln_status make_slots(kl_ctx *cx, const kl_plan *p, const kl_plan_params *params, kl_arena *arena,
                              kl_slots *s) {
  const kl_comp *c = p->comp;
  const kl_instr *root = kl_root(c);
  uint32_t align = params->align ? params->align : 16;
  const kl_shape *const *given = params->shapes;
  s->param_base = KL_NEW_N(arena, uint32_t, c->nparams + 1);
  for (uint32_t i = 0; i < c->nparams; i++) {
    s->param_base[i] = (uint32_t)s->v.n;
    const kl_instr *in = &c->instr[c->params[i]];
    if (in->shape->dtype != KILN_TUPLE) KL_TRY(kl_plan_check_op(cx, p->module, c, in));
    for (size_t l = 0; l < kl_shape_leaf_count(in->shape); l++)
      KL_TRY(add_slot(cx, p->module, s, in, given ? *given++ : kl_shape_leaf(in->shape, l), KL_SLOT_IN, align));
  }
  if (root->op == KL_OP_UNKNOWN) return kl_plan_check_op(cx, p->module, c, root);
  for (size_t l = 0; l < kl_shape_leaf_count(root->shape); l++)
    KL_TRY(add_slot(cx, p->module, s, root, given ? *given++ : kl_shape_leaf(root->shape, l), KL_SLOT_OUT, align));
  s->nargs = (uint32_t)s->v.n;
  return KILN_OK;
}

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
  int64_t most = p->target.multiprocessors * (int64_t)p->target.block;
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
static void shape_part(const kl_plan *p, uint32_t lanes, uint32_t tail_lanes, kl_part *part) {
  uint32_t block = p->target.block;
  int64_t threads = part->count / lanes;
  if (p->target.machine == KL_NVPTX && !p->counted) threads -= threads % block;
  part->main = (kl_body){.lanes = lanes, .threads = threads, .first = 0};
  int64_t first = p->counted ? 0 : threads * lanes, rest = part->count - first;
  part->tail = (kl_body){.lanes = tail_lanes, .threads = rest / tail_lanes + (rest % tail_lanes != 0), .first = first};
  part->main_blocks = threads / block;
  // A counted tail begins, at most, behind the whole blocks.
  int64_t behind = part->tail.threads - (p->counted ? part->main_blocks * block * (lanes / tail_lanes) : 0);
  part->blocks = part->main_blocks + behind / block + (behind % block != 0);
}

static kiln_status shape_launch(kl_ctx *cx, kl_plan *p, const kl_slots *s) {
  uint32_t lanes = choose_lanes(p, s, p->comp->ninstr / p->nparts), tail_lanes = lowest_lanes(s);
  for (uint32_t i = 0; i < p->nparts; i++) {
    kl_part *part = &p->parts[i];
    shape_part(p, lanes, tail_lanes, part);
    part->first_block = p->grid;
    part->first_iteration = p->iterations;
    p->grid += part->blocks;
    p->iterations += part->main.threads;
  }
  if (p->target.machine == KL_NVPTX && p->grid > INT32_MAX)
    return kl_unsupported(cx, kl_root(p->comp)->span, "%lld elements need %lld blocks: a grid has at most 2^31-1",
                          (long long)p->count, (long long)p->grid);
  return KILN_OK;
}

// --- making -------------------------------------------------------------------------------------------------------

// A name that PTX and ELF take: letters, digits and underscores, not starting with a digit, none of PTX's own words.
static const char *identifier(kl_arena *arena, const char *name) {
  size_t n = strlen(name);
  char *id = kl_arena_alloc(arena, n + 6), *p = id + 5;
  memcpy(id, "kiln_", 5);
  for (size_t i = 0; i < n; i++) {
    char ch = name[i];
    bool ok = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
    p[i] = ok ? ch : '_';
  }
  bool plain = n > 0 && !(p[0] >= '0' && p[0] <= '9') && strcmp(p, "_") != 0 && strcmp(p, "WARP_SZ") != 0;
  return plain ? p : id;
}

// PTX takes 32764 bytes of arguments, here addresses of 8.
enum { KL_MAX_KERNEL_ARGS = 32764 / 8 };

// Everything that walks an expression takes time by its size.
enum { KL_MAX_INDEX_TERMS = 4096 };

bool kl_is_sound(const kl_aff *e) {
  return !e->error && e->size <= KL_MAX_INDEX_TERMS;
}

const char *kl_why_unsound(const kl_aff *e) {
  return e->error == KL_AFF_OVERFLOW ? "does not fit 64 bits"
                                     : "is too complex: too many reshapes of odd sizes in a row";
}

kiln_status kl_plan_refuse_index(kl_ctx *cx, const kl_plan *p, const char *why) {
  return kl_unsupported(cx, kl_root(p->comp)->span, "an index of this fusion %s", why);
}

// What an unknown op does nobody knows, so that it counts where nothing uses it, too.
static kiln_status refuse_unknown(kl_ctx *cx, const kiln_module *m, const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_UNKNOWN) return kl_plan_check_op(cx, m, c, &c->instr[i]);
  return KILN_OK;
}

static kiln_status fill(kl_ctx *cx, kl_plan *p, kl_slots *s, const kl_plan_params *params, kl_arena *arena) {
  KL_TRY(refuse_unknown(cx, p->module, p->comp));
  KL_TRY(make_slots(cx, p, params, arena, s));
  if (p->target.machine == KL_NVPTX && s->nargs + p->counted > KL_MAX_KERNEL_ARGS)
    return kl_unsupported(cx, kl_root(p->comp)->span,
                          "the fusion has %u parameters and results: a kernel takes at most %d", s->nargs,
                          KL_MAX_KERNEL_ARGS);
  KL_TRY(find_domain(cx, p->comp, s, &p->count));
  KL_TRY(kl_split_domain(cx, p, s, params, arena));
  if (p->count) KL_TRY(shape_launch(cx, p, s));
  for (uint32_t i = 0; i < p->nparts; i++) {
    kl_part *part = &p->parts[i];
    if (part->main.threads) KL_TRY(kl_walk_body(cx, p, s, arena, part, &part->main));
    if (part->tail.threads) KL_TRY(kl_walk_body(cx, p, s, arena, part, &part->tail));
    p->index64 |= !kl_body_fits(&part->main, 32) || !kl_body_fits(&part->tail, 32);
    if (p->index64 && (!kl_body_fits(&part->main, 64) || !kl_body_fits(&part->tail, 64)))
      return kl_plan_refuse_index(cx, p, "does not fit 64 bits");
  }
  p->nargs = s->nargs;
  p->nslots = (uint32_t)s->v.n;
  p->slots = kl_arena_dup(arena, s->v.p, s->v.n * sizeof(kl_slot_info));
  return KILN_OK;
}

kiln_status kl_plan_make(kl_ctx *cx, const kiln_module *m, const kl_comp *comp, const kl_plan_params *params,
                         kl_arena *arena, kl_plan **out) {
  kl_plan *p = KL_NEW(arena, kl_plan);
  *p = (kl_plan){.arena = arena, .module = m, .comp = comp, .target = params->target, .counted = params->counted};
  p->programmatic = params->programmatic;
  p->fast = params->fast;
  p->name = identifier(arena, params->name);
  p->affs = kl_affs_create(cx, arena);
  kl_slots s = {0};
  kiln_status st = fill(cx, p, &s, params, arena);
  VEC_FREE(cx, &s.v);
  VEC_FREE(cx, &s.constants);
  VEC_FREE(cx, &s.concatenates);
  kl_ids_free(cx, &s.constant_ids);
  kl_ids_free(cx, &s.concatenate_ids);
  if (st != KILN_OK)
    kl_plan_free(p);
  else
    *out = p;
  return st;
}
