// A launch that leaves the right operand in scratch memory as those behind it read it: panels of so many rows side by
// side, in each of them pair after pair. What an operand is made of is made once so, and no two pairs of a panel lie so
// far apart that caches hold few of them.

#include "lower/choose/contract/contract.h"

enum { RIGHT_NAME, BOTH_NAME, NAMES };

typedef struct packing {
  kl_choosing *c;
  const kl_contraction *x;
  const kl_contract_panels *panels;
  kl_affs *p;
  kl_writer w;
  kl_walk walk;
  kl_var_list vars;
} packing;

const kl_aff *kl_panel_place(kl_affs *p, const kl_contraction *x, const kl_contract_panels *panels, const kl_aff *batch,
                             const kl_aff *panel, const kl_aff *pair, const kl_aff *row) {
  const kl_aff *at = kl_aff_addmul(p, panel, batch, panels->count);
  at = kl_aff_addmul(p, pair, at, x->length);
  return kl_aff_addmul(p, row, at, panels->width);
}

static kiln_status write_body(packing *x, const kl_aff *place, const kl_aff *pair, const kl_aff *row) {
  const kl_aff *number[KL_CONTRACT_ROLES], *element[KILN_MAX_RANK];
  kl_parts v;
  bool never;
  number[KL_OF_LEFT] = kl_aff_const(x->p, 0);
  number[KL_OF_RIGHT] = kl_aff_dim(x->p, x->w.guards.first_name + RIGHT_NAME);
  number[KL_OF_BOTH] = kl_aff_dim(x->p, x->w.guards.first_name + BOTH_NAME);
  kl_contract_element(x->p, x->x, number, element);
  uint32_t there = kl_guard_and(&x->w.guards, KL_NONE, row, 0, kl_contract_extent(x->x, KL_OF_RIGHT) - 1, &never);
  KL_TRY(kl_want_term(&x->walk, x->x, 1, element, pair, there, &v));
  place = kl_dom_simplify(x->w.body->domain, place);
  for (uint32_t part = 0; part < (x->x->complex ? 2 : 1); part++) {
    uint32_t slot = x->panels->slot[part];
    kl_write_store(&x->w, slot, &x->c->slots.v.p[slot], place, part ? v.im : v.re, KL_NONE);
  }
  return KILN_OK;
}

kiln_status kl_contract_pack(kl_choosing *c, const kl_contraction *k, int64_t width, kl_contract_panels *out) {
  packing x = {.c = c, .x = k, .panels = out, .p = c->plan->affs};
  int64_t lanes = c->plan->target.host_lanes, rows = kl_contract_extent(k, KL_OF_RIGHT), both, count;
  const int64_t extents[NAMES] = {rows, both = kl_contract_extent(k, KL_OF_BOTH)};
  *out = (kl_contract_panels){.width = width, .count = (rows - 1) / width + 1};
  count = both * out->count * k->length * width;
  for (uint32_t part = 0; part < (k->complex ? 2 : 1); part++)
    out->slot[part] = kl_add_scratch(c->cx, c->plan, &c->slots, k->type, count);
  uint32_t var;
  const kl_aff *batch = kl_new_var(x.p, &x.vars, KL_BIND_BLOCK, both, "batch", &var);
  const kl_aff *panel = kl_new_var(x.p, &x.vars, KL_BIND_BLOCK, out->count, "panel", &var);
  const kl_aff *pair = kl_new_var(x.p, &x.vars, KL_BIND_BLOCK, k->length, "k", &var);
  const kl_aff *vector = kl_new_var(x.p, &x.vars, KL_BIND_REG, width / lanes, "v", &var);
  const kl_aff *row = kl_aff_addmul(x.p, kl_new_var(x.p, &x.vars, KL_BIND_LANE, lanes, "lane", &var), vector, lanes);
  const kl_aff *named[NAMES] = {kl_aff_addmul(x.p, row, panel, width), batch};
  kl_body b = {0};
  kl_take_vars(c->arena, &x.vars, &b);
  b.width = (uint32_t)lanes;
  kl_write_begin_naming(&x.w, c->cx, c->plan, &b, NAMES, extents);
  kl_walk_begin(&x.walk, c->cx, c->plan, &c->slots, &x.w);
  x.walk.named = named;
  x.walk.nnamed = NAMES;
  kiln_status st = write_body(&x, kl_panel_place(x.p, k, out, batch, panel, pair, row), pair, named[RIGHT_NAME]);
  kl_walk_free(&x.walk);
  if (st != KILN_OK) {
    kl_write_free(&x.w);
    return st;
  }
  kl_write_end(&x.w);
  kl_last_launch(c->plan)->block = 1;
  kl_part part = {.dim = KL_NONE, .count = count, .main = b, .blocks = b.blocks, .main_blocks = b.blocks};
  kl_plan_add_part(c->plan, &part);
  return KILN_OK;
}
