"""DLPack capsules: arrays of a device's memory in and out, without a copy (dmlc/dlpack, version 0.8 structs)."""

from __future__ import annotations

import ctypes as c
from typing import Any, Optional, Sequence, Tuple

from .arrays import ArrayType

CPU, CUDA, CUDA_MANAGED = 1, 2, 13

_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_CODES = {"s": _INT, "u": _UINT, "f": _FLOAT, "b": _BFLOAT, "c": _COMPLEX, "p": _BOOL}
_WIDTHS = (8, 16, 32, 64, 128)
BF16 = (_BFLOAT, 16)


class _Device(c.Structure):
    _fields_ = [("type", c.c_int), ("id", c.c_int)]


class _DataType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class _Tensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("device", _Device),
        ("ndim", c.c_int32),
        ("dtype", _DataType),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


class _Managed(c.Structure):
    pass


_Deleter = c.CFUNCTYPE(None, c.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", c.c_void_p), ("deleter", _Deleter)]

_api = c.pythonapi
_CapsuleDestructor = c.CFUNCTYPE(None, c.c_void_p)
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
_pointer = _api.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
_is_valid = _api.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c.c_int, [c.c_void_p, c.c_char_p]
_raw_pointer = c.PYFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = _api.PyCapsule_SetName
_rename.restype, _rename.argtypes = c.c_int, [c.py_object, c.c_char_p]

_NAME, _USED = b"dltensor", b"used_dltensor"
_exported: dict = {}  # what capsules keep alive, by the address of their struct


@_Deleter
def _delete(managed: Any) -> None:
    _exported.pop(c.addressof(managed.contents), None)


@_CapsuleDestructor
def _forget(capsule: int) -> None:
    if _is_valid(capsule, _NAME):  # nobody took it
        _exported.pop(_raw_pointer(capsule, _NAME), None)


def type_code(t: ArrayType) -> Optional[Tuple[int, int]]:
    """DLPack's code and bits of an element type; None where DLPack 0.8 has none."""
    if t.dtype.startswith("f8") or t.dtype.startswith("f4") or t.bits not in _WIDTHS:
        return None
    return _CODES[t.dtype[0]], t.bits


def export(address: int, device: Tuple[int, int], t: ArrayType, owner: Any) -> Any:
    """A capsule for row-major memory at `address`; `owner` stays alive for as long as somebody has it."""
    code = type_code(t)
    if code is None:
        raise BufferError(f"DLPack has no element type {t.dtype}")
    shape = (c.c_int64 * max(1, len(t.shape)))(*t.shape)
    managed = _Managed(
        tensor=_Tensor(
            data=address,
            device=_Device(*device),
            ndim=len(t.shape),
            dtype=_DataType(code[0], code[1], 1),
            shape=shape,
            strides=None,
            byte_offset=0,
        ),
        deleter=_delete,
    )
    _exported[c.addressof(managed)] = (managed, shape, owner)
    return _new(c.addressof(managed), _NAME, c.cast(_forget, c.c_void_p))


class Imported:
    """Memory of another library, held until this is dropped."""

    def __init__(self, capsule: Any) -> None:
        self._managed = c.cast(_pointer(capsule, _NAME), c.POINTER(_Managed))
        t = self._managed.contents.tensor
        self.address: int = (t.data or 0) + t.byte_offset
        self.device = (t.device.type, t.device.id)
        self.shape = tuple(t.shape[i] for i in range(t.ndim))
        self.strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else None
        self.code, self.bits, self.lanes = t.dtype.code, t.dtype.bits, t.dtype.lanes
        _rename(capsule, _USED)

    def __del__(self) -> None:
        managed = getattr(self, "_managed", None)
        if managed and managed.contents.deleter:
            managed.contents.deleter(managed)

    def lies_in(self, order: Sequence[int]) -> bool:
        """Do its elements lie without gaps in this order of dimensions, the slowest in memory first?"""
        if 0 in self.shape:
            return True
        if self.strides is None:
            return [d for d in order if self.shape[d] != 1] == [d for d, n in enumerate(self.shape) if n != 1]
        step = 1
        for d in reversed(order):
            if self.shape[d] != 1 and self.strides[d] != step:
                return False
            step *= self.shape[d]
        return True

    def holds(self, t: ArrayType) -> bool:
        return self.lanes == 1 and type_code(t) == (self.code, self.bits) and self.shape == t.shape


def take(value: Any, stream: Optional[int] = None) -> Imported:
    """What `value` has on its device; its library makes work on it wait for `stream`."""
    kind, _ = value.__dlpack_device__()
    if kind == CPU or stream is None:
        return Imported(value.__dlpack__())
    return Imported(value.__dlpack__(stream=stream))


__all__ = ["CPU", "CUDA", "CUDA_MANAGED", "Imported", "export", "take", "type_code"]
