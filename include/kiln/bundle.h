// kiln: artifacts of one module for several targets, as one; the one for a device is chosen at run time.
#ifndef KILN_BUNDLE_H
#define KILN_BUNDLE_H

#include <kiln/compile.h>

#ifdef __cplusplus
extern "C" {
#endif

// Immutable; thread-safe.
typedef struct kiln_bundle kiln_bundle;

// `count` artifacts, at least one, each for another target and of the same module and fusion with the same slots but
// for what a target wants of their addresses: alignment, aliases. They are shared: the caller's handles stay the
// caller's. The bundle is the caller's. Errors: INVALID (which two differ, and in what).
KILN_API kiln_status kiln_bundle_create(kiln_context *cx, const kiln_artifact *const *artifacts, size_t count,
                                        kiln_bundle **out);
KILN_API void kiln_bundle_destroy(kiln_bundle **b);

// kiln_compile for each of `count` targets (as in kiln_compile_params, whose own target must be NULL), as a bundle.
// Errors: those of kiln_compile, with a last finding that says for which target.
KILN_API kiln_status kiln_bundle_compile(kiln_context *cx, const kiln_module *m, const char *const *targets,
                                         size_t count, const kiln_compile_params *params, kiln_bundle **out);

// The artifacts, in the order in which a device takes the first that it can run: newer targets before older ones, of
// one architecture "a" before "f" before neither, the host's last. NULL for i >= count. Lives as long as the bundle.
KILN_API size_t kiln_bundle_count(const kiln_bundle *b);
KILN_API const kiln_artifact *kiln_bundle_get(const kiln_bundle *b, size_t i);

// The artifact for a GPU of compute capability `sm` (90 for 9.0, as in kiln_device_info), or with 0 for the host. Code
// for "sm_80" runs on 8.0 and whatever is newer, for "sm_100f" on 10.0 and newer ones of 10, for "sm_90a" on 9.0 alone.
// It is the caller's and may outlive the bundle. Errors: UNSUPPORTED (none of them runs there: which there are).
KILN_API kiln_status kiln_bundle_choose(kiln_context *cx, const kiln_bundle *b, uint32_t sm, kiln_artifact **out);

// --- as bytes -----------------------------------------------------------------------------------------------------

// As kiln_artifact_save and kiln_artifact_load (kiln/cache.h). The bytes of a single artifact are a bundle of one. Free
// with kiln_artifact_bytes_free.
KILN_API kiln_status kiln_bundle_save(kiln_context *cx, const kiln_bundle *b, void **bytes, size_t *size);
KILN_API kiln_status kiln_bundle_load(kiln_context *cx, const void *bytes, size_t size, kiln_bundle **out);
// Do they begin as a saved artifact or bundle does, of whatever format?
KILN_API bool kiln_bundle_is_saved(const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif
