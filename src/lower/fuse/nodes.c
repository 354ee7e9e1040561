// Nodes, and which need which.
//
// A node that has become part of another is known by its old number: `into` leads to what it is now, by paths that
// become short as they are gone.

#include "lower/fuse/impl.h"

// Nodes that are looked at for one question: what is further away counts as needed.
enum { MOST_SEARCHED = 512 };

uint32_t kl_fuse_node(kl_fuser *f, uint32_t instr, bool stays) {
  uint32_t n = (uint32_t)f->nodes.n;
  kl_maker node = {.instr = instr, .stays = stays, .next_at = KL_AT_FIRST_FREE, .into = n};
  node.full = f->c->instr[instr].shape;
  VEC_PUSH(f->cx, &f->nodes, node);
  return n;
}

uint32_t kl_fuse_number(kl_fuser *f, uint32_t node) {
  kl_maker *p = f->nodes.p;
  while (p[node].into != node) node = p[node].into = p[p[node].into].into;
  return node;
}

kl_maker *kl_fuse_at(kl_fuser *f, uint32_t node) {
  return &f->nodes.p[kl_fuse_number(f, node)];
}

void kl_fuse_need(kl_fuser *f, uint32_t node, uint32_t what) {
  kl_maker *n = kl_fuse_at(f, node);
  what = kl_fuse_number(f, what);
  if (&f->nodes.p[what] == n) return;
  if (n->needs.n && n->needs.p[n->needs.n - 1] == what) return;
  VEC_PUSH(f->cx, &n->needs, what);
}

// Room for a mark of every node.
static void begin_search(kl_fuser *f) {
  if (f->nseen < f->nodes.n) {
    uint32_t n = (uint32_t)f->nodes.n * 2 + 64;
    f->seen = KL_NEW_N(f->arena, uint32_t, n);
    f->nseen = n;
    f->search = 0;
  }
  f->search++;
  f->stack.n = 0;
}

bool kl_fuse_needs(kl_fuser *f, uint32_t node, uint32_t what) {
  uint32_t looked = 0;
  what = kl_fuse_number(f, what);
  begin_search(f);
  VEC_PUSH(f->cx, &f->stack, kl_fuse_number(f, node));
  while (f->stack.n) {
    uint32_t at = f->stack.p[--f->stack.n];
    const kl_maker *n = &f->nodes.p[at];
    if (f->seen[at] == f->search) continue;
    f->seen[at] = f->search;
    for (size_t i = 0; i < n->needs.n; i++) {
      uint32_t next = kl_fuse_number(f, n->needs.p[i]);
      if (next == what || ++looked > MOST_SEARCHED) return true;
      if (next != at && f->seen[next] != f->search) VEC_PUSH(f->cx, &f->stack, next);
    }
  }
  return false;
}

bool kl_fuse_join(kl_fuser *f, uint32_t a, uint32_t b) {
  a = kl_fuse_number(f, a);
  b = kl_fuse_number(f, b);
  if (a == b) return true;
  if (kl_fuse_needs(f, a, b) || kl_fuse_needs(f, b, a)) return false;
  kl_maker *to = &f->nodes.p[a], *from = &f->nodes.p[b];
  for (size_t i = 0; i < from->needs.n; i++) VEC_PUSH(f->cx, &to->needs, from->needs.p[i]);
  VEC_FREE(f->cx, &from->needs);
  from->into = a;
  to->size += from->size;
  to->results += from->results;
  return true;
}
