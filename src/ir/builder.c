// Builds modules call by call, with the checks that text gets.
//
// The computation being built is a growable array of instructions; ending it freezes the array into the module. A first
// error poisons the builder: everything later is refused in silence, so that a caller may check once, at the end.
#include "ir/hlo.h"
#include "ir/lex.h"
#include "ir/shape.h"

#include <math.h>

struct kiln_builder {
  kl_ctx *cx;
  kiln_module *m;
  kiln_status failed; // why it is poisoned; KILN_OK while it is not
  bool open;          // between begin and end
  bool has_entry;
  uint32_t comp_name;
  VEC(kl_comp) comps;
  VEC(kl_instr) instrs;  // of the open computation
  VEC(uint32_t) defined; // by symbol: 1 + number of the open computation that defines it
  VEC(uint32_t) counts;  // by opcode: instructions named after it so far in the open computation
};

// Reports and poisons. Returns false; calls that give a value return KILN_NO_VALUE then.
static bool refuse(kiln_builder *b, const char *fmt, ...) KL_PRINTF(2, 3);
static bool refuse(kiln_builder *b, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  b->failed = kl_vfail(b->cx, KILN_E_INVALID, KL_NOWHERE, fmt, ap);
  va_end(ap);
  return false;
}

// --- names --------------------------------------------------------------------------------------------------------

static bool is_name(const char *name) {
  if (!name[0]) return false;
  for (const char *p = name; *p; p++)
    if (!kl_is_name_char(*p) || (p[0] == '-' && p[1] == '>')) return false;
  return true;
}

// Marks the name as used in the open computation; false if it was already.
static bool define(kiln_builder *b, uint32_t symbol) {
  uint32_t mark = (uint32_t)b->comps.n + 1;
  while (b->defined.n <= symbol) VEC_PUSH(b->cx, &b->defined, 0);
  if (b->defined.p[symbol] == mark) return false;
  b->defined.p[symbol] = mark;
  return true;
}

// "add", then "add.1", "add.2" ...
static uint32_t make_name(kiln_builder *b, kl_op op, const char *opcode) {
  kl_sb t;
  uint32_t symbol;
  kl_sb_init(&t, b->cx);
  while (b->counts.n <= (size_t)op) VEC_PUSH(b->cx, &b->counts, 0);
  do {
    uint32_t k = b->counts.p[op]++;
    t.n = 0;
    kl_sb_puts(&t, opcode);
    if (k) kl_sbf(&t, ".%u", k);
    symbol = kl_intern(&b->m->names, (kl_str){t.p, t.n});
  } while (!define(b, symbol));
  kl_sb_free(&t);
  return symbol;
}

static bool name_instruction(kiln_builder *b, kl_instr *in, const char *opcode, const char *name) {
  if (!name) {
    in->name = make_name(b, in->op, opcode);
    return true;
  }
  if (!is_name(name)) return refuse(b, "expected a name of letters, digits, '_', '.' and '-', found '%s'", name);
  in->name = kl_intern(&b->m->names, kl_str_of(name));
  return define(b, in->name) || refuse(b, "expected a name not yet used in this computation, found '%s'", name);
}

// --- life ---------------------------------------------------------------------------------------------------------

kiln_builder *kiln_builder_create(kiln_context *cx, const char *module_name) {
  kiln_builder *b = kl_alloc(cx, sizeof *b);
  b->cx = cx;
  b->m = kl_module_new(cx);
  if (!module_name) module_name = "module";
  if (!is_name(module_name))
    refuse(b, "expected a module name of letters, digits, '_', '.' and '-', found '%s'", module_name);
  b->m->name = kl_intern(&b->m->names, kl_str_of(module_name));
  return b;
}

void kiln_builder_destroy(kiln_builder **b) {
  if (!b || !*b) return;
  kl_ctx *cx = (*b)->cx;
  kiln_module_destroy(&(*b)->m);
  VEC_FREE(cx, &(*b)->comps);
  VEC_FREE(cx, &(*b)->instrs);
  VEC_FREE(cx, &(*b)->defined);
  VEC_FREE(cx, &(*b)->counts);
  kl_free(cx, *b, sizeof **b);
  *b = NULL;
}

// --- instructions -------------------------------------------------------------------------------------------------

static bool ready(kiln_builder *b, const char *what) {
  if (b->failed) return false;
  if (b->open) return true;
  refuse(b, "%s: expected kiln_builder_begin before it, found no open computation", what);
  return false;
}

static const kl_shape *shape_of(kiln_builder *b, const char *what, const kiln_array_type *t) {
  const kl_shape *s = NULL;
  if (t->rank > KILN_MAX_RANK || t->dtype <= KILN_DTYPE_NONE || t->dtype >= KILN_DTYPE_COUNT ||
      !kl_is_array_dtype(t->dtype))
    refuse(b, "%s: expected an array type of at most %d dimensions, found rank %u and element type '%s'", what,
           KILN_MAX_RANK, t->rank, kiln_dtype_name(t->dtype));
  else if (!(s = kl_shape_array(b->m, t->dtype, t->rank, t->dims)))
    refuse(b, "%s: expected dimensions of at least 0 and less than 2^60 elements, found others", what);
  return s;
}

// The one way into the computation: infers, checks, appends.
static kiln_value append(kiln_builder *b, kl_instr *in, const char *opcode, const char *name) {
  kl_comp open = {.name = b->comp_name, .instr = b->instrs.p, .ninstr = (uint32_t)b->instrs.n};
  b->m->comp = b->comps.p;
  b->m->ncomp = (uint32_t)b->comps.n;
  const kl_shape *s = NULL;
  kiln_status status = kl_infer_shape(b->m, &open, in, &s);
  b->m->comp = NULL;
  b->m->ncomp = 0;
  if (status != KILN_OK) b->failed = status;
  if (b->failed || !name_instruction(b, in, opcode, name)) return KILN_NO_VALUE;
  in->shape = s;
  VEC_PUSH(b->cx, &b->instrs, *in);
  return (kiln_value)(b->instrs.n - 1);
}

kiln_value kiln_build_parameter(kiln_builder *b, int64_t number, const kiln_array_type *type, const char *name) {
  if (!ready(b, "parameter")) return KILN_NO_VALUE;
  kl_instr in = {
      .op = KL_OP_PARAMETER, .number = number, .called = UINT32_MAX, .shape = shape_of(b, "parameter", type)};
  return in.shape ? append(b, &in, "parameter", name) : KILN_NO_VALUE;
}

static kiln_value append_constant(kiln_builder *b, const kl_array *literal) {
  kl_instr in = {.op = KL_OP_CONSTANT, .called = UINT32_MAX, .shape = literal->shape, .literal = literal};
  return append(b, &in, "constant", NULL);
}

static kl_array *new_array(kiln_builder *b, const kl_shape *s) {
  size_t size = (size_t)s->count * kl_info(s->dtype)->bytes;
  kl_array *a = KL_NEW(&b->m->arena, kl_array);
  *a = (kl_array){s, kl_arena_try_alloc(&b->m->arena, size)};
  if (a->data) return a;
  b->failed = kl_out_of_memory(b->cx, size, "a constant");
  return NULL;
}

kiln_value kiln_build_constant(kiln_builder *b, const kiln_array_type *type, const void *data, size_t size) {
  if (!ready(b, "constant")) return KILN_NO_VALUE;
  const kl_shape *s = shape_of(b, "constant", type);
  if (!s) return KILN_NO_VALUE;
  if (kl_shape_bytes(s) != (int64_t)size)
    return refuse(b, "constant: expected %lld bytes, found %zu", (long long)kl_shape_bytes(s), size), KILN_NO_VALUE;
  kl_array *a = new_array(b, s);
  if (!a) return KILN_NO_VALUE;
  if (size) kl_array_unpack(a, data);
  for (int64_t i = 0; s->dtype == KILN_PRED && i < s->count; i++)
    if (((const uint8_t *)a->data)[i] > 1)
      return refuse(b, "constant: expected 0 or 1 for pred, found %u in element %lld", ((const uint8_t *)a->data)[i],
                    (long long)i),
             KILN_NO_VALUE;
  return append_constant(b, a);
}

kiln_value kiln_build_scalar(kiln_builder *b, kiln_dtype dtype, double value) {
  if (!ready(b, "constant")) return KILN_NO_VALUE;
  const kl_shape *s = shape_of(b, "constant", &(kiln_array_type){.dtype = dtype});
  kl_array *a = s ? new_array(b, s) : NULL;
  if (!a) return KILN_NO_VALUE;
  kl_dtype part = kl_is_complex(dtype) ? kl_info(dtype)->part : dtype;
  uint64_t bits;
  if (kl_is_int(part)) value = rint(value);
  memcpy(&bits, &value, sizeof bits);
  kl_element_set(dtype, a->data, 0, 0,
                 kl_is_float(part) ? kl_float_encode(part, value) : kl_convert(KILN_F64, part, bits));
  if (kl_is_complex(dtype)) kl_element_set(dtype, a->data, 0, 1, 0);
  return append_constant(b, a);
}

// --- attributes ---------------------------------------------------------------------------------------------------

static int64_t at_or(const int64_t *v, uint32_t i, int64_t none) {
  return v ? v[i] : none;
}

static bool read_slice(kiln_builder *b, const kiln_attrs *at, kl_instr *in, uint32_t rank) {
  if (rank && (!at->starts || !at->limits)) return refuse(b, "slice: expected starts and limits, found none");
  kl_slice_dim *v = KL_NEW_N(&b->m->arena, kl_slice_dim, rank);
  for (uint32_t i = 0; i < rank; i++) v[i] = (kl_slice_dim){at->starts[i], at->limits[i], at_or(at->strides, i, 1)};
  in->slice = v;
  in->ndims = rank;
  return true;
}

static bool read_pad(kiln_builder *b, const kiln_attrs *at, kl_instr *in, uint32_t rank) {
  kl_pad_dim *v = KL_NEW_N(&b->m->arena, kl_pad_dim, rank);
  for (uint32_t i = 0; i < rank; i++)
    v[i] = (kl_pad_dim){at_or(at->low, i, 0), at_or(at->high, i, 0), at_or(at->interior, i, 0)};
  in->pad = v;
  in->ndims = rank;
  return true;
}

// Index of `name` among n names, or -1.
static int choice(const char *name, const char *const *names, int n) {
  for (int i = 0; i < n; i++)
    if (names[i] && strcmp(names[i], name) == 0) return i;
  return -1;
}

static bool read_compare(kiln_builder *b, const kiln_attrs *at, kl_instr *in) {
  int direction = at->direction ? choice(at->direction, kl_direction_names, 6) : -1;
  int type = at->comparison_type ? choice(at->comparison_type, kl_compare_type_names, 5) : KL_CMP_DEFAULT;
  if (direction < 0)
    return refuse(b, "compare: expected a direction, one of EQ NE LT LE GT GE, found '%s'",
                  at->direction ? at->direction : "");
  if (type < 0)
    return refuse(b, "compare: expected a comparison type, one of FLOAT TOTALORDER SIGNED UNSIGNED, found '%s'",
                  at->comparison_type);
  in->direction = (kl_direction)direction;
  in->compare_type = (kl_compare_type)type;
  return true;
}

static bool read_called(kiln_builder *b, const kiln_attrs *at, kl_instr *in, bool given) {
  static const char *const kinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
  int kind = at->fusion_kind ? choice(at->fusion_kind, kinds, 4) : 0;
  if (kind < 0)
    return refuse(b, "fusion: expected a kind, one of kLoop kInput kOutput kCustom, found '%s'", at->fusion_kind);
  if (in->op == KL_OP_FUSION) in->fusion_kind = kl_str_of(kinds[kind]);
  if (!given || at->called >= b->comps.n)
    return refuse(b, "%s: expected a computation that has ended, found none", kl_op_name(in->op));
  in->called = at->called;
  return true;
}

static bool read_attrs(kiln_builder *b, const kiln_attrs *at, kl_instr *in, bool given) {
  uint32_t rank = in->noperands && in->op != KL_OP_TUPLE ? b->instrs.p[in->operands[0]].shape->rank : 0;
  in->exponent_bits = at->exponent_bits;
  in->mantissa_bits = at->mantissa_bits;
  switch (in->op) {
  case KL_OP_BROADCAST:
  case KL_OP_TRANSPOSE:
  case KL_OP_REVERSE:
  case KL_OP_CONCATENATE:
    if (at->dimension_count > KILN_MAX_RANK || (at->dimension_count && !at->dimensions))
      return refuse(b, "%s: expected at most %d dimensions, found %zu%s", kl_op_name(in->op), KILN_MAX_RANK,
                    at->dimension_count, at->dimensions ? "" : " behind NULL");
    in->ndims = (uint32_t)at->dimension_count;
    in->dims = kl_arena_dup(&b->m->arena, at->dimensions, in->ndims * sizeof(int64_t));
    return true;
  case KL_OP_IOTA: in->number = at->dimension_count == 1 && at->dimensions ? at->dimensions[0] : -1; return true;
  case KL_OP_GET_TUPLE_ELEMENT: in->number = at->index; return true;
  case KL_OP_SLICE: return read_slice(b, at, in, rank);
  case KL_OP_PAD: return read_pad(b, at, in, rank);
  case KL_OP_COMPARE: return read_compare(b, at, in);
  case KL_OP_FUSION:
  case KL_OP_CALL: return read_called(b, at, in, given);
  default: return true;
  }
}

static bool read_operands(kiln_builder *b, const char *opcode, const kiln_value *operands, size_t count, kl_instr *in) {
  if (count > KL_MAX_LEAVES) return refuse(b, "%s: expected at most 2^24 operands, found %zu", opcode, count);
  for (size_t i = 0; i < count; i++)
    if (operands[i] >= b->instrs.n)
      return refuse(b, "%s: expected a value of the open computation for operand %zu, found none", opcode, i);
  in->noperands = (uint32_t)count;
  in->operands = kl_arena_dup(&b->m->arena, operands, count * sizeof(*operands));
  return true;
}

static bool read_opcode(kiln_builder *b, const char *opcode, kl_op *op) {
  if (!kl_op_from_str(kl_str_of(opcode), op))
    return refuse(b, "expected an opcode that kiln knows, found '%s'", opcode ? opcode : "");
  if (*op != KL_OP_PARAMETER && *op != KL_OP_CONSTANT) return true;
  return refuse(b, "expected kiln_build_%s for this opcode, found kiln_build", opcode);
}

kiln_value kiln_build(kiln_builder *b, const char *opcode, const kiln_value *operands, size_t count,
                      const kiln_array_type *type, const kiln_attrs *attrs) {
  kiln_attrs at = {0};
  kl_instr in = {.called = UINT32_MAX};
  if (!ready(b, opcode) || !read_opcode(b, opcode, &in.op)) return KILN_NO_VALUE;
  if (attrs) memcpy(&at, attrs, attrs->struct_size < sizeof at ? attrs->struct_size : sizeof at);
  if (!read_operands(b, opcode, operands, count, &in) || !read_attrs(b, &at, &in, attrs != NULL)) return KILN_NO_VALUE;
  if (type && !(in.shape = shape_of(b, opcode, type))) return KILN_NO_VALUE;
  return append(b, &in, opcode, at.name);
}

// --- computations and modules -------------------------------------------------------------------------------------

void kiln_builder_begin(kiln_builder *b, const char *computation_name) {
  if (b->failed) return;
  if (b->open) {
    refuse(b, "kiln_builder_begin: expected the computation before to have ended, found it open");
    return;
  }
  if (!computation_name || !is_name(computation_name)) {
    refuse(b, "expected a computation name of letters, digits, '_', '.' and '-', found '%s'",
           computation_name ? computation_name : "");
    return;
  }
  b->comp_name = kl_intern(&b->m->names, kl_str_of(computation_name));
  for (size_t i = 0; i < b->comps.n; i++)
    if (b->comps.p[i].name == b->comp_name) {
      refuse(b, "expected a computation name not yet used, found '%s'", computation_name);
      return;
    }
  b->open = true;
  b->instrs.n = 0;
  b->counts.n = 0;
}

// Lists the parameters by number; false unless the numbers are 0 to n-1, each once.
static bool list_params(kiln_builder *b, kl_comp *c) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->ninstr; i++) n += c->instr[i].op == KL_OP_PARAMETER;
  uint32_t *params = KL_NEW_N(&b->m->arena, uint32_t, n);
  bool *have = KL_NEW_N(&b->m->arena, bool, n);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    if (in->op != KL_OP_PARAMETER) continue;
    if (in->number >= n || have[in->number])
      return refuse(b, "parameter: expected each number from 0 to %u once, found %lld%s", n - 1, (long long)in->number,
                    in->number < n ? " again" : "");
    have[in->number] = true;
    params[in->number] = i;
  }
  c->nparams = n;
  c->params = params;
  return true;
}

kiln_computation kiln_builder_end(kiln_builder *b, kiln_value root, bool entry) {
  if (!ready(b, "kiln_builder_end")) return UINT32_MAX;
  if (root >= b->instrs.n)
    return refuse(b, "kiln_builder_end: expected a root among the computation's values, found none"), KILN_NO_VALUE;
  kl_comp c = {.name = b->comp_name, .ninstr = (uint32_t)b->instrs.n, .root = root};
  c.instr = VEC_FREEZE(b->cx, &b->m->arena, &b->instrs);
  b->open = false;
  if (!list_params(b, &c)) return UINT32_MAX;
  VEC_PUSH(b->cx, &b->comps, c);
  uint32_t index = (uint32_t)b->comps.n - 1;
  if (entry || !b->has_entry) b->m->entry = index;
  b->has_entry |= entry;
  return index;
}

kiln_status kiln_builder_finish(kiln_builder *b, kiln_module **out) {
  *out = NULL;
  if (!b->failed && b->open)
    refuse(b, "kiln_builder_finish: expected the last computation to have ended, found it open");
  if (!b->failed && !b->comps.n) refuse(b, "kiln_builder_finish: expected at least one computation, found none");
  if (b->failed) return b->failed;
  b->m->ncomp = (uint32_t)b->comps.n;
  b->m->comp = VEC_FREEZE(b->cx, &b->m->arena, &b->comps);
  kiln_status s = kl_verify(b->m);
  if (s == KILN_OK)
    *out = b->m;
  else
    kiln_module_destroy(&b->m);
  b->m = NULL;
  b->failed = KILN_E_INVALID; // empty: nothing more can be built with it
  return s;
}
