// The table of level formats: words, properties, text.
#include "ir/sparse/impl.h"

// clang-format off
static const struct {
  const char *name;
  unsigned allows;
} formats[] = {
  [KILN_LEVEL_DENSE]            = {"dense", 0},
  [KILN_LEVEL_BATCH]            = {"batch", 0},
  // soa is refused later, with a rule of its own
  [KILN_LEVEL_COMPRESSED]       = {"compressed", KILN_LEVEL_NONUNIQUE | KILN_LEVEL_NONORDERED | KILN_LEVEL_SOA},
  [KILN_LEVEL_LOOSE_COMPRESSED] = {"loose_compressed", KILN_LEVEL_NONUNIQUE | KILN_LEVEL_NONORDERED | KILN_LEVEL_SOA},
  [KILN_LEVEL_SINGLETON]        = {"singleton", KILN_LEVEL_NONUNIQUE | KILN_LEVEL_NONORDERED | KILN_LEVEL_SOA},
  [KILN_LEVEL_STRUCTURED]       = {"structured", 0},
};
enum { NU = KILN_LEVEL_NONUNIQUE, NO = KILN_LEVEL_NONORDERED };
static const level_word words[] = {
  {"dense",               KILN_LEVEL_DENSE,            0,       0, 0, false},
  {"batch",               KILN_LEVEL_BATCH,            0,       0, 0, false},
  {"compressed",          KILN_LEVEL_COMPRESSED,       0,       0, 0, false},
  {"loose_compressed",    KILN_LEVEL_LOOSE_COMPRESSED, 0,       0, 0, false},
  {"singleton",           KILN_LEVEL_SINGLETON,        0,       0, 0, false},
  {"structured",          KILN_LEVEL_STRUCTURED,       0,       0, 0, false},
  {"block2_4",            KILN_LEVEL_STRUCTURED,       0,       2, 4, true},
  {"compressed_nu",       KILN_LEVEL_COMPRESSED,       NU,      0, 0, true},
  {"compressed_no",       KILN_LEVEL_COMPRESSED,       NO,      0, 0, true},
  {"compressed_nu_no",    KILN_LEVEL_COMPRESSED,       NU | NO, 0, 0, true},
  {"compressed_hi",       KILN_LEVEL_LOOSE_COMPRESSED, 0,       0, 0, true},
  {"compressed_hi_nu",    KILN_LEVEL_LOOSE_COMPRESSED, NU,      0, 0, true},
  {"compressed_hi_no",    KILN_LEVEL_LOOSE_COMPRESSED, NO,      0, 0, true},
  {"compressed_hi_nu_no", KILN_LEVEL_LOOSE_COMPRESSED, NU | NO, 0, 0, true},
  {"singleton_nu",        KILN_LEVEL_SINGLETON,        NU,      0, 0, true},
  {"singleton_no",        KILN_LEVEL_SINGLETON,        NO,      0, 0, true},
  {"singleton_nu_no",     KILN_LEVEL_SINGLETON,        NU | NO, 0, 0, true},
};
// clang-format on

static const struct {
  const char *name;
  unsigned bit;
} properties[] = { // in the order of the normal form
    {"nonunique", KILN_LEVEL_NONUNIQUE},
    {"nonordered", KILN_LEVEL_NONORDERED},
    {"soa", KILN_LEVEL_SOA}};

const level_word *sp_level_word(kl_str word, bool strict) {
  for (size_t i = 0; i < KL_COUNT(words); i++)
    if (kl_str_is(word, words[i].word) && !(strict && words[i].old)) return &words[i];
  return NULL;
}

const char *sp_format_name(kiln_level_format f) {
  return formats[f].name;
}

unsigned sp_format_allows(kiln_level_format f) {
  return formats[f].allows;
}

bool sp_property(kl_str word, unsigned *out) {
  for (size_t i = 0; i < KL_COUNT(properties); i++)
    if (kl_str_is(word, properties[i].name)) {
      *out = properties[i].bit;
      return true;
    }
  return false;
}

void sp_put_level_type(kl_sb *b, const kl_level *l) {
  const char *between = "(";
  kl_sb_puts(b, formats[l->format].name);
  if (l->format == KILN_LEVEL_STRUCTURED) kl_sbf(b, "[%lld, %lld]", (long long)l->n, (long long)l->m);
  for (size_t i = 0; i < KL_COUNT(properties); i++)
    if (l->properties & properties[i].bit) {
      kl_sbf(b, "%s%s", between, properties[i].name);
      between = ", ";
    }
  if (l->properties) kl_sb_putc(b, ')');
}
