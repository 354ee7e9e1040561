// Places in words: what lies at an address (the variable or the allocation that has it, or the nearest one), lines of
// the source, calls.

#include "sim/machine/warp.h"

// --- the nearest piece ----------------------------------------------------------------------------------------------

// Bytes from a piece's begin to an address. Spaces other than the device's memory have addresses of 32 bits, which go
// round: what lies before the first variable is a high one.
static int64_t offset_of(const kl_spot *s, const kl_piece *p) {
  uint64_t offset = s->address - p->base;
  return s->space != KL_SPACE_DEVICE && s->address < KL_WINDOW ? (int32_t)(uint32_t)offset : (int64_t)offset;
}

// How far an address lies outside of a piece.
static uint64_t away(const kl_spot *s, const kl_piece *p) {
  int64_t offset = offset_of(s, p);
  if (offset < 0) return 0 - (uint64_t)offset;
  return (uint64_t)offset < p->size ? 0 : (uint64_t)offset - p->size + 1;
}

// What an access may have meant: what has its first byte, or else what it lies nearest to.
static void nearer(kl_spot *s, kl_piece p) {
  if (p.size == 0 && p.kind != KL_PIECE_DYNAMIC) return;
  if (s->piece.kind == KL_PIECE_NONE || away(s, &p) < away(s, &s->piece)) s->piece = p;
}

static kl_piece variable(const kl_ptx_var *v, uint64_t at) {
  return (kl_piece){.kind = KL_PIECE_VARIABLE, .base = at, .size = v->bytes, .name = v->name};
}

// --- shared memory --------------------------------------------------------------------------------------------------

static void find_shared(const kl_block *b, kl_spot *s) {
  const kl_kernel *k = b->run->kernel;
  const kl_ptx_module *m = k->of->ptx;
  kl_piece dynamic = {.kind = KL_PIECE_DYNAMIC, .base = k->shared_bytes, .size = b->shared_bytes - k->shared_bytes};
  bool wanted = dynamic.size > 0;
  for (uint32_t n = 0; n < m->nvars; n++) {
    if (!k->used[n] || m->vars[n].space != KL_PTX_SHARED) continue;
    if (m->vars[n].bytes)
      nearer(s, variable(&m->vars[n], k->shared[n]));
    else
      wanted = true, dynamic.name = m->vars[n].name;
  }
  for (uint32_t f = 0; f < m->nfuncs; f++)
    for (uint32_t n = 0; k->shared_of[f] && n < m->funcs[f].nvars; n++)
      if (m->funcs[f].vars[n].space == KL_PTX_SHARED) nearer(s, variable(&m->funcs[f].vars[n], k->shared_of[f][n]));
  if (wanted) nearer(s, dynamic);
}

static void in_shared(const kl_warp *w, kl_spot *s) {
  const kl_block *b = w->block;
  if (s->address >= KL_SHARED_RANK && b->cluster && b->cluster->n > 1) {
    uint64_t rank = s->address / KL_SHARED_RANK - 1;
    s->block = rank < UINT32_MAX ? (uint32_t)rank + 1 : UINT32_MAX;
    if (rank >= b->cluster->n) return;
  }
  if (s->address >= KL_SHARED_RANK && s->address / KL_SHARED_RANK <= b->cluster->n) s->address %= KL_SHARED_RANK;
  find_shared(b, s);
}

// --- the stack and parameters ---------------------------------------------------------------------------------------

enum { MOST_FRAMES = 256 };

static void in_stack(const kl_warp *w, kl_spot *s) {
  int depth = 0;
  for (const kl_frame *f = w->strand.frame; f && depth < MOST_FRAMES; f = f->caller, depth++) {
    const kl_ptx_func *func = f->code->func;
    uint32_t own = f->stack + f->code->stack_bytes;
    for (uint32_t n = 0; n < func->nvars; n++) {
      const kl_ptx_var *v = &func->vars[n];
      bool of_kernel = func->entry && n >= func->nreturns && n < func->nreturns + func->nparams;
      if (v->space == KL_PTX_LOCAL || (v->space == KL_PTX_PARAM && !of_kernel))
        nearer(s, variable(v, f->stack + f->code->var_at[n]));
    }
    if (f->top > own) nearer(s, (kl_piece){.kind = KL_PIECE_ALLOCA, .base = own, .size = f->top - own});
  }
}

static void in_params(const kl_kernel *k, kl_spot *s) {
  for (uint32_t n = 0; n < k->func->nparams; n++)
    nearer(s, variable(&k->func->vars[k->func->nreturns + n], k->param_at[n]));
}

// --- memory of the device -------------------------------------------------------------------------------------------

// The parameter of a launch that holds an address of the piece.
static kl_str pointer_to(const kl_launch *l, const kl_piece *p) {
  const kl_ptx_func *f = l->kernel->func;
  for (uint32_t n = 0; n < f->nparams; n++) {
    uint64_t value;
    const kl_ptx_var *v = &f->vars[f->nreturns + n];
    if (v->bytes != 8 || !l->params) continue;
    memcpy(&value, (const char *)l->params + l->kernel->param_at[n], 8);
    if (value - p->base < p->size) return v->name;
  }
  return (kl_str){0};
}

kl_spot kl_spot_in_memory(const kl_memory *m, const kl_launch *l, uint64_t address, uint64_t bytes) {
  kl_spot s = {.space = KL_SPACE_DEVICE, .address = address, .bytes = bytes};
  int64_t distance;
  const kl_region *r = kl_memory_find(m, address);
  if (!r) r = kl_memory_nearest(m, address, &distance);
  if (!r) return s;
  bool is_variable = r->kind == KL_REGION_VARIABLE || r->kind == KL_REGION_CONST;
  s.piece = (kl_piece){.kind = is_variable ? KL_PIECE_VARIABLE : KL_PIECE_ALLOCATION,
                       .freed = r->freed,
                       .base = r->base,
                       .size = r->size,
                       .name = r->name};
  kl_str name = l && !is_variable && !r->name.n ? pointer_to(l, &s.piece) : (kl_str){0};
  if (name.n) s.piece.kind = KL_PIECE_ARGUMENT, s.piece.name = name;
  return s;
}

// --- any of these ---------------------------------------------------------------------------------------------------

kl_spot kl_spot_of(const kl_warp *w, kl_where where, uint64_t address, uint64_t bytes) {
  const kl_run_state *run = w->block->run;
  kl_spot s = {.address = address, .bytes = bytes};
  if (where == KL_AT_GENERIC && address < KL_DEVICE_MEMORY) {
    uint64_t window = address / KL_WINDOW;
    if (window == 0 || window > 3) return s;
    where = window == 1 ? KL_AT_SHARED : window == 2 ? KL_AT_STACK : KL_AT_PARAM;
    s.address %= KL_WINDOW;
    s.generic = true;
  }
  switch (where) {
  case KL_AT_SHARED:
    s.space = KL_SPACE_SHARED;
    in_shared(w, &s);
    return s;
  case KL_AT_STACK:
    s.space = KL_SPACE_LOCAL;
    in_stack(w, &s);
    return s;
  case KL_AT_PARAM:
    s.space = KL_SPACE_PARAM;
    in_params(run->kernel, &s);
    return s;
  default: break;
  }
  if (address >= KL_DEVICE_MEMORY) return kl_spot_in_memory(run->memory, run->launch, address, bytes);
  s.space = KL_SPACE_DEVICE;
  return s;
}

// --- in words -------------------------------------------------------------------------------------------------------

void kl_piece_put(kl_sb *b, const kl_piece *p) {
  static const char *const names[] = {
      [KL_PIECE_NONE] = "nothing",
      [KL_PIECE_VARIABLE] = "a variable",
      [KL_PIECE_ALLOCATION] = "an allocation",
      [KL_PIECE_ARGUMENT] = "",
      [KL_PIECE_DYNAMIC] = "dynamic shared memory",
      [KL_PIECE_ALLOCA] = "what alloca gave",
  };
  if (p->kind == KL_PIECE_ARGUMENT)
    kl_sbf(b, "what %.*s points to", KL_FMT(p->name));
  else if (p->name.n)
    kl_sb_put(b, p->name);
  else
    kl_sb_puts(b, names[p->kind]);
  kl_sbf(b, " (%llu bytes at 0x%llx%s)", (unsigned long long)p->size, (unsigned long long)p->base,
         p->freed ? ", freed" : "");
}

static void put_distance(kl_sb *b, uint64_t distance, const char *where) {
  if (distance)
    kl_sbf(b, "%llu byte%s %s", (unsigned long long)distance, distance == 1 ? "" : "s", where);
  else
    kl_sbf(b, "right %s", where);
}

// How bytes lie to their piece.
static void put_relation(kl_sb *b, const kl_spot *s) {
  const kl_piece *p = &s->piece;
  int64_t from = offset_of(s, p);
  uint64_t offset = (uint64_t)from, over;
  kl_sb_puts(b, ", ");
  if (from < 0) {
    put_distance(b, 0 - offset, "before ");
  } else if (offset >= p->size) {
    put_distance(b, offset - p->size, "behind the end of ");
  } else if (s->bytes > p->size - offset) {
    over = s->bytes - (p->size - offset);
    kl_sbf(b, "of which %llu lie%s behind the end of ", (unsigned long long)over, over == 1 ? "s" : "");
  } else if (offset) {
    kl_sbf(b, "%llu byte%s into ", (unsigned long long)offset, offset == 1 ? "" : "s");
  } else {
    kl_sb_puts(b, "at the start of ");
  }
  kl_piece_put(b, p);
}

void kl_spot_put(kl_sb *b, const kl_spot *s) {
  static const char *const of[] = {[KL_SPACE_NONE] = "",
                                   [KL_SPACE_DEVICE] = "",
                                   [KL_SPACE_SHARED] = " of shared memory",
                                   [KL_SPACE_LOCAL] = " of local memory",
                                   [KL_SPACE_PARAM] = " of the parameters"};
  static const uint64_t window_of[] = {
      [KL_SPACE_SHARED] = KL_SHARED_WINDOW, [KL_SPACE_LOCAL] = KL_LOCAL_WINDOW, [KL_SPACE_PARAM] = KL_PARAM_WINDOW};
  kl_sbf(b, ", %llu byte%s at 0x%llx%s", (unsigned long long)s->bytes, s->bytes == 1 ? "" : "s",
         (unsigned long long)s->address, of[s->space]);
  if (s->generic) kl_sbf(b, " (generic 0x%llx)", (unsigned long long)(window_of[s->space] + s->address));
  if (s->block) kl_sbf(b, " of block %u of the cluster", s->block - 1);
  if (s->piece.kind != KL_PIECE_NONE) put_relation(b, s);
  if (s->space == KL_SPACE_NONE) kl_sb_puts(b, ", which belongs to no space");
}

void kl_source_put(kl_sb *b, const kl_ptx_module *m, kl_ptx_place at) {
  if (!at.src_line) return;
  for (;;) {
    kl_str file = m && at.file < m->nfiles ? m->files[at.file] : (kl_str){0};
    if (file.n)
      kl_sbf(b, "%.*s:%u", KL_FMT(file), at.src_line);
    else
      kl_sbf(b, "source line %u", at.src_line);
    if (!m || !at.inlined) return;
    kl_sb_puts(b, ", inlined at ");
    const kl_ptx_inlined *i = &m->inlined[at.inlined - 1];
    at = (kl_ptx_place){.file = i->file, .src_line = i->line, .inlined = i->inlined};
  }
}

void kl_calls_put(kl_sb *b, const kl_ptx_module *m, const kl_calls *c) {
  for (uint32_t k = 0; k < c->n; k++) {
    kl_ptx_place at = c->of[k].instr->at;
    kl_sbf(b, "%s called in line %u of %.*s", k ? "," : ";", at.line, KL_FMT(c->of[k].func->name));
    if (at.src_line) {
      kl_sb_puts(b, " (");
      kl_source_put(b, m, at);
      kl_sb_puts(b, ")");
    }
    if (c->of[k].times > 1) kl_sbf(b, " %u times over", c->of[k].times);
  }
  if (c->more) kl_sbf(b, ", and %u more call%s", c->more, c->more == 1 ? "" : "s");
}
