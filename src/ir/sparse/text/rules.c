// The table of rules, and findings that name them.
#include "ir/sparse/text/rules.h"
#include <kiln/sparse.h>

static const struct {
  const char *id, *stage, *modes, *text;
} rows[KL_RULE_COUNT] = {{"", "", "", ""},
#define X(id, stage, modes, text) {#id, #stage, modes, text},
                         KL_SPARSE_RULES(X)
#undef X
};

const char *kl_sparse_rule_name(kl_sparse_rule rule) {
  return rows[rule].id;
}

bool kiln_encoding_rule_at(size_t i, kiln_encoding_rule *out) {
  if (!out || i >= KL_RULE_COUNT - 1) return false;
  kl_sparse_rule r = (kl_sparse_rule)(i + 1);
  *out = (kiln_encoding_rule){rows[r].id, rows[r].text, strchr(rows[r].modes, 'S') != NULL,
                              strchr(rows[r].modes, 'D') != NULL};
  return true;
}

kiln_status kl_sparse_vbroken(kl_ctx *cx, kl_span where, kl_sparse_rule rule, const char *fmt, va_list ap) {
  kiln_status status = rule == KL_RULE_LARGE ? KILN_E_UNSUPPORTED : KILN_E_INVALID;
  kl_sb with;
  kl_sb_init(&with, cx);
  kl_sbf(&with, "%s (rule %s)", fmt, rows[rule].id);
  kl_vfail(cx, status, where, with.p, ap);
  kl_sb_free(&with);
  return status;
}
