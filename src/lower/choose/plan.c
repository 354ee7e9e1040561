// Makes plans: slots, and the first chooser that takes the computation.

#include "lower/choose/chooser.h"
#include "lower/plan/cost/cost.h"

#include "ir/rewrite/transform.h"

// --- slots --------------------------------------------------------------------------------------------------------

static const kl_shape *vector_of(kl_arena *arena, kl_dtype t, int64_t count) {
  kl_shape *shape = KL_NEW(arena, kl_shape);
  int64_t *dims = KL_NEW(arena, int64_t);
  *dims = count;
  *shape = (kl_shape){.dtype = t, .rank = 1, .dims = dims, .count = count};
  return shape;
}

// Integers of so many bits; NONE: there are none.
static kl_dtype word_of(int64_t bits) {
  static const kl_dtype words[] = {KILN_U1, KILN_U2, KILN_U4, KILN_U8, KILN_U16, KILN_U32, KILN_U64};
  for (size_t i = 0; i < KL_COUNT(words); i++)
    if (kl_info(words[i])->bits == bits) return words[i];
  return KILN_DTYPE_NONE;
}

// The row of a buffer's positions, where its layout is more than an order of dimensions. Elements of other sizes than
// the type's are words; those of pred may be smaller.
static kiln_status find_positions(kl_ctx *cx, const kl_instr *in, kl_arena *arena, kl_slot_info *s) {
  if (kl_layout_is_order(s->shape)) return KILN_OK;
  kl_physical p;
  kl_physical_of(s->shape, &p); // which checks have passed
  uint32_t bits = kl_info(s->shape->dtype)->bits;
  kl_dtype t = p.bits == bits ? s->shape->dtype : kl_is_complex(s->shape->dtype) ? KILN_DTYPE_NONE : word_of(p.bits);
  if (p.prefix) return kl_unsupported(cx, in->span, "layouts with a metadata prefix (M) are not supported");
  if (t == KILN_DTYPE_NONE)
    return kl_unsupported(cx, in->span,
                          "a layout with E(%lld) is not supported for %s: expected its own size, or a "
                          "power of two up to 64 for what is no complex number",
                          (long long)p.bits, kl_info(s->shape->dtype)->name);
  s->owner = s->shape;
  s->shape = vector_of(arena, t, p.positions);
  return KILN_OK;
}

static kiln_status add_slot(kl_ctx *cx, const kiln_module *m, kl_slots *s, const kl_instr *in, const kl_shape *shape,
                            kl_slot_kind kind, uint32_t align, kl_arena *arena) {
  kl_instr part = {.op = KL_OP_PARAMETER, .shape = shape, .span = in->span};
  KL_TRY(kl_plan_check_op(cx, m, NULL, &part));
  int64_t bytes = kl_shape_bytes(shape);
  if (bytes < 0) return kl_invalid(cx, in->span, "the array is larger than 2^63 bytes");
  kl_slot_info info = {.kind = kind, .shape = shape, .bytes = bytes, .align = align, .alias = KL_NONE};
  KL_TRY(find_positions(cx, in, arena, &info));
  uint32_t bits = kl_info(info.shape->dtype)->bits, need = kl_is_complex(shape->dtype) ? bits / 16 : bits / 8;
  if (align < need)
    return kl_invalid(cx, in->span, "arguments are declared aligned to %u bytes: %s needs %u", align,
                      kl_info(shape->dtype)->name, need);
  VEC_PUSH(cx, &s->v, info);
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
      KL_TRY(add_slot(cx, p->module, s, in, given ? *given++ : kl_shape_leaf(in->shape, l), KL_SLOT_IN, align, arena));
  }
  if (root->op == KL_OP_UNKNOWN) return kl_plan_check_op(cx, p->module, c, root);
  for (size_t l = 0; l < kl_shape_leaf_count(root->shape); l++)
    KL_TRY(
        add_slot(cx, p->module, s, root, given ? *given++ : kl_shape_leaf(root->shape, l), KL_SLOT_OUT, align, arena));
  s->nargs = (uint32_t)s->v.n;
  for (uint32_t i = 0; params->counted && i < s->nargs; i++) s->v.p[i].row = params->counted->row_of[i];
  return KILN_OK;
}

kl_shape *kl_in_order(kl_arena *arena, const kl_shape *s) {
  kl_shape *order = kl_arena_dup(arena, s, sizeof *s);
  order->layout = (kl_layout){s->layout.present, s->layout.rank, s->layout.minor_to_major, .tail_padding = 1};
  return order;
}

uint32_t kl_add_scratch(kl_ctx *cx, kl_plan *p, kl_slots *s, kl_dtype t, int64_t count) {
  kl_slot_info info = {.kind = KL_SLOT_SCRATCH, .shape = vector_of(p->arena, t, count), .align = 16, .alias = KL_NONE};
  info.bytes = count * kl_info(t)->bits / 8;
  VEC_PUSH(cx, &s->v, info);
  return (uint32_t)s->v.n - 1;
}

uint32_t kl_add_counters(kl_ctx *cx, kl_plan *p, kl_slots *s, int64_t count) {
  uint32_t slot = kl_add_scratch(cx, p, s, KILN_U32, count);
  s->v.p[slot].zero = true;
  return slot;
}

uint32_t kl_store_value(kl_ctx *cx, kl_plan *p, kl_slots *s, uint32_t instr, uint32_t leaf) {
  kl_shape *shape = kl_in_order(p->arena, kl_shape_leaf(p->comp->instr[instr].shape, leaf));
  shape->dtype = kl_in_bytes(shape->dtype);
  shape->layout = (kl_layout){0};
  uint32_t slot = kl_add_scratch(cx, p, s, shape->dtype, shape->count);
  s->v.p[slot].shape = shape;
  VEC_PUSH(cx, &s->stored, (kl_stored_value){instr, leaf, slot});
  return slot;
}

kl_dtype kl_in_bytes(kl_dtype t) {
  if (kl_info(t)->bits >= 8) return t;
  return kl_is_float(t) ? KILN_F16 : kl_is_signed(t) ? KILN_S8 : KILN_U8;
}

uint32_t kl_add_shared(kl_ctx *cx, kl_plan *p, kl_slots *s, kl_dtype t, int64_t count) {
  const kl_shape *shape = vector_of(p->arena, t, count);
  int64_t bytes = count * kl_info(t)->bits / 8;
  kl_slot_info info = {.kind = KL_SLOT_SHARED, .shape = shape, .bytes = bytes, .align = 16, .alias = KL_NONE};
  info.at = kl_last_launch(p)->shared_bytes;
  info.launch = p->nlaunches - 1;
  kl_last_launch(p)->shared_bytes += (uint32_t)((bytes + 15) & ~15ll);
  VEC_PUSH(cx, &s->v, info);
  return (uint32_t)s->v.n - 1;
}

// --- names and refusals
// -------------------------------------------------------------------------------------------------------

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

kiln_status kl_plan_refuse_index(kl_ctx *cx, const kl_plan *p, const char *why) {
  return kl_unsupported(cx, kl_root(p->comp)->span, "an index of this fusion %s", why);
}

// What has an effect counts where nothing uses its result, too.
static kiln_status refuse_effects(kl_ctx *cx, const kiln_module *m, const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (kl_op_has_effect(&c->instr[i])) return kl_plan_check_op(cx, m, c, &c->instr[i]);
  return KILN_OK;
}

// --- making ---------------------------------------------------------------------------------------------------------

typedef struct row {
  const char *kind;
  kl_op op; // that no other chooser makes, or KL_OP_UNKNOWN
  kl_chooser *choose;
  bool loops; // elements of a thread may lie together, or be single
  bool asks;  // its indices may be more than the verifier follows: then another chooser's turn has come
  bool alone; // what it takes none of those behind would take, or do better
  bool tiles; // it makes results whose owners have them in tiles
  bool few;   // on the host it can make fewer copies at a time
} row;

// In order of trial. Of those that take a computation, and share the memory that must be shared, if any does, the one
// whose plan costs least writes it, the first of them where they cost the same.
static const row choosers[] = {
    {"top of lines", KL_OP_UNKNOWN, kl_choose_top, false, false, false, true},
    {"radix sort", KL_OP_UNKNOWN, kl_choose_radix_sort, false, false, false, true},
    {"tile sort", KL_OP_UNKNOWN, kl_choose_tile_sort, false, false, false, true},
    {"staged", KL_OP_UNKNOWN, kl_choose_staged, false, false, true, true},
    {"reduction", KL_OP_REDUCE, kl_choose_reduction, false, false, true, true},
    {"tiled contraction", KL_OP_UNKNOWN, kl_choose_tiled_contraction, false, true, false, true, true},
    {"contraction of few rows", KL_OP_UNKNOWN, kl_choose_few_contraction, false, true, true, true},
    {"contraction", KL_OP_DOT, kl_choose_contraction, false, false, true, true},
    {"private scatter", KL_OP_UNKNOWN, kl_choose_private_scatter, false, false, false, false},
    {"sorted scatter", KL_OP_UNKNOWN, kl_choose_sorted_scatter, false, false, false, false},
    {"warp scatter", KL_OP_UNKNOWN, kl_choose_warp_scatter, false, false, true, false},
    {"owned scatter", KL_OP_UNKNOWN, kl_choose_owned_scatter, false, false, true, false},
    {"scatter", KL_OP_SCATTER, kl_choose_scatter, false, false, true, false},
    {"transpose", KL_OP_UNKNOWN, kl_choose_transposition, false, true, false, false, true},
    {"in-place update", KL_OP_UNKNOWN, kl_choose_in_place, true, true, true, true},
    {"loop", KL_OP_UNKNOWN, kl_choose_loop, true, false, false, true},
};

bool kl_has_chooser(kl_op op) {
  if (kl_is_staged(op)) return true;
  if (op == KL_OP_CONVOLUTION) op = KL_OP_DOT; // both are contractions
  for (size_t i = 0; i < KL_COUNT(choosers); i++)
    if (choosers[i].op == op && op != KL_OP_UNKNOWN) return true;
  return false;
}

// One launch of no parts.
static void begin_launches(kl_plan *p) {
  p->nparts = p->nlaunches = 0;
  p->count = 0;
  kl_plan_add_launch(p, p->target.block);
}

void kl_forget_choice(kl_choosing *c, size_t slots, size_t constants) {
  begin_launches(c->plan);
  c->slots.v.n = slots;
  for (size_t i = 0; i < slots; i++) {
    c->slots.v.p[i].mode = KL_MODE_COVER;
    c->slots.v.p[i].scattered = false;
    c->slots.v.p[i].alias = KL_NONE;
  }
  c->slots.stored.n = 0;
  if (c->slots.constants.n == constants) return;
  c->slots.constants.n = c->slots.constant_slots.n = 0;
  kl_ids_free(c->cx, &c->slots.constant_ids);
}

static kiln_status check_indices(kl_ctx *cx, kl_plan *p) {
  p->index64 = false;
  for (uint32_t i = 0; i < p->nparts; i++) {
    const kl_body *bodies[2] = {&p->parts[i].main, &p->parts[i].tail};
    for (int k = 0; k < 2; k++) {
      if (kl_body_fits(bodies[k], 32)) continue;
      p->index64 = true;
      if (!kl_body_fits(bodies[k], 64)) return kl_plan_refuse_index(cx, p, "does not fit 64 bits");
    }
  }
  return KILN_OK;
}

// Lets results be the memory of parameters, as the chooser wants, or else as is asked for and as far as threads read
// what they write themselves. False where that is not as far as the chooser wants.
static bool share(kl_choosing *c) {
  kl_plan *p = c->plan;
  uint32_t *result = KL_NEW_N(c->arena, uint32_t, p->nslots + 1);
  bool *shared = KL_NEW_N(c->arena, bool, p->nslots + 1), any = false;
  for (uint32_t i = 0; i < p->nslots; i++) {
    bool in = p->slots[i].kind == KL_SLOT_IN;
    result[i] = in ? p->slots[i].alias : KL_NONE;
    if (in && c->params->partner && result[i] == KL_NONE) result[i] = c->params->partner[i];
    any |= result[i] != KL_NONE;
    p->slots[i].alias = KL_NONE;
  }
  if (any) kl_plan_alias(p, result, shared);
  for (uint32_t i = 0; i < p->nargs; i++)
    if (c->slots.v.p[i].kind == KL_SLOT_IN && c->slots.v.p[i].alias != KL_NONE && !shared[i]) return false;
  return true;
}

// What follows from the bodies that a chooser wrote.
static kiln_status finish(kl_choosing *c, bool *shares) {
  kl_plan *p = c->plan;
  kl_plan_drop_dead(p);
  KL_TRY(check_indices(c->cx, p));
  p->nargs = c->slots.nargs;
  p->nslots = (uint32_t)c->slots.v.n;
  p->slots = kl_arena_dup(c->arena, c->slots.v.p, c->slots.v.n * sizeof(kl_slot_info));
  kl_plan_find_arguments(p);
  *shares = share(c);
  kl_plan_order_stores(p);
  kl_plan_sink(p);
  kl_plan_place_syncs(p);
  return KILN_OK;
}

static bool has_tiles(const kl_slots *s, kl_slot_kind kind) {
  for (uint32_t i = 0; i < s->nargs; i++)
    if (s->v.p[i].kind == kind && s->v.p[i].owner) return true;
  return false;
}

// Are threads' elements apart from each other in some part?
static bool has_chunks(const kl_plan *p) {
  for (uint32_t i = 0; i < p->nparts; i++)
    if (p->parts[i].main.blocks) return true;
  return false;
}

// What is tried where a plan is not proved: digits of odd dimensions may be more than the verifier follows where a
// thread's elements lie apart, those of odd tiles where it has several; then they do not, or it has not. Where blocks
// of as many elements as there are read beyond their rows, guards say how many these are. Of reductions less and less
// is in one launch. Indices of loads that it does not follow at all are held to their arrays. What cannot be shown to
// be right where results are parameters' memory (`shares`: it can) is for those that are apart. False: nothing is left.
static bool try_harder(kl_choosing *c, const row *r, bool shares) {
  kl_plan *p = c->plan;
  if (p->flat) return p->flat = false, true;
  bool chunks = r->loops && has_chunks(p), more = shares && (r->loops || !r->asks);
  if (more && (chunks || !p->single)) {
    p->single = !chunks;
    p->together = true;
    return true;
  }
  if (more && r->choose != kl_choose_reduction && !p->bounded) return p->bounded = true;
  p->single = p->together = false;
  if (more && r->choose == kl_choose_reduction) {
    if (++c->effort < KL_EFFORTS) return true;
    c->effort = KL_TOGETHER;
    if (!p->bounded) return p->bounded = true;
  }
  p->bounded = false;
  if (c->apart || !kl_has_conditions(p)) return false;
  c->effort = KL_TOGETHER;
  return c->apart = true;
}

// LLVM takes more than linear time for the host's code. So many instructions are long, unless they are copies of a few
// steps, accesses above all: these are what copies are for.
enum { LONG_CODE = 400, MANY_STEPS = 16 };

// Would fewer copies do? They share what loops that carry values read, which is worth their code where that is most of
// the work.
static bool few_will_do(const kl_plan *p, const row *r) {
  if (!r->few || p->few || p->target.machine != KL_HOST) return false;
  kl_code_size size = kl_size_of_code(p);
  return size.code > LONG_CODE && size.nodes >= MANY_STEPS && size.outside >= size.carried;
}

// Writes the plan of a row, whole; or says why not.
static kiln_status try(kl_choosing *c, const row *r, const char **why_not) {
  kl_plan *p = c->plan;
  size_t slots = c->slots.v.n, constants = c->slots.constants.n;
  p->kind = r->kind;
  p->flat = p->counted && r->choose == kl_choose_loop;
  p->single = p->together = p->bounded = p->few = c->apart = false;
  c->effort = KL_TOGETHER;
  bool many = false; // copies, as few are not proved
  if (!r->tiles && has_tiles(&c->slots, KL_SLOT_OUT)) *why_not = "a result lies in tiles";
  while (!*why_not) {
    bool shares = false;
    KL_TRY(r->choose(c, why_not));
    if (*why_not && !p->few) break;
    if (!*why_not) KL_TRY(finish(c, &shares));
    if (shares && kl_plan_is_proved(c->cx, p)) {
      if (many || !few_will_do(p, r)) return KILN_OK;
      p->few = true;
    } else if (p->few) {
      p->few = false, many = true;
      *why_not = NULL;
    } else if (!try_harder(c, r, shares)) {
      break;
    }
    kl_forget_choice(c, slots, constants);
  }
  if (!*why_not && r->choose != kl_choose_loop) *why_not = "its indices are more than the verifier follows";
  return KILN_OK;
}

// The same where there is a plan already: that no such plan can be is no error then.
static kiln_status try_besides(kl_choosing *c, const row *r, const char **why_not) {
  kl_diag_mark before = kl_diag_here(c->cx);
  kiln_status st = try(c, r, why_not);
  if (st != KILN_E_UNSUPPORTED) return st;
  *why_not = "";
  if (c->cx->diags.n > before.kept) *why_not = kl_strf(c->arena, "%s", c->cx->diags.p[c->cx->diags.n - 1].message);
  kl_diag_forget(c->cx, before, kl_diag_here(c->cx));
  return KILN_OK;
}

static void decline(kl_choosing *c, const char *kind, const char *why) {
  if (*why) VEC_PUSH(c->cx, &c->declined, (kl_declined){kind, why});
}

// Are all pairs that must be one memory one in the plan?
static bool keeps_pairs(const kl_choosing *c) {
  const kl_plan_params *params = c->params;
  for (uint32_t i = 0; params->must && i < c->plan->nargs; i++)
    if (params->must[i] && c->plan->slots[i].alias != params->partner[i]) return false;
  return true;
}

typedef struct costed {
  kl_plan plan; // kind NULL: there is none yet
  bool keeps;   // pairs that must be one memory
  kl_cost cost;
  kl_cost_clocks clocks;
} costed;

static costed cost_of(const kl_choosing *c) {
  kl_plan *p = c->plan;
  costed x = {.plan = *p, .keeps = keeps_pairs(c), .cost = kl_plan_cost(p, KL_COST_QUICK)};
  x.clocks = kl_clocks_of(p, &x.cost);
  return x;
}

static const char *loses(kl_choosing *c, const costed *x, const costed *to) {
  if (to->keeps && !x->keeps) return "it would keep a parameter and a result apart that must be the same memory";
  static const char *const parts[] = {[KL_LIMIT_DRAM] = "memory",
                                      [KL_LIMIT_L2] = "sectors of L2",
                                      [KL_LIMIT_SHARED] = "shared memory",
                                      [KL_LIMIT_ISSUE] = "instructions",
                                      [KL_LIMIT_MEET] = "changes of the same elements"};
  const kl_requests *a = &x->cost.load.asked, *b = &x->cost.store.asked;
  return kl_strf(c->arena, "it would take %.2f times as long, limited by %s: %lld sectors, about %lld instructions",
                 x->clocks.all / to->clocks.all, parts[x->clocks.limiter], (long long)(a->sectors + b->sectors),
                 (long long)x->cost.instructions);
}

// The one of two plans that keeps all pairs, else the cheaper one.
static costed better(kl_choosing *c, const costed *best, const costed *other) {
  bool wins = other->keeps != best->keeps ? other->keeps : other->clocks.all < best->clocks.all;
  const costed *lost = wins ? best : other;
  decline(c, lost->plan.kind, loses(c, lost, wins ? other : best));
  return wins ? *other : *best;
}

// What costs can be compared: those of a GPU, for an element count that is known.
static bool has_cost(const kl_plan *p) {
  return p->target.machine == KL_NVPTX && !p->flat && p->count;
}

// Nobody has taken the computation. Where one who could have, for all of an op, has said why not, that is why: findings
// from `before` on tell of the others.
static kiln_status refuse(kl_choosing *c, kl_diag_mark before, kiln_status st) {
  const kl_comp *comp = c->plan->comp;
  for (size_t i = 0; i < c->declined.n && st == KILN_E_UNSUPPORTED; i++)
    for (size_t r = 0; r < KL_COUNT(choosers); r++) {
      uint32_t k = 0;
      if (choosers[r].op == KL_OP_UNKNOWN || strcmp(choosers[r].kind, c->declined.p[i].kind) != 0) continue;
      while (k < comp->ninstr && comp->instr[k].op != choosers[r].op) k++;
      if (k == comp->ninstr) continue;
      kl_diag_forget(c->cx, before, kl_diag_here(c->cx));
      return kl_unsupported(c->cx, comp->instr[k].span, "%s is not compiled here: %s", kl_op_name(choosers[r].op),
                            c->declined.p[i].why);
    }
  return st;
}

static kiln_status choose(kl_choosing *c) {
  kl_plan *p = c->plan;
  costed best = {0};
  kl_diag_mark before = kl_diag_here(c->cx);
  size_t slots = c->slots.v.n, constants = c->slots.constants.n;
  for (size_t i = 0; i < KL_COUNT(choosers); i++) {
    const row *r = &choosers[i];
    const char *why_not = NULL;
    if (c->params->strategy.chooser && strcmp(c->params->strategy.chooser, r->kind) != 0) continue;
    begin_launches(p);
    kiln_status st = (best.plan.kind ? try_besides : try)(c, r, &why_not);
    if (st != KILN_OK) return refuse(c, before, st);
    if (why_not) {
      decline(c, r->kind, why_not);
      kl_forget_choice(c, slots, constants);
      continue;
    }
    bool last = keeps_pairs(c) && (r->alone || i + 1 == KL_COUNT(choosers) || !has_cost(p));
    if (last && !best.plan.kind) return KILN_OK;
    costed one = cost_of(c);
    best = best.plan.kind ? better(c, &best, &one) : one;
    kl_forget_choice(c, slots, constants);
    if (last) break;
  }
  if (best.plan.kind) *p = best.plan;
  if (!best.plan.kind)
    return kl_unsupported(c->cx, kl_root(p->comp)->span, "no kind of kernel that was asked for takes this");
  return KILN_OK;
}

// What leaves threads as many registers as they need, but of a tile's straight code: it would then read ahead all that
// lies in shared memory, and spill for that, as it does where a thread has so many sums that the blocks leave too few
// registers for them. Where it is between, the launch says for how many there are enough.
static void leave_room(kl_plan *p) {
  for (uint32_t i = 0; p->target.machine == KL_NVPTX && i < p->nlaunches; i++) {
    kl_plan_launch *l = &p->launches[i];
    l->resident = l->own_registers ? 0 : kl_resident(&p->target, l->grid, l->block);
    if (l->at_most && l->grid > (int64_t)l->at_most * kl_fewest_multiprocessors(&p->target)) l->resident = l->at_most;
  }
}

static kiln_status fill(kl_choosing *c) {
  kl_ctx *cx = c->cx;
  kl_plan *p = c->plan;
  KL_TRY(refuse_effects(cx, p->module, p->comp));
  KL_TRY(make_slots(cx, p, c->params, c->arena, &c->slots));
  if (p->target.machine == KL_NVPTX && c->slots.nargs + p->counted > KL_MAX_KERNEL_ARGS)
    return kl_unsupported(cx, kl_root(p->comp)->span,
                          "the fusion has %u parameters and results: a kernel takes at most %d", c->slots.nargs,
                          KL_MAX_KERNEL_ARGS);
  for (uint32_t i = 0; c->params->partner && i < c->slots.nargs; i++) p->in_place |= c->params->partner[i] != KL_NONE;
  KL_TRY(choose(c));
  leave_room(p);
  p->ndeclined = (uint32_t)c->declined.n;
  p->declined = kl_arena_dup(c->arena, c->declined.p, c->declined.n * sizeof(kl_declined));
  return KILN_OK;
}

kiln_status kl_plan_make(kl_ctx *cx, const kiln_module *m, const kl_comp *comp, const kl_plan_params *params,
                         kl_arena *arena, kl_plan **out) {
  kl_plan *p = KL_NEW(arena, kl_plan);
  *p = (kl_plan){.arena = arena, .module = m, .comp = comp, .target = params->target};
  if (params->counted) {
    p->counted = true;
    p->row = params->counted->row;
    p->rows = params->counted->rows;
  }
  p->programmatic = params->programmatic;
  p->lineinfo = params->lineinfo;
  p->fast = params->fast;
  p->name = identifier(arena, params->name);
  p->affs = kl_affs_create(cx, arena);
  kl_choosing c = {.cx = cx, .plan = p, .params = params, .arena = arena};
  kiln_status st = fill(&c);
  VEC_FREE(cx, &c.slots.v);
  VEC_FREE(cx, &c.slots.constants);
  VEC_FREE(cx, &c.slots.constant_slots);
  VEC_FREE(cx, &c.slots.concatenates);
  VEC_FREE(cx, &c.slots.stored);
  VEC_FREE(cx, &c.declined);
  kl_ids_free(cx, &c.slots.constant_ids);
  kl_ids_free(cx, &c.slots.concatenate_ids);
  if (st != KILN_OK)
    kl_plan_free(p);
  else
    *out = p;
  return st;
}
