// What became of a computation, for people.

#include "lower/fuse/impl.h"

static const char *const reasons[] = {
    [KL_MADE_INSIDE] = "",
    [KL_FOR_OUTSIDE] = "wanted outside fusions",
    [KL_FOR_HERO] = "no kernel makes it together with what reads it",
    [KL_FOR_TIME] = "making it again would take longer than writing and reading it",
    [KL_FOR_LINES] = "what reads it would write elements that are made far from each other side by side",
    [KL_FOR_ORDER] = "what reads it needs other fusions first",
    [KL_FOR_SIZE] = "the kernel that reads it is long enough",
};

static void put_result(kl_fuser *f, uint32_t i, kl_sb *b) {
  kl_sb_puts(b, "  writes ");
  kl_sb_put(b, kl_symbol_text(&f->m->names, f->c->instr[i].name));
  kl_sbf(b, ": %s\n", reasons[f->why[i]]);
}

static void put_loops(kl_fuser *f, kl_sb *b) {
  for (uint32_t i = 0; i < f->c->ninstr; i++) {
    if (!f->changes[i] || f->home[i] == KL_NO_GROUP) continue;
    kl_sb_puts(b, "loop ");
    kl_sb_put(b, kl_symbol_text(&f->m->names, f->c->instr[i].name));
    kl_sb_puts(b, ": each thread has its rounds, inside of a kernel\n");
  }
}

void kl_fuse_tell(kl_fuser *f, const kl_fused *how, kl_sb *b) {
  uint32_t *first = KL_NEW_N(f->arena, uint32_t, how->ngroups + 1),
           *next = KL_NEW_N(f->arena, uint32_t, f->c->ninstr + 1);
  for (uint32_t g = 0; g < how->ngroups; g++) first[g] = KL_NO_GROUP;
  for (uint32_t i = f->c->ninstr; i-- > 0;) {
    uint32_t g = how->home[i];
    if (g == KL_NO_GROUP) continue;
    next[i] = first[g];
    first[g] = i;
  }
  kl_sbf(b, "%u instructions of ", f->c->ninstr);
  kl_sb_put(b, kl_symbol_text(&f->m->names, f->c->name));
  kl_sbf(b, " become %u fusion%s\n", how->ngroups, how->ngroups == 1 ? "" : "s");
  put_loops(f, b);
  for (uint32_t g = 0; g < how->ngroups; g++) {
    uint32_t last = first[g];
    if (last == KL_NO_GROUP) continue;
    while (next[last] != KL_NO_GROUP) last = next[last];
    const kl_maker *k = kl_fuse_at(f, f->home[last]);
    kl_sb_puts(b, "fusion ");
    kl_sb_put(b, kl_symbol_text(&f->m->names, f->c->instr[last].name));
    kl_sbf(b, ": %u instruction%s\n", k->size, k->size == 1 ? "" : "s");
    for (uint32_t i = first[g]; i != KL_NO_GROUP; i = next[i]) put_result(f, i, b);
  }
}
