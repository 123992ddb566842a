"""Replace an output by its finished staging folder in an object store, where folders cannot be renamed.

Files are moved one by one, so the replacement is not atomic. ``_SUCCESS`` is deleted first and moved last: without it
readers know that the result is not complete. The manifest is moved first, so that the next run with
``--mode overwrite`` recognises the folder as a result of wincli.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from pyarrow import fs

from .place import MANIFEST, SUCCESS, Place

_MOVES_AT_ONCE = 16  # a move within a store is a request that only waits for the answer


def move_in(place: Place, token: str) -> None:
    """Replace the files of the output by those of the staging folder with id ``token``."""
    store, staging = place.fs, place.beside("new", token)
    names = [path.removeprefix(staging + "/") for path in files(store, staging)]
    _delete(store, [f"{place.path}/{SUCCESS}"])
    _delete(store, [path for path in files(store, place.path) if not path.endswith("/" + MANIFEST)])
    _move(store, staging, place.path, [MANIFEST])
    _move(store, staging, place.path, [name for name in names if name not in (MANIFEST, SUCCESS)])
    _move(store, staging, place.path, [SUCCESS])


def files(store: fs.FileSystem, folder: str) -> list[str]:
    """Return the paths of all files below a folder; an empty list where the folder does not exist."""
    found = store.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    return [info.path for info in found if info.type == fs.FileType.File]


def remove_leftovers(place: Place) -> None:
    """Remove the staging folders that killed runs left beside this output. The caller must hold its lock."""
    for info in place.fs.get_file_info(fs.FileSelector(place.parent, allow_not_found=True)):
        if info.type == fs.FileType.Directory and place.role_of(info.base_name):
            place.fs.delete_dir(info.path)


def _delete(store: fs.FileSystem, paths: Iterable[str]) -> None:
    for path in paths:
        if store.get_file_info(path).type == fs.FileType.File:
            store.delete_file(path)


def _move(store: fs.FileSystem, source: str, target: str, names: Iterable[str]) -> None:
    def move(name: str) -> None:
        folder = f"{target}/{name}".rpartition("/")[0]
        store.create_dir(folder, recursive=True)
        store.move(f"{source}/{name}", f"{target}/{name}")

    with ThreadPoolExecutor(_MOVES_AT_ONCE) as pool:
        list(pool.map(move, names))
