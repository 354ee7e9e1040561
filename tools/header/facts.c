// What a header says of all targets at once, and of each.

#include "header/header.h"

#include <string.h>

const kiln_manifest *header_manifest(const header *h, size_t i) {
  return kiln_artifact_manifest(kiln_bundle_get(h->b, i));
}

const kiln_artifact *header_less(const header *h, size_t i) {
  return kiln_artifact_less(kiln_bundle_get(h->b, i));
}

bool header_has_less(const header *h) {
  return header_less(h, 0) != NULL;
}

size_t header_codes(const header *h) {
  return header_has_less(h) ? 2 * h->n : h->n;
}

const kiln_artifact *header_artifact(const header *h, size_t i) {
  return i < h->n ? kiln_bundle_get(h->b, i) : header_less(h, i - h->n);
}

const kiln_manifest *header_code(const header *h, size_t i) {
  return kiln_artifact_manifest(header_artifact(h, i));
}

header_name header_code_name(const header *h) {
  header_name name = {""};
  if (header_codes(h) > 1) snprintf(name.text, sizeof name.text, "_%s%s", h->m->target, h->less ? "_less" : "");
  return name;
}

size_t header_most_launches(const header *h, bool less) {
  size_t most = 1;
  for (size_t i = 0; i < h->n; i++) {
    size_t n = header_code(h, less ? h->n + i : i)->launch_count;
    if (n > most) most = n;
  }
  return most;
}

const char *header_behind(const header *h) {
  return h->n > 1 ? h->m->target : "";
}
const char *header_between(const header *h) {
  return h->n > 1 ? "_" : "";
}

void header_put(const header *h, const char *text) {
  for (const char *at; (at = strchr(text, '@')); text = at + 1) {
    fwrite(text, 1, (size_t)(at - text), h->to);
    fputs(h->prefix, h->to);
  }
  fputs(text, h->to);
}

size_t header_slots(const kiln_manifest *m) {
  return m->parameter_count + m->result_count;
}

void header_slot_name(const kiln_slot *s, char out[24]) {
  snprintf(out, 24, "%s%u", s->result ? "result" : "parameter", s->index);
}

// --- steps ----------------------------------------------------------------------------------------------------------

static bool has_condition(const kiln_step *s) {
  return s->kind == KILN_STEP_WHILE || s->kind == KILN_STEP_BRANCH;
}

bool header_is_passed(const kiln_manifest *m, const kiln_argument *condition) {
  return condition->kind == KILN_ARGUMENT_SLOT && m->slots[condition->slot].by_value;
}

bool header_reads(const kiln_manifest *m) {
  for (size_t i = 0; i < m->step_count; i++)
    if (has_condition(&m->steps[i]) && !header_is_passed(m, &m->steps[i].condition)) return true;
  return false;
}

bool header_any_reads(const header *h) {
  for (size_t i = 0; i < header_codes(h); i++)
    if (header_reads(header_code(h, i))) return true;
  return false;
}

// --- buffers --------------------------------------------------------------------------------------------------------

static bool is_slot(const kiln_argument *a, size_t slot) {
  return a->kind == KILN_ARGUMENT_SLOT && a->slot == slot;
}

bool header_is_used(const kiln_manifest *m, size_t slot) {
  for (size_t i = 0; i < m->launch_count; i++)
    for (size_t k = 0; k < m->launches[i].argument_count; k++)
      if (is_slot(&m->launches[i].arguments[k], slot)) return true;
  for (size_t i = 0; i < m->step_count; i++)
    if (has_condition(&m->steps[i]) && is_slot(&m->steps[i].condition, slot)) return true;
  return false;
}

uint32_t header_alias(const header *h, size_t slot) {
  uint32_t alias = h->m->slots[slot].alias;
  for (size_t i = 0; i < header_codes(h); i++)
    if (header_code(h, i)->slots[slot].alias != alias) return KILN_NO_SLOT;
  return alias;
}

uint32_t header_align(const header *h, size_t slot) {
  uint32_t most = 1;
  for (size_t i = 0; i < h->n; i++) {
    uint32_t align = header_code(h, h->less ? h->n + i : i)->slots[slot].align;
    if (align > most) most = align;
  }
  return most;
}

header_room header_scratch(const header *h) {
  header_room r = {0, 0, 1};
  for (size_t i = 0; i < header_codes(h); i++) {
    const kiln_manifest *m = header_code(h, i);
    if (m->scratch_bytes > r.bytes) r.bytes = m->scratch_bytes;
    if (m->scratch_zero_bytes > r.zero) r.zero = m->scratch_zero_bytes;
    if (m->scratch_align > r.align) r.align = m->scratch_align;
  }
  return r;
}

// --- launches -------------------------------------------------------------------------------------------------------

void header_operands(const header *h, const char *before, const char *before_count) {
  for (size_t i = 0; i < header_slots(h->m); i++) {
    char name[24];
    header_slot_name(&h->m->slots[i], name);
    fprintf(h->to, "%s%s", before, name);
  }
  if (header_scratch(h).bytes) fprintf(h->to, "%sscratch", before);
  if (h->m->counted) fprintf(h->to, "%scount", before_count);
}

void header_declare_launch(const header *h, const char *name, const char *end) {
  header_put(h, "int @_launch");
  fputs(name, h->to);
  header_put(h, "(const kiln_entry_points *d, const @_kernels *k, void *stream");
  header_operands(h, ",\n    uint64_t ", ",\n    int64_t ");
  fprintf(h->to, ")%s\n", end);
}
