// Where every value of ENTRY, and of what its loops run, lies: which kernels read and write which memory.
//
// Kernels are found in the order in which they run. A loop's state lies in buffers that hold it from iteration to
// iteration: what the body makes anew is copied there once all of the body is done; what it hands on as it is, is never
// moved at all.

#include "jit/kernels.h"

// A buffer as an argument. Whoever reads or writes it finds it in the layout of its owner: a slot's is the caller's, of
// scratch memory the fusion whose result it is.
typedef struct place {
  kiln_argument argument;
  const kl_shape *shape;
} place;

typedef struct placing {
  kl_ctx *cx;
  kl_kernels *k;
  const kl_comp *c;    // ENTRY, or what a loop runs
  const place *params; // by leaf of its parameters; NULL: they are slots
  uint32_t *param_base;
  place **at; // by instruction: of each leaf of a fusion or loop
  bool **placed;
} placing;

static uint32_t leaves(const kl_instr *in) {
  return (uint32_t)kl_shape_leaf_count(in->shape);
}

// The parameter, constant or fusion leaf that a leaf of `instr` is. *as: the shape it is seen in, if that is not its
// own.
static const kl_instr *resolve(const kl_comp *c, uint32_t instr, uint32_t *leaf, const kl_shape **as) {
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

static place place_of_parameter(const placing *p, const kl_instr *in, uint32_t leaf) {
  uint32_t i = p->param_base[in->number] + leaf;
  return p->params ? p->params[i] : place_of_slot(p->k, i);
}

static place place_of(placing *p, uint32_t instr, uint32_t leaf) {
  const kl_shape *as;
  const kl_instr *in = resolve(p->c, instr, &leaf, &as);
  place a;
  if (in->op == KL_OP_PARAMETER)
    a = place_of_parameter(p, in, leaf);
  else if (in->op == KL_OP_CONSTANT)
    a = place_of_constant(p, in);
  else
    a = p->at[in - p->c->instr][leaf];
  a.argument.output = false;
  if (as) a.shape = as;
  return a;
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

static void add_copy(placing *p, place from, place to, const kl_shape *shape, kl_span span) {
  kl_kernels *k = p->k;
  kl_kernel_unit *u = kl_add_unit(p->cx, k, copy_of(k->arena, shape, span), KL_NONE, kl_str_of("copy"), 2);
  from.argument.output = false;
  to.argument.output = true;
  kl_add_argument(u, from.argument, from.shape);
  kl_add_argument(u, to.argument, to.shape);
}

static place new_buffer(placing *p, const kl_shape *shape) {
  kiln_argument a = {.kind = KILN_ARGUMENT_SCRATCH, .output = true};
  a.offset = kl_add_buffer(p->cx, p->k, (uint64_t)kl_shape_bytes(shape), UINT32_MAX, 0);
  return (place){a, shape};
}

// Are the arrays behind a bitcast and its result laid out as the two shapes say? Buffers of results may lie otherwise
// than values.
static bool lies_as_seen(const kl_shape *slot, const kl_instr *from, uint32_t leaf, const kl_shape *as,
                         bool seen_otherwise) {
  const kl_shape *own = kl_shape_leaf(from->shape, leaf);
  if (as) return kl_shape_same_in_memory(slot, as);
  return !seen_otherwise || kl_shape_same_in_memory(slot, own);
}

// Leaves that some bitcast reads.
static void find_seen(placing *p, bool **seen) {
  const kl_comp *c = p->c;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    uint32_t leaf = 0;
    const kl_shape *as;
    if (c->instr[i].op != KL_OP_BITCAST) continue;
    const kl_instr *in = resolve(c, i, &leaf, &as);
    if (seen[in - c->instr]) seen[in - c->instr][leaf] = true;
  }
}

// Results first: a leaf that is several of them is written as the first and copied to the others.
static uint32_t place_results(placing *p, bool *const *seen, uint32_t *copies) {
  kl_kernels *k = p->k;
  uint32_t n = 0;
  for (uint32_t r = 0; r < k->nresults; r++) {
    uint32_t leaf = r;
    const kl_shape *as, *slot = k->shapes[k->nparams + r];
    const kl_instr *from = resolve(k->entry, k->entry->root, &leaf, &as);
    if (!kl_shape_is_array(slot)) continue; // a token
    uint32_t at = (uint32_t)(from - k->entry->instr);
    bool *placed = p->placed[at] ? &p->placed[at][leaf] : NULL;
    if (!placed || *placed || !lies_as_seen(slot, from, leaf, as, seen[at][leaf])) {
      copies[n++] = r;
      continue;
    }
    *placed = true;
    p->at[at][leaf] = place_of_slot(k, k->nparams + r);
    if (as) p->at[at][leaf].shape = kl_shape_leaf(from->shape, leaf);
  }
  return n;
}

static void run(placing *p);

static void add_fusion(placing *p, uint32_t i) {
  kl_kernels *k = p->k;
  const kl_instr *fusion = &p->c->instr[i];
  uint32_t n = leaves(fusion);
  for (uint32_t o = 0; o < fusion->noperands; o++) n += leaves(kl_operand(p->c, fusion, o));
  const kl_comp *c = kl_plan_inline(p->cx, k->m, &k->m->comp[fusion->called[0]], k->arena);
  place *from = KL_NEW_N(k->arena, place, n + 1);
  uint32_t nfrom = 0;
  for (uint32_t o = 0; o < fusion->noperands; o++)
    for (uint32_t l = 0; l < leaves(kl_operand(p->c, fusion, o)); l++)
      from[nfrom++] = place_of(p, fusion->operands[o], l);
  for (uint32_t l = 0; l < leaves(fusion); l++)
    if (!p->placed[i][l]) p->at[i][l] = new_buffer(p, kl_shape_leaf(fusion->shape, l));
  kl_kernel_unit *u = kl_add_unit(p->cx, k, c, fusion->called[0], kl_symbol_text(&k->m->names, fusion->name), n);
  for (uint32_t a = 0; a < nfrom; a++) kl_add_argument(u, from[a].argument, from[a].shape);
  for (uint32_t l = 0; l < leaves(fusion); l++) kl_add_argument(u, p->at[i][l].argument, p->at[i][l].shape);
}

// --- loops
// ------------------------------------------------------------------------------------------------------------

static bool same_place(place a, place b) {
  return a.argument.kind == b.argument.kind && a.argument.slot == b.argument.slot &&
         a.argument.offset == b.argument.offset;
}

// Kernels since the last step.
static void end_step(kl_ctx *cx, kl_kernels *k) {
  size_t from = 0;
  for (size_t i = 0; i < k->steps.n; i++)
    if (k->steps.p[i].kind == KILN_STEP_LAUNCHES) from = k->steps.p[i].first + k->steps.p[i].count;
  if (k->list.n > from)
    VEC_PUSH(cx, &k->steps, ((kiln_step){.kind = KILN_STEP_LAUNCHES, .first = from, .count = k->list.n - from}));
}

static placing inside(const placing *p, const kl_comp *c, const place *params) {
  placing x = {.cx = p->cx, .k = p->k, .c = c, .params = params};
  uint32_t n = 0;
  x.param_base = KL_NEW_N(p->k->arena, uint32_t, c->nparams + 1u);
  for (uint32_t i = 0; i < c->nparams; i++) {
    x.param_base[i] = n;
    n += leaves(&c->instr[c->params[i]]);
  }
  x.at = KL_NEW_N(p->k->arena, place *, c->ninstr);
  x.placed = KL_NEW_N(p->k->arena, bool *, c->ninstr);
  return x;
}

// Does the body hand leaf l of its state on as it is?
static bool hands_on(const kl_comp *body, uint32_t l) {
  uint32_t leaf = l;
  const kl_shape *as;
  const kl_instr *in = resolve(body, body->root, &leaf, &as);
  return in->op == KL_OP_PARAMETER && leaf == l && !as;
}

// What the body has made becomes the state: what is part of the old state by way of memory of its own, as that may be
// overwritten before it is read.
static void carry(placing *body, const kl_instr *loop, const place *state, const bool *kept) {
  uint32_t n = leaves(loop);
  place *made = KL_NEW_N(body->k->arena, place, n + 1);
  for (uint32_t l = 0; l < n; l++) {
    const kl_shape *s = kl_shape_leaf(loop->shape, l);
    if (kept[l] || !kl_shape_is_array(s)) continue;
    made[l] = place_of(body, body->c->root, l);
    bool old = false;
    for (uint32_t i = 0; i < n; i++) old |= i != l && !kept[i] && same_place(made[l], state[i]);
    if (!old) continue;
    place between = new_buffer(body, s);
    add_copy(body, made[l], between, s, loop->span);
    made[l] = between;
  }
  for (uint32_t l = 0; l < n; l++)
    if (!kept[l] && kl_shape_is_array(kl_shape_leaf(loop->shape, l)) && !same_place(made[l], state[l]))
      add_copy(body, made[l], state[l], kl_shape_leaf(loop->shape, l), loop->span);
}

// Where the condition's result lies for whoever launches: in a buffer.
static kiln_argument condition_of(placing *p) {
  place a = place_of(p, p->c->root, 0);
  bool buffer = a.argument.kind == KILN_ARGUMENT_SCRATCH && !(a.argument.offset & KL_AMONG);
  if (buffer) return a.argument;
  place own = new_buffer(p, kl_root(p->c)->shape);
  add_copy(p, a, own, kl_root(p->c)->shape, kl_root(p->c)->span);
  own.argument.output = false;
  return own.argument;
}

static void add_loop(placing *p, uint32_t i) {
  kl_kernels *k = p->k;
  const kl_instr *in = &p->c->instr[i];
  const kl_comp *condition = &k->m->comp[in->called[0]], *body = &k->m->comp[in->called[1]];
  uint32_t n = leaves(in);
  place *state = p->at[i];
  bool *kept = KL_NEW_N(k->arena, bool, n + 1);
  for (uint32_t l = 0; l < n; l++) {
    const kl_shape *s = kl_shape_leaf(in->shape, l);
    kept[l] = hands_on(body, l);
    if (!kl_shape_is_array(s)) continue;
    place from = place_of(p, in->operands[0], l);
    state[l] = kept[l] ? from : new_buffer(p, s);
    if (!kept[l]) add_copy(p, from, state[l], s, in->span);
    state[l].argument.output = false;
  }
  end_step(p->cx, k);
  size_t step = k->steps.n;
  uint32_t first = (uint32_t)k->list.n;
  VEC_PUSH(p->cx, &k->steps, ((kiln_step){.kind = KILN_STEP_WHILE}));
  placing test = inside(p, condition, state), made = inside(p, body, state);
  run(&test);
  kiln_argument again = condition_of(&test);
  end_step(p->cx, k);
  k->steps.p[step].count = k->steps.n - step - 1;
  run(&made);
  carry(&made, in, state, kept);
  end_step(p->cx, k);
  k->steps.p[step].body = k->steps.n - step - 1 - k->steps.p[step].count;
  k->steps.p[step].condition = again;
  kl_buffer *b = &k->buffers.p[again.offset];
  if (k->list.n > first) VEC_PUSH(p->cx, &k->loops, ((kl_loop){first, (uint32_t)k->list.n - 1}));
  uint32_t last = k->list.n > first ? (uint32_t)k->list.n - 1 : first;
  if (first < b->first) b->first = first; // read by whoever launches, between the two
  if (last > b->last) b->last = last;
}

// --- all of them
// ------------------------------------------------------------------------------------------------------

static void make_room(placing *p) {
  for (uint32_t i = 0; i < p->c->ninstr; i++) {
    const kl_instr *in = &p->c->instr[i];
    if (in->op != KL_OP_FUSION && in->op != KL_OP_WHILE) continue;
    p->at[i] = KL_NEW_N(p->k->arena, place, leaves(in) + 1);
    if (in->op == KL_OP_FUSION) p->placed[i] = KL_NEW_N(p->k->arena, bool, leaves(in) + 1);
  }
}

static void run(placing *p) {
  if (p->params) make_room(p);
  for (uint32_t i = 0; i < p->c->ninstr; i++) {
    if (p->c->instr[i].op == KL_OP_FUSION) add_fusion(p, i);
    if (p->c->instr[i].op == KL_OP_WHILE) add_loop(p, i);
  }
}

void kl_place_all(kl_ctx *cx, kl_kernels *k) {
  placing p = {.cx = cx, .k = k, .c = k->entry, .param_base = k->param_base};
  uint32_t *copies = KL_NEW_N(k->arena, uint32_t, k->nresults + 1);
  p.at = KL_NEW_N(k->arena, place *, k->entry->ninstr);
  p.placed = KL_NEW_N(k->arena, bool *, k->entry->ninstr);
  make_room(&p);
  bool **seen = KL_NEW_N(k->arena, bool *, k->entry->ninstr);
  for (uint32_t i = 0; i < k->entry->ninstr; i++)
    if (p.placed[i]) seen[i] = KL_NEW_N(k->arena, bool, leaves(&k->entry->instr[i]) + 1);
  find_seen(&p, seen);
  uint32_t ncopies = place_results(&p, seen, copies);
  run(&p);
  for (uint32_t i = 0; i < ncopies; i++) {
    uint32_t slot = k->nparams + copies[i];
    add_copy(&p, place_of(&p, k->entry->root, copies[i]), place_of_slot(k, slot), k->shapes[slot],
             kl_root(k->entry)->span);
  }
  if (k->steps.n) end_step(cx, k);
}

// A buffer is there from the first kernel that has to do with it to the last, and where these are not all in a loop for
// all of it.
static void note_lives(kl_kernels *k) {
  for (uint32_t i = 0; i < k->n; i++)
    for (uint32_t a = 0; a < k->units[i].narguments; a++) {
      const kiln_argument *x = &k->units[i].arguments[a];
      if (x->kind != KILN_ARGUMENT_SCRATCH || x->offset & KL_AMONG) continue;
      kl_buffer *b = &k->buffers.p[x->offset];
      if (i < b->first) b->first = i;
      if (i > b->last) b->last = i;
    }
  for (size_t l = 0; l < k->loops.n; l++)
    for (size_t i = 0; i < k->buffers.n; i++) {
      kl_buffer *b = &k->buffers.p[i];
      const kl_loop *x = &k->loops.p[l];
      bool meets = b->first <= x->last && b->last >= x->first, within = b->first >= x->first && b->last <= x->last;
      if (!meets || within) continue;
      if (x->first < b->first) b->first = x->first;
      if (x->last > b->last) b->last = x->last;
    }
}

// A name in PTX: one kernel has that of its fusion, of several each has its number behind it.
void kl_finish_units(kl_ctx *cx, kl_kernels *k) {
  k->n = (uint32_t)k->list.n;
  k->units = VEC_FREEZE(cx, k->arena, &k->list);
  for (uint32_t i = 0; i < k->n && k->n > 1; i++) k->units[i].name = kl_strf(k->arena, "%s_%u", k->units[i].name, i);
  note_lives(k);
}
