"""Exceptions, by the library's status codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Type

from . import abi


@dataclass(frozen=True)
class Finding:
    """One thing that the library found: what it expected and what is there, with its place in a text if it has one."""

    severity: str  # "error", "warning" or "note"
    file: Optional[str]
    line: int  # from 1; 0: no place
    column: int  # byte, from 1
    message: str
    text: str  # with the source line and a caret


class KilnWarning(UserWarning):
    """What the library warns of: an attribute that it keeps without knowing it, an alias that cannot be."""


class Error(Exception):
    """A call of the library that failed. `findings` has all that it said; str() is their text, carets included."""

    def __init__(self, message: str, findings: Optional[List[Finding]] = None) -> None:
        super().__init__(message)
        self.findings = findings or []

    @classmethod
    def of(cls, findings: List[Finding]) -> "Error":
        texts = [f.text.rstrip("\n") or f.message for f in findings if f.severity != "warning"]
        return cls("\n".join(texts) or cls.__doc__ or "", findings)


class InvalidError(Error, ValueError):
    """The input is wrong; the findings say where, what was expected and what is there."""


class UnsupportedError(Error, NotImplementedError):
    """Valid input that this version does not handle; the findings give the reason."""


class OutOfMemoryError(Error, MemoryError):
    """An allocation whose size comes from the input failed."""


class DeviceError(Error, RuntimeError):
    """The device or its driver failed, or checks of the simulator found something."""


class InternalError(Error, RuntimeError):
    """A defect in kiln; please report it."""


class CancelledError(Error, RuntimeError):
    """Somebody has ended it, or its time was over."""


ERRORS: Dict[int, Type[Error]] = {
    abi.INVALID: InvalidError,
    abi.UNSUPPORTED: UnsupportedError,
    abi.MEMORY: OutOfMemoryError,
    abi.DEVICE: DeviceError,
    abi.INTERNAL: InternalError,
    abi.CANCELLED: CancelledError,
}
