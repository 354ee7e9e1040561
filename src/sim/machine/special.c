#include "sim/machine/special.h"

#include <stddef.h>

static const struct {
  const char *name;
  kl_special special;
} specials[] = {
#define X(name, field, bits) {name, {KL_SPECIAL_PLACE, bits, offsetof(kl_special_area, field), 0}},
    KL_SPECIALS(X)
#undef X
        {"%is_explicit_cluster", {KL_SPECIAL_PRED, 1, offsetof(kl_special_area, is_explicit_cluster), 0}},
// the fourth element of a vector is not used
#define FOURTH(vector) {"%" vector ".w", {KL_SPECIAL_PLACE, 32, offsetof(kl_special_area, zero), 0}},
    FOURTH("tid") FOURTH("ntid") FOURTH("ctaid") FOURTH("nctaid") FOURTH("clusterid") FOURTH("nclusterid")
        FOURTH("cluster_ctaid") FOURTH("cluster_nctaid")
#undef FOURTH
            {"%clock", {KL_SPECIAL_CLOCK, 32, 0, 1}},
    {"%clock_hi", {KL_SPECIAL_CLOCK, 32, 32, 1}},
    {"%clock64", {KL_SPECIAL_CLOCK, 64, 0, 1}},
    {"%globaltimer", {KL_SPECIAL_CLOCK, 64, 0, 32}},
    {"%globaltimer_lo", {KL_SPECIAL_CLOCK, 32, 0, 32}},
    {"%globaltimer_hi", {KL_SPECIAL_CLOCK, 32, 32, 32}},
    {"%current_graph_exec", {KL_SPECIAL_PLACE, 64, offsetof(kl_special_area, zero64), 0}},
    {"%reserved_smem_offset_begin", {KL_SPECIAL_PLACE, 32, offsetof(kl_special_area, zero), 0}},
    {"%reserved_smem_offset_cap", {KL_SPECIAL_PLACE, 32, offsetof(kl_special_area, reserved_end), 0}},
};

// Counters and registers of the environment, which read as 0: a name with its number behind it.
static const struct {
  const char *name, *suffix;
  unsigned count;
  uint8_t bits;
} zeros[] = {{"%envreg", "", 32, 32}, {"%pm", "", 8, 32}, {"%pm", "_64", 8, 64}, {"%reserved_smem_offset_", "", 2, 32}};

kl_special kl_special_find(kl_str name) {
  for (size_t i = 0; i < KL_COUNT(specials); i++)
    if (kl_str_is(name, specials[i].name)) return specials[i].special;
  for (size_t i = 0; i < KL_COUNT(zeros); i++) {
    size_t before = strlen(zeros[i].name), behind = strlen(zeros[i].suffix);
    uint64_t number = 0;
    if (name.n > before + behind && memcmp(name.p, zeros[i].name, before) == 0 &&
        memcmp(name.p + name.n - behind, zeros[i].suffix, behind) == 0 &&
        kl_u64_from_text((kl_str){name.p + before, name.n - before - behind}, &number) && number < zeros[i].count)
      return (kl_special){KL_SPECIAL_PLACE, zeros[i].bits,
                          zeros[i].bits == 64 ? offsetof(kl_special_area, zero64) : offsetof(kl_special_area, zero), 0};
  }
  return (kl_special){KL_SPECIAL_NONE};
}
