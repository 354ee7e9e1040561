// The check of undefined values: an observer that does with shadows what the kernel does with values, and tells where a
// bit without a value decides something.

#include "sim/check/values/values.h"
#include "sim/machine/map.h"

#include <stdlib.h>

// --- registers ----------------------------------------------------------------------------------------------------

uint64_t values_unknown(const kl_frame *f, kl_ref ref, unsigned bytes, unsigned lane) {
  uint64_t v = 0;
  if (!in_registers(ref)) return 0;
  const char *s = shadow_of(f, ref);
  if (bytes == 0) {
    uint32_t word;
    memcpy(&word, s, 4);
    return word >> lane & 1;
  }
  memcpy(&v, s + (size_t)lane * bytes, bytes < 8 ? bytes : 8);
  return v;
}

void values_set(const kl_frame *f, kl_ref ref, unsigned bytes, unsigned lane, uint64_t unknown) {
  if (!in_registers(ref)) return;
  char *s = shadow_of(f, ref);
  if (unknown) set_flag(f, ref);
  if (bytes == 0) {
    uint32_t word;
    memcpy(&word, s, 4);
    word = (word & ~(1u << lane)) | (uint32_t)(unknown & 1) << lane;
    memcpy(s, &word, 4);
  } else {
    memcpy(s + (size_t)lane * bytes, &unknown, bytes < 8 ? bytes : 8);
  }
}

// At its begin nothing in a frame has a value. What is always written before it is read counts as known from the start,
// so that the writes need not say so.
static void begin_frame(kl_frame *f) {
  const uint32_t n = f->code->frame_bytes, open = f->code->zero_bytes;
  memset(f->regs + CLEAN_AT(n), 0, 576);
  memset(f->regs + SHADOW_AT(n), 0xff, open);
  memset(f->regs + SHADOW_AT(n) + open, 0, n - open);
  memset(f->regs + FLAGS_AT(n), 1, open / 4);
  memset(f->regs + FLAGS_AT(n) + open / 4, 0, (n - open) / 4 + 3);
  f->lacks = open > 0;
  values_clear_origins(f);
}

// --- memory of blocks ---------------------------------------------------------------------------------------------

static size_t stack_bytes(const values *v) {
  return (size_t)v->warps * KL_LANES * KL_MOST_STACK;
}

static void free_block(const values *v, block_shadow *s) {
  kl_unmap(s->stack, stack_bytes(v));
  kl_unmap(s->stack_origins, stack_bytes(v));
  free(s->shared_origins);
  free(s->shared);
  free(s);
}

static block_shadow *new_block(values *v, const kl_block *b) {
  block_shadow *s = v->free;
  if (s) {
    v->free = s->next;
    return s;
  }
  s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->shared = malloc(b->shared_bytes + 1);
  if (b->warps[0].stack) s->stack = kl_map(stack_bytes(v), KL_MAP_SPARSE);
  if (s->shared && (s->stack || !b->warps[0].stack)) return s;
  free_block(v, s);
  return NULL;
}

uint8_t *values_stack(const kl_warp *w, unsigned lane, uint32_t at) {
  const block_shadow *s = w->block->shadow;
  return s && s->stack ? s->stack + ((size_t)w->rank * KL_LANES + lane) * KL_MOST_STACK + at : NULL;
}

// Of the word that a place lies in; NULL where nothing without a value was stored.
uint32_t *values_stack_origins(const kl_warp *w, unsigned lane, uint32_t at) {
  const block_shadow *s = w->block->shadow;
  return s && s->stack_origins ? s->stack_origins + (((size_t)w->rank * KL_LANES + lane) * KL_MOST_STACK + at) / 4
                               : NULL;
}

bool values_keep_stack_origins(const values *v, const kl_warp *w) {
  block_shadow *s = w->block->shadow;
  if (!s || !s->stack || s->stack_origins) return s && s->stack_origins;
  s->stack_origins = kl_map(stack_bytes(v), KL_MAP_SPARSE);
  return s->stack_origins != NULL;
}

// A function's part of the stack has no values yet.
static void clear_stack(const kl_warp *w, uint32_t lanes, uint32_t at, uint32_t bytes) {
  if (!w->stack || bytes == 0) return;
  for (unsigned i = 0; i < KL_LANES; i++)
    if (lanes >> i & 1) {
      memset(values_stack(w, i, at), 0, bytes);
      uint32_t *origins = values_stack_origins(w, i, at);
      if (origins) memset(origins, 0, (at % 4 + bytes + 3) / 4 * 4);
    }
}

void values_begin(kl_observer *o, kl_block *b) {
  values *v = values_of(o);
  v->warps = b->nwarps;
  block_shadow *s = new_block(v, b);
  b->shadow = s;
  if (!s) {
    v->checks->no_memory = true;
    kl_faulted(&b->warps[0], b->warps[0].waiting[0].frame->code->ops, KL_FAULT_MEMORY, 0, 0);
    return;
  }
  memset(s->shared, 0, b->shared_bytes);
  free(s->shared_origins);
  s->shared_origins = NULL;
  for (uint32_t k = 0; k < b->nwarps; k++) {
    kl_frame *f = b->warps[k].waiting[0].frame;
    begin_frame(f);
    clear_stack(&b->warps[k], b->warps[k].lanes, f->stack, f->code->stack_bytes);
  }
}

void values_end(kl_observer *o, kl_block *b) {
  values *v = values_of(o);
  block_shadow *s = b->shadow;
  b->shadow = NULL;
  if (!s) return;
  s->next = v->free;
  v->free = s;
}

// --- calls --------------------------------------------------------------------------------------------------------

static void carry_over(const kl_warp *w, uint32_t lanes, const kl_transfer *t, uint32_t n, const kl_frame *caller,
                       const kl_frame *callee, bool in) {
  for (uint32_t k = 0; k < n; k++)
    for (unsigned i = 0; i < KL_LANES; i++) {
      if (!(lanes >> i & 1)) continue;
      uint8_t *outer = values_stack(w, i, caller->stack + t[k].caller);
      uint8_t *inner = values_stack(w, i, callee->stack + t[k].callee);
      memcpy(in ? inner : outer, in ? outer : inner, t[k].bytes);
      uint32_t *from = values_stack_origins(w, i, caller->stack + t[k].caller);
      uint32_t *to = values_stack_origins(w, i, callee->stack + t[k].callee);
      if (from) memcpy(in ? to : from, in ? from : to, (t[k].bytes + 3) / 4 * 4);
    }
}

void values_call(kl_observer *o, kl_warp *w, const kl_frame *f, uint32_t lanes) {
  uint32_t bytes = f->code->stack_bytes > f->call->bytes ? f->code->stack_bytes : f->call->bytes;
  (void)o;
  if (!w->block->shadow) return;
  begin_frame((kl_frame *)f);
  clear_stack(w, lanes, f->stack, bytes);
  carry_over(w, lanes, f->call->in, f->call->nin, f->caller, f, true);
}

void values_ret(kl_observer *o, kl_warp *w, const kl_frame *f, uint32_t lanes) {
  (void)o;
  if (w->block->shadow) carry_over(w, lanes, f->call->out, f->call->nout, f->caller, f, false);
}

// --- findings -----------------------------------------------------------------------------------------------------

void values_thread(const values *v, uint64_t number, kl_found_at *at) {
  const kl_launch *l = v->launch;
  uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2], block = number / threads, t = number % threads;
  at->block[0] = (uint32_t)(block % l->grid[0]);
  at->block[1] = (uint32_t)(block / l->grid[0] % l->grid[1]);
  at->block[2] = (uint32_t)(block / l->grid[0] / l->grid[1]);
  at->thread[0] = (uint32_t)(t % l->block[0]);
  at->thread[1] = (uint32_t)(t / l->block[0] % l->block[1]);
  at->thread[2] = (uint32_t)(t / l->block[0] / l->block[1]);
}

static const kl_ptx_instr *instr_at(const kl_frame *f, const kl_sim_op *o) {
  const kl_ptx_func *func = f->code->func;
  return func->ninstrs ? &func->instrs[o->index] : NULL;
}

// What has been told counts as defined, so that one cause is one finding.
static void decided(values *v, kl_warp *w, const kl_sim_op *o, kl_found_kind kind, kl_ref ref, unsigned bytes) {
  const kl_frame *f = w->strand.frame;
  uint32_t lanes = 0, first;
  uint64_t unknown = 0;
  if (ref == KL_NO_REF || !*flag_of(f, ref)) return;
  for (unsigned i = KL_LANES; i-- > 0;) {
    uint64_t u = w->x.mask >> i & 1 ? values_unknown(f, ref, bytes, i) : 0;
    if (!u) continue;
    unknown = u;
    lanes |= 1u << i;
    values_set(f, ref, bytes, i, 0);
  }
  if (!lanes) return;
  first = (uint32_t)__builtin_ctz(lanes);
  kl_found found = {.kind = kind,
                    .at = {.func = f->code->func, .instr = instr_at(f, o), .calls = kl_calls_of(f)},
                    .unknown = unknown,
                    .value_bytes = (uint8_t)bytes,
                    .origin = values_origin_of(v, values_origin(v, f, o, ref, first)),
                    .times = (uint64_t)__builtin_popcount(lanes)};
  kl_thread_of(w, first, found.at.block, found.at.thread);
  memcpy(&found.value, f->regs + (ref & ~(kl_ref)3) + (size_t)first * bytes, bytes);
  kl_report_add(v->checks->cx, &v->checks->report, &found);
}

// --- one op after the other ---------------------------------------------------------------------------------------

// New memory of a frame has no values: alloca, which is told before it is done, puts it behind the top.
static void grown(kl_warp *w, const kl_sim_op *o) {
  const kl_frame *f = w->strand.frame;
  uint64_t most = 0, align = o->imm ? o->imm : 1, begin = (f->top + align - 1) / align * align;
  if ((o->a & 3) == KL_IN_SPECIAL || !w->stack) return;
  const char *a = ((o->a & 3) == KL_IN_REGISTERS ? f->regs : f->code->constants) + (o->a & ~(kl_ref)3);
  for (unsigned i = 0; i < KL_LANES; i++) {
    uint64_t n = 0;
    unsigned bytes = o->run == kl_x_alloca_32 ? 4 : 8;
    memcpy(&n, a + i * bytes, bytes);
    if ((w->x.mask >> i & 1) && n > most) most = n;
  }
  if (most <= KL_MOST_STACK && begin + most <= KL_MOST_STACK)
    clear_stack(w, w->x.mask, (uint32_t)begin, (uint32_t)most);
}

static __attribute__((noinline)) void follow(values *v, kl_warp *w, const kl_sim_op *o) {
  kl_frame *f = w->strand.frame;
  const spread *s = &v->plans[f->code->function].ops[o - f->code->ops];
  uint8_t *at = (uint8_t *)f->regs;
  if (s->grows) grown(w, o);
  if (!f->lacks) return;
  if (s->decides) {
    decided(v, w, o, (kl_found_kind)s->decides, s->decider, s->decider_bytes);
    decided(v, w, o, (kl_found_kind)s->decides, s->decider2, s->decider2_bytes);
  }
  if (!s->spreads) return;
  uint8_t any = at[s->from[0]] | at[s->from[1]] | at[s->from[2]] | at[s->from[3]] | at[s->from[4]];
  if (!(any | at[s->to[0]] | at[s->to[1]] | at[s->to[2]] | at[s->to[3]])) return;
  s->op.run(&w->x, &s->op);
  uint8_t keep = f->lanes & ~w->x.mask ? 1 : 0; // other lanes keep theirs
  for (int k = 0; k < 4; k++) at[s->to[k]] = any | (at[s->to[k]] & keep);
  at[FLAGS_AT(f->code->frame_bytes) + f->code->frame_bytes / 4 + 1] = 0;
  if (any) values_spread_origins(v, w, o, s->who);
}

static void step(kl_observer *self, kl_warp *w, const kl_sim_op *o) {
  values *v = values_of(self);
  if (w->strand.frame->lacks || v->grows) follow(v, w, o);
}

// --- a launch -----------------------------------------------------------------------------------------------------

static void fill_params(values *v) {
  const kl_kernel *k = v->kernel;
  v->params = kl_arena_alloc(&v->arena, k->param_bytes + 16);
  memset(v->params, 0xff, k->param_bytes);
  for (uint32_t n = 0; n < k->func->nparams; n++) {
    uint32_t at, bytes;
    kl_kernel_param(k, n, &at, &bytes);
    memset(v->params + at, 0, bytes);
  }
}

static void end(kl_observer *o) {
  values *v = values_of(o);
  kl_ctx *cx = v->checks->cx;
  values_judge(v);
  while (v->free) {
    block_shadow *s = v->free;
    v->free = s->next;
    free_block(v, s);
  }
  VEC_FREE(cx, &v->stores);
  values_free_origins(v);
  kl_arena_free(&v->arena);
  kl_free(cx, v, sizeof *v);
}

kl_check kl_check_values(kl_checks *c, const kl_launch *l) {
  values *v = kl_alloc(c->cx, sizeof *v);
  v->observer = (kl_observer){.begin = values_begin,
                              .end = values_end,
                              .step = step,
                              .seldom = true,
                              .access = values_access,
                              .copy = values_copy,
                              .call = values_call,
                              .ret = values_ret,
                              .meet = values_meet,
                              .open = values_open};
  v->checks = c;
  v->launch = l;
  v->kernel = l->kernel;
  kl_arena_init(&v->arena, c->cx);
  fill_params(v);
  v->left = kl_arena_try_alloc(&v->arena, (c->memory->regions.n + 1) * sizeof *v->left);
  if (v->left && values_plan(v)) return (kl_check){&v->observer, end, true};
  kl_arena_free(&v->arena);
  kl_free(c->cx, v, sizeof *v);
  return (kl_check){0};
}
