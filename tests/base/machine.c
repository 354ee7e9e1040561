// How much memory kiln takes for there: trees of the kernel's files, built here.
#include "support/suite.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 12 };
static char root[] = "/tmp/kiln-memory-XXXXXX";

static void run(const char *command) {
  char line[256];
  snprintf(line, sizeof line, command, root);
  EXPECT(system(line) == 0, "%s", line);
}

static void make_root(void) {
  EXPECT(mkdtemp(root) != NULL, "no folder in /tmp");
}

static void drop_root(void) {
  run("rm -rf %s");
  memcpy(root + sizeof root - 7, "XXXXXX", 6);
}

static void put(const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s%s", root, name);
  for (char *p = path + sizeof root; *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    mkdir(path, 0777);
    *p = '/';
  }
  FILE *f = fopen(path, "w");
  EXPECT(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
}

// --- trees ----------------------------------------------------------------------------------------------------------

#define MEMINFO "MemTotal:       2000 kB\nMemFree:  10 kB\nMemAvailable:    1000 kB\nBuffers: 1 kB\n"
#define V1      "/sys/fs/cgroup/memory"
#define V2      "/sys/fs/cgroup"

static const struct {
  const char *name;
  struct {
    const char *path, *text;
  } files[MOST_FILES];
  int64_t available;
} trees[] = {
    {"nothing", {{0}}, INT64_MAX},
    {"no groups", {{"/proc/meminfo", MEMINFO}}, 1024000},
    {"an old kernel's meminfo", {{"/proc/meminfo", "MemTotal: 2000 kB\nMemFree: 10 kB\n"}}, INT64_MAX},
    {"version 2, its own limit",
     {{"/proc/meminfo", MEMINFO},
      {"/proc/self/cgroup", "0::/user/job\n"},
      {V2 "/user/job/memory.max", "5000\n"},
      {V2 "/user/job/memory.current", "2000\n"},
      {V2 "/user/job/memory.stat", "anon 1\nfile 9\ninactive_file 0\n"}},
     3000},
    {"cached files give way",
     {{"/proc/meminfo", MEMINFO},
      {"/proc/self/cgroup", "0::/job\n"},
      {V2 "/job/memory.max", "5000\n"},
      {V2 "/job/memory.current", "2000\n"},
      {V2 "/job/memory.stat", "anon 1\ninactive_file 1500\nactive_file 77\n"}},
     4500},
    {"the group around it is smaller",
     {{"/proc/meminfo", MEMINFO},
      {"/proc/self/cgroup", "0::/a/b/c\n"},
      {V2 "/a/b/c/memory.max", "max\n"},
      {V2 "/a/b/c/memory.current", "2000\n"},
      {V2 "/a/b/memory.max", "9000\n"},
      {V2 "/a/b/memory.current", "2000\n"},
      {V2 "/a/memory.max", "8000\n"},
      {V2 "/a/memory.current", "7000\n"}},
     1000},
    {"a container sees its own group as the root",
     {{"/proc/meminfo", MEMINFO},
      {"/proc/self/cgroup", "0::/../../docker/1234\n"},
      {V2 "/memory.max", "5000\n"},
      {V2 "/memory.current", "4000\n"}},
     1000},
    {"more is used than allowed",
     {{"/proc/meminfo", MEMINFO},
      {"/proc/self/cgroup", "0::/\n"},
      {V2 "/memory.max", "5000\n"},
      {V2 "/memory.current", "6000\n"}},
     0},
    {"a limit beyond the machine",
     {{"/proc/meminfo", MEMINFO},
      {"/proc/self/cgroup", "0::/\n"},
      {V2 "/memory.max", "50000000\n"},
      {V2 "/memory.current", "6000\n"}},
     1024000},
    {"version 1",
     {{"/proc/meminfo", MEMINFO},
      {"/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n"},
      {V1 "/job/memory.limit_in_bytes", "7000\n"},
      {V1 "/job/memory.usage_in_bytes", "6000\n"},
      {V1 "/job/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n"},
      {V1 "/memory.limit_in_bytes", "9223372036854771712\n"},
      {V1 "/memory.usage_in_bytes", "8000\n"}},
     1500},
    {"version 1, a group of another name",
     {{"/proc/meminfo", MEMINFO},
      {"/proc/self/cgroup", "4:memorylane:/job\n"},
      {V1 "/job/memory.limit_in_bytes", "7000\n"},
      {V1 "/job/memory.usage_in_bytes", "6000\n"}},
     1024000},
    {"both, version 2 beside version 1",
     {{"/proc/meminfo", MEMINFO},
      {"/proc/self/cgroup", "4:memory:/job\n0::/job\n"},
      {V1 "/job/memory.limit_in_bytes", "7000\n"},
      {V1 "/job/memory.usage_in_bytes", "6000\n"},
      {V2 "/unified/job/memory.max", "700\n"},
      {V2 "/unified/job/memory.current", "600\n"}},
     100},
    {"lines that are none", {{"/proc/meminfo", MEMINFO}, {"/proc/self/cgroup", "\n4\n4:memory\n::\n"}}, 1024000},
    {"numbers that are none",
     {{"/proc/meminfo", "MemAvailable: many kB\n"}, {"/proc/self/cgroup", "0::/\n"}, {V2 "/memory.max", ""}},
     INT64_MAX},
};

START_TEST(test_tree) {
  for (int i = 0; i < MOST_FILES && trees[_i].files[i].path; i++) put(trees[_i].files[i].path, trees[_i].files[i].text);
  int64_t found = kl_memory_available(root);
  EXPECT(found == trees[_i].available, "%s: expected %lld bytes, found %lld", trees[_i].name,
         (long long)trees[_i].available, (long long)found);
}
END_TEST

START_TEST(test_this_machine) {
  int64_t n = kiln_memory_available();
  EXPECT(n > 0 && n < INT64_MAX, "%lld bytes", (long long)n);
}
END_TEST

START_TEST(test_address_space) {
  struct rlimit before, limit;
  EXPECT(getrlimit(RLIMIT_AS, &before) == 0, "no limits here");
  limit = before;
  limit.rlim_cur = 1ull << 50;
  put("/proc/self/statm", "1000 7 7\n");
  EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "the limit cannot be set");
  int64_t n = kl_memory_available(root);
  setrlimit(RLIMIT_AS, &before);
  EXPECT(n == (1ll << 50) - 1000 * sysconf(_SC_PAGESIZE), "found %lld", (long long)n);
}
END_TEST

int main(void) {
  return RUN_TESTS("machine", EACH(make_root, drop_root), {test_tree, sizeof trees / sizeof *trees},
                   {test_this_machine}, {test_address_space});
}
