"""Element types as numpy has them, and arrays between numpy, DLPack and the library's buffers."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from . import abi
from .library import library

try:  # bf16, the 8-bit floats and the 4-bit types, where they are installed
    import ml_dtypes
except ImportError:  # pragma: no cover
    ml_dtypes = None  # type: ignore[assignment]

ALIGNMENT = 64  # of the buffers that are made here; the library asks for 16

_NUMPY: Dict[str, str] = {
    "pred": "bool", "s1": "int8", "u1": "uint8", "s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16",
    "s32": "int32", "u32": "uint32", "s64": "int64", "u64": "uint64", "f16": "float16", "f32": "float32",
    "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
_ML_DTYPES: Dict[str, str] = {
    "s2": "int2", "u2": "uint2", "s4": "int4", "u4": "uint4", "bf16": "bfloat16", "f4e2m1fn": "float4_e2m1fn",
    "f8e3m4": "float8_e3m4", "f8e4m3": "float8_e4m3", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz", "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
}  # fmt: skip
# Without ml_dtypes narrow integers are whole bytes, and floats raw bytes.
_PLAIN: Dict[str, str] = {"s2": "int8", "u2": "uint8", "s4": "int8", "u4": "uint8", "bf16": "V2"}


def numpy_dtype(name: str) -> np.dtype:
    """The numpy type of an HLO element type: "bf16" is ml_dtypes.bfloat16. Types of less than 8 bits take a byte each.

    Where ml_dtypes has no such type (or is not installed) it is void of the same size.
    """
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    if name in _ML_DTYPES:
        scalar = getattr(ml_dtypes, _ML_DTYPES[name], None) if ml_dtypes else None
        return np.dtype(scalar) if scalar is not None else np.dtype(_PLAIN.get(name, "V1"))
    raise ValueError(f"expected the name of an element type, such as 'f32', found {name!r}")


def hlo_dtype(dtype: Any) -> str:
    """The HLO element type of a numpy type; ValueError for those that HLO lacks."""
    d = np.dtype(dtype)
    for name, other in _NUMPY.items():
        if np.dtype(other) == d and name not in ("s1", "u1"):
            return name
    for name, other in _ML_DTYPES.items():
        scalar = getattr(ml_dtypes, other, None) if ml_dtypes else None
        if scalar is not None and np.dtype(scalar) == d:
            return name
    raise ValueError(f"expected an element type that HLO has, found {d}")


@dataclass(frozen=True)
class ArrayType:
    """An array: its element type by HLO's name, and its dimensions."""

    dtype: str
    shape: Tuple[int, ...]

    @property
    def numpy(self) -> np.dtype:
        return numpy_dtype(self.dtype)

    @property
    def bits(self) -> int:
        """Of an element in a buffer; types of less than 8 are packed there."""
        return library().kiln_dtype_bits(abi.DTYPES.index(self.dtype))

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @classmethod
    def of(cls, t: abi.ArrayType) -> "ArrayType":
        return cls(abi.DTYPES[t.dtype], tuple(t.dims[: t.rank]))


def empty(size: int) -> np.ndarray:
    """Bytes at an aligned address."""
    block = np.empty(size + ALIGNMENT, np.uint8)
    skip = -block.ctypes.data % ALIGNMENT
    return block[skip : skip + size]


def elements(value: Any, expected: ArrayType, what: str, order: Optional[Sequence[int]] = None) -> np.ndarray:
    """`value` as an array of the expected type, contiguous: itself where it is that already.

    Takes numpy arrays, whatever has __dlpack__ in this machine's memory (JAX, PyTorch), and what numpy.asarray takes;
    of the latter, Python's numbers become the expected type. With an `order` (dimensions, the slowest in memory first)
    its elements lie in that, and the result's dimensions are in that order; without one they are row-major.
    """
    if isinstance(value, (bool, int, float, complex, list, tuple)):
        value = np.asarray(value, expected.numpy)
    elif not isinstance(value, np.ndarray):
        value = _import(value)
    if value.dtype != expected.numpy and not (
        value.dtype.type is np.void and value.dtype.itemsize == expected.numpy.itemsize
    ):
        raise TypeError(f"{what}: expected {expected}, found elements of type {value.dtype}")
    if value.shape != expected.shape:
        raise ValueError(f"{what}: expected {expected}, found shape {list(value.shape)}")
    return np.ascontiguousarray(value if order is None else value.transpose(order)).reshape(
        value.shape if order is None else [value.shape[d] for d in order]
    )


def _import(value: Any) -> np.ndarray:
    if hasattr(value, "__dlpack__"):
        found = _bf16(value) if str(getattr(value, "dtype", "")).endswith("bfloat16") else None
        if found is not None:
            return found
        try:
            return np.from_dlpack(value)
        except (TypeError, BufferError, RuntimeError, ValueError):
            pass  # types that numpy has no DLPack for
    return np.asarray(value)


class _Lent:
    """Another library's memory as numpy asks for it, held as long as an array of it lives."""

    def __init__(self, there: Any) -> None:
        self.there = there
        strides = None if there.strides is None else tuple(2 * s for s in there.strides)
        self.__array_interface__ = {
            "shape": there.shape, "strides": strides, "typestr": "|V2", "data": (there.address, True), "version": 3,
        }  # fmt: skip


def _bf16(value: Any) -> Optional[np.ndarray]:
    """A bf16 array of another library, which numpy does not take by DLPack; None where it is something else."""
    from . import dlpack

    try:
        there = dlpack.take(value)
    except (TypeError, BufferError, RuntimeError, ValueError):
        return None
    if there.device[0] != dlpack.CPU or there.lanes != 1 or (there.code, there.bits) != dlpack.BF16:
        return None
    found = np.empty(there.shape, "V2") if 0 in there.shape else np.asarray(_Lent(there))
    return found.view(numpy_dtype("bf16"))


def aligned(value: np.ndarray, align: int) -> np.ndarray:
    """The same elements where a buffer of such an alignment may lie: where they are, if that will do."""
    if value.ctypes.data % align == 0 or not value.size:
        return value
    copy = empty(value.nbytes).view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy


def pointers(buffers: Any) -> Any:
    """A C array of the addresses of numpy arrays."""
    return (c.c_void_p * max(1, len(buffers)))(*[b.ctypes.data for b in buffers])
