// kiln_compile: the kernels of ENTRY to plans, plans to code; and the artifact that holds it.

#include "jit/aliases.h"
#include "jit/apart/apart.h"
#include "jit/chunks.h"
#include "jit/jit.h"
#include "jit/kernels.h"
#include "jit/launches.h"
#include "jit/members.h"
#include "jit/params.h"
#include "jit/pieces.h"
#include "ir/densify/densify.h"
#include "ir/rewrite/expand/expand.h"
#include "ir/rewrite/sizes/sizes.h"
#include "ir/rewrite/started.h"
#include "lower/choose/private.h"
#include "lower/plan/cost/cost.h"
#include "lower/emit/irtable.h"
#include "lower/plan/explain.h"
#include <kiln/cuda.h>
#include <math.h>

// The plan of a kernel that others are like, and what was asked of it beside what they are like in.
typedef struct made {
  kl_plan *plan; // NULL: none, or it is not kept
  bool emitted;  // by itself
  const uint32_t *partner;
  const bool *must, *lent;
  struct made *next; // of those that are like the same one
} made;

typedef struct job {
  kl_ctx *cx;
  const kiln_module *given, *origin, *m; // by the caller; over arrays alone; as it is compiled
  const char *picked, *fusion;           // of `given` and of `origin`, that is compiled alone, or NULL
  kiln_module *dense, *started, *sized, *expanded, *opened; // made of the caller's; `origin` is the last of them
  kl_stored_interface stored;                               // what its leaves are
  kiln_compile_params params;                               // for `m`
  kl_strategy strategy;
  kl_target target;
  kiln_artifact *a;
  kl_kernels kernels; // in the artifact's arena
  kl_arena scratch;
  made *made;             // by kernel
  double *times;          // by kernel that others may be like: how often their code is run, infinity in a loop
  uint32_t *first_launch; // by kernel, and of what is behind them
  kl_planned *planned;    // by kernel, until its code is made
  kl_chain chain;
  kl_aliasing aliasing;
  kl_launcher launcher;
  VEC(kiln_launch) launches;
  VEC(kl_host_launch) host_launches;
  kl_sb plan_text, fused, explained, explained_json;
  kl_sb rounds_text, chained; // of launches that are one: behind plans, and behind what is explained of these
  bool plan_only;
  kl_chunks *chunks; // NULL where plans are all
  size_t shared;     // kernels that have no code of their own
} job;

// --- one kernel ---------------------------------------------------------------------------------------------------

static void list_launch(job *j, const kiln_launch *l, const kl_host_launch *host) {
  VEC_PUSH(j->cx, &j->launches, *l);
  VEC_PUSH(j->cx, &j->host_launches, *host);
}

// May launches be one?
static bool may_group(const job *j) {
  return j->target.machine == KL_NVPTX && !j->params.separate_launches && !j->params.scalars_by_value &&
         !j->params.max_count && j->strategy.rounds != KL_NONE;
}

// The slots that grow with the count.
static kiln_status bind_count(job *j, const kl_kernel_unit *u, const kl_plan *p) {
  for (uint32_t n = 0; n < u->narguments; n++) {
    if (u->arguments[n].kind != KILN_ARGUMENT_SLOT)
      return kl_unsupported(j->cx, kl_root(u->comp)->span,
                            "a fusion with a run-time element count has a result that ENTRY does not return");
    kiln_slot *slot = &j->kernels.slots[u->arguments[n].slot];
    slot->row = p->slots[n].row;
    slot->counted = slot->row != 0;
    slot->bytes = p->slots[n].bytes;
  }
  return KILN_OK;
}

// `like`: the kernel that has the code, NULL: this one.
static void explain(job *j, const char *name, kl_plan *p, const char *like) {
  if (j->explained.n) kl_sb_putc(&j->explained, '\n');
  if (like)
    kl_sbf(&j->explained, "kernel %s: the code of %s\n", name, like);
  else
    kl_plan_explain(&j->explained, p);
  kl_sb_puts(&j->explained_json, j->explained_json.n ? ",\n" : "[");
  kl_plan_explain_json(&j->explained_json, p);
}

// Launches of kernels that are one.
static void explain_rounds(job *j, const kiln_launch *l, const kl_rounds *r) {
  kl_sb *b = &j->explained_json;
  if (!(j->params.keep & KILN_KEEP_EXPLAIN)) return;
  kl_sbf(b, "%s{\"launch\": \"%s\", \"of\": [", b->n ? ",\n" : "[", l->kernel);
  for (uint32_t i = 0; i < r->nmembers; i++) kl_sbf(b, "%s\"%s\"", i ? ", " : "", r->members[i].launch->name);
  kl_sbf(b, "], \"grid\": %u, \"block\": %u, ", l->grid[0], l->block[0]);
  kl_sbf(b, "\"clocks\": %.0f, \"clocks_apart\": %.0f}", r->clocks, r->apart);
}

// May kernels share code? Not where it says where it comes from, nor where arguments are values for some of them.
static bool may_share(const job *j) {
  return !j->params.lineinfo && !j->params.scalars_by_value && !j->params.max_count;
}

// Does it matter to a plan what may be written over? Only to what updates arrays.
static bool may_overwrite(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_DYNAMIC_UPDATE_SLICE || c->instr[i].op == KL_OP_SCATTER) return true;
  return false;
}

static bool serves(const made *x, const kl_kernel_unit *u, const kl_plan_params *pp) {
  return x->plan && memcmp(x->partner, pp->partner, u->narguments * sizeof *pp->partner) == 0 &&
         memcmp(x->must, pp->must, u->narguments) == 0 &&
         (!may_overwrite(u->comp) || memcmp(x->lent, pp->lent, u->narguments) == 0);
}

// A plan that serves this kernel, too; NULL: there is none.
static kl_plan *find_made(const job *j, const kl_kernel_unit *u, const kl_plan_params *pp) {
  for (const made *x = &j->made[u->like]; x; x = x->next)
    if (serves(x, u, pp)) return x->plan;
  return NULL;
}

static void keep_made(job *j, uint32_t i, kl_plan *plan, const kl_plan_params *pp) {
  made *first = &j->made[j->kernels.units[i].like], *x = &j->made[i];
  *x = (made){plan, false, pp->partner, pp->must, pp->lent, x == first ? NULL : first->next};
  if (x != first) first->next = x;
}

// The same code, with buffers of its own.
static kiln_status repeat_kernel(job *j, kl_kernel_unit *u, kl_plan *plan, kl_planned *out) {
  KL_TRY(kl_bind_slots(j->cx, &j->aliasing, u, plan));
  j->shared++;
  if (j->params.keep & KILN_KEEP_PLAN) kl_sbf(&j->plan_text, "kernel %s: the code of %s\n", u->name, plan->name);
  if (j->params.keep & KILN_KEEP_EXPLAIN) explain(j, u->name, plan, plan->name);
  *out = kl_describe_launches(&j->launcher, u, plan);
  out->shares = true;
  return KILN_OK;
}

// Of a kernel in a loop that one block may run: blocks that wait for others could be none of its.
static kiln_status plan_alone(job *j, const kl_comp *c, kl_plan_params pp, kl_plan **plan) {
  kl_plan *other;
  if (!may_group(j) || !kl_blocks_wait(*plan)) return KILN_OK;
  pp.strategy.alone = true;
  KL_TRY(kl_plan_make(j->cx, j->m, c, &pp, &j->scratch, &other));
  bool takes = !kl_blocks_wait(other) && kl_is_quick(other);
  kl_plan_free(takes ? *plan : other);
  if (takes) *plan = other;
  return KILN_OK;
}

// Of code whose instructions are done less often in a run, the work that makes it good takes longer than what it gains
// in some thousand runs.
enum { SELDOM = 128 };

// Is the code of a kernel, and of those that share it, run seldom? How often what is in a loop is, data may say.
static bool is_seldom(const job *j, const kl_kernel_unit *u, const kl_plan *plan) {
  if (j->target.machine != KL_HOST || j->strategy.often || plan->counted) return false;
  return j->times[u->like] * kl_times_done(plan) < SELDOM;
}

static void count_times(job *j) {
  j->times = KL_NEW_N(&j->scratch, double, j->kernels.n + 1);
  for (uint32_t i = 0; i < j->kernels.n; i++)
    j->times[j->kernels.units[i].like] += kl_is_in_loop(&j->kernels, i) ? INFINITY : 1;
}

// The plan of a kernel, proved, and its launches; nothing where it is idle.
static kiln_status plan_kernel(job *j, uint32_t i, kl_planned *out) {
  kl_kernel_unit *u = &j->kernels.units[i];
  kiln_manifest *f = &j->a->manifest;
  *out = (kl_planned){0};
  if (u->idle) {
    j->shared++;
    return KILN_OK;
  }
  kl_plan_params pp = {.target = j->target,
                       .name = u->name,
                       .align = j->params.argument_align,
                       .programmatic = j->params.programmatic,
                       .lineinfo = j->params.lineinfo,
                       .strategy = j->strategy,
                       .deterministic = j->params.deterministic,
                       .fast = j->params.numerics == KILN_NUMERICS_FAST};
  kl_plan *plan;
  kl_counted it = {.comp = u->comp, .shapes = u->shapes, .row = 1};
  if (f->counted) {
    KL_TRY(kl_plan_recount(j->cx, &it, j->params.max_count, &j->scratch, &it));
    pp.counted = &it;
    f->count_unit = it.row;
    f->max_count = it.row * it.rows;
  }
  pp.shapes = it.shapes;
  kl_ask_for_aliases(&j->aliasing, u, &j->scratch, &pp);
  kl_plan *like = may_share(j) ? find_made(j, u, &pp) : NULL;
  if (like) return repeat_kernel(j, u, like, out);
  KL_TRY(kl_plan_make(j->cx, j->m, it.comp, &pp, &j->scratch, &plan));
  kiln_status st = kl_is_in_loop(&j->kernels, i) ? plan_alone(j, it.comp, pp, &plan) : KILN_OK;
  if (st == KILN_OK) st = kl_bind_slots(j->cx, &j->aliasing, u, plan);
  if (st == KILN_OK && f->counted) st = bind_count(j, u, plan);
  if (st == KILN_OK) st = kl_plan_verify(j->cx, plan);
  if (st != KILN_OK) {
    kl_plan_free(plan);
    return st;
  }
  plan->seldom = is_seldom(j, u, plan);
  if (j->params.keep & KILN_KEEP_PLAN) kl_plan_print(&j->plan_text, plan);
  if (j->params.keep & KILN_KEEP_EXPLAIN) explain(j, u->name, plan, NULL);
  *out = kl_describe_launches(&j->launcher, u, plan);
  out->own = !u->repeated || !may_share(j);
  if (!out->own) keep_made(j, i, plan, &pp);
  return KILN_OK;
}

static void drop_plan(kl_planned *x) {
  if (x->own) kl_plan_free(x->plan);
  *x = (kl_planned){0};
}

// Is there no code yet of a plan that several kernels share? There is from now on.
static bool is_due(job *j, uint32_t i, const kl_plan *plan) {
  made *x = &j->made[j->kernels.units[i].like];
  while (x && x->plan != plan) x = x->next;
  if (!x) return true;
  bool due = !x->emitted;
  x->emitted = true;
  return due;
}

// A kernel by itself.
static kiln_status make_kernel(job *j, uint32_t i, const kl_planned *x) {
  for (uint32_t n = 0; n < x->n; n++) list_launch(j, &x->launches[n].launch, &x->launches[n].host);
  return x->plan && j->chunks && is_due(j, i, x->plan) ? kl_chunks_add(j->chunks, x->plan, x->shares ? 0 : 1) : KILN_OK;
}

static kiln_status make_rounds(job *j, const kl_grouped *g, const kl_planned *planned) {
  const kl_grouped *like = kl_group_like(&j->kernels, g);
  const kiln_launch l = kl_grouped_launch(&j->kernels, g, like->rounds.name, planned, &j->a->arena);
  list_launch(j, &l, &(kl_host_launch){0});
  explain_rounds(j, &l, &g->rounds);
  if (like != g) {
    if (j->params.keep & KILN_KEEP_PLAN)
      kl_sbf(&j->rounds_text, "kernel %s: the code of %s\n", g->rounds.name, like->rounds.name);
    return KILN_OK;
  }
  KL_TRY(kl_rounds_verify(j->cx, &g->rounds, &j->target));
  if (j->params.keep & KILN_KEEP_PLAN) kl_rounds_print(&j->rounds_text, &g->rounds);
  size_t kernels = 0;
  for (uint32_t i = g->first; i < g->end; i++) kernels += planned[i].plan && !planned[i].shares;
  return j->chunks ? kl_chunks_add_rounds(j->chunks, &g->rounds, kernels) : KILN_OK;
}

// Each kernel is there once it has a plan, and once it has code.
static kiln_status go_on(job *j, size_t planned) {
  size_t coded = j->chunks ? kl_chunks_coded(j->chunks) : 0;
  return kl_go_on(j->cx, planned + j->shared + coded, 2 * (size_t)j->kernels.n);
}

// --- launches -------------------------------------------------------------------------------------------------------

// Kernels first .. end - 1 as launches, one if they are `g`; their plans may go.
static kiln_status list_kernels(job *j, uint32_t first, uint32_t end, const kl_grouped *g) {
  kiln_status st = KILN_OK;
  for (uint32_t i = first; i < end && st == KILN_OK; i++) {
    j->first_launch[i] = (uint32_t)j->launches.n;
    if (g && i == first) st = make_rounds(j, g, j->planned);
    if (!g) st = make_kernel(j, i, &j->planned[i]);
  }
  for (uint32_t i = first; i < end; i++) drop_plan(&j->planned[i]);
  return st;
}

static kiln_status end_chain(job *j) {
  uint32_t first = j->chain.first, end = j->chain.end;
  return list_kernels(j, first, end, kl_chain_end(&j->chain));
}

// A kernel that is none of a loop's: behind others in one launch, or the first of another.
static kiln_status add_kernel(job *j, uint32_t i) {
  if (!may_group(j)) return list_kernels(j, i, i + 1, NULL);
  if (kl_chain_takes(&j->chain, i)) return KILN_OK;
  KL_TRY(end_chain(j));
  kl_chain_begin(&j->chain, i);
  return KILN_OK;
}

// Kernels first .. end - 1, whose plans are there all at once: some may be one launch.
static kiln_status compile_together(job *j, uint32_t first, uint32_t end) {
  kiln_status st = KILN_OK;
  for (uint32_t i = first; i < end && st == KILN_OK; i++) {
    st = go_on(j, i);
    if (st == KILN_OK) st = plan_kernel(j, i, &j->planned[i]);
  }
  if (st == KILN_OK && end - first > 1) kl_group(j->cx, &j->kernels, &j->target, &j->strategy, first, end, j->planned);
  for (uint32_t i = first, behind; i < end && st == KILN_OK; i = behind) {
    const kl_grouped *g = end - first > 1 ? kl_group_at(&j->kernels, i) : NULL;
    behind = g ? g->end : i + 1;
    if (!g) st = add_kernel(j, i);
    if (g) st = end_chain(j); // one group more, which may move them
    if (g && st == KILN_OK) st = list_kernels(j, i, behind, kl_group_at(&j->kernels, i));
  }
  return st;
}

// --- all of them --------------------------------------------------------------------------------------------------

static kiln_status keep_text(job *j, kiln_text_kind kind, const char *text, size_t n) {
  kiln_artifact *a = j->a;
  a->text[kind] = kl_arena_try_alloc(&a->arena, n + 1);
  if (!a->text[kind]) return kl_out_of_memory(j->cx, n + 1, "an artifact's text");
  if (n) memcpy(a->text[kind], text, n);
  a->text_size[kind] = n;
  return KILN_OK;
}

static kiln_status wait_for_code(void *user) {
  job *j = user;
  return go_on(j, j->kernels.n);
}

static kiln_status compile_kernels(job *j) {
  kiln_status st = kl_find_repeats(j->cx, &j->kernels);
  count_times(j);
  j->made = KL_NEW_N(&j->scratch, made, j->kernels.n + 1);
  j->first_launch = KL_NEW_N(&j->scratch, uint32_t, j->kernels.n + 1);
  j->planned = KL_NEW_N(&j->scratch, kl_planned, j->kernels.n + 1);
  kl_chain_init(&j->chain, j->cx, &j->kernels, &j->target, &j->strategy, j->planned,
                j->params.keep & KILN_KEEP_EXPLAIN ? &j->chained : NULL);
  for (uint32_t i = 0, end; i < j->kernels.n && st == KILN_OK; i = end) {
    end = may_group(j) ? kl_planned_together(&j->kernels, i) : i + 1;
    st = compile_together(j, i, end);
  }
  if (st == KILN_OK) st = end_chain(j);
  kl_chain_free(&j->chain);
  for (uint32_t i = 0; i < j->kernels.n; i++) drop_plan(&j->planned[i]);
  j->first_launch[j->kernels.n] = (uint32_t)j->launches.n;
  for (uint32_t i = 0; i < j->kernels.n; i++)
    if (j->made[i].plan) kl_plan_free(j->made[i].plan);
  return st;
}

static kiln_status generate(job *j) {
  if (!j->plan_only) j->chunks = kl_chunks_new(j->cx, &j->scratch, &j->target, &j->params);
  if (j->dense) kl_sb_puts(&j->explained, j->stored.told);
  KL_TRY(compile_kernels(j));
  LLVMTargetMachineRef tm;
  if (j->plan_only) return kl_machine_get(j->cx, &j->target, kl_ptx_floor(j->target.sm, j->target.variant), false, &tm);
  kl_sb_put(&j->plan_text, (kl_str){j->rounds_text.p, j->rounds_text.n});
  if (j->params.keep & KILN_KEEP_PLAN) KL_TRY(keep_text(j, KILN_TEXT_PLAN, j->plan_text.p, j->plan_text.n));
  if (j->params.keep & KILN_KEEP_EXPLAIN) {
    kl_sb_puts(&j->explained_json, j->explained_json.n ? "]" : "[]");
    if (j->fused.n) kl_sb_putc(&j->fused, '\n');
    kl_sb_put(&j->fused, (kl_str){j->explained.p, j->explained.n});
    if (j->chained.n) kl_sb_putc(&j->fused, '\n');
    kl_sb_put(&j->fused, (kl_str){j->chained.p, j->chained.n});
    KL_TRY(keep_text(j, KILN_TEXT_EXPLAIN, j->fused.p, j->fused.n));
    KL_TRY(keep_text(j, KILN_TEXT_EXPLAIN_JSON, j->explained_json.p, j->explained_json.n));
  }
  return kl_chunks_finish(j->chunks, j->a, wait_for_code, j);
}

static void describe_artifact(job *j) {
  kiln_artifact *a = j->a;
  kl_kernels *k = &j->kernels;
  // On the host any buffer does whose elements are aligned.
  for (uint32_t i = 0; a->host && i < k->nslots; i++) {
    kl_dtype t = k->slots[i].type.dtype;
    unsigned bits = kl_is_complex(t) ? kl_info(t)->bits / 2 : kl_info(t)->bits;
    k->slots[i].align = bits < 8 ? 1 : bits / 8;
  }
  a->manifest = (kiln_manifest){.struct_size = sizeof a->manifest,
                                .target = a->target,
                                .parameter_count = k->nparams,
                                .result_count = k->nresults,
                                .slots = k->slots,
                                .scratch_align = k->scratch_align,
                                .counted = j->params.max_count != 0,
                                .count_unit = 1,
                                .numerics = j->params.numerics};
}

// What lies between them is zero.
static kiln_status copy_constants(job *j) {
  kiln_artifact *a = j->a;
  const kl_kernels *k = &j->kernels;
  if (!k->constant_bytes) return KILN_OK;
  char *all = kl_arena_try_alloc(&a->arena, (size_t)k->constant_bytes);
  if (!all) return kl_out_of_memory(j->cx, (size_t)k->constant_bytes, "constants");
  memset(all, 0, (size_t)k->constant_bytes);
  for (size_t i = 0; i < k->constants.n; i++)
    memcpy(all + k->constants.p[i].at, k->constants.p[i].data, (size_t)k->constants.p[i].bytes);
  a->manifest.constants = all;
  a->manifest.constant_bytes = k->constant_bytes;
  return KILN_OK;
}

// Steps of launches, from those of kernels.
static void list_steps(job *j) {
  kl_kernels *k = &j->kernels;
  kl_list_steps(j->cx, k);
  kiln_step *steps = kl_arena_dup(&j->a->arena, k->steps.p, k->steps.n * sizeof *steps);
  for (size_t i = 0; i < k->steps.n; i++) {
    kiln_step *s = &steps[i];
    if (kl_reads_condition(s)) kl_launcher_place(&j->launcher, &s->condition);
    if (s->kind != KILN_STEP_LAUNCHES) continue;
    size_t end = s->first + s->count;
    s->first = j->first_launch[s->first];
    s->count = j->first_launch[end] - s->first;
  }
  j->a->manifest.step_count = k->steps.n;
  j->a->manifest.steps = steps;
}

// Once there are plans of all kernels.
static void list_launches(job *j) {
  kiln_artifact *a = j->a;
  a->manifest.launch_count = j->launches.n;
  a->launches = kl_arena_dup(&a->arena, j->launches.p, j->launches.n * sizeof *a->launches);
  a->host_launches = kl_arena_dup(&a->arena, j->host_launches.p, j->host_launches.n * sizeof *a->host_launches);
  a->manifest.launches = a->launches;
  kl_place_buffers(j->cx, &j->kernels);
  a->manifest.scratch_bytes = j->launcher.zero_bytes + j->kernels.constant_bytes + j->kernels.scratch_bytes;
  a->manifest.scratch_zero_bytes = j->launcher.zero_bytes;
  for (size_t i = 0; i < j->launches.n; i++)
    for (size_t n = 0; n < j->launches.p[i].argument_count; n++)
      kl_launcher_place(&j->launcher, (kiln_argument *)&j->launches.p[i].arguments[n]);
  list_steps(j);
}

static void describe_roles(job *j) {
  kl_kernels *k = &j->kernels;
  for (uint32_t i = 0; i < k->nslots; i++) {
    const kl_stored_leaf *x = j->dense ? &j->stored.leaves[i] : NULL;
    k->slots[i].leaf = x ? x->leaf : k->slots[i].index;
    k->slots[i].role = x ? x->role : KILN_SLOT_ARRAY;
    k->slots[i].level = x ? x->level : 0;
  }
}

static kiln_status find_target(job *j) {
  const kiln_device_info *d = j->params.device;
  const char *name = j->params.target ? j->params.target : d ? d->target : "sm_90";
  KL_TRY(kl_target_parse(j->cx, name, &j->target));
  memcpy(j->a->target, name, strlen(name) + 1); // kl_target_parse has bounded it
  j->a->host = j->target.machine == KL_HOST;
  if (d && !j->a->host) {
    j->target.multiprocessors = d->multiprocessors;
    j->target.shared_bytes = d->block_shared_optin;
    j->target.l2_bytes = d->l2_bytes;
  }
  if (j->params.programmatic && !j->a->host && j->target.sm < 90)
    return kl_invalid(j->cx, KL_NOWHERE, "programmatic launches: expected target sm_90 or newer, found %s", name);
  return KILN_OK;
}

// Results whose slowest dimension is dynamic have as many rows as they are launched for, up to its bound.
static int64_t dynamic_count(const kl_kernels *k) {
  const kl_shape *s = k->nresults ? k->shapes[k->nparams] : NULL;
  if (!s || !kl_shape_is_array(s) || !s->rank || !s->dynamic) return 0;
  return s->dynamic[kl_shape_minor_to_major(s, s->rank - 1)] && s->count > 0 ? s->count : 0;
}

static kiln_status compile_module(job *j) {
  kl_sb *why = j->params.keep & KILN_KEEP_EXPLAIN ? &j->fused : NULL;
  KL_TRY(kl_kernels_make(j->cx, j->m, &j->params, may_group(j), &j->a->arena, why, &j->kernels));
  if (!j->params.max_count) j->params.max_count = dynamic_count(&j->kernels);
  KL_TRY(kl_kernels_alias(j->cx, &j->params, &j->kernels));
  if (j->params.max_count && j->kernels.n != 1)
    return kl_unsupported(j->cx, kl_root(j->kernels.entry)->span,
                          "a run-time element count takes one kernel, this module needs %u: expected the size as a "
                          "parameter of type s32[], and set-dimension-size of an array of known dimensions",
                          j->kernels.n);
  describe_artifact(j);
  j->aliasing = (kl_aliasing){.kernels = &j->kernels, .params = &j->params, .machine = j->target.machine};
  j->aliasing.writes = KL_NEW_N(&j->scratch, uint32_t, j->kernels.nslots + 1);
  KL_TRY(generate(j));
  list_launches(j);
  KL_TRY(copy_constants(j));
  kl_declare_aliases(&j->kernels);
  if (j->plan_only) return KILN_OK;
  kl_describe_slots(j->cx, &j->kernels);
  describe_roles(j);
  return kl_describe_origin(j->cx, &j->kernels, j->given, j->picked, &j->a->manifest);
}

// The module as it was compiled.
static kiln_status keep_hlo(job *j) {
  char *text;
  size_t n;
  KL_TRY(kiln_module_print(j->cx, j->m, &text, &n));
  kiln_status st = keep_text(j, KILN_TEXT_HLO, text, n);
  kiln_text_free(j->cx, text, n);
  return st;
}

// *none: nothing new is tried.
static kiln_status compile_pieces(job *j, kl_trial trial, bool *none) {
  kiln_module *pieces;
  j->params.fusion = j->fusion;
  KL_TRY(kl_pieces_make(j->cx, j->origin, &j->params, &j->target, trial, &j->fused, &pieces));
  *none = trial != KL_AS_IT_IS && !pieces;
  if (*none) return KILN_OK;
  j->m = pieces ? pieces : j->origin;
  if (pieces) j->params.fusion = NULL;
  kiln_status st = compile_module(j);
  if (st == KILN_OK && j->params.keep & KILN_KEEP_HLO) st = keep_hlo(j);
  kiln_module_destroy(&pieces);
  return st;
}

// Nothing compiled yet.
static void begin_again(job *j) {
  if (j->chunks) kl_chunks_free(j->chunks);
  j->chunks = NULL;
  j->shared = 0;
  j->launches.n = j->host_launches.n = 0;
  kl_kernels_free(j->cx, &j->kernels);
  j->launcher.zero_bytes = 0;
  j->plan_text.n = j->rounds_text.n = j->explained.n = j->explained_json.n = j->fused.n = j->chained.n = 0;
}

// What one kernel cannot do, several may, each for one thing: then nobody hears of what the first could not, but where
// those cannot either, of what these could not.
static kiln_status compile(job *j) {
  KL_TRY(find_target(j));
  bool none = false;
  kl_diag_mark before = kl_diag_here(j->cx);
  kiln_status st = compile_pieces(j, KL_AS_IT_IS, &none);
  for (kl_trial trial = KL_FUSED; trial < KL_TRIALS && st == KILN_E_UNSUPPORTED; trial++) {
    begin_again(j);
    kl_diag_mark first = kl_diag_here(j->cx);
    kiln_status again = compile_pieces(j, trial, &none);
    if (none) {
      kl_diag_forget(j->cx, first, kl_diag_here(j->cx));
      continue;
    }
    kl_diag_forget(j->cx, before, first);
    st = again;
  }
  return st;
}

// Tensors with encodings become the arrays that they are stored in.
static kiln_status densify(job *j) {
  const kiln_compile_params *p = &j->params;
  kiln_module *own = NULL;
  if (!kl_has_encodings(j->given)) {
    if (p->sparse_slot_count)
      return kl_invalid(j->cx, KL_NOWHERE, "sparse_slots: expected none, as no array has an encoding, found %zu",
                        p->sparse_slot_count);
    return KILN_OK;
  }
  if (p->max_count) return kl_unsupported(j->cx, KL_NOWHERE, "a run-time element count of tensors with an encoding");
  if (j->fusion) KL_TRY(kiln_module_extract(j->cx, j->given, j->fusion, &own));
  kiln_status st = kl_module_densify(j->cx, own ? own : j->given, p->sparse_slots, p->sparse_slot_count, &j->scratch,
                                     &j->stored, &j->dense);
  kiln_module_destroy(&own);
  if (st != KILN_OK) return st;
  j->origin = j->dense;
  j->fusion = NULL;
  return KILN_OK;
}

// What is started is done there, dynamic sizes become numbers beside arrays, then ops that have no kernel of their own
// those that they are made of. Fusions that hold loops of kernels are opened, but for one that is compiled alone.
static kiln_status expand(job *j) {
  KL_TRY(kl_module_started(j->cx, j->origin, &j->started));
  if (j->started) j->origin = j->started;
  KL_TRY(kl_module_sizes(j->cx, j->origin, &j->sized));
  if (j->sized) j->origin = j->sized;
  KL_TRY(kl_module_expand(j->cx, j->origin, &j->expanded));
  if (j->expanded) j->origin = j->expanded;
  if (!j->fusion) KL_TRY(kl_module_open(j->cx, j->origin, &j->opened));
  if (j->opened) j->origin = j->opened;
  return KILN_OK;
}

// Stores the artifact, or with `plan_only` nothing.
static kiln_status run_job(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params,
                           const kl_strategy *strategy, bool plan_only, kiln_artifact **out) {
  job j = {.cx = cx, .given = m, .origin = m, .plan_only = plan_only, .strategy = *strategy};
  kiln_device_info device;
  KL_TRY(KL_PARAMS_IN(cx, kiln_compile_params, params, &j.params));
  KL_TRY(kl_params_check(cx, &j.params));
  if (j.params.device) {
    KL_TRY(KL_PARAMS_IN(cx, kiln_device_info, j.params.device, &device));
    j.params.device = &device;
  }
  j.picked = j.fusion = j.params.fusion;
  kiln_context_params own = {.struct_size = sizeof own, .allocator = cx->allocator};
  kl_ctx *acx = kiln_context_create(&own);
  if (!acx) return kl_out_of_memory(cx, sizeof *acx, "an artifact");
  j.a = kl_alloc(acx, sizeof *j.a);
  j.a->cx = acx;
  j.a->refs = 1;
  kl_arena_init(&j.a->arena, acx);
  kl_arena_init(&j.scratch, cx);
  j.launcher = (kl_launcher){.cx = cx, .kernels = &j.kernels, .arena = &j.a->arena, .scratch = &j.scratch};
  kl_sb_init(&j.plan_text, cx);
  kl_sb_init(&j.rounds_text, cx);
  kl_sb_init(&j.fused, cx);
  kl_sb_init(&j.explained, cx);
  kl_sb_init(&j.explained_json, cx);
  kl_sb_init(&j.chained, cx);
  kiln_status st = densify(&j);
  if (st == KILN_OK) st = expand(&j);
  if (st == KILN_OK) st = compile(&j);
  kiln_module_destroy(&j.opened);
  kiln_module_destroy(&j.expanded);
  kiln_module_destroy(&j.sized);
  kiln_module_destroy(&j.started);
  kiln_module_destroy(&j.dense);
  kl_kernels_free(cx, &j.kernels);
  VEC_FREE(cx, &j.launches);
  VEC_FREE(cx, &j.host_launches);
  if (j.chunks) kl_chunks_free(j.chunks);
  kl_sb_free(&j.plan_text);
  kl_sb_free(&j.rounds_text);
  kl_sb_free(&j.fused);
  kl_sb_free(&j.explained);
  kl_sb_free(&j.explained_json);
  kl_sb_free(&j.chained);
  kl_arena_free(&j.scratch);
  if (st == KILN_OK && !plan_only)
    *out = j.a;
  else
    kiln_artifact_destroy(&j.a);
  return st;
}

// And once more for buffers of less alignment, where that is asked for. What is found there was found before.
static kiln_status run_both(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params,
                            const kl_strategy *strategy, bool plan_only, kiln_artifact **out) {
  kiln_compile_params p;
  kiln_artifact *less = NULL;
  KL_TRY(KL_PARAMS_IN(cx, kiln_compile_params, params, &p));
  KL_TRY(run_job(cx, m, &p, strategy, plan_only, out));
  if (!p.least_align || (out && (*out)->host)) return KILN_OK;
  p.argument_align = p.least_align;
  p.least_align = 0;
  kl_diag_mark before = kl_diag_here(cx);
  kiln_status st = run_job(cx, m, &p, strategy, plan_only, plan_only ? NULL : &less);
  if (st == KILN_OK) kl_diag_forget(cx, before, kl_diag_here(cx));
  if (st == KILN_OK && !plan_only) st = kl_artifact_join(cx, *out, less);
  if (st == KILN_OK) return KILN_OK;
  kiln_artifact_destroy(&less);
  if (out) kiln_artifact_destroy(out);
  return st;
}

kiln_status kiln_compile(kiln_context *cx, const kiln_module *m, const kiln_compile_params *params,
                         kiln_artifact **out) {
  kiln_compile_params p;
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  KL_TRY(KL_PARAMS_IN(cx, kiln_compile_params, params, &p));
  KL_TRY(kl_params_check(cx, &p));
  return p.isolate ? kl_compile_apart(cx, m, &p, out) : run_both(cx, m, &p, &(kl_strategy){0}, false, out);
}

kiln_status kl_compile_as(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params,
                          const kl_strategy *strategy, kiln_artifact **out) {
  return run_both(cx, m, params, strategy, false, out);
}

kiln_status kiln_compile_check(kiln_context *cx, const kiln_module *m, const kiln_compile_params *params) {
  KL_EXPECT(cx, m);
  return run_both(cx, m, params, &(kl_strategy){0}, true, NULL);
}
