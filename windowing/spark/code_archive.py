"""The project's own code and its compiled kernels, as one archive for workers on other machines.

Spark unpacks it once for each executor, into `FOLDER` beside the executor's working files. There numba finds the
driver's compiled kernels where it would put its own. On a processor of the driver's kind they are loaded, in
milliseconds; on another they are compiled once for each executor. A kernel is included if numba itself would load it on
the driver: it was compiled from exactly this source, and its name says from what else (`windowing.support.compiler`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import pickle
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..support.jit import Kernel

PACKAGES = ("wincli.conf", "wincli.readers", "wincli.windowing", "wincli.writers")
"""The packages that tasks may unpickle values of. Tasks do not need the command line."""

FOLDER = "wincli-code"
"""The folder that executors unpack the archive into, relative to where they and their workers run."""

ORDERS = "orders"
"""The file in it with pickled calls that the daemon makes before workers fork."""

USER_CODE = "working-folder"
"""The folder in it with the modules of the user's working folder, where they are sent."""

_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16  # Spark unpacks files with the permissions in the archive
_LEVEL = 1  # measured: 10.5 MB, all kernels included, to 4.6 MB in 0.18 s; the default level to 4.3 MB in 0.28 s


def ship(
    folder: Path,
    orders: Sequence[tuple[Callable[..., object], Any]] = (),
    packages: Sequence[str] = PACKAGES,
    working_folder: Path | None = None,
) -> Path:
    """Write ``wincli.zip`` into ``folder``: equal bytes for equal code and kernels.

    ``orders``: functions and their arguments, which executors call before their workers fork. ``working_folder``: the
    folder of the user's modules, where these are sent, too.
    """
    target = folder / "wincli.zip"
    users = () if working_folder is None else _modules(working_folder)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted({*_contents(packages), *users}):
            archive.writestr(_entry(name), data, compresslevel=_LEVEL)
        archive.writestr(_entry(ORDERS), pickle.dumps(tuple(orders)))
    return target


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, _MODE
    return entry


def _contents(packages: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    caches = _caches(packages)
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"no package {package!r} to send to the workers", name=package)
        root = Path(spec.origin).parent
        inside = Path(*package.split("."))
        for path in root.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                name, code = inside / path.relative_to(root), path.read_bytes()
                yield name.as_posix(), code
                for kernel in _kernels(path, code, caches):
                    yield (name.parent / "__pycache__" / kernel.name).as_posix(), kernel.read_bytes()
        if len(inside.parts) > 1 and (root.parent / "__init__.py").is_file():
            yield (inside.parent / "__init__.py").as_posix(), (root.parent / "__init__.py").read_bytes()


def _modules(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the modules of a working folder and of the packages in it; data beside them is not sent."""
    in_packages = (path for init in folder.glob("*/__init__.py") for path in init.parent.rglob("*.py"))
    for path in (*folder.glob("*.py"), *in_packages):
        if path.is_file():
            yield f"{USER_CODE}/{path.relative_to(folder).as_posix()}", path.read_bytes()


def _caches(packages: Sequence[str]) -> dict[Path, Path]:
    found: dict[Path, Path | None] = {}
    for name, module in list(sys.modules.items()):
        if any(f"{name}.".startswith(f"{package}.") for package in packages):
            for value in list(vars(module).values()):
                if isinstance(value, Kernel) and (file := Path(value.py_func.__code__.co_filename)) not in found:
                    found[file] = value.stats.cache_path and Path(value.stats.cache_path)
    return {file: place for file, place in found.items() if place}


def _kernels(path: Path, code: bytes, caches: Mapping[Path, Path]) -> Iterator[Path]:
    if path not in caches:
        return
    python = f"py{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
    for index in caches[path].glob(f"{path.stem}.*.{python}.nbi"):
        named = [index.with_name(name) for name in _compiled(index.read_bytes(), hashlib.sha256(code).digest())]
        # An index that lists a missing file still serves the others: numba checks each file.
        there = [file for file in named if file.exists()]
        yield from [index, *there] if there else []


def _compiled(index: bytes, stamp: bytes) -> list[str]:
    with contextlib.suppress(Exception), io.BytesIO(index) as file:  # the index may be of any version of numba
        if pickle.load(file) == sys.modules["numba"].__version__:
            of, files = pickle.load(file)
            return list(files.values()) if of == stamp else []
    return []
