// Where a computation is cut into several kernels.
//
// A value that is wanted at several indices for each element of a result is made as often, or written once and read
// there. Indices multiply along a chain of such values, so that what a kernel would do grows without bounds, and the
// number of its steps with it: then there is a cut. Else there is one where by counted time the launch, the store and
// the loads cost less than making it again: time is that of memory or of instructions, whichever is longer, on one
// machine for all targets, so that a module is cut alike everywhere.

#include "lower/choose/rough.h"
#include "lower/choose/walk/walk.h"

// A cut has to save this share of the time.
#define GAIN 0.2

// LIKELY: as many places as fusions have that are no chain of the kind above; candidates for a cut that are looked at.
enum { LIKELY = 256, MOST_CANDIDATES = 64, AGAIN = 4 };

typedef struct cutter {
  kl_ctx *cx;
  kl_arena arena;
  kl_plan *plan;
  kl_slots slots;
  const kl_comp *c;
  const kl_pieces_params *params;
  bool *cut;       // by instruction
  uint32_t *times; // of the piece at hand
  bool *seen;      // scratch
} cutter;

// --- costs --------------------------------------------------------------------------------------------------------

static bool is_given(const cutter *k, uint32_t i) {
  return k->cut[i] || k->c->instr[i].op == KL_OP_PARAMETER;
}

// Does it stand for a value of its own that may be written?
static bool may_be_cut(const cutter *k, uint32_t i) {
  const kl_instr *in = &k->c->instr[i];
  return kl_rough_work(in) > 0 && !is_given(k, i) && kl_shape_is_array(in->shape) && in->shape->count;
}

// What one element of instruction `i` takes, no value made twice, and the bytes that all of them read.
static double work_of(cutter *k, uint32_t i, double *read) {
  double work = 0;
  memset(k->seen, 0, k->c->ninstr);
  k->seen[i] = true;
  *read = 0;
  for (uint32_t j = i + 1; j-- > 0;) {
    const kl_instr *in = &k->c->instr[j];
    if (!k->seen[j]) continue;
    if (j != i && is_given(k, j)) {
      *read += kl_rough_bytes(in);
      continue;
    }
    work += kl_rough_work(in);
    for (uint32_t o = 0; o < in->noperands; o++) k->seen[in->operands[o]] = true;
  }
  return work;
}

// --- one piece ----------------------------------------------------------------------------------------------------

typedef struct choice {
  uint32_t instr; // KL_NONE: none
  double saves;   // ns
} choice;

static double longer(double a, double b) {
  return a > b ? a : b;
}

// A value that is the same along the fastest dimensions is not made for each of their elements.
static double made(const cutter *k, uint32_t i, double results) {
  double n = k->times[i] * results, own = kl_rough_elements(&k->c->instr[i]);
  return own < results ? longer(own, n / 4) : n;
}

static choice best_cut(cutter *k, uint32_t root) {
  const kl_comp *c = k->c;
  choice best = {.instr = KL_NONE};
  double results = kl_rough_elements(&c->instr[root]), work = 0, moved = kl_rough_bytes(&c->instr[root]), read;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    if (!k->times[i]) continue;
    if (is_given(k, i) && i != root)
      moved += kl_rough_bytes(&c->instr[i]);
    else
      work += kl_rough_work(&c->instr[i]) * made(k, i, results);
  }
  double now = longer(work / KL_ROUGH_ISSUED, moved / KL_ROUGH_MOVED);
  if (now < KL_ROUGH_LAUNCH) return best;
  for (uint32_t i = root, n = 0; i-- > 0 && n < MOST_CANDIDATES;) {
    const kl_instr *in = &c->instr[i];
    if (!k->times[i] || !may_be_cut(k, i) || made(k, i, results) <= kl_rough_elements(in)) continue;
    n++;
    double own = work_of(k, i, &read), rest = longer(0, work - own * made(k, i, results));
    double cut = longer(rest / KL_ROUGH_ISSUED, (moved + kl_rough_bytes(in)) / KL_ROUGH_MOVED) + KL_ROUGH_LAUNCH +
                 longer(own * kl_rough_elements(in) / KL_ROUGH_ISSUED, (read + kl_rough_bytes(in)) / KL_ROUGH_MOVED);
    if (now - cut > GAIN * now && now - cut > best.saves) best = (choice){i, now - cut};
  }
  return best;
}

// Cuts the first from the root that are made so often, as long as half of the places that were looked at are not below
// such; else the one that is most work. Whether there is one.
static bool force_cuts(cutter *k, uint32_t root) {
  const kl_comp *c = k->c;
  uint32_t best = KL_NONE, cuts = 0;
  uint64_t all = 0, below = 0;
  double most = 0, read;
  bool *is_below = KL_NEW_N(&k->arena, bool, c->ninstr);
  for (uint32_t i = 0; i < root; i++) all += k->times[i];
  for (uint32_t i = root; i-- > 0 && 2 * below <= all;) {
    const kl_instr *in = &c->instr[i];
    bool often = !is_below[i] && k->times[i] >= AGAIN && may_be_cut(k, i);
    if (often) k->cut[i] = true, cuts++;
    if (is_below[i]) below += k->times[i];
    for (uint32_t o = 0; o < in->noperands && (often || is_below[i]); o++) is_below[in->operands[o]] = true;
  }
  for (uint32_t i = root; i-- > 0 && !cuts;) {
    if (k->times[i] < 2 || !may_be_cut(k, i)) continue;
    double work = k->times[i] * work_of(k, i, &read);
    if (work > most) best = i, most = work;
  }
  if (best != KL_NONE) k->cut[best] = true;
  return cuts || best != KL_NONE;
}

// Does some value's index differ from use to use, or is some value spread over many elements? A look at users alone:
// else no survey is needed.
static bool may_repeat(cutter *k) {
  const kl_comp *c = k->c;
  uint32_t *at = KL_NEW_N(&k->arena, uint32_t, c->ninstr), n = 1; // 0: not used
  at[c->root] = n;
  for (uint32_t i = c->ninstr; i-- > 0;) {
    const kl_instr *in = &c->instr[i];
    if (!at[i] || is_given(k, i)) continue;
    bool same = kl_op_is_elementwise(in->op) || in->op == KL_OP_TUPLE || in->op == KL_OP_GET_TUPLE_ELEMENT;
    uint32_t other = same ? at[i] : ++n;
    for (uint32_t o = 0; o < in->noperands; o++) {
      uint32_t x = in->operands[o];
      bool makes = kl_rough_work(&c->instr[x]) > 0;
      if (makes && at[x] && at[x] != other) return true;
      if (makes && in->op == KL_OP_BROADCAST && c->instr[x].shape->count > 1) return true;
      at[x] = other;
    }
  }
  return false;
}

// What is wanted for the elements of the root: those of its arrays, or where it is not made element by element of all
// arrays of its operands. Returns their number; NULL counts alone.
static uint32_t find_wanted(const cutter *k, uint32_t root, kl_root_leaf *wanted) {
  const kl_instr *in = &k->c->instr[root];
  bool walked = kl_is_walked(in);
  uint32_t n = 0;
  for (uint32_t o = 0; o < (walked ? 1 : in->noperands); o++) {
    uint32_t x = walked ? root : in->operands[o];
    for (uint32_t leaf = 0; leaf < kl_shape_leaf_count(k->c->instr[x].shape); leaf++, n++)
      if (wanted) wanted[n] = (kl_root_leaf){x, leaf};
  }
  return n;
}

// Cuts the piece that ends in `root` until nothing is to be gained; each cut leaves less of it.
static void cut_piece(cutter *k, uint32_t root) {
  const kl_comp *c = k->c;
  uint32_t n = find_wanted(k, root, NULL);
  kl_root_leaf *wanted = KL_NEW_N(&k->arena, kl_root_leaf, n + 1u);
  find_wanted(k, root, wanted);
  bool given = k->cut[root];
  for (;;) {
    memset(k->times, 0, c->ninstr * sizeof *k->times);
    bool *stops = KL_NEW_N(&k->arena, bool, c->ninstr);
    for (uint32_t i = 0; i < c->ninstr; i++) stops[i] = i != root && is_given(k, i);
    kl_survey s = {.given = stops, .most = LIKELY + 2ull * c->ninstr, .times = k->times};
    kl_walk_survey(k->cx, k->plan, &k->slots, n, wanted, &s);
    bool again = false;
    k->cut[root] = false;
    if (!s.all) {
      again = force_cuts(k, root);
    } else if (!k->params->least && n == 1) {
      choice next = best_cut(k, root);
      again = next.instr != KL_NONE;
      if (again) k->cut[next.instr] = true;
    }
    k->cut[root] = given;
    if (!again) return;
  }
}

// --- all of them --------------------------------------------------------------------------------------------------

static void cut_pieces(cutter *k) {
  const kl_comp *c = k->c;
  for (uint32_t i = 0; i < c->ninstr && k->params->apart; i++) k->cut[i] = kl_is_apart(&c->instr[i]);
  if (!k->params->apart && !may_repeat(k)) return;
  cut_piece(k, c->root);
  for (uint32_t i = c->ninstr; i-- > 0;) // those that were found on the way come before their users
    if (k->cut[i]) cut_piece(k, i);
}

static bool has_cut(const cutter *k) {
  for (uint32_t i = 0; i < k->c->ninstr; i++)
    if (k->cut[i]) return true;
  return false;
}

bool kl_plan_pieces(kl_ctx *cx, const kiln_module *m, const kl_comp *c, const kl_pieces_params *params, bool *cut) {
  cutter k = {.cx = cx, .c = c, .params = params, .cut = cut};
  kl_arena_init(&k.arena, cx);
  k.plan = KL_NEW(&k.arena, kl_plan);
  *k.plan = (kl_plan){.arena = &k.arena, .module = m, .comp = c, .target = params->target};
  k.plan->affs = kl_affs_create(cx, &k.arena);
  k.times = KL_NEW_N(&k.arena, uint32_t, c->ninstr);
  k.seen = KL_NEW_N(&k.arena, bool, c->ninstr);
  cut_pieces(&k);
  VEC_FREE(cx, &k.slots.concatenates);
  kl_ids_free(cx, &k.slots.concatenate_ids);
  kl_plan_free(k.plan);
  kl_arena_free(&k.arena);
  return has_cut(&k);
}
