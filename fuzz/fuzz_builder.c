// Builder calls from bytes, right ones and wrong ones.
//
// Each call is made from one piece of the input. A call that the builder refuses poisons it, so the builder is begun
// anew then and takes the calls before but that one: what comes after still gets its chance. What is finished must
// verify, print, parse again to the same text and hash, and pass through every rewriting step.
#include "ir/attrs.h"
#include "ir/rules/rules.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 24, MOST_CALLS = 64, MOST_OPERANDS = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const types[] = {
    "f32[]",
    "f32[2,3]",
    "s32[]",
    "s32[4]",
    "pred[]",
    "pred[2,3]",
    "bf16[8]",
    "c64[2]",
    "u32[2,3]",
    "u64[2]",
    "s4[6]",
    "token[]",
    "(f32[2,3], s32[])",
    "f32[2,3]{0,1}",
    "f32[0,3]",
    "f32[3]",
    "()",
    "f32[3,2]",
    "f32[<=4]",
    "f32[1,4,4,2]",
    "f32[2,2,2,3]",
    "f8e4m3fn[4]",
    "f64[2,2]",
    "f32[2",
    "((f32[2,3]), f32[2,3]{0,1})",
};
static const char *const texts[] = {
    "{{0,1},{2,3}}",
    "[2,2]<=[4]",
    "{}",
    "b01f_01io->b01f",
    "bf_io->bf",
    "{size=2x2 pad=0_1x0_0}",
    "{0,1}",
    "1",
    "true",
    "{replicated}",
    "\"a\"",
    "{a",
    "0_1x1_0_2",
    "{[0:1], [0:3:2]}",
};

// Parameters that a computation begins with: many to choose from, or what other ops want to call. By index of `types`,
// -1 ends.
static const int8_t signatures[][14] = {
    {1, 1, 0, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, -1}, {0, 0, -1}, {1, -1}, {12, -1}, {0, 0, 0, 0, -1}, {-1},
};

typedef struct player {
  kiln_context *cx;
  kiln_builder *b;
  bool open;
  uint32_t nvalues, ncomps;
  uint32_t begun; // values that the last beginning made
} player;

typedef struct bytes {
  const uint8_t *p, *end;
} bytes;

static unsigned take(bytes *s) {
  return s->p < s->end ? *s->p++ : 0;
}

static void fail(player *pl, const char *what, const char *a, const char *b) {
  fprintf(stderr, "%s\n--- first\n%s\n--- second\n%s\n", what, a ? a : "", b ? b : "");
  for (size_t i = 0; i < kiln_diagnostics_count(pl->cx); i++) fputs(kiln_diagnostics_get(pl->cx, i)->text, stderr);
  abort();
}

static kiln_type a_type(player *pl, unsigned k) {
  return kiln_type_text(pl->b, types[k % KL_COUNT(types)]);
}

static kiln_value a_value(const player *pl, unsigned k) {
  return pl->nvalues && k != 255 ? k % pl->nvalues : k;
}

// --- attributes ---------------------------------------------------------------------------------------------------

// Room for the lists of one call.
typedef struct lists {
  int64_t ints[16][4];
  kiln_slice_dim slices[16][4];
  kiln_pad_dim pads[16][4];
  kiln_window_dim windows[16][4];
  kiln_computation comps[16][4];
  const char *names[16][4];
  unsigned n;
} lists;

static int64_t small(unsigned k) {
  return (int64_t)(k % 8) - (k > 250);
}

// A value of the row's form, or now and then of another one.
static kiln_attr an_attr(player *pl, lists *l, const kl_attr_row *row, bytes *s) {
  unsigned i = l->n++ % 16, k = take(s), n = k % 4;
  kl_attr_type type = row->type;
  if (k > 250) type = (kl_attr_type)(take(s) % (KL_ATTR_SHAPE + 1));
  if (k > 240 && k <= 250) return KILN_RAW(row->key, texts[take(s) % KL_COUNT(texts)]);
  kiln_attr a = {.key = row->key, .count = n};
  for (unsigned d = 0; d < n; d++) {
    unsigned x = take(s), y = x / 8;
    l->ints[i][d] = small(x);
    l->slices[i][d] = (kiln_slice_dim){small(x) / 4, small(y), x > 200 ? 2 : 0};
    l->pads[i][d] = (kiln_pad_dim){small(x), small(y), x > 200};
    l->windows[i][d] = (kiln_window_dim){1 + small(x) / 2, small(y) / 2, x > 200, y > 20, 0, x > 220, x > 240};
    l->comps[i][d] = pl->ncomps ? x % pl->ncomps : x;
    l->names[i][d] = row->nnames ? row->names[x % row->nnames] : "x";
  }
  switch (type) {
  case KL_ATTR_DIMS:
  case KL_ATTR_INTS: a.form = KILN_ATTR_INTS, a.as.ints = l->ints[i]; return a;
  case KL_ATTR_PAIRS: a.form = KILN_ATTR_PAIRS, a.as.ints = l->ints[i]; return a;
  case KL_ATTR_INT:
  case KL_ATTR_BITS: return KILN_INT(row->key, small(k));
  case KL_ATTR_BOOL: return KILN_BOOL(row->key, k & 1);
  case KL_ATTR_REAL: return KILN_REAL(row->key, 1.0 / (double)k);
  case KL_ATTR_NAME: return KILN_NAME(row->key, row->nnames ? row->names[k % row->nnames] : "x");
  case KL_ATTR_NAMES: a.form = KILN_ATTR_NAMES, a.as.names = l->names[i]; return a;
  case KL_ATTR_QUOTED: return KILN_TEXT(row->key, k & 1 ? "f" : "\"\\\n\x7f\xc3\xa9");
  case KL_ATTR_SLICES: a.form = KILN_ATTR_SLICES, a.as.slices = l->slices[i]; return a;
  case KL_ATTR_PADDING: a.form = KILN_ATTR_PADDING, a.as.padding = l->pads[i]; return a;
  case KL_ATTR_WINDOW: a.form = KILN_ATTR_WINDOW, a.as.window = l->windows[i]; return a;
  case KL_ATTR_DIM_LABELS: return KILN_RAW(row->key, k & 1 ? "b01f_01io->b01f" : "bf_io->bf");
  case KL_ATTR_GROUPS: return KILN_RAW(row->key, texts[k % 3]);
  case KL_ATTR_COMP: return KILN_COMP(row->key, pl->ncomps ? k % pl->ncomps : k);
  case KL_ATTR_COMPS: a.form = KILN_ATTR_COMPS, a.as.comps = l->comps[i]; return a;
  case KL_ATTR_SHAPE: return KILN_TYPE(row->key, a_type(pl, k));
  }
  return a;
}

// --- calls --------------------------------------------------------------------------------------------------------

static void play_build(player *pl, bytes *s) {
  static const char *const halves[] = {"", "-start", "-update", "-done"};
  static lists l;
  kiln_attr attrs[40];
  kiln_value operands[MOST_OPERANDS];
  char opcode[64];
  kl_op op = (kl_op)(1 + take(s) % (KL_OP_COUNT - 1));
  unsigned how = take(s), n = 0, noperands = kl_op_table[op].arity >= 0 ? (unsigned)kl_op_table[op].arity : how % 4;
  snprintf(opcode, sizeof opcode, "%s%s", kl_op_name(op), how > 240 ? halves[how % 4] : "");
  if (how == 239) noperands++;
  if (noperands > MOST_OPERANDS) noperands = MOST_OPERANDS;
  for (unsigned i = 0; i < noperands; i++) operands[i] = a_value(pl, take(s));
  unsigned k = take(s);
  kiln_type type = k < 120 || !pl->nvalues ? KILN_NO_TYPE
                   : k < 180               ? kiln_type_of(pl->b, k % pl->nvalues)
                                           : a_type(pl, k);
  kl_attr_list rows = kl_op_attrs(op);
  l.n = 0;
  for (uint32_t i = 0; i < rows.n && n < 30; i++) {
    bool wanted = rows.p[i].need == KL_ATTR_MUST ? k != 7 : take(s) > 200;
    if (wanted) attrs[n++] = an_attr(pl, &l, &rows.p[i], s);
  }
  kiln_value after = a_value(pl, take(s));
  if (how % 16 == 5) {
    attrs[n] = (kiln_attr){.key = "", .form = KILN_ATTR_AFTER, .count = 1};
    attrs[n++].as.values = &after;
  }
  if (how % 16 == 6) attrs[n++] = KILN_RAW("sharding", texts[k % KL_COUNT(texts)]);
  if (how % 16 == 7) attrs[n++] = KILN_TEXT("backend_config", "{\"");
  kiln_build(pl->b, opcode, operands, noperands, type, attrs, n);
}

static void play_constant(player *pl, bytes *s) {
  static const uint8_t data[256] = {1, 0, 1};
  unsigned k = take(s), size = take(s);
  static const unsigned sizes[] = {4, 24, 4, 16, 1, 6, 16, 16, 24, 16, 3};
  if (k < 128) size = sizes[k % KL_COUNT(sizes)];
  kiln_build_constant(pl->b, a_type(pl, k < 128 ? k % (unsigned)KL_COUNT(sizes) : k), data, size, NULL);
}

static void play_end(player *pl, bytes *s) {
  unsigned k = take(s);
  kiln_builder_end(pl->b, a_value(pl, pl->nvalues ? pl->nvalues - 1 - k % 3 % pl->nvalues : k), k > 200);
}

// Returns the number of values that it makes.
static uint32_t begin(player *pl, const char *name, unsigned k) {
  const int8_t *types_of = signatures[k % KL_COUNT(signatures)];
  uint32_t n = 0;
  kiln_builder_begin(pl->b, name);
  for (; types_of[n] >= 0; n++) kiln_build_parameter(pl->b, n, a_type(pl, (unsigned)types_of[n]), NULL);
  return n;
}

static void play(player *pl, bytes *s) {
  static const char *const comps[] = {"a", "b", "c", "d", "two words"};
  unsigned k = take(s);
  switch (k % 16) {
  case 0: pl->begun = begin(pl, comps[k > 240 ? 4 : pl->ncomps % 4], k / 16); break;
  case 1: play_end(pl, s); break;
  case 2: kiln_build_parameter(pl->b, 13 + take(s) % 2, a_type(pl, take(s)), k > 128 ? "p" : NULL); break;
  case 3: play_constant(pl, s); break;
  case 4: kiln_build_scalar(pl->b, (kiln_dtype)(take(s) % (KILN_DTYPE_COUNT + 2)), take(s) / 4.0); break;
  case 5:
    kiln_build_annotate(pl->b, a_value(pl, take(s)), k & 16 ? "sharding" : "dimensions",
                        texts[take(s) % KL_COUNT(texts)]);
    break;
  case 6: kiln_builder_annotate_module(pl->b, k & 16 ? "num_partitions" : "x", texts[take(s) % KL_COUNT(texts)]); break;
  default: play_build(pl, s); break;
  }
}

// --- programs -----------------------------------------------------------------------------------------------------

// The builder tells by the values it gives out what has been accepted; the test keeps count of them by replaying.
static bool play_piece(player *pl, const uint8_t *p, size_t size) {
  bytes s = {p, p + size};
  size_t errors = pl->cx->errors;
  unsigned kind = *p % 16;
  play(pl, &s);
  if (pl->cx->errors != errors) return false;
  if (kind == 0) pl->open = true, pl->nvalues = pl->begun;
  if (kind == 1) pl->open = false, pl->ncomps++;
  if (kind == 2 || kind == 3 || kind == 4 || kind > 6) pl->nvalues++;
  return true;
}

static void replay(player *pl, const uint8_t *data, size_t size, const bool *is_dead, size_t n) {
  kiln_builder_destroy(&pl->b);
  kiln_diagnostics_clear(pl->cx);
  *pl = (player){.cx = pl->cx, .b = kiln_builder_create(pl->cx, "m")};
  pl->nvalues = begin(pl, "first", 0);
  pl->open = true;
  for (size_t i = 0; i < n; i++) {
    size_t at = i * PIECE, left = size - at;
    if (!is_dead[i] && !play_piece(pl, data + at, left < PIECE ? left : PIECE))
      fail(pl, "a call that was accepted is refused", NULL, NULL);
  }
}

// --- what is finished ---------------------------------------------------------------------------------------------

static void check_step(player *pl, const kiln_module *m,
                       kiln_status step(kiln_context *, const kiln_module *, kiln_module **), const uint8_t *hash) {
  kiln_module *out = NULL;
  uint8_t again[KILN_HASH_SIZE];
  kiln_status s = step(pl->cx, m, &out);
  if (s == KILN_E_UNSUPPORTED) return;
  if (s != KILN_OK || kl_verify(out) != KILN_OK) fail(pl, "a rewritten module does not verify", NULL, NULL);
  if (kiln_module_hash(pl->cx, out, again) != KILN_OK) fail(pl, "no hash", NULL, NULL);
  if (hash && memcmp(hash, again, sizeof again) != 0) fail(pl, "a rewritten module has another hash", NULL, NULL);
  kiln_module_destroy(&out);
}

static void check_module(player *pl, kiln_module *m) {
  char *text = NULL, *second = NULL;
  size_t size;
  uint8_t hash[KILN_HASH_SIZE], again[KILN_HASH_SIZE];
  kiln_module *parsed = NULL;
  if (kl_verify(m) != KILN_OK) fail(pl, "a finished module does not verify", NULL, NULL);
  kiln_module_print(pl->cx, m, &text, &size);
  if (kiln_module_parse(pl->cx, "printed", text, size, &parsed) != KILN_OK) fail(pl, "does not parse", text, NULL);
  kiln_module_print(pl->cx, parsed, &second, NULL);
  if (strcmp(text, second) != 0) fail(pl, "no fixed point", text, second);
  kiln_module_hash(pl->cx, m, hash);
  kiln_module_hash(pl->cx, parsed, again);
  if (memcmp(hash, again, sizeof hash) != 0) fail(pl, "another hash after parsing", text, NULL);
  check_step(pl, m, kiln_module_clone, hash);
  check_step(pl, m, kiln_module_remove_dead, hash);
  check_step(pl, m, kiln_module_inline, NULL);
  check_step(pl, m, kiln_module_flatten_tuples, NULL);
  kiln_text_free(pl->cx, text, size);
  kiln_text_free(pl->cx, second, strlen(second));
  kiln_module_destroy(&parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  player pl = {.cx = kiln_context_create(NULL)};
  bool is_dead[MOST_CALLS] = {0};
  size_t n = (size + PIECE - 1) / PIECE;
  if (n > MOST_CALLS) n = MOST_CALLS;
  replay(&pl, data, size, is_dead, 0);
  for (size_t i = 0; i < n; i++) {
    size_t at = i * PIECE, left = size - at;
    if (play_piece(&pl, data + at, left < PIECE ? left : PIECE)) continue;
    is_dead[i] = true;
    replay(&pl, data, size, is_dead, i);
  }
  if (!pl.open) kiln_builder_begin(pl.b, "last");
  if (!pl.open || !pl.nvalues) kiln_build_scalar(pl.b, KILN_F32, 1);
  kiln_builder_end(pl.b, pl.open && pl.nvalues ? pl.nvalues - 1 : 0, false);
  kiln_module *m = NULL;
  kiln_status s = kiln_builder_finish(pl.b, &m);
  if (s == KILN_OK)
    check_module(&pl, m);
  else if (m || kiln_diagnostics_count(pl.cx) == 0)
    fail(&pl, "a failed builder left a module or no finding", NULL, NULL);
  kiln_module_destroy(&m);
  kiln_builder_destroy(&pl.b);
  kiln_context_destroy(&pl.cx);
  return 0;
}
