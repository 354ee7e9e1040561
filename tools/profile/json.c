// A profile as JSON.

#include "profile.h"

static void put_u64(FILE *to, const char *name, uint64_t v) {
  fprintf(to, ", \"%s\": %llu", name, (unsigned long long)v);
}

static void put_text(FILE *to, const char *name, const char *text) {
  fprintf(to, ", \"%s\": ", name);
  json_string(to, text);
}

static void put_triple(FILE *to, const char *name, const uint32_t v[3]) {
  fprintf(to, ", \"%s\": [%u, %u, %u]", name, v[0], v[1], v[2]);
}

static void put_access(FILE *to, const kiln_access_counts *a) {
  fprintf(to, "{\"kind\": \"%s\"", kiln_access_kind_name(a->kind));
  put_u64(to, "requests", a->requests);
  put_u64(to, "lanes", a->lanes);
  put_u64(to, "bytes", a->bytes);
  put_u64(to, "unique_bytes", a->unique_bytes);
  fprintf(to, ", \"width\": {");
  for (int w = 0; w < 6; w++) fprintf(to, "%s\"%d\": %llu", w ? ", " : "", 1 << w, (unsigned long long)a->width[w]);
  fprintf(to, "}");
  put_u64(to, "sectors", a->sectors);
  put_u64(to, "ideal_sectors", a->ideal_sectors);
  put_u64(to, "l1_hits", a->l1_hits);
  put_u64(to, "l2_hits", a->l2_hits);
  put_u64(to, "wavefronts", a->wavefronts);
  put_u64(to, "ideal_wavefronts", a->ideal_wavefronts);
  put_u64(to, "remote", a->remote);
  put_u64(to, "addresses", a->addresses);
  put_u64(to, "most_on_one", a->most_on_one);
  fprintf(to, "}");
}

static void put_accesses(FILE *to, const kiln_access_counts *a, size_t n) {
  const char *gap = "";
  fprintf(to, ", \"accesses\": [");
  for (size_t k = 0; k < n; k++) {
    if (!a[k].requests) continue;
    fprintf(to, "%s", gap);
    put_access(to, &a[k]);
    gap = ", ";
  }
  fprintf(to, "]");
}

static void put_classes(FILE *to, const kiln_profile_info *t) {
  const char *gap = "";
  fprintf(to, ", \"instructions\": {");
  for (int c = 0; c < KILN_CLASS_COUNT; c++) {
    if (!t->warps[c]) continue;
    fprintf(to, "%s\"%s\": {\"warps\": %llu, \"lanes\": %llu}", gap, kiln_profile_class_name((kiln_profile_class)c),
            (unsigned long long)t->warps[c], (unsigned long long)t->lanes[c]);
    gap = ", ";
  }
  fprintf(to, "}");
}

static void put_totals(FILE *to, const kiln_profile_info *t) {
  put_u64(to, "warps", t->all_warps);
  put_u64(to, "active", t->all_active);
  put_u64(to, "lanes", t->all_lanes);
  put_u64(to, "partial", t->partial);
  put_u64(to, "branches", t->branches);
  put_u64(to, "divergent_branches", t->divergent_branches);
  put_u64(to, "f32_flops", t->f32_flops);
  put_u64(to, "f64_flops", t->f64_flops);
  put_u64(to, "half_flops", t->half_flops);
  put_u64(to, "hottest_requests", t->hottest_requests);
  put_u64(to, "dram_read", t->dram_read);
  put_u64(to, "dram_written", t->dram_written);
  put_u64(to, "dram_dirty", t->dram_dirty);
}

static void put_buffers(FILE *to, const kiln_profile_info *t) {
  fprintf(to, ", \"buffers\": [");
  for (size_t k = 0; k < t->buffer_count; k++) {
    const kiln_profile_buffer *b = &t->buffers[k];
    fprintf(to, "%s{\"address\": %llu", k ? ", " : "", (unsigned long long)b->address);
    put_u64(to, "bytes", b->bytes);
    put_u64(to, "read", b->read_bytes);
    put_u64(to, "written", b->written_bytes);
    fprintf(to, "}");
  }
  fprintf(to, "]");
}

static void put_sass_classes(FILE *to, const kiln_profile_info *t) {
  const char *gap = "";
  if (!t->sass_classified) {
    fprintf(to, "null");
    return;
  }
  fprintf(to, "{");
  for (int c = 0; c < KILN_CLASS_COUNT; c++) {
    if (!t->sass_warps[c]) continue;
    fprintf(to, "%s\"%s\": %llu", gap, kiln_profile_class_name((kiln_profile_class)c),
            (unsigned long long)t->sass_warps[c]);
    gap = ", ";
  }
  if (t->sass_other) fprintf(to, "%s\"other\": %llu", gap, (unsigned long long)t->sass_other);
  fprintf(to, "}");
}

static void put_sass(FILE *to, const kiln_profile_info *t) {
  const kiln_occupancy *o = &t->occupancy;
  static const char *const limits[] = {"warps", "blocks", "registers", "shared", "none"};
  fprintf(to,
          ", \"occupancy\": {\"registers\": %u, \"registers_real\": %s, \"blocks\": %u, \"warps\": %u, "
          "\"most_warps\": %u, \"limiter\": \"%s\", \"waves\": %.6g, \"l1_bytes\": %u}, \"sass\": ",
          o->registers, o->registers_real ? "true" : "false", o->blocks, o->warps, o->most_warps, limits[o->limiter],
          o->waves, o->l1_bytes);
  if (!t->sass.known) {
    fprintf(to, "null");
    return;
  }
  fprintf(to, "{\"registers\": %u", t->sass.registers);
  put_u64(to, "stack", t->sass.stack_bytes);
  put_u64(to, "spill_stores", t->sass.spill_store_bytes);
  put_u64(to, "spill_loads", t->sass.spill_load_bytes);
  put_u64(to, "instructions", t->sass.instructions);
  put_u64(to, "executed", t->sass.executed);
  fprintf(to, ", \"estimated\": %s, \"classes\": ", t->sass.estimated ? "true" : "false");
  put_sass_classes(to, t);
  if (t->kept_warps) put_accesses(to, t->kept, KILN_ACCESS_COUNT);
  fprintf(to, "}");
}

static void put_prediction(FILE *to, const kiln_profile_info *t) {
  const kiln_prediction *p = &t->prediction;
  fprintf(to, ", \"predicted_us\": %.6g, \"limiter\": \"%s\", \"roofline\": [", p->seconds * 1e6, p->limiter);
  for (size_t k = 0; k < p->rate_count; k++)
    fprintf(to, "%s{\"name\": \"%s\", \"amount\": %.10g, \"unit\": \"%s\", \"rate\": %.6g, \"us\": %.6g}",
            k ? ", " : "", p->rates[k].name, p->rates[k].amount, p->rates[k].unit, p->rates[k].rate,
            p->rates[k].seconds * 1e6);
  fprintf(to, "]");
}

static void put_line(FILE *to, const kiln_profile_info *t, size_t n) {
  const kiln_profile_line *l = &t->lines[n];
  fprintf(to, "{\"line\": %u", l->line);
  put_text(to, "function", l->function);
  put_text(to, "text", l->text);
  put_text(to, "class", kiln_profile_class_name(l->kind));
  put_u64(to, "warps", l->warps);
  put_u64(to, "active", l->active);
  put_u64(to, "lanes", l->lanes);
  put_u64(to, "partial", l->partial);
  put_u64(to, "divergent", l->divergent);
  put_u64(to, "sass", l->sass);
  put_u64(to, "sass_executed", l->sass_executed);
  if (t->kept_warps && l->access_count) put_u64(to, "kept", t->kept_warps[n]);
  fprintf(to, ", \"in_loop\": %s", l->in_loop ? "true" : "false");
  put_accesses(to, l->accesses, l->access_count);
  fprintf(to, "}");
}

void profile_json(FILE *to, const kiln_profile_info *t, bool lines) {
  fprintf(to, "{\"kernel\": ");
  json_string(to, t->kernel);
  put_text(to, "gpu", t->gpu);
  put_triple(to, "grid", t->grid);
  put_triple(to, "block", t->block);
  put_triple(to, "cluster", t->cluster);
  put_u64(to, "shared_bytes", t->shared_bytes);
  put_u64(to, "blocks", t->blocks);
  put_u64(to, "sampled", t->sampled);
  fprintf(to, ", \"scale\": %.10g", t->scale);
  put_prediction(to, t);
  put_sass(to, t);
  put_totals(to, t);
  put_classes(to, t);
  put_accesses(to, t->accesses, KILN_ACCESS_COUNT);
  put_buffers(to, t);
  if (lines) {
    fprintf(to, ", \"lines\": [");
    for (size_t k = 0; k < t->line_count; k++) {
      fprintf(to, "%s", k ? ", " : "");
      put_line(to, t, k);
    }
    fprintf(to, "]");
  }
  fprintf(to, "}");
}
