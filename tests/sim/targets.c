// Every alternative of every row of the instruction table is one to ptxas at some target: each is spelled with what the
// others need, and given to one target after the other, from the oldest on, until one assembles it. Of arithmetic,
// where every spelling is an instruction, one in 24 is tried, all with KILN_TEST_SHARE=24 (support/share.h). Skipped
// where ptxas is not installed; most of the time is ptxas's, which tells some errors only where there are no others.
#include "lanes/warp.h"
#include "sim/isa/match.h"
#include "support/ptxas.h"
#include "support/random.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static const char *const targets[] = {"sm_75",  "sm_80",  "sm_86",   "sm_89",   "sm_90",
                                      "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_120a"};

// --- spellings ------------------------------------------------------------------------------------------------------

enum { MOST_TEXT = 256, MOST_GROUPS = 16 };

// The alternatives of a pattern's groups; -1 of an optional one: none.
typedef struct choice {
  int of[MOST_GROUPS];
} choice;

static unsigned groups_of(const char *pattern, int alternatives[MOST_GROUPS], bool optional[MOST_GROUPS]) {
  unsigned n = 0;
  for (const char *p = pattern; *p; p++) {
    if (*p != '{' && *p != '(') continue;
    optional[n] = *p == '{';
    alternatives[n] = 1;
    for (; *p != '}' && *p != ')'; p++) alternatives[n] += *p == '|';
    n++;
  }
  return n;
}

static void spell_choice(const char *pattern, const choice *c, char *out) {
  unsigned group = 0;
  while (*pattern) {
    if (*pattern != '{' && *pattern != '(') {
      *out++ = *pattern++;
      continue;
    }
    const char *end = strchr(pattern, *pattern == '{' ? '}' : ')'), *from = pattern + 1;
    int pick = c->of[group++];
    for (int k = 0; k < pick; k++) from = strchr(from, '|') + 1;
    while (pick >= 0 && *from != '|' && from < end) *out++ = *from++;
    pattern = end + 1;
  }
  *out = 0;
}

// --- operands of the machine's rows, by how the table writes them
// -----------------------------------------------------

static bool has_modifier(const char *mnemonic, const char *modifier) {
  size_t n = strlen(modifier);
  for (const char *p = mnemonic; (p = strstr(p, modifier)); p++)
    if (!p[n] || p[n] == '.') return true;
  return false;
}

// The register file of a mnemonic's type, and how many of them a vector has.
static char file_of(const char *mnemonic) {
  static const char *const files[][2] = {{".pred", "p"}, {".b8", "h"},  {".u8", "h"},  {".s8", "h"},   {".b16", "h"},
                                         {".u16", "h"},  {".s16", "h"}, {".f16", "h"}, {".bf16", "h"}, {".b64", "l"},
                                         {".u64", "l"},  {".s64", "l"}, {".f64", "l"}, {".b128", "q"}};
  for (size_t k = 0; k < KL_COUNT(files); k++)
    if (has_modifier(mnemonic, files[k][0])) return files[k][1][0];
  return 'w';
}
static unsigned vector_of(const char *mnemonic) {
  return has_modifier(mnemonic, ".v2") ? 2 : has_modifier(mnemonic, ".v4") ? 4 : has_modifier(mnemonic, ".v8") ? 8 : 1;
}

static void put_value(FILE *f, const char *mnemonic, unsigned first) {
  unsigned n = vector_of(mnemonic);
  for (unsigned k = 0; k < n; k++) fprintf(f, "%s%%%c%u", k ? ", " : n > 1 ? "{" : "", file_of(mnemonic), first + k);
  if (n > 1) fputs("}", f);
}

// Rows of matrices are words of two elements, in braces however many there are.
static bool is_of_matrices(const char *mnemonic) {
  return strncmp(mnemonic, "ldmatrix", 8) == 0 || strncmp(mnemonic, "stmatrix", 8) == 0;
}
static void put_matrices(FILE *f, const char *mnemonic) {
  unsigned n = has_modifier(mnemonic, ".x4") ? 4 : has_modifier(mnemonic, ".x2") ? 2 : 1;
  for (unsigned k = 0; k < n; k++) fprintf(f, "%s%%w%u", k ? ", " : "{", 1 + k);
  fputs("}", f);
}

static bool is_of_function(const char *mnemonic) {
  return has_modifier(mnemonic, ".param::func") || (*mnemonic == 's' && has_modifier(mnemonic, ".param"));
}

static void put_address(FILE *f, const char *mnemonic, const char *token) {
  bool source = strcmp(token, "[b]") == 0;
  const char *at = "%l9";
  if (!source && (has_modifier(mnemonic, ".shared") || has_modifier(mnemonic, ".shared::cta"))) at = "sh";
  if (has_modifier(mnemonic, ".local")) at = "lc";
  if (has_modifier(mnemonic, ".const")) at = "cn";
  if (has_modifier(mnemonic, ".param") || has_modifier(mnemonic, ".param::entry")) at = "entry";
  if (is_of_function(mnemonic)) at = "func";
  fprintf(f, "[%s]", at);
}

static void put_token(FILE *f, const char *topic, const char *mnemonic, const char *token) {
  bool together = strcmp(topic, "warp") == 0, copy = strncmp(mnemonic, "cp.async", 8) == 0;
  bool barrier = together && strncmp(mnemonic, "bar", 3) == 0;
  static const struct {
    const char *token, *text;
  } fixed[] = {
      {"mask", "%w5"},     {"label", "END"},  {"table", "TABLE"}, {"size", "128"},   {"{d}", "{%w1, %w2, %w3, %w4}"},
      {"%vector", "%tid"}, {"policy", "%l8"}, {"{!}a", "!%p2"},   {"d|p", "%w1|%p1"}};
  for (size_t k = 0; k < KL_COUNT(fixed); k++) {
    if (strcmp(fixed[k].token, token) != 0) continue;
    bool narrow = strcmp(token, "{d}") == 0 && has_modifier(mnemonic, ".u16");
    fputs(narrow ? "{%h1, %h2, %h3, %h4}" : fixed[k].text, f);
    return;
  }
  if (*token == '[') {
    put_address(f, mnemonic, token);
  } else if (is_of_matrices(mnemonic)) {
    put_matrices(f, mnemonic);
  } else if (strcmp(token, "n") == 0) {
    fputs(copy                                       ? (has_modifier(mnemonic, ".cg")   ? "16"
                                                        : has_modifier(mnemonic, ".ca") ? "4"
                                                                                        : "1")
          : strncmp(mnemonic, "setmaxnreg", 10) == 0 ? "64"
                                                     : "128",
          f);
  } else if (barrier) {
    fputs(*token == 'a' ? "0" : *token == 'b' ? "64" : *token == 'c' ? "%p2" : *token == 'p' ? "%p1" : "%w1", f);
  } else if (together && *token == 'p') {
    fputs("%p1", f);
  } else if (strncmp(mnemonic, "isspacep", 8) == 0) {
    fputs(*token == 'p' ? "%p1" : "%l1", f);
  } else if (strncmp(mnemonic, "pmevent", 7) == 0) {
    fputs("5", f);
  } else if (strncmp(mnemonic, "createpolicy.range", 18) == 0 && *token != 'd') {
    fputs(*token == 'b' ? "%w1" : "%w2", f);
  } else if ((strncmp(mnemonic, "mapa", 4) == 0 && *token == 'b') ||
             (strncmp(mnemonic, "getctarank", 10) == 0 && *token == 'd') ||
             (strncmp(mnemonic, "match", 5) == 0 && *token == 'd') || strncmp(mnemonic, "brx", 3) == 0) {
    fputs("%w1", f);
  } else if (together && (*token == 'b' || *token == 'c')) {
    fputs(*token == 'b' ? "%w3" : "%w4", f);
  } else {
    put_value(f, mnemonic, *token == 'd' || *token == 'p' ? 1 : *token == 'a' ? 2 : *token == 'b' ? 11 : 21);
  }
}

// "d, [a]{, policy}": what is optional is left out, but for a policy that the mnemonic has a hint for.
static void put_line(FILE *f, const char *topic, const char *operands, const char *mnemonic) {
  char token[32];
  bool first = true;
  if (strncmp(mnemonic, "call", 4) == 0) {
    fprintf(f, "%s callee;\n", mnemonic);
    return;
  }
  fprintf(f, "%s ", mnemonic);
  for (const char *p = operands; *p;) {
    if (*p == '{' && p[1] != 'd' && p[1] != '!') {
      const char *end = strchr(p, '}');
      bool hint = memmem(p, (size_t)(end - p), "policy", 6) && has_modifier(mnemonic, ".L2::cache_hint");
      if (hint) fputs(", %l8", f);
      p = end + 1;
      continue;
    }
    size_t n = 0;
    while (*p && *p != ',' && !(*p == '{' && n && p[1] == ',')) token[n++] = *p++;
    token[n] = 0;
    fputs(first ? "" : ", ", f);
    put_token(f, topic, mnemonic, token);
    first = false;
    while (*p == ',' || *p == ' ') p++;
  }
  fputs(";\n", f);
}

// --- asking ptxas ---------------------------------------------------------------------------------------------------

typedef struct line {
  char *text;
  int target; // the first that takes it; -1: none
} line;
typedef struct lines {
  line *p;
  size_t n, cap;
} lines;

static size_t add_line(lines *l, char *text) {
  if (l->n == l->cap) l->p = realloc(l->p, (l->cap = l->cap * 2 + 1024) * sizeof *l->p);
  l->p[l->n] = (line){text, -1};
  return l->n++;
}

static const char head[] =
    ".version 9.0\n.target %s\n.address_size 64\n.shared .align 128 .b8 sh[1024];\n.const .align 16 .b8 cn[64];\n"
    ".func callee() {\nret;\n}\n.func takes(.param .align 16 .b8 a[64]) {\nret;\n}\n"
    ".func (.param .align 16 .b8 r[64]) gives() {\nret;\n}\n"
    ".visible .entry k(.param .align 16 .b8 entry[64]) {\n"
    ".reg .pred %%p<40>;\n.reg .b8 %%b<40>;\n.reg .b16 %%h<40>;\n.reg .b32 %%w<40>;\n.reg .b64 %%l<40>;\n"
    ".reg .b128 %%q<40>;\n.local .align 16 .b8 lc[64];\n"
    "TABLE: .branchtargets END;\n";
enum { HEAD_LINES = 23, AT_ONCE = 4096 };

// Of these lines those that the target takes. False: it refuses all together for no line, or dies.
static bool ask(line **some, size_t n, int target, size_t *refused) {
  static bool wrong[HEAD_LINES + AT_ONCE + 8];
  char *text = NULL;
  size_t size = 0;
  *refused = 0;
  FILE *f = open_memstream(&text, &size);
  fprintf(f, head, targets[target]);
  for (size_t k = 0; k < n; k++) fputs(some[k]->text, f);
  fputs("END:\nret;\n}\n", f);
  fclose(f);
  bool asked = ptxas_lines(text, size, targets[target], wrong, HEAD_LINES + n);
  free(text);
  if (!asked) return false;
  for (size_t k = 0; k < HEAD_LINES; k++) EXPECT(!wrong[k], "line %zu of the head is refused", k + 1);
  for (size_t k = 0; k < n; k++) {
    some[k]->target = wrong[HEAD_LINES + k] ? -1 : target;
    *refused += wrong[HEAD_LINES + k];
  }
  return true;
}

// The same, until what is left assembles: some errors are only found where there are no others.
static void ask_until_clean(line **some, size_t n, int target) {
  size_t refused = 1;
  while (n && refused) {
    if (!ask(some, n, target, &refused)) {
      for (size_t k = 0; k < n; k++) some[k]->target = -1;
      if (n == 1) return;
      ask_until_clean(some, n / 2, target);
      ask_until_clean(some + n / 2, n - n / 2, target);
      return;
    }
    size_t kept = 0;
    for (size_t k = 0; k < n; k++)
      if (some[k]->target == target) some[kept++] = some[k];
    n = kept;
  }
}

// Finds the first target of each line from `from` on.
static void ask_all(lines *l, size_t from) {
  line **left = malloc((l->n - from + 1) * sizeof(line *));
  for (size_t target = 0; target < KL_COUNT(targets); target++) {
    size_t n = 0;
    for (size_t k = from; k < l->n; k++)
      if (l->p[k].target < 0) left[n++] = &l->p[k];
    for (size_t k = 0; k < n; k += AT_ONCE) ask_until_clean(left + k, n - k < AT_ONCE ? n - k : AT_ONCE, (int)target);
  }
  free(left);
}

static void tell(const lines *l, const char *what) {
  unsigned count[KL_COUNT(targets)] = {0};
  for (size_t k = 0; k < l->n; k++)
    if (l->p[k].target >= 0) count[l->p[k].target]++;
  printf("# %s:", what);
  for (size_t t = 0; t < KL_COUNT(targets); t++)
    if (count[t]) printf(" %u from %s on%s", count[t], targets[t], t + 1 < KL_COUNT(targets) ? "," : "");
  printf("\n");
}

static void free_lines(lines *l) {
  for (size_t k = 0; k < l->n; k++) free(l->p[k].text);
  free(l->p);
}

// --- arithmetic: all spellings are instructions
// -----------------------------------------------------------------------

START_TEST(arithmetic) {
  lines l = {0};
  if (!ptxas_path()) return;
  size_t count = 0;
  for (size_t r = 0; r < lane_form_count; r++) {
    instruction i;
    bool glue = !lane_forms[r].pattern || !strchr(lane_forms[r].pattern, '.');
    for (size_t k = 0; !glue && instruction_at(&lane_forms[r], k, &i); k++) {
      char *text = NULL;
      size_t size = 0;
      if (!share_has(count++, 24) && k) continue; // of each row the first
      FILE *f = open_memstream(&text, &size);
      put_operands(f, &i, i.mnemonic);
      fclose(f);
      add_line(&l, text);
    }
  }
  ask_all(&l, 0);
  for (size_t k = 0; k < l.n; k++) EXPECT(l.p[k].target >= 0, "no target takes %s", l.p[k].text);
  tell(&l, "arithmetic");
  ck_assert_uint_gt(count, 5000);
  free_lines(&l);
}
END_TEST

// --- the machine's: each alternative of each group
// --------------------------------------------------------------------

// Alternatives that ptxas takes nowhere, and why.
static const struct {
  const char *pattern, *alternative, *why; // how the pattern begins
} exceptions[] = {
    {"cvta", ".u32", "addresses of 32 bits"},
};

typedef struct wanted {
  const char *topic;
  const kl_form *row;
  unsigned group;
  int alternative;
  size_t first, n; // of its lines
  bool taken;
} wanted;

// Empty of a row without alternatives.
static void name_alternative(const wanted *w, char *out) {
  const char *p = w->row->pattern;
  *out = 0;
  if (!strpbrk(p, "{(")) return;
  for (unsigned g = 0;; p++) {
    if (*p != '{' && *p != '(') continue;
    if (g++ == w->group) break;
    p = strchr(p, *p == '{' ? '}' : ')');
  }
  p++;
  for (int k = 0; k < w->alternative; k++) p = strchr(p, '|') + 1;
  snprintf(out, MOST_TEXT, "%.*s", (int)strcspn(p, "|})"), p);
}

static bool is_exception(const wanted *w) {
  char name[MOST_TEXT];
  if (w->alternative < 0) return false;
  name_alternative(w, name);
  for (size_t k = 0; k < KL_COUNT(exceptions); k++)
    if (strncmp(w->row->pattern, exceptions[k].pattern, strlen(exceptions[k].pattern)) == 0 &&
        strcmp(name, exceptions[k].alternative) == 0)
      return true;
  return false;
}

static void add_spelling(lines *l, wanted *w, const choice *c) {
  char mnemonic[MOST_TEXT], *text = NULL;
  size_t size = 0;
  spell_choice(w->row->pattern, c, mnemonic);
  // Loads of eight are of words. Of narrower ones, no instruction anywhere, ptxas dies, and tells nothing of the
  // others.
  if (strncmp(mnemonic, "ld", 2) == 0 && has_modifier(mnemonic, ".v8") && file_of(mnemonic) == 'h') return;
  FILE *f = open_memstream(&text, &size);
  // A function's parameter is one of a call.
  bool func = is_of_function(mnemonic), gives = func && *mnemonic == 'l';
  if (func) fprintf(f, "{ .param .align 16 .b8 func[64]; %s", gives ? "call (func), gives; " : "");
  put_line(f, w->topic, w->row->operands, mnemonic);
  if (func) fseek(f, -1, SEEK_CUR);
  if (func) fprintf(f, "%s }\n", gives ? "" : " call takes, (func);");
  fclose(f);
  add_line(l, text);
  w->n++;
}

// Alone: what is optional is left out, what is not is gone through.
static void spell_alone(lines *l, wanted *w) {
  int alternatives[MOST_GROUPS];
  bool optional[MOST_GROUPS];
  unsigned n = groups_of(w->row->pattern, alternatives, optional);
  choice c;
  for (unsigned g = 0; g < n; g++) c.of[g] = optional[g] ? -1 : 0;
  if (n) c.of[w->group] = w->alternative;
  w->first = l->n;
  w->n = 0;
  for (;;) {
    add_spelling(l, w, &c);
    unsigned g = 0;
    for (; g < n; g++) {
      if (optional[g] || g == w->group) continue;
      if (++c.of[g] < alternatives[g]) break;
      c.of[g] = 0;
    }
    if (g == n) return;
  }
}

// With drawn ones.
static void spell_drawn(lines *l, wanted *w, unsigned times) {
  int alternatives[MOST_GROUPS];
  bool optional[MOST_GROUPS];
  unsigned n = groups_of(w->row->pattern, alternatives, optional);
  w->first = l->n;
  w->n = 0;
  for (unsigned k = 0; k < times; k++) {
    choice c;
    for (unsigned g = 0; g < n; g++)
      c.of[g] = optional[g] && random_bits() % 2 ? -1 : (int)(random_bits() % (unsigned)alternatives[g]);
    c.of[w->group] = w->alternative;
    add_spelling(l, w, &c);
  }
}

static size_t settle(const lines *l, wanted *w, size_t n) {
  size_t left = 0;
  for (size_t k = 0; k < n; k++) {
    for (size_t i = w[k].first; i < w[k].first + w[k].n; i++) w[k].taken |= l->p[i].target >= 0;
    left += !w[k].taken;
  }
  return left;
}

START_TEST(machine) {
  static wanted all[2048];
  lines l = {0};
  size_t n = 0;
  if (!ptxas_path()) return;
  unsigned lane_topics = 0;
#define X(name, rows) lane_topics++;
  KL_LANE_TOPICS(X)
#undef X
  for (size_t t = lane_topics; t < kl_ntopics; t++)
    for (size_t r = 0; r < kl_topics[t].n; r++) {
      int alternatives[MOST_GROUPS];
      bool optional[MOST_GROUPS];
      const kl_form *row = &kl_topics[t].rows[r];
      unsigned groups = groups_of(row->pattern, alternatives, optional);
      for (unsigned g = 0; g < groups || (g == 0 && !groups); g++)
        for (int k = groups && optional[g] ? -1 : 0; k < (groups ? alternatives[g] : 1); k++) {
          ck_assert_uint_lt(n, KL_COUNT(all));
          all[n++] = (wanted){.topic = kl_topics[t].name, .row = row, .group = g, .alternative = k};
        }
    }
  for (size_t k = 0; k < n; k++) spell_alone(&l, &all[k]);
  ask_all(&l, 0);
  size_t left = settle(&l, all, n);
  for (int round = 0; left && round < 3; round++) {
    size_t from = l.n;
    for (size_t k = 0; k < n; k++)
      if (!all[k].taken && !is_exception(&all[k])) spell_drawn(&l, &all[k], 100u << 2 * round);
    if (l.n == from) break;
    ask_all(&l, from);
    left = settle(&l, all, n);
  }
  for (size_t k = 0; k < n; k++) {
    char name[MOST_TEXT] = "nothing";
    if (all[k].alternative >= 0) name_alternative(&all[k], name);
    EXPECT(all[k].taken || is_exception(&all[k]), "no target takes %s of %s", name, all[k].row->pattern);
    EXPECT(!all[k].taken || !is_exception(&all[k]), "%s of %s is no exception", name, all[k].row->pattern);
  }
  printf("# %zu alternatives\n", n);
  tell(&l, "spellings");
  free_lines(&l);
}
END_TEST

int main(void) {
  return RUN_TESTS("targets", NO_FRAME, {arithmetic}, {machine});
}
