// How much memory the command takes for there: trees of the kernel's files, built here, and sizes as text.
#include "../support/suite.h"
#include "../../tools/memory.h"

#include <stdio.h>
#include <string.h>
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
  int64_t found = memory_available(root);
  EXPECT(found == trees[_i].available, "%s: expected %lld bytes, found %lld", trees[_i].name,
         (long long)trees[_i].available, (long long)found);
}
END_TEST

START_TEST(test_this_machine) {
  int64_t n = memory_available("");
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
  int64_t n = memory_available(root);
  setrlimit(RLIMIT_AS, &before);
  EXPECT(n == (1ll << 50) - 1000 * sysconf(_SC_PAGESIZE), "found %lld", (long long)n);
}
END_TEST

// --- sizes ----------------------------------------------------------------------------------------------------------

static const struct {
  const char *text;
  int64_t bytes; // -1: it is none
} sizes[] = {
    {"1", 1},
    {"4096", 4096},
    {"1K", 1024},
    {"512M", 512 << 20},
    {"1.5G", 3ll << 29},
    {"0.25K", 256},
    {"24T", 24ll << 40},
    {"7E", 7ll << 60},
    {"8E", -1},
    {"9223372036854775808", -1},
    {"1000000000000000000000000000000000000000000", -1},
    {"0", -1},
    {"0.0K", -1},
    {"0.0001K", -1},
    {"1.5", -1},
    {"", -1},
    {"K", -1},
    {".5K", -1},
    {"1.K", -1},
    {"-1", -1},
    {"+1", -1},
    {" 1", -1},
    {"1 K", -1},
    {"1k", -1},
    {"1KB", -1},
    {"nan", -1},
    {"inf", -1},
    {"1e9", -1},
    {"0x10", -1},
};

START_TEST(test_size) {
  int64_t bytes = -1;
  bool is_size = memory_parse(sizes[_i].text, &bytes);
  EXPECT(is_size == (sizes[_i].bytes >= 0) && bytes == sizes[_i].bytes, "'%s': found %lld", sizes[_i].text,
         (long long)bytes);
}
END_TEST

static const struct {
  int64_t bytes;
  const char *text;
} texts[] = {
    {0, "0 bytes"},    {1, "1 byte"},          {1023, "1023 bytes"},          {1024, "1.0 KiB"},
    {1536, "1.5 KiB"}, {3ll << 29, "1.5 GiB"}, {4000000000000000, "3.6 PiB"}, {INT64_MAX, "8.0 EiB"},
};

START_TEST(test_text) {
  char text[32];
  memory_text(texts[_i].bytes, text, sizeof text);
  EXPECT(strcmp(text, texts[_i].text) == 0, "%lld: found '%s'", (long long)texts[_i].bytes, text);
}
END_TEST

START_TEST(test_sums) {
  EXPECT(memory_add(2, 3) == 5 && memory_add(INT64_MAX, 1) == INT64_MAX, "sums");
  EXPECT(memory_multiply(2, 3) == 6 && memory_multiply(1ll << 62, 4) == INT64_MAX, "products");
}
END_TEST

int main(void) {
  return RUN_TESTS("memory", EACH(make_root, drop_root), {test_tree, sizeof trees / sizeof *trees}, {test_this_machine},
                   {test_address_space}, {test_size, sizeof sizes / sizeof *sizes},
                   {test_text, sizeof texts / sizeof *texts}, {test_sums});
}
