// A kernel of PTX with its memory, profiled: what tests of counters share.
#ifndef TESTS_COUNT_PROFILE_H
#define TESTS_COUNT_PROFILE_H

#include "support/suite.h"
#include <kiln/profile.h>
#include <stdio.h>
#include <string.h>

#define HEADER ".version 8.8\n.target sm_100\n.address_size 64\n"

typedef struct fixture {
  kiln_context *cx;
  kiln_simulator *s;
  kiln_profile *p;
  kiln_profile_info t;
} fixture;

static inline const char *found_in(kiln_context *cx) {
  size_t n = kiln_diagnostics_count(cx);
  return n ? kiln_diagnostics_get(cx, n - 1)->text : "";
}

static inline void fixture_open(fixture *f) {
  *f = (fixture){.cx = kiln_context_create(NULL)};
  ck_assert_int_eq(kiln_simulator_open(f->cx, &f->s), KILN_OK);
}

static inline void fixture_close(fixture *f) {
  kiln_profile_destroy(&f->p);
  kiln_simulator_close(&f->s);
  kiln_context_destroy(&f->cx);
}

static inline uint64_t fixture_memory(fixture *f, uint64_t bytes, void **host) {
  uint64_t at;
  ck_assert_int_eq(kiln_simulator_alloc(f->cx, f->s, bytes, &at), KILN_OK);
  if (host) *host = kiln_simulator_bytes(f->s, at, bytes);
  return at;
}

// Profiles kernel "k" of the text; an earlier profile is gone.
static inline void fixture_run(fixture *f, const char *ptx, kiln_sim_launch_params launch, const uint64_t *arguments,
                               const kiln_profile_params *how) {
  kiln_sim_module *m = NULL;
  kiln_sim_kernel *k = NULL;
  const void *values[16];
  for (int i = 0; i < 16; i++) values[i] = &arguments[i];
  launch.struct_size = sizeof launch;
  launch.arguments = values;
  kiln_profile_destroy(&f->p);
  ck_assert_msg(kiln_simulator_load(f->cx, f->s, "k.ptx", ptx, strlen(ptx), &m) == KILN_OK, "%s", found_in(f->cx));
  ck_assert_msg(kiln_sim_module_kernel(f->cx, m, "k", &k) == KILN_OK, "%s", found_in(f->cx));
  ck_assert_msg(kiln_sim_kernel_profile(f->cx, k, &launch, how, NULL, &f->p) == KILN_OK, "%s", found_in(f->cx));
  f->t.struct_size = sizeof f->t;
  ck_assert_int_eq(kiln_profile_describe(f->cx, f->p, &f->t), KILN_OK);
}

// The n-th instruction whose text has this in it.
static inline const kiln_profile_line *line_with(const fixture *f, const char *text, unsigned n) {
  for (size_t k = 0; k < f->t.line_count; k++)
    if (strstr(f->t.lines[k].text, text) && n-- == 0) return &f->t.lines[k];
  ck_abort_msg("no instruction with %s", text);
  return NULL;
}

static inline const kiln_access_counts *access_of(const kiln_profile_line *l, kiln_access_kind kind) {
  for (size_t k = 0; k < l->access_count; k++)
    if (l->accesses[k].kind == kind) return &l->accesses[k];
  ck_abort_msg("no %s in %s", kiln_access_kind_name(kind), l->text);
  return NULL;
}

#endif
