// Computations on scalars as programs over lanes: calls are flattened away, each elementwise op becomes a step that
// reads and writes registers of many lanes. What has no such form is evaluated lane by lane as a computation.
#include "eval/impl.h"

#include <pthread.h>

enum {
  MAX_STEPS = 1 << 14, // calls can multiply; beyond this the computation is evaluated as it stands
  MAX_NESTING = 64,
  REGISTER_BYTES = 1 << 22, // of one worker; long programs run in fewer lanes
};

typedef enum reg_kind { REG_PARAM, REG_CONSTANT, REG_STEP } reg_kind;
typedef struct reg {
  reg_kind kind;
  kl_dtype dtype;
  uint32_t index;    // parameter leaf; step
  const void *value; // of a constant
  bool raw;          // NaN bits come from a constant
} reg;

typedef struct step {
  kl_ew e;
  uint32_t in[3], out; // registers
  bool nan_open[3];
} step;

struct kl_ev_program {
  kl_ev ev; // of lane by lane evaluation
  pthread_mutex_t lock;
  uint32_t comp;
  bool serial; // evaluated lane by lane
  bool exact;
  size_t nparams, nresults;
  const kl_shape **param, **result; // leaves
  uint32_t *result_reg;
  VEC(reg) regs;
  VEC(step) steps;
};

// One chunk of a register. Exact: lo == hi == data; closed: any NULL.
struct kl_ev_regs {
  int64_t lanes;
  size_t size; // of memory
  char *memory;
  uint32_t n;
  kl_iv_in *at;    // by register
  kl_iv_out *home; // by register, of constants and steps
  kl_iv_scratch *scratch;
};

// --- compiling ----------------------------------------------------------------------------------------------------

typedef struct builder {
  kl_ev *ev;
  kl_ev_program *p;
  uint32_t depth;
  const kl_shape *whole; // what a lane is an element of
  const size_t *param;   // kl_ev_param_leaves of the computation being compiled
} builder;

static uint32_t add_reg(builder *b, reg r) {
  VEC_PUSH(b->ev->cx, &b->p->regs, r);
  return (uint32_t)b->p->regs.n - 1;
}

// The moves that leave every lane as it is. Beside arrays of lanes there are single elements, from constants alone.
static bool is_alias(const kl_instr *in, const kl_shape *operand) {
  bool single = operand->count == 1;
  switch (in->op) {
  case KL_OP_BITCAST:
    if (in->shape->dtype != operand->dtype) return false;
    return single || (kl_shape_same_dims(in->shape, operand) && kl_shape_default_layout(in->shape) &&
                      kl_shape_default_layout(operand));
  case KL_OP_COPY: return true;
  case KL_OP_REAL: return kl_is_float(operand->dtype);
  case KL_OP_RESHAPE: return single || kl_shape_same_dims(in->shape, operand);
  case KL_OP_BROADCAST:
  case KL_OP_TRANSPOSE:
  case KL_OP_REVERSE: return single;
  default: return false;
  }
}

static void run_bits(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  memcpy(out, in[0], (size_t)n * kl_ev_size(e->out));
  uint8_t *p = out;
  for (int64_t i = 0; e->out == KILN_PRED && i < n; i++) p[i] = p[i] != 0;
}

static bool bind_step(const kl_instr *in, kl_ew *e) {
  if (in->op == KL_OP_BITCAST_CONVERT) {
    e->run = run_bits;
    return kl_info(e->in[0])->bits == kl_info(e->out)->bits;
  }
  return kl_op_is_elementwise(in->op) && kl_ew_bind(e);
}

static bool keeps_bits(kl_op op) {
  return op == KL_OP_SELECT || op == KL_OP_REAL || op == KL_OP_IMAG || op == KL_OP_COMPLEX;
}

static bool add_step(builder *b, const kl_instr *in, const uint32_t *operands, uint32_t *out) {
  kl_ev_program *p = b->p;
  step s = {.e = {.op = in->op,
                  .nin = in->noperands,
                  .out = in->shape->dtype,
                  .direction = in->direction,
                  .compare = in->compare_type,
                  .exponent_bits = in->exponent_bits,
                  .mantissa_bits = in->mantissa_bits,
                  .fast = b->ev->fast}};
  if (in->noperands < 1 || in->noperands > 3 || p->steps.n >= MAX_STEPS) return false;
  bool raw = keeps_bits(in->op);
  for (uint32_t k = 0; k < in->noperands; k++) {
    const reg *r = &p->regs.p[operands[k]];
    s.in[k] = operands[k];
    s.e.in[k] = r->dtype;
    s.nan_open[k] = !r->raw && (kl_is_float(r->dtype) || kl_is_complex(r->dtype));
    if (k > 0 || in->op != KL_OP_SELECT) raw &= r->raw;
  }
  if (!bind_step(in, &s.e)) return false;
  p->exact &= !kl_iv_widens(&s.e);
  s.out = *out = add_reg(b, (reg){REG_STEP, in->shape->dtype, (uint32_t)p->steps.n, NULL, raw});
  VEC_PUSH(b->ev->cx, &p->steps, s);
  return true;
}

static bool compile(builder *b, uint32_t comp, const uint32_t *params, uint32_t *results);

// `leaves` are the registers of the operands' leaves, in order.
static bool compile_instr(builder *b, const kl_comp *c, const kl_instr *in, const uint32_t *params,
                          const uint32_t *leaves, size_t nleaves, uint32_t *out) {
  size_t n = kl_shape_leaf_count(in->shape);
  switch (in->op) {
  case KL_OP_PARAMETER: memcpy(out, params + b->param[in->number], n * sizeof *out); return true;
  case KL_OP_CONSTANT:
    for (size_t k = 0; k < n && in->literal; k++)
      if (kl_shape_leaf(in->shape, k)->count != 1) return false;
    for (size_t k = 0; k < n && in->literal; k++)
      out[k] = add_reg(b, (reg){REG_CONSTANT, kl_shape_leaf(in->shape, k)->dtype, 0, in->literal[k].data, true});
    return in->literal != NULL;
  case KL_OP_TUPLE: memcpy(out, leaves, nleaves * sizeof *out); return true;
  case KL_OP_GET_TUPLE_ELEMENT:
    memcpy(out, leaves + kl_operand(c, in, 0)->shape->first_leaf[in->number], n * sizeof *out);
    return true;
  case KL_OP_FUSION:
  case KL_OP_CALL: return compile(b, in->called[0], leaves, out);
  default: break;
  }
  if (nleaves != in->noperands || n != 1) return false;
  if (in->noperands == 1 && is_alias(in, kl_operand(c, in, 0)->shape)) {
    *out = leaves[0];
    return true;
  }
  return add_step(b, in, leaves, out);
}

static bool is_lane(const kl_shape *s, const kl_shape *whole) {
  return kl_shape_is_array(s) && (s->count == 1 || kl_shape_same_dims(s, whole));
}

static bool all_lanes(const kl_shape *s, const kl_shape *whole) {
  for (size_t k = 0; k < kl_shape_leaf_count(s); k++)
    if (!is_lane(kl_shape_leaf(s, k), whole)) return false;
  return true;
}

static void mark_live(const kl_comp *c, bool *live) {
  live[c->root] = true;
  for (uint32_t i = c->ninstr; i-- > 0;)
    for (uint32_t k = 0; live[i] && k < c->instr[i].noperands; k++) live[c->instr[i].operands[k]] = true;
}

// The registers of every live instruction's leaves, one instruction after the other. False: no form as lanes.
static bool compile_all(builder *b, const kl_comp *c, const uint32_t *params, const bool *live, uint32_t *results) {
  kl_ctx *cx = b->ev->cx;
  VEC(uint32_t) regs = {0}, operands = {0};
  size_t *first = kl_alloc(cx, sizeof(size_t) * (c->ninstr + 1u));
  bool ok = true;
  for (uint32_t i = 0; i < c->ninstr && ok; i++) {
    const kl_instr *in = &c->instr[i];
    first[i] = regs.n;
    ok = !live[i] || (all_lanes(in->shape, b->whole) && regs.n < MAX_STEPS);
    if (!ok || !live[i]) continue;
    operands.n = 0;
    for (uint32_t k = 0; k < in->noperands; k++)
      for (size_t leaf = 0; leaf < kl_shape_leaf_count(kl_operand(c, in, k)->shape); leaf++)
        VEC_PUSH(cx, &operands, regs.p[first[in->operands[k]] + leaf]);
    VEC_PUSH(cx, &operands, 0); // so that there is an array
    size_t n = kl_shape_leaf_count(in->shape);
    VEC_RESERVE(cx, &regs, regs.n + n + 1);
    ok = compile_instr(b, c, in, params, operands.p, operands.n - 1, regs.p + regs.n);
    regs.n += n;
  }
  if (ok) memcpy(results, regs.p + first[c->root], sizeof(uint32_t) * kl_shape_leaf_count(kl_root(c)->shape));
  VEC_FREE(cx, &regs);
  VEC_FREE(cx, &operands);
  kl_free(cx, first, sizeof(size_t) * (c->ninstr + 1u));
  return ok;
}

static bool compile(builder *b, uint32_t comp, const uint32_t *params, uint32_t *results) {
  const kl_comp *c = &b->ev->m->comp[comp];
  if (b->depth >= MAX_NESTING) return false;
  const size_t *callers = b->param;
  size_t *param = kl_ev_param_leaves(b->ev, c);
  bool *live = kl_alloc(b->ev->cx, c->ninstr);
  b->depth++;
  b->param = param;
  mark_live(c, live);
  bool ok = compile_all(b, c, params, live, results);
  b->param = callers;
  b->depth--;
  kl_free(b->ev->cx, live, c->ninstr);
  kl_free(b->ev->cx, param, sizeof *param * (c->nparams + 1u));
  return ok;
}

static size_t take_leaves(kl_ev *ev, const kl_shape *s, const kl_shape **out) {
  size_t n = kl_shape_leaf_count(s);
  for (size_t k = 0; k < n && out; k++) out[k] = kl_shape_leaf(s, k);
  return n;
}

static void find_leaves(kl_ev *ev, kl_ev_program *p) {
  const kl_comp *c = &ev->m->comp[p->comp];
  for (uint32_t k = 0; k < c->nparams; k++) p->nparams += take_leaves(ev, c->instr[c->params[k]].shape, NULL);
  p->nresults = take_leaves(ev, kl_root(c)->shape, NULL);
  p->param = kl_alloc(ev->cx, sizeof *p->param * (p->nparams + 1));
  p->result = kl_alloc(ev->cx, sizeof *p->result * (p->nresults + 1));
  p->result_reg = kl_alloc(ev->cx, sizeof(uint32_t) * (p->nresults + 1));
  size_t n = 0;
  for (uint32_t k = 0; k < c->nparams; k++) n += take_leaves(ev, c->instr[c->params[k]].shape, p->param + n);
  take_leaves(ev, kl_root(c)->shape, p->result);
}

static kl_ev_program *new_program(kl_ev *ev, uint32_t comp) {
  kl_ev_program *p = kl_alloc(ev->cx, sizeof *p);
  p->ev = *ev;
  p->ev.threads = 1;
  p->ev.depth++;
  p->comp = comp;
  p->exact = true;
  pthread_mutex_init(&p->lock, NULL);
  find_leaves(ev, p);
  return p;
}

// All parameters and results have the dimensions of `whole`.
static bool is_uniform(const kl_ev_program *p, const kl_shape *whole) {
  bool ok = true;
  for (size_t k = 0; k < p->nparams; k++)
    ok &= kl_shape_is_array(p->param[k]) && kl_shape_same_dims(p->param[k], whole);
  for (size_t k = 0; k < p->nresults; k++)
    ok &= kl_shape_is_array(p->result[k]) && kl_shape_same_dims(p->result[k], whole);
  return ok;
}

static void compile_program(kl_ev *ev, kl_ev_program *p, const kl_shape *whole) {
  uint32_t *params = kl_alloc(ev->cx, sizeof(uint32_t) * (p->nparams + 1));
  builder b = {ev, p, 0, whole, NULL};
  for (size_t k = 0; k < p->nparams; k++)
    params[k] = add_reg(&b, (reg){REG_PARAM, p->param[k]->dtype, (uint32_t)k, NULL, false});
  p->serial = !compile(&b, p->comp, params, p->result_reg);
  p->exact &= !p->serial;
  kl_free(ev->cx, params, sizeof(uint32_t) * (p->nparams + 1));
}

kiln_status kl_ev_program_new(kl_ev *ev, uint32_t comp, kl_ev_program **out) {
  kl_ev_program *p = new_program(ev, comp);
  const kl_shape scalar = {.count = 1};
  if (!is_uniform(p, &scalar)) {
    kl_ev_program_free(ev, p);
    return kl_unsupported(ev->cx, ev->m->comp[comp].span, "no evaluation of a computation on arrays for each element");
  }
  compile_program(ev, p, &scalar);
  *out = p;
  return KILN_OK;
}

kl_ev_program *kl_ev_program_of_arrays(kl_ev *ev, uint32_t comp) {
  kl_ev_program *p = new_program(ev, comp);
  const kl_shape *whole = p->nparams ? p->param[0] : NULL;
  bool uniform = whole && is_uniform(p, whole);
  if (uniform) compile_program(ev, p, whole);
  if (uniform && !p->serial) return p;
  kl_ev_program_free(ev, p);
  return NULL;
}

void kl_ev_program_free(kl_ev *ev, kl_ev_program *p) {
  if (!p) return;
  VEC_FREE(ev->cx, &p->regs);
  VEC_FREE(ev->cx, &p->steps);
  kl_free(ev->cx, p->result_reg, sizeof(uint32_t) * (p->nresults + 1));
  kl_free(ev->cx, p->result, sizeof *p->result * (p->nresults + 1));
  kl_free(ev->cx, p->param, sizeof *p->param * (p->nparams + 1));
  pthread_mutex_destroy(&p->lock);
  kl_free(ev->cx, p, sizeof *p);
}

bool kl_ev_program_exact(const kl_ev_program *p) {
  return p->exact;
}

bool kl_ev_program_reads_bits(const kl_ev_program *p) {
  for (size_t k = 0; k < p->steps.n; k++) {
    const kl_ew *e = &p->steps.p[k].e;
    bool total = e->op == KL_OP_COMPARE && e->compare == KL_CMP_TOTALORDER;
    if (e->op == KL_OP_BITCAST_CONVERT || total) return true;
  }
  return p->serial;
}

// --- what a program is --------------------------------------------------------------------------------------------

// Does every value of `from` convert to `to` and back unchanged?
static bool widens(kl_dtype from, kl_dtype to) {
  const kl_dtype_info *f = kl_info(from), *t = kl_info(to);
  if (f->cls != t->cls || from == to) return false;
  if (f->cls != KL_CLASS_FLOAT) return (kl_is_int(from) && t->bits > f->bits) || from == KILN_C64;
  bool plain = t->kind == KL_IEEE && f->kind != KL_E8M0;
  int low = 1 - f->bias - f->man_bits; // exponent of the least denormal
  return plain && t->man_bits >= f->man_bits && t->bias >= f->bias && 1 - t->bias - t->man_bits <= low;
}

static const step *step_of(const kl_ev_program *p, uint32_t r) {
  return p->regs.p[r].kind == REG_STEP ? &p->steps.p[p->regs.p[r].index] : NULL;
}

// The register behind a widening conversion; r itself where there is none.
static uint32_t narrow_source(const kl_ev_program *p, uint32_t r) {
  const step *s = step_of(p, r);
  return s && s->e.op == KL_OP_CONVERT && widens(s->e.in[0], s->e.out) ? s->in[0] : r;
}

static bool combines(kl_op op) {
  return op == KL_OP_ADD || op == KL_OP_MULTIPLY || op == KL_OP_MAXIMUM || op == KL_OP_MINIMUM || op == KL_OP_AND ||
         op == KL_OP_OR || op == KL_OP_XOR;
}

bool kl_ev_program_combines(const kl_ev_program *p, size_t result, size_t first, size_t second, kl_op *op) {
  if (p->serial || result >= p->nresults || first >= p->nparams || second >= p->nparams) return false;
  const step *s = step_of(p, p->result_reg[result]);
  bool narrows = s && s->e.op == KL_OP_CONVERT && widens(s->e.out, s->e.in[0]);
  if (narrows) s = step_of(p, s->in[0]);
  if (!s || !combines(s->e.op)) return false;
  uint32_t a = narrows ? narrow_source(p, s->in[0]) : s->in[0], b = narrows ? narrow_source(p, s->in[1]) : s->in[1];
  *op = s->e.op;
  bool same_type = p->regs.p[first].dtype == p->result[result]->dtype;
  return same_type && ((a == first && b == second) || (a == second && b == first));
}

bool kl_ev_program_combiner(const kl_ev_program *p, size_t i, kl_op *op) {
  return p->nparams == 2 * p->nresults && kl_ev_program_combines(p, i, i, i + p->nresults, op);
}

// --- registers ----------------------------------------------------------------------------------------------------

// Planes of a register lie one after the other, each of `lanes` elements rounded up to 16 bytes.
static size_t plane_size(size_t element, int64_t lanes) {
  return ((size_t)lanes * element + 15) / 16 * 16;
}

static size_t register_bytes(const kl_ev_program *p, int64_t lanes, bool intervals) {
  size_t n = 0;
  for (size_t k = 0; k < p->regs.n; k++) {
    if (p->regs.p[k].kind == REG_PARAM) continue;
    size_t plane = plane_size(kl_ev_size(p->regs.p[k].dtype), lanes);
    bool all = intervals && p->regs.p[k].kind == REG_STEP;
    n += all ? 3 * plane + plane_size(1, lanes) : plane;
  }
  return n;
}

static void fill_constant(const reg *r, int64_t lanes, char *to) {
  size_t size = kl_ev_size(r->dtype);
  for (int64_t i = 0; i < lanes; i++) memcpy(to + (size_t)i * size, r->value, size);
}

static void place(const kl_ev_program *p, kl_ev_regs *r, bool intervals) {
  char *next = r->memory;
  for (size_t k = 0; k < p->regs.n; k++) {
    const reg *g = &p->regs.p[k];
    if (g->kind == REG_PARAM) continue;
    size_t plane = plane_size(kl_ev_size(g->dtype), r->lanes);
    kl_iv_out *home = &r->home[k];
    *home = (kl_iv_out){next, next, next, NULL};
    next += plane;
    if (intervals && g->kind == REG_STEP) {
      home->lo = next;
      home->hi = next + plane;
      home->any = (uint8_t *)next + 2 * plane;
      next += 2 * plane + plane_size(1, r->lanes);
    }
    if (g->kind == REG_CONSTANT) fill_constant(g, r->lanes, home->data);
    r->at[k] = (kl_iv_in){home->data, home->data, home->data, NULL};
  }
}

kl_ev_regs *kl_ev_regs_new(kl_ev *ev, const kl_ev_program *p, int64_t lanes) {
  kl_ev_regs *r = kl_alloc(ev->cx, sizeof *r);
  r->lanes = lanes < 1 ? 1 : lanes < KL_EV_CHUNK ? lanes : KL_EV_CHUNK;
  while (r->lanes > 1 && register_bytes(p, r->lanes, ev->intervals) > REGISTER_BYTES) r->lanes /= 2;
  r->size = register_bytes(p, r->lanes, ev->intervals) + 1;
  r->n = (uint32_t)(p->regs.n > p->nresults ? p->regs.n : p->nresults);
  r->at = kl_alloc(ev->cx, sizeof *r->at * (r->n + 1u));
  r->home = kl_alloc(ev->cx, sizeof *r->home * (r->n + 1u));
  r->memory = kl_try_alloc(ev->cx, r->size);
  r->scratch = r->memory && ev->intervals ? kl_try_alloc(ev->cx, kl_iv_scratch_size) : NULL;
  if (!r->memory || (ev->intervals && !r->scratch)) {
    kl_out_of_memory(ev->cx, r->size + kl_iv_scratch_size, "registers");
    kl_ev_regs_free(ev, r);
    return NULL;
  }
  place(p, r, ev->intervals);
  return r;
}

void kl_ev_regs_free(kl_ev *ev, kl_ev_regs *r) {
  if (!r) return;
  kl_free(ev->cx, r->scratch, kl_iv_scratch_size);
  kl_free(ev->cx, r->memory, r->size);
  kl_free(ev->cx, r->home, sizeof *r->home * (r->n + 1u));
  kl_free(ev->cx, r->at, sizeof *r->at * (r->n + 1u));
  kl_free(ev->cx, r, sizeof *r);
}

// --- running ------------------------------------------------------------------------------------------------------

static void run_steps(const kl_ev_program *p, kl_ev_regs *r, int64_t n) {
  for (size_t k = 0; k < p->steps.n; k++) {
    const step *s = &p->steps.p[k];
    const void *in[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < s->e.nin; i++) in[i] = r->at[s->in[i]].data;
    s->e.run(&s->e, n, in, r->home[s->out].data);
  }
}

// One parameter of one lane. The buffers outlive the evaluation, which counts references to them.
static kl_evval borrow_lane(const kl_shape *s, const kl_iv_in *in, int64_t lane, kl_evbuf buffers[KL_EV_PLANES]) {
  const void *plane[KL_EV_PLANES] = {in->data, in->lo, in->hi, in->any};
  kl_evval v = {.shape = s};
  for (int k = 0; k < KL_EV_PLANES; k++) {
    size_t size = k == KL_EV_ANY ? 1 : kl_ev_size(s->dtype);
    buffers[k] = (kl_evbuf){plane[k] ? (char *)plane[k] + (size_t)lane * size : NULL, 0, UINT32_MAX / 2, false};
    bool same = k != KL_EV_ANY && plane[k] == plane[KL_EV_DATA];
    v.plane[k] = !plane[k] ? NULL : same ? &buffers[KL_EV_DATA] : &buffers[k];
  }
  return v;
}

static void store_lane(const kl_evval *v, int64_t lane, const kl_iv_out *out) {
  size_t size = kl_ev_size(v->shape->dtype), at = (size_t)lane * size;
  memcpy(out->data + at, kl_ev_plane(v, KL_EV_DATA), size);
  if (!out->lo) return;
  memcpy(out->lo + at, kl_ev_plane(v, KL_EV_LO), size);
  memcpy(out->hi + at, kl_ev_plane(v, KL_EV_HI), size);
  out->any[lane] = v->plane[KL_EV_ANY] ? *(uint8_t *)kl_ev_plane(v, KL_EV_ANY) : 0;
}

static kiln_status run_lane(kl_ev *ev, const kl_ev_program *p, int64_t lane, const kl_iv_in *params,
                            const kl_iv_out *results) {
  kl_evval *in = kl_alloc(ev->cx, sizeof(kl_evval) * (p->nparams + 1));
  kl_evval *out = kl_alloc(ev->cx, sizeof(kl_evval) * (p->nresults + 1));
  kl_evbuf(*buffers)[KL_EV_PLANES] = kl_alloc(ev->cx, sizeof *buffers * (p->nparams + 1));
  for (size_t k = 0; k < p->nparams; k++) in[k] = borrow_lane(p->param[k], &params[k], lane, buffers[k]);
  kiln_status status = kl_ev_computation(ev, p->comp, in, out);
  for (size_t k = 0; k < p->nresults && status == KILN_OK; k++) {
    store_lane(&out[k], lane, &results[k]);
    kl_ev_free(ev, &out[k]);
  }
  kl_free(ev->cx, buffers, sizeof *buffers * (p->nparams + 1));
  kl_free(ev->cx, out, sizeof(kl_evval) * (p->nresults + 1));
  kl_free(ev->cx, in, sizeof(kl_evval) * (p->nparams + 1));
  return status;
}

// The context serves one thread at a time, so that workers take turns.
static kiln_status run_serial(const kl_ev_program *p, int64_t n, const kl_iv_in *params, const kl_iv_out *results,
                              bool intervals) {
  kl_ev ev = p->ev;
  ev.intervals = intervals;
  kiln_status status = KILN_OK;
  pthread_mutex_lock((pthread_mutex_t *)&p->lock);
  for (int64_t i = 0; i < n && status == KILN_OK; i++) status = run_lane(&ev, p, i, params, results);
  pthread_mutex_unlock((pthread_mutex_t *)&p->lock);
  return status;
}

kiln_status kl_ev_program_run(const kl_ev_program *p, kl_ev_regs *r, int64_t n, const void *const *params,
                              void *const *results) {
  if (p->serial) {
    for (size_t k = 0; k < p->nparams; k++) r->at[k] = (kl_iv_in){params[k], params[k], params[k], NULL};
    for (size_t k = 0; k < p->nresults; k++) r->home[k] = (kl_iv_out){results[k], NULL, NULL, NULL};
    return run_serial(p, n, r->at, r->home, false);
  }
  for (int64_t at = 0; at < n; at += r->lanes) {
    int64_t lanes = n - at < r->lanes ? n - at : r->lanes;
    for (size_t k = 0; k < p->nparams; k++)
      r->at[k].data = (const char *)params[k] + (size_t)at * kl_ev_size(p->param[k]->dtype);
    run_steps(p, r, lanes);
    for (size_t k = 0; k < p->nresults; k++) {
      size_t size = kl_ev_size(p->result[k]->dtype);
      memcpy((char *)results[k] + (size_t)at * size, r->at[p->result_reg[k]].data, (size_t)lanes * size);
    }
  }
  return KILN_OK;
}

// --- running with intervals ---------------------------------------------------------------------------------------

static bool closed(const uint8_t *any, int64_t n) {
  return !any || !memchr(any, 1, (size_t)n);
}

static bool is_exact(const kl_iv_in *v) {
  return v->lo == v->data && v->hi == v->data && !v->any;
}

// As an interval of values is no interval of bits, and computed NaNs do not promise theirs, anything but a point opens.
static void bits_interval(const step *s, int64_t n, const kl_iv_in *in, const kl_iv_out *out) {
  kl_dtype t = s->e.in[0], part = kl_is_complex(t) ? kl_info(t)->part : t;
  size_t size = kl_ev_size(t), bytes = (size_t)n * kl_ev_size(s->e.out);
  run_bits(&s->e, n, (const void *const[3]){in->data, NULL, NULL}, out->data);
  memcpy(out->lo, out->data, bytes);
  memcpy(out->hi, out->data, bytes);
  for (int64_t i = 0; i < n; i++) {
    size_t at = (size_t)i * size;
    bool open = (in->any && in->any[i]) || memcmp(in->lo + at, in->hi + at, size);
    for (int lane = 0; lane < (kl_is_complex(t) ? 2 : 1) && s->nan_open[0] && !open; lane++)
      open = kl_float_is_nan(part, kl_element_get(t, in->data, i, lane));
    out->any[i] = open;
  }
}

// Computes the step's register, as exact as it turns out to be.
static void run_step_interval(const step *s, kl_ev_regs *r, int64_t n) {
  bool exact = !kl_iv_widens(&s->e), nan_open = false;
  bool bits = s->e.op == KL_OP_BITCAST_CONVERT || (s->e.op == KL_OP_COMPARE && s->e.compare == KL_CMP_TOTALORDER);
  kl_iv_in in[3] = {{0}, {0}, {0}};
  const void *data[3] = {NULL, NULL, NULL};
  for (uint32_t k = 0; k < s->e.nin; k++) {
    in[k] = r->at[s->in[k]];
    data[k] = in[k].data;
    exact &= is_exact(&in[k]);
    nan_open |= s->nan_open[k];
  }
  const kl_iv_out *home = &r->home[s->out];
  r->at[s->out] = (kl_iv_in){home->data, home->data, home->data, NULL};
  if (exact && !(nan_open && bits)) {
    s->e.run(&s->e, n, data, home->data);
    return;
  }
  if (s->e.op == KL_OP_BITCAST_CONVERT)
    bits_interval(s, n, in, home);
  else
    kl_iv_run(&s->e, r->scratch, n, in, s->nan_open, home);
  size_t bytes = (size_t)n * kl_ev_size(s->e.out);
  if (memcmp(home->lo, home->data, bytes)) r->at[s->out].lo = home->lo;
  if (memcmp(home->hi, home->data, bytes)) r->at[s->out].hi = home->hi;
  if (!closed(home->any, n)) r->at[s->out].any = home->any;
}

static kl_iv_in part_of(const kl_iv_in *v, kl_dtype t, int64_t at) {
  size_t offset = (size_t)at * kl_ev_size(t);
  return (kl_iv_in){v->data + offset, v->lo + offset, v->hi + offset, v->any ? v->any + at : NULL};
}

static void store_result(const kl_iv_in *v, kl_dtype t, const kl_iv_out *out, int64_t at, int64_t n) {
  size_t size = kl_ev_size(t), offset = (size_t)at * size, bytes = (size_t)n * size;
  memcpy(out->data + offset, v->data, bytes);
  memcpy(out->lo + offset, v->lo, bytes);
  memcpy(out->hi + offset, v->hi, bytes);
  if (v->any)
    memcpy(out->any + at, v->any, (size_t)n);
  else
    memset(out->any + at, 0, (size_t)n);
}

kiln_status kl_ev_program_run_iv(const kl_ev_program *p, kl_ev_regs *r, int64_t n, const kl_iv_in *params,
                                 const kl_iv_out *results) {
  if (p->serial) return run_serial(p, n, params, results, true);
  for (int64_t at = 0; at < n; at += r->lanes) {
    int64_t lanes = n - at < r->lanes ? n - at : r->lanes;
    for (size_t k = 0; k < p->nparams; k++) r->at[k] = part_of(&params[k], p->param[k]->dtype, at);
    for (size_t k = 0; k < p->steps.n; k++) run_step_interval(&p->steps.p[k], r, lanes);
    for (size_t k = 0; k < p->nresults; k++)
      store_result(&r->at[p->result_reg[k]], p->result[k]->dtype, &results[k], at, lanes);
  }
  return KILN_OK;
}
