#include "profile.h"
#include "ptxas.h"

#include <stdlib.h>
#include <string.h>

// "FIRST:COUNT:STRIDE:RUN", or the first of these.
static bool read_blocks(const char *text, kiln_profile_params *out) {
  uint64_t *to[] = {&out->first, &out->count, &out->stride, &out->run};
  out->count = out->stride = out->run = 1;
  for (int k = 0; k < 4; k++) {
    char digits[24];
    size_t n = strcspn(text, ":");
    unsigned long long v;
    if (n == 0 || n >= sizeof digits) return false;
    memcpy(digits, text, n);
    digits[n] = 0;
    if (!number(digits, k > 0, INT64_MAX, &v)) return false;
    *to[k] = v;
    if (!text[n]) return out->run <= out->stride;
    text += n + 1;
  }
  return false;
}

int profile_words(const args *a, int first, profile_how *out) {
  const char *blocks = a->values[first + PROFILE_BLOCKS];
  *out = (profile_how){.params = {.struct_size = sizeof out->params, .gpu = a->values[first + PROFILE_GPU]},
                       .lines = a->values[first + PROFILE_LINES] != NULL,
                       .svg = a->values[first + PROFILE_SVG]};
  if (blocks && !read_blocks(blocks, &out->params))
    return bad_value(a, first + PROFILE_BLOCKS, blocks,
                     "expected FIRST:COUNT:STRIDE:RUN, as 0:64:100 or 0:1056:20000:132");
  return 0;
}

kiln_profile_params profile_of_grid(const profile_how *how, uint64_t blocks) {
  kiln_profile_params p = how->params;
  if (p.count == 0 || p.first >= blocks) return p;
  uint64_t room = blocks - p.first, rest = room % p.stride;
  uint64_t most = room / p.stride * p.run + (rest < p.run ? rest : p.run);
  if (p.count > most) p.count = most;
  return p;
}

int profile_info(kiln_context *cx, const kiln_profile *p, kiln_profile_info *out) {
  *out = (kiln_profile_info){.struct_size = sizeof *out};
  return report(cx, kiln_profile_describe(cx, p, out));
}

// --- ptxas ----------------------------------------------------------------------------------------------------------

// The GPU's own target, unless the text is for one that is not compatible with others: "sm_90a".
static void target_of(const char *ptx, uint32_t sm, char *out, size_t size) {
  const char *p = strstr(ptx, ".target ");
  size_t n = p ? strcspn(p + 8, " ,\n") : 0;
  bool own = n > 0 && (p[8 + n - 1] == 'a' || p[8 + n - 1] == 'f');
  unsigned long text = p && n > 3 ? strtoul(p + 8 + 3, NULL, 10) : 0;
  if (own || text > sm)
    snprintf(out, size, "%.*s", (int)n, p + 8);
  else
    snprintf(out, size, "sm_%u", sm);
}

// Of all kernels the first one says it.
static void tell_missing(const char *what, const char *effect) {
  static const char *told;
  if (told && strcmp(told, what) == 0) return;
  told = what;
  fprintf(stderr, "kiln: without NVIDIA's %s %s: found none in PATH, CUDA_HOME or /usr/local/cuda\n", what, effect);
}

int profile_assemble(kiln_context *cx, kiln_profile *p) {
  char ptxas[4096], nvdisasm[4096], target[40];
  kiln_profile_info t;
  assembly made[2] = {{0}};
  int status = profile_info(cx, p, &t);
  if (status || !kiln_profile_source(p, false, NULL)) return status;
  if (!ptxas_find(ptxas, sizeof ptxas)) {
    tell_missing("ptxas", "there are no registers and no SASS");
    return 0;
  }
  target_of(kiln_profile_source(p, false, NULL), t.sm, target, sizeof target);
  bool good = true, classes = nvdisasm_find(nvdisasm, sizeof nvdisasm);
  if (!classes) tell_missing("nvdisasm", "SASS has no classes");
  progress("assembling");
  for (int k = 0; k < 2 && good; k++) {
    size_t size = 0;
    const char *ptx = kiln_profile_source(p, k == 1, &size);
    if (!ptx) continue;
    good = ptxas_assemble(ptxas, classes ? nvdisasm : NULL, target, ptx, size, true, &made[k]) == 0;
    if (!good) fprintf(stderr, "%skiln: %s refused the PTX for %s\n", made[k].log ? made[k].log : "", ptxas, target);
  }
  progress(NULL);
  kiln_profile_assembly a = {.struct_size = sizeof a,
                             .cubin = made[0].cubin,
                             .cubin_size = made[0].cubin_size,
                             .loops_cubin = made[1].cubin,
                             .loops_cubin_size = made[1].cubin_size,
                             .log = made[0].log};
  if (made[0].sass && (!made[1].cubin || made[1].sass)) a.sass = made[0].sass, a.loops_sass = made[1].sass;
  if (good) status = report(cx, kiln_profile_assembled(cx, p, &a));
  assembly_free(&made[0]);
  assembly_free(&made[1]);
  return status;
}
