#include "case_run.h"

#include "support/suite.h"

#include <stdio.h>

const char *const case_folders[CASE_FOLDERS] = {"sm_75", "sm_80", "sm_90", "sm_75-g", "sm_80-g", "sm_90-g"};

char *case_text(const char *root, const char *folder, const char *file) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s/%s.ptx", root, folder, file);
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  size_t n = (size_t)ftell(f);
  rewind(f);
  char *text = malloc(n + 1);
  text[fread(text, 1, n, f)] = 0;
  fclose(f);
  return text;
}

char *case_text_alike(const char *root, const char *folder, const char *file) {
  static const char was[] = ".target sm_90";
  size_t n = strlen(folder);
  char *text = n > 2 && strcmp(folder + n - 2, "-g") == 0 ? case_text(root, "sm_90-g", file) : NULL;
  char *at = text ? strstr(text, was) : NULL;
  ck_assert_msg(!text || at, "%s: no target", file);
  if (at) memcpy(at + strlen(was) - strlen("sm_90"), folder, strlen("sm_90"));
  return text;
}

static uint64_t place(case_run *r, const kernel_buffer *b) {
  uint64_t address = 0, bytes = b->bytes;
  if (b->symbol)
    ck_assert_msg(kl_loaded_variable(r->s.l, kl_str_of(b->symbol), &address, &bytes), "no variable %s", b->symbol);
  else
    address = stage_memory(&r->s, bytes);
  if (b->before && b->bytes) {
    memcpy(kl_memory_at(&r->s.m, address, b->bytes), b->before, b->bytes);
    kl_memory_define(&r->s.m, address, b->bytes);
  }
  return address;
}

static void put_arguments(case_run *r) {
  const kernel_case *c = r->c;
  for (uint32_t n = 0; n < c->narg; n++) {
    uint32_t at = 0, bytes = 0;
    kl_kernel_param(r->s.k, n, &at, &bytes);
    ck_assert_uint_le(at + bytes, sizeof r->params);
    memcpy(r->params + at, c->args[n].value.bytes, bytes < c->args[n].size ? bytes : c->args[n].size);
    for (uint32_t p = 0; p < c->npatch; p++)
      if (c->patches[p].arg == n) memcpy(r->params + at + c->patches[p].offset, &r->address[c->patches[p].buffer], 8);
  }
}

bool case_open(case_run *r, kl_str ptx, const kernel_case *c) {
  *r = (case_run){.c = c};
  stage_open(&r->s);
  if (!stage_load(&r->s, ptx, c->row->name)) return false;
  for (uint32_t b = 0; b < c->nbuffer; b++) r->address[b] = place(r, &c->buffers[b]);
  put_arguments(r);
  r->launch = (kl_launch){.kernel = r->s.k,
                          .grid = {c->grid[0], c->grid[1], c->grid[2]},
                          .block = {c->block[0], c->block[1], c->block[2]},
                          .dynamic_shared = c->dynamic_shared,
                          .params = r->params,
                          .cooperative = c->cooperative};
  if (c->cluster[0] * c->cluster[1] * c->cluster[2] > 1) memcpy(r->launch.cluster, c->cluster, sizeof c->cluster);
  return true;
}

kiln_status case_check(case_run *r, kl_checks *checks) {
  kl_fault fault;
  kl_checks_init(checks, r->s.cx, &r->s.m, KL_CHECK_ALL);
  for (uint32_t b = 0; b < r->c->nbuffer; b++) {
    const kernel_buffer *one = &r->c->buffers[b];
    if (one->compare == KERNEL_UNSEEN)
      kl_checks_use(checks, r->address[b], one->bytes, KL_USE_SCRATCH);
    else if (!one->before && !one->symbol)
      kl_checks_use(checks, r->address[b], one->bytes, KL_USE_OUTPUT);
  }
  return kl_checks_run(checks, &r->launch, &fault);
}

bool case_agrees(const case_run *r, char *message, size_t room) {
  for (uint32_t b = 0; b < r->c->nbuffer; b++) {
    size_t bytes = r->c->buffers[b].bytes;
    if (bytes && !kernel_case_agrees(r->c, b, kl_memory_at(&r->s.m, r->address[b], bytes), message, room)) return false;
  }
  return true;
}

void case_close(case_run *r) {
  stage_close(&r->s);
}
