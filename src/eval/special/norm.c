// batch-norm-training, -inference and -grad.
//
// Computed feature by feature on balls: a number in long double and a radius in which it lies on every device that
// takes the same steps in f32, or in f64 for f64, and adds in any order. Variances are right as mean of squares less
// square of mean, which costs more digits than the mean of squared distances that is the data.
#include "eval/special/num.h"

// A NaN of radius 0 is certain; an infinite radius is open.
typedef struct ball {
  long double v;
  double r;
} ball;

typedef struct norm_job {
  kl_op op;
  const kl_evval *in[5];
  kl_evval *out; // 3, or 1 for inference
  int64_t features, inner, outer;
  double epsilon, epsilon_error;
  double unit, least, most; // of the steps' type
} norm_job;

// --- balls --------------------------------------------------------------------------------------------------------

static bool certain_nan(ball x) {
  return isnan(x.v) && x.r == 0;
}

// One step's result, rounded.
static ball step(const norm_job *job, long double v, double r, ball x, ball y) {
  if (certain_nan(x) || certain_nan(y)) return (ball){NAN, 0};
  double size = fabs((double)v) + r;
  if (!(size < job->most)) return (ball){v, INFINITY};
  return (ball){v, (r + job->unit * size + job->least) * (1 + 0x1p-40)};
}
static ball add(const norm_job *job, ball x, ball y) {
  return step(job, x.v + y.v, x.r + y.r, x, y);
}
static ball sub(const norm_job *job, ball x, ball y) {
  return step(job, x.v - y.v, x.r + y.r, x, y);
}
static ball mul(const norm_job *job, ball x, ball y) {
  double a = fabs((double)x.v), b = fabs((double)y.v);
  return step(job, x.v * y.v, a * y.r + b * x.r + x.r * y.r, x, y);
}
static ball quotient(const norm_job *job, ball x, ball y) {
  double b = fabs((double)y.v), q = fabs((double)(x.v / y.v));
  return step(job, x.v / y.v, b > y.r ? (q * y.r + x.r) / (b - y.r) : INFINITY, x, y);
}
// Within two units in the last place.
static ball inverse_root(const norm_job *job, ball x) {
  double v = (double)(1 / sqrtl(x.v)), near = (double)x.v - x.r, far = (double)x.v + x.r;
  double r = near > 0 ? fmax(1 / sqrt(near) - v, v - 1 / sqrt(far)) : INFINITY;
  return step(job, 1 / sqrtl(x.v), r + 4 * job->unit * v, x, x);
}

// A sum in progress: its value, its radius without its own roundings, and the magnitudes these depend on.
typedef struct sum {
  long double v;
  double r, size, n;
  bool nan;
} sum;

static void sum_add(sum *s, ball x) {
  s->v += x.v;
  s->r += x.r;
  s->size += fabs((double)x.v) + x.r;
  s->n++;
  s->nan |= certain_nan(x);
}
static ball sum_end(const norm_job *job, const sum *s) {
  if (s->nan) return (ball){NAN, 0};
  double nu = s->n * job->unit;
  bool fits = nu < 0.5 && s->size < job->most;
  return (ball){s->v, fits ? (s->r + nu / (1 - nu) * s->size + s->n * job->least) * (1 + 0x1p-40) : INFINITY};
}

// --- elements -----------------------------------------------------------------------------------------------------

static ball get(const norm_job *job, int k, int64_t i) {
  const kl_evval *v = job->in[k];
  return (ball){num_get(v->shape->dtype, kl_ev_plane(v, KL_EV_DATA), v->splat ? 0 : i).re, num_slack(v, i)};
}

// Twice the radius: room for the same formula in another order of its steps.
static void put(const norm_job *job, int k, int64_t i, ball x) {
  num_put(&job->out[k], i, (num){x.v, 0}, 2 * x.r);
  if (certain_nan(x)) return;
  if (isnan(x.v) && !kl_ev_exact(&job->out[k])) ((uint8_t *)kl_ev_plane(&job->out[k], KL_EV_ANY))[i] = 1;
}

static int64_t element(const norm_job *job, int64_t feature, int64_t k) {
  return (k / job->inner * job->features + feature) * job->inner + k % job->inner;
}
static int64_t elements(const norm_job *job) {
  return job->outer * job->inner;
}
// Converted to the steps' type.
static ball element_count(const norm_job *job) {
  double n = (double)elements(job);
  return (ball){n, n * job->unit};
}

static ball widest(ball x, ball y) {
  return (ball){x.v, fmax(x.r, y.r + fabs((double)(x.v - y.v)))};
}

// --- the three ----------------------------------------------------------------------------------------------------

static ball variance_of(const norm_job *job, int64_t f, ball mean) {
  sum squares = {0};
  long double distances = 0;
  for (int64_t k = 0; k < elements(job); k++) {
    ball x = get(job, 0, element(job, f, k));
    long double d = x.v - mean.v;
    sum_add(&squares, mul(job, x, x));
    distances += d * d;
  }
  ball v = sub(job, quotient(job, sum_end(job, &squares), element_count(job)), mul(job, mean, mean));
  if (certain_nan(v)) return v;
  return widest((ball){distances / (long double)elements(job), 0}, v);
}

static ball scaled_root(const norm_job *job, ball variance) {
  return inverse_root(job, add(job, variance, (ball){job->epsilon, job->epsilon_error}));
}

// (x - mean) root scale + offset. As x (scale root) + (offset - mean scale root) it has the same errors of mean and
// root, which are common to both terms, but roundings of the terms themselves.
static void normalize(const norm_job *job, int64_t f, ball mean, ball variance) {
  ball scale = get(job, 1, f), offset = get(job, 2, f), root = scaled_root(job, variance);
  double factor = fabs((double)(scale.v * root.v)), shift = fabs((double)mean.v) * factor + fabs((double)offset.v);
  for (int64_t k = 0; k < elements(job); k++) {
    int64_t i = element(job, f, k);
    ball x = get(job, 0, i), y = add(job, mul(job, mul(job, sub(job, x, mean), root), scale), offset);
    if (!certain_nan(y)) y.r += 4 * job->unit * (fabs((double)x.v) * factor + shift);
    put(job, 0, i, y);
  }
}

static void train(const norm_job *job, int64_t f) {
  sum s = {0};
  for (int64_t k = 0; k < elements(job); k++) sum_add(&s, get(job, 0, element(job, f, k)));
  ball mean = quotient(job, sum_end(job, &s), element_count(job)), variance = variance_of(job, f, mean);
  put(job, 1, f, mean);
  put(job, 2, f, variance);
  normalize(job, f, mean, variance);
}

// With d = x - mean, v = variance + epsilon and sums over the feature:
//   offset's gradient  sum g            scale's gradient  (sum g d) / sqrt v
//   operand's gradient  scale / (n sqrt v) (n g - sum g - d (sum g d) / v)
static void differentiate(const norm_job *job, int64_t f) {
  ball scale = get(job, 1, f), mean = get(job, 2, f), variance = get(job, 3, f), root = scaled_root(job, variance);
  ball v = add(job, variance, (ball){job->epsilon, job->epsilon_error}), n = element_count(job);
  sum g = {0}, gd = {0};
  for (int64_t k = 0; k < elements(job); k++) {
    int64_t i = element(job, f, k);
    ball gradient = get(job, 4, i);
    sum_add(&g, gradient);
    sum_add(&gd, mul(job, gradient, sub(job, get(job, 0, i), mean)));
  }
  ball sum_g = sum_end(job, &g), sum_gd = sum_end(job, &gd);
  put(job, 1, f, mul(job, sum_gd, root));
  put(job, 2, f, sum_g);
  ball factor = quotient(job, mul(job, scale, root), n);
  for (int64_t k = 0; k < elements(job); k++) {
    int64_t i = element(job, f, k);
    ball d = sub(job, get(job, 0, i), mean), last = quotient(job, mul(job, sum_gd, d), v);
    ball inside = sub(job, sub(job, mul(job, get(job, 4, i), n), sum_g), last);
    put(job, 0, i, mul(job, factor, inside));
  }
}

static void norm_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const norm_job *job = arg;
  for (int64_t f = begin; f < end; f++) {
    if (job->op == KL_OP_BATCH_NORM_TRAINING) train(job, f);
    if (job->op == KL_OP_BATCH_NORM_INFERENCE) normalize(job, f, get(job, 3, f), get(job, 4, f));
    if (job->op == KL_OP_BATCH_NORM_GRAD) differentiate(job, f);
  }
}

kiln_status kl_ev_batch_norm(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                             kl_evval *out) {
  const kl_shape *s = operands[0]->shape;
  kl_dtype t = s->dtype, steps = t == KILN_F64 ? KILN_F64 : KILN_F32;
  int64_t at = in->more->feature_index;
  if (at < 0 || at >= s->rank || !kl_is_float(t)) return kl_ev_refuse(ev, in, "it has no such feature dimension");
  norm_job job = {.op = in->op, .out = out, .features = s->dims[at], .inner = 1, .outer = 1};
  for (uint32_t d = 0; d < s->rank; d++) *(d < at ? &job.outer : &job.inner) *= d == at ? 1 : s->dims[d];
  for (uint32_t k = 0; k < in->noperands && k < 5; k++) job.in[k] = operands[k];
  job.epsilon = kl_float_decode(t, kl_float_encode(t, in->more->epsilon));
  job.epsilon_error = fabs(job.epsilon - in->more->epsilon);
  job.unit = num_unit(steps);
  job.least = num_least(steps);
  job.most = kl_float_decode(steps, kl_float_next(steps, kl_float_encode(steps, INFINITY), false));
  size_t leaves = kl_shape_leaf_count(in->shape);
  kiln_status status = KILN_OK;
  for (size_t k = 0; k < leaves && status == KILN_OK; k++) {
    const kl_shape *leaf = kl_shape_leaf(in->shape, k);
    status = kl_ev_new(ev, leaf, false, ev->intervals && leaf->count > 0, &out[k]);
  }
  if (status == KILN_OK) kl_ev_parallel(ev, job.features, 1, norm_piece, &job);
  for (size_t k = 0; k < leaves; k++) {
    if (status == KILN_OK)
      num_close(ev, &out[k]);
    else
      kl_ev_free(ev, &out[k]);
  }
  return status;
}
