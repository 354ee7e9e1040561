// kiln compile: PTX, machine code, C header, artifact, manifest, fused HLO, plan or LLVM IR of a module's kernels.

#include "folder.h"
#include "manifest.h"
#include "params.h"
#include "stored.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { O_EMIT = O_OTHERS, O_OUT, O_EACH, O_PREFIX, O_CODE, O_AFTER, O_DEPFILE, O_JOBS };
static const option options[] = {
    COMPILE_OPTIONS("sm_70 to sm_121, with a or f where NVIDIA has it, or host (default sm_90); several, as "
                    "sm_80,sm_90,\nfor one header, artifact or JSON with all of them"),
    {"--emit", "KIND", "ptx, cubin, header, artifact, json, hlo, plan or llvm (default ptx; for host llvm)"},
    {"-o", "OUT", "write to this file (default -, standard output)"},
    {"--each", NULL, "every fusion of ENTRY by itself, all that can be; with -o OUT into OUT/NAME.KIND"},
    {"--prefix", "NAME", "what a header's names begin with (default: the module's name)"},
    {"--code", "KIND",
     "what a header has: ptx (default), or cubin, by ptxas or nvJitLink, which runs on GPUs of one generation"},
    {"--print-after", "PASS", "print the IR after this pass (build, early-cse, dce) or after all, to standard error"},
    {"--depfile", "FILE", "write a make rule that says what OUT was made of, for build systems"},
    {"-j", "N", "of a folder: files at once (default: all cores)"},
    {0},
};

typedef struct kind {
  const char *name, *extension;
  const char *comment; // begins a line of it that says nothing; NULL: there is none
  unsigned keep;       // what of KILN_KEEP_* it takes
  bool ptx;            // needs a target that has PTX
  bool many;           // can be of several targets, and of kernels for two alignments
  bool beside;         // kernels for less alignment are a file of their own
  bool binary;
} kind;

static const kind kinds[] = {
    {"ptx", "ptx", "//", 0, true},
    {"cubin", "cubin", NULL, 0, true, .beside = true, .binary = true},
    {"header", "h", "//", 0, true, .many = true},
    {"artifact", "kiln", NULL, 0, false, .many = true, .binary = true},
    {"json", "json", NULL, 0, false, .many = true},
    {"hlo", "hlo", "//", KILN_KEEP_HLO, false},
    {"plan", "plan", "#", KILN_KEEP_PLAN, false},
    {"llvm", "ll", ";", KILN_KEEP_LLVM, false},
};
enum { KINDS = sizeof kinds / sizeof kinds[0], MOST_TARGETS = 64 };

typedef struct job {
  const args *a;
  const kind *kind;
  const char *out, *prefix; // NULL: not given
  kiln_context *cx;
  kiln_module *m;
  kiln_compile_params p;
  char *words; // of --target, cut into
  const char *targets[MOST_TARGETS];
  size_t target_count; // 0: the default one
  FILE *all, *reasons; // --each to standard output: what there is; as JSON, what there is not
  size_t compiled, refused;
} job;

static void print_pass(void *user, const char *kernel, const char *pass, const char *ir) {
  const char *want = user;
  if (strcmp(want, "all") != 0 && strcmp(want, pass) != 0) return;
  fprintf(stderr, "; %s after %s\n%s\n", kernel, pass, ir);
}

// --- what is asked for -----------------------------------------------------------------------------------------------

static const char *const passes[] = {"build", "early-cse", "dce", "all"};

static bool is_one_of(const char *word, const char *const *words, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(word, words[i]) == 0) return true;
  return false;
}

static bool is_identifier(const char *word) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return word[0] && !(word[0] >= '0' && word[0] <= '9') && word[strspn(word, letters)] == 0;
}

static int no_memory(void) {
  fprintf(stderr, "kiln compile: no memory for what is written\n");
  return EXIT_BAD_INPUT;
}

static int refuse(const char *format, const char *word) {
  fprintf(stderr, "kiln compile: ");
  fprintf(stderr, format, word);
  fprintf(stderr, "\n");
  return EXIT_BAD_INPUT;
}

// "sm_80,sm_90"
static int read_targets(job *j) {
  const char *given = j->a->values[O_TARGET];
  if (!given) return 0;
  j->words = strdup(given);
  if (!j->words) return no_memory();
  for (char *at = j->words, *end; at; at = end) {
    end = strchr(at, ',');
    if (end) *end++ = 0;
    if (!*at) return refuse("--target '%s': expected targets with a comma between two", given);
    if (j->target_count == MOST_TARGETS) return refuse("--target '%s': expected fewer targets", given);
    j->targets[j->target_count++] = at;
  }
  j->p.target = j->target_count == 1 ? j->targets[0] : NULL;
  return 0;
}

static int read_kind(job *j) {
  const char *emit = j->a->values[O_EMIT];
  bool host = false;
  for (size_t i = 0; i < j->target_count; i++) host |= strcmp(j->targets[i], "host") == 0;
  if (!emit) emit = host ? "llvm" : "ptx";
  for (const kind *k = kinds; k < kinds + KINDS; k++)
    if (strcmp(k->name, emit) == 0) j->kind = k;
  if (!j->kind) return refuse("--emit '%s': expected ptx, cubin, header, artifact, json, hlo, plan or llvm", emit);
  if (j->target_count > 1 && !j->kind->many)
    return refuse("--emit %s: expected one target; several take header, artifact or json", emit);
  if (!host || !j->kind->ptx) return 0;
  if (strcmp(emit, "ptx") == 0) return refuse("target %s has no PTX: --emit llvm, plan or json", "host");
  return refuse("target host has no PTX, so no %s", emit);
}

static int read_words(job *j) {
  const char *const *v = j->a->values;
  const char *after = v[O_AFTER];
  int status = read_targets(j);
  if (!status) status = read_kind(j);
  if (status) return status;
  if (after && !is_one_of(after, passes, sizeof passes / sizeof passes[0]))
    return refuse("--print-after '%s': expected build, early-cse, dce or all", after);
  if (after && v[O_ISOLATE]) return refuse("--print-after '%s': expected no --isolate beside it", after);
  if (v[O_EACH] && v[O_ROOM]) return refuse("--room '%s': expected no --each beside it", v[O_ROOM]);
  if (v[O_EACH] && v[O_FUSION]) return refuse("--fusion '%s': expected no name beside --each", v[O_FUSION]);
  if (v[O_LEAST] && !j->kind->many && !j->kind->beside)
    return refuse("--least-align '%s': expected --emit header, artifact, json or cubin beside it", v[O_LEAST]);
  j->prefix = v[O_PREFIX];
  if (j->prefix && !is_identifier(j->prefix))
    return refuse("--prefix '%s': expected a name in C: letters, digits and '_'", j->prefix);
  if (j->prefix && strcmp(j->kind->name, "header") != 0)
    return refuse("--prefix '%s': expected --emit header beside it", j->prefix);
  if (v[O_CODE] && strcmp(v[O_CODE], "ptx") != 0 && strcmp(v[O_CODE], "cubin") != 0)
    return refuse("--code '%s': expected ptx or cubin", v[O_CODE]);
  if (v[O_CODE] && strcmp(j->kind->name, "header") != 0)
    return refuse("--code '%s': expected --emit header beside it", v[O_CODE]);
  j->out = v[O_OUT] && strcmp(v[O_OUT], "-") != 0 ? v[O_OUT] : NULL;
  if (v[O_LEAST] && !j->out && j->kind->beside)
    return refuse("--least-align '%s': expected -o and a file, beside which there is one more", v[O_LEAST]);
  if (v[O_EACH] && !j->out && j->kind->binary)
    return refuse("--each: expected -o and a folder for files of --emit %s", j->kind->name);
  j->p.keep = j->kind->keep;
  j->p.after_pass = after ? print_pass : NULL;
  j->p.user = (void *)after;
  return 0;
}

// --- what comes out --------------------------------------------------------------------------------------------------

static int put_named_header(const job *j, FILE *to, const kiln_bundle *b) {
  bool each = j->a->values[O_EACH] != NULL;
  bool cubins = j->a->values[O_CODE] && strcmp(j->a->values[O_CODE], "cubin") == 0;
  const char *module = j->prefix ? j->prefix : kiln_module_name(j->m);
  char *prefix = header_prefix(module, !j->prefix || each ? j->p.fusion : NULL);
  int status = prefix ? put_header(to, j->cx, prefix, b, cubins) : no_memory();
  free(prefix);
  return status;
}

static int put_saved(const job *j, FILE *to, const kiln_bundle *b) {
  void *bytes = NULL;
  size_t n = 0;
  int status = report(j->cx, kiln_bundle_count(b) > 1 ? kiln_bundle_save(j->cx, b, &bytes, &n)
                                                      : kiln_artifact_save(j->cx, kiln_bundle_get(b, 0), &bytes, &n));
  if (!status) fwrite(bytes, 1, n, to);
  kiln_artifact_bytes_free(j->cx, bytes, n);
  return status;
}

static void put_manifests(FILE *to, const kiln_bundle *b) {
  size_t n = kiln_bundle_count(b);
  if (n > 1) fprintf(to, "{\"targets\": [");
  for (size_t i = 0; i < n; i++) {
    if (i) fprintf(to, ",\n");
    put_json(to, kiln_bundle_get(b, i));
  }
  if (n > 1) fprintf(to, "]}");
}

static int put_artifacts(const job *j, FILE *to, const kiln_bundle *b) {
  const char *emit = j->kind->name;
  const kiln_artifact *first = kiln_bundle_get(b, 0);
  if (strcmp(emit, "header") == 0) return put_named_header(j, to, b);
  if (strcmp(emit, "artifact") == 0) return put_saved(j, to, b);
  if (strcmp(emit, "cubin") == 0) return put_cubin(to, j->cx, first);
  if (strcmp(emit, "json") == 0) {
    put_manifests(to, b);
    return 0;
  }
  size_t size;
  const char *text = kiln_artifact_text(first,
                                        j->kind->keep == KILN_KEEP_HLO    ? KILN_TEXT_HLO
                                        : j->kind->keep == KILN_KEEP_PLAN ? KILN_TEXT_PLAN
                                        : j->kind->keep == KILN_KEEP_LLVM ? KILN_TEXT_LLVM
                                                                          : KILN_TEXT_PTX,
                                        &size);
  fwrite(text, 1, size, to);
  return 0;
}

// Whole or not at all.
static int write_file(const job *j, const char *path, const kiln_bundle *b) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  int status = f ? put_artifacts(j, f, b) : no_memory();
  if (f && !status && strcmp(j->kind->name, "json") == 0) fputc('\n', f);
  if (f && fclose(f) != 0) status = no_memory();
  if (!status) status = write_output(path, text, size);
  free(text);
  return status;
}

// "x.less.cubin" for "x.cubin", "x.less" for "x"; NULL: no memory.
static char *path_of_less(const char *path) {
  const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
  size_t n = strlen(path), stem = dot && dot != path && dot[-1] != '/' ? (size_t)(dot - path) : n;
  char *out = malloc(n + sizeof ".less");
  if (out) sprintf(out, "%.*s.less%s", (int)stem, path, path + stem);
  return out;
}

// Kernels for less alignment that go into a file of their own.
static int write_less(const job *j, const char *path, const kiln_artifact *less) {
  kiln_bundle *b = NULL;
  char *other = path_of_less(path);
  if (!other) return no_memory();
  int status = report(j->cx, kiln_bundle_create(j->cx, &less, 1, &b));
  if (!status) status = write_file(j, other, b);
  kiln_bundle_destroy(&b);
  free(other);
  return status;
}

static int write_artifacts(const job *j, const char *path, const kiln_bundle *b) {
  const kiln_artifact *less = j->kind->beside ? kiln_artifact_less(kiln_bundle_get(b, 0)) : NULL;
  int status = write_file(j, path, b);
  return status || !less ? status : write_less(j, path, less);
}

// For all targets that are asked for, or for the default one.
static kiln_status compile(job *j, kiln_bundle **out) {
  kiln_artifact *a = NULL;
  if (j->target_count > 1) return kiln_bundle_compile(j->cx, j->m, j->targets, j->target_count, &j->p, out);
  kiln_status st = kiln_compile(j->cx, j->m, &j->p, &a);
  if (st == KILN_OK) st = kiln_bundle_create(j->cx, (const kiln_artifact *const *)&a, 1, out);
  kiln_artifact_destroy(&a);
  return st;
}

// --- every fusion ----------------------------------------------------------------------------------------------------

static int write_into_folder(const job *j, const char *name, const kiln_bundle *b) {
  size_t n = strlen(j->out) + strlen(name) + strlen(j->kind->extension) + 3;
  char *path = malloc(n);
  if (!path) return no_memory();
  snprintf(path, n, "%s/%s.%s", j->out, name, j->kind->extension);
  int status = write_artifacts(j, path, b);
  free(path);
  return status;
}

static int write_one_of_all(job *j, const char *name, const kiln_bundle *b) {
  if (j->out) return write_into_folder(j, name, b);
  if (j->kind->comment) fprintf(j->all, "%s %s\n", j->kind->comment, name);
  if (!j->kind->comment && j->compiled) fprintf(j->all, ",\n");
  int status = put_artifacts(j, j->all, b);
  if (j->kind->comment) fprintf(j->all, "\n");
  return status;
}

// For JSON: the first error, which says why.
static void note_reason(job *j, const char *name) {
  fprintf(j->reasons, "%s{\"fusion\": ", j->refused ? ",\n" : "");
  json_string(j->reasons, name);
  for (size_t i = 0; i < kiln_diagnostics_count(j->cx); i++) {
    const kiln_diagnostic *d = kiln_diagnostics_get(j->cx, i);
    if (d->severity != KILN_ERROR) continue;
    fprintf(j->reasons, ", \"line\": %u, \"reason\": ", d->line);
    json_string(j->reasons, d->message);
    break;
  }
  fprintf(j->reasons, "}");
}

// What cannot be compiled is told and left out; anything else that fails ends it all.
static int compile_one_of_all(job *j, const char *name) {
  kiln_bundle *b = NULL;
  progress(name);
  kiln_status st = compile(j, &b);
  progress(NULL);
  if (st == KILN_E_UNSUPPORTED) note_reason(j, name);
  int status = report(j->cx, st);
  if (st == KILN_E_UNSUPPORTED) {
    j->refused++;
    return 0;
  }
  if (!status) status = write_one_of_all(j, name, b);
  j->compiled += !status;
  kiln_bundle_destroy(&b);
  return status;
}

static int compile_all(job *j) {
  size_t n = kiln_module_fusions(j->m, NULL, 0);
  const char **names = calloc(n + 1, sizeof *names);
  int status = names ? 0 : no_memory();
  if (names) kiln_module_fusions(j->m, names, n);
  for (size_t i = 0; !status && i < n; i++) {
    j->p.fusion = names[i];
    status = compile_one_of_all(j, names[i]);
  }
  free(names);
  // An ENTRY without fusions is one itself.
  return !status && n == 0 ? compile_one_of_all(j, kiln_module_name(j->m)) : status;
}

static int finish_all(job *j, const char *texts, const char *reasons) {
  if (j->refused)
    fprintf(stderr, "kiln compile: %zu of %zu fusions are compiled; %zu cannot be, for the reasons above\n",
            j->compiled, j->compiled + j->refused, j->refused);
  if (j->out) return 0;
  if (strcmp(j->kind->name, "json") != 0) return write_output(NULL, texts, strlen(texts));
  fprintf(stdout, "{\"fusions\": [%s], \"refused\": [%s]}\n", texts, reasons);
  return output_close(stdout, NULL);
}

static int run_each(job *j) {
  char *texts = NULL, *reasons = NULL;
  size_t n;
  if (j->out && mkdir(j->out, 0777) != 0 && errno != EEXIST) {
    fprintf(stderr, "kiln compile: cannot make the folder %s: %s\n", j->out, strerror(errno));
    return EXIT_BAD_INPUT;
  }
  j->all = open_memstream(&texts, &n);
  j->reasons = open_memstream(&reasons, &n);
  int status = j->all && j->reasons ? compile_all(j) : no_memory();
  if (j->all && fclose(j->all) != 0) status = no_memory();
  if (j->reasons && fclose(j->reasons) != 0) status = no_memory();
  if (!status) status = finish_all(j, texts, reasons);
  free(texts);
  free(reasons);
  return status ? status : j->refused ? EXIT_NOT_SUPPORTED : EXIT_DONE;
}

// --- the verb --------------------------------------------------------------------------------------------------------

static int run_one(job *j) {
  kiln_bundle *b = NULL;
  int status = report(j->cx, compile(j, &b));
  if (!status) status = write_artifacts(j, j->out, b);
  kiln_bundle_destroy(&b);
  return status;
}

// A name in a make rule.
static void put_escaped(FILE *to, const char *path) {
  for (; *path; path++) {
    if (strchr(" #\\", *path)) fputc('\\', to);
    if (*path == '$') fputc('$', to);
    fputc(*path, to);
  }
}

// The module is all that the output is made of.
static int write_depfile(const job *j) {
  const char *path = j->a->values[O_DEPFILE];
  if (!path) return 0;
  FILE *f = output_open(path);
  if (f) {
    put_escaped(f, j->out);
    fprintf(f, ": ");
    put_escaped(f, j->a->file);
    fprintf(f, "\n");
  }
  return output_close(f, path);
}

static int run_modules(const job *j) {
  unsigned long long jobs = 0;
  const char *const *v = j->a->values;
  int status = read_number(j->a, O_JOBS, 1, 1024, "expected 1 to 1024", &jobs);
  if (status) return status;
  if (!j->out) return refuse("%s is a folder: expected -o and another folder for what comes out", j->a->file);
  if (v[O_DEPFILE]) return refuse("--depfile '%s': expected one module, not a folder of them", v[O_DEPFILE]);
  folder_work w = {.a = j->a,
                   .from = j->a->file,
                   .to = j->out,
                   .extension = v[O_EACH] ? NULL : j->kind->extension,
                   .jobs = (unsigned)jobs,
                   .out_option = O_OUT,
                   .jobs_option = O_JOBS,
                   .threads_option = O_THREADS};
  return run_folder(&w);
}

static int run(const args *a) {
  job j = {.a = a};
  kiln_alias aliases[MOST_ALIASES];
  int status = read_params(a, aliases, &j.p);
  if (!status) status = read_words(&j);
  if (!status && is_folder(a->file)) {
    status = run_modules(&j);
    free(j.words);
    return status;
  }
  if (!status && a->values[O_JOBS]) status = refuse("-j %s: expected a folder of modules beside it", a->values[O_JOBS]);
  if (!status && a->values[O_DEPFILE] && (!j.out || a->values[O_EACH]))
    status = refuse("--depfile '%s': expected -o and one file beside it", a->values[O_DEPFILE]);
  if (status) {
    free(j.words);
    return status;
  }
  j.cx = kiln_context_create(NULL);
  status = open_module(j.cx, a->file, NULL, &j.m);
  kiln_sparse_slot *slots = NULL;
  size_t nslots = 0;
  if (!status && !a->values[O_EACH]) status = room_slots(j.cx, a, j.m, &slots, &nslots);
  j.p.sparse_slots = slots;
  j.p.sparse_slot_count = nslots;
  if (!status) status = a->values[O_EACH] ? run_each(&j) : run_one(&j);
  if (!status) status = write_depfile(&j);
  room_free(slots, nslots);
  kiln_module_destroy(&j.m);
  kiln_context_destroy(&j.cx);
  free(j.words);
  return status;
}

const verb verb_compile = {
    "compile",
    "compile FILE.hlo|FOLDER [OPTION]...",
    "compile to PTX, machine code, a C header or an artifact",
    "Compiles a module: each fusion of ENTRY is a kernel, and what else it does is put into fusions (--emit hlo).\n"
    "Of a folder every NAME.hlo, into NAME.KIND in the folder OUT.\n"
    "With --each, what cannot be compiled is told and left out; the exit status is 3 then.",
    options,
    run,
    true};
