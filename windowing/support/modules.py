"""User modules in the working folder: only imports that are meant for them find them.

Installed packages try to import optional ones that may be missing: numba tries scipy, cffi and coverage. If the working
folder were on the module path, a ``cffi.py`` that happens to be there would be executed. So the folder is searched only
for the module that a job names, for imports by user modules, and for modules that a pickle names. It is searched last,
so that no name in it hides a module of Python or of an installed package.
"""

from __future__ import annotations

import importlib
import json
import os
import site
import sys
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
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
    """A finder of modules in one folder, for imports by user modules, by jobs and by pickles."""

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
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _IMPORTING:
        frame = frame.f_back
    return frame


# The module path: the working folder is not on it, except for user modules that a job names.
#
# A user who runs a job in a folder of foreign files does not expect that a ``sitecustomize.py`` or ``scipy.py`` there
# is executed. So the working folder is not on the module path of the driver, of workers or of any other process that
# is started. `windowing.support.modules` finds the functions and operators there that a job names.
#
# Python itself puts the folder on the path for ``python -m`` and for an empty entry of ``PYTHONPATH``. A folder that
# is written out in ``PYTHONPATH`` stays on the path, because the user wants it there.


MORE = "WINCLI_WORKER_PATH"
"""Environment variable: folders in which workers search for modules last, as a JSON list."""

FOLDER = "WINCLI_WORKING_FOLDER"
"""Environment variable: the folder in which workers find user modules."""


def leave_out_working_folder() -> None:
    """Remove the working folder from this process's module path, unless ``PYTHONPATH`` or our own code needs it."""
    sys.path[:] = _wanted(sys.path, os.environ)


def with_working_folder(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for Java in which workers find user modules in the working folder."""
    return {**environ, FOLDER: str(Path.cwd())}


def working_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the working folder in which workers are to find user modules; None where there are none to find."""
    return Path(environ[FOLDER]) if FOLDER in environ else None


def extend_path_from_driver() -> None:
    """Extend the module path of a worker by the folders that the driver passed on."""
    sys.path.extend(folder for folder in json.loads(os.environ.get(MORE, "[]")) if folder not in sys.path)
    if FOLDER in os.environ:
        search(Path(os.environ[FOLDER]).absolute())


def pass_path_to_workers(environ: MutableMapping[str, str]) -> None:
    """Let workers on this machine find the modules that this process finds, last. ``environ``: that of their Java.

    The path is not passed on in ``PYTHONPATH``: a new Python would take ``sitecustomize`` from there, and modules there
    come before those of Python itself. Only the folder of our own code is, if a new Python would not find it otherwise.
    """
    code, named = _code(), _named(environ)
    own = [] if code is None or code in {*site.getsitepackages(), site.getusersitepackages()} else [code]
    environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*named, *own]))
    environ["PYTHONSAFEPATH"] = "1"
    environ[MORE] = json.dumps(_wanted(sys.path, environ))


def _wanted(path: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """A path without the working folder, unless ``PYTHONPATH`` names it or our own code is in it."""
    try:
        here = Path.cwd().resolve()
    except FileNotFoundError:  # the folder was removed and so holds no module
        return [entry for entry in path if entry]
    if here in [Path(entry).resolve() for entry in (*_named(environ), _code()) if entry is not None]:
        return [entry or str(here) for entry in path]
    return [entry for entry in path if Path(entry).resolve() != here]


def _named(environ: Mapping[str, str]) -> list[str]:
    """The folders that ``PYTHONPATH`` names; an empty entry names none."""
    entries = environ.get("PYTHONPATH", "").split(os.pathsep)
    return [str(Path(entry).absolute()) for entry in entries if entry]


def _code() -> str | None:
    """The folder on the path that contains our own package; None if an editable install finds it without the path."""
    own = Path(sys.modules[__name__.partition(".")[0]].__path__[0]).resolve().parent
    return next((entry for entry in sys.path if Path(entry).resolve() == own), None)
