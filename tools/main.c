// The kiln command: verbs and general help.

#include "kiln.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const verb *const verbs[] = {&verb_run,      &verb_bench,   &verb_compile, &verb_explain, &verb_verify,
                                    &verb_indexing, &verb_map,     &verb_layout,  &verb_sparse,  &verb_tile,
                                    &verb_sim,      &verb_profile, &verb_devices};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static void help(FILE *to) {
  fprintf(to, "kiln %s: compiles tensor fusions (HLO) to NVIDIA GPU kernels, and runs and checks them\n\nUsage:\n",
          kiln_version());
  for (int i = 0; i < VERBS; i++) fprintf(to, "  kiln %-32s %s\n", verbs[i]->synopsis, verbs[i]->summary);
  fprintf(to,
          "  kiln VERB --help                      what the verb does, and its options\n"
          "  kiln --version\n\n"
          "FILE.hlo and FILE.ptx may be - for standard input.\n"
          "Exit status: 0 done; 1 results differ or a kernel has a fault; 2 bad usage or bad input; 3 not supported, "
          "with the reason;\n"
          "4 device trouble. stdout is the result, stderr the talk; --json makes stdout one JSON object, or nothing\n"
          "where there is no result (status 2 and more).\n");
}

// A result that could not be written whole is no success.
static int finish(int status) {
  int written = output_close(stdout, NULL);
  return written ? written : status;
}

// Where a standard stream is closed, the next file that anybody opens (a GPU's driver keeps some) would be taken for
// it. What is put in its place cannot be read or written, so that using it fails as it should.
static void hold_standard_streams(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) == -1) return;
}

static const verb *find_verb(const char *word) {
  for (int i = 0; i < VERBS; i++)
    if (strcmp(word, verbs[i]->name) == 0) return verbs[i];
  return NULL;
}

static int unknown_verb(const char *word) {
  const char *names[VERBS + 4] = {"help", "--help", "--version"};
  for (int i = 0; i < VERBS; i++) names[3 + i] = verbs[i]->name;
  const char *meant = nearest(word, strlen(word), names);
  bool is_file = access(word, R_OK) == 0;
  fprintf(stderr, "kiln: unknown verb '%s': ", word);
  if (meant || is_file)
    fprintf(stderr, "did you mean kiln %s%s%s? Expected ", meant ? meant : "run", meant ? "" : " ", meant ? "" : word);
  else
    fprintf(stderr, "expected ");
  for (int i = 0; i < VERBS; i++)
    fprintf(stderr, "%s%s", verbs[i]->name, i + 2 < VERBS ? ", " : i + 2 == VERBS ? " or " : " (kiln --help)\n");
  return EXIT_BAD_INPUT;
}

static bool is_help(const char *word) {
  return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run_verb(const verb *v, int argc, char **argv) {
  for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (!is_help(argv[i])) continue;
    verb_help(v, stdout);
    return finish(EXIT_DONE);
  }
  args parsed;
  int status = args_parse(v, argc, argv, &parsed);
  if (!status) status = v->run(&parsed);
  args_free(&parsed);
  return status == EXIT_DONE || status == EXIT_DIFFERS ? finish(status) : status;
}

int main(int argc, char **argv) {
  hold_standard_streams();
  if (argc < 2) {
    help(stderr);
    return EXIT_BAD_INPUT;
  }
  const char *word = argv[1];
  bool general = is_help(word) || strcmp(word, "help") == 0;
  if (general && argc > 2 && argv[2][0] != '-') {
    const verb *v = find_verb(argv[2]);
    if (!v) return unknown_verb(argv[2]);
    verb_help(v, stdout);
    return finish(EXIT_DONE);
  }
  if (general) {
    help(stdout);
    return finish(EXIT_DONE);
  }
  if (strcmp(word, "--version") == 0) {
    printf("kiln %s\n", kiln_version());
    return finish(EXIT_DONE);
  }
  const verb *v = find_verb(word);
  return v ? run_verb(v, argc - 2, argv + 2) : unknown_verb(word);
}
