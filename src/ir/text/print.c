// The canonical text of a module: parsing it gives the same text again.
//
// Names carry a percent sign, operands no types, shapes the layouts that were written. An op's own attributes come in
// the order of its rows in attrs.c, then those kept as text.
#include "ir/attrs.h"
#include "ir/text/lex.h"

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
static void put_array(kl_sb *b, const kl_array *a) {
  const kl_shape *s = a->shape;
  int64_t at[KILN_MAX_RANK] = {0};
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

// An array without elements still has braces for the dimensions before the first of size 0, as long as they are few.
static void put_braces(kl_sb *b, const kl_shape *s, uint32_t d) {
  kl_sb_putc(b, '{');
  for (int64_t i = 0; i < s->dims[d]; i++) {
    if (i) kl_sb_puts(b, ", ");
    put_braces(b, s, d + 1);
  }
  kl_sb_putc(b, '}');
}

static void put_empty(kl_sb *b, const kl_shape *s) {
  enum { MOST_BRACES = 1000 };
  int64_t braces = 1;
  for (uint32_t d = 0; s->dims[d] && braces < MOST_BRACES; d++)
    if (__builtin_mul_overflow(braces, s->dims[d], &braces)) braces = MOST_BRACES;
  if (braces < MOST_BRACES)
    put_braces(b, s, 0);
  else
    kl_sb_puts(b, "{}");
}

// *leaf: the next array.
static void put_literal(kl_sb *b, const kl_shape *s, const kl_array **leaf) {
  if (s->dtype == KILN_TUPLE) {
    kl_sb_putc(b, '(');
    for (uint32_t i = 0; i < s->nelems; i++) {
      if (i) kl_sb_puts(b, ", ");
      put_literal(b, s->elems[i], leaf);
    }
    kl_sb_putc(b, ')');
    return;
  }
  const kl_array *a = (*leaf)++;
  if (s->count)
    put_array(b, a);
  else
    put_empty(b, s);
}

// --- instructions -------------------------------------------------------------------------------------------------

static void put_operands(kl_sb *b, const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  for (uint32_t i = 0; i < in->noperands; i++) {
    if (i) kl_sb_puts(b, ", ");
    put_name(b, m, kl_operand(c, in, i)->name);
  }
}

static void put_arguments(kl_sb *b, const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  const kl_array *leaf = in->literal;
  kl_sb_putc(b, '(');
  if (in->raw_operands.n)
    kl_sb_put(b, in->raw_operands);
  else if (in->literal)
    put_literal(b, in->shape, &leaf);
  else if (in->op == KL_OP_PARAMETER)
    kl_sb_i64(b, in->number);
  else
    put_operands(b, m, c, in);
  kl_sb_putc(b, ')');
}

// --- attributes ---------------------------------------------------------------------------------------------------

static void put_ints(kl_sb *b, uint32_t n, const int64_t *p) {
  kl_sb_putc(b, '{');
  for (uint32_t i = 0; i < n; i++) {
    if (i) kl_sb_putc(b, ',');
    kl_sb_i64(b, p[i]);
  }
  kl_sb_putc(b, '}');
}

static void put_slices(kl_sb *b, const kl_instr *in) {
  kl_sb_putc(b, '{');
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
    kl_sbf(b, "%s%lld_%lld", i ? "x" : "", (long long)d.low, (long long)d.high);
    if (d.interior) kl_sbf(b, "_%lld", (long long)d.interior);
  }
}

// One key of a window with an entry per dimension, unless all are what they would be without.
#define PUT_WINDOW_KEY(key, differs, ...)                                                                              \
  do {                                                                                                                 \
    bool wanted = false;                                                                                               \
    for (uint32_t i = 0; i < n; i++) wanted |= (differs);                                                              \
    for (uint32_t i = 0; i < n && wanted; i++) {                                                                       \
      kl_sb_puts(b, i ? "x" : key);                                                                                    \
      kl_sbf(b, __VA_ARGS__);                                                                                          \
    }                                                                                                                  \
  } while (0)

static void put_window(kl_sb *b, uint32_t n, const kl_window_dim *w) {
  kl_sb_putc(b, '{');
  PUT_WINDOW_KEY("size=", true, "%lld", (long long)w[i].size);
  PUT_WINDOW_KEY(" stride=", w[i].stride != 1, "%lld", (long long)w[i].stride);
  PUT_WINDOW_KEY(" pad=", w[i].low || w[i].high, "%lld_%lld", (long long)w[i].low, (long long)w[i].high);
  PUT_WINDOW_KEY(" lhs_dilate=", w[i].base_dilation != 1, "%lld", (long long)w[i].base_dilation);
  PUT_WINDOW_KEY(" rhs_dilate=", w[i].window_dilation != 1, "%lld", (long long)w[i].window_dilation);
  PUT_WINDOW_KEY(" rhs_reversal=", w[i].reversed, "%d", w[i].reversed);
  kl_sb_putc(b, '}');
}

static void put_labels(kl_sb *b, char a, char c, int64_t at_a, int64_t at_c, uint32_t n, const int64_t *spatial,
                       uint32_t rank) {
  char text[2 * KILN_MAX_RANK];
  memset(text, '?', sizeof text);
  text[at_a] = a;
  text[at_c] = c;
  for (uint32_t i = 0; i < n; i++) text[spatial[i]] = (char)('0' + i);
  kl_sb_put(b, (kl_str){text, rank ? rank : n + 2});
}

static void put_dim_labels(kl_sb *b, const kl_conv_dims *c) {
  put_labels(b, 'b', 'f', c->input_batch, c->input_feature, c->n, c->input, c->input_rank);
  kl_sb_putc(b, '_');
  put_labels(b, 'i', 'o', c->kernel_input, c->kernel_output, c->n, c->kernel, c->kernel_rank);
  kl_sb_puts(b, "->");
  put_labels(b, 'b', 'f', c->result_batch, c->result_feature, c->n, c->result, c->result_rank);
}

static void put_pairs(kl_sb *b, const kl_ints *list) {
  kl_sb_putc(b, '{');
  for (uint32_t i = 0; i + 1 < list->n; i += 2)
    kl_sbf(b, "%s{%lld,%lld}", i ? "," : "", (long long)list->p[i], (long long)list->p[i + 1]);
  kl_sb_putc(b, '}');
}

static void put_names(kl_sb *b, const kl_ints *list, const char *const *names) {
  kl_sb_putc(b, '{');
  for (uint32_t i = 0; i < list->n; i++) kl_sbf(b, "%s%s", i ? "," : "", names[list->p[i]]);
  kl_sb_putc(b, '}');
}

static void put_real(kl_sb *b, double v) {
  char text[32];
  kl_sb_put(b, (kl_str){text, kl_text_from_float(text, (float)v)});
}

// Computations that the rows before this one have taken.
static void put_comps(kl_sb *b, const kiln_module *m, const kl_instr *in, uint32_t *next) {
  kl_sb_putc(b, '{');
  for (bool first = true; *next < in->ncalled; ++*next, first = false) {
    if (!first) kl_sb_puts(b, ", ");
    put_name(b, m, m->comp[in->called[*next]].name);
  }
  kl_sb_putc(b, '}');
}

static void put_value(kl_sb *b, const kiln_module *m, const kl_instr *in, const kl_attr_row *r, uint32_t *next) {
  const void *at = kl_attr_at(in, r);
  const kl_ints *list = at;
  const kl_groups *groups = at;
  switch (r->type) {
  case KL_ATTR_DIMS: put_ints(b, in->ndims, in->dims); break;
  case KL_ATTR_INTS: put_ints(b, list->n, list->p); break;
  case KL_ATTR_INT: kl_sb_i64(b, *(const int64_t *)at); break;
  case KL_ATTR_BITS: kl_sb_i64(b, *(const int32_t *)at); break;
  case KL_ATTR_BOOL: kl_sb_puts(b, *(const bool *)at ? "true" : "false"); break;
  case KL_ATTR_REAL: put_real(b, *(const double *)at); break;
  case KL_ATTR_NAME: kl_sb_puts(b, r->names[*(const int *)at]); break;
  case KL_ATTR_NAMES: put_names(b, at, r->names); break;
  case KL_ATTR_QUOTED: kl_sb_put(b, *(const kl_str *)at); break;
  case KL_ATTR_SLICES: put_slices(b, in); break;
  case KL_ATTR_PADDING: put_padding(b, in); break;
  case KL_ATTR_WINDOW: put_window(b, in->more->nwindow, in->more->window); break;
  case KL_ATTR_DIM_LABELS: put_dim_labels(b, *(const kl_conv_dims *const *)at); break;
  case KL_ATTR_GROUPS: kl_sb_put(b, groups->text.n ? groups->text : KL_STR("{}")); break;
  case KL_ATTR_PAIRS: put_pairs(b, at); break;
  case KL_ATTR_COMP: put_name(b, m, m->comp[in->called[(*next)++]].name); break;
  case KL_ATTR_COMPS: put_comps(b, m, in, next); break;
  case KL_ATTR_SHAPE: kl_shape_print(b, *(const kl_shape *const *)at, true); break;
  }
}

// Is the value of a row that may be left out other than what it is without?
static bool differs(const kl_instr *in, const kl_attr_row *r, uint32_t index) {
  const void *at = kl_attr_at(in, r);
  switch (r->type) {
  case KL_ATTR_INT: return *(const int64_t *)at != r->otherwise;
  case KL_ATTR_BOOL: return *(const bool *)at != (r->otherwise != 0);
  case KL_ATTR_NAME: return *(const int *)at != (int)r->otherwise;
  case KL_ATTR_PADDING: return in->ndims != 0;
  default: return in->given >> index & 1;
  }
}

static void put_attrs(kl_sb *b, const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  kl_attr_list list = kl_instr_attrs(in);
  bool follows = in->wrapped && in->op != KL_OP_ASYNC_START; // what must be said, the start has said
  uint32_t next = 0;
  for (uint32_t i = 0; i < list.n; i++) {
    const kl_attr_row *r = &list.p[i];
    if ((r->need == KL_ATTR_MAY || follows) && !differs(in, r, i)) continue;
    kl_sbf(b, ", %s=", r->key);
    put_value(b, m, in, r, &next);
  }
  for (uint32_t i = 0; i < in->ncontrol; i++) {
    kl_sb_puts(b, i ? ", " : ", control-predecessors={");
    put_name(b, m, c->instr[in->control[i]].name);
  }
  if (in->ncontrol) kl_sb_putc(b, '}');
  put_raw(b, in->nraw, in->raw);
}

static void put_opcode(kl_sb *b, const kiln_module *m, const kl_instr *in) {
  static const char *const ends[] = {"-start", "-update", "-done"};
  if (in->op == KL_OP_UNKNOWN)
    kl_sb_put(b, kl_symbol_text(&m->names, in->opcode_text));
  else
    kl_sb_puts(b, kl_op_name(in->wrapped ? in->wrapped : in->op));
  if (in->wrapped) kl_sb_puts(b, ends[in->op - KL_OP_ASYNC_START]);
}

static void put_instruction(kl_sb *b, const kiln_module *m, const kl_comp *c, uint32_t i) {
  const kl_instr *in = &c->instr[i];
  kl_sb_puts(b, i == c->root ? "  ROOT " : "  ");
  put_name(b, m, in->name);
  kl_sb_puts(b, " = ");
  kl_shape_print(b, in->shape, true);
  kl_sb_putc(b, ' ');
  put_opcode(b, m, in);
  put_arguments(b, m, c, in);
  put_attrs(b, m, c, in);
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

static size_t literal_size(const kl_array *a) {
  enum { MOST_DIGITS = 30 }; // of one number, with what separates it from the next
  return (size_t)a->shape->count * MOST_DIGITS * (kl_is_complex(a->shape->dtype) ? 2 : 1);
}

// Room for the literals' text, which alone can be large: it is asked for at once, so that short memory is a status.
static kiln_status reserve_literals(kl_sb *b, const kiln_module *m) {
  size_t size = 256;
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      for (size_t n = in->literal ? kl_shape_leaf_count(in->shape) : 0; n-- > 0;) size += literal_size(&in->literal[n]);
    }
  b->p = kl_try_alloc(b->cx, size);
  if (!b->p) return kl_out_of_memory(b->cx, size, "a module's text");
  b->cap = size;
  return KILN_OK;
}

// Words that XLA's lexer does not take for a name unless a percent sign stands before them.
static bool is_reserved(kl_str name) {
  static const char *const words[] = {"true",
                                      "false",
                                      "inf",
                                      "nan",
                                      "HloModule",
                                      "ENTRY",
                                      "ROOT",
                                      "FileLocations",
                                      "FileNames",
                                      "FunctionNames",
                                      "StackFrames",
                                      "maximal",
                                      "replicated",
                                      "manual",
                                      "shard_as",
                                      "shard_like",
                                      "unknown",
                                      "unreduced",
                                      "last_tile_dim_replicate"};
  kl_dtype t;
  for (size_t i = 0; i < KL_COUNT(words); i++)
    if (kl_str_is(name, words[i])) return true;
  return kl_dtype_from_str(name, &t);
}

kiln_status kiln_module_print(kiln_context *cx, const kiln_module *m, char **text, size_t *size) {
  kl_sb b;
  size_t n;
  KL_CLEAR(text);
  KL_CLEAR(size);
  KL_EXPECT(cx, m, text);
  kl_sb_init(&b, cx);
  KL_TRY(reserve_literals(&b, m));
  kl_sb_puts(&b, "HloModule ");
  kl_str name = kl_symbol_text(&m->names, m->name);
  if (!kl_is_name_start(name.n ? name.p[0] : 0) || is_reserved(name)) kl_sb_putc(&b, '%');
  kl_sb_put(&b, name);
  put_raw(&b, m->nraw, m->raw);
  kl_sb_putc(&b, '\n');
  kl_sb_put(&b, m->tables);
  for (uint32_t i = 0; i < m->ncomp; i++) put_computation(&b, m, i);
  *text = kl_sb_take(&b, &n);
  if (size) *size = n;
  return KILN_OK;
}
