// Two layouts of the same bytes: which bitcasts read elements only, which reshapes and transposes move nothing.
#include "ir/index/layout/layout.h"

enum { MOST_RUNS = 1 << 18, GROUPS = KL_MAX_VALUES }; // forms whose base is GROUPS + g are digits of group g

// --- reading elements ---------------------------------------------------------------------------------------------

typedef __int128 bits;

// A stretch of positions that are alike, in bits of the buffer.
typedef struct stretch {
  const kl_physical *p;
  int64_t at, n;
  bool elements;
} stretch;

static void look(stretch *s) {
  s->n = 0;
  if (s->at < s->p->positions) s->elements = kl_physical_stretch(s->p, s->at, &s->n);
}

static bits bits_before(const kl_physical *p, int64_t position) {
  return (bits)position * p->bits + (bits)p->prefix * 8;
}

static bool no_padding(const kl_physical *p) {
  return p->elements == p->positions;
}

kiln_truth kl_bitcast_reads_elements(const kl_physical *from, const kl_physical *to, int64_t most) {
  if (!to->elements) return KILN_YES;
  bits begin = bits_before(from, 0), end = bits_before(from, from->positions);
  if (no_padding(from) && bits_before(to, 0) >= begin && bits_before(to, to->positions) <= end) return KILN_YES;
  stretch f = {.p = from}, t = {.p = to};
  look(&f);
  for (look(&t); t.n; t.at += t.n, look(&t)) {
    if (most-- <= 0) return KILN_UNKNOWN;
    if (!t.elements) continue;
    bits at = bits_before(to, t.at), last = bits_before(to, t.at + t.n);
    if (at < begin || last > end) return KILN_NO;
    for (;;) { // from's stretches over at..last
      bits f_end = bits_before(from, f.at + f.n);
      if (f_end > at && !f.elements) return KILN_NO;
      if (f_end >= last) break;
      if (most-- <= 0) return KILN_UNKNOWN;
      f.at += f.n;
      look(&f);
    }
  }
  return KILN_YES;
}

// --- groups of dimensions -----------------------------------------------------------------------------------------

// Both shapes' dimensions in as many groups as there are: in row-major order group g of the one counts the same
// elements as group g of the other, and a position is a sum over groups, of what each one's element contributes.
typedef struct groups {
  uint32_t n;
  int64_t count[2 * KILN_MAX_RANK]; // elements of each
  uint8_t of[2][KILN_MAX_RANK];     // by shape and dimension
} groups;

static void common_factors(const kl_shape *a, const kl_shape *b, groups *g) {
  uint32_t i = 0, j = 0;
  g->n = 0;
  while (i < a->rank || j < b->rank) {
    int64_t pa = 1, pb = 1;
    if (i < a->rank) pa = a->dims[i], g->of[0][i++] = (uint8_t)g->n;
    if (j < b->rank) pb = b->dims[j], g->of[1][j++] = (uint8_t)g->n;
    while (pa != pb) {
      if (pa < pb)
        pa *= a->dims[i], g->of[0][i++] = (uint8_t)g->n;
      else
        pb *= b->dims[j], g->of[1][j++] = (uint8_t)g->n;
    }
    g->count[g->n++] = pa;
  }
}

// Makes one group of first..last.
static void merge(groups *g, uint32_t first, uint32_t last) {
  if (first == last) return;
  for (uint32_t k = first + 1; k <= last; k++) g->count[first] *= g->count[k];
  for (uint32_t k = last + 1; k < g->n; k++) g->count[first + k - last] = g->count[k];
  for (uint32_t s = 0; s < 2; s++) {
    for (uint32_t d = 0; d < KILN_MAX_RANK; d++) {
      uint8_t *of = &g->of[s][d];
      *of = (uint8_t)(*of <= first ? *of : *of <= last ? first : *of - (last - first));
    }
  }
  g->n -= last - first;
}

// A combined value is no sum over groups if it joins dimensions of several: those and all between become one.
static void merge_combined(const kl_physical *p, uint32_t shape, groups *g) {
  uint8_t low[KL_MAX_VALUES], high[KL_MAX_VALUES];
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < p->nvalues && !again; i++) {
      const kl_value *v = &p->values[i];
      bool both = v->kind == KL_VALUE_COMBINED;
      low[i] = high[i] = v->kind == KL_VALUE_INDEX ? g->of[shape][i] : 0;
      if (v->kind == KL_VALUE_UNIT) low[i] = UINT8_MAX; // of no group
      if (v->kind >= KL_VALUE_COMBINED) low[i] = low[v->a], high[i] = high[v->a];
      if (both && low[v->b] < low[i]) low[i] = low[v->b];
      if (both && high[v->b] > high[i]) high[i] = high[v->b];
      again = both && low[i] < high[i];
      if (again) merge(g, low[i], high[i]);
    }
  }
}

// --- exact comparison by digits -----------------------------------------------------------------------------------

// One group's contribution to positions as a function of its element i: sum(stride * digit), digits of i one behind
// the other, minor first, the last one without end. Those that go on with a fitting stride are one digit, so that
// equal functions have equal chains.
typedef struct chain {
  uint32_t n;
  struct {
    int64_t div, mod, stride;
  } link[KL_MAX_DIGITS];
} chain;

static void insert(chain *c, int64_t div, int64_t mod, int64_t stride) {
  uint32_t k = c->n++;
  for (; k && c->link[k - 1].div > div; k--) c->link[k] = c->link[k - 1];
  c->link[k].div = div;
  c->link[k].mod = mod;
  c->link[k].stride = stride;
}

// False if the digits leave something out.
static bool normalise(chain *c, int64_t count) {
  uint32_t n = 0;
  int64_t next = 1;
  for (uint32_t k = 0; k < c->n; k++) {
    if (c->link[k].div != next || (!c->link[k].mod && k + 1 < c->n)) return false;
    if (c->link[k].mod) next *= c->link[k].mod;
    int64_t fits;
    bool joins =
        n && !__builtin_mul_overflow(c->link[n - 1].stride, c->link[n - 1].mod, &fits) && fits == c->link[k].stride;
    if (joins)
      c->link[n - 1].mod *= c->link[k].mod;
    else
      c->link[n++] = c->link[k];
  }
  c->n = n;
  return !n ? count == 1 : !c->link[n - 1].mod || next >= count;
}

// forms of all values as digits of groups.
static void group_forms(const kl_shape *s, const kl_physical *p, const groups *g, uint32_t shape, kl_form *forms) {
  kl_form indices[KILN_MAX_RANK];
  int64_t inside[2 * KILN_MAX_RANK];
  for (uint32_t k = 0; k < g->n; k++) inside[k] = 1;
  for (uint32_t d = s->rank; d-- > 0;) {
    uint8_t k = g->of[shape][d];
    indices[d] = (kl_form){(uint16_t)(GROUPS + k), inside[k], s->dims[d]};
    inside[k] *= s->dims[d];
    if (inside[k] == g->count[k]) indices[d].mod = 0; // the group's major dimension ends with it
  }
  kl_physical_forms(p, indices, forms);
}

static bool chain_of(const kl_physical *p, const kl_form *forms, uint32_t group, int64_t count, chain *c) {
  c->n = 0;
  for (uint32_t i = 0; i < p->ndigits; i++) {
    const kl_form *f = &forms[p->digits[i].value];
    if (f->base == GROUPS + group) insert(c, f->div, f->mod, p->digits[i].stride);
  }
  return normalise(c, count);
}

static bool same_chains(const chain *a, const chain *b) {
  if (a->n != b->n) return false;
  for (uint32_t k = 0; k < a->n; k++)
    if (a->link[k].div != b->link[k].div || a->link[k].stride != b->link[k].stride) return false;
  return true;
}

// --- comparison by runs -------------------------------------------------------------------------------------------

typedef struct side {
  const kl_shape *s;
  const kl_physical *p;
  const uint8_t *of;
} side;

// Position and run of the group's element i, all else 0.
static int64_t group_run(const side *x, uint32_t group, int64_t i, int64_t *n, int64_t *step) {
  int64_t index[KILN_MAX_RANK] = {0};
  uint32_t minor = KILN_MAX_RANK;
  for (uint32_t d = x->s->rank; d-- > 0;) {
    if (x->of[d] != group || x->s->dims[d] == 1) continue;
    if (minor == KILN_MAX_RANK) minor = d;
    index[d] = i % x->s->dims[d];
    i /= x->s->dims[d];
  }
  *n = 1;
  if (minor < KILN_MAX_RANK) return kl_physical_run(x->p, index, minor, n, step);
  return kl_physical_position(x->p, index);
}

static kiln_truth same_runs(const side *a, const side *b, uint32_t group, int64_t count, int64_t *most) {
  for (int64_t i = 0; i < count;) {
    int64_t na, nb, sa = 0, sb = 0;
    if ((*most)-- <= 0) return KILN_UNKNOWN;
    if (group_run(a, group, i, &na, &sa) != group_run(b, group, i, &nb, &sb)) return KILN_NO;
    int64_t n = na < nb ? na : nb;
    if (n > 1 && sa != sb) return KILN_NO;
    i += n;
  }
  return KILN_YES;
}

// --- reshape and transpose ----------------------------------------------------------------------------------------

static kiln_truth same_positions(const kl_shape *a, const kl_physical *pa, const kl_shape *b, const kl_physical *pb) {
  groups g = {0};
  kl_form fa[KL_MAX_VALUES], fb[KL_MAX_VALUES];
  chain ca, cb;
  int64_t most = MOST_RUNS;
  common_factors(a, b, &g);
  merge_combined(pa, 0, &g);
  merge_combined(pb, 1, &g);
  group_forms(a, pa, &g, 0, fa);
  group_forms(b, pb, &g, 1, fb);
  kiln_truth all = KILN_YES;
  for (uint32_t k = 0; k < g.n; k++) {
    kiln_truth one;
    if (chain_of(pa, fa, k, g.count[k], &ca) && chain_of(pb, fb, k, g.count[k], &cb))
      one = same_chains(&ca, &cb) ? KILN_YES : KILN_NO;
    else
      one = same_runs(&(side){a, pa, g.of[0]}, &(side){b, pb, g.of[1]}, k, g.count[k], &most);
    if (one == KILN_NO) return KILN_NO;
    if (one == KILN_UNKNOWN) all = one;
  }
  return all;
}

kiln_truth kl_reshape_is_bitcast(const kl_shape *from, const kl_shape *to) {
  kl_physical a, b;
  if (kl_physical_of(from, &a) || kl_physical_of(to, &b) || from->count != to->count) return KILN_NO;
  if (!from->count) return KILN_YES;
  if (kl_info(from->dtype)->bits != kl_info(to->dtype)->bits || a.bits != b.bits || a.prefix != b.prefix)
    return KILN_NO;
  return same_positions(from, &a, to, &b);
}

// A layout of the result is one of the operand, its dimensions renamed; then both have the same indices.
kiln_truth kl_transpose_is_bitcast(const kl_shape *from, const kl_shape *to, const int64_t *perm) {
  int64_t order[KILN_MAX_RANK];
  kl_shape renamed = *to;
  if (from->rank != to->rank) return KILN_NO;
  for (uint32_t i = 0; i < to->rank; i++) {
    if (to->dims[i] != from->dims[perm[i]]) return KILN_NO;
    order[i] = perm[kl_shape_minor_to_major(to, i)];
  }
  renamed.dims = from->dims;
  renamed.dynamic = from->dynamic;
  if (!renamed.layout.present) renamed.layout = (kl_layout){.present = true, .rank = to->rank, .tail_padding = 1};
  renamed.layout.minor_to_major = order;
  return kl_reshape_is_bitcast(from, &renamed);
}
