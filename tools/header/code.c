// The code of a header: loads the kernels of one target or several, checks buffers, and launches.

#include "header/header.h"

#include <inttypes.h>

static void write_ptx(const header *h, const char *ptx) {
  FILE *to = h->to;
  fprintf(to, "#ifdef __GNUC__\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "
              "\"-Woverlength-strings\"\n#endif\n");
  header_put(h, "static const char @_ptx");
  fprintf(to, "%s[] =", header_code_name(h).text);
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

static void write_cubin(const header *h, const machine_code *code) {
  header_put(h, "static const unsigned char @_cubin");
  fprintf(h->to, "%s[] = {", header_code_name(h).text);
  for (size_t i = 0; i < code->size; i++)
    fprintf(h->to, "%s%u,", i % 32 ? "" : "\n    ", (unsigned)(unsigned char)code->bytes[i]);
  fprintf(h->to, "\n};\n\n");
}

// As words of a little-endian machine, which whoever runs a GPU has.
static void write_constants(const header *h) {
  const kiln_manifest *m = h->m;
  if (!m->constant_bytes) return;
  header_put(h, "const uint64_t @_constants[@_CONSTANT_BYTES / 8] = {");
  for (uint64_t i = 0; i < m->constant_bytes; i += 8) {
    uint64_t word = 0;
    for (unsigned k = 0; k < 8; k++) word |= (uint64_t)((const uint8_t *)m->constants)[i + k] << 8 * k;
    fprintf(h->to, "%s0x%" PRIx64 "u,", i % 64 ? " " : "\n    ", word);
  }
  header_put(h, "\n};\n\n");
}

enum { MAX_DYNAMIC_SHARED = 8 }; // the driver's number of that attribute

static size_t first_function(const header *h) {
  return h->less ? header_most_launches(h, false) : 0;
}

static void write_loading(const header *h) {
  header_name name = header_code_name(h);
  const char *module = h->less ? "less" : "module";
  if (*name.text) header_put(h, "static ");
  header_put(h, "int @_load");
  fputs(name.text, h->to);
  header_put(h, "(const kiln_entry_points *d, @_kernels *k) {\n  static const char *const names[] = {");
  for (size_t i = 0; i < h->m->launch_count; i++) fprintf(h->to, "%s\"%s\"", i ? ", " : "", h->m->launches[i].kernel);
  fprintf(h->to, "};\n  int code = d->cuModuleLoadData(&k->%s, ", module);
  header_put(h, h->cubins ? "@_cubin" : "@_ptx");
  fprintf(h->to,
          "%s);\n"
          "  if (code) k->%s = 0;\n"
          "  for (unsigned i = 0; i < sizeof names / sizeof names[0] && !code; i++)\n"
          "    code = d->cuModuleGetFunction(&k->function[i",
          name.text, module);
  if (h->less) fprintf(h->to, " + %zu", first_function(h));
  fprintf(h->to, "], k->%s, names[i]);\n", module);
  for (size_t i = 0; i < h->m->launch_count; i++)
    if (h->m->launches[i].dynamic_shared_bytes)
      fprintf(h->to, "  if (!code) code = d->cuFuncSetAttribute(k->function[%zu], %d, %u);\n", first_function(h) + i,
              MAX_DYNAMIC_SHARED, h->m->launches[i].dynamic_shared_bytes);
  header_put(h, "  if (code) @_unload(d, k);\n"
                "  return code;\n"
                "}\n\n");
}

static void write_unloading(const header *h) {
  header_put(h, "void @_unload(const kiln_entry_points *d, @_kernels *k) {\n"
                "  if (k->module) d->cuModuleUnload(k->module);\n"
                "  k->module = 0;\n");
  if (header_has_less(h)) header_put(h, "  if (k->less) d->cuModuleUnload(k->less);\n  k->less = 0;\n");
  header_put(h, "}\n\n");
}

// The driver's numbers of a device's compute capability, and of its refusal.
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, NO_BINARY_FOR_GPU = 209 };

// Which devices run code for a target, as kiln_bundle_choose has it: "a" is for one architecture, "f" for its family
// from there on, others for whatever is newer; of machine code for newer ones of the same generation.
static void write_condition_of(const header *h, size_t i) {
  unsigned sm = 0;
  char variant = 0;
  sscanf(header_manifest(h, i)->target, "sm_%u%c", &sm, &variant);
  if (variant == 'a' || (variant == 'f' && sm == 101))
    fprintf(h->to, "sm == %u", sm);
  else if (h->cubins && !variant)
    fprintf(h->to, "sm / 10 == %u && sm >= %u", sm / 10, sm);
  else if (variant == 'f')
    fprintf(h->to, "sm / 10 == %u && sm >= %u && sm != 101", sm / 10, sm);
  else
    fprintf(h->to, "sm >= %u", sm);
}

// Those of target i.
static header of_target(const header *h, size_t i, bool less) {
  header one = *h;
  one.less = less;
  one.m = header_code(h, less ? h->n + i : i);
  return one;
}

static void write_loads_of(const header *h, size_t i, const char *before) {
  header wide = of_target(h, i, false);
  fprintf(h->to, "%scode = ", before);
  header_put(h, "@_load");
  fprintf(h->to, "%s(d, k);\n", header_code_name(&wide).text);
  if (header_has_less(h)) {
    header less = of_target(h, i, true);
    fprintf(h->to, "%sif (!code) code = ", before);
    header_put(h, "@_load");
    fprintf(h->to, "%s(d, k);\n", header_code_name(&less).text);
  }
  fprintf(h->to, "%sreturn code;\n", before);
}

static void write_choice(const header *h) {
  header_put(h, "int @_load(const kiln_entry_points *d, @_kernels *k) {\n"
                "  int code = 0;\n"
                "  k->module = 0;\n");
  if (header_has_less(h)) fprintf(h->to, "  k->less = 0;\n");
  if (h->n == 1) {
    write_loads_of(h, 0, "  ");
    fprintf(h->to, "}\n\n");
    return;
  }
  fprintf(h->to,
          "  int device = 0, major = 0, minor = 0;\n"
          "  code = d->cuCtxGetDevice(&device);\n"
          "  if (!code) code = d->cuDeviceGetAttribute(&major, %d, device);\n"
          "  if (!code) code = d->cuDeviceGetAttribute(&minor, %d, device);\n"
          "  const int sm = 10 * major + minor;\n"
          "  if (code) return code;\n",
          CAPABILITY_MAJOR, CAPABILITY_MINOR);
  for (size_t i = 0; i < h->n; i++) {
    fprintf(h->to, "  if (");
    write_condition_of(h, i);
    fprintf(h->to, ") {\n    k->target = %zu;\n", i);
    write_loads_of(h, i, "    ");
    fprintf(h->to, "  }\n");
  }
  fprintf(h->to, "  return %d;\n}\n\n", NO_BINARY_FOR_GPU);
}

// Has every buffer that kernels are given the alignment of wide accesses?
static void write_alignment_of_all(const header *h) {
  header wide = of_target(h, 0, false);
  fprintf(h->to, "  int wide = 1;\n");
  for (size_t i = 0; i < header_slots(h->m); i++) {
    char name[24];
    header_slot_name(&h->m->slots[i], name);
    if (!h->m->slots[i].by_value && header_is_used(h->m, i))
      fprintf(h->to, "  wide &= %s %% %uu == 0;\n", name, header_align(&wide, i));
  }
}

static void write_dispatch(const header *h) {
  header_declare_launch(h, "", " {");
  if (header_has_less(h)) write_alignment_of_all(h);
  for (size_t i = 0; i < header_codes(h); i++) {
    header one = of_target(h, i % h->n, i >= h->n);
    if (i + 1 < header_codes(h)) {
      const char *before = "  if (";
      if (h->n > 1) fprintf(h->to, "%sk->target == %zu", before, i % h->n), before = " && ";
      if (header_has_less(h)) fprintf(h->to, "%s%swide", before, one.less ? "!" : "");
      fprintf(h->to, ")\n  ");
    }
    header_put(h, "  return @_launch");
    fprintf(h->to, "%s(d, k, stream", header_code_name(&one).text);
    header_operands(h, ", ", ", ");
    fprintf(h->to, ");\n");
  }
  header_put(h, "}\n");
}

// at[], bytes[], align[] and alias[] by slot; bytes 0 where nothing is looked at.
static void write_buffer_checks(const header *h) {
  FILE *to = h->to;
  size_t n = header_slots(h->m);
  fprintf(to, "  const uint64_t at[] = {");
  for (size_t i = 0; i < n; i++) {
    char name[24];
    header_slot_name(&h->m->slots[i], name);
    fprintf(to, "%s%s", i ? ", " : "", name);
  }
  fprintf(to, "};\n  const uint64_t bytes[] = {");
  for (size_t i = 0; i < n; i++) {
    const kiln_slot *s = &h->m->slots[i];
    unsigned bits = kiln_dtype_bits(s->type.dtype);
    if (i) fprintf(to, ", ");
    if (s->by_value || !header_is_used(h->m, i))
      fprintf(to, "0");
    else if (!s->counted)
      fprintf(to, "%lldu", (long long)s->bytes);
    else if (bits < 8)
      fprintf(to, "(rows * %lldu + %u) / %u", (long long)s->row, 8 / bits - 1, 8 / bits);
    else
      fprintf(to, "rows * %lldu", (long long)s->row * (bits / 8));
  }
  fprintf(to, "};\n  const uint64_t align[] = {");
  for (size_t i = 0; i < n; i++) fprintf(to, "%s%u", i ? ", " : "", header_align(h, i));
  fprintf(to, "};\n  const unsigned alias[] = {");
  for (size_t i = 0; i < n; i++) fprintf(to, "%s%uu", i ? ", " : "", header_alias(h, i));
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
    header_put(h, "  if (count < 0 || count > @_MAX_COUNT || count % @_COUNT_UNIT) return 1;\n"
                  "  const uint64_t rows = (uint64_t)count / @_COUNT_UNIT;\n"
                  "  (void)rows;\n");
  if (header_slots(h->m)) write_buffer_checks(h);
  if (h->m->scratch_bytes)
    header_put(h, "  if (!scratch) return 1;\n  if (scratch % @_SCRATCH_ALIGN) return 716;\n");
  else if (header_scratch(h).bytes)
    header_put(h, "  (void)scratch;\n");
}

static void write_argument(const header *h, const kiln_argument *a) {
  if (a->kind == KILN_ARGUMENT_SLOT) {
    char name[24];
    header_slot_name(&h->m->slots[a->slot], name);
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

// What begins a line of a launch's code.
static FILE *line(const header *h) {
  fprintf(h->to, "%*s", h->indent, "");
  return h->to;
}

static void write_one_launch(const header *h, size_t i) {
  FILE *to = h->to;
  const kiln_launch *l = &h->m->launches[i];
  if (!h->m->counted && l->grid[0] == 0) return; // no elements
  line(h);
  write_condition(h, l);
  fprintf(to, "{\n");
  fprintf(line(h), "  uint64_t v[] = {");
  for (size_t k = 0; k < l->argument_count; k++) {
    if (k) fprintf(to, ", ");
    write_argument(h, &l->arguments[k]);
  }
  fprintf(to, "};\n");
  fprintf(line(h), "  void *arguments[] = {");
  for (size_t k = 0; k < l->argument_count; k++) fprintf(to, "%s&v[%zu]", k ? ", " : "", k);
  fprintf(to, "};\n");
  if (l->count_whole) {
    fprintf(line(h), "  unsigned grid = (unsigned)(count / %lld + (count %% %lld + %lld) / %lld) * %uu;\n",
            (long long)l->count_whole, (long long)l->count_whole, (long long)(l->count_rest - 1),
            (long long)l->count_rest, l->count_blocks);
    fprintf(line(h), "  if (grid) ");
  } else {
    fprintf(line(h), "  unsigned grid = %uu;\n", l->grid[0]);
    fprintf(line(h), "  %s", h->m->counted ? "if (count) " : "");
  }
  fprintf(to, "code = d->cuLaunchKernel(k->function[%zu], grid, %u, %u, %u, %u, %u, %u, stream, arguments, 0);\n",
          first_function(h) + i, l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
          l->dynamic_shared_bytes);
  fprintf(line(h), "  if (code) return code;\n");
  fprintf(line(h), "}\n");
}

// --- steps: a loop for a loop, a case of a switch for a branch ------------------------------------------------------

// A declaration of a step's condition, as a number; it is called after the step.
static void write_number(const header *h, size_t i) {
  const kiln_step *s = &h->m->steps[i];
  const char *type = s->condition_bytes == 1 ? "uint8_t" : "int32_t";
  bool passed = header_is_passed(h->m, &s->condition);
  fprintf(line(h), "%s number%zu = ", type, i);
  if (passed) {
    fprintf(h->to, "(%s)", type);
    write_argument(h, &s->condition);
  } else {
    fprintf(h->to, "0");
  }
  fprintf(h->to, ";\n");
  if (passed) return;
  line(h);
  header_put(h, "code = @_read(d, stream, ");
  write_argument(h, &s->condition);
  fprintf(h->to, ", &number%zu, %u);\n", i, s->condition_bytes);
  fprintf(line(h), "if (code) return code;\n");
}

static void write_steps(header h, size_t first, size_t count);

static void write_while(header h, size_t i) {
  const kiln_step *s = &h.m->steps[i];
  fprintf(line(&h), "for (;;) {\n");
  h.indent += 2;
  write_steps(h, i + 1, s->count);
  write_number(&h, i);
  fprintf(line(&h), "if (!number%zu) break;\n", i);
  write_steps(h, i + 1 + s->count, s->body);
  h.indent -= 2;
  fprintf(line(&h), "}\n");
}

static void write_repeated(header h, size_t i) {
  const kiln_step *s = &h.m->steps[i];
  fprintf(line(&h), "for (uint64_t round%zu = 0; round%zu < %" PRIu64 "u; round%zu++) {\n", i, i, s->times, i);
  h.indent += 2;
  write_steps(h, i + 1, s->body);
  h.indent -= 2;
  fprintf(line(&h), "}\n");
}

// A truth takes the first where it holds. The last is for all numbers that are no other's.
static void write_branch(header h, size_t i) {
  const kiln_step *s = &h.m->steps[i];
  fprintf(line(&h), "{\n");
  h.indent += 2;
  write_number(&h, i);
  fprintf(line(&h), "switch (number%zu%s) {\n", i, s->condition_bytes == 1 ? " ? 0 : 1" : "");
  for (size_t k = 0, at = i + 1; k < s->count; at += 1 + h.m->steps[at].body, k++) {
    line(&h);
    if (k + 1 < s->count)
      fprintf(h.to, "case %zu:\n", k);
    else
      fprintf(h.to, "default:\n");
    h.indent += 2;
    write_steps(h, at + 1, h.m->steps[at].body);
    fprintf(line(&h), "break;\n");
    h.indent -= 2;
  }
  fprintf(line(&h), "}\n");
  h.indent -= 2;
  fprintf(line(&h), "}\n");
}

static void write_launches(const header *h, size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) write_one_launch(h, i);
}

// They nest as deep as computations do.
static void write_steps(header h, size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) {
    const kiln_step *s = &h.m->steps[i];
    switch (s->kind) {
    case KILN_STEP_LAUNCHES: write_launches(&h, s->first, s->count); continue;
    case KILN_STEP_WHILE: write_while(h, i); break;
    case KILN_STEP_REPEAT: write_repeated(h, i); break;
    case KILN_STEP_BRANCH: write_branch(h, i); break;
    case KILN_STEP_CASE: break; // not outside of branches
    }
    i += (s->kind == KILN_STEP_WHILE ? s->count : 0) + s->body;
  }
}

// The driver's numbers of "no capture", and of a call that a capture does not allow.
enum { NOT_CAPTURING = 0, CAPTURE_UNSUPPORTED = 900 };

static void write_reading(const header *h) {
  if (!header_any_reads(h)) return;
  header_put(h, "static int @_read(const kiln_entry_points *d, void *stream, uint64_t at, void *to, size_t bytes) {\n"
                "  int code = d->cuMemcpyDtoHAsync(to, at, bytes, stream);\n"
                "  return code ? code : d->cuStreamSynchronize(stream);\n"
                "}\n\n");
}

static void write_capture_check(const header *h) {
  if (!header_reads(h->m)) return;
  fprintf(h->to,
          "  int capturing = %d;\n"
          "  code = d->cuStreamIsCapturing(stream, &capturing);\n"
          "  if (code) return code;\n"
          "  if (capturing != %d) return %d;\n",
          NOT_CAPTURING, NOT_CAPTURING, CAPTURE_UNSUPPORTED);
}

static void write_launch(header h) {
  header_name name = header_code_name(&h);
  if (*name.text) header_put(&h, "static ");
  header_declare_launch(&h, name.text, " {");
  header_put(&h, "  int code = 0;\n  (void)d, (void)k, (void)stream;\n");
  write_checks(&h);
  write_capture_check(&h);
  h.indent = 2;
  if (h.m->step_count)
    write_steps(h, 0, h.m->step_count);
  else
    write_launches(&h, 0, h.m->launch_count);
  header_put(&h, "  return code;\n}\n\n");
}

void header_implementation(header h) {
  header_put(&h, "#ifdef @_IMPLEMENTATION\n#undef @_IMPLEMENTATION\n\n");
  write_constants(&h);
  write_unloading(&h);
  write_reading(&h);
  for (size_t i = 0; i < header_codes(&h); i++) {
    header one = of_target(&h, i % h.n, i >= h.n);
    if (h.cubins)
      write_cubin(&one, &h.cubins[i]);
    else
      write_ptx(&one, kiln_artifact_text(header_artifact(&h, i), KILN_TEXT_PTX, NULL));
    write_loading(&one);
    write_launch(one);
  }
  if (header_codes(&h) > 1) {
    write_choice(&h);
    write_dispatch(&h);
  }
  header_put(&h, "#endif\n");
}
