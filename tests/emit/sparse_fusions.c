// Random fusions (support/gen.h) of which one to three parameters, and some results, are sparse, in random formats: on
// the host, on the simulator and by the evaluator, whose bits must be the same, and all of whose checks find nothing.
//
// 10 (support/share.h): KILN_TEST_SHARE=300 are 3,000. KILN_FUSION_SEED sets one seed to run alone and print.
#include "harness.h"
#include "sparse_run.h"
#include "support/random.h"
#include "support/share.h"
#include "support/sparse_formats.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 4096, MOST_LEAVES = 20, SLICES = 8 };

// A format of this rank.
static void put_encoding(kl_sb *b, uint32_t rank) {
  static const unsigned widths[] = {0, 16, 32, 64};
  char text[1024];
  format f;
  do f = parse_format(formats[random_bits() % FORMATS]);
  while (f.rank != (int)rank);
  print_format(&f, widths[1 + random_bits() % 3], widths[1 + random_bits() % 3], text);
  kl_sb_putc(b, '{');
  for (uint32_t d = rank; d-- > 0;) kl_sbf(b, d ? "%u," : "%u", d);
  kl_sbf(b, ":SP(%s)}", text);
}

static bool can_be_sparse(const kl_shape *s) {
  return kl_shape_is_array(s) && s->rank <= MOST_RANK && s->count <= MOST_ELEMENTS && kl_shape_default_layout(s);
}

// With an encoding where the leaf is marked.
static void put_shape(kl_sb *b, const kl_shape *s, const bool **sparse) {
  if (s->dtype == KILN_TUPLE) kl_sb_putc(b, '(');
  for (uint32_t i = 0; s->dtype == KILN_TUPLE && i < s->nelems; i++) {
    if (i) kl_sb_puts(b, ", ");
    put_shape(b, s->elems[i], sparse);
  }
  if (s->dtype == KILN_TUPLE) {
    kl_sb_putc(b, ')');
    return;
  }
  bool here = *(*sparse)++;
  kl_shape_print(b, s, !here);
  if (here) put_encoding(b, s->rank);
}

// So many of the leaves that can be.
static void mark(const kl_shape *const *shapes, size_t n, unsigned many, bool *out) {
  size_t can = 0;
  for (size_t i = 0; i < n; i++) can += can_be_sparse(shapes[i]);
  for (unsigned k = 0; k < many && can; k++)
    for (size_t i = random_bits() % n, tries = 0; tries < n; tries++, i = (i + 1) % n)
      if (can_be_sparse(shapes[i]) && !out[i]) {
        out[i] = true;
        break;
      }
}

// The module's text with a header that says how leaves lie. False: no parameter can be sparse.
static bool make_sparse(kiln_context *cx, const char *text, size_t size, kl_sb *out) {
  kiln_module *m = NULL;
  bool marked[MOST_LEAVES + 1] = {false}, any = false;
  const bool *at = marked;
  if (kiln_module_parse(cx, "random.hlo", text, size, &m) != KILN_OK) give_up(0, "parsing", cx, text);
  const kl_interface *io = &m->interface;
  const kl_comp *c = &m->comp[m->entry];
  bool fits = io->nparams + io->nresults <= MOST_LEAVES && !m->header.result;
  if (fits) {
    mark(io->shapes, io->nparams, 1 + (unsigned)(random_bits() % 3), marked);
    mark(io->shapes + io->nparams, io->nresults, (unsigned)(random_bits() % 3), marked + io->nparams);
    for (size_t i = 0; i < io->nparams; i++) any |= marked[i];
    const char *line = strchr(text, '\n');
    kl_sb_put(out, (kl_str){text, (size_t)(line - text)});
    kl_sb_puts(out, ", entry_computation_layout={(");
    for (uint32_t p = 0; p < c->nparams; p++) {
      if (p) kl_sb_puts(out, ", ");
      put_shape(out, c->instr[c->params[p]].shape, &at);
    }
    kl_sb_puts(out, ")->");
    put_shape(out, kl_root(c)->shape, &at);
    kl_sb_putc(out, '}');
    kl_sb_puts(out, line);
  }
  kiln_module_destroy(&m);
  return fits && any;
}

static unsigned tried, ran;

static void one(kiln_context *cx, unsigned seed, bool print) {
  gen_source src = {.seed = (seed + 1) * 0xd1342543de82ef95ull};
  kl_sb text, sparse;
  kl_sb_init(&text, cx);
  kl_sb_init(&sparse, cx);
  random_seed(seed);
  gen_fusion(&src, 2 + seed % 13, &text);
  tried++;
  if (make_sparse(cx, text.p, text.n, &sparse)) {
    if (print) puts(sparse.p);
    ran++;
    run_sparse(cx, sparse.p, seed, seed / 2 % TARGETS, (sparse_room)(seed % ROOMS));
  }
  kl_sb_free(&sparse);
  kl_sb_free(&text);
  kiln_diagnostics_clear(cx);
}

START_TEST(random_fusions) {
  kiln_context *cx = kiln_context_create(NULL);
  const char *alone = getenv("KILN_FUSION_SEED");
  if (alone && _i == 0) one(cx, (unsigned)strtoul(alone, NULL, 10), true);
  for (uint64_t s = (uint64_t)_i, n = alone ? 0 : share_of(10); s < n; s += SLICES) one(cx, (unsigned)s, false);
  kiln_context_destroy(&cx);
}
END_TEST

START_TEST(enough_are_sparse) {
  if (getenv("KILN_FUSION_SEED")) return;
  printf("# %u of %u fusions have a sparse parameter\n", ran, tried);
  ck_assert_uint_ge(2 * ran, tried);
}
END_TEST

int main(void) {
  return RUN_TESTS("sparse_fusions", NO_FRAME, {random_fusions, SLICES}, {enough_are_sparse});
}
