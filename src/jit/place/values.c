// Where every value of ENTRY, and of what its loops and branches run, lies: which kernels read and write which memory.
//
// Kernels are found in the order in which they run. What is run says where its results are to lie: slots for ENTRY, the
// state for a loop's body, what all branches share for a branch. A result is written there at once where nobody is to
// read what lies there before; else it is copied there, once all is done.

#include "jit/place/impl.h"

uint32_t kl_place_leaves(const kl_instr *in) {
  return (uint32_t)kl_shape_leaf_count(in->shape);
}

const kl_instr *kl_place_resolve(const kl_comp *c, uint32_t instr, uint32_t *leaf, const kl_shape **as) {
  const kl_instr *in = &c->instr[instr];
  *as = NULL;
  while (in->op == KL_OP_TUPLE || in->op == KL_OP_GET_TUPLE_ELEMENT || in->op == KL_OP_BITCAST) {
    if (in->op == KL_OP_BITCAST) {
      if (!*as) *as = in->shape;
      in = kl_operand(c, in, 0);
      continue;
    }
    if (in->op == KL_OP_GET_TUPLE_ELEMENT) {
      *leaf += kl_operand(c, in, 0)->shape->first_leaf[in->number];
      in = kl_operand(c, in, 0);
      continue;
    }
    uint32_t i = kl_shape_element_of_leaf(in->shape, *leaf);
    *leaf -= in->shape->first_leaf[i];
    in = kl_operand(c, in, i);
  }
  return in;
}

static place place_of_slot(const kl_kernels *k, uint32_t slot) {
  return (place){{.slot = slot, .output = k->slots[slot].result}, k->shapes[slot]};
}

static place place_of_constant(placing *p, const kl_instr *in) {
  kl_kernels *k = p->k;
  const kl_shape *s = in->shape;
  char *data = KL_NEW_N(k->arena, char, (size_t)kl_shape_bytes(s) + 1);
  kl_array_pack(&(kl_array){s, in->literal[0].data}, data);
  uint64_t at = kl_add_constant(p->cx, k, data, (uint64_t)kl_shape_bytes(s));
  return (place){{.kind = KILN_ARGUMENT_SCRATCH, .offset = KL_AMONG_CONSTANTS | at}, s};
}

place kl_place_of_leaf(const placing *p, uint32_t i) {
  return p->params ? p->params[i] : place_of_slot(p->k, i);
}

place kl_place_of(placing *p, uint32_t instr, uint32_t leaf) {
  const kl_shape *as;
  const kl_instr *in = kl_place_resolve(p->c, instr, &leaf, &as);
  place a;
  if (in->op == KL_OP_PARAMETER)
    a = kl_place_of_leaf(p, p->param_base[in->number] + leaf);
  else if (in->op == KL_OP_CONSTANT)
    a = place_of_constant(p, in);
  else
    a = p->at[in - p->c->instr][leaf];
  a.argument.output = false;
  if (as) a.shape = as;
  return a;
}

bool kl_place_same(place a, place b) {
  return a.argument.kind == b.argument.kind && a.argument.slot == b.argument.slot &&
         a.argument.offset == b.argument.offset;
}

bool kl_place_is_buffer(place a) {
  return a.argument.kind == KILN_ARGUMENT_SCRATCH && !(a.argument.offset & KL_AMONG);
}

// parameter(0) -> copy
static const kl_comp *copy_of(kl_arena *arena, const kl_shape *s, kl_span span) {
  kl_comp *c = KL_NEW(arena, kl_comp);
  kl_instr *in = KL_NEW_N(arena, kl_instr, 2);
  uint32_t *zero = KL_NEW(arena, uint32_t);
  in[0] = (kl_instr){.op = KL_OP_PARAMETER, .shape = s, .more = &kl_no_more, .span = span};
  in[1] = (kl_instr){.op = KL_OP_COPY, .shape = s, .noperands = 1, .operands = zero, .more = &kl_no_more, .span = span};
  *c = (kl_comp){.ninstr = 2, .instr = in, .root = 1, .nparams = 1, .params = zero, .span = span};
  return c;
}

// --- kernels ------------------------------------------------------------------------------------------------------

kl_kernel_unit *kl_add_unit(kl_ctx *cx, kl_kernels *k, const kl_comp *c, uint32_t calls, kl_str name, uint32_t n) {
  kl_kernel_unit u = {.comp = c, .calls = calls, .name = kl_str_dup(k->arena, name).p};
  u.arguments = KL_NEW_N(k->arena, kiln_argument, n + 1);
  u.shapes = KL_NEW_N(k->arena, const kl_shape *, n + 1);
  VEC_PUSH(cx, &k->list, u);
  return &k->list.p[k->list.n - 1];
}

void kl_add_argument(kl_kernel_unit *u, kiln_argument a, const kl_shape *shape) {
  ((const kl_shape **)u->shapes)[u->narguments] = shape;
  u->arguments[u->narguments++] = a;
}

void kl_place_copy(placing *p, place from, place to, const kl_shape *shape, kl_span span) {
  kl_kernels *k = p->k;
  kl_kernel_unit *u = kl_add_unit(p->cx, k, copy_of(k->arena, shape, span), KL_NONE, kl_str_of("copy"), 2);
  from.argument.output = false;
  to.argument.output = true;
  kl_add_argument(u, from.argument, from.shape);
  kl_add_argument(u, to.argument, to.shape);
}

place kl_place_buffer(placing *p, const kl_shape *shape) {
  kiln_argument a = {.kind = KILN_ARGUMENT_SCRATCH, .output = true};
  a.offset = kl_add_buffer(p->cx, p->k, (uint64_t)kl_shape_bytes(shape), UINT32_MAX, 0);
  return (place){a, shape};
}

// --- what runs ------------------------------------------------------------------------------------------------------

static bool runs(const kl_instr *in) {
  return in->op == KL_OP_FUSION || in->op == KL_OP_WHILE || in->op == KL_OP_CONDITIONAL;
}

static void make_room(placing *p) {
  kl_arena *arena = p->k->arena;
  p->at = KL_NEW_N(arena, place *, p->c->ninstr + 1u);
  p->placed = KL_NEW_N(arena, bool *, p->c->ninstr + 1u);
  p->trips = KL_NEW_N(arena, trips, p->c->ninstr + 1u);
  for (uint32_t i = 0; i < p->c->ninstr; i++) {
    const kl_instr *in = &p->c->instr[i];
    if (!runs(in)) continue;
    p->at[i] = KL_NEW_N(arena, place, kl_place_leaves(in) + 1u);
    if (in->op == KL_OP_WHILE) p->trips[i] = kl_place_trips(p, in);
    p->placed[i] = KL_NEW_N(arena, bool, kl_place_leaves(in) + 1u);
  }
}

static void begin(placing *p) {
  make_room(p);
  kl_place_find_readers(p);
}

placing kl_place_inside(const placing *p, const kl_comp *c, const place *params) {
  placing x = {.cx = p->cx, .k = p->k, .c = c, .params = params};
  uint32_t n = 0;
  x.param_base = KL_NEW_N(p->k->arena, uint32_t, c->nparams + 1u);
  for (uint32_t i = 0; i < c->nparams; i++) {
    x.param_base[i] = n;
    n += kl_place_leaves(&c->instr[c->params[i]]);
  }
  begin(&x);
  return x;
}

void kl_place_end(placing *p) {
  VEC_FREE(p->cx, &p->later);
}

void kl_place_end_step(kl_ctx *cx, kl_kernels *k) {
  size_t n = k->list.n - k->stepped;
  if (n) VEC_PUSH(cx, &k->steps, ((kiln_step){.kind = KILN_STEP_LAUNCHES, .first = k->stepped, .count = n}));
  k->stepped = k->list.n;
}

void kl_place_read(placing *p, const kiln_argument *a, uint32_t before) {
  kl_kernels *k = p->k;
  if (a->kind == KILN_ARGUMENT_SLOT) {
    VEC_PUSH(p->cx, &k->reads, ((kl_read){a->slot, before}));
  } else if (!(a->offset & KL_AMONG)) {
    kl_buffer *b = &k->buffers.p[a->offset];
    if (before < b->first) b->first = before;
    if (before > b->last) b->last = before;
  }
}

// --- fusions --------------------------------------------------------------------------------------------------------

// A result that is to be written over an argument is, if the kernel's plan finds that right; else it is written beside,
// and copied. That is known when the plan is there.
static void add_spares(placing *p, uint32_t unit, uint32_t nfrom, kl_span span) {
  kl_kernels *k = p->k;
  kl_kernel_unit u = k->list.p[unit];
  for (uint32_t o = nfrom; o < u.narguments; o++)
    for (uint32_t i = 0; i < nfrom; i++) {
      place to = {u.arguments[o], u.shapes[o]}, from = {u.arguments[i], u.shapes[i]};
      if (to.argument.offset & KL_AMONG || !kl_place_same(to, from)) continue;
      place beside = kl_place_buffer(p, to.shape);
      kl_buffer *b = &k->buffers.p[beside.argument.offset];
      b->first = unit;
      b->last = (uint32_t)k->list.n;
      VEC_PUSH(p->cx, &k->spares,
               ((kl_spare){.unit = unit, .in = i, .out = o, .beside = beside.argument.offset, .copy = b->last}));
      kl_place_copy(p, beside, to, to.shape, span);
      k->list.p[k->list.n - 1].idle = true;
      break;
    }
}

static void add_fusion(placing *p, uint32_t i) {
  kl_kernels *k = p->k;
  const kl_instr *fusion = &p->c->instr[i];
  uint32_t n = kl_place_leaves(fusion), unit = (uint32_t)k->list.n;
  for (uint32_t o = 0; o < fusion->noperands; o++) n += kl_place_leaves(kl_operand(p->c, fusion, o));
  const kl_comp *c = kl_plan_inline(p->cx, k->m, &k->m->comp[fusion->called[0]], k->arena);
  place *from = KL_NEW_N(k->arena, place, n + 1);
  uint32_t nfrom = 0;
  for (uint32_t o = 0; o < fusion->noperands; o++)
    for (uint32_t l = 0; l < kl_place_leaves(kl_operand(p->c, fusion, o)); l++)
      from[nfrom++] = kl_place_of(p, fusion->operands[o], l);
  for (uint32_t l = 0; l < kl_place_leaves(fusion); l++)
    if (!p->placed[i][l]) p->at[i][l] = kl_place_buffer(p, kl_shape_leaf(fusion->shape, l));
  kl_kernel_unit *u = kl_add_unit(p->cx, k, c, fusion->called[0], kl_symbol_text(&k->m->names, fusion->name), n);
  for (uint32_t a = 0; a < nfrom; a++) kl_add_argument(u, from[a].argument, from[a].shape);
  for (uint32_t l = 0; l < kl_place_leaves(fusion); l++) {
    kiln_argument to = p->at[i][l].argument;
    to.output = true;
    kl_add_argument(u, to, p->at[i][l].shape);
  }
  add_spares(p, unit, nfrom, fusion->span);
}

// --- results --------------------------------------------------------------------------------------------------------

// Are the arrays behind a bitcast and its result laid out as the two shapes say? Buffers of results may lie otherwise
// than values.
static bool lies_as_seen(const kl_shape *to, const kl_instr *from, uint32_t leaf, const kl_shape *as,
                         bool seen_otherwise) {
  const kl_shape *own = kl_shape_leaf(from->shape, leaf);
  if (as) return kl_shape_same_in_memory(to, as);
  return !seen_otherwise || kl_shape_same_in_memory(to, own);
}

// Leaves that some bitcast reads.
static bool **find_seen(placing *p) {
  const kl_comp *c = p->c;
  bool **seen = KL_NEW_N(p->k->arena, bool *, c->ninstr + 1u);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    uint32_t leaf = 0;
    const kl_shape *as;
    if (c->instr[i].op != KL_OP_BITCAST) continue;
    uint32_t from = (uint32_t)(kl_place_resolve(c, i, &leaf, &as) - c->instr);
    if (!p->placed[from]) continue;
    if (!seen[from]) seen[from] = KL_NEW_N(p->k->arena, bool, kl_place_leaves(&c->instr[from]) + 1u);
    seen[from][leaf] = true;
  }
  return seen;
}

// What loops and branches give lies as it does inside of them, and by way of scratch memory if somebody has asked for
// slots that share memory: kernels of branches write the same slot, and loops write it again and again, of which
// aliases know nothing.
static bool may_aim(const placing *p, const kl_instr *from, uint32_t leaf, place to) {
  const kl_shape *own = kl_shape_leaf(from->shape, leaf);
  if (from->op == KL_OP_FUSION) return true;
  if (!kl_shape_same_in_memory(to.shape, own)) return false;
  if (to.argument.kind == KILN_ARGUMENT_SLOT && p->k->asked) return false;
  return from->op == KL_OP_CONDITIONAL || !kl_place_keeps(&p->k->m->comp[from->called[1]], leaf);
}

// What a loop that is to leave a leaf in a place begins with is written there at once, too, if it is made for the loop
// alone.
static void aim_beginnings(placing *p, uint32_t at, uint32_t leaf, place to) {
  while (p->c->instr[at].op == KL_OP_WHILE) {
    uint32_t n;
    const kl_shape *as;
    const kl_instr *from = kl_place_resolve(p->c, p->c->instr[at].operands[0], &leaf, &as);
    at = (uint32_t)(from - p->c->instr);
    if (as || !p->placed[at] || p->placed[at][leaf] || !may_aim(p, from, leaf, to)) return;
    kl_place_readers(p, at, leaf, &n);
    if (n != 1 || !kl_shape_same_in_memory(to.shape, kl_shape_leaf(from->shape, leaf))) return;
    if (!kl_place_may_write(p, at, leaf, to)) return;
    p->placed[at][leaf] = true;
    p->at[at][leaf] = to;
  }
}

// A leaf that is several results is written as the first and copied to the others.
void kl_place_aim(placing *p, const place *to, const bool *any, bool *direct) {
  bool **seen = find_seen(p);
  for (uint32_t r = 0; r < kl_place_leaves(kl_root(p->c)); r++) {
    uint32_t leaf = r;
    const kl_shape *as;
    const kl_instr *from = kl_place_resolve(p->c, p->c->root, &leaf, &as);
    uint32_t at = (uint32_t)(from - p->c->instr);
    if (any[r] || !to[r].shape || !p->placed[at] || p->placed[at][leaf] || !may_aim(p, from, leaf, to[r])) continue;
    if (!lies_as_seen(to[r].shape, from, leaf, as, seen[at] && seen[at][leaf])) continue;
    if (!kl_place_may_write(p, at, leaf, to[r])) continue;
    p->placed[at][leaf] = true;
    p->at[at][leaf] = to[r];
    if (as) p->at[at][leaf].shape = kl_shape_leaf(from->shape, leaf);
    if (direct) direct[r] = true;
    aim_beginnings(p, at, leaf, p->at[at][leaf]);
  }
}

static bool lies_there(place made, place to) {
  return kl_place_same(made, to) && kl_shape_same_in_memory(made.shape, to.shape);
}

// What is overwritten before it is copied itself goes by way of memory of its own.
static void copy_results(placing *p, const place *to, const bool *any) {
  uint32_t n = kl_place_leaves(kl_root(p->c));
  kl_span span = kl_root(p->c)->span;
  place *made = KL_NEW_N(p->k->arena, place, n + 1);
  for (uint32_t r = 0; r < n; r++)
    if (!any[r] && to[r].shape) made[r] = kl_place_of(p, p->c->root, r);
  for (uint32_t r = 0; r < n; r++) {
    bool over = false;
    if (any[r] || !to[r].shape || lies_there(made[r], to[r])) continue;
    for (uint32_t i = 0; i <= r; i++)
      over |= !any[i] && to[i].shape && kl_place_same(made[r], to[i]) && (i == r || !lies_there(made[i], to[i]));
    if (!over) continue;
    place between = kl_place_buffer(p, to[r].shape);
    kl_place_copy(p, made[r], between, to[r].shape, span);
    made[r] = between;
  }
  for (uint32_t r = 0; r < n; r++)
    if (!any[r] && to[r].shape && !lies_there(made[r], to[r])) kl_place_copy(p, made[r], to[r], to[r].shape, span);
}

void kl_place_run(placing *p, const place *to, const bool *any) {
  const uint32_t *order = kl_place_order(p);
  for (uint32_t i = 0; i < p->c->ninstr; i++) {
    uint32_t x = order[i];
    if (p->c->instr[x].op == KL_OP_FUSION) add_fusion(p, x);
    if (p->c->instr[x].op == KL_OP_WHILE) kl_place_loop(p, x);
    if (p->c->instr[x].op == KL_OP_CONDITIONAL) kl_place_branches(p, x);
  }
  copy_results(p, to, any);
}

// --- all of them ----------------------------------------------------------------------------------------------------

void kl_place_all(kl_ctx *cx, kl_kernels *k) {
  placing p = {.cx = cx, .k = k, .c = k->entry, .param_base = k->param_base};
  place *to = KL_NEW_N(k->arena, place, k->nresults + 1);
  bool *any = KL_NEW_N(k->arena, bool, k->nresults + 1);
  for (uint32_t r = 0; r < k->nresults; r++)
    if (kl_shape_is_array(k->shapes[k->nparams + r])) to[r] = place_of_slot(k, k->nparams + r); // else a token
  begin(&p);
  kl_place_aim(&p, to, any, NULL);
  kl_place_run(&p, to, any);
  kl_place_end(&p);
  if (k->steps.n) kl_place_end_step(cx, k);
}
