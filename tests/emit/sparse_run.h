// Modules with sparse tensors on every device: what the tests of them share.
#ifndef KL_TEST_SPARSE_RUN_H
#define KL_TEST_SPARSE_RUN_H

#include <kiln/kiln.h>

typedef enum sparse_room {
  ROOM_EXACT,
  ROOM_MORE, // than is needed
  ROOM_MOST, // as much as there can be
  ROOM_LESS, // one of a result's arrays is too short
  ROOMS,
} sparse_room;

// Fills the parameters from `seed`, stores those with an encoding by kiln_sparse_pack_dense in arrays with that much
// room, garbage behind, and runs the module over arrays on the host, on the simulator for target t, and by the
// evaluator. Fails the test unless arrays of results are the same bits everywhere, are those that
// kiln_sparse_pack_dense makes of the tensor that they unpack to, with zeros behind, and the evaluator, who knows of no
// arrays, allows that tensor.
void run_sparse(kiln_context *cx, const char *text, unsigned seed, unsigned t, sparse_room room);

#endif
