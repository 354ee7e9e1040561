#include "witness.h"

#include "sim/isa/match.h"
#include "sim/machine/execute.h"

#include <stdlib.h>

// --- memory -------------------------------------------------------------------------------------------------------

// Every byte has a key: of the device's memory its address, of shared memory the block and the offset, of a stack the
// thread and the offset.
enum { WROTE = 1, READ = 2, READ_FRESH = 4, OFTEN = 8 }; // OFTEN and more: how often it was written
#define IN_SHARED ((uint64_t)1 << 62)
#define IN_STACK  ((uint64_t)1 << 63)

enum { BLOCK, CLUSTER, ALL, REACHES };

// The last access of a thread to a byte, of each kind.
typedef struct touch {
  uint32_t thread, clock;
  bool writes, strong, atomic;
  uint8_t bytes, reach, value;
} touch;

typedef struct byte {
  uint64_t key; // 0: a free place
  unsigned did;
  touch *touches;
  uint32_t n, cap;
} byte;

// What threads knew when they released: of each reach and block, together.
typedef struct message {
  uint32_t block;
  uint8_t reach;
  uint32_t *clock;
} message;
typedef struct messages {
  message *p;
  size_t n;
} messages;

// What is communicated through: an element of memory.
typedef struct place {
  uint64_t key;
  uint8_t bytes, reach; // of the last strong write
  bool strong;          // what stands there was written so
  uint32_t writer;
  messages carried;
  struct {
    uint32_t thread;
    messages of;
  } * released, *found; // by a thread's own releases there; by what its reads there found
  size_t nreleased, nfound;
} place;

typedef struct thread {
  uint32_t *clock; // by thread
  uint32_t block;
  messages fenced, pending; // of its last fences; of what its strong reads found
} thread;

struct witness {
  kl_observer o; // first
  struct {
    uint64_t address, bytes;
  } undefined[16];
  size_t nundefined;
  byte *bytes; // by the hash of their keys
  size_t nbytes, slots;
  place *places;
  size_t nplaces, place_slots;
  thread *threads;
  uint32_t nthreads, per_block, per_cluster; // threads of a block, blocks of a cluster
  uint32_t *barriers;                        // by block and barrier, clocks of those that came by
  uint32_t *clusters, *opened;               // by cluster, of those that arrived
  bool raced;
};

static size_t hash(uint64_t key, size_t slots) {
  return (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (slots - 1);
}

static byte *find_byte(const witness *w, uint64_t key) {
  for (size_t k = hash(key, w->slots);; k = (k + 1) & (w->slots - 1))
    if (!w->bytes[k].key || w->bytes[k].key == key) return &w->bytes[k];
}

static byte *byte_at(witness *w, uint64_t key) {
  if (w->nbytes * 2 >= w->slots) {
    byte *old = w->bytes;
    size_t n = w->slots;
    w->slots = n * 2;
    w->bytes = calloc(w->slots, sizeof *w->bytes);
    for (size_t k = 0; k < n; k++)
      if (old[k].key) *find_byte(w, old[k].key) = old[k];
    free(old);
  }
  byte *b = find_byte(w, key);
  w->nbytes += !b->key;
  b->key = key;
  return b;
}

static place *find_place(const witness *w, uint64_t key, unsigned bytes) {
  for (size_t k = hash(key + bytes, w->place_slots);; k = (k + 1) & (w->place_slots - 1))
    if (!w->places[k].key || (w->places[k].key == key && w->places[k].bytes == bytes)) return &w->places[k];
}

static place *place_at(witness *w, uint64_t key, unsigned bytes) {
  if (w->nplaces * 2 >= w->place_slots) {
    place *old = w->places;
    size_t n = w->place_slots;
    w->place_slots = n * 2;
    w->places = calloc(w->place_slots, sizeof *w->places);
    for (size_t k = 0; k < n; k++)
      if (old[k].key) *find_place(w, old[k].key, old[k].bytes) = old[k];
    free(old);
  }
  place *p = find_place(w, key, bytes);
  w->nplaces += !p->key;
  p->key = key;
  p->bytes = (uint8_t)bytes;
  return p;
}

static bool has_value(const witness *w, uint64_t key) {
  if (key >= IN_SHARED) return false;
  for (size_t k = 0; k < w->nundefined; k++)
    if (key - w->undefined[k].address < w->undefined[k].bytes) return false;
  return true;
}

// --- clocks -------------------------------------------------------------------------------------------------------

static unsigned apart(const witness *w, uint32_t a, uint32_t b) { // blocks
  return a == b ? BLOCK : a / w->per_cluster == b / w->per_cluster ? CLUSTER : ALL;
}

static void join(const witness *w, uint32_t *to, const uint32_t *from) {
  for (uint32_t k = 0; from && k < w->nthreads; k++)
    if (to[k] < from[k]) to[k] = from[k];
}

static void put(const witness *w, messages *to, unsigned reach, uint32_t block, const uint32_t *clock, bool instead) {
  size_t k = 0;
  while (k < to->n && (to->p[k].reach != reach || to->p[k].block != block)) k++;
  if (k == to->n) {
    to->p = realloc(to->p, ++to->n * sizeof *to->p);
    to->p[k] = (message){block, (uint8_t)reach, calloc(w->nthreads, sizeof(uint32_t))};
  }
  if (instead) memset(to->p[k].clock, 0, w->nthreads * sizeof(uint32_t));
  join(w, to->p[k].clock, clock);
}

static void put_all(const witness *w, messages *to, const messages *from) {
  for (size_t k = 0; k < from->n; k++) put(w, to, from->p[k].reach, from->p[k].block, from->p[k].clock, false);
}

static void drop(messages *m) {
  for (size_t k = 0; k < m->n; k++) free(m->p[k].clock);
  free(m->p);
  *m = (messages){0};
}

// A thread acquires with this reach: of messages, those whose release and itself reach each other.
static void acquire(witness *w, thread *t, const messages *from, unsigned reach) {
  for (size_t k = 0; k < from->n; k++) {
    unsigned far = apart(w, t->block, from->p[k].block);
    if (from->p[k].reach >= far && reach >= far) join(w, t->clock, from->p[k].clock);
  }
}

static messages *own(place *p, bool released, uint32_t t) {
  size_t *n = released ? &p->nreleased : &p->nfound, k = 0;
  while (k < *n && (released ? p->released : p->found)[k].thread != t) k++;
  if (k == *n) {
    if (released)
      p->released = realloc(p->released, (k + 1) * sizeof *p->released);
    else
      p->found = realloc(p->found, (k + 1) * sizeof *p->found);
    memset(&(released ? p->released : p->found)[k], 0, sizeof p->found[0]);
    (released ? p->released : p->found)[k].thread = t;
    ++*n;
  }
  return &(released ? p->released : p->found)[k].of;
}

// --- accesses -----------------------------------------------------------------------------------------------------

typedef struct access {
  uint32_t t;
  uint64_t key;
  unsigned bytes, reach; // of an element
  bool reads, writes, strong, acquires, releases, result;
} access;

static void overwrite(witness *w, const access *a) {
  for (uint64_t key = a->key - 15; key < a->key + a->bytes; key++)
    for (unsigned bytes = 1; bytes <= 16; bytes *= 2) {
      place *p = find_place(w, key, bytes);
      if (!p->key || key + bytes <= a->key || (a->strong && key == a->key && bytes == a->bytes)) continue;
      drop(&p->carried);
      p->strong = false;
    }
}

// What a strong access learns and passes on (PTX ISA 8.8).
static void communicate(witness *w, const access *a) {
  thread *t = &w->threads[a->t];
  place *p = place_at(w, a->key, a->bytes);
  unsigned far = apart(w, t->block, w->threads[p->writer].block);
  bool linked = p->strong && p->reach >= far && a->reach >= far;
  if (a->reads && a->result) {
    messages *found = own(p, false, a->t);
    if (linked) {
      put_all(w, found, &p->carried);
      put_all(w, &t->pending, &p->carried);
    }
    if (a->acquires) acquire(w, t, found, a->reach);
  }
  if (!a->writes) return;
  if (!a->reads || !linked) drop(&p->carried);
  p->strong = true;
  p->reach = (uint8_t)a->reach;
  p->writer = a->t;
  put_all(w, &p->carried, &t->fenced);
  put_all(w, &p->carried, own(p, true, a->t));
  if (!a->releases) return;
  put(w, &p->carried, a->reach, t->block, t->clock, false);
  put(w, own(p, true, a->t), a->reach, t->block, t->clock, false);
}

static bool conflict(const witness *w, const access *a, const touch *x, uint8_t value) {
  if (x->thread == a->t || !(x->writes || a->writes)) return false;
  if (x->clock <= w->threads[a->t].clock[x->thread]) return false;
  if (x->writes && !x->atomic && a->writes && !a->reads && x->value == value) return false;
  unsigned far = apart(w, w->threads[a->t].block, w->threads[x->thread].block);
  return !(a->strong && x->strong && x->bytes == a->bytes && x->reach >= far && a->reach >= far);
}

static void touch_byte(witness *w, const access *a, uint64_t key, uint8_t value) {
  byte *b = byte_at(w, key);
  touch now = {.thread = a->t,
               .clock = w->threads[a->t].clock[a->t],
               .writes = a->writes,
               .strong = a->strong,
               .atomic = a->reads && a->writes,
               .bytes = (uint8_t)a->bytes,
               .reach = (uint8_t)a->reach,
               .value = value};
  if (a->reads && !(b->did & WROTE) && !has_value(w, key)) b->did |= READ_FRESH;
  b->did |= (a->reads ? READ : 0) | (a->writes ? WROTE : 0);
  b->did += a->writes ? OFTEN : 0;
  if (key >= IN_STACK) return;
  uint32_t mine = b->n;
  for (uint32_t k = 0; k < b->n; k++) {
    const touch *x = &b->touches[k];
    w->raced |= conflict(w, a, x, value);
    if (x->thread == now.thread && x->writes == now.writes && x->strong == now.strong) mine = k;
  }
  if (mine == b->n && b->n++ == b->cap)
    b->touches = realloc(b->touches, (b->cap = b->cap * 2 + 2) * sizeof *b->touches);
  b->touches[mine] = now;
}

static uint64_t key_of(const witness *w, kl_warp *warp, const kl_sim_access *m, uint32_t t, uint64_t at) {
  unsigned where = m->where;
  if (where == KL_AT_GENERIC) {
    where = at >= KL_DEVICE_MEMORY ? KL_AT_GLOBAL : at / KL_WINDOW == 1 ? KL_AT_SHARED : KL_AT_STACK;
    if (where != KL_AT_GLOBAL) at %= KL_WINDOW;
  }
  if (where == KL_AT_GLOBAL) return at;
  if (where == KL_AT_STACK) return IN_STACK | (uint64_t)t << 32 | at;
  uint64_t block = warp->block->number;
  if (at >= KL_SHARED_RANK) block = block - block % w->per_cluster + at / KL_SHARED_RANK - 1, at %= KL_SHARED_RANK;
  return IN_SHARED | block << 32 | at;
}

static uint32_t thread_of(const witness *w, const kl_warp *warp, unsigned lane) {
  return (uint32_t)warp->block->number * w->per_block + warp->rank * KL_LANES + lane;
}

static const kl_ptx_instr *instr_of(const kl_warp *warp, const kl_sim_op *op) {
  const kl_code *code = warp->strand.frame->code;
  return code->forms[op - code->ops] && code->func->ninstrs ? &code->func->instrs[op->index] : NULL;
}

static void on_access(kl_observer *o, kl_warp *warp, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p) {
  witness *w = (witness *)o;
  const kl_lanes *x = &warp->x;
  const kl_ptx_instr *instr = instr_of(warp, op);
  bool atomic = op->run == kl_x_atomic;
  if (!instr || kl_isa_has(instr, "param")) return; // which calls copy, unseen
  for (unsigned i = 0; i < KL_LANES; i++)
    for (unsigned k = 0; x->mask >> i & 1 && k < m->count; k++) {
      access a = {.t = thread_of(w, warp, i),
                  .bytes = m->bytes,
                  .reach = m->scope == KL_SCOPE_CTA       ? BLOCK
                           : m->scope == KL_SCOPE_CLUSTER ? CLUSTER
                                                          : ALL,
                  .reads = atomic || !m->store,
                  .writes = atomic || m->store,
                  .strong = m->order != KL_WEAK,
                  .acquires = m->order == KL_ACQUIRE || m->order == KL_ACQ_REL,
                  .releases = m->order == KL_RELEASE || m->order == KL_ACQ_REL,
                  .result = !atomic || op->d != KL_NO_REF};
      a.key = key_of(w, warp, m, a.t, p->address[i] + (uint64_t)k * m->bytes);
      w->threads[a.t].clock[a.t]++;
      if (a.strong && a.key < IN_STACK) communicate(w, &a);
      if (a.writes && a.key < IN_STACK) overwrite(w, &a);
      const uint8_t *value = op->run == kl_x_store ? AT(uint8_t, m->regs[k]) + (size_t)i * m->reg_bytes[k] : NULL;
      for (unsigned n = 0; n < m->bytes; n++) touch_byte(w, &a, a.key + n, value ? value[n] : (uint8_t)i);
    }
}

// --- what threads do together -------------------------------------------------------------------------------------

static void on_begin(kl_observer *o, kl_block *b) {
  witness *w = (witness *)o;
  if (w->threads) return;
  const kl_run_state *run = b->run;
  uint64_t blocks = (uint64_t)run->grid[0] * run->grid[1] * run->grid[2];
  w->per_block = run->warps * KL_LANES;
  w->per_cluster = run->blocks ? run->blocks : 1;
  w->nthreads = (uint32_t)blocks * w->per_block;
  w->threads = calloc(w->nthreads, sizeof *w->threads);
  for (uint32_t t = 0; t < w->nthreads; t++) {
    w->threads[t].clock = calloc(w->nthreads, sizeof(uint32_t));
    w->threads[t].block = t / w->per_block;
  }
  w->barriers = calloc(blocks * KL_BARRIERS * w->nthreads, sizeof(uint32_t));
  w->clusters = calloc((blocks / w->per_cluster + 1) * w->nthreads, sizeof(uint32_t));
  w->opened = calloc((blocks / w->per_cluster + 1) * w->nthreads, sizeof(uint32_t));
}

static uint32_t *clocks_of(const witness *w, const kl_block *b, unsigned barrier) {
  return w->barriers + (b->number * KL_BARRIERS + barrier) * w->nthreads;
}

static void on_arrive(kl_observer *o, kl_warp *warp, const kl_sim_op *op, unsigned barrier, uint32_t expected,
                      uint32_t lanes) {
  witness *w = (witness *)o;
  (void)expected;
  for (unsigned i = 0; op->run == kl_x_arrive && i < KL_LANES; i++)
    if (lanes >> i & 1) join(w, clocks_of(w, warp->block, barrier), w->threads[thread_of(w, warp, i)].clock);
}

static void on_open(kl_observer *o, kl_block *b, unsigned barrier) {
  witness *w = (witness *)o;
  uint32_t *all = clocks_of(w, b, barrier);
  for (int turn = 0; turn < 2; turn++) // all tell, then all learn
    for (uint32_t k = 0; k < b->nwarps; k++)
      for (uint32_t n = 0; n < b->warps[k].nwaiting; n++) {
        const kl_strand *s = &b->warps[k].waiting[n];
        for (unsigned i = 0; s->wait == KL_AT_BARRIER && s->barrier == barrier && i < KL_LANES; i++) {
          if (!(s->mask >> i & 1)) continue;
          uint32_t *mine = w->threads[thread_of(w, &b->warps[k], i)].clock;
          join(w, turn ? mine : all, turn ? all : mine);
        }
      }
  memset(all, 0, w->nthreads * sizeof *all);
}

static void on_meet(kl_observer *o, const kl_party *p) {
  witness *w = (witness *)o;
  uint32_t *all = calloc(w->nthreads, sizeof *all);
  for (int turn = 0; turn < 2; turn++)
    for (unsigned i = 0; i < KL_LANES; i++) {
      if (!(p->mask >> i & 1)) continue;
      uint32_t *mine = w->threads[thread_of(w, p->w, i)].clock;
      join(w, turn ? mine : all, turn ? all : mine);
    }
  free(all);
}

static void fence(witness *w, thread *t, const kl_ptx_instr *i) {
  unsigned reach = kl_isa_has(i, "cta") ? BLOCK : kl_isa_has(i, "cluster") ? CLUSTER : ALL;
  if (kl_isa_has(i, "proxy") || kl_isa_has(i, "mbarrier_init")) return;
  if (!kl_isa_has(i, "release")) acquire(w, t, &t->pending, reach);
  if (!kl_isa_has(i, "acquire")) put(w, &t->fenced, reach, t->block, t->clock, true);
}

static void on_step(kl_observer *o, kl_warp *warp, const kl_sim_op *op) {
  witness *w = (witness *)o;
  uint64_t cluster = warp->block->number / w->per_cluster;
  const kl_ptx_instr *instr = op->run == kl_x_nothing || op->run == kl_x_cluster_arrive ? instr_of(warp, op) : NULL;
  bool is_fence = instr && (kl_str_is(instr->opcode, "membar") || kl_str_is(instr->opcode, "fence"));
  bool arrives = op->run == kl_x_cluster_arrive && instr && !kl_isa_has(instr, "relaxed");
  uint32_t leave = op->run == kl_x_cluster_wait ? warp->x.mask & ~kl_cluster_waits(warp, warp->x.mask) : 0;
  for (unsigned i = 0; (is_fence || arrives || leave) && i < KL_LANES; i++) {
    if (!(warp->x.mask >> i & 1)) continue;
    thread *t = &w->threads[thread_of(w, warp, i)];
    if (is_fence) fence(w, t, instr);
    if (arrives) join(w, w->clusters + cluster * w->nthreads, t->clock);
    if (leave >> i & 1) join(w, t->clock, w->opened + cluster * w->nthreads);
  }
}

static void on_open_cluster(kl_observer *o, kl_cluster *c) {
  witness *w = (witness *)o;
  uint64_t at = c->blocks->number / w->per_cluster * w->nthreads;
  memcpy(w->opened + at, w->clusters + at, w->nthreads * sizeof(uint32_t));
  memset(w->clusters + at, 0, w->nthreads * sizeof(uint32_t));
}

// --- asking -------------------------------------------------------------------------------------------------------

witness *witness_new(void) {
  witness *w = calloc(1, sizeof *w);
  w->o = (kl_observer){.begin = on_begin,
                       .step = on_step,
                       .access = on_access,
                       .meet = on_meet,
                       .arrive = on_arrive,
                       .open = on_open,
                       .open_cluster = on_open_cluster};
  w->slots = w->place_slots = 1024;
  w->bytes = calloc(w->slots, sizeof *w->bytes);
  w->places = calloc(w->place_slots, sizeof *w->places);
  return w;
}

void witness_free(witness *w) {
  for (size_t k = 0; k < w->slots; k++) free(w->bytes[k].touches);
  for (size_t k = 0; k < w->place_slots; k++) {
    place *p = &w->places[k];
    drop(&p->carried);
    for (size_t n = 0; n < p->nreleased; n++) drop(&p->released[n].of);
    for (size_t n = 0; n < p->nfound; n++) drop(&p->found[n].of);
    free(p->released);
    free(p->found);
  }
  for (uint32_t t = 0; t < w->nthreads; t++) {
    free(w->threads[t].clock);
    drop(&w->threads[t].fenced);
    drop(&w->threads[t].pending);
  }
  free(w->threads);
  free(w->bytes);
  free(w->places);
  free(w->barriers);
  free(w->clusters);
  free(w->opened);
  free(w);
}

kl_observer *witness_observer(witness *w) {
  return &w->o;
}

void witness_undefined(witness *w, uint64_t address, uint64_t bytes) {
  w->undefined[w->nundefined].address = address;
  w->undefined[w->nundefined++].bytes = bytes;
}

bool witness_raced(const witness *w) {
  return w->raced;
}

// Was one of the bytes of `a` written more often than the same byte of `b`?
static bool more_often(const witness *a, const witness *b) {
  for (size_t k = 0; k < a->slots; k++)
    if (a->bytes[k].key && a->bytes[k].did / OFTEN > find_byte(b, a->bytes[k].key)->did / OFTEN) return true;
  return false;
}

// Has one of the bytes of `a` done this, and the same byte of `b` not?
static bool more(const witness *a, const witness *b, unsigned did, bool undefined_ones) {
  for (size_t k = 0; k < a->slots; k++) {
    const byte *x = &a->bytes[k];
    if (!x->key || !(x->did & did) || (undefined_ones && (x->key >= IN_SHARED || has_value(a, x->key)))) continue;
    if (!(find_byte(b, x->key)->did & did)) return true;
  }
  return false;
}

difference witness_compare(const witness *right, const witness *wrong) {
  if (more(wrong, right, READ_FRESH, false)) return READS_UNDEFINED;
  if (more(right, wrong, WROTE, true)) return NOT_WRITTEN;
  if (more(wrong, right, WROTE, false)) return WRITES_OTHERS;
  if (more_often(right, wrong)) return KEEPS_OLDER;
  if (more(wrong, right, READ, false)) return READS_OTHERS;
  return SAME_BYTES;
}
