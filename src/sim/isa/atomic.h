// Rows of atomic operations. PTX ISA 9.7.13.
#ifndef KL_ISA_ATOMIC_H
#define KL_ISA_ATOMIC_H

#define KL_P_ORDER  "{.relaxed|.acquire|.release|.acq_rel}{.cta|.cluster|.gpu|.sys}"
#define KL_P_RORDER "{.relaxed|.release}{.cta|.cluster|.gpu|.sys}"

// clang-format off
//  decoded by  pattern                                                                  operands          unit    spread grade  section
#define KL_ISA_ATOMIC(X)                                                                                               \
  X(atom,       "atom" KL_P_ORDER KL_P_SEEN "(.and|.or|.xor|.exch){.L2::cache_hint}(.b32|.b64|.b128)", "d, [a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.5") \
  X(atom,       "atom" KL_P_ORDER KL_P_SEEN ".cas(.b16|.b32|.b64|.b128)", "d, [a], b, c", ATOMIC, OWN, EXACT, "9.7.13.5") \
  X(atom,       "atom" KL_P_ORDER KL_P_SEEN "(.inc|.dec){.L2::cache_hint}.u32",        "d, [a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.5") \
  X(atom,       "atom" KL_P_ORDER KL_P_SEEN "(.add|.min|.max){.L2::cache_hint}(.u32|.s32|.u64|.s64)", "d, [a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.5") \
  X(atom,       "atom" KL_P_ORDER KL_P_SEEN ".add{.L2::cache_hint}(.f32|.f64)",        "d, [a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.5") \
  X(atom,       "atom" KL_P_ORDER KL_P_SEEN ".add.noftz{.L2::cache_hint}(.f16|.f16x2|.bf16|.bf16x2)", "d, [a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.5") \
  X(atom,       "atom" KL_P_ORDER "{.global}(.add|.min|.max){.noftz}{.L2::cache_hint}(.v2|.v4|.v8)(.f16|.bf16|.f16x2|.bf16x2|.f32)", "d, [a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.5") \
  X(red,        "red" KL_P_RORDER KL_P_SEEN "(.and|.or|.xor){.L2::cache_hint}(.b32|.b64)", "[a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.7") \
  X(red,        "red" KL_P_RORDER KL_P_SEEN "(.inc|.dec){.L2::cache_hint}.u32",         "[a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.7") \
  X(red,        "red" KL_P_RORDER KL_P_SEEN "(.add|.min|.max){.L2::cache_hint}(.u32|.s32|.u64|.s64)", "[a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.7") \
  X(red,        "red" KL_P_RORDER KL_P_SEEN ".add{.L2::cache_hint}(.f32|.f64)",         "[a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.7") \
  X(red,        "red" KL_P_RORDER KL_P_SEEN ".add.noftz{.L2::cache_hint}(.f16|.f16x2|.bf16|.bf16x2)", "[a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.7") \
  X(red,        "red" KL_P_RORDER "{.global}(.add|.min|.max){.noftz}{.L2::cache_hint}(.v2|.v4|.v8)(.f16|.bf16|.f16x2|.bf16x2|.f32)", "[a], b{, policy}", ATOMIC, OWN, EXACT, "9.7.13.7")
// clang-format on

#endif
