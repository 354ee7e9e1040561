// Sort and topk: passes that merge runs of neighbours in pairs, from single elements up to whole lines.
//
// A pass is a launch, but for those of short runs, which a block does for its elements. In a pass each place of a pair
// of runs finds by a search of so many rounds as the runs are long how many of the elements before it are the left
// run's, and so which element comes there: from the left run, unless the right one's is less. So each place is stored
// once, equal elements keep their order, and no comparator, even one that is no order, leads out of the line: every
// place that it leads to is held to it. Which elements are compared is a matter of the line alone, not of the machine.

#include "lower/choose/staged/sort/sort.h"

typedef kl_sort sort;

// A pass over runs of so many elements.
typedef struct pass {
  const sort *x;
  int64_t run;
  const uint32_t *from; // slots; NULL: what the op is given
  const uint32_t *to;   // KL_NONE: nobody wants it
  kl_stage_body b;
  const kl_shape *out; // what is stored of each array
  const kl_aff *at;
  const kl_aff *index[KILN_MAX_RANK];
  uint32_t step; // the variable of searches, KL_NONE: of one round
  // Places are those of a line, or of a tile of one, so many, the first of which is `base`.
  const kl_aff *place, *base;
  int64_t span;
  const kl_aff *row; // of a tile: where it lies in arrays that a block shares, `from`; NULL: it is none
} pass;

// --- elements -------------------------------------------------------------------------------------------------------

static kiln_status fetch(pass *x, uint32_t array, const kl_aff *place, uint32_t *value) {
  const sort *s = x->x;
  const kl_aff *index[KILN_MAX_RANK];
  memcpy(index, x->index, s->shape->rank * sizeof *index);
  index[s->dim] = place;
  if (x->row) {
    const kl_aff *at = kl_aff_add(s->s->p, x->row, place);
    *value = kl_stage_load(&x->b, x->from[array], &at, KL_NONE, s->type[array]);
    return KILN_OK;
  }
  if (x->from) {
    *value = kl_stage_load(&x->b, x->from[array], index, x->b.keep, s->type[array]);
    return KILN_OK;
  }
  if (!s->less && array == 1) {
    *value = kl_stage_number(&x->b, KILN_S32, place);
    return KILN_OK;
  }
  return kl_walk_want(&x->b.walk, s->s->instr->operands[array], 0, x->b.keep, index, value);
}

// Those that are compared.
static kiln_status fetch_compared(pass *x, const kl_aff *place, uint32_t *values) {
  for (uint32_t i = 0; i < x->x->n; i++)
    if (x->x->compared[i]) KL_TRY(fetch(x, i, place, &values[i]));
  return KILN_OK;
}

// Is the element a to come before b?
static kiln_status less(pass *x, const uint32_t *a, const uint32_t *b, uint32_t *out) {
  const sort *s = x->x;
  if (!s->less) {
    kl_compare_type type = kl_is_float(*s->type) ? KL_CMP_TOTALORDER : KL_CMP_DEFAULT;
    *out = kl_stage_compare(&x->b, s->s->instr->more->largest ? KL_GT : KL_LT, type, *a, *b);
    return KILN_OK;
  }
  uint32_t *args = KL_NEW_N(s->s->c->arena, uint32_t, 2 * s->n);
  for (uint32_t i = 0; i < s->n; i++) {
    args[2 * i] = s->compared[i] ? a[i] : kl_write_scalar(&x->b.w, s->type[i], 0, 0);
    args[2 * i + 1] = s->compared[i] ? b[i] : args[2 * i];
  }
  return kl_walk_call(&x->b.walk, s->s->number, s->less, args, out);
}

// --- a search -------------------------------------------------------------------------------------------------------

// A place, by value, as one in the line or tile.
static const kl_aff *in_line(pass *x, uint32_t value) {
  return kl_write_index(&x->b.w, value, (kl_interval){0, x->span - 1});
}

// What a place knows of its pair of runs.
typedef struct pair {
  uint32_t left, right; // places where its runs begin
  uint32_t before;      // elements of the pair before the place
  uint32_t nright;      // of the right run
} pair;

static uint32_t whole(pass *x, int64_t n) {
  return kl_write_scalar(&x->b.w, x->x->integer, (uint64_t)n, 0);
}

static pair pair_of(pass *x) {
  const sort *s = x->x;
  kl_affs *p = s->s->p;
  const kl_aff *at = x->place;
  const kl_aff *left = kl_aff_mulc(p, kl_aff_floordivc(p, at, 2 * x->run), 2 * x->run);
  const kl_aff *right = kl_aff_addc(p, left, x->run);
  pair r = {.left = kl_stage_number(&x->b, s->integer, left), .right = kl_stage_number(&x->b, s->integer, right)};
  r.before = kl_stage_number(&x->b, s->integer, kl_aff_sub(p, at, left));
  r.nright = whole(x, x->run);
  if (s->length % (2 * x->run) == 0) return r;
  uint32_t rest =
      kl_stage_number(&x->b, s->integer, kl_aff_addc(p, kl_aff_mulc(p, kl_aff_add(p, right, x->base), -1), s->length));
  r.nright = kl_stage_op(&x->b, KL_OP_MAXIMUM, whole(x, 0), kl_stage_op(&x->b, KL_OP_MINIMUM, rest, r.nright));
  return r;
}

// The left run's place number n; and that of the right run which is before - n.
static const kl_aff *left_place(pass *x, const pair *r, uint32_t n) {
  return in_line(x, kl_stage_op(&x->b, KL_OP_ADD, r->left, n));
}
static const kl_aff *right_place(pass *x, const pair *r, uint32_t before, uint32_t n) {
  uint32_t end = kl_stage_op(&x->b, KL_OP_ADD, r->right, before);
  return in_line(x, kl_stage_op(&x->b, KL_OP_SUBTRACT, end, n));
}

// Between lo and hi lies how many elements of the left run come before the place.
static kiln_status narrow(pass *x, const pair *r, uint32_t *lo, uint32_t *hi) {
  uint32_t *a = KL_NEW_N(x->x->s->c->arena, uint32_t, 2 * x->x->n), *b = a + x->x->n, is_less;
  uint32_t one = whole(x, 1), sum = kl_stage_op(&x->b, KL_OP_ADD, *lo, *hi);
  uint32_t middle = kl_stage_op(&x->b, KL_OP_SHR_LOGICAL, sum, one);
  KL_TRY(fetch_compared(x, left_place(x, r, middle), a));
  uint32_t last = kl_stage_op(&x->b, KL_OP_SUBTRACT, r->before, one);
  KL_TRY(fetch_compared(x, right_place(x, r, last, middle), b));
  KL_TRY(less(x, b, a, &is_less));
  uint32_t open = kl_stage_compare(&x->b, KL_LT, KL_CMP_DEFAULT, *lo, *hi);
  uint32_t fewer = kl_stage_select(&x->b, is_less, *lo, kl_stage_op(&x->b, KL_OP_ADD, middle, one));
  *hi = kl_stage_select(&x->b, kl_stage_op(&x->b, KL_OP_AND, open, is_less), middle, *hi);
  *lo = kl_stage_select(&x->b, open, fewer, *lo);
  return KILN_OK;
}

static kiln_status search(pass *x, const pair *r, uint32_t *left) {
  uint32_t bounds[2], carried[2];
  bounds[0] = kl_stage_op(&x->b, KL_OP_MAXIMUM, whole(x, 0), kl_stage_op(&x->b, KL_OP_SUBTRACT, r->before, r->nright));
  bounds[1] = kl_stage_op(&x->b, KL_OP_MINIMUM, r->before, whole(x, x->run));
  if (x->step == KL_NONE) {
    KL_TRY(narrow(x, r, &bounds[0], &bounds[1]));
    *left = bounds[0];
    return KILN_OK;
  }
  kl_write_loop(&x->b.w, x->step, 2, bounds, (kl_vars[]){x->b.element, x->b.element}, carried);
  KL_TRY(narrow(x, r, &carried[0], &carried[1]));
  kl_write_loop_end(&x->b.w, carried);
  *left = carried[0];
  return KILN_OK;
}

// --- a pass ---------------------------------------------------------------------------------------------------------

// Of the left run's next element and the right one's that which comes to the place.
static kiln_status take(pass *x, const pair *r, uint32_t left, uint32_t *values) {
  const sort *s = x->x;
  kl_stage_body *b = &x->b;
  uint32_t *of_left = KL_NEW_N(s->s->c->arena, uint32_t, 2 * s->n), *of_right = of_left + s->n, is_less;
  const kl_aff *l = left_place(x, r, left), *h = right_place(x, r, r->before, left);
  KL_TRY(fetch_compared(x, l, of_left));
  KL_TRY(fetch_compared(x, h, of_right));
  KL_TRY(less(x, of_right, of_left, &is_less));
  uint32_t right = kl_stage_op(b, KL_OP_SUBTRACT, r->before, left);
  uint32_t there = kl_stage_compare(b, KL_LT, KL_CMP_DEFAULT, right, r->nright);
  uint32_t gone = kl_stage_compare(b, KL_GE, KL_CMP_DEFAULT, left, whole(x, x->run));
  uint32_t takes = kl_stage_op(b, KL_OP_OR, gone, kl_stage_op(b, KL_OP_AND, there, is_less));
  uint32_t from =
      kl_stage_select(b, takes, kl_stage_op(b, KL_OP_ADD, r->right, right), kl_stage_op(b, KL_OP_ADD, r->left, left));
  for (uint32_t i = 0; i < s->n; i++) {
    if (x->to[i] == KL_NONE && !(x->row && s->compared[i])) continue;
    if (s->compared[i])
      values[i] = kl_stage_select(b, takes, of_right[i], of_left[i]);
    else
      KL_TRY(fetch(x, i, in_line(x, from), &values[i]));
  }
  return KILN_OK;
}

static kiln_status write_pass(void *arg) {
  pass *x = arg;
  const sort *s = x->x;
  uint32_t *values = KL_NEW_N(s->s->c->arena, uint32_t, s->n), left;
  kl_stage_index(&x->b, x->out, x->at, x->index);
  x->place = x->index[s->dim];
  x->base = kl_aff_const(s->s->p, 0);
  x->span = s->length;
  if (s->length == 1) {
    for (uint32_t i = 0; i < s->n; i++) KL_TRY(fetch(x, i, x->index[s->dim], &values[i]));
  } else {
    pair r = pair_of(x);
    KL_TRY(search(x, &r, &left));
    KL_TRY(take(x, &r, left, values));
  }
  for (uint32_t i = 0; i < s->n; i++)
    if (x->to[i] != KL_NONE) KL_TRY(kl_stage_store(&x->b, x->to[i], x->index, values[i], x->b.keep));
  return KILN_OK;
}

// Of a search in runs of so many elements.
static int64_t rounds_of(int64_t run) {
  int64_t rounds = 1;
  for (; run > 1; run /= 2) rounds++;
  return rounds;
}

static kiln_status merge_runs(const sort *s, int64_t run, const uint32_t *from, const uint32_t *to,
                              const kl_shape *out) {
  pass x = {.x = s, .run = run, .from = from, .to = to, .out = out};
  int64_t rounds = rounds_of(run);
  x.at = kl_stage_elements(&x.b, s->s, out->count, 1);
  kl_new_var(s->s->p, &x.b.vars, KL_BIND_STEP, rounds, "round", &x.step);
  return kl_stage_write(&x.b, out->count, write_pass, &x);
}

// --- tiles ----------------------------------------------------------------------------------------------------------

// The first passes: a block has tiles of lines in shared memory, and merges runs in them until they are sorted.
enum { WARPS = 8, THREADS = 32 * WARPS, MOST_EACH = 4, MOST_LEVELS = 10 }; // 2^10 elements of a block

typedef struct tile {
  pass x;
  int64_t each, size;                           // elements of a thread; of a tile
  uint32_t step[MOST_LEVELS];                   // by level: the variable of its searches
  const kl_aff *element;                        // of the block
  const kl_aff *number, *outer, *inner, *which; // the line, of `numbers`; the tile of it
  int64_t numbers;
} tile;

// Elements of a thread, as far as a block has room for those of all arrays; 0: it has none for one.
static int64_t elements_of_thread(const sort *x) {
  int64_t bytes = 0, n = MOST_EACH;
  for (uint32_t i = 0; i < x->n; i++) bytes += kl_info(kl_in_bytes(x->type[i]))->bits / 8;
  while (n && bytes * n * THREADS > KL_MOST_SHARED) n /= 2;
  return n;
}

static void make_tile_vars(tile *t, const sort *s, int64_t each) {
  kl_affs *p = s->s->p;
  int64_t outer, inner;
  uint32_t var;
  t->each = each;
  for (t->size = 2; t->size < each * THREADS && t->size < s->length;) t->size *= 2;
  kl_stage_count_lines(s->shape, s->dim, &outer, &inner);
  bool beside = inner >= outer;
  int64_t rows = each * THREADS / t->size, tiles = (s->length - 1) / t->size + 1;
  t->numbers = beside ? inner : outer;
  t->x.b = (kl_stage_body){.s = s->s, .keep = KL_NONE};
  kl_var_list *vars = &t->x.b.vars;
  const kl_aff *block = kl_new_var(p, vars, KL_BIND_BLOCK, (t->numbers - 1) / rows + 1, "line", &var);
  const kl_aff *other = kl_new_var(p, vars, KL_BIND_BLOCK, beside ? outer : inner, beside ? "outer" : "inner", &var);
  t->which = kl_new_var(p, vars, KL_BIND_BLOCK, tiles, "tile", &var);
  const kl_aff *warp = kl_new_var(p, vars, KL_BIND_WARP, WARPS, "warp", &var);
  const kl_aff *at = kl_aff_addmul(p, kl_new_var(p, vars, KL_BIND_LANE, 32, "lane", &var), warp, 32);
  const kl_aff *v = kl_new_var(p, vars, KL_BIND_REG, each, "v", &var);
  if (var != KL_NONE) t->x.b.element = (kl_vars)1 << var;
  t->element = kl_aff_addmul(p, at, v, THREADS);
  t->number = kl_aff_addmul(p, kl_aff_floordivc(p, t->element, t->size), block, rows);
  t->outer = beside ? other : t->number;
  t->inner = beside ? t->number : other;
  for (uint32_t l = 0; (int64_t)1 << l < t->size; l++)
    kl_new_var(p, vars, KL_BIND_STEP, rounds_of((int64_t)1 << l), kl_strf(s->s->c->arena, "round%u", l), &t->step[l]);
}

static void find_place(tile *t) {
  pass *x = &t->x;
  const sort *s = x->x;
  kl_affs *p = s->s->p;
  kl_dom *d = x->b.w.body->domain;
  bool never;
  x->place = kl_dom_simplify(d, kl_aff_modc(p, t->element, t->size));
  x->row = kl_dom_simplify(d, kl_aff_sub(p, t->element, x->place));
  x->base = kl_aff_mulc(p, t->which, t->size);
  x->span = t->size;
  const kl_aff *i = kl_dom_simplify(d, kl_aff_add(p, x->base, x->place));
  x->b.keep = kl_guard_and(&x->b.w.guards, KL_NONE, kl_dom_simplify(d, t->number), 0, t->numbers - 1, &never);
  x->b.keep = kl_guard_and(&x->b.w.guards, x->b.keep, i, 0, s->length - 1, &never);
  kl_stage_line_index(p, s->shape, s->dim, t->outer, t->inner, i, x->index);
}

static kiln_status write_tile(void *arg) {
  tile *t = arg;
  pass *x = &t->x;
  const sort *s = x->x;
  kl_choosing *c = s->s->c;
  uint32_t *values = KL_NEW_N(c->arena, uint32_t, 2 * s->n), *slots = values + s->n, left;
  find_place(t);
  const kl_aff *row = x->row;
  x->row = NULL;
  for (uint32_t i = 0; i < s->n; i++) {
    slots[i] = kl_add_shared(c->cx, c->plan, &c->slots, kl_in_bytes(s->type[i]), t->each * THREADS);
    KL_TRY(fetch(x, i, x->index[s->dim], &values[i]));
  }
  x->row = row;
  x->from = slots;
  for (uint32_t l = 0; (int64_t)1 << l < t->size; l++) {
    for (uint32_t i = 0; i < s->n; i++) KL_TRY(kl_stage_store(&x->b, slots[i], &t->element, values[i], KL_NONE));
    x->run = (int64_t)1 << l;
    x->step = t->step[l];
    pair r = pair_of(x);
    KL_TRY(search(x, &r, &left));
    KL_TRY(take(x, &r, left, values));
  }
  bool never;
  int64_t kept = s->out->dims[s->dim];
  if (t->size >= s->length && kept < s->length) // of topk
    x->b.keep = kl_guard_and(&x->b.w.guards, x->b.keep, x->index[s->dim], 0, kept - 1, &never);
  for (uint32_t i = 0; i < s->n; i++)
    if (x->to[i] != KL_NONE) KL_TRY(kl_stage_store(&x->b, x->to[i], x->index, values[i], x->b.keep));
  return KILN_OK;
}

static kiln_status sort_tiles(tile *t, const sort *s, const uint32_t *to) {
  t->x.x = s;
  t->x.to = to;
  return kl_stage_write(&t->x.b, s->shape->count, write_tile, t);
}

// --- all passes -----------------------------------------------------------------------------------------------------

static void find_compared(sort *x) {
  x->compared = KL_NEW_N(x->s->c->arena, bool, x->n);
  *x->compared = !x->less;
  for (uint32_t i = 0; x->less && i < x->n; i++)
    for (uint32_t which = 0; which < 2; which++) {
      uint32_t p = x->less->params[2 * i + which];
      x->compared[i] |= x->less->root == p;
      for (uint32_t k = 0; k < x->less->ninstr; k++)
        for (uint32_t o = 0; o < x->less->instr[k].noperands; o++) x->compared[i] |= x->less->instr[k].operands[o] == p;
    }
}

void kl_sort_describe(const kl_stage *s, sort *x) {
  const kl_instr *in = s->instr;
  const kl_comp *comp = s->c->plan->comp;
  bool sorts = in->op == KL_OP_SORT;
  const kl_shape *whole = kl_operand(comp, in, 0)->shape;
  *x = (sort){.s = s, .n = sorts ? in->noperands : 2, .out = s->slot ? kl_stage_result(s, 0) : whole};
  kl_shape *shape = kl_in_order(s->c->plan->arena, x->out);
  shape->dims = whole->dims;
  shape->count = whole->count;
  x->shape = shape;
  x->dim = sorts ? (uint32_t)in->dims[0] : x->shape->rank - 1;
  x->length = x->shape->dims[x->dim];
  x->less = sorts ? &s->c->plan->module->comp[in->called[0]] : NULL;
  x->integer = kl_stage_integer(2 * x->length > 0 ? 4 * x->length : INT64_MAX);
  kl_dtype *type = KL_NEW_N(s->c->arena, kl_dtype, x->n);
  for (uint32_t i = 0; i < x->n; i++) type[i] = kl_shape_leaf(in->shape, i)->dtype;
  x->type = type;
  find_compared(x);
}

// Two arrays, in turns.
static uint32_t *new_arrays(const sort *x) {
  uint32_t *slots = KL_NEW_N(x->s->c->arena, uint32_t, x->n);
  for (uint32_t i = 0; i < x->n; i++)
    slots[i] = x->compared[i] || x->s->slot[i] != KL_NONE ? kl_stage_scratch(x->s, x->shape, x->type[i]) : KL_NONE;
  return slots;
}

// Sorts tiles of lines, if a block has them: *run elements; and all of it where that is a line.
static kiln_status sort_runs(const sort *x, kl_sorting way, uint32_t **to, int64_t *run) {
  int64_t each = x->s->c->plan->target.machine == KL_NVPTX && x->length > 1 ? elements_of_thread(x) : 0;
  *to = NULL;
  *run = 1;
  if (way == KL_MERGES_SORTED_TILES) {
    *to = new_arrays(x);
    return kl_sort_tiles_by_digits(x, *to, run);
  }
  if (!each) return KILN_OK;
  tile t = {.each = 0};
  make_tile_vars(&t, x, each);
  *run = t.size;
  *to = *run >= x->length ? x->s->slot : new_arrays(x);
  return sort_tiles(&t, x, *to);
}

kiln_status kl_stage_sort(const kl_stage *s, const char **why_not) {
  sort x;
  uint32_t *from, *to, *other = NULL;
  int64_t run;
  kl_sort_describe(s, &x);
  kl_sorting way = kl_sort_way(&x, s->c->sorting);
  if (way == KL_SORTS_BY_DIGITS) return kl_sort_by_digits(&x);
  KL_TRY(sort_runs(&x, way, &from, &run));
  if (from == s->slot) return KILN_OK;
  for (; 2 * run < x.length; run *= 2) {
    to = other ? other : new_arrays(&x);
    KL_TRY(merge_runs(&x, run, from, to, x.shape));
    other = from;
    from = to;
  }
  return merge_runs(&x, run, from, s->slot, x.out);
}
