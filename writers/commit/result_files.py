"""The files that make a folder a complete result: its parts, the manifest that names them, and ``_SUCCESS``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyarrow import fs

from ...windowing.errors import OutputError
from ...windowing.support.checksum import read_object, seal, unseal
from ...windowing.support.file_systems import is_begun
from ..places.atomic_files import is_attempt, is_file, list_files, put_file
from ..places.place import MANIFEST, SUCCESS, Place, is_local
from .contract import Content, Progress, TableCommit


def read_manifest(place: Place, folder: str) -> dict[str, Any] | None:
    """Return the manifest in ``folder``, which is the output or a folder beside it.

    Returns None where there is no manifest, where it says that there is no result yet, or where its content or checksum
    is not what wincli wrote.
    """
    path = f"{folder}/{MANIFEST}"
    if not is_file(place.fs, path):
        return None
    try:
        with place.fs.open_input_stream(path) as file:
            manifest = unseal(read_object(file.read()))
    except ValueError:
        return None
    return None if is_begun(manifest) else manifest


def has_manifest_of(place: Place, folder: str, run: str) -> bool:
    """Whether the manifest in ``folder`` is that of a run."""
    manifest = read_manifest(place, folder)
    return manifest is not None and manifest.get("run") == run


def is_whole(place: Place, folder: str, run: str) -> bool:
    """Whether ``folder``, the output or a folder beside it, holds the complete result of a run."""
    return has_manifest_of(place, folder, run) and is_file(place.fs, f"{folder}/{SUCCESS}")


def progress_of(place: Place, staging: str, run: str) -> Progress:
    """Return how far a result has come that one step publishes."""
    if is_whole(place, place.path, run):
        return Progress.PUBLISHED
    return Progress.READY if is_whole(place, staging, run) else Progress.GONE


def content_of(place: Place, is_vacant: Callable[[], bool]) -> Content:
    """Return what is in the folder of an output."""
    if place.fs.get_file_info(place.path).type not in (fs.FileType.Directory, fs.FileType.NotFound):
        return Content.NO_FOLDER
    if is_vacant():
        return Content.VACANT
    return Content.RESULT if is_file(place.fs, f"{place.path}/{MANIFEST}") else Content.OTHER


def missing_file(place: Place, manifest: Mapping[str, Any], has_success: bool = True) -> str | None:
    """Describe the first file of a result that is missing or has another size than its manifest says; None if none.

    ``has_success``: whether ``_SUCCESS`` has to be there, as in a folder.
    """
    try:
        parts = [(str(part["name"]), int(part["bytes"])) for part in (*manifest["parts"], *manifest["rejects"])]
    except (KeyError, TypeError, ValueError):
        return "has a damaged manifest"
    is_marked = has_success and is_local(place.fs)  # in a store the manifest alone completes a result
    return first_missing(place, [(SUCCESS, 0), *parts] if is_marked else parts)


def first_missing(place: Place, files: Sequence[tuple[str, int]]) -> str | None:
    """Describe the first of these files, names with sizes in bytes, that is missing or of another size; else None."""
    for (name, nbytes), found in zip(files, _sizes(place, [name for name, _ in files]), strict=True):
        if found is None:
            return f"lacks {name}"
        if found != nbytes:
            return f"has {found:,} bytes in {name}, not {nbytes:,}"
    return None


def _sizes(place: Place, names: Sequence[str]) -> list[int | None]:
    paths = [f"{place.path}/{name}" for name in names]
    below = fs.FileSelector(place.path, recursive=True, allow_not_found=True)
    infos = place.fs.get_file_info(paths if is_local(place.fs) else below)  # a store lists a thousand in one answer
    there = {info.path: info.size for info in infos if info.type == fs.FileType.File}
    return [there.get(path) for path in paths]


def check_parts(place: Place, staging: str, manifest: Mapping[str, Any]) -> None:
    """Delete what killed attempts left in a staging folder, and check that it has the parts of its manifest.

    Raises `OutputError` naming a part that is missing or that no task knows of.
    """
    paths = {path.removeprefix(staging + "/"): path for path in list_files(place.fs, staging)}
    there = {name for name in paths if not is_attempt(name)}
    for killed in paths.keys() - there:
        place.fs.delete_file(paths[killed])
    recorded = {str(part["name"]) for part in (*manifest["parts"], *manifest["rejects"])}
    if missing := sorted(recorded - there):
        what = f"cannot write {place.shown}: {missing[0]} was written by a task but is not here; nothing was written"
        raise OutputError(what, "write to a folder that all workers share")
    if stray := sorted(there - recorded):
        raise OutputError(f"cannot write {place.shown}: no task knows of {stray[0]}; nothing was written")


def put_result_files(place: Place, staging: str, manifest: Mapping[str, Any]) -> None:
    """Write the manifest and ``_SUCCESS`` to a staging folder. Raises `OSError`."""
    text = json.dumps(seal(manifest), indent=2, ensure_ascii=False)
    put_file(place.fs, f"{staging}/{MANIFEST}", text.encode() + b"\n")
    put_file(place.fs, f"{staging}/{SUCCESS}", b"")


def token_of(place: Place, run: str, commit: Callable[[str], TableCommit[Any]]) -> str:
    """Return the id of the staging folder beside an output that a run has prepared and not published, or ``""``."""
    under_way = (Progress.READY, Progress.PARTIAL)
    return next((token for token in _tokens_beside(place) if commit(token).progress(run) in under_way), "")


def _tokens_beside(place: Place) -> Iterable[str]:
    for info in place.fs.get_file_info(fs.FileSelector(place.parent, allow_not_found=True)):
        role = place.role_of(info.base_name) if info.type == fs.FileType.Directory else None
        if role and role[0] == "new":
            yield role[1]
