// Dependences as the public API lists them.
#include "support/context.h"

#include <kiln/index.h>

static const char fused[] = "HloModule m\n"
                            "f { p = f32[8] parameter(0) q = s32[] parameter(1) n = s32[] negate(q)\n"
                            "  d = f32[2] dynamic-slice(p, n), dynamic_slice_sizes={2}\n"
                            "  e = f32[2] dynamic-slice(p, q), dynamic_slice_sizes={2}\n"
                            "  ROOT t = (f32[2], f32[2]) tuple(d, e) }\n"
                            "ENTRY e { a = f32[8] parameter(0) i = s32[] parameter(1)\n"
                            "  g = (f32[2], f32[2]) fusion(a, i), kind=kLoop, calls=f\n"
                            "  h = f32[2] get-tuple-element(g), index=0 k = f32[2] get-tuple-element(g), index=1\n"
                            "  ROOT r = f32[2] add(h, k) }\n";

static kiln_module *m;
static kiln_indexing *list;

static void make(void) {
  make_context();
  m = parse(fused);
}

static void drop(void) {
  kiln_indexing_destroy(&list);
  kiln_module_destroy(&m);
  drop_context();
}

static void ask(kiln_index_way way, const char *instruction) {
  kiln_index_params how = {.struct_size = sizeof how, .way = way, .instruction = instruction};
  kiln_indexing_destroy(&list);
  EXPECT(kiln_module_index(cx, m, &how, &list) == KILN_OK, "%s", last_finding());
}

static const kiln_dependence *at(size_t i) {
  const kiln_dependence *d = kiln_indexing_at(list, i);
  EXPECT(d, "no dependence %zu", i);
  return d;
}

static void is_map(const kiln_map *map, const char *want) {
  char *text;
  EXPECT(kiln_map_print(cx, map, KILN_MAP_LINE, &text, NULL) == KILN_OK, "%s", last_finding());
  ck_assert_str_eq(text, want);
  kiln_text_free(cx, text, strlen(text));
}

// All paths from ENTRY's result; runtime variables are named where they are made.
START_TEST(entry_is_walked) {
  ask(KILN_INDEX_FROM_OUTPUT, NULL);
  ck_assert_uint_eq(kiln_indexing_count(list), 3);
  const kiln_dependence *d = at(0);
  ck_assert_str_eq(d->from, "r");
  ck_assert_str_eq(d->to, "a");
  ck_assert_str_eq(d->from_type, "f32[2]");
  ck_assert_str_eq(d->to_type, "f32[8]");
  is_map(d->map, "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 1], rt0 in [0, 6]");
  EXPECT(d->exact && !d->remote && !d->reason[0] && d->operand == 0, "exact, of parameter 0");
  ck_assert_uint_eq(d->runtime_count, 1);
  EXPECT(d->runtime[0].clamped && d->runtime[0].to.lo == 0 && d->runtime[0].to.hi == 6, "clamped to 0..6");
  ck_assert_str_eq(d->runtime[0].index, "()");
  const char *one = d->runtime[0].instruction, *two = at(1)->runtime[0].instruction;
  EXPECT((!strcmp(one, "n") && !strcmp(two, "i")) || (!strcmp(one, "i") && !strcmp(two, "n")), "%s and %s", one, two);
  ck_assert_str_eq(at(2)->to, "i");
  is_map(at(2)->map, "(d0) -> (), domain: d0 in [0, 1]");
}
END_TEST

START_TEST(entry_is_walked_from_inputs) {
  ask(KILN_INDEX_FROM_INPUT, NULL);
  ck_assert_uint_eq(kiln_indexing_count(list), 3);
  ck_assert_str_eq(at(0)->from, "a");
  ck_assert_str_eq(at(0)->to, "r");
  is_map(at(0)->map, "(d0){rt0} -> (d0 - rt0), domain: d0 in [0, 7], rt0 in [0, 6], d0 - rt0 in [0, 1]");
  ck_assert_str_eq(at(2)->from, "i");
  is_map(at(2)->map, "()[s0] -> (s0), domain: s0 in [0, 1]");
}
END_TEST

// A call by its operands; what its parameters stand for has the operand's name.
START_TEST(a_call_is_followed) {
  ask(KILN_INDEX_FROM_OUTPUT, "g");
  ck_assert_uint_eq(kiln_indexing_count(list), 4);
  ck_assert_str_eq(at(0)->from, "g");
  ck_assert_str_eq(at(0)->to, "a");
  ck_assert_str_eq(at(0)->runtime[0].instruction, "n");
  EXPECT(at(2)->from_leaf == 1, "the second result");
  ck_assert_str_eq(at(2)->runtime[0].instruction, "i");
}
END_TEST

START_TEST(an_instruction_by_itself) {
  ask(KILN_INDEX_FROM_OUTPUT, "%d");
  ck_assert_uint_eq(kiln_indexing_count(list), 2);
  ck_assert_str_eq(at(0)->to, "p");
  ask(KILN_INDEX_FROM_INPUT, "k");
  ck_assert_uint_eq(kiln_indexing_count(list), 1);
  EXPECT(at(0)->from_leaf == 1 && at(0)->to_leaf == 0, "of the second array");
  EXPECT(!kiln_indexing_at(list, 1), "there is one");
  ask(KILN_INDEX_FROM_OUTPUT, "a");
  ck_assert_uint_eq(kiln_indexing_count(list), 0);
}
END_TEST

// The list is its own: the module may go.
START_TEST(the_module_may_go) {
  ask(KILN_INDEX_FROM_OUTPUT, NULL);
  kiln_module_destroy(&m);
  ck_assert_str_eq(at(0)->to, "a");
  is_map(at(2)->map, "(d0) -> (), domain: d0 in [0, 1]");
}
END_TEST

START_TEST(places_in_memory) {
  kiln_module_destroy(&m);
  m = parse("HloModule m\nENTRY e { a = f32[4,8]{0,1} parameter(0) ROOT r = f32[4,8] negate(a) }\n");
  kiln_index_params how = {.struct_size = sizeof how, .physical = true};
  EXPECT(kiln_module_index(cx, m, &how, &list) == KILN_OK, "%s", last_finding());
  is_map(at(0)->map, "(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 7]");
}
END_TEST

START_TEST(misuse_is_a_status) {
  kiln_index_params how = {.struct_size = sizeof how, .instruction = "nobody"};
  EXPECT(kiln_module_index(cx, m, &how, &list) == KILN_E_INVALID && !list, "no such instruction");
  EXPECT(strstr(last_finding(), "'nobody'"), "%s", last_finding());
  how = (kiln_index_params){.struct_size = 1};
  EXPECT(kiln_module_index(cx, m, &how, &list) == KILN_E_INVALID, "no such size");
  how = (kiln_index_params){.struct_size = sizeof how, .way = (kiln_index_way)7};
  EXPECT(kiln_module_index(cx, m, &how, &list) == KILN_E_INVALID, "no such way");
  EXPECT(kiln_module_index(cx, NULL, NULL, &list) == KILN_E_INVALID, "no module");
  EXPECT(kiln_module_index(cx, m, NULL, NULL) == KILN_E_INVALID, "no list");
  EXPECT(kiln_module_index(NULL, m, NULL, &list) == KILN_E_INVALID, "no context");
  EXPECT(kiln_indexing_count(NULL) == 0 && !kiln_indexing_at(NULL, 0), "no list has nothing");
  kiln_indexing_destroy(NULL);
  EXPECT(kiln_module_index(cx, m, NULL, &list) == KILN_OK && kiln_indexing_count(list) == 3, "no params: the default");
}
END_TEST

int main(void) {
  return RUN_TESTS("reads_api", EACH(make, drop), {entry_is_walked}, {entry_is_walked_from_inputs},
                   {a_call_is_followed}, {an_instruction_by_itself}, {the_module_may_go}, {places_in_memory},
                   {misuse_is_a_status});
}
