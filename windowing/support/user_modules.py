"""Modules of the user's own in the working folder: found by what asks for them, and by nothing else.

Packages that are installed look for others that may not be, and go without: numba for scipy, cffi and coverage. Were
the working folder on the module path, a ``cffi.py`` that happens to lie there would be run. So it is searched for the
module that a job names, for what that module and its like import, and for what a pickle names; and last, so that no
name in it comes before one of Python's own or of a package that is installed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, ModuleType

_UNPICKLING = (
    "pickle",
    "pyspark.core.broadcast",
    "pyspark.serializers",
    "pyspark.cloudpickle",
    "pyspark.cloudpickle.cloudpickle",
)
_IMPORTING = ("importlib", "_frozen_importlib")


class WorkingFolder:
    """A finder of modules in a folder, for those who may ask."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module, but no part of a package: that lies where its package does."""
        if path is not None or not self._may_ask(_importer()):
            return None
        return PathFinder.find_spec(name, [str(self.folder)], target)

    def _may_ask(self, frame: FrameType | None) -> bool:
        if frame is None or frame.f_globals.get("__name__") in (__name__, *_UNPICKLING):
            return frame is not None
        holding = Path(frame.f_code.co_filename).parents
        installed = [entry for entry in map(Path, sys.path) if self.folder in entry.parents]  # a .venv in the folder
        return self.folder in holding and not any(entry in holding for entry in installed)


def search(folder: Path) -> None:
    """Let modules of the user's own be found in a folder, and in no other that was searched before."""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, WorkingFolder)]
    sys.meta_path.append(WorkingFolder(folder))


def import_own(name: str) -> ModuleType:
    """Import a module that a job names. Raises whatever it raises."""
    return importlib.import_module(name)


def _importer() -> FrameType | None:
    """The code that asks for a module, behind `find_spec` and all of Python's own importing."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _IMPORTING:
        frame = frame.f_back
    return frame
