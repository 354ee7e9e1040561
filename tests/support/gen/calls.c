// Operations that call computations.

#include "impl.h"

// A computation of two layouts, which its caller need not share.
void op_call(gen *g) {
  unsigned a = operand(g), number = (*g->calls)++;
  value flat = g->v[a], same = g->v[a];
  flat.rank = 1;
  flat.dims[0] = count(&g->v[a]);
  default_layout(&flat);
  bool fusion = chance(g, 50), tuple = chance(g, 40);
  kl_sbf(g->called, "called%u {\n  x = ", number);
  put_shape_elsewhere(g, g->called, &same);
  kl_sbf(g->called, " parameter(0)\n  %sy = ", tuple ? "" : "ROOT ");
  put_shape(g->called, &flat);
  kl_sb_puts(g->called, " bitcast(x)\n");
  kl_sb *const out[2] = {g->called, g->out};
  if (tuple) kl_sb_puts(g->called, "  ROOT t = ");
  if (tuple) kl_sbf(g->out, "  c%u = ", number);
  for (int i = 0; tuple && i < 2; i++) {
    kl_sb_puts(out[i], "(");
    put_shape(out[i], &flat);
    kl_sb_puts(out[i], ", ");
    put_shape_elsewhere(g, out[i], &same);
    kl_sb_puts(out[i], ")");
  }
  kl_sb_puts(g->called, tuple ? " tuple(y, x)\n}\n\n" : "}\n\n");
  const char *op = fusion ? "fusion" : "call";
  if (tuple)
    kl_sbf(g->out, " %s(", op);
  else
    begin(g, &flat, op, 0);
  kl_sbf(g->out, fusion ? "v%u), kind=kLoop, calls=called%u\n" : "v%u), to_apply=called%u\n", a, number);
  for (int i = 0; tuple && i < 2; i++) {
    begin(g, i ? &same : &flat, "get-tuple-element", 30);
    kl_sbf(g->out, "c%u), index=%d\n", number, i);
  }
}

// --- computations of their own --------------------------------------------------------------------------------------

// The leaves of a tuple parameter, and the values that stand for them.
static void put_leaves(gen *in, unsigned n, const value *v) {
  const value *all[MAX_PARAMS];
  for (unsigned i = 0; i < n; i++) all[i] = &v[i];
  kl_sb_puts(in->out, "  p = ");
  put_tuple(in->out, n, all);
  kl_sb_puts(in->out, " parameter(0)\n");
  for (unsigned i = 0; i < n; i++) {
    begin(in, &v[i], "get-tuple-element", 0);
    kl_sbf(in->out, "p), index=%u\n", i);
  }
}

void open_computation(gen *g, gen *in, bool elements, bool tuple, unsigned n, const unsigned *x) {
  value v[MAX_PARAMS];
  *in = (gen){.src = g->src, .called = g->called, .calls = g->calls, .depth = g->depth + 1};
  in->elements = elements || g->elements;
  in->out = &in->body;
  kl_sb_init(in->out, g->out->cx);
  for (unsigned i = 0; i < n; i++) {
    v[i] = g->v[x[i]];
    if (elements) v[i].rank = 0, v[i].custom = false;
  }
  if (tuple) return put_leaves(in, n, v);
  for (unsigned i = 0; i < n; i++) {
    begin(in, &v[i], "parameter", elements ? 0 : 12);
    kl_sbf(in->out, "%u)\n", i);
  }
}

void close_computation(gen *g, gen *in, const char *name, unsigned number, unsigned n, const unsigned *roots) {
  const value *v[MAX_PARAMS];
  for (unsigned i = 0; i < n; i++) v[i] = &in->v[roots[i]];
  kl_sbf(g->called, "%s%u {\n", name, number);
  kl_sb_put(g->called, (kl_str){in->body.p, in->body.n});
  kl_sb_puts(g->called, "  ROOT root = ");
  if (n > 1)
    put_tuple(g->called, n, v);
  else
    put_shape(g->called, v[0]);
  kl_sb_puts(g->called, n > 1 ? " tuple(" : " copy(");
  for (unsigned i = 0; i < n; i++) kl_sbf(g->called, i ? ", v%u" : "v%u", roots[i]);
  kl_sb_puts(g->called, ")\n}\n\n");
  kl_sb_free(&in->body);
}

unsigned last_like(gen *g, const value *like, kl_dtype t) {
  unsigned i = g->n;
  while (i-- > 0)
    if (same_dims(&g->v[i], like)) break;
  return of_type(g, i, t);
}

static unsigned bodies(gen *g) {
  return 1 + pick(g, g->depth ? 2 : 6);
}

// A computation of each element.
void op_map(gen *g) {
  unsigned x[3] = {operand(g)}, n = 1 + pick(g, 3), called;
  value v = g->v[x[0]];
  gen in;
  for (unsigned i = 1; i < n; i++) x[i] = of_type(g, x[0], chance(g, 50) ? v.t : any_dtype(g));
  open_computation(g, &in, true, false, n, x);
  gen_operations(&in, bodies(g));
  unsigned root = last_like(&in, &(value){0}, chance(g, 50) ? v.t : any_dtype(g));
  close_computation(g, &in, "mapped", called = (*g->calls)++, 1, &root);
  int64_t dims[MAX_RANK];
  char attrs[192], call[32];
  for (uint32_t d = 0; d < v.rank; d++) dims[d] = d;
  put_list(attrs, sizeof attrs - sizeof call, "dimensions", v.rank, dims);
  snprintf(call, sizeof call, ", to_apply=mapped%u", called);
  v.t = in.v[root].t;
  unsigned r = emit(g, &v, "map", n, x, strcat(attrs, call));
  g->v[r].computed |= in.v[root].computed;
}

// A call or a fusion of any operations.
void op_computation(gen *g) {
  unsigned x[3], n = 1 + pick(g, 3), nroots = 1 + pick(g, 2), roots[2], called;
  if (g->depth >= MAX_DEPTH) return;
  for (unsigned i = 0; i < n; i++) x[i] = operand(g);
  gen in;
  open_computation(g, &in, false, false, n, x);
  gen_operations(&in, bodies(g));
  roots[0] = in.n - 1;
  roots[1] = pick(&in, in.n);
  bool fusion = !g->elements && chance(g, 40);
  value v[2] = {in.v[roots[0]], in.v[roots[1]]};
  close_computation(g, &in, "inner", called = (*g->calls)++, nroots, roots);
  char arguments[128];
  size_t at = 0;
  for (unsigned i = 0; i < n; i++)
    at += (size_t)snprintf(arguments + at, sizeof arguments - at, i ? ", v%u" : "v%u", x[i]);
  snprintf(arguments + at, sizeof arguments - at, fusion ? "), kind=kLoop, calls=inner%u" : "), to_apply=inner%u",
           called);
  put_results(g, nroots, v, fusion ? "fusion" : "call", arguments);
}

// Values as a tuple, its number.
static unsigned put_operands(gen *g, unsigned n, const unsigned *x) {
  const value *v[MAX_PARAMS];
  unsigned t = g->tuples++;
  for (unsigned i = 0; i < n; i++) v[i] = &g->v[x[i]];
  kl_sbf(g->out, "  t%u = ", t);
  put_tuple(g->out, n, v);
  kl_sb_puts(g->out, " tuple(");
  for (unsigned i = 0; i < n; i++) kl_sbf(g->out, i ? ", v%u" : "v%u", x[i]);
  kl_sb_puts(g->out, ")\n");
  return t;
}

// Into a tuple, or a tuple of tuples, and out again.
void op_tuple(gen *g) {
  unsigned x[2] = {operand(g), operand(g)}, t = put_operands(g, 2, x), i = pick(g, 2);
  if (chance(g, 30)) {
    const value *v[2] = {&g->v[x[0]], &g->v[x[1]]};
    kl_sbf(g->out, "  t%u = ", g->tuples);
    put_tuple(g->out, 2, v);
    kl_sbf(g->out, " opt-barrier(t%u)\n", t);
    t = g->tuples++;
  }
  begin(g, &g->v[x[i]], "get-tuple-element", 12);
  kl_sbf(g->out, "t%u), index=%u\n", t, i);
}

// Some element of an integer or truth, as the number of a branch.
static unsigned branch_number(gen *g) {
  unsigned a = pick(g, g->n);
  kl_dtype t = g->v[a].t;
  if ((!kl_is_int(t) && t != KILN_PRED) || count(&g->v[a]) == 0) return scalar_constant(g, KILN_S32);
  a = scalar_of(g, a);
  return t == KILN_PRED ? a : of_type(g, a, KILN_S32);
}

// A branch: a computation of one argument, whose results are like v.
static void put_branch(gen *g, unsigned number, unsigned branch, unsigned n, value *v, unsigned *argument) {
  unsigned x[3], nx = n + pick(g, 2), roots[2];
  char name[32];
  gen in;
  snprintf(name, sizeof name, "branch%u_", number);
  for (unsigned i = 0; i < nx; i++) x[i] = i < n ? last_like(g, &v[i], v[i].t) : operand(g);
  bool tuple = nx > 1;
  *argument = tuple ? put_operands(g, nx, x) : x[0];
  open_computation(g, &in, false, tuple, nx, x);
  gen_operations(&in, bodies(g) / 2);
  for (unsigned i = 0; i < n; i++) {
    roots[i] = last_like(&in, &v[i], v[i].t);
    v[i].computed |= in.v[roots[i]].computed;
  }
  close_computation(g, &in, name, branch, n, roots);
}

void op_conditional(gen *g) {
  if (g->depth >= MAX_DEPTH) return;
  unsigned at = branch_number(g), x = operand(g), y = operand(g), n = 1 + pick(g, 2), number = (*g->calls)++;
  bool truth = g->v[at].t == KILN_PRED;
  unsigned branches = truth ? 2 : 1 + pick(g, 3);
  value v[2] = {g->v[x], g->v[y]};
  char arguments[256], names[96];
  size_t a = (size_t)snprintf(arguments, sizeof arguments, "v%u", at), b = 0;
  for (unsigned i = 0; i < branches; i++) {
    unsigned argument, tuples = g->tuples;
    put_branch(g, number, i, n, v, &argument);
    a += (size_t)snprintf(arguments + a, sizeof arguments - a, g->tuples > tuples ? ", t%u" : ", v%u", argument);
    b += (size_t)snprintf(names + b, sizeof names - b, i ? ", branch%u_%u" : "branch%u_%u", number, i);
  }
  if (truth) snprintf(names, sizeof names, "true_computation=branch%u_0, false_computation=branch%u_1", number, number);
  snprintf(arguments + a, sizeof arguments - a, truth ? "), %s" : "), branch_computations={%s}", names);
  v[0].custom = v[1].custom = false;
  put_results(g, n, v, "conditional", arguments);
}
