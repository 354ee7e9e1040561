// How long a launch takes on a GPU: a roofline. Each row is an amount of work at a rate; the longest one decides.
// docs/profiler.md has the model and how far off it was.

#include "sim/count/collect.h"

// --- what GPUs do in a clock ----------------------------------------------------------------------------------------

// Results of a multiprocessor in a clock, by the CUDA programming guide's table of throughput; bytes of L2 in a clock
// of the whole GPU and unified memory of a multiprocessor by NVIDIA's papers on the architectures.
typedef struct rates {
  uint16_t sm;
  uint16_t f32, f64, half, integer, multiply, convert, special;
  uint32_t unified; // KiB of L1 and shared memory
  uint32_t l2;      // bytes
} rates;
static const rates table[] = {
    //  sm  f32  f64 half  int  mul  cvt  sfu  KiB    L2
    {80, 64, 32, 256, 64, 64, 16, 16, 192, 5120},
    {89, 128, 2, 128, 64, 64, 16, 16, 128, 4096},
    {90, 128, 64, 256, 64, 64, 64, 16, 256, 5120},
    {100, 128, 64, 256, 64, 64, 64, 16, 256, 10240},
};

static const rates *rates_of(const kl_gpu *g) {
  const rates *best = &table[0];
  for (size_t k = 0; k < KL_COUNT(table); k++)
    if (table[k].sm <= g->sm) best = &table[k];
  return best;
}

static const double DRAM_SHARE = 0.92, L2_SHARE = 0.7, LAUNCH = 2.0e-6, DRAM_LATENCY = 0.7e-6;
enum { SCHEDULERS = 4, IN_FLIGHT = 4, WARP_RATE = 32, LSU_SECTORS = 4, ATOMIC_CLOCKS = 2 };

// --- occupancy ------------------------------------------------------------------------------------------------------

static void occupy(kiln_profile *p) {
  const kiln_profile_info *t = &p->info;
  kiln_occupancy *o = &p->info.occupancy;
  uint32_t threads = t->block[0] * t->block[1] * t->block[2];
  *o = (kiln_occupancy){.registers = t->sass.known ? t->sass.registers : p->ptx_registers,
                        .registers_real = t->sass.known,
                        .shared_bytes = t->shared_bytes,
                        .most_warps = p->gpu->threads / KL_LANES};
  kl_resident r = kl_gpu_resident(p->gpu, threads, o->registers, t->shared_bytes);
  o->blocks = r.blocks;
  o->warps = r.warps;
  o->limiter = (kiln_occupancy_limit)r.limit;
  o->carveout = kl_gpu_carveout(p->gpu, t->shared_bytes, r.blocks);
  uint32_t unified = rates_of(p->gpu)->unified * 1024;
  o->l1_bytes = unified > o->carveout ? unified - o->carveout : 0;
  uint64_t at_once = (uint64_t)r.blocks * p->gpu->multiprocessors;
  o->waves = at_once ? (double)t->blocks / (double)at_once : 0;
}

// --- rows -----------------------------------------------------------------------------------------------------------

typedef struct table_of_rates {
  kiln_profile *p;
  kiln_profile_rate *rows;
  size_t n;
  double tail; // of what multiprocessors do: the last wave takes as long as a full one
} table_of_rates;

// `rate` in a clock of one multiprocessor.
static void put_own(table_of_rates *t, const char *name, const char *unit, double amount, double rate) {
  double all = rate * t->p->gpu->multiprocessors * t->p->gpu->clock_khz * 1e3;
  t->rows[t->n++] = (kiln_profile_rate){name, unit, amount, all, amount / all * t->tail};
}

static void put_shared_rate(table_of_rates *t, const char *name, const char *unit, double amount, double rate) {
  t->rows[t->n++] = (kiln_profile_rate){name, unit, amount, rate, amount / rate};
}

static double warps_of(const kiln_profile_info *t, kiln_profile_class first, kiln_profile_class last) {
  uint64_t n = 0;
  for (unsigned c = first; c <= last; c++) n += t->warps[c];
  return (double)n * t->scale * KL_LANES;
}

static double sectors_of(const kiln_profile_info *t, kiln_access_kind first, kiln_access_kind last) {
  uint64_t n = 0;
  for (unsigned k = first; k <= last; k++) n += t->accesses[k].sectors;
  return (double)n;
}

// Sectors that go past L1.
static double l2_bytes(const kiln_profile_info *t) {
  double n = 0;
  for (unsigned k = KILN_ACCESS_GLOBAL_LOAD; k <= KILN_ACCESS_LOCAL_STORE; k++)
    n += (double)(t->accesses[k].sectors - t->accesses[k].l1_hits);
  return n * KL_SECTOR * t->scale;
}

// Requests of the load and store unit: one for each pass over the banks, four sectors, or broadcast.
static double lsu_passes(const kiln_profile_info *t) {
  double n = (double)t->accesses[KILN_ACCESS_CONSTANT].requests;
  for (unsigned k = KILN_ACCESS_SHARED_LOAD; k <= KILN_ACCESS_SHARED_ATOMIC; k++)
    n += (double)t->accesses[k].wavefronts;
  n += sectors_of(t, KILN_ACCESS_GLOBAL_LOAD, KILN_ACCESS_LOCAL_STORE) / LSU_SECTORS;
  n += (double)t->warps[KILN_CLASS_WARP];
  return n * t->scale;
}

// Bytes a second that so many warps can have in flight, each with a few requests.
static double latency_bound(const kiln_profile *p) {
  const kiln_profile_info *t = &p->info;
  uint64_t requests = t->accesses[KILN_ACCESS_GLOBAL_LOAD].requests, blocks = p->gpu->multiprocessors;
  uint64_t resident = (uint64_t)t->occupancy.blocks * blocks;
  if (resident > t->blocks) resident = t->blocks;
  uint32_t warps = (t->block[0] * t->block[1] * t->block[2] + KL_LANES - 1) / KL_LANES;
  if (requests == 0 || t->sampled == 0) return 0;
  double of_warp = (double)requests / (double)(t->sampled * warps); // requests that a warp has at all
  double in_flight = of_warp < IN_FLIGHT ? of_warp : IN_FLIGHT;
  double bytes = (double)t->accesses[KILN_ACCESS_GLOBAL_LOAD].sectors * KL_SECTOR / (double)requests;
  return (double)resident * warps * in_flight * bytes / DRAM_LATENCY;
}

static void put_memory(table_of_rates *rows) {
  const kiln_profile *p = rows->p;
  const kiln_profile_info *t = &p->info;
  const kl_gpu *g = p->gpu;
  double dram = 2.0 * g->memory_clock_khz * 1e3 * g->bus_bits / 8 * DRAM_SHARE, bound = latency_bound(p);
  double bytes = (double)(t->dram_read + t->dram_written + t->dram_dirty) * t->scale;
  put_shared_rate(rows, "DRAM", "bytes", bytes, dram);
  if (bound > 0) put_shared_rate(rows, "loads in flight", "bytes", (double)t->dram_read * t->scale, bound);
  put_shared_rate(rows, "L2", "bytes", l2_bytes(t), (double)rates_of(g)->l2 * g->clock_khz * 1e3 * L2_SHARE);
  put_shared_rate(rows, "one address", "atomic requests", (double)t->hottest_requests * t->scale,
                  g->clock_khz * 1e3 / ATOMIC_CLOCKS);
}

static void put_arithmetic(table_of_rates *rows) {
  const kiln_profile_info *t = &rows->p->info;
  const rates *r = rates_of(rows->p->gpu);
  uint64_t issues = t->sass.known ? t->sass.executed : t->all_warps;
  put_own(rows, "issue", t->sass.known ? "SASS instructions" : "PTX instructions", (double)issues * t->scale,
          SCHEDULERS);
  put_own(rows, "f32", "lanes", warps_of(t, KILN_CLASS_F32_FMA, KILN_CLASS_F32_OTHER), r->f32);
  put_own(rows, "f64", "lanes", warps_of(t, KILN_CLASS_F64_FMA, KILN_CLASS_F64_OTHER), r->f64);
  put_own(rows, "half", "lanes", warps_of(t, KILN_CLASS_HALF_FMA, KILN_CLASS_HALF_OTHER), r->half / 2.0);
  put_own(rows, "integer", "lanes", warps_of(t, KILN_CLASS_INTEGER, KILN_CLASS_MULTIPLY), r->integer);
  put_own(rows, "convert", "lanes", warps_of(t, KILN_CLASS_CONVERT, KILN_CLASS_CONVERT), r->convert);
  put_own(rows, "special", "lanes", warps_of(t, KILN_CLASS_SPECIAL, KILN_CLASS_SPECIAL), r->special);
  put_own(rows, "load/store", "passes", lsu_passes(t), 1);
}

// --- all of it ------------------------------------------------------------------------------------------------------

static const char *const assumptions[] = {
    "caches are cold; what L2 still has to write back counts as DRAM traffic",
    "DRAM reaches 92 % of its nominal rate, L2 70 %",
    "a launch takes 2 us beside its longest row; rows overlap fully",
    "a load from DRAM takes 0.7 us, and a warp has at most 4 under way",
    "multiprocessors run at their highest clock; their last wave takes as long as a full one",
    "integer, float and other units are counted on PTX, which ptxas may fuse or split",
    "lanes of a warp that branch apart each take an issue; idle lanes take their place in a unit",
    "atomics on one address take 2 clocks a request",
};

static double tail_of(const kiln_profile_info *t, const kl_gpu *g) {
  uint64_t at_once = (uint64_t)t->occupancy.blocks * g->multiprocessors;
  if (at_once == 0 || t->blocks == 0) return 1;
  // Blocks of a wave share their multiprocessor: the fullest one has ceil(blocks / multiprocessors).
  uint64_t fullest = (t->blocks + g->multiprocessors - 1) / g->multiprocessors;
  return (double)fullest * g->multiprocessors / (double)t->blocks;
}

void kl_predict(kiln_profile *p) {
  kiln_prediction *out = &p->info.prediction;
  table_of_rates rows = {.p = p, .rows = KL_NEW_N(&p->arena, kiln_profile_rate, 16)};
  occupy(p);
  rows.tail = tail_of(&p->info, p->gpu);
  put_memory(&rows);
  put_arithmetic(&rows);
  *out = (kiln_prediction){
      .rates = rows.rows, .rate_count = rows.n, .assumptions = assumptions, .assumption_count = KL_COUNT(assumptions)};
  for (size_t k = 0; k < rows.n; k++) {
    if (out->limiter && rows.rows[k].seconds <= out->seconds) continue;
    out->seconds = rows.rows[k].seconds;
    out->limiter = rows.rows[k].name;
  }
  if (out->seconds < LAUNCH) out->limiter = "launch";
  out->seconds += LAUNCH;
}
