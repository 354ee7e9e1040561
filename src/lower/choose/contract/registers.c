// Contractions of the host: an iteration has some rows of the result by some vectors of lanes, in registers.
//
// What lanes read side by side is read once for all rows, and what is one for all lanes once for all vectors. Both come
// from the operands as they lie, pair by pair; what is near in memory stays in the caches from iteration to iteration.

#include "lower/choose/contract/contract.h"

enum { ROWS = 4, VECTORS = 2 };

// Names of indices.
enum { LEFT_NAME, RIGHT_NAME, BOTH_NAME, NAMES };

typedef struct holding {
  kl_choosing *c;
  const kl_contraction *x;
  const kl_contract_outputs *o;
  kl_affs *p;
  kl_writer w;
  kl_walk walk;
  kl_body body;
  kl_var_list vars;
  int fast;   // the side that lanes run along
  bool packs; // the right side has been written to panels
  kl_contract_panels panels;
  const kl_aff *panel, *in_panel;
  const kl_aff *named[NAMES];
  int64_t extent[NAMES];
  kl_contract_loops loops;
  uint32_t there[2]; // the element's row is there, by side
  const kl_aff *element[KILN_MAX_RANK];
} holding;

// --- who does what --------------------------------------------------------------------------------------------------

// Rows of an iteration: those that leave none over, if some do. Rows share what loops over pairs read, and nothing of
// what is behind them.
static int64_t rows_of(const holding *x) {
  static const int64_t good[] = {ROWS, ROWS + 2, ROWS + 1, ROWS - 1};
  if (x->c->plan->few) return 1;
  int64_t n = x->extent[LEFT_NAME + 1 - x->fast];
  for (size_t i = 0; i < KL_COUNT(good); i++)
    if (n % good[i] == 0) return good[i];
  return n < ROWS ? n : ROWS;
}

static int64_t vectors_of(const holding *x, int64_t lanes) {
  bool wide = x->x->complex || kl_info(x->x->type)->bits > 32;
  return !wide && x->extent[LEFT_NAME + x->fast] > lanes ? VECTORS : 1;
}

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

// Iterations that follow each other read the same of the side that lanes run along.
static void make_vars(holding *x) {
  int64_t lanes = x->c->plan->target.host_lanes, rows = rows_of(x), vectors = vectors_of(x, lanes);
  int f = LEFT_NAME + x->fast, s = LEFT_NAME + 1 - x->fast;
  uint32_t var;
  x->named[BOTH_NAME] = kl_new_var(x->p, &x->vars, KL_BIND_BLOCK, x->extent[BOTH_NAME], "batch", &var);
  const kl_aff *block =
      kl_new_var(x->p, &x->vars, KL_BIND_BLOCK, ceil_div(x->extent[f], vectors * lanes), "block", &var);
  const kl_aff *row = kl_new_var(x->p, &x->vars, KL_BIND_BLOCK, ceil_div(x->extent[s], rows), "row_block", &var);
  const kl_aff *i = kl_new_var(x->p, &x->vars, KL_BIND_REG, rows, "i", &var);
  if (var != KL_NONE) x->loops.regs |= (kl_vars)1 << var;
  const kl_aff *vector = kl_new_var(x->p, &x->vars, KL_BIND_REG, vectors, "v", &var);
  if (var != KL_NONE) x->loops.regs |= (kl_vars)1 << var;
  const kl_aff *lane = kl_new_var(x->p, &x->vars, KL_BIND_LANE, lanes, "lane", &var);
  x->named[s] = kl_aff_addmul(x->p, i, row, rows);
  x->panel = block;
  x->in_panel = kl_aff_addmul(x->p, lane, vector, lanes);
  x->named[f] = kl_aff_addmul(x->p, x->in_panel, block, vectors * lanes);
  kl_contract_loop_vars(x->p, &x->vars, x->x, 1, &x->loops);
}

static kiln_status want_pair(void *arg, const kl_aff *r, kl_parts *terms) {
  holding *x = arg;
  for (int side = 0; side < 2 - x->packs; side++)
    KL_TRY(kl_want_term(&x->walk, x->x, side, x->element, r, x->there[side], &terms[side]));
  if (!x->packs) return KILN_OK;
  uint32_t v[2] = {KL_NONE, KL_NONE};
  const kl_aff *at = kl_panel_place(x->p, x->x, &x->panels, x->named[BOTH_NAME], x->panel, r, x->in_panel);
  for (uint32_t part = 0; part < (x->x->complex ? 2 : 1); part++) {
    uint32_t slot = x->panels.slot[part];
    v[part] = kl_write_load(&x->w, slot, &x->c->slots.v.p[slot], at, KL_NONE, NULL);
  }
  terms[1] = (kl_parts){v[0], v[1]};
  return KILN_OK;
}

static kiln_status write_body(holding *x, const char **why_not) {
  const kl_aff *number[KL_CONTRACT_ROLES], *index[KILN_MAX_RANK];
  kl_parts sum;
  bool never;
  for (uint32_t i = 0; i < NAMES; i++) {
    uint32_t role = i == BOTH_NAME ? KL_OF_BOTH : i == LEFT_NAME ? KL_OF_LEFT : KL_OF_RIGHT;
    number[role] = kl_aff_dim(x->p, x->w.guards.first_name + i);
  }
  kl_contract_element(x->p, x->x, number, x->element);
  kl_contract_output_index(x->p, x->x, x->o, x->element, index);
  for (int s = 0; s < 2; s++)
    x->there[s] = kl_guard_and(&x->w.guards, KL_NONE, x->named[LEFT_NAME + s], 0, x->extent[LEFT_NAME + s] - 1, &never);
  KL_TRY(kl_contract_sum(&x->w, x->x, &x->loops, want_pair, x, &sum));
  uint32_t keep = kl_guard_and(&x->w.guards, x->there[0], x->named[RIGHT_NAME], 0, x->extent[RIGHT_NAME] - 1, &never);
  x->walk.goes_on = true;
  KL_TRY(kl_store_outputs(&x->walk, x->x, x->o, index, NULL, sum, keep));
  if (x->walk.elsewhere) *why_not = "results take its elements at other places";
  return KILN_OK;
}

enum { OFTEN = 16 }; // rows for which it is worth writing the other side once more

// Lanes run along what lies side by side, or is written so before.
static kiln_status choose_side(holding *x) {
  bool along[2];
  KL_TRY(kl_contract_runs_along(x->c, x->x, along));
  x->fast = along[0] && !along[1] ? 0 : 1;
  x->packs = x->fast && x->extent[LEFT_NAME] >= OFTEN && x->x->length;
  if (!x->packs) return KILN_OK;
  int64_t lanes = x->c->plan->target.host_lanes;
  KL_TRY(kl_contract_pack(x->c, x->x, vectors_of(x, lanes) * lanes, &x->panels));
  kl_plan_add_launch(x->c->plan, 1);
  return KILN_OK;
}

kiln_status kl_contract_registers(kl_choosing *c, const kl_contraction *k, const kl_contract_outputs *o,
                                  const char **why_not) {
  holding x = {.c = c, .x = k, .o = o, .p = c->plan->affs};
  x.extent[LEFT_NAME] = kl_contract_extent(k, KL_OF_LEFT);
  x.extent[RIGHT_NAME] = kl_contract_extent(k, KL_OF_RIGHT);
  x.extent[BOTH_NAME] = kl_contract_extent(k, KL_OF_BOTH);
  KL_TRY(choose_side(&x));
  make_vars(&x);
  kl_take_vars(c->arena, &x.vars, &x.body);
  x.body.width = c->plan->target.host_lanes;
  kl_write_begin_naming(&x.w, c->cx, c->plan, &x.body, NAMES, x.extent);
  kl_walk_begin(&x.walk, c->cx, c->plan, &c->slots, &x.w);
  x.walk.named = x.named;
  x.walk.nnamed = NAMES;
  kiln_status st = write_body(&x, why_not);
  kl_walk_free(&x.walk);
  if (st == KILN_OK && x.w.splits_bytes) *why_not = "results of several iterations would share a byte";
  if (st != KILN_OK || *why_not) {
    kl_write_free(&x.w);
    return st;
  }
  kl_write_end(&x.w);
  kl_last_launch(c->plan)->block = 1;
  kl_part part = {
      .dim = KL_NONE, .count = k->shape->count, .main = x.body, .blocks = x.body.blocks, .main_blocks = x.body.blocks};
  kl_plan_add_part(c->plan, &part);
  return KILN_OK;
}
