// Random fusions. A pool of values grows by one operation at a time; operands of the wanted type are taken from the
// pool or made by convert. The roots are the last value and some with as many elements, or with any number. What passes
// from one computation to another, or between ENTRY and the header, may have a layout of its own on either side.

#include "impl.h"

// The last are for sources that want them.
static gen_op *const ops[] = {
    op_unary,           op_unary,        op_unary,        op_binary,
    op_binary,          op_binary,       op_binary,       op_compare,
    op_select,          op_clamp,        op_convert,      op_convert,
    op_bitcast_convert, op_change_width, op_change_width, op_reduce_precision,
    op_complex,         op_broadcast,    op_broadcast,    op_reshape,
    op_transpose,       op_reverse,      op_slice,        op_pad,
    op_concatenate,     op_iota,         op_bitcast,      op_call,
};
static gen_op *const whole_ops[] = {
    op_bitcast_width, op_map,       op_conditional,     op_function,      op_whole_binary, op_stochastic_convert,
    op_tuple,         op_tuple,     op_computation,     op_reduce,        op_reduce,       op_reduce,
    op_reduce,        op_gather,    op_gather,          op_dynamic_slice, op_update_slice, op_scatter,
    op_scatter,       op_transpose, op_concatenate_any,
};

void gen_operations(gen *g, unsigned n) {
  unsigned some = KL_COUNT(ops), all = some + (g->src->whole ? KL_COUNT(whole_ops) : 0);
  for (unsigned i = 0; i < n && !full(g); i++) {
    unsigned k = pick(g, all);
    (k < some ? ops[k] : whole_ops[k - some])(g);
  }
}

// --- the module ------------------------------------------------------------------------------------------------------

static void any_dims(gen *g, value *v) {
  v->rank = pick(g, MAX_RANK + 1);
  int64_t n = 1;
  for (uint32_t d = 0; d < v->rank; d++) {
    int64_t most = MAX_ELEMENTS / n;
    int64_t size = chance(g, 2) ? 0 : 1 + pick(g, chance(g, 30) ? 130 : 12);
    if (size > most) size = 1;
    v->dims[d] = size;
    if (size) n *= size;
  }
}

static void first_parameters(gen *g) {
  value v = {0};
  any_dims(g, &v);
  unsigned n = 1 + pick(g, 3);
  for (unsigned i = 0; i < n; i++) {
    v.t = any_dtype(g);
    if (i && chance(g, 20)) any_dims(g, &v);
    parameter(g, &v);
  }
}

typedef struct leaves {
  unsigned n, at[MAX_ROOTS];
  bool nested; // all but the first in a tuple of their own
} leaves;

static void draw_roots(gen *g, leaves *r) {
  bool any_size = chance(g, g->src->whole ? 60 : 30);
  *r = (leaves){1, {g->n - 1}, false};
  for (unsigned i = 0; i < g->n && r->n < MAX_ROOTS; i++) {
    bool may = any_size || count(&g->v[i]) == count(&g->v[r->at[0]]);
    if (i != r->at[0] && may && chance(g, 8)) r->at[r->n++] = i;
  }
  r->nested = r->n > 1 && g->src->whole && chance(g, 20);
}

// The roots' shapes; `elsewhere`: in layouts of their own.
static void put_roots(gen *g, kl_sb *b, const leaves *r, bool elsewhere) {
  for (unsigned i = 0; i < r->n; i++) {
    if (r->n > 1) kl_sb_puts(b, i ? ", " : "(");
    if (i == 1 && r->nested) kl_sb_puts(b, "(");
    if (elsewhere)
      put_buffer(g, b, &g->v[r->at[i]]);
    else
      put_shape(b, &g->v[r->at[i]]);
  }
  if (r->n > 1) kl_sb_puts(b, r->nested ? "))" : ")");
}

static void put_parameters(gen *g, kl_sb *b) {
  for (unsigned i = 0; i < g->params; i++) {
    if (i) kl_sb_puts(b, ", ");
    put_buffer(g, b, &g->v[g->param[i]]);
  }
}

static void put_header(gen *g, kl_sb *out, const leaves *r) {
  kl_sb_puts(out, "HloModule random");
  if (chance(g, 25)) {
    kl_sb_puts(out, g->packed ? ", entry_computation_layout={((" : ", entry_computation_layout={(");
    put_parameters(g, out);
    kl_sb_puts(out, g->packed ? "))->" : ")->");
    put_roots(g, out, r, true);
    kl_sb_puts(out, "}");
  }
  kl_sb_puts(out, "\n\n");
}

static void put_fused(gen *g, kl_sb *out, const leaves *r) {
  kl_sb_puts(out, "fused {\n");
  if (g->packed) {
    const value *v[MAX_PARAMS];
    for (unsigned i = 0; i < g->params; i++) v[i] = &g->v[g->param[i]];
    kl_sb_puts(out, "  p = ");
    put_tuple(out, g->params, v);
    kl_sb_puts(out, " parameter(0)\n");
  }
  kl_sb_put(out, (kl_str){g->body.p, g->body.n});
  if (r->nested) {
    const value *v[MAX_ROOTS];
    for (unsigned i = 1; i < r->n; i++) v[i] = &g->v[r->at[i]];
    kl_sb_puts(out, "  rest = ");
    put_tuple(out, r->n - 1, v + 1);
    kl_sb_puts(out, " tuple(");
    for (unsigned i = 1; i < r->n; i++) kl_sbf(out, i > 1 ? ", v%u" : "v%u", r->at[i]);
    kl_sb_puts(out, ")\n");
  }
  kl_sb_puts(out, "  ROOT root = ");
  put_roots(g, out, r, false);
  kl_sb_puts(out, r->n > 1 ? " tuple(" : " copy(");
  for (unsigned i = 0; i < (r->nested ? 1 : r->n); i++) kl_sbf(out, i ? ", v%u" : "v%u", r->at[i]);
  kl_sb_puts(out, r->nested ? ", rest)\n}\n\n" : ")\n}\n\n");
}

static void put_entry(gen *g, kl_sb *out, const leaves *r) {
  kl_sb_puts(out, "ENTRY main {\n");
  if (g->packed) {
    kl_sb_puts(out, "  p = (");
    put_parameters(g, out);
    kl_sb_puts(out, ") parameter(0)\n");
  }
  for (unsigned i = 0; i < g->params && !g->packed; i++) {
    kl_sbf(out, "  p%u = ", i);
    put_buffer(g, out, &g->v[g->param[i]]);
    kl_sbf(out, " parameter(%u)\n", i);
  }
  kl_sb_puts(out, "  ROOT fusion = ");
  put_roots(g, out, r, true);
  kl_sb_puts(out, g->packed ? " fusion(p" : " fusion(");
  for (unsigned i = 0; i < g->params && !g->packed; i++) kl_sbf(out, i ? ", p%u" : "p%u", i);
  kl_sb_puts(out, "), kind=kLoop, calls=fused\n}\n");
}

void gen_fusion(gen_source *src, unsigned nops, kl_sb *out) {
  kl_sb called;
  unsigned calls = 0;
  gen g = {.src = src, .called = &called, .calls = &calls};
  leaves roots;
  g.out = &g.body;
  kl_sb_init(&g.body, out->cx);
  kl_sb_init(&called, out->cx);
  g.tiles = src->whole && chance(&g, 50);
  g.packed = src->whole && chance(&g, 15);
  first_parameters(&g);
  gen_operations(&g, nops);
  draw_roots(&g, &roots);
  put_header(&g, out, &roots);
  kl_sb_put(out, (kl_str){called.p, called.n});
  put_fused(&g, out, &roots);
  put_entry(&g, out, &roots);
  kl_sb_free(&called);
  kl_sb_free(&g.body);
}
