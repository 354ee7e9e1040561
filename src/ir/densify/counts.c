// What a packed result's counts say.
#include "ir/densify/tensor.h"

static kiln_status check_code(kl_ctx *cx, int64_t code) {
  static const char *const texts[] = {
      "more entries of a group, a slot or behind a unique level than there may be",
      "a coordinate that its width does not hold",
      "a position that its width does not hold",
      "a value that is not the one of explicitVal",
  };
  for (size_t i = 0; i < KL_COUNT(texts); i++)
    if (code >> i & 1)
      return kl_invalid(cx, KL_NOWHERE, "expected a tensor that its encoding can store, found %s", texts[i]);
  return code ? kl_invalid(cx, KL_NOWHERE, "counts: expected 0 behind the last array's, found %lld", (long long)code)
              : KILN_OK;
}

kiln_status kiln_sparse_check_counts(kiln_context *cx, const kiln_sparse_layout *l, const int64_t *counts,
                                     kiln_sparse_array *arrays) {
  kl_store s;
  kiln_sparse_buffer b;
  KL_EXPECT(cx, l, counts, arrays);
  KL_TRY(kl_store_open(cx, l, arrays, &s));
  KL_TRY(check_code(cx, counts[s.nbuffers]));
  for (uint32_t i = 0; kiln_sparse_layout_buffer_at(l, i, &b); i++) {
    static const char *const roles[] = {"positions", "coordinates", "values"};
    if (counts[i] > arrays[i].count)
      return kl_invalid(cx, KL_NOWHERE, "array %u: expected room for %lld %s of level %zu, found %lld", i,
                        (long long)counts[i], roles[b.role], b.level, (long long)arrays[i].count);
  }
  for (uint32_t i = 0; i < s.nbuffers; i++)
    if (s.batches <= 1) arrays[i].count = counts[i];
  return KILN_OK;
}
