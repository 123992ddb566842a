"""The project's own code as a zip, for workers on other machines."""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGES = ("conf", "readers", "windowing", "writers")
"""What tasks may unpickle. The command line stays at home."""

_DATE = (1980, 1, 1, 0, 0, 0)


def ship(folder: Path, packages: Sequence[str] = PACKAGES) -> Path:
    """Write ``wincli.zip`` into ``folder``: the same bytes for the same code."""
    target = folder / "wincli.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(_files(packages)):
            archive.writestr(zipfile.ZipInfo(name, _DATE), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return target


def _files(packages: Sequence[str]) -> Iterator[tuple[str, Path]]:
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"no package {package!r} to send to the workers", name=package)
        root = Path(spec.origin).parent
        for path in root.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{package}/{path.relative_to(root).as_posix()}", path
