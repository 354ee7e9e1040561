// The plan as text: for --emit plan and for tests.

#include "lower/plan/plan.h"

static void print_expr(kl_sb *b, const kl_plan *p, const kl_aff *e) {
  static const kl_str vars[KL_VAR_COUNT] = {{"t", 1}, {"lane", 4}};
  kl_aff_print(p->affs, b, e, &(kl_aff_names){.of = {vars}});
}

static void print_access(kl_sb *b, const kl_plan *p, const kl_access *a) {
  unsigned bits = kl_info(p->slots[a->slot].shape->dtype)->bits;
  kl_sbf(b, "s%u[", a->slot);
  print_expr(b, p, a->base[0]);
  kl_sb_puts(b, "]");
  if (a->vec > 1 && a->stride == 0)
    kl_sbf(b, " broadcast x%u", a->vec);
  else if (a->vec > 1 && a->stride == 1) {
    unsigned bytes = a->vec * bits / 8, width = bytes < 16 ? bytes : 16;
    if (a->align < width) width = a->align;
    kl_sbf(b, " contiguous x%u (%u-byte accesses)%s", a->vec, width, a->reversed ? " reversed" : "");
  } else if (a->vec > 1)
    kl_sbf(b, " stride %lld x%u", (long long)a->stride, a->vec);
  if (a->nchunks > 1) kl_sbf(b, ", %u chunks", a->nchunks);
  if (a->guard != KL_NONE) kl_sbf(b, " if g%u", a->guard);
}

static void print_operands(kl_sb *b, const kl_step *s) {
  for (uint32_t i = 0; i < s->noperands; i++) {
    kl_sb_puts(b, i ? ", " : "(");
    if (s->kind == KL_STEP_CHOOSE && i + 1 < s->noperands) kl_sbf(b, "g%u ? ", s->guards[i]);
    kl_sbf(b, "v%u", s->operands[i]);
  }
  if (s->noperands) kl_sb_putc(b, ')');
}

static void print_step(kl_sb *b, const kl_plan *p, uint32_t i, const kl_step *s) {
  kl_sbf(b, "    v%u = %s ", i, kl_info(s->dtype)->name);
  char text[96];
  switch (s->kind) {
  case KL_STEP_LOAD:
    kl_sb_puts(b, "load ");
    print_access(b, p, &s->access);
    break;
  case KL_STEP_SCALAR:
    kl_scalar_text(text, s->dtype, s->bits);
    kl_sbf(b, "constant %s", text);
    break;
  case KL_STEP_IOTA:
    kl_sb_puts(b, "iota ");
    print_expr(b, p, s->expr);
    break;
  case KL_STEP_SPLIT:
    kl_sb_puts(b, "part ");
    print_expr(b, p, s->expr);
    kl_sb_puts(b, " of ");
    print_operands(b, s);
    break;
  case KL_STEP_JOIN:
    kl_sb_puts(b, "join");
    print_operands(b, s);
    break;
  case KL_STEP_CHOOSE:
    kl_sb_puts(b, "choose");
    print_operands(b, s);
    break;
  case KL_STEP_OP:
    kl_sb_puts(b, kl_op_name(s->instr->op));
    print_operands(b, s);
    break;
  }
  kl_str name = kl_symbol_text(&p->module->names, s->instr->name);
  kl_sbf(b, "  ; %.*s\n", KL_FMT(name));
}

static void print_part(kl_sb *b, const kl_plan *p, const kl_part *part) {
  if (part->dim == KL_NONE) return;
  kl_sbf(b, "  part of results [%lld:%lld] in dimension %u", (long long)part->lo, (long long)(part->lo + part->size),
         part->dim);
  if (p->target.machine == KL_NVPTX)
    kl_sbf(b, ", blocks from %lld on (%lld without bounds checks)", (long long)part->first_block,
           (long long)part->main_blocks);
  kl_sb_puts(b, ":\n");
}

static void print_body(kl_sb *b, const kl_plan *p, const char *name, const kl_body *body) {
  if (!body->threads) return;
  kl_sbf(b, "  %s: %lld threads x %u lanes from element %lld\n", name, (long long)body->threads, body->lanes,
         (long long)body->first);
  for (uint32_t i = 0; i < body->nguards; i++) {
    const kl_guard *g = &body->guards[i];
    kl_sbf(b, "    g%u = ", i);
    if (g->outer != KL_NONE) kl_sbf(b, "g%u and ", g->outer);
    kl_sbf(b, "%lld <= ", (long long)g->lo);
    print_expr(b, p, g->expr);
    kl_sbf(b, " <= %lld (same for %u lanes)\n", (long long)g->hi, g->uniform);
  }
  for (uint32_t i = 0; i < body->nsteps; i++) print_step(b, p, i, &body->steps[i]);
  for (uint32_t i = 0; i < body->nstores; i++) {
    kl_sbf(b, "    store v%u to ", body->stores[i].step);
    print_access(b, p, &body->stores[i].access);
    if (body->stores[i].keep != KL_NONE) kl_sbf(b, " keeping g%u", body->stores[i].keep);
    kl_sb_putc(b, '\n');
  }
}

static int64_t checked_free(const kl_plan *p) {
  int64_t blocks = 0;
  for (uint32_t i = 0; i < p->nparts; i++) blocks += p->parts[i].main_blocks;
  return blocks;
}

static void print_traffic(kl_sb *b, kl_plan *p) {
  for (uint32_t i = 0; i < p->nslots && p->target.machine == KL_NVPTX && !p->counted; i++) {
    kl_traffic t = kl_plan_traffic(p, i, 0);
    if (!t.requests) continue;
    kl_sbf(b, "  s%u: %s%lld requests, %lld sectors of %lld that would do%s\n", i, t.exact ? "" : "about ",
           (long long)t.requests, (long long)t.sectors, (long long)t.least,
           !t.read               ? ""
           : t.coalesced_for_xla ? "; coalesced for XLA"
                                 : "; not coalesced for XLA");
  }
}

void kl_plan_print(kl_sb *b, kl_plan *p) {
  kl_sbf(b, "kernel %s: loop over %lld elements, ", p->name, (long long)p->count);
  if (p->target.machine == KL_NVPTX)
    kl_sbf(b, "grid %lld (%lld without bounds checks), block %u, ", (long long)p->grid, (long long)checked_free(p),
           p->target.block);
  else
    kl_sb_puts(b, "host, ");
  kl_sbf(b, "%d-bit indices%s%s%s\n", p->index64 ? 64 : 32, p->counted ? ", element count at run time" : "",
         p->programmatic ? ", waits for the kernel before" : "", p->fast ? ", fast numerics" : "");
  static const char *const kinds[] = {[KL_SLOT_IN] = "in", [KL_SLOT_OUT] = "out", [KL_SLOT_CONST] = "constant"};
  for (uint32_t i = 0; i < p->nslots; i++) {
    kl_sbf(b, "  s%u: %s ", i, kinds[p->slots[i].kind]);
    kl_shape_print(b, p->slots[i].shape, true);
    kl_sbf(b, ", %lld bytes, aligned to %u", (long long)p->slots[i].bytes, p->slots[i].align);
    if (p->slots[i].by_value) kl_sb_puts(b, ", by value");
    if (p->slots[i].alias != KL_NONE) kl_sbf(b, ", may be s%u", p->slots[i].alias);
    kl_sb_putc(b, '\n');
  }
  for (uint32_t i = 0; i < p->nparts; i++) {
    print_part(b, p, &p->parts[i]);
    print_body(b, p, "main", &p->parts[i].main);
    print_body(b, p, "tail", &p->parts[i].tail);
  }
  print_traffic(b, p);
}
