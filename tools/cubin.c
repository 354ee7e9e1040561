// Machine code from PTX: NVIDIA's assembler, run as a program of its own.

#include "manifest.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool try_path(const char *folder, size_t n, const char *below, char *path, size_t size) {
  int length = snprintf(path, size, "%.*s%s/ptxas", (int)n, folder, below);
  return length > 0 && (size_t)length < size && access(path, X_OK) == 0;
}

// In PATH, then in the toolkit's folder.
static bool find_ptxas(char *path, size_t size) {
  const char *dirs = getenv("PATH"), *home = getenv("CUDA_HOME");
  while (dirs && *dirs) {
    size_t n = strcspn(dirs, ":");
    if (n && try_path(dirs, n, "", path, size)) return true;
    dirs += n + (dirs[n] == ':');
  }
  if (home && try_path(home, strlen(home), "/bin", path, size)) return true;
  return try_path("/usr/local/cuda", strlen("/usr/local/cuda"), "/bin", path, size);
}

static int assemble(const char *ptxas, const char *target, const char *from, const char *to) {
  char arch[40];
  snprintf(arch, sizeof arch, "-arch=%s", target);
  char *const words[] = {(char *)ptxas, arch, (char *)from, "-o", (char *)to, NULL};
  pid_t child;
  int status = 0, error = posix_spawn(&child, ptxas, NULL, NULL, words, environ);
  if (error) {
    fprintf(stderr, "kiln compile: cannot run %s: %s\n", ptxas, strerror(error));
    return EXIT_NOT_SUPPORTED;
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  fprintf(stderr, "kiln compile: %s refused the PTX for %s\n", ptxas, target);
  return EXIT_NOT_SUPPORTED;
}

static int through_files(FILE *out, const kiln_artifact *a, const char *ptxas, char *folder) {
  char from[4096], to[4096];
  size_t size;
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size);
  snprintf(from, sizeof from, "%s/kernel.ptx", folder);
  snprintf(to, sizeof to, "%s/kernel.cubin", folder);
  int status = write_output(from, ptx, size);
  if (!status) status = assemble(ptxas, kiln_artifact_manifest(a)->target, from, to);
  char *code = status ? NULL : read_file(to, &size);
  if (!status && !code) status = EXIT_BAD_INPUT;
  if (code) fwrite(code, 1, size, out);
  free(code);
  remove(from);
  remove(to);
  return status;
}

int put_cubin(FILE *out, const kiln_artifact *a) {
  char ptxas[4096], folder[4000];
  const char *tmp = getenv("TMPDIR");
  if (!find_ptxas(ptxas, sizeof ptxas)) {
    fprintf(stderr,
            "kiln compile: --emit cubin needs NVIDIA's ptxas: found none in PATH, CUDA_HOME or /usr/local/cuda\n");
    return EXIT_NOT_SUPPORTED;
  }
  int n = snprintf(folder, sizeof folder, "%s/kiln-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (n < 0 || (size_t)n >= sizeof folder || !mkdtemp(folder)) {
    fprintf(stderr, "kiln compile: cannot make a folder in %s: %s\n", tmp && *tmp ? tmp : "/tmp", strerror(errno));
    return EXIT_BAD_INPUT;
  }
  int status = through_files(out, a, ptxas, folder);
  rmdir(folder);
  return status;
}
