// Artifacts as their users see them, and what every launch checks of its buffers.

#include "jit/jit.h"

#include <stdlib.h>
#include <time.h>

// --- the artifact -------------------------------------------------------------------------------------------------

void kiln_artifact_destroy(kiln_artifact **a) {
  if (!a || !*a) return;
  kiln_artifact *own = *a;
  *a = NULL;
  if (atomic_fetch_sub(&own->refs, 1) > 1) return;
  kl_ctx *cx = own->cx;
  kiln_artifact_destroy(&own->less);
  kl_arena_free(&own->arena);
  kl_free(cx, own, sizeof *own);
  kiln_context_destroy(&cx);
}

kiln_artifact *kl_artifact_share(const kiln_artifact *a) {
  kiln_artifact *own = (kiln_artifact *)a; // the count alone changes
  atomic_fetch_add(&own->refs, 1);
  return own;
}

const char *kiln_artifact_text(const kiln_artifact *a, kiln_text_kind kind, size_t *size) {
  KL_CLEAR(size);
  if (!a || (unsigned)kind >= KL_COUNT(a->text)) return NULL;
  if (size) *size = a->text_size[kind];
  return a->text[kind];
}

const kiln_manifest *kiln_artifact_manifest(const kiln_artifact *a) {
  return a ? &a->manifest : NULL;
}

// --- loaded artifacts ---------------------------------------------------------------------------------------------

static size_t slot_count(const kiln_manifest *f) {
  return f->parameter_count + f->result_count;
}

void kl_program_make(kl_program *p, kl_arena *arena, const kiln_artifact *a) {
  *p = (kl_program){.manifest = a->manifest};
  kiln_manifest *f = &p->manifest;
  kiln_launch *launches = kl_arena_dup(arena, f->launches, f->launch_count * sizeof *launches);
  kiln_slot *slots = kl_arena_dup(arena, f->slots, slot_count(f) * sizeof *slots);
  kl_copy_description(arena, f, slots, slot_count(f));
  f->slots = slots;
  p->use = KL_NEW_N(arena, uint8_t, slot_count(f) + 1);
  for (size_t i = 0; i < f->launch_count; i++) {
    kiln_launch *l = &launches[i];
    l->kernel = kl_str_dup(arena, kl_str_of(l->kernel)).p;
    l->arguments = kl_arena_dup(arena, l->arguments, l->argument_count * sizeof *l->arguments);
    if (l->argument_count > p->most_arguments) p->most_arguments = l->argument_count;
    for (size_t k = 0; k < l->argument_count; k++)
      if (l->arguments[k].kind == KILN_ARGUMENT_SLOT)
        p->use[l->arguments[k].slot] |= l->arguments[k].output ? KL_SLOT_WRITTEN : KL_SLOT_READ;
  }
  for (size_t i = 0; i < f->step_count; i++)
    if (kl_reads_condition(&f->steps[i]) && f->steps[i].condition.kind == KILN_ARGUMENT_SLOT)
      p->use[f->steps[i].condition.slot] |= KL_SLOT_READ;
  f->launches = launches;
  f->steps = kl_arena_dup(arena, f->steps, f->step_count * sizeof *f->steps);
}

// --- buffers ------------------------------------------------------------------------------------------------------

#define SLOT_FMT   "%s %u"
#define SLOT(s)    (s)->result ? "result" : "parameter", (s)->index
#define ADDRESS(x) ((unsigned long long)(x))

// What the launch's buffer is known to hold.
static uint64_t bytes_of(const kl_program *p, const kiln_slot *s, int64_t count) {
  if (!s->counted) return (uint64_t)s->bytes;
  unsigned bits = kl_info(s->type.dtype)->bits;
  uint64_t n = (uint64_t)(count / p->manifest.count_unit) * (uint64_t)s->row;
  return bits < 8 ? (n * bits + 7) / 8 : n * (bits / 8);
}

static bool is_address(const kl_program *p, size_t slot, int64_t count) {
  const kiln_slot *s = &p->manifest.slots[slot];
  return p->use[slot] && !s->by_value && bytes_of(p, s, count) > 0;
}

bool kl_program_is_aligned(const kl_program *p, const uint64_t *parameters, const uint64_t *results, int64_t count) {
  const kiln_manifest *f = &p->manifest;
  for (size_t i = 0; i < slot_count(f); i++) {
    const kiln_slot *s = &f->slots[i];
    const uint64_t *at = i < f->parameter_count ? parameters : results;
    if (at && is_address(p, i, count) && at[i < f->parameter_count ? i : i - f->parameter_count] % s->align)
      return false;
  }
  return true;
}

static kiln_status check_address(kl_ctx *cx, const kiln_slot *s, uint64_t at) {
  if (at == 0) return kl_invalid(cx, KL_NOWHERE, SLOT_FMT ": expected an address, found 0", SLOT(s));
  if (at % s->align == 0) return KILN_OK;
  return kl_invalid(cx, KL_NOWHERE, SLOT_FMT ": expected an address that is a multiple of %u, found 0x%llx", SLOT(s),
                    s->align, ADDRESS(at));
}

static kiln_status check_overlap(kl_ctx *cx, const kl_program *p, const uint64_t *at, int64_t count, size_t i,
                                 size_t k) {
  const kiln_slot *a = &p->manifest.slots[i], *b = &p->manifest.slots[k];
  uint64_t an = bytes_of(p, a, count), bn = bytes_of(p, b, count);
  if (at[i] >= at[k] ? at[i] - at[k] >= bn : at[k] - at[i] >= an) return KILN_OK;
  if (a->alias == k && at[i] == at[k]) return KILN_OK;
  return kl_invalid(cx, KL_NOWHERE,
                    SLOT_FMT " at 0x%llx, %llu bytes: expected to overlap nothing%s, found it over " SLOT_FMT
                             " at 0x%llx, %llu bytes",
                    SLOT(a), ADDRESS(at[i]), ADDRESS(an), a->alias == k ? " in part" : "", SLOT(b), ADDRESS(at[k]),
                    ADDRESS(bn));
}

static kiln_status check_count(kl_ctx *cx, const kiln_manifest *f, int64_t count) {
  if (!f->counted)
    return count == 0 ? KILN_OK
                      : kl_invalid(cx, KL_NOWHERE, "count is %lld: expected 0, the artifact has a fixed element count",
                                   (long long)count);
  if (count >= 0 && count <= f->max_count && count % f->count_unit == 0) return KILN_OK;
  return kl_invalid(cx, KL_NOWHERE, "count is %lld: expected a multiple of %lld from 0 to %lld", (long long)count,
                    (long long)f->count_unit, (long long)f->max_count);
}

kiln_status kl_program_arrays(kl_ctx *cx, const kl_program *p, const void *parameters, const void *results) {
  const kiln_manifest *f = &p->manifest;
  bool fine = (parameters || !f->parameter_count) && (results || !f->result_count);
  return fine ? KILN_OK
              : kl_invalid(cx, KL_NOWHERE, "expected %zu parameters and %zu results, found no array of %s",
                           f->parameter_count, f->result_count,
                           parameters || !f->parameter_count ? "results" : "parameters");
}

typedef struct placed {
  uint64_t at;
  size_t slot;
} placed;

static int by_address(const void *a, const void *b) {
  const placed *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

// Does a result overlap anything but its partner? In order of addresses, what ends last tells. A partner at the same
// place stands for both.
static bool overlaps(const kl_program *p, placed *v, size_t n, int64_t count, const uint64_t *at) {
  const kiln_slot *slots = p->manifest.slots;
  uint64_t end_of_any = 0, end_of_results = 0;
  qsort(v, n, sizeof *v, by_address);
  for (size_t i = 0; i < n; i++) {
    const kiln_slot *s = &slots[v[i].slot];
    bool paired = s->alias != KILN_NO_SLOT && is_address(p, s->alias, count) && at[s->alias] == v[i].at;
    uint64_t end = v[i].at + bytes_of(p, s, count);
    if (paired && s->alias < v[i].slot) continue;
    if (v[i].at < (s->result || paired ? end_of_any : end_of_results)) return true;
    if (end > end_of_any) end_of_any = end;
    if ((s->result || paired) && end > end_of_results) end_of_results = end;
  }
  return false;
}

enum { FEW = 64 };

static bool any_overlap(kl_ctx *cx, const kl_program *p, const uint64_t *at, int64_t count) {
  placed few[FEW], *v = few;
  size_t all = slot_count(&p->manifest), n = 0;
  if (all > FEW) v = kl_alloc(cx, all * sizeof *v);
  for (size_t i = 0; i < all; i++)
    if (is_address(p, i, count)) v[n++] = (placed){at[i], i};
  bool found = overlaps(p, v, n, count, at);
  if (v != few) kl_free(cx, v, all * sizeof *v);
  return found;
}

kiln_status kl_program_check_scratch(kl_ctx *cx, const kl_program *p, uint64_t scratch) {
  const kiln_manifest *f = &p->manifest;
  if (!f->scratch_bytes || (scratch && scratch % f->scratch_align == 0)) return KILN_OK;
  return kl_invalid(cx, KL_NOWHERE, "scratch: expected an address that is a multiple of %u, found 0x%llx",
                    f->scratch_align, ADDRESS(scratch));
}

// Where something overlaps, the first result by number that does is named, and what it overlaps.
kiln_status kl_program_check(kl_ctx *cx, const kl_program *p, const uint64_t *at, int64_t count, uint64_t scratch) {
  const kiln_manifest *f = &p->manifest;
  size_t n = slot_count(f);
  KL_TRY(check_count(cx, f, count));
  for (size_t i = 0; i < n; i++)
    if (is_address(p, i, count)) KL_TRY(check_address(cx, &f->slots[i], at[i]));
  bool found = any_overlap(cx, p, at, count);
  for (size_t i = f->parameter_count; found && i < n; i++)
    for (size_t k = 0; k < i && is_address(p, i, count); k++)
      if (is_address(p, k, count)) KL_TRY(check_overlap(cx, p, at, count, i, k));
  return kl_program_check_scratch(cx, p, scratch);
}

uint64_t kl_program_argument(const kiln_argument *a, const uint64_t *at, int64_t count, uint64_t scratch) {
  switch (a->kind) {
  case KILN_ARGUMENT_SLOT: return at[a->slot];
  case KILN_ARGUMENT_SCRATCH: return scratch + a->offset;
  default: return (uint64_t)count;
  }
}

bool kl_program_launches(const kl_program *p, const kiln_launch *l, const uint64_t *at) {
  bool in_place = true;
  for (size_t i = 0; l->when != KILN_WHEN_ALWAYS && i < l->argument_count; i++) {
    const kiln_argument *a = &l->arguments[i];
    if (a->kind != KILN_ARGUMENT_SLOT || !a->output) continue;
    uint32_t alias = p->manifest.slots[a->slot].alias;
    if (alias != KILN_NO_SLOT && at[alias] != at[a->slot]) in_place = false;
  }
  return l->when == KILN_WHEN_ALWAYS || in_place == (l->when == KILN_WHEN_IN_PLACE);
}

uint32_t kl_program_grid(const kl_program *p, const kiln_launch *l, int64_t count) {
  if (!p->manifest.counted) return l->grid[0];
  if (!l->count_whole) return count ? l->grid[0] : 0;
  int64_t rest = (count % l->count_whole + l->count_rest - 1) / l->count_rest;
  return (uint32_t)(count / l->count_whole + rest) * l->count_blocks;
}

double kl_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// --- running --------------------------------------------------------------------------------------------------------

static kiln_status run_launches(const kl_program *p, const uint64_t *at, size_t first, size_t count,
                                const kl_runner *r) {
  for (size_t i = first; i < first + count; i++)
    if (kl_program_launches(p, &p->manifest.launches[i], at)) KL_TRY(r->launch(r->user, i));
  return KILN_OK;
}

static bool is_passed(const kl_program *p, const kiln_step *s) {
  return s->condition.kind == KILN_ARGUMENT_SLOT && p->manifest.slots[s->condition.slot].by_value;
}

// As a number: of a truth 1 or 0.
static int32_t number_of(const kiln_step *s, const void *bytes) {
  int32_t number;
  if (s->condition_bytes == 1) return *(const uint8_t *)bytes != 0;
  memcpy(&number, bytes, sizeof number);
  return number;
}

static kiln_status read_condition(const kl_program *p, const uint64_t *at, const kiln_step *s, const kl_runner *r,
                                  int32_t *out) {
  char bytes[sizeof(int32_t)];
  bool passed = is_passed(p, s); // in the low bytes
  if (!passed) KL_TRY(r->read(r->user, &s->condition, bytes, s->condition_bytes));
  *out = number_of(s, passed ? (const void *)&at[s->condition.slot] : bytes);
  return KILN_OK;
}

static kiln_status run_steps(const kl_program *p, const uint64_t *at, size_t first, size_t count, const kl_runner *r);

static kiln_status run_while(const kl_program *p, const uint64_t *at, size_t i, const kl_runner *r) {
  const kiln_step *s = &p->manifest.steps[i];
  for (int32_t again = 1; again;) {
    KL_TRY(run_steps(p, at, i + 1, s->count, r));
    KL_TRY(read_condition(p, at, s, r, &again));
    if (again) KL_TRY(run_steps(p, at, i + 1 + s->count, s->body, r));
  }
  return KILN_OK;
}

// The case that a number means, or a truth.
static size_t case_of(const kl_program *p, size_t i, int32_t number) {
  const kiln_step *steps = p->manifest.steps, *s = &steps[i];
  size_t which = s->condition_bytes == 1 ? !number : (size_t)(uint32_t)number; // of a negative number: too large
  if (which >= s->count) which = s->count - 1;
  for (i++; which-- > 0;) i += 1 + steps[i].body;
  return i;
}

bool kl_program_knows(const kl_program *p, const uint64_t *at, size_t i, size_t *taken) {
  const kiln_step *s = &p->manifest.steps[i];
  if (!is_passed(p, s)) return false;
  *taken = case_of(p, i, number_of(s, &at[s->condition.slot]));
  return true;
}

static kiln_status run_branch(const kl_program *p, const uint64_t *at, size_t i, const kl_runner *r) {
  int32_t number = 0;
  KL_TRY(read_condition(p, at, &p->manifest.steps[i], r, &number));
  i = case_of(p, i, number);
  return run_steps(p, at, i + 1, p->manifest.steps[i].body, r);
}

// They nest as deep as computations do.
static kiln_status run_steps(const kl_program *p, const uint64_t *at, size_t first, size_t count, const kl_runner *r) {
  for (size_t i = first; i < first + count; i++) {
    const kiln_step *s = &p->manifest.steps[i];
    switch (s->kind) {
    case KILN_STEP_LAUNCHES: KL_TRY(run_launches(p, at, s->first, s->count, r)); continue;
    case KILN_STEP_WHILE: KL_TRY(run_while(p, at, i, r)); break;
    case KILN_STEP_REPEAT:
      for (uint64_t n = 0; n < s->times; n++) KL_TRY(run_steps(p, at, i + 1, s->body, r));
      break;
    case KILN_STEP_BRANCH: KL_TRY(run_branch(p, at, i, r)); break;
    case KILN_STEP_CASE: break; // not outside of branches
    }
    i += (s->kind == KILN_STEP_WHILE ? s->count : 0) + s->body;
  }
  return KILN_OK;
}

kiln_status kl_program_run(const kl_program *p, const uint64_t *at, const kl_runner *r) {
  const kiln_manifest *f = &p->manifest;
  return f->step_count ? run_steps(p, at, 0, f->step_count, r) : run_launches(p, at, 0, f->launch_count, r);
}
