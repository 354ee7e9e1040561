// Loops as their bodies, one after the other: what is made element by element all along is made in one kernel then,
// with what is around the loop.

#include "ir/rewrite/unroll.h"

#include "ir/rewrite/trips.h"

// Instructions that a loop becomes.
enum { MOST_INSTRUCTIONS = 512 };

typedef struct unroller {
  const kiln_module *m; // as it was
  kiln_module *made;    // a fork; NULL: nothing to do so far
  kl_ctx *cx;
  kl_emitter e;
  kl_arena scratch;
  bool (*wanted)(const kl_instr *);
  bool *has;      // by computation: it has an op that is asked for, or calls one that has, once loops are gone
  uint64_t *size; // by computation: instructions of it and what it calls
  kl_sb *why;
} unroller;

static uint64_t at_most(uint64_t v) {
  return v < UINT32_MAX ? v : UINT32_MAX;
}

static bool is_unrolled(const unroller *u, const kl_comp *c, const kl_instr *in, uint64_t *times) {
  if (in->op != KL_OP_WHILE || u->has[in->called[0]] || u->has[in->called[1]]) return false;
  if (!kl_trip_count(u->m, c, in, times)) return false;
  return *times <= MOST_INSTRUCTIONS && *times * u->size[in->called[1]] <= MOST_INSTRUCTIONS;
}

static uint32_t emit_bodies(unroller *u, const kl_instr *in, uint64_t times, uint32_t value) {
  const kl_comp *body = &u->m->comp[in->called[1]];
  for (uint64_t t = 0; t < times; t++) {
    kl_instr call = {.op = KL_OP_CALL, .name = in->name, .shape = kl_root(body)->shape, .more = &kl_no_more};
    call.span = in->span;
    call.noperands = call.ncalled = call.given = 1;
    call.operands = kl_arena_dup(&u->made->arena, &value, sizeof value);
    call.called = kl_arena_dup(&u->made->arena, &in->called[1], sizeof in->called[1]);
    value = kl_emit(&u->e, &call);
  }
  return kl_emit_in_layout(&u->e, value, in->shape);
}

static void tell(const unroller *u, const kl_instr *in, uint64_t times) {
  if (!u->why) return;
  kl_sb_puts(u->why, "loop ");
  kl_sb_put(u->why, kl_symbol_text(&u->m->names, in->name));
  kl_sbf(u->why, ": %llu rounds, inside of kernels\n", (unsigned long long)times);
}

static const uint32_t *map_all(unroller *u, uint32_t n, const uint32_t *from, const uint32_t *value) {
  uint32_t *to = KL_NEW_N(&u->made->arena, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) to[i] = value[from[i]];
  return to;
}

static void rewrite(unroller *u, uint32_t comp) {
  const kl_comp *c = &u->m->comp[comp];
  uint32_t *value = KL_NEW_N(&u->scratch, uint32_t, c->ninstr + 1);
  uint64_t times;
  if (!u->made) u->e.m = u->made = kl_fork(u->cx, u->m);
  kl_emit_begin(&u->e);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    kl_instr in = c->instr[i];
    if (is_unrolled(u, c, &in, &times)) {
      tell(u, &in, times);
      value[i] = emit_bodies(u, &in, times, value[in.operands[0]]);
      continue;
    }
    in.operands = map_all(u, in.noperands, in.operands, value);
    in.control = map_all(u, in.ncontrol, in.control, value);
    value[i] = kl_emit(&u->e, &in);
  }
  kl_emit_end(&u->e, &u->made->comp[comp], value[c->root]);
}

// Callees come before their callers.
static void look(unroller *u, uint32_t comp) {
  const kl_comp *c = &u->m->comp[comp];
  uint64_t times;
  bool any = false;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    bool gone = is_unrolled(u, c, in, &times);
    any |= gone;
    u->has[comp] |= !gone && u->wanted(in);
    u->size[comp] = at_most(u->size[comp] + 1);
    for (uint32_t k = gone; k < in->ncalled; k++) {
      u->has[comp] |= u->has[in->called[k]];
      u->size[comp] = at_most(u->size[comp] + (gone ? times : 1) * u->size[in->called[k]]);
    }
  }
  if (any) rewrite(u, comp);
}

kiln_status kl_module_unroll(kl_ctx *cx, const kiln_module *m, bool (*wanted)(const kl_instr *), kl_sb *why,
                             kiln_module **out) {
  unroller u = {.m = m, .cx = cx, .wanted = wanted, .why = why};
  kl_arena_init(&u.scratch, cx);
  u.has = KL_NEW_N(&u.scratch, bool, m->ncomp + 1);
  u.size = KL_NEW_N(&u.scratch, uint64_t, m->ncomp + 1);
  *out = NULL;
  for (uint32_t i = 0; i < m->ncomp; i++) look(&u, i);
  if (u.made) kl_emit_free(&u.e);
  kl_arena_free(&u.scratch);
  return u.made ? kl_finish_fork(cx, u.made, out) : KILN_OK;
}
