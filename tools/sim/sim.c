// kiln sim: runs a kernel from PTX on the simulator.

#include "arguments.h"
#include "profile/profile.h"
#include <stdlib.h>
#include <string.h>

enum {
  O_ENTRY,
  O_GRID,
  O_BLOCK,
  O_CLUSTER,
  O_SHARED,
  O_ARG,
  O_COOPERATIVE,
  O_THREADS,
  O_SHUFFLE,
  O_PERTURB,
  O_LIMIT,
  O_PROFILE,
  O_GPU,
  O_JSON = O_GPU + PROFILE_COUNT
};
static const option options[] = {
    {"--entry", "NAME", "the kernel (default: the only one)"},
    {"--grid", "X,Y,Z", "blocks (default 1)"},
    {"--block", "X,Y,Z", "threads of a block (default 1)"},
    {"--cluster", "X,Y,Z", "blocks of a cluster (default: as the kernel says)"},
    {"--shared", "BYTES", "dynamic shared memory of a block (default 0)"},
    {"--arg", "ARG",
     "an argument, in the order of the parameters: in:A.npy, out:f32[1024]=B.npy, inout:A.npy=B.npy, zero:u8[64] (an "
     "address each), u32:7, f32:1.5, b64:0xff",
     true},
    {"--cooperative", NULL, "all blocks run at once"},
    {"--threads", "N", "CPU threads (default: all cores)"},
    {"--shuffle", "SEED", "run lanes, warps and blocks in another order; 0 (the default) is by rising number"},
    {"--perturb", "SEED",
     "give approximations (ex2.approx and their like) other values within their documented bounds; 0 (the default) is "
     "the nearest ones"},
    {"--limit", "N",
     "end a kernel whose blocks branch backwards or call more often than that; 0 (the default) is never"},
    {"--profile", NULL, "count what the kernel costs, and predict its time"},
    PROFILE_OPTIONS("with --profile: the GPU to predict for (default H100)"),
    {"--json", NULL, "report as one JSON object"},
    {0},
};

typedef struct job {
  const args *a;
  kiln_context *cx;
  kiln_simulator *s;
  kiln_sim_module *m;
  kiln_sim_kernel *k;
  kiln_sim_launch_params p;
  kiln_sim_fault fault;
  argument *arguments;
  size_t n;
  double seconds;
  profile_how how;
  kiln_profile *profile;
  kiln_profile_info costs; // of the profile
} job;

// --- words ----------------------------------------------------------------------------------------------------------

// "8", "8,4" or "8,4,2".
static int read_dims(const args *a, int option, uint32_t out[3]) {
  const char *p = a->values[option];
  for (int d = 0; p && d < 3; d++) {
    char *end;
    unsigned long v = *p >= '0' && *p <= '9' ? strtoul(p, &end, 10) : 0;
    if (v == 0 || v > UINT32_MAX || (*end && *end != ',') || (*end == ',' && d == 2))
      return bad_value(a, option, a->values[option], "expected one to three numbers of at least 1, as 8 or 16,16,1");
    out[d] = (uint32_t)v;
    if (!*end) return 0;
    p = end + 1;
  }
  return 0;
}

static int read_words(job *j) {
  unsigned long long shared = 0, threads = 0, shuffle = 0, perturb = 0, limit = 0;
  const args *a = j->a;
  j->p = (kiln_sim_launch_params){.struct_size = sizeof j->p, .cooperative = a->values[O_COOPERATIVE] != NULL};
  int status = read_dims(a, O_GRID, j->p.grid);
  if (!status) status = read_dims(a, O_BLOCK, j->p.block);
  if (!status) status = read_dims(a, O_CLUSTER, j->p.cluster);
  for (int d = 1; d < 3 && j->p.cluster[0]; d++) j->p.cluster[d] = j->p.cluster[d] ? j->p.cluster[d] : 1;
  if (!status) status = read_number(a, O_SHARED, 0, UINT32_MAX, "expected a number of bytes", &shared);
  if (!status) status = read_number(a, O_THREADS, 1, 64, "expected 1 to 64", &threads);
  if (!status) status = read_number(a, O_SHUFFLE, 0, ~0ull, "expected a whole number from 0 to 2^64-1", &shuffle);
  if (!status) status = read_number(a, O_PERTURB, 0, ~0ull, "expected a whole number from 0 to 2^64-1", &perturb);
  if (!status) status = read_number(a, O_LIMIT, 0, ~0ull, "expected a whole number from 0 to 2^64-1", &limit);
  if (!status) status = profile_words(a, O_GPU, &j->how);
  for (int o = O_GPU; o < O_GPU + PROFILE_COUNT && !status; o++)
    if (a->values[o] && !a->values[O_PROFILE]) status = bad_value(a, o, a->values[o], "expected --profile beside it");
  j->p.dynamic_shared_bytes = (uint32_t)shared;
  j->p.workers = (uint32_t)threads;
  j->p.shuffle = shuffle;
  j->p.perturb = perturb;
  j->p.most_branches = limit;
  j->arguments = calloc((size_t)a->count + 1, sizeof *j->arguments);
  if (!j->arguments) return out_of_memory(a->count);
  for (int i = 0; i < a->count && !status; i++)
    if (a->all[i].option == O_ARG) status = argument_read(a->all[i].value, &j->arguments[j->n++]);
  return status;
}

// --- the kernel -----------------------------------------------------------------------------------------------------

static int choose_kernel(job *j) {
  const char *name = j->a->values[O_ENTRY], *first = kiln_sim_module_kernel_at(j->m, 0);
  bool many = kiln_sim_module_kernel_at(j->m, 1) != NULL;
  if (!name && first && !many) name = first;
  if (name) return report(j->cx, kiln_sim_module_kernel(j->cx, j->m, name, &j->k));
  fprintf(stderr, "kiln sim: %s: expected %s\n", j->a->file,
          first ? "--entry NAME, as there are several kernels" : "a kernel (.entry), found none");
  for (size_t i = 0; first && (name = kiln_sim_module_kernel_at(j->m, i)); i++) fprintf(stderr, "  %s\n", name);
  return EXIT_BAD_INPUT;
}

static int open_kernel(job *j) {
  size_t size = 0;
  char *text = read_file(j->a->file, &size);
  if (!text) return EXIT_BAD_INPUT;
  const char *name = strcmp(j->a->file, "-") == 0 ? "<stdin>" : j->a->file;
  int status = report(j->cx, kiln_simulator_load(j->cx, j->s, name, text, size, &j->m));
  free(text);
  return status ? status : choose_kernel(j);
}

static int fill(job *j) {
  const kiln_sim_kernel_info *info = kiln_sim_kernel_describe(j->k);
  int status = 0;
  if (info->parameter_count != j->n) {
    fprintf(stderr, "kiln sim: %s has %zu parameter%s, found %zu --arg\n", info->name, info->parameter_count,
            info->parameter_count == 1 ? "" : "s", j->n);
    for (size_t i = 0; i < info->parameter_count; i++)
      fprintf(stderr, "  %zu: %s, %llu bytes (.%s)\n", i, info->parameters[i].name,
              (unsigned long long)info->parameters[i].bytes, info->parameters[i].type);
    return EXIT_BAD_INPUT;
  }
  for (size_t i = 0; i < j->n && !status; i++) status = argument_fits(&j->arguments[i], &info->parameters[i], i);
  for (size_t i = 0; i < j->n && !status; i++) status = argument_fill(j->cx, j->s, &j->arguments[i]);
  return status;
}

// A fault is what was looked for: it is told, and the results are not written.
static int launch(job *j) {
  const void **values = calloc(j->n + 1, sizeof *values);
  if (!values) return out_of_memory((int64_t)j->n);
  for (size_t i = 0; i < j->n; i++)
    values[i] = j->arguments[i].array ? &j->arguments[i].address : &j->arguments[i].value;
  j->p.arguments = values;
  j->fault = (kiln_sim_fault){.struct_size = sizeof j->fault};
  progress("running");
  double start = now_seconds();
  bool count = j->a->values[O_PROFILE] != NULL;
  kiln_status st = count ? kiln_sim_kernel_profile(j->cx, j->k, &j->p, &j->how.params, &j->fault, &j->profile)
                         : kiln_sim_kernel_launch(j->cx, j->k, &j->p, &j->fault);
  j->seconds = now_seconds() - start;
  progress(NULL);
  free(values);
  int status = report(j->cx, st);
  return st == KILN_E_DEVICE ? EXIT_DIFFERS : status;
}

// --- the report -----------------------------------------------------------------------------------------------------

static uint32_t one(uint32_t n) {
  return n ? n : 1;
}

static void report_text(const job *j) {
  const kiln_sim_launch_params *p = &j->p;
  printf("kernel   %s\n", kiln_sim_kernel_describe(j->k)->name);
  printf("launch   grid %u,%u,%u, block %u,%u,%u, %u bytes of shared memory\n", one(p->grid[0]), one(p->grid[1]),
         one(p->grid[2]), one(p->block[0]), one(p->block[1]), one(p->block[2]),
         kiln_sim_kernel_describe(j->k)->shared_bytes + p->dynamic_shared_bytes);
  printf("time     %.3f ms on this CPU\n", j->seconds * 1e3);
  if (j->fault.what) printf("fault    %s\n", j->fault.what);
  for (size_t i = 0; i < j->n && !j->fault.what; i++)
    if (j->arguments[i].to) printf("result   %s\n", j->arguments[i].to);
  if (!j->profile) return;
  printf("\n");
  profile_page(stdout, &j->costs, j->how.lines);
}

static void print_triple(const char *name, const uint32_t v[3], uint32_t least) {
  printf(", \"%s\": [%u, %u, %u]", name, v[0] > least ? v[0] : least, v[1] > least ? v[1] : least,
         v[2] > least ? v[2] : least);
}

static void report_json(const job *j) {
  const kiln_sim_fault *f = &j->fault;
  printf("{\"kernel\": ");
  json_string(stdout, kiln_sim_kernel_describe(j->k)->name);
  print_triple("grid", j->p.grid, 1);
  print_triple("block", j->p.block, 1);
  printf(", \"shared_bytes\": %u, \"ms\": %.4f, \"fault\": ",
         kiln_sim_kernel_describe(j->k)->shared_bytes + j->p.dynamic_shared_bytes, j->seconds * 1e3);
  if (f->what) {
    printf("{\"what\": ");
    json_string(stdout, f->what);
    printf(", \"line\": %u, \"address\": %llu", f->line, (unsigned long long)f->address);
    print_triple("block", f->block, 0);
    print_triple("thread", f->thread, 0);
    printf("}");
  } else
    printf("null");
  if (j->profile) {
    printf(", \"profile\": ");
    profile_json(stdout, &j->costs, j->how.lines);
  }
  printf("}\n");
}

static int finish_profile(job *j) {
  if (!j->profile) return 0;
  int status = profile_assemble(j->cx, j->profile);
  if (!status) status = profile_info(j->cx, j->profile, &j->costs);
  if (!status && j->how.svg) status = profile_draw(j->how.svg, &j->costs, 1);
  return status;
}

static int work(job *j) {
  int status = read_words(j);
  if (!status) status = report(j->cx, kiln_simulator_open(j->cx, &j->s));
  if (!status) status = open_kernel(j);
  if (!status) status = fill(j);
  if (!status) status = launch(j);
  if (!status) status = finish_profile(j);
  for (size_t i = 0; i < j->n && !status; i++) status = argument_write(j->s, &j->arguments[i]);
  if (status == EXIT_DONE || status == EXIT_DIFFERS) (j->a->values[O_JSON] ? report_json : report_text)(j);
  return status;
}

static int run(const args *a) {
  job j = {.a = a, .cx = kiln_context_create(NULL)};
  int status = j.cx ? work(&j) : out_of_memory(sizeof j);
  kiln_profile_destroy(&j.profile);
  kiln_simulator_close(&j.s);
  free(j.arguments);
  kiln_context_destroy(&j.cx);
  return status;
}

const verb verb_sim = {"sim",
                       "sim FILE.ptx [OPTION]...",
                       "run a kernel from PTX on a simulated GPU",
                       "Runs a kernel of PTX, whoever made it, on this CPU, with arrays from .npy files. A fault in it "
                       "(an access to what is "
                       "not its\nown, say) is told with block, thread and line, and is exit status 1.",
                       options,
                       run,
                       true};
