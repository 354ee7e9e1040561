// Blocks of a function's instructions, and which of them every way to another one leads through: immediate dominators,
// as Lengauer and Tarjan find them, in almost linear time and without recursion, as functions may have very many
// blocks.

#include "sim/decode/blocks.h"

typedef struct edge {
  uint32_t from, to;
} edge;

typedef struct graph {
  kl_ctx *cx;
  const kl_ptx_func *f;
  kl_blocks *out;
  VEC(edge) edges;
  uint32_t *first_out, *to;  // successors of block b: to[first_out[b]] up to the next one's
  uint32_t *first_in, *from; // predecessors, likewise
  uint32_t *order, *number;  // blocks in the order of a walk in depth; their place in it + 1, 0: not reached
  uint32_t *parent, *semi, *label, *ancestor, *dominator, *bucket, *next; // by place in it
  uint32_t *stack;
  uint32_t reached;
} graph;

// --- blocks and edges ---------------------------------------------------------------------------------------------

static bool ends_block(const kl_ptx_instr *i) {
  static const char *const names[] = {"bra", "brx", "ret", "exit", "trap"};
  for (size_t k = 0; k < KL_COUNT(names); k++)
    if (kl_str_is(i->opcode, names[k])) return true;
  return false;
}

static void number_blocks(graph *g) {
  const kl_ptx_func *f = g->f;
  uint32_t *of = g->out->of, n = 0;
  for (uint32_t k = 0; k < f->nlabels; k++)
    if (f->labels[k].at < f->ninstrs) of[f->labels[k].at] = 1;
  for (uint32_t k = 0; k < f->ninstrs; k++) {
    n += k && (of[k] || ends_block(&f->instrs[k - 1]));
    of[k] = n;
  }
  g->out->n = n + 1;
}

static void add_edge(graph *g, uint32_t from, uint32_t label) {
  uint32_t at = g->f->labels[label].at;
  if (at < g->f->ninstrs) VEC_PUSH(g->cx, &g->edges, ((edge){from, g->out->of[at]}));
}

static void add_edges(graph *g, uint32_t k) {
  const kl_ptx_instr *i = &g->f->instrs[k];
  uint32_t from = g->out->of[k];
  for (uint32_t n = 0; n < i->noperands; n++) {
    const kl_ptx_operand *o = &i->operands[n];
    if (o->kind == KL_PTX_LABEL) add_edge(g, from, o->index);
    if (o->kind != KL_PTX_TABLE || g->f->tables[o->index].kind != KL_PTX_BRANCHTARGETS) continue;
    for (uint32_t t = 0; t < g->f->tables[o->index].n; t++) add_edge(g, from, g->f->tables[o->index].targets[t]);
  }
}

static void find_edges(graph *g) {
  for (uint32_t k = 0; k < g->f->ninstrs; k++) {
    bool last = k + 1 == g->f->ninstrs, ends = ends_block(&g->f->instrs[k]);
    if (ends) add_edges(g, k);
    if (last || g->out->of[k + 1] == g->out->of[k] || (ends && !g->f->instrs[k].guard)) continue;
    VEC_PUSH(g->cx, &g->edges, ((edge){g->out->of[k], g->out->of[k + 1]}));
  }
}

// Ends of edges by the block at their other end.
static void sort_edges(graph *g, uint32_t *first, uint32_t *ends, bool in) {
  uint32_t n = g->out->n;
  for (size_t k = 0; k < g->edges.n; k++) first[(in ? g->edges.p[k].to : g->edges.p[k].from) + 1]++;
  for (uint32_t b = 0; b < n; b++) first[b + 1] += first[b];
  for (size_t k = g->edges.n; k-- > 0;) { // fills from behind, which `stack` counts
    edge e = g->edges.p[k];
    uint32_t b = in ? e.to : e.from;
    ends[first[b] + g->stack[b]++] = in ? e.from : e.to;
  }
  memset(g->stack, 0, n * sizeof *g->stack);
}

// --- dominators ---------------------------------------------------------------------------------------------------

// Walks in depth from the first block; a block's place is taken when it is first come to.
static void walk(graph *g) {
  uint32_t depth = 0;
  uint32_t *at = g->next; // the successor of a block on the stack that comes next
  g->stack[depth++] = 0;
  g->number[0] = ++g->reached;
  while (depth) {
    uint32_t b = g->stack[depth - 1];
    if (at[b] == g->first_out[b + 1] - g->first_out[b]) {
      depth--;
      continue;
    }
    uint32_t to = g->to[g->first_out[b] + at[b]++];
    if (g->number[to]) continue;
    g->parent[g->reached] = g->number[b] - 1;
    g->number[to] = ++g->reached;
    g->stack[depth++] = to;
  }
  for (uint32_t b = 0; b < g->out->n; b++)
    if (g->number[b]) g->order[g->number[b] - 1] = b;
  memset(g->next, 0, g->out->n * sizeof *g->next);
}

// The block with the least semidominator between v and the root of its tree; makes the way there short.
static uint32_t least(graph *g, uint32_t v) {
  uint32_t depth = 0;
  if (g->ancestor[v] == UINT32_MAX) return v;
  for (uint32_t u = v; g->ancestor[g->ancestor[u]] != UINT32_MAX; u = g->ancestor[u]) g->stack[depth++] = u;
  while (depth) {
    uint32_t u = g->stack[--depth], a = g->ancestor[u];
    if (g->semi[g->label[a]] < g->semi[g->label[u]]) g->label[u] = g->label[a];
    g->ancestor[u] = g->ancestor[a];
  }
  return g->label[v];
}

static void find_dominators(graph *g) {
  for (uint32_t v = 0; v < g->reached; v++) {
    g->semi[v] = g->label[v] = v;
    g->ancestor[v] = g->bucket[v] = UINT32_MAX;
  }
  for (uint32_t v = g->reached; v-- > 1;) {
    uint32_t b = g->order[v], p = g->parent[v];
    for (uint32_t k = g->first_in[b]; k < g->first_in[b + 1]; k++) {
      if (!g->number[g->from[k]]) continue;
      uint32_t u = least(g, g->number[g->from[k]] - 1);
      if (g->semi[u] < g->semi[v]) g->semi[v] = g->semi[u];
    }
    g->next[v] = g->bucket[g->semi[v]];
    g->bucket[g->semi[v]] = v;
    g->ancestor[v] = p;
    for (uint32_t w = g->bucket[p], after; w != UINT32_MAX; w = after) {
      uint32_t u = least(g, w);
      after = g->next[w];
      g->dominator[w] = g->semi[u] < g->semi[w] ? u : p;
    }
    g->bucket[p] = UINT32_MAX;
  }
  for (uint32_t v = 1; v < g->reached; v++)
    if (g->dominator[v] != g->semi[v]) g->dominator[v] = g->dominator[g->dominator[v]];
}

// Numbers blocks so that those that one dominates follow it: sizes of subtrees first, as children come after parents.
static void number_tree(graph *g) {
  uint32_t *size = g->semi, *used = g->label;
  for (uint32_t v = 0; v < g->reached; v++) size[v] = 1, used[v] = 1;
  for (uint32_t v = g->reached; v-- > 1;) size[g->dominator[v]] += size[v];
  for (uint32_t v = 0; v < g->reached; v++) {
    uint32_t b = g->order[v], begin = 0;
    if (v) {
      begin = g->out->begin[g->order[g->dominator[v]]] + used[g->dominator[v]];
      used[g->dominator[v]] += size[v];
    }
    g->out->begin[b] = begin;
    g->out->end[b] = begin + size[v];
  }
}

// --- all of it ----------------------------------------------------------------------------------------------------

bool kl_dominates(const kl_blocks *b, uint32_t a, uint32_t of) {
  if (a == of || b->end[of] == 0) return true; // nothing leads to what is not reached
  return b->begin[a] <= b->begin[of] && b->begin[of] < b->end[a];
}

bool kl_blocks_find(kl_ctx *cx, const kl_ptx_func *f, kl_blocks *out) {
  graph g = {.cx = cx, .f = f, .out = out};
  *out = (kl_blocks){.bytes = (3 * (size_t)f->ninstrs + 4) * sizeof *out->of};
  if (!(out->of = kl_try_alloc(cx, out->bytes))) return false;
  number_blocks(&g);
  size_t n = out->n;
  out->begin = out->of + f->ninstrs;
  out->end = out->begin + n;
  if (n == 1) {
    out->end[0] = 1;
    return true;
  }
  find_edges(&g);
  size_t words = 13 * n + 4 + 2 * g.edges.n;
  uint32_t *all = kl_try_alloc(cx, words * sizeof *all);
  if (all) {
    uint32_t **arrays[] = {&g.order,     &g.number, &g.parent, &g.semi,  &g.label,    &g.ancestor,
                           &g.dominator, &g.bucket, &g.next,   &g.stack, &g.first_in, &g.first_out};
    for (size_t k = 0; k < KL_COUNT(arrays); k++) *arrays[k] = all + k * n + (k == 11);
    g.to = all + 12 * n + 2;
    g.from = g.to + g.edges.n;
    sort_edges(&g, g.first_out, g.to, false);
    sort_edges(&g, g.first_in, g.from, true);
    walk(&g);
    find_dominators(&g);
    number_tree(&g);
  }
  kl_free(cx, all, all ? words * sizeof *all : 0);
  VEC_FREE(cx, &g.edges);
  return all != NULL;
}

// --- registers ----------------------------------------------------------------------------------------------------

static void each_of(const kl_ptx_operand *o, bool write, kl_register_fn *f, void *with) {
  if (o->kind == KL_PTX_REG) f(with, o->index, write);
  for (uint32_t k = 0; k < o->nitems; k++) each_of(&o->items[k], write && o->kind != KL_PTX_ADDRESS, f, with);
}

// Instructions whose first operand is read; others write it.
static bool reads_first(kl_str opcode) {
  static const char *const names[] = {"st",  "red",          "bar",           "barrier",   "bra",
                                      "brx", "call",         "prefetch",      "prefetchu", "nanosleep",
                                      "cp",  "stackrestore", "applypriority", "discard",   "stmatrix"};
  for (size_t k = 0; k < KL_COUNT(names); k++)
    if (kl_str_is(opcode, names[k])) return true;
  return false;
}

void kl_each_register(const kl_ptx_instr *i, kl_register_fn *f, void *with) {
  bool writes = i->noperands && !reads_first(i->opcode);
  if (i->guard) f(with, i->guard - 1, false);
  for (uint32_t k = writes ? 1 : 0; k < i->noperands; k++) each_of(&i->operands[k], false, f, with);
  if (writes) each_of(&i->operands[0], true, f, with);
}
