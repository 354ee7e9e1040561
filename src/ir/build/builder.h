// The builder's state, shared by its files.
#ifndef KL_BUILDER_H
#define KL_BUILDER_H

#include "ir/attrs.h"

struct kiln_builder {
  kl_ctx *cx;
  kiln_module *m;
  kiln_status failed; // why it is poisoned; KILN_OK while it is not
  size_t clears;      // of the context's findings, up to the one that says why
  bool open;          // between begin and end
  bool has_entry;
  kl_comp comp; // the open one: name, attributes
  VEC(kl_comp) comps;
  VEC(kl_instr) instrs;        // of the open computation
  VEC(uint32_t) defined;       // by symbol: 1 + number of the open computation that defines it
  VEC(uint32_t) counts;        // by opcode: instructions named after it so far in the open computation
  VEC(const kl_shape *) types; // by kiln_type
};

// Reports and poisons. Returns false.
bool kl_builder_refuse(kiln_builder *b, const char *fmt, ...) KL_PRINTF(2, 3);
// NULL, after a finding, if there is no such type. `what` begins the message.
const kl_shape *kl_builder_shape(kiln_builder *b, const char *what, kiln_type type);

// Reads the attributes of an instruction whose op is known. *name: the instruction's own, or NULL. False after a
// finding.
bool kl_builder_read_attrs(kiln_builder *b, const char *opcode, kl_instr *in, const kiln_attr *attrs, size_t n,
                           const char **name);
// Is there a key, and a text? False after a finding.
bool kl_builder_is_key(kiln_builder *b, const char *what, const char *key, const char *text);
// Appends `key=text`, kept as text, to a list in the module. False after a finding.
bool kl_builder_add_raw(kiln_builder *b, const char *what, const char *key, const char *text, uint32_t *n,
                        const kl_raw_attr **raw);

// Poisons the builder with a status that is not KILN_OK. Is it KILN_OK?
bool kl_builder_took(kiln_builder *b, kiln_status s);

#endif
