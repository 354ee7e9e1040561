// A folder of records. Whoever writes one writes a file of another name and renames it: readers see all of it or
// nothing, and nobody waits for anybody.
//
// The folder may be another machine's. Nothing is locked, linked or mapped; any call may fail, also one that was done,
// and is a miss or a record that is not written; and times are compared with the folder's own alone, since clocks
// differ.

#include "jit/cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  KEY_BYTES = 32,
  NAME = 2 * KEY_BYTES + sizeof "/00/.kiln",
  OLD_FRAGMENT = 3600, // seconds after which a file that was never renamed is nobody's any more
  TOUCH_AFTER = 60,    // seconds between two notes that a record has been used
  TRIM_PART = 16,      // of the limit: so much is written before somebody looks whether there is too much
};

struct kl_folder {
  kl_ctx *cx; // its own: for what lives as long as it does
  char *folder;
  uint64_t most;
  bool read_only;
  pthread_mutex_t trimming;
  _Atomic uint64_t written; // since somebody looked
  _Atomic uint64_t serial;  // of files that are being written
};

// --- the folder ---------------------------------------------------------------------------------------------------

static bool make_folders(char *path) {
  for (char *p = path + 1; *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    int failed = mkdir(path, 0700) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES;
    *p = '/';
    if (failed) return false;
  }
  return mkdir(path, 0700) == 0 || errno == EEXIST;
}

// Code from there is run: nobody else may have put it there.
static const char *is_mine(const char *folder, char text[256]) {
  struct stat s;
  if (stat(folder, &s) != 0) {
    snprintf(text, 256, "%s", strerror(errno));
    return text;
  }
  if (!S_ISDIR(s.st_mode)) return "it is no folder";
  if (s.st_uid != geteuid()) return "it is another user's";
  if (s.st_mode & (S_IWGRP | S_IWOTH)) return "others may write to it";
  return NULL;
}

kl_folder *kl_folder_open(kl_ctx *cx, const char *folder, uint64_t most, bool read_only, char text[256]) {
  kiln_context_params params = {.struct_size = sizeof params, .allocator = cx->allocator};
  size_t n = strlen(folder);
  char *path = kl_alloc(cx, n + 1);
  memcpy(path, folder, n + 1);
  bool made = read_only || make_folders(path);
  int code = errno;
  kl_free(cx, path, n + 1);
  const char *why = made ? is_mine(folder, text) : strerror(code);
  kl_ctx *own = why ? NULL : kiln_context_create(&params);
  if (!own) {
    if (!why) why = "there is no memory for it";
    if (why != text) snprintf(text, 256, "%s", why);
    return NULL;
  }
  kl_folder *s = kl_alloc(own, sizeof *s);
  *s = (kl_folder){.cx = own, .most = most, .read_only = read_only, .folder = kl_alloc(own, n + 1)};
  memcpy(s->folder, folder, n + 1);
  pthread_mutex_init(&s->trimming, NULL);
  atomic_store(&s->written, most / TRIM_PART); // others may have left too much
  return s;
}

void kl_folder_close(kl_folder **sp) {
  if (!*sp) return;
  kl_folder *s = *sp;
  kl_ctx *cx = s->cx;
  pthread_mutex_destroy(&s->trimming);
  kl_free(cx, s->folder, strlen(s->folder) + 1);
  kl_free(cx, s, sizeof *s);
  kiln_context_destroy(&cx);
  *sp = NULL;
}

// --- names --------------------------------------------------------------------------------------------------------

static void hex(const kl_cache_key *key, char out[2 * KEY_BYTES + 1]) {
  for (int i = 0; i < 4; i++) snprintf(out + 16 * i, 17, "%016llx", (unsigned long long)key->v[i]);
}

// "FOLDER/ab/cdef....kiln", or with `part` a file of this process and thread beside it. The text is the caller's.
static char *path_of(kl_folder *s, kl_ctx *cx, const kl_cache_key *key, bool part, size_t *size) {
  char name[2 * KEY_BYTES + 1];
  hex(key, name);
  *size = strlen(s->folder) + NAME + 64;
  char *path = kl_alloc(cx, *size);
  int n = snprintf(path, *size, "%s/%.2s/%s.kiln", s->folder, name, name + 2);
  struct timespec now;
  if (!part) return path;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(path + n, *size - (size_t)n, ".%lx.%lx.%llx", (long)getpid(), (long)now.tv_nsec,
           (unsigned long long)atomic_fetch_add(&s->serial, 1));
  return path;
}

// --- reading ------------------------------------------------------------------------------------------------------

// A file that ends too early is damaged. One that cannot be read says nothing of the record: another may have taken its
// place.
static kl_found read_all(int fd, void *to, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t n = read(fd, (char *)to + at, size - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? KL_FOUND_NOTHING : KL_FOUND_DAMAGED;
    at += (size_t)n;
  }
  return KL_FOUND;
}

// By the folder's clock. Where it is another one than ours, each use is noted.
static void note_use(int fd, const struct stat *s) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t since = (int64_t)now.tv_sec - s->st_mtim.tv_sec;
  if (since >= TOUCH_AFTER || since <= -TOUCH_AFTER) futimens(fd, NULL); // if it may not be, it may not be
}

// A file is its key, then the record.
static kl_found read_file(kl_folder *s, kl_ctx *cx, int fd, const kl_cache_key *key, void **bytes, size_t *size) {
  kl_cache_key found;
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return KL_FOUND_NOTHING;
  if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH))) return KL_FOUND_DAMAGED;
  if (st.st_size < KEY_BYTES) return KL_FOUND_DAMAGED;
  kl_found got = read_all(fd, &found, KEY_BYTES);
  if (got != KL_FOUND) return got;
  if (memcmp(&found, key, KEY_BYTES) != 0) return KL_FOUND_DAMAGED;
  *size = (size_t)st.st_size - KEY_BYTES;
  *bytes = kl_try_alloc(cx, *size + 1);
  if (!*bytes) return KL_FOUND_NOTHING;
  got = read_all(fd, *bytes, *size);
  if (got != KL_FOUND) {
    kl_free(cx, *bytes, *size + 1);
    *bytes = NULL;
    return got;
  }
  if (!s->read_only) note_use(fd, &st);
  return KL_FOUND;
}

kl_found kl_folder_get(kl_folder *s, kl_ctx *cx, const kl_cache_key *key, void **bytes, size_t *size) {
  size_t n;
  char *path = path_of(s, cx, key, false, &n);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  kl_found found = KL_FOUND_NOTHING;
  if (fd >= 0) {
    found = read_file(s, cx, fd, key, bytes, size);
    close(fd);
  }
  kl_free(cx, path, n);
  return found;
}

void kl_folder_drop(kl_folder *s, kl_ctx *cx, const kl_cache_key *key) {
  size_t n;
  if (s->read_only) return;
  char *path = path_of(s, cx, key, false, &n);
  unlink(path);
  kl_free(cx, path, n);
}

// --- trimming -----------------------------------------------------------------------------------------------------

typedef struct entry {
  time_t used;
  uint64_t bytes;
  char name[NAME]; // "ab/cdef....kiln"
} entry;

typedef struct listing {
  kl_ctx *cx;
  kl_folder *s;
  time_t now; // by the folder's clock
  VEC(entry) entries;
  uint64_t bytes;
} listing;

static bool is_record(const char *name) {
  size_t n = strlen(name);
  return n == 2 * (KEY_BYTES - 1) + strlen(".kiln") && strcmp(name + n - 5, ".kiln") == 0;
}

static void list_folder(listing *l, const char *part) {
  char *path = kl_alloc(l->cx, strlen(l->s->folder) + 16);
  sprintf(path, "%s/%s", l->s->folder, part);
  DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d));) {
    struct stat st;
    if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(st.st_mode)) continue;
    if (is_record(e->d_name)) {
      entry x = {.used = st.st_mtime, .bytes = (uint64_t)st.st_size};
      snprintf(x.name, sizeof x.name, "%.2s/%.70s", part, e->d_name);
      VEC_PUSH(l->cx, &l->entries, x);
      l->bytes += x.bytes;
    } else if (strstr(e->d_name, ".kiln.") && l->now - st.st_mtime > OLD_FRAGMENT) {
      unlinkat(dirfd(d), e->d_name, 0); // its writer is gone
    }
  }
  if (d) closedir(d);
  kl_free(l->cx, path, strlen(l->s->folder) + 16);
}

static int by_use(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->used != y->used) return x->used < y->used ? -1 : 1;
  return strcmp(x->name, y->name);
}

// Down to seven eighths of the limit, so that the next record does not bring the next look. Who loses a record that
// another process is about to read has a miss. What others have taken away meanwhile is gone as well: who trims beside
// them takes no more for it.
static void trim(kl_folder *s, kl_ctx *cx, time_t now) {
  listing l = {.cx = cx, .s = s, .now = now};
  for (int i = 0; i < 256; i++) {
    char part[3];
    snprintf(part, sizeof part, "%02x", (unsigned)i);
    list_folder(&l, part);
  }
  if (l.bytes > s->most) {
    uint64_t least = s->most - s->most / 8;
    qsort(l.entries.p, l.entries.n, sizeof *l.entries.p, by_use);
    for (size_t i = 0; i < l.entries.n && l.bytes > least; i++) {
      size_t n = strlen(s->folder) + NAME + 2;
      char *path = kl_alloc(cx, n);
      snprintf(path, n, "%s/%s", s->folder, l.entries.p[i].name);
      if (unlink(path) == 0 || errno == ENOENT) l.bytes -= l.entries.p[i].bytes;
      kl_free(cx, path, n);
    }
  }
  VEC_FREE(cx, &l.entries);
}

// `path`: what was written just now.
static void account(kl_folder *s, kl_ctx *cx, const char *path, size_t size) {
  struct stat st;
  uint64_t before = atomic_fetch_add(&s->written, size);
  if (before + size < s->most / TRIM_PART || pthread_mutex_trylock(&s->trimming) != 0) return;
  atomic_store(&s->written, 0);
  trim(s, cx, stat(path, &st) == 0 ? st.st_mtime : 0);
  pthread_mutex_unlock(&s->trimming);
}

// --- writing ------------------------------------------------------------------------------------------------------

static bool write_all(int fd, const void *from, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t n = write(fd, (const char *)from + at, size - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += (size_t)n;
  }
  return true;
}

static int create(char *path) {
  int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  int fd = open(path, flags, 0600);
  if (fd >= 0 || errno != ENOENT) return fd;
  char *slash = strrchr(path, '/');
  *slash = 0;
  mkdir(path, 0700);
  *slash = '/';
  return open(path, flags, 0600);
}

bool kl_folder_put(kl_folder *s, kl_ctx *cx, const kl_cache_key *key, const void *bytes, size_t size) {
  size_t n, m;
  if (s->read_only) return true;
  if (size + KEY_BYTES > s->most) return false;
  char *part = path_of(s, cx, key, true, &n), *path = path_of(s, cx, key, false, &m);
  int fd = create(part);
  bool done = fd >= 0 && write_all(fd, key, KEY_BYTES) && write_all(fd, bytes, size);
  if (fd >= 0 && close(fd) != 0) done = false; // a network file system may tell only now that it is full
  if (done && rename(part, path) != 0) done = false;
  if (!done && fd >= 0) unlink(part);
  kl_free(cx, part, n);
  if (done) account(s, cx, path, size + KEY_BYTES);
  kl_free(cx, path, m);
  return done;
}
