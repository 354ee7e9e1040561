// Arguments of a kernel that may be the same memory: what is asked for before its plan is made, and what has become of
// it.
#include "jit/aliases.h"

// The argument that writes a slot, after those of this kernel are noted; its number of arguments if none does.
static uint32_t writer_of(const kl_kernel_unit *u, const uint32_t *writes, uint32_t slot) {
  uint32_t a = writes[slot];
  bool does = a < u->narguments && u->arguments[a].output && u->arguments[a].kind == KILN_ARGUMENT_SLOT &&
              u->arguments[a].slot == slot;
  return does ? a : u->narguments;
}

// The pair of memory that argument i reads, if this kernel is to write to its other end: *writer, an argument.
static kl_alias_pair *pair_of(const kl_aliasing *x, const kl_kernel_unit *u, uint32_t i, uint32_t *writer) {
  const kiln_argument *a = &u->arguments[i];
  if (a->kind != KILN_ARGUMENT_SLOT || a->output) return NULL;
  kl_alias_pair *pair = kl_alias_of(x->kernels, a->slot);
  if (!pair || pair->parameter != a->slot) return NULL;
  *writer = writer_of(u, x->writes, pair->result);
  return pair;
}

// Is argument i passed itself?
static bool is_value(const kl_aliasing *x, const kl_kernel_unit *u, uint32_t i) {
  const kl_shape *s = u->shapes[i];
  bool takes = x->params->scalars_by_value && x->machine == KL_NVPTX && !u->arguments[i].output;
  return takes && s->rank == 0 && (kl_is_int(s->dtype) || s->dtype == KILN_PRED);
}

// May argument i be written over, if it is a parameter, or instead of one, if it is a result, though nobody has asked?
// No other argument is it, nor is it looked at by kernels behind. times: by slot, among the arguments.
static bool is_lent(const kl_aliasing *x, const kl_kernel_unit *u, uint32_t i, const uint32_t *times) {
  const kl_kernels *k = x->kernels;
  const kiln_argument *a = &u->arguments[i];
  if (a->kind != KILN_ARGUMENT_SLOT || k->pair_of[a->slot] || x->params->max_count) return false;
  if (k->rewritten[a->slot]) return false;
  if (a->output) return true;
  if (k->slots[a->slot].result || is_value(x, u, i) || times[a->slot] > 1) return false;
  return k->last_reader[a->slot] == (uint32_t)(u - k->units) + 1;
}

static bool is_spare_of(const kl_kernels *k, size_t i, uint32_t unit) {
  return i < k->spares.n && k->spares.p[i].unit == unit;
}

// Of a kernel, or where it would be.
static size_t first_spare(const kl_kernels *k, uint32_t unit) {
  size_t low = 0, high = k->spares.n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (k->spares.p[middle].unit < unit)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// What of the state of a loop the kernel may write over what it reads of it.
static void bind_spares(kl_kernels *k, kl_kernel_unit *u, const kl_plan *p) {
  uint32_t number = (uint32_t)(u - k->units);
  for (size_t s = first_spare(k, number); is_spare_of(k, s, number); s++) {
    const kl_spare *x = &k->spares.p[s];
    bool fine = p->slots[x->in].alias == x->out;
    u->in_place |= fine;
    k->units[x->copy].idle = fine;
    if (fine)
      k->buffers.p[x->beside].bytes = 0;
    else
      u->arguments[x->out] = (kiln_argument){.kind = KILN_ARGUMENT_SCRATCH, .offset = x->beside, .output = true};
  }
}

void kl_ask_for_aliases(const kl_aliasing *x, const kl_kernel_unit *u, kl_arena *scratch, kl_plan_params *pp) {
  uint32_t *partner = KL_NEW_N(scratch, uint32_t, u->narguments + 1), writer;
  bool *must = KL_NEW_N(scratch, bool, u->narguments + 1);
  bool *lent = KL_NEW_N(scratch, bool, u->narguments + 1);
  uint32_t *times = KL_NEW_N(scratch, uint32_t, x->kernels->nslots + 1);
  for (uint32_t i = 0; i < u->narguments; i++) {
    if (u->arguments[i].kind != KILN_ARGUMENT_SLOT) continue;
    if (u->arguments[i].output) x->writes[u->arguments[i].slot] = i;
    times[u->arguments[i].slot]++;
  }
  for (uint32_t i = 0; i < u->narguments; i++) {
    kl_alias_pair *pair = pair_of(x, u, i, &writer);
    partner[i] = pair && writer < u->narguments && !is_value(x, u, i) ? writer : KL_NONE;
    must[i] = partner[i] != KL_NONE && pair->must;
    lent[i] = is_lent(x, u, i, times);
  }
  uint32_t number = (uint32_t)(u - x->kernels->units);
  for (size_t s = first_spare(x->kernels, number); is_spare_of(x->kernels, s, number); s++)
    partner[x->kernels->spares.p[s].in] = x->kernels->spares.p[s].out;
  pp->partner = partner;
  pp->must = must;
  pp->lent = lent;
}

// And what has become of it.
static kiln_status bind_aliases(kl_ctx *cx, const kl_aliasing *x, const kl_kernel_unit *u, const kl_plan *p) {
  kl_kernels *k = x->kernels;
  for (uint32_t i = 0, writer; i < u->narguments; i++) {
    kl_alias_pair *pair = pair_of(x, u, i, &writer);
    uint32_t with = p->slots[i].alias;
    if (u->arguments[i].kind != KILN_ARGUMENT_SLOT) continue;
    if (pair && k->slots[pair->parameter].by_value)
      KL_TRY(kl_alias_fails(cx, k, pair, "the parameter is passed by value"));
    else if (pair && writer < u->narguments && with != writer)
      KL_TRY(kl_alias_fails(cx, k, pair, "threads read elements that others overwrite"));
    else if (!pair && p->slots[i].kind == KL_SLOT_IN && with != KL_NONE && !k->slots[u->arguments[i].slot].result)
      kl_add_alias(k, u->arguments[i].slot, u->arguments[with].slot);
  }
  return KILN_OK;
}

kiln_status kl_bind_slots(kl_ctx *cx, const kl_aliasing *x, kl_kernel_unit *u, kl_plan *p) {
  bind_spares(x->kernels, u, p);
  for (uint32_t i = 0; i < u->narguments; i++) {
    const kiln_argument *a = &u->arguments[i];
    if (a->kind != KILN_ARGUMENT_SLOT || a->output) continue;
    kiln_slot *slot = &x->kernels->slots[a->slot];
    if (x->params->scalars_by_value && !slot->result && kl_plan_by_value(p, i)) slot->by_value = true;
  }
  return bind_aliases(cx, x, u, p);
}

void kl_declare_aliases(kl_kernels *k) {
  for (uint32_t i = 0; i < k->npairs; i++) {
    if (k->pairs[i].dropped) continue;
    k->slots[k->pairs[i].parameter].alias = k->pairs[i].result;
    k->slots[k->pairs[i].result].alias = k->pairs[i].parameter;
    k->slots[k->pairs[i].parameter].donated = k->slots[k->pairs[i].result].donated = k->pairs[i].asked;
  }
}
