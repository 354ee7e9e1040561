#include "sim/gpu/gpu.h"

#define MIB *(uint64_t)1048576
#define KIB *1024u

// clang-format off
//  name        model                       sm   SMs  memory      L2            core kHz  memory kHz bus   threads blocks shared   opt-in   reserved copies f32:f64 cluster
const kl_gpu kl_gpus[] = {
  {"A100",     "NVIDIA A100-SXM4-80GB",      80, 108,  81920 MIB,  40960 KIB,   1410000,  1593000, 5120, 2048, 32, 164 KIB, 163 KIB, 1 KIB, 3,  2,  0},
  {"H100",     "NVIDIA H100 80GB HBM3",      90, 132,  81559 MIB,  51200 KIB,   1980000,  2619000, 5120, 2048, 32, 228 KIB, 227 KIB, 1 KIB, 3,  2,  16},
  {"H200",     "NVIDIA H200",                90, 132, 143771 MIB,  61440 KIB,   1980000,  3201000, 6144, 2048, 32, 228 KIB, 227 KIB, 1 KIB, 3,  2,  16},
  {"L40S",     "NVIDIA L40S",                89, 142,  46068 MIB,  98304 KIB,   2520000,  9001000,  384, 1536, 24, 100 KIB,  99 KIB, 1 KIB, 2, 64,  0},
  {"B200",     "NVIDIA B200",               100, 148, 183359 MIB, 129536 KIB,   1965000,  3996000, 8192, 2048, 32, 228 KIB, 227 KIB, 1 KIB, 4,  2,  16},
  {"RTX 4090", "NVIDIA GeForce RTX 4090",    89, 128,  24564 MIB,  73728 KIB,   2520000, 10501000,  384, 1536, 24, 100 KIB,  99 KIB, 1 KIB, 2, 64,  0},
};
// clang-format on
const size_t kl_gpus_n = KL_COUNT(kl_gpus);

static bool same_name(kl_str a, const char *b) {
  size_t i = 0;
  for (; *b; b++) {
    if (*b == ' ') continue;
    while (i < a.n && strchr(" -_", a.p[i])) i++;
    if (i >= a.n || (a.p[i] | 32) != (*b | 32)) return false;
    i++;
  }
  return i == a.n;
}

const kl_gpu *kl_gpu_find(kl_str name) {
  for (size_t i = 0; i < kl_gpus_n; i++)
    if (same_name(name, kl_gpus[i].name)) return &kl_gpus[i];
  return NULL;
}
