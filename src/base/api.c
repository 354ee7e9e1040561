// What callers hand over: structs that carry their own size, and pointers that must be there.
#include "base/base.h"

// No params struct comes near; a size beyond it is no size.
enum { LARGEST_PARAMS = 4096 };

static kiln_status refuse(kl_ctx *cx, const char *type, size_t found, size_t size) {
  if (!cx) return KILN_E_INVALID;
  return kl_invalid(cx, KL_NOWHERE, "%s: expected struct_size to be the size of the struct, %zu bytes here, found %zu",
                    type, size, found);
}

static kiln_status check_size(kl_ctx *cx, const char *type, const void *given, size_t size, size_t *found) {
  memcpy(found, given, sizeof *found);
  return *found < sizeof *found || *found > LARGEST_PARAMS ? refuse(cx, type, *found, size) : KILN_OK;
}

kiln_status kl_params_in(kl_ctx *cx, const char *type, const void *given, void *own, size_t size) {
  size_t found = 0;
  memset(own, 0, size);
  if (given) {
    const unsigned char *bytes = given;
    KL_TRY(check_size(cx, type, given, size, &found));
    for (size_t i = size; i < found; i++) {
      if (!bytes[i]) continue;
      if (!cx) return KILN_E_INVALID;
      return kl_invalid(cx, KL_NOWHERE,
                        "%s: struct_size is %zu: this version of kiln knows the first %zu bytes and expects 0 in the "
                        "others, found %u in byte %zu",
                        type, found, size, bytes[i], i);
    }
    memcpy(own, given, found < size ? found : size);
  }
  memcpy(own, &size, sizeof size);
  return KILN_OK;
}

kiln_status kl_params_out(kl_ctx *cx, const char *type, const void *own, size_t size, void *given) {
  size_t found;
  KL_TRY(check_size(cx, type, given, size, &found));
  memcpy(given, own, found < size ? found : size);
  if (found > size) memset((char *)given + size, 0, found - size);
  memcpy(given, &found, sizeof found);
  return KILN_OK;
}

// The name of pointer `i` in "m, args, out".
static kl_str name_of(const char *names, size_t i) {
  for (; i > 0; i--) names = strchr(names, ',') + 1;
  names += strspn(names, " ");
  return (kl_str){names, strcspn(names, ",")};
}

kiln_status kl_expect(kl_ctx *cx, const char *function, const char *names, const void *const *pointers, size_t n) {
  if (!cx) return KILN_E_INVALID;
  for (size_t i = 0; i < n; i++)
    if (!pointers[i])
      return kl_invalid(cx, KL_NOWHERE, "%s: expected a pointer for '%.*s', found NULL", function,
                        KL_FMT(name_of(names, i)));
  return KILN_OK;
}
