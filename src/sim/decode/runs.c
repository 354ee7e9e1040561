// What ops are to those before them: accesses whose addresses are those of an earlier one a distance away, and ops that
// observers have to be told of.

#include "sim/decode/decode.h"

// Does nothing but compute registers of its lanes, or move their bytes: what comes before it always has, in the same
// lanes.
static bool is_plain(const kl_made_op *o) {
  return o->op.run == kl_x_load || o->op.run == kl_x_store || (o->form && o->form->unit <= KL_UNIT_SPECIAL);
}

// Ops that others than the one before them may lead to.
static bool *find_targets(const kl_decoder *d) {
  bool *is = kl_alloc(d->cx, d->ops.n + 1);
  for (size_t k = 0; k < d->ops.n; k++) {
    const kl_sim_op *o = &d->ops.p[k].op;
    if (o->run == kl_x_branch) is[o->imm] = true;
    const kl_jump_table *t = o->run == kl_x_branch_table ? (const kl_jump_table *)(uintptr_t)o->imm : NULL;
    for (uint32_t n = 0; t && n < t->n; n++) is[t->ops[n]] = true;
  }
  return is;
}

// May the op write the register? Several destinations of one may stand where sources do.
static bool may_write(const kl_sim_op *o, kl_ref reg) {
  if (o->d == reg || o->e == reg || o->c == reg || o->f == reg) return true;
  const kl_sim_access *m = o->run == kl_x_load ? (const kl_sim_access *)(uintptr_t)o->imm : NULL;
  for (unsigned k = 0; m && k < m->count; k++)
    if (m->regs[k] == reg) return true;
  return false;
}

static bool may_begin(const kl_decoder *d, const kl_sim_access *m) {
  bool in_register = m->base != KL_NO_REF && (m->base & 3) == KL_IN_REGISTERS && m->base < d->frame;
  return in_register && !m->frame &&
         (m->where == KL_AT_GENERIC || m->where == KL_AT_GLOBAL || m->where == KL_AT_SHARED);
}

enum { FARTHEST = 1 << 30 }; // bytes between accesses of a run

static bool goes_on(const kl_sim_access *first, const kl_sim_access *m) {
  const int64_t by = m->offset - first->offset;
  return first->base == m->base && first->wide == m->wide && first->where == m->where && first->store == m->store &&
         first->bytes * first->count == m->bytes * m->count && !m->frame && by % (m->bytes * m->count) == 0 &&
         by > -FARTHEST && by < FARTHEST;
}

static void add(kl_sim_access *first, kl_sim_access *m) {
  const int64_t by = m->offset - first->offset;
  first->run = m->run = first;
  if (by < first->low) first->low = by;
  if (by > first->high) first->high = by;
}

void kl_d_find_runs(kl_decoder *d) {
  bool *is_target = find_targets(d);
  kl_sim_access *first = NULL;
  for (size_t k = 0; k < d->ops.n; k++) {
    kl_made_op *o = &d->ops.p[k];
    o->op.told = !is_plain(o);
    if (o->op.told || is_target[k]) first = NULL;
    if (o->op.told) continue;
    if (o->op.run == kl_x_load || o->op.run == kl_x_store) {
      kl_sim_access *m = (kl_sim_access *)(uintptr_t)o->op.imm;
      if (first && goes_on(first, m))
        add(first, m);
      else
        first = may_begin(d, m) ? m : NULL;
    }
    if (first && may_write(&o->op, first->base)) first = NULL;
  }
  kl_free(d->cx, is_target, d->ops.n + 1);
}
