// Artifacts from a file: what they take and give, as a module of one instruction that nobody knows.

#include "session/saved.h"

#include <stdlib.h>
#include <string.h>

static void put_type(FILE *to, const kiln_slot *s) {
  fprintf(to, "%s[", kiln_dtype_name(s->type.dtype));
  for (uint32_t d = 0; d < s->type.rank; d++) fprintf(to, "%s%lld", d ? "," : "", (long long)s->type.dims[d]);
  fprintf(to, "]%s", s->layout);
}

static void put_module(FILE *to, const kiln_manifest *m) {
  fprintf(to, "HloModule %s\n\nENTRY saved {\n", m->module);
  for (size_t i = 0; i < m->parameter_count; i++) {
    fprintf(to, "  p%zu = ", i);
    put_type(to, &m->slots[i]);
    fprintf(to, " parameter(%zu)\n", i);
  }
  fprintf(to, "  ROOT r = %s", m->result_count == 1 ? "" : "(");
  for (size_t i = 0; i < m->result_count; i++) {
    if (i) fprintf(to, ", ");
    put_type(to, &m->slots[m->parameter_count + i]);
  }
  fprintf(to, "%s custom-call(", m->result_count == 1 ? "" : ")");
  for (size_t i = 0; i < m->parameter_count; i++) fprintf(to, "%sp%zu", i ? ", " : "", i);
  fprintf(to, "), custom_call_target=\"kiln\"\n}\n");
}

int saved_open(kiln_context *cx, const char *path, const void *bytes, size_t size, kiln_bundle **b, kiln_module **m) {
  char *text = NULL;
  size_t n = 0;
  int status = report(cx, kiln_bundle_load(cx, bytes, size, b));
  if (status) return status;
  FILE *to = open_memstream(&text, &n);
  if (to) put_module(to, kiln_artifact_manifest(kiln_bundle_get(*b, 0)));
  if (to && fclose(to) == 0)
    status = report(cx, kiln_module_parse(cx, path, text, n, m));
  else
    status = out_of_memory((int64_t)size);
  free(text);
  return status;
}
