// Plain data as bytes and back: one description of a struct serves both ways, so that what is written is what is read.
// Reading trusts nothing: a value out of range or a length behind the end is told, and all that follows is nothing.
#ifndef KL_ARCHIVE_H
#define KL_ARCHIVE_H

#include "base/base.h"

typedef struct kl_archive {
  bool writing;
  kl_sb *out;
  const uint8_t *p, *end;
  kl_arena *arena; // of what is read
  const char *bad; // why what is read is not what it should be; NULL: it is, so far
} kl_archive;

void kl_ar_refuse(kl_archive *a, const char *why); // nothing when writing
void kl_ar_number(kl_archive *a, void *field, size_t size);
void kl_ar_choice(kl_archive *a, void *field, size_t size, uint64_t most); // at most so much
void kl_ar_flag(kl_archive *a, bool *field);
void kl_ar_length(kl_archive *a, size_t *n);            // of a list, each of whose entries takes a byte at least
void *kl_ar_room(kl_archive *a, size_t n, size_t item); // for a list that is read, and one entry more
void kl_ar_bytes(kl_archive *a, const void **p, size_t *n);
void kl_ar_string(kl_archive *a, const char **z); // NULL is kept apart from ""
void kl_ar_name(kl_archive *a, const char **z);   // is never NULL
#define KL_NUMBER(a, field)       kl_ar_number((a), &(field), sizeof(field))
#define KL_CHOICE(a, field, most) kl_ar_choice((a), &(field), sizeof(field), (most))
#define KL_FLAG(a, field)         kl_ar_flag((a), &(field))

#endif
