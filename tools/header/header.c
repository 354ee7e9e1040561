// A C header that has a module's kernels for one target or several, and launches them without kiln.

#include "header/header.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

// As HLO writes it, with the layout.
static void put_type(FILE *to, const kiln_slot *s) {
  fprintf(to, "%s[", kiln_dtype_name(s->type.dtype));
  for (uint32_t d = 0; d < s->type.rank; d++) fprintf(to, "%s%lld", d ? "," : "", (long long)s->type.dims[d]);
  fprintf(to, "]%s", strcmp(s->layout, "{}") == 0 ? "" : s->layout);
}

static void describe_slots(const header *h) {
  for (size_t i = 0; i < header_slots(h->m); i++) {
    const kiln_slot *s = &h->m->slots[i];
    char name[24], other[24];
    header_slot_name(s, name);
    fprintf(h->to, "//   %-12s %s, ", name, s->name);
    put_type(h->to, s);
    if (s->by_value) {
      fprintf(h->to, ", the value itself in the low bits\n");
      continue;
    }
    if (s->counted)
      fprintf(h->to, ", %lld elements for each %lld of `count`, at most", (long long)s->row,
              (long long)h->m->count_unit);
    header wide = *h;
    wide.less = false;
    fprintf(h->to, "%s%lld bytes, aligned to %u", s->counted ? " " : ", ", (long long)s->bytes, header_align(h, i));
    if (header_align(&wide, i) > header_align(h, i)) fprintf(h->to, " or, better, %u", header_align(&wide, i));
    if (header_alias(h, i) != KILN_NO_SLOT) {
      header_slot_name(&h->m->slots[s->alias], other);
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
  define(h, WHAT("ALIGN"), "%u", header_align(h, slot));
  define(h, WHAT("RANK"), "%u", s->type.rank);
  for (uint32_t d = 0; d < s->type.rank; d++) {
    define(h, WHAT("DIM%u", d), "%lld", (long long)s->type.dims[d]);
    elements *= s->type.dims[d];
  }
  define(h, WHAT("ELEMENTS"), "%lld", (long long)elements);
#undef WHAT
}

// --- declarations ---------------------------------------------------------------------------------------------------

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
    "  // These for headers of loops and branches that go by what kernels have computed.\n"
    "  int (*cuStreamIsCapturing)(void *stream, int *capturing);\n"
    "  int (*cuMemcpyDtoHAsync)(void *to, uint64_t from, size_t bytes, void *stream); // cuMemcpyDtoHAsync_v2\n"
    "  int (*cuStreamSynchronize)(void *stream);\n"
    "} kiln_entry_points;\n#endif\n\n";

// "sm_90,sm_80", as --target takes them.
static void put_targets(const header *h, const char *between_two) {
  for (size_t i = 0; i < h->n; i++) fprintf(h->to, "%s%s", i ? between_two : "", header_manifest(h, i)->target);
}

// Of what the target has to load, PTX or machine code.
static int least_driver(const header *h, size_t i) {
  if (!h->cubins) return header_manifest(h, i)->driver_version;
  int most = 0;
  for (size_t k = i; k < header_codes(h); k += h->n) {
    int driver = kiln_cubin_driver_version(h->cubins[k].bytes, h->cubins[k].size);
    if (driver > most) most = driver;
  }
  return most;
}

static void define_driver(const header *h, const char *name, int least) {
  if (least)
    define(h, name, "%d // least that cuDriverGetVersion must give: CUDA %d.%d", least, least / 1000,
           least % 1000 / 10);
  else
    define(h, name, "0 // not known: the machine code does not say");
}

static void define_versions(header h) {
  char name[48];
  fprintf(h.to, "#define %s_%-16s \"", h.prefix, "TARGET");
  put_targets(&h, ",");
  fprintf(h.to, "\"\n");
  for (size_t i = 0; i < h.n; i++) {
    const kiln_manifest *m = h.m = header_manifest(&h, i);
    snprintf(name, sizeof name, "PTX_VERSION%s%s", header_between(&h), header_behind(&h));
    define(&h, name, "%u // %u.%u", m->ptx_version, m->ptx_version / 10, m->ptx_version % 10);
    snprintf(name, sizeof name, "DRIVER_VERSION%s%s", header_between(&h), header_behind(&h));
    define_driver(&h, name, least_driver(&h, i));
  }
}

static void define_all(const header *h) {
  const kiln_manifest *m = h->m;
  header_room scratch = header_scratch(h);
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
  for (size_t i = 0; i < header_slots(m); i++) define_slot(h, i);
}

static bool any_steps(const header *h) {
  for (size_t i = 0; i < header_codes(h); i++)
    if (header_code(h, i)->step_count) return true;
  return false;
}

// Of one launch.
static size_t most_launches(const header *h) {
  size_t wide = header_most_launches(h, false), less = header_has_less(h) ? header_most_launches(h, true) : 0;
  return wide > less ? wide : less;
}

static size_t functions(const header *h) {
  return header_most_launches(h, false) + (header_has_less(h) ? header_most_launches(h, true) : 0);
}

static void write_declarations(const header *h) {
  FILE *to = h->to;
  const kiln_manifest *m = h->m;
  header_room scratch = header_scratch(h);
  header_put(h, "#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  header_put(h, entry_points);
  define_all(h);
  header_put(h, "\ntypedef struct @_kernels {\n  void *module;\n");
  if (h->n > 1) header_put(h, "  int target; // that is loaded: its number in @_TARGET\n");
  if (header_has_less(h)) header_put(h, "  void *less; // the module of the kernels for buffers of less alignment\n");
  fprintf(to, "  void *function[%zu];\n", functions(h));
  header_put(h, "} @_kernels;\n\n");
  if (m->constant_bytes) header_put(h, "extern const uint64_t @_constants[@_CONSTANT_BYTES / 8];\n\n");
  header_put(h, h->n > 1
                    ? "// Loads the code of the first target that the device of the thread's current context can run.\n"
                    : "// Loads the code into the thread's current context.\n");
  header_put(h, h->cubins ? "// 0, or the driver's code" : "// The driver compiles it here. 0, or the driver's code");
  header_put(h, h->n > 1 ? ", or 209 (CUDA_ERROR_NO_BINARY_FOR_GPU) where there is none.\n" : ".\n");
  header_put(h, "int @_load(const kiln_entry_points *d, @_kernels *k);\n"
                "void @_unload(const kiln_entry_points *d, @_kernels *k);\n\n");
  fprintf(to, "// Enqueues %zu kernel%s%s on the stream%s. Device addresses of:\n", most_launches(h),
          most_launches(h) == 1 ? "" : "s", h->n > 1 ? " at most" : "",
          any_steps(h) ? ", each as often as loops and branches say" : "");
  describe_slots(h);
  if (scratch.bytes) fprintf(to, "//   scratch      %" PRIu64 " bytes, aligned to %u\n", scratch.bytes, scratch.align);
  if (scratch.zero)
    fprintf(to,
            "//                the first %" PRIu64
            " are zero, and zero again behind; launches that share them do not overlap\n",
            scratch.zero);
  if (m->constant_bytes)
    header_put(
        h, "//                from @_CONSTANTS_AT on it has the @_CONSTANT_BYTES bytes of @_constants, copied there "
           "before;\n"
           "//                they stay\n");
  if (header_has_less(h))
    header_put(h, "// There are two kinds of kernels: those with wider accesses run where every buffer has the better "
                  "alignment.\n");
  if (m->counted)
    fprintf(to, "// count: elements of the first result, a multiple of %lld up to %lld.\n", (long long)m->count_unit,
            (long long)m->max_count);
  header_put(
      h, "// Returns 0, the driver's code, 716 (CUDA_ERROR_MISALIGNED_ADDRESS) for a misaligned address, or 1\n"
         "// (CUDA_ERROR_INVALID_VALUE) for one that is missing or where results overlap others; nothing is launched "
         "then.\n");
  if (header_any_reads(h))
    header_put(
        h, "// A loop or a branch goes by what kernels have computed, which is copied here and waited for: on a stream "
           "that is being\n// captured nothing is launched, and it returns 900 "
           "(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED).\n");
  header_declare_launch(h, "", ";");
  header_put(h, "\n#ifdef __cplusplus\n}\n#endif\n");
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
  header_put(
      h,
      "//\n// One C or C++ file defines @_IMPLEMENTATION before it includes this; all others just include it. Neither\n"
      "// kiln nor libcuda is needed to link.\n");
  header_put(h, "#ifndef KILN_@");
  fprintf(h->to, "_%016" PRIx64 "\n", hash);
  header_put(h, "#define KILN_@");
  fprintf(h->to, "_%016" PRIx64 "\n", hash);
  header_put(h, "#ifdef @_TARGET\n#error \"two headers of different kernels are called @: see kiln compile "
                "--prefix\"\n#endif\n\n");
  fwrite(text, 1, declarations, h->to);
  header_put(h, "\n#endif\n\n");
  fwrite(text + declarations, 1, size - declarations, h->to);
}

// What the header says of all targets at once.
static int check_common(const kiln_bundle *b) {
  const kiln_manifest *first = kiln_artifact_manifest(kiln_bundle_get(b, 0));
  for (size_t i = 0; i < kiln_bundle_count(b); i++) {
    const kiln_manifest *m = kiln_artifact_manifest(kiln_bundle_get(b, i));
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

static int make_cubins(kiln_context *cx, header *h) {
  h->cubins = calloc(header_codes(h), sizeof *h->cubins);
  int status = h->cubins ? 0 : out_of_memory((int64_t)header_codes(h));
  for (size_t i = 0; !status && i < header_codes(h); i++) status = make_cubin(cx, header_artifact(h, i), &h->cubins[i]);
  return status;
}

static void free_cubins(header *h) {
  for (size_t i = 0; h->cubins && i < header_codes(h); i++) free(h->cubins[i].bytes);
  free(h->cubins);
}

static int write_header(FILE *to, header h) {
  char *text = NULL;
  size_t size = 0, declarations = 0;
  h.to = open_memstream(&text, &size);
  bool ok = h.to != NULL;
  if (ok) {
    write_declarations(&h);
    ok = fflush(h.to) == 0;
    declarations = size;
    header_implementation(h);
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

int put_header(FILE *to, kiln_context *cx, const char *prefix, const kiln_bundle *b, bool cubins) {
  header h = {.b = b, .n = kiln_bundle_count(b), .prefix = prefix};
  h.m = header_manifest(&h, 0);
  h.less = header_has_less(&h); // what callers are told to keep to
  int status = check_common(b);
  if (!status && cubins) status = make_cubins(cx, &h);
  if (!status) status = write_header(to, h);
  free_cubins(&h);
  return status;
}
