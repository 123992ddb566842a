"""The files of a run that are written where they stay: parts, rejects and a manifest under names with its id."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...windowing.errors import OutputError
from ...windowing.support.checksum import read_object, unseal
from ..folders import atomic_swap
from ..folders.atomic_file import is_attempt
from ..folders.files import is_file, list_files
from ..folders.place import MANIFEST, Place, has_no_folders, is_local


def manifest_path(place: Place, token: str) -> str:
    """Return the path of the manifest of a result."""
    return f"{place.path}/{MANIFEST.removesuffix('.json')}-{token}.json"


def read_sealed(place: Place, path: str) -> dict[str, Any] | None:
    """Return a JSON object that wincli wrote; None where there is none, or where it is another or damaged."""
    if not is_file(place.fs, path):
        return None
    try:
        with place.fs.open_input_stream(path) as file:
            return unseal(read_object(file.read()))
    except ValueError:
        return None


def own_files(place: Place, token: str) -> list[str]:
    """Return the paths of the parts and rejects of a run, those of killed attempts among them."""
    return [path for path in list_files(place.fs, place.path) if _is_of(path.rpartition("/")[2], token)]


def _is_of(name: str, token: str) -> bool:
    stem = name.removeprefix(".")
    return f"-{token}." in stem and stem.startswith(("part-", "rejects-"))


def check_run_files(place: Place, data: str, token: str, manifest: Mapping[str, Any], do: str) -> None:
    """Delete what killed attempts of a run left, and check that its files are those of its manifest.

    ``data``: the folder to which the names of files are relative. ``do``: what the user can do about a missing one.
    Raises `OutputError` naming a file that is missing or that no task knows of.
    """
    own = {path.removeprefix(f"{data}/"): path for path in own_files(place, token)}
    recorded = {str(part["name"]) for part in (*manifest["parts"], *manifest["rejects"])}
    overtaken = own.keys() - recorded if has_no_folders(place.fs) else set()  # each attempt has a name of its own there
    for name in {*overtaken, *filter(is_attempt, own)}:
        place.fs.delete_file(own.pop(name))
    if missing := sorted(recorded - own.keys()):
        what = f"cannot write {place.shown}: {missing[0]} was written by a task but is not here; nothing was written"
        raise OutputError(what, do)
    if stray := sorted(own.keys() - recorded):
        raise OutputError(f"cannot write {place.shown}: no task knows of {stray[0]}; nothing was written")


def sync_run_files(place: Place, staging: str) -> None:
    """Write the entries of the folders of a run to disk, where there is one; the files are there already."""
    if is_local(place.fs):
        root = Path(place.path)
        for folder in (root / "_wincli", root / "_rejected", Path(staging), root, root.parent):
            if folder.is_dir():
                atomic_swap.sync(folder)
