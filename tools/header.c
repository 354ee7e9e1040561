// A C header that has a module's kernels for one target or several, and launches them without kiln.

#include "manifest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct header {
  FILE *to;
  const kiln_bundle *b;
  size_t n;               // targets
  const kiln_manifest *m; // of the one that is written; of what all have in common any
  const char *prefix;     // what everything is called after
} header;

static const kiln_manifest *manifest_of(const header *h, size_t i) {
  return kiln_artifact_manifest(kiln_bundle_get(h->b, i));
}

// Behind names that each target has for itself, where there are several.
static const char *behind(const header *h) {
  return h->n > 1 ? h->m->target : "";
}
static const char *between(const header *h) {
  return h->n > 1 ? "_" : "";
}

// Writes text whose every @ is the prefix.
static void put(const header *h, const char *text) {
  for (const char *at; (at = strchr(text, '@')); text = at + 1) {
    fwrite(text, 1, (size_t)(at - text), h->to);
    fputs(h->prefix, h->to);
  }
  fputs(text, h->to);
}

// #define PREFIX_NAME VALUE
static void define(const header *h, const char *name, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  fprintf(h->to, "#define %s_%-16s ", h->prefix, name);
  vfprintf(h->to, format, ap);
  fputc('\n', h->to);
  va_end(ap);
}

// --- slots ----------------------------------------------------------------------------------------------------------

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

// That of all targets: whether two slots may be one buffer does not depend on the GPU.
static uint32_t alias_of(const header *h, size_t slot) {
  uint32_t alias = h->m->slots[slot].alias;
  for (size_t i = 0; i < h->n; i++)
    if (manifest_of(h, i)->slots[slot].alias != alias) return KILN_NO_SLOT;
  return alias;
}

// An alignment that does for any target.
static uint32_t align_of(const header *h, size_t slot) {
  uint32_t most = 1;
  for (size_t i = 0; i < h->n; i++) {
    uint32_t align = manifest_of(h, i)->slots[slot].align;
    if (align > most) most = align;
  }
  return most;
}

// Scratch memory that does for any target.
typedef struct room {
  uint64_t bytes, zero;
  uint32_t align;
} room;

static room scratch_of(const header *h) {
  room r = {0, 0, 1};
  for (size_t i = 0; i < h->n; i++) {
    const kiln_manifest *m = manifest_of(h, i);
    if (m->scratch_bytes > r.bytes) r.bytes = m->scratch_bytes;
    if (m->scratch_zero_bytes > r.zero) r.zero = m->scratch_zero_bytes;
    if (m->scratch_align > r.align) r.align = m->scratch_align;
  }
  return r;
}

static void slot_name(const kiln_slot *s, char out[24]) {
  snprintf(out, 24, "%s%u", s->result ? "result" : "parameter", s->index);
}

// As HLO writes it, with the layout.
static void put_type(FILE *to, const kiln_slot *s) {
  fprintf(to, "%s[", kiln_dtype_name(s->type.dtype));
  for (uint32_t d = 0; d < s->type.rank; d++) fprintf(to, "%s%lld", d ? "," : "", (long long)s->type.dims[d]);
  fprintf(to, "]%s", strcmp(s->layout, "{}") == 0 ? "" : s->layout);
}

static void describe_slots(const header *h) {
  for (size_t i = 0; i < slots_of(h->m); i++) {
    const kiln_slot *s = &h->m->slots[i];
    char name[24], other[24];
    slot_name(s, name);
    fprintf(h->to, "//   %-12s %s, ", name, s->name);
    put_type(h->to, s);
    if (s->by_value) {
      fprintf(h->to, ", the value itself in the low bits\n");
      continue;
    }
    if (s->counted)
      fprintf(h->to, ", %lld elements for each %lld of `count`, at most", (long long)s->row,
              (long long)h->m->count_unit);
    fprintf(h->to, "%s%lld bytes, aligned to %u", s->counted ? " " : ", ", (long long)s->bytes, align_of(h, i));
    if (alias_of(h, i) != KILN_NO_SLOT) {
      slot_name(&h->m->slots[s->alias], other);
      fprintf(h->to, "; may be the buffer of %s", other);
    }
    fprintf(h->to, "\n");
  }
}

static void define_slot(const header *h, size_t slot) {
  const kiln_slot *s = &h->m->slots[slot];
  char name[64];
  int64_t elements = 1;
  int n = snprintf(name, sizeof name, "%s%u_", s->result ? "RESULT" : "PARAMETER", s->index);
  char *end = name + n;
  size_t room = sizeof name - (size_t)n;
#define WHAT(...) (snprintf(end, room, __VA_ARGS__), name)
  fprintf(h->to, "#define %s_%-16s \"", h->prefix, WHAT("TYPE"));
  put_type(h->to, s);
  fprintf(h->to, "\"\n");
  define(h, WHAT("NAME"), "\"%s\"", s->name);
  define(h, WHAT("BYTES"), "%lld", (long long)s->bytes);
  define(h, WHAT("ALIGN"), "%u", align_of(h, slot));
  define(h, WHAT("RANK"), "%u", s->type.rank);
  for (uint32_t d = 0; d < s->type.rank; d++) {
    define(h, WHAT("DIM%u", d), "%lld", (long long)s->type.dims[d]);
    elements *= s->type.dims[d];
  }
  define(h, WHAT("ELEMENTS"), "%lld", (long long)elements);
#undef WHAT
}

// --- declarations ---------------------------------------------------------------------------------------------------

// What a launch takes behind the stream: declared, or passed on.
static void write_operands(const header *h, const char *before, const char *before_count) {
  for (size_t i = 0; i < slots_of(h->m); i++) {
    char name[24];
    slot_name(&h->m->slots[i], name);
    fprintf(h->to, "%s%s", before, name);
  }
  if (scratch_of(h).bytes) fprintf(h->to, "%sscratch", before);
  if (h->m->counted) fprintf(h->to, "%scount", before_count);
}

static void declare_launch(const header *h, const char *name, const char *end) {
  put(h, "int @_launch");
  fprintf(h->to, "%s%s", *name ? "_" : "", name);
  put(h, "(const kiln_entry_points *d, const @_kernels *k, void *stream");
  write_operands(h, ",\n    uint64_t ", ",\n    int64_t ");
  fprintf(h->to, ")%s\n", end);
}

static const char entry_points[] =
    "// Entry points of the CUDA driver, from dlsym, cuGetProcAddress or a libcuda that is linked. Handles and status\n"
    "// codes are the driver's.\n"
    "#ifndef KILN_ENTRY_POINTS\n#define KILN_ENTRY_POINTS\n"
    "typedef struct kiln_entry_points {\n"
    "  int (*cuModuleLoadData)(void **module, const void *image);\n"
    "  int (*cuModuleUnload)(void *module);\n"
    "  int (*cuModuleGetFunction)(void **function, void *module, const char *name);\n"
    "  int (*cuFuncSetAttribute)(void *function, int attribute, int value); // for kernels that share more than 48 "
    "KiB\n"
    "  int (*cuLaunchKernel)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,\n"
    "                        unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,\n"
    "                        void **arguments, void **extra);\n"
    "  int (*cuCtxGetDevice)(int *device); // this and the next for headers of several targets\n"
    "  int (*cuDeviceGetAttribute)(int *value, int attribute, int device);\n"
    "} kiln_entry_points;\n#endif\n\n";

// "sm_90,sm_80", as --target takes them.
static void put_targets(const header *h, const char *between_two) {
  for (size_t i = 0; i < h->n; i++) fprintf(h->to, "%s%s", i ? between_two : "", manifest_of(h, i)->target);
}

static void define_versions(header h) {
  char name[48];
  fprintf(h.to, "#define %s_%-16s \"", h.prefix, "TARGET");
  put_targets(&h, ",");
  fprintf(h.to, "\"\n");
  for (size_t i = 0; i < h.n; i++) {
    const kiln_manifest *m = h.m = manifest_of(&h, i);
    snprintf(name, sizeof name, "PTX_VERSION%s%s", between(&h), behind(&h));
    define(&h, name, "%u // %u.%u", m->ptx_version, m->ptx_version / 10, m->ptx_version % 10);
    snprintf(name, sizeof name, "DRIVER_VERSION%s%s", between(&h), behind(&h));
    define(&h, name, "%d // least that cuDriverGetVersion must give: CUDA %d.%d", m->driver_version,
           m->driver_version / 1000, m->driver_version % 1000 / 10);
  }
}

static void define_all(const header *h) {
  const kiln_manifest *m = h->m;
  room scratch = scratch_of(h);
  char hash[2 * KILN_HASH_SIZE + 1];
  define(h, "MODULE", "\"%s\"", m->module);
  if (m->fusion) define(h, "FUSION", "\"%s\"", m->fusion);
  define(h, "HASH", "\"%s\" // of the module's contents", hash_text(m, hash));
  define(h, "KILN_VERSION", "\"%s\"", m->kiln_version);
  define_versions(*h);
  define(h, "SCRATCH_BYTES", "%" PRIu64 "u", scratch.bytes);
  define(h, "SCRATCH_ALIGN", "%u", scratch.align);
  if (m->constant_bytes) {
    define(h, "CONSTANTS_AT", "%" PRIu64 "u", m->scratch_zero_bytes);
    define(h, "CONSTANT_BYTES", "%" PRIu64 "u", m->constant_bytes);
  }
  if (m->counted) {
    define(h, "COUNT_UNIT", "%lld", (long long)m->count_unit);
    define(h, "MAX_COUNT", "%lld", (long long)m->max_count);
  }
  fprintf(h->to, "\n// Buffers%s.\n", m->counted ? "; bytes of the largest count, dimensions as in the module" : "");
  define(h, "PARAMETERS", "%zu", m->parameter_count);
  define(h, "RESULTS", "%zu", m->result_count);
  for (size_t i = 0; i < slots_of(m); i++) define_slot(h, i);
}

static size_t most_launches(const header *h) {
  size_t most = 1;
  for (size_t i = 0; i < h->n; i++)
    if (manifest_of(h, i)->launch_count > most) most = manifest_of(h, i)->launch_count;
  return most;
}

static void write_declarations(const header *h) {
  FILE *to = h->to;
  const kiln_manifest *m = h->m;
  room scratch = scratch_of(h);
  put(h, "#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  put(h, entry_points);
  define_all(h);
  put(h, "\ntypedef struct @_kernels {\n  void *module;\n");
  if (h->n > 1) put(h, "  int target; // that is loaded: its number in @_TARGET\n");
  fprintf(to, "  void *function[%zu];\n", most_launches(h));
  put(h, "} @_kernels;\n\n");
  if (m->constant_bytes) put(h, "extern const uint64_t @_constants[@_CONSTANT_BYTES / 8];\n\n");
  if (h->n > 1)
    put(h, "// Loads the code of the first target that the device of the thread's current context can run; the driver\n"
           "// compiles it here. 0, the driver's code, or 209 (CUDA_ERROR_NO_BINARY_FOR_GPU) where there is none.\n");
  else
    put(h,
        "// Loads the code into the thread's current context; the driver compiles it here. 0, or the driver's code.\n");
  put(h, "int @_load(const kiln_entry_points *d, @_kernels *k);\n"
         "void @_unload(const kiln_entry_points *d, @_kernels *k);\n\n");
  fprintf(to, "// Enqueues %zu kernel%s%s on the stream. Device addresses of:\n", most_launches(h),
          most_launches(h) == 1 ? "" : "s", h->n > 1 ? " at most" : "");
  describe_slots(h);
  if (scratch.bytes) fprintf(to, "//   scratch      %" PRIu64 " bytes, aligned to %u\n", scratch.bytes, scratch.align);
  if (scratch.zero)
    fprintf(to,
            "//                the first %" PRIu64
            " are zero, and zero again behind; launches that share them do not overlap\n",
            scratch.zero);
  if (m->constant_bytes)
    put(h, "//                from @_CONSTANTS_AT on it has the @_CONSTANT_BYTES bytes of @_constants, copied there "
           "before;\n"
           "//                they stay\n");
  if (m->counted)
    fprintf(to, "// count: elements of the first result, a multiple of %lld up to %lld.\n", (long long)m->count_unit,
            (long long)m->max_count);
  put(h, "// Returns 0, the driver's code, 716 (CUDA_ERROR_MISALIGNED_ADDRESS) for a misaligned address, or 1\n"
         "// (CUDA_ERROR_INVALID_VALUE) for one that is missing or where results overlap others; nothing is launched "
         "then.\n");
  declare_launch(h, "", ";");
  put(h, "\n#ifdef __cplusplus\n}\n#endif\n");
}

// --- the implementation ----------------------------------------------------------------------------------------------

static void write_ptx(const header *h, const char *ptx) {
  FILE *to = h->to;
  fprintf(to, "#ifdef __GNUC__\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "
              "\"-Woverlength-strings\"\n#endif\n");
  put(h, "static const char @_ptx");
  fprintf(to, "%s%s[] =", between(h), behind(h));
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

// As words of a little-endian machine, which whoever runs a GPU has.
static void write_constants(const header *h) {
  const kiln_manifest *m = h->m;
  if (!m->constant_bytes) return;
  put(h, "const uint64_t @_constants[@_CONSTANT_BYTES / 8] = {");
  for (uint64_t i = 0; i < m->constant_bytes; i += 8) {
    uint64_t word = 0;
    for (unsigned k = 0; k < 8; k++) word |= (uint64_t)((const uint8_t *)m->constants)[i + k] << 8 * k;
    fprintf(h->to, "%s0x%" PRIx64 "u,", i % 64 ? " " : "\n    ", word);
  }
  put(h, "\n};\n\n");
}

enum { MAX_DYNAMIC_SHARED = 8 }; // the driver's number of that attribute

static void write_loading(const header *h) {
  if (h->n > 1) put(h, "static ");
  put(h, "int @_load");
  fprintf(h->to, "%s%s", between(h), behind(h));
  put(h, "(const kiln_entry_points *d, @_kernels *k) {\n  static const char *const names[] = {");
  for (size_t i = 0; i < h->m->launch_count; i++) fprintf(h->to, "%s\"%s\"", i ? ", " : "", h->m->launches[i].kernel);
  put(h, "};\n"
         "  int code = d->cuModuleLoadData(&k->module, @_ptx");
  fprintf(h->to, "%s%s", between(h), behind(h));
  put(h, ");\n"
         "  if (code) k->module = 0;\n"
         "  for (unsigned i = 0; i < sizeof names / sizeof names[0] && !code; i++)\n"
         "    code = d->cuModuleGetFunction(&k->function[i], k->module, names[i]);\n");
  for (size_t i = 0; i < h->m->launch_count; i++)
    if (h->m->launches[i].dynamic_shared_bytes)
      fprintf(h->to, "  if (!code) code = d->cuFuncSetAttribute(k->function[%zu], %d, %u);\n", i, MAX_DYNAMIC_SHARED,
              h->m->launches[i].dynamic_shared_bytes);
  put(h, "  if (code) @_unload(d, k);\n"
         "  return code;\n"
         "}\n\n");
}

static void write_unloading(const header *h) {
  put(h, "void @_unload(const kiln_entry_points *d, @_kernels *k) {\n"
         "  if (k->module) d->cuModuleUnload(k->module);\n"
         "  k->module = 0;\n"
         "}\n\n");
}

// The driver's numbers of a device's compute capability, and of its refusal.
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, NO_BINARY_FOR_GPU = 209 };

// Which devices run code for a target, as kiln_bundle_choose has it: "a" is for one architecture, "f" for its family
// from there on, others for whatever is newer.
static void write_condition_of(const header *h, size_t i) {
  unsigned sm = 0;
  char variant = 0;
  sscanf(manifest_of(h, i)->target, "sm_%u%c", &sm, &variant);
  if (variant == 'a' || (variant == 'f' && sm == 101))
    fprintf(h->to, "sm == %u", sm);
  else if (variant == 'f')
    fprintf(h->to, "sm / 10 == %u && sm >= %u && sm != 101", sm / 10, sm);
  else
    fprintf(h->to, "sm >= %u", sm);
}

static void write_choice(const header *h) {
  put(h, "int @_load(const kiln_entry_points *d, @_kernels *k) {\n"
         "  int device = 0, major = 0, minor = 0;\n"
         "  int code = d->cuCtxGetDevice(&device);\n");
  fprintf(h->to,
          "  if (!code) code = d->cuDeviceGetAttribute(&major, %d, device);\n"
          "  if (!code) code = d->cuDeviceGetAttribute(&minor, %d, device);\n"
          "  const int sm = 10 * major + minor;\n"
          "  k->module = 0;\n"
          "  if (code) return code;\n",
          CAPABILITY_MAJOR, CAPABILITY_MINOR);
  for (size_t i = 0; i < h->n; i++) {
    fprintf(h->to, "  if (");
    write_condition_of(h, i);
    fprintf(h->to, ") {\n    k->target = %zu;\n", i);
    put(h, "    return @_load_");
    fprintf(h->to, "%s(d, k);\n  }\n", manifest_of(h, i)->target);
  }
  fprintf(h->to, "  return %d;\n}\n\n", NO_BINARY_FOR_GPU);
}

static void write_dispatch(const header *h) {
  declare_launch(h, "", " {");
  for (size_t i = 0; i < h->n; i++) {
    const char *target = manifest_of(h, i)->target;
    if (i + 1 < h->n) fprintf(h->to, "  if (k->target == %zu)\n  ", i);
    put(h, "  return @_launch_");
    fprintf(h->to, "%s(d, k, stream", target);
    write_operands(h, ", ", ", ");
    fprintf(h->to, ");\n");
  }
  put(h, "}\n");
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
      fprintf(to, "(rows * %lldu + %u) / %u", (long long)s->row, 8 / bits - 1, 8 / bits);
    else
      fprintf(to, "rows * %lldu", (long long)s->row * (bits / 8));
  }
  fprintf(to, "};\n  const uint64_t align[] = {");
  for (size_t i = 0; i < n; i++) fprintf(to, "%s%u", i ? ", " : "", align_of(h, i));
  fprintf(to, "};\n  const unsigned alias[] = {");
  for (size_t i = 0; i < n; i++) fprintf(to, "%s%uu", i ? ", " : "", alias_of(h, i));
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
  if (h->m->counted)
    put(h, "  if (count < 0 || count > @_MAX_COUNT || count % @_COUNT_UNIT) return 1;\n"
           "  const uint64_t rows = (uint64_t)count / @_COUNT_UNIT;\n"
           "  (void)rows;\n");
  if (slots_of(h->m)) write_buffer_checks(h);
  if (h->m->scratch_bytes)
    put(h, "  if (!scratch) return 1;\n  if (scratch % @_SCRATCH_ALIGN) return 716;\n");
  else if (scratch_of(h).bytes)
    put(h, "  (void)scratch;\n");
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

// Of a launch for results that are where their aliases are, or are not.
static void write_condition(const header *h, const kiln_launch *l) {
  const char *before = l->when == KILN_WHEN_APART ? "if (!(" : "if (";
  if (l->when == KILN_WHEN_ALWAYS) return;
  for (size_t i = 0; i < l->argument_count; i++) {
    const kiln_argument *a = &l->arguments[i];
    if (a->kind != KILN_ARGUMENT_SLOT || !a->output || h->m->slots[a->slot].alias == KILN_NO_SLOT) continue;
    fprintf(h->to, "%sat[%u] == at[%u]", before, a->slot, h->m->slots[a->slot].alias);
    before = " && ";
  }
  fputs(l->when == KILN_WHEN_APART ? ")) " : ") ", h->to);
}

static void write_one_launch(const header *h, size_t i) {
  FILE *to = h->to;
  const kiln_launch *l = &h->m->launches[i];
  if (!h->m->counted && l->grid[0] == 0) { // no elements
    fprintf(to, "  (void)d, (void)k, (void)stream;\n");
    return;
  }
  fprintf(to, "  ");
  write_condition(h, l);
  fprintf(to, "{\n    uint64_t v[] = {");
  for (size_t k = 0; k < l->argument_count; k++) {
    if (k) fprintf(to, ", ");
    write_argument(h, &l->arguments[k]);
  }
  fprintf(to, "};\n    void *arguments[] = {");
  for (size_t k = 0; k < l->argument_count; k++) fprintf(to, "%s&v[%zu]", k ? ", " : "", k);
  fprintf(to, "};\n");
  if (l->count_whole) {
    fprintf(to, "    unsigned grid = (unsigned)(count / %lld + (count %% %lld + %lld) / %lld) * %uu;\n    if (grid) ",
            (long long)l->count_whole, (long long)l->count_whole, (long long)(l->count_rest - 1),
            (long long)l->count_rest, l->count_blocks);
  } else {
    fprintf(to, "    unsigned grid = %uu;\n    %s", l->grid[0], h->m->counted ? "if (count) " : "");
  }
  fprintf(to, "code = d->cuLaunchKernel(k->function[%zu], grid, %u, %u, %u, %u, %u, %u, stream, arguments, 0);\n", i,
          l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->dynamic_shared_bytes);
  fprintf(to, "    if (code) return code;\n  }\n");
}

static void write_launch(const header *h) {
  if (h->n > 1) put(h, "static ");
  declare_launch(h, behind(h), " {");
  put(h, "  int code = 0;\n");
  write_checks(h);
  for (size_t i = 0; i < h->m->launch_count; i++) write_one_launch(h, i);
  put(h, "  return code;\n}\n\n");
}

static void write_implementation(header h) {
  put(&h, "#ifdef @_IMPLEMENTATION\n#undef @_IMPLEMENTATION\n\n");
  write_constants(&h);
  write_unloading(&h);
  for (size_t i = 0; i < h.n; i++) {
    h.m = manifest_of(&h, i);
    write_ptx(&h, kiln_artifact_text(kiln_bundle_get(h.b, i), KILN_TEXT_PTX, NULL));
    write_loading(&h);
    write_launch(&h);
  }
  if (h.n > 1) {
    write_choice(&h);
    write_dispatch(&h);
  }
  put(&h, "#endif\n");
}

// --- the file -------------------------------------------------------------------------------------------------------

char *header_prefix(const char *module, const char *fusion) {
  size_t n = strlen(module) + (fusion ? strlen(fusion) : 0) + 8, k = 0;
  char *out = malloc(n);
  if (!out) return NULL;
  bool digit = module[0] >= '0' && module[0] <= '9';
  snprintf(out, n, "%s%s%s%s", digit || !module[0] ? "kiln_" : "", module, fusion ? "_" : "", fusion ? fusion : "");
  for (; out[k]; k++) {
    char c = out[k];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) out[k] = '_';
  }
  return out;
}

// FNV-1a
static uint64_t content_hash(const char *text, size_t n) {
  uint64_t v = 0xcbf29ce484222325;
  for (size_t i = 0; i < n; i++) v = (v ^ (unsigned char)text[i]) * 0x100000001b3;
  return v;
}

// Guarded by name and content, so that the same header comes once, and another of its name is an error.
static void write_guarded(const header *h, const char *text, size_t size, size_t declarations) {
  uint64_t hash = content_hash(text, size);
  fprintf(h->to, "// %s: the kernels of module '%s' for ", h->prefix, h->m->module);
  put_targets(h, ", ");
  fprintf(h->to, ", and how to launch them. Written by kiln %s.\n", h->m->kiln_version);
  put(h,
      "//\n// One C or C++ file defines @_IMPLEMENTATION before it includes this; all others just include it. Neither\n"
      "// kiln nor libcuda is needed to link.\n");
  put(h, "#ifndef KILN_@");
  fprintf(h->to, "_%016" PRIx64 "\n", hash);
  put(h, "#define KILN_@");
  fprintf(h->to, "_%016" PRIx64 "\n", hash);
  put(h, "#ifdef @_TARGET\n#error \"two headers of different kernels are called @: see kiln compile "
         "--prefix\"\n#endif\n\n");
  fwrite(text, 1, declarations, h->to);
  put(h, "\n#endif\n\n");
  fwrite(text + declarations, 1, size - declarations, h->to);
}

// What the header says of all targets at once.
static int check_common(const kiln_bundle *b) {
  const kiln_manifest *first = kiln_artifact_manifest(kiln_bundle_get(b, 0));
  for (size_t i = 0; i < kiln_bundle_count(b); i++) {
    const kiln_manifest *m = kiln_artifact_manifest(kiln_bundle_get(b, i));
    if (m->step_count) {
      fprintf(stderr, "kiln compile: --emit header: expected a module without loops, which a header does not launch\n");
      return EXIT_NOT_SUPPORTED;
    }
    uint64_t n = m->constant_bytes;
    bool same = n == first->constant_bytes && (!n || (m->scratch_zero_bytes == first->scratch_zero_bytes &&
                                                      memcmp(m->constants, first->constants, (size_t)n) == 0));
    if (same) continue;
    fprintf(stderr,
            "kiln compile: --emit header: the constants for %s and %s lie differently: expected a header for each\n",
            first->target, m->target);
    return EXIT_NOT_SUPPORTED;
  }
  return 0;
}

int put_header(FILE *to, const char *prefix, const kiln_bundle *b) {
  char *text = NULL;
  size_t size = 0, declarations = 0;
  int status = check_common(b);
  if (status) return status;
  header h = {open_memstream(&text, &size), b, kiln_bundle_count(b), NULL, prefix};
  bool ok = h.to != NULL;
  h.m = manifest_of(&h, 0);
  if (ok) {
    write_declarations(&h);
    ok = fflush(h.to) == 0;
    declarations = size;
    write_implementation(h);
    ok = fclose(h.to) == 0 && ok;
  }
  h.to = to;
  if (ok)
    write_guarded(&h, text, size, declarations);
  else
    fprintf(stderr, "kiln compile: no memory for a header\n");
  free(text);
  return ok ? 0 : EXIT_BAD_INPUT;
}
