// How often loops run: counts of eight bits in all directions, beside a loop of C that counts; and what is not known.
#include "ir/rewrite/trips.h"
#include "support/context.h"
#include "support/draw.h"
#include "support/share.h"

#include <stdio.h>

// Of the first loop of ENTRY.
static bool known(const kiln_module *m, uint64_t *n) {
  const kl_comp *c = &m->comp[m->entry];
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_WHILE) return kl_trip_count(m, c, &c->instr[i], n);
  ck_abort_msg("no loop");
  return false;
}

typedef struct counting {
  bool is_signed, turned, fused;
  int first, step, add, limit;
  kl_direction direction;
} counting;

static int wrapped(const counting *x, int v) {
  return x->is_signed ? (int8_t)v : (uint8_t)v;
}

static bool goes_on(const counting *x, int v) {
  int a = wrapped(x, v + x->add), b = x->limit;
  if (x->turned) {
    int z = a;
    a = b, b = z;
  }
  switch (x->direction) {
  case KL_EQ: return a == b;
  case KL_NE: return a != b;
  case KL_LT: return a < b;
  case KL_LE: return a <= b;
  case KL_GT: return a > b;
  default: return a >= b;
  }
}

enum { FOREVER = 1000 };

// *wraps: the counter, or what is compared, does on the way.
static int count(const counting *x, bool *wraps) {
  int n = 0;
  *wraps = false;
  for (int v = x->first; n < FOREVER && goes_on(x, v); n++) {
    *wraps |= wrapped(x, v + x->step) != v + x->step || wrapped(x, v + x->step + x->add) != v + x->step + x->add;
    v = wrapped(x, v + x->step);
  }
  *wraps |= wrapped(x, x->first + x->add) != x->first + x->add;
  return n;
}

static void write_module(const counting *x, char *out, size_t room) {
  const char *t = x->is_signed ? "s8" : "u8";
  snprintf(out, room,
           "HloModule m\n"
           "next { i = %s[] parameter(0) one = %s[] constant(%d) ROOT j = %s[] add(one, i) }\n"
           "test { s = (f32[3], %s[]) parameter(0) i = %s[] get-tuple-element(s), index=1 a = %s[] constant(%d) "
           "v = %s[] add(i, a) n = %s[] constant(%d) ROOT r = pred[] compare(%s), direction=%s }\n"
           "body { s = (f32[3], %s[]) parameter(0) x = f32[3] get-tuple-element(s), index=0 "
           "i = %s[] get-tuple-element(s), index=1 j = %s[] %s, %s=next ROOT r = (f32[3], %s[]) tuple(x, j) }\n"
           "ENTRY e { x = f32[3] parameter(0) z = %s[] constant(%d) t = (f32[3], %s[]) tuple(x, z) "
           "ROOT w = (f32[3], %s[]) while(t), condition=test, body=body }\n",
           t, t, x->step, t, t, t, t, x->add, t, t, x->limit, x->turned ? "n, v" : "v, n",
           kl_direction_names[x->direction], t, t, t, x->fused ? "fusion(i), kind=kLoop" : "call(i)",
           x->fused ? "calls" : "to_apply", t, t, x->first, t, t);
}

START_TEST(counts_of_eight_bits) {
  unsigned found = 0, sure = 0;
  for (uint64_t k = 0; k < share_of(20000); k++) {
    char text[2048];
    seed = 3 * k + 1;
    counting x = {.is_signed = chance(50), .turned = chance(30), .fused = chance(30)};
    bool small = chance(60), wraps;
    x.first = wrapped(&x, (int)below(small ? 20 : 256));
    x.limit = wrapped(&x, (int)below(small ? 60 : 256));
    x.step = wrapped(&x, chance(60) ? 1 + (int)below(4) : (int)below(256));
    x.add = chance(70) ? 0 : wrapped(&x, (int)below(small ? 5 : 256));
    x.direction = (kl_direction)below(6);
    write_module(&x, text, sizeof text);
    kiln_module *m = parse(text);
    uint64_t n = 0;
    bool is = known(m, &n);
    int rounds = count(&x, &wraps);
    ck_assert_msg(!is || (int)n == rounds, "%d rounds, not %d\n%s", rounds, (int)n, text);
    bool plain = rounds < FOREVER && !wraps && x.direction != KL_EQ && x.step;
    ck_assert_msg(is || !plain, "%d rounds are not found\n%s", rounds, text);
    found += is, sure += plain;
    kiln_module_destroy(&m);
  }
  ck_assert_uint_gt(10 * found, share_of(20000));
  printf("# of %u loops the rounds are known, %u of them without a doubt\n", found, sure);
}
END_TEST

// A limit that is carried along is a constant, unless something changes it; data are none.
START_TEST(limits_that_are_carried) {
  static const char text[] =
      "HloModule m\n"
      "test { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 "
      "n = s32[] get-tuple-element(s), index=1 ROOT r = pred[] compare(i, n), direction=LT }\n"
      "body { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 "
      "n = s32[] get-tuple-element(s), index=1 c = s32[] constant(3) j = s32[] add(i, c) k = s32[] %s "
      "ROOT r = (s32[], s32[]) tuple(j, k) }\n"
      "ENTRY e { p = s32[] parameter(0) z = s32[] constant(-4) l = s32[] %s t = (s32[], s32[]) tuple(z, l) "
      "ROOT w = (s32[], s32[]) while(t), condition=test, body=body }\n";
  static const struct {
    const char *limit, *first;
    int rounds; // negative: not known
  } row[] = {{"copy(n)", "constant(6)", 4},          {"add(n, c)", "constant(6)", -1}, {"copy(n)", "copy(p)", -1},
             {"copy(n)", "constant(-9)", 0},         {"copy(c)", "constant(6)", -1},   {"copy(i)", "constant(6)", -1},
             {"copy(n)", "constant(2147483647)", -1}};
  for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
    char own[2048];
    uint64_t n = 77;
    snprintf(own, sizeof own, text, row[k].limit, row[k].first);
    kiln_module *m = parse(own);
    bool is = known(m, &n);
    ck_assert_msg(is == (row[k].rounds >= 0) && (!is || (int)n == row[k].rounds), "%zu: %d, %d", k, is, (int)n);
    kiln_module_destroy(&m);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("trips", ONCE(make_context, drop_context), {counts_of_eight_bits}, {limits_that_are_carried});
}
