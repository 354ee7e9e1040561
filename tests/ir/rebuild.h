// A module built again, call by call, from what another one holds: every attribute in the builder's own forms, or with
// `as_text` in HLO text wherever that is allowed. Included by tests that link the ir layer.
#ifndef KL_REBUILD_H
#define KL_REBUILD_H

#include "ir/attrs.h"

#include <check.h>
#include <stdlib.h>

// Everything below lives until the module is finished.
typedef struct rebuild {
  kiln_context *cx;
  const kiln_module *m;
  kiln_builder *b;
  kl_arena arena;
  bool as_text;
} rebuild;

static inline const char *rebuild_name(const rebuild *r, uint32_t symbol) {
  return kl_symbol_text(&r->m->names, symbol).p;
}

static inline const char *rebuild_text(rebuild *r, kl_str s) {
  return kl_str_dup(&r->arena, s).p;
}

static inline kiln_type rebuild_type(rebuild *r, const kl_shape *s) {
  kl_sb b;
  kl_sb_init(&b, r->cx);
  kl_shape_print(&b, s, true);
  kiln_type t = kiln_type_text(r->b, b.p);
  kl_sb_free(&b);
  return t;
}

// The text of one attribute: cut out of the printed instruction, since no other function prints it.
static inline const char *rebuild_attr_text(rebuild *r, const char *line, const char *key) {
  char head[64];
  snprintf(head, sizeof head, ", %s=", key);
  const char *at = strstr(line, head);
  ck_assert_msg(at != NULL, "no %s in %s", key, line);
  at += strlen(head);
  const char *end = at;
  int depth = 0;
  for (bool quoted = false; *end; end++) {
    if (*end == '"' && (end == at || end[-1] != '\\')) quoted = !quoted;
    if (quoted) continue;
    if (strchr("({[", *end)) depth++;
    if (strchr(")}]", *end)) depth--;
    if (depth == 0 && (*end == ',' || *end == '\n')) break;
  }
  return rebuild_text(r, (kl_str){at, (size_t)(end - at)});
}

// Quotes and escapes taken off again.
static inline const char *rebuild_unquoted(rebuild *r, kl_str s) {
  char *out = kl_arena_alloc(&r->arena, s.n), *to = out;
  for (size_t i = 1; i + 1 < s.n; i++) {
    bool octal = s.p[i] == '\\' && s.p[i + 1] >= '0' && s.p[i + 1] <= '3' && i + 4 < s.n;
    if (octal) *to++ = (char)strtol(rebuild_text(r, (kl_str){s.p + i + 1, 3}), NULL, 8);
    if (octal) i += 3;
    if (!octal) *to++ = s.p[i += s.p[i] == '\\'];
  }
  return out;
}

static inline kiln_attr rebuild_comps(rebuild *r, const kl_instr *in, const kl_attr_row *row, uint32_t *next) {
  if (row->type == KL_ATTR_COMP) return KILN_COMP(row->key, in->called[(*next)++]);
  kiln_attr a = {.key = row->key, .form = KILN_ATTR_COMPS, .count = in->ncalled - *next};
  a.as.comps = in->called + *next;
  *next = in->ncalled;
  return a;
}

static inline kiln_attr rebuild_list(const char *key, kiln_attr_form form, size_t count, const void *p) {
  kiln_attr a = {.key = key, .form = form, .count = count};
  a.as.ints = p;
  return a;
}

static inline kiln_attr rebuild_value(rebuild *r, const kl_instr *in, const kl_attr_row *row, const char *line) {
  const void *at = kl_attr_at(in, row);
  const kl_ints *list = at;
  const char **names;
  if (row->type == KL_ATTR_GROUPS && in->more->groups.text.n)
    return KILN_RAW(row->key, rebuild_text(r, in->more->groups.text));
  switch (r->as_text ? KL_ATTR_GROUPS : row->type) {
  case KL_ATTR_DIMS: return rebuild_list(row->key, KILN_ATTR_INTS, in->ndims, in->dims);
  case KL_ATTR_INTS: return rebuild_list(row->key, KILN_ATTR_INTS, list->n, list->p);
  case KL_ATTR_PAIRS: return rebuild_list(row->key, KILN_ATTR_PAIRS, list->n, list->p);
  case KL_ATTR_INT: return KILN_INT(row->key, *(const int64_t *)at);
  case KL_ATTR_BITS: return KILN_INT(row->key, *(const int32_t *)at);
  case KL_ATTR_BOOL: return KILN_BOOL(row->key, *(const bool *)at);
  case KL_ATTR_REAL: return KILN_REAL(row->key, *(const double *)at);
  case KL_ATTR_NAME: return KILN_NAME(row->key, row->names[*(const int *)at]);
  case KL_ATTR_NAMES:
    names = KL_NEW_N(&r->arena, const char *, list->n);
    for (uint32_t i = 0; i < list->n; i++) names[i] = row->names[list->p[i]];
    return rebuild_list(row->key, KILN_ATTR_NAMES, list->n, names);
  case KL_ATTR_QUOTED:
    if (((const kl_str *)at)->p[0] == '\'') return KILN_RAW(row->key, rebuild_text(r, *(const kl_str *)at));
    return KILN_TEXT(row->key, rebuild_unquoted(r, *(const kl_str *)at));
  case KL_ATTR_SLICES: return rebuild_list(row->key, KILN_ATTR_SLICES, in->ndims, in->slice);
  case KL_ATTR_PADDING: return rebuild_list(row->key, KILN_ATTR_PADDING, in->ndims, in->pad);
  case KL_ATTR_WINDOW: return rebuild_list(row->key, KILN_ATTR_WINDOW, in->more->nwindow, in->more->window);
  case KL_ATTR_SHAPE: return KILN_TYPE(row->key, rebuild_type(r, *(const kl_shape *const *)at));
  default: return KILN_RAW(row->key, rebuild_attr_text(r, line, row->key));
  }
}

static inline bool rebuild_is_comps(const kl_attr_row *row) {
  return row->type == KL_ATTR_COMP || row->type == KL_ATTR_COMPS;
}

// The form of what a row holds decides; where the text leaves it out, so does the call.
static inline kiln_value rebuild_instr(rebuild *r, const kl_comp *c, const kl_instr *in, const char *line,
                                       const char *opcode) {
  kiln_attr attrs[80];
  size_t n = 0;
  uint32_t next = 0;
  kl_attr_list rows = kl_instr_attrs(in);
  attrs[n++] = KILN_NAMED(rebuild_name(r, in->name));
  for (uint32_t i = 0; i < rows.n; i++) {
    char head[64];
    snprintf(head, sizeof head, ", %s=", rows.p[i].key);
    if (!strstr(line, head)) continue;
    attrs[n++] =
        rebuild_is_comps(&rows.p[i]) ? rebuild_comps(r, in, &rows.p[i], &next) : rebuild_value(r, in, &rows.p[i], line);
  }
  if (in->ncontrol) attrs[n++] = rebuild_list("", KILN_ATTR_AFTER, in->ncontrol, in->control);
  for (uint32_t i = 0; i < in->nraw && n < KL_COUNT(attrs); i++)
    attrs[n++] = KILN_RAW(in->raw[i].key.p, rebuild_text(r, in->raw[i].value));
  return kiln_build(r->b, opcode, in->operands, in->noperands, rebuild_type(r, in->shape), attrs, n);
}

static inline kiln_value rebuild_constant(rebuild *r, const kl_instr *in) {
  size_t n = kl_shape_leaf_count(in->shape), size = 0, at = 0;
  for (size_t i = 0; i < n; i++) size += (size_t)kl_shape_dense_bytes(in->literal[i].shape);
  char *data = kl_arena_alloc(&r->arena, size);
  for (size_t i = 0; i < n; i++) {
    kl_shape plain = *in->literal[i].shape;
    plain.layout = (kl_layout){.tail_padding = 1};
    kl_array_pack(&(kl_array){&plain, in->literal[i].data}, data + at);
    at += (size_t)kl_shape_dense_bytes(&plain);
  }
  return kiln_build_constant(r->b, rebuild_type(r, in->shape), data, size, rebuild_name(r, in->name));
}

// False where the builder has no way: unknown opcodes, constants without values.
static inline bool rebuild_can(const kiln_module *m) {
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      if (in->op == KL_OP_UNKNOWN || (in->op == KL_OP_CONSTANT && !in->literal)) return false;
    }
  return true;
}

// `lines`: the computation's first instruction in the module's canonical text; steps behind its last.
static inline void rebuild_comp(rebuild *r, uint32_t index, const char **lines) {
  const kl_comp *c = &r->m->comp[index];
  kiln_builder_begin(r->b, rebuild_name(r, c->name));
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    const char *end = strchr(*lines, '\n');
    const char *line = rebuild_text(r, (kl_str){*lines, (size_t)(end + 1 - *lines)});
    *lines = end + 1;
    if (in->op == KL_OP_PARAMETER || in->op == KL_OP_CONSTANT) {
      kiln_value v = in->op == KL_OP_CONSTANT ? rebuild_constant(r, in)
                                              : kiln_build_parameter(r->b, in->number, rebuild_type(r, in->shape),
                                                                     rebuild_name(r, in->name));
      for (uint32_t k = 0; k < in->nraw; k++)
        kiln_build_annotate(r->b, v, in->raw[k].key.p, rebuild_text(r, in->raw[k].value));
      continue;
    }
    // "  ROOT %x = TYPE opcode(": the opcode is the word before the parenthesis that follows the type.
    kl_sb head;
    kl_sb_init(&head, r->cx);
    kl_sbf(&head, "%%%s = ", rebuild_name(r, in->name));
    kl_shape_print(&head, in->shape, true);
    kl_sb_putc(&head, ' ');
    const char *opcode = strstr(line, head.p);
    ck_assert_msg(opcode != NULL, "%s in %s", head.p, line);
    opcode += head.n;
    rebuild_instr(r, c, in, line, rebuild_text(r, (kl_str){opcode, (size_t)(strchr(opcode, '(') - opcode)}));
    kl_sb_free(&head);
  }
  for (uint32_t i = 0; i < c->nraw; i++)
    kiln_builder_annotate_computation(r->b, c->raw[i].key.p, rebuild_text(r, c->raw[i].value));
  kiln_builder_end(r->b, c->root, index == r->m->entry);
}

static inline kiln_status rebuild_module(kiln_context *cx, const kiln_module *m, bool as_text, kiln_module **out) {
  rebuild r = {.cx = cx, .m = m, .b = kiln_builder_create(cx, kiln_module_name(m)), .as_text = as_text};
  char *text;
  size_t size;
  kl_arena_init(&r.arena, cx);
  ck_assert_int_eq(kiln_module_print(cx, m, &text, &size), KILN_OK);
  const char *at = text;
  for (uint32_t i = 0; i < m->nraw; i++)
    kiln_builder_annotate_module(r.b, m->raw[i].key.p, rebuild_text(&r, m->raw[i].value));
  for (uint32_t i = 0; i < m->ncomp; i++) {
    char head[300];
    snprintf(head, sizeof head, "%%%s {\n", rebuild_name(&r, m->comp[i].name));
    at = strstr(at, head) + strlen(head);
    rebuild_comp(&r, i, &at);
  }
  kiln_text_free(cx, text, size);
  kiln_status s = kiln_builder_finish(r.b, out);
  kiln_builder_destroy(&r.b);
  kl_arena_free(&r.arena);
  return s;
}

#endif
