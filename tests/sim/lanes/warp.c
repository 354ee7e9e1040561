#include "warp.h"

#include "../../support/share.h"
#include "../../support/suite.h"
#include <stdio.h>
#include <string.h>

// --- the table -----------------------------------------------------------------------------------------------------

const lane_form lane_forms[] = {
#define ROW(executor, pattern, operands, unit, spread, grade, section)                                                 \
  {#executor, pattern, operands, section, NULL, KL_##grade},
#define TOPIC(topic, rows) {NULL, NULL, NULL, NULL, #topic, KL_EXACT}, rows(ROW)
    KL_LANE_TOPICS(TOPIC)
#undef ROW
#define GLUE(executor, operands, spread) {#executor, #executor, operands, "", NULL, KL_EXACT},
        {NULL, NULL, NULL, NULL, "glue", KL_EXACT},
    KL_ISA_GLUE(GLUE)};
const size_t lane_form_count = KL_COUNT(lane_forms);

// A topic begins with an entry of its name; a row's number counts from there.
static const char *topic_of(const lane_form *f, size_t *row) {
  const lane_form *head = f;
  while (head->executor) head--;
  *row = (size_t)(f - head) - 1;
  return head->topic;
}

kl_run *lane_executor(const kl_lane_set *set, const lane_form *f) {
  size_t row;
  const char *topic = topic_of(f, &row);
#define FIND(name, rows)                                                                                               \
  if (strcmp(topic, #name) == 0) return set->name##_rows[row];
  KL_LANE_TOPICS(FIND)
  return set->glue[row];
}

// --- mnemonics -----------------------------------------------------------------------------------------------------

// What a modifier says in kl_sim_op.flags.
static const struct {
  const char *name;
  uint32_t flags;
} modifiers[] = {
    {"rn", KL_RN},
    {"rni", KL_RN},
    {"rz", KL_RZ},
    {"rzi", KL_RZ},
    {"rm", KL_RM},
    {"rmi", KL_RM},
    {"rp", KL_RP},
    {"rpi", KL_RP},
    {"ftz", KL_FTZ},
    {"sat", KL_SAT},
    {"NaN", KL_NAN},
    {"xorsign", KL_XORSIGN_ABS},
    {"abs", KL_ABS},
    {"relu", KL_RELU},
    {"satfinite", KL_SATFINITE},
    {"rna", KL_AWAY},
    {"wrap", KL_WRAP},
    {"shiftamt", KL_SHIFTAMT},
    {"oob", KL_OOB},
    {"and", KL_AND << 13},
    {"or", KL_OR << 13},
    {"xor", KL_XOR << 13},
    {"eq", KL_CMP_EQ << 9},
    {"ne", KL_CMP_NE << 9},
    {"lt", KL_CMP_LT << 9},
    {"lo", KL_CMP_LT << 9},
    {"le", KL_CMP_LE << 9},
    {"ls", KL_CMP_LE << 9},
    {"gt", KL_CMP_GT << 9},
    {"hi", KL_CMP_GT << 9},
    {"ge", KL_CMP_GE << 9},
    {"hs", KL_CMP_GE << 9},
    {"equ", KL_CMP_EQU << 9},
    {"neu", KL_CMP_NEU << 9},
    {"ltu", KL_CMP_LTU << 9},
    {"leu", KL_CMP_LEU << 9},
    {"gtu", KL_CMP_GTU << 9},
    {"geu", KL_CMP_GEU << 9},
    {"num", KL_CMP_NUM << 9},
    {"nan", KL_CMP_ISNAN << 9},
};

static uint32_t flags_of(const char *mnemonic) {
  uint32_t flags = 0;
  for (const char *p = strchr(mnemonic, '.'); p; p = strchr(p + 1, '.')) {
    size_t n = strcspn(p + 1, ".");
    for (size_t k = 0; k < KL_COUNT(modifiers); k++) {
      if (strlen(modifiers[k].name) == n && strncmp(modifiers[k].name, p + 1, n) == 0) flags |= modifiers[k].flags;
    }
  }
  return flags;
}

bool spell(const char *pattern, size_t k, char *out, size_t n) {
  size_t at = 0;
  for (const char *p = pattern; *p;) {
    if (*p != '{' && *p != '(') {
      out[at++] = *p++;
      continue;
    }
    const char *end = strchr(p, *p == '{' ? '}' : ')');
    size_t choices = *p == '{';
    for (const char *q = p; q < end; q++) choices += q == p || *q == '|';
    size_t pick = k % choices;
    k /= choices;
    const char *from = p + 1;
    bool none = *p == '{' && pick-- == 0;
    for (; !none && pick; pick--) from = strchr(from, '|') + 1;
    while (!none && *from != '|' && from < end) out[at++] = *from++;
    p = end + 1;
  }
  EXPECT(at < n, "%s is long", pattern);
  out[at] = 0;
  return k == 0;
}

size_t spellings(const char *pattern) {
  size_t n = 1;
  for (const char *p = pattern; *p; p++) {
    if (*p != '{' && *p != '(') continue;
    size_t choices = 1 + (*p == '{');
    for (; *p != '}' && *p != ')'; p++) choices += *p == '|';
    n *= choices;
  }
  return n;
}

static int bits_of_letter(char c) {
  switch (c) {
  case 'B': return 8;
  case 'h':
  case 'H': return 16;
  case 'v':
  case 'w':
  case 'W': return 32;
  case 'l':
  case 'L': return 64;
  case 'q': return 128;
  case 'p':
  case 'P': return 1;
  default: return 0;
  }
}

// Places of the letters up to an end, `2w` twice.
static int places(const char *p, const char *end, int *bits) {
  int n = 0;
  for (; p < end; p++) {
    int count = 1;
    if (*p == '|') continue;
    if (*p == '?') break; // may be missing: it is
    if (*p >= '2' && *p <= '4') count = *p++ - '0';
    for (int k = 0; k < count; k++) bits[n++] = bits_of_letter(*p);
    if (*p == 'P') bits[n++] = 1; // p|q
  }
  return n;
}

bool instruction_at(const lane_form *f, size_t k, instruction *i) {
  *i = (instruction){.form = f};
  if (!f->pattern || !spell(f->pattern, k, i->mnemonic, sizeof i->mnemonic)) return false;
  const char *equals = strchr(f->operands, '=');
  i->results = places(f->operands, equals, i->result_bits);
  i->sources = places(equals + 1, equals + strlen(equals), i->source_bits);
  i->flags = flags_of(i->mnemonic);
  return true;
}

// A register of the letter's kind.
static char kind_of(char letter) {
  return letter == 'P' ? 'p' : letter == 'B' ? 'b' : letter == 'v' ? 'w' : (char)(letter | 32);
}

uint32_t put_operands(FILE *f, const instruction *i, const char *mnemonic) {
  const char *operands = i->form->operands, *equals = strchr(operands, '=');
  uint32_t n = 1, count = 1;
  fprintf(f, "%s %%%c0", mnemonic, kind_of(*operands));
  if (*operands == 'P' || operands[1] == '|') fputs("|%p1", f);
  for (const char *p = equals + 1; *p && *p != '?'; p++, count++) {
    int items = *p >= '2' && *p <= '4' ? *p++ - '0' : 1;
    fputs(items > 1 ? ", {" : ", ", f);
    for (int k = 0; k < items; k++) {
      if (*p == 'i')
        fputs("0x1a", f);
      else
        fprintf(f, "%s%%%c%u", k ? ", " : "", kind_of(*p), n++);
    }
    if (items > 1) fputs("}", f);
  }
  fputs(";\n", f);
  return count;
}

instruction instruction_find(const char *mnemonic, int sources) {
  for (size_t r = 0; r < lane_form_count; r++) {
    instruction i;
    for (size_t k = 0; instruction_at(&lane_forms[r], k, &i); k++) {
      if (i.sources == sources && strcmp(i.mnemonic, mnemonic) == 0) return i;
    }
  }
  ck_abort_msg("no row spells %s", mnemonic);
}

bool has(const instruction *i, const char *modifier) {
  size_t n = strlen(modifier);
  for (const char *p = strstr(i->mnemonic, modifier); p; p = strstr(p + 1, modifier)) {
    if (p[n] == 0 || p[n] == '.') return true;
  }
  return false;
}

bool is(const instruction *i, const char *opcode) {
  size_t n = strlen(opcode);
  return strncmp(i->mnemonic, opcode, n) == 0 && (i->mnemonic[n] == 0 || i->mnemonic[n] == '.');
}

// --- running -------------------------------------------------------------------------------------------------------

enum { PLACE = 64 + KL_LANES * 16 + 64, PLACES = 12, GUARD = 0xa5 };

static char *room(void) {
  static _Alignas(64) char all[PLACES * PLACE];
  return all;
}
static kl_ref place(int k) {
  return (kl_ref)(k * PLACE + 64) | KL_IN_REGISTERS;
}

static void store(char *p, int bits, const value *v) {
  uint32_t word = 0;
  for (int i = 0; i < KL_LANES; i++) {
    size_t bytes = bits == 8 ? 2 : (size_t)bits / 8;
    if (bits == 1)
      word |= (uint32_t)(v[i] & 1) << i;
    else
      memcpy(p + (size_t)i * bytes, &v[i], bytes);
  }
  if (bits == 1) memcpy(p, &word, 4);
}

static void load(const char *p, int bits, value *v) {
  for (int i = 0; i < KL_LANES; i++) {
    size_t bytes = bits == 8 ? 2 : (size_t)bits / 8;
    uint32_t word;
    v[i] = 0;
    if (bits == 1) {
      memcpy(&word, p, 4);
      v[i] = word >> i & 1;
    } else {
      memcpy(&v[i], p + (size_t)i * bytes, bytes);
    }
  }
}

static size_t bytes_of(int bits) {
  return bits == 1 ? 4 : (bits == 8 ? 16 : (size_t)bits) / 8 * KL_LANES;
}

static void set_mask(kl_lanes *x, uint32_t mask) {
  x->mask = mask;
  for (int i = 0; i < KL_LANES; i++) {
    bool on = mask >> i & 1;
    x->on16[i] = on ? UINT16_MAX : 0;
    x->on32[i] = on ? UINT32_MAX : 0;
    x->on64[i] = on ? UINT64_MAX : 0;
  }
}

void warp_run(const kl_lane_set *set, const instruction *i, warp *w) {
  static kl_lanes x;
  char *p = room();
  memset(p, GUARD, PLACES * PLACE);
  x.base[KL_IN_REGISTERS] = p;
  x.carry = w->carry;
  x.perturb = w->perturb;
  set_mask(&x, w->mask);
  kl_sim_op o = {.run = lane_executor(set, i->form),
                 .d = KL_NO_REF,
                 .e = KL_NO_REF,
                 .c = KL_NO_REF,
                 .f = KL_NO_REF,
                 .flags = i->flags | w->not_c,
                 .imm = w->constant};
  kl_ref *sources[] = {&o.a, &o.b, &o.c, &o.f, &o.e};
  kl_ref *results[] = {&o.d, &o.e, &o.c, &o.f};
  int n = 0;
  for (int k = 0; k < i->sources; k++) {
    if (i->source_bits[k] == 0) continue;
    *sources[n] = place(n);
    store(p + place(n), i->source_bits[k], w->source[k]);
    n++;
  }
  for (int k = 0; k < i->results; k++) {
    *results[k] = k == 0 && w->alias >= 0 ? *sources[w->alias] : place(MOST_SOURCES + k);
    if (k || w->alias < 0) store(p + *results[k], i->result_bits[k], w->result[k]);
  }
  static char before[PLACES * PLACE];
  memcpy(before, p, sizeof before);
  o.run(&x, &o);
  for (int k = 0; k < i->results; k++) {
    value was[KL_LANES];
    load(before + *results[k], i->result_bits[k], was);
    load(p + *results[k], i->result_bits[k], w->result[k]);
    for (int l = 0; l < KL_LANES; l++) {
      EXPECT((w->mask >> l & 1) || was[l] == w->result[k][l], "%s %s: lane %d does not execute, yet its result changes",
             set->name, i->mnemonic, l);
    }
    memcpy(before + *results[k], p + *results[k], bytes_of(i->result_bits[k]));
  }
  EXPECT(memcmp(before, p, sizeof before) == 0, "%s %s: writes outside of its results", set->name, i->mnemonic);
  EXPECT(((w->carry ^ x.carry) & ~w->mask) == 0, "%s %s: the carry of another lane changes", set->name, i->mnemonic);
  w->carry = x.carry;
}

uint64_t random_next(uint64_t *state) { // splitmix64
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// --- values --------------------------------------------------------------------------------------------------------

// Patterns with the sign cleared; each is tried with both signs. Integers of every size, and for floats zero, least
// and greatest subnormal and normal numbers, around one, halves between integers, around the ranges of integers and
// of narrower formats, infinity, quiet and signalling NaNs.
static const uint16_t edges16[] = {
    0,      1,      2,      3,      7,      8,      15,     16,     31,     32,     63,     64,     0x7f,   0x80,
    0xff,   0x100,  0x1ff,  0x3ff,  0x400,  0x401,  0x2e66, 0x3400, 0x3800, 0x3bff, 0x3c00, 0x3c01, 0x3e00, 0x4000,
    0x4100, 0x57f8, 0x5800, 0x5bf8, 0x63fe, 0x6400, 0x6401, 0x7800, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7fff, 0x3f00,
    0x3f7f, 0x3f80, 0x3f81, 0x3fc0, 0x42fe, 0x4300, 0x4f00, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x5555, 0x1234,
};
static const uint32_t edges32[] = {
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    31,
    32,
    33,
    63,
    64,
    127,
    128,
    255,
    256,
    0x7fff,
    0x8000,
    0xffff,
    0x10000,
    0x7fffff,
    0x800000,
    0x800001,
    0xffffff,
    0x1000000,
    0x33000000,
    0x33000001,
    0x33800000,
    0x38800000,
    0x387fc000,
    0x3effffff,
    0x3f000000,
    0x3f000001,
    0x3f7fffff,
    0x3f800000,
    0x3f800001,
    0x3f801000,
    0x3f803000,
    0x3f808000,
    0x3f818000,
    0x3fc00000,
    0x40000000,
    0x40200000,
    0x40600000,
    0x42fe0000,
    0x42ff0000,
    0x43000000,
    0x437f8000,
    0x43800000,
    0x46fffe00,
    0x47000000,
    0x477fe000,
    0x477ff000,
    0x477fefff,
    0x47800000,
    0x4b000000,
    0x4b000001,
    0x4effffff,
    0x4f000000,
    0x4f7fffff,
    0x4f800000,
    0x5effffff,
    0x5f000000,
    0x5f7fffff,
    0x5f800000,
    0x7e800000,
    0x7e800001,
    0x7f000000,
    0x7f7f7fff,
    0x7f7f8000,
    0x7f7fffff,
    0x7f800000,
    0x7f800001,
    0x7fbfffff,
    0x7fc00000,
    0x7fc00001,
    0x7fffffff,
    0x55555555,
    0x12345678,
    0x40490fdb,
    // near to quarters of a turn; and where functions come nearest to the middle of two numbers
    0x4096cbe4,
    0x437ce5f1,
    0x50a3e87f,
    0x6f79be45,
    0x6b9976f1,
    0x46199998,
    0x3b429d37,
    0x3cf3a937,
};
static const uint64_t edges64[] = {
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    63,
    64,
    65,
    127,
    255,
    0x7fff,
    0xffff,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    0x1fffffffffffff,
    0x20000000000001,
    0xfffffffffffff,
    0x10000000000000,
    0x3690000000000000,
    0x36a0000000000000,
    0x380fffffe0000000,
    0x3810000000000000,
    0x3fdfffffffffffff,
    0x3fe0000000000000,
    0x3fefffffffffffff,
    0x3ff0000000000000,
    0x3ff0000000000001,
    0x3ff0000010000000,
    0x3ff0000030000000,
    0x3ff8000000000000,
    0x4000000000000000,
    0x4004000000000000,
    0x405fc00000000000,
    0x4060000000000000,
    0x40dfffe000000000,
    0x40effdffffffffff,
    0x40effe0000000000,
    0x41dfffffffc00000,
    0x41dfffffffe00000,
    0x41e0000000000000,
    0x41efffffffe00000,
    0x41f0000000000000,
    0x4330000000000001,
    0x43dfffffffffffff,
    0x43e0000000000000,
    0x43efffffffffffff,
    0x43f0000000000000,
    0x47efffffefffffff,
    0x47effffff0000000,
    0x47f0000000000000,
    0x7fe0000000000000,
    0x7fefffffffffffff,
    0x7ff0000000000000,
    0x7ff0000000000001,
    0x7ff8000000000000,
    0x7ff8000000000123,
    0x7fffffffffffffff,
    0x5555555555555555,
    0x123456789abcdef0,
};

size_t edge_count(int bits) {
  return bits == 1    ? 2
         : bits <= 16 ? 2 * KL_COUNT(edges16)
         : bits == 32 ? 2 * KL_COUNT(edges32)
                      : 2 * KL_COUNT(edges64);
}

uint64_t edge(int bits, size_t j) {
  if (bits == 1) return j & 1;
  uint64_t v = bits <= 16 ? edges16[j / 2] : bits == 32 ? edges32[j / 2] : edges64[j / 2];
  int width = bits < 16 ? 16 : bits > 64 ? 64 : bits;
  return v | (uint64_t)(j & 1) << (width - 1);
}

// A float whose exponent is near that of one.
static uint64_t usual(uint64_t *state, int bits) {
  uint64_t r = random_next(state);
  int fraction = bits == 16 ? 10 : bits == 32 ? 23 : 52, bias = bits == 16 ? 15 : bits == 32 ? 127 : 1023;
  uint64_t exponent = (uint64_t)(bias - 5 + (int)(random_next(state) % 11));
  return (r & ((1ull << fraction) - 1)) | exponent << fraction | (r >> 63) << (bits - 1);
}

uint64_t draw_value(uint64_t *state, int bits) {
  uint64_t r = random_next(state), mask = bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
  switch (r >> 60 & 3) {
  case 0: return edge(bits, (size_t)(r % edge_count(bits)));
  case 1: return bits == 16 || bits == 32 || bits == 64 ? usual(state, bits) : random_next(state) & mask;
  case 2: return random_next(state) & mask & 255; // amounts of shifts, small numbers
  default: return random_next(state) & (bits == 8 ? 0xffff : mask);
  }
}

// --- against a model -----------------------------------------------------------------------------------------------

// Edges meet edges: warps go through the pairs in the first two sources, the rest is drawn. Of n pairs the next one is
// `step` places on.
typedef struct edge_pairs {
  size_t na, n, step, tried;
} edge_pairs;
static edge_pairs pairs_of(const instruction *i) {
  size_t na = edge_count(i->source_bits[0]), n = na * (i->sources > 1 ? edge_count(i->source_bits[1]) : 1);
  return (edge_pairs){na, n, (size_t)share_step(n), 0};
}

static void fill(const instruction *i, warp *w, uint64_t *state, edge_pairs *p) {
  for (int l = 0; l < KL_LANES; l++) {
    for (int k = 0; k < i->sources; k++) {
      value high = i->source_bits[k] == 128 ? random_next(state) : 0;
      w->source[k][l] = draw_value(state, i->source_bits[k] ? i->source_bits[k] : 8) | high << 64;
    }
    if (p->tried < p->n) {
      size_t pair = p->tried++ * p->step % p->n;
      w->source[0][l] = edge(i->source_bits[0], pair % p->na);
      if (i->sources > 1 && i->source_bits[1]) w->source[1][l] = edge(i->source_bits[1], pair / p->na);
    }
  }
  for (int k = 0; k < i->results; k++)
    for (int l = 0; l < KL_LANES; l++) w->result[k][l] = draw_value(state, i->result_bits[k]);
  uint64_t r = random_next(state);
  w->mask = r % 4 ? KL_ALL_LANES : (uint32_t)(r >> 32) | 1;
  w->carry = (uint32_t)random_next(state);
  w->not_c = (has(i, ".and") || has(i, ".or") || has(i, ".xor")) && r >> 8 & 1 ? KL_NOT_C : 0;
  w->constant = 0;
  for (int k = 0; k < i->sources; k++) {
    if (i->source_bits[k]) continue;
    w->constant = random_next(state) & 255;
    for (int l = 0; l < KL_LANES; l++) w->source[k][l] = w->constant;
  }
}

static const char *text_of(value v) {
  static char text[4][40];
  static int at;
  at = (at + 1) & 3;
  snprintf(text[at], sizeof text[at], "%llx.%llx", (unsigned long long)(v >> 64), (unsigned long long)v);
  return strncmp(text[at], "0.", 2) == 0 ? text[at] + 2 : text[at];
}

static void check_lane(const kl_lane_set *set, const instruction *i, const warp *before, const warp *after, int l,
                       const value *expected, uint32_t carry) {
  for (int k = 0; k < i->results; k++) {
    if (after->result[k][l] == expected[k]) continue;
    char sources[200] = "";
    for (int s = 0; s < i->sources; s++) snprintf(sources + strlen(sources), 44, " %s", text_of(before->source[s][l]));
    ck_abort_msg("%s %s%s of%s: result %d is %s, expected %s", set->name, i->mnemonic, before->not_c ? " !c" : "",
                 sources, k, text_of(after->result[k][l]), text_of(expected[k]));
  }
  EXPECT((after->carry >> l & 1) == carry, "%s %s: the carry is %u", set->name, i->mnemonic, after->carry >> l & 1);
}

// The first result shares a source's register where they are as wide.
static int pick_alias(const instruction *i, uint64_t batch) {
  int k = (int)(batch % 5) - 1;
  return k >= 0 && k < i->sources && i->source_bits[k] == i->result_bits[0] && i->source_bits[k] > 1 ? k : -1;
}

static void check_warp(const instruction *i, model_fn *model, const warp *w) {
  size_t n;
  const kl_lane_set *const *sets = kl_lanes_sets(&n);
  value expected[KL_LANES][MOST_RESULTS];
  uint32_t carry[KL_LANES];
  for (int l = 0; l < KL_LANES; l++) {
    value s[MOST_SOURCES] = {0};
    for (int k = 0; k < i->sources; k++) // of a negated predicate the operation sees the opposite
      s[k] = w->source[k][l] ^ (i->source_bits[k] == 1 && w->not_c ? 1 : 0);
    carry[l] = w->carry >> l & 1;
    memset(expected[l], 0, sizeof expected[l]);
    if (w->mask >> l & 1) model(i, s, expected[l], &carry[l]);
  }
  for (size_t s = 0; s < n; s++) {
    static warp after;
    after = *w;
    warp_run(sets[s], i, &after);
    for (int l = 0; l < KL_LANES; l++) {
      if (w->mask >> l & 1) check_lane(sets[s], i, w, &after, l, expected[l], carry[l]);
    }
  }
}

void against_model_of(const instruction *i, model_fn *model, int batches, draw_fn *draw) {
  uint64_t state = 1;
  edge_pairs pairs = pairs_of(i);
  for (uint64_t b = 0, n = share_of((uint64_t)batches); b < n; b++) {
    static warp w;
    memset(&w, 0, sizeof w);
    fill(i, &w, &state, &pairs);
    if (draw) draw(&state, i, b, &w);
    w.alias = pick_alias(i, b);
    check_warp(i, model, &w);
  }
}
void against_model(const instruction *i, model_fn *model, int batches) {
  against_model_of(i, model, batches, NULL);
}

// Of a pair the upper half goes the other way. Of 8 bits all are tried whatever the share.
static void over_all_operands(const instruction *i, model_fn *model, unsigned every) {
  int bits = i->source_bits[0] == 8 ? 8 : 16;
  ck_assert_int_le(i->source_bits[0], 32);
  for (uint32_t first = 0; first < 1u << bits; first += KL_LANES) {
    static warp w;
    uint64_t state = first;
    edge_pairs none = {0};
    if (bits > 8 && !share_has(first / KL_LANES, every)) continue;
    memset(&w, 0, sizeof w);
    fill(i, &w, &state, &none);
    for (uint32_t l = 0; l < KL_LANES; l++)
      w.source[0][l] = i->source_bits[0] == 32 ? (~(first + l) << 16 | (first + l)) : first + l;
    w.mask = KL_ALL_LANES;
    w.alias = -1;
    check_warp(i, model, &w);
  }
}

// Calls one of both for each instruction of a topic; `every`: over all operands.
static size_t over_topic(const char *topic, bool (*wanted)(const instruction *), model_fn *model, int batches,
                         unsigned every) {
  size_t row, n = 0;
  for (size_t r = 0; r < lane_form_count; r++) {
    instruction i;
    for (size_t k = 0; instruction_at(&lane_forms[r], k, &i); k++) {
      if (strcmp(topic_of(&lane_forms[r], &row), topic) != 0 || (wanted && !wanted(&i))) continue;
      if (every)
        over_all_operands(&i, model, every);
      else
        against_model(&i, model, batches);
      n++;
    }
  }
  return n;
}

size_t topic_against_model(const char *topic, bool (*wanted)(const instruction *), model_fn *model, int batches) {
  return over_topic(topic, wanted, model, batches, 0);
}

size_t topic_over_all_operands(const char *topic, bool (*wanted)(const instruction *), model_fn *model,
                               unsigned every) {
  return over_topic(topic, wanted, model, 0, every);
}
