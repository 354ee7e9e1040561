// Amounts of memory as the command reads and writes them.
#include "../support/suite.h"
#include "../../tools/memory.h"

#include <string.h>

// --- sizes ----------------------------------------------------------------------------------------------------------

static const struct {
  const char *text;
  int64_t bytes; // -1: it is none
} sizes[] = {
    {"1", 1},
    {"4096", 4096},
    {"1K", 1024},
    {"512M", 512 << 20},
    {"1.5G", 3ll << 29},
    {"0.25K", 256},
    {"24T", 24ll << 40},
    {"7E", 7ll << 60},
    {"8E", -1},
    {"9223372036854775808", -1},
    {"1000000000000000000000000000000000000000000", -1},
    {"0", -1},
    {"0.0K", -1},
    {"0.0001K", -1},
    {"1.5", -1},
    {"", -1},
    {"K", -1},
    {".5K", -1},
    {"1.K", -1},
    {"-1", -1},
    {"+1", -1},
    {" 1", -1},
    {"1 K", -1},
    {"1k", -1},
    {"1KB", -1},
    {"nan", -1},
    {"inf", -1},
    {"1e9", -1},
    {"0x10", -1},
};

START_TEST(test_size) {
  int64_t bytes = -1;
  bool is_size = memory_parse(sizes[_i].text, &bytes);
  EXPECT(is_size == (sizes[_i].bytes >= 0) && bytes == sizes[_i].bytes, "'%s': found %lld", sizes[_i].text,
         (long long)bytes);
}
END_TEST

static const struct {
  int64_t bytes;
  const char *text;
} texts[] = {
    {0, "0 bytes"},    {1, "1 byte"},          {1023, "1023 bytes"},          {1024, "1.0 KiB"},
    {1536, "1.5 KiB"}, {3ll << 29, "1.5 GiB"}, {4000000000000000, "3.6 PiB"}, {INT64_MAX, "8.0 EiB"},
};

START_TEST(test_text) {
  char text[32];
  memory_text(texts[_i].bytes, text, sizeof text);
  EXPECT(strcmp(text, texts[_i].text) == 0, "%lld: found '%s'", (long long)texts[_i].bytes, text);
}
END_TEST

START_TEST(test_sums) {
  EXPECT(memory_add(2, 3) == 5 && memory_add(INT64_MAX, 1) == INT64_MAX, "sums");
  EXPECT(memory_multiply(2, 3) == 6 && memory_multiply(1ll << 62, 4) == INT64_MAX, "products");
}
END_TEST

int main(void) {
  return RUN_TESTS("memory", NO_FRAME, {test_size, sizeof sizes / sizeof *sizes},
                   {test_text, sizeof texts / sizeof *texts}, {test_sums});
}
