"""The files that a manifest, or the record of a unit, names as input, opened again as the run opened them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from .....conf.ranges.path_templates import before_date, has_date
from .....readers.files.listing import is_result
from .....readers.files.walk import MANIFEST
from .....readers.open import open_source
from .....readers.source import FileSource
from .....windowing.errors import ConfigError, InputError
from .....windowing.local_executor import LocalExecutor
from .....windowing.ports import InputFile
from ....planning.fingerprint import absolute, same_inputs
from ....planning.open_input import NOTHING_KNOWN, KnownColumns, named_columns
from ....planning.request import JobRequest


@dataclass(frozen=True, slots=True)
class RecordedInput:
    """The input of a run, opened again.

    ``source``: its files.
    ``paths``: the paths that were opened.
    ``bases``: the folders below which folder names give columns.
    """

    source: FileSource
    paths: tuple[str, ...]
    bases: tuple[str, ...]


def open_input(request: JobRequest, manifest: Mapping[str, Any]) -> RecordedInput:
    """Open the files that a manifest names, as the job read them.

    Raises `InputError` where one of them is gone or has changed, `ConfigError` where they were stdin.
    """
    if "-" in request.job.input:
        raise ConfigError("this result was made of stdin, which is gone", "keep the log in a file, and run again")
    files = [InputFile(**file) for file in manifest["inputs"]]
    if not any(has_date(path) for path in request.job.input) and request.job.start is None:
        found = _opened(request, request.job.input, ())
        if found is not None and same_inputs(found.source.files, files):
            return found
    return open_files(request, files)


def open_files(request: JobRequest, files: Sequence[InputFile], known: KnownColumns = NOTHING_KNOWN) -> RecordedInput:
    """Open files that were read; ``known``: as they were then. Raises `InputError` where one is gone or has changed."""
    bases = tuple(absolute(before_date(path) if has_date(path) else path) for path in request.job.input)
    found = _opened(request, _folders_of_results(files), bases, known)
    if found is None or not same_inputs(found.source.files, files):
        do = "run the job again, or ask from the folder where it was run"
        raise InputError(_difference(files, None if found is None else found.source), do)
    return found


def _opened(
    request: JobRequest, paths: Sequence[str], bases: Sequence[str], known: KnownColumns = NOTHING_KNOWN
) -> RecordedInput | None:
    """Open an input; None where it is gone. A column that the job names and no file has is null, as the run knew."""
    reading, named = replace(request.reading, bases=tuple(bases)), named_columns(request)
    earlier = [*known.input, ("", pa.schema([(name, pa.null()) for name in sorted(named) if "." not in name]))]
    try:
        source = open_source(paths, reading, LocalExecutor(), earlier, named)
    except InputError:
        return None
    return RecordedInput(source, tuple(paths), tuple(bases))


def _folders_of_results(files: Sequence[InputFile]) -> list[str]:
    """Return the paths to read: of parts of a result the folder, whose manifest says how they are ordered."""
    one_of_each = {_above(file.path): file.path for file in files}
    folders = {above: _folder_of_result(path) for above, path in one_of_each.items()}
    return list(dict.fromkeys(folders[_above(file.path)] or file.path for file in files))


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _folder_of_result(path: str) -> str | None:
    if "://" not in path:
        return next((str(folder) for folder in Path(path).parents if (folder / MANIFEST).exists()), None)
    return next((folder for folder in _folders_above(path) if is_result(folder)), None)


def _folders_above(uri: str) -> Iterator[str]:
    """Yield the folders above a file in a store, the innermost first, each with the parameters of the URI."""
    head, sign, query = uri.partition("?")
    while "/" in (head := head.rpartition("/")[0]).partition("://")[2]:
        yield head + sign + query


def _difference(files: Sequence[InputFile], found: FileSource | None) -> str:
    """Say which file of a result is no longer what it was."""
    there = {absolute(file.path): file for file in found.files} if found is not None else {}
    for file in files:
        now = there.get(absolute(file.path))
        if now is None and not ("://" in file.path or Path(file.path).exists()):
            return f"{file.path}, which this result was made of, is gone"
        if now is not None and (now.size, now.mtime) != (file.size, file.mtime):
            return f"{file.path} has changed since this result was made of it"
    return "the input of this result is no longer what it was"
