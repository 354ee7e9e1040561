// Parts of the domain, where a concatenate or pad puts things side by side: in a part few of them can be reached, and
// no element pays for the others.
//
// Of many operands a part takes some. Of few it takes one, as far as elements of no other lie in whole sectors, and
// there are enough of them; what lies between such parts is one of several operands.

#include "lower/choose/walk/walk.h"

#include <stdlib.h>

// On a GPU a part has as many operands as give it rows that memory is written in at full speed, but no more than so
// many. On the host, where a choice costs every lane, it has one. All parts together make about as many steps as one
// body may have.
enum { LEAST_OPERANDS = 9, ROW_BYTES = 128, MOST_OPERANDS = 16, MOST_STEPS = 16384 };

// Of few: elements that are worth blocks of their own; steps of all parts together.
enum { LEAST_ELEMENTS = 2048, MOST_FEW_STEPS = 1024, SECTOR_BITS = 256 };

typedef struct split {
  kl_domain *domain;
  const kl_slot_info **results; // domain->n
  uint32_t dim;
  int64_t inner; // elements of the results below one index of dim
  int64_t row_bytes;
} split;

// --- is there anything to cut? ------------------------------------------------------------------------------------

static bool has_choice(const kl_comp *c, uint32_t operands) {
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    if (in->op == KL_OP_CONCATENATE ? in->noperands >= operands : in->op == KL_OP_PAD && operands <= 2) return true;
  }
  return false;
}

static void mark_called(const kl_comp *c, bool *called) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    for (uint32_t k = 0; k < c->instr[i].ncalled; k++) called[c->instr[i].called[k]] = true;
}

// In the computation, or in one that it calls: callees come before their callers.
static bool reaches_choice(const kl_plan *p, uint32_t operands, kl_arena *arena) {
  const kiln_module *m = p->module;
  bool *called = KL_NEW_N(arena, bool, m->ncomp + 1), found = has_choice(p->comp, operands);
  mark_called(p->comp, called);
  for (uint32_t i = m->ncomp; i-- > 0 && !found;) {
    if (!called[i]) continue;
    mark_called(&m->comp[i], called);
    found = has_choice(&m->comp[i], operands);
  }
  return found;
}

// One box for all results.
static bool is_one_domain(const split *s) {
  for (size_t i = 0; i < s->domain->n; i++)
    if (s->results[i]->owner) return false;
  for (size_t i = 1; i < s->domain->n; i++) {
    const kl_shape *a = s->results[0]->shape, *b = s->results[i]->shape;
    if (!kl_shape_same_dims(a, b)) return false;
    for (uint32_t d = 0; d < a->rank; d++)
      if (kl_shape_minor_to_major(a, d) != kl_shape_minor_to_major(b, d)) return false;
  }
  return s->domain->n > 0;
}

// --- the parts ----------------------------------------------------------------------------------------------------

static int by_place(const void *a, const void *b) {
  const kl_cut *x = a, *y = b;
  if (x->dim != y->dim) return x->dim < y->dim ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

// Keeps the cuts of the dimension that has most, in order, each once.
static size_t choose_dim(split *s, kl_cut *cuts, size_t n) {
  size_t best = 0, most = 0;
  qsort(cuts, n, sizeof *cuts, by_place);
  for (size_t i = 0, end; i < n; i = end) {
    for (end = i; end < n && cuts[end].dim == cuts[i].dim;) end++;
    if (end - i > most) {
      most = end - i;
      best = i;
    }
  }
  size_t kept = 0;
  for (size_t i = best; i < best + most; i++)
    if (!kept || cuts[kept - 1].at != cuts[i].at) cuts[kept++] = cuts[i];
  const kl_shape *shape = s->results[0]->shape;
  s->dim = cuts[0].dim;
  s->inner = 1;
  for (uint32_t i = 0; kl_shape_minor_to_major(shape, i) != (int64_t)s->dim; i++)
    s->inner *= shape->dims[kl_shape_minor_to_major(shape, i)];
  return kept;
}

// A byte of a result belongs to one part, and so does what is stored at once.
static bool has_whole_rows(const split *s) {
  for (size_t i = 0; i < s->domain->n; i++)
    if (s->inner % 8 * kl_info(s->results[i]->shape->dtype)->bits % 8 != 0) return false;
  return true;
}

static bool is_wide(const split *s, int64_t size) {
  for (size_t i = 0; i < s->domain->n; i++)
    if (size * s->inner < s->row_bytes * 8 / kl_info(s->results[i]->shape->dtype)->bits) return false;
  return true;
}

static void add_part(split *s, int64_t lo, int64_t end) {
  const kl_shape *shape = s->results[0]->shape;
  kl_part *part = &s->domain->parts[s->domain->nparts++];
  *part = (kl_part){.dim = s->dim, .lo = lo, .size = end - lo};
  part->count = shape->count / shape->dims[s->dim] * part->size;
}

static void make_parts(split *s, kl_arena *arena, const kl_cut *cuts, size_t n, size_t least) {
  int64_t lo = 0, extent = s->results[0]->shape->dims[s->dim];
  s->domain->parts = KL_NEW_N(arena, kl_part, n + 1);
  for (size_t i = 0, operands = 0; i < n; i++) {
    operands++;
    if (operands < least || (operands < MOST_OPERANDS && !is_wide(s, cuts[i].at - lo))) continue;
    add_part(s, lo, cuts[i].at);
    lo = cuts[i].at;
    operands = 0;
  }
  add_part(s, lo, extent);
}

// --- parts of few operands ------------------------------------------------------------------------------------------

// As many indices of dim as make whole sectors of every result; 0: rows do not begin with them.
static int64_t unit_of(const split *s) {
  const kl_shape *shape = s->results[0]->shape;
  int64_t unit = 1;
  for (uint32_t i = 0; i < s->domain->n; i++)
    while (unit * (s->inner % SECTOR_BITS) * kl_info(s->results[i]->shape->dtype)->bits % SECTOR_BITS) unit *= 2;
  bool slowest = kl_shape_minor_to_major(shape, shape->rank - 1) == (int64_t)s->dim;
  return slowest || shape->dims[s->dim] % unit == 0 ? unit : 0;
}

// Parts of one operand each, and parts of what lies between them; false: nothing is gained.
static bool make_few(split *s, kl_arena *arena, const kl_cut *cuts, size_t n) {
  int64_t unit = unit_of(s), extent = s->results[0]->shape->dims[s->dim], done = 0, alone = 0;
  int64_t each = s->results[0]->shape->count / extent;
  s->domain->nparts = 0;
  s->domain->parts = KL_NEW_N(arena, kl_part, 2 * n + 2);
  for (size_t i = 0; i <= n && unit; i++) {
    int64_t lo = i ? (cuts[i - 1].at + unit - 1) / unit * unit : 0, end = i < n ? cuts[i].at / unit * unit : extent;
    if (end <= lo || !is_wide(s, end - lo) || (end - lo) * each < LEAST_ELEMENTS) continue;
    if (lo > done) add_part(s, done, lo);
    add_part(s, lo, end);
    alone += end - lo;
    done = end;
  }
  if (done < extent) add_part(s, done, extent);
  return alone > extent / 2;
}

// A value or the same everywhere is one load and a choice, and no choice for each element where the pad begins and ends
// with what is stored at once: only two such places in rows that begin apart from it are worth parts.
static bool is_worth(const split *s, const kl_cut *cuts, size_t n) {
  bool apart = false;
  for (size_t i = 0; i < n; i++) {
    if (!cuts[i].pads) return true;
    for (uint32_t k = 0; k < s->domain->n; k++)
      apart |= cuts[i].at * s->inner % 128 * kl_info(s->results[k]->shape->dtype)->bits % 128 != 0;
  }
  return apart && n > 1;
}

static void make_one(kl_domain *domain, kl_arena *arena) {
  domain->nparts = 1;
  domain->parts = KL_NEW(arena, kl_part);
  *domain->parts = (kl_part){.dim = KL_NONE, .count = domain->count};
}

// --- all of it ------------------------------------------------------------------------------------------------------

static void find_results(split *s, const kl_plan *p, const kl_slots *slots, kl_arena *arena) {
  uint32_t first = slots->nargs - (uint32_t)kl_shape_leaf_count(kl_root(p->comp)->shape);
  s->results = KL_NEW_N(arena, const kl_slot_info *, s->domain->n);
  for (uint32_t i = 0; i < s->domain->n; i++) s->results[i] = &slots->v.p[first + s->domain->leaves[i]];
}

// Of fewer operands than `operands` parts are made on GPUs, where nobody says how many they are to be of.
kiln_status kl_split_domain(kl_ctx *cx, kl_plan *p, kl_slots *slots, kl_domain *domain, const kl_plan_params *params,
                            kl_arena *arena) {
  split s = {.domain = domain};
  uint32_t operands = params->cut_operands ? params->cut_operands : LEAST_OPERANDS;
  bool few = p->target.machine == KL_NVPTX && !params->cut_operands;
  find_results(&s, p, slots, arena);
  s.row_bytes = params->cut_bytes ? params->cut_bytes : p->target.machine == KL_HOST ? 1 : ROW_BYTES;
  make_one(domain, arena);
  if (p->flat || !is_one_domain(&s)) return KILN_OK;
  if (!reaches_choice(p, few ? 2 : operands, arena)) return KILN_OK;
  kl_cuts cuts = {0};
  kiln_status st = kl_walk_cuts(cx, p, slots, domain, few ? 2 : operands, &cuts);
  size_t n = st == KILN_OK && cuts.v.n ? choose_dim(&s, cuts.v.p, cuts.v.n) : 0;
  if (n + 1 >= operands && has_whole_rows(&s)) {
    domain->nparts = 0;
    make_parts(&s, arena, cuts.v.p, n, n * cuts.shared / MOST_STEPS + 1);
  } else if (few && is_worth(&s, cuts.v.p, n) && (2 * n + 1) * (cuts.shared + 2) <= MOST_FEW_STEPS &&
             !make_few(&s, arena, cuts.v.p, n)) {
    make_one(domain, arena);
  }
  VEC_FREE(cx, &cuts.v);
  return st;
}
