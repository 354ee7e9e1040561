// Contractions as they stand in a computation.

#include "lower/choose/contract/contract.h"

#include "ir/attrs.h"

// --- order ----------------------------------------------------------------------------------------------------------

enum { LEAF = 256, MOST_LEAVES = 4096 };

// Long leaves: several leaves let several blocks share an element, and each costs an addition alone.
static int64_t leaf_of(int64_t length) {
  int64_t leaf = LEAF;
  while (leaf * MOST_LEAVES < length) leaf *= 2;
  return leaf;
}

static bool has_part(kl_dtype t, kl_dtype part) {
  return t == part || (kl_is_complex(t) && kl_info(t)->part == part);
}

// f64 where a part of an operand or the result is, or the algorithm asks for it; else f32.
static kl_dtype float_type(const kl_contraction *x) {
  int named = x->instr->more->algorithm;
  const char *name = named ? kl_dot_algorithm_names[named] : "";
  bool wide = has_part(x->term[0], KILN_F64) || has_part(x->term[1], KILN_F64) || has_part(x->shape->dtype, KILN_F64) ||
              strcmp(name, "dot_f64_f64_f64") == 0;
  return wide ? KILN_F64 : KILN_F32;
}

static void find_order(kl_contraction *x) {
  kl_dtype t = x->shape->dtype;
  x->complex = kl_is_complex(t);
  if (x->complex || kl_is_float(t)) {
    x->type = float_type(x);
    x->leaf = x->piece = leaf_of(x->length);
    return;
  }
  bool narrow = kl_is_int(t) && kl_info(t)->bits < 32;
  x->type = narrow ? (kl_is_signed(t) ? KILN_S32 : KILN_U32) : t;
  x->leaf = x->length ? x->length : 1;
  x->piece = t == KILN_PRED ? x->leaf : leaf_of(x->length);
}

// --- dot ------------------------------------------------------------------------------------------------------------

static int place_in(kl_ints list, int64_t d) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.p[i] == d) return (int)i;
  return -1;
}

static void add_digit(kl_contraction *x, uint32_t dim, int64_t extent, int64_t place, kl_contract_role role) {
  x->digits[x->ndigits++] = (kl_contract_digit){dim, extent, place, role};
}

static void find_dot(kl_contraction *x) {
  const kl_more *m = x->instr->more;
  uint32_t nleft = x->from[0]->rank - m->lhs_contracting.n;
  for (uint32_t d = 0; d < x->shape->rank; d++) {
    kl_contract_role role = d < m->lhs_batch.n ? KL_OF_BOTH : d < nleft ? KL_OF_LEFT : KL_OF_RIGHT;
    add_digit(x, d, x->shape->dims[d], 1, role);
  }
  for (uint32_t i = 0; i < m->lhs_contracting.n; i++) x->pairs[x->npairs++] = x->from[0]->dims[m->lhs_contracting.p[i]];
}

static void dot_index(const kl_contraction *x, int side, const kl_aff *const *index, const kl_aff *const *k,
                      const kl_aff **at) {
  const kl_more *m = x->instr->more;
  kl_ints batch = side ? m->rhs_batch : m->lhs_batch, sums = side ? m->rhs_contracting : m->lhs_contracting;
  uint32_t next = side ? x->from[0]->rank - m->lhs_contracting.n : batch.n;
  for (uint32_t d = 0; d < x->from[side]->rank; d++) {
    int b = place_in(batch, d), s = place_in(sums, d);
    at[d] = b >= 0 ? index[b] : s >= 0 ? k[s] : index[next++];
  }
}

// --- convolution ----------------------------------------------------------------------------------------------------

static int64_t groups_of(const kl_more *m) {
  int64_t n = m->batch_groups > 1 ? m->batch_groups : m->feature_groups;
  return n > 1 ? n : 1;
}

static void find_convolution(kl_contraction *x) {
  const kl_more *m = x->instr->more;
  const kl_conv_dims *c = m->conv;
  int64_t groups = groups_of(m), features = x->shape->dims[c->result_feature] / groups;
  for (uint32_t d = 0; d < x->shape->rank; d++) {
    if (d != (uint32_t)c->result_feature) {
      add_digit(x, d, x->shape->dims[d], 1, KL_OF_LEFT);
      continue;
    }
    if (groups > 1) add_digit(x, d, groups, features, KL_OF_BOTH);
    add_digit(x, d, features, 1, KL_OF_RIGHT);
  }
  for (uint32_t i = 0; i < c->n; i++) x->pairs[x->npairs++] = m->window[i].size;
  x->pairs[x->npairs++] = x->from[1]->dims[c->kernel_input];
}

// The place of an element that a window's element lies on, under constraints.
static const kl_aff *input_at(kl_affs *p, const kl_window_dim *w, const kl_aff *o, const kl_aff *k, int64_t extent,
                              uint32_t *n, kl_constraint *in) {
  const kl_aff *at = kl_aff_addmul(p, kl_aff_mulc(p, o, w->stride), k, w->window_dilation);
  at = kl_aff_addc(p, at, -w->low);
  int64_t apart = w->base_dilation > 1 ? w->base_dilation : 1;
  if (apart > 1) in[(*n)++] = (kl_constraint){kl_aff_modc(p, at, apart), {0, 0}};
  at = kl_aff_floordivc(p, at, apart);
  in[(*n)++] = (kl_constraint){at, {0, extent - 1}};
  return at;
}

static void convolution_index(kl_affs *p, const kl_contraction *x, int side, const kl_aff *const *index,
                              const kl_aff *const *k, const kl_aff **at, uint32_t *n, kl_constraint *in) {
  const kl_more *m = x->instr->more;
  const kl_conv_dims *c = m->conv;
  const kl_shape *s = x->from[side];
  for (uint32_t d = 0; d < s->rank; d++) at[d] = kl_aff_const(p, 0); // dims of no meaning
  if (side) {
    for (uint32_t i = 0; i < c->n; i++) {
      int64_t last = m->window[i].size - 1;
      at[c->kernel[i]] = m->window[i].reversed ? kl_aff_addc(p, kl_aff_mulc(p, k[i], -1), last) : k[i];
    }
    at[c->kernel_input] = k[c->n];
    at[c->kernel_output] = index[c->result_feature];
    return;
  }
  for (uint32_t i = 0; i < c->n; i++)
    at[c->input[i]] = input_at(p, &m->window[i], index[c->result[i]], k[i], s->dims[c->input[i]], n, in);
  int64_t groups = groups_of(m), features = x->shape->dims[c->result_feature] / groups;
  const kl_aff *group = kl_aff_floordivc(p, index[c->result_feature], features ? features : 1);
  bool by_batch = m->batch_groups > 1;
  at[c->input_batch] = index[c->result_batch];
  at[c->input_feature] = k[c->n];
  if (groups == 1) return;
  int64_t d = by_batch ? c->input_batch : c->input_feature;
  at[d] = kl_aff_addmul(p, at[d], group, by_batch ? s->dims[d] / groups : x->from[1]->dims[c->kernel_input]);
}

// --- both -----------------------------------------------------------------------------------------------------------

static bool is_contraction(const kl_instr *in) {
  return in->op == KL_OP_DOT || in->op == KL_OP_SCALED_DOT || in->op == KL_OP_CONVOLUTION;
}

// What an operand and its scale are multiplied in: the wider type of both, bf16 at least.
static kl_dtype scaled_type(kl_dtype a, kl_dtype b) {
  uint32_t x = kl_info(a)->bits, y = kl_info(b)->bits;
  if (x < 16 && y < 16) return KILN_BF16;
  if (a == b) return a;
  return x == y ? KILN_F32 : x > y ? a : b;
}

// Scales stand for blocks of the operand, or one for all of it.
static bool divides(const kl_shape *scale, const kl_shape *s) {
  if (scale->count == 1) return true;
  if (scale->rank != s->rank) return false;
  for (uint32_t d = 0; d < s->rank; d++)
    if (scale->dims[d] <= 0 || s->dims[d] % scale->dims[d]) return false;
  return true;
}

static const char *find_scales(const kl_comp *c, kl_contraction *x) {
  for (uint32_t i = 0; i < 2; i++) {
    x->scale[i] = kl_operand(c, x->instr, 2 + i)->shape;
    x->term[i] = scaled_type(x->from[i]->dtype, x->scale[i]->dtype);
    if (!divides(x->scale[i], x->from[i])) return "scales do not divide their operand";
  }
  return NULL;
}

void kl_pair_index(kl_affs *p, const kl_contraction *x, int side, const kl_aff *const *index, const kl_aff *r,
                   const kl_aff **at, uint32_t *n, kl_constraint *in) {
  const kl_aff *k[KL_MOST_DIGITS];
  int64_t place = 1;
  *n = 0;
  for (uint32_t i = x->npairs; i-- > 0;) {
    k[i] = kl_aff_floordivc(p, r, place);
    if (i) k[i] = kl_aff_modc(p, k[i], x->pairs[i] ? x->pairs[i] : 1);
    place *= x->pairs[i] ? x->pairs[i] : 1;
  }
  if (x->instr->op != KL_OP_CONVOLUTION)
    dot_index(x, side, index, k, at);
  else
    convolution_index(p, x, side, index, k, at, n, in);
}

static const char *describe(const kl_comp *c, uint32_t number, kl_contraction *x) {
  const kl_instr *in = &c->instr[number];
  *x = (kl_contraction){.instr = in, .number = number, .shape = in->shape};
  for (uint32_t i = 0; i < 2; i++) x->from[i] = kl_operand(c, in, i)->shape, x->term[i] = x->from[i]->dtype;
  bool dot = in->op != KL_OP_CONVOLUTION;
  const char *why_not = in->op == KL_OP_SCALED_DOT ? find_scales(c, x) : NULL;
  if (why_not) return why_not;
  if (!dot && (!in->more->conv || in->more->nwindow != in->more->conv->n)) return "window or dim_labels are missing";
  (dot ? find_dot : find_convolution)(x);
  x->length = 1;
  for (uint32_t i = 0; i < x->npairs; i++)
    if (__builtin_mul_overflow(x->length, x->pairs[i], &x->length)) x->length = INT64_MAX;
  for (uint32_t i = 0; i < x->npairs; i++)
    if (!x->pairs[i]) x->length = 0;
  find_order(x);
  return x->length == INT64_MAX ? "its sums have more than 2^63 terms" : NULL;
}

kiln_status kl_find_contractions(kl_choosing *c, kl_contractions *out, const char **why_not) {
  const kl_comp *comp = c->plan->comp;
  bool *used = KL_NEW_N(c->arena, bool, comp->ninstr + 1);
  used[comp->root] = true;
  for (uint32_t i = comp->ninstr; i-- > 0;)
    for (uint32_t k = 0; used[i] && k < comp->instr[i].noperands; k++) used[comp->instr[i].operands[k]] = true;
  *out = (kl_contractions){.p = KL_NEW_N(c->arena, kl_contraction, comp->ninstr + 1)};
  for (uint32_t i = 0; i < comp->ninstr && !*why_not; i++)
    if (used[i] && is_contraction(&comp->instr[i])) *why_not = describe(comp, i, &out->p[out->n++]);
  if (!out->n) *why_not = "";
  return KILN_OK;
}

// --- numbers --------------------------------------------------------------------------------------------------------

int64_t kl_contract_extent(const kl_contraction *x, kl_contract_role role) {
  int64_t n = 1;
  for (uint32_t i = 0; i < x->ndigits; i++)
    if (x->digits[i].role == role) n *= x->digits[i].extent;
  return n;
}

void kl_contract_element(kl_affs *p, const kl_contraction *x, const kl_aff *const number[KL_CONTRACT_ROLES],
                         const kl_aff **element) {
  int64_t place[KL_CONTRACT_ROLES], whole[KL_CONTRACT_ROLES];
  for (uint32_t d = 0; d < x->shape->rank; d++) element[d] = kl_aff_const(p, 0);
  for (int r = 0; r < KL_CONTRACT_ROLES; r++) place[r] = 1, whole[r] = kl_contract_extent(x, (kl_contract_role)r);
  for (uint32_t i = x->ndigits; i-- > 0;) {
    const kl_contract_digit *d = &x->digits[i];
    const kl_aff *e = kl_aff_floordivc(p, number[d->role], place[d->role]);
    place[d->role] *= d->extent;
    if (place[d->role] < whole[d->role]) e = kl_aff_modc(p, e, d->extent);
    element[d->dim] = kl_aff_addmul(p, element[d->dim], e, d->place);
  }
}
