// Memory that is nobody's: what accesses take off their guards, where no element of the slot is the thread's own.

#include "lower/emit/emit.h"

// Bytes from an access' first on, whatever it is aligned to.
static int64_t reach(const kl_plan *p, const kl_access *a) {
  return (a->stride * (a->vec - 1) + 1) * kl_info(p->slots[a->slot].shape->dtype)->bits / 8 + 1;
}

static int64_t bytes_of_nothing(const kl_emit *e, const kl_body *b) {
  const kl_plan *p = e->plan;
  int64_t most = 0;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_access *a = &b->steps[i].access;
    if (b->steps[i].kind != KL_STEP_LOAD || a->guard == KL_NONE) continue;
    if (p->slots[a->slot].alias == KL_NONE && (!e->others || p->slots[a->slot].kind == KL_SLOT_SHARED)) continue;
    if (reach(p, a) > most) most = reach(p, a);
  }
  return most;
}

void kl_make_nothing(kl_emit *e, const char *name) {
  const kl_plan *p = e->plan;
  int64_t bytes = 0;
  for (uint32_t i = 0; i < p->nparts; i++) {
    const kl_body *bodies[2] = {&p->parts[i].main, &p->parts[i].tail};
    for (int k = 0; k < 2; k++) {
      int64_t n = bytes_of_nothing(e, bodies[k]);
      if (n > bytes) bytes = n;
    }
  }
  if (!bytes) return;
  unsigned space = e->k.machine == KB_NVPTX ? 1 : 0;
  LLVMTypeRef type = LLVMArrayType2(kb_type(&e->k, KB_I8, 1), (uint64_t)bytes);
  LLVMValueRef g = LLVMAddGlobalInAddressSpace(e->k.module, type, kl_strf(e->arena, "%s_nothing", name), space);
  LLVMSetInitializer(g, LLVMConstNull(type));
  LLVMSetLinkage(g, LLVMInternalLinkage);
  LLVMSetAlignment(g, 16);
  e->nothing = (kb_reg){g, KB_PTR, 1};
}
