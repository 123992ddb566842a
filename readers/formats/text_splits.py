"""Turn scanned byte ranges of text files into splits with exact arrival positions, first lines and column kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol

import numpy as np
import pyarrow as pa

from ...windowing.errors import InputError
from ...windowing.ports import Executor, Split
from ...windowing.support.value_table import share, value_table
from ..files.byte_ranges import WHOLE, Range, cut_files
from ..files.file import Located, has_changed, input_errors
from ..files.walk import ListedFile
from ..options import ReadOptions
from ..values import timestamps
from ..values.kinds import NOTHING, Kind, join, type_of
from ..values.record_bounds import Records
from ..values.types import ColumnType, Int64s
from .split_rows import FormatReader, ReadRequest, Reject, SplitPlan, SplitRows, cut_plan

_TORN = ("a quoted field runs over the end of the line", "--multiline reads such files")
_LOOKS = 4  # ranges of a split that are read for a sample
_LOOK = 128 << 10  # bytes of such a range
_FIRST = 8 << 20  # bytes of a range, where only the first rows of the input are read
_UNCLOSED = ("a quoted field begins here and never ends", "close the quote")


@dataclass(frozen=True, slots=True)
class ScannedRange:
    """The result of scanning one byte range.

    ``file``: the index of the file in the input.
    ``start``: the first byte, moved to a line start.
    ``stop``: the end, exclusive, moved to a line start.
    ``rows``: the number of records.
    ``bad``: the number of records that cannot be read.
    ``lines``: the number of line ends.
    ``before``: the number of line ends of the file's header.
    ``nbytes``: the size of the range in bytes, decompressed.
    ``torn``: the 0-based line of a record that ends inside quotes, or -1.
    ``names``: the columns in the header of the file.
    ``kinds``: the kinds of the columns in this range.
    """

    file: int
    start: int
    stop: int
    rows: int = 0
    bad: int = 0
    lines: int = 0
    before: int = 0
    nbytes: int = 0
    torn: int = -1
    names: tuple[str, ...] = ()
    kinds: dict[str, Kind] = field(default_factory=dict)


class TextReader(FormatReader, Protocol):
    """The reader of a text format."""

    def as_stream(self, place: Located) -> bool:
        """Whether a file is one split that is read from start to end."""

    def scan_range(self, byte_range: Range) -> ScannedRange:
        """Count the records of a range and find the kinds of its columns. Raises what `input_errors` turns."""

    def buffers(self, place: Located, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes of a scanned range in buffers, each of which ends where a record ends."""

    def locate(self, place: Located, data: bytes) -> tuple[Records, int]:
        """Return the records of a buffer, and the number of its line ends."""

    def read_buffer(
        self, place: Located, data: bytes, line: int, request: ReadRequest, has_bad: bool
    ) -> tuple[SplitRows, int, int]:
        """Return the rows of a buffer, the number of all its records, and of its line ends.

        ``line``: the 1-based number of its first line. ``has_bad``: whether some records of the split cannot be read.
        """

    def scan(self, byte_range: Range) -> ScannedRange | InputError:
        """Scan a range. Errors are returned, not raised."""
        try:
            with input_errors(byte_range.place.shown):
                return self.scan_range(byte_range)
        except InputError as error:
            return error

    def read(self, place: Located, split: Split, request: ReadRequest) -> SplitRows:

        start, stop, line, bad = split.place
        if not request.types and not bad:
            return SplitRows(pa.table({}), np.arange(split.rows, dtype=np.int64))
        tables, offsets, rejects = [request.schema.empty_table()], [np.empty(0, np.int64)], list[Reject]()
        base = 0
        with input_errors(place.shown):
            for data in self.buffers(place, start, stop):
                found, rows, line_ends = self.read_buffer(place, data, line, request, bad > 0)
                tables.append(found.table)
                offsets.append(found.offsets + base)
                rejects += (replace(each, offset=each.offset + base) for each in found.rejects)
                base, line = base + rows, line + line_ends
        if base != split.rows:
            raise has_changed(place.shown)
        return SplitRows(pa.concat_tables(tables[1:] or tables), np.concatenate(offsets), tuple(rejects))

    def lines(self, place: Located, split: Split, offsets: Int64s) -> Int64s:
        start, stop, line, _ = split.place
        base = 0
        found: list[Int64s] = [np.empty(0, np.int64)]
        with input_errors(place.shown):
            for data in self.buffers(place, start, stop):
                records, line_ends = self.locate(place, data)
                rows = len(records.lines)
                here = offsets[(offsets >= base) & (offsets < base + rows)]
                found.append(records.lines[here - base] + line)
                base, line = base + rows, line + line_ends
        return np.concatenate(found)

    def pieces_of(self, place: Located, split: Split, nbytes: int) -> Iterator[Split]:
        """Yield splits of about ``nbytes`` bytes that a split is made of, in order, each scanned when it is asked for.

        A file that is read as a stream is one piece. Raises `InputError` where the file cannot be read any more.
        """
        start, stop, line, _ = split.place
        if stop == WHOLE or not split.rows:
            yield split
            return
        base = split.base
        while start < stop:
            (found,) = _checked([self.scan(Range(split.file, place, start, min(start + nbytes, stop)))])
            is_last = found.stop >= stop
            at = (found.start, found.stop, line, found.bad)
            yield Split(split.index, split.file, base, found.rows, found.nbytes, is_last and split.ends_file, at)
            start, base, line = found.stop, base + found.rows, line + found.lines

    def looks_of(self, place: Located, split: Split) -> Sequence[Split]:
        """Return evenly spaced small ranges of a split, in order, with estimated positions and lines.

        A split that is small itself or read as a stream is returned as it is.
        """
        start, stop, line, _ = split.place
        size = stop - start
        if stop == WHOLE or size <= 2 * _LOOKS * _LOOK:
            return [split]
        looks = []
        for at in range(start, stop - _LOOK, size // _LOOKS):
            (found,) = _checked([self.scan(Range(split.file, place, at, at + _LOOK))])
            base = split.base + split.rows * (found.start - start) // size
            if found.rows:
                where = (found.start, found.stop, line, found.bad)
                looks.append(Split(split.index, split.file, base, found.rows, found.nbytes, False, where))
        return looks or [split]


def text_rejects(data: bytes, records: Records, line: int, details: Mapping[int, str]) -> tuple[Reject, ...]:
    """Return the rejects of a buffer of text.

    ``line``: the 1-based number of its first line. ``details``: what is wrong, by row.
    """
    return tuple(
        Reject(row, line + int(records.lines[row]), detail, records.text(data, row)) for row, detail in details.items()
    )


def plan_text_files(
    reader: TextReader,
    files: Sequence[ListedFile],
    options: ReadOptions,
    given: Mapping[str, ColumnType],
    executor: Executor,
) -> SplitPlan:
    """Scan text files once, to count their rows and infer the types of their columns, and divide them into splits.

    Raises `InputError` naming a file that cannot be read.
    """
    if any(kind.format and kind.unix_digits is None for kind in given.values()):
        timestamps.warm()
    typed = {name: kind.type for name, kind in given.items()}
    torn = _UNCLOSED if options.multiline else _TORN
    if options.limit is not None:
        return _plan_first(reader, files, options.split_bytes, options.limit, typed, torn)
    ranges = value_table(Range, cut_files(files, options.split_bytes, reader.as_stream))
    scanned = executor.map("read types", reader.scan, ranges)
    return plan_text(files, scanned, typed, torn)


def _plan_first(
    reader: TextReader,
    files: Sequence[ListedFile],
    split_bytes: int,
    rows: int,
    typed: Mapping[str, pa.DataType],
    torn: tuple[str, str],
) -> SplitPlan:
    """Divide the first rows of text files into splits, and infer types from these rows alone.

    Ranges are scanned one after the other, until one has rows beyond. Of that, only the part with the first rows is
    scanned again. A file that is read as a stream can only be scanned as a whole.
    """
    scanned: list[ScannedRange] = []
    left = rows
    for byte_range in cut_files(files, min(split_bytes, _FIRST), reader.as_stream):
        (found,) = _checked([reader.scan(byte_range)])
        if found.rows <= left:
            scanned.append(found)
            left -= found.rows
            continue
        is_begun = any(each.file == found.file and each.rows for each in scanned)
        if not left and not is_begun:  # a header, or empty lines, which stood in ranges of their own
            scanned = [each for each in scanned if each.file != found.file]
        elif left:
            scanned.append(found if found.stop == WHOLE else _first_part(reader, byte_range, found, left))
        return cut_plan(plan_text(files, scanned, typed, torn), rows, ends_file=not left and not is_begun)
    return plan_text(files, scanned, typed, torn)


def _first_part(reader: TextReader, byte_range: Range, whole: ScannedRange, rows: int) -> ScannedRange:
    """Return the part of a range with its first ``rows`` rows, of which the range has more, scanned by itself.

    Its end is searched by halves, each counted from the last line start before which there are too few rows.
    """
    at, before = whole.start, 0
    low, high = whole.start, whole.stop  # up to `low` there are too few rows, up to `high` there are not
    while high - low > 1:
        middle = (low + high) // 2
        (found,) = _checked([reader.scan(Range(byte_range.file, byte_range.place, at, middle))])
        if before + found.rows < rows:
            at, before = found.stop, before + found.rows
            low = max(middle, found.stop)
        else:
            high = middle
    (part,) = _checked([reader.scan(Range(byte_range.file, byte_range.place, byte_range.start, high))])
    return part


def plan_text(
    files: Sequence[ListedFile],
    scanned: Iterable[ScannedRange | InputError],
    typed: Mapping[str, pa.DataType],
    torn: tuple[str, str],
) -> SplitPlan:
    """Turn scanned ranges, in order of files and bytes, into splits.

    ``typed``: the declared types by column. ``torn``: the message for a record that ends inside quotes, and what to do.
    Raises the first `InputError` among ``scanned``, and one for a record that ends inside quotes.
    """
    ranges = list(_checked(scanned))
    schemas: dict[tuple[tuple[str, str], ...], pa.Schema] = {}
    layouts: list[pa.Schema] = []
    text_at: dict[str, int] = {}

    def splits() -> Iterator[Split]:
        """Yield one split for each range with records, but at least one for each file."""
        index = base = 0
        for file, group in groupby(ranges, key=lambda s: s.file):
            own = list(group)
            line = 1 + own[0].before
            kinds: dict[str, Kind] = dict.fromkeys(own[0].names, NOTHING)
            added: list[Split] = []
            for each in own:
                if each.torn >= 0:
                    what = f"{files[file].place.shown} line {line + each.torn}: {torn[0]}"
                    raise InputError(what, torn[1])
                for name, kind in each.kinds.items():
                    kinds[name] = join(kinds.get(name, NOTHING), kind)
                    if name not in typed and pa.types.is_string(type_of(kinds[name])):
                        text_at.setdefault(name, index)
                if each.rows:
                    place = (each.start, each.stop, line, each.bad)
                    added.append(Split(index, file, base, each.rows, each.nbytes, False, place))
                    index, base = index + 1, base + each.rows
                line += each.lines
            if added:
                added[-1] = replace(added[-1], ends_file=True)
            else:
                added = [Split(index, file, base, 0, 0, True, (0, 0, line, 0))]
                index += 1
            schema = pa.schema([(name, typed.get(name, type_of(kind))) for name, kind in kinds.items()])
            layouts.append(schemas.setdefault(tuple((f.name, str(f.type)) for f in schema), schema))
            yield from added

    return SplitPlan(value_table(Split, splits()), share(layouts), text_at)


def _checked(scanned: Iterable[ScannedRange | InputError]) -> Iterable[ScannedRange]:
    for scanned_range in scanned:
        if isinstance(scanned_range, InputError):
            raise scanned_range
        yield scanned_range
