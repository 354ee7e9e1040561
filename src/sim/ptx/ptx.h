// PTX text to plain data: what a module declares, and its functions as lists of instructions whose names are resolved.
// Knows the grammar of PTX and nothing of what instructions mean: an opcode is a name, its modifiers are names.
//
// Everything lives in the module's arena. Texts (kl_str) point into the module's own copy of the source.
#ifndef KL_PTX_H
#define KL_PTX_H

#include "base/base.h"

// clang-format off
// Types of registers and variables: name, bits of an element
#define KL_PTX_TYPES(X)                                                                                                \
  X(pred, 1)  X(b8, 8)    X(b16, 16)  X(b32, 32)    X(b64, 64)    X(b128, 128)                                         \
  X(u8, 8)    X(u16, 16)  X(u32, 32)  X(u64, 64)    X(s8, 8)      X(s16, 16)     X(s32, 32)    X(s64, 64)              \
  X(f16, 16)  X(f16x2, 32) X(bf16, 16) X(bf16x2, 32) X(f32, 32)   X(f64, 64)                                           \
  X(texref, 64) X(samplerref, 64) X(surfref, 64)
// clang-format on
typedef enum kl_ptx_type {
#define X(name, bits) KL_PTX_##name,
  KL_PTX_TYPES(X)
#undef X
} kl_ptx_type;
extern const char *const kl_ptx_type_names[]; // without the dot
extern const uint8_t kl_ptx_type_bits[];

typedef enum kl_ptx_space {
  KL_PTX_GLOBAL,
  KL_PTX_CONST,
  KL_PTX_SHARED,
  KL_PTX_LOCAL,
  KL_PTX_PARAM,
} kl_ptx_space;

// A place in the PTX text and, where `.loc` tells, in the source it was made from.
typedef struct kl_ptx_place {
  uint32_t line;           // of the PTX text, from 1
  uint32_t begin, end;     // bytes of the PTX text
  uint32_t file, src_line; // of the module's files; src_line 0: not known
  uint32_t column;         // of the source
  uint32_t inlined;        // what it was inlined into: of the module's `inlined` + 1; 0: nothing
} kl_ptx_place;

// A place in the source where a function's code was put in the stead of a call of it, by `.loc ... inlined_at`.
typedef struct kl_ptx_inlined {
  uint32_t file, line, column;
  uint32_t inlined; // into which this was inlined itself + 1; 0: into none
} kl_ptx_inlined;

// An address among a variable's initial bytes: `bytes` (1 to 8) at `at` hold the address of a variable or function plus
// `offset`, of which byte `byte` on is taken (mask operators such as 0xff00(symbol); 0 where the whole is).
typedef struct kl_ptx_reloc {
  uint64_t at;
  uint8_t bytes, byte;
  bool generic;  // generic(symbol)
  bool function; // else a module variable
  uint32_t symbol;
  int64_t offset;
} kl_ptx_reloc;

typedef struct kl_ptx_var {
  kl_str name;
  kl_ptx_space space;
  kl_ptx_type type;
  uint32_t align;       // bytes
  uint64_t bytes;       // 0: an array without a size (dynamic shared memory, or extern)
  uint8_t bank;         // of .const[k]
  uint32_t reg;         // of a parameter or result in .reg: its register + 1, else 0
  bool pointer;         // .ptr: a parameter that holds an address into pointer_space of that alignment
  int8_t pointer_space; // kl_ptx_space, -1: generic
  uint32_t pointer_align;
  bool forward;  // of the module: declared .extern before it is defined
  bool external; // declared elsewhere
  bool visible;  // .visible, .weak or .common
  bool weak, common;
  const uint8_t *init; // `bytes` long, NULL: zero
  uint64_t ninit;      // so many bytes are given by the text; zero behind
  const kl_ptx_reloc *relocs;
  size_t nrelocs;
  kl_ptx_place at;
} kl_ptx_var;

// A run of registers `%r<100>`, which may have none, or a single one. A vector register .v2 or .v4 is as many
// registers, one after the other, named by .x .y .z .w or .r .g .b .a.
typedef struct kl_ptx_reg {
  kl_str name; // prefix where `numbered`
  bool numbered;
  uint8_t vector; // 1, 2, 4
  kl_ptx_type type;
  uint32_t first; // number of the first one among the function's registers
  uint32_t count; // registers, vectors counted by element
} kl_ptx_reg;

typedef enum kl_ptx_kind {
  KL_PTX_REG,      // index: a register of the function; text: selector of its bytes or halves (b0, h1, h10), or empty.
                   // A vector register as a whole is a VECTOR of its elements
  KL_PTX_SPECIAL,  // text: %tid.x, %laneid, %envreg3 ... (WARP_SZ is the integer 32)
  KL_PTX_INT,      // bits: two's complement; `negative` says that the text had a value below zero
  KL_PTX_FLOAT32,  // bits: 0f3f800000
  KL_PTX_FLOAT64,  // bits: 0d..., or a decimal number with a point or exponent
  KL_PTX_VAR,      // index: of the module's variables; + offset
  KL_PTX_LOCALVAR, // index: of the function's variables (also its parameters); + offset
  KL_PTX_FUNCTION, // index: of the module's functions
  KL_PTX_LABEL,    // index: of the function's labels
  KL_PTX_TABLE,    // index: of the function's tables: .branchtargets, .calltargets, .callprototype
  KL_PTX_ADDRESS,  // [items[0] + offset]; a base of kind INT is an absolute address. Further items: those behind commas
  KL_PTX_VECTOR,   // {items}
  KL_PTX_PAIR,     // items[0] | items[1]
  KL_PTX_LIST,     // (items): arguments or results of a call
  KL_PTX_SINK,     // _
} kl_ptx_kind;

typedef struct kl_ptx_operand {
  uint8_t kind; // kl_ptx_kind
  bool negated; // !p, -x before a register
  bool minus;   // it was -
  bool negative;
  bool indexed; // of a variable: written name[i], its element i; `offset` is in bytes all the same. Where memory is
                // accessed it stands for [name + offset], elsewhere for the address
  uint32_t index;
  int64_t offset;
  uint64_t bits;
  kl_str text;
  const struct kl_ptx_operand *items;
  uint32_t nitems;
} kl_ptx_operand;

typedef struct kl_ptx_instr {
  kl_str opcode;      // "ld"
  const kl_str *mods; // "global", "nc", "L1::no_allocate", "v4", "b32": in order, without dots
  uint32_t nmods;
  uint32_t guard; // register + 1; 0: none
  bool guard_negated;
  const kl_ptx_operand *operands;
  uint32_t noperands;
  kl_ptx_place at;
} kl_ptx_instr;

// Directives before a body; 0 where there is none.
typedef struct kl_ptx_tuning {
  uint32_t maxntid[3], reqntid[3], minnctapersm, maxnctapersm, maxnreg, reqnctapercluster[3], maxclusterrank;
  uint32_t abi_preserve, abi_preserve_control; // + 1
  bool explicitcluster, noreturn, blocksareclusters, unique;
} kl_ptx_tuning;

// .branchtargets: labels; .calltargets: functions; .callprototype: parameters and results.
typedef struct kl_ptx_table {
  kl_str name;
  enum { KL_PTX_BRANCHTARGETS, KL_PTX_CALLTARGETS, KL_PTX_CALLPROTOTYPE } kind;
  const uint32_t *targets;
  uint32_t n;
  const kl_ptx_var *returns, *params;
  uint32_t nreturns, nparams;
  kl_ptx_tuning tuning; // of a prototype
} kl_ptx_table;

typedef struct kl_ptx_label {
  kl_str name;
  uint32_t at; // number of the instruction that follows; the function's ninstrs at its end
} kl_ptx_label;

// A .pragma among the statements of a body.
typedef struct kl_ptx_pragma {
  kl_str text; // between the quotes
  uint32_t at; // number of the instruction that follows
} kl_ptx_pragma;

// What stands between the instructions of a body, in the order of the text. Names mean what was declared before them in
// the same braces or those around, so that the order counts for the text and for nothing else.
typedef struct kl_ptx_mark {
  enum {
    KL_PTX_MARK_REG,
    KL_PTX_MARK_VAR,
    KL_PTX_MARK_TABLE,
    KL_PTX_MARK_LABEL,
    KL_PTX_MARK_PRAGMA,
    KL_PTX_MARK_OPEN,
    KL_PTX_MARK_CLOSE
  } kind;
  uint32_t index; // of the function's runs of registers, variables, tables, labels, statement pragmas
  uint32_t at;    // number of the instruction that follows
} kl_ptx_mark;

typedef struct kl_ptx_func {
  kl_str name;
  bool entry, external, visible, defined;
  bool weak; // visible too
  const kl_ptx_reg *regs;
  uint32_t nregs;         // runs
  uint32_t registers;     // in all
  const kl_ptx_var *vars; // first the results, then the parameters, then what the body declares, in all its scopes
  uint32_t nvars, nreturns, nparams;
  bool register_params; // results or parameters are registers (.reg), not .param
  const kl_ptx_instr *instrs;
  uint32_t ninstrs;
  const kl_ptx_label *labels;
  uint32_t nlabels;
  const kl_ptx_table *tables;
  uint32_t ntables;
  const kl_ptx_mark *marks;
  uint32_t nmarks;
  const kl_str *pragmas; // those before the body
  uint32_t npragmas;
  const kl_ptx_pragma *statement_pragmas;
  uint32_t nstatement_pragmas;
  kl_ptx_tuning tuning;
  uint32_t alias; // of .alias: the function that it stands for + 1, else 0
  kl_ptx_place at;
} kl_ptx_func;

typedef struct kl_ptx_module {
  kl_arena arena;
  kl_source source; // its own copy of the text
  uint32_t version; // 78 for 7.8
  uint32_t sm;      // 90 for sm_90
  char variant;     // 'a', 'f' or 0
  kl_str target;    // "sm_90a, debug"
  uint32_t address_bits;
  kl_ptx_var *vars;
  uint32_t nvars;
  kl_ptx_func *funcs; // a declaration and its definition are one
  uint32_t nfuncs;
  const kl_str *pragmas; // of the module
  uint32_t npragmas;
  const kl_str *files; // by number; empty where not declared
  uint32_t nfiles;
  const kl_ptx_inlined *inlined;
  uint32_t ninlined;
} kl_ptx_module;

// Reads a module. `name`: for findings, e.g. the file's. `text` is copied and needs no NUL (what follows a NUL in it is
// not read: drivers take NUL-terminated text). Findings carry line and column; several are collected. INVALID: not PTX;
// UNSUPPORTED: PTX that is known and refused (textures, .address_size 32, versions before 6.0 and after 9.x, arrays
// indexed by a register, registers outside of functions). MEMORY: for the text's copy or an initial value. *out is NULL
// unless OK; the module belongs to the caller, who frees it with kl_ptx_free before the context.
kiln_status kl_ptx_parse(kl_ctx *cx, const char *name, kl_str text, kl_ptx_module **out);
void kl_ptx_free(kl_ctx *cx, kl_ptx_module *m);
// The register's name as the text has it.
void kl_ptx_put_register(kl_sb *b, const kl_ptx_func *f, uint32_t reg);
// Type of a register.
kl_ptx_type kl_ptx_register_type(const kl_ptx_func *f, uint32_t reg);
// The module as text again: what it reads as is the same module but for columns and inlining of the source, and that
// prints alike.
void kl_ptx_print(kl_sb *b, const kl_ptx_module *m);
// One instruction, without its end of line.
void kl_ptx_put_instr(kl_sb *b, const kl_ptx_module *m, const kl_ptx_func *f, const kl_ptx_instr *i);
// Where findings point.
kl_span kl_ptx_span(const kl_ptx_module *m, kl_ptx_place at);

#endif
