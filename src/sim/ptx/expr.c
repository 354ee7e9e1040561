// Constant expressions: PTX's operators, which are C's, over 64-bit integers and doubles.
#include "sim/ptx/parse.h"

// --- values -------------------------------------------------------------------------------------------------------

static kl_ptx_value of_s64(int64_t v) {
  return (kl_ptx_value){KL_PTX_S64, (uint64_t)v};
}

static double as_double(kl_ptx_value v) {
  double d;
  memcpy(&d, &v.bits, sizeof d);
  return d;
}

static kl_ptx_value of_double(double d) {
  kl_ptx_value v = {KL_PTX_F64, 0};
  memcpy(&v.bits, &d, sizeof d);
  return v;
}

static bool is_int(kl_ptx_value v) {
  return v.type == KL_PTX_S64 || v.type == KL_PTX_U64;
}

// --- operators ----------------------------------------------------------------------------------------------------

// Binary operators with their precedence, the highest first.
static const struct {
  int punct, precedence;
} operators[] = {
    {'*', 10},
    {'/', 10},
    {'%', 10},
    {'+', 9},
    {'-', 9},
    {KL_PTX_TWO('<', '<'), 8},
    {KL_PTX_TWO('>', '>'), 8},
    {'<', 7},
    {'>', 7},
    {KL_PTX_TWO('<', '='), 7},
    {KL_PTX_TWO('>', '='), 7},
    {KL_PTX_TWO('=', '='), 6},
    {KL_PTX_TWO('!', '='), 6},
    {'&', 5},
    {'^', 4},
    {'|', 3},
    {KL_PTX_TWO('&', '&'), 2},
    {KL_PTX_TWO('|', '|'), 1},
};
enum { TERM = 10, LOWEST = 1 };

static int precedence_of(int punct) {
  for (size_t i = 0; punct && i < KL_COUNT(operators); i++)
    if (operators[i].punct == punct) return operators[i].precedence;
  return 0;
}

// By the distance modulo 64, as the assembler has it.
static uint64_t shifted(kl_ptx_value a, uint64_t by, bool left) {
  bool fill = !left && a.type == KL_PTX_S64 && (int64_t)a.bits < 0;
  by &= 63;
  if (left) return a.bits << by;
  return fill ? ~(~a.bits >> by) : a.bits >> by;
}

// a / b; the quotient that 64 bits do not hold wraps.
static uint64_t quotient(uint64_t a, uint64_t b, bool is_unsigned) {
  if (is_unsigned) return a / b;
  if (b == UINT64_MAX) return 0 - a;
  return (uint64_t)((int64_t)a / (int64_t)b);
}

static int64_t compared(int op, bool less, bool equal) {
  switch (op) {
  case '<': return less;
  case '>': return !less && !equal;
  case KL_PTX_TWO('<', '='): return less || equal;
  case KL_PTX_TWO('>', '='): return !less;
  case KL_PTX_TWO('=', '='): return equal;
  default: return !equal;
  }
}

static bool of_ints(int op, kl_ptx_value a, kl_ptx_value b, kl_ptx_value *out) {
  bool u = a.type == KL_PTX_U64 || b.type == KL_PTX_U64;
  uint64_t x = a.bits, y = b.bits;
  *out = (kl_ptx_value){u ? KL_PTX_U64 : KL_PTX_S64, 0};
  switch (op) {
  case '+': out->bits = x + y; return true;
  case '-': out->bits = x - y; return true;
  case '*': out->bits = x * y; return true;
  case '&': out->bits = x & y; return true;
  case '^': out->bits = x ^ y; return true;
  case '|': out->bits = x | y; return true;
  case '/':
    if (y) out->bits = quotient(x, y, u);
    return y != 0;
  case '%':
    if (y) *out = (kl_ptx_value){KL_PTX_U64, x % y};
    return y != 0;
  case KL_PTX_TWO('<', '<'):
  case KL_PTX_TWO('>', '>'): *out = (kl_ptx_value){a.type, shifted(a, y, op == KL_PTX_TWO('<', '<'))}; return true;
  case KL_PTX_TWO('&', '&'): *out = of_s64(x && y); return true;
  case KL_PTX_TWO('|', '|'): *out = of_s64(x || y); return true;
  default: *out = of_s64(compared(op, u ? x < y : (int64_t)x < (int64_t)y, x == y)); return true;
  }
}

// False for operators that floats do not have.
static bool of_doubles(int op, double a, double b, kl_ptx_value *out) {
  switch (op) {
  case '+': *out = of_double(a + b); return true;
  case '-': *out = of_double(a - b); return true;
  case '*': *out = of_double(a * b); return true;
  case '/': *out = of_double(a / b); return true;
  case '>': *out = of_s64(a > b); return true;
  case KL_PTX_TWO('>', '='): *out = of_s64(a >= b); return true;
  case '<':
  case KL_PTX_TWO('<', '='):
  case KL_PTX_TWO('=', '='):
  case KL_PTX_TWO('!', '='): *out = of_s64(compared(op, a < b, a == b)); return true;
  default: return false;
  }
}

static bool apply(kl_ptx_parser *ps, kl_str at, int op, kl_ptx_value a, kl_ptx_value b, kl_ptx_value *out) {
  if (a.type == KL_PTX_F32 || b.type == KL_PTX_F32)
    return kl_ptx_wrong(ps, at, "expected integers or doubles on both sides of the operator, found 0f...");
  if (is_int(a) != is_int(b))
    return kl_ptx_wrong(ps, at, "expected integers or doubles on both sides of the operator, found one of each");
  if (is_int(a)) {
    if (of_ints(op, a, b, out)) return true;
    return kl_ptx_wrong(ps, at, "expected a divisor other than 0, found 0");
  }
  if (of_doubles(op, as_double(a), as_double(b), out)) return true;
  return kl_ptx_wrong(ps, at, "expected integers on both sides of the operator, found doubles");
}

// --- the grammar --------------------------------------------------------------------------------------------------

static bool unary(kl_ptx_parser *ps, kl_ptx_value *out);

// Behind '('.
static bool cast_or_group(kl_ptx_parser *ps, kl_ptx_value *out) {
  bool to_signed = kl_ptx_at_dot(ps, "s64"), to_unsigned = kl_ptx_at_dot(ps, "u64");
  if (!to_signed && !to_unsigned) return kl_ptx_expr(ps, out) && kl_ptx_need(ps, ')', "after the expression");
  kl_ptx_lex_next(&ps->lx);
  kl_str at = kl_ptx_current(ps);
  if (!kl_ptx_need(ps, ')', "after the type") || !unary(ps, out)) return false;
  if (!is_int(*out)) return kl_ptx_wrong(ps, at, "expected an integer behind the cast, found a floating-point number");
  out->type = to_signed ? KL_PTX_S64 : KL_PTX_U64;
  return true;
}

static bool primary(kl_ptx_parser *ps, kl_ptx_value *out) {
  kl_ptx_lexer *lx = &ps->lx;
  if (lx->kind == KL_PTX_TOK_DOT && lx->word.p[0] >= '0' && lx->word.p[0] <= '9') kl_ptx_lex_as_number(lx);
  switch (lx->kind) {
  case KL_PTX_TOK_INT: *out = (kl_ptx_value){lx->is_unsigned ? KL_PTX_U64 : KL_PTX_S64, lx->bits}; break;
  case KL_PTX_TOK_FLOAT32: *out = (kl_ptx_value){KL_PTX_F32, lx->bits}; break;
  case KL_PTX_TOK_FLOAT64: *out = (kl_ptx_value){KL_PTX_F64, lx->bits}; break;
  case KL_PTX_TOK_NAME:
    if (!kl_str_is(lx->word, "WARP_SZ")) return kl_ptx_expected(ps, "a constant");
    *out = of_s64(32);
    break;
  default:
    if (!kl_ptx_eat(ps, '(')) return kl_ptx_expected(ps, "a constant");
    return cast_or_group(ps, out);
  }
  kl_ptx_lex_next(lx);
  return true;
}

static bool apply_unary(kl_ptx_parser *ps, kl_str at, int op, kl_ptx_value *v) {
  if (v->type == KL_PTX_F32)
    return kl_ptx_wrong(ps, at, "expected an integer or double behind the operator, found 0f...");
  if (v->type == KL_PTX_F64 && (op == '!' || op == '~'))
    return kl_ptx_wrong(ps, at, "expected an integer behind the operator, found a double");
  if (op == '!')
    *v = of_s64(!v->bits);
  else if (op == '~')
    *v = (kl_ptx_value){KL_PTX_U64, ~v->bits};
  else if (op == '-')
    v->bits = v->type == KL_PTX_F64 ? v->bits ^ (uint64_t)1 << 63 : 0 - v->bits;
  return true;
}

static bool unary(kl_ptx_parser *ps, kl_ptx_value *out) {
  int op = ps->lx.punct;
  kl_str at = kl_ptx_current(ps);
  if (!kl_ptx_enter(ps)) return false;
  bool ok;
  if (op == '+' || op == '-' || op == '!' || op == '~') {
    kl_ptx_lex_next(&ps->lx);
    ok = unary(ps, out) && apply_unary(ps, at, op, out);
  } else {
    ok = primary(ps, out);
  }
  kl_ptx_leave(ps);
  return ok;
}

// Operators of at least that precedence; the recursion is as deep as there are precedences.
static bool binary(kl_ptx_parser *ps, int least, kl_ptx_value *out) {
  if (!unary(ps, out)) return false;
  for (;;) {
    int op = ps->lx.punct, precedence = precedence_of(op);
    kl_str at = kl_ptx_current(ps);
    kl_ptx_value right;
    if (!precedence || precedence < least) return true;
    kl_ptx_lex_next(&ps->lx);
    if (!binary(ps, precedence + 1, &right) || !apply(ps, at, op, *out, right, out)) return false;
  }
}

// condition ? a : b, whose types become one.
static bool conditional(kl_ptx_parser *ps, kl_str at, kl_ptx_value condition, kl_ptx_value *out) {
  kl_ptx_value a, b;
  if (!is_int(condition)) return kl_ptx_wrong(ps, at, "expected an integer before '?', found a floating-point number");
  if (!kl_ptx_expr(ps, &a) || !kl_ptx_need(ps, ':', "between the expressions behind '?'") || !kl_ptx_expr(ps, &b))
    return false;
  if (a.type == KL_PTX_F32 || b.type == KL_PTX_F32 || is_int(a) != is_int(b))
    return kl_ptx_wrong(ps, at, "expected two integers or two doubles behind '?', found one of each or 0f...");
  *out = condition.bits ? a : b;
  if (a.type == KL_PTX_U64 || b.type == KL_PTX_U64) out->type = KL_PTX_U64;
  return true;
}

bool kl_ptx_expr(kl_ptx_parser *ps, kl_ptx_value *out) {
  if (!kl_ptx_enter(ps)) return false;
  bool ok = binary(ps, LOWEST, out);
  kl_str at = kl_ptx_current(ps);
  if (ok && kl_ptx_eat(ps, '?')) ok = conditional(ps, at, *out, out);
  kl_ptx_leave(ps);
  return ok;
}

bool kl_ptx_term(kl_ptx_parser *ps, kl_ptx_value *out) {
  return binary(ps, TERM, out);
}

bool kl_ptx_number(kl_ptx_parser *ps, const char *what, uint64_t most, uint64_t *out) {
  kl_ptx_value v;
  kl_str at = kl_ptx_current(ps);
  if (ps->lx.kind == KL_PTX_TOK_END || ps->lx.kind == KL_PTX_TOK_BAD) return kl_ptx_expected(ps, "%s", what);
  if (!kl_ptx_expr(ps, &v)) return false;
  *out = v.bits;
  if (!is_int(v)) return kl_ptx_wrong(ps, at, "expected %s, an integer, found a floating-point number", what);
  if (v.type == KL_PTX_S64 && (int64_t)v.bits < 0)
    return kl_ptx_wrong(ps, at, "expected %s of at least 0, found %lld", what, (long long)v.bits);
  if (v.bits > most)
    return kl_ptx_wrong(ps, at, "expected %s of at most %llu, found %llu", what, (unsigned long long)most,
                        (unsigned long long)v.bits);
  return true;
}

bool kl_ptx_offset(kl_ptx_parser *ps, bool minus_too, int64_t *out) {
  uint64_t sum = 0;
  while (kl_ptx_at(ps, '+') || (minus_too && kl_ptx_at(ps, '-'))) {
    bool minus = kl_ptx_at(ps, '-');
    kl_str at = kl_ptx_current(ps);
    kl_ptx_value v;
    kl_ptx_lex_next(&ps->lx);
    if (!kl_ptx_term(ps, &v)) return false;
    if (!is_int(v))
      return kl_ptx_wrong(ps, at, "expected an integer to be added to the address, found a floating-point number");
    sum += minus ? 0 - v.bits : v.bits;
  }
  *out = (int64_t)sum;
  return true;
}
