// How much memory there is, by the kernel's files under /proc and the control groups.
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t multiply(int64_t a, int64_t b) {
  int64_t n;
  return __builtin_mul_overflow(a, b, &n) ? INT64_MAX : n;
}

// --- files of the kernel --------------------------------------------------------------------------------------------

// The number after `key` at the beginning of a line, or the file's first where it is NULL; -1: there is none.
static int64_t number_in(const char *path, const char *key) {
  char line[512];
  int64_t n = -1;
  size_t length = key ? strlen(key) : 0;
  FILE *f = fopen(path, "r");
  while (f && n < 0 && fgets(line, sizeof line, f)) {
    if (key && strncmp(line, key, length) != 0) continue;
    char *digits = line + length + strspn(line + length, " \t"), *end;
    n = strtoll(digits, &end, 10);
    if (end == digits) n = -1; // "max"
    if (!key) break;
  }
  if (f) fclose(f);
  return n;
}

typedef struct group_files {
  const char *mount, *limit, *usage, *inactive;
} group_files;

// What a group and those around it leave. Cached files count as used, but give way: those that are inactive at once.
static int64_t left_in_groups(const char *root, const group_files *files, const char *group) {
  char path[4096], name[2048];
  int64_t left = INT64_MAX;
  snprintf(name, sizeof name, "%s", group);
  for (size_t n = strlen(name);; n--) {
    if (n && name[n] != '/' && name[n] != 0) continue;
    name[n] = 0;
    snprintf(path, sizeof path, "%s%s%s/%s", root, files->mount, name, files->limit);
    int64_t limit = number_in(path, NULL);
    snprintf(path, sizeof path, "%s%s%s/%s", root, files->mount, name, files->usage);
    int64_t used = number_in(path, NULL);
    snprintf(path, sizeof path, "%s%s%s/memory.stat", root, files->mount, name);
    int64_t inactive = number_in(path, files->inactive);
    if (used > 0 && inactive > 0) used -= least(used, inactive);
    if (limit >= 0 && used >= 0) left = least(left, limit > used ? limit - used : 0);
    if (n == 0) return left;
  }
}

// Lines of /proc/self/cgroup are "ID:CONTROLLERS:GROUP"; version 2 has id 0 and names no controllers.
static int64_t left_by_groups(const char *root) {
  static const group_files kinds[] = {
      {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
      {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
      {"/sys/fs/cgroup/unified", "memory.max", "memory.current", "inactive_file "},
  };
  char path[4096], line[2048];
  int64_t left = INT64_MAX;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = 0;
    bool unified = controllers[1] == 0, memory = false;
    char *rest = controllers + 1;
    for (char *c; (c = strsep(&rest, ",")) != NULL;) memory |= strcmp(c, "memory") == 0;
    if (memory) left = least(left, left_in_groups(root, &kinds[0], group));
    if (unified) left = least(left, left_in_groups(root, &kinds[1], group));
    if (unified) left = least(left, left_in_groups(root, &kinds[2], group));
  }
  if (f) fclose(f);
  return left;
}

static int64_t left_of_addresses(const char *root) {
  struct rlimit limit;
  char path[4096];
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > INT64_MAX)
    return INT64_MAX;
  snprintf(path, sizeof path, "%s/proc/self/statm", root);
  int64_t pages = number_in(path, NULL), used = pages < 0 ? 0 : multiply(pages, sysconf(_SC_PAGESIZE));
  return (int64_t)limit.rlim_cur > used ? (int64_t)limit.rlim_cur - used : 0;
}

int64_t kl_memory_available(const char *root) {
  char path[4096];
  snprintf(path, sizeof path, "%s/proc/meminfo", root);
  int64_t kib = number_in(path, "MemAvailable:"), n = kib < 0 ? INT64_MAX : multiply(kib, 1024);
  return least(least(n, left_by_groups(root)), left_of_addresses(root));
}

int64_t kiln_memory_available(void) {
  return kl_memory_available("");
}
