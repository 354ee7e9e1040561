// Modules with sparse tensors: from dense tensors to arrays and back, by the library's own storing.

#include "stored.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_ARRAYS = 300 };

struct stored_tensor {
  bool result;
  size_t leaf, first, n; // of `whole`; of the module over arrays: the first, and how many arrays
  kiln_sparse_layout *l;
  kiln_sparse_array arrays[MOST_ARRAYS];
  int64_t counts[MOST_ARRAYS];
};

bool stored_is(const kiln_module *m) {
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(m); i++)
    if (kiln_module_parameter_leaf_encoding(m, i)) return true;
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++)
    if (kiln_module_result_leaf_encoding(m, i)) return true;
  return false;
}

static kiln_status layout_of(kiln_context *cx, const kiln_module *m, bool result, size_t leaf,
                             kiln_sparse_layout **out) {
  const char *text = result ? kiln_module_result_leaf_encoding(m, leaf) : kiln_module_parameter_leaf_encoding(m, leaf);
  kiln_array_type t;
  kiln_encoding *e = NULL;
  if (result)
    kiln_module_result_leaf_type(m, leaf, &t);
  else
    kiln_module_parameter_leaf_type(m, leaf, &t);
  kiln_status st = kiln_encoding_parse(cx, "encoding", text, strlen(text), NULL, &e);
  if (st == KILN_OK) st = kiln_sparse_layout_create(cx, e, t.dtype, t.dims, out);
  kiln_encoding_destroy(&e);
  return st;
}

// --- room ----------------------------------------------------------------------------------------------------------

// "r0=1000": what --room says of a leaf, or -1. The last one counts.
static int64_t room_of(const args *a, bool result, size_t leaf) {
  int64_t room = -1;
  for (int i = 0; a && i < a->count; i++) {
    unsigned long long number_of, n;
    const char *value = a->all[i].value, *equals;
    char index[24] = "";
    if (a->all[i].option != O_ROOM || value[0] != (result ? 'r' : 'p')) continue;
    equals = strchr(value, '=');
    memcpy(index, value + 1, (size_t)(equals - value - 1));
    if (number(index, 0, UINT32_MAX, &number_of) && number(equals + 1, 0, INT64_MAX / 4, &n) && number_of == leaf)
      room = (int64_t)n;
  }
  return room;
}

// So many values need no more of the other arrays than as many coordinates, and intervals.
static int64_t length(const kiln_sparse_buffer *b, int64_t room) {
  int64_t n = room;
  if (room < 0 || b->count >= 0) return -1;
  if (b->role == KILN_SPARSE_POSITIONS) n = 2 * (room + 1);
  if (b->role == KILN_SPARSE_COORDINATES) n = room * b->columns;
  if (b->most >= 0 && n > b->most) n = b->most;
  return n * (b->batches > 0 ? b->batches : 1);
}

static void set_room(const kiln_sparse_layout *l, int64_t room, int64_t *counts) {
  kiln_sparse_buffer b;
  for (size_t i = 0; kiln_sparse_layout_buffer_at(l, i, &b) && i < MOST_ARRAYS; i++) counts[i] = length(&b, room);
}

static bool names_a_leaf(const kiln_module *m, const char *value) {
  unsigned long long leaf;
  const char *equals = strchr(value, '=');
  char index[24] = "";
  if (!equals || equals - value < 2 || (size_t)(equals - value) > sizeof index) return false;
  memcpy(index, value + 1, (size_t)(equals - value - 1));
  if (!number(index, 0, UINT32_MAX, &leaf)) return false;
  const char *encoding = value[0] == 'r'   ? kiln_module_result_leaf_encoding(m, leaf)
                         : value[0] == 'p' ? kiln_module_parameter_leaf_encoding(m, leaf)
                                           : NULL;
  return encoding && number(equals + 1, 0, INT64_MAX / 4, &leaf);
}

static int check_rooms(const args *a, const kiln_module *m) {
  for (int i = 0; i < a->count; i++)
    if (a->all[i].option == O_ROOM && !names_a_leaf(m, a->all[i].value))
      return bad_value(a, O_ROOM, a->all[i].value,
                       "expected pK=N or rK=N, K a parameter or result with an encoding, N values");
  return 0;
}

int room_slots(kiln_context *cx, const args *a, const kiln_module *m, kiln_sparse_slot **out, size_t *n) {
  size_t params = kiln_module_parameter_leaf_count(m), all = params + kiln_module_result_leaf_count(m);
  int status = check_rooms(a, m);
  *out = calloc(all + 1, sizeof **out);
  *n = 0;
  if (!*out) return out_of_memory((int64_t)all);
  for (size_t i = 0; !status && i < all; i++) {
    bool result = i >= params;
    int64_t room = room_of(a, result, result ? i - params : i), *counts = calloc(MOST_ARRAYS, sizeof *counts);
    kiln_sparse_layout *l = NULL;
    if (!counts) return out_of_memory(MOST_ARRAYS);
    if (room < 0) {
      free(counts);
      continue;
    }
    status = report(cx, layout_of(cx, m, result, result ? i - params : i, &l));
    if (!status) set_room(l, room, counts);
    (*out)[(*n)++] = (kiln_sparse_slot){result, result ? i - params : i, counts};
    kiln_sparse_layout_destroy(&l);
  }
  return status;
}

void room_free(kiln_sparse_slot *slots, size_t n) {
  for (size_t i = 0; i < n; i++) free((void *)slots[i].counts);
  free(slots);
}

// --- dense tensors -------------------------------------------------------------------------------------------------

static int64_t elements_of(const kiln_array_type *t) {
  int64_t n = 1;
  for (uint32_t d = 0; d < t->rank; d++) n = t->dims[d] ? n * t->dims[d] : 0;
  return n;
}

// Unpacked: one byte for elements of fewer bits.
static void *unpacked(const kiln_array_type *t, const void *buffer) {
  unsigned bits = kiln_dtype_bits(t->dtype);
  int64_t n = elements_of(t);
  uint8_t *out = malloc((size_t)kiln_npy_bytes(t) + 1);
  if (out && bits >= 8) memcpy(out, buffer, (size_t)kiln_npy_bytes(t));
  for (int64_t i = 0; out && bits < 8 && i < n; i++)
    out[i] = ((const uint8_t *)buffer)[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
  return out;
}

static void packed(const kiln_array_type *t, const uint8_t *elements, uint8_t *buffer) {
  unsigned bits = kiln_dtype_bits(t->dtype);
  int64_t n = elements_of(t);
  if (bits >= 8) {
    memcpy(buffer, elements, (size_t)kiln_npy_bytes(t));
    return;
  }
  memset(buffer, 0, ((size_t)n * bits + 7) / 8);
  for (int64_t i = 0; i < n; i++)
    buffer[i * bits / 8] |= (uint8_t)((elements[i] & ((1u << bits) - 1)) << (i * bits % 8));
}

static int allocate(size_t n, int64_t (*bytes)(const kiln_module *, size_t), const kiln_module *m, void ***out) {
  *out = calloc(n + 1, sizeof(void *));
  for (size_t i = 0; *out && i < n; i++) {
    int64_t b = bytes(m, i);
    (*out)[i] = malloc((size_t)(b < 0 ? 0 : b) + 16);
    if (!(*out)[i]) return out_of_memory(b);
  }
  return *out ? 0 : out_of_memory((int64_t)n);
}

int stored_open(kiln_context *cx, kiln_module *whole, uint64_t seed, stored *s) {
  *s = (stored){.whole = whole,
                .nparams = kiln_module_parameter_leaf_count(whole),
                .nresults = kiln_module_result_leaf_count(whole)};
  int status = allocate(s->nparams, kiln_module_parameter_leaf_bytes, whole, &s->params);
  if (!status) status = allocate(s->nresults, kiln_module_result_leaf_bytes, whole, &s->results);
  for (size_t i = 0; !status && i < s->nparams; i++) kiln_module_parameter_leaf_fill(whole, i, seed, s->params[i]);
  return status;
}

void stored_close(stored *s) {
  for (size_t i = 0; s->params && i < s->nparams; i++) free(s->params[i]);
  for (size_t i = 0; s->results && i < s->nresults; i++) free(s->results[i]);
  for (size_t i = 0; i < s->ntensors; i++) {
    stored_tensor *t = &s->tensors[i];
    for (size_t k = 0; k < t->n && !t->result; k++) free(t->arrays[k].data);
    kiln_sparse_layout_destroy(&t->l);
  }
  free(s->params);
  free(s->results);
  free(s->tensors);
  free(s->slots);
  kiln_module_destroy(&s->whole);
  *s = (stored){0};
}

// --- arrays --------------------------------------------------------------------------------------------------------

static kiln_status pack(kiln_context *cx, const kiln_sparse_layout *l, const void *elements,
                        kiln_sparse_array *arrays) {
  kiln_sparse_buffer b;
  kiln_status st = kiln_sparse_pack_dense(cx, l, elements, arrays);
  for (size_t i = 0; st == KILN_OK && kiln_sparse_layout_buffer_at(l, i, &b); i++) {
    arrays[i].data = calloc(((size_t)arrays[i].count * b.bits + 7) / 8 + 1, 1);
    if (!arrays[i].data) st = KILN_E_MEMORY;
  }
  return st == KILN_OK ? kiln_sparse_pack_dense(cx, l, elements, arrays) : st;
}

static int open_tensor(kiln_context *cx, stored *s, bool result, size_t leaf, size_t first, const args *a) {
  stored_tensor *t = &s->tensors[s->ntensors++];
  *t = (stored_tensor){.result = result, .leaf = leaf, .first = first};
  kiln_status st = layout_of(cx, s->whole, result, leaf, &t->l);
  if (st == KILN_OK && kiln_sparse_layout_buffer_count(t->l) >= MOST_ARRAYS) st = KILN_E_UNSUPPORTED;
  if (st != KILN_OK) return report(cx, st);
  t->n = kiln_sparse_layout_buffer_count(t->l);
  set_room(t->l, room_of(a, result, leaf), t->counts);
  if (!result) {
    kiln_array_type type;
    kiln_module_parameter_leaf_type(s->whole, leaf, &type);
    void *elements = unpacked(&type, s->params[leaf]);
    st = elements ? pack(cx, t->l, elements, t->arrays) : KILN_E_MEMORY;
    free(elements);
    for (size_t i = 0; i < t->n; i++)
      if (t->counts[i] < t->arrays[i].count) t->counts[i] = t->arrays[i].count;
    for (size_t i = 0; i < t->n; i++) t->counts[i] = t->arrays[i].count;
  }
  s->slots[s->ntensors - 1] = (kiln_sparse_slot){result, leaf, t->counts};
  return report(cx, st);
}

int stored_make(kiln_context *cx, stored *s, const args *a, kiln_module **out) {
  size_t all = s->nparams + s->nresults, at = 0;
  int status = check_rooms(a, s->whole);
  s->tensors = calloc(all + 1, sizeof *s->tensors);
  s->slots = calloc(all + 1, sizeof *s->slots);
  if (!s->tensors || !s->slots) return out_of_memory((int64_t)all);
  for (size_t i = 0; i < all && !status; i++) {
    bool result = i >= s->nparams;
    size_t leaf = result ? i - s->nparams : i, before = s->ntensors;
    const char *encoding =
        result ? kiln_module_result_leaf_encoding(s->whole, leaf) : kiln_module_parameter_leaf_encoding(s->whole, leaf);
    if (result && leaf == 0) at = 0;
    if (encoding) status = open_tensor(cx, s, result, leaf, at, a);
    at += s->ntensors > before ? s->tensors[before].n + result : 1;
  }
  return status ? status : report(cx, kiln_module_densify(cx, s->whole, s->slots, s->ntensors, out));
}

void stored_fill(const stored *s, const kiln_module *arrays, size_t leaf, void *buffer) {
  size_t at = 0, tensor = 0, bytes = (size_t)kiln_module_parameter_leaf_bytes(arrays, leaf);
  for (size_t i = 0; i < s->nparams; i++) {
    const stored_tensor *t = tensor < s->ntensors ? &s->tensors[tensor] : NULL;
    if (t && !t->result && t->leaf == i) {
      if (leaf >= at && leaf < at + t->n) memcpy(buffer, t->arrays[leaf - at].data, bytes);
      at += t->n;
      tensor++;
    } else if (at++ == leaf) {
      memcpy(buffer, s->params[i], bytes);
    }
  }
}

static int take_tensor(kiln_context *cx, stored *s, stored_tensor *t, void *const *results) {
  kiln_array_type type;
  kiln_sparse_buffer b;
  kiln_module_result_leaf_type(s->whole, t->leaf, &type);
  for (size_t i = 0; kiln_sparse_layout_buffer_at(t->l, i, &b); i++) {
    int64_t most = b.count >= 0 ? b.count : b.most;
    int64_t count = t->counts[i] >= 0 ? t->counts[i] : most * b.batches;
    t->arrays[i] = (kiln_sparse_array){results[t->first + i], count};
  }
  void *elements = malloc((size_t)kiln_npy_bytes(&type) + 1);
  kiln_status st = elements ? KILN_OK : KILN_E_MEMORY;
  if (st == KILN_OK) st = kiln_sparse_check_counts(cx, t->l, results[t->first + t->n], t->arrays);
  if (st == KILN_OK) st = kiln_sparse_unpack(cx, t->l, t->arrays, elements);
  if (st == KILN_OK) packed(&type, elements, s->results[t->leaf]);
  free(elements);
  return report(cx, st);
}

int stored_take(kiln_context *cx, stored *s, void *const *results) {
  size_t at = 0, tensor = 0;
  int status = 0;
  while (tensor < s->ntensors && !s->tensors[tensor].result) tensor++;
  for (size_t i = 0; i < s->nresults && !status; i++) {
    stored_tensor *t = tensor < s->ntensors ? &s->tensors[tensor] : NULL;
    if (t && t->leaf == i) {
      status = take_tensor(cx, s, t, results);
      at += t->n + 1;
      tensor++;
      continue;
    }
    int64_t bytes = kiln_module_result_leaf_bytes(s->whole, i);
    if (bytes > 0) memcpy(s->results[i], results[at], (size_t)bytes);
    at++;
  }
  return status;
}

// --- files ---------------------------------------------------------------------------------------------------------

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

bool stored_is_file(const char *path) {
  return ends_with(path, ".mtx") || ends_with(path, ".npz");
}

int stored_read(kiln_context *cx, const stored *s, size_t parameter, const char *path) {
  kiln_sparse_file kind = ends_with(path, ".mtx") ? KILN_SPARSE_MATRIX_MARKET : KILN_SPARSE_NPZ_COO;
  kiln_sparse_array arrays[MOST_ARRAYS] = {{0}};
  kiln_sparse_list *list = NULL;
  kiln_sparse_layout *l = NULL;
  kiln_sparse_buffer b;
  kiln_array_type t;
  size_t size;
  char *bytes = read_file(path, &size);
  if (!bytes) return EXIT_BAD_INPUT;
  kiln_module_parameter_leaf_type(s->whole, parameter, &t);
  kiln_status st = kiln_sparse_list_read(cx, kind, path, bytes, size, t.dtype, &list);
  free(bytes);
  if (st != KILN_OK) return report(cx, st);
  const kiln_sparse_list_info *info = kiln_sparse_list_describe(list);
  bool same = info->rank == t.rank;
  for (uint32_t d = 0; same && d < t.rank; d++) same = info->sizes[d] == t.dims[d];
  if (!same) {
    fprintf(stderr, "kiln: %s: expected a tensor of the dimensions of parameter %zu, found others\n", path, parameter);
    kiln_sparse_list_destroy(&list);
    return EXIT_BAD_INPUT;
  }
  st = layout_of(cx, s->whole, false, parameter, &l);
  if (st == KILN_OK) st = kiln_sparse_pack(cx, l, &info->entries, arrays);
  for (size_t i = 0; st == KILN_OK && kiln_sparse_layout_buffer_at(l, i, &b); i++)
    if (!(arrays[i].data = calloc(((size_t)arrays[i].count * b.bits + 7) / 8 + 1, 1))) st = KILN_E_MEMORY;
  if (st == KILN_OK) st = kiln_sparse_pack(cx, l, &info->entries, arrays);
  uint8_t *elements = malloc((size_t)kiln_npy_bytes(&t) + 1);
  if (st == KILN_OK) st = elements ? kiln_sparse_unpack(cx, l, arrays, elements) : KILN_E_MEMORY;
  if (st == KILN_OK) packed(&t, elements, s->params[parameter]);
  free(elements);
  for (size_t i = 0; i < MOST_ARRAYS; i++) free(arrays[i].data);
  kiln_sparse_layout_destroy(&l);
  kiln_sparse_list_destroy(&list);
  return report(cx, st);
}

int stored_write(kiln_context *cx, const stored *s, size_t result, const char *path) {
  kiln_sparse_array arrays[MOST_ARRAYS] = {{0}};
  kiln_sparse_list *list = NULL;
  kiln_sparse_layout *l = NULL;
  kiln_array_type t;
  char *bytes = NULL;
  size_t size = 0;
  kiln_module_result_leaf_type(s->whole, result, &t);
  void *elements = unpacked(&t, s->results[result]);
  kiln_status st = elements ? layout_of(cx, s->whole, true, result, &l) : KILN_E_MEMORY;
  if (st == KILN_OK) st = pack(cx, l, elements, arrays);
  if (st == KILN_OK) st = kiln_sparse_list_create(cx, l, arrays, &list);
  if (st == KILN_OK) st = kiln_sparse_list_write(cx, list, KILN_SPARSE_NPZ_COO, &bytes, &size);
  int status = report(cx, st);
  if (!status) {
    FILE *f = output_open(path);
    if (f) fwrite(bytes, 1, size, f);
    status = output_close(f, path);
  }
  kiln_text_free(cx, bytes, size);
  free(elements);
  for (size_t i = 0; i < MOST_ARRAYS; i++) free(arrays[i].data);
  kiln_sparse_layout_destroy(&l);
  kiln_sparse_list_destroy(&list);
  return status;
}
