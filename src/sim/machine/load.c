// Modules in memory, and kernels made ready.

#include "sim/decode/decode.h"
#include "sim/isa/needs.h"

// --- variables ----------------------------------------------------------------------------------------------------

static uint64_t symbol_address(const kl_loaded *l, const kl_ptx_reloc *r) {
  uint32_t alias = r->function ? l->ptx->funcs[r->symbol].alias : 0, function = alias ? alias - 1 : r->symbol;
  uint64_t at = r->function ? KL_CODE_WINDOW + (uint64_t)(function + 1) * KL_FUNCTION_STEP : l->address[r->symbol];
  return (at + (uint64_t)r->offset) >> (8 * r->byte);
}

static void initialise(kl_loaded *l, uint32_t k) {
  const kl_ptx_var *v = &l->ptx->vars[k];
  char *host = kl_memory_at(l->memory, l->address[k], v->bytes);
  if (v->init) memcpy(host, v->init, v->bytes);
  for (size_t n = 0; n < v->nrelocs; n++) {
    uint64_t address = symbol_address(l, &v->relocs[n]);
    memcpy(host + v->relocs[n].at, &address, v->relocs[n].bytes);
  }
}

static bool in_memory(const kl_ptx_var *v) {
  return v->space == KL_PTX_GLOBAL || v->space == KL_PTX_CONST;
}

static kiln_status place_variables(kl_loaded *l) {
  l->address = KL_NEW_N(&l->arena, uint64_t, l->ptx->nvars);
  for (uint32_t k = 0; k < l->ptx->nvars; k++) {
    const kl_ptx_var *v = &l->ptx->vars[k];
    if (!in_memory(v)) continue;
    if (v->bytes == 0)
      return kl_unsupported(l->cx, kl_ptx_span(l->ptx, v->at), "%.*s is declared, but defined in no module",
                            KL_FMT(v->name));
    if (kl_memory_alloc(l->memory, v->bytes, v->space == KL_PTX_CONST ? KL_REGION_CONST : KL_REGION_VARIABLE, v->name,
                        &l->address[k]))
      return kl_out_of_memory(l->cx, v->bytes, "a variable");
  }
  for (uint32_t k = 0; k < l->ptx->nvars; k++)
    if (in_memory(&l->ptx->vars[k])) initialise(l, k);
  return KILN_OK;
}

// --- what the module may use ----------------------------------------------------------------------------------------

static void lacks(const kl_loaded *l, const kl_ptx_func *f, const kl_ptx_instr *i, const kl_need *n) {
  kl_sb instr;
  kl_sb_init(&instr, l->cx);
  kl_ptx_put_instr(&instr, l->ptx, f, i);
  kl_fail(l->cx, KILN_E_INVALID, kl_ptx_span(l->ptx, i->at),
          "%s: expected PTX %u.%u or later for %s, found %u.%u for %.*s: %s", n->what, n->version / 10, n->version % 10,
          kl_need_targets(n), l->ptx->version / 10, l->ptx->version % 10, KL_FMT(l->ptx->target), instr.p);
  kl_sb_free(&instr);
}

// So many are enough to see what is wrong.
enum { MOST_LACKING = 100 };

static kiln_status check_needs(const kl_loaded *l) {
  uint32_t found = 0;
  for (uint32_t k = 0; k < l->ptx->nfuncs; k++) {
    const kl_ptx_func *f = &l->ptx->funcs[k];
    for (uint32_t n = 0; n < f->ninstrs && found < MOST_LACKING; n++) {
      const kl_need *need = kl_isa_lacking(l->ptx, &f->instrs[n]);
      if (!need) continue;
      lacks(l, f, &f->instrs[n], need);
      found++;
    }
  }
  return found ? KILN_E_INVALID : KILN_OK;
}

kiln_status kl_load(kl_ctx *cx, kl_memory *m, const char *name, kl_str ptx, kl_loaded **out) {
  *out = NULL;
  kl_ptx_module *module = NULL;
  KL_TRY(kl_ptx_parse(cx, name, ptx, &module));
  kl_loaded *l = kl_alloc(cx, sizeof *l);
  l->cx = cx;
  l->memory = m;
  l->ptx = module;
  kl_arena_init(&l->arena, cx);
  kiln_status s = check_needs(l);
  if (!s) s = place_variables(l);
  if (s) {
    kl_unload(cx, l);
    return s;
  }
  *out = l;
  return KILN_OK;
}

void kl_unload(kl_ctx *cx, kl_loaded *l) {
  if (!l) return;
  for (uint32_t k = 0; l->address && k < l->ptx->nvars; k++)
    if (l->address[k]) kl_memory_release(l->memory, l->address[k]);
  kl_ptx_free(cx, l->ptx);
  kl_arena_free(&l->arena);
  kl_free(cx, l, sizeof *l);
}

const kl_ptx_module *kl_loaded_ptx(const kl_loaded *l) {
  return l->ptx;
}

bool kl_loaded_variable(const kl_loaded *l, kl_str name, uint64_t *address, uint64_t *bytes) {
  for (uint32_t k = 0; k < l->ptx->nvars; k++)
    if (in_memory(&l->ptx->vars[k]) && kl_str_eq(l->ptx->vars[k].name, name)) {
      *address = l->address[k];
      *bytes = l->ptx->vars[k].bytes;
      return true;
    }
  return false;
}

// --- kernels ------------------------------------------------------------------------------------------------------

// A driver gives a kernel so many bytes of parameters at most; a window of shared memory has so many.
enum { MOST_PARAMS = 32764 };

// Places a variable behind others, `*end` bytes of at most `most`.
static kiln_status place_behind(kl_kernel *k, const kl_ptx_var *v, uint32_t *end, uint64_t most, uint32_t *at) {
  uint64_t align = v->align ? v->align : 1, here = (*end + align - 1) / align * align;
  if (here > most || v->bytes > most - here)
    return kl_unsupported(k->of->cx, kl_ptx_span(k->of->ptx, v->at),
                          "%.*s does not fit: the most are %llu bytes in all", KL_FMT(v->name),
                          (unsigned long long)most);
  *at = (uint32_t)here;
  *end = (uint32_t)(here + v->bytes);
  return KILN_OK;
}

static bool is_shared(const kl_ptx_var *v, bool sized) {
  return v->space == KL_PTX_SHARED && (v->bytes != 0) == sized;
}

// Variables in shared memory, one after the other: those of the module that the kernel uses, then those of functions.
static kiln_status place_shared(kl_kernel *k, const bool *used) {
  const kl_ptx_module *m = k->of->ptx;
  k->shared = KL_NEW_N(&k->of->arena, uint32_t, m->nvars);
  for (uint32_t n = 0; n < m->nvars; n++)
    if (used[n] && is_shared(&m->vars[n], true))
      KL_TRY(place_behind(k, &m->vars[n], &k->shared_bytes, KL_SHARED_RANK, &k->shared[n]));
  return KILN_OK;
}

static kiln_status place_shared_of(kl_kernel *k, uint32_t function) {
  const kl_ptx_func *f = &k->of->ptx->funcs[function];
  uint32_t *at = k->shared_of[function] = KL_NEW_N(&k->of->arena, uint32_t, f->nvars + 1);
  for (uint32_t n = 0; n < f->nvars; n++)
    if (f->vars[n].space == KL_PTX_SHARED)
      KL_TRY(place_behind(k, &f->vars[n], &k->shared_bytes, KL_SHARED_RANK, &at[n]));
  return KILN_OK;
}

// Those without a size, which only modules have, begin where the dynamic part does, aligned for all of them.
static void place_dynamic(kl_kernel *k, const bool *used) {
  const kl_ptx_module *m = k->of->ptx;
  uint64_t align = 1;
  for (uint32_t n = 0; n < m->nvars; n++)
    if (used[n] && is_shared(&m->vars[n], false) && m->vars[n].align > align) align = m->vars[n].align;
  k->shared_bytes = (uint32_t)((k->shared_bytes + align - 1) / align * align);
  for (uint32_t n = 0; n < m->nvars; n++)
    if (is_shared(&m->vars[n], false)) k->shared[n] = k->shared_bytes;
}

static kiln_status place_params(kl_kernel *k) {
  uint32_t *at = KL_NEW_N(&k->of->arena, uint32_t, k->func->nparams);
  k->param_at = at;
  for (uint32_t n = 0; n < k->func->nparams; n++)
    KL_TRY(place_behind(k, &k->func->vars[k->func->nreturns + n], &k->param_bytes, MOST_PARAMS, &at[n]));
  return KILN_OK;
}

// --- which functions a kernel reaches -----------------------------------------------------------------------------

typedef struct reach {
  kl_kernel *k;
  bool *reached, *used; // by function; by variable of the module
  VEC(uint32_t) todo;
} reach;

static void reach_function(reach *r, uint32_t function) {
  uint32_t alias = r->k->of->ptx->funcs[function].alias;
  if (alias) function = alias - 1;
  if (r->reached[function]) return;
  r->reached[function] = true;
  VEC_PUSH(r->k->of->cx, &r->todo, function);
}

static void reach_operand(reach *r, const kl_ptx_operand *o) {
  if (o->kind == KL_PTX_FUNCTION) reach_function(r, o->index);
  if (o->kind == KL_PTX_VAR) r->used[o->index] = true;
  if (o->kind == KL_PTX_SPECIAL && o->text.n > 14 && memcmp(o->text.p, "%reserved_smem", 14) == 0)
    r->k->shared_bytes = KL_RESERVED_SHARED;
  for (uint32_t n = 0; n < o->nitems; n++) reach_operand(r, &o->items[n]);
}

// By calls and by addresses that are taken, in instructions and in initial values of variables.
static void reach_all(reach *r, uint32_t entry) {
  const kl_ptx_module *m = r->k->of->ptx;
  reach_function(r, entry);
  for (uint32_t n = 0; n < m->nvars; n++)
    for (size_t k = 0; k < m->vars[n].nrelocs; k++)
      if (m->vars[n].relocs[k].function) reach_function(r, m->vars[n].relocs[k].symbol);
  while (r->todo.n) {
    const kl_ptx_func *f = &m->funcs[r->todo.p[--r->todo.n]];
    for (uint32_t n = 0; n < f->ninstrs; n++)
      for (uint32_t k = 0; k < f->instrs[n].noperands; k++) reach_operand(r, &f->instrs[n].operands[k]);
    for (uint32_t n = 0; n < f->ntables; n++)
      for (uint32_t k = 0; f->tables[n].kind == KL_PTX_CALLTARGETS && k < f->tables[n].n; k++)
        reach_function(r, f->tables[n].targets[k]);
  }
  VEC_FREE(r->k->of->cx, &r->todo);
}

static bool is_decoded(const kl_ptx_func *f, bool is_entry) {
  return f->defined && (is_entry || !f->entry);
}

static kiln_status decode_functions(kl_ctx *cx, kl_isa_index *isa, kl_kernel *k, uint32_t entry) {
  for (uint32_t n = 0; n < k->of->ptx->nfuncs; n++) {
    kl_code *code = NULL;
    if (!k->shared_of[n]) continue;
    KL_TRY(kl_decode_function(cx, isa, k, n, &code));
    k->codes[n] = code;
    if (n == entry) k->entry = code;
    k->has_stack |= n != entry || code->stack_bytes > 0;
  }
  return KILN_OK;
}

static kiln_status decode_all(kl_ctx *cx, kl_kernel *k, uint32_t entry) {
  const kl_ptx_module *m = k->of->ptx;
  reach r = {
      .k = k, .reached = KL_NEW_N(&k->of->arena, bool, m->nfuncs), .used = KL_NEW_N(&k->of->arena, bool, m->nvars)};
  reach_all(&r, entry);
  k->used = r.used;
  k->codes = KL_NEW_N(&k->of->arena, const kl_code *, m->nfuncs);
  k->shared_of = KL_NEW_N(&k->of->arena, uint32_t *, m->nfuncs);
  KL_TRY(place_shared(k, r.used));
  for (uint32_t n = 0; n < m->nfuncs; n++)
    if (r.reached[n] && is_decoded(&m->funcs[n], n == entry)) KL_TRY(place_shared_of(k, n));
  place_dynamic(k, r.used);
  kl_isa_index *isa = kl_isa_index_new(cx);
  kiln_status status = decode_functions(cx, isa, k, entry);
  kl_isa_index_free(isa);
  return status;
}

kiln_status kl_kernel_prepare(kl_ctx *cx, kl_loaded *l, kl_str entry, kl_kernel **out) {
  *out = NULL;
  for (kl_kernel *k = l->kernels; k; k = k->next)
    if (kl_str_eq(k->func->name, entry)) {
      *out = k;
      return KILN_OK;
    }
  for (uint32_t n = 0; n < l->ptx->nfuncs; n++) {
    const kl_ptx_func *f = &l->ptx->funcs[n];
    if (!f->entry || !f->defined || !kl_str_eq(f->name, entry)) continue;
    kl_kernel *k = KL_NEW(&l->arena, kl_kernel);
    k->of = l;
    k->func = f;
    KL_TRY(place_params(k));
    KL_TRY(decode_all(cx, k, n));
    k->local_bytes = k->entry->stack_bytes;
    k->next = l->kernels;
    l->kernels = k;
    *out = k;
    return KILN_OK;
  }
  return kl_fail(cx, KILN_E_INVALID, KL_NOWHERE, "the module has no kernel %.*s", KL_FMT(entry));
}

const kl_loaded *kl_kernel_module(const kl_kernel *k) {
  return k->of;
}

void kl_kernel_param(const kl_kernel *k, uint32_t i, uint32_t *at, uint32_t *bytes) {
  *at = k->param_at[i];
  *bytes = (uint32_t)k->func->vars[k->func->nreturns + i].bytes;
}

kl_kernel_facts kl_kernel_describe(const kl_kernel *k) {
  const kl_ptx_tuning *t = &k->func->tuning;
  const uint32_t *most = t->reqntid[0] ? t->reqntid : t->maxntid;
  uint64_t threads = most[0] ? (uint64_t)most[0] * (most[1] ? most[1] : 1) * (most[2] ? most[2] : 1) : 0;
  return (kl_kernel_facts){.name = k->func->name,
                           .params = k->func->nparams,
                           .param_bytes = k->param_bytes,
                           .shared_bytes = k->shared_bytes,
                           .local_bytes = k->local_bytes,
                           .registers = k->entry->frame_bytes / (4 * KL_LANES),
                           .max_threads = (uint32_t)threads,
                           .func = k->func};
}
