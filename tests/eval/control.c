// The evaluator's structure and control flow: loops, branches, calls, tuples, tokens, asynchronous pairs; what it
// refuses and how it says so; memory and writing in place; ENTRY's buffers.
#include "support/context.h"
#include "support/share.h"
#include "eval/eval.h"

#include <stdio.h>
#include <stdlib.h>

static double value_of(const kl_result *r, int64_t i) {
  kl_dtype t = r->data.shape->dtype;
  uint64_t bits = kl_element_get(t, r->data.data, i, 0);
  if (t == KILN_PRED) return (double)bits;
  return kl_is_float(t) ? kl_float_decode(t, bits) : (double)kl_int_decode(t, bits);
}

// --- values ---------------------------------------------------------------------------------------------------------

#define SUM_LOOP                                                                                                       \
  "less { p = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(10) ROOT r = "    \
  "pred[] compare(i, n), direction=LT }\n"                                                                             \
  "step { p = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0 s = s32[] get-tuple-element(p), "    \
  "index=1 o = s32[] constant(1) j = s32[] add(i, o) t = s32[] add(s, i) ROOT r = (s32[], s32[]) tuple(j, t) }\n"

// Results, all leaves and elements one after the other.
static const struct {
  const char *text, *want;
} programs[] = {
    {SUM_LOOP "ENTRY e { z = s32[] constant(0) t = (s32[], s32[]) tuple(z, z) ROOT r = (s32[], s32[]) while(t), "
              "condition=less, body=step }",
     "10 45"},
    {SUM_LOOP "ENTRY e { a = s32[] constant(10) b = s32[] constant(-3) t = (s32[], s32[]) tuple(a, b) ROOT r = (s32[], "
              "s32[]) while(t), condition=less, body=step }",
     "10 -3"},
    // A state that is no tuple.
    {"less { p = s32[] parameter(0) n = s32[] constant(100) ROOT r = pred[] compare(p, n), direction=LT }\n"
     "step { p = s32[] parameter(0) ROOT r = s32[] add(p, p) }\n"
     "ENTRY e { o = s32[] constant(3) ROOT r = s32[] while(o), condition=less, body=step }",
     "192"},
    // A loop in a loop: 10 rounds of 0 + 1 + .. + 9, added up.
    {SUM_LOOP
     "again { p = (s32[], (s32[], f32[2])) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(10) "
     "ROOT r = pred[] compare(i, n), direction=LT }\n"
     "outer { p = (s32[], (s32[], f32[2])) parameter(0) i = s32[] get-tuple-element(p), index=0 o = s32[] constant(1) "
     "j = s32[] add(i, o) q = (s32[], f32[2]) get-tuple-element(p), index=1 s = s32[] get-tuple-element(q), index=0 "
     "f = f32[2] get-tuple-element(q), index=1 z = s32[] constant(0) t = (s32[], s32[]) tuple(z, s) "
     "w = (s32[], s32[]) while(t), condition=less, body=step v = s32[] get-tuple-element(w), index=1 "
     "n = (s32[], f32[2]) tuple(v, f) ROOT r = (s32[], (s32[], f32[2])) tuple(j, n) }\n"
     "ENTRY e { z = s32[] constant(0) f = f32[2] constant({1.5, 2.5}) q = (s32[], f32[2]) tuple(z, f) "
     "t = (s32[], (s32[], f32[2])) tuple(z, q) ROOT r = (s32[], (s32[], f32[2])) while(t), condition=again, body=outer "
     "}",
     "10 450 1.5 2.5"},
    // Fibonacci: leaves change places.
    {"less { p = (s32[], s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(20) "
     "ROOT r = pred[] compare(i, n), direction=LT }\n"
     "step { p = (s32[], s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0 a = s32[] "
     "get-tuple-element(p), index=1 b = s32[] get-tuple-element(p), index=2 o = s32[] constant(1) j = s32[] add(i, o) "
     "c = s32[] add(a, b) ROOT r = (s32[], s32[], s32[]) tuple(j, b, c) }\n"
     "ENTRY e { z = s32[] constant(0) o = s32[] constant(1) t = (s32[], s32[], s32[]) tuple(z, z, o) "
     "ROOT r = (s32[], s32[], s32[]) while(t), condition=less, body=step }",
     "20 6765 10946"},
    // Writing on an array of the state, whose old value is read after; both must stand.
    {"less { p = (s32[], s32[4], s32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(4) "
     "ROOT r = pred[] compare(i, n), direction=LT }\n"
     "step { p = (s32[], s32[4], s32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0 a = s32[4] "
     "get-tuple-element(p), index=1 o = s32[] constant(1) j = s32[] add(i, o) s = s32[1] reshape(j) "
     "b = s32[4] dynamic-update-slice(a, s, i) c = s32[4] subtract(b, a) ROOT r = (s32[], s32[4], s32[4]) "
     "tuple(j, b, c) }\n"
     "ENTRY e { z = s32[] constant(0) a = s32[4] constant({9,9,9,9}) t = (s32[], s32[4], s32[4]) tuple(z, a, a) "
     "w = (s32[], s32[4], s32[4]) while(t), condition=less, body=step ROOT r = ((s32[], s32[4], s32[4]), s32[4]) "
     "tuple(w, a) }",
     "4 1 2 3 4 0 0 0 -5 9 9 9 9"},
    {"neg { a = f32[2] parameter(0) ROOT r = f32[2] negate(a) }\n"
     "dup { a = f32[] parameter(0) ROOT r = f32[2] broadcast(a), dimensions={} }\n"
     "ENTRY e { p = pred[] constant(true) q = pred[] constant(false) a = f32[2] constant({1, 2}) b = f32[] constant(5) "
     "x = f32[2] conditional(p, a, b), true_computation=neg, false_computation=dup "
     "y = f32[2] conditional(q, a, b), true_computation=neg, false_computation=dup ROOT r = (f32[2], f32[2]) tuple(x, "
     "y) }",
     "-1 -2 5 5"},
    // An index out of range chooses the last branch.
    {"b0 { a = s32[] parameter(0) ROOT r = s32[] negate(a) }\n"
     "b1 { a = (s32[], s32[]) parameter(0) x = s32[] get-tuple-element(a), index=0 y = s32[] get-tuple-element(a), "
     "index=1 "
     "ROOT r = s32[] multiply(x, y) }\n"
     "b2 { a = () parameter(0) ROOT r = s32[] constant(77) }\n"
     "ENTRY e { a = s32[] constant(6) t = (s32[], s32[]) tuple(a, a) n = () tuple() i0 = s32[] constant(0) i1 = s32[] "
     "constant(1) i2 = s32[] constant(2) i3 = s32[] constant(3) i4 = s32[] constant(-1) "
     "r0 = s32[] conditional(i0, a, t, n), branch_computations={b0, b1, b2} "
     "r1 = s32[] conditional(i1, a, t, n), branch_computations={b0, b1, b2} "
     "r2 = s32[] conditional(i2, a, t, n), branch_computations={b0, b1, b2} "
     "r3 = s32[] conditional(i3, a, t, n), branch_computations={b0, b1, b2} "
     "r4 = s32[] conditional(i4, a, t, n), branch_computations={b0, b1, b2} "
     "ROOT r = (s32[], s32[], s32[], s32[], s32[], s32[]) tuple(r0, r1, r2, r3, r4, a) }",
     "-6 36 77 77 77 6"},
    // Calls and fusions with tuples in and out.
    {"f { p = (s32[], (s32[2], s32[])) parameter(0) q = s32[] parameter(1) a = (s32[2], s32[]) get-tuple-element(p), "
     "index=1 b = s32[2] get-tuple-element(a), index=0 c = s32[2] negate(b) ROOT r = ((s32[2]), s32[], (s32[], "
     "(s32[2], "
     "s32[]))) tuple(t, q, p) t = (s32[2]) tuple(c) }\n"
     "ENTRY e { a = s32[] constant(1) b = s32[2] constant({2,3}) c = (s32[2], s32[]) tuple(b, a) d = (s32[], (s32[2], "
     "s32[])) tuple(a, c) ROOT r = ((s32[2]), s32[], (s32[], (s32[2], s32[]))) call(d, a), to_apply=f }",
     "-2 -3 1 1 2 3 1"},
    // Tokens and barriers let values through.
    {"ENTRY e { a = s32[2] constant({1,2}) k = token[] after-all() l = token[] after-all(k, k) b = s32[2] "
     "add-dependency(a, l) t = (s32[2], s32[2]) tuple(a, b) c = (s32[2], s32[2]) opt-barrier(t) d = s32[2] "
     "get-tuple-element(c), index=1 e2 = s32[2] domain(d), domain={kind=\"sharding\", entry={maximal device=0}, "
     "exit={maximal device=1}} ROOT r = s32[2] negate(e2) }",
     "-1 -2"},
    // A token in a loop's state.
    {"less { p = (s32[], token[]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(3) ROOT r = "
     "pred[] compare(i, n), direction=LT }\n"
     "step { p = (s32[], token[]) parameter(0) i = s32[] get-tuple-element(p), index=0 k = token[] "
     "get-tuple-element(p), "
     "index=1 o = s32[] constant(1) j = s32[] add(i, o) l = token[] after-all(k) ROOT r = (s32[], token[]) tuple(j, l) "
     "}\n"
     "ENTRY e { z = s32[] constant(0) k = token[] after-all() t = (s32[], token[]) tuple(z, k) ROOT r = (s32[], "
     "token[]) "
     "while(t), condition=less, body=step }",
     "3"},
    // Asynchronous pairs.
    {"ENTRY e { a = s32[2] constant({1,2}) s = (s32[2], s32[2], u32[]) copy-start(a) ROOT r = s32[2] copy-done(s) }",
     "1 2"},
    {"f { a = s32[2] parameter(0) b = s32[] parameter(1) c = s32[2] broadcast(b), dimensions={} ROOT r = s32[2] add(a, "
     "c) }\n"
     "ENTRY e { a = s32[2] constant({1,2}) b = s32[] constant(5) s = ((s32[2], s32[]), s32[2], u32[]) async-start(a, "
     "b), "
     "calls=f u = ((s32[2], s32[]), s32[2], u32[]) async-update(s) d = s32[2] async-done(u) g = (s32[2], s32[]) "
     "get-tuple-element(s), index=0 c = u32[] get-tuple-element(u), index=2 h = s32[2] get-tuple-element(u), index=1 "
     "ROOT r = (s32[2], (s32[2], s32[]), u32[], s32[2]) tuple(d, g, c, h) }",
     "6 7 1 2 5 0 6 7"},
    {"ENTRY e { a = s32[2] constant({1,2}) s = ((s32[2], s32[2]), s32[2], s32[]) multiply-start(a, a) ROOT d = s32[2] "
     "multiply-done(s) }",
     "1 4"},
    {"f { a = s32[2] parameter(0) ROOT r = (s32[2], s32[2]) tuple(a, a) }\n"
     "ENTRY e { a = s32[2] constant({1,2}) s = ((s32[2]), (s32[2], s32[2]), s32[]) call-start(a), to_apply=f ROOT d = "
     "(s32[2], s32[2]) call-done(s) }",
     "1 2 1 2"},
    {"ENTRY e { a = f32[3,5] constant({...}) ROOT r = s32[] get-dimension-size(b), dimensions={1} c = s32[] "
     "constant(0) "
     "d = f32[] convert(c) b = f32[3,5] broadcast(d), dimensions={} }",
     "5"},
    {"ENTRY e { a = s32[3] constant({4,5,6}) n = s32[] constant(3) ROOT r = s32[3] set-dimension-size(a, n), "
     "dimensions={0} }",
     "4 5 6"},
    // Dynamic dimensions are as long as their bound.
    {"add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n"
     "f { a = s32[<=3,2] parameter(0) ROOT r = s32[<=3,2] negate(a) }\n"
     "ENTRY e { i = s32[3,2] iota(), iota_dimension=0 n = s32[] constant(3) a = s32[<=3,2] set-dimension-size(i, n), "
     "dimensions={0} b = s32[<=3,2] fusion(a), kind=kLoop, calls=f z = s32[] constant(0) s = s32[<=3] reduce(b, z), "
     "dimensions={1}, to_apply=add m = s32[] get-dimension-size(b), dimensions={0} d = s32[<=6] dynamic-reshape(a, k) "
     "k = s32[] constant(6) ROOT t = (s32[<=3], s32[], s32[<=6]) tuple(s, m, d) }",
     "0 -2 -4 3 0 0 1 1 2 2"},
    // Fewer elements than the bound: a fold sees no others, and 0 stands where more are wanted.
    {"add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n"
     "ENTRY e { i = s32[4,2] iota(), iota_dimension=0 n = s32[] constant(3) a = s32[<=4,2] set-dimension-size(i, n), "
     "dimensions={0} z = s32[] constant(10) s = s32[2] reduce(a, z), dimensions={0}, to_apply=add m = s32[] "
     "get-dimension-size(a), dimensions={0} r = s32[<=4,2] reverse(a), dimensions={0} c = s32[<=8,2] concatenate(a, "
     "i), "
     "dimensions={0} f = s32[<=8] reshape(a) ROOT t = (s32[2], s32[], s32[<=4,2], s32[<=8,2], s32[<=8]) tuple(s, m, r, "
     "c, f) }",
     "13 13 3 2 2 1 1 0 0 0 0 0 0 1 1 2 2 0 0 1 1 2 2 3 3 0 0 0 0 1 1 2 2 0 0"},
    {"add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n"
     "ENTRY e { x = s32[4] constant({1,2,3,4}) y = s32[4] constant({5,6,7,8}) n = s32[] constant(2) a = s32[<=4] "
     "set-dimension-size(x, n), dimensions={0} v = s32[] constant(9) p = s32[<=7] pad(a, v), padding=1_2 o = s32[1] "
     "slice(a), slice={[3:4]} f = s32[] constant(4) g = s32[<=4] set-dimension-size(a, f), dimensions={0} u = s32[<=4] "
     "multiply(y, a) k = s32[] get-dimension-size(u), dimensions={0} d = s32[] dot(a, y), lhs_contracting_dims={0}, "
     "rhs_contracting_dims={0} z = s32[] constant(0) w = s32[<=3] reduce-window(a, z), window={size=2}, to_apply=add "
     "ROOT t = (s32[<=7], s32[1], s32[<=4], s32[<=4], s32[], s32[], s32[<=3]) tuple(p, o, g, u, k, d, w) }",
     "9 1 2 9 9 0 0 0 1 2 0 0 5 12 0 0 2 17 3 0 0"},
    // What may have one row is not its columns.
    {"ENTRY e { i = s32[1,3] iota(), iota_dimension=1 n = s32[] constant(0) a = s32[<=1,3] set-dimension-size(i, n), "
     "dimensions={0} b = s32[<=3] reshape(a) k = s32[] get-dimension-size(b), dimensions={0} ROOT t = (s32[<=3], "
     "s32[]) "
     "tuple(b, k) }",
     "0 0 0 0"},
    // Sizes are held to 0 .. bound, and go through loops.
    {"add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n"
     "less { p = (s32[], s32[<=4]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(2) ROOT r = "
     "pred[] compare(i, n), direction=LT }\n"
     "step { p = (s32[], s32[<=4]) parameter(0) i = s32[] get-tuple-element(p), index=0 a = s32[<=4] "
     "get-tuple-element(p), index=1 o = s32[] constant(1) j = s32[] add(i, o) b = s32[<=4] add(a, a) ROOT t = (s32[], "
     "s32[<=4]) tuple(j, b) }\n"
     "ENTRY e { x = s32[4] constant({1,2,3,4}) l = s32[] constant(-5) m = s32[] constant(9) n = s32[] constant(2) z = "
     "s32[] constant(0) a = s32[<=4] set-dimension-size(x, l), dimensions={0} b = s32[<=4] set-dimension-size(x, m), "
     "dimensions={0} c = s32[<=4] set-dimension-size(x, n), dimensions={0} s = s32[] reduce(a, n), dimensions={0}, "
     "to_apply=add i = s32[] get-dimension-size(a), dimensions={0} j = s32[] get-dimension-size(b), dimensions={0} h = "
     "(s32[], s32[<=4]) tuple(z, c) w = (s32[], s32[<=4]) while(h), condition=less, body=step ROOT t = (s32[], s32[], "
     "s32[], s32[<=4], (s32[], s32[<=4])) tuple(s, i, j, b, w) }",
     "2 0 4 1 2 3 4 2 4 8 0 0"},
    // Arrays that must not be written on: one element for all, a constant, one that has another name.
    {"ENTRY e { c = s32[] constant(3) d = s32[] negate(c) a = s32[4] broadcast(d), dimensions={} u = s32[2] "
     "constant({1,2}) z = s32[] constant(1) ROOT r = s32[4] dynamic-update-slice(a, u, z) }",
     "-3 1 2 -3"},
    {"ENTRY e { a = s32[3] constant({4,5,6}) u = s32[1] constant({9}) z = s32[] constant(1) b = s32[3] "
     "dynamic-update-slice(a, u, z) ROOT r = s32[3] reverse(b), dimensions={0} }",
     "6 9 4"},
    {"ENTRY e { c = s32[4] constant({1,2,3,4}) a = s32[4] negate(c) r = s32[2,2] reshape(a) u = s32[1] constant({0}) z "
     "= "
     "s32[] constant(1) b = s32[4] dynamic-update-slice(a, u, z) ROOT t = (s32[4], s32[2,2]) tuple(b, r) }",
     "-1 0 -3 -4 -1 -2 -3 -4"},
    // The same array twice, one of them written on.
    {"ENTRY e { a = s32[3] constant({4,5,6}) b = s32[3] negate(a) u = s32[1] constant({0}) z = s32[] constant(1) c = "
     "s32[3] dynamic-update-slice(b, u, z) d = s32[1] dynamic-slice(b, z), dynamic_slice_sizes={1} ROOT r = (s32[3], "
     "s32[1], s32[3]) tuple(c, d, b) }",
     "-4 0 -6 -5 -4 -5 -6"},
    {"ENTRY e { a = s32[2] constant({4,5}) b = s32[2] negate(a) z = s32[] constant(0) c = s32[2] "
     "dynamic-update-slice(b, "
     "b, z) ROOT r = s32[2] dynamic-update-slice(c, a, z) }",
     "4 5"},
    // What collectives are for the only device there is.
    {"ENTRY e { a = u32[] replica-id() b = u32[] partition-id() ROOT r = (u32[], u32[]) tuple(a, b) }", "0 0"},
    {"add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\nENTRY e { a = f32[2] "
     "constant({1,2}) b = f32[] constant(7) x = (f32[2], f32[]) all-reduce(a, b), replica_groups={}, to_apply=add "
     "y = f32[2] reduce-scatter(a), replica_groups={{0}}, dimensions={0}, to_apply=add "
     "s = f32[2] all-reduce-start(a), replica_groups={{0}}, to_apply=add z = f32[2] all-reduce-done(s) "
     "w = f32[2] all-gather(z), replica_groups={{0}}, dimensions={0} "
     "v = f32[2] all-to-all(w), replica_groups={{0}}, dimensions={0} u = f32[2] collective-broadcast(v), "
     "replica_groups={{0}} ROOT r = ((f32[2], f32[]), f32[2], f32[2]) tuple(x, y, u) }",
     "1 2 7 1 2 1 2"},
    {"ENTRY e { a = f32[2] constant({1,2}) s = (f32[2], f32[2]) all-gather-start(a), replica_groups={{0}}, "
     "dimensions={0} b = f32[2] all-gather-done(s) t = (f32[2], f32[2], u32[], u32[]) collective-permute-start(b), "
     "source_target_pairs={{0,0}} c = f32[2] collective-permute-done(t) "
     "d = f32[2] collective-permute(a), source_target_pairs={} ROOT r = (f32[2], f32[2]) tuple(c, d) }",
     "1 2 0 0"},
    // Custom calls that stand for something.
    {"ENTRY e { a = s32[2] constant({4,5}) b = s32[2] custom-call(a), custom_call_target=\"Sharding\" "
     "c = s32[2] custom-call(), custom_call_target=\"AllocateBuffer\" ROOT r = (s32[2], s32[2]) tuple(b, c) }",
     "4 5 0 0"},
    {"less { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) "
     "ROOT r = pred[] compare(a, b), direction=LT }\n"
     "ENTRY e { a = f32[4] constant({3,1,4,1}) t = (f32[2], s32[2]) custom-call(a), custom_call_target=\"TopK\" "
     "u = (f32[3], s32[3]) custom-call(a), custom_call_target=\"TopK\", called_computations={less} "
     "ROOT r = ((f32[2], s32[2]), (f32[3], s32[3])) tuple(t, u) }",
     "4 3 2 0 1 1 3 1 3 0"},
};

static void check_values(const char *text, const char *want, const kl_result *r, size_t n) {
  char *next;
  for (size_t k = 0; k < n; k++)
    for (int64_t i = 0; r[k].data.shape && i < r[k].data.shape->count; i++) {
      double v = strtod(want, &next);
      EXPECT(next != want && value_of(&r[k], i) == v, "result %zu element %lld is %g, expected %g\n%s", k, (long long)i,
             value_of(&r[k], i), v, text);
      want = next;
    }
  EXPECT(*want == 0, "%s is left over\n%s", want, text);
}

START_TEST(values) {
  for (int intervals = 0; intervals < 2; intervals++) {
    char text[4000];
    kl_result r[16];
    snprintf(text, sizeof text, "HloModule t\n%s\n", programs[_i].text);
    kiln_module *m = parse(text);
    size_t n = kl_shape_leaf_count(kl_root(&m->comp[m->entry])->shape);
    EXPECT(kl_eval(cx, m, m->entry, NULL, &(kl_eval_opts){.threads = 2, .intervals = intervals}, r) == KILN_OK,
           "%s\n%s", last_finding(), text);
    check_values(text, programs[_i].want, r, n);
    for (size_t k = 0; k < n; k++) kl_result_free(cx, &r[k]);
    kiln_module_destroy(&m);
  }
}
END_TEST

// What is written on a copy of a constant does not stay in the module.
START_TEST(constants_stay) {
  kl_result r;
  kiln_module *m = parse(
      "HloModule t\nENTRY e { a = s32[3] constant({4,5,6}) i = s32[] parameter(0) u = s32[1] reshape(i) b = s32[3] "
      "dynamic-update-slice(a, u, i) ROOT r = s32[3] reverse(b), dimensions={0} }\n");
  for (int32_t i = 0; i < 3; i++) {
    static const char *const want[3] = {"6 5 0", "6 1 4", "2 5 4"};
    EXPECT(kl_eval(cx, m, m->entry, &(kl_array){NULL, &i}, NULL, &r) == KILN_OK, "%s", last_finding());
    check_values("", want[i], &r, 1);
    kl_result_free(cx, &r);
  }
  kiln_module_destroy(&m);
}
END_TEST

// --- refusals -------------------------------------------------------------------------------------------------------

static const struct {
  const char *text, *message;
} refusals[] = {
    {"ENTRY e { ROOT r = f32[2] custom-call(), custom_call_target=\"magic\" }",
     "custom-call: only its target \"magic\""},
    {"ENTRY e { a = f32[2] constant({1,2}) ROOT r = f32[4] custom-call(a), custom_call_target=\"Sharding\" }",
     "custom-call: only its target \"Sharding\""},
    {"swapped { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(b, a), direction=GT } ENTRY e { "
     "a = f32[2] constant({1,2}) ROOT r = (f32[1], s32[1]) custom-call(a), custom_call_target=\"TopK\", "
     "called_computations={swapped} }",
     "TopK calls something else than a comparison"},
    {"ENTRY e { ROOT r = f32[2] constant({...}) }", "no evaluation of constant: the text leaves out its values"},
    {"add { x = bf16[] parameter(0) y = bf16[] parameter(1) ROOT r = bf16[] add(x, y) } ENTRY e { a = f32[3] "
     "constant({1,2,3}) i = s32[1] constant({0}) u = f32[1] constant({4}) ROOT r = f32[3] scatter(a, i, u), "
     "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
     "to_apply=add }",
     "no evaluation of scatter: its combiner is of another type"},
    {"less { x = bf16[] parameter(0) y = bf16[] parameter(1) ROOT r = pred[] compare(x, y), direction=LT } ENTRY e { a "
     "= f32[3] constant({1,2,3}) ROOT r = f32[3] sort(a), dimensions={0}, to_apply=less }",
     "no evaluation of sort: its comparator is of another type"},
    {"ENTRY e { a = u64[2] constant({1,2}) ROOT r = u32[3] rng-bit-generator(a), algorithm=rng_philox }",
     "no evaluation of rng-bit-generator: its result has bits but no state"},
    {"ENTRY e { ROOT r = u32[] replica-id() }", "no evaluation of replica-id:"},
    {"ENTRY e { ROOT r = u32[] partition-id() }", "no evaluation of partition-id:"},
    {"ENTRY e { k = token[] after-all() i = (f32[2], token[]) infeed(k) ROOT r = f32[2] get-tuple-element(i), index=0 "
     "}",
     "no evaluation of infeed:"},
    {"ENTRY e { k = token[] after-all() a = f32[2] constant({1,2}) ROOT r = token[] outfeed(a, k) }",
     "no evaluation of outfeed:"},
    {"ENTRY e { k = token[] after-all() a = f32[2] constant({1,2}) s = (f32[2], u32[], token[]) send(a, k), "
     "channel_id=1 "
     "ROOT r = token[] send-done(s), channel_id=1 }",
     "no evaluation of send:"},
    {"add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\nENTRY e { a = f32[2] "
     "constant({1,2}) "
     "ROOT r = f32[2] all-reduce(a), replica_groups={}, to_apply=add }",
     "no evaluation of all-reduce:"},
    {"ENTRY e { a = f32[4] constant({1,2,3,4}) n = s32[] constant(2) ROOT r = f32[4] set-dimension-size(a, n), "
     "dimensions={0} }",
     "no evaluation of set-dimension-size: its result has other sizes than its type"},
    {"ENTRY e { a = f32[4] constant({1,2,3,4}) n = s32[] constant(2) ROOT r = f32[<=4] dynamic-reshape(a, n) }",
     "no evaluation of dynamic-reshape: its sizes make another number of elements"},
    {"ENTRY e { ROOT r = f32[?,2] parameter(0) }",
     "no evaluation of parameter: its result has a dimension without a bound"},
    {"f { a = f32[<=4] parameter(0) n = s32[] constant(2) ROOT r = f32[<=4] set-dimension-size(a, n), dimensions={0} "
     "}\n"
     "g { a = f32[<=4] parameter(0) ROOT r = f32[<=4] negate(a) }\n"
     "ENTRY e { a = f32[4] constant({1,2,3,4}) o = f32[] constant(1) x = f32[] exponential(o) y = f32[] "
     "constant(2.7182817) p = pred[] compare(x, y), direction=LE ROOT r = f32[<=4] conditional(p, a, a), "
     "true_computation=f, false_computation=g }",
     "no evaluation of conditional: a size of its result is known within bounds only"},
    {"f { p = (f32[], f32[<=4], f32[<=4]) parameter(0) x = f32[] get-tuple-element(p), index=0 y = f32[] "
     "constant(2.7182817) ROOT r = pred[] compare(x, y), direction=LE }\n"
     "g { p = (f32[], f32[<=4], f32[<=4]) parameter(0) x = f32[] get-tuple-element(p), index=0 y = f32[] add(x, x) "
     "a = f32[<=4] get-tuple-element(p), index=1 b = f32[<=4] get-tuple-element(p), index=2 c = f32[<=4] negate(b) "
     "ROOT t = (f32[], f32[<=4], f32[<=4]) tuple(y, a, c) }\n"
     "ENTRY e { a = f32[4] constant({1,2,3,4}) o = f32[] constant(1) x = f32[] exponential(o) "
     "t = (f32[], f32[4], f32[4]) tuple(x, a, a) ROOT w = (f32[], f32[<=4], f32[<=4]) while(t), condition=f, body=g }",
     "no evaluation of while: a size of its result is known within bounds only"},
    {"ENTRY e { a = f32[2] constant({1,2}) ROOT r = f32[2] shuffle(a) }", "no evaluation of shuffle:"},
    {"ENTRY e { ROOT r = f32[2] frobnicate() }", "no evaluation of opcode 'frobnicate'"},
    {"f { ROOT r = u32[] replica-id() }\nENTRY e { ROOT r = u32[] call(), to_apply=f }",
     "no evaluation of replica-id:"},
};

START_TEST(refuses) {
  char text[2000];
  kl_result r[4];
  snprintf(text, sizeof text, "HloModule t, replica_count=2\n%s\n", refusals[_i].text);
  kiln_module *m = parse(text);
  ck_assert_int_eq(kl_eval(cx, m, m->entry, NULL, &(kl_eval_opts){.intervals = true}, r), KILN_E_UNSUPPORTED);
  EXPECT(strstr(last_finding(), refusals[_i].message), "%s", last_finding());
  kiln_module_destroy(&m);
}
END_TEST

// What is not needed is not refused: no value of it comes out, and a branch that is not taken is not looked at.
START_TEST(unneeded) {
  kl_result r;
  kiln_module *m = parse("HloModule t, replica_count=2\nf { a = () parameter(0) ROOT r = u32[] replica-id() }\n"
                         "g { a = () parameter(0) ROOT r = u32[] constant(5) }\nENTRY e { n = () tuple() x = u32[] "
                         "partition-id() p = pred[] constant(false) ROOT r = u32[] conditional(p, n, n), "
                         "true_computation=f, false_computation=g }\n");
  EXPECT(kl_eval(cx, m, m->entry, NULL, NULL, &r) == KILN_OK, "%s", last_finding());
  check_values("", "5", &r, 1);
  kl_result_free(cx, &r);
  kiln_module_destroy(&m);
}
END_TEST

// 300 computations, each calling the one before.
START_TEST(deep_calls) {
  static char text[40000];
  kl_result r;
  int depth = _i ? 300 : 250, n = snprintf(text, sizeof text, "HloModule t\nc0 { ROOT a = s32[] parameter(0) }\n");
  for (int k = 1; k < depth; k++)
    n += snprintf(text + n, 200, "c%d { a = s32[] parameter(0) ROOT r = s32[] call(a), to_apply=c%d }\n", k, k - 1);
  snprintf(text + n, 200, "ENTRY e { a = s32[] constant(4) ROOT r = s32[] call(a), to_apply=c%d }\n", depth - 1);
  kiln_module *m = parse(text);
  kiln_status status = kl_eval(cx, m, m->entry, NULL, NULL, &r);
  ck_assert_int_eq(status, _i ? KILN_E_UNSUPPORTED : KILN_OK);
  if (!_i) kl_result_free(cx, &r);
  kiln_module_destroy(&m);
}
END_TEST

// --- loops whose length is not certain ------------------------------------------------------------------------------

// While exp(1) * 2^k < limit; a state that never changes stays certain.
START_TEST(uncertain_loop) {
  static const char *const limit[] = {"100.0", "86.985016"}; // 32 e
  char text[3000];
  kl_result r[3];
  snprintf(
      text, sizeof text,
      "HloModule t\nless { p = (f32[], s32[], f32[]) parameter(0) i = f32[] get-tuple-element(p), index=0 n = f32[] "
      "constant(%s) ROOT r = pred[] compare(i, n), direction=LT }\n"
      "step { p = (f32[], s32[], f32[]) parameter(0) x = f32[] get-tuple-element(p), index=0 k = s32[] "
      "get-tuple-element(p), index=1 c = f32[] get-tuple-element(p), index=2 y = f32[] add(x, x) o = s32[] constant(1) "
      "j = s32[] add(k, o) ROOT r = (f32[], s32[], f32[]) tuple(y, j, c) }\n"
      "ENTRY e { o = f32[] constant(1) x = f32[] exponential(o) z = s32[] constant(0) t = (f32[], s32[], f32[]) "
      "tuple(x, z, o) ROOT w = (f32[], s32[], f32[]) while(t), condition=less, body=step }\n",
      limit[_i]);
  kiln_module *m = parse(text);
  EXPECT(kl_eval(cx, m, m->entry, NULL, &(kl_eval_opts){.intervals = true}, r) == KILN_OK, "%s", last_finding());
  const uint64_t five[2] = {6 - (uint64_t)_i, 0}, nine[2] = {9, 0};
  ck_assert(kl_result_allows(&r[1], 0, five) && kl_result_allows(&r[1], 0, nine) == (_i == 1));
  ck_assert(r[2].lo == r[2].data.data && !r[2].any);
  for (int k = 0; k < 3; k++) kl_result_free(cx, &r[k]);
  kiln_module_destroy(&m);
}
END_TEST

// --- memory ---------------------------------------------------------------------------------------------------------

typedef struct meter {
  size_t now, most;
  size_t fail; // the allocation that fails; 0: none
  size_t count;
} meter;

static void *resize(void *user, void *p, size_t old_size, size_t size) {
  meter *m = user;
  if (size && m->fail && ++m->count == m->fail && size > 16384) return NULL;
  m->now += size;
  m->now -= p ? old_size : 0;
  if (m->now > m->most) m->most = m->now;
  if (size) return realloc(p, size);
  free(p);
  return NULL;
}
static void out_of_memory(void *user, size_t size) {
  abort();
}

// Fills 256 rows of 1 MiB one by one: in place, else it would copy 64 GiB and the test would not end in time.
static const char fill_rows[] =
    "HloModule t\nless { p = (s32[], f32[256,262144]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] "
    "constant(256) ROOT r = pred[] compare(i, n), direction=LT }\n"
    "step { p = (s32[], f32[256,262144]) parameter(0) i = s32[] get-tuple-element(p), index=0 a = f32[256,262144] "
    "get-tuple-element(p), index=1 o = s32[] constant(1) j = s32[] add(i, o) f = f32[] convert(j) u = f32[1,262144] "
    "broadcast(f), dimensions={} z = s32[] constant(0) b = f32[256,262144] dynamic-update-slice(a, u, i, z) ROOT r = "
    "(s32[], f32[256,262144]) tuple(j, b) }\n"
    "ENTRY e { z = s32[] constant(0) f = f32[] constant(0) a = f32[256,262144] broadcast(f), dimensions={} t = (s32[], "
    "f32[256,262144]) tuple(z, a) w = (s32[], f32[256,262144]) while(t), condition=less, body=step b = f32[256,262144] "
    "get-tuple-element(w), index=1 ROOT r = f32[256,1] slice(b), slice={[0:256], [77:78]} }\n";

START_TEST(loops_write_in_place) {
  meter use = {0};
  kl_result r;
  kl_ctx *own = kiln_context_create(&(kiln_context_params){sizeof(kiln_context_params), {&use, resize, out_of_memory}});
  kiln_module *m = NULL;
  ck_assert(kiln_module_parse(own, "t", fill_rows, sizeof fill_rows - 1, &m) == KILN_OK);
  size_t before = use.now;
  use.most = use.now;
  ck_assert(kl_eval(own, m, m->entry, NULL, NULL, &r) == KILN_OK);
  for (int i = 0; i < 256; i++) ck_assert(((float *)r.data.data)[i] == (float)(i + 1));
  ck_assert_uint_lt(use.most - before, (size_t)300 << 20); // one array of 256 MiB
  kl_result_free(own, &r);
  ck_assert_uint_eq(use.now, before);
  kiln_module_destroy(&m);
  kiln_context_destroy(&own);
  ck_assert_uint_eq(use.now, 0);
}
END_TEST

// Many rounds leave nothing behind.
START_TEST(loops_do_not_grow) {
  size_t most[2];
  for (int k = 0; k < 2; k++) {
    meter use = {0};
    char text[2000];
    kl_result r[2];
    kl_ctx *own =
        kiln_context_create(&(kiln_context_params){sizeof(kiln_context_params), {&use, resize, out_of_memory}});
    kiln_module *m = NULL;
    snprintf(
        text, sizeof text,
        "HloModule t\nless { p = (s32[], f32[3]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] "
        "constant(%d) ROOT r = pred[] compare(i, n), direction=LT }\n"
        "step { p = (s32[], f32[3]) parameter(0) i = s32[] get-tuple-element(p), index=0 x = f32[3] "
        "get-tuple-element(p), index=1 o = s32[] constant(1) j = s32[] add(i, o) y = f32[3] add(x, x) ROOT r = "
        "(s32[], f32[3]) tuple(j, y) }\n"
        "ENTRY e { z = s32[] constant(0) x = f32[3] constant({1,2,3}) t = (s32[], f32[3]) tuple(z, x) ROOT w = (s32[], "
        "f32[3]) while(t), condition=less, body=step }\n",
        k ? 20000 : 20);
    ck_assert(kiln_module_parse(own, "t", text, strlen(text), &m) == KILN_OK);
    use.most = use.now;
    ck_assert(kl_eval(own, m, m->entry, NULL, NULL, r) == KILN_OK);
    most[k] = use.most;
    for (int i = 0; i < 2; i++) kl_result_free(own, &r[i]);
    kiln_module_destroy(&m);
    kiln_context_destroy(&own);
  }
  ck_assert_uint_lt(most[1], most[0] + 4096);
}
END_TEST

// Whatever allocation fails: a status, and nothing is left.
static const char all_ops[] =
    "HloModule t\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
    "lt { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) ROOT r = pred[] "
    "compare(a, b), direction=LT }\n"
    "pair { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) e = pred[] "
    "compare(a, b), direction=LT f = pred[] compare(c, d), direction=LT ROOT r = pred[] and(e, f) }\n"
    "ENTRY e { z = f32[] constant(1) i = s32[9000] iota(), iota_dimension=0 f = f32[9000] convert(i) x = f32[9000] "
    "sine(f) "
    "k = s32[9000,1] reshape(i) g = f32[9000] gather(x, k), offset_dims={}, collapsed_slice_dims={0}, "
    "start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1} c = s32[9000,1] clamp(l, k, h) l = s32[] constant(5) h = s32[] constant(600) "
    "s = f32[9000] scatter(x, c, g), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=add u = f32[8990] dynamic-slice(s, l), dynamic_slice_sizes={8990} v = f32[9000] "
    "dynamic-update-slice(s, u, h) o = (f32[9000], s32[9000]) sort(v, i), dimensions={0}, to_apply=lt q = (f32[9000], "
    "s32[9000]) sort(x, i), dimensions={0}, to_apply=pair t = (f32[8500], s32[8500]) topk(v), k=8500 "
    "ROOT r = ((f32[9000], s32[9000]), (f32[9000], s32[9000]), (f32[8500], s32[8500])) tuple(o, q, t) }\n";

// Each in turn; every seventh where a build is slow.
START_TEST(failing_allocations) {
  bool done = false;
  for (size_t fail = 1, step = test_share() < 1 ? 7 : 1; !done; fail += step) {
    meter use = {0};
    kl_result r[6];
    kl_ctx *own =
        kiln_context_create(&(kiln_context_params){sizeof(kiln_context_params), {&use, resize, out_of_memory}});
    kiln_module *m = NULL;
    ck_assert(kiln_module_parse(own, "t", all_ops, sizeof all_ops - 1, &m) == KILN_OK);
    use.fail = fail;
    kiln_status status = kl_eval(own, m, m->entry, NULL, &(kl_eval_opts){.threads = 2, .intervals = _i}, r);
    done = use.count < fail;
    use.fail = 0;
    ck_assert(status == KILN_OK || status == KILN_E_MEMORY);
    for (int k = 0; k < 6 && status == KILN_OK; k++) kl_result_free(own, &r[k]);
    kiln_module_destroy(&m);
    kiln_context_destroy(&own);
    EXPECT(use.now == 0, "allocation %zu fails: %zu bytes are left", fail, use.now);
  }
}
END_TEST

// --- ENTRY's buffers ------------------------------------------------------------------------------------------------

// A tuple parameter with arrays of several types and layouts, a token, and a result that is a nested tuple.
START_TEST(tuple_buffers) {
  kiln_module *m = parse(
      "HloModule t\nENTRY e { p = (s4[3], (f32[2,3]{0,1}, token[]), pred[]) parameter(0) q = bf16[2] parameter(1) "
      "a = s4[3] get-tuple-element(p), index=0 b = (f32[2,3]{0,1}, token[]) get-tuple-element(p), index=1 c = "
      "f32[2,3]{0,1} get-tuple-element(b), index=0 k = token[] get-tuple-element(b), index=1 d = pred[] "
      "get-tuple-element(p), index=2 n = s4[3] negate(a) o = f32[2,3]{1,0} copy(c) ROOT r = ((s4[3], token[]), "
      "f32[2,3]{1,0}, pred[], bf16[2]) tuple(t, o, d, q) t = (s4[3], token[]) tuple(n, k) }\n");
  ck_assert_uint_eq(kiln_module_parameter_leaf_count(m), 5);
  static const int64_t bytes[5] = {2, 24, 0, 1, 4};
  for (size_t k = 0; k < 5; k++) ck_assert_int_eq(kiln_module_parameter_leaf_bytes(m, k), bytes[k]);
  ck_assert_int_eq(kiln_module_result_leaf_bytes(m, 0), 2);
  ck_assert_int_eq(kiln_module_result_leaf_bytes(m, 1), 0);
  ck_assert_int_eq(kiln_module_parameter_leaf_bytes(m, 5), -1);
  int8_t s4[3] = {-3, 7, 2}, back[3];
  float f[6] = {1, 2, 3, 4, 5, 6};
  uint8_t one = 1, packed[2], out4[2], outp = 0;
  float column[6], outf[6];
  uint16_t bf[2] = {0x3f80, 0x4000}, outb[2];
  ck_assert(kiln_module_parameter_leaf_pack(m, 0, s4, packed) && kiln_module_parameter_leaf_pack(m, 1, f, column));
  ck_assert(packed[0] == 0x7d && packed[1] == 2 && column[1] == 4 && column[2] == 2);
  ck_assert(kiln_module_parameter_leaf_unpack(m, 0, packed, back) && memcmp(back, s4, 3) == 0);
  ck_assert(kiln_module_parameter_leaf_unpack(m, 1, column, outf) && memcmp(outf, f, sizeof f) == 0);
  ck_assert(kiln_module_result_leaf_pack(m, 0, s4, out4) && memcmp(out4, packed, 2) == 0);
  ck_assert(!kiln_module_parameter_leaf_pack(m, 2, f, column) && !kiln_module_parameter_leaf_fill(m, 2, 0, column));
  const void *args[5] = {packed, column, NULL, &one, bf};
  void *results[5] = {out4, NULL, outf, &outp, outb};
  EXPECT(kiln_module_eval(cx, m, args, results, NULL) == KILN_OK, "%s", last_finding());
  ck_assert(kiln_module_result_leaf_unpack(m, 0, out4, back) && back[0] == 3 && back[1] == -7 && back[2] == -2);
  ck_assert(memcmp(outf, f, sizeof f) == 0 && outp == 1 && memcmp(outb, bf, 4) == 0);
  kiln_mismatch found[5];
  size_t count = 9;
  const void *again[5] = {out4, NULL, outf, &outp, outb};
  ck_assert(kiln_module_check(cx, m, args, again, found, 5, &count, NULL) == KILN_OK && count == 0);
  outf[4] = 0;
  ck_assert(kiln_module_check(cx, m, args, again, found, 5, &count, NULL) == KILN_OK && count == 1);
  ck_assert(found[0].result == 2 && found[0].element == 4 && found[0].count == 1);
  kiln_module_destroy(&m);
}
END_TEST

// Filling follows from seed, leaf and element; every type stays in its range, and a buffer is written as a whole.
START_TEST(fills) {
  for (kiln_dtype t = KILN_PRED; t <= KILN_C128; t++) {
    char text[200];
    snprintf(text, sizeof text,
             "HloModule t\nENTRY e { p = (%s[37], %s[37]) parameter(0) ROOT a = %s[37] "
             "get-tuple-element(p), index=0 }\n",
             kiln_dtype_name(t), kiln_dtype_name(t), kiln_dtype_name(t));
    kiln_module *m = parse(text);
    size_t n = (size_t)kiln_module_parameter_leaf_bytes(m, 0);
    uint8_t a[600], b[600], c[600];
    memset(a, 0, sizeof a), memset(b, 255, sizeof b), memset(c, 0, sizeof c);
    ck_assert(kiln_module_parameter_leaf_fill(m, 0, 7, a) && kiln_module_parameter_leaf_fill(m, 0, 7, b) &&
              kiln_module_parameter_leaf_fill(m, 1, 7, c));
    ck_assert(memcmp(a, b, n) == 0 && memcmp(a, c, n) != 0 && a[n] == 0 && b[n] == 255);
    for (size_t i = 0; i < n && t == KILN_PRED; i++) ck_assert(a[i] < 2);
    kiln_module_destroy(&m);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_control", EACH(make_context, drop_context), {values, KL_COUNT(programs)}, {constants_stay},
                   {refuses, KL_COUNT(refusals)}, {unneeded}, {deep_calls, 2}, {uncertain_loop, 2},
                   {loops_write_in_place}, {loops_do_not_grow}, {failing_allocations, 2}, {tuple_buffers}, {fills});
}
