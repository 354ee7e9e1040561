// The simulator for those who embed it: memory, modules, kernels, launches, over the machine.

#include "sim/check/findings.h"
#include "sim/count/count.h"

#include <kiln/sim.h>

_Static_assert((int)KILN_SIM_CHECK_MEMORY == KL_CHECK_MEMORY && (int)KILN_SIM_CHECK_UNDEFINED == KL_CHECK_UNDEFINED &&
                   (int)KILN_SIM_CHECK_UNWRITTEN == KL_CHECK_UNWRITTEN && (int)KILN_SIM_CHECK_RACE == KL_CHECK_RACE &&
                   (int)KILN_SIM_CHECK_SYNC == KL_CHECK_SYNC && (int)KILN_SIM_CHECK_ALL == KL_CHECK_ALL,
               "one list of checks");

struct kiln_simulator {
  kl_ctx *cx;
  kl_memory memory;
  kiln_sim_module *modules;
  kl_findings findings; // of the last launch
};

struct kiln_sim_module {
  kiln_simulator *of;
  kl_loaded *loaded;
  kl_arena arena;
  const char **names; // of kernels
  size_t count;
  kiln_sim_kernel *kernels;
  kiln_sim_module *next;
};

struct kiln_sim_kernel {
  kiln_sim_module *of;
  kl_kernel *kernel;
  kiln_sim_kernel_info info;
  kiln_sim_kernel *next;
};

// --- life -----------------------------------------------------------------------------------------------------------

// Addresses, not room: what is not written takes none.
static const uint64_t MOST_MEMORY = (uint64_t)1 << 45;

kiln_status kiln_simulator_open(kiln_context *cx, kiln_simulator **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, out);
  kiln_simulator *s = kl_alloc(cx, sizeof *s);
  kl_context_hold(cx);
  s->cx = cx;
  kl_memory_init(&s->memory, cx, MOST_MEMORY);
  kl_findings_init(&s->findings, cx);
  *out = s;
  return KILN_OK;
}

static void module_free(kiln_sim_module *m) {
  kl_unload(m->of->cx, m->loaded);
  kl_arena_free(&m->arena);
  kl_free(m->of->cx, m, sizeof *m);
}

void kiln_simulator_close(kiln_simulator **sp) {
  kiln_simulator *s = sp ? *sp : NULL;
  if (!s) return;
  kl_ctx *cx = s->cx;
  for (kiln_sim_module *m = s->modules, *next; m; m = next) {
    next = m->next;
    module_free(m);
  }
  kl_findings_free(&s->findings);
  kl_memory_free(&s->memory);
  kl_free(cx, s, sizeof *s);
  kl_context_release(cx);
  *sp = NULL;
}

static kiln_status own_context(kl_ctx *cx, const kiln_simulator *s) {
  if (cx == s->cx) return KILN_OK;
  return kl_invalid(cx, KL_NOWHERE, "expected the context that the simulator was opened in, found another one");
}

// --- memory ---------------------------------------------------------------------------------------------------------

kiln_status kiln_simulator_alloc(kiln_context *cx, kiln_simulator *s, uint64_t bytes, uint64_t *address) {
  KL_CLEAR(address);
  KL_EXPECT(cx, s, address);
  KL_TRY(own_context(cx, s));
  if (bytes == 0) return kl_invalid(cx, KL_NOWHERE, "expected at least one byte of memory, found 0");
  if (kl_memory_alloc(&s->memory, bytes, KL_REGION_USER, (kl_str){0}, address))
    return kl_out_of_memory(cx, bytes, "the simulated device");
  return KILN_OK;
}

bool kiln_simulator_free(kiln_simulator *s, uint64_t address) {
  const kl_region *r = s ? kl_memory_find(&s->memory, address) : NULL;
  return r && r->kind == KL_REGION_USER && kl_memory_release(&s->memory, address);
}

void *kiln_simulator_bytes(kiln_simulator *s, uint64_t address, uint64_t bytes) {
  char *p = s ? kl_memory_at(&s->memory, address, bytes) : NULL;
  if (p) kl_memory_define(&s->memory, address, bytes);
  return p;
}

// --- modules --------------------------------------------------------------------------------------------------------

static bool is_kernel(const kl_ptx_func *f) {
  return f->entry && f->defined;
}

kiln_status kiln_simulator_load(kiln_context *cx, kiln_simulator *s, const char *name, const char *ptx, size_t size,
                                kiln_sim_module **out) {
  kl_loaded *loaded = NULL;
  KL_CLEAR(out);
  KL_EXPECT(cx, s, ptx, out);
  KL_TRY(own_context(cx, s));
  KL_TRY(kl_load(cx, &s->memory, name ? name : "ptx", (kl_str){ptx, size}, &loaded));
  kiln_sim_module *m = kl_alloc(cx, sizeof *m);
  m->of = s;
  m->loaded = loaded;
  kl_arena_init(&m->arena, cx);
  const kl_ptx_module *text = kl_loaded_ptx(loaded);
  m->names = KL_NEW_N(&m->arena, const char *, text->nfuncs);
  for (uint32_t i = 0; i < text->nfuncs; i++)
    if (is_kernel(&text->funcs[i])) m->names[m->count++] = kl_str_dup(&m->arena, text->funcs[i].name).p;
  m->next = s->modules;
  s->modules = m;
  *out = m;
  return KILN_OK;
}

const char *kiln_sim_module_kernel_at(const kiln_sim_module *m, size_t i) {
  return m && i < m->count ? m->names[i] : NULL;
}

bool kiln_sim_module_variable(const kiln_sim_module *m, const char *name, uint64_t *address, uint64_t *bytes) {
  KL_CLEAR(address);
  KL_CLEAR(bytes);
  return m && name && address && bytes && kl_loaded_variable(m->loaded, kl_str_of(name), address, bytes);
}

// --- kernels --------------------------------------------------------------------------------------------------------

static kiln_sim_kernel_info describe(kl_arena *a, const kl_kernel *k) {
  kl_kernel_facts facts = kl_kernel_describe(k);
  const kl_ptx_tuning *t = &facts.func->tuning;
  kiln_sim_parameter *p = KL_NEW_N(a, kiln_sim_parameter, facts.params);
  for (uint32_t i = 0; i < facts.params; i++) {
    const kl_ptx_var *v = &facts.func->vars[facts.func->nreturns + i];
    p[i] = (kiln_sim_parameter){.name = kl_str_dup(a, v->name).p,
                                .type = kl_ptx_type_names[v->type],
                                .bytes = v->bytes,
                                .alignment = v->align ? v->align : 1};
  }
  kiln_sim_kernel_info info = {.name = kl_str_dup(a, facts.name).p,
                               .parameters = p,
                               .parameter_count = facts.params,
                               .shared_bytes = facts.shared_bytes,
                               .local_bytes = facts.local_bytes,
                               .most_threads = facts.max_threads};
  for (int d = 0; d < 3 && t->reqntid[0]; d++) info.block[d] = t->reqntid[d] ? t->reqntid[d] : 1;
  return info;
}

kiln_status kiln_sim_module_kernel(kiln_context *cx, kiln_sim_module *m, const char *name, kiln_sim_kernel **out) {
  kl_kernel *kernel = NULL;
  KL_CLEAR(out);
  KL_EXPECT(cx, m, name, out);
  KL_TRY(own_context(cx, m->of));
  KL_TRY(kl_kernel_prepare(cx, m->loaded, kl_str_of(name), &kernel));
  for (*out = m->kernels; *out && (*out)->kernel != kernel;) *out = (*out)->next;
  if (*out) return KILN_OK;
  kiln_sim_kernel *k = KL_NEW(&m->arena, kiln_sim_kernel);
  *k = (kiln_sim_kernel){.of = m, .kernel = kernel, .info = describe(&m->arena, kernel), .next = m->kernels};
  m->kernels = k;
  *out = k;
  return KILN_OK;
}

const kiln_sim_kernel_info *kiln_sim_kernel_describe(const kiln_sim_kernel *k) {
  return k ? &k->info : NULL;
}

// --- launches -------------------------------------------------------------------------------------------------------

static kiln_status arguments(kl_ctx *cx, const kiln_sim_kernel *k, const void *const *given, char *to) {
  for (uint32_t i = 0; i < k->info.parameter_count; i++) {
    uint32_t at, bytes;
    if (!given || !given[i])
      return kl_invalid(cx, KL_NOWHERE, "expected a pointer to argument %u, '%s' of %s, found NULL", i,
                        k->info.parameters[i].name, k->info.name);
    kl_kernel_param(k->kernel, i, &at, &bytes);
    memcpy(to + at, given[i], bytes);
  }
  return KILN_OK;
}

static kiln_status tell(kl_ctx *cx, const kl_fault *f, kiln_sim_fault *out) {
  kiln_sim_fault own = {.struct_size = sizeof own, .address = f->address};
  if (f->kind) own.what = kl_fault_text(f->kind);
  if (f->instr) own.line = f->instr->at.line;
  memcpy(own.block, f->block, sizeof own.block);
  memcpy(own.thread, f->thread, sizeof own.thread);
  return KL_PARAMS_OUT(cx, kiln_sim_fault, &own, out);
}

static kiln_status use(kl_ctx *cx, kl_checks *c, const kiln_sim_range *r, size_t n, kl_use use) {
  if (n && !r) return kl_invalid(cx, KL_NOWHERE, "expected %zu ranges of memory, found NULL", n);
  for (size_t i = 0; i < n; i++) {
    if (r[i].bytes && !kl_memory_at(c->memory, r[i].address, r[i].bytes))
      return kl_invalid(cx, KL_NOWHERE, "expected %llu bytes at 0x%llx in one piece of memory, found none",
                        (unsigned long long)r[i].bytes, (unsigned long long)r[i].address);
    kl_checks_use(c, r[i].address, r[i].bytes, use);
  }
  return KILN_OK;
}

static kiln_status run_checked(kl_ctx *cx, const kiln_sim_kernel *k, const kiln_sim_launch_params *p,
                               const kl_launch *l, kl_fault *fault) {
  kiln_simulator *sim = k->of->of;
  kl_checks c;
  kl_checks_init(&c, cx, &sim->memory, p->checks);
  kiln_status s = use(cx, &c, p->outputs, p->output_count, KL_USE_OUTPUT);
  if (s == KILN_OK) s = use(cx, &c, p->scratch, p->scratch_count, KL_USE_SCRATCH);
  if (s == KILN_OK) s = kl_checks_run(&c, l, fault);
  if (kl_findings_take(&sim->findings, &c, kl_loaded_ptx(k->of->loaded)) && s == KILN_OK) s = KILN_E_DEVICE;
  kl_checks_free(&c);
  return s;
}

// What is wanted of a launch beside its effects; gpu NULL: nothing.
typedef struct counting {
  const kl_gpu *gpu;
  kl_sample sample;
  kiln_profile **out;
} counting;

static kiln_status launch(kl_ctx *cx, const kiln_sim_kernel *k, const kiln_sim_launch_params *p, const counting *c,
                          const void *params, kiln_sim_fault *out) {
  kl_fault fault = {0};
  kl_launch l = {.kernel = k->kernel,
                 .dynamic_shared = p->dynamic_shared_bytes,
                 .params = params,
                 .cooperative = p->cooperative,
                 .workers = p->workers,
                 .shuffle = p->shuffle,
                 .perturb = p->perturb,
                 .most_branches = p->most_branches,
                 .sample = c->sample};
  for (int d = 0; d < 3; d++) {
    l.grid[d] = p->grid[d] ? p->grid[d] : 1;
    l.block[d] = p->block[d] ? p->block[d] : 1;
    l.cluster[d] = p->cluster[d];
  }
  kl_memory *m = &k->of->of->memory;
  if (!p->checks) kl_memory_define_all(m);
  kiln_status s = c->gpu      ? kl_profile_run(cx, m, &l, kl_loaded_ptx(k->of->loaded), c->gpu, &fault, c->out)
                  : p->checks ? run_checked(cx, k, p, &l, &fault)
                              : kl_launch_run(cx, m, &l, &fault);
  if (out) KL_TRY(tell(cx, &fault, out));
  return s;
}

static kiln_status launch_with(kl_ctx *cx, kiln_sim_kernel *k, const kiln_sim_launch_params *params, const counting *c,
                               kiln_sim_fault *fault) {
  kiln_sim_launch_params p;
  kl_fault none = {0};
  KL_TRY(own_context(cx, k->of->of));
  KL_TRY(KL_PARAMS_IN(cx, kiln_sim_launch_params, params, &p));
  if (fault) KL_TRY(tell(cx, &none, fault));
  kl_findings_clear(&k->of->of->findings);
  if (p.checks & ~(uint32_t)KILN_SIM_CHECK_ALL)
    return kl_invalid(cx, KL_NOWHERE, "expected checks of kiln_sim_check (KILN_SIM_CHECK_ALL: all), found 0x%x",
                      p.checks);
  if (p.checks && c->gpu)
    return kl_invalid(cx, KL_NOWHERE, "expected a profile without checks: each is a launch of its own");
  size_t bytes = kl_kernel_describe(k->kernel).param_bytes + 1;
  char *values = kl_try_alloc(cx, bytes);
  if (!values) return kl_out_of_memory(cx, bytes, "the arguments of a launch");
  kiln_status s = arguments(cx, k, p.arguments, values);
  if (s == KILN_OK) s = launch(cx, k, &p, c, values, fault);
  kl_free(cx, values, bytes);
  return s;
}

kiln_status kiln_sim_kernel_launch(kiln_context *cx, kiln_sim_kernel *k, const kiln_sim_launch_params *params,
                                   kiln_sim_fault *fault) {
  KL_EXPECT(cx, k, params);
  return launch_with(cx, k, params, &(counting){0}, fault);
}

// --- profiles -------------------------------------------------------------------------------------------------------

static kiln_status choose_gpu(kl_ctx *cx, const char *name, const kl_gpu **out) {
  *out = kl_gpu_find(kl_str_of(name ? name : "H100"));
  if (*out) return KILN_OK;
  kl_sb known;
  kl_sb_init(&known, cx);
  for (size_t i = 0; i < kl_gpus_n; i++) kl_sbf(&known, "%s%s", i ? ", " : "", kl_gpus[i].name);
  kl_invalid(cx, KL_NOWHERE, "expected a GPU of %s, found '%s'", known.p, name);
  kl_sb_free(&known);
  return KILN_E_INVALID;
}

kiln_status kiln_sim_kernel_profile(kiln_context *cx, kiln_sim_kernel *k, const kiln_sim_launch_params *launch,
                                    const kiln_profile_params *params, kiln_sim_fault *fault, kiln_profile **out) {
  kiln_profile_params own = {0};
  counting c = {.out = out};
  KL_CLEAR(out);
  KL_EXPECT(cx, k, launch, out);
  if (params) KL_TRY(KL_PARAMS_IN(cx, kiln_profile_params, params, &own));
  KL_TRY(choose_gpu(cx, own.gpu, &c.gpu));
  c.sample = (kl_sample){own.first, own.count, own.stride ? own.stride : 1, own.run ? own.run : 1};
  return launch_with(cx, k, launch, &c, fault);
}

kiln_status kiln_profile_describe(kiln_context *cx, const kiln_profile *p, kiln_profile_info *out) {
  KL_EXPECT(cx, p, out);
  kiln_profile_info own = kl_profile_info(p);
  return KL_PARAMS_OUT(cx, kiln_profile_info, &own, out);
}

size_t kiln_simulator_finding_count(const kiln_simulator *s) {
  return s ? s->findings.list.n : 0;
}

kiln_status kiln_simulator_finding(kiln_context *cx, const kiln_simulator *s, size_t i, kiln_sim_finding *out) {
  KL_EXPECT(cx, s, out);
  KL_TRY(own_context(cx, s));
  return kl_findings_get(cx, &s->findings, i, out);
}
