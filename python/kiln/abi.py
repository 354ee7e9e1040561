"""The C interface of libkiln as ctypes sees it: its structs and functions, one to one with include/kiln/*.h.

Nothing here has a meaning of its own. tests/python/abi.py compares sizes, offsets and names with the headers, and
`declare` gives a loaded library the types of its functions.
"""

from __future__ import annotations

import ctypes as c
from typing import Any, Dict, List, Tuple, Type

MAX_RANK = 32
HASH_SIZE = 16
NO_SLOT = 0xFFFFFFFF

OK, INVALID, UNSUPPORTED, MEMORY, DEVICE, INTERNAL, CANCELLED = range(7)
ERROR, WARNING, NOTE = range(3)
TEXT_PTX, TEXT_PLAN, TEXT_LLVM, TEXT_EXPLAIN, TEXT_EXPLAIN_JSON, TEXT_HLO = range(6)
KEEP_PLAN, KEEP_LLVM, KEEP_EXPLAIN, KEEP_HLO = 1, 2, 4, 8
STRICT, FAST = range(2)
ARGUMENT_SLOT, ARGUMENT_SCRATCH, ARGUMENT_COUNT = range(3)
WHEN_ALWAYS, WHEN_APART, WHEN_IN_PLACE = range(3)
CHECK_ALL = 31
JOB_RUNNING, JOB_DONE, JOB_FAILED, JOB_CANCELLED = range(4)

# Element types by their number, as kiln_dtype lists them.
DTYPES = (
    "", "pred", "s1", "u1", "s2", "u2", "s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f4e2m1fn",
    "f8e3m4", "f8e4m3", "f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0fnu", "f16", "bf16",
    "f32", "f64", "c64", "c128", "tuple", "token", "opaque",
)  # fmt: skip

# Names of the counters' classes and kinds come from the library; these are how many there are.
CLASS_COUNT = 24
ACCESS_COUNT = 9


class Params(c.Structure):
    """A struct that begins with its own size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=c.sizeof(self), **fields)


class Diagnostic(c.Structure):
    _fields_ = [
        ("severity", c.c_int),
        ("status", c.c_int),
        ("file", c.c_char_p),
        ("line", c.c_uint32),
        ("column", c.c_uint32),
        ("message", c.c_char_p),
        ("text", c.c_char_p),
    ]


class ArrayType(c.Structure):
    _fields_ = [("dtype", c.c_int), ("rank", c.c_uint32), ("dims", c.c_int64 * MAX_RANK)]


class EvalParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("threads", c.c_uint32),
        ("max_bytes", c.c_uint64),
        ("numerics", c.c_int),
    ]


class Mismatch(c.Structure):
    _fields_ = [
        ("result", c.c_size_t),
        ("element", c.c_int64),
        ("count", c.c_int64),
        ("found", c.c_char * 96),
        ("expected", c.c_char * 200),
    ]


class Alias(c.Structure):
    _fields_ = [("parameter", c.c_uint32), ("result", c.c_uint32)]


AfterPass = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p)


class DeviceInfo(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("name", c.c_char * 128),
        ("target", c.c_char * 16),
        ("sm", c.c_uint32),
        ("multiprocessors", c.c_uint32),
        ("threads", c.c_uint32),
        ("registers", c.c_uint32),
        ("shared_bytes", c.c_uint32),
        ("block_shared", c.c_uint32),
        ("block_shared_optin", c.c_uint32),
        ("l2_bytes", c.c_uint32),
        ("memory_bytes", c.c_uint64),
        ("bytes_per_second", c.c_double),
    ]


class SparseSlot(c.Structure):
    _fields_ = [
        ("result", c.c_bool),
        ("leaf", c.c_size_t),
        ("counts", c.POINTER(c.c_int64)),
        ("shares", c.c_bool),
        ("with", c.c_size_t),
    ]


class CompileParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("target", c.c_char_p),
        ("fusion", c.c_char_p),
        ("argument_align", c.c_uint32),
        ("keep", c.c_uint32),
        ("after_pass", AfterPass),
        ("user", c.c_void_p),
        ("aliases", c.POINTER(Alias)),
        ("alias_count", c.c_size_t),
        ("scalars_by_value", c.c_bool),
        ("max_count", c.c_int64),
        ("programmatic", c.c_bool),
        ("device", c.POINTER(DeviceInfo)),
        ("numerics", c.c_int),
        ("lineinfo", c.c_bool),
        ("deterministic", c.c_bool),
        ("sparse_slots", c.POINTER(SparseSlot)),
        ("sparse_slot_count", c.c_size_t),
        ("least_align", c.c_uint32),
        ("isolate", c.c_bool),
        ("time_limit", c.c_double),
        ("worker", c.c_char_p),
        ("threads", c.c_uint32),
        ("separate_launches", c.c_bool),
    ]


class Slot(c.Structure):
    _fields_ = [
        ("result", c.c_bool),
        ("index", c.c_uint32),
        ("name", c.c_char_p),
        ("type", ArrayType),
        ("minor_to_major", c.c_uint8 * MAX_RANK),
        ("layout", c.c_char_p),
        ("bytes", c.c_int64),
        ("align", c.c_uint32),
        ("counted", c.c_bool),
        ("row", c.c_int64),
        ("by_value", c.c_bool),
        ("alias", c.c_uint32),
        ("donated", c.c_bool),
        ("role", c.c_int),
        ("leaf", c.c_uint32),
        ("level", c.c_uint32),
    ]


class Argument(c.Structure):
    _fields_ = [("kind", c.c_int), ("slot", c.c_uint32), ("offset", c.c_uint64), ("output", c.c_bool)]


class Launch(c.Structure):
    _fields_ = [
        ("kernel", c.c_char_p),
        ("when", c.c_int),
        ("grid", c.c_uint32 * 3),
        ("block", c.c_uint32 * 3),
        ("cluster", c.c_uint32 * 3),
        ("shared_bytes", c.c_uint32),
        ("dynamic_shared_bytes", c.c_uint32),
        ("programmatic", c.c_bool),
        ("vector_bytes", c.c_uint32),
        ("lanes", c.c_uint32),
        ("rest_lanes", c.c_uint32),
        ("elements", c.c_int64),
        ("bytes", c.c_int64),
        ("argument_count", c.c_size_t),
        ("arguments", c.POINTER(Argument)),
        ("count_whole", c.c_int64),
        ("count_rest", c.c_int64),
        ("count_blocks", c.c_uint32),
    ]


class Manifest(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("kiln_version", c.c_char_p),
        ("module", c.c_char_p),
        ("fusion", c.c_char_p),
        ("hash", c.c_uint8 * HASH_SIZE),
        ("target", c.c_char_p),
        ("ptx_version", c.c_uint32),
        ("driver_version", c.c_int),
        ("parameter_count", c.c_size_t),
        ("result_count", c.c_size_t),
        ("slots", c.POINTER(Slot)),
        ("launch_count", c.c_size_t),
        ("launches", c.POINTER(Launch)),
        ("scratch_bytes", c.c_uint64),
        ("scratch_zero_bytes", c.c_uint64),
        ("scratch_align", c.c_uint32),
        ("counted", c.c_bool),
        ("max_count", c.c_int64),
        ("count_unit", c.c_int64),
        ("numerics", c.c_int),
        ("constant_bytes", c.c_uint64),
        ("constants", c.c_void_p),
        ("step_count", c.c_size_t),
        ("steps", c.c_void_p),
    ]


Launched = c.CFUNCTYPE(None, c.c_void_p, c.c_size_t, c.c_double)


class RunParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("threads", c.c_uint32),
        ("count", c.c_int64),
        ("launched", Launched),
        ("user", c.c_void_p),
    ]


Resolve = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p, c.c_int)


class DriverParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("library", c.c_char_p),
        ("initialize", c.c_bool),
        ("resolve", c.c_void_p),
        ("user", c.c_void_p),
    ]


class Cubin(c.Structure):
    _fields_ = [("bytes", c.c_char_p), ("size", c.c_size_t)]


class Assembly(Params):
    _fields_ = [("struct_size", c.c_size_t), ("cubin", c.c_char_p), ("size", c.c_size_t), ("log", c.c_char_p)]


Assemble = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_char_p, c.c_char_p, c.c_size_t, c.POINTER(Assembly))


class AssembleParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("library", c.c_char_p),
        ("assemble", Assemble),
        ("user", c.c_void_p),
    ]


class CudaLaunchParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("stream", c.c_void_p),
        ("parameters", c.POINTER(c.c_uint64)),
        ("results", c.POINTER(c.c_uint64)),
        ("scratch", c.c_uint64),
        ("count", c.c_int64),
        ("launched", Launched),
        ("user", c.c_void_p),
    ]


class CacheParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("folder", c.c_char_p),
        ("max_folder_bytes", c.c_uint64),
        ("max_memory_bytes", c.c_uint64),
        ("read_only", c.c_bool),
    ]


class CacheInfo(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("folder", c.c_char_p),
        ("no_folder", c.c_char_p),
        ("memory_hits", c.c_uint64),
        ("folder_hits", c.c_uint64),
        ("misses", c.c_uint64),
        ("uncached", c.c_uint64),
        ("damaged", c.c_uint64),
        ("unwritten", c.c_uint64),
        ("memory_bytes", c.c_uint64),
        ("code_hits", c.c_uint64),
        ("code_misses", c.c_uint64),
    ]


JobProgress = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_size_t, c.c_size_t)
JobEnded = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_int)


class JobInfo(Params):
    _fields_ = [("struct_size", c.c_size_t), ("state", c.c_int), ("done", c.c_size_t), ("all", c.c_size_t)]


class JobParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("compile", c.POINTER(CompileParams)),
        ("cache", c.c_void_p),
        ("progress", JobProgress),
        ("ended", JobEnded),
        ("user", c.c_void_p),
    ]


class SimCall(c.Structure):
    _fields_ = [
        ("function", c.c_char_p),
        ("line", c.c_uint32),
        ("source_line", c.c_uint32),
        ("times", c.c_uint32),
    ]


class SimFinding(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("check", c.c_char_p),
        ("what", c.c_char_p),
        ("text", c.c_char_p),
        ("kernel", c.c_char_p),
        ("line", c.c_uint32),
        ("source_line", c.c_uint32),
        ("block", c.c_uint32 * 3),
        ("thread", c.c_uint32 * 3),
        ("address", c.c_uint64),
        ("bytes", c.c_uint64),
        ("other_line", c.c_uint32),
        ("other_block", c.c_uint32 * 3),
        ("other_thread", c.c_uint32 * 3),
        ("times", c.c_uint64),
        ("function", c.c_char_p),
        ("calls", c.POINTER(SimCall)),
        ("call_count", c.c_size_t),
        ("source", c.c_char_p),
        ("space", c.c_char_p),
        ("place", c.c_char_p),
        ("place_offset", c.c_int64),
        ("place_bytes", c.c_uint64),
        ("value", c.c_uint64),
        ("unknown", c.c_uint64),
        ("value_bytes", c.c_uint32),
        ("origin", c.c_char_p),
        ("origin_line", c.c_uint32),
    ]


class SimParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("devices", c.c_char_p),
        ("workers", c.c_uint32),
        ("shuffle", c.c_uint64),
        ("perturb", c.c_uint64),
        ("checks", c.c_uint32),
    ]


class SimRange(c.Structure):
    _fields_ = [("address", c.c_uint64), ("bytes", c.c_uint64)]


class SimLaunchParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("grid", c.c_uint32 * 3),
        ("block", c.c_uint32 * 3),
        ("cluster", c.c_uint32 * 3),
        ("dynamic_shared_bytes", c.c_uint32),
        ("arguments", c.POINTER(c.c_void_p)),
        ("cooperative", c.c_bool),
        ("workers", c.c_uint32),
        ("shuffle", c.c_uint64),
        ("most_branches", c.c_uint64),
        ("perturb", c.c_uint64),
        ("checks", c.c_uint32),
        ("outputs", c.POINTER(SimRange)),
        ("scratch", c.POINTER(SimRange)),
        ("output_count", c.c_size_t),
        ("scratch_count", c.c_size_t),
    ]


class SimFault(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("what", c.c_char_p),
        ("block", c.c_uint32 * 3),
        ("thread", c.c_uint32 * 3),
        ("line", c.c_uint32),
        ("address", c.c_uint64),
    ]


class AccessCounts(c.Structure):
    _fields_ = [
        ("kind", c.c_int),
        ("requests", c.c_uint64),
        ("lanes", c.c_uint64),
        ("bytes", c.c_uint64),
        ("unique_bytes", c.c_uint64),
        ("width", c.c_uint64 * 6),
        ("sectors", c.c_uint64),
        ("ideal_sectors", c.c_uint64),
        ("l1_hits", c.c_uint64),
        ("l2_hits", c.c_uint64),
        ("wavefronts", c.c_uint64),
        ("ideal_wavefronts", c.c_uint64),
        ("remote", c.c_uint64),
        ("addresses", c.c_uint64),
        ("most_on_one", c.c_uint32),
    ]


class ProfileLine(c.Structure):
    _fields_ = [
        ("line", c.c_uint32),
        ("function", c.c_char_p),
        ("text", c.c_char_p),
        ("kind", c.c_int),
        ("in_loop", c.c_bool),
        ("warps", c.c_uint64),
        ("active", c.c_uint64),
        ("lanes", c.c_uint64),
        ("partial", c.c_uint64),
        ("divergent", c.c_uint64),
        ("accesses", c.POINTER(AccessCounts)),
        ("access_count", c.c_size_t),
        ("sass", c.c_uint32),
        ("sass_executed", c.c_uint64),
    ]


class ProfileBuffer(c.Structure):
    _fields_ = [
        ("address", c.c_uint64),
        ("bytes", c.c_uint64),
        ("read_bytes", c.c_uint64),
        ("written_bytes", c.c_uint64),
    ]


class Occupancy(c.Structure):
    _fields_ = [
        ("registers", c.c_uint32),
        ("registers_real", c.c_bool),
        ("shared_bytes", c.c_uint32),
        ("blocks", c.c_uint32),
        ("warps", c.c_uint32),
        ("most_warps", c.c_uint32),
        ("carveout", c.c_uint32),
        ("l1_bytes", c.c_uint32),
        ("limiter", c.c_int),
        ("waves", c.c_double),
    ]


class ProfileRate(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("unit", c.c_char_p),
        ("amount", c.c_double),
        ("rate", c.c_double),
        ("seconds", c.c_double),
    ]


class Prediction(c.Structure):
    _fields_ = [
        ("seconds", c.c_double),
        ("limiter", c.c_char_p),
        ("rates", c.POINTER(ProfileRate)),
        ("rate_count", c.c_size_t),
        ("assumptions", c.POINTER(c.c_char_p)),
        ("assumption_count", c.c_size_t),
    ]


class ProfileSass(c.Structure):
    _fields_ = [
        ("known", c.c_bool),
        ("registers", c.c_uint32),
        ("stack_bytes", c.c_uint32),
        ("spill_store_bytes", c.c_uint32),
        ("spill_load_bytes", c.c_uint32),
        ("shared_bytes", c.c_uint32),
        ("instructions", c.c_uint64),
        ("executed", c.c_uint64),
        ("estimated", c.c_bool),
    ]


class ProfileInfo(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("kernel", c.c_char_p),
        ("gpu", c.c_char_p),
        ("sm", c.c_uint32),
        ("grid", c.c_uint32 * 3),
        ("block", c.c_uint32 * 3),
        ("cluster", c.c_uint32 * 3),
        ("shared_bytes", c.c_uint32),
        ("blocks", c.c_uint64),
        ("sampled", c.c_uint64),
        ("scale", c.c_double),
        ("warps", c.c_uint64 * CLASS_COUNT),
        ("lanes", c.c_uint64 * CLASS_COUNT),
        ("all_warps", c.c_uint64),
        ("all_active", c.c_uint64),
        ("all_lanes", c.c_uint64),
        ("partial", c.c_uint64),
        ("branches", c.c_uint64),
        ("divergent_branches", c.c_uint64),
        ("f32_flops", c.c_uint64),
        ("f64_flops", c.c_uint64),
        ("half_flops", c.c_uint64),
        ("accesses", AccessCounts * ACCESS_COUNT),
        ("hottest_address", c.c_uint64),
        ("hottest_requests", c.c_uint64),
        ("dram_read", c.c_uint64),
        ("dram_written", c.c_uint64),
        ("dram_dirty", c.c_uint64),
        ("buffers", c.POINTER(ProfileBuffer)),
        ("buffer_count", c.c_size_t),
        ("lines", c.POINTER(ProfileLine)),
        ("line_count", c.c_size_t),
        ("sass", ProfileSass),
        ("occupancy", Occupancy),
        ("prediction", Prediction),
        ("sass_classified", c.c_bool),
        ("sass_warps", c.c_uint64 * CLASS_COUNT),
        ("sass_other", c.c_uint64),
        ("kept_warps", c.POINTER(c.c_uint64)),
        ("kept", AccessCounts * ACCESS_COUNT),
    ]


class ProfileParams(Params):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("gpu", c.c_char_p),
        ("first", c.c_uint64),
        ("count", c.c_uint64),
        ("stride", c.c_uint64),
        ("run", c.c_uint64),
    ]


# The headers' name of each struct.
STRUCTS: Dict[str, Type[c.Structure]] = {
    "kiln_diagnostic": Diagnostic,
    "kiln_array_type": ArrayType,
    "kiln_eval_params": EvalParams,
    "kiln_mismatch": Mismatch,
    "kiln_alias": Alias,
    "kiln_device_info": DeviceInfo,
    "kiln_sparse_slot": SparseSlot,
    "kiln_compile_params": CompileParams,
    "kiln_slot": Slot,
    "kiln_argument": Argument,
    "kiln_launch": Launch,
    "kiln_manifest": Manifest,
    "kiln_run_params": RunParams,
    "kiln_driver_params": DriverParams,
    "kiln_cubin": Cubin,
    "kiln_assembly": Assembly,
    "kiln_assemble_params": AssembleParams,
    "kiln_cuda_launch_params": CudaLaunchParams,
    "kiln_cache_params": CacheParams,
    "kiln_cache_info": CacheInfo,
    "kiln_job_info": JobInfo,
    "kiln_job_params": JobParams,
    "kiln_sim_call": SimCall,
    "kiln_sim_finding": SimFinding,
    "kiln_sim_params": SimParams,
    "kiln_sim_range": SimRange,
    "kiln_sim_launch_params": SimLaunchParams,
    "kiln_sim_fault": SimFault,
    "kiln_access_counts": AccessCounts,
    "kiln_profile_line": ProfileLine,
    "kiln_profile_buffer": ProfileBuffer,
    "kiln_occupancy": Occupancy,
    "kiln_profile_rate": ProfileRate,
    "kiln_prediction": Prediction,
    "kiln_profile_sass": ProfileSass,
    "kiln_profile_info": ProfileInfo,
    "kiln_profile_params": ProfileParams,
}

# Types of functions: handles are h, their addresses (out or to be destroyed) hh; s is a status.
_h, _hh, _s, _z, _t = c.c_void_p, c.POINTER(c.c_void_p), c.c_int, c.c_size_t, c.c_char_p
_P = c.POINTER

FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "kiln_context_create": (_h, [c.c_void_p]),
    "kiln_context_destroy": (None, [_hh]),
    "kiln_diagnostics_count": (_z, [_h]),
    "kiln_diagnostics_get": (_P(Diagnostic), [_h, _z]),
    "kiln_diagnostics_clear": (None, [_h]),
    "kiln_version": (_t, []),
    "kiln_status_name": (_t, [_s]),
    "kiln_dtype_name": (_t, [c.c_int]),
    "kiln_dtype_bits": (c.c_uint, [c.c_int]),
    "kiln_module_parse": (_s, [_h, _t, _t, _z, _hh]),
    "kiln_module_destroy": (None, [_hh]),
    "kiln_module_print": (_s, [_h, _h, _P(c.c_void_p), _P(_z)]),
    "kiln_module_canonical_print": (_s, [_h, _h, _P(c.c_void_p), _P(_z)]),
    "kiln_text_free": (None, [_h, c.c_void_p, _z]),
    "kiln_module_name": (_t, [_h]),
    "kiln_module_instruction_count": (_z, [_h]),
    "kiln_module_fusions": (_z, [_h, _P(_t), _z]),
    "kiln_module_extract": (_s, [_h, _h, _t, _hh]),
    "kiln_module_densify": (_s, [_h, _h, _P(SparseSlot), _z, _hh]),
    "kiln_module_parameter_leaf_encoding": (_t, [_h, _z]),
    "kiln_module_result_leaf_encoding": (_t, [_h, _z]),
    "kiln_module_remove_dead": (_s, [_h, _h, _hh]),
    "kiln_module_inline": (_s, [_h, _h, _hh]),
    "kiln_module_flatten_tuples": (_s, [_h, _h, _hh]),
    "kiln_module_hash": (_s, [_h, _h, c.c_uint8 * HASH_SIZE]),
    "kiln_module_parameter_leaf_count": (_z, [_h]),
    "kiln_module_result_leaf_count": (_z, [_h]),
    "kiln_module_parameter_leaf_type": (c.c_bool, [_h, _z, _P(ArrayType)]),
    "kiln_module_result_leaf_type": (c.c_bool, [_h, _z, _P(ArrayType)]),
    "kiln_module_parameter_leaf_bytes": (c.c_int64, [_h, _z]),
    "kiln_module_result_leaf_bytes": (c.c_int64, [_h, _z]),
    "kiln_module_parameter_leaf_pack": (c.c_bool, [_h, _z, c.c_void_p, c.c_void_p]),
    "kiln_module_parameter_leaf_unpack": (c.c_bool, [_h, _z, c.c_void_p, c.c_void_p]),
    "kiln_module_result_leaf_pack": (c.c_bool, [_h, _z, c.c_void_p, c.c_void_p]),
    "kiln_module_result_leaf_unpack": (c.c_bool, [_h, _z, c.c_void_p, c.c_void_p]),
    "kiln_module_parameter_leaf_fill": (c.c_bool, [_h, _z, c.c_uint64, c.c_void_p]),
    "kiln_module_eval": (_s, [_h, _h, _P(c.c_void_p), _P(c.c_void_p), _P(EvalParams)]),
    "kiln_module_check": (
        _s,
        [_h, _h, _P(c.c_void_p), _P(c.c_void_p), _P(Mismatch), _z, _P(_z), _P(EvalParams)],
    ),
    "kiln_compile": (_s, [_h, _h, _P(CompileParams), _hh]),
    "kiln_compile_check": (_s, [_h, _h, _P(CompileParams)]),
    "kiln_artifact_destroy": (None, [_hh]),
    "kiln_artifact_text": (c.c_void_p, [_h, c.c_int, _P(_z)]),
    "kiln_artifact_manifest": (_P(Manifest), [_h]),
    "kiln_kernel_load": (_s, [_h, _h, _hh]),
    "kiln_kernel_destroy": (None, [_hh]),
    "kiln_kernel_run": (_s, [_h, _h, _P(c.c_void_p), _P(c.c_void_p), _P(RunParams)]),
    "kiln_driver_open": (_s, [_h, _P(DriverParams), _hh]),
    "kiln_driver_close": (None, [_hh]),
    "kiln_driver_version": (c.c_int, [_h]),
    "kiln_device_count": (_s, [_h, _h, _P(c.c_uint32)]),
    "kiln_device_describe": (_s, [_h, _h, c.c_uint32, _P(DeviceInfo)]),
    "kiln_cuda_kernel_create": (_s, [_h, _h, _h, c.c_void_p, _hh]),
    "kiln_cuda_kernel_destroy": (None, [_hh]),
    "kiln_cuda_kernel_prepare": (_s, [_h, _h]),
    "kiln_cuda_kernel_prepare_cubins": (_s, [_h, _h, _P(Cubin), _z]),
    "kiln_artifact_less": (c.c_void_p, [_h]),
    "kiln_cache_prepare": (_s, [_h, _h, _h]),
    "kiln_artifact_assemble": (_s, [_h, _h, _P(AssembleParams), _P(c.c_void_p), _P(_z)]),
    "kiln_cuda_kernel_launch": (_s, [_h, _h, _P(CudaLaunchParams)]),
    "kiln_device_open": (_s, [_h, _h, c.c_uint32, _hh]),
    "kiln_device_close": (None, [_hh]),
    "kiln_device_context": (c.c_void_p, [_h]),
    "kiln_device_stream": (c.c_void_p, [_h]),
    "kiln_device_alloc": (_s, [_h, _h, c.c_uint64, _P(c.c_uint64)]),
    "kiln_device_free": (None, [_h, c.c_uint64]),
    "kiln_device_upload": (_s, [_h, _h, c.c_uint64, c.c_void_p, c.c_uint64]),
    "kiln_device_download": (_s, [_h, _h, c.c_void_p, c.c_uint64, c.c_uint64]),
    "kiln_device_fill": (_s, [_h, _h, c.c_uint64, c.c_uint8, c.c_uint64]),
    "kiln_device_synchronize": (_s, [_h, _h]),
    "kiln_cache_open": (_s, [_h, _P(CacheParams), _hh]),
    "kiln_cache_close": (None, [_hh]),
    "kiln_cache_compile": (_s, [_h, _h, _h, _P(CompileParams), _hh]),
    "kiln_cache_describe": (_s, [_h, _h, _P(CacheInfo)]),
    "kiln_artifact_save": (_s, [_h, _h, _P(c.c_void_p), _P(_z)]),
    "kiln_artifact_bytes_free": (None, [_h, c.c_void_p, _z]),
    "kiln_artifact_load": (_s, [_h, _t, _z, _hh]),
    "kiln_job_start": (_s, [_h, _h, _P(JobParams), _hh]),
    "kiln_job_describe": (_s, [_h, _h, _P(JobInfo)]),
    "kiln_job_cancel": (None, [_h]),
    "kiln_job_take": (_s, [_h, _h, _hh]),
    "kiln_job_destroy": (None, [_hh]),
    "kiln_bundle_create": (_s, [_h, _P(c.c_void_p), _z, _hh]),
    "kiln_bundle_destroy": (None, [_hh]),
    "kiln_bundle_compile": (_s, [_h, _h, _P(_t), _z, _P(CompileParams), _hh]),
    "kiln_bundle_count": (_z, [_h]),
    "kiln_bundle_get": (_h, [_h, _z]),
    "kiln_bundle_choose": (_s, [_h, _h, c.c_uint32, _hh]),
    "kiln_bundle_save": (_s, [_h, _h, _P(c.c_void_p), _P(_z)]),
    "kiln_bundle_load": (_s, [_h, _t, _z, _hh]),
    "kiln_xla_kernel_create": (_s, [_h, _h, _h, c.c_void_p, _hh]),
    "kiln_xla_kernel_destroy": (None, [_hh]),
    "kiln_xla_kernel_waits": (c.c_bool, [_h]),
    "kiln_xla_call": (c.c_void_p, [c.c_void_p]),
    "kiln_xla_call_waiting": (c.c_void_p, [c.c_void_p]),
    "kiln_sim_configure": (_s, [_h, _P(SimParams)]),
    "kiln_sim_finding_count": (_z, []),
    "kiln_sim_finding_get": (_s, [_h, _z, _P(SimFinding)]),
    "kiln_sim_resolve": (c.c_void_p, [c.c_void_p, _t, c.c_int]),
    "kiln_simulator_open": (_s, [_h, _hh]),
    "kiln_simulator_close": (None, [_hh]),
    "kiln_simulator_alloc": (_s, [_h, _h, c.c_uint64, _P(c.c_uint64)]),
    "kiln_simulator_bytes": (c.c_void_p, [_h, c.c_uint64, c.c_uint64]),
    "kiln_simulator_load": (_s, [_h, _h, _t, _t, _z, _hh]),
    "kiln_sim_module_kernel": (_s, [_h, _h, _t, _hh]),
    "kiln_sim_kernel_profile": (
        _s,
        [_h, _h, _P(SimLaunchParams), _P(ProfileParams), _P(SimFault), _hh],
    ),
    "kiln_profile_destroy": (None, [_hh]),
    "kiln_profile_describe": (_s, [_h, _h, _P(ProfileInfo)]),
    "kiln_profile_class_name": (_t, [c.c_int]),
    "kiln_access_kind_name": (_t, [c.c_int]),
}


def declare(library: c.CDLL) -> c.CDLL:
    """Gives every function of the table its types. Raises AttributeError where the library lacks one."""
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
