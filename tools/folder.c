// A verb on every module of a folder: this program once more for each file, several at once.

#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

typedef struct file {
  char *name; // without ".hlo"
  pid_t pid;  // 0: not begun
  FILE *said; // what it writes to stderr
  int status;
  bool ended;
} file;

typedef struct folder {
  const folder_work *w;
  file *files;
  size_t n, begun, running, told, failed;
  unsigned jobs;
  char threads[16]; // of each file's process
  int worst;        // exit status
} folder;

// --- its files ------------------------------------------------------------------------------------------------------

static int is_module(const struct dirent *e) {
  size_t n = strlen(e->d_name);
  return n > 4 && strcmp(e->d_name + n - 4, ".hlo") == 0;
}

// In the order of their names.
static int list(folder *f) {
  struct dirent **found;
  int n = scandir(f->w->from, &found, is_module, alphasort);
  if (n < 0) {
    fprintf(stderr, "kiln: cannot read the folder %s: %s\n", f->w->from, strerror(errno));
    return EXIT_BAD_INPUT;
  }
  f->files = calloc((size_t)n + 1, sizeof *f->files);
  for (int i = 0; i < n; i++) {
    size_t length = strlen(found[i]->d_name) - 4;
    if (f->files && (f->files[f->n].name = strndup(found[i]->d_name, length))) f->n++;
    free(found[i]);
  }
  free(found);
  if (f->n != (size_t)n) return out_of_memory(n);
  if (!n) fprintf(stderr, "kiln: %s: expected files that are called NAME.hlo, found none\n", f->w->from);
  return n ? 0 : EXIT_BAD_INPUT;
}

// --- one file -------------------------------------------------------------------------------------------------------

static char *path_of(const char *folder, const char *name, const char *dot, const char *extension) {
  size_t n = strlen(folder) + strlen(name) + strlen(extension) + 3;
  char *path = malloc(n);
  if (path) snprintf(path, n, "%s/%s%s%s", folder, name, dot, extension);
  return path;
}

static int spawn(folder *f, char *from, char *to, file *x) {
  posix_spawn_file_actions_t files;
  const folder_work *w = f->w;
  const args *a = w->a;
  char **argv = calloc(2 * (size_t)a->count + 10, sizeof *argv);
  size_t n = 0;
  if (!argv) return ENOMEM;
  argv[n++] = "kiln";
  argv[n++] = (char *)a->verb->name;
  for (int i = 0; i < a->count; i++) {
    int o = a->all[i].option;
    if (o == w->out_option || o == w->jobs_option) continue;
    argv[n++] = (char *)a->verb->options[o].name;
    if (a->verb->options[o].value) argv[n++] = (char *)a->all[i].value;
  }
  if (!a->values[w->threads_option]) {
    argv[n++] = (char *)a->verb->options[w->threads_option].name;
    argv[n++] = f->threads;
  }
  argv[n++] = "-o";
  argv[n++] = to;
  argv[n++] = "--";
  argv[n++] = from;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(x->said), STDERR_FILENO);
  int error = posix_spawn(&x->pid, "/proc/self/exe", &files, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&files);
  free(argv);
  return error;
}

static void begin(folder *f, file *x) {
  char *from = path_of(f->w->from, x->name, ".", "hlo");
  char *to = f->w->extension ? path_of(f->w->to, x->name, ".", f->w->extension) : path_of(f->w->to, x->name, "", "");
  x->said = tmpfile();
  int error = from && to && x->said ? spawn(f, from, to, x) : errno;
  free(from);
  free(to);
  f->running += !error;
  if (!error) return;
  fprintf(stderr, "kiln: cannot begin with %s.hlo: %s\n", x->name, strerror(error));
  x->ended = true;
  x->status = EXIT_BAD_INPUT;
}

static void end(folder *f, pid_t pid, int how) {
  for (size_t i = 0; i < f->begun; i++) {
    file *x = &f->files[i];
    if (x->pid != pid || x->ended) continue;
    x->ended = true;
    x->status = WIFEXITED(how) ? WEXITSTATUS(how) : EXIT_DEVICE;
    if (WIFSIGNALED(how)) fprintf(x->said, "kiln: %s.hlo: ended by signal %d\n", x->name, WTERMSIG(how));
    f->running--;
  }
}

// What files have said, in their order, as far as all before them are through.
static void tell(folder *f) {
  for (; f->told < f->begun && f->files[f->told].ended; f->told++) {
    file *x = &f->files[f->told];
    char bytes[4096];
    progress(NULL);
    if (x->said) fflush(x->said), rewind(x->said);
    for (size_t n; x->said && (n = fread(bytes, 1, sizeof bytes, x->said));) fwrite(bytes, 1, n, stderr);
    if (x->said) fclose(x->said);
    x->said = NULL;
    f->failed += x->status != 0;
    if (x->status > f->worst) f->worst = x->status;
  }
}

// --- all of them ----------------------------------------------------------------------------------------------------

static void run_all(folder *f) {
  while (f->begun < f->n || f->running) {
    while (f->begun < f->n && f->running < f->jobs) {
      f->begun++;
      begin(f, &f->files[f->begun - 1]);
    }
    char doing[64];
    snprintf(doing, sizeof doing, "%zu of %zu files", f->begun - f->running, f->n);
    progress(doing);
    int how;
    pid_t pid = f->running ? waitpid(-1, &how, 0) : 0;
    if (pid > 0) end(f, pid, how);
    if (pid < 0 && errno != EINTR) break;
    tell(f);
  }
  tell(f);
  progress(NULL);
}

static void share_cores(folder *f) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  size_t cores = n < 1 ? 1 : n > 256 ? 256 : (size_t)n; // as --threads takes them
  f->jobs = f->w->jobs ? f->w->jobs : (unsigned)cores;
  size_t at_once = f->jobs < f->n ? f->jobs : f->n;
  snprintf(f->threads, sizeof f->threads, "%zu", at_once && at_once < cores ? cores / at_once : 1);
}

int run_folder(const folder_work *w) {
  folder f = {.w = w};
  int status = list(&f);
  share_cores(&f);
  if (!status && mkdir(w->to, 0777) != 0 && errno != EEXIST) {
    fprintf(stderr, "kiln %s: cannot make the folder %s: %s\n", w->a->verb->name, w->to, strerror(errno));
    status = EXIT_BAD_INPUT;
  }
  if (!status) run_all(&f);
  if (f.failed)
    fprintf(stderr, "kiln %s: %zu of %zu files went well; %zu did not, for the reasons above\n", w->a->verb->name,
            f.n - f.failed, f.n, f.failed);
  for (size_t i = 0; i < f.n; i++) free(f.files[i].name);
  free(f.files);
  return status ? status : f.worst;
}
