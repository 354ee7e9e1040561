// Integer instructions against their text: arithmetic (9.7.1), carries (9.7.2), logic, shifts and bytes (9.7.8), in
// unbounded integers or bit by bit.
#include "../../support/suite.h"
#include "warp.h"
#include <string.h>

typedef __int128 wide;

// --- types ---------------------------------------------------------------------------------------------------------

// The type is what ends the mnemonic.
static const char *type_of(const instruction *i) {
  return strrchr(i->mnemonic, '.') + 1;
}
static bool is_signed(const char *type) {
  return type[0] == 's';
}
static int width_of(const char *type) {
  return strstr(type, "16") ? 16 : strstr(type, "32") ? 32 : strcmp(type, "pred") == 0 ? 1 : 64;
}
// What the low bits of a register say as a number of that type.
static wide number(value v, int bits, bool sign) {
  value low = v & (((value)1 << bits) - 1);
  return sign && low >> (bits - 1) ? (wide)low - ((wide)1 << bits) : (wide)low;
}
// The low bits of a number.
static value cut(wide v, int bits) {
  return (value)v & (((value)1 << bits) - 1);
}
static wide least(int bits, bool sign) {
  return sign ? -((wide)1 << (bits - 1)) : 0;
}
static wide most(int bits, bool sign) {
  return ((wide)1 << (sign ? bits - 1 : bits)) - 1;
}
static wide clamped(wide v, int bits, bool sign) {
  return v < least(bits, sign) ? least(bits, sign) : v > most(bits, sign) ? most(bits, sign) : v;
}

// --- 9.7.1 ---------------------------------------------------------------------------------------------------------

// Of two numbers of a type. Products of 64 bits by halves do not fit: they have their own model.
static wide operation(const instruction *i, wide a, wide b, wide c, int bits, bool sign) {
  wide p = (wide)((value)a * (value)b); // of 64 bits and more the low ones count
  if (is(i, "add")) return a + b;
  if (is(i, "sub")) return a - b;
  if (is(i, "mul") || is(i, "mad")) {
    wide r = has(i, ".hi") ? p >> bits : p;
    if (is(i, "mul")) return r;
    return (wide)((value)r + (value)c);
  }
  if (is(i, "sad")) return c + (a < b ? b - a : a - b);
  // Devices give all ones for a quotient by zero and for its remainder.
  if (is(i, "div")) return b == 0 ? -1 : a / b;
  if (is(i, "rem")) return b == 0 ? -1 : a % b;
  if (is(i, "abs")) return a < 0 ? -a : a;
  if (is(i, "neg")) return -a;
  if (is(i, "min") || is(i, "max")) {
    wide r = (a < b) == is(i, "min") ? a : b;
    return has(i, ".relu") && r < 0 ? 0 : r;
  }
  ck_abort_msg("%s has no model", i->mnemonic);
}

// a * b of 64 bits in four pieces: the upper 64 bits.
static wide high64(value a, value b, bool sign) {
  uint64_t x = (uint64_t)a, y = (uint64_t)b, xl = x & UINT32_MAX, xh = x >> 32, yl = y & UINT32_MAX, yh = y >> 32;
  uint64_t middle = xh * yl + (xl * yl >> 32), other = (middle & UINT32_MAX) + xl * yh;
  uint64_t r = xh * yh + (middle >> 32) + (other >> 32);
  if (sign && x >> 63) r -= y;
  if (sign && y >> 63) r -= x;
  return (wide)r;
}

static void dot(const instruction *i, const value *s, value *r) {
  bool four = is(i, "dp4a"), high = has(i, ".hi");
  const char *first = strrchr(i->mnemonic, '.') - 4; // ".u32.s32": the first type
  bool sa = first[1] == 's', sb = is_signed(type_of(i));
  wide sum = number(s[2], 32, true);
  for (int k = 0; k < (four ? 4 : 2); k++) {
    wide a = four ? number(s[0] >> 8 * k, 8, sa) : number(s[0] >> 16 * k, 16, sa);
    sum += a * number(s[1] >> (8 * k + (high && !four ? 16 : 0)), 8, sb);
  }
  r[0] = cut(sum, 32);
}

static void arithmetic(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const char *type = type_of(i);
  bool sign = is_signed(type);
  int bits = width_of(type);
  if (is(i, "dp4a") || is(i, "dp2a")) {
    dot(i, s, r);
  } else if (is(i, "mul24") || is(i, "mad24")) {
    wide p = number(s[0], 24, sign) * number(s[1], 24, sign);
    p = has(i, ".hi") ? p >> 16 : number(cut(p, 32), 32, sign);
    if (is(i, "mad24")) p += number(s[2], 32, sign);
    r[0] = cut(has(i, ".sat") ? clamped(p, 32, true) : p, 32);
  } else if (strstr(type, "x2")) {
    for (int k = 0; k < 2; k++) {
      wide v = operation(i, number(s[0] >> 16 * k, 16, sign), number(s[1] >> 16 * k, 16, sign), 0, 16, sign);
      r[0] |= cut(v, 16) << 16 * k;
    }
  } else if (has(i, ".hi") && bits == 64) {
    wide c = is(i, "mad") ? (wide)s[2] : 0;
    r[0] = cut(high64(s[0], s[1], sign) + c, 64);
  } else {
    int to = has(i, ".wide") ? 2 * bits : bits;
    wide c = i->sources > 2 ? number(s[2], to, sign) : 0;
    // A product's sum with .hi is of the product's upper half as it is, which is a number with sign where c is one.
    wide v = operation(i, number(s[0], bits, sign), number(s[1], bits, sign), c, bits, sign);
    r[0] = cut(has(i, ".sat") ? clamped(v, bits, true) : v, to);
  }
}

// --- bits and fields -----------------------------------------------------------------------------------------------

static bool bit(value v, int k) {
  return v >> k & 1;
}

static void fields(const instruction *i, const value *s, value *r, int bits, bool sign) {
  // Of 64 bits GPUs take positions and lengths whole, where the text has their low 8 bits.
  value most = bits == 64 ? UINT32_MAX : 255, at32 = s[i->sources - 2] & most, n32 = s[i->sources - 1] & most;
  int at = at32 < 255 ? (int)at32 : 255, n = n32 < 255 ? (int)n32 : 255;
  if (is(i, "bfi")) r[0] = s[1];
  for (int k = 0; k < bits; k++) {
    if (is(i, "bfi")) {
      if (k < n && at + k < bits) r[0] = (r[0] & ~((value)1 << (at + k))) | (value)bit(s[0], k) << (at + k);
    } else {
      int top = at + n - 1 < bits - 1 ? at + n - 1 : bits - 1;
      bool fill = sign && n && bit(s[0], top);
      r[0] |= (value)(k < n && at + k < bits ? bit(s[0], at + k) : fill) << k;
    }
  }
}

static void find_nth(const value *s, value *r) {
  int32_t offset = (int32_t)(uint32_t)s[2], step = offset > 0 ? 1 : -1;
  uint32_t mask = (uint32_t)s[0], base = (uint32_t)s[1];
  r[0] = UINT32_MAX;
  if (base > 31) return;
  if (offset == 0) {
    if (bit(mask, (int)base)) r[0] = base;
    return;
  }
  int64_t count = (offset < 0 ? -(int64_t)offset : offset) - 1;
  for (int64_t at = base; at >= 0 && at < 32; at += step) {
    if (!bit(mask, (int)at)) continue;
    if (count-- == 0) {
      r[0] = (value)at;
      return;
    }
  }
}

// szext and bmsk as their text has them, statement by statement.
static uint32_t extended(uint32_t a, uint32_t b, bool clamp, bool sign) {
  uint32_t b1 = b & 31, sign_at = (b1 - 1) & 31;
  bool large = b >= 32 && clamp;
  uint32_t mask = large ? 0 : ~0u << b1;
  bool set = !(b1 == 0 || large || !sign) && (a >> sign_at & 1);
  return (a & ~mask) | (set ? mask : 0);
}
static uint32_t masked(uint32_t a, uint32_t b, bool clamp) {
  uint32_t a1 = a & 31, mask0 = ~0u << a1, b1 = b & 31, sum = a1 + b1, mask1 = sum < 32 ? ~0u << sum : 0;
  bool position = false, width = false;
  if (clamp && a >= 32) {
    position = true;
    mask0 = 0;
  }
  if (clamp && b >= 32) width = true;
  if (sum >= 32 || position || width)
    mask1 = 0;
  else if (b1 == 0)
    mask1 = ~0u;
  return mask0 & ~mask1;
}

static void bits_model(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const char *type = type_of(i);
  bool sign = is_signed(type);
  int bits = width_of(type), ones = 0, top = -1;
  value v = s[0];
  for (int k = 0; k < bits; k++) {
    ones += bit(v, k);
    if (bit(v, k) != (sign && bit(v, bits - 1))) top = k;
  }
  if (is(i, "popc")) r[0] = (value)ones;
  if (is(i, "clz")) r[0] = (value)(bits - 1 - top);
  if (is(i, "bfind")) r[0] = top < 0 ? UINT32_MAX : (value)(has(i, ".shiftamt") ? bits - 1 - top : top);
  if (is(i, "fns")) find_nth(s, r);
  if (is(i, "bfe") || is(i, "bfi")) fields(i, s, r, bits, sign);
  if (is(i, "szext")) r[0] = extended((uint32_t)s[0], (uint32_t)s[1], has(i, ".clamp"), sign);
  if (is(i, "bmsk")) r[0] = masked((uint32_t)s[0], (uint32_t)s[1], has(i, ".clamp"));
  for (int k = 0; is(i, "brev") && k < bits; k++) r[0] |= (value)bit(v, k) << (bits - 1 - k);
}

// --- 9.7.2 ---------------------------------------------------------------------------------------------------------

static void carries(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const char *type = type_of(i);
  bool sign = is_signed(type);
  int bits = width_of(type);
  wide in = is(i, "addc") || is(i, "subc") || is(i, "madc") ? *carry : 0, a = (wide)s[0], b = (wide)s[1], v;
  if (is(i, "add") || is(i, "addc")) {
    v = a + b + in;
  } else if (is(i, "sub") || is(i, "subc")) {
    v = a + (wide)cut(~(value)b, bits) + (is(i, "sub") ? 1 : in); // CC.CF is that of this sum, as GPUs have it
  } else {
    wide p = bits == 64 ? (has(i, ".hi") ? high64(s[0], s[1], sign) : (wide)(uint64_t)((uint64_t)a * (uint64_t)b))
                        : (number(s[0], 32, sign) * number(s[1], 32, sign)) >> (has(i, ".hi") ? 32 : 0);
    v = (wide)cut(p, bits) + (wide)s[2] + in;
  }
  r[0] = cut(v, bits);
  if (has(i, ".cc")) *carry = (uint32_t)(v >> bits & 1);
}

// --- 9.7.8 ---------------------------------------------------------------------------------------------------------

static void permute(const instruction *i, const value *s, value *r) {
  value bytes = s[1] << 32 | s[0];
  int c = (int)(s[2] & 3), b = c;
  int four[4]; // the selectors of bytes 0 to 3
  for (int k = 0; k < 4; k++) {
    if (has(i, ".f4e"))
      four[k] = b + k;
    else if (has(i, ".b4e"))
      four[k] = (b - k) & 7;
    else if (has(i, ".rc8"))
      four[k] = b;
    else if (has(i, ".ecl"))
      four[k] = k > b ? k : b;
    else if (has(i, ".ecr"))
      four[k] = k < b ? k : b;
    else if (has(i, ".rc16"))
      four[k] = (b & 1) * 2 + (k & 1);
    else
      four[k] = (int)(s[2] >> 4 * k & 15);
    value byte = bytes >> 8 * (four[k] & 7) & 255;
    if (four[k] & 8) byte = byte & 128 ? 255 : 0;
    r[0] |= byte << 8 * k;
  }
}

static void logic(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const char *type = type_of(i);
  bool sign = is_signed(type);
  int bits = is(i, "prmt") ? 32 : width_of(type);
  value a = s[0], b = s[1], ones = ((value)1 << bits) - 1;
  if (is(i, "and")) r[0] = a & b;
  if (is(i, "or")) r[0] = a | b;
  if (is(i, "xor")) r[0] = a ^ b;
  if (is(i, "not")) r[0] = ~a & ones;
  if (is(i, "cnot")) r[0] = a == 0;
  if (is(i, "shl")) r[0] = (b > (value)bits ? 0 : a << b) & ones;
  if (is(i, "shr")) r[0] = cut(number(a, bits, sign) >> (b > (value)bits ? bits : (int)b), bits);
  if (is(i, "prmt")) permute(i, s, r);
  if (is(i, "shf")) {
    int n = (int)(has(i, ".clamp") ? (s[2] > 32 ? 32 : s[2]) : s[2] & 31);
    value both = b << 32 | a;
    r[0] = (has(i, ".l") ? both << n >> 32 : both >> n) & UINT32_MAX;
  }
  if (is(i, "lop3")) {
    for (int k = 0; k < 32; k++) r[0] |= (s[3] >> (bit(a, k) * 4 + bit(b, k) * 2 + bit(s[2], k)) & 1) << k;
    bool some = r[0] != 0;
    r[1] = has(i, ".and") ? some && s[4] : some || s[4];
  }
}

// --- SIMD within a word (9.7.18) -----------------------------------------------------------------------------------

// The k-th number of a word, of 8 or 16 bits.
static wide element(value word, int k, int bits, bool sign) {
  return number(word >> bits * k, bits, sign);
}
static wide element_result(const instruction *i, wide a, wide b) {
  const char *m = i->mnemonic;
  if (strncmp(m, "vadd", 4) == 0) return a + b;
  if (strncmp(m, "vsub", 4) == 0) return a - b;
  if (strncmp(m, "vavrg", 5) == 0) return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
  if (strncmp(m, "vabsdiff", 8) == 0) return a < b ? b - a : a - b;
  if (strncmp(m, "vmin", 4) == 0) return a < b ? a : b;
  if (strncmp(m, "vmax", 4) == 0) return a < b ? b : a;
  return has(i, ".eq")   ? a == b
         : has(i, ".ne") ? a != b
         : has(i, ".lt") ? a < b
         : has(i, ".le") ? a <= b
         : has(i, ".gt") ? a > b
                         : a >= b;
}

static void video(const instruction *i, const value *s, value *r, uint32_t *carry) {
  const char *types = strchr(i->mnemonic, '.') + 1; // "s32.u32.s32": result, a, b; of vset a, b
  bool set = strncmp(i->mnemonic, "vset", 4) == 0;
  int count = types[-2] - '0', bits = 32 / count;
  bool sd = !set && types[0] == 's', sa = types[set ? 0 : 4] == 's', sb = types[set ? 4 : 8] == 's';
  wide sum = (wide)s[2];
  for (int k = 0; k < count; k++) {
    wide v = element_result(i, element(s[0], k, bits, sa), element(s[1], k, bits, sb));
    if (has(i, ".sat")) v = clamped(v, bits, sd);
    sum += v;
    r[0] |= cut(v, bits) << bits * k;
  }
  if (has(i, ".add")) r[0] = cut(sum, 32);
}

enum { BATCHES = 250 };

START_TEST(test_arithmetic) {
  ck_assert_uint_gt(topic_against_model("integer", NULL, arithmetic, BATCHES), 100);
}
END_TEST
START_TEST(test_bits) {
  ck_assert_uint_gt(topic_against_model("bits", NULL, bits_model, BATCHES), 20);
}
END_TEST
START_TEST(test_carries) {
  ck_assert_uint_gt(topic_against_model("carry", NULL, carries, BATCHES), 40);
}
END_TEST
START_TEST(test_logic) {
  ck_assert_uint_gt(topic_against_model("logic", NULL, logic, BATCHES), 40);
}
END_TEST

// Those on one number at a time are tested with their selectors.
static bool is_simd(const instruction *i) {
  return strchr("24", strchr(i->mnemonic, '.')[-1]) != NULL;
}

START_TEST(test_video) {
  ck_assert_uint_gt(topic_against_model("video", is_simd, video, 40), 300);
}
END_TEST

int main(void) {
  return RUN_TESTS("lanes: integers", NO_FRAME, {test_arithmetic}, {test_bits}, {test_carries}, {test_logic},
                   {test_video});
}
