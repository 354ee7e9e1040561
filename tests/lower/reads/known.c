// Maps of known computations, as text: single ops, and walks through fusions, back to parameters and on to results.
// Where other analyses are known to say something else, the row tells why this is right.
#include "support/context.h"

#include "lower/analysis/reads/reach.h"

#include <stdio.h>

#define STEPS                                                                                                          \
  "HloModule m\n"                                                                                                      \
  "sum { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"                                   \
  "pair { a = f32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = s32[] parameter(3) "                \
  "ROOT z = (f32[], s32[]) tuple(add(a, c), add(b, d)) }\n"

typedef struct known {
  const char *lines;    // of ENTRY
  const char *from;     // instruction where the walk begins; its first leaf
  bool on;              // to users; else to operands
  const char *to[8][2]; // instruction, and its maps one a line
  const char *others;   // computations that the lines call
} known;

// clang-format off
static const known rows[] = {
#include "known.inc"
};
// clang-format on

static uint32_t named(const kiln_module *m, const kl_comp *c, const char *name) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (kl_str_is(kl_symbol_text(&m->names, c->instr[i].name), name)) return i;
  ck_abort_msg("no instruction %s", name);
}

// The maps of all values of that name, in the order of frames.
static void print_maps(kl_affs *p, const kiln_module *m, const kl_reach *r, const char *name, kl_sb *b) {
  b->n = 0;
  kl_sb_puts(b, "");
  for (uint32_t i = 0; i < r->n; i++) {
    const kl_reach_value *v = &r->values[i];
    const kl_comp *c = r->frames[v->frame].comp;
    if (!kl_str_is(kl_symbol_text(&m->names, c->instr[v->instr].name), name)) continue;
    for (uint32_t k = 0; k < v->n; k++) {
      const kl_dependence *d = &v->maps[k];
      if (b->n) kl_sb_putc(b, '\n');
      kl_map_print(p, b, d->map, KL_MAP_LINE);
      if (d->why) kl_sbf(b, " -- %s", d->why);
      for (uint32_t t = 0; t < d->map->nvars[KL_AFF_RT]; t++) {
        const kl_runtime *rt = d->map->vars[KL_AFF_RT][t].from.payload;
        const kl_comp *at = r->frames[rt->frame].comp;
        kl_sbf(b, "%s rt%u: %.*s", t ? "," : ";", t, KL_FMT(kl_symbol_text(&m->names, at->instr[rt->instr].name)));
      }
    }
  }
}

START_TEST(known_maps) {
  const known *row = &rows[_i];
  static char text[1 << 14];
  snprintf(text, sizeof text, STEPS "%s\nENTRY e {\n%s\n}\n", row->others ? row->others : "", row->lines);
  kiln_module *m = parse(text);
  const kl_comp *c = &m->comp[m->entry];
  kl_arena arena;
  kl_arena_init(&arena, m->cx);
  kl_affs *p = kl_affs_create(m->cx, &arena);
  kl_sb b = {.cx = m->cx};
  kl_reach r;
  uint32_t from = row->from ? named(m, c, row->from) : c->root;
  kl_reach_make(p, m, c, from, 0, row->on ? KL_REACH_USERS : KL_REACH_OPERANDS, &r);
  bool right = true;
  for (int i = 0; i < 8 && row->to[i][0]; i++) {
    print_maps(p, m, &r, row->to[i][0], &b);
    const char *got = b.p ? b.p : "";
    if (strcmp(got, row->to[i][1])) {
      printf("# %s from %s to %s\n#   expected %s\n#   found    %s\n", row->lines, row->from ? row->from : "root",
             row->to[i][0], row->to[i][1], got);
      right = false;
    }
  }
  EXPECT(right, "other maps of %s", row->lines);
  kl_sb_free(&b);
  kl_reach_free(&r);
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("reads_known", EACH(make_context, drop_context), {known_maps, sizeof rows / sizeof *rows});
}
