// Formats of stored tensors, of none to eight dimensions, and their short text: levels with their dimension (a, b ...),
// /n or %n of it, and a letter: Dense, Batch, Compressed, Loose, Singleton, sTructured n,m; behind it n: nonunique,
// o: nonordered, s: soa.
#ifndef TESTS_SPARSE_FORMATS_H
#define TESTS_SPARSE_FORMATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const formats[] = {
    "",
    // one dimension
    "a:D",
    "a:C",
    "a:L",
    "a:Cn",
    "a:B",
    "a/4:C a%4:D",
    "a/4:L a%4:T4,4",
    "a/3:D a%3:C",
    "a:T5,5",
    "a/4:D a%4:T2,4",
    // two
    "a:D b:D",
    "b:D a:D",
    "a:D b:C",
    "b:D a:C",
    "a:C b:C",
    "b:C a:C",
    "a:C b:D",
    "b:C a:D",
    "a:D b:L",
    "b:D a:L",
    "a:L b:L",
    "a:L b:C",
    "a:C b:L",
    "a:L b:D",
    "a:D b:Co",
    "a:D b:Cno",
    "a:Cn b:S",
    "b:Cn a:S",
    "a:Cn b:Ss",
    "a:Cn b:Sn",
    "a:Cn b:Sson",
    "a:Cno b:So",
    "a:Ln b:S",
    "a:Ln b:Ss",
    "a:B b:C",
    "a:B b:D",
    "a:B b:B",
    "b:B a:L",
    "a/2:D b/3:C a%2:D b%3:D",
    "a/2:D b/3:C b%3:D a%2:D",
    "b/2:D a/2:C a%2:D b%2:D",
    "a/2:C b/2:C a%2:D b%2:D",
    "a/3:D b:C a%3:D",
    "a:D b/4:C b%4:D",
    "a/2:B b:C a%2:D",
    "a/2:Cn b/3:S a%2:D b%3:D",
    "a/2:L b/2:L a%2:C b%2:D",
    "a/4:D b/4:D a%4:C b%4:C",
    "a:D b/4:D b%4:T4,4",
    "a:D b:T3,3",
    "a:C b/4:C b%4:T4,4",
    "b:D a/2:D a%2:T2,2",
    "a:T2,2 b:D",
    "a:T2,2 b:C",
    "a:D b/8:D b%8:T8,8",
    "a:D b/4:D b%4:T2,4",
    "a:D b/4:D b%4:T3,4",
    "a:B b/4:C b%4:T2,4",
    "a:T1,1 b:T3,3",
    // three
    "a:D b:C c:C",
    "a:C b:C c:C",
    "c:D a:C b:D",
    "a:Cn b:Sn c:S",
    "a:Cn b:Ss c:Ss",
    "a:B b:D c:C",
    "a:B b:B c:C",
    "a:D b:Ln c:S",
    "a:D b:Cn c:Ss",
    "c:C b:D a:L",
    "a/2:D b/2:C c:D a%2:D b%2:D",
    "a:B b:C c/4:D c%4:T4,4",
    "b:D a:Cn c:S",
    "c:L b:L a:L",
    // more
    "a:D b:D c:C d:C",
    "a:Cn b:Sn c:Sn d:S",
    "d:B a:C c:D b:C",
    "d:C c:C b:C a:C e:D",
    "a:B b:C c:D d:L e:C f:D",
    "g:D f:C e:D d:C c:D b:C a:D",
    "a:C b:D c:C d:D e:C f:D g:C h:D",
    "h:Cn g:Sn f:Sn e:Sn d:Sn c:Sn b:Sn a:S",
};
// Encodings of matrices that the short text has no words for.
static const char *const others[] = {
    "map = (d0, d1) -> (d1 - d0 : dense, d0 : compressed)",
    "map = (d0, d1) -> (d0 + d1 : compressed, d0 : compressed)",
    "map = [s0](d0, d1) -> (d0 * (s0 * 3) : dense, d0 : dense, d1 : compressed)",
    "map = [s0](d0, d1) -> (d1 * (s0 * 2) : dense, d0 : dense, d1 : compressed)",
    "map = (d0, d1) -> (d0 : compressed, d1 : singleton)",
    ("map = {l0, l1, l2} (d0 = l2, d1 = l0 * 2 + l1 + l2) -> (l0 = (d1 - d0) floordiv 2 : dense, l1 = (d1 - d0) mod 2 "
     ": "
     "dense, l2 = d0 : compressed)"),
    "map = (d0, d1) -> (d0 : dense, d1 : structured[2, 4])",
    "map = (d0, d1) -> (d0 : structured[1, 3], d1 : compressed)",
    "map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 8, crdWidth = 8",
    "map = (d0, d1) -> (d0 : dense, d1 : compressed), crdWidth = 2",
    "map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton), implicitVal = 1",
    "map = (d0, d1) -> (d0 : dense, d1 : compressed), explicitVal = 1",
};
enum {
  OTHERS = sizeof others / sizeof *others,
  FORMATS = sizeof formats / sizeof *formats,
  MOST_RANK = 8,
  MOST_LEVELS = 12,
  MOST_BUFFERS = 24
};

typedef struct level {
  int dim;
  int64_t div, mod; // 0: none
  char kind;
  bool nonunique, nonordered, soa;
  int64_t n, m;
} level;

typedef struct format {
  int rank, nlevels;
  level levels[MOST_LEVELS];
  bool valid;
} format;

static inline format parse_format(const char *text) {
  format f = {0};
  for (const char *p = text; *p;) {
    level *l = &f.levels[f.nlevels++];
    l->dim = *p++ - 'a';
    if (l->dim >= f.rank) f.rank = l->dim + 1;
    if (*p == '/') l->div = strtoll(p + 1, (char **)&p, 10);
    if (*p == '%') l->mod = strtoll(p + 1, (char **)&p, 10);
    l->kind = *++p;
    if (*p++ == 'T') {
      l->n = strtoll(p, (char **)&p, 10);
      l->m = strtoll(p + 1, (char **)&p, 10);
    }
    for (; *p && *p != ' '; p++) {
      l->nonunique |= *p == 'n';
      l->nonordered |= *p == 'o';
      l->soa |= *p == 's';
    }
    while (*p == ' ') p++;
  }
  return f;
}

static inline void print_format(const format *f, unsigned pos, unsigned crd, char out[1024]) {
  static const char *const names[] = {
      ['D'] = "dense",     ['B'] = "batch",     ['C'] = "compressed", ['L'] = "loose_compressed",
      ['S'] = "singleton", ['T'] = "structured"};
  int n = sprintf(out, "map = (");
  for (int d = 0; d < f->rank; d++) n += sprintf(out + n, "%s%c", d ? ", " : "", 'a' + d);
  n += sprintf(out + n, ") -> (");
  for (int i = 0; i < f->nlevels; i++) {
    const level *l = &f->levels[i];
    n += sprintf(out + n, "%s%c", i ? ", " : "", 'a' + l->dim);
    if (l->div) n += sprintf(out + n, " floordiv %d", (int)l->div);
    if (l->mod) n += sprintf(out + n, " mod %d", (int)l->mod);
    n += sprintf(out + n, " : %s", names[(unsigned char)l->kind]);
    if (l->m) n += sprintf(out + n, "[%d, %d]", (int)l->n, (int)l->m);
    const char *sep = "(";
    if (l->nonunique) n += sprintf(out + n, "%snonunique", sep), sep = ", ";
    if (l->nonordered) n += sprintf(out + n, "%snonordered", sep), sep = ", ";
    if (l->soa) n += sprintf(out + n, "%ssoa", sep), sep = ", ";
    if (*sep == ',') n += sprintf(out + n, ")");
  }
  n += sprintf(out + n, ")");
  if (pos) n += sprintf(out + n, ", posWidth = %u", pos);
  if (crd) sprintf(out + n, ", crdWidth = %u", crd);
}

#endif
