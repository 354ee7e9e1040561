"""Compilation in the background, by a thread of the library's."""

from __future__ import annotations

import atexit
import ctypes as c
import itertools
import sys
import threading
from typing import Any, Callable, Dict, Generator, List, Optional, Tuple

from . import abi
from .artifact import Artifact, Cache, options_of
from .library import Handle, call, library
from .module import Module


class _Work:
    """What the job's thread and the caller's Job share. It lives until the thread has ended, whoever lets go of the Job:
    only then may the handle be destroyed, by whatever thread the collector takes it on.
    """

    def __init__(self, module: Module, cache: Optional[Cache], progress: Optional[Callable[[int, int], Any]]) -> None:
        needs = [module._handle] + ([cache._handle] if cache is not None else [])
        self.handle = Handle("kiln_job_destroy", *needs)
        self.progress = progress
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.callbacks: List[Callable[[], Any]] = []


_numbers = itertools.count(1)
_under_way: Dict[int, _Work] = {}


def _guarded(function: Callable[..., Any], *arguments: Any) -> None:
    """There is nobody on the job's thread to take an exception."""
    try:
        function(*arguments)
    except Exception:
        sys.excepthook(*sys.exc_info())


def _on_progress(user: int, _job: int, done: int, count: int) -> None:
    work = _under_way.get(user)
    if work and work.progress:
        _guarded(work.progress, done, count)


def _on_end(user: int, _job: int, _state: int) -> None:
    work = _under_way[user]
    with work.lock:
        work.ended.set()
        callbacks, work.callbacks = work.callbacks, []
    for callback in callbacks:
        _guarded(callback)
    del _under_way[user]


# For all jobs and for ever: none is freed while it runs.
_progress, _end = abi.JobProgress(_on_progress), abi.JobEnded(_on_end)


@atexit.register
def _end_all() -> None:
    """No thread may want the interpreter when that is gone. Destroying a job waits for its thread."""
    for work in list(_under_way.values()):
        if work.handle.value:
            library().kiln_job_destroy(c.byref(work.handle.value))


class Job:
    """One compilation under way; threads may share it. Who lets go of it cancels it. Made by `kiln.start`.

    In asyncio, `await job` gives the artifact.
    """

    def __init__(self, interface: Module, work: _Work) -> None:
        self._interface, self._work = interface, work
        self._artifact: Optional[Artifact] = None

    def __repr__(self) -> str:
        done, count = self.progress
        return f"<kiln.Job {self._interface.name}: {self.state}, {done} of {count}>"

    def __del__(self) -> None:
        if not self._work.ended.is_set():
            self.cancel()

    def _describe(self) -> abi.JobInfo:
        found = abi.JobInfo()
        call("kiln_job_describe", self._work.handle, c.byref(found))
        return found

    @property
    def state(self) -> str:
        """"running", "done" (there is an artifact), "failed" or "cancelled"."""
        return ("running", "done", "failed", "cancelled")[self._describe().state]

    @property
    def progress(self) -> Tuple[int, int]:
        """Pieces of work that are done, and how many there are: (0, 0) before that is known."""
        found = self._describe()
        return found.done, found.all

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Has it ended? Waits for so many seconds at most; None: as long as it takes."""
        return self._work.ended.wait(timeout)

    def cancel(self) -> None:
        """Asks it to end, and returns at once; what LLVM has in hands is ended when LLVM is done with it."""
        library().kiln_job_cancel(self._work.handle)

    def result(self, timeout: Optional[float] = None) -> Artifact:
        """Waits for the artifact. Raises what kiln.compile does, CancelledError, and TimeoutError."""
        if not self.wait(timeout):
            raise TimeoutError(f"{self._interface.name} is not compiled yet")
        if self._artifact is None:
            handle = Handle("kiln_artifact_destroy")
            call("kiln_job_take", self._work.handle, handle.out())
            self._artifact = Artifact(self._interface, handle)
        return self._artifact

    def when_ended(self, callback: Callable[[], Any]) -> None:
        """Has it called once, on the job's thread when that ends; at once if it has ended."""
        with self._work.lock:
            if not self._work.ended.is_set():
                self._work.callbacks.append(callback)
                return
        callback()

    def __await__(self) -> Generator[Any, None, Artifact]:
        import asyncio

        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        self.when_ended(lambda: loop.is_closed() or loop.call_soon_threadsafe(ended.set))
        yield from ended.wait().__await__()
        return self.result()


def start(
    module: Module,
    target: str = "host",
    *,
    cache: Optional[Cache] = None,
    progress: Optional[Callable[[int, int], Any]] = None,
    **options: Any,
) -> Job:
    """Starts what kiln.compile does, and returns. Options are those of kiln.compile.

    progress: called on the job's thread between two pieces of work, with how many are done and how many there are.
    Raises InvalidError (params that no module could be compiled with); what else is wrong, Job.result raises.
    """
    interface, how = options_of(module, target, **options)
    work, number = _Work(module, cache, progress), next(_numbers)
    params = abi.JobParams(
        compile=c.pointer(how),
        cache=cache._handle.value if cache is not None else None,
        progress=_progress if progress else abi.JobProgress(),
        ended=_end,
        user=number,
    )
    _under_way[number] = work
    try:
        call("kiln_job_start", module._handle, c.byref(params), work.handle.out())
    except BaseException:
        del _under_way[number]
        raise
    return Job(interface, work)
