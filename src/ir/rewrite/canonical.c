// The order of instructions that does not depend on how they were written down.
#include "ir/rewrite/canonical.h"

#include <stdlib.h>

enum { NOT_YET = UINT32_MAX, ROUNDS = 3, MOST_STEPS = 1 << 24 };

typedef struct member {
  uint64_t colour;
  uint32_t instr;
} member;

// Instructions without an order of their own: by colour, then by place in the text. Those before `at` are listed.
typedef struct set {
  member *p;
  uint32_t n, at;
} set;

typedef struct frame {
  uint32_t instr, next; // the operand to look at; in a trace also, behind the operands, the control predecessor
  set control;          // once the operands are done
} frame;

typedef struct orderer {
  kl_ctx *cx;
  const kl_comp *c;
  const bool *live;
  kl_content_fn *content;
  void *arg;
  kl_arena scratch;
  uint32_t *number; // by instruction: place in the order, or NOT_YET
  uint32_t *order, n;
  uint64_t *colour; // by instruction; NULL until a choice needs it
  uint64_t *traces; // by instruction: of the walk `seen`
  uint32_t *seen;
  uint32_t trace; // number of the walk
  uint64_t steps; // of all traces
  VEC(frame) stack, trace_stack;
} orderer;

static uint64_t mix(uint64_t h, uint64_t v) {
  return kl_hash(&v, sizeof v, h);
}

// --- colours ------------------------------------------------------------------------------------------------------

// Sums do not depend on the order of their terms; each term is mixed first.
static uint64_t colour_above(const orderer *o, const uint64_t *above, uint32_t i) {
  const kl_instr *in = &o->c->instr[i];
  uint64_t h = mix(o->colour[i], i == o->c->root), set = 0;
  for (uint32_t k = 0; k < in->noperands; k++) h = mix(h, above[in->operands[k]]);
  for (uint32_t k = 0; k < in->ncontrol; k++) set += mix(1, above[in->control[k]]);
  return mix(h, set);
}

// One round: what each is computed from, then what uses it.
static void refine(orderer *o, uint64_t *above, uint64_t *below) {
  const kl_comp *c = o->c;
  for (uint32_t i = 0; i < c->ninstr; i++) above[i] = o->live[i] ? colour_above(o, above, i) : 0;
  memset(below, 0, c->ninstr * sizeof *below);
  for (uint32_t i = c->ninstr; i-- > 0;) {
    const kl_instr *in = &c->instr[i];
    if (!o->live[i]) continue;
    o->colour[i] = mix(above[i], below[i]);
    for (uint32_t k = 0; k < in->noperands; k++) below[in->operands[k]] += mix(2 + (uint64_t)k, o->colour[i]);
    for (uint32_t k = 0; k < in->ncontrol; k++) below[in->control[k]] += mix(1, o->colour[i]);
  }
}

static void find_colours(orderer *o) {
  uint32_t n = o->c->ninstr;
  o->colour = KL_NEW_N(&o->scratch, uint64_t, n);
  uint64_t *above = KL_NEW_N(&o->scratch, uint64_t, n), *below = KL_NEW_N(&o->scratch, uint64_t, n);
  for (uint32_t i = 0; i < n; i++) o->colour[i] = o->live[i] ? o->content(o->arg, i) : 0;
  for (int round = 0; round < ROUNDS; round++) refine(o, above, below);
}

// --- choosing from a set ------------------------------------------------------------------------------------------

static uint32_t edge(const kl_instr *in, uint32_t k) {
  return k < in->noperands ? in->operands[k] : in->control[k - in->noperands];
}

static uint64_t trace_of(const orderer *o, uint32_t i) {
  return o->number[i] != NOT_YET ? mix(1, o->number[i]) : o->traces[i];
}

// From what it reads; control predecessors go in as a set.
static uint64_t join_traces(const orderer *o, const kl_instr *in, uint64_t colour) {
  uint64_t h = mix(2, colour), before = 0;
  for (uint32_t k = 0; k < in->noperands; k++) h = mix(h, trace_of(o, in->operands[k]));
  for (uint32_t k = 0; k < in->ncontrol; k++) before += mix(3, trace_of(o, in->control[k]));
  return mix(h, before);
}

// Hashes all that `root` needs: what is listed as its number, the rest as its colour and what it needs. After too many
// steps in all, every trace is the same.
static uint64_t trace_from(orderer *o, uint32_t root) {
  o->trace++;
  VEC_PUSH(o->cx, &o->trace_stack, (frame){.instr = root});
  while (o->trace_stack.n && o->steps < MOST_STEPS) {
    frame *f = &o->trace_stack.p[o->trace_stack.n - 1];
    uint32_t i = f->instr;
    const kl_instr *in = &o->c->instr[i];
    o->steps++;
    if (f->next == in->noperands + in->ncontrol) {
      o->traces[i] = join_traces(o, in, o->colour[i]);
      o->seen[i] = o->trace;
      o->trace_stack.n--;
      continue;
    }
    uint32_t to = edge(in, f->next++);
    if (o->number[to] == NOT_YET && o->seen[to] != o->trace) VEC_PUSH(o->cx, &o->trace_stack, (frame){.instr = to});
  }
  o->trace_stack.n = 0;
  return o->steps < MOST_STEPS ? o->traces[root] : 0;
}

static int compare_members(const void *a, const void *b) {
  const member *x = a, *y = b;
  if (x->colour != y->colour) return x->colour < y->colour ? -1 : 1;
  return x->instr < y->instr ? -1 : x->instr > y->instr;
}

// Of the instructions, those not listed yet.
static set make_set(orderer *o, const uint32_t *list, uint32_t n) {
  set s = {0};
  for (uint32_t i = 0; i < n; i++) s.n += o->number[list[i]] == NOT_YET;
  if (s.n == 0) return s;
  if (s.n > 1 && !o->colour) find_colours(o);
  s.p = KL_NEW_N(&o->scratch, member, s.n);
  for (uint32_t i = 0, k = 0; i < n; i++)
    if (o->number[list[i]] == NOT_YET) s.p[k++] = (member){o->colour ? o->colour[list[i]] : 0, list[i]};
  if (s.n > 1) qsort(s.p, s.n, sizeof *s.p, compare_members);
  return s;
}

// The first of the members that are not listed yet; NOT_YET if there is none.
static uint32_t choose(orderer *o, set *s) {
  while (s->at < s->n && o->number[s->p[s->at].instr] != NOT_YET) s->at++;
  if (s->at == s->n) return NOT_YET;
  uint32_t best = s->p[s->at].instr, i = s->at + 1;
  if (i == s->n || s->p[i].colour != s->p[s->at].colour) return best;
  uint64_t least = trace_from(o, best);
  for (; i < s->n && s->p[i].colour == s->p[s->at].colour && o->steps++ < MOST_STEPS; i++) {
    if (o->number[s->p[i].instr] != NOT_YET) continue;
    uint64_t trace = trace_from(o, s->p[i].instr);
    if (trace >= least) continue;
    best = s->p[i].instr;
    least = trace;
  }
  return best;
}

// --- the walk -----------------------------------------------------------------------------------------------------

static void place(orderer *o, uint32_t instr) {
  o->number[instr] = o->n;
  o->order[o->n++] = instr;
}

static void walk(orderer *o, uint32_t root) {
  if (o->number[root] != NOT_YET) return;
  VEC_PUSH(o->cx, &o->stack, (frame){.instr = root});
  while (o->stack.n) {
    frame *f = &o->stack.p[o->stack.n - 1];
    const kl_instr *in = &o->c->instr[f->instr];
    while (f->next < in->noperands && o->number[in->operands[f->next]] != NOT_YET) f->next++;
    if (f->next == in->noperands) {
      f->next++;
      f->control = make_set(o, in->control, in->ncontrol);
    }
    uint32_t to = f->next < in->noperands ? in->operands[f->next] : choose(o, &f->control);
    if (to == NOT_YET) {
      place(o, f->instr);
      o->stack.n--;
    } else {
      VEC_PUSH(o->cx, &o->stack, (frame){.instr = to});
    }
  }
}

// What is live, but not for the root's sake: among it are the instructions with an effect, which alone begin walks.
static void walk_effects(orderer *o) {
  const kl_comp *c = o->c;
  VEC(uint32_t) roots = {0};
  bool *is_needed = KL_NEW_N(&o->scratch, bool, c->ninstr);
  for (uint32_t i = c->ninstr; i-- > 0;) {
    if (!o->live[i] || o->number[i] != NOT_YET) continue;
    if (!is_needed[i]) VEC_PUSH(o->cx, &roots, i);
    for (uint32_t k = 0; k < c->instr[i].noperands + c->instr[i].ncontrol; k++) is_needed[edge(&c->instr[i], k)] = true;
  }
  set s = make_set(o, roots.p, (uint32_t)roots.n);
  for (uint32_t next; (next = choose(o, &s)) != NOT_YET;) walk(o, next);
  VEC_FREE(o->cx, &roots);
}

uint32_t kl_canonical_order(kl_ctx *cx, const kl_comp *c, const bool *live, kl_content_fn *content, void *arg,
                            uint32_t *order) {
  orderer o = {.cx = cx, .c = c, .live = live, .content = content, .arg = arg, .order = order};
  kl_arena_init(&o.scratch, cx);
  o.number = KL_NEW_N(&o.scratch, uint32_t, c->ninstr);
  o.seen = KL_NEW_N(&o.scratch, uint32_t, c->ninstr);
  o.traces = KL_NEW_N(&o.scratch, uint64_t, c->ninstr);
  for (uint32_t i = 0; i < c->ninstr; i++) o.number[i] = NOT_YET;
  for (uint32_t i = 0; i < c->nparams; i++) place(&o, c->params[i]);
  walk(&o, c->root);
  walk_effects(&o);
  VEC_FREE(cx, &o.stack);
  VEC_FREE(cx, &o.trace_stack);
  kl_arena_free(&o.scratch);
  return o.n;
}
