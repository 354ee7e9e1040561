// map: the computation as a program, a lane per element.
#include "eval/lanes.h"
#include "eval/fold/sum.h"

typedef struct job {
  const kl_ev_program *program;
  uint32_t n;
  const kl_evval *operands; // written out
  const kl_evval *out;
  bool intervals;
  kl_ev_regs **regs;
  kl_iv_in *in;      // n per worker
  const void **data; // likewise
  _Atomic int status;
} job;

static void run_elements(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  job *job = arg;
  kl_iv_in *in = job->in + worker * job->n;
  const void **data = job->data + worker * job->n;
  kl_iv_out out = kl_ev_out(job->out, begin);
  for (uint32_t k = 0; k < job->n; k++) {
    in[k] = kl_ev_in(&job->operands[k], begin);
    data[k] = in[k].data;
  }
  kiln_status status =
      job->intervals ? kl_ev_program_run_iv(job->program, job->regs[worker], end - begin, in, &out)
                     : kl_ev_program_run(job->program, job->regs[worker], end - begin, data, (void *[]){out.data});
  if (status != KILN_OK) job->status = (int)status;
}

static kiln_status run(kl_ev *ev, job *job) {
  enum { GRAIN = 1 << 13 };
  int64_t count = job->out->shape->count;
  uint32_t workers = kl_ev_workers(ev, count, GRAIN);
  bool ok = true;
  job->regs = kl_alloc(ev->cx, sizeof *job->regs * workers);
  job->in = kl_alloc(ev->cx, sizeof *job->in * (workers * (size_t)job->n + 1));
  job->data = kl_alloc(ev->cx, sizeof *job->data * (workers * (size_t)job->n + 1));
  for (uint32_t k = 0; k < workers && ok; k++) ok = (job->regs[k] = kl_ev_regs_new(ev, job->program, count)) != NULL;
  if (ok) kl_ev_parallel(ev, count, GRAIN, run_elements, job);
  for (uint32_t k = 0; k < workers; k++) kl_ev_regs_free(ev, job->regs[k]);
  kl_free(ev->cx, job->data, sizeof *job->data * (workers * (size_t)job->n + 1));
  kl_free(ev->cx, job->in, sizeof *job->in * (workers * (size_t)job->n + 1));
  kl_free(ev->cx, job->regs, sizeof *job->regs * workers);
  return ok ? (kiln_status)job->status : KILN_E_MEMORY;
}

// Splats that are one value stay one; other values do by themselves.
static kiln_status expand(kl_ev *ev, const kl_evval *const *operands, uint32_t k, kl_evval *full) {
  for (uint32_t j = 0; j < k && operands[k]->splat; j++)
    if (kl_ev_same(operands[j], operands[k])) {
      full[k] = kl_ev_share(&full[j], operands[k]->shape);
      return KILN_OK;
    }
  return kl_ev_expand(ev, operands[k], &full[k]);
}

kiln_status kl_ev_map(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  uint32_t n = in->noperands;
  kl_ev_program *program = NULL;
  kl_evval *full = kl_alloc(ev->cx, sizeof *full * (n + 1u));
  kiln_status status = kl_ev_program_new(ev, in->called[0], &program);
  job job = {.program = program, .n = n, .operands = full, .out = out};
  for (uint32_t k = 0; k < n && status == KILN_OK; k++) status = expand(ev, operands, k, full);
  if (status == KILN_OK) {
    job.intervals = kl_lanes_want_intervals(ev, program, n, operands);
    status = kl_ev_new(ev, in->shape, false, job.intervals, out);
  }
  if (status == KILN_OK) status = run(ev, &job);
  if (status == KILN_OK) kl_ev_settle(ev, out);
  for (uint32_t k = 0; k < n; k++) kl_ev_free(ev, &full[k]);
  kl_free(ev->cx, full, sizeof *full * (n + 1u));
  kl_ev_program_free(ev, program);
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}
