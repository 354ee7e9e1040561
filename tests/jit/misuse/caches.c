// Artifacts as bytes, caches and bundles of them, compilation in the background.
#include "misuse.h"

START_TEST(null_caches) {
  kiln_cache_params p = {.struct_size = sizeof p, .folder = ""};
  kiln_cache_info info = {.struct_size = sizeof info};
  kiln_cache *c = NULL;
  void *bytes = NULL;
  size_t n = 0;
  INVALID_CX(kiln_artifact_save(NULL, gpu, &bytes, &n));
  INVALID(kiln_artifact_save(cx, NULL, &bytes, &n));
  INVALID(kiln_artifact_save(cx, gpu, NULL, &n));
  INVALID(kiln_artifact_save(cx, gpu, &bytes, NULL));
  kiln_artifact_bytes_free(NULL, NULL, 0);
  kiln_artifact_bytes_free(cx, NULL, 0);
  NULLS(INVALID_CX, kiln_artifact *, kiln_artifact_load(NULL, "x", 1, &o));
  NULLS(INVALID, kiln_artifact *, kiln_artifact_load(cx, NULL, 1, &o));
  INVALID(kiln_artifact_load(cx, "x", 1, NULL));
  NULLS(INVALID_CX, kiln_cache *, kiln_cache_open(NULL, &p, &o));
  INVALID(kiln_cache_open(cx, &p, NULL));
  ck_assert_int_eq(kiln_cache_open(cx, &p, &c), KILN_OK);
  NULLS(INVALID_CX, kiln_artifact *, kiln_cache_compile(NULL, c, m, NULL, &o));
  NULLS(INVALID, kiln_artifact *, kiln_cache_compile(cx, NULL, m, NULL, &o));
  NULLS(INVALID, kiln_artifact *, kiln_cache_compile(cx, c, NULL, NULL, &o));
  INVALID(kiln_cache_compile(cx, c, m, NULL, NULL));
  INVALID_CX(kiln_cache_prepare(NULL, c, on_gpu));
  INVALID(kiln_cache_prepare(cx, NULL, on_gpu));
  INVALID(kiln_cache_prepare(cx, c, NULL));
  INVALID_CX(kiln_cache_describe(NULL, c, &info));
  INVALID(kiln_cache_describe(cx, NULL, &info));
  INVALID(kiln_cache_describe(cx, c, NULL));
  kiln_cache_close(&c);
  kiln_cache_close(&c);
  kiln_cache_close(NULL);
}
END_TEST

START_TEST(null_bundles) {
  const kiln_artifact *one[] = {gpu}, *const none[] = {NULL};
  const char *const targets[] = {"sm_80"}, *const no_target[] = {NULL};
  kiln_compile_params p = {.struct_size = sizeof p};
  kiln_bundle *b = NULL;
  void *bytes = NULL;
  size_t n = 0;
  NULLS(INVALID_CX, kiln_bundle *, kiln_bundle_create(NULL, one, 1, &o));
  NULLS(INVALID, kiln_bundle *, kiln_bundle_create(cx, NULL, 1, &o));
  NULLS(INVALID, kiln_bundle *, kiln_bundle_create(cx, none, 1, &o));
  INVALID(kiln_bundle_create(cx, one, 1, NULL));
  NULLS(INVALID_CX, kiln_bundle *, kiln_bundle_compile(NULL, m, targets, 1, &p, &o));
  NULLS(INVALID, kiln_bundle *, kiln_bundle_compile(cx, NULL, targets, 1, &p, &o));
  NULLS(INVALID, kiln_bundle *, kiln_bundle_compile(cx, m, NULL, 1, &p, &o));
  NULLS(INVALID, kiln_bundle *, kiln_bundle_compile(cx, m, no_target, 1, &p, &o));
  INVALID(kiln_bundle_compile(cx, m, targets, 1, &p, NULL));
  ck_assert_int_eq(kiln_bundle_create(cx, one, 1, &b), KILN_OK);
  ck_assert(kiln_bundle_count(NULL) == 0 && !kiln_bundle_get(NULL, 0) && !kiln_bundle_get(b, SIZE_MAX));
  NULLS(INVALID_CX, kiln_artifact *, kiln_bundle_choose(NULL, b, 90, &o));
  NULLS(INVALID, kiln_artifact *, kiln_bundle_choose(cx, NULL, 90, &o));
  INVALID(kiln_bundle_choose(cx, b, 90, NULL));
  INVALID_CX(kiln_bundle_save(NULL, b, &bytes, &n));
  INVALID(kiln_bundle_save(cx, NULL, &bytes, &n));
  INVALID(kiln_bundle_save(cx, b, NULL, &n));
  INVALID(kiln_bundle_save(cx, b, &bytes, NULL));
  NULLS(INVALID_CX, kiln_bundle *, kiln_bundle_load(NULL, "x", 1, &o));
  NULLS(INVALID, kiln_bundle *, kiln_bundle_load(cx, NULL, 1, &o));
  INVALID(kiln_bundle_load(cx, "x", 1, NULL));
  ck_assert(!kiln_bundle_is_saved(NULL, 9));
  kiln_bundle_destroy(&b);
  kiln_bundle_destroy(&b);
  kiln_bundle_destroy(NULL);
}
END_TEST

START_TEST(null_jobs) {
  kiln_job_params p = {.struct_size = sizeof p};
  kiln_job_info info = {.struct_size = sizeof info};
  kiln_job *j = NULL;
  NULLS(INVALID_CX, kiln_job *, kiln_job_start(NULL, m, &p, &o));
  NULLS(INVALID, kiln_job *, kiln_job_start(cx, NULL, &p, &o));
  INVALID(kiln_job_start(cx, m, &p, NULL));
  ck_assert_int_eq(kiln_job_start(cx, m, NULL, &j), KILN_OK);
  INVALID_CX(kiln_job_describe(NULL, j, &info));
  INVALID(kiln_job_describe(cx, NULL, &info));
  INVALID(kiln_job_describe(cx, j, NULL));
  ck_assert(!kiln_job_wait(NULL, 0));
  kiln_job_cancel(NULL);
  NULLS(INVALID_CX, kiln_artifact *, kiln_job_take(NULL, j, &o));
  NULLS(INVALID, kiln_artifact *, kiln_job_take(cx, NULL, &o));
  INVALID(kiln_job_take(cx, j, NULL));
  kiln_job_destroy(&j);
  kiln_job_destroy(&j);
  kiln_job_destroy(NULL);
}
END_TEST

// A worker without a socket ends.
START_TEST(no_socket) {
  ck_assert_int_eq(kiln_worker_run(-1), 0);
}
END_TEST

void misuse_caches(Suite *s) {
  ADD("caches", {null_caches}, {null_bundles}, {null_jobs}, {no_socket});
}
