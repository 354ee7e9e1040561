// Copies of modules and rewritten ones: texts as expected, and the same values from the evaluator.
#include "support/context.h"
#include "support/gen.h"
#include "support/random.h"
#include "support/share.h"
#include "ir/rewrite/split.h"
#include "ir/rewrite/transform.h"
#include "ir/rules/rules.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/modules.h"

static char *print(const kiln_module *m) {
  char *text;
  ck_assert_int_eq(kiln_module_print(cx, m, &text, NULL), KILN_OK);
  return text;
}

static void expect_print(const kiln_module *m, const char *want) {
  char *text = print(m);
  ck_assert_str_eq(text, want);
  kiln_text_free(cx, text, strlen(text));
}

typedef kiln_status transform(kiln_context *, const kiln_module *, kiln_module **);

static kiln_module *apply(transform *f, const kiln_module *m) {
  kiln_module *out = NULL;
  kiln_status s = f(cx, m, &out);
  if (s != KILN_OK) {
    char *text = print(m);
    ck_abort_msg("status %d: %s\n%s", s, kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "", text);
  }
  return out;
}

// --- the same values ----------------------------------------------------------------------------------------------

enum { MOST_SLOTS = 64 };

typedef struct buffers {
  void *p[MOST_SLOTS];
  size_t n;
} buffers;

static void *new_buffer(buffers *b, int64_t bytes) {
  ck_assert_int_ge(bytes, 0);
  ck_assert_uint_lt(b->n, MOST_SLOTS);
  return b->p[b->n++] = calloc((size_t)bytes + 1, 1);
}

static void free_buffers(buffers *b) {
  while (b->n) free(b->p[--b->n]);
}

// With the parameters that `like` is given: what these may be depends on what is done with them.
static buffers evaluate_as(const kiln_module *like, const kiln_module *m, uint64_t seed) {
  buffers args = {0}, results = {0};
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(m); i++)
    kiln_module_parameter_leaf_fill(like, i, seed, new_buffer(&args, kiln_module_parameter_leaf_bytes(m, i)));
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++)
    new_buffer(&results, kiln_module_result_leaf_bytes(m, i));
  kiln_eval_params one = {.struct_size = sizeof one, .threads = 1};
  kiln_status s = kiln_module_eval(cx, m, (const void *const *)args.p, results.p, &one);
  ck_assert_msg(s == KILN_OK, "%s", kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "");
  free_buffers(&args);
  return results;
}

static buffers evaluate(const kiln_module *m, uint64_t seed) {
  return evaluate_as(m, m, seed);
}

// The results of `m`'s, which are `want`'s, from another module.
static void expect_same_values(const kiln_module *m, const buffers *want, const kiln_module *other, uint64_t seed) {
  buffers got = evaluate_as(m, other, seed);
  ck_assert_uint_eq(got.n, want->n);
  for (size_t i = 0; i < got.n; i++) {
    ck_assert_int_eq(kiln_module_result_leaf_bytes(m, i), kiln_module_result_leaf_bytes(other, i));
    if (memcmp(got.p[i], want->p[i], (size_t)kiln_module_result_leaf_bytes(m, i)) == 0) continue;
    char *before = print(m), *after = print(other);
    ck_abort_msg("result %zu differs\n%s\n%s", i, before, after);
  }
  free_buffers(&got);
}

// --- copies -------------------------------------------------------------------------------------------------------

// A module with something of everything that a copy has to follow.
static const char everything[] =
    "HloModule m, entry_computation_layout={(f32[2, 3], (f32[4], s32[]))->(f32[4], s32[])}, "
    "input_output_alias={{0}: (1, {0}, must-alias)}, buffer_donor={(0, {})}, num_partitions=2\n\n"
    "FileNames\n1 \"a.py\"\n\n"
    "%sum {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n  ROOT %z = f32[] add(%x, %y)\n"
    "}, execution_thread=\"t\"\n\n"
    "ENTRY %e {\n  %p = f32[2,3] parameter(0), sharding={replicated}\n"
    "  %t = (f32[4], s32[]) parameter(1)\n"
    "  %c = (f32[2]{0}, (s4[3], c64[])) constant(({1, nan(0x7)}, ({-1, 2, 3}, (1, -2))))\n"
    "  %l = f32[2,3]{0,1:T(8,128)S(1)} copy(%p), control-predecessors={%t, %c}\n"
    "  %w = f32[1,4,4,2] custom-call(%p), custom_call_target=\"f\", window={size=3x3 pad=1_1x0_-1}, "
    "dim_labels=b01f_01io->b01f, frontend_attributes={k=\"v\"}\n"
    "  %g = f32[4,3] all-gather(%p), replica_groups=[1, 2]<=[2], dimensions={0}\n"
    "  %m = f32[2,3] collective-permute(%p), source_target_pairs={{0,1},{1,0}}\n"
    "  %d = f32[2,2] dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
    "operand_precision={highest,default}\n"
    "  %s = f32[1,2] slice(%p), slice={[1:2], [0:3:2]}\n"
    "  %0 = f32[] constant(0)\n"
    "  %q = f32[5,5] pad(%d, %0), padding=1_2x0_0_3\n"
    "  %r = f32[2] reduce(%p, %0), dimensions={1}, to_apply=%sum\n"
    "  %u = f32[2] foo(%p, 5, {1}), k={a, b}\n"
    "  %n = f32[100] constant({...})\n"
    "  ROOT %o = (f32[4], s32[]) opt-barrier(%t)\n}\n";

START_TEST(clone_is_equal_and_independent) {
  kiln_module *m = parse(everything), *copy, *third;
  kiln_context *other = kiln_context_create(NULL);
  char *want = print(m);
  ck_assert_int_eq(kiln_module_clone(other, m, &copy), KILN_OK);
  ck_assert_uint_eq(copy->header.naliases, 1);
  ck_assert_int_eq(copy->header.aliases[0].param, 1);
  ck_assert_int_eq(copy->header.num_partitions, 2);
  ck_assert_ptr_eq(copy->header.result, kl_root(&copy->comp[copy->entry])->shape);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx); // nothing of the copy is in it
  cx = other;
  expect_print(copy, want);
  ck_assert_int_eq(kl_verify(copy), KILN_OK);
  ck_assert_int_eq(kiln_module_clone(cx, copy, &third), KILN_OK);
  kiln_module_destroy(&copy);
  expect_print(third, want);
  kiln_module_destroy(&third);
  kiln_text_free(cx, want, strlen(want)); // both contexts have the same allocator
}
END_TEST

// Whatever the parser's tests know is copied; the rewriting steps take it, and hash and canonical text follow it.
START_TEST(everything_is_copied_and_rewritten) {
  transform *const all[] = {kiln_module_clone, kiln_module_remove_dead, kiln_module_inline};
  for (size_t i = 0; i < KL_COUNT(instructions) + KL_COUNT(modules); i++) {
    char text[8000];
    uint8_t hash[2][KILN_HASH_SIZE];
    if (i < KL_COUNT(instructions)) wrap(text, sizeof text, instructions[i][0], false);
    kiln_module *m = parse(i < KL_COUNT(instructions) ? text : modules[i - KL_COUNT(instructions)][0]), *out, *again;
    ck_assert_int_eq(kiln_module_hash(cx, m, hash[0]), KILN_OK);
    for (size_t k = 0; k < KL_COUNT(all); k++) {
      out = apply(all[k], m);
      char *printed = print(out);
      if (k == 0) expect_print(m, printed);
      again = parse(printed);
      ck_assert_int_eq(kiln_module_hash(cx, out, hash[1]), KILN_OK);
      if (k < 2) ck_assert_mem_eq(hash[0], hash[1], KILN_HASH_SIZE);
      kiln_text_free(cx, printed, strlen(printed));
      kiln_module_destroy(&again);
      kiln_module_destroy(&out);
    }
    if (kiln_module_flatten_tuples(cx, m, &out) == KILN_OK) kiln_module_destroy(&out);
    char *canonical;
    ck_assert_int_eq(kiln_module_canonical_print(cx, m, &canonical, NULL), KILN_OK);
    again = parse(canonical);
    kiln_text_free(cx, canonical, strlen(canonical));
    kiln_module_destroy(&again);
    kiln_module_destroy(&m);
  }
}
END_TEST

// Findings about a copy point into the text that it came from.
START_TEST(clone_keeps_places) {
  kiln_module *m = parse("HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT f = f32[2] negate(p)\n}\n");
  kiln_module *copy = apply(kiln_module_clone, m);
  kiln_module_destroy(&m);
  kl_invalid(cx, kl_root(&copy->comp[0])->span, "here");
  ck_assert_uint_eq(kiln_diagnostics_get(cx, 0)->line, 4);
  ck_assert_str_eq(kiln_diagnostics_get(cx, 0)->file, "test");
  kiln_module_destroy(&copy);
}
END_TEST

// Fails every allocation from `large` bytes on; counts what is held.
static struct {
  size_t large;
  int64_t held;
} heap;

static void *limited(void *user, void *p, size_t old_size, size_t size) {
  if (size >= heap.large) return NULL;
  heap.held += (int64_t)size - (int64_t)(p ? old_size : 0);
  if (size) return realloc(p, size);
  free(p);
  return NULL;
}

START_TEST(short_memory_is_a_status) {
  transform *const all[] = {kiln_module_clone, kiln_module_remove_dead, kiln_module_inline, kiln_module_flatten_tuples};
  kiln_context_params params = {.struct_size = sizeof params, .allocator = {.resize = limited}};
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nENTRY e {\n ROOT c = pred[3000000] constant({0");
  for (int i = 1; i < 3000000; i++) kl_sb_puts(&b, ",1");
  kl_sb_puts(&b, "})\n}\n");
  kiln_module *m = parse(b.p), *out;
  heap.large = SIZE_MAX;
  heap.held = 0;
  kiln_context *tight = kiln_context_create(&params);
  int64_t before = heap.held;
  heap.large = 2500000;
  for (size_t i = 0; i < KL_COUNT(all); i++) {
    ck_assert_int_eq(all[i](tight, m, &out), KILN_E_MEMORY);
    ck_assert_ptr_null(out);
    ck_assert_uint_eq(kiln_diagnostics_count(tight), 1);
    kiln_diagnostics_clear(tight);
  }
  char *text;
  uint8_t hash[KILN_HASH_SIZE];
  ck_assert_int_eq(kiln_module_canonical_print(tight, m, &text, NULL), KILN_E_MEMORY);
  ck_assert_ptr_null(text);
  ck_assert_int_eq(kiln_module_hash(tight, m, hash), KILN_OK); // reads the values where they are
  heap.large = SIZE_MAX;
  kiln_context_destroy(&tight);
  ck_assert_int_eq(heap.held, before - before);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

// --- texts --------------------------------------------------------------------------------------------------------

#define HEAD "HloModule m\n\n"
#define E    "ENTRY %e {\n"

typedef struct row {
  const char *from, *to;
} row;

static const row dead[] = {
    {HEAD E "  %p = f32[] parameter(0)\n  %d = f32[] negate(%p)\n  %q = f32[] parameter(1)\n  ROOT %r = f32[] abs(%p)\n"
            "  %after = f32[] abs(%r)\n}\n",
     HEAD E "  %p = f32[] parameter(0)\n  %q = f32[] parameter(1)\n  ROOT %r = f32[] abs(%p)\n}\n"},
    // computations: of dead callers, of nobody; parameters stay
    {HEAD "%one {\n  %p = f32[] parameter(0)\n  %q = f32[] parameter(1)\n  ROOT %r = f32[] abs(%q)\n}\n\n"
          "%two {\n  ROOT %p = f32[] parameter(0)\n}\n\n%three {\n  ROOT %p = f32[] parameter(0)\n}\n\n" E
          "  %p = f32[] parameter(0)\n  %d = f32[] call(%p), to_apply=%two\n"
          "  ROOT %r = f32[] call(%p, %p), to_apply=%one\n}\n",
     HEAD "%one {\n  %p = f32[] parameter(0)\n  %q = f32[] parameter(1)\n  ROOT %r = f32[] abs(%q)\n}\n\n" E
          "  %p = f32[] parameter(0)\n  ROOT %r = f32[] call(%p, %p), to_apply=%one\n}\n"},
    // control predecessors are needed; effects stay, also inside what is called, and both ends of an async pair
    {HEAD "%host {\n  %p = f32[] parameter(0)\n  %t = token[] after-all()\n  %o = token[] outfeed(%p, %t)\n"
          "  %d = f32[] abs(%p)\n  ROOT %c = f32[] constant(1)\n}\n\n%pure {\n  ROOT %p = f32[] parameter(0)\n}\n\n" E
          "  %p = f32[] parameter(0)\n  %x = f32[] abs(%p)\n"
          "  %f = f32[] custom-call(%p), custom_call_target=\"f\", custom_call_has_side_effect=true, "
          "control-predecessors={%x}\n"
          "  %g = f32[] custom-call(%p), custom_call_target=\"g\"\n"
          "  %h = f32[] call(%p), to_apply=%host\n  %i = f32[] call(%p), to_apply=%pure\n"
          "  %k = f32[] foo(%p)\n  %n = f32[] all-reduce(%p), replica_groups={}, to_apply=%sum\n"
          "  %s = ((f32[]), f32[]) call-start(%p), to_apply=%host\n  %u = f32[] call-done(%s)\n"
          "  %v = ((f32[]), f32[]) call-start(%p), to_apply=%pure\n  %w = f32[] call-done(%v)\n"
          "  %z = f32[] constant(0)\n  %y = f32[] rng(%z, %p), distribution=rng_uniform\n"
          "  ROOT %r = f32[] negate(%p)\n}\n\n%sum {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
          "  ROOT %z = f32[] add(%x, %y)\n}\n",
     HEAD "%host {\n  %p = f32[] parameter(0)\n  %t = token[] after-all()\n  %o = token[] outfeed(%p, %t)\n"
          "  ROOT %c = f32[] constant(1)\n}\n\n%sum {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
          "  ROOT %z = f32[] add(%x, %y)\n}\n\n" E "  %p = f32[] parameter(0)\n  %x = f32[] abs(%p)\n"
          "  %f = f32[] custom-call(%p), custom_call_target=\"f\", custom_call_has_side_effect=true, "
          "control-predecessors={%x}\n"
          "  %h = f32[] call(%p), to_apply=%host\n  %k = f32[] foo(%p)\n"
          "  %n = f32[] all-reduce(%p), replica_groups={}, to_apply=%sum\n"
          "  %s = ((f32[]), f32[]) call-start(%p), to_apply=%host\n  %u = f32[] call-done(%s)\n"
          "  %z = f32[] constant(0)\n  %y = f32[] rng(%z, %p), distribution=rng_uniform\n"
          "  ROOT %r = f32[] negate(%p)\n}\n"},
    // text of an unknown op may name a computation
    {HEAD "%kept {\n  ROOT %p = f32[] parameter(0)\n}\n\n" E "  %p = f32[] parameter(0)\n"
          "  ROOT %r = f32[] foo(%p), to_apply=%kept\n}\n",
     HEAD "%kept {\n  ROOT %p = f32[] parameter(0)\n}\n\n" E "  %p = f32[] parameter(0)\n"
          "  ROOT %r = f32[] foo(%p), to_apply=%kept\n}\n"},
};

#define BODY                                                                                                           \
  "%body {\n  %x = f32[2] parameter(0)\n  %y = f32[2] parameter(1)\n  %s = f32[2] add(%x, %y)\n"                       \
  "  ROOT %m = f32[2] multiply(%s, %x)\n}\n\n"

static const row inlined[] = {
    {HEAD BODY E "  %p = f32[2] parameter(0)\n  %s = f32[2] negate(%p)\n"
                 "  %f = f32[2] fusion(%s, %p), kind=kLoop, calls=%body\n"
                 "  ROOT %g = f32[2] call(%f, %f), to_apply=%body\n}\n",
     HEAD E
     "  %p = f32[2] parameter(0)\n  %s = f32[2] negate(%p)\n  %s.1 = f32[2] add(%s, %p)\n"
     "  %m = f32[2] multiply(%s.1, %s)\n  %s.2 = f32[2] add(%m, %m)\n  ROOT %m.1 = f32[2] multiply(%s.2, %m)\n}\n"},
    // nested, and the body is no more than a parameter
    {HEAD "%id {\n  %a = f32[2] parameter(0)\n  ROOT %b = f32[2] parameter(1)\n}\n\n"
          "%outer {\n  %a = f32[2] parameter(0)\n  %c = f32[2] call(%a, %a), to_apply=%id\n"
          "  ROOT %d = f32[2] abs(%c)\n}\n\n" E
          "  %p = f32[2] parameter(0)\n  %c = f32[2] fusion(%p), kind=kInput, calls=%outer\n"
          "  ROOT %r = f32[2] call(%p, %c), to_apply=%id\n}\n",
     HEAD E "  %p = f32[2] parameter(0)\n  ROOT %d = f32[2] abs(%p)\n}\n"},
    // calls inside of what stays a computation
    {HEAD "%id {\n  ROOT %a = f32[] parameter(0)\n}\n\n%sum {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
          "  %z = f32[] add(%x, %y)\n  ROOT %i = f32[] call(%z), to_apply=%id\n}\n\n" E
          "  %p = f32[4] parameter(0)\n  %0 = f32[] constant(0)\n"
          "  ROOT %r = f32[] reduce(%p, %0), dimensions={0}, to_apply=%sum\n}\n",
     HEAD "%sum {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n  ROOT %z = f32[] add(%x, %y)\n}\n\n" E
          "  %p = f32[4] parameter(0)\n  %0 = f32[] constant(0)\n"
          "  ROOT %r = f32[] reduce(%p, %0), dimensions={0}, to_apply=%sum\n}\n"},
    // other layouts inside: a bitcast sees memory as the body has it
    {HEAD "%b {\n  %a = f32[2,3]{0,1} parameter(0)\n  ROOT %c = f32[6] bitcast(%a)\n}\n\n"
          "%t {\n  %a = (f32[2,3]{0,1}, f32[]) parameter(0)\n"
          "  ROOT %g = f32[2,3]{0,1} get-tuple-element(%a), index=0\n}\n\n" E
          "  %p = f32[2,3] parameter(0)\n  %q = (f32[2,3], f32[]) parameter(1)\n"
          "  %x = f32[6] call(%p), to_apply=%b\n  %y = f32[2,3]{1,0} call(%q), to_apply=%t\n"
          "  ROOT %r = (f32[6], f32[2,3]) tuple(%x, %y)\n}\n",
     HEAD E "  %p = f32[2,3] parameter(0)\n  %q = (f32[2,3], f32[]) parameter(1)\n  %p.1 = f32[2,3]{0,1} copy(%p)\n"
            "  %c = f32[6] bitcast(%p.1)\n  %q.1 = f32[2,3] get-tuple-element(%q), index=0\n"
            "  %q.2 = f32[2,3]{0,1} copy(%q.1)\n  %q.3 = f32[] get-tuple-element(%q), index=1\n"
            "  %q.4 = (f32[2,3]{0,1}, f32[]) tuple(%q.2, %q.3)\n"
            "  %g = f32[2,3]{0,1} get-tuple-element(%q.4), index=0\n  %g.1 = f32[2,3]{1,0} copy(%g)\n"
            "  ROOT %r = (f32[6], f32[2,3]) tuple(%c, %g.1)\n}\n"},
    // order by control dependencies: into the body, through an empty one, out of it
    {HEAD
     "%two {\n  %x = f32[2] parameter(0)\n  %a = f32[2] abs(%x)\n  %b = f32[2] negate(%a)\n"
     "  %e = f32[2] custom-call(%x), custom_call_target=\"f\", custom_call_has_side_effect=true\n"
     "  ROOT %c = f32[2] cosine(%x), control-predecessors={%b}\n}\n\n%none {\n  ROOT %x = f32[2] parameter(0)\n}\n\n" E
     "  %p = f32[2] parameter(0)\n  %s = f32[2] sine(%p)\n"
     "  %n = f32[2] call(%p), to_apply=%none, control-predecessors={%s}\n"
     "  %t = f32[2] call(%p), to_apply=%two, control-predecessors={%n}\n"
     "  ROOT %r = f32[2] tanh(%t), control-predecessors={%t}\n}\n",
     HEAD E "  %p = f32[2] parameter(0)\n  %s = f32[2] sine(%p)\n  %a = f32[2] abs(%p), control-predecessors={%s}\n"
            "  %b = f32[2] negate(%a)\n"
            "  %e = f32[2] custom-call(%p), custom_call_target=\"f\", custom_call_has_side_effect=true, "
            "control-predecessors={%s}\n"
            "  %c = f32[2] cosine(%p), control-predecessors={%b}\n"
            "  ROOT %r = f32[2] tanh(%c), control-predecessors={%e, %c}\n}\n"},
};

static const row flat[] = {
    // chains of tuples go; a tuple of all elements is the tuple
    {HEAD E "  %p = f32[] parameter(0)\n  %q = s32[] parameter(1)\n  %t = (f32[], s32[]) tuple(%p, %q)\n"
            "  %u = ((f32[], s32[]), f32[]) tuple(%t, %p)\n"
            "  %v = (f32[], s32[]) get-tuple-element(%u), index=0\n  %w = f32[] get-tuple-element(%v), index=0\n"
            "  ROOT %r = f32[] negate(%w)\n}\n",
     HEAD E "  %p = f32[] parameter(0)\n  %q = s32[] parameter(1)\n  ROOT %r = f32[] negate(%p)\n}\n"},
    {HEAD "%c {\n  %p = (f32[], s32[]) parameter(0)\n  ROOT %t = pred[] constant(false)\n}\n\n"
          "%b {\n  %p = (f32[], s32[]) parameter(0)\n  %a = f32[] get-tuple-element(%p), index=0\n"
          "  %i = s32[] get-tuple-element(%p), index=1\n  %t = (s32[], f32[]) tuple(%i, %a)\n"
          "  %i2 = s32[] get-tuple-element(%t), index=0\n  ROOT %u = (f32[], s32[]) tuple(%a, %i2)\n}\n\n" E
          "  %p = f32[] parameter(0)\n  %q = s32[] parameter(1)\n  %t = (f32[], s32[]) tuple(%p, %q)\n"
          "  %w = (f32[], s32[]) while(%t), condition=%c, body=%b\n"
          "  %x = f32[] get-tuple-element(%w), index=0\n  %y = s32[] get-tuple-element(%w), index=1\n"
          "  ROOT %z = (f32[], s32[]) tuple(%x, %y)\n}\n",
     HEAD "%c {\n  %p = (f32[], s32[]) parameter(0)\n  ROOT %t = pred[] constant(false)\n}\n\n"
          "%b {\n  ROOT %p = (f32[], s32[]) parameter(0)\n}\n\n" E
          "  %p = f32[] parameter(0)\n  %q = s32[] parameter(1)\n  %t = (f32[], s32[]) tuple(%p, %q)\n"
          "  ROOT %w = (f32[], s32[]) while(%t), condition=%c, body=%b\n}\n"},
    // ... but not in another order
    {HEAD "%f {\n  %p = (f32[], f32[]) parameter(0)\n  %a = f32[] get-tuple-element(%p), index=0\n"
          "  %b = f32[] get-tuple-element(%p), index=1\n  ROOT %t = (f32[], f32[]) tuple(%b, %a)\n}\n\n" E
          "  %p = f32[] parameter(0)\n  %t = (f32[], f32[]) tuple(%p, %p)\n"
          "  ROOT %r = (f32[], f32[]) call(%t), to_apply=%f\n}\n",
     HEAD "%f {\n  %p = (f32[], f32[]) parameter(0)\n  %a = f32[] get-tuple-element(%p), index=0\n"
          "  %b = f32[] get-tuple-element(%p), index=1\n  ROOT %t = (f32[], f32[]) tuple(%b, %a)\n}\n\n" E
          "  %p = f32[] parameter(0)\n  %t = (f32[], f32[]) tuple(%p, %p)\n"
          "  ROOT %r = (f32[], f32[]) call(%t), to_apply=%f\n}\n"},
    // the interface of ENTRY, and the header with it
    {"HloModule m, entry_computation_layout={(s32[], ((f32[2, 3]{0, 1}), f32[4]), ())->((f32[4], ()), f32[2, 3])}, "
     "input_output_alias={{0, 0}: (1, {1}, may-alias), {1}: (1, {0, 0}, must-alias)}, buffer_donor={(0, {})}, "
     "allow_spmd_sharding_propagation_to_parameters={true, false, true}\n\n" E
     "  %t = ((f32[2,3]), f32[4]) parameter(1), sharding={{a}, {b={1, 2}}}, parameter_replication={true, false}, "
     "metadata={x}\n  %i = s32[] parameter(0)\n  %n = () parameter(2)\n"
     "  %a = (f32[2,3]) get-tuple-element(%t), index=0\n  %b = f32[2,3] get-tuple-element(%a), index=0\n"
     "  %c = f32[4] get-tuple-element(%t), index=1\n  %d = (f32[4], ()) tuple(%c, %n)\n"
     "  ROOT %r = ((f32[4], ()), f32[2,3]) tuple(%d, %b), sharding={{b}, {a}}\n}\n",
     "HloModule m, entry_computation_layout={(s32[], f32[2, 3]{0, 1}, f32[4])->(f32[4], f32[2, 3])}, "
     "input_output_alias={{0}: (2, {}, may-alias), {1}: (1, {}, must-alias)}, buffer_donor={(0, {})}, "
     "allow_spmd_sharding_propagation_to_parameters={true, false, false}\n\n" E
     "  %t.0 = f32[2,3] parameter(1), sharding={a}, parameter_replication={true}, metadata={x}\n"
     "  %t.1 = f32[4] parameter(2), sharding={b={1, 2}}, parameter_replication={false}, metadata={x}\n"
     "  %i = s32[] parameter(0)\n  ROOT %r = (f32[4], f32[2,3]) tuple(%t.1, %t.0), sharding={{b}, {a}}\n}\n"},
    // read as a whole: put together again; a nested result that no tuple instruction made
    {HEAD "%f {\n  ROOT %p = ((f32[], s32[]), f32[]) parameter(0)\n}\n\n" E
          "  %p = ((f32[], s32[]), f32[]) parameter(0)\n"
          "  ROOT %r = ((f32[], s32[]), f32[]) call(%p), to_apply=%f\n}\n",
     HEAD
     "%f {\n  ROOT %p = ((f32[], s32[]), f32[]) parameter(0)\n}\n\n" E
     "  %p.0 = f32[] parameter(0)\n  %p.1 = s32[] parameter(1)\n  %p.2 = f32[] parameter(2)\n"
     "  %p = (f32[], s32[]) tuple(%p.0, %p.1)\n  %p.3 = ((f32[], s32[]), f32[]) tuple(%p, %p.2)\n"
     "  %r = ((f32[], s32[]), f32[]) call(%p.3), to_apply=%f\n"
     "  %r.1 = (f32[], s32[]) get-tuple-element(%r), index=0\n"
     "  %r.2 = f32[] get-tuple-element(%r.1), index=0\n  %r.3 = s32[] get-tuple-element(%r.1), index=1\n"
     "  %r.4 = f32[] get-tuple-element(%r), index=1\n  ROOT %r.5 = (f32[], s32[], f32[]) tuple(%r.2, %r.3, %r.4)\n}\n"},
    // what waits or is waited for stays
    {HEAD E "  %p = f32[] parameter(0)\n  %t = (f32[]) tuple(%p)\n  %a = f32[] abs(%p), control-predecessors={%t}\n"
            "  %g = f32[] get-tuple-element(%t), index=0, control-predecessors={%a}\n  ROOT %r = f32[] negate(%g)\n}\n",
     HEAD E
     "  %p = f32[] parameter(0)\n  %t = (f32[]) tuple(%p)\n  %a = f32[] abs(%p), control-predecessors={%t}\n"
     "  %g = f32[] get-tuple-element(%t), index=0, control-predecessors={%a}\n  ROOT %r = f32[] negate(%g)\n}\n"},
    // layouts that the text gives an element
    {HEAD E "  %p = f32[2,3] parameter(0)\n  %t = (f32[2,3]{0,1}) tuple(%p)\n"
            "  %g = f32[2,3]{0,1} get-tuple-element(%t), index=0\n  ROOT %r = f32[6] bitcast(%g)\n}\n",
     HEAD E "  %p = f32[2,3] parameter(0)\n  %p.1 = f32[2,3]{0,1} copy(%p)\n  ROOT %r = f32[6] bitcast(%p.1)\n}\n"},
    // nothing to do
    {HEAD E "  ROOT %p = f32[] parameter(0)\n}\n", HEAD E "  ROOT %p = f32[] parameter(0)\n}\n"},
    {HEAD E "  %p = () parameter(0)\n  ROOT %t = ((), ()) tuple(%p, %p)\n}\n", HEAD E "  ROOT %t = () tuple()\n}\n"},
};

static void expect_row(transform *f, const row *r) {
  kiln_module *m = parse(r->from), *out = apply(f, m), *again;
  kiln_module_destroy(&m);
  expect_print(out, r->to);
  again = apply(f, out); // a second time changes nothing
  expect_print(again, r->to);
  kiln_module_destroy(&again);
  kiln_module_destroy(&out);
  m = parse(r->to);
  kiln_module_destroy(&m);
}

START_TEST(dead_code_goes) {
  expect_row(kiln_module_remove_dead, &dead[_i]);
}
END_TEST

START_TEST(calls_are_inlined) {
  expect_row(kiln_module_inline, &inlined[_i]);
}
END_TEST

START_TEST(tuples_are_flattened) {
  expect_row(kiln_module_flatten_tuples, &flat[_i]);
}
END_TEST

// --- what is refused ----------------------------------------------------------------------------------------------

START_TEST(headers_that_cannot_follow_are_refused) {
  static const char *const attrs[] = {
      "input_output_alias={{0}: (0, {}, may-alias)}",
      "input_output_alias={{2}: (0, {0}, may-alias)}",
      "buffer_donor={(1, {})}",
      "allow_spmd_sharding_propagation_to_parameters={true, false, true}",
  };
  for (size_t i = 0; i < KL_COUNT(attrs); i++) {
    char text[400];
    snprintf(text, sizeof text,
             "HloModule m, %s\nENTRY e {\n ROOT p = ((f32[], f32[]), f32[2], f32[]) parameter(0)\n}\n", attrs[i]);
    kiln_module *m = parse(text), *out;
    if (i == 3) {
      kiln_module_destroy(&m);
      snprintf(text, sizeof text,
               "HloModule m, %s\nENTRY e {\n p = (f32[], f32[]) parameter(0)\n ROOT q = f32[] "
               "parameter(1)\n x = f32[] parameter(2)\n y = f32[] parameter(3)\n}\n",
               attrs[i]);
      m = parse(text);
    }
    kiln_diagnostics_clear(cx);
    ck_assert_int_eq(kiln_module_flatten_tuples(cx, m, &out), KILN_E_UNSUPPORTED);
    ck_assert_ptr_null(out);
    ck_assert_msg(strstr(kiln_diagnostics_get(cx, 0)->message, "to name arrays"), "%s",
                  kiln_diagnostics_get(cx, 0)->message);
    kiln_module_destroy(&m);
  }
}
END_TEST

// Twice as much at every level.
START_TEST(too_much_to_inline_is_refused) {
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nf0 {\n p = f32[] parameter(0)\n ROOT n = negate(p)\n}\n");
  for (int i = 1; i < 40; i++)
    kl_sbf(&b, "f%d {\n p = f32[] parameter(0)\n a = call(p), to_apply=f%d\n ROOT b = call(a), to_apply=f%d\n}\n", i,
           i - 1, i - 1);
  kiln_module *m = parse(b.p), *out;
  ck_assert_int_eq(kiln_module_inline(cx, m, &out), KILN_E_UNSUPPORTED);
  ck_assert_ptr_null(out);
  ck_assert_str_eq(kiln_diagnostics_get(cx, 0)->message,
                   "inline: expected at most 2^20 instructions more than before, found more");
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

// A chain of calls as long as it may be: nothing recurses.
START_TEST(deep_calls_inline) {
  enum { N = 50000 };
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nf0 {\n p = f32[] parameter(0)\n ROOT n = negate(p)\n}\n");
  for (int i = 1; i < N; i++)
    kl_sbf(&b, "f%d {\n p = f32[] parameter(0)\n ROOT c = call(p), to_apply=f%d\n}\n", i, i - 1);
  kiln_module *m = parse(b.p), *out = apply(kiln_module_inline, m);
  expect_print(out, "HloModule m\n\nENTRY %f49999 {\n  %p = f32[] parameter(0)\n  ROOT %n = f32[] negate(%p)\n}\n");
  kiln_module_destroy(&out);
  kiln_module_destroy(&m);
  kl_sb_free(&b);
}
END_TEST

START_TEST(extracted_fusion_stands_alone) {
  kiln_module *m = parse("HloModule m, num_partitions=2\n\n%other {\n  ROOT %p = f32[] parameter(0)\n}\n\n"
                         "%inner {\n  ROOT %p = f32[] parameter(0)\n}\n\n%f {\n  %p = f32[] parameter(0)\n"
                         "  ROOT %c = f32[] call(%p), to_apply=%inner\n}\n\nENTRY %e {\n  %p = f32[] parameter(0)\n"
                         "  %o = f32[] call(%p), to_apply=%other\n"
                         "  ROOT %x = f32[] fusion(%o), kind=kLoop, calls=%f\n}\n"),
              *out;
  ck_assert_int_eq(kiln_module_extract(cx, m, "y", &out), KILN_E_INVALID);
  ck_assert_ptr_null(out);
  ck_assert_int_eq(kiln_module_extract(cx, m, "x", &out), KILN_OK);
  kiln_module_destroy(&m);
  expect_print(out, "HloModule x\n\n%inner {\n  ROOT %p = f32[] parameter(0)\n}\n\nENTRY %f {\n"
                    "  %p = f32[] parameter(0)\n  ROOT %c = f32[] call(%p), to_apply=%inner\n}\n");
  kiln_module_destroy(&out);
}
END_TEST

// --- random modules -----------------------------------------------------------------------------------------------

static uint64_t next(uint64_t *seed) {
  *seed += 0x9e3779b97f4a7c15u;
  return kl_hash(seed, sizeof *seed, 7);
}

// Modules of calls, fusions, nested tuples, mixed layouts, bitcasts and control dependencies.
// clang-format off
static const char *const types[] = {
  "f32[2,3]", "f32[2,3]{0,1}", "(f32[2,3], f32[2,3]{0,1})", "((f32[2,3]), (), f32[2,3])",
};
// clang-format on
enum { ARRAY, TURNED, PAIR, NEST, TYPES };
enum { MOST_VALUES = 40, MOST_COMPS = 8 };

typedef struct writer {
  kl_sb b;
  uint64_t seed;
  int type[MOST_VALUES];
  unsigned n;
  struct {
    int params[3], result;
    unsigned n;
  } comps[MOST_COMPS];
  unsigned ncomps;
} writer;

static unsigned pick(writer *w, unsigned n) {
  return (unsigned)(next(&w->seed) % n);
}

static unsigned begin(writer *w, int type) {
  kl_sbf(&w->b, "  v%u = %s ", w->n, types[type]);
  w->type[w->n] = type;
  return w->n++;
}

static void end(writer *w) {
  if (w->n > 2 && pick(w, 6) == 0) kl_sbf(&w->b, ", control-predecessors={v%u}", pick(w, w->n - 1));
  kl_sb_puts(&w->b, "\n");
}

// Any value of the type: one that is there, or a new one.
static unsigned value_of(writer *w, int type) {
  for (int tries = 0; tries < 6; tries++) {
    unsigned v = pick(w, w->n);
    if (w->type[v] == type) return v;
  }
  unsigned a, b, v;
  switch (type) {
  case PAIR:
    a = value_of(w, pick(w, 2) ? ARRAY : TURNED);
    b = value_of(w, pick(w, 2) ? ARRAY : TURNED);
    v = begin(w, PAIR);
    kl_sbf(&w->b, "tuple(v%u, v%u)", a, b);
    break;
  case NEST:
    a = value_of(w, ARRAY);
    b = value_of(w, TURNED);
    kl_sbf(&w->b, "  one%u = (f32[2,3]) tuple(v%u)\n  none%u = () tuple()\n", w->n, a, w->n);
    v = begin(w, NEST);
    kl_sbf(&w->b, "tuple(one%u, none%u, v%u)", v, v, b);
    break;
  default:
    a = pick(w, w->n);
    if (w->type[a] == NEST) {
      kl_sbf(&w->b, "  one%u = (f32[2,3]) get-tuple-element(v%u), index=0\n", w->n, a);
      v = begin(w, type);
      kl_sbf(&w->b, "get-tuple-element(one%u), index=0", v);
    } else {
      v = begin(w, type);
      kl_sbf(&w->b, w->type[a] == PAIR ? "get-tuple-element(v%u), index=%u" : "copy(v%u)", a, pick(w, 2));
    }
  }
  end(w);
  return v;
}

static void add_value(writer *w) {
  unsigned a, b, v;
  int type = pick(w, 2) ? ARRAY : TURNED;
  if (w->ncomps && pick(w, 3) == 0) {
    unsigned f = pick(w, w->ncomps), args[3];
    for (unsigned i = 0; i < w->comps[f].n; i++) {
      int t = w->comps[f].params[i];
      args[i] = value_of(w, t <= TURNED && pick(w, 4) == 0 ? TURNED - t : t);
    }
    int result = w->comps[f].result;
    begin(w, result <= TURNED && pick(w, 4) == 0 ? TURNED - result : result);
    bool fusion = pick(w, 2);
    kl_sb_puts(&w->b, fusion ? "fusion(" : "call(");
    for (unsigned i = 0; i < w->comps[f].n; i++) kl_sbf(&w->b, i ? ", v%u" : "v%u", args[i]);
    kl_sbf(&w->b, fusion ? "), kind=kLoop, calls=f%u" : "), to_apply=f%u", f);
    end(w);
    return;
  }
  a = value_of(w, type);
  b = value_of(w, pick(w, 2) ? ARRAY : TURNED);
  switch (pick(w, 4)) {
  case 0: v = value_of(w, pick(w, 2) ? PAIR : NEST); break;
  case 1: // reads memory as it lies
    kl_sbf(&w->b, "  flat%u = f32[6] bitcast(v%u)\n", w->n, a);
    v = begin(w, pick(w, 2) ? ARRAY : TURNED);
    kl_sbf(&w->b, "bitcast(flat%u)", v);
    end(w);
    break;
  default:
    begin(w, pick(w, 2) ? ARRAY : TURNED);
    kl_sbf(&w->b, pick(w, 2) ? "subtract(v%u, v%u)" : "maximum(v%u, v%u)", a, b);
    end(w);
  }
}

static void add_computation(writer *w, bool entry) {
  unsigned f = w->ncomps, values;
  kl_sbf(&w->b, entry ? "\nENTRY f%u {\n" : "\nf%u {\n", f);
  w->n = 0;
  w->comps[f].n = 1 + pick(w, 3);
  for (unsigned i = 0; i < w->comps[f].n; i++) {
    w->comps[f].params[i] = (int)pick(w, TYPES);
    begin(w, w->comps[f].params[i]);
    kl_sbf(&w->b, "parameter(%u)\n", i);
  }
  values = 1 + pick(w, 7);
  while (w->n < 4 + values) add_value(w);
  unsigned root = pick(w, 4) ? w->n - 1 : pick(w, w->n);
  w->comps[f].result = w->type[root];
  kl_sbf(&w->b, "  ROOT root = %s opt-barrier(v%u)\n}\n", types[w->type[root]], root);
  w->ncomps++;
}

static kiln_module *random_calls(uint64_t seed) {
  writer w = {.seed = seed};
  kl_sb_init(&w.b, cx);
  kl_sb_puts(&w.b, "HloModule m\n");
  unsigned n = 1 + (unsigned)(seed % (MOST_COMPS - 1));
  for (unsigned i = 0; i < n; i++) add_computation(&w, i + 1 == n);
  kiln_module *m = parse(w.b.p);
  kl_sb_free(&w.b);
  return m;
}

static kiln_module *random_fusion(uint64_t seed) {
  gen_source source = {.seed = seed};
  kl_sb text;
  kl_sb_init(&text, cx);
  gen_fusion(&source, 3 + (unsigned)seed % 30, &text);
  kiln_module *m = parse(text.p);
  kl_sb_free(&text);
  return m;
}

static bool calls_anything(const kiln_module *m) {
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++)
      if (m->comp[i].instr[k].ncalled) return true;
  return false;
}

static bool has_tuple_parameter(const kiln_module *m) {
  const kl_comp *c = &m->comp[m->entry];
  for (uint32_t i = 0; i < c->nparams; i++)
    if (c->instr[c->params[i]].shape->dtype == KILN_TUPLE) return true;
  return kl_root(c)->shape->depth > 1;
}

// All of them, alone and one after another, print and parse, and compute the same.
static void check_all(const kiln_module *m, uint64_t seed) {
  transform *const all[] = {kiln_module_clone, kiln_module_remove_dead, kiln_module_inline, kiln_module_flatten_tuples};
  buffers want = evaluate(m, seed);
  for (size_t i = 0; i < KL_COUNT(all); i++)
    for (size_t k = 0; k < KL_COUNT(all); k++) {
      if (k == 0 && i) continue;
      kiln_module *one = apply(all[i], m), *two = apply(all[k], one);
      ck_assert_int_eq(kl_verify(two), KILN_OK);
      expect_same_values(m, &want, two, seed);
      bool was_inlined = all[i] == kiln_module_inline || all[k] == kiln_module_inline;
      bool was_flattened = all[i] == kiln_module_flatten_tuples || all[k] == kiln_module_flatten_tuples;
      if (was_inlined) ck_assert(!calls_anything(two));
      if (was_flattened) ck_assert(!has_tuple_parameter(two));
      char *text = print(two);
      kiln_module *again = parse(text);
      expect_print(again, text);
      kiln_module_destroy(&again);
      kiln_text_free(cx, text, strlen(text));
      kiln_module_destroy(&two);
      kiln_module_destroy(&one);
    }
  free_buffers(&want);
}

START_TEST(random_modules_compute_the_same) {
  for (uint64_t seed = 0; seed < 300; seed++) {
    kiln_module *m = seed % 4 ? random_calls(seed) : random_fusion(seed);
    check_all(m, seed);
    kiln_module_destroy(&m);
  }
}
END_TEST

// --- pieces -------------------------------------------------------------------------------------------------------

static kiln_module *split(const kiln_module *m, uint32_t n, const kl_split *splits) {
  kiln_module *out = NULL;
  kiln_status s = kl_module_split(cx, m, n, splits, &out);
  ck_assert_msg(s == KILN_OK, "status %d: %s\n%s", s, last_finding(), print(m));
  return out;
}

static bool *draw_cuts(const kl_comp *c, unsigned percent) {
  bool *cut = calloc(c->ninstr, sizeof *cut);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    kl_op op = c->instr[i].op;
    if (op == KL_OP_PARAMETER || op == KL_OP_CONSTANT || op == KL_OP_TUPLE) continue;
    cut[i] = random_bits() % 100 < percent;
  }
  return cut;
}

static kl_split split_of(const kl_instr *fusion, const kl_comp *c, unsigned percent, uint32_t in) {
  return (kl_split){fusion, c, draw_cuts(c, percent), in};
}

static uint32_t draw_splits(const kiln_module *m, unsigned percent, kl_split *splits) {
  const kl_comp *entry = &m->comp[m->entry];
  uint32_t n = 0;
  for (uint32_t i = 0; i < entry->ninstr; i++)
    if (entry->instr[i].op == KL_OP_FUSION)
      splits[n++] = split_of(&entry->instr[i], &m->comp[entry->instr[i].called[0]], percent, m->entry);
  if (!n) splits[n++] = split_of(NULL, entry, percent, m->entry);
  return n;
}

// ENTRY calls what was cut and holds nothing more, and every piece has one result where it was cut.
static void check_pieces(const kiln_module *m) {
  const kl_comp *entry = &m->comp[m->entry];
  for (uint32_t i = 0; i < entry->ninstr; i++) {
    kl_op op = entry->instr[i].op;
    ck_assert(op == KL_OP_FUSION || op == KL_OP_PARAMETER || op == KL_OP_TUPLE || op == KL_OP_GET_TUPLE_ELEMENT);
  }
}

START_TEST(pieces_compute_the_same) {
  uint64_t refused = 0;
  for (uint64_t seed = 0; seed < share_of(400); seed++) {
    random_seed(seed);
    kiln_module *m = seed % 2 ? random_calls(seed) : random_fusion(seed);
    kl_split splits[64];
    uint32_t n = draw_splits(m, seed % 3 ? 20 : 90, splits);
    kiln_module *pieces = split(m, n, splits);
    refused += !pieces;
    if (!pieces) goto next;
    if (!splits[0].fusion) check_pieces(pieces);
    buffers want = evaluate(m, seed);
    expect_same_values(m, &want, pieces, seed);
    char *text = print(pieces);
    kiln_module *again = parse(text);
    expect_print(again, text);
    kiln_text_free(cx, text, strlen(text));
    free_buffers(&want);
    kiln_module_destroy(&again);
    kiln_module_destroy(&pieces);
  next:
    kiln_module_destroy(&m);
    while (n) free((void *)splits[--n].cut);
  }
  ck_assert_uint_le(2 * refused, share_of(400)); // calls lay things out in ways that nothing can be cut in
}
END_TEST

// What is cut is a result of its own, and what is left of the root's tuple is made by the last piece.
START_TEST(pieces_are_these) {
  kiln_module *m = parse("HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n  q = f32[4] parameter(1)\n"
                         "  a = f32[4] exponential(p)\n  b = f32[4] add(a, q)\n  c = f32[4] negate(a)\n"
                         "  ROOT r = (f32[4], f32[4], f32[4]) tuple(b, a, c)\n}\n");
  bool cut[6] = {[2] = true};
  kiln_module *pieces = split(m, 1, &(kl_split){NULL, &m->comp[m->entry], cut, m->entry});
  expect_print(pieces, "HloModule m\n\n"
                       "%a {\n  %p = f32[4] parameter(0)\n  ROOT %a = f32[4] exponential(%p)\n}\n\n"
                       "%r {\n  %q = f32[4] parameter(0)\n  %a = f32[4] parameter(1)\n"
                       "  %b = f32[4] add(%a, %q)\n  %c = f32[4] negate(%a)\n"
                       "  ROOT %r = (f32[4], f32[4]) tuple(%b, %c)\n}\n\n"
                       "ENTRY %e {\n  %p = f32[4] parameter(0)\n  %q = f32[4] parameter(1)\n"
                       "  %a = f32[4] fusion(%p), kind=kLoop, calls=%a\n"
                       "  %r = (f32[4], f32[4]) fusion(%q, %a), kind=kLoop, calls=%r\n"
                       "  %b = f32[4] get-tuple-element(%r), index=0\n"
                       "  %c = f32[4] get-tuple-element(%r), index=1\n"
                       "  ROOT %r.1 = (f32[4], f32[4], f32[4]) tuple(%b, %a, %c)\n}\n");
  kiln_module_destroy(&pieces);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("transform", EACH(make_context, drop_context), {clone_is_equal_and_independent},
                   {clone_keeps_places}, {everything_is_copied_and_rewritten}, {short_memory_is_a_status},
                   {extracted_fusion_stands_alone}, {dead_code_goes, KL_COUNT(dead)},
                   {calls_are_inlined, KL_COUNT(inlined)}, {tuples_are_flattened, KL_COUNT(flat)},
                   {headers_that_cannot_follow_are_refused}, {too_much_to_inline_is_refused}, {deep_calls_inline},
                   {random_modules_compute_the_same}, {pieces_are_these}, {pieces_compute_the_same});
}
