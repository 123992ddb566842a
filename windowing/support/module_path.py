"""Where modules are looked for: never in the working folder, unless code of the user's own was asked for there.

Whoever runs a job among files that came from elsewhere asked for windows over them, and not for a ``sitecustomize.py``
or ``scipy.py`` among them to be run. So the working folder is no part of the module path of the driver, of workers or
of anything else that is started. Where a job names a function or an operator, `windowing.support.user_modules` finds it
there.

Python puts the folder on the path by itself for ``python -m`` and for an empty entry of ``PYTHONPATH``. Who writes it
out there wants it.
"""

from __future__ import annotations

import json
import os
import site
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path

from .user_modules import search

MORE = "WINCLI_WORKER_PATH"
"""Environment variable: folders that workers look for modules in last, as a list in JSON."""

FOLDER = "WINCLI_WORKING_FOLDER"
"""Environment variable: the folder in which workers find modules of the user's own."""


def leave_out_working_folder() -> None:
    """Take the working folder off this process's path, unless it is to be there."""
    sys.path[:] = _wanted(sys.path, os.environ)


def with_working_folder(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment of Java in which workers find modules of the user's own in the working folder."""
    return {**environ, FOLDER: str(Path.cwd())}


def extend_path_from_driver() -> None:
    """Let a worker find modules where its driver says."""
    sys.path.extend(folder for folder in json.loads(os.environ.get(MORE, "[]")) if folder not in sys.path)
    if FOLDER in os.environ:
        search(Path(os.environ[FOLDER]))


def pass_path_to_workers(environ: MutableMapping[str, str]) -> None:
    """Let workers on this machine find in the end what this process finds; ``environ``: that of their Java.

    The path itself does not go by ``PYTHONPATH``: a new Python takes its ``sitecustomize`` from there, and what is
    there comes before Python's own modules. Our code alone does, where a new Python would not find it.
    """
    code, named = _code(), _named(environ)
    own = [] if code is None or code in {*site.getsitepackages(), site.getusersitepackages()} else [code]
    environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*named, *own]))
    environ["PYTHONSAFEPATH"] = "1"
    environ[MORE] = json.dumps(_wanted(sys.path, environ))


def _wanted(path: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """A path without the working folder, unless ``PYTHONPATH`` says it or our own code lies there."""
    try:
        here = Path.cwd().resolve()
    except FileNotFoundError:  # it has been removed, and holds no module
        return [entry for entry in path if entry]
    if here in [Path(entry).resolve() for entry in (*_named(environ), _code()) if entry is not None]:
        return [entry or str(here) for entry in path]
    return [entry for entry in path if Path(entry).resolve() != here]


def _named(environ: Mapping[str, str]) -> list[str]:
    """The folders that ``PYTHONPATH`` names; an empty entry names none."""
    entries = environ.get("PYTHONPATH", "").split(os.pathsep)
    return [str(Path(entry).absolute()) for entry in entries if entry]


def _code() -> str | None:
    """The folder on the path that our own package is in; None where an editable install finds it without the path."""
    own = Path(sys.modules[__name__.partition(".")[0]].__path__[0]).resolve().parent
    return next((entry for entry in sys.path if Path(entry).resolve() == own), None)
