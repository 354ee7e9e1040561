// Kernels of one block, or one cluster, that do what several launches would, in loops and branches; and of many blocks
// that do so one behind the other, each its share.
//
// Whatever a condition says, all threads read the same there: what stores it is done before, and nobody stores it again
// before all have read it.

#include "lower/emit/emit.h"

typedef struct emitting {
  const kl_rounds *r;
  kl_emit *of;             // by member: that of its plan, which several may share
  const uint32_t *emitter; // by member: its number among them
  kb *k;                   // of the kernel
  kl_emit *e;              // the first, for what asks for one
  kb_reg *args;            // addresses
  bool *stored;            // by argument, of many blocks: may some member store in it? NULL: it is one, or a cluster
  LLVMValueRef shared;     // NULL: there is none
  kb_reg tid, rank;        // I32; rank: the block's number, where there are several
} emitting;

// --- members --------------------------------------------------------------------------------------------------------

// All threads have done, and all know of it, what stands before.
static void meet(emitting *x) {
  if (x->r->cluster > 1)
    kb_meet(x->k);
  else
    kb_sync(x->k);
}

static kb_reg in_index(const kl_emit *e, kb *k, kb_reg r) {
  return e->index == KB_I64 ? kb_zext(k, r, KB_I64) : r;
}

// A thread's team.
static kb_reg team_of(emitting *x, const kl_member *m) {
  kb *k = x->k;
  uint32_t n = m->launch->block;
  if (m->teams == 1) return kb_int(k, KB_I32, 1, 0);
  if ((n & (n - 1)) == 0) return kb_lshri(k, x->tid, (unsigned)__builtin_ctz(n));
  return kb_udiv_most(k, x->tid, n, x->r->block - 1);
}

// Where slots lie, and what the team has of the block: each its part of shared memory, and a barrier if there are other
// threads.
static void bind(emitting *x, kl_emit *e, const kl_member *m, kb_reg team) {
  kb *k = x->k;
  const kl_plan_launch *l = m->launch;
  for (uint32_t i = 0; i < l->nargs; i++) {
    e->slots[l->args[i]] = x->args[m->args[i]];
    if (e->others) e->others[l->args[i]] = x->stored[x->r->same[m->args[i]]];
  }
  e->launch = l;
  e->k.b = k->b;
  e->k.fn = k->fn;
  e->k.team = l->block < x->r->block && kl_launch_waits(m->plan, l) ? l->block : 0;
  e->k.barrier = kb_addi(k, team, 1);
  if (!l->shared_bytes) return;
  LLVMValueRef base = x->shared;
  if (m->teams > 1) {
    LLVMValueRef at = kb_mul(k, team, kb_ilike(k, team, l->shared_bytes)).v;
    base = LLVMBuildInBoundsGEP2(k->b, kb_type(k, KB_I8, 1), base, &at, 1, "");
  }
  kl_set_shared(e, base);
}

static void emit_block(emitting *x, kl_emit *e, kb_reg block, kb_reg tid) {
  e->end = kl_block(e, "done");
  kl_lines_at(e, kl_root(e->plan->comp));
  kl_emit_blocks(e, in_index(e, x->k, block), in_index(e, x->k, tid));
  LLVMMoveBasicBlockAfter(e->end, LLVMGetInsertBlock(x->k->b));
  LLVMPositionBuilderAtEnd(x->k->b, e->end);
}

static kb_reg below(kb *k, kb_reg a, int64_t end) {
  return kb_icmp(k, LLVMIntULT, a, kb_ilike(k, a, end));
}

// From `first` on every `stride`-th block below `end`. What the next one stores in shared memory others of the team may
// still read.
static void emit_several(emitting *x, kl_emit *e, const kl_member *m, kb_reg first, uint32_t stride, kb_reg end,
                         kb_reg tid) {
  kb *k = x->k;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b), head = kl_block(e, "blocks"), one = kl_block(e, "block"), last;
  LLVMBasicBlockRef after = kl_block(e, "");
  LLVMBuildBr(k->b, head);
  LLVMPositionBuilderAtEnd(k->b, head);
  kb_reg block = {LLVMBuildPhi(k->b, kb_type(k, KB_I32, 1), ""), KB_I32, 1};
  LLVMAddIncoming(block.v, &first.v, &before, 1);
  LLVMBuildCondBr(k->b, kb_icmp(k, LLVMIntULT, block, end).v, one, after);
  LLVMPositionBuilderAtEnd(k->b, one);
  emit_block(x, e, block, tid);
  if (m->launch->shared_bytes && kl_launch_waits(m->plan, m->launch)) kb_sync(&e->k);
  kb_reg next = kb_addi(k, block, stride);
  last = LLVMGetInsertBlock(k->b);
  LLVMBuildBr(k->b, head);
  LLVMAddIncoming(block.v, &next.v, &last, 1);
  LLVMMoveBasicBlockAfter(after, last);
  LLVMPositionBuilderAtEnd(k->b, after);
}

// --- shares ---------------------------------------------------------------------------------------------------------

// A thread of the launch, by its number among all.
static void emit_thread(emitting *x, kl_emit *e, kb_reg thread) {
  kb *k = x->k;
  uint32_t n = e->launch->block;
  int64_t most = e->launch->grid * n - 1;
  kb_reg block =
      (n & (n - 1)) == 0 ? kb_lshri(k, thread, (unsigned)__builtin_ctz(n)) : kb_udiv_most(k, thread, n, (uint64_t)most);
  emit_block(x, e, block, kb_sub(k, thread, kb_mul(k, block, kb_ilike(k, block, n))));
}

static void emit_several_threads(emitting *x, kl_emit *e, kb_reg first, kb_reg end) {
  kb *k = x->k;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b), head = kl_block(e, "threads"), one = kl_block(e, "thread"), last;
  LLVMBasicBlockRef after = kl_block(e, "");
  LLVMBuildBr(k->b, head);
  LLVMPositionBuilderAtEnd(k->b, head);
  kb_reg thread = {LLVMBuildPhi(k->b, kb_type(k, KB_I32, 1), ""), KB_I32, 1};
  LLVMAddIncoming(thread.v, &first.v, &before, 1);
  LLVMBuildCondBr(k->b, kb_icmp(k, LLVMIntULT, thread, end).v, one, after);
  LLVMPositionBuilderAtEnd(k->b, one);
  emit_thread(x, e, thread);
  kb_reg next = kb_addi(k, thread, x->r->block);
  last = LLVMGetInsertBlock(k->b);
  LLVMBuildBr(k->b, head);
  LLVMAddIncoming(thread.v, &next.v, &last, 1);
  LLVMMoveBasicBlockAfter(after, last);
  LLVMPositionBuilderAtEnd(k->b, after);
}

// The first number that is not of the block's share, of `all` numbers of which `each` are a share.
static kb_reg end_of_share(emitting *x, kb_reg first, int64_t each, int64_t all) {
  kb *k = x->k;
  kb_reg end = kb_addi(k, first, each);
  if (x->r->grid * each == all) return end;
  return kb_select(k, below(k, end, all), end, kb_ilike(k, end, all));
}

// Threads of a share, whatever blocks of the launch they are of.
static void emit_threads_of_share(emitting *x, kl_emit *e, const kl_member *m) {
  kb *k = x->k;
  const kl_plan_launch *l = m->launch;
  kb_reg first = kb_mul(k, x->rank, kb_ilike(k, x->rank, m->share));
  kb_reg end = end_of_share(x, first, m->share, l->grid * l->block), thread = kb_add(k, first, x->tid);
  bind(x, e, m, kb_int(k, KB_I32, 1, 0));
  if (m->share > x->r->block) return emit_several_threads(x, e, thread, end);
  kl_if has = kl_if_begin(e, kb_icmp(k, LLVMIntULT, thread, end), "share");
  emit_thread(x, e, thread);
  kl_if_end(e, has);
}

// Blocks of a share, by teams.
static void emit_blocks_of_share(emitting *x, kl_emit *e, const kl_member *m) {
  kb *k = x->k;
  const kl_plan_launch *l = m->launch;
  int64_t each = m->share / l->block;
  uint32_t threads = m->teams * l->block;
  kb_reg team = team_of(x, m), tid = x->tid, first = kb_mul(k, x->rank, kb_ilike(k, x->rank, each));
  kb_reg end = end_of_share(x, first, each, l->grid);
  if (m->teams > 1) tid = kb_sub(k, tid, kb_mul(k, team, kb_ilike(k, team, l->block)));
  kl_if has_team = {0}, has_block = {0};
  if (threads < x->r->block) has_team = kl_if_begin(e, below(k, x->tid, threads), "team");
  bind(x, e, m, team);
  first = kb_add(k, first, team);
  if (each > m->teams) {
    emit_several(x, e, m, first, m->teams, end, tid);
  } else {
    if (each < m->teams || x->r->grid * each > l->grid)
      has_block = kl_if_begin(e, kb_icmp(k, LLVMIntULT, first, end), "block");
    emit_block(x, e, first, tid);
    if (has_block.after) kl_if_end(e, has_block);
  }
  if (has_team.after) kl_if_end(e, has_team);
}

static void emit_share(emitting *x, uint32_t number) {
  const kl_member *m = &x->r->members[number];
  kl_emit *e = &x->of[x->emitter[number]];
  if (kl_goes_by_blocks(m))
    emit_blocks_of_share(x, e, m);
  else
    emit_threads_of_share(x, e, m);
  if (number + 1 < x->r->nmembers) meet(x);
}

static void emit_member(emitting *x, uint32_t number) {
  kb *k = x->k;
  const kl_member *m = &x->r->members[number];
  const kl_plan_launch *l = m->launch;
  kl_emit *e = &x->of[x->emitter[number]];
  if (l->grid == 0) return;
  uint32_t threads = m->teams * l->block, cluster = x->r->cluster;
  kb_reg team = team_of(x, m), tid = x->tid, first = team;
  if (m->teams > 1) tid = kb_sub(k, tid, kb_mul(k, team, kb_ilike(k, team, l->block)));
  if (cluster > 1) first = kb_add(k, kb_mul(k, team, kb_ilike(k, team, cluster)), x->rank);
  kl_if has_team = {0}, has_block = {0};
  if (threads < x->r->block) has_team = kl_if_begin(e, below(k, x->tid, threads), "team");
  bind(x, e, m, team);
  if (l->grid > (int64_t)m->teams * cluster) {
    emit_several(x, e, m, first, m->teams * cluster, kb_ilike(k, first, l->grid), tid);
  } else {
    if (l->grid < (int64_t)m->teams * cluster) has_block = kl_if_begin(e, below(k, first, l->grid), "block");
    emit_block(x, e, first, tid);
    if (has_block.after) kl_if_end(e, has_block);
  }
  if (has_team.after) kl_if_end(e, has_team);
  meet(x);
}

// --- loops and branches ---------------------------------------------------------------------------------------------

static void emit_steps(emitting *x, uint32_t first, uint32_t count);

// What lies there, once all have read it.
static kb_reg read_condition(emitting *x, const kl_round *s) {
  kb *k = x->k;
  kb_kind kind = s->condition_bytes == 1 ? KB_I8 : KB_I32;
  LLVMValueRef v = LLVMBuildLoad2(k->b, kb_type(k, kind, 1), x->args[s->condition].v, "");
  LLVMSetAlignment(v, s->condition_bytes);
  meet(x);
  kb_reg r = {v, (uint8_t)kind, 1};
  return kind == KB_I8 ? kb_zext(k, r, KB_I32) : r;
}

static void go_to(emitting *x, LLVMBasicBlockRef block) {
  LLVMMoveBasicBlockAfter(block, LLVMGetInsertBlock(x->k->b));
  LLVMPositionBuilderAtEnd(x->k->b, block);
}

static void emit_while(emitting *x, uint32_t at) {
  kb *k = x->k;
  const kl_round *s = &x->r->steps[at];
  LLVMBasicBlockRef head = kl_block(x->e, "again"), body = kl_block(x->e, "round"), after = kl_block(x->e, "");
  LLVMBuildBr(k->b, head);
  go_to(x, head);
  emit_steps(x, at + 1, s->count);
  kb_reg c = read_condition(x, s);
  LLVMBuildCondBr(k->b, kb_icmp(k, LLVMIntNE, c, kb_ilike(k, c, 0)).v, body, after);
  go_to(x, body);
  emit_steps(x, at + 1 + s->count, s->body);
  LLVMBuildBr(k->b, head);
  go_to(x, after);
}

static void emit_repeat(emitting *x, uint32_t at) {
  kb *k = x->k;
  const kl_round *s = &x->r->steps[at];
  if (!s->times) return;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b), body = kl_block(x->e, "round"), after = kl_block(x->e, ""), last;
  LLVMBuildBr(k->b, body);
  go_to(x, body);
  kb_reg number = {LLVMBuildPhi(k->b, kb_type(k, KB_I64, 1), ""), KB_I64, 1}, first = kb_int(k, KB_I64, 1, 0);
  LLVMAddIncoming(number.v, &first.v, &before, 1);
  emit_steps(x, at + 1, s->body);
  kb_reg next = kb_addi(k, number, 1);
  last = LLVMGetInsertBlock(k->b);
  LLVMAddIncoming(number.v, &next.v, &last, 1);
  LLVMBuildCondBr(k->b, kb_icmp(k, LLVMIntNE, next, kb_ilike(k, next, (int64_t)s->times)).v, body, after);
  go_to(x, after);
}

// What is no case's number is the last's; of a truth the first is for true.
static void emit_branch(emitting *x, uint32_t at) {
  kb *k = x->k;
  const kl_round *s = &x->r->steps[at];
  LLVMBasicBlockRef after = kl_block(x->e, "");
  kb_reg c = read_condition(x, s);
  if (s->condition_bytes == 1)
    c = kb_select(k, kb_icmp(k, LLVMIntNE, c, kb_ilike(k, c, 0)), kb_ilike(k, c, 0), kb_ilike(k, c, 1));
  for (uint32_t i = 0, own = at + 1; i < s->count; i++, own += 1 + x->r->steps[own].body) {
    LLVMBasicBlockRef other = NULL;
    if (i + 1 < s->count) {
      LLVMBasicBlockRef body = kl_block(x->e, "case");
      other = kl_block(x->e, "");
      LLVMBuildCondBr(k->b, kb_icmp(k, LLVMIntEQ, c, kb_ilike(k, c, i)).v, body, other);
      go_to(x, body);
    }
    emit_steps(x, own + 1, x->r->steps[own].body);
    LLVMBuildBr(k->b, after);
    if (other) go_to(x, other);
  }
  go_to(x, after);
}

static void emit_steps(emitting *x, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) {
    const kl_round *s = &x->r->steps[i];
    switch (s->kind) {
    case KL_ROUND_MEMBERS:
      for (uint32_t m = 0; m < s->count; m++) (x->r->grid ? emit_share : emit_member)(x, s->first + m);
      break;
    case KL_ROUND_WHILE:
      emit_while(x, i);
      i += s->count;
      break;
    case KL_ROUND_REPEAT: emit_repeat(x, i); break;
    case KL_ROUND_BRANCH: emit_branch(x, i); break;
    case KL_ROUND_CASE: break; // its branch's
    }
    i += s->body;
  }
}

// --- the kernel -----------------------------------------------------------------------------------------------------

static void declare(emitting *x) {
  const kl_rounds *r = x->r;
  kb *k = x->k;
  kl_emit *e = x->e;
  LLVMTypeRef *types = KL_NEW_N(e->arena, LLVMTypeRef, r->nargs + 1);
  for (uint32_t i = 0; i < r->nargs; i++) types[i] = LLVMPointerTypeInContext(k->llcx, 1);
  LLVMTypeRef fty = LLVMFunctionType(LLVMVoidTypeInContext(k->llcx), types, r->nargs, false);
  k->fn = e->k.fn = LLVMAddFunction(k->module, r->name, fty);
  LLVMSetFunctionCallConv(k->fn, 71); // PTX kernel
  kl_lines_function(e, r->name);
  kl_string_attribute(e, "nvvm.reqntid", kl_strf(e->arena, "%u", r->block));
  if (r->cluster > 1) kl_string_attribute(e, "nvvm.cluster_dim", kl_strf(e->arena, "%u", r->cluster));
  if (r->resident) kl_string_attribute(e, "nvvm.minctasm", kl_strf(e->arena, "%u", r->resident));
  kl_attribute(e, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  for (uint32_t i = 0; i < r->nargs; i++) x->args[i] = (kb_reg){LLVMGetParam(k->fn, i), KB_PTR, 1};
}

static void find_stored(emitting *x, kl_arena *arena) {
  const kl_rounds *r = x->r;
  x->stored = KL_NEW_N(arena, bool, r->nargs + 1);
  for (uint32_t i = 0; i < r->nmembers; i++) {
    const kl_member *m = &r->members[i];
    for (uint32_t a = 0; a < m->launch->nargs; a++) {
      kl_slot_kind kind = m->plan->slots[m->launch->args[a]].kind;
      x->stored[r->same[m->args[a]]] |= kind == KL_SLOT_OUT || kind == KL_SLOT_SCRATCH;
    }
  }
}

// One for each plan.
static void begin_plans(emitting *x, kl_ctx *cx, LLVMModuleRef module, kl_arena *arena) {
  const kl_rounds *r = x->r;
  uint32_t *emitter = KL_NEW_N(arena, uint32_t, r->nmembers + 1), n = 0;
  x->of = KL_NEW_N(arena, kl_emit, r->nmembers + 1);
  x->emitter = emitter;
  for (uint32_t i = 0; i < r->nmembers; i++) {
    uint32_t own = 0;
    while (own < n && x->of[own].plan != r->members[i].plan) own++;
    emitter[i] = own;
    if (own < n) continue;
    x->of[n++] =
        kl_emit_of_plan(cx, module, r->members[i].plan, arena, kl_strf(arena, "%s_%u", r->name, own), r->grid > 0);
  }
  x->e = x->of;
  x->k = KL_NEW(arena, kb);
  *x->k = x->e->k;
  x->k->b = LLVMCreateBuilderInContext(x->k->llcx);
  for (uint32_t i = 0; i < n; i++) x->of[i].k.b = x->k->b;
  kl_lines_begin(x->e);
  declare(x);
  for (uint32_t i = 0; i < n; i++) {
    x->of[i].k.fn = x->k->fn;
    x->of[i].lines = x->e->lines;
  }
}

void kl_emit_rounds(kl_ctx *cx, LLVMModuleRef module, const kl_rounds *r) {
  kl_arena arena;
  kl_arena_init(&arena, cx);
  emitting x = {.r = r, .args = KL_NEW_N(&arena, kb_reg, r->nargs + 1)};
  if (r->grid) find_stored(&x, &arena);
  begin_plans(&x, cx, module, &arena);
  kb *k = x.k;
  if (r->shared_bytes) x.shared = kl_make_shared(x.e, r->name, r->shared_bytes);
  LLVMPositionBuilderAtEnd(k->b, kl_block(x.e, "entry"));
  x.tid = kb_special(k, "llvm.nvvm.read.ptx.sreg.tid.x");
  if (r->cluster > 1 || r->grid) x.rank = kb_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"); // the only cluster
  if (r->programmatic) kl_wait_for_previous(k);
  emit_steps(&x, 0, r->nsteps);
  LLVMBuildRetVoid(k->b);
  kl_lines_end(x.e);
  LLVMDisposeBuilder(k->b);
  kl_arena_free(&arena);
}
