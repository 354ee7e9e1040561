// Configurations of calls: dictionaries of letters and truths.
#include "ir/custom/room.h"

#include "ir/text/text.h"

// What is read of a text is the text from there on.
static void skip_space(kl_str *s) {
  while (s->n && *s->p == ' ') s->p++, s->n--;
}

static bool take(kl_str *s, const char *what) {
  size_t n = strlen(what);
  skip_space(s);
  if (!kl_custom_begins(*s, what)) return false;
  s->p += n, s->n -= n;
  return true;
}

static kl_str take_name(kl_str *s) {
  skip_space(s);
  kl_str name = {s->p, 0};
  while (name.n < s->n && kl_is_name_char(s->p[name.n])) name.n++;
  s->p += name.n, s->n -= name.n;
  return name;
}

// A letter by its code, a truth as 1 or 0; -1: it is neither.
static int take_value(kl_str *s) {
  int64_t code = 0;
  kl_str v = take_name(s);
  if (kl_str_is(v, "true")) return 1;
  if (kl_str_is(v, "false")) return 0;
  for (size_t i = 0; i < v.n; i++) {
    if (v.p[i] < '0' || v.p[i] > '9' || code > 255) return -1;
    code = 10 * code + v.p[i] - '0';
  }
  if (v.n && take(s, ":")) take_name(s);
  return v.n && code < 256 ? (int)code : -1;
}

bool kl_custom_read_entries(kl_str config, const kl_custom_entry *e, unsigned n, int *which) {
  unsigned found = 0;
  if (!take(&config, "{")) return false;
  for (bool more = true; more; more = take(&config, ",")) {
    kl_str name = take_name(&config);
    unsigned i = 0;
    while (i < n && !kl_str_is(name, e[i].name)) i++;
    if (i == n || found >> i & 1 || !take(&config, "=")) return false;
    int v = take_value(&config);
    which[i] = v == e[i].values[0] ? 0 : v == e[i].values[1] ? 1 : v > 0 && v == e[i].third ? 2 : -1;
    if (which[i] < 0) return false;
    found |= 1u << i;
  }
  return take(&config, "}") && config.n == 0 && found == (1u << n) - 1;
}

bool kl_custom_read_truth(kl_str config, const char *name, bool *out) {
  if (!take(&config, "{")) return false;
  for (bool more = true; more; more = take(&config, ",")) {
    kl_str own = take_name(&config);
    if (!take(&config, "=")) return false;
    kl_str v = take_name(&config);
    if (take(&config, ":")) take_name(&config);
    if (!kl_str_is(own, name)) continue;
    *out = kl_str_is(v, "true");
    return *out || kl_str_is(v, "false");
  }
  return false;
}
