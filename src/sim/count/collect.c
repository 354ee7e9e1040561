// Counting while a kernel runs, and what is made of it.

#include "sim/count/collect.h"
#include "sim/isa/match.h"
#include "sim/machine/execute.h"

#include <stdlib.h>

// --- issues ---------------------------------------------------------------------------------------------------------

static uint32_t holds(const kl_lanes *x, const kl_sim_op *o) {
  return x->mask & (*AT(uint32_t, o->a) ^ (o->flags & KL_NOT_C ? KL_ALL_LANES : 0));
}

static uint32_t same_words(const kl_lanes *x, kl_ref ref) {
  const uint32_t *v = AT(uint32_t, ref);
  uint32_t same = 0, first = v[__builtin_ctz(x->mask)];
  for (unsigned i = 0; i < KL_LANES; i++) same |= (uint32_t)(v[i] == first) << i;
  return same & x->mask;
}

static uint32_t same_callee(const kl_lanes *x, const kl_sim_op *o) {
  const kl_call *call = (const kl_call *)(uintptr_t)o->imm;
  uint32_t same = 0;
  if (call->code) return x->mask;
  if (call->target_bytes != 8) return same_words(x, call->target);
  const uint64_t *v = AT(uint64_t, call->target), first = v[__builtin_ctz(x->mask)];
  for (unsigned i = 0; i < KL_LANES; i++) same |= (uint32_t)(v[i] == first) << i;
  return same & x->mask;
}

typedef struct issue {
  uint32_t active, lanes;
  bool divergent;
} issue;

// Lanes that are there and in which the instruction takes effect; none: it is not issued this time.
static issue issue_of(const kl_warp *w, const kl_sim_op *o, kl_how how) {
  const kl_lanes *x = &w->x;
  issue is = {x->mask, x->mask, false};
  switch (how) {
  case KL_HOW_GUARD: is.lanes = holds(x, o); break;
  case KL_HOW_AROUND:
    is.lanes = x->mask & ~holds(x, o);
    is.divergent = is.lanes && is.lanes != x->mask;
    break;
  case KL_HOW_BRANCH:
    is.lanes = holds(x, o);
    is.divergent = is.lanes && is.lanes != x->mask;
    break;
  case KL_HOW_TABLE: is.divergent = same_words(x, o->a) != x->mask; break;
  case KL_HOW_BARRIER:
    is.active = is.lanes = same_words(x, o->a) & (o->b == KL_NO_REF ? KL_ALL_LANES : same_words(x, o->b));
    break;
  case KL_HOW_CALL: is.active = is.lanes = same_callee(x, o); break;
  case KL_HOW_WAIT:
    is.active = is.lanes = x->mask & ~kl_cluster_waits(w, x->mask); // who waits asks again
    break;
  default: break;
  }
  return is;
}

static void on_step(kl_observer *ob, kl_warp *w, const kl_sim_op *o) {
  kl_count *c = (kl_count *)ob;
  const kl_code *code = w->strand.frame->code;
  const kl_counted *f = &c->functions[code->function];
  kl_how how = (kl_how)f->how[o - code->ops];
  if (how == KL_HOW_NOT) return;
  kl_site *s = &f->sites[o->index];
  issue is = how == KL_HOW_PLAIN ? (issue){w->x.mask, w->x.mask, false} : issue_of(w, o, how);
  if (!is.active) return;
  s->warps++;
  s->active += (unsigned)__builtin_popcount(is.active);
  s->lanes += (unsigned)__builtin_popcount(is.lanes);
  s->partial += is.active != w->alive;
  s->divergent += is.divergent;
  if (s->enters) kl_sinks_enter(c, w, s->enters, is.active);
}

// --- before ---------------------------------------------------------------------------------------------------------

static kl_how how_of(const kl_sim_op *o) {
  if (o->run == kl_x_guard) return KL_HOW_GUARD;
  if (o->run == kl_x_branch_table) return KL_HOW_TABLE;
  if (o->run == kl_x_barrier || o->run == kl_x_arrive) return KL_HOW_BARRIER;
  if (o->run == kl_x_call) return KL_HOW_CALL;
  if (o->run == kl_x_cluster_wait) return KL_HOW_WAIT;
  return KL_HOW_PLAIN;
}

static kl_cache_use use_of(const kl_ptx_instr *i) {
  static const char *const past_l1[] = {"cg", "cv", "volatile", "relaxed", "acquire", "mmio", "L1::no_allocate"};
  if (kl_str_is(i->opcode, "atom") || kl_str_is(i->opcode, "red")) return KL_USE_ATOMIC;
  if (kl_str_is(i->opcode, "st") || kl_str_is(i->opcode, "stmatrix")) return KL_USE_STORE;
  for (size_t k = 0; k < KL_COUNT(past_l1); k++)
    if (kl_isa_has(i, past_l1[k])) return KL_USE_LOAD_L2;
  return KL_USE_LOAD;
}

static kl_site site_of(kl_isa_index *isa, const kl_ptx_func *f, uint32_t n) {
  const kl_ptx_instr *i = &f->instrs[n];
  kiln_profile_class class = kl_class_of(isa, i);
  return (kl_site){.instr = i,
                   .kind = (uint8_t) class,
                   .flops = (uint8_t)kl_flops_of(class, i),
                   .use = (uint8_t)use_of(i),
                   .is_const = kl_isa_has(i, "const"),
                   .is_param = kl_isa_has(i, "param") || kl_isa_has(i, "param::func")};
}

static bool prepare(kl_count *c, kl_isa_index *isa, kl_counted *f, const kl_code *code) {
  f->code = code;
  f->how = kl_arena_alloc(c->arena, code->nops + 1);
  f->sites = KL_NEW_N(c->arena, kl_site, code->func->ninstrs + 1);
  uint32_t *loop = KL_NEW_N(c->arena, uint32_t, code->func->ninstrs + 1);
  kl_find_loops(c->cx, code->func, loop, kl_arena_alloc(c->arena, code->func->ninstrs + 1));
  for (uint32_t n = 0; n < code->func->ninstrs; n++) {
    f->sites[n] = site_of(isa, code->func, n);
    f->sites[n].in_loop = loop[n] != 0;
  }
  for (uint32_t k = 0, last = UINT32_MAX; k + 1 < code->nops; k++) { // the last one is the end of the body
    const kl_sim_op *o = &code->ops[k];
    if (o->index == last || kl_is_keeping(code, k)) continue;
    last = o->index;
    f->how[k] = (uint8_t)how_of(o);
    bool guarded = o->run == kl_x_branch && o->a != KL_NO_REF;
    if (guarded) f->how[k] = code->forms[k] ? KL_HOW_BRANCH : KL_HOW_AROUND;
  }
  if (!kl_blocks_find(c->cx, code->func, &f->blocks)) return false;
  kl_sinks_find(c, f, loop);
  return true;
}

static kiln_status begin(kl_count *c, const kl_launch *l, const kl_ptx_module *ptx, kl_memory *m, uint32_t l1) {
  c->nfunctions = ptx->nfuncs;
  c->functions = KL_NEW_N(c->arena, kl_counted, ptx->nfuncs + 1);
  kl_isa_index *isa = kl_isa_index_new(c->cx);
  bool prepared = true;
  for (uint32_t k = 0; prepared && k < ptx->nfuncs; k++)
    if (l->kernel->codes[k]) prepared = prepare(c, isa, &c->functions[k], l->kernel->codes[k]);
  kl_isa_index_free(isa);
  if (!prepared) return kl_out_of_memory(c->cx, sizeof(kl_blocks), "blocks of instructions");
  c->footprint = (kl_footprint){.cx = c->cx, .memory = m};
  if (!kl_caches_make(c->cx, &c->caches, c->gpu, l1)) return kl_out_of_memory(c->cx, c->gpu->l2, "the model of caches");
  c->observer = (kl_observer){.step = on_step, .access = kl_count_access};
  if (c->nmovable) c->observer.begin = kl_sinks_begin, c->observer.end = kl_sinks_end;
  return KILN_OK;
}

static void end(kl_count *c) {
  kl_caches_free(c->cx, &c->caches);
  kl_footprint_free(&c->footprint);
  kl_hot_free(c->cx, &c->hot);
  VEC_FREE(c->cx, &c->sinks);
  for (uint32_t k = 0; k < c->nfunctions; k++)
    kl_free(c->cx, c->functions[k].blocks.of, c->functions[k].blocks.of ? c->functions[k].blocks.bytes : 0);
}

// --- afterwards -----------------------------------------------------------------------------------------------------

void kl_add_access(kiln_access_counts *to, const kiln_access_counts *from) {
  to->requests += from->requests;
  to->lanes += from->lanes;
  to->bytes += from->bytes;
  to->unique_bytes += from->unique_bytes;
  for (size_t k = 0; k < KL_COUNT(to->width); k++) to->width[k] += from->width[k];
  to->sectors += from->sectors;
  to->ideal_sectors += from->ideal_sectors;
  to->l1_hits += from->l1_hits;
  to->l2_hits += from->l2_hits;
  to->wavefronts += from->wavefronts;
  to->ideal_wavefronts += from->ideal_wavefronts;
  to->remote += from->remote;
  to->addresses += from->addresses;
  if (from->most_on_one > to->most_on_one) to->most_on_one = from->most_on_one;
}

static void add_site(kiln_profile_info *t, const kl_site *s) {
  t->warps[s->kind] += s->warps;
  t->lanes[s->kind] += s->lanes;
  t->all_warps += s->warps;
  t->all_active += s->active;
  t->all_lanes += s->lanes;
  t->partial += s->partial;
  if (s->kind == KILN_CLASS_BRANCH) t->branches += s->warps, t->divergent_branches += s->divergent;
  uint64_t flops = s->lanes * s->flops;
  if (s->kind <= KILN_CLASS_F32_OTHER)
    t->f32_flops += flops;
  else if (s->kind <= KILN_CLASS_F64_OTHER)
    t->f64_flops += flops;
  else
    t->half_flops += flops;
  for (size_t k = 0; k < KILN_ACCESS_COUNT; k++)
    if (s->accesses[k]) kl_add_access(&t->accesses[k], s->accesses[k]);
}

static const char *text_of(kiln_profile *p, const kl_ptx_module *ptx, const kl_ptx_func *f, const kl_ptx_instr *i) {
  kl_sb b;
  kl_sb_init(&b, p->cx);
  kl_ptx_put_instr(&b, ptx, f, i);
  const char *text = kl_str_dup(&p->arena, (kl_str){b.p, b.n}).p;
  kl_sb_free(&b);
  return text;
}

static kiln_profile_line line_of(kiln_profile *p, const kl_ptx_module *ptx, const kl_ptx_func *f, const char *function,
                                 const kl_site *s) {
  kiln_profile_line l = {.line = s->instr->at.line,
                         .function = function,
                         .text = text_of(p, ptx, f, s->instr),
                         .kind = (kiln_profile_class)s->kind,
                         .in_loop = s->in_loop,
                         .warps = s->warps,
                         .active = s->active,
                         .lanes = s->lanes,
                         .partial = s->partial,
                         .divergent = s->divergent};
  kiln_access_counts *a = NULL;
  for (size_t k = 0; k < KILN_ACCESS_COUNT; k++) l.access_count += s->accesses[k] != NULL;
  if (l.access_count) a = KL_NEW_N(&p->arena, kiln_access_counts, l.access_count);
  l.accesses = a;
  for (size_t k = 0; k < KILN_ACCESS_COUNT; k++)
    if (s->accesses[k]) *a++ = *s->accesses[k];
  return l;
}

static int by_line(const void *a, const void *b) {
  const kl_sunk *x = a, *y = b;
  return x->line != y->line ? (x->line > y->line) - (x->line < y->line) : (x->block > y->block) - (x->block < y->block);
}

// The kernel's own, whose first line is the profile's line `first`.
static void make_sunk(kiln_profile *p, const kl_count *c, uint32_t first) {
  p->nsunk = c->sinks.n;
  for (size_t k = 0; k < c->sinks.n; k++) {
    const kl_sink *s = &c->sinks.p[k];
    p->sunk[k] = (kl_sunk){.line = first + s->instr, .block = p->nblocks + s->block, .counts = s->counts};
  }
  if (p->nsunk) qsort(p->sunk, p->nsunk, sizeof *p->sunk, by_line);
}

// Instructions of all functions, in the order of the text; `ids`: their numbers among all of the module.
static void make_lines(kiln_profile *p, const kl_count *c, const kl_ptx_module *ptx) {
  size_t n = 0;
  uint32_t id = 1;
  for (uint32_t k = 0; k < c->nfunctions; k++)
    if (c->functions[k].code) n += ptx->funcs[k].ninstrs;
  p->lines = KL_NEW_N(&p->arena, kiln_profile_line, n + 1);
  p->ids = KL_NEW_N(&p->arena, uint32_t, n + 1);
  p->blocks = KL_NEW_N(&p->arena, uint32_t, n + 1);
  p->sunk = KL_NEW_N(&p->arena, kl_sunk, c->sinks.n + 1);
  p->info.lines = p->lines;
  for (uint32_t k = 0; k < c->nfunctions; k++) {
    const kl_ptx_func *f = &ptx->funcs[k];
    const char *name = c->functions[k].code ? kl_str_dup(&p->arena, f->name).p : NULL;
    p->calls |= name && !f->entry;
    for (uint32_t i = 0; i < f->ninstrs; i++, id++) {
      if (!name) continue;
      const kl_site *s = &c->functions[k].sites[i];
      p->ids[p->info.line_count] = id;
      p->blocks[p->info.line_count] = p->nblocks + c->functions[k].blocks.of[i];
      p->lines[p->info.line_count++] = line_of(p, ptx, f, name, s);
      add_site(&p->info, s);
    }
    if (name && f->entry) make_sunk(p, c, (uint32_t)p->info.line_count - f->ninstrs);
    p->nblocks += c->functions[k].blocks.n;
  }
}

static void make_buffers(kiln_profile *p, const kl_count *c) {
  const kl_footprint *f = &c->footprint;
  kiln_profile_buffer *b = KL_NEW_N(&p->arena, kiln_profile_buffer, f->buffers.n + 1);
  for (size_t k = 0; k < f->buffers.n; k++) {
    const kl_touched *t = &f->buffers.p[k];
    b[k] = (kiln_profile_buffer){t->base, t->size, t->read_bytes, t->written_bytes};
  }
  p->info.buffers = b;
  p->info.buffer_count = f->buffers.n;
}

static void make_totals(kiln_profile *p, const kl_count *c) {
  for (size_t k = 0; k < KILN_ACCESS_COUNT; k++) p->info.accesses[k].kind = (kiln_access_kind)k;
  p->info.dram_read = c->caches.read * KL_SECTOR;
  p->info.dram_written = c->caches.written * KL_SECTOR;
  p->info.dram_dirty = kl_caches_dirty(&c->caches) * KL_SECTOR;
  for (size_t k = 0; k < c->hot.slots; k++) {
    bool more = c->hot.requests[k] > p->info.hottest_requests;
    bool lower = c->hot.requests[k] == p->info.hottest_requests && c->hot.address[k] < p->info.hottest_address;
    if (!c->hot.requests[k] || (!more && !lower)) continue;
    p->info.hottest_requests = c->hot.requests[k];
    p->info.hottest_address = c->hot.address[k];
  }
}

// --- a launch -------------------------------------------------------------------------------------------------------

static void describe(kiln_profile *p, const kl_launch *l) {
  kiln_profile_info *t = &p->info;
  const kl_ptx_tuning *tuning = &l->kernel->func->tuning;
  kl_kernel_facts facts = kl_kernel_describe(l->kernel);
  uint64_t of_cluster = 1;
  t->struct_size = sizeof *t;
  t->kernel = kl_str_dup(&p->arena, facts.name).p;
  t->gpu = p->gpu->name;
  t->sm = p->gpu->sm;
  t->shared_bytes = facts.shared_bytes + l->dynamic_shared;
  t->blocks = 1;
  for (int d = 0; d < 3; d++) {
    t->grid[d] = l->grid[d];
    t->block[d] = l->block[d];
    t->cluster[d] = l->cluster[d] ? l->cluster[d] : tuning->reqnctapercluster[d] ? tuning->reqnctapercluster[d] : 1;
    t->blocks *= l->grid[d];
    of_cluster *= t->cluster[d];
  }
  t->sampled = l->sample.count ? l->sample.count * of_cluster : t->blocks;
  t->scale = t->sampled ? (double)t->blocks / (double)t->sampled : 1;
  p->ptx_registers = facts.registers + 8; // the hardware's own
  if (tuning->maxnreg && p->ptx_registers > tuning->maxnreg) p->ptx_registers = tuning->maxnreg;
  if (p->ptx_registers > 255) p->ptx_registers = 255;
}

static kiln_profile *new_profile(kl_ctx *cx, const kl_gpu *gpu) {
  kiln_profile *p = kl_alloc(cx, sizeof *p);
  kl_context_hold(cx);
  p->cx = cx;
  p->gpu = gpu;
  kl_arena_init(&p->arena, cx);
  return p;
}

void kiln_profile_destroy(kiln_profile **pp) {
  kiln_profile *p = pp ? *pp : NULL;
  if (!p) return;
  kl_ctx *cx = p->cx;
  kl_arena_free(&p->arena);
  kl_free(cx, p, sizeof *p);
  kl_context_release(cx);
  *pp = NULL;
}

kiln_profile_info kl_profile_info(const kiln_profile *p) {
  return p->info;
}

kiln_status kl_profile_run(kl_ctx *cx, kl_memory *m, const kl_launch *l, const kl_ptx_module *ptx, const kl_gpu *gpu,
                           kl_fault *fault, kiln_profile **out) {
  kl_arena arena;
  kl_arena_init(&arena, cx);
  kl_count c = {.cx = cx, .arena = &arena, .gpu = gpu};
  kl_observer *observer = &c.observer;
  kl_launch observed = *l;
  kiln_profile *p = new_profile(cx, gpu);
  *fault = (kl_fault){0};
  observed.observers = &observer;
  observed.nobservers = 1;
  describe(p, l);
  kl_predict(p); // where nothing is counted yet: how much of a multiprocessor's memory is L1
  kiln_status s = begin(&c, l, ptx, m, p->info.occupancy.l1_bytes);
  if (s == KILN_OK) s = kl_launch_run(cx, m, &observed, fault);
  if (s == KILN_OK) {
    make_lines(p, &c, ptx);
    make_buffers(p, &c);
    make_totals(p, &c);
    kl_sass_sources(p, ptx);
    kl_predict(p);
    *out = p;
  } else
    kiln_profile_destroy(&p);
  end(&c);
  kl_arena_free(&arena);
  return s;
}
