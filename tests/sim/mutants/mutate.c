#include "mutate.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const mistake_names[MISTAKES] = {"store", "guard", "constant", "index", "mask", "order"};

enum { MOST = 512 };
// Makes the mistake in an instruction, without its guard (`guard`, or "") and semicolon. False: it cannot be made.
typedef bool change(const char *guard, const char *op, const char *what, const char *by, char *out);

static bool begins(const char *p, const char *with) {
  return strncmp(p, with, strlen(with)) == 0;
}
static bool is_number(const char *p) {
  return isdigit((unsigned char)*p) || (*p == '-' && isdigit((unsigned char)p[1]));
}
static const char *last_operand(const char *op) {
  const char *p = strrchr(op, ',');
  if (!p) p = strpbrk(op, " \t");
  return p ? p + 1 + strspn(p + 1, " \t") : "";
}

static bool leave_out(const char *guard, const char *op, const char *what, const char *by, char *out) {
  (void)guard, (void)op, (void)what, (void)by;
  *out = 0;
  return true;
}

// The wait behind it as well.
static bool leave_out_meeting(const char *guard, const char *op, const char *what, const char *by, char *out) {
  return leave_out(guard, op, what, by, out);
}

static bool replace(const char *guard, const char *op, const char *what, const char *by, char *out) {
  const char *at = strstr(op, what);
  if (at) snprintf(out, MOST, "%s %.*s%s%s;", guard, (int)(at - op), op, by, at + strlen(what));
  return at != NULL;
}

static bool leave_out_store(const char *guard, const char *op, const char *what, const char *by, char *out) {
  return !begins(op, "st.param") && leave_out(guard, op, what, by, out);
}

static bool unguard(const char *guard, const char *op, const char *what, const char *by, char *out) {
  (void)what, (void)by;
  snprintf(out, MOST, "%s%s", begins(op, "bra") ? "" : op, begins(op, "bra") ? "" : ";");
  return *guard != 0;
}

static bool leave_out_constant(const char *guard, const char *op, const char *what, const char *by, char *out) {
  return !*guard && is_number(last_operand(op)) && leave_out(guard, op, what, by, out);
}

static bool move_far(const char *guard, const char *op, const char *what, const char *by, char *out) {
  const char *open = strchr(op, '['), *close = strchr(op, ']');
  (void)what, (void)by;
  if (begins(op, "ld.param") || !open || !close || open[1] != '%' || memchr(open, '+', (size_t)(close - open)))
    return false;
  snprintf(out, MOST, "%s %.*s+268435456%s;", guard, (int)(close - op), op, close);
  return true;
}

// and.b32 d, a, 31 -> mov.b32 d, a
static bool keep_all_bits(const char *guard, const char *op, const char *what, const char *by, char *out) {
  const char *last = strrchr(op, ',');
  (void)what, (void)by;
  if (!last || !is_number(last_operand(op))) return false;
  snprintf(out, MOST, "%s mov%.*s;", guard, (int)(last - op) - 3, op + 3);
  return true;
}

static bool mask_of_one(const char *guard, const char *op, const char *what, const char *by, char *out) {
  const char *last = last_operand(op);
  (void)what, (void)by;
  if (!is_number(last)) return false;
  snprintf(out, MOST, "%s %.*s1;", guard, (int)(last - op), op);
  return true;
}

static const struct {
  mistake kind;
  const char *op; // how the instruction begins
  change *make;
  const char *what, *by;
} ways[] = {
    {STORES, "st.", leave_out_store, NULL, NULL},
    {GUARDS, "", unguard, NULL, NULL},
    {CONSTANTS, "mov.", leave_out_constant, NULL, NULL},
    {INDICES, "ld.", move_far, NULL, NULL},
    {MASKS, "and.b", keep_all_bits, NULL, NULL},
    {MASKS, "shfl.sync", mask_of_one, NULL, NULL},
    {MASKS, "vote.sync", mask_of_one, NULL, NULL},
    {MASKS, "match.", mask_of_one, NULL, NULL},
    {MASKS, "redux.sync", mask_of_one, NULL, NULL},
    {MASKS, "bar.warp.sync", mask_of_one, NULL, NULL},
    {ORDERS, "bar.sync", leave_out, NULL, NULL},
    {ORDERS, "bar.arrive", leave_out, NULL, NULL},
    {ORDERS, "bar.warp.sync", leave_out, NULL, NULL},
    {ORDERS, "barrier.", leave_out, NULL, NULL},
    {ORDERS, "membar", leave_out, NULL, NULL},
    {ORDERS, "fence", leave_out, NULL, NULL},
    {ORDERS, "cp.async.wait", leave_out, NULL, NULL},
    {ORDERS, "cp.async.commit", leave_out, NULL, NULL},
    {ORDERS, "ld", replace, ".volatile", ""},
    {ORDERS, "st", replace, ".volatile", ""},
    {ORDERS, "ld", replace, ".acquire.", ".relaxed."},
    {ORDERS, "st", replace, ".release.", ".relaxed."},
    {ORDERS, "red", replace, ".release", ".relaxed"},
    {ORDERS, "atom", replace, ".release", ".relaxed"},
    {ORDERS, "atom", replace, ".acquire", ".relaxed"},
    {ORDERS, "atom", replace, ".acq_rel", ".acquire"},
    {ORDERS, "atom", replace, ".acq_rel", ".release"},
    {ORDERS, "fence", replace, ".gpu", ".cta"},
    {ORDERS, "membar", replace, ".gl", ".cta"},
    {ORDERS, "atom.global", replace, "atom.", "atom.relaxed.cta."},
    {ORDERS, "atom", replace, ".gpu", ".cta"},
    {ORDERS, "red.global", replace, "red.", "red.relaxed.cta."},
    {ORDERS, "barrier.cluster.arrive", leave_out_meeting, NULL, NULL},
};

size_t mutation_count(void) {
  return sizeof ways / sizeof *ways;
}

mistake mutation_kind(size_t way) {
  return ways[way].kind;
}

char *mutate(const char *text, kl_ptx_place at, size_t way) {
  char instr[MOST], out[MOST], guard[64] = "";
  size_t end = at.end + strcspn(text + at.end, ";");
  if (end - at.begin >= MOST - 64) return NULL;
  snprintf(instr, sizeof instr, "%.*s", (int)(end - at.begin), text + at.begin);
  const char *op = instr;
  if (*op == '@') {
    size_t n = strcspn(op, " \t");
    snprintf(guard, sizeof guard, "%.*s", (int)n, op);
    op += n + strspn(op + n, " \t");
  }
  if (!begins(op, ways[way].op) || !ways[way].make(guard, op, ways[way].what, ways[way].by, out)) return NULL;
  size_t size = at.begin + strlen(out) + strlen(text + end);
  char *to = malloc(size + 1);
  snprintf(to, size + 1, "%.*s%s%s", (int)at.begin, text, out, text + end + 1);
  char *wait = ways[way].make == leave_out_meeting ? strstr(to + at.begin, "barrier.cluster.wait") : NULL;
  if (wait) memset(wait, ' ', strcspn(wait, ";") + 1);
  return to;
}
