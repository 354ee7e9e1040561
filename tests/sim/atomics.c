// Atomic operations of all types, scalar and vector, over pairs of edge values: each thread has elements of its own, so
// that what is left in memory and what is given back follow from the operation alone. PTX ISA 9.7.13.5, 9.7.13.6.
#include "sim/machine/machine.h"
#include "lanes/rounding.h"
#include "support/suite.h"
#include <stdio.h>

enum { BLOCK = 128 };

// --- the model ----------------------------------------------------------------------------------------------------

// The bits of element `k` of a value that has several: halves of pairs.
static value part(value v, int bits, int k) {
  return v >> bits * k & (((value)1 << bits) - 1);
}

static bool is_nan(const number_format *f, value v) {
  return isnan(number_value(f, v));
}

static double extreme_of(double a, double b, bool max) {
  if (a == b) return (signbit(a) != 0) == max ? b : a;
  return (a < b) == max ? b : a;
}

// Of one float: sums are rounded to nearest; those of f32 in global memory flush what is subnormal.
static value float_after(const number_format *f, const char *op, value old, value a, bool flush) {
  double x = number_value(f, old), y = number_value(f, a);
  if (strcmp(op, "add") == 0) {
    if (f == &number_f64 && (is_nan(f, old) || is_nan(f, a))) return (is_nan(f, old) ? old : a) | (value)1 << 51;
    if (flush) x = number_flush(f, x), y = number_flush(f, y);
    double sum = rounded(f, '+', x, y, 0, MPFR_RNDN);
    return number_bits(f, flush ? number_flush(f, sum) : sum);
  }
  if (is_nan(f, old) && is_nan(f, a)) return f->nan;
  if (is_nan(f, old)) return a;
  if (is_nan(f, a)) return old;
  return number_bits(f, extreme_of(x, y, strcmp(op, "max") == 0));
}

static value signed_of(value v, int bits) {
  return (value)((__int128)(v << (128 - bits)) >> (128 - bits));
}

static value integer_after(const char *op, int bits, bool sign, value old, value a, value b) {
  bool less = sign ? (__int128)signed_of(a, bits) < (__int128)signed_of(old, bits) : a < old;
  if (strcmp(op, "and") == 0) return old & a;
  if (strcmp(op, "or") == 0) return old | a;
  if (strcmp(op, "xor") == 0) return old ^ a;
  if (strcmp(op, "exch") == 0) return a;
  if (strcmp(op, "cas") == 0) return old == a ? b : old;
  if (strcmp(op, "inc") == 0) return old >= a ? 0 : old + 1;
  if (strcmp(op, "dec") == 0) return old == 0 || old > a ? a : old - 1;
  if (strcmp(op, "min") == 0) return less ? a : old;
  if (strcmp(op, "max") == 0) return less || old == a ? old : a;
  return old + a;
}

static value after(const char *op, const char *type, int bits, bool shared, value old, value a, value b) {
  const number_format *f = number_of_type(type);
  value r = 0;
  if (!f) {
    value v = integer_after(op, bits, type[0] == 's', old, a, b);
    return bits == 128 ? v : part(v, bits, 0);
  }
  for (int k = 0; k < bits / f->bits; k++)
    r |= float_after(f, op, f->bits < 64 ? part(old, f->bits, k) : old, f->bits < 64 ? part(a, f->bits, k) : a,
                     f == &number_f32 && !shared)
         << f->bits * k;
  return r;
}

// --- kernels ------------------------------------------------------------------------------------------------------

// Instructions without their opcode; type, bits and count of elements.
static const struct {
  const char *op, *middle, *type;
  int bits, count;
} rows[] = {
    {"and", "", "b32", 32, 1},
    {"and", "", "b64", 64, 1},
    {"or", "", "b32", 32, 1},
    {"or", "", "b64", 64, 1},
    {"xor", "", "b32", 32, 1},
    {"xor", "", "b64", 64, 1},
    {"exch", "", "b32", 32, 1},
    {"exch", "", "b64", 64, 1},
    {"exch", "", "b128", 128, 1},
    {"cas", "", "b16", 16, 1},
    {"cas", "", "b32", 32, 1},
    {"cas", "", "b64", 64, 1},
    {"cas", "", "b128", 128, 1},
    {"inc", "", "u32", 32, 1},
    {"dec", "", "u32", 32, 1},
    {"add", "", "u32", 32, 1},
    {"add", "", "s32", 32, 1},
    {"add", "", "u64", 64, 1},
    {"add", "", "s64", 64, 1},
    {"min", "", "u32", 32, 1},
    {"min", "", "s32", 32, 1},
    {"min", "", "u64", 64, 1},
    {"min", "", "s64", 64, 1},
    {"max", "", "u32", 32, 1},
    {"max", "", "s32", 32, 1},
    {"max", "", "u64", 64, 1},
    {"max", "", "s64", 64, 1},
    {"add", "", "f32", 32, 1},
    {"add", "", "f64", 64, 1},
    {"add", ".noftz", "f16", 16, 1},
    {"add", ".noftz", "bf16", 16, 1},
    {"add", ".noftz", "f16x2", 32, 1},
    {"add", ".noftz", "bf16x2", 32, 1},
    {"add", ".v2", "f32", 32, 2},
    {"add", ".v4", "f32", 32, 4},
    {"add", ".noftz.v2", "f16", 16, 2},
    {"add", ".noftz.v4", "f16", 16, 4},
    {"add", ".noftz.v8", "f16", 16, 8},
    {"min", ".noftz.v2", "f16", 16, 2},
    {"min", ".noftz.v8", "f16", 16, 8},
    {"max", ".noftz.v4", "f16", 16, 4},
    {"max", ".noftz.v8", "f16", 16, 8},
    {"add", ".noftz.v2", "bf16", 16, 2},
    {"add", ".noftz.v8", "bf16", 16, 8},
    {"min", ".noftz.v4", "bf16", 16, 4},
    {"max", ".noftz.v2", "bf16", 16, 2},
    {"add", ".noftz.v2", "f16x2", 32, 2},
    {"add", ".noftz.v4", "f16x2", 32, 4},
    {"min", ".noftz.v2", "f16x2", 32, 2},
    {"max", ".noftz.v4", "f16x2", 32, 4},
    {"add", ".noftz.v4", "bf16x2", 32, 4},
    {"min", ".noftz.v4", "bf16x2", 32, 4},
    {"max", ".noftz.v2", "bf16x2", 32, 2},
};

// What the instruction's text has: the operation behind its opcode, and a list of registers from number `first` on.
static void put_list(FILE *f, int bits, int count, int first) {
  const char *kind = bits == 16 ? "h" : bits == 32 ? "w" : bits == 64 ? "l" : "q";
  if (count > 1) fputs("{", f);
  for (int k = 0; k < count; k++) fprintf(f, "%s%%%s%d", k ? ", " : "", kind, first + k);
  if (count > 1) fputs("}", f);
}

typedef enum form { ATOM, RED, SHARED, FORMS } form;

static char *kernel_of(int row, form how) {
  char *text = NULL;
  size_t size = 0;
  const char *op = rows[row].op;
  int bits = rows[row].bits, count = rows[row].count, bytes = bits / 8 * count;
  char kind = bits == 16 ? 'h' : bits == 32 ? 'w' : bits == 64 ? 'l' : 'q';
  FILE *f = open_memstream(&text, &size);
  fprintf(f, ".version 8.8\n.target sm_100\n.address_size 64\n.shared .align 16 .b8 s[%d];\n", BLOCK * bytes);
  fputs(".visible .entry k(.param .u64 mem, .param .u64 a, .param .u64 b, .param .u64 out) {\n"
        ".reg .b16 %h<40>; .reg .b32 %w<40>; .reg .b64 %l<40>; .reg .b128 %q<40>; .reg .b64 %rd<9>; .reg .b32 %r<9>;\n"
        "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmad.lo.u32 %r3, %r1, %r2, %r0;\n",
        f);
  static const char *const params[] = {"mem", "a", "b", "out"};
  for (int k = 0; k < 4; k++)
    fprintf(f, "ld.param.u64 %%rd%d, [%s];\nmad.wide.u32 %%rd%d, %%r3, %d, %%rd%d;\n", k, params[k], k, bytes, k);
  fprintf(f, "mov.u32 %%r4, s;\nmad.lo.u32 %%r4, %%r0, %d, %%r4;\n", bytes);
  for (int k = 0; k < count; k++)
    fprintf(f, "ld.b%d %%%c%d, [%%rd1+%d];\nld.b%d %%%c%d, [%%rd2+%d];\n", bits, kind, k, k * bits / 8, bits, kind,
            10 + k, k * bits / 8);
  for (int k = 0; how == SHARED && k < count; k++)
    fprintf(f, "ld.b%d %%%c30, [%%rd0+%d];\nst.shared.b%d [%%r4+%d], %%%c30;\n", bits, kind, k * bits / 8, bits,
            k * bits / 8, kind);
  fprintf(f, "%s.%s.%s%s.%s ", how == RED ? "red" : "atom", how == SHARED ? "shared" : "global", op, rows[row].middle,
          rows[row].type);
  if (how != RED) put_list(f, bits, count, 20), fputs(", ", f);
  fputs(how == SHARED ? "[%r4], " : "[%rd0], ", f);
  put_list(f, bits, count, 0);
  if (strcmp(op, "cas") == 0) fprintf(f, ", %%%c10", kind);
  fputs(";\n", f);
  for (int k = 0; k < count; k++) {
    if (how != RED) fprintf(f, "st.b%d [%%rd3+%d], %%%c%d;\n", bits, k * bits / 8, kind, 20 + k);
    if (how == SHARED)
      fprintf(f, "ld.shared.b%d %%%c30, [%%r4+%d];\nst.b%d [%%rd0+%d], %%%c30;\n", bits, kind, k * bits / 8, bits,
              k * bits / 8, kind);
  }
  fputs("ret;\n}\n", f);
  fclose(f);
  return text;
}

// The forms that an operation has.
static bool exists(int row, form how) {
  const char *op = rows[row].op;
  if (how == SHARED) return rows[row].count == 1;
  return how == ATOM || (strcmp(op, "exch") != 0 && strcmp(op, "cas") != 0);
}

// --- running ------------------------------------------------------------------------------------------------------

enum { MEM, A, B, OUT, ARRAYS };

static value element(const char *array, size_t k, int bits) {
  value v = 0;
  memcpy(&v, array + k * (size_t)bits / 8, (size_t)bits / 8);
  return v;
}

// The value of an edge; wide ones from two.
static value edge_of(int bits, size_t j) {
  return bits == 128 ? (value)edge(64, j) << 64 | edge(64, (j + 1) % edge_count(64)) : edge(bits, j);
}

static void check(int row, form how) {
  int bits = rows[row].bits, count = rows[row].count;
  size_t edges = edge_count(bits == 128 ? 64 : bits), pairs = edges * edges;
  size_t threads = (pairs + (size_t)count - 1) / (size_t)count, grid = (threads + BLOCK - 1) / BLOCK;
  size_t n = grid * BLOCK * (size_t)count, bytes = n * (size_t)bits / 8;
  char *before = malloc(bytes), *text = kernel_of(row, how), *host[ARRAYS];
  uint64_t address[ARRAYS];
  kiln_context *cx = kiln_context_create(NULL);
  kl_memory m;
  kl_loaded *loaded = NULL;
  kl_kernel *k = NULL;
  kl_fault fault;
  kl_memory_init(&m, cx, UINT64_MAX);
  for (int i = 0; i < ARRAYS; i++) {
    ck_assert_int_eq(kl_memory_alloc(&m, bytes, KL_REGION_USER, KL_STR("array"), &address[i]), KILN_OK);
    host[i] = kl_memory_at(&m, address[i], bytes);
  }
  for (size_t i = 0; i < n; i++) {
    value old = edge_of(bits, i % edges), a = edge_of(bits, i / edges % edges), b = edge_of(bits, i % 7);
    if (strcmp(rows[row].op, "cas") == 0 && i % 3 == 0) a = old;
    memcpy(host[MEM] + i * (size_t)bits / 8, &old, (size_t)bits / 8);
    memcpy(host[A] + i * (size_t)bits / 8, &a, (size_t)bits / 8);
    memcpy(host[B] + i * (size_t)bits / 8, &b, (size_t)bits / 8);
  }
  memcpy(before, host[MEM], bytes);
  bool ok = kl_load(cx, &m, "k.ptx", kl_str_of(text), &loaded) == KILN_OK &&
            kl_kernel_prepare(cx, loaded, KL_STR("k"), &k) == KILN_OK;
  kl_launch l = {.kernel = k, .grid = {(uint32_t)grid, 1, 1}, .block = {BLOCK, 1, 1}, .params = address};
  ok = ok && kl_launch_run(cx, &m, &l, &fault) == KILN_OK;
  ck_assert_msg(ok, "%s\n%s", kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "", text);
  for (size_t i = 0; i < n; i++) {
    value old = element(before, i, bits), a = element(host[A], i, bits), b = element(host[B], i, bits);
    value want = after(rows[row].op, rows[row].type, bits, how == SHARED, old, a, b);
    value now = element(host[MEM], i, bits), given = element(host[OUT], i, bits);
    EXPECT(now == want, "%s%s.%s of %#llx and %#llx: %#llx, expected %#llx", rows[row].op, rows[row].middle,
           rows[row].type, (unsigned long long)old, (unsigned long long)a, (unsigned long long)now,
           (unsigned long long)want);
    EXPECT(how == RED || given == old, "%s%s.%s of %#llx gives %#llx", rows[row].op, rows[row].middle, rows[row].type,
           (unsigned long long)old, (unsigned long long)given);
  }
  kl_unload(cx, loaded);
  kl_memory_free(&m);
  kiln_context_destroy(&cx);
  free(before);
  free(text);
}

START_TEST(test_operations) {
  for (form how = ATOM; how < FORMS; how++)
    if (exists(_i, how)) check(_i, how);
}
END_TEST

int main(void) {
  return RUN_TESTS("atomics", NO_FRAME, {test_operations, KL_COUNT(rows)});
}
