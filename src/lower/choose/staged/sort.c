// Sort and topk: passes that merge runs of neighbours in pairs, from single elements up to whole lines.
//
// A pass is a launch, but for those of short runs, which a block does for its elements. In a pass each place of a pair
// of runs finds by a search of so many rounds as the runs are long how many of the elements before it are the left
// run's, and so which element comes there: from the left run, unless the right one's is less. So each place is stored
// once, equal elements keep their order, and no comparator, even one that is no order, leads out of the line: every
// place that it leads to is held to it. Which elements are compared is a matter of the line alone, not of the machine.

#include "lower/choose/staged/staged.h"

typedef struct sort {
  const kl_stage *s;
  uint32_t n;            // arrays
  const kl_dtype *type;  // of each
  const kl_shape *out;   // of what is left
  const kl_shape *shape; // and of whole lines, in the same order
  uint32_t dim;
  int64_t length;      // of a line
  const kl_comp *less; // NULL: topk
  bool *compared;      // by array: the comparator looks at it
  kl_dtype integer;    // of places
} sort;

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
} pass;

// --- elements -------------------------------------------------------------------------------------------------------

static kiln_status fetch(pass *x, uint32_t array, const kl_aff *place, uint32_t *value) {
  const sort *s = x->x;
  const kl_aff *index[KILN_MAX_RANK];
  memcpy(index, x->index, s->shape->rank * sizeof *index);
  index[s->dim] = place;
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

// A place of a line, by value, as one in it.
static const kl_aff *in_line(pass *x, uint32_t value) {
  return kl_write_index(&x->b.w, value, (kl_interval){0, x->x->length - 1});
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
  const kl_aff *at = x->index[s->dim];
  const kl_aff *left = kl_aff_mulc(p, kl_aff_floordivc(p, at, 2 * x->run), 2 * x->run);
  const kl_aff *right = kl_aff_addc(p, left, x->run);
  pair r = {.left = kl_stage_number(&x->b, s->integer, left), .right = kl_stage_number(&x->b, s->integer, right)};
  r.before = kl_stage_number(&x->b, s->integer, kl_aff_sub(p, at, left));
  r.nright = whole(x, x->run);
  if (s->length % (2 * x->run) == 0) return r;
  uint32_t rest = kl_stage_number(&x->b, s->integer, kl_aff_addc(p, kl_aff_mulc(p, right, -1), s->length));
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
    if (x->to[i] == KL_NONE) continue;
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

static kiln_status merge_runs(const sort *s, int64_t run, const uint32_t *from, const uint32_t *to,
                              const kl_shape *out) {
  pass x = {.x = s, .run = run, .from = from, .to = to, .out = out};
  int64_t rounds = 1;
  for (int64_t n = run; n > 1; n /= 2) rounds++;
  x.at = kl_stage_elements(&x.b, s->s, out->count, 1);
  kl_new_var(s->s->p, &x.b.vars, KL_BIND_STEP, rounds, "round", &x.step);
  return kl_stage_write(&x.b, out->count, write_pass, &x);
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

static void describe(const kl_stage *s, sort *x) {
  const kl_instr *in = s->instr;
  const kl_comp *comp = s->c->plan->comp;
  bool sorts = in->op == KL_OP_SORT;
  const kl_shape *whole = kl_operand(comp, in, 0)->shape;
  *x = (sort){.s = s, .n = sorts ? in->noperands : 2, .out = kl_stage_result(s, 0)};
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

kiln_status kl_stage_sort(const kl_stage *s, const char **why_not) {
  sort x;
  describe(s, &x);
  uint32_t *from = NULL, *to = NULL, *other = NULL;
  int64_t run = 1;
  for (; 2 * run < x.length; run *= 2) {
    to = other ? other : new_arrays(&x);
    KL_TRY(merge_runs(&x, run, from, to, x.shape));
    other = from;
    from = to;
  }
  return merge_runs(&x, run, from, s->slot, x.out);
}
