// Messages over a socket, whose other side may be gone, be late or be told to stop.

#include "jit/apart/apart.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum { LOOK_MS = 10 }; // so often somebody may end it

// Until there is something to do at the socket.
static kl_sent wait_for(int socket, short what, const kl_line_end *e) {
  for (;;) {
    kl_watch *w = e ? e->cx->watch : NULL;
    double left = e && e->until ? e->until - kl_seconds() : 1;
    if (w && atomic_load(&w->stop)) return KL_SENT_STOPPED;
    if (left <= 0) return KL_SENT_LATE;
    int ms = !e || (!w && !e->until) ? -1 : left * 1e3 < LOOK_MS ? (int)(left * 1e3) + 1 : LOOK_MS;
    struct pollfd fd = {.fd = socket, .events = what};
    int n = poll(&fd, 1, ms);
    if (n > 0) return KL_SENT;
    if (n < 0 && errno != EINTR) return KL_SENT_NOTHING;
  }
}

static bool is_later(void) {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static kl_sent put(int socket, const kl_line_end *e, const char *p, size_t n) {
  while (n) {
    ssize_t done = send(socket, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done < 0 && !is_later()) return KL_SENT_NOTHING;
    kl_sent went = done < 0 ? wait_for(socket, POLLOUT, e) : KL_SENT;
    if (went != KL_SENT) return went;
    if (done > 0) p += done, n -= (size_t)done;
  }
  return KL_SENT;
}

static kl_sent get(int socket, const kl_line_end *e, char *p, size_t n) {
  while (n) {
    ssize_t done = recv(socket, p, n, MSG_DONTWAIT);
    if (done == 0 || (done < 0 && !is_later())) return KL_SENT_NOTHING;
    kl_sent went = done < 0 ? wait_for(socket, POLLIN, e) : KL_SENT;
    if (went != KL_SENT) return went;
    if (done > 0) p += done, n -= (size_t)done;
  }
  return KL_SENT;
}

kl_sent kl_message_send(int socket, const kl_line_end *e, const void *bytes, size_t size) {
  uint64_t n = size;
  kl_sent went = put(socket, e, (const char *)&n, sizeof n);
  return went == KL_SENT ? put(socket, e, bytes, size) : went;
}

kl_sent kl_message_take(int socket, const kl_line_end *e, kl_ctx *cx, void **bytes, size_t *size) {
  uint64_t n = 0;
  *bytes = NULL;
  kl_sent went = get(socket, e, (char *)&n, sizeof n);
  if (went != KL_SENT) return went;
  char *p = n < SIZE_MAX / 2 ? kl_try_alloc(cx, (size_t)n + 1) : NULL;
  if (!p) return KL_SENT_TOO_MUCH;
  went = get(socket, e, p, (size_t)n);
  if (went == KL_SENT)
    *bytes = p, *size = (size_t)n;
  else
    kl_free(cx, p, (size_t)n + 1);
  return went;
}
