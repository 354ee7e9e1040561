// JSON as it stands in backend_config: values are stretches of the text, and nothing is allocated. The whole may also
// stand in a string, as older modules have it, with \" for each quote.
#ifndef KL_JSON_H
#define KL_JSON_H

#include "base/base.h"

typedef struct kl_json {
  kl_str text;  // of one value; empty: there is none
  bool escaped; // it stands in a string
} kl_json;

// Is the text one value, well-formed and at most 64 deep? What is read below are parts of such a value.
bool kl_json_open(kl_str text, kl_json *out);
// The member of an object, the first of this name; none where there is none, or no object.
kl_json kl_json_member(kl_json object, const char *name);
// The entry of an array, likewise.
kl_json kl_json_entry(kl_json array, uint32_t i);
bool kl_json_is_object(kl_json v);
bool kl_json_is_array(kl_json v);
// A number, in quotes or not; NaN, Infinity and -Infinity are some.
bool kl_json_number(kl_json v, double *out);
bool kl_json_integer(kl_json v, int64_t *out);
bool kl_json_truth(kl_json v, bool *out);
// What a string holds, as written; empty where it is none.
kl_str kl_json_string(kl_json v);

#endif
