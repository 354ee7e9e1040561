#include "counts.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 256 };

// The sum of a number over all plans: the first behind each `place`.
static uint64_t number(const char *json, const char *place, const char *key) {
  uint64_t sum = 0;
  char want[64];
  snprintf(want, sizeof want, "\"%s\": ", key);
  for (const char *p = json; (p = strstr(p, place)); p++) {
    const char *at = strstr(p, want);
    ck_assert_msg(at != NULL, "%s of %s is missing", key, place);
    sum += strtoull(at + strlen(want), NULL, 10);
  }
  return sum;
}

static uint64_t width(const char *json, const char *place, int k) {
  uint64_t sum = 0;
  for (const char *p = json; (p = strstr(p, place)); p++) {
    char *at = strstr(p, "\"widths\": [");
    at += strlen("\"widths\": [");
    for (int i = 0; i < k; i++) at = strchr(at, ',') + 1;
    sum += strtoull(at, NULL, 10);
  }
  return sum;
}

static void add(kiln_profile_info *sum, const kiln_profile_info *x) {
  for (int k = 0; k < KILN_ACCESS_COUNT; k++) {
    kiln_access_counts *to = &sum->accesses[k];
    const kiln_access_counts *from = &x->accesses[k];
    to->requests += from->requests;
    to->lanes += from->lanes;
    to->bytes += from->bytes;
    to->unique_bytes += from->unique_bytes;
    to->sectors += from->sectors;
    to->ideal_sectors += from->ideal_sectors;
    to->wavefronts += from->wavefronts;
    to->ideal_wavefronts += from->ideal_wavefronts;
    for (int i = 0; i < 6; i++) to->width[i] += from->width[i];
  }
  for (int k = 0; k < KILN_CLASS_COUNT; k++) sum->warps[k] += x->warps[k], sum->lanes[k] += x->lanes[k];
}

kiln_status counts_profile(kiln_context *cx, const kiln_module *m, const kiln_artifact *a, uint64_t blocks,
                           kiln_profile_info *sum) {
  const kiln_profile_params some = {.struct_size = sizeof some, .count = blocks};
  const kiln_manifest *f = kiln_artifact_manifest(a);
  kiln_simulator *s = NULL;
  kiln_sim_module *code = NULL;
  uint64_t slot[SLOTS] = {0}, scratch = 0;
  size_t size, n = f->parameter_count + f->result_count;
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size);
  ck_assert_uint_le(n, SLOTS);
  kiln_status st = kiln_simulator_open(cx, &s);
  for (size_t i = 0; i < n && st == KILN_OK; i++) {
    uint64_t bytes = f->slots[i].bytes > 0 ? (uint64_t)f->slots[i].bytes : 1;
    st = kiln_simulator_alloc(cx, s, bytes, &slot[i]);
    if (st == KILN_OK && !f->slots[i].result)
      kiln_module_parameter_leaf_fill(m, f->slots[i].index, 1, kiln_simulator_bytes(s, slot[i], bytes));
  }
  if (st == KILN_OK && f->scratch_bytes) st = kiln_simulator_alloc(cx, s, f->scratch_bytes, &scratch);
  if (st == KILN_OK && f->scratch_zero_bytes)
    memset(kiln_simulator_bytes(s, scratch, f->scratch_zero_bytes), 0, f->scratch_zero_bytes);
  if (st == KILN_OK && f->constant_bytes)
    memcpy(kiln_simulator_bytes(s, scratch + f->scratch_zero_bytes, f->constant_bytes), f->constants,
           f->constant_bytes);
  if (st == KILN_OK) st = kiln_simulator_load(cx, s, "kernel.ptx", ptx, size, &code);
  for (size_t l = 0; l < f->launch_count && st == KILN_OK; l++) {
    const kiln_launch *from = &f->launches[l];
    uint64_t values[SLOTS];
    const void *arguments[SLOTS];
    kiln_sim_kernel *k = NULL;
    kiln_profile *p = NULL;
    kiln_profile_info info = {.struct_size = sizeof info};
    if (!from->grid[0] || from->when == KILN_WHEN_IN_PLACE) continue; // results are apart
    for (size_t i = 0; i < from->argument_count; i++) {
      const kiln_argument *x = &from->arguments[i];
      values[i] = x->kind == KILN_ARGUMENT_SLOT ? slot[x->slot] : scratch + x->offset;
      arguments[i] = &values[i];
    }
    kiln_sim_launch_params how = {
        .struct_size = sizeof how, .dynamic_shared_bytes = from->dynamic_shared_bytes, .arguments = arguments};
    for (int d = 0; d < 3; d++)
      how.grid[d] = from->grid[d], how.block[d] = from->block[d], how.cluster[d] = from->cluster[d];
    st = kiln_sim_module_kernel(cx, code, from->kernel, &k);
    if (st == KILN_OK) st = kiln_sim_kernel_profile(cx, k, &how, &some, NULL, &p);
    if (st == KILN_OK) st = kiln_profile_describe(cx, p, &info);
    if (st == KILN_OK) add(sum, &info);
    kiln_profile_destroy(&p);
  }
  kiln_simulator_close(&s);
  return st;
}

typedef struct compared {
  char *why;
  size_t size;
  int differ;
} compared;

static void compare(compared *c, const char *place, const char *key, uint64_t counted, uint64_t simulated) {
  if (counted == simulated || c->differ) return;
  c->differ = 1;
  snprintf(c->why, c->size, "%s %s: %llu counted, %llu on the simulator", place, key, (unsigned long long)counted,
           (unsigned long long)simulated);
}

static void compare_accesses(compared *c, const char *json, const char *place, const kiln_access_counts *x,
                             bool shared) {
  static const char *const widths[] = {"1 byte", "2 bytes", "4 bytes", "8 bytes", "16 bytes"};
  char quoted[32];
  snprintf(quoted, sizeof quoted, "\"%s\"", place);
  compare(c, place, "requests", number(json, quoted, "requests"), x->requests);
  compare(c, place, "lanes", number(json, quoted, "lanes"), x->lanes);
  compare(c, place, "bytes", number(json, quoted, "bytes"), x->bytes);
  for (int k = 0; k < 5; k++) compare(c, place, widths[k], width(json, quoted, k), x->width[k]);
  if (shared) {
    compare(c, place, "wavefronts", number(json, quoted, "wavefronts"), x->wavefronts);
    compare(c, place, "ideal wavefronts", number(json, quoted, "ideal_wavefronts"), x->ideal_wavefronts);
    return;
  }
  compare(c, place, "unique bytes", number(json, quoted, "unique_bytes"), x->unique_bytes);
  compare(c, place, "sectors", number(json, quoted, "sectors"), x->sectors);
  compare(c, place, "ideal sectors", number(json, quoted, "ideal_sectors"), x->ideal_sectors);
}

static bool is_fewer(const char *json, const char *place, const kiln_access_counts *loads) {
  return loads->requests < number(json, place, "requests") || loads->bytes < number(json, place, "bytes");
}

// Is a launch several, of which plans know nothing?
static bool has_kernel(const kiln_artifact *a, const char *what) {
  const kiln_manifest *f = kiln_artifact_manifest(a);
  for (size_t i = 0; i < f->launch_count; i++)
    if (strstr(f->launches[i].kernel, what)) return true;
  return false;
}

bool counts_have_chains(const kiln_artifact *a) {
  return has_kernel(a, "_chain") && !has_kernel(a, "_rounds");
}

int counts_differ(kiln_context *cx, const kiln_module *m, const kiln_artifact *a, char *why, size_t size) {
  kiln_profile_info sum = {0};
  compared c = {why, size, 0};
  bool fewer = false;
  snprintf(why, size, "?");
  if (has_kernel(a, "_rounds") || has_kernel(a, "_chain")) return 2;
  if (counts_profile(cx, m, a, 0, &sum) != KILN_OK) {
    size_t n = kiln_diagnostics_count(cx);
    ck_abort_msg("%s", n ? kiln_diagnostics_get(cx, n - 1)->text : "not run");
  }
  const char *json = kiln_artifact_text(a, KILN_TEXT_EXPLAIN_JSON, NULL);
  if (strstr(json, "\"exact\": false") || strstr(json, "\"data\": true")) {
    c.differ = 2;
  } else {
    const kiln_access_counts *loads = &sum.accesses[KILN_ACCESS_GLOBAL_LOAD];
    const kiln_access_counts *shared = &sum.accesses[KILN_ACCESS_SHARED_LOAD];
    fewer = is_fewer(json, "\"global_load\"", loads) || is_fewer(json, "\"shared_load\"", shared);
    if (!fewer) compare_accesses(&c, json, "global_load", loads, false);
    compare_accesses(&c, json, "global_store", &sum.accesses[KILN_ACCESS_GLOBAL_STORE], false);
    if (!fewer) compare_accesses(&c, json, "shared_load", shared, true);
    compare_accesses(&c, json, "shared_store", &sum.accesses[KILN_ACCESS_SHARED_STORE], true);
    compare(&c, "all", "shuffles", number(json, "\"cost\"", "shuffles"), sum.warps[KILN_CLASS_WARP]);
    // Lanes of a warp that come to a barrier one behind the other are several issues there; all of them come, once.
    uint64_t syncs = number(json, "\"cost\"", "syncs");
    bool whole = sum.lanes[KILN_CLASS_BARRIER] == 32 * syncs;
    compare(&c, "all", "syncs", syncs, whole ? syncs : sum.warps[KILN_CLASS_BARRIER]);
  }
  return fewer && !c.differ ? 4 : c.differ;
}
