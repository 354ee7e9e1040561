// What kiln compile writes of an artifact's manifest: JSON, and a C header that launches without kiln.

#include "manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// --- JSON -----------------------------------------------------------------------------------------------------------

static const char *truth(bool b) {
  return b ? "true" : "false";
}

static void json_slot(FILE *to, const kiln_slot *s) {
  fprintf(to, "{\"kind\": \"%s\", \"index\": %u, \"dtype\": \"%s\", \"dims\": [", s->result ? "result" : "parameter",
          s->index, kiln_dtype_name(s->type.dtype));
  for (uint32_t d = 0; d < s->type.rank; d++) fprintf(to, "%s%lld", d ? ", " : "", (long long)s->type.dims[d]);
  fprintf(to, "], \"bytes\": %lld, \"align\": %u, \"counted\": %s, \"by_value\": %s, \"alias\": ", (long long)s->bytes,
          s->align, truth(s->counted), truth(s->by_value));
  if (s->alias == KILN_NO_SLOT)
    fprintf(to, "null}");
  else
    fprintf(to, "%u}", s->alias);
}

static void json_argument(FILE *to, const kiln_argument *a) {
  switch (a->kind) {
  case KILN_ARGUMENT_SLOT: fprintf(to, "{\"slot\": %u, \"output\": %s}", a->slot, truth(a->output)); return;
  case KILN_ARGUMENT_SCRATCH:
    fprintf(to, "{\"scratch\": %" PRIu64 ", \"output\": %s}", a->offset, truth(a->output));
    return;
  default: fprintf(to, "{\"count\": true}");
  }
}

static void json_three(FILE *to, const char *name, const uint32_t *v) {
  fprintf(to, ", \"%s\": [%u, %u, %u]", name, v[0], v[1], v[2]);
}

static void json_launch(FILE *to, const kiln_launch *l) {
  fprintf(to, "{\"kernel\": ");
  json_string(to, l->kernel);
  json_three(to, "grid", l->grid);
  json_three(to, "block", l->block);
  json_three(to, "cluster", l->cluster);
  fprintf(to,
          ", \"shared_bytes\": %u, \"dynamic_shared_bytes\": %u, \"programmatic\": %s, \"vector_bytes\": %u, "
          "\"lanes\": %u, \"rest_lanes\": %u, \"elements\": %lld, \"bytes\": %lld, \"arguments\": [",
          l->shared_bytes, l->dynamic_shared_bytes, truth(l->programmatic), l->vector_bytes, l->lanes, l->rest_lanes,
          (long long)l->elements, (long long)l->bytes);
  for (size_t i = 0; i < l->argument_count; i++) {
    if (i) fprintf(to, ", ");
    json_argument(to, &l->arguments[i]);
  }
  fprintf(to, "]}");
}

int write_json(const char *path, const kiln_artifact *a) {
  FILE *f = output_open(path);
  if (!f) return output_close(f, path);
  const kiln_manifest *m = kiln_artifact_manifest(a);
  fprintf(f, "{\"target\": \"%s\", \"slots\": [", m->target);
  for (size_t i = 0; i < m->parameter_count + m->result_count; i++) {
    if (i) fprintf(f, ", ");
    json_slot(f, &m->slots[i]);
  }
  fprintf(f, "], \"launches\": [");
  for (size_t i = 0; i < m->launch_count; i++) {
    if (i) fprintf(f, ", ");
    json_launch(f, &m->launches[i]);
  }
  fprintf(f,
          "], \"scratch\": {\"bytes\": %" PRIu64 ", \"align\": %u, \"zero_bytes\": %" PRIu64
          "}, \"counted\": %s, \"max_count\": %lld, \"count_unit\": %lld",
          m->scratch_bytes, m->scratch_align, m->scratch_zero_bytes, truth(m->counted), (long long)m->max_count,
          (long long)m->count_unit);
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
  if (ptx) {
    fprintf(f, ", \"ptx\": ");
    json_string(f, ptx);
  }
  fprintf(f, "}\n");
  return output_close(f, path);
}

// --- the header -----------------------------------------------------------------------------------------------------

typedef struct header {
  FILE *to;
  const kiln_manifest *m;
  char name[80]; // of the module, as a C identifier: what everything is called after
} header;

static void identifier(const char *name, char *out, size_t size) {
  size_t n = 0;
  if (!*name || (*name >= '0' && *name <= '9')) n = (size_t)snprintf(out, size, "kiln_");
  for (; *name && n + 1 < size; name++, n++) {
    bool ok = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || (*name >= '0' && *name <= '9');
    out[n] = ok ? *name : '_';
  }
  out[n] = 0;
}

static size_t slots_of(const kiln_manifest *m) {
  return m->parameter_count + m->result_count;
}

static bool is_used(const kiln_manifest *m, size_t slot) {
  for (size_t i = 0; i < m->launch_count; i++)
    for (size_t k = 0; k < m->launches[i].argument_count; k++) {
      const kiln_argument *a = &m->launches[i].arguments[k];
      if (a->kind == KILN_ARGUMENT_SLOT && a->slot == slot) return true;
    }
  return false;
}

static void slot_name(const kiln_slot *s, char out[24]) {
  snprintf(out, 24, "%s%u", s->result ? "result" : "parameter", s->index);
}

static void describe_slots(const header *h) {
  for (size_t i = 0; i < slots_of(h->m); i++) {
    const kiln_slot *s = &h->m->slots[i];
    char name[24], other[24];
    slot_name(s, name);
    fprintf(h->to, "//   %-12s %s[", name, kiln_dtype_name(s->type.dtype));
    for (uint32_t d = 0; d < s->type.rank; d++) fprintf(h->to, "%s%lld", d ? "," : "", (long long)s->type.dims[d]);
    if (s->by_value)
      fprintf(h->to, "], the value itself in the low bits\n");
    else
      fprintf(h->to, "], %s%lld bytes, aligned to %u", s->counted ? "as many elements as `count`, at most " : "",
              (long long)s->bytes, s->align);
    if (s->by_value) continue;
    if (s->alias != KILN_NO_SLOT) {
      slot_name(&h->m->slots[s->alias], other);
      fprintf(h->to, "; may be the buffer of %s", other);
    }
    fprintf(h->to, "\n");
  }
}

static void declare(const header *h, const char *what) {
  FILE *to = h->to;
  fprintf(to, "int %s_launch(const kiln_entry_points *d, const %s_kernels *k, void *stream", h->name, h->name);
  for (size_t i = 0; i < slots_of(h->m); i++) {
    char name[24];
    slot_name(&h->m->slots[i], name);
    fprintf(to, ",\n    uint64_t %s", name);
  }
  if (h->m->scratch_bytes) fprintf(to, ",\n    uint64_t scratch");
  if (h->m->counted) fprintf(to, ",\n    int64_t count");
  fprintf(to, ")%s\n", what);
}

static void write_declarations(const header *h, const char *module) {
  FILE *to = h->to;
  const kiln_manifest *m = h->m;
  fprintf(to,
          "// %s: the kernels of module '%s' for %s, and how to launch them. Written by kiln %s.\n"
          "//\n"
          "// One C file defines %s_IMPLEMENTATION before it includes this; all others just include it. Neither\n"
          "// kiln nor libcuda is needed to link.\n"
          "#ifndef KILN_%s_H\n#define KILN_%s_H\n\n#include <stdint.h>\n\n"
          "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
          h->name, module, m->target, kiln_version(), h->name, h->name, h->name);
  fputs("// Entry points of the CUDA driver, from dlsym, cuGetProcAddress or a libcuda that is linked. Handles and "
        "status\n"
        "// codes are the driver's.\n"
        "#ifndef KILN_ENTRY_POINTS\n#define KILN_ENTRY_POINTS\n"
        "typedef struct kiln_entry_points {\n"
        "  int (*cuModuleLoadData)(void **module, const void *image);\n"
        "  int (*cuModuleUnload)(void *module);\n"
        "  int (*cuModuleGetFunction)(void **function, void *module, const char *name);\n"
        "  int (*cuLaunchKernel)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,\n"
        "                        unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void "
        "**arguments,\n"
        "                        void **extra);\n"
        "} kiln_entry_points;\n#endif\n\n",
        to);
  fprintf(to, "#define %s_TARGET        \"%s\"\n#define %s_SCRATCH_BYTES %" PRIu64 "u\n#define %s_SCRATCH_ALIGN %u\n",
          h->name, m->target, h->name, m->scratch_bytes, h->name, m->scratch_align);
  if (m->counted)
    fprintf(to, "#define %s_COUNT_UNIT    %lld\n#define %s_MAX_COUNT     %lld\n", h->name, (long long)m->count_unit,
            h->name, (long long)m->max_count);
  fprintf(to, "\ntypedef struct %s_kernels {\n  void *module;\n  void *function[%zu];\n} %s_kernels;\n\n", h->name,
          m->launch_count ? m->launch_count : 1, h->name);
  fprintf(to,
          "// Loads the code into the thread's current context; the driver compiles it here. 0, or the driver's code.\n"
          "int %s_load(const kiln_entry_points *d, %s_kernels *k);\n"
          "void %s_unload(const kiln_entry_points *d, %s_kernels *k);\n\n",
          h->name, h->name, h->name, h->name);
  fprintf(to, "// Enqueues %zu kernel%s on the stream. Device addresses of:\n", m->launch_count,
          m->launch_count == 1 ? "" : "s");
  describe_slots(h);
  if (m->scratch_bytes)
    fprintf(to, "//   scratch      %" PRIu64 " bytes, aligned to %u\n", m->scratch_bytes, m->scratch_align);
  if (m->counted)
    fprintf(to, "// count: elements of a result, a multiple of %lld up to %lld.\n", (long long)m->count_unit,
            (long long)m->max_count);
  fputs("// Returns 0, the driver's code, 716 (CUDA_ERROR_MISALIGNED_ADDRESS) for a misaligned address, or 1\n"
        "// (CUDA_ERROR_INVALID_VALUE) for one that is missing or where results overlap others; nothing is launched "
        "then.\n",
        to);
  declare(h, ";");
  fprintf(to, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n\n");
}

static void write_ptx(const header *h, const char *ptx) {
  FILE *to = h->to;
  fprintf(to, "#ifdef __GNUC__\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "
              "\"-Woverlength-strings\"\n#endif\n");
  fprintf(to, "static const char %s_ptx[] =", h->name);
  while (*ptx) {
    fprintf(to, "\n    \"");
    for (; *ptx && *ptx != '\n'; ptx++) {
      if (*ptx == '"' || *ptx == '\\') fputc('\\', to);
      if (*ptx == '\t')
        fputs("\\t", to);
      else
        fputc(*ptx, to);
    }
    fprintf(to, "\\n\"");
    ptx += *ptx == '\n';
  }
  fprintf(to, ";\n#ifdef __GNUC__\n#pragma GCC diagnostic pop\n#endif\n\n");
}

static void write_loading(const header *h) {
  FILE *to = h->to;
  fprintf(to,
          "int %s_load(const kiln_entry_points *d, %s_kernels *k) {\n"
          "  static const char *const names[] = {",
          h->name, h->name);
  for (size_t i = 0; i < h->m->launch_count; i++) fprintf(to, "%s\"%s\"", i ? ", " : "", h->m->launches[i].kernel);
  fprintf(to,
          "};\n"
          "  int code = d->cuModuleLoadData(&k->module, %s_ptx);\n"
          "  if (code) k->module = 0;\n"
          "  for (unsigned i = 0; i < sizeof names / sizeof names[0] && !code; i++)\n"
          "    code = d->cuModuleGetFunction(&k->function[i], k->module, names[i]);\n"
          "  if (code) %s_unload(d, k);\n"
          "  return code;\n"
          "}\n\n"
          "void %s_unload(const kiln_entry_points *d, %s_kernels *k) {\n"
          "  if (k->module) d->cuModuleUnload(k->module);\n"
          "  k->module = 0;\n"
          "}\n\n",
          h->name, h->name, h->name, h->name);
}

// at[], bytes[], align[] and alias[] by slot; bytes 0 where nothing is looked at.
static void write_buffer_checks(const header *h) {
  FILE *to = h->to;
  size_t n = slots_of(h->m);
  fprintf(to, "  const uint64_t at[] = {");
  for (size_t i = 0; i < n; i++) {
    char name[24];
    slot_name(&h->m->slots[i], name);
    fprintf(to, "%s%s", i ? ", " : "", name);
  }
  fprintf(to, "};\n  const uint64_t bytes[] = {");
  for (size_t i = 0; i < n; i++) {
    const kiln_slot *s = &h->m->slots[i];
    unsigned bits = kiln_dtype_bits(s->type.dtype);
    if (i) fprintf(to, ", ");
    if (s->by_value || !is_used(h->m, i))
      fprintf(to, "0");
    else if (!s->counted)
      fprintf(to, "%lldu", (long long)s->bytes);
    else if (bits < 8)
      fprintf(to, "((uint64_t)count + %u) / %u", 8 / bits - 1, 8 / bits);
    else
      fprintf(to, "(uint64_t)count * %u", bits / 8);
  }
  fprintf(to, "};\n  const uint64_t align[] = {");
  for (size_t i = 0; i < n; i++) fprintf(to, "%s%u", i ? ", " : "", h->m->slots[i].align);
  fprintf(to, "};\n  const unsigned alias[] = {");
  for (size_t i = 0; i < n; i++) fprintf(to, "%s%uu", i ? ", " : "", h->m->slots[i].alias);
  fprintf(to, "};\n");
  fprintf(to,
          "  for (unsigned i = 0; i < %zuu; i++) {\n"
          "    if (!bytes[i]) continue;\n"
          "    if (!at[i]) return 1;\n"
          "    if (at[i] %% align[i]) return 716;\n"
          "  }\n"
          "  for (unsigned i = %zuu; i < %zuu; i++) {\n"
          "    for (unsigned j = 0; j < i && bytes[i]; j++) {\n"
          "      if (!bytes[j] || (at[i] == at[j] && alias[i] == j)) continue;\n"
          "      if (at[i] >= at[j] ? at[i] - at[j] < bytes[j] : at[j] - at[i] < bytes[i]) return 1;\n"
          "    }\n"
          "  }\n",
          n, h->m->parameter_count, n);
}

static void write_checks(const header *h) {
  FILE *to = h->to;
  if (h->m->counted)
    fprintf(to, "  if (count < 0 || count > %s_MAX_COUNT || count %% %s_COUNT_UNIT) return 1;\n", h->name, h->name);
  if (slots_of(h->m)) write_buffer_checks(h);
  if (h->m->scratch_bytes)
    fprintf(to, "  if (!scratch) return 1;\n  if (scratch %% %s_SCRATCH_ALIGN) return 716;\n", h->name);
}

static void write_argument(const header *h, const kiln_argument *a) {
  if (a->kind == KILN_ARGUMENT_SLOT) {
    char name[24];
    slot_name(&h->m->slots[a->slot], name);
    fputs(name, h->to);
  } else if (a->kind == KILN_ARGUMENT_SCRATCH) {
    fprintf(h->to, "scratch + %" PRIu64 "u", a->offset);
  } else {
    fprintf(h->to, "(uint64_t)count");
  }
}

static void write_one_launch(const header *h, size_t i) {
  FILE *to = h->to;
  const kiln_launch *l = &h->m->launches[i];
  if (!h->m->counted && l->grid[0] == 0) { // no elements
    fprintf(to, "  (void)d, (void)k, (void)stream;\n");
    return;
  }
  fprintf(to, "  {\n    uint64_t v[] = {");
  for (size_t k = 0; k < l->argument_count; k++) {
    if (k) fprintf(to, ", ");
    write_argument(h, &l->arguments[k]);
  }
  fprintf(to, "};\n    void *arguments[] = {");
  for (size_t k = 0; k < l->argument_count; k++) fprintf(to, "%s&v[%zu]", k ? ", " : "", k);
  fprintf(to, "};\n");
  if (h->m->counted) {
    int64_t block = (int64_t)l->lanes * l->block[0], rest = (int64_t)l->rest_lanes * l->block[0];
    fprintf(to, "    unsigned grid = (unsigned)(count / %lld + (count %% %lld + %lld) / %lld);\n    if (grid) ",
            (long long)block, (long long)block, (long long)(rest - 1), (long long)rest);
  } else {
    fprintf(to, "    unsigned grid = %uu;\n    ", l->grid[0]);
  }
  fprintf(to, "code = d->cuLaunchKernel(k->function[%zu], grid, %u, %u, %u, %u, %u, %u, stream, arguments, 0);\n", i,
          l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->dynamic_shared_bytes);
  fprintf(to, "    if (code) return code;\n  }\n");
}

static void write_implementation(const header *h, const char *ptx) {
  FILE *to = h->to;
  fprintf(to, "#ifdef %s_IMPLEMENTATION\n#undef %s_IMPLEMENTATION\n\n", h->name, h->name);
  write_ptx(h, ptx);
  write_loading(h);
  declare(h, " {");
  fprintf(to, "  int code = 0;\n");
  write_checks(h);
  for (size_t i = 0; i < h->m->launch_count; i++) write_one_launch(h, i);
  fprintf(to, "  return code;\n}\n\n#endif\n");
}

int write_header(const char *path, const char *module, const kiln_artifact *a) {
  header h = {.m = kiln_artifact_manifest(a)};
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
  if (!ptx) {
    fprintf(stderr, "kiln compile: target %s has no PTX, so no header\n", h.m->target);
    return EXIT_BAD_INPUT;
  }
  identifier(module, h.name, sizeof h.name);
  h.to = output_open(path);
  if (!h.to) return output_close(h.to, path);
  write_declarations(&h, module);
  write_implementation(&h, ptx);
  return output_close(h.to, path);
}
