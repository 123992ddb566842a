"""Results of wincli as inputs: a folder with ``_wincli/manifest.json`` is read back as a stream (semantics 10)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa

from ...windowing.errors import DamagedError, InputError
from ...windowing.ports import OWN, StreamInfo
from ...windowing.support.checksum import LAST, PLACE, TAIL, checksum, read_object, unseal
from ...windowing.support.value_table import ValueTable, value_table
from ..values.types import arrow_type
from .file import Located, input_errors
from .listing import Listing
from .walk import MANIFEST, ListedFile, all_below, iso_time

STREAM_COLUMN = "_stream"


@dataclass(frozen=True, slots=True)
class Files:
    """The files of an input, or of one result, in arrival order.

    ``ordinals``: the ordinal of each file's result folder; None unless the input is several streams.
    ``types``: the types that the manifests of results give, by column.
    ``stream``: how the rows are ordered as a stream; None for other inputs.
    ``rows``: the number of rows of each part of a result, by path.
    """

    files: ValueTable[ListedFile]
    ordinals: tuple[int, ...] | None
    types: Mapping[str, pa.DataType]
    stream: StreamInfo | None
    rows: Mapping[str, int]

    def first(self, count: int) -> Files:
        """Return the first of the files."""
        ordinals = self.ordinals if self.ordinals is None else self.ordinals[:count]
        return self if count == len(self.files) else replace(self, files=self.files[:count], ordinals=ordinals)


def order_files(listing: Listing, order: str) -> Files:
    """Put the files of an input in arrival order: by path or time, but the parts of results as the manifests list them.

    ``order``: ``name`` or ``mtime``. Raises `InputError` where the input mixes results of different orders, or stream
    results and other files.
    """
    if not listing.manifests:
        return Files(_sorted(listing.files, order), None, {}, None, {})
    by_path = {file.place.path: file for file in listing.files}
    results = [_result(manifest, by_path) for manifest in listing.manifests]
    folders = tuple(manifest.folder for manifest in listing.manifests)
    others = [file for file in listing.files if not file.place.path.startswith(folders)]
    first = results[0]
    shown = _shown(listing.manifests[0])
    for manifest, other in zip(listing.manifests, results, strict=True):
        if other.stream != first.stream:
            what = f"{shown} and {_shown(manifest)} are results that are ordered differently"
            raise InputError(what, "read them one by one")
    if others and first.stream is not None:
        raise InputError(f"{shown} is a result of wincli and {others[0].place.shown} is not", "read them one by one")
    # The types on which all results with a column agree; the types of other columns are inferred.
    declared = [result.types for result in results]
    every = {name: {types[name] for types in declared if name in types} for types in declared for name in types}
    types = {name: kinds.pop() for name, kinds in every.items() if len(kinds) == 1}
    files = value_table(ListedFile, (file for result in results for file in result.files))
    rows = {file.place.path: n for result in results for file, n in zip(result.files, result.rows, strict=True)}
    stream = first.stream
    if stream is None:
        return Files(_sorted([*files, *others], order) if others else files, None, types, None, rows)
    if len(results) == 1:
        return Files(files, None, types, stream, rows)
    ordinals = tuple(ordinal for ordinal, result in enumerate(results) for _ in result.rows)
    order_of_all, own = (STREAM_COLUMN, *stream.order), (STREAM_COLUMN, *stream.own)
    return Files(files, ordinals, types, replace(stream, order=order_of_all, own=own), rows)


def _sorted(files: Iterable[ListedFile], order: str) -> ValueTable[ListedFile]:
    by_time = order == "mtime"
    if isinstance(files, ValueTable) and not by_time:
        return files  # a listing is sorted by path
    return value_table(ListedFile, sorted(files, key=lambda f: (f.mtime or "" if by_time else "", f.place.path)))


def _shown(manifest: ListedFile) -> str:
    return manifest.place.shown.removesuffix(MANIFEST).rstrip("/")


class _Result(NamedTuple):
    """A result of wincli: its parts in order, the rows of each, the types of its columns, its order; None without."""

    files: tuple[ListedFile, ...]
    rows: list[int]
    types: dict[str, pa.DataType]
    stream: StreamInfo | None


def _result(manifest: ListedFile, listed: Mapping[str, ListedFile]) -> _Result:
    """Read one manifest. ``listed``: the files of the input by path.

    Raises `InputError` where it is no manifest, `DamagedError` where a part is missing or has another size.
    """
    shown, folder = _shown(manifest), manifest.folder
    try:
        content = read_manifest(manifest.place if manifest.place.is_local else replace(manifest.place, size=None))
    except ValueError as error:
        raise _unreadable(manifest.place, str(error)) from error
    try:
        parts = [(str(part["name"]), int(part["rows"]), int(part["bytes"])) for part in content["parts"]]
        tails = {str(part["name"]): part.get(TAIL) for part in content["parts"]}
        schema = content.get("schema") or []
        known = {column["name"]: arrow_type(column["type"]) for column in schema}
        types = {name: kind for name, kind in known.items() if kind is not None}
        stream, told = None, content["stream"]
        if told is not None:
            order, at, own = told["order"], told["at"], told.get("own", OWN)  # manifests of wincli 0.1 lack the last
            stream = StreamInfo(tuple(map(str, order)), tuple(map(str, at)), tuple(map(str, own)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _unreadable(manifest.place, f"{error} is missing or of another form") from error
    by_path = {path: listed[path] for name, _, _ in parts if (path := folder + name) in listed}
    by_path |= _came_later(manifest, [folder + name for name, _, _ in parts if folder + name not in by_path])
    for name, _, nbytes in parts:
        if folder + name not in by_path:
            raise DamagedError(f"{shown} lacks {name}, which its manifest names", "write the result again")
        if (size := by_path[folder + name].size) != nbytes:
            what = f"{shown} has {size:,} bytes in {name}, and its manifest says {nbytes:,}"
            raise DamagedError(what, "write the result again")
        _check_tail(by_path[folder + name].place, tails[name])
    _check_place(manifest, content, shown)
    return _Result(tuple(by_path[folder + name] for name, _, _ in parts), [rows for _, rows, _ in parts], types, stream)


def _check_tail(place: Located, recorded: str | None) -> None:
    """Raise `DamagedError` where a local file is another than the part that a run has written under its name.

    In a store no two runs give a part the same name.
    """
    if recorded is None or not place.is_local:
        return
    with input_errors(place.shown), place.open_file() as file:
        size = file.size()
        found = checksum(file.read_at(min(size, LAST), max(0, size - LAST)))
    if found != recorded:
        what = f"{place.shown} is another file than its manifest names: its last bytes have the checksum {found}"
        raise DamagedError(f"{what}, not {recorded}", "put the right file there, or write the result again")


def _check_place(manifest: ListedFile, content: Mapping[str, Any], shown: str) -> None:
    if not manifest.place.path.endswith(f"/{MANIFEST}"):
        return  # of a table by version, which names its files itself

    def real(path: str) -> str:
        return os.path.realpath(path) if manifest.place.is_local else path

    own = real(manifest.place.path.removesuffix(f"/{MANIFEST}"))
    seen, at = {own}, real(content.get(PLACE, own))
    while at not in seen:
        seen.add(at)
        try:
            there = read_manifest(replace(manifest.place, path=f"{at}/{MANIFEST}", size=None, mtime_ns=None))
        except (InputError, ValueError):
            return
        at = real(there.get(PLACE, at))
    if at == own and len(seen) > 1:
        what = f"{shown} holds the result that was written to {content[PLACE]}, and its own stands in another's place"
        raise DamagedError(what, "move them back, or write the results again")


def _came_later(manifest: ListedFile, paths: Sequence[str]) -> dict[str, ListedFile]:
    """Return those files of a result in a store that are there, though not when its folder was listed, by path.

    A run has replaced the result since: its manifest is read after the folder was listed, and its parts are kept.
    """
    if manifest.place.is_local or not paths:
        return {}
    folder = replace(manifest.place, path=manifest.place.path.removesuffix(f"/{MANIFEST}"))
    found = {f"{folder.path}/{below}": entry for below, entry in all_below(folder)}
    there: dict[str, ListedFile] = {}
    for path in paths:
        if (entry := found.get(path)) is not None:
            name = path.removeprefix(manifest.place.path.removesuffix(MANIFEST))
            shown = manifest.place.shown.removesuffix(MANIFEST) + name
            place = replace(manifest.place, path=path, shown=shown, size=entry.size, mtime_ns=entry.mtime_ns)
            below = manifest.below.removesuffix(MANIFEST) + name
            there[path] = ListedFile(place, entry.size, iso_time(entry.mtime_ns), below)
    return there


def read_manifest(place: Located) -> dict[str, Any]:
    """Return the content of a manifest.

    Raises `InputError` where the file cannot be read, `ValueError` where it is not what wincli wrote.
    """
    with input_errors(place.shown), place.open_stream() as stream:
        text = stream.read()
    return unseal(read_object(text))


def _unreadable(place: Located, reason: str) -> InputError:
    return InputError(f"{place.shown} is no manifest of wincli: {reason}", "write the result again")
