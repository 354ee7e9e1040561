// Lists of variables.

#include "lower/choose/chooser.h"

const kl_aff *kl_new_var(kl_affs *p, kl_var_list *vars, kl_binding binding, int64_t extent, const char *name,
                         uint32_t *var) {
  *var = KL_NONE;
  if (extent == 1) return kl_aff_const(p, 0);
  vars->v[vars->n] = (kl_var){binding, extent, name};
  *var = vars->n++;
  return kl_aff_dim(p, *var);
}

void kl_take_vars(kl_arena *arena, const kl_var_list *vars, kl_body *b) {
  b->nvars = vars->n;
  b->vars = kl_arena_dup(arena, vars->v, vars->n * sizeof *vars->v);
  b->blocks = kl_extent(b, kl_bound(b, KL_BIND_BLOCK));
}
