// The parser's state, shared by its files: shapes, literals, attributes, the module, and linking names to what they
// name.
#ifndef KL_PARSE_H
#define KL_PARSE_H

#include "ir/hlo.h"
#include "ir/lex.h"

// An operand as written.
typedef struct kl_use {
  uint32_t symbol;
  bool bare;            // neither a percent sign nor a type: in an unknown op it need not be a name at all
  const kl_shape *type; // as written before the name, or NULL
  uint32_t begin, end;  // of the name; texts are below 2 GiB
} kl_use;

typedef struct kl_draft_instr {
  kl_instr in; // operands not yet resolved
  uint32_t first_use;
  uint32_t nuses;
  bool broken; // a finding was reported: no more are looked for in it
  bool is_root;
  bool all_names;       // unknown op: raw_operands is a plain list of names
  uint32_t seen;        // typed attributes seen, by row of the op's table
  uint32_t called_name; // symbol of calls= or to_apply=
  uint32_t called_begin, called_end;
  uint32_t name_begin, name_end;
} kl_draft_instr;

typedef struct kl_draft_comp {
  kl_comp c;
  size_t first, n; // in kl_parser.instrs
  bool entry, broken;
  bool has_signature;
  uint32_t nsig;
  const kl_shape *const *sig; // NULL entries: not understood
  const kl_shape *sig_result;
  kl_span sig_span;
  size_t end; // of the closing brace
} kl_draft_comp;

typedef struct kl_parser {
  kl_ctx *cx;
  kiln_module *m;
  kl_arena *arena; // the module's
  kl_lexer lx;
  VEC(kl_draft_instr) instrs; // of all computations, in the order of the text
  VEC(kl_use) uses;
  VEC(kl_draft_comp) comps;
  const kl_shape *last_shape; // and its text, for the next shape is often the same
  kl_str last_text;
  bool lost;    // something in the computation being read was not understood: what follows from it is not reported
  bool ran_out; // looking for a place to go on after an error came to the text's end
  bool no_memory;
  size_t errors_before; // in the context
} kl_parser;

// Takes a shape. False after a finding.
bool kl_parse_shape(kl_parser *ps, const kl_shape **out);
// Does a shape begin at the current token? (A name with a bracket behind it, or an opening parenthesis.)
bool kl_parse_at_shape(const kl_parser *ps);
// Takes what is between the parentheses of a constant; the closing one becomes current.
bool kl_parse_literal(kl_parser *ps, const kl_shape *shape, const kl_array **out);
// Takes `, key=value` as often as it comes, and checks that what the op needs is there.
bool kl_parse_attrs(kl_parser *ps, kl_draft_instr *d);
// Takes `, key=value` as often as it comes, all kept as text.
bool kl_parse_raw_attrs(kl_parser *ps, uint32_t *n, const kl_raw_attr **out);
// Takes %name or name; the symbol of the name.
bool kl_parse_name(kl_parser *ps, const char *what, uint32_t *out);
// Turns the drafts into the module's computations: names resolved, callees first. Findings are reported; what could be
// linked is then checked, too.
kiln_status kl_parse_link(kl_parser *ps);

// Checks instruction by instruction, storing inferred shapes, but for those marked in `skip` (NULL: none), which have
// been complained about already, and their users where the shape is unknown; then the computation's own rules.
kiln_status kl_check_computation(kiln_module *m, kl_comp *c, const bool *skip);

#endif
