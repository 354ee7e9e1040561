// A cache's folder on another machine: every call on its files fails in the ways of network file systems, at every
// place, and processes are killed at every call. There is a right artifact each time, and what is left of the record is
// all of it or nothing.
//
// The calls that the cache makes are this program's own: they fail where a test says so, and do the work by other calls
// of the C library.
#include "support/context.h"
#include "support/standin.h"

#include <kiln/kiln.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// --- the other machine ----------------------------------------------------------------------------------------------

typedef enum kind { ANY, OPEN, CREATE, FSTAT, READ, WRITE, CLOSE, RENAME, UNLINK, MKDIR, TOUCH, STAT, LIST } kind;

typedef enum way {
  FAILS,   // nothing is done
  DONE,    // it is done, and the answer is lost: the call is made again by itself, and fails by what it finds
  PART,    // a part of the bytes is read or written
  NOTHING, // none are, as at a file's end
  OLD,     // a size of before, which this machine still believes
  KILLS,   // the process ends before it
  LATER,   // and after half of it
} way;

typedef struct fault {
  kind on;
  int error;
  way how;
} fault;

static char root[64];
static bool armed; // are calls on files of the folder watched?
static fault now;  // what happens
enum { EACH_TIME = -1 };
static int at, seen;         // to which of the calls of its kind; how many there were
static bool here[1024];      // descriptors of such files
static int locked, unclosed; // calls that are not for such files; descriptors that are open
static long ahead;           // seconds that this machine's clock is ahead of the other's

static bool is_there(const char *path) {
  return armed && *root && strncmp(path, root, strlen(root)) == 0;
}

// Is this the call? errno is set where it is to fail.
static bool strikes(kind on) {
  if (now.on != on && now.on != ANY) return false;
  if (seen++ != at && at != EACH_TIME) return false;
  if (now.how == KILLS) raise(SIGKILL);
  errno = now.error;
  return true;
}

// What is left to do of a call that has struck: it fails, once it is done if it is to be.
static bool fails(void) {
  return now.how == FAILS || now.how == DONE;
}

int open(const char *path, int flags, ...) {
  va_list ap;
  va_start(ap, flags);
  mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
  va_end(ap);
  bool watched = is_there(path), struck = watched && strikes(flags & O_CREAT ? CREATE : OPEN);
  if (struck && now.how == FAILS) return -1;
  int fd = openat(AT_FDCWD, path, flags, mode), error = now.error;
  if (struck && now.how == LATER) raise(SIGKILL);
  if (struck && now.how == DONE && fd >= 0) return syscall(SYS_close, fd), errno = error, -1;
  if (watched && fd >= 0 && fd < 1024) here[fd] = true, unclosed++;
  return fd;
}

static bool is_here(int fd) {
  return armed && fd >= 0 && fd < 1024 && here[fd];
}

int fstat(int fd, struct stat *s) {
  bool struck = is_here(fd) && strikes(FSTAT);
  if (struck && fails()) return -1;
  int status = fstatat(fd, "", s, AT_EMPTY_PATH);
  if (struck && now.how == OLD) s->st_size = s->st_size * 3 / 4;
  return status;
}

ssize_t read(int fd, void *to, size_t n) {
  bool struck = is_here(fd) && strikes(READ);
  if (struck && fails()) return -1;
  if (struck && now.how == NOTHING) return 0;
  if (struck && now.how == PART && n > 1) n /= 2;
  return readv(fd, &(struct iovec){to, n}, 1);
}

ssize_t write(int fd, const void *from, size_t n) {
  bool struck = is_here(fd) && strikes(WRITE);
  if (struck && now.how == FAILS) return -1;
  if (struck && (now.how == PART || now.how == LATER) && n > 1) n /= 2;
  ssize_t done = writev(fd, &(struct iovec){(void *)(uintptr_t)from, n}, 1);
  if (struck && now.how == LATER) raise(SIGKILL);
  if (struck && now.how == DONE) return errno = now.error, -1;
  return done;
}

int close(int fd) {
  bool struck = is_here(fd) && strikes(CLOSE);
  if (is_here(fd)) here[fd] = false, unclosed--;
  int status = (int)syscall(SYS_close, fd); // it is closed, whatever it says
  if (struck && now.how == LATER) raise(SIGKILL);
  return struck && fails() ? errno = now.error, -1 : status;
}

#define PATH_CALL(name, kind, arguments, path, work)                                                                   \
  int name arguments {                                                                                                 \
    bool struck = is_there(path) && strikes(kind);                                                                     \
    if (struck && now.how == FAILS) return -1;                                                                         \
    int status = work;                                                                                                 \
    if (struck && now.how == LATER) raise(SIGKILL);                                                                    \
    return struck && now.how == DONE ? errno = now.error, -1 : status;                                                 \
  }
PATH_CALL(rename, RENAME, (const char *from, const char *to), from, renameat(AT_FDCWD, from, AT_FDCWD, to))
PATH_CALL(unlink, UNLINK, (const char *path), path, unlinkat(AT_FDCWD, path, 0))
PATH_CALL(mkdir, MKDIR, (const char *path, mode_t mode), path, mkdirat(AT_FDCWD, path, mode))
PATH_CALL(stat, STAT, (const char *path, struct stat *s), path, fstatat(AT_FDCWD, path, s, 0))

int futimens(int fd, const struct timespec times[2]) {
  if (is_here(fd) && strikes(TOUCH) && fails()) return -1;
  return (int)syscall(SYS_utimensat, fd, NULL, times, 0);
}

DIR *opendir(const char *path) {
  if (is_there(path) && strikes(LIST) && fails()) return NULL;
  int fd = openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd >= 0 ? fdopendir(fd) : NULL;
}

// No locks, links or mappings: not every such file system has them.
int flock(int fd, int how) {
  if (is_here(fd)) locked++;
  return errno = ENOLCK, -1;
}
int lockf(int fd, int how, off_t n) {
  if (is_here(fd)) locked++;
  return errno = ENOLCK, -1;
}
int link(const char *from, const char *to) {
  if (is_there(from)) locked++;
  return errno = EPERM, -1;
}

time_t time(time_t *out) {
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
  t.tv_sec += ahead;
  if (out) *out = t.tv_sec;
  return t.tv_sec;
}
int clock_gettime(clockid_t which, struct timespec *t) {
  int status = (int)syscall(SYS_clock_gettime, which, t);
  if (status == 0 && which == CLOCK_REALTIME) t->tv_sec += ahead;
  return status;
}

static void arm(fault f, int which) {
  now = f, at = which, seen = 0, locked = 0, armed = true;
}
// Did it happen?
static bool disarm(void) {
  armed = false;
  return seen > at;
}

// --- a record
// ---------------------------------------------------------------------------------------------------------

static kiln_module *module;
static kiln_compile_params params = {.struct_size = sizeof params, .target = "sm_90"};
static uint8_t *right, *record; // the artifact's bytes; the file's
static size_t right_size, record_size;
static char file[400];

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *f) {
  return remove(path);
}

static char found[400];
static int found_count, fragments;
static int look(const char *path, const struct stat *s, int kind, struct FTW *f) {
  size_t n = strlen(path);
  if (kind != FTW_F) return 0;
  if (strcmp(path + n - 5, ".kiln") == 0)
    found_count++, snprintf(found, sizeof found, "%s", path);
  else
    fragments++;
  return 0;
}
static void look_around(void) {
  found_count = fragments = 0;
  nftw(root, look, 16, FTW_PHYS);
}

static uint8_t *read_whole(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  uint8_t *bytes = malloc(1 << 20);
  ck_assert(f && bytes);
  *n = fread(bytes, 1, 1 << 20, f);
  fclose(f);
  return bytes;
}

static void write_whole(const char *path, const uint8_t *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  ck_assert(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
  ck_assert_int_eq(chmod(path, 0600), 0);
}

static kiln_cache *open_cache(uint64_t most) {
  kiln_cache_params p = {.struct_size = sizeof p, .folder = root, .max_memory_bytes = 1, .max_folder_bytes = most};
  kiln_cache *c = NULL;
  ck_assert_int_eq(kiln_cache_open(cx, &p, &c), KILN_OK);
  return c;
}

// The artifact from a cache, which is the right one whatever has happened.
static void take(kiln_cache *c) {
  kiln_artifact *a = NULL;
  void *bytes;
  size_t n;
  EXPECT(kiln_cache_compile(cx, c, module, &params, &a) == KILN_OK, "%s", last_finding());
  ck_assert_int_eq(kiln_artifact_save(cx, a, &bytes, &n), KILN_OK);
  EXPECT(n == right_size && memcmp(bytes, right, n) == 0, "another artifact");
  kiln_artifact_bytes_free(cx, bytes, n);
  kiln_artifact_destroy(&a);
}

static kiln_cache_info told(kiln_cache *c) {
  kiln_cache_info i = {.struct_size = sizeof i};
  ck_assert_int_eq(kiln_cache_describe(cx, c, &i), KILN_OK);
  return i;
}

static void setup(void) {
  make_context();
  strcpy(root, "/tmp/kiln-remote-XXXXXX");
  ck_assert(mkdtemp(root) != NULL);
  module = parse("HloModule m ENTRY e { p = f32[64] parameter(0) ROOT r = f32[64] negate(p) }");
  kiln_artifact *a = NULL;
  void *bytes;
  ck_assert_int_eq(kiln_compile(cx, module, &params, &a), KILN_OK);
  ck_assert_int_eq(kiln_artifact_save(cx, a, &bytes, &right_size), KILN_OK);
  right = malloc(right_size);
  memcpy(right, bytes, right_size);
  kiln_artifact_bytes_free(cx, bytes, right_size);
  kiln_artifact_destroy(&a);
  kiln_cache *c = open_cache(0);
  take(c);
  kiln_cache_close(&c);
  look_around();
  ck_assert(found_count == 1 && fragments == 0);
  strcpy(file, found);
  record = read_whole(file, &record_size);
}

static void teardown(void) {
  nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  free(right);
  free(record);
  kiln_module_destroy(&module);
  drop_context();
}

static void set_age(const char *path, long seconds) {
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
  t.tv_sec -= seconds;
  ck_assert_int_eq(utimensat(AT_FDCWD, path, (struct timespec[]){t, t}, 0), 0);
}

// What a process meets: the record, used an hour ago; one whose end is missing; none; no folder for it.
typedef enum scene { WHOLE, CUT, ABSENT, BARE, SCENES } scene;

static void set_scene(scene s) {
  char folder[400];
  strcpy(folder, file);
  *strrchr(folder, '/') = 0;
  nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  if (s == BARE) return;
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  if (s == ABSENT) return;
  write_whole(file, record, s == CUT ? record_size / 2 : record_size);
  set_age(file, 3600);
}

// Afterwards: the record's file is all of it or is not there.
static bool is_whole(const char *what) {
  look_around();
  if (found_count == 0) return false;
  size_t n;
  uint8_t *bytes = read_whole(file, &n);
  EXPECT(found_count == 1 && n == record_size && memcmp(bytes, record, n) == 0, "%s: %zu bytes of %zu are left", what,
         n, record_size);
  free(bytes);
  return true;
}

// --- calls that fail
// --------------------------------------------------------------------------------------------------

static const fault faults[] = {
    {OPEN, ESTALE, FAILS},   {OPEN, EIO, FAILS},      {OPEN, EACCES, FAILS},   {OPEN, ETIMEDOUT, FAILS},
    {CREATE, ESTALE, FAILS}, {CREATE, EROFS, FAILS},  {CREATE, EDQUOT, FAILS}, {CREATE, EEXIST, DONE},
    {FSTAT, ESTALE, FAILS},  {FSTAT, EIO, FAILS},     {FSTAT, 0, OLD},         {READ, ESTALE, FAILS},
    {READ, EIO, FAILS},      {READ, EINTR, FAILS},    {READ, 0, PART},         {READ, 0, NOTHING},
    {WRITE, ESTALE, FAILS},  {WRITE, EIO, FAILS},     {WRITE, ENOSPC, FAILS},  {WRITE, EDQUOT, DONE},
    {WRITE, EINTR, FAILS},   {WRITE, 0, PART},        {CLOSE, EIO, FAILS},     {CLOSE, ENOSPC, FAILS},
    {CLOSE, ESTALE, FAILS},  {RENAME, ESTALE, FAILS}, {RENAME, EXDEV, FAILS},  {RENAME, EBUSY, FAILS},
    {RENAME, ENOENT, DONE},  {RENAME, EIO, DONE},     {UNLINK, EBUSY, FAILS},  {UNLINK, ENOENT, DONE},
    {UNLINK, ESTALE, FAILS}, {MKDIR, ESTALE, FAILS},  {MKDIR, EEXIST, DONE},   {MKDIR, EROFS, FAILS},
    {TOUCH, EPERM, FAILS},   {TOUCH, ESTALE, FAILS},  {LIST, ESTALE, FAILS},   {STAT, ESTALE, FAILS},
};
enum { FAULTS = sizeof faults / sizeof *faults };

// One call after the other; of many of a kind, some.
static int next(int which) {
  return which + (which < 12 ? 1 : 101);
}

// What a call says is not said of the record: only bytes that were read, and are no record, are damage.
static bool is_of_bytes(const fault *f) {
  return f->how == OLD || f->how == NOTHING;
}

static bool one_fails(const fault *f, scene s, int which) {
  char what[100];
  snprintf(what, sizeof what, "fault %d, scene %d, call %d", (int)(f - faults), (int)s, which);
  set_scene(s);
  kiln_cache *c = open_cache(0);
  arm(*f, which);
  take(c);
  bool struck = disarm();
  kiln_cache_info i = told(c);
  kiln_cache_close(&c);
  EXPECT(unclosed == 0 && locked == 0, "%s: %d files are open, %d locks and links", what, unclosed, locked);
  EXPECT(i.folder_hits + i.misses == 1 && i.folder_hits <= (s == WHOLE), "%s: %d hits", what, (int)i.folder_hits);
  EXPECT(i.damaged <= (s == CUT || is_of_bytes(f)), "%s: a call that fails is no damage", what);
  EXPECT(is_whole(what) || (struck && s != WHOLE), "%s: the record is gone", what);
  EXPECT(fragments == 0 || (f->on == CREATE && f->how == DONE), "%s: %d fragments", what, fragments);
  c = open_cache(0);
  take(c);
  kiln_cache_close(&c);
  EXPECT(is_whole(what), "%s: it is not mended", what);
  return struck;
}

START_TEST(calls_fail_on_a_network) {
  for (int f = 0; f < FAULTS; f++) {
    int struck = 0;
    for (scene s = 0; s < SCENES; s++)
      for (int which = 0; one_fails(&faults[f], s, which); which = next(which)) struck++;
    EXPECT(struck > 0, "fault %d never happens", f);
  }
}
END_TEST

// The machine code that a driver has made is read in the same way.
START_TEST(machine_code_cannot_be_read) {
  kiln_artifact *a = NULL;
  kiln_driver_params dp = {.struct_size = sizeof dp, .resolve = standin_resolve, .initialize = true};
  ck_assert_int_eq(kiln_compile(cx, module, &params, &a), KILN_OK);
  for (int f = -1; f < FAULTS; f++) {
    kiln_driver *d = NULL;
    kiln_device *device = NULL;
    kiln_cuda_kernel *k = NULL;
    kiln_cache *c = open_cache(0);
    standin_reset();
    EXPECT(kiln_driver_open(cx, &dp, &d) == KILN_OK && kiln_device_open(cx, d, 0, &device) == KILN_OK &&
               kiln_cuda_kernel_create(cx, d, a, kiln_device_context(device), &k) == KILN_OK,
           "%s", last_finding());
    if (f >= 0) arm(faults[f], faults[f].on == READ); // of the bytes behind the key
    EXPECT(kiln_cache_prepare(cx, c, k) == KILN_OK, "fault %d: %s", f, last_finding());
    disarm();
    kiln_cache_info i = told(c);
    EXPECT(unclosed == 0 && i.code_hits + i.code_misses == 1 && standin_state.loads == 1, "fault %d", f);
    kiln_cuda_kernel_destroy(&k);
    kiln_device_close(&device);
    kiln_driver_close(&d);
    kiln_cache_close(&c);
  }
  kiln_artifact_destroy(&a);
}
END_TEST

// --- processes that are killed
// ----------------------------------------------------------------------------------------

static bool one_is_killed(const fault *f, scene s, int which) {
  char what[100];
  int status;
  snprintf(what, sizeof what, "killed in calls %d, scene %d, call %d", (int)f->on, (int)s, which);
  set_scene(s);
  pid_t who = fork();
  ck_assert(who >= 0);
  if (who == 0) {
    kiln_cache *c = open_cache(0);
    arm(*f, which);
    take(c);
    _exit(0);
  }
  ck_assert(waitpid(who, &status, 0) == who && (status == 0 || WTERMSIG(status) == SIGKILL));
  if (s != CUT) EXPECT(is_whole(what) || s != WHOLE, "%s: the record is gone", what);
  kiln_cache *c = open_cache(0);
  take(c);
  kiln_cache_close(&c);
  EXPECT(is_whole(what), "%s: it is not mended", what);
  return status != 0;
}

// Before each call, and amid it.
START_TEST(killed_at_every_call) {
  static const fault kills[] = {{ANY, 0, KILLS},    {CREATE, 0, LATER}, {WRITE, 0, LATER}, {CLOSE, 0, LATER},
                                {RENAME, 0, LATER}, {UNLINK, 0, LATER}, {MKDIR, 0, LATER}};
  for (size_t k = 0; k < sizeof kills / sizeof *kills; k++) {
    int killed = 0;
    for (scene s = 0; s < SCENES; s++)
      for (int which = 0; one_is_killed(&kills[k], s, which); which = next(which)) killed++;
    EXPECT(killed > 0, "no process is killed in calls %d", (int)kills[k].on);
  }
}
END_TEST

// --- clocks and other processes
// ---------------------------------------------------------------------------------------

static long age(const char *path) {
  struct timespec t;
  struct stat s;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
  ck_assert_int_eq(stat(path, &s), 0);
  return (long)(t.tv_sec - s.st_mtim.tv_sec);
}

// What was used last is what the folder's machine calls so, whatever the clock says here.
START_TEST(use_is_noted_by_the_folders_clock) {
  static const long clocks[] = {0, -86400, 86400};
  for (size_t i = 0; i < 3; i++) {
    set_scene(WHOLE);
    kiln_cache *c = open_cache(0);
    ahead = clocks[i];
    take(c);
    ahead = 0;
    kiln_cache_close(&c);
    EXPECT(age(file) < 60, "a clock that is %ld s ahead: of %ld s ago", clocks[i], age(file));
  }
}
END_TEST

// A file that somebody is writing is nobody's to remove, and one whose writer is gone is, by the folder's clock.
START_TEST(fragments_are_judged_by_the_folders_clock) {
  static const long clocks[] = {0, -86400, 86400};
  char fresh[440], old[440];
  for (size_t i = 0; i < 3; i++) {
    set_scene(ABSENT);
    snprintf(fresh, sizeof fresh, "%s.1.2.3", file);
    snprintf(old, sizeof old, "%s.1.2.4", file);
    write_whole(fresh, record, 10);
    write_whole(old, record, 10);
    set_age(old, 7200);
    kiln_cache *c = open_cache(0);
    ahead = clocks[i];
    take(c);
    ahead = 0;
    kiln_cache_close(&c);
    EXPECT(access(fresh, F_OK) == 0, "a clock that is %ld s ahead: what is being written is gone", clocks[i]);
    EXPECT(access(old, F_OK) != 0, "a clock that is %ld s ahead: what was left is there", clocks[i]);
  }
}
END_TEST

// Two that keep one limit take away no more than one does.
START_TEST(what_others_took_away_counts) {
  enum { N = 16 };
  int left[2];
  for (int turn = 0; turn < 2; turn++) {
    set_scene(ABSENT);
    for (int k = 0; k < N; k++) {
      char other[400];
      strcpy(other, file);
      other[strlen(file) - strlen("0.kiln")] = "0123456789abcdef"[k];
      if (strcmp(other, file) == 0) continue;
      write_whole(other, record, record_size);
      set_age(other, 1000 * (k + 1));
    }
    kiln_cache *c = open_cache(8 * record_size);
    if (turn) arm((fault){UNLINK, ENOENT, DONE}, EACH_TIME);
    take(c);
    disarm();
    kiln_cache_close(&c);
    look_around();
    left[turn] = found_count;
  }
  EXPECT(left[0] == left[1] && left[0] > 1 && left[0] < N, "%d are left by one, %d by two", left[0], left[1]);
}
END_TEST

int main(void) {
  return RUN_TESTS("remote", EACH(setup, teardown), {calls_fail_on_a_network}, {machine_code_cannot_be_read},
                   {killed_at_every_call}, {use_is_noted_by_the_folders_clock},
                   {fragments_are_judged_by_the_folders_clock}, {what_others_took_away_counts});
}
