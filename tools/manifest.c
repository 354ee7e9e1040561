// An artifact's manifest as JSON.

#include "manifest.h"

#include <inttypes.h>

const char *hash_text(const kiln_manifest *m, char out[2 * KILN_HASH_SIZE + 1]) {
  for (size_t i = 0; i < KILN_HASH_SIZE; i++) snprintf(out + 2 * i, 3, "%02x", m->hash[i]);
  return out;
}

static const char *truth(bool b) {
  return b ? "true" : "false";
}

static void json_slot(FILE *to, const kiln_slot *s) {
  fprintf(to, "{\"kind\": \"%s\", \"index\": %u, \"name\": ", s->result ? "result" : "parameter", s->index);
  json_string(to, s->name);
  fprintf(to, ", \"dtype\": \"%s\", \"dims\": [", kiln_dtype_name(s->type.dtype));
  for (uint32_t d = 0; d < s->type.rank; d++) fprintf(to, "%s%lld", d ? ", " : "", (long long)s->type.dims[d]);
  fprintf(to, "], \"minor_to_major\": [");
  for (uint32_t d = 0; d < s->type.rank; d++) fprintf(to, "%s%u", d ? ", " : "", s->minor_to_major[d]);
  fprintf(to, "], \"layout\": ");
  json_string(to, s->layout);
  fprintf(to, ", \"bytes\": %lld, \"align\": %u, \"counted\": %s, \"row\": %lld, \"by_value\": %s, \"alias\": ",
          (long long)s->bytes, s->align, truth(s->counted), (long long)s->row, truth(s->by_value));
  if (s->alias == KILN_NO_SLOT)
    fprintf(to, "null");
  else
    fprintf(to, "%u", s->alias);
  static const char *const roles[] = {"array", "positions", "coordinates", "values", "counts"};
  fprintf(to, ", \"donated\": %s, \"role\": \"%s\", \"leaf\": %u, \"level\": %u}", truth(s->donated), roles[s->role],
          s->leaf, s->level);
}

// As base64.
static void json_bytes(FILE *to, const void *data, uint64_t n) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const uint8_t *p = data;
  fputc('"', to);
  for (uint64_t i = 0; i < n; i += 3) {
    uint32_t u = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
    for (unsigned k = 0; k < 4; k++) fputc(i + k <= n ? digits[u >> (18 - 6 * k) & 63] : '=', to);
  }
  fputc('"', to);
}

static void json_argument(FILE *to, const kiln_argument *a) {
  switch (a->kind) {
  case KILN_ARGUMENT_SLOT: fprintf(to, "{\"slot\": %u, \"output\": %s}", a->slot, truth(a->output)); return;
  case KILN_ARGUMENT_SCRATCH:
    fprintf(to, "{\"scratch\": %" PRIu64 ", \"output\": %s}", a->offset, truth(a->output));
    return;
  default: fprintf(to, "{\"count\": true}");
  }
}

static void json_three(FILE *to, const char *name, const uint32_t *v) {
  fprintf(to, ", \"%s\": [%u, %u, %u]", name, v[0], v[1], v[2]);
}

static void json_launch(FILE *to, const kiln_launch *l) {
  static const char *const when[] = {
      [KILN_WHEN_ALWAYS] = "always", [KILN_WHEN_APART] = "apart", [KILN_WHEN_IN_PLACE] = "in_place"};
  fprintf(to, "{\"kernel\": ");
  json_string(to, l->kernel);
  fprintf(to, ", \"when\": \"%s\"", when[l->when]);
  json_three(to, "grid", l->grid);
  json_three(to, "block", l->block);
  json_three(to, "cluster", l->cluster);
  fprintf(to,
          ", \"shared_bytes\": %u, \"dynamic_shared_bytes\": %u, \"programmatic\": %s, \"vector_bytes\": %u, "
          "\"lanes\": %u, \"rest_lanes\": %u, \"elements\": %lld, \"bytes\": %lld, "
          "\"count_whole\": %lld, \"count_rest\": %lld, \"count_blocks\": %u, \"arguments\": [",
          l->shared_bytes, l->dynamic_shared_bytes, truth(l->programmatic), l->vector_bytes, l->lanes, l->rest_lanes,
          (long long)l->elements, (long long)l->bytes, (long long)l->count_whole, (long long)l->count_rest,
          l->count_blocks);
  for (size_t i = 0; i < l->argument_count; i++) {
    if (i) fprintf(to, ", ");
    json_argument(to, &l->arguments[i]);
  }
  fprintf(to, "]}");
}

static void json_origin(FILE *to, const kiln_manifest *m) {
  char hash[2 * KILN_HASH_SIZE + 1];
  fprintf(to, "{\"format\": 1, \"kiln\": \"%s\", \"module\": ", m->kiln_version);
  json_string(to, m->module);
  fprintf(to, ", \"fusion\": ");
  if (m->fusion)
    json_string(to, m->fusion);
  else
    fprintf(to, "null");
  fprintf(to, ", \"hash\": \"%s\", \"target\": \"%s\", \"ptx_version\": %u, \"driver_version\": %d", hash_text(m, hash),
          m->target, m->ptx_version, m->driver_version);
}

static void json_place(FILE *f, const kiln_argument *a) {
  if (a->kind == KILN_ARGUMENT_SLOT)
    fprintf(f, "\"slot\": %u", a->slot);
  else
    fprintf(f, "\"scratch\": %" PRIu64, a->offset);
}

static void json_step(FILE *f, const kiln_step *s) {
  switch (s->kind) {
  case KILN_STEP_LAUNCHES: fprintf(f, "{\"launches\": {\"first\": %zu, \"count\": %zu}}", s->first, s->count); break;
  case KILN_STEP_WHILE:
    fprintf(f, "{\"while\": {");
    json_place(f, &s->condition);
    fprintf(f, ", \"condition_steps\": %zu, \"body_steps\": %zu}}", s->count, s->body);
    break;
  case KILN_STEP_REPEAT:
    fprintf(f, "{\"repeat\": {\"times\": %" PRIu64 ", \"body_steps\": %zu}}", s->times, s->body);
    break;
  case KILN_STEP_BRANCH:
    fprintf(f, "{\"branch\": {");
    json_place(f, &s->condition);
    fprintf(f, ", \"bytes\": %u, \"cases\": %zu, \"steps\": %zu}}", s->condition_bytes, s->count, s->body);
    break;
  case KILN_STEP_CASE: fprintf(f, "{\"case\": {\"steps\": %zu}}", s->body); break;
  }
}

void put_json(FILE *f, const kiln_artifact *a) {
  const kiln_manifest *m = kiln_artifact_manifest(a);
  json_origin(f, m);
  fprintf(f, ", \"slots\": [");
  for (size_t i = 0; i < m->parameter_count + m->result_count; i++) {
    if (i) fprintf(f, ", ");
    json_slot(f, &m->slots[i]);
  }
  fprintf(f, "], \"launches\": [");
  for (size_t i = 0; i < m->launch_count; i++) {
    if (i) fprintf(f, ", ");
    json_launch(f, &m->launches[i]);
  }
  if (m->step_count) fprintf(f, "], \"steps\": [");
  for (size_t i = 0; i < m->step_count; i++) {
    if (i) fprintf(f, ", ");
    json_step(f, &m->steps[i]);
  }
  fprintf(f,
          "], \"scratch\": {\"bytes\": %" PRIu64 ", \"align\": %u, \"zero_bytes\": %" PRIu64
          "}, \"counted\": %s, \"max_count\": %lld, \"count_unit\": %lld, \"numerics\": \"%s\"",
          m->scratch_bytes, m->scratch_align, m->scratch_zero_bytes, truth(m->counted), (long long)m->max_count,
          (long long)m->count_unit, m->numerics == KILN_NUMERICS_FAST ? "fast" : "strict");
  if (m->constant_bytes) {
    fprintf(f,
            ", \"constants\": {\"scratch\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"base64\": ", m->scratch_zero_bytes,
            m->constant_bytes);
    json_bytes(f, m->constants, m->constant_bytes);
    fprintf(f, "}");
  }
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
  if (ptx) {
    fprintf(f, ", \"ptx\": ");
    json_string(f, ptx);
  }
  if (kiln_artifact_less(a)) {
    fprintf(f, ", \"less\": ");
    put_json(f, kiln_artifact_less(a));
  }
  fprintf(f, "}");
}
