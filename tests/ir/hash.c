// Canonical text and content hash: what must not matter does not, what must does, and the two agree with each other.
#include "support/context.h"
#include "support/gen.h"
#include "support/share.h"
#include "ir/rewrite/canonical.h"

#include <stdio.h>
#include <stdlib.h>

// A module's hash and canonical text.
typedef struct identity {
  uint8_t hash[KILN_HASH_SIZE];
  char *text;
} identity;

static identity identify(const kiln_module *m) {
  identity id;
  ck_assert_int_eq(kiln_module_hash(cx, m, id.hash), KILN_OK);
  ck_assert_int_eq(kiln_module_canonical_print(cx, m, &id.text, NULL), KILN_OK);
  return id;
}

static void drop(identity *id) {
  kiln_text_free(cx, id->text, strlen(id->text));
}

static bool same_hash(const identity *a, const identity *b) {
  return memcmp(a->hash, b->hash, sizeof a->hash) == 0;
}

// The canonical text is a module that has the same identity.
static identity identify_twice(kiln_module *m) {
  identity id = identify(m);
  kiln_module *again = parse(id.text);
  identity second = identify(again);
  ck_assert_str_eq(second.text, id.text);
  ck_assert(same_hash(&second, &id));
  drop(&second);
  kiln_module_destroy(&again);
  return id;
}

static identity identify_text(const char *text) {
  kiln_module *m = parse(text);
  identity id = identify_twice(m);
  kiln_module_destroy(&m);
  return id;
}

// --- the digest ---------------------------------------------------------------------------------------------------

// Computed by OpenSSL's SIPHASH with a key of zeros and 16 bytes of result.
static const char *const digests[][2] = {
    {"", "5049D74780A3E07D4202AB47D4CEF2F4"},
    {"a", "FFCC4E749C37A0BEE6C404890ECD7325"},
    {"1234567", "4E5A8E02996376DEA74B29EA17430FBD"},
    {"12345678", "18FFFDCE1B2379E93644FF5B0D68B7F1"},
    {"The quick brown fox jumps over the lazy dog", "DF8C5CE876C57F25C03F1BB5DF591AB2"},
};

START_TEST(digest_is_siphash) {
  kl_digest d = kl_digest_of(digests[_i][0], strlen(digests[_i][0]));
  char text[33];
  for (int i = 0; i < 16; i++) snprintf(text + 2 * i, 3, "%02X", (unsigned)(d.v[i / 8] >> (8 * (i % 8)) & 255));
  ck_assert_str_eq(text, digests[_i][1]);
}
END_TEST

// --- what matters and what does not -------------------------------------------------------------------------------

#define SUM(name)    name " {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = f32[] add(x, y)\n}\n"
#define MAX(name)    name " {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = f32[] maximum(x, y)\n}\n"
#define BODY(lines)  "HloModule m\nENTRY e {\n p = f32[2,3] parameter(0)\n q = f32[2,3] parameter(1)\n" lines "\n}\n"
#define EFFECT(args) "custom-call(" args "), custom_call_target=\"f\", custom_call_has_side_effect=true"

static const struct {
  bool equal;
  const char *a, *b;
} pairs[] = {
    // names, metadata, order, what is dead
    {true, BODY("ROOT r = add(p, q)"),
     "HloModule other\nENTRY main {\n b = f32[2,3] parameter(1)\n a = f32[2,3] parameter(0)\n"
     " c = add(a, b), metadata={op_name=\"x\"}, origin={{\"y\"}}\n}"},
    {true, BODY("a = abs(p)\n b = abs(q)\n ROOT r = add(a, b)"), BODY("x = abs(q)\n y = abs(p)\n ROOT r = add(y, x)")},
    {true, BODY("ROOT r = add(p, q)"), BODY("d = negate(p)\n e = abs(d)\n ROOT r = add(p, q)")},
    {true, BODY("ROOT r = add(p, q), sharding={a}, frontend_attributes={k=\"v\"}"),
     BODY("ROOT r = add(p, q), frontend_attributes={k=\"v\"}, metadata={}, sharding={ a }")},
    {true, BODY("ROOT r = f32[2,3] add(p, q)"), BODY("ROOT r = f32[2,3]{1,0} add(p, q)")},
    {true, BODY("ROOT t = tuple(p, q)"), BODY("ROOT t = (f32[2,3]{1,0}, f32[2,3]) tuple(p, q)")},
    {true, BODY("ROOT r = add(p, q), control-predecessors={p, q}"),
     BODY("ROOT r = add(p, q), control-predecessors={q, p, q}")},
    {true,
     "HloModule m, num_partitions=2, is_scheduled=true, replica_count=1\nENTRY e {\n ROOT p = f32[] parameter(0)\n}",
     "HloModule m, replica_count=1, num_partitions=2\nENTRY e {\n ROOT p = f32[] parameter(0)\n}"},
    // computations: names, order, equal ones, dead ones
    {true,
     "HloModule m\n" SUM("s") MAX("t") "ENTRY e {\n p = f32[4] parameter(0)\n z = f32[] constant(0)\n"
                                       " a = f32[] reduce(p, z), dimensions={0}, to_apply=s\n b = f32[] reduce(p, z), "
                                       "dimensions={0}, to_apply=t\n"
                                       " ROOT r = add(a, b)\n}",
     "HloModule m\n" MAX("one") SUM("dead") SUM("two") "ENTRY e {\n p = f32[4] parameter(0)\n z = f32[] constant(0)\n"
                                                       " b = f32[] reduce(p, z), dimensions={0}, to_apply=one\n a = "
                                                       "f32[] reduce(p, z), dimensions={0}, to_apply=two\n"
                                                       " ROOT r = add(a, b)\n}"},
    {true,
     "HloModule m\n" SUM("s") SUM("t") "ENTRY e {\n p = f32[4] parameter(0)\n z = f32[] constant(0)\n"
                                       " a = f32[] reduce(p, z), dimensions={0}, to_apply=s\n b = f32[] reduce(p, z), "
                                       "dimensions={0}, to_apply=t\n"
                                       " ROOT r = add(a, b)\n}",
     "HloModule m\n" SUM("s") "ENTRY e {\n p = f32[4] parameter(0)\n z = f32[] constant(0)\n"
                              " a = f32[] reduce(p, z), dimensions={0}, to_apply=s\n b = f32[] reduce(p, z), "
                              "dimensions={0}, to_apply=s\n"
                              " ROOT r = add(a, b)\n}"},
    {false,
     "HloModule m\n" SUM("s") MAX("t") "ENTRY e {\n p = f32[4] parameter(0)\n z = f32[] constant(0)\n"
                                       " ROOT a = f32[] reduce(p, z), dimensions={0}, to_apply=s\n}",
     "HloModule m\n" SUM("s") MAX("t") "ENTRY e {\n p = f32[4] parameter(0)\n z = f32[] constant(0)\n"
                                       " ROOT a = f32[] reduce(p, z), dimensions={0}, to_apply=t\n}"},
    // the graph: operand order, sharing, which parameter, which result
    {false, BODY("ROOT r = subtract(p, q)"), BODY("ROOT r = subtract(q, p)")},
    {false, BODY("a = abs(p)\n ROOT r = add(a, a)"), BODY("a = abs(p)\n b = abs(p)\n ROOT r = add(a, b)")},
    {false, BODY("a = abs(p)\n ROOT r = negate(a)"), BODY("a = negate(p)\n ROOT r = abs(a)")},
    {false, BODY("ROOT r = add(p, q)"), BODY("ROOT r = add(p, p)")},
    {false, BODY("ROOT r = add(p, q)"),
     "HloModule m\nENTRY e {\n p = f32[2,3] parameter(0)\n q = f32[2,3] parameter(1)\n s = f32[] parameter(2)\n"
     " ROOT r = add(p, q)\n}"},
    {false, BODY("a = abs(p)\n ROOT r = add(p, q), control-predecessors={a}"), BODY("a = abs(p)\n ROOT r = add(p, q)")},
    // types, layouts, literals, attributes
    {false, BODY("ROOT r = f32[2,3] add(p, q)"), BODY("ROOT r = f32[2,3]{0,1} add(p, q)")},
    {false, BODY("ROOT r = f32[2,3] add(p, q)"), BODY("ROOT r = f32[2,3]{1,0:S(1)} add(p, q)")},
    {false, BODY("ROOT r = f32[2,3]{1,0} add(p, q)"), BODY("ROOT r = f32[2,3]{1,0:T(8,128)} add(p, q)")},
    {false, BODY("ROOT c = f32[2] constant({0, 1})"), BODY("ROOT c = f32[2] constant({-0, 1})")},
    {false, BODY("ROOT c = f32[] constant(nan)"), BODY("ROOT c = f32[] constant(nan(0x1))")},
    {false, BODY("ROOT c = (s32[], s32[2]) constant((1, {2, 3}))"),
     BODY("ROOT c = (s32[], s32[2]) constant((1, {2, 4}))")},
    {false, BODY("ROOT c = s32[2] constant({1, 2})"), BODY("ROOT c = u32[2] constant({1, 2})")},
    {true, BODY("ROOT c = s4[2] constant({-1, 7})"), BODY("ROOT c = s4[2] constant({ -1,7 })")},
    {false, BODY("ROOT c = f32[8] constant({...})"), BODY("ROOT c = f32[8] constant({0,0,0,0,0,0,0,0})")},
    {false, BODY("ROOT r = compare(p, q), direction=LT"), BODY("ROOT r = compare(p, q), direction=LE")},
    {false, BODY("ROOT r = add(p, q), sharding={a}"), BODY("ROOT r = add(p, q), sharding={b}")},
    {false, BODY("ROOT r = add(p, q), backend_config={\"k\":1}"), BODY("ROOT r = add(p, q)")},
    {false, "HloModule m, num_partitions=2\nENTRY e {\n ROOT p = f32[] parameter(0)\n}",
     "HloModule m\nENTRY e {\n ROOT p = f32[] parameter(0)\n}"},
    {true, BODY("ROOT d = f32[2,2] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
     BODY("ROOT d = f32[2,2] dot(p, q), rhs_contracting_dims={1}, lhs_contracting_dims={1}, lhs_batch_dims={}, "
          "rhs_batch_dims={}, operand_precision={default,default}")},
    {false, BODY("ROOT d = f32[2,2] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
     BODY("ROOT d = f32[2,2] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
          "operand_precision={highest,default}")},
    // instructions that only their effect keeps alive
    {false, BODY("x = f32[] " EFFECT("p") "\n ROOT r = add(p, q)"), BODY("ROOT r = add(p, q)")},
    {false, BODY("x = f32[] " EFFECT("p") "\n ROOT r = add(p, q)"),
     BODY("x = f32[] " EFFECT("q") "\n ROOT r = add(p, q)")},
    {true, BODY("x = f32[] custom-call(p), custom_call_target=\"f\"\n ROOT r = add(p, q)"), BODY("ROOT r = add(p, q)")},
    {true,
     BODY("x = f32[] " EFFECT("p") "\n y = f32[] " EFFECT("q") "\n z = f32[] " EFFECT("p, q") "\n ROOT r = add(p, q)"),
     BODY("z = f32[] " EFFECT("p, q") "\n y = f32[] " EFFECT("q") "\n x = f32[] " EFFECT("p") "\n ROOT r = add(p, q)")},
    // equal by themselves, told apart by what they share with each other
    {true,
     BODY("a = abs(p)\n b = abs(p)\n c = f32[] " EFFECT("a") "\n d = f32[] " EFFECT("b") "\n f = f32[] " EFFECT(
         "a, a") "\n g = f32[] " EFFECT("b, b") "\n ROOT r = add(p, q)"),
     BODY("a = abs(p)\n b = abs(p)\n g = f32[] " EFFECT("b, b") "\n c = f32[] " EFFECT("a") "\n f = f32[] " EFFECT(
         "a, a") "\n d = f32[] " EFFECT("b") "\n ROOT r = add(p, q)")},
    {false,
     BODY("a = abs(p)\n b = abs(p)\n c = f32[] " EFFECT("a") "\n d = f32[] " EFFECT("b") "\n ROOT r = add(p, q)"),
     BODY("a = abs(p)\n c = f32[] " EFFECT("a") "\n d = f32[] " EFFECT("a") "\n ROOT r = add(p, q)")},
    // unknown ops
    {true, BODY("ROOT r = f32[2] foo(p, q), k=v"), BODY("x = f32[] constant(0)\n ROOT y = f32[2] foo(p, q), k=v")},
    {false, BODY("ROOT r = f32[2] foo(p, q)"), BODY("ROOT r = f32[2] bar(p, q)")},
    {true, BODY("a = abs(p)\n ROOT f = f32[2] foo(a, 1, (b), f32[2,3]{1,0} %q, \"a\")"),
     BODY("b = abs(p)\n ROOT f = f32[2] foo(b, 1, (b), f32[2,3]{1,0} q, \"a\")")},
    {true, BODY("%1 = abs(p)\n ROOT f = f32[2] foo(%p, 1, %1, f32[] 2, -1)"),
     BODY("a = abs(p)\n ROOT f = f32[2] foo(p, 1, a, f32[] 2, -1)")},
    {false, BODY("a = abs(p)\n b = negate(p)\n f = f32[2] foo(a, 1)\n ROOT t = tuple(f, a, b)"),
     BODY("b = abs(p)\n a = negate(p)\n f = f32[2] foo(a, 1)\n ROOT t = tuple(f, b, a)")},
    {false, "HloModule m\n" SUM("s") "ENTRY e {\n p = f32[] parameter(0)\n ROOT r = f32[] foo(p), to_apply=%s\n}",
     "HloModule m\n" MAX("s") "ENTRY e {\n p = f32[] parameter(0)\n ROOT r = f32[] foo(p), to_apply=%s\n}"},
};

START_TEST(pairs_compare) {
  bool twice = !strstr(pairs[_i].a, "to_apply=%s\n}");
  kiln_module *ma = parse(pairs[_i].a), *mb = parse(pairs[_i].b);
  identity a = twice ? identify_twice(ma) : identify(ma), b = twice ? identify_twice(mb) : identify(mb);
  ck_assert_msg((strcmp(a.text, b.text) == 0) == pairs[_i].equal, "%s\n%s", a.text, b.text);
  ck_assert_msg(same_hash(&a, &b) == pairs[_i].equal, "the hash does not follow the text:\n%s\n%s", a.text, b.text);
  drop(&a);
  drop(&b);
  kiln_module_destroy(&ma);
  kiln_module_destroy(&mb);
}
END_TEST

START_TEST(canonical_text_is_as_expected) {
  identity id = identify_text("HloModule x, replica_count=1, is_scheduled=true\n" SUM("unused") SUM(
      "s") "ENTRY e {\n b = f32[4]{0} parameter(1)\n a = f32[2] parameter(0), metadata={op_name=\"n\"}\n"
           " z = f32[] constant(-0)\n dead = abs(a)\n r = f32[] reduce(b, z), to_apply=s, dimensions={0}, "
           "sharding={y}\n"
           " f = f32[] " EFFECT("a") "\n ROOT t = tuple(r, z)\n}");
  ck_assert_str_eq(id.text,
                   "HloModule m0, replica_count=1\n\n%c0 {\n  %0 = f32[] parameter(0)\n  %1 = f32[] parameter(1)\n"
                   "  ROOT %2 = f32[] add(%0, %1)\n}\n\nENTRY %c1 {\n  %0 = f32[2] parameter(0)\n"
                   "  %1 = f32[4] parameter(1)\n  %2 = f32[] constant(-0.0)\n"
                   "  %3 = f32[] reduce(%1, %2), dimensions={0}, to_apply=%c0, sharding={y}\n"
                   "  ROOT %4 = (f32[], f32[]) tuple(%3, %2)\n  %5 = f32[] " EFFECT("%0") "\n}\n");
  drop(&id);
}
END_TEST

// --- the same module, written down in other ways ------------------------------------------------------------------

static uint64_t next(uint64_t *seed) {
  *seed += 0x9e3779b97f4a7c15u;
  return kl_hash(seed, sizeof *seed, 7);
}

static bool is_ready(const kl_instr *in, const uint32_t *where) {
  for (uint32_t i = 0; i < in->noperands; i++)
    if (where[in->operands[i]] == UINT32_MAX) return false;
  for (uint32_t i = 0; i < in->ncontrol; i++)
    if (where[in->control[i]] == UINT32_MAX) return false;
  return true;
}

static void renumber(uint32_t *list, uint32_t n, const uint32_t *where) {
  for (uint32_t i = 0; i < n; i++) list[i] = where[list[i]];
}

static void reverse(uint32_t *list, uint32_t n) {
  for (uint32_t i = 0; i < n / 2; i++) {
    uint32_t t = list[i];
    list[i] = list[n - 1 - i];
    list[n - 1 - i] = t;
  }
}

// In place: another order and other names; control predecessors backwards. The module is the test's own copy.
static void scramble_comp(kiln_module *m, kl_comp *c, uint64_t *seed) {
  uint32_t n = c->ninstr, *where = malloc(n * sizeof *where);
  kl_instr *to = malloc(n * sizeof *to);
  memset(where, 0xff, n * sizeof *where);
  for (uint32_t placed = 0; placed < n;) {
    uint32_t i = (uint32_t)(next(seed) % n);
    for (; where[i] != UINT32_MAX || !is_ready(&c->instr[i], where); i = (i + 1) % n) continue;
    char name[40];
    snprintf(name, sizeof name, "n%u.%u", (unsigned)(next(seed) % 10), placed);
    to[placed] = c->instr[i];
    to[placed].name = kl_intern(&m->names, kl_str_of(name));
    where[i] = placed++;
  }
  for (uint32_t i = 0; i < n; i++) {
    renumber((uint32_t *)to[i].operands, to[i].noperands, where);
    renumber((uint32_t *)to[i].control, to[i].ncontrol, where);
    reverse((uint32_t *)to[i].control, to[i].ncontrol);
  }
  memcpy(c->instr, to, n * sizeof *to);
  c->root = where[c->root];
  renumber((uint32_t *)c->params, c->nparams, where);
  free(where);
  free(to);
}

static kiln_module *scrambled(const kiln_module *m, uint64_t seed) {
  kiln_module *copy, *again = NULL;
  char *text;
  size_t size;
  ck_assert_int_eq(kl_clone(cx, m, NULL, &copy), KILN_OK);
  for (uint32_t i = 0; i < copy->ncomp; i++) scramble_comp(copy, &copy->comp[i], &seed);
  ck_assert_int_eq(kiln_module_print(cx, copy, &text, &size), KILN_OK);
  ck_assert_int_eq(kiln_module_parse(cx, "scrambled", text, size, &again), KILN_OK);
  kiln_text_free(cx, text, size);
  kiln_module_destroy(&copy);
  return again;
}

static kiln_module *generate(uint64_t seed, unsigned ops) {
  gen_source source = {.seed = seed};
  kl_sb text;
  kl_sb_init(&text, cx);
  gen_fusion(&source, ops, &text);
  kiln_module *m = parse(text.p);
  kl_sb_free(&text);
  return m;
}

static int by_hash(const void *a, const void *b) {
  return memcmp(((const identity *)a)->hash, ((const identity *)b)->hash, KILN_HASH_SIZE);
}

// Scrambled modules are the same. Different modules, sorted by hash: neighbours have equal texts exactly if the hashes
// are equal, and no text is found under two hashes.
START_TEST(random_modules_keep_their_identity) {
  unsigned n = (unsigned)share_of(1000);
  identity *all = calloc(n, sizeof *all);
  for (unsigned i = 0; i < n; i++) {
    kiln_module *m = generate(i / 2 * 2 + 1, 3 + i / 2 % 40), *other = scrambled(m, i);
    all[i] = identify(m);
    identity b = identify(other);
    ck_assert_str_eq(all[i].text, b.text);
    ck_assert(same_hash(&all[i], &b));
    drop(&b);
    kiln_module_destroy(&other);
    kiln_module_destroy(&m);
  }
  qsort(all, n, sizeof *all, by_hash);
  unsigned distinct = 1;
  for (unsigned i = 1; i < n; i++) {
    ck_assert_int_eq(strcmp(all[i].text, all[i - 1].text) == 0, same_hash(&all[i], &all[i - 1]));
    distinct += !same_hash(&all[i], &all[i - 1]);
  }
  ck_assert_uint_ge(distinct, n / 2 - n / 40); // each was made twice; small ones may agree
  for (unsigned i = 0; i < n; i++) drop(&all[i]);
  free(all);
}
END_TEST

// Graphs of equal instructions with effects, bound by control dependencies alone: all choices are among sets.
static kiln_module *generate_effects(uint64_t seed, unsigned n) {
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nENTRY e {\n p = f32[] parameter(0)\n");
  for (unsigned i = 0; i < n; i++) {
    kl_sbf(&b, " v%u = f32[] custom-call(%s), custom_call_target=\"f\", custom_call_has_side_effect=true", i,
           i && next(&seed) % 4 == 0 ? "v0" : "p");
    bool first = true;
    for (unsigned k = 0; k < i; k++)
      if (next(&seed) % n < 2) {
        kl_sbf(&b, first ? ", control-predecessors={v%u" : ", v%u", k);
        first = false;
      }
    kl_sb_puts(&b, first ? "\n" : "}\n");
  }
  kl_sb_puts(&b, " ROOT r = f32[] negate(p)\n}\n");
  kiln_module *m = parse(b.p);
  kl_sb_free(&b);
  return m;
}

START_TEST(sets_have_a_canonical_order) {
  for (unsigned i = 0; i < 1000; i++) {
    kiln_module *m = generate_effects(i, 3 + i % 14), *other = scrambled(m, i);
    identity a = identify(m), b = identify(other);
    ck_assert_str_eq(a.text, b.text);
    ck_assert(same_hash(&a, &b));
    drop(&a);
    drop(&b);
    kiln_module_destroy(&other);
    kiln_module_destroy(&m);
  }
}
END_TEST

// One change anywhere is another module.
START_TEST(every_bit_of_a_literal_counts) {
  uint8_t seen[128][KILN_HASH_SIZE];
  for (int bit = -1; bit < 127; bit++) {
    uint8_t data[16] = {0};
    if (bit >= 0) data[bit / 8] = (uint8_t)(1 << (bit % 8));
    kiln_builder *b = kiln_builder_create(cx, "m");
    kiln_module *m;
    kiln_builder_begin(b, "e");
    kiln_builder_end(b, kiln_build_constant(b, kiln_type_text(b, "u32[4]"), data, 16, NULL), true);
    ck_assert_int_eq(kiln_builder_finish(b, &m), KILN_OK);
    ck_assert_int_eq(kiln_module_hash(cx, m, seen[bit + 1]), KILN_OK);
    for (int i = 0; i <= bit; i++) ck_assert_mem_ne(seen[i], seen[bit + 1], KILN_HASH_SIZE);
    kiln_module_destroy(&m);
    kiln_builder_destroy(&b);
  }
}
END_TEST

// Long chains, wide sets and large ties take no more than linear time and no deep stack.
START_TEST(large_graphs_hash) {
  unsigned n = (unsigned)share_up_to(40000, 1000000);
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "HloModule m\nENTRY e {\n v0 = f32[] parameter(0)\n");
  for (unsigned i = 1; i < n; i++) kl_sbf(&b, " v%u = negate(v%u)\n", i, i - 1);
  for (unsigned i = 0; i < n; i++)
    kl_sbf(&b, " x%u = f32[] custom-call(), custom_call_target=\"f\", custom_call_has_side_effect=true\n", i);
  kl_sbf(&b, " ROOT r = negate(v0), control-predecessors={v%u", n - 1);
  for (unsigned i = 0; i < n; i += 2) kl_sbf(&b, ", x%u", i);
  kl_sb_puts(&b, "}\n}\n");
  kiln_module *m = parse(b.p), *other = NULL;
  kl_sb_free(&b);
  identity a = identify(m);
  ck_assert_int_eq(kiln_module_parse(cx, "again", a.text, strlen(a.text), &other), KILN_OK);
  identity c = identify(other);
  ck_assert(same_hash(&a, &c));
  drop(&a);
  drop(&c);
  kiln_module_destroy(&m);
  kiln_module_destroy(&other);
}
END_TEST

int main(void) {
  return RUN_TESTS("hash", EACH(make_context, drop_context), {digest_is_siphash, KL_COUNT(digests)},
                   {pairs_compare, KL_COUNT(pairs)}, {canonical_text_is_as_expected},
                   {random_modules_keep_their_identity}, {sets_have_a_canonical_order}, {every_bit_of_a_literal_counts},
                   {large_graphs_hash});
}
