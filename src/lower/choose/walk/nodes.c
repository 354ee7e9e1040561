// What is wanted, each once, and what was given for it.

#include "lower/choose/walk/impl.h"

typedef kl_wanted node;
typedef kl_walk walk;

// --- nodes --------------------------------------------------------------------------------------------------------

static uint64_t node_hash(const node *n) {
  uint64_t h = kl_hash(&(uint32_t[5]){n->frame, n->instr, n->leaf, n->guard, n->rank}, 20, 3);
  for (uint32_t i = 0; i < n->rank; i++) h = kl_hash(&n->index[i]->id, sizeof(uint32_t), h);
  return h;
}

static bool node_same(const node *a, const node *b) {
  return a->frame == b->frame && a->instr == b->instr && a->leaf == b->leaf && a->guard == b->guard &&
         a->rank == b->rank && (a->rank == 0 || memcmp(a->index, b->index, a->rank * sizeof(a->index[0])) == 0);
}

static bool is_node(const void *arg, uint32_t id) {
  const kl_sought *x = arg;
  return node_same(x->w->nodes.p[id], x->what);
}

// Is the step made, and to be had where the writer is now?
bool kl_is_made(const walk *w, const node *n) {
  return n->step != KL_NONE && kl_scope_is_open(w->w, n->scope);
}

// Is it what n is, whatever the guards?
static bool stands_for(const walk *w, const node *g, const node *n) {
  if (g->frame != n->frame || g->instr != n->instr || g->leaf != n->leaf || g->rank != n->rank) return false;
  return kl_is_made(w, g) && (n->rank == 0 || memcmp(g->index, n->index, n->rank * sizeof(n->index[0])) == 0);
}

// The node that was given for what n is; KL_NONE: none was. Given at another index only, it cannot be had: somebody
// would have to make it again.
static uint32_t find_given(walk *w, const node *n) {
  bool elsewhere = false;
  for (size_t i = 0; i < w->shared.n; i++)
    if (stands_for(w, w->nodes.p[w->shared.p[i]], n)) return w->shared.p[i];
  for (size_t i = 0; i < w->given.n; i++) {
    const node *g = w->nodes.p[w->given.p[i]];
    if (g->frame != n->frame || g->instr != n->instr) continue;
    if (stands_for(w, g, n)) return w->given.p[i];
    elsewhere = true;
  }
  if (elsewhere) w->elsewhere = n;
  return KL_NONE;
}

uint32_t kl_want(walk *w, uint32_t fr, uint32_t instr, uint32_t leaf, uint32_t guard, uint32_t rank,
                 const kl_aff *const *index) {
  node *n = kl_arena_alloc(w->arena, sizeof *n + rank * sizeof(index[0]));
  n->frame = fr;
  n->instr = instr;
  n->leaf = leaf;
  n->step = KL_NONE;
  n->rank = rank;
  kl_vars vars = 0;
  for (uint32_t i = 0; i < rank; i++) {
    n->index[i] = kl_dom_simplify(w->w->body->domain, index[i]);
    if (!kl_is_sound(n->index[i])) w->unsound = n->index[i];
    if (guard != KL_NONE) vars |= kl_vars_of(w->w->body, n->index[i]);
  }
  // In a called computation an index says nothing of where its operands are wanted, and names stand for variables.
  n->guard = fr || w->nnamed ? guard : kl_guard_needed(&w->w->guards, guard, vars);
  uint32_t given = find_given(w, n);
  if (given != KL_NONE) return given;
  uint32_t id = kl_ids_find(w->cx, &w->node_ids, node_hash(n), is_node, &(kl_sought){w, n});
  if (id == w->nodes.n) VEC_PUSH(w->cx, &w->nodes, n);
  return id;
}

static bool is_frame(const void *arg, uint32_t id) {
  const kl_sought *x = arg;
  const kl_frame *f = x->what, *g = &x->w->frames.p[id];
  return f->parent == g->parent && f->caller == g->caller && f->first_operand == g->first_operand &&
         f->scalars == g->scalars && f->carried == g->carried && f->rank == g->rank &&
         (f->rank == 0 || memcmp(f->index, g->index, f->rank * sizeof *f->index) == 0);
}

uint32_t kl_walk_enter(walk *w, kl_frame f) {
  uint64_t hash = kl_hash(&(uint32_t[3]){f.parent, f.caller, f.first_operand}, 12, 5);
  for (uint32_t i = 0; i < f.rank; i++) hash = kl_hash(&f.index[i]->id, sizeof(uint32_t), hash);
  uint32_t id = kl_ids_find(w->cx, &w->frame_ids, hash, is_frame, &(kl_sought){w, &f});
  if (id == w->frames.n) VEC_PUSH(w->cx, &w->frames, f);
  return id;
}
