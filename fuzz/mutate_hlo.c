// What is put into HLO text: opcodes, element types, and attributes of the op table.
#include "ir/attrs.h"
#include "mutate.h"

#include <string.h>

static void change_type(kl_mutation *m) {
  kl_dtype t = (kl_dtype)(1 + kl_below(m, KILN_DTYPE_COUNT - 1));
  for (int tries = 0; tries < 64; tries++) {
    kl_token at = kl_any_token(m);
    if (at.end >= m->n || m->p[at.end] != '[') continue;
    kl_replace_text(m, at, kiln_dtype_name(t));
    return;
  }
}

static void change_opcode(kl_mutation *m) {
  kl_op op = (kl_op)(1 + kl_below(m, KL_OP_COUNT - 1));
  for (int tries = 0; tries < 64; tries++) {
    kl_token at = kl_token_like(m, 'a');
    if (at.end >= m->n || m->p[at.end] != '(') continue;
    kl_replace_text(m, at, kl_op_name(op));
    return;
  }
}

static void add_attribute(kl_mutation *m) {
  static const char *const values[] = {
      "{}", "{0}", "{1,0}", "{0,1,2}", "true", "0", "1", "EQ", "{size=2x2 pad=1_0x0_1}", "b01f_01io->b01f", "%a"};
  kl_attr_list list = kl_op_attrs((kl_op)kl_below(m, KL_OP_COUNT));
  char text[200] = ", ";
  if (!list.n) return;
  strncat(text, list.p[kl_below(m, list.n)].key, 60);
  strcat(text, "=");
  strcat(text, values[kl_below(m, KL_COUNT(values))]);
  kl_token at = kl_line_at(m, kl_any_token(m).begin);
  size_t end = at.end > at.begin && m->p[at.end - 1] == '\n' ? at.end - 1 : at.end;
  kl_replace(m, end, end, text, strlen(text));
}

size_t kl_mutate(uint8_t *data, size_t size, size_t max, unsigned seed) {
  static void (*const kinds[])(kl_mutation *) = {change_type, change_opcode, add_attribute};
  return kl_mutate_text(data, size, max, seed, (kl_kinds){kinds, KL_COUNT(kinds)});
}
