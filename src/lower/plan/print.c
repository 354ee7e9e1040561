// The plan as text: for --emit plan and for tests.

#include "lower/plan/cost/cost.h"

typedef struct printer {
  kl_sb *b;
  const kl_plan *p;
  const kl_body *body;
  kl_str vars[KL_MAX_VARS];
  kl_str *symbols; // as their steps
} printer;

static void print_expr(printer *x, const kl_aff *e) {
  kl_aff_print(x->p->affs, x->b, e, &(kl_aff_names){.of = {x->vars, NULL, x->symbols}});
}

static void name_symbols(printer *x) {
  const kl_body *b = x->body;
  x->symbols = KL_NEW_N(x->p->arena, kl_str, KL_FIRST_SYMBOL + b->nsymbols);
  for (uint32_t i = 0; i < b->nsymbols; i++)
    x->symbols[KL_FIRST_SYMBOL + i] = kl_is_counted_in(&b->symbols[i])
                                          ? kl_str_of("rows")
                                          : kl_str_of(kl_strf(x->p->arena, "v%u", b->symbols[i].step));
}

static void print_access(printer *x, const kl_access *a) {
  kl_sb *b = x->b;
  unsigned bits = kl_info(x->p->slots[a->slot].shape->dtype)->bits;
  kl_sbf(b, "s%u[", a->slot);
  print_expr(x, a->base[0]);
  kl_sb_puts(b, "]");
  if (a->vec > 1 && a->stride == 0)
    kl_sbf(b, " broadcast x%u", a->vec);
  else if (a->vec > 1 && a->stride == 1) {
    unsigned bytes = a->vec * bits / 8, width = bytes < 16 ? bytes : 16;
    if (a->align < width) width = a->align;
    kl_sbf(b, " contiguous x%u (%u-byte accesses)%s", a->vec, width, a->reversed ? " reversed" : "");
  } else if (a->vec > 1)
    kl_sbf(b, " stride %lld x%u", (long long)a->stride, a->vec);
  if (a->vec > 1 && a->regs & (a->regs - 1)) kl_sbf(b, " along %s", x->body->vars[a->run].name);
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

static void indent(printer *x, unsigned depth) {
  for (unsigned i = 0; i < 2 + depth; i++) kl_sb_puts(x->b, "  ");
}

// Of what is there once or once for each lane of a loop over elements nothing is said.
static void print_regs(printer *x, kl_vars regs) {
  if (x->body->threads) return;
  for (uint32_t v = 0, n = 0; v < x->body->nvars; v++)
    if (kl_has_var(regs, v)) kl_sbf(x->b, "%s%s", n++ ? "," : "[", x->body->vars[v].name);
  if (regs) kl_sb_putc(x->b, ']');
}

static void print_symbol(printer *x, const kl_symbol *s) {
  kl_sbf(x->b, " held to %lld..%lld", (long long)s->lo, (long long)s->hi);
  for (uint32_t v = 0, n = 0; v < x->body->nvars; v++) {
    if (!kl_has_var(s->vars & kl_inner(x->body), v)) continue;
    kl_sbf(x->b, n++ ? ", %u %s" : ", same for %u %s", s->uniform[v], x->body->vars[v].name);
  }
}

static void print_step(printer *x, uint32_t i, unsigned depth) {
  const kl_step *s = &x->body->steps[i];
  kl_sb *b = x->b;
  const kl_plan *p = x->p;
  indent(x, depth);
  kl_sbf(b, "v%u", i);
  print_regs(x, s->regs);
  kl_sbf(b, " = %s ", kl_info(s->dtype)->name);
  char text[96];
  switch (s->kind) {
  case KL_STEP_LOAD:
    kl_sb_puts(b, "load ");
    print_access(x, &s->access);
    break;
  case KL_STEP_SCALAR:
    kl_scalar_text(text, s->dtype, s->bits);
    kl_sbf(b, "constant %s", text);
    break;
  case KL_STEP_IOTA:
    kl_sb_puts(b, "iota ");
    print_expr(x, s->expr);
    break;
  case KL_STEP_SPLIT:
    kl_sb_puts(b, "part ");
    print_expr(x, s->expr);
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
    kl_sb_puts(b, kl_op_name(s->op.op));
    print_operands(b, s);
    if (s->op.nonpositive) kl_sb_puts(b, " at most 0");
    break;
  case KL_STEP_FMA:
    kl_sb_puts(b, "fma");
    print_operands(b, s);
    break;
  case KL_STEP_TAKE:
    kl_sbf(b, "take %s = %u of ", x->body->vars[s->var].name, s->distance);
    print_operands(b, s);
    break;
  case KL_STEP_SLIDE:
    kl_sbf(b, "slide %s by ", x->body->vars[s->var].name);
    print_expr(x, s->expr);
    kl_sb_puts(b, " of ");
    print_operands(b, s);
    break;
  case KL_STEP_SHUFFLE:
    kl_sbf(b, "of lane xor %u ", s->distance);
    print_operands(b, s);
    break;
  case KL_STEP_ROTATE:
    kl_sbf(b, "of lane + %u ", s->distance);
    print_operands(b, s);
    break;
  case KL_STEP_EXCHANGE:
    kl_sbf(b, "exchange %s / %u with %s ", x->body->vars[s->var].name, s->distance, x->body->vars[s->lane].name);
    print_operands(b, s);
    break;
  case KL_STEP_ANY:
    kl_sb_puts(b, "any lane's ");
    print_operands(b, s);
    break;
  case KL_STEP_CARRIED: kl_sb_puts(b, "carried"); break;
  case KL_STEP_INDEX:
    kl_sb_puts(b, "index");
    print_operands(b, s);
    print_symbol(x, &x->body->symbols[s->var]);
    break;
  }
  if (s->instr) kl_sbf(b, "  ; %.*s", KL_FMT(kl_symbol_text(&p->module->names, s->instr->name)));
  kl_sb_putc(b, '\n');
}

static void print_store(printer *x, const kl_node *n, unsigned depth) {
  const kl_store *s = &x->body->stores[n->index];
  indent(x, depth);
  switch (s->how) {
  case KL_STORE_PUT: kl_sbf(x->b, "store v%u to ", s->step); break;
  case KL_STORE_TAKE: kl_sbf(x->b, s->alone ? "overwrite with v%u " : "overwrite with any v%u ", s->step); break;
  case KL_STORE_COMBINE: kl_sbf(x->b, "update by %s with v%u ", kl_op_name(s->combine), s->step); break;
  case KL_STORE_REPLACE:
    kl_sbf(x->b, "update%s v%u to v%u ", s->alone ? " alone" : "", n->nest->carried->value, s->step);
    break;
  }
  print_access(x, &s->access);
  if (s->keep != KL_NONE) kl_sbf(x->b, " keeping g%u", s->keep);
  kl_sb_putc(x->b, '\n');
}

static void print_loop(printer *x, const kl_node *n, unsigned depth) {
  indent(x, depth);
  if (n->kind == KL_NODE_WHILE)
    kl_sbf(x->b, "while v%u", n->index);
  else
    kl_sbf(x->b, "for %s in 0..%lld", x->body->vars[n->index].name, (long long)x->body->vars[n->index].extent - 1);
  for (uint32_t i = 0; i < n->nest->ncarried; i++) {
    const kl_carried *c = &n->nest->carried[i];
    kl_sbf(x->b, "%s v%u = v%u, then v%u", i ? ";" : ", carrying", c->value, c->first, c->next);
  }
  kl_sb_puts(x->b, "\n");
}

// The left values, and how each begins; the right ones; and what is made of both.
static void print_before(printer *x, const kl_node *n, unsigned depth) {
  static const char *const between[] = {" ", " joined with ", " to "};
  indent(x, depth);
  kl_sbf(x->b, "before %s", x->body->vars[n->index].name);
  uint32_t half = n->nest->ncarried / 2;
  for (uint32_t i = 0; i < 3 * half; i++) {
    const kl_carried *c = &n->nest->carried[i % (2 * half)];
    kl_sb_puts(x->b, i % half ? ", " : between[i / half]);
    kl_sbf(x->b, i < 2 * half ? "v%u = v%u" : "v%u", i < 2 * half ? c->value : c->next, c->first);
  }
  kl_sb_putc(x->b, '\n');
}

static void print_last(printer *x, const kl_arrival *a, unsigned depth) {
  indent(x, depth);
  kl_sbf(x->b, "last of %lld blocks by s%u[", (long long)kl_extent(x->body, a->of), a->slot);
  print_expr(x, a->element);
  kl_sb_puts(x->b, "]\n");
}

static void print_seq(printer *x, const kl_seq *s, unsigned depth) {
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    switch (n->kind) {
    case KL_NODE_STEP: print_step(x, n->index, depth); break;
    case KL_NODE_STORE:
    case KL_NODE_UPDATE: print_store(x, n, depth); break;
    case KL_NODE_LOOP:
    case KL_NODE_WHILE: print_loop(x, n, depth); break;
    case KL_NODE_BEFORE: print_before(x, n, depth); break;
    case KL_NODE_IF:
      indent(x, depth);
      kl_sbf(x->b, "if g%u\n", n->index);
      break;
    case KL_NODE_LAST: print_last(x, &n->nest->arrival, depth); break;
    case KL_NODE_MEET:
      indent(x, depth);
      kl_sb_puts(x->b, "meet the cluster's blocks\n");
      break;
    case KL_NODE_SYNC:
      indent(x, depth);
      kl_sb_puts(x->b, "sync\n");
      break;
    }
    if (n->nest) print_seq(x, &n->nest->inside, depth + 1);
  }
}

static void print_vars(printer *x) {
  static const char *const bindings[] = {
      [KL_BIND_THREAD] = "thread", [KL_BIND_BLOCK] = "block", [KL_BIND_WARP] = "warp",
      [KL_BIND_LANE] = "lane",     [KL_BIND_STEP] = "step",   [KL_BIND_REG] = "reg"};
  for (uint32_t v = 0; v < x->body->nvars; v++) {
    const kl_var *var = &x->body->vars[v];
    kl_sbf(x->b, "%s %s %s < %lld", v ? "," : ":", bindings[var->binding], var->name, (long long)var->extent);
  }
  kl_sb_putc(x->b, '\n');
}

static void print_part(kl_sb *b, const kl_plan *p, const kl_part *part, bool only) {
  if (only && part->dim == KL_NONE) return;
  if (part->dim == KL_NONE)
    kl_sbf(b, "  part of %lld elements", (long long)part->count);
  else
    kl_sbf(b, "  part of results [%lld:%lld] in dimension %u", (long long)part->lo, (long long)(part->lo + part->size),
           part->dim);
  if (p->target.machine == KL_NVPTX)
    kl_sbf(b, ", blocks from %lld on (%lld without bounds checks)", (long long)part->first_block,
           (long long)part->main_blocks);
  kl_sb_puts(b, ":\n");
}

static void print_guard(printer *x, uint32_t i) {
  const kl_guard *g = &x->body->guards[i];
  kl_sbf(x->b, "    g%u = ", i);
  if (g->outer != KL_NONE) kl_sbf(x->b, "g%u and ", g->outer);
  kl_sbf(x->b, "%lld <= ", (long long)g->lo);
  print_expr(x, g->expr);
  kl_sbf(x->b, " <= %lld", (long long)g->hi);
  for (uint32_t v = 0, n = 0; v < x->body->nvars; v++) {
    if (!kl_has_var(kl_inner(x->body), v)) continue;
    kl_sbf(x->b, n++ ? ", %u %s" : " (same for %u %s", g->uniform[v], x->body->vars[v].name);
  }
  kl_sb_puts(x->b, kl_inner(x->body) ? ")\n" : "\n");
}

static void print_body(kl_sb *b, const kl_plan *p, const char *name, const kl_body *body) {
  if (kl_body_is_empty(body)) return;
  printer x = {b, p, body, {{0}}, NULL};
  name_symbols(&x);
  for (uint32_t v = 0; v < body->nvars; v++) x.vars[v] = kl_str_of(body->vars[v].name);
  kl_sbf(b, "  %s", name);
  if (body->threads)
    kl_sbf(b, ": %lld threads x %u lanes from element %lld\n", (long long)body->threads, body->lanes,
           (long long)body->first);
  else
    print_vars(&x);
  for (uint32_t i = 0; i < body->nguards; i++) print_guard(&x, i);
  print_seq(&x, &body->root, 0);
}

static void print_grid(kl_sb *b, const kl_plan *p, const kl_plan_launch *l) {
  int64_t free = 0;
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++) free += p->parts[i].main_blocks;
  kl_sbf(b, "grid %lld (%lld without bounds checks), block %u", (long long)l->grid, (long long)free, l->block);
  if (l->cluster) kl_sbf(b, ", clusters of %u", l->cluster);
  if (l->resident) kl_sbf(b, ", registers for %u a multiprocessor", l->resident);
  if (l->tickets)
    kl_sbf(b, ", blocks by tickets of s%u, values in s%u, told in s%u", l->tickets->counters, l->tickets->values,
           l->tickets->told);
  if (!l->group) return;
  const kl_part *part = &p->parts[l->first_part];
  const char *first = part->main.vars[__builtin_ctz(kl_bound(&part->main, KL_BIND_BLOCK))].name;
  int64_t by = l->group < l->unit ? l->group : l->unit;
  kl_sb_puts(b, ", as far as ");
  if (l->group > by) kl_sbf(b, "%lld * ", (long long)(l->group / by));
  kl_sbf(b, "%s < ", first);
  if (l->unit > by) kl_sbf(b, "%lld * ", (long long)(l->unit / by));
  kl_sb_puts(b, "rows");
}

const char *kl_when_text(const kl_plan_launch *l) {
  static const char *const texts[] = {
      [KL_ALWAYS] = "", [KL_APART] = " where results are apart", [KL_IN_PLACE] = " where they are in place"};
  return texts[l->when];
}

static void print_launch(kl_sb *b, const kl_plan *p, const kl_plan_launch *l) {
  if (p->nlaunches == 1) return;
  kl_sbf(b, "  launch %s%s", l->name, kl_when_text(l));
  if (p->target.machine == KL_NVPTX) kl_sb_puts(b, ": ");
  if (p->target.machine == KL_NVPTX) print_grid(b, p, l);
  kl_sb_putc(b, '\n');
}

static void print_slot_cost(kl_sb *b, const kl_plan *p, uint32_t i, const kl_slot_cost *c) {
  kl_requests all = c->load.asked;
  kl_add_requests(&all, &c->store.asked, 1);
  if (!all.requests) return;
  bool shared = p->slots[i].kind == KL_SLOT_SHARED, read = c->load.asked.requests != 0;
  kl_sbf(b, "  s%u: %s%lld requests, ", i, kl_is_exact(c) && !c->data ? "" : "about ", (long long)all.requests);
  if (shared)
    kl_sbf(b, "%lld wavefronts of %lld that would do", (long long)all.wavefronts, (long long)all.ideal_wavefronts);
  else
    kl_sbf(b, "%lld sectors of %lld that would do", (long long)all.sectors, (long long)all.least);
  kl_sbf(b, "%s%s\n", c->data ? "; data decides" : "",
         !read || shared        ? ""
         : c->coalesced_for_xla ? "; coalesced for XLA"
                                : "; not coalesced for XLA");
}

static void print_cost(kl_sb *b, kl_plan *p) {
  if (p->target.machine == KL_HOST || p->flat) return;
  kl_cost c = kl_plan_cost(p, KL_COST_THOROUGH);
  for (uint32_t i = 0; i < p->nslots; i++) print_slot_cost(b, p, i, &c.slots[i]);
}

void kl_plan_print(kl_sb *b, kl_plan *p) {
  kl_sbf(b, "kernel %s: %s over %lld elements, ", p->name, p->kind, (long long)p->count);
  if (p->nlaunches > 1) kl_sbf(b, "%u launches, ", p->nlaunches);
  if (p->target.machine == KL_HOST) kl_sb_puts(b, "host, ");
  if (p->target.machine == KL_NVPTX && p->nlaunches == 1) {
    print_grid(b, p, p->launches);
    kl_sb_puts(b, ", ");
  }
  kl_sbf(b, "%d-bit indices%s%s%s%s\n", p->index64 ? 64 : 32,
         p->counted ? kl_strf(p->arena, ", 1..%lld rows at run time", (long long)p->rows) : "",
         p->programmatic ? ", waits for the kernel before" : "", p->fast ? ", fast numerics" : "",
         p->seldom ? ", run seldom" : "");
  for (uint32_t i = 0; i < p->ndeclined; i++) kl_sbf(b, "  no %s: %s\n", p->declined[i].kind, p->declined[i].why);
  static const char *const kinds[] = {
      [KL_SLOT_IN] = "in",         [KL_SLOT_OUT] = "out",         [KL_SLOT_CONST] = "constant",
      [KL_SLOT_SHARED] = "shared", [KL_SLOT_SCRATCH] = "scratch",
  };
  for (uint32_t i = 0; i < p->nslots; i++) {
    kl_sbf(b, "  s%u: %s ", i, kinds[p->slots[i].kind]);
    kl_shape_print(b, p->slots[i].owner ? p->slots[i].owner : p->slots[i].shape, true);
    kl_sbf(b, ", %lld bytes, aligned to %u", (long long)p->slots[i].bytes, p->slots[i].align);
    if (p->slots[i].row) kl_sbf(b, ", %lld elements a row", (long long)p->slots[i].row);
    if (p->slots[i].zero) kl_sb_puts(b, ", zero before and behind");
    if (p->slots[i].by_value) kl_sb_puts(b, ", by value");
    if (p->slots[i].mode == KL_MODE_GROWS) kl_sb_puts(b, ", growing");
    if (p->slots[i].scattered) kl_sb_puts(b, ", scattered");
    if (p->slots[i].mode == KL_MODE_UPDATE) kl_sb_puts(b, ", updated");
    if (p->slots[i].mode == KL_MODE_IN_PLACE) kl_sb_puts(b, ", updated in place");
    if (p->slots[i].alias != KL_NONE) kl_sbf(b, ", may be s%u", p->slots[i].alias);
    if (p->slots[i].unproved) kl_sbf(b, ", not proved: %s", p->slots[i].unproved);
    kl_sb_putc(b, '\n');
  }
  for (uint32_t i = 0, part = 0; i < p->nlaunches; i++) {
    print_launch(b, p, &p->launches[i]);
    for (; part < p->launches[i].first_part + p->launches[i].nparts; part++) {
      print_part(b, p, &p->parts[part], p->launches[i].nparts == 1);
      print_body(b, p, "main", &p->parts[part].main);
      print_body(b, p, "tail", &p->parts[part].tail);
    }
  }
  print_cost(b, p);
}
