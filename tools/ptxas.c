#include "ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
enum { MOST_SECONDS = 60 };

static bool try_path(const char *folder, size_t n, const char *below, const char *program, char *path, size_t size) {
  int length = snprintf(path, size, "%.*s%s/%s", (int)n, folder, below, program);
  return length > 0 && (size_t)length < size && access(path, X_OK) == 0;
}

static bool find(const char *program, const char *variable, char *path, size_t size) {
  const char *dirs = getenv("PATH"), *home = getenv("CUDA_HOME"), *named = getenv(variable);
  if (named && *named) {
    int length = snprintf(path, size, "%s", named);
    return length > 0 && (size_t)length < size && access(path, X_OK) == 0;
  }
  while (dirs && *dirs) {
    size_t n = strcspn(dirs, ":");
    if (n && try_path(dirs, n, "", program, path, size)) return true;
    dirs += n + (dirs[n] == ':');
  }
  if (home && try_path(home, strlen(home), "/bin", program, path, size)) return true;
  return try_path("/usr/local/cuda", strlen("/usr/local/cuda"), "/bin", program, path, size);
}

bool ptxas_find(char *path, size_t size) {
  return find("ptxas", "KILN_PTXAS", path, size);
}

bool nvdisasm_find(char *path, size_t size) {
  return find("nvdisasm", "KILN_NVDISASM", path, size);
}

// The child's exit status; -1 if it did not end well or in time.
static int wait_for(pid_t child) {
  const struct timespec nap = {.tv_nsec = 1000000};
  double end = now_seconds() + MOST_SECONDS;
  int status = 0;
  for (;;) {
    pid_t done = waitpid(child, &status, now_seconds() < end ? WNOHANG : 0);
    if (done == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (done < 0 && errno != EINTR) return -1;
    if (now_seconds() >= end) kill(child, SIGKILL);
    nanosleep(&nap, NULL);
  }
}

// True if it made `to`; what it says goes to `log`.
static int start(char *const *words, const char *log) {
  posix_spawn_file_actions_t files;
  pid_t child;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  int error = posix_spawn(&child, words[0], &files, NULL, words, environ);
  posix_spawn_file_actions_destroy(&files);
  if (error) fprintf(stderr, "kiln: cannot run %s: %s\n", words[0], strerror(error));
  return error ? -1 : wait_for(child);
}

// What nvdisasm says of the code; NULL, and why, if it says nothing.
static char *disassemble(const char *nvdisasm, const char *cubin, const char *folder) {
  char to[4096];
  size_t n;
  snprintf(to, sizeof to, "%s/sass", folder);
  char *const words[] = {(char *)nvdisasm, "-c", "-ndf", (char *)cubin, NULL};
  int ended = start(words, to);
  char *text = access(to, R_OK) == 0 ? read_file(to, &n) : NULL;
  remove(to);
  if (ended == 0) return text;
  fprintf(stderr, "%skiln: %s refused what ptxas made\n", text ? text : "", nvdisasm);
  free(text);
  return NULL;
}

static int through_files(const char *ptxas, const char *nvdisasm, const char *target, const char *ptx, size_t size,
                         bool lines, const char *folder, assembly *out) {
  char from[4096], to[4096], log[4096], arch[40];
  size_t n;
  snprintf(from, sizeof from, "%s/kernel.ptx", folder);
  snprintf(to, sizeof to, "%s/kernel.cubin", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  snprintf(arch, sizeof arch, "-arch=%s", target);
  char *const words[] = {(char *)ptxas, arch, from, "-o", to, lines ? "-lineinfo" : NULL, "-v", NULL};
  int status = write_output(from, ptx, size);
  if (!status && start(words, log) != 0) status = EXIT_NOT_SUPPORTED;
  if (access(log, R_OK) == 0) out->log = read_file(log, &n);
  if (!status && !(out->cubin = read_file(to, &out->cubin_size))) status = EXIT_NOT_SUPPORTED;
  if (!status && nvdisasm) out->sass = disassemble(nvdisasm, to, folder);
  remove(from), remove(to), remove(log);
  return status;
}

int ptxas_assemble(const char *ptxas, const char *nvdisasm, const char *target, const char *ptx, size_t size,
                   bool lines, assembly *out) {
  char folder[4000];
  const char *tmp = getenv("TMPDIR");
  *out = (assembly){0};
  int n = snprintf(folder, sizeof folder, "%s/kiln-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (n < 0 || (size_t)n >= sizeof folder || !mkdtemp(folder)) {
    fprintf(stderr, "kiln: cannot make a folder in %s: %s\n", tmp && *tmp ? tmp : "/tmp", strerror(errno));
    return EXIT_BAD_INPUT;
  }
  int status = through_files(ptxas, nvdisasm, target, ptx, size, lines, folder, out);
  rmdir(folder);
  return status;
}

void assembly_free(assembly *a) {
  free(a->cubin);
  free(a->log);
  free(a->sass);
  *a = (assembly){0};
}
