"""JAX functions: lowered to HLO by JAX, compiled by kiln; run by kiln, or by XLA as custom calls."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np

from .artifact import Artifact
from .artifact import compile as compile_module
from .device import Device
from .errors import UnsupportedError
from .library import Handle, library
from .library import call as call_library
from .module import Module


def hlo_text(module: Any) -> str:
    """The text of XLA's HloModule, with all that changes what it computes: long constants, and the configuration of
    custom calls, which jax.stages.Lowered.as_text leaves out in some versions."""
    # the module of the class, where its options are, has had several names
    options = sys.modules[type(module).__module__].HloPrintOptions.short_parsable()
    options.print_backend_config = True
    options.print_metadata = False
    return module.to_string(options)


def lower(function: Callable[..., Any], *arguments: Any, optimized: bool = False, **keywords: Any) -> Module:
    """The HLO of a JAX function at these arguments (arrays, or jax.ShapeDtypeStruct). Nothing runs.

    Parameters are the leaves of the arguments, those that the function does not use included. `optimized`: as XLA's
    own compiler for JAX's default device leaves it, with its fusions.
    """
    import jax

    lowered = jax.jit(function, keep_unused=True).lower(*arguments, **keywords)
    if optimized:
        (module,) = lowered.compile().runtime_executable().hlo_modules()
    else:
        module = lowered.compiler_ir("hlo").as_hlo_module()
    return Module(hlo_text(module), f"{getattr(function, '__name__', 'function')}.hlo")


class Jitted:
    """A function that kiln compiles, once for each tree of shapes and types. Made by `jit`."""

    def __init__(self, function: Callable[..., Any], device: Any, options: Dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._device, self._options = function, device, options
        self._cache: Dict[Any, Tuple[Module, Optional[Artifact], Any]] = {}

    def _made(self, arguments: Sequence[Any], keywords: Dict[str, Any]) -> Tuple[Any, Module, Optional[Artifact], Any]:
        import jax

        leaves, tree = jax.tree_util.tree_flatten((tuple(arguments), keywords))
        types = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in map(jax.numpy.asarray, leaves)]
        key = (tree, tuple((t.shape, t.dtype) for t in types))
        if key not in self._cache:
            given, named = jax.tree_util.tree_unflatten(tree, types)
            module = lower(self._function, *given, **named)
            result = jax.tree_util.tree_structure(jax.eval_shape(self._function, *given, **named))
            artifact = None
            if self._device != "eval":
                target = self._device.target if isinstance(self._device, Device) else "host"
                artifact = compile_module(module, target, **self._options)
            self._cache[key] = (module, artifact, result)
        return (leaves, *self._cache[key])

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        import jax

        leaves, module, artifact, tree = self._made(arguments, keywords)
        # JAX's own types decide: a Python float is an f32 there.
        leaves = [x if hasattr(x, "dtype") else jax.numpy.asarray(x) for x in leaves]
        if artifact is None:
            results = module.eval(*leaves)
        elif isinstance(self._device, Device):
            results = self._device.run(artifact, *leaves)
        else:
            results = artifact(*leaves)
        return jax.tree_util.tree_unflatten(tree, results)

    def module(self, *arguments: Any, **keywords: Any) -> Module:
        """The HLO that a call with these arguments runs."""
        return self._made(arguments, keywords)[1]

    def artifact(self, *arguments: Any, **keywords: Any) -> Optional[Artifact]:
        """The code that a call with these arguments runs; None by the evaluator."""
        return self._made(arguments, keywords)[2]


def jit(function: Optional[Callable[..., Any]] = None, *, device: Any = "host", **options: Any) -> Any:
    """Makes kiln compile and run a JAX function: `kiln.jax.jit(f)(x, y)`, or as a decorator.

    device: "host" (this machine's CPU), "eval" (the reference evaluator), or a Device (`kiln.cuda()`,
    `kiln.simulator()`). options: those of kiln.compile. Results are numpy arrays, or DeviceArrays, in the tree that the
    function returns. Raises UnsupportedError with the op's name for what kiln does not compile.
    """
    if function is None:
        return functools.partial(jit, device=device, **options)
    if not isinstance(device, Device) and device not in ("host", "eval"):
        raise ValueError(f"expected device 'host', 'eval' or a kiln.Device, found {device!r}")
    return Jitted(function, device, options)


# --- inside XLA's programs --------------------------------------------------------------------------------------------

_TARGET = "kiln"
_WAITING = "kiln_waiting"  # for kernels whose calls XLA must not capture
_registered = False
# What executables call. XLA says to nobody when it forgets one, so these stay.
_kernels: Dict[Any, Tuple[Handle, Any]] = {}


def _register() -> None:
    """Makes libkiln's handlers known to XLA, once."""
    global _registered
    import jax

    if not _registered:
        handlers = {_TARGET: library().kiln_xla_call, _WAITING: library().kiln_xla_call_waiting}
        for name, handler in handlers.items():
            for platform in ("cpu", "CUDA"):
                jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform=platform)
        _registered = True


def call(artifact: Artifact, device: Optional[Device] = None, *, vmap_method: str = "sequential") -> Callable[..., Any]:
    """An artifact as a function of JAX arrays, for use inside jax.jit, jax.vmap, shard_map: XLA calls its kernels.

    Takes one array for each flattened parameter, returns a tuple of the results. An artifact for a GPU needs the
    `device` (kiln.cuda()) whose primary context XLA uses. Kernels run on XLA's buffers and stream and can be captured
    into graphs, but for loops and branches that go by what a GPU computes, which wait for the stream. Raises UnsupportedError for artifacts with a run-time count, and for types of less than a byte and
    tiled layouts.
    """
    import jax

    slots = artifact.manifest.parameters + artifact.manifest.results
    for slot in slots:
        if slot.is_tiled or slot.type.bits < 8:
            raise UnsupportedError(f"{slot.name}: expected whole bytes in a layout without tiles, found {slot.type}")
    _register()
    key = (id(artifact), id(device))
    if key not in _kernels:
        made = Handle("kiln_xla_kernel_destroy")
        driver, context = (device._driver, device.context) if device is not None else (None, None)
        call_library("kiln_xla_kernel_create", artifact._handle, driver, context, made.out())
        _kernels[key] = (made, (artifact, device))
    kernel = _kernels[key][0].value
    address = np.int64(kernel.value)
    results = [jax.ShapeDtypeStruct(s.type.shape, s.type.numpy) for s in artifact.manifest.results]
    n = len(artifact.manifest.parameters)
    run = jax.ffi.ffi_call(
        _WAITING if library().kiln_xla_kernel_waits(kernel) else _TARGET,
        results,
        vmap_method=vmap_method,
        input_layouts=[s.order for s in slots[:n]],
        output_layouts=[s.order for s in slots[n:]],
    )

    def run_kernel(*arguments: Any) -> Tuple[Any, ...]:
        if len(arguments) != n:
            raise TypeError(f"{artifact.manifest.module}: expected {n} arguments, found {len(arguments)}")
        return tuple(run(*arguments, kernel=address))

    return run_kernel


class Kernel:
    """A function whose computation is kiln's inside JAX's programs. Made by `kernel`."""

    def __init__(self, function: Callable[..., Any], device: Optional[Device], options: Dict[str, Any]) -> None:
        import jax

        functools.update_wrapper(self, function)
        self._function, self._device, self._options = function, device, options
        self._cache: Dict[Any, Tuple[Callable[..., Any], Any]] = {}
        self._backward: Optional["Kernel"] = None
        self._differentiable = jax.custom_vjp(self._run)
        self._differentiable.defvjp(lambda *arguments: (self._run(*arguments), arguments), self._pull_back)

    def __call__(self, *arguments: Any) -> Any:
        return self._differentiable(*arguments)

    def _run(self, *arguments: Any) -> Any:
        import jax

        leaves, tree = jax.tree_util.tree_flatten(arguments)
        leaves = [jax.numpy.asarray(x) for x in leaves]
        key = (tree, tuple((x.shape, x.dtype) for x in leaves))
        if key not in self._cache:
            types = jax.tree_util.tree_unflatten(tree, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves])
            result = jax.tree_util.tree_structure(jax.eval_shape(self._function, *types))
            target = self._device.target if self._device is not None else "host"
            artifact = compile_module(lower(self._function, *types), target, **self._options)
            self._cache[key] = (call(artifact, self._device), result)
        run, result = self._cache[key]
        return jax.tree_util.tree_unflatten(result, run(*leaves))

    def _pull_back(self, arguments: Sequence[Any], cotangents: Any) -> Tuple[Any, ...]:
        """The function's own derivative, as a kernel: of floats; integers have none."""
        import jax

        leaves, tree = jax.tree_util.tree_flatten(tuple(arguments))
        real = [jax.numpy.issubdtype(jax.numpy.result_type(x), jax.numpy.inexact) for x in leaves]
        if self._backward is None:

            def backward(leaves: Sequence[Any], cotangents: Any) -> Any:
                def of_real(*moving: Any) -> Any:
                    given = iter(moving)
                    mixed = [next(given) if r else x for r, x in zip(real, leaves)]
                    return self._function(*jax.tree_util.tree_unflatten(tree, mixed))

                return jax.vjp(of_real, *[x for r, x in zip(real, leaves) if r])[1](cotangents)

            self._backward = Kernel(backward, self._device, self._options)
        found = iter(self._backward(leaves, cotangents) if any(real) else ())
        pulled = [next(found) if r else np.zeros(np.shape(x), jax.dtypes.float0) for r, x in zip(real, leaves)]
        return jax.tree_util.tree_unflatten(tree, pulled)


def kernel(function: Optional[Callable[..., Any]] = None, *, device: Optional[Device] = None, **options: Any) -> Any:
    """Makes kiln compile a function that JAX's programs call: within jax.jit, jax.vmap, jax.grad and shard_map.

    Its kernels are compiled when JAX traces it, once for each tree of shapes and types, and run as custom calls on
    XLA's buffers: for the CPU, or with `device` (kiln.cuda()) for that GPU. Its derivative is the function's own,
    compiled by kiln as well. options: those of kiln.compile.
    """
    if function is None:
        return functools.partial(kernel, device=device, **options)
    return Kernel(function, device, options)


__all__ = ["Jitted", "Kernel", "call", "jit", "kernel", "lower"]
