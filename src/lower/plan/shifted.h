// Private to src/lower/plan: loads of elements that lie across the vectors of memory.
#ifndef KL_SHIFTED_H
#define KL_SHIFTED_H

#include "lower/plan/write.h"

// The elements at `place` from whole vectors, some of which a lane's neighbours have; false: they do not lie so, or too
// much would move. What `guard` does not hold for is any value. Control must be the same for the lanes of a warp.
bool kl_load_shifted(kl_writer *w, uint32_t slot, const kl_slot_info *info, const kl_aff *place, uint32_t guard,
                     const kl_instr *from, uint32_t *value);

#endif
