// dot, ragged-dot and scaled-dot: rows, columns and depth of a contraction as tables of offsets into the operands.
#include "eval/fold/contract.h"

// Names by kl_dot_algorithm_names.
typedef enum algorithm {
  ALG_UNSET,
  ALG_F8_F32,
  ALG_F8_F32_FAST,
  ALG_F8_ANY,
  ALG_F8_ANY_FAST,
  ALG_F16_F16,
  ALG_F16_F32,
  ALG_BF16_BF16,
  ALG_BF16_F32,
  ALG_BF16_X3,
  ALG_BF16_X6,
  ALG_BF16_X9,
  ALG_TF32,
  ALG_TF32_X3,
  ALG_F32,
  ALG_F64,
} algorithm;

// What an algorithm adds to the error. Operands are rounded to a narrower type, to nearest or by dropping bits: twice
// 2^-man of each product. Split into parts, products of the smallest parts are left out. Fast accumulation keeps 13
// bits.
typedef struct algorithm_row {
  kl_dtype acc, operand;
  double extra, per_term;
} algorithm_row;
// clang-format off
static const algorithm_row algorithms[] = {
    //                   accumulated in     operands rounded to  error of products   of each addition
    [ALG_UNSET]       = {KILN_DTYPE_NONE,   KILN_DTYPE_NONE,     0,                  0},
    [ALG_F8_F32]      = {KILN_F32,          KILN_DTYPE_NONE,     0,                  0},
    [ALG_F8_F32_FAST] = {KILN_F32,          KILN_DTYPE_NONE,     0,                  0x1p-13},
    [ALG_F8_ANY]      = {KILN_DTYPE_NONE,   KILN_DTYPE_NONE,     0,                  0},
    [ALG_F8_ANY_FAST] = {KILN_DTYPE_NONE,   KILN_DTYPE_NONE,     0,                  0x1p-13},
    [ALG_F16_F16]     = {KILN_F16,          KILN_F16,            0x1.01p-9,          0},
    [ALG_F16_F32]     = {KILN_F32,          KILN_F16,            0x1.01p-9,          0},
    [ALG_BF16_BF16]   = {KILN_BF16,         KILN_BF16,           0x1.02p-6,          0},
    [ALG_BF16_F32]    = {KILN_F32,          KILN_BF16,           0x1.02p-6,          0},
    [ALG_BF16_X3]     = {KILN_F32,          KILN_BF16,           0x1p-13,            0x1p-22},
    [ALG_BF16_X6]     = {KILN_F32,          KILN_BF16,           0x1p-20,            0x1p-21},
    [ALG_BF16_X9]     = {KILN_F32,          KILN_BF16,           0x1p-22,            0x1p-20},
    [ALG_TF32]        = {KILN_F32,          KILN_F32,            0x1.01p-9,          0},
    [ALG_TF32_X3]     = {KILN_F32,          KILN_F32,            0x1p-18,            0x1p-22},
    [ALG_F32]         = {KILN_F32,          KILN_F32,            0,                  0},
    [ALG_F64]         = {KILN_F64,          KILN_F64,            0,                  0},
};
// clang-format on

static kl_dtype part_of(kl_dtype t) {
  return kl_is_complex(t) ? kl_info(t)->part : t;
}

// Does every value of the type survive being rounded to f?
static bool survives(kl_dtype t, kl_dtype f, bool tf32) {
  int man = tf32 ? 10 : kl_info(f)->man_bits;
  return !kl_is_float(t) || (kl_info(t)->man_bits <= man && kl_info(t)->exp_bits <= kl_info(f)->exp_bits);
}

static void apply_algorithm(const kl_instr *in, kl_contraction *c) {
  algorithm a = (algorithm)in->more->algorithm;
  if (a == ALG_UNSET || a >= (int)KL_COUNT(algorithms)) return;
  const algorithm_row *r = &algorithms[a];
  kl_dtype x = part_of(c->lhs.v->shape->dtype), y = part_of(c->rhs.v->shape->dtype);
  bool tf32 = a == ALG_TF32 || a == ALG_TF32_X3;
  if (r->acc != KILN_DTYPE_NONE) c->acc = r->acc;
  c->per_term = r->per_term;
  if (r->operand == KILN_DTYPE_NONE || (survives(x, r->operand, tf32) && survives(y, r->operand, tf32))) return;
  c->extra = r->extra;
  if (r->extra > 0) c->narrow = r->operand;
}

// --- offsets ------------------------------------------------------------------------------------------------------

// Linear offsets of all elements over some dimensions, the first one slowest.
typedef struct offsets {
  int64_t n, *at;
  size_t bytes;
} offsets;

static bool contains(kl_ints list, int64_t d) {
  for (uint32_t k = 0; k < list.n; k++)
    if (list.p[k] == d) return true;
  return false;
}

static kiln_status make_offsets(kl_ev *ev, const kl_shape *s, kl_ints dims, offsets *out) {
  int64_t strides[KILN_MAX_RANK], n = 1, bytes;
  kl_ev_strides(s, strides);
  bool fits = true;
  for (uint32_t k = 0; k < dims.n; k++) fits &= !__builtin_mul_overflow(n, s->dims[dims.p[k]], &n);
  fits &= !__builtin_mul_overflow(n + 1, (int64_t)sizeof(int64_t), &bytes);
  *out = (offsets){n, fits ? kl_try_alloc(ev->cx, (size_t)bytes) : NULL, fits ? (size_t)bytes : 0};
  if (!out->at) return kl_out_of_memory(ev->cx, fits ? (size_t)bytes : SIZE_MAX, "the indices of a dot");
  int64_t filled = 1;
  for (uint32_t k = n ? dims.n : 0; k-- > 0;) { // no elements, no offsets: other extents may still be large
    int64_t extent = s->dims[dims.p[k]], stride = strides[dims.p[k]];
    for (int64_t i = extent; i-- > 0;)
      for (int64_t j = filled; j-- > 0;) out->at[i * filled + j] = out->at[j] + i * stride;
    filled *= extent;
  }
  return KILN_OK;
}

static void free_offsets(kl_ev *ev, offsets *o) {
  kl_free(ev->cx, o->at, o->bytes);
  *o = (offsets){0};
}

// The dimensions that are in none of the three lists.
static kl_ints free_dims(const kl_shape *s, kl_ints a, kl_ints b, kl_ints c, int64_t storage[KILN_MAX_RANK]) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < s->rank; d++)
    if (!contains(a, d) && !contains(b, d) && !contains(c, d)) storage[n++] = d;
  return (kl_ints){n, storage};
}

typedef struct operand {
  offsets batch, rows, depth, group;
} operand;

static void free_operand(kl_ev *ev, operand *o) {
  free_offsets(ev, &o->batch);
  free_offsets(ev, &o->rows);
  free_offsets(ev, &o->depth);
  free_offsets(ev, &o->group);
}

static kiln_status make_operand(kl_ev *ev, const kl_shape *s, kl_ints batch, kl_ints contracting, kl_ints group,
                                operand *out) {
  int64_t storage[KILN_MAX_RANK];
  *out = (operand){{0}, {0}, {0}, {0}};
  kiln_status status = make_offsets(ev, s, batch, &out->batch);
  if (status == KILN_OK) status = make_offsets(ev, s, contracting, &out->depth);
  if (status == KILN_OK) status = make_offsets(ev, s, free_dims(s, batch, contracting, group, storage), &out->rows);
  if (status == KILN_OK) status = make_offsets(ev, s, group, &out->group);
  if (status != KILN_OK) free_operand(ev, out);
  return status;
}

// --- one contraction ----------------------------------------------------------------------------------------------

typedef struct side_offsets {
  const int64_t *rows, *depth;
  int64_t base, n;
} side_offsets;

static void index_side(const void *arg, int64_t i, int64_t *at) {
  const side_offsets *o = arg;
  int64_t base = o->base + o->rows[i];
  for (int64_t k = 0; k < o->n; k++) at[k] = base + o->depth[k];
}

typedef struct dot {
  const kl_instr *in;
  const kl_evval *lhs, *rhs;
  operand l, r;
  offsets out_rows, out_columns;
  kl_evval *out;
} dot;

// Result [at + i * columns + j] of rows [row, row + rows) and depth [first, first + depth).
typedef struct piece {
  int64_t lhs_base, rhs_base, at, row, rows, first, depth;
} piece;

static kiln_status run_piece(kl_ev *ev, const dot *d, const piece *p) {
  side_offsets l = {d->l.rows.at + p->row, d->l.depth.at + p->first, p->lhs_base, p->depth};
  side_offsets r = {d->r.rows.at, d->r.depth.at + p->first, p->rhs_base, p->depth};
  kl_contraction c = {.lhs = {d->lhs, index_side, &l, p->rows},
                      .rhs = {d->rhs, index_side, &r, d->r.rows.n},
                      .depth = p->depth,
                      .t = d->in->shape->dtype,
                      .row_at = d->out_rows.at,
                      .col_at = d->out_columns.at};
  c.acc = kl_accumulation_type(d->lhs->shape->dtype, d->rhs->shape->dtype, c.t);
  c.sum = c.acc;
  apply_algorithm(d->in, &c);
  if (c.acc == KILN_F64) c.sum = KILN_F64;
  for (int64_t i = 0; i < p->rows; i++) d->out_rows.at[i] = p->at + i * d->r.rows.n;
  return kl_contract(ev, &c, d->out);
}

// Tables of the result, whose rows are filled in piece by piece.
static kiln_status make_result(kl_ev *ev, dot *d) {
  kl_shape line = {.rank = 1, .dims = &d->l.rows.n};
  const int64_t zero = 0;
  kl_ints all = {1, &zero};
  KL_TRY(make_offsets(ev, &line, all, &d->out_rows));
  line.dims = &d->r.rows.n;
  KL_TRY(make_offsets(ev, &line, all, &d->out_columns));
  bool rounds = kl_is_float(d->in->shape->dtype) || kl_is_complex(d->in->shape->dtype);
  bool inexact = ev->intervals && (rounds || !kl_ev_exact(d->lhs) || !kl_ev_exact(d->rhs));
  return kl_ev_new(ev, d->in->shape, false, inexact, d->out);
}

static kiln_status run_batches(kl_ev *ev, const dot *d) {
  int64_t size = d->l.rows.n * d->r.rows.n;
  kiln_status status = KILN_OK;
  for (int64_t b = 0; b < d->l.batch.n && status == KILN_OK; b++)
    status = run_piece(ev, d, &(piece){d->l.batch.at[b], d->r.batch.at[b], b * size, 0, d->l.rows.n, 0, d->l.depth.n});
  return status;
}

// --- ragged -------------------------------------------------------------------------------------------------------

// Sizes of the groups of batch b, cut off at `most`. There is one list for all batches, or one for each.
static int64_t group_size(const kl_evval *sizes, int64_t groups, int64_t b, int64_t g, int64_t most) {
  int64_t i = sizes->shape->count > groups ? b * groups + g : g;
  kl_dtype t = sizes->shape->dtype;
  int64_t n = kl_int_decode(t, kl_element_get(t, kl_ev_plane(sizes, KL_EV_DATA), kl_ev_single(sizes) ? 0 : i, 0));
  return n < 0 && t != KILN_U64 ? 0 : n < 0 || n > most ? most : n;
}

// The ragged dimension may be one of several; those before it are like batches, those after it part of a row.
static kiln_status run_ragged(kl_ev *ev, const dot *d, const kl_evval *sizes, int64_t groups, bool contracting) {
  int64_t size = d->l.rows.n * d->r.rows.n, whole = contracting ? d->l.depth.n : d->l.rows.n;
  kiln_status status = KILN_OK;
  for (int64_t b = 0; b < d->l.batch.n; b++) {
    int64_t from = 0;
    for (int64_t g = 0; g < groups && status == KILN_OK; g++) {
      int64_t n = group_size(sizes, groups, b, g, whole - from);
      piece p = {d->l.batch.at[b], d->r.batch.at[b], (g * d->l.batch.n + b) * size, 0, d->l.rows.n, from, n};
      if (!contracting)
        p = (piece){d->l.batch.at[b], d->r.batch.at[b] + d->r.group.at[g], b * size + from * d->r.rows.n, from, n, 0,
                    d->l.depth.n};
      status = run_piece(ev, d, &p);
      from += n;
    }
  }
  return status;
}

static void zero_result(kl_evval *out) {
  size_t n = (size_t)out->shape->count;
  for (int plane = 0; plane < KL_EV_PLANES; plane++)
    if (out->plane[plane])
      memset(out->plane[plane]->p, 0, n * (plane == KL_EV_ANY ? 1 : kl_ev_size(out->shape->dtype)));
}

static kiln_status ragged(kl_ev *ev, dot *d, const kl_evval *sizes) {
  const kl_instr *in = d->in;
  const kl_more *m = in->more;
  int64_t dim = m->lhs_ragged.n == 1 ? m->lhs_ragged.p[0] : -1;
  bool contracting = contains(m->lhs_contracting, dim);
  if (dim < 0) return kl_ev_refuse(ev, in, "more than one ragged dimension");
  if (contains(m->lhs_batch, dim)) return run_batches(ev, d);
  const kl_shape *s = sizes->shape;
  int64_t groups = s->rank ? s->dims[s->rank - 1] : 1;
  bool listed = s->count == groups || s->count == groups * d->l.batch.n;
  int64_t storage[KILN_MAX_RANK];
  kl_ints none = {0, NULL}, rows = free_dims(d->lhs->shape, m->lhs_batch, m->lhs_contracting, none, storage);
  bool alone = contracting ? m->lhs_contracting.n == 1 : rows.n == 1;
  if (!listed || !alone || (!contracting && groups > d->r.group.n))
    return kl_ev_refuse(ev, in, "group sizes other than one list, or one for each batch, of a dimension by itself");
  zero_result(d->out);
  KL_TRY(run_ragged(ev, d, sizes, groups, contracting));
  return kl_ev_exact(sizes) ? KILN_OK : kl_ev_open(ev, d->out);
}

// --- scaled -------------------------------------------------------------------------------------------------------

static kl_dtype common_type(kl_dtype a, kl_dtype b) {
  uint8_t x = kl_info(a)->bits, y = kl_info(b)->bits;
  if (x < 16 && y < 16) return KILN_BF16;
  if (a == b) return a;
  return x == y ? KILN_F32 : x > y ? a : b;
}

// Each scale stands for a block of the operand.
static kiln_status spread(kl_ev *ev, const kl_instr *in, const kl_evval *scale, const kl_shape *s, kl_evval *out) {
  int64_t strides[KILN_MAX_RANK], to[KILN_MAX_RANK];
  const kl_shape *from = scale->shape;
  bool same = from->rank == s->rank, single = kl_ev_single(scale);
  kl_ev_strides(s, to);
  kl_ev_strides(from, strides);
  for (uint32_t d = 0; d < s->rank && same; d++) same = from->dims[d] > 0 && s->dims[d] % from->dims[d] == 0;
  if (!same && from->count != 1 && s->count) return kl_ev_refuse(ev, in, "scales that do not divide their operand");
  kl_ev_walk w = {0};
  for (uint32_t d = 0; d < s->rank; d++) {
    int64_t blocks = single || !same ? 1 : from->dims[d], block = s->dims[d] / blocks;
    kl_ev_walk_add(&w, blocks, single ? 0 : strides[d], block * to[d]);
    kl_ev_walk_add(&w, block, 0, to[d]);
  }
  KL_TRY(kl_ev_new(ev, s, false, !kl_ev_exact(scale), out));
  kl_ev_copy_planes(ev, &w, scale, out);
  return KILN_OK;
}

// operand * scale, in the wider type of both, bf16 at least. `s` becomes the result's shape.
static kiln_status dequantize(kl_ev *ev, const kl_instr *in, const kl_evval *operand, const kl_evval *scale,
                              kl_shape *s, kl_evval *out) {
  kl_evval x = {0}, y = {0}, full = {0};
  kl_shape scales = *operand->shape;
  *s = scales;
  s->dtype = common_type(operand->shape->dtype, scale->shape->dtype);
  scales.dtype = scale->shape->dtype;
  kiln_status status = spread(ev, in, scale, &scales, &full);
  if (status == KILN_OK) status = kl_ev_apply_op(ev, KL_OP_CONVERT, s, operand, NULL, &x);
  if (status == KILN_OK) status = kl_ev_apply_op(ev, KL_OP_CONVERT, s, &full, NULL, &y);
  if (status == KILN_OK) status = kl_ev_apply_op(ev, KL_OP_MULTIPLY, s, &x, &y, out);
  kl_ev_free(ev, &full);
  kl_ev_free(ev, &x);
  kl_ev_free(ev, &y);
  return status;
}

// --- all of them --------------------------------------------------------------------------------------------------

static kiln_status evaluate(kl_ev *ev, dot *d, const kl_evval *sizes) {
  const kl_more *m = d->in->more;
  kl_ints none = {0, NULL}, group = d->in->op == KL_OP_RAGGED_DOT ? m->rhs_group : none;
  KL_TRY(make_operand(ev, d->lhs->shape, m->lhs_batch, m->lhs_contracting, none, &d->l));
  KL_TRY(make_operand(ev, d->rhs->shape, m->rhs_batch, m->rhs_contracting, group, &d->r));
  KL_TRY(make_result(ev, d));
  KL_TRY(d->in->op == KL_OP_RAGGED_DOT ? ragged(ev, d, sizes) : run_batches(ev, d));
  kl_ev_settle(ev, d->out);
  return KILN_OK;
}

static kiln_status run_dot(kl_ev *ev, const kl_instr *in, const kl_evval *lhs, const kl_evval *rhs,
                           const kl_evval *sizes, kl_evval *out) {
  dot d = {.in = in, .lhs = lhs, .rhs = rhs, .out = out};
  kiln_status status = evaluate(ev, &d, sizes);
  free_operand(ev, &d.l);
  free_operand(ev, &d.r);
  free_offsets(ev, &d.out_rows);
  free_offsets(ev, &d.out_columns);
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}

kiln_status kl_ev_dot(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  if (in->op != KL_OP_SCALED_DOT)
    return run_dot(ev, in, operands[0], operands[1], in->op == KL_OP_RAGGED_DOT ? operands[2] : NULL, out);
  kl_evval x = {0}, y = {0};
  kl_shape left, right;
  kiln_status status = dequantize(ev, in, operands[0], operands[2], &left, &x);
  if (status == KILN_OK) status = dequantize(ev, in, operands[1], operands[3], &right, &y);
  if (status == KILN_OK) status = run_dot(ev, in, &x, &y, NULL, out);
  kl_ev_free(ev, &x);
  kl_ev_free(ev, &y);
  return status;
}
