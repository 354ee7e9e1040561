// Runs files, and all files of folders, through a fuzz target: the corpus as a test where there is no fuzzing engine.
// Prints one line with their number. A finding ends the process by a signal, as it does under the engine.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path, size_t size) {
  FILE *f = fopen(path, "rb");
  if (!f) {
    perror(path);
    return -1;
  }
  uint8_t *data = malloc(size ? size : 1); // exactly as long as the input, so that a sanitizer sees overruns
  size_t n = data ? fread(data, 1, size, f) : 0;
  fclose(f);
  if (data) LLVMFuzzerTestOneInput(data, n);
  free(data);
  return data ? 1 : -1;
}

static int run_path(const char *path);

static int run_folder(const char *path) {
  struct dirent **names;
  int n = scandir(path, &names, NULL, alphasort), runs = 0;
  if (n < 0) perror(path);
  for (int i = 0; i < n; i++) {
    char full[4096];
    int fits = snprintf(full, sizeof full, "%s/%s", path, names[i]->d_name) < (int)sizeof full;
    int one = names[i]->d_name[0] == '.' ? 0 : fits ? run_path(full) : -1;
    runs = runs < 0 || one < 0 ? -1 : runs + one;
    free(names[i]);
  }
  if (n >= 0) free(names);
  return n < 0 ? -1 : runs;
}

static int run_path(const char *path) {
  struct stat st;
  if (stat(path, &st) != 0) {
    perror(path);
    return -1;
  }
  return S_ISDIR(st.st_mode) ? run_folder(path) : run_file(path, (size_t)st.st_size);
}

int main(int argc, char **argv) {
  int runs = 0;
  for (int i = 1; i < argc; i++) {
    int one = run_path(argv[i]);
    if (one < 0) return 1;
    runs += one;
  }
  printf("%d inputs\n", runs);
  return runs ? 0 : 1;
}
