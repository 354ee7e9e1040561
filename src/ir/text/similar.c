// Names that are nearly the name of something: what a message suggests.
#include "ir/text/parse.h"

enum { MAX_SIMILAR = 40 };

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

// Letters added, dropped, changed, or swapped with a neighbour: the cells of the table at most `most` off its diagonal
// are all that can count.
size_t kl_distance(kl_str a, kl_str b, size_t most) {
  if (a.n > MAX_SIMILAR || b.n > MAX_SIMILAR || a.n > b.n + most || b.n > a.n + most) return most + 1;
  size_t row[3][MAX_SIMILAR + 2];
  for (size_t j = 0; j <= least(most, b.n); j++) row[0][j] = j;
  for (size_t i = 1; i <= a.n; i++) {
    size_t *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
    size_t from = i > most ? i - most : 1, to = least(i + most, b.n);
    size_t lowest = now[from - 1] = from == 1 ? i : most + 1;
    for (size_t j = from; j <= to; j++) {
      size_t best = before[j - 1] + (a.p[i - 1] != b.p[j - 1]);
      best = least(best, now[j - 1] + 1);
      if (j < i + most) best = least(best, before[j] + 1); // else that cell is off the diagonal
      bool swapped = i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1];
      now[j] = swapped ? least(best, earlier[j - 2] + 1) : best;
      lowest = least(lowest, now[j]);
    }
    if (lowest > most) return most + 1; // also where a swap passes over the row: its first letter, changed, is in it
  }
  return least(row[a.n % 3][b.n], most + 1);
}

// What other languages call ops.
static const struct {
  const char *name;
  kl_op op;
} others[] = {
    {"arctan2", KL_OP_ATAN2},
    {"cast", KL_OP_CONVERT},
    {"clz", KL_OP_CLZ},
    {"concat", KL_OP_CONCATENATE},
    {"cos", KL_OP_COS},
    {"div", KL_OP_DIVIDE},
    {"exp", KL_OP_EXP},
    {"expm1", KL_OP_EXPM1},
    {"gte", KL_OP_GET_TUPLE_ELEMENT},
    {"log1p", KL_OP_LOG1P},
    {"max", KL_OP_MAXIMUM},
    {"min", KL_OP_MINIMUM},
    {"mod", KL_OP_REMAINDER},
    {"mul", KL_OP_MULTIPLY},
    {"neg", KL_OP_NEGATE},
    {"popcount", KL_OP_POPCNT},
    {"population-count", KL_OP_POPCNT},
    {"pow", KL_OP_POWER},
    {"rem", KL_OP_REMAINDER},
    {"sigmoid", KL_OP_LOGISTIC},
    {"sin", KL_OP_SIN},
    {"sub", KL_OP_SUBTRACT},
    {"where", KL_OP_SELECT},
};

static const kl_str ends[] = {{"", 0}, {"-start", 6}, {"-update", 7}, {"-done", 5}};

static kl_str end_of(kl_str name) {
  for (size_t i = 1; i < KL_COUNT(ends); i++) {
    kl_str end = ends[i];
    if (name.n > end.n && memcmp(name.p + name.n - end.n, end.p, end.n) == 0) return end;
  }
  return ends[0];
}

// Of short names every letter counts: nearly all of them are within two letters of each other.
static size_t allowed(size_t letters) {
  return letters < 5 ? 1 : 2;
}

// The letters of a name as a set: a change takes one out and brings one in.
static uint32_t letters_of(kl_str s) {
  uint32_t set = 0;
  for (size_t i = 0; i < s.n; i++) set |= UINT32_C(1) << (s.p[i] & 31);
  return set;
}

// False where length or letters alone tell that the names are further apart.
static bool may_be_within(size_t most, kl_str a, uint32_t a_set, size_t b_size, uint32_t b_set) {
  return a.n <= b_size + most && b_size <= a.n + most && (size_t)__builtin_popcount(a_set ^ b_set) <= 2 * most;
}

bool kl_similar_op(kl_str name, char out[64], bool *misspelt) {
  kl_str end = end_of(name);
  size_t best = allowed(name.n - end.n) + 1;
  uint32_t letters = letters_of(name), end_letters[KL_COUNT(ends)];
  for (size_t i = 0; i < KL_COUNT(others); i++)
    if (kl_str_is(name, others[i].name)) strcpy(out, kl_op_name(others[i].op));
  for (size_t i = 0; i < KL_COUNT(ends); i++) end_letters[i] = letters_of(ends[i]);
  bool known = out[0] != 0;
  *misspelt = false;
  for (kl_op op = KL_OP_UNKNOWN + 1; op < KL_OP_COUNT; op++) {
    kl_str base = kl_str_of(kl_op_name(op));
    uint32_t base_letters = letters_of(base);
    for (size_t i = 0; i < KL_COUNT(ends); i++) {
      size_t n = base.n + ends[i].n;
      if (end.n && i > 0 && ends[i].p != end.p) continue;
      if (!may_be_within(best - 1, name, letters, n, base_letters | end_letters[i])) continue;
      char text[64];
      stpcpy(stpcpy(text, base.p), ends[i].p);
      size_t d = kl_distance(name, (kl_str){text, n}, best - 1);
      if (d >= best) continue;
      best = d;
      *misspelt = true;
      if (!known) strcpy(out, text);
    }
  }
  return out[0] != 0;
}
