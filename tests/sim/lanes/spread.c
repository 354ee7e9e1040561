// How bits without a value spread, instruction by instruction: what a result's shadow leaves out must not change,
// whatever the bits without a value are; and where a row says that each bit depends on its own bits alone, what the
// shadow has must be able to change. The executors themselves are asked.
#include "../../support/share.h"
#include "../../support/suite.h"
#include "sim/check/values/values.h"
#include "sim/isa/match.h"
#include "warp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE = 16 * KL_LANES, PLACES = 12, FRAME = PLACE * PLACES, RESULT = 6 };
enum { EVERY = 4, ROUNDS = 6 };

static _Alignas(64) char frame[FRAME + KL_SHADOW_ROOM(FRAME)];
static kl_lanes x;

// --- registers ----------------------------------------------------------------------------------------------------

static kl_ref place(int k) {
  return (kl_ref)(k * PLACE) | KL_IN_REGISTERS;
}
static size_t lane_bytes(int bits) {
  return bits <= 16 ? 2 : (size_t)bits / 8;
}
static void put(char *at, int bits, int lane, value v) {
  uint32_t word;
  if (bits > 1) {
    memcpy(at + (size_t)lane * lane_bytes(bits), &v, lane_bytes(bits));
    return;
  }
  memcpy(&word, at, 4);
  word = (word & ~(1u << lane)) | (uint32_t)(v & 1) << lane;
  memcpy(at, &word, 4);
}
static value get(const char *at, int bits, int lane) {
  value v = 0;
  uint32_t word;
  if (bits > 1) {
    memcpy(&v, at + (size_t)lane * lane_bytes(bits), lane_bytes(bits));
    return v;
  }
  memcpy(&word, at, 4);
  return word >> lane & 1;
}
static value ones(int bits) {
  return bits == 128 ? ~(value)0 : bits == 8 ? 0xffff : ((value)1 << bits) - 1;
}

// --- one instruction ----------------------------------------------------------------------------------------------

typedef struct trial {
  value source[MOST_SOURCES][KL_LANES], unknown[MOST_SOURCES][KL_LANES], result[MOST_RESULTS][KL_LANES],
      shadow[MOST_RESULTS][KL_LANES];
  uint32_t carry, carry_unknown, carry_out, carry_shadow;
} trial;

static kl_sim_op op_of(const kl_lane_set *set, const instruction *i, uint64_t constant) {
  bool has_selectors = strchr(i->form->operands, 'v') != NULL; // of which few are any: none is written
  kl_sim_op o = {.run = lane_executor(set, i->form),
                 .d = KL_NO_REF,
                 .e = KL_NO_REF,
                 .c = KL_NO_REF,
                 .f = KL_NO_REF,
                 .flags = i->flags,
                 .imm = has_selectors ? 0 : constant};
  kl_ref *sources[] = {&o.a, &o.b, &o.c, &o.f, &o.e}, *results[] = {&o.d, &o.e, &o.c, &o.f};
  for (int k = 0, n = 0; k < i->sources; k++)
    if (i->source_bits[k]) *sources[n] = place(n), n++;
  for (int k = 0; k < i->results; k++) *results[k] = place(RESULT + k);
  return o;
}

// Bits without a value: none, one, some, a half, or all.
static value draw_unknown(uint64_t *state, int bits) {
  value r = random_next(state) | (value)random_next(state) << 64, one = (value)1 << (r >> 8) % (unsigned)bits;
  switch ((unsigned)r & 7) {
  case 0: return ones(bits);
  case 1: return r >> 64 & random_next(state) & ones(bits);
  case 2: return ones(bits) & ~(ones(bits) >> (bits + 1) / 2);
  case 3:
  case 4: return one;
  default: return 0;
  }
}

static void draw(const instruction *i, trial *t, uint64_t *state) {
  for (int l = 0; l < KL_LANES; l++)
    for (int k = 0; k < i->sources; k++) {
      if (!i->source_bits[k]) continue;
      value high = i->source_bits[k] == 128 ? random_next(state) : 0;
      t->source[k][l] = (draw_value(state, i->source_bits[k]) | high << 64) & ones(i->source_bits[k]);
      t->unknown[k][l] = draw_unknown(state, i->source_bits[k] == 8 ? 16 : i->source_bits[k]);
    }
  t->carry = (uint32_t)random_next(state);
  t->carry_unknown = (uint32_t)(random_next(state) & random_next(state) & random_next(state));
}

// Runs it with the bits without a value changed by `change`.
static void run(const instruction *i, const kl_sim_op *o, trial *t, uint64_t *change) {
  for (int k = 0, n = 0; k < i->sources; k++) {
    if (!i->source_bits[k]) continue;
    for (int l = 0; l < KL_LANES; l++) {
      value flip = change ? (random_next(change) | (value)random_next(change) << 64) & t->unknown[k][l] : 0;
      put(frame + place(n), i->source_bits[k], l, t->source[k][l] ^ flip);
    }
    n++;
  }
  x.carry = t->carry ^ (change ? (uint32_t)random_next(change) & t->carry_unknown : 0);
  o->run(&x, o);
  for (int k = 0; k < i->results; k++)
    for (int l = 0; l < KL_LANES; l++) t->result[k][l] = get(frame + place(RESULT + k), i->result_bits[k], l);
  t->carry_out = x.carry;
}

static void spread_it(const instruction *i, const kl_sim_op *o, const spread *s, trial *t) {
  memset(frame + CLEAN_AT(FRAME), 0, sizeof frame - FRAME);
  run(i, o, t, NULL); // places hold the values, results those that they would overwrite
  for (int k = 0, n = 0; k < i->sources; k++) {
    if (!i->source_bits[k]) continue;
    for (int l = 0; l < KL_LANES; l++) put(frame + SHADOW_AT(FRAME) + place(n), i->source_bits[k], l, t->unknown[k][l]);
    n++;
  }
  memcpy(frame + CARRY_AT(FRAME), &t->carry_unknown, 4);
  x.carry = t->carry;
  s->op.run(&x, &s->op);
  for (int k = 0; k < i->results; k++)
    for (int l = 0; l < KL_LANES; l++)
      t->shadow[k][l] = get(frame + SHADOW_AT(FRAME) + place(RESULT + k), i->result_bits[k], l);
  memcpy(&t->carry_shadow, frame + CARRY_AT(FRAME), 4);
}

static uint64_t shadowed, moved; // bits of results that have no value; those of them that were seen to change

static void check(const instruction *i, const kl_form *f, const trial *t, const value changed[MOST_RESULTS][KL_LANES],
                  uint32_t carry_changed) {
  for (int k = 0; k < i->results; k++)
    for (int l = 0; l < KL_LANES; l++) {
      value beyond = changed[k][l] & ~t->shadow[k][l], never = t->shadow[k][l] & ~changed[k][l];
      EXPECT(!beyond, "%s: bits %llx of result %d change, whose values count as known", i->mnemonic,
             (unsigned long long)(beyond | beyond >> 64), k);
      EXPECT(!never || f->spread != KL_SPREAD_EACH, "%s: bits %llx of result %d never change", i->mnemonic,
             (unsigned long long)(never | never >> 64), k);
      for (value v = t->shadow[k][l]; v; v &= v - 1) shadowed++;
      for (value v = t->shadow[k][l] & changed[k][l]; v; v &= v - 1) moved++;
    }
  bool gives = strstr(f->pattern, ".cc") != NULL;
  EXPECT(!gives || !(carry_changed & ~t->carry_shadow), "%s: the carry changes", i->mnemonic);
}

static void check_instruction(const kl_lane_set *set, const instruction *i, const kl_form *f, uint64_t *state) {
  // Of each row one instruction in four is tried by default; once all are, each is tried more often.
  uint64_t rounds = test_share() > EVERY ? share_of(ROUNDS) / EVERY : ROUNDS;
  int trials = f->spread == KL_SPREAD_EACH ? 200 : 24;
  static trial t, u;
  static value changed[MOST_RESULTS][KL_LANES];
  kiln_context *cx = kiln_context_create(NULL);
  kl_arena arena;
  kl_arena_init(&arena, cx);
  for (uint64_t r = 0; r < rounds; r++) {
    uint32_t carry = 0;
    spread s;
    kl_sim_op o = op_of(set, i, random_next(state) & 255);
    draw(i, &t, state);
    memset(changed, 0, sizeof changed);
    values_spread(&arena, set, FRAME, f, &o, &s);
    ck_assert_msg(s.op.run != NULL, "%s: nothing is done", i->mnemonic);
    spread_it(i, &o, &s, &t);
    run(i, &o, &t, NULL);
    for (int k = 0; k < trials; k++) {
      u = t;
      run(i, &o, &u, state);
      for (int n = 0; n < i->results; n++)
        for (int l = 0; l < KL_LANES; l++) changed[n][l] |= t.result[n][l] ^ u.result[n][l];
      carry |= t.carry_out ^ u.carry_out;
    }
    check(i, f, &t, changed, carry);
  }
  kl_arena_free(&arena);
  kiln_context_destroy(&cx);
}

// --- all rows -----------------------------------------------------------------------------------------------------

#define GLUE(executor, operands, spread) {#executor, operands, "", KL_UNIT_INTEGER, KL_SPREAD_##spread, KL_EXACT},
static const kl_form glue[] = {KL_ISA_GLUE(GLUE)};

// The row of an entry of lane_forms: these begin with one for the topic.
static const kl_form *row_of(size_t k) {
  size_t head = k, topic = 0;
  while (lane_forms[head].executor) head--;
  if (strcmp(lane_forms[head].topic, "glue") == 0) return &glue[k - head - 1];
  while (strcmp(kl_topics[topic].name, lane_forms[head].topic) != 0) topic++;
  return &kl_topics[topic].rows[k - head - 1];
}

START_TEST(known_bits_do_not_change) {
  size_t n;
  const kl_lane_set *const *sets = kl_lanes_sets(&n);
  unsigned rows = 0, instructions = 0;
  x.base[KL_IN_REGISTERS] = frame;
  x.mask = KL_ALL_LANES;
  memset(x.on16, 0xff, sizeof x.on16), memset(x.on32, 0xff, sizeof x.on32), memset(x.on64, 0xff, sizeof x.on64);
  for (size_t r = 0; r < lane_form_count; r++) {
    instruction i;
    for (size_t k = 0; instruction_at(&lane_forms[r], k, &i); k++) {
      if (!share_has(k, EVERY)) continue; // the first one is
      uint64_t state = r << 32 | k;
      rows += k == 0;
      instructions++;
      check_instruction(sets[n - 1], &i, row_of(r), &state);
    }
  }
  printf("# %u rows, %u instructions; %.0f %% of what counts as unknown was seen to change\n", rows, instructions,
         100.0 * (double)moved / (double)shadowed);
  ck_assert_uint_gt(rows, 500);
}
END_TEST

int main(void) {
  return RUN_TESTS("lanes: spread", NO_FRAME, {known_bits_do_not_change});
}
