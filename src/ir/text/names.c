// Names for what the text gives none: computations written as attributes, instructions written as operands, the
// computation of a bare list of instructions, modules without a header.
#include "ir/text/parse.h"

typedef VEC(uint32_t) marks; // by symbol: what uses the name

static bool is_marked(const marks *used, uint32_t symbol, uint32_t by) {
  return symbol < used->n && used->p[symbol] == by;
}

static void mark(kl_parser *ps, marks *used, uint32_t symbol, uint32_t by) {
  while (used->n <= symbol) VEC_PUSH(ps->cx, used, 0);
  used->p[symbol] = by;
}

// The first of "BASE", "BASE.1", "BASE.2" ... from number *next on that is not marked; marks it.
static uint32_t free_name(kl_parser *ps, marks *used, uint32_t by, const char *base, uint32_t *next) {
  uint32_t symbol;
  kl_sb text;
  kl_sb_init(&text, ps->cx);
  do {
    text.n = 0;
    kl_sb_puts(&text, base);
    if (*next) kl_sbf(&text, ".%u", *next);
    ++*next;
    symbol = kl_intern(&ps->m->names, (kl_str){text.p, text.n});
  } while (is_marked(used, symbol, by));
  kl_sb_free(&text);
  mark(ps, used, symbol, by);
  return symbol;
}

// A bare list comes first, so that it gets the plain name.
static void name_computations(kl_parser *ps) {
  marks used = {0};
  uint32_t next = 0;
  for (size_t i = 0; i < ps->comps.n; i++) mark(ps, &used, ps->comps.p[i].c.name, 1);
  for (int entry = 1; entry >= 0; entry--)
    for (size_t i = 0; i < ps->comps.n; i++) {
      kl_draft_comp *c = &ps->comps.p[i];
      if (c->anonymous && c->entry == entry) c->c.name = free_name(ps, &used, 1, "_", &next);
    }
  VEC_FREE(ps->cx, &used);
}

static bool has_anonymous(const kl_parser *ps, const kl_draft_comp *c) {
  for (size_t i = c->first; i < c->first + c->n; i++)
    if (ps->instrs.p[i].anonymous) return true;
  return false;
}

// The root of a bare list is called like its computation, a nested instruction after its opcode.
static void name_instruction(kl_parser *ps, const kl_draft_comp *c, kl_draft_instr *d, marks *used, uint32_t by,
                             uint32_t counts[KL_OP_COUNT]) {
  uint32_t next = 0;
  const char *op = d->in.op ? kl_op_name(d->in.op) : kl_symbol_text(&ps->m->names, d->in.opcode_text).p;
  if (d->nested)
    d->in.name = free_name(ps, used, by, kl_strf(ps->arena, "%s.anon", op), &counts[d->in.op]);
  else
    d->in.name = free_name(ps, used, by, kl_symbol_text(&ps->m->names, c->c.name).p, &next);
}

static void name_instructions(kl_parser *ps) {
  marks used = {0};
  uint32_t counts[KL_OP_COUNT] = {0};
  for (size_t i = 0; i < ps->comps.n; i++) {
    const kl_draft_comp *c = &ps->comps.p[i];
    if (!has_anonymous(ps, c)) continue;
    kl_draft_instr *d = ps->instrs.p + c->first;
    for (size_t k = 0; k < c->n; k++) mark(ps, &used, d[k].in.name, (uint32_t)i + 1);
    for (size_t k = 0; k < c->n; k++)
      if (d[k].anonymous) name_instruction(ps, c, &d[k], &used, (uint32_t)i + 1, counts);
  }
  VEC_FREE(ps->cx, &used);
}

static void name_module(kl_parser *ps) {
  const kl_draft_comp *entry = NULL;
  for (size_t i = 0; i < ps->comps.n; i++)
    if (!entry || !entry->entry) entry = &ps->comps.p[i];
  if (!entry || ps->has_header) return;
  kl_str name = kl_symbol_text(&ps->m->names, entry->c.name);
  const char *text = entry->anonymous ? name.p : kl_strf(ps->arena, "module_%.*s", KL_FMT(name));
  ps->m->name = kl_intern(&ps->m->names, kl_str_of(text));
}

// Brings the instructions of computations inside others to all the rest.
static void join(kl_parser *ps) {
  for (size_t i = 0; i < ps->comps.n; i++) {
    kl_draft_comp *c = &ps->comps.p[i];
    if (!c->own) continue;
    c->first = ps->instrs.n;
    for (size_t k = 0; k < c->n; k++) VEC_PUSH(ps->cx, &ps->instrs, c->own[k]);
  }
}

void kl_parse_names(kl_parser *ps) {
  join(ps);
  name_computations(ps);
  name_instructions(ps);
  name_module(ps);
}
