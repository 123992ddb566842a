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

from ....readers.files.file import COMPRESSIONS, input_errors
from ....readers.files.listing import list_files
from ....readers.files.walk import ListedFile
from ....readers.open import open_source
from ....readers.options import ReadOptions
from ....readers.source import FileSource
from ....readers.time_hints import free_name, layouts_of, time_guesses
from ....readers.values.casts import convert
from ....readers.values.time_formats import compile_format, missing_part
from ....readers.values.types import column_type
from ....windowing.errors import InputError
from ....windowing.expressions.nodes import name_text
from ....windowing.expressions.tokens import quoted
from ....windowing.language.tokens import column_text
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


# Types of columns in the words of ``--schema``.


def type_word(kind: pa.DataType) -> str:
    """Return the type that ``--schema`` has for values of a type; for one that it lacks, ``string``."""
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz is not None else "timestamp_ns" if kind.unit == "ns" else "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_integer(kind):
        return "int32" if kind.bit_width < 64 and not pa.types.is_uint32(kind) else "int64"
    named = ((pa.types.is_floating, "float64"), (pa.types.is_date, "date"), (pa.types.is_boolean, "bool"))
    return next((word for fits, word in named if fits(kind)), "string")


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
            types = {name: type_word(kind)} if sample.is_text else {}
            found.append(RowTimes(name, types, None, (name,), *_micros(sample.rows[name]), pa.types.is_date(kind)))
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


# What a sample shows of the order of its rows: late ones, ties, repeated rows, and holes in time.


_REGULAR = 0.75
"""The share of distances that are the usual one, from which on rows come at a steady pace."""
_ODD, _MIXER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # as in splitmix64
_HOLE = 3
"""A hole is a distance of more than so many times the usual one."""


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """The order of the rows of a sample. All times are in microseconds.

    ``first``, ``last``: the earliest and the latest time, since 1970.
    ``early``: how many rows are before the latest row that arrived before them.
    ``latest``: by how much at most.
    ``ties``: how many rows have the time of another row of their key.
    ``repeats``: how many rows are the same as one before, in all columns.
    ``untimed``: how many rows have no time, or one that cannot be read.
    """

    first: int
    last: int
    early: int
    latest: int
    ties: int
    repeats: int
    untimed: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """The times between neighbouring rows of a key. All times are in microseconds.

    ``between``: int64 (G,), in the order of ``row``.
    ``rows``: how many rows the keys have together.
    ``usual``: the distance that rows usually have; None: there is none, rows come at no steady pace.
    ``share``: the share of distances that are the usual one, within a tenth.
    ``holes``: how many distances are more than three times the usual one.
    ``longest``: the longest distance.
    ``longest_at``: the time of the row before it, since 1970.
    """

    between: Int64s
    rows: int
    usual: int | None
    share: float
    holes: int
    longest: int
    longest_at: int


@dataclass(frozen=True, slots=True)
class RowsInOrder:
    """The rows of a sample that have a time and a key, by key and time.

    ``micros``: int64 (M,), the times.
    ``begins``: bool (M,), whether a row is the first of its key, or of its run of neighbouring rows.
    """

    micros: Int64s
    begins: Mask


def order_rows(sample: Sample, times: RowTimes, codes: Int64s) -> RowsInOrder:
    """Bring the rows of a sample into order by run, key and time. ``codes``: the key of each row; negative: none."""
    there = times.known & (codes >= 0)
    micros, key, piece = times.micros[there], codes[there], sample.piece[there]
    order = np.lexsort([micros, key, piece])
    micros, key, piece = micros[order], key[order], piece[order]
    begins = np.ones(len(micros), np.bool_)
    begins[1:] = (np.diff(key) != 0) | (np.diff(piece) != 0)
    return RowsInOrder(micros, begins)


def look_at_order(sample: Sample, times: RowTimes, ordered: RowsInOrder, by_file: bool) -> OrderFacts:
    """Look at the order in which rows arrived. ``by_file``: each file is a series, and has an order of its own."""
    runs = sample.file if by_file else sample.piece
    micros, piece = times.micros[times.known], runs[times.known]
    early, latest = 0, 0
    for run in np.unique(piece):
        own = micros[piece == run]
        behind = np.maximum.accumulate(own) - own
        early, latest = early + int((behind > 0).sum()), max(latest, int(behind.max(initial=0)))
    ties = int(((np.diff(ordered.micros) == 0) & ~ordered.begins[1:]).sum())
    untimed = int((~times.known).sum())
    mixed = sample.file.astype(np.uint64) if by_file else np.zeros(sample.rows.num_rows, np.uint64)
    for column in sample.rows.columns:
        if pa.types.is_nested(column.type):
            mixed = np.arange(len(mixed), dtype=np.uint64)  # a nested value has no code, and no row repeats another
            break
        codes = column.combine_chunks()
        encoded = codes if pa.types.is_dictionary(codes.type) else pc.dictionary_encode(codes)
        numbers = encoded.indices.fill_null(-1).to_numpy().astype(np.int64).view(np.uint64)
        mixed = (mixed ^ (numbers + _ODD + (mixed << np.uint64(6)))) * _MIXER
        mixed ^= mixed >> np.uint64(31)
    repeats = len(mixed) - len(np.unique(mixed))
    return OrderFacts(int(micros.min()), int(micros.max()), early, latest, ties, repeats, untimed)


def look_at_gaps(ordered: RowsInOrder) -> Gaps:
    """Look at the times between neighbouring rows of a key."""
    inside = ~ordered.begins[1:]
    between = np.diff(ordered.micros)[inside]
    before = ordered.micros[:-1][inside]
    if not len(between):
        return Gaps(between, len(ordered.micros), None, 0.0, 0, 0, 0)
    moving = between[between > 0]
    usual = int(np.median(moving)) if len(moving) else 0
    share = float((np.abs(moving - usual) <= usual / 10).mean()) if len(moving) else 0.0
    at = int(between.argmax())
    is_steady = usual > 0 and share >= _REGULAR and len(moving) > len(between) / 2
    holes = int((between > _HOLE * usual).sum()) if is_steady else 0
    pace = usual if is_steady else None
    return Gaps(between, len(ordered.micros), pace, share, holes, int(between[at]), int(before[at]))


# Durations as people say them: those that are proposed, and their texts.


_S = 1_000_000
_MINUTE, _HOUR, _DAY = 60 * _S, 3600 * _S, 86400 * _S

NICE: tuple[int, ...] = (
    *(count * 10**power for power in range(6) for count in (1, 2, 5)),
    *(count * _S for count in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(count * _MINUTE for count in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(count * _HOUR for count in (1, 2, 3, 4, 6, 8, 12)),
    *(count * _DAY for count in (1, 2, 3, 7, 14, 30)),
)
"""Gaps that may be proposed, in microseconds."""

GRID: tuple[int, ...] = (
    *(count * 10**power for power in range(6) for count in (1, 2, 5)),
    *(count * _S for count in (1, 5, 10, 30)),
    *(count * _MINUTE for count in (1, 5, 15, 30)),
    *(count * _HOUR for count in (1, 6, 12)),
    *(_DAY, 7 * _DAY),
)
"""Lengths of windows on the clock that may be proposed, in microseconds."""

_UNITS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"), (_S, "s"), (1000, "ms"), (1, "us"))


def spec_text(micros: int) -> str:
    """Return a duration as a window spec has it: ``30m``, ``90s``."""
    size, unit = next(each for each in _UNITS if micros % each[0] == 0)
    return f"{micros // size}{unit}"


def in_words(micros: int) -> str:
    """Return a duration in its two coarsest units: ``1 h 5 m``, ``2.5 s``."""
    if micros < _S:
        return f"{micros / 1000:.3g} ms"
    if micros < _MINUTE:
        return f"{micros / _S:.3g} s"
    at = next(number for number, (size, _) in enumerate(_UNITS) if micros >= size)
    (size, unit), (finer, word) = _UNITS[at], _UNITS[at + 1]
    whole, rest = divmod(round(micros / finer), size // finer)
    return f"{whole} {unit}" + (f" {rest} {word}" if rest else "")
