// Loops: the state, and how its values of one round become those of the next.
//
// A loop of few kernels, of which it is known how often they run, is run body after body, if one block does not have
// all of it done sooner (rounds.c): what one has made is read where it lies. Any other has a state, in buffers of its
// own. What the body hands on as it is lies where it lay before the loop. What it makes is written to the state at once
// where all have read that before; where not, the next round reads it where it was made and writes the state, so that
// two bodies in turn need no copies; what only changes places is copied.

#include "ir/rewrite/trips.h"
#include "jit/place/impl.h"

// Kernels of a loop that is run body after body; of a body that is there twice.
enum { MOST_UNROLLED = 64, MOST_TWICE = 256, MOST_NESTED = 16 };
// Rounds from which on a loop of small kernels is none that is run so: one block may run all of it.
enum { WORTH_ROUNDS = 4, SMALL = 1 << 15 };

typedef struct loop {
  placing *p;
  const kl_instr *in;
  const kl_comp *condition, *body;
  uint32_t n;                      // leaves
  bool *kept;                      // by leaf
  place *state;                    // by leaf, at the beginning of each round
  place *between;                  // by leaf: after every other round, where these go in turns
  uint32_t turning, direct, moved; // leaves that do, that are written in place, that are copied
} loop;

bool kl_place_keeps(const kl_comp *body, uint32_t l) {
  uint32_t leaf = l;
  const kl_shape *as;
  const kl_instr *in = kl_place_resolve(body, body->root, &leaf, &as);
  return in->op == KL_OP_PARAMETER && leaf == l && !as;
}

// Kernels that are launched when a computation is run; more than are worth a thing where that is not known.
static uint64_t launches_of(const kiln_module *m, const kl_comp *c, unsigned depth) {
  uint64_t n = 0, times;
  for (uint32_t i = 0; i < c->ninstr && n <= MOST_UNROLLED; i++) {
    const kl_instr *in = &c->instr[i];
    if (in->op == KL_OP_FUSION) n++;
    if (in->op == KL_OP_WHILE && (depth >= MOST_NESTED || !kl_trip_count(m, c, in, &times) || times > MOST_UNROLLED))
      return UINT32_MAX;
    if (in->op == KL_OP_WHILE) n += times * launches_of(m, &m->comp[in->called[1]], depth + 1);
    for (uint32_t b = 0; in->op == KL_OP_CONDITIONAL && b < in->ncalled; b++)
      n += depth >= MOST_NESTED ? UINT32_MAX : launches_of(m, &m->comp[in->called[b]], depth + 1);
  }
  return n < UINT32_MAX ? n : UINT32_MAX;
}

static int64_t elements_of(const kl_instr *in) {
  int64_t n = 0;
  for (uint32_t l = 0; l < kl_place_leaves(in); l++) {
    const kl_shape *s = kl_shape_leaf(in->shape, l);
    if (kl_shape_is_array(s)) n += s->count;
  }
  return n;
}

// So small is what each kernel of a computation, or of what it runs, reads and writes that one block has soon done it,
// whatever it is: most is made of this a product of two square matrices, with a million multiplications.
static bool is_small(const kl_kernels *k, const kl_comp *c, unsigned depth) {
  bool small = depth < MOST_NESTED;
  for (uint32_t i = 0; i < c->ninstr && small; i++) {
    const kl_instr *in = &c->instr[i];
    for (uint32_t b = 0; b < in->ncalled && (in->op == KL_OP_WHILE || in->op == KL_OP_CONDITIONAL) && small; b++)
      small = is_small(k, &k->m->comp[in->called[b]], depth + 1);
    if (in->op != KL_OP_FUSION) continue;
    int64_t n = elements_of(in);
    for (uint32_t o = 0; o < in->noperands; o++) n += elements_of(kl_operand(c, in, o));
    small = n <= SMALL;
  }
  return small;
}

trips kl_place_trips(const placing *p, const kl_instr *in) {
  trips t = {0};
  t.known = kl_trip_count(p->k->m, p->c, in, &t.n);
  if (!t.known || t.n > MOST_UNROLLED) return t;
  const kl_comp *body = &p->k->m->comp[in->called[1]];
  if (p->k->rolls && t.n >= WORTH_ROUNDS && is_small(p->k, body, 0)) return t;
  uint64_t each = launches_of(p->k->m, body, 0);
  t.unrolled = t.n * (each ? each : 1) <= MOST_UNROLLED;
  return t;
}

static void tell(const loop *x, const char *how, uint64_t times) {
  kl_kernels *k = x->p->k;
  if (!k->why) return;
  kl_sb_puts(k->why, "loop ");
  kl_sb_put(k->why, kl_symbol_text(&k->m->names, x->in->name));
  kl_sb_puts(k->why, ": ");
  if (times != UINT64_MAX) kl_sbf(k->why, "%llu rounds, ", (unsigned long long)times);
  kl_sb_puts(k->why, how);
  if (x->state)
    kl_sbf(k->why, "; of what is carried %u in place, %u in two places in turn, %u copied", x->direct, x->turning,
           x->moved);
  kl_sb_putc(k->why, '\n');
}

// --- body after body ------------------------------------------------------------------------------------------------

// Does nobody else want the buffer in which a leaf of the state begins?
static bool may_take(const placing *p, const kl_instr *in, uint32_t l, place from) {
  uint32_t leaf = l, n;
  const kl_shape *as;
  const kl_instr *of = kl_place_resolve(p->c, in->operands[0], &leaf, &as);
  uint32_t at = (uint32_t)(of - p->c->instr);
  if ((of->op != KL_OP_FUSION && of->op != KL_OP_CONDITIONAL) || as || p->placed[at][leaf]) return false;
  kl_place_readers(p, at, leaf, &n);
  return n == 1 && kl_place_is_buffer(from) && kl_shape_same_in_memory(from.shape, kl_shape_leaf(in->shape, l));
}

// Which of the leaves that a body has made are in buffers that only the next round looks at.
static void find_own(const placing *body, const place *made, bool *own) {
  uint32_t n = kl_place_leaves(kl_root(body->c));
  for (uint32_t l = 0; l < n; l++) {
    uint32_t leaf = l;
    const kl_shape *as;
    const kl_instr *in = kl_place_resolve(body->c, body->c->root, &leaf, &as);
    own[l] = body->at[in - body->c->instr] && made[l].shape && kl_place_is_buffer(made[l]);
    for (uint32_t o = 0; own[l] && o < n; o++) own[l] = o == l || !made[o].shape || !kl_place_same(made[l], made[o]);
  }
}

// Which leaves `from` -> `to` writes at once.
static bool *find_direct(loop *x, const place *from, const place *to) {
  bool *direct = KL_NEW_N(x->p->k->arena, bool, x->n + 1u);
  placing body = kl_place_inside(x->p, x->body, from);
  kl_place_aim(&body, to, x->kept, direct);
  kl_place_end(&body);
  return direct;
}

// What a round begins with and nobody else wants is written over by what it becomes where all have read it before. What
// is wanted somewhere (`placed`) is there from the first round on if that can be, else after every other one and the
// last.
static void run_all(loop *x, const place *from, uint64_t times, place *out, const bool *placed) {
  kl_arena *arena = x->p->k->arena;
  bool *own = KL_NEW_N(arena, bool, x->n + 1u);
  place *state = KL_NEW_N(arena, place, x->n + 1u);
  for (uint32_t l = 0; l < x->n; l++) {
    own[l] = from[l].shape && may_take(x->p, x->in, l, from[l]);
    state[l] = placed[l] ? out[l] : from[l];
  }
  const bool *stays = find_direct(x, state, state);
  for (uint64_t t = 0; t < times; t++) {
    place *made = KL_NEW_N(arena, place, x->n + 1u), *to = KL_NEW_N(arena, place, x->n + 1u);
    bool *any = KL_NEW_N(arena, bool, x->n + 1u), *direct = KL_NEW_N(arena, bool, x->n + 1u);
    placing body = kl_place_inside(x->p, x->body, from);
    for (uint32_t l = 0; l < x->n; l++) {
      bool there = placed[l] && (stays[l] || (times - 1 - t) % 2 == 0);
      to[l] = there ? out[l] : from[l];
      any[l] = !there && (!own[l] || x->kept[l]);
    }
    kl_place_aim(&body, to, any, direct);
    for (uint32_t l = 0; l < x->n; l++) any[l] |= !direct[l] && !(t + 1 == times && placed[l]);
    kl_place_run(&body, to, any);
    for (uint32_t l = 0; l < x->n; l++)
      if (from[l].shape) made[l] = kl_place_of(&body, x->body->root, l);
    find_own(&body, made, own);
    kl_place_end(&body);
    from = made;
  }
  for (uint32_t l = 0; l < x->n; l++) {
    if (!placed[l])
      out[l] = from[l];
    else if (!times)
      kl_place_copy(x->p, from[l], out[l], out[l].shape, x->in->span);
  }
}

// --- rounds ---------------------------------------------------------------------------------------------------------

static void run_round(loop *x, const place *from, const place *to) {
  placing body = kl_place_inside(x->p, x->body, from);
  kl_place_aim(&body, to, x->kept, NULL);
  kl_place_run(&body, to, x->kept);
  kl_place_end(&body);
}

static uint32_t count_runs(const kl_comp *c, bool *loops) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    n += c->instr[i].op == KL_OP_FUSION;
    *loops |= c->instr[i].op == KL_OP_WHILE;
  }
  return n;
}

// Leaves that would be copied in each round and need not be, were there another place for them.
static void find_turning(loop *x) {
  placing *p = x->p;
  bool loops = false;
  uint32_t kernels = count_runs(x->body, &loops);
  const bool *direct = find_direct(x, x->state, x->state);
  place *apart = KL_NEW_N(p->k->arena, place, x->n + 1u);
  for (uint32_t l = 0; l < x->n; l++) {
    apart[l] = x->state[l];
    if (direct[l] || x->kept[l]) continue;
    apart[l].argument = (kiln_argument){.kind = KILN_ARGUMENT_SCRATCH, .offset = UINT32_MAX - (uint64_t)l}; // no buffer
  }
  const bool *fine = find_direct(x, x->state, apart);
  x->between = KL_NEW_N(p->k->arena, place, x->n + 1u);
  for (uint32_t l = 0; l < x->n; l++) {
    x->between[l] = x->state[l];
    if (x->kept[l] || !x->state[l].shape) continue;
    bool turns = !direct[l] && fine[l] && !loops && kernels <= MOST_TWICE;
    if (turns) x->between[l] = kl_place_buffer(p, x->state[l].shape);
    x->turning += turns;
    x->direct += direct[l];
    x->moved += !direct[l] && !turns;
  }
}

// Where the condition's result lies for whoever launches.
static kiln_argument test(loop *x, const place *state) {
  kl_kernels *k = x->p->k;
  bool any = true;
  placing c = kl_place_inside(x->p, x->condition, state);
  kl_place_run(&c, state, &any);
  place a = kl_place_of(&c, x->condition->root, 0);
  kl_place_end(&c);
  kl_place_end_step(x->p->cx, k);
  kl_place_read(x->p, &a.argument, (uint32_t)k->list.n);
  return a.argument;
}

static size_t begin_step(loop *x, kiln_step_kind kind) {
  kl_kernels *k = x->p->k;
  kl_place_end_step(x->p->cx, k);
  VEC_PUSH(x->p->cx, &k->steps, ((kiln_step){.kind = kind}));
  return k->steps.n - 1;
}

// Of a step and what is behind it.
static void end_step(loop *x, size_t step) {
  kl_kernels *k = x->p->k;
  kl_place_end_step(x->p->cx, k);
  k->steps.p[step].body = k->steps.n - step - 1 - k->steps.p[step].count;
}

static void end_loop(loop *x, size_t step, uint32_t first) {
  kl_kernels *k = x->p->k;
  end_step(x, step);
  if (k->list.n > first) VEC_PUSH(x->p->cx, &k->loops, ((kl_loop){first, (uint32_t)k->list.n - 1, step, x->in}));
}

static void copy_back(loop *x) {
  for (uint32_t l = 0; l < x->n; l++)
    if (!kl_place_same(x->between[l], x->state[l]))
      kl_place_copy(x->p, x->between[l], x->state[l], x->state[l].shape, x->in->span);
}

// Between two bodies: whether the second is to be done. If not, what is in its other place goes to the one where it is
// looked for; the condition is then false again.
static void run_second(loop *x) {
  kl_kernels *k = x->p->k;
  kiln_argument again = test(x, x->between);
  size_t step = begin_step(x, KILN_STEP_BRANCH), each[2];
  for (int b = 0; b < 2; b++) {
    each[b] = begin_step(x, KILN_STEP_CASE);
    if (b)
      copy_back(x);
    else
      run_round(x, x->between, x->state);
    end_step(x, each[b]);
  }
  end_step(x, step);
  k->steps.p[step].count = 2;
  k->steps.p[step].condition_bytes = 1;
  k->steps.p[step].condition = again;
}

static void run_while(loop *x) {
  kl_kernels *k = x->p->k;
  uint32_t first = (uint32_t)k->list.n;
  size_t step = begin_step(x, KILN_STEP_WHILE);
  kiln_argument again = test(x, x->state);
  k->steps.p[step].count = k->steps.n - step - 1;
  k->steps.p[step].condition_bytes = 1;
  k->steps.p[step].condition = again;
  run_round(x, x->state, x->between);
  if (x->turning) run_second(x);
  end_loop(x, step, first);
  if (again.kind == KILN_ARGUMENT_SLOT) kl_place_read(x->p, &again, (uint32_t)k->list.n);
}

static void run_repeated(loop *x, uint64_t times) {
  kl_kernels *k = x->p->k;
  uint32_t first = (uint32_t)k->list.n;
  size_t step = begin_step(x, KILN_STEP_REPEAT);
  run_round(x, x->state, x->between);
  if (x->turning) run_round(x, x->between, x->state);
  end_loop(x, step, first);
  k->steps.p[step].times = x->turning ? times / 2 : times;
}

// --- the state ------------------------------------------------------------------------------------------------------

static place *make_state(loop *x, uint32_t i, const place *from) {
  placing *p = x->p;
  place *state = KL_NEW_N(p->k->arena, place, x->n + 1u);
  for (uint32_t l = 0; l < x->n; l++) {
    const kl_shape *s = kl_shape_leaf(x->in->shape, l);
    if (!kl_shape_is_array(s)) continue;
    if (x->kept[l])
      state[l] = from[l];
    else if (p->placed[i][l])
      state[l] = p->at[i][l];
    else
      state[l] = may_take(p, x->in, l, from[l]) ? from[l] : kl_place_buffer(p, s);
    state[l].argument.output = false;
  }
  return state;
}

static void copy_to_state(loop *x, const place *from) {
  for (uint32_t l = 0; l < x->n; l++)
    if (from[l].shape && !kl_place_same(from[l], x->state[l]))
      kl_place_copy(x->p, from[l], x->state[l], x->state[l].shape, x->in->span);
}

void kl_place_loop(placing *p, uint32_t i) {
  kl_arena *arena = p->k->arena;
  const kl_instr *in = &p->c->instr[i];
  const kl_comp *called[2] = {&p->k->m->comp[in->called[0]], &p->k->m->comp[in->called[1]]};
  loop x = {.p = p, .in = in, .condition = called[0], .body = called[1], .n = kl_place_leaves(in)};
  trips t = p->trips[i];
  place *from = KL_NEW_N(arena, place, x.n + 1u);
  x.kept = KL_NEW_N(arena, bool, x.n + 1u);
  for (uint32_t l = 0; l < x.n; l++) {
    x.kept[l] = kl_place_keeps(x.body, l);
    if (kl_shape_is_array(kl_shape_leaf(in->shape, l))) from[l] = kl_place_of(p, in->operands[0], l);
  }
  if (t.unrolled) {
    tell(&x, "one after the other", t.n);
    run_all(&x, from, t.n, p->at[i], p->placed[i]);
    return;
  }
  x.state = make_state(&x, i, from);
  memcpy(p->at[i], x.state, x.n * sizeof *x.state);
  find_turning(&x);
  tell(&x, t.known ? "repeated" : "as long as a byte says that is read in each", t.known ? t.n : UINT64_MAX);
  if (!t.known || !x.turning || t.n % 2 == 0)
    copy_to_state(&x, from);
  else
    run_round(&x, from, x.state); // what is left is done in pairs
  if (!t.known)
    run_while(&x);
  else if (t.n > 1 || !x.turning)
    run_repeated(&x, t.n);
}
