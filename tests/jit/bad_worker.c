// A worker that is no good, in the way that KILN_BAD_WORKER says.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
  const char *how = getenv("KILN_BAD_WORKER");
  char bytes[4096];
  if (!how || strcmp(how, "exit") == 0) return 7;
  if (recv(3, bytes, sizeof bytes, 0) <= 0) return 1;
  if (strcmp(how, "crash") == 0) {
    signal(SIGSEGV, SIG_DFL); // a sanitizer's handler would end it in its own way
    raise(SIGSEGV);
  }
  if (strcmp(how, "close") == 0) return 0;
  if (strcmp(how, "silent") == 0) close(3); // and lives on
  if (strcmp(how, "garbage") == 0) {
    unsigned long long n = 100;
    memset(bytes, 0x5a, sizeof bytes);
    send(3, &n, sizeof n, MSG_NOSIGNAL);
    send(3, bytes, 100, MSG_NOSIGNAL);
  }
  if (strcmp(how, "huge") == 0) {
    memset(bytes, 0xff, sizeof bytes);
    send(3, bytes, 8, MSG_NOSIGNAL);
  }
  for (;;) pause();
}
