#include "params.h"

#include <stdlib.h>
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

static int read_numerics(const args *a, kiln_numerics *out) {
  const char *mode = a->values[O_NUMERICS];
  *out = mode && strcmp(mode, "fast") == 0 ? KILN_NUMERICS_FAST : KILN_NUMERICS_STRICT;
  if (!mode || *out == KILN_NUMERICS_FAST || strcmp(mode, "strict") == 0) return 0;
  return bad_value(a, O_NUMERICS, mode, "expected strict or fast");
}

// "2" or "0.5"; the command keeps to the C locale, in which strtod reads no other point.
static int read_limit(const args *a, double *out) {
  const char *text = a->values[O_LIMIT];
  char *end = NULL;
  if (!text) return 0;
  if (!a->values[O_ISOLATE]) return bad_value(a, O_LIMIT, text, "expected --isolate beside it");
  if (text[strspn(text, "0123456789.")] == 0) *out = strtod(text, &end);
  if (end && end != text && !*end && *out > 0 && *out <= 1e6) return 0;
  return bad_value(a, O_LIMIT, text, "expected seconds above 0, at most 1000000");
}

int read_params(const args *a, kiln_alias *aliases, kiln_compile_params *p) {
  unsigned long long align = 0, least = 0, count = 0, threads = 0;
  *p = (kiln_compile_params){.struct_size = sizeof *p,
                             .target = a->values[O_TARGET],
                             .fusion = a->values[O_FUSION],
                             .aliases = aliases,
                             .scalars_by_value = a->values[O_VALUE] != NULL,
                             .programmatic = a->values[O_PROGRAMMATIC] != NULL,
                             .lineinfo = a->values[O_LINEINFO] != NULL,
                             .deterministic = a->values[O_DETERMINISTIC] != NULL,
                             .separate_launches = a->values[O_SEPARATE] != NULL,
                             .isolate = a->values[O_ISOLATE] != NULL};
  for (int i = 0; i < a->count; i++) {
    const char *value = a->all[i].value;
    if (a->all[i].option != O_ALIAS) continue;
    if (p->alias_count == MOST_ALIASES) return bad_value(a, O_ALIAS, value, "there are 4096 of them already");
    if (!read_alias(value, &aliases[p->alias_count++]))
      return bad_value(a, O_ALIAS, value, "expected P=R, the numbers of a parameter and a result");
  }
  int status = read_number(a, O_ALIGN, 1, 4096, "expected a power of two up to 4096", &align);
  if (!status) status = read_number(a, O_LEAST, 1, 2048, "expected a power of two up to 2048", &least);
  if (!status) status = read_number(a, O_COUNT, 1, INT64_MAX, "expected a number of elements from 1", &count);
  if (!status) status = read_number(a, O_THREADS, 1, 256, "expected 1 to 256", &threads);
  if (!status) status = read_numerics(a, &p->numerics);
  if (!status) status = read_limit(a, &p->time_limit);
  p->argument_align = (uint32_t)align;
  p->least_align = (uint32_t)least;
  p->max_count = (int64_t)count;
  p->threads = (uint32_t)threads;
  return status;
}
