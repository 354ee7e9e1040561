// Every instruction that the table spells is one to ptxas, with the operands that the table says; skipped where ptxas
// is not installed.
#include "../../support/ptxas.h"
#include "../../support/suite.h"
#include "warp.h"
#include <string.h>

static const char header[] =
    ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n"
    ".reg .pred %p<9>;\n.reg .b8 %b<9>;\n.reg .b16 %h<9>;\n.reg .b32 %w<9>;\n.reg .b64 %l<9>;\n";

START_TEST(test_assembled) {
  char *text = NULL;
  size_t size = 0, count = 0;
  if (!ptxas_path()) return;
  FILE *f = open_memstream(&text, &size);
  fputs(header, f);
  for (size_t r = 0; r < lane_form_count; r++) {
    instruction i;
    bool glue = lane_forms[r].pattern && !strchr(lane_forms[r].pattern, '.');
    for (size_t k = 0; !glue && instruction_at(&lane_forms[r], k, &i); k++, count++) put_operands(f, &i, i.mnemonic);
  }
  fputs("ret;\n}\n", f);
  fclose(f);
  ptxas_result result = ptxas_run(text, size, "sm_100a");
  EXPECT(result.ok, "%s", result.log);
  ck_assert_uint_gt(count, 5000);
  free(text);
}
END_TEST

int main(void) {
  return RUN_TESTS("lanes: PTX", NO_FRAME, {test_assembled});
}
