"""A sample of an input, and the time of its rows: the columns that say when a row happened, and how to read them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...readers.files.file import COMPRESSIONS, input_errors
from ...readers.files.listing import list_files
from ...readers.files.walk import ListedFile
from ...readers.open import open_source
from ...readers.options import ReadOptions
from ...readers.source import FileSource
from ...readers.time_hints import free_name, layouts_of, time_guesses
from ...readers.values.casts import convert
from ...readers.values.time_formats import compile_format, missing_part
from ...readers.values.types import column_type
from ...windowing.errors import InputError
from ...windowing.expressions.nodes import name_text
from ...windowing.expressions.tokens import quoted
from ...windowing.language.tokens import column_text
from ...windowing.local_executor import LocalExecutor
from ...windowing.support.amounts import count_of
from ...windowing.support.formats import FORMATS, SUFFIXES, file_format

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
    ``rows``: the rows, with the types of the source.
    ``piece``: int64 (N,), for each row which run of neighbouring rows it belongs to; one run where all rows are there.
    ``file``: int64 (N,), for each row its file among ``names``.
    ``names``: the files, relative to the input.
    ``is_text``: whether the files hold texts, which have no types.
    ``extent``: which rows these are, in words.
    ``newest``: when the newest of the files was written, UTC; None: unknown.
    """

    source: FileSource
    rows: pa.Table
    piece: Int64s
    file: Int64s
    names: Sequence[str]
    is_text: bool
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
    lots = list(_read(source))
    table = pa.concat_tables([source.schema.empty_table(), *(rows for rows, _, _ in lots)])
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
    lengths_of_lots = [taken.num_rows for taken, _, _ in lots]
    return Sample(
        source,
        table.select(named),
        np.repeat([0 if is_whole else run for _, run, _ in lots], lengths_of_lots),
        np.repeat([file for _, _, file in lots], lengths_of_lots),
        source.names,
        is_text,
        extent,
        newest,
        options,
    )


def _is_compressed(path: str) -> bool:
    return PurePosixPath(path.lower()).suffix in COMPRESSIONS


def _plain(file: ListedFile) -> PurePosixPath:
    name = PurePosixPath(PurePosixPath(file.below or file.place.path).name.lower())
    return PurePosixPath(name.stem) if _is_compressed(name.name) else name


def _read(source: FileSource) -> Iterator[tuple[pa.Table, int, int]]:
    """Yield neighbouring rows, the number of their run and that of their file.

    These are all rows, or as many as may be held, from the beginnings of a few files.
    """
    total = sum(split.rows for split in source.splits)
    in_files = sorted({split.file for split in source.splits})
    in_files = [in_files[at] for at in _evenly(len(in_files))] if total > MOST_ROWS else in_files
    most = MOST_ROWS // len(in_files) if total > MOST_ROWS else total
    left = MOST_BYTES
    for run, file in enumerate(in_files):
        held = 0
        parts = (part for split in source.splits if split.file == file for part in source.parts_of(split))
        for part in parts:
            taken = source.read(part, source.schema.names).rows.slice(0, most - held)
            held, left = held + taken.num_rows, left - taken.nbytes
            yield taken, run, file
            if held >= most or left < 0:
                break


def _evenly(count: int) -> list[int]:
    return [int(at) for at in np.unique(np.linspace(0, count - 1, min(MOST_FILES, count)).astype(np.int64))]


Mask = npt.NDArray[np.bool_]

_NAMED = re.compile(r"time|date|stamp|^ts$|^at$|_at$|_ts$|when|^t$", re.IGNORECASE)
_ENOUGH = 0.7
"""The share of values that must be times: the others may be broken rows."""
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class RowTimes:
    """When rows happened, and how that is read.

    ``column``: the column that orders the rows: of the input, or a new one.
    ``types``: the types that must be given, by column: the exact ``--schema``.
    ``let``: the expression of a new column; None: the column is one of the input.
    ``inputs``: the columns of the input that it is read from.
    ``micros``: int64 (N,), microseconds since 1970 of each row.
    ``known``: bool (N,), whether the row has a time.
    ``is_date``: whether it is a date without a time of day.
    ``others``: other readings of the same values, which fit as many of them.
    """

    column: str
    types: Mapping[str, str]
    let: str | None
    inputs: tuple[str, ...]
    micros: Int64s = field(repr=False)
    known: Mask = field(repr=False)
    is_date: bool
    others: tuple[str, ...] = ()


def find_times(sample: Sample, named: str | None) -> list[RowTimes]:
    """Return what may be the time of the rows, the most likely first; none where no column looks like a time.

    ``named``: the column that the user says it is; None: any.
    """
    names, found = [name for name in sample.rows.column_names if named in (None, name)], list[RowTimes]()
    for name in names:  # columns that are times already
        kind = sample.rows.schema.field(name).type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            is_date = pa.types.is_date(kind)
            word = "date" if is_date else "timestamptz" if kind.tz else "timestamp" + "_ns" * (kind.unit == "ns")
            types = {name: word} if sample.is_text else {}
            found.append(RowTimes(name, types, None, (name,), *_micros(sample.rows[name]), is_date))
    found += [*_guessed(sample, names), *(_joined_times(sample) if named is None else ())]
    return sorted((each for each in found if each.known.mean() >= _ENOUGH), key=lambda one: _rank(one, sample))


def _rank(times: RowTimes, sample: Sample) -> tuple[bool, float, float, int, bool]:
    """Rank as: no bare dates; times that are there; rows nearly in order; fine times; a name that says so.

    A log is written as things happen, so its own time is in order, and the other times in it are often not.
    """
    micros, is_named = times.micros[times.known], any(_NAMED.search(name) for name in times.inputs)
    in_order = round(1 - _falls(micros, sample.piece[times.known]), 1)
    fineness = len(np.unique(micros[:100_000]))
    return times.is_date, -round(float(times.known.mean()), 1), -in_order, -fineness, not is_named


def _falls(micros: Int64s, runs: Int64s) -> float:
    """Return the share of rows that are before the one that arrived just before them."""
    falls = (np.diff(micros) < 0) & (np.diff(runs) == 0)
    return float(falls.mean()) if len(falls) else 0.0


def _micros(column: pa.ChunkedArray) -> tuple[Int64s, Mask]:
    known = column.is_valid().to_numpy()
    stamps = column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column
    ticks = stamps.cast(pa.int64()).fill_null(0).to_numpy()
    unit = stamps.type.unit
    return ticks // 1000 if unit == "ns" else ticks * {"s": 10**6, "ms": 10**3, "us": 1}[unit], known


# Columns that look like times


def _guessed(sample: Sample, names: Sequence[str]) -> Iterator[RowTimes]:
    for guess in time_guesses(sample.source, names):
        name = guess.column
        if guess.types:
            texts = _texts(sample.rows[name])
            readings = {kind: _read_times(texts, kind) for kind in guess.types}
            kind, others = _likeliest(readings, sample)
            yield RowTimes(name, {name: kind}, None, (name,), *readings[kind], guess.is_date, others)
        elif guess.lacks == "zone":  # only some times have one: a new column, with the others in UTC
            texts = _texts(sample.rows[name])
            (micros, known), (others_utc, are_others) = (
                _read_times(texts, each) for each in ("timestamptz", "timestamp")
            )
            types = {name: "string"} if sample.is_text else {}
            let, new = f"CAST({name_text(name)} AS TIMESTAMPTZ)", free_name(sample.rows.column_names)
            whole = np.where(known, micros, others_utc)
            yield RowTimes(new, types, let, (name,), whole, known | are_others, False)


def _joined_times(sample: Sample) -> Iterator[RowTimes]:
    guesses = list(time_guesses(sample.source, sample.rows.column_names))
    clocks = [guess for guess in guesses if guess.lacks == "date"]
    dates = [(each.column, [text[5:-1] for text in each.types]) for each in guesses if each.is_date and each.types]
    dates += [(f.name, ["%Y-%m-%d"]) for f in sample.rows.schema if pa.types.is_date(f.type)]
    for date, date_layouts in dates:
        for clock in clocks:
            texts = pc.binary_join_element_wise(_texts(sample.rows[date]), _texts(sample.rows[clock.column]), " ")
            of_day = [
                each
                for each in layouts_of(clock.value)
                if missing_part(compile_format(each)) == ("date", "time of day")
            ]
            layouts = [f"{one} {other}" for one in date_layouts if one for other in of_day]
            if not layouts:
                continue
            readings = {layout: _read_times(texts, f"timestamp({layout})") for layout in layouts}
            layout, others = _likeliest(readings, sample)
            let = f"strptime({column_text(date)} || ' ' || {column_text(clock.column)}, {quoted(layout, chr(39))})"
            types = {date: "string", clock.column: "string"} if sample.is_text else {}
            name, inputs = free_name(sample.rows.column_names), (date, clock.column)
            yield RowTimes(name, types, let, inputs, *readings[layout], is_date=False, others=others)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())


def _read_times(texts: pa.ChunkedArray, kind: str) -> tuple[Int64s, Mask]:
    column, bad = convert(texts, column_type(kind))
    micros, known = _micros(column)
    return micros, known if bad is None else known & ~bad


def _likeliest(readings: Mapping[str, tuple[Int64s, Mask]], sample: Sample) -> tuple[str, tuple[str, ...]]:
    """Return the likeliest of several readings, and the others that fit as many values.

    The order of day, month and year: that which reads the most values, with which rows are in order, and close to each
    other, then that whose last time is before the newest file was written, and close to that.
    """
    limit = (sample.newest or dt.datetime(2100, 1, 1)) + dt.timedelta(days=1)
    stop = int(limit.replace(tzinfo=dt.UTC).timestamp()) * 10**6

    def rank(kind: str) -> tuple[float, float, int, bool, int]:
        micros, known = readings[kind]
        if not known.any():
            return 0.0, 0.0, 0, True, 0
        there = micros[known]
        newest, days = int(there.max()), int(there.max() - there.min()) // _DAY_US
        falls = round(_falls(there, sample.piece[known]), 3)
        return -round(float(known.mean()), 3), falls, days, newest > stop, abs(newest - stop)

    in_turn = sorted(readings, key=rank)
    most = rank(in_turn[0])[0]
    return in_turn[0], tuple(kind for kind in in_turn[1:] if rank(kind)[0] == most)
