// Shared by the command's verbs. The command uses kiln's public headers and nothing else of it.
#ifndef KILN_TOOL_H
#define KILN_TOOL_H

#include <kiln/kiln.h>
#include <stdio.h>

// Exit statuses, as --help states them.
enum { EXIT_DONE = 0, EXIT_DIFFERS = 1, EXIT_BAD_INPUT = 2, EXIT_NOT_SUPPORTED = 3, EXIT_DEVICE = 4 };

// --- options (options.c) --------------------------------------------------------------------------------------------

// One option of a verb: "--seed" takes a value, "--check" none. A value is given once, unless there may be `many`; then
// the verb looks at all of them.
typedef struct option {
  const char *name;  // "--seed"
  const char *value; // name of the value in the help, NULL for a flag; "[=WORD]": may be left out, and goes with an =
  const char *help;
  bool many;
  bool alone; // the verb's word is not needed with it
} option;

typedef struct given {
  int option;
  const char *value;
} given;

typedef struct verb verb;
typedef struct args {
  const verb *verb;
  const char *file;       // the positional argument, NULL if none
  const char *second;     // the one behind it
  const char *values[64]; // by option, NULL if not given; "" for a flag that is given
  given *all;             // every occurrence, in order
  int count;
} args;

struct verb {
  const char *name, *synopsis; // "run", "run FILE.hlo [OPTION]..."
  const char *summary;         // a few words for the list of verbs
  const char *help;            // sentences
  const option *options;       // ends with a NULL name
  int (*run)(const args *a);
  bool takes_file;
  bool takes_second; // a second positional argument may follow
};

// Parses the words after the verb; "-" is a file, "--" ends the options. 0, or an exit status after having said what is
// wrong; args_free in any case.
int args_parse(const verb *v, int argc, char **argv, args *out);
void args_free(args *a);
void verb_help(const verb *v, FILE *to);
// Whole decimal number in lo..hi, else false.
bool number(const char *text, unsigned long long lo, unsigned long long hi, unsigned long long *out);
// Says that this value of an option is not what it should be; EXIT_BAD_INPUT.
int bad_value(const args *a, int option, const char *value, const char *expected);
// The option's number, if it is given; else *out stays. 0, or an exit status.
int read_number(const args *a, int option, unsigned long long lo, unsigned long long hi, const char *expected,
                unsigned long long *out);
// The one of these words (NULL ends) that a misspelt one was meant to be: at most two letters away, or begun by it.
// NULL: none.
const char *nearest(const char *word, size_t n, const char *const *words);

// --- modules and files (files.c) ------------------------------------------------------------------------------------

// Reads a whole file, or standard input for "-"; NULL after having said why, also where it is longer than any module or
// never ends. A NUL stands behind it. Free with free().
char *read_file(const char *path, size_t *size);
// A file to write, or stdout for a NULL path. The module that was read is not written over. Closing accepts NULL (the
// opening failed) and reports what failed since; a regular file that could not be written whole is removed. 0 or an
// exit status.
FILE *output_open(const char *path);
int output_close(FILE *f, const char *path);
// Both at once.
int write_output(const char *path, const char *text, size_t size);
// Prints the context's findings to stderr and clears them; returns the exit status that `s` stands for.
int report(kiln_context *cx, kiln_status s);
// Opens and checks a module, or takes its text as read_file gives it; 0 or an exit status.
int parse_module(kiln_context *cx, const char *path, const char *text, size_t size, const char *fusion,
                 kiln_module **out);
int open_module(kiln_context *cx, const char *path, const char *fusion, kiln_module **out);
// On a terminal only: says what is going on, in a line that the next call overwrites; NULL clears it.
void progress(const char *doing);
double now_seconds(void);
void json_string(FILE *to, const char *text);
int out_of_memory(int64_t bytes); // says so

extern const verb verb_run, verb_bench, verb_compile, verb_explain, verb_verify, verb_indexing, verb_map, verb_layout,
    verb_sparse, verb_tile, verb_sim, verb_profile, verb_devices;

#endif
