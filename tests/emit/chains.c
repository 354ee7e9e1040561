// Launches one behind the other as one: where each block finds what it wants among what it has made itself, and where
// it does not. On the simulator, which looks for races, on the host and by the evaluator: the same bits.

#include "harness.h"
#include "lower/choose/choose.h"
#include "support/share.h"
#include "support/suite.h"

static kiln_context *cx;

static void make(void) {
  cx = kiln_context_create(NULL);
}
static void drop(void) {
  kiln_context_destroy(&cx);
}

#define FOLDS                                                                                                          \
  "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) } "                                    \
  "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) } "

// For sm_90: launches apart, and as few as can be. What is made of rows, and of as many as are odd.
static const struct {
  const char *what;
  unsigned apart, together;
  const char *text, *header;
} chains[] = {
    {"a row of attention for each batch", 3, 1,
     FOLDS
     "ENTRY e { q = f32[19,20] parameter(0) k = f32[19,45,20] parameter(1) v = f32[19,45,24] parameter(2) "
     "s = f32[19,45] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
     "rhs_contracting_dims={2} low = f32[] constant(-inf) m = f32[19] reduce(s, low), dimensions={1}, to_apply=max "
     "mb = f32[19,45] broadcast(m), dimensions={0} d = f32[19,45] subtract(s, mb) x = f32[19,45] exponential(d) "
     "z = f32[] constant(0) t = f32[19] reduce(x, z), dimensions={1}, to_apply=add tb = f32[19,45] broadcast(t), "
     "dimensions={0} p = f32[19,45] divide(x, tb) ROOT r = f32[19,24] dot(p, v), lhs_batch_dims={0}, "
     "rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1} }"},
    {"a softmax in pieces", 3, 1,
     FOLDS
     "f { x = f32[40,320] parameter(0) low = f32[] constant(-inf) ROOT m = f32[40] reduce(x, low), dimensions={1}, "
     "to_apply=max } "
     "g { x = f32[40,320] parameter(0) m = f32[40] parameter(1) b = f32[40,320] broadcast(m), dimensions={0} "
     "d = f32[40,320] subtract(x, b) ROOT y = f32[40,320] exponential(d) } "
     "h { x = f32[40,320] parameter(0) z = f32[] constant(0) s = f32[40] reduce(x, z), dimensions={1}, to_apply=add "
     "b = f32[40,320] broadcast(s), dimensions={0} ROOT y = f32[40,320] divide(x, b) } "
     "ENTRY e { x = f32[40,320] parameter(0) m = f32[40] fusion(x), kind=kLoop, calls=f "
     "y = f32[40,320] fusion(x, m), kind=kLoop, calls=g ROOT p = f32[40,320] fusion(y), kind=kLoop, calls=h }"},
    {"element by element, of rows of several lengths", 3, 1,
     "f { x = f32[9,1024] parameter(0) y = f32[9,1024] parameter(1) ROOT r = f32[9,1024] multiply(x, y) } "
     "g { x = f32[9,1024] parameter(0) ROOT r = f16[9,1024] convert(x) } "
     "h { x = f16[9216] parameter(0) ROOT r = f16[9216] negate(x) } "
     "ENTRY e { x = f32[9,1024] parameter(0) y = f32[9,1024] parameter(1) p = f32[9,1024] fusion(x, y), kind=kLoop, "
     "calls=f q = f16[9,1024] fusion(p), kind=kLoop, calls=g b = f16[9216] bitcast(q) r = f16[9216] fusion(b), "
     "kind=kLoop, calls=h ROOT t = (f32[9,1024], f16[9216]) tuple(p, r) }"},
    {"memory that others have left", 4, 1,
     "f { x = f32[65536] parameter(0) ROOT r = f32[65536] negate(x) } "
     "g { x = f32[65536] parameter(0) ROOT r = s8[65536] convert(x) } "
     "h { x = s8[65536] parameter(0) ROOT r = s16[65536] convert(x) } "
     "i { x = s16[65536] parameter(0) ROOT r = s16[65536] negate(x) } "
     "ENTRY e { x = f32[65536] parameter(0) p = f32[65536] fusion(x), kind=kLoop, calls=f q = s8[65536] fusion(p), "
     "kind=kLoop, calls=g r = s16[65536] fusion(q), kind=kLoop, calls=h ROOT t = s16[65536] fusion(r), kind=kLoop, "
     "calls=i }"},
    {"factors of matrices, and what they solve", 2, 1,
     "ENTRY e { a = f32[300,6,6] parameter(0) b = f32[300,6,2] parameter(1) c = f32[300,6,6] cholesky(a), lower=true "
     "ROOT x = f32[300,6,2] triangular-solve(c, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE, "
     "unit_diagonal=false }"},
    {"rows in order, and what follows of each", 2, 1,
     FOLDS
     "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT } "
     "g { x = f32[211,100] parameter(0) z = f32[] constant(0) s = f32[211] reduce(x, z), dimensions={1}, to_apply=add "
     "b = f32[211,100] broadcast(s), dimensions={0} ROOT y = f32[211,100] divide(x, b) } "
     "ENTRY e { x = f32[211,100] parameter(0) s = f32[211,100] sort(x), dimensions={1}, to_apply=less "
     "ROOT y = f32[211,100] fusion(s), kind=kLoop, calls=g }"},
    {"transforms there and back", 3, 1,
     "g { x = c64[130,64] parameter(0) y = c64[64] parameter(1) b = c64[130,64] broadcast(y), dimensions={1} "
     "ROOT z = c64[130,64] multiply(x, b) } "
     "ENTRY e { x = c64[130,64] parameter(0) y = c64[64] parameter(1) f = c64[130,64] fft(x), fft_type=FFT, "
     "fft_length={64} g = c64[130,64] fusion(f, y), kind=kLoop, calls=g ROOT r = c64[130,64] fft(g), fft_type=IFFT, "
     "fft_length={64} }"},
    {"columns, each in a row", 2, 1,
     FOLDS "f { x = f32[12,6144] parameter(0) z = f32[] constant(0) ROOT s = f32[6144] reduce(x, z), dimensions={0}, "
           "to_apply=add } "
           "g { x = f32[6144] parameter(0) y = f32[6144,8] parameter(1) b = f32[6144,8] broadcast(x), dimensions={0} "
           "ROOT r = f32[6144,8] add(y, b) } "
           "ENTRY e { x = f32[12,6144] parameter(0) y = f32[6144,8] parameter(1) s = f32[6144] fusion(x), kind=kLoop, "
           "calls=f "
           "ROOT r = f32[6144,8] fusion(s, y), kind=kLoop, calls=g }"},
    {"columns less their sums, and behind their sums others, of more blocks than they are of", 3, 1,
     FOLDS "f { x = f32[12,6144] parameter(0) z = f32[] constant(0) s = f32[6144] reduce(x, z), dimensions={0}, "
           "to_apply=add b = f32[12,6144] broadcast(s), dimensions={1} ROOT r = f32[12,6144] subtract(x, b) } "
           "g { x = f32[12,6144] parameter(0) z = f32[] constant(0) ROOT s = f32[6144] reduce(x, z), dimensions={0}, "
           "to_apply=add } "
           "h { x = f32[6144] parameter(0) y = f32[4096] parameter(1) ROOT r = f32[10240] concatenate(x, y), "
           "dimensions={0} } "
           "ENTRY e { x = f32[12,6144] parameter(0) y = f32[4096] parameter(1) d = f32[12,6144] fusion(x), kind=kLoop, "
           "calls=f s = f32[6144] fusion(d), kind=kLoop, calls=g ROOT r = f32[10240] fusion(s, y), kind=kLoop, "
           "calls=h }"},
    {"columns that blocks join, of which one comes last", 2, 2,
     FOLDS
     "f { x = f32[700,64] parameter(0) z = f32[] constant(0) ROOT s = f32[64] reduce(x, z), dimensions={0}, "
     "to_apply=add } "
     "g { x = f32[64] parameter(0) y = f32[64,64] parameter(1) b = f32[64,64] broadcast(x), dimensions={0} "
     "ROOT r = f32[64,64] add(y, b) } "
     "ENTRY e { x = f32[700,64] parameter(0) y = f32[64,64] parameter(1) s = f32[64] fusion(x), kind=kLoop, calls=f "
     "ROOT r = f32[64,64] fusion(s, y), kind=kLoop, calls=g }"},
    {"more than may be there for all of it", 2, 2,
     "f { x = f32[2097152] parameter(0) ROOT r = f32[2097152] negate(x) } "
     "g { x = f32[2097152] parameter(0) ROOT r = f32[2097152] abs(x) } "
     "ENTRY e { x = f32[2097152] parameter(0) p = f32[2097152] fusion(x), kind=kLoop, calls=f "
     "ROOT q = f32[2097152] fusion(p), kind=kLoop, calls=g }"},
    {"as much as may be", 2, 1,
     "f { x = f32[1048576] parameter(0) ROOT r = f32[1048576] negate(x) } "
     "g { x = f32[1048576] parameter(0) ROOT r = f32[1048576] abs(x) } "
     "ENTRY e { x = f32[1048576] parameter(0) p = f32[1048576] fusion(x), kind=kLoop, calls=f "
     "ROOT q = f32[1048576] fusion(p), kind=kLoop, calls=g }"},
    {"words as halves", 3, 1,
     "f { x = s32[3072] parameter(0) ROOT r = s32[3072] negate(x) } "
     "g { x = u16[6144] parameter(0) ROOT r = u16[6144] not(x) } "
     "ENTRY e { x = s32[3072] parameter(0) s = s32[3072] fusion(x), kind=kLoop, calls=f b = u16[3072,2] "
     "bitcast-convert(s) c = u16[6144] bitcast(b) ROOT r = u16[6144] fusion(c), kind=kLoop, calls=g }"},
    {"read across, bands of rows", 2, 1,
     "f { x = f32[96,96] parameter(0) ROOT r = f32[96,96] sine(x) } "
     "g { x = f32[96,96] parameter(0) y = f32[96,96] parameter(1) t = f32[96,96] transpose(x), dimensions={1,0} "
     "ROOT r = f32[96,96] add(y, t) } "
     "ENTRY e { x = f32[96,96] parameter(0) s = f32[96,96] fusion(x), kind=kLoop, calls=f "
     "ROOT r = f32[96,96] fusion(s, x), kind=kLoop, calls=g }"},
    {"read along and across", 2, 2,
     "f { x = f32[96,96] parameter(0) ROOT r = f32[96,96] sine(x) } "
     "g { x = f32[96,96] parameter(0) y = f32[96,96] parameter(1) t = f32[96,96] transpose(x), dimensions={1,0} "
     "ROOT r = f32[96,96] add(x, t) } "
     "ENTRY e { x = f32[96,96] parameter(0) s = f32[96,96] fusion(x), kind=kLoop, calls=f "
     "ROOT r = f32[96,96] fusion(s, x), kind=kLoop, calls=g }"},
    {"read from where another is", 2, 2,
     "f { x = f32[20000] parameter(0) ROOT r = f32[20000] sine(x) } "
     "g { x = f32[20000] parameter(0) s = f32[19999] slice(x), slice={[1:20000]} t = f32[19999] slice(x), "
     "slice={[0:19999]} ROOT r = f32[19999] subtract(s, t) } "
     "ENTRY e { x = f32[20000] parameter(0) s = f32[20000] fusion(x), kind=kLoop, calls=f "
     "ROOT r = f32[19999] fusion(s), kind=kLoop, calls=g }"},
    {"read where data says", 2, 2,
     "f { x = f32[5000] parameter(0) ROOT r = f32[5000] sine(x) } "
     "g { x = f32[5000] parameter(0) i = s32[5000,1] parameter(1) ROOT r = f32[5000] gather(x, i), offset_dims={}, "
     "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1} } "
     "ENTRY e { x = f32[5000] parameter(0) i = s32[5000,1] parameter(1) s = f32[5000] fusion(x), kind=kLoop, calls=f "
     "ROOT r = f32[5000] fusion(s, i), kind=kLoop, calls=g }"},
    {"one row for all", 2, 2,
     FOLDS
     "f { x = f32[700,40] parameter(0) z = f32[] constant(0) ROOT s = f32[40] reduce(x, z), dimensions={0}, "
     "to_apply=add } "
     "g { x = f32[40] parameter(0) y = f32[900,40] parameter(1) b = f32[900,40] broadcast(x), dimensions={1} "
     "ROOT r = f32[900,40] add(y, b) } "
     "ENTRY e { x = f32[700,40] parameter(0) y = f32[900,40] parameter(1) s = f32[40] fusion(x), kind=kLoop, calls=f "
     "ROOT r = f32[900,40] fusion(s, y), kind=kLoop, calls=g }"},
    {"read along and across, and then written over", 2, 2,
     "f { x = f32[320,320] parameter(0) t = f32[320,320] transpose(x), dimensions={1,0} u = f32[320,320] subtract(x, "
     "t) "
     "n = f32[320,320] negate(x) ROOT r = (f32[320,320], f32[320,320]) tuple(u, n) } "
     "g { x = f32[320,320] parameter(0) y = f32[320,320] parameter(1) ROOT r = f32[320,320] multiply(x, y) } "
     "ENTRY e { x = f32[320,320] parameter(0) t = (f32[320,320], f32[320,320]) fusion(x), kind=kLoop, calls=f "
     "u = f32[320,320] get-tuple-element(t), index=0 n = f32[320,320] get-tuple-element(t), index=1 "
     "s = f32[320,320] fusion(n, x), kind=kLoop, calls=g ROOT r = (f32[320,320], f32[320,320]) tuple(u, s) }",
     ", input_output_alias={ {1}: (0, {}, must-alias) }"},
    {"the same, written elsewhere", 2, 1,
     "f { x = f32[320,320] parameter(0) t = f32[320,320] transpose(x), dimensions={1,0} u = f32[320,320] subtract(x, "
     "t) "
     "n = f32[320,320] negate(x) ROOT r = (f32[320,320], f32[320,320]) tuple(u, n) } "
     "g { x = f32[320,320] parameter(0) y = f32[320,320] parameter(1) ROOT r = f32[320,320] multiply(x, y) } "
     "ENTRY e { x = f32[320,320] parameter(0) t = (f32[320,320], f32[320,320]) fusion(x), kind=kLoop, calls=f "
     "u = f32[320,320] get-tuple-element(t), index=0 n = f32[320,320] get-tuple-element(t), index=1 "
     "s = f32[320,320] fusion(n, x), kind=kLoop, calls=g ROOT r = (f32[320,320], f32[320,320]) tuple(u, s) }"},
    {"of no elements", 2, 2,
     "f { x = f32[0,40] parameter(0) ROOT r = f32[0,40] sine(x) } g { x = f32[0,40] parameter(0) ROOT r = f32[0,40] "
     "negate(x) } "
     "ENTRY e { x = f32[0,40] parameter(0) s = f32[0,40] fusion(x), kind=kLoop, calls=f "
     "ROOT r = f32[0,40] fusion(s), kind=kLoop, calls=g }"},
    {"halves of bytes", 2, 2,
     "f { x = s4[200000] parameter(0) ROOT r = s4[200000] negate(x) } g { x = s4[200000] parameter(0) ROOT r = "
     "s4[200000] "
     "not(x) } "
     "ENTRY e { x = s4[200000] parameter(0) s = s4[200000] fusion(x), kind=kLoop, calls=f "
     "ROOT r = s4[200000] fusion(s), kind=kLoop, calls=g }"},
    {"halves of bytes, and behind them what is of several blocks", 3, 1,
     "f { x = s4[512] parameter(0) ROOT r = s4[512] negate(x) } g { x = s4[512] parameter(0) ROOT r = s32[512] "
     "convert(x) } "
     "h { x = s32[512] parameter(0) y = s32[4096] parameter(1) ROOT r = s32[4608] concatenate(x, y), dimensions={0} } "
     "ENTRY e { x = s4[512] parameter(0) y = s32[4096] parameter(1) n = s4[512] fusion(x), kind=kLoop, calls=f "
     "w = s32[512] fusion(n), kind=kLoop, calls=g ROOT r = s32[4608] fusion(w, y), kind=kLoop, calls=h }"},
};

static size_t launches_of(const kiln_module *m, unsigned t, unsigned k) {
  return kiln_artifact_manifest(compiled_for(cx, m, t, k, chains[k].text))->launch_count;
}

// As launches; as one wherever that can be, with nothing for ptxas to spill; as cost says.
START_TEST(go_side_by_side) {
  static const uint32_t ways[] = {KL_NONE, 1, 0};
  unsigned k = (unsigned)_i;
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sbf(&b, "HloModule chain%s\n%s", chains[k].header ? chains[k].header : "", chains[k].text);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "chain.hlo", b.p, b.n, &m) != KILN_OK) give_up(k, "parsing", cx, b.p);
  batch batches[TARGETS];
  batches_init(batches, cx);
  for (unsigned w = 0; w < KL_COUNT(ways); w++) {
    strategy.rounds = ways[w];
    size_t n = launches_of(m, 3, k), want = ways[w] == KL_NONE ? chains[k].apart : chains[k].together;
    ck_assert_msg(!(w < 2) || n == want, "%s: %zu launches, not %zu", chains[k].what, n, want);
    for (unsigned t = 0; t < TARGETS; t++)
      if (t == 3 || share_has(k + w + t, 4)) run_both_and_check(cx, m, t, k + t, chains[k].text);
    if (ways[w] == 1) batch_add(batches, k % TARGETS, cx, m, k, chains[k].text);
  }
  batches_free(batches);
  strategy.rounds = 0;
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

// Where one launch leaves multiprocessors without work that several give them, or threads without registers that they
// need, whoever asks for it.
static const struct {
  const char *what;
  uint32_t rounds;
  unsigned launches;
  const char *text;
} apart[] = {
    {"tiles, of which many are in one row", 0, 2,
     FOLDS
     "ENTRY e { a = bf16[256,256] parameter(0) b = bf16[256,256] parameter(1) d = f32[256,256] dot(a, b), "
     "lhs_contracting_dims={1}, rhs_contracting_dims={0} low = f32[] constant(-inf) z = f32[] constant(0) "
     "m = f32[256] reduce(d, low), dimensions={1}, to_apply=max mb = f32[256,256] broadcast(m), dimensions={0} "
     "s = f32[256,256] subtract(d, mb) x = f32[256,256] exponential(s) t = f32[256] reduce(x, z), dimensions={1}, "
     "to_apply=add tb = f32[256,256] broadcast(t), dimensions={0} ROOT r = f32[256,256] divide(x, tb) }"},
    {"long transforms, and a loop that goes over all of them at several places", 0, 3,
     "g { x = c64[64,4096] parameter(0) y = c64[4096] parameter(1) b = c64[64,4096] broadcast(y), dimensions={1} "
     "ROOT z = c64[64,4096] multiply(x, b) } "
     "ENTRY e { x = c64[64,4096] parameter(0) y = c64[4096] parameter(1) f = c64[64,4096] fft(x), fft_type=FFT, "
     "fft_length={4096} g = c64[64,4096] fusion(f, y), kind=kLoop, calls=g ROOT r = c64[64,4096] fft(g), "
     "fft_type=IFFT, fft_length={4096} }"},
    {"tiles of many registers, and blocks of many threads", 1, 2,
     "add { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] add(a, b) } "
     "g { d = f64[128,128,128] parameter(0) z = f64[] constant(0) s = f64[128] reduce(d, z), dimensions={1,2}, "
     "to_apply=add b = f64[128,128,128] broadcast(s), dimensions={0} ROOT r = f64[128,128,128] divide(d, b) } "
     "ENTRY e { q = f64[128,128,32] parameter(0) k = f64[128,128,32] parameter(1) d = f64[128,128,128] dot(q, k), "
     "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2} "
     "ROOT r = f64[128,128,128] fusion(d), kind=kLoop, calls=g }"},
    {"the same again and again", 1, 6,
     "add { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] add(a, b) } "
     "g { d = f64[128,128,128] parameter(0) z = f64[] constant(0) s = f64[128] reduce(d, z), dimensions={1,2}, "
     "to_apply=add b = f64[128,128,128] broadcast(s), dimensions={0} ROOT r = f64[128,128,128] divide(d, b) } "
     "less { t = (s32[], s32[], f64[128,128,128]) parameter(0) i = s32[] get-tuple-element(t), index=0 "
     "n = s32[] get-tuple-element(t), index=1 ROOT c = pred[] compare(i, n), direction=LT } "
     "round { t = (s32[], s32[], f64[128,128,128]) parameter(0) i = s32[] get-tuple-element(t), index=0 "
     "n = s32[] get-tuple-element(t), index=1 x = f64[128,128,128] get-tuple-element(t), index=2 one = s32[] "
     "constant(1) "
     "j = s32[] add(i, one) d = f64[128,128,128] dot(x, x), lhs_batch_dims={0}, rhs_batch_dims={0}, "
     "lhs_contracting_dims={2}, rhs_contracting_dims={2} y = f64[128,128,128] fusion(d), kind=kLoop, calls=g "
     "ROOT r = (s32[], s32[], f64[128,128,128]) tuple(j, n, y) } "
     "ENTRY e { n = s32[] parameter(0) x = f64[128,128,128] parameter(1) z = s32[] constant(0) "
     "t = (s32[], s32[], f64[128,128,128]) tuple(z, n, x) w = (s32[], s32[], f64[128,128,128]) while(t), "
     "condition=less, body=round ROOT r = f64[128,128,128] get-tuple-element(w), index=2 }"},
};

START_TEST(stay_apart) {
  unsigned k = (unsigned)_i;
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sbf(&b, "HloModule apart\n%s", apart[k].text);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "apart.hlo", b.p, b.n, &m) != KILN_OK) give_up(k, "parsing", cx, b.p);
  strategy.rounds = apart[k].rounds;
  size_t n = kiln_artifact_manifest(compiled_for(cx, m, 3, k, b.p))->launch_count;
  strategy.rounds = 0;
  ck_assert_msg(n == apart[k].launches, "%s: %zu launches, not %u", apart[k].what, n, apart[k].launches);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

// What some launch stores is not read as what never changes; what none does is.
START_TEST(loads_are_coherent) {
  static const char text[] =
      "HloModule loads\nf { x = f32[32768] parameter(0) ROOT r = f32[32768] sine(x) } "
      "g { x = f32[32768] parameter(0) y = f32[32768] parameter(1) ROOT r = f32[32768] add(x, y) } "
      "ENTRY e { x = f32[32768] parameter(0) y = f32[32768] parameter(1) s = f32[32768] fusion(x), kind=kLoop, calls=f "
      "ROOT r = f32[32768] fusion(s, y), kind=kLoop, calls=g }";
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "loads.hlo", text, sizeof text - 1, &m) != KILN_OK) give_up(0, "parsing", cx, text);
  const kiln_artifact *a = compiled_for(cx, m, 3, 0, text);
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
  ck_assert_uint_eq(kiln_artifact_manifest(a)->launch_count, 1);
  ck_assert_uint_eq(occurrences(ptx, "ld.global.nc"), 2);
  ck_assert_uint_eq(occurrences(ptx, "ld.global"), 3);
  kiln_module_destroy(&m);
}
END_TEST

// Layers that are alike, each of kernels that are one launch and one that reads what all have made: their code is there
// once, in one launch or by itself.
START_TEST(equal_chains_share_code) {
  enum { LAYERS = 7 };
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b,
             "HloModule layers\nf { x = f32[512,512] parameter(0) ROOT r = f32[512,512] sine(x) } "
             "g { x = f32[512,512] parameter(0) ROOT r = f32[512,512] negate(x) } "
             "h { x = f32[512,512] parameter(0) t = f32[512,512] transpose(x), dimensions={1,0} u = f32[512,512] "
             "reverse(x), dimensions={0} ROOT r = f32[512,512] add(t, u) } ENTRY e { x0 = f32[512,512] parameter(0)\n");
  for (int i = 0; i < LAYERS; i++)
    kl_sbf(&b,
           "a%d = f32[512,512] fusion(x%d), kind=kLoop, calls=f b%d = f32[512,512] fusion(a%d), kind=kLoop, calls=g "
           "%sx%d = f32[512,512] fusion(b%d), kind=kLoop, calls=h\n",
           i, i, i, i, i + 1 == LAYERS ? "ROOT " : "", i + 1, i);
  kl_sb_puts(&b, "}\n");
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "layers.hlo", b.p, b.n, &m) != KILN_OK) give_up(0, "parsing", cx, b.p);
  const kiln_artifact *a = compiled_for(cx, m, 3, 0, b.p);
  unsigned entries = occurrences(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), ".visible .entry");
  size_t launches = kiln_artifact_manifest(a)->launch_count;
  ck_assert_msg(launches == 2 * LAYERS && entries == 2, "%zu launches of %u kernels", launches, entries);
  run_both_and_check(cx, m, 3, 0, b.p);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

int main(void) {
  return RUN_TESTS("chains", EACH(make, drop), {go_side_by_side, KL_COUNT(chains)}, {stay_apart, KL_COUNT(apart)},
                   {loads_are_coherent}, {equal_chains_share_code});
}
