// What plans must say, and why they are refused. Included once, by test_plan.c.
// clang-format off

// Text: parameters' shapes, a bar, the root; or a whole module. says: parts of the printed plan; "!": must not occur.
static const struct {
  char machine; // 'g' GPU, 'h' host
  const char *text;
  uint32_t align;
  const char *says[8];
} plan_row[] = {
  {'g', "f32[4096] | r = f32[4096] negate(p0)", 0, {"x"}},
};

static const struct {
  const char *text;
  kiln_status status;
  const char *why;
  uint32_t align;
} refused_row[] = {
  {"s32[4]{0:T(4)} | r = s32[4] negate(p0)", KILN_E_UNSUPPORTED, "tiled layouts are not supported yet"},
};
