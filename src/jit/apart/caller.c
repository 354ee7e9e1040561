// The caller's side: a worker for each context, started when it is wanted, ended when it is late or has failed.

#include "jit/apart/apart.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct kl_worker {
  int socket;
  pid_t pid;
  char program[4096];
};

// --- its life -------------------------------------------------------------------------------------------------------

enum { GRACE_MS = 500 }; // for a process whose socket is closed to end by itself

// Waits for the process, which nobody talks to any more, and kills it if it is to be now, or does not end; -1: somebody
// else has waited for it.
static int reap(pid_t pid, bool now) {
  int how = -1;
  pid_t got = 0;
  for (int ms = 0; got == 0 && ms < GRACE_MS && !now; ms++) {
    got = waitpid(pid, &how, WNOHANG);
    if (got == 0) usleep(1000);
  }
  if (got == 0) {
    kill(pid, SIGKILL);
    do {
      got = waitpid(pid, &how, 0);
    } while (got < 0 && errno == EINTR);
  }
  return got == pid ? how : -1;
}

static int end(kl_ctx *cx, struct kl_worker **wp, bool now) {
  struct kl_worker *w = *wp;
  *wp = NULL;
  close(w->socket);
  int how = reap(w->pid, now);
  kl_free(cx, w, sizeof *w);
  return how;
}

void kl_worker_end(kl_ctx *cx, struct kl_worker **wp) {
  if (*wp) end(cx, wp, false);
}

// Where the library lies; of one that is part of a program, where that does, which may have been found by PATH.
static bool find_folder(char *out, size_t room) {
  Dl_info file;
  char *slash;
  if (!dladdr((void *)(uintptr_t)&kl_worker_end, &file) || !file.dli_fname || strlen(file.dli_fname) >= room)
    return false;
  strcpy(out, file.dli_fname);
  if (!strchr(out, '/')) {
    ssize_t n = readlink("/proc/self/exe", out, room - 1);
    if (n <= 0) return false;
    out[n] = 0;
  }
  if (!(slash = strrchr(out, '/'))) return false;
  *slash = 0;
  return true;
}

// Beside the library, as it is installed or built; or where a program is installed that has it in itself.
static bool find_beside(char *out, size_t room) {
  static const char *const places[] = {"kiln/kiln-worker", "tools/kiln-worker", "kiln-worker",
                                       "../" KL_LIBDIR "/kiln/kiln-worker"};
  char folder[sizeof((struct kl_worker *)0)->program];
  if (!find_folder(folder, sizeof folder)) return false;
  for (size_t i = 0; i < KL_COUNT(places); i++) {
    int n = snprintf(out, room, "%s/%s", folder, places[i]);
    if (n > 0 && (size_t)n < room && access(out, X_OK) == 0) return true;
  }
  return false;
}

static kiln_status find_program(kl_ctx *cx, const char *asked, char *out, size_t room) {
  if (!asked) asked = getenv("KILN_WORKER");
  if (!asked && find_beside(out, room)) return KILN_OK;
  if (!asked)
    return kl_invalid(cx, KL_NOWHERE,
                      "isolate: expected the program kiln-worker beside the library, found none: name it with `worker` "
                      "or KILN_WORKER");
  if (strlen(asked) >= room) return kl_invalid(cx, KL_NOWHERE, "worker: expected a shorter path");
  strcpy(out, asked);
  return KILN_OK;
}

// Nothing of this process goes along but its environment, directory and standard streams: no descriptors, no signals
// that are blocked or ignored. Descriptors that lie where the socket is to be are replaced.
static int spawn(const char *program, int socket, pid_t *pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  sigset_t none, all;
  char *argv[] = {(char *)program, NULL};
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&how);
  posix_spawn_file_actions_adddup2(&files, socket, KILN_WORKER_SOCKET);
  posix_spawn_file_actions_addclosefrom_np(&files, KILN_WORKER_SOCKET + 1);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setsigdefault(&how, &all);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int error = posix_spawn(pid, program, &files, &how, argv, environ);
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

static kiln_status start(kl_ctx *cx, const char *program, struct kl_worker **out) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return kl_fail(cx, KILN_E_MEMORY, KL_NOWHERE, "isolate: no socket: %s", strerror(errno));
  struct kl_worker *w = kl_alloc(cx, sizeof *w);
  *w = (struct kl_worker){.socket = pair[0]};
  strcpy(w->program, program);
  int error = spawn(program, pair[1], &w->pid);
  close(pair[1]);
  if (!error) {
    *out = w;
    return KILN_OK;
  }
  close(pair[0]);
  kl_free(cx, w, sizeof *w);
  return kl_invalid(cx, KL_NOWHERE, "isolate: cannot start %s: %s", program, strerror(error));
}

// Has it died while nobody wanted anything of it?
static bool is_gone(const struct kl_worker *w) {
  char byte;
  ssize_t n = recv(w->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static kiln_status worker_of(kl_ctx *cx, const kiln_compile_params *p, struct kl_worker **out) {
  kl_jit *jit;
  char program[sizeof((struct kl_worker *)0)->program];
  KL_TRY(kl_jit_get(cx, &jit));
  KL_TRY(find_program(cx, p->worker, program, sizeof program));
  if (jit->worker && (strcmp(jit->worker->program, program) != 0 || is_gone(jit->worker))) end(cx, &jit->worker, true);
  if (!jit->worker) KL_TRY(start(cx, program, &jit->worker));
  *out = jit->worker;
  return KILN_OK;
}

// --- what it is asked -----------------------------------------------------------------------------------------------

static kiln_status tell_death(kl_ctx *cx, int how) {
  const char *program = "the process that compiled ended";
  if (how != -1 && WIFSIGNALED(how))
    return kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "%s by signal %d (%s) before it was done", program, WTERMSIG(how),
                   strsignal(WTERMSIG(how)));
  if (how != -1 && WIFEXITED(how))
    return kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "%s with status %d before it was done", program, WEXITSTATUS(how));
  return kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "%s before it was done", program);
}

static kiln_status tell_nonsense(kl_ctx *cx) {
  return kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "the process that compiled gave no answer that kiln understands");
}

// What stood in the way of a message. The worker is in the middle of something, so it goes.
static kiln_status give_up(kl_ctx *cx, kl_sent why, const kiln_compile_params *p) {
  kl_jit *jit;
  KL_TRY(kl_jit_get(cx, &jit));
  int how = end(cx, &jit->worker, why != KL_SENT_NOTHING);
  if (why == KL_SENT_STOPPED) return kl_go_on(cx, 0, 0);
  if (why == KL_SENT_TOO_MUCH) return tell_nonsense(cx);
  if (why == KL_SENT_LATE)
    return kl_fail(cx, KILN_E_CANCELLED, KL_NOWHERE, "compiling took longer than the time_limit of %d ms",
                   (int)(p->time_limit * 1e3));
  return tell_death(cx, how);
}

static kiln_status ask(kl_ctx *cx, struct kl_worker *w, const kiln_module *m, const kiln_compile_params *p,
                       bool written, const kl_line_end *e, kl_apart_reply_kind *kind, kiln_artifact **out) {
  kl_sb b;
  void *reply = NULL;
  size_t size = 0;
  kl_sb_init(&b, cx);
  kiln_status st = kl_apart_request_make(cx, m, p, written, &b);
  kl_sent went = KL_SENT;
  if (st == KILN_OK) went = kl_message_send(w->socket, e, b.p, b.n);
  if (st == KILN_OK && went == KL_SENT) went = kl_message_take(w->socket, e, cx, &reply, &size);
  kl_sb_free(&b);
  if (st != KILN_OK) return st;
  if (went != KL_SENT) return give_up(cx, went, p);
  bool good = kl_apart_reply_read(cx, reply, size, kind, &st, out);
  kl_free(cx, reply, size + 1);
  if (good) return st;
  kl_jit *jit;
  KL_TRY(kl_jit_get(cx, &jit));
  end(cx, &jit->worker, true);
  return tell_nonsense(cx);
}

kiln_status kl_compile_apart(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *p, kiln_artifact **out) {
  struct kl_worker *w;
  kl_apart_reply_kind kind = KL_REPLY_RESULT;
  if (p->after_pass) return kl_invalid(cx, KL_NOWHERE, "isolate: expected no after_pass, which is called in here");
  if (!(p->time_limit >= 0)) return kl_invalid(cx, KL_NOWHERE, "time_limit: expected seconds from 0");
  kl_line_end e = {.cx = cx, .until = p->time_limit > 0 ? kl_seconds() + p->time_limit : 0};
  KL_TRY(kl_go_on(cx, 0, 0));
  KL_TRY(worker_of(cx, p, &w));
  KL_TRY(ask(cx, w, m, p, true, &e, &kind, out));
  if (kind == KL_REPLY_RESULT) return KILN_OK;
  return ask(cx, w, m, p, false, &e, &kind, out);
}
