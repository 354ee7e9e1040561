// What callers do wrong and must survive: the tests of misuse/, and whether each public function is in them.
#include "misuse/misuse.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>

static char *read_all(const char *path) {
  FILE *f = fopen(path, "rb");
  ck_assert_msg(f != NULL, "cannot read %s", path);
  char *text = calloc(1, 1 << 20);
  ck_assert_uint_lt(fread(text, 1, (1 << 20) - 1, f), (1 << 20) - 1);
  fclose(f);
  return text;
}

// Functions of a header's text that take a pointer and are not called in `own`, the text of the tests; their number.
static int look_for(char *text, const char *own) {
  int functions = 0;
  for (char *p = text; (p = strstr(p, "\nKILN_API "));) {
    char *open = strchr(p, '('), *name = open;
    size_t n = strcspn(open, ";");
    while (name[-1] == '_' || isalnum((unsigned char)name[-1])) name--;
    p = open + n;
    if (!memchr(open, '*', n) && !memchr(open, '[', n)) continue;
    *open = 0;
    ck_assert_msg(strstr(own, name) != NULL, "%s is not tested with NULL", name);
    *open = '(';
    functions++;
  }
  return functions;
}

// The texts of the files of a folder whose names end so, one behind the other: the caller's.
static char *read_folder(const char *folder, const char *end) {
  char *all = calloc(1, 1 << 20), path[1000];
  size_t n = 0;
  DIR *d = opendir(folder);
  ck_assert_msg(d != NULL, "cannot read %s", folder);
  for (struct dirent *e; (e = readdir(d));) {
    size_t length = strlen(e->d_name), of_end = strlen(end);
    if (length <= of_end || strcmp(e->d_name + length - of_end, end) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    char *text = read_all(path);
    ck_assert_uint_lt(n + strlen(text), 1 << 20);
    strcpy(all + n, text);
    n += strlen(text);
    free(text);
  }
  closedir(d);
  return all;
}

// A function that any header declares and that takes a pointer is called in misuse/.
START_TEST(every_function_is_here) {
  char *own = read_folder(KL_TESTS "/jit/misuse", ".c"), *headers = read_folder(KL_TESTS "/../include/kiln", ".h");
  ck_assert_int_gt(look_for(headers, own), 80);
  free(headers);
  free(own);
}
END_TEST

int main(void) {
  Suite *s = suite_create("misuse");
  misuse_modules(s);
  misuse_builder(s);
  misuse_maps(s);
  misuse_tiles(s);
  misuse_layouts(s);
  misuse_sparse(s);
  misuse_running(s);
  misuse_caches(s);
  misuse_devices(s);
  misuse_simulator(s);
  ADD_TESTS(s, "all", NO_FRAME, {every_function_is_here});
  return run_suite(s, false);
}
