"""kiln: tensor fusions (HLO) compiled to kernels for NVIDIA GPUs and for this machine's CPU.

    import kiln, numpy as np
    m = kiln.Module.from_file("gelu.hlo")
    f = kiln.compile(m)                       # for this machine; kiln.compile(m, "sm_90").ptx for a GPU
    x, = m.example(seed=1)
    y, = f(x)
    assert not m.check([x], [y])              # by the reference evaluator: exact, or within proved bounds

JAX functions: kiln.jax.lower(f, x) is a Module, kiln.jax.jit(f) a function that kiln compiles. GPUs: kiln.cuda(), or
kiln.simulator() without one. What a kernel costs: kiln.profile(kiln.compile(m, "sm_90")).

Modules and artifacts never change and may be used by several threads at once; a Device serves one at a time. Failures
are exceptions whose text is the finding with its place and a caret.
"""

from . import jax, torch
from .arrays import ArrayType, hlo_dtype, numpy_dtype
from .artifact import Argument, Artifact, Cache, Launch, Manifest, Slot, compile, load
from .bundle import Bundle
from .device import Device, DeviceArray, cuda, findings, simulator
from .errors import (
    CancelledError,
    DeviceError,
    Error,
    Finding,
    InternalError,
    InvalidError,
    KilnWarning,
    OutOfMemoryError,
    UnsupportedError,
)
from .job import Job, start
from .library import library
from .module import Leaf, Mismatch, Module
from .profile import Profile, profile

__version__ = "0.1.0"


def version() -> str:
    """Of the library that is loaded."""
    return library().kiln_version().decode()


__all__ = [
    "Argument",
    "ArrayType",
    "Bundle",
    "Cache",
    "CancelledError",
    "Artifact",
    "Device",
    "DeviceArray",
    "DeviceError",
    "Error",
    "Finding",
    "InternalError",
    "InvalidError",
    "Job",
    "KilnWarning",
    "Launch",
    "Leaf",
    "Manifest",
    "Mismatch",
    "Module",
    "OutOfMemoryError",
    "Profile",
    "Slot",
    "UnsupportedError",
    "compile",
    "cuda",
    "findings",
    "hlo_dtype",
    "jax",
    "load",
    "numpy_dtype",
    "profile",
    "start",
    "simulator",
    "torch",
    "version",
]
