// Rounds of launches in one kernel: what may be a member, what that costs, its proof, its text.

#include "lower/plan/rounds.h"

#include "lower/plan/cost/cost.h"

enum { WARP = 32, MOST_THREADS = 1024, REGISTERS = 1 << 16 };

// --- members --------------------------------------------------------------------------------------------------------

static bool has_node(const kl_seq *s, kl_node_kind a, kl_node_kind b) {
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    if (n->kind == a || n->kind == b || (n->nest && has_node(&n->nest->inside, a, b))) return true;
  }
  return false;
}

static bool launch_has(const kl_plan *p, const kl_plan_launch *l, kl_node_kind a, kl_node_kind b) {
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++)
    if (has_node(&p->parts[i].main.root, a, b) || has_node(&p->parts[i].tail.root, a, b)) return true;
  return false;
}

bool kl_launch_waits(const kl_plan *p, const kl_plan_launch *l) {
  return launch_has(p, l, KL_NODE_SYNC, KL_NODE_LAST);
}

const char *kl_no_member(const kl_plan *p, const kl_plan_launch *l, bool in_place) {
  if (p->target.machine != KL_NVPTX) return "it is the host's";
  if (p->counted) return "its number of rows comes at run time";
  if (l->tickets || launch_has(p, l, KL_NODE_BEFORE, KL_NODE_BEFORE)) return "its blocks wait for those before them";
  if (l->cluster || launch_has(p, l, KL_NODE_MEET, KL_NODE_MEET)) return "its blocks meet";
  if (l->when != KL_ALWAYS && !in_place) return "addresses say whether it is launched";
  if (l->block % WARP || l->block > MOST_THREADS) return "its blocks are no whole warps";
  if (l->grid > INT32_MAX) return "its blocks are too many";
  for (uint32_t i = 0; i < l->nargs; i++)
    if (p->slots[l->args[i]].by_value) return "it is given values";
  return NULL;
}

const char *kl_no_share(const kl_plan *p, const kl_plan_launch *l) {
  if (launch_has(p, l, KL_NODE_LAST, KL_NODE_LAST)) return "a block comes last";
  if (!l->grid) return "it has no blocks";
  if (l->grid > INT32_MAX / (int64_t)l->block) return "its threads are too many";
  return NULL;
}

// --- cost -----------------------------------------------------------------------------------------------------------

// Of one block, in clocks: until the first of what it reads is there, and what is stored; of an instruction that the
// next one waits for. Of a block's barrier, and a cluster's; of a condition. What whoever launches takes for reading a
// value: a copy, for which it waits.
static const double latency = 900, of_instruction = 5, of_barrier = 60, of_meeting = 700, of_condition = 150,
                    of_reading = 15000;
// Times its share of what L2 gives, that one multiprocessor has while others are at rest.
static const double of_l2_alone = 2;
// Rounds of a loop that says no number: what stands before it counts for little, as it does for two or a thousand.
static const double rounds_unknown = 10;

static double multiprocessors_of(const kl_target *t) { // where nobody says: of an H100
  return t->multiprocessors ? t->multiprocessors : 132;
}

// What keeps one multiprocessor that has the GPU to itself: what loops go over stays in L2, of which it has more than
// its share then, and nobody else changes elements.
static double clocks_alone(const kl_plan *p, const kl_cost_clocks *t) {
  double of[] = {t->of[KL_LIMIT_L2] / of_l2_alone, t->of[KL_LIMIT_SHARED], t->of[KL_LIMIT_ISSUE],
                 t->of[KL_LIMIT_MEET] / multiprocessors_of(&p->target)};
  double sum = 0, most = 0;
  for (size_t i = 0; i < KL_COUNT(of); i++) {
    sum += of[i];
    if (of[i] > most) most = of[i];
  }
  return most + (sum - most) / 8;
}

// Of a multiprocessor.
enum { MOST_AT_WORK = 2048, MOST_BLOCKS = 32, SHARED_OF_ALL = 228 << 10, SHARED_OF_BLOCK = 1 << 10 };

// Blocks that all multiprocessors run at once.
static double at_once(const kl_target *t, uint32_t block, uint32_t shared_bytes, double registers) {
  double each = MOST_BLOCKS;
  double most[] = {MOST_AT_WORK / block, (double)REGISTERS / ((registers < 16 ? 16 : registers) * block),
                   SHARED_OF_ALL / (SHARED_OF_BLOCK + shared_bytes)};
  for (size_t i = 0; i < KL_COUNT(most); i++)
    if (most[i] < each) each = most[i];
  return multiprocessors_of(t) * (each < 1 ? 1 : (double)(int64_t)each);
}

static double up(double a, double b) { // a / b, in whole
  return (double)(int64_t)((a + b - 1) / b);
}

static double least_of(double a, double b) {
  return a < b ? a : b;
}

kl_member kl_member_of(kl_plan *p, const kl_plan_launch *l) {
  kl_cost c = kl_plan_cost(p, KL_COST_QUICK);
  kl_cost_clocks t = kl_clocks_of(p, &c);
  double launches = 0;
  for (uint32_t i = 0; i < p->nlaunches; i++) launches += kl_is_launched(&p->launches[i], p->in_place);
  if (launches == 0) launches = 1;
  double each = c.warps ? (double)c.instructions / (double)c.warps : 0;
  double blocks = at_once(&p->target, l->block, l->shared_bytes, c.registers);
  return (kl_member){.plan = p,
                     .launch = l,
                     .unit = kl_share_unit(p, l),
                     .work = clocks_alone(p, &t) / launches,
                     .shared = t.work / multiprocessors_of(&p->target) / launches,
                     .way = latency + of_instruction * each,
                     .registers = c.registers,
                     .ways = up((double)l->grid, blocks),
                     .threads = least_of((double)l->grid, blocks) * l->block};
}

double kl_member_apart(const kl_member *m) {
  return KL_LAUNCH_CLOCKS + (m->way > m->shared ? m->way : m->shared);
}

bool kl_blocks_wait(const kl_plan *p) {
  bool wait = false;
  for (uint32_t i = 0; i < p->nlaunches; i++) wait |= p->launches[i].tickets || p->launches[i].cluster;
  return wait;
}

bool kl_is_quick(kl_plan *p) {
  double one = 0, apart = 0;
  for (uint32_t i = 0; i < p->nlaunches; i++) {
    kl_member m = kl_member_of(p, &p->launches[i]);
    double way = (double)p->launches[i].grid * p->launches[i].block / MOST_THREADS * m.way;
    one += way > m.work ? way : m.work;
    apart += kl_member_apart(&m);
  }
  return one <= 2 * apart;
}

static uint32_t teams_of(const kl_member *m, uint32_t block, uint32_t most_shared) {
  const kl_plan_launch *l = m->launch;
  int64_t teams = block / l->block;
  if (kl_launch_waits(m->plan, l) && teams > KL_MOST_TEAMS) teams = KL_MOST_TEAMS;
  if (l->shared_bytes && teams > most_shared / l->shared_bytes) teams = most_shared / l->shared_bytes;
  if (teams > l->grid) teams = l->grid;
  return teams > 1 ? (uint32_t)teams : 1;
}

static double member_clocks(const kl_member *m, uint32_t teams, uint32_t cluster) {
  double at_once = (double)teams * cluster, ways = (double)(int64_t)(((double)m->launch->grid + at_once - 1) / at_once);
  double work = m->work / cluster, way = ways * m->way;
  return (work > way ? work : way) + (cluster > 1 ? of_meeting : of_barrier);
}

double kl_member_together(const kl_rounds *r, const kl_member *m, const kl_target *t) {
  return member_clocks(m, teams_of(m, r->block, kl_most_shared(t)), r->cluster);
}

typedef struct clocks {
  double together, apart;
} clocks;

typedef struct fitting {
  const kl_rounds *r;
  uint32_t block, cluster, most_shared;
} fitting;

static clocks clocks_of_steps(const fitting *x, uint32_t first, uint32_t count);

static void add(clocks *to, clocks x, double times) {
  to->together += times * x.together;
  to->apart += times * x.apart;
}

static clocks clocks_of_step(const fitting *x, uint32_t at) {
  const kl_round *s = &x->r->steps[at];
  clocks sum = {0};
  switch (s->kind) {
  case KL_ROUND_MEMBERS:
    for (uint32_t i = s->first; i < s->first + s->count; i++) {
      const kl_member *m = &x->r->members[i];
      sum.together += member_clocks(m, teams_of(m, x->block, x->most_shared), x->cluster);
      sum.apart += kl_member_apart(m);
    }
    break;
  case KL_ROUND_WHILE:
    add(&sum, clocks_of_steps(x, at + 1, s->count + s->body), rounds_unknown);
    sum.together += rounds_unknown * (of_condition + (x->cluster > 1 ? of_meeting : of_barrier));
    sum.apart += rounds_unknown * of_reading;
    break;
  case KL_ROUND_REPEAT: add(&sum, clocks_of_steps(x, at + 1, s->body), (double)s->times); break;
  case KL_ROUND_BRANCH: // any of them
    add(&sum, clocks_of_steps(x, at + 1, s->body), 1.0 / s->count);
    sum.together += of_condition;
    sum.apart += of_reading;
    break;
  case KL_ROUND_CASE: return clocks_of_steps(x, at + 1, s->body);
  }
  return sum;
}

static clocks clocks_of_steps(const fitting *x, uint32_t first, uint32_t count) {
  clocks sum = {0};
  for (uint32_t i = first; i < first + count; i += kl_round_steps(&x->r->steps[i])) add(&sum, clocks_of_step(x, i), 1);
  return sum;
}

// --- fitting --------------------------------------------------------------------------------------------------------

// Threads whose registers a multiprocessor has; estimates of them are off by a fifth.
static uint32_t threads_with(double registers) {
  uint32_t each = (uint32_t)((registers < 16 ? 16 : registers) * 1.2 + 16) / 8 * 8;
  uint32_t threads = REGISTERS / each / WARP * WARP;
  return threads < MOST_THREADS ? threads : MOST_THREADS;
}

static uint32_t most_threads(const kl_rounds *r) {
  double most = 0;
  for (uint32_t i = 0; i < r->nmembers; i++)
    if (r->members[i].registers > most) most = r->members[i].registers;
  return threads_with(most);
}

// Of blocks of so many threads, do those of launches whose own blocks have fewer find the registers that they need?
// Where they do not ptxas keeps nearly all that a thread has in memory.
static bool leaves_registers(const kl_rounds *r, uint32_t block) {
  bool leaves = true;
  for (uint32_t i = 0; i < r->nmembers; i++)
    leaves &= r->members[i].launch->block >= block || threads_with(r->members[i].registers) >= block;
  return leaves;
}

static void take_fit(kl_rounds *r, const fitting *x, clocks c) {
  r->block = x->block;
  r->cluster = x->cluster;
  r->clocks = c.together;
  r->apart = c.apart;
}

// One that takes a tenth less is worth more threads, or blocks.
static const double worth_more = 0.9;

const char *kl_rounds_fit(kl_rounds *r, const kl_target *t, uint32_t cluster) {
  uint32_t least = WARP, most = most_threads(r), clusters = kl_most_in_cluster(t);
  fitting x = {.r = r, .most_shared = kl_most_shared(t)};
  for (uint32_t i = 0; i < r->nmembers; i++)
    if (r->members[i].launch->block > least) least = r->members[i].launch->block;
  if (!leaves_registers(r, least)) return "blocks of one launch leave threads of another too few registers";
  if (most < least) most = least;
  if (cluster > 1 && cluster > clusters) return "the target has no such clusters";
  r->clocks = 0;
  for (x.cluster = cluster ? cluster : 1; x.cluster <= (cluster ? cluster : clusters ? clusters : 1); x.cluster *= 2)
    for (x.block = least; x.block <= most; x.block = x.block < most && 2 * x.block > most ? most : 2 * x.block) {
      clocks c = clocks_of_steps(&x, 0, r->nsteps);
      if (!r->clocks || c.together < worth_more * r->clocks) take_fit(r, &x, c);
    }
  r->shared_bytes = 0;
  for (uint32_t i = 0; i < r->nmembers; i++) {
    kl_member *m = &r->members[i];
    m->teams = teams_of(m, r->block, x.most_shared);
    uint32_t shared = m->teams * m->launch->shared_bytes;
    if (shared > r->shared_bytes) r->shared_bytes = shared;
  }
  r->resident = 1;
  return NULL;
}

// --- fitting of shares ----------------------------------------------------------------------------------------------

// How many of the launch's threads a block of the kernel has at work.
static uint32_t threads_of(const kl_member *m, uint32_t block) {
  if (kl_goes_by_blocks(m)) return m->teams * m->launch->block;
  int64_t all = (m->share + WARP - 1) / WARP * WARP;
  return all < block ? (uint32_t)all : block;
}

// Of a multiprocessor, where so many blocks do all of a member's work.
static double busy(const kl_member *m, double blocks) {
  double clocks = m->work / least_of(blocks, multiprocessors_of(&m->plan->target));
  return clocks > m->shared ? clocks : m->shared;
}

// Of one that goes with others, of which so many blocks run at once: it is the longer on its way the fewer threads are
// at work at once, and so is the GPU where all have their part, if it has had more of them, or fewer whose warps are
// not whole. Half of what a multiprocessor has more to do, as fewer of them have their part, comes on top of the
// launch's own time: not every instruction waits for the one before, so that a way leaves less room than is counted.
static clocks share_clocks(const kl_rounds *r, const kl_member *m, double blocks) {
  double threads = threads_of(m, r->block), active = least_of((double)r->grid, blocks) * threads;
  double issued = up((double)m->share, WARP) * WARP * (double)r->grid;
  double own = (double)m->launch->grid * m->launch->block, lost = m->threads > active ? m->threads / active : 1;
  if (issued > lost * own) lost = issued / own;
  double way = up((double)m->share, threads) * up((double)r->grid, blocks) * m->way, shared = lost * m->shared;
  double own_way = m->ways * m->way, more = busy(m, up(own, (double)m->share)) - busy(m, (double)m->launch->grid);
  double apart = own_way > m->shared ? own_way : m->shared, together = way > shared ? way : shared;
  if (together < apart + more / 2) together = apart + more / 2;
  return (clocks){of_barrier + together, KL_LAUNCH_CLOCKS + apart};
}

static void set_teams(kl_rounds *r, uint32_t most_shared) {
  r->shared_bytes = 0;
  for (uint32_t i = 0; i < r->nmembers; i++) {
    kl_member *m = &r->members[i];
    const kl_plan_launch *l = m->launch;
    m->teams = kl_goes_by_blocks(m) ? teams_of(m, r->block, most_shared) : 1;
    if (m->teams > 1 && m->teams > m->share / l->block) m->teams = (uint32_t)(m->share / l->block);
    uint32_t shared = m->teams * l->shared_bytes;
    if (shared > r->shared_bytes) r->shared_bytes = shared;
  }
}

// As members have it whose registers are the assembler's affair.
static uint32_t resident_of(const kl_rounds *r, const kl_target *t) {
  uint32_t each = kl_resident(t, r->grid, r->block);
  for (uint32_t i = 0; i < r->nmembers; i++) {
    const kl_plan_launch *l = r->members[i].launch;
    if (l->own_registers || (l->at_most && l->at_most < each)) each = l->at_most;
  }
  return each;
}

static bool fit_block(kl_rounds *r, const kl_target *t) {
  uint32_t least = WARP, most = most_threads(r);
  double registers = 16;
  kl_rounds best = {0};
  int64_t longest = 1;
  for (uint32_t i = 0; i < r->nmembers; i++) {
    const kl_member *m = &r->members[i];
    if (kl_goes_by_blocks(m) && m->launch->block > least) least = m->launch->block;
    if (m->registers > registers) registers = m->registers;
    if (m->share > longest) longest = m->share;
  }
  if (!leaves_registers(r, least)) return false;
  if (most < least) most = least;
  r->cluster = 1;
  r->grid = kl_shares_grid(r);
  for (r->block = least; r->block <= most && (r->block == least || r->block < 2 * longest); r->block *= 2) {
    clocks sum = {KL_LAUNCH_CLOCKS, 0};
    set_teams(r, kl_most_shared(t));
    double blocks = at_once(t, r->block, r->shared_bytes, registers);
    for (uint32_t i = 0; i < r->nmembers; i++) add(&sum, share_clocks(r, &r->members[i], blocks), 1);
    r->clocks = sum.together;
    r->apart = sum.apart;
    if (!best.block || r->clocks < worth_more * best.clocks) best = *r;
  }
  *r = best;
  r->resident = resident_of(r, t);
  set_teams(r, kl_most_shared(t));
  return true;
}

// Of shares of few threads several are one, as many as take no more time.
enum { FEW_OF_A_SHARE = 128 };

bool kl_shares_fit(kl_rounds *r, const kl_target *t, bool several) {
  int64_t longest = 1, times = 1;
  if (!fit_block(r, t)) return false;
  for (uint32_t i = 0; i < r->nmembers; i++)
    if (r->members[i].share > longest) longest = r->members[i].share;
  while (several && r->grid > times && 2 * times * longest <= FEW_OF_A_SHARE) times *= 2;
  double one = r->clocks;
  for (uint32_t i = 0; i < r->nmembers && times > 1; i++) r->members[i].share *= times;
  for (; times > 1; times /= 2) {
    fit_block(r, t);
    if (r->clocks <= one) break;
    for (uint32_t i = 0; i < r->nmembers; i++) r->members[i].share /= 2;
    if (times == 2) fit_block(r, t);
  }
  return true;
}

// --- proof ----------------------------------------------------------------------------------------------------------

static kiln_status defect(kl_ctx *cx, const kl_rounds *r, const char *what, uint32_t number) {
  return kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "rounds '%s' do not hold together: %s %u", r->name, what, number);
}

// Every thread of the launch is of one block's share, whole blocks are where threads wait for each other, and whole
// warps where they look at each other.
static bool shares_well(const kl_rounds *r, const kl_member *m) {
  const kl_plan_launch *l = m->launch;
  int64_t all, covered;
  if (m->unit != kl_share_unit(m->plan, l) || m->share < 1 || m->share % m->unit) return false;
  if (__builtin_mul_overflow(l->grid, (int64_t)l->block, &all) || all > INT32_MAX) return false;
  return !__builtin_mul_overflow(m->share, r->grid, &covered) && covered >= all && covered <= INT32_MAX;
}

static kiln_status check_member(kl_ctx *cx, const kl_rounds *r, uint32_t i) {
  const kl_member *m = &r->members[i];
  const kl_plan_launch *l = m->launch;
  const char *why = kl_no_member(m->plan, l, true);
  if (!why && r->grid) why = kl_no_share(m->plan, l);
  if (why) return defect(cx, r, why, i);
  if (r->grid && !shares_well(r, m)) return defect(cx, r, "the share of member", i);
  if (m->teams < 1 || (kl_goes_by_blocks(m) && (uint64_t)m->teams * l->block > r->block))
    return defect(cx, r, "threads of member", i);
  if ((uint64_t)m->teams * l->shared_bytes > r->shared_bytes) return defect(cx, r, "shared memory of member", i);
  if (m->teams > KL_MOST_TEAMS && kl_launch_waits(m->plan, l)) return defect(cx, r, "barriers of member", i);
  for (uint32_t a = 0; a < l->nargs; a++)
    if (m->args[a] >= r->nargs) return defect(cx, r, "an argument of member", i);
  return KILN_OK;
}

// Every step lies within those that it belongs to, and every member is there once.
static kiln_status check_steps(kl_ctx *cx, const kl_rounds *r, uint32_t first, uint32_t end, uint32_t *member) {
  for (uint32_t i = first; i < end; i += kl_round_steps(&r->steps[i])) {
    const kl_round *s = &r->steps[i];
    if (kl_round_steps(s) > end - i) return defect(cx, r, "the end of step", i);
    bool reads = s->kind == KL_ROUND_WHILE || s->kind == KL_ROUND_BRANCH;
    if (reads && s->condition >= r->nargs) return defect(cx, r, "the condition of step", i);
    if (reads && s->condition_bytes != 1 && s->condition_bytes != 4) return defect(cx, r, "the condition of step", i);
    if (s->kind == KL_ROUND_MEMBERS) {
      if (s->first != *member || s->count > r->nmembers - *member) return defect(cx, r, "members of step", i);
      *member += s->count;
      continue;
    }
    uint32_t inside = i + 1, behind = i + kl_round_steps(s), cases = 0;
    if (s->kind == KL_ROUND_WHILE) {
      KL_TRY(check_steps(cx, r, inside, inside + s->count, member));
      inside += s->count;
    }
    for (uint32_t k = inside; s->kind == KL_ROUND_BRANCH && k < behind; k += kl_round_steps(&r->steps[k]), cases++)
      if (r->steps[k].kind != KL_ROUND_CASE) return defect(cx, r, "a case of step", i);
    if (s->kind == KL_ROUND_BRANCH && (!cases || cases != s->count)) return defect(cx, r, "cases of step", i);
    KL_TRY(check_steps(cx, r, inside, behind, member));
  }
  return KILN_OK;
}

kiln_status kl_rounds_verify(kl_ctx *cx, const kl_rounds *r, const kl_target *t) {
  uint32_t member = 0, clusters = kl_most_in_cluster(t);
  if (r->block < WARP || r->block > MOST_THREADS || r->block % WARP) return defect(cx, r, "threads:", r->block);
  if (r->cluster < 1 || r->cluster > (clusters ? clusters : 1)) return defect(cx, r, "blocks:", r->cluster);
  if (r->shared_bytes > kl_most_shared(t)) return defect(cx, r, "shared bytes:", r->shared_bytes);
  for (uint32_t i = 0; i < r->nmembers; i++) KL_TRY(check_member(cx, r, i));
  KL_TRY(check_steps(cx, r, 0, r->nsteps, &member));
  if (r->grid && (r->cluster > 1 || r->nsteps != 1 || r->steps[0].kind != KL_ROUND_MEMBERS))
    return defect(cx, r, "steps of blocks that know nothing of each other:", r->nsteps);
  for (uint32_t i = 0; r->grid && i < r->nargs; i++)
    if (!r->same || r->same[i] > i) return defect(cx, r, "the memory of argument", i);
  if (r->grid && !kl_shares_hold(cx, r)) return defect(cx, r, "what is one block's alone, of members:", r->nmembers);
  return member == r->nmembers ? KILN_OK : defect(cx, r, "members that run:", member);
}

// --- text -----------------------------------------------------------------------------------------------------------

static void indent(kl_sb *b, unsigned depth) {
  for (unsigned i = 0; i < depth; i++) kl_sb_puts(b, "  ");
}

static void print_member(kl_sb *b, const kl_member *m, unsigned depth) {
  const kl_plan_launch *l = m->launch;
  indent(b, depth);
  kl_sbf(b, "%s: %lld block%s of %u threads", l->name, (long long)l->grid, l->grid == 1 ? "" : "s", l->block);
  if (m->share) kl_sbf(b, ", %lld threads a block", (long long)m->share);
  if (m->teams > 1) kl_sbf(b, ", %u at once", m->teams);
  kl_sb_puts(b, ", of");
  for (uint32_t i = 0; i < l->nargs; i++) kl_sbf(b, "%s a%u", i ? "," : "", m->args[i]);
  kl_sb_putc(b, '\n');
}

static void print_steps(kl_sb *b, const kl_rounds *r, uint32_t first, uint32_t count, unsigned depth) {
  for (uint32_t i = first; i < first + count; i += kl_round_steps(&r->steps[i])) {
    const kl_round *s = &r->steps[i];
    for (uint32_t k = 0; s->kind == KL_ROUND_MEMBERS && k < s->count; k++)
      print_member(b, &r->members[s->first + k], depth);
    if (s->kind == KL_ROUND_MEMBERS) continue;
    indent(b, depth);
    switch (s->kind) {
    case KL_ROUND_REPEAT: kl_sbf(b, "%llu times\n", (unsigned long long)s->times); break;
    case KL_ROUND_BRANCH: kl_sbf(b, "one of %u cases, by a%u\n", s->count, s->condition); break;
    case KL_ROUND_CASE: kl_sb_puts(b, "case\n"); break;
    default:
      kl_sb_puts(b, "again and again\n");
      print_steps(b, r, i + 1, s->count, depth + 1);
      indent(b, depth);
      kl_sbf(b, "as long as a%u\n", s->condition);
    }
    print_steps(b, r, i + 1 + (s->kind == KL_ROUND_WHILE ? s->count : 0), s->body, depth + 1);
  }
}

void kl_rounds_print(kl_sb *b, const kl_rounds *r) {
  kl_sbf(b, "kernel %s: ", r->name);
  if (r->grid)
    kl_sbf(b, "%u launches in %lld block%s of %u threads", r->nmembers, (long long)r->grid, r->grid == 1 ? "" : "s",
           r->block);
  else
    kl_sbf(b, "rounds of %u launch%s in one block of %u threads", r->nmembers, r->nmembers == 1 ? "" : "es", r->block);
  if (r->cluster > 1) kl_sbf(b, ", and %u more of its cluster", r->cluster - 1);
  if (r->shared_bytes) kl_sbf(b, ", %u bytes of shared memory", r->shared_bytes);
  kl_sbf(b, ", %u arguments: about %llu clocks, %llu as launches%s\n", r->nargs, (unsigned long long)r->clocks,
         (unsigned long long)r->apart, r->programmatic ? ", waits for the kernel before" : "");
  print_steps(b, r, 0, r->nsteps, 1);
}
