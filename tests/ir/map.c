// Maps: text in all forms, findings, simplification row by row, operations.
//
// Rows of simplification are cases known from practice with such maps. Where kiln's answer is another one than
// elsewhere, a comment beside the row says why.
#include "map_support.h"

// --- text ---------------------------------------------------------------------------------------------------------

// Read, then printed.
static const struct {
  const char *in, *out;
} texts[] = {
    {"UNDEFINED", "UNDEFINED"},
    {"KNOWN EMPTY", "KNOWN EMPTY"},
    {"() -> ()", "() -> ()"},
    {"(d0) -> (), domain: d0 in [1, 0]", "KNOWN EMPTY"},
    {"() -> (), domain: 0 in [10, 15]", "KNOWN EMPTY"},
    {"() -> (), domain: -1 in [0, 1]", "KNOWN EMPTY"},
    {"() -> (), domain: 12 in [10, 15]", "() -> ()"},
    {"(d0, d1) -> (d0 mod 2 + d1), domain: d0 in [0, 3], d1 in [-4, 7]",
     "(d0, d1) -> (d0 mod 2 + d1), domain: d0 in [0, 3], d1 in [-4, 7]"},
    {"()[s0, s1, s2] -> (s2, s0 + s1, s1), domain: s0 in [0, 1], s1 in [0, 1], s2 in [0, 3]", NULL},
    {"(){rt0} -> (rt0), domain: rt0 in [0, 1]", NULL},
    {"(d0){rt0, rt1} -> (d0 + rt0), domain: d0 in [0, 1], rt0 in [0, 2], rt1 in [3, 7]", NULL},
    {"(d0)[s0]{rt0} -> (d0 + rt0, s0), domain: d0 in [0, 1], s0 in [0, 3], rt0 in [0, 9], d0 + s0 in [1, 10]", NULL},
    {"(bl_x, th_x)[vec] -> (bl_x / 100663296, th_x * 4 + vec), domain: bl_x in [0, 2415919103], th_x in [0, 127], "
     "vec in [0, 3]",
     "(bl_x, th_x)[vec] -> (bl_x / 100663296, th_x * 4 + vec), domain: bl_x in [0, 2415919103], th_x in [0, 127], "
     "vec in [0, 3]"},
    {"(d0) -> ((d0 + 1) * 7 - (2 - d0) * 3, -d0, -(d0 / 2)), domain: d0 in [0, 9]",
     "(d0) -> (d0 * 10 + 1, -d0, -(d0 / 2)), domain: d0 in [0, 9]"},
    {"(d0) -> (min(d0, 3), max(d0, min(-d0 + 7, 2)), d0 ceildiv 4), domain: d0 in [0, 9]",
     "(d0) -> (min(3, d0), max(d0, -max(-2, d0 - 7)), d0 ceildiv 4), domain: d0 in [0, 9]"},
    // a name that is another variable's default, and one spelled like its own
    {"(d1, d0) -> (d1), domain: d1 in [0, 1], d0 in [0, 2]", NULL},
    {"(x, d1)[y] -> (x + d1 + y), domain: x in [0, 1], d1 in [0, 1], y in [0, 1]", NULL},
    // bounds at the ends of 64 bits
    {"(d0) -> (d0), domain: d0 in [-9223372036854775808, 9223372036854775807]", NULL},
    {"(d0) -> (d0 - 9223372036854775807, -9223372036854775808), domain: d0 in [0, 1]", NULL},
    // the sign of a mod's argument is not left to guesses
    {"(d0) -> ((-d0) mod 2), domain: d0 in [0, 9]", NULL},
    {"(d0) -> ((d0 mod 20) mod 7, (d0 mod 20) / 7), domain: d0 in [0, 999]", NULL},
    {"(d0) -> (d0 / -7, d0 ceildiv -2, d0 mod -3), domain: d0 in [0, 9]",
     "(d0) -> (-(d0 ceildiv 7), -(d0 / 2), d0 mod 3), domain: d0 in [0, 9]"},
    // the multi-line form, commas and all its habits
    {"(d0, d1)[s0] -> (d0 floordiv 8, d1 mod 4 + s0),\ndomain:\nd0 in [0, 3],\nd1 in [0, 7]\ns0 in [0, 1],\n"
     "d0 mod 2 in [0, 0],\n",
     "(d0, d1)[s0] -> (d0 / 8, d1 mod 4 + s0), domain: d0 in [0, 3], d1 in [0, 7], s0 in [0, 1], d0 mod 2 in [0, 0]"},
    {"(d0) -> (d0)\ndomain:\nd0 in [0, 3]\n", "(d0) -> (d0), domain: d0 in [0, 3]"},
    {"(d0, d1) -> ((100d0 + 10d1) floorDiv 100), domain: d0 in [0, 9] d1 in [0, 9]",
     "(d0, d1) -> (d1 / 10 + d0), domain: d0 in [0, 9], d1 in [0, 9]"},
    // attribute forms
    {"#xla_gpu.indexing_map<\"(d0) -> (d0), domain: d0 in [0, 3], is_simplified: true\">",
     "(d0) -> (d0), domain: d0 in [0, 3]"},
    {"#xla.indexing_map<\"(d0) -> (d0), domain: d0 in [0, 3]\">", "(d0) -> (d0), domain: d0 in [0, 3]"},
    {"#xla.indexing_map<\"() -> ()\">", "() -> ()"},
    // a variable's own bounds a second time
    {"(d0) -> (d0 mod 16), domain: d0 in [0, 31], d0 in [2, 40]", "(d0) -> (d0 mod 16), domain: d0 in [2, 31]"},
    // constraints in order of their text, joined where they are of one expression
    {"(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d1 * 2 + d0 in [0, 9], d0 mod 3 in [0, 1], "
     "d0 + d1 * 2 in [3, 12]",
     "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 mod 3 in [0, 1], d1 * 2 + d0 in [3, 9]"},
};

START_TEST(text_is_read_and_printed) {
  const kl_map *m = read_map(texts[_i].in);
  const char *out = texts[_i].out ? texts[_i].out : texts[_i].in, *found = print_map(m);
  ck_assert_msg(strcmp(found, out) == 0, "%s\nprinted  %s\nexpected %s", texts[_i].in, found, out);
  ck_assert_str_eq(print_map(read_map(found)), found);
  const char *lines = print_form(m, KL_MAP_LINES);
  ck_assert_str_eq(print_map(read_map(lines)), found);
}
END_TEST

START_TEST(lines_are_printed) {
  const kl_map *m = read_map("(d0)[s0] -> (d0 / 8, s0), domain: d0 in [0, 9], s0 in [0, 1], d0 mod 8 in [1, 2]");
  ck_assert_str_eq(print_form(m, KL_MAP_LINES), "(d0)[s0] -> (d0 floordiv 8, s0),\ndomain:\nd0 in [0, 9],\n"
                                                "s0 in [0, 1],\nd0 mod 8 in [1, 2]");
}
END_TEST

static const struct {
  const char *text;
  kiln_status status;
  unsigned line, column;
  const char *message;
} wrong[] = {
    {"", KILN_E_INVALID, 1, 1, "expected '(' and the names of the dims, found the end of the text"},
    {"(d0", KILN_E_INVALID, 1, 4, "expected ',' or ')', found the end of the text"},
    {"(d0, d0) -> ()", KILN_E_INVALID, 1, 6, "a second variable 'd0'"},
    {"(mod) -> ()", KILN_E_INVALID, 1, 2, "expected a variable's name, found 'mod'"},
    {"(d0) (d0)", KILN_E_INVALID, 1, 6, "expected '->', found '('"},
    {"(d0) -> (d0)", KILN_E_INVALID, 1, 13,
     "expected 'domain:' and the bounds of every variable, found the end of the text"},
    {"(d0) -> (d1), domain: d0 in [0, 1]", KILN_E_INVALID, 1, 10, "'d1' is not one of the map's variables"},
    {"(d0) -> (d0 +), domain: d0 in [0, 1]", KILN_E_INVALID, 1, 14, "expected an expression, found ')'"},
    {"(d0) -> ((d0), domain: d0 in [0, 1]", KILN_E_INVALID, 1, 16, "expected an expression, found 'domain'"},
    {"(d0) -> (d0 d0), domain: d0 in [0, 1]", KILN_E_INVALID, 1, 13, "expected ',', ')' or an operator, found 'd0'"},
    {"(d0, d1) -> (d0), domain: d1 in [0, 1]", KILN_E_INVALID, 1, 27, "expected the bounds of 'd0', found 'd1'"},
    {"(d0) -> (d0), domain:\n d0 on [0, 1]", KILN_E_INVALID, 2, 5, "expected 'in' and an interval, found 'on'"},
    {"(d0) -> (d0), domain: d0 in [0; 1]", KILN_E_INVALID, 1, 31, "expected ',' and the upper bound, found ';'"},
    {"(d0) -> (d0), domain: d0 in [x, 1]", KILN_E_INVALID, 1, 30, "expected an integer, found 'x'"},
    {"(d0) -> (d0), domain: d0 in [0, 1] }", KILN_E_INVALID, 1, 36, "expected an expression, found '}'"},
    {"(d0) -> (d0 / 0), domain: d0 in [0, 1]", KILN_E_INVALID, 1, 10, "division by 0"},
    {"(d0) -> (d0 mod 0), domain: d0 in [0, 1]", KILN_E_INVALID, 1, 10, "division by 0"},
    {"(d0) -> (min(d0)), domain: d0 in [0, 1]", KILN_E_INVALID, 1, 16, "expected ',' and a second argument, found ')'"},
    {"(d0) -> (d0 * 9223372036854775807 * 2), domain: d0 in [0, 1]", KILN_E_UNSUPPORTED, 1, 10,
     "a coefficient or constant leaves 64 bits"},
    {"(d0) -> (9223372036854775808), domain: d0 in [0, 1]", KILN_E_UNSUPPORTED, 1, 10,
     "integers go up to 64 bits, found '9223372036854775808'"},
    {"(d0) -> (d0), domain: d0 in [0, 99999999999999999999]", KILN_E_UNSUPPORTED, 1, 33,
     "integers go up to 64 bits, found '99999999999999999999'"},
    {"#xla.indexing_map<\"() -> ()\"", KILN_E_INVALID, 1, 29, "expected '>', found the end of the text"},
    {"#<() -> ()>", KILN_E_INVALID, 1, 2, "expected the attribute's name, found '<'"},
    {"KNOWN", KILN_E_INVALID, 1, 6, "expected 'EMPTY', found the end of the text"},
    {"() -> (), is_simplified: maybe", KILN_E_INVALID, 1, 26, "expected true or false, found 'maybe'"},
    {"() -> () garbage", KILN_E_INVALID, 1, 10, "expected the end, found 'garbage'"},
    {"(d0) -> (d0 \xc3\xa9), domain: d0 in [0, 1]", KILN_E_INVALID, 1, 13, NULL},
};

START_TEST(wrong_text_gets_a_finding) {
  kl_source src = {"map", {wrong[_i].text, strlen(wrong[_i].text)}};
  const kl_map *m;
  kiln_diagnostics_clear(cx);
  ck_assert_msg(kl_map_parse(pool, &src, &m) == wrong[_i].status, "status of %s", wrong[_i].text);
  ck_assert_ptr_null(m);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
  const kiln_diagnostic *d = kiln_diagnostics_get(cx, 0);
  ck_assert_msg(d->line == wrong[_i].line && d->column == wrong[_i].column, "%s\n%s", wrong[_i].text, d->text);
  if (wrong[_i].message) ck_assert_str_eq(d->message, wrong[_i].message);
}
END_TEST

// Nested beyond the limit, and names, terms, digits without end: a finding each, and no long time.
START_TEST(monstrous_text_gets_a_finding) {
  static const char *const unit[] = {"(", "-", "min(d0, ", "d0 / 2 + ((", "9"};
  for (size_t i = 0; i < KL_COUNT(unit); i++) {
    kl_sb b;
    const kl_map *m;
    kl_sb_init(&b, cx);
    kl_sb_puts(&b, "(d0) -> (");
    for (int n = 0; n < 100000; n++) kl_sb_puts(&b, unit[i]);
    kl_source src = {"map", {b.p, b.n}};
    kiln_diagnostics_clear(cx);
    ck_assert(kl_map_parse(pool, &src, &m) == KILN_E_UNSUPPORTED);
    ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
    kl_sb_free(&b);
  }
}
END_TEST

// --- simplification -----------------------------------------------------------------------------------------------

static const struct {
  const char *in, *out; // out NULL: in
} rows[] = {
    // Four examples: a division that is never more than 0; decimal digits; common factors; a reversal.
    {"(d0, d1) -> (d0 + d1 floordiv 16, d1 mod 16), domain: d0 in [0, 6], d1 in [0, 14]",
     "(d0, d1) -> (d0, d1), domain: d0 in [0, 6], d1 in [0, 14]"},
    {"(d0, d1, d2) -> ((100d0 + 10d1 + d2) floorDiv 100, ((100d0 + 10d1 + d2) mod 100) floordiv 10, d2 mod 10), "
     "domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 9]",
     "(d0, d1, d2) -> (d0, d1, d2), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 9]"},
    {"(d0, d1, d2) -> ((16d0 + 4d1 + d2) floordiv 8, (16d0 + 4d1 + d2) mod 8), domain: d0 in [0, 9], d1 in [0, 9], "
     "d2 in [0, 9]",
     "(d0, d1, d2) -> (d0 * 2 + (d1 * 4 + d2) / 8, (d1 * 4 + d2) mod 8), domain: d0 in [0, 9], d1 in [0, 9], "
     "d2 in [0, 9]"},
    {"(d0, d1) -> (-((-11d0 - d1 + 109) floordiv 11) + 9), domain: d0 in [0, 9], d1 in [0, 10]",
     "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 10]"},
    // The same without the parentheses that the example leaves out: a sign binds closer than a division.
    {"(d0, d1) -> (-(-11d0 - d1 + 109) floordiv 11 + 9), domain: d0 in [0, 9], d1 in [0, 10]",
     "(d0, d1) -> ((d1 + 1) / 11 + d0 - 1), domain: d0 in [0, 9], d1 in [0, 10]"},
    // Constraints become bounds.
    {"(d0) -> (d0), domain: d0 in [0, 99], d0 mod 8 + 5 in [6, 10]",
     // d0 = 0 is out too: its residue is 0
     "(d0) -> (d0), domain: d0 in [1, 99], d0 mod 8 in [1, 5]"},
    {"(d0) -> (d0), domain: d0 in [0, 99], d0 mod 8 + 5 in [50, 54]", "KNOWN EMPTY"},
    {"(d0)[s0, s1] -> (d0), domain: d0 in [0, 1999], s0 in [0, 1], s1 in [0, 2], d0 * 6 + s0 * 3 + s1 in [0, 599]",
     "(d0)[s0, s1] -> (d0), domain: d0 in [0, 99], s0 in [0, 1], s1 in [0, 2]"},
    // The bound of d0 follows although the constraint has to stay.
    {"(d0)[s0, s1] -> (d0), domain: d0 in [0, 1999], s0 in [0, 1], s1 in [0, 2], d0 * 6 + s0 * 3 + s1 in [0, 598]",
     "(d0)[s0, s1] -> (d0), domain: d0 in [0, 99], s0 in [0, 1], s1 in [0, 2], d0 * 6 + s0 * 3 + s1 in [0, 598]"},
    {"(d0)[s0] -> (d0, s0), domain: d0 in [0, 199], s0 in [-99, 99], d0 / 8 in [5, 11], s0 / 3 in [-11, -5]",
     "(d0)[s0] -> (d0, s0), domain: d0 in [40, 95], s0 in [-33, -13]"},
    // [15, 35] elsewhere, as if floor(s0 / -3) were -floor(s0 / 3): s0 = 13 gives -5 and is in
    {"()[s0] -> (s0), domain: s0 in [-99, 99], s0 / -3 in [-11, -5]", "()[s0] -> (s0), domain: s0 in [13, 33]"},
    {"(d0)[s0] -> (d0, s0), domain: d0 in [0, 199], s0 in [-99, 99], d0 * 8 in [14, 33], s0 * 3 in [-11, -5]",
     "(d0)[s0] -> (d0, s0), domain: d0 in [2, 4], s0 in [-3, -2]"},
    {"()[s0] -> (s0), domain: s0 in [-99, 99], s0 * -3 in [-11, -5]", "()[s0] -> (s0), domain: s0 in [2, 3]"},
    // Residue classes: bounds on the class, classes of one expression joined.
    {"(d0)[s0, s1] -> (d0, s1, s0), domain: d0 in [0, 3], s0 in [-21, -2], s1 in [0, 10], d0 mod 3 in [0, 0], "
     "s0 mod 2 in [0, 0], s0 mod 3 in [0, 0], s1 mod 5 in [1, 1]",
     "(d0)[s0, s1] -> (d0, s1, s0), domain: d0 in [0, 3], s0 in [-18, -6], s1 in [1, 6], d0 mod 3 in [0, 0], "
     "s0 mod 6 in [0, 0], s1 mod 5 in [1, 1]"},
    // [-15, -3] elsewhere, from a remainder that truncates
    {"()[s0] -> (s0), domain: s0 in [-21, -2], s0 mod 6 in [3, 3]",
     "()[s0] -> (s0), domain: s0 in [-21, -3], s0 mod 6 in [3, 3]"},
    // [5, -1], and not noticed as empty, elsewhere
    {"(d0) -> (d0), domain: d0 in [1, 4], d0 mod 6 in [5, 5]", "KNOWN EMPTY"},
    {"()[s0] -> (s0), domain: s0 in [0, 99], s0 mod 6 in [3, 3], s0 mod 7 in [5, 5]",
     "()[s0] -> (s0), domain: s0 in [33, 75], s0 mod 42 in [33, 33]"},
    {"()[s0] -> (s0), domain: s0 in [0, 99], s0 mod 6 in [3, 3], s0 mod 4 in [2, 2]", "KNOWN EMPTY"},
    {"()[s0] -> (s0), domain: s0 in [0, 99], (s0 * 3) mod 7 in [2, 2]",
     "()[s0] -> (s0), domain: s0 in [3, 94], s0 mod 7 in [3, 3]"},
    {"(d0) -> (d0), domain: d0 in [0, 9], (d0 - 5) mod 1 in [0, 0]", "(d0) -> (d0), domain: d0 in [0, 9]"},
    {"(d0) -> (d0), domain: d0 in [5, 5]", "(d0) -> (5), domain: d0 in [5, 5]"},
    // d0 * 4 + s0 with s0 from 1 on: to take d0 in [0, 2] from the upper bound alone would let d0 = 2 in
    {"(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [1, 3], d0 * 4 + s0 in [0, 8]",
     "(d0)[s0] -> (d0), domain: d0 in [0, 1], s0 in [1, 3]"},
    {"(d0)[s0] -> (d0), domain: d0 in [0, 3], s0 in [0, 19], s0 / 20 in [2, 2]", "KNOWN EMPTY"},
    // Expressions.
    {"(d0, d1) -> (((d0 / 3) * 3 + d1 / 2) / 6), domain: d0 in [0, 11], d1 in [0, 5]",
     "(d0, d1) -> (d0 / 6), domain: d0 in [0, 11], d1 in [0, 5]"},
    {"(d0) -> (d0 mod 42), domain: d0 in [53, 71]", "(d0) -> (d0 - 42), domain: d0 in [53, 71]"},
    {"(d0) -> (d0 mod 5), domain: d0 in [-5, -1]", "(d0) -> (d0 + 5), domain: d0 in [-5, -1]"},
    {"(d0) -> (d0 mod 5), domain: d0 in [-4, 0]", NULL},
    {"(d0) -> (d0 mod 5), domain: d0 in [-6, -1]", NULL},
    {"(d0)[s0] -> (d0 - (s0 / 3) * 3 + s0), domain: d0 in [0, 1], s0 in [0, 3]",
     "(d0)[s0] -> (s0 mod 3 + d0), domain: d0 in [0, 1], s0 in [0, 3]"},
    {"(d0)[s0] -> (d0 - (s0 / 3) * 12 + s0 * 7), domain: d0 in [0, 1], s0 in [0, 3]",
     "(d0)[s0] -> ((s0 mod 3) * 4 + s0 * 3 + d0), domain: d0 in [0, 1], s0 in [0, 3]"},
    {"(d0)[s0] -> (1 + d0 - ((s0 + 1) / 3) * 3 + s0), domain: d0 in [0, 1], s0 in [0, 3]",
     "(d0)[s0] -> ((s0 + 1) mod 3 + d0), domain: d0 in [0, 1], s0 in [0, 3]"},
    {"(d0, d1) -> (d0 + d1 / 16, d1 mod 16), domain: d0 in [0, 6], d1 in [0, 15]",
     "(d0, d1) -> (d0, d1), domain: d0 in [0, 6], d1 in [0, 15]"},
    {"(d0, d1, d2) -> ((100d0 + 10d1 + d2) / 100, ((100d0 + 10d1 + d2) mod 100) / 10, d2 mod 10), domain: "
     "d0 in [0, 8], d1 in [0, 8], d2 in [0, 8]",
     "(d0, d1, d2) -> (d0, d1, d2), domain: d0 in [0, 8], d1 in [0, 8], d2 in [0, 8]"},
    {"(d0, d1) -> (-((-11d0 - d1 + 109) / 11) + 9, d0 * 11 + d1 + ((-11d0 - d1 + 109) / 11) * 11 - 99), domain: "
     "d0 in [0, 7], d1 in [0, 8]",
     "(d0, d1) -> (d0, d1), domain: d0 in [0, 7], d1 in [0, 8]"},
    {"()[s0] -> ((128s0) mod 715 + ((128s0) / 715) * 715), domain: s0 in [0, 9999]",
     "()[s0] -> (s0 * 128), domain: s0 in [0, 9999]"},
    {"(d0, d1) -> ((d0 mod 8) * 128 + d1 + (d0 / 8) * 1024), domain: d0 in [0, 99], d1 in [0, 127]",
     "(d0, d1) -> (d0 * 128 + d1), domain: d0 in [0, 99], d1 in [0, 127]"},
    {"(d0, d1) -> (((2d1 + d0 / 64) mod 3) * 256 + (d0 mod 64) * 4 + ((128d1 + d0) / 192) * 768), domain: "
     "d0 in [0, 127], d1 in [0, 3071]",
     "(d0, d1) -> (d0 * 4 + d1 * 512), domain: d0 in [0, 127], d1 in [0, 3071]"},
    {"(d0, d1) -> ((d0 / 1536) * 786432 + (((2d0 + d1 / 64) / 3) mod 1024) * 768 + ((2d0 + d1 / 64) mod 3) * 256 + "
     "(d1 mod 64) * 4), domain: d0 in [0, 3071], d1 in [0, 127]",
     "(d0, d1) -> (d0 * 512 + d1 * 4), domain: d0 in [0, 3071], d1 in [0, 127]"},
    {"()[s0] -> ((128s0) mod 715 + ((64s0) / 715) * 715), domain: s0 in [0, 127]",
     "()[s0] -> (((s0 * 64) / 715) * 715 + (s0 * 128) mod 715), domain: s0 in [0, 127]"},
    {"()[s0] -> (-(s0 / 144) + (32s0 + 4639) / 4608), domain: s0 in [0, 99999]",
     "()[s0] -> (1), domain: s0 in [0, 99999]"},
    {"()[s0] -> (-(s0 / 315) + (2s0 - 40319) / 630 + 65), domain: s0 in [0, 10000]",
     "()[s0] -> (1), domain: s0 in [0, 10000]"},
    {"()[s0] -> (s0 - ((s0 / 2) / 7) * 14 + (s0 / 14) * 14), domain: s0 in [0, 1233]",
     "()[s0] -> (s0), domain: s0 in [0, 1233]"},
    {"(d0, d1) -> ((2d0 + d1) mod 2), domain: d0 in [0, 9], d1 in [0, 9]",
     "(d0, d1) -> (d1 mod 2), domain: d0 in [0, 9], d1 in [0, 9]"},
    {"(d0) -> ((d0 / 16) * 16 + d0 mod 16), domain: d0 in [0, 99]", "(d0) -> (d0), domain: d0 in [0, 99]"},
    {"()[s0, s1] -> ((2s0 + s1 / 64) / 3), domain: s0 in [0, 99], s1 in [0, 999]",
     "()[s0, s1] -> ((s0 * 128 + s1) / 192), domain: s0 in [0, 99], s1 in [0, 999]"},
    // (2 * s0 + 3) / 6 elsewhere: 2 divides the divisor and the factor, so that the odd constant cannot matter
    {"()[s0] -> ((6s0 + 9) / 18), domain: s0 in [0, 99]", "()[s0] -> ((s0 + 1) / 3), domain: s0 in [0, 99]"},
    {"()[s0, s1] -> ((s0 / 3 + s1 / 3) / 6), domain: s0 in [0, 99], s1 in [0, 99]", NULL},
    {"()[s0] -> ((16s0 - 497) / 512), domain: s0 in [0, 4]", "()[s0] -> (-1), domain: s0 in [0, 4]"},
    // Two divisions elsewhere. floor(floor(s/2) / -7) is -ceil(floor(s/2) / 7) = -floor((floor(s/2) + 6) / 7): one.
    {"()[s0] -> ((s0 / 2) / -7), domain: s0 in [0, 99]", "()[s0] -> (-((s0 + 12) / 14)), domain: s0 in [0, 99]"},
    // s0 * 114688 elsewhere: coefficients are reduced modulo the divisor
    {"()[s0, s1, s2, s3] -> ((458752s0 + s1 + 4s2 + 512s3) mod 20000), domain: s0 in [0, 871], s1 in [0, 3], "
     "s2 in [0, 127], s3 in [0, 895]",
     "()[s0, s1, s2, s3] -> (((s0 * 4688 + s3 * 128 + s2) mod 5000) * 4 + s1), domain: s0 in [0, 871], s1 in [0, 3], "
     "s2 in [0, 127], s3 in [0, 895]"},
    {"()[s0, s1] -> ((16s0 - (s1 / 4) / 2 + (s1 / 8) * 2) / 4), domain: s0 in [0, 1], s1 in [0, 127]",
     "()[s0, s1] -> (s0 * 4 + s1 / 32), domain: s0 in [0, 1], s1 in [0, 127]"},
    {"(d0) -> ((-d0) mod 2), domain: d0 in [0, 9]", NULL},
    {"(d0) -> (min(d0, d0 + 1)), domain: d0 in [0, 9]", "(d0) -> (d0), domain: d0 in [0, 9]"},
    {"(d0) -> (min(10, d0), max(10, d0)), domain: d0 in [0, 5]", "(d0) -> (d0, 10), domain: d0 in [0, 5]"},
    {"(d0, d1) -> (min(128, 32d0 + d1 / 64 + 1), max(128, 32d0 + d1 / 64 + 1)), domain: d0 in [0, 3], d1 in [0, 2047]",
     "(d0, d1) -> (d0 * 32 + d1 / 64 + 1, 128), domain: d0 in [0, 3], d1 in [0, 2047]"},
    // A divisor that may be 0 keeps its points out, whatever the rest comes to.
    {"(d0, d1) -> (d0), domain: d0 in [0, 11], d1 in [0, 0], min(0, (d1 / d0) * 2) in [0, 9]",
     "(d0, d1) -> (d0), domain: d0 in [0, 11], d1 in [0, 0], 0 / d0 in [0, 0], "
     "min(0, 0 / d0) in [0, 0]"},
    {"(d0, d1) -> (d0), domain: d0 in [0, 11], d1 in [0, 85], min(0, d1) * (d1 / d0) in [-9, 9]",
     "(d0, d1) -> (d0), domain: d0 in [0, 11], d1 in [0, 85], (d1 / d0) * (min(0, d1)) in [0, 0]"},
    {"(d0, d1) -> (d0), domain: d0 in [0, 11], d1 in [0, 85], min(0, d1) * (d1 / (d0 + 1)) in [-9, 9]",
     "(d0, d1) -> (d0), domain: d0 in [0, 11], d1 in [0, 85]"},
    {"(d0, d1) -> (d1 / d0 - (d1 + d1 / 86) / d0), domain: d0 in [0, 11], d1 in [0, 85]",
     "(d0, d1) -> (d1 / d0 - ((d1 * 87) / 86) / d0), domain: d0 in [0, 11], d1 in [0, 85]"},
    // Values beyond 64 bits on the way have no single value, though both bounds end where int64 does.
    {"(d0, d1) -> ((max(d0, -(d1 / 5) * 8 + 9223372036854775807) * 1000000000000000000) / (-d0 - 3)), "
     "domain: d0 in [31, 127], d1 in [0, 9223372036854575807]",
     NULL},
    // A mod beside what is left of its floor.
    {"(d0) -> (d0 * 32768 - (d0 / 256) * 8388607), domain: d0 in [0, 1048575]",
     "(d0) -> ((d0 mod 256) * 32768 + d0 / 256), domain: d0 in [0, 1048575]"},
    {"(d0) -> (d0), domain: d0 in [0, 1048575], d0 * 32768 - (d0 / 256) * 8388607 in [0, 8388607]",
     "(d0) -> (d0), domain: d0 in [0, 1048575]"},
    {"(d0, d1) -> (d0), domain: d0 in [0, 11], d1 in [0, 85], (d1 + d1 / d0) mod 2 in [0, 1]",
     "(d0, d1) -> (d0), domain: d0 in [0, 11], d1 in [0, 85], (d1 / d0 + d1) mod 2 in [0, 1]"},
    // What a constraint says of a part is used in the whole.
    {"(d0, d1) -> ((86d0 + d1) / 1024), domain: d0 in [0, 11], d1 in [0, 85], 86d0 + d1 in [0, 1023]",
     "(d0, d1) -> (0), domain: d0 in [0, 11], d1 in [0, 85], d0 * 86 + d1 in [0, 1023]"},
    {"(d0) -> ((d0 / 8) * 8, d0 mod 4, d0 mod 16), domain: d0 in [0, 999], d0 mod 8 in [3, 3]",
     "(d0) -> (d0 - 3, 3, d0 mod 16), domain: d0 in [3, 995], d0 mod 8 in [3, 3]"},
    {"(d0, d1) -> (d0), domain: d0 in [0, 99], d1 in [0, 99], d0 - d1 in [1, 50], d1 - d0 in [1, 50]", "KNOWN EMPTY"},
    {"(d0, d1) -> (d0), domain: d0 in [0, 99], d1 in [0, 99], d0 + d1 in [0, 9], d0 * 2 + d1 in [0, 100]",
     "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [0, 9]"},
    // A minimum from below is each of its arguments from below.
    {"(d0, d1) -> (d0), domain: d0 in [0, 99], d1 in [0, 99], min(d0, d1) in [7, 200]",
     "(d0, d1) -> (d0), domain: d0 in [7, 99], d1 in [7, 99]"},
    // A condition on a runtime variable stays, and helps elsewhere.
    {"(d0){rt0} -> (rt0 / 4, d0), domain: d0 in [0, 9], rt0 in [0, 9], rt0 in [4, 7]",
     "(d0){rt0} -> (1, d0), domain: d0 in [0, 9], rt0 in [0, 9], rt0 in [4, 7]"},
    {"(d0){rt0} -> (rt0, d0), domain: d0 in [0, 9], rt0 in [4, 9], rt0 in [1, 3]", "KNOWN EMPTY"},
    // A mod that would wrap around keeps its shift.
    {"(d0) -> (d0), domain: d0 in [0, 99], (d0 + 2) mod 8 in [3, 5], (d0 + 2) mod 16 in [0, 3]",
     "(d0) -> (d0), domain: d0 in [1, 97], (d0 + 2) mod 16 in [0, 3], d0 mod 8 in [1, 3]"},
    // Passing through [10,10,10] -> [50,20] -> [10,10,10].
    {"(d0, d1, d2) -> (((d0 * 100 + d1 * 10 + d2) / 20 * 20 + (d0 * 100 + d1 * 10 + d2) mod 20) / 100, "
     "((d0 * 100 + d1 * 10 + d2) / 20 * 20 + (d0 * 100 + d1 * 10 + d2) mod 20) / 10 mod 10, "
     "((d0 * 100 + d1 * 10 + d2) / 20 * 20 + (d0 * 100 + d1 * 10 + d2) mod 20) mod 10), domain: d0 in [0, 9], "
     "d1 in [0, 9], d2 in [0, 9]",
     "(d0, d1, d2) -> (d0, d1, d2), domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 9]"},
};

START_TEST(rows_simplify) {
  const kl_map *m = read_map(rows[_i].in), *s = kl_map_simplify(pool, m, 0);
  const char *out = rows[_i].out ? rows[_i].out : rows[_i].in;
  ck_assert_msg(same_text(print_map(s), out), "%s\nfound    %s\nexpected %s", rows[_i].in, print_map(s), out);
  const char *why = "";
  kl_truth same = kl_map_equal(pool, m, s, KL_MAP_QUOTA, &why);
  ck_assert_msg(same == KL_YES, "%s\nsimplified is not proved equal: %s", rows[_i].in, why);
}
END_TEST

// Unchanged by a second call, whatever became of them in the first.
START_TEST(simplifying_settles) {
  static const char *const settled[] = {
      "(d0)[s0] -> ((d0 + d0 mod 3) / 3 + s0 + (2s0) mod 3 + (d0 + s0) mod 3), domain: d0 in [0, 9], s0 in [0, 19]",
      "(d0)[s0] -> (((s0 + d0) + d0) / 2), domain: d0 in [0, 9], s0 in [0, 19]",
      ("(d0, d1) -> (d0 mod 7 + (d1 + d0 mod 3) / 5), domain: d0 in [-50, 99], d1 in [0, 1000], (d0 + d1) mod 4 in [1, "
       "2]"),
  };
  for (size_t i = 0; i < KL_COUNT(settled); i++) {
    const char *once = print_map(kl_map_simplify(pool, read_map(settled[i]), 0));
    ck_assert_str_eq(print_map(kl_map_simplify(pool, read_map(once), 0)), once);
  }
}
END_TEST

START_TEST(points_are_kept_on_request) {
  const kl_map *m = read_map("(d0, d1) -> (d0, d0 * 32 + d1, d0 / 2), domain: d0 in [5, 5], d1 in [0, 31]");
  ck_assert_str_eq(print_map(kl_map_simplify(pool, m, KL_MAP_KEEP_POINTS)),
                   "(d0, d1) -> (d0, d0 * 32 + d1, 2), domain: d0 in [5, 5], d1 in [0, 31]");
}
END_TEST

// --- operations ---------------------------------------------------------------------------------------------------

static const struct {
  const char *first, *second, *composed, *simplified;
} compositions[] = {
    {"(d0)[s0] -> (d0, s0), domain: d0 in [0, 4], s0 in [0, 6]",
     "(d0, d1)[s0, s1] -> (d1, d0, s1, s0), domain: d0 in [0, 4], d1 in [0, 6], s0 in [0, 1], s1 in [0, 5]",
     "(d0)[s0, s1, s2] -> (s2, d0, s1, s0), domain: d0 in [0, 4], s0 in [0, 1], s1 in [0, 5], s2 in [0, 6]",
     "(d0)[s0, s1, s2] -> (s2, d0, s1, s0), domain: d0 in [0, 4], s0 in [0, 1], s1 in [0, 5], s2 in [0, 6]"},
    {"(d0)[s0] -> (d0, s0), domain: d0 in [0, 7], s0 in [0, 6]",
     "(d0, d1)[s0, s1] -> (d1, d0, s1, s0), domain: d0 in [0, 4], d1 in [0, 9], s0 in [0, 1], s1 in [0, 5]",
     "(d0)[s0, s1, s2] -> (s2, d0, s1, s0), domain: d0 in [0, 4], s0 in [0, 1], s1 in [0, 5], s2 in [0, 6]", NULL},
    {"(d0)[s0] -> (d0, s0), domain: d0 in [0, 9], s0 in [0, 7], d0 + s0 in [0, 20], d0 mod 8 in [0, 0], "
     "s0 mod 4 in [0, 0]",
     "(d0, d1)[s0, s1] -> (d1, d0, s1, s0), domain: d0 in [0, 49], d1 in [0, 59], s0 in [0, 69], s1 in [0, 19], "
     "d0 mod 8 in [0, 0], s0 mod 3 in [1, 1]",
     "(d0)[s0, s1, s2] -> (s2, d0, s1, s0), domain: d0 in [0, 9], s0 in [0, 69], s1 in [0, 19], s2 in [0, 7], "
     "d0 + s2 in [0, 20], d0 mod 8 in [0, 0], s0 mod 3 in [1, 1], s2 mod 4 in [0, 0]",
     "(d0)[s0, s1, s2] -> (s2, d0, s1, s0), domain: d0 in [0, 8], s0 in [1, 67], s1 in [0, 19], s2 in [0, 4], "
     "d0 mod 8 in [0, 0], s0 mod 3 in [1, 1], s2 mod 4 in [0, 0]"},
    {"(d0, d1)[s] -> (0, d1, s), domain: d0 in [0, 0], d1 in [0, 1], s in [0, 31]",
     "(d0, d1, d2){rt0, rt1, rt2} -> (d0 + rt0, d1 + rt1, d2 + rt2), domain: d0 in [0, 0], d1 in [0, 1], "
     "d2 in [0, 31], rt0 in [0, 0], rt1 in [0, 1], rt2 in [0, 226]",
     "(d0, d1)[s]{rt0, rt1, rt2} -> (rt0, d1 + rt1, s + rt2), domain: d0 in [0, 0], d1 in [0, 1], s in [0, 31], "
     "rt0 in [0, 0], rt1 in [0, 1], rt2 in [0, 226]",
     // rt0 has one value
     "(d0, d1)[s]{rt0, rt1, rt2} -> (0, d1 + rt1, s + rt2), domain: d0 in [0, 0], d1 in [0, 1], s in [0, 31], "
     "rt0 in [0, 0], rt1 in [0, 1], rt2 in [0, 226]"},
    {"(d0, d1){cs_0, cs_1} -> (d0 + cs_0 * 2, d1 + cs_1 * 3), domain: d0 in [0, 25], d1 in [0, 16], cs_0 in [0, 25], "
     "cs_1 in [0, 16]",
     "(d0, d1){ps_0, ps_1} -> (d0 + ps_0, d1 + 4 * ps_1), domain: d0 in [0, 24], d1 in [0, 15], ps_0 in [0, 2], "
     "ps_1 in [0, 1]",
     "(d0, d1){ps_0, ps_1, cs_0, cs_1} -> (cs_0 * 2 + d0 + ps_0, ps_1 * 4 + cs_1 * 3 + d1), domain: d0 in [0, 25], "
     "d1 in [0, 16], ps_0 in [0, 2], ps_1 in [0, 1], cs_0 in [0, 25], cs_1 in [0, 16], cs_0 * 2 + d0 in [0, 24], "
     "cs_1 * 3 + d1 in [0, 15]",
     NULL},
    {"(d0) -> (d0), domain: d0 in [0, 9]", "KNOWN EMPTY", "UNDEFINED", NULL}, // it has no dims
    {"(d0) -> (d0), domain: d0 in [0, 9]", "(d0) -> (d0), domain: d0 in [3, 2]", "KNOWN EMPTY", NULL},
    {"(d0) -> (d0), domain: d0 in [0, 9]", "UNDEFINED", "UNDEFINED", NULL},
};

START_TEST(maps_compose) {
  const kl_map *m = kl_map_compose(pool, read_map(compositions[_i].first), read_map(compositions[_i].second));
  ck_assert_msg(same_text(print_map(m), compositions[_i].composed), "found    %s\nexpected %s", print_map(m),
                compositions[_i].composed);
  const char *out = compositions[_i].simplified;
  if (!out) return;
  const char *found = print_map(kl_map_simplify(pool, m, 0));
  ck_assert_msg(same_text(found, out), "found    %s\nexpected %s", found, out);
}
END_TEST

static const kl_map *bound(const char *text, uint32_t rt, uint64_t id, const kl_aff *index) {
  kl_map m = *read_map(text);
  kl_map_var v[8];
  const kl_aff *list[1] = {index};
  memcpy(v, m.vars[KL_AFF_RT], m.nvars[KL_AFF_RT] * sizeof *v);
  v[rt].from = (kl_producer){id, NULL, index ? 1 : 0, kl_arena_dup(&arena, list, sizeof list)};
  m.vars[KL_AFF_RT] = v;
  return kl_map_make(pool, &m);
}

// Position means nothing: variables follow what they are bound to, indices are rewritten, and one value is one
// variable.
START_TEST(runtime_variables_keep_their_identity) {
  const char *outer = "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 4]";
  const char *inner = "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 7], rt0 in [0, 100]";
  const kl_map *m = kl_map_compose(pool, bound(outer, 0, 21, NULL), bound(inner, 0, 11, NULL));
  ck_assert_uint_eq(m->nvars[KL_AFF_RT], 2);
  ck_assert_uint_eq(m->vars[KL_AFF_RT][0].from.id, 11); // the inner slice's start, [0, 100], is the inner one's
  ck_assert_int_eq(m->vars[KL_AFF_RT][0].in.hi, 100);
  ck_assert_uint_eq(m->vars[KL_AFF_RT][1].from.id, 21);
  m = kl_map_compose(pool, bound(outer, 0, 11, NULL), bound(inner, 0, 11, NULL));
  ck_assert_uint_eq(m->nvars[KL_AFF_RT], 1);
  ck_assert_str_eq(print_map(m),
                   "(d0){rt0} -> (rt0 * 2 + d0), domain: d0 in [0, 3], rt0 in [0, 4], d0 + rt0 in [0, 7]");
  // the element at d0 of the inner map is the one at d0 + rt0 of the outer map's point
  m = kl_map_compose(pool, bound(outer, 0, 21, NULL), bound(inner, 0, 11, kl_aff_dim(pool, 0)));
  ck_assert_ptr_eq(m->vars[KL_AFF_RT][0].from.index[0], kl_aff_add(pool, kl_aff_dim(pool, 0), kl_aff_rt(pool, 1)));
  // bound alike in another order: equal
  const char *two = "(d0){rt0, rt1} -> (d0 + rt0 + rt1 * 2), domain: d0 in [0, 99], rt0 in [0, 40], rt1 in [0, 90]";
  const char *turned = "(d0){rt0, rt1} -> (d0 + rt1 + rt0 * 2), domain: d0 in [0, 99], rt0 in [0, 90], rt1 in [0, 40]";
  kl_map a = *bound(two, 0, 5, NULL), b = *bound(turned, 0, 6, NULL);
  ((kl_map_var *)a.vars[KL_AFF_RT])[1].from.id = 6;
  ((kl_map_var *)b.vars[KL_AFF_RT])[1].from.id = 5;
  ck_assert_int_eq(kl_map_equal(pool, &a, &b, KL_MAP_QUOTA, NULL), KL_YES);
  ((kl_map_var *)b.vars[KL_AFF_RT])[1].from.id = 7;
  ck_assert_int_eq(kl_map_equal(pool, &a, &b, KL_MAP_QUOTA, NULL), KL_NO);
}
END_TEST

static const struct {
  const char *in;
  bool dims;
  const char *out, *removed; // per kind, 1 for what went: "10|0|"
} unused[] = {
    {"(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 99], d0 + s0 in [1, 100], s0 mod 3 in [0, 0]", true, NULL,
     "0|0|"},
    {"(d0)[s0, s1] -> (s0, d0), domain: d0 in [0, 9], s0 in [0, 9], s1 in [0, 9], s1 mod 3 in [0, 0]", true,
     "(d0)[s0] -> (s0, d0), domain: d0 in [0, 9], s0 in [0, 9]", "0|01|"},
    {"(d0)[s0, s1] -> (s0), domain: d0 in [0, 49], s0 in [0, 69], s1 in [0, 19], d0 mod 3 in [0, 0]", true,
     "()[s0] -> (s0), domain: s0 in [0, 69]", "1|01|"},
    {"(d0)[s0, s1] -> (s0), domain: d0 in [0, 49], s0 in [0, 69], s1 in [0, 19], d0 mod 3 in [0, 0]", false,
     "(d0)[s0] -> (s0), domain: d0 in [0, 49], s0 in [0, 69], d0 mod 3 in [0, 0]", "0|01|"},
    {"(d0)[s0, s1, s2, s3, s4] -> (d0 * 4 + s1 + s3 - 42), domain: d0 in [0, 31], s0 in [0, 0], s1 in [0, 1], "
     "s2 in [0, 2], s3 in [0, 3], s4 in [0, 4], d0 * 4 + s1 + s3 in [24, 459]",
     false,
     "(d0)[s0, s1] -> (d0 * 4 + s0 + s1 - 42), domain: d0 in [0, 31], s0 in [0, 1], s1 in [0, 3], "
     "d0 * 4 + s0 + s1 in [24, 459]",
     "0|10101|"},
    {"(d0)[s0, s1, s2]{rt0, rt1} -> (d0 * 4 + s1 + rt0 - 42), domain: d0 in [0, 31], s0 in [0, 0], s1 in [0, 1], "
     "s2 in [0, 2], rt0 in [0, 3], rt1 in [0, 4], d0 * 4 + s1 + rt0 in [24, 459]",
     false,
     "(d0)[s0]{rt0} -> (d0 * 4 + s0 + rt0 - 42), domain: d0 in [0, 31], s0 in [0, 1], rt0 in [0, 3], "
     "d0 * 4 + s0 + rt0 in [24, 459]",
     "0|101|01"},
    {"(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d3, d5, d7), domain: d0 in [0, 0], d1 in [0, 1], d2 in [0, 2], "
     "d3 in [0, 3], d4 in [0, 4], d5 in [0, 5], d6 in [0, 6], d7 in [0, 7]",
     true, "(d0, d1, d2, d3) -> (d0, d1, d2, d3), domain: d0 in [0, 1], d1 in [0, 3], d2 in [0, 5], d3 in [0, 7]",
     "10101010||"},
    // A constraint on a runtime variable is a condition: for other values there is nothing.
    {"(d0){rt0} -> (d0), domain: d0 in [0, 9], rt0 in [0, 9], rt0 in [2, 3]", false, NULL, "0||0"},
    {"(d0)[s0]{rt0, rt1} -> (d0), domain: d0 in [0, 9], s0 in [0, 3], rt0 in [0, 9], rt1 in [0, 9], "
     "rt0 - s0 in [0, 3]",
     false, "(d0)[s0]{rt0} -> (d0), domain: d0 in [0, 9], s0 in [0, 3], rt0 in [0, 9], rt0 - s0 in [0, 3]", "0|0|01"},
    {"(d0){rt0} -> (d0), domain: d0 in [0, 9], rt0 in [0, 9], rt0 in [-1, 9]", false,
     "(d0) -> (d0), domain: d0 in [0, 9]", "0||1"},
    // What goes must not take along that there is nothing.
    {"(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [1, 4], s0 mod 6 in [5, 5]", false, "KNOWN EMPTY", NULL},
};

START_TEST(unused_variables_go) {
  bool bits[KL_AFF_VARS][8] = {0}, *const removed[] = {bits[0], bits[1], bits[2]};
  const kl_map *m = read_map(unused[_i].in), *r = kl_map_remove_unused(pool, m, unused[_i].dims, removed);
  const char *out = unused[_i].out ? unused[_i].out : unused[_i].in;
  ck_assert_msg(same_text(print_map(r), print_map(read_map(out))), "found    %s\nexpected %s", print_map(r), out);
  char text[64];
  size_t n = 0;
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) text[n++] = bits[k][i] ? '1' : '0';
    text[n++] = '|';
  }
  text[n - 1] = 0;
  if (unused[_i].removed) ck_assert_str_eq(text, unused[_i].removed);
}
END_TEST

START_TEST(variables_change_their_kind) {
  const kl_map *m = read_map("(d0)[s0, s1]{rt0, rt1} -> (d0, s0, s1, rt0, rt1), domain: d0 in [0, 3], s0 in [0, 1], "
                             "s1 in [0, 2], rt0 in [0, 4], rt1 in [0, 5], d0 + rt1 in [1, 6]");
  ck_assert_str_eq(print_map(kl_map_symbols_to_dims(pool, m)),
                   "(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4), domain: d0 in [0, 3], d1 in [0, 1], d2 in [0, 2], "
                   "d3 in [0, 4], d4 in [0, 5], d0 + d4 in [1, 6]");
  m = read_map("(d0, d1)[a, range, b]{rt0} -> (d1, d0, range, a + b, rt0), domain: d0 in [0, 3], d1 in [0, 4], "
               "a in [0, 1], range in [0, 2], b in [0, 6], rt0 in [0, 1]");
  ck_assert_str_eq(print_map(kl_map_ranges_to_dims(pool, m, (uint32_t[]){0, 2}, 2)),
                   "(d0, d1, a, b)[range]{rt0} -> (d1, d0, range, a + b, rt0), domain: d0 in [0, 3], d1 in [0, 4], "
                   "a in [0, 1], b in [0, 6], range in [0, 2], rt0 in [0, 1]");
  ck_assert_str_eq(print_map(kl_map_project_dims(pool, m, (uint32_t[]){0}, 1)),
                   "(d0)[a, range, b, s3]{rt0} -> (d0, s3, range, a + b, rt0), domain: d0 in [0, 4], a in [0, 1], "
                   "range in [0, 2], b in [0, 6], s3 in [0, 3], rt0 in [0, 1]");
  m = read_map("(d0, d1, d2) -> (d0, d1 * 2, d2), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 3]");
  ck_assert_str_eq(print_map(kl_map_permute_dims(pool, m, (uint32_t[]){2, 0, 1})),
                   "(d0, d1, d2) -> (d1, d2 * 2, d0), domain: d0 in [0, 3], d1 in [0, 1], d2 in [0, 2]");
  ck_assert_str_eq(print_map(kl_map_sub(pool, m, (uint32_t[]){1}, 1)),
                   "(d0, d1, d2) -> (d1 * 2), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 3]");
  ck_assert_str_eq(print_map(kl_map_rename(pool, m, KL_AFF_DIM, 1, KL_STR("row"))),
                   "(d0, row, d2) -> (d0, row * 2, d2), domain: d0 in [0, 1], row in [0, 2], d2 in [0, 3]");
  ck_assert_str_eq(print_map(kl_map_restrict(pool, m, KL_AFF_DIM, 1, (kl_interval){1, 9})),
                   "(d0, d1, d2) -> (d0, d1 * 2, d2), domain: d0 in [0, 1], d1 in [1, 2], d2 in [0, 3]");
}
END_TEST

static const struct {
  const char *in, *out;
} rescales[] = {
    {"()[s0] -> (s0 / 6), domain: s0 in [0, 6], s0 mod 6 in [0, 0]", "()[s0] -> (s0), domain: s0 in [0, 1]"},
    {"()[s0] -> (s0), domain: s0 in [0, 41], s0 mod 6 in [3, 3]", "()[s0] -> (s0 * 6 + 3), domain: s0 in [0, 6]"},
    {"()[s0] -> (s0), domain: s0 in [0, 7], s0 mod 2 in [0, 0], s0 mod 3 in [0, 0]",
     "()[s0] -> (s0 * 6), domain: s0 in [0, 1]"},
    // Both constraints at once, where elsewhere only one of them is used: 33 and 75 are all there is.
    {"()[s0] -> (s0), domain: s0 in [0, 99], s0 mod 6 in [3, 3], s0 mod 7 in [5, 5]",
     "()[s0] -> (s0 * 42 + 33), domain: s0 in [0, 1]"},
    // The product is multiplied out: (s0 * 6 + 3) * s2 in [0, 28] is s0 * s2 * 2 + s2 in [0, 9].
    {"()[s0, s1, s2] -> (s2, s1, s0), domain: s0 in [0, 41], s1 in [0, 1], s2 in [0, 5], s0 * s2 in [0, 28], "
     "s0 mod 6 in [3, 3]",
     "()[s0, s1, s2] -> (s2, s1, s0 * 6 + 3), domain: s0 in [0, 6], s1 in [0, 1], s2 in [0, 5], "
     "(s0 * s2) * 2 + s2 in [0, 9]"},
    {"(){rt0} -> (rt0), domain: rt0 in [0, 41], rt0 mod 6 in [3, 3]",
     // what a runtime variable is cannot be rescaled
     "(){rt0} -> (rt0), domain: rt0 in [0, 41], rt0 mod 6 in [3, 3]"},
};

START_TEST(ranges_rescale) {
  const char *found = print_map(kl_map_simplify(pool, kl_map_rescale(pool, read_map(rescales[_i].in)), 0));
  ck_assert_msg(same_text(found, rescales[_i].out), "%s\nfound    %s\nexpected %s", rescales[_i].in, found,
                rescales[_i].out);
}
END_TEST

static const struct {
  const char *in, *out;
} eliminations[] = {
    {"(d0)[s0, s1] -> (s0), domain: d0 in [0, 13], s0 in [0, 9], s1 in [0, 4], d0 - s0 - s1 in [0, 0]",
     "(d0)[s0] -> (s0), domain: d0 in [0, 13], s0 in [0, 9], d0 - s0 in [0, 4]"},
    {"(d0)[s0] -> (s0 * 2), domain: d0 in [0, 13], s0 in [0, 99], s0 - d0 * 3 in [7, 7]",
     "(d0) -> (d0 * 6 + 14), domain: d0 in [0, 13]"},
    {"(d0)[s0] -> (s0), domain: d0 in [0, 99], s0 in [0, 9], d0 / 10 + s0 in [9, 9]",
     "(d0) -> (-(d0 / 10) + 9), domain: d0 in [0, 99]"},
    // Neither twice a variable nor one that stands inside of what is left says what it is.
    {"(d0)[s0] -> (s0), domain: d0 in [0, 18], s0 in [0, 9], d0 - s0 * 2 in [0, 0]", NULL},
    {"(d0)[s0] -> (s0), domain: d0 in [0, 18], s0 in [0, 9], d0 - s0 - s0 / 3 in [0, 0]", NULL},
    {"(d0)[s0] -> (s0), domain: d0 in [0, 18], s0 in [0, 9], d0 - s0 in [0, 1]", NULL},
};

START_TEST(equations_fix_ranges) {
  const kl_map *m = read_map(eliminations[_i].in), *r = kl_map_eliminate(pool, m);
  const char *out = eliminations[_i].out ? eliminations[_i].out : eliminations[_i].in;
  const kl_map *s = kl_map_remove_unused(pool, kl_map_simplify(pool, r, 0), false, NULL);
  const kl_map *want = kl_map_simplify(pool, read_map(out), 0);
  ck_assert_msg(same_text(print_map(s), print_map(want)), "found    %s\nexpected %s", print_map(s), print_map(want));
  ck_assert_int_eq(kl_map_equal(pool, m, s, KL_MAP_QUOTA, NULL), KL_YES);
}
END_TEST

static const struct {
  const char *in, *out; // out NULL: none is found
} converses[] = {
    {"(d0, d1, d2) -> (d2, d0, d1), domain: d0 in [0, 3], d1 in [0, 4], d2 in [0, 5]",
     "(d0, d1, d2) -> (d1, d2, d0), domain: d0 in [0, 5], d1 in [0, 3], d2 in [0, 4]"},
    {"(d0) -> (d0 * 7 + 3), domain: d0 in [0, 2]", "(d0) -> (d0 / 7), domain: d0 in [3, 17], d0 mod 7 in [3, 3]"},
    {"(d0) -> (-d0 + 16), domain: d0 in [0, 16]", "(d0) -> (-d0 + 16), domain: d0 in [0, 16]"},
    {"(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]",
     "(d0) -> (d0 / 8, d0 mod 8), domain: d0 in [0, 31]"},
    {"(d0) -> (d0 / 8, d0 mod 8), domain: d0 in [0, 31]",
     "(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]"},
    {"(d0, d1, d2) -> (d0 * 2 + d1 / 2, (d1 mod 2) * 4 + d2), domain: d0 in [0, 1], d1 in [0, 3], d2 in [0, 3]",
     "(d0, d1) -> (d0 / 2, (d0 mod 2) * 2 + d1 / 4, d1 mod 4), domain: d0 in [0, 3], d1 in [0, 7]"},
    {"(d0, d1) -> (d0 * -8 - d1 + 31), domain: d0 in [0, 3], d1 in [0, 7]",
     "(d0) -> (-(d0 / 8) + 3, (-d0 - 1) mod 8), domain: d0 in [0, 31]"},
    {"(d0, d1) -> (d0 * 8 - d1), domain: d0 in [2, 4], d1 in [1, 7]",
     "(d0) -> (d0 ceildiv 8, (-d0) mod 8), domain: d0 in [9, 31], d0 mod 8 in [1, 7]"},
    // broadcast, and reduction
    {"(d0, d1, d2) -> (d1), domain: d0 in [0, 9], d1 in [0, 19], d2 in [0, 29]",
     "(d0)[s0, s1] -> (s0, d0, s1), domain: d0 in [0, 19], s0 in [0, 9], s1 in [0, 29]"},
    {"(d0)[s0] -> (s0, d0), domain: d0 in [0, 9], s0 in [0, 255]",
     "(d0, d1) -> (d1), domain: d0 in [0, 255], d1 in [0, 9]"},
    // windows overlap: which output element it was is free
    {"(d0)[s0] -> (d0 + s0), domain: d0 in [0, 2], s0 in [0, 511]",
     "(d0)[s0, s1] -> (s0), domain: d0 in [0, 513], s0 in [0, 2], s1 in [0, 511], d0 - s0 - s1 in [0, 0]"},
    {"(d0, d1){rt0} -> (d0 + rt0, d1), domain: d0 in [0, 3], d1 in [0, 4], rt0 in [0, 6]",
     "(d0, d1){rt0} -> (d0 - rt0, d1), domain: d0 in [0, 9], d1 in [0, 4], rt0 in [0, 6], d0 - rt0 in [0, 3]"},
    {"(d0) -> (d0, d0 / 2), domain: d0 in [3, 2]", "KNOWN EMPTY"},
};

START_TEST(maps_have_converses) {
  const kl_map *m = kl_map_invert(pool, read_map(converses[_i].in), KL_MAP_QUOTA);
  ck_assert_msg(same_text(print_map(m), converses[_i].out), "%s\nfound    %s\nexpected %s", converses[_i].in,
                print_map(m), converses[_i].out);
}
END_TEST

START_TEST(results_have_ranges) {
  static const struct {
    const char *in;
    kl_interval range[2];
  } ranges[] = {
      {"(d0, d1) -> ((86d0 + d1) / 64, (86d0 + d1) mod 64), domain: d0 in [0, 11], d1 in [0, 85], "
       "86d0 + d1 in [0, 1023]",
       {{0, 15}, {0, 63}}},
      {"(d0, d1) -> ((86d0 + d1) / 64, (86d0 + d1) mod 64), domain: d0 in [0, 11], d1 in [0, 85]", {{0, 16}, {0, 63}}},
      {"(d0, d1) -> (d0 * 2 + d1, min(d0, d1)), domain: d0 in [0, 9], d1 in [-10, -1]", {{-10, 17}, {-10, -1}}},
      {"(d0, d1) -> (max(d0, d1), d0 * d1), domain: d0 in [0, 9], d1 in [-10, -1]", {{0, 9}, {-90, 0}}},
  };
  for (size_t i = 0; i < KL_COUNT(ranges); i++) {
    kl_interval found[2];
    ck_assert(kl_map_result_ranges(pool, read_map(ranges[i].in), found));
    for (int j = 0; j < 2; j++) {
      ck_assert_msg(found[j].lo == ranges[i].range[j].lo && found[j].hi == ranges[i].range[j].hi,
                    "%s: result %d in [%lld, %lld]", ranges[i].in, j, (long long)found[j].lo, (long long)found[j].hi);
    }
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("maps", EACH(open_pool, close_pool), {text_is_read_and_printed, KL_COUNT(texts)},
                   {lines_are_printed}, {wrong_text_gets_a_finding, KL_COUNT(wrong)}, {monstrous_text_gets_a_finding},
                   {rows_simplify, KL_COUNT(rows)}, {simplifying_settles}, {points_are_kept_on_request},
                   {maps_compose, KL_COUNT(compositions)}, {runtime_variables_keep_their_identity},
                   {unused_variables_go, KL_COUNT(unused)}, {variables_change_their_kind},
                   {ranges_rescale, KL_COUNT(rescales)}, {equations_fix_ranges, KL_COUNT(eliminations)},
                   {maps_have_converses, KL_COUNT(converses)}, {results_have_ranges});
}
