// A runtime that goes on working while kiln compiles: a job with its callbacks, and artifacts for several targets as
// bytes, of which a device takes its own. docs/ahead.md explains it.
#include <kiln/kiln.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "HloModule swish\n"
                           "ENTRY main {\n"
                           "  x = f32[1000] parameter(0)\n"
                           "  s = f32[1000] logistic(x)\n"
                           "  ROOT y = f32[1000] multiply(x, s)\n"
                           "}\n";

static kiln_context *cx;

// Ends the program with all that kiln has found.
static void check(kiln_status status) {
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  if (status != KILN_OK) exit(1);
}

// --- in the background
// ------------------------------------------------------------------------------------------------

typedef struct request {
  atomic_int pieces; // that have been told of
  atomic_bool ready;
} request;

// On the job's thread, both.
static void on_progress(void *user, kiln_job *j, size_t done, size_t all) {
  request *r = user;
  (void)j, (void)done, (void)all;
  r->pieces++;
}
static void on_end(void *user, kiln_job *j, kiln_job_state state) {
  request *r = user;
  (void)j;
  r->ready = state == KILN_JOB_DONE;
}

static kiln_artifact *compile_meanwhile(const kiln_module *module, kiln_cache *cache) {
  request r = {0};
  kiln_artifact *artifact;
  kiln_job *job;
  kiln_compile_params how = {.struct_size = sizeof how, .target = "sm_90"};
  kiln_job_params params = {.struct_size = sizeof params,
                            .compile = &how,
                            .cache = cache,
                            .progress = on_progress,
                            .ended = on_end,
                            .user = &r};
  check(kiln_job_start(cx, module, &params, &job));
  unsigned long rounds = 0;
  while (!kiln_job_wait(job, 0.001)) rounds++; // the runtime's own work
  check(kiln_job_take(cx, job, &artifact));
  kiln_job_destroy(&job); // waits for on_end, if that still runs
  printf("a job: %s, %s\n", r.ready && r.pieces ? "told of its end" : "told nothing",
         kiln_artifact_manifest(artifact)->target);
  return artifact;
}

// --- several targets
// --------------------------------------------------------------------------------------------------

static void *save_for_all(const kiln_module *module, size_t *size) {
  static const char *const targets[] = {"sm_80", "sm_90", "host"};
  kiln_bundle *bundle;
  void *bytes;
  check(kiln_bundle_compile(cx, module, targets, 3, NULL, &bundle));
  check(kiln_bundle_save(cx, bundle, &bytes, size));
  kiln_bundle_destroy(&bundle);
  return bytes;
}

// Where the bytes are; `sm` is kiln_device_info's, 0 for the host.
static void load_for(uint32_t sm, const void *bytes, size_t size) {
  kiln_bundle *bundle;
  kiln_artifact *artifact;
  check(kiln_bundle_load(cx, bytes, size, &bundle));
  check(kiln_bundle_choose(cx, bundle, sm, &artifact));
  printf("%u takes %s of %zu\n", sm, kiln_artifact_manifest(artifact)->target, kiln_bundle_count(bundle));
  kiln_bundle_destroy(&bundle);
  kiln_artifact_destroy(&artifact);
}

int main(void) {
  kiln_module *module;
  kiln_cache *cache;
  kiln_cache_params in_memory = {.struct_size = sizeof in_memory, .folder = ""};
  cx = kiln_context_create(NULL);
  if (!cx) return 1;
  check(kiln_module_parse(cx, "swish", text, strlen(text), &module));
  check(kiln_cache_open(cx, &in_memory, &cache));

  kiln_artifact *first = compile_meanwhile(module, cache);
  kiln_artifact *again = compile_meanwhile(module, cache);
  printf("once more: %s code\n",
         kiln_artifact_text(first, KILN_TEXT_PTX, NULL) == kiln_artifact_text(again, KILN_TEXT_PTX, NULL) ? "the same"
                                                                                                          : "other");
  kiln_artifact_destroy(&first);
  kiln_artifact_destroy(&again);

  size_t size;
  void *bytes = save_for_all(module, &size);
  load_for(89, bytes, size);
  load_for(90, bytes, size);
  load_for(0, bytes, size);
  kiln_artifact_bytes_free(cx, bytes, size);

  kiln_cache_close(&cache);
  kiln_module_destroy(&module);
  kiln_context_destroy(&cx);
  return 0;
}
