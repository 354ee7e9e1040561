// Headers of .npy files. What is read must be within its bounds; an array of that shape is written, read again and the
// same; and whatever is refused is refused with a reason.
#include <kiln/npy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  abort();
}

static void check_again(const kiln_npy_header *h, kiln_dtype t) {
  unsigned char bytes[KILN_NPY_WRITTEN];
  char error[256] = "another array";
  kiln_npy_header again;
  kiln_array_type type = {.dtype = t, .rank = h->rank};
  memcpy(type.dims, h->dims, sizeof type.dims);
  size_t n = kiln_npy_header_write(&type, bytes);
  bool same = n <= sizeof bytes && n % 64 == 0 && kiln_npy_header_read(bytes, n, &again, error, sizeof error) &&
              again.rank == h->rank && memcmp(again.dims, h->dims, sizeof h->dims) == 0 && !again.fortran;
  if (!same) fail("what was written is read as", error);
  if (!kiln_npy_dtype_holds(again.dtype, t)) fail("the written type is another one", again.dtype);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char error[256] = "";
  kiln_npy_header h;
  size_t before = kiln_npy_header_size(data, size, error, sizeof error);
  if (before > KILN_NPY_LONGEST || (before == 0) != (error[0] != 0)) fail("the header's size", error);
  if (!kiln_npy_header_read(data, size, &h, error, sizeof error)) {
    if (!error[0]) fail("a header is refused", "without a reason");
    return 0;
  }
  if (before > size || h.rank > KILN_MAX_RANK || !memchr(h.dtype, 0, sizeof h.dtype))
    fail("a header is taken", h.dtype);
  for (uint32_t d = 0; d < h.rank; d++)
    if (h.dims[d] < 0) fail("a dimension is negative", h.dtype);
  for (int t = KILN_DTYPE_NONE + 1; t < KILN_TUPLE; t++)
    if (kiln_npy_dtype_holds(h.dtype, (kiln_dtype)t)) check_again(&h, (kiln_dtype)t);
  return 0;
}
