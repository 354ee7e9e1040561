// Plans that are broken in one place: each sync, guard and distance in turn. The interpreter must notice; and of what a
// plan claims about itself, or rounds of launches about themselves, the verifier. Of the places that the interpreter is
// to notice one in four is tried, all by KILN_TEST_SHARE=4.
#include "interpret/interpret.h"
#include "lower/choose/choose.h"
#include "lower/plan/rounds.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>

static kl_ctx *cx;
static kl_arena arena;

static void open_context(void) {
  cx = kiln_context_create(NULL);
  kl_arena_init(&arena, cx);
}
static void close_context(void) {
  kl_arena_free(&arena);
  kiln_context_destroy(&cx);
}

// --- breaking --------------------------------------------------------------------------------------------------------

typedef enum kind {
  SYNC,     // a sync is not there
  GUARD,    // a guard always holds
  KEEP,     // all of a store's elements are stored
  DISTANCE, // a shuffle takes the value of another lane, an exchange another lane's
  TAKE,     // another copy is taken
  LANES,    // an access counts lanes backwards
  PLACE,    // an access is one element further on
  CHOOSE,   // the first two choices change places
  OPERAND,  // an operation takes its first operand twice
  CARRY,    // what is carried stays as it is
  ARRIVAL,  // blocks do not wait to be the last
  KINDS,
  // Claims: what is computed stays right, as long as nobody believes them.
  STEP_VARS = KINDS, // a step depends on nothing
  SYMBOL_VARS,       // a symbol depends on nothing
  SYMBOL_GROUPS,     // a symbol is the same for all values of a variable
  SYMBOL_ALONE,      // a symbol is no longer said to be the same for several values, which accesses rely on
  GUARD_GROUPS,      // a guard is the same for all values
  ALIGN,             // an access is aligned to twice as much
  ALL_KINDS
} kind;

static const char *const names[ALL_KINDS] = {"sync",
                                             "guard",
                                             "keep",
                                             "distance",
                                             "take",
                                             "lanes",
                                             "place",
                                             "choose",
                                             "operand",
                                             "carry",
                                             "arrival",
                                             "variables of a step",
                                             "variables of a symbol",
                                             "groups of a symbol",
                                             "a symbol without groups",
                                             "groups of a guard",
                                             "alignment"};

typedef struct breaking {
  kl_plan *p;
  kl_body *b;
  kl_step *steps;
  kl_store *stores;
  kl_guard *guards;
  kind kind;
  uint32_t left; // places to go
} breaking;

static void *copy_of(const void *p, size_t n, size_t size) {
  void *copy = kl_arena_alloc_n(&arena, n + 1, size);
  if (n) memcpy(copy, p, n * size);
  return copy;
}

// Is this the place?
static bool here(breaking *x) {
  return x->left-- == 0;
}

// The sequence with its nest copied, or without the sync that is dropped; *found: it was there.
static kl_seq copy_seq(breaking *x, const kl_seq *s, bool *found) {
  kl_node *nodes = copy_of(s->nodes, s->n, sizeof *s->nodes);
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    nodes[n] = s->nodes[i];
    if (s->nodes[i].kind == KL_NODE_SYNC && x->kind == SYNC && here(x)) {
      *found = true;
      continue;
    }
    if (s->nodes[i].nest) {
      kl_nest *nest = kl_arena_dup(&arena, s->nodes[i].nest, sizeof *nest);
      kl_carried *carried = copy_of(nest->carried, nest->ncarried, sizeof *nest->carried);
      for (uint32_t k = 0; k < nest->ncarried; k++) {
        if (x->kind != CARRY || !here(x)) continue;
        carried[k].next = carried[k].value;
        *found = true;
      }
      nest->carried = carried;
      if (s->nodes[i].kind == KL_NODE_LAST && x->kind == ARRIVAL && here(x)) {
        nest->arrival.of = 0;
        *found = true;
      }
      if (nodes[n].kind == KL_NODE_BEFORE && (x->kind == DISTANCE || x->kind == ARRIVAL) && here(x)) {
        while (x->b->vars[nodes[n].index].binding == KL_BIND_BLOCK) nodes[n].index++; // along what are no blocks
        *found = true;
      }
      nest->inside = copy_seq(x, &nest->inside, found);
      nodes[n].nest = nest;
    }
    n++;
  }
  return (kl_seq){n, nodes};
}

static void move(breaking *x, kl_access *a, const kl_aff *(*to)(breaking *x, const kl_aff *e)) {
  const kl_aff **base = kl_arena_dup(&arena, a->base, a->nchunks * sizeof *base);
  for (uint32_t c = 0; c < a->nchunks; c++) base[c] = to(x, base[c]);
  a->base = base;
  a->element = to(x, a->element);
}

static const kl_aff *further(breaking *x, const kl_aff *e) {
  return kl_aff_addc(x->p->affs, e, 1);
}

static const kl_aff *backwards(breaking *x, const kl_aff *e) {
  const kl_aff *to[KL_MAX_VARS];
  for (uint32_t v = 0; v < x->b->nvars; v++) {
    to[v] = kl_aff_dim(x->p->affs, v);
    if (x->b->vars[v].binding == KL_BIND_LANE || x->b->vars[v].binding == KL_BIND_WARP)
      to[v] = kl_aff_addmul(x->p->affs, kl_aff_const(x->p->affs, x->b->vars[v].extent - 1), to[v], -1);
  }
  kl_aff_replace(x->p->affs, &(kl_aff_subst){.to = {to}, .n = {x->b->nvars}}, &e, 1, &e);
  return e;
}

static bool break_access(breaking *x, kl_access *a) {
  bool changes = x->kind == PLACE;
  for (uint32_t c = 0; x->kind == LANES && c < a->nchunks; c++)
    changes = changes || backwards(x, a->base[c]) != a->base[c];
  if (!changes || !here(x)) return false;
  move(x, a, x->kind == PLACE ? further : backwards);
  return true;
}

static bool break_step(breaking *x, kl_step *s) {
  uint32_t *operands = copy_of(s->operands, s->noperands, sizeof *s->operands);
  if (s->kind == KL_STEP_LOAD) return break_access(x, &s->access);
  s->operands = operands;
  switch (x->kind) {
  case DISTANCE:
    for (uint32_t v = 0; s->kind == KL_STEP_EXCHANGE && v < x->b->nvars; v++) {
      if (x->b->vars[v].binding != KL_BIND_LANE || x->b->vars[v].extent != 2 || v == s->lane || !here(x)) continue;
      s->lane = v;
      return true;
    }
    if (s->kind == KL_STEP_ANY && here(x)) return s->kind = KL_STEP_SHUFFLE, s->distance = 1, true;
    if ((s->kind != KL_STEP_SHUFFLE && s->kind != KL_STEP_ROTATE) || !here(x)) return false;
    s->distance = s->distance == 1 ? 2 : s->distance / 2;
    return true;
  case TAKE:
    if (s->kind != KL_STEP_TAKE || !here(x)) return false;
    s->distance = (s->distance + 1) % (uint32_t)x->b->vars[s->var].extent;
    return true;
  case CHOOSE:
    if (s->kind != KL_STEP_CHOOSE || !here(x)) return false;
    operands[0] = s->operands[1], operands[1] = s->operands[0];
    return true;
  case OPERAND:
    if (s->kind != KL_STEP_OP || s->noperands < 2 || operands[0] == operands[1] || !here(x)) return false;
    operands[1] = operands[0];
    return true;
  default: return false;
  }
}

static bool branches_on(const kl_seq *s, uint32_t guard) {
  bool found = false;
  for (uint32_t i = 0; i < s->n && !found; i++) {
    const kl_node *n = &s->nodes[i];
    found = (n->kind == KL_NODE_IF && n->index == guard) || (n->nest && branches_on(&n->nest->inside, guard));
  }
  return found;
}

// Does anything ask for the guard itself?
static bool is_used(const kl_body *b, uint32_t guard) {
  bool used = branches_on(&b->root, guard);
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    used = used || (s->kind == KL_STEP_LOAD && s->access.guard == guard);
    for (uint32_t k = 0; s->kind == KL_STEP_CHOOSE && k + 1 < s->noperands; k++) used = used || s->guards[k] == guard;
  }
  for (uint32_t i = 0; i < b->nstores; i++) used = used || b->stores[i].keep == guard;
  for (uint32_t i = 0; i < b->nguards; i++) used = used || (b->guards[i].outer == guard && is_used(b, i));
  return used;
}

// Claims that what is the same for fewer values of an inner variable is for all of them.
static bool break_groups(breaking *x, kl_vars vars, uint16_t *uniform) {
  for (uint32_t v = 0; v < x->b->nvars; v++) {
    if (!kl_has_var(vars & kl_inner(x->b), v) || uniform[v] >= x->b->vars[v].extent || !here(x)) continue;
    uniform[v] = (uint16_t)x->b->vars[v].extent;
    return true;
  }
  return false;
}

static bool break_claim(breaking *x, kl_body *b) {
  kl_symbol *symbols = copy_of(b->symbols, b->nsymbols, sizeof *b->symbols);
  bool found = false;
  b->symbols = symbols;
  for (uint32_t i = 0; i < b->nsteps && x->kind == STEP_VARS && !found; i++) {
    found = x->steps[i].vars && here(x);
    if (found) x->steps[i].vars = 0;
  }
  for (uint32_t i = 0; i < b->nsymbols && x->kind == SYMBOL_VARS && !found; i++) {
    found = symbols[i].vars && here(x);
    if (found) symbols[i].vars = 0;
  }
  for (uint32_t i = 0; i < b->nsymbols && x->kind == SYMBOL_GROUPS && !found; i++)
    found = break_groups(x, symbols[i].vars, symbols[i].uniform);
  for (uint32_t i = 0; i < b->nsymbols && x->kind == SYMBOL_ALONE && !found; i++)
    for (uint32_t v = 0; v < b->nvars && !found; v++) {
      found = symbols[i].uniform[v] > 1 && here(x);
      if (found) symbols[i].uniform[v] = 1;
    }
  for (uint32_t i = 0; i < b->nguards && x->kind == GUARD_GROUPS && !found; i++)
    found = break_groups(x, kl_vars_of(b, b->guards[i].expr), x->guards[i].uniform);
  for (uint32_t i = 0; i < b->nstores && x->kind == ALIGN && !found; i++) {
    found = x->stores[i].access.align && here(x);
    if (found) x->stores[i].access.align *= 2;
  }
  return found;
}

// Breaks place number x->left of its kind in a body; false if there are not so many.
static bool break_body(breaking *x, kl_body *b) {
  bool found = false;
  x->b = b;
  b->steps = x->steps = copy_of(b->steps, b->nsteps, sizeof *b->steps);
  b->stores = x->stores = copy_of(b->stores, b->nstores, sizeof *b->stores);
  b->guards = x->guards = copy_of(b->guards, b->nguards, sizeof *b->guards);
  b->root = copy_seq(x, &b->root, &found);
  found = found || break_claim(x, b);
  for (uint32_t i = 0; i < b->nsteps && !found; i++) found = break_step(x, &x->steps[i]);
  for (uint32_t i = 0; i < b->nstores && !found; i++) {
    found = break_access(x, &x->stores[i].access);
    if (x->kind != KEEP || x->stores[i].keep == KL_NONE || !here(x)) continue;
    x->stores[i].keep = KL_NONE;
    found = true;
  }
  for (uint32_t i = 0; i < b->nguards && !found; i++) {
    if (x->kind != GUARD || !is_used(b, i) || !here(x)) continue;
    x->guards[i].lo = INT64_MIN, x->guards[i].hi = INT64_MAX;
    found = true;
  }
  return found;
}

// A plan with one thing broken, or NULL.
static kl_plan *broken_plan(kl_plan *p, kind k, uint32_t place) {
  kl_plan *q = kl_arena_dup(&arena, p, sizeof *q);
  breaking x = {.p = q, .kind = k, .left = place};
  q->parts = kl_arena_dup(&arena, p->parts, p->nparts * sizeof *p->parts);
  for (uint32_t i = 0; i < p->nparts; i++) {
    if (q->parts[i].main.nsteps && break_body(&x, &q->parts[i].main)) return q;
    if (q->parts[i].tail.nsteps && break_body(&x, &q->parts[i].tail)) return q;
  }
  return NULL;
}

// --- plans -----------------------------------------------------------------------------------------------------------

// Kinds that must be noticed in all places, on a GPU and on the host. Where elements are absent, what is made of them
// may be made of others; that a value is there is known of all lanes; and on the host a lane reads what it has put
// itself.
enum {
  ALL = (1 << KINDS) - 1,
  ABSENT = ALL & ~(1 << TAKE | 1 << OPERAND),
  PRESENCE = ABSENT & ~(1 << DISTANCE | 1 << CHOOSE | 1 << GUARD),
  NO_SYNC = ABSENT & ~(1 << SYNC),
  ONE_GUARD = ALL & ~(1 << GUARD), // one guard holds where another does
  MIRROR = ABSENT & ~(1 << LANES), // a whole tree of sums is the same backwards
};

typedef struct row {
  const char *what, *text;
  int kinds[2]; // 0: not there
  kl_strategy strategy;
} row;

static const char sum[] = "f {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n";
static const char first_larger[] =
    "f {\n  a = f32[] parameter(0)\n  i = s32[] parameter(1)\n  b = f32[] parameter(2)\n  j = s32[] parameter(3)\n"
    "  c = pred[] compare(a, b), direction=GE\n  x = f32[] select(c, a, b)\n  k = s32[] select(c, i, j)\n"
    "  ROOT r = (f32[], s32[]) tuple(x, k)\n}\n";

#define ROUNDS                                                                                                         \
  "e = f32[] parameter(0)\n x = f32[70] parameter(1)\n a = f32[70] parameter(2)\n"                                     \
  " t = (f32[], f32[70], f32[70]) tuple(e, x, a)\n"                                                                    \
  " w = (f32[], f32[70], f32[70]) while(t), condition=c, body=b\n ROOT y = f32[70] get-tuple-element(w), index=1"
static const char rounds[] =
    "c {\n  s = (f32[], f32[70], f32[70]) parameter(0)\n  e = f32[] get-tuple-element(s), index=0\n"
    "  l = f32[] constant(7)\n  ROOT r = pred[] compare(e, l), direction=LT\n}\n"
    "b {\n  s = (f32[], f32[70], f32[70]) parameter(0)\n  e = f32[] get-tuple-element(s), index=0\n"
    "  x = f32[70] get-tuple-element(s), index=1\n  a = f32[70] get-tuple-element(s), index=2\n"
    "  d = f32[] multiply(e, e)\n  y = f32[70] subtract(a, x)\n"
    "  ROOT r = (f32[], f32[70], f32[70]) tuple(d, y, a)\n}\n";

// clang-format off
static const row rows[] = {
  {"rounds that data says", ROUNDS, {ABSENT, ABSENT}},
  {"short rows", "p = f32[5,40] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[5] reduce(p, z), dimensions={1}, to_apply=f", {ABSENT, ABSENT}},
  {"packed rows", "p = bf16[9,64] parameter(0)\n z = bf16[] parameter(1)\n ROOT r = bf16[9] reduce(p, z), dimensions={1}, to_apply=f", {ALL, ALL}},
  {"rows", "p = f32[3,1500] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[3] reduce(p, z), dimensions={1}, to_apply=f", {ABSENT, ABSENT}},
  {"full rows", "p = f32[3,2048] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[3] reduce(p, z), dimensions={1}, to_apply=f", {ABSENT, ALL}},
  {"long rows", "p = f32[1,40000] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[1] reduce(p, z), dimensions={1}, to_apply=f", {MIRROR, ABSENT}},
  {"the largest of a long row", "p = f32[1,40000] parameter(0)\n i = s32[1,40000] parameter(1)\n z = f32[] parameter(2)\n n = s32[] parameter(3)\n ROOT r = (f32[1], s32[1]) reduce(p, i, z, n), dimensions={1}, to_apply=f", {PRESENCE & ~(1 << LANES), PRESENCE}},
  {"columns", "p = f32[100,33] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[33] reduce(p, z), dimensions={0}, to_apply=f", {ABSENT, ABSENT}},
  {"full columns", "p = f32[256,32] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[32] reduce(p, z), dimensions={0}, to_apply=f", {ALL, NO_SYNC}},
  {"long columns", "p = f32[1500,6] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[6] reduce(p, z), dimensions={0}, to_apply=f", {ABSENT, NO_SYNC}},
  {"a row's largest", "p = f32[3,700] parameter(0)\n i = s32[3,700] parameter(1)\n z = f32[] parameter(2)\n n = s32[] parameter(3)\n ROOT r = (f32[3], s32[3]) reduce(p, i, z, n), dimensions={1}, to_apply=f", {PRESENCE, PRESENCE}},
  {"less the sum", "p = f32[5,300] parameter(0)\n z = f32[] parameter(1)\n s = f32[5] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[5,300] broadcast(s), dimensions={0}\n ROOT r = f32[5,300] subtract(p, b)", {ABSENT, ABSENT}},
  {"a row of blocks that the last joins", "p = f32[2,3000] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[2] reduce(p, z), dimensions={1}, to_apply=f", {MIRROR, 0}, {.split = 2}},
  {"a row of blocks that a launch joins", "p = f32[2,3000] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[2] reduce(p, z), dimensions={1}, to_apply=f", {MIRROR & ONE_GUARD, 0}, {.split = 2, .two_launches = true}},
  {"less the sum, of a cluster", "p = f32[2,3000] parameter(0)\n z = f32[] parameter(1)\n s = f32[2] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[2,3000] broadcast(s), dimensions={0}\n ROOT r = f32[2,3000] subtract(p, b)", {MIRROR, 0}, {.split = 2, .cluster = true}},
  {"less the sum, of rows that are read again", "p = f32[1,70000] parameter(0)\n z = f32[] parameter(1)\n s = f32[1] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[1,70000] broadcast(s), dimensions={0}\n ROOT r = f32[1,70000] subtract(p, b)", {1 << SYNC, 0}, {.split = 1}},
  {"pad", "p = f32[40,30] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[45,36] pad(p, z), padding=2_3x4_2", {ALL, ALL}},
  {"concatenate", "p = f32[40,6] parameter(0)\n q = f32[40,9] parameter(1)\n ROOT r = f32[40,15] concatenate(p, q), dimensions={1}", {ONE_GUARD, ALL}},
  {"conversions", "p = s8[1024] parameter(0)\n q = f32[1024] convert(p)\n r = bf16[1024] convert(p)\n ROOT t = (f32[1024], bf16[1024]) tuple(q, r)", {ALL, ALL}},
  {"dynamic-slice", "p = f32[40,30] parameter(0)\n i = s32[] parameter(1)\n j = s32[] parameter(2)\n ROOT r = f32[20,24] dynamic-slice(p, i, j), dynamic_slice_sizes={20,24}", {ALL, ALL}},
  {"sums up to a place", "p = u64[12300] parameter(0)\n z = u64[] parameter(1)\n ROOT r = u64[12300] reduce-window(p, z), window={size=12300 pad=12299_0}, to_apply=f", {1 << SYNC | 1 << DISTANCE | 1 << PLACE, 1 << PLACE}},
  {"histogram", "x = f32[40] parameter(0)\n i = s32[3000,1] parameter(1)\n u = f32[3000] parameter(2)\n ROOT r = f32[40] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f", {1 << SYNC | 1 << GUARD | 1 << KEEP | 1 << PLACE, 1 << KEEP}},
  {"sorted rows", "x = f32[20,6] parameter(0)\n i = s32[90,1] parameter(1)\n u = f32[90,6] parameter(2)\n ROOT r = f32[20,6] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, to_apply=f", {1 << KEEP | 1 << TAKE | 1 << CHOOSE | 1 << PLACE, 1 << PLACE}},
  {"owned rows", "x = f32[70,6] parameter(0)\n i = s32[90,1] parameter(1)\n u = f32[90,6] parameter(2)\n ROOT r = f32[70,6] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f", {1 << KEEP | 1 << DISTANCE | 1 << CHOOSE | 1 << PLACE, ALL & ~(1 << CARRY)}},
};
// clang-format on

static const kl_target targets[] = {
    {.machine = KL_NVPTX, .sm = 90, .block = 32, .max_bytes = 16},
    {.machine = KL_HOST, .block = 1, .max_bytes = 16, .host_lanes = 8},
};

static kiln_module *parse(const row *r) {
  kiln_module *m = NULL;
  const char *f = strstr(r->text, ") reduce(")  ? first_larger
                  : strstr(r->text, "to_apply") ? sum
                  : strstr(r->text, " while(")  ? rounds
                                                : "";
  const char *type = strstr(r->text, "bf16") ? "bf16" : strstr(r->text, "reduce-window") ? "u64" : NULL; // else f32
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sbf(&b, "HloModule m\n");
  for (const char *p = f; *p; p++)
    if (strncmp(p, "f32", 3) == 0 && type)
      kl_sb_puts(&b, type), p += 2;
    else
      kl_sb_putc(&b, *p);
  kl_sbf(&b, "ENTRY e {\n %s\n}\n", r->text);
  EXPECT(kiln_module_parse(cx, "test", b.p, strlen(b.p), &m) == KILN_OK, "%s", b.p);
  kl_sb_free(&b);
  return m;
}

// Are updates brought to their elements in order?
static bool is_in_order(const row *r) {
  return strncmp(r->what, "owned", 5) == 0;
}

START_TEST(what_is_broken_is_noticed) {
  const row *r = &rows[_i / 2];
  if (!r->kinds[_i % 2]) return;
  kiln_module *m = parse(r);
  const kl_comp *c = &m->comp[m->entry];
  kl_plan *p, *q;
  unsigned total = 0, unnoticed = 0;
  order_of_sums_is_free = strstr(r->text, "scatter") && !is_in_order(r);
  leaves want = evaluate_graph(&arena, m, c, number_arguments(&arena, c));
  const kl_plan_params params = {
      .target = targets[_i % 2], .name = "k", .deterministic = is_in_order(r), .strategy = r->strategy};
  EXPECT(kl_plan_make(cx, m, c, &params, &arena, &p) == KILN_OK, "%s", r->what);
  const char *why = interpret(&arena, p, &want);
  EXPECT(!why, "%s: %s", r->what, why);
  for (kind k = 0; k < KINDS; k++) {
    for (uint32_t place = 0; r->kinds[_i % 2] >> k & 1 && (q = broken_plan(p, k, place)); place++) {
      if (!share_has(total++, 4) || interpret(&arena, q, &want)) continue;
      printf("# %s, target %d: %s %u is not noticed\n", r->what, _i % 2, names[k], place);
      unnoticed++;
    }
  }
  printf("# %s, target %d: %u places\n", r->what, _i % 2, total);
  EXPECT(total && !unnoticed, "%s, target %d: %u of %u places", r->what, _i % 2, unnoticed, total);
  kl_plan_free(p);
  kiln_module_destroy(&m);
}
END_TEST

// What the verifier must refuse at every place.
// clang-format off
static const struct { const char *what, *text; int kinds; } claims[] = {
  {"rounds that data says", ROUNDS, 1 << STEP_VARS | 1 << ALIGN},
  {"sum of rows", "p = f32[3,1500] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[3] reduce(p, z), dimensions={1}, to_apply=f", 1 << SYNC | 1 << KEEP | 1 << STEP_VARS | 1 << ALIGN},
  {"sum of a long row", "p = f32[1,40000] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[1] reduce(p, z), dimensions={1}, to_apply=f", 1 << STEP_VARS | 1 << ARRIVAL},
  {"sums of long columns", "p = f32[40000,70] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[70] reduce(p, z), dimensions={0}, to_apply=f", 1 << STEP_VARS | 1 << ARRIVAL},
  {"less the sum", "p = f32[5,300] parameter(0)\n z = f32[] parameter(1)\n s = f32[5] reduce(p, z), dimensions={1}, to_apply=f\n b = f32[5,300] broadcast(s), dimensions={0}\n ROOT r = f32[5,300] subtract(p, b)", 1 << SYNC | 1 << KEEP | 1 << STEP_VARS},
  {"sums up to a place", "p = u64[12300] parameter(0)\n z = u64[] parameter(1)\n ROOT r = u64[12300] reduce-window(p, z), window={size=12300 pad=12299_0}, to_apply=f", 1 << SYNC | 1 << STEP_VARS | 1 << ARRIVAL},
  {"histogram", "x = f32[40] parameter(0)\n i = s32[3000,1] parameter(1)\n u = f32[3000] parameter(2)\n ROOT r = f32[40] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f", 1 << SYNC | 1 << STEP_VARS | 1 << SYMBOL_VARS},
  {"owned rows", "x = f32[70] parameter(0)\n i = s32[90,1] parameter(1)\n u = f32[90] parameter(2)\n ROOT r = f32[70] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f", 1 << DISTANCE | 1 << STEP_VARS | 1 << SYMBOL_VARS},
  {"an upper factor", "p = f32[44,44] parameter(0)\n ROOT r = f32[44,44] cholesky(p), lower=false", 1 << SYNC | 1 << KEEP | 1 << STEP_VARS},
  {"pad", "p = f32[40,30] parameter(0)\n z = f32[] parameter(1)\n ROOT r = f32[45,36] pad(p, z), padding=2_3x4_2", 1 << GUARD | 1 << KEEP | 1 << STEP_VARS | 1 << GUARD_GROUPS | 1 << ALIGN},
  {"rows taken", "p = f32[40,3] parameter(0)\n i = s32[17,1] parameter(1)\n ROOT r = f32[17,3] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}", 1 << STEP_VARS | 1 << SYMBOL_VARS | 1 << SYMBOL_GROUPS | 1 << ALIGN},
  {"rows of four taken", "p = bf16[40,4] parameter(0)\n i = s32[17,1] parameter(1)\n ROOT r = bf16[17,4] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}", 1 << STEP_VARS | 1 << SYMBOL_VARS | 1 << SYMBOL_ALONE | 1 << ALIGN},
};
// clang-format on

START_TEST(what_is_claimed_is_proved) {
  row r = {claims[_i / 2].what, claims[_i / 2].text, {0}};
  kiln_module *m = parse(&r);
  kl_plan *p, *q;
  unsigned total = 0, believed = 0;
  const kl_plan_params params = {.target = targets[_i % 2], .name = "k", .deterministic = is_in_order(&r)};
  EXPECT(kl_plan_make(cx, m, &m->comp[m->entry], &params, &arena, &p) == KILN_OK, "%s", r.what);
  EXPECT(kl_plan_verify(cx, p) == KILN_OK, "%s", r.what);
  for (kind k = 0; k < ALL_KINDS; k++) {
    uint32_t place = 0;
    for (; claims[_i / 2].kinds >> k & 1 && (q = broken_plan(p, k, place)); place++) {
      if (kl_plan_verify(cx, q) == KILN_E_INTERNAL) continue;
      printf("# %s, target %d: %s %u is believed\n", r.what, _i % 2, names[k], place);
      believed++;
    }
    if (place) printf("# %s, target %d: %s: %u places\n", r.what, _i % 2, names[k], place);
    total += place;
  }
  EXPECT(total && !believed, "%s, target %d: %u of %u places", r.what, _i % 2, believed, total);
  kl_plan_free(p);
  kiln_module_destroy(&m);
}
END_TEST

// --- rounds ----------------------------------------------------------------------------------------------------------

static const char *finding(void) {
  size_t n = kiln_diagnostics_count(cx);
  return n ? kiln_diagnostics_get(cx, n - 1)->text : "";
}

static kl_plan *plan_of(const char *name, const char *text, kiln_module **m) {
  kl_plan_params params = {.target = {.machine = KL_NVPTX, .sm = 80, .block = 128, .max_bytes = 16}, .name = name};
  kl_plan *p = NULL;
  EXPECT(kiln_module_parse(cx, name, text, strlen(text), m) == KILN_OK, "%s", finding());
  EXPECT(kl_plan_make(cx, *m, &(*m)->comp[(*m)->entry], &params, &arena, &p) == KILN_OK, "%s", finding());
  return p;
}

// Two launches in a loop with a branch: what a kernel of it says of itself is proved, each thing.
START_TEST(what_rounds_claim_is_proved) {
  static const char sum[] =
      "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
      "ENTRY e { p = f32[20000] parameter(0) z = f32[] constant(0) "
      "ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add }";
  static const char negate[] = "HloModule m\nENTRY e { p = f32[1000] parameter(0) ROOT r = f32[1000] negate(p) }";
  kiln_module *m[2];
  kl_plan *plans[2] = {plan_of("sum", sum, &m[0]), plan_of("negate", negate, &m[1])};
  static const uint32_t args[] = {0, 1, 2, 3, 4, 5};
  kl_member members[3];
  for (int i = 0; i < 3; i++) {
    members[i] = kl_member_of(plans[i % 2], &plans[i % 2]->launches[0]);
    members[i].args = args;
  }
  kl_round steps[] = {{.kind = KL_ROUND_WHILE, .count = 1, .body = 5, .condition = 5, .condition_bytes = 1},
                      {.kind = KL_ROUND_MEMBERS, .first = 0, .count = 1},
                      {.kind = KL_ROUND_BRANCH, .count = 2, .body = 4, .condition = 4, .condition_bytes = 4},
                      {.kind = KL_ROUND_CASE, .body = 1},
                      {.kind = KL_ROUND_MEMBERS, .first = 1, .count = 1},
                      {.kind = KL_ROUND_CASE, .body = 1},
                      {.kind = KL_ROUND_MEMBERS, .first = 2, .count = 1}};
  kl_rounds r = {.name = "r", .nargs = 6, .nmembers = 3, .nsteps = KL_COUNT(steps), .members = members, .steps = steps};
  const kl_target *t = &plans[0]->target;
  ck_assert_ptr_null(kl_rounds_fit(&r, t, 0));
  ck_assert(kl_launch_waits(plans[0], members[0].launch) && members[0].launch->shared_bytes);
  ck_assert(!kl_launch_waits(plans[1], members[1].launch) && members[1].teams > 1);
  EXPECT(kl_rounds_verify(cx, &r, t) == KILN_OK, "%s", finding());
  kl_plan_launch *launch = &plans[0]->launches[0];
  kl_tickets tickets = {0};
  int64_t huge = INT64_C(1) << 40;
  const struct {
    void *at;
    uint64_t value;
    size_t size;
    const char *says;
  } lies[] = {
      {&r.block, 48, 4, "threads: 48"},
      {&r.block, 2048, 4, "threads: 2048"},
      {&r.cluster, 0, 4, "blocks: 0"},
      {&r.cluster, 16, 4, "blocks: 16"},
      {&r.shared_bytes, 1 << 20, 4, "shared bytes: 1048576"},
      {&r.shared_bytes, 1, 4, "shared memory of member 0"},
      {&r.nargs, 1, 4, "an argument of member 0"},
      {&r.nargs, 5, 4, "the condition of step 0"},
      {&members[1].teams, 0, 4, "threads of member 1"},
      {&members[1].teams, 64, 4, "threads of member 1"},
      {&r.nmembers, 2, 4, "members of step 6"},
      {&r.nsteps, 2, 4, "the end of step 0"},
      {&steps[0].body, 9, 4, "the end of step 0"},
      {&steps[6].count, 0, 4, "members that run: 2"},
      {&steps[0].condition_bytes, 2, 4, "the condition of step 0"},
      {&steps[1].first, 1, 4, "members of step 1"},
      {&steps[1].count, 4, 4, "members of step 1"},
      {&steps[2].count, 3, 4, "cases of step 2"},
      {&steps[2].body, 2, 4, "cases of step 2"},
      {&steps[3].kind, KL_ROUND_REPEAT, 4, "a case of step 2"},
      {&launch->cluster, 4, 4, "its blocks meet 0"},
      {&launch->block, 40, 4, "its blocks are no whole warps 0"},
      {&launch->when, KL_APART, 4, NULL},
      {&launch->tickets, (uint64_t)(uintptr_t)&tickets, 8, "its blocks wait for those before them 0"},
      {&launch->grid, (uint64_t)huge, 8, "its blocks are too many 0"},
      {&plans[0]->counted, 1, 1, "its number of rows comes at run time 0"},
      {&plans[0]->slots[launch->args[0]].by_value, 1, 1, "it is given values 0"},
      {&plans[0]->target.machine, KL_HOST, 4, "it is the host's 0"},
  };
  for (size_t i = 0; i < KL_COUNT(lies); i++) {
    uint64_t was = 0;
    memcpy(&was, lies[i].at, lies[i].size);
    memcpy(lies[i].at, &lies[i].value, lies[i].size);
    kiln_status st = kl_rounds_verify(cx, &r, &(kl_target){.machine = KL_NVPTX, .sm = 90});
    EXPECT(st == (lies[i].says ? KILN_E_INTERNAL : KILN_OK), "%s", lies[i].says ? lies[i].says : finding());
    EXPECT(!lies[i].says || strstr(finding(), lies[i].says), "%s: %s", lies[i].says, finding());
    if (!lies[i].says) ck_assert_str_eq(kl_no_member(plans[0], launch, false), "addresses say whether it is launched");
    memcpy(lies[i].at, &was, lies[i].size);
  }
  EXPECT(kl_rounds_verify(cx, &r, t) == KILN_OK, "%s", finding());
  for (int i = 0; i < 2; i++) kl_plan_free(plans[i]), kiln_module_destroy(&m[i]);
}
END_TEST

// Two launches one behind the other, side by side: what each block's share of them is.
START_TEST(what_shares_claim_is_proved) {
  static const char negate[] = "HloModule m\nENTRY e { p = f32[64,128] parameter(0) ROOT r = f32[64,128] negate(p) }";
  static const char sum[] =
      "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
      "ENTRY e { p = f32[64,128] parameter(0) z = f32[] constant(0) "
      "ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=add }";
  kiln_module *m[2];
  kl_plan *plans[2] = {plan_of("negate", negate, &m[0]), plan_of("sum", sum, &m[1])};
  static const uint32_t args[2][2] = {{0, 1}, {1, 2}};
  uint32_t same[] = {0, 1, 2};
  kl_member members[2];
  for (int i = 0; i < 2; i++) {
    members[i] = kl_member_of(plans[i], &plans[i]->launches[0]);
    members[i].args = args[i];
    members[i].share = members[i].unit;
  }
  kl_round steps[] = {{.kind = KL_ROUND_MEMBERS, .count = 2}};
  kl_rounds r = {.name = "r", .nargs = 3, .nmembers = 2, .nsteps = 1, .members = members, .steps = steps, .same = same};
  const kl_target *t = &plans[0]->target;
  EXPECT(kl_share_with(cx, &r) && r.grid > 2, "not side by side");
  kl_shares_fit(&r, t, true);
  EXPECT(r.grid > 2 && r.grid < 64, "%lld blocks", (long long)r.grid);
  EXPECT(kl_rounds_verify(cx, &r, t) == KILN_OK, "%s", finding());
  const struct {
    void *at;
    uint64_t value;
    size_t size;
    const char *says;
  } lies[] = {
      {&r.grid, (uint64_t)r.grid - 1, 8, "the share of member 0"},
      {&members[1].share, (uint64_t)members[1].share + 1, 8, "the share of member 1"},
      {&members[1].share, 0, 8, "the share of member 1"},
      {&members[1].unit, 1, 4, "the share of member 1"},
      {&members[0].share, (uint64_t)members[0].share * 2, 8, "what is one block's alone, of members: 2"},
      {&members[1].share, (uint64_t)members[1].share * 2, 8, "what is one block's alone, of members: 2"},
      {&same[1], 3, 4, "the memory of argument 1"},
      {&same[2], 1, 4, "what is one block's alone, of members: 2"},
      {&r.cluster, 2, 4, "steps of blocks that know nothing of each other: 1"},
      {&steps[0].kind, KL_ROUND_REPEAT, 4, "steps of blocks that know nothing of each other: 1"},
  };
  for (size_t i = 0; i < KL_COUNT(lies); i++) {
    uint64_t was = 0;
    memcpy(&was, lies[i].at, lies[i].size);
    memcpy(lies[i].at, &lies[i].value, lies[i].size);
    kiln_status st = kl_rounds_verify(cx, &r, &(kl_target){.machine = KL_NVPTX, .sm = 90});
    EXPECT(st == KILN_E_INTERNAL && strstr(finding(), lies[i].says), "%zu: %s: %s", i, lies[i].says, finding());
    memcpy(lies[i].at, &was, lies[i].size);
  }
  EXPECT(kl_rounds_verify(cx, &r, t) == KILN_OK, "%s", finding());
  for (int i = 0; i < 2; i++) kl_plan_free(plans[i]), kiln_module_destroy(&m[i]);
}
END_TEST

int main(void) {
  return RUN_TESTS("mutants", EACH(open_context, close_context), {what_is_broken_is_noticed, 2 * KL_COUNT(rows)},
                   {what_is_claimed_is_proved, 2 * KL_COUNT(claims)}, {what_rounds_claim_is_proved},
                   {what_shares_claim_is_proved});
}
