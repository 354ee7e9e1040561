// Modules as graphs of elements; what integers stand in them.
#include "look.h"

static void look_at(const look *k) { // what no file knows is made from nothing, or nobody knows
  if (!look_move(k) && !look_fold(k) && !look_window(k) && !look_runtime(k)) look_other(k);
}

// --- modules ------------------------------------------------------------------------------------------------------

static uint32_t new_frame(model *s, kl_frame f) {
  if (s->nframes == s->most_frames) {
    s->most_frames = s->most_frames ? 2 * s->most_frames : 8;
    s->frames = realloc(s->frames, s->most_frames * sizeof *s->frames);
    s->value = realloc(s->value, s->most_frames * sizeof *s->value);
  }
  s->frames[s->nframes] = f;
  s->value[s->nframes] = calloc(f.comp->ninstr + 1, sizeof **s->value);
  return s->nframes++;
}

static model_value *new_value(model *s, uint32_t frame, uint32_t instr, uint32_t leaf, const kl_shape *shape) {
  if (s->nvalues == s->most_values) {
    s->most_values = s->most_values ? 2 * s->most_values : 32;
    s->values = realloc(s->values, s->most_values * sizeof *s->values);
  }
  if (!leaf) s->value[frame][instr] = s->nvalues;
  model_value *v = &s->values[s->nvalues++];
  *v = (model_value){frame, instr, leaf, shape, s->nnodes, kl_shape_is_array(shape) ? elements(shape) : 0};
  return v;
}

static void new_node(model *s, uint32_t owner) {
  if (s->nnodes + 1 >= s->most_nodes) {
    s->most_nodes = s->most_nodes ? 2 * s->most_nodes : 256;
    s->owner = realloc(s->owner, (size_t)s->most_nodes * sizeof *s->owner);
    s->begin = realloc(s->begin, (size_t)s->most_nodes * sizeof *s->begin);
  }
  s->owner[s->nnodes] = owner;
  s->begin[s->nnodes++] = s->nedges;
  s->begin[s->nnodes] = s->nedges;
}

static bool is_call(const kl_instr *in) {
  return in->op == KL_OP_FUSION || in->op == KL_OP_CALL;
}

static bool add_frame(model *s, uint32_t frame, int64_t most);

static bool add_instr(model *s, uint32_t frame, uint32_t instr, int64_t most) {
  const kl_comp *c = s->frames[frame].comp;
  const kl_instr *in = &c->instr[instr];
  if (is_call(in) && !add_frame(s, new_frame(s, (kl_frame){&s->m->comp[in->called[0]], frame, instr}), most))
    return false;
  uint32_t leaves = (uint32_t)kl_shape_leaf_count(in->shape);
  if (!leaves) s->value[frame][instr] = s->nvalues;
  for (uint32_t l = 0; l < leaves; l++) {
    const kl_shape *shape = kl_shape_leaf(in->shape, l);
    model_value *v = new_value(s, frame, instr, l, shape);
    uint32_t owner = s->nvalues - 1;
    int64_t x[RANK], at = 0;
    if (v->count > most - s->nnodes) return false;
    if (!kl_shape_is_array(shape) || !first(shape->rank, shape->dims, x)) continue;
    look k = {s, frame, c, in, l, shape, x};
    do {
      new_node(s, owner);
      if (is_call(in) || (in->op == KL_OP_PARAMETER && frame))
        edge(s, (model_edge){(uint32_t)in->number, l, at++});
      else
        look_at(&k);
      s->begin[s->nnodes] = s->nedges;
    } while (next(shape->rank, shape->dims, x));
  }
  return true;
}

static bool add_frame(model *s, uint32_t frame, int64_t most) {
  const kl_comp *c = s->frames[frame].comp;
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (!add_instr(s, frame, i, most)) return false;
  return true;
}

bool model_make(model *s, const kiln_module *m, const kl_comp *c, uint64_t seed, int64_t most) {
  *s = (model){.m = m, .seed = seed};
  return add_frame(s, new_frame(s, (kl_frame){c, 0, 0}), most);
}

void model_free(model *s) {
  for (uint32_t f = 0; f < s->nframes; f++) free(s->value[f]);
  free(s->value);
  free(s->frames);
  free(s->values);
  free(s->owner);
  free(s->begin);
  free(s->edges);
}

const model_value *model_find(const model *s, uint32_t frame, uint32_t instr, uint32_t leaf) {
  return &s->values[s->value[frame][instr] + leaf];
}

uint32_t model_callee(const model *s, uint32_t frame, uint32_t instr) {
  for (uint32_t f = frame + 1; f < s->nframes; f++)
    if (s->frames[f].parent == frame && s->frames[f].caller == instr) return f;
  return UINT32_MAX;
}

int64_t model_target(const model *s, int64_t node, const model_edge *e) {
  const model_value *v = &s->values[s->owner[node]];
  const kl_frame *f = &s->frames[v->frame];
  const kl_instr *in = &f->comp->instr[v->instr];
  if (is_call(in)) {
    uint32_t callee = model_callee(s, v->frame, v->instr);
    return model_find(s, callee, s->frames[callee].comp->root, e->leaf)->first + e->at;
  }
  if (in->op == KL_OP_PARAMETER)
    return model_find(s, f->parent, s->frames[f->parent].comp->instr[f->caller].operands[in->number], e->leaf)->first +
           e->at;
  return model_find(s, v->frame, in->operands[e->operand], e->leaf)->first + e->at;
}

static bool moves(const kl_instr *in, const kl_shape *from) {
  switch (in->op) {
  case KL_OP_PARAMETER:
  case KL_OP_FUSION:
  case KL_OP_CALL:
  case KL_OP_COPY:
  case KL_OP_BROADCAST:
  case KL_OP_RESHAPE:
  case KL_OP_TRANSPOSE:
  case KL_OP_SLICE:
  case KL_OP_REVERSE:
  case KL_OP_CONCATENATE:
  case KL_OP_PAD:
  case KL_OP_DYNAMIC_SLICE:
  case KL_OP_DYNAMIC_UPDATE_SLICE:
  case KL_OP_GATHER:
  case KL_OP_TUPLE:
  case KL_OP_OPT_BARRIER:
  case KL_OP_GET_TUPLE_ELEMENT: return true;
  case KL_OP_BITCAST: return from->dtype == in->shape->dtype;
  default: return false;
  }
}

// Small numbers, some outside of any array; unsigned ones wrap.
static int64_t content(const model *s, int64_t node, kl_dtype t) {
  int64_t v = (int64_t)(mix(s->seed ^ (uint64_t)node * 31) % 10) - 2;
  return v < 0 && !kl_is_signed(t) ? 100 : v;
}

int64_t model_integer(const model *s, int64_t node) {
  const model_value *v = &s->values[s->owner[node]];
  const kl_instr *in = &s->frames[v->frame].comp->instr[v->instr];
  int64_t at = node - v->first;
  if (in->op == KL_OP_CONSTANT && in->literal) {
    int64_t c = kl_int_decode(v->shape->dtype, kl_element_get(v->shape->dtype, in->literal[v->leaf].data, at, 0));
    return c < 0 && !kl_is_signed(v->shape->dtype) ? INT64_MAX : c;
  }
  if (in->op == KL_OP_IOTA) {
    for (uint32_t d = v->shape->rank; d-- > (uint32_t)in->number + 1;) at /= v->shape->dims[d];
    return at % v->shape->dims[in->number];
  }
  if (s->begin[node + 1] > s->begin[node]) {
    int64_t to = model_target(s, node, &s->edges[s->begin[node]]);
    if (moves(in, s->values[s->owner[to]].shape)) return model_integer(s, to);
  }
  return content(s, node, v->shape->dtype);
}
