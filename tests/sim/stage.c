#include "stage.h"

#include "support/suite.h"

void stage_open(stage *s) {
  *s = (stage){.cx = kiln_context_create(NULL)};
  ck_assert_ptr_nonnull(s->cx);
  kl_memory_init(&s->m, s->cx, UINT64_MAX);
}

bool stage_load(stage *s, kl_str ptx, const char *entry) {
  return kl_load(s->cx, &s->m, "k.ptx", ptx, &s->l) == KILN_OK &&
         kl_kernel_prepare(s->cx, s->l, kl_str_of(entry), &s->k) == KILN_OK;
}

void stage_expect(stage *s, const char *name, const char *ptx, const char *entry) {
  if (!stage_load(s, kl_str_of(ptx), entry)) ck_abort_msg("%s: %s\n%s", name, stage_why(s), ptx);
}

uint64_t stage_memory(stage *s, uint64_t bytes) {
  uint64_t address = 0;
  ck_assert_int_eq(kl_memory_alloc(&s->m, bytes ? bytes : 1, KL_REGION_USER, KL_STR("words"), &address), KILN_OK);
  return address;
}

uint64_t stage_words(stage *s, uint32_t n, uint32_t first) {
  uint64_t address = stage_memory(s, (uint64_t)n * 4);
  uint32_t *p = (uint32_t *)(void *)kl_memory_at(&s->m, address, (uint64_t)n * 4);
  for (uint32_t i = 0; i < n; i++) p[i] = first + i;
  kl_memory_define(&s->m, address, (uint64_t)n * 4);
  return address;
}

const uint32_t *stage_read(const stage *s, uint64_t address, uint32_t words) {
  return (const uint32_t *)(const void *)kl_memory_at(&s->m, address, (uint64_t)words * 4);
}

const char *stage_why(const stage *s) {
  return kiln_diagnostics_count(s->cx) ? kiln_diagnostics_get(s->cx, 0)->text : "";
}

void stage_close(stage *s) {
  kl_unload(s->cx, s->l);
  kl_memory_free(&s->m);
  kiln_context_destroy(&s->cx);
}
