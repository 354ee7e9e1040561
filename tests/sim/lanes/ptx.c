// Every instruction that the table spells is one to ptxas, with the operands that the table says; skipped where ptxas
// is not installed.
#include "../../support/ptxas.h"
#include "../../support/suite.h"
#include "warp.h"
#include <stdio.h>
#include <string.h>

static const char header[] =
    ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n"
    ".reg .pred %p<9>;\n.reg .b8 %b<9>;\n.reg .b16 %h<9>;\n.reg .b32 %w<9>;\n.reg .b64 %l<9>;\n";

// A register of the letter's kind.
static char kind_of(char letter) {
  return letter == 'P' ? 'p' : letter == 'B' ? 'b' : (char)(letter | 32);
}

static void put_instruction(FILE *f, const instruction *i) {
  const char *operands = i->form->operands, *equals = strchr(operands, '=');
  int n = 1;
  fprintf(f, "%s %%%c0", i->mnemonic, kind_of(*operands));
  if (*operands == 'P' || operands[1] == '|') fputs("|%p1", f);
  for (const char *p = equals + 1; *p; p++) {
    int count = *p >= '2' && *p <= '4' ? *p++ - '0' : 1;
    fputs(count > 1 ? ", {" : ", ", f);
    for (int k = 0; k < count; k++) {
      if (*p == 'i')
        fputs("0x1a", f);
      else
        fprintf(f, "%s%%%c%d", k ? ", " : "", kind_of(*p), n++);
    }
    if (count > 1) fputs("}", f);
  }
  fputs(";\n", f);
}

START_TEST(test_assembled) {
  char *text = NULL;
  size_t size = 0, count = 0;
  if (!ptxas_path()) return;
  FILE *f = open_memstream(&text, &size);
  fputs(header, f);
  for (size_t r = 0; r < lane_form_count; r++) {
    instruction i;
    bool glue = lane_forms[r].pattern && !strchr(lane_forms[r].pattern, '.');
    for (size_t k = 0; !glue && instruction_at(&lane_forms[r], k, &i); k++, count++) put_instruction(f, &i);
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
