// The program that compiles where callers want to be apart from it.
#include <kiln/worker.h>

int main(void) {
  return kiln_worker_run(KILN_WORKER_SOCKET);
}
