#include "params.h"

#include <string.h>

static bool read_alias(const char *text, kiln_alias *out) {
  unsigned long long p, r;
  const char *equals = strchr(text, '=');
  char first[24] = "";
  if (!equals || (size_t)(equals - text) >= sizeof first) return false;
  memcpy(first, text, (size_t)(equals - text));
  if (!number(first, 0, UINT32_MAX, &p) || !number(equals + 1, 0, UINT32_MAX, &r)) return false;
  *out = (kiln_alias){(uint32_t)p, (uint32_t)r};
  return true;
}

int read_params(const args *a, kiln_alias *aliases, kiln_compile_params *p) {
  unsigned long long n = 0;
  *p = (kiln_compile_params){.struct_size = sizeof *p,
                             .target = a->values[O_TARGET],
                             .fusion = a->values[O_FUSION],
                             .aliases = aliases,
                             .scalars_by_value = a->values[O_VALUE] != NULL,
                             .programmatic = a->values[O_PROGRAMMATIC] != NULL};
  for (int i = 0; i < a->count; i++) {
    if (a->all[i].option != O_ALIAS) continue;
    if (!read_alias(a->all[i].value, &aliases[p->alias_count++])) {
      fprintf(stderr, "kiln: --alias '%s': expected P=R, the numbers of a parameter and a result\n", a->all[i].value);
      return EXIT_BAD_INPUT;
    }
  }
  if (a->values[O_ALIGN] && !number(a->values[O_ALIGN], 1, 4096, &n)) {
    fprintf(stderr, "kiln: --align '%s': expected a power of two up to 4096\n", a->values[O_ALIGN]);
    return EXIT_BAD_INPUT;
  }
  p->argument_align = (uint32_t)n;
  n = 0;
  if (a->values[O_COUNT] && !number(a->values[O_COUNT], 1, INT64_MAX, &n)) {
    fprintf(stderr, "kiln: --max-count '%s': expected a number of elements from 1\n", a->values[O_COUNT]);
    return EXIT_BAD_INPUT;
  }
  p->max_count = (int64_t)n;
  return 0;
}
