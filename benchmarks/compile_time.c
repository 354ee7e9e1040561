// How long compiling takes, stage by stage: kiln from HLO text to PTX, NVRTC from CUDA source to PTX, on the same
// computations (benchmarks/cuda/NAME.cu for examples/NAME.hlo), in one run.
//
// cold: the first compilation in a process of its own, with everything that has to be loaded or initialised before it.
// warm: the median of the later ones in that process; for kiln also its stages. NVRTC is loaded if it is installed;
// without it the table has kiln's columns alone. Times are those of the wall, or with --cpu what the process took of
// the CPU, which others on the machine do not change.

#include "measure.h"

#include <dlfcn.h>
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 21, PEER_RUNS = 5, PASSES = 3 };

static clockid_t which_clock = CLOCK_MONOTONIC;

static double clock_ms(void) {
  struct timespec t;
  clock_gettime(which_clock, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// --- NVRTC, as its documentation describes it ---------------------------------------------------------------------

typedef struct peer_program *peer_handle;
typedef struct peer {
  int (*create)(peer_handle *, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile)(peer_handle, int, const char *const *);
  int (*ptx_size)(peer_handle, size_t *);
  int (*ptx)(peer_handle, char *);
  int (*log_size)(peer_handle, size_t *);
  int (*log)(peer_handle, char *);
  int (*destroy)(peer_handle *);
  int (*version)(int *, int *);
} peer;

static const char *cuda_home(void) {
  const char *home = getenv("CUDA_HOME");
  return home && *home ? home : "/usr/local/cuda";
}

// The toolkit's, or else the system's.
static void *open_library(void) {
  static const char *const places[] = {"lib64/libnvrtc.so", "lib/libnvrtc.so.13", "lib/libnvrtc.so.12"};
  static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};
  char path[4096];
  void *lib = NULL;
  for (size_t i = 0; !lib && i < sizeof places / sizeof *places; i++) {
    snprintf(path, sizeof path, "%s/%s", cuda_home(), places[i]);
    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  for (size_t i = 0; !lib && i < sizeof names / sizeof *names; i++) lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return lib;
}

static bool load_peer(peer *p) {
  void *lib = open_library();
  if (!lib) return false;
  *(void **)&p->create = dlsym(lib, "nvrtcCreateProgram");
  *(void **)&p->compile = dlsym(lib, "nvrtcCompileProgram");
  *(void **)&p->ptx_size = dlsym(lib, "nvrtcGetPTXSize");
  *(void **)&p->ptx = dlsym(lib, "nvrtcGetPTX");
  *(void **)&p->log_size = dlsym(lib, "nvrtcGetProgramLogSize");
  *(void **)&p->log = dlsym(lib, "nvrtcGetProgramLog");
  *(void **)&p->destroy = dlsym(lib, "nvrtcDestroyProgram");
  *(void **)&p->version = dlsym(lib, "nvrtcVersion");
  return p->create && p->compile && p->ptx_size && p->ptx && p->log_size && p->log && p->destroy && p->version;
}

static void print_log(const peer *p, peer_handle h) {
  size_t n = 0;
  if (p->log_size(h, &n) || !n) return;
  char *text = malloc(n);
  if (text && p->log(h, text) == 0) fprintf(stderr, "%s\n", text);
  free(text);
}

// Source to PTX in memory; false after telling why not.
static bool peer_compile(const peer *p, const char *source) {
  char include[4096];
  const char *const options[] = {"--gpu-architecture=compute_90", include, "--fmad=false"};
  snprintf(include, sizeof include, "-I%s/include", cuda_home());
  peer_handle h = NULL;
  size_t n = 0;
  if (p->create(&h, source, "kernel.cu", 0, NULL, NULL)) return false;
  bool ok = p->compile(h, 3, options) == 0 && p->ptx_size(h, &n) == 0 && n > 0;
  char *ptx = ok ? malloc(n) : NULL;
  ok = ok && ptx && p->ptx(h, ptx) == 0;
  if (!ok) print_log(p, h);
  free(ptx);
  p->destroy(&h);
  return ok;
}

// --- measuring ----------------------------------------------------------------------------------------------------

typedef struct figures { // milliseconds
  double cold, warm, parse, generate, peer_cold, peer_warm;
  size_t ptx_bytes;
  int status;
} figures;

static figures measure_kiln(const char *text, size_t size) {
  figures r = {.status = 2};
  double all[RUNS], parse[RUNS], generate[RUNS], start = clock_ms();
  kiln_context *cx = kiln_context_create(NULL);
  for (int i = -1; i < RUNS; i++) {
    kiln_module *m = NULL;
    kiln_artifact *a = NULL;
    double t0 = i < 0 ? start : clock_ms();
    kiln_status st = kiln_module_parse(cx, "module", text, size, &m);
    double t1 = clock_ms();
    if (st == KILN_OK) st = kiln_compile(cx, m, NULL, &a);
    double t2 = clock_ms();
    if (st != KILN_OK) {
      fprintf(stderr, "%s", kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "?\n");
      return r;
    }
    kiln_artifact_text(a, KILN_TEXT_PTX, &r.ptx_bytes);
    if (i < 0) {
      r.cold = t2 - t0;
    } else {
      all[i] = t2 - t0;
      parse[i] = t1 - t0;
      generate[i] = t2 - t1;
    }
    kiln_artifact_destroy(&a);
    kiln_module_destroy(&m);
  }
  kiln_context_destroy(&cx);
  r.warm = median(all, RUNS);
  r.parse = median(parse, RUNS);
  r.generate = median(generate, RUNS);
  r.status = 0;
  return r;
}

static figures measure_peer(const char *source) {
  figures r = {.status = 2};
  double t[PEER_RUNS], start = clock_ms();
  peer p;
  if (!load_peer(&p)) return r;
  for (int i = -1; i < PEER_RUNS; i++) {
    double t0 = i < 0 ? start : clock_ms();
    if (!peer_compile(&p, source)) return r;
    if (i < 0)
      r.peer_cold = clock_ms() - t0;
    else
      t[i] = clock_ms() - t0;
  }
  r.peer_warm = median(t, PEER_RUNS);
  r.status = 0;
  return r;
}

// In a process of its own, so that cold is cold.
static figures apart(const char *text, size_t size, bool peer) {
  figures r = {.status = 4};
  int ends[2];
  if (pipe(ends)) return r;
  pid_t child = fork();
  if (child == 0) {
    r = peer ? measure_peer(text) : measure_kiln(text, size);
    _exit(write(ends[1], &r, sizeof r) == (ssize_t)sizeof r ? 0 : 4);
  }
  close(ends[1]);
  if (child < 0 || read(ends[0], &r, sizeof r) != (ssize_t)sizeof r) r.status = 4;
  close(ends[0]);
  if (child > 0) waitpid(child, NULL, 0);
  return r;
}

static double middle(const figures *f, size_t offset) {
  double v[PASSES];
  for (int i = 0; i < PASSES; i++) memcpy(&v[i], (const char *)&f[i] + offset, sizeof(double));
  return median(v, PASSES);
}

// Medians over passes that take turns.
static figures measure(const char *hlo, const char *cuda) {
  figures own[PASSES], other[PASSES], r = {0};
  size_t size, n;
  char *text = read_text(hlo, &size), *source = read_text(cuda, &n);
  bool peer = source != NULL;
  for (int i = 0; i < PASSES && !r.status; i++) {
    own[i] = text ? apart(text, size, false) : (figures){.status = 2};
    other[i] = peer ? apart(source, n, true) : (figures){.status = 2};
    r.status = own[i].status;
    peer &= other[i].status == 0;
  }
  free(text);
  free(source);
  if (r.status) return r;
  r = (figures){.cold = middle(own, offsetof(figures, cold)),
                .warm = middle(own, offsetof(figures, warm)),
                .parse = middle(own, offsetof(figures, parse)),
                .generate = middle(own, offsetof(figures, generate)),
                .ptx_bytes = own[0].ptx_bytes};
  if (peer) r.peer_cold = middle(other, offsetof(figures, peer_cold));
  if (peer) r.peer_warm = middle(other, offsetof(figures, peer_warm));
  return r;
}

// --- reporting ----------------------------------------------------------------------------------------------------

typedef enum form { TABLE, MARKDOWN, JSON } form;

static void print_head(form f) {
  if (f == JSON) {
    printf("{\"unit\": \"ms\", \"rows\": [");
    return;
  }
  const char *bar = f == MARKDOWN ? "| " : "";
  printf("%s%-18s %s%9s %s%9s %s%9s %s%9s %s%11s %s%11s %s%7s%s\n", bar, "ms", bar, "parse", bar, "generate", bar,
         "warm", bar, "cold", bar, "NVRTC warm", bar, "NVRTC cold", bar, "ratio", f == MARKDOWN ? " |" : "");
  if (f == MARKDOWN) printf("|---|---:|---:|---:|---:|---:|---:|---:|\n");
}

static void print_row(form f, const char *name, const figures *r, bool first) {
  double ratio = r->peer_warm / r->warm;
  if (f == JSON) {
    printf("%s\n  {\"name\": \"%s\", \"parse\": %.4f, \"generate\": %.4f, \"warm\": %.4f, \"cold\": %.4f, "
           "\"ptx_bytes\": %zu",
           first ? "" : ",", name, r->parse, r->generate, r->warm, r->cold, r->ptx_bytes);
    if (r->peer_warm > 0)
      printf(", \"nvrtc_warm\": %.3f, \"nvrtc_cold\": %.3f, \"ratio\": %.2f", r->peer_warm, r->peer_cold, ratio);
    printf("}");
    return;
  }
  const char *bar = f == MARKDOWN ? "| " : "";
  printf("%s%-18s %s%9.3f %s%9.3f %s%9.3f %s%9.2f ", bar, name, bar, r->parse, bar, r->generate, bar, r->warm, bar,
         r->cold);
  if (r->peer_warm > 0)
    printf("%s%11.2f %s%11.2f %s%6.1fx", bar, r->peer_warm, bar, r->peer_cold, bar, ratio);
  else
    printf("%s%11s %s%11s %s%7s", bar, "-", bar, "-", bar, "-");
  printf("%s\n", f == MARKDOWN ? " |" : "");
}

// Of FOLDER/NAME.hlo the name, and FOLDER/../benchmarks/cuda/NAME.cu, which need not be there.
static void cuda_beside(const char *hlo, char *cuda, size_t size, char *name, size_t name_size) {
  const char *slash = strrchr(hlo, '/'), *base = slash ? slash + 1 : hlo, *dot = strrchr(base, '.');
  snprintf(name, name_size, "%.*s", (int)(dot ? (size_t)(dot - base) : strlen(base)), base);
  snprintf(cuda, size, "%.*s../benchmarks/cuda/%s.cu", (int)(base - hlo), hlo, name);
}

int main(int argc, char **argv) {
  form f = TABLE;
  int at = 1;
  if (at < argc && strcmp(argv[at], "--json") == 0) f = JSON, at++;
  if (at < argc && strcmp(argv[at], "--markdown") == 0) f = MARKDOWN, at++;
  if (at < argc && strcmp(argv[at], "--cpu") == 0) which_clock = CLOCK_PROCESS_CPUTIME_ID, at++;
  if (at == argc) {
    fprintf(stderr, "usage: compile_time [--json | --markdown] [--cpu] FILE.hlo...\n");
    return 2;
  }
  print_head(f);
  for (int i = at; i < argc; i++) {
    char cuda[4096], name[256];
    cuda_beside(argv[i], cuda, sizeof cuda, name, sizeof name);
    figures r = measure(argv[i], cuda);
    if (r.status) return r.status;
    print_row(f, name, &r, i == at);
    fflush(stdout);
  }
  if (f == JSON) printf("\n]}\n");
  return 0;
}
