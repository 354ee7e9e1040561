// Entries to be sorted: records of a key of one or more words, the first the most significant, and a value.
#ifndef KL_SPARSE_RECORDS_H
#define KL_SPARSE_RECORDS_H

#include "base/base.h"

enum { KL_MOST_BORDERS = 4 };

typedef struct kl_record_form {
  uint32_t words, value_words; // of the key; of the value
  unsigned used;               // low bits of the first word that keys use
  unsigned value_bits;         // low bits of a value of one word that values use
  // Keys are made of fields; input that ascends in all fields behind some border need not be sorted by them. Bits below
  // borders of the last word, descending, 64 first.
  uint32_t nborders;
  unsigned borders[KL_MOST_BORDERS];
  void (*add)(const void *arg, uint64_t *sum, const uint64_t *value); // by any thread
  const void *arg;
} kl_record_form;

// In the order of their keys, each key once. How they lie in memory is records.c's affair.
typedef struct kl_records {
  int64_t n;
  uint64_t *at;
  uint32_t words, value_words, stride; // stride: words from one to the next
  unsigned low;                        // bits of the value, where a record is one word; 0: key and value have their own
  unsigned top;                        // bits of the first word's below those that a bucket's records share
  uint32_t buckets;
  const int64_t *firsts, *starts; // [buckets + 1]: the first record's number; [buckets]: where it is
} kl_records;

// Some bits of a key.
typedef struct kl_digit {
  uint32_t word;
  unsigned shift, bits;
} kl_digit;

// n records: their keys one behind the other, and so their values.
typedef void kl_records_put(void *to, const uint64_t *keys, const uint64_t *values, int64_t n);
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

// All records of the stream by their keys; those of one key become one, their values added in the stream's order. In
// time linear in their number and their words. Lives as long as the arena. MEMORY, or INTERNAL where the stream failed.
kiln_status kl_records_sort(kl_arena *a, uint32_t threads, const kl_record_form *form, const kl_record_stream *stream,
                            kl_records *out);
// Keys and values of the records first .. first + n - 1; `values` NULL: not wanted.
void kl_records_read(const kl_records *r, int64_t first, int64_t n, uint64_t *keys, uint64_t *values);
// Records that are there already, in arrays as kl_records_put has them, as a stream.
typedef struct kl_record_run {
  const uint64_t *keys, *values;
  int64_t n;
  uint32_t words, value_words;
} kl_record_run;
kl_record_stream kl_record_stream_of(kl_record_run *r);

#endif
