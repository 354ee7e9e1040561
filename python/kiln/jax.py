"""JAX functions: lowered to HLO by JAX, compiled and run by kiln."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from .artifact import Artifact, compile as compile_module
from .device import Device
from .module import Module


def lower(function: Callable[..., Any], *arguments: Any, optimized: bool = False, **keywords: Any) -> Module:
    """The HLO of a JAX function at these arguments (arrays, or jax.ShapeDtypeStruct). Nothing runs.

    Parameters are the leaves of the arguments, those that the function does not use included. `optimized`: as XLA's
    own compiler for JAX's default device leaves it, with its fusions.
    """
    import jax

    lowered = jax.jit(function, keep_unused=True).lower(*arguments, **keywords)
    text = lowered.compile().as_text() if optimized else lowered.as_text(dialect="hlo")
    return Module(text, f"{getattr(function, '__name__', 'function')}.hlo")


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


__all__ = ["Jitted", "jit", "lower"]
