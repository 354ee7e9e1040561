// Caches: what an artifact is made from as a key; artifacts in memory; behind them a folder.

#include "jit/cache/cache.h"
#include "jit/cuda/cuda.h"
#include "ir/rewrite/canonical.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct kept {
  kl_cache_key key;
  kiln_artifact *a;
  size_t bytes;
  uint64_t used; // the cache's clock
} kept;

struct kiln_cache {
  kl_ctx *cx; // its own
  kl_folder *disk;
  char *folder;
  size_t folder_size; // of the text
  char no_folder[256];
  uint64_t most_memory, build; // build: of kiln, LLVM and this CPU, as a hash
  pthread_mutex_t lock;        // of what follows, and of cx
  VEC(kept) kept;
  uint32_t *slots; // number in `kept` + 1 by key, 0: none; a power of two
  size_t nslots;
  uint64_t clock;
  kiln_cache_info info;
};

// --- keys ---------------------------------------------------------------------------------------------------------

typedef struct note {
  uint64_t hash;
} note;

// The linker's name for this build of the library, which changes with every change of its code.
static int find_build(struct dl_phdr_info *info, size_t size, void *out) {
  uintptr_t here = (uintptr_t)&find_build;
  bool mine = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type == PT_LOAD && here - (info->dlpi_addr + p->p_vaddr) < p->p_memsz) mine = true;
  }
  for (int i = 0; mine && i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type == PT_NOTE)
      ((note *)out)->hash = kl_hash((const void *)(info->dlpi_addr + p->p_vaddr), p->p_memsz, ((note *)out)->hash);
  }
  return mine;
}

// Where there is no such name, the file's age and size stand for it.
static uint64_t build_of(void) {
  note n = {kl_hash(kiln_version(), strlen(kiln_version()), 0)};
  unsigned llvm[3];
  Dl_info file;
  struct stat st;
  dl_iterate_phdr(find_build, &n);
  if (dladdr((void *)(uintptr_t)&build_of, &file) && file.dli_fname && stat(file.dli_fname, &st) == 0) {
    uint64_t age[3] = {(uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec, (uint64_t)st.st_size};
    n.hash = kl_hash(age, sizeof age, n.hash);
  }
  LLVMGetVersion(&llvm[0], &llvm[1], &llvm[2]);
  n.hash = kl_hash(llvm, sizeof llvm, n.hash);
  char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
  n.hash = kl_hash(cpu, strlen(cpu), n.hash);
  n.hash = kl_hash(features, strlen(features), n.hash);
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
  return n.hash;
}

static uint64_t add_text(uint64_t h, const char *z) {
  return z ? kl_hash(z, strlen(z), h + 1) : kl_hash("", 0, h);
}

static uint64_t add_number(uint64_t h, uint64_t v) {
  return kl_hash(&v, sizeof v, h);
}

// All of the parameters but those of artifacts that are not kept, and where and by how many threads the work is
// done; whoever adds one adds it here.
_Static_assert(sizeof(kiln_compile_params) == 152, "these are all parameters of compilation");

static uint64_t hash_params(const kiln_compile_params *p, uint64_t h) {
  h = add_text(h, p->target);
  h = add_text(h, p->fusion);
  h = add_number(h, (uint64_t)p->argument_align | (uint64_t)p->least_align << 32);
  h = add_number(h, p->alias_count);
  for (size_t i = 0; i < p->alias_count; i++)
    h = add_number(h, (uint64_t)p->aliases[i].parameter << 32 | p->aliases[i].result);
  h = add_number(h, (uint64_t)p->max_count);
  h = add_number(
      h, (uint64_t)(p->scalars_by_value | p->programmatic << 1 | p->deterministic << 2 | p->separate_launches << 3) |
             (uint64_t)p->numerics << 8);
  if (!p->device) return add_number(h, 0);
  const kiln_device_info *d = p->device;
  uint64_t sizes[] = {d->sm,
                      d->multiprocessors,
                      d->threads,
                      d->registers,
                      d->shared_bytes,
                      d->block_shared,
                      d->block_shared_optin,
                      d->l2_bytes,
                      1};
  return kl_hash(sizes, sizeof sizes, add_text(h, d->target));
}

static bool is_kept(const kiln_compile_params *p) {
  return !p->keep && !p->after_pass && !p->lineinfo && !p->sparse_slot_count;
}

static kiln_status make_key(kl_ctx *cx, const kiln_cache *c, const kiln_module *m, const kiln_compile_params *p,
                            kl_cache_key *key) {
  uint8_t contents[KILN_HASH_SIZE];
  KL_TRY(kiln_module_hash(cx, m, contents));
  memcpy(key->v, contents, sizeof contents);
  key->v[2] = hash_params(p, c->build);
  key->v[3] = hash_params(p, kl_module_names_hash(m));
  return KILN_OK;
}

// --- memory -------------------------------------------------------------------------------------------------------

static bool same_key(const kl_cache_key *a, const kl_cache_key *b) {
  return memcmp(a, b, sizeof *a) == 0;
}

// Where the key is, or would be.
static uint32_t *find(const kiln_cache *c, const kl_cache_key *key) {
  for (size_t i = key->v[0];; i++) {
    uint32_t *slot = &c->slots[i & (c->nslots - 1)];
    if (!*slot || same_key(&c->kept.p[*slot - 1].key, key)) return slot;
  }
}

static void index_anew(kiln_cache *c, size_t nslots) {
  kl_free(c->cx, c->slots, c->nslots * sizeof *c->slots);
  c->nslots = nslots;
  c->slots = kl_alloc(c->cx, nslots * sizeof *c->slots);
  for (size_t i = 0; i < c->kept.n; i++) *find(c, &c->kept.p[i].key) = (uint32_t)i + 1;
}

static int by_use(const void *a, const void *b) {
  const kept *x = a, *y = b;
  return x->used < y->used ? 1 : x->used > y->used ? -1 : 0;
}

// What was used last stays, up to three quarters of the limit.
static void shrink(kiln_cache *c) {
  uint64_t bytes = 0;
  size_t n = 0;
  qsort(c->kept.p, c->kept.n, sizeof *c->kept.p, by_use);
  for (size_t i = 0; i < c->kept.n; i++) {
    kept *k = &c->kept.p[i];
    if (bytes + k->bytes <= c->most_memory - c->most_memory / 4) {
      bytes += k->bytes;
      c->kept.p[n++] = *k;
    } else {
      kiln_artifact_destroy(&k->a);
    }
  }
  c->kept.n = n;
  c->info.memory_bytes = bytes;
  index_anew(c, c->nslots);
}

static kiln_artifact *recall(kiln_cache *c, const kl_cache_key *key) {
  kiln_artifact *a = NULL;
  pthread_mutex_lock(&c->lock);
  uint32_t at = *find(c, key);
  if (at) {
    kept *k = &c->kept.p[at - 1];
    k->used = ++c->clock;
    a = kl_artifact_share(k->a);
    c->info.memory_hits++;
  }
  pthread_mutex_unlock(&c->lock);
  return a;
}

static void remember(kiln_cache *c, const kl_cache_key *key, kiln_artifact *a, size_t bytes) {
  pthread_mutex_lock(&c->lock);
  uint32_t *slot = find(c, key);
  if (!*slot && bytes <= c->most_memory) {
    VEC_PUSH(c->cx, &c->kept, (kept){*key, kl_artifact_share(a), bytes, ++c->clock});
    *slot = (uint32_t)c->kept.n;
    c->info.memory_bytes += bytes;
    if (c->info.memory_bytes > c->most_memory) shrink(c);
    if (2 * c->kept.n > c->nslots) index_anew(c, 2 * c->nslots);
  }
  pthread_mutex_unlock(&c->lock);
}

static void count(kiln_cache *c, uint64_t *number) {
  pthread_mutex_lock(&c->lock);
  ++*number;
  pthread_mutex_unlock(&c->lock);
}

// --- life ---------------------------------------------------------------------------------------------------------

// The folder as it is asked for, or as it is where nothing is said; NULL: none. The text is the caller's.
static char *choose_folder(kl_ctx *cx, const char *asked, size_t *size) {
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *tail = "/kiln";
  if (asked && !*asked) return NULL;
  if (asked) {
    base = asked, tail = "";
  } else if (!base || base[0] != '/') { // the standard ignores others
    base = home, tail = "/.cache/kiln";
  }
  if (!base || !*base) return NULL;
  *size = strlen(base) + strlen(tail) + 1;
  char *path = kl_alloc(cx, *size);
  memcpy(path, base, strlen(base));
  memcpy(path + strlen(base), tail, strlen(tail) + 1);
  return path;
}

static void open_folder(kiln_cache *c, const kiln_cache_params *p) {
  uint64_t most = p->max_folder_bytes ? p->max_folder_bytes : 1ull << 30;
  c->folder = choose_folder(c->cx, p->folder, &c->folder_size);
  if (c->folder) {
    c->disk = kl_folder_open(c->cx, c->folder, most, p->read_only, c->no_folder);
  } else {
    const char *why = p->folder ? "none was asked for" : "neither XDG_CACHE_HOME nor HOME says where";
    memcpy(c->no_folder, why, strlen(why) + 1);
  }
}

kiln_status kiln_cache_open(kiln_context *cx, const kiln_cache_params *params, kiln_cache **out) {
  kiln_cache_params p;
  KL_CLEAR(out);
  KL_EXPECT(cx, out);
  KL_TRY(KL_PARAMS_IN(cx, kiln_cache_params, params, &p));
  kiln_context_params own = {.struct_size = sizeof own, .allocator = cx->allocator};
  kl_ctx *ccx = kiln_context_create(&own);
  if (!ccx) return kl_out_of_memory(cx, sizeof *ccx, "a cache");
  kiln_cache *c = kl_alloc(ccx, sizeof *c);
  *c = (kiln_cache){.cx = ccx, .most_memory = p.max_memory_bytes ? p.max_memory_bytes : 256u << 20};
  pthread_mutex_init(&c->lock, NULL);
  c->build = build_of();
  index_anew(c, 64);
  open_folder(c, &p);
  *out = c;
  return KILN_OK;
}

void kiln_cache_close(kiln_cache **cp) {
  if (!cp || !*cp) return;
  kiln_cache *c = *cp;
  kl_ctx *cx = c->cx;
  for (size_t i = 0; i < c->kept.n; i++) kiln_artifact_destroy(&c->kept.p[i].a);
  VEC_FREE(cx, &c->kept);
  kl_free(cx, c->slots, c->nslots * sizeof *c->slots);
  kl_folder_close(&c->disk);
  if (c->folder) kl_free(cx, c->folder, c->folder_size);
  pthread_mutex_destroy(&c->lock);
  kl_free(cx, c, sizeof *c);
  kiln_context_destroy(&cx);
  *cp = NULL;
}

kiln_status kiln_cache_describe(kiln_context *cx, const kiln_cache *c, kiln_cache_info *out) {
  KL_EXPECT(cx, c, out);
  kiln_cache *own = (kiln_cache *)c; // the lock alone changes
  pthread_mutex_lock(&own->lock);
  kiln_cache_info info = c->info;
  pthread_mutex_unlock(&own->lock);
  info.struct_size = sizeof info;
  info.folder = c->disk ? c->folder : NULL;
  info.no_folder = c->disk ? NULL : c->no_folder;
  return KL_PARAMS_OUT(cx, kiln_cache_info, &info, out);
}

// --- compiling ----------------------------------------------------------------------------------------------------

static kiln_artifact *fetch(kl_ctx *cx, kiln_cache *c, const kl_cache_key *key) {
  void *bytes = NULL;
  size_t size = 0;
  const char *why;
  kiln_artifact *a = NULL;
  if (!c->disk) return NULL;
  kl_found found = kl_folder_get(c->disk, cx, key, &bytes, &size);
  if (found == KL_FOUND) {
    a = kl_record_read(&cx->allocator, bytes, size, &why);
    kl_free(cx, bytes, size + 1);
  }
  if (a) {
    count(c, &c->info.folder_hits);
    remember(c, key, a, size);
  } else if (found != KL_FOUND_NOTHING) {
    count(c, &c->info.damaged);
    kl_folder_drop(c->disk, cx, key);
  }
  return a;
}

static void keep(kl_ctx *cx, kiln_cache *c, const kl_cache_key *key, kiln_artifact *a) {
  kl_sb record;
  kl_sb_init(&record, cx);
  kl_record_write(a, &record);
  remember(c, key, a, record.n);
  if (c->disk && !kl_folder_put(c->disk, cx, key, record.p, record.n)) count(c, &c->info.unwritten);
  kl_sb_free(&record);
}

kiln_status kiln_cache_compile(kiln_context *cx, kiln_cache *c, const kiln_module *m, const kiln_compile_params *params,
                               kiln_artifact **out) {
  kiln_compile_params p;
  kiln_device_info device;
  kl_cache_key key;
  KL_CLEAR(out);
  KL_EXPECT(cx, c, m, out);
  KL_TRY(KL_PARAMS_IN(cx, kiln_compile_params, params, &p));
  if (p.device) {
    KL_TRY(KL_PARAMS_IN(cx, kiln_device_info, p.device, &device));
    p.device = &device;
  }
  if (!is_kept(&p)) {
    count(c, &c->info.uncached);
    return kiln_compile(cx, m, params, out);
  }
  KL_TRY(make_key(cx, c, m, &p, &key));
  if ((*out = recall(c, &key)) || (*out = fetch(cx, c, &key))) return KILN_OK;
  KL_TRY(kiln_compile(cx, m, params, out));
  count(c, &c->info.misses);
  keep(cx, c, &key, *out);
  return KILN_OK;
}

// --- machine code ---------------------------------------------------------------------------------------------------

// Of the driver's compiler alone: which kiln has made the PTX does not matter.
static kl_cache_key code_key_of(const kl_code_key *k) {
  uint64_t made_for = add_number(add_number(0, (uint64_t)k->driver), k->sm);
  kl_cache_key key = {{0, 0, made_for, 0x6375}};
  kl_hash_twice(k->ptx, k->size, (const uint64_t[]){1, 2}, key.v);
  return key;
}

static bool get_code(void *user, kl_ctx *cx, const kl_code_key *k, void **code, size_t *size) {
  kiln_cache *c = user;
  kl_cache_key key = code_key_of(k);
  void *bytes = NULL;
  size_t n = 0;
  kl_found found = kl_folder_get(c->disk, cx, &key, &bytes, &n);
  const void *inside = found == KL_FOUND ? kl_record_read_code(bytes, n, size) : NULL;
  *code = inside ? kl_try_alloc(cx, *size + 1) : NULL;
  if (*code) memcpy(*code, inside, *size);
  if (bytes) kl_free(cx, bytes, n + 1);
  if (!inside && found != KL_FOUND_NOTHING) {
    count(c, &c->info.damaged);
    kl_folder_drop(c->disk, cx, &key);
  }
  count(c, *code ? &c->info.code_hits : &c->info.code_misses);
  return *code != NULL;
}

static void put_code(void *user, kl_ctx *cx, const kl_code_key *k, const void *code, size_t size) {
  kiln_cache *c = user;
  kl_cache_key key = code_key_of(k);
  kl_sb record;
  kl_sb_init(&record, cx);
  kl_record_write_code(code, size, &record);
  if (!kl_folder_put(c->disk, cx, &key, record.p, record.n)) count(c, &c->info.unwritten);
  kl_sb_free(&record);
}

static void drop_code(void *user, kl_ctx *cx, const kl_code_key *k) {
  kiln_cache *c = user;
  kl_cache_key key = code_key_of(k);
  kl_folder_drop(c->disk, cx, &key);
}

kiln_status kiln_cache_prepare(kiln_context *cx, kiln_cache *c, kiln_cuda_kernel *k) {
  KL_EXPECT(cx, c, k);
  kl_code_store store = {c, get_code, put_code, drop_code};
  return c->disk ? kl_cuda_prepare_kept(cx, k, &store) : kiln_cuda_kernel_prepare(cx, k);
}
