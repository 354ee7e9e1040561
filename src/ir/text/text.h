// HLO text, as other rooms use it: pieces of modules read from it, the header's text, and what a name is made of.
// Whole modules go through kiln_module_parse and kiln_module_print.
#ifndef KL_TEXT_H
#define KL_TEXT_H

#include "ir/attrs.h"

static inline bool kl_is_digit(char c) {
  return c >= '0' && c <= '9';
}
static inline bool kl_is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool kl_is_name_char(char c) {
  return kl_is_name_start(c) || kl_is_digit(c) || c == '.' || c == '-';
}

// Each takes the whole of a text, into the module. Findings point into it, under the name of what it is for.
kiln_status kl_read_shape(kl_ctx *cx, kiln_module *m, const char *what, const char *text, const kl_shape **out);
// The value of the attribute of this row, into the instruction, whose op is known.
kiln_status kl_read_attr(kl_ctx *cx, kiln_module *m, const char *key, const char *text, const kl_attr_row *row,
                         kl_instr *in);
// The value of an attribute that is kept as text.
kiln_status kl_read_raw(kl_ctx *cx, kiln_module *m, const char *key, const char *text, kl_raw_attr *out);

// The module's header as text, without line break; and from text, in place of what the module had.
void kl_put_header(kl_sb *b, const kiln_module *m);
kiln_status kl_read_header(kl_ctx *cx, kiln_module *m, kl_str text);
// Does the header agree with ENTRY? `where` is its entry_computation_layout.
kiln_status kl_check_header(kl_ctx *cx, kiln_module *m, kl_span where);

#endif
