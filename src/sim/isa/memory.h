// Rows of loads, stores and prefetches. PTX ISA 9.7.9. Operands: [a] an address; d, b a register or {registers}.
#ifndef KL_ISA_MEMORY_H
#define KL_ISA_MEMORY_H

// Parts of patterns. Spaces: of weak loads, of weak stores, of what other threads see. A scope belongs to an order;
// caching and eviction are hints.
#define KL_P_LOADED "{.global|.shared|.shared::cta|.shared::cluster|.local|.param|.param::entry|.param::func|.const}"
#define KL_P_STORED "{.global|.shared|.shared::cta|.shared::cluster|.local|.param|.param::func}"
#define KL_P_SEEN   "{.global|.shared|.shared::cta|.shared::cluster}"
#define KL_P_SCOPE  "(.cta|.cluster|.gpu|.sys)"
#define KL_P_EVICT2 "{.L2::evict_normal|.L2::evict_first|.L2::evict_last}"
#define KL_P_EVICT                                                                                                     \
  "{.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate}" KL_P_EVICT2             \
  "{.L2::cache_hint}"
#define KL_P_PREFETCH "{.L2::64B|.L2::128B|.L2::256B}"
#define KL_P_VECTOR   "{.v2|.v4|.v8}"
#define KL_P_TYPE     "(.b8|.b16|.b32|.b64|.b128|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)"

// clang-format off
//  decoded by  pattern                                                                    operands     unit    spread grade  section
#define KL_ISA_MEMORY(X)                                                                                               \
  X(load,       "ld{.weak}" KL_P_LOADED "{.ca|.cg|.cs|.lu|.cv}" KL_P_EVICT KL_P_PREFETCH KL_P_VECTOR KL_P_TYPE,                      \
                                                                                           "d, [a]{, policy}", MEMORY, OWN, EXACT, "9.7.9.8") \
  X(load,       "ld.volatile" KL_P_SEEN KL_P_EVICT2 KL_P_PREFETCH KL_P_VECTOR KL_P_TYPE,              "d, [a]",    MEMORY, OWN,   EXACT, "9.7.9.8") \
  X(load,       "ld(.relaxed|.acquire)" KL_P_SCOPE KL_P_SEEN KL_P_EVICT KL_P_PREFETCH KL_P_VECTOR KL_P_TYPE,          \
                                                                                           "d, [a]{, policy}", MEMORY, OWN, EXACT, "9.7.9.8") \
  X(load,       "ld.mmio.relaxed.sys{.global}" KL_P_TYPE,                                  "d, [a]",    MEMORY, OWN,   EXACT, "9.7.9.8") \
  X(load,       "ld.global{.ca|.cg|.cs}.nc" KL_P_EVICT KL_P_PREFETCH KL_P_VECTOR KL_P_TYPE, "d, [a]{, policy}", MEMORY, OWN, EXACT, "9.7.9.9") \
  X(load,       "ldu{.global}{.v2|.v4}" KL_P_TYPE,                                         "d, [a]",    MEMORY, OWN,   EXACT, "9.7.9.10") \
  X(store,      "st{.weak}" KL_P_STORED "{.wb|.cg|.cs|.wt}" KL_P_EVICT KL_P_VECTOR KL_P_TYPE,        "[a], b{, policy}", MEMORY, OWN, EXACT, "9.7.9.11") \
  X(store,      "st.volatile" KL_P_SEEN KL_P_EVICT2 KL_P_VECTOR KL_P_TYPE,                            "[a], b",    MEMORY, OWN,   EXACT, "9.7.9.11") \
  X(store,      "st(.relaxed|.release)" KL_P_SCOPE KL_P_SEEN KL_P_EVICT KL_P_VECTOR KL_P_TYPE, "[a], b{, policy}", MEMORY, OWN, EXACT, "9.7.9.11") \
  X(store,      "st.mmio.relaxed.sys{.global}" KL_P_TYPE,                                  "[a], b",    MEMORY, OWN,   EXACT, "9.7.9.11") \
  X(ldmatrix,   "ldmatrix.sync.aligned.m8n8(.x1|.x2|.x4){.trans}{.shared|.shared::cta}.b16",   "d, [a]",    MEMORY, OWN,   EXACT, "9.7.14.5.15") \
  X(stmatrix,   "stmatrix.sync.aligned.m8n8(.x1|.x2|.x4){.trans}{.shared|.shared::cta}.b16",   "[a], b",    MEMORY, OWN,   EXACT, "9.7.14.5.16") \
  X(nothing,    "prefetch{.global|.local}(.L1|.L2)",                                       "[a]",       MEMORY, OWN,   EXACT, "9.7.9.15") \
  X(nothing,    "prefetch.global(.L2::evict_last|.L2::evict_normal)",                      "[a]",       MEMORY, OWN,   EXACT, "9.7.9.15") \
  X(nothing,    "prefetchu.L1",                                                            "[a]",       MEMORY, OWN,   EXACT, "9.7.9.15") \
  X(nothing,    "applypriority{.global}.L2::evict_normal",                                 "[a], size", MEMORY, OWN,   EXACT, "9.7.9.16") \
  X(nothing,    "discard{.global}.L2",                                                     "[a], size", MEMORY, OWN,   EXACT, "9.7.9.17") \
  X(copy_async, "cp.async(.ca|.cg)(.shared|.shared::cta).global{.L2::cache_hint}" KL_P_PREFETCH,                      \
                                                                                           "[a], [b], n{, size}{, policy}", MEMORY, OWN, EXACT, "9.7.9.25.3.1") \
  X(copy_commit,"cp.async.commit_group",                                                   "",          MEMORY, OWN,   EXACT, "9.7.9.25.3.2") \
  X(copy_wait,  "cp.async.wait_group",                                                     "n",         MEMORY, OWN,   EXACT, "9.7.9.25.3.3") \
  X(copy_wait,  "cp.async.wait_all",                                                       "",          MEMORY, OWN,   EXACT, "9.7.9.25.3.3") \
  X(policy,     "createpolicy.fractional(.L2::evict_last|.L2::evict_normal|.L2::evict_first|.L2::evict_unchanged){.L2::evict_first|.L2::evict_unchanged}.b64", \
                                                                                           "d{, a}",    INTEGER, ALL,  EXACT, "9.7.9.18") \
  X(policy,     "createpolicy.range{.global}(.L2::evict_last|.L2::evict_normal|.L2::evict_first|.L2::evict_unchanged){.L2::evict_first|.L2::evict_unchanged}.b64",\
                                                                                           "d, [a], b, c", INTEGER, ALL, EXACT, "9.7.9.18")\
  X(policy,     "createpolicy.cvt.L2.b64",                                                 "d, a",      INTEGER, ALL,   EXACT, "9.7.9.18")
// clang-format on

#endif
