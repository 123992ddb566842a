"""User modules in the working folder: only imports that are meant for them find them.

Installed packages try to import optional ones that may be missing: numba tries scipy, cffi and coverage. If the working
folder were on the module path, a ``cffi.py`` that happens to be there would be executed. So the folder is searched only
for the module that a job names, for imports by user modules, and for modules that a pickle names. It is searched last,
so that no name in it hides a module of Python or of an installed package.
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
    """A finder of modules in one folder, for imports by user modules, by jobs and by pickles.

    ``folder``: the folder that is searched.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a top-level module. Submodules are found by their package."""
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
    """Find user modules in a folder from now on, and no longer in a folder that was set before."""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, WorkingFolder)]
    sys.meta_path.append(WorkingFolder(folder))


def import_own(name: str) -> ModuleType:
    """Import a module that a job names. Any exception of the module passes through."""
    return importlib.import_module(name)


def _importer() -> FrameType | None:
    """The frame of the code that imports a module, below `find_spec` and the frames of Python's import system."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _IMPORTING:
        frame = frame.f_back
    return frame
