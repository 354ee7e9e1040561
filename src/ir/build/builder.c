// Builds modules call by call, with the checks that text gets.
//
// The computation being built is a growable array of instructions; ending it freezes the array into the module. A first
// error poisons the builder: everything later is refused in silence, so that a caller may check once, at the end.
#include "ir/build/builder.h"
#include "ir/rules/rules.h"
#include "ir/text/text.h"
#include "ir/shape.h"

#include <math.h>

bool kl_builder_refuse(kiln_builder *b, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  kl_builder_took(b, kl_vfail(b->cx, KILN_E_INVALID, KL_NOWHERE, fmt, ap));
  va_end(ap);
  return false;
}

bool kl_builder_took(kiln_builder *b, kiln_status s) {
  if (s == KILN_OK) return true;
  b->failed = s;
  b->clears = b->cx->clears;
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
  if (!is_name(name))
    return kl_builder_refuse(b, "expected a name of letters, digits, '_', '.' and '-', found '%s'", name);
  in->name = kl_intern(&b->m->names, kl_str_of(name));
  return define(b, in->name) ||
         kl_builder_refuse(b, "expected a name not yet used in this computation, found '%s'", name);
}

// --- life ---------------------------------------------------------------------------------------------------------

kiln_builder *kiln_builder_create(kiln_context *cx, const char *module_name) {
  if (!cx) return NULL;
  kiln_builder *b = kl_alloc(cx, sizeof *b);
  b->cx = cx;
  kl_context_hold(cx);
  b->m = kl_module_new(cx);
  if (!module_name) module_name = "module";
  if (!is_name(module_name))
    kl_builder_refuse(b, "expected a module name of letters, digits, '_', '.' and '-', found '%s'", module_name);
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
  VEC_FREE(cx, &(*b)->types);
  kl_free(cx, *b, sizeof **b);
  kl_context_release(cx);
  *b = NULL;
}

// May anything be built with it?
static bool usable(kiln_builder *b, const char *what) {
  if (!b || b->failed) return false;
  return b->m ||
         kl_builder_refuse(b, "%s: expected a builder that has not finished its module, found one that has", what);
}

static bool ready(kiln_builder *b, const char *what) {
  if (!usable(b, what)) return false;
  if (b->open) return true;
  kl_builder_refuse(b, "%s: expected kiln_builder_begin before it, found no open computation", what);
  return false;
}

// --- types --------------------------------------------------------------------------------------------------------

static kiln_type add_type(kiln_builder *b, const kl_shape *s) {
  VEC_PUSH(b->cx, &b->types, s);
  return (kiln_type)(b->types.n - 1);
}

const kl_shape *kl_builder_shape(kiln_builder *b, const char *what, kiln_type type) {
  if (type < b->types.n) return b->types.p[type];
  kl_builder_refuse(b, "%s: expected a type of this builder, found none", what);
  return NULL;
}

kiln_type kiln_type_text(kiln_builder *b, const char *text) {
  const kl_shape *s = NULL;
  if (!usable(b, "type") || !kl_builder_took(b, kl_read_shape(b->cx, b->m, "type", text ? text : "", &s)))
    return KILN_NO_TYPE;
  return add_type(b, s);
}

static const kl_shape *array_shape(kiln_builder *b, const char *what, const kiln_array_type *t) {
  if (!t) {
    kl_builder_refuse(b, "%s: expected an array type, found NULL", what);
    return NULL;
  }
  if (t->rank > KILN_MAX_RANK || t->dtype <= KILN_DTYPE_NONE || t->dtype >= KILN_DTYPE_COUNT ||
      !kl_is_array_dtype(t->dtype)) {
    kl_builder_refuse(b, "%s: expected an array type of at most %d dimensions, found rank %u and element type '%s'",
                      what, KILN_MAX_RANK, t->rank, kiln_dtype_name(t->dtype));
    return NULL;
  }
  bool ok = true;
  for (uint32_t i = 0; i < t->rank; i++) ok &= t->dims[i] >= 0;
  const kl_shape *s = ok ? kl_shape_array(b->m, t->dtype, t->rank, t->dims) : NULL;
  if (!s) kl_builder_refuse(b, "%s: expected dimensions of at least 0 and less than 2^60 elements, found others", what);
  return s;
}

kiln_type kiln_type_array(kiln_builder *b, const kiln_array_type *t) {
  const kl_shape *s = usable(b, "type") ? array_shape(b, "type", t) : NULL;
  return s ? add_type(b, s) : KILN_NO_TYPE;
}

kiln_type kiln_type_tuple(kiln_builder *b, const kiln_type *elements, size_t count) {
  VEC(const kl_shape *) elems = {0};
  const kl_shape *s = NULL;
  if (!usable(b, "type")) return KILN_NO_TYPE;
  bool ok = count <= KL_MAX_LEAVES ||
            kl_builder_refuse(b, "type: expected a tuple of at most 2^24 elements, found %zu", count);
  if (ok && count && !elements) ok = kl_builder_refuse(b, "type: expected a tuple of %zu elements, found NULL", count);
  for (size_t i = 0; ok && i < count; i++) {
    const kl_shape *e = kl_builder_shape(b, "type", elements[i]);
    if (e) VEC_PUSH(b->cx, &elems, e);
    ok = e != NULL;
  }
  if (ok && !(s = kl_shape_tuple(b->m, (uint32_t)elems.n, elems.p)))
    kl_builder_refuse(b, "type: expected a tuple of at most 2^24 arrays, nested at most %d deep, found more",
                      KL_MAX_TUPLE_DEPTH);
  VEC_FREE(b->cx, &elems);
  return s ? add_type(b, s) : KILN_NO_TYPE;
}

kiln_type kiln_type_of(kiln_builder *b, kiln_value value) {
  if (!ready(b, "kiln_type_of")) return KILN_NO_TYPE;
  if (value < b->instrs.n) return add_type(b, b->instrs.p[value].shape);
  kl_builder_refuse(b, "kiln_type_of: expected a value of the open computation, found none");
  return KILN_NO_TYPE;
}

bool kiln_type_get_array(const kiln_builder *b, kiln_type type, kiln_array_type *out) {
  const kl_shape *s = b && b->m && type < b->types.n ? b->types.p[type] : NULL;
  if (!s || !out || !kl_shape_is_array(s) || s->dynamic) return false;
  *out = (kiln_array_type){.dtype = s->dtype, .rank = s->rank};
  if (s->rank) memcpy(out->dims, s->dims, s->rank * sizeof(int64_t));
  return true;
}

// --- instructions -------------------------------------------------------------------------------------------------

// The one way into the computation: infers, checks, appends.
static kiln_value append(kiln_builder *b, kl_instr *in, const char *opcode, const char *name) {
  kl_comp open = {.name = b->comp.name, .instr = b->instrs.p, .ninstr = (uint32_t)b->instrs.n};
  b->m->comp = b->comps.p;
  b->m->ncomp = (uint32_t)b->comps.n;
  const kl_shape *s = NULL;
  kl_complete(b->m, &open, in);
  kiln_status status = kl_infer_shape(b->m, &open, in, &s);
  b->m->comp = NULL;
  b->m->ncomp = 0;
  if (!kl_builder_took(b, status) || !name_instruction(b, in, opcode, name)) return KILN_NO_VALUE;
  in->shape = s;
  VEC_PUSH(b->cx, &b->instrs, *in);
  return (kiln_value)(b->instrs.n - 1);
}

kiln_value kiln_build_parameter(kiln_builder *b, int64_t number, kiln_type type, const char *name) {
  if (!ready(b, "parameter")) return KILN_NO_VALUE;
  kl_instr in = {.op = KL_OP_PARAMETER, .number = number, .more = &kl_no_more};
  in.shape = kl_builder_shape(b, "parameter", type);
  return in.shape ? append(b, &in, "parameter", name) : KILN_NO_VALUE;
}

static kiln_value append_constant(kiln_builder *b, const kl_shape *s, const kl_array *literal, const char *name) {
  kl_instr in = {.op = KL_OP_CONSTANT, .more = &kl_no_more, .shape = s, .literal = literal};
  return append(b, &in, "constant", name);
}

static bool new_array(kiln_builder *b, const kl_shape *s, kl_array *out) {
  size_t size = (size_t)s->count * kl_info(s->dtype)->bytes;
  *out = (kl_array){s, kl_arena_try_alloc(&b->m->arena, size)};
  return out->data || kl_builder_took(b, kl_out_of_memory(b->cx, size, "a constant"));
}

// One array of a constant from packed row-major data.
static bool read_array(kiln_builder *b, const kl_shape *s, const void *data, kl_array *out) {
  if (!new_array(b, s, out)) return false;
  kl_shape plain = *s;
  plain.layout = (kl_layout){.tail_padding = 1};
  if (s->count) kl_array_unpack(&(kl_array){&plain, out->data}, data);
  for (int64_t i = 0; s->dtype == KILN_PRED && i < s->count; i++) {
    unsigned v = ((const uint8_t *)out->data)[i];
    if (v > 1)
      return kl_builder_refuse(b, "constant: expected 0 or 1 for pred, found %u in element %lld", v, (long long)i);
  }
  return true;
}

// Bytes of a constant's data, added to *total; false if it cannot have any.
static bool add_bytes(const kl_shape *s, int64_t *total) {
  for (uint32_t i = 0; i < s->nelems; i++)
    if (!add_bytes(s->elems[i], total)) return false;
  if (s->dtype == KILN_TUPLE) return true;
  int64_t bytes = s->dynamic ? -1 : kl_shape_dense_bytes(s);
  return bytes >= 0 && !__builtin_add_overflow(*total, bytes, total);
}

// Reads the arrays of `s`, stepping over their data and their places.
static bool read_leaves(kiln_builder *b, const kl_shape *s, const char **data, kl_array **leaf) {
  for (uint32_t i = 0; i < s->nelems; i++)
    if (!read_leaves(b, s->elems[i], data, leaf)) return false;
  if (s->dtype == KILN_TUPLE) return true;
  if (!read_array(b, s, *data, (*leaf)++)) return false;
  if (*data) *data += kl_shape_dense_bytes(s);
  return true;
}

kiln_value kiln_build_constant(kiln_builder *b, kiln_type type, const void *data, size_t size, const char *name) {
  if (!ready(b, "constant")) return KILN_NO_VALUE;
  const kl_shape *s = kl_builder_shape(b, "constant", type);
  if (!s) return KILN_NO_VALUE;
  int64_t bytes = 0;
  if (!add_bytes(s, &bytes))
    return kl_builder_refuse(b, "constant: expected a type made of dense arrays, found %s",
                             kl_shape_text(&b->m->arena, s)),
           KILN_NO_VALUE;
  if (bytes != (int64_t)size || (bytes && !data))
    return kl_builder_refuse(b, "constant: expected %lld bytes, found %zu%s", (long long)bytes, size,
                             size && !data ? " behind NULL" : ""),
           KILN_NO_VALUE;
  const char *at = data;
  kl_array *leaves = KL_NEW_N(&b->m->arena, kl_array, kl_shape_leaf_count(s)), *leaf = leaves;
  return read_leaves(b, s, &at, &leaf) ? append_constant(b, s, leaves, name) : KILN_NO_VALUE;
}

kiln_value kiln_build_scalar(kiln_builder *b, kiln_dtype dtype, double value) {
  if (!ready(b, "constant")) return KILN_NO_VALUE;
  const kl_shape *s = array_shape(b, "constant", &(kiln_array_type){.dtype = dtype});
  kl_array *a = KL_NEW(&b->m->arena, kl_array);
  if (!s || !new_array(b, s, a)) return KILN_NO_VALUE;
  kl_dtype part = kl_is_complex(dtype) ? kl_info(dtype)->part : dtype;
  uint64_t bits;
  if (kl_is_int(part)) value = rint(value);
  memcpy(&bits, &value, sizeof bits);
  kl_element_set(dtype, a->data, 0, 0,
                 kl_is_float(part) ? kl_float_encode(part, value) : kl_convert(KILN_F64, part, bits));
  if (kl_is_complex(dtype)) kl_element_set(dtype, a->data, 0, 1, 0);
  return append_constant(b, s, a, NULL);
}

static bool read_operands(kiln_builder *b, const char *opcode, const kiln_value *operands, size_t count, kl_instr *in) {
  if (count > KL_MAX_LEAVES)
    return kl_builder_refuse(b, "%s: expected at most 2^24 operands, found %zu", opcode, count);
  if (count && !operands) return kl_builder_refuse(b, "%s: expected %zu operands, found NULL", opcode, count);
  for (size_t i = 0; i < count; i++)
    if (operands[i] >= b->instrs.n)
      return kl_builder_refuse(b, "%s: expected a value of the open computation for operand %zu, found none", opcode,
                               i);
  in->noperands = (uint32_t)count;
  in->operands = kl_arena_dup(&b->m->arena, operands, count * sizeof(*operands));
  return true;
}

static bool read_opcode(kiln_builder *b, const char *opcode, kl_instr *in) {
  if (!kl_op_from_text(kl_str_of(opcode), &in->op, &in->wrapped))
    return kl_builder_refuse(b, "expected an opcode that kiln knows, found '%.200s'", opcode);
  if (in->op != KL_OP_PARAMETER && in->op != KL_OP_CONSTANT) return true;
  return kl_builder_refuse(b, "expected kiln_build_%s for this opcode, found kiln_build", opcode);
}

kiln_value kiln_build(kiln_builder *b, const char *opcode, const kiln_value *operands, size_t operand_count,
                      kiln_type type, const kiln_attr *attrs, size_t attr_count) {
  kl_instr in = {.more = &kl_no_more};
  const char *name = NULL;
  if (!opcode) opcode = "";
  if (!ready(b, opcode) || !read_opcode(b, opcode, &in)) return KILN_NO_VALUE;
  if (!read_operands(b, opcode, operands, operand_count, &in)) return KILN_NO_VALUE;
  if (!kl_builder_read_attrs(b, opcode, &in, attrs, attr_count, &name)) return KILN_NO_VALUE;
  if (type != KILN_NO_TYPE && !(in.shape = kl_builder_shape(b, opcode, type))) return KILN_NO_VALUE;
  return append(b, &in, opcode, name);
}

// --- attributes kept as text --------------------------------------------------------------------------------------

void kiln_build_annotate(kiln_builder *b, kiln_value value, const char *key, const char *text) {
  if (!ready(b, "kiln_build_annotate")) return;
  if (value >= b->instrs.n) {
    kl_builder_refuse(b, "kiln_build_annotate: expected a value of the open computation, found none");
    return;
  }
  kl_instr *in = &b->instrs.p[value];
  kl_attr_list rows = kl_instr_attrs(in);
  for (uint32_t i = 0; key && i < rows.n; i++)
    if (strcmp(rows.p[i].key, key) == 0) {
      kl_builder_refuse(b, "%s: expected the attribute '%s' where the instruction is built, found it later",
                        kl_op_name(in->op), key);
      return;
    }
  kl_builder_add_raw(b, kl_op_name(in->op), key, text, &in->nraw, &in->raw);
}

void kiln_builder_annotate_computation(kiln_builder *b, const char *key, const char *text) {
  if (ready(b, "kiln_builder_annotate_computation"))
    kl_builder_add_raw(b, "computation", key, text, &b->comp.nraw, &b->comp.raw);
}

// The header is read as a whole each time: some keys may come once, and several are understood.
static void add_to_header(kiln_builder *b, const char *key, const char *text) {
  kl_sb whole;
  kl_sb_init(&whole, b->cx);
  kl_put_header(&whole, b->m);
  kl_sbf(&whole, ", %s=%s", key, text);
  kl_builder_took(b, kl_read_header(b->cx, b->m, (kl_str){whole.p, whole.n}));
  kl_sb_free(&whole);
}

void kiln_builder_annotate_module(kiln_builder *b, const char *key, const char *text) {
  if (usable(b, "HloModule") && kl_builder_is_key(b, "HloModule", key, text)) add_to_header(b, key, text);
}

// --- computations and modules -------------------------------------------------------------------------------------

void kiln_builder_begin(kiln_builder *b, const char *computation_name) {
  if (!usable(b, "kiln_builder_begin")) return;
  if (b->open) {
    kl_builder_refuse(b, "kiln_builder_begin: expected the computation before to have ended, found it open");
    return;
  }
  if (!computation_name || !is_name(computation_name)) {
    kl_builder_refuse(b, "expected a computation name of letters, digits, '_', '.' and '-', found '%s'",
                      computation_name ? computation_name : "");
    return;
  }
  b->comp = (kl_comp){.name = kl_intern(&b->m->names, kl_str_of(computation_name))};
  for (size_t i = 0; i < b->comps.n; i++)
    if (b->comps.p[i].name == b->comp.name) {
      kl_builder_refuse(b, "expected a computation name not yet used, found '%s'", computation_name);
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
      return kl_builder_refuse(b, "parameter: expected each number from 0 to %u once, found %lld%s", n - 1,
                               (long long)in->number, in->number < n ? " again" : "");
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
    return kl_builder_refuse(b, "kiln_builder_end: expected a root among the computation's values, found none"),
           KILN_NO_VALUE;
  kl_comp c = b->comp;
  c.ninstr = (uint32_t)b->instrs.n;
  c.root = root;
  c.instr = VEC_FREEZE(b->cx, &b->m->arena, &b->instrs);
  b->open = false;
  if (!list_params(b, &c)) return UINT32_MAX;
  VEC_PUSH(b->cx, &b->comps, c);
  uint32_t index = (uint32_t)b->comps.n - 1;
  if (entry || !b->has_entry) b->m->entry = index;
  b->has_entry |= entry;
  return index;
}

// A builder that failed has said why. Where that has been cleared since, it says that it did.
static kiln_status why_failed(kiln_builder *b) {
  if (b->clears == b->cx->clears) return b->failed;
  b->clears = b->cx->clears;
  return kl_fail(b->cx, b->failed, KL_NOWHERE,
                 "kiln_builder_finish: expected that every call before had succeeded, found that one had failed");
}

kiln_status kiln_builder_finish(kiln_builder *b, kiln_module **out) {
  KL_CLEAR(out);
  if (!b) return KILN_E_INVALID;
  KL_EXPECT(b->cx, out);
  if (usable(b, "kiln_builder_finish") && b->open)
    kl_builder_refuse(b, "kiln_builder_finish: expected the last computation to have ended, found it open");
  if (!b->failed && !b->comps.n)
    kl_builder_refuse(b, "kiln_builder_finish: expected at least one computation, found none");
  if (b->failed) return why_failed(b);
  b->m->ncomp = (uint32_t)b->comps.n;
  b->m->comp = VEC_FREEZE(b->cx, &b->m->arena, &b->comps);
  kiln_status s = kl_verify(b->m);
  if (s == KILN_OK) s = kl_check_header(b->cx, b->m, KL_NOWHERE);
  if (s == KILN_OK) {
    kl_interface_make(b->m);
    *out = b->m;
  } else {
    kiln_module_destroy(&b->m);
  }
  b->m = NULL;
  return s;
}
