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
  O_CHECK,
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
     "address each), u32:7, f32:1.5, b64:0xff, {s8:1,f64:2.5} (a struct)",
     true},
    {"--cooperative", NULL, "all blocks run at once"},
    {"--threads", "N", "CPU threads (default: all cores)"},
    {"--shuffle", "SEED", "run lanes, warps and blocks in another order; 0 (the default) is by rising number"},
    {"--perturb", "SEED",
     "give approximations (ex2.approx and their like) other values within their documented bounds; 0 (the default) is "
     "the nearest ones"},
    {"--limit", "N",
     "end a kernel whose blocks branch backwards or call more often than that; 0 (the default) is never"},
    {"--check", "[=LIST]",
     "look for errors beside faults: memory, undefined, unwritten, race and sync, or those of the list; exit status 1 "
     "if "
     "any is found"},
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
  kiln_sim_range *outputs;
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

static const struct {
  const char *name;
  uint32_t bits;
} checks[] = {{"memory", KILN_SIM_CHECK_MEMORY},       {"undefined", KILN_SIM_CHECK_UNDEFINED},
              {"unwritten", KILN_SIM_CHECK_UNWRITTEN}, {"race", KILN_SIM_CHECK_RACE},
              {"sync", KILN_SIM_CHECK_SYNC},           {"all", KILN_SIM_CHECK_ALL}};
enum { CHECKS = sizeof checks / sizeof checks[0] };

// Names separated by commas; none of them is all.
static int read_checks(const args *a, uint32_t *out) {
  const char *p = a->values[O_CHECK];
  *out = p && !*p ? KILN_SIM_CHECK_ALL : 0;
  while (p && *p) {
    size_t n = strcspn(p, ","), i = 0;
    while (i < CHECKS && (strlen(checks[i].name) != n || strncmp(checks[i].name, p, n) != 0)) i++;
    if (i == CHECKS || (p[n] && !p[n + 1]))
      return bad_value(a, O_CHECK, a->values[O_CHECK],
                       "expected all, or some of memory, undefined, unwritten, race and sync, as undefined,race");
    *out |= checks[i].bits;
    p += n + (p[n] != 0);
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
  if (!status) status = read_checks(a, &j->p.checks);
  if (!status && j->p.checks && a->values[O_PROFILE])
    status = bad_value(a, O_CHECK, a->values[O_CHECK], "expected no --profile beside it: each is a launch of its own");
  j->p.dynamic_shared_bytes = (uint32_t)shared;
  j->p.workers = (uint32_t)threads;
  j->p.shuffle = shuffle;
  j->p.perturb = perturb;
  j->p.most_branches = limit;
  j->arguments = calloc((size_t)a->count + 1, sizeof *j->arguments);
  j->outputs = calloc((size_t)a->count + 1, sizeof *j->outputs);
  if (!j->arguments || !j->outputs) return out_of_memory(a->count);
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

// A fault or a finding is what was looked for: it is told; after a fault the results are not written.
static int launch(job *j) {
  const void **values = calloc(j->n + 1, sizeof *values);
  if (!values) return out_of_memory((int64_t)j->n);
  for (size_t i = 0; i < j->n; i++) values[i] = argument_value(&j->arguments[i]);
  j->p.arguments = values;
  j->p.outputs = j->outputs;
  for (size_t i = 0; i < j->n; i++)
    if (argument_is_output(&j->arguments[i]))
      j->outputs[j->p.output_count++] = (kiln_sim_range){j->arguments[i].address, argument_bytes(&j->arguments[i])};
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

static void report_checks(const job *j) {
  size_t n = kiln_simulator_finding_count(j->s);
  printf("checks   ");
  for (int i = 0; i + 1 < CHECKS; i++)
    if (j->p.checks & checks[i].bits) printf("%s%s", j->p.checks & (checks[i].bits - 1) ? ", " : "", checks[i].name);
  if (n)
    printf(": %zu finding%s\n", n, n == 1 ? "" : "s");
  else
    printf(": nothing found\n");
}

static void report_text(const job *j) {
  const kiln_sim_launch_params *p = &j->p;
  printf("kernel   %s\n", kiln_sim_kernel_describe(j->k)->name);
  printf("launch   grid %u,%u,%u, block %u,%u,%u, %u bytes of shared memory\n", one(p->grid[0]), one(p->grid[1]),
         one(p->grid[2]), one(p->block[0]), one(p->block[1]), one(p->block[2]),
         kiln_sim_kernel_describe(j->k)->shared_bytes + p->dynamic_shared_bytes);
  printf("time     %.3f ms on this CPU\n", j->seconds * 1e3);
  if (j->fault.what) printf("fault    %s\n", j->fault.what);
  if (p->checks && !j->fault.what) report_checks(j);
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

static void print_text(const char *name, const char *text) {
  printf(", \"%s\": ", name);
  json_string(stdout, text);
}

static void print_number(const char *name, uint64_t n) {
  printf(", \"%s\": %llu", name, (unsigned long long)n);
}

// What lies at its address, and what is there.
static void report_place(const kiln_sim_finding *f) {
  if (f->space[0]) print_text("space", f->space);
  if (f->place_bytes) {
    print_text("place", f->place);
    printf(", \"place_offset\": %lld", (long long)f->place_offset);
    print_number("place_bytes", f->place_bytes);
  }
  if (!f->value_bytes) return;
  print_number("value", f->value);
  print_number("unknown", f->unknown);
  print_number("value_bytes", f->value_bytes);
}

static void report_calls(const kiln_sim_finding *f) {
  printf(", \"calls\": [");
  for (size_t i = 0; i < f->call_count; i++) {
    printf("%s{\"line\": %u, \"source_line\": %u, \"times\": %u", i ? ", " : "", f->calls[i].line,
           f->calls[i].source_line, f->calls[i].times);
    print_text("function", f->calls[i].function);
    printf("}");
  }
  printf("]");
}

static void report_findings(const job *j) {
  kiln_sim_finding f = {.struct_size = sizeof f};
  size_t n = kiln_simulator_finding_count(j->s);
  printf(", \"findings\": [");
  for (size_t i = 0; i < n && kiln_simulator_finding(j->cx, j->s, i, &f) == KILN_OK; i++) {
    printf("%s{\"check\": \"%s\", \"what\": ", i ? ", " : "", f.check);
    json_string(stdout, f.what);
    printf(", \"text\": ");
    json_string(stdout, f.text);
    printf(", \"line\": %u, \"source_line\": %u, \"address\": %llu, \"bytes\": %llu, \"times\": %llu", f.line,
           f.source_line, (unsigned long long)f.address, (unsigned long long)f.bytes, (unsigned long long)f.times);
    print_triple("block", f.block, 0);
    print_triple("thread", f.thread, 0);
    print_text("function", f.function);
    if (f.source[0]) print_text("source", f.source);
    report_place(&f);
    if (f.call_count) report_calls(&f);
    if (f.origin[0]) {
      print_text("origin", f.origin);
      print_number("origin_line", f.origin_line);
    }
    if (f.other_line) {
      printf(", \"other_line\": %u", f.other_line);
      print_triple("other_block", f.other_block, 0);
      print_triple("other_thread", f.other_thread, 0);
    }
    printf("}");
  }
  printf("]");
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
  if (j->p.checks) report_findings(j);
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
  bool ended = status == EXIT_DONE || (status == EXIT_DIFFERS && !j->fault.what);
  for (size_t i = 0; i < j->n && ended; i++) {
    int written = argument_write(j->s, &j->arguments[i]);
    if (written) status = written, ended = false;
  }
  if (status == EXIT_DONE || status == EXIT_DIFFERS) (j->a->values[O_JSON] ? report_json : report_text)(j);
  return status;
}

static int run(const args *a) {
  job j = {.a = a, .cx = kiln_context_create(NULL)};
  int status = j.cx ? work(&j) : out_of_memory(sizeof j);
  kiln_profile_destroy(&j.profile);
  kiln_simulator_close(&j.s);
  for (size_t i = 0; i < j.n; i++) argument_free(&j.arguments[i]);
  free(j.arguments);
  free(j.outputs);
  kiln_context_destroy(&j.cx);
  return status;
}

const verb verb_sim = {"sim",
                       "sim FILE.ptx [OPTION]...",
                       "run a kernel from PTX on a simulated GPU",
                       "Runs a kernel of PTX, whoever made it, on this CPU, with arrays from .npy files. A fault in it "
                       "(an access to what is "
                       "not its\nown, say) is told with block, thread and line, and is exit status 1;\n--check looks "
                       "for more: values that were never "
                       "written, outputs that are not written, races, barriers in which\nthreads are missing.",
                       options,
                       run,
                       true};
