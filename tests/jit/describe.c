// What the manifest tells beside sizes and launches: names, layouts, hash, versions; and which fusions can be compiled.
#include "support/context.h"
#include "base/base.h"

#include <kiln/kiln.h>
#include <stdio.h>

static kiln_artifact *compile(const kiln_module *m, kiln_compile_params p) {
  kiln_artifact *a = NULL;
  p.struct_size = sizeof p;
  ck_assert_msg(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s", last_finding());
  return a;
}

// --- slots ----------------------------------------------------------------------------------------------------------

// Slots as "NAME type[dims]LAYOUT", joined by spaces.
static const struct {
  const char *text, *fusion, *slots;
} slots[] = {
    {"ENTRY e { x = f32[2,3]{0,1} parameter(0) y.1 = s4[] parameter(1) c = f32[] convert(y.1) b = f32[2,3]{0,1} "
     "broadcast(c), dimensions={} ROOT sum = f32[2,3]{0,1} add(x, b) }",
     NULL, "x f32[2,3]{0,1} y.1 s4[]{} sum f32[2,3]{0,1}"},
    {"ENTRY e { p = (f32[4], (bf16[4,1,2]{0,2,1}, pred[4])) parameter(0) q = f32[4] parameter(1) "
     "t = (bf16[4,1,2]{0,2,1}, pred[4]) get-tuple-element(p), index=1 u = pred[4] get-tuple-element(t), index=1 "
     "n = f32[4] negate(q) i = (pred[4]) tuple(u) ROOT r = (f32[4], (pred[4])) tuple(n, i) }",
     NULL, "p{0} f32[4]{0} p{1,0} bf16[4,1,2]{0,2,1} p{1,1} pred[4]{0} q f32[4]{0} n f32[4]{0} u pred[4]{0}"},
    {"f { a = f32[3] parameter(0) b = f32[3] negate(a) c = f32[3] abs(a) ROOT t = (f32[3], f32[3]) tuple(b, c) }\n"
     "ENTRY e { x = f32[3] parameter(0) ROOT y = (f32[3], f32[3]) fusion(x), kind=kLoop, calls=f }",
     NULL, "x f32[3]{0} y{0} f32[3]{0} y{1} f32[3]{0}"},
    {"f { a = f32[3] parameter(0) b = f32[3] negate(a) c = f32[3] abs(a) ROOT t = (f32[3], f32[3]) tuple(b, c) }\n"
     "ENTRY e { x = f32[3] parameter(0) ROOT y = (f32[3], f32[3]) fusion(x), kind=kLoop, calls=f }",
     "y", "a f32[3]{0} b f32[3]{0} c f32[3]{0}"},
    {"ENTRY e { x = f32[0,7] parameter(0) ROOT y = f32[0,7] copy(x) }", NULL, "x f32[0,7]{1,0} y f32[0,7]{1,0}"},
    {"ENTRY e { ROOT k = f32[2,2]{1,0} constant({{1, 2}, {3, 4}}) }", NULL, "k f32[2,2]{1,0}"},
    {"ENTRY e { x = f32[4]{0:S(1)} parameter(0) ROOT y = f32[4] negate(x) }", NULL, "x f32[4]{0:S(1)} y f32[4]{0}"},
};

static void put_slot(kl_sb *b, const kiln_slot *s) {
  kl_sbf(b, "%s%s %s[", b->n ? " " : "", s->name, kiln_dtype_name(s->type.dtype));
  for (uint32_t d = 0; d < s->type.rank; d++) kl_sbf(b, "%s%lld", d ? "," : "", (long long)s->type.dims[d]);
  kl_sbf(b, "]%s", s->layout);
  // The numbers are those of the text.
  kl_sb numbers;
  kl_sb_init(&numbers, b->cx);
  kl_sb_putc(&numbers, '{');
  for (uint32_t d = 0; d < s->type.rank; d++) kl_sbf(&numbers, "%s%u", d ? "," : "", s->minor_to_major[d]);
  ck_assert_msg(strncmp(s->layout, numbers.p, numbers.n) == 0, "%s: %s", s->layout, numbers.p);
  ck_assert_msg(strchr(":}", s->layout[numbers.n]) != NULL, "%s", s->layout);
  kl_sb_free(&numbers);
}

START_TEST(slots_have_names_and_layouts) {
  char text[1000];
  snprintf(text, sizeof text, "HloModule m\n%s", slots[_i].text);
  kiln_module *m = parse(text);
  static const char *const targets[] = {"sm_90", "host"};
  for (size_t t = 0; t < KL_COUNT(targets); t++) {
    kiln_artifact *a = compile(m, (kiln_compile_params){.target = targets[t], .fusion = slots[_i].fusion});
    const kiln_manifest *f = kiln_artifact_manifest(a);
    kl_sb b;
    kl_sb_init(&b, cx);
    for (size_t i = 0; i < f->parameter_count + f->result_count; i++) put_slot(&b, &f->slots[i]);
    ck_assert_str_eq(b.p, slots[_i].slots);
    kl_sb_free(&b);
    kiln_artifact_destroy(&a);
  }
  kiln_module_destroy(&m);
}
END_TEST

// --- the whole ------------------------------------------------------------------------------------------------------

static const char two_fusions[] =
    "HloModule jit_f.7\nf { a = f32[64] parameter(0) ROOT b = f32[64] exponential(a) }\n"
    "g { a = f32[64] parameter(0) c = f32[8,8] reshape(a) d = f32[8,8] shuffle(c) ROOT b = f32[64] reshape(d) }\n"
    "ENTRY e { x = f32[64] parameter(0) y = f32[64] fusion(x), kind=kLoop, calls=f "
    "ROOT z.1 = f32[64] fusion(y), kind=kLoop, calls=g }\n";

// The artifact outlives the module and its context, and so do its texts.
START_TEST(the_origin_is_told) {
  kiln_module *m = parse(two_fusions);
  uint8_t hash[KILN_HASH_SIZE], again[KILN_HASH_SIZE], none[KILN_HASH_SIZE] = {0};
  kiln_artifact *gpu = compile(m, (kiln_compile_params){.target = "sm_90", .fusion = "y"}),
                *host = compile(m, (kiln_compile_params){.target = "host", .fusion = "y"});
  ck_assert_int_eq(kiln_module_hash(cx, m, hash), KILN_OK);
  ck_assert_int_eq(kiln_module_hash(cx, m, again), KILN_OK);
  ck_assert_mem_eq(hash, again, sizeof hash);
  ck_assert_mem_ne(hash, none, sizeof hash);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  const kiln_manifest *f = kiln_artifact_manifest(gpu);
  ck_assert_str_eq(f->kiln_version, kiln_version());
  ck_assert_str_eq(f->module, "jit_f.7");
  ck_assert_str_eq(f->fusion, "y");
  ck_assert_str_eq(f->target, "sm_90");
  ck_assert_mem_eq(f->hash, hash, sizeof hash);
  f = kiln_artifact_manifest(host);
  ck_assert_str_eq(f->module, "jit_f.7");
  ck_assert_mem_eq(f->hash, hash, sizeof hash);
  ck_assert_uint_eq(f->ptx_version, 0);
  ck_assert_int_eq(f->driver_version, 0);
  kiln_artifact_destroy(&gpu);
  kiln_artifact_destroy(&host);
}
END_TEST

START_TEST(all_fusions_have_no_name) {
  kiln_module *m = parse("HloModule m\nENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] copy(x) }");
  kiln_artifact *a = compile(m, (kiln_compile_params){0});
  ck_assert_ptr_null(kiln_artifact_manifest(a)->fusion);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

// The release notes of CUDA say which driver came with which version of PTX.
static const struct {
  const char *target;
  uint32_t ptx;
  int driver;
} code[] = {{"sm_70", 60, 9000},  {"sm_72", 61, 9010},  {"sm_75", 63, 10000}, {"sm_80", 70, 11000},
            {"sm_89", 78, 11080}, {"sm_90", 78, 11080}, {"sm_100", 86, 12070}};

START_TEST(the_code_says_what_it_needs) {
  kiln_module *m = parse("HloModule m\nENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }");
  kiln_artifact *a = compile(m, (kiln_compile_params){.target = code[_i].target});
  const kiln_manifest *f = kiln_artifact_manifest(a);
  unsigned major, minor;
  const char *version = strstr(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), ".version ");
  ck_assert(version && sscanf(version, ".version %u.%u", &major, &minor) == 2);
  ck_assert_uint_eq(f->ptx_version, major * 10 + minor);
  ck_assert_uint_eq(f->ptx_version, code[_i].ptx);
  ck_assert_int_eq(f->driver_version, code[_i].driver);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

// --- what can be compiled -------------------------------------------------------------------------------------------

// Without code being generated: the status and the finding that compiling gives.
static void expect_same_answer(const kiln_module *m, kiln_compile_params p) {
  char said[500] = "";
  kiln_artifact *a = NULL;
  p.struct_size = sizeof p;
  kiln_diagnostics_clear(cx);
  kiln_status st = kiln_compile_check(cx, m, &p);
  snprintf(said, sizeof said, "%s", last_finding());
  ck_assert_uint_eq(kiln_diagnostics_count(cx), st != KILN_OK);
  kiln_diagnostics_clear(cx);
  ck_assert_int_eq(kiln_compile(cx, m, &p, &a), st);
  ck_assert_str_eq(last_finding(), said);
  kiln_artifact_destroy(&a);
}

START_TEST(a_check_is_a_compile_without_code) {
  kiln_module *m = parse(two_fusions), *mixed;
  const char *names[2];
  ck_assert_uint_eq(kiln_module_fusions(m, names, 2), 2);
  kiln_compile_params p = {.struct_size = sizeof p, .fusion = names[0]};
  ck_assert_int_eq(kiln_compile_check(cx, m, &p), KILN_OK);
  p.fusion = names[1];
  ck_assert_int_eq(kiln_compile_check(cx, m, &p), KILN_E_UNSUPPORTED);
  ck_assert_ptr_nonnull(strstr(last_finding(), "shuffle"));
  expect_same_answer(m, (kiln_compile_params){0});
  for (int i = 0; i < 2; i++) expect_same_answer(m, (kiln_compile_params){.fusion = names[i]});
  expect_same_answer(m, (kiln_compile_params){.fusion = names[0], .target = "host"});
  expect_same_answer(m, (kiln_compile_params){.fusion = names[0], .max_count = 128});
  expect_same_answer(m, (kiln_compile_params){.fusion = names[0], .target = "sm_80", .programmatic = true});
  expect_same_answer(m, (kiln_compile_params){.fusion = "none"});
  expect_same_answer(m, (kiln_compile_params){.target = "sm_1"});
  expect_same_answer(m, (kiln_compile_params){.argument_align = 3});
  expect_same_answer(m, (kiln_compile_params){.fusion = names[0], .aliases = &(kiln_alias){0, 1}, .alias_count = 1});
  kiln_module_destroy(&m);
  mixed = parse("HloModule m\nf { ROOT p = f32[] parameter(0) }\nENTRY e { x = f32[] parameter(0) y = f32[] fusion(x), "
                "kind=kLoop, calls=f ROOT z = f32[] tanh(y) }");
  expect_same_answer(mixed, (kiln_compile_params){0});
  kiln_module_destroy(&mixed);
}
END_TEST

int main(void) {
  return RUN_TESTS("describe", EACH(make_context, drop_context), {slots_have_names_and_layouts, KL_COUNT(slots)},
                   {the_origin_is_told}, {all_fusions_have_no_name}, {the_code_says_what_it_needs, KL_COUNT(code)},
                   {a_check_is_a_compile_without_code});
}
