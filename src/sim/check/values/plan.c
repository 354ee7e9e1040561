// From ops to what they do to shadows, by the spread of their row.

#include "sim/check/values/values.h"
#include "sim/isa/match.h"
#include "sim/isa/topics.h"

static void add_to(operands *p, kl_ref at, unsigned bits) {
  p->to[p->nto] = at;
  p->to_bits[p->nto++] = (uint16_t)bits;
}

static operands places_of(const kl_form *f, const kl_sim_op *o) {
  const kl_ref to[] = {o->d, o->e, o->c, o->f}, from[] = {o->a, o->b, o->c, o->f, o->e};
  operands p = {0};
  const char *at = f->operands;
  kl_isa_letter l;
  while (*at != '=' && kl_isa_next_letter(&at, &l)) {
    for (unsigned k = 0; k < l.count && p.nto < KL_COUNT(to); k++) add_to(&p, to[p.nto], l.bits);
    if (l.pair || l.second) add_to(&p, to[p.nto], 1);
  }
  if (*at == '=') at++;
  while (kl_isa_next_letter(&at, &l))
    for (unsigned k = 0; !l.constant && k < l.count && p.nfrom < KL_COUNT(from); k++) {
      p.from[p.nfrom] = from[p.nfrom];
      p.from_bits[p.nfrom++] = (uint16_t)l.bits;
    }
  return p;
}

static uint8_t bytes_of(unsigned bits) {
  return bits == 1 ? 0 : bits == 8 ? 2 : (uint8_t)(bits / 8);
}

// --- refs ---------------------------------------------------------------------------------------------------------

typedef struct maker {
  kl_arena *arena;
  const kl_lane_set *set;
  uint32_t frame; // bytes of registers
  spread *out;
  operands p;
  kl_shadow_how *how;
} maker;

static kl_ref shadow(const maker *m, kl_ref ref) {
  return in_registers(ref) ? ref + SHADOW_AT(m->frame) : ref == KL_NO_REF ? KL_NO_REF : CLEAN_AT(m->frame);
}
static uint32_t flag(const maker *m, kl_ref ref) {
  return FLAGS_AT(m->frame) + (in_registers(ref) ? ref >> 2 : m->frame / 4);
}
static uint32_t target_flag(const maker *m, kl_ref ref) {
  return FLAGS_AT(m->frame) + (in_registers(ref) ? ref >> 2 : m->frame / 4 + 1);
}

static kl_shadow_how *how_of(maker *m) {
  if (!m->how) {
    m->how = KL_NEW(m->arena, kl_shadow_how);
    m->out->op.imm = (uint64_t)(uintptr_t)m->how;
  }
  return m->how;
}

// An executor of shadows whose operands are those of the row.
static void over_shadows(maker *m, kl_run *run) {
  const operands *p = &m->p;
  kl_ref from[4];
  for (unsigned k = 0; k < 4; k++) from[k] = k < p->nfrom ? shadow(m, p->from[k]) : CLEAN_AT(m->frame);
  m->out->op.run = run;
  m->out->op.d = p->nto ? shadow(m, p->to[0]) : KL_NO_REF;
  m->out->op.a = from[0], m->out->op.b = from[1], m->out->op.c = from[2], m->out->op.f = from[3];
}

static kl_run *sized(const maker *m, int first, unsigned bits) {
  return m->set->shadow[first + (bits <= 16 ? 0 : bits == 32 ? 1 : 2)];
}

static void carry(maker *m, const char *pattern) {
  bool takes = strncmp(pattern, "addc", 4) == 0 || strncmp(pattern, "subc", 4) == 0 || strncmp(pattern, "madc", 4) == 0;
  how_of(m)->takes = takes;
  how_of(m)->gives = strstr(pattern, ".cc") != NULL;
  how_of(m)->carry = CARRY_AT(m->frame);
}

static kl_shadow_part part(kl_ref at, unsigned bits) {
  return (kl_shadow_part){at, bits == 8 ? 0xff : 0xffff, bytes_of(bits)};
}

static void all(maker *m) {
  kl_shadow_how *h = how_of(m);
  for (unsigned k = 0; k < m->p.nfrom; k++)
    if (in_registers(m->p.from[k])) h->from[h->nfrom++] = part(shadow(m, m->p.from[k]), m->p.from_bits[k]);
  for (unsigned k = 0; k < m->p.nto; k++)
    if (m->p.to[k] != KL_NO_REF) {
      h->to[h->nto] = part(shadow(m, m->p.to[k]), m->p.to_bits[k]);
      h->to[h->nto++].low = 0xffff;
    }
  m->out->op.run = m->set->shadow[KL_SHADOW_all];
}

static void values_behind(maker *m, const kl_sim_op *o) {
  const kl_ref refs[] = {o->a, o->b, o->c, o->f};
  for (int k = 0; k < 4; k++) how_of(m)->value[k] = refs[k];
}

// --- by spread ----------------------------------------------------------------------------------------------------

// The instruction itself over shadows: what only moves bits.
static void moves(maker *m, const kl_sim_op *o) {
  over_shadows(m, o->run);
  if (m->p.nto > 1) m->out->op.e = shadow(m, o->e);
  if (m->p.nto > 2) m->out->op.c = shadow(m, o->c), m->out->op.f = shadow(m, o->f);
  m->out->op.flags = o->flags;
  m->out->op.imm = o->imm;
}

// Moved by amounts, which are values: `n` of the sources from number `at` on, of which the bits `counts` are looked at.
static void moved(maker *m, const kl_sim_op *o, unsigned at, unsigned n, uint32_t counts) {
  kl_shadow_how *h = how_of(m);
  over_shadows(m, m->set->shadow[KL_SHADOW_moved]);
  h->moved = m->out->op;
  h->moved.run = o->run;
  h->moved.flags = o->flags;
  h->moved.imm = o->imm;
  const kl_ref values[] = {o->a, o->b, o->c, o->f};
  kl_ref *own[] = {&h->moved.a, &h->moved.b, &h->moved.c, &h->moved.f};
  for (unsigned k = 0; k < 2; k++) h->amount[k] = *own[at + (k < n ? k : 0)];
  for (unsigned k = at; k < at + n; k++) *own[k] = values[k];
  h->counts = counts;
  h->to[0] = part(m->out->op.d, m->p.to_bits[0]);
  h->nto = 1;
}

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

static void each(maker *m, const kl_form *f, const kl_sim_op *o) {
  unsigned bits = m->p.to_bits[0];
  bool pred = bits == 1;
  if (begins(f->pattern, "lop3")) {
    over_shadows(m, m->set->shadow[KL_SHADOW_lop3]);
    values_behind(m, o);
    how_of(m)->table = (uint32_t)o->imm & 255;
  } else if (begins(f->pattern, "mov")) {
    moves(m, o);
  } else if (begins(f->pattern, "and") || begins(f->pattern, "or")) {
    bool is_and = f->pattern[0] == 'a';
    if (pred)
      over_shadows(m, m->set->shadow[is_and ? KL_SHADOW_and_pred : KL_SHADOW_or_pred]);
    else
      over_shadows(m, sized(m, is_and ? KL_SHADOW_and_16 : KL_SHADOW_or_16, bits));
    values_behind(m, o);
  } else { // xor, not
    over_shadows(m, pred ? m->set->shadow[KL_SHADOW_merge_pred] : sized(m, KL_SHADOW_merge_16, bits));
  }
}

// andn: an and with what is not b; a known 1 in b decides.
static void and_not(maker *m, const kl_sim_op *o) {
  over_shadows(m, m->set->shadow[KL_SHADOW_andn_pred]);
  values_behind(m, o);
}

static void own(maker *m, const kl_form *f, const kl_sim_op *o) {
  if (begins(f->pattern, "selp") || begins(f->pattern, "select")) {
    over_shadows(m, sized(m, KL_SHADOW_select_16, m->p.to_bits[0]));
    values_behind(m, o);
    m->out->op.flags = o->flags;
  } else if (begins(f->pattern, "lop3")) {
    over_shadows(m, m->set->shadow[KL_SHADOW_lop3_bool]);
    m->out->op.e = shadow(m, o->e);
    m->out->op.flags = o->flags;
    values_behind(m, o);
    how_of(m)->table = (uint32_t)o->imm & 255;
  } else if (begins(f->pattern, "prmt")) {
    moved(m, o, 2, 1, strcmp(f->pattern, "prmt.b32") == 0 ? 0xffff : 3);
  } else if (begins(f->pattern, "bfe")) {
    moved(m, o, 1, 2, strstr(f->pattern, "64") ? ~0u : 255);
  } else if (begins(f->pattern, "bfi")) {
    moved(m, o, 2, 2, strstr(f->pattern, "64") ? ~0u : 255);
  } else if (begins(f->pattern, "shf")) {
    moved(m, o, 2, 1, o->flags & KL_WRAP ? 31 : ~0u);
  } else {
    moves(m, o); // extensions, truncations, packing, reversal, conversions of integers
  }
}

static void flags(maker *m) {
  m->out->who = kl_arena_dup(m->arena, &m->p, sizeof m->p);
  for (unsigned k = 0; k < 5; k++) m->out->from[k] = flag(m, k < m->p.nfrom ? m->p.from[k] : KL_NO_REF);
  for (unsigned k = 0; k < 4; k++) m->out->to[k] = target_flag(m, k < m->p.nto ? m->p.to[k] : KL_NO_REF);
}

static bool uses_carry(const kl_form *f) {
  const char *p = f->pattern;
  return strstr(p, ".cc") || begins(p, "addc") || begins(p, "subc") || begins(p, "madc");
}

// A row of the lanes, or glue.
static void lanes(maker *m, const kl_form *f, const kl_sim_op *o) {
  m->p = places_of(f, o);
  if (uses_carry(f)) {
    carry(m, f->pattern);
    m->p.takes_carry = how_of(m)->takes, m->p.gives_carry = how_of(m)->gives;
    flags(m);
    if (how_of(m)->takes) m->out->from[4] = FLAGS_AT(m->frame) + m->frame / 4 + 2;
    if (how_of(m)->gives) m->out->to[3] = FLAGS_AT(m->frame) + m->frame / 4 + 2;
  } else {
    flags(m);
  }
  switch ((kl_spread)f->spread) {
  case KL_SPREAD_EACH:
    if (begins(f->pattern, "andn"))
      and_not(m, o);
    else
      each(m, f, o);
    return;
  case KL_SPREAD_UP: over_shadows(m, sized(m, KL_SHADOW_up_16, m->p.to_bits[0])); return;
  case KL_SPREAD_ALL: all(m); return;
  case KL_SPREAD_PAIRS: over_shadows(m, m->set->shadow[KL_SHADOW_pairs]); return;
  case KL_SPREAD_SHIFT: moved(m, o, 1, 1, ~0u); return;
  case KL_SPREAD_OWN: own(m, f, o); return;
  }
}

// --- the machine's own --------------------------------------------------------------------------------------------

static void decide(maker *m, kl_found_kind kind, kl_ref ref, unsigned bytes) {
  if (!in_registers(ref)) return;
  m->out->decides = (uint8_t)kind;
  m->out->decider = ref;
  m->out->decider_bytes = (uint8_t)bytes;
}

static void decide_too(maker *m, kl_found_kind kind, kl_ref ref, unsigned bytes) {
  if (!in_registers(ref)) return;
  m->out->decides = (uint8_t)kind;
  m->out->decider2 = ref;
  m->out->decider2_bytes = (uint8_t)bytes;
}

static bool is_one_of(kl_run *run, kl_run *const *list, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (run == list[k]) return true;
  return false;
}
#define IS(run, ...)                                                                                                   \
  is_one_of(run, (kl_run *const[]){__VA_ARGS__}, sizeof((kl_run *[]){__VA_ARGS__}) / sizeof(kl_run *))

// By hand: results of `to` bits from sources of these, each bit from all.
static void from_all(maker *m, const kl_sim_op *o, unsigned to, unsigned a, unsigned b) {
  m->p = (operands){.nto = 1, .to = {o->d}, .to_bits = {(uint16_t)to}, .from = {o->a, o->b}};
  m->p.from_bits[0] = (uint16_t)a, m->p.from_bits[1] = (uint16_t)b;
  m->p.nfrom = b ? 2 : a ? 1 : 0;
  flags(m);
  all(m);
}

static void machines(maker *m, const kl_sim_op *o) {
  const kl_found_kind branch = KL_FOUND_UNDEFINED_BRANCH, address = KL_FOUND_UNDEFINED_ADDRESS;
  if (IS(o->run, kl_x_load, kl_x_store, kl_x_atomic)) {
    const kl_sim_access *a = (const kl_sim_access *)(uintptr_t)o->imm;
    decide(m, address, a->base, a->wide);
  } else if (o->run == kl_x_copy_async) {
    const kl_copy *c = (const kl_copy *)(uintptr_t)o->imm;
    decide(m, address, c->to.base, c->to.wide);
    decide_too(m, address, c->from.base, c->from.wide);
  } else if (IS(o->run, kl_x_branch, kl_x_guard)) {
    decide(m, branch, o->a, 0);
  } else if (o->run == kl_x_branch_table) {
    decide(m, branch, o->a, 4);
  } else if (o->run == kl_x_call) {
    const kl_call *c = (const kl_call *)(uintptr_t)o->imm;
    if (!c->code) decide(m, branch, c->target, c->target_bytes);
  } else if (IS(o->run, kl_x_barrier, kl_x_arrive)) {
    decide(m, branch, o->a, 4);
    decide_too(m, branch, o->b, 4);
  } else if (IS(o->run, kl_x_warp_sync, kl_x_shuffle, kl_x_vote, kl_x_match, kl_x_redux, kl_x_elect)) {
    decide(m, branch, o->f, 4);
  } else if (IS(o->run, kl_x_frame_address_32, kl_x_clock_32, kl_x_activemask, kl_x_stacksave_32)) {
    from_all(m, o, 32, 0, 0);
  } else if (IS(o->run, kl_x_frame_address_64, kl_x_clock_64, kl_x_stacksave_64)) {
    from_all(m, o, 64, 0, 0);
  } else if (IS(o->run, kl_x_to_generic, kl_x_from_generic)) {
    from_all(m, o, 64, 64, 0);
  } else if (o->run == kl_x_is_space) {
    from_all(m, o, 1, 64, 0);
  } else if (o->run == kl_x_mapa_32) {
    from_all(m, o, 32, 32, 32);
  } else if (o->run == kl_x_mapa_64) {
    from_all(m, o, 64, 64, 32);
  } else if (o->run == kl_x_ctarank_32) {
    from_all(m, o, 32, 32, 0);
  } else if (o->run == kl_x_ctarank_64) {
    from_all(m, o, 32, 64, 0);
  } else if (IS(o->run, kl_x_alloca_32, kl_x_alloca_64)) {
    unsigned bits = o->run == kl_x_alloca_32 ? 32 : 64;
    from_all(m, o, bits, 0, 0);
    decide(m, address, o->a, bits / 8);
    m->out->grows = true;
  } else if (IS(o->run, kl_x_stackrestore_32, kl_x_stackrestore_64)) {
    decide(m, address, o->a, o->run == kl_x_stackrestore_32 ? 4 : 8);
  }
}

// Rows whose executor is one of the lanes, which come first; glue has no section.
static bool is_of_lanes(const kl_form *f) {
  uint32_t n = 0;
#define X(name, rows) n++;
  KL_LANE_TOPICS(X)
#undef X
  if (!f || !f->section[0]) return f != NULL;
  for (uint32_t k = 0; k < n; k++)
    if (f >= kl_topics[k].rows && f < kl_topics[k].rows + kl_topics[k].n) return true;
  return false;
}

void values_spread(kl_arena *arena, const kl_lane_set *set, uint32_t frame, const kl_form *f, const kl_sim_op *o,
                   spread *out) {
  maker m = {.arena = arena, .set = set, .frame = frame, .out = out};
  *out = (spread){.decider = KL_NO_REF, .decider2 = KL_NO_REF};
  out->op.e = KL_NO_REF;
  if (is_of_lanes(f))
    lanes(&m, f, o);
  else
    machines(&m, o);
  out->spreads = out->op.run != NULL;
}

static bool plan_function(values *v, const kl_code *code, plan *p) {
  p->code = code;
  p->ops = kl_arena_try_alloc(&v->arena, code->nops * sizeof *p->ops + 1);
  for (uint32_t k = 0; p->ops && k < code->nops; k++) {
    values_spread(&v->arena, kl_lanes_best(), code->frame_bytes, code->forms[k], &code->ops[k], &p->ops[k]);
    v->grows |= p->ops[k].grows;
  }
  return p->ops != NULL;
}

bool values_plan(values *v) {
  const kl_ptx_module *ptx = v->kernel->of->ptx;
  v->plans = KL_NEW_N(&v->arena, plan, ptx->nfuncs);
  for (uint32_t n = 0; n < ptx->nfuncs; n++)
    if (v->kernel->codes[n] && !plan_function(v, v->kernel->codes[n], &v->plans[n])) return false;
  return true;
}
