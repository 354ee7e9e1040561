// The kiln command: verbs and general help.

#include "kiln.h"
#include <string.h>

static const verb *const verbs[] = {&verb_run, &verb_compile, &verb_verify, &verb_devices};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static void help(FILE *to) {
  fprintf(to, "kiln %s: compiles tensor fusions (HLO) to NVIDIA GPU kernels, and runs and checks them\n\nUsage:\n",
          kiln_version());
  for (int i = 0; i < VERBS; i++) fprintf(to, "  kiln %s\n", verbs[i]->synopsis);
  fprintf(to, "  kiln --version\n  kiln VERB --help\n\n"
              "Exit status: 0 done; 1 results differ; 2 bad usage or bad input; 3 not supported, with the reason;\n"
              "4 device trouble. stdout is the result, stderr the talk; --json makes stdout one JSON object.\n");
}

int main(int argc, char **argv) {
  if (argc < 2) {
    help(stderr);
    return EXIT_BAD_INPUT;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
    help(stdout);
    return EXIT_DONE;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("kiln %s\n", kiln_version());
    return EXIT_DONE;
  }
  for (int i = 0; i < VERBS; i++) {
    if (strcmp(argv[1], verbs[i]->name) != 0) continue;
    for (int a = 2; a < argc; a++) {
      if (strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0) {
        verb_help(verbs[i], stdout);
        return EXIT_DONE;
      }
    }
    args parsed;
    int status = args_parse(verbs[i], argc - 2, argv + 2, &parsed);
    return status ? status : verbs[i]->run(&parsed);
  }
  fprintf(stderr, "kiln: unknown verb '%s': expected run, compile, verify or devices (kiln --help)\n", argv[1]);
  return EXIT_BAD_INPUT;
}
