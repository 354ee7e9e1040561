// Linking: the texts of several modules become one.

#include "sim/driver/module.h"

typedef struct input {
  char *text;
  size_t size; // of its block
  kl_ptx_module *ptx;
} input;

typedef struct kl_link {
  kl_object o;
  VEC(input) inputs;
  kl_sb text; // once it is complete
} kl_link;

static CUresult link_check(CUlinkState handle, kl_link **out) {
  *out = kl_object_find(handle, KL_LINK);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult kl_cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *out) {
  kl_jit_options o;
  KL_GIVEN(out);
  KL_RESULT(kl_jit_options_read(n, options, values, &o));
  kl_link *l = kl_object_new(KL_LINK, sizeof *l, kl_current());
  if (!l) return CUDA_ERROR_OUT_OF_MEMORY;
  kl_sb_init(&l->text, kl_sim.cx);
  kl_jit_options_answer(&o);
  *out = KL_HANDLE(CUlinkState, l);
  return CUDA_SUCCESS;
}

static void input_free(input *in) {
  if (in->ptx) kl_ptx_free(kl_sim.cx, in->ptx);
  kl_free(kl_sim.cx, in->text, in->size);
}

static CUresult add(kl_link *l, kl_str given) {
  input in = {.size = given.n + 8}; // whoever looks at its first bytes finds some
  in.text = kl_try_alloc(kl_sim.cx, in.size);
  if (!in.text) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(in.text, given.p, given.n);
  CUresult code = kl_ptx_check(in.text);
  if (!code && kl_ptx_parse(kl_sim.cx, "ptx", (kl_str){in.text, given.n}, &in.ptx)) code = CUDA_ERROR_INVALID_PTX;
  if (code)
    input_free(&in);
  else
    VEC_PUSH(kl_sim.cx, &l->inputs, in);
  return code;
}

CUresult kl_cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void *data, size_t size, const char *name,
                             unsigned n, CUjit_option *options, void **values) {
  kl_link *l;
  kl_jit_options o;
  KL_GIVEN(data);
  KL_RESULT(link_check(handle, &l));
  if (l->text.n || size == 0) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_jit_options_read(n, options, values, &o));
  if (type == CU_JIT_INPUT_CUBIN || type == CU_JIT_INPUT_FATBINARY) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (type != CU_JIT_INPUT_PTX) return CUDA_ERROR_NOT_SUPPORTED;
  const char *end = memchr(data, 0, size);
  CUresult code = add(l, (kl_str){data, end ? (size_t)(end - (char *)data) : size});
  kl_jit_options_answer(&o);
  return code;
}

CUresult kl_cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char *path, unsigned n,
                             CUjit_option *options, void **values) {
  char *image;
  size_t size;
  KL_GIVEN(path);
  KL_RESULT(kl_file_read(path, &image, &size));
  CUresult code = kl_cuLinkAddData_v2(handle, type, image, strlen(image) + 1, path, n, options, values);
  kl_free(kl_sim.cx, image, size);
  return code;
}

// --- one text of several --------------------------------------------------------------------------------------------

static bool defines_function(const kl_ptx_module *m, kl_str name) {
  for (uint32_t i = 0; i < m->nfuncs; i++)
    if (m->funcs[i].defined && m->funcs[i].visible && kl_str_eq(m->funcs[i].name, name)) return true;
  return false;
}

static bool defines_variable(const kl_ptx_module *m, kl_str name) {
  for (uint32_t i = 0; i < m->nvars; i++)
    if (!m->vars[i].external && m->vars[i].visible && kl_str_eq(m->vars[i].name, name)) return true;
  return false;
}

static bool somebody(const kl_link *l, bool (*defines)(const kl_ptx_module *, kl_str), kl_str name) {
  for (size_t i = 0; i < l->inputs.n; i++)
    if (defines(l->inputs.p[i].ptx, name)) return true;
  return false;
}

// What another input has is no longer .extern: functions stay declared, variables are left out.
static void resolve(const kl_link *l, input *in) {
  const kl_ptx_module *m = in->ptx;
  for (uint32_t i = 0; i < m->nfuncs; i++)
    if (!m->funcs[i].defined && somebody(l, defines_function, m->funcs[i].name))
      kl_ptx_define(in->text, m->funcs[i].at.begin, false);
  for (uint32_t i = 0; i < m->nvars; i++)
    if (m->vars[i].external && somebody(l, defines_variable, m->vars[i].name))
      kl_ptx_define(in->text, m->vars[i].at.begin, true);
}

// What stands behind .version, .target and .address_size.
static const char *without_head(const char *text) {
  static const char *const heads[] = {".version", ".target", ".address_size"};
  for (size_t i = 0; i < KL_COUNT(heads); i++) {
    const char *at = strstr(text, heads[i]);
    if (at) text = at + strcspn(at, "\n");
  }
  return text;
}

// The head is the first input's.
static CUresult join(kl_link *l) {
  kl_ptx_module *ptx = NULL;
  for (size_t i = 0; i < l->inputs.n; i++) resolve(l, &l->inputs.p[i]);
  for (size_t i = 0; i < l->inputs.n; i++) {
    kl_sb_puts(&l->text, i ? without_head(l->inputs.p[i].text) : l->inputs.p[i].text);
    kl_sb_putc(&l->text, '\n');
  }
  kiln_status s = kl_ptx_parse(kl_sim.cx, "linked", (kl_str){l->text.p, l->text.n}, &ptx);
  if (s) kl_sb_free(&l->text), kl_sb_init(&l->text, kl_sim.cx);
  if (s) return CUDA_ERROR_INVALID_PTX;
  kl_ptx_free(kl_sim.cx, ptx);
  return CUDA_SUCCESS;
}

// What the driver calls a cubin is a text; it can be loaded here alone.
CUresult kl_cuLinkComplete(CUlinkState handle, void **out, size_t *size) {
  kl_link *l;
  KL_GIVEN(out);
  KL_RESULT(link_check(handle, &l));
  if (!l->inputs.n) return CUDA_ERROR_INVALID_VALUE;
  if (!l->text.n) KL_RESULT(join(l));
  *out = l->text.p;
  if (size) *size = l->text.n + 1;
  return CUDA_SUCCESS;
}

CUresult kl_cuLinkDestroy(CUlinkState handle) {
  kl_link *l;
  KL_RESULT(link_check(handle, &l));
  while (l->inputs.n) input_free(&l->inputs.p[--l->inputs.n]);
  VEC_FREE(kl_sim.cx, &l->inputs);
  kl_sb_free(&l->text);
  kl_object_delete(l, sizeof *l);
  return CUDA_SUCCESS;
}
