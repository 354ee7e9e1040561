// More kinds of ops for random modules: matrices that are factored and solved, groups of rows, complex numbers and
// truths, transforms of several dimensions, random numbers that go on, branches over tuples.
#ifndef TESTS_EMIT_RANDOM_MORE_H
#define TESTS_EMIT_RANDOM_MORE_H

// The product of rows with themselves, and something more on the diagonal: so that it has a root. Its name ends in n.
static void put_matrix(int a, const char *t, int n) {
  kl_sbf(&text, "  ma%d = %s[7,7] dot(v%d, v%d), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n", n, t, a, a);
  kl_sbf(&text, "  mi%d = s32[7,7] iota(), iota_dimension=0\n  mj%d = s32[7,7] iota(), iota_dimension=1\n", n, n);
  kl_sbf(&text, "  md%d = pred[7,7] compare(mi%d, mj%d), direction=EQ\n  mc%d = %s[] constant(3)\n", n, n, n, n, t);
  kl_sbf(&text, "  mb%d = %s[7,7] broadcast(mc%d), dimensions={}\n  ms%d = %s[7,7] add(ma%d, mb%d)\n", n, t, n, n, t, n,
         n);
  kl_sbf(&text, "  m%d = %s[7,7] select(md%d, ms%d, ma%d)\n", n, t, n, n, n);
}

static void put_linear(void) {
  int t = chance(60) ? 0 : 4, a = find(3, t), b = find(3, t), n = nvalues;
  const char *name = types[t];
  bool lower = chance(50);
  put_matrix(a, name, n);
  if (chance(50)) {
    begin(3, t);
    kl_sbf(&text, "triangular-solve(m%d, v%d), left_side=true, lower=%s, unit_diagonal=%s, transpose_a=%s\n", n, b,
           lower ? "true" : "false", chance(30) ? "true" : "false", chance(50) ? "TRANSPOSE" : "NO_TRANSPOSE");
    return;
  }
  kl_sbf(&text, "  ch%d = %s[7,7] cholesky(m%d), lower=%s\n", n, name, n, lower ? "true" : "false");
  kl_sbf(&text, "  ct%d = pred[7,7] compare(mi%d, mj%d), direction=%s\n", n, n, n, lower ? "GE" : "LE");
  kl_sbf(&text, "  cz%d = %s[7,7] broadcast(zero_%s), dimensions={}\n  cl%d = %s[7,7] select(ct%d, ch%d, cz%d)\n", n,
         name, name, n, name, n, n, n);
  begin(3, t);
  kl_sbf(&text, "dot(cl%d, v%d), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", n, b);
}

// Groups of rows that data says, each times a matrix of its own.
static void put_groups(void) {
  int t = (int)below(TYPES), a = find(4, t), b = find(6, t), g = find(1, 1), n = nvalues;
  const char *name = types[t];
  kl_sbf(&text, "  gr%d = %s[3,7,4] transpose(v%d), dimensions={0,2,1}\n  gs%d = s32[3] slice(v%d), slice={[2:5]}\n", n,
         name, b, n, g);
  kl_sbf(&text, "  gk%d = s32[3] constant({7, 3, 15})\n  gz%d = s32[3] and(gs%d, gk%d)\n", n, n, n, n);
  kl_sbf(&text,
         "  gd%d = %s[12,4] ragged-dot(v%d, gr%d, gz%d), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
         "lhs_ragged_dims={0}, rhs_group_dims={0}\n",
         n, name, a, n, n);
  begin(2, t);
  kl_sbf(&text, "reduce(gd%d, zero_%s), dimensions={1}, to_apply=sum_%s\n", n, name, name);
}

static void put_norm_back(void) {
  int a = find(3, 0), g = find(3, 0), s = find(2, 0), v = find(2, 0), n = nvalues;
  kl_sbf(&text, "  nv%d = f32[12] abs(v%d)\n", n, v);
  kl_sbf(&text,
         "  ng%d = (f32[7,12], f32[12], f32[12]) batch-norm-grad(v%d, v%d, v%d, nv%d, v%d), epsilon=0.5, "
         "feature_index=1\n",
         n, a, s, s, n, g);
  begin(3, 0);
  kl_sbf(&text, "get-tuple-element(ng%d), index=0\n", n);
  begin(2, 0);
  kl_sbf(&text, "get-tuple-element(ng%d), index=%u\n", n, 1 + below(2));
}

// Truths by row and by element, joined and counted.
static void put_truths(void) {
  static const char *const two[] = {"and", "or", "xor"};
  int t = (int)below(TYPES), a = find(3, t), b = find(3, t), p = find(3, PRED), n = nvalues;
  static const char *const ways[] = {"LT", "GE", "EQ", "NE"};
  kl_sbf(&text, "  pc%d = pred[7,12] compare(v%d, v%d), direction=%s\n", n, a, b, ways[below(4)]);
  if (p < 0 || chance(20))
    kl_sbf(&text, "  pd%d = pred[7,12] not(pc%d)\n", n, n);
  else
    kl_sbf(&text, "  pd%d = pred[7,12] %s(pc%d, v%d)\n", n, two[below(3)], n, p);
  switch (below(4)) {
  case 0:
    begin(3, PRED);
    kl_sbf(&text, "copy(pd%d)\n", n);
    break;
  case 1:
    begin(1, PRED);
    kl_sbf(&text, "reduce(pd%d, %s_pred), dimensions={1}, to_apply=%s_pred\n", n, chance(50) ? "no" : "yes",
           chance(50) ? "any" : "odd");
    break;
  case 2:
    begin(3, PRED);
    kl_sbf(&text, "sort(pd%d), dimensions={%u}, to_apply=less_pred\n", n, below(2));
    break;
  default: begin(3, t); kl_sbf(&text, "convert(pd%d)\n", n);
  }
}

static void put_complex(void) {
  static const char *const one[] = {"negate", "exponential", "tanh", "log", "sqrt", "cosine"};
  static const char *const two[] = {"add", "multiply", "subtract", "divide"};
  int a = find(3, 0), b = find(3, 0), c = find(4, 0), n = nvalues;
  kl_sbf(&text, "  ca%d = c64[7,12] complex(v%d, v%d)\n  cb%d = c64[7,12] %s(ca%d)\n", n, a, b, n, one[below(6)], n);
  kl_sbf(&text, "  cc%d = c64[7,12] %s(ca%d, cb%d)\n", n, two[below(4)], n, n);
  switch (below(4)) {
  case 0:
    kl_sbf(&text, "  cr%d = c64[7] reduce(cc%d, zero_c64), dimensions={1}, to_apply=sum_c64\n", n, n);
    begin(1, 0);
    kl_sbf(&text, "%s(cr%d)\n", chance(50) ? "real" : "imag", n);
    break;
  case 1:
    kl_sbf(&text, "  cv%d = c64[12,7] convert(v%d)\n", n, c);
    kl_sbf(&text, "  cd%d = c64[7,7] dot(cc%d, cv%d), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", n, n, n);
    kl_sbf(&text, "  cs%d = c64[7] reduce(cd%d, zero_c64), dimensions={0}, to_apply=sum_c64\n", n, n);
    begin(1, 0);
    kl_sbf(&text, "abs(cs%d)\n", n);
    break;
  case 2:
    kl_sbf(&text, "  ct%d = c64[12,7] transpose(cc%d), dimensions={1,0}\n", n, n);
    begin(4, 0);
    kl_sbf(&text, "imag(ct%d)\n", n);
    break;
  default: begin(3, 0); kl_sbf(&text, "%s(cc%d)\n", chance(50) ? "real" : "abs", n);
  }
}

// Of one dimension, two and three, and of real numbers there and back.
static void put_transforms(void) {
  static const char *const dims[] = {"{7}", "{4,7}", "{3,4,7}"};
  int a = find(6, 0), b = find(6, 0), c = find(3, 0), n = nvalues;
  if (chance(30)) {
    kl_sbf(&text, "  fr%d = c64[7,7] fft(v%d), fft_type=RFFT, fft_length={%s12}\n", n, c, chance(50) ? "" : "7,");
    begin(3, 0);
    kl_sbf(&text, "fft(fr%d), fft_type=IRFFT, fft_length={%s12}\n", n, chance(50) ? "" : "7,");
    return;
  }
  kl_sbf(&text, "  fc%d = c64[3,4,7] complex(v%d, v%d)\n", n, a, b);
  kl_sbf(&text, "  ff%d = c64[3,4,7] fft(fc%d), fft_type=%s, fft_length=%s\n", n, n, chance(50) ? "FFT" : "IFFT",
         dims[below(3)]);
  begin(6, 0);
  kl_sbf(&text, "%s(ff%d)\n", chance(50) ? "real" : "imag", n);
}

// Two draws, the second from the state that the first leaves, which begins as data says.
static void put_numbers(void) {
  static const char *const of[] = {"u32", "u64", "s8", "f32"};
  int s = find(1, 5), n = nvalues, t = (int)below(4);
  kl_sbf(&text, "  rs%d = s64[2] slice(v%d), slice={[1:3]}\n  ru%d = u64[2] convert(rs%d)\n", n, s, n, n);
  const char *how = chance(50) ? "rng_philox" : "rng_three_fry";
  kl_sbf(&text, "  ra%d = (u64[2], u32[5]) rng-bit-generator(ru%d), algorithm=%s\n", n, n, how);
  kl_sbf(&text, "  rt%d = u64[2] get-tuple-element(ra%d), index=0\n", n, n);
  kl_sbf(&text, "  rb%d = (u64[2], %s[7,12]) rng-bit-generator(rt%d), algorithm=%s\n", n, of[t], n, how);
  kl_sbf(&text, "  rc%d = %s[7,12] get-tuple-element(rb%d), index=1\n", n, of[t], n);
  begin(3, chance(50) ? 1 : 5);
  kl_sbf(&text, "convert(rc%d)\n", n);
  kl_sbf(&text, "  re%d = u64[2] get-tuple-element(rb%d), index=0\n  rf%d = s64[2] convert(re%d)\n", n, n, n, n);
  kl_sbf(&text, "  rp%d = s64[7] pad(rf%d, zero_s64), padding=2_3\n", n, n);
  begin(1, 5);
  kl_sbf(&text, "negate(rp%d)\n", n);
}

// One of several branches by number, each of which makes other arrays of the same ones.
static void put_branches(void) {
  static const char *const many[] = {"arms_sorted", "arms_product", "arms_moved", "arms_nested"};
  int a = find(3, 0), b = find(1, 0), i = find(0, 1), n = nvalues;
  kl_sbf(&text, "  bt%d = (f32[7,12], f32[7]) tuple(v%d, v%d)\n", n, a, b);
  kl_sbf(&text, "  bk%d = s32[] constant(3)\n  bi%d = s32[] and(v%d, bk%d)\n", n, n, i, n);
  kl_sbf(&text, "  br%d = (f32[7,12], f32[7]) conditional(bi%d, bt%d, bt%d, bt%d), branch_computations={%s, %s, %s}\n",
         n, n, n, n, n, many[below(4)], many[below(4)], many[below(4)]);
  begin(3, 0);
  kl_sbf(&text, "get-tuple-element(br%d), index=0\n", n);
  begin(1, 0);
  kl_sbf(&text, "get-tuple-element(br%d), index=1\n", n);
}

static void put_more_helpers(void) {
  kl_sb_puts(
      &text,
      "any_pred { a = pred[] parameter(0) b = pred[] parameter(1) ROOT r = pred[] or(a, b) }\n"
      "odd_pred { a = pred[] parameter(0) b = pred[] parameter(1) ROOT r = pred[] xor(a, b) }\n"
      "less_pred { a = pred[] parameter(0) b = pred[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }\n"
      "sum_c64 { a = c64[] parameter(0) b = c64[] parameter(1) ROOT r = c64[] add(a, b) }\n"
      "arms_sorted { t = (f32[7,12], f32[7]) parameter(0) a = f32[7,12] get-tuple-element(t), index=0\n"
      "  b = f32[7] get-tuple-element(t), index=1 s = f32[7,12] sort(a), dimensions={1}, to_apply=less_f32\n"
      "  n = f32[7] negate(b) ROOT r = (f32[7,12], f32[7]) tuple(s, n) }\n"
      "arms_product { t = (f32[7,12], f32[7]) parameter(0) a = f32[7,12] get-tuple-element(t), index=0\n"
      "  b = f32[7] get-tuple-element(t), index=1 z = f32[] constant(0)\n"
      "  d = f32[7,7] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
      "  e = f32[7,12] dot(d, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "  s = f32[7] reduce(a, z), dimensions={1}, to_apply=sum_f32 ROOT r = (f32[7,12], f32[7]) tuple(e, s) }\n"
      "arms_moved { t = (f32[7,12], f32[7]) parameter(0) a = f32[7,12] get-tuple-element(t), index=0\n"
      "  b = f32[7] get-tuple-element(t), index=1 c = f32[7,12] reverse(a), dimensions={0,1}\n"
      "  d = f32[7] reverse(b), dimensions={0} ROOT r = (f32[7,12], f32[7]) tuple(c, d) }\n"
      "arms_nested { t = (f32[7,12], f32[7]) parameter(0) b = f32[7] get-tuple-element(t), index=1\n"
      "  c = f32[1] slice(b), slice={[0:1]} d = f32[] reshape(c) z = f32[] constant(0)\n"
      "  p = pred[] compare(d, z), direction=GT\n"
      "  ROOT r = (f32[7,12], f32[7]) conditional(p, t, t), true_computation=arms_product, "
      "false_computation=arms_moved }\n");
}

// Before all that is drawn in ENTRY.
static void put_more_constants(void) {
  kl_sb_puts(&text, "  zero_c64 = c64[] constant((0, 0))\n  no_pred = pred[] constant(false)\n"
                    "  yes_pred = pred[] constant(true)\n");
}

#endif
