// kiln explain: which kernels a module becomes, why, and what they cost by their plans.

#include "params.h"
#include "stored.h"

#include <string.h>

enum { O_JSON = O_OTHERS };
static const option options[] = {
    COMPILE_OPTIONS("sm_70 to sm_121, with a or f where NVIDIA has it, or host (default sm_90)"),
    {"--json", NULL, "report as one JSON object"},
    {0},
};

static int put(const args *a, const kiln_module *m, const kiln_artifact *artifact) {
  if (!a->values[O_JSON]) {
    fputs(kiln_artifact_text(artifact, KILN_TEXT_EXPLAIN, NULL), stdout);
    return EXIT_DONE;
  }
  printf("{\"module\": ");
  json_string(stdout, kiln_module_name(m));
  printf(", \"target\": ");
  json_string(stdout, kiln_artifact_manifest(artifact)->target);
  printf(", \"kernels\": %s}\n", kiln_artifact_text(artifact, KILN_TEXT_EXPLAIN_JSON, NULL));
  return EXIT_DONE;
}

static int run(const args *a) {
  kiln_alias aliases[MOST_ALIASES];
  kiln_compile_params p;
  kiln_module *m = NULL;
  kiln_artifact *artifact = NULL;
  int status = read_params(a, aliases, &p);
  if (status) return status;
  p.keep = KILN_KEEP_EXPLAIN;
  kiln_context *cx = kiln_context_create(NULL);
  status = open_module(cx, a->file, NULL, &m);
  kiln_sparse_slot *slots = NULL;
  size_t nslots = 0;
  if (!status) status = room_slots(cx, a, m, &slots, &nslots);
  p.sparse_slots = slots;
  p.sparse_slot_count = nslots;
  if (!status) status = report(cx, kiln_compile(cx, m, &p, &artifact));
  room_free(slots, nslots);
  if (!status) status = put(a, m, artifact);
  kiln_artifact_destroy(&artifact);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  return status;
}

const verb verb_explain = {
    "explain",
    "explain FILE.hlo [OPTION]...",
    "which kernels it becomes, why, and what they cost",
    "Says of each kernel which kind it is and why not another, its launches, how wide each access is and what keeps "
    "it\n"
    "from being wider, and what it costs: bytes in sectors beside those that are needed, passes over shared memory,\n"
    "shuffles and syncs, counted from the plan; and what is expected to limit it.",
    options,
    run,
    true};
