"""What kernels cost on a GPU, counted on the simulator; docs/profiler.md says what each number means."""

from __future__ import annotations

import ctypes as c
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from . import abi
from .artifact import Artifact, Launch
from .library import Handle, call, library


def _plain(value: Any) -> Any:
    """A struct as a dictionary, its strings as str; pointers are left out."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, c.Structure):
        kept = {}
        for name, kind, *_ in value._fields_:
            if name != "struct_size" and not issubclass(kind, c._Pointer):
                kept[name] = _plain(getattr(value, name))
        return kept
    if isinstance(value, c.Array):
        return [_plain(v) for v in value]
    return value


class Profile:
    """What one launch costs. `counts` has every number of kiln_profile_info under its name."""

    def __init__(self, handle: Handle) -> None:
        lib, info = library(), abi.ProfileInfo()
        call("kiln_profile_describe", handle, c.byref(info))
        self.counts: Dict[str, Any] = _plain(info)
        self.kernel: str = self.counts["kernel"]
        self.seconds: float = info.prediction.seconds
        self.limiter: str = self.counts["prediction"]["limiter"]
        self.rates: List[Dict[str, Any]] = [_plain(r) for r in info.prediction.rates[: info.prediction.rate_count]]
        self.assumptions: List[str] = [
            a.decode() for a in info.prediction.assumptions[: info.prediction.assumption_count]
        ]
        self.lines: List[Dict[str, Any]] = [
            dict(_plain(x), accesses=[_plain(a) for a in x.accesses[: x.access_count]])
            for x in info.lines[: info.line_count]
        ]
        self.buffers: List[Dict[str, Any]] = [_plain(b) for b in info.buffers[: info.buffer_count]]
        self.instructions: Dict[str, int] = {
            lib.kiln_profile_class_name(i).decode(): info.warps[i] for i in range(abi.CLASS_COUNT)
        }
        self.accesses: Dict[str, Dict[str, Any]] = {
            lib.kiln_access_kind_name(i).decode(): _plain(info.accesses[i]) for i in range(abi.ACCESS_COUNT)
        }

    @property
    def sectors(self) -> int:
        """32-byte sectors of global memory that loads, stores and atomics asked for."""
        return sum(a["sectors"] for name, a in self.accesses.items() if name.startswith("global"))

    def __repr__(self) -> str:
        return f"<kiln.Profile {self.kernel}: {self.seconds * 1e6:.1f} us, limited by {self.limiter}>"


def profile(artifact: Artifact, *arguments: Any, gpu: Optional[str] = None, seed: int = 0) -> List[Profile]:
    """Runs an artifact's launches on the simulator and counts. Without arguments they are filled from the seed.

    gpu: the one to predict for: H100 (the default), A100, H200, L40S, B200, RTX 4090. Counts of PTX and of memory are
    exact and the same in every run; the time is a model's.
    """
    return _Run(artifact, arguments or artifact.module.example(seed), gpu).profiles()


class _Run:
    def __init__(self, artifact: Artifact, arguments: Sequence[Any], gpu: Optional[str]) -> None:
        ptx = artifact.ptx
        if ptx is None:
            raise ValueError(f"expected an artifact for a GPU, found one for {artifact.manifest.target}")
        self.artifact, self.gpu = artifact, gpu
        self.sim, self.code = Handle("kiln_simulator_close"), Handle()
        call("kiln_simulator_open", self.sim.out())
        data = ptx.encode()
        call("kiln_simulator_load", self.sim, artifact.manifest.module.encode(), data, len(data), self.code.out())
        given, self.count = artifact.inputs(arguments)
        self.slots = [self._argument(i, buffer) for i, buffer in enumerate(given)]
        for slot in artifact.manifest.results:
            aliased = slot.donated and slot.alias is not None
            self.slots.append(self.slots[slot.alias] if aliased else self._alloc(slot.bytes))
        self.scratch = self._scratch()

    def _alloc(self, size: int) -> int:
        address = c.c_uint64()
        call("kiln_simulator_alloc", self.sim, max(1, size), c.byref(address))
        return address.value

    def _write(self, address: int, data: np.ndarray) -> None:
        if data.nbytes:
            c.memmove(library().kiln_simulator_bytes(self.sim, address, data.nbytes), data.ctypes.data, data.nbytes)

    def _argument(self, i: int, buffer: np.ndarray) -> int:
        slot = self.artifact.manifest.parameters[i]
        if slot.by_value:
            return int.from_bytes(buffer.tobytes(), "little")
        address = self._alloc(max(slot.bytes, buffer.nbytes))
        self._write(address, buffer)
        return address

    def _scratch(self) -> int:
        m = self.artifact.manifest
        if not m.scratch_bytes:
            return 0
        address = self._alloc(m.scratch_bytes)
        self._write(address, np.zeros(m.scratch_zero_bytes, np.uint8))
        self._write(address + m.scratch_zero_bytes, np.frombuffer(m.constants, np.uint8))
        return address

    def _is_due(self, launch: Launch) -> bool:
        m, in_place = self.artifact.manifest, True
        slots = m.parameters + m.results
        for a in launch.arguments:
            alias = slots[a.slot].alias if a.kind == "slot" and a.output else None
            if alias is not None and self.slots[alias] != self.slots[a.slot]:
                in_place = False
        return launch.when == "always" or in_place == (launch.when == "in place")

    def profiles(self) -> List[Profile]:
        launches = self.artifact.manifest.launches
        return [self._profile(x) for x in launches if x.grid[0] and self._is_due(x)]

    def _profile(self, launch: Launch) -> Profile:
        kernel = Handle()
        call("kiln_sim_module_kernel", self.code, launch.kernel.encode(), kernel.out())
        values = {"slot": lambda a: self.slots[a.slot], "scratch": lambda a: self.scratch + a.offset}
        words = [c.c_uint64(values.get(a.kind, lambda _: self.count)(a)) for a in launch.arguments]
        pointers = (c.c_void_p * max(1, len(words)))(*[c.addressof(w) for w in words])
        params = abi.SimLaunchParams(dynamic_shared_bytes=launch.dynamic_shared_bytes)
        params.grid, params.block, params.cluster = launch.grid, launch.block, launch.cluster
        params.arguments = pointers
        how = abi.ProfileParams(gpu=self.gpu.encode() if self.gpu else None)
        made = Handle("kiln_profile_destroy")
        call("kiln_sim_kernel_profile", kernel, c.byref(params), c.byref(how), None, made.out())
        return Profile(made)


__all__ = ["Profile", "profile"]
