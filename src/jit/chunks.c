// From plans to code: chunks, the threads that generate them, and the code of all chunks as one.

#include "jit/chunks.h"
#include "jit/kernels.h"
#include "base/threads.h"
#include "lower/emit/emit.h"

#include <stdio.h>

typedef struct chunk {
  kl_task task; // first
  uint32_t number;
  const char *name; // of its first kernel
  size_t kernels;
  bool seldom;          // what is in it is run seldom
  uint64_t size;        // instructions, up to and with function `counted`
  LLVMValueRef counted; // NULL: none
  LLVMContextRef llcx;
  LLVMModuleRef module; // NULL once its code is generated
  kiln_status status;
  kl_ctx *found; // what was wrong; NULL: nothing
  uint32_t ptx;
  LLVMMemoryBufferRef code; // NULL: not there
  struct chunk *next;
} chunk;

struct kl_chunks {
  kl_ctx *cx;
  kl_arena *arena;
  const kl_target *target;
  const kiln_compile_params *params;
  chunk *first, **end;
  chunk *open[2]; // those that kernels go to which are run often, and seldom; NULL: none
  uint32_t n;
  kl_sb llvm;
  uint32_t threads;
  kl_tasks *tasks;    // NULL: one chunk so far
  kl_ctx **hands;     // by worker: where it keeps machines and findings; NULL: not begun
  atomic_uint failed; // the first chunk that has
  atomic_size_t coded;
};

// --- code -----------------------------------------------------------------------------------------------------------

static kiln_status code_of(const kl_chunks *c, chunk *x, kl_ctx *cx) {
  LLVMModuleRef m = x->module;
  x->module = NULL;
  return kl_codegen(cx, x->llcx, m, c->target, x->seldom, x->name, c->params->after_pass, c->params->user, &x->ptx,
                    &x->code);
}

static void end_llvm(chunk *x) {
  if (x->module) LLVMDisposeModule(x->module);
  if (x->llcx) LLVMContextDispose(x->llcx);
  x->module = NULL;
  x->llcx = NULL;
}

static void note_failed(kl_chunks *c, uint32_t number) {
  unsigned first = atomic_load(&c->failed);
  while (number < first && !atomic_compare_exchange_weak(&c->failed, &first, number)) {}
}

// By any thread. Nobody asks for what is behind a chunk that has failed.
static void generate(void *arg, uint32_t worker, kl_task *t) {
  kl_chunks *c = arg;
  chunk *x = (chunk *)t;
  kl_ctx **cx = &c->hands[worker];
  if (x->number > atomic_load(&c->failed)) return;
  if (!*cx) *cx = kiln_context_create(NULL);
  x->status = *cx ? code_of(c, x, *cx) : KILN_E_MEMORY;
  end_llvm(x);
  atomic_fetch_add(&c->coded, x->kernels);
  if (x->status == KILN_OK) return;
  x->found = *cx;
  *cx = NULL;
  note_failed(c, x->number);
}

// --- chunks ---------------------------------------------------------------------------------------------------------

kl_chunks *kl_chunks_new(kl_ctx *cx, kl_arena *arena, const kl_target *t, const kiln_compile_params *p) {
  kl_chunks *c = KL_NEW(arena, kl_chunks);
  c->cx = cx;
  c->arena = arena;
  c->target = t;
  c->params = p;
  c->end = &c->first;
  // What the caller wants to see of the passes he sees on his own thread.
  c->threads = p->after_pass ? 1 : p->threads ? p->threads : kl_cores();
  kl_sb_init(&c->llvm, cx);
  atomic_init(&c->failed, UINT32_MAX);
  atomic_init(&c->coded, 0);
  return c;
}

// One LLVM module for many kernels: each costs some time by itself.
static kiln_status begin_chunk(kl_chunks *c, const char *name, bool seldom) {
  char *triple, *layout;
  KL_TRY(kl_machine_layout(c->cx, c->target, &triple, &layout));
  chunk *x = KL_NEW(c->arena, chunk);
  x->number = c->n++;
  x->name = kl_str_dup(c->arena, kl_str_of(name)).p;
  x->seldom = seldom;
  x->llcx = LLVMContextCreate();
  x->module = LLVMModuleCreateWithNameInContext(x->name, x->llcx);
  LLVMSetTarget(x->module, triple);
  LLVMSetDataLayout(x->module, layout);
  LLVMDisposeMessage(triple);
  LLVMDisposeMessage(layout);
  *c->end = x;
  c->end = &x->next;
  c->open[seldom] = x;
  return KILN_OK;
}

// Instructions as built: some 10 ms of work for GPUs, which is many times what a chunk and a thread cost.
enum { FULL = 6000 };

static bool is_full(chunk *x) {
  LLVMValueRef f = x->counted ? LLVMGetNextFunction(x->counted) : LLVMGetFirstFunction(x->module);
  for (; f; x->counted = f, f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) x->size++;
  return x->size >= FULL;
}

// The chunks of a GPU become one module of PTX, in which functions of two may not have one name.
static void name_functions(chunk *x) {
  char name[160];
  for (LLVMValueRef f = LLVMGetFirstFunction(x->module); f; f = LLVMGetNextFunction(f)) {
    size_t n;
    if (LLVMGetLinkage(f) != LLVMInternalLinkage) continue;
    snprintf(name, sizeof name, "%s$%u", LLVMGetValueName2(f, &n), x->number);
    LLVMSetValueName2(f, name, strlen(name));
  }
}

// No more kernels go to it.
static void close_chunk(kl_chunks *c, chunk *x) {
  c->open[x->seldom] = NULL;
  if (x->number && c->target->machine == KL_NVPTX) name_functions(x);
  if (!(c->params->keep & KILN_KEEP_LLVM)) return;
  char *text = LLVMPrintModuleToString(x->module);
  if (c->llvm.n) kl_sb_putc(&c->llvm, '\n');
  kl_sb_puts(&c->llvm, text);
  LLVMDisposeMessage(text);
}

// For any thread to generate. Plans are made faster than code: so many wait at most.
static void hand_over(kl_chunks *c, chunk *x) {
  if (!c->tasks) {
    c->tasks = KL_NEW(c->arena, kl_tasks);
    c->hands = KL_NEW_N(c->arena, kl_ctx *, KL_MOST_WORKERS);
    kl_tasks_begin(c->tasks, c->threads, generate, c);
  }
  kl_tasks_add(c->tasks, &x->task);
  while (kl_tasks_waiting(c->tasks) > 2 * (size_t)(c->threads - 1)) kl_tasks_help(c->tasks);
}

// The module that kernels go to; it has room.
static kiln_status make_room(kl_chunks *c, bool seldom, const char *name, size_t kernels, LLVMModuleRef *to) {
  chunk *x = c->open[seldom];
  if (x && is_full(x)) {
    close_chunk(c, x);
    hand_over(c, x);
  }
  if (!c->open[seldom]) KL_TRY(begin_chunk(c, name, seldom));
  c->open[seldom]->kernels += kernels;
  *to = c->open[seldom]->module;
  return KILN_OK;
}

kiln_status kl_chunks_add(kl_chunks *c, kl_plan *plan, size_t kernels) {
  LLVMModuleRef module;
  KL_TRY(make_room(c, plan->seldom, plan->launches[0].name, kernels, &module));
  kl_emit_kernel(c->cx, module, plan);
  return KILN_OK;
}

kiln_status kl_chunks_add_rounds(kl_chunks *c, const kl_rounds *r, size_t kernels) {
  LLVMModuleRef module;
  KL_TRY(make_room(c, false, r->name, kernels, &module));
  kl_emit_rounds(c->cx, module, r);
  return KILN_OK;
}

size_t kl_chunks_coded(kl_chunks *c) {
  return atomic_load(&c->coded);
}

void kl_chunks_free(kl_chunks *c) {
  if (c->tasks) kl_tasks_end(c->tasks);
  for (chunk *x = c->first; x; x = x->next) {
    end_llvm(x);
    if (x->code) LLVMDisposeMemoryBuffer(x->code);
    kiln_context_destroy(&x->found);
  }
  for (uint32_t i = 0; c->hands && i < KL_MOST_WORKERS; i++) kiln_context_destroy(&c->hands[i]);
  kl_sb_free(&c->llvm);
}

// --- the code of all ------------------------------------------------------------------------------------------------

// The text of a module of PTX: version and target; kernels; where the module's text is from, for all kernels alike.
typedef struct ptx_text {
  kl_str head, kernels, end;
} ptx_text;

static ptx_text split(LLVMMemoryBufferRef code) {
  kl_str s = {LLVMGetBufferStart(code), LLVMGetBufferSize(code)};
  const char *last = strstr(s.p, ".address_size");
  size_t head = last ? (size_t)(strchr(last, '\n') + 1 - s.p) : 0, end = s.n;
  while (end > head + 2 && memcmp(s.p + end - 3, "\n}\n", 3) != 0) end--;
  if (end == head + 2) end = s.n;
  return (ptx_text){{s.p, head}, {s.p + head, end - head}, {s.p + end, s.n - end}};
}

// Numbers of calls are left out: a machine counts all that it has ever generated.
static char *put_kernels(char *to, kl_str s) {
  static const char number[] = " // callseq ";
  const char *end = s.p + s.n;
  for (const char *p = s.p, *at; p < end; p = at) {
    at = memmem(p, (size_t)(end - p), number, sizeof number - 1);
    to = mempcpy(to, p, (size_t)((at ? at : end) - p));
    if (!at) break;
    at = memchr(at, '\n', (size_t)(end - at)); // s ends a line
  }
  return to;
}

// What a later version of PTX has, an earlier one's text does not use: all kernels are of the latest.
static kiln_status join_ptx(kl_chunks *c, kiln_artifact *a) {
  size_t n = 0;
  const chunk *latest = c->first;
  kl_str end = {NULL, 0};
  for (const chunk *x = c->first; x; x = x->next) {
    ptx_text t = split(x->code);
    n += t.kernels.n;
    if (x->ptx > latest->ptx) latest = x;
    if (t.end.n) end = t.end;
  }
  kl_str head = split(latest->code).head;
  n += head.n + end.n;
  char *to = kl_arena_try_alloc(&a->arena, n + 1);
  if (!to) return kl_out_of_memory(c->cx, n + 1, "an artifact's text");
  a->text[KILN_TEXT_PTX] = to;
  to = mempcpy(to, head.p, head.n);
  for (const chunk *x = c->first; x; x = x->next) to = put_kernels(to, split(x->code).kernels);
  if (end.n) to = mempcpy(to, end.p, end.n);
  a->text_size[KILN_TEXT_PTX] = (size_t)(to - a->text[KILN_TEXT_PTX]);
  kl_describe_code(&a->manifest, latest->ptx);
  return KILN_OK;
}

static kiln_status list_objects(kl_chunks *c, kiln_artifact *a) {
  a->objects = KL_NEW_N(&a->arena, kl_object, c->n);
  for (const chunk *x = c->first; x; x = x->next) {
    size_t n = LLVMGetBufferSize(x->code);
    void *bytes = kl_arena_try_alloc(&a->arena, n);
    if (!bytes) return kl_out_of_memory(c->cx, n, "the kernels' object code");
    a->objects[a->object_count++] = (kl_object){memcpy(bytes, LLVMGetBufferStart(x->code), n), n};
  }
  kl_describe_code(&a->manifest, 0);
  return KILN_OK;
}

static kiln_status keep_llvm(kl_chunks *c, kiln_artifact *a) {
  char *text = kl_arena_try_alloc(&a->arena, c->llvm.n + 1);
  if (!text) return kl_out_of_memory(c->cx, c->llvm.n + 1, "an artifact's text");
  a->text[KILN_TEXT_LLVM] = memcpy(text, c->llvm.p, c->llvm.n + 1);
  a->text_size[KILN_TEXT_LLVM] = c->llvm.n;
  return KILN_OK;
}

// What its thread has found, said here.
static kiln_status repeat_findings(kl_chunks *c, const chunk *x) {
  if (!x->found) return kl_out_of_memory(c->cx, sizeof(kl_ctx), "a thread");
  for (size_t i = 0; i < kiln_diagnostics_count(x->found); i++)
    kl_diag_repeat(c->cx, kiln_diagnostics_get(x->found, i));
  return x->status;
}

static kiln_status generate_all(kl_chunks *c, kiln_status (*step)(void *user), void *user) {
  chunk *last[2] = {c->open[0], c->open[1]};
  for (int i = 0; i < 2; i++)
    if (last[i]) close_chunk(c, last[i]);
  KL_TRY(step(user));
  if (c->n == 1) return code_of(c, c->first, c->cx);
  for (int i = 0; i < 2; i++)
    if (last[i]) hand_over(c, last[i]);
  while (kl_tasks_help(c->tasks)) KL_TRY(step(user));
  for (const chunk *x = c->first; x; x = x->next)
    if (x->status != KILN_OK) return repeat_findings(c, x);
  return KILN_OK;
}

kiln_status kl_chunks_finish(kl_chunks *c, kiln_artifact *a, kiln_status (*step)(void *user), void *user) {
  KL_TRY(generate_all(c, step, user));
  if (c->params->keep & KILN_KEEP_LLVM) KL_TRY(keep_llvm(c, a));
  return a->host ? list_objects(c, a) : join_ptx(c, a);
}
