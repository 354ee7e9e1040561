// Calls of libraries that XLA makes of ops for a GPU. Each row has a call, and the same function in ops: what the
// evaluator gives of one it must find right in the other. Host and simulator run the call, the evaluator judges, and
// both must have the same bits.
//
// KILN_LIBRARY_ROW runs one row alone and prints it.
#include "harness.h"
#include "support/context.h"
#include "support/share.h"

#include <stdio.h>
#include <stdlib.h>

#define LISTS(lhs, rhs, lhs_batch, rhs_batch)                                                                          \
  "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[" lhs "],\"rhs_contracting_dimensions\":[" rhs           \
  "],\"lhs_batch_dimensions\":[" lhs_batch "],\"rhs_batch_dimensions\":[" rhs_batch "]}"
#define PLAIN LISTS("\"1\"", "\"0\"", "", "")
// Settings of a product: alpha, beta, dimensions, and others.
#define GEMM(alpha, beta, dims, more)                                                                                  \
  "{\"operation_queue_id\":\"0\",\"gemm_backend_config\":{\"alpha_real\":" alpha ",\"beta\":" beta "," dims            \
  ",\"alpha_imag\":0,\"precision_config\":{\"operand_precision\":[\"DEFAULT\",\"DEFAULT\"],\"algorithm\":"             \
  "\"ALG_UNSET\"}," more "\"lhs_stride\":\"35\",\"grad_x\":false},\"force_earliest_schedule\":false}"
#define EPILOGUE(name) "\"epilogue\":\"" name "\","
#define CONV(mode, scale, side, more)                                                                                  \
  "{\"cudnn_conv_backend_config\":{\"activation_mode\":\"" mode "\",\"conv_result_scale\":" scale                      \
  ",\"side_input_scale\":" side ",\"leakyrelu_alpha\":0.25" more "},\"reification_cost\":[]}"
#define STEPS(text)       CONV("kNone", "1", "0", ",\"serialized_graph\":\"" text "\"")
#define NO_MORE           CONV("kNone", "1", "0", "")

#define BATCHES(lhs, rhs) "\"lhs_batch_dimensions\":[" lhs "],\"rhs_batch_dimensions\":[" rhs "]"
#define ATTENTION(scale, mask, batches, more)                                                                          \
  "{\"operation_queue_id\": \"0\", \"cudnn_fmha_backend_config\": {\"fmha_scale\": " scale ", \"mask_type\": \"" mask  \
  "\", \"dropout_rate\": 0.0" more ", " batches "}}"
#define HEADS_LAST       "\"bmm1_dot_dimension_numbers\": {" BATCHES("\"0\",\"2\"", "\"0\",\"2\"") "}"
#define HEADS_FIRST_BACK "\"bmm1_grad_gemm1_dot_dimension_numbers\": {" BATCHES("\"0\",\"1\"", "\"0\",\"1\"") "}"

typedef struct row {
  const char *params; // statements
  const char *call;   // results, "custom-call(...)" and its attributes but for the target and settings
  const char *target, *config;
  const char *results; // of the call that are looked at: numbers of elements; NULL: it is an array
  const char *ops;     // statements whose values r0, r1 ... are these
} row;

#define AB     "a = f32[5,7] parameter(0) b = f32[7,3] parameter(1) "
#define HALVES "a = bf16[5,7] parameter(0) b = bf16[7,3] parameter(1) c = bf16[3] parameter(2) "
#define DOT    " dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
#define C53    "broadcast(v), dimensions={1} "
// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) of an f32[5,3].
#define GELU                                                                                                           \
  "x2 = f32[5,3] multiply(x, x) x3 = f32[5,3] multiply(x2, x) k = f32[] constant(0.044715) "                           \
  "kk = f32[5,3] broadcast(k), dimensions={} q = f32[5,3] multiply(x3, kk) w = f32[5,3] add(x, q) "                    \
  "h = f32[] constant(0.7978845608) hh = f32[5,3] broadcast(h), dimensions={} u = f32[5,3] multiply(w, hh) "           \
  "t = f32[5,3] tanh(u) o = f32[] constant(1) oo = f32[5,3] broadcast(o), dimensions={} p = f32[5,3] add(t, oo) "      \
  "e = f32[] constant(0.5) ee = f32[5,3] broadcast(e), dimensions={} s = f32[5,3] multiply(p, ee) "                    \
  "y = f32[5,3] multiply(x, s) "
#define IMAGE        "a = f32[2,6,5,4] parameter(0) b = f32[3,2,4,6] parameter(1) "
#define IMAGE_WINDOW "window={size=3x2 stride=2x1 pad=1_0x0_2 rhs_dilate=1x2}, dim_labels=b01f_01io->b01f"
#define IMAGE_CONV   " convolution(a, b), " IMAGE_WINDOW " "
#define FUSED        "c = f32[6] parameter(2) "
#define FUSED_SUM                                                                                                      \
  "s = f32[2,3,5,6]" IMAGE_CONV "cc = f32[2,3,5,6] broadcast(c), dimensions={3} x = f32[2,3,5,6] add(s, cc) "
#define NUMBER(name, v) name "0 = f32[] constant(" v ") " name " = f32[2,3,5,6] broadcast(" name "0), dimensions={} "

// clang-format off
static const row rows[] = {
    // --- products ---
    {AB, "(f32[5,3], s8[4096]) custom-call(a, b)", "__cublas$lt$matmul", GEMM("1", "0", PLAIN, EPILOGUE("DEFAULT")), "0",
     "r0 = f32[5,3]" DOT},
    {AB, "f32[5,3] custom-call(a, b)", "__cublas$gemm",
     "\"{\\\"alpha_real\\\":2.5,\\\"alpha_imag\\\":0,\\\"beta\\\":0,\\\"dot_dimension_numbers\\\":{\\\"lhs_contracting_dimensions\\\":[\\\"1\\\"],"
     "\\\"rhs_contracting_dimensions\\\":[\\\"0\\\"],\\\"lhs_batch_dimensions\\\":[],\\\"rhs_batch_dimensions\\\":[]},\\\"epilogue\\\":\\\"DEFAULT\\\"}\"", NULL,
     "s = f32[5,3]" DOT "k = f32[] constant(2.5) kk = f32[5,3] broadcast(k), dimensions={} r0 = f32[5,3] multiply(s, kk) "},
    {"a = f64[6,2,7]{0,2,1} parameter(0) b = f64[2,3,7] parameter(1) ", "(f64[2,6,3]{1,2,0}, s8[0]) custom-call(a, b)", "__cublas$gemm",
     GEMM("1", "0", LISTS("\"2\"", "\"2\"", "\"1\"", "\"0\""), ""), "0",
     "r0 = f64[2,6,3]{1,2,0} dot(a, b), lhs_batch_dims={1}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2} "},
    {AB "c = f32[5,3] parameter(2) ", "(f32[5,3], s8[64]) custom-call(a, b, c), output_to_operand_aliasing={{0}: (2, {})}", "__cublas$lt$matmul",
     GEMM("2", "-3.5", PLAIN, EPILOGUE("DEFAULT")), "0",
     "s = f32[5,3]" DOT "k = f32[] constant(2) kk = f32[5,3] broadcast(k), dimensions={} m = f32[5,3] multiply(s, kk) "
     "l = f32[] constant(-3.5) ll = f32[5,3] broadcast(l), dimensions={} n = f32[5,3] multiply(c, ll) r0 = f32[5,3] add(m, n) "},
    {"a = bf16[5,7] parameter(0) b = f16[7,3] parameter(1) c = bf16[5,3] parameter(2) ", "(f32[5,3], s8[64]) custom-call(a, b, c)", "__cublas$lt$matmul",
     GEMM("1", "1", PLAIN, EPILOGUE("DEFAULT")), "0", "s = f32[5,3]" DOT "m = f32[5,3] convert(c) r0 = f32[5,3] add(s, m) "},
    {HALVES, "(bf16[5,3], s8[64]) custom-call(a, b, c)", "__cublas$lt$matmul", GEMM("1", "0", PLAIN, EPILOGUE("BIAS_RELU")), "0",
     "s = f32[5,3]" DOT "v = f32[3] convert(c) m = f32[5,3] " C53 "x = f32[5,3] add(s, m) z = f32[] constant(0) zz = f32[5,3] broadcast(z), dimensions={} "
     "y = f32[5,3] maximum(x, zz) r0 = bf16[5,3] convert(y) "},
    // Along neighbours in memory, which are rows here.
    {AB "c = f32[5] parameter(2) ", "(f32[5,3]{0,1}, s8[64]) custom-call(a, b, c)", "__cublas$lt$matmul", GEMM("1", "0", PLAIN, EPILOGUE("BIAS")), "0",
     "s = f32[5,3]" DOT "m = f32[5,3] broadcast(c), dimensions={0} r0 = f32[5,3]{0,1} add(s, m) "},
    {HALVES, "(bf16[5,3], bf16[5,3], s8[64]) custom-call(a, b, c)", "__cublas$lt$matmul", GEMM("1", "0", PLAIN, EPILOGUE("BIAS_GELU_AUX")), "01",
     "d = f32[5,3]" DOT "v = f32[3] convert(c) m = f32[5,3] " C53 "x = f32[5,3] add(d, m) r1 = bf16[5,3] convert(x) " GELU "r0 = bf16[5,3] convert(y) "},
    {AB, "(f32[5,3], f32[5,3]) custom-call(a, b)", "__cublas$lt$matmul", GEMM("1", "0", PLAIN, EPILOGUE("GELU_AUX")), "01",
     "x = f32[5,3]" DOT GELU "r0 = f32[5,3] copy(y) r1 = f32[5,3] copy(x) "},
    {AB, "(f16[5,3], s8[3]) custom-call(a, b)", "__cublas$lt$matmul", GEMM("1", "0", PLAIN, EPILOGUE("SILU")), "0",
     "x = f32[5,3]" DOT "l = f32[5,3] logistic(x) y = f32[5,3] multiply(x, l) r0 = f16[5,3] convert(y) "},
    {"a = f64[5,7] parameter(0) b = f64[7,3] parameter(1) c = f64[5,3] parameter(2) d = f64[3] parameter(3) ", "(f64[5,3], s8[3]) custom-call(a, b, c, d)",
     "__cublas$lt$matmul", GEMM("1", "1", PLAIN, EPILOGUE("BIAS")), "0",
     "s = f64[5,3]" DOT "m = f64[5,3] add(s, c) n = f64[5,3] broadcast(d), dimensions={1} r0 = f64[5,3] add(m, n) "},
    {"a = c64[5,7] parameter(0) b = c64[7,3] parameter(1) c = c64[5,3] parameter(2) ", "(c64[5,3], s8[3]) custom-call(a, b, c)", "__cublas$gemm",
     "{\"alpha_real\":2,\"alpha_imag\":-1.5,\"beta\":0.5," PLAIN "}", "0",
     "s = c64[5,3]" DOT "k = c64[] constant((2, -1.5)) kk = c64[5,3] broadcast(k), dimensions={} m = c64[5,3] multiply(s, kk) "
     "l = c64[] constant((0.5, 0)) ll = c64[5,3] broadcast(l), dimensions={} n = c64[5,3] multiply(c, ll) r0 = c64[5,3] add(m, n) "},
    {"a = s8[5,7] parameter(0) b = s8[7,3] parameter(1) ", "(s32[5,3], s8[3]) custom-call(a, b)", "__cublas$lt$matmul", GEMM("1", "0", PLAIN, EPILOGUE("DEFAULT")), "0",
     "r0 = s32[5,3]" DOT},
    {"a = s8[5,7] parameter(0) b = s8[7,3] parameter(1) ", "(f32[5,3], s8[3]) custom-call(a, b)", "__cublas$gemm", GEMM("0.125", "0", PLAIN, ""), "0",
     "s = f32[5,3]" DOT "k = f32[] constant(0.125) kk = f32[5,3] broadcast(k), dimensions={} r0 = f32[5,3] multiply(s, kk) "},
    {AB, "f32[5,3] custom-call(a, b)", "__cublas$lt$matmul",
     "{\"alpha_real\":1,\"beta\":0," PLAIN ",\"precision_config\":{\"algorithm\":\"ALG_DOT_F64_F64_F64\"}}", NULL,
     "r0 = f32[5,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_f64_f64_f64 "},
    {"a = f32[5,0] parameter(0) b = f32[0,3] parameter(1) c = f32[3] parameter(2) ", "(f32[5,3], s8[0]) custom-call(a, b, c)", "__cublas$lt$matmul",
     GEMM("1", "0", PLAIN, EPILOGUE("BIAS")), "0", "r0 = f32[5,3] broadcast(c), dimensions={1} "},
    {"a = f32[0,7] parameter(0) b = f32[7,3] parameter(1) ", "(f32[0,3], s8[0]) custom-call(a, b)", "__cublas$lt$matmul",
     GEMM("1", "0", PLAIN, EPILOGUE("RELU")), "0", "r0 = f32[0,3]" DOT},
    // Memory beside a result is zeros to who looks at it.
    {AB, "(f32[5,3], s8[5]) custom-call(a, b)", "__cublas$gemm", GEMM("1", "0", PLAIN, ""), "01",
     "r0 = f32[5,3]" DOT "z = s8[] constant(0) r1 = s8[5] broadcast(z), dimensions={} "},

    // --- of 8 bits ---
    {"a = f8e4m3fn[5,7] parameter(0) b = f8e5m2[7,3] parameter(1) p = f32[] parameter(2) q = f32[] parameter(3) c = bf16[3] parameter(4) ",
     "(bf16[5,3], s8[4]) custom-call(a, b, p, q, c)", "__cublas$lt$matmul$f8", GEMM("0.75", "0", PLAIN, EPILOGUE("BIAS_RELU") "\"scale_mode\":1,"), "0",
     "s = f32[5,3]" DOT "j = f32[] multiply(p, q) l = f32[] constant(0.75) k = f32[] multiply(j, l) kk = f32[5,3] broadcast(k), dimensions={} m = f32[5,3] multiply(s, kk) v = f32[3] convert(c) "
     "n = f32[5,3] " C53 "x = f32[5,3] add(m, n) z = f32[] constant(0) zz = f32[5,3] broadcast(z), dimensions={} y = f32[5,3] maximum(x, zz) r0 = bf16[5,3] convert(y) "},
    {"a = f8e4m3fn[5,7] parameter(0) b = f8e4m3fn[7,3] parameter(1) d = f16[5,3] parameter(2) p = f32[] parameter(3) q = f32[] parameter(4) e = f32[] parameter(5) ",
     "(f8e4m3fn[5,3], f32[], s8[4]) custom-call(a, b, d, p, q, e)", "__cublas$lt$matmul$f8", GEMM("1", "1", PLAIN, EPILOGUE("DEFAULT") "\"damax_output\":true,"), "01",
     "s = f32[5,3]" DOT "k = f32[] multiply(p, q) kk = f32[5,3] broadcast(k), dimensions={} m = f32[5,3] multiply(s, kk) v = f32[5,3] convert(d) "
     "x = f32[5,3] add(m, v) y = f32[5,3] abs(x) z = f32[] constant(0) r1 = f32[] reduce(y, z), dimensions={0,1}, to_apply=max ee = f32[5,3] broadcast(e), dimensions={} "
     "w = f32[5,3] multiply(x, ee) h = f32[] constant(448) hh = f32[5,3] broadcast(h), dimensions={} l = f32[] constant(-448) ll = f32[5,3] broadcast(l), dimensions={} "
     "c = f32[5,3] clamp(ll, w, hh) r0 = f8e4m3fn[5,3] convert(c) "},
    // As older modules have it.
    {"a = f8e5m2[5,7] parameter(0) b = f8e4m3fn[7,3] parameter(1) p = f32[] parameter(2) q = f32[] parameter(3) o = f32[] parameter(4) e = f32[] parameter(5) c = f32[3] parameter(6) ",
     "f8e5m2[5,3] custom-call(a, b, p, q, o, e, c)", "__cublas$lt$matmul$f8", GEMM("1", "0", PLAIN, EPILOGUE("BIAS")), NULL,
     "s = f32[5,3]" DOT "k = f32[] multiply(p, q) kk = f32[5,3] broadcast(k), dimensions={} m = f32[5,3] multiply(s, kk) "
     "n = f32[5,3] broadcast(c), dimensions={1} x = f32[5,3] add(m, n) ee = f32[5,3] broadcast(e), dimensions={} w = f32[5,3] multiply(x, ee) "
     "h = f32[] constant(57344) hh = f32[5,3] broadcast(h), dimensions={} l = f32[] constant(-57344) ll = f32[5,3] broadcast(l), dimensions={} "
     "y = f32[5,3] clamp(ll, w, hh) r0 = f8e5m2[5,3] convert(y) "},

    // --- convolutions ---
    {IMAGE, "(f32[2,3,5,6]{0,3,2,1}, u8[7]) custom-call(a, b), " IMAGE_WINDOW, "__cudnn$convForward", NO_MORE, "0", "r0 = f32[2,3,5,6]{0,3,2,1}" IMAGE_CONV},
    {"a = f16[2,6,9] parameter(0) b = f16[8,3,4] parameter(1) ", "(f16[2,8,11], u8[0]) custom-call(a, b), window={size=4 pad=4_1 rhs_reversal=1}, "
     "dim_labels=bf0_oi0->bf0, feature_group_count=2", "__cudnn$convForward", NO_MORE, "0",
     "r0 = f16[2,8,11] convolution(a, b), window={size=4 pad=4_1 rhs_reversal=1}, dim_labels=bf0_oi0->bf0, feature_group_count=2 "},
    {IMAGE FUSED, "(f32[2,3,5,6], u8[0]) custom-call(a, b, c), " IMAGE_WINDOW, "__cudnn$convBiasActivationForward", CONV("kRelu", "1", "0", ""), "0",
     FUSED_SUM NUMBER("z", "0") "r0 = f32[2,3,5,6] maximum(x, z) "},
    {IMAGE FUSED "d = f16[2,3,5,6] parameter(3) ", "(f32[2,3,5,6], u8[0]) custom-call(a, b, c, d), " IMAGE_WINDOW, "__cudnn$convBiasActivationForward",
     CONV("kNone", "2.5", "0.5", ""), "0",
     "s = f32[2,3,5,6]" IMAGE_CONV NUMBER("k", "2.5") "m = f32[2,3,5,6] multiply(s, k) dd = f32[2,3,5,6] convert(d) " NUMBER("l", "0.5")
     "n = f32[2,3,5,6] multiply(dd, l) o = f32[2,3,5,6] add(m, n) cc = f32[2,3,5,6] broadcast(c), dimensions={3} r0 = f32[2,3,5,6] add(o, cc) "},
    {IMAGE FUSED, "(f32[2,3,5,6], u8[0]) custom-call(a, b, c), " IMAGE_WINDOW, "__cudnn$convBiasActivationForward", CONV("kRelu6", "1", "0", ""), "0",
     FUSED_SUM NUMBER("z", "0") NUMBER("h", "6") "r0 = f32[2,3,5,6] clamp(z, x, h) "},
    {IMAGE FUSED, "(f32[2,3,5,6], u8[0]) custom-call(a, b, c), " IMAGE_WINDOW, "__cudnn$convBiasActivationForward", CONV("kElu", "1", "0", ""), "0",
     FUSED_SUM NUMBER("z", "0") "p = pred[2,3,5,6] compare(x, z), direction=GT e = f32[2,3,5,6] exponential-minus-one(x) r0 = f32[2,3,5,6] select(p, x, e) "},
    {IMAGE FUSED, "(f32[2,3,5,6], u8[0]) custom-call(a, b, c), " IMAGE_WINDOW, "__cudnn$convBiasActivationForward", CONV("kLeakyRelu", "1", "0", ""), "0",
     FUSED_SUM NUMBER("z", "0") "p = pred[2,3,5,6] compare(x, z), direction=GT " NUMBER("k", "0.25")
     "e = f32[2,3,5,6] multiply(x, k) r0 = f32[2,3,5,6] select(p, x, e) "},
    {IMAGE FUSED, "(f32[2,3,5,6], u8[0]) custom-call(a, b, c), " IMAGE_WINDOW, "__cudnn$convBiasActivationForward", CONV("kTanh", "1", "0", ""), "0",
     FUSED_SUM "r0 = f32[2,3,5,6] tanh(x) "},
    {IMAGE FUSED, "(f32[2,3,5,6], u8[0]) custom-call(a, b, c), " IMAGE_WINDOW, "__cudnn$convBiasActivationForward", CONV("kSigmoid", "1", "0", ""), "0",
     FUSED_SUM "r0 = f32[2,3,5,6] logistic(x) "},
    {IMAGE FUSED, "(f32[2,3,5,6], u8[0]) custom-call(a, b, c), " IMAGE_WINDOW, "__cudnn$convBiasActivationForward", CONV("kGeluExact", "1", "0", ""), "0",
     FUSED_SUM NUMBER("k", "0.70710678118654752") "m = f32[2,3,5,6] multiply(x, k) e = f32[2,3,5,6] erf(m) " NUMBER("o", "1") "p = f32[2,3,5,6] add(e, o) "
     NUMBER("h", "0.5") "q = f32[2,3,5,6] multiply(p, h) r0 = f32[2,3,5,6] multiply(x, q) "},
    // Integers are held to their range; floats are rounded before.
    {"a = s8[2,6,5,4] parameter(0) b = s8[3,2,4,6] parameter(1) ", "(s8[2,3,5,6], u8[0]) custom-call(a, b), " IMAGE_WINDOW, "__cudnn$convForward", NO_MORE, "0",
     "s = s32[2,3,5,6]" IMAGE_CONV "l0 = s32[] constant(-128) l = s32[2,3,5,6] broadcast(l0), dimensions={} h0 = s32[] constant(127) "
     "h = s32[2,3,5,6] broadcast(h0), dimensions={} c = s32[2,3,5,6] clamp(l, s, h) r0 = s8[2,3,5,6] convert(c) "},
    {"a = s8[2,6,5,4] parameter(0) b = s8[3,2,4,6] parameter(1) " FUSED, "(s8[2,3,5,6], u8[0]) custom-call(a, b, c), " IMAGE_WINDOW,
     "__cudnn$convBiasActivationForward", CONV("kNone", "0.015625", "0", ""), "0",
     "i = s32[2,3,5,6]" IMAGE_CONV "s = f32[2,3,5,6] convert(i) " NUMBER("k", "0.015625") "m = f32[2,3,5,6] multiply(s, k) "
     "cc = f32[2,3,5,6] broadcast(c), dimensions={3} x = f32[2,3,5,6] add(m, cc) y = f32[2,3,5,6] round-nearest-even(x) "
     NUMBER("l", "-128") NUMBER("h", "127") "w = f32[2,3,5,6] clamp(l, y, h) r0 = s8[2,3,5,6] convert(w) "},
    // Sums are as wide as the result, or hold what they are of; what comes behind them is in f32 for integers, too.
    {"a = s32[2,6,5,4] parameter(0) b = s64[3,2,4,6] parameter(1) ", "(s64[2,3,5,6], u8[0]) custom-call(a, b), " IMAGE_WINDOW, "__cudnn$convForward", NO_MORE, "0",
     "r0 = s64[2,3,5,6]" IMAGE_CONV},
    {"a = s32[2,6,5,4] parameter(0) b = s32[3,2,4,6] parameter(1) ", "(u16[2,3,5,6], u8[0]) custom-call(a, b), " IMAGE_WINDOW, "__cudnn$convForward", NO_MORE, "0",
     "s = s64[2,3,5,6]" IMAGE_CONV "l0 = s64[] constant(0) l = s64[2,3,5,6] broadcast(l0), dimensions={} h0 = s64[] constant(65535) "
     "h = s64[2,3,5,6] broadcast(h0), dimensions={} c = s64[2,3,5,6] clamp(l, s, h) r0 = u16[2,3,5,6] convert(c) "},
    {"a = s8[2,6,5,4] parameter(0) b = s8[3,2,4,6] parameter(1) ", "(s32[2,3,5,6], u8[0]) custom-call(a, b), " IMAGE_WINDOW, "__cudnn$convForward",
     CONV("kNone", "2.75", "0", ""), "0",
     "s = s32[2,3,5,6]" IMAGE_CONV "t = f32[2,3,5,6] convert(s) " NUMBER("k", "2.75") "m = f32[2,3,5,6] multiply(t, k) "
     "w = f32[2,3,5,6] round-nearest-even(m) r0 = s32[2,3,5,6] convert(w) "},
    {"a = s8[2,6,5,4] parameter(0) b = s8[3,2,4,6] parameter(1) " FUSED, "(s32[2,3,5,6], u8[0]) custom-call(a, b, c), " IMAGE_WINDOW,
     "__cudnn$convBiasActivationForward", CONV("kSigmoid", "1", "0", ""), "0",
     "s = s32[2,3,5,6]" IMAGE_CONV "t = f32[2,3,5,6] convert(s) cc = f32[2,3,5,6] broadcast(c), dimensions={3} x = f32[2,3,5,6] add(t, cc) "
     "y = f32[2,3,5,6] logistic(x) w = f32[2,3,5,6] round-nearest-even(y) r0 = s32[2,3,5,6] convert(w) "},

    // --- back: windows by hand ---
    {"a = f32[2,3,5,6] parameter(0) b = f32[3,2,4,6] parameter(1) ", "(f32[2,6,5,4], u8[0]) custom-call(a, b), " IMAGE_WINDOW, "__cudnn$convBackwardInput", NO_MORE, "0",
     "r0 = f32[2,6,5,4] convolution(a, b), window={size=3x2 pad=1_2x2_0 lhs_dilate=2x1 rhs_dilate=1x2 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f "},
    {"a = f32[2,6,5,4] parameter(0) b = f32[2,3,5,6] parameter(1) ", "(f32[3,2,4,6], u8[0]) custom-call(a, b), " IMAGE_WINDOW, "__cudnn$convBackwardFilter", NO_MORE, "0",
     "r0 = f32[3,2,4,6] convolution(a, b), window={size=3x5 stride=1x2 pad=1_0x0_2 rhs_dilate=2x1}, dim_labels=f01b_i01o->01bf "},
    // In groups, each by itself; and a window that is reversed forward.
    {"a = f32[2,4,6] parameter(0) b = f32[3,2,6] parameter(1) ", "(f32[2,6,4], u8[0]) custom-call(a, b), window={size=3 rhs_reversal=1}, dim_labels=b0f_0io->b0f, "
     "feature_group_count=2", "__cudnn$convBackwardInput", NO_MORE, "0",
     "b0 = f32[3,2,3] slice(b), slice={[0:3], [0:2], [0:3]} b1 = f32[3,2,3] slice(b), slice={[0:3], [0:2], [3:6]} "
     "a0 = f32[2,4,3] slice(a), slice={[0:2], [0:4], [0:3]} a1 = f32[2,4,3] slice(a), slice={[0:2], [0:4], [3:6]} "
     "c0 = f32[2,6,2] convolution(a0, b0), window={size=3 pad=2_2}, dim_labels=b0f_0oi->b0f "
     "c1 = f32[2,6,2] convolution(a1, b1), window={size=3 pad=2_2}, dim_labels=b0f_0oi->b0f "
     "r0 = f32[2,6,4] concatenate(c0, c1), dimensions={2} "},
    {"a = f32[2,6,4] parameter(0) b = f32[2,4,6] parameter(1) ", "(f32[3,2,6], u8[0]) custom-call(a, b), window={size=3 rhs_reversal=1}, dim_labels=b0f_0io->b0f, "
     "feature_group_count=2", "__cudnn$convBackwardFilter", NO_MORE, "0",
     "a0 = f32[2,6,2] slice(a), slice={[0:2], [0:6], [0:2]} a1 = f32[2,6,2] slice(a), slice={[0:2], [0:6], [2:4]} "
     "b0 = f32[2,4,3] slice(b), slice={[0:2], [0:4], [0:3]} b1 = f32[2,4,3] slice(b), slice={[0:2], [0:4], [3:6]} "
     "c0 = f32[3,2,3] convolution(a0, b0), window={size=4}, dim_labels=f0b_i0o->0bf c1 = f32[3,2,3] convolution(a1, b1), window={size=4}, dim_labels=f0b_i0o->0bf "
     "c = f32[3,2,6] concatenate(c0, c1), dimensions={2} r0 = f32[3,2,6] reverse(c), dimensions={0} "},
    {"a = f32[0,4,6] parameter(0) b = f32[3,2,6] parameter(1) ", "(f32[0,6,2], u8[0]) custom-call(a, b), window={size=3}, dim_labels=b0f_0io->b0f",
     "__cudnn$convBackwardInput", NO_MORE, "0", "z = f32[] constant(0) r0 = f32[0,6,2] broadcast(z), dimensions={} "},
    {"a = f32[0,6,2] parameter(0) b = f32[0,4,6] parameter(1) ", "(f32[3,2,6], u8[0]) custom-call(a, b), window={size=3}, dim_labels=b0f_0io->b0f",
     "__cudnn$convBackwardFilter", NO_MORE, "0", "z = f32[] constant(0) r0 = f32[3,2,6] broadcast(z), dimensions={} "},
    {"a = f32[2,0,6] parameter(0) b = f32[3,2,6] parameter(1) ", "(f32[2,2,2], u8[0]) custom-call(a, b), window={size=3 stride=2}, dim_labels=b0f_0io->b0f",
     "__cudnn$convBackwardInput", NO_MORE, "0", "z = f32[] constant(0) r0 = f32[2,2,2] broadcast(z), dimensions={} "},
    {"a = f32[2,2,2] parameter(0) b = f32[2,0,6] parameter(1) ", "(f32[3,2,6], u8[0]) custom-call(a, b), window={size=3}, dim_labels=b0f_0io->b0f",
     "__cudnn$convBackwardFilter", NO_MORE, "0", "z = f32[] constant(0) r0 = f32[3,2,6] broadcast(z), dimensions={} "},

    // --- steps behind a convolution ---
    {"a = f8e4m3fn[2,6,5,4] parameter(0) b = f8e5m2[3,2,4,6] parameter(1) p = f32[] parameter(2) q = f32[] parameter(3) ",
     "(f8e4m3fn[2,3,5,6], f32[], u8[0]) custom-call(a, b, p, q), " IMAGE_WINDOW, "__cudnn$convForwardGraph",
     STEPS("8589934602:[f32]conv();9:[f32]scale(8589934602);-2:[f8e4m3fn]invscale(9);1:[f32]amax(-2);"), "01",
     "s = f32[2,3,5,6]" IMAGE_CONV "pp = f32[2,3,5,6] broadcast(p), dimensions={} m = f32[2,3,5,6] multiply(s, pp) qq = f32[2,3,5,6] broadcast(q), dimensions={} "
     "x = f32[2,3,5,6] divide(m, qq) y = f32[2,3,5,6] abs(x) o = f32[] constant(0) r1 = f32[] reduce(y, o), dimensions={0,1,2,3}, to_apply=max "
     NUMBER("l", "-448") NUMBER("h", "448") "w = f32[2,3,5,6] clamp(l, x, h) r0 = f8e4m3fn[2,3,5,6] convert(w) "},
    {IMAGE "p = f16[1] parameter(2) d = f16[2,3,5,6] parameter(3) ", "(f16[2,3,5,6], u8[0]) custom-call(a, b, p, d), " IMAGE_WINDOW, "__cudnn$convForwardGraph",
     STEPS("5:[f16]conv();7:[f16]scale(5);8:[f16]add(7);3:[f16]relu(8);"), "0",
     "s = f16[2,3,5,6]" IMAGE_CONV "f = f16[] reshape(p) pp = f16[2,3,5,6] broadcast(f), dimensions={} m = f16[2,3,5,6] multiply(s, pp) x = f16[2,3,5,6] add(m, d) "
     "z0 = f16[] constant(0) z = f16[2,3,5,6] broadcast(z0), dimensions={} r0 = f16[2,3,5,6] maximum(x, z) "},
    {IMAGE "d = f32[2,3,5,6] parameter(2) p = f32[] parameter(3) ", "(f32[2,3,5,6], u8[0]) custom-call(a, b, d, p), " IMAGE_WINDOW, "__cudnn$convForwardGraph",
     STEPS("1:[f32]conv();2:[f32]min(1);3:[f32]scale(2);4:[f32]max(3,1);5:[f32]elu(4);"), "0",
     "s = f32[2,3,5,6]" IMAGE_CONV "i = f32[2,3,5,6] minimum(s, d) pp = f32[2,3,5,6] broadcast(p), dimensions={} m = f32[2,3,5,6] multiply(i, pp) "
     "x = f32[2,3,5,6] maximum(m, s) " NUMBER("z", "0") "c = pred[2,3,5,6] compare(x, z), direction=GT e = f32[2,3,5,6] exponential-minus-one(x) r0 = f32[2,3,5,6] select(c, x, e) "},

    {IMAGE, "(f8e4m3fn[2,3,5,6], f32[]) custom-call(a, b), " IMAGE_WINDOW, "__cudnn$convForwardGraph", STEPS("1:[f32]conv();2:[f8e4m3fn]relu(1);3:[f32]amax(2);"), "01",
     "s = f32[2,3,5,6]" IMAGE_CONV NUMBER("z", "0") "x = f32[2,3,5,6] maximum(s, z) o = f32[] constant(0) r1 = f32[] reduce(x, o), dimensions={0,1,2,3}, to_apply=max "
     NUMBER("h", "448") "w = f32[2,3,5,6] minimum(x, h) r0 = f8e4m3fn[2,3,5,6] convert(w) "},

    // --- attention ---
    {"q = bf16[2,5,3,4] parameter(0) k = bf16[2,7,3,4] parameter(1) v = bf16[2,7,3,6] parameter(2) b = f16[1,3,5,1] parameter(3) ",
     "(bf16[2,3,5,6]{3,1,2,0}, f32[2,3,5], u8[0]) custom-call(q, k, v, b), api_version=API_VERSION_STATUS_RETURNING", "__cudnn$fmhaScaleBiasSoftmax",
     ATTENTION("0.375", "CAUSAL", HEADS_LAST, ", \"sliding_window_length\": 3"), "01",
     "d = f32[2,3,5,7] dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3} "
     "c0 = f32[] constant(0.375) c = f32[2,3,5,7] broadcast(c0), dimensions={} m = f32[2,3,5,7] multiply(d, c) bf = f32[1,3,5,1] convert(b) "
     "br = f32[3,5] reshape(bf) bb = f32[2,3,5,7] broadcast(br), dimensions={1,2} n = f32[2,3,5,7] add(m, bb) i = s32[2,3,5,7] iota(), iota_dimension=2 "
     "j = s32[2,3,5,7] iota(), iota_dimension=3 three0 = s32[] constant(3) three = s32[2,3,5,7] broadcast(three0), dimensions={} jt = s32[2,3,5,7] add(j, three) "
     "le = pred[2,3,5,7] compare(j, i), direction=LE gt = pred[2,3,5,7] compare(jt, i), direction=GT seen = pred[2,3,5,7] and(le, gt) "
     "inf0 = f32[] constant(-inf) inf = f32[2,3,5,7] broadcast(inf0), dimensions={} x = f32[2,3,5,7] select(seen, n, inf) "
     "t = f32[2,3,5] reduce(x, inf0), dimensions={3}, to_apply=max tt = f32[2,3,5,7] broadcast(t), dimensions={0,1,2} s = f32[2,3,5,7] subtract(x, tt) "
     "e = f32[2,3,5,7] exponential(s) o = f32[] constant(0) u = f32[2,3,5] reduce(e, o), dimensions={3}, to_apply=sum uu = f32[2,3,5,7] broadcast(u), dimensions={0,1,2} "
     "p = f32[2,3,5,7] divide(e, uu) w = f32[2,3,5,6] dot(p, v), lhs_batch_dims={0,1}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={1} "
     "r0 = bf16[2,3,5,6]{3,1,2,0} convert(w) l = f32[2,3,5] log(u) r1 = f32[2,3,5] add(t, l) "},
    {"q = f32[2,3,5,4] parameter(0) k = f32[2,3,7,4] parameter(1) v = f32[2,3,7,6] parameter(2) l = f32[2,3,5] parameter(3) g = f32[2,3,5,6] parameter(4) "
     "b = f32[2,1,1,7] parameter(5) o = f32[2,3,5,6] parameter(6) ",
     "(f32[2,3,5,4], f32[2,3,7,4], f32[2,3,7,6], f32[2,1,1,7], u8[0]) custom-call(q, k, v, l, g, b, o)", "__cudnn$fmhaScaleBiasSoftmaxBackward",
     ATTENTION("0.375", "NO_MASK", HEADS_FIRST_BACK, ""), "0123",
     "d = f32[2,3,5,7] dot(q, k), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3} "
     "c0 = f32[] constant(0.375) c = f32[2,3,5,7] broadcast(c0), dimensions={} m = f32[2,3,5,7] multiply(d, c) br = f32[2,7] reshape(b) "
     "bb = f32[2,3,5,7] broadcast(br), dimensions={0,3} x = f32[2,3,5,7] add(m, bb) ll = f32[2,3,5,7] broadcast(l), dimensions={0,1,2} y = f32[2,3,5,7] subtract(x, ll) "
     "p = f32[2,3,5,7] exponential(y) a = f32[2,3,5,7] dot(g, v), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3} "
     "w = f32[2,3,5] dot(g, o), lhs_batch_dims={0,1,2}, rhs_batch_dims={0,1,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3} "
     "ww = f32[2,3,5,7] broadcast(w), dimensions={0,1,2} z = f32[2,3,5,7] subtract(a, ww) s = f32[2,3,5,7] multiply(p, z) "
     "q1 = f32[2,3,5,4] dot(s, k), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2} "
     "cq = f32[2,3,5,4] broadcast(c0), dimensions={} r0 = f32[2,3,5,4] multiply(q1, cq) "
     "k1 = f32[2,3,7,4] dot(s, q), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={2}, rhs_contracting_dims={2} "
     "ck = f32[2,3,7,4] broadcast(c0), dimensions={} r1 = f32[2,3,7,4] multiply(k1, ck) "
     "r2 = f32[2,3,7,6] dot(p, g), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={2}, rhs_contracting_dims={2} "
     "zero = f32[] constant(0) f = f32[2,7] reduce(s, zero), dimensions={1,2}, to_apply=sum r3 = f32[2,1,1,7] reshape(f) "},

    // --- sorts ---
    {"a = s8[3,40] parameter(0) ", "(s8[3,40], u8[77]) custom-call(a)", "xla.gpu.ext.cub_sort_keys", "{descending = true, batch_size = 3 : i64}", "0",
     "r0 = s8[3,40] sort(a), dimensions={1}, to_apply=more "},
    {"a = u8[90] parameter(0) b = f32[90] parameter(1) ", "(u8[90], f32[90], u8[77]) custom-call(a, b), api_version=API_VERSION_TYPED_FFI",
     "xla.gpu.ext.cub_sort_pairs", "{batch_size = 1 : i64, descending = false}", "01",
     "t = (u8[90], f32[90]) sort(a, b), dimensions={0}, is_stable=true, to_apply=less "
     "r0 = u8[90] get-tuple-element(t), index=0 r1 = f32[90] get-tuple-element(t), index=1 "},
    {"a = f32[70] parameter(0) ", "(f32[70], u8[1]) custom-call(a)", "__cub$DeviceRadixSort", "{\"descending\":false}", "0",
     "r0 = f32[70] sort(a), dimensions={0}, to_apply=total "},
    {"a = s64[0] parameter(0) ", "(s64[0], u8[1]) custom-call(a)", "__cub$DeviceRadixSort", "{}", "0", "r0 = s64[0] copy(a) "},

    // --- others ---
    {"a = f32[2,3,3] parameter(0) b = f32[2,4,3] parameter(1) ", "(f32[2,4,3], s8[32]) custom-call(a, b)", "__cublas$triangularSolve",
     "{\"left_side\":false,\"lower\":true,\"unit_diagonal\":true,\"transpose_a\":\"TRANSPOSE\"}", "0",
     "r0 = f32[2,4,3] triangular-solve(a, b), left_side=false, lower=true, unit_diagonal=true, transpose_a=TRANSPOSE "},
};
// clang-format on
enum { ROWS = sizeof rows / sizeof *rows };

// --- texts ----------------------------------------------------------------------------------------------------------

// Element i of the tuple's type that the call begins with, or that type, of an array.
static kl_str type_of(const char *call, int i) {
  bool tuple = *call == '(';
  const char *from = call + tuple, *p = from;
  for (int depth = 0; depth || !(*p == ' ' || *p == ')'); p++) {
    depth += *p == '[' || *p == '{';
    depth -= *p == ']' || *p == '}';
    if (depth || *p != ',') continue;
    if (i-- == 0) break;
    from = p + 2;
    p++;
  }
  return (kl_str){from, (size_t)(p - from)};
}

static void put_root(kl_sb *b, const row *r, const char *name) {
  const char *which = r->results ? r->results : "0";
  kl_sb_puts(b, "\n  ROOT root = (");
  for (int i = 0; which[i]; i++) kl_sbf(b, "%s%.*s", i ? ", " : "", KL_FMT(type_of(r->call, which[i] - '0')));
  kl_sb_puts(b, ") tuple(");
  for (int i = 0; which[i]; i++) kl_sbf(b, "%s%s%d", i ? ", " : "", name, i);
  kl_sb_puts(b, ")\n}\n");
}

static void put_head(kl_sb *b, const row *r) {
  kl_sb_puts(b, "HloModule fusion\nmax { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] maximum(a, b) }\n"
                "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] add(a, b) }\n"
                "more { a = s8[] parameter(0) b = s8[] parameter(1) ROOT r = pred[] compare(a, b), direction=GT }\n"
                "less { a = u8[] parameter(0) b = u8[] parameter(1) x = f32[] parameter(2) y = f32[] parameter(3) "
                "ROOT r = pred[] compare(a, b), direction=LT }\n"
                "total { a = f32[] parameter(0) b = f32[] parameter(1) "
                "ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }\n");
  kl_sbf(b, "ENTRY e {\n  %s\n  ", r->params);
}

static void put_call(kl_sb *b, const row *r) {
  put_head(b, r);
  kl_sbf(b, "%s = %s, custom_call_target=\"%s\", backend_config=%s\n", r->results ? "made" : "g0", r->call, r->target,
         r->config);
  for (int i = 0; r->results && r->results[i]; i++)
    kl_sbf(b, "  g%d = %.*s get-tuple-element(made), index=%d\n", i, KL_FMT(type_of(r->call, r->results[i] - '0')),
           r->results[i] - '0');
  put_root(b, r, "g");
}

static void put_ops(kl_sb *b, const row *r) {
  put_head(b, r);
  kl_sb_puts(b, r->ops);
  put_root(b, r, "r");
}

START_TEST(calls_are_ops) {
  const char *alone = getenv("KILN_LIBRARY_ROW");
  if (alone ? atoi(alone) != _i : !share_has((uint64_t)_i, 1)) return;
  kl_sb call, ops;
  kl_sb_init(&call, cx);
  kl_sb_init(&ops, cx);
  put_call(&call, &rows[_i]);
  put_ops(&ops, &rows[_i]);
  if (alone) printf("%s\n%s\n", call.p, ops.p);
  kiln_module *m = parse(call.p), *same = parse(ops.p);
  for (unsigned k = 0; k < 2; k++) {
    evaluates_as(cx, m, same, (unsigned)_i + k, call.p);
    evaluates_as(cx, same, m, (unsigned)_i + k, call.p);
    run_both_and_check(cx, m, 3, (unsigned)_i + k, call.p);
  }
  kiln_module_destroy(&m);
  kiln_module_destroy(&same);
  kl_sb_free(&call);
  kl_sb_free(&ops);
}
END_TEST

// --- ThreeFry -------------------------------------------------------------------------------------------------------

// The known answers of its authors (Random123, kat_vectors: threefry2x32, 20 rounds): counters, keys, words.
static const uint32_t answers[3][6] = {
    {0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
    {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xc4923a9c, 0x483df7a0},
};

START_TEST(threefry_is_its_authors) {
  static const char text[] =
      "HloModule fusion\nENTRY e {\n  k = u32[3] parameter(0)\n  l = u32[3] parameter(1)\n  a = u32[3] parameter(2)\n"
      "  b = u32[3] parameter(3)\n  ROOT r = (u32[3], u32[3]) custom-call(k, l, a, b), "
      "custom_call_target=\"cu_threefry2x32_ffi\", api_version=API_VERSION_TYPED_FFI, backend_config={}\n}\n";
  uint32_t in[4][4] __attribute__((aligned(16))), out[2][4] __attribute__((aligned(16)));
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 4; k++) in[k][i] = answers[i][(k + 2) % 4];
  kiln_module *m = parse(text);
  for (int where = 0; where < 3; where++) {
    const void *from[] = {in[0], in[1], in[2], in[3]};
    void *to[] = {out[0], out[1]};
    memset(out, 0, sizeof out);
    if (where < 2)
      run_on(cx, m, where ? 3 : HOST, 1, 0, from, to, text);
    else
      ck_assert_int_eq(kiln_module_eval(cx, m, from, to, NULL), KILN_OK);
    for (int i = 0; i < 3; i++)
      for (int k = 0; k < 2; k++) ck_assert_uint_eq(out[k][i], answers[i][4 + k]);
  }
  kiln_module_destroy(&m);
}
END_TEST

// --- calls in a module ----------------------------------------------------------------------------------------------

// Started, by either name; beside computations that nobody needs.
START_TEST(calls_stand_anywhere) {
#define CALL(alpha) "custom_call_target=\"__cublas$gemm\", backend_config=" GEMM(alpha, "0", PLAIN, "") "\n"
  static const char text[] =
      "HloModule fusion\nbefore { a = f32[3] parameter(0) ROOT r = f32[3] negate(a) }\n"
      "made { a = f32[5,7] parameter(0) b = f32[7,3] parameter(1) ROOT r = (f32[5,3], s8[64]) custom-call(a, b), " //
      CALL("1") "}\nENTRY e { a = f32[5,7] parameter(0) b = f32[7,3] parameter(1) "
                "s = ((f32[5,7], f32[7,3]), (f32[5,3], s8[64])) async-start(a, b), calls=made "
                "d = (f32[5,3], s8[64]) async-done(s) x = f32[5,3] get-tuple-element(d), index=0 "
                "t = ((f32[5,7], f32[7,3]), (f32[5,3], s8[64]), u32[]) custom-call-start(a, b), " //
      CALL("2") "u = (f32[5,3], s8[64]) custom-call-done(t) y = f32[5,3] get-tuple-element(u), index=0 "
                "ROOT r = f32[5,3] multiply(x, y) }\nbehind { a = f32[3] parameter(0) ROOT r = f32[3] negate(a) }\n";
  kiln_module *m = parse(text);
  run_both_and_check(cx, m, 3, 1, text);
  kiln_module_destroy(&m);
}
END_TEST

// --- what is no such call -------------------------------------------------------------------------------------------

// The rest of a module's root, and what the finding must have.
static const struct {
  const char *text, *said;
} misfits[] = {
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$gemm\"",
     "expected an object in JSON as backend_config"},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config={\"alpha_real\":1,}",
     "expected an object in JSON as backend_config, found {"},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config=\"[1]\"",
     "expected an object in JSON"},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config={\"alpha_real\":\"two\"}",
     "expected a number as alpha_real, found \"two\""},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config={\"alpha_real\":1}",
     "expected an object as dot_dimension_numbers"},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config=" GEMM(
         "1", "0", LISTS("\"2\"", "\"0\"", "", ""), ""),
     "expected dimensions of the left operand as lhs_contracting_dimensions, found [\"2\"]"},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config=" GEMM(
         "1", "0", LISTS("1", "0", "1", "0"), ""),
     "expected dimensions of the left operand as lhs_contracting_dimensions, found [1]"},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config=" GEMM(
         "1", "0", LISTS("0", "0", "", ""), ""),
     "expected operands of equal sizes"},
    {"f32[3,5] custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config=" GEMM("1", "0", PLAIN, ""),
     "dimensions of a dot"},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config=" GEMM("1", "2", PLAIN, ""),
     "third operand, as beta is not 0"},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$lt$matmul\", backend_config=" GEMM("1", "0", PLAIN,
                                                                                                   EPILOGUE("DRELU")),
     "expected an epilogue that is known (DEFAULT, BIAS, RELU, GELU, GELU_AUX, SILU, BIAS_RELU ...), found \"DRELU\""},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$lt$matmul\", backend_config=" GEMM("1", "0", PLAIN,
                                                                                                   EPILOGUE("BIAS")),
     "expected operands (a, b, [array, where beta is not 0], [bias])"},
    {"f32[5,3] custom-call(a, b, c), custom_call_target=\"__cublas$lt$matmul\", backend_config=" GEMM("1", "0", PLAIN,
                                                                                                      EPILOGUE("BIAS")),
     "expected a bias of floats"},
    {"f32[5,3] custom-call(a, b), custom_call_target=\"__cublas$lt$matmul\", backend_config=" GEMM(
         "1", "0", PLAIN, EPILOGUE("GELU_AUX")),
     "expected a result, what the epilogue gives beside it"},
    {"s32[5,3] custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config=" GEMM("1", "0", PLAIN, ""),
     "expected operands and result"},
    {"f32[5,3] custom-call(a, b, c, c), custom_call_target=\"__cublas$lt$matmul$f8\", backend_config=" GEMM("1", "0",
                                                                                                            PLAIN, ""),
     "two operands of 8 bits"},
    {"f32[5,7] custom-call(a, a), custom_call_target=\"__cudnn$convForward\", backend_config=" CONV("kNone", "1", "0",
                                                                                                    ""),
     "expected dim_labels"},
    {"f32[5,7] custom-call(a, a), window={size=1}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForward\", backend_config=" NO_MORE,
     "as many dimensions as dim_labels names"},
    {"f32[2,5,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForward\", backend_config=" NO_MORE,
     "expected input, kernel and result of a convolution forward"},
    {"f32[2,4,3] custom-call(i, k, c), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForward\", backend_config=" NO_MORE,
     "bias and side input have a target of their own"},
    {"f32[2,4,3] custom-call(i, k, a), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convBiasActivationForward\", backend_config=" NO_MORE,
     "expected a bias of floats as third operand"},
    {"f32[2,4,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForward\", backend_config=" CONV("kReluX", "1", "0", ""),
     "expected an activation_mode that is known (kNone, kRelu, kRelu6, kElu, kLeakyRelu ...), found \"kReluX\""},
    {"f32[2,4,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForward\", backend_config=" CONV("kNone", "1", "0",
                                                                        ",\"reordered_int8_nchw_vect\":true"),
     "reordered_int8_nchw_vect"},
    {"f32[5,3] custom-call(b, a), custom_call_target=\"__cublas$triangularSolve\", backend_config={\"lower\":true}",
     "expected (matrices"},
    {"f32[7,3] custom-call(a, b), custom_call_target=\"__cublas$triangularSolve\", backend_config={\"left_side\":1}",
     "expected true or false as left_side, found 1"},
    {"f32[7,3] custom-call(a, b), custom_call_target=\"__cublas$triangularSolve\", "
     "backend_config={\"transpose_a\":\"TURN\"}",
     "expected NO_TRANSPOSE, TRANSPOSE or ADJOINT as transpose_a, found \"TURN\""},
    {"f32[2,4,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForwardGraph\", backend_config=" STEPS("1:[f32]conv();2:[f32]swish(1);"),
     "expected steps NUMBER:[TYPE]NAME(NUMBERS); as serialized_graph"},
    {"f32[2,4,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForwardGraph\", backend_config=" STEPS("1:[f32]conv();2:[f32]relu(3);"),
     "expected steps NUMBER"},
    {"f32[2,4,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForwardGraph\", backend_config=" STEPS("1:[f32]conv();2:[f32]add(1);"),
     "expected steps NUMBER"},
    {"f32[2,4,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForwardGraph\", backend_config=" STEPS("1:[f32]conv()"),
     "expected steps NUMBER"},
    {"f32[2,4,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForwardGraph\", backend_config=" STEPS("1:[s32]conv();"),
     "expected steps NUMBER"},
    {"f32[2,4,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForwardGraph\", backend_config=" STEPS(""),
     "expected a serialized_graph of steps that take all operands"},
    {"f32[2,4,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForwardGraph\", backend_config=" STEPS("1:[f32]conv();2:[f16]relu(1);"),
     "expected the value of the last step"},
    {"f32[2,4,3] custom-call(i, k), window={size=3}, dim_labels=b0f_0io->b0f, "
     "custom_call_target=\"__cudnn$convForwardGraph\", backend_config=" STEPS("1:[f32]conv();2:[f32]amax(1);"),
     "expected the value of the last step"},
    {"(f32[2,1,6,4], u8[0]) custom-call(h, h, h), custom_call_target=\"__cudnn$fmhaSoftmax\", "
     "backend_config=" ATTENTION("1", "PADDING", HEADS_LAST, ""),
     "expected NO_MASK or CAUSAL as mask_type, found \"PADDING\""},
    {"(f32[2,1,6,4], u8[0]) custom-call(h, h, h), custom_call_target=\"__cudnn$fmhaSoftmax\", "
     "backend_config=" ATTENTION("1", "CAUSAL", HEADS_FIRST_BACK, ""),
     "expected 0, and 1 or 2, as batches of the first product"},
    {"(f32[2,1,6,4], u8[0]) custom-call(h, h), custom_call_target=\"__cudnn$fmhaSoftmax\", backend_config=" ATTENTION(
         "1", "CAUSAL", HEADS_LAST, ""),
     "expected (q, k, v, [bias])"},
    {"(f32[2,1,6,4], u8[0]) custom-call(h, h, i), custom_call_target=\"__cudnn$fmhaSoftmax\", "
     "backend_config=" ATTENTION("1", "CAUSAL", HEADS_LAST, ""),
     "expected queries, keys and values of four dimensions"},
    {"(f32[2,1,6,4], u8[0]) custom-call(h, h, h), custom_call_target=\"__cudnn$fmhaSoftmax\", "
     "backend_config=" ATTENTION("1", "NO_MASK", HEADS_LAST, ", \"sliding_window_length\": 3"),
     "expected a sliding window with a CAUSAL mask alone"},
    {"(f32[2,1,6,4], u8[0]) custom-call(h, h, h), custom_call_target=\"__cudnn$fmhaSoftmax\", "
     "backend_config=" ATTENTION("1", "NO_MASK", HEADS_LAST, ", \"max_seg_per_batch\": 3"),
     "expected one sequence a batch (max_seg_per_batch 1), found 3"},
    {"(f32[2,6,1,4], u8[0]) custom-call(h, h, h), custom_call_target=\"__cudnn$fmhaSoftmax\", "
     "backend_config=" ATTENTION("1", "NO_MASK", HEADS_LAST, ""),
     "expected a result, maybe its logarithms"},
    {"(f32[9], u8[4]) custom-call(c), custom_call_target=\"xla.gpu.ext.cub_sort_keys\", backend_config={descending = "
     "2}",
     "expected an object in JSON"},
    {"(f32[9], f32[7,3]) custom-call(c, b), custom_call_target=\"xla.gpu.ext.cub_sort_pairs\", "
     "backend_config={descending = true}",
     "expected keys"},
    {"(u32[3], u32[3]) custom-call(c, c, c, c), custom_call_target=\"cu_threefry2x32_ffi\", backend_config={}",
     "expected four arrays of u32"},
};
enum { MISFITS = sizeof misfits / sizeof *misfits };

START_TEST(what_libraries_have_not_is_refused) {
  char text[1500];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY m { a = f32[5,7] parameter(0) b = f32[7,3] parameter(1) c = f32[9] parameter(2) "
           "i = f32[2,6,4] parameter(3) k = f32[3,4,3] parameter(4) "
           "h = f32[2,6,1,4] reshape(i) ROOT r = %s }\n",
           misfits[_i].text);
  kiln_module *m = parse(text);
  kiln_artifact *a = NULL;
  kiln_compile_params params = {.struct_size = sizeof params};
  ck_assert_int_eq(kiln_compile(cx, m, &params, &a), KILN_E_UNSUPPORTED);
  const char *said = kiln_diagnostics_get(cx, 0)->message;
  EXPECT(strstr(said, misfits[_i].said), "%s", said);
  float in[5][48] = {{0}}, out[2][48];
  ck_assert_int_eq(
      kiln_module_eval(cx, m, (const void *[]){in[0], in[1], in[2], in[3], in[4]}, (void *[]){out[0], out[1]}, NULL),
      KILN_E_UNSUPPORTED);
  kiln_diagnostics_clear(cx);
  kiln_module_destroy(&m);
}
END_TEST

// Scores of so many tokens are more than an array has.
START_TEST(what_is_too_large_is_refused) {
  kiln_module *m =
      parse("HloModule m\nENTRY e { p = bf16[2,4294967296,3,4] parameter(0) ROOT r = (bf16[2,3,4294967296,4], u8[0]) "
            "custom-call(p, p, p), custom_call_target=\"__cudnn$fmhaSoftmax\", backend_config=" ATTENTION(
                "2", "CAUSAL", HEADS_LAST, "") " }\n");
  kiln_artifact *a = NULL;
  ck_assert_int_eq(kiln_compile(cx, m, NULL, &a), KILN_E_UNSUPPORTED);
  const char *said = kiln_diagnostics_get(cx, 0)->message;
  EXPECT(strstr(said, "this is made of an array f32[2,3,4294967296,4294967296] here"), "%s", said);
  kiln_diagnostics_clear(cx);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("library", EACH(make_context, drop_context), {calls_are_ops, ROWS}, {threefry_is_its_authors},
                   {calls_stand_anywhere}, {what_libraries_have_not_is_refused, MISFITS},
                   {what_is_too_large_is_refused});
}
