"""Read CSV: byte ranges of lines, or whole files where a task cannot enter a file in the middle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ...windowing.errors import InputError
from ...windowing.ports import Executor, Split
from ..files.byte_ranges import STEP, WHOLE, Range, last_line_end, line_start, range_buffers, stream_buffers
from ..files.file import Located, Stream, has_changed, input_errors
from ..files.listed import ListedFile
from ..options import ReadOptions
from ..schema.kinds import NOTHING, TEXT, Kind, join
from ..schema.types import ColumnType, Int64s
from ..text.csv_fields import warm
from ..text.record_bounds import Dialect, Tally, count_line_ends, locate, tally
from ..text.records import Records
from ..text.value_kinds import UNSURE
from .csv_header import Header, read_header
from .csv_parse import infer_csv, read_typed
from .split_rows import (
    ReadRequest,
    SplitPlan,
    SplitRows,
    WholeSplits,
    concatenate_buffers,
    drop_type_errors,
    first_detail,
    lines_of_rows,
    text_rejects,
)
from .text_splits import ScannedRange, plan_text_files, text_looks, text_pieces

_NOTHING = Header((), 0, 0)


def plan_input(
    files: Sequence[ListedFile], options: ReadOptions, given: Mapping[str, ColumnType], executor: Executor
) -> tuple[CsvReader, SplitPlan]:
    """Scan the files once and divide them into splits of whole lines. Raises `InputError` naming a file."""
    warm()
    reader = CsvReader(options.delimiter, options.multiline, frozenset(given))
    return reader, plan_text_files(reader, files, options, given, executor)


@dataclass(frozen=True, slots=True)
class CsvReader(WholeSplits):
    """The `FormatReader` of CSV.

    ``delimiter``: one ASCII character.
    ``multiline``: whether a quoted field may contain line ends.
    ``typed``: the columns whose types are declared, and not inferred.
    """

    delimiter: str
    multiline: bool
    typed: frozenset[str]

    columnar: ClassVar[bool] = False

    def as_stream(self, place: Located) -> bool:
        """Whether a file is one split that is read from start to end."""
        return self.multiline or place.compression is not None

    def dialect(self, place: Located) -> Dialect:
        """Return the dialect of a file; ``.tsv`` files have tabs unless the user chose a delimiter."""
        name = place.path.lower().removesuffix("." + place.path.rpartition(".")[2]) if place.compression else place.path
        tabs = self.delimiter == "," and name.lower().endswith(".tsv")
        return Dialect("\t" if tabs else self.delimiter, self.multiline)

    def scan(self, byte_range: Range) -> ScannedRange | InputError:
        """Count the records of a range and find the kinds of its columns. Errors are returned, not raised."""
        try:
            with input_errors(byte_range.place.shown):
                return self._scan_stream(byte_range) if byte_range.stop == WHOLE else self._scan_range(byte_range)
        except InputError as error:
            return error

    def _scan_range(self, byte_range: Range) -> ScannedRange:
        dialect = self.dialect(byte_range.place)
        with byte_range.place.open_file() as file:
            size = file.size()
            if byte_range.start == 0 and size <= byte_range.stop <= STEP:  # so a small file is read once
                data = file.read_at(size, 0)
                header = read_header(partial(_slice, data), dialect) or _NOTHING
                rest = data[header.size :]
                return self._scanned(
                    byte_range.file, (min(header.size, size), size), header, [rest] if rest else [], dialect
                )
            header = read_header(partial(_first_bytes, file), dialect) or _NOTHING
            start, stop = (
                max(line_start(file, at, size, cr_ends=True), header.size) for at in (byte_range.start, byte_range.stop)
            )
            return self._scanned(
                byte_range.file, (start, stop), header, _range_buffers(file, start, stop, dialect), dialect
            )

    def _scan_stream(self, byte_range: Range) -> ScannedRange:
        dialect = self.dialect(byte_range.place)
        with byte_range.place.open_stream() as stream:
            header, buffers = _body(stream, dialect)
            return self._scanned(byte_range.file, (0, WHOLE), header, buffers, dialect)

    def _scanned(
        self, file: int, place: tuple[int, int], header: Header, buffers: Iterable[bytes], dialect: Dialect
    ) -> ScannedRange:
        counts, kinds, nbytes = Tally(0, 0, 0, -1, 0), dict[str, Kind](), 0
        for data in buffers:
            more, found = self._survey(data, dialect, header.names)
            counts = _added(counts, more)
            kinds = {name: join(kinds.get(name, NOTHING), kind) for name, kind in found.items()} or kinds
            nbytes += len(data)
        return _scanned_range(file, place, header, nbytes, counts, kinds)

    def _survey(self, data: bytes, dialect: Dialect, names: Sequence[str]) -> tuple[Tally, dict[str, Kind]]:
        wanted = [name for name in names if name not in self.typed]
        seen = np.array([TEXT if name in self.typed else NOTHING for name in names], np.int64)
        counts = tally(data, dialect, len(names), seen)
        if counts.torn >= 0 or counts.rows == counts.wrong or not wanted:
            return counts, {}
        if counts.wrong:
            clean = _well_formed(data, locate(data, dialect), len(names))[0]
            return counts, infer_csv(clean, dialect, names, wanted)
        kinds: dict[str, Kind] = dict(zip(names, seen.tolist(), strict=True))
        unsure = [name for name in wanted if seen[names.index(name)] & (UNSURE | TEXT) == UNSURE]
        kinds |= infer_csv(data, dialect, names, unsure) if unsure else {}
        return counts, {name: TEXT if kinds[name] & TEXT else kinds[name] for name in wanted}

    def read(self, place: Located, split: Split, request: ReadRequest) -> SplitRows:
        """Read columns of a split; rows that do not parse, or have too many or too few fields, become rejects."""
        if not request.types and not split.place[3]:
            return SplitRows(pa.table({}), np.arange(split.rows, dtype=np.int64))
        dialect, base, line = self.dialect(place), 0, split.place[2]
        buffers: list[tuple[int, SplitRows]] = []
        with input_errors(place.shown):
            for data in self._buffers(place, split):
                split_rows, rows = _read_buffer(data, split.place[3] > 0, line, dialect, request)
                buffers.append((base, split_rows))
                base, line = base + rows, line + count_line_ends(data)
        if base != split.rows:
            raise has_changed(place.shown)
        return concatenate_buffers(buffers, request.schema)

    def parts_of(self, place: Located, split: Split) -> Sequence[Split]:  # noqa: ARG002
        """Return the split: it is not divided further."""
        return [split]

    def pieces_of(self, place: Located, split: Split, nbytes: int) -> Iterator[Split]:
        """Yield splits of about ``nbytes`` bytes, each scanned when it is asked for."""
        return text_pieces(self, place, split, nbytes)

    def looks_of(self, place: Located, split: Split) -> Sequence[Split]:
        """Return evenly spaced small ranges of a split; their positions are estimates."""
        return text_looks(self, place, split)

    def lines(self, place: Located, split: Split, offsets: Int64s) -> Int64s:
        """Return the 1-based lines on which records of a split begin; ``offsets``: of the records, int64, ascending."""
        dialect = self.dialect(place)
        located = ((locate(data, dialect), count_line_ends(data)) for data in self._buffers(place, split))
        with input_errors(place.shown):
            return lines_of_rows(located, split.place[2], offsets)

    def _buffers(self, place: Located, split: Split) -> Iterator[bytes]:
        start, stop = split.place[:2]
        if stop == WHOLE:
            with place.open_stream() as stream:
                yield from _body(stream, self.dialect(place))[1]
        elif stop > start:
            with place.open_file() as file:
                yield from _range_buffers(file, start, stop, self.dialect(place))


def _first_bytes(file: pa.NativeFile, size: int) -> bytes:
    return bytes(file.read_at(size, 0))


def _range_buffers(file: pa.NativeFile, start: int, stop: int, dialect: Dialect) -> Iterator[bytes]:
    return range_buffers(file, start, stop, partial(_whole, dialect))


def _body(stream: Stream, dialect: Dialect) -> tuple[Header, Iterator[bytes]]:
    """Return the header of a stream, and the buffers of the text behind it."""
    buffers = stream_buffers(stream, partial(_whole, dialect))
    start = b""
    for buffer in buffers:
        start += buffer
        header = read_header(partial(_slice, start), dialect)
        if header is not None:
            rest = start[header.size :]
            return header, chain([rest] if rest else [], buffers)
    return _NOTHING, iter(())


def _slice(data: bytes, size: int) -> bytes:
    return data[:size]


def _whole(dialect: Dialect, data: bytes) -> int:
    if not dialect.multiline:
        return last_line_end(data, cr_ends=True)
    return tally(data.removesuffix(b"\r"), dialect, 0).whole


def _well_formed(data: bytes, records: Records, width: int) -> tuple[bytes, Int64s]:
    """Return the text of the records with ``width`` fields, and their indices among all records, int64."""
    right = records.fields == width
    return records.without(data, np.flatnonzero(~right)), np.flatnonzero(right)


def _read_buffer(
    data: bytes, has_wrong: bool, line: int, dialect: Dialect, request: ReadRequest
) -> tuple[SplitRows, int]:
    """Read one buffer whose first line has the 1-based number ``line``; also return the number of its records.

    ``has_wrong``: whether some records of the split have too many or too few fields.
    """
    width, clean, details = len(request.names), data, dict[int, str]()
    records = locate(data, dialect) if has_wrong else None
    if records is not None:
        clean, rows = _well_formed(data, records, width)
        for row in np.flatnonzero(records.fields != width):
            few = f"{records.fields[row]} fields where the header has {width}"
            details[int(row)] = few if records.fields[row] else "the record begins or ends with NUL bytes"
    table, type_errors = read_typed(clean, dialect, request.names, request.types)
    if records is None:
        rows = np.arange(table.num_rows, dtype=np.int64)
    total = table.num_rows if records is None else len(records.starts)
    table, bad = drop_type_errors(table, type_errors)
    if bad is not None:
        details |= {int(rows[at]): first_detail(type_errors, int(at)) for at in np.flatnonzero(bad)}
        rows = rows[~bad]
    rejects = text_rejects(data, records or locate(data, dialect), line, details) if details else ()
    return SplitRows(table, rows, rejects), total


def _scanned_range(
    file: int, place: tuple[int, int], header: Header, nbytes: int, counts: Tally, kinds: dict[str, Kind]
) -> ScannedRange:
    return ScannedRange(
        file, *place, counts.rows, counts.wrong, counts.lines, header.lines, nbytes, counts.torn, header.names, kinds
    )


def _added(a: Tally, b: Tally) -> Tally:
    torn = a.torn if a.torn >= 0 else a.lines + b.torn if b.torn >= 0 else -1
    return Tally(a.rows + b.rows, a.wrong + b.wrong, a.lines + b.lines, torn, 0)
