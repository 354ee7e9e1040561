// Ops that move elements and do nothing else to indices.
#include "look.h"
#include "../places.h"

static void elementwise(const look *k) {
  for (uint32_t i = 0; i < k->in->noperands; i++) take_same(k, i); // rank 0: the index is not looked at
}

static void bitcast_convert(const look *k) {
  const kl_shape *from = shape_of(k, 0);
  int64_t y[RANK];
  memcpy(y, k->x, sizeof(int64_t) * k->out->rank);
  if (from->rank <= k->out->rank)
    take(k, 0, 0, y);
  else
    for (y[from->rank - 1] = 0; y[from->rank - 1] < from->dims[from->rank - 1]; y[from->rank - 1]++) take(k, 0, 0, y);
}

static void broadcast(const look *k) {
  int64_t y[RANK];
  for (uint32_t d = 0; d < k->in->ndims; d++) y[d] = k->x[k->in->dims[d]];
  take(k, 0, 0, y);
}

static void reshape(const look *k) {
  edge(k->s, (model_edge){0, 0, linear(k->out, k->x)});
}

// All elements of the operand that have a bit in common with this one.
static void bitcast(const look *k) {
  const kl_shape *from = shape_of(k, 0);
  int64_t wide = kl_info(k->out->dtype)->bits, narrow = kl_info(from->dtype)->bits, nto, nfrom, at = 0;
  int64_t *to = places_of(k->out, &nto), *of = places_of(from, &nfrom), x = linear(k->out, k->x);
  while (to[at] != x) at++;
  for (int64_t i = 0; i < nfrom; i++)
    if (of[i] >= 0 && i * narrow < (at + 1) * wide && (i + 1) * narrow > at * wide)
      edge(k->s, (model_edge){0, 0, of[i]});
  free(to);
  free(of);
}

static void transpose(const look *k) {
  int64_t y[RANK];
  for (uint32_t d = 0; d < k->in->ndims; d++) y[k->in->dims[d]] = k->x[d];
  take(k, 0, 0, y);
}

static void slice(const look *k) {
  int64_t y[RANK];
  for (uint32_t d = 0; d < k->out->rank; d++) y[d] = k->in->slice[d].start + k->x[d] * k->in->slice[d].stride;
  take(k, 0, 0, y);
}

static void reverse(const look *k) {
  int64_t y[RANK];
  memcpy(y, k->x, sizeof(int64_t) * k->out->rank);
  for (uint32_t i = 0; i < k->in->ndims; i++) {
    int64_t d = k->in->dims[i];
    y[d] = k->out->dims[d] - 1 - y[d];
  }
  take(k, 0, 0, y);
}

static void concatenate(const look *k) {
  int64_t y[RANK], d = k->in->dims[0];
  memcpy(y, k->x, sizeof(int64_t) * k->out->rank);
  for (uint32_t i = 0; i < k->in->noperands; i++) {
    int64_t n = shape_of(k, i)->dims[d];
    if (y[d] < n) {
      take(k, i, 0, y);
      return;
    }
    y[d] -= n;
  }
}

static void pad(const look *k) {
  const kl_shape *s = shape_of(k, 0);
  int64_t y[RANK];
  for (uint32_t d = 0; d < s->rank; d++) {
    kl_pad_dim p = k->in->pad[d];
    for (y[d] = 0; y[d] < s->dims[d] && p.low + y[d] * (p.interior + 1) != k->x[d];) y[d]++;
    if (y[d] < s->dims[d]) continue;
    take(k, 1, 0, NULL);
    return;
  }
  take(k, 0, 0, y);
}

static void tuple(const look *k) {
  uint32_t leaf = 0;
  for (uint32_t i = 0; i < k->in->noperands; i++)
    for (uint32_t l = 0; l < kl_shape_leaf_count(shape_of(k, i)); l++, leaf++)
      if (leaf == k->leaf) take(k, i, l, k->x);
}

static void get_tuple_element(const look *k) {
  uint32_t leaf = k->leaf;
  for (int64_t i = 0; i < k->in->number; i++) leaf += (uint32_t)kl_shape_leaf_count(shape_of(k, 0)->elems[i]);
  take(k, 0, leaf, k->x);
}

// The copy, the operand, a context; or the copy of these.
static void copy_async(const look *k) {
  uint32_t n = (uint32_t)kl_shape_leaf_count(shape_of(k, 0));
  if (k->leaf < n * (k->in->op == KL_OP_COPY_START ? 2 : 1)) take(k, 0, k->leaf % n, k->x);
}

bool look_move(const look *k) {
  switch (kl_op_table[k->in->op].kind) {
  case KL_KIND_CONVERT:
    if (k->in->op == KL_OP_BITCAST_CONVERT) {
      bitcast_convert(k);
      break;
    } // fallthrough
  case KL_KIND_UNARY:
  case KL_KIND_BINARY:
  case KL_KIND_SELECT:
  case KL_KIND_CLAMP:
  case KL_KIND_STOCHASTIC:
  case KL_KIND_MAP: elementwise(k); break;
  case KL_KIND_BROADCAST: broadcast(k); break;
  case KL_KIND_RESHAPE: reshape(k); break;
  case KL_KIND_BITCAST: bitcast(k); break;
  case KL_KIND_TRANSPOSE: transpose(k); break;
  case KL_KIND_SLICE: slice(k); break;
  case KL_KIND_REVERSE: reverse(k); break;
  case KL_KIND_CONCATENATE: concatenate(k); break;
  case KL_KIND_PAD: pad(k); break;
  case KL_KIND_DIMENSION_SIZE:
    if (k->in->op == KL_OP_SET_DIMENSION_SIZE) elementwise(k);
    break;
  case KL_KIND_TUPLE: tuple(k); break;
  case KL_KIND_GTE: get_tuple_element(k); break;
  case KL_KIND_WHILE: take_leaf(k); break; // after no round at all
  case KL_KIND_CONDITIONAL: take(k, 0, 0, NULL); break;
  case KL_KIND_FORWARD: take_leaf(k); break;
  case KL_KIND_COPY_ASYNC: copy_async(k); break;
  default: return false;
  }
  return true;
}
