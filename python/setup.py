"""Puts libkiln and kiln-worker into the package: the library that KILN_LIBRARY names and the worker beside it, else those of
the build folder beside this one, built here if there are none yet. KILN_LIBRARY= (empty) puts none there: the system's are
used.
"""

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

NAME, WORKER = "libkiln.so.0", "kiln-worker"
ROOT = pathlib.Path(__file__).resolve().parent.parent


def built() -> pathlib.Path:
    folder = pathlib.Path(os.environ.get("KILN_BUILD", ROOT / "build"))
    library = folder / NAME
    if not library.exists() or not (folder / "tools" / WORKER).exists():
        if not (folder / "build.ninja").exists():
            subprocess.run(["meson", "setup", str(folder), str(ROOT)], check=True)
        subprocess.run(["ninja", "-C", str(folder), NAME + ".1.0", "tools/" + WORKER], check=True)
    return library


class BuildPy(build_py):
    def run(self) -> None:
        super().run()
        chosen = os.environ.get("KILN_LIBRARY")
        library = built() if chosen is None else pathlib.Path(chosen) if chosen else None
        if library is not None and not self.editable_mode:
            package = pathlib.Path(self.build_lib) / "kiln"
            shutil.copyfile(library, package / NAME)
            for place in ("kiln", "tools", "."):  # as the library looks for it
                worker = library.parent / place / WORKER
                if worker.is_file() and not (package / WORKER).exists():
                    shutil.copy(worker, package / WORKER)


class BinaryDistribution(Distribution):
    def has_ext_modules(self) -> bool:  # the wheel is for this platform
        return True


setup(cmdclass={"build_py": BuildPy}, distclass=BinaryDistribution)
