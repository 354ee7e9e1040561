#include "sim/isa/match.h"

#include "sim/isa/refused.h"
#include "sim/isa/topics.h"
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>

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

const kl_refusal kl_refusals[] = {
#define X(...) {__VA_ARGS__},
    KL_ISA_REFUSED(X)
#undef X
};
const size_t kl_nrefusals = KL_COUNT(kl_refusals);

// --- names --------------------------------------------------------------------------------------------------------

// Opcodes whose first modifiers belong to the name: they stand right behind it.
static const char *const names[] = {
    "bar.arrive",
    "bar.cta",
    "bar.cta.arrive",
    "bar.cta.red",
    "bar.red",
    "bar.warp",
    "barrier.arrive",
    "barrier.cluster.arrive",
    "barrier.cluster.wait",
    "barrier.cta",
    "barrier.cta.arrive",
    "barrier.cta.red",
    "barrier.red",
    "brx.idx",
    "cp.async",
    "cp.async.commit_group",
    "cp.async.wait_all",
    "cp.async.wait_group",
    "createpolicy.cvt",
    "createpolicy.fractional",
    "createpolicy.range",
    "cvt.pack",
    "cvta.to",
    "div.full",
    "dp2a.hi",
    "dp2a.lo",
    "fence.proxy",
    "mad.hi",
    "mad.lo",
    "mad.wide",
    "mad24.hi",
    "mad24.lo",
    "madc.hi",
    "madc.lo",
    "membar.proxy",
    "mul.hi",
    "mul.lo",
    "mul.wide",
    "mul24.hi",
    "mul24.lo",
    "shf.l",
    "shf.r",
};

// The longest of them that a text of an opcode and its modifiers begins with, or the opcode.
static size_t name_length(const char *text) {
  size_t best = strcspn(text, ".({");
  for (size_t k = 0; k < KL_COUNT(names); k++) {
    size_t n = strlen(names[k]);
    if (n > best && strncmp(text, names[k], n) == 0 && (!text[n] || strchr(".({", text[n]))) best = n;
  }
  return best;
}

// The name of an instruction, and how many modifiers belong to it; longer ones than any are cut off.
enum { MOST_NAME = 64 };
static kl_str name_of(const kl_ptx_instr *i, char text[MOST_NAME], uint32_t *taken) {
  size_t n = i->opcode.n < MOST_NAME ? i->opcode.n : MOST_NAME - 1;
  memcpy(text, i->opcode.p, n);
  for (uint32_t m = 0; m < i->nmods && n + 1 + i->mods[m].n < MOST_NAME; m++) {
    text[n++] = '.';
    memcpy(text + n, i->mods[m].p, i->mods[m].n);
    n += i->mods[m].n;
  }
  text[n] = 0;
  kl_str name = {text, name_length(text)};
  for (const char *p = text; p < text + name.n; p++) *taken += *p == '.';
  return name;
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
    {"e4m3x2", {16, 'f'}}, {"e5m2x2", {16, 'f'}}, {"e2m3x2", {16, 'f'}}, {"e3m2x2", {16, 'f'}}, {"e2m1x2", {8, 'f'}},
    {"ue8m0x2", {16, 'f'}}, {"e4m3x4", {32, 'f'}}, {"e5m2x4", {32, 'f'}}, {"e2m3x4", {32, 'f'}}, {"e3m2x4", {32, 'f'}},
    {"e2m1x4", {16, 'f'}}, {"u2", {2, 'u'}}, {"s2", {2, 's'}}, {"u4", {4, 'u'}}, {"s4", {4, 's'}},
};
// clang-format on

static uint32_t flags_of(const kl_ptx_instr *i) {
  uint32_t sum = 0;
  for (uint32_t m = 0; m < i->nmods; m++)
    for (size_t k = 0; k < KL_COUNT(flags); k++)
      if (kl_str_is(i->mods[m], flags[k].name)) sum |= flags[k].flags;
  return sum;
}

// --- patterns -----------------------------------------------------------------------------------------------------

static kl_isa_type type_of(kl_str mod) {
  for (size_t k = 0; k < KL_COUNT(types); k++)
    if (kl_str_is(mod, types[k].name)) return types[k].type;
  return (kl_isa_type){0};
}

// The modifiers of an instruction that no part of a pattern has taken yet.
enum { MOST_MODIFIERS = 32 };
typedef struct rest {
  const kl_ptx_instr *i;
  uint32_t free;  // a bit for each
  uint32_t types; // those that are types
} rest;

// Takes one modifier of a pattern's alternative, ".ftz", if it is there: of types only the next one.
static bool take_one(const char **p, rest *r) {
  const char *from = *p + 1, *end = from;
  while (*end && !strchr(".|(){}", *end)) end++;
  *p = end;
  bool first = true;
  for (uint32_t left = r->free; left; left &= left - 1) {
    unsigned m = (unsigned)__builtin_ctz(left);
    bool type = r->types >> m & 1;
    if ((!type || first) && kl_str_eq(r->i->mods[m], (kl_str){from, (size_t)(end - from)})) {
      r->free &= ~(1u << m);
      return true;
    }
    first &= !type;
  }
  return false;
}

// Takes a group, `{.a|.b.c}` or `(.a|.b)`: the first alternative whose modifiers are there.
static bool take_group(const char **p, rest *r) {
  char close = **p == '{' ? '}' : ')';
  bool taken = false;
  ++*p;
  for (;;) {
    rest here = *r;
    bool fits = true;
    while (**p == '.') fits &= take_one(p, &here);
    if (fits && !taken) *r = here, taken = true;
    if (**p == close) break;
    ++*p; // the bar
  }
  ++*p;
  return taken || close == '}';
}

static bool matches(const char *p, rest r) {
  while (*p) {
    if (*p == '.' ? !take_one(&p, &r) : !take_group(&p, &r)) return false;
  }
  return r.free == 0;
}

// May an instruction have so many operands? Rows without letters are the decoder's to judge.
static bool takes(const char *operands, uint32_t n) {
  uint32_t least = 0, most = 0;
  bool optional = false;
  if (!strchr(operands, '=')) return true;
  for (const char *p = operands; *p; p++) {
    if (*p == '?') optional = true;
    if (*p == '|')
      p++;
    else if (isalpha((unsigned char)*p))
      most++, least += !optional;
  }
  return n >= least && n <= most;
}

// --- the index ----------------------------------------------------------------------------------------------------

typedef struct entry {
  kl_str name;
  uint16_t topic, row;
} entry;

typedef struct known {
  const kl_ptx_instr *like; // NULL: a free place
  kl_match match;
} known;

struct kl_isa_index {
  kl_ctx *cx;
  known *found; // by the hash of the text; a power of two of places, at most half of them used
  size_t places, used;
};

static int by_name(const kl_str *a, const kl_str *b) {
  int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);
  return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

static int by_name_and_place(const void *a, const void *b) {
  const entry *x = a, *y = b;
  int c = by_name(&x->name, &y->name);
  return c ? c : x->topic != y->topic ? x->topic - y->topic : x->row - y->row;
}

enum { FIRST_PLACES = 256 };

// All rows by name, then in the table's order: the same for every module, so that they are sorted once.
enum {
  ROWS = 0
#define X(topic, rows) +(int)KL_COUNT(topic##_rows)
  KL_LANE_TOPICS(X) KL_MACHINE_TOPICS(X)
#undef X
};
static entry sorted[ROWS];

static void sort_rows(void) {
  entry *to = sorted;
  for (size_t t = 0; t < kl_ntopics; t++)
    for (size_t r = 0; r < kl_topics[t].n; r++) {
      const char *pattern = kl_topics[t].rows[r].pattern;
      *to++ = (entry){{pattern, name_length(pattern)}, (uint16_t)t, (uint16_t)r};
    }
  qsort(sorted, ROWS, sizeof *sorted, by_name_and_place);
}

kl_isa_index *kl_isa_index_new(kl_ctx *cx) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, sort_rows);
  kl_isa_index *x = kl_alloc(cx, sizeof *x);
  x->cx = cx;
  x->places = FIRST_PLACES;
  x->found = kl_alloc(cx, x->places * sizeof *x->found);
  return x;
}

void kl_isa_index_free(kl_isa_index *x) {
  kl_free(x->cx, x->found, x->places * sizeof *x->found);
  kl_free(x->cx, x, sizeof *x);
}

// The first of the rows of a name, or the first of a later one.
static size_t first_of(kl_str name) {
  size_t low = 0, high = ROWS;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (by_name(&sorted[middle].name, &name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Begins the instruction with the opcode and modifiers of this name?
static bool is_named(const kl_ptx_instr *i, const char *name) {
  size_t n = strcspn(name, ".");
  if (!kl_str_eq(i->opcode, (kl_str){name, n})) return false;
  uint32_t m = 0;
  for (const char *p = name + n; *p; p += n) {
    n = strcspn(++p, ".");
    if (m == i->nmods || !kl_str_eq(i->mods[m++], (kl_str){p, n})) return false;
  }
  return true;
}

static const kl_refusal *refusal_of(const kl_ptx_instr *i) {
  for (size_t k = 0; k < kl_nrefusals; k++)
    if (is_named(i, kl_refusals[k].name)) return &kl_refusals[k];
  return NULL;
}

static kl_match match_of(const kl_ptx_instr *i) {
  char text[MOST_NAME];
  uint32_t taken = 0;
  kl_str name = name_of(i, text, &taken);
  kl_match out = {0};
  out.refused = refusal_of(i);
  if (i->nmods > MOST_MODIFIERS) return out;
  rest r = {.i = i};
  for (uint32_t m = taken; m < i->nmods; m++) {
    r.free |= 1u << m;
    r.types |= (uint32_t)(type_of(i->mods[m]).bits != 0) << m;
  }
  for (size_t k = first_of(name); k < ROWS && kl_str_eq(sorted[k].name, name); k++) {
    const entry *e = &sorted[k];
    const kl_form *f = &kl_topics[e->topic].rows[e->row];
    out.known_opcode = true;
    if (!matches(f->pattern + name.n, r)) continue;
    bool fits = takes(f->operands, i->noperands);
    if (fits || !out.form)
      out = (kl_match){.form = f, .topic = e->topic, .row = e->row, .flags = flags_of(i), .known_opcode = true};
    if (fits) break;
  }
  return out;
}

static bool is_alike(const kl_ptx_instr *a, const kl_ptx_instr *b) {
  if (!kl_str_eq(a->opcode, b->opcode) || a->nmods != b->nmods || a->noperands != b->noperands) return false;
  for (uint32_t m = 0; m < a->nmods; m++)
    if (!kl_str_eq(a->mods[m], b->mods[m])) return false;
  return true;
}

// Where what is known of such an instruction stands, or is to stand.
static known *place_of(kl_isa_index *x, const kl_ptx_instr *i) {
  uint64_t hash = kl_hash(i->opcode.p, i->opcode.n, i->noperands);
  for (uint32_t m = 0; m < i->nmods; m++) hash = kl_hash(i->mods[m].p, i->mods[m].n, hash);
  size_t at = hash & (x->places - 1);
  while (x->found[at].like && !is_alike(x->found[at].like, i)) at = (at + 1) & (x->places - 1);
  return &x->found[at];
}

static void grow(kl_isa_index *x) {
  known *old = x->found;
  size_t n = x->places;
  x->places = 2 * n;
  x->found = kl_alloc(x->cx, x->places * sizeof *x->found);
  for (size_t k = 0; k < n; k++)
    if (old[k].like) *place_of(x, old[k].like) = old[k];
  kl_free(x->cx, old, n * sizeof *old);
}

kl_match kl_isa_match(kl_isa_index *x, const kl_ptx_instr *i) {
  known *at = place_of(x, i);
  if (at->like) return at->match;
  *at = (known){i, match_of(i)};
  kl_match out = at->match;
  if (++x->used > x->places / 2) grow(x);
  return out;
}

// --- modifiers of an instruction ----------------------------------------------------------------------------------

bool kl_isa_has(const kl_ptx_instr *i, const char *mod) {
  for (uint32_t m = 0; m < i->nmods; m++)
    if (kl_str_is(i->mods[m], mod)) return true;
  return false;
}

kl_isa_type kl_isa_type_at(const kl_ptx_instr *i, unsigned n) {
  for (uint32_t m = 0; m < i->nmods; m++) {
    kl_isa_type t = type_of(i->mods[m]);
    if (t.bits && n-- == 0) return t;
  }
  return (kl_isa_type){0};
}

// --- operands -----------------------------------------------------------------------------------------------------

bool kl_isa_next_letter(const char **p, kl_isa_letter *out) {
  *out = (kl_isa_letter){.count = 1};
  if (**p == '?') out->optional = true, ++*p;
  if (**p >= '2' && **p <= '9') out->count = (unsigned)(*(*p)++ - '0');
  switch (**p) {
  case 'p': out->bits = 1; break;
  case 'P': out->bits = 1, out->pair = true; break;
  case 'B': out->bits = 8, out->wider = true; break;
  case 'h': out->bits = 16; break;
  case 'H': out->bits = 16, out->wider = true; break;
  case 'w': out->bits = 32; break;
  case 'v': out->bits = 32, out->selected = true; break;
  case 'W': out->bits = 32, out->wider = true; break;
  case 'l': out->bits = 64; break;
  case 'L': out->bits = 64, out->wider = true; break;
  case 'q': out->bits = 128; break;
  case 'i': out->constant = true; break;
  default: return false;
  }
  ++*p;
  if (**p == '|') out->second = true, *p += 2;
  return true;
}
