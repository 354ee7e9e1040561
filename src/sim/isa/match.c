#include "sim/isa/match.h"

#include "sim/isa/topics.h"

// --- the rows -----------------------------------------------------------------------------------------------------

#define FORM(executor, pattern, operands, unit, spread, grade, section)                                                \
  {pattern, operands, section, KL_UNIT_##unit, KL_SPREAD_##spread, KL_##grade},
#define X(topic, rows) static const kl_form topic##_rows[] = {rows(FORM)};
KL_LANE_TOPICS(X)
KL_MACHINE_TOPICS(X)
#undef X

const kl_topic kl_topics[] = {
#define X(topic, rows) {#topic, topic##_rows, KL_COUNT(topic##_rows)},
    KL_LANE_TOPICS(X) KL_MACHINE_TOPICS(X)
#undef X
};
const size_t kl_ntopics = KL_COUNT(kl_topics);

// --- patterns -----------------------------------------------------------------------------------------------------

// Takes one modifier of a pattern's alternative, ".ftz": true if mods[*at] is it.
static bool take_one(const char **p, const kl_ptx_instr *i, uint32_t *at) {
  const char *from = *p + 1, *end = from;
  while (*end && !strchr(".|(){}", *end)) end++;
  *p = end;
  if (*at == i->nmods || !kl_str_eq(i->mods[*at], (kl_str){from, (size_t)(end - from)})) return false;
  ++*at;
  return true;
}

// Takes a group, `{.a|.b.c}` or `(.a|.b)`: the first alternative whose modifiers stand there.
static bool take_group(const char **p, const kl_ptx_instr *i, uint32_t *at) {
  char close = **p == '{' ? '}' : ')';
  bool taken = false;
  ++*p;
  for (;;) {
    uint32_t here = *at;
    bool fits = true;
    while (**p == '.') fits &= take_one(p, i, &here);
    if (fits && !taken) *at = here, taken = true;
    if (**p == close) break;
    ++*p; // the bar
  }
  ++*p;
  return taken || close == '}';
}

static bool matches(const char *pattern, const kl_ptx_instr *i) {
  const char *p = pattern + i->opcode.n; // whose text was compared before
  uint32_t at = 0;
  while (*p) {
    if (*p == '.' ? !take_one(&p, i, &at) : !take_group(&p, i, &at)) return false;
  }
  return at == i->nmods;
}

static bool is_opcode(const char *pattern, kl_str opcode) {
  return strncmp(pattern, opcode.p, opcode.n) == 0 && strchr(".({", pattern[opcode.n]);
}

// --- modifiers ----------------------------------------------------------------------------------------------------

// clang-format off
static const struct {
  const char *name;
  uint32_t flags;
} flags[] = {
    {"rn", KL_RN}, {"rz", KL_RZ}, {"rm", KL_RM}, {"rp", KL_RP}, {"rna", KL_AWAY},
    {"rni", KL_RN}, {"rzi", KL_RZ}, {"rmi", KL_RM}, {"rpi", KL_RP},
    {"ftz", KL_FTZ}, {"sat", KL_SAT}, {"NaN", KL_NAN}, {"xorsign", KL_XORSIGN_ABS}, {"relu", KL_RELU},
    {"satfinite", KL_SATFINITE}, {"abs", KL_ABS}, {"wrap", KL_WRAP}, {"shiftamt", KL_SHIFTAMT}, {"oob", KL_OOB},
    {"eq", KL_CMP_EQ << 9}, {"ne", KL_CMP_NE << 9}, {"lt", KL_CMP_LT << 9}, {"le", KL_CMP_LE << 9}, {"gt", KL_CMP_GT << 9},
    {"ge", KL_CMP_GE << 9}, {"lo", KL_CMP_LT << 9}, {"ls", KL_CMP_LE << 9}, {"hi", KL_CMP_GT << 9}, {"hs", KL_CMP_GE << 9},
    {"equ", KL_CMP_EQU << 9}, {"neu", KL_CMP_NEU << 9}, {"ltu", KL_CMP_LTU << 9}, {"leu", KL_CMP_LEU << 9}, {"gtu", KL_CMP_GTU << 9},
    {"geu", KL_CMP_GEU << 9}, {"num", KL_CMP_NUM << 9}, {"nan", KL_CMP_ISNAN << 9},
    {"and", 1 << 13}, {"or", 2 << 13}, {"xor", 3 << 13},
};

static const struct {
  const char *name;
  kl_isa_type type;
} types[] = {
    {"pred", {1, 'p'}}, {"b8", {8, 'b'}}, {"b16", {16, 'b'}}, {"b32", {32, 'b'}}, {"b64", {64, 'b'}},
    {"b128", {128, 'b'}}, {"u8", {8, 'u'}}, {"u16", {16, 'u'}}, {"u32", {32, 'u'}}, {"u64", {64, 'u'}},
    {"s8", {8, 's'}}, {"s16", {16, 's'}}, {"s32", {32, 's'}}, {"s64", {64, 's'}}, {"f16", {16, 'f'}},
    {"bf16", {16, 'f'}}, {"f16x2", {32, 'f'}}, {"bf16x2", {32, 'f'}}, {"f32", {32, 'f'}}, {"f64", {64, 'f'}},
    {"f32x2", {64, 'f'}}, {"u16x2", {32, 'u'}}, {"s16x2", {32, 's'}}, {"tf32", {32, 'b'}},
};
// clang-format on

static uint32_t flags_of(const kl_ptx_instr *i) {
  uint32_t sum = 0;
  for (uint32_t m = 0; m < i->nmods; m++)
    for (size_t k = 0; k < KL_COUNT(flags); k++)
      if (kl_str_is(i->mods[m], flags[k].name)) sum |= flags[k].flags;
  return sum;
}

// Atomic operations are written with their modifiers in several orders: brings them into that of the rows.
static unsigned rank_of(kl_str mod) {
  static const char *const groups[] = {"relaxed acquire release acq_rel ",
                                       "cta cluster gpu sys ",
                                       "global shared shared::cta shared::cluster ",
                                       "and or xor cas exch add inc dec min max ",
                                       "noftz ",
                                       "L2::cache_hint ",
                                       "v2 v4 v8 "};
  for (unsigned k = 0; k < KL_COUNT(groups); k++) {
    const char *at = groups[k];
    for (size_t n; *at; at += n + 1) {
      n = strcspn(at, " ");
      if (kl_str_eq(mod, (kl_str){at, n})) return k;
    }
  }
  return KL_COUNT(groups);
}

enum { MOST_MODIFIERS = 16 };
static kl_ptx_instr ordered(const kl_ptx_instr *i, kl_str mods[MOST_MODIFIERS]) {
  kl_ptx_instr out = *i;
  if ((!kl_str_is(i->opcode, "atom") && !kl_str_is(i->opcode, "red")) || i->nmods > MOST_MODIFIERS) return out;
  for (uint32_t k = 0; k < i->nmods; k++) {
    uint32_t at = k;
    for (; at && rank_of(mods[at - 1]) > rank_of(i->mods[k]); at--) mods[at] = mods[at - 1];
    mods[at] = i->mods[k];
  }
  out.mods = mods;
  return out;
}

kl_match kl_isa_match(const kl_ptx_instr *given) {
  kl_match out = {0};
  kl_str mods[MOST_MODIFIERS];
  kl_ptx_instr in_order = ordered(given, mods);
  const kl_ptx_instr *i = &in_order;
  for (uint32_t t = 0; t < kl_ntopics; t++)
    for (uint32_t r = 0; r < kl_topics[t].n; r++) {
      const kl_form *f = &kl_topics[t].rows[r];
      if (!is_opcode(f->pattern, i->opcode)) continue;
      out.known_opcode = true;
      if (matches(f->pattern, i)) return (kl_match){f, t, r, flags_of(i), true};
    }
  return out;
}

bool kl_isa_has(const kl_ptx_instr *i, const char *mod) {
  for (uint32_t m = 0; m < i->nmods; m++)
    if (kl_str_is(i->mods[m], mod)) return true;
  return false;
}

static kl_isa_type type_of(kl_str mod) {
  for (size_t k = 0; k < KL_COUNT(types); k++)
    if (kl_str_is(mod, types[k].name)) return types[k].type;
  return (kl_isa_type){0};
}

kl_isa_type kl_isa_type_at(const kl_ptx_instr *i, unsigned n) {
  for (uint32_t m = 0; m < i->nmods; m++) {
    kl_isa_type t = type_of(i->mods[m]);
    if (t.bits && n-- == 0) return t;
  }
  return (kl_isa_type){0};
}
