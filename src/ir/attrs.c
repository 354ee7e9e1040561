// The rows of the attribute table, op by op.
#include "ir/attrs.h"

#include <stddef.h>

const kl_more kl_no_more = {.feature_groups = 1, .batch_groups = 1, .channel = -1};

const char *const kl_direction_names[6] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
const char *const kl_compare_type_names[5] = {NULL, "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
const char *const kl_fusion_kind_names[4] = {"kLoop", "kInput", "kOutput", "kCustom"};
const char *const kl_precision_names[5] = {"default", "high", "highest", "packed_nibble", NULL};
const char *const kl_triangle_op_names[3] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
const char *const kl_fft_type_names[4] = {"FFT", "IFFT", "RFFT", "IRFFT"};
const char *const kl_rng_algorithm_names[3] = {"rng_default", "rng_three_fry", "rng_philox"};
const char *const kl_rng_distribution_names[2] = {"rng_uniform", "rng_normal"};
const char *const kl_dot_algorithm_names[KL_DOT_ALGORITHMS] = {
    "dot_unset",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_any_f8_any_f8_any",
    "dot_any_f8_any_f8_any_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_bf16_bf16_f32_x9",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
};

// clang-format off
#define HERE(field)  .offset = offsetof(kl_instr, field)
#define MORE(field)  .in_more = true, .offset = offsetof(kl_more, field)
#define ONE_OF(list) .names = list, .nnames = KL_COUNT(list)
#define MUST         .need = KL_ATTR_MUST
#define ALWAYS       .need = KL_ATTR_ALWAYS
#define ROWS(name)   static const kl_attr_row name##_rows[]
#define DIMENSIONS   {"dimensions", KL_ATTR_DIMS, MUST, HERE(dims)}
#define TO_APPLY     {"to_apply", KL_ATTR_COMP, MUST}
#define PRECISION    {"operand_precision", KL_ATTR_NAMES, MORE(precision), ONE_OF(kl_precision_names), .what = "a precision"}
#define DOT_ALGORITHM {"algorithm", KL_ATTR_NAME, MORE(algorithm), ONE_OF(kl_dot_algorithm_names), .what = "a dot algorithm"}
#define WINDOW       {"window", KL_ATTR_WINDOW, ALWAYS, MORE(window)}
#define CHANNEL      {"channel_id", KL_ATTR_INT, MORE(channel), .otherwise = -1}
#define GROUPS       {"replica_groups", KL_ATTR_GROUPS, ALWAYS, MORE(groups)}
#define CONSTRAIN    {"constrain_layout", KL_ATTR_BOOL, MORE(constrain_layout)}
#define GLOBAL_IDS   {"use_global_device_ids", KL_ATTR_BOOL, MORE(global_device_ids)}

ROWS(dimensions) = {DIMENSIONS};
// A broadcast of a scalar may leave them out: inference checks their number against the rank.
ROWS(broadcast) = {{"dimensions", KL_ATTR_DIMS, ALWAYS, HERE(dims)}};
ROWS(iota) = {{"iota_dimension", KL_ATTR_INT, MUST, HERE(number)}};
ROWS(slice) = {{"slice", KL_ATTR_SLICES, MUST, HERE(slice)}};
ROWS(pad) = {{"padding", KL_ATTR_PADDING, HERE(pad)}}; // an array of rank 0 has none
ROWS(compare) = {
    {"direction", KL_ATTR_NAME, MUST, HERE(direction), ONE_OF(kl_direction_names), .what = "a direction"},
    {"type", KL_ATTR_NAME, HERE(compare_type), ONE_OF(kl_compare_type_names), .what = "a comparison type"},
};
ROWS(reduce_precision) = {
    {"exponent_bits", KL_ATTR_BITS, MUST, HERE(exponent_bits)},
    {"mantissa_bits", KL_ATTR_BITS, MUST, HERE(mantissa_bits)},
};
ROWS(get_tuple_element) = {{"index", KL_ATTR_INT, MUST, HERE(number)}};
ROWS(fusion) = {
    {"kind", KL_ATTR_NAME, MUST, HERE(fusion_kind), ONE_OF(kl_fusion_kind_names), .what = "a fusion kind"},
    {"calls", KL_ATTR_COMP, MUST},
};
ROWS(to_apply) = {TO_APPLY};
ROWS(dot) = {
    {"lhs_batch_dims", KL_ATTR_INTS, MORE(lhs_batch)},
    {"lhs_contracting_dims", KL_ATTR_INTS, MORE(lhs_contracting)},
    {"rhs_batch_dims", KL_ATTR_INTS, MORE(rhs_batch)},
    {"rhs_contracting_dims", KL_ATTR_INTS, MORE(rhs_contracting)},
    PRECISION,
    DOT_ALGORITHM,
};
ROWS(ragged_dot) = {
    {"lhs_batch_dims", KL_ATTR_INTS, MORE(lhs_batch)},
    {"lhs_contracting_dims", KL_ATTR_INTS, MORE(lhs_contracting)},
    {"rhs_batch_dims", KL_ATTR_INTS, MORE(rhs_batch)},
    {"rhs_contracting_dims", KL_ATTR_INTS, MORE(rhs_contracting)},
    {"lhs_ragged_dims", KL_ATTR_INTS, MUST, MORE(lhs_ragged)},
    {"rhs_group_dims", KL_ATTR_INTS, MORE(rhs_group)},
    PRECISION,
    DOT_ALGORITHM,
};
ROWS(convolution) = {
    WINDOW,
    {"dim_labels", KL_ATTR_DIM_LABELS, MUST, MORE(conv)},
    {"feature_group_count", KL_ATTR_INT, MORE(feature_groups), .otherwise = 1},
    {"batch_group_count", KL_ATTR_INT, MORE(batch_groups), .otherwise = 1},
    PRECISION,
    DOT_ALGORITHM,
};
ROWS(reduce) = {{"dimensions", KL_ATTR_DIMS, ALWAYS, HERE(dims)}, TO_APPLY};
ROWS(reduce_window) = {WINDOW, TO_APPLY};
ROWS(select_and_scatter) = {WINDOW, {"select", KL_ATTR_COMP, MUST}, {"scatter", KL_ATTR_COMP, MUST}};
ROWS(scan) = {
    DIMENSIONS,
    {"num_carries", KL_ATTR_INT, MUST, MORE(carries)},
    {"is_reverse", KL_ATTR_BOOL, MORE(is_reverse)},
    {"is_associative", KL_ATTR_BOOL, MORE(is_associative)},
    TO_APPLY,
};
ROWS(map) = {{"dimensions", KL_ATTR_DIMS, ALWAYS, HERE(dims)}, TO_APPLY};
ROWS(dynamic_slice) = {{"dynamic_slice_sizes", KL_ATTR_INTS, MUST, MORE(sizes)}};
ROWS(gather) = {
    {"offset_dims", KL_ATTR_INTS, MUST, MORE(offset_dims)},
    {"collapsed_slice_dims", KL_ATTR_INTS, MUST, MORE(collapsed_dims)},
    {"start_index_map", KL_ATTR_INTS, MUST, MORE(start_index_map)},
    {"operand_batching_dims", KL_ATTR_INTS, MORE(operand_batching_dims)},
    {"start_indices_batching_dims", KL_ATTR_INTS, MORE(indices_batching_dims)},
    {"index_vector_dim", KL_ATTR_INT, MUST, MORE(index_vector_dim)},
    {"slice_sizes", KL_ATTR_INTS, MUST, MORE(sizes)},
    {"indices_are_sorted", KL_ATTR_BOOL, MORE(indices_are_sorted)},
};
ROWS(scatter) = {
    {"update_window_dims", KL_ATTR_INTS, MUST, MORE(offset_dims)},
    {"inserted_window_dims", KL_ATTR_INTS, MUST, MORE(collapsed_dims)},
    {"scatter_dims_to_operand_dims", KL_ATTR_INTS, MUST, MORE(start_index_map)},
    {"input_batching_dims", KL_ATTR_INTS, MORE(operand_batching_dims)},
    {"scatter_indices_batching_dims", KL_ATTR_INTS, MORE(indices_batching_dims)},
    {"index_vector_dim", KL_ATTR_INT, MUST, MORE(index_vector_dim)},
    {"indices_are_sorted", KL_ATTR_BOOL, MORE(indices_are_sorted)},
    {"unique_indices", KL_ATTR_BOOL, MORE(unique_indices)},
    TO_APPLY,
};
ROWS(sort) = {DIMENSIONS, {"is_stable", KL_ATTR_BOOL, MORE(is_stable)}, TO_APPLY};
ROWS(topk) = {
    {"k", KL_ATTR_INT, MUST, MORE(k)},
    {"largest", KL_ATTR_BOOL, ALWAYS, MORE(largest), .otherwise = true},
};
ROWS(rng) = {{"distribution", KL_ATTR_NAME, MUST, MORE(distribution), ONE_OF(kl_rng_distribution_names),
              .what = "a distribution"}};
ROWS(rng_bits) = {{"algorithm", KL_ATTR_NAME, MUST, MORE(rng), ONE_OF(kl_rng_algorithm_names),
                   .what = "a random number algorithm"}};
ROWS(rng_state) = {{"delta", KL_ATTR_INT, MUST, MORE(delta)}};
ROWS(batch_norm) = {
    {"epsilon", KL_ATTR_REAL, MUST, MORE(epsilon)},
    {"feature_index", KL_ATTR_INT, MUST, MORE(feature_index)},
};
ROWS(cholesky) = {{"lower", KL_ATTR_BOOL, ALWAYS, MORE(lower)}};
ROWS(triangular_solve) = {
    {"left_side", KL_ATTR_BOOL, ALWAYS, MORE(left_side)},
    {"lower", KL_ATTR_BOOL, ALWAYS, MORE(lower)},
    {"unit_diagonal", KL_ATTR_BOOL, ALWAYS, MORE(unit_diagonal)},
    {"transpose_a", KL_ATTR_NAME, ALWAYS, MORE(transpose_a), ONE_OF(kl_triangle_op_names), .what = "a transposition"},
};
ROWS(fft) = {
    {"fft_type", KL_ATTR_NAME, MUST, MORE(fft), ONE_OF(kl_fft_type_names), .what = "a kind of transform"},
    {"fft_length", KL_ATTR_INTS, MUST, MORE(sizes)},
};
ROWS(while) = {{"condition", KL_ATTR_COMP, MUST}, {"body", KL_ATTR_COMP, MUST}};
// Either the first two or the last; inference asks for one of the forms.
ROWS(conditional) = {
    {"true_computation", KL_ATTR_COMP},
    {"false_computation", KL_ATTR_COMP},
    {"branch_computations", KL_ATTR_COMPS},
};
ROWS(custom_call) = {
    {"custom_call_target", KL_ATTR_QUOTED, MUST, MORE(target)},
    {"window", KL_ATTR_WINDOW, MORE(window)},
    {"dim_labels", KL_ATTR_DIM_LABELS, MORE(conv)},
    {"feature_group_count", KL_ATTR_INT, MORE(feature_groups), .otherwise = 1},
    {"batch_group_count", KL_ATTR_INT, MORE(batch_groups), .otherwise = 1},
    {"custom_call_has_side_effect", KL_ATTR_BOOL, MORE(side_effect)},
    {"to_apply", KL_ATTR_COMP},
    {"called_computations", KL_ATTR_COMPS},
};
ROWS(async) = {{"calls", KL_ATTR_COMP}};
ROWS(all_gather) = {CHANNEL, GROUPS, CONSTRAIN, DIMENSIONS, GLOBAL_IDS};
ROWS(all_reduce) = {CHANNEL, GROUPS, CONSTRAIN, GLOBAL_IDS, TO_APPLY};
ROWS(reduce_scatter) = {CHANNEL, GROUPS, CONSTRAIN, DIMENSIONS, GLOBAL_IDS, TO_APPLY};
ROWS(all_to_all) = {CHANNEL, GROUPS, CONSTRAIN, {"dimensions", KL_ATTR_DIMS, HERE(dims)}};
ROWS(collective) = {CHANNEL, GROUPS, GLOBAL_IDS};
ROWS(permute) = {CHANNEL, {"source_target_pairs", KL_ATTR_PAIRS, MUST, MORE(pairs)}};
ROWS(transfer) = {CHANNEL, {"is_host_transfer", KL_ATTR_BOOL, MORE(host_transfer)}};
ROWS(outfeed) = {{"outfeed_shape", KL_ATTR_SHAPE, MORE(outfeed)}};

#define LIST(name) {name##_rows, KL_COUNT(name##_rows)}
static const kl_attr_list lists[KL_OP_COUNT] = {
    [KL_OP_BROADCAST] = LIST(broadcast),
    [KL_OP_TRANSPOSE] = LIST(dimensions),
    [KL_OP_REVERSE] = LIST(dimensions),
    [KL_OP_CONCATENATE] = LIST(dimensions),
    [KL_OP_IOTA] = LIST(iota),
    [KL_OP_SLICE] = LIST(slice),
    [KL_OP_PAD] = LIST(pad),
    [KL_OP_COMPARE] = LIST(compare),
    [KL_OP_REDUCE_PRECISION] = LIST(reduce_precision),
    [KL_OP_GET_TUPLE_ELEMENT] = LIST(get_tuple_element),
    [KL_OP_FUSION] = LIST(fusion),
    [KL_OP_CALL] = LIST(to_apply),
    [KL_OP_DOT] = LIST(dot),
    [KL_OP_SCALED_DOT] = LIST(dot),
    [KL_OP_RAGGED_DOT] = LIST(ragged_dot),
    [KL_OP_CONVOLUTION] = LIST(convolution),
    [KL_OP_REDUCE] = LIST(reduce),
    [KL_OP_REDUCE_WINDOW] = LIST(reduce_window),
    [KL_OP_SELECT_AND_SCATTER] = LIST(select_and_scatter),
    [KL_OP_SCAN] = LIST(scan),
    [KL_OP_MAP] = LIST(map),
    [KL_OP_DYNAMIC_SLICE] = LIST(dynamic_slice),
    [KL_OP_GATHER] = LIST(gather),
    [KL_OP_SCATTER] = LIST(scatter),
    [KL_OP_SORT] = LIST(sort),
    [KL_OP_TOPK] = LIST(topk),
    [KL_OP_RNG] = LIST(rng),
    [KL_OP_RNG_BIT_GENERATOR] = LIST(rng_bits),
    [KL_OP_RNG_GET_AND_UPDATE_STATE] = LIST(rng_state),
    [KL_OP_BATCH_NORM_TRAINING] = LIST(batch_norm),
    [KL_OP_BATCH_NORM_INFERENCE] = LIST(batch_norm),
    [KL_OP_BATCH_NORM_GRAD] = LIST(batch_norm),
    [KL_OP_CHOLESKY] = LIST(cholesky),
    [KL_OP_TRIANGULAR_SOLVE] = LIST(triangular_solve),
    [KL_OP_FFT] = LIST(fft),
    [KL_OP_GET_DIMENSION_SIZE] = LIST(dimensions),
    [KL_OP_SET_DIMENSION_SIZE] = LIST(dimensions),
    [KL_OP_WHILE] = LIST(while),
    [KL_OP_CONDITIONAL] = LIST(conditional),
    [KL_OP_CUSTOM_CALL] = LIST(custom_call),
    [KL_OP_ASYNC_START] = LIST(async),
    [KL_OP_ASYNC_UPDATE] = LIST(async),
    [KL_OP_ASYNC_DONE] = LIST(async),
    [KL_OP_ALL_GATHER] = LIST(all_gather),
    [KL_OP_ALL_GATHER_START] = LIST(all_gather),
    [KL_OP_ALL_REDUCE] = LIST(all_reduce),
    [KL_OP_ALL_REDUCE_START] = LIST(all_reduce),
    [KL_OP_REDUCE_SCATTER] = LIST(reduce_scatter),
    [KL_OP_ALL_TO_ALL] = LIST(all_to_all),
    [KL_OP_RAGGED_ALL_TO_ALL] = LIST(all_to_all),
    [KL_OP_COLLECTIVE_BROADCAST] = LIST(collective),
    [KL_OP_COLLECTIVE_REDUCE] = LIST(all_reduce),
    [KL_OP_COLLECTIVE_PERMUTE] = LIST(permute),
    [KL_OP_COLLECTIVE_PERMUTE_START] = LIST(permute),
    [KL_OP_SEND] = LIST(transfer),
    [KL_OP_SEND_DONE] = LIST(transfer),
    [KL_OP_RECV] = LIST(transfer),
    [KL_OP_RECV_DONE] = LIST(transfer),
    [KL_OP_OUTFEED] = LIST(outfeed),
};
// clang-format on

kl_attr_list kl_op_attrs(kl_op op) {
  return lists[op];
}

bool kl_op_has_more(kl_op op) {
  for (uint32_t i = 0; i < lists[op].n; i++)
    if (lists[op].p[i].in_more) return true;
  return false;
}

void kl_attrs_default(kl_instr *in, kl_more *more) {
  kl_attr_list list = kl_instr_attrs(in);
  for (uint32_t i = 0; i < list.n; i++) {
    const kl_attr_row *r = &list.p[i];
    if (!r->otherwise) continue;
    char *at = (r->in_more ? (char *)more : (char *)in) + r->offset;
    if (r->type == KL_ATTR_BOOL)
      *(bool *)at = r->otherwise;
    else
      *(int64_t *)at = r->otherwise;
  }
}
