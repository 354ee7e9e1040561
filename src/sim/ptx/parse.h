// What the files of the PTX parser share: the state of one reading, and the pieces of the grammar.
//
// A piece returns false after it has reported a finding; the statement that it belongs to is then given up and reading
// goes on behind its semicolon. Nesting has limits, so that nothing recurses with the input's size.
#ifndef KL_PTX_PARSE_H
#define KL_PTX_PARSE_H

#include "sim/ptx/lex.h"
#include "sim/ptx/names.h"

enum {
  KL_PTX_MOST_FINDINGS = 100,     // then reading ends
  KL_PTX_MOST_SCOPES = 64,        // braces within braces of a body
  KL_PTX_MOST_NESTING = 64,       // of expressions and initial values
  KL_PTX_MOST_EXPANDED = 1 << 20, // labels of runs such as N<5>, over the whole module
};

// An operand, or an entry of a table, that names a label which may come later. It is looked for when its scope ends.
typedef struct kl_ptx_fixup {
  kl_str name;
  kl_str at;               // in the text
  kl_ptx_operand *operand; // or NULL
  uint32_t *target;        // of a table
} kl_ptx_fixup;

typedef VEC(kl_ptx_var) kl_ptx_vars;
typedef VEC(kl_str) kl_ptx_strs;

typedef struct kl_ptx_parser {
  kl_ctx *cx;
  kl_ptx_module *m;
  kl_arena *arena; // the module's
  kl_ptx_lexer lx;
  kl_ptx_names names;
  size_t invalid, unsupported; // findings
  bool out_of_memory;
  uint32_t nesting;
  uint32_t braces;   // of values and vectors that are open
  uint32_t expanded; // labels of runs such as N<5>
  kl_ptx_place loc;  // of the source: the last .loc
  kl_ptx_vars vars;
  VEC(kl_ptx_func) funcs;
  kl_ptx_strs files, pragmas;
  VEC(kl_ptx_operand) operands; // of the instruction being read, as a stack
  VEC(kl_str) mods;
  // The function being read.
  kl_ptx_func *f; // NULL outside
  VEC(kl_ptx_reg) regs;
  kl_ptx_vars locals;
  VEC(kl_ptx_instr) instrs;
  VEC(kl_ptx_label) labels;
  VEC(kl_ptx_table) tables;
  VEC(kl_ptx_mark) marks;
  VEC(size_t) scope_fixups; // how many there were when the scope was opened
  VEC(kl_ptx_fixup) fixups;
  VEC(kl_ptx_pragma) statement_pragmas;
  VEC(kl_ptx_inlined) locs; // of the function
  VEC(kl_ptx_inlined) inlined;
} kl_ptx_parser;

// --- tokens (parse.c) ---------------------------------------------------------------------------------------------

// Report at the current token, or at a name in the text. All return false.
bool kl_ptx_expected(kl_ptx_parser *ps, const char *fmt, ...) KL_PRINTF(2, 3); // "expected ..., found 'x'"
bool kl_ptx_wrong(kl_ptx_parser *ps, kl_str at, const char *fmt, ...) KL_PRINTF(3, 4);
bool kl_ptx_refused(kl_ptx_parser *ps, kl_str at, const char *fmt, ...) KL_PRINTF(3, 4);

static inline bool kl_ptx_at(const kl_ptx_parser *ps, int punct) {
  return ps->lx.punct == punct;
}
// Steps over the punctuation if it is current; `need` reports that it is not, with what it should come before or after.
bool kl_ptx_eat(kl_ptx_parser *ps, int punct);
bool kl_ptx_need(kl_ptx_parser *ps, int punct, const char *context);
bool kl_ptx_at_dot(const kl_ptx_parser *ps, const char *word);
bool kl_ptx_eat_dot(kl_ptx_parser *ps, const char *word);
// Takes a name; `what` says what it names.
bool kl_ptx_name(kl_ptx_parser *ps, const char *what, kl_str *out);
bool kl_ptx_enter(kl_ptx_parser *ps); // one level of nesting more, or a finding
static inline void kl_ptx_leave(kl_ptx_parser *ps) {
  ps->nesting--;
}
// Goes on behind the next semicolon, or at the brace that closes the one around.
void kl_ptx_recover(kl_ptx_parser *ps);
bool kl_ptx_too_many(const kl_ptx_parser *ps);
// The current token's place, with the source's line.
kl_ptx_place kl_ptx_here(const kl_ptx_parser *ps);
// Declares; a finding if the name is there already in this scope.
bool kl_ptx_declare(kl_ptx_parser *ps, kl_ptx_symbol s);
// The text of the current token.
static inline kl_str kl_ptx_current(const kl_ptx_parser *ps) {
  return (kl_str){ps->lx.src->text.p + ps->lx.begin, ps->lx.pos - ps->lx.begin};
}

// Notes what stands at this place of the body.
static inline void kl_ptx_mark_here(kl_ptx_parser *ps, int kind, size_t index) {
  VEC_PUSH(ps->cx, &ps->marks, (kl_ptx_mark){kind, (uint32_t)index, (uint32_t)ps->instrs.n});
}

// --- constant expressions (expr.c) --------------------------------------------------------------------------------

typedef struct kl_ptx_value {
  enum { KL_PTX_S64, KL_PTX_U64, KL_PTX_F64, KL_PTX_F32 } type;
  uint64_t bits;
} kl_ptx_value;

bool kl_ptx_expr(kl_ptx_parser *ps, kl_ptx_value *out);
// A product, or what binds closer: what may be added to an address.
bool kl_ptx_term(kl_ptx_parser *ps, kl_ptx_value *out);
// An integer expression from 0 to `most`.
bool kl_ptx_number(kl_ptx_parser *ps, const char *what, uint64_t most, uint64_t *out);
// + terms, as many as there are, summed up; - terms only where `minus_too`.
bool kl_ptx_offset(kl_ptx_parser *ps, bool minus_too, int64_t *out);

// --- declarations (decl.c, init.c) --------------------------------------------------------------------------------

bool kl_ptx_space_of(kl_str word, kl_ptx_space *out);
// Current is the space; up to and with the semicolon. `linking`: of the module's variables; `linked` is its word.
bool kl_ptx_variables(kl_ptx_parser *ps, kl_ptx_var linking, kl_str linked);
bool kl_ptx_registers(kl_ptx_parser *ps);
// ( parameters ), appended to the function's variables; their names are not declared yet.
bool kl_ptx_params(kl_ptx_parser *ps, kl_ptx_vars *out);
// The registers of parameters in .reg, and all names.
bool kl_ptx_declare_params(kl_ptx_parser *ps);
// The extents of an array; 0 for one without a size, which may only be the first.
typedef struct kl_ptx_dims {
  uint32_t n;
  uint64_t size[KL_PTX_MOST_NESTING];
} kl_ptx_dims;
// Behind `=`. Fills in init and relocs, and the size of the first dim where it has none.
bool kl_ptx_initialiser(kl_ptx_parser *ps, kl_ptx_var *v, kl_ptx_dims *dims, uint32_t vector);
// Takes .attribute(...).
bool kl_ptx_attributes(kl_ptx_parser *ps);
// .pragma "a", "b"; behind the word; pushes the strings.
bool kl_ptx_pragma_strings(kl_ptx_parser *ps, kl_ptx_strs *out);

// --- functions (func.c, body.c, instr.c) --------------------------------------------------------------------------

bool kl_ptx_function(kl_ptx_parser *ps, kl_ptx_func linking);
bool kl_ptx_same_prototype(const kl_ptx_func *a, const kl_ptx_func *b);
// Directives between parameters and body.
bool kl_ptx_tune(kl_ptx_parser *ps, kl_ptx_tuning *t, bool entry, kl_ptx_strs *pragmas);
// Behind the opening brace; up to and with the closing one.
bool kl_ptx_body(kl_ptx_parser *ps);
// label: .branchtargets and the like; current is the directive.
bool kl_ptx_table_directive(kl_ptx_parser *ps, kl_str name);
// Guard, opcode, modifiers, operands, semicolon; `opcode` is taken already where it has text.
bool kl_ptx_instruction(kl_ptx_parser *ps, kl_str opcode, kl_ptx_place at);
bool kl_ptx_is_special(kl_str name);
// Skips .section NAME { ... }, behind the word.
bool kl_ptx_skip_section(kl_ptx_parser *ps);

#endif
