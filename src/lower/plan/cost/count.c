// Counting over the nodes of a plan: the instructions that each access becomes, and what warps do together.

#include "lower/plan/cost/impl.h"

// Branches that are open around a node, the outer ones behind it.
typedef struct inside {
  const struct inside *around;
  uint32_t guard;
} inside;

enum { MOST_CONDITIONS = 64 };

// What all instructions cost that differ from one of an access by whole units of memory.
typedef struct alike {
  const kl_aff *element;
  int64_t bit;
  uint32_t bytes;
  kl_requests cost;
} alike;

typedef struct counting {
  kl_plan *p;
  const kl_body *body;
  const kl_plan_launch *launch;
  int64_t quota; // threads looked at for one instruction
  bool quick;
  kl_warps warps;
  int64_t copies; // warps that no variable tells apart, for each that they do
  int64_t *symbols;
  bool data; // a symbol has been met
  const kl_live *live;
  kl_cost sum;
  kl_indexing at;
  int64_t once;         // warps that begin the body
  VEC(kl_request) load; // of the load that is counted
  VEC(alike) known;     // of the access that is counted
} counting;

// --- warps ----------------------------------------------------------------------------------------------------------

// Digits of the lane's number.
static void set_lanes(counting *c) {
  const kl_body *b = c->body;
  kl_vars lanes = kl_bound(b, KL_BIND_LANE);
  int64_t place = 1;
  for (uint32_t v = b->nvars; v-- > 0;) {
    if (!kl_has_var(lanes, v)) continue;
    for (int l = 0; l < KL_WARP; l++) c->warps.lane[v][l] = l / place % b->vars[v].extent;
    place *= b->vars[v].extent;
  }
}

static void set_warps(counting *c) {
  const kl_body *b = c->body;
  kl_warps *w = &c->warps;
  *w = (kl_warps){.nvars = b->nvars, .symbols = c->symbols};
  for (uint32_t v = 0; v < b->nvars; v++) {
    kl_binding of = b->vars[v].binding;
    bool machine = of == KL_BIND_BLOCK || of == KL_BIND_WARP;
    w->extent[v] = machine ? b->vars[v].extent : 1;
    w->scale[v] = machine || of == KL_BIND_STEP;
  }
  c->copies = 1;
  if (b->threads) {
    w->extent[0] = (b->threads + KL_WARP - 1) / KL_WARP;
    w->scale[0] = KL_WARP;
    for (int l = 0; l < KL_WARP; l++) w->lane[0][l] = l;
    return;
  }
  set_lanes(c);
  int64_t told = kl_extent(b, kl_bound(b, KL_BIND_BLOCK) | kl_bound(b, KL_BIND_WARP));
  c->copies = b->blocks * (c->launch->block / KL_WARP) / (told ? told : 1);
}

static void set_regs(counting *c, const int64_t *at) {
  for (uint32_t v = 0; v < c->body->nvars; v++) {
    if (c->body->vars[v].binding != KL_BIND_REG && !(c->body->threads && v)) continue;
    for (int l = 0; l < KL_WARP; l++) c->warps.lane[v][l] = at ? at[v] : 0;
  }
}

static void set_symbols(counting *c) {
  const kl_body *b = c->body;
  c->symbols = KL_NEW_N(c->p->arena, int64_t, KL_FIRST_SYMBOL + b->nsymbols);
  for (uint32_t i = 0; i < b->nsymbols; i++) {
    const kl_symbol *s = &b->symbols[i];
    c->symbols[KL_FIRST_SYMBOL + i] = kl_is_counted_in(s) ? s->hi : s->lo > 0 ? s->lo : s->hi < 0 ? s->hi : 0;
  }
}

static void note_symbol(void *arg, uint32_t symbol) {
  counting *c = arg;
  if (!kl_is_counted_in(&c->body->symbols[symbol])) c->data = true; // of rows there are the most
}

// --- conditions -----------------------------------------------------------------------------------------------------

static uint32_t conditions_of(counting *c, uint32_t guard, uint32_t n, kl_constraint *out) {
  for (; guard != KL_NONE; guard = c->body->guards[guard].outer) {
    const kl_guard *g = &c->body->guards[guard];
    if (n == MOST_CONDITIONS) {
      c->sum.exact = false;
      break;
    }
    kl_each_symbol(g->expr, note_symbol, c);
    out[n++] = (kl_constraint){g->expr, {g->lo, g->hi}};
  }
  return n;
}

static uint32_t around_of(counting *c, const inside *around, kl_constraint *out) {
  uint32_t n = 0;
  if (c->body->threads % KL_WARP) out[n++] = (kl_constraint){kl_aff_dim(c->p->affs, 0), {0, c->body->threads - 1}};
  for (; around; around = around->around) n = conditions_of(c, around->guard, n, out);
  return n;
}

// Issues of warps of an instruction at a node.
static int64_t issues(counting *c, const inside *around) {
  kl_constraint conditions[MOST_CONDITIONS];
  uint32_t n = around_of(c, around, conditions);
  kl_request r = {kl_aff_const(c->p->affs, 0), 8, 0, 1, n, conditions, NULL, 0, false};
  kl_requests s = kl_count_requests(&c->warps, &r, 0, c->quota);
  c->sum.exact &= s.exact;
  return s.requests * c->copies;
}

// --- accesses -------------------------------------------------------------------------------------------------------

// An access as an instruction of a chunk.
typedef struct chunk {
  const kl_access *a;
  uint32_t number;
  uint32_t guard;        // KL_NONE: none that is not known to hold
  const kl_aff *instead; // load: the element off the guard
  const inside *around;
  bool store;
  uint32_t step; // load: the value
} chunk;

static void add(kl_access_cost *to, const kl_requests *s, uint32_t bytes, int64_t times) {
  unsigned k = 0;
  while (k + 1 < KL_COST_WIDTHS && 1u << k < bytes) k++;
  kl_add_requests(&to->asked, s, times);
  to->asked.exact &= s->exact;
  to->bytes += s->lanes * bytes * times;
  to->width[k] += s->requests * times;
}

static bool differ_by_units(const alike *x, const kl_request *r) {
  int64_t unit = 8 * (r->shared ? 4 : KL_SECTOR_BYTES);
  if (x->bytes != r->bytes || x->element->n != r->element->n) return false;
  for (uint32_t i = 0; i < r->element->n; i++)
    if (x->element->terms[i].atom != r->element->terms[i].atom ||
        x->element->terms[i].coef != r->element->terms[i].coef)
      return false;
  int64_t apart = x->element->c % unit - r->element->c % unit;
  return (apart * r->bits + x->bit - r->bit) % unit == 0;
}

static kl_requests requests_of(counting *c, const kl_request *r, uint32_t base, bool free) {
  for (size_t i = 0; free && i < c->known.n; i++)
    if (differ_by_units(&c->known.p[i], r)) return c->known.p[i].cost;
  kl_requests s = kl_count_requests(&c->warps, r, base, c->quota);
  if (free) VEC_PUSH(kl_affs_context(c->p->affs), &c->known, (alike){r->element, r->bit, r->bytes, s});
  return s;
}

static void count_piece(counting *c, const chunk *k, int64_t bit, uint32_t bytes) {
  const kl_slot_info *slot = &c->p->slots[k->a->slot];
  kl_slot_cost *sum = &c->sum.slots[k->a->slot];
  kl_constraint conditions[MOST_CONDITIONS];
  bool shared = slot->kind == KL_SLOT_SHARED;
  uint32_t there = around_of(c, k->around, conditions), n = conditions_of(c, k->guard, there, conditions);
  kl_each_symbol(k->a->base[k->number], note_symbol, c);
  kl_request r = {.element = k->a->base[k->number],
                  .bits = kl_info(slot->shape->dtype)->bits,
                  .bit = bit,
                  .bytes = bytes,
                  .nconditions = n,
                  .conditions = conditions,
                  .otherwise = k->guard != KL_NONE ? k->instead : NULL,
                  .nthere = there,
                  .shared = shared};
  kl_requests s = requests_of(c, &r, shared ? slot->at : 0, k->guard == KL_NONE);
  add(k->store ? &sum->store : &sum->load, &s, bytes, c->copies);
  r.nconditions = r.nthere = 0, r.conditions = NULL; // XLA drops them
  if (!c->quick && !k->store) VEC_PUSH(kl_affs_context(c->p->affs), &c->load, r);
}

// Does anything take one of the elements `first` to `end` - 1 of the chunk?
static bool takes_any(const counting *c, const chunk *k, uint32_t first, uint32_t end) {
  if (k->store || !c->live) return true;
  for (uint32_t i = first; i < end; i++) {
    int64_t at[KL_MAX_VARS] = {0};
    kl_nth_point(c->body, k->a->regs, k->a->run, k->number * k->a->vec + i, at);
    if (kl_is_live(c->body, c->live, k->step, at)) return true;
  }
  return false;
}

// As lower/emit/memory.c has them: a chunk of elements side by side moves in pieces of at most 16 bytes; elements that
// are loaded one by one, and their parts where they are complex and not aligned as a whole, each for themselves.
// Elements that are all one are loaded once.
static void count_chunk(counting *c, const chunk *k) {
  const kl_access *a = k->a;
  kl_dtype t = c->p->slots[a->slot].shape->dtype;
  unsigned bits = kl_info(t)->bits, parts = kl_is_complex(t) && a->align < bits / 8 ? 2 : 1, part = bits / parts;
  if (!takes_any(c, k, 0, a->vec)) return;
  if (k->store || (a->vec > 1 && a->stride == 1)) {
    uint32_t bytes = (a->vec * bits + 7) / 8, piece = bytes < 16 ? bytes : 16, align = a->align ? a->align : 1;
    if (align < piece) piece = align;
    for (uint32_t i = 0; i < bytes; i += piece) count_piece(c, k, 8 * (int64_t)i, piece);
    return;
  }
  for (uint32_t i = 0; i < (a->stride ? a->vec : 1); i++) {
    if (!takes_any(c, k, i, a->stride ? i + 1 : a->vec)) continue;
    for (uint32_t q = 0; q < (part < 8 ? 1 : parts); q++)
      count_piece(c, k, (int64_t)i * a->stride * bits + q * part, part < 8 ? 1 : part / 8);
  }
}

// Off its guard an access to what a result may overwrite takes the thread's own first chunk, if that has none.
static const kl_aff *instead_of(counting *c, const kl_access *a, kl_truth first) {
  bool home = c->p->slots[a->slot].alias != KL_NONE && first == KL_YES;
  return home ? a->base[0] : kl_aff_const(c->p->affs, 0);
}

static unsigned bits_of(const counting *c, const kl_access *a) {
  return kl_info(c->p->slots[a->slot].shape->dtype)->bits;
}

// Are there values of which four go in one register, or elements that are stored apart from what is computed?
static bool makes_words(const counting *c) {
  for (uint32_t i = 0; i < c->p->nslots; i++)
    if (c->p->slots[i].owner) return true;
  for (uint32_t i = 0; i < c->body->nsteps; i++) {
    const kl_step *s = &c->body->steps[i];
    if (s->kind == KL_STEP_OP && kl_is_float(s->dtype) && kl_info(s->dtype)->bits < 16) return true;
  }
  return false;
}

static void count_access(counting *c, const kl_access *a, uint32_t guard, const inside *around, bool store,
                         uint32_t step) {
  kl_truth first = KL_YES;
  c->data = false;
  c->known.n = 0;
  for (uint32_t k = 0; k < a->nchunks; k++) {
    int64_t at[KL_MAX_VARS] = {0};
    kl_nth_point(c->body, a->regs, a->run, k * a->vec, at);
    kl_truth holds = guard == KL_NONE ? KL_YES : kl_guard_at(c->p, c->body, guard, kl_inner(c->body), at);
    if (k == 0) first = holds;
    // What is loaded for it nobody takes, but others of a word may: of its own, or of one that it is made into.
    if (holds == KL_NO && store && (bits_of(c, a) < 8 || makes_words(c)))
      c->sum.slots[a->slot].load.asked.exact = false;
    if (holds == KL_NO) continue;
    set_regs(c, at);
    chunk one = {a, k, holds == KL_YES ? KL_NONE : guard, NULL, around, store, step};
    if (!store && holds != KL_YES) one.instead = instead_of(c, a, first);
    count_chunk(c, &one);
  }
  c->sum.slots[a->slot].data |= c->data;
}

static void count_load(counting *c, uint32_t step, const inside *around) {
  const kl_access *a = &c->body->steps[step].access;
  const kl_slot_info *slot = &c->p->slots[a->slot];
  if (slot->by_value) return;
  c->load.n = 0;
  count_access(c, a, a->guard, around, false, step);
  if (!c->quick && slot->kind != KL_SLOT_SHARED &&
      !kl_is_coalesced_for_xla(kl_affs_context(c->p->affs), &c->warps, c->load.p, (uint32_t)c->load.n))
    c->sum.slots[a->slot].coalesced_for_xla = false;
}

// --- changes --------------------------------------------------------------------------------------------------------

// Conditions that data has no part in; of the others the share of threads that meet them.
static uint32_t known_conditions(counting *c, uint32_t guard, uint32_t n, kl_constraint *out, double *share) {
  for (; guard != KL_NONE && n < MOST_CONDITIONS; guard = c->body->guards[guard].outer) {
    const kl_guard *g = &c->body->guards[guard];
    if (kl_has_symbols(g->expr))
      *share *= kl_share_of(c->body, g->expr, g->lo, g->hi);
    else
      out[n++] = (kl_constraint){g->expr, {g->lo, g->hi}};
  }
  return n;
}

static void count_changes_of(counting *c, const kl_store *s, uint32_t number, uint32_t guard, const inside *around) {
  const kl_slot_info *slot = &c->p->slots[s->access.slot];
  kl_constraint conditions[MOST_CONDITIONS];
  double share = 1;
  uint32_t n = c->body->threads % KL_WARP ? around_of(c, NULL, conditions) : 0, bits = bits_of(c, &s->access);
  for (; around; around = around->around) n = known_conditions(c, around->guard, n, conditions, &share);
  n = known_conditions(c, guard, n, conditions, &share);
  uint32_t bytes = (s->access.vec * bits + 7) / 8, piece = bytes < 16 ? bytes : 16;
  kl_request r = {.element = s->access.base[number],
                  .bits = bits,
                  .bytes = piece,
                  .nconditions = n,
                  .conditions = conditions,
                  .nthere = n,
                  .shared = slot->kind == KL_SLOT_SHARED};
  kl_requests q = kl_count_requests(&c->warps, &r, r.shared ? slot->at : 0, c->quota);
  kl_spread_change(slot, s, &q, piece, share);
  add(&c->sum.slots[s->access.slot].change, &q, piece, c->copies * (int64_t)((bytes + piece - 1) / piece));
  c->sum.instructions += (int64_t)(kl_change_instructions(slot, s) * (double)(q.requests * c->copies));
}

static void count_change(counting *c, const kl_store *s, const inside *around) {
  for (uint32_t k = 0; k < s->access.nchunks; k++) {
    int64_t at[KL_MAX_VARS] = {0};
    kl_nth_point(c->body, s->access.regs, s->access.run, k * s->access.vec, at);
    kl_truth holds = s->keep == KL_NONE ? KL_YES : kl_guard_at(c->p, c->body, s->keep, kl_inner(c->body), at);
    if (holds == KL_NO) continue;
    set_regs(c, at);
    count_changes_of(c, s, k, holds == KL_YES ? KL_NONE : s->keep, around);
  }
  c->sum.slots[s->access.slot].data = true;
}

// --- nodes ----------------------------------------------------------------------------------------------------------

// Does anything take one of n copies of a step?
static bool takes_copies(const counting *c, const kl_step *s, uint32_t first, uint32_t n) {
  int64_t at[KL_MAX_VARS] = {0};
  for (uint32_t i = first; i < first + n; i++) {
    kl_nth_point(c->body, s->regs, KL_NONE, i, at);
    if (kl_is_live(c->body, c->live, (uint32_t)(s - c->body->steps), at)) return true;
  }
  return false;
}

// Words of 32 bits that lanes exchange for all copies of a value that are taken; pairs of 16 bits go together.
static int64_t words_of(const counting *c, const kl_step *s) {
  uint32_t copies = (uint32_t)kl_extent(c->body, s->regs);
  uint32_t bits = kl_info(s->dtype)->bits, in_word = kl_moves_words(c->body, s) ? 32 / bits : 1;
  int64_t words = 0, each = (bits + 31) / 32;
  for (uint32_t i = 0; i < copies; i += in_word)
    if (takes_copies(c, s, i, in_word)) words += each;
  return words;
}

// What does not change from round to round is made once.
static void add_indices(counting *c, const kl_aff *e, double n, int64_t warps) {
  bool changes = e && (kl_vars_of(c->body, e) & kl_bound(c->body, KL_BIND_STEP));
  c->sum.instructions += (int64_t)(n * (double)(changes ? warps : c->once));
}

static void count_guard(counting *c, uint32_t guard, int64_t warps) {
  if (guard != KL_NONE) add_indices(c, c->body->guards[guard].expr, kl_guard_instructions(&c->at, guard), warps);
}

static void count_addresses(counting *c, const kl_access *a, uint32_t guard, int64_t warps) {
  count_guard(c, guard, warps);
  for (uint32_t k = 0; k < a->nchunks; k++) {
    int64_t at[KL_MAX_VARS] = {0};
    kl_truth holds = KL_YES;
    if (a->guard != KL_NONE) {
      kl_nth_point(c->body, a->regs, a->run, k * a->vec, at);
      holds = kl_guard_at(c->p, c->body, a->guard, kl_inner(c->body), at);
    }
    if (holds != KL_NO) add_indices(c, a->base[k], kl_address_instructions(&c->at, a, k, holds == KL_UNKNOWN), warps);
  }
}

static void count_indices(counting *c, const kl_step *s, int64_t warps) {
  if (s->kind == KL_STEP_LOAD && !c->p->slots[s->access.slot].by_value)
    count_addresses(c, &s->access, s->access.guard, warps);
  for (uint32_t i = 0; s->kind == KL_STEP_CHOOSE && i + 1 < s->noperands; i++) count_guard(c, s->guards[i], warps);
  if (s->expr) add_indices(c, s->expr, kl_index_instructions(&c->at, s->expr), warps);
}

static void count_step(counting *c, const kl_step *s, const inside *around, int64_t warps) {
  count_indices(c, s, warps);
  if (s->kind == KL_STEP_LOAD) count_load(c, (uint32_t)(s - c->body->steps), around);
  if (s->kind == KL_STEP_SHUFFLE || s->kind == KL_STEP_ROTATE) c->sum.shuffles += words_of(c, s) * warps;
  if (s->kind == KL_STEP_EXCHANGE) c->sum.shuffles += kl_exchanged_words(c->body, s) * warps;
  double open = s->kind == KL_STEP_CHOOSE ? 0 : 1;
  for (uint32_t i = 0; s->kind == KL_STEP_CHOOSE && i + 1 < s->noperands; i++) {
    double share = kl_guard_share(&c->at, s->guards[i]);
    open = share > open ? share : open;
  }
  c->sum.instructions += (int64_t)(kl_step_instructions(c->p, c->body, s) * open * (double)warps);
}

static void count_store(counting *c, const kl_store *s, const inside *around, int64_t warps) {
  count_addresses(c, &s->access, s->keep, warps);
  if (s->how == KL_STORE_PUT)
    count_access(c, &s->access, s->keep, around, true, KL_NONE);
  else
    count_change(c, s, around);
}

// The counter and the branch back; the branch, and where threads meet again; which body it is, of several.
enum { OF_A_ROUND = 3, OF_A_BRANCH = 3, OF_SEVERAL = 5 };

static void count_seq(counting *c, const kl_seq *s, const inside *around);

// One of the blocks does what is inside. Its first warp fences and counts; its warps meet twice.
static void count_last(counting *c, const kl_node *n, int64_t warps) {
  const kl_body *b = c->body;
  c->sum.syncs += 2 * warps;
  c->sum.instructions += 3 * b->blocks;
  for (uint32_t v = 0; v < b->nvars; v++)
    if (kl_has_var(n->nest->arrival.of, v)) c->warps.extent[v] = 1;
  count_seq(c, &n->nest->inside, NULL);
  for (uint32_t v = 0; v < b->nvars; v++)
    if (kl_has_var(n->nest->arrival.of, v)) c->warps.extent[v] = b->vars[v].extent;
}

static int64_t instructions_in(const counting *c, const kl_seq *s) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    if (n->kind == KL_NODE_STEP) sum += (int64_t)kl_step_instructions(c->p, c->body, &c->body->steps[n->index]);
    if (n->nest) sum += instructions_in(c, &n->nest->inside);
  }
  return sum;
}

// Blocks take a number and meet, wait and meet. The first warp of each looks at nodes of each level, of which there are
// half of all but one before the own, and joins what they make, that with the own node's, and all with what it has.
static void count_before(counting *c, const kl_node *n, int64_t warps) {
  enum { OF_LOOKING = 30, OF_ONE = 3, OTHERS = 2 };
  const kl_body *b = c->body;
  int64_t parts = kl_before_parts(b, n->nest), words = parts * kl_info(kl_before_words(b, n->nest))->bits / 32;
  int64_t levels = kl_levels_before(b->vars[n->index].extent), looked = levels * (KL_BEFORE_BASE - 1) / 2;
  c->sum.exact = false;
  c->sum.syncs += 2 * warps;
  c->sum.shuffles += b->blocks * looked * words;
  c->sum.instructions += b->blocks * (levels * OF_LOOKING + looked * OF_ONE * parts);
  c->sum.instructions += b->blocks * (looked + OTHERS * levels) * instructions_in(c, &n->nest->inside);
}

static void count_seq(counting *c, const kl_seq *s, const inside *around) {
  const kl_body *b = c->body;
  int64_t warps = issues(c, around);
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    switch (n->kind) {
    case KL_NODE_STEP: count_step(c, &b->steps[n->index], around, warps); break;
    case KL_NODE_STORE: count_store(c, &b->stores[n->index], around, warps); break;
    case KL_NODE_UPDATE:
      count_seq(c, &n->nest->inside, around);
      count_store(c, &b->stores[n->index], around, warps);
      break;
    case KL_NODE_LOOP:
      c->warps.extent[n->index] = b->vars[n->index].extent;
      count_seq(c, &n->nest->inside, around);
      c->warps.extent[n->index] = 1;
      c->sum.instructions += OF_A_ROUND * b->vars[n->index].extent * warps;
      break;
    case KL_NODE_WHILE: // as if it had one round
      c->sum.exact = c->sum.load.asked.exact = false;
      count_seq(c, &n->nest->inside, around);
      c->sum.instructions += OF_A_ROUND * warps;
      break;
    case KL_NODE_IF:
      count_guard(c, n->index, warps);
      c->sum.instructions += OF_A_BRANCH * warps;
      count_seq(c, &n->nest->inside, &(inside){around, n->index});
      break;
    case KL_NODE_BEFORE: count_before(c, n, warps); break;
    case KL_NODE_LAST: count_last(c, n, warps); break;
    case KL_NODE_MEET: c->sum.syncs += 2 * warps; break; // all arrive, and wait
    case KL_NODE_SYNC: c->sum.syncs += warps; break;
    }
  }
}

static void count_body(counting *c, const kl_body *b, bool several) {
  if (kl_body_is_empty(b)) return;
  c->body = b;
  c->live = kl_live_copies(c->p, b);
  set_symbols(c);
  set_warps(c);
  c->once = issues(c, NULL);
  c->sum.warps += c->once;
  c->sum.instructions += (int64_t)((kl_rest_instructions(b) + (several ? OF_SEVERAL : 0)) * (double)c->once);
  double registers = kl_body_registers(c->p, c->launch, b);
  if (registers > c->sum.registers) c->sum.registers = registers;
  c->at = (kl_indexing){.p = c->p, .b = b};
  count_seq(c, &b->root, NULL);
  kl_indexing_free(&c->at);
}

// --- the plan -------------------------------------------------------------------------------------------------------

static int64_t accesses_of(const kl_body *b) {
  int64_t n = 0;
  for (uint32_t i = 0; i < b->nsteps; i++)
    if (b->steps[i].kind == KL_STEP_LOAD) n += b->steps[i].access.nchunks * b->steps[i].access.vec;
  for (uint32_t i = 0; i < b->nstores; i++) n += b->stores[i].access.nchunks * b->stores[i].access.vec;
  return n;
}

// Each instruction's part of the quota.
static int64_t quota_of(const kl_plan *p, int64_t quota) {
  int64_t accesses = 1;
  for (uint32_t i = 0; i < p->nparts; i++) accesses += accesses_of(&p->parts[i].main) + accesses_of(&p->parts[i].tail);
  return quota / accesses;
}

static void add_slot(kl_access_cost *to, const kl_access_cost *x) {
  kl_add_requests(&to->asked, &x->asked, 1);
  to->asked.exact &= x->asked.exact;
  to->bytes += x->bytes;
  for (int k = 0; k < KL_COST_WIDTHS; k++) to->width[k] += x->width[k];
}

// Beside what steps are: requests, shuffles, syncs; what each thread begins and ends with.
enum { PROLOGUE = 5 };

static void add_instructions(kl_cost *sum) {
  sum->instructions += sum->load.asked.requests + sum->store.asked.requests + sum->shared_load.asked.requests +
                       sum->shared_store.asked.requests + sum->change.asked.requests +
                       sum->shared_change.asked.requests + sum->shuffles + sum->syncs + PROLOGUE * sum->warps;
}

static void add_slots(kl_plan *p, kl_cost *sum) {
  for (uint32_t i = 0; i < p->nslots; i++) {
    const kl_slot_cost *s = &sum->slots[i];
    bool shared = p->slots[i].kind == KL_SLOT_SHARED;
    add_slot(shared ? &sum->shared_load : &sum->load, &s->load);
    add_slot(shared ? &sum->shared_store : &sum->store, &s->store);
    add_slot(shared ? &sum->shared_change : &sum->change, &s->change);
    sum->exact &= kl_is_exact(s);
    sum->data |= s->data;
  }
}

kl_cost kl_plan_cost(kl_plan *p, int64_t quota) {
  const kl_access_cost none = {.asked.exact = true};
  counting c = {.p = p, .quota = quota_of(p, quota), .quick = quota < KL_COST_THOROUGH};
  c.sum = (kl_cost){.exact = true, .load = none, .store = none, .shared_load = none, .shared_store = none};
  c.sum.change = c.sum.shared_change = none;
  c.sum.slots = KL_NEW_N(p->arena, kl_slot_cost, p->nslots + 1);
  for (uint32_t i = 0; i < p->nslots; i++)
    c.sum.slots[i] = (kl_slot_cost){.load = none, .store = none, .change = none, .coalesced_for_xla = true};
  for (uint32_t i = 0; i < p->nparts && p->target.machine == KL_NVPTX && !p->flat; i++) {
    c.launch = kl_launch_of(p, i);
    if (!kl_is_launched(c.launch, p->in_place)) continue;
    bool several = c.launch->nparts > 1 || (p->parts[i].main_blocks && p->parts[i].main_blocks < p->parts[i].blocks);
    count_body(&c, &p->parts[i].main, several);
    count_body(&c, &p->parts[i].tail, several);
  }
  VEC_FREE(kl_affs_context(p->affs), &c.load);
  VEC_FREE(kl_affs_context(p->affs), &c.known);
  add_slots(p, &c.sum);
  add_instructions(&c.sum);
  return c.sum;
}

// Bytes of DRAM, of L2, and instructions that a multiprocessor has a clock's share of. What changes in L2 is read and
// written; changes of one element follow each other.
static const double dram_bytes = 13.3, l2_bytes = 30, issues_a_clock = 4, clocks_apart = 2;

// Changes of an element of the slot, if each has as many.
static double meeting(const kl_plan *p, const kl_cost *c, uint32_t slot) {
  const kl_slot_info *s = &p->slots[slot];
  double elements = (double)c->slots[slot].change.bytes * 8 / kl_info(s->shape->dtype)->bits;
  return s->kind == KL_SLOT_SHARED || s->shape->count == 0 ? 0 : elements / (double)s->shape->count;
}

kl_cost_clocks kl_clocks_of(const kl_plan *p, const kl_cost *c) {
  kl_cost_clocks t = {{0}, KL_LIMIT_DRAM, 0};
  double launches = p->nlaunches == 0, multiprocessors = p->target.multiprocessors;
  for (uint32_t i = 0; i < p->nlaunches; i++) launches += kl_is_launched(&p->launches[i], p->in_place);
  if (multiprocessors == 0) multiprocessors = 132;
  double bytes = 0, changed = 2 * (double)c->change.asked.sectors;
  double sectors = ((double)(c->load.asked.sectors + c->store.asked.sectors) + changed) * KL_SECTOR_BYTES;
  for (uint32_t i = 0; i < p->nslots; i++) {
    const kl_slot_cost *s = &c->slots[i];
    double moved = (double)(s->load.asked.sectors + s->store.asked.sectors) * KL_SECTOR_BYTES;
    double met = meeting(p, c, i) * clocks_apart * multiprocessors;
    if (met > t.of[KL_LIMIT_MEET]) t.of[KL_LIMIT_MEET] = met;
    if (p->slots[i].kind == KL_SLOT_SHARED) continue;
    bytes += moved < (double)p->slots[i].bytes ? moved : (double)p->slots[i].bytes; // read again it comes from L2
  }
  t.of[KL_LIMIT_DRAM] = bytes / dram_bytes;
  t.of[KL_LIMIT_L2] = sectors / l2_bytes;
  t.of[KL_LIMIT_SHARED] =
      (double)(c->shared_load.asked.wavefronts + c->shared_store.asked.wavefronts + c->shared_change.asked.wavefronts);
  t.of[KL_LIMIT_ISSUE] = (double)c->instructions / issues_a_clock;
  double sum = 0;
  for (int i = 0; i < KL_LIMITS; i++) {
    sum += t.of[i];
    if (t.of[i] > t.of[t.limiter]) t.limiter = (kl_cost_limiter)i;
  }
  double most = t.of[t.limiter];
  t.work = most + (sum - most) / 8;
  t.all = t.work + launches * KL_LAUNCH_CLOCKS * multiprocessors;
  return t;
}
