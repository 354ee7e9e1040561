// Trees of affine expressions, and what MLIR folds of them.
#include "ir/sparse/encoding/tree.h"

void kl_trees_init(kl_trees *p, kl_arena *arena) {
  *p = (kl_trees){.arena = arena};
}

void kl_trees_free(kl_trees *p) {
  VEC_FREE(p->arena->cx, &p->all);
  kl_ids_free(p->arena->cx, &p->ids);
}

// --- interning ----------------------------------------------------------------------------------------------------

typedef struct lookup {
  const kl_trees *p;
  const kl_tree *e;
} lookup;

static bool same(const void *arg, uint32_t id) {
  const lookup *l = arg;
  const kl_tree *a = l->p->all.p[id], *b = l->e;
  return a->kind == b->kind && a->value == b->value && a->a == b->a && a->b == b->b;
}

static const kl_tree *intern(kl_trees *p, const kl_tree *e) {
  struct {
    uint64_t kind, value;
    const kl_tree *a, *b;
  } key = {e->kind, (uint64_t)e->value, e->a, e->b};
  uint32_t id = kl_ids_find(p->arena->cx, &p->ids, kl_hash(&key, sizeof key, 0), same, &(lookup){p, e});
  if (id == p->all.n) VEC_PUSH(p->arena->cx, &p->all, (const kl_tree *)kl_arena_dup(p->arena, e, sizeof *e));
  return p->all.p[id];
}

const kl_tree *kl_tree_leaf(kl_trees *p, kl_tree_kind kind, int64_t value) {
  return intern(p, &(kl_tree){.kind = kind, .symbolic = kind != KL_TREE_DIM, .value = value});
}

static const kl_tree *constant(kl_trees *p, int64_t value) {
  return kl_tree_leaf(p, KL_TREE_CONST, value);
}

static const kl_tree *pair(kl_trees *p, kl_tree_kind kind, const kl_tree *a, const kl_tree *b) {
  uint32_t depth = 1 + (a->depth > b->depth ? a->depth : b->depth);
  if (depth > KL_TREE_DEEPEST) return NULL;
  return intern(p, &(kl_tree){.kind = kind, .symbolic = a->symbolic && b->symbolic, .depth = depth, .a = a, .b = b});
}

// --- questions ----------------------------------------------------------------------------------------------------

bool kl_tree_is(const kl_tree *e, kl_tree_kind kind) {
  return e && e->kind == kind;
}

bool kl_tree_const(const kl_tree *e, int64_t *out) {
  if (!kl_tree_is(e, KL_TREE_CONST)) return false;
  *out = e->value;
  return true;
}

bool kl_tree_uses(const kl_tree *e, kl_tree_kind kind, int64_t number) {
  if (e->kind >= KL_TREE_CONST) return e->kind == kind && e->value == number;
  return kl_tree_uses(e->a, kind, number) || kl_tree_uses(e->b, kind, number);
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0 && (a < 0) == (b < 0));
}

static uint64_t size_of(int64_t v) {
  return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}
static uint64_t gcd(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

// A number that divides every value; 0 for the constant 0.
static uint64_t divisor(const kl_tree *e) {
  int64_t c;
  uint64_t a, product;
  switch (e->kind) {
  case KL_TREE_CONST: return size_of(e->value);
  case KL_TREE_FLOOR:
  case KL_TREE_CEIL:
    if (!kl_tree_const(e->b, &c) || c == 0) return 1;
    a = divisor(e->a);
    return a % size_of(c) == 0 ? a / size_of(c) : 1;
  case KL_TREE_MUL: a = divisor(e->a); return __builtin_mul_overflow(a, divisor(e->b), &product) ? a : product;
  case KL_TREE_ADD:
  case KL_TREE_MOD: return gcd(divisor(e->a), divisor(e->b));
  default: return 1;
  }
}

static bool divides(int64_t c, const kl_tree *e) {
  return divisor(e) % size_of(c) == 0;
}

// --- folding: each gives the folded tree, or NULL where nothing folds -----------------------------------------------

#define MAKE(kind, a, b) kl_tree_binary(p, KL_TREE_##kind, (a), (b))

// The factor that e is multiplied by, and what is: "2" and "d0" of d0 * 2.
static int64_t coefficient(const kl_tree *e, const kl_tree **of) {
  int64_t c = 1;
  *of = e;
  if (e->kind == KL_TREE_MUL && kl_tree_const(e->b, &c)) *of = e->a;
  return c;
}

// e - (e floordiv q) * q = e mod q, the subtraction written as a product by -1 or by -q, q constant then and positive.
static const kl_tree *fold_into_mod(kl_trees *p, const kl_tree *a, const kl_tree *b) {
  int64_t c, q;
  if (b->kind >= KL_TREE_CONST) return NULL;
  const kl_tree *of = b->a;
  if (kl_tree_const(b->b, &c) && c == -1 && of->kind == KL_TREE_MUL) {
    const kl_tree *d = of->a;
    if (d->kind != KL_TREE_FLOOR) return NULL;
    if (d->b == of->b && d->a == a) return MAKE(MOD, a, of->b);
  }
  if (b->kind != KL_TREE_MUL || of->kind != KL_TREE_FLOOR || !kl_tree_const(of->b, &q) || q <= 0) return NULL;
  if (!kl_tree_const(b->b, &c) || c != -q) return NULL;
  if (of->a == a) return MAKE(MOD, a, of->b);
  return a->kind == KL_TREE_ADD && a->b == of->a ? MAKE(ADD, a->a, MAKE(MOD, a->b, of->b)) : NULL;
}

// Two variables of a kind, the later one first.
static bool out_of_order(const kl_tree *a, const kl_tree *b) {
  return a->kind == b->kind && a->kind > KL_TREE_CONST && a->value > b->value;
}

static const kl_tree *fold_add(kl_trees *p, const kl_tree *a, const kl_tree *b) {
  int64_t x, y = 0, sum;
  const kl_tree *of_a, *of_b;
  bool constant_b = kl_tree_const(b, &y);
  if (kl_tree_const(a, &x) && constant_b) return __builtin_add_overflow(x, y, &sum) ? NULL : constant(p, sum);
  if (a->kind == KL_TREE_CONST || (a->symbolic && !b->symbolic)) return MAKE(ADD, b, a);
  if (constant_b && y == 0) return a;
  if (out_of_order(a, b)) return MAKE(ADD, b, a);
  bool trailing = a->kind == KL_TREE_ADD && kl_tree_const(a->b, &x); // (e + x) + b
  if (trailing && constant_b && !__builtin_add_overflow(x, y, &sum)) return MAKE(ADD, a->a, constant(p, sum));
  x = coefficient(a, &of_a);
  y = coefficient(b, &of_b);
  if (of_a == of_b && !__builtin_add_overflow(x, y, &sum)) return MAKE(MUL, of_a, constant(p, sum));
  if (trailing && !constant_b) return MAKE(ADD, MAKE(ADD, a->a, b), a->b);
  return fold_into_mod(p, a, b);
}

static const kl_tree *fold_mul(kl_trees *p, const kl_tree *a, const kl_tree *b) {
  int64_t x, y = 0, product;
  bool constant_b = kl_tree_const(b, &y);
  if (kl_tree_const(a, &x) && constant_b) return __builtin_mul_overflow(x, y, &product) ? NULL : constant(p, product);
  if (!a->symbolic && !b->symbolic) return NULL;
  if (!b->symbolic || a->kind == KL_TREE_CONST || out_of_order(a, b)) return MAKE(MUL, b, a);
  if (constant_b && y == 1) return a;
  if (constant_b && y == 0) return b;
  if (a->kind != KL_TREE_MUL || !kl_tree_const(a->b, &x)) return NULL;
  if (!constant_b) return MAKE(MUL, MAKE(MUL, a->a, b), a->b);
  return __builtin_mul_overflow(x, y, &product) ? NULL : MAKE(MUL, a->a, constant(p, product));
}

static bool overflows(int64_t a, int64_t b) {
  return a == INT64_MIN && b == -1;
}

static const kl_tree *fold_division(kl_trees *p, kl_tree_kind kind, const kl_tree *a, const kl_tree *b) {
  int64_t x, y;
  bool floors = kind == KL_TREE_FLOOR;
  if (!kl_tree_const(b, &y) || y == 0) return NULL;
  if (kl_tree_const(a, &x)) return overflows(x, y) ? NULL : constant(p, floors ? floor_div(x, y) : ceil_div(x, y));
  if (y == 1) return a;
  if (a->kind == KL_TREE_MUL && kl_tree_const(a->b, &x) && !overflows(x, y) && x % y == 0)
    return MAKE(MUL, a->a, constant(p, x / y));
  if (floors && a->kind == KL_TREE_ADD && (divides(y, a->a) || divides(y, a->b)))
    return MAKE(ADD, MAKE(FLOOR, a->a, b), MAKE(FLOOR, a->b, b));
  return NULL;
}

static const kl_tree *fold_mod(kl_trees *p, const kl_tree *a, const kl_tree *b) {
  int64_t x, y;
  if (!kl_tree_const(b, &y) || y < 1) return NULL;
  if (kl_tree_const(a, &x)) return constant(p, x % y + (x % y < 0 ? y : 0));
  if (divides(y, a)) return constant(p, 0);
  if (a->kind == KL_TREE_ADD && divides(y, a->a)) return MAKE(MOD, a->b, b);
  if (a->kind == KL_TREE_ADD && divides(y, a->b)) return MAKE(MOD, a->a, b);
  if (a->kind == KL_TREE_MOD && kl_tree_const(a->b, &x) && x >= 1 && x % y == 0) return MAKE(MOD, a->a, b);
  return NULL;
}

const kl_tree *kl_tree_binary(kl_trees *p, kl_tree_kind kind, const kl_tree *a, const kl_tree *b) {
  const kl_tree *e = NULL;
  if (!a || !b) return NULL;
  switch (kind) {
  case KL_TREE_ADD: e = fold_add(p, a, b); break;
  case KL_TREE_MUL: e = fold_mul(p, a, b); break;
  case KL_TREE_MOD: e = fold_mod(p, a, b); break;
  default: e = fold_division(p, kind, a, b); break;
  }
  return e ? e : pair(p, kind, a, b);
}

// --- text ---------------------------------------------------------------------------------------------------------

static void put(kl_sb *b, const kl_tree *e, char letter, bool tight);

static void put_sum(kl_sb *b, const kl_tree *e, char letter) {
  int64_t c;
  const kl_tree *r = e->b;
  put(b, e->a, letter, false);
  if (r->kind == KL_TREE_MUL && kl_tree_const(r->b, &c) && c == -1) {
    kl_sb_puts(b, " - ");
    put(b, r->a, letter, r->a->kind == KL_TREE_ADD);
  } else if (r->kind == KL_TREE_MUL && kl_tree_const(r->b, &c) && c < -1) {
    kl_sb_puts(b, " - ");
    put(b, r->a, letter, true);
    kl_sbf(b, " * %llu", (unsigned long long)size_of(c));
  } else if (kl_tree_const(r, &c) && c < 0) {
    kl_sbf(b, " - %llu", (unsigned long long)size_of(c));
  } else {
    kl_sb_puts(b, " + ");
    put(b, r, letter, false);
  }
}

static void put_product(kl_sb *b, const kl_tree *e, char letter) {
  static const char *const operators[] = {" + ", " * ", " mod ", " floordiv ", " ceildiv "};
  int64_t c;
  if (e->kind == KL_TREE_MUL && kl_tree_const(e->b, &c) && c == -1) {
    kl_sb_putc(b, '-');
    put(b, e->a, letter, true);
    return;
  }
  put(b, e->a, letter, true);
  kl_sb_puts(b, operators[e->kind]);
  put(b, e->b, letter, true);
}

// `tight`: within an operator that binds tighter than a sum.
static void put(kl_sb *b, const kl_tree *e, char letter, bool tight) {
  switch (e->kind) {
  case KL_TREE_CONST: kl_sb_i64(b, e->value); return;
  case KL_TREE_DIM: kl_sbf(b, "%c%lld", letter, (long long)e->value); return;
  case KL_TREE_SYMBOL: kl_sbf(b, "s%lld", (long long)e->value); return;
  default: break;
  }
  if (tight) kl_sb_putc(b, '(');
  (e->kind == KL_TREE_ADD ? put_sum : put_product)(b, e, letter);
  if (tight) kl_sb_putc(b, ')');
}

void kl_tree_print(kl_sb *b, const kl_tree *e, char letter) {
  put(b, e, letter, false);
}

// --- values -------------------------------------------------------------------------------------------------------

const kl_aff *kl_tree_aff(kl_affs *p, const kl_tree *e) {
  typedef const kl_aff *binary(kl_affs *, const kl_aff *, const kl_aff *);
  static binary *const operators[] = {kl_aff_add, kl_aff_mul, kl_aff_mod, kl_aff_floordiv, kl_aff_ceildiv};
  switch (e->kind) {
  case KL_TREE_CONST: return kl_aff_const(p, e->value);
  case KL_TREE_DIM: return kl_aff_dim(p, (uint32_t)e->value);
  case KL_TREE_SYMBOL: return kl_aff_range(p, (uint32_t)e->value);
  default: return operators[e->kind](p, kl_tree_aff(p, e->a), kl_tree_aff(p, e->b));
  }
}

typedef struct span {
  int64_t lo, hi;
} span;

static bool times(span a, int64_t c, span *out) {
  if (__builtin_mul_overflow(a.lo, c, &out->lo) || __builtin_mul_overflow(a.hi, c, &out->hi)) return false;
  if (c < 0) *out = (span){out->hi, out->lo};
  return true;
}

static bool divided(span a, int64_t c, bool floors, span *out) {
  if (c == 0 || overflows(a.lo, c) || overflows(a.hi, c)) return false;
  *out = floors ? (span){floor_div(a.lo, c), floor_div(a.hi, c)} : (span){ceil_div(a.lo, c), ceil_div(a.hi, c)};
  if (c < 0) *out = (span){out->hi, out->lo};
  return true;
}

// Of a remainder all values count, also those that the operand does not reach: blocks are whole.
static bool combine(kl_tree_kind kind, span a, span b, span *out) {
  if (kind == KL_TREE_ADD)
    return !__builtin_add_overflow(a.lo, b.lo, &out->lo) && !__builtin_add_overflow(a.hi, b.hi, &out->hi);
  if (b.lo != b.hi) return false;
  switch (kind) {
  case KL_TREE_MUL: return times(a, b.lo, out);
  case KL_TREE_MOD: *out = (span){0, b.lo - 1}; return b.lo > 0;
  default: return divided(a, b.lo, kind == KL_TREE_FLOOR, out);
  }
}

static bool bounds(const kl_tree *e, const int64_t *lo, const int64_t *hi, span *out) {
  span a, b;
  switch (e->kind) {
  case KL_TREE_CONST: *out = (span){e->value, e->value}; return true;
  case KL_TREE_DIM: *out = (span){lo[e->value], hi[e->value]}; return true;
  case KL_TREE_SYMBOL: return false;
  default: return bounds(e->a, lo, hi, &a) && bounds(e->b, lo, hi, &b) && combine(e->kind, a, b, out);
  }
}

bool kl_tree_bounds(const kl_tree *e, const int64_t *lo, const int64_t *hi, int64_t *least, int64_t *most) {
  span s;
  if (!bounds(e, lo, hi, &s)) return false;
  *least = s.lo;
  *most = s.hi;
  return true;
}
