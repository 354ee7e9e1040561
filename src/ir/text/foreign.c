// What is given by mistake in the place of HLO text, told by how it begins.
#include "ir/text/parse.h"

enum { LOOKED_AT = 4096 }; // bytes of the text

static bool begins(kl_str t, const char *word) {
  size_t n = strlen(word);
  return t.n >= n && memcmp(t.p, word, n) == 0;
}

static bool has(kl_str t, const char *word) {
  return memmem(t.p, t.n, word, strlen(word)) != NULL;
}

// Bytes that no text has, but protocol buffers do: field numbers and lengths.
static bool is_binary(kl_str t) {
  for (size_t i = 0; i < t.n && i < 256; i++) {
    unsigned char c = (unsigned char)t.p[i];
    if (c < ' ' && !kl_is_space((char)c) && c != '\x1b') return true;
  }
  return false;
}

static bool is_mlir(kl_str t) {
  if (begins(t, "#loc") || begins(t, "func.func") || begins(t, "builtin.module") || begins(t, "module @")) return true;
  return begins(t, "module") && (has(t, "func.func") || has(t, "stablehlo.") || has(t, "mhlo."));
}

// { lambda ; a:f32[4]. let ...; what a terminal shows has colours before the word.
static bool is_jaxpr(kl_str t) {
  kl_str head = {t.p, t.n < 64 ? t.n : 64};
  return begins(t, "{") && has(head, "lambda");
}

static bool is_proto_text(kl_str t) {
  return begins(t, "hlo_module {") || begins(t, "hlo {") || begins(t, "name: \"");
}

static const char *kind_of(kl_str whole, kl_str t) {
  if (begins(t, "ML\xef")) return "MLIR bytecode";
  if (is_binary(whole)) return "binary data, such as a serialized HloModuleProto";
  if (is_mlir(t)) return "MLIR (StableHLO)";
  if (is_jaxpr(t)) return "a jaxpr";
  return is_proto_text(t) ? "the text form of a protocol buffer" : NULL;
}

bool kl_parse_is_foreign(kl_parser *ps) {
  kl_str t = ps->lx.src->text;
  size_t begin = ps->lx.begin, left = t.n - begin;
  const char *kind = kind_of(t, (kl_str){t.p + begin, left < LOOKED_AT ? left : LOOKED_AT});
  if (!kind) return false;
  kl_invalid(ps->cx, kl_lex_span(&ps->lx),
             "expected HLO text, found %s; JAX gives HLO text by jax.jit(f).lower(x).compile().as_text(), or as it is "
             "before any optimization by jax.jit(f).lower(x).as_text(dialect=\"hlo\")",
             kind);
  return true;
}
