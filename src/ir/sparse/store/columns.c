// Index expressions at many points at once. Sums are added up in 128 bits, so that only results have to fit 64.
#include "ir/sparse/store/columns.h"

typedef enum step_kind { S_SUM, S_FLOOR, S_QUOTIENT, S_PRODUCT, S_MIN, S_MAX } step_kind;

struct kl_column_step {
  step_kind kind;
  uint32_t out, n;
  int64_t k;           // a sum's constant, a floor's divisor
  const uint32_t *in;  // registers
  const int64_t *coef; // of a sum
};

typedef struct known {
  const void *of; // an expression or an atom
  uint32_t at;
} known;

typedef struct maker {
  kl_arena *arena;
  kl_ctx *cx;
  kl_columns *c;
  VEC(kl_column_step) steps;
  VEC(known) seen;
} maker;

static uint32_t step(maker *m, const void *of, kl_column_step s) {
  s.out = m->c->nregisters++;
  VEC_PUSH(m->cx, &m->steps, s);
  if (of) VEC_PUSH(m->cx, &m->seen, ((known){of, s.out}));
  return s.out;
}

static bool find(const maker *m, const void *of, uint32_t *out) {
  for (size_t i = 0; i < m->seen.n; i++)
    if (m->seen.p[i].of == of) {
      *out = m->seen.p[i].at;
      return true;
    }
  return false;
}

static uint32_t make_sum(maker *m, const kl_aff *e);

static uint32_t make_atom(maker *m, const kl_aff_atom *a) {
  static const step_kind kinds[] = {[KL_AFF_PRODUCT] = S_PRODUCT,
                                    [KL_AFF_FLOOR] = S_FLOOR,
                                    [KL_AFF_QUOTIENT] = S_QUOTIENT,
                                    [KL_AFF_MIN] = S_MIN,
                                    [KL_AFF_MAX] = S_MAX};
  uint32_t at;
  if (a->kind < KL_AFF_VARS) return a->var;
  if (find(m, a, &at)) return at;
  uint32_t *in = KL_NEW_N(m->arena, uint32_t, a->n);
  for (uint32_t i = 0; i < a->n; i++) in[i] = make_sum(m, a->arg[i]);
  return step(m, a, (kl_column_step){.kind = kinds[a->kind], .n = a->n, .k = a->k, .in = in});
}

static uint32_t make_sum(maker *m, const kl_aff *e) {
  uint32_t at;
  if (e && e->n == 1 && e->c == 0 && e->terms[0].coef == 1) return make_atom(m, e->terms[0].atom);
  if (e && find(m, e, &at)) return at;
  uint32_t n = e ? e->n : 0;
  uint32_t *in = KL_NEW_N(m->arena, uint32_t, n + 1u);
  int64_t *coef = KL_NEW_N(m->arena, int64_t, n + 1u);
  for (uint32_t i = 0; i < n; i++) {
    in[i] = make_atom(m, e->terms[i].atom);
    coef[i] = e->terms[i].coef;
  }
  return step(m, e, (kl_column_step){.kind = S_SUM, .n = n, .k = e ? e->c : 0, .in = in, .coef = coef});
}

void kl_columns_make(kl_arena *a, const kl_aff *const *e, uint32_t n, uint32_t nvars, kl_columns *out) {
  static const int64_t one = 1;
  maker m = {.arena = a, .cx = a->cx, .c = out};
  uint32_t *regs = KL_NEW_N(a, uint32_t, n + 1u);
  *out = (kl_columns){.nvars = nvars, .nregisters = nvars, .nout = n, .out = regs};
  for (uint32_t i = 0; i < n; i++) {
    regs[i] = make_sum(&m, e[i]);
    bool again = false;
    for (uint32_t j = 0; j < i; j++) again |= regs[j] == regs[i];
    if (!again) continue;
    uint32_t *in = KL_NEW(a, uint32_t);
    *in = regs[i];
    regs[i] = step(&m, NULL, (kl_column_step){.kind = S_SUM, .n = 1, .in = in, .coef = &one});
  }
  out->nsteps = (uint32_t)m.steps.n;
  out->steps = VEC_FREEZE(m.cx, a, &m.steps);
  VEC_FREE(m.cx, &m.seen);
}

// --- running --------------------------------------------------------------------------------------------------------

static int64_t floor_of(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

static void run_sum(const kl_column_step *s, int64_t n, int64_t *const *r, bool *bad) {
  int64_t *out = r[s->out];
  for (int64_t i = 0; i < n; i++) {
    __int128 v = s->k;
    for (uint32_t t = 0; t < s->n; t++) v += (__int128)s->coef[t] * r[s->in[t]][i];
    out[i] = (int64_t)v;
    bad[i] |= v != (int64_t)v;
  }
}

static void run_floor(const kl_column_step *s, int64_t n, int64_t *const *r) {
  const int64_t *in = r[s->in[0]];
  int64_t *out = r[s->out], k = s->k;
  int shift = __builtin_ctzll((uint64_t)k);
  if ((k & (k - 1)) == 0)
    for (int64_t i = 0; i < n; i++) out[i] = in[i] >> shift;
  else
    for (int64_t i = 0; i < n; i++) out[i] = floor_of(in[i], k);
}

static void run_quotient(const kl_column_step *s, int64_t n, int64_t *const *r, bool *bad) {
  for (int64_t i = 0; i < n; i++) {
    int64_t a = r[s->in[0]][i], b = r[s->in[1]][i];
    bool none = b == 0 || (a == INT64_MIN && b == -1);
    bad[i] |= none;
    r[s->out][i] = none ? 0 : floor_of(a, b);
  }
}

static void run_many(const kl_column_step *s, int64_t n, int64_t *const *r, bool *bad) {
  for (int64_t i = 0; i < n; i++) {
    int64_t v = r[s->in[0]][i];
    for (uint32_t t = 1; t < s->n; t++) {
      int64_t x = r[s->in[t]][i];
      if (s->kind == S_PRODUCT)
        bad[i] |= __builtin_mul_overflow(v, x, &v);
      else if (s->kind == S_MIN ? x < v : x > v)
        v = x;
    }
    r[s->out][i] = v;
  }
}

void kl_columns_run(const kl_columns *c, int64_t n, int64_t *const *registers, bool *bad) {
  memset(bad, 0, (size_t)n * sizeof *bad);
  for (uint32_t i = 0; i < c->nsteps; i++) {
    const kl_column_step *s = &c->steps[i];
    switch (s->kind) {
    case S_SUM: run_sum(s, n, registers, bad); break;
    case S_FLOOR: run_floor(s, n, registers); break;
    case S_QUOTIENT: run_quotient(s, n, registers, bad); break;
    default: run_many(s, n, registers, bad); break;
    }
  }
}
