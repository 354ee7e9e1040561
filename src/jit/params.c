// Parameters of compilation as bytes and as copies.

#include "jit/params.h"

#include "ir/sparse/handle/layout.h"
#include <kiln/cuda.h>

// Whoever adds a field describes it here.
_Static_assert(sizeof(kiln_compile_params) == 152 && sizeof(kiln_device_info) == 200 && sizeof(kiln_sparse_slot) == 40,
               "these are all parameters of compilation");

// Entries of a list that is written or read; NULL: none.
static void *list(kl_archive *a, const void *given, size_t *n, size_t item) {
  kl_ar_length(a, n);
  return a->writing ? (void *)given : kl_ar_room(a, *n, item);
}

static void device(kl_archive *a, kiln_device_info *d) {
  for (size_t i = 0; i < sizeof d->name; i++) KL_NUMBER(a, d->name[i]);
  for (size_t i = 0; i < sizeof d->target; i++) KL_NUMBER(a, d->target[i]);
  KL_NUMBER(a, d->sm);
  KL_NUMBER(a, d->multiprocessors);
  KL_NUMBER(a, d->threads);
  KL_NUMBER(a, d->registers);
  KL_NUMBER(a, d->shared_bytes);
  KL_NUMBER(a, d->block_shared);
  KL_NUMBER(a, d->block_shared_optin);
  KL_NUMBER(a, d->l2_bytes);
  KL_NUMBER(a, d->memory_bytes);
  KL_NUMBER(a, d->bytes_per_second);
  if (d->name[sizeof d->name - 1] || d->target[sizeof d->target - 1]) kl_ar_refuse(a, "a device's name has no end");
}

static void optional_device(kl_archive *a, const kiln_device_info **d) {
  bool there = *d != NULL;
  KL_FLAG(a, there);
  if (!a->writing) {
    kiln_device_info *own = there ? kl_ar_room(a, 1, sizeof *own) : NULL;
    if (own) own->struct_size = sizeof *own;
    *d = own;
  }
  if (*d) device(a, (kiln_device_info *)*d);
}

// counts: how many a slot's list has, where there is one.
static void sparse_slot(kl_archive *a, kiln_sparse_slot *s, size_t counts) {
  bool there = s->counts != NULL;
  KL_FLAG(a, s->result);
  KL_NUMBER(a, s->leaf);
  KL_FLAG(a, s->shares);
  KL_NUMBER(a, s->with);
  KL_FLAG(a, there);
  if (!there || a->bad) return;
  int64_t *own = list(a, s->counts, &counts, sizeof *own);
  s->counts = own;
  for (size_t i = 0; i < counts && !a->bad; i++) KL_NUMBER(a, own[i]);
}

static void params(kl_archive *a, kiln_compile_params *p, const size_t *counts) {
  kl_ar_string(a, &p->target);
  kl_ar_string(a, &p->fusion);
  KL_NUMBER(a, p->argument_align);
  KL_NUMBER(a, p->keep);
  kiln_alias *aliases = list(a, p->aliases, &p->alias_count, sizeof *aliases);
  p->aliases = aliases;
  for (size_t i = 0; i < p->alias_count && !a->bad; i++) {
    KL_NUMBER(a, aliases[i].parameter);
    KL_NUMBER(a, aliases[i].result);
  }
  KL_FLAG(a, p->scalars_by_value);
  KL_NUMBER(a, p->max_count);
  KL_FLAG(a, p->programmatic);
  optional_device(a, &p->device);
  KL_NUMBER(a, p->numerics);
  KL_FLAG(a, p->lineinfo);
  KL_FLAG(a, p->deterministic);
  kiln_sparse_slot *slots = list(a, p->sparse_slots, &p->sparse_slot_count, sizeof *slots);
  p->sparse_slots = slots;
  for (size_t i = 0; i < p->sparse_slot_count && !a->bad; i++) sparse_slot(a, &slots[i], counts ? counts[i] : 0);
  KL_NUMBER(a, p->least_align);
  KL_FLAG(a, p->separate_launches);
}

// --- what is wrong in any module
// ---------------------------------------------------------------------------------------

kiln_status kl_params_check(kl_ctx *cx, const kiln_compile_params *p) {
  uint32_t al = p->argument_align;
  if (al && (al & (al - 1) || al > 4096))
    return kl_invalid(cx, KL_NOWHERE, "argument_align is %u: expected a power of two up to 4096", al);
  uint32_t least = p->least_align, most = al ? al : 16;
  if (least && (least & (least - 1) || least >= most))
    return kl_invalid(cx, KL_NOWHERE, "least_align is %u: expected a power of two below argument_align, %u", least,
                      most);
  if (p->alias_count && !p->aliases)
    return kl_invalid(cx, KL_NOWHERE, "aliases: expected %zu of them, found NULL", p->alias_count);
  if (p->sparse_slot_count && !p->sparse_slots)
    return kl_invalid(cx, KL_NOWHERE, "sparse_slots: expected %zu of them, found NULL", p->sparse_slot_count);
  if ((unsigned)p->numerics > KILN_NUMERICS_FAST)
    return kl_invalid(cx, KL_NOWHERE, "numerics is %d: expected strict (0) or fast (1)", (int)p->numerics);
  if (p->max_count < 0)
    return kl_invalid(cx, KL_NOWHERE, "max_count is %lld: expected 0 or more", (long long)p->max_count);
  return KILN_OK;
}

// --- how many counts there are --------------------------------------------------------------------------------------

// What names no leaf with an encoding has none; compiling says so.
static kiln_status count_arrays(kl_ctx *cx, const kiln_module *m, const kiln_sparse_slot *s, size_t *out) {
  const kl_interface *io = &m->interface;
  kiln_sparse_layout *l = NULL;
  *out = 0;
  if (!s->counts || s->leaf >= (s->result ? io->nresults : io->nparams)) return KILN_OK;
  const kl_shape *shape = io->shapes[s->leaf + (s->result ? io->nparams : 0)];
  if (!shape->layout.sparse) return KILN_OK;
  KL_TRY(kl_sparse_layout_of(cx, shape, &l));
  *out = kiln_sparse_layout_buffer_count(l);
  kiln_sparse_layout_destroy(&l);
  return KILN_OK;
}

static kiln_status count_all(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *p, size_t *counts) {
  kiln_module *part = NULL;
  if (p->fusion) KL_TRY(kiln_module_extract(cx, m, p->fusion, &part));
  kiln_status st = KILN_OK;
  for (size_t i = 0; i < p->sparse_slot_count && st == KILN_OK; i++)
    st = count_arrays(cx, part ? part : m, &p->sparse_slots[i], &counts[i]);
  kiln_module_destroy(&part);
  return st;
}

// --- the two ways ---------------------------------------------------------------------------------------------------

kiln_status kl_params_write(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *p, kl_sb *out) {
  kl_archive w = {.writing = true, .out = out};
  kiln_compile_params own = *p;
  kiln_device_info of_own;
  if (p->device) KL_TRY(KL_PARAMS_IN(cx, kiln_device_info, p->device, &of_own));
  if (p->device) own.device = &of_own;
  size_t bytes = p->sparse_slot_count * sizeof(size_t), *counts = p->sparse_slot_count ? kl_alloc(cx, bytes) : NULL;
  kiln_status st = counts ? count_all(cx, m, p, counts) : KILN_OK;
  if (st == KILN_OK) params(&w, &own, counts);
  if (counts) kl_free(cx, counts, bytes);
  return st;
}

void kl_params_read(kl_archive *a, kiln_compile_params *p) {
  *p = (kiln_compile_params){.struct_size = sizeof *p};
  params(a, p, NULL);
}

kiln_status kl_params_copy(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *p, kl_arena *arena,
                           kiln_compile_params *out) {
  kl_sb b;
  kl_sb_init(&b, cx);
  kiln_status st = kl_params_write(cx, m, p, &b);
  kl_archive r = {.p = (const uint8_t *)b.p, .end = (const uint8_t *)b.p + b.n, .arena = arena};
  if (st == KILN_OK) kl_params_read(&r, out);
  if (st == KILN_OK && r.bad) st = kl_out_of_memory(cx, b.n, "parameters of compilation");
  out->after_pass = p->after_pass;
  out->user = p->user;
  out->isolate = p->isolate;
  out->time_limit = p->time_limit;
  out->threads = p->threads;
  if (p->worker) out->worker = kl_arena_dup(arena, p->worker, strlen(p->worker) + 1);
  kl_sb_free(&b);
  return st;
}
