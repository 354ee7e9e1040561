// The canonical text of a module: parsing it gives the same text again.
//
// Names carry a percent sign, operands no types, shapes the layouts that were written. An op's own attributes come in
// the order of its rows in parse_attr.c, then those kept as text.
#include "ir/hlo.h"
#include "ir/lex.h"

static void put_name(kl_sb *b, const kiln_module *m, uint32_t symbol) {
  kl_sb_putc(b, '%');
  kl_sb_put(b, kl_symbol_text(&m->names, symbol));
}

static void put_raw(kl_sb *b, uint32_t n, const kl_raw_attr *raw) {
  for (uint32_t i = 0; i < n; i++) {
    kl_sb_puts(b, ", ");
    kl_sb_put(b, raw[i].key);
    kl_sb_putc(b, '=');
    kl_sb_put(b, raw[i].value);
  }
}

// --- literals -----------------------------------------------------------------------------------------------------

static void put_scalar(kl_sb *b, const kl_array *a, int64_t i) {
  char text[96];
  kl_dtype t = a->shape->dtype;
  uint64_t bits[2] = {kl_element_get(t, a->data, i, 0), kl_is_complex(t) ? kl_element_get(t, a->data, i, 1) : 0};
  kl_sb_put(b, (kl_str){text, kl_scalar_text(text, t, bits)});
}

// Row-major walk: a brace opens for each dimension whose index restarts, and closes for each that is at its end.
static void put_literal(kl_sb *b, const kl_array *a) {
  const kl_shape *s = a->shape;
  int64_t at[KILN_MAX_RANK] = {0};
  if (s->count == 0) {
    kl_sb_puts(b, "{}");
    return;
  }
  for (uint32_t d = 0; d < s->rank; d++) kl_sb_putc(b, '{');
  for (int64_t i = 0; i < s->count; i++) {
    put_scalar(b, a, i);
    uint32_t d = s->rank;
    while (d > 0 && ++at[d - 1] == s->dims[d - 1]) {
      at[--d] = 0;
      kl_sb_putc(b, '}');
    }
    if (d == 0) break;
    kl_sb_puts(b, ", ");
    for (; d < s->rank; d++) kl_sb_putc(b, '{');
  }
}

// --- instructions -------------------------------------------------------------------------------------------------

static void put_operands(kl_sb *b, const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  for (uint32_t i = 0; i < in->noperands; i++) {
    if (i) kl_sb_puts(b, ", ");
    put_name(b, m, kl_operand(c, in, i)->name);
  }
}

static void put_arguments(kl_sb *b, const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  kl_sb_putc(b, '(');
  if (in->raw_operands.n)
    kl_sb_put(b, in->raw_operands);
  else if (in->literal)
    put_literal(b, in->literal);
  else if (in->op == KL_OP_PARAMETER)
    kl_sb_i64(b, in->number);
  else
    put_operands(b, m, c, in);
  kl_sb_putc(b, ')');
}

static void put_dimensions(kl_sb *b, const kl_instr *in) {
  kl_sb_puts(b, ", dimensions={");
  for (uint32_t i = 0; i < in->ndims; i++) {
    if (i) kl_sb_putc(b, ',');
    kl_sb_i64(b, in->dims[i]);
  }
  kl_sb_putc(b, '}');
}

static void put_slice(kl_sb *b, const kl_instr *in) {
  kl_sb_puts(b, ", slice={");
  for (uint32_t i = 0; i < in->ndims; i++) {
    kl_slice_dim d = in->slice[i];
    kl_sbf(b, "%s[%lld:%lld", i ? ", " : "", (long long)d.start, (long long)d.limit);
    if (d.stride != 1) kl_sbf(b, ":%lld", (long long)d.stride);
    kl_sb_putc(b, ']');
  }
  kl_sb_putc(b, '}');
}

static void put_padding(kl_sb *b, const kl_instr *in) {
  for (uint32_t i = 0; i < in->ndims; i++) {
    kl_pad_dim d = in->pad[i];
    kl_sbf(b, "%s%lld_%lld", i ? "x" : ", padding=", (long long)d.low, (long long)d.high);
    if (d.interior) kl_sbf(b, "_%lld", (long long)d.interior);
  }
}

static void put_compare(kl_sb *b, const kl_instr *in) {
  kl_sbf(b, ", direction=%s", kl_direction_names[in->direction]);
  if (in->compare_type != KL_CMP_DEFAULT) kl_sbf(b, ", type=%s", kl_compare_type_names[in->compare_type]);
}

static void put_called(kl_sb *b, const kiln_module *m, const kl_instr *in) {
  if (in->op == KL_OP_FUSION) {
    kl_sb_puts(b, ", kind=");
    kl_sb_put(b, in->fusion_kind);
    kl_sb_puts(b, ", calls=");
  } else {
    kl_sb_puts(b, ", to_apply=");
  }
  put_name(b, m, m->comp[in->called].name);
}

static void put_attrs(kl_sb *b, const kiln_module *m, const kl_instr *in) {
  switch (in->op) {
  case KL_OP_BROADCAST:
  case KL_OP_TRANSPOSE:
  case KL_OP_REVERSE:
  case KL_OP_CONCATENATE: put_dimensions(b, in); break;
  case KL_OP_IOTA: kl_sbf(b, ", iota_dimension=%lld", (long long)in->number); break;
  case KL_OP_SLICE: put_slice(b, in); break;
  case KL_OP_PAD: put_padding(b, in); break;
  case KL_OP_COMPARE: put_compare(b, in); break;
  case KL_OP_REDUCE_PRECISION:
    kl_sbf(b, ", exponent_bits=%d, mantissa_bits=%d", in->exponent_bits, in->mantissa_bits);
    break;
  case KL_OP_GET_TUPLE_ELEMENT: kl_sbf(b, ", index=%lld", (long long)in->number); break;
  case KL_OP_FUSION:
  case KL_OP_CALL: put_called(b, m, in); break;
  default: break;
  }
  put_raw(b, in->nraw, in->raw);
}

static void put_instruction(kl_sb *b, const kiln_module *m, const kl_comp *c, uint32_t i) {
  const kl_instr *in = &c->instr[i];
  kl_sb_puts(b, i == c->root ? "  ROOT " : "  ");
  put_name(b, m, in->name);
  kl_sb_puts(b, " = ");
  kl_shape_print(b, in->shape, true);
  kl_sb_putc(b, ' ');
  if (in->op == KL_OP_UNKNOWN)
    kl_sb_put(b, kl_symbol_text(&m->names, in->opcode_text));
  else
    kl_sb_puts(b, kl_op_name(in->op));
  put_arguments(b, m, c, in);
  put_attrs(b, m, in);
  kl_sb_putc(b, '\n');
}

// --- modules ------------------------------------------------------------------------------------------------------

static void put_computation(kl_sb *b, const kiln_module *m, uint32_t index) {
  const kl_comp *c = &m->comp[index];
  kl_sb_puts(b, index == m->entry ? "\nENTRY " : "\n");
  put_name(b, m, c->name);
  kl_sb_puts(b, " {\n");
  for (uint32_t i = 0; i < c->ninstr; i++) put_instruction(b, m, c, i);
  kl_sb_putc(b, '}');
  put_raw(b, c->nraw, c->raw);
  kl_sb_putc(b, '\n');
}

// Room for the literals' text, which alone can be large: it is asked for at once, so that short memory is a status.
static kiln_status reserve_literals(kl_sb *b, const kiln_module *m) {
  enum { MOST_DIGITS = 30 }; // of one number, with what separates it from the next
  size_t size = 256;
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++) {
      const kl_array *a = m->comp[i].instr[k].literal;
      if (a) size += (size_t)a->shape->count * MOST_DIGITS * (kl_is_complex(a->shape->dtype) ? 2 : 1);
    }
  b->p = kl_try_alloc(b->cx, size);
  if (!b->p) return kl_out_of_memory(b->cx, size, "a module's text");
  b->cap = size;
  return KILN_OK;
}

kiln_status kiln_module_print(kiln_context *cx, const kiln_module *m, char **text, size_t *size) {
  kl_sb b;
  size_t n;
  *text = NULL;
  kl_sb_init(&b, cx);
  KL_TRY(reserve_literals(&b, m));
  kl_sb_puts(&b, "HloModule ");
  kl_str name = kl_symbol_text(&m->names, m->name);
  if (!kl_is_name_start(name.n ? name.p[0] : 0)) kl_sb_putc(&b, '%');
  kl_sb_put(&b, name);
  put_raw(&b, m->nraw, m->raw);
  kl_sb_putc(&b, '\n');
  for (uint32_t i = 0; i < m->ncomp; i++) put_computation(&b, m, i);
  *text = kl_sb_take(&b, &n);
  if (size) *size = n;
  return KILN_OK;
}
