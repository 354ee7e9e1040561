"""NVIDIA GPUs, by the CUDA driver or by the simulator of one: memory, kernels, launches."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import abi, arrays, dlpack
from .arrays import ArrayType
from .artifact import Artifact, Cache
from .errors import DeviceError
from .library import Handle, call, context, library, take_findings


@dataclass(frozen=True)
class Finding:
    """One thing that the simulator's checks found; `text` has all of it in one line."""

    check: str
    what: str
    text: str
    kernel: str
    line: int
    block: Tuple[int, ...]
    thread: Tuple[int, ...]
    times: int

    def __str__(self) -> str:
        return self.text


class DeviceArray:
    """A row-major array in a device's memory, which is freed with it. Others take it by DLPack without a copy."""

    def __init__(self, device: "Device", t: ArrayType) -> None:
        self.device, self.type = device, t
        self.bytes = int(np.prod(t.shape, dtype=np.int64)) * t.numpy.itemsize
        self.address = device._alloc(self.bytes)
        device._device.retain()

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.type.shape

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        out = np.empty(self.type.shape, self.type.numpy)
        self.device._download(out, self.address)
        return out if dtype is None else out.astype(dtype)

    def numpy(self) -> np.ndarray:
        """A copy in this machine's memory."""
        return self.__array__()

    def __dlpack__(self, stream: Any = None, **_: Any) -> Any:
        if self.device.simulated:
            raise BufferError("memory of a simulated GPU is no device's: take numpy() of it")
        self.device.synchronize()
        return dlpack.export(self.address, self.__dlpack_device__(), self.type, self)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (dlpack.CPU, 0) if self.device.simulated else (dlpack.CUDA, self.device.index)

    def __repr__(self) -> str:
        return f"<kiln.DeviceArray {self.type} on {self.device.name}>"

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self.device._free(self.address)
            self.device._device.release()


class Device:
    """One GPU with its primary context and a stream. Serves one thread at a time. Made by `cuda` and `simulator`."""

    def __init__(self, index: int, *, simulated: bool, library_path: Optional[str] = None) -> None:
        lib = library()
        self.simulated, self.index = simulated, index
        resolve = c.cast(lib.kiln_sim_resolve, c.c_void_p).value if simulated else None
        params = abi.DriverParams(
            library=library_path.encode() if library_path else None, initialize=True, resolve=resolve
        )
        self._driver = Handle("kiln_driver_close")
        call("kiln_driver_open", c.byref(params), self._driver.out())
        self.info = abi.DeviceInfo()
        call("kiln_device_describe", self._driver, index, c.byref(self.info))
        self._device = Handle("kiln_device_close", self._driver)
        call("kiln_device_open", self._driver, index, self._device.out())
        self._loaded: Dict[int, Tuple[Artifact, Handle]] = {}

    @property
    def name(self) -> str:
        return self.info.name.decode()

    @property
    def target(self) -> str:
        """What to compile for: "sm_90"."""
        return self.info.target.decode()

    @property
    def stream(self) -> int:
        """The CUstream that launches go to unless another one is given."""
        return library().kiln_device_stream(self._device) or 0

    @property
    def context(self) -> int:
        """Its primary CUcontext, which XLA and PyTorch use as well."""
        return library().kiln_device_context(self._device) or 0

    def __repr__(self) -> str:
        return f"<kiln.Device {self.name}{' (simulated)' if self.simulated else ''}, {self.target}>"

    def _alloc(self, size: int) -> int:
        address = c.c_uint64()
        call("kiln_device_alloc", self._device, size, c.byref(address))
        return address.value

    def _free(self, address: int) -> None:
        library().kiln_device_free(self._device, address)

    def _upload(self, address: int, source: np.ndarray) -> None:
        if source.nbytes:
            call("kiln_device_upload", self._device, address, c.c_void_p(source.ctypes.data), source.nbytes)

    def _download(self, to: np.ndarray, address: int) -> None:
        if to.nbytes:
            call("kiln_device_download", self._device, c.c_void_p(to.ctypes.data), address, to.nbytes)

    def synchronize(self) -> None:
        call("kiln_device_synchronize", self._device)

    def array(self, value: Any) -> DeviceArray:
        """A copy of an array in the device's memory."""
        found = np.ascontiguousarray(value)
        made = DeviceArray(self, ArrayType(arrays.hlo_dtype(found.dtype), found.shape))
        self._upload(made.address, found)
        return made

    def prepare(self, artifact: Artifact, *, cache: Optional[Cache] = None, cubin: Union[None, bytes, Sequence[bytes]] = None) -> None:
        """Loads an artifact; the driver compiles its PTX here and not at the first launch.

        cache: where the machine code may come from and is kept. cubin: machine code from an assembler of the caller's
        (Artifact.assemble, ptxas), so that the driver compiles nothing; of an artifact with kernels for less alignment
        two, its own and theirs. Nothing, where it is loaded already.
        """
        self._kernel(artifact, cache, cubin)

    def _kernel(self, artifact: Artifact, cache: Optional[Cache] = None, cubin: Union[None, bytes, Sequence[bytes]] = None) -> Handle:
        if id(artifact) not in self._loaded:
            kernel = Handle("kiln_cuda_kernel_destroy", self._device)
            where = library().kiln_device_context(self._device)
            call("kiln_cuda_kernel_create", self._driver, artifact._handle, where, kernel.out())
            if cubin is not None:
                codes = [cubin] if isinstance(cubin, bytes) else list(cubin)
                cubins = (abi.Cubin * max(1, len(codes)))(*(abi.Cubin(code, len(code)) for code in codes))
                call("kiln_cuda_kernel_prepare_cubins", kernel, cubins, len(codes))
            elif cache is not None:
                call("kiln_cache_prepare", cache._handle, kernel)
            else:
                call("kiln_cuda_kernel_prepare", kernel)
            self._loaded[id(artifact)] = (artifact, kernel)
        return self._loaded[id(artifact)][1]

    def run(self, artifact: Artifact, *arguments: Any, stream: Optional[int] = None) -> Tuple[Any, ...]:
        """Launches an artifact's kernels and returns the results as DeviceArrays.

        Arguments on the GPU (DeviceArray, or what has __dlpack__ there, such as PyTorch's tensors and JAX's arrays) are
        read where they are; others are copied to it first. On a `stream` of the caller's, results are there once it has
        come so far; on the device's own they are when they are looked at.
        """
        return _Run(self, artifact, arguments, stream).launch()


class _Run:
    """One launch: the addresses of its slots, and what must live until it is done."""

    def __init__(self, device: Device, artifact: Artifact, arguments: Sequence[Any], stream: Optional[int]) -> None:
        self.device, self.artifact, self.stream = device, artifact, stream
        self.held: List[Any] = []
        self.scratch: List[int] = []
        self.count = 0
        slots = artifact.manifest.parameters
        if len(arguments) != len(slots):
            raise TypeError(f"{artifact.manifest.module}: expected {len(slots)} arguments, found {len(arguments)}")
        if artifact.manifest.counted:
            given, self.count = artifact.inputs(arguments)
            self.parameters = [self._copied(buffer) for buffer in given]
        else:
            self.parameters = [self._argument(i, value) for i, value in enumerate(arguments)]

    def _argument(self, i: int, value: Any) -> int:
        slot, leaf = self.artifact.manifest.parameters[i], self.artifact.module.parameters[i]
        if slot.by_value:
            found = arrays.elements(value, slot.type, leaf.what)
            return int.from_bytes(found.tobytes(), "little")
        if isinstance(value, DeviceArray) and slot.is_plain and not slot.donated:
            if value.type != slot.type:
                raise ValueError(f"{leaf.what}: expected {slot.type}, found {value.type}")
            self.held.append(value)
            return value.address
        if not self.device.simulated and hasattr(value, "__dlpack_device__") and slot.is_strided and not slot.donated:
            if value.__dlpack_device__()[0] in (dlpack.CUDA, dlpack.CUDA_MANAGED):
                return self._imported(slot, leaf.what, value)
        return self._copied(arrays.elements(value, slot.type, leaf.what, slot.order) if slot.is_strided else leaf.pack(value))

    def _imported(self, slot: Any, what: str, value: Any) -> int:
        there = dlpack.take(value, self.stream or self.device.stream or 1)
        if there.device[1] != self.device.index:
            raise ValueError(f"{what}: expected an array on device {self.device.index}, found one on {there.device[1]}")
        if not there.holds(slot.type) or not there.lies_in(slot.order):
            raise ValueError(
                f"{what}: expected {slot.type}{slot.layout}, found shape {list(there.shape)}, strides {there.strides}"
            )
        self.held.append(there)
        return there.address

    def _copied(self, buffer: np.ndarray) -> int:
        address = self.device._alloc(max(1, buffer.nbytes))
        self.scratch.append(address)
        self.device._upload(address, buffer)
        return address

    def launch(self) -> Tuple[Any, ...]:
        m, device = self.artifact.manifest, self.device
        try:
            made = [self._result(i) for i in range(len(m.results))]
            scratch = self._scratch()
            params = abi.CudaLaunchParams(
                stream=self.stream if self.stream is not None else device.stream,
                parameters=(c.c_uint64 * max(1, len(self.parameters)))(*self.parameters),
                results=(c.c_uint64 * max(1, len(made)))(*[address for _, address in made]),
                scratch=scratch,
                count=self.count,
            )
            call("kiln_cuda_kernel_launch", device._kernel(self.artifact), c.byref(params))
            return tuple(self._taken(i, array, address) for i, (array, address) in enumerate(made))
        finally:
            if self.scratch:  # what was allocated for this launch alone is in use until it is done
                library().kiln_device_synchronize(context(), device._device)
                take_findings()
                for address in self.scratch:
                    device._free(address)

    def _result(self, i: int) -> Tuple[Optional[DeviceArray], int]:
        slot = self.artifact.manifest.results[i]
        if slot.donated and slot.alias is not None:
            return None, self.parameters[slot.alias]
        if slot.is_plain and not slot.counted:
            array = DeviceArray(self.device, slot.type)
            return array, array.address
        address = self.device._alloc(max(1, slot.bytes))
        self.scratch.append(address)
        return None, address

    def _scratch(self) -> int:
        m = self.artifact.manifest
        if not m.scratch_bytes:
            return 0
        address = self.device._alloc(m.scratch_bytes)
        self.scratch.append(address)
        self.device._upload(address, np.zeros(m.scratch_zero_bytes, np.uint8))
        self.device._upload(address + m.scratch_zero_bytes, np.frombuffer(m.constants, np.uint8))
        return address

    def _taken(self, i: int, array: Optional[DeviceArray], address: int) -> Any:
        slot, leaf = self.artifact.manifest.results[i], self.artifact.module.results[i]
        if array is not None or leaf.type is None:
            return array
        buffer = arrays.empty(max(0, slot.bytes))
        there = buffer
        if slot.counted:  # what is behind the rows that there are has not been written
            there = buffer[: self.count // self.artifact.manifest.count_unit * slot.row * slot.type.numpy.itemsize]
        self.device._download(there, address)
        return self.artifact.output(i, buffer, self.count)


def cuda(index: int = 0, library_path: Optional[str] = None) -> Device:
    """A GPU by the CUDA driver (libcuda.so.1, or the library given). Raises DeviceError where there is none."""
    return Device(index, simulated=False, library_path=library_path)


def simulator(gpu: Optional[str] = None, *, check: bool = False, workers: int = 0, shuffle: int = 0) -> Device:
    """A GPU simulated on this machine's CPU: A100, H100 (the default), H200, L40S, B200, RTX 4090.

    check: launches are watched for accesses out of bounds, undefined values, races and barriers; `findings` has what
    was found, and a launch that faults raises DeviceError. A process has one simulated driver: its GPU is that of the
    first call.
    """
    params = abi.SimParams(
        devices=gpu.encode() if gpu else None,
        workers=workers,
        shuffle=shuffle,
        checks=abi.CHECK_ALL if check else 0,
    )
    call("kiln_sim_configure", c.byref(params))
    return Device(0, simulated=True)


def findings() -> List[Finding]:
    """What the checks of the simulator's launches found in this process, in the order in which it was first seen."""
    found = []
    for i in range(library().kiln_sim_finding_count()):
        f = abi.SimFinding()
        call("kiln_sim_finding_get", i, c.byref(f))
        found.append(
            Finding(
                f.check.decode(),
                f.what.decode(),
                f.text.decode(),
                f.kernel.decode(),
                f.line,
                tuple(f.block),
                tuple(f.thread),
                f.times,
            )
        )
    return found


__all__ = ["Device", "DeviceArray", "DeviceError", "Finding", "cuda", "findings", "simulator"]
