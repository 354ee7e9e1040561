#include "random_maps.h"

#include <string.h>

// --- random numbers -----------------------------------------------------------------------------------------------

static uint64_t state;

void rm_seed(uint64_t seed) {
  state = seed * 0x9e3779b97f4a7c15u + 1;
}

uint64_t rm_bits(void) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t x = state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

int64_t rm_between(int64_t lo, int64_t hi) {
  return lo + (int64_t)(rm_bits() % (uint64_t)(hi - lo + 1));
}

static bool chance(int of) {
  return rm_bits() % (uint64_t)of == 0;
}

// --- making -------------------------------------------------------------------------------------------------------

static int add_node(rm_map *m, rm_node n) {
  if (m->nnodes == RM_NODES) return 0;
  m->nodes[m->nnodes] = n;
  return m->nnodes++;
}

static int64_t divisor(void) {
  static const int64_t common[] = {2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 10, 12, 16, 20, 24, 30, 32, 64};
  int64_t k = common[rm_bits() % (sizeof common / sizeof *common)];
  return chance(12) ? -k : k;
}

static int64_t factor(void) {
  static const int64_t common[] = {1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16, 24, -1, -1, -2, -3, -4, -8, 11, 7};
  return common[rm_bits() % (sizeof common / sizeof *common)];
}

static int make_expr(rm_map *m, int depth, const rm_style *style);

static int leaf(rm_map *m) {
  if (m->nvars == 0 || chance(6)) return add_node(m, (rm_node){RM_CONST, -1, -1, rm_between(-20, 20)});
  return add_node(m, (rm_node){RM_VAR, -1, -1, rm_between(0, m->nvars - 1)});
}

// a*x + b*y + ..., as flat indices are.
static int linear(rm_map *m) {
  int e = add_node(m, (rm_node){RM_CONST, -1, -1, chance(2) ? 0 : rm_between(-40, 40)});
  for (int i = 0; i < m->nvars; i++) {
    if (chance(3)) continue;
    int v = add_node(m, (rm_node){RM_VAR, -1, -1, i});
    v = add_node(m, (rm_node){RM_MUL, v, -1, factor()});
    e = add_node(m, (rm_node){RM_ADD, e, v, 0});
  }
  return e;
}

static int make_expr(rm_map *m, int depth, const rm_style *style) {
  if (depth <= 0 || m->nnodes > RM_NODES - 24) return chance(3) ? linear(m) : leaf(m);
  switch (rm_bits() % 12) {
  case 0:
  case 1:
  case 2: return add_node(m, (rm_node){RM_ADD, make_expr(m, depth - 1, style), make_expr(m, depth - 1, style), 0});
  case 3: return add_node(m, (rm_node){RM_SUB, make_expr(m, depth - 1, style), make_expr(m, depth - 1, style), 0});
  case 4: return add_node(m, (rm_node){RM_MUL, make_expr(m, depth - 1, style), -1, factor()});
  case 5:
  case 6: return add_node(m, (rm_node){RM_FLOOR, make_expr(m, depth - 1, style), -1, divisor()});
  case 7: return add_node(m, (rm_node){RM_CEIL, make_expr(m, depth - 1, style), -1, divisor()});
  case 8:
  case 9: return add_node(m, (rm_node){RM_MOD, make_expr(m, depth - 1, style), -1, divisor()});
  case 10:
    if (style->products && chance(3)) {
      return add_node(m, (rm_node){RM_MUL, make_expr(m, depth - 2, style), make_expr(m, depth - 2, style), 0});
    }
    return linear(m);
  default:
    return add_node(
        m, (rm_node){chance(2) ? RM_MIN : RM_MAX, make_expr(m, depth - 1, style), make_expr(m, depth - 1, style), 0});
  }
}

static void make_bounds(rm_map *m, const rm_style *style) {
  int64_t left = style->most_points;
  for (int i = 0; i < m->nvars; i++) {
    int64_t size = 1 + (int64_t)(rm_bits() % (uint64_t)(left < style->scale ? left : style->scale));
    if (i + 1 < m->nvars && size > 40 && !chance(3)) size = 1 + size % 16;
    left /= size;
    if (left < 1) left = 1;
    m->lo[i] = chance(2) ? 0 : rm_between(-style->scale, style->scale);
    m->hi[i] = m->lo[i] + size - 1;
  }
}

// An interval that cuts the values somewhere.
static void make_interval(rm_map *m, int i) {
  int64_t x[RM_VARS] = {0};
  for (int v = 0; v < m->nvars; v++) x[v] = rm_between(m->lo[v], m->hi[v]);
  int64_t at = (int64_t)rm_value(m, m->constraints[i], x);
  rm_op op = m->nodes[m->constraints[i]].op;
  int64_t width = op == RM_MOD || chance(3) ? (chance(2) ? 0 : rm_between(0, 3)) : rm_between(0, 40);
  m->clo[i] = at - (width ? rm_between(0, width) : 0) + (chance(8) ? rm_between(-3, 3) : 0);
  m->chi[i] = m->clo[i] + width - (chance(40) ? 1 : 0);
}

void rm_make(rm_map *m, const rm_style *style) {
  memset(m, 0, sizeof *m);
  m->nvars = (int)rm_between(chance(20) ? 0 : 1, RM_VARS);
  for (int i = 0; i < m->nvars; i++) m->n[chance(3) ? 1 : chance(8) ? 2 : 0]++;
  make_bounds(m, style);
  m->nresults = (int)rm_between(1, RM_RESULTS);
  for (int i = 0; i < m->nresults; i++) m->results[i] = make_expr(m, (int)rm_between(1, 4), style);
  m->nconstraints = chance(3) ? 0 : (int)rm_between(1, chance(4) ? RM_CONSTRAINTS : 2);
  for (int i = 0; i < m->nconstraints; i++) {
    m->constraints[i] = make_expr(m, (int)rm_between(0, 3), style);
    make_interval(m, i);
  }
}

// --- values -------------------------------------------------------------------------------------------------------

static __int128 floor_of(__int128 a, __int128 b) {
  __int128 q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

__int128 rm_value(const rm_map *m, int node, const int64_t *x) {
  const rm_node *n = &m->nodes[node];
  if (n->op == RM_CONST) return n->v;
  if (n->op == RM_VAR) return x[n->v];
  __int128 a = rm_value(m, n->a, x), b = n->b < 0 ? n->v : rm_value(m, n->b, x), k = b < 0 ? -b : b;
  switch (n->op) {
  case RM_ADD: return a + b;
  case RM_SUB: return a - b;
  case RM_MUL: return a * b;
  case RM_FLOOR: return floor_of(a, b);
  case RM_CEIL: return -floor_of(-a, b);
  case RM_MOD: return a - k * floor_of(a, k);
  case RM_MIN: return a < b ? a : b;
  default: return a > b ? a : b;
  }
}

bool rm_contains(const rm_map *m, const int64_t *x) {
  for (int i = 0; i < m->nconstraints; i++) {
    __int128 v = rm_value(m, m->constraints[i], x);
    if (v < m->clo[i] || v > m->chi[i]) return false;
  }
  return true;
}

void rm_first(const rm_map *m, int64_t *x) {
  for (int i = 0; i < m->nvars; i++) x[i] = m->lo[i];
}

bool rm_next(const rm_map *m, int64_t *x) {
  for (int i = 0; i < m->nvars; i++) {
    if (x[i]++ < m->hi[i]) return true;
    x[i] = m->lo[i];
  }
  return false;
}

// --- text ---------------------------------------------------------------------------------------------------------

static void put_name(const rm_map *m, FILE *f, int v, bool named) {
  static const char *const letter[] = {"d", "s", "rt"}, *const own[] = {"alpha", "b_1", "tile", "zz"};
  int k = 0, i = v;
  while (i >= m->n[k]) i -= m->n[k++];
  if (named)
    fputs(own[v], f);
  else
    fprintf(f, "%s%d", letter[k], i);
}

static void put(const rm_map *m, FILE *f, int node, bool named) {
  static const char *const sign[] = {[RM_ADD] = " + ",          [RM_SUB] = " - ",        [RM_MUL] = " * ",
                                     [RM_FLOOR] = " floordiv ", [RM_CEIL] = " ceildiv ", [RM_MOD] = " mod "};
  const rm_node *n = &m->nodes[node];
  if (n->op == RM_CONST) {
    fprintf(f, "%lld", (long long)n->v);
  } else if (n->op == RM_VAR) {
    put_name(m, f, (int)n->v, named);
  } else {
    fputs(n->op == RM_MIN ? "min(" : n->op == RM_MAX ? "max(" : "(", f);
    put(m, f, n->a, named);
    fputs(n->op >= RM_MIN ? ", " : sign[n->op], f);
    if (n->b < 0)
      fprintf(f, "%lld", (long long)n->v);
    else
      put(m, f, n->b, named);
    fputc(')', f);
  }
}

void rm_text(const rm_map *m, FILE *f, bool backwards, bool named) {
  static const char open[] = "([{", close[] = ")]}";
  for (int k = 0, v = 0; k < 3; k++) {
    if (k && !m->n[k]) continue;
    fputc(open[k], f);
    for (int i = 0; i < m->n[k]; i++, v++) {
      if (i) fputs(", ", f);
      put_name(m, f, v, named);
    }
    fputc(close[k], f);
  }
  fputs(" -> (", f);
  for (int i = 0; i < m->nresults; i++) {
    if (i) fputs(", ", f);
    put(m, f, m->results[i], named);
  }
  fputc(')', f);
  if (m->nvars + m->nconstraints) fputs(", domain: ", f);
  for (int v = 0; v < m->nvars; v++) {
    if (v) fputs(", ", f);
    put_name(m, f, v, named);
    fprintf(f, " in [%lld, %lld]", (long long)m->lo[v], (long long)m->hi[v]);
  }
  for (int i = 0; i < m->nconstraints; i++) {
    int j = backwards ? m->nconstraints - 1 - i : i;
    if (m->nvars + i) fputs(", ", f);
    put(m, f, m->constraints[j], named);
    fprintf(f, " in [%lld, %lld]", (long long)m->clo[j], (long long)m->chi[j]);
  }
}

static void isl_put(const rm_map *m, FILE *f, int node) {
  const rm_node *n = &m->nodes[node];
  int64_t v = n->v, k = v < 0 ? -v : v;
  switch (n->op) {
  case RM_CONST: fprintf(f, "(%lld)", (long long)v); return;
  case RM_VAR: fprintf(f, "v%lld", (long long)v); return;
  case RM_MUL: fprintf(f, "(%lld * ", (long long)v); break;
  case RM_FLOOR:
  case RM_CEIL:
    fputs(v > 0 ? "(" : "(-", f);
    fputs("floor((", f);
    break;
  case RM_MIN: fputs("min(", f); break;
  case RM_MAX: fputs("max(", f); break;
  default: fputs("(", f);
  }
  if (n->op == RM_FLOOR || n->op == RM_CEIL) {
    // floor(a / -k) = -ceil(a / k), ceil(a / -k) = -floor(a / k), ceil(a / k) = floor((a + k - 1) / k)
    bool shift = (n->op == RM_CEIL) == (v > 0);
    isl_put(m, f, n->a);
    fprintf(f, " + %lld)/%lld))", (long long)(shift ? k - 1 : 0), (long long)k);
    return;
  }
  isl_put(m, f, n->a);
  if (n->op == RM_ADD) fputs(" + ", f);
  if (n->op == RM_SUB) fputs(" - ", f);
  if (n->op >= RM_MIN) fputs(", ", f);
  if (n->op == RM_MOD)
    fprintf(f, " mod %lld", (long long)k);
  else if (n->b >= 0)
    isl_put(m, f, n->b);
  fputs(")", f);
}

static void isl_domain(const rm_map *m, FILE *f) {
  fputs(" : 0 = 0", f);
  for (int v = 0; v < m->nvars; v++)
    fprintf(f, " and %lld <= v%d <= %lld", (long long)m->lo[v], v, (long long)m->hi[v]);
  for (int i = 0; i < m->nconstraints; i++) {
    fprintf(f, " and %lld <= ", (long long)m->clo[i]);
    isl_put(m, f, m->constraints[i]);
    fprintf(f, " <= %lld", (long long)m->chi[i]);
  }
}

static void isl_tuple(const rm_map *m, FILE *f) {
  fputs("{ [", f);
  for (int v = 0; v < m->nvars; v++) fprintf(f, "%sv%d", v ? ", " : "", v);
  fputs("]", f);
}

void rm_isl_map(const rm_map *m, FILE *f) {
  isl_tuple(m, f);
  fputs(" -> [", f);
  for (int i = 0; i < m->nresults; i++) {
    if (i) fputs(", ", f);
    isl_put(m, f, m->results[i]);
  }
  fputs("]", f);
  isl_domain(m, f);
  fputs(" }", f);
}
