"""PyTorch: modules as operators of torch.library, for the CPU and for CUDA, under torch.compile as well."""

from __future__ import annotations

import ctypes as c
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import abi
from .artifact import Artifact
from .artifact import compile as compile_module
from .device import Device, cuda
from .errors import UnsupportedError
from .library import Handle, call
from .module import Leaf, Module

_TYPES = {
    "pred": "bool", "s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16", "s32": "int32", "u32": "uint32",
    "s64": "int64", "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu",
}  # fmt: skip


def torch_dtype(name: str) -> Any:
    """PyTorch's type of an HLO element type; UnsupportedError where it has none."""
    import torch

    found = getattr(torch, _TYPES.get(name, ""), None)
    if found is None:
        raise UnsupportedError(f"expected an element type that PyTorch has, found {name}")
    return found


class _Operator:
    """A module's artifacts by device, and its calls on tensors."""

    def __init__(self, name: str, module: Module, options: Dict[str, Any]) -> None:
        self.name, self.module, self.options = name, module, options
        self._lock = threading.Lock()
        self._host: Optional[Tuple[Artifact, Handle]] = None
        self._gpus: Dict[int, Tuple[Artifact, Device, Handle]] = {}
        self._scratch: Dict[Tuple[int, int], Any] = {}
        for leaf in module.parameters + module.results:
            if leaf.type is None:
                raise UnsupportedError(f"{name}, {leaf.what}: expected an array")
            torch_dtype(leaf.type.dtype)

    def _checked(self, tensors: Sequence[Any], align: int) -> List[Any]:
        if len(tensors) != len(self.module.parameters):
            raise TypeError(f"{self.name}: expected {len(self.module.parameters)} tensors, found {len(tensors)}")
        return [self._fitting(leaf, t, align) for leaf, t in zip(self.module.parameters, tensors)]

    def _fitting(self, leaf: Leaf, tensor: Any, align: int) -> Any:
        assert leaf.type is not None
        if tensor.dtype != torch_dtype(leaf.type.dtype) or tuple(tensor.shape) != leaf.type.shape:
            raise ValueError(f"{self.name}, {leaf.what}: expected {leaf.type}, found {tensor.dtype} {list(tensor.shape)}")
        tensor = tensor.contiguous()
        return tensor if tensor.data_ptr() % align == 0 else tensor.clone()

    def results(self, device: Any) -> List[Any]:
        """Empty tensors for the results, on a device or on none (meta)."""
        import torch

        return [
            torch.empty(leaf.type.shape, dtype=torch_dtype(leaf.type.dtype), device=device)  # type: ignore[union-attr]
            for leaf in self.module.results
        ]

    def _compiled(self, target: str) -> Artifact:
        artifact = compile_module(self.module, target, **self.options)
        for slot in artifact.manifest.parameters + artifact.manifest.results:
            if not slot.is_plain or slot.by_value or slot.counted:
                raise UnsupportedError(f"{self.name}, {slot.name}: expected a row-major array, found {slot.layout}")
        return artifact

    def host(self, *tensors: Any) -> List[Any]:
        given, made = self._checked(tensors, 1), self.results("cpu")  # where elements are aligned, the host reads them
        with self._lock:
            if self._host is None:
                artifact, kernel = self._compiled("host"), Handle("kiln_kernel_destroy")
                call("kiln_kernel_load", artifact._handle, kernel.out())
                self._host = artifact, kernel
        lists = [(c.c_void_p * max(1, len(x)))(*[t.data_ptr() or None for t in x]) for x in (given, made)]
        call("kiln_kernel_run", self._host[1], lists[0], lists[1], c.byref(abi.RunParams()))
        return made

    def cuda(self, *tensors: Any) -> List[Any]:
        import torch

        given = self._checked(tensors, self.options.get("least_align") or self.options.get("argument_align") or 16)
        index = given[0].device.index if given else torch.cuda.current_device()
        with torch.cuda.device(index):
            made = self.results(f"cuda:{index}")
            artifact, kernel = self._on_gpu(index)
            stream = torch.cuda.current_stream(index).cuda_stream
            scratch = self._scratch_of(artifact, index)
            params = abi.CudaLaunchParams(
                stream=stream,
                parameters=(c.c_uint64 * max(1, len(given)))(*[t.data_ptr() for t in given]),
                results=(c.c_uint64 * max(1, len(made)))(*[t.data_ptr() for t in made]),
                scratch=scratch.data_ptr() if scratch is not None else 0,
            )
            call("kiln_cuda_kernel_launch", kernel, c.byref(params))
        return made

    def _on_gpu(self, index: int) -> Tuple[Artifact, Handle]:
        with self._lock:
            if index not in self._gpus:
                device = cuda(index)
                artifact = self._compiled(device.target)
                kernel = Handle("kiln_cuda_kernel_destroy", device._device)
                call("kiln_cuda_kernel_create", device._driver, artifact._handle, device.context, kernel.out())
                call("kiln_cuda_kernel_prepare", kernel)
                self._gpus[index] = artifact, device, kernel
            artifact, _, kernel = self._gpus[index]
            return artifact, kernel

    def _scratch_of(self, artifact: Artifact, index: int) -> Any:
        """Memory of PyTorch's allocator, in the order of the current stream: zeros, then the constants."""
        import torch

        m = artifact.manifest
        if not m.scratch_bytes:
            return None
        block = torch.empty(m.scratch_bytes, dtype=torch.uint8, device=f"cuda:{index}")
        block[: m.scratch_zero_bytes].zero_()
        if m.constants:
            key = (index, id(artifact))
            if key not in self._scratch:
                self._scratch[key] = torch.frombuffer(bytearray(m.constants), dtype=torch.uint8).to(block.device)
            block[m.scratch_zero_bytes : m.scratch_zero_bytes + len(m.constants)] = self._scratch[key]
        return block


def operator(name: str, module: Module, *, backward: Optional[Module] = None, **options: Any) -> Callable[..., Any]:
    """Makes a module an operator of PyTorch, "namespace::name", and returns it.

    It takes a tensor for each flattened parameter and gives one tensor, or a tuple of the results. It runs on the CPU
    or, on the current stream, on the tensors' GPU; it is compiled for a device when it is first called there. Its shapes
    are known to torch.compile and torch.export; torch.vmap calls it once for each of the batch. `backward`: a module that takes the operator's parameters and then the gradients of its
    results, and gives those of the floating-point parameters, in order. options: those of kiln.compile.
    """
    import torch

    made = _Operator(name, module, options)
    slope = _Operator(name + "_backward", backward, options) if backward is not None else None
    found = _defined(made)
    if slope is not None:
        pull = _defined(slope)
        real = [torch_dtype(leaf.type.dtype).is_floating_point for leaf in module.parameters]  # type: ignore[union-attr]
        if len(slope.module.results) != sum(real):
            raise ValueError(f"{name}: expected {sum(real)} results of backward, found {len(slope.module.results)}")

        def setup(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        def run(ctx: Any, *gradients: Any) -> Any:
            found = pull(*ctx.saved_tensors, *[g.contiguous() for g in gradients])
            given = iter(found if isinstance(found, (tuple, list)) else [found])
            return tuple(next(given) if r else None for r in real)

        torch.library.register_autograd(name, run, setup_context=setup)
    return found


def _defined(op: _Operator) -> Callable[..., Any]:
    import torch

    arguments = ", ".join(f"Tensor p{i}" for i in range(len(op.module.parameters)))
    n = len(op.module.results)
    returns = "Tensor" if n == 1 else "(" + ", ".join(["Tensor"] * n) + ")"

    def of(run: Callable[..., List[Any]]) -> Callable[..., Any]:
        return lambda *tensors: run(*tensors)[0] if n == 1 else tuple(run(*tensors))

    torch.library.define(op.name, f"({arguments}) -> {returns}")
    torch.library.impl(op.name, "CPU")(of(op.host))
    torch.library.impl(op.name, "CUDA")(of(op.cuda))
    space, _, short = op.name.partition("::")
    found = getattr(getattr(torch.ops, space), short)

    def shapes(*tensors: Any) -> List[Any]:
        return op.results(tensors[0].device if tensors else "cpu")

    def one_by_one(info: Any, in_dims: Sequence[Optional[int]], *tensors: Any) -> Any:
        """torch.vmap: the module's shapes are fixed, so each of the batch is a call of its own."""
        calls = [
            found(*[t if d is None else t.select(d, i) for t, d in zip(tensors, in_dims)]) for i in range(info.batch_size)
        ]
        if n == 1:
            return torch.stack(calls), 0
        return tuple(torch.stack(list(leaf)) for leaf in zip(*calls)), (0,) * n

    torch.library.register_fake(op.name)(of(shapes))
    torch.library.register_vmap(op.name, one_by_one)
    return found


__all__ = ["operator", "torch_dtype"]
