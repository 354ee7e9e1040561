"""Artifacts of one module for several targets, as one."""

from __future__ import annotations

import ctypes as c
from typing import Any, Callable, Sequence, Tuple, Union

from .artifact import Artifact, artifact_of, options_of, take_bytes
from .device import Device
from .library import Handle, call, library
from .module import Module


class Bundle:
    """Artifacts of one module, each for another target. It never changes; threads may share it."""

    def __init__(self, artifacts: Sequence[Artifact]) -> None:
        """Raises InvalidError where two are for one target, or have other slots: which, and in what."""
        handles = (c.c_void_p * max(1, len(artifacts)))(*[a._handle.value for a in artifacts])
        handle = Handle("kiln_bundle_destroy")
        call("kiln_bundle_create", handles, len(artifacts), handle.out())
        module = artifacts[0].module
        self._become(handle, lambda h: Artifact(module, h))

    def _become(self, handle: Handle, artifact: Callable[[Handle], Artifact]) -> None:
        self._handle, self._artifact = handle, artifact
        lib, made = library(), []
        for i in range(lib.kiln_bundle_count(handle)):
            own = Handle(None, handle)  # the bundle's, which lives as long
            own.value.value = lib.kiln_bundle_get(handle, i)
            made.append(artifact(own))
        #: Newer targets before older ones, the host's last.
        self.artifacts: Tuple[Artifact, ...] = tuple(made)

    @classmethod
    def _of(cls, handle: Handle, artifact: Callable[[Handle], Artifact]) -> "Bundle":
        made = cls.__new__(cls)
        made._become(handle, artifact)
        return made

    @classmethod
    def compile(cls, module: Module, targets: Sequence[str], **options: Any) -> "Bundle":
        """kiln.compile for each target, with its options. Raises what that does, and says for which target."""
        interface, params = options_of(module, None, **options)
        names = (c.c_char_p * max(1, len(targets)))(*[t.encode() for t in targets])
        handle = Handle("kiln_bundle_destroy")
        call("kiln_bundle_compile", module._handle, names, len(targets), c.byref(params), handle.out())
        return cls._of(handle, lambda h: Artifact(interface, h))

    @classmethod
    def load(cls, module: Module, data: bytes) -> "Bundle":
        """The bundle that was saved, of this module; the bytes of a single artifact are a bundle of one.

        Its code is run: load what you would run. Raises InvalidError for what is damaged or another module's.
        """
        handle = Handle("kiln_bundle_destroy")
        call("kiln_bundle_load", data, len(data), handle.out())
        return cls._of(handle, lambda h: artifact_of(module, h))

    def save(self) -> bytes:
        """All of it but texts that were kept, as bytes for Bundle.load and `kiln run`."""
        return take_bytes("kiln_bundle_save", self._handle)

    @property
    def targets(self) -> Tuple[str, ...]:
        return tuple(a.manifest.target for a in self.artifacts)

    def choose(self, device: Union[None, int, Device] = None) -> Artifact:
        """The artifact for a device, or for a compute capability (90 is 9.0); None: for this machine's CPU.

        Raises UnsupportedError where none of them runs there.
        """
        sm = 0 if device is None else device.info.sm if isinstance(device, Device) else device
        handle = Handle("kiln_artifact_destroy")
        call("kiln_bundle_choose", self._handle, sm, handle.out())
        return self._artifact(handle)

    def __repr__(self) -> str:
        return f"<kiln.Bundle {self.artifacts[0].manifest.module} for {', '.join(self.targets)}>"
