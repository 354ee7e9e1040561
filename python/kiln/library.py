"""Finding and loading libkiln, contexts of threads, and what a failed call becomes."""

from __future__ import annotations

import ctypes as c
import os
import pathlib
import threading
import warnings
from typing import Any, List, Optional

from . import abi
from .errors import ERRORS, Error, Finding, KilnWarning

_NAME = "libkiln.so.0"
_lock = threading.Lock()
_library: Optional[c.CDLL] = None
_threads = threading.local()


def _candidates() -> List[str]:
    chosen = os.environ.get("KILN_LIBRARY")
    if chosen:
        return [chosen]
    return [str(pathlib.Path(__file__).with_name(_NAME)), _NAME]


def library() -> c.CDLL:
    """libkiln: what KILN_LIBRARY names, else the one inside this package, else the system's.

    Raises ImportError, saying what was tried.
    """
    global _library
    if _library is not None:
        return _library
    with _lock:
        if _library is None:
            tried = []
            for path in _candidates():
                try:
                    _library = abi.declare(c.CDLL(path))
                    break
                except (OSError, AttributeError) as failure:
                    tried.append(f"{path}: {failure}")
            else:
                raise ImportError(
                    "kiln: no library " + _NAME + " that fits (set KILN_LIBRARY to its path):\n  " + "\n  ".join(tried)
                )
    return _library


class _Context:
    """A kiln_context. It serves the thread that made it."""

    def __init__(self) -> None:
        self.handle = c.c_void_p(library().kiln_context_create(None))
        if not self.handle:
            raise MemoryError("kiln: no memory for a context")

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            library().kiln_context_destroy(c.byref(self.handle))


def context() -> c.c_void_p:
    """The calling thread's context."""
    if getattr(_threads, "context", None) is None:
        _threads.context = _Context()
    return _threads.context.handle


def _text(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "replace")


def take_findings() -> List[Finding]:
    """What the thread's context has to say; it is empty then."""
    lib, cx = library(), context()
    found = []
    for i in range(lib.kiln_diagnostics_count(cx)):
        d = lib.kiln_diagnostics_get(cx, i).contents
        found.append(
            Finding(
                severity=("error", "warning", "note")[d.severity],
                file=_text(d.file) if d.file else None,
                line=d.line,
                column=d.column,
                message=_text(d.message),
                text=_text(d.text),
            )
        )
    lib.kiln_diagnostics_clear(cx)
    return found


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status, with the thread's context as its first argument.

    Warnings become Python's; a failure is raised as the exception of its status, with all findings.
    """
    status = getattr(library(), name)(context(), *arguments)
    findings = take_findings()
    if status != abi.OK:
        raise ERRORS.get(status, Error).of(findings)
    for f in findings:
        if f.severity == "warning":
            warnings.warn(f.text.rstrip() or f.message, KilnWarning, stacklevel=3)


class Handle:
    """Owns something that the library made, and ends it; without the name of a function it is somebody else's. What it was
    made with (`needs`) lives as long, whoever lets go of what first: in a cycle the collector takes all at once, in any
    order.
    """

    def __init__(self, destroy: Optional[str] = None, *needs: "Handle") -> None:
        # An entry for each user beside the first: `append` and `pop` are atomic, in whatever thread an owner dies.
        self._more_users: List[None] = []
        self._needs = needs
        self._destroy = getattr(library(), destroy) if destroy else None
        self._as_parameter_ = self.value = c.c_void_p()
        for need in needs:
            need.retain()

    def out(self) -> Any:
        return c.byref(self.value)

    def retain(self) -> None:
        self._more_users.append(None)

    def release(self) -> None:
        """Once for the owner and once for each `retain`; the last one ends it."""
        try:
            self._more_users.pop()
        except IndexError:
            if self.value and self._destroy:
                self._destroy(c.byref(self.value))
            for need in self._needs:
                need.release()

    def __del__(self) -> None:
        if hasattr(self, "value"):
            self.release()


def take_text(name: str, handle: Any) -> str:
    """The text that a printing function makes."""
    text, size = c.c_void_p(), c.c_size_t()
    call(name, handle, c.byref(text), c.byref(size))
    try:
        return c.string_at(text, size.value).decode("utf-8", "replace")
    finally:
        library().kiln_text_free(context(), text, size)
