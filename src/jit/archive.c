// Plain data as bytes and back.

#include "jit/archive.h"

void kl_ar_refuse(kl_archive *a, const char *why) {
  if (!a->bad && !a->writing) a->bad = why;
}

void kl_ar_number(kl_archive *a, void *field, size_t size) {
  uint8_t bytes[8];
  uint64_t v = 0;
  if (a->writing) {
    memcpy(&v, field, size); // this machine is little-endian, as all that kiln runs on
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(v >> 8 * i);
    kl_sb_put(a->out, (kl_str){(const char *)bytes, size});
  } else if ((size_t)(a->end - a->p) < size) {
    kl_ar_refuse(a, "it ends too early");
  } else {
    memcpy(field, a->p, size);
    a->p += size;
  }
}

void kl_ar_choice(kl_archive *a, void *field, size_t size, uint64_t most) {
  uint64_t v = 0;
  kl_ar_number(a, field, size);
  memcpy(&v, field, size);
  if (v > most) kl_ar_refuse(a, "a value is out of range");
}

void kl_ar_flag(kl_archive *a, bool *field) {
  uint8_t v = *field;
  kl_ar_choice(a, &v, 1, 1);
  *field = v == 1;
}

void kl_ar_length(kl_archive *a, size_t *n) {
  uint64_t v = *n;
  KL_NUMBER(a, v);
  if (!a->writing && v > (uint64_t)(a->end - a->p)) kl_ar_refuse(a, "it ends too early");
  *n = a->bad ? 0 : (size_t)v;
}

void *kl_ar_room(kl_archive *a, size_t n, size_t item) {
  size_t size;
  void *p = NULL;
  if (!a->bad && !__builtin_mul_overflow(n + 1, item, &size)) p = kl_arena_try_alloc(a->arena, size);
  if (!p) kl_ar_refuse(a, "there is no memory for it");
  return p;
}

void kl_ar_bytes(kl_archive *a, const void **p, size_t *n) {
  kl_ar_length(a, n);
  if (a->writing) {
    kl_sb_put(a->out, (kl_str){*p, *n});
    return;
  }
  char *copy = kl_ar_room(a, *n, 1); // a NUL ends it
  *p = copy;
  if (!copy) *n = 0;
  if (*n) memcpy(copy, a->p, *n);
  a->p += *n;
}

void kl_ar_string(kl_archive *a, const char **z) {
  bool there = *z != NULL;
  size_t n = *z ? strlen(*z) : 0;
  KL_FLAG(a, there);
  if (!there || a->bad) {
    if (!a->writing) *z = NULL;
    return;
  }
  kl_ar_bytes(a, (const void **)z, &n);
  if (!a->writing && *z && strlen(*z) != n) kl_ar_refuse(a, "a name has a NUL");
}

void kl_ar_name(kl_archive *a, const char **z) {
  kl_ar_string(a, z);
  if (!*z) kl_ar_refuse(a, "a name is missing");
}
