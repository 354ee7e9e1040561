"""What compilation gives: code, and the manifest that says how to launch it; running it on this machine's CPU."""

from __future__ import annotations

import ctypes as c
import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import abi, arrays
from .arrays import ArrayType
from .errors import DeviceError, InvalidError
from .library import Handle, call, context, library
from .module import Module, numerics_of


@dataclass(frozen=True)
class Slot:
    """A buffer of the caller: a flattened parameter or result."""

    is_result: bool
    index: int
    name: str
    type: ArrayType
    layout: str
    bytes: int
    align: int
    counted: bool
    row: int
    by_value: bool
    alias: Optional[int]
    donated: bool
    order: Tuple[int, ...]  # its dimensions, the slowest in memory first
    is_tiled: bool
    is_plain: bool  # elements lie as numpy has them: row-major, whole bytes
    is_strided: bool  # or as a transposed numpy array has them, in `order`


@dataclass(frozen=True)
class Argument:
    kind: str  # "slot", "scratch" or "count"
    slot: int
    offset: int
    output: bool


@dataclass(frozen=True)
class Launch:
    """One kernel launch, as the caller of cuLaunchKernel wants to know it."""

    kernel: str
    when: str  # "always", "apart" or "in place"
    grid: Tuple[int, ...]
    block: Tuple[int, ...]
    cluster: Tuple[int, ...]
    shared_bytes: int
    dynamic_shared_bytes: int
    programmatic: bool
    vector_bytes: int
    elements: int
    bytes: int
    arguments: Tuple[Argument, ...]


@dataclass(frozen=True)
class Manifest:
    """All of an artifact's interface; include/kiln/artifact.h says what each field means."""

    kiln_version: str
    module: str
    fusion: Optional[str]
    hash: bytes
    target: str
    ptx_version: int
    driver_version: int
    parameters: Tuple[Slot, ...]
    results: Tuple[Slot, ...]
    launches: Tuple[Launch, ...]
    scratch_bytes: int
    scratch_zero_bytes: int
    scratch_align: int
    constants: bytes
    counted: bool
    max_count: int
    count_unit: int
    numerics: str


def _string(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "replace")


def _slot(s: abi.Slot) -> Slot:
    found = ArrayType.of(s.type)
    order = list(s.minor_to_major[: s.type.rank])
    tiled = ":" in _string(s.layout)
    return Slot(
        is_result=s.result,
        index=s.index,
        name=_string(s.name),
        type=found,
        layout=_string(s.layout),
        bytes=s.bytes,
        align=s.align,
        counted=s.counted,
        row=s.row,
        by_value=s.by_value,
        alias=None if s.alias == abi.NO_SLOT else s.alias,
        donated=s.donated,
        order=tuple(reversed(order)),
        is_tiled=tiled,
        is_plain=bool(s.layout) and not tiled and order == sorted(order, reverse=True) and found.bits >= 8,
        is_strided=bool(s.layout) and not tiled and found.bits >= 8,
    )


def _launch(x: abi.Launch) -> Launch:
    return Launch(
        kernel=_string(x.kernel),
        when=("always", "apart", "in place")[x.when],
        grid=tuple(x.grid),
        block=tuple(x.block),
        cluster=tuple(x.cluster),
        shared_bytes=x.shared_bytes,
        dynamic_shared_bytes=x.dynamic_shared_bytes,
        programmatic=x.programmatic,
        vector_bytes=x.vector_bytes,
        elements=x.elements,
        bytes=x.bytes,
        arguments=tuple(
            Argument(("slot", "scratch", "count")[a.kind], a.slot, a.offset, a.output)
            for a in x.arguments[: x.argument_count]
        ),
    )


def _manifest(m: abi.Manifest) -> Manifest:
    slots = [_slot(s) for s in m.slots[: m.parameter_count + m.result_count]]
    return Manifest(
        kiln_version=_string(m.kiln_version),
        module=_string(m.module),
        fusion=_string(m.fusion) if m.fusion else None,
        hash=bytes(m.hash),
        target=_string(m.target),
        ptx_version=m.ptx_version,
        driver_version=m.driver_version,
        parameters=tuple(slots[: m.parameter_count]),
        results=tuple(slots[m.parameter_count :]),
        launches=tuple(_launch(x) for x in m.launches[: m.launch_count]),
        scratch_bytes=m.scratch_bytes,
        scratch_zero_bytes=m.scratch_zero_bytes,
        scratch_align=m.scratch_align,
        constants=c.string_at(m.constants, m.constant_bytes) if m.constant_bytes else b"",
        counted=m.counted,
        max_count=m.max_count,
        count_unit=m.count_unit,
        numerics="fast" if m.numerics else "strict",
    )


class Artifact:
    """Compiled code. It never changes; threads may share it. Made by `kiln.compile`."""

    def __init__(self, module: Module, handle: Handle) -> None:
        self.module = module  # whose interface the slots are
        self._handle = handle
        self._kernel: Optional[Handle] = None
        self.manifest: Manifest = _manifest(library().kiln_artifact_manifest(handle).contents)

    def __repr__(self) -> str:
        m = self.manifest
        return f"<kiln.Artifact {m.module} for {m.target}: {len(m.launches)} launches>"

    def _text(self, kind: int) -> Optional[str]:
        size = c.c_size_t()
        text = library().kiln_artifact_text(self._handle, kind, c.byref(size))
        return c.string_at(text, size.value).decode("utf-8", "replace") if text else None

    @property
    def ptx(self) -> Optional[str]:
        """The kernels' PTX; None for the host."""
        return self._text(abi.TEXT_PTX)

    @property
    def plan(self) -> Optional[str]:
        """The plans as text; kept where `kiln.compile` was asked to."""
        return self._text(abi.TEXT_PLAN)

    @property
    def llvm(self) -> Optional[str]:
        return self._text(abi.TEXT_LLVM)

    @property
    def hlo(self) -> Optional[str]:
        """The module as it was compiled, each fusion of ENTRY a kernel."""
        return self._text(abi.TEXT_HLO)

    @property
    def explanation(self) -> Optional[str]:
        """Why the plans are as they are and what they cost, in words."""
        return self._text(abi.TEXT_EXPLAIN)

    @property
    def costs(self) -> Optional[List[Dict[str, Any]]]:
        """The same as data: an object for each plan, and for launches that are one, whose names are "of"."""
        text = self._text(abi.TEXT_EXPLAIN_JSON)
        return json.loads(text) if text else None

    # --- running ------------------------------------------------------------------------------------------------------

    def __call__(self, *arguments: Any, threads: int = 0) -> Tuple[Optional[np.ndarray], ...]:
        """Runs on this machine's CPU (target "host") and returns the results, tuples flattened.

        Arguments may be whatever has __dlpack__ in this machine's memory, or numpy arrays: one for each flattened
        parameter. They are read where they lie if that is in the order of the parameter's layout. Where the artifact
        takes a count, the slowest dimension of the counted arguments says it.
        """
        if self._kernel is None:
            kernel = Handle("kiln_kernel_destroy")
            call("kiln_kernel_load", self._handle, kernel.out())
            self._kernel = kernel
        given, count = self.inputs(arguments)
        made = [np.zeros(0, np.uint8) if s.bytes <= 0 else arrays.empty(s.bytes) for s in self.manifest.results]
        for slot, buffer in zip(self.manifest.results, made):
            if slot.donated and slot.alias is not None:  # what the module updates in place is not the caller's array
                source = given[slot.alias].view(np.uint8).reshape(-1)
                buffer[: source.size] = source
                given[slot.alias] = buffer
        params = abi.RunParams(threads=threads, count=count)
        call("kiln_kernel_run", self._kernel, arrays.pointers(given), arrays.pointers(made), c.byref(params))
        return tuple(self.output(i, buffer, count) for i, buffer in enumerate(made))

    def inputs(self, arguments: Sequence[Any]) -> Tuple[List[np.ndarray], int]:
        """The arguments' buffers as the kernels want them, and the count (0 where there is none)."""
        slots = self.manifest.parameters
        if len(arguments) != len(slots):
            raise TypeError(f"{self.manifest.module}: expected {len(slots)} arguments, found {len(arguments)}")
        rows: Optional[int] = None
        given = []
        for slot, leaf, value in zip(slots, self.module.parameters, arguments):
            if slot.counted:
                found, n = _rows(slot, value, leaf.what)
                if rows is not None and rows != n:
                    raise ValueError(f"{leaf.what}: expected {rows} rows as before, found {n}")
                rows = n
                given.append(arrays.aligned(found, slot.align))
            elif slot.is_strided:
                given.append(arrays.aligned(arrays.elements(value, slot.type, leaf.what, slot.order), slot.align))
            else:
                given.append(leaf.pack(value))
        if not self.manifest.counted:
            return given, 0
        if rows is None:
            rows = self.module.results[0].type.shape[0]  # type: ignore[union-attr]
        return given, rows * self.manifest.count_unit

    def output(self, i: int, buffer: np.ndarray, count: int = 0) -> Optional[np.ndarray]:
        """The elements of result i's buffer: a view of it where they lie as numpy has them."""
        slot, leaf = self.manifest.results[i], self.module.results[i]
        if leaf.type is None:
            return None
        if not slot.counted and not slot.is_plain:
            return leaf.unpack(buffer)
        shape = slot.type.shape
        if slot.counted:
            shape = (count // self.manifest.count_unit,) + shape[1:]
        n = int(np.prod(shape, dtype=np.int64)) * slot.type.numpy.itemsize
        return buffer[:n].view(slot.type.numpy).reshape(shape)

    def save(self) -> bytes:
        """All of the artifact but texts that were kept, as bytes for `kiln.load`."""
        return take_bytes("kiln_artifact_save", self._handle)

    def assemble(
        self,
        library: Optional[str] = None,
        *,
        assembler: Optional[Callable[[str, bytes], bytes]] = None,
        less: bool = False,
    ) -> bytes:
        """Machine code of the PTX, for Device.prepare, by NVIDIA's nvJitLink (libnvJitLink.so.13 or .12, or the library
        given), or by an assembler of the caller's, which takes the target ("sm_90") and the PTX.

        less: of the kernels for buffers of less alignment (least_align). Raises UnsupportedError where there is no
        library, InvalidError where there are no such kernels, and what the assembler raises.
        """
        raised: List[BaseException] = []
        made: List[bytes] = []

        def assemble(_user: Any, target: bytes, ptx: bytes, _size: int, out: Any) -> bool:
            try:
                made.append(bytes(assembler(target.decode(), ptx)))  # type: ignore[misc]
            except BaseException as e:
                raised.append(e)
                return False
            out[0].cubin, out[0].size = made[0], len(made[0])
            return True

        source: Any = _less(self._handle) if less else self._handle
        if source is None:
            raise InvalidError("the artifact has no kernels for less alignment: expected least_align")
        params = abi.AssembleParams(
            library=library.encode() if library else None,
            assemble=abi.Assemble(assemble) if assembler else abi.Assemble(),
        )
        try:
            return take_bytes("kiln_artifact_assemble", source, c.byref(params))
        except DeviceError:
            if raised:
                raise raised[0]
            raise

    def check(self, arguments: Sequence[Any], results: Sequence[Any]) -> List[Any]:
        """What the evaluator says of results (Module.check), by the numerics that this was compiled with."""
        return self.module.check(arguments, results, self.manifest.numerics)


def _rows(slot: Slot, value: Any, what: str) -> Tuple[np.ndarray, int]:
    """An argument with as many rows as it has: its slowest dimension in memory is its first, which is row-major."""
    if not slot.is_plain:
        raise NotImplementedError(f"{what}: a run-time count with layout {slot.layout} is not supported here")
    found = value if isinstance(value, np.ndarray) else np.asarray(value)
    rows = found.shape[0] if found.ndim else -1
    expected = ArrayType(slot.type.dtype, (rows,) + slot.type.shape[1:])
    return arrays.elements(found, expected, what), rows


def load(module: Module, data: bytes) -> Artifact:
    """The artifact that was saved, of this module (or of the fusion of it that was compiled).

    Its code is run: load what you would run. Raises InvalidError for what is damaged or another module's.
    """
    handle = Handle("kiln_artifact_destroy")
    call("kiln_artifact_load", data, len(data), handle.out())
    return artifact_of(module, handle)


def artifact_of(module: Module, handle: Handle) -> Artifact:
    """An artifact that was loaded, which has to be of this module. Raises InvalidError."""
    fusion = library().kiln_artifact_manifest(handle).contents.fusion
    interface = module.extract(fusion.decode()) if fusion else module
    made = Artifact(interface.over_arrays() if interface.has_encodings else interface, handle)
    slots, leaves = made.manifest.parameters + made.manifest.results, made.module.parameters + made.module.results
    if [s.type for s in slots] != [x.type for x in leaves]:
        raise InvalidError(f"expected an artifact of {module.name}, found one of {made.manifest.module} with other arrays")
    return made


def _less(handle: Handle) -> Optional[int]:
    """The artifact's kernels for buffers of less alignment, as long as it lives."""
    found: Optional[int] = library().kiln_artifact_less(handle)
    return found


def take_bytes(name: str, *arguments: Any) -> bytes:
    """What a function makes that stores bytes and their size."""
    data, size = c.c_void_p(), c.c_size_t()
    call(name, *arguments, c.byref(data), c.byref(size))
    try:
        return c.string_at(data, size.value)
    finally:
        library().kiln_artifact_bytes_free(context(), data, size)


class Cache:
    """Artifacts by what they are made from, in memory and in a folder that processes share.

    folder: None stands for $XDG_CACHE_HOME/kiln or ~/.cache/kiln, "" for none. A folder that cannot be used is no error;
    `info` says why. Threads may share it.
    """

    def __init__(
        self, folder: Optional[str] = None, *, max_folder_bytes: int = 0, max_memory_bytes: int = 0, read_only: bool = False
    ) -> None:
        params = abi.CacheParams(
            folder=None if folder is None else folder.encode(),
            max_folder_bytes=max_folder_bytes,
            max_memory_bytes=max_memory_bytes,
            read_only=read_only,
        )
        self._handle = Handle("kiln_cache_close")
        call("kiln_cache_open", c.byref(params), self._handle.out())

    @property
    def info(self) -> Dict[str, Any]:
        """Its folder, or why there is none; hits, misses, damaged and unwritten records."""
        found = abi.CacheInfo()
        call("kiln_cache_describe", self._handle, c.byref(found))
        values = {name: getattr(found, name) for name, *_ in found._fields_ if name != "struct_size"}
        return {k: _string(v) if isinstance(v, bytes) else v for k, v in values.items()}


_KEEP = {"plan": abi.KEEP_PLAN, "llvm": abi.KEEP_LLVM, "explain": abi.KEEP_EXPLAIN, "hlo": abi.KEEP_HLO}


def options_of(
    module: Module,
    target: Optional[str],
    *,
    fusion: Optional[str] = None,
    numerics: str = "strict",
    keep: Sequence[str] = (),
    max_rows: int = 0,
    argument_align: int = 0,
    least_align: int = 0,
    aliases: Sequence[Tuple[int, int]] = (),
    scalars_by_value: bool = False,
    programmatic: bool = False,
    lineinfo: bool = False,
    deterministic: bool = False,
    isolate: bool = False,
    time_limit: float = 0,
    worker: Optional[str] = None,
    threads: int = 0,
    separate_launches: bool = False,
) -> Tuple[Module, abi.CompileParams]:
    """The module whose interface the slots are, and the params, which hold on to what they point to."""
    unknown = set(keep) - set(_KEEP)
    if unknown:
        raise ValueError(f"expected of keep {sorted(_KEEP)}, found {sorted(unknown)}")
    interface = module.extract(fusion) if fusion else module
    if interface.has_encodings:
        interface = interface.over_arrays()
    params = abi.CompileParams(
        target=target.encode() if target is not None else None,
        fusion=fusion.encode() if fusion else None,
        argument_align=argument_align,
        least_align=least_align,
        keep=sum(_KEEP[k] for k in set(keep)),
        scalars_by_value=scalars_by_value,
        programmatic=programmatic,
        numerics=numerics_of(numerics),
        lineinfo=lineinfo,
        deterministic=deterministic,
        isolate=isolate,
        time_limit=time_limit,
        worker=worker.encode() if worker is not None else None,
        threads=threads,
        separate_launches=separate_launches,
    )
    pairs = (abi.Alias * max(1, len(aliases)))(*[abi.Alias(p, r) for p, r in aliases])
    params.aliases, params.alias_count = pairs, len(aliases)
    if max_rows:
        first = interface.results[0].type
        params.max_count = max_rows * (int(np.prod(first.shape[1:], dtype=np.int64)) if first else 1)
    return interface, params


def compile(module: Module, target: str = "host", *, cache: Optional[Cache] = None, **options: Any) -> Artifact:
    """Compiles a module to PTX for "sm_70" ... "sm_121", or to code for "host".

    cache: where the artifact may come from and is put. Options:

    fusion: the one of ENTRY to compile, in place of all. keep: of "plan", "llvm", "explain" and "hlo", what to keep
    beside the code. max_rows: the slowest dimension of results and arguments comes at run time, up to so many. aliases:
    pairs of a flattened parameter and a result that may be the same buffer. isolate: code is made in a process of its
    own, which is ended after time_limit seconds. threads: at most so many make code of many kernels; 0: one for each
    core. numerics, argument_align, least_align, scalars_by_value, programmatic, lineinfo, deterministic, worker,
    separate_launches: as kiln_compile_params has them. A module with sparse encodings is that over the arrays of its tensors
    (Module.over_arrays).

    Raises InvalidError (no such target, fusion or alias) and UnsupportedError, with the op and the reason.
    """
    interface, params = options_of(module, target, **options)
    handle = Handle("kiln_artifact_destroy")
    if cache is not None:
        call("kiln_cache_compile", cache._handle, module._handle, c.byref(params), handle.out())
    else:
        call("kiln_compile", module._handle, c.byref(params), handle.out())
    return Artifact(interface, handle)
