// Elements beside a thread's own, which lanes of a warp take from their neighbours: every shift of a vector, rows that
// begin and end anywhere, padding and other arrays on either side, several shifts at once; in whole blocks and behind
// them. And each second or third element, of vectors that a thread loads whole. The evaluator judges; host and
// simulator have the same bits.
#include "harness.h"
#include "support/context.h"
#include "support/random.h"
#include "support/share.h"

#include <stdio.h>

static const char *const types[] = {"f32", "bf16", "f64", "f16", "u8", "s16", "c64", "pred", "f8e5m2", "s64", "s4"};

enum { SLICES = 6, CASES = 120, MOST_SHIFT = 17 };

// Of $R rows with $C elements that lie $P apart, those $S from their beginning on; $T the type. $Z and $Y: of rows
// twice and three times as long.
static const char *const rows[] = {
    "x = $T[$R,$P] parameter(0) ROOT r = $T[$R,$C] slice(x), slice={[0:$R],[$S:$E]}",
    "x = $T[$R,$P] parameter(0) a = $T[$R,$C] slice(x), slice={[0:$R],[$S:$E]} b = $T[$R,$C] slice(x), "
    "slice={[0:$R],[0:$C]} ROOT r = ($T[$R,$C], $T[$R,$C]) tuple(a, b)",
    "x = $T[$R,$C] parameter(0) z = $T[] parameter(1) p = $T[$R,$P] pad(x, z), padding=0_0x$S_$G ROOT r = $T[$R,$C] "
    "slice(p), slice={[0:$R],[$G:$F]}",
    "x = $T[$R,$C] parameter(0) y = $T[$R,$P] parameter(1) a = $T[$R,$C] slice(y), slice={[0:$R],[$S:$E]} c = "
    "$T[$R,$D] concatenate(x, a), dimensions={1} ROOT r = $T[$R,$C] slice(c), slice={[0:$R],[$S:$E]}",
    "x = $T[$R,$P] parameter(0) y = $T[$R,$P] reverse(x), dimensions={0} ROOT r = $T[$R,$C] slice(y), "
    "slice={[0:$R],[$S:$E]}",
    "x = $T[$R,$C] parameter(0) z = $T[] parameter(1) ROOT r = $T[$R,$P] pad(x, z), padding=0_0x$S_$G",
    "x = $T[$R,$C] parameter(0) z = $T[] parameter(1) ROOT r = $T[$H,$P] pad(x, z), padding=1_2x$S_$G",
    "x = $T[$R,$C] parameter(0) y = $T[$R,$Q] parameter(1) ROOT r = $T[$R,$P] concatenate(x, y), dimensions={1}",
    "x = $T[$R,$C] parameter(0) y = $T[$R,$Q] parameter(1) ROOT r = $T[$R,$P] concatenate(y, x), dimensions={1}",
    "x = $T[$R,$P] parameter(0) y = $T[$R,$S] slice(x), slice={[0:$R],[0:$S]} z = $T[$R,$C] slice(x), "
    "slice={[0:$R],[$S:$E]} w = $T[$R,$G] slice(x), slice={[0:$R],[$E:$P]} ROOT r = $T[$R,$P] concatenate(w, z, y), "
    "dimensions={1}",
    "x = $T[$R,$Z] parameter(0) ROOT r = $T[$R,$C] slice(x), slice={[0:$R],[$S:$Z:2]}",
    "x = $T[$R,$Y] parameter(0) ROOT r = $T[$R,$C] slice(x), slice={[0:$R],[$S:$Y:3]}",
    "x = $T[$R,$Z] parameter(0) a = $T[$R,$C] slice(x), slice={[0:$R],[$S:$Z:2]} b = $T[$R,$C] slice(x), "
    "slice={[0:$R],[0:$D:2]} ROOT r = ($T[$R,$C], $T[$R,$C]) tuple(a, b)",
};

typedef struct shape {
  const char *type;
  int64_t rows, columns, pitch, shift;
} shape;

static void put(kl_sb *b, const char *form, const shape *x) {
  for (; *form; form++) {
    if (*form != '$') {
      kl_sbf(b, "%c", *form);
      continue;
    }
    form++;
    int64_t n = *form == 'R'   ? x->rows
                : *form == 'H' ? x->rows + 3
                : *form == 'C' ? x->columns
                : *form == 'P' ? x->pitch
                : *form == 'Q' ? x->pitch - x->columns
                : *form == 'S' ? x->shift
                : *form == 'E' ? x->shift + x->columns
                : *form == 'G' ? x->pitch - x->columns - x->shift
                : *form == 'F' ? x->pitch - x->shift
                : *form == 'Y' ? x->shift + 3 * x->columns
                : *form == 'Z' ? x->shift + 2 * x->columns
                               : 2 * x->columns;
    if (*form == 'T')
      kl_sb_puts(b, x->type);
    else
      kl_sbf(b, "%lld", (long long)n);
  }
}

static int64_t below(uint64_t n) {
  return (int64_t)(random_bits() % n);
}

// A few rows of many elements, as warps lie in them, or many of few; or such as end anywhere in vectors, with little
// beside them.
static shape draw(void) {
  shape x = {.type = types[below(KL_COUNT(types))]};
  bool little = below(2);
  x.shift = below(little ? 5 : MOST_SHIFT);
  int64_t behind = below(little ? 5 : 9);
  x.rows = 1 + below(5);
  x.columns = below(3) ? 1024 * (1 + below(4)) : 3 + below(5000);
  if (below(5) == 0) x.rows = 260, x.columns = 20 + below(8);
  if (below(3) == 0) x.rows = 40, x.columns = 256 + below(100), x.type = below(2) ? "bf16" : x.type;
  if (below(4) == 0) x.columns = 1024 * (1 + below(3)) - x.shift - behind;
  x.pitch = x.columns + x.shift + behind;
  return x;
}

START_TEST(shifts) {
  for (uint64_t seed = (uint64_t)_i; seed < share_of(CASES); seed += SLICES) {
    random_seed(seed);
    shape x = draw();
    kl_sb text;
    kl_sb_init(&text, cx);
    kl_sb_puts(&text, "HloModule m\n\nENTRY fusion {\n");
    put(&text, rows[below(KL_COUNT(rows))], &x);
    kl_sb_puts(&text, "\n}\n");
    kiln_module *m = NULL;
    if (kiln_module_parse(cx, "shifted.hlo", text.p, text.n, &m) != KILN_OK)
      give_up((unsigned)seed, "parsing", cx, text.p);
    run_both_and_check(cx, m, machines[seed % (MACHINES - 1)], (unsigned)seed, text.p);
    kiln_module_destroy(&m);
    kl_sb_free(&text);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("shifted", EACH(make_context, drop_context), {shifts, SLICES});
}
