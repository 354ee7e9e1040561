// The parser's state, shared by its files: shapes, literals, attributes, the module, and linking names to what they
// name.
#ifndef KL_PARSE_H
#define KL_PARSE_H

#include "ir/rules/rules.h"
#include "ir/text/lex.h"
#include "ir/text/text.h"

enum { KL_MAX_NESTED = 100 }; // instructions as operands and computations as attributes, in each other

// An operand as written.
typedef struct kl_use {
  uint32_t symbol;
  bool indexed;         // no name: `symbol` is the operand's index in its computation
  bool bare;            // neither a percent sign nor a type: in an unknown op it need not be a name at all
  const kl_shape *type; // as written before the name, or NULL
  uint32_t begin, end;  // of the name; texts are below 2 GiB
} kl_use;

// A computation as an attribute names it.
typedef struct kl_callee {
  const kl_attr_row *row;
  uint32_t symbol;
  uint32_t inlined;    // 1 + index of the computation that stands in its place, or 0
  uint32_t begin, end; // of the name
} kl_callee;

typedef struct kl_draft_instr {
  kl_instr in;                      // operands, control-predecessors and called computations not yet resolved
  const kl_use *own_uses;           // of an instruction nested in another; else they are in kl_parser.uses
  uint32_t first_use;               // there
  uint32_t nuses;                   // operands
  uint32_t first_control, ncontrol; // control-predecessors, in kl_parser.uses
  uint32_t first_callee, ncallees;  // in the order of the op's rows
  bool broken;                      // a finding was reported: no more are looked for in it
  bool is_root;
  bool anonymous; // gets a name that no other has
  bool nested;    // an operand of another one
  bool all_names; // unknown op: raw_operands is a plain list of names
  uint32_t name_begin, name_end;
} kl_draft_instr;

typedef struct kl_draft_comp {
  kl_comp c;
  size_t first, n;     // in kl_parser.instrs
  kl_draft_instr *own; // the n instructions of a computation inside another one, until they join the others
  size_t own_cap;
  bool entry, broken;
  bool anonymous; // gets a name that no other has
  bool forward;   // an instruction is used before its line
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
  VEC(kl_callee) callees;
  VEC(kl_draft_comp) comps;
  const kl_shape *last_shape; // and its text, for the next shape is often the same
  kl_str last_text;
  kl_span layout_span; // of the header's entry_computation_layout
  size_t first;        // in instrs: of the computation being read
  size_t brace, limit; // of the computation being read, if it stands in an attribute's place; limit 0: not yet known
  bool unclosed;       // a brace is not closed
  size_t resume;       // such computations were read up to here
  uint32_t depth;      // of nested instructions and computations
  bool implicit;       // operands with a type that are not defined are parameters
  uint32_t nimplicit;  // such parameters
  VEC(bool) defined;   // by symbol, while `implicit`
  VEC(bool) warned;    // by symbol, of opcodes that are not known
  bool lost; // something in the computation being read was not understood: what follows from it is not reported
  bool has_header;
  bool ran_out; // looking for a place to go on after an error came to the text's end
  bool no_memory;
  size_t errors_before; // in the context
} kl_parser;

// Takes a shape. False after a finding.
bool kl_parse_shape(kl_parser *ps, const kl_shape **out);
// Does a shape begin at the current token? (A name with a bracket behind it, or an opening parenthesis.)
bool kl_parse_at_shape(const kl_parser *ps);
// Takes what is between the parentheses of a constant; the closing one becomes current.
bool kl_parse_literal(kl_parser *ps, kl_draft_instr *d);
// Is there `name =` at `pos` with a type or an opcode behind it, or ROOT? That tells an instruction from an attribute
// on a line of its own.
bool kl_is_instruction(kl_str t, size_t pos);
// Seeks the first promising line behind the one that holds `pos`, or the text's end.
void kl_parse_recover(kl_parser *ps, size_t pos, bool in_body);
// Takes an instruction, or goes on behind it after a finding.
void kl_parse_instruction(kl_parser *ps);
// Takes { instructions }; *index: in comps.
bool kl_parse_inline_computation(kl_parser *ps, uint32_t *index);
// Takes `, key=value` as often as it comes, if it may, and checks that what the op needs is there.
bool kl_parse_attrs(kl_parser *ps, kl_draft_instr *d, bool may);
// Takes the value of an attribute into the instruction.
bool kl_parse_value(kl_parser *ps, kl_draft_instr *d, const kl_attr_row *row);
// Takes `key=value`, kept as text. *begin: where the value begins.
bool kl_parse_raw_attr(kl_parser *ps, kl_raw_attr *out, kl_span *key, size_t *begin);
void kl_warn_unknown(kl_parser *ps, const char *what, kl_str key, kl_span span);
// Takes the header from HloModule on. False after a finding behind which nothing of it can be read.
bool kl_parse_header(kl_parser *ps);
// Takes the tables of source places behind the header, if there are any.
bool kl_parse_tables(kl_parser *ps);
// Takes `, key=value` as often as it comes, all kept as text.
bool kl_parse_raw_attrs(kl_parser *ps, uint32_t *n, const kl_raw_attr **out);
// Takes %name or name; the symbol of the name.
bool kl_parse_name(kl_parser *ps, const char *what, uint32_t *out);
// Edits that make one name of the other: letters added, dropped, changed, neighbours swapped. More than `most`, and
// names of more than 40 letters, count as most + 1.
size_t kl_distance(kl_str a, kl_str b, size_t most);
// Is there an opcode that is meant by one that is not known? `out` is empty before. *misspelt: a letter or two make it.
bool kl_similar_op(kl_str name, char out[64], bool *misspelt);
// Is the text something else than HLO? Then a finding says what, and how to come by HLO.
bool kl_parse_is_foreign(kl_parser *ps);
// Names what has no name in the text.
void kl_parse_names(kl_parser *ps);
// Turns the drafts into the module's computations: names resolved, callees first. Findings are reported; what could be
// linked is then checked, too.
kiln_status kl_parse_link(kl_parser *ps);

#endif
