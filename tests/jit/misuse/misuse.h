// What callers do wrong and must survive, a file for each kind of thing: NULL in every place of every public function,
// calls after the end, handles that outlive their context. ../misuse.c runs them all, and finds functions that are in
// none.
#ifndef TESTS_MISUSE_H
#define TESTS_MISUSE_H

#include "../handles.h"

// Each adds its tests to the suite.
void misuse_modules(Suite *s);
void misuse_builder(Suite *s);
void misuse_maps(Suite *s);
void misuse_tiles(Suite *s);
void misuse_layouts(Suite *s);
void misuse_sparse(Suite *s);
void misuse_running(Suite *s);
void misuse_caches(Suite *s);
void misuse_devices(Suite *s);
void misuse_simulator(Suite *s);

// --- what each begins with ------------------------------------------------------------------------------------------

static inline void setup(void) {
  make_context();
  m = parse("HloModule m\nf { p = f32[64] parameter(0) ROOT r = f32[64] negate(p) }\n"
            "ENTRY e { p = f32[64] parameter(0) ROOT r = f32[64] fusion(p), kind=kLoop, calls=f }\n");
  open_handles(m, m);
}

static inline void teardown(void) {
  close_handles();
  drop_context();
}

#define ADD(name, ...) ADD_TESTS(s, name, ONCE(setup, teardown), __VA_ARGS__)

// --- what is expected -----------------------------------------------------------------------------------------------

static inline const char *first_finding(void) {
  return kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->message : "";
}

// INVALID, with a finding that speaks of NULL; without one where the context itself is missing.
#define INVALID(call)                                                                                                  \
  do {                                                                                                                 \
    kiln_diagnostics_clear(cx);                                                                                        \
    EXPECT((call) == KILN_E_INVALID, "%s", #call);                                                                     \
    EXPECT(strstr(first_finding(), "NULL"), "%s: %s", #call, first_finding());                                         \
  } while (0)
#define INVALID_CX(call)                                                                                               \
  do {                                                                                                                 \
    kiln_diagnostics_clear(cx);                                                                                        \
    EXPECT((call) == KILN_E_INVALID, "%s", #call);                                                                     \
    EXPECT(kiln_diagnostics_count(cx) == 0, "%s: %s", #call, first_finding());                                         \
  } while (0)
// Also nulls what it would have made in `o`.
#define NULLS(check, T, call)                                                                                          \
  do {                                                                                                                 \
    T o;                                                                                                               \
    memset(&o, 0x55, sizeof o);                                                                                        \
    check(call);                                                                                                       \
    T zero = {0};                                                                                                      \
    EXPECT(memcmp(&o, &zero, sizeof o) == 0, "%s: what it makes is not nulled", #call);                                \
  } while (0)
// Of a builder: an error, and one finding.
#define POISONED(call) EXPECT((call) == KILN_E_INVALID && kiln_diagnostics_count(cx) == 1, "%s", first_finding())

#endif
