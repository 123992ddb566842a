"""A sample of an input: all of it where it is small, else the first rows of a few of its files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....readers.files.file import COMPRESSIONS, input_errors
from ....readers.files.listing import list_files
from ....readers.files.walk import ListedFile
from ....readers.open import open_source
from ....readers.options import ReadOptions
from ....readers.source import FileSource
from ....windowing.errors import InputError
from ....windowing.local_executor import LocalExecutor
from ....windowing.support.formats import FORMATS, SUFFIXES, file_format
from ...console.amounts import count_of

Int64s = npt.NDArray[np.int64]

MOST_TEXT = 32 << 20
"""Bytes of text that are read, of several files together."""
MOST_ROWS = 1_000_000
MOST_BYTES = 256 << 20
"""Bytes of columns that are held at once."""
MOST_FILES = 4
"""Files that are looked at where not all are."""
_COMPRESSION = 8
"""How much longer a text is than its compressed file, about."""
_DELIMITERS = ";\t|"


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of an input, in arrival order.

    ``source``: the files that the rows come from, opened; heads of the files where these are large texts.
    ``paths``: the paths by which the source was opened.
    ``rows``: the rows, with the types of the source.
    ``pos``: int64 (N,), the arrival position of each row in the source.
    ``piece``: int64 (N,), for each row which run of neighbouring rows it belongs to; one run where all rows are there.
    ``file``: int64 (N,), for each row its file among ``names``.
    ``names``: the files, relative to the input.
    ``is_text``: whether the files hold texts, which have no types.
    ``is_whole``: whether these are all rows.
    ``extent``: which rows these are, in words.
    ``newest``: when the newest of the files was written, UTC; None: unknown.
    ``options``: how the files are read.
    """

    source: FileSource
    paths: tuple[str, ...]
    rows: pa.Table
    pos: Int64s
    piece: Int64s
    file: Int64s
    names: Sequence[str]
    is_text: bool
    is_whole: bool
    extent: str
    newest: dt.datetime | None
    options: ReadOptions


def take_sample(paths: Sequence[str], options: ReadOptions, folder: Path) -> Sample:
    """Look at an input. ``folder``: where heads of large text files are put.

    Raises `InputError` where an input is missing, empty or cannot be read, and as `open_source` does.
    """
    files = list_files(paths, options.bases, skip_unreadable=options.skip_unreadable).files
    form = file_format(options.format) if options.format != "auto" else None
    if form is None and files:
        form = SUFFIXES.get(_plain(files[0]).suffix)
    is_text = bool(files) and form is not None and FORMATS[form].is_text
    lengths = (file.size * (_COMPRESSION if _is_compressed(file.place.path) else 1) for file in files)
    is_large = is_text and sum(lengths) > MOST_TEXT
    chosen = [files[at] for at in _evenly(len(files))] if is_large else files
    for file in chosen if is_large else ():  # the heads of large files
        target = folder / PurePosixPath(file.below or "rows").with_name(_plain(file).name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with input_errors(file.place.shown), file.place.open_stream() as stream:
            head = stream.read(MOST_TEXT // len(chosen))
        target.write_bytes(head[: head.rfind(b"\n") + 1] or head)
    read_paths = [str(folder)] if is_large else list(paths)
    source = open_source(read_paths, options, LocalExecutor())
    if is_text and len(source.schema.names) == 1 and options.delimiter == ",":
        # CSV in one column is tried with other delimiters, if its name has one of them.
        delimiter = next((each for each in _DELIMITERS if each in source.schema.names[0]), None)
        if delimiter is not None:
            options = replace(options, delimiter=delimiter)
            source = open_source(read_paths, options, LocalExecutor())
    lots = _read(source)
    table = pa.concat_tables([source.schema.empty_table(), *(lot.rows for lot in lots)])
    if not table.num_rows:
        raise InputError(f"{paths[0]} has no rows to look at", "name an input with rows")
    is_stream = source.stream is not None
    named = [name for name in table.column_names if "\n" not in name and not (is_stream and name.startswith("_"))]
    written = max((file.mtime for file in files if file.mtime), default=None)
    newest = None if written is None else dt.datetime.fromisoformat(written).astimezone(dt.UTC).replace(tzinfo=None)
    total, rows, of_files = sum(split.rows for split in source.splits), table.num_rows, count_of(len(files), "file")
    is_whole = not is_large and rows == total
    if is_whole:
        extent = f"all {count_of(rows, 'row')} of {of_files}"
    elif is_large:
        extent = f"the first {count_of(rows, 'row')} of {len(chosen)} of {of_files}"
        extent += f", which hold {sum(file.size for file in files) / (1 << 20):,.0f} MiB"
    else:
        extent = f"{count_of(rows, 'row')} of {total:,}: the first of {min(MOST_FILES, len(files))} of {of_files}"
    return Sample(
        source,
        tuple(read_paths),
        table.select(named),
        np.concatenate([lot.pos for lot in lots]),
        np.concatenate([lot.numbers(0 if is_whole else lot.run) for lot in lots]),
        np.concatenate([lot.numbers(lot.file) for lot in lots]),
        source.names,
        is_text,
        is_whole,
        extent,
        newest,
        options,
    )


def _is_compressed(path: str) -> bool:
    return PurePosixPath(path.lower()).suffix in COMPRESSIONS


def _plain(file: ListedFile) -> PurePosixPath:
    name = PurePosixPath(PurePosixPath(file.below or file.place.path).name.lower())
    return PurePosixPath(name.stem) if _is_compressed(name.name) else name


@dataclass(frozen=True, slots=True)
class _Lot:
    """Neighbouring rows of one file.

    ``rows``: the rows. ``pos``: their arrival positions. ``run``, ``file``: the numbers of their run and their file.
    """

    rows: pa.Table
    pos: Int64s
    run: int
    file: int

    def numbers(self, value: int) -> Int64s:
        """Return a number for each row."""
        return np.full(self.rows.num_rows, value, np.int64)


def _read(source: FileSource) -> list[_Lot]:
    """Read rows: all, or as many as may be held, from the beginnings of a few files."""
    total = sum(split.rows for split in source.splits)
    in_files = sorted({split.file for split in source.splits})
    in_files = [in_files[at] for at in _evenly(len(in_files))] if total > MOST_ROWS else in_files
    most = MOST_ROWS // len(in_files) if total > MOST_ROWS else total
    found, left = [], MOST_BYTES
    for run, file in enumerate(in_files):
        held = 0
        parts = (part for split in source.splits if split.file == file for part in source.parts_of(split))
        for part in parts:
            batch = source.read(part, source.schema.names)
            taken = batch.rows.slice(0, most - held)
            held, left = held + taken.num_rows, left - taken.nbytes
            found.append(_Lot(taken, batch.pos[: taken.num_rows], run, file))
            if held >= most or left < 0:
                break
    return found


def _evenly(count: int) -> list[int]:
    return [int(at) for at in np.unique(np.linspace(0, count - 1, min(MOST_FILES, count)).astype(np.int64))]
