// Where bits without a value come from: a number beside each register's lane and each word of memory that lacks some,
// kept only there. What an op computes from several comes from the first of its sources that lacks bits.

#include "sim/check/values/values.h"

#include <stdlib.h>

// --- numbers --------------------------------------------------------------------------------------------------------

// Loads from more places than this count by their instruction alone.
enum { MOST_PLACES = 1 << 16 };

// What makes two origins the same; `where` 0 for all but memory.
typedef struct key {
  const kl_ptx_instr *instr;
  uint64_t at; // register, or address
  uint32_t kind, where;
} key;

static key key_of(const kl_origin *o) {
  bool memory = o->kind == KL_ORIGIN_MEMORY && o->spot.bytes;
  return (key){o->instr, memory ? o->spot.address : o->reg, o->kind, memory ? o->spot.space + 1u : 0};
}

static uint32_t *slot(values *v, const key *k) {
  uint32_t at = (uint32_t)kl_hash(k, sizeof *k, 0);
  for (;; at++) {
    uint32_t *s = &v->origin_slots[at & (v->norigin_slots - 1)];
    if (!*s) return s;
    key own = key_of(&v->origins.p[*s - 1]);
    if (memcmp(&own, k, sizeof own) == 0) return s;
  }
}

static void grow(values *v) {
  uint32_t had = v->norigin_slots;
  uint32_t *old = v->origin_slots;
  v->norigin_slots = had ? had * 2 : 256;
  v->origin_slots = kl_alloc(v->checks->cx, v->norigin_slots * sizeof *v->origin_slots);
  for (uint32_t n = 0; n < v->origins.n; n++) {
    key k = key_of(&v->origins.p[n]);
    *slot(v, &k) = n + 1;
  }
  if (old) kl_free(v->checks->cx, old, had * sizeof *old);
}

static uint32_t number(values *v, const kl_origin *o) {
  key k = key_of(o);
  if (2 * v->origins.n >= v->norigin_slots) grow(v);
  uint32_t *s = slot(v, &k);
  if (*s) return *s;
  VEC_PUSH(v->checks->cx, &v->origins, *o);
  return *s = (uint32_t)v->origins.n;
}

kl_origin values_origin_of(const values *v, uint32_t n) {
  return n && n <= v->origins.n ? v->origins.p[n - 1] : (kl_origin){0};
}

static kl_origin at_op(const kl_frame *f, const kl_sim_op *o, kl_origin_kind kind) {
  const kl_ptx_func *func = f->code->func;
  return (kl_origin){.kind = (uint8_t)kind, .func = func, .instr = func->ninstrs ? &func->instrs[o->index] : NULL};
}

uint32_t values_lane_origin(values *v, const kl_frame *f, const kl_sim_op *o) {
  kl_origin new = at_op(f, o, KL_ORIGIN_LANE);
  return number(v, &new);
}

uint32_t values_copy_origin(values *v, const kl_frame *f, const kl_sim_op *o) {
  kl_origin new = at_op(f, o, KL_ORIGIN_COPY);
  return number(v, &new);
}

uint32_t values_copied_origin(values *v, const kl_warp *w, uint32_t copy, kl_where where, uint64_t address,
                              unsigned bytes) {
  kl_origin new = values_origin_of(v, copy);
  new.kind = KL_ORIGIN_MEMORY;
  if (v->origins.n < MOST_PLACES) new.spot = kl_spot_of(w, where, address, bytes);
  return number(v, &new);
}

uint32_t values_memory_origin(values *v, const kl_warp *w, const kl_sim_op *o, kl_where where, uint64_t address,
                              unsigned bytes) {
  kl_origin new = at_op(w->strand.frame, o, KL_ORIGIN_MEMORY);
  if (v->origins.n < MOST_PLACES) new.spot = kl_spot_of(w, where, address, bytes);
  return number(v, &new);
}

// --- registers ------------------------------------------------------------------------------------------------------

// The register of an instruction that lies at a place: places are shared, but not by those of one instruction.
static uint32_t named(const kl_code *code, const kl_ptx_operand *list, uint32_t n, kl_ref ref, int depth) {
  for (uint32_t k = 0; k < n; k++) {
    const kl_ptx_operand *o = &list[k];
    if (o->kind == KL_PTX_REG && code->reg_at[o->index] == ref) return o->index + 1;
    uint32_t in = depth && o->nitems ? named(code, o->items, o->nitems, ref, depth - 1) : 0;
    if (in) return in;
  }
  return 0;
}

static uint32_t register_at(const kl_code *code, const kl_ptx_instr *i, kl_ref ref) {
  if (!i || !code->reg_at) return 0;
  if (i->guard && code->reg_at[i->guard - 1] == ref) return i->guard;
  return named(code, i->operands, i->noperands, ref, 4);
}

static uint32_t *row_number(values *v, const kl_frame *f, kl_ref ref) {
  plan *p = &v->plans[f->code->function];
  if (!p->rows) p->rows = KL_NEW_N(&v->arena, uint32_t, f->code->frame_bytes / 4 + 2);
  return &p->rows[ref >> 2];
}

// The carry, which is no register.
static kl_ref carry_of(const kl_frame *f) {
  return f->code->frame_bytes;
}

static uint32_t get(values *v, const kl_frame *f, kl_ref ref, unsigned lane) {
  const origin_rows *r = f->shadow;
  uint32_t n = r ? *row_number(v, f, ref) : 0;
  return n && n <= r->n ? r->rows[n - 1][lane] : 0;
}

uint32_t values_origin(values *v, const kl_frame *f, const kl_sim_op *o, kl_ref ref, unsigned lane) {
  uint32_t n = get(v, f, ref, lane);
  if (n) return n;
  kl_origin new = at_op(f, o, KL_ORIGIN_REGISTER);
  new.reg = register_at(f->code, new.instr, ref);
  return number(v, &new);
}

// Frames are as many as a kernel calls deep: where there is no memory for their rows, origins are not known.
static origin_rows *new_rows(values *v, kl_frame *f) {
  origin_rows *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->next = v->all_rows;
  v->all_rows = r;
  f->shadow = r;
  return r;
}

static bool has_row(origin_rows *r, uint32_t n) {
  if (n <= r->room) return true;
  uint32_t had = r->room, room = n + 8;
  void *rows = realloc(r->rows, room * sizeof *r->rows);
  if (!rows) return false;
  r->rows = rows;
  r->room = room;
  memset(r->rows + had, 0, (room - had) * sizeof *r->rows);
  return true;
}

void values_set_origin(values *v, const kl_frame *f, kl_ref ref, unsigned lane, uint32_t origin) {
  uint32_t *n = row_number(v, f, ref);
  if (!*n) *n = ++v->plans[f->code->function].nrows;
  origin_rows *r = f->shadow ? f->shadow : new_rows(v, (kl_frame *)f);
  if (!r || !has_row(r, *n)) return;
  if (*n > r->n) r->n = *n;
  r->rows[*n - 1][lane] = origin;
}

void values_clear_origins(kl_frame *f) {
  origin_rows *r = f->shadow;
  if (!r || !r->n) return;
  memset(r->rows, 0, r->n * sizeof *r->rows);
  r->n = 0;
}

void values_free_origins(values *v) {
  kl_ctx *cx = v->checks->cx;
  while (v->all_rows) {
    origin_rows *r = v->all_rows;
    v->all_rows = r->next;
    free(r->rows);
    free(r);
  }
  if (v->origin_slots) kl_free(cx, v->origin_slots, v->norigin_slots * sizeof *v->origin_slots);
  VEC_FREE(cx, &v->origins);
}

// --- from sources to results ----------------------------------------------------------------------------------------

static bool lacks(const kl_frame *f, kl_ref ref, unsigned bits, unsigned lane) {
  if (!in_registers(ref) || !*flag_of(f, ref)) return false;
  if (bits == 128) {
    uint64_t u[2];
    memcpy(u, shadow_of(f, ref) + (size_t)lane * 16, 16);
    return (u[0] | u[1]) != 0;
  }
  return values_unknown(f, ref, bits == 1 ? 0 : bits == 8 ? 2 : bits / 8, lane) != 0;
}

static bool is_result(const operands *who, kl_ref ref) {
  for (unsigned k = 0; k < who->nto; k++)
    if (who->to[k] == ref) return true;
  return false;
}

// Of one lane's results. A source that is a result as well has lost its shadow by now, but not its origin.
static uint32_t origin_of(values *v, const kl_frame *f, const kl_sim_op *o, const operands *who, unsigned lane) {
  kl_ref both = KL_NO_REF;
  for (unsigned k = 0; k < who->nfrom; k++) {
    kl_ref ref = who->from[k];
    if (!in_registers(ref)) continue;
    if (is_result(who, ref))
      both = ref;
    else if (lacks(f, ref, who->from_bits[k], lane))
      return values_origin(v, f, o, ref, lane);
  }
  uint32_t carried = who->takes_carry ? get(v, f, carry_of(f), lane) : 0;
  if (carried) return carried;
  return both == KL_NO_REF ? 0 : values_origin(v, f, o, both, lane);
}

void values_spread_origins(values *v, kl_warp *w, const kl_sim_op *o, const operands *who) {
  const kl_frame *f = w->strand.frame;
  uint32_t carry = 0;
  if (who->gives_carry) memcpy(&carry, f->regs + CARRY_AT(f->code->frame_bytes), 4);
  for (uint32_t left = w->x.mask; left; left &= left - 1) {
    unsigned lane = (unsigned)__builtin_ctz(left);
    bool any = carry >> lane & 1;
    for (unsigned k = 0; k < who->nto && !any; k++) any = lacks(f, who->to[k], who->to_bits[k], lane);
    if (!any) continue;
    uint32_t n = origin_of(v, f, o, who, lane);
    for (unsigned k = 0; k < who->nto; k++)
      if (in_registers(who->to[k])) values_set_origin(v, f, who->to[k], lane, n);
    if (who->gives_carry) values_set_origin(v, f, carry_of(f), lane, n);
  }
}
