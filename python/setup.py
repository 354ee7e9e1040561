"""Puts libkiln into the package: the one that KILN_LIBRARY names, else that of the build folder beside this one, built
here if there is none yet. KILN_LIBRARY= (empty) puts none there: the system's is used.
"""

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

NAME = "libkiln.so.0"
ROOT = pathlib.Path(__file__).resolve().parent.parent


def built() -> pathlib.Path:
    folder = pathlib.Path(os.environ.get("KILN_BUILD", ROOT / "build"))
    library = folder / NAME
    if not library.exists():
        if not (folder / "build.ninja").exists():
            subprocess.run(["meson", "setup", str(folder), str(ROOT)], check=True)
        subprocess.run(["ninja", "-C", str(folder), NAME + ".1.0"], check=True)
    return library


class BuildPy(build_py):
    def run(self) -> None:
        super().run()
        chosen = os.environ.get("KILN_LIBRARY")
        library = built() if chosen is None else pathlib.Path(chosen) if chosen else None
        if library is not None and not self.editable_mode:
            shutil.copyfile(library, pathlib.Path(self.build_lib) / "kiln" / NAME)


class BinaryDistribution(Distribution):
    def has_ext_modules(self) -> bool:  # the wheel is for this platform
        return True


setup(cmdclass={"build_py": BuildPy}, distclass=BinaryDistribution)
