// Branches, calls, returns: where strands go.

#include "sim/machine/execute.h"
#include "sim/machine/observe.h"
#include "sim/machine/warp.h"
#include <stdlib.h>

void kl_set_mask(kl_lanes *x, uint32_t mask) {
  if (x->mask == mask) return;
  x->mask = mask;
  for (int i = 0; i < KL_LANES; i++) {
    uint64_t on = -(uint64_t)(mask >> i & 1);
    x->on64[i] = on;
    x->on32[i] = (uint32_t)on;
    x->on16[i] = (uint16_t)on;
  }
}

const kl_ptx_instr *kl_instr_of(const kl_warp *w, const kl_sim_op *o) {
  const kl_ptx_func *f = w->strand.frame->code->func;
  return f->ninstrs ? &f->instrs[o->index] : NULL;
}

uint32_t kl_op_number(const kl_warp *w, const kl_sim_op *o) {
  return (uint32_t)(o - w->strand.frame->code->ops);
}

void kl_stop(kl_warp *w) {
  w->limit = w->next;
}

kl_strand *kl_split_off(kl_warp *w, uint32_t mask, uint32_t pc) {
  kl_strand *s = &w->waiting[w->nwaiting++];
  *s = w->strand;
  s->mask = mask;
  s->pc = pc;
  s->wait = KL_READY;
  w->strand.mask &= ~mask;
  kl_stop(w);
  return s;
}

// --- branches -----------------------------------------------------------------------------------------------------

// Lanes branch apart. Where all that were ready were together nobody waited so far: the turn of both begins.
static void part(kl_warp *w, uint32_t mask, uint64_t pc) {
  if (w->alone) {
    w->rounds += w->strand.spent;
    w->strand.spent = 0;
    w->alone = false;
  }
  kl_split_off(w, mask, (uint32_t)pc);
}

static void go(kl_warp *w, const kl_sim_op *o, uint64_t target) {
  const kl_sim_op *to = w->strand.frame->code->ops + target;
  w->next = to;
  if (to <= o && ++w->strand.spent >= w->turn) kl_stop(w);
}

void kl_x_branch(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  uint32_t taken = x->mask;
  if (o->a != KL_NO_REF) taken &= *AT(uint32_t, o->a) ^ (o->flags & KL_NOT_C ? KL_ALL_LANES : 0);
  if (taken == x->mask)
    go(w, o, o->imm);
  else if (taken)
    part(w, taken, o->imm);
}

void kl_x_branch_table(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  const kl_jump_table *t = (const kl_jump_table *)(uintptr_t)o->imm;
  const uint32_t *index = AT(uint32_t, o->a);
  uint32_t left = x->mask;
  for (;;) {
    unsigned lane = (unsigned)__builtin_ctz(left);
    uint32_t same = 0;
    if (index[lane] >= t->n) {
      kl_faulted(w, o, KL_FAULT_TARGET, lane, index[lane]);
      return;
    }
    for (unsigned i = lane; i < KL_LANES; i++) same |= (uint32_t)(index[i] == index[lane]) << i;
    same &= left;
    left &= ~same;
    if (!left) {
      go(w, o, t->ops[index[lane]]);
      return;
    }
    part(w, same, t->ops[index[lane]]);
  }
}

void kl_x_guard(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  uint32_t p = *AT(uint32_t, o->a) ^ (o->flags & KL_NOT_C ? KL_ALL_LANES : 0), mask = x->mask & p;
  if (!mask)
    w->next = o + 1 + o->imm;
  else if (mask != x->mask)
    kl_set_mask(x, mask);
}

void kl_x_unguard(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  (void)o;
  if (x->mask != w->strand.mask) kl_set_mask(x, w->strand.mask);
}

void kl_x_nothing(kl_lanes *x, const kl_sim_op *o) {
  (void)x, (void)o;
}

void kl_x_sleep(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  (void)o;
  w->strand.spent = w->turn;
  kl_stop(w);
}

void kl_x_trap(kl_lanes *x, const kl_sim_op *o) {
  kl_faulted(kl_warp_of(x), o, KL_FAULT_TRAP, (unsigned)__builtin_ctz(x->mask), 0);
}

// --- frames -------------------------------------------------------------------------------------------------------

void *kl_new_lines(size_t size) {
  size_t whole = (size + 63) / 64 * 64;
  void *p = aligned_alloc(64, whole ? whole : 64);
  if (p) memset(p, 0, whole);
  return p;
}

kl_frame *kl_new_frame(kl_worker *worker, const kl_code *code) {
  kl_frame **p = &worker->frames, *f;
  size_t bytes = code->frame_bytes + (worker->run->launch->shadows ? KL_SHADOW_ROOM(code->frame_bytes) : 0);
  while (*p && (*p)->bytes < bytes) p = &(*p)->caller;
  f = *p;
  if (f) {
    *p = f->caller;
  } else {
    f = kl_new_lines(sizeof *f + bytes);
    if (!f) return NULL;
    f->bytes = bytes;
  }
  memset(f->regs, 0, code->zero_bytes);
  f->code = code;
  f->caller = NULL;
  f->call = NULL;
  f->depth = f->stack = 0;
  f->top = code->stack_bytes;
  return f;
}

static void drop_frame(kl_worker *worker, kl_frame *f) {
  f->caller = worker->frames;
  worker->frames = f;
}

void kl_leave_frames(kl_worker *worker, kl_frame *f, uint32_t mask) {
  while (f) {
    kl_frame *caller = f->caller;
    f->lanes &= ~mask;
    if (!f->lanes) drop_frame(worker, f);
    f = caller;
  }
}

void kl_free_frames(kl_worker *worker) {
  while (worker->frames) {
    kl_frame *f = worker->frames;
    worker->frames = f->caller;
    free(f);
  }
}

// Recursions are deep: of these only the innermost calls are looked at.
enum { MOST_WALKED = 100 };

kl_calls kl_calls_of(const kl_frame *f) {
  kl_calls c = {0};
  for (int walked = 0; f->caller; f = f->caller, walked++) {
    const kl_code *code = f->caller->code;
    const kl_ptx_instr *instr = &code->func->instrs[code->ops[f->return_to - 1].index];
    if (c.n && c.of[c.n - 1].instr == instr && walked < MOST_WALKED) {
      c.of[c.n - 1].times++;
      continue;
    }
    if (c.n == KL_MOST_CALLS || walked == MOST_WALKED) {
      c.more = f->depth;
      break;
    }
    c.of[c.n].func = code->func;
    c.of[c.n].times = 1;
    c.of[c.n++].instr = instr;
  }
  return c;
}

// The strand's lanes see this frame's registers from now on.
void kl_enter_frame(kl_warp *w, kl_frame *f) {
  w->strand.frame = f;
  w->x.base[KL_IN_REGISTERS] = f->regs;
  w->x.base[KL_IN_CONSTANTS] = f->code->constants;
}

static void transfer(kl_warp *w, uint32_t mask, const kl_transfer *t, uint32_t n, const kl_frame *caller,
                     const kl_frame *callee, bool in) {
  for (uint32_t k = 0; k < n; k++)
    for (unsigned i = 0; i < KL_LANES; i++) {
      char *stack = w->stack + (size_t)i * KL_MOST_STACK;
      char *outer = stack + caller->stack + t[k].caller, *inner = stack + callee->stack + t[k].callee;
      if (mask >> i & 1) memcpy(in ? inner : outer, in ? outer : inner, t[k].bytes);
    }
}

enum { MOST_DEPTH = 100000 };

// All lanes of the mask call one function.
static void call_one(kl_warp *w, const kl_sim_op *o, const kl_call *c, const kl_code *code, uint32_t mask) {
  kl_frame *from = w->strand.frame, *f = NULL;
  uint32_t stack = from->top;
  uint32_t needs = code->stack_bytes > c->bytes ? code->stack_bytes : c->bytes;
  if (needs > KL_MOST_STACK - stack || from->depth == MOST_DEPTH) {
    kl_faulted(w, o, KL_FAULT_STACK, (unsigned)__builtin_ctz(mask), stack);
    return;
  }
  f = kl_new_frame(w->block->worker, code);
  if (!f) {
    kl_faulted(w, o, KL_FAULT_MEMORY, (unsigned)__builtin_ctz(mask), 0);
    return;
  }
  f->caller = from;
  f->call = c;
  f->return_to = kl_op_number(w, o) + 1;
  f->lanes = mask;
  f->depth = from->depth + 1;
  f->stack = stack;
  f->top = stack + code->stack_bytes;
  transfer(w, mask, c->in, c->nin, from, f, true);
  if (w->observed) KL_TELL(w->block, call, w, f, mask);
  if (mask != w->strand.mask) {
    kl_split_off(w, w->strand.mask & ~mask, kl_op_number(w, o)); // they call again, where they want to
    kl_set_mask(&w->x, w->strand.mask);
  }
  kl_enter_frame(w, f);
  w->strand.spent++;
  w->next = code->ops;
  kl_stop(w); // the scheduler knows where other strands are
}

void kl_x_call(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  const kl_call *c = (const kl_call *)(uintptr_t)o->imm;
  if (c->code) {
    call_one(w, o, c, *c->code, x->mask);
    return;
  }
  unsigned lane = (unsigned)__builtin_ctz(x->mask);
  uint64_t target[KL_LANES], number;
  uint32_t same = 0;
  const kl_kernel *k = w->block->run->kernel;
  for (unsigned i = 0; i < KL_LANES; i++)
    target[i] = c->target_bytes == 8 ? AT(uint64_t, c->target)[i] : AT(uint32_t, c->target)[i];
  for (unsigned i = 0; i < KL_LANES; i++) same |= (uint32_t)(target[i] == target[lane]) << i;
  number = (target[lane] - KL_CODE_WINDOW) / KL_FUNCTION_STEP - 1;
  if (target[lane] % KL_FUNCTION_STEP != 0 || number >= k->of->ptx->nfuncs || !k->codes[number] ||
      k->codes[number] == k->entry) {
    kl_faulted(w, o, KL_FAULT_TARGET, lane, target[lane]);
    return;
  }
  call_one(w, o, c, k->codes[number], same & x->mask);
}

void kl_x_ret(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  kl_frame *f = w->strand.frame, *caller = f->caller;
  (void)o;
  transfer(w, x->mask, f->call->out, f->call->nout, caller, f, false);
  if (w->observed) KL_TELL(w->block, ret, w, f, x->mask);
  f->lanes &= ~x->mask;
  kl_enter_frame(w, caller);
  w->next = caller->code->ops + f->return_to;
  if (!f->lanes) drop_frame(w->block->worker, f);
  kl_stop(w);
}

void kl_x_exit(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  (void)o;
  uint32_t mask = x->mask;
  kl_leave_frames(w->block->worker, w->strand.frame, mask);
  kl_copies_after_exit(w, mask);
  w->alive &= ~mask;
  w->exited = true;
  w->block->alive -= (uint32_t)__builtin_popcount(mask);
  w->strand.mask = 0;
  kl_stop(w);
}
