// Writing plans: steps, stores, loops and branches into a tree of nodes.

#include "lower/plan/shifted.h"

static kl_open_nest *innermost(kl_writer *w) {
  return &w->open.p[w->open.n - 1];
}

static void add_node(kl_writer *w, kl_node node) {
  VEC_PUSH(w->cx, &innermost(w)->nodes, node);
}

// Variables of the loops that are open around nest number `level`, which is one of them or not.
static kl_vars loops_around(const kl_writer *w, size_t level) {
  kl_vars loops = 0;
  for (size_t i = 0; i <= level; i++)
    if (w->open.p[i].kind == KL_NODE_LOOP) loops |= (kl_vars)1 << w->open.p[i].index;
  return loops;
}

static void open_nest(kl_writer *w, kl_node_kind kind, uint32_t index) {
  VEC_PUSH(w->cx, &w->open, (kl_open_nest){.kind = kind, .index = index, .scope = (uint32_t)w->scopes.n});
  VEC_PUSH(w->cx, &w->scopes, true);
}

static kl_seq close_nest(kl_writer *w) {
  kl_open_nest *n = innermost(w);
  w->scopes.p[n->scope] = false;
  kl_seq s = {.n = (uint32_t)n->nodes.n};
  s.nodes = VEC_FREEZE(w->cx, w->arena, &n->nodes);
  VEC_FREE(w->cx, &n->carried);
  w->open.n--;
  return s;
}

static void list_symbol(kl_writer *w, const kl_symbol *s, kl_named named) {
  uint32_t id = (uint32_t)w->symbols.n;
  VEC_PUSH(w->cx, &w->symbols, *s);
  VEC_PUSH(w->cx, &w->named, named);
  w->body->nsymbols = (uint32_t)w->symbols.n;
  w->body->symbols = w->symbols.p;
  kl_dom_add_runtime(w->body->domain, KL_FIRST_SYMBOL + id, (kl_interval){s->lo, s->hi});
}

// Nothing is launched for no rows.
static void name_rows(kl_writer *w) {
  kl_symbol s = {.step = KL_NONE, .lo = 1, .hi = w->plan->rows};
  list_symbol(w, &s, (kl_named){kl_write_scope(w), KL_NONE});
  w->guards.rows = !w->plan->flat;
}

void kl_write_begin(kl_writer *w, kl_ctx *cx, kl_plan *p, kl_body *body) {
  kl_write_begin_naming(w, cx, p, body, 0, NULL);
}

void kl_write_begin_naming(kl_writer *w, kl_ctx *cx, kl_plan *p, kl_body *body, uint32_t nnames, const int64_t *names) {
  *w = (kl_writer){.cx = cx, .arena = p->arena, .plan = p, .body = body};
  kl_guards_begin(&w->guards, cx, p->affs, body, nnames, names);
  w->guards.host = p->target.machine == KL_HOST;
  w->guards.single = p->single;
  open_nest(w, KL_NODE_STEP, 0);
  if (p->counted) name_rows(w);
}

void kl_write_end(kl_writer *w) {
  kl_body *b = w->body;
  b->root = close_nest(w);
  b->nsteps = (uint32_t)w->steps.n;
  b->symbols = VEC_FREEZE(w->cx, w->arena, &w->symbols);
  b->nguards = (uint32_t)w->guards.v.n;
  b->nstores = (uint32_t)w->stores.n;
  b->steps = VEC_FREEZE(w->cx, w->arena, &w->steps);
  b->guards = VEC_FREEZE(w->cx, w->arena, &w->guards.v);
  b->stores = VEC_FREEZE(w->cx, w->arena, &w->stores);
  kl_write_free(w);
}

void kl_write_free(kl_writer *w) {
  for (size_t i = 0; i < w->open.n; i++) {
    VEC_FREE(w->cx, &w->open.p[i].nodes);
    VEC_FREE(w->cx, &w->open.p[i].carried);
  }
  VEC_FREE(w->cx, &w->open);
  VEC_FREE(w->cx, &w->scopes);
  VEC_FREE(w->cx, &w->steps);
  VEC_FREE(w->cx, &w->written);
  VEC_FREE(w->cx, &w->stores);
  VEC_FREE(w->cx, &w->symbols);
  VEC_FREE(w->cx, &w->named);
  kl_guards_end(&w->guards);
}

uint32_t kl_write_scope(const kl_writer *w) {
  return w->open.p[w->open.n - 1].scope;
}

// --- steps ----------------------------------------------------------------------------------------------------------

// Variables that have no values where things are written now.
static kl_vars gone(const kl_writer *w) {
  kl_vars vars = 0;
  for (size_t i = 0; i < w->open.n; i++)
    if (w->open.p[i].kind == KL_NODE_LAST) vars |= w->open.p[i].arrival.of;
  return vars;
}

// Variables that the value depends on. What a loop carries may depend on all that are there and no number of copies;
// what is made behind a loop of what that has left is the same whatever its rounds were.
static kl_vars vars_of(const kl_writer *w, const kl_step *s, const kl_aff *place) {
  kl_vars vars = s->regs;
  for (uint32_t i = 0; i < s->noperands; i++) vars |= w->steps.p[s->operands[i]].vars;
  for (uint32_t i = 0; s->kind == KL_STEP_CHOOSE && i + 1 < s->noperands; i++)
    vars |= kl_vars_asked(&w->guards, s->guards[i]);
  if (s->kind == KL_STEP_LOAD) vars |= kl_vars_of(w->body, place) | kl_vars_asked(&w->guards, s->access.guard);
  if (s->kind == KL_STEP_CARRIED)
    vars |= (kl_vars)(((uint64_t)1 << w->body->nvars) - 1) & ~kl_bound(w->body, KL_BIND_REG) & ~gone(w);
  if (s->kind == KL_STEP_EXCHANGE) vars |= (kl_vars)1 << s->var | (kl_vars)1 << s->lane;
  if (s->expr) vars |= kl_vars_of(w->body, s->expr);
  if (s->kind == KL_STEP_TAKE) vars &= ~((kl_vars)1 << s->var);
  if (s->kind != KL_STEP_CARRIED) vars &= ~kl_bound(w->body, KL_BIND_STEP) | loops_around(w, w->open.n - 1);
  if (s->kind == KL_STEP_ANY) vars &= ~kl_bound(w->body, KL_BIND_LANE);
  return vars;
}

// Words of 32 bits that a thread holds, at most, of what is made before a loop for its rounds.
enum { MOST_HELD = 96 };

static uint32_t words_of(const kl_writer *w, const kl_step *s) {
  return (uint32_t)(kl_extent(w->body, s->regs) * kl_info(s->dtype)->bits + 31) / 32;
}

typedef struct pinning {
  const kl_writer *w;
  kl_vars loops;
  uint32_t scope; // the innermost that something it takes stands in
} pinning;

static void pin_to_step(pinning *x, uint32_t step) {
  const kl_written *at = &x->w->written.p[step];
  x->loops |= at->loops;
  if (at->scope > x->scope) x->scope = at->scope;
}

static void pin_to_symbol(void *arg, uint32_t symbol) {
  pinning *x = arg;
  if (!kl_is_counted_in(&x->w->symbols.p[symbol])) pin_to_step(x, x->w->symbols.p[symbol].step);
}

static void pin_to_guard(pinning *x, uint32_t guard) {
  for (; guard != KL_NONE; guard = x->w->guards.v.p[guard].outer)
    kl_each_symbol(x->w->guards.v.p[guard].expr, pin_to_symbol, x);
}

// Loops that the step cannot leave: those whose variables it depends on, or something that it takes stands in; all that
// are open for what `stays`.
static pinning pinned_to(const kl_writer *w, const kl_step *s, const kl_aff *place, bool stays) {
  pinning x = {w, s->vars, 0};
  if (stays) return (pinning){w, loops_around(w, w->open.n - 1), kl_write_scope(w)};
  for (uint32_t i = 0; i < s->noperands; i++) pin_to_step(&x, s->operands[i]);
  for (uint32_t i = 0; s->kind == KL_STEP_CHOOSE && i + 1 < s->noperands; i++) pin_to_guard(&x, s->guards[i]);
  if (s->kind == KL_STEP_LOAD) pin_to_guard(&x, s->access.guard);
  if (place) kl_each_symbol(place, pin_to_symbol, &x);
  if (s->expr) kl_each_symbol(s->expr, pin_to_symbol, &x);
  return x;
}

// Nests are numbered as they are opened: what stands in one stands in it or in one of a higher number.
static bool may_leave(const kl_open_nest *n, const pinning *x) {
  return (n->kind == KL_NODE_LOOP && !kl_has_var(x->loops, n->index)) ||
         (n->kind == KL_NODE_WHILE && x->scope < n->scope);
}

// The nest that a step stands in: outside of all loops in whose every round it would make the same, as far as there is
// room to hold what it makes.
static size_t level_of(kl_writer *w, const kl_step *s, const kl_aff *place, bool stays) {
  size_t level = w->open.n - 1;
  pinning pinned = pinned_to(w, s, place, stays);
  uint32_t words = s->kind == KL_STEP_SCALAR ? 0 : words_of(w, s);
  if (w->held + words > MOST_HELD) return level;
  while (may_leave(&w->open.p[level], &pinned)) level--;
  if (level < w->open.n - 1) w->held += words;
  return level;
}

// `stays`: it may be another in each round.
static uint32_t write_step(kl_writer *w, const kl_step *s, const kl_aff *place, bool stays) {
  uint32_t id = (uint32_t)w->steps.n;
  kl_step made = *s;
  made.vars = vars_of(w, s, place);
  made.regs = made.vars & kl_bound(w->body, KL_BIND_REG);
  size_t level = level_of(w, &made, place, stays);
  VEC_PUSH(w->cx, &w->steps, made);
  VEC_PUSH(w->cx, &w->written, (kl_written){place, KL_NONE, w->open.p[level].scope, loops_around(w, level)});
  kl_node node = {.kind = KL_NODE_STEP, .index = id};
  if (s->kind != KL_STEP_CARRIED) VEC_PUSH(w->cx, &w->open.p[level].nodes, node);
  return id;
}

uint32_t kl_write_scope_of(const kl_writer *w, uint32_t step) {
  return w->written.p[step].scope;
}

uint32_t kl_write_step(kl_writer *w, const kl_step *s) {
  return write_step(w, s, NULL, s->kind == KL_STEP_CARRIED);
}

static const uint32_t *operands(kl_writer *w, uint32_t n, const uint32_t *p) {
  return kl_arena_dup(w->arena, p, n * sizeof *p);
}

uint32_t kl_write_scalar(kl_writer *w, kl_dtype t, uint64_t bits, uint64_t bits1) {
  return kl_write_step(w, &(kl_step){.kind = KL_STEP_SCALAR, .dtype = t, .bits = {bits, bits1}});
}

uint32_t kl_write_op(kl_writer *w, kl_plan_op op, kl_dtype t, uint32_t n, const uint32_t *p) {
  kl_step s = {.kind = KL_STEP_OP, .dtype = t, .op = op, .noperands = n, .operands = operands(w, n, p)};
  return kl_write_step(w, &s);
}

uint32_t kl_write_fma(kl_writer *w, uint32_t x, uint32_t y, uint32_t z) {
  kl_step s = {.kind = KL_STEP_FMA, .dtype = w->steps.p[z].dtype, .noperands = 3};
  s.operands = operands(w, 3, (uint32_t[]){x, y, z});
  return kl_write_step(w, &s);
}

uint32_t kl_write_take(kl_writer *w, uint32_t value, uint32_t var, uint32_t at) {
  const kl_step *from = &w->steps.p[value];
  if (!kl_has_var(from->regs, var)) return value;
  return kl_write_step(w, &(kl_step){.kind = KL_STEP_TAKE,
                                     .dtype = from->dtype,
                                     .noperands = 1,
                                     .operands = operands(w, 1, &value),
                                     .var = var,
                                     .distance = at});
}

uint32_t kl_write_slide(kl_writer *w, uint32_t value, uint32_t behind, uint32_t var, const kl_aff *by) {
  return kl_write_step(w, &(kl_step){.kind = KL_STEP_SLIDE,
                                     .dtype = w->steps.p[value].dtype,
                                     .noperands = 2,
                                     .operands = operands(w, 2, (uint32_t[]){value, behind}),
                                     .expr = by,
                                     .var = var});
}

// Lanes have the same of a constant.
static uint32_t write_lanes(kl_writer *w, kl_step_kind kind, uint32_t value, uint32_t distance) {
  if (w->steps.p[value].kind == KL_STEP_SCALAR) return value;
  return kl_write_step(w, &(kl_step){.kind = kind,
                                     .dtype = w->steps.p[value].dtype,
                                     .noperands = 1,
                                     .operands = operands(w, 1, &value),
                                     .distance = distance});
}

uint32_t kl_write_shuffle(kl_writer *w, uint32_t value, uint32_t distance) {
  return write_lanes(w, KL_STEP_SHUFFLE, value, distance);
}

uint32_t kl_write_rotate(kl_writer *w, uint32_t value, uint32_t distance) {
  return write_lanes(w, KL_STEP_ROTATE, value, distance);
}

uint32_t kl_write_any(kl_writer *w, uint32_t value) {
  return write_lanes(w, KL_STEP_ANY, value, 0);
}

uint32_t kl_write_exchange(kl_writer *w, const kl_exchange *x, uint32_t value) {
  const kl_step *from = &w->steps.p[value];
  bool again = from->kind == KL_STEP_EXCHANGE && from->var == x->var && from->distance == x->distance;
  if (again && from->lane == x->lane) return from->operands[0];
  return kl_write_step(w, &(kl_step){.kind = KL_STEP_EXCHANGE,
                                     .dtype = from->dtype,
                                     .instr = from->instr,
                                     .noperands = 1,
                                     .operands = operands(w, 1, &value),
                                     .var = x->var,
                                     .distance = x->distance,
                                     .lane = x->lane});
}

static bool same_constant(const kl_step *a, const kl_step *b) {
  return a->kind == KL_STEP_SCALAR && b->kind == KL_STEP_SCALAR && a->dtype == b->dtype && a->bits[0] == b->bits[0] &&
         a->bits[1] == b->bits[1];
}

uint32_t kl_write_choose(kl_writer *w, uint32_t guard, uint32_t yes, uint32_t no) {
  if (guard == KL_NONE || yes == no || same_constant(&w->steps.p[yes], &w->steps.p[no])) return yes;
  return kl_write_step(w, &(kl_step){.kind = KL_STEP_CHOOSE,
                                     .dtype = w->steps.p[yes].dtype,
                                     .noperands = 2,
                                     .operands = operands(w, 2, (uint32_t[]){yes, no}),
                                     .guards = operands(w, 1, &guard)});
}

// Whole words change lanes.
static bool moves_words(const kl_exchange *x, const kl_slot_info *info) {
  return x->distance * kl_info(info->shape->dtype)->bits % 32 == 0;
}

// Are there narrower accesses side by side, of which an exchange may make one?
static bool may_widen(const kl_writer *w, uint32_t n, const kl_access *a, const kl_slot_info *info) {
  if (n == w->nexchanges || !moves_words(&w->exchanges[n], info) || info->kind == KL_SLOT_SHARED) return false;
  return a->stride == 1 && a->run == w->exchanges[n].var && a->vec == w->exchanges[n].distance;
}

static bool is_wider(const kl_access *a, const kl_access *b, const kl_slot_info *info) {
  return a->stride == 1 && kl_access_requests(a, info) < kl_access_requests(b, info);
}

static int64_t coefficient(const kl_aff *e, uint32_t var) {
  for (uint32_t i = 0; i < e->n; i++)
    if (e->terms[i].atom->kind == KL_AFF_DIM && e->terms[i].atom->var == var) return e->terms[i].coef;
  return 0;
}

enum { SECTOR_BITS = 256 };

// Is it made once for all rounds, by requests of which each has half of many sectors? Neighbours have the other half.
static bool has_halves(const kl_writer *w, const kl_access *a, const kl_slot_info *info, const kl_aff *linear,
                       uint32_t guard) {
  const kl_exchange *x = w->filling;
  kl_vars loops = loops_around(w, w->open.n - 1);
  if (!x || !loops || info->kind == KL_SLOT_SHARED || kl_has_symbols(linear)) return false;
  if ((kl_vars_of(w->body, linear) | kl_vars_asked(&w->guards, guard)) & loops) return false;
  if (a->stride != 1 || a->run != x->var || a->vec != 2 * x->distance || a->reversed) return false;
  return a->vec * kl_info(info->shape->dtype)->bits == SECTOR_BITS && coefficient(linear, x->lane) == (int64_t)a->vec;
}

uint32_t kl_find_load(const kl_writer *w, uint32_t slot, const kl_aff *place, uint32_t guard) {
  for (uint32_t i = (uint32_t)w->steps.n; i-- > 0;) {
    const kl_step *s = &w->steps.p[i];
    if (s->kind != KL_STEP_LOAD || s->access.slot != slot || s->access.guard != guard) continue;
    if (w->written.p[i].place == place && kl_scope_is_open(w, w->written.p[i].scope)) return i;
  }
  return KL_NONE;
}

static bool is_in_while(const kl_writer *w) {
  bool any = false;
  for (size_t i = 0; i < w->open.n && !any; i++) any = w->open.p[i].kind == KL_NODE_WHILE;
  return any;
}

uint32_t kl_write_load(kl_writer *w, uint32_t slot, const kl_slot_info *info, const kl_aff *linear, uint32_t guard,
                       const kl_instr *from) {
  kl_step s = {.kind = KL_STEP_LOAD, .dtype = info->shape->dtype, .instr = from};
  uint32_t n = 0, found = KL_NONE;
  guard = kl_guard_rows(w, info, linear, guard, true);
  bool together = !is_in_while(w); // lanes in one round
  if (w->shifts && together && kl_load_shifted(w, slot, info, linear, guard, from, &found)) return found;
  s.access = kl_load_plan(&w->guards, w->arena, info, slot, linear, guard);
  if (w->nshifted && info->kind == KL_SLOT_IN) found = kl_find_load(w, slot, linear, s.access.guard);
  if (found != KL_NONE) return found;
  while (together && may_widen(w, n, &s.access, info)) {
    const kl_exchange *x = &w->exchanges[n];
    const kl_aff *place = kl_exchanged(&w->guards, x, linear);
    uint32_t there;
    if (!kl_guard_exchanged(&w->guards, x, guard, &there)) break;
    kl_access a = kl_load_plan(&w->guards, w->arena, info, slot, place, there);
    if (!is_wider(&a, &s.access, info)) break;
    s.access = a;
    linear = place;
    guard = there;
    n++;
  }
  uint32_t there;
  if (together && has_halves(w, &s.access, info, linear, guard) &&
      kl_guard_exchanged(&w->guards, w->filling, guard, &there)) {
    const kl_aff *place = kl_exchanged(&w->guards, w->filling, linear);
    s.access = kl_load_plan(&w->guards, w->arena, info, slot, place, there);
    return kl_write_exchange(w, w->filling, write_step(w, &s, place, false));
  }
  bool changes = info->kind == KL_SLOT_SHARED || info->kind == KL_SLOT_OUT;
  uint32_t value = write_step(w, &s, linear, changes);
  for (uint32_t i = 0; i < n; i++) value = kl_write_exchange(w, &w->exchanges[i], value);
  return value;
}

void kl_write_store(kl_writer *w, uint32_t slot, const kl_slot_info *info, const kl_aff *linear, uint32_t value,
                    uint32_t keep) {
  keep = kl_guard_rows(w, info, linear, keep, false);
  // Where elements can be outside, what is stored at once must be all inside or share a byte.
  kl_vars regs = w->steps.p[value].regs | kl_vars_asked(&w->guards, keep);
  uint32_t bits = kl_info(info->shape->dtype)->bits, least = bits < 8 ? 8 / bits : 1, n = 0;
  kl_access at = kl_store_plan(&w->guards, w->arena, info, slot, linear, regs, keep, least);
  while (may_widen(w, n, &at, info) && kl_has_var(w->steps.p[value].regs, w->exchanges[n].var)) {
    const kl_exchange *x = &w->exchanges[n];
    uint32_t kept;
    linear = kl_exchanged(&w->guards, x, linear);
    if (!kl_guard_exchanged(&w->guards, x, keep, &kept)) break;
    kl_access a = kl_store_plan(&w->guards, w->arena, info, slot, linear, regs, kept, least);
    if (!is_wider(&a, &at, info)) break;
    at = a;
    keep = kept;
    n++;
  }
  while (n-- > 0) value = kl_write_exchange(w, &w->exchanges[n], value); // takes back what a load has done
  kl_store s = {.step = value, .keep = keep, .access = at};
  if (bits < 8 && (s.access.vec * bits % 8 || s.access.align == 0)) w->splits_bytes = true;
  add_node(w, (kl_node){.kind = KL_NODE_STORE, .index = (uint32_t)w->stores.n});
  VEC_PUSH(w->cx, &w->stores, s);
}

uint32_t kl_write_word(kl_writer *w, uint32_t value, kl_dtype word) {
  kl_dtype t = w->steps.p[value].dtype;
  if (t == word) return value;
  if (kl_info(word)->bits < kl_info(t)->bits) return kl_write_op(w, (kl_plan_op){.op = KL_OP_CONVERT}, word, 1, &value);
  uint32_t n = kl_info(word)->bits / kl_info(t)->bits, *parts = KL_NEW_N(w->arena, uint32_t, n);
  parts[0] = value;
  for (uint32_t i = 1; i < n; i++) parts[i] = i > 1 ? parts[1] : kl_write_scalar(w, t, 0, 0);
  return kl_write_step(w, &(kl_step){.kind = KL_STEP_JOIN, .dtype = word, .noperands = n, .operands = parts});
}

void kl_write_change(kl_writer *w, const kl_store *how, uint32_t slot, const kl_slot_info *info, const kl_aff *linear,
                     uint32_t value, uint32_t keep) {
  kl_vars regs = w->steps.p[value].regs | kl_vars_asked(&w->guards, keep);
  kl_store s = *how;
  uint32_t most = KL_MAX_CHUNK;
  s.step = value;
  s.keep = keep;
  if (s.how == KL_STORE_COMBINE) kl_can_combine(&w->plan->target, s.combine, info, &most);
  if (kl_info(info->shape->dtype)->bits < 8) most = 1;
  s.access = kl_change_plan(&w->guards, w->arena, info, slot, linear, regs, keep, most);
  add_node(w, (kl_node){.kind = KL_NODE_STORE, .index = (uint32_t)w->stores.n});
  VEC_PUSH(w->cx, &w->stores, s);
}

uint32_t kl_write_update(kl_writer *w, bool alone, uint32_t slot, const kl_slot_info *info, const kl_aff *linear,
                         kl_vars regs, uint32_t keep) {
  kl_store s = {.how = KL_STORE_REPLACE, .alone = alone, .keep = keep};
  uint32_t most = alone && w->plan->target.machine == KL_NVPTX ? KL_MAX_CHUNK : 1;
  s.access =
      kl_change_plan(&w->guards, w->arena, info, slot, linear, regs | kl_vars_asked(&w->guards, keep), keep, most);
  open_nest(w, KL_NODE_UPDATE, (uint32_t)w->stores.n);
  VEC_PUSH(w->cx, &w->stores, s);
  uint32_t old =
      kl_write_step(w, &(kl_step){.kind = KL_STEP_CARRIED, .dtype = info->shape->dtype, .regs = s.access.regs});
  VEC_PUSH(w->cx, &innermost(w)->carried, (kl_carried){old, KL_NONE, KL_NONE});
  return old;
}

void kl_write_update_end(kl_writer *w, uint32_t next) {
  kl_open_nest *n = innermost(w);
  kl_nest *nest = KL_NEW(w->arena, kl_nest);
  uint32_t store = n->index;
  w->stores.p[store].step = n->carried.p->next = next;
  nest->ncarried = 1;
  nest->carried = VEC_FREEZE(w->cx, w->arena, &n->carried);
  nest->inside = close_nest(w);
  add_node(w, (kl_node){KL_NODE_UPDATE, store, nest});
}

// --- symbols --------------------------------------------------------------------------------------------------------

static uint32_t least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// Over how many values of `run` is what the step itself adds to its operands the same?
static uint32_t own_uniform(kl_writer *w, uint32_t step, uint32_t run) {
  const kl_step *s = &w->steps.p[step];
  const kl_guard *guards = w->guards.v.p;
  uint32_t v = KL_MAX_CHUNK;
  if (s->kind == KL_STEP_CARRIED) v = 1;
  if (w->written.p[step].place) v = least(v, kl_uniform_over(&w->guards, w->written.p[step].place, run));
  if (s->kind == KL_STEP_LOAD && s->access.guard != KL_NONE) v = least(v, guards[s->access.guard].uniform[run]);
  if (s->expr) v = least(v, kl_uniform_over(&w->guards, s->expr, run));
  if (s->kind == KL_STEP_EXCHANGE && s->var == run) v = least(v, s->distance);
  if (s->kind == KL_STEP_SLIDE && s->var == run) v = 1;
  for (uint32_t i = 0; s->kind == KL_STEP_CHOOSE && i + 1 < s->noperands; i++)
    if (s->guards[i] != KL_NONE) v = least(v, guards[s->guards[i]].uniform[run]);
  return v;
}

// The same of a value: the least of all steps that depend on `run` on the way to it. Operands come before their users.
static uint32_t uniform_of(kl_writer *w, uint32_t value, uint32_t run) {
  bool *counts = kl_alloc(w->cx, value + 1);
  uint32_t v = KL_MAX_CHUNK;
  memset(counts, 0, value + 1);
  counts[value] = true;
  for (uint32_t i = value + 1; i-- > 0 && v > 1;) {
    const kl_step *s = &w->steps.p[i];
    if (!counts[i] || !kl_has_var(s->vars, run)) continue;
    v = least(v, own_uniform(w, i, run));
    for (uint32_t k = 0; k < s->noperands; k++) counts[s->operands[k]] = true;
  }
  kl_free(w->cx, counts, value + 1);
  return v;
}

// Values of the type, as far as int64 goes.
static kl_interval range_of(kl_dtype t) {
  unsigned bits = t == KILN_PRED ? 1 : kl_info(t)->bits - kl_is_signed(t);
  int64_t most = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
  return (kl_interval){kl_is_signed(t) ? -most - 1 : 0, most};
}

// The symbol of these bounds, where one is to be had.
static uint32_t find_symbol(const kl_writer *w, uint32_t value, kl_interval in) {
  uint32_t i = w->written.p[value].symbol;
  for (; i != KL_NONE; i = w->named.p[i].before) {
    const kl_symbol *s = &w->symbols.p[i];
    if (s->lo == in.lo && s->hi == in.hi && kl_scope_is_open(w, w->named.p[i].scope)) break;
  }
  return i;
}

static uint32_t add_symbol(kl_writer *w, uint32_t value, kl_interval in) {
  uint32_t id = (uint32_t)w->symbols.n;
  kl_symbol s = {.lo = in.lo, .hi = in.hi, .vars = w->steps.p[value].vars};
  for (uint32_t v = 0; v < w->body->nvars; v++)
    if (kl_has_var(s.vars & kl_inner(w->body), v)) s.uniform[v] = (uint16_t)uniform_of(w, value, v);
  kl_step step = {
      .kind = KL_STEP_INDEX, .dtype = KILN_S64, .noperands = 1, .operands = operands(w, 1, &value), .var = id};
  s.step = kl_write_step(w, &step);
  list_symbol(w, &s, (kl_named){kl_write_scope_of(w, s.step), w->written.p[value].symbol});
  w->written.p[value].symbol = id;
  return id;
}

const kl_aff *kl_write_index(kl_writer *w, uint32_t value, kl_interval in) {
  kl_affs *p = w->plan->affs;
  kl_interval all = range_of(w->steps.p[value].dtype);
  if (in.lo >= in.hi || in.lo >= all.hi) return kl_aff_const(p, in.lo);
  if (in.hi <= all.lo) return kl_aff_const(p, in.hi);
  in.lo = in.lo > all.lo ? in.lo : all.lo;
  in.hi = in.hi < all.hi ? in.hi : all.hi;
  uint32_t id = find_symbol(w, value, in);
  if (id == KL_NONE) id = add_symbol(w, value, in);
  return kl_aff_var(p, KL_AFF_RT, KL_FIRST_SYMBOL + id);
}

// --- nests ----------------------------------------------------------------------------------------------------------

static void carry(kl_writer *w, uint32_t n, const uint32_t *first, const kl_vars *regs, uint32_t *carried) {
  for (uint32_t i = 0; i < n; i++) {
    const kl_step *from = &w->steps.p[first[i]];
    carried[i] =
        kl_write_step(w, &(kl_step){.kind = KL_STEP_CARRIED, .dtype = from->dtype, .regs = from->regs | regs[i]});
    VEC_PUSH(w->cx, &innermost(w)->carried, (kl_carried){carried[i], first[i], KL_NONE});
  }
}

static const kl_nest *close_loop(kl_writer *w, const uint32_t *next) {
  kl_open_nest *n = innermost(w);
  kl_nest *nest = KL_NEW(w->arena, kl_nest);
  for (size_t i = 0; i < n->carried.n; i++) n->carried.p[i].next = next[i];
  nest->ncarried = (uint32_t)n->carried.n;
  nest->carried = VEC_FREEZE(w->cx, w->arena, &n->carried);
  nest->inside = close_nest(w);
  return nest;
}

void kl_write_loop(kl_writer *w, uint32_t var, uint32_t n, const uint32_t *first, const kl_vars *regs,
                   uint32_t *carried) {
  open_nest(w, KL_NODE_LOOP, var);
  carry(w, n, first, regs, carried);
}

void kl_write_loop_end(kl_writer *w, const uint32_t *next) {
  uint32_t var = innermost(w)->index;
  add_node(w, (kl_node){KL_NODE_LOOP, var, close_loop(w, next)});
}

void kl_write_while(kl_writer *w, uint32_t test, uint32_t n, const uint32_t *first, const kl_vars *regs,
                    uint32_t *carried) {
  open_nest(w, KL_NODE_WHILE, 0);
  carry(w, n, first, regs, carried);
  innermost(w)->index = carried[test];
}

// What is carried stands where the loop does, from then on.
static void keep_carried(kl_writer *w, const kl_nest *nest, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    kl_written *at = &w->written.p[nest->carried[i].value];
    at->scope = kl_write_scope(w);
    at->loops = loops_around(w, w->open.n - 1);
  }
}

void kl_write_while_end(kl_writer *w, const uint32_t *next) {
  uint32_t test = innermost(w)->index;
  const kl_nest *nest = close_loop(w, next);
  add_node(w, (kl_node){KL_NODE_WHILE, test, nest});
  keep_carried(w, nest, nest->ncarried);
}

void kl_write_before(kl_writer *w, uint32_t var, uint32_t n, const uint32_t *first, const uint32_t *own,
                     uint32_t *lower, uint32_t *higher) {
  kl_vars *none = KL_NEW_N(w->arena, kl_vars, n + 1);
  open_nest(w, KL_NODE_BEFORE, var);
  carry(w, n, first, none, lower);
  carry(w, n, own, none, higher);
}

void kl_write_before_end(kl_writer *w, uint32_t n, const uint32_t *next) {
  uint32_t var = innermost(w)->index, *both = KL_NEW_N(w->arena, uint32_t, 2 * n + 1);
  for (uint32_t i = 0; i < 2 * n; i++) both[i] = next[i % n];
  const kl_nest *nest = close_loop(w, both);
  add_node(w, (kl_node){KL_NODE_BEFORE, var, nest});
  keep_carried(w, nest, n);
}

void kl_write_meet(kl_writer *w) {
  add_node(w, (kl_node){.kind = KL_NODE_MEET});
}

void kl_write_last(kl_writer *w, const kl_arrival *a) {
  open_nest(w, KL_NODE_LAST, 0);
  innermost(w)->arrival = *a;
}

void kl_write_last_end(kl_writer *w) {
  kl_nest *nest = KL_NEW(w->arena, kl_nest);
  nest->arrival = innermost(w)->arrival;
  nest->inside = close_nest(w);
  add_node(w, (kl_node){KL_NODE_LAST, 0, nest});
}

void kl_write_if(kl_writer *w, uint32_t guard) {
  open_nest(w, KL_NODE_IF, guard);
}

void kl_write_if_end(kl_writer *w) {
  kl_nest *nest = KL_NEW(w->arena, kl_nest);
  uint32_t guard = innermost(w)->index;
  nest->inside = close_nest(w);
  add_node(w, (kl_node){KL_NODE_IF, guard, nest});
}
