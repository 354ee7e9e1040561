// Ops that are written out in others: random shapes, layouts, types and attributes. The evaluator, which means each of
// these ops by itself, judges, on the host and on the simulator, which must have the same bits; PTX goes through ptxas.
//
// KILN_EXPAND_SEED runs one seed alone and prints its text.
#include "drawn.h"

#include <math.h>
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

// --- random numbers -------------------------------------------------------------------------------------------------

static bool has_random_numbers(kl_dtype t) {
  return t == KILN_PRED || has_random_bits(t);
}

// Two of them, needed in one order or the other; ends are parameters, or computed within bounds.
static void draw_numbers(drawn *d, kl_sb *calls, kl_dtype first) {
  (void)calls;
  kl_dtype t = has_random_numbers(first) ? first : draw_type(has_random_numbers);
  const char *name = kl_info(t)->name, *ends = kl_is_float(t) && chance(25) ? "c" : "b";
  kl_sbf(&d->text, "  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n", name, name);
  if (*ends == 'c') kl_sbf(&d->text, "  c = %s[] tanh(b)\n", name);
  for (int k = 0; k < 2; k++) {
    draw_dims(d, 0);
    kl_sbf(&d->text, "  x%d = ", k);
    put_shape(d, name);
    kl_sbf(&d->text, " rng(a, %s), distribution=rng_%s\n  y%d = ", ends,
           kl_is_float(t) && chance(50) ? "normal" : "uniform", k);
    put_shape(d, name);
    kl_sbf(&d->text, kl_is_float(t) ? " negate(x%d)\n" : " not(x%d)\n", k);
  }
  kl_sb_puts(&d->text, chance(50) ? "  ROOT t = tuple(x0, y1)\n" : "  ROOT t = tuple(y1, x0, x1)\n");
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

static drawing *const kinds[] = {draw_bits, draw_norm, draw_ragged, draw_numbers};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void run_one(unsigned number, bool print) {
  change_parameter = kinds[number % KINDS] == draw_ragged ? change_sizes : NULL;
  drawn d;
  kiln_module *m = draw_module(&d, kinds[number % KINDS], type_in_turns(number), number, print);
  run_drawn(m, &d, number, number / KINDS);
  drop_drawn(m, &d);
}

enum { SLICES = 4, CASES = 80 };

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
    // Each time it is done it gives the same: in a loop, and where it is called twice.
    "fused { a = f32[] parameter(0) b = f32[] parameter(1) x = f32[9] rng(a, b), distribution=rng_normal "
    "y = f32[9] rng(a, b), distribution=rng_normal ROOT z = f32[9] subtract(y, x) }\n"
    "less { p = (s32[], f32[9]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(3) "
    "ROOT r = pred[] compare(i, n), direction=LT }\n"
    "step { p = (s32[], f32[9]) parameter(0) i = s32[] get-tuple-element(p), index=0 o = s32[] constant(1) "
    "j = s32[] add(i, o) x = f32[9] get-tuple-element(p), index=1 l = f32[] constant(-2) h = f32[] constant(3) "
    "y = f32[9] rng(l, h), distribution=rng_uniform s = f32[9] add(x, y) ROOT w = (s32[], f32[9]) tuple(j, s) }\n"
    "ENTRY e { a = f32[] parameter(0) b = f32[] parameter(1) f = f32[9] fusion(a, b), kind=kLoop, calls=fused "
    "g = f32[9] call(a, b), to_apply=fused z = s32[] constant(0) t = (s32[], f32[9]) tuple(z, g) "
    "w = (s32[], f32[9]) while(t), condition=less, body=step "
    "ROOT r = (f32[9], (s32[], f32[9])) tuple(f, w) }",
};

START_TEST(known_calls) {
  kl_sb text;
  if (!share_has((uint64_t)_i, 1)) return;
  change_parameter = NULL;
  kl_sb_init(&text, cx);
  kl_sbf(&text, "HloModule fusion\n\n%s\n", known[_i]);
  kiln_module *m = parse(text.p);
  for (unsigned k = 0; k < 2; k++) run_both_and_check(cx, m, 3, (unsigned)_i + k, text.p);
  kiln_module_destroy(&m);
  kl_sb_free(&text);
}
END_TEST

// --- which numbers --------------------------------------------------------------------------------------------------

// Word i of the stream, by the text of docs/numerics.md.
static uint32_t philox_word(uint64_t key, uint64_t stream, uint64_t i) {
  uint32_t x[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)};
  uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
  for (int round = 0; round < 10; round++) {
    uint64_t p = (uint64_t)x[0] * 0xd2511f53u, q = (uint64_t)x[2] * 0xcd9e8d57u;
    uint32_t y[4] = {(uint32_t)(q >> 32) ^ x[1] ^ k[0], (uint32_t)q, (uint32_t)(p >> 32) ^ x[3] ^ k[1], (uint32_t)p};
    memcpy(x, y, sizeof x);
    k[0] += 0x9e3779b9u;
    k[1] += 0xbb67ae85u;
  }
  return x[i % 4];
}

// Four of them, which are needed in the order of their streams, not in that of the text; the last one by nothing.
static const char streams[] =
    "HloModule m\nENTRY m {\n"
    "  z = f32[] constant(0)\n  o = f32[] constant(1)\n  a = s32[] constant(-5)\n  b = s32[] constant(7)\n"
    "  c = s64[] constant(-3000000000)\n  e = s64[] constant(9000000000)\n"
    "  unused = f32[3] rng(z, o), distribution=rng_uniform\n"
    "  wide = s64[33] rng(c, e), distribution=rng_uniform\n"
    "  normal = f32[1,4099] rng(z, o), distribution=rng_normal\n"
    "  whole = s32[101] rng(a, b), distribution=rng_uniform\n"
    "  real = f32[7,11]{0,1} rng(z, o), distribution=rng_uniform\n"
    "  ROOT r = (f32[7,11]{0,1}, s32[101], f32[1,4099], s64[33]) tuple(real, whole, normal, wide)\n}\n";

START_TEST(numbers_are_those_of_the_rule) {
  static float real[77] __attribute__((aligned(16))), normal[4099] __attribute__((aligned(16)));
  static int32_t whole[101] __attribute__((aligned(16)));
  static int64_t wide[33] __attribute__((aligned(16)));
  kiln_module *m = parse(streams);
  ck_assert_uint_eq(philox_word(0, 0, 0), 0x6627e8d5); // as Salmon et al. have it
  ck_assert_uint_eq(philox_word(0, 0, 3), 0x9b00dbd8);
  for (int gpu = 0; gpu < 2; gpu++) {
    double sum = 0, squares = 0;
    run_on(cx, m, gpu ? 3 : HOST, 1, 0, NULL, (void *[]){real, whole, normal, wide}, streams);
    for (int i = 0; i < 77; i++) // columns first
      ck_assert(real[i % 11 * 7 + i / 11] == (float)(philox_word(0x6b696c6e, 0, (uint64_t)i) >> 8) * 0x1p-24f);
    for (int i = 0; i < 101; i++)
      ck_assert_int_eq(whole[i], (int)((uint64_t)philox_word(0x6b696c6e, 1, (uint64_t)i) * 12 >> 32) - 5);
    for (int i = 0; i < 4099; i++) {
      double u = ((philox_word(0x6b696c6e, 2, (uint64_t)i) >> 8) + 1) * 0x1p-24;
      double v = (philox_word(0x6b696c6e, 2, (uint64_t)i + 4099) >> 8) * 0x1p-24;
      ck_assert(fabs(normal[i] - sqrt(-2 * log(u)) * cos(6.283185307179586 * v)) < 1e-5);
      sum += normal[i];
      squares += normal[i] * normal[i];
    }
    ck_assert(fabs(sum / 4099) < 4 / sqrt(4099.0) && fabs(squares / 4099 - 1) < 4 * sqrt(2 / 4099.0));
    for (int i = 0; i < 33; i++) {
      uint64_t low = philox_word(0x6b696c6e, 3, 2 * (uint64_t)i),
               high = philox_word(0x6b696c6e, 3, 2 * (uint64_t)i + 1);
      unsigned __int128 product = (unsigned __int128)(high << 32 | low) * 12000000000u;
      ck_assert_int_eq(wide[i], (int64_t)(product >> 64) - 3000000000);
    }
  }
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("expand", EACH(open_batches, close_batches), {random_ops, SLICES},
                   {known_calls, sizeof known / sizeof *known}, {numbers_are_those_of_the_rule});
}
