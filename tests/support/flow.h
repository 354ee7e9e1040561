// Random computations from a state to a state, with loops and branches in each other: loops whose rounds the text says
// and others, branches by truths and numbers, values that are updated in place, that change places, that are handed on.
#ifndef TESTS_FLOW_H
#define TESTS_FLOW_H

#include "base/base.h"
#include "support/draw.h"

#include <stdio.h>

// A counter, and arrays.
#define FLOW_STATE "(s32[], f32[7,12], f32[7], f32[7], f32[12])"
enum { FLOW_FUNCTIONS = 8, FLOW_LEVELS = 3, FLOW_ROUNDS = 6 };
static const char *const flow_types[] = {"s32[]", "f32[7,12]", "f32[7]", "f32[7]", "f32[12]"};
static const int flow_rounds[FLOW_ROUNDS] = {0, 1, 2, 3, 5, 21};

// How deep loops are in each function: what a function calls is of a lower level.
static int flow_level(int function) {
  return function < 3 ? 0 : function < 6 ? 1 : 2;
}
static int flow_below(int level) {
  return (int)below(level == 1 ? 3 : 6);
}

// Names of the state's values at hand.
typedef struct flow_values {
  char name[5][16];
  int n;
} flow_values;

static const char *flow_new(flow_values *v, int which) {
  snprintf(v->name[which], sizeof v->name[which], "v%d", v->n++);
  return v->name[which];
}

// All but the counter are taken from a value of the state's type.
static void flow_take(kl_sb *b, flow_values *v, const char *of) {
  for (int i = 1; i < 5; i++)
    kl_sbf(b, "  %s = %s get-tuple-element(%s), index=%d\n", flow_new(v, i), flow_types[i], of, i);
}

static void flow_tuple(kl_sb *b, const flow_values *v, const char *name, const char *counter) {
  kl_sbf(b, "  %s = " FLOW_STATE " tuple(%s, %s, %s, %s, %s)\n", name, counter, v->name[1], v->name[2], v->name[3],
         v->name[4]);
}

static void flow_loop(kl_sb *b, flow_values *v, int level) {
  char t[16], w[16];
  snprintf(t, sizeof t, "t%d", v->n);
  snprintf(w, sizeof w, "w%d", v->n);
  flow_tuple(b, v, t, "none");
  int rounds = (int)below(level == 1 ? FLOW_ROUNDS : 4);
  kl_sbf(b, "  %s = " FLOW_STATE " while(%s), condition=%s_%d, body=f%d\n", w, t, chance(60) ? "upto" : "until",
         flow_rounds[rounds], flow_below(level));
  flow_take(b, v, w);
}

static void flow_branch(kl_sb *b, flow_values *v, int level) {
  int n = v->n;
  char t[16], w[16];
  snprintf(t, sizeof t, "t%d", n);
  snprintf(w, sizeof w, "w%d", n);
  flow_tuple(b, v, t, v->name[0]);
  if (chance(50)) {
    kl_sbf(b,
           "  s%d = f32[] reduce(%s, zero), dimensions={0}, to_apply=sum\n  q%d = pred[] compare(s%d, zero), "
           "direction=GT\n  %s = " FLOW_STATE " conditional(q%d, %s, %s), true_computation=f%d, "
           "false_computation=%s\n",
           n, v->name[2], n, n, w, n, t, t, flow_below(level), chance(50) ? "pass" : "f1");
  } else {
    kl_sbf(b,
           "  k%d = s32[] subtract(%s, one)\n  %s = " FLOW_STATE " conditional(k%d, %s, %s, %s), "
           "branch_computations={f%d, pass, f%d}\n",
           n, v->name[0], w, n, t, t, t, flow_below(level), flow_below(level));
  }
  flow_take(b, v, w);
}

static void flow_action(kl_sb *b, flow_values *v, int level) {
  int n = v->n;
  char was[16];
  switch (below(level ? 10 : 6)) {
  case 0:
    snprintf(was, sizeof was, "%s", v->name[1]);
    kl_sbf(b, "  q%d = f32[7,12] multiply(%s, quarters)\n  b%d = f32[7,12] broadcast(%s), dimensions={0}\n", n, was, n,
           v->name[2]);
    kl_sbf(b, "  %s = f32[7,12] add(q%d, b%d)\n", flow_new(v, 1), n, n);
    return;
  case 1:
    kl_sbf(b, "  r%d = f32[7] reduce(%s, zero), dimensions={1}, to_apply=sum\n", n, v->name[1]);
    kl_sbf(b, "  %s = f32[7] multiply(r%d, tenths)\n", flow_new(v, 2), n);
    return;
  case 2:
    snprintf(was, sizeof was, "%s", v->name[2]);
    snprintf(v->name[2], sizeof was, "%s", v->name[3]);
    snprintf(v->name[3], sizeof was, "%s", was);
    return;
  case 3: // column by column
    snprintf(was, sizeof was, "%s", v->name[1]);
    kl_sbf(b, "  u%d = f32[7,1] reshape(%s)\n", n, v->name[2]);
    kl_sbf(b, "  %s = f32[7,12] dynamic-update-slice(%s, u%d, none, %s)\n", flow_new(v, 1), was, n, v->name[0]);
    return;
  case 4:
    snprintf(was, sizeof was, "%s", v->name[4]);
    kl_sbf(b, "  %s = f32[12] reverse(%s), dimensions={0}\n", flow_new(v, 4), was);
    return;
  case 5:
    snprintf(was, sizeof was, "%s", v->name[3]);
    kl_sbf(b, "  %s = f32[7] abs(%s)\n", flow_new(v, 3), was);
    return;
  case 6:
  case 7: flow_branch(b, v, level); return;
  default: flow_loop(b, v, level); return;
  }
}

static void flow_function(kl_sb *b, int function) {
  flow_values v = {.n = 0};
  int level = flow_level(function);
  kl_sbf(b,
         "f%d {\n  s = " FLOW_STATE " parameter(0)\n  zero = f32[] constant(0)\n  none = s32[] constant(0)\n"
         "  one = s32[] constant(1)\n  quarter = f32[] constant(0.25)\n  tenth = f32[] constant(0.1)\n"
         "  quarters = f32[7,12] broadcast(quarter), dimensions={}\n  tenths = f32[7] broadcast(tenth), "
         "dimensions={}\n  i = s32[] get-tuple-element(s), index=0\n",
         function);
  snprintf(v.name[0], sizeof v.name[0], "i");
  flow_take(b, &v, "s");
  for (uint32_t k = 1 + below(level == 2 ? 2 : 4); k-- > 0;) flow_action(b, &v, level);
  kl_sb_puts(b, "  j = s32[] add(i, one)\n");
  kl_sbf(b, "  ROOT r = " FLOW_STATE " tuple(j, %s, %s, %s, %s)\n}\n", v.name[1], v.name[2], v.name[3], v.name[4]);
}

// f0, f1 ... of which the last are the deepest, and what they call. No name but "sum" is another's.
static void flow_functions(kl_sb *b) {
  kl_sb_puts(b, "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
                "pass { ROOT s = " FLOW_STATE " parameter(0) }\n");
  for (int i = 0; i < FLOW_ROUNDS; i++) {
    kl_sbf(b,
           "upto_%d { s = " FLOW_STATE " parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(%d) "
           "ROOT r = pred[] compare(i, n), direction=LT }\n",
           flow_rounds[i], flow_rounds[i]);
    kl_sbf(b,
           "until_%d { s = " FLOW_STATE " parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(%d) "
           "d = s32[] multiply(i, i) ROOT r = pred[] compare(d, n), direction=LT }\n",
           flow_rounds[i], flow_rounds[i] * (flow_rounds[i] - (flow_rounds[i] > 0)));
  }
  for (int f = 0; f < FLOW_FUNCTIONS; f++) flow_function(b, f);
}

#endif
