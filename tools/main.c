// The kiln command: verbs and general help.

#include "kiln.h"
#include <string.h>

static const verb *const verbs[] = {&verb_run, &verb_bench, &verb_compile, &verb_verify, &verb_devices};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static void help(FILE *to) {
  fprintf(to, "kiln %s: compiles tensor fusions (HLO) to NVIDIA GPU kernels, and runs and checks them\n\nUsage:\n",
          kiln_version());
  for (int i = 0; i < VERBS; i++) fprintf(to, "  kiln %-32s %s\n", verbs[i]->synopsis, verbs[i]->summary);
  fprintf(to, "  kiln VERB --help                      what the verb does, and its options\n"
              "  kiln --version\n\n"
              "FILE.hlo may be - for standard input.\n"
              "Exit status: 0 done; 1 results differ; 2 bad usage or bad input; 3 not supported, with the reason;\n"
              "4 device trouble. stdout is the result, stderr the talk; --json makes stdout one JSON object.\n");
}

// A result that could not be written whole is no success.
static int finish(int status) {
  int written = output_close(stdout, NULL);
  return written ? written : status;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    help(stderr);
    return EXIT_BAD_INPUT;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
    help(stdout);
    return finish(EXIT_DONE);
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("kiln %s\n", kiln_version());
    return finish(EXIT_DONE);
  }
  for (int i = 0; i < VERBS; i++) {
    if (strcmp(argv[1], verbs[i]->name) != 0) continue;
    for (int a = 2; a < argc; a++) {
      if (strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0) {
        verb_help(verbs[i], stdout);
        return finish(EXIT_DONE);
      }
    }
    args parsed;
    int status = args_parse(verbs[i], argc - 2, argv + 2, &parsed);
    if (!status) status = verbs[i]->run(&parsed);
    return status == EXIT_DONE || status == EXIT_DIFFERS ? finish(status) : status;
  }
  fprintf(stderr, "kiln: unknown verb '%s': expected ", argv[1]);
  for (int i = 0; i < VERBS; i++)
    fprintf(stderr, "%s%s", verbs[i]->name, i + 2 < VERBS ? ", " : i + 2 == VERBS ? " or " : " (kiln --help)\n");
  return EXIT_BAD_INPUT;
}
