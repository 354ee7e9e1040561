"""HLO modules: reading, printing, rewriting, evaluating, checking."""

from __future__ import annotations

import ctypes as c
import os
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import abi, arrays
from .arrays import ArrayType
from .library import Handle, call, library, take_text


@dataclass(frozen=True)
class Mismatch:
    """The first element of a result that the evaluator does not allow, and how many there are."""

    result: int
    element: int  # row-major
    count: int
    found: str
    expected: str  # a value, or "[LO, HI]"

    def __str__(self) -> str:
        return (
            f"result {self.result}: element {self.element} is {self.found}, expected {self.expected}"
            f" ({self.count} differ)"
        )


class Leaf:
    """One array of a module's interface: a parameter's or a result's, tuples flattened depth first."""

    def __init__(self, module: Handle, index: int, is_result: bool) -> None:
        lib, found = library(), abi.ArrayType()
        prefix = f"kiln_module_{'result' if is_result else 'parameter'}_leaf_"
        self.index, self.is_result, self._module = index, is_result, module
        self._pack, self._unpack = getattr(lib, prefix + "pack"), getattr(lib, prefix + "unpack")
        self.bytes: int = getattr(lib, prefix + "bytes")(module, index)
        known = getattr(lib, prefix + "type")(module, index, c.byref(found))
        self.type: Optional[ArrayType] = ArrayType.of(found) if known else None  # None: a token, say

    @property
    def what(self) -> str:
        return f"{'result' if self.is_result else 'argument'} {self.index}"

    def buffer(self) -> np.ndarray:
        return arrays.empty(max(0, self.bytes))

    def pack(self, value: Any) -> np.ndarray:
        """A buffer with these elements, in the leaf's layout; without any where the leaf has no buffer."""
        buffer = self.buffer()
        if self.type is not None:
            found = arrays.elements(value, self.type, self.what)
            self._pack(self._module, self.index, c.c_void_p(found.ctypes.data), c.c_void_p(buffer.ctypes.data))
        return buffer

    def unpack(self, buffer: np.ndarray) -> Optional[np.ndarray]:
        """The elements of a buffer; None where the leaf has none."""
        if self.type is None:
            return None
        out = np.empty(self.type.shape, self.type.numpy)
        self._unpack(self._module, self.index, c.c_void_p(buffer.ctypes.data), c.c_void_p(out.ctypes.data))
        return out

    def __repr__(self) -> str:
        return f"<{self.what}: {self.type or 'no array'}>"


class Module:
    """A checked HLO module. It never changes; threads may share it."""

    def __init__(self, text: Union[str, bytes], name: str = "module.hlo") -> None:
        """Reads HLO text; `name` is what findings call it. Raises InvalidError with the place of every finding."""
        data = text.encode() if isinstance(text, str) else bytes(text)
        handle = Handle("kiln_module_destroy")
        call("kiln_module_parse", name.encode(), data, len(data), handle.out())
        self._take(handle)

    def _take(self, handle: Handle) -> None:
        lib = library()
        self._handle = handle
        self.name: str = lib.kiln_module_name(handle).decode("utf-8", "replace")
        self.parameters: Tuple[Leaf, ...] = tuple(
            Leaf(handle, i, False) for i in range(lib.kiln_module_parameter_leaf_count(handle))
        )
        self.results: Tuple[Leaf, ...] = tuple(
            Leaf(handle, i, True) for i in range(lib.kiln_module_result_leaf_count(handle))
        )

    @classmethod
    def _of(cls, handle: Handle) -> "Module":
        self = cls.__new__(cls)
        self._take(handle)
        return self

    @classmethod
    def from_file(cls, path: Union[str, "os.PathLike[str]"]) -> "Module":
        with open(path, "rb") as f:
            return cls(f.read(), os.fspath(path))

    def __str__(self) -> str:
        """The canonical text; reading it gives the same text again."""
        return take_text("kiln_module_print", self._handle)

    def __repr__(self) -> str:
        return f"<kiln.Module {self.name}: {self.instruction_count} instructions>"

    @property
    def instruction_count(self) -> int:
        return library().kiln_module_instruction_count(self._handle)

    @property
    def fusions(self) -> List[str]:
        """Names of ENTRY's fusions, in order."""
        n = library().kiln_module_fusions(self._handle, None, 0)
        names = (c.c_char_p * max(1, n))()
        library().kiln_module_fusions(self._handle, names, n)
        return [x.decode() for x in names[:n]]

    @property
    def hash(self) -> bytes:
        """16 bytes that are equal for modules that compute the same in the same way, whatever the names in them."""
        out = (c.c_uint8 * abi.HASH_SIZE)()
        call("kiln_module_hash", self._handle, out)
        return bytes(out)

    @property
    def canonical(self) -> str:
        """The text behind the hash."""
        return take_text("kiln_module_canonical_print", self._handle)

    def _made_by(self, function: str, *arguments: Any) -> "Module":
        handle = Handle("kiln_module_destroy")
        call(function, self._handle, *arguments, handle.out())
        return Module._of(handle)

    def extract(self, fusion: str) -> "Module":
        """One fusion of ENTRY as a module."""
        return self._made_by("kiln_module_extract", fusion.encode())

    def over_arrays(self) -> "Module":
        """Tensors with sparse encodings replaced by the arrays that they are stored in, as long as there can be need of."""
        return self._made_by("kiln_module_densify", None, 0)

    @property
    def has_encodings(self) -> bool:
        lib, sides = library(), (("parameter", self.parameters), ("result", self.results))
        return any(
            getattr(lib, f"kiln_module_{side}_leaf_encoding")(self._handle, i) is not None
            for side, leaves in sides
            for i in range(len(leaves))
        )

    def inline(self) -> "Module":
        """Fusions and calls replaced by what they call."""
        return self._made_by("kiln_module_inline")

    def remove_dead(self) -> "Module":
        return self._made_by("kiln_module_remove_dead")

    def flatten_tuples(self) -> "Module":
        return self._made_by("kiln_module_flatten_tuples")

    # --- values ------------------------------------------------------------------------------------------------------

    def example(self, seed: int = 0) -> List[Optional[np.ndarray]]:
        """Arguments that follow from the seed: floats in -4..4, integers in -100..100 as far as the type goes.

        They are what `kiln run --seed` takes.
        """
        made = []
        for leaf in self.parameters:
            buffer = leaf.buffer()
            library().kiln_module_parameter_leaf_fill(self._handle, leaf.index, seed, c.c_void_p(buffer.ctypes.data))
            made.append(leaf.unpack(buffer))
        return made

    def _packed(self, leaves: Sequence[Leaf], values: Sequence[Any]) -> List[np.ndarray]:
        if len(values) != len(leaves):
            kind = "results" if leaves is self.results else "arguments"
            raise TypeError(f"{self.name}: expected {len(leaves)} {kind}, found {len(values)}")
        return [leaf.pack(value) for leaf, value in zip(leaves, values)]

    def eval(self, *arguments: Any, threads: int = 0, max_bytes: int = 0) -> Tuple[Optional[np.ndarray], ...]:
        """ENTRY's results by the reference evaluator: slow, and right by definition. Tuples are flattened."""
        given = self._packed(self.parameters, arguments)
        made = [leaf.buffer() for leaf in self.results]
        params = abi.EvalParams(threads=threads, max_bytes=max_bytes)
        call("kiln_module_eval", self._handle, arrays.pointers(given), arrays.pointers(made), c.byref(params))
        return tuple(leaf.unpack(buffer) for leaf, buffer in zip(self.results, made))

    def check(self, arguments: Sequence[Any], results: Sequence[Any], numerics: str = "strict") -> List[Mismatch]:
        """Judges results: equal bits for integers and types of 16 bits or fewer, else the evaluator's interval.

        An empty list says that all are right. There are no tolerances.
        """
        given = self._packed(self.parameters, arguments)
        made = self._packed(self.results, results)
        found = (abi.Mismatch * max(1, len(made)))()
        count = c.c_size_t()
        params = abi.EvalParams(numerics=numerics_of(numerics))
        call(
            "kiln_module_check",
            self._handle,
            arrays.pointers(given),
            arrays.pointers(made),
            found,
            len(made),
            c.byref(count),
            c.byref(params),
        )
        return [
            Mismatch(m.result, m.element, m.count, m.found.decode(), m.expected.decode())
            for m in found[: min(count.value, len(made))]
        ]


def numerics_of(name: str) -> int:
    if name not in ("strict", "fast"):
        raise ValueError(f"expected numerics 'strict' or 'fast', found {name!r}")
    return abi.FAST if name == "fast" else abi.STRICT
