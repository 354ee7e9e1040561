// Reads any text as a module. Every instruction of every computation must have an answer, both ways: exact, or with the
// reason why not, in order, of arrays that are there. Walks from
// every instruction must end, and hold values that are there.
#include "mutate.h"

#include "lower/analysis/reads/reach.h"
#include <kiln/index.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

enum { MOST_INSTRS = 400, MOST_WALKS = 8 };

static void fail(const char *what, const kiln_module *m, const kl_instr *in) {
  char *text;
  fprintf(stderr, "%s: %s\n", kl_op_name(in->op), what);
  if (kiln_module_print(m->cx, m, &text, NULL) == KILN_OK) fputs(text, stderr);
  abort();
}

static void check_map(const kiln_module *m, const kl_instr *in, const kl_dependence *d, const kl_shape *from,
                      const kl_shape *to) {
  if (d->exact ? d->map->state == KL_MAP_UNDEFINED : d->why == NULL) fail("neither exact nor a reason", m, in);
  if (d->map->state == KL_MAP_UNDEFINED) return;
  if (d->map->nvars[KL_AFF_DIM] != from->rank || d->map->nresults != to->rank) fail("another rank", m, in);
  for (uint32_t i = 0; i < from->rank && d->map->state == KL_MAP_DEFINED; i++)
    if (d->map->vars[KL_AFF_DIM][i].in.lo < 0 ||
        (from->dims[i] >= 0 && d->map->vars[KL_AFF_DIM][i].in.hi >= from->dims[i]))
      fail("a dim outside of its array", m, in);
}

static void check_instruction(const kl_reader *r, const kl_comp *c, uint32_t instr) {
  const kl_instr *in = &c->instr[instr];
  for (uint32_t leaf = 0; leaf < kl_shape_leaf_count(in->shape); leaf++) {
    const kl_shape *out = kl_shape_leaf(in->shape, leaf);
    kl_dependences d = kl_reads(r, instr, leaf);
    for (uint32_t i = 0; i < d.n; i++) {
      if (d.p[i].operand >= in->noperands) fail("an operand that is not there", r->m, in);
      const kl_shape *s = kl_operand(c, in, d.p[i].operand)->shape;
      if (d.p[i].leaf >= kl_shape_leaf_count(s)) fail("an array that is not there", r->m, in);
      if (i && d.p[i].operand < d.p[i - 1].operand) fail("not in the order of operands", r->m, in);
      s = kl_shape_leaf(s, d.p[i].leaf);
      check_map(r->m, in, &d.p[i], out, s);
      kl_dependence f = kl_converse(r, instr, &d.p[i], KL_MAP_QUOTA / 16);
      check_map(r->m, in, &f, s, out);
      kl_in_memory(r->affs, f.map, s, out);
    }
  }
}

static void check_walk(kl_affs *p, const kiln_module *m, const kl_comp *c, uint32_t instr, kl_reach_way way) {
  kl_reach r;
  if (!kl_shape_leaf_count(c->instr[instr].shape)) return;
  const kl_shape *start = kl_shape_leaf(c->instr[instr].shape, 0);
  kl_reach_make(p, m, c, instr, 0, way, &r);
  for (uint32_t i = 0; i < r.n; i++) {
    const kl_reach_value *v = &r.values[i];
    const kl_instr *in = &r.frames[v->frame].comp->instr[v->instr];
    if (v->n > KL_REACH_MOST_MAPS) fail("more maps than there may be", m, in);
    for (uint32_t k = 0; k < v->n; k++) check_map(m, in, &v->maps[k], start, kl_shape_leaf(in->shape, v->leaf));
  }
  kl_reach_free(&r);
}

static void check_computation(const kiln_module *m, const kl_comp *c) {
  kl_arena arena;
  kl_arena_init(&arena, m->cx);
  kl_affs *p = kl_affs_create(m->cx, &arena);
  struct kl_runtimes *runtimes = kl_runtimes_create(m->cx, &arena);
  kl_frame frame = {c, 0, 0};
  kl_reader r = {p, m, &frame, 0, runtimes};
  for (uint32_t i = 0; i < c->ninstr; i++) check_instruction(&r, c, i);
  check_walk(p, m, c, c->root, KL_REACH_OPERANDS);
  for (uint32_t i = 0; i < c->ninstr && i < MOST_WALKS; i++) check_walk(p, m, c, i, KL_REACH_USERS);
  kl_runtimes_destroy(&runtimes);
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
}

static void check_list(kiln_context *cx, const kiln_module *m) {
  for (int way = KILN_INDEX_FROM_OUTPUT; way <= KILN_INDEX_FROM_INPUT; way++) {
    kiln_index_params how = {.struct_size = sizeof how, .way = (kiln_index_way)way, .physical = way == 0};
    kiln_indexing *list;
    if (kiln_module_index(cx, m, &how, &list) != KILN_OK) fail("no list", m, kl_root(&m->comp[m->entry]));
    kiln_indexing_destroy(&list);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, "input", (const char *)data, size, &m) == KILN_OK &&
      kiln_module_instruction_count(m) <= MOST_INSTRS) {
    for (uint32_t i = 0; i < m->ncomp; i++) check_computation(m, &m->comp[i]);
    if (kiln_module_parameter_leaf_count(m) <= 16 && kiln_module_result_leaf_count(m) <= 16) check_list(cx, m);
  }
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  return seed % 4 || !LLVMFuzzerMutate ? kl_mutate(data, size, max, seed) : LLVMFuzzerMutate(data, size, max);
}
