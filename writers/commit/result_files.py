"""The files that make a folder a complete result: its parts, the manifest that names them, and ``_SUCCESS``."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from ...windowing.errors import OutputError
from ...windowing.support.checksum import read_object, unseal
from ...windowing.support.file_systems import is_begun
from ..places import atomic_files
from ..places.atomic_files import is_file
from ..places.place import MANIFEST, SUCCESS, Place, is_local, new_token
from .contract import Description_contra, Progress, TableCommit


def read_sealed(place: Place, path: str) -> dict[str, Any] | None:
    """Return a JSON object that wincli wrote; None where there is none, or where it is another or damaged."""
    if not is_file(place.fs, path):
        return None
    try:
        with place.fs.open_input_stream(path) as file:
            return unseal(read_object(file.read()))
    except ValueError:
        return None


def read_manifest(place: Place, folder: str) -> dict[str, Any] | None:
    """Return the manifest in ``folder``, which is the output or a folder beside it.

    Returns None where there is no manifest, where it says that there is no result yet, or where its content or checksum
    is not what wincli wrote.
    """
    manifest = read_sealed(place, f"{folder}/{MANIFEST}")
    return None if manifest is None or is_begun(manifest) else manifest


def damaged_manifest(place: Place) -> str | None:
    """Return the name, in the folder of a result, of the first manifest that is not what wincli wrote; None if none."""
    below = fs.FileSelector(f"{place.path}/{MANIFEST.rpartition('/')[0]}", allow_not_found=True)
    paths = sorted(info.path for info in place.fs.get_file_info(below) if info.base_name.startswith("manifest"))
    found = next((path for path in paths if read_sealed(place, path) is None), None)
    return None if found is None else found.removeprefix(f"{place.path}/")


def recorded_files(manifest: Mapping[str, Any]) -> tuple[list[tuple[str, int]], list[tuple[str, int]]] | None:
    """Return names and bytes of the parts and of the rejects of a result; None where its manifest is damaged."""
    try:
        parts = [(str(part["name"]), int(part["bytes"])) for part in manifest["parts"]]
        return parts, [(str(part["name"]), int(part["bytes"])) for part in manifest["rejects"]]
    except (KeyError, TypeError, ValueError):
        return None


def missing_file(place: Place, manifest: Mapping[str, Any], has_success: bool = True) -> str | None:
    """Describe the first file of a result that is missing or has another size than its manifest says; None if none.

    ``has_success``: whether ``_SUCCESS`` has to be there, as in a folder.
    """
    if (files := recorded_files(manifest)) is None:
        return f"has a damaged {MANIFEST}"
    is_marked = has_success and is_local(place.fs)  # in a store the manifest alone completes a result
    marks = [(SUCCESS, 0)] if is_marked else []
    return first_missing(place, [*marks, *files[0], *files[1]])


def first_missing(place: Place, files: Sequence[tuple[str, int]]) -> str | None:
    """Describe the first of these files, names with sizes in bytes, that is missing or of another size; else None."""
    paths = [f"{place.path}/{name}" for name, _ in files]
    below = fs.FileSelector(place.path, recursive=True, allow_not_found=True)
    infos = place.fs.get_file_info(paths if is_local(place.fs) else below)  # a store lists a thousand in one answer
    there = {info.path: info.size for info in infos if info.type == fs.FileType.File}
    for path, (name, nbytes) in zip(paths, files, strict=True):
        found = there.get(path)
        if found is None:
            return f"lacks {name}"
        if found != nbytes:
            return f"has {found:,} bytes in {name}, not {nbytes:,}"
    return None


def check_names(shown: str, recorded: Set[str], there: Set[str], do: str) -> None:
    """Check that the files that tasks have reported are those that are there.

    ``do``: what the user can do about a missing one. Raises `OutputError` naming a file that is missing, or that no
    task knows of.
    """
    if missing := sorted(recorded - there):
        what = f"cannot write {shown}: {missing[0]} was written by a task but is not here; nothing was written"
        raise OutputError(what, do)
    if stray := sorted(there - recorded):
        raise OutputError(f"cannot write {shown}: no task knows of {stray[0]}; nothing was written")


def files_of(manifest: Mapping[str, Any]) -> list[str]:
    """Return the names of the files of a result; empty where the manifest does not tell."""
    try:
        return names_of(manifest)
    except (KeyError, TypeError):
        return []


def names_of(manifest: Mapping[str, Any]) -> list[str]:
    """Return the names of the files of a result that is about to be committed: its manifest must tell."""
    return [str(part["name"]) for part in (*manifest["parts"], *manifest["rejects"])]


def token_of(place: Place, run: str, commit: Callable[[str], TableCommit[Any]]) -> str:
    """Return the id of the staging folder beside an output that a run has prepared and not published, or ``""``."""
    under_way = (Progress.READY, Progress.PARTIAL)
    tokens = (token for role, token, _ in folders_beside(place) if role == "new")
    return next((token for token in tokens if commit(token).progress(run) in under_way), "")


def folders_beside(place: Place) -> Iterator[tuple[str, str, str]]:
    """Yield role, token and path of the folders that runs have left beside an output."""
    for info in place.fs.get_file_info(fs.FileSelector(place.parent, allow_not_found=True)):
        role = place.role_of(info.base_name) if info.type == fs.FileType.Directory else None
        if role:
            yield *role, info.path


def remove_beside(place: Place, folder: Path) -> None:
    """Delete a folder, if it exists, atomically.

    The rename before that stops tasks of a cancelled run that still write to it by its name.
    """
    if folder.exists():
        gone = Path(place.beside("gone", new_token()))
        folder.rename(gone)
        shutil.rmtree(gone)


@dataclass(frozen=True, slots=True)
class FolderSwap(TableCommit[Description_contra]):
    """A `TableCommit` on a local file system, whose staging folder becomes the folder of the result or of the unit.

    ``place``: the location of that folder.
    """

    place: Place
    token: str

    @property
    def staging(self) -> str:
        return self.place.beside("new", self.token)

    @property
    def former(self) -> Path:
        """Where the former folder is between two renames, and after them."""
        return Path(self.place.beside("old", self.token))

    def publish(self) -> None:
        """Swap the staging folder in. A kill at any point leaves the old folder or the new one.

        The old one is deleted afterwards. If this raises `OSError`, it is in place, unless only the sync of the parent
        folder failed. Where the system cannot exchange names, a kill between two renames leaves it at `former`.
        """
        atomic_files.replace(Path(self.place.path), Path(self.staging), self.former)
