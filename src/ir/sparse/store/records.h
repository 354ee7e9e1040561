// Entries to be sorted: records of a key of one or more words, the first the most significant, and a value.
#ifndef KL_SPARSE_RECORDS_H
#define KL_SPARSE_RECORDS_H

#include "base/base.h"

enum { KL_MOST_BORDERS = 4 };

typedef struct kl_record_form {
  uint32_t words, stride; // of the key; of the whole, in words
  unsigned used;          // low bits of the first word that keys use
  // Keys are made of fields; input that ascends in all fields behind some border need not be sorted by them. Bits below
  // borders of the last word, descending, 64 first.
  uint32_t nborders;
  unsigned borders[KL_MOST_BORDERS];
} kl_record_form;

typedef struct kl_records {
  uint64_t *at;
  int64_t n;
  bool repeats; // two have one key
} kl_records;

// Some bits of a key.
typedef struct kl_digit {
  uint32_t word;
  unsigned shift, bits;
} kl_digit;

typedef void kl_records_put(void *to, const uint64_t *records, int64_t n);
// Where records come from: pieces, each of which hands its records to `put`, the same every time.
typedef struct kl_record_stream {
  int64_t most; // records there may be
  int64_t pieces;
  void (*run)(void *arg, uint32_t worker, int64_t piece, kl_records_put *put, void *to);
  // Counts the piece's records by a digit of their keys, where that takes less than `run`; NULL: it does not.
  void (*count)(void *arg, uint32_t worker, int64_t piece, kl_digit d, int64_t *counts);
  void *arg;
  bool (*failed)(void *arg); // asked after the first round; NULL: it never does
} kl_record_stream;

// All records of the stream by their keys, those of one key in the stream's order. In time linear in their number and
// their words. MEMORY, or INTERNAL where the stream failed.
kiln_status kl_records_sort(kl_arena *a, uint32_t threads, const kl_record_form *form, const kl_record_stream *stream,
                            kl_records *out);
// Records that are there already, as a stream.
typedef struct kl_record_run {
  const uint64_t *at;
  int64_t n;
  uint32_t stride;
} kl_record_run;
kl_record_stream kl_record_stream_of(kl_record_run *r);

#endif
