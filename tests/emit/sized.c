// Ops that take all of an array, on arrays of dynamic sizes: convolutions along them, matrices, norms. The evaluator
// has arrays of as many elements as there are; the host and the simulator must have the same bits.
#include "drawn.h"

// --- cases ----------------------------------------------------------------------------------------------------------

// n and m are sizes.
static const char *const cases[] = {
    // Convolutions: elements behind the last are padding, that of the bound or not, and holes; more windows than one.
    "p = f32[2,7,3] parameter(2) w = f32[3,3,4] parameter(3) a = f32[2,<=7,3] set-dimension-size(p, n), dimensions={1} "
    "c = f32[2,<=7,4] convolution(a, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f "
    "d = f32[2,<=5,4] convolution(a, w), window={size=3}, dim_labels=b0f_0io->b0f "
    "e = f32[2,<=4,4] convolution(a, w), window={size=3 stride=2 pad=2_1 rhs_reversal=1}, dim_labels=b0f_0io->b0f "
    "g = f32[2,<=14,4] convolution(a, w), window={size=3 pad=4_3 lhs_dilate=2 rhs_dilate=3}, dim_labels=b0f_0io->b0f "
    "k = s32[] get-dimension-size(g), dimensions={1} l = s32[] get-dimension-size(e), dimensions={1} "
    "ROOT r = (f32[2,<=7,4], f32[2,<=5,4], f32[2,<=4,4], f32[2,<=14,4], s32[], s32[]) tuple(c, d, e, g, k, l)",
    "p = bf16[3,6,7,2] parameter(2) w = f32[3,2,2,4] parameter(3) a = bf16[3,6,<=7,2] set-dimension-size(p, n), "
    "dimensions={2} b = bf16[3,<=6,<=7,2] set-dimension-size(a, m), dimensions={1} "
    "c = f32[3,<=5,<=8,4] convolution(b, w), window={size=3x2 pad=2_-1x1_1}, dim_labels=b01f_01io->b01f "
    "d = bf16[<=3,6,7,2] set-dimension-size(p, m), dimensions={0} "
    "e = bf16[<=3,<=6,7,2] set-dimension-size(d, n), dimensions={1} v = bf16[2,3,1,6] parameter(4) "
    "g = bf16[<=3,<=3,9,6] convolution(e, v), window={size=2x3 stride=2x1 pad=0_0x2_2}, dim_labels=b01f_01io->b01f, "
    "feature_group_count=2 ROOT r = (f32[3,<=5,<=8,4], bf16[<=3,<=3,9,6]) tuple(c, g)",
    // Kernels of a size: gradients of kernels, as large as what they go over; and those that see what they may not.
    "p = f32[2,7,3] parameter(2) w = f32[2,7,4] parameter(3) a = f32[2,<=7,3] set-dimension-size(p, n), dimensions={1} "
    "b = f32[2,<=7,4] set-dimension-size(w, n), dimensions={1} "
    "c = f32[3,<=3,4] convolution(a, b), window={size=7 pad=1_1}, dim_labels=f0b_i0o->b0f "
    "two = s32[] constant(2) l = s32[] add(n, two) q = s8[5,2] parameter(4) x = s8[7,2,3] parameter(5) "
    "d = s8[<=5,2] set-dimension-size(q, n), dimensions={0} e = s8[<=7,2,3] set-dimension-size(x, l), dimensions={0} "
    "f = s8[<=5,1,2] reshape(d) g = s32[<=5,1,3] convolution(f, e), "
    "window={size=7 stride=2 pad=3_4 lhs_dilate=2 rhs_reversal=1}, dim_labels=0bf_0io->0bf "
    "y = f32[9,2,3] parameter(6) v = f32[3,3,2] parameter(7) three = s32[] constant(3) h = s32[] maximum(m, two) "
    "u = f32[<=3,3,2] set-dimension-size(v, h), dimensions={0} "
    "o = f32[2,2,2] convolution(y, u), window={size=3 stride=4}, dim_labels=0bf_0io->0bf "
    "ROOT r = (f32[3,<=3,4], s32[<=5,1,3], f32[2,2,2]) tuple(c, g, o)",
    // Matrices of a size, in as many as there are, of which the last two rows have no factor; and those that they are
    // solved for: upper ones begin at the last row.
    "p = s8[2,7,7] parameter(2) q = f32[2,7,7] convert(p) s = f32[2,7,7] dot(q, q), lhs_batch_dims={0}, "
    "rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2} i = s32[2,7,7] iota(), iota_dimension=1 "
    "j = s32[2,7,7] iota(), iota_dimension=2 four = s32[] constant(4) k = s32[2,7,7] broadcast(four), dimensions={} "
    "d = pred[2,7,7] compare(i, k), direction=GT low = f32[] constant(-1e9) one = f32[] constant(1) "
    "lows = f32[2,7,7] broadcast(low), dimensions={} ones = f32[2,7,7] broadcast(one), dimensions={} "
    "w = f32[2,7,7] select(d, lows, ones) e = pred[2,7,7] compare(i, j), direction=EQ u = f32[2,7,7] convert(e) "
    "uw = f32[2,7,7] multiply(u, w) t = f32[2,7,7] add(s, uw) a = f32[2,<=7,7] set-dimension-size(t, n), "
    "dimensions={1} "
    "b = f32[2,<=7,<=7] set-dimension-size(a, n), dimensions={2} c = f32[<=2,<=7,<=7] set-dimension-size(b, m), "
    "dimensions={0} l = f32[2,<=7,<=7] cholesky(b), lower=true h = f32[<=2,<=7,<=7] cholesky(c), lower=false "
    "z = f32[] constant(0) zs = f32[2,7,7] broadcast(z), dimensions={} f = pred[2,7,7] compare(i, j), direction=GE "
    "lz = f32[2,<=7,<=7] select(f, l, zs) g = pred[2,7,7] compare(i, j), direction=LE "
    "hz = f32[<=2,<=7,<=7] select(g, h, zs) ROOT r = (f32[2,<=7,<=7], f32[<=2,<=7,<=7]) tuple(lz, hz)",
    "p = s8[2,7,7] parameter(2) q = f32[2,7,7] convert(p) i = s32[2,7,7] iota(), iota_dimension=1 "
    "j = s32[2,7,7] iota(), iota_dimension=2 e = pred[2,7,7] compare(i, j), direction=EQ w = f32[] constant(300) "
    "ws = f32[2,7,7] broadcast(w), dimensions={} t = f32[2,7,7] select(e, ws, q) x = f32[2,7,3] parameter(3) "
    "y = f32[2,4,7] parameter(4) a = f32[2,<=7,7] set-dimension-size(t, n), dimensions={1} "
    "b = f32[2,<=7,<=7] set-dimension-size(a, n), dimensions={2} c = f32[<=2,<=7,<=7] set-dimension-size(b, m), "
    "dimensions={0} xs = f32[2,<=7,3] set-dimension-size(x, m), dimensions={1} "
    "xm = f32[2,<=7,<=3] set-dimension-size(xs, m), dimensions={2} "
    "l = f32[2,<=7,<=3] triangular-solve(b, xm), left_side=true, lower=true "
    "u = f32[2,<=7,<=3] triangular-solve(b, xm), left_side=true, lower=false, transpose_a=NO_TRANSPOSE "
    "v = f32[<=2,4,<=7] triangular-solve(c, y), left_side=false, lower=true, unit_diagonal=true "
    "o = f32[2,<=7,3] triangular-solve(t, xs), left_side=true, lower=true, transpose_a=TRANSPOSE "
    "ROOT r = (f32[2,<=7,<=3], f32[2,<=7,<=3], f32[<=2,4,<=7], f32[2,<=7,3]) tuple(l, u, v, o)",
    // Norms: of fewer elements of each feature, of fewer features, of both.
    "p = f32[7,5,3] parameter(2) s = f32[3] parameter(3) o = f32[3] parameter(4) q = f32[7,5,3] parameter(5) "
    "x = f32[<=7,5,3] set-dimension-size(p, n), dimensions={0} g = f32[<=7,5,3] set-dimension-size(q, m), "
    "dimensions={0} t = (f32[<=7,5,3], f32[3], f32[3]) batch-norm-training(x, s, o), epsilon=0.001, feature_index=2 "
    "v = f32[3] get-tuple-element(t), index=2 a = f32[3] abs(v) c = f32[3] get-tuple-element(t), index=1 "
    "d = (f32[<=7,5,3], f32[3], f32[3]) batch-norm-grad(x, s, o, s, g), epsilon=0.5, feature_index=2 "
    "ROOT r = ((f32[<=7,5,3], f32[3], f32[3]), (f32[<=7,5,3], f32[3], f32[3])) tuple(t, d)",
    "p = bf16[4,7,9] parameter(2) s = bf16[7] parameter(3) o = bf16[7] parameter(4) q = bf16[4,7,9] parameter(5) "
    "x = bf16[4,<=7,9] set-dimension-size(p, n), dimensions={1} y = bf16[4,<=7,<=9] set-dimension-size(x, m), "
    "dimensions={2} u = bf16[<=7] set-dimension-size(s, m), dimensions={0} "
    "t = (bf16[4,<=7,<=9], bf16[<=7], bf16[<=7]) batch-norm-training(y, s, o), epsilon=0.01, feature_index=1 "
    "d = (bf16[4,<=7,<=9], bf16[<=7], bf16[<=7]) batch-norm-grad(q, u, o, s, y), epsilon=1, feature_index=1 "
    "h = bf16[4,<=7,<=9] batch-norm-inference(y, u, s, o, s), epsilon=1, feature_index=1 "
    "w = (bf16[4,<=7,9], bf16[<=7], bf16[<=7]) batch-norm-training(p, u, o), epsilon=0.01, feature_index=1 "
    "ROOT r = ((bf16[4,<=7,<=9], bf16[<=7], bf16[<=7]), (bf16[4,<=7,<=9], bf16[<=7], bf16[<=7]), bf16[4,<=7,<=9], "
    "(bf16[4,<=7,9], bf16[<=7], bf16[<=7])) tuple(t, d, h, w)",
    // In a call, and where the count is read again behind it.
    "p = f64[2,7] parameter(2) s = f64[7] parameter(3) a = f64[<=2,7] set-dimension-size(p, m), dimensions={0} "
    "c = f64[<=2,7] call(a, s), to_apply=norm r = f64[<=2,7] negate(c) "
    "k = s32[] get-dimension-size(r), dimensions={0} ROOT t = (f64[<=2,7], s32[]) tuple(r, k)",
    // Scans: sums, associative or not, from both ends; of several carries in blocks; of steps that return more than
    // carries;
    // of fewer lines.
    "p = f32[7,3] parameter(2) c = f32[3] parameter(3) q = f32[300] parameter(4) o = f32[] parameter(5) "
    "w = s32[] constant(39) l = s32[] multiply(m, w) a = f32[<=7,3] set-dimension-size(p, n), dimensions={0} "
    "b = f32[<=300] set-dimension-size(q, l), dimensions={0} "
    "s = (f32[<=7,3], f32[3]) scan(a, c), dimensions={0}, num_carries=1, to_apply=add3 "
    "t = (f32[<=7,3], f32[3]) scan(a, c), dimensions={0}, num_carries=1, is_reverse=true, to_apply=add3 "
    "u = (f32[<=300], f32[]) scan(b, o), dimensions={0}, num_carries=1, is_associative=true, to_apply=add "
    "v = (f32[<=300], f32[]) scan(b, o), dimensions={0}, num_carries=1, is_reverse=true, is_associative=true, "
    "to_apply=add ROOT r = ((f32[<=7,3], f32[3]), (f32[<=7,3], f32[3]), (f32[<=300], f32[]), (f32[<=300], f32[])) "
    "tuple(s, t, u, v)",
    "p = f32[300] parameter(2) q = f32[300] parameter(3) o = f32[] parameter(4) i = f32[] parameter(5) "
    "w = s32[] constant(39) k = s32[] multiply(n, w) l = s32[] multiply(m, w) "
    "a = f32[<=300] set-dimension-size(p, k), dimensions={0} b = f32[<=300] set-dimension-size(q, l), dimensions={0} "
    "s = (f32[<=300], f32[<=300], f32[], f32[]) scan(a, b, o, i), dimensions={0}, num_carries=2, "
    "is_associative=true, to_apply=affine "
    "t = (f32[<=300], f32[<=300], f32[], f32[]) scan(b, q, o, i), dimensions={0}, num_carries=2, is_reverse=true, "
    "is_associative=true, to_apply=affine d = s32[] get-dimension-size(s1), dimensions={0} "
    "s1 = f32[<=300] get-tuple-element(s), index=1 ROOT r = ((f32[<=300], f32[<=300], f32[], f32[]), (f32[<=300], "
    "f32[<=300], f32[], f32[]), s32[]) tuple(s, t, d)",
    "p = f32[4,7] parameter(2) c = s32[4] parameter(3) a = f32[4,<=7] set-dimension-size(p, n), dimensions={1} "
    "b = f32[<=4,<=7] set-dimension-size(a, m), dimensions={0} e = s32[<=4] set-dimension-size(c, n), dimensions={0} "
    "s = (f32[4,<=7], s32[4]) scan(a, c), dimensions={1}, num_carries=1, to_apply=mixed "
    "t = (f32[4,<=7], s32[4]) scan(a, c), dimensions={1}, num_carries=1, is_reverse=true, to_apply=mixed "
    "u = (f32[<=4,<=7], s32[<=4]) scan(b, c), dimensions={1}, num_carries=1, to_apply=mixed "
    "v = (f32[<=4,7], s32[<=4]) scan(p, e), dimensions={1}, num_carries=1, is_reverse=true, to_apply=mixed_sized "
    "ROOT r = ((f32[4,<=7], s32[4]), (f32[4,<=7], s32[4]), (f32[<=4,<=7], s32[<=4]), (f32[<=4,7], s32[<=4])) "
    "tuple(s, t, u, v)",
    // What is started of arrays with a size, in ENTRY and in a loop that carries it; ops by their own names; copies.
    "p = f32[7] parameter(2) a = f32[<=7] set-dimension-size(p, n), dimensions={0} "
    "s = ((f32[<=7], s32[]), f32[<=7], s32[]) async-start(a, m), calls=shorter "
    "u = ((f32[<=7], s32[]), f32[<=7], s32[]) async-update(s) b = f32[<=7] async-done(u) "
    "k = s32[] get-dimension-size(b), dimensions={0} t = ((f32[<=7]), f32[<=7]) reverse-start(b), dimensions={0} "
    "c = f32[<=7] reverse-done(t) g = (f32[<=7], f32[<=7], u32[]) copy-start(c) d = f32[<=7] copy-done(g) "
    "z = s32[] constant(0) i = (s32[], ((f32[<=7], s32[]), f32[<=7], s32[])) tuple(z, s) "
    "w = (s32[], ((f32[<=7], s32[]), f32[<=7], s32[])) while(i), condition=thrice, body=next "
    "v = ((f32[<=7], s32[]), f32[<=7], s32[]) get-tuple-element(w), index=1 o = f32[<=7] async-done(v) "
    "l = f32[7] parameter(3) q = ((f32[7]), f32[7], s32[]) async-start(l), calls=turned h = f32[7] async-done(q) "
    "ROOT r = (f32[<=7], s32[], f32[<=7], f32[<=7], f32[7]) tuple(b, k, d, o, h)",
    // Scatters of parts: windows of a known size, of one that is a value, in both; in batches; by indices in front, of
    // one
    // byte, of none; of windows that are larger than what is there.
    "p = s32[7,4] parameter(2) i0 = s32[5,1] parameter(3) u = s32[5,2,4] parameter(4) k = s32[] constant(7) "
    "ks = s32[5,1] broadcast(k), dimensions={} i1 = s32[5,1] and(i0, ks) one = s32[] constant(1) "
    "ones = s32[5,1] broadcast(one), dimensions={} i = s32[5,1] subtract(i1, ones) "
    "a = s32[<=7,4] set-dimension-size(p, n), dimensions={0} "
    "b = s32[<=7,4] scatter(a, i, u), update_window_dims={1,2}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus "
    "v = s32[5,<=2,4] set-dimension-size(u, m), dimensions={1} "
    "c = s32[<=7,4] scatter(a, i, v), update_window_dims={1,2}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus "
    "w = s32[5,<=2,<=4] set-dimension-size(v, n), dimensions={2} e = s32[<=7,<=4] set-dimension-size(a, m), "
    "dimensions={1} d = s32[<=7,<=4] scatter(e, i, w), update_window_dims={1,2}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=false, to_apply=plus "
    "j = s32[<=5,1] set-dimension-size(i, m), dimensions={0} "
    "g = s32[7,4] scatter(p, j, w), update_window_dims={1,2}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus "
    "ROOT r = (s32[<=7,4], s32[<=7,4], s32[<=7,<=4], s32[7,4]) tuple(b, c, d, g)",
    "p = s32[3,7,5] parameter(2) i0 = u8[2,3,4] parameter(3) u = s32[4,3,3,2] parameter(4) k = u8[] constant(7) "
    "ks = u8[2,3,4] broadcast(k), dimensions={} i = u8[2,3,4] and(i0, ks) "
    "a = s32[3,<=7,5] set-dimension-size(p, n), dimensions={1} b = s32[<=3,<=7,5] set-dimension-size(a, m), "
    "dimensions={0} v = s32[4,3,<=3,2] set-dimension-size(u, m), dimensions={2} "
    "t = s32[3,4,3,2] transpose(u), dimensions={1,0,2,3} w = s32[3,4,<=3,2] set-dimension-size(t, m), dimensions={2} "
    "c = s32[<=3,<=7,5] scatter(b, i, w), update_window_dims={2,3}, inserted_window_dims={}, input_batching_dims={0}, "
    "scatter_indices_batching_dims={1}, scatter_dims_to_operand_dims={2,1}, index_vector_dim=0, to_apply=plus "
    "h = s64[3,4] parameter(5) hs = s64[3,4] broadcast(k64), dimensions={} k64 = s64[] constant(7) "
    "l = s64[3,4] and(h, hs) o = s64[3,<=4] set-dimension-size(l, n), dimensions={1} "
    "d = s32[3,<=7,5] scatter(a, o, x), update_window_dims={0,3}, inserted_window_dims={}, input_batching_dims={0}, "
    "scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={2}, index_vector_dim=2, to_apply=plus "
    "x = s32[<=3,3,4,2] transpose(w), dimensions={2,0,1,3} "
    "ROOT r = (s32[<=3,<=7,5], s32[3,<=7,5]) tuple(c, d)",
    "p = s32[7] parameter(2) i = s32[4,0] parameter(3) u = s32[4,3] parameter(4) "
    "a = s32[<=7] set-dimension-size(p, n), dimensions={0} v = s32[<=4,3] set-dimension-size(u, m), dimensions={0} "
    "b = s32[<=7] scatter(a, i, v), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, "
    "index_vector_dim=1, to_apply=plus w = s32[4,<=3] set-dimension-size(u, m), dimensions={1} "
    "c = s32[7] scatter(p, i, w), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, "
    "index_vector_dim=1, to_apply=plus q = s32[300] parameter(5) s = s32[300] iota(), iota_dimension=0 "
    "y = s32[300] set-dimension-size(q, f), dimensions={0} f = s32[] constant(300) "
    "z = s32[<=300] set-dimension-size(s, n), dimensions={0} "
    "d = s32[300] scatter(y, z, q), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, unique_indices=true, to_apply=plus "
    "ROOT r = (s32[<=7], s32[7], s32[300]) tuple(b, c, d)",
    // Transforms of as many points, of complex and real numbers, both ways, along one dimension of several and more.
    "p = c64[3,7] parameter(2) a = c64[3,<=7] set-dimension-size(p, n), dimensions={1} "
    "b = c64[<=3,<=7] set-dimension-size(a, m), dimensions={0} c = c64[3,<=7] fft(a), fft_type=FFT, fft_length={7} "
    "d = c64[<=3,<=7] fft(b), fft_type=IFFT, fft_length={3,7} q = f64[2,7,6] parameter(3) "
    "e = f64[2,7,<=6] set-dimension-size(q, n), dimensions={2} g = f64[2,<=7,<=6] set-dimension-size(e, m), "
    "dimensions={1} h = c128[2,<=7,<=4] fft(g), fft_type=RFFT, fft_length={7,6} "
    "i = c128[2,<=7,4] fft(f), fft_type=RFFT, fft_length={7,6} f = f64[2,<=7,6] set-dimension-size(q, m), "
    "dimensions={1} x = c128[2,7,4] parameter(4) y = c128[<=2,7,4] set-dimension-size(x, n), dimensions={0} "
    "z = c128[<=2,<=7,4] set-dimension-size(y, m), dimensions={1} "
    "w = f64[<=2,<=7,6] fft(z), fft_type=IRFFT, fft_length={7,6} "
    "j = f64[<=2,7,6] fft(y), fft_type=IRFFT, fft_length={6} k = s32[] get-dimension-size(h), dimensions={2} "
    "ROOT r = (c64[3,<=7], c64[<=3,<=7], c128[2,<=7,<=4], c128[2,<=7,4], f64[<=2,<=7,6], f64[<=2,7,6], s32[]) "
    "tuple(c, d, h, i, w, j, k)",
    "p = c64[150] parameter(2) q = f32[150] parameter(3) f = s32[] constant(21) l = s32[] multiply(n, f) "
    "a = c64[<=150] set-dimension-size(p, l), dimensions={0} b = f32[<=150] set-dimension-size(q, l), dimensions={0} "
    "c = c64[<=150] fft(a), fft_type=FFT, fft_length={150} d = c64[<=76] fft(b), fft_type=RFFT, fft_length={150} "
    "ROOT r = (c64[<=150], c64[<=76]) tuple(c, d)",
    // Selections among what is there: overlapping windows, with padding, that see nothing, in two dimensions.
    "p = f32[2,7] parameter(2) q = f32[2,3] parameter(3) a = f32[2,<=7] set-dimension-size(p, n), dimensions={1} "
    "o = f32[] constant(0.5) z = s32[] constant(0) "
    "ones = f32[2,7] broadcast(o), dimensions={} f = f32[2,<=7] set-dimension-size(ones, n), dimensions={1} "
    "w = f32[2,<=3] reduce-window(f, o), window={size=1x3 stride=1x2}, to_apply=plus_floats "
    "k = s32[] get-dimension-size(w), dimensions={1} u = f32[2,<=3] set-dimension-size(q, k), dimensions={1} "
    "c = f32[2,<=7] select-and-scatter(a, u, o), window={size=1x3 stride=1x2}, select=ge, scatter=most "
    "s = s32[7,6] parameter(4) v = s32[8,4] parameter(5) b = s32[<=7,6] set-dimension-size(s, n), dimensions={0} "
    "e = s32[<=7,<=6] set-dimension-size(b, m), dimensions={1} "
    "x = s32[<=8,<=4] reduce-window(e, z), window={size=2x3 stride=1x2 pad=1_1x2_1}, to_apply=plus "
    "k0 = s32[] get-dimension-size(x), dimensions={0} k1 = s32[] get-dimension-size(x), dimensions={1} "
    "y = s32[<=8,4] set-dimension-size(v, k0), dimensions={0} t = s32[<=8,<=4] set-dimension-size(y, k1), "
    "dimensions={1} d = s32[<=7,<=6] select-and-scatter(e, t, z), window={size=2x3 stride=1x2 pad=1_1x2_1}, "
    "select=less, scatter=plus ROOT r = (f32[2,<=7], s32[<=7,<=6]) tuple(c, d)",
    // Groups of a size: of features of the input and of the kernel, of batches, all in one.
    "two = s32[] constant(2) l = s32[] multiply(n, two) h = s32[] multiply(m, two) p = f32[3,6,14] parameter(2) "
    "w = f32[3,7,8] parameter(3) a = f32[3,6,<=14] set-dimension-size(p, l), dimensions={2} "
    "v = f32[3,<=7,8] set-dimension-size(w, n), dimensions={1} "
    "c = f32[3,4,8] convolution(a, v), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=2 "
    "u = f32[3,<=7,<=8] set-dimension-size(v, h), dimensions={2} "
    "d = f32[3,4,<=8] convolution(a, u), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=2 "
    "q = s32[14,6,5] parameter(4) y = s32[3,5,8] parameter(5) b = s32[<=14,6,5] set-dimension-size(q, l), "
    "dimensions={0} x = s32[<=14,<=6,5] set-dimension-size(b, m), dimensions={1} "
    "z = s32[3,5,<=8] set-dimension-size(y, h), dimensions={2} "
    "e = s32[<=7,6,8] convolution(b, y), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, batch_group_count=2 "
    "g = s32[<=7,<=6,<=8] convolution(x, z), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, batch_group_count=2 "
    "k = s32[] get-dimension-size(g), dimensions={0} "
    "ROOT r = (f32[3,4,8], f32[3,4,<=8], s32[<=7,6,8], s32[<=7,<=6,<=8], s32[]) tuple(c, d, e, g, k)",
    // Dots of groups: of rows that are there, of fewer groups than there is room for, of what is summed; and batches.
    "p = f32[9,7] parameter(2) w = f32[7,7,5] parameter(3) g = u8[7] parameter(4) t = u8[] constant(3) "
    "ts = u8[7] broadcast(t), dimensions={} g1 = u8[7] and(g, ts) s = s32[7] convert(g1) "
    "a = f32[9,<=7] set-dimension-size(p, n), dimensions={1} b = f32[<=9,<=7] set-dimension-size(a, m), dimensions={0} "
    "c = f32[<=9,5] ragged-dot(b, w, s), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
    "rhs_group_dims={0} v = f32[7,7,<=5] set-dimension-size(w, m), dimensions={2} "
    "r0 = s32[<=7] set-dimension-size(s, n), dimensions={0} "
    "d = f32[9,<=5] ragged-dot(p, v, r0), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
    "rhs_group_dims={0} u = f32[<=7,7,5] set-dimension-size(w, m), dimensions={0} "
    "e = f32[9,5] ragged-dot(p, u, s), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
    "rhs_group_dims={0} q = f32[9,5] parameter(5) y = f32[<=9,5] set-dimension-size(q, m), dimensions={0} "
    "x = f32[<=9,7] set-dimension-size(p, n), dimensions={0} "
    "h = f32[7,7,5] ragged-dot(x, y, s), lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}, "
    "rhs_group_dims={} k = f32[<=7,7,5] ragged-dot(p, q, r0), lhs_contracting_dims={0}, rhs_contracting_dims={0}, "
    "lhs_ragged_dims={0}, rhs_group_dims={} "
    "ROOT r = (f32[<=9,5], f32[9,<=5], f32[9,5], f32[7,7,5], f32[<=7,7,5]) tuple(c, d, e, h, k)",
};

static const char computations[] =
    "most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"
    "plus_floats { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
    "ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }\n"
    "less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LE }\n"
    "plus { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n"
    "shorter { a = f32[<=7] parameter(0) m = s32[] parameter(1) b = f32[<=7] negate(a) "
    "ROOT r = f32[<=7] set-dimension-size(b, m), dimensions={0} }\n"
    "turned { a = f32[7] parameter(0) ROOT r = f32[7] reverse(a), dimensions={0} }\n"
    "thrice { p = (s32[], ((f32[<=7], s32[]), f32[<=7], s32[])) parameter(0) i = s32[] get-tuple-element(p), index=0 "
    "t = s32[] constant(3) ROOT r = pred[] compare(i, t), direction=LT }\n"
    "next { p = (s32[], ((f32[<=7], s32[]), f32[<=7], s32[])) parameter(0) i = s32[] get-tuple-element(p), index=0 "
    "s = ((f32[<=7], s32[]), f32[<=7], s32[]) get-tuple-element(p), index=1 a = f32[<=7] async-done(s) "
    "k = s32[] get-dimension-size(a), dimensions={0} o = s32[] constant(1) l = s32[] add(k, o) j = s32[] add(i, o) "
    "t = ((f32[<=7], s32[]), f32[<=7], s32[]) async-start(a, l), calls=shorter "
    "ROOT r = (s32[], ((f32[<=7], s32[]), f32[<=7], s32[])) tuple(j, t) }\n"
    "add { x = f32[] parameter(0) c = f32[] parameter(1) n = f32[] add(x, c) ROOT r = (f32[], f32[]) tuple(n, n) }\n"
    "add3 { x = f32[3] parameter(0) c = f32[3] parameter(1) n = f32[3] add(x, c) "
    "ROOT r = (f32[3], f32[3]) tuple(n, n) }\n"
    "affine { x = f32[] parameter(0) y = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3) "
    "a = f32[] multiply(x, c) b = f32[] multiply(x, d) e = f32[] add(b, y) "
    "ROOT r = (f32[], f32[], f32[], f32[]) tuple(a, e, a, e) }\n"
    "mixed { x = f32[4] parameter(0) c = s32[4] parameter(1) y = f32[4] convert(c) z = f32[4] add(x, y) "
    "e = pred[4] compare(x, y), direction=LT i = s32[4] convert(e) t = s32[4] add(c, c) d = s32[4] add(t, i) "
    "ROOT r = (f32[4], s32[4]) tuple(z, d) }\n"
    "mixed_sized { x = f32[<=4] parameter(0) c = s32[<=4] parameter(1) y = f32[<=4] convert(c) "
    "z = f32[<=4] subtract(x, y) d = s32[<=4] xor(c, e) e = s32[<=4] convert(z) "
    "ROOT r = (f32[<=4], s32[<=4]) tuple(z, d) }\n";

static void set_sizes(const kiln_module *m, size_t parameter, unsigned number, void *buffer) {
  static const int32_t sizes[] = {0, 1, 7, 2, -3, 9, 5, 3};
  if (parameter < 2) memcpy(buffer, &sizes[(number + 3 * parameter) % KL_COUNT(sizes)], sizeof *sizes);
}

START_TEST(sized_ops) {
  static char text[10000];
  if (!share_has((uint64_t)_i, 1)) return;
  change_parameter = set_sizes;
  snprintf(text, sizeof text,
           "HloModule fusion\n\n"
           "norm { a = f64[<=2,7] parameter(0) s = f64[7] parameter(1) t = (f64[<=2,7], f64[7], f64[7]) "
           "batch-norm-training(a, s, s), epsilon=0.25, feature_index=1 ROOT r = f64[<=2,7] get-tuple-element(t), "
           "index=0 }\n"
           "%sENTRY e { n = s32[] parameter(0) m = s32[] parameter(1) %s }\n",
           computations, cases[_i]);
  kiln_module *m = parse(text);
  for (unsigned k = 0; k < 8; k++) run_both_and_check(cx, m, 3, k, text);
  kiln_module_destroy(&m);
  change_parameter = NULL;
}
END_TEST

int main(void) {
  return RUN_TESTS("sized", EACH(open_batches, close_batches), {sized_ops, KL_COUNT(cases)});
}
