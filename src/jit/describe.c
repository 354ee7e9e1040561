// What a manifest tells beside sizes and launches: where it comes from, what needs it, and its slots by name and
// layout.

#include "jit/cuda/cuda.h"
#include "jit/kernels.h"

// --- slots ----------------------------------------------------------------------------------------------------------

typedef struct describer {
  kl_arena *arena;
  kiln_slot *slot;              // the next one
  const kl_shape *const *shape; // of its buffer
  kl_sb name;                   // of what the walk is in, "p{1,0" inside a tuple
} describer;

static const char *keep(describer *d, kl_sb *b) {
  return kl_str_dup(d->arena, (kl_str){b->p, b->n}).p;
}

static void describe_slot(describer *d, bool inside) {
  kiln_slot *slot = d->slot++;
  const kl_shape *s = *d->shape++;
  size_t n = d->name.n;
  if (inside) kl_sb_putc(&d->name, '}');
  slot->name = keep(d, &d->name);
  d->name.n = n;
  slot->layout = "";
  if (!kl_shape_is_array(s)) return; // a token
  kl_sb text;
  kl_sb_init(&text, d->name.cx);
  kl_layout_print(&text, s);
  slot->layout = keep(d, &text);
  kl_sb_free(&text);
  for (uint32_t i = 0; i < s->rank; i++) slot->minor_to_major[i] = (uint8_t)kl_shape_minor_to_major(s, i);
}

static void describe_leaves(describer *d, const kl_shape *s, bool inside) {
  if (s->dtype != KILN_TUPLE) {
    describe_slot(d, inside);
    return;
  }
  size_t n = d->name.n;
  for (uint32_t i = 0; i < s->nelems; i++) {
    kl_sb_putc(&d->name, inside ? ',' : '{');
    kl_sb_u64(&d->name, i);
    describe_leaves(d, s->elems[i], true);
    d->name.n = n;
  }
}

// A tuple that is made in sight gives its operands' names.
static void describe_value(describer *d, const kl_kernels *k, const kl_instr *in) {
  if (in->op == KL_OP_TUPLE) {
    for (uint32_t i = 0; i < in->noperands; i++) describe_value(d, k, kl_operand(k->entry, in, i));
    return;
  }
  d->name.n = 0;
  kl_sb_put(&d->name, kl_symbol_text(&k->m->names, in->name));
  describe_leaves(d, in->shape, false);
}

void kl_describe_slots(kl_ctx *cx, kl_kernels *k) {
  describer d = {.arena = k->arena, .slot = k->slots, .shape = k->shapes};
  kl_sb_init(&d.name, cx);
  for (uint32_t i = 0; i < k->entry->nparams; i++) describe_value(&d, k, &k->entry->instr[k->entry->params[i]]);
  describe_value(&d, k, kl_root(k->entry));
  kl_sb_free(&d.name);
}

// --- the whole ------------------------------------------------------------------------------------------------------

kiln_status kl_describe_origin(kl_ctx *cx, const kl_kernels *k, const kiln_module *m, const char *fusion,
                               kiln_manifest *f) {
  f->kiln_version = kiln_version();
  f->module = kl_str_dup(k->arena, kl_symbol_text(&m->names, m->name)).p;
  f->fusion = fusion ? kl_str_dup(k->arena, kl_str_of(fusion)).p : NULL;
  return kiln_module_hash(cx, m, f->hash);
}

void kl_describe_code(kiln_manifest *f, uint32_t ptx) {
  f->ptx_version = ptx;
  f->driver_version = ptx ? kl_cuda_driver_for_ptx((int)ptx) : 0;
}

void kl_copy_description(kl_arena *arena, kiln_manifest *f, kiln_slot *slots, size_t n) {
  f->target = kl_str_dup(arena, kl_str_of(f->target)).p;
  f->module = kl_str_dup(arena, kl_str_of(f->module)).p;
  f->fusion = f->fusion ? kl_str_dup(arena, kl_str_of(f->fusion)).p : NULL;
  for (size_t i = 0; i < n; i++) {
    slots[i].name = kl_str_dup(arena, kl_str_of(slots[i].name)).p;
    slots[i].layout = kl_str_dup(arena, kl_str_of(slots[i].layout)).p;
  }
}
