// Ops that are written out in others: random shapes, layouts, types and attributes. The evaluator, which means each of
// these ops by itself, judges, on the host and on the simulator, which must have the same bits; PTX goes through ptxas.
//
// KILN_EXPAND_SEED runs one seed alone and prints its text.
#include "drawn.h"

#include <stdlib.h>

// --- random bits ----------------------------------------------------------------------------------------------------

static bool has_random_bits(kl_dtype t) {
  return kl_is_int(t) || kl_is_float(t);
}

// Results are the state and bits, or something of the bits.
static void draw_bits(drawn *d, kl_sb *calls, kl_dtype first) {
  static const char *const algorithms[] = {"rng_default", "rng_philox", "rng_three_fry"};
  (void)calls;
  kl_dtype t = has_random_bits(first) ? first : draw_type(has_random_bits);
  unsigned algorithm = below(3), words = algorithm < 2 && chance(40) ? 3 : 2;
  draw_dims(d, 0);
  kl_sbf(&d->text, "  s = u64[%u] parameter(0)\n  r = (u64[%u], ", words, words);
  put_shape(d, kl_info(t)->name);
  kl_sbf(&d->text, ") rng-bit-generator(s), algorithm=%s\n  n = u64[%u] get-tuple-element(r), index=0\n  b = ",
         algorithms[algorithm], words);
  put_dims(&d->text, kl_info(t)->name, d->rank, d->dims);
  kl_sbf(&d->text, " get-tuple-element(r), index=1\n");
  bool more = kl_is_int(t) && chance(50);
  if (more) {
    kl_sb_puts(&d->text, "  y = ");
    put_shape(d, kl_info(t)->name);
    kl_sb_puts(&d->text, " not(b)\n");
  }
  kl_sbf(&d->text, "  ROOT t = (u64[%u], ", words);
  put_dims(&d->text, kl_info(t)->name, d->rank, d->dims);
  kl_sbf(&d->text, ") tuple(n, %s)\n", more ? "y" : "b");
}

// --- batch norms ----------------------------------------------------------------------------------------------------

static void draw_norm(drawn *d, kl_sb *calls, kl_dtype first) {
  static const struct {
    const char *name;
    unsigned vectors;
    bool gradient;
  } ops[] = {{"training", 2, false}, {"inference", 4, false}, {"grad", 3, true}};
  (void)calls;
  const char *t = kl_info(kl_is_float(first) ? first : draw_type(kl_is_float))->name;
  unsigned op = below(3), operands = 1 + ops[op].vectors + ops[op].gradient;
  draw_dims(d, 1);
  uint32_t feature = below(d->rank), rank = d->rank;
  int64_t whole[MOST_RANK];
  memcpy(whole, d->dims, sizeof whole);
  put_array(d, 0, t);
  d->rank = 1;
  d->dims[0] = whole[feature];
  for (unsigned i = 1; i <= ops[op].vectors; i++) put_array(d, i, t);
  d->rank = rank;
  memcpy(d->dims, whole, sizeof whole);
  if (ops[op].gradient) put_array(d, operands - 1, t);
  kl_sbf(&d->text, "  ROOT y = %s", op == 1 ? "" : "(");
  put_shape(d, t);
  for (unsigned i = 0; i < 2 && op != 1; i++) kl_sbf(&d->text, ", %s[%lld]", t, (long long)whole[feature]);
  kl_sbf(&d->text, "%s batch-norm-%s(", op == 1 ? "" : ")", ops[op].name);
  for (unsigned i = 0; i < operands; i++) kl_sbf(&d->text, i ? ", x%u" : "x%u", i);
  kl_sbf(&d->text, "), epsilon=%s, feature_index=%u\n", chance(70) ? "0.001" : chance(50) ? "0" : "2", feature);
}

// --- ragged dots ----------------------------------------------------------------------------------------------------

// Dimensions of an operand by what they are, in any order.
typedef enum part { BATCH, ROWS, SUMMED, COLUMNS, GROUPS } part;
typedef struct sided {
  uint32_t rank;
  int64_t size[MOST_DIMS];
  part is[MOST_DIMS];
} sided;

static void add_dim(sided *x, part is, int64_t size) {
  uint32_t at = below(++x->rank);
  for (uint32_t d = x->rank - 1; d > at; d--) x->size[d] = x->size[d - 1], x->is[d] = x->is[d - 1];
  x->size[at] = size;
  x->is[at] = is;
}

static void put_list(kl_sb *b, const char *name, const sided *x, part is) {
  const char *next = "";
  kl_sbf(b, ", %s={", name);
  for (uint32_t d = 0; d < x->rank; d++)
    if (x->is[d] == is) kl_sbf(b, "%s%u", next, d), next = ",";
  kl_sb_puts(b, "}");
}

static void append_sizes(const sided *x, part is, int64_t *dims, uint32_t *n) {
  for (uint32_t d = 0; d < x->rank; d++)
    if (x->is[d] == is) dims[(*n)++] = x->size[d];
}

enum { SIZES = 2 };                // the parameter that has groups' sizes
static int64_t most_in_group = -1; // about; -1: sizes are what data says

static void change_sizes(const kiln_module *m, size_t parameter, unsigned number, void *buffer) {
  kiln_array_type t;
  if (parameter != SIZES || most_in_group < 0) return;
  ck_assert(kiln_module_parameter_leaf_type(m, parameter, &t));
  int64_t count = 1, width = kl_info(t.dtype)->bits / 8;
  uint64_t own = seed;
  for (uint32_t d = 0; d < t.rank; d++) count *= t.dims[d];
  seed = number + 17;
  for (int64_t i = 0; i < count; i++) {
    int64_t v = below((uint32_t)(most_in_group < 100 ? most_in_group : 100) + 1) - (chance(5) ? 3 : 0);
    if (chance(15)) v = 0;
    memcpy((char *)buffer + i * width, &v, (size_t)width);
  }
  seed = own;
}

// One dimension is ragged; sizes are one list or one for each batch, more than there is or less.
static void draw_ragged(drawn *d, kl_sb *calls, kl_dtype first) {
  static const char *const counts[] = {"s32", "s32", "s64", "u8", "s8", "u16", "u64"};
  (void)calls;
  const char *t = kl_info(first)->name, *to = is_narrow_float(first) && chance(40) ? "f32" : t;
  unsigned mode = below(5) < 3 ? 0 : 1 + below(2); // rows, sums, batches
  bool large = chance(30);
  int64_t groups = chance(3) ? 0 : 1 + below(6), batch = chance(40) ? 1 + below(3) : 0, ragged;
  sided left = {0}, right = {0};
  ragged = large ? 20 + below(mode == 1 ? 700 : 150) : below(20);
  if (mode == 2) batch = below(5);
  if (batch || mode == 2) add_dim(&left, BATCH, batch), add_dim(&right, BATCH, batch);
  add_dim(&left, SUMMED, mode == 1 ? ragged : 1 + below(12));
  for (uint32_t k = 0; k < left.rank; k++)
    if (left.is[k] == SUMMED) add_dim(&right, SUMMED, left.size[k]);
  add_dim(&left, ROWS, mode == 0 ? ragged : 1 + below(large ? 70 : 9));
  if (mode == 0) add_dim(&right, GROUPS, groups);
  for (unsigned k = below(3); k > 0; k--) add_dim(&right, COLUMNS, 1 + below(large ? 30 : 6));
  for (unsigned side = 0; side < 2; side++) {
    const sided *x = side ? &right : &left;
    d->rank = x->rank;
    memcpy(d->dims, x->size, x->rank * sizeof *d->dims);
    kl_sbf(&d->text, "  x%u = ", side);
    put_shape(d, t);
    kl_sbf(&d->text, " parameter(%u)\n", side);
  }
  const char *count = counts[below(sizeof counts / sizeof *counts)];
  bool listed = batch && mode < 2 && chance(50);
  kl_sbf(&d->text,
         listed ? "  n = %s[%lld,%lld] parameter(2)\n  ROOT y = " : "  n = %s[%lld] parameter(2)\n  ROOT y = ", count,
         (long long)(listed ? batch : groups), (long long)groups);
  most_in_group = groups && chance(90) ? 3 * ragged / (2 * groups) : -1;
  d->rank = 0;
  if (mode == 1) d->dims[d->rank++] = groups;
  append_sizes(&left, BATCH, d->dims, &d->rank);
  append_sizes(&left, ROWS, d->dims, &d->rank);
  append_sizes(&right, COLUMNS, d->dims, &d->rank);
  put_shape(d, to);
  kl_sb_puts(&d->text, " ragged-dot(x0, x1, n)");
  put_list(&d->text, "lhs_batch_dims", &left, BATCH);
  put_list(&d->text, "rhs_batch_dims", &right, BATCH);
  put_list(&d->text, "lhs_contracting_dims", &left, SUMMED);
  put_list(&d->text, "rhs_contracting_dims", &right, SUMMED);
  put_list(&d->text, "lhs_ragged_dims", &left, mode == 0 ? ROWS : mode == 1 ? SUMMED : BATCH);
  if (mode == 0) put_list(&d->text, "rhs_group_dims", &right, GROUPS);
  kl_sb_puts(&d->text, "\n");
}

// --- running --------------------------------------------------------------------------------------------------------

static drawing *const kinds[] = {draw_bits, draw_norm, draw_ragged};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void run_one(unsigned number, bool print) {
  change_parameter = kinds[number % KINDS] == draw_ragged ? change_sizes : NULL;
  dtype_list all = dtypes_that(kl_is_array_dtype);
  drawn d;
  kiln_module *m = draw_module(&d, kinds[number % KINDS], all.at[number / KINDS % (unsigned)all.n], number, print);
  run_drawn(m, &d, number, number / KINDS);
  drop_drawn(m, &d);
}

enum { SLICES = 20, CASES = 160 };

START_TEST(random_ops) {
  const char *alone = getenv("KILN_EXPAND_SEED");
  if (alone && _i) return;
  if (alone) return run_one((unsigned)strtoul(alone, NULL, 10), true);
  for (unsigned i = (unsigned)_i; i < share_of(CASES); i += SLICES) run_one(i, false);
}
END_TEST

// --- what is known of one device and of custom calls ----------------------------------------------------------------

static const char *const known[] = {
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\nENTRY e { a = f32[6,3] "
    "parameter(0) "
    "x = f32[6,3] all-reduce(a), replica_groups={}, to_apply=add y = f32[6,3] collective-permute(x), "
    "source_target_pairs={} z = f32[6,3] custom-call(a), custom_call_target=\"Sharding\" i = u32[] partition-id() "
    "f = f32[] convert(i) g = f32[6,3] broadcast(f), dimensions={} u = f32[6,3] add(z, g) "
    "ROOT r = (f32[6,3], f32[6,3], f32[6,3]) tuple(x, y, u) }",
    "less { a = bf16[] parameter(0) b = bf16[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) "
    "ROOT r = pred[] compare(a, b), direction=LT }\nENTRY e { a = bf16[5,33]{0,1} parameter(0) "
    "t = (bf16[5,4], s32[5,4]{0,1}) custom-call(a), custom_call_target=\"TopK\", called_computations={less} "
    "u = (bf16[5,33], s32[5,33]) custom-call(a), custom_call_target=\"TopK\" "
    "ROOT r = ((bf16[5,4], s32[5,4]{0,1}), (bf16[5,33], s32[5,33])) tuple(t, u) }",
    "ENTRY e { a = f16[7,3] parameter(0) n = s32[] get-dimension-size(a), dimensions={0} k = s32[] constant(3) "
    "b = f16[7,3] set-dimension-size(a, k), dimensions={1} c = f16[7,3] negate(b) "
    "ROOT r = (s32[], f16[7,3]) tuple(n, c) }",
    // Written out in what a fusion, a call and a loop run.
    "fused { s = u64[2] parameter(0) r = (u64[2], u16[9]) rng-bit-generator(s), algorithm=rng_philox "
    "ROOT b = u16[9] get-tuple-element(r), index=1 }\n"
    "less { p = (s32[], u64[2], u32[5]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(3) "
    "ROOT r = pred[] compare(i, n), direction=LT }\n"
    "step { p = (s32[], u64[2], u32[5]) parameter(0) i = s32[] get-tuple-element(p), index=0 o = s32[] constant(1) "
    "j = s32[] add(i, o) s = u64[2] get-tuple-element(p), index=1 b = u32[5] get-tuple-element(p), index=2 "
    "r = (u64[2], u32[5]) rng-bit-generator(s), algorithm=rng_three_fry t = u64[2] get-tuple-element(r), index=0 "
    "c = u32[5] get-tuple-element(r), index=1 d = u32[5] add(b, c) "
    "ROOT w = (s32[], u64[2], u32[5]) tuple(j, t, d) }\n"
    "ENTRY e { s = u64[2] parameter(0) b = u32[5] parameter(1) f = u16[9] fusion(s), kind=kLoop, calls=fused "
    "z = s32[] constant(0) t = (s32[], u64[2], u32[5]) tuple(z, s, b) "
    "w = (s32[], u64[2], u32[5]) while(t), condition=less, body=step "
    "ROOT r = (u16[9], (s32[], u64[2], u32[5])) tuple(f, w) }",
};

START_TEST(known_calls) {
  kl_sb text;
  change_parameter = NULL;
  kl_sb_init(&text, cx);
  kl_sbf(&text, "HloModule fusion\n\n%s\n", known[_i]);
  kiln_module *m = parse(text.p);
  for (unsigned k = 0; k < 2; k++) run_both_and_check(cx, m, 3, (unsigned)_i + k, text.p);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
}
END_TEST

int main(void) {
  return RUN_TESTS("expand", EACH(open_batches, close_batches), {random_ops, SLICES},
                   {known_calls, sizeof known / sizeof *known});
}
