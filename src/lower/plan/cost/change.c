// What changes of elements cost that several threads make: where data says which element, it is taken to be any of
// them alike, and a condition that data decides to hold for as many threads as of its values do.

#include "lower/plan/cost/impl.h"

// Lanes of a warp that come to the same of so many places at most, as a rule: 2^i places.
static const double most_at_one[] = {32, 18.2, 11, 7, 4.9, 3.5};

// Of `n` draws of `places`, different ones.
static double different(double places, double n) {
  double missed = 1;
  for (; n >= 1 && places > 1; n--) missed *= 1 - 1 / places;
  return places > 1 ? places * (1 - missed) : 1;
}

double kl_share_of(const kl_body *b, const kl_aff *e, int64_t lo, int64_t hi) {
  kl_interval in = kl_dom_interval(b->domain, e);
  double all = (double)in.hi - (double)in.lo + 1;
  if (lo < in.lo) lo = in.lo;
  if (hi > in.hi) hi = in.hi;
  return hi < lo ? 0 : ((double)hi - (double)lo + 1) / all;
}

// Sums of floats are tried in shared memory: read, added, compared and swapped, for each lane of those that meet.
static double passes(const kl_slot_info *s, kl_op op) {
  kl_dtype t = s->shape->dtype;
  bool floats = (kl_is_float(t) || kl_is_complex(t)) && op == KL_OP_ADD;
  return (floats ? 3 : 1) * (kl_info(t)->bits > 32 ? 2.0 : 1.0);
}

void kl_spread_change(const kl_slot_info *s, const kl_store *store, kl_requests *q, uint32_t bytes, double share) {
  if (q->requests == 0 || share <= 0) {
    *q = (kl_requests){.exact = q->exact};
    return;
  }
  double n = (double)q->requests, lanes = (double)q->lanes / n, apart = (double)q->unique / n / bytes, groups = 1;
  if (kl_has_symbols(store->access.element) && apart > 0 && lanes > apart) groups = lanes / apart;
  double issued = share * groups < 1 ? share * groups : 1;
  if (s->kind == KL_SLOT_SHARED) {
    unsigned banks = 0;
    while (banks < 5 && 2 << banks <= s->shape->count) banks++;
    q->wavefronts = (int64_t)(n * issued * passes(s, store->combine) * (groups > 1 ? most_at_one[banks] : 1));
  } else {
    double each = (double)q->sectors / n, all = (double)s->bytes / KL_SECTOR_BYTES;
    double sectors = each * (groups > 1 && each > 0 ? different(all / each, groups) : 1);
    q->sectors = (int64_t)(n * share * sectors);
  }
  q->requests = (int64_t)(n * issued);
  q->lanes = (int64_t)((double)q->lanes * share);
}

// Of extremes of floats the sign, NaN and what is there are looked at; of parts of words the place is; what is tried
// takes a round at least.
double kl_change_instructions(const kl_slot_info *s, const kl_store *store) {
  kl_dtype t = s->shape->dtype;
  bool floats = kl_is_float(t) || kl_is_complex(t);
  if (store->how == KL_STORE_TAKE || store->alone) return 0;
  if (store->how == KL_STORE_REPLACE) return kl_info(t)->bits < 16 ? 16 : 10;
  if (floats && store->combine != KL_OP_ADD) return 10;
  if (floats && s->kind == KL_SLOT_SHARED) return 6;
  return kl_info(t)->bits < 16 ? 4 : 0;
}
