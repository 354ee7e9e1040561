// Contents of modules: the canonical text, and its hash.
//
// Both come from one place. A computation is rewritten into its canonical order with numbers for names, and printed;
// computations that it calls appear as the digests of theirs, literals as the digests of their bits. The digest of that
// text stands for the computation, so equal computations become one. The module's digest is that of its header and of
// ENTRY's. The canonical text is printed from the same instructions, with callees numbered and literals written out.
//
// Left out, as it says nothing of what is computed: names, what is dead, and the attributes in `ignored`.
#include "ir/rewrite/canonical.h"
#include "ir/text/text.h"
#include "ir/shape.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const ignored[] = {
    "metadata",     "origin", "original_value", "statistics", "origin_recovery_table",
    "is_scheduled", // the order of the text is no part of the contents
    "kiln_text",    // made here
};

// --- SipHash ------------------------------------------------------------------------------------------------------

static uint64_t rotate(uint64_t x, int n) {
  return x << n | x >> (64 - n);
}

static void sip_rounds(uint64_t v[4], int n) {
  while (n-- > 0) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
  }
}

static uint64_t load_le(const unsigned char *p, size_t n) {
  uint64_t v = 0;
  for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
  return v;
}

static void sip_word(uint64_t v[4], uint64_t m) {
  v[3] ^= m;
  sip_rounds(v, 2);
  v[0] ^= m;
}

kl_digest kl_digest_of(const void *data, size_t n) {
  const unsigned char *p = data;
  uint64_t v[4] = {0x736f6d6570736575u, 0x646f72616e646f6du ^ 0xee, 0x6c7967656e657261u, 0x7465646279746573u};
  size_t whole = n / 8 * 8;
  kl_digest d;
  for (size_t i = 0; i < whole; i += 8) sip_word(v, load_le(p + i, 8));
  sip_word(v, (n ? load_le(p + whole, n - whole) : 0) | (uint64_t)n << 56);
  v[2] ^= 0xee;
  sip_rounds(v, 4);
  d.v[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
  v[1] ^= 0xdd;
  sip_rounds(v, 4);
  d.v[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
  return d;
}

static void put_digest(kl_sb *b, kl_digest d) {
  kl_sbf(b, "%016llx%016llx", (unsigned long long)d.v[0], (unsigned long long)d.v[1]);
}

// --- the canonicaliser --------------------------------------------------------------------------------------------

typedef struct canon {
  kl_ctx *cx;
  const kiln_module *from;
  kiln_module *m; // a fork: its computations become canonical, callees first
  kl_live live;
  kl_shape_map shapes;
  kl_digest *digest;          // by computation
  uint32_t *same;             // by computation: the first one with the same digest
  const kl_array ***literals; // by computation and canonical instruction
  kl_arena scratch;
  kiln_status status; // MEMORY once some text had no room
} canon;

static uint32_t symbol(canon *c, const char *prefix, uint32_t number) {
  char text[24];
  int n = snprintf(text, sizeof text, "%s%u", prefix, number);
  return kl_intern(&c->m->names, (kl_str){text, (size_t)n});
}

// Default layouts are as if not written.
static const kl_shape *plain_shape(kiln_module *m, const kl_shape *s) {
  const kl_layout *l = &s->layout;
  kl_shape own = *s;
  bool plain = l->present && kl_shape_is_array(s) && kl_shape_default_layout(s) && !l->index_type && !l->pointer_type &&
               !l->element_bits && !l->memory_space && l->tail_padding <= 1;
  if (plain) own.layout = (kl_layout){.tail_padding = 1};
  return kl_shape_intern(m, &own);
}

static const kl_shape *canonical_shape(canon *c, const kl_shape *s) {
  return kl_map_shape(&c->shapes, c->m, s, plain_shape);
}

static bool is_ignored(kl_str key) {
  for (size_t i = 0; i < KL_COUNT(ignored); i++)
    if (kl_str_is(key, ignored[i])) return true;
  return false;
}

static int compare_str(kl_str a, kl_str b) {
  int d = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
  return d ? d : a.n < b.n ? -1 : a.n > b.n;
}

typedef struct keyed {
  kl_raw_attr a;
  uint32_t place;
} keyed;

static int compare_keyed(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  int d = compare_str(x->a.key, y->a.key);
  return d ? d : x->place < y->place ? -1 : 1;
}

// Text attributes by key, those with equal keys in the order of the text; `more`, unless NULL, behind them.
static const kl_raw_attr *canonical_raw(canon *c, uint32_t *n, const kl_raw_attr *raw, const kl_raw_attr *more) {
  if (*n == 0 && !more) return NULL;
  kl_raw_attr *out = KL_NEW_N(&c->m->arena, kl_raw_attr, (size_t)*n + 1);
  keyed *list = kl_alloc(c->cx, *n * sizeof *list);
  uint32_t k = 0;
  for (uint32_t i = 0; i < *n; i++)
    if (!is_ignored(raw[i].key)) list[k++] = (keyed){raw[i], i};
  if (k > 1) qsort(list, k, sizeof *list, compare_keyed);
  for (uint32_t i = 0; i < k; i++) out[i] = list[i].a;
  kl_free(c->cx, list, *n * sizeof *list);
  if (more) out[k++] = *more;
  *n = k;
  return out;
}

// --- instructions -------------------------------------------------------------------------------------------------

// A list that says nothing is as if not written.
static bool says_something(const kl_instr *in, const kl_attr_row *r) {
  const kl_ints *list = kl_attr_at(in, r);
  if (r->type == KL_ATTR_INTS || r->type == KL_ATTR_PAIRS) return list->n > 0;
  if (r->type == KL_ATTR_WINDOW) return in->more->nwindow > 0;
  if (r->type != KL_ATTR_NAMES) return true;
  for (uint32_t i = 0; i < list->n; i++)
    if (list->p[i]) return true;
  return false;
}

static void canonical_attrs(canon *c, kl_instr *in) {
  kl_attr_list rows = kl_instr_attrs(in);
  for (uint32_t i = 0; i < rows.n; i++) {
    if (rows.p[i].need == KL_ATTR_MAY && !says_something(in, &rows.p[i])) in->given &= ~(1ull << i);
    if (rows.p[i].type != KL_ATTR_SHAPE) continue;
    kl_more *more = kl_arena_dup(&c->m->arena, in->more, sizeof *more);
    more->outfeed = canonical_shape(c, more->outfeed);
    in->more = more;
  }
}

static kl_str literal_text(canon *c, const kl_shape *s, const kl_array *literal) {
  size_t n = kl_shape_leaf_count(s);
  kl_digest *parts = kl_alloc(c->cx, n * sizeof *parts);
  for (size_t i = 0; i < n; i++) {
    const kl_shape *leaf = literal[i].shape;
    parts[i] = kl_digest_of(literal[i].data, (size_t)leaf->count * kl_info(leaf->dtype)->bytes);
  }
  kl_sb b;
  kl_sb_init(&b, c->cx);
  put_digest(&b, kl_digest_of(parts, n * sizeof *parts));
  kl_str text = kl_str_dup(&c->m->arena, (kl_str){b.p, b.n});
  kl_sb_free(&b);
  kl_free(c->cx, parts, n * sizeof *parts);
  return text;
}

// Without operands, control predecessors and name.
static kl_instr canonical_instr(canon *c, const kl_instr *from) {
  kl_instr in = *from;
  in.shape = canonical_shape(c, from->shape);
  canonical_attrs(c, &in);
  in.raw = canonical_raw(c, &in.nraw, from->raw, NULL);
  if (from->literal) in.raw_operands = literal_text(c, from->shape, from->literal);
  in.literal = NULL;
  return in;
}

// Is text[begin, end) an operand's name at the end of its piece? Its place among the operands, or UINT32_MAX.
static uint32_t named_operand(const canon *c, const kl_comp *from, const kl_instr *in, size_t begin, size_t end) {
  kl_str t = in->raw_operands;
  size_t next = end;
  if (!kl_is_name_start(t.p[begin]) && (begin == 0 || t.p[begin - 1] != '%')) return UINT32_MAX;
  while (next < t.n && t.p[next] == ' ') next++;
  if (next < t.n && t.p[next] != ',') return UINT32_MAX;
  for (uint32_t i = 0; i < in->noperands; i++) {
    kl_str name = kl_symbol_text(&c->from->names, from->instr[in->operands[i]].name);
    if (kl_str_eq(name, (kl_str){t.p + begin, end - begin})) return i;
  }
  return UINT32_MAX;
}

// Operands that are text, of an unknown op: numbers for the names among them.
static kl_str renamed_operands(canon *c, const kl_comp *from, const kl_instr *in, const uint32_t *number) {
  kl_str t = in->raw_operands;
  kl_sb b;
  size_t depth = 0;
  bool quoted = false;
  kl_sb_init(&b, c->cx);
  for (size_t i = 0; i < t.n;) {
    size_t end = i;
    while (!quoted && depth == 0 && end < t.n && kl_is_name_char(t.p[end])) end++;
    uint32_t operand = end > i ? named_operand(c, from, in, i, end) : UINT32_MAX;
    if (operand != UINT32_MAX) {
      kl_sbf(&b, b.n && b.p[b.n - 1] == '%' ? "%u" : "%%%u", number[in->operands[operand]]);
    } else {
      end += end == i;
      kl_sb_put(&b, (kl_str){t.p + i, end - i});
      quoted ^= t.p[i] == '"' && (i == 0 || t.p[i - 1] != '\\');
      if (!quoted && strchr("({[", t.p[i])) depth++;
      if (!quoted && depth && strchr(")}]", t.p[i])) depth--;
    }
    i = end;
  }
  kl_str out = kl_str_dup(&c->m->arena, (kl_str){b.p, b.n});
  kl_sb_free(&b);
  return out;
}

static int compare_numbers(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

// Each once.
static void sort_numbers(uint32_t *list, uint32_t *n) {
  uint32_t k = 0;
  if (*n > 1) qsort(list, *n, sizeof *list, compare_numbers);
  for (uint32_t i = 0; i < *n; i++)
    if (i == 0 || list[i] != list[i - 1]) list[k++] = list[i];
  *n = k;
}

static void link_instr(canon *c, const kl_comp *from, const uint32_t *number, uint32_t index, kl_instr *in) {
  uint32_t *operands = KL_NEW_N(&c->m->arena, uint32_t, in->noperands);
  uint32_t *control = KL_NEW_N(&c->m->arena, uint32_t, in->ncontrol);
  for (uint32_t i = 0; i < in->noperands; i++) operands[i] = number[in->operands[i]];
  for (uint32_t i = 0; i < in->ncontrol; i++) control[i] = number[in->control[i]];
  sort_numbers(control, &in->ncontrol);
  if (in->op == KL_OP_UNKNOWN && in->raw_operands.n) in->raw_operands = renamed_operands(c, from, in, number);
  in->operands = operands;
  in->control = control;
  in->name = symbol(c, "", index);
}

// --- printing -----------------------------------------------------------------------------------------------------

// Prints one computation by itself, with digests for the names of what it calls; the digest of the text.
static kl_digest print_alone(canon *c, const kl_comp *comp) {
  uint32_t ncalled = 0;
  for (uint32_t i = 0; i < comp->ninstr; i++) ncalled += comp->instr[i].ncalled;
  kl_comp *comps = kl_alloc(c->cx, (1 + (size_t)ncalled) * sizeof *comps);
  uint32_t *called = kl_alloc(c->cx, ncalled * sizeof *called), n = 0;
  const uint32_t **restore = kl_alloc(c->cx, comp->ninstr * sizeof *restore);
  for (uint32_t i = 0; i < comp->ninstr; i++) {
    kl_instr *in = &comp->instr[i];
    restore[i] = in->called;
    for (uint32_t k = 0; k < in->ncalled; k++) {
      comps[1 + n + k].name = c->m->comp[in->called[k]].name;
      called[n + k] = 1 + n + k;
    }
    if (in->ncalled) in->called = called + n;
    n += in->ncalled;
  }
  comps[0] = *comp;
  comps[0].name = symbol(c, "c", 0);
  kiln_module view = *c->m;
  view.comp = comps;
  view.ncomp = 1;
  view.entry = UINT32_MAX;
  view.nraw = 0;
  view.tables = (kl_str){0};
  view.name = 0;
  char *text = NULL;
  size_t size = 0;
  kiln_status status = kiln_module_print(c->cx, &view, &text, &size);
  if (status != KILN_OK) c->status = status;
  kl_digest digest = kl_digest_of(text, size);
  kiln_text_free(c->cx, text, size);
  for (uint32_t i = 0; i < comp->ninstr; i++) comp->instr[i].called = restore[i];
  kl_free(c->cx, restore, comp->ninstr * sizeof *restore);
  kl_free(c->cx, called, ncalled * sizeof *called);
  kl_free(c->cx, comps, (1 + (size_t)ncalled) * sizeof *comps);
  return digest;
}

typedef struct contents {
  canon *c;
  const kl_instr *instr; // canonical, by old index
} contents;

static uint64_t content(void *arg, uint32_t index) {
  contents *all = arg;
  kl_instr in = all->instr[index];
  in.noperands = in.ncontrol = 0;
  in.name = 0;
  kl_comp one = {.instr = &in, .ninstr = 1};
  return print_alone(all->c, &one).v[0];
}

// --- computations -------------------------------------------------------------------------------------------------

static void canonical_comp(canon *c, uint32_t index) {
  kl_comp *comp = &c->m->comp[index];
  kl_arena scratch;
  kl_arena_init(&scratch, c->cx);
  uint32_t *order = KL_NEW_N(&scratch, uint32_t, comp->ninstr), *number = KL_NEW_N(&scratch, uint32_t, comp->ninstr);
  const bool *live = c->live.instr[index];
  kl_instr *all = KL_NEW_N(&scratch, kl_instr, comp->ninstr);
  for (uint32_t i = 0; i < comp->ninstr; i++)
    if (live[i]) all[i] = canonical_instr(c, &comp->instr[i]);
  contents arg = {c, all};
  uint32_t n = kl_canonical_order(c->cx, comp, live, content, &arg, order);
  for (uint32_t i = 0; i < n; i++) number[order[i]] = i;
  kl_instr *instrs = KL_NEW_N(&c->m->arena, kl_instr, n);
  c->literals[index] = KL_NEW_N(&c->scratch, const kl_array *, n);
  for (uint32_t i = 0; i < n; i++) {
    instrs[i] = all[order[i]];
    link_instr(c, comp, number, i, &instrs[i]);
    c->literals[index][i] = comp->instr[order[i]].literal;
  }
  uint32_t *params = KL_NEW_N(&c->m->arena, uint32_t, comp->nparams);
  for (uint32_t i = 0; i < comp->nparams; i++) params[i] = i;
  comp->instr = instrs;
  comp->ninstr = n;
  comp->root = number[comp->root];
  comp->params = params;
  comp->raw = canonical_raw(c, &comp->nraw, comp->raw, NULL);
  kl_arena_free(&scratch);
}

// The digest becomes the computation's name.
static void digest_comp(canon *c, uint32_t index) {
  kl_comp *comp = &c->m->comp[index];
  c->digest[index] = print_alone(c, comp);
  kl_sb b;
  kl_sb_init(&b, c->cx);
  put_digest(&b, c->digest[index]);
  comp->name = kl_intern(&c->m->names, (kl_str){b.p, b.n});
  kl_sb_free(&b);
}

// Equal digests are equal names, so that names find the first computation of each kind.
static void find_same(canon *c) {
  uint32_t *first = KL_NEW_N(&c->scratch, uint32_t, c->m->names.strings.n);
  for (uint32_t i = 0; i < c->m->ncomp; i++) {
    if (!c->live.comp[i]) continue;
    uint32_t *f = &first[c->m->comp[i].name];
    if (*f == 0) *f = i + 1;
    c->same[i] = *f - 1;
  }
}

// --- modules ------------------------------------------------------------------------------------------------------

// Unknown ops may name computations in their text: then names count, and the whole text with them.
static void add_whole_text(canon *c) {
  char *text = NULL;
  size_t size = 0;
  kl_sb b;
  kiln_status status = kiln_module_print(c->cx, c->from, &text, &size);
  if (status != KILN_OK) {
    c->status = status;
    return;
  }
  kl_sb_init(&b, c->cx);
  kl_sb_putc(&b, '"');
  put_digest(&b, kl_digest_of(text, size));
  kl_sb_putc(&b, '"');
  kl_raw_attr a = {KL_STR("kiln_text"), kl_str_dup(&c->m->arena, (kl_str){b.p, b.n})};
  c->m->raw = canonical_raw(c, &c->m->nraw, c->m->raw, &a);
  kl_sb_free(&b);
  kiln_text_free(c->cx, text, size);
}

static void start(canon *c, kl_ctx *cx, const kiln_module *m) {
  *c = (canon){.cx = cx, .from = m, .m = kl_fork(cx, m)};
  kl_arena_init(&c->scratch, cx);
  c->live = kl_live_of(m, &c->scratch);
  c->digest = KL_NEW_N(&c->scratch, kl_digest, m->ncomp);
  c->same = KL_NEW_N(&c->scratch, uint32_t, m->ncomp);
  c->literals = KL_NEW_N(&c->scratch, const kl_array **, m->ncomp);
  c->m->raw = canonical_raw(c, &c->m->nraw, m->raw, NULL);
  c->m->tables = (kl_str){0};
  if (kl_text_names_computations(m, &c->scratch)) add_whole_text(c);
  for (uint32_t i = 0; i < m->ncomp; i++)
    if (c->live.comp[i]) {
      canonical_comp(c, i);
      digest_comp(c, i);
    }
  find_same(c);
}

static void finish(canon *c) {
  kl_shape_map_free(c->cx, &c->shapes);
  kl_arena_free(&c->scratch);
  kiln_module_destroy(&c->m);
}

static kiln_status compute_hash(kl_ctx *cx, const kiln_module *m, uint8_t out[KILN_HASH_SIZE]) {
  canon c;
  kl_sb b;
  start(&c, cx, m);
  kl_sb_init(&b, cx);
  for (uint32_t i = 0; i < c.m->nraw; i++) {
    kl_sb_put(&b, c.m->raw[i].key);
    kl_sb_putc(&b, '=');
    kl_sb_put(&b, c.m->raw[i].value);
    kl_sb_puts(&b, ", ");
  }
  put_digest(&b, c.digest[m->entry]);
  kl_digest d = kl_digest_of(b.p, b.n);
  for (int i = 0; i < KILN_HASH_SIZE && c.status == KILN_OK; i++) out[i] = (uint8_t)(d.v[i / 8] >> (8 * (i % 8)));
  kl_sb_free(&b);
  finish(&c);
  return c.status;
}

// Modules do not change, so the first hash is the only one. Threads that meet compute it each.
kiln_status kiln_module_hash(kiln_context *cx, const kiln_module *m, uint8_t out[KILN_HASH_SIZE]) {
  int unknown = KL_HASH_UNKNOWN;
  if (out) memset(out, 0, KILN_HASH_SIZE);
  KL_EXPECT(cx, m, out);
  if (atomic_load(&m->hash->state) == KL_HASH_KNOWN) {
    memcpy(out, m->hash->value, KILN_HASH_SIZE);
    return KILN_OK;
  }
  KL_TRY(compute_hash(cx, m, out));
  if (atomic_compare_exchange_strong(&m->hash->state, &unknown, KL_HASH_WRITING)) {
    memcpy(m->hash->value, out, KILN_HASH_SIZE);
    atomic_store(&m->hash->state, KL_HASH_KNOWN);
  }
  return KILN_OK;
}

kiln_status kl_module_same(kl_ctx *cx, const kiln_module *m, uint32_t *same) {
  canon c;
  start(&c, cx, m);
  for (uint32_t i = 0; i < m->ncomp; i++) same[i] = c.live.comp[i] ? c.same[i] : i;
  kiln_status st = c.status;
  finish(&c);
  return st;
}

uint64_t kl_module_names_hash(const kiln_module *m) {
  uint64_t h = atomic_load(&m->hash->names);
  if (h) return h;
  h = kl_hash(kiln_module_name(m), strlen(kiln_module_name(m)), m->entry);
  for (uint32_t c = 0; c < m->ncomp; c++) {
    kl_str name = kl_symbol_text(&m->names, m->comp[c].name);
    h = kl_hash(name.p, name.n, h);
    for (uint32_t i = 0; i < m->comp[c].ninstr; i++) {
      name = kl_symbol_text(&m->names, m->comp[c].instr[i].name);
      h = kl_hash(name.p, name.n, h);
    }
  }
  h += !h;
  atomic_store(&m->hash->names, h);
  return h;
}

// Callees before callers, in the order in which ENTRY comes to need them.
static void number_comps(canon *c, uint32_t *order, uint32_t *n) {
  typedef struct visit {
    uint32_t comp, instr, call;
  } visit;
  VEC(visit) stack = {0};
  bool *met = KL_NEW_N(&c->scratch, bool, c->m->ncomp);
  met[c->m->entry] = true;
  VEC_PUSH(c->cx, &stack, (visit){c->m->entry, 0, 0});
  while (stack.n) {
    visit *v = &stack.p[stack.n - 1];
    const kl_comp *comp = &c->m->comp[v->comp];
    while (v->instr < comp->ninstr && v->call == comp->instr[v->instr].ncalled) {
      v->instr++;
      v->call = 0;
    }
    if (v->instr == comp->ninstr) {
      order[(*n)++] = v->comp;
      stack.n--;
      continue;
    }
    uint32_t to = c->same[comp->instr[v->instr].called[v->call++]];
    if (!met[to]) VEC_PUSH(c->cx, &stack, (visit){to, 0, 0});
    met[to] = true;
  }
  VEC_FREE(c->cx, &stack);
}

// Numbers for digests, and literals as they are.
static void name_comps(canon *c, const uint32_t *order, uint32_t n, kl_comp *out) {
  uint32_t *number = KL_NEW_N(&c->scratch, uint32_t, c->m->ncomp);
  for (uint32_t i = 0; i < n; i++) number[order[i]] = i;
  for (uint32_t i = 0; i < n; i++) {
    out[i] = c->m->comp[order[i]];
    out[i].name = symbol(c, "c", i);
    for (uint32_t k = 0; k < out[i].ninstr; k++) {
      kl_instr *in = &out[i].instr[k];
      uint32_t *called = KL_NEW_N(&c->m->arena, uint32_t, in->ncalled);
      for (uint32_t j = 0; j < in->ncalled; j++) called[j] = number[c->same[in->called[j]]];
      in->called = called;
      in->literal = c->literals[order[i]][k];
      if (in->literal) in->raw_operands = (kl_str){0};
    }
  }
}

kiln_status kiln_module_canonical_print(kiln_context *cx, const kiln_module *m, char **text, size_t *size) {
  canon c;
  uint32_t n = 0;
  KL_CLEAR(text);
  KL_CLEAR(size);
  KL_EXPECT(cx, m, text);
  start(&c, cx, m);
  uint32_t *order = KL_NEW_N(&c.scratch, uint32_t, m->ncomp);
  number_comps(&c, order, &n);
  kl_comp *comps = KL_NEW_N(&c.m->arena, kl_comp, n);
  name_comps(&c, order, n, comps);
  c.m->comp = comps;
  c.m->ncomp = n;
  c.m->entry = n - 1;
  c.m->name = symbol(&c, "m", 0);
  kiln_status s = c.status == KILN_OK ? kiln_module_print(cx, c.m, text, size) : c.status;
  finish(&c);
  return s;
}
