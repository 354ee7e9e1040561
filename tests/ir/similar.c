// What messages suggest: names that are near, by a narrow table that is given up early, beside the whole one;
// broadcasts that other languages would make.
#include "support/context.h"
#include "support/draw.h"
#include "ir/text/parse.h"

#include <stdio.h>

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

// Letters added, dropped, changed, or swapped with a neighbour.
static size_t whole_distance(const char *a, const char *b) {
  static size_t d[64][64];
  size_t na = strlen(a), nb = strlen(b);
  for (size_t i = 0; i <= na; i++)
    for (size_t j = 0; j <= nb; j++) {
      size_t best = i == 0 ? j : j == 0 ? i : SIZE_MAX;
      if (i && j) best = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) best = least(best, d[i - 2][j - 2] + 1);
      d[i][j] = best;
    }
  return d[na][nb];
}

// Up to n letters added, dropped, changed or swapped.
static void edit(char *name, uint32_t n, uint32_t letters) {
  while (n--) {
    size_t size = strlen(name), at = below((uint32_t)size + 1), kind = below(4);
    char c = (char)('a' + below(letters));
    if (kind == 0 && size < 40) {
      memmove(name + at + 1, name + at, size + 1 - at);
      name[at] = c;
    } else if (kind == 1 && at < size) {
      memmove(name + at, name + at + 1, size - at);
    } else if (kind == 2 && at < size) {
      name[at] = c;
    } else if (kind == 3 && at + 1 < size) {
      char first = name[at];
      name[at] = name[at + 1];
      name[at + 1] = first;
    }
  }
}

START_TEST(distances_are_those_of_the_whole_table) {
  size_t met[5] = {0};
  seed = (uint64_t)_i;
  for (int i = 0; i < 20000; i++) {
    char a[64] = "", b[64];
    uint32_t letters = 2 + below(4), size = below(_i ? 25 : 7);
    for (uint32_t k = 0; k < size; k++) a[k] = (char)('a' + below(letters)), a[k + 1] = 0;
    strcpy(b, a);
    edit(b, below(6), letters);
    size_t most = below(4), want = least(whole_distance(a, b), most + 1);
    size_t found = kl_distance(kl_str_of(a), kl_str_of(b), most);
    EXPECT(found == want, "'%s' and '%s', at most %zu: expected %zu, found %zu", a, b, most, want, found);
    met[want]++;
  }
  for (size_t d = 0; d < KL_COUNT(met); d++) ck_assert_uint_gt(met[d], 10);
}
END_TEST

// Known names with edits: the nearest of all, by the whole table, is the one told.
START_TEST(similar_opcodes_are_the_nearest) {
  static const char *const ends[] = {"", "-start", "-update", "-done"};
  size_t told = 0;
  seed = 77;
  for (int i = 0; i < 3000; i++) {
    char name[64], other[64], similar[64] = "";
    bool misspelt;
    strcpy(name, kl_op_name((kl_op)(1 + below(KL_OP_COUNT - 1))));
    const char *end = ends[below(4)];
    if (i % 2 && strlen(name) < 30) strcat(name, end);
    edit(name, 1 + below(3), 26);
    bool has_end = false;
    for (int e = 1; e < 4; e++) {
      size_t n = strlen(name), m = strlen(ends[e]);
      has_end |= n > m && strcmp(name + n - m, ends[e]) == 0;
    }
    if (has_end || strlen(name) < 5) continue; // with rules of their own
    size_t nearest = 3;
    for (kl_op op = 1; op < KL_OP_COUNT; op++)
      for (int e = 0; e < 4; e++) {
        snprintf(other, sizeof other, "%s%s", kl_op_name(op), ends[e]);
        nearest = least(nearest, whole_distance(name, other));
      }
    bool found = kl_similar_op(kl_str_of(name), similar, &misspelt);
    EXPECT(misspelt == (nearest < 3), "'%s': expected one %zu letters away, found '%s'", name, nearest, similar);
    if (!found || !misspelt) continue;
    told++;
    EXPECT(whole_distance(name, similar) == nearest, "'%s': expected one %zu letters away, found '%s'", name, nearest,
           similar);
  }
  ck_assert_uint_gt(told, 500);
}
END_TEST

// Whole messages: nothing is suggested where no broadcast would do, and only to operations on elements.
START_TEST(broadcasts_are_suggested) {
  static const struct {
    const char *parameters, *instruction, *message;
  } rows[] = {
      {"a = f32[4,2,3] parameter(0) b = f32[2,3] parameter(1)", "add(a, b)",
       "add: expected operand 1 ('b') to have the dimensions of operand 0 (f32[4,2,3]), found f32[2,3]; nothing is "
       "broadcast unless it is written: f32[4,2,3] broadcast(b), dimensions={1,2}"},
      {"a = f32[4,2,3] parameter(0) b = f32[4,1,3] parameter(1)", "add(b, a)",
       "add: expected operand 1 ('a') to have the dimensions of operand 0 (f32[4,1,3]), found f32[4,2,3]; nothing is "
       "broadcast unless it is written: f32[4,2,3] broadcast(f32[4,3] reshape(b)), dimensions={0,2}"},
      {"a = f32[4,2,3] parameter(0) b = f32[3,2] parameter(1)", "add(a, b)",
       "add: expected operand 1 ('b') to have the dimensions of operand 0 (f32[4,2,3]), found f32[3,2]"},
      {"a = f32[4,6] parameter(0) b = f32[6] parameter(1)", "sort(a, b), dimensions={1}, to_apply=less",
       "sort: expected operand 1 ('b') to have the dimensions of operand 0 (f32[4,6]), found f32[6]"},
      {"a = f32[6] parameter(0) b = u32[4,6] parameter(1)", "bf16[6] stochastic-convert(a, b)",
       "stochastic-convert: expected operand 1 ('b') to have the dimensions of operand 0 (f32[6]), found u32[4,6]"},
  };
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    char text[1000];
    kiln_module *m = NULL;
    snprintf(text, sizeof text,
             "HloModule m\nless { p = f32[] parameter(0) q = f32[] parameter(1) s = f32[] parameter(2) "
             "t = f32[] parameter(3) ROOT r = pred[] compare(p, q), direction=LT }\nENTRY e { %s ROOT r = %s }\n",
             rows[i].parameters, rows[i].instruction);
    kiln_diagnostics_clear(cx);
    ck_assert_int_eq(kiln_module_parse(cx, "test", text, strlen(text), &m), KILN_E_INVALID);
    ck_assert_str_eq(kiln_diagnostics_get(cx, 0)->message, rows[i].message);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("similar", ONCE(make_context, drop_context), {distances_are_those_of_the_whole_table, 2},
                   {similar_opcodes_are_the_nearest}, {broadcasts_are_suggested});
}
